/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-call: a call that the daemon itself makes from the top of one of its bricks, as root, and waits for.
 *
 *     struct brick_call q = {.seen = ..., .arg = ...};
 *     struct call_stack *stk = brick_call_new(&q);     fill stk->call, then
 *     err = brick_call_run(&q, stk, graph);
 *
 * thread: any that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_BRICK_CALL_H
#define KILN_VOLUMES_BRICK_CALL_H

#include <semaphore.h>

#include "graph/graph.h"
#include "stack/call-stack.h"

struct brick_call {
    /* Shown the reply of a call that went well, in the thread that answers it; may be NULL. What it keeps it
     * copies: the reply goes. 0 or -errno. */
    int (*seen)(const struct fop_reply *reply, void *arg);
    void *arg;
    sem_t is_answered; /* these two are the module's */
    int err;
};

/* NULL: no memory. Given up before it is run: call_stack_free(). */
struct call_stack *brick_call_new(struct brick_call *q);
/* Takes `stk`. 0 or -errno, of the call or of `seen`. The caller has the graph pinned. */
int brick_call_run(struct brick_call *q, struct call_stack *stk, struct graph *g);

#endif
