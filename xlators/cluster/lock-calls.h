/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-calls: locks that a layer passes from its caller to its children: lk of an application, inodelk and
 * entrylk of a layer above. All clients begin with the first child: of two clients that want a lock one gets
 * the lock there. A client that does not wait for a lock then asks the rest of the children at once. A client
 * that waits asks one child after the other, so that two clients of which one cannot reach the first child do
 * not wait for each other. A client that dies between two of these calls leaves locks on some children, which
 * the children drop with the connection. A child that dies has no locks afterwards.
 *
 * thread: as fan.h. */
#ifndef KILN_CLUSTER_LOCK_CALLS_H
#define KILN_CLUSTER_LOCK_CALLS_H

#include "xlators/cluster/fan.h"

/* Returns whether the call is about a name of a folder (entrylk), not about a range. */
bool lock_call_is_of_name(const struct fop_call *call);
/* Returns whether the call is an unlock of any kind of lock. */
bool lock_call_is_unlock(const struct fop_call *call);
/* Returns whether the caller waits for a lock that another client has. */
bool lock_call_waits(const struct fop_call *call);
/* Make the call a lock that waits, a lock that does not wait, and the unlock of the same lock. */
void lock_call_to_wait(struct fop_call *call);
void lock_call_to_try(struct fop_call *call);
void lock_call_to_unlock(struct fop_call *call);

/* Sends the lock to the children of `on` in the order above, and skips children that are down. The first
 * grant goes to `caller`. Returns 0, or the error of a child that has refused the lock. *has: children that
 * have granted the lock; the caller of this function judges whether these are enough, and unlocks them if
 * not. */
int lock_calls_in_turn(const struct fan_maker *m, struct call_stack *caller, child_set on, child_set *has);
/* Asks the children of `on` one after the other for the holder of the lock, until a child knows a holder.
 * Returns 0 with the reply in `caller`, or -errno. */
int lock_calls_find_holder(const struct fan_maker *m, struct call_stack *caller, child_set on);

#endif
