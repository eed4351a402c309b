/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The bench of the unit tests of the features' layers: a hand-made graph of the layer under test and a bottom
 * layer that the test supplies. The test winds calls from the layer under test and waits for the replies.
 * Worker threads run, so parked calls can be answered. */
#ifndef KILN_FEATURES_TEST_LAYERS_H
#define KILN_FEATURES_TEST_LAYERS_H

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "event/worker.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "graph/pools.h"
#include "mem/mem-pool.h"

static struct graph bench_graph;
static struct xlator bench_layers[2];
static struct xlator *const bench_xl = &bench_layers[0];

static inline void
bench_once(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 8}), 0);
}

/* A bottom layer that lets every call succeed. */
static inline xl_verdict
bench_succeed(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

/* Builds the graph. `options`: key, value, ..., NULL. */
static inline void
bench_setup(const struct xlator_type *type, const char *const *options, fop_fn bottom)
{
    static struct xlator_type bottom_type = {.name = "test/bottom"};
    static struct xlator_ops bottom_ops;
    static atomic_uint parked[FOP_COUNT];
    struct option_value values[16];
    size_t count = 0;
    char error[512] = "";

    bench_once();
    rcu_register_thread();
    for (; options && options[0]; options += 2)
        values[count++] = (struct option_value){.key = options[0], .value = options[1]};
    bench_graph = (struct graph){
        .layers = bench_layers, .layer_count = 2, .brick = bench_xl, .name = (char *)"/bricks/b0"};
    atomic_store(&bench_graph.pins, 1);
    pthread_mutex_init(&bench_graph.clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&bench_graph.clients);
    bottom_ops = (struct xlator_ops){.any = bottom};
    for (int fop = 0; fop < FOP_COUNT; fop++)
        atomic_store(&parked[fop], 0);
    bench_layers[0] = (struct xlator){
        .type = type, .name = "v-layer", .graph = &bench_graph, .ops = type->ops, .parked = parked};
    bench_layers[1] = (struct xlator){
        .type = &bottom_type, .name = "v-bottom", .graph = &bench_graph, .ops = &bottom_ops};
    bench_layers[1].parent = &bench_layers[0];
    for (unsigned path = 0; path < PATH_COUNT; path++)
        xlator_set_next(&bench_layers[0], path, &bench_layers[1]);
    bench_xl->conf = calloc(1, type->conf_size ? type->conf_size : 1);
    ck_assert_msg(
        option_parse(type->options, values, count, bench_xl->conf, NULL, NULL, error, sizeof error) == 0,
        "%s", error);
    graph_number_contexts(&bench_graph);
    bench_graph.inodes = inode_table_new(&bench_graph, 0);
    ck_assert_ptr_nonnull(bench_graph.inodes);
    struct reason why = {""};
    if (type->init)
        ck_assert_msg(type->init(bench_xl, &why) == 0, "%s", why.text);
}

static inline void
bench_teardown(void)
{
    ck_assert_uint_eq(inode_table_free(bench_graph.inodes), 0);
    if (bench_xl->type->fini)
        bench_xl->type->fini(bench_xl);
    option_conf_fini(bench_xl->type->options, bench_xl->conf);
    free(bench_xl->conf);
    pthread_mutex_destroy(&bench_graph.clients_lock);
    rcu_unregister_thread();
}

/* Returns a client with one connection. bench_client_gone() does the same as protocol/server at the
 * connection's end. */
static inline struct brick_client *
bench_client(const char *uid)
{
    struct brick_client_key key = {.uid = uid};
    struct brick_client_facts facts = {.process_name = "test", .version = "10.3", .opversion = 100000};

    atomic_fetch_add(&bench_graph.pins, 1);
    struct brick_client *c = brick_client_connect(&bench_graph, &key, &facts);
    ck_assert_ptr_nonnull(c);
    return c;
}

static inline void
bench_client_gone(struct brick_client *c)
{
    ck_assert(brick_client_disconnect(c));
    brick_client_layers_gone(c);
    brick_client_unref(c);
}

/* Returns an object in the root directory, with a reference. */
static inline struct inode *
bench_inode(const char *name, uint8_t number, uint32_t type)
{
    struct inode *root = inode_root(bench_graph.inodes);
    struct iatt a = {.mode = type | 0644, .gfid.b = {0xaa, [15] = number}};
    struct inode *i = inode_link(bench_graph.inodes, root, name, &a);

    inode_unref(root);
    ck_assert_ptr_nonnull(i);
    return i;
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct bench_call {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    struct call_stack *stk;
};

static inline void
bench_done(struct call_stack *stk)
{
    struct bench_call *call = stk->owner;

    pthread_mutex_lock(&call->lock);
    call->is_done = true;
    call->stk = stk; /* differs from the call's first stack if the stack was packed meanwhile */
    pthread_cond_signal(&call->changed);
    pthread_mutex_unlock(&call->lock);
}

static inline struct bench_call *
bench_call(enum fop fop, struct brick_client *client)
{
    struct bench_call *call = calloc(1, sizeof *call);

    ck_assert_ptr_nonnull(call);
    pthread_mutex_init(&call->lock, NULL);
    pthread_cond_init(&call->changed, NULL);
    call->stk = call_stack_new(bench_done, call);
    ck_assert_ptr_nonnull(call->stk);
    call->stk->call.fop = fop;
    call->stk->client = client ? brick_client_ref(client) : NULL;
    return call;
}

static inline void
bench_wind(struct bench_call *call)
{
    read_section_begin();
    call_stack_wind(call->stk, bench_xl);
    read_section_end();
}

static inline bool
bench_is_done(struct bench_call *call)
{
    pthread_mutex_lock(&call->lock);
    bool is_done = call->is_done;
    pthread_mutex_unlock(&call->lock);
    return is_done;
}

/* Waits for the reply. Returns op_ret, or the negative errno. */
static inline int
bench_result(struct bench_call *call)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    pthread_mutex_lock(&call->lock);
    while (!call->is_done && pthread_cond_timedwait(&call->changed, &call->lock, &until) == 0)
        ;
    bool is_done = call->is_done;
    pthread_mutex_unlock(&call->lock);
    ck_assert_msg(is_done, "no answer to %s", fop_info[call->stk->call.fop].name);
    return call->stk->reply.op_ret < 0 ? -call->stk->reply.op_errno : call->stk->reply.op_ret;
}

static inline void
bench_free(struct bench_call *call)
{
    call_stack_free(call->stk);
    pthread_mutex_destroy(&call->lock);
    pthread_cond_destroy(&call->changed);
    free(call);
}

/* Winds the call, waits for the reply and frees the call. */
static inline int
bench_run(struct bench_call *call)
{
    bench_wind(call);
    int result = bench_result(call);

    bench_free(call);
    return result;
}

/* Winds a call with this pid and these flags. Returns the layer's verdict: 0 or -errno. */
static inline int
bench_ask(enum fop fop, int pid, uint32_t flags)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->caller.pid = pid;
    call->stk->call.flags = flags;
    return bench_run(call);
}

#endif
