/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The private header of test-children: locks (test-children-locks.c) and the index (test-children-index.c) of
 * the bricks in memory. */
#ifndef KILN_CLUSTER_TEST_CHILDREN_INTERNAL_H
#define KILN_CLUSTER_TEST_CHILDREN_INTERNAL_H

#include "xlators/cluster/test-children.h"

/* Answers a call of a child: `ret` is the result or -errno. */
void child_call_answer(struct call_stack *stk, int ret);

bool is_lock_call(enum fop fop);
/* Returns whether the call releases a lock. A brick that serves other calls never refuses such a call. */
bool is_unlock(const struct fop_call *call);
/* Serves a lock call on the object. Returns 0, 1 if the call waits, or -errno. */
int lock_serve(unsigned child, struct call_stack *stk, const struct gfid *gfid);
/* Returns the number of locks of the object, including those that wait. */
int64_t locks_count(unsigned child, const struct gfid *gfid, bool is_entry);
/* Ends a connection: drops its locks, and fails the calls that wait for a lock. */
void locks_drop_child(unsigned i);
/* Grants the waiting locks that have become free. */
void locks_grant_waiting(void);

/* ---- the index of pending heals (test-children-index.c) -------------------------------------- */

/* Returns whether the call is about the brick's virtual folders of the index. */
bool index_is_asked(const struct fop_call *call);
/* Serves such a call, which came to the layer xl. Returns the result or -errno. */
int index_serve(struct store *s, struct xlator *xl, struct call_stack *stk);

#endif
