/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-ask.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu.h>
#include <urcu/list.h>

#include "base/gfid.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster.h"
#include "volumes/cluster/host-proof.h"

/* A question of this host that waits for its answer; lies on the asker's stack. */
struct waiting {
    struct cds_list_head link;
    char id[GFID_TEXT_SIZE];
    const char *host;
    json_t *answer; /* as the host wrote it; NULL: not yet */
    bool is_gone;   /* the host's lease has ended */
};

/* A question of another host, or of this host to itself, that is being answered. */
struct serving {
    struct cds_list_head link;
    char id[GFID_TEXT_SIZE];
    json_t *question;
    bool is_own;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards everything below */
static pthread_cond_t changed;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static CDS_LIST_HEAD(waits);
static CDS_LIST_HEAD(served);
static unsigned served_count;
static bool is_stopped;

static void
init_condition(void)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
}

/* ---- answering ------------------------------------------------------------------------------- */

/* {"ok": answer} or {"error", "errno", "expected", "try"}. */
static json_t *
run_question(const json_t *question)
{
    const char *verb = json_string_value(json_object_get(question, "verb"));
    json_t *args = json_object_get(question, "args"), *out = NULL;
    struct problem why = {0};
    int err = verb && json_is_object(args) ? cluster_serve(verb, args, &out, &why)
                                           : problem_set(&why, -EINVAL, "the question has no verb");

    if (!err)
        return json_pack("{so}", "ok", out ? out : json_object());
    json_decref(out);
    return json_pack("{ss si ss ss}", "error", why.wrong, "errno", why.err, "expected", why.expected, "try",
                     why.type);
}

/* The asker gets this error at once, in the place of no answer until its deadline. */
static char *
too_long_answer(const char *key)
{
    json_t *error = json_pack("{ss si ss ss}", "error", "the answer is too long for the store", "errno",
                              -E2BIG, "expected", "fewer bricks or entries; ask on that host", "try", "");
    struct problem why;
    char *text = NULL;

    if (error && host_proof_sign(error, key, brick_host_own(), &why) == 0)
        text = json_dumps(error, JSON_COMPACT);
    json_decref(error);
    return text;
}

static void
ask_send_answer(const struct serving *s, json_t *answer)
{
    const char *from = json_string_value(json_object_get(s->question, "from"));
    struct problem why = {0};
    char key[400], *text;

    snprintf(key, sizeof key, "answer/%.255s/%s", from ? from : "", s->id);
    if (answer && host_proof_sign(answer, key, brick_host_own(), &why)) {
        log_event(LOG_ERROR, NULL, "host-answer-proof", "host %s gets no answer: %s", from ? from : "-",
                  why.wrong);
        return;
    }
    text = answer ? json_dumps(answer, JSON_COMPACT) : NULL;
    if (text && strlen(text) > STORE_VALUE_MAX) {
        free(text);
        text = too_long_answer(key);
    }
    const struct store_change c = {key, text, STORE_ANY_REVISION, cluster_lease()};
    if (!c.lease) /* the key would outlive both hosts; the asker's deadline passes */
        log_event(LOG_WARNING, NULL, "host-answer-lease", "host %s gets no answer: this host has no lease",
                  from ? from : "-");
    else if (!text || !from)
        log_event(LOG_ERROR, NULL, "host-answer-memory", "a question of host %s gets no answer",
                  from ? from : "-");
    else if (store_change(cluster_store(), &c, 1, NULL, &why))
        log_event(LOG_WARNING, NULL, "host-answer", "host %s gets no answer: %s", from, why.wrong);
    free(text);
}

/* Consumes `answer`. */
static void
deliver_answer(const char *id, json_t *answer)
{
    struct waiting *w;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry (w, &waits, link) {
        if (answer && strcmp(w->id, id) == 0 && !w->answer) {
            w->answer = answer;
            answer = NULL;
        }
    }
    json_decref(answer);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *
serving_run(void *arg)
{
    struct serving *s = arg;

    rcu_register_thread();
    json_t *answer = run_question(s->question);
    if (s->is_own) {
        deliver_answer(s->id, answer);
    } else {
        ask_send_answer(s, answer);
        json_decref(answer);
    }
    rcu_unregister_thread();
    pthread_mutex_lock(&lock);
    cds_list_del(&s->link);
    served_count--;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    json_decref(s->question);
    free(s);
    return NULL;
}

static bool
is_served_locked(const char *id)
{
    struct serving *s;

    cds_list_for_each_entry (s, &served, link) {
        if (strcmp(s->id, id) == 0)
            return true;
    }
    return false;
}

/* Starts a thread that answers. Consumes `question`. A question beyond CLUSTER_ASKS_MAX of other hosts gets
 * no answer, and its asker reports that. */
static void
ask_serve(const char *id, json_t *question, bool is_own)
{
    struct serving *s = calloc(1, sizeof *s);
    pthread_attr_t attr;
    pthread_t thread;

    pthread_once(&once, init_condition);
    pthread_mutex_lock(&lock);
    bool may = s && question && !is_stopped && !is_served_locked(id) &&
               (is_own || served_count < CLUSTER_ASKS_MAX);
    if (may) {
        snprintf(s->id, sizeof s->id, "%s", id);
        s->question = question;
        s->is_own = is_own;
        cds_list_add(&s->link, &served);
        served_count++;
    }
    pthread_mutex_unlock(&lock);
    if (!may) {
        free(s);
        json_decref(question);
        return;
    }
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int err = pthread_create(&thread, &attr, serving_run, s);
    pthread_attr_destroy(&attr);
    if (!err)
        return;
    log_event(LOG_ERROR, NULL, "host-answer-thread", "a question gets no answer: %s", strerror(err));
    pthread_mutex_lock(&lock);
    cds_list_del(&s->link);
    served_count--;
    pthread_mutex_unlock(&lock);
    json_decref(question);
    free(s);
}

void
cluster_ask_seen(const char *host, const char *id, const char *text)
{
    if (strcmp(host, brick_host_own()) != 0 || strlen(id) != GFID_TEXT_SIZE - 1)
        return;
    json_t *question = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    const char *from = json_string_value(json_object_get(question, "from"));
    struct problem why = {0};
    char place[400];

    snprintf(place, sizeof place, "ask/%.255s/%s", host, id);
    if (question && host_proof_check(question, place, from ? from : "", &why)) {
        log_event(LOG_ERROR, NULL, "host-question-refused", "a question is refused: %s", why.wrong);
        json_decref(question);
    } else if (question) {
        ask_serve(id, question, false);
    }
}

/* The host that this question was sent to. Returns false if the question is no longer there. */
static bool
find_asked_host(const char *id, char host[256])
{
    const struct waiting *w;
    bool is_found = false;

    pthread_once(&once, init_condition);
    pthread_mutex_lock(&lock);
    cds_list_for_each_entry (w, &waits, link) {
        if (strcmp(w->id, id) == 0) {
            snprintf(host, 256, "%s", w->host);
            is_found = true;
        }
    }
    pthread_mutex_unlock(&lock);
    return is_found;
}

void
cluster_answer_seen(const char *id, const char *text)
{
    json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    char host[256], place[400];
    struct problem why = {0};

    if (!answer || !find_asked_host(id, host)) {
        json_decref(answer);
        return;
    }
    snprintf(place, sizeof place, "answer/%.255s/%.*s", brick_host_own(), GFID_TEXT_SIZE, id);
    if (host_proof_check(answer, place, host, &why)) {
        log_event(LOG_ERROR, NULL, "host-answer-refused", "an answer is refused: %s", why.wrong);
        json_decref(answer);
    } else {
        deliver_answer(id, answer);
    }
}

/* ---- asking ---------------------------------------------------------------------------------- */

void
cluster_ask_host_gone(const char *host)
{
    struct waiting *w;

    pthread_once(&once, init_condition);
    pthread_mutex_lock(&lock);
    cds_list_for_each_entry (w, &waits, link)
        w->is_gone |= strcmp(w->host, host) == 0;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static int
host_is_down(const char *host, struct problem *why)
{
    problem_set(why, -EHOSTUNREACH, "host %s is down", host);
    problem_expected(why, "a kilnd that runs there and reaches the store");
    problem_type(why, "kiln host list");
    return why->err;
}

/* Puts the question into the store, or answers the host's own question. */
static int
send_question(struct waiting *w, const char *verb, json_t *args, struct problem *why)
{
    json_t *question = json_pack("{ss ss sO}", "from", brick_host_own(), "verb", verb, "args", args);
    int64_t lease = cluster_lease();
    char key[400];

    if (strcmp(w->host, brick_host_own()) == 0) {
        ask_serve(w->id, question, true);
        return 0;
    }
    snprintf(key, sizeof key, "ask/%.255s/%s", w->host, w->id);
    int err = question ? host_proof_sign(question, key, brick_host_own(), why) : problem_no_memory(why);
    char *text = err ? NULL : json_dumps(question, JSON_COMPACT);
    json_decref(question);
    const struct store_change c = {key, text, STORE_ANY_REVISION, lease};
    if (!text)
        err = err ? err : problem_no_memory(why);
    else if (cluster_check_store(why))
        err = why->err;
    else if (!cluster_is_alive(w->host))
        err = host_is_down(w->host, why);
    else if (!lease)
        err = problem_set(why, -EAGAIN, "this host has no lease of the store yet");
    else
        err = store_change(cluster_store(), &c, 1, NULL, why);
    free(text);
    return err;
}

/* Takes the answer of one host. */
static void
ask_take_answer(struct cluster_ask *ask, struct waiting *w, unsigned seconds)
{
    json_t *ok = json_object_get(w->answer, "ok");

    if (ok) {
        ask->answer = json_incref(ok);
    } else if (w->answer) {
        const char *wrong = json_string_value(json_object_get(w->answer, "error"));
        const char *expected = json_string_value(json_object_get(w->answer, "expected"));
        const char *type = json_string_value(json_object_get(w->answer, "try"));
        json_int_t err = json_integer_value(json_object_get(w->answer, "errno"));

        ask->err = problem_set(&ask->why, err < 0 && err > -4096 ? (int)err : -EPROTO, "host %s: %.600s",
                               ask->host, wrong ? wrong : "no reason is given");
        problem_expected(&ask->why, "%.500s", expected ? expected : "");
        problem_type(&ask->why, "%.500s", type ? type : "");
    } else if (w->is_gone) {
        ask->err = host_is_down(ask->host, &ask->why);
    } else {
        ask->err = problem_set(&ask->why, -ETIMEDOUT, "host %s has not answered within %u s", ask->host,
                               seconds);
    }
}

static void
wait_for_answers(struct waiting *waits_here, unsigned count, unsigned seconds)
{
    struct timespec end;
    int late = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += seconds;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        struct waiting *w = &waits_here[i];

        while (*w->id && !w->answer && !w->is_gone && !is_stopped && !late)
            late = pthread_cond_timedwait(&changed, &lock, &end);
    }
    for (unsigned i = 0; i < count; i++)
        cds_list_del(&waits_here[i].link);
    pthread_mutex_unlock(&lock);
}

/* Deletes the keys of questions that were sent. A failure leaves them to the leases. */
static void
delete_questions(const struct waiting *sent, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        char ask_key[400], answer_key[400];
        const struct store_change c[] = {{ask_key, NULL, STORE_ANY_REVISION, 0},
                                         {answer_key, NULL, STORE_ANY_REVISION, 0}};
        struct problem why;

        snprintf(ask_key, sizeof ask_key, "ask/%.255s/%s", sent[i].host, sent[i].id);
        snprintf(answer_key, sizeof answer_key, "answer/%.255s/%s", brick_host_own(), sent[i].id);
        if (*sent[i].id && strcmp(sent[i].host, brick_host_own()) != 0)
            (void)store_change(cluster_store(), c, 2, NULL, &why);
    }
}

void
cluster_ask_all(struct cluster_ask *asks, unsigned count, const char *verb, json_t *args, unsigned seconds)
{
    struct waiting *w = calloc(count + 1, sizeof *w);

    pthread_once(&once, init_condition);
    for (unsigned i = 0; i < count; i++) {
        struct gfid id;

        asks[i].answer = NULL;
        asks[i].err = 0;
        if (!w) {
            asks[i].err = problem_no_memory(&asks[i].why);
            continue;
        }
        gfid_random(&id);
        gfid_text(&id, w[i].id);
        w[i].host = asks[i].host;
        pthread_mutex_lock(&lock);
        cds_list_add(&w[i].link, &waits);
        pthread_mutex_unlock(&lock);
        asks[i].err = send_question(&w[i], verb, args, &asks[i].why);
    }
    if (!w)
        return;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < count; i++) {
        if (asks[i].err)
            w[i].id[0] = '\0'; /* no answer will come */
    }
    pthread_mutex_unlock(&lock);
    wait_for_answers(w, count, seconds);
    for (unsigned i = 0; i < count; i++) {
        if (!asks[i].err)
            ask_take_answer(&asks[i], &w[i], seconds);
        json_decref(w[i].answer);
    }
    delete_questions(w, count);
    free(w);
}

void
cluster_asks_end(struct cluster_ask *asks, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        json_decref(asks[i].answer);
}

void
cluster_asks_stop(void)
{
    pthread_once(&once, init_condition);
    pthread_mutex_lock(&lock);
    is_stopped = true;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

void
cluster_asks_drain(void)
{
    pthread_mutex_lock(&lock);
    while (served_count > 0)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}
