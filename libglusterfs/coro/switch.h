/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* switch: changes from one stack to another. Registers that a function must preserve, and on x86-64 the
 * control words of floating point, are saved on the stack that is left. Signal masks belong to the thread
 * and are unchanged.
 *
 * Own code for x86-64 and aarch64; elsewhere, or with -DCORO_UCONTEXT, ucontext, which also makes a system
 * call for the signal mask. Does not work in processes with shadow stacks (CET), which no supported libc
 * turns on. */
#ifndef KILN_CORO_SWITCH_H
#define KILN_CORO_SWITCH_H

#if !defined(CORO_UCONTEXT) && !defined(__x86_64__) && !defined(__aarch64__)
#define CORO_UCONTEXT 1
#endif

#ifdef CORO_UCONTEXT
#include <ucontext.h>

struct switch_point {
    ucontext_t context;
};
#else
struct switch_point {
    void *sp;
};
#endif

/* Makes `at` a point at which the next switch starts entry(), on the stack from low to top; entry must not
 * return. */
void switch_point_init(struct switch_point *at, char *low, char *top, void (*entry)(void));

/* Saves the present point in `from` and continues at `to`. */
void switch_stack(struct switch_point *from, const struct switch_point *to);

#endif
