/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The memory cost of one operation: a call stack of its own, three frames, two dicts with an answer on the
 * arena, a reply buffer, a call-stub, and the release of all of it. Prints one line, in nanoseconds of
 * processor time.
 *
 *     bench-call-stack [ROUNDS]
 *
 * Instructions of one operation: run it under callgrind with N and 2 N rounds (KILN_POOLS=on, because
 * pools are off under valgrind), and take the difference. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "data/dict.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "stack/call-stack.h"
#include "stack/xlator.h"

enum { ROUNDS = 1000000, LAYERS = 3 };

static struct graph graph;
static xl_verdict park(struct xlator *xl, struct call_stack *stk);
static const struct xlator_ops ops = {.fn[FOP_null] = park};
static struct xlator layer = {.graph = &graph, .ops = &ops};
static struct call_stub *parked;
static unsigned long done_count;

static uint64_t
cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

static xl_verdict
see_reply(struct frame *f, struct call_stack *stk)
{
    (void)f;
    stk->reply.op_ret++;
    return XL_PASS;
}

static void
done(struct call_stack *stk)
{
    done_count++;
    call_stack_free(stk);
}

static xl_verdict
answer(struct xlator *xl, struct call_stack *stk)
{
    struct dict *d = reply_xdata(stk), *e = reply_dict(stk);

    (void)xl;
    if (!d || !e || dict_set_str(e, DICT_KEY_GFID_REQ, "an answer"))
        return -ENOMEM;
    stk->reply.iobuf = iobuf_get(4096);
    return stk->reply.iobuf ? XL_DONE : -ENOMEM;
}

static xl_verdict
park(struct xlator *xl, struct call_stack *stk)
{
    for (int i = 0; i < LAYERS; i++)
        if (!frame_push(stk, xl, see_reply))
            return -ENOMEM;
    parked = call_stub_new(stk, xl, answer);
    return parked ? XL_OWNED : -ENOMEM;
}

static int
operation(void)
{
    struct call_stack *stk = call_stack_new(done, NULL);

    if (!stk)
        return 1;
    parked = NULL;
    call_stack_wind(stk, &layer);
    if (!parked)
        return 1;
    parked->job.run(&parked->job); /* as a worker would */
    return 0;
}

int
main(int argc, char **argv)
{
    unsigned long rounds = argc > 1 ? strtoul(argv[1], NULL, 10) : ROUNDS;
    int err = arena_pools_init() | iobuf_pools_init() | dict_pools_init() | stack_pools_init();
    int owner = mem_owner_new("brick");

    if (err || owner < 0)
        return 1;
    graph.owner = (uint16_t)owner;
    for (int i = 0; i < 1000 && !err; i++)
        err = operation();
    uint64_t begin = cpu_ns();

    for (unsigned long i = 0; i < rounds && !err; i++)
        err = operation();
    printf("memory of an operation: %.1f ns\n", (double)(cpu_ns() - begin) / (double)(rounds ? rounds : 1));
    return err || done_count != rounds + 1000 || mem_owner_balance(graph.owner, NULL);
}
