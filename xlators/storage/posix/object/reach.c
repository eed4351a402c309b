/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* reach: the one place where a directory is opened by its gfid, and checked (obj.h explains why and how). */
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/lock-order.h"
#include "xlators/storage/posix/object/handle.h"

/* ---- beneath the brick ----------------------------------------------------------------------- */

static int
open_beneath(int at, const char *path, int flags, uint64_t resolve)
{
    struct open_how how = {.flags = (uint64_t)(flags | O_CLOEXEC),
                           .resolve = RESOLVE_BENEATH | RESOLVE_NO_MAGICLINKS | resolve};
    long fd = syscall(SYS_openat2, at, path, &how, sizeof how);

    return fd < 0 ? -errno : (int)fd;
}

int
posix_reach_probe(struct posix *p)
{
    int fd = open_beneath(p->brick_fd, ".", O_PATH | O_DIRECTORY, 0);

    if (fd < 0)
        return fd;
    close(fd);
    return 0;
}

/* A path with `..`, as handles have it, gives EAGAIN when anything on the machine was renamed at that moment.
 */
#define AGAIN_MAX 16

static int
open_by_handle(struct posix *p, const struct gfid *gfid, int flags)
{
    char path[sizeof POSIX_HIDDEN_DIR + POSIX_HANDLE_SIZE + 2];
    int fd = -EAGAIN;

    posix_handle_path(gfid, stpcpy(path, POSIX_HIDDEN_DIR "/"));
    strcat(path, "/.");
    for (int i = 0; i < AGAIN_MAX && fd == -EAGAIN; i++)
        fd = open_beneath(p->brick_fd, path, flags, 0);
    return fd;
}

/* ---- deep directories ------------------------------------------------------------------------ */

/* The names from the root down to a directory, collected from the bottom up. Bounded, because a client could
 * build a loop of handles. */
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

/* Removes the last pushed name and returns it. */
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
        ssize_t len = posix_handle_read_text(p, &at, text);

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

/* Walks down from BRICK in steps of as many names as fit into a path. None of the names may be a symlink or
 * `..`.
 */
static int
walk_down(struct posix *p, struct name_stack *s)
{
    int fd = open_beneath(p->brick_fd, ".", O_PATH | O_DIRECTORY, 0);
    char path[PATH_MAX];

    while (fd >= 0 && s->count > 0) {
        size_t len = 0;

        while (s->count > 0 && len + NAME_MAX + 2 < sizeof path) {
            len = (size_t)(stpcpy(path + len, name_stack_pop(s)) - path);
            path[len++] = '/';
        }
        path[len - 1] = '\0';
        int next = open_beneath(fd, path, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
        close(fd);
        fd = next;
    }
    return fd;
}

static int
open_by_texts(struct posix *p, const struct gfid *dir)
{
    struct name_stack s = {0};
    int fd = name_stack_fill(p, dir, &s);

    if (fd == 0)
        fd = walk_down(p, &s);
    free(s.bytes);
    return fd;
}

/* Opens the directory by the names in the table: one system call at any depth. */
static int
open_by_names(struct posix *p, struct inode *inode)
{
    char path[PATH_MAX];
    int r = inode ? inode_path(inode, path, sizeof path) : -ENOENT;

    return r < 0 ? r : open_beneath(p->brick_fd, path + 1, O_PATH | O_DIRECTORY, RESOLVE_NO_SYMLINKS);
}

/* ---- the check ------------------------------------------------------------------------------- */

static int
check_dir(const struct posix_obj *obj, int fd, struct stat *st)
{
    struct xlator *xl = obj->p->xl;
    struct posix_obj self;
    struct gfid found;

    if (fstat(fd, st) < 0)
        return -errno;
    if (!S_ISDIR(st->st_mode))
        return -ESTALE;
    if (posix_inode_is(xl, obj->inode, st))
        return 0;
    posix_obj_at(obj->p, fd, ".", &self);
    int r = posix_obj_get_gfid(&self, &found);
    if (r < 0)
        return r == -ENODATA || r == -EINVAL || r == -EOPNOTSUPP ? -ESTALE : r;
    if (!gfid_equal(&found, &obj->dir))
        return -ESTALE;
    posix_inode_met(xl, obj->inode, st, obj->births);
    return 0;
}

/* Returns the opened descriptor if it is the right directory, and closes it otherwise. */
static int
checked(const struct posix_obj *obj, int fd, struct stat *st)
{
    int r = fd < 0 ? fd : check_dir(obj, fd, st);

    if (r == 0)
        return fd;
    if (fd >= 0)
        close(fd);
    /* The path leaves the brick, or a symlink's text is not a path: clients can create such names on the way.
     */
    return r == -EXDEV || r == -ENAMETOOLONG ? -ESTALE : r;
}

/* Opens the same directory with other flags. */
static int
reopen_dir(int fd, int flags)
{
    if (fd < 0 || flags & O_PATH)
        return fd;
    int again = openat(fd, ".", flags | O_CLOEXEC);
    int err = errno;

    close(fd);
    return again < 0 ? -err : again;
}

/* Makes one attempt in all ways. */
static int
reach_once(const struct posix_obj *obj, int flags, struct stat *st)
{
    int fd = open_by_handle(obj->p, &obj->dir, flags);

    if (fd != -ELOOP && fd != -EAGAIN)
        return checked(obj, fd, st);
    fd = checked(obj, open_by_names(obj->p, obj->inode), st);
    if (fd < 0) /* a name is out of date or not known */
        fd = checked(obj, open_by_texts(obj->p, &obj->dir), st);
    return reopen_dir(fd == -ELOOP ? -ESTALE : fd, flags);
}

/* True if a directory was renamed since obj was built. Waits for the end of a rename that is under way. */
static bool
renamed_meanwhile(struct posix_obj *obj)
{
    struct posix *p = obj->p;

    if (!(obj->renames_seen & 1) &&
        atomic_load_explicit(&p->dir_renames, memory_order_acquire) == obj->renames_seen)
        return false;
    pthread_mutex_lock(&p->dir_rename_lock);
    obj->renames_seen = atomic_load_explicit(&p->dir_renames, memory_order_acquire);
    pthread_mutex_unlock(&p->dir_rename_lock);
    return true;
}

int
posix_reach_dir(struct posix_obj *obj, int flags, struct stat *st)
{
    int fd;

    lock_order_may_take(&obj->p->dir_rename_lock);
    do
        fd = reach_once(obj, flags, st);
    while ((fd == -ENOENT || fd == -ENOTDIR || fd == -ESTALE) && renamed_meanwhile(obj));
    if (fd == -ESTALE)
        log_event(LOG_WARNING, obj->p->xl, "posix-handle-astray",
                  "the handle of the directory %s leads to something else", GFID(&obj->dir));
    return fd;
}

/* ---- the texts as a path --------------------------------------------------------------------- */

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
