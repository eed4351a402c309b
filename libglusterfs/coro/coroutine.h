/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* coroutine: sequential code over wind and unwind.
 *
 *      static void
 *      write_to_both(void *arg)
 *      {
 *          struct fan_out *o = arg;
 *
 *          wind_to_all(o);           each reply counts down; the last one calls coroutine_resume(o->self)
 *          coroutine_yield();        continues in the thread of that reply
 *          unwind(o);
 *      }
 *
 * A coroutine has a stack from the stack pool and runs in the thread that called coroutine_resume(). When the
 * coroutine yields or its function returns, coroutine_resume() returns. Afterwards any thread may resume the
 * coroutine.
 *
 * A reply may come before the coroutine that waits for it has gone to sleep. This is no race: a resume
 * that finds the coroutine still running is remembered, and the thread that runs it continues with it as
 * soon as it yields. So the rule is: each yield is answered with exactly one resume, which may come
 * earlier.
 *
 * Because a coroutine may wake up in another thread, a function that yields, itself or in a function that
 * it calls,
 *   - holds no lock, no RCU read section and no other resource of a thread while it yields;
 *   - does not use thread-local variables itself, and does not keep a pointer to one: a compiler may compute
 *     such an address once and use it on both sides of the yield, and gcc does. Examples are errno,
 *     pthread_self() and the variables of mem_get_t() and the other inline forms: use mem_get() instead, or a
 *     separate function that is not inlined. Functions called after the yield use the new thread's variables.
 * The compiler cannot see through the call of the yield, so ordinary variables need no care. */
#ifndef KILN_CORO_COROUTINE_H
#define KILN_CORO_COROUTINE_H

#include <stdbool.h>

struct coroutine;
struct stack_pool;

typedef void (*coroutine_fn)(void *arg);

/* Makes a coroutine that will run fn(arg) when it is first resumed. The coroutine lies on its own stack:
 * there is no other allocation.
 * owner: the caller, until the coroutine's function returns
 * errors: those of stack_take: -EAGAIN (too many), -ENOMEM */
int coroutine_new(struct stack_pool *stacks, coroutine_fn fn, void *arg, struct coroutine **out);

/* Frees a coroutine that was never resumed. A resumed coroutine must run to the end of its function. */
void coroutine_free(struct coroutine *c);

/* Runs c in the calling thread until c yields or ends. If c is still running, its next yield returns at once.
 * True: the function of c has returned in this call, the stack is back in the pool, and c is gone. False
 * tells nothing: another thread may already have finished c. May be called in a coroutine, even for the
 * running coroutine, as by a reply that comes before wind() has returned. */
bool coroutine_resume(struct coroutine *c);

/* Sleeps until resumed. Only in a coroutine. */
void coroutine_yield(void);

/* The coroutine that runs in this thread now, or NULL. */
struct coroutine *coroutine_self(void);

#endif
