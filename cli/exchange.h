/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* exchange: one question to kilnd's management socket, and its answer, over HTTP.
 *
 *     exchange_begin()    connects and sends the question
 *     exchange_read()     as often as it says that more is to come; exchange.fd can be polled in between
 *     exchange_end()      always
 *
 * Why not libcurl: with the 35 libraries that it brings the start of the command takes 6 ms of a processor,
 * without them 1. What the socket speaks is one side of one daemon: a length, and no other coding.
 *
 * thread: one at a time. */
#ifndef KILN_CLI_EXCHANGE_H
#define KILN_CLI_EXCHANGE_H

#include <stddef.h>

enum { EXCHANGE_MAX = 64 << 20 }; /* bytes of an answer, headers included */

struct exchange {
    int fd;
    char *bytes; /* all that came; a 0 behind it */
    size_t size, room;
    size_t head; /* where the body begins; 0: the headers are not whole yet */
    /* Once exchange_read() has said 1: */
    unsigned status; /* 200 ... */
    size_t body_bytes;
};

/* `body` NULL: GET, else POST of JSON. 0, or -errno; -ENAMETOOLONG: no socket has such a name. */
int exchange_begin(struct exchange *x, const char *socket, const char *path, const char *body);
/* Waits for some of the answer. 1: it is whole; 0: more is to come; -errno; -EPROTO: it is no answer of
 * kilnd's, -ECONNRESET: it ends in its middle, -EMSGSIZE: it is longer than EXCHANGE_MAX. */
int exchange_read(struct exchange *x);
void exchange_end(struct exchange *x);

#endif
