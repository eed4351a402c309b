/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* coroutine: the states of coroutines and their transfer from one thread to another. */
#include "coro/coroutine.h"
#include "coro/switch.h"
#include "coro/stack-pool.h"

#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(__SANITIZE_ADDRESS__)
#define CORO_ASAN 1
#elif defined(__SANITIZE_THREAD__)
#define CORO_TSAN 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define CORO_ASAN 1
#elif __has_feature(thread_sanitizer)
#define CORO_TSAN 1
#endif
#endif

/*             new        resume              the runner, after a yield
 *               |      +---------> RUNNING ---------------------> ASLEEP
 *               v      |              |  resume, from elsewhere     |
 *            ASLEEP ---+              v                             |
 *               ^                   WOKEN  the runner sees it and runs c again
 *               +---------------------------------------------------+
 * The thread that moves c from ASLEEP to RUNNING owns it (the runner); the runner gives c up with the move
 * back, and then must not touch it. */
enum state { ASLEEP, RUNNING, WOKEN };

/* Lies at the top of its own stack. */
struct coroutine {
    struct switch_point here;   /* point at which it sleeps */
    struct switch_point runner; /* point at which its runner waits */
    /* the coroutine that ran in the runner's thread and resumed this one; or NULL */
    struct coroutine *outer;
    struct stack *stack;
    coroutine_fn fn;
    void *arg;
    uint32_t state; /* enum state, atomic */
    bool has_started, has_ended;
#ifdef CORO_ASAN
    void *fake_stack;
    const void *runner_low;
    size_t runner_bytes;
#endif
#ifdef CORO_TSAN
    void *fiber, *runner_fiber;
#endif
};

static __thread struct coroutine *running;

/* Never inlined: a function that has switched must not use the address of `running` from before. */
__attribute__((noinline)) struct coroutine *
coroutine_self(void)
{
    __asm__ volatile("" ::: "memory");
    return running;
}

/* ---- reports to the sanitizers --------------------------------------------------------------- */

#ifdef CORO_ASAN
void __sanitizer_start_switch_fiber(void **fake_stack_save, const void *bottom, size_t size);
void __sanitizer_finish_switch_fiber(void *fake_stack_save, const void **bottom_old, size_t *size_old);
#endif
#ifdef CORO_TSAN
void *__tsan_get_current_fiber(void);
void *__tsan_create_fiber(unsigned flags);
void __tsan_destroy_fiber(void *fiber);
void __tsan_switch_to_fiber(void *fiber, unsigned flags);
#endif

static inline void
fiber_new(struct coroutine *c)
{
    (void)c;
#ifdef CORO_TSAN
    c->fiber = __tsan_create_fiber(0);
#endif
}

static inline void
fiber_free(struct coroutine *c)
{
    (void)c;
#ifdef CORO_TSAN
    __tsan_destroy_fiber(c->fiber);
#endif
}

/* The runner is about to switch to c; returns the argument for runner_is_back(). */
static inline void *
runner_leaves(struct coroutine *c)
{
    void *fake_stack = NULL;

    (void)c;
#ifdef CORO_ASAN
    __sanitizer_start_switch_fiber(&fake_stack, c->stack->low, (size_t)(c->stack->top - c->stack->low));
#endif
#ifdef CORO_TSAN
    c->runner_fiber = __tsan_get_current_fiber();
    __tsan_switch_to_fiber(c->fiber, 0);
#endif
    return fake_stack;
}

static inline void
runner_is_back(void *fake_stack)
{
    (void)fake_stack;
#ifdef CORO_ASAN
    __sanitizer_finish_switch_fiber(fake_stack, NULL, NULL);
#endif
}

static inline void
coroutine_leaves(struct coroutine *c, bool for_ever)
{
    (void)c, (void)for_ever;
#ifdef CORO_ASAN
    __sanitizer_start_switch_fiber(for_ever ? NULL : &c->fake_stack, c->runner_low, c->runner_bytes);
#endif
#ifdef CORO_TSAN
    __tsan_switch_to_fiber(c->runner_fiber, 0);
#endif
}

static inline void
coroutine_arrives(struct coroutine *c)
{
    (void)c;
#ifdef CORO_ASAN
    __sanitizer_finish_switch_fiber(c->fake_stack, &c->runner_low, &c->runner_bytes);
#endif
}

/* ---- life ------------------------------------------------------------------------------------ */

/* The first function on every coroutine's stack. */
static void
coroutine_entry(void)
{
    struct coroutine *c = coroutine_self();

    coroutine_arrives(c);
    c->fn(c->arg);
    c->has_ended = true;
    coroutine_leaves(c, true);
    switch_stack(&c->here, &c->runner);
    abort(); /* an ended coroutine is never resumed */
}

int
coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out)
{
    struct coroutine *c;
    struct stack *s;
    int err = stack_take(stacks, &s);

    if (err)
        return err;
    c = (struct coroutine *)(void *)((uintptr_t)(s->top - sizeof(*c)) & ~(uintptr_t)63);
    *c = (struct coroutine){ .stack = s, .fn = fn, .arg = arg, .state = ASLEEP };
    switch_point_init(&c->here, s->low, (char *)c, coroutine_entry);
    fiber_new(c);
    *out = c;
    return 0;
}

/* Frees the coroutine. Must not run on its stack. */
static void
coroutine_retire(struct coroutine *c)
{
    fiber_free(c);
    stack_release(c->stack);
}

void
coroutine_free(struct coroutine *c)
{
    assert(__atomic_load_n(&c->state, __ATOMIC_RELAXED) == ASLEEP && !c->has_started);
    coroutine_retire(c);
}

/* Runs c until it yields or ends. */
static void
coroutine_run(struct coroutine *c)
{
    void *fake_stack;

    c->outer = running;
    running = c;
    fake_stack = runner_leaves(c);
    switch_stack(&c->runner, &c->here);
    runner_is_back(fake_stack);
    running = c->outer; /* valid: the runner has not yielded, so it is still in the same thread */
}

/* True: the caller must run c. False: its present runner will continue with it. */
static bool
coroutine_wake(struct coroutine *c)
{
    uint32_t state = __atomic_load_n(&c->state, __ATOMIC_RELAXED);
    uint32_t next;

    do {
        assert(state != WOKEN); /* two resumes for one yield */
        next = state == ASLEEP ? RUNNING : WOKEN;
    } while (!__atomic_compare_exchange_n(&c->state, &state, next, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
    return next == RUNNING;
}

/* True: c sleeps, and this thread has given it up. False: c was woken meanwhile. */
static bool
coroutine_put_to_sleep(struct coroutine *c)
{
    uint32_t state = RUNNING;

    if (__atomic_compare_exchange_n(&c->state, &state, ASLEEP, false, __ATOMIC_RELEASE, __ATOMIC_ACQUIRE))
        return true;
    __atomic_store_n(&c->state, RUNNING, __ATOMIC_RELAXED);
    return false;
}

bool
coroutine_resume(struct coroutine *c)
{
    if (!coroutine_wake(c))
        return false;
    c->has_started = true;
    do {
        coroutine_run(c);
        if (c->has_ended) {
            coroutine_retire(c);
            return true;
        }
    } while (!coroutine_put_to_sleep(c));
    return false;
}

void
coroutine_yield(void)
{
    struct coroutine *c = coroutine_self();

    assert(c);
    coroutine_leaves(c, false);
    switch_stack(&c->here, &c->runner);
    coroutine_arrives(c);
}
