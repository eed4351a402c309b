/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* coro-call: operations on a graph as lines of a coroutine.
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
 *      coro_group_wait(&group);                every one of them has its reply
 *
 * A layer that asks its children and goes on when they have answered has its fop function run as a coroutine:
 *
 *      static xl_verdict
 *      repl_stat(struct xlator *xl, struct call_stack *stk)
 *      {
 *          return coro_fop(xl, stk, stat_go);      XL_OWNED: stat_go() answers, in whichever thread
 *      }
 *
 * where stat_go() makes copies of `stk` (coro_call_fork), winds them, waits, fills stk->reply and returns
 * what a fop function returns. `stk` keeps the graph: who asked holds a pin until it is answered. What goes
 * on after that, a release or a counter that nobody waits for, pins the graph itself (graph_pin).
 *
 * The reply resumes the coroutine in the thread that has read it. What coroutine.h says of a function that
 * yields holds for who calls coro_call() and coro_group_wait(): no lock, no read section of its own, no
 * thread-local variable across the call.
 */
#ifndef KILN_STACK_CORO_CALL_H
#define KILN_STACK_CORO_CALL_H

#include "coro/coroutine.h"
#include "stack/call-stack.h"
#include "stack/xlator.h"

struct stack_pool;

/* The stacks of all coroutines that serve calls: one pool for the process, whatever layers it has. Before the
 * first layer is initialised; 0 or -ENOMEM. The end, when all graphs are gone. Main thread. */
int coro_stacks_init(void);
void coro_stacks_end(void);
struct stack_pool *coro_stacks(void);

/* Runs `go` in a coroutine of its own, from a fop function, whose verdict this is: XL_OWNED, or -errno if
 * there is no stack. What `go` returns is acted on as a fop function's verdict, but for XL_OWNED: then it has
 * answered, or seen to it. May be called in a coroutine (a layer above has one). */
xl_verdict coro_fop(struct xlator *xl, struct call_stack *stk, fop_fn go);

/* A pooled call stack for the calls below: pid, uid and gid 0 until the caller says otherwise. NULL: no
 * memory. */
struct call_stack *coro_call_new(void);

/* The same with the caller and the arguments of `stk`: call_stack_fork(). */
struct call_stack *coro_call_fork(const struct call_stack *stk);

/* Both from those that are kept for when there is no memory: call_stack_new_spare(). */
struct call_stack *coro_call_new_spare(void);
struct call_stack *coro_call_fork_spare(const struct call_stack *stk);

/* Winds `stk` at `top`, as call_stack_wind(), and waits. Its op_ret if that is not negative, else -op_errno,
 * which is never 0. `stk` stays the caller's. Only in a coroutine. */
int coro_call(struct call_stack *stk, struct xlator *top);

/* Several calls of one coroutine, and its waiting for all of them. On the stack of the coroutine that waits.
 * `left` counts the calls that have no reply yet, and one for the coroutine until it waits. */
struct coro_group {
    struct coroutine *self;
    atomic_uint left;
};

/* Empty, of the coroutine that runs. */
void coro_group_begin(struct coro_group *g);
/* Winds `stk` at `top`, as coro_call(), and does not wait. `stk` stays the caller's, who does not look at it
 * before coro_group_wait(); its reply may be there at once. */
void coro_group_wind(struct coro_group *g, struct call_stack *stk, struct xlator *top);
/* Once for each coro_group_begin(), also when nothing was wound. */
void coro_group_wait(struct coro_group *g);

/* Sleeps for so long: who waits for what nobody will tell it of, as memory is. Only in a coroutine. */
void coro_pause(unsigned ms);

/* What a call stack that has its reply says: as coro_call() returns. */
int coro_call_result(const struct call_stack *stk);

#endif
