/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The handshake is a chain: each reply sends the next call. Only one handshake runs at a time, so its
 * state needs no lock. Every error ends in rpc_client_drop(), which does nothing when the connection is
 * gone already. */
#include "rpc/client/brick-peer.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/gfid.h"
#include "data/dict.h"
#include "log/log.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/transport/fop-path.h"
#include "rpc/xdr/dump-program.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/portmap-program.h"
#include "rpc/xdr/sequence-program.h"

enum { LOGIN_TIMEOUT_S = 42, LOGIN_BYTES_MAX = 64 << 10, PROCESS_UUID_MAX = 900 };
#define CLIENT_VERSION "10.3"
#define OPVERSION 100000

/* A stock brick with TLS resets the connection of a peer without TLS at its first bytes. A brick that goes
 * down does the same, once. */
enum { UNANSWERED_MAX = 2 };

struct brick_peer {
    struct rpc_client *rpc;
    const struct brick_peer_ops *ops;
    void *arg;
    char *texts; /* memory of all texts below */
    size_t texts_used;
    const char *brick, *process_uuid, *process_name;
    struct brick_peer_text *pairs;
    unsigned pair_count;
    unsigned timeout_s;
    /* state of the handshake */
    char volume_id[GFID_TEXT_SIZE]; /* "": unknown */
    unsigned logins;                /* number of logins tried */
    bool has_port;                  /* glusterd has named a port: the next connection goes there */
    bool has_sequences;             /* the peer of this connection offers them */
    bool is_at_port;                /* this connection goes to the named port */
    unsigned unanswered;            /* connections in a row that have ended without an answer */
};

static void login_begin(struct brick_peer *p);

static void
sent_or_drop(struct brick_peer *p, int err, const char *what)
{
    if (err)
        rpc_client_drop(p->rpc, "%s cannot be sent: %s", what, strerror(-err));
}

/* ---- identify the peer ----------------------------------------------------------------------- */

static void
port_known(struct rpc_reply *r, void *arg)
{
    struct brick_peer *p = arg;
    uint16_t port;
    int err = portmap_port_reply(r, &port);

    if (err) {
        rpc_client_drop(p->rpc, "glusterd has no port of brick %s: %s", p->brick, strerror(-err));
        return;
    }
    p->has_port = true;
    rpc_client_redirect(p->rpc, port);
}

static bool
lists_program(const struct dump_reply *d, uint64_t number, uint64_t version)
{
    for (const struct dump_entry *e = d->programs; e; e = e->next) {
        if (e->number == number && e->version == version)
            return true;
    }
    return false;
}

/* Decides from DUMP's answer. A glusterd on a port that glusterd has named would redirect this client for
 * ever. */
static void
choose_next_step(struct brick_peer *p, const struct dump_reply *d)
{
    if (d->op_ret < 0) {
        rpc_client_drop(p->rpc, "the peer does not list its programs: %s", strerror(d->op_errno));
    } else if (lists_program(d, PORTMAP_PROGRAM, PORTMAP_PROGRAM_VERSION)) {
        if (p->is_at_port)
            rpc_client_drop(p->rpc, "there is a glusterd where brick %s should be", p->brick);
        else
            sent_or_drop(p, portmap_port(p->rpc, p->brick, p->timeout_s, port_known, p), "PORTBYBRICK");
    } else if (lists_program(d, FOP_PROGRAM, FOP_PROGRAM_VERSION)) {
        rpc_client_set_cred(p->rpc, CRED_GLUSTERFS_V3);
        p->has_sequences = lists_program(d, SEQUENCE_PROGRAM, SEQUENCE_PROGRAM_VERSION);
        login_begin(p);
    } else {
        rpc_client_drop(p->rpc, "the peer serves no file operations of version %u", FOP_PROGRAM_VERSION);
    }
}

static void
dump_answered(struct rpc_reply *r, void *arg)
{
    struct brick_peer *p = arg;
    struct arena arena = {0};
    struct dump_reply d;

    r->results.arena = &arena;
    if (!r->err && r->results.more_count)
        xdr_pull(&r->results, xdr_left_total(&r->results));
    xdr_get_dump_reply(&r->results, &d);
    if (r->err)
        rpc_client_drop(p->rpc, "the peer does not list its programs: %s", strerror(-r->err));
    else if (r->results.error)
        rpc_reply_is_garbage(r, "DUMP");
    else
        choose_next_step(p, &d);
    arena_release(&arena);
}

static void
peer_connected(struct rpc_client *c, void *arg)
{
    struct brick_peer *p = arg;
    struct rpc_call call = {
        .program = DUMP_PROGRAM,
        .version = DUMP_PROGRAM_VERSION,
        .procedure = DUMP_DUMP,
        .timeout_s = p->timeout_s,
        .is_handshake = true,
        .cb = dump_answered,
        .arg = p,
    };
    char bytes[8];
    struct xdr x;

    p->is_at_port = p->has_port;
    p->has_port = false;
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_dump_call(&x);
    sent_or_drop(p, rpc_client_call_xdr(c, &call, &x, bytes), "DUMP");
}

/* ---- log in ---------------------------------------------------------------------------------- */

static int
set_pairs(struct dict *d, const struct brick_peer *p)
{
    char uuid[PROCESS_UUID_MAX + 32];
    struct gfid token;
    int err = 0;

    snprintf(uuid, sizeof uuid, "%s-RECON_NO:-%u", p->process_uuid, p->logins - 1);
    for (unsigned i = 0; i < p->pair_count && !err; i++)
        err = dict_set_text(d, p->pairs[i].key, DICT_STR, p->pairs[i].value,
                            (uint32_t)strlen(p->pairs[i].value) + 1);
    /* set last, so that the layer's options cannot override pairs that the brick acts on (wire 3.2) */
    err = err ? err : dict_set_str(d, DICT_KEY_REMOTE_SUBVOLUME, p->brick);
    err = err ? err : dict_set_str(d, DICT_KEY_PROCESS_UUID, uuid);
    if (!err && rpc_client_offer_path(p->rpc, &token))
        err = dict_set_text(d, FOP_PATH_KEY, DICT_STR, GFID(&token), GFID_TEXT_SIZE);
    err = err ? err : dict_set_int(d, DICT_KEY_FOPS_VERSION, FOP_PROGRAM);
    err = err ? err : dict_set_int(d, DICT_KEY_OPVERSION, OPVERSION);
    err = err ? err : dict_set_int(d, DICT_KEY_CLNT_LK_VERSION, 1);
    err = err ? err : dict_set_text(d, "client-version", DICT_STR, CLIENT_VERSION, sizeof CLIENT_VERSION);
    err = err ? err
              : dict_set_text(d, "process-name", DICT_STR, p->process_name,
                              (uint32_t)strlen(p->process_name) + 1);
    if (!err && *p->volume_id)
        err = dict_set_str(d, DICT_KEY_SV_VOLUME_ID, p->volume_id);
    return err;
}

/* True if the volume id matches, or no id was known before. */
static bool
is_same_volume(struct brick_peer *p, const char *volume_id)
{
    if (!volume_id || (*p->volume_id && strcasecmp(p->volume_id, volume_id) == 0))
        return true;
    if (*p->volume_id || strlen(volume_id) >= sizeof p->volume_id)
        return false;
    strcpy(p->volume_id, volume_id);
    return true;
}

static void
login_accepted(struct brick_peer *p, const struct common_reply *reply)
{
    struct brick_login login = {
        .volume_id = dict_get_str(reply->dict, DICT_KEY_SV_VOLUME_ID),
        .process_uuid = dict_get_str(reply->dict, DICT_KEY_PROCESS_UUID),
        .is_child_up =
            !dict_has(reply->dict, DICT_KEY_CHILD_UP) || dict_get_flag(reply->dict, DICT_KEY_CHILD_UP),
        .removals_pass = dict_get_flag(reply->dict, DICT_KEY_REMOVALS_PASS),
        .has_sequences = p->has_sequences && !rpc_client_is_inside(p->rpc),
        .has_names_notices = dict_get_flag(reply->dict, DICT_KEY_NAMES_NOTICES),
        .has_name_notes = dict_get_flag(reply->dict, DICT_KEY_KEEPS_NAME_NOTES),
    };

    if (!is_same_volume(p, login.volume_id)) {
        rpc_client_drop(p->rpc, "brick %s is of volume %.40s, not of %s", p->brick, login.volume_id,
                        p->volume_id);
        return;
    }
    if (rpc_client_up(p->rpc)) {
        log_event(LOG_INFO, NULL, "brick-peer-up", "%s: logged in to brick %s%s", rpc_client_name(p->rpc),
                  p->brick, rpc_client_is_inside(p->rpc) ? ", inside of this process" : "");
        if (p->ops->up)
            p->ops->up(p, &login, p->arg);
    }
}

static void
login_refused(struct brick_peer *p, const struct common_reply *reply)
{
    const char *words = dict_get_str(reply->dict, DICT_KEY_ERROR);

    if (p->ops->refused)
        p->ops->refused(p, reply->op_errno, words ? words : "", p->arg);
    rpc_client_drop(p->rpc, "brick %s refused the login: %.100s (%s)", p->brick,
                    words ? words : "no reason given", strerror(reply->op_errno));
}

static void
login_answered(struct rpc_reply *r, void *arg)
{
    struct brick_peer *p = arg;
    struct arena arena = {0};
    struct common_reply reply;

    r->results.arena = &arena;
    if (!r->err && r->results.more_count)
        xdr_pull(&r->results, xdr_left_total(&r->results));
    xdr_get_common_reply(&r->results, &reply);
    if (r->err)
        rpc_client_drop(p->rpc, "brick %s does not answer the login: %s", p->brick, strerror(-r->err));
    else if (r->results.error)
        rpc_reply_is_garbage(r, "SETVOLUME");
    else if (reply.op_ret < 0)
        login_refused(p, &reply);
    else
        login_accepted(p, &reply);
    arena_release(&arena);
}

static int
login_send(struct brick_peer *p, struct arena *arena)
{
    struct rpc_call call = {
        .program = HANDSHAKE_PROGRAM,
        .version = HANDSHAKE_PROGRAM_VERSION,
        .procedure = HANDSHAKE_SETVOLUME,
        .timeout_s = p->timeout_s,
        .is_handshake = true,
        .cb = login_answered,
        .arg = p,
    };
    struct dict *d = dict_new(arena);
    int err = d ? set_pairs(d, p) : -ENOMEM;
    size_t size = err ? 0 : xdr_old_dict_size(d);
    struct xdr x;

    if (err || size > LOGIN_BYTES_MAX)
        return err ? err : -EMSGSIZE;
    char *bytes = arena_alloc(arena, size);

    if (!bytes)
        return -ENOMEM;
    xdr_init(&x, bytes, size, NULL);
    xdr_put_old_dict(&x, d);
    return rpc_client_call_xdr(p->rpc, &call, &x, bytes);
}

static void
login_begin(struct brick_peer *p)
{
    struct arena arena = {0};

    p->logins++;
    sent_or_drop(p, login_send(p, &arena), "SETVOLUME");
    arena_release(&arena);
}

/* ---- other events of the client -------------------------------------------------------------- */

static void
peer_down(struct rpc_client *c, bool was_up, void *arg)
{
    struct brick_peer *p = arg;
    char why[TLS_FAILURE_MAX], peer[CONN_PEER_TEXT_MAX];

    p->unanswered = rpc_client_lost_peer(c, peer) ? 0 : p->unanswered + 1;
    brick_peer_failure(p, why, sizeof why);
    if (p->unanswered == UNANSWERED_MAX) {
        log_event(LOG_WARNING, NULL, "brick-peer-silent", "%s: brick %s at %s: %s", rpc_client_name(c),
                  p->brick, peer, why);
    }
    if (was_up)
        log_event(LOG_WARNING, NULL, "brick-peer-down", "%s: the connection to brick %s is lost",
                  rpc_client_name(c), p->brick);
    if (was_up && p->ops->down)
        p->ops->down(p, p->arg);
    else if (!was_up && !p->has_port && (*why || p->unanswered == 0) && p->ops->unreachable)
        p->ops->unreachable(p, p->arg);
}

static void
peer_unreachable(struct rpc_client *c, int err, void *arg)
{
    struct brick_peer *p = arg;

    (void)c;
    (void)err;
    p->has_port = false; /* the port refuses connections: the next attempt asks glusterd again */
    p->unanswered = 0;
    if (p->ops->unreachable)
        p->ops->unreachable(p, p->arg);
}

static void
peer_called(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    struct brick_peer *p = arg;

    (void)c;
    if (p->ops->called)
        p->ops->called(p, head, args, p->arg);
}

static void
peer_free(struct brick_peer *p)
{
    free(p->pairs);
    free(p->texts);
    free(p);
}

static void
peer_gone(void *arg)
{
    struct brick_peer *p = arg;
    void (*gone)(void *) = p->ops->gone;
    void *owner = p->arg;

    peer_free(p);
    gone(owner);
}

static const struct rpc_client_ops peer_rpc_ops = {.connected = peer_connected,
                                                   .down = peer_down,
                                                   .unreachable = peer_unreachable,
                                                   .called = peer_called,
                                                   .gone = peer_gone};

/* ---- functions for the owner ----------------------------------------------------------------- */

static size_t
text_bytes(const char *text)
{
    return text ? strlen(text) + 1 : 0;
}

static size_t
all_text_bytes(const struct brick_peer_options *o)
{
    size_t bytes = text_bytes(o->brick) + text_bytes(o->process_uuid) + text_bytes(o->process_name);

    for (unsigned i = 0; i < o->text_count; i++)
        bytes += text_bytes(o->texts[i].key) + text_bytes(o->texts[i].value);
    return bytes;
}

/* all_text_bytes() has counted the text. */
static const char *
keep_text(struct brick_peer *p, const char *text)
{
    size_t bytes = text_bytes(text);

    if (!bytes)
        return "";
    p->texts_used += bytes;
    return memcpy(p->texts + p->texts_used - bytes, text, bytes);
}

/* The texts of a peer are one block: pooled chunks for them would double the memory of an idle peer. */
static int
copy_options(struct brick_peer *p, const struct brick_peer_options *o)
{
    if ((o->volume_id && strlen(o->volume_id) >= sizeof p->volume_id) ||
        strlen(o->process_uuid) > PROCESS_UUID_MAX)
        return -EINVAL;
    snprintf(p->volume_id, sizeof p->volume_id, "%s", o->volume_id ? o->volume_id : "");
    p->timeout_s = o->rpc.ping_timeout_s ? o->rpc.ping_timeout_s : LOGIN_TIMEOUT_S;
    p->texts = malloc(all_text_bytes(o) + 1);
    p->pairs = calloc(o->text_count + 1, sizeof *p->pairs);
    if (!p->texts || !p->pairs)
        return -ENOMEM;
    p->brick = keep_text(p, o->brick);
    p->process_uuid = keep_text(p, o->process_uuid);
    p->process_name = keep_text(p, o->process_name);
    for (unsigned i = 0; i < o->text_count; i++) {
        p->pairs[i].key = keep_text(p, o->texts[i].key);
        p->pairs[i].value = keep_text(p, o->texts[i].value);
    }
    p->pair_count = o->text_count;
    return 0;
}

struct brick_peer *
brick_peer_new(const struct brick_peer_options *options, const struct brick_peer_ops *ops, void *arg,
               int *err)
{
    struct brick_peer *p = calloc(1, sizeof *p);

    *err = -ENOMEM;
    if (!p)
        return NULL;
    p->ops = ops;
    p->arg = arg;
    *err = copy_options(p, options);
    if (!*err)
        p->rpc = rpc_client_new(&options->rpc, &peer_rpc_ops, p, err);
    if (*err) {
        peer_free(p);
        return NULL;
    }
    return p;
}

void
brick_peer_start(struct brick_peer *p)
{
    rpc_client_start(p->rpc);
}

void
brick_peer_save(struct brick_peer *p, struct parcel *to)
{
    parcel_put_text(to, p->volume_id);
    rpc_client_save(p->rpc, to);
}

bool
brick_peer_restore(struct brick_peer *p, struct parcel *from)
{
    const char *volume_id = parcel_get_text(from);

    if (volume_id && strlen(volume_id) < sizeof p->volume_id)
        strcpy(p->volume_id, volume_id);
    return rpc_client_restore(p->rpc, from);
}

void
brick_peer_close(struct brick_peer *p)
{
    rpc_client_close(p->rpc);
}

struct rpc_client *
brick_peer_client(struct brick_peer *p)
{
    return p->rpc;
}

void
brick_peer_failure(struct brick_peer *p, char *out, size_t size)
{
    rpc_client_tls_failure(p->rpc, out, size);
    if (!*out && p->unanswered >= UNANSWERED_MAX)
        snprintf(out, size, "%s",
                 rpc_client_has_tls(p->rpc)
                     ? "the peer ends connections after our part of the handshake of TLS, without a reason"
                     : "the peer ends connections without an answer: it may demand TLS (client.ssl is off)");
}
