/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verb store-move: the volumes of a kilnd with a state folder go to an etcd, and those of an etcd to a
 * state folder. The bricks stay where they are and serve meanwhile; changes are refused.
 *
 *     folder ─▶ etcd:  DIR/moving/host.json ─▶ host registered ─▶ each volume ─▶ all read back and compared
 *                      ─▶ host.json moves to DIR: the folder is this host's copy of the store from now on
 *     etcd ─▶ folder:  each volume in a new folder ─▶ all read back and compared ─▶ removed from the store
 *
 * Deaths: before the last step of the first row the folder is as before, and the store has volumes of a host
 * that is down; a second run finds them equal and goes on. Between two removals of the second row the new
 * folder has all volumes; a second run finds the rest equal and goes on. The store is not asked to hold all
 * volumes in one transaction, because etcd takes 128 keys.
 *
 * After the verb kilnd runs with the wrong options: the answer says how it is to be started. */
#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-identity.h"
#include "volumes/cluster/cluster-register.h"
#include "volumes/cluster/cluster.h"
#include "volumes/own-host.h"
#include "volumes/state-dir.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume-task.h"
#include "volumes/volumes-internal.h"

enum { KEY_BYTES = 300 };

/* A list of volumes, with the first error. */
struct moving {
    struct volume **volumes;
    unsigned count;
    struct problem why; /* err 0: none */
};

static void
moving_free(struct moving *m)
{
    for (unsigned i = 0; i < m->count; i++)
        volume_free(m->volumes[i]);
    free(m->volumes);
}

/* Takes `v` over (NULL: no memory). */
static void
moving_add(struct moving *m, struct volume *v)
{
    struct volume **more = v ? reallocarray(m->volumes, m->count + 1, sizeof *more) : NULL;

    if (!more) {
        volume_free(v);
        problem_no_memory(&m->why);
        return;
    }
    m->volumes = more;
    m->volumes[m->count++] = v;
}

static void
check_at_rest(struct moving *m, const struct volume *v)
{
    if (m->why.err ||
        (v->status != VOLUME_CREATING && !v->coming_count && !(v->task && volume_task_is_running(v))))
        return;
    problem_set(&m->why, -EBUSY, "volume %s is being changed", v->name);
    problem_expected(&m->why, "no rebalance, drain or change of bricks");
    problem_type(&m->why, "kiln volume info %s", v->name);
}

static char *
volume_text(const struct volume *v)
{
    json_t *json = volume_to_json(v);
    char *text = json ? json_dumps(json, JSON_COMPACT) : NULL;

    json_decref(json);
    return text;
}

static bool
volume_is_equal(const struct volume *a, const struct volume *b)
{
    char *of_a = volume_text(a), *of_b = volume_text(b);
    bool is = of_a && of_b && strcmp(of_a, of_b) == 0;

    free(of_a);
    free(of_b);
    return is;
}

static int
set_all_hosts(struct volume *v, const char *host, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        char *copy = strdup(host);

        if (!copy)
            return problem_no_memory(why);
        free(v->bricks[i].host);
        v->bricks[i].host = copy;
    }
    return 0;
}

/* ---- to an etcd ------------------------------------------------------------------------------ */

static void
collect_own(const struct volume *v, void *arg)
{
    struct moving *m = arg;

    check_at_rest(m, v);
    moving_add(m, volume_copy(v));
}

/* *has: the store has this very volume. */
static int
look_for_volume(struct store *s, const char *key, const char *text, bool *has, struct problem *why)
{
    int64_t revision;
    char *there;
    int err = store_get(s, key, &there, &revision, why);

    *has = !err && there && strcmp(there, text) == 0;
    if (!err && there && !*has) {
        problem_set(why, -EEXIST, "the store %s has another volume %s", store_location(s),
                    key + strlen("volumes/"));
        problem_expected(why, "a store without volumes of the same names");
        err = why->err;
    }
    free(there);
    return err;
}

enum move_step { LOOK, PUT, VERIFY };

static int
move_volume(struct store *s, const struct volume *v, enum move_step step, struct problem *why)
{
    char key[KEY_BYTES], *text = volume_text(v);
    bool has = false;

    snprintf(key, sizeof key, "volumes/%.255s", v->name);
    int err = text ? look_for_volume(s, key, text, &has, why) : problem_no_memory(why);
    const struct store_change c[] = {{key, text, 0, 0}, {"layout", v->name, STORE_ANY_REVISION, 0}};
    if (!err && step == PUT && !has)
        err = store_change(s, c, 2, NULL, why);
    if (!err && step == VERIFY && !has)
        err = problem_set(why, -EIO, "the store %s has lost volume %s", store_location(s), v->name);
    free(text);
    return err;
}

/* Reads or makes the identity in DIR/moving. */
static int
moving_identity(const char *dir, const char *host, char id[GFID_TEXT_SIZE], struct problem *why)
{
    char folder[4096];

    if (snprintf(folder, sizeof folder, "%s/moving", dir) >= (int)sizeof folder)
        return problem_set(why, -ENAMETOOLONG, "%s: the path is too long", dir);
    if (mkdir(folder, 0700) && errno != EEXIST)
        return problem_set(why, -errno, "%s: %s", folder, strerror(errno));
    int err = cluster_identity_read(folder, host, id, why);
    return err == -ENOENT ? cluster_identity_make(folder, host, id, why) : err;
}

static int
end_identity(const char *dir, struct problem *why)
{
    char from[4200], to[4200], folder[4200];

    snprintf(folder, sizeof folder, "%.4000s/moving", dir);
    snprintf(from, sizeof from, "%.4000s/moving/host.json", dir);
    snprintf(to, sizeof to, "%.4000s/host.json", dir);
    if (rename(from, to))
        return problem_set(why, -errno, "%s: %s", to, strerror(errno));
    (void)rmdir(folder); /* empty now; the next move would use the folder */
    return cluster_identity_flush(dir, why);
}

static int
move_all_to_store(struct store *s, struct moving *m, const char *host, struct problem *why)
{
    static const enum move_step steps[] = {LOOK, PUT, VERIFY};
    char id[GFID_TEXT_SIZE];
    int err = 0;

    for (unsigned i = 0; i < m->count && !err; i++)
        err = set_all_hosts(m->volumes[i], host, why);
    for (unsigned i = 0; i < m->count && !err; i++)
        err = move_volume(s, m->volumes[i], LOOK, why);
    err = err ? err : moving_identity(volumes_state_path(), host, id, why);
    err = err ? err : cluster_register(s, host, id, why);
    for (size_t k = 1; k < sizeof steps / sizeof steps[0]; k++) {
        for (unsigned i = 0; i < m->count && !err; i++)
            err = move_volume(s, m->volumes[i], steps[k], why);
    }
    return err ? err : end_identity(volumes_state_path(), why);
}

static int
move_to_store(const struct store_options *o, const char *host, json_t **out, struct problem *why)
{
    struct moving m = {0};

    if (cluster_is_on()) {
        problem_set(why, -EALREADY, "the volumes are in the store %s already",
                    store_location(cluster_store()));
        problem_expected(why, "a folder, to take the volumes out of the store");
        problem_type(why, "kiln store move DIR");
        return why->err;
    }
    if (volume_check_host(host, why))
        return why->err;
    struct store *s = store_open(o, why);
    if (!s)
        return why->err;
    verbs_freeze(store_location(s));
    volumes_each(collect_own, &m);
    int err = m.why.err;
    if (err)
        *why = m.why;
    err = err ? err : move_all_to_store(s, &m, host, why);
    if (err)
        verbs_freeze(NULL);
    else
        *out = json_pack("{si ss ss ss}", "volumes", (int)m.count, "location", store_location(s), "host",
                         host, "state", volumes_state_path());
    moving_free(&m);
    store_close(s);
    return err;
}

/* ---- to a folder ----------------------------------------------------------------------------- */

static void
collect_stored(const char *key, const char *text, int64_t revision, void *arg)
{
    struct moving *m = arg;
    struct volume *v = m->why.err ? NULL : state_dir_parse(text, strlen(text), &m->why);

    (void)key, (void)revision;
    for (unsigned i = 0; v && i < v->brick_count && !m->why.err; i++) {
        const char *host = v->bricks[i].host;

        if (strcmp(host, brick_host_own()) == 0)
            continue;
        problem_set(&m->why, -EBUSY, "volume %s has bricks on host %s", v->name, host);
        problem_expected(&m->why, "a store whose bricks are all on this host");
        problem_type(&m->why, "kiln volume info %s", v->name);
    }
    if (v)
        check_at_rest(m, v);
    if (v)
        moving_add(m, v);
}

static void
look_for_others(const char *key, const char *text, int64_t revision, void *arg)
{
    struct moving *m = arg;
    const char *name = key + strlen("hosts/");

    (void)text, (void)revision;
    if (m->why.err || strcmp(name, brick_host_own()) == 0)
        return;
    problem_set(&m->why, -EBUSY, "the store has another host, %.255s", name);
    problem_expected(&m->why, "a store of this host alone");
    problem_type(&m->why, "kiln host remove %.255s", name);
}

struct found {
    const struct moving *m;
    unsigned equal;
};

static int
compare_saved(struct volume *v, void *arg, struct problem *why)
{
    struct found *f = arg;

    why->err = 0;
    for (unsigned i = 0; i < f->m->count; i++) {
        if (strcmp(f->m->volumes[i]->name, v->name) != 0)
            continue;
        if (volume_is_equal(f->m->volumes[i], v))
            f->equal++;
        else
            problem_set(why, -EEXIST, "the folder has another volume %s", v->name);
    }
    volume_free(v);
    return why->err;
}

/* Bricks keep the name of this host if this machine has the name; else clients use the address that they
 * know. */
static int
set_plain_hosts(struct moving *m, struct problem *why)
{
    bool is_loopback = false;
    struct problem ignored;
    const char *host = own_host_check(brick_host_own(), &is_loopback, &ignored) ? "" : brick_host_own();
    int err = 0;

    for (unsigned i = 0; i < m->count && !err; i++)
        err = set_all_hosts(m->volumes[i], is_loopback ? "" : host, why);
    return err;
}

static int
save_all(const char *dir, const struct moving *m, struct problem *why)
{
    struct found f = {m, 0};
    struct state_dir *s = state_dir_open(dir, why);
    int err = s ? state_dir_load(s, compare_saved, &f, why) : why->err;

    for (unsigned i = 0; i < m->count && !err; i++)
        err = state_dir_save(s, m->volumes[i], NULL, why);
    f.equal = 0;
    err = err ? err : state_dir_load(s, compare_saved, &f, why);
    if (!err && f.equal != m->count)
        err = problem_set(why, -EIO, "%s has %u of %u volumes", dir, f.equal, m->count);
    state_dir_close(s);
    return err;
}

static int
remove_from_store(const struct moving *m, struct problem *why)
{
    char key[KEY_BYTES];
    int err = 0;

    for (unsigned i = 0; i < m->count && !err; i++) {
        const struct store_change c[] = {{key, NULL, STORE_ANY_REVISION, 0},
                                         {"layout", m->volumes[i]->name, STORE_ANY_REVISION, 0}};

        snprintf(key, sizeof key, "volumes/%.255s", m->volumes[i]->name);
        err = store_change(cluster_store(), c, 2, NULL, why);
    }
    const struct store_change host = {key, NULL, STORE_ANY_REVISION, 0};
    snprintf(key, sizeof key, "hosts/%.255s", brick_host_own());
    return err ? err : store_change(cluster_store(), &host, 1, NULL, why);
}

static int
move_to_folder(const char *dir, json_t **out, struct problem *why)
{
    struct moving m = {0};
    int64_t at;

    if (verbs_need_store(why) || cluster_check_store(why))
        return why->err;
    if (cluster_check_plain(dir, why))
        return why->err;
    verbs_freeze(dir);
    int err = store_list(cluster_store(), "hosts/", look_for_others, &m, &at, why);
    err = err ? err : store_list(cluster_store(), "volumes/", collect_stored, &m, &at, why);
    if (!err && m.why.err) {
        *why = m.why;
        err = why->err;
    }
    err = err ? err : set_plain_hosts(&m, why);
    err = err ? err : save_all(dir, &m, why);
    err = err ? err : remove_from_store(&m, why);
    if (err)
        verbs_freeze(NULL);
    else
        *out = json_pack("{si ss ss}", "volumes", (int)m.count, "location", dir, "state", dir);
    moving_free(&m);
    return err;
}

int
verb_store_move(json_t *args, json_t **out, struct problem *why)
{
    const char *to, *host = NULL, *password_file = NULL;

    if (verbs_get_args(args, why, "{s:s, s?s, s?s}", "to", &to, "host", &host, "password_file",
                       &password_file, NULL))
        return why->err;
    if (*to == '/')
        return move_to_folder(to, out, why);
    if (host)
        return move_to_store(&(struct store_options){.location = to, .password_file = password_file}, host,
                             out, why);
    return problem_set(why, -EINVAL, "a host of a store needs a name");
}
