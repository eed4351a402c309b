/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Answers to questions of kilnd (channel.h), each in a separate thread, because a heal may take long. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu.h>

#include "base/thread.h"
#include "heal/channel.h"
#include "heal/heal-volume.h"
#include "heal/rebalance-jobs.h"
#include "log/log.h"

enum { BRICKS_WAIT_S = 10, BETWEEN_MS = 200, TRIES_MAX = BRICKS_WAIT_S * 1000 / BETWEEN_MS };

static json_t *
only_error(int err)
{
    return json_pack("{si}", "error", err);
}

/* ---- heal ------------------------------------------------------------------------------------ */

/* Returns 0 if a set can be healed, else the error of the first set. */
static int
ask_all_sets(const struct heal_volume *v, bool is_full)
{
    int first = 0;
    bool is_any = false;

    for (size_t i = 0; i < heal_volume_sets(v); i++) {
        int err = heal_volume_ask(v, i, is_full);

        first = first ? first : err;
        is_any |= !err;
    }
    return is_any ? 0 : first;
}

/* Waits a little for bricks that have just been started: connections to them are tried again every few
 * seconds. */
static json_t *
answer_heal(const struct heal_volume *v, const json_t *message)
{
    bool is_full = json_is_true(json_object_get(message, "full"));
    int err = ask_all_sets(v, is_full);

    for (unsigned n = 0; n < TRIES_MAX && err == -ENOTCONN; n++) {
        usleep(BETWEEN_MS * 1000);
        err = ask_all_sets(v, is_full);
    }
    return only_error(err);
}

static json_t *
answer_stop_full(const struct heal_volume *v, const json_t *message)
{
    (void)message;
    for (size_t i = 0; i < heal_volume_sets(v); i++)
        heal_volume_stop_full(v, i);
    return only_error(0);
}

/* ---- statistics ------------------------------------------------------------------------------ */

static json_t *
describe_look(const struct crawl_look *look)
{
    return json_pack("{sb sb sI sI sI sI sI sI ss}", "full", look->is_full, "running", look->is_running,
                     "started", (json_int_t)look->started, "ended", (json_int_t)look->ended, "healed",
                     (json_int_t)look->healed, "split_brain", (json_int_t)look->split, "failed",
                     (json_int_t)look->failed, "left", (json_int_t)look->left, "current",
                     gfid_is_null(&look->current) ? "" : GFID(&look->current));
}

static json_t *
describe_set(const struct heal_volume *v, size_t set)
{
    struct crawl_look looks[CRAWL_LOOKS_KEPT];
    json_t *children = json_array();

    for (unsigned i = 0; i < heal_volume_children(v, set); i++) {
        unsigned count = heal_volume_looks(v, set, i, looks);
        json_t *list = json_array();

        for (unsigned n = 0; n < count; n++)
            json_array_append_new(list, describe_look(&looks[n]));
        json_array_append_new(children, list);
    }
    return children;
}

static json_t *
answer_statistics(const struct heal_volume *v, const json_t *message)
{
    json_t *sets = json_array(), *due = json_array(), *waits = json_array();
    char who[256];

    (void)message;
    for (size_t i = 0; i < heal_volume_sets(v); i++) {
        json_array_append_new(sets, describe_set(v, i));
        json_array_append_new(due, json_boolean(heal_volume_full_is_due(v, i)));
        heal_volume_waits_for(v, i, who, sizeof who);
        json_array_append_new(waits, json_string(who));
    }
    return json_pack("{si so so so}", "error", 0, "sets", sets, "full_due", due, "waits_for", waits);
}

/* ---- judgement ------------------------------------------------------------------------------- */

/* NULL: the message names no set of the volume. */
static struct crawler *
crawler_of(const struct heal_volume *v, const json_t *message)
{
    json_int_t set = json_integer_value(json_object_get(message, "set"));

    return set >= 0 && (size_t)set < heal_volume_sets(v) ? heal_volume_crawler(v, (size_t)set) : NULL;
}

static int
parse_gfid(const json_t *text, struct gfid *out)
{
    const char *s = json_string_value(text);

    return s ? gfid_parse(s, strlen(s), out) : -EINVAL;
}

static json_t *
describe_faults(struct crawler *c)
{
    struct crawl_fault *faults = calloc(CRAWL_FAULTS_KEPT, sizeof *faults);
    unsigned count = faults ? crawler_faults(c, faults) : 0;
    json_t *list = json_array();

    for (unsigned n = 0; n < count; n++)
        json_array_append_new(list, json_pack("{ss si ss}", "gfid", GFID(&faults[n].gfid), "error",
                                              -faults[n].why, "child", faults[n].child));
    free(faults);
    return list;
}

static json_t *
judge(struct crawler *c, const json_t *texts)
{
    size_t count = json_array_size(texts);
    struct gfid *gfids = calloc(count + 1, sizeof *gfids);
    uint8_t *needs = calloc(count + 1, 1);
    int err = gfids && needs ? 0 : -ENOMEM;

    for (size_t n = 0; n < count && !err; n++)
        err = parse_gfid(json_array_get(texts, n), &gfids[n]);
    err = err ? err : crawler_judge(c, gfids, count, needs);
    json_t *list = json_array();
    for (size_t n = 0; n < count && !err; n++)
        json_array_append_new(list, json_integer(needs[n]));
    free(gfids);
    free(needs);
    return json_pack("{si so so}", "error", err, "needs", list, "faults", describe_faults(c));
}

static json_t *
answer_judge(const struct heal_volume *v, const json_t *message)
{
    struct crawler *c = crawler_of(v, message);

    return c ? judge(c, json_object_get(message, "gfids")) : only_error(-EINVAL);
}

/* ---- split-brain ----------------------------------------------------------------------------- */

/* Waits for bricks as answer_heal() does, because each change of the volume's options connects to them anew,
 * and for a crawl that looks at the object at this moment (-EAGAIN). */
static json_t *
answer_resolve(const struct heal_volume *v, const json_t *message)
{
    struct crawler *c = crawler_of(v, message);
    json_int_t how = json_integer_value(json_object_get(message, "how"));
    json_int_t source = json_integer_value(json_object_get(message, "source"));
    struct gfid gfid;

    if (!c || parse_gfid(json_object_get(message, "gfid"), &gfid) || how < 0 || how > CRAWL_SOURCE ||
        source < 0 || source >= crawler_children(c))
        return only_error(-EINVAL);
    const char *entry = json_string_value(json_object_get(message, "entry"));
    int err = crawler_resolve(c, &gfid, entry, (enum crawl_choice)how, (unsigned)source);

    for (unsigned n = 0; n < TRIES_MAX && (err == -ENOTCONN || err == -EAGAIN); n++) {
        usleep(BETWEEN_MS * 1000);
        err = crawler_resolve(c, &gfid, entry, (enum crawl_choice)how, (unsigned)source);
    }
    return only_error(err);
}

/* ---- a question ------------------------------------------------------------------------------ */

struct question_thread {
    json_t *message;
    json_t *(*answer)(const struct heal_volume *v, const json_t *message);
};

static void
answer_now(const struct question_thread *q)
{
    struct heal_volume *v = heal_volume_find(json_string_value(json_object_get(q->message, "name")));
    json_t *answer = v ? q->answer(v, q->message) : only_error(-ENOENT);

    if (v)
        heal_volume_release(v);
    channel_answer(json_integer_value(json_object_get(q->message, "id")), answer);
}

static void *
question_thread_run(void *arg)
{
    struct question_thread *q = arg;

    rcu_register_thread();
    answer_now(q);
    json_decref(q->message);
    free(q);
    rcu_unregister_thread();
    return NULL;
}

static void
answer_progress(const json_t *message)
{
    json_t *look = rebalance_jobs_look(json_string_value(json_object_get(message, "name")));

    channel_answer(json_integer_value(json_object_get(message, "id")),
                   look ? json_pack("{si so}", "error", 0, "look", look) : only_error(-ENOENT));
}

void
answer_question(const json_t *message)
{
    static const struct {
        const char *what;
        json_t *(*answer)(const struct heal_volume *v, const json_t *message);
    } questions[] = {{"heal", answer_heal},
                     {"stop-full", answer_stop_full},
                     {"statistics", answer_statistics},
                     {"judge", answer_judge},
                     {"resolve", answer_resolve}};
    const char *what = json_string_value(json_object_get(message, "do"));

    if (strcmp(what, "progress") == 0) {
        answer_progress(message);
        return;
    }
    struct question_thread *q = calloc(1, sizeof *q);

    for (size_t i = 0; q && i < sizeof questions / sizeof questions[0]; i++) {
        if (strcmp(what, questions[i].what) == 0)
            q->answer = questions[i].answer;
    }
    if (q && q->answer && (q->message = json_deep_copy(message)) && !thread_start(question_thread_run, q))
        return;
    channel_answer(json_integer_value(json_object_get(message, "id")),
                   only_error(q && !q->answer ? -EOPNOTSUPP : -ENOMEM));
    if (q)
        json_decref(q->message);
    free(q);
}
