/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* call-pack: keeps a call that waits for other clients in as little memory as possible.
 *
 * A request takes some 2,000 bytes, most of them zero, and keeps alive the record it came in and the arena
 * that holds its groups and dicts: 7 KiB in all. A packed call consists of the words that are not zero and
 * a copy of each text that they point to: some 400 bytes for a lock.
 *
 *      call_stack_park(stk)          under the lock of the layer that parks the call
 *      p = call_stack_pack(stk)      under the same lock; references and frames have moved, `stk` is a shell
 *      call_stack_drop_shell(stk)    without that lock: frees the record, the arena and the request
 *      ...
 *      stk = call_stack_unpack(p)    by the layer that wakes the call: the call again, at another address
 *
 * Layers above one that packs must therefore not let a frame's `local` point into the call or its arena.
 *
 * thread: the thread that has the call at this moment, as with call-stack.h. Only calls that are embedded
 * in a larger object with a keeper can be packed; calls made inside the daemon stay as they are. */
#ifndef KILN_STACK_CALL_PACK_H
#define KILN_STACK_CALL_PACK_H

#include <stdbool.h>
#include <stddef.h>

struct call_stack;
struct packed_call;

/* stk->keeper: how to allocate, strip and free the larger objects that begin with a call stack. */
struct call_keeper {
    /* bytes of such an object: a multiple of 8, at most CALL_OBJECT_MAX */
    size_t size;
    struct call_stack *(*get)(void);        /* a new object, contents undefined; NULL: no memory */
    void (*put)(struct call_stack *object); /* gives the object back as it is */
    /* `copy` is a copy of a whole object, without the arena. Clears the members of `copy` that a waiting
     * call does not need and all pointers into the arena or the record, except those of the call stack
     * itself. False: this object cannot be packed. */
    bool (*strip)(struct call_stack *copy);
    /* The call has been packed into `bytes` bytes: members that `copy` has kept no longer belong to `stk`.
     * The function must not make a word of `copy` zero or nonzero. Runs under the parking layer's lock and
     * must not block. */
    void (*moved)(struct call_stack *stk, struct call_stack *copy, size_t bytes);
    void (*drop)(struct call_stack *shell); /* frees the shell; no lock is held */
};
#define CALL_OBJECT_MAX 2304
#define CALL_PACKED_MAX 65536 /* a call that would be larger is not packed */

/* Returns the packed call, which the caller owns until it is unpacked; `stk` is a shell then. Runs under
 * the parking layer's lock and does not block. NULL: the call cannot be packed or there is no memory;
 * nothing has changed. */
struct packed_call *call_stack_pack(struct call_stack *stk);
/* Frees the shell and the objects on its arena. No lock is held. */
void call_stack_drop_shell(struct call_stack *shell);
/* Consumes `p`. NULL: no memory; `p` is unchanged and the caller may try again. */
struct call_stack *call_stack_unpack(struct packed_call *p);

/* Called by stack_pools_init(). 0 or -ENOMEM. */
int call_pack_pool_init(void);

#endif
