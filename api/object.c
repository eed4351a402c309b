/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Objects: a program such as an NFS server names a file by a handle instead of a path. An object is the gfid,
 * and nothing at the bricks or in the graph belongs to the object, so it survives a change of the graph, and
 * any number of objects may stay until the program closes them. A call by an object finds the inode in the
 * graph's table, and asks the bricks for an inode that is not there. The calls are those by path, with a path
 * that begins at the object, or with no path.
 *
 * A gfid that is gone gets ESTALE. The program owns an object: glfs_h_close() frees the object, and
 * glfs_free() frees an entry of glfs_xreaddirplus_r() together with the object inside. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"

enum { HANDLE_BYTES = sizeof(struct gfid) };

static struct glfs_object
object_of(struct glfs *fs, const struct iatt *a)
{
    return (struct glfs_object){.fs = fs, .gfid = a->gfid, .type = a->mode & S_IFMT};
}

/* Returns a new object, and its attributes. */
static struct glfs_object *
new_object(struct glfs *fs, const struct iatt *a, struct stat *st)
{
    struct glfs_object *o = malloc(sizeof *o);

    if (st)
        api_stat_of(fs, a, st);
    if (o)
        *o = object_of(fs, a);
    return o;
}

/* Objects that a program must give. Returns whether they are there. */
static bool
has_objects(const struct glfs_object *a, const struct glfs_object *b)
{
    if (!a || !b)
        errno = EINVAL;
    return a && b;
}

static bool
has_name(const struct glfs_object *o, const char *name)
{
    if (!o || !name || !*name)
        errno = EINVAL;
    return o && name && *name;
}

/* ---- handles --------------------------------------------------------------------------------- */

GFAPI ssize_t
glfs_h_extract_handle(struct glfs_object *o, unsigned char *handle, int size)
{
    if (!has_objects(o, o))
        return -1;
    if (!handle)
        return HANDLE_BYTES;
    if (size < HANDLE_BYTES) {
        errno = ERANGE;
        return -1;
    }
    memcpy(handle, &o->gfid, HANDLE_BYTES);
    return HANDLE_BYTES;
}

GFAPI struct glfs_object *
glfs_h_create_from_handle(struct glfs *fs, unsigned char *handle, int size, struct stat *st)
{
    struct glfs_object o = {.fs = fs};
    struct iatt a;

    if (!fs || !handle || size != HANDLE_BYTES) {
        errno = EINVAL;
        return NULL;
    }
    memcpy(&o.gfid, handle, HANDLE_BYTES);
    if (gfid_is_null(&o.gfid)) {
        errno = EINVAL;
        return NULL;
    }
    return api_stat_path(fs, &o, NULL, 0, &a) < 0 ? NULL : new_object(fs, &a, st);
}

GFAPI struct glfs_object *
glfs_object_copy(struct glfs_object *o)
{
    struct glfs_object *copy = has_objects(o, o) ? malloc(sizeof *copy) : NULL;

    if (copy)
        *copy = *o;
    return copy;
}

GFAPI int
glfs_h_close(struct glfs_object *o)
{
    free(o);
    return 0;
}

/* ---- names ----------------------------------------------------------------------------------- */

GFAPI struct glfs_object *
glfs_h_lookupat(struct glfs *fs, struct glfs_object *dir, const char *path, struct stat *st, int follow)
{
    struct iatt a;

    if (!path) {
        errno = EINVAL;
        return NULL;
    }
    return api_stat_path(fs, dir, path, follow ? PLACE_FOLLOW : 0, &a) < 0 ? NULL : new_object(fs, &a, st);
}

GFAPI struct glfs_object *
glfs_h_lookupat_342(struct glfs *fs, struct glfs_object *dir, const char *path, struct stat *st)
{
    return glfs_h_lookupat(fs, dir, path, st, 0);
}

static struct glfs_object *
make_object(struct glfs *fs, const struct glfs_object *dir, enum fop fop, const char *name,
            const char *target, mode_t mode, dev_t rdev, struct stat *st)
{
    struct iatt a;

    if (!has_name(dir, name) || api_make(fs, dir, fop, name, target, mode, rdev, &a) < 0)
        return NULL;
    return new_object(fs, &a, st);
}

GFAPI struct glfs_object *
glfs_h_mkdir(struct glfs *fs, struct glfs_object *dir, const char *name, mode_t mode, struct stat *st)
{
    return make_object(fs, dir, FOP_mkdir, name, NULL, mode, 0, st);
}

GFAPI struct glfs_object *
glfs_h_mknod(struct glfs *fs, struct glfs_object *dir, const char *name, mode_t mode, dev_t rdev,
             struct stat *st)
{
    return make_object(fs, dir, FOP_mknod, name, NULL, mode, rdev, st);
}

GFAPI struct glfs_object *
glfs_h_symlink(struct glfs *fs, struct glfs_object *dir, const char *name, const char *target,
               struct stat *st)
{
    return make_object(fs, dir, FOP_symlink, name, target, 0, 0, st);
}

GFAPI struct glfs_object *
glfs_h_creat_open(struct glfs *fs, struct glfs_object *dir, const char *name, int flags, mode_t mode,
                  struct stat *st, struct glfs_fd **out_fd)
{
    struct iatt a;

    if (!has_name(dir, name) || !out_fd) {
        errno = EINVAL;
        return NULL;
    }
    /* NFS-Ganesha creates with no flags, then writes, and relies on EEXIST for an existing file */
    *out_fd = api_open(fs, dir, name, flags ? flags : O_RDWR | O_EXCL, mode, true, &a);
    struct glfs_object *o = *out_fd ? new_object(fs, &a, st) : NULL;

    if (*out_fd && !o) {
        (void)glfs_close(*out_fd);
        *out_fd = NULL;
        errno = ENOMEM;
    }
    return o;
}

GFAPI struct glfs_object *
glfs_h_creat(struct glfs *fs, struct glfs_object *dir, const char *name, int flags, mode_t mode,
             struct stat *st)
{
    struct glfs_fd *fd;
    struct glfs_object *o = glfs_h_creat_open(fs, dir, name, flags, mode, st, &fd);

    if (o)
        (void)glfs_close(fd);
    return o;
}

GFAPI int
glfs_h_unlink(struct glfs *fs, struct glfs_object *dir, const char *name)
{
    return has_name(dir, name) ? api_remove_any(fs, dir, name) : -1;
}

GFAPI int
glfs_h_link(struct glfs *fs, struct glfs_object *o, struct glfs_object *dir, const char *name)
{
    if (!has_objects(o, dir) || !has_name(dir, name))
        return -1;
    return api_two_names(fs, FOP_link, o, NULL, dir, name);
}

GFAPI int
glfs_h_rename(struct glfs *fs, struct glfs_object *dir, const char *name, struct glfs_object *dir2,
              const char *name2)
{
    if (!has_name(dir, name) || !has_name(dir2, name2))
        return -1;
    return api_two_names(fs, FOP_rename, dir, name, dir2, name2);
}

GFAPI int
glfs_h_readlink(struct glfs *fs, struct glfs_object *o, char *bytes, size_t size)
{
    return has_objects(o, o) ? api_readlink(fs, o, NULL, bytes, size) : -1;
}

/* ---- attributes ------------------------------------------------------------------------------ */

GFAPI int
glfs_h_stat(struct glfs *fs, struct glfs_object *o, struct stat *st)
{
    struct iatt a;

    if (!has_objects(o, o) || !st) {
        errno = EINVAL;
        return -1;
    }
    if (api_stat_path(fs, o, NULL, 0, &a) < 0)
        return -1;
    api_stat_of(fs, &a, st);
    return 0;
}

GFAPI int
glfs_h_getattrs(struct glfs *fs, struct glfs_object *o, struct stat *st)
{
    return glfs_h_stat(fs, o, st);
}

/* The bits of `valid` for glfs_h_setattrs(). */
enum {
    H_SET_MODE = 0x1,
    H_SET_UID = 0x2,
    H_SET_GID = 0x4,
    H_SET_SIZE = 0x8,
    H_SET_ATIME = 0x10,
    H_SET_MTIME = 0x20
};

/* The size goes first, so that a caller without the right to change it changes nothing. */
GFAPI int
glfs_h_setattrs(struct glfs *fs, struct glfs_object *o, struct stat *st, int valid)
{
    static const int32_t bits[][2] = {{H_SET_MODE, SETATTR_MODE},
                                      {H_SET_UID, SETATTR_UID},
                                      {H_SET_GID, SETATTR_GID},
                                      {H_SET_ATIME, SETATTR_ATIME},
                                      {H_SET_MTIME, SETATTR_MTIME}};
    int32_t set = 0;

    if (!has_objects(o, o) || !st) {
        errno = EINVAL;
        return -1;
    }
    if (valid & H_SET_SIZE && api_truncate(fs, o, NULL, st->st_size) < 0)
        return -1;
    for (size_t i = 0; i < sizeof bits / sizeof bits[0]; i++)
        set |= valid & bits[i][0] ? bits[i][1] : 0;
    const struct iatt a = {.mode = st->st_mode & 07777,
                           .uid = st->st_uid,
                           .gid = st->st_gid,
                           .atime = st->st_atim.tv_sec,
                           .atime_nsec = (uint32_t)st->st_atim.tv_nsec,
                           .mtime = st->st_mtim.tv_sec,
                           .mtime_nsec = (uint32_t)st->st_mtim.tv_nsec};

    return set ? api_set(fs, o, NULL, PLACE_KNOWN, set, &a) : 0;
}

GFAPI int
glfs_h_truncate(struct glfs *fs, struct glfs_object *o, off_t size)
{
    return has_objects(o, o) ? api_truncate(fs, o, NULL, size) : -1;
}

GFAPI int
glfs_h_access(struct glfs *fs, struct glfs_object *o, int mode)
{
    return has_objects(o, o) ? api_access(fs, o, NULL, mode) : -1;
}

GFAPI int
glfs_h_statfs(struct glfs *fs, struct glfs_object *o, struct statvfs *out)
{
    return has_objects(o, o) ? api_statvfs(fs, o, NULL, out) : -1;
}

/* ---- extended attributes --------------------------------------------------------------------- */

/* Without a name, or with an empty one, the names are listed. */
GFAPI int
glfs_h_getxattrs(struct glfs *fs, struct glfs_object *o, const char *name, void *value, size_t size)
{
    const char *wanted = name && *name ? name : NULL;

    return has_objects(o, o) ? (int)api_getxattr(fs, o, NULL, PLACE_KNOWN, wanted, value, size) : -1;
}

GFAPI int
glfs_h_setxattrs(struct glfs *fs, struct glfs_object *o, const char *name, const void *value, size_t size,
                 int flags)
{
    return has_objects(o, o) ? api_setxattr(fs, o, NULL, PLACE_KNOWN, name, value, size, flags) : -1;
}

GFAPI int
glfs_h_removexattrs(struct glfs *fs, struct glfs_object *o, const char *name)
{
    return has_objects(o, o) ? api_removexattr(fs, o, NULL, PLACE_KNOWN, name) : -1;
}

/* ---- files ----------------------------------------------------------------------------------- */

GFAPI struct glfs_fd *
glfs_h_open(struct glfs *fs, struct glfs_object *o, int flags)
{
    if (!has_objects(o, o) || flags & O_CREAT) {
        errno = EINVAL;
        return NULL;
    }
    return api_open(fs, o, NULL, flags, 0, false, NULL);
}

GFAPI struct glfs_fd *
glfs_h_opendir(struct glfs *fs, struct glfs_object *o)
{
    return has_objects(o, o) ? api_opendir(fs, o, NULL) : NULL;
}

/* Data without an open file. The file is opened for the time of the call. */
GFAPI ssize_t
glfs_h_anonymous_read(struct glfs *fs, struct glfs_object *o, const void *bytes, size_t size, off_t offset)
{
    struct glfs_fd *fd = glfs_h_open(fs, o, O_RDONLY);
    ssize_t ret = fd ? glfs_pread(fd, (void *)(uintptr_t)bytes, size, offset, 0, NULL) : -1;
    int err = errno;

    if (fd)
        (void)glfs_close(fd);
    errno = err;
    return ret;
}

GFAPI ssize_t
glfs_h_anonymous_write(struct glfs *fs, struct glfs_object *o, const void *bytes, size_t size, off_t offset)
{
    struct glfs_fd *fd = glfs_h_open(fs, o, O_WRONLY);
    ssize_t ret = fd ? glfs_pwrite(fd, bytes, size, offset, 0, NULL, NULL) : -1;
    int err = errno;

    if (fd && glfs_close(fd) < 0 && ret >= 0)
        return -1; /* of a write that was answered early */
    errno = err;
    return ret;
}

/* ---- directories ----------------------------------------------------------------------------- */

/* The object lies inside of the entry, so glfs_free() frees both. */
struct glfs_xreaddirp_stat {
    struct stat st;
    struct glfs_object object;
    uint32_t flags; /* XREADDIRP_* that hold */
};

enum { XREADDIRP_STAT = 0x1, XREADDIRP_HANDLE = 0x2 };

GFAPI int
glfs_xreaddirplus_r(struct glfs_fd *fd, uint32_t flags, struct glfs_xreaddirp_stat **out,
                    struct dirent *entry, struct dirent **entry_out)
{
    struct glfs_xreaddirp_stat *x;
    struct iatt a;

    if (!fd || !out || !entry_out) {
        errno = fd ? EINVAL : EBADF;
        return -1;
    }
    *out = NULL;
    if (!(x = calloc(1, sizeof *x)))
        return -1;
    int ret = api_read_entry(fd, &a, flags & XREADDIRP_HANDLE, entry, entry_out);

    if (ret < 0 || !*entry_out) { /* an error, or the end */
        int err = errno;

        free(x);
        errno = err;
        return ret;
    }
    bool is_known = a.mode && !gfid_is_null(&a.gfid);

    api_stat_of(fd->fs, &a, &x->st);
    x->flags = is_known ? flags & (XREADDIRP_STAT | XREADDIRP_HANDLE) : 0;
    x->object = object_of(fd->fs, &a);
    *out = x;
    return (int)x->flags;
}

GFAPI struct stat *
glfs_xreaddirplus_get_stat(struct glfs_xreaddirp_stat *x)
{
    if (x && x->flags & XREADDIRP_STAT)
        return &x->st;
    errno = EINVAL;
    return NULL;
}

GFAPI struct glfs_object *
glfs_xreaddirplus_get_object(struct glfs_xreaddirp_stat *x)
{
    if (x && x->flags & XREADDIRP_HANDLE)
        return &x->object;
    errno = EINVAL;
    return NULL;
}

/* ---- versions -------------------------------------------------------------------------------- */

OLD_VERSION(glfs_h_lookupat_342, glfs_h_lookupat, "3.4.2");
