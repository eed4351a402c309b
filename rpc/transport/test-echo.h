/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* test-echo: the peers of the transport's tests: an echo server on this transport, and clients that use plain
 * sockets and no code of the transport. Each test has a server, in a process of its own. */
#ifndef KILN_RPC_TEST_ECHO_H
#define KILN_RPC_TEST_ECHO_H

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "event/worker.h"
#include "log/log.h"
#include "rpc/transport/limits.h"
#include "rpc/transport/transport.h"

#define LAST 0x80000000u
#define CLOSE_ME 0xdeadbeefu /* a record that begins so closes its connection */
#define BLOCK_ME 0xb10cb10cu /* ... blocks its worker until the gate opens */
#define DIFFER 0xd1ffe4edu   /* ... is answered by conn_send() with a payload */
#define AMPLIFY 0xa3b1f15eu  /* ... is answered with AMPLE bytes */
#define KEEP_ME 0x4ee93333u  /* ... is kept until release_kept() */
#define WAIT_ME 0x3a174444u  /* ... is kept, and counts as waiting for another call */
#define PAUSE_ME 0x9a5e5555u /* ... is the last record that is read until conn_resume() */
#define AMPLE (1u << 20)

struct echo {
    struct listener *listener, *tcp_listener;
    char dir[64], path[96]; /* the unix socket's */
    bool is_trusting;       /* new connections count as logged in */
    bool is_welcoming;      /* ... as guests */
    bool is_dialing_tcp;    /* dial() does not use the unix socket */
    atomic_int accepted, closed, running;
    sem_t gate, blocked; /* BLOCK_ME: lets a blocked record go on; posted by each blocked record */
    unsigned refused;    /* records of WAIT_ME that were not kept */
    _Atomic(struct conn *) paused; /* of the last PAUSE_ME; a reference */
};
extern struct echo echo;
extern const struct transport_ops echo_ops;

/* Fixtures and their parts: echo_start() opens the listeners; echo_stop() closes all, and waits until all
 * connections have ended. */
void echo_setup(void);
void echo_setup_before_login(void);
void echo_start(bool trusting);
void echo_stop(void);

/* The number of KEEP_ME and WAIT_ME records that are kept now; the number that have been kept so far; a
 * release of all kept records but `leaves`. */
unsigned kept_now(void);
unsigned kept_so_far(void);
void release_kept(unsigned leaves);

/* ---- the clients ----------------------------------------------------------------------------- */

/* Blocking sockets. dial_in_order() returns when the server has the connection: two connections that dial()
 * makes one after the other may arrive in the other order, when the kernel leaves the end of the handshakes
 * to its threads. */
int dial(void);
int dial_in_order(void);
int dial_tcp(uint16_t port);

/* False: the end of the stream. */
bool read_all(int fd, void *to, size_t bytes);
bool write_all(int fd, const void *from, size_t bytes);
void put_mark(void *at, uint32_t mark);

/* A record with its mark: `word`, then bytes that follow from `seed`. To be freed. */
char *make_record(uint32_t word, size_t bytes, unsigned seed);
/* expect(): the record comes back; round_trip(): the record is sent and comes back; expect_end(): the server
 * closes, and so does the client. */
void expect(int fd, const char *record, size_t bytes);
void round_trip(int fd, uint32_t word, size_t bytes, unsigned seed);
void expect_end(int fd);
/* `count` records of 64 bytes that begin with `word`, in one write if the socket has room. */
void send_many(int fd, uint32_t word, unsigned count);
void send_in_fragments(int fd, const char *record, size_t bytes, size_t fragment);

/* Within a minute. */
void wait_count(atomic_int *count, int wanted);

#endif
