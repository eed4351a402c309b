/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* A connection's life: conn_start() makes the connection for a listener or dialler and registers the
 * connection with the loop. A thread that sees a failure kills the connection. `closed` follows when no
 * thread can call a record handler any more. The last reference frees the memory. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "rpc/transport/local-socket.h"
#include "rpc/transport/transport-internal.h"

enum { QUIET_LOOK_MS = 5, QUIET_LOOKS = 10, QUIET_MAX_MS = 500 }; /* of transport_quiesce() */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    struct cds_list_head conns; /* connections whose `closed` has not returned */
    unsigned count;
    struct transport_stats past; /* of connections that are gone */
    struct mem_pool *pool;
} transport = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .emptied = PTHREAD_COND_INITIALIZER,
    .conns = CDS_LIST_HEAD_INIT(transport.conns),
};

int
transport_pools_init(void)
{
    if (!transport.pool)
        transport.pool = mem_pool_new(struct conn, 0);
    if (!transport.pool)
        return -ENOMEM;
    admit_init();
    int err = receive_pools_init();

    return err ? err : send_pools_init();
}

/* ---- counters -------------------------------------------------------------------------------- */

void
conn_free(struct conn *c)
{
    send_drop_moments(c);
    flow_return_credit_locked(c);
    iobuf_unref(c->apart);
    struct tls *tls = atomic_load(&c->tls);

    if (tls || c->tls_unused)
        tls_free(tls ? tls : c->tls_unused);
    close(c->src.fd);
    pthread_mutex_destroy(&c->lock);
    mem_put(c);
}

bool
conn_busy_get(struct conn *c)
{
    unsigned n = atomic_load_explicit(&c->busy, memory_order_relaxed);

    while (n) {
        if (atomic_compare_exchange_weak(&c->busy, &n, n + 1))
            return true;
    }
    return false;
}

void
conn_busy_put(struct conn *c)
{
    /* by any worker: this worker may accept connections without an end in a flood, and its closed connections
     * would count until then */
    if (atomic_fetch_sub(&c->busy, 1) == 1)
        worker_post_any(&c->closed_job);
}

/* ---- the end --------------------------------------------------------------------------------- */

static void
add_figures(struct transport_stats *to, const struct conn *c)
{
    to->records += atomic_load_explicit(&c->records, memory_order_relaxed);
    to->messages += atomic_load_explicit(&c->messages, memory_order_relaxed);
    to->bytes_in += atomic_load_explicit(&c->bytes_in, memory_order_relaxed);
    to->bytes_out += atomic_load_explicit(&c->bytes_out, memory_order_relaxed);
    to->reads += atomic_load_explicit(&c->reads, memory_order_relaxed);
    to->writes += atomic_load_explicit(&c->writes, memory_order_relaxed);
}

static void
conn_unlist(struct conn *c)
{
    pthread_mutex_lock(&transport.lock);
    cds_list_del(&c->link);
    add_figures(&transport.past, c);
    transport.past.closed++;
    if (--transport.count == 0)
        pthread_cond_broadcast(&transport.emptied);
    pthread_mutex_unlock(&transport.lock);
}

static void
conn_closed_job(struct worker_job *job)
{
    struct conn *c = caa_container_of(job, struct conn, closed_job);

    struct tls *tls = atomic_load(&c->tls);

    if (tls)
        tls_stop(tls);
    c->ops->closed(c, c->arg);
    receive_fini(c);
    admit_leave(c);
    conn_unlist(c);
    conn_unref(c);
}

static void
conn_gone(struct event_source *src)
{
    conn_busy_put(caa_container_of(src, struct conn, src));
}

void
conn_kill(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    if (c->is_dead) {
        pthread_mutex_unlock(&c->lock);
        return;
    }
    c->is_dead = true;
    bool is_registered = c->is_registered;
    struct chunk *queue = send_take_queue_locked(c);

    pthread_mutex_unlock(&c->lock);
    send_free_chunks(queue);
    flow_less(c);
    shutdown(c->src.fd, SHUT_RDWR);
    if (is_registered) /* else conn_register() sees the dead connection, or `accepted` refused it */
        event_remove(&c->src);
}

void
conn_close(struct conn *c)
{
    atomic_store_explicit(&c->is_refused, true, memory_order_relaxed);
    send_flush(c); /* earlier answers shall arrive if there is room */
    conn_kill(c);
}

/* Counts the clients that have logged in, and the clients among them with unfinished requests. */
static void
conn_count_clients(unsigned *clients, unsigned *busy)
{
    const struct conn *c;

    *clients = *busy = 0;
    pthread_mutex_lock(&transport.lock); /* keeps the descriptors open */
    cds_list_for_each_entry (c, &transport.conns, link) {
        int unread = 0;

        if (c->is_dialled || !conn_has_login(c) || atomic_load(&c->is_dead))
            continue;
        ++*clients;
        *busy += (ioctl(c->src.fd, FIONREAD, &unread) == 0 && unread > 0) || flow_has_calls(c);
    }
    pthread_mutex_unlock(&transport.lock);
}

void
transport_quiesce(void)
{
    const struct timespec pause = {.tv_nsec = QUIET_LOOK_MS * 1000000};
    unsigned clients, busy, quiet_looks = 0;

    send_hold_back(true);
    for (unsigned ms = 0; ms < QUIET_MAX_MS && quiet_looks < QUIET_LOOKS; ms += QUIET_LOOK_MS) {
        conn_count_clients(&clients, &busy);
        if (!clients)
            return;
        quiet_looks = busy ? 0 : quiet_looks + 1;
        nanosleep(&pause, NULL);
    }
}

void
transport_close_all(void)
{
    struct conn *c;

    /* held over system calls: only the end of connections waits for the lock */
    pthread_mutex_lock(&transport.lock);
    cds_list_for_each_entry (c, &transport.conns, link)
        conn_close(c);
    while (transport.count)
        pthread_cond_wait(&transport.emptied, &transport.lock);
    pthread_mutex_unlock(&transport.lock);
    send_hold_back(false);
}

/* ---- the beginning --------------------------------------------------------------------------- */

static void
conn_event(struct event_source *src, uint32_t events)
{
    struct conn *c = caa_container_of(src, struct conn, src);

    if (events & (EPOLLOUT | EPOLLERR | EPOLLHUP))
        send_writable(c);
    struct tls *tls = atomic_load_explicit(&c->tls, memory_order_relaxed);

    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLERR | EPOLLHUP) || (tls && tls_wants_event(tls)))
        receive_event(c, events);
}

/* An IPv4 client of a socket that serves both versions looks like a client of an IPv4 socket. */
static void
unmap_v4(struct sockaddr_storage *a)
{
    struct sockaddr_in6 six;

    memcpy(&six, a, sizeof six);
    if (six.sin6_family != AF_INET6 || !IN6_IS_ADDR_V4MAPPED(&six.sin6_addr))
        return;
    struct sockaddr_in four = {.sin_family = AF_INET, .sin_port = six.sin6_port};

    memcpy(&four.sin_addr, six.sin6_addr.s6_addr + 12, sizeof four.sin_addr);
    memset(a, 0, sizeof *a);
    memcpy(a, &four, sizeof four);
}

static int
set_option(int fd, int level, int name, int value)
{
    return setsockopt(fd, level, name, &value, sizeof value) ? -errno : 0;
}

/* As stock's servers (wire 1.7). TCP_NODELAY is the important option; the others only find dead peers
 * sooner. */
static int
set_tcp_options(int fd)
{
    int err = set_option(fd, IPPROTO_TCP, TCP_NODELAY, 1);

    if (!err)
        err = set_option(fd, SOL_SOCKET, SO_KEEPALIVE, 1);
    if (!err)
        err = set_option(fd, IPPROTO_TCP, TCP_KEEPIDLE, 20);
    if (!err)
        err = set_option(fd, IPPROTO_TCP, TCP_KEEPINTVL, 2);
    if (!err)
        err = set_option(fd, IPPROTO_TCP, TCP_KEEPCNT, 9);
    if (!err)
        err = set_option(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, 42000);
    return err;
}

static struct conn *
conn_new(int fd, const struct conn_origin *from, const struct transport_ops *ops, void *arg)
{
    struct conn *c = mem_get0(transport.pool);

    if (!c)
        return NULL;
    flow_init(c);
    atomic_init(&c->busy, 1);
    c->ops = ops;
    c->arg = arg;
    c->is_tcp = from->is_tcp;
    c->is_dialled = from->is_dialled;
    c->src = (struct event_source){.fd = fd, .fn = conn_event, .gone = conn_gone};
    c->closed_job.run = conn_closed_job;
    c->read_job.run = receive_read_job;
    c->flush_job.run = send_flush_job;
    timer_init(&c->patience, receive_patience_due);
    pthread_mutex_init(&c->lock, NULL);

    socklen_t size = sizeof c->peer;

    if (from->peer)
        c->peer = *from->peer;
    else if (getpeername(fd, (struct sockaddr *)&c->peer, &size))
        c->peer.ss_family = AF_UNSPEC; /* the peer has hung up already: the first read will tell */
    unmap_v4(&c->peer);
    return c;
}

/* The lock is held over the call so that the thread that kills the connection knows whether the loop has an
 * event source to remove. A connection that `accepted` has closed already still gets its `closed`. */
static void
conn_register(struct conn *c)
{
    int err = 0;

    pthread_mutex_lock(&c->lock);
    if (!c->is_dead) {
        err = event_add(&c->src, EPOLLIN | EPOLLRDHUP | (c->is_tcp || c->wants_out ? EPOLLOUT : 0));
        c->is_registered = !err;
    }
    bool is_registered = c->is_registered;

    pthread_mutex_unlock(&c->lock);
    if (is_registered) /* and perhaps already gone */
        return;
    if (err)
        log_event(LOG_ERROR, NULL, "transport-register-failed", "cannot watch a connection: %s",
                  strerror(-err));
    conn_kill(c);
    conn_busy_put(c);
}

/* A local socket beside the TCP socket has no TLS: its peers come by TCP where TLS is demanded. 0 or -errno,
 * also if the peer is not allowed there. */
static int
conn_choose_tls(struct conn *c, const struct conn_origin *from)
{
    bool allows_plain = false, is_by_port = c->is_tcp || c->peer.ss_family != AF_UNIX;
    struct tls_config *config = from->is_dialled                ? from->tls ? tls_config_ref(from->tls) : NULL
                                : c->ops->tls && is_by_port ? c->ops->tls(c->arg, &allows_plain)
                                                            : NULL;

    if (!config)
        return 0;
    if (!c->is_tcp) {
        tls_config_unref(config);
        if (allows_plain)
            return 0;
        tls_send_refusal(c->src.fd);
        log_event(LOG_WARNING, NULL, "tls-local-refused",
                  "a client of this machine speaks without TLS, which this port demands");
        return -EACCES;
    }
    struct tls *tls = tls_new(c, config, allows_plain);
    atomic_init(&c->tls, tls);
    return tls ? 0 : -ENOMEM;
}

void
transport_each_conn(void (*fn)(struct conn *c, void *arg), void *arg)
{
    struct conn *c;

    pthread_mutex_lock(&transport.lock);
    cds_list_for_each_entry (c, &transport.conns, link)
        fn(c, arg);
    pthread_mutex_unlock(&transport.lock);
}

/* 0 or -ENOMEM. */
static int
conn_put_rest(struct conn *c, struct conn_rest *rest)
{
    if (!rest)
        return 0;
    conn_pause(c);
    atomic_store(&c->calls_sent, rest->calls_sent);
    rest->conn = conn_ref(c); /* for conn_restore() */
    int err = receive_put_unread(c, rest->unread, rest->unread_bytes);
    return err ? err : send_put_unsent(c, rest->unsent, rest->unsent_bytes);
}

int
conn_start(int fd, const struct conn_origin *from, const struct transport_ops *ops, void *arg)
{
    int err = from->is_tcp ? set_tcp_options(fd) : 0;
    struct conn *c = conn_new(fd, from, ops, arg);

    if (err)
        log_event(LOG_DEBUG, NULL, "transport-socket-option", "a socket keeps the kernel's TCP options: %s",
                  strerror(-err));
    if (!c) {
        log_event(LOG_ERROR, NULL, "transport-no-memory", "a connection is refused for lack of memory");
        close(fd);
        return -ENOMEM;
    }
    bool is_admitted = (from->rest || conn_choose_tls(c, from) == 0) && admit_enter(c) &&
                       conn_put_rest(c, from->rest) == 0;

    if (!is_admitted || ops->accepted(c, arg)) {
        if (from->rest && from->rest->conn)
            conn_unref(c);
        if (from->rest)
            from->rest->conn = NULL;
        admit_leave(c);
        conn_kill(c);
        conn_unref(c);
        return is_admitted ? 0 : -EMFILE;
    }
    pthread_mutex_lock(&transport.lock);
    cds_list_add_tail(&c->link, &transport.conns);
    transport.count++;
    transport.past.accepted++;
    pthread_mutex_unlock(&transport.lock);
    if (atomic_load(&c->tls))
        tls_start(atomic_load(&c->tls));
    conn_register(c);
    return 0;
}

/* ---- small things ---------------------------------------------------------------------------- */

void
conn_set_guest(struct conn *c)
{
    admit_guest(c);
}

void
conn_set_trusted(struct conn *c)
{
    admit_login(c);
    atomic_store_explicit(&c->is_trusted, true, memory_order_relaxed);
}

bool
conn_is_trusted(const struct conn *c)
{
    return atomic_load_explicit(&c->is_trusted, memory_order_relaxed);
}

bool
conn_is_gone(const struct conn *c)
{
    return atomic_load_explicit(&c->is_dead, memory_order_relaxed);
}

const atomic_bool *
conn_gone_flag(const struct conn *c)
{
    return &c->is_dead;
}

uint32_t
conn_next_xid(struct conn *c)
{
    return atomic_fetch_add_explicit(&c->calls_sent, 1, memory_order_relaxed) + 1;
}

uint64_t
conn_bytes_in(const struct conn *c)
{
    return atomic_load_explicit(&c->bytes_in, memory_order_relaxed);
}

uint64_t
conn_bytes_out(const struct conn *c)
{
    return atomic_load_explicit(&c->bytes_out, memory_order_relaxed);
}

size_t
conn_bytes_queued(const struct conn *c)
{
    return atomic_load_explicit(&c->queued_bytes, memory_order_relaxed);
}

void
conn_set_user(struct conn *c, void *user)
{
    atomic_store_explicit(&c->user, user, memory_order_release);
}

void *
conn_user(const struct conn *c)
{
    return atomic_load_explicit(&c->user, memory_order_acquire);
}

const struct sockaddr_storage *
conn_peer(const struct conn *c)
{
    return &c->peer;
}

void
conn_peer_text(const struct conn *c, char out[CONN_PEER_TEXT_MAX])
{
    const struct sockaddr_in *v4 = (const struct sockaddr_in *)&c->peer;
    const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)&c->peer;
    bool is_v4 = c->peer.ss_family == AF_INET, is_v6 = c->peer.ss_family == AF_INET6;
    char digits[INET6_ADDRSTRLEN] = "?";

    if (is_v4)
        inet_ntop(AF_INET, &v4->sin_addr, digits, sizeof digits);
    else if (is_v6)
        inet_ntop(AF_INET6, &v6->sin6_addr, digits, sizeof digits);
    snprintf(out, CONN_PEER_TEXT_MAX, "%s:%u", digits,
             is_v4 ? ntohs(v4->sin_port) : is_v6 ? ntohs(v6->sin6_port) : 0);
}

const char *
conn_tls_name(const struct conn *c)
{
    const struct tls *tls = atomic_load(&c->tls);

    return tls ? tls_peer_name(tls) : NULL;
}

void
conn_tls_failure(struct conn *c, char *out, size_t size)
{
    struct tls *tls = atomic_load(&c->tls);

    *out = '\0';
    if (tls)
        tls_failure(tls, out, size);
    else if (c->is_tls_demanded)
        snprintf(out, size,
                 "the peer demands TLS, and this side speaks without (client.ssl or management TLS is off)");
}

unsigned
conn_address_slot(const struct conn *c)
{
    return c->address_slot;
}

bool
conn_is_to_self(const struct conn *c)
{
    struct ucred peer;
    socklen_t size = sizeof peer;

    return !c->is_tcp && getsockopt(c->src.fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
           size == sizeof peer && peer.pid == getpid();
}

int
conn_local(const struct conn *c, struct sockaddr_storage *out)
{
    struct sockaddr_storage peer;
    socklen_t size = sizeof *out;

    if (getsockname(c->src.fd, (struct sockaddr *)out, &size) < 0)
        return -errno;
    return out->ss_family == AF_UNIX && c->peer.ss_family != AF_UNIX
               ? local_socket_peer(c->src.fd, &peer, out)
               : 0;
}

void
transport_stats(struct transport_stats *out)
{
    struct conn *c;

    pthread_mutex_lock(&transport.lock);
    *out = transport.past;
    cds_list_for_each_entry (c, &transport.conns, link)
        add_figures(out, c);
    pthread_mutex_unlock(&transport.lock);
}
