/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RELEASEs that wait for a message to the same brick, or go along with the last calls about their fd.
 *
 * The caller of a RELEASE needs no reply, so to a brick that takes sequences the RELEASE goes behind the
 * calls of the next sequence. Without a sequence within `release-wait-ms`, or when RELEASES_LATE_MAX of them
 * wait, the RELEASEs go in a record of their own. A RELEASE never comes before the calls of its record, and
 * runs also if these fail. An fd that fcntl locks were taken through is released at once, because other
 * clients may wait for the locks.
 *
 * A call with closes_fd (call-stack.h) is the last one about an fd that is closed already. The fd's RELEASE
 * goes behind that call's sequence, with any `release-wait-ms`, because it would follow at once.
 *
 * Until then the brick has the file open, as if the program had closed the file that much later. Deaths:
 *
 *      of the mount        the end of the session closes the fds of all RELEASEs that have not come
 *      of the brick        closes all files
 *      of the connection   ends the session, as the mount's death does. Its numbers are dropped here, so that
 *                          no RELEASE of an old number comes to a new session
 *
 * Before another program takes the connection over, all RELEASEs are sent (client_releases_send()). */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/protocol/client/client-internal.h"

/* ---- sending --------------------------------------------------------------------------------- */

static void
single_answered(struct rpc_reply *r, void *arg)
{
    (void)r;
    (void)arg;
}

void
late_release_call(const struct late_release *l, struct fop_call *call)
{
    *call = (struct fop_call){
        .fop = l->is_dir ? FOP_releasedir : FOP_release, .gfid = l->gfid, .fd_nr = l->number};
}

void
late_release_send(struct rpc_client *rpc, const struct late_release *l)
{
    struct fop_call call;

    late_release_call(l, &call);
    int err = rpc_client_fop(rpc, &call, NULL, NULL, 0, single_answered, NULL);

    /* On other failures the connection is gone, and the number with it. */
    if (err == -ENOMEM || err == -EAGAIN)
        log_event(LOG_WARNING, NULL, "client-fd-left-open",
                  "%s: %s: the brick has it open for as long as the connection lasts", GFID(&l->gfid),
                  strerror(-err));
}

void
late_releases_answered(struct rpc_client *rpc, const struct late_release *list, unsigned count,
                       const struct fop_reply *replies)
{
    for (unsigned i = 0; i < count; i++) {
        if (replies[i].op_ret < 0 && replies[i].shortage == SHORTAGE_UNSENT)
            late_release_send(rpc, &list[i]);
        iobuf_unref(replies[i].iobuf);
    }
}

static void
batch_answered(struct rpc_reply *r, void *arg)
{
    struct client *c = arg;
    struct rpc_step_reply to[RELEASES_LATE_MAX];
    struct fop_reply replies[RELEASES_LATE_MAX];
    struct arena arena = {0};

    for (unsigned i = 0; i < c->batch_count; i++)
        to[i] = (struct rpc_step_reply){FOP_release, &replies[i], &arena};
    rpc_reply_sequence(r, to, c->batch_count);
    late_releases_answered(r->client, c->batch, c->batch_count, replies);
    arena_release(&arena);
    pthread_mutex_lock(&c->lock);
    c->batch_count = 0;
    pthread_mutex_unlock(&c->lock);
}

/* Moves the waiting RELEASEs to the client's batch. Returns false if a batch is under way. */
static bool
batch_begin(struct client *c)
{
    pthread_mutex_lock(&c->lock);
    bool begins = !c->batch_count && c->late_count > 1;

    if (begins) {
        memcpy(c->batch, c->late, c->late_count * sizeof c->late[0]);
        c->batch_count = c->late_count;
        c->late_count = 0;
    }
    pthread_mutex_unlock(&c->lock);
    return begins;
}

/* Returns 0 or -errno: no reply comes. */
static int
batch_send(struct client *c, struct rpc_client *rpc, const struct late_release *list, unsigned count)
{
    static const struct caller root;
    struct rpc_step steps[RELEASES_LATE_MAX];
    struct fop_call calls[RELEASES_LATE_MAX];

    for (unsigned i = 0; i < count; i++) {
        late_release_call(&list[i], &calls[i]);
        steps[i] = (struct rpc_step){.call = &calls[i], .caller = &root, .always = true};
    }
    return rpc_client_sequence(rpc, steps, count, 0, batch_answered, c);
}

static void
send_waiting(struct client *c, struct rpc_client *rpc)
{
    struct late_release list[RELEASES_LATE_MAX];
    unsigned count;

    if (batch_begin(c)) {
        if (!batch_send(c, rpc, c->batch, c->batch_count))
            return;
        count = c->batch_count;
        memcpy(list, c->batch, count * sizeof list[0]);
        pthread_mutex_lock(&c->lock);
        c->batch_count = 0;
        pthread_mutex_unlock(&c->lock);
    } else {
        count = late_releases_take(c, RELEASES_LATE_MAX, list);
    }
    for (unsigned i = 0; i < count; i++)
        late_release_send(rpc, &list[i]);
}

void
client_releases_send(struct client *c)
{
    struct brick_peer *peer = atomic_load(&c->peer);

    if (!peer)
        return;
    rpc_client_hold(brick_peer_client(peer));
    send_waiting(c, brick_peer_client(peer));
    rpc_client_let_go(brick_peer_client(peer));
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
late_timer_fired(struct timer *t)
{
    client_releases_send(caa_container_of(t, struct client, late_timer));
}

void
late_releases_init(struct client *c)
{
    timer_init(&c->late_timer, late_timer_fired);
}

unsigned
late_releases_take(struct client *c, unsigned most, struct late_release out[RELEASES_LATE_MAX])
{
    pthread_mutex_lock(&c->lock);
    unsigned count = c->late_count < most ? c->late_count : most;

    memcpy(out, c->late, count * sizeof *out);
    c->late_count -= count;
    memmove(c->late, c->late + count, c->late_count * sizeof *c->late);
    pthread_mutex_unlock(&c->lock);
    return count;
}

unsigned
late_release_put_locked(struct client *c, const struct late_release *l)
{
    if (c->late_count == RELEASES_LATE_MAX)
        return 0;
    c->late[c->late_count++] = *l;
    return c->late_count;
}

void
late_release_waits(struct client *c, struct rpc_client *rpc, unsigned count)
{
    const struct client_conf *conf = xlator_conf(c->xl);

    if (count == RELEASES_LATE_MAX)
        send_waiting(c, rpc);
    else if (count == 1)
        timer_start(&c->late_timer, (uint64_t)conf->release_wait_ms);
}
