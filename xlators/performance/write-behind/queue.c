/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A file's queue of writes that were answered but are not done.
 *
 * Three threads send pieces: a worker, by the file's job, so that the application gets its reply first; a
 * thread that begins to wait; and the thread of a piece's reply, for the pieces that were queued meanwhile. A
 * sender marks all sendable pieces in a single visit of the lock, and winds these pieces after releasing the
 * lock. So the thread that has marked a piece also winds the piece.
 *
 * A small write becomes part of the newest piece if it begins where that piece ends, is by the same file and
 * caller, and the piece was not sent yet and does not exceed `aggregate-size`. */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "graph/graph.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "xlators/performance/write-behind/write-behind-internal.h"

struct piece {
    struct cds_list_head link;      /* in the queue */
    struct cds_list_head send_link; /* in the list of its sender */
    struct wb_inode *wi;            /* the call stack holds its inode */
    struct call_stack *stk;         /* the WRITE */
    uint64_t number, start, end;    /* end: not included */
    size_t held;                    /* size of its buffer, however little of it is filled */
    bool is_sent;
};

static struct mem_pool *pieces, *inodes, *files;

static void send_pieces(struct wb_inode *wi);

int
wb_pools_init(void)
{
    if (!pieces)
        pieces = mem_pool_new(struct piece, 0);
    if (!inodes)
        inodes = mem_pool_new(struct wb_inode, 0);
    if (!files)
        files = mem_pool_new(struct wb_file, 0);
    return pieces && inodes && files ? 0 : -ENOMEM;
}

/* ---- a file's queue -------------------------------------------------------------------------- */

static void
wb_job_run(struct worker_job *job)
{
    struct wb_inode *wi = caa_container_of(job, struct wb_inode, job);
    struct inode *inode = wi->inode;
    struct graph *g = wi->wb->xl->graph;

    pthread_mutex_lock(&wi->lock);
    wi->is_job_posted = false;
    pthread_mutex_unlock(&wi->lock);
    send_pieces(wi);
    inode_unref(inode);
    graph_unpin(g);
}

struct wb_inode *
wb_inode_get(struct wb *wb, struct inode *inode)
{
    return inode ? inode_ctx(inode, wb->xl) : NULL;
}

struct wb_inode *
wb_inode_make(struct wb *wb, struct inode *inode)
{
    struct wb_inode *wi = wb_inode_get(wb, inode), *fresh;

    if (wi)
        return wi;
    fresh = mem_get0_owner(inodes, wb->xl->graph->owner);
    if (!fresh)
        return NULL;
    fresh->wb = wb;
    fresh->inode = inode;
    fresh->job.run = wb_job_run;
    pthread_mutex_init(&fresh->lock, NULL);
    CDS_INIT_LIST_HEAD(&fresh->pieces);
    CDS_INIT_LIST_HEAD(&fresh->waiters);
    wi = inode_ctx_install(inode, wb->xl, fresh);
    if (wi != fresh)
        wb_inode_free(fresh);
    return wi;
}

void
wb_inode_free(struct wb_inode *wi)
{
    assert(cds_list_empty(&wi->pieces));
    pthread_mutex_destroy(&wi->lock);
    mem_put(wi);
}

void
wb_file_free(struct wb_file *file)
{
    mem_put(file);
}

/* ---- waiting --------------------------------------------------------------------------------- */

static bool
is_blocked(const struct wb_inode *wi, const struct wb_waiter *w)
{
    const struct piece *p;

    if (w->room)
        return (wi->bytes && wi->bytes + w->room > w->window) || wi->count >= WB_PIECES_MAX;
    cds_list_for_each_entry (p, &wi->pieces, link) {
        if (p->number < w->before && p->start < w->end && w->start < p->end)
            return true;
    }
    return false;
}

/* Reserves bytes of the window. Under the lock. */
static void
promise(struct wb_inode *wi, uint64_t bytes)
{
    wi->bytes += bytes;
    wi->count += bytes > 0;
}

bool
wb_has_to_wait(struct wb_inode *wi, struct wb_waiter *w)
{
    pthread_mutex_lock(&wi->lock);
    w->before = wi->next;
    bool is = is_blocked(wi, w);

    pthread_mutex_unlock(&wi->lock);
    return is;
}

void
wb_wait(struct wb_inode *wi, struct wb_waiter *w)
{
    w->self = coroutine_self();
    pthread_mutex_lock(&wi->lock);
    w->before = wi->next;
    bool waits = is_blocked(wi, w);

    if (waits)
        cds_list_add_tail(&w->link, &wi->waiters);
    else
        promise(wi, w->room);
    pthread_mutex_unlock(&wi->lock);
    if (!waits)
        return;
    send_pieces(wi);
    coroutine_yield();
}

/* Moves the waiters that need not wait any more to `out`. They may be freed once they run. */
static void
take_ready(struct wb_inode *wi, struct cds_list_head *out)
{
    struct wb_waiter *w, *next;

    cds_list_for_each_entry_safe (w, next, &wi->waiters, link) {
        if (is_blocked(wi, w))
            continue;
        promise(wi, w->room);
        cds_list_del(&w->link);
        cds_list_add_tail(&w->link, out);
    }
}

static void
waiters_resume(struct cds_list_head *list)
{
    while (!cds_list_empty(list)) {
        struct wb_waiter *w = cds_list_first_entry(list, struct wb_waiter, link);

        cds_list_del(&w->link);
        coroutine_resume(w->self); /* w lies on the coroutine's stack */
    }
}

bool
wb_reserve(struct wb_inode *wi, uint64_t bytes, uint64_t window)
{
    const struct wb_waiter w = {.room = bytes, .window = window};

    pthread_mutex_lock(&wi->lock);
    bool has_room = cds_list_empty(&wi->waiters) && !is_blocked(wi, &w);

    if (has_room)
        promise(wi, bytes);
    pthread_mutex_unlock(&wi->lock);
    return has_room;
}

/* ---- errors ---------------------------------------------------------------------------------- */

int
wb_take_error(struct wb_inode *wi, struct fd *fd)
{
    struct wb_file *file = fd_ctx(fd, wi->wb->xl);
    int err = 0;

    if (!atomic_load(&wi->errors))
        return 0;
    pthread_mutex_lock(&wi->lock);
    unsigned *seen = file ? &file->seen : &wi->reported;

    if (*seen != atomic_load(&wi->errors)) {
        err = wi->err;
        *seen = wi->reported = atomic_load(&wi->errors);
    }
    pthread_mutex_unlock(&wi->lock);
    return err;
}

bool
wb_was_busy(struct wb_inode *wi, uint64_t ended)
{
    pthread_mutex_lock(&wi->lock);
    bool was = !cds_list_empty(&wi->pieces) || wi->ended_at > ended;

    pthread_mutex_unlock(&wi->lock);
    return was;
}

/* ---- sending --------------------------------------------------------------------------------- */

/* Marks the pieces that no older piece blocks. */
static void
mark_sendable(struct wb_inode *wi, bool is_strict, struct cds_list_head *out)
{
    struct piece *p, *older;

    cds_list_for_each_entry (p, &wi->pieces, link) {
        bool is_free = !p->is_sent;

        cds_list_for_each_entry (older, &wi->pieces, link) {
            if (older == p || !is_free)
                break;
            is_free = !is_strict && (older->end <= p->start || p->end <= older->start);
        }
        if (!is_free)
            continue;
        p->is_sent = true;
        wi->sent++;
        cds_list_add_tail(&p->send_link, out);
    }
}

/* The caller holds the inode. */
static void
send_pieces(struct wb_inode *wi)
{
    const struct wb_conf *conf = xlator_conf(wi->wb->xl);
    struct xlator *xl = wi->wb->xl;
    struct piece *p, *next;
    CDS_LIST_HEAD(out);

    pthread_mutex_lock(&wi->lock);
    mark_sendable(wi, conf->strict_order, &out);
    pthread_mutex_unlock(&wi->lock);
    cds_list_for_each_entry_safe (p, next, &out, send_link)
        call_stack_wind_below(p->stk, xl); /* the piece may be freed by then */
}

/* Returns -errno or 0. A write shorter than requested has met the end of the disk. */
static int
write_outcome(const struct call_stack *stk)
{
    int ret = coro_call_result(stk);

    return ret < 0 ? ret : (uint64_t)ret < stk->call.size ? -ENOSPC : 0;
}

static void
piece_left(struct wb *wb)
{
    if (atomic_fetch_sub(&wb->left, 1) != 1 || !atomic_load(&wb->is_stopping))
        return;
    pthread_mutex_lock(&wb->lock);
    pthread_cond_broadcast(&wb->idle);
    pthread_mutex_unlock(&wb->lock);
}

static void
log_failed_piece(const struct wb *wb, const struct call_stack *stk, int err)
{
    log_event(LOG_WARNING, wb->xl, "write-behind-failed",
              "%s: %zu bytes at %llu, which were answered, could not be written: %s",
              GFID(&stk->call.fd->inode->gfid), stk->call.payload_bytes,
              (unsigned long long)stk->call.offset, strerror(-err));
}

static void
leave_queue(struct piece *p, int err)
{
    struct call_stack *stk = p->stk;
    struct wb_inode *wi = p->wi;
    struct wb *wb = wi->wb;
    struct graph *g = wb->xl->graph;
    struct inode *inode = inode_ref(wi->inode);
    CDS_LIST_HEAD(ready);

    if (err)
        log_failed_piece(wb, stk, err);
    pthread_mutex_lock(&wi->lock);
    cds_list_del(&p->link);
    wi->sent--;
    wi->count--;
    wi->bytes -= stk->call.size;
    if (err) {
        wi->err = err;
        atomic_fetch_add(&wi->errors, 1);
    }
    wi->ended_at = atomic_fetch_add(&wb->ended, 1) + 1;
    take_ready(wi, &ready);
    bool has_more = !cds_list_empty(&wi->pieces);
    pthread_mutex_unlock(&wi->lock);
    atomic_fetch_sub(&wb->held, p->held);
    mem_put(p);
    call_stack_free(stk);
    waiters_resume(&ready);
    if (has_more)
        send_pieces(wi);
    inode_unref(inode);
    piece_left(wb);
    graph_unpin(g);
}

/* The set-id bits are cleared, so the piece has ended. */
static void
privs_killed(struct call_stack *stk)
{
    struct piece *p = stk->owner;
    int ret = coro_call_result(stk);

    call_stack_free(stk);
    leave_queue(p, ret < 0 ? ret : 0);
}

/* Clears set-id bits that another client has set since the caller looked, because a written file must not
 * keep them. Runs with the owner's ids, because the caller may be another user. */
static int
kill_privs(struct piece *p)
{
    const struct iatt *a = &p->stk->reply.post;
    struct call_stack *stk = call_stack_new(privs_killed, p);

    if (!stk)
        return -ENOMEM;
    stk->caller.pid = p->stk->caller.pid;
    stk->caller.uid = a->uid;
    stk->caller.gid = a->gid;
    stk->call.fop = FOP_fsetattr;
    stk->call.loc.inode = inode_ref(p->wi->inode);
    stk->call.fd = fd_ref(p->stk->call.fd);
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = a->mode & 07777 & ~iatt_privs(a);
    call_stack_wind_below(stk, p->wi->wb->xl);
    return 0;
}

static void
piece_ended(struct call_stack *stk)
{
    struct piece *p = stk->owner;
    int err = write_outcome(stk);

    if (!err && stk->call.hint.kind == HINT_KILLS_PRIVS && iatt_privs(&stk->reply.post)) {
        err = kill_privs(p);
        if (!err)
            return;
    }
    leave_queue(p, err);
}

/* ---- queueing -------------------------------------------------------------------------------- */

static bool
is_append(const struct call_stack *stk)
{
    return (stk->call.flags | stk->call.fd->flags) & O_APPEND;
}

/* Copies the call of `from`, which will end before the write. The groups are not copied, because they are not
 * needed on an open file. */
static int
copy_write(const struct call_stack *from, struct call_stack *to)
{
    const struct lk_owner *owner = &from->caller.lk_owner;

    to->caller = from->caller;
    to->caller.groups = NULL;
    to->caller.group_count = 0;
    to->caller.lk_owner.bytes = (const uint8_t *)arena_dup(&to->arena, owner->bytes, owner->len);
    to->call.fop = FOP_writev;
    to->call.flags = from->call.flags;
    to->call.hint = from->call.hint;
    to->call.offset = from->call.offset;
    to->call.size = to->call.payload_bytes = from->call.payload_bytes;
    to->call.loc.inode = inode_ref(from->call.fd->inode);
    to->call.fd = fd_ref(from->call.fd);
    to->call.payload[0] = from->call.payload[0];
    to->call.payload_count = 1;
    to->call.payload_iobuf = iobuf_ref(from->call.payload_iobuf);
    return to->caller.lk_owner.bytes ? 0 : -ENOMEM;
}

/* Counts one more piece. Returns false if the layer stops: wb_stop() sets is_stopping before it reads `left`.
 */
static bool
piece_count(struct wb *wb)
{
    atomic_fetch_add(&wb->left, 1);
    return !atomic_load(&wb->is_stopping);
}

/* Creates a piece, which pins the graph until it has ended. */
static struct piece *
piece_new(struct wb_inode *wi, const struct call_stack *stk)
{
    struct graph *g = wi->wb->xl->graph;
    struct piece *p = mem_get0_owner(pieces, g->owner);
    struct call_stack *copy = p ? call_stack_new(piece_ended, p) : NULL;

    if (copy && !copy_write(stk, copy) && graph_pin(g)) {
        p->wi = wi;
        p->stk = copy;
        p->start = is_append(stk) ? 0 : stk->call.offset;
        p->end = is_append(stk) ? UINT64_MAX : stk->call.offset + stk->call.size;
        return p;
    }
    if (copy)
        call_stack_free(copy);
    mem_put(p);
    return NULL;
}

static bool
is_same_writer(const struct call_stack *a, const struct call_stack *b)
{
    return a->call.fd == b->call.fd && a->call.flags == b->call.flags &&
           a->call.hint.kind == b->call.hint.kind && a->caller.uid == b->caller.uid &&
           a->caller.gid == b->caller.gid && a->caller.pid == b->caller.pid &&
           lk_owner_equal(&a->caller.lk_owner, &b->caller.lk_owner);
}

static void
hold_buffer(struct piece *p)
{
    size_t held = p->stk->call.payload_iobuf->size;

    atomic_fetch_add(&p->wi->wb->held, held - p->held);
    p->held = held;
}

/* Makes room behind the piece's data, in a larger buffer if necessary. */
static bool
piece_make_room(struct piece *p, uint64_t more, uint64_t limit)
{
    struct fop_call *call = &p->stk->call;
    const struct iobuf *buf = call->payload_iobuf;
    char *end = (char *)call->payload[0].iov_base + call->payload_bytes;

    if ((size_t)(buf->bytes + buf->size - end) >= more)
        return true;
    struct iobuf *larger = iobuf_get(limit);

    if (!larger)
        return false;
    memcpy(larger->bytes, call->payload[0].iov_base, call->payload_bytes);
    iobuf_unref(call->payload_iobuf);
    call->payload_iobuf = larger;
    call->payload[0].iov_base = larger->bytes;
    hold_buffer(p);
    return true;
}

/* Under the lock. */
static bool
join_newest(struct wb_inode *wi, const struct call_stack *stk, uint64_t limit)
{
    if (cds_list_empty(&wi->pieces))
        return false;
    struct piece *p = cds_list_entry(wi->pieces.prev, struct piece, link);
    struct fop_call *call = &p->stk->call;

    if (p->is_sent || call->offset + call->size != stk->call.offset ||
        call->size + stk->call.size > limit || !is_same_writer(p->stk, stk) ||
        !piece_make_room(p, stk->call.size, limit))
        return false;
    memcpy((char *)call->payload[0].iov_base + call->size, stk->call.payload[0].iov_base, stk->call.size);
    call->size += stk->call.size;
    call->payload_bytes = call->payload[0].iov_len = call->size;
    if (p->end != UINT64_MAX)
        p->end += stk->call.size;
    return true;
}

/* Returns the context of an open file, which will get the errors of later failures. NULL: no memory. Under
 * the lock. */
static struct wb_file *
file_make(struct wb_inode *wi, struct fd *fd)
{
    struct wb_file *file = fd_ctx(fd, wi->wb->xl);

    if (file)
        return file;
    file = mem_get0_owner(files, wi->wb->xl->graph->owner);
    if (file) {
        file->seen = wi->reported;
        fd_ctx_set(fd, wi->wb->xl, file);
    }
    return file;
}

/* Returns 0 or -ENOMEM. Under the lock. */
static int
queue_write(struct wb_inode *wi, struct call_stack *stk, uint64_t aggregate)
{
    if (!file_make(wi, stk->call.fd))
        return -ENOMEM;
    if (join_newest(wi, stk, aggregate)) {
        wi->count--; /* a waiter for the freed count also waits for a piece to end, so none is woken here */
        return 0;
    }
    struct piece *p = piece_count(wi->wb) ? piece_new(wi, stk) : NULL;

    if (!p) {
        piece_left(wi->wb);
        return -ENOMEM;
    }
    hold_buffer(p);
    p->number = wi->next++;
    cds_list_add_tail(&p->link, &wi->pieces);
    return 0;
}

/* True if the caller must post the job to send pieces. While a piece is under way, its reply will send a
 * piece that is not full. Under the lock. */
static bool
wants_job(struct wb_inode *wi, uint64_t aggregate)
{
    const struct piece *p = cds_list_entry(wi->pieces.prev, struct piece, link);

    if (wi->is_job_posted || p->is_sent || (wi->sent && p->stk->call.size < aggregate))
        return false;
    inode_ref(wi->inode);
    wi->is_job_posted = true;
    return true;
}

/* The pin is for the job. Without a pin the graph is stopping, and the write is not answered early. */
int
wb_queue(struct wb_inode *wi, struct call_stack *stk)
{
    const struct wb_conf *conf = xlator_conf(wi->wb->xl);
    struct graph *g = wi->wb->xl->graph;
    bool is_pinned = graph_pin(g), posts = false;
    CDS_LIST_HEAD(ready);

    pthread_mutex_lock(&wi->lock);
    int err = is_pinned ? queue_write(wi, stk, conf->aggregate) : -ENOTCONN;

    if (err) {
        wi->count--;
        wi->bytes -= stk->call.size;
        take_ready(wi, &ready);
    } else {
        posts = wants_job(wi, conf->aggregate);
    }
    pthread_mutex_unlock(&wi->lock);
    waiters_resume(&ready);
    if (posts)
        worker_post_any(&wi->job);
    else if (is_pinned)
        graph_unpin(g);
    return err;
}
