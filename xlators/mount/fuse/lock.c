/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Locks of fcntl(2) and flock(2). Both are the brick's posix locks, distinguished by the owner that the
 * kernel passes; so both kinds exclude each other between mounts, as on stock's mounts.
 *
 * A signal can interrupt a request that waits at the brick. The mount then asks the brick to remove this
 * caller's waiting requests for the range, and the brick answers these requests with EINTR. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "stack/lock-cmd.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { LOCK_WITHDRAWN = INT_MIN };

static uint32_t
wire_lock_type(int native)
{
    return native == F_RDLCK ? FLOCK_READ : native == F_WRLCK ? FLOCK_WRITE : FLOCK_UNLOCK;
}

static void
set_lock(struct task *t, uint32_t cmd, uint32_t type, off_t start, off_t len, pid_t pid)
{
    struct fop_call *call = &t->stk->call;

    call->cmd = cmd;
    call->type = type;
    call->flock = (struct fop_flock){
        .type = type, .start = start, .len = len, .pid = (uint32_t)pid, .owner = t->stk->caller.lk_owner};
}

/* ---- interruption ---------------------------------------------------------------------------- */

static void
fuse_interrupt_go(struct task *t)
{
    (void)task_call(t); /* the interrupted request gets a separate reply */
}

struct task *
lock_call_off(struct task *waiting)
{
    const struct fop_flock *lock = &waiting->stk->call.flock;
    struct task *t = task_new_inside(waiting, FOP_fgetxattr, fuse_interrupt_go);
    char name[128];

    if (!t)
        return NULL;
    snprintf(name, sizeof name, "glusterfs.intrlk.tposix.kblocked.%u,%lld-%lld", lock->whence,
             (long long)lock->start, (long long)lock->len);
    t->stk->call.name = task_text(t, name);
    t->stk->call.has_name = 1;
    return t;
}

/* Called by libfuse, in a worker, under the request's lock: `data` is the waiting task, which cannot end
 * meanwhile. */
static void
interrupted(fuse_req_t req, void *data)
{
    struct task *t = lock_call_off(data);

    (void)req;
    if (t)
        task_start(t); /* out of memory: the request continues to wait */
}

/* ---- locking --------------------------------------------------------------------------------- */

static void
lock_wait_begin(struct task *t, struct lock_wait *w)
{
    const char *request = device_request(&w->bytes);

    w->task = t;
    w->is_called_off = false;
    w->bytes = w->bytes <= sizeof w->request ? w->bytes : 0;
    memcpy(w->request, request, w->bytes);
    pthread_mutex_lock(&t->m->lock);
    cds_list_add_tail(&w->link, &t->m->lock_waits);
    pthread_mutex_unlock(&t->m->lock);
}

/* Appends the request, or leaves the earlier requests as they are. 0 or -ENOMEM. */
static int
keep_withdrawn(struct parcel *all, const struct lock_wait *w)
{
    size_t used = all->used;

    parcel_put_bytes(all, w->request, w->bytes);
    if (!all->is_broken)
        return 0;
    all->used = used;
    all->is_broken = false;
    return -ENOMEM;
}

/* Returns the result of the wait. LOCK_WITHDRAWN: the request was called off, and the next program of this
 * process makes the request again, so there is no answer. */
static int
lock_wait_end(struct task *t, struct lock_wait *w, int ret)
{
    pthread_mutex_lock(&t->m->lock);
    cds_list_del(&w->link);
    if (w->is_called_off && ret == -EINTR && !fuse_req_interrupted(t->req))
        ret = keep_withdrawn(&t->m->withdrawn, w) ? -ENOMEM : LOCK_WITHDRAWN;
    pthread_mutex_unlock(&t->m->lock);
    return ret;
}

/* Waits for the lock, possibly without limit. */
static int
wait_for_lock(struct task *t)
{
    int ret;

    do {
        if (fuse_req_interrupted(t->req)) /* before the call: there is no waiting request to remove yet */
            return -EINTR;
        fuse_req_interrupt_func(t->req, interrupted, t);
        ret = task_call_waiting(t);
        fuse_req_interrupt_func(t->req, NULL, NULL);
    } while (task_follow(t, ret));
    return ret;
}

static int
lock_task_call(struct task *t)
{
    bool waits = t->stk->call.cmd == LK_SET_WAIT && t->stk->call.type != FLOCK_UNLOCK;
    struct fuse_node *node = node_at(t->m, t->number);

    if (!node)
        return -ENOMEM;
    if (t->stk->call.cmd != LK_GET)
        atomic_store(&node->has_had_locks, true);
    if (!waits)
        return task_call(t);
    struct lock_wait w;

    lock_wait_begin(t, &w);
    return lock_wait_end(t, &w, wait_for_lock(t));
}

static void
fuse_setlk_go(struct task *t)
{
    int ret = lock_task_call(t);

    if (ret == LOCK_WITHDRAWN)
        fuse_reply_none(t->req);
    else
        task_result(t, ret);
}

static void
fuse_getlk_go(struct task *t)
{
    static const short native[] = {[FLOCK_READ] = F_RDLCK, [FLOCK_WRITE] = F_WRLCK, [FLOCK_UNLOCK] = F_UNLCK};
    int ret = lock_task_call(t);
    const struct fop_flock *l = &t->stk->reply.flock;

    if (ret < 0 || l->type > FLOCK_UNLOCK) {
        task_fail(t, ret < 0 ? ret : -EIO);
        return;
    }
    struct flock lock = {.l_type = native[l->type],
                         .l_whence = SEEK_SET,
                         .l_start = l->start,
                         .l_len = l->len,
                         .l_pid = (pid_t)l->pid};

    fuse_reply_lock(t->req, &lock);
}

static void
lock_task(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, uint32_t cmd,
          const struct flock *lock, void (*go)(struct task *t))
{
    struct task *t = task_new(req, FOP_lk, number, go);

    if (!t)
        return;
    task_set_file(t, fi);
    task_set_owner(t, fi->lock_owner);
    set_lock(t, cmd, wire_lock_type(lock->l_type), lock->l_start, lock->l_len, lock->l_pid);
    task_start(t);
}

void
op_getlk(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, struct flock *lock)
{
    lock_task(req, number, fi, LK_GET, lock, fuse_getlk_go);
}

void
op_setlk(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, struct flock *lock, int sleep)
{
    lock_task(req, number, fi, sleep ? LK_SET_WAIT : LK_SET, lock, fuse_setlk_go);
}

void
op_flock(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, int op)
{
    struct flock lock = {.l_pid = fuse_req_ctx(req)->pid};

    lock.l_type = op & LOCK_EX ? F_WRLCK : op & LOCK_SH ? F_RDLCK : F_UNLCK;
    lock_task(req, number, fi, op & LOCK_NB ? LK_SET : LK_SET_WAIT, &lock, fuse_setlk_go);
}

void
lock_drop(struct task *t)
{
    struct call_stack *stk = task_call_new(t, FOP_lk);

    if (!stk)
        return; /* RELEASE drops the locks taken through this fd */
    stk->call.cmd = LK_SET;
    stk->call.type = FLOCK_UNLOCK;
    stk->call.flock = (struct fop_flock){
        .type = FLOCK_UNLOCK, .pid = (uint32_t)t->stk->caller.pid, .owner = t->stk->caller.lk_owner};
    (void)task_wind(t, stk);
    call_stack_free(stk);
}
