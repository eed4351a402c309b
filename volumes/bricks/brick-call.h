/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-call: a call that the daemon itself sends, as root, to the top of one of its bricks. The caller
 * waits for the reply.
 *
 *     struct brick_call q = {.seen = ..., .arg = ...};
 *     struct call_stack *stk = brick_call_new(&q);     fill stk->call, then
 *     err = brick_call_run(&q, stk, graph);
 *
 * thread: any thread that is registered with RCU and may wait for a disk; not a worker.
 */
#ifndef KILN_VOLUMES_BRICK_CALL_H
#define KILN_VOLUMES_BRICK_CALL_H

#include <semaphore.h>

#include "graph/graph.h"
#include "stack/call-stack.h"

struct brick_call {
    /* Reads the reply of a successful call, on the thread that delivers the reply. May be NULL. The
     * function must copy the data that it keeps, because the reply is freed afterwards. Returns 0 or
     * -errno. */
    int (*seen)(const struct fop_reply *reply, void *arg);
    void *arg;
    sem_t is_answered; /* private, like the next field */
    int err;
};

/* Returns NULL without memory. A call that is not run must be freed with call_stack_free(). */
struct call_stack *brick_call_new(struct brick_call *q);
/* Sends `stk`, consumes it, and waits. Returns 0 or -errno, of the call or of `seen`. The caller must have
 * pinned the graph. */
int brick_call_run(struct brick_call *q, struct call_stack *stk, struct graph *g);

#endif
