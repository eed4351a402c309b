/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* http: questions and orders over HTTP: on a unix socket that root alone may open, and, if an option says
 * so, on an address. libmicrohttpd speaks the protocol; this module defines the paths, and bounds the
 * requests of a peer.
 *
 *     a table of struct http_route          one for the socket, rows marked is_public for addresses too
 *     http_listen_unix(), http_listen_tcp() a listener has one thread of libmicrohttpd's
 *     a handler fills struct http_answer    it is sent when the handler has returned
 *
 * A listener has its own thread and uses no workers, so that a peer's garbage or flood of requests costs the
 * data path no worker. Without a listener there is neither the thread nor its memory.
 *
 * Ownership: this module owns the request, its strings and its body, which last until the handler returns,
 * and frees the answer, to which the handler only adds. The caller owns tables and their strings, which
 * stay until http_stop().
 *
 * Threads: handlers run in a listener's thread, one at a time. Handlers of rows with `threads` each run in a
 * separate thread, at most as many at once as `threads` allows (then 503). While a handler runs, its thread
 * is registered with RCU and in no read section, so the handler may call bricks.h. A handler in a listener's
 * thread must not wait, for a disk or else.
 *
 * An answer of more than HTTP_ZIP_BYTES that a handler has made whole is sent compressed if the client
 * accepts gzip.
 *
 * Bounds of a listener: HTTP_CONNECTIONS connections (a further connection closes another), 16 KiB for
 * request line and headers (414, 431), a body as long as its row says (413), 10 s of silence. On an address
 * HTTP_ANSWERS_MAX bytes of answers that the peers have not read: more bytes close the connection of such an
 * answer, twice as many are a 503. The listener closes a connection of the address that has most
 * connections, namely the connection that has been silent longest, so a busy address cannot push out the
 * peers of other addresses.
 */
#ifndef KILN_DAEMON_HTTP_H
#define KILN_DAEMON_HTTP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    HTTP_CONNECTIONS = 32,
    HTTP_BODY_MAX = 1 << 20,    /* the highest body_max of a row */
    HTTP_ANSWER_MAX = 64 << 20, /* a longer answer, or piece of an answer, becomes a 500 */
    HTTP_ZIP_BYTES = 4096,
    HTTP_ANSWERS_MAX = 64 << 20, /* unread answers of an address's listener together */
};

struct MHD_Connection;

struct http_request {
    const char *method; /* "GET" also for HEAD */
    const char *path;   /* decoded */
    const char *rest;   /* the text that the '*' at the end of the row's path stands for; "" */
    const char *body;   /* ends with a 0 that is not counted */
    size_t body_bytes;
    struct MHD_Connection *connection;
};

/* Bytes that grow. After a failure (no memory, HTTP_ANSWER_MAX) nothing is added, and the answer is a 500. */
struct http_answer {
    unsigned status;          /* 200 to begin with */
    const char *content_type; /* "text/plain; charset=utf-8" to begin with; static */
    char *bytes;
    size_t size, room;
    bool is_short; /* something did not fit */
    /* An answer that is too long to be held is made while it is sent: with `more`, `bytes` is the beginning.
     * Each time the peer has read all bytes, `more` adds the next piece to the empty answer; false: that was
     * the last piece. `more` runs in the listener's thread and is not registered with RCU. `end` is called
     * once, sent or not. Such an answer announces no length; after a failure the connection is closed in
     * mid-answer. */
    bool (*more)(struct http_answer *answer, void *arg);
    void (*end)(void *arg);
    void *arg;
    size_t arg_bytes; /* bytes of memory that `arg` holds: they count as unread bytes */
};

/* Separate threads for the handlers of a row, or of several rows that share them. */
struct http_threads {
    const unsigned max;
    unsigned running; /* http.c's, under its lock */
};

struct http_route {
    const char *method; /* "GET": HEAD too. NULL ends a table */
    const char *path;   /* all of it, or up to a '*' at its end */
    void (*handle)(const struct http_request *req, struct http_answer *answer);
    size_t body_max; /* bytes; 0: a body is refused */
    struct http_threads *threads; /* NULL: the handler runs in the listener's thread */
    bool is_public; /* also on addresses: paths for all peers, which change nothing */
};

/* The value of `key` in the query, decoded; NULL: no such key; "": no value. Lasts as long as the request. */
const char *http_query(const struct http_request *req, const char *key);
/* A header of the request; NULL: no such header. Lasts as long as the request. */
const char *http_header(const struct http_request *req, const char *name);

/* For handlers in separate threads: waits for `ms` and returns true, or returns false at once when kilnd
 * ends. */
bool http_pause(unsigned ms);

/* Makes room for a long answer at one go, if there is memory. */
void http_reserve(struct http_answer *answer, size_t bytes);
/* Adds to the answer. */
void http_put_slowly(struct http_answer *answer, const void *bytes, size_t size);
static inline void
http_put(struct http_answer *answer, const void *bytes, size_t size)
{
    if (__builtin_expect(answer->is_short || size > answer->room - answer->size, 0)) {
        http_put_slowly(answer, bytes, size);
        return;
    }
    if (size) /* an answer that is empty has no bytes to copy to */
        memcpy(answer->bytes + answer->size, bytes, size);
    answer->size += size;
}

/* Adds a text without its 0. */
static inline void
http_put_text(struct http_answer *answer, const char *text)
{
    http_put(answer, text, strlen(text));
}

/* Adds a copy of bytes that the answer has already. */
void http_put_again(struct http_answer *answer, size_t from, size_t size);
/* Adds number / 10^decimals, with that many decimals (19 at most); ten times as fast as printf(3). */
void http_put_number(struct http_answer *answer, uint64_t number, unsigned decimals);
void http_printf(struct http_answer *answer, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds `text` as a JSON string, with its quotes. A byte that is not UTF-8 becomes U+FFFD. */
void http_put_json_string(struct http_answer *answer, const char *text);
/* The answer becomes an error: {"error": text}; everything added so far is dropped. */
void http_fail(struct http_answer *answer, unsigned status, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));

/* Listens at `path`, mode 0600. 0 or -errno. */
int http_listen_unix(const char *path, const struct http_route *routes);
/* Listens at "HOST:PORT" or "[HOST]:PORT"; the host must be named. Only public routes. `*port` (may be NULL):
 * the port that was free if PORT is 0. 0; -EINVAL: no such text; -errno. */
int http_listen_tcp(const char *address, const struct http_route *routes, uint16_t *port);

/* Tells whether the text has the form HOST:PORT or [HOST]:PORT. */
bool http_is_address(const char *address);

/* Refuses new requests, waits for running handlers, half a minute at most, and ends the listeners. Returns
 * false if a handler hangs: the listeners then stay. Not from a handler. */
bool http_stop(void);

#endif
