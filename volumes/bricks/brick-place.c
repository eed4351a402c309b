/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-place.h"

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
#include "volumes/brick-host.h"

#define VOLUME_ID "trusted.glusterfs.volume-id"

/* Checks the result `n` of getxattr(2). Returns 0 with the id, -ENODATA if there is none, or -errno. */
static int
check_xattr_id(const struct gfid *found, ssize_t n, struct gfid *id)
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

    return check_xattr_id(&found, lgetxattr(path, VOLUME_ID, &found, sizeof found), id);
}

/* Opens the folder, but not a symlink in its place, and reads the volume id of the opened folder. Returns
 * a descriptor or -errno. */
static int
open_with_id(const char *path, struct gfid *id)
{
    struct gfid found;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd < 0 ? -errno : check_xattr_id(&found, fgetxattr(fd, VOLUME_ID, &found, sizeof found), id);

    if (err && fd >= 0)
        close(fd);
    return err ? err : fd;
}

static int
refuse_place(const char *path, const char *flaw, int err, struct problem *why)
{
    problem_set(why, err, "%s cannot become a brick: %s", path, flaw);
    return err;
}

static bool
is_folder_empty(const char *path, int *err)
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

/* Checks that neither the folder nor any folder above it has a volume id. */
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
            continue; /* whether the file system can store the id shows when the id is written */
        if (err)
            return refuse_place(path, strerror(-err), err, why);
        problem_set(why, -EEXIST, "%s cannot become a brick: %s is, or was, a brick of the volume with id %s",
                    path, strcmp(at, path) == 0 ? "it" : at, GFID(&id));
        problem_expected(why, "a folder that no volume uses");
        problem_type(why, "setfattr -x " VOLUME_ID " %s   # if that volume no longer exists", at);
        return why->err;
    }
    return 0;
}

static int
check_existing(const char *path, struct problem *why)
{
    int err;

    if (check_ids(path, why))
        return why->err;
    if (!is_folder_empty(path, &err)) {
        refuse_place(path, "it is not empty", -ENOTEMPTY, why);
        problem_expected(why, "an empty folder, or a path that does not exist");
        return why->err;
    }
    return err ? refuse_place(path, strerror(-err), err, why) : 0;
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
        problem_expected(why, "a folder whose parent exists");
        problem_type(why, "mkdir -p %s", parent);
        return err;
    }
    if (!S_ISDIR(st.st_mode))
        return refuse_place(path, "its parent is no folder", -ENOTDIR, why);
    return check_ids(path, why);
}

static int
check_file_system(const char *path, const char *place, struct problem *why)
{
    struct statvfs fs;

    if (statvfs(place, &fs) < 0)
        return refuse_place(path, strerror(errno), -errno, why);
    if (fs.f_flag & ST_RDONLY)
        return refuse_place(path, "its file system is mounted read-only", -EROFS, why);
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
        return refuse_place(path, strerror(-err), err, why);
    if (S_ISLNK(st.st_mode))
        return refuse_place(path, "it is a symbolic link", -ENOTDIR, why);
    if (!S_ISDIR(st.st_mode))
        return refuse_place(path, "it is no folder; expected an empty folder, or a path that does not exist",
                            -ENOTDIR, why);
    return check_existing(path, why) ? why->err : check_file_system(path, path, why);
}

#define HIDDEN ".glusterfs"

/* Writes the volume id and creates the folder of the handles, which only kilnd's user may write. Returns
 * 0, or -errno with the folder unchanged. */
static int
mark_folder(int fd, const struct volume *v)
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
        return refuse_place(b->path, strerror(errno), -errno, why);
    /* A user with write permission on the parent folder may replace the new folder meanwhile, so its owner
     * and mode are checked. */
    int fd = b->made ? own_dir_open(b->path, 0755)
                     : open(b->path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int err = fd >= 0 ? mark_folder(fd, v) : b->made ? fd : -errno;

    if (fd >= 0)
        close(fd);
    if (!err)
        return 0;
    if (b->made)
        (void)rmdir(b->path);
    refuse_place(b->path, err == -EOPNOTSUPP ? "its file system keeps no trusted.* xattrs" : strerror(-err),
                 err, why);
    if (err == -EOPNOTSUPP)
        problem_expected(why, "XFS, ext4 or another file system with trusted extended attributes");
    return err;
}

/* Removes the id of this volume. Returns 0 with *is_bare true if the folder now has no volume id, or
 * -errno if the id could not be removed. Leaves a folder with another id, and a folder that cannot be
 * reached, unchanged. */
static int
unmark_folder(const struct volume *v, const char *path, bool *is_bare)
{
    struct gfid id;
    int fd = open_with_id(path, &id), err = 0;

    *is_bare = fd == -ENODATA;
    if (fd < 0)
        return 0;
    if (gfid_equal(&id, &v->id)) {
        /* fails for a folder with handles: it was served, and stays */
        (void)unlinkat(fd, HIDDEN, AT_REMOVEDIR);
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
    int err = unmark_folder(v, b->path, &is_bare);

    if (err)
        return problem_set(why, err, "%s: its volume id could not be removed: %s", b->path, strerror(-err));
    /* A folder without an id is one that the process created just before it died. */
    if (is_bare && b->made && rmdir(b->path) < 0 && errno != ENOTEMPTY && errno != ENOENT)
        return problem_set(why, -errno, "%s could not be removed: %s", b->path, strerror(errno));
    return 0;
}

static int
remove_entry(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path) < 0 && errno != ENOENT ? -errno : 0;
}

/* Removes the folder of the handles by descriptor, because a path would lead elsewhere if the brick was
 * moved meanwhile. Only kilnd's user may change anything below it. */
static int
remove_hidden(int fd)
{
    char path[64];

    snprintf(path, sizeof path, "/proc/self/fd/%d/" HIDDEN, fd);
    if (faccessat(fd, HIDDEN, F_OK, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    int err = nftw(path, remove_entry, 16, FTW_DEPTH | FTW_MOUNT | FTW_PHYS);

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
        (void)fremovexattr(fd, "trusted.gfid"); /* the gfid of the root, which the storage layer sets */
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
        n += brick_host_is_here(&v->bricks[i]) && stat(v->bricks[i].path, &other) == 0 &&
             other.st_dev == own.st_dev;
    return n ? n : 1;
}
