/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/object/obj.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "xlators/storage/posix/object/handle.h"
#include "xlators/storage/posix/object/xattr-sys.h"

/* ---- building -------------------------------------------------------------------------------- */

/* protocol/server refuses longer names. If one should get here, it is truncated and not found. */
static void
copy_rel_name(char *to, const char *name)
{
    size_t len = strnlen(name, NAME_MAX);

    memcpy(to, name, len);
    to[len] = '\0';
}

static void
obj_start(struct posix *p, int dirfd, struct posix_obj *obj)
{
    obj->p = p;
    obj->inode = NULL;
    obj->births = 0;
    obj->fd = -1;
    obj->dirfd = dirfd;
    obj->owns_dirfd = obj->is_through_dir = obj->has_st = false;
}

void
posix_obj_set_inode(struct posix_obj *obj, struct inode *inode)
{
    obj->inode = inode;
    obj->births = posix_inode_births(obj->p->xl, inode);
}

/* Builds the obj of `last` in the directory `dir`. */
static void
obj_through_dir(struct posix *p, const struct gfid *dir, const char *last, struct posix_obj *obj)
{
    obj_start(p, p->brick_fd, obj);
    if (!gfid_is_root(dir)) {
        obj->dirfd = -1;
        obj->is_through_dir = true;
        obj->dir = *dir;
        /* Read before the path is used, so that a rename that ends later is noticed. */
        obj->renames_seen = atomic_load_explicit(&p->dir_renames, memory_order_acquire);
    }
    copy_rel_name(obj->rel, last);
}

void
posix_obj_entry(struct posix *p, struct inode *parent, const char *name, struct posix_obj *obj)
{
    obj_through_dir(p, &parent->gfid, name, obj);
    posix_obj_set_inode(obj, parent);
}

void
posix_obj_gfid(struct posix *p, const struct gfid *gfid, bool is_dir, struct posix_obj *obj)
{
    if (is_dir || gfid_is_root(gfid)) {
        obj_through_dir(p, gfid, ".", obj);
        return;
    }
    obj_start(p, p->handles_fd, obj);
    posix_handle_path(gfid, obj->rel);
}

void
posix_obj_hidden(struct posix *p, const char *dir, const char *name, struct posix_obj *obj)
{
    obj_start(p, p->handles_fd, obj);
    char *at = stpcpy(obj->rel, dir);

    *at++ = '/';
    copy_rel_name(at, name);
}

void
posix_obj_unlinked(struct posix *p, const struct gfid *gfid, struct posix_obj *obj)
{
    posix_obj_hidden(p, "unlink", GFID(gfid), obj);
}

void
posix_obj_inode(struct posix *p, struct inode *inode, struct posix_obj *obj)
{
    if (posix_inode_is_gone(p->xl, inode))
        posix_obj_unlinked(p, &inode->gfid, obj);
    else
        posix_obj_gfid(p, &inode->gfid, S_ISDIR(inode->type), obj);
    posix_obj_set_inode(obj, inode);
}

void
posix_obj_fd(struct posix *p, int fd, struct posix_obj *obj)
{
    obj_start(p, -1, obj);
    obj->fd = fd;
    obj->rel[0] = '\0';
}

void
posix_obj_at(struct posix *p, int dirfd, const char *name, struct posix_obj *obj)
{
    obj_start(p, dirfd, obj);
    copy_rel_name(obj->rel, name);
}

void
posix_obj_parent(const struct posix_obj *entry, struct posix_obj *dir)
{
    posix_obj_child(entry, ".", dir);
}

void
posix_obj_child(const struct posix_obj *dir, const char *name, struct posix_obj *entry)
{
    assert(!dir->is_through_dir);
    posix_obj_at(dir->p, dir->dirfd, name, entry);
    entry->inode = dir->inode;
    entry->births = dir->births;
}

void
posix_obj_done(struct posix_obj *obj)
{
    if (obj->owns_dirfd)
        close(obj->dirfd);
    obj->owns_dirfd = false;
}

/* ---- checking the reached object ------------------------------------------------------------- */

static bool
is_the_dir(const struct posix_obj *obj)
{
    return obj->rel[0] == '.' && obj->rel[1] == '\0';
}

int
posix_obj_reach(struct posix_obj *obj)
{
    if (!obj->is_through_dir)
        return 0;
    int fd = posix_reach_dir(obj, O_PATH | O_DIRECTORY, &obj->st);

    if (fd < 0)
        return fd;
    obj->dirfd = fd;
    obj->owns_dirfd = true;
    obj->is_through_dir = false;
    obj->has_st = is_the_dir(obj);
    return 0;
}

int
posix_obj_verify(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const struct stat *st)
{
    struct gfid found;

    /* A descriptor, and the directory itself, were checked when they were opened. */
    if (obj->fd >= 0 || is_the_dir(obj) || posix_inode_is(xl, inode, st))
        return 0;
    if ((st->st_mode & S_IFMT) != inode->type)
        return -ESTALE;
    int r = posix_obj_get_gfid(obj, &found);
    if (r < 0)
        return r == -ENODATA || r == -EINVAL ? -ESTALE : r;
    if (!gfid_equal(&found, &inode->gfid))
        return -ESTALE;
    if (obj->inode == inode)
        posix_inode_met(xl, inode, st, obj->births);
    return 0;
}

int
posix_obj_check(struct xlator *xl, struct posix_obj *obj, struct inode *inode)
{
    struct stat st;

    if (obj->fd >= 0 || obj->is_through_dir || is_the_dir(obj) || posix_inode_is_met(xl, inode))
        return 0;
    int r = posix_obj_stat(obj, &st);
    return r < 0 ? r : posix_obj_verify(xl, obj, inode, &st);
}

/* Reaches the object for a change, after which an earlier stat is no longer valid. */
static int
reach(struct posix_obj *obj)
{
    int r = posix_obj_reach(obj);

    obj->has_st = false;
    return r;
}

/* ---- system calls ---------------------------------------------------------------------------- */

int
posix_obj_peek(struct posix_obj *obj, struct stat *st)
{
    char path[sizeof POSIX_HIDDEN_DIR + POSIX_HANDLE_SIZE + NAME_MAX + 2];

    if (!obj->is_through_dir)
        return fstatat(obj->dirfd, obj->rel, st, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
    char *at = stpcpy(path, POSIX_HIDDEN_DIR "/");
    posix_handle_path(&obj->dir, at);
    at += POSIX_HANDLE_SIZE - 1;
    *at++ = '/';
    strcpy(at, obj->rel);
    if (fstatat(obj->p->brick_fd, path, st, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    int err = errno;
    unsigned renames = atomic_load_explicit(&obj->p->dir_renames, memory_order_acquire);
    /* A handle may not have followed its directory yet. */
    return err == ENOENT && (renames & 1 || renames != obj->renames_seen) ? -ESTALE : -err;
}

/* Stats a directory that has not been opened. If it is the known directory, opening it is not necessary. */
static bool
stat_known_dir(struct posix_obj *obj, struct stat *st)
{
    return obj->is_through_dir && is_the_dir(obj) && posix_inode_is_met(obj->p->xl, obj->inode) &&
           posix_obj_peek(obj, st) == 0 && posix_inode_is(obj->p->xl, obj->inode, st);
}

int
posix_obj_stat(struct posix_obj *obj, struct stat *st)
{
    if (obj->fd >= 0)
        return fstat(obj->fd, st) < 0 ? -errno : 0;
    if (stat_known_dir(obj, st))
        return 0;
    int r = posix_obj_reach(obj);
    if (r < 0)
        return r;
    if (obj->has_st) {
        *st = obj->st;
        obj->has_st = false;
        return 0;
    }
    r = is_the_dir(obj) ? fstat(obj->dirfd, st) : fstatat(obj->dirfd, obj->rel, st, AT_SYMLINK_NOFOLLOW);
    return r < 0 ? -errno : 0;
}

int
posix_obj_open(struct posix_obj *obj, int flags, mode_t mode)
{
    struct stat st;

    if (obj->is_through_dir && is_the_dir(obj))
        return posix_reach_dir(obj, flags, &st);
    int r = reach(obj);
    if (r < 0)
        return r;
    int fd = openat(obj->dirfd, obj->rel, flags | O_CLOEXEC | O_NOFOLLOW, mode);
    return fd < 0 ? -errno : fd;
}

/* Returns 0 if the opened file is regular and belongs to the inode. */
static int
check_opened_file(struct xlator *xl, int fd, struct inode *inode, unsigned births, struct stat *st)
{
    struct posix_obj by_fd;
    struct gfid found;

    if (fstat(fd, st) < 0)
        return -errno;
    if (!S_ISREG(st->st_mode))
        return -ESTALE;
    if (inode == NULL || posix_inode_is(xl, inode, st))
        return 0;
    posix_obj_fd(posix_of(xl), fd, &by_fd);
    int r = posix_obj_get_gfid(&by_fd, &found);
    if (r < 0 && r != -ENODATA && r != -EINVAL)
        return r;
    if (r < 0 || !gfid_equal(&found, &inode->gfid))
        return -ESTALE;
    posix_inode_met(xl, inode, st, births);
    return 0;
}

/* For a regular file, O_NONBLOCK only means that an open does not wait for a local process to give up its
 * lease (EAGAIN), so it may stay set. A FIFO or a socket without a peer gives ENXIO, a symlink ELOOP. */
int
posix_obj_open_file(struct xlator *xl, struct posix_obj *obj, struct inode *inode, int flags, struct stat *st)
{
    int fd = posix_obj_open(obj, (flags & ~O_TRUNC) | O_NONBLOCK | O_NOCTTY, 0);

    if (fd < 0)
        return fd == -ENXIO || fd == -ELOOP ? -ESTALE : fd;
    int r = check_opened_file(xl, fd, inode, obj->births, st);
    if (r == 0 && flags & O_TRUNC && ftruncate(fd, 0) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* The object in the form of the xattr calls: (dirfd, path), or an fd alone. */
static int
xattr_dirfd(const struct posix_obj *obj)
{
    return obj->fd >= 0 ? obj->fd : obj->dirfd;
}

static const char *
xattr_path(const struct posix_obj *obj)
{
    return obj->fd >= 0 ? NULL : obj->rel;
}

ssize_t
posix_obj_getxattr(struct posix_obj *obj, const char *name, void *value, size_t size)
{
    int r = reach(obj);

    return r < 0 ? r : kx_get(xattr_dirfd(obj), xattr_path(obj), name, value, size, false);
}

ssize_t
posix_obj_listxattr(struct posix_obj *obj, char *list, size_t size)
{
    int r = reach(obj);

    return r < 0 ? r : kx_list(xattr_dirfd(obj), xattr_path(obj), list, size, false);
}

int
posix_obj_setxattr(struct posix_obj *obj, const char *name, const void *value, size_t size, int flags)
{
    int r = reach(obj);

    return r < 0 ? r : kx_set(xattr_dirfd(obj), xattr_path(obj), name, value, size, flags, false);
}

int
posix_obj_removexattr(struct posix_obj *obj, const char *name)
{
    int r = reach(obj);

    return r < 0 ? r : kx_remove(xattr_dirfd(obj), xattr_path(obj), name, false);
}

ssize_t
posix_obj_readlink(struct posix_obj *obj, char *text, size_t size)
{
    int r = reach(obj);
    ssize_t n = r < 0 ? r : readlinkat(obj->dirfd, obj->rel, text, size);

    return r < 0 || n >= 0 ? n : -errno;
}

int
posix_obj_chown(struct posix_obj *obj, uid_t uid, gid_t gid)
{
    int r = reach(obj);

    if (r < 0)
        return r;
    r = obj->fd >= 0 ? fchown(obj->fd, uid, gid)
                     : fchownat(obj->dirfd, obj->rel, uid, gid, AT_SYMLINK_NOFOLLOW);
    return r < 0 ? -errno : 0;
}

#if !defined(SYS_fchmodat2) && !defined(__alpha__)
#define SYS_fchmodat2 452
#endif

/* fchmodat(2) follows a symlink. Linux 6.6 has a call that does not; before it, libc uses a descriptor. */
static int
chmod_no_follow(int dirfd, const char *path, mode_t mode)
{
#ifdef SYS_fchmodat2
    if (syscall(SYS_fchmodat2, dirfd, path, mode, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    if (errno != ENOSYS && errno != EPERM)
        return -errno;
#endif
    return fchmodat(dirfd, path, mode, AT_SYMLINK_NOFOLLOW) < 0 ? -errno : 0;
}

int
posix_obj_chmod(struct posix_obj *obj, mode_t mode)
{
    int r = reach(obj);

    if (r < 0)
        return r;
    if (obj->fd >= 0)
        return fchmod(obj->fd, mode) < 0 ? -errno : 0;
    return chmod_no_follow(obj->dirfd, obj->rel, mode);
}

int
posix_obj_set_times(struct posix_obj *obj, const struct timespec times[2])
{
    int r = reach(obj);

    if (r < 0)
        return r;
    r = obj->fd >= 0 ? futimens(obj->fd, times) : utimensat(obj->dirfd, obj->rel, times, AT_SYMLINK_NOFOLLOW);
    return r < 0 ? -errno : 0;
}

int
posix_obj_mknod(struct posix_obj *obj, mode_t mode, dev_t dev)
{
    int r = reach(obj);

    return r < 0 ? r : mknodat(obj->dirfd, obj->rel, mode, dev) < 0 ? -errno : 0;
}

int
posix_obj_mkdir(struct posix_obj *obj, mode_t mode)
{
    int r = reach(obj);

    return r < 0 ? r : mkdirat(obj->dirfd, obj->rel, mode) < 0 ? -errno : 0;
}

int
posix_obj_symlink(struct posix_obj *obj, const char *text)
{
    int r = reach(obj);

    return r < 0 ? r : symlinkat(text, obj->dirfd, obj->rel) < 0 ? -errno : 0;
}

int
posix_obj_unlink(struct posix_obj *obj, int flags)
{
    int r = reach(obj);

    return r < 0 ? r : unlinkat(obj->dirfd, obj->rel, flags) < 0 ? -errno : 0;
}

static int
reach_both(struct posix_obj *from, struct posix_obj *to)
{
    int r = reach(from);

    return r < 0 ? r : reach(to);
}

int
posix_obj_link(struct posix_obj *from, struct posix_obj *to)
{
    int r = reach_both(from, to);

    return r < 0 ? r : linkat(from->dirfd, from->rel, to->dirfd, to->rel, 0) < 0 ? -errno : 0;
}

int
posix_obj_rename(struct posix_obj *from, struct posix_obj *to)
{
    int r = reach_both(from, to);

    return r < 0 ? r : renameat(from->dirfd, from->rel, to->dirfd, to->rel) < 0 ? -errno : 0;
}

int
posix_obj_get_gfid(struct posix_obj *obj, struct gfid *out)
{
    ssize_t n = posix_obj_getxattr(obj, POSIX_XATTR_GFID, out, sizeof *out);

    if (n == (ssize_t)sizeof *out)
        return 0;
    if (n >= 0 || n == -ERANGE)
        return -EINVAL;
    return (int)n;
}
