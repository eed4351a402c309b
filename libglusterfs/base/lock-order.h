/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-order: whoever may take a lock, but seldom does, says so to the library that watches the order of
 * locks in tests (tests/locks/lock-order.c). Where it is not loaded nothing happens: the symbol is not
 * defined. */
#ifndef KILN_BASE_LOCK_ORDER_H
#define KILN_BASE_LOCK_ORDER_H

#include <pthread.h>

/* The library's. */
extern void kiln_lock_order_may_take(pthread_mutex_t *mutex) __attribute__((weak));

/* This thread may take `mutex` here, with the locks that it holds now. Takes nothing. */
static inline void
lock_order_may_take(pthread_mutex_t *mutex)
{
    if (kiln_lock_order_may_take)
        kiln_lock_order_may_take(mutex);
}

#endif
