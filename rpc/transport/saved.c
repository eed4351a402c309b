/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/saved.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"
#include "rpc/transport/transport-internal.h"

enum { LOOK_MS = 1, LOOKS = 2 }; /* a transport rests if it rests at so many looks */
#define FRAGMENT_LAST 0x80000000u
#define LISTENERS_MAX 64

/* ---- freezing -------------------------------------------------------------------------------- */

struct rest {
    bool is_resting;
    unsigned waiting; /* calls of all connections that wait for other calls */
};

static bool
conn_is_working(struct conn *c)
{
    pthread_mutex_lock(&c->lock);
    bool is = c->is_sending || c->is_dead;

    pthread_mutex_unlock(&c->lock);
    /* `busy` counts the registration with the loop, each batch and each posted read */
    return is || atomic_load(&c->busy) != 1 || atomic_load(&c->reader) & READER_READING;
}

bool
conn_dialled_rests(struct conn *c)
{
    return !conn_is_working(c);
}

static void
look_at_rest(struct conn *c, void *arg)
{
    struct rest *r = arg;

    if (c->is_dialled)
        return;
    r->is_resting &= !conn_is_working(c) && !flow_has_calls(c);
    r->waiting += flow_waiting_calls(c);
}

static bool
is_resting(unsigned (*parked)(void))
{
    struct rest r = {.is_resting = true};

    transport_each_conn(look_at_rest, &r);
    return r.is_resting && r.waiting == parked();
}

static void
pause_conn(struct conn *c, void *arg)
{
    (void)arg;
    if (!c->is_dialled)
        conn_pause(c);
}

static void
resume_conn(struct conn *c, void *arg)
{
    (void)arg;
    if (!c->is_dialled)
        conn_resume(c);
}

static void
end_stalled(struct conn *c, void *arg)
{
    (void)arg;
    if (!flow_is_stalled(c) || atomic_load(&c->is_dead))
        return;
    log_event(LOG_WARNING, NULL, "transport-stalled-peer",
              "a peer does not read the replies: the connection cannot be saved and is closed");
    conn_close(c);
}

int
transport_freeze(unsigned ms, unsigned (*parked)(void))
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000};
    uint64_t deadline = clock_mono_ns() + ms * 1000000ull;
    unsigned rests = 0;

    listeners_freeze(true); /* from now on no connection is added */
    transport_each_conn(pause_conn, NULL);
    do {
        rests = is_resting(parked) ? rests + 1 : 0;
        if (!rests && deadline - clock_mono_ns() < ms * 500000ull)
            transport_each_conn(end_stalled, NULL);
        if (rests < LOOKS)
            nanosleep(&pause, NULL);
    } while (rests < LOOKS && clock_mono_ns() < deadline);
    if (rests == LOOKS)
        return 0;
    transport_thaw();
    return -EBUSY;
}

void
transport_thaw(void)
{
    transport_each_conn(resume_conn, NULL);
    listeners_freeze(false);
}

/* ---- saving ---------------------------------------------------------------------------------- */

bool
conn_can_be_saved(const struct conn *c)
{
    return !c->is_dialled && !atomic_load(&c->tls) && conn_is_trusted(c) && !atomic_load(&c->is_dead);
}

bool
conn_dialled_can_be_saved(const struct conn *c)
{
    return c->is_dialled && !atomic_load(&c->tls) && !atomic_load(&c->is_dead);
}

static void
put_saved_mark(struct parcel *to, uint32_t mark)
{
    mark = __builtin_bswap32(mark);
    parcel_put_bytes(to, &mark, sizeof mark);
}

/* Appends the received bytes that no record handler has seen, as pieces. The part of a record that is cut
 * already becomes a separate fragment, so the rest may follow as a fragment. */
static void
put_unread(const struct conn *c, struct parcel *to)
{
    const struct record *r = &c->partial;

    if (r->bytes)
        put_saved_mark(to, (uint32_t)r->bytes);
    for (int i = 0; i < r->count; i++)
        parcel_put_bytes(to, r->iov[i].iov_base, r->iov[i].iov_len);
    if (c->is_in_fragment)
        put_saved_mark(to, c->fragment_left | (c->is_last_fragment ? FRAGMENT_LAST : 0));
    else
        parcel_put_bytes(to, c->mark, c->mark_have);
    if (c->in)
        parcel_put_bytes(to, c->in->bytes + c->in_start, c->in_end - c->in_start);
}

static void
put_unsent(struct conn *c, struct parcel *to)
{
    pthread_mutex_lock(&c->lock);
    for (const struct chunk *k = c->head; k; k = k->next)
        parcel_put_bytes(to, k->at, k->bytes);
    pthread_mutex_unlock(&c->lock);
}

/* Writes a list of pieces as a single piece. */
static void
put_joined(struct parcel *to, struct parcel *pieces)
{
    size_t all = 0, count;
    const void *at;

    while (pieces->at < pieces->used && (at = parcel_get_bytes(pieces, &count)))
        all += count;
    to->is_broken |= pieces->is_broken;
    pieces->at = 0;
    parcel_put_u64(to, all);
    while (pieces->at < pieces->used && (at = parcel_get_bytes(pieces, &count)))
        parcel_put_raw(to, at, count);
    parcel_free(pieces);
}

void
conn_save(struct conn *c, const void *calls, size_t bytes, struct parcel *to)
{
    struct parcel unread = {0}, unsent = {0};

    parcel_put_u32(to, (uint32_t)c->src.fd);
    parcel_put_u32(to, c->is_tcp);
    parcel_put_bytes(to, &c->peer, sizeof c->peer);
    parcel_put_u32(to, atomic_load(&c->calls_sent));
    parcel_put_bytes(&unread, calls, bytes);
    put_unread(c, &unread);
    put_joined(to, &unread);
    put_unsent(c, &unsent);
    put_joined(to, &unsent);
}

struct conns_saving {
    const void *arg;
    struct parcel *to;
};

static void
save_conn_of(struct conn *c, void *arg)
{
    const struct conns_saving *s = arg;

    if (c->arg != s->arg || !conn_can_be_saved(c))
        return;
    parcel_put_u32(s->to, 1);
    conn_save(c, NULL, 0, s->to);
}

void
conns_save(const void *arg, struct parcel *to)
{
    transport_each_conn(save_conn_of, &(struct conns_saving){arg, to});
    parcel_put_u32(to, 0);
}

static void
put_listener(int fd, void *arg)
{
    parcel_put_u32(arg, (uint32_t)fd);
}

static void
count_listener(int fd, void *arg)
{
    (void)fd;
    ++*(uint32_t *)arg;
}

void
listeners_save(struct parcel *to)
{
    uint32_t count = 0;

    listeners_each(count_listener, &count);
    parcel_put_u32(to, count);
    listeners_each(put_listener, to);
}

struct keeping {
    bool keeps;
    int err;
};

static void
keep_fd(int fd, void *arg)
{
    struct keeping *k = arg;

    if (fcntl(fd, F_SETFD, k->keeps ? 0 : FD_CLOEXEC) && !k->err)
        k->err = -errno;
}

static void
keep_conn(struct conn *c, void *arg)
{
    if (conn_can_be_saved(c))
        keep_fd(c->src.fd, arg);
}

int
conn_keep_open(struct conn *c, bool keeps)
{
    struct keeping k = {.keeps = keeps};

    keep_fd(c->src.fd, &k);
    return k.err;
}

int
transport_keep_open(bool keeps)
{
    struct keeping k = {.keeps = keeps};

    transport_each_conn(keep_conn, &k);
    listeners_each(keep_fd, &k);
    return k.err;
}

/* ---- the new program's listeners ------------------------------------------------------------- */

static int inherited[LISTENERS_MAX];
static unsigned inherited_count;

static bool
is_socket(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISSOCK(st.st_mode) && fcntl(fd, F_SETFD, FD_CLOEXEC) == 0;
}

void
listeners_restore(struct parcel *from)
{
    uint32_t count = parcel_get_u32(from);

    for (uint32_t i = 0; i < count && !from->is_broken; i++) {
        int fd = (int)parcel_get_u32(from);

        if (from->is_broken || !is_socket(fd))
            continue;
        if (inherited_count < LISTENERS_MAX)
            inherited[inherited_count++] = fd;
        else
            close(fd);
    }
}

int
listeners_take(const struct sockaddr *address, socklen_t bytes)
{
    const struct sockaddr_un *un = (const void *)address;
    /* An abstract name has the length of the address; the kernel may count the NUL behind a path or not. */
    bool is_path = address->sa_family == AF_UNIX && un->sun_path[0];

    for (unsigned i = 0; i < inherited_count; i++) {
        struct sockaddr_storage own = {0};
        socklen_t size = sizeof own;
        int fd = inherited[i];

        if (getsockname(fd, (struct sockaddr *)&own, &size) || own.ss_family != address->sa_family)
            continue;
        if ((!is_path && size != bytes) || memcmp(&own, address, size < bytes ? size : bytes) != 0)
            continue;
        inherited[i] = inherited[--inherited_count];
        return fd;
    }
    return -1;
}

void
listeners_drop_rest(void)
{
    while (inherited_count)
        close(inherited[--inherited_count]);
}

/* ---- the new program's connections ----------------------------------------------------------- */

static struct conn *
conn_restore_any(struct parcel *from, bool is_dialled, const struct transport_ops *ops, void *arg)
{
    struct sockaddr_storage peer;
    struct conn_rest rest;
    int fd = (int)parcel_get_u32(from);
    const struct conn_origin origin = {
        .is_tcp = parcel_get_u32(from), .is_dialled = is_dialled, .peer = &peer, .rest = &rest};

    parcel_get_exactly(from, &peer, sizeof peer);
    rest.calls_sent = parcel_get_u32(from);
    rest.unread = parcel_get_bytes(from, &rest.unread_bytes);
    rest.unsent = parcel_get_bytes(from, &rest.unsent_bytes);
    rest.conn = NULL;
    if (from->is_broken || !is_socket(fd))
        return NULL;
    return conn_start(fd, &origin, ops, arg) ? NULL : rest.conn;
}

struct conn *
conn_restore(struct parcel *from, const struct transport_ops *ops, void *arg)
{
    return conn_restore_any(from, false, ops, arg);
}

struct conn *
conn_restore_dialled(struct parcel *from, const struct transport_ops *ops, void *arg)
{
    return conn_restore_any(from, true, ops, arg);
}

/* Unlike its descriptor, a socket's cookie is never used again. 0: there is no such socket. */
static uint64_t
socket_cookie(int fd)
{
    uint64_t cookie;
    socklen_t size = sizeof cookie;

    return getsockopt(fd, SOL_SOCKET, SO_COOKIE, &cookie, &size) ? 0 : cookie;
}

void
conn_save_partner(const struct conn *accepted, struct parcel *to)
{
    parcel_put_u32(to, accepted ? (uint32_t)accepted->src.fd : UINT32_MAX);
    parcel_put_u64(to, accepted ? socket_cookie(accepted->src.fd) : 0);
}

struct partner {
    int fd;
    uint64_t cookie;
    const struct gfid *token;
    bool is_taken;
};

static void
offer_to_conn(struct conn *c, void *arg)
{
    struct partner *p = arg;

    if (!c->is_dialled && c->src.fd == p->fd && c->ops->path_offered && socket_cookie(p->fd) == p->cookie)
        p->is_taken = c->ops->path_offered(c, c->arg, p->token);
}

bool
conn_offer_to_partner(struct parcel *from, const struct gfid *token)
{
    struct partner p = {.token = token};

    p.fd = (int)parcel_get_u32(from);
    p.cookie = parcel_get_u64(from);
    if (p.fd >= 0 && p.cookie && !from->is_broken)
        transport_each_conn(offer_to_conn, &p);
    return p.is_taken;
}

void
conn_start_restored(struct conn *c)
{
    conn_resume(c);
    receive_resume(c);
    send_flush(c);
}

void
conns_restore(struct parcel *from, const struct transport_ops *ops, void *arg)
{
    while (parcel_get_u32(from)) {
        struct conn *c = conn_restore(from, ops, arg);

        if (!c)
            continue;
        conn_start_restored(c);
        conn_unref(c);
    }
}
