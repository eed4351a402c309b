/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Listeners: TCP (one socket for IPv4 and IPv6, and a local socket beside it) and unix sockets.
 *
 * When no descriptors are left, the listener gives up a spare descriptor to accept and close the waiting
 * connection: the peer learns of the refusal at once, and the backlog, which edge-triggered events would not
 * mention again, is emptied. If even that fails, a timer tries later.
 */
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "log/log.h"
#include "rpc/transport/local-socket.h"
#include "rpc/transport/port.h"
#include "rpc/transport/saved.h"
#include "rpc/transport/transport-internal.h"
#include "rpc/transport/unix-name.h"

#define BACKLOG 1024
#define RETRY_MS 100

struct listener {
    struct event_source src;
    const struct transport_ops *ops;
    void *arg;
    bool is_tcp;
    bool is_beside; /* the local socket of a TCP listener: local-socket.h */
    struct listener *beside; /* this listener's local socket; may be NULL */
    struct unix_name name; /* removed on close */
    bool is_stopped; /* by listener_stop() */
    uint16_t port;
    pthread_mutex_t lock; /* guards spare_fd */
    int spare_fd;
    struct timer retry;
    struct cds_list_head link; /* of all listeners that accept, under listeners_lock */
};

static pthread_mutex_t listeners_lock = PTHREAD_MUTEX_INITIALIZER;
static struct cds_list_head listeners = CDS_LIST_HEAD_INIT(listeners);

/* ---- accepting ------------------------------------------------------------------------------- */

static void
listener_retry(struct timer *t)
{
    struct listener *l = caa_container_of(t, struct listener, retry);
    int err = event_modify(&l->src, EPOLLIN);

    if (err && err != -ENOENT) /* -ENOENT: the listener is being closed */
        log_event(LOG_ERROR, NULL, "transport-accept-stopped", "cannot watch a listener: %s", strerror(-err));
}

/* True if a waiting connection was taken and closed. */
static bool
refuse_one(struct listener *l)
{
    int fd = -1;

    pthread_mutex_lock(&l->lock);
    if (l->spare_fd >= 0) {
        close(l->spare_fd);
        fd = accept4(l->src.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
        if (fd >= 0)
            close(fd);
    }
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    pthread_mutex_unlock(&l->lock);
    return fd >= 0;
}

static void
start_one(struct listener *l, int fd)
{
    struct sockaddr_storage peer;
    struct conn_origin from = {.is_tcp = l->is_tcp, .peer = l->is_beside ? &peer : NULL};
    int err = l->is_beside ? local_socket_peer(fd, &peer, NULL) : 0;

    if (err)
        close(fd);
    else
        (void)conn_start(fd, &from, l->ops, l->arg); /* conn_start() logs a failure */
}

static bool
accept_one(struct listener *l)
{
    /* Under the lock, so that accept4() cannot take the descriptor that refuse_one() has given up for a
     * moment. */
    pthread_mutex_lock(&l->lock);
    int fd = accept4(l->src.fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    int err = errno;
    pthread_mutex_unlock(&l->lock);

    if (fd >= 0) {
        start_one(l, fd);
        return true;
    }
    switch (err) {
    case EAGAIN:
        return false;
    case EMFILE:
    case ENFILE:
        log_event(LOG_WARNING, NULL, "transport-no-descriptors", "a connection is refused: %s",
                  strerror(err));
        if (refuse_one(l))
            return true;
        timer_start(&l->retry, RETRY_MS);
        return false;
    case ENOMEM:
    case ENOBUFS:
        log_event(LOG_WARNING, NULL, "transport-accept-failed", "%s; trying again later", strerror(err));
        timer_start(&l->retry, RETRY_MS);
        return false;
    case EBADF:
    case EINVAL:
    case ENOTSOCK:
    case EOPNOTSUPP:
        log_event(LOG_ERROR, NULL, "transport-accept-broken", "a listener has ended: %s", strerror(err));
        return false;
    default: /* that one connection's own error (accept(2)) */
        return true;
    }
}

static void
listener_event(struct event_source *src, uint32_t events)
{
    struct listener *l = caa_container_of(src, struct listener, src);

    (void)events;
    while (accept_one(l))
        ;
}

/* ---- opening --------------------------------------------------------------------------------- */

static struct listener *
listener_new(const struct transport_ops *ops, void *arg)
{
    struct listener *l = calloc(1, sizeof *l);

    if (!l)
        return NULL;
    l->ops = ops;
    l->arg = arg;
    l->src = (struct event_source){.fd = -1, .fn = listener_event};
    pthread_mutex_init(&l->lock, NULL);
    timer_init(&l->retry, listener_retry);
    l->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    return l;
}

static void
listener_free(struct listener *l)
{
    if (l->src.fd >= 0)
        close(l->src.fd);
    if (l->spare_fd >= 0)
        close(l->spare_fd);
    pthread_mutex_destroy(&l->lock);
    unix_name_free(&l->name);
    free(l);
}

/* Listens and starts. On failure the listener is freed. */
static struct listener *
listener_go(struct listener *l, int *err)
{
    *err = listen(l->src.fd, BACKLOG) ? -errno : event_add(&l->src, EPOLLIN);
    if (!*err) {
        pthread_mutex_lock(&listeners_lock);
        cds_list_add_tail(&l->link, &listeners);
        pthread_mutex_unlock(&listeners_lock);
        return l;
    }
    unix_name_remove(&l->name);
    listener_free(l);
    return NULL;
}

static int
bind_tcp(const struct addrinfo *a, int *fd)
{
    int one = 1, zero = 0;

    if ((*fd = listeners_take(a->ai_addr, a->ai_addrlen)) >= 0)
        return 0;
    int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, IPPROTO_TCP);

    if (s < 0)
        return -errno;
    if (setsockopt(s, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        (a->ai_family == AF_INET6 && setsockopt(s, IPPROTO_IPV6, IPV6_V6ONLY, &zero, sizeof zero)) ||
        bind(s, a->ai_addr, a->ai_addrlen)) {
        int err = -errno;

        close(s);
        return err;
    }
    *fd = s;
    return 0;
}

/* Every address there is: one socket for both families, or IPv4 alone where there is no IPv6. */
static int
bind_any(uint16_t port, int *fd)
{
    struct sockaddr_in6 six = {.sin6_family = AF_INET6, .sin6_port = htons(port), .sin6_addr = in6addr_any};
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = INADDR_ANY};
    struct addrinfo a = {.ai_family = AF_INET6, .ai_addr = (struct sockaddr *)&six, .ai_addrlen = sizeof six};
    int err = bind_tcp(&a, fd);

    if (err != -EAFNOSUPPORT && err != -EADDRNOTAVAIL)
        return err;
    a = (struct addrinfo){
        .ai_family = AF_INET, .ai_addr = (struct sockaddr *)&four, .ai_addrlen = sizeof four};
    return bind_tcp(&a, fd);
}

static int
bind_host(const char *host, uint16_t port, int *fd)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV}, *list;
    char service[8];
    int err = -EADDRNOTAVAIL;

    snprintf(service, sizeof service, "%u", port);
    int failed = getaddrinfo(host, service, &hints, &list);

    if (failed) {
        err = failed == EAI_SYSTEM ? -errno : failed == EAI_MEMORY ? -ENOMEM : -EADDRNOTAVAIL;
        log_event(LOG_ERROR, NULL, "transport-host-unknown", "cannot listen at %s: %s", host,
                  gai_strerror(failed));
        return err;
    }
    for (const struct addrinfo *a = list; a && err; a = a->ai_next)
        err = bind_tcp(a, fd);
    freeaddrinfo(list);
    return err;
}

/* TCP serves all clients, so a failure here is worth no more than a log line: another process has the
 * name. */
static struct listener *
open_beside(const struct sockaddr_storage *bound, const struct transport_ops *ops, void *arg)
{
    struct listener *l = listener_new(ops, arg);
    int err = -ENOMEM;

    if (l) {
        l->is_beside = true;
        l->src.fd = err = local_socket_bind(bound);
        if (err < 0)
            listener_free(l);
        else
            l = listener_go(l, &err);
    }
    if (err >= 0)
        return l;
    log_event(LOG_INFO, NULL, "transport-no-local-socket", "clients of this machine come by TCP: %s",
              strerror(-err));
    return NULL;
}

struct listener *
listener_open_tcp(const char *host, uint16_t port, const struct transport_ops *ops, void *arg, int *err)
{
    struct listener *l = listener_new(ops, arg);

    if (!l) {
        *err = -ENOMEM;
        return NULL;
    }
    l->is_tcp = true;
    *err = host ? bind_host(host, port, &l->src.fd) : bind_any(port, &l->src.fd);
    if (*err) {
        listener_free(l);
        return NULL;
    }
    struct sockaddr_storage bound = {0};
    socklen_t size = sizeof bound;

    if (getsockname(l->src.fd, (struct sockaddr *)&bound, &size)) {
        *err = -errno;
        listener_free(l);
        return NULL;
    }
    l->port = port_of(&bound);
    l = listener_go(l, err);
    if (l)
        l->beside = open_beside(&bound, ops, arg);
    return l;
}

struct listener *
listener_open_unix(const char *path, const struct transport_ops *ops, void *arg, int *err)
{
    struct listener *l = listener_new(ops, arg);

    if (!l) {
        *err = -ENOMEM;
        return NULL;
    }
    l->src.fd = unix_name_bind(&l->name, path);
    if (l->src.fd < 0) {
        *err = l->src.fd;
        listener_free(l);
        return NULL;
    }
    return listener_go(l, err);
}

void
listeners_freeze(bool is_frozen)
{
    struct listener *l;

    pthread_mutex_lock(&listeners_lock);
    cds_list_for_each_entry (l, &listeners, link) {
        if (is_frozen) {
            event_remove(&l->src); /* waits for a handler that runs, which may start the timer */
            timer_stop(&l->retry);
            continue;
        }
        int err = event_add(&l->src, EPOLLIN);

        if (err)
            log_event(LOG_ERROR, NULL, "transport-accept-not-resumed", "cannot watch a listener again: %s",
                      strerror(-err));
    }
    pthread_mutex_unlock(&listeners_lock);
}

void
listeners_each(void (*fn)(int fd, void *arg), void *arg)
{
    struct listener *l;

    pthread_mutex_lock(&listeners_lock);
    cds_list_for_each_entry (l, &listeners, link)
        fn(l->src.fd, arg);
    pthread_mutex_unlock(&listeners_lock);
}

uint16_t
listener_port(const struct listener *l)
{
    return l->port;
}

void
listener_stop(struct listener *l)
{
    if (l->is_stopped)
        return;
    l->is_stopped = true;
    pthread_mutex_lock(&listeners_lock);
    cds_list_del(&l->link);
    pthread_mutex_unlock(&listeners_lock);
    if (l->beside)
        listener_stop(l->beside);
    event_remove(&l->src); /* waits for a handler that runs, which may start the timer */
    timer_stop(&l->retry);
    shutdown(l->src.fd, SHUT_RDWR);
}

void
listener_close(struct listener *l)
{
    listener_stop(l);
    if (l->beside)
        listener_close(l->beside);
    unix_name_remove(&l->name);
    listener_free(l);
}
