/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-order: code that may take a lock, but seldom does, declares this to the library that checks the
 * order of locks in tests (tests/locks/lock-order.c). Without the library this has no effect, because the
 * symbol is not defined. */
#ifndef KILN_BASE_LOCK_ORDER_H
#define KILN_BASE_LOCK_ORDER_H

#include <pthread.h>

/* Defined by the library. */
extern void kiln_lock_order_may_take(pthread_mutex_t *mutex) __attribute__((weak));

/* Declares that this thread may take `mutex` here, with the locks that it holds now. Takes no lock. */
static inline void
lock_order_may_take(pthread_mutex_t *mutex)
{
    if (kiln_lock_order_may_take)
        kiln_lock_order_may_take(mutex);
}

#endif
