/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal-ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/dict.h"
#include "rpc/client/rpc-client.h"
#include "rpc/xdr/brick-op-program.h"

enum { ATTEMPTS = 25, BETWEEN_MS = 200, ANSWER_S = 60 };

/* One request to a self-heal daemon. `lock` guards all fields below it. */
struct question {
    const char *args; /* encoded; written before the client starts, like the next field */
    size_t args_bytes;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done, has_gone;
    unsigned failures; /* failed attempts to connect */
    int err;
    json_t *out;
};

/* Records the outcome and wakes the caller. Only the first outcome counts. Consumes `out`. */
static void
question_end(struct question *q, int err, json_t *out)
{
    pthread_mutex_lock(&q->lock);
    bool is_first = !q->is_done;
    if (is_first) {
        q->is_done = true;
        q->err = err;
        q->out = out;
    }
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
    if (!is_first)
        json_decref(out);
}

/* ---- the answer ------------------------------------------------------------------------------ */

/* Converts the reply to JSON. Its numbers are texts, too. */
static json_t *
to_json(const struct dict *d)
{
    json_t *json = json_object();

    for (uint32_t i = 0; d && i < d->count && json; i++) {
        const struct dict_pair *p = &d->pairs[i];

        if (p->type != DICT_UNTYPED && p->type != DICT_STR)
            continue;
        json_t *text = json_stringn(p->v.bytes, strnlen(p->v.bytes, p->len));
        if (text) /* a value that is not UTF-8 is no part of an answer */
            json_object_set_new(json, p->key, text);
    }
    return json;
}

static int
heal_decode_reply(struct rpc_reply *r, struct brick_op_reply *reply)
{
    if (r->err)
        return r->err;
    if (r->results.more_count)
        xdr_pull(&r->results, xdr_left_total(&r->results));
    xdr_get_brick_op_reply(&r->results, reply);
    if (r->results.error == -EBADMSG || r->results.error == -EINVAL)
        rpc_reply_is_garbage(r, "the answer of a self-heal daemon");
    return r->results.error;
}

static void
reply_received(struct rpc_reply *r, void *arg)
{
    struct arena arena = {0};
    struct brick_op_reply reply = {0};

    r->results.arena = &arena;
    int err = heal_decode_reply(r, &reply);
    /* The daemon also returns -1 if a set had nothing to heal, which is no error. */
    json_t *out = err ? NULL : to_json(reply.output);
    arena_release(&arena);
    question_end(arg, err || out ? err : -ENOMEM, out);
}

/* ---- the question ---------------------------------------------------------------------------- */

static void
client_connected(struct rpc_client *c, void *arg)
{
    struct question *q = arg;
    const struct rpc_call call = {
        .program = BRICK_OP_PROGRAM,
        .version = BRICK_OP_PROGRAM_VERSION,
        .procedure = BRICK_OP_XLATOR_OP,
        .args = q->args,
        .args_bytes = q->args_bytes,
        .timeout_s = ANSWER_S,
        .cb = reply_received,
        .arg = q,
    };
    int err = rpc_client_up(c) ? rpc_client_call(c, &call) : -ENOTCONN;

    if (err)
        question_end(q, err, NULL);
}

static void
client_down(struct rpc_client *c, bool was_up, void *arg)
{
    (void)c;
    (void)was_up;
    question_end(arg, -ENOTCONN, NULL); /* the request is not repeated */
}

static void
client_unreachable(struct rpc_client *c, int err, void *arg)
{
    struct question *q = arg;

    (void)c;
    pthread_mutex_lock(&q->lock);
    bool is_last = ++q->failures >= ATTEMPTS;
    pthread_mutex_unlock(&q->lock);
    if (is_last)
        question_end(q, err, NULL);
}

static void
client_gone(void *arg)
{
    struct question *q = arg;

    pthread_mutex_lock(&q->lock);
    q->has_gone = true;
    pthread_cond_signal(&q->changed);
    pthread_mutex_unlock(&q->lock);
}

/* Adds the keys of glusterd's own request that the daemon reads: the names of the sets, and the number of
 * each set in the answer. */
static int
put_sets(struct dict *d, const struct volume *v)
{
    const unsigned sets = v->brick_count / v->replica;
    char name[VOLUME_NAME_MAX + 32], key[32];
    int err = dict_set_text_int(d, "count", sets);

    for (unsigned i = 0; i < sets && !err; i++) {
        snprintf(name, sizeof name, "%s-replicate-%u", v->name, i);
        snprintf(key, sizeof key, "xl-%u", i);
        err = dict_set_text(d, key, DICT_STR, name, (uint32_t)strlen(name) + 1);
        err = err ? err : dict_set_text_int(d, name, i);
    }
    return err;
}

static char *
encode_question(const struct volume *v, enum heal_ask what, size_t *bytes)
{
    struct arena arena = {0};
    struct dict *d = dict_new(&arena);
    const struct brick_op_call call = {.name = "", .op = BRICK_OP_XLATOR_OP, .input = d};
    int err = d ? dict_set_text_int(d, "xl-op", what) : -ENOMEM;
    char *body = NULL;
    struct xdr x;

    err = err ? err : dict_set_text_int(d, "heal-op", what);
    err = err ? err : dict_set_text(d, "volname", DICT_STR, v->name, (uint32_t)strlen(v->name) + 1);
    err = err ? err : put_sets(d, v);
    size_t size = err ? 0 : xdr_old_dict_size(d) + 64;
    if (size && (body = malloc(size))) {
        xdr_init(&x, body, size, NULL);
        xdr_put_brick_op_call(&x, &call);
        *bytes = (size_t)(x.at - body);
        if (x.error) {
            free(body);
            body = NULL;
        }
    }
    arena_release(&arena);
    return body;
}

static void
wait_for_end(struct question *q, struct rpc_client *c)
{
    pthread_mutex_lock(&q->lock);
    while (!q->is_done)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
    rpc_client_close(c);
    pthread_mutex_lock(&q->lock);
    while (!q->has_gone)
        pthread_cond_wait(&q->changed, &q->lock);
    pthread_mutex_unlock(&q->lock);
}

int
heal_ask(const char *socket, const struct volume *v, enum heal_ask what, json_t **out, struct problem *why)
{
    static const struct rpc_client_ops ops = {.connected = client_connected,
                                              .down = client_down,
                                              .unreachable = client_unreachable,
                                              .gone = client_gone};
    const struct rpc_client_options options = {.name = "self-heal daemon",
                                               .where = {.path = socket},
                                               .retry_min_ms = BETWEEN_MS,
                                               .retry_max_ms = BETWEEN_MS};
    struct question q = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    int err = 0;
    char *args = encode_question(v, what, &q.args_bytes);

    q.args = args;
    struct rpc_client *c = args ? rpc_client_new(&options, &ops, &q, &err) : NULL;
    if (!c) {
        free(args);
        return problem_set(why, err ? err : -ENOMEM, "the self-heal daemon at %s cannot be asked: %s", socket,
                           strerror(err ? -err : ENOMEM));
    }
    rpc_client_start(c);
    wait_for_end(&q, c);
    free(args);
    *out = q.out;
    if (!q.err)
        return 0;
    problem_set(why, q.err, "the self-heal daemon of volume %s does not answer at %s: %s", v->name, socket,
                strerror(-q.err));
    problem_type(why, "kiln volume status %s", v->name);
    return why->err;
}
