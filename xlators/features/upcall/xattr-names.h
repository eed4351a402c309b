/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-names: the extended attributes that clients cache: the names and patterns ("user.*") that they have
 * registered, for the whole brick (spec: brick 10.4). Names are only added. The names of a client that has
 * gone stay, because the next client registers the same ones. At most XATTR_NAMES_MAX.
 *
 * thread: any. Adding takes a lock; readers see a name once `count` includes it.
 */
#ifndef KILN_UPCALL_XATTR_NAMES_H
#define KILN_UPCALL_XATTR_NAMES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "data/dict.h"

#define XATTR_NAMES_MAX 256

struct xattr_names {
    pthread_mutex_t lock; /* held while adding */
    atomic_uint count;
    char *names[XATTR_NAMES_MAX]; /* the first `count` of them never change */
};

void xattr_names_init(struct xattr_names *x);
void xattr_names_fini(struct xattr_names *x);
/* Adds the dict's keys. Returns 0, -ENOMEM, or -ENOSPC if there are too many. */
int xattr_names_add(struct xattr_names *x, const struct dict *keys);
bool xattr_names_has(const struct xattr_names *x, const char *name);
/* Copies the pairs of `d` with registered names to a dict on `a`. `is_removal`: with values of "". *out is
 * NULL if there are none. Returns 0 or -ENOMEM. */
int xattr_names_pick(const struct xattr_names *x, const struct dict *d, bool is_removal, struct arena *a,
                     struct dict **out);

#endif
