/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/brick-age.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "base/gfid.h"
#include "base/thread.h"
#include "bricks/bricks.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster.h"
#include "volumes/volumes.h"
#include "xlators/debug/io-stats/io-stats.h"

#define AGE_FILE ".glusterfs/kiln-age"
enum { READ_AGAIN_S = 10, END_S = 10, KEY_BYTES = GFID_TEXT_SIZE + 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static json_t *ages;   /* {"VOLUME-ID.BRICK-ID": age} as of the store; NULL: not read yet */
/* The bricks that have got an age from this process: {"VOLUME-ID.BRICK-ID": {"path", "age", "graph",
 * "changes" (count_changes()), "is_settled"}}; NULL: none */
static json_t *grown;
static time_t read_at; /* of the last try, by CLOCK_MONOTONIC */
static bool is_growing, is_ending;

static void
age_key(char key[KEY_BYTES], const struct volume *v, unsigned brick)
{
    snprintf(key, KEY_BYTES, "%s.%u", GFID(&v->id), v->bricks[brick].id);
}

/* ---- the brick's file ------------------------------------------------------------------------ */

/* Returns 0 if the brick has no age. */
static json_int_t
read_age(const char *brick)
{
    char path[PATH_MAX], text[32] = "";
    long long age = 0;

    if (snprintf(path, sizeof path, "%s/" AGE_FILE, brick) >= (int)sizeof path)
        return 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    if (!fgets(text, sizeof text, f) || sscanf(text, "%lld", &age) != 1 || age < 0)
        age = 0;
    fclose(f);
    return age;
}

static int
sync_folder(const char *path)
{
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = fd < 0 ? -errno : 0;

    if (!err && fsync(fd))
        err = -errno;
    if (fd >= 0)
        close(fd);
    return err;
}

/* The file has the old age or the new one after a death at any point. */
static int
write_age(const char *brick, json_int_t age)
{
    char path[PATH_MAX], fresh[PATH_MAX], folder[PATH_MAX], text[32];
    int n = snprintf(text, sizeof text, "%lld\n", (long long)age);

    if (snprintf(path, sizeof path, "%s/" AGE_FILE, brick) >= (int)sizeof path ||
        snprintf(fresh, sizeof fresh, "%s/" AGE_FILE ".new", brick) >= (int)sizeof fresh ||
        snprintf(folder, sizeof folder, "%s/.glusterfs", brick) >= (int)sizeof folder)
        return -ENAMETOOLONG;
    int fd = open(fresh, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

    if (fd < 0)
        return -errno;
    ssize_t done = write(fd, text, (size_t)n);
    int err = done == n ? 0 : done < 0 ? -errno : -ENOSPC;
    if (!err && fsync(fd))
        err = -errno;
    close(fd);
    if (!err && rename(fresh, path))
        err = -errno;
    if (err)
        (void)unlink(fresh);
    return err ? err : sync_folder(folder);
}

/* ---- the store ------------------------------------------------------------------------------- */

static void
host_key(char key[300])
{
    snprintf(key, 300, "ages/%s", brick_host_own());
}

/* Reads the ages once; tries again after READ_AGAIN_S seconds. `lock` is held. */
static void
read_ages(void)
{
    struct problem why;
    struct timespec now;
    char key[300], *text;
    int64_t revision;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (ages || (read_at && now.tv_sec - read_at < READ_AGAIN_S))
        return;
    read_at = now.tv_sec;
    host_key(key);
    if (store_get(cluster_store(), key, &text, &revision, &why))
        return; /* the log has the error of the store already */
    ages = text ? json_loads(text, 0, NULL) : NULL;
    if (!json_is_object(ages)) {
        json_decref(ages);
        ages = json_object();
    }
    free(text);
}

/* `lock` is held. */
static bool
is_set_back(const struct volume *v, unsigned brick, json_int_t age, char *error, size_t error_size)
{
    const char *path = v->bricks[brick].path;
    char key[KEY_BYTES];

    age_key(key, v, brick);
    const json_int_t known = json_integer_value(json_object_get(ages, key));
    if (age == 0 || age >= known)
        return false;
    snprintf(error, error_size,
             "the disk of this brick was set back: its age is %lld, the store knows age %lld, so newer data "
             "is lost here. Replace the brick by an empty folder: kiln volume replace-brick %s %s:%s "
             "[HOST:]FOLDER. Only if no other brick has the newer data: rm %s/" AGE_FILE
             ", kiln volume start %s force",
             (long long)age, (long long)known, v->name, brick_host_own(), path, path, v->name);
    return true;
}

int
brick_age_check(const struct volume *v, unsigned brick, char *error, size_t error_size)
{
    if (!cluster_is_on())
        return 0;
    const json_int_t age = read_age(v->bricks[brick].path);

    pthread_mutex_lock(&lock);
    read_ages();
    bool is_old = ages && is_set_back(v, brick, age, error, error_size);
    pthread_mutex_unlock(&lock);
    return is_old ? -EIO : 0;
}

/* ---- growth ---------------------------------------------------------------------------------- */

static void
brick_is_ended(int err, const char *error, void *arg)
{
    if (err && err != -ENOENT)
        log_event(LOG_ERROR, NULL, "brick-age-detach", "brick %s could not be stopped: %s", (char *)arg,
                  error);
    free(arg);
}

/* Ends a brick that was attached without its store, and was set back. */
static void
end_brick(const struct volume *v, unsigned brick, const char *error)
{
    char *path = strdup(v->bricks[brick].path);

    log_event(LOG_ERROR, NULL, "volume-brick-set-back", "volume %s: brick %s ends: %s", v->name,
              v->bricks[brick].path, error);
    int err = path ? bricks_post(BRICK_DETACH, NULL, v->bricks[brick].path, brick_is_ended, path) : -ENOMEM;
    if (err)
        brick_is_ended(err, strerror(-err), path);
}

/* Calls that may have changed the brick since its attach, or -1: the brick does not count its calls. */
static json_int_t
count_changes(struct graph *g)
{
    struct io_stats_counts counts;
    uint64_t sum = 0;

    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, "debug/io-stats") != 0)
            continue;
        io_stats_counts(&g->layers[i], &counts);
        for (unsigned fop = 0; fop < FOP_COUNT; fop++)
            sum += fop_info[fop].traits & FOP_WRITES ? counts.calls[fop] : 0;
        return (json_int_t)sum;
    }
    return -1;
}

/* Tells whether the brick must get a new age, and notes in *entry how the brick is now. A call is counted
 * when it arrives and may reach the disk later, so the age grows once more after the last call. */
static bool
needs_age(const char *key, struct graph *g, const char *path, json_int_t age, json_t **entry)
{
    const json_int_t graph = (json_int_t)(intptr_t)g, changes = count_changes(g);

    pthread_mutex_lock(&lock);
    const json_t *before = json_object_get(grown, key);
    const bool is_quiet = changes >= 0 && json_integer_value(json_object_get(before, "graph")) == graph &&
                          json_integer_value(json_object_get(before, "changes")) == changes &&
                          json_integer_value(json_object_get(before, "age")) == age;
    const bool is_settled = is_quiet && json_is_true(json_object_get(before, "is_settled"));
    pthread_mutex_unlock(&lock);
    *entry = json_pack("{ss sI sI sb}", "path", path, "graph", graph, "changes", changes, "is_settled",
                       is_quiet);
    return !is_settled;
}

/* Writes the age after `age` and `known` to the brick and notes it in `fresh`. Consumes `entry`. */
static void
write_next_age(const char *key, const char *path, json_int_t age, json_int_t known, json_t *entry,
               json_t *fresh)
{
    const json_int_t next = (age > known ? age : known) + 1;
    int err = entry ? write_age(path, next) : -ENOMEM;

    if (err) {
        log_event(LOG_WARNING, NULL, "brick-age", "the age of brick %s cannot be written: %s", path,
                  strerror(-err));
        json_decref(entry);
        return;
    }
    json_object_set_new(fresh, key, json_integer(next));
    json_object_set_new(entry, "age", json_integer(next));
    pthread_mutex_lock(&lock);
    grown = grown ? grown : json_object();
    json_object_set_new(grown, key, entry);
    pthread_mutex_unlock(&lock);
}

/* Returns true if the brick has a new age. */
static bool
grow_brick(const struct volume *v, unsigned brick, json_t *fresh)
{
    const char *path = v->bricks[brick].path;
    struct graph *g = brick_host_is_here(&v->bricks[brick]) ? bricks_find(path) : NULL;
    char key[KEY_BYTES], error[2 * PATH_MAX + 1024];
    json_t *entry = NULL;

    age_key(key, v, brick);
    pthread_mutex_lock(&lock);
    json_int_t known = json_integer_value(json_object_get(ages, key));
    pthread_mutex_unlock(&lock);
    if (known)
        json_object_set_new(fresh, key, json_integer(known));
    if (!g)
        return false;
    const json_int_t age = read_age(path);
    pthread_mutex_lock(&lock);
    bool is_old = is_set_back(v, brick, age, error, sizeof error), grows = false;
    pthread_mutex_unlock(&lock);
    if (is_old)
        end_brick(v, brick, error);
    else
        grows = needs_age(key, g, path, age, &entry) || age > known;
    if (grows)
        write_next_age(key, path, age, known, entry, fresh);
    else
        json_decref(entry);
    graph_unpin(g);
    return grows;
}

/* A copy of the host's bricks: volumes_each() holds the mutex of the list, and a disk may hang. */
struct own_volumes {
    struct volume **list;
    size_t count;
};

static void
copy_own_volume(const struct volume *v, void *arg)
{
    struct own_volumes *own = arg;
    struct volume **list = brick_host_has_any(v) ? realloc(own->list, (own->count + 1) * sizeof *list) : NULL;

    if (!list)
        return;
    own->list = list;
    if ((list[own->count] = volume_copy(v)))
        own->count++;
}

static void
put_ages(json_t *fresh)
{
    struct problem why;
    char key[300], *text = json_dumps(fresh, JSON_COMPACT);
    const struct store_change c = {key, text, STORE_ANY_REVISION, 0};

    host_key(key);
    if (text && store_change(cluster_store(), &c, 1, NULL, &why) == 0) {
        pthread_mutex_lock(&lock);
        json_decref(ages);
        ages = json_incref(fresh);
        pthread_mutex_unlock(&lock);
    }
    free(text);
}

static void
grow_ages(void)
{
    struct own_volumes own = {0};
    json_t *fresh = json_object();
    bool has_grown = false;

    pthread_mutex_lock(&lock);
    read_ages();
    bool is_known = ages != NULL;
    pthread_mutex_unlock(&lock);
    if (is_known && fresh)
        volumes_each(copy_own_volume, &own);
    for (size_t i = 0; i < own.count; i++) {
        for (unsigned k = 0; k < own.list[i]->brick_count; k++)
            has_grown |= grow_brick(own.list[i], k, fresh);
        volume_free(own.list[i]);
    }
    free(own.list);
    pthread_mutex_lock(&lock);
    const bool may_write = has_grown && !is_ending;
    pthread_mutex_unlock(&lock);
    if (may_write)
        put_ages(fresh);
    json_decref(fresh);
}

/* Runs `run` in a thread, unless the former one still runs. */
static void
begin_growth(void *(*run)(void *arg), void *arg, bool is_last)
{
    pthread_mutex_lock(&lock);
    bool may = !is_growing && (!is_ending || is_last);
    is_growing |= may;
    pthread_mutex_unlock(&lock);
    if (!may || thread_start(run, arg) == 0)
        return;
    pthread_mutex_lock(&lock);
    is_growing = false;
    pthread_mutex_unlock(&lock);
}

static void
note_growth_end(void)
{
    pthread_mutex_lock(&lock);
    is_growing = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *
grow_run(void *arg)
{
    rcu_register_thread();
    grow_ages();
    rcu_unregister_thread();
    note_growth_end();
    return arg;
}

void
brick_ages_grow(void)
{
    begin_growth(grow_run, NULL, false);
}

/* Returns false if the thread hangs in a dead disk. */
static bool
wait_for_growth(void)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    pthread_mutex_lock(&lock);
    is_ending = true;
    while (is_growing && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&changed, &lock, &until);
    bool is_idle = !is_growing;
    pthread_mutex_unlock(&lock);
    return is_idle;
}

void
brick_ages_end(void)
{
    (void)wait_for_growth();
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Gives each brick of this process its last age, unless the brick was replaced or unmounted meanwhile. The
 * thread owns `last`, {KEY: age}, until it has ended. */
static void *
finish_run(void *arg)
{
    json_t *last = arg, *entry;
    const char *key;

    json_object_foreach(grown, key, entry)
    {
        const char *path = json_string_value(json_object_get(entry, "path"));
        const json_int_t age = json_integer_value(json_object_get(entry, "age"));

        if (read_age(path) != age)
            continue;
        int err = write_age(path, age + 1);
        if (!err)
            json_object_set_new(last, key, json_integer(age + 1));
        else
            log_event(LOG_WARNING, NULL, "brick-age-last", "the last age of brick %s cannot be written: %s",
                      path, strerror(-err));
    }
    note_growth_end();
    return arg;
}

void
brick_ages_finish(bool is_store_there)
{
    json_t *last = json_object();

    /* `grown` changes no more, because the only other thread of this file has ended. */
    if (!wait_for_growth())
        return;
    if (last && json_object_size(grown) && is_store_there) {
        begin_growth(finish_run, last, true);
        if (!wait_for_growth())
            return;
        json_object_update_missing(last, ages);
        put_ages(last);
    }
    json_decref(last);
    json_decref(grown);
    json_decref(ages);
    grown = ages = NULL;
}
