/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/call-stack.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/moment.h"
#include "base/spare.h"
#include "base/zero.h"
#include "fs/brick-client.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-ids.h"
#include "stack/call-pack.h"
#include "stack/xlator.h"

static struct mem_pool *frame_pool, *stub_pool, *stack_pool;

int
stack_pools_init(void)
{
    int err = mem_pool_make(&frame_pool, MEM_ID_FRAME, sizeof(struct frame), "struct frame");

    err = err ? err : call_pack_pool_init();
    err =
        err ? err : mem_pool_make(&stub_pool, MEM_ID_CALL_STUB, sizeof(struct call_stub), "struct call_stub");
    return err ? err
               : mem_pool_make(&stack_pool, MEM_ID_CALL_STACK, sizeof(struct call_stack),
                               "struct call_stack");
}

void
call_stack_init(struct call_stack *stk)
{
    zero(stk, sizeof *stk);
}

/* Enough for the pending marks of many replicas: two dicts and their contents. */
#define SPARE_ROOM 4096
#define SPARES 32

static struct spare_call {
    struct call_stack stk; /* must be the first member */
    _Alignas(16) char room[SPARE_ROOM];
} spares[SPARES];
static spare_set spares_used;

static struct spare_call *
spare_of(const struct call_stack *stk)
{
    uintptr_t at = (uintptr_t)stk, first = (uintptr_t)spares;

    return at >= first && at < first + sizeof spares ? &spares[(at - first) / sizeof *spares] : NULL;
}

struct call_stack *
call_stack_new_spare(void (*done)(struct call_stack *), void *owner)
{
    int i = spare_take(&spares_used, SPARES);

    if (i < 0)
        return NULL;
    struct call_stack *stk = &spares[i].stk;

    call_stack_init(stk);
    stk->done = done;
    stk->owner = owner;
    stk->arena.at = spares[i].room;
    stk->arena.end = spares[i].room + SPARE_ROOM;
    return stk;
}

bool
call_stack_is_spare(const struct call_stack *stk)
{
    return spare_of(stk) != NULL;
}

struct call_stack *
call_stack_new(void (*done)(struct call_stack *), void *owner)
{
    struct call_stack *stk = mem_get_t(MEM_ID_CALL_STACK);

    if (!stk)
        return NULL;
    call_stack_init(stk);
    stk->done = done;
    stk->owner = owner;
    return stk;
}

void
call_stack_free(struct call_stack *stk)
{
    struct spare_call *spare = spare_of(stk);

    call_stack_release(stk);
    if (spare)
        spare_give(&spares_used, (unsigned)(spare - spares));
    else
        mem_put_t(MEM_ID_CALL_STACK, stk);
}

static void
loc_release(struct loc *loc)
{
    inode_unref(loc->inode);
    inode_unref(loc->parent);
    *loc = (struct loc){0};
}

static void
entries_release(struct fop_reply *reply)
{
    for (struct dirent_entry *e = reply->entries; e; e = e->next)
        inode_unref(e->inode);
    reply->holds_inodes = false;
}

void
call_stack_release(struct call_stack *stk)
{
    assert(stk->state != CALL_WOUND && stk->state != CALL_PARKED); /* else an answer is still due */
    stk->state = CALL_RELEASED;
    for (struct frame *f = stk->frames, *next; f; f = next) {
        next = f->next;
        mem_put_t(MEM_ID_FRAME, f);
    }
    stk->frames = NULL;
    if (stk->reply.holds_inodes)
        entries_release(&stk->reply);
    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    iobuf_unref(stk->call.payload_iobuf);
    fd_unref(stk->call.fd);
    fd_unref(stk->call.fd2);
    loc_release(&stk->call.loc);
    loc_release(&stk->call.loc2);
    stk->reply.fd = stk->call.fd = stk->call.fd2 = NULL;
    stk->reply.iobuf = stk->call.payload_iobuf = NULL;
    brick_client_unref(stk->client);
    stk->client = NULL;
    moment_unref(stk->replied);
    stk->replied = NULL;
    arena_release(&stk->arena);
}

/* Replaces the reply by an error. References among the results are released first, so they are not lost. */
static void
reply_set_error(struct call_stack *stk, int err)
{
    struct dict *xdata = stk->reply.xdata; /* layers may attach xdata to failures too */

    if (stk->reply.holds_inodes)
        entries_release(&stk->reply);
    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    memset(&stk->reply, 0, sizeof stk->reply);
    stk->reply.op_ret = -1;
    stk->reply.op_errno = err;
    stk->reply.xdata = xdata;
}

/* A layer returned a value that is no verdict. Its caller must not wait for ever. Returns the errno to
 * answer. */
static int __attribute__((cold, noinline))
no_verdict(const struct call_stack *stk, xl_verdict verdict)
{
    assert(verdict && verdict <= XL_OWNED);
    log_event(LOG_CRITICAL, stk->xl, "verdict-missing",
              "%s: the layer returned %d, which is no verdict: answered EIO", fop_info[stk->call.fop].name,
              verdict);
    return EIO;
}

static int
error_of(const struct call_stack *stk, xl_verdict verdict)
{
    return verdict < 0 ? -verdict : no_verdict(stk, verdict);
}

/* A plain WRITE is a WRITE to an open file without synchronous flags and without xdata, from a caller other
 * than an NFS server. Layers with LAYER_SKIPS_PLAIN_WRITES rely on each of these conditions. */
static unsigned
call_path(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    bool is_plain = c->fop == FOP_writev && c->fd && S_ISREG(inode_type(c->fd->inode)) &&
                    !((c->flags | c->fd->flags) & (O_SYNC | O_DSYNC)) && !(c->xdata && c->xdata->count) &&
                    stk->caller.pid != PID_NFS;

    return is_plain ? PATH_PLAIN_WRITE : c->fop;
}

/* Runs the layers from `xl` down until one answers or takes the stack. */
static void
call_stack_run(struct call_stack *stk, struct xlator *xl)
{
    enum fop fop = stk->call.fop;
    unsigned path = stk->path;
    xl_verdict verdict = -EOPNOTSUPP; /* the answer when no layer is left that implements the fop */

    assert(stk->state == CALL_WOUND);

    for (; xl; xl = xlator_next(xl, path)) {
        stk->xl = xl;
        verdict = xlator_fn(xl, fop)(xl, stk);
        if (verdict != XL_PASS)
            break;
        verdict = -EOPNOTSUPP;
    }
    if (verdict == XL_OWNED)
        return; /* stk may be gone already */
    if (verdict != XL_DONE)
        reply_set_error(stk, error_of(stk, verdict));
    call_stack_unwind(stk);
}

static void
call_stack_begin(struct call_stack *stk)
{
    assert(stk->state == CALL_NEW);
    stk->state = CALL_WOUND;
    stk->path = (uint8_t)call_path(stk);
}

void
call_stack_join(struct call_stack *stk, struct call_stack *next, bool always)
{
    assert(!stk->joined);
    call_stack_begin(next);
    next->joins_always = always;
    stk->joined = next;
}

void
call_stack_wind(struct call_stack *stk, struct xlator *top)
{
    call_stack_begin(stk);
    call_stack_run(stk, xlator_first(top, stk->path));
}

void
call_stack_wind_below(struct call_stack *stk, struct xlator *xl)
{
    call_stack_begin(stk);
    call_stack_run(stk, xlator_next(xl, stk->path));
}

void
call_stack_wind_child(struct call_stack *stk, struct xlator *child)
{
    call_stack_run(stk, xlator_first(child, stk->path));
}

static void
loc_take(struct loc *loc)
{
    if (loc->inode)
        inode_ref(loc->inode);
    if (loc->parent)
        inode_ref(loc->parent);
}

struct call_stack *
call_stack_fork(const struct call_stack *stk, void (*done)(struct call_stack *), void *owner)
{
    struct call_stack *fork = call_stack_new(done, owner);

    return fork ? call_stack_fork_to(fork, stk) : NULL;
}

struct call_stack *
call_stack_fork_to(struct call_stack *fork, const struct call_stack *stk)
{
    int err = 0;

    fork->caller = stk->caller;
    fork->client = stk->client ? brick_client_ref(stk->client) : NULL;
    fork->call = stk->call;
    loc_take(&fork->call.loc);
    loc_take(&fork->call.loc2);
    fork->call.fd = stk->call.fd ? fd_ref(stk->call.fd) : NULL;
    fork->call.fd2 = stk->call.fd2 ? fd_ref(stk->call.fd2) : NULL;
    fork->call.payload_iobuf = stk->call.payload_iobuf ? iobuf_ref(stk->call.payload_iobuf) : NULL;
    fork->call.dict = dict_dup(stk->call.dict, &fork->arena, &err);
    fork->call.xdata = err ? NULL : dict_dup(stk->call.xdata, &fork->arena, &err);
    if (!err)
        return fork;
    call_stack_free(fork);
    return NULL;
}

void
call_stack_resume(struct call_stack *stk)
{
    call_stack_run(stk, xlator_next(stk->xl, stk->path));
}

/* Undoes call_stack_park(). stk->xl is the layer that parked the call. */
static void
count_off(struct call_stack *stk)
{
    stk->state = CALL_WOUND;
    call_stack_waited(stk, WAIT_LOCKS);
    if (stk->xl->parked)
        atomic_fetch_sub_explicit(&stk->xl->parked[stk->call.fop], 1, memory_order_relaxed);
}

void
call_stack_park(struct call_stack *stk)
{
    assert(stk->state == CALL_WOUND);
    stk->state = CALL_PARKED;
    call_stack_waits(stk);
    if (stk->xl->parked)
        atomic_fetch_add_explicit(&stk->xl->parked[stk->call.fop], 1, memory_order_relaxed);
    for (struct frame *f = stk->frames; f; f = f->next) {
        if (f->xl->type->call_parks)
            f->xl->type->call_parks(f, stk);
    }
}

void
call_stack_unpark(struct call_stack *stk)
{
    if (stk->state == CALL_PARKED) /* false on a retry because io-threads had no room */
        count_off(stk);
    for (struct frame *f = stk->frames; f; f = f->next) {
        if (f->xl->type->call_goes_on && !f->xl->type->call_goes_on(f, stk))
            return; /* stk may be gone already */
    }
    call_stack_resume(stk);
}

void
call_stack_retry(struct call_stack *stk)
{
    call_stack_run(stk, stk->xl);
}

void
call_stack_unwind(struct call_stack *stk)
{
    struct frame *f;

    if (stk->state == CALL_PARKED)
        count_off(stk);
    assert(stk->state == CALL_WOUND);
    while ((f = stk->frames)) {
        stk->frames = f->next;
        stk->xl = f->xl;
        xl_verdict verdict = f->cb(f, stk);
        mem_put_t(MEM_ID_FRAME, f);
        if (verdict == XL_OWNED)
            return;
        if (verdict != XL_PASS)
            reply_set_error(stk, error_of(stk, verdict));
    }
    stk->state = CALL_ANSWERED;
    if (stk->ends_for)
        stk->ends_for->type->call_ends(stk->ends_for, stk);
    stk->done(stk);
}

void
call_stack_fail(struct call_stack *stk, int err)
{
    assert(err > 0);
    reply_set_error(stk, err);
    call_stack_unwind(stk);
}

xl_verdict
call_stack_unsent(struct call_stack *stk)
{
    reply_set_error(stk, ENOMEM);
    stk->reply.shortage = SHORTAGE_UNSENT;
    return XL_DONE;
}

void
call_stack_again(struct call_stack *stk)
{
    assert(stk->state == CALL_ANSWERED &&
           (stk->reply.shortage == SHORTAGE_UNSENT || stk->reply.op_errno == FOP_NAME_CHANGED));
    memset(&stk->reply, 0, sizeof stk->reply);
    stk->state = CALL_NEW;
}

struct frame *
frame_push(struct call_stack *stk, struct xlator *xl, frame_cb cb)
{
    struct frame *f = mem_get_t(MEM_ID_FRAME);

    if (!f)
        return NULL;
    f->next = stk->frames;
    f->xl = xl;
    f->cb = cb;
    /* four stores; zeroing the whole struct would be a string store: base/zero.h */
    memset(&f->local, 0, sizeof f->local);
    stk->frames = f;
    return f;
}

void
call_stack_answer(struct call_stack *stk, xl_verdict verdict)
{
    switch (verdict) {
    case XL_OWNED:
        break;
    case XL_PASS:
        call_stack_resume(stk);
        break;
    case XL_DONE:
        call_stack_unwind(stk);
        break;
    default:
        call_stack_fail(stk, error_of(stk, verdict));
        break;
    }
}

static void
stub_run(struct worker_job *job)
{
    struct call_stub stub = *caa_container_of(job, struct call_stub, job);

    mem_put_t(MEM_ID_CALL_STUB, caa_container_of(job, struct call_stub, job));
    call_stack_answer(stub.stk, stub.go(stub.xl, stub.stk));
}

struct call_stub *
call_stub_new(struct call_stack *stk, struct xlator *xl,
              xl_verdict (*go)(struct xlator *xl, struct call_stack *stk))
{
    struct call_stub *stub = mem_get_owner(stub_pool, xl->graph->owner);

    if (stub)
        *stub = (struct call_stub){
            .job.run = stub_run,
            .stk = stk,
            .xl = xl,
            .go = go,
            .fop = (uint8_t)stk->call.fop,
            .uid = stk->caller.uid,
            .gid = stk->caller.gid,
            .pid = stk->caller.pid,
        };
    return stub;
}

void
call_stub_post(struct call_stub *stub)
{
    worker_post(&stub->job);
}

void
call_stub_free(struct call_stub *stub)
{
    mem_put_t(MEM_ID_CALL_STUB, stub);
}

struct call_stack *
call_stub_pack(struct call_stub *stub)
{
    struct call_stack *shell = stub->stk;

    if (!(stub->packed = call_stack_pack(shell)))
        return NULL;
    stub->stk = NULL;
    return shell;
}

struct call_stack *
call_stub_unpack(struct call_stub *stub)
{
    if (!stub->stk && (stub->stk = call_stack_unpack(stub->packed)))
        stub->packed = NULL;
    return stub->stk;
}

struct dict *
reply_xdata(struct call_stack *stk)
{
    if (!stk->reply.xdata)
        stk->reply.xdata = dict_new(&stk->arena);
    return stk->reply.xdata;
}

struct dict *
reply_dict(struct call_stack *stk)
{
    if (!stk->reply.dict)
        stk->reply.dict = dict_new(&stk->arena);
    return stk->reply.dict;
}

bool
caller_in_group(const struct caller *c, uint32_t gid)
{
    if (c->gid == gid)
        return true;
    for (uint32_t i = 0; i < c->group_count; i++) {
        if (c->groups[i] == gid)
            return true;
    }
    return false;
}
