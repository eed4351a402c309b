/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* For tests of clients: a peer of plain sockets and threads, which does not use Kiln's transport and
 * misbehaves when the procedure's number requests it. */
#ifndef KILN_RPC_CLIENT_TEST_PEER_H
#define KILN_RPC_CLIENT_TEST_PEER_H

#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "rpc/xdr/dump-program.h"
#include "rpc/xdr/rpc-message.h"

/* Check's assertions do not work here, because benchmarks use this file too. */
#define peer_must(holds)                                                                                     \
    do {                                                                                                     \
        if (!(holds)) {                                                                                      \
            fprintf(stderr, "%s:%d: %s does not hold\n", __FILE__, __LINE__, #holds);                        \
            abort();                                                                                         \
        }                                                                                                    \
    } while (0)

enum {
    PEER_PROGRAM = 99,
    PEER_BYTES_MAX = 1 << 20,
    PEER_CONNS_MAX = 4096,
};

enum peer_procedure {
    PEER_ECHO,     /* the arguments come back */
    PEER_NEVER,    /* no answer */
    PEER_LATE,     /* answered with the next PEER_ECHO */
    PEER_TWICE,
    PEER_STRANGER, /* another reply before it, to a call that was never made */
    PEER_CALLS,    /* a call of the peer's before the reply */
    PEER_DENIED,
    PEER_UNAVAIL,
    PEER_CLOSES,   /* no answer, and the connection ends */
    PEER_HALF,     /* half a reply, and the connection ends */
    PEER_BAD_HEAD, /* a reply with an invalid head */
    PEER_BAD_CALL, /* a call with an invalid head */
    PEER_NEITHER,  /* neither call nor reply */
    PEER_SHORT,    /* a record of four bytes */
    PEER_GIANT,    /* a record of 1 GiB is announced */
    PEER_FAULTS,   /* number of procedures */
};
#define PEER_FIRST_FATAL PEER_CLOSES

static struct {
    int fd;
    uint16_t port;
    pthread_t thread;
    pthread_mutex_t lock; /* guards conns */
    int conns[PEER_CONNS_MAX];
    unsigned conn_count;
    atomic_uint running;
    atomic_bool is_deaf; /* pings are not answered */
    _Atomic uint32_t late_xid;
    /* Another program's calls; NULL: refused. Sends its own answer. */
    void (*other)(int fd, const struct rpc_call_head *head, struct xdr *args);
} peer = {.lock = PTHREAD_MUTEX_INITIALIZER};

static inline bool
peer_read(int fd, char *to, size_t bytes)
{
    while (bytes) {
        ssize_t n = recv(fd, to, bytes, 0);

        if (n <= 0)
            return false;
        to += n;
        bytes -= (size_t)n;
    }
    return true;
}

static inline void
peer_write(int fd, const void *bytes, size_t n)
{
    const char *at = bytes;

    while (n) {
        ssize_t sent = send(fd, at, n, MSG_NOSIGNAL);

        if (sent <= 0)
            return; /* the client has gone, which is no error here */
        at += sent;
        n -= (size_t)sent;
    }
}

static inline void
peer_send(int fd, const char *head, size_t head_bytes, const char *body, size_t body_bytes)
{
    char mark[4];

    xdr_store_u32(mark, 0x80000000u | (uint32_t)(head_bytes + body_bytes));
    peer_write(fd, mark, 4);
    peer_write(fd, head, head_bytes);
    peer_write(fd, body, body_bytes);
}

static inline void
peer_reply(int fd, uint32_t xid, const char *body, size_t bytes)
{
    char head[RPC_REPLY_SUCCESS_BYTES];

    rpc_encode_success(head, xid);
    peer_send(fd, head, sizeof head, body, bytes);
}

static inline void
peer_call(int fd, uint32_t program, uint32_t version, uint32_t procedure, const char *body, size_t bytes)
{
    struct rpc_call_head head = {.xid = 1, .program = program, .version = version, .procedure = procedure};
    char out[64];
    struct xdr x;

    xdr_init(&x, out, sizeof out, NULL);
    peer_must(rpc_encode_call_head(&x, &head) == 0);
    peer_send(fd, out, (size_t)(x.at - out), body, bytes);
}

static inline void
peer_words(int fd, uint32_t a, uint32_t b, uint32_t c)
{
    char words[12];

    xdr_store_u32(words, a);
    xdr_store_u32(words + 4, b);
    xdr_store_u32(words + 8, c);
    peer_send(fd, words, sizeof words, NULL, 0);
}

/* False: the connection must end. */
static inline bool
peer_misbehave(int fd, const struct rpc_call_head *head, struct xdr *args)
{
    char out[RPC_REPLY_ERROR_BYTES_MAX];
    size_t bytes = xdr_left(args);
    char mark[4];

    switch ((enum peer_procedure)head->procedure) {
    case PEER_NEVER:
        return true;
    case PEER_LATE:
        atomic_store(&peer.late_xid, head->xid);
        return true;
    case PEER_TWICE:
        peer_reply(fd, head->xid, args->at, bytes);
        break;
    case PEER_STRANGER:
        peer_reply(fd, head->xid + 0x40000, args->at, bytes);
        break;
    case PEER_CALLS:
        peer_call(fd, PEER_PROGRAM, 1, 5, "abcd", 4);
        break;
    case PEER_DENIED:
        peer_send(fd, out, rpc_encode_denied(out, head->xid, RPC_AUTH_REJECTED), NULL, 0);
        return true;
    case PEER_UNAVAIL:
        peer_send(fd, out, rpc_encode_error(out, head->xid, RPC_PROC_UNAVAIL), NULL, 0);
        return true;
    case PEER_CLOSES:
        return false;
    case PEER_HALF:
        xdr_store_u32(mark, 0x80000000u | 100);
        peer_write(fd, mark, 4);
        peer_write(fd, args->at, bytes < 50 ? bytes : 50);
        return false;
    case PEER_BAD_HEAD:
        peer_words(fd, head->xid, RPC_REPLY, 7);
        return true;
    case PEER_BAD_CALL:
        peer_words(fd, head->xid, RPC_CALL, 7);
        return true;
    case PEER_NEITHER:
        peer_words(fd, head->xid, 2, 0);
        return true;
    case PEER_SHORT:
        peer_send(fd, "abcd", 4, NULL, 0);
        return true;
    case PEER_GIANT:
        xdr_store_u32(mark, 0x80000000u | 0x40000000u);
        peer_write(fd, mark, 4);
        return true;
    default:
        break;
    }
    if (head->procedure == PEER_ECHO && atomic_load(&peer.late_xid))
        peer_reply(fd, atomic_exchange(&peer.late_xid, 0), args->at, bytes);
    peer_reply(fd, head->xid, args->at, bytes);
    return true;
}

static inline bool
peer_serve(int fd, char *bytes, size_t n)
{
    static const char zeros[12];
    struct rpc_call_head head;
    struct xdr x;

    xdr_init(&x, bytes, n, NULL);
    if (rpc_decode_call_head(&x, &head))
        return false;
    if (head.program == DUMP_PROGRAM && head.procedure == DUMP_PING) {
        if (!atomic_load(&peer.is_deaf))
            peer_reply(fd, head.xid, zeros, sizeof zeros);
        return true;
    }
    if (head.program == PEER_PROGRAM)
        return peer_misbehave(fd, &head, &x);
    if (peer.other) {
        peer.other(fd, &head, &x);
        return true;
    }
    return false;
}

static inline void *
peer_conn_main(void *arg)
{
    int fd = (int)(intptr_t)arg;
    char *bytes = malloc(PEER_BYTES_MAX), mark[4];

    while (peer_read(fd, mark, 4)) {
        size_t n = xdr_load_u32(mark) & 0x7fffffffu;

        if (n > PEER_BYTES_MAX || !peer_read(fd, bytes, n) || !peer_serve(fd, bytes, n))
            break;
    }
    free(bytes);
    pthread_mutex_lock(&peer.lock);
    for (unsigned i = 0; i < peer.conn_count; i++) {
        if (peer.conns[i] == fd)
            peer.conns[i] = -1;
    }
    shutdown(fd, SHUT_RDWR);
    close(fd);
    pthread_mutex_unlock(&peer.lock);
    peer.running--;
    return NULL;
}

static inline void *
peer_main(void *arg)
{
    int fd;

    while ((fd = accept(peer.fd, NULL, NULL)) >= 0) {
        pthread_t thread;

        pthread_mutex_lock(&peer.lock);
        peer_must(peer.conn_count < PEER_CONNS_MAX);
        peer.conns[peer.conn_count++] = fd;
        pthread_mutex_unlock(&peer.lock);
        peer.running++;
        pthread_create(&thread, NULL, peer_conn_main, (void *)(intptr_t)fd);
        pthread_detach(thread);
    }
    return arg;
}

/* Closes all connections. */
static inline void
peer_hang_up(void)
{
    pthread_mutex_lock(&peer.lock);
    for (unsigned i = 0; i < peer.conn_count; i++) {
        if (peer.conns[i] >= 0)
            shutdown(peer.conns[i], SHUT_RDWR);
    }
    pthread_mutex_unlock(&peer.lock);
}

static inline void
peer_start(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK), .sin_port = htons(port)};
    socklen_t size = sizeof a;
    int one = 1;

    peer.fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    peer_must(setsockopt(peer.fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) == 0);
    peer_must(bind(peer.fd, (struct sockaddr *)&a, sizeof a) == 0);
    peer_must(listen(peer.fd, 64) == 0);
    peer_must(getsockname(peer.fd, (struct sockaddr *)&a, &size) == 0);
    peer.port = ntohs(a.sin_port);
    peer.conn_count = 0;
    peer_must(pthread_create(&peer.thread, NULL, peer_main, NULL) == 0);
}

/* Closes the listener, and waits until all connections have ended. */
static inline void
peer_stop(void)
{
    shutdown(peer.fd, SHUT_RDWR); /* wakes accept() */
    pthread_join(peer.thread, NULL);
    close(peer.fd);
    peer_hang_up();
    while (peer.running)
        usleep(1000);
}

#endif
