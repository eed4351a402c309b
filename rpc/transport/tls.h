/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tls: encryption and identity of one connection, between the socket and receive.c and send.c.
 *
 *     accepted:  SNIFFING --first byte 0x16--> SHAKING --> OPEN        dialled: SHAKING --> OPEN
 *                    |                             |
 *                    | another byte                | bad certificate, silence, an end
 *                    v                             v
 *                  plain, or an alert and an end   an alert, a log line and an end
 *
 * The first byte of a ClientHello is 0x16. As the first byte of a record mark it would announce a fragment of
 * 369 MB that is not the last, which no peer may send, so one port serves both kinds of peers.
 *
 * A handshake's steps run on threads of their own (at most TLS_THREADS_MAX, which exist only while there are
 * steps to run): an RSA signature takes a millisecond of processor time, and files may be read. While a step
 * waits or runs, its thread has the place of the connection's reader (receive.c). So a flood of half
 * handshakes never delays a connection that is open, and delays other handshakes by the bounded number of
 * steps that one address may have in the queue. The peer has not logged in meanwhile:
 * the limits of strangers hold (limits.h), and TLS_SHAKING_BYTES count as its buffers.
 *
 * Open connections encrypt and decrypt on the workers that send and read, under `lock`, because an SSL object
 * may be used by one thread at a time. Payloads are encrypted from where they lie. The ciphertext of up to
 * 256 KiB of messages is gathered in one pooled buffer and sent with one system call; send.c counts the
 * messages as sent when all of it has left.
 *
 * thread: functions of one side (the reader's, the sender's) by one thread at a time, as receive.c and send.c
 * see to it. */
#ifndef KILN_TRANSPORT_TLS_H
#define KILN_TRANSPORT_TLS_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "rpc/transport/tls-config.h"

struct conn;
struct tls;

/* OpenSSL's memory of one handshake, roughly. */
#define TLS_SHAKING_BYTES (64u << 10)
/* This side gives up a dialled connection without an answer for this long, as it gives up an accepted
 * connection without a login (limits.h). Stock sets no limit. A healthy peer needs milliseconds, but a loaded
 * peer some seconds. */
#define TLS_HANDSHAKE_MS 20000

/* For a new connection that no other thread knows yet; takes the reference to `config`. `allows_plain`: an
 * accepted peer may speak without TLS. NULL: no memory, and the reference is dropped. */
struct tls *tls_new(struct conn *c, struct tls_config *config, bool allows_plain);
/* The connection is registered with the loop: its deadline begins. */
void tls_start(struct tls *t);
/* No callback of the object runs or will. */
void tls_stop(struct tls *t);
void tls_free(struct tls *t);

enum tls_progress {
    TLS_GO,    /* open: read on */
    TLS_PLAIN, /* the peer speaks without TLS, and may: read on without this object */
    TLS_WAIT,  /* nothing to do before the peer has sent more */
    /* the next step is to be handed to tls_hand_over() by the reader, which is not the reader then */
    TLS_STEP,
    TLS_ENDS,  /* the connection must end */
};
/* The reader's: what to do next. */
enum tls_progress tls_advance(struct tls *t);
/* The reader's place goes to a thread for handshakes, and from there to the connection's read_job. The caller
 * has made the connection busy for the thread. */
void tls_hand_over(struct tls *t);

/* To a peer that speaks without TLS where TLS is demanded, or with TLS where there is none: a fatal alert, in
 * clear. The alert ends a handshake, and Kiln's client can tell the alert from an answer. */
void tls_send_refusal(int fd);
#define TLS_HANDSHAKE_BYTE 0x16 /* the first byte of a record of this kind */
#define TLS_ALERT_BYTE 0x15
/* The first bytes of a peer's stream are an alert, or a ClientHello. */
static inline bool
tls_is_alert(const unsigned char mark[4])
{
    return mark[0] == TLS_ALERT_BYTE && mark[1] == 3;
}
static inline bool
tls_is_hello(const unsigned char mark[4])
{
    return mark[0] == TLS_HANDSHAKE_BYTE && mark[1] == 3;
}

/* The reader's: as recv() without waiting; -errno instead of -1. *is_short: nothing more is to be had before
 * the next event. */
ssize_t tls_receive(struct tls *t, void *to, size_t room, bool *is_short);
/* The sender's: as sendmsg() without waiting; -errno instead of -1. -EAGAIN also before the handshake has
 * ended; send_writable() is called then. */
ssize_t tls_send(struct tls *t, const struct iovec *iov, size_t count);
/* True if an EPOLLOUT is an event for the reader, because the reader has bytes to send, too. */
bool tls_wants_event(const struct tls *t);
/* The handshake has succeeded. */
bool tls_is_open(const struct tls *t);
/* The common name of the peer's certificate; "": the certificate has none. Once open. */
const char *tls_peer_name(const struct tls *t);
/* Copies the reason for the connection's failure; "": no failure, or none of TLS. Any thread. */
void tls_failure(struct tls *t, char *out, size_t size);

#endif
