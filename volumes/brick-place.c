/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/brick-place.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/own-dir.h"

#define VOLUME_ID "trusted.glusterfs.volume-id"

/* `n` is what getxattr(2) has said. 0 with the id; -ENODATA: none; -errno. */
static int
take_id(const struct gfid *found, ssize_t n, struct gfid *id)
{
    if (n < 0)
        return -errno;
    if (n != sizeof *found)
        return -EINVAL;
    *id = *found;
    return 0;
}

static int
read_id(const char *path, struct gfid *id)
{
    struct gfid found;

    return take_id(&found, lgetxattr(path, VOLUME_ID, &found, sizeof found), id);
}

/* The folder, not a symlink in its place; the id of what is open. A descriptor or -errno. */
static int
open_with_id(const char *path, struct gfid *id)
{
    struct gfid found;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 ? -errno : take_id(&found, fgetxattr(fd, VOLUME_ID, &found, sizeof found), id);

    if (err && fd >= 0)
        close(fd);
    return err ? err : fd;
}

static int
no_brick(const char *path, const char *flaw, int err, struct problem *why)
{
    problem_set(why, err, "%s cannot become a brick: %s", path, flaw);
    return err;
}

static bool
is_empty(const char *path, int *err)
{
    DIR *d = opendir(path);
    const struct dirent *e;
    bool is_so = true;

    *err = d ? 0 : -errno;
    while (d && is_so && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 &&
            strcmp(e->d_name, "lost+found") != 0)
            is_so = false;
    }
    if (d && is_so && errno)
        *err = -errno;
    if (d)
        closedir(d);
    return is_so;
}

/* The folder itself and each above it. */
static int
check_ids(const char *path, struct problem *why)
{
    char at[VOLUME_BRICK_PATH_MAX + 1];
    struct gfid id;

    snprintf(at, sizeof at, "%s", path);
    for (char *slash = at + strlen(at); slash > at; slash = strrchr(at, '/')) {
        *slash = '\0';
        int err = read_id(at, &id);

        if (err == -ENODATA || err == -ENOENT || err == -EOPNOTSUPP)
            continue; /* whether the id can be kept is seen when it is written */
        if (err)
            return no_brick(path, strerror(-err), err, why);
        problem_set(why, -EEXIST, "%s cannot become a brick: %s is, or was, a brick of the volume with id %s",
                    path, strcmp(at, path) == 0 ? "it" : at, GFID(&id));
        problem_expected(why, "a folder that no volume uses");
        problem_type(why, "setfattr -x " VOLUME_ID " %s   # if that volume is no more", at);
        return why->err;
    }
    return 0;
}

static int
check_there(const char *path, struct problem *why)
{
    int err;

    if (check_ids(path, why))
        return why->err;
    if (!is_empty(path, &err)) {
        no_brick(path, "it is not empty", -ENOTEMPTY, why);
        problem_expected(why, "an empty folder, or a path where nothing is");
        return why->err;
    }
    return err ? no_brick(path, strerror(-err), err, why) : 0;
}

static int
check_missing(const char *path, struct problem *why)
{
    char parent[VOLUME_BRICK_PATH_MAX + 1];
    struct stat st;

    snprintf(parent, sizeof parent, "%s", path);
    char *slash = strrchr(parent, '/');
    *(slash == parent ? slash + 1 : slash) = '\0';
    if (stat(parent, &st) < 0) {
        int err = -errno;

        problem_set(why, err, "%s cannot become a brick: %s: %s", path, parent, strerror(-err));
        problem_expected(why, "a folder whose parent is there");
        problem_type(why, "mkdir -p %s", parent);
        return err;
    }
    if (!S_ISDIR(st.st_mode))
        return no_brick(path, "its parent is no folder", -ENOTDIR, why);
    return check_ids(path, why);
}

static int
check_file_system(const char *path, const char *place, struct problem *why)
{
    struct statvfs fs;

    if (statvfs(place, &fs) < 0)
        return no_brick(path, strerror(errno), -errno, why);
    if (fs.f_flag & ST_RDONLY)
        return no_brick(path, "its file system is mounted read-only", -EROFS, why);
    return 0;
}

int
brick_place_check(const char *path, bool *is_missing, struct problem *why)
{
    char parent[VOLUME_BRICK_PATH_MAX + 1];
    struct stat st;
    int err = lstat(path, &st) < 0 ? -errno : 0;

    why->err = 0;
    *is_missing = err == -ENOENT;
    if (err == -ENOENT) {
        snprintf(parent, sizeof parent, "%s", path);
        *(strrchr(parent, '/') + 1) = '\0';
        return check_missing(path, why) ? why->err : check_file_system(path, parent, why);
    }
    if (err)
        return no_brick(path, strerror(-err), err, why);
    if (S_ISLNK(st.st_mode))
        return no_brick(path, "it is a symbolic link", -ENOTDIR, why);
    if (!S_ISDIR(st.st_mode))
        return no_brick(path, "it is no folder", -ENOTDIR, why);
    return check_there(path, why) ? why->err : check_file_system(path, path, why);
}

#define HIDDEN ".glusterfs"

/* The id, and the folder of the handles, which nobody else may write. 0 or -errno: nothing is left. */
static int
mark(int fd, const struct volume *v)
{
    int err = fsetxattr(fd, VOLUME_ID, &v->id, sizeof v->id, XATTR_CREATE) < 0 ? -errno : 0;

    if (!err && mkdirat(fd, HIDDEN, 0700) < 0) {
        err = -errno;
        (void)fremovexattr(fd, VOLUME_ID);
    }
    return err;
}

int
brick_place_make(const struct volume *v, const struct volume_brick *b, struct problem *why)
{
    if (b->made && mkdir(b->path, 0755) < 0)
        return no_brick(b->path, strerror(errno), -errno, why);
    /* A user who may write the folder above can put something else in its place meanwhile. */
    int fd = b->made ? own_dir_open(b->path, 0755)
                     : open(b->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd >= 0 ? mark(fd, v) : b->made ? fd : -errno;

    if (fd >= 0)
        close(fd);
    if (!err)
        return 0;
    if (b->made)
        (void)rmdir(b->path);
    no_brick(b->path, err == -EOPNOTSUPP ? "its file system keeps no trusted.* xattrs" : strerror(-err), err,
             why);
    if (err == -EOPNOTSUPP)
        problem_expected(why, "XFS, ext4 or another file system with trusted extended attributes");
    return err;
}

/* 0 with *is_bare: the folder has no id, or has none any more. -errno: its id could not be removed. What has
 * another id, or cannot be reached, stays as it is. */
static int
unmark(const struct volume *v, const char *path, bool *is_bare)
{
    struct gfid id;
    int fd = open_with_id(path, &id), err = 0;

    *is_bare = fd == -ENODATA;
    if (fd < 0)
        return 0;
    if (gfid_equal(&id, &v->id)) {
        (void)unlinkat(fd, HIDDEN, AT_REMOVEDIR); /* one with handles was served, and stays */
        err = fremovexattr(fd, VOLUME_ID) < 0 ? -errno : 0;
        *is_bare = !err;
    }
    close(fd);
    return err;
}

int
brick_place_unmake(const struct volume *v, const struct volume_brick *b, struct problem *why)
{
    bool is_bare;
    int err = unmark(v, b->path, &is_bare);

    if (err)
        return problem_set(why, err, "%s: its volume id could not be removed: %s", b->path, strerror(-err));
    /* A brick folder without an id: the process died between the mkdir and the id. */
    if (is_bare && b->made && rmdir(b->path) < 0 && errno != ENOTEMPTY && errno != ENOENT)
        return problem_set(why, -errno, "%s could not be removed: %s", b->path, strerror(errno));
    return 0;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* By the descriptor: a path would lead elsewhere if the brick was moved meanwhile. Below it nobody else may
 * change anything. */
static int
remove_hidden(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d/" HIDDEN, fd);
    if (faccessat(fd, HIDDEN, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    int err = nftw(path, remove_one, 16, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);

    return err < -1 ? err : err ? -errno : 0;
}

int
brick_place_clear(const struct volume *v, const struct volume_brick *b, struct problem *why)
{
    struct gfid id;
    int fd = open_with_id(b->path, &id), err = 0;

    if (fd < 0)
        return 0;
    if (gfid_equal(&id, &v->id)) {
        (void)fremovexattr(fd, "trusted.gfid"); /* the root's, which the storage gives it */
        err = remove_hidden(fd);
    }
    close(fd);
    return err ? problem_set(why, err, "%s/" HIDDEN " could not be removed: %s", b->path, strerror(-err)) : 0;
}

unsigned
brick_place_shared(const struct volume *v, unsigned brick)
{
    struct stat own, other;
    unsigned n = 0;

    if (stat(v->bricks[brick].path, &own) < 0)
        return 1;
    for (unsigned i = 0; i < v->brick_count; i++)
        n += stat(v->bricks[i].path, &other) == 0 && other.st_dev == own.st_dev;
    return n ? n : 1;
}
