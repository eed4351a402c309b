/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/coro-call.h"

#include <assert.h>
#include <errno.h>

#include "coro/stack-pool.h"
#include "event/timer.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "mem/iobuf.h"
#include "stack/coro-stacks.h"

/* written by the main thread before other threads exist and after they have ended */
static struct stack_pool *stacks;

int
coro_stacks_init_of(size_t bytes)
{
    return stacks ? 0 : stack_pool_new(&(struct stack_pool_opts){.name = "calls", .bytes = bytes}, &stacks);
}

int
coro_stacks_init(void)
{
    return coro_stacks_init_of(0);
}

void
coro_stacks_end(void)
{
    (void)stack_pool_destroy(stacks); /* a pool that is still in use logs this itself */
    stacks = NULL;
}

struct stack_pool *
coro_stacks(void)
{
    return stacks;
}

int
coro_run(coroutine_fn fn, void *arg)
{
    struct coroutine *c;
    int err = coroutine_new(stacks, fn, arg, &c);

    if (!err)
        coroutine_resume(c);
    return err;
}

/* The `done` of a call stack made here until coro_call() or coro_group_wind() winds it: it must not be
 * called. */
static void
never_wound(struct call_stack *stk)
{
    (void)stk;
    assert(!"answered, but not wound by coro_call() or coro_group_wind()");
}

struct call_stack *
coro_call_new(void)
{
    return call_stack_new(never_wound, NULL);
}

struct call_stack *
coro_call_fork(const struct call_stack *stk)
{
    return call_stack_fork(stk, never_wound, NULL);
}

struct call_stack *
coro_call_new_spare(void)
{
    return call_stack_new_spare(never_wound, NULL);
}

struct call_stack *
coro_call_fork_spare(const struct call_stack *stk)
{
    struct call_stack *fork = coro_call_new_spare();

    return fork ? call_stack_fork_to(fork, stk) : NULL;
}

struct fop_start {
    struct xlator *xl;
    struct call_stack *stk;
    fop_fn go;
};

/* `arg` lies on the stack of the caller of coro_fop(), so it is valid only until the first yield. */
static void
run_fop(void *arg)
{
    struct fop_start s = *(struct fop_start *)arg;

    call_stack_answer(s.stk, s.go(s.xl, s.stk));
}

xl_verdict
coro_fop(struct xlator *xl, struct call_stack *stk, fop_fn go)
{
    struct fop_start s = {xl, stk, go};
    int err = coro_run(run_fop, &s);

    return err ? err : XL_OWNED;
}

int
coro_call_once(struct call_stack *stk, struct xlator *top)
{
    if (!stk)
        return -ENOMEM;
    int ret = coro_call(stk, top);

    call_stack_free(stk);
    return ret;
}

static void
move_dict(struct dict *d, struct call_stack *to)
{
    if (d)
        d->arena = &to->arena;
}

void
coro_call_take_reply(struct call_stack *to, struct call_stack *stk)
{
    fd_unref(to->reply.fd);
    iobuf_unref(to->reply.iobuf);
    to->reply = stk->reply;
    stk->reply.fd = NULL;
    stk->reply.iobuf = NULL;
    stk->reply.holds_inodes = false;
    arena_join(&to->arena, &stk->arena);
    move_dict(to->reply.xdata, to);
    move_dict(to->reply.dict, to);
    call_stack_free(stk);
}

int
coro_call_result(const struct call_stack *stk)
{
    if (stk->reply.op_ret >= 0)
        return stk->reply.op_ret;
    return stk->reply.op_errno > 0 ? -stk->reply.op_errno : -EIO; /* a brick that fails without an errno */
}

static void
one_answered(struct call_stack *stk)
{
    struct coro_group *g = stk->owner;

    if (atomic_fetch_sub_explicit(&g->left, 1, memory_order_acq_rel) == 1)
        coroutine_resume(g->self); /* g lies on the coroutine's stack: it may be gone after this */
}

void
coro_group_begin(struct coro_group *g)
{
    g->self = coroutine_self();
    assert(g->self);
    atomic_init(&g->left, 1);
}

void
coro_group_wind(struct coro_group *g, struct call_stack *stk, struct xlator *top)
{
    stk->done = one_answered;
    stk->owner = g;
    atomic_fetch_add_explicit(&g->left, 1, memory_order_relaxed);
    call_stack_wind(stk, top);
}

void
coro_group_join(struct coro_group *g, struct call_stack *stk, struct call_stack *next, bool always)
{
    next->done = one_answered;
    next->owner = g;
    atomic_fetch_add_explicit(&g->left, 1, memory_order_relaxed);
    call_stack_join(stk, next, always);
}

void
coro_group_wait(struct coro_group *g)
{
    if (atomic_fetch_sub_explicit(&g->left, 1, memory_order_acq_rel) != 1)
        coroutine_yield();
}

struct each {
    struct coro_group group; /* counts the other coroutines, too */
    atomic_size_t next;
    size_t count;
    void (*fn)(void *arg, size_t n);
    void *arg;
};

static void
each_run(struct each *e)
{
    for (size_t n; (n = atomic_fetch_add(&e->next, 1)) < e->count;)
        e->fn(e->arg, n);
}

static void
each_go(void *arg)
{
    struct each *e = arg;

    each_run(e);
    if (atomic_fetch_sub_explicit(&e->group.left, 1, memory_order_acq_rel) == 1)
        coroutine_resume(e->group.self); /* the struct lies on that coroutine's stack: it may be gone now */
}

void
coro_each(unsigned width, size_t count, void (*fn)(void *arg, size_t n), void *arg)
{
    struct each e = {.count = count, .fn = fn, .arg = arg};

    coro_group_begin(&e.group);
    for (unsigned k = 1; k < width && k < count; k++) {
        struct coroutine *c;

        if (coroutine_new(stacks, each_go, &e, &c))
            break;
        atomic_fetch_add_explicit(&e.group.left, 1, memory_order_relaxed);
        coroutine_resume(c);
    }
    each_run(&e);
    coro_group_wait(&e.group);
}

struct pause {
    struct timer timer;
    struct worker_job job;
    struct coroutine *self;
};

static void
pause_over(struct worker_job *job)
{
    coroutine_resume(caa_container_of(job, struct pause, job)->self);
}

static void
pause_due(struct timer *t)
{
    worker_post_any(&caa_container_of(t, struct pause, timer)->job);
}

void
coro_pause(unsigned ms)
{
    struct pause p = {.job.run = pause_over, .self = coroutine_self()};

    assert(p.self);
    timer_init(&p.timer, pause_due);
    timer_start(&p.timer, ms);
    coroutine_yield();
}

int
coro_call(struct call_stack *stk, struct xlator *top)
{
    struct coro_group g;

    coro_group_begin(&g);
    coro_group_wind(&g, stk, top);
    coro_group_wait(&g);
    return coro_call_result(stk);
}
