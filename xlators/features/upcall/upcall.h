/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* upcall: the state of one instance of features/upcall, for upcall.c and its test. Any thread may use it. */
#ifndef KILN_UPCALL_UPCALL_H
#define KILN_UPCALL_UPCALL_H

#include "rpc/xdr/callback-program.h"
#include "xlators/features/upcall/watchers.h"
#include "xlators/features/upcall/xattr-names.h"

struct graph;

struct upcall_private {
    struct xattr_names names;
    atomic_ullong sent; /* number of messages sent to clients */
    /* brick_clients_callback_cache_invalidation(), or a function that a test sets before the first call */
    void (*send)(struct graph *g, const uint64_t *clients, unsigned count,
                 const struct cache_invalidation *what);
};

#endif
