/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* resolve: names to addresses, off the workers: getaddrinfo(3) may wait for a name server for long.
 *
 * A few threads that exist only while names wait; one slow name server does not hold up all others. Addresses
 * in digits need none of this: resolve_digits().
 */
#ifndef KILN_RPC_RESOLVE_H
#define KILN_RPC_RESOLVE_H

#include <netdb.h>
#include <stdbool.h>
#include <stdint.h>
#include <urcu/list.h>

#include "event/worker.h"

struct resolve_query;

/* Embedded in the asker, which sets `done`: the job that is posted when there is an answer. The rest is
 * resolve.c's. */
struct resolve {
    struct worker_job *done;
    struct resolve_query *query; /* NULL: nothing is asked */
    struct addrinfo *addresses;
    int err;
};

/* An address in digits, at once: 0, -EADDRNOTAVAIL (a name), -ENOMEM. */
int resolve_digits(const char *host, uint16_t port, struct addrinfo **out);

/* Asks. 0: `done` is posted later, once, unless resolve_cancel() takes the question back. -ENOMEM, -EAGAIN
 * (no thread): nothing is asked. Any thread; one question at a time. */
int resolve_start(struct resolve *r, const char *host, uint16_t port);

/* The answer, in `done`: 0 and addresses that are the caller's to free; -EADDRNOTAVAIL no such name, -EAGAIN
 * not now, -ENOMEM. */
int resolve_take(struct resolve *r, struct addrinfo **out);

/* True: the question is taken back, and `done` will not be posted. False: no question was open, or `done` is
 * posted already. */
bool resolve_cancel(struct resolve *r);

#endif
