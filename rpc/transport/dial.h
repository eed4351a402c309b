/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dial: connections that this side opens.
 *
 * A dialler makes one attempt at a time. The dialler resolves the name, connects to each address in turn
 * without blocking, and ends with exactly one outcome: the connection is handed to the dialler's ops as an
 * accepted connection would be, or `failed` gets the reason. The owner embeds the dialler and can use it
 * again after an outcome.
 *
 *      dialler_start()  ->  resolve  ->  connect, next address ...  ->  ops->accepted(conn, arg)
 *                                                                   or  failed(dialler, -errno)
 *
 * thread: an outcome comes on a worker, never from within dialler_start() or dialler_cancel().
 * memory: a list of addresses while an attempt runs; nothing otherwise.
 */
#ifndef KILN_RPC_DIAL_H
#define KILN_RPC_DIAL_H

#include <netdb.h>
#include <pthread.h>
#include <sys/un.h>

#include "event/timer.h"
#include "event/worker.h"
#include "rpc/transport/resolve.h"
#include "rpc/transport/transport.h"

#define DIAL_TIMEOUT_MS 20000
#define DIAL_HOST_MAX 255

struct dial_target {
    const char *path; /* of a unix socket; NULL: TCP */
    const char *host; /* a name, or an address of IPv4 or IPv6 */
    uint16_t port;
    /* from a port below 1024, which some servers ask for; from any port when no low port is available */
    bool wants_low_port;
    bool wants_local; /* by local-socket.h, if kilnd listens there and no low port is wanted */
    unsigned timeout_ms; /* for each address; 0: DIAL_TIMEOUT_MS */
    struct tls_config *tls; /* lent until the outcome; NULL: plain */
};

struct dialler;
typedef void (*dial_failed_fn)(struct dialler *d, int err);

enum dial_phase { DIAL_IDLE, DIAL_RESOLVING, DIAL_BETWEEN, DIAL_CONNECTING };

/* All members are dial.c's. `lock` guards phase, result and is_cancelled; the other members belong to the
 * thread that runs the present step. There is one step at a time. */
struct dialler {
    const struct transport_ops *ops;
    dial_failed_fn failed;
    void *arg;
    pthread_mutex_t lock;
    enum dial_phase phase;
    int result; /* of the step that has ended */
    bool is_cancelled;
    bool asks; /* a name: `resolve` has or gets the answer */
    bool is_tcp, wants_low_port, wants_local;
    struct sockaddr_storage local_to; /* the address behind a local socket; family 0: no local socket */
    unsigned timeout_ms;
    struct tls_config *tls;
    struct addrinfo *addresses, *next; /* all, of getaddrinfo(); those not tried yet */
    struct addrinfo unix_address;      /* a list of one */
    struct sockaddr_un unix_to;
    struct resolve resolve;
    struct event_source src;
    struct timer timer;
    struct worker_job step;
};

/* Before any other use; `ops` and `arg` are kept. The owner of the dialler frees its memory after
 * dialler_fini(). */
void dialler_init(struct dialler *d, const struct transport_ops *ops, dial_failed_fn failed, void *arg);
/* No attempt is running. */
void dialler_fini(struct dialler *d);

/* 0, or -ENAMETOOLONG, -EINVAL: no such place can be dialled. */
int dial_target_check(const struct dial_target *target);

/* Begins an attempt; the attempt before has had its outcome. `target` has passed dial_target_check() and is
 * copied. */
void dialler_start(struct dialler *d, const struct dial_target *target);

/* The outcome comes soon: -ECANCELED, unless another outcome is on its way already. Any thread; nothing
 * happens when no attempt runs. */
void dialler_cancel(struct dialler *d);

#endif
