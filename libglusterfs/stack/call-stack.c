/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/call-stack.h"

#include <assert.h>
#include <errno.h>

#include "base/zero.h"
#include "fs/client.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-ids.h"
#include "stack/xlator.h"

static struct mem_pool *frame_pool, *stub_pool, *stack_pool;

int
stack_pools_init(void)
{
    int err = mem_pool_make(&frame_pool, MEM_ID_FRAME, sizeof(struct frame), "struct frame");

    err = err ? err : mem_pool_make(&stub_pool, MEM_ID_CALL_STUB, sizeof(struct call_stub), "struct call_stub");
    return err ? err : mem_pool_make(&stack_pool, MEM_ID_CALL_STACK, sizeof(struct call_stack), "struct call_stack");
}

void
call_stack_init(struct call_stack *stk)
{
    zero(stk, sizeof *stk);
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
    call_stack_release(stk);
    mem_put_t(MEM_ID_CALL_STACK, stk);
}

static void
loc_release(struct loc *loc)
{
    inode_unref(loc->inode);
    inode_unref(loc->parent);
    *loc = (struct loc){0};
}

void
call_stack_release(struct call_stack *stk)
{
    for (struct frame *f = stk->frames, *next; f; f = next) {
        next = f->next;
        mem_put_t(MEM_ID_FRAME, f);
    }
    stk->frames = NULL;
    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    fd_unref(stk->call.fd);
    fd_unref(stk->call.fd2);
    loc_release(&stk->call.loc);
    loc_release(&stk->call.loc2);
    stk->reply.fd = stk->call.fd = stk->call.fd2 = NULL;
    stk->reply.iobuf = NULL;
    client_unref(stk->client);
    stk->client = NULL;
    arena_release(&stk->arena);
}

/* Results that are references must not be lost when an error takes the reply's place. */
static void
reply_error(struct call_stack *stk, int err)
{
    struct dict *xdata = stk->reply.xdata; /* layers may have put something there for failures too */

    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    memset(&stk->reply, 0, sizeof stk->reply);
    stk->reply.op_ret = -1;
    stk->reply.op_errno = err;
    stk->reply.xdata = xdata;
}

/* Runs the layers from `xl` down until one answers or takes the stack. */
static void
run(struct call_stack *stk, struct xlator *xl)
{
    enum fop fop = stk->call.fop;
    int verdict = -EOPNOTSUPP; /* no layer left that implements the fop */

    for (; xl; xl = xl->next[fop]) {
        stk->xl = xl;
        verdict = xl->fn[fop](xl, stk);
        if (verdict != XL_PASS)
            break;
        verdict = -EOPNOTSUPP;
    }
    if (verdict == XL_OWNED)
        return; /* stk may be gone already */
    if (verdict < 0)
        reply_error(stk, -verdict);
    call_stack_unwind(stk);
}

void
call_stack_wind(struct call_stack *stk, struct xlator *top)
{
    run(stk, top->fn[stk->call.fop] ? top : top->next[stk->call.fop]);
}

void
call_stack_resume(struct call_stack *stk)
{
    run(stk, stk->xl->next[stk->call.fop]);
}

void
call_stack_retry(struct call_stack *stk)
{
    run(stk, stk->xl);
}

void
call_stack_unwind(struct call_stack *stk)
{
    struct frame *f;

    while ((f = stk->frames)) {
        stk->frames = f->next;
        stk->xl = f->xl;
        int verdict = f->cb(f, stk);
        mem_put_t(MEM_ID_FRAME, f);
        if (verdict == XL_OWNED)
            return;
        assert(verdict == XL_PASS);
    }
    stk->done(stk);
}

void
call_stack_fail(struct call_stack *stk, int err)
{
    assert(err > 0);
    reply_error(stk, err);
    call_stack_unwind(stk);
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
    memset(&f->local, 0, sizeof f->local); /* four stores; of the whole struct it would be a string store: base/zero.h */
    stk->frames = f;
    return f;
}

void
call_stack_answer(struct call_stack *stk, int verdict)
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
        call_stack_fail(stk, -verdict);
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
call_stub_new(struct call_stack *stk, struct xlator *xl, int (*go)(struct xlator *xl, struct call_stack *stk))
{
    struct call_stub *stub = mem_get_owner(stub_pool, xl->graph->owner);

    if (stub)
        *stub = (struct call_stub){.job.run = stub_run, .stk = stk, .xl = xl, .go = go};
    return stub;
}

void
call_stub_post(struct call_stub *stub)
{
    worker_post(&stub->job);
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
