/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "daemon/http.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>
#include <urcu/list.h>
#include <zlib.h>

#include "base/thread.h"
#include "daemon/http-library.h"
#include "log/log.h"
#include "rpc/transport/unix-name.h"

enum {
    LISTENERS_MAX = 4,
    BACKLOG = 64,
    HEADER_BYTES = 16 << 10,
    SILENCE_S = 10,
    HANGS_AFTER_S = 30,
    ANSWERS_S = 1, /* for answers to be sent at the end */
    STACK_BYTES = 256 << 10,
    BLOCK_BYTES = 64 << 10,
};

/* While the listener runs, only its thread of libmicrohttpd uses the struct. */
struct http_listener {
    struct MHD_Daemon *daemon;
    const struct http_route *routes;
    bool is_public;
    struct unix_name name;
    struct cds_list_head peers; /* in the order of their last sign of life */
    unsigned peer_count;
    size_t unread; /* bytes of answers that are being sent */
};

/* A connection. */
struct peer {
    struct cds_list_head link;
    int fd;         /* -1: the connection is being closed */
    bool is_asking; /* a handler runs in a separate thread, so close_one() passes over the peer */
    size_t unread;  /* bytes of its answer */
    uint64_t address; /* the whole of an IPv4 address, the network of an IPv6 address */
};

/* A request from its headers to its last byte. */
struct exchange {
    struct http_listener *listener;
    const struct http_route *route; /* NULL: answered with an error */
    struct http_request req;
    struct http_answer answer;
    char *body; /* body_room bytes and a 0 */
    size_t body_room;
    bool is_handled; /* the answer is complete */
    bool was_blocking; /* the handler has had a thread of its own */
    size_t unread;   /* bytes of the answer that count in the listener's */
    size_t sent;     /* of answer.bytes, for an answer in pieces */
};

static struct http_listener listeners[LISTENERS_MAX];
static unsigned listener_count; /* changed by http_listen_*() and http_stop(), by one thread at a time */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t idle = PTHREAD_COND_INITIALIZER;
static pthread_cond_t ending = PTHREAD_COND_INITIALIZER;
static unsigned blocking; /* under `lock`: handlers in separate threads */
static unsigned unsent;   /* under `lock`: answers of such handlers, until libmicrohttpd is done with them */
static bool is_ending;    /* under `lock` */

/* ---- fields of a request --------------------------------------------------------------------- */

const char *
http_query(const struct http_request *req, const char *key)
{
    const char *value = NULL;
    enum MHD_Result found =
        mhd.lookup_connection_value_n(req->connection, MHD_GET_ARGUMENT_KIND, key, strlen(key), &value, NULL);

    return found == MHD_YES && !value ? "" : value;
}

const char *
http_header(const struct http_request *req, const char *name)
{
    return mhd.lookup_connection_value(req->connection, MHD_HEADER_KIND, name);
}

/* ---- routes ---------------------------------------------------------------------------------- */

/* Returns the rest of the path behind the part that the row names before its '*'; "" if the row has no '*';
 * NULL if the row is about another path. */
static const char *
rest_of(const struct http_route *route, const char *path)
{
    size_t len = strlen(route->path);

    if (len && route->path[len - 1] == '*')
        return strncmp(route->path, path, len - 1) == 0 ? path + len - 1 : NULL;
    return strcmp(route->path, path) == 0 ? "" : NULL;
}

static const struct http_route *
find_route(const struct http_listener *l, struct exchange *x)
{
    bool is_path_known = false;

    for (const struct http_route *r = l->routes; r->method; r++) {
        const char *rest = l->is_public && !r->is_public ? NULL : rest_of(r, x->req.path);

        is_path_known |= rest != NULL;
        if (!rest || strcmp(r->method, x->req.method) != 0)
            continue;
        x->req.rest = rest;
        return r;
    }
    if (is_path_known)
        http_fail(&x->answer, MHD_HTTP_METHOD_NOT_ALLOWED, "%s: not with this method", x->req.path);
    else
        http_fail(&x->answer, MHD_HTTP_NOT_FOUND, "%s: there is no such thing here", x->req.path);
    return NULL;
}

static void
call_handler(struct exchange *x)
{
    /* A thread of libmicrohttpd is registered only while a handler runs. */
    rcu_register_thread();
    x->route->handle(&x->req, &x->answer);
    rcu_unregister_thread();
    if (x->answer.is_short)
        http_fail(&x->answer, MHD_HTTP_INTERNAL_SERVER_ERROR, "the answer does not fit in memory");
    x->is_handled = true;
}

static void *
blocking_main(void *arg)
{
    struct exchange *x = arg;

    struct http_threads *threads = x->route->threads;

    call_handler(x);
    mhd.resume_connection(x->req.connection); /* from here on x is libmicrohttpd's thread's */
    pthread_mutex_lock(&lock);
    threads->running--;
    if (--blocking == 0)
        pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
    return NULL;
}

/* Returns true if the handler runs in a thread of its own: the connection sleeps until that thread resumes
 * it, and *x belongs to that thread. Returns false if the request is answered, with an error. */
static bool
handle_in_thread(struct exchange *x)
{
    struct http_threads *threads = x->route->threads;

    pthread_mutex_lock(&lock);
    bool is_free = threads->running < threads->max && !is_ending;
    threads->running += is_free;
    blocking += is_free;
    unsent += is_free;
    pthread_mutex_unlock(&lock);
    x->was_blocking = is_free;
    if (!is_free) {
        http_fail(&x->answer, MHD_HTTP_SERVICE_UNAVAILABLE, "too many such requests at once");
        return false;
    }
    mhd.suspend_connection(x->req.connection);
    int err = thread_start(blocking_main, x);
    if (!err)
        return true;
    http_fail(&x->answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no thread: %s", strerror(-err));
    x->is_handled = true;
    pthread_mutex_lock(&lock);
    threads->running--;
    blocking--;
    pthread_mutex_unlock(&lock);
    mhd.resume_connection(x->req.connection);
    return true;
}

bool
http_pause(unsigned ms)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += ms % 1000 * 1000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000;
    }
    pthread_mutex_lock(&lock);
    while (!is_ending && err != ETIMEDOUT)
        err = pthread_cond_clockwait(&ending, &lock, CLOCK_MONOTONIC, &until);
    bool goes_on = !is_ending;
    pthread_mutex_unlock(&lock);
    return goes_on;
}

/* ---- requests and peers ---------------------------------------------------------------------- */

static void
answer_clear(struct http_answer *a)
{
    free(a->bytes);
    if (a->end)
        a->end(a->arg);
    *a = (struct http_answer){0};
}

static void
exchange_free(struct exchange *x)
{
    answer_clear(&x->answer);
    free(x->body);
    free(x);
}

static struct peer *
peer_of(struct MHD_Connection *c)
{
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(c, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

    return info ? info->socket_context : NULL;
}

/* Moves the peer, which has just sent, to the end of the list, so that close_one() comes to it last. */
static struct peer *
peer_heard(struct http_listener *l, struct MHD_Connection *c)
{
    struct peer *p = peer_of(c);

    if (p) {
        cds_list_del(&p->link);
        cds_list_add_tail(&p->link, &l->peers);
    }
    return p;
}

/* ---- closing connections to make room -------------------------------------------------------- */

/* Returns the peer's address as a number; of an IPv6 address the network, because a host may use any address
 * of its /64. */
static uint64_t
address_of(int fd)
{
    struct sockaddr_storage a = {0};
    socklen_t size = sizeof a;
    uint64_t key = 0;

    if (getpeername(fd, (struct sockaddr *)&a, &size))
        return 0; /* the peer has gone already */
    const struct in6_addr *six = &((const struct sockaddr_in6 *)&a)->sin6_addr;
    if (a.ss_family == AF_INET)
        key = ((const struct sockaddr_in *)&a)->sin_addr.s_addr;
    else if (a.ss_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(six))
        memcpy(&key, &six->s6_addr[12], sizeof(struct in_addr));
    else if (a.ss_family == AF_INET6)
        memcpy(&key, six, sizeof key);
    return key;
}

static unsigned
count_of_address(const struct http_listener *l, const struct peer *of)
{
    const struct peer *p;
    unsigned count = 0;

    cds_list_for_each_entry(p, &l->peers, link)
    {
        count += p->fd >= 0 && p->address == of->address;
    }
    return count;
}

/* Closes the connection that has been silent longest, of the address that has most connections. libmicrohttpd
 * sees the end of the socket. `unread`: only a connection whose answer is being sent. */
static void
close_one(struct http_listener *l, bool unread)
{
    struct peer *p, *longest = NULL;
    unsigned most = 0;

    cds_list_for_each_entry(p, &l->peers, link)
    {
        unsigned count = p->is_asking || p->fd < 0 || (unread && !p->unread) ? 0 : count_of_address(l, p);

        if (count > most) {
            most = count;
            longest = p;
        }
    }
    if (!longest)
        return;
    shutdown(longest->fd, SHUT_RDWR);
    longest->fd = -1; /* once */
}

/* Bounds the unread answers of a listener on an address: closes the connection of such an answer, or refuses
 * this answer. A closed connection gives its memory back when libmicrohttpd sees the end. */
static void
hold_answer(struct exchange *x)
{
    struct http_listener *l = x->listener;
    struct http_answer *a = &x->answer;
    struct peer *p = peer_of(x->req.connection);

    if (!l->is_public)
        return;
    if (l->unread + a->size + a->arg_bytes > HTTP_ANSWERS_MAX)
        close_one(l, true);
    if (l->unread && l->unread + a->size + a->arg_bytes > 2 * (size_t)HTTP_ANSWERS_MAX) {
        answer_clear(a);
        http_fail(a, MHD_HTTP_SERVICE_UNAVAILABLE, "too many answers are not read");
    }
    x->unread = a->size + a->arg_bytes;
    l->unread += x->unread;
    if (p)
        p->unread = x->unread;
}

static void
drop_answer(struct exchange *x)
{
    struct peer *p = peer_of(x->req.connection);

    x->listener->unread -= x->unread;
    if (p)
        p->unread = 0;
}

/* ---- libmicrohttpd's callbacks --------------------------------------------------------------- */

/* Gives libmicrohttpd the next bytes of an answer in pieces. */
static ssize_t
read_piece(void *cls, uint64_t at, char *to, size_t most)
{
    struct exchange *x = cls;
    struct http_answer *a = &x->answer;

    (void)at;
    while (x->sent == a->size && a->more) {
        x->sent = a->size = 0;
        if (!a->more(a, a->arg))
            a->more = NULL;
        if (a->is_short)
            return MHD_CONTENT_READER_END_WITH_ERROR;
    }
    if (x->sent == a->size)
        return MHD_CONTENT_READER_END_OF_STREAM;
    size_t bytes = a->size - x->sent < most ? a->size - x->sent : most;
    memcpy(to, a->bytes + x->sent, bytes);
    x->sent += bytes;
    return (ssize_t)bytes;
}

/* Returns whether "gzip" is among the codings that the client accepts, with a quality other than 0. */
static bool
accepts_gzip(const struct http_request *req)
{
    const char *codings = http_header(req, MHD_HTTP_HEADER_ACCEPT_ENCODING);
    const char *gzip = codings ? strstr(codings, "gzip") : NULL;

    if (!gzip)
        return false;
    const char *quality = gzip + strlen("gzip");
    return strncmp(quality, ";q=0", 4) != 0 ||
           (quality[4] == '.' && strspn(quality + 5, "0") < strcspn(quality + 5, ", "));
}

/* Compresses a long answer for a client that accepts gzip. False: the answer is sent as it is. */
static bool
zip_answer(struct exchange *x)
{
    struct http_answer *a = &x->answer;
    z_stream z = {0};

    if (a->more || a->is_short || a->size < HTTP_ZIP_BYTES || !accepts_gzip(&x->req) ||
        deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, MAX_WBITS + 16 /* gzip */, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return false;
    size_t room = deflateBound(&z, a->size);
    char *zipped = malloc(room);
    z.next_in = (Bytef *)a->bytes;
    z.avail_in = (uInt)a->size;
    z.next_out = (Bytef *)zipped;
    z.avail_out = (uInt)room;
    bool is_whole = zipped && deflate(&z, Z_FINISH) == Z_STREAM_END;
    deflateEnd(&z);
    if (!is_whole) {
        free(zipped);
        return false;
    }
    free(a->bytes);
    a->bytes = zipped;
    a->room = room;
    a->size = z.total_out;
    return true;
}

static enum MHD_Result
send_answer(struct exchange *x)
{
    struct http_answer *a = &x->answer;
    bool is_zipped = zip_answer(x);

    hold_answer(x);
    is_zipped &= a->status == MHD_HTTP_OK; /* else hold_answer() has made the answer an error */
    struct MHD_Response *r =
        a->more ? mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, BLOCK_BYTES, read_piece, x, NULL)
                : mhd.create_response_from_buffer(a->size, a->bytes, MHD_RESPMEM_MUST_FREE);

    if (!r)
        return MHD_NO; /* no memory: the connection is closed */
    if (!a->more)
        a->bytes = NULL;
    enum MHD_Result ok = mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_TYPE, a->content_type);
    if (ok == MHD_YES)
        ok = mhd.add_response_header(r, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    if (ok == MHD_YES && is_zipped)
        ok = mhd.add_response_header(r, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
    if (ok == MHD_YES)
        ok = mhd.queue_response(x->req.connection, a->status, r);
    mhd.destroy_response(r);
    return ok;
}

/* Before the body is read. NULL: no memory. */
static struct exchange *
exchange_new(struct http_listener *l, struct MHD_Connection *c, const char *url, const char *method)
{
    struct exchange *x = calloc(1, sizeof *x);

    if (!x)
        return NULL;
    x->listener = l;
    x->req = (struct http_request){.method = strcmp(method, MHD_HTTP_METHOD_HEAD) == 0 ? "GET" : method,
                                   .path = url,
                                   .rest = "",
                                   .body = "",
                                   .connection = c};
    x->answer.status = MHD_HTTP_OK;
    x->answer.content_type = "text/plain; charset=utf-8";
    x->route = find_route(l, x);
    return x;
}

/* Returns false, with an error as the answer, if the body is longer than the row allows or does not fit into
 * memory. */
static bool
take_body(struct exchange *x, const char *data, size_t bytes)
{
    size_t wanted = x->req.body_bytes + bytes;

    if (!x->route || bytes > x->route->body_max - x->req.body_bytes) {
        http_fail(&x->answer, MHD_HTTP_CONTENT_TOO_LARGE, "%s: a body of %zu bytes at most", x->req.path,
                  x->route ? x->route->body_max : 0);
        return false;
    }
    if (wanted > x->body_room || !x->body) {
        size_t room = wanted * 2 < x->route->body_max ? wanted * 2 : x->route->body_max;
        char *grown = realloc(x->body, room + 1);

        if (!grown) {
            http_fail(&x->answer, MHD_HTTP_SERVICE_UNAVAILABLE, "no memory for the body");
            return false;
        }
        x->body = grown;
        x->body_room = room;
    }
    memcpy(x->body + x->req.body_bytes, data, bytes);
    x->req.body_bytes = wanted;
    x->body[wanted] = '\0';
    x->req.body = x->body;
    return true;
}

/* Returns whether the headers announce a body that is too long. Then nothing of the body is read. */
static bool
is_body_announced_too_long(const struct exchange *x)
{
    const char *text =
        mhd.lookup_connection_value(x->req.connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_CONTENT_LENGTH);

    return text && strtoull(text, NULL, 10) > (x->route ? x->route->body_max : 0);
}

/* Called when the headers are there, for each piece of the body, at its end, and another time when a handler
 * in a separate thread has ended. */
static enum MHD_Result
access_handler(void *cls, struct MHD_Connection *c, const char *url, const char *method, const char *version,
               const char *upload, size_t *upload_bytes, void **context)
{
    struct http_listener *l = cls;
    struct exchange *x = *context;
    struct peer *p = peer_heard(l, c);

    (void)version;
    if (!x) {
        *context = x = exchange_new(l, c, url, method);
        if (!x)
            return MHD_NO;
        if (!is_body_announced_too_long(x))
            return MHD_YES;
        if (x->route)
            (void)take_body(x, "", x->route->body_max + 1);
        return send_answer(x);
    }
    if (*upload_bytes) {
        bool is_taken = x->route && take_body(x, upload, *upload_bytes);

        *upload_bytes = 0;
        return is_taken ? MHD_YES : MHD_NO; /* an endless body is not read to its end */
    }
    if (x->route && !x->is_handled) {
        if (!x->route->threads) {
            call_handler(x);
        } else if (handle_in_thread(x)) {
            if (p)
                p->is_asking = true;
            return MHD_YES;
        }
    }
    if (p)
        p->is_asking = false;
    return send_answer(x);
}

static void
completed(void *cls, struct MHD_Connection *c, void **context, enum MHD_RequestTerminationCode how)
{
    (void)cls;
    (void)c;
    (void)how;
    struct exchange *x = *context;

    if (!x)
        return;
    bool was_blocking = x->was_blocking;

    drop_answer(x);
    exchange_free(x);
    *context = NULL;
    if (!was_blocking)
        return;
    pthread_mutex_lock(&lock);
    if (--unsent == 0)
        pthread_cond_broadcast(&idle);
    pthread_mutex_unlock(&lock);
}

static void
connected(void *cls, struct MHD_Connection *c, void **context, enum MHD_ConnectionNotificationCode what)
{
    struct http_listener *l = cls;
    struct peer *p = *context;

    if (what == MHD_CONNECTION_NOTIFY_CLOSED) {
        if (p) {
            cds_list_del(&p->link);
            l->peer_count--;
            free(p);
        }
        *context = NULL;
        return;
    }
    const union MHD_ConnectionInfo *info = mhd.get_connection_info(c, MHD_CONNECTION_INFO_CONNECTION_FD);
    *context = p = info ? calloc(1, sizeof *p) : NULL;
    if (!p) /* libmicrohttpd's own limit, twice ours, still counts it */
        return;
    p->fd = info->connect_fd;
    p->address = address_of(p->fd);
    cds_list_add_tail(&p->link, &l->peers);
    if (++l->peer_count > HTTP_CONNECTIONS)
        close_one(l, false);
}

static void __attribute__((format(printf, 2, 0))) log_message(void *cls, const char *fmt, va_list ap)
{
    char text[512];

    (void)cls;
    vsnprintf(text, sizeof text, fmt, ap);
    text[strcspn(text, "\n")] = '\0';
    log_event(LOG_DEBUG, NULL, "http-library", "%s", text);
}

/* ---- listening ------------------------------------------------------------------------------- */

/* Takes `fd` over. */
static int
start_listener(int fd, const struct unix_name *name, const struct http_route *routes)
{
    struct http_listener *l = &listeners[listener_count];

    *l = (struct http_listener){.routes = routes, .is_public = !name};
    CDS_INIT_LIST_HEAD(&l->peers);
    if (listen(fd, BACKLOG)) {
        int err = -errno;

        close(fd);
        return err;
    }
    if (name)
        l->name = *name;
    l->daemon = mhd.start_daemon(MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ERROR_LOG,
                                 0, NULL, NULL, access_handler, l, MHD_OPTION_EXTERNAL_LOGGER, log_message,
                                 NULL, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_NOTIFY_COMPLETED, completed,
                                 l, MHD_OPTION_NOTIFY_CONNECTION, connected, l, MHD_OPTION_CONNECTION_LIMIT,
                                 2u * HTTP_CONNECTIONS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                 (size_t)HEADER_BYTES, MHD_OPTION_CONNECTION_TIMEOUT, (unsigned)SILENCE_S,
                                 MHD_OPTION_THREAD_STACK_SIZE, (size_t)STACK_BYTES, MHD_OPTION_END);
    if (!l->daemon) {
        close(fd);
        return -ENOMEM; /* libmicrohttpd says why in the log, and not here */
    }
    listener_count++;
    return 0;
}

static int
may_listen(void)
{
    return listener_count == LISTENERS_MAX ? -EMFILE : http_library_load();
}

int
http_listen_unix(const char *path, const struct http_route *routes)
{
    struct unix_name name;
    int err = may_listen();

    if (err)
        return err;
    int fd = unix_name_bind(&name, path);
    err = fd < 0 ? fd : start_listener(fd, &name, routes);
    if (err && fd >= 0) {
        unix_name_remove(&name);
        unix_name_free(&name);
    }
    return err;
}

/* Splits "HOST:PORT" or "[HOST]:PORT" into its parts. */
static int
split_address(const char *address, char *host, size_t host_size, char *port, size_t port_size)
{
    const char *colon = strrchr(address, ':');
    bool is_bracketed = address[0] == '[' && colon && colon > address && colon[-1] == ']';
    const char *start = address + is_bracketed, *end = colon - is_bracketed;

    if (!colon || end <= start || (!is_bracketed && memchr(address, ':', (size_t)(colon - address))) ||
        (size_t)(end - start) >= host_size || strlen(colon + 1) >= port_size ||
        strspn(colon + 1, "0123456789") != strlen(colon + 1) || !colon[1] ||
        strtoul(colon + 1, NULL, 10) > UINT16_MAX)
        return -EINVAL;
    snprintf(host, host_size, "%.*s", (int)(end - start), start);
    snprintf(port, port_size, "%s", colon + 1);
    return 0;
}

bool
http_is_address(const char *address)
{
    char host[256], port[8];

    return split_address(address, host, sizeof host, port, sizeof port) == 0;
}

static int
bind_address(const struct addrinfo *a)
{
    int one = 1, fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

    if (fd < 0)
        return -errno;
    if (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) || bind(fd, a->ai_addr, a->ai_addrlen)) {
        int err = -errno;

        close(fd);
        return err;
    }
    return fd;
}

static int
bind_text(const char *address)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list;
    char host[256], port[8];
    int fd = split_address(address, host, sizeof host, port, sizeof port);

    if (fd < 0)
        return fd;
    int failed = getaddrinfo(host, port, &hints, &list);
    if (failed)
        return failed == EAI_SYSTEM ? -errno : failed == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
    fd = -EADDRNOTAVAIL;
    for (const struct addrinfo *a = list; a && fd < 0; a = a->ai_next)
        fd = bind_address(a);
    freeaddrinfo(list);
    return fd;
}

static uint16_t
port_of(int fd)
{
    struct sockaddr_storage a;
    socklen_t size = sizeof a;

    if (getsockname(fd, (struct sockaddr *)&a, &size))
        return 0;
    return ntohs(a.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&a)->sin6_port
                                         : ((struct sockaddr_in *)&a)->sin_port);
}

int
http_listen_tcp(const char *address, const struct http_route *routes, uint16_t *port)
{
    int fd = may_listen();

    if (!fd)
        fd = bind_text(address);
    if (fd < 0)
        return fd;
    if (port)
        *port = port_of(fd);
    return start_listener(fd, NULL, routes);
}

/* ---- the end --------------------------------------------------------------------------------- */

/* Gives libmicrohttpd time to send the answers of the last handlers. A client that does not read delays the
 * end for no longer than that. */
static void
wait_for_answers(void)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += ANSWERS_S;
    pthread_mutex_lock(&lock);
    while (unsent && !err)
        err = pthread_cond_clockwait(&idle, &lock, CLOCK_MONOTONIC, &until);
    pthread_mutex_unlock(&lock);
}

static bool
wait_for_handlers(void)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANGS_AFTER_S;
    pthread_mutex_lock(&lock);
    is_ending = true;
    pthread_cond_broadcast(&ending);
    while (blocking && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&idle, &lock, &until);
    bool is_idle = blocking == 0;
    pthread_mutex_unlock(&lock);
    return is_idle;
}

bool
http_stop(void)
{
    if (!wait_for_handlers()) {
        log_event(LOG_CRITICAL, NULL, "http-hangs", "a request has not ended within 30 s; its handler hangs");
        return false;
    }
    wait_for_answers();
    for (; listener_count; listener_count--) {
        struct http_listener *l = &listeners[listener_count - 1];

        unix_name_remove(&l->name);
        mhd.stop_daemon(l->daemon); /* ends its thread, closes the connections and the socket */
        unix_name_free(&l->name);
    }
    pthread_mutex_lock(&lock);
    is_ending = false;
    pthread_mutex_unlock(&lock);
    return true;
}
