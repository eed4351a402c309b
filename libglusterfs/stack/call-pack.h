/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* call-pack: a call that waits for as long as others please, kept as small as it can be.
 *
 * A request is some 2,000 bytes, most of them zero, and keeps alive the record it came in and the arena its
 * groups and dicts lie on: 7 KiB in all. Packed, it is the words that are not zero and a copy of each text
 * they point to: some 400 bytes for a lock.
 *
 *      call_stack_park(stk)          under the lock of the layer that parks it
 *      p = call_stack_pack(stk)      the same; references and frames have moved, `stk` is a shell
 *      call_stack_drop_shell(stk)    once that lock is free: the record, the arena and the request go
 *      ...
 *      stk = call_stack_unpack(p)    whoever wakes it: the call again, at another address
 *
 * So what a frame's `local` points to must not lie in the call or on its arena, in layers above one that
 * packs.
 *
 * thread: that of whoever has the call at this moment, as with call-stack.h. Only calls that somebody embeds
 * in an object of his own, and has given a keeper, can be packed; those made inside the daemon stay as they
 * are.
 */
#ifndef KILN_STACK_CALL_PACK_H
#define KILN_STACK_CALL_PACK_H

#include <stdbool.h>
#include <stddef.h>

struct call_stack;
struct packed_call;

/* Who embeds call stacks, at the beginning of larger objects: stk->keeper. */
struct call_keeper {
    size_t size;                            /* of such an object: a multiple of 8, at most CALL_OBJECT_MAX */
    struct call_stack *(*get)(void);        /* one, contents undefined; NULL: no memory */
    void (*put)(struct call_stack *object); /* gives it back as it is */
    /* `copy` is a copy of a whole object, the arena left out. Clears in it what a waiting call does not need
     * and all that points to the arena or the record, but for what the call stack itself says of them. False:
     * this one cannot be packed. */
    bool (*strip)(struct call_stack *copy);
    /* It is packed, in so many bytes: what `copy` has, `stk` has not any more. No word of `copy` becomes zero
     * or ceases to be. Under the parking layer's lock: it blocks on nothing. */
    void (*moved)(struct call_stack *stk, struct call_stack *copy, size_t bytes);
    void (*drop)(struct call_stack *shell); /* what was left behind goes; no lock is held */
};
#define CALL_OBJECT_MAX 2304
#define CALL_PACKED_MAX 65536 /* a call that would be larger is not packed */

/* What is left of the call, the caller's until it is unpacked; `stk` is a shell then. Under the parking
 * layer's lock: blocks on nothing. NULL: it cannot be packed, or there is no memory; nothing has changed. */
struct packed_call *call_stack_pack(struct call_stack *stk);
/* Frees the shell and what lay on its arena. No lock is held. */
void call_stack_drop_shell(struct call_stack *shell);
/* Uses `p` up. NULL: no memory; `p` is as before, to be tried again. */
struct call_stack *call_stack_unpack(struct packed_call *p);

/* From stack_pools_init(). 0 or -ENOMEM. */
int call_pack_pool_init(void);

#endif
