/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The index's files. An entry is a hard link of an empty base file, so it needs no inode and no block. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/reason.h"
#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/index/index-internal.h"
#include "xlators/features/index/index.h"

const char *const index_dir_names[INDEX_TYPES] = {"xattrop", "dirty", "entry-changes"};

/* ---- base files ------------------------------------------------------------------------------ */

static struct gfid
current_base_uuid(struct index_private *priv)
{
    pthread_mutex_lock(&priv->mutex);
    struct gfid uuid = priv->base_uuid;
    pthread_mutex_unlock(&priv->mutex);
    return uuid;
}

/* Chooses a new base file, because the file system permits no more links to the present one. */
static void
base_renew(struct index_private *priv, const struct gfid *full)
{
    pthread_mutex_lock(&priv->mutex);
    if (gfid_equal(&priv->base_uuid, full))
        gfid_random(&priv->base_uuid);
    pthread_mutex_unlock(&priv->mutex);
}

/* The name of a base file is the directory's name, a hyphen and a uuid. */
static bool
is_base_of(const char *directory, const char *name)
{
    size_t len = strlen(directory);

    return strncmp(name, directory, len) == 0 && name[len] == '-';
}

bool
index_is_base_name(enum index_type type, const char *name)
{
    return is_base_of(index_dir_names[type], name);
}

bool
index_is_current_base(struct xlator *xl, enum index_type type, const char *name)
{
    struct gfid uuid = current_base_uuid(index_private(xl));

    return index_is_base_name(type, name) &&
           strcmp(name + strlen(index_dir_names[type]) + 1, GFID(&uuid)) == 0;
}

/* Returns 1: created, 0: existed already, or -errno. */
static int
link_entry(struct xlator *xl, enum index_type type, const char *path)
{
    struct index_private *priv = index_private(xl);
    char base[INDEX_PATH_MAX];
    int err = 0;

    for (int tries = 0; tries < 4; tries++) {
        struct gfid uuid = current_base_uuid(priv);

        snprintf(base, sizeof base, "%s/%s-%s", index_dir_names[type], index_dir_names[type], GFID(&uuid));
        if (linkat(priv->base_fd, base, priv->base_fd, path, 0) == 0)
            return 1;
        err = errno;
        if (err == EEXIST)
            return 0;
        if (err == EMLINK) {
            base_renew(priv, &uuid);
        } else if (err == ENOENT) { /* the first entry of its kind: there is no base file yet */
            int fd = openat(priv->base_fd, base, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0);

            if (fd < 0 && errno != EEXIST)
                return -errno;
            if (fd >= 0)
                close(fd);
        } else {
            break;
        }
    }
    return -err;
}

/* ---- entries --------------------------------------------------------------------------------- */

int
index_entry_add(struct xlator *xl, enum index_type type, const struct gfid *gfid)
{
    char path[INDEX_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", index_dir_names[type], GFID(gfid));
    int rc = link_entry(xl, type, path);
    if (rc > 0)
        atomic_fetch_add(&index_private(xl)->counts[type], 1);
    return rc < 0 ? rc : 0;
}

int
index_entry_remove(struct xlator *xl, enum index_type type, const struct gfid *gfid)
{
    struct index_private *priv = index_private(xl);
    char path[INDEX_PATH_MAX];

    snprintf(path, sizeof path, "%s/%s", index_dir_names[type], GFID(gfid));
    if (unlinkat(priv->base_fd, path, 0))
        return -errno;
    atomic_fetch_sub(&priv->counts[type], 1);
    return 0;
}

static void
change_path(char path[INDEX_PATH_MAX], const struct gfid *dir, const char *name)
{
    snprintf(path, INDEX_PATH_MAX, "%s/%s%s%s", index_dir_names[INDEX_ENTRY_CHANGES], GFID(dir),
             name ? "/" : "", name ? name : "");
}

static bool
is_entry_name(const char *name)
{
    return *name && strlen(name) <= FOP_NAME_MAX && !strchr(name, '/') && strcmp(name, ".") &&
           strcmp(name, "..");
}

int
index_change_add(struct xlator *xl, const struct gfid *dir, const char *name)
{
    char path[INDEX_PATH_MAX];
    int rc;

    if (!is_entry_name(name))
        return -EINVAL;
    change_path(path, dir, name);
    rc = link_entry(xl, INDEX_ENTRY_CHANGES, path);
    if (rc == -ENOENT) { /* the directory's first change */
        char dir_path[INDEX_PATH_MAX];

        change_path(dir_path, dir, NULL);
        if (mkdirat(index_private(xl)->base_fd, dir_path, 0600) && errno != EEXIST)
            return -errno;
        rc = link_entry(xl, INDEX_ENTRY_CHANGES, path);
    }
    return rc < 0 ? rc : 0;
}

int
index_change_remove(struct xlator *xl, const struct gfid *dir, const char *name)
{
    char path[INDEX_PATH_MAX];

    if (!is_entry_name(name))
        return -EINVAL;
    change_path(path, dir, name);
    return unlinkat(index_private(xl)->base_fd, path, 0) && errno != ENOENT ? -errno : 0;
}

/* ---- whole directories of changes ------------------------------------------------------------ */

struct wipe {
    struct worker_job job;
    struct xlator *xl;
    char path[INDEX_PATH_MAX];
};

/* Removes the directory and its names; it contains no directories. Returns 0 or -errno. */
static int
wipe_directory(struct xlator *xl, const char *path)
{
    int base_fd = index_private(xl)->base_fd;
    int fd = openat(base_fd, path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;

    if (!dir) {
        int err = errno;

        if (fd >= 0)
            close(fd);
        return -err;
    }
    while ((e = readdir(dir))) {
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            (void)unlinkat(fd, e->d_name, 0); /* a name that stays makes the next call fail */
    }
    closedir(dir);
    return unlinkat(base_fd, path, AT_REMOVEDIR) ? -errno : 0;
}

static void
wipe_run(struct worker_job *job)
{
    struct wipe *w = caa_container_of(job, struct wipe, job);
    struct graph *g = w->xl->graph;
    int rc = wipe_directory(w->xl, w->path);

    if (rc)
        log_event(LOG_WARNING, w->xl, "index-wipe-failed", "%s stays behind: %s", w->path, strerror(-rc));
    free(w);
    graph_unpin(g);
}

int
index_changes_purge(struct xlator *xl, const char *dir_name)
{
    int base_fd = index_private(xl)->base_fd;
    const char *parent = index_dir_names[INDEX_ENTRY_CHANGES];
    char path[INDEX_PATH_MAX];
    struct gfid away;

    snprintf(path, sizeof path, "%s/%s", parent, dir_name);
    if (unlinkat(base_fd, path, AT_REMOVEDIR) == 0)
        return 0;
    if (errno != ENOTEMPTY && errno != EEXIST)
        return -errno;
    struct wipe *w = calloc(1, sizeof *w); /* rare: once per healed directory */
    if (!w)
        return -ENOMEM;
    *w = (struct wipe){.job.run = wipe_run, .xl = xl};
    gfid_random(&away);
    snprintf(w->path, sizeof w->path, "%s/%s", parent, GFID(&away));
    if (renameat(base_fd, path, base_fd, w->path)) {
        int err = errno;

        free(w);
        return -err;
    }
    if (graph_pin(xl->graph)) {
        worker_post_any(&w->job);
        return 0;
    }
    int rc = wipe_directory(xl, w->path); /* the brick is stopping: no background work any more */
    free(w);
    return rc;
}

int
index_changes_forget(struct xlator *xl, const struct gfid *gfid)
{
    char handle[INDEX_PATH_MAX];
    struct stat st;

    snprintf(handle, sizeof handle, "../%02x/%02x/%s", gfid->b[0], gfid->b[1], GFID(gfid));
    if (fstatat(index_private(xl)->base_fd, handle, &st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int rc = index_changes_purge(xl, GFID(gfid));
    return rc == -ENOENT ? 0 : rc;
}

/* ---- opening and counting -------------------------------------------------------------------- */

int64_t
index_pending(struct xlator *xl)
{
    return atomic_load(&index_private(xl)->counts[INDEX_XATTROP]);
}

int64_t
index_count(struct xlator *xl, const char *directory)
{
    int fd = openat(index_private(xl)->base_fd, directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    struct dirent *e;
    int64_t n = 0;

    if (!dir) {
        int err = errno;

        if (fd >= 0)
            close(fd);
        return err == ENOENT ? 0 : -err;
    }
    while ((e = readdir(dir)))
        n += e->d_name[0] != '.' && !is_base_of(directory, e->d_name);
    closedir(dir);
    return n;
}

static int
index_make_directory(int at, const char *path, struct reason *why)
{
    if (mkdirat(at, path, 0600) == 0 || errno == EEXIST)
        return 0;
    return reason_set(why, -errno, "%s cannot be made: %s", path, strerror(errno));
}

int
index_base_open(struct xlator *xl, struct reason *why)
{
    const struct index_conf *conf = xlator_conf(xl);
    struct index_private *priv = index_private(xl);
    int rc = index_make_directory(AT_FDCWD, conf->base, why);

    if (rc)
        return rc;
    priv->base_fd = open(conf->base, O_PATH | O_DIRECTORY | O_CLOEXEC);
    if (priv->base_fd < 0)
        return reason_set(why, -errno, "%s cannot be opened as a directory: %s", conf->base, strerror(errno));
    for (int t = 0; t < INDEX_TYPES && !rc; t++) {
        if (t != INDEX_DIRTY || conf->dirty_list)
            rc = index_make_directory(priv->base_fd, index_dir_names[t], why);
    }
    int64_t notes = rc ? 0 : index_count(xl, INDEX_NOTES);

    atomic_store(&priv->name_notes, notes);
    if (notes < 0)
        rc = reason_set(why, (int)notes, "%s/" INDEX_NOTES " cannot be read: %s", conf->base,
                        strerror((int)-notes));
    for (int t = 0; t < INDEX_GFID_TYPES && !rc; t++) {
        int64_t n = index_count(xl, index_dir_names[t]);

        atomic_store(&priv->counts[t], n);
        if (n < 0)
            rc = reason_set(why, (int)n, "%s/%s cannot be read: %s", conf->base, index_dir_names[t],
                            strerror((int)-n));
    }
    return rc;
}
