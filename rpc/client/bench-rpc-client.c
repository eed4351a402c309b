/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* bench-rpc-client [CALLS [DEPTH]]: measures LOOKUPs to a peer in the same process, DEPTH at a time, and
 * counts the allocator calls and mutex operations of a warm call, by wrapping both at link time. Each
 * reply sends the next call, as a client's layers do. Exit status 1 when a warm call has allocated.
 *
 * Instructions: KILN_POOLS=on valgrind --tool=callgrind --toggle-collect=rpc_client_fop bench-rpc-client
 * 10000 (and client_record for the way back). */
#include <semaphore.h>
#include <stdio.h>

#include "event/worker.h"
#include "mem/mem-pool.h"
#include "rpc/client/rpc-client.h"
#include "rpc/client/test-peer.h"
#include "rpc/xdr/fop-codec.h"

static atomic_long mallocs, locks, replies;
static long calls_left, depth = 1;
static atomic_long in_flight;
static sem_t up, gone, done;
static struct rpc_client *client;
static char answer_bytes[512];
static size_t answer_size;

/* ---- counters -------------------------------------------------------------------------------- */

void *__real_malloc(size_t);
void *__real_calloc(size_t, size_t);
int __real_pthread_mutex_lock(pthread_mutex_t *);
void *__wrap_malloc(size_t);
void *__wrap_calloc(size_t, size_t);
int __wrap_pthread_mutex_lock(pthread_mutex_t *);

void *
__wrap_malloc(size_t n)
{
    mallocs++;
    return __real_malloc(n);
}

void *
__wrap_calloc(size_t n, size_t size)
{
    mallocs++;
    return __real_calloc(n, size);
}

int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    atomic_fetch_add_explicit(&locks, 1, memory_order_relaxed);
    return __real_pthread_mutex_lock(m);
}

/* ---- the peer -------------------------------------------------------------------------------- */

static void
make_answer(void)
{
    struct fop_reply r = {0};
    struct xdr x;

    xdr_init(&x, answer_bytes, sizeof answer_bytes, NULL);
    peer_must(fop_encode_reply(FOP_lookup, &x, &r) == 0);
    answer_size = (size_t)(x.at - answer_bytes);
}

static void
answer(int fd, const struct rpc_call_head *head, struct xdr *args)
{
    char out[4 + RPC_REPLY_SUCCESS_BYTES + sizeof answer_bytes];

    (void)args;
    xdr_store_u32(out, 0x80000000u | (uint32_t)(RPC_REPLY_SUCCESS_BYTES + answer_size));
    rpc_encode_success(out + 4, head->xid);
    memcpy(out + 4 + RPC_REPLY_SUCCESS_BYTES, answer_bytes, answer_size);
    peer_write(fd, out, 4 + RPC_REPLY_SUCCESS_BYTES + answer_size);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void answered(struct rpc_reply *r, void *arg);
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

/* The bench's own lock is not counted: this calls it by its real name. */
static bool
take_turn(void)
{
    __real_pthread_mutex_lock(&turn);
    bool has = calls_left > 0;

    calls_left -= has;
    pthread_mutex_unlock(&turn);
    return has;
}

static void
send_one(void)
{
    static const struct caller caller = {.pid = 7,
                                         .lk_owner = {.len = 4, .bytes = (const uint8_t *)"\7\0\0"}};
    struct fop_call call = {.fop = FOP_lookup, .pargfid = gfid_root, .name = "a-name"};

    peer_must(rpc_client_fop(client, &call, &caller, NULL, 0, answered, NULL) == 0);
}

static void
answered(struct rpc_reply *r, void *arg)
{
    struct arena arena = {0};
    struct fop_reply reply;

    (void)arg;
    rpc_reply_fop(r, FOP_lookup, &reply, &arena);
    peer_must(reply.op_ret == 0);
    iobuf_unref(reply.iobuf);
    arena_release(&arena);
    replies++;
    if (take_turn())
        send_one();
    else if (atomic_fetch_sub(&in_flight, 1) == 1)
        sem_post(&done);
}

static void
connected(struct rpc_client *c, void *arg)
{
    (void)arg;
    peer_must(rpc_client_up(c));
    sem_post(&up);
}

static void
client_gone(void *arg)
{
    (void)arg;
    sem_post(&gone);
}

static void
run(long calls)
{
    replies = 0;
    calls_left = calls - depth;
    in_flight = depth;
    for (long i = 0; i < depth; i++)
        send_one();
    while (sem_wait(&done))
        ;
}

int
main(int argc, char **argv)
{
    static const struct rpc_client_ops ops = {.connected = connected, .gone = client_gone};
    long calls = argc > 1 ? atol(argv[1]) : 20000;
    int err;

    depth = argc > 2 ? atol(argv[2]) : 1;
    if (calls < depth || depth < 1 || mem_pools_init() || arena_pools_init() || iobuf_pools_init() ||
        dict_pools_init() || transport_pools_init() || workers_start(&(struct worker_options){.min = 3}))
        return EXIT_FAILURE;
    sem_init(&up, 0, 0);
    sem_init(&gone, 0, 0);
    sem_init(&done, 0, 0);
    make_answer();
    peer.other = answer;
    peer_start(0);
    client = rpc_client_new(&(struct rpc_client_options){.name = "peer",
                                                         .where = {.host = "127.0.0.1", .port = peer.port},
                                                         .ping_timeout_s = 42},
                            &ops, NULL, &err);
    rpc_client_start(client);
    while (sem_wait(&up))
        ;
    run(calls); /* warms */
    mallocs = locks = 0;
    run(calls);
    long allocated = mallocs, locked = locks;

    printf("%ld calls, %ld at a time: %ld of malloc, %.2f mutexes a call\n", (long)replies, depth, allocated,
           (double)locked / (double)replies);
    rpc_client_close(client);
    while (sem_wait(&gone))
        ;
    peer_stop();
    transport_close_all();
    workers_stop();
    mem_pools_fini();
    return allocated ? EXIT_FAILURE : EXIT_SUCCESS;
}
