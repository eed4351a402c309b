/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/store.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volumes/cluster/curl-library.h"

enum {
    CONNECT_MS = 1500,
    ANSWER_MAX = 64 << 20, /* bytes of an answer, or of a line of a watch */
    HTTP_UNAUTHORIZED = 401,
    /* Numbers of gRPC's errors. */
    GRPC_NOT_FOUND = 5,
    GRPC_PERMISSION_DENIED = 7,
    GRPC_OUT_OF_RANGE = 11,
    GRPC_UNAUTHENTICATED = 16,
};

struct store {
    char *location, *prefix, *user, *password, *ca, *cert, *key;
    char *members[STORE_MEMBERS_MAX]; /* "http://HOST:PORT" */
    unsigned member_count;
    atomic_uint good;     /* the member that answered last */
    pthread_mutex_t lock; /* guards `token` */
    char *token;          /* NULL: none yet */
};

/* ---- base64 ---------------------------------------------------------------------------------- */

static const char base64_digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/* Returns NULL without memory. */
static char *
store_base64_encode(const char *a, size_t size)
{
    char *text = malloc((size + 2) / 3 * 4 + 1), *at = text;

    for (size_t i = 0; text && i < size; i += 3) {
        size_t n = size - i < 3 ? size - i : 3;
        uint32_t bits = (uint32_t)(unsigned char)a[i] << 16;

        bits |= n > 1 ? (uint32_t)(unsigned char)a[i + 1] << 8 : 0;
        bits |= n > 2 ? (uint32_t)(unsigned char)a[i + 2] : 0;
        for (size_t k = 0; k < 4; k++)
            *at++ = k <= n ? base64_digits[bits >> (18 - 6 * k) & 63] : '=';
    }
    if (text)
        *at = '\0';
    return text;
}

/* Returns the bytes with a 0 behind them, or NULL: no base64, a 0 among the bytes, or no memory. */
static char *
store_base64_decode(const char *text)
{
    size_t len = strlen(text), n = 0;
    char *bytes = malloc(len / 4 * 3 + 4);
    uint32_t bits = 0;
    unsigned count = 0;

    while (len > 0 && text[len - 1] == '=')
        len--;
    for (size_t i = 0; bytes && i < len; i++) {
        const char *digit = memchr(base64_digits, text[i], sizeof base64_digits - 1);

        if (!digit) {
            free(bytes);
            return NULL;
        }
        bits = bits << 6 | (uint32_t)(digit - base64_digits);
        if (++count == 4) {
            bytes[n++] = (char)(bits >> 16);
            bytes[n++] = (char)(bits >> 8);
            bytes[n++] = (char)bits;
            count = 0;
        }
    }
    if (!bytes)
        return NULL;
    if (count >= 2)
        bytes[n++] = (char)(bits >> (count == 3 ? 10 : 4));
    if (count == 3)
        bytes[n++] = (char)(bits >> 2);
    bytes[n] = '\0';
    if (count != 1 && strlen(bytes) == n)
        return bytes;
    free(bytes);
    return NULL;
}

/* A JSON text of the bytes in base64. NULL: no memory. */
static json_t *
json_base64(const char *bytes)
{
    char *text = store_base64_encode(bytes, strlen(bytes));
    json_t *json = text ? json_string(text) : NULL;

    free(text);
    return json;
}

/* Returns the key with the store's prefix, in base64. `is_end`: the first key behind all keys with this
 * prefix. */
static json_t *
store_key_json(const struct store *s, const char *name, bool is_end)
{
    char *key;

    if (asprintf(&key, "%s%s", s->prefix, name) < 0)
        return NULL;
    if (is_end)
        key[strlen(key) - 1]++; /* '/' becomes '0' */
    json_t *json = json_base64(key);
    free(key);
    return json;
}

/* etcd writes 64-bit numbers as texts and leaves out zeros. */
static int64_t
json_number64(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    return json_is_string(value) ? strtoll(json_string_value(value), NULL, 10) : json_integer_value(value);
}

static json_t *
json_text64(int64_t n)
{
    return json_sprintf("%lld", (long long)n);
}

/* ---- HTTP ------------------------------------------------------------------------------------ */

/* Received bytes that are not used yet. */
struct received {
    char *bytes;
    size_t size;
    char reason[CURL_ERROR_SIZE]; /* of a failure; "": curl says no more than its code */
};

static int
received_add(struct received *r, const char *bytes, size_t size)
{
    if (size > ANSWER_MAX - r->size)
        return -EMSGSIZE;
    char *more = realloc(r->bytes, r->size + size + 1);

    if (!more)
        return -ENOMEM;
    memcpy(more + r->size, bytes, size);
    r->bytes = more;
    r->size += size;
    more[r->size] = '\0';
    return 0;
}

static size_t
answer_received(char *bytes, size_t one, size_t count, void *arg)
{
    return received_add(arg, bytes, one * count) ? 0 : one * count;
}

static int
no_store(const struct store *s, struct problem *why, const char *reason)
{
    problem_set(why, -EAGAIN, "the store %s does not answer: %.300s", s->location, reason);
    problem_expected(why, "a store that runs, with more than half of its members; data is served meanwhile");
    problem_type(why, "etcdctl --endpoints %.300s endpoint health", s->members[0]);
    return why->err;
}

/* Options that all requests have. */
static void
set_request(const struct store *s, CURL *h, unsigned member, const char *path, const char *body,
            struct curl_slist *headers)
{
    char url[512];

    snprintf(url, sizeof url, "%s%s", s->members[member], path);
    curl.easy_setopt(h, CURLOPT_URL, url);
    curl.easy_setopt(h, CURLOPT_POSTFIELDS, body); /* not copied */
    curl.easy_setopt(h, CURLOPT_HTTPHEADER, headers);
    curl.easy_setopt(h, CURLOPT_NOSIGNAL, 1L);
    curl.easy_setopt(h, CURLOPT_NOPROXY, "*");
    curl.easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
    curl.easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)CONNECT_MS);
    if (s->ca)
        curl.easy_setopt(h, CURLOPT_CAINFO, s->ca);
    if (s->cert)
        curl.easy_setopt(h, CURLOPT_SSLCERT, s->cert);
    if (s->key)
        curl.easy_setopt(h, CURLOPT_SSLKEY, s->key);
}

/* Adds a line. Returns false without memory. */
static bool
add_header(struct curl_slist **list, const char *line)
{
    struct curl_slist *more = curl.slist_append(*list, line);

    if (more)
        *list = more;
    return more != NULL;
}

/* NULL: no memory. */
static struct curl_slist *
request_headers(struct store *s)
{
    struct curl_slist *list = NULL;
    char *line = NULL;

    pthread_mutex_lock(&s->lock);
    int len = s->token ? asprintf(&line, "Authorization: %s", s->token) : 0;
    pthread_mutex_unlock(&s->lock);
    /* A member that has lost its leader ends a watch. */
    if (len >= 0 && add_header(&list, "Content-Type: application/json") &&
        add_header(&list, "Grpc-Metadata-hasleader: true") && (!len || add_header(&list, line))) {
        free(line);
        return list;
    }
    if (len > 0)
        free(line);
    curl.slist_free_all(list);
    return NULL;
}

/* Sends a request to a member of etcd. Returns CURLE_OK with the HTTP status, or curl's error. */
static CURLcode
post_to(struct store *s, unsigned member, const char *path, const char *body, struct received *r,
        long *status)
{
    CURL *h = curl.easy_init();
    struct curl_slist *headers = request_headers(s);
    CURLcode code = CURLE_OUT_OF_MEMORY;

    *status = 0;
    if (h && headers) {
        set_request(s, h, member, path, body, headers);
        curl.easy_setopt(h, CURLOPT_TIMEOUT_MS, (long)STORE_TRY_MS);
        curl.easy_setopt(h, CURLOPT_WRITEFUNCTION, answer_received);
        curl.easy_setopt(h, CURLOPT_WRITEDATA, r);
        curl.easy_setopt(h, CURLOPT_ERRORBUFFER, r->reason);
        code = curl.easy_perform(h);
        if (!code)
            curl.easy_getinfo(h, CURLINFO_RESPONSE_CODE, status);
    }
    curl.slist_free_all(headers);
    if (h)
        curl.easy_cleanup(h);
    return code;
}

static int
refused(const struct store *s, const json_t *answer, long status, struct problem *why)
{
    const char *text = json_string_value(json_object_get(answer, "error"));
    json_int_t code = json_integer_value(json_object_get(answer, "code"));

    if (code == GRPC_UNAUTHENTICATED || code == GRPC_PERMISSION_DENIED || status == HTTP_UNAUTHORIZED ||
        (text && strstr(text, "user name is empty")) || (text && strstr(text, "authentication failed"))) {
        problem_set(why, -EACCES, "the store %s refuses user '%s': %.300s", s->location,
                    s->user ? s->user : "", text ? text : "not authenticated");
        problem_expected(why, "a user in --store etcd://USER@HOST..., with its --store-password-file");
        return why->err;
    }
    if (code == GRPC_NOT_FOUND)
        return problem_set(why, -ENOENT, "the store %s: %.300s", s->location, text ? text : "not found");
    if (code == GRPC_OUT_OF_RANGE)
        return problem_set(why, -ENODATA, "the store %s: %.300s", s->location, text ? text : "out of range");
    return problem_set(why, -EPROTO, "the store %s answers with status %ld: %.300s", s->location, status,
                       text ? text : "not JSON");
}

/* Returns whether the member cannot have got the request, so that another member may get it. */
static bool
was_not_sent(CURLcode code)
{
    return code == CURLE_COULDNT_CONNECT || code == CURLE_COULDNT_RESOLVE_HOST ||
           code == CURLE_SSL_CONNECT_ERROR || code == CURLE_PEER_FAILED_VERIFICATION;
}

/* Sends a request to the members in turn until one answers. *is_lost: a member may have made the change, and
 * its answer was lost. */
static int
post_in_turn(struct store *s, const char *path, const char *body, bool is_change, json_t **answer,
             bool *is_lost, struct problem *why)
{
    const unsigned first = atomic_load(&s->good);

    *is_lost = false;
    no_store(s, why, "no member");
    for (unsigned i = 0; i < s->member_count && !*is_lost; i++) {
        unsigned member = (first + i) % s->member_count;
        struct received r = {0};
        long status;
        CURLcode code = post_to(s, member, path, body, &r, &status);
        json_t *json = code ? NULL : json_loadb(r.bytes ? r.bytes : "", r.size, 0, NULL);

        free(r.bytes);
        if (!code && status == 200 && json) {
            atomic_store(&s->good, member);
            *answer = json;
            why->err = 0;
            return 0;
        }
        if (!code && status < 500)
            refused(s, json, status, why);
        else
            no_store(s, why, *r.reason ? r.reason
                             : code ? curl.easy_strerror(code)
                             : json_object_get(json, "error")
                                 ? json_string_value(json_object_get(json, "error"))
                                 : "a server's error");
        json_decref(json);
        if (!code && status < 500)
            return why->err;
        *is_lost = is_change && (!code || !was_not_sent(code));
    }
    return why->err;
}

static int
authenticate(struct store *s, struct problem *why)
{
    json_t *request = json_pack("{ss ss}", "name", s->user, "password", s->password ? s->password : "");
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    json_t *answer = NULL;
    bool is_lost;

    json_decref(request);
    pthread_mutex_lock(&s->lock);
    free(s->token);
    s->token = NULL;
    pthread_mutex_unlock(&s->lock);
    int err = body ? post_in_turn(s, "/v3/auth/authenticate", body, false, &answer, &is_lost, why)
                   : problem_no_memory(why);
    const char *token = json_string_value(json_object_get(answer, "token"));
    free(body);
    if (!err && !token)
        err = problem_set(why, -EPROTO, "the store %s gives no token", s->location);
    if (!err) {
        pthread_mutex_lock(&s->lock);
        free(s->token);
        s->token = strdup(token);
        pthread_mutex_unlock(&s->lock);
    }
    json_decref(answer);
    return err;
}

static bool
has_token(struct store *s)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->token != NULL;
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* Consumes `request` (NULL: no memory). A token that has ended is renewed once. */
static int
store_call(struct store *s, const char *path, json_t *request, bool is_change, json_t **answer,
           bool *is_lost, struct problem *why)
{
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;
    int err = body ? 0 : problem_no_memory(why);

    json_decref(request);
    *answer = NULL;
    *is_lost = false;
    if (!err && s->user && !has_token(s))
        err = authenticate(s, why);
    if (!err) {
        err = post_in_turn(s, path, body, is_change, answer, is_lost, why);
        if (err == -EACCES && s->user && authenticate(s, why) == 0)
            err = post_in_turn(s, path, body, is_change, answer, is_lost, why);
    }
    free(body);
    return err;
}

static int
store_ask(struct store *s, const char *path, json_t *request, json_t **answer, struct problem *why)
{
    bool is_lost;

    return store_call(s, path, request, false, answer, &is_lost, why);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The decoded text of a member; NULL: missing, or no base64. */
static char *
member_decoded(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? store_base64_decode(text) : NULL;
}

static int
not_etcd(const struct store *s, struct problem *why)
{
    return problem_set(why, -EPROTO, "the answer of the store %s cannot be understood", s->location);
}

int
store_get(struct store *s, const char *key, char **text, int64_t *revision, struct problem *why)
{
    json_t *answer = NULL;
    int err =
        store_ask(s, "/v3/kv/range", json_pack("{so}", "key", store_key_json(s, key, false)), &answer, why);
    const json_t *kv = json_array_get(json_object_get(answer, "kvs"), 0);

    *text = NULL;
    *revision = 0;
    if (!err && kv) {
        *text = json_object_get(kv, "value") ? member_decoded(kv, "value") : strdup("");
        *revision = json_number64(kv, "mod_revision");
        if (!*text)
            err = not_etcd(s, why);
    }
    json_decref(answer);
    return err;
}

int
store_list(struct store *s, const char *prefix,
           void (*fn)(const char *key, const char *text, int64_t revision, void *arg), void *arg, int64_t *at,
           struct problem *why)
{
    json_t *answer = NULL, *kv;
    const size_t skip = strlen(s->prefix);
    int err = store_ask(s, "/v3/kv/range",
                        json_pack("{so so}", "key", store_key_json(s, prefix, false), "range_end",
                                  store_key_json(s, prefix, true)),
                        &answer, why);
    size_t i;

    if (!err)
        *at = json_number64(json_object_get(answer, "header"), "revision");
    json_array_foreach(json_object_get(answer, "kvs"), i, kv)
    {
        char *key = member_decoded(kv, "key");
        char *text = json_object_get(kv, "value") ? member_decoded(kv, "value") : strdup("");

        if (key && text && strlen(key) >= skip)
            fn(key + skip, text, json_number64(kv, "mod_revision"), arg);
        else
            err = not_etcd(s, why);
        free(key);
        free(text);
    }
    json_decref(answer);
    return err;
}

/* ---- changing -------------------------------------------------------------------------------- */

static json_t *
json_of_change(const struct store *s, const struct store_change *c)
{
    if (!c->text)
        return json_pack("{s{so}}", "request_delete_range", "key", store_key_json(s, c->key, false));
    return json_pack("{s{so so so}}", "request_put", "key", store_key_json(s, c->key, false), "value",
                     json_base64(c->text), "lease", json_text64(c->lease));
}

static json_t *
json_of_compare(const struct store *s, const struct store_change *c)
{
    return json_pack("{so ss ss so}", "key", store_key_json(s, c->key, false), "target", "MOD", "result",
                     "EQUAL", "mod_revision", json_text64(c->from));
}

/* Reads the first key after an answer was lost. Returns 0 if the change was made. */
static int
find_out(struct store *s, const struct store_change *c, int64_t *at, struct problem *why)
{
    char *text = NULL;
    int64_t revision;
    int err = store_get(s, c->key, &text, &revision, why);

    if (!err && (c->text ? !text || strcmp(text, c->text) != 0 : text != NULL))
        err = no_store(s, why, "its answer was lost, and the change was not made");
    else if (!err && at)
        *at = revision;
    free(text);
    return err;
}

int
store_change(struct store *s, const struct store_change *changes, size_t count, int64_t *at,
             struct problem *why)
{
    json_t *compares = json_array(), *puts = json_array(), *answer = NULL;
    int is_short = 0;
    bool is_lost;

    why->err = 0;
    for (size_t i = 0; i < count; i++) {
        if (changes[i].text && strlen(changes[i].text) > STORE_VALUE_MAX)
            return json_decref(compares), json_decref(puts),
                   problem_set(why, -E2BIG, "%s is too long for the store", changes[i].key);
        is_short |= json_array_append_new(puts, json_of_change(s, &changes[i]));
        if (changes[i].from != STORE_ANY_REVISION)
            is_short |= json_array_append_new(compares, json_of_compare(s, &changes[i]));
    }
    json_t *request = json_pack("{so so}", "compare", compares, "success", puts);
    if (is_short) {
        json_decref(request);
        return problem_no_memory(why);
    }
    int err = store_call(s, "/v3/kv/txn", request, true, &answer, &is_lost, why);
    if (err && is_lost)
        return find_out(s, &changes[0], at, why);
    if (!err && !json_is_true(json_object_get(answer, "succeeded")))
        err = problem_set(why, -ESTALE, "%s was changed by another host meanwhile", changes[0].key);
    else if (!err && at)
        *at = json_number64(json_object_get(answer, "header"), "revision");
    json_decref(answer);
    return err;
}

int
store_forget(struct store *s, int64_t at, struct problem *why)
{
    json_t *answer = NULL;
    int err =
        store_ask(s, "/v3/kv/compaction", json_pack("{so}", "revision", json_text64(at)), &answer, why);

    json_decref(answer);
    return err == -ENODATA ? 0 : err; /* another client has compacted already */
}

/* ---- leases ---------------------------------------------------------------------------------- */

int
store_lease(struct store *s, unsigned seconds, int64_t *lease, struct problem *why)
{
    json_t *answer = NULL;
    int err = store_ask(s, "/v3/lease/grant", json_pack("{so}", "TTL", json_text64(seconds)), &answer, why);

    *lease = json_number64(answer, "ID");
    if (!err && !*lease)
        err = not_etcd(s, why);
    json_decref(answer);
    return err;
}

int
store_renew(struct store *s, int64_t lease, struct problem *why)
{
    json_t *answer = NULL;
    int err = store_ask(s, "/v3/lease/keepalive", json_pack("{so}", "ID", json_text64(lease)), &answer, why);

    if (!err && json_number64(json_object_get(answer, "result"), "TTL") <= 0)
        err = problem_set(why, -ENOENT, "the lease of this host has ended");
    json_decref(answer);
    return err;
}

int
store_end_lease(struct store *s, int64_t lease, struct problem *why)
{
    json_t *answer = NULL;
    int err = store_ask(s, "/v3/lease/revoke", json_pack("{so}", "ID", json_text64(lease)), &answer, why);

    json_decref(answer);
    return err;
}

/* ---- watching -------------------------------------------------------------------------------- */

struct watching {
    struct store *s;
    const struct store_watch *w;
    struct received r;
    int64_t at; /* the last revision seen */
    unsigned member;
    bool is_ended_by_us;
    int err;
};

static void
watch_event(struct watching *g, const json_t *event)
{
    const json_t *kv = json_object_get(event, "kv");
    const char *type = json_string_value(json_object_get(event, "type"));
    bool is_delete = type && strcmp(type, "DELETE") == 0;
    const size_t skip = strlen(g->s->prefix);
    char *key = member_decoded(kv, "key");
    char *text = is_delete ? NULL : json_object_get(kv, "value") ? member_decoded(kv, "value") : strdup("");

    if (key && strlen(key) >= skip && (is_delete || text))
        g->w->seen(key + skip, text, json_number64(kv, "mod_revision"), g->w->arg);
    else
        g->err = -EPROTO;
    free(key);
    free(text);
}

static void
watch_line(struct watching *g, const char *line, size_t size)
{
    json_t *json = json_loadb(line, size, 0, NULL), *event;
    const json_t *result = json_object_get(json, "result");
    int64_t revision = json_number64(json_object_get(result, "header"), "revision");
    size_t i;

    if (!result || json_is_true(json_object_get(result, "canceled")))
        g->err = json_number64(result, "compact_revision") > 0 ? -ENODATA : -EAGAIN;
    if (!g->err && json_is_true(json_object_get(result, "created")))
        revision = 0; /* changes up to this revision may still come */
    if (!g->err)
        json_array_foreach(json_object_get(result, "events"), i, event) watch_event(g, event);
    if (!g->err && revision > g->at)
        g->at = revision;
    json_decref(json);
}

static size_t
take_lines_of_watch(char *bytes, size_t one, size_t count, void *arg)
{
    struct watching *g = arg;
    const size_t size = one * count;
    size_t done = 0;
    char *end;

    if (received_add(&g->r, bytes, size))
        return 0;
    while (!g->err && (end = memchr(g->r.bytes + done, '\n', g->r.size - done))) {
        watch_line(g, g->r.bytes + done, (size_t)(end - g->r.bytes) - done);
        done = (size_t)(end - g->r.bytes) + 1;
    }
    memmove(g->r.bytes, g->r.bytes + done, g->r.size - done);
    g->r.size -= done;
    return g->err ? 0 : size;
}

/* curl calls this about once a second. */
static int
store_watch_goes_on(void *arg, curl_off_t a, curl_off_t b, curl_off_t c, curl_off_t d)
{
    struct watching *g = arg;

    (void)a, (void)b, (void)c, (void)d;
    g->is_ended_by_us = !g->w->goes_on(g->w->arg) || atomic_load(&g->s->good) != g->member;
    return g->is_ended_by_us;
}

static CURLcode
watch_member(struct watching *g, const char *body)
{
    CURL *h = curl.easy_init();
    struct curl_slist *headers = request_headers(g->s);
    CURLcode code = CURLE_OUT_OF_MEMORY;

    if (h && headers) {
        set_request(g->s, h, g->member, "/v3/watch", body, headers);
        curl.easy_setopt(h, CURLOPT_WRITEFUNCTION, take_lines_of_watch);
        curl.easy_setopt(h, CURLOPT_WRITEDATA, g);
        curl.easy_setopt(h, CURLOPT_XFERINFOFUNCTION, store_watch_goes_on);
        curl.easy_setopt(h, CURLOPT_XFERINFODATA, g);
        curl.easy_setopt(h, CURLOPT_NOPROGRESS, 0L);
        curl.easy_setopt(h, CURLOPT_TCP_KEEPALIVE, 1L);
        code = curl.easy_perform(h);
    }
    curl.slist_free_all(headers);
    if (h)
        curl.easy_cleanup(h);
    return code;
}

int
store_watch(struct store *s, int64_t *at, const struct store_watch *w, struct problem *why)
{
    struct watching g = {.s = s, .w = w, .at = *at, .member = atomic_load(&s->good)};
    json_t *request =
        json_pack("{s{so so so}}", "create_request", "key", store_key_json(s, "", false), "range_end",
                  store_key_json(s, "", true), "start_revision", json_text64(*at + 1));
    char *body = request ? json_dumps(request, JSON_COMPACT) : NULL;

    json_decref(request);
    if (!body)
        return problem_no_memory(why);
    CURLcode code = watch_member(&g, body);
    free(body);
    free(g.r.bytes);
    *at = g.at;
    if (g.is_ended_by_us)
        return 0;
    if (g.err == -ENODATA)
        return problem_set(why, -ENODATA, "the store has dropped old changes");
    return no_store(s, why, code ? curl.easy_strerror(code) : "the connection ended");
}

/* ---- opening --------------------------------------------------------------------------------- */

static int
wrong_location(const char *location, struct problem *why)
{
    problem_set(why, -EINVAL, "--store %.300s cannot be understood", location);
    problem_expected(why, "etcd://HOST:PORT[,HOST:PORT]..., at most %d members; etcds:// for TLS",
                     STORE_MEMBERS_MAX);
    return why->err;
}

/* Takes the members "HOST:PORT,HOST:PORT". */
static int
parse_members(struct store *s, char *list, bool is_tls)
{
    char *rest;

    for (char *one = strtok_r(list, ",", &rest); one; one = strtok_r(NULL, ",", &rest)) {
        const char *colon = strrchr(one, ':');
        bool is_good = colon && colon != one && colon[1] && !colon[1 + strspn(colon + 1, "0123456789")] &&
                       strlen(one) <= 280 && s->member_count < STORE_MEMBERS_MAX;

        if (!is_good)
            return -EINVAL;
        if (asprintf(&s->members[s->member_count], "http%s://%s", is_tls ? "s" : "", one) < 0)
            return -ENOMEM;
        s->member_count++;
    }
    return s->member_count ? 0 : -EINVAL;
}

/* Fills prefix, user and members. Returns 0, -EINVAL or -ENOMEM. */
static int
parse_location(struct store *s, const char *location)
{
    const bool is_tls = strncmp(location, "etcds://", 8) == 0;

    if (!is_tls && strncmp(location, "etcd://", 7) != 0)
        return -EINVAL;
    char *rest = strdup(location + (is_tls ? 8 : 7)), *list = rest;
    if (!rest)
        return -ENOMEM;
    char *slash = strchr(list, '/'), *at_sign = strrchr(list, '@');
    if (slash)
        *slash = '\0';
    if (at_sign && !(slash && at_sign > slash)) {
        *at_sign = '\0';
        s->user = strdup(list);
        list = at_sign + 1;
    }
    int err = asprintf(&s->location, "%s://%s", is_tls ? "etcds" : "etcd", list) < 0 ? -ENOMEM : 0;
    bool has_prefix = slash && slash[1];
    if (!err)
        err = asprintf(&s->prefix, "/%s/", has_prefix ? slash + 1 : "kiln") < 0 ? -ENOMEM : 0;
    if (!err)
        err = parse_members(s, list, is_tls);
    free(rest);
    return err;
}

static int
read_password(struct store *s, const char *path, struct problem *why)
{
    FILE *f = fopen(path, "re");
    char line[512];

    if (!f)
        return problem_set(why, -errno, "--store-password-file %.300s: %s", path, strerror(errno));
    if (!fgets(line, sizeof line, f))
        problem_set(why, -EINVAL, "--store-password-file %.300s is empty", path);
    fclose(f);
    if (why->err)
        return why->err;
    line[strcspn(line, "\n")] = '\0';
    s->password = strdup(line);
    explicit_bzero(line, sizeof line);
    return s->password ? 0 : problem_no_memory(why);
}

static char *
store_copy_text(const char *text, bool *is_short)
{
    char *copy = text ? strdup(text) : NULL;

    *is_short |= text && !copy;
    return copy;
}

/* A store with TLS gets the certificate files of this machine, if no file is given and all are there. */
static void
store_choose_files(struct store *s, const struct store_options *o, bool *is_short)
{
    static const char *const folders[] = {"/usr/lib/ssl", "/etc/ssl"};
    static const char *const names[3] = {"glusterfs.ca", "glusterfs.pem", "glusterfs.key"};
    const char *files[3] = {o->ca, o->cert, o->key};
    bool is_given = o->ca || o->cert || o->key || strncmp(o->location, "etcds://", 8) != 0;
    char paths[3][64];

    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && !is_given; i++) {
        unsigned found = 0;

        for (unsigned k = 0; k < 3; k++) {
            snprintf(paths[k], sizeof paths[k], "%s/%s", folders[i], names[k]);
            found += access(paths[k], F_OK) == 0;
        }
        is_given = found == 3;
        for (unsigned k = 0; k < 3 && is_given; k++)
            files[k] = paths[k];
    }
    s->ca = store_copy_text(files[0], is_short);
    s->cert = store_copy_text(files[1], is_short);
    s->key = store_copy_text(files[2], is_short);
}

struct store *
store_open(const struct store_options *o, struct problem *why)
{
    struct store *s = calloc(1, sizeof *s);
    const char *missing;
    bool is_short = false;

    why->err = 0;
    if (!s) {
        problem_no_memory(why);
        return NULL;
    }
    pthread_mutex_init(&s->lock, NULL);
    store_choose_files(s, o, &is_short);
    int err = is_short ? -ENOMEM : parse_location(s, o->location);
    if (err == -EINVAL)
        wrong_location(o->location, why);
    else if (err)
        problem_no_memory(why);
    else if (o->password_file && read_password(s, o->password_file, why))
        err = why->err;
    else if ((missing = curl_library_load())) {
        problem_set(why, -ELIBACC, "--store needs libcurl, which cannot be loaded: %.300s", missing);
        problem_type(why, "apt install libcurl4");
    }
    if (!why->err)
        return s;
    store_close(s);
    return NULL;
}

void
store_close(struct store *s)
{
    if (!s)
        return;
    char *const texts[] = {s->location, s->prefix, s->user, s->password, s->ca, s->cert, s->key, s->token};

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        free(texts[i]);
    for (unsigned i = 0; i < s->member_count; i++)
        free(s->members[i]);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

const char *
store_location(const struct store *s)
{
    return s->location;
}
