/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* One attempt is a chain of steps, each a job on a worker, none while another runs or a socket is watched:
 *
 *     start --> [resolving] --> step --> [connecting] --> step --> [connecting] ... --> outcome
 *
 * While the dialler connects, the loop, the timer and dialler_cancel() may each want to end the wait. The
 * first of them ends the wait (under the lock) and takes the socket out of the loop, whose `gone` callback
 * posts the next step.
 */
#include "rpc/transport/dial.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/un.h>
#include <unistd.h>

#include "rpc/transport/local-socket.h"
#include "rpc/transport/port.h"
#include "rpc/transport/transport-internal.h"

/* ---- the end of one try ---------------------------------------------------------------------- */

/* Ends the wait for a connect, unless another thread has ended the wait already. */
static void
dial_end_wait(struct dialler *d, int result)
{
    pthread_mutex_lock(&d->lock);
    bool leaves = d->phase == DIAL_CONNECTING;

    if (leaves) {
        d->phase = DIAL_BETWEEN;
        d->result = result;
    }
    pthread_mutex_unlock(&d->lock);
    if (leaves)
        event_remove(&d->src);
}

/* Returns whether the socket is connected to itself. A connect to a port of this machine on which no process
 * listens does this when the kernel chooses that port for the socket, too. Brick ports lie among the ports
 * that the kernel chooses, and while the socket exists, a brick cannot listen on its port. */
static bool
is_connected_to_itself(int fd)
{
    struct sockaddr_storage own = {0}, peer = {0};
    socklen_t own_size = sizeof own, peer_size = sizeof peer;

    return !getsockname(fd, (struct sockaddr *)&own, &own_size) &&
           !getpeername(fd, (struct sockaddr *)&peer, &peer_size) &&
           (own.ss_family == AF_INET || own.ss_family == AF_INET6) && own_size == peer_size &&
           memcmp(&own, &peer, own_size) == 0;
}

/* Returns 0, or -ECONNREFUSED for a socket that is connected to itself: its close frees the port at once. */
static int
check_connected(int fd)
{
    const struct linger reset = {.l_onoff = 1};

    if (!is_connected_to_itself(fd))
        return 0;
    (void)setsockopt(fd, SOL_SOCKET, SO_LINGER, &reset, sizeof reset); /* else the port is kept a minute */
    return -ECONNREFUSED;
}

static void
dial_event(struct event_source *src, uint32_t events)
{
    int err = 0;
    socklen_t size = sizeof err;

    (void)events;
    if (getsockopt(src->fd, SOL_SOCKET, SO_ERROR, &err, &size))
        err = errno;
    dial_end_wait(caa_container_of(src, struct dialler, src), err ? -err : check_connected(src->fd));
}

static void
dial_gone(struct event_source *src)
{
    worker_post(&caa_container_of(src, struct dialler, src)->step);
}

static void
dial_timeout(struct timer *t)
{
    dial_end_wait(caa_container_of(t, struct dialler, timer), -ETIMEDOUT);
}

/* ---- one try --------------------------------------------------------------------------------- */

static int
bind_four(void *fd, uint16_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons(port)};

    return bind(*(int *)fd, (struct sockaddr *)&a, sizeof a) ? -errno : 0;
}

static int
bind_six(void *fd, uint16_t port)
{
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = htons(port)};

    return bind(*(int *)fd, (struct sockaddr *)&a, sizeof a) ? -errno : 0;
}

/* False: go by TCP. */
static bool
connect_local(struct dialler *d, const struct addrinfo *to)
{
    int fd = d->wants_local ? local_socket_connect(to->ai_addr, to->ai_addrlen) : -1;

    if (fd < 0)
        return false;
    d->src.fd = fd;
    memcpy(&d->local_to, to->ai_addr, to->ai_addrlen);
    return true;
}

/* 0, -EINPROGRESS or another error; d->src.fd is the socket, or -1 if there is none. */
static int
connect_to(struct dialler *d, const struct addrinfo *to)
{
    if (connect_local(d, to))
        return 0;
    d->src.fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (d->src.fd < 0)
        return -errno;
    /* Without the right to a low port, or when all are used, the kernel chooses a port. */
    if (d->wants_low_port)
        (void)port_bind(PORT_LOW_FIRST, PORT_LOW_LAST, PORT_LOW_COUNT,
                        to->ai_family == AF_INET6 ? bind_six : bind_four, &d->src.fd);
    return connect(d->src.fd, to->ai_addr, to->ai_addrlen) ? -errno : check_connected(d->src.fd);
}

/* The lock is held over the call so that the thread that ends the wait knows that there is a socket to take
 * out of the loop. */
static int
watch(struct dialler *d)
{
    int err = -ECANCELED;

    pthread_mutex_lock(&d->lock);
    if (!d->is_cancelled) {
        d->phase = DIAL_CONNECTING;
        timer_start(&d->timer, d->timeout_ms);
        err = event_add(&d->src, EPOLLOUT);
        if (err)
            d->phase = DIAL_BETWEEN;
    }
    pthread_mutex_unlock(&d->lock);
    return err;
}

static void
close_try(struct dialler *d)
{
    if (d->src.fd >= 0)
        close(d->src.fd);
    d->src.fd = -1;
}

/* Tries the next address. 0: connected; -EINPROGRESS: the connect is under way; another error: no socket is
 * left. */
static int
try_next(struct dialler *d)
{
    const struct addrinfo *to = d->next;

    d->next = to->ai_next;
    int err = transport_connections_left() == 0 ? -EMFILE : connect_to(d, to);

    if (err == -EINPROGRESS) {
        err = watch(d);
        if (!err)
            return -EINPROGRESS;
    }
    if (err)
        close_try(d);
    return err;
}

/* ---- the steps ------------------------------------------------------------------------------- */

/* The dialler is free for its next attempt before the outcome is told. */
static void
finish(struct dialler *d, int err)
{
    int fd = d->src.fd;
    struct sockaddr_storage local_to = d->local_to;
    struct conn_origin from = {.is_tcp = d->is_tcp, .is_dialled = true, .tls = d->tls};

    if (local_to.ss_family) {
        from.is_tcp = false;
        from.peer = &local_to;
    }
    if (d->addresses)
        freeaddrinfo(d->addresses);
    d->addresses = NULL;
    d->next = NULL;
    d->src.fd = -1;
    pthread_mutex_lock(&d->lock);
    d->phase = DIAL_IDLE;
    pthread_mutex_unlock(&d->lock);
    if (!err)
        err = conn_start(fd, &from, d->ops, d->arg);
    if (err)
        d->failed(d, err);
}

/* The result of the step before. */
static int
take_result(struct dialler *d)
{
    pthread_mutex_lock(&d->lock);
    if (d->phase == DIAL_RESOLVING) {
        if (d->asks)
            d->result = resolve_take(&d->resolve, &d->addresses);
        if (d->addresses)
            d->next = d->addresses;
        d->phase = DIAL_BETWEEN;
    }
    int err = d->is_cancelled ? -ECANCELED : d->result;

    pthread_mutex_unlock(&d->lock);
    return err;
}

static void
dial_step(struct worker_job *job)
{
    struct dialler *d = caa_container_of(job, struct dialler, step);

    timer_stop(&d->timer); /* waits for a running callback: after this no other thread uses this try */
    int err = take_result(d);

    if (err)
        close_try(d);
    while (d->src.fd < 0 && d->next && err != -ECANCELED) {
        err = try_next(d);
        if (err == -EINPROGRESS)
            return;
    }
    finish(d, err);
}

/* ---- the owner's side ------------------------------------------------------------------------ */

void
dialler_init(struct dialler *d, const struct transport_ops *ops, dial_failed_fn failed, void *arg)
{
    *d = (struct dialler){.ops = ops, .failed = failed, .arg = arg};
    pthread_mutex_init(&d->lock, NULL);
    d->src = (struct event_source){.fd = -1, .fn = dial_event, .gone = dial_gone};
    d->step.run = dial_step;
    d->resolve.done = &d->step;
    timer_init(&d->timer, dial_timeout);
}

void
dialler_fini(struct dialler *d)
{
    assert(d->phase == DIAL_IDLE);
    pthread_mutex_destroy(&d->lock);
}

int
dial_target_check(const struct dial_target *target)
{
    if (target->path)
        return strlen(target->path) >= sizeof(struct sockaddr_un){0}.sun_path ? -ENAMETOOLONG : 0;
    if (!target->host || !*target->host || target->port == 0)
        return -EINVAL;
    return strlen(target->host) > DIAL_HOST_MAX ? -ENAMETOOLONG : 0;
}

static void
set_unix(struct dialler *d, const char *path)
{
    d->unix_to = (struct sockaddr_un){.sun_family = AF_UNIX};
    memcpy(d->unix_to.sun_path, path, strlen(path)); /* dial_target_check() */
    d->unix_address = (struct addrinfo){
        .ai_family = AF_UNIX, .ai_addr = (struct sockaddr *)&d->unix_to, .ai_addrlen = sizeof d->unix_to};
    d->next = &d->unix_address;
    d->result = 0;
}

/* Digits are resolved at once; for a name the next step is posted when there is an answer, perhaps before
 * this function returns. */
static void
find_host(struct dialler *d, const struct dial_target *target)
{
    d->result = resolve_digits(target->host, target->port, &d->addresses);
    if (d->result != -EADDRNOTAVAIL)
        return;
    int err = resolve_start(&d->resolve, target->host, target->port);

    if (err)
        d->result = err;
    else
        d->asks = true;
}

void
dialler_start(struct dialler *d, const struct dial_target *target)
{
    pthread_mutex_lock(&d->lock);
    assert(d->phase == DIAL_IDLE);
    d->phase = DIAL_RESOLVING;
    d->is_cancelled = d->asks = false;
    d->is_tcp = !target->path;
    d->wants_low_port = d->is_tcp && target->wants_low_port;
    d->tls = d->is_tcp ? target->tls : NULL;
    d->wants_local = d->is_tcp && target->wants_local && !target->wants_low_port && !d->tls;
    d->local_to = (struct sockaddr_storage){0};
    d->timeout_ms = target->timeout_ms ? target->timeout_ms : DIAL_TIMEOUT_MS;
    if (d->is_tcp)
        find_host(d, target);
    else
        set_unix(d, target->path);
    bool posts = !d->asks;

    pthread_mutex_unlock(&d->lock);
    if (posts)
        worker_post(&d->step);
}

void
dialler_cancel(struct dialler *d)
{
    bool posts = false;

    pthread_mutex_lock(&d->lock);
    if (d->phase != DIAL_IDLE)
        d->is_cancelled = true;
    if (d->phase == DIAL_RESOLVING)
        posts = resolve_cancel(&d->resolve);
    pthread_mutex_unlock(&d->lock);
    if (posts)
        worker_post(&d->step);
    else
        dial_end_wait(d, -ECANCELED);
}
