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

#define AGE_FILE ".glusterfs/kiln-age"
enum { READ_AGAIN_S = 10, END_S = 10, KEY_BYTES = GFID_TEXT_SIZE + 16 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static json_t *ages;   /* {"VOLUME-ID.BRICK-ID": age} as of the store; NULL: not read yet */
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

static void
grow_brick(const struct volume *v, unsigned brick, json_t *fresh)
{
    const char *path = v->bricks[brick].path;
    struct graph *g = brick_host_is_here(&v->bricks[brick]) ? bricks_find(path) : NULL;
    char key[KEY_BYTES], error[2 * PATH_MAX + 1024];

    age_key(key, v, brick);
    pthread_mutex_lock(&lock);
    json_int_t known = json_integer_value(json_object_get(ages, key));
    pthread_mutex_unlock(&lock);
    if (known)
        json_object_set_new(fresh, key, json_integer(known));
    if (!g)
        return;
    const json_int_t age = read_age(path);
    pthread_mutex_lock(&lock);
    bool is_old = is_set_back(v, brick, age, error, sizeof error);
    pthread_mutex_unlock(&lock);
    if (is_old) {
        end_brick(v, brick, error);
    } else {
        const json_int_t next = (age > known ? age : known) + 1;
        int err = write_age(path, next);

        if (!err)
            json_object_set_new(fresh, key, json_integer(next));
        else
            log_event(LOG_WARNING, NULL, "brick-age", "volume %s: the age of brick %s cannot be written: %s",
                      v->name, path, strerror(-err));
    }
    graph_unpin(g);
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
grow_ages(void)
{
    struct own_volumes own = {0};
    struct problem why;
    char key[300];
    json_t *fresh = json_object();

    pthread_mutex_lock(&lock);
    read_ages();
    bool is_known = ages != NULL;
    pthread_mutex_unlock(&lock);
    if (is_known && fresh)
        volumes_each(copy_own_volume, &own);
    for (size_t i = 0; i < own.count; i++) {
        for (unsigned k = 0; k < own.list[i]->brick_count; k++)
            grow_brick(own.list[i], k, fresh);
        volume_free(own.list[i]);
    }
    free(own.list);
    pthread_mutex_lock(&lock);
    const bool may_write = json_object_size(fresh) && !is_ending;
    pthread_mutex_unlock(&lock);
    char *text = may_write ? json_dumps(fresh, JSON_COMPACT) : NULL;
    const struct store_change c = {key, text, STORE_ANY_REVISION, 0};

    host_key(key);
    if (text && store_change(cluster_store(), &c, 1, NULL, &why) == 0) {
        pthread_mutex_lock(&lock);
        json_decref(ages);
        ages = json_incref(fresh);
        pthread_mutex_unlock(&lock);
    }
    free(text);
    json_decref(fresh);
}

static void *
grow_run(void *arg)
{
    rcu_register_thread();
    grow_ages();
    rcu_unregister_thread();
    pthread_mutex_lock(&lock);
    is_growing = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return arg;
}

void
brick_ages_grow(void)
{
    pthread_mutex_lock(&lock);
    bool may = !is_growing && !is_ending;
    is_growing |= may;
    pthread_mutex_unlock(&lock);
    if (!may || thread_start(grow_run, NULL) == 0)
        return;
    pthread_mutex_lock(&lock);
    is_growing = false;
    pthread_mutex_unlock(&lock);
}

void
brick_ages_end(void)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += END_S;
    pthread_mutex_lock(&lock);
    is_ending = true;
    while (is_growing && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&changed, &lock, &until);
    pthread_mutex_unlock(&lock);
}
