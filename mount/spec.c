/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/spec.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "graph/volfile.h"
#include "log/log.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/transport/tls-config.h"
#include "rpc/xdr/callback-program.h"

enum { RETRY_MS = 3000 };
/* A restart of glusterd ends a connection once. A peer that wants TLS ends every connection. */
enum { UNANSWERED_MAX = 2 };
enum fetch { FETCH_NONE, FETCH_UNDER_WAY, FETCH_AGAIN /* under way, and the reply may be old */ };

struct server {
    struct spec *spec;
    char *host; /* or the path of a socket */
    uint16_t port;
    struct rpc_client *client; /* made by spec_new() for each server */
    /* under the spec's lock: */
    enum fetch fetch;
    bool is_started, has_failed, is_gone;
    unsigned unanswered; /* connections in a row that have ended without an answer */
};

struct spec {
    const struct spec_ops *ops;
    void *arg;
    char *id;
    pthread_mutex_t lock; /* the holder calls rpc_client_start() only */
    pthread_cond_t changed;
    bool is_closing;
    unsigned count;
    struct server servers[];
};

/* ---- reasons --------------------------------------------------------------------------------- */

/* The key of a volfile is the name of the volume, with or without a slash. */
static const char *
volume_of_id(const char *id)
{
    return id + (*id == '/');
}

/* Puts into words why a server, which answers, has sent no volfile. */
static void
put_refusal(const struct server *v, int err, char *out, size_t size)
{
    const char *volume = volume_of_id(v->spec->id);

    if (err == -ENOENT)
        snprintf(out, size, "%s has no volume %s; its volumes: kiln list, or gluster volume list, there",
                 v->host, volume);
    else if (err == -EAGAIN)
        snprintf(out, size, "volume %s is not started; on %s: kiln start %s, or gluster volume start %s",
                 volume, v->host, volume, volume);
    else
        snprintf(out, size, "%s sends no volfile of volume %s: %s", v->host, volume, strerror(-err));
}

/* Puts into words why a server does not answer. */
static void
put_silence(const struct server *v, int err, char *out, size_t size)
{
    if (err == -EADDRNOTAVAIL)
        snprintf(out, size, "host %s is not known: no address for that name", v->host);
    else if (err == -EAGAIN)
        snprintf(out, size, "host %s is not known: no name server answers", v->host);
    else
        snprintf(out, size, "no glusterd or kilnd answers at %s, port %u: %s", v->host, v->port,
                 strerror(-err));
}

/* ---- asking ---------------------------------------------------------------------------------- */

static void fetch(struct server *v);

static void
fetch_has_ended(struct server *v)
{
    pthread_mutex_lock(&v->spec->lock);
    bool is_old = v->fetch == FETCH_AGAIN;

    v->fetch = FETCH_NONE;
    pthread_mutex_unlock(&v->spec->lock);
    if (is_old)
        fetch(v);
}

/* Adds a connection without an answer, or sets the count to 0. Returns the count. */
static unsigned
count_unanswered(struct server *v, bool is_one_more)
{
    pthread_mutex_lock(&v->spec->lock);
    unsigned n = v->unanswered = is_one_more ? v->unanswered + 1 : 0;

    pthread_mutex_unlock(&v->spec->lock);
    return n;
}

static void
fetched(struct rpc_reply *r, void *arg)
{
    struct server *v = arg;
    struct spec *s = v->spec;
    struct arena arena = {0};
    struct glusterd_spec spec;
    char why[512];
    int err = glusterd_getspec_reply(r, &arena, &spec);

    if (!err && spec.bytes > VOLFILE_BYTES_MAX)
        err = -EFBIG;
    if (err != -ENOTCONN)
        count_unanswered(v, false);
    if (!err) {
        s->ops->text(s->arg, spec.text, spec.bytes);
    } else if (err != -ENOTCONN) { /* the next connection asks again */
        put_refusal(v, err, why, sizeof why);
        s->ops->failed(s->arg, err, why);
    }
    arena_release(&arena);
    fetch_has_ended(v);
}

static void
fetch(struct server *v)
{
    struct spec *s = v->spec;

    pthread_mutex_lock(&s->lock);
    bool begins = v->fetch == FETCH_NONE && !s->is_closing;

    v->fetch = begins ? FETCH_UNDER_WAY : FETCH_AGAIN;
    pthread_mutex_unlock(&s->lock);
    if (!begins)
        return;
    int err = glusterd_getspec(v->client, s->id, NULL, fetched, v);
    if (!err)
        return;
    if (err != -ENOTCONN)
        log_event(LOG_ERROR, NULL, "spec-fetch", "volfile %s is not fetched from %s: %s", s->id,
                  rpc_client_name(v->client), strerror(-err));
    pthread_mutex_lock(&s->lock);
    v->fetch = FETCH_NONE;
    pthread_mutex_unlock(&s->lock);
}

void
spec_refetch(struct spec *s)
{
    for (unsigned i = 0; i < s->count; i++) {
        if (rpc_client_is_up(s->servers[i].client))
            fetch(&s->servers[i]);
    }
}

/* ---- the connections ------------------------------------------------------------------------- */

static void
connected(struct rpc_client *c, void *arg)
{
    if (rpc_client_up(c))
        fetch(arg);
}

static void
start(struct server *v)
{
    pthread_mutex_lock(&v->spec->lock);
    if (!v->is_started && !v->spec->is_closing) {
        v->is_started = true;
        rpc_client_start(v->client); /* under the lock, so that spec_free() closes the client later */
    }
    pthread_mutex_unlock(&v->spec->lock);
}

static void
server_failed(struct server *v, const char *why)
{
    struct spec *s = v->spec;
    bool is_last = true;

    pthread_mutex_lock(&s->lock);
    bool is_news = !v->has_failed;

    v->has_failed = true;
    for (unsigned i = 0; i < s->count; i++)
        is_last = is_last && s->servers[i].has_failed;
    pthread_mutex_unlock(&s->lock);
    if (is_news)
        log_event(LOG_WARNING, NULL, "spec-unreachable", "%s", why);
    if (v + 1 < s->servers + s->count)
        start(v + 1);
    if (is_last && is_news)
        s->ops->failed(s->arg, -ENOTCONN, why);
}

static void
unreachable(struct rpc_client *c, int err, void *arg)
{
    char why[512];

    (void)c;
    put_silence(arg, err, why, sizeof why);
    server_failed(arg, why);
}

static void
down(struct rpc_client *c, bool was_up, void *arg)
{
    struct server *v = arg;
    char why[512], cause[512];

    rpc_client_tls_failure(c, why, sizeof why);
    if (!*why && count_unanswered(v, true) >= UNANSWERED_MAX)
        snprintf(why, sizeof why,
                 "it ends connections without an answer: does it demand TLS (secure-access)?");
    if (*why) {
        snprintf(cause, sizeof cause, "%s: %.400s", rpc_client_name(c), why);
        server_failed(v, cause);
    }
    if (!was_up || *why)
        return;
    pthread_mutex_lock(&v->spec->lock);
    v->has_failed = false; /* reported anew if the server does not come back */
    pthread_mutex_unlock(&v->spec->lock);
}

static void
called(struct rpc_client *c, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    (void)c;
    (void)args;
    if (head->program == CALLBACK_PROGRAM && head->procedure == CALLBACK_FETCHSPEC)
        fetch(arg);
}

static void
gone(void *arg)
{
    struct server *v = arg;

    pthread_mutex_lock(&v->spec->lock);
    v->is_gone = true;
    pthread_cond_broadcast(&v->spec->changed);
    pthread_mutex_unlock(&v->spec->lock);
}

static const struct rpc_client_ops client_ops = {
    .connected = connected, .down = down, .unreachable = unreachable, .called = called, .gone = gone};

/* ---- begin and end --------------------------------------------------------------------------- */

/* Takes "[HOST]:PORT" apart. Returns 0, -ENOMEM or -EINVAL. */
static int
take_place(struct server *v, const char *text, uint16_t port)
{
    const char *end = *text == '[' ? strstr(text, "]:") : NULL;
    char *rest = NULL;
    unsigned long own = end ? strtoul(end + 2, &rest, 10) : port;

    if (*text == '[' && (!end || !end[2] || *rest || own > UINT16_MAX))
        return -EINVAL;
    v->port = (uint16_t)own;
    v->host = end ? strndup(text + 1, (size_t)(end - text - 1)) : strdup(text);
    return v->host ? 0 : -ENOMEM;
}

static int
make_server(struct server *v, struct spec *s, const char *host, uint16_t port)
{
    char name[512];
    int err = take_place(v, host, port);
    bool is_socket = *host == '/';

    if (err)
        return err;
    snprintf(name, sizeof name, "glusterd at %s", v->host);
    v->spec = s;
    v->client =
        rpc_client_new(&(struct rpc_client_options){.name = name,
                                                    .where = {.path = is_socket ? v->host : NULL,
                                                              .host = is_socket ? NULL : v->host,
                                                              .port = v->port,
                                                              .tls = is_socket ? NULL : tls_management()},
                                                    .retry_min_ms = RETRY_MS,
                                                    .retry_max_ms = RETRY_MS,
                                                    .is_trusted = true},
                       &client_ops, v, &err);
    if (err)
        free(v->host); /* spec_free() does not free this server */
    return err;
}

struct spec *
spec_new(const char *const *servers, unsigned count, uint16_t port, const char *id,
         const struct spec_ops *ops, void *arg, int *err)
{
    struct spec *s = calloc(1, sizeof *s + count * sizeof s->servers[0]);

    *err = -ENOMEM;
    if (!s)
        return NULL;
    s->ops = ops;
    s->arg = arg;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->changed, NULL);
    *err = (s->id = strdup(id)) ? 0 : -ENOMEM;
    for (; s->count < count && !*err; s->count += !*err)
        *err = make_server(&s->servers[s->count], s, servers[s->count], port);
    if (*err) {
        spec_free(s);
        return NULL;
    }
    start(&s->servers[0]);
    return s;
}

void
spec_free(struct spec *s)
{
    if (!s)
        return;
    pthread_mutex_lock(&s->lock);
    s->is_closing = true;
    pthread_mutex_unlock(&s->lock);
    for (unsigned i = 0; i < s->count; i++)
        rpc_client_close(s->servers[i].client);
    pthread_mutex_lock(&s->lock);
    for (unsigned i = 0; i < s->count; i++) {
        while (!s->servers[i].is_gone)
            pthread_cond_wait(&s->changed, &s->lock);
    }
    pthread_mutex_unlock(&s->lock);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    for (unsigned i = 0; i < s->count; i++)
        free(s->servers[i].host);
    free(s->id);
    free(s);
}
