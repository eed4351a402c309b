/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Open files. The last reference of an object drops its reference to the fd, and the fd's last reference
 * sends RELEASE to the bricks. The position of an object belongs to read, write and lseek alone.
 *
 * Samba closes volumes before their last files. A file whose volume is closed keeps only its own memory. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "stack/lock-cmd.h"

struct glfs_fd *
api_file_new(struct glfs *fs, struct fd *fd, const char *path)
{
    struct glfs_fd *f = calloc(1, sizeof *f);

    if (!f || (path && !(f->path = strdup(path)))) {
        free(f);
        errno = ENOMEM;
        return NULL;
    }
    atomic_init(&f->refs, 1);
    f->fs = fs;
    f->fd = fd;
    pthread_mutex_init(&f->position, NULL);
    pthread_mutex_lock(&fs->lock);
    cds_list_add(&f->in_files, &fs->files);
    pthread_mutex_unlock(&fs->lock);
    return f;
}

struct glfs_fd *
api_file_ref(struct glfs_fd *fd)
{
    atomic_fetch_add_explicit(&fd->refs, 1, memory_order_relaxed);
    return fd;
}

void
api_file_unref(struct glfs_fd *fd)
{
    if (atomic_fetch_sub_explicit(&fd->refs, 1, memory_order_acq_rel) != 1)
        return;
    if (fd->fd) { /* else there is no volume any more */
        pthread_mutex_lock(&fd->fs->lock);
        cds_list_del(&fd->in_files);
        pthread_mutex_unlock(&fd->fs->lock);
    }
    fd_unref(fd->fd);
    dir_batch_free(fd->batch);
    pthread_mutex_destroy(&fd->position);
    free(fd->path);
    free(fd);
}

unsigned
api_files_abandon(struct glfs *fs)
{
    struct glfs_fd *f, *next;
    unsigned count = 0;

    cds_list_for_each_entry_safe(f, next, &fs->files, in_files) {
        fd_unref(f->fd);
        dir_batch_free(f->batch);
        f->fd = NULL;
        f->fs = NULL;
        f->batch = NULL;
        count++;
    }
    CDS_INIT_LIST_HEAD(&fs->files);
    return count;
}

/* ---- opening --------------------------------------------------------------------------------- */

struct open_request {
    struct request r;
    const char *path;
    int flags;
    mode_t mode;
    bool creates;
    struct fd *fd; /* a reference, or NULL */
    struct iatt iatt; /* of the file */
};

/* Takes the reply's fd. */
static int64_t
take_opened(struct open_request *q, struct call_stack *stk, int ret)
{
    if (ret >= 0 && stk->reply.fd) {
        if (stk->call.fop == FOP_create)
            q->iatt = stk->reply.stat;
        q->fd = stk->reply.fd;
        stk->reply.fd = NULL;
    }
    call_stack_free(stk);
    return ret < 0 ? ret : q->fd ? 0 : -EIO;
}

static int64_t
open_inode(struct open_request *q, struct inode *inode)
{
    struct call_stack *stk = request_call(&q->r, FOP_open);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(inode);
    stk->call.flags = (uint32_t)(q->flags & ~(O_CREAT | O_EXCL));
    return take_opened(q, stk, request_wind(&q->r, stk));
}

/* As open(2), and GlusterFS's library, for reading. glfs_fchdir() does not take the result, because its path
 * is not kept. */
static int64_t
open_dir(struct open_request *q, struct inode *inode)
{
    struct call_stack *stk = request_call(&q->r, FOP_opendir);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(inode);
    return take_opened(q, stk, request_wind(&q->r, stk));
}

/* The file may appear meanwhile: then the brick opens it, unless O_EXCL is set. */
static int64_t
open_by_create(struct open_request *q, const struct place *p)
{
    struct call_stack *stk = request_call(&q->r, FOP_create);
    int err = stk ? request_ask_gfid(stk) : -ENOMEM;

    if (err) {
        if (stk)
            call_stack_free(stk);
        return err;
    }
    place_set_name(p, &stk->call.loc);
    stk->call.flags = (uint32_t)q->flags | O_CREAT;
    stk->call.mode = S_IFREG | (q->mode & 07777);
    return take_opened(q, stk, request_wind(&q->r, stk));
}

static int64_t
open_file_go(struct request *r)
{
    struct open_request *q = caa_container_of(r, struct open_request, r);
    struct place p;
    int64_t ret = place_find(r, q->path, PLACE_FOLLOW, &p, NULL);

    q->iatt = p.iatt;
    if (ret == -ENOENT && q->creates && p.parent)
        ret = open_by_create(q, &p);
    else if (!ret && q->creates && q->flags & O_EXCL)
        ret = -EEXIST;
    else if (!ret && S_ISDIR(p.iatt.mode))
        ret = q->creates || (q->flags & O_ACCMODE) != O_RDONLY ? -EISDIR : open_dir(q, p.inode);
    else if (!ret && !S_ISREG(p.iatt.mode) && q->creates)
        ret = -EINVAL;
    else if (!ret)
        ret = open_inode(q, p.inode);
    place_release(&p);
    return ret;
}

static int64_t
drop_fd_go(struct request *r)
{
    fd_unref(caa_container_of(r, struct open_request, r)->fd);
    return 0;
}

static struct glfs_fd *
open_path(struct glfs *fs, struct open_request *q)
{
    if (request_run(&q->r, fs, open_file_go) < 0)
        return NULL;
    struct glfs_fd *f = api_file_new(fs, q->fd, NULL);
    if (f) {
        f->appends = q->flags & O_APPEND;
    } else {
        request_run(&q->r, fs, drop_fd_go);
        errno = ENOMEM;
    }
    return f;
}

struct glfs_fd *
api_open(struct glfs *fs, const struct glfs_object *at, const char *path, int flags, mode_t mode,
         bool creates, struct iatt *made)
{
    struct open_request q = {.r.at = at, .path = path, .flags = flags, .mode = mode, .creates = creates};
    struct glfs_fd *f = open_path(fs, &q);

    if (made)
        *made = q.iatt;
    return f;
}

GFAPI struct glfs_fd *
glfs_open(struct glfs *fs, const char *path, int flags)
{
    return api_open(fs, NULL, path, flags, 0, false, NULL);
}

GFAPI struct glfs_fd *
glfs_creat(struct glfs *fs, const char *path, int flags, mode_t mode)
{
    return api_open(fs, NULL, path, flags, mode, true, NULL);
}

GFAPI struct glfs_fd *
glfs_dup(struct glfs_fd *fd)
{
    bool is_open = fd && fd->fd;
    struct glfs_fd *f = is_open ? api_file_new(fd->fs, fd_ref(fd->fd), fd->path) : NULL;

    if (!is_open)
        errno = EBADF;
    else if (!f)
        fd_unref(fd->fd); /* never the last one */
    if (f)
        f->appends = fd->appends;
    return f;
}

GFAPI struct glfs *
glfs_from_glfd(struct glfs_fd *fd)
{
    if (!fd || !fd->fs)
        errno = EBADF;
    return fd ? fd->fs : NULL;
}

/* ---- closing --------------------------------------------------------------------------------- */

struct close_request {
    struct request r;
    struct glfs_fd *fd;
};

/* Returns whether a layer may have answered writes early, before the brick did the writes, or owes the bricks
 * the file's size. */
static bool
may_owe_writes(const struct request *r, const struct fd *fd)
{
    const struct xlator *xl = r->graph->top;

    if (fd->is_dir || (fd->flags & O_ACCMODE) == O_RDONLY)
        return false;
    if (r->graph->traits & LAYER_WRITES_AT_FLUSH)
        return true;
    while (!(xl->type->traits & LAYER_ANSWERS_EARLY) && xl->child_count == 1)
        xl = xl->children[0];
    return xl->type->traits & LAYER_ANSWERS_EARLY;
}

/* Reports errors of earlier writes, and drops locks. Without both the bricks have nothing to do at FLUSH. */
static int64_t
close_go(struct request *r)
{
    struct glfs_fd *fd = caa_container_of(r, struct close_request, r)->fd;
    bool has_locks = atomic_load(&fd->has_had_locks);
    int ret = 0;

    if (has_locks || may_owe_writes(r, fd->fd)) {
        struct call_stack *stk = request_call_on(r, FOP_flush, fd);

        ret = -ENOMEM;
        if (stk) {
            stk->call.hint.kind = has_locks ? HINT_NONE : HINT_FLUSH_OF_MOUNT;
            ret = request_wind(r, stk);
            call_stack_free(stk);
        }
    }
    api_file_unref(fd);
    return ret < 0 ? ret : 0;
}

GFAPI int
glfs_close(struct glfs_fd *fd)
{
    struct close_request q = {.fd = fd};

    if (fd && !fd->fd) {
        api_file_unref(fd);
        return 0;
    }
    return (int)request_run_on(&q.r, fd, close_go);
}

GFAPI int
glfs_closedir(struct glfs_fd *fd)
{
    return glfs_close(fd);
}

/* ---- positions ------------------------------------------------------------------------------- */

struct seek_request {
    struct request r;
    struct glfs_fd *fd;
    off_t offset;
    bool is_hole;
};

static int64_t
seek_go(struct request *r)
{
    struct seek_request *q = caa_container_of(r, struct seek_request, r);
    struct call_stack *stk = request_call_on(r, FOP_seek, q->fd);

    if (!stk)
        return -ENOMEM;
    stk->call.offset = (uint64_t)q->offset;
    stk->call.cmd = q->is_hole; /* wire 6.2 */
    int ret = request_wind(r, stk);
    int64_t at = (int64_t)stk->reply.offset;

    call_stack_free(stk);
    return ret < 0 ? ret : at;
}

/* Returns the new position, or -1 with errno. The position's lock is held. */
static off_t
find_position(struct glfs_fd *fd, off_t offset, int whence)
{
    struct seek_request q = {.fd = fd, .offset = offset, .is_hole = whence == SEEK_HOLE};
    struct iatt a;
    off_t base = 0;

    switch (whence) {
    case SEEK_SET:
        break;
    case SEEK_CUR:
        base = fd->offset;
        break;
    case SEEK_END:
        if (api_fstat(fd, &a) < 0)
            return -1;
        base = (off_t)a.size;
        break;
    case SEEK_DATA:
    case SEEK_HOLE:
        if (offset >= 0)
            return (off_t)request_run_on(&q.r, fd, seek_go);
        errno = ENXIO; /* as in local file systems */
        return -1;
    default:
        errno = EINVAL;
        return -1;
    }
    if (__builtin_add_overflow(base, offset, &base) || base < 0) {
        errno = EINVAL;
        return -1;
    }
    return base;
}

GFAPI off_t
glfs_lseek(struct glfs_fd *fd, off_t offset, int whence)
{
    if (!fd) {
        errno = EBADF;
        return -1;
    }
    pthread_mutex_lock(&fd->position);
    off_t at = find_position(fd, offset, whence);

    if (at >= 0)
        fd->offset = at;
    pthread_mutex_unlock(&fd->position);
    return at;
}

/* ---- locks ----------------------------------------------------------------------------------- */

struct lock_request {
    struct request r;
    struct glfs_fd *fd;
    uint32_t cmd;
    struct flock *lock;
};

GFAPI int
glfs_fd_set_lkowner(struct glfs_fd *fd, void *owner, int size)
{
    if (!fd || !owner || size <= 0 || size > LK_OWNER_MAX) {
        errno = fd ? EINVAL : EBADF;
        return -1;
    }
    memcpy(fd->owner, owner, (size_t)size);
    fd->owner_len = (uint32_t)size;
    return 0;
}

static int
take_lock_reply(const struct fop_flock *from, struct flock *to)
{
    static const short types[] = {[FLOCK_READ] = F_RDLCK, [FLOCK_WRITE] = F_WRLCK, [FLOCK_UNLOCK] = F_UNLCK};

    if (from->type > FLOCK_UNLOCK)
        return -EIO;
    to->l_type = types[from->type];
    if (from->type == FLOCK_UNLOCK)
        return 0;
    to->l_whence = SEEK_SET;
    to->l_start = from->start;
    to->l_len = from->len;
    to->l_pid = (pid_t)from->pid;
    return 0;
}

static int64_t
posix_lock_go(struct request *r)
{
    struct lock_request *q = caa_container_of(r, struct lock_request, r);
    struct call_stack *stk = request_call_on(r, FOP_lk, q->fd);
    const struct flock *l = q->lock;
    uint32_t type = l->l_type == F_RDLCK ? FLOCK_READ : l->l_type == F_WRLCK ? FLOCK_WRITE : FLOCK_UNLOCK;

    if (!stk)
        return -ENOMEM;
    stk->call.cmd = q->cmd;
    stk->call.type = type;
    stk->call.flock = (struct fop_flock){.type = type,
                                         .start = l->l_start,
                                         .len = l->l_len,
                                         .pid = (uint32_t)r->caller.pid,
                                         .owner = stk->caller.lk_owner};
    int ret = request_wind(r, stk);

    if (ret >= 0 && q->cmd == LK_GET)
        ret = take_lock_reply(&stk->reply.flock, q->lock);
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* Makes the start of the lock absolute. Returns 0, or -1 with errno. */
static int
lock_from_start(struct glfs_fd *fd, struct flock *l)
{
    if (l->l_whence == SEEK_SET)
        return 0;
    pthread_mutex_lock(&fd->position);
    off_t at = l->l_whence == SEEK_CUR || l->l_whence == SEEK_END ? find_position(fd, l->l_start, l->l_whence)
                                                                  : (errno = EINVAL, -1);
    pthread_mutex_unlock(&fd->position);
    if (at < 0)
        return -1;
    l->l_start = at;
    l->l_whence = SEEK_SET;
    return 0;
}

GFAPI int
glfs_posix_lock(struct glfs_fd *fd, int cmd, struct flock *lock)
{
    struct lock_request q = {.fd = fd, .lock = lock};
    struct flock whole;

    if (!fd || !lock) {
        errno = fd ? EINVAL : EBADF;
        return -1;
    }
    if (cmd != F_GETLK && cmd != F_SETLK && cmd != F_SETLKW) { /* the 64-bit forms have the same numbers */
        errno = EINVAL;
        return -1;
    }
    q.cmd = cmd == F_GETLK ? LK_GET : cmd == F_SETLK ? LK_SET : LK_SET_WAIT;
    whole = *lock;
    if (lock_from_start(fd, &whole) < 0)
        return -1;
    q.lock = &whole;
    if (q.cmd != LK_GET)
        atomic_store(&fd->has_had_locks, true);
    int ret = (int)request_run_on(&q.r, fd, posix_lock_go);

    if (ret == 0 && q.cmd == LK_GET)
        *lock = whole;
    return ret;
}

/* Mandatory locks, which make reads and writes of other clients fail, are not built. */
GFAPI int
glfs_file_lock(struct glfs_fd *fd, int cmd, struct flock *lock, int mode)
{
    enum { LOCK_MODE_ADVISORY };

    if (mode != LOCK_MODE_ADVISORY) {
        errno = ENOTSUP;
        return -1;
    }
    return glfs_posix_lock(fd, cmd, lock);
}
