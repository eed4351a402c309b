/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-call.h"

#include <errno.h>

#include "base/read-section.h"

static void
call_done(struct call_stack *stk)
{
    struct brick_call *q = stk->owner;

    q->err = stk->reply.op_ret < 0 ? -stk->reply.op_errno : q->seen ? q->seen(&stk->reply, q->arg) : 0;
    call_stack_free(stk); /* before the post: the waiting caller unpins the graph */
    sem_post(&q->is_answered);
}

struct call_stack *
brick_call_new(struct brick_call *q)
{
    struct call_stack *stk = call_stack_new(call_done, q);

    if (stk)
        stk->caller.pid = PID_INTERNAL;
    return stk;
}

int
brick_call_run(struct brick_call *q, struct call_stack *stk, struct graph *g)
{
    sem_init(&q->is_answered, 0, 0);
    read_section_begin();
    call_stack_wind(stk, g->brick);
    read_section_end();
    while (sem_wait(&q->is_answered) < 0 && errno == EINTR)
        continue;
    sem_destroy(&q->is_answered);
    return q->err;
}
