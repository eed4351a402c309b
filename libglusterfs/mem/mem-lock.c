/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The waiting half of struct mem_lock, which has four bytes, so that each depot and class can have its own
 * lock. */
#include "mem/mem-internal.h"

#include <linux/futex.h>
#include <sys/syscall.h>
#include <unistd.h>

void
mem_lock_wait(struct mem_lock *l)
{
    while (__atomic_exchange_n(&l->word, 2, __ATOMIC_ACQUIRE) != 0)
        syscall(SYS_futex, &l->word, FUTEX_WAIT_PRIVATE, 2, NULL, NULL, 0);
}

void
mem_lock_wake(struct mem_lock *l)
{
    syscall(SYS_futex, &l->word, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
}
