/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* coro-call: operations on a graph, written as sequential code in a coroutine.
 *
 *      struct call_stack *stk = coro_call_new();
 *      ... fill stk->call and stk->caller ...
 *      int ret = coro_call(stk, top);          wound at `top`; the coroutine sleeps until the reply has come
 *      ... look at stk->reply ...
 *      call_stack_free(stk);
 *
 * and of several at once:
 *
 *      coro_group_begin(&group);
 *      for (each child)
 *          coro_group_wind(&group, stk[i], child);
 *      coro_group_wait(&group);                all calls have their replies
 *
 * A layer that calls its children and continues after the answers runs the fop function as a coroutine:
 *
 *      static xl_verdict
 *      repl_stat(struct xlator *xl, struct call_stack *stk)
 *      {
 *          return coro_fop(xl, stk, stat_go);      XL_OWNED: stat_go() answers, in any thread
 *      }
 *
 * where stat_go() makes copies of `stk` (coro_call_fork), winds them, waits, fills stk->reply and returns
 * a verdict. `stk` keeps the graph alive: the caller holds a pin until `stk` is answered. Work that
 * continues after the answer, such as a release or a counter, must pin the graph itself (graph_pin).
 *
 * The reply resumes the coroutine in the thread that has read it. The rules of coroutine.h for functions
 * that yield apply to callers of coro_call() and coro_group_wait(): no lock, no read section of the
 * caller's own and no thread-local variable across the call. */
#ifndef KILN_STACK_CORO_CALL_H
#define KILN_STACK_CORO_CALL_H

#include "coro/coroutine.h"
#include "stack/call-stack.h"
#include "stack/xlator.h"

struct stack_pool;

/* coro_stacks_init() makes the one pool of stacks for all coroutines that serve calls, for any number of
 * layers; before the first layer is initialised; 0 or -ENOMEM. coro_stacks_end() frees the pool when all
 * graphs are gone. Main thread. */
int coro_stacks_init(void);
void coro_stacks_end(void);
struct stack_pool *coro_stacks(void);

/* Runs fn(arg) in a new coroutine of that pool, and returns when the coroutine sleeps or has ended. 0 or
 * -errno: there is no stack, and fn was not called. */
int coro_run(coroutine_fn fn, void *arg);

/* Runs `go` in a new coroutine. Called from a fop function, which returns the result as its verdict:
 * XL_OWNED, or -errno if there is no stack. The verdict of `go` is acted on like that of a fop function;
 * if it is XL_OWNED, `go` has answered or arranged the answer. May be called in a coroutine (of a layer
 * above). */
xl_verdict coro_fop(struct xlator *xl, struct call_stack *stk, fop_fn go);

/* Returns a pooled call stack for the calls below: pid, uid and gid are 0 unless changed. NULL: no memory. */
struct call_stack *coro_call_new(void);

/* Like coro_call_new(), with the caller and the arguments of `stk`: call_stack_fork(). */
struct call_stack *coro_call_fork(const struct call_stack *stk);

/* Like the two functions above, but from the reserve for lack of memory: call_stack_new_spare(). */
struct call_stack *coro_call_new_spare(void);
struct call_stack *coro_call_fork_spare(const struct call_stack *stk);

/* Winds `stk` at `top`, as call_stack_wind() does, and waits. Returns op_ret if that is not negative, else
 * -op_errno, which is never 0. The caller keeps `stk`. Only in a coroutine. */
int coro_call(struct call_stack *stk, struct xlator *top);

/* The same, and frees `stk`, also after a failure. NULL: returns -ENOMEM. */
int coro_call_once(struct call_stack *stk, struct xlator *top);

/* Moves the reply of `stk` into the reply of `to`, which is dropped, and frees `stk`. */
void coro_call_take_reply(struct call_stack *to, struct call_stack *stk);

/* Several calls of one coroutine that waits for all of them. The struct lies on the stack of that
 * coroutine. `left` counts the calls without a reply, plus 1 until the coroutine waits. */
struct coro_group {
    struct coroutine *self;
    atomic_uint left;
};

/* Makes an empty group of the running coroutine. */
void coro_group_begin(struct coro_group *g);
/* Winds `stk` at `top`, as coro_call() does, without waiting. The caller keeps `stk` but must not look at
 * it before coro_group_wait(), although the reply may come at once. */
void coro_group_wind(struct coro_group *g, struct call_stack *stk, struct xlator *top);
/* Joins `next`, a call of the group `g`, behind `stk`, a call of this or another group of the coroutine that
 * is not wound yet: call_stack_join(). */
void coro_group_join(struct coro_group *g, struct call_stack *stk, struct call_stack *next, bool always);
/* Called once for each coro_group_begin(), also when no call was wound. */
void coro_group_wait(struct coro_group *g);

/* Calls fn(arg, n) for each n below `count`, in at most `width` coroutines at a time, and returns after the
 * last call has returned. Only in a coroutine, which runs calls itself; without memory for others it runs
 * all. fn is called by several threads at once, with growing n. */
void coro_each(unsigned width, size_t count, void (*fn)(void *arg, size_t n), void *arg);

/* Sleeps for `ms` milliseconds: for polling where no event exists, for example until there is memory. Only
 * in a coroutine. */
void coro_pause(unsigned ms);

/* Returns the result of an answered call stack in the form of coro_call(). */
int coro_call_result(const struct call_stack *stk);

#endif
