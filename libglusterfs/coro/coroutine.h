/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* coroutine: straight-line code over wind and unwind.
 *
 *      static void
 *      write_to_both(void *arg)
 *      {
 *          struct fan_out *o = arg;
 *
 *          wind_to_all(o);           each reply counts down; the last one calls coroutine_resume(o->self)
 *          coroutine_yield();        in whichever thread that is, we go on there
 *          unwind(o);
 *      }
 *
 * A coroutine runs on a stack of its own, from the stack pool, in the thread that resumed it, until it yields
 * or its function returns; then that coroutine_resume() returns. Afterwards any thread may resume it, the
 * same or another.
 *
 * A reply may come before the coroutine that waits for it has gone to sleep. That is no race: a resume that
 * finds it still running is remembered, and the thread that runs it goes on with it as soon as it yields. So
 * the rule is: each yield is answered with exactly one resume, which may come earlier.
 *
 * Because a coroutine may wake up in another thread, a function that yields, itself or through what it calls,
 *   - holds no lock, no RCU read section and nothing else that belongs to a thread while it yields;
 *   - does not use thread-local variables itself, and does not keep a pointer to one: a compiler may compute
 *     such an address once and use it on both sides of the yield, and gcc does. errno and pthread_self() are
 *     such, and what mem_get_t() and the other inline forms read: it calls mem_get() instead, or a function
 *     of its own that is not inlined. Whatever is called after the yield finds the new thread's variables.
 * The yield is a call that no compiler sees through, so ordinary variables need no care.
 */
#ifndef KILN_CORO_COROUTINE_H
#define KILN_CORO_COROUTINE_H

#include <stdbool.h>

struct coroutine;
struct stack_pool;

typedef void (*coroutine_fn)(void *arg);

/* A coroutine that will run fn(arg) when it is first resumed. It lies on its own stack: nothing else is
 * allocated.
 * owner   the caller, until the coroutine's function returns
 * errors  those of stack_take: -EAGAIN (too many), -ENOMEM
 */
int coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out);

/* Give one back that was never resumed. One that was must run to the end of its function. */
void coroutine_free(struct coroutine *c);

/* Run c in the calling thread until it yields or ends, or, if it is still running, have it go on when it
 * yields. True: its function has returned in this call, its stack is back in the pool, c is no more. False
 * says nothing: another thread may already have finished it. May be called in a coroutine; on itself too, as
 * a reply does that comes before wind() has returned: then its next yield returns at once. */
bool coroutine_resume(struct coroutine *c);

/* Sleep until resumed. Only in a coroutine. */
void coroutine_yield(void);

/* The one that runs in this thread now, or NULL. */
struct coroutine *coroutine_self(void);

#endif
