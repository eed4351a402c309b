/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "xlators/storage/posix/xattr-sys.h"

/* -- texts ------------------------------------------------------------------------------------------------------ */

char *
posix_handle_path(const struct gfid *gfid, char path[POSIX_HANDLE_SIZE])
{
    gfid_text(gfid, path + 6);
    memcpy(path, (char[]){path[6], path[7], '/', path[8], path[9], '/'}, 6);
    return path;
}

/* "../../pp/qq/PARENT/name": offsets of the fixed parts (brick 2.2). */
enum { TEXT_HANDLE_AT = 6, TEXT_GFID_AT = 12, TEXT_NAME_AT = 49 };

size_t
posix_handle_text(const struct gfid *parent, const char *name, char text[POSIX_HANDLE_TEXT_MAX])
{
    size_t len = strnlen(name, NAME_MAX);

    memcpy(text, "../../", 6);
    posix_handle_path(parent, text + TEXT_HANDLE_AT);
    text[TEXT_NAME_AT - 1] = '/';
    memcpy(text + TEXT_NAME_AT, name, len);
    text[TEXT_NAME_AT + len] = '\0';
    return TEXT_NAME_AT + len;
}

bool
posix_handle_text_parse(const char *text, size_t len, struct gfid *parent, const char **name)
{
    char want[POSIX_HANDLE_SIZE];

    if (len <= TEXT_NAME_AT || len >= POSIX_HANDLE_TEXT_MAX || memcmp(text, "../../", 6) != 0)
        return false;
    if (text[TEXT_NAME_AT - 1] != '/' || gfid_parse(text + TEXT_GFID_AT, GFID_TEXT_SIZE - 1, parent) < 0)
        return false;
    /* The two levels must be those of the gfid, and what follows one name. */
    posix_handle_path(parent, want);
    if (memcmp(text + TEXT_HANDLE_AT, want, 6) != 0 || strchr(text + TEXT_NAME_AT, '/'))
        return false;
    *name = text + TEXT_NAME_AT;
    return strlen(*name) <= NAME_MAX;
}

/* The text of a directory's handle, NUL-terminated. Its length; -ENOENT, -EINVAL (not a symlink), -errno. */
static ssize_t
handle_read_text(struct posix *p, const struct gfid *gfid, char text[POSIX_HANDLE_TEXT_MAX])
{
    ssize_t n = readlinkat(p->handles_fd, HANDLE(gfid), text, POSIX_HANDLE_TEXT_MAX - 1);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return n;
}

/* -- building objects ---------------------------------------------------------------------------------------------- */

/* Longer names were refused at the border; should one come here, it is cut and not found. */
static void
copy_name(char *to, const char *name)
{
    size_t len = strnlen(name, NAME_MAX);

    memcpy(to, name, len);
    to[len] = '\0';
}

/* "BRICK/" or "BRICK/.glusterfs/" into full; where the relative part begins. */
static char *
obj_start(struct posix *p, struct posix_obj *obj, bool is_handle)
{
    char *at;

    obj->p = p;
    obj->fd = -1;
    obj->owns_dirfd = obj->is_pinned = false;
    obj->is_through_dir = obj->is_renamer = false;
    /* Before the path is used: a rename that ends later than this is noticed. */
    obj->renames_seen = atomic_load_explicit(&p->dir_renames, memory_order_acquire);
    memcpy(obj->full, p->brick, p->brick_len);
    at = obj->full + p->brick_len;
    *at++ = '/';
    if (is_handle) {
        memcpy(at, POSIX_HIDDEN_DIR "/", sizeof POSIX_HIDDEN_DIR);
        at += sizeof POSIX_HIDDEN_DIR;
    }
    obj->dirfd = is_handle ? p->handles_fd : p->brick_fd;
    obj->rel = at;
    return at;
}

/* `last` in the directory `dir`. The caller has made sure that it is at most NAME_MAX bytes. */
static void
obj_through_dir(struct posix *p, const struct gfid *dir, const char *last, struct posix_obj *obj)
{
    bool is_root = gfid_is_root(dir);
    char *at = obj_start(p, obj, !is_root);

    if (!is_root) {
        posix_handle_path(dir, at);
        at += POSIX_HANDLE_SIZE - 1;
        *at++ = '/';
        obj->is_through_dir = true;
        obj->dir = *dir;
    }
    obj->last = (uint16_t)(at - obj->full);
    copy_name(at, last);
}

void
posix_obj_entry(struct posix *p, const struct gfid *parent, const char *name, struct posix_obj *obj)
{
    obj_through_dir(p, parent, name, obj);
}

void
posix_obj_gfid(struct posix *p, const struct gfid *gfid, bool is_dir, struct posix_obj *obj)
{
    if (is_dir || gfid_is_root(gfid)) {
        obj_through_dir(p, gfid, ".", obj);
        return;
    }
    posix_handle_path(gfid, obj_start(p, obj, true));
    obj->last = (uint16_t)(obj->rel + 6 - obj->full);
}

void
posix_obj_hidden(struct posix *p, const char *dir, const char *name, struct posix_obj *obj)
{
    char *at = stpcpy(obj_start(p, obj, true), dir);

    *at++ = '/';
    copy_name(at, name);
    obj->last = (uint16_t)(at - obj->full);
}

void
posix_obj_unlinked(struct posix *p, const struct gfid *gfid, struct posix_obj *obj)
{
    posix_obj_hidden(p, "unlink", GFID(gfid), obj);
}

void
posix_obj_inode(struct posix *p, struct inode *inode, struct posix_obj *obj)
{
    const struct posix_inode *ctx = inode_ctx(inode, p->xl);

    if (ctx && atomic_load_explicit(&ctx->is_unlinked, memory_order_acquire))
        posix_obj_unlinked(p, &inode->gfid, obj);
    else
        posix_obj_gfid(p, &inode->gfid, S_ISDIR(inode->type), obj);
}

void
posix_obj_fd(struct posix *p, int fd, struct posix_obj *obj)
{
    obj->p = p;
    obj->fd = fd;
    obj->dirfd = -1;
    obj->rel = obj->full;
    obj->owns_dirfd = obj->is_pinned = obj->is_through_dir = obj->is_renamer = false;
    obj->renames_seen = 0;
    obj->last = 0;
    obj->full[0] = '\0';
}

/* `last` in the directory that `from` is or is in. */
static void
obj_sibling(const struct posix_obj *from, const char *last, struct posix_obj *to)
{
    to->p = from->p;
    to->fd = -1;
    to->dirfd = from->dirfd;
    to->owns_dirfd = false;
    to->is_through_dir = from->is_through_dir;
    to->is_renamer = from->is_renamer;
    to->is_pinned = from->is_pinned;
    to->renames_seen = from->renames_seen;
    to->dir = from->dir;
    to->last = from->last;
    memcpy(to->full, from->full, from->last);
    copy_name(to->full + to->last, last);
    to->rel = to->full + (from->rel - from->full);
}

void
posix_obj_parent(const struct posix_obj *entry, struct posix_obj *dir)
{
    obj_sibling(entry, ".", dir);
}

void
posix_obj_child(const struct posix_obj *dir, const char *name, struct posix_obj *entry)
{
    obj_sibling(dir, name, entry);
}

void
posix_obj_done(struct posix_obj *obj)
{
    if (obj->owns_dirfd)
        close(obj->dirfd);
    obj->owns_dirfd = false;
}

/* -- deep directories ------------------------------------------------------------------------------------------------ */

/* The names from the root down to a directory, gathered from the bottom up; bounded by what a hostile loop of handles
 * could make of it. */
#define DEPTH_MAX 8192

struct name_stack {
    char *bytes; /* names with their NULs, the deepest first */
    size_t used, capacity;
    unsigned count;
};

static int
name_stack_push(struct name_stack *s, const char *name)
{
    size_t len = strlen(name) + 1;

    if (s->count >= DEPTH_MAX)
        return -ELOOP;
    if (s->used + len > s->capacity) {
        size_t capacity = s->capacity ? s->capacity * 2 : 16384;
        char *bytes = realloc(s->bytes, capacity);

        if (!bytes)
            return -ENOMEM;
        s->bytes = bytes;
        s->capacity = capacity;
    }
    memcpy(s->bytes + s->used, name, len);
    s->used += len;
    s->count++;
    return 0;
}

/* The last name pushed, taken off. */
static const char *
name_stack_pop(struct name_stack *s)
{
    size_t at = s->used - 1;

    while (at > 0 && s->bytes[at - 1] != '\0')
        at--;
    s->used = at;
    s->count--;
    return s->bytes + at;
}

static int
name_stack_fill(struct posix *p, const struct gfid *dir, struct name_stack *s)
{
    struct gfid at = *dir, parent;
    char text[POSIX_HANDLE_TEXT_MAX];

    while (!gfid_is_root(&at)) {
        const char *name;
        ssize_t len = handle_read_text(p, &at, text);

        if (len < 0)
            return (int)len;
        if (!posix_handle_text_parse(text, (size_t)len, &parent, &name))
            return -ENOTDIR;
        int r = name_stack_push(s, name);
        if (r < 0)
            return r;
        at = parent;
    }
    return 0;
}

/* Walks down from BRICK in steps of as many names as fit a path. An O_PATH descriptor, or -errno. */
static int
walk_down(struct posix *p, struct name_stack *s)
{
    int fd = openat(p->brick_fd, ".", O_PATH | O_DIRECTORY | O_CLOEXEC);
    char path[PATH_MAX];

    if (fd < 0)
        return -errno;
    while (s->count > 0) {
        size_t len = 0;

        while (s->count > 0 && len + NAME_MAX + 2 < sizeof path) {
            len = (size_t)(stpcpy(path + len, name_stack_pop(s)) - path);
            path[len++] = '/';
        }
        path[len - 1] = '\0';
        int next = openat(fd, path, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
        int err = errno;
        close(fd);
        if (next < 0)
            return -err;
        fd = next;
    }
    return fd;
}

static int
open_deep(struct posix *p, const struct gfid *dir)
{
    struct name_stack s = {0};
    int fd = name_stack_fill(p, dir, &s);

    if (fd == 0)
        fd = walk_down(p, &s);
    free(s.bytes);
    return fd;
}

/* Opens the directory that the path goes through, unless that was done, and addresses the object from there. 0 or -errno. */
static int
obj_deepen(struct posix_obj *obj)
{
    char last[NAME_MAX + 1];
    int fd = obj->is_pinned ? obj->dirfd : open_deep(obj->p, &obj->dir);

    if (fd < 0)
        return fd;
    memcpy(last, obj->full + obj->last, strlen(obj->full + obj->last) + 1);
    obj->last = (uint16_t)sprintf(obj->full, "/proc/self/fd/%d/", fd);
    memcpy(obj->full + obj->last, last, strlen(last) + 1);
    obj->dirfd = fd;
    obj->owns_dirfd |= !obj->is_pinned;
    obj->is_pinned = true;
    obj->is_through_dir = false;
    obj->rel = obj->full + obj->last;
    return 0;
}

/* A system call on the obj failed with `err`: true if it should be tried again. *err may become a better reason. */
static bool
obj_retry(struct posix_obj *obj, int *err)
{
    struct posix *p = obj->p;

    if (!obj->is_through_dir)
        return false;
    if (*err == ELOOP) {
        int r = obj_deepen(obj);

        /* ENOENT while walking: a rename; sorted out below. */
        if (r == 0)
            return true;
        *err = -r;
    }
    if ((*err != ENOENT && *err != ENOTDIR) || obj->is_renamer)
        return false;
    if (!(obj->renames_seen & 1) &&
        atomic_load_explicit(&p->dir_renames, memory_order_acquire) == obj->renames_seen)
        return false;
    pthread_mutex_lock(&p->dir_rename_lock);
    obj->renames_seen = atomic_load_explicit(&p->dir_renames, memory_order_acquire);
    pthread_mutex_unlock(&p->dir_rename_lock);
    return true;
}

int
posix_obj_pin_dir(struct posix_obj *dir)
{
    if (!dir->is_through_dir)
        return 0; /* the root, or deep and open already */
    int fd = posix_obj_open(dir, O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
        return fd == -EMFILE || fd == -ENFILE ? 0 : fd;
    if (dir->is_pinned) { /* opening it has found that it is deep, and left it open */
        close(fd);
        return 0;
    }
    dir->dirfd = fd;
    dir->owns_dirfd = dir->is_pinned = true;
    dir->rel = dir->full + dir->last;
    return 0;
}

/* -- system calls ------------------------------------------------------------------------------------------------------ */

int
posix_obj_stat(struct posix_obj *obj, struct stat *st)
{
    int err;

    if (obj->fd >= 0)
        return fstat(obj->fd, st) < 0 ? -errno : 0;
    do {
        bool is_dirfd = obj->rel[0] == '.' && obj->rel[1] == '\0';

        if ((is_dirfd ? fstat(obj->dirfd, st) : fstatat(obj->dirfd, obj->rel, st, AT_SYMLINK_NOFOLLOW)) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_open(struct posix_obj *obj, int flags, mode_t mode)
{
    int err;

    do {
        int fd = openat(obj->dirfd, obj->rel, flags | O_CLOEXEC | O_NOFOLLOW, mode);

        if (fd >= 0)
            return fd;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

/* The object as the xattr calls want it: (dirfd, path), or an fd alone. */
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
    int err;

    do {
        ssize_t n = kx_get(xattr_dirfd(obj), xattr_path(obj), name, value, size, false);

        if (n >= 0)
            return n;
        err = (int)-n;
    } while (obj_retry(obj, &err));
    return -err;
}

ssize_t
posix_obj_listxattr(struct posix_obj *obj, char *list, size_t size)
{
    int err;

    do {
        ssize_t n = kx_list(xattr_dirfd(obj), xattr_path(obj), list, size, false);

        if (n >= 0)
            return n;
        err = (int)-n;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_setxattr(struct posix_obj *obj, const char *name, const void *value, size_t size, int flags)
{
    int err;

    do {
        err = -kx_set(xattr_dirfd(obj), xattr_path(obj), name, value, size, flags, false);
    } while (err != 0 && obj_retry(obj, &err));
    return -err;
}

int
posix_obj_removexattr(struct posix_obj *obj, const char *name)
{
    int err;

    do {
        err = -kx_remove(xattr_dirfd(obj), xattr_path(obj), name, false);
    } while (err != 0 && obj_retry(obj, &err));
    return -err;
}

ssize_t
posix_obj_readlink(struct posix_obj *obj, char *text, size_t size)
{
    int err;

    do {
        ssize_t n = readlinkat(obj->dirfd, obj->rel, text, size);

        if (n >= 0)
            return n;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_chown(struct posix_obj *obj, uid_t uid, gid_t gid)
{
    int err;

    do {
        if ((obj->fd >= 0 ? fchown(obj->fd, uid, gid)
                          : fchownat(obj->dirfd, obj->rel, uid, gid, AT_SYMLINK_NOFOLLOW)) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_chmod(struct posix_obj *obj, mode_t mode)
{
    int err;

    do {
        if ((obj->fd >= 0 ? fchmod(obj->fd, mode) : fchmodat(obj->dirfd, obj->rel, mode, 0)) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_set_times(struct posix_obj *obj, const struct timespec times[2])
{
    int err;

    do {
        if ((obj->fd >= 0 ? futimens(obj->fd, times)
                          : utimensat(obj->dirfd, obj->rel, times, AT_SYMLINK_NOFOLLOW)) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_mknod(struct posix_obj *obj, mode_t mode, dev_t dev)
{
    int err;

    do {
        if (mknodat(obj->dirfd, obj->rel, mode, dev) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_mkdir(struct posix_obj *obj, mode_t mode)
{
    int err;

    do {
        if (mkdirat(obj->dirfd, obj->rel, mode) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_symlink(struct posix_obj *obj, const char *text)
{
    int err;

    do {
        if (symlinkat(text, obj->dirfd, obj->rel) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_unlink(struct posix_obj *obj, int flags)
{
    int err;

    do {
        if (unlinkat(obj->dirfd, obj->rel, flags) == 0)
            return 0;
        err = errno;
    } while (obj_retry(obj, &err));
    return -err;
}

int
posix_obj_link(struct posix_obj *from, struct posix_obj *to)
{
    int err;

    do {
        if (linkat(from->dirfd, from->rel, to->dirfd, to->rel, 0) == 0)
            return 0;
        err = errno;
    } while (obj_retry(from, &err) || obj_retry(to, &err));
    return -err;
}

int
posix_obj_rename(struct posix_obj *from, struct posix_obj *to)
{
    int err;

    do {
        if (renameat(from->dirfd, from->rel, to->dirfd, to->rel) == 0)
            return 0;
        err = errno;
    } while (obj_retry(from, &err) || obj_retry(to, &err));
    return -err;
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

/* -- what is behind a gfid -------------------------------------------------------------------------------------------- */

/* The handle is a symlink: a directory's, or the hard link of a symlink, whose text a client chose? Only a
 * directory's leads to a directory that carries this very gfid. */
static int
find_symlink(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st, bool *is_dangling)
{
    struct gfid found;
    struct stat link = *st;
    int r;

    if (link.st_nlink > 1)
        return 0;
    posix_obj_done(obj);
    posix_obj_gfid(p, gfid, true, obj);
    r = posix_obj_stat(obj, st);
    if (r == 0 && S_ISDIR(st->st_mode) && posix_obj_get_gfid(obj, &found) == 0 && gfid_equal(&found, gfid))
        return 0;
    posix_obj_done(obj);
    posix_obj_gfid(p, gfid, false, obj);
    *st = link;
    if (posix_obj_get_gfid(obj, &found) == 0 && gfid_equal(&found, gfid))
        return 0;
    *is_dangling = true;
    return r < 0 && r != -ENOTDIR ? r : -ENOENT;
}

int
posix_obj_find(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st, bool *is_dangling)
{
    *is_dangling = false;
    posix_obj_gfid(p, gfid, false, obj);
    int r = posix_obj_stat(obj, st);

    if (r < 0 || !S_ISLNK(st->st_mode))
        return r;
    return find_symlink(p, gfid, obj, st, is_dangling);
}

/* -- making and removing handles -------------------------------------------------------------------------------------- */

/* The directory .glusterfs/xx/yy of a handle; the first object in it makes it. */
static int
handle_make_parents(struct posix *p, const char *path)
{
    char dir[6];

    memcpy(dir, path, 5);
    dir[5] = '\0';
    if (mkdirat(p->handles_fd, dir, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return -errno;
    dir[2] = '\0';
    if (mkdirat(p->handles_fd, dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    dir[2] = '/';
    return mkdirat(p->handles_fd, dir, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* The handle exists: is it this object? */
static int
handle_is_same(struct posix_obj *entry, const char *path)
{
    struct stat handle, st;

    if (fstatat(entry->p->handles_fd, path, &handle, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    int r = posix_obj_stat(entry, &st);
    if (r < 0)
        return r;
    return handle.st_ino == st.st_ino && handle.st_dev == st.st_dev ? 0 : -EEXIST;
}

int
posix_handle_link(struct posix_obj *entry, const struct gfid *gfid)
{
    struct posix *p = entry->p;
    char *path = HANDLE(gfid);
    bool have_parents = false;

    while (linkat(entry->dirfd, entry->rel, p->handles_fd, path, 0) < 0) {
        int err = errno;

        if (err == EEXIST)
            return handle_is_same(entry, path);
        /* ENOENT may mean the handle's directory, or the way to the entry, or that the entry has gone. */
        if (have_parents && obj_retry(entry, &err))
            continue;
        if (err != ENOENT || have_parents)
            return -err;
        int r = handle_make_parents(p, path);
        if (r < 0)
            return r;
        have_parents = true;
    }
    return 0;
}

int
posix_handle_set_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    char text[POSIX_HANDLE_TEXT_MAX], fresh[GFID_TEXT_SIZE + 8];
    char *path = HANDLE(gfid);
    struct gfid unique;

    posix_handle_text(parent, name, text);
    if (symlinkat(text, p->handles_fd, path) == 0)
        return 0;
    if (errno == ENOENT) {
        int r = handle_make_parents(p, path);
        if (r < 0)
            return r;
        if (symlinkat(text, p->handles_fd, path) == 0)
            return 0;
    }
    if (errno != EEXIST)
        return -errno;
    /* There is one: replaced in one step, so that the directory can be reached by its gfid at any moment. The temporary name lies in
     * .glusterfs/unlink, which is emptied at each start. */
    gfid_random(&unique);
    memcpy(fresh, "unlink/", 7);
    gfid_text(&unique, fresh + 7);
    if (symlinkat(text, p->handles_fd, fresh) < 0)
        return -errno;
    if (renameat(p->handles_fd, fresh, p->handles_fd, path) < 0) {
        int err = errno;

        unlinkat(p->handles_fd, fresh, 0);
        return -err;
    }
    return 0;
}

int
posix_handle_drop_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    char text[POSIX_HANDLE_TEXT_MAX], want[POSIX_HANDLE_TEXT_MAX];
    ssize_t len = handle_read_text(p, gfid, text);

    if (len < 0)
        return len == -ENOENT || len == -EINVAL ? 0 : (int)len;
    posix_handle_text(parent, name, want);
    if (strcmp(text, want) != 0)
        return 0;
    return unlinkat(p->handles_fd, HANDLE(gfid), 0) < 0 && errno != ENOENT ? -errno : 0;
}

/* Does the handle of a directory lead to it? */
static bool
dir_handle_is_right(struct posix *p, const struct gfid *gfid, const struct stat *st)
{
    struct posix_obj obj;
    struct stat found;

    posix_obj_gfid(p, gfid, true, &obj);
    int r = posix_obj_stat(&obj, &found);
    posix_obj_done(&obj);
    return r == 0 && found.st_ino == st->st_ino && found.st_dev == st->st_dev;
}

int
posix_handle_heal(struct posix_obj *entry, const struct gfid *gfid, const struct stat *st,
                  const struct gfid *parent, const char *name)
{
    struct stat handle;

    if (!S_ISDIR(st->st_mode))
        return posix_handle_link(entry, gfid);
    if (dir_handle_is_right(entry->p, gfid, st))
        return 0;
    /* A hard link under this gfid: some file has it already. */
    if (fstatat(entry->p->handles_fd, HANDLE(gfid), &handle, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISLNK(handle.st_mode))
        return -EEXIST;
    return posix_handle_set_dir(entry->p, gfid, parent, name);
}

ssize_t
posix_handle_real_path(struct posix *p, const struct gfid *dir, char *path, size_t size)
{
    struct name_stack s = {0};
    size_t len = 0;
    int r = name_stack_fill(p, dir, &s);

    if (r == 0 && s.used + 2 > size)
        r = -ENAMETOOLONG;
    while (r == 0 && s.count > 0) {
        path[len++] = '/';
        len = (size_t)(stpcpy(path + len, name_stack_pop(&s)) - path);
    }
    free(s.bytes);
    if (r < 0)
        return r;
    if (len == 0)
        path[len++] = '/';
    path[len] = '\0';
    return (ssize_t)len;
}
