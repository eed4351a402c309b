/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The connection of protocol/client to its brick: it is made and ended, the brick comes, goes, refuses the
 * client and calls it back, and the layers above get events (client.c has the picture). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "log/log.h"
#include "rpc/xdr/callback-program.h"
#include "xlators/protocol/client/client-internal.h"

/* ---- events for the parent ------------------------------------------------------------------- */

/* Reports an event, unless it repeats the last one, or is the end of a connection on which the brick has
 * refused this client. */
static void
tell_parent(struct client *c, enum child_event event)
{
    pthread_mutex_lock(&c->lock);
    bool is_news = !c->has_told || (c->told != event && !(c->told == CHILD_REFUSED && event == CHILD_DOWN));

    c->has_told = true;
    c->told = is_news ? event : c->told;
    pthread_mutex_unlock(&c->lock);
    if (is_news)
        xlator_tell_parent(c->xl, event);
}

void
client_reopened(struct client *c)
{
    pthread_mutex_lock(&c->lock);
    bool is_last = --c->reopening == 0, serves = is_last && c->is_up;

    if (serves)
        atomic_store(&c->is_serving, true);
    pthread_mutex_unlock(&c->lock);
    if (serves)
        tell_parent(c, CHILD_UP);
}

/* ---- events of the brick --------------------------------------------------------------------- */

static void
brick_up(struct brick_peer *p, const struct brick_login *login, void *arg)
{
    struct client *c = arg;
    const struct client_conf *conf = xlator_conf(c->xl);

    atomic_store(&c->xl->brick_facts, (login->removals_pass ? BRICK_REMOVALS_PASS : 0) |
                                          (login->has_names_notices ? BRICK_NAMES_NOTICES : 0) |
                                          (login->has_name_notes ? BRICK_NAME_NOTES : 0) |
                                          (login->has_sequences && conf->compound ? BRICK_SEQUENCES : 0));
    pthread_mutex_lock(&c->lock);
    c->is_up = login->is_child_up;
    if (login->volume_id)
        (void)gfid_parse(login->volume_id, strlen(login->volume_id), &c->volume_id);
    c->reopening++; /* keeps client_reopened() from the end until all OPENs are sent */
    pthread_mutex_unlock(&c->lock);
    remote_fds_reopen(c, brick_peer_client(p));
    client_reopened(c);
}

static void
brick_down(struct brick_peer *p, void *arg)
{
    struct client *c = arg;

    (void)p;
    atomic_store(&c->is_serving, false);
    pthread_mutex_lock(&c->lock);
    c->is_up = false;
    pthread_mutex_unlock(&c->lock);
    remote_fds_lost(c);
    tell_parent(c, CHILD_DOWN);
}

/* A failure of TLS is no failure of the network: the program that mounts gets an error with the reason. The
 * same holds for a mount without TLS that meets a stock brick with TLS. */
static void
brick_unreachable(struct brick_peer *p, void *arg)
{
    struct client *c = arg;
    char why[TLS_FAILURE_MAX];

    brick_peer_failure(p, why, sizeof why);
    if (*why)
        graph_note_refusal(c->xl->graph, "%s: %s", c->xl->name, why);
    tell_parent(c, *why ? CHILD_REFUSED : CHILD_DOWN);
}

static void
brick_refused(struct brick_peer *p, int op_errno, const char *words, void *arg)
{
    struct client *c = arg;
    const struct client_conf *conf = xlator_conf(c->xl);
    /* A missing directory may appear later, but the program that mounts it now gets an error. */
    bool is_for_good = (op_errno == EACCES && *words) || (op_errno == ENOENT && conf->subdir);

    (void)p;
    log_event(LOG_ERROR, c->xl, "client-refused", "the brick refuses this client: %s (%s)", words,
              strerror(op_errno));
    if (is_for_good)
        graph_note_refusal(c->xl->graph, "%s: %s (%s)", c->xl->name, words, strerror(op_errno));
    tell_parent(c, is_for_good ? CHILD_REFUSED : CHILD_DOWN);
}

/* Another client waits for a lock of ours. */
static void
tell_lock_contention(struct client *c, struct xdr *args)
{
    struct inodelk_contention lock;

    xdr_get_inodelk_contention(args, &lock);
    if (!args->error)
        xlator_tell_contended(c->xl, &lock.gfid, lock.domain);
}

/* Another client waits for a lock of ours on a name. */
static void
tell_name_contention(struct client *c, struct xdr *args)
{
    struct entrylk_contention lock;

    xdr_get_entrylk_contention(args, &lock);
    if (!args->error)
        xlator_tell_contended(c->xl, &lock.gfid, lock.domain);
}

/* Another client has changed an object. */
static void
tell_changed_object(struct client *c, struct xdr *args)
{
    struct cache_invalidation change;

    xdr_get_cache_invalidation(args, &change);
    if (!args->error)
        xlator_tell_invalidated(c->xl, &change.gfid, change.flags);
}

/* Lets `tell` decode the arguments of a callback and tell the layers above. Logs arguments that cannot be
 * decoded. */
static void
callback_decode(struct client *c, struct xdr *args, void (*tell)(struct client *c, struct xdr *args),
                const char *name)
{
    struct arena arena = {0};

    args->arena = &arena;
    tell(c, args);
    if (args->error)
        log_event(LOG_WARNING, c->xl, "client-callback-unreadable",
                  "the arguments of the brick's callback %s cannot be decoded: %s", name,
                  strerror(-args->error));
    args->arena = NULL;
    arena_release(&arena);
}

/* Callbacks of the brick: the brick inside of a running process has gone down or come up, another client
 * waits for a lock of ours, or has changed an object that we have cached. */
static void
brick_called(struct brick_peer *p, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    struct client *c = arg;
    struct graph *graph = c->xl->graph;

    if (head->program != CALLBACK_PROGRAM || !graph_pin(graph)) /* the layers above are ending */
        return;
    if (head->procedure == CALLBACK_INODELK_CONTENTION) {
        callback_decode(c, args, tell_lock_contention, "inodelk contention");
    } else if (head->procedure == CALLBACK_ENTRYLK_CONTENTION) {
        callback_decode(c, args, tell_name_contention, "entrylk contention");
    } else if (head->procedure == CALLBACK_CACHE_INVALIDATION) {
        callback_decode(c, args, tell_changed_object, "cache invalidation");
    } else if (head->procedure == CALLBACK_CHILD_DOWN) {
        atomic_store(&c->is_serving, false);
        pthread_mutex_lock(&c->lock);
        held_locks_lost_locked(c);
        pthread_mutex_unlock(&c->lock);
        tell_parent(c, CHILD_DOWN);
    } else if (head->procedure == CALLBACK_CHILD_UP && !atomic_load(&c->is_serving)) {
        pthread_mutex_lock(&c->lock);
        c->is_up = true;
        c->reopening++;
        pthread_mutex_unlock(&c->lock);
        remote_fds_reopen(c, brick_peer_client(p));
        client_reopened(c);
    }
    graph_unpin(graph);
}

static void
brick_gone(void *arg)
{
    struct client *c = arg;

    pthread_mutex_lock(&c->lock);
    c->is_gone = true;
    pthread_cond_broadcast(&c->changed);
    pthread_mutex_unlock(&c->lock);
}

static const struct brick_peer_ops brick_ops = {
    .up = brick_up,
    .down = brick_down,
    .unreachable = brick_unreachable,
    .refused = brick_refused,
    .called = brick_called,
    .gone = brick_gone,
};

/* ---- start, new options, stop ---------------------------------------------------------------- */

struct tls_config *
client_tls_of(const struct client_conf *conf)
{
    return conf->tls.is_on ? tls_options_config(&conf->tls, conf->checks_host ? conf->host : NULL) : NULL;
}

static const struct volfile_section *
volfile_section_of_client(const struct xlator *xl)
{
    const struct volfile *v = xl->graph->volfile;

    for (size_t i = 0; i < v->section_count; i++) {
        if (strcmp(v->sections[i].name, xl->name) == 0)
            return &v->sections[i];
    }
    return NULL;
}

/* A login identifies this process and this layer of this graph (wire 3.2). */
static void
put_uuid(const struct xlator *xl, char *out, size_t size)
{
    static _Atomic unsigned graphs;
    static struct gfid process; /* set by the first caller */
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;
    char host[256] = "";

    pthread_mutex_lock(&once);
    if (gfid_is_null(&process))
        gfid_random(&process);
    pthread_mutex_unlock(&once);
    gethostname(host, sizeof host - 1);
    snprintf(out, size, "CTX_ID:%s-GRAPH_ID:%u-PID:%d-HOST:%s-PC_NAME:%s", GFID(&process),
             atomic_fetch_add(&graphs, 1), getpid(), host, xl->name);
}

static struct brick_peer *
make_peer(struct client *c, const struct brick_peer_text *texts, unsigned text_count, int *err)
{
    const struct client_conf *conf = xlator_conf(c->xl);
    const struct gfid *volume_id = &conf->volume_id;
    char uuid[1024];

    put_uuid(c->xl, uuid, sizeof uuid);
    const struct brick_peer_options o = {
        .rpc = {.name = c->xl->name,
                .where = {.host = conf->host,
                          .port = (uint16_t)conf->port,
                          .wants_low_port = !conf->any_port,
                          .wants_local = conf->local_socket,
                          .tls = c->tls},
                .ping_timeout_s = (unsigned)conf->ping_timeout_s,
                .call_timeout_s = (unsigned)conf->call_timeout_s,
                .is_inside = conf->inside},
        .brick = conf->brick,
        .process_uuid = uuid,
        .process_name = conf->process_name,
        .volume_id = gfid_is_null(volume_id) ? NULL : GFID(volume_id),
        .texts = texts,
        .text_count = text_count,
    };
    return brick_peer_new(&o, &brick_ops, c, err);
}

int
client_start(struct xlator *xl)
{
    const struct volfile_section *s = volfile_section_of_client(xl);
    size_t count = s ? s->option_count : 0;
    struct brick_peer_text *texts = calloc(count + 1, sizeof *texts);
    struct client *c = xl->private;
    int err = -ENOMEM;

    if (!texts)
        return err;
    for (size_t i = 0; i < count; i++)
        texts[i] = (struct brick_peer_text){s->options[i].key, s->options[i].value};
    struct brick_peer *peer = make_peer(c, texts, (unsigned)count, &err);

    free(texts);
    if (!peer)
        return err;
    c->is_gone = false; /* nothing runs yet */
    atomic_store(&c->peer, peer);
    if (!client_start_saved(c, peer)) {
        brick_peer_start(peer);
        return 0;
    }
    read_section_begin();
    tell_parent(c, CHILD_UP);
    read_section_end();
    rpc_client_go_on(brick_peer_client(peer));
    return 0;
}

/* Applies new options of TLS to the next connection. So calls that wait for this brick can go on when the
 * brick gets TLS; with a new graph they could not. */
static void
take_tls(struct client *c, struct brick_peer *peer)
{
    const struct client_conf *conf = xlator_conf(c->xl);
    struct tls_config *now = client_tls_of(conf);
    struct reason why = {""};
    bool is_same = now && c->tls ? tls_config_is_same(now, c->tls) : !now && !c->tls;
    int err = conf->tls.is_on && !now ? -ENOMEM : 0;

    if (!err && !is_same && now)
        err = tls_config_load(now, &why);
    if (err)
        log_event(LOG_ERROR, c->xl, "client-tls-not-changed", "connections are encrypted as before: %s",
                  *why.text ? why.text : strerror(-err));
    if (err || is_same) {
        tls_config_unref(now);
        return;
    }
    struct tls_config *before = c->tls;

    c->tls = now;
    if (peer)
        rpc_client_set_tls(brick_peer_client(peer), now);
    tls_config_unref(before);
    log_event(LOG_INFO, c->xl, "client-tls-changed", "the next connection is %s",
              now ? "encrypted" : "not encrypted");
}

void
client_reconfigured(struct xlator *xl, const void *old)
{
    const struct client_conf *conf = xlator_conf(xl);
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_load(&c->peer); /* not stopped while options change */

    (void)old;
    if (peer)
        rpc_client_set_timeouts(brick_peer_client(peer), (unsigned)conf->ping_timeout_s,
                                (unsigned)conf->call_timeout_s);
    take_tls(c, peer);
}

void
client_stop(struct xlator *xl)
{
    struct client *c = xl->private;
    struct brick_peer *peer = atomic_exchange(&c->peer, NULL);

    atomic_store(&c->is_serving, false);
    if (!peer)
        return;
    read_sections_wait(); /* no thread sends any more */
    (void)timer_stop(&c->late_timer);
    brick_peer_close(peer);
}
