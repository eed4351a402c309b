/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* For Check tests of clients: the client's process, and a peer of plain sockets (test-peer.h). */
#ifndef KILN_RPC_CLIENT_TEST_CLIENT_H
#define KILN_RPC_CLIENT_TEST_CLIENT_H

#include <check.h>
#include <semaphore.h>

#include "event/worker.h"
#include "graph/pools.h"
#include "mem/mem-pool.h"
#include "rpc/client/test-peer.h"
#include "rpc/transport/transport.h"

/* Makes pools and workers, and starts the peer, which answers unknown calls by `answer` (NULL: refuses
 * them). */
static inline void
client_process_setup(void (*answer)(int fd, const struct rpc_call_head *head, struct xdr *args))
{
    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3}), 0);
    peer.other = answer;
    peer_start(0);
}

/* Called after the last client is gone. */
static inline void
client_process_teardown(void)
{
    peer_stop();
    transport_close_all();
    workers_stop();
    mem_pools_fini();
}

/* Waits, regardless of signals. */
static inline void
wait_on(sem_t *sem)
{
    while (sem_wait(sem))
        ;
}

#endif
