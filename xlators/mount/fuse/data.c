/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Open files. Written data goes to the brick from the buffer into which the request was read from the
 * kernel's device. Small data is copied instead, because a copy costs less than a buffer of a megabyte that
 * the next request cannot use. Read data goes to the kernel from the record of the brick's reply.
 *
 * The kernel sends an FSYNC after each write to a file that is open with O_SYNC or O_DSYNC. A brick replies
 * to that write when the data is on disk (client 3.22), so such an FSYNC is answered here, unless this mount
 * has changed the file in another way since the last FSYNC that reached the bricks, or no FSYNC of this
 * mount has reached the bricks. `skip-synced-fsync off` sends all FSYNCs.
 *
 * With `kernel-writeback-cache` the kernel caches writes and sends the data at any time, at the latest at
 * fsync and close. While the kernel holds a file, the kernel decides the file's size and times, so this is
 * only for files that no other client writes. To fill pages, the kernel reads from files that are open for
 * writing only, and the kernel chooses the offset of an append: bricks open such a file for reading and
 * writing, without O_APPEND. A user who may write but not read a file bypasses the page cache. */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>

#include "xlators/mount/fuse/fuse-internal.h"

enum { COPY_MAX = 32 << 10 };

/* ---- opening, closing ------------------------------------------------------------------------ */

/* Returns whether the file bypasses the page cache. Otherwise pages are kept over an open: the kernel drops
 * the pages when size or time have changed (FUSE_CAP_AUTO_INVAL_DATA).
 *
 * The kernel splits a cached write at a page that is not in memory, and data that another client appends
 * may come in between. So a file that is open only for appending, which cannot be mapped either, bypasses
 * the page cache: its writes are whole, up to FUSE_WRITE_MAX. */
static bool
passes_pages_by(const struct fuse_mount *m, int flags)
{
    int mode = fuse_conf(m)->direct_io;
    bool only_appends = (flags & O_ACCMODE) == O_WRONLY && flags & O_APPEND;

    return mode == DIRECT_IO_ENABLE || (mode == DIRECT_IO_AUTO && only_appends);
}

void
fuse_file_flags(struct fuse_mount *m, struct fuse_file_info *fi)
{
    fi->direct_io |= passes_pages_by(m, fi->flags);
    fi->keep_cache = !fi->direct_io;
}

uint32_t
fuse_flags_for_bricks(const struct fuse_mount *m, int flags)
{
    if (!m->writes_back || passes_pages_by(m, flags))
        return (uint32_t)flags;
    flags &= ~O_APPEND;
    return (uint32_t)((flags & O_ACCMODE) == O_WRONLY ? (flags & ~O_ACCMODE) | O_RDWR : flags);
}

static int
open_as_asked(struct task *t)
{
    struct call_stack *stk = task_call_new(t, FOP_open);

    if (!stk)
        return -ENOMEM;
    if (t->before)
        call_stack_free(t->before);
    t->before = t->stk; /* the old call's arena has names and groups */
    t->stk = stk;
    stk->call.flags = (uint32_t)t->fi.flags;
    t->fi.direct_io = true;
    return task_wind(t, stk);
}

static void
fuse_open_go(struct task *t)
{
    int ret = task_call_by_number(t);

    if (ret == -EACCES && t->stk->call.flags != (uint32_t)t->fi.flags)
        ret = open_as_asked(t);
    struct fuse_file *f = ret < 0 ? NULL : file_new(t->m, node_at(t->m, t->number), t->stk->reply.fd);

    if (!f) {
        task_fail(t, ret < 0 ? ret : -ENOMEM);
        return;
    }
    t->stk->reply.fd = NULL; /* now owned by the file */
    if (t->fi.flags & O_TRUNC)
        node_has_changed(t);
    t->fi.fh = f->number;
    if (!f->fd->is_dir)
        fuse_file_flags(t->m, &t->fi);
    else if (t->stk->caller.time_flags) /* features/utime has set a time for bricks to store */
        fuse_folder_changed(fuse_folder_change(t->m, node_at(t->m, t->number)), NULL, NULL);
    if (fuse_reply_open(t->req, &t->fi))
        file_free(t->m, f); /* the kernel has not taken the reply */
}

void
op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_open, number, fuse_open_go);

    if (!t)
        return;
    t->fi = *fi;
    t->stk->call.flags = fuse_flags_for_bricks(t->m, fi->flags);
    task_start(t);
}

void
op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_opendir, number, fuse_open_go);

    if (!t)
        return;
    t->fi = *fi;
    t->stk->call.flags = (uint32_t)fi->flags;
    task_start(t);
}

/* Returns the error of writes that an older graph had answered (switch.c); reported once. */
static int
take_kept_error(struct task *t)
{
    return atomic_load(&t->file->err) ? atomic_exchange(&t->file->err, 0) : 0;
}

/* Returns whether a layer may have answered writes early, before the brick did the writes, or owes the bricks
 * the file's size. */
static bool
has_early_answers(const struct task *t)
{
    const struct xlator *xl = t->xl;

    if ((t->file->fd->flags & O_ACCMODE) == O_RDONLY)
        return false;
    if (xl->graph->traits & LAYER_WRITES_AT_FLUSH)
        return true;
    while (!(xl->type->traits & LAYER_ANSWERS_EARLY) && xl->child_count == 1)
        xl = xl->children[0];
    return xl->type->traits & LAYER_ANSWERS_EARLY;
}

/* If no lock was ever taken, there are no locks to drop, and the brick has nothing to do, because the brick
 * does not buffer. */
static void
fuse_flush_go(struct task *t)
{
    struct fuse_node *node = node_at(t->m, t->number);
    bool is_ours = node && !atomic_load(&node->has_had_locks);
    int err = take_kept_error(t);

    t->stk->call.hint.kind = is_ours ? HINT_FLUSH_OF_MOUNT : HINT_NONE;
    int ret = is_ours && !has_early_answers(t) ? 0 : task_call(t);

    task_result(t, err ? err : ret);
}

void
op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_flush, number, fuse_flush_go);

    if (!t)
        return;
    task_set_file(t, fi);
    task_set_owner(t, fi->lock_owner);
    task_start(t);
}

/* Dropping the fd's last reference sends RELEASE to the brick. For directories too. */
static void
fuse_release_go(struct task *t)
{
    if (t->fi.flock_release && !t->file->is_lost)
        lock_drop(t);
    fd_unref(t->stk->call.fd);
    t->stk->call.fd = NULL;
    file_free(t->m, t->file);
    task_done(t);
}

void
op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct fuse_mount *m = fuse_req_userdata(req);
    struct fuse_file *f = file_of(m, fi);
    struct task *t = task_new(req, FOP_release, number, fuse_release_go);

    if (!t) { /* answered; the kernel sends no further RELEASE for the file */
        file_free(m, f);
        return;
    }
    t->fi = *fi;
    task_set_file(t, fi);
    task_set_owner(t, fi->lock_owner);
    task_start(t);
}

/* ---- reading, writing ------------------------------------------------------------------------ */

static void
fuse_read_go(struct task *t)
{
    int ret = task_call(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        fuse_reply_buf(t->req, t->stk->reply.payload.iov_base, (size_t)ret);
}

void
op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi)
{
    if (!size) { /* bricks refuse a read of 0 bytes (wire 6.2) */
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    struct task *t = task_new(req, FOP_readv, number, fuse_read_go);

    if (!t)
        return;
    task_set_file(t, fi);
    t->stk->call.size = size;
    t->stk->call.offset = (uint64_t)off;
    t->stk->call.flags = (uint32_t)fi->flags;
    task_start(t);
}

/* O_SYNC includes the bit of O_DSYNC. */
static bool
is_synchronous(const struct task *t, int how)
{
    return (t->file->fd->flags & (uint32_t)how) == (uint32_t)how;
}

static void
fuse_write_go(struct task *t)
{
    int ret = take_kept_error(t);

    if (!ret && t->kills_privs)
        ret = privs_before_write(t);
    if (!ret)
        ret = task_call(t);
    if (ret >= 0 && t->kills_privs) {
        int err = privs_after_write(t);

        ret = err ? err : ret;
    }
    if (ret < 0 || !is_synchronous(t, O_DSYNC) || !(t->stk->call.flags & O_DSYNC))
        node_has_changed(t);
    if (ret < 0)
        task_fail(t, ret);
    else
        fuse_reply_write(t->req, (size_t)ret);
}

static void
set_payload(struct task *t, const char *bytes, size_t size)
{
    struct fop_call *call = &t->stk->call;
    struct iobuf *buf = size > COPY_MAX ? device_take_buffer(bytes) : NULL;

    if (buf) {
        call->payload[0] = (struct iovec){(void *)(uintptr_t)bytes, size};
    } else if ((buf = iobuf_get(size ? size : 1))) {
        memcpy(buf->bytes, bytes, size);
        call->payload[0] = (struct iovec){buf->bytes, size};
    } else {
        task_is_short(t);
        return;
    }
    call->payload_iobuf = buf;
    call->payload_count = 1;
    call->payload_bytes = call->size = size;
}

void
op_write(fuse_req_t req, fuse_ino_t number, const char *bytes, size_t size, off_t off,
         struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_writev, number, fuse_write_go);

    if (!t)
        return;
    task_set_file(t, fi);
    set_payload(t, bytes, size);
    t->stk->call.offset = (uint64_t)off;
    t->stk->call.flags = fuse_flags_for_bricks(t->m, fi->flags);
    t->kills_privs = privs_are_to_be_killed();
    t->stk->call.hint.kind = t->kills_privs ? HINT_KILLS_PRIVS : HINT_NONE;
    task_start(t);
}

/* ---- other operations ------------------------------------------------------------------------ */

static void
fuse_fsync_go(struct task *t)
{
    struct fuse_node *node = node_at(t->m, t->number);
    unsigned changes = node ? atomic_load(&node->changes) : 0;
    int how = t->stk->call.flags ? O_DSYNC : O_SYNC; /* flags set: sync of the data suffices */

    if (node && fuse_conf(t->m)->skips_synced_fsync && is_synchronous(t, how) &&
        atomic_load(&node->synced) == changes + 1) {
        task_done(t);
        return;
    }
    int err = take_kept_error(t), ret = task_call(t);

    if (ret >= 0 && node)
        node_is_synced(node, changes);
    task_result(t, err ? err : ret);
}

void
op_fsync(fuse_req_t req, fuse_ino_t number, int datasync, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_fsync, number, fuse_fsync_go);

    if (!t)
        return;
    task_set_file(t, fi);
    t->stk->call.flags = (uint32_t)datasync;
    task_start(t);
}

/* Zeroes the part of a range that is inside the file, because the file must not grow. */
static int
zero_inside(struct task *t)
{
    struct call_stack *stk = task_call_new(t, FOP_fstat);

    if (!stk)
        return -ENOMEM;
    int ret = task_wind(t, stk);
    uint64_t size = stk->reply.stat.size;

    call_stack_free(stk);
    if (ret < 0)
        return ret;
    if (t->stk->call.offset >= size)
        return 0;
    if (t->stk->call.size > size - t->stk->call.offset)
        t->stk->call.size = size - t->stk->call.offset;
    return task_call(t);
}

static void
fuse_fallocate_go(struct task *t)
{
    bool keeps_size = t->stk->call.fop == FOP_zerofill && t->stk->call.flags & FALLOC_FL_KEEP_SIZE;
    int ret = keeps_size ? zero_inside(t) : task_call(t);

    node_has_changed(t);
    task_result(t, ret);
}

static const struct {
    int mode;
    enum fop fop;
} fallocate_fops[] = {
    {0, FOP_fallocate},
    {FALLOC_FL_KEEP_SIZE, FOP_fallocate},
    {FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, FOP_discard},
    {FALLOC_FL_ZERO_RANGE, FOP_zerofill},
    {FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, FOP_zerofill},
};

void
op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t length,
             struct fuse_file_info *fi)
{
    for (size_t i = 0; i < sizeof fallocate_fops / sizeof fallocate_fops[0]; i++) {
        if (fallocate_fops[i].mode != mode)
            continue;
        struct task *t = task_new(req, fallocate_fops[i].fop, number, fuse_fallocate_go);

        if (!t)
            return;
        task_set_file(t, fi);
        t->stk->call.flags = (uint32_t)mode & FALLOC_FL_KEEP_SIZE;
        t->stk->call.offset = (uint64_t)offset;
        t->stk->call.size = (uint64_t)length;
        task_start(t);
        return;
    }
    fuse_reply_err(req, EOPNOTSUPP);
}

static void
fuse_lseek_go(struct task *t)
{
    int ret = task_call(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        fuse_reply_lseek(t->req, (off_t)t->stk->reply.offset);
}

void
op_lseek(fuse_req_t req, fuse_ino_t number, off_t off, int whence, struct fuse_file_info *fi)
{
    if (whence != SEEK_DATA && whence != SEEK_HOLE) {
        fuse_reply_err(req, EINVAL);
        return;
    }
    if (off < 0) { /* as in local file systems */
        fuse_reply_err(req, ENXIO);
        return;
    }
    struct task *t = task_new(req, FOP_seek, number, fuse_lseek_go);

    if (!t)
        return;
    task_set_file(t, fi);
    t->stk->call.offset = (uint64_t)off;
    t->stk->call.cmd = whence == SEEK_HOLE; /* wire 6.2 */
    task_start(t);
}
