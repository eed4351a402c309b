/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* exchange: a question to kilnd's management socket and kilnd's answer, over HTTP.
 *
 *     exchange_begin()    connects and sends the question
 *     exchange_read()     again and again while more is to come; exchange.fd can be polled in between
 *     exchange_end()      always
 *
 * Why not libcurl: the 35 libraries that libcurl brings raise the processor time of the command's start from
 * 1 ms to 6 ms. This module has to understand kilnd's replies only, and kilnd always sends a Content-Length
 * and no other coding.
 *
 * thread: one thread at a time uses an exchange. */
#ifndef KILN_CLI_EXCHANGE_H
#define KILN_CLI_EXCHANGE_H

#include <stddef.h>

enum { EXCHANGE_MAX = 64 << 20 }; /* bytes of an answer, headers included */

struct exchange {
    int fd;
    char *bytes; /* received bytes, with a 0 behind the last byte */
    size_t size, room;
    size_t head; /* bytes before the body; 0: the headers are not whole yet */
    /* Valid after exchange_read() has returned 1: */
    unsigned status; /* 200 ... */
    size_t body_bytes;
};

/* `body` NULL: GET, else POST of JSON. Returns 0 or -errno; -ENAMETOOLONG: the name is too long for a
 * socket. */
int exchange_begin(struct exchange *x, const char *socket, const char *path, const char *body);
/* Waits for some bytes of the answer. Returns 1 when the answer is whole, 0 when more is to come, else
 * -errno. -EPROTO: the bytes are no answer of kilnd's; -ECONNRESET: the connection ended within the answer;
 * -EMSGSIZE: the answer is longer than EXCHANGE_MAX. */
int exchange_read(struct exchange *x);
void exchange_end(struct exchange *x);

#endif
