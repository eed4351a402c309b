/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal/heal-pending.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/gfid.h"
#include "xlators/cluster/replicate/crawl.h"
#include "volumes/brick-host.h"

enum { PATH_BYTES = PATH_MAX, NAMES_BYTES = 4096 };

static bool
handle_path(const char *brick, const char *gfid, char path[PATH_BYTES])
{
    return snprintf(path, PATH_BYTES, "%s/.glusterfs/%.2s/%.2s/%s", brick, gfid, gfid + 2, gfid) < PATH_BYTES;
}

/* Finds the path of a folder below the brick, by following the handle, which is a symlink to the folder. */
static bool
find_folder_path(const char *brick, const char *gfid, char out[PATH_BYTES])
{
    char handle[PATH_BYTES], *real;
    struct gfid g;
    bool is_below = false;

    if (gfid_parse(gfid, strlen(gfid), &g) || !handle_path(brick, gfid, handle))
        return false;
    *out = '\0';
    if (gfid_is_root(&g))
        return true;
    real = realpath(handle, NULL);
    char *base = realpath(brick, NULL);
    if (real && base && strncmp(real, base, strlen(base)) == 0 && real[strlen(base)] == '/') {
        is_below = true;
        snprintf(out, PATH_BYTES, "%s", real + strlen(base));
    }
    free(real);
    free(base);
    return is_below;
}

/* Finds the path of a file by its xattrs, which have the form "parent's gfid, slash, name" for each name
 * of the file. Takes the first one. */
static bool
find_file_path(const char *brick, const char *handle, char out[PATH_BYTES])
{
    static const char prefix[] = "trusted.gfid2path.";
    char names[NAMES_BYTES], value[PATH_BYTES], parent[PATH_BYTES];
    ssize_t n = llistxattr(handle, names, sizeof names);

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (strncmp(names + at, prefix, sizeof prefix - 1) != 0)
            continue;
        ssize_t len = lgetxattr(handle, names + at, value, sizeof value - 1);
        if (len <= GFID_TEXT_SIZE || value[GFID_TEXT_SIZE - 1] != '/')
            continue;
        value[len] = value[GFID_TEXT_SIZE - 1] = '\0';
        if (find_folder_path(brick, value, parent))
            return snprintf(out, PATH_BYTES, "%s/%s", parent, value + GFID_TEXT_SIZE) < PATH_BYTES;
    }
    return false;
}

static json_t *
entry_name(const char *brick, const char *gfid)
{
    char handle[PATH_BYTES], path[PATH_BYTES];
    struct stat st;
    bool is_known = handle_path(brick, gfid, handle) && lstat(handle, &st) == 0;

    /* The handle of a folder is a symlink without xattrs; the handle of a symlink is a symlink with
     * xattrs. */
    if (is_known && !find_file_path(brick, handle, path))
        is_known = S_ISLNK(st.st_mode) && find_folder_path(brick, gfid, path);
    /* json_string() also returns NULL for a path that is not UTF-8 */
    json_t *name = is_known ? json_string(*path ? path : "/") : NULL;
    return name ? name : json_sprintf("<gfid:%s>", gfid);
}

static bool
is_in(const char *brick, const char *index, const char *name)
{
    char path[PATH_BYTES];
    struct stat st;

    return snprintf(path, sizeof path, "%s/.glusterfs/indices/%s/%s", brick, index, name) <
               (int)sizeof path &&
           lstat(path, &st) == 0;
}

/* ---- split-brain ----------------------------------------------------------------------------- */

enum { DATA, METADATA, ENTRY, WORDS = HEAL_PENDING_KINDS }; /* indices of the counts of pending changes */

/* Collects the accusations by brick `from` of the set: sets bit B of accused[w] for each brick B that
 * missed changes of kind w. */
static void
add_accusations(const struct volume *v, unsigned first, unsigned from, const char *gfid,
                unsigned accused[WORDS])
{
    char handle[PATH_BYTES], key[VOLUME_NAME_MAX + 64];
    uint32_t words[WORDS];

    if (!brick_host_is_here(&v->bricks[first + from]) ||
        !handle_path(v->bricks[first + from].path, gfid, handle))
        return;
    bool is_own = lgetxattr(handle, "trusted.gfid", NULL, 0) >= 0; /* false for the handle of a folder */
    for (unsigned k = 0; k < v->replica; k++) {
        snprintf(key, sizeof key, "trusted.afr.%s-client-%u", v->name, v->bricks[first + k].id);
        ssize_t n = is_own ? lgetxattr(handle, key, words, sizeof words)
                           : getxattr(handle, key, words, sizeof words);
        for (unsigned w = 0; w < WORDS && n == sizeof words && k != from; w++)
            accused[w] |= words[w] ? 1u << k : 0;
    }
}

/* Tells whether no brick of the set is good enough to heal the others. Pending entry changes do not count:
 * the bricks' folders are merged, except for names (see add_split_names()). */
bool
heal_pending_is_split(const struct volume *v, const unsigned accused[HEAL_PENDING_KINDS])
{
    const unsigned all = (1u << v->replica) - 1;
    const unsigned with_data = v->has_arbiter ? all >> 1 : all;

    return (accused[DATA] & with_data) == with_data || accused[METADATA] == all;
}

static bool
gfid_at(const char *brick, const char *folder, const char *name, uint8_t out[16])
{
    char path[PATH_BYTES];

    return snprintf(path, sizeof path, "%s%s/%s", brick, folder, name) < (int)sizeof path &&
           lgetxattr(path, "trusted.gfid", out, 16) == 16;
}

/* Tells whether another brick of the set has another object under this name. */
static bool
is_name_split(const struct volume *v, unsigned brick, const char *folder, const char *name)
{
    const unsigned first = brick - brick % v->replica;
    uint8_t mine[16], other[16];

    if (!gfid_at(v->bricks[brick].path, folder, name, mine))
        return false;
    for (unsigned k = first; k < first + v->replica; k++) {
        if (k != brick && brick_host_is_here(&v->bricks[k]) &&
            gfid_at(v->bricks[k].path, folder, name, other) && memcmp(mine, other, 16) != 0)
            return true;
    }
    return false;
}

/* ---- the index ------------------------------------------------------------------------------- */

struct pending {
    const struct volume *v;
    unsigned brick;
    const char *path; /* of the brick */
    json_t *entries, *split, *under_heal, *failed, *accused;
    const json_t *judged, *faults;
    json_int_t count, split_count;
    unsigned looked; /* number of names compared so far */
};

/* Consumes `name`. */
static int
add_name(struct pending *p, json_t *name, bool is_bad)
{
    int err = 0;

    p->split_count += is_bad;
    if (p->count++ < HEAL_PENDING_NAMED_MAX &&
        (json_array_append(p->entries, name) || (is_bad && json_array_append(p->split, name))))
        err = -ENOMEM;
    json_decref(name);
    return err;
}

/* Adds the names of a folder under which other bricks have other objects; no brick's object can be taken
 * as the right one. */
static int
add_split_names(struct pending *p, const char *gfid)
{
    char folder[PATH_BYTES], path[PATH_BYTES];
    const struct dirent *e;
    int err = 0;

    /* a folder's handle has no xattrs; that of a symlink has */
    if (!handle_path(p->path, gfid, path) || lgetxattr(path, "trusted.gfid", NULL, 0) >= 0 ||
        !find_folder_path(p->path, gfid, folder) ||
        snprintf(path, sizeof path, "%s%s", p->path, folder) >= (int)sizeof path)
        return 0;
    DIR *d = opendir(path);
    while (d && !err && p->looked < HEAL_PENDING_LOOKED_MAX && (e = readdir(d))) {
        p->looked++;
        if (is_name_split(p->v, p->brick, folder, e->d_name)) {
            /* NULL also for a name that is not UTF-8 */
            json_t *name = json_sprintf("%s/%s", folder, e->d_name);
            err = add_name(p, name ? name : json_sprintf("<gfid:%s>/(a name that cannot be shown)", gfid),
                           true);
        }
    }
    if (d)
        closedir(d);
    return err;
}

static int
add_entry(struct pending *p, const char *gfid)
{
    const unsigned first = p->brick - p->brick % p->v->replica;
    unsigned accused[WORDS] = {0};

    json_int_t need = json_integer_value(json_object_get(p->judged, gfid));
    json_t *fault = json_object_get(p->faults, gfid);
    bool is_judged = json_object_get(p->judged, gfid), is_named = p->count < HEAL_PENDING_NAMED_MAX;

    if (is_judged && need == CRAWL_NO_HEAL)
        return 0;
    for (unsigned from = 0; from < p->v->replica; from++)
        add_accusations(p->v, first, from, gfid, accused);
    if (is_named)
        json_array_append_new(p->accused,
                              json_pack("[siiiI]", gfid, (int)accused[DATA], (int)accused[METADATA],
                                        (int)accused[ENTRY], (json_int_t)json_array_size(p->entries)));
    json_t *name = entry_name(p->path, gfid);
    if (is_judged && is_named && need == CRAWL_UNDER_HEAL)
        json_array_append(p->under_heal, name);
    else if (fault && is_named)
        json_object_set(p->failed, json_string_value(name), fault);
    int err = add_name(p, name, heal_pending_is_split(p->v, accused));
    bool are_all_accused = accused[ENTRY] == (1u << p->v->replica) - 1;

    /* with a brick that is not accused, its names are right */
    return !err && are_all_accused ? add_split_names(p, gfid) : err;
}

/* Adds the entries of one index that are not in the other (NULL: none). Returns 0, -ENOMEM, or -errno of
 * the folder; a missing folder is no error. */
static int
add_index(struct pending *p, const char *index, const char *other)
{
    const char *brick = p->path;
    char path[PATH_BYTES];
    const struct dirent *e;
    struct gfid g;
    int err = 0;

    if (snprintf(path, sizeof path, "%s/.glusterfs/indices/%s", brick, index) >= (int)sizeof path)
        return -ENAMETOOLONG;
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT ? 0 : -errno;
    while (!err && (errno = 0, e = readdir(d))) {
        /* ".", ".." and the base file of the hard links are no gfids */
        if (gfid_parse(e->d_name, strlen(e->d_name), &g) || (other && is_in(brick, other, e->d_name)))
            continue;
        err = add_entry(p, e->d_name);
    }
    if (!err && errno)
        err = -errno;
    closedir(d);
    return err;
}

static void
add_gfids(json_t *gfids, const char *brick, const char *index)
{
    char path[PATH_BYTES];
    const struct dirent *e;
    struct gfid g;
    DIR *d = snprintf(path, sizeof path, "%s/.glusterfs/indices/%s", brick, index) < (int)sizeof path
                 ? opendir(path)
                 : NULL;

    while (d && json_array_size(gfids) < HEAL_PENDING_JUDGED_MAX && (e = readdir(d))) {
        if (!gfid_parse(e->d_name, strlen(e->d_name), &g))
            json_array_append_new(gfids, json_string(GFID(&g)));
    }
    if (d)
        closedir(d);
}

json_t *
heal_pending_gfids(const char *brick)
{
    json_t *gfids = json_array();

    if (gfids) {
        add_gfids(gfids, brick, "xattrop");
        add_gfids(gfids, brick, "dirty");
    }
    return gfids;
}

json_t *
heal_pending_of_brick(const struct volume *v, unsigned brick, const json_t *judged, const json_t *faults)
{
    struct pending p = {.v = v,
                        .brick = brick,
                        .path = v->bricks[brick].path,
                        .entries = json_array(),
                        .split = json_array(),
                        .under_heal = json_array(),
                        .failed = json_object(),
                        .accused = json_array(),
                        .judged = judged,
                        .faults = faults};
    struct stat st;
    int err = stat(p.path, &st) < 0 ? -errno : p.entries && p.split ? 0 : -ENOMEM;

    err = err ? err : add_index(&p, "xattrop", NULL);
    err = err ? err : add_index(&p, "dirty", "xattrop");
    if (!err && !*brick_host_own()) { /* all bricks were looked at */
        json_decref(p.accused);
        p.accused = NULL;
    }
    if (!err)
        return json_pack("{sI sI so so so so so*}", "count", p.count, "split_brain_count", p.split_count,
                         "entries", p.entries, "split_brain", p.split, "under_heal", p.under_heal, "failed",
                         p.failed, "accused", p.accused);
    json_decref(p.accused);
    json_decref(p.entries);
    json_decref(p.split);
    json_decref(p.under_heal);
    json_decref(p.failed);
    return err == -ENOMEM ? NULL
                          : json_pack("{sn sn s[] s[] s[] s{} ss}", "count", "split_brain_count", "entries",
                                      "split_brain", "under_heal", "failed", "error", strerror(-err));
}

long
heal_pending_accused(const char *brick)
{
    char path[PATH_BYTES];
    const struct dirent *e;
    struct gfid g;
    long n = 0;

    snprintf(path, sizeof path, "%s/.glusterfs/indices/xattrop", brick);
    DIR *d = opendir(path);
    if (!d)
        return -errno;
    while (errno = 0, e = readdir(d))
        n += gfid_parse(e->d_name, strlen(e->d_name), &g) == 0;
    if (errno)
        n = -errno;
    closedir(d);
    return n;
}
