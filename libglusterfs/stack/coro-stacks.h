/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* coro-stacks: the size of the stacks of coroutines (coro-call.h), for the programs that choose one. */
#ifndef KILN_STACK_CORO_STACKS_H
#define KILN_STACK_CORO_STACKS_H

#include <stddef.h>

/* Like coro_stacks_init(), with stacks of so many bytes, for a process in which bricks run on the stacks of
 * coroutines. Only touched pages take memory. 0 or -ENOMEM. Main thread. */
int coro_stacks_init_of(size_t bytes);

#endif
