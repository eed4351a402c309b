/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/quota.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "bricks/bricks.h"
#include "data/dict.h"
#include "event/chore.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-call.h"
#include "volumes/bricks/brick-path.h"
#include "volumes/cluster/quota-hosts.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"
#include "xlators/features/simple-quota/simple-quota.h"

#define XATTR_MARK "trusted.glusterfs.namespace"
#define XATTR_LIMIT "trusted.gfs.squota.limit"

enum {
    TELL_MS = 1000,
    TELL_NEAR_MS = 100, /* while a limit that holds across hosts is nearly reached */
    TELL_SOON_MS = 20   /* after a change; many volumes may start together */
};

/* ---- usage ----------------------------------------------------------------------------------- */

/* Converts a limit of the user's bytes into the limit of each brick. */
static uint64_t
limit_of_brick(const struct volume *v, uint64_t limit)
{
    uint64_t part = limit / volume_data_bricks(v);

    return limit && !part ? 1 : part;
}

/* Converts bytes of a brick's fragments into bytes of the user's files. */
static uint64_t
bytes_of_user(const struct volume *v, int64_t of_brick)
{
    return of_brick > 0 ? (uint64_t)of_brick * volume_data_bricks(v) : 0;
}

static struct graph *
find_own_brick(const struct volume *v, unsigned i)
{
    return brick_host_is_here(&v->bricks[i]) ? bricks_find(v->bricks[i].path) : NULL;
}

void
quota_own_rows(const struct volume *v, enum simple_quota_look look, struct quota_rows *r)
{
    *r = (struct quota_rows){0};
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = volume_is_arbiter(v, i) ? NULL : find_own_brick(v, i);
        struct simple_quota_usage *list = NULL;
        unsigned n = 0;
        int err = g ? simple_quota_list(g, look, &list, &n) : -ENOTCONN;

        if (g)
            graph_unpin(g);
        r->is_short |= err == -ENOMEM;
        if (!err)
            quota_rows_add(r, list, n, i / v->replica, i);
        free(list);
    }
}

/* Adds the rows that other hosts have sent to the rows of this host, and sums them. */
static int
sum_usage(const struct volume *v, struct quota_rows *rows, struct quota_table *t)
{
    quota_hosts_add(v, rows);
    return quota_rows_sum(rows, v->brick_count / v->replica, t);
}

void
quota_usage(const struct volume *v, struct quota_usage *out)
{
    struct quota_rows rows;
    struct quota_table t;

    *out = (struct quota_usage){.limit = volume_limit(v)};
    if (v->status != VOLUME_STARTED || !volume_counts_usage(v))
        return;
    quota_own_rows(v, SIMPLE_QUOTA_AS_KNOWN, &rows);
    int err = sum_usage(v, &rows, &t);
    quota_rows_end(&rows);
    if (err)
        return;
    for (unsigned i = 0; i < t.count; i++) {
        if (!gfid_is_root(&t.rows[i].ns))
            continue;
        out->is_known = t.is_whole;
        out->is_counting = t.rows[i].is_counting;
        out->used = bytes_of_user(v, t.rows[i].used);
    }
    free(t.rows);
}

/* ---- setting --------------------------------------------------------------------------------- */

static int
copy_stat(const struct fop_reply *reply, void *arg)
{
    *(struct iatt *)arg = reply->stat;
    return 0;
}

/* Finds the folder with this gfid, and returns a reference. */
static int
find_quota_folder(struct graph *g, const struct gfid *gfid, struct inode **out)
{
    struct iatt stat;
    struct brick_call q = {.seen = copy_stat, .arg = &stat};
    struct call_stack *stk = brick_call_new(&q);

    if (!stk)
        return -ENOMEM;
    stk->call.fop = FOP_lookup;
    stk->call.gfid = *gfid;
    int err = brick_call_run(&q, stk, g);
    if (!err && !S_ISDIR(stat.mode))
        err = -ENOTDIR;
    *out = err ? NULL : inode_link(g->inodes, NULL, NULL, &stat);
    return err ? err : *out ? 0 : -ENOMEM;
}

/* Prepares a call on the folder as the caller. */
static struct call_stack *
folder_call(struct brick_call *q, enum fop fop, struct inode *dir)
{
    struct call_stack *stk = brick_call_new(q);

    if (stk) {
        stk->call.fop = fop;
        stk->call.loc.inode = inode_ref(dir);
        stk->call.gfid = dir->gfid;
    }
    return stk;
}

static int
set_limit(struct graph *g, struct inode *dir, uint64_t limit)
{
    struct brick_call q = {.seen = NULL};
    struct call_stack *stk = folder_call(&q, FOP_setxattr, dir);
    char text[32];
    int len = snprintf(text, sizeof text, "%llu", (unsigned long long)limit);

    if (!stk)
        return -ENOMEM;
    stk->call.dict = dict_new(&stk->arena);
    if (!stk->call.dict || dict_set_text(stk->call.dict, XATTR_MARK, DICT_PTR, "true", 4) ||
        dict_set_text(stk->call.dict, XATTR_LIMIT, DICT_PTR, text, (uint32_t)len)) {
        call_stack_free(stk);
        return -ENOMEM;
    }
    return brick_call_run(&q, stk, g);
}

static int
remove_limit(struct graph *g, struct inode *dir)
{
    struct brick_call q = {.seen = NULL};
    struct call_stack *stk = folder_call(&q, FOP_removexattr, dir);

    if (!stk)
        return -ENOMEM;
    stk->call.name = XATTR_LIMIT;
    int err = brick_call_run(&q, stk, g);
    return err == -ENODATA ? 0 : err;
}

static int
change_limit(struct graph *g, const struct gfid *gfid, uint64_t limit)
{
    struct inode *dir = gfid_is_root(gfid) ? inode_root(g->inodes) : NULL;
    int err = dir ? 0 : find_quota_folder(g, gfid, &dir);

    if (!err)
        err = limit ? set_limit(g, dir, limit) : remove_limit(g, dir);
    inode_unref(dir);
    return err;
}

/* Tells whether the brick has this limit. */
static bool
has_limit(struct graph *g, const struct gfid *gfid, uint64_t limit)
{
    struct simple_quota_usage *list;
    unsigned count;
    bool has = limit == 0;

    if (simple_quota_list(g, SIMPLE_QUOTA_AS_KNOWN, &list, &count))
        return true; /* a new brick that does not count yet: quotas_follow() will be called again */
    for (unsigned i = 0; i < count; i++) {
        if (gfid_equal(&list[i].ns, gfid))
            has = (uint64_t)list[i].limit == limit;
    }
    free(list);
    return has;
}

/* ---- telling bricks what all hold ------------------------------------------------------------ */

static struct {
    struct chore chore;
    /* private to the chore: a volume has several subvolumes and counts usage; 7/8 of a limit are used, and
     * other hosts have bricks of the volume */
    bool is_wanted, is_near;
} telling;

static bool
needs_telling(const struct volume *v)
{
    return v->status == VOLUME_STARTED && v->brick_count > v->replica && volume_counts_usage(v);
}

/* Sets limits of folders on a brick that was added later, as soon as the brick has the folder. If a limit is
 * removed at the same moment, the brick may keep the limit, and `kiln quota` still lists the folder. */
static void
spread_limits(const struct volume *v, const char *brick, struct graph *g, const struct quota_table *t)
{
    struct simple_quota_usage *list;
    unsigned count;

    if (simple_quota_list(g, SIMPLE_QUOTA_AS_KNOWN, &list, &count))
        return; /* the chore runs again in a second */
    for (unsigned i = 0; i < t->count; i++) {
        const struct simple_quota_usage *row = &t->rows[i];

        if (row->limit <= 0 || gfid_is_root(&row->ns) ||
            bsearch(row, list, count, sizeof *list, simple_quota_compare))
            continue;
        int err = change_limit(g, &row->ns, (uint64_t)row->limit);
        if (err && err != -ENOENT && err != -ESTALE)
            log_event(LOG_ERROR, NULL, "quota-limit-not-spread",
                      "volume %s: brick %s does not have the limit of folder %s yet: %s", v->name, brick,
                      GFID(&row->ns), strerror(-err));
    }
    free(list);
}

/* Names the set of subvolumes without an answer. 0: none. */
static uint32_t
missing_sets(const struct volume *v, const struct quota_rows *r)
{
    uint32_t hash = 2166136261u; /* FNV-1a */
    bool is_any = false;

    for (unsigned i = 0; i < v->brick_count / v->replica; i++) {
        hash = (hash ^ r->sets[i]) * 16777619u;
        is_any |= !r->sets[i];
    }
    return !is_any ? 0 : hash ? hash : 1;
}

/* Sums the rows of one folder on bricks of this process, and enters them into told->shared. The rows are in
 * the order of sets. */
static void
add_local(const struct quota_row *rows, unsigned count, struct simple_quota_told *told)
{
    int64_t fullest = 0;
    unsigned set = UINT_MAX;

    for (unsigned i = 0; i < count; i++) {
        int64_t used = rows[i].usage.used;

        if (rows[i].brick == QUOTA_ROW_FAR)
            continue;
        fullest = rows[i].set == set ? fullest : 0;
        set = rows[i].set;
        if (used > fullest) {
            told->local += used - fullest;
            fullest = used;
        }
        if (told->shared)
            simple_quota_shared_set(told->shared, rows[i].brick, used);
    }
}

/* Makes the list for simple_quota_tell() of rows in the order of folders. NULL: no memory. */
static struct simple_quota_told *
told_new(const struct volume *v, const struct quota_rows *r, const struct quota_table *t)
{
    struct simple_quota_told *list = calloc(t->count + 1, sizeof *list);
    unsigned at = 0;

    for (unsigned i = 0; list && i < t->count; i++) {
        unsigned end = at;

        while (end < r->count && gfid_equal(&r->rows[end].usage.ns, &t->rows[i].ns))
            end++;
        list[i] = (struct simple_quota_told){.ns = t->rows[i].ns, .total = t->rows[i].used};
        if (t->rows[i].limit > 0) /* without memory the brick checks the sum and its own changes */
            list[i].shared = simple_quota_shared_new(v->brick_count, v->replica);
        add_local(r->rows + at, end - at, &list[i]);
        at = end;
    }
    return list;
}

static void
told_free(struct simple_quota_told *list, unsigned count)
{
    for (unsigned i = 0; list && i < count; i++)
        simple_quota_shared_unref(list[i].shared);
    free(list);
}

static void
spread_all_limits(const struct volume *v, const struct quota_table *t)
{
    for (unsigned i = 0; i < v->brick_count && t->is_whole; i++) {
        struct graph *g = find_own_brick(v, i);

        if (!g)
            continue;
        spread_limits(v, v->bricks[i].path, g, t);
        graph_unpin(g);
    }
}

static bool
is_near_limit(const struct quota_rows *r, const struct quota_table *t)
{
    bool is_far = false, is_near = false;

    for (unsigned i = 0; i < r->count && !is_far; i++)
        is_far = r->rows[i].brick == QUOTA_ROW_FAR;
    for (unsigned i = 0; i < t->count && is_far && !is_near; i++)
        is_near = t->rows[i].limit > 0 && t->rows[i].used > t->rows[i].limit - t->rows[i].limit / 8;
    return is_near;
}

static void
send_rows_to_bricks(const struct volume *v, const struct quota_rows *r, const struct quota_table *t)
{
    struct simple_quota_told *list = told_new(v, r, t);

    for (unsigned i = 0; list && i < v->brick_count; i++) {
        struct graph *g = find_own_brick(v, i);

        if (!g)
            continue;
        simple_quota_tell(g, list, t->count, volume_is_arbiter(v, i) ? -1 : (int)i, missing_sets(v, r));
        graph_unpin(g);
    }
    told_free(list, t->count);
}

/* The volume has one subvolume. Bricks that were told the usage of others, now removed, forget that. */
static void
untell_bricks(const struct volume *v)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = find_own_brick(v, i);

        if (!g)
            continue;
        simple_quota_untell(g);
        graph_unpin(g);
    }
}

static void
send_rows_of_volume(const char *name)
{
    struct problem why = {0};
    struct volume *v = volumes_find(name, &why);
    struct quota_rows rows;
    struct quota_table t;

    if (v && needs_telling(v)) {
        telling.is_wanted = true;
        quota_own_rows(v, SIMPLE_QUOTA_TO_TELL, &rows);
        if (!rows.is_short && brick_host_has_any(v))
            quota_hosts_publish(v, &rows);
        if (sum_usage(v, &rows, &t) == 0) {
            telling.is_near |= is_near_limit(&rows, &t);
            send_rows_to_bricks(v, &rows, &t);
            spread_all_limits(v, &t);
            free(t.rows);
        }
        quota_rows_end(&rows);
    } else if (v && v->status == VOLUME_STARTED && volume_counts_usage(v)) {
        untell_bricks(v);
    }
    volume_free(v);
}

static uint64_t
tell_all_usage(struct chore *c)
{
    struct problem why;

    (void)c;
    telling.is_wanted = telling.is_near = false;
    bool has_memory = volumes_each_name(send_rows_of_volume, &why) == 0;

    if (!telling.is_wanted && has_memory)
        return 0;
    return telling.is_near && has_memory ? TELL_NEAR_MS : TELL_MS;
}

void
quotas_begin(void)
{
    chore_init(&telling.chore, tell_all_usage);
}

void
quotas_stop(void)
{
    if (telling.chore.fn) /* NULL without --state */
        chore_stop(&telling.chore);
}

void
quotas_follow(const char *name)
{
    struct problem why = {0};
    struct volume *v = volumes_find(name, &why);

    for (unsigned i = 0; v && v->status == VOLUME_STARTED && volume_counts_usage(v) && i < v->brick_count;
         i++) {
        struct graph *g = find_own_brick(v, i);
        uint64_t limit = limit_of_brick(v, volume_limit(v));
        int err = !g || has_limit(g, &gfid_root, limit) ? 0 : change_limit(g, &gfid_root, limit);

        if (err)
            log_event(
                LOG_ERROR, NULL, "quota-limit-not-set",
                "volume %s: brick %s does not have the volume's limit: %s; try: kiln volume start %s force",
                name, v->bricks[i].path, strerror(-err), name);
        if (g)
            graph_unpin(g);
    }
    if (v && v->status == VOLUME_STARTED && volume_counts_usage(v))
        chore_restart(&telling.chore, TELL_SOON_MS);
    volume_free(v);
}

void
quota_clear(const struct volume *v)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = find_own_brick(v, i);

        if (g && !has_limit(g, &gfid_root, 0))
            (void)change_limit(g, &gfid_root, 0); /* if this fails, the next quotas_follow() logs it */
        if (g)
            graph_unpin(g);
    }
}

/* ---- folders --------------------------------------------------------------------------------- */

static int
no_folder(struct problem *why, const struct volume *v, const char *path, const char *brick, int err)
{
    problem_set(why, err == -ENOTDIR || err == -ENODATA ? -EINVAL : err, "%.400s on brick %s: %s", path,
                brick, strerror(-err));
    problem_expected(why, "the path of a folder from the root of volume %s", v->name);
    return why->err;
}

int
quota_check(const struct volume *v, const char *path, struct problem *why)
{
    why->err = 0;
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = find_own_brick(v, i);
        struct gfid gfid;

        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        if (!g) {
            problem_set(why, -EINVAL, "brick %s of volume %s is offline, so it would miss the limit",
                        v->bricks[i].path, v->name);
            problem_type(why, "kiln volume start %s force", v->name);
            return why->err;
        }
        graph_unpin(g);
        int err = brick_path_gfid(v->bricks[i].path, path, &gfid);
        if (err)
            return no_folder(why, v, path, v->bricks[i].path, err);
    }
    return 0;
}

int
quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why)
{
    if (quota_check(v, path, why))
        return why->err;
    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *brick = v->bricks[i].path;
        struct graph *g = find_own_brick(v, i);
        struct gfid gfid;
        int err = g ? brick_path_gfid(brick, path, &gfid) : -ENOTCONN;

        if (!brick_host_is_here(&v->bricks[i]))
            continue;
        if (!err)
            err = change_limit(g, &gfid, limit_of_brick(v, limit));
        if (g)
            graph_unpin(g);
        if (err)
            return no_folder(why, v, path, brick, err);
    }
    chore_restart(&telling.chore, TELL_SOON_MS);
    return 0;
}

/* Finds the folder's path from the root of the volume, by following its handle on a brick. */
bool
quota_find_path(const struct volume *v, const struct gfid *gfid, char *path)
{
    char handle[PATH_MAX];

    for (unsigned i = 0; i < v->brick_count; i++) {
        const char *brick = v->bricks[i].path;
        char *real_brick = brick_host_is_here(&v->bricks[i]) ? realpath(brick, NULL) : NULL;
        size_t len = real_brick ? strlen(real_brick) : 0;

        snprintf(handle, sizeof handle, "%s/.glusterfs/%02x/%02x/%s", brick, gfid->b[0], gfid->b[1],
                 GFID(gfid));
        bool is_found =
            real_brick && realpath(handle, path) && strncmp(path, real_brick, len) == 0 && path[len] == '/';
        free(real_brick);
        if (!is_found)
            continue;
        memmove(path, path + len, strlen(path + len) + 1);
        return true;
    }
    return false;
}

static json_t *
describe_limit(const struct volume *v, const struct simple_quota_usage *row, const json_t *paths)
{
    const char *told = json_string_value(json_object_get(paths, GFID(&row->ns)));
    const json_int_t limit = (json_int_t)bytes_of_user(v, row->limit);
    const json_int_t used = (json_int_t)bytes_of_user(v, row->used);
    char path[PATH_MAX] = "/";

    if (!gfid_is_root(&row->ns) && !quota_find_path(v, &row->ns, path)) {
        if (!told)
            return NULL; /* the folder was removed just now */
        snprintf(path, sizeof path, "%s", told);
    }
    json_t *one = json_pack("{ss sI sI sb}", "path", path, "limit", limit, "used", used, "counting",
                            (int)row->is_counting);
    if (one)
        return one;
    return json_pack("{ss sI sI sb}", "path", GFID(&row->ns), "limit", limit, "used", used, "counting",
                     (int)row->is_counting); /* the path is not UTF-8 */
}

int
quota_describe(const struct volume *v, struct quota_rows *rows, const json_t *paths, json_t **out,
               struct problem *why)
{
    json_t *list = json_array();
    struct quota_table t;

    if (quota_rows_sum(rows, v->brick_count / v->replica, &t)) {
        json_decref(list);
        return problem_no_memory(why);
    }
    for (unsigned i = 0; i < t.count; i++) {
        json_t *one =
            t.rows[i].limit || gfid_is_root(&t.rows[i].ns) ? describe_limit(v, &t.rows[i], paths) : NULL;

        if (one)
            json_array_append_new(list, one);
    }
    free(t.rows);
    *out = json_pack("{ss sb sb so}", "name", v->name, "counts", (int)volume_counts_usage(v), "whole",
                     (int)t.is_whole, "limits", list);
    return *out ? 0 : problem_no_memory(why);
}

int
quota_list(const struct volume *v, json_t **out, struct problem *why)
{
    struct quota_rows rows;

    quota_own_rows(v, SIMPLE_QUOTA_FRESH, &rows);
    int err = quota_describe(v, &rows, NULL, out, why);
    quota_rows_end(&rows);
    return err;
}
