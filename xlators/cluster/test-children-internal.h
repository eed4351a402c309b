/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The private header of test-children: the disks of the bricks in memory (test-children-store.c), the calls
 * that they serve (test-children-serve.c), their locks (test-children-locks.c) and their index
 * (test-children-index.c). test-children.c has the scene: clock, queue of calls, faults, graphs. */
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

/* ---- disks (test-children-store.c) ----------------------------------------------------------- */

/* Return the number of the object, or the name in the folder; -1 or NULL: there is none. */
int store_object_of(const struct store *s, const struct gfid *gfid);
struct stored_name *store_name_of(struct store *s, unsigned dir, const char *name);
bool store_is_empty(const struct store *s, unsigned dir);
/* Sets ctime, and mtime if is_contents, to the disk's next time. */
void store_touch(struct store *s, struct stored_object *o, bool is_contents);
/* Abort the test if the disk is full. */
void store_add_name(struct store *s, unsigned dir, const char *name, unsigned object);
void store_drop_name(struct store *s, struct stored_name *n);
struct stored_object *store_add_object(struct store *s, uint32_t mode, const struct gfid *gfid);
void store_resize(struct store *s, struct stored_object *o, uint64_t size);
/* Returns the bytes of a file that a stored byte stands for. */
uint64_t store_scale(void);
/* Returns whether the pair's value is a string of bytes. */
bool pair_has_bytes(const struct dict_pair *p);
/* Returns the number of objects with pending heals. */
int64_t store_pending(const struct store *s);

/* ---- serving (test-children-serve.c) --------------------------------------------------------- */

/* A call on its way to a child. */
struct child_call {
    struct cds_list_head link;
    struct call_stack *stk;
    struct xlator *xl;
    unsigned child;
    bool is_late, is_held;
    /* while it is served */
    struct store *s;
    unsigned dir, dir2; /* indexes of loc.parent and loc2.parent */
};

/* Serves the call on the brick's disk. Returns the result or -errno; 1 of a lock: the call waits. */
int call_serve(struct child_call *c);

/* ---- the index of pending heals (test-children-index.c) -------------------------------------- */

/* Returns whether the call is about the brick's virtual folders of the index. */
bool index_is_asked(const struct fop_call *call);
/* Serves such a call, which came to the layer xl. Returns the result or -errno. */
int index_serve(struct store *s, struct xlator *xl, struct call_stack *stk);

#endif
