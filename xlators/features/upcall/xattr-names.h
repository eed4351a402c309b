/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-names: the extended attributes that clients keep: names and patterns ("user.*") that they have
 * registered, for the whole brick (spec: brick 10.4). Only added to: a client that goes leaves its names,
 * which are the same as the next one's. At most XATTR_NAMES_MAX.
 *
 * thread: any. Adding is under a lock; readers see a name once the count says so.
 */
#ifndef KILN_UPCALL_XATTR_NAMES_H
#define KILN_UPCALL_XATTR_NAMES_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "data/dict.h"

#define XATTR_NAMES_MAX 256

struct xattr_names {
    pthread_mutex_t lock; /* who adds */
    atomic_uint count;
    char *names[XATTR_NAMES_MAX]; /* those before `count` do not change */
};

void xattr_names_init(struct xattr_names *x);
void xattr_names_fini(struct xattr_names *x);
/* The dict's keys. 0, -ENOMEM, or -ENOSPC when they are too many. */
int xattr_names_add(struct xattr_names *x, const struct dict *keys);
bool xattr_names_has(const struct xattr_names *x, const char *name);
/* The pairs of `d` that have such names, in a dict on `a`; with `is_removal` their values are "". NULL in
 * *out: there are none. 0 or -ENOMEM. */
int xattr_names_pick(const struct xattr_names *x, const struct dict *d, bool is_removal, struct arena *a,
                     struct dict **out);

#endif
