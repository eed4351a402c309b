/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/client: the bottom of a client's graph: one remote brick.
 *
 * A call is sent as it is: its inodes and fds become gfids and numbers, the codec encodes it into the
 * connection's queue, and the worker that reads the reply decodes it into the call stack's reply and
 * unwinds it. No thread waits, and only small messages are copied.
 *
 *      PARENT         start()           logged in           fds are open again
 *        no brick ----------> AWAY ---------------> REOPENING ----------------> SERVING: CHILD_UP
 *                              ^                         |                          |
 *                              +--- connection lost -----+--------------------------+  CHILD_DOWN; ENOTCONN
 *                                                                                      for waiting calls
 *
 * While the client is not serving, each call gets ENOTCONN at once: layers above decide whether to wait. A
 * call ends with its reply, with the loss of the connection, or after `frame-timeout`, with ENOTCONN in the
 * last two cases: then it is unknown whether the brick has executed the call.
 *
 * A call gets ENOMEM if there is no memory for the call or for the reply, or if the number of calls is at
 * its limit. reply.shortage tells this, and whether the brick has executed the call. It is no failure of
 * the brick, and the connection stays.
 *
 * The caller of an open does not make the fd: the reply of OPEN, OPENDIR and CREATE has it (reply.fd), as
 * the reply of a brick's storage does. A layer that opens a file on several children, or later on one more,
 * passes its fd (call.fd): each child's number is then kept with that fd, and reply.fd is a further
 * reference to it.
 *
 * The context of an fd is the brick's number for it (remote-fd.c).
 *
 * Joined calls (call_stack_join()) go in one record to a brick that is Kiln, too, unless `compound` is off.
 * To another brick, or inside of this process, they go one after another, with the same results. A RELEASE
 * goes behind them (late-release.c). */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "graph/dir-offset.h"
#include "log/dump.h"
#include "log/log.h"
#include "rpc/xdr/sequence-program.h"
#include "xlators/protocol/client/client-internal.h"
#include "xlators/protocol/client/client.h"

#define GLUSTERD_PORT_DEFAULT "24007"

static const char *const transports[] = {"tcp", "socket", NULL};

static const struct option client_options[] = {
    OPT_STR(struct client_conf, host, "remote-host", NULL),
    OPT_STR(struct client_conf, brick, "remote-subvolume", NULL),
    OPT_INT(struct client_conf, port, "remote-port", GLUSTERD_PORT_DEFAULT, 1, 65535),
    OPT_STR(struct client_conf, username, "username", NULL),
    OPT_STR(struct client_conf, password, "password", NULL),
    OPT_TIME(struct client_conf, ping_timeout_s, "ping-timeout", "42", 0, 1013),
    OPT_TIME(struct client_conf, call_timeout_s, "frame-timeout", "1800", 0, 86400),
    OPT_BOOL(struct client_conf, sends_gids, "send-gids", "on"),
    OPT_BOOL(struct client_conf, strict_locks, "strict-locks", "off"),
    OPT_BOOL(struct client_conf, strips_o_direct, "filter-O_DIRECT", "off"),
    OPT_BOOL(struct client_conf, any_port, "client-bind-insecure", "on"),
    OPT_BOOL(struct client_conf, local_socket, "local-socket", "on"),
    OPT_BOOL(struct client_conf, inside, "inside", "off"),
    OPT_BOOL(struct client_conf, compound, "compound", "on"),
    OPT_INT(struct client_conf, release_wait_ms, "release-wait-ms", "0", 0, 60000),
    OPT_ENUM(struct client_conf, transport, "transport-type", "tcp", transports),
    TLS_OPTIONS(struct client_conf, tls),
    OPT_BOOL(struct client_conf, checks_host, "transport.socket.ssl-check-host", "off"),
    OPT_IGNORED("event-threads"),
    OPT_IGNORED("tcp-window-size"),
    OPT_IGNORED("volfile-key"), /* for kadalu */
    OPT_STR(struct client_conf, subdir, "subdir-mount", NULL),
    OPT_STR(struct client_conf, process_name, "process-name", "fuse"), /* of libgfapi's programs */
    OPT_UUID(struct client_conf, volume_id, "volume-id"),
    OPT_PREFIX("transport."),
    OPT_END,
};

/* ---- replies --------------------------------------------------------------------------------- */

static bool
is_opening_fop(enum fop fop)
{
    return fop == FOP_open || fop == FOP_opendir || fop == FOP_create;
}

static bool
is_listing_fop(enum fop fop)
{
    return fop == FOP_readdir || fop == FOP_readdirp;
}

/* Adds the brick's number to the cookies, because a listing may join several bricks. */
static void
join_offsets(const struct client *c, struct dirent_entry *e)
{
    unsigned bricks = c->xl->graph->layers[0].leaf_count;

    for (; e; e = e->next)
        e->off = dir_offset_join(e->off, c->xl->leaf_first, bricks);
}

/* Returns whether the reply has an object that layers above link by its gfid. */
static bool
brings_object(enum fop fop)
{
    switch (fop) {
    case FOP_lookup:
    case FOP_create:
    case FOP_mknod:
    case FOP_mkdir:
    case FOP_symlink:
    case FOP_link:
        return true;
    default:
        return false;
    }
}

/* Returns the reply's attributes of the object that the call was about; NULL: none. */
static const struct iatt *
asked_attributes(const struct fop_call *call, const struct fop_reply *reply)
{
    switch (call->fop) {
    case FOP_lookup:
        return call->loc.parent ? NULL : &reply->stat;
    case FOP_stat:
    case FOP_fstat:
        return &reply->stat;
    case FOP_setattr:
    case FOP_fsetattr:
        return &reply->post;
    case FOP_truncate:
    case FOP_ftruncate: /* an arbiter sends none (brick 10.9) */
        return reply->post.mode ? &reply->post : NULL;
    default:
        return NULL;
    }
}

/* A linkto file has the gfid of the file that it points to, possibly a symlink. Only internal calls of the
 * volume see it. */
static bool
is_linkto_attributes(const struct call_stack *stk, const struct iatt *a)
{
    return stk->caller.pid < 0 && S_ISREG(a->mode) && (a->mode & 07777) == S_ISVTX;
}

/* Returns whether the attributes are impossible: an object never changes its type, and no object is that
 * large. The kernel gives up an inode with such attributes; for the root, that is the whole mount. */
static bool
cannot_be(const struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;
    const struct inode *inode = call->fd ? call->fd->inode : call->loc.inode;
    const struct iatt *a = asked_attributes(call, &stk->reply);

    if (!inode || !a)
        return false;
    uint32_t type = inode_type(inode);

    return (type && ((a->mode ^ type) & S_IFMT) && !is_linkto_attributes(stk, a)) || a->size > INT64_MAX;
}

static bool
takes_lock(const struct fop_call *call)
{
    return call->fop == FOP_lk && call->cmd != 0 && call->type != FLOCK_UNLOCK;
}

/* For other fops only the sign of op_ret has a meaning. A layer above may return it as a verdict. */
static bool
returns_count(enum fop fop)
{
    switch (fop) {
    case FOP_readv:
    case FOP_writev:
    case FOP_readdir:
    case FOP_readdirp:
    case FOP_readlink:
    case FOP_getxattr:
    case FOP_fgetxattr:
    case FOP_copy_file_range:
        return true;
    default:
        return false;
    }
}

/* A LOOKUP with this key may find an object without a gfid (brick 4.1). */
static bool
may_lack_gfid(const struct fop_call *call)
{
    int64_t may = 0;

    if (call->fop != FOP_lookup)
        return false;
    return dict_has(call->xdata, DICT_KEY_UNLINKED_LOOKUP) ||
           (!dict_get_int(call->xdata, DICT_KEY_GFIDLESS_LOOKUP, &may) && may);
}

/* Processes a successful reply. Returns 0 or -errno. */
static int
process_reply(struct client *c, struct call_stack *stk)
{
    struct fop_call *call = &stk->call;
    struct fop_reply *reply = &stk->reply;
    struct remote_fd *r;

    if (!returns_count(call->fop))
        reply->op_ret = 0;
    if (brings_object(call->fop) && gfid_is_null(&reply->stat.gfid) && !may_lack_gfid(call)) {
        log_event(LOG_WARNING, c->xl, "client-object-without-gfid", "the brick's %s brings no gfid",
                  fop_info[call->fop].name);
        return -EIO;
    }
    if (cannot_be(stk)) {
        log_event(LOG_WARNING, c->xl, "client-object-cannot-be",
                  "the brick's %s: %s has another type, or no size", fop_info[call->fop].name,
                  GFID(&call->gfid));
        return -EIO;
    }
    if (is_opening_fop(call->fop)) {
        int err = remote_fd_make(c, stk);

        if (!err && c->saved)
            client_opened_again(c, stk);
        return err;
    }
    if (is_listing_fop(call->fop))
        join_offsets(c, reply->entries);
    switch (call->fop) {
    case FOP_lk:
        if (call->cmd == 0 || !call->fd || !(r = fd_ctx(call->fd, c->xl)))
            return 0;
        if (takes_lock(call))
            atomic_store(&r->has_locks, true);
        held_locks_note(c, stk, r);
        return 0;
    case FOP_flush:
        held_locks_flushed(c, &call->gfid, &stk->caller.lk_owner);
        return 0;
    case FOP_writev: /* a layer above would take all other bricks' writes for short ones */
        if ((uint64_t)reply->op_ret <= call->payload_bytes)
            return 0;
        log_event(LOG_WARNING, c->xl, "client-write-too-long", "the brick has written %d bytes of %zu to %s",
                  reply->op_ret, call->payload_bytes, GFID(&call->gfid));
        return -EIO;
    case FOP_readv: /* more data than requested must not be passed on */
        if ((uint64_t)reply->op_ret > call->size) {
            reply->op_ret = (int32_t)call->size;
            reply->payload.iov_len = call->size;
        }
        return 0;
    default:
        return 0;
    }
}

/* Answers the call with its decoded reply. */
static void
answer_call(struct call_stack *stk)
{
    int err = stk->reply.op_ret < 0 ? 0 : process_reply(stk->xl->private, stk);

    if (err == -ENOMEM) { /* out of memory for the fd */
        iobuf_unref(stk->reply.iobuf);
        stk->reply =
            (struct fop_reply){.op_ret = -1, .op_errno = ENOMEM, .shortage = SHORTAGE_UNREAD};
    }
    if (err && err != -ENOMEM)
        call_stack_fail(stk, -err);
    else
        call_stack_unwind(stk);
}

static void
fop_reply_arrived(struct rpc_reply *r, void *arg)
{
    struct call_stack *stk = arg;

    rpc_reply_fop(r, stk->call.fop, &stk->reply, &stk->arena);
    answer_call(stk);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* Sets the gfids and names that the wire uses. */
static void
put_call_address(struct fop_call *call)
{
    if (call->loc.inode)
        call->gfid = call->loc.inode->gfid;
    if (call->fd)
        call->gfid = call->fd->inode->gfid;
    if (call->loc.parent) {
        call->pargfid = call->loc.parent->gfid;
        call->name = call->loc.name;
    }
    if (call->loc2.parent) {
        call->pargfid2 = call->loc2.parent->gfid;
        call->name2 = call->loc2.name;
    }
    if (call->fd2)
        call->gfid2 = call->fd2->inode->gfid;
}

static int
put_fds(struct client *c, struct fop_call *call)
{
    if (is_opening_fop(call->fop))
        return 0;
    int err = call->fd ? remote_fd_number(c, call->fop, call->fd, &call->fd_nr) : 0;

    return !err && call->fd2 ? remote_fd_number(c, call->fop, call->fd2, &call->fd2_nr) : err;
}

/* Completes the call for the wire. Returns 0 or -errno. */
static int
prepare_call(struct client *c, struct call_stack *stk, struct caller *caller)
{
    const struct client_conf *conf = xlator_conf(c->xl);
    int err = put_fds(c, &stk->call);

    if (err)
        return err;
    if (stk->takes_fd && !stk->call.fd)
        stk->call.fd_nr = FD_ANONYMOUS; /* the brick replaces it */
    *caller = stk->caller;
    if (!conf->sends_gids)
        caller->group_count = 0;
    if (is_listing_fop(stk->call.fop)) {
        unsigned brick;

        stk->call.offset = dir_offset_split(stk->call.offset, c->xl->graph->layers[0].leaf_count, &brick);
    }
    if (conf->strips_o_direct && is_opening_fop(stk->call.fop))
        stk->call.flags &= ~(uint32_t)O_DIRECT;
    return 0;
}

static int
send_call(struct client *c, struct rpc_client *rpc, struct call_stack *stk)
{
    struct iobuf *payload = stk->call.payload_iobuf;
    struct caller caller;
    int err = prepare_call(c, stk, &caller);

    return err ? err
               : rpc_client_fop(rpc, &stk->call, &caller, payload ? iobuf_ref(payload) : NULL, 0,
                                fop_reply_arrived, stk);
}

static xl_verdict
send_single(struct xlator *xl, struct call_stack *stk)
{
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer);

    if (!peer || !atomic_load(&c->is_serving))
        return -ENOTCONN;
    struct rpc_client *rpc = brick_peer_client(peer);
    xl_verdict verdict = c->saved ? client_answer_saved(c, stk) : XL_PASS;

    if (verdict != XL_PASS)
        return verdict;
    put_call_address(&stk->call);
    rpc_client_hold(rpc);
    int err = send_call(c, rpc, stk); /* if 0, the call may already be answered */
    rpc_client_let_go(rpc);
    if (err == -ENOMEM || err == -EAGAIN)
        return call_stack_unsent(stk);
    return err ? err : XL_OWNED;
}

/* ---- joined calls ---------------------------------------------------------------------------- */

/* The calls of a record, and the RELEASEs behind the calls. On the first call's arena. */
struct sent_sequence {
    struct call_stack *first;
    unsigned releases;
    struct late_release late[RELEASES_LATE_MAX];
};

static void
sequence_arrived(struct rpc_reply *r, void *arg)
{
    const struct sent_sequence *sent = arg;
    struct rpc_step_reply replies[SEQUENCE_STEPS_MAX];
    struct fop_reply released[RELEASES_LATE_MAX];
    struct call_stack *stk[SEQUENCE_STEPS_MAX], *next = sent->first;
    unsigned count = 0, releases = sent->releases;

    do {
        struct call_stack *s = stk[count] = next;

        next = s->joined;
        s->joined = NULL;
        replies[count++] = (struct rpc_step_reply){s->call.fop, &s->reply, &s->arena};
    } while (next);
    for (unsigned i = 0; i < releases; i++)
        replies[count + i] = (struct rpc_step_reply){FOP_release, &released[i], &stk[count - 1]->arena};
    rpc_reply_sequence(r, replies, count + releases);
    late_releases_answered(r->client, sent->late, releases, released);
    for (unsigned i = 0; i < count; i++)
        answer_call(stk[i]);
}

/* Fills in the calls of a record. Returns their number or -errno. */
static int
joined_steps(struct client *c, struct call_stack *first, struct caller *callers, struct rpc_step *steps)
{
    int count = 0;

    for (struct call_stack *s = first; s; s = s->joined) {
        if (count == SEQUENCE_STEPS_MAX)
            return -EMSGSIZE;
        s->xl = c->xl;
        put_call_address(&s->call);
        int err = prepare_call(c, s, &callers[count]);
        if (err)
            return err;
        steps[count] = (struct rpc_step){.call = &s->call,
                                         .caller = &callers[count],
                                         .always = s->joins_always,
                                         .fd_of = s->takes_fd ? 1 : 0};
        count++;
    }
    return count;
}

/* Takes up to `most` RELEASEs out that go behind the calls: first those of the calls' own fds. Returns their
 * number. */
static unsigned
releases_behind(struct client *c, const struct call_stack *first, unsigned most,
                struct late_release out[RELEASES_LATE_MAX])
{
    unsigned count = 0;

    most = most < RELEASES_LATE_MAX ? most : RELEASES_LATE_MAX;
    for (const struct call_stack *s = first; s; s = s->joined) {
        if (s->closes_fd && s->call.fd && count < most)
            count += remote_fd_close(c, s->call.fd, &out[count]);
    }
    return count + late_releases_take(c, most - count, out + count);
}

/* Sends all calls in one record, with RELEASEs behind them. Returns 0 or -errno. */
static int
send_joined(struct client *c, struct rpc_client *rpc, struct call_stack *first)
{
    struct rpc_step steps[SEQUENCE_STEPS_MAX];
    struct caller callers[SEQUENCE_STEPS_MAX];
    struct fop_call releases[RELEASES_LATE_MAX];
    struct sent_sequence *sent = arena_alloc(&first->arena, sizeof *sent);
    int count = sent ? joined_steps(c, first, callers, steps) : -ENOMEM;

    if (count < 0)
        return count;
    unsigned more = releases_behind(c, first, SEQUENCE_STEPS_MAX - (unsigned)count, sent->late);

    sent->first = first;
    sent->releases = more;
    for (unsigned i = 0; i < more; i++) {
        late_release_call(&sent->late[i], &releases[i]);
        steps[(unsigned)count + i] =
            (struct rpc_step){.call = &releases[i], .caller = &callers[0], .always = true};
    }
    int err = rpc_client_sequence(rpc, steps, (unsigned)count + more, 0, sequence_arrived, sent);

    for (unsigned i = 0; err && i < more; i++)
        late_release_send(rpc, &sent->late[i]);
    return err;
}

/* Answers calls that cannot be sent, from `stk` on, with the error. */
static void
fail_joined(struct xlator *xl, struct call_stack *stk, int err)
{
    for (struct call_stack *next; stk; stk = next) {
        next = stk->joined;
        stk->joined = NULL;
        stk->xl = xl;
        call_stack_answer(stk, err == -ENOMEM || err == -EAGAIN ? call_stack_unsent(stk) : err);
    }
}

/* Answers the call as not run. */
static void
cancel_call(struct xlator *xl, struct call_stack *stk)
{
    stk->joined = NULL;
    stk->xl = xl;
    stk->reply = (struct fop_reply){.op_ret = -1, .op_errno = ECANCELED, .shortage = SHORTAGE_UNSENT};
    call_stack_unwind(stk);
}

static void run_joined(struct xlator *xl, struct call_stack *stk, bool has_failed);

static xl_verdict
joined_answered(struct frame *f, struct call_stack *stk)
{
    struct call_stack *next = stk->joined;
    struct fd *fd = is_opening_fop(stk->call.fop) ? stk->reply.fd : stk->call.fd;

    stk->joined = NULL;
    if (next->takes_fd && !next->call.fd && fd)
        next->call.fd = fd_ref(fd);
    run_joined(f->xl, next, f->local.u64[0] || stk->reply.op_ret < 0);
    return XL_PASS;
}

/* Sends a call in a record of its own. The frame sends the next call of the sequence. */
static xl_verdict
send_one_of_joined(struct xlator *xl, struct call_stack *stk, bool has_failed)
{
    struct frame *f = stk->joined ? frame_push(stk, xl, joined_answered) : NULL;

    if (!f && stk->joined) {
        struct call_stack *next = stk->joined;

        stk->joined = NULL;
        fail_joined(xl, next, -ENOMEM);
        return call_stack_unsent(stk);
    }
    if (f)
        f->local.u64[0] = has_failed;
    return send_single(xl, stk);
}

static void
run_joined(struct xlator *xl, struct call_stack *stk, bool has_failed)
{
    while (stk && has_failed && !stk->joins_always) {
        struct call_stack *next = stk->joined;

        cancel_call(xl, stk);
        stk = next;
    }
    if (!stk)
        return;
    stk->xl = xl;
    xl_verdict verdict = send_one_of_joined(xl, stk, has_failed);
    if (verdict != XL_OWNED)
        call_stack_answer(stk, verdict);
}

static xl_verdict
send_sequence(struct xlator *xl, struct call_stack *stk)
{
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer);
    int err = peer && atomic_load(&c->is_serving) ? 0 : -ENOTCONN;

    if (!err) {
        struct rpc_client *rpc = brick_peer_client(peer);

        rpc_client_hold(rpc);
        err = send_joined(c, rpc, stk); /* if 0, the calls may already be answered */
        rpc_client_let_go(rpc);
    }
    if (!err)
        return XL_OWNED;
    if (err == -EMSGSIZE)
        return send_one_of_joined(xl, stk, false);
    struct call_stack *next = stk->joined;

    stk->joined = NULL;
    fail_joined(xl, next, err);
    return err == -ENOMEM || err == -EAGAIN ? call_stack_unsent(stk) : err;
}

static xl_verdict
client_any(struct xlator *xl, struct call_stack *stk)
{
    if (!stk->joined)
        return send_single(xl, stk);
    if (atomic_load(&xl->brick_facts) & BRICK_SEQUENCES)
        return send_sequence(xl, stk);
    return send_one_of_joined(xl, stk, false);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
client_init(struct xlator *xl, struct reason *why)
{
    const struct client_conf *conf = xlator_conf(xl);
    struct client *c;

    if (!conf->host || !conf->brick)
        return reason_set(why, -EINVAL, "option %s is missing",
                          conf->host ? "remote-subvolume" : "remote-host");
    if (remote_fd_pool_init() || !(c = calloc(1, sizeof *c)))
        return -ENOMEM;
    if (held_locks_init(c)) {
        free(c);
        return -ENOMEM;
    }
    c->tls = client_tls_of(conf);
    int err = !conf->tls.is_on ? 0 : c->tls ? tls_config_load(c->tls, why) : -ENOMEM;
    if (err) {
        tls_config_unref(c->tls);
        free(c);
        return err;
    }
    c->xl = xl;
    c->owner = xl->graph->owner;
    pthread_mutex_init(&c->lock, NULL);
    pthread_cond_init(&c->changed, NULL);
    CDS_INIT_LIST_HEAD(&c->fds);
    late_releases_init(c);
    c->is_gone = true; /* there is no peer yet */
    xl->private = c;
    return 0;
}

static void
client_fini(struct xlator *xl)
{
    struct client *c = xl->private;

    pthread_mutex_lock(&c->lock);
    while (!c->is_gone)
        pthread_cond_wait(&c->changed, &c->lock);
    pthread_mutex_unlock(&c->lock);
    pthread_cond_destroy(&c->changed);
    pthread_mutex_destroy(&c->lock);
    tls_config_unref(c->tls);
    client_saved_free(c);
    free(c);
}

static void
client_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)fd;
    remote_fd_release(xl->private, ctx);
}

/* msgs_sent is stock's name for it. */
static void
client_dump_calls(struct brick_peer *peer, struct dump *d)
{
    uint64_t sum = 0;

    for (enum fop fop = 0; fop < FOP_COUNT; fop++) {
        uint64_t sent = peer ? rpc_client_fops_sent(brick_peer_client(peer), fop) : 0;
        char name[48];

        sum += sent;
        if (!sent)
            continue;
        snprintf(name, sizeof name, "calls-sent.%s", fop_info[fop].name);
        dump_line(d, name, "%llu", (unsigned long long)sent);
    }
    dump_line(d, "msgs_sent", "%llu", (unsigned long long)sum);
}

static void
client_dump(struct xlator *xl, struct dump *d)
{
    const struct client_conf *conf = xlator_conf(xl);
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer);
    struct rpc_client_stats stats = {.state = "stopped"};

    if (peer)
        rpc_client_stats(brick_peer_client(peer), &stats);
    pthread_mutex_lock(&c->lock);
    unsigned fds = c->fd_count;
    pthread_mutex_unlock(&c->lock);
    dump_line(d, "brick", "%s:%s", conf->host, conf->brick);
    dump_line(d, "connected", "%d", atomic_load(&c->is_serving) ? 1 : 0);
    dump_line(d, "state", "%s", stats.state);
    dump_line(d, "inside", "%d", peer && rpc_client_is_inside(brick_peer_client(peer)) ? 1 : 0);
    dump_line(d, "fds", "%u", fds);
    dump_line(d, "calls-waiting", "%u", stats.waiting);
    dump_line(d, "connections", "%llu", (unsigned long long)stats.connects);
    dump_line(d, "timeouts", "%llu", (unsigned long long)stats.timeouts);
    dump_line(d, "calls-joined", "%llu", (unsigned long long)stats.calls_joined);
    client_dump_calls(peer, d);
}

const struct xlator_type protocol_client_xlator = {
    .name = "protocol/client",
    .options = client_options,
    .conf_size = sizeof(struct client_conf),
    .ops = &(const struct xlator_ops){.any = client_any},
    .keeps = KEEPS(CTX_FD),
    .init = client_init,
    .start = client_start,
    .stop = client_stop,
    .fini = client_fini,
    .reconfigured = client_reconfigured,
    .fd_release = client_fd_release,
    .dump = client_dump,
};

bool
client_volume_id(struct graph *g, struct gfid *out)
{
    *out = (struct gfid){{0}};
    for (unsigned i = 0; i < g->layer_count && gfid_is_null(out); i++) {
        struct client *c = g->layers[i].type == &protocol_client_xlator ? g->layers[i].private : NULL;

        if (!c)
            continue;
        pthread_mutex_lock(&c->lock);
        *out = c->volume_id;
        pthread_mutex_unlock(&c->lock);
    }
    return !gfid_is_null(out);
}
