/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* GET /top-hosts?ms=N&slow=M: /top (bricks/top-answer.c) of all hosts that share a store. The figures of
 * the process and the machine are this host's. Each brick also has its "host", and there is a row for each
 * host:
 *
 *     "hosts": [{"host", "error" (null, or the reason why the host's figures are missing), "bricks", "ops",
 *     "read", "written", "cpu_percent", "resident_bytes", "machine_percent"}, ...]
 *
 * A host that does not answer in CLUSTER_LOOK_S seconds beyond N milliseconds is a row with that error.
 * Answers of other hosts travel through the store, so they lack clients and slow calls, which are many.
 * Without a store the answer is that of /top. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "bricks/top-answer.h"
#include "daemon/http.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/verbs/verbs.h"

enum { MS_MAX = 60000 };

/* Answers the question of a host. */
int
verb_top(json_t *args, json_t **out, struct problem *why)
{
    json_int_t ms = 0, slow = 0;
    json_t *brick;
    size_t i;

    if (verbs_get_args(args, why, "{s:I, s:I}", "ms", &ms, "slow", &slow, NULL))
        return why->err;
    if (ms < 0 || ms > MS_MAX || slow < 0 || slow > INT32_MAX)
        return problem_set(why, -EINVAL, "ms is 0 to %d, slow a number", MS_MAX);
    char *text = top_text((unsigned)ms, (size_t)slow);
    *out = text ? json_loads(text, 0, NULL) : NULL;
    free(text);
    if (!*out)
        return problem_no_memory(why);
    json_array_foreach(json_object_get(*out, "bricks"), i, brick)
    {
        json_object_set_new(brick, "host", json_string(brick_host_own()));
        if (slow)
            continue;
        json_object_set_new(brick, "client_list", json_array());
        json_object_set_new(brick, "slow", json_array());
    }
    return 0;
}

static void
add_to(json_t *row, const char *key, const json_t *brick)
{
    double had = json_number_value(json_object_get(row, key));

    json_object_set_new(row, key, json_real(had + json_number_value(json_object_get(brick, key))));
}

/* The row of one host; `answer` NULL: there are no figures. */
static json_t *
host_row(const char *host, const json_t *answer, const char *error)
{
    json_t *row = json_pack("{ss ss?}", "host", host, "error", error), *brick;
    const json_t *bricks = json_object_get(answer, "bricks");
    size_t i;

    if (!answer)
        return row;
    json_object_set_new(row, "bricks", json_integer((json_int_t)json_array_size(bricks)));
    json_object_set(row, "cpu_percent", json_object_get(answer, "cpu_percent"));
    json_object_set(row, "resident_bytes", json_object_get(answer, "resident_bytes"));
    json_object_set(row, "machine_percent",
                    json_object_get(json_object_get(answer, "machine"), "cpu_percent"));
    json_array_foreach(bricks, i, brick)
    {
        add_to(row, "ops", brick);
        add_to(row, "read", brick);
        add_to(row, "written", brick);
    }
    return row;
}

/* The other hosts that have registered; `hosts` keeps the names. Returns their number. */
static unsigned
other_hosts(const json_t *hosts, struct cluster_ask *asks)
{
    unsigned count = 0;
    json_t *host;
    size_t i;

    json_array_foreach(hosts, i, host)
    {
        const char *name = json_string_value(json_object_get(host, "name"));

        if (name && json_is_true(json_object_get(host, "registered")) && strcmp(name, brick_host_own()) != 0)
            asks[count++].host = name;
    }
    return count;
}

/* Puts the answers of all hosts together. Returns NULL without memory. */
static json_t *
join_answers(json_t *own, const struct cluster_ask *asks, unsigned count)
{
    json_t *rows = json_array(), *bricks = json_object_get(own, "bricks");

    json_array_append_new(rows, host_row(brick_host_own(), own, NULL));
    for (unsigned i = 0; i < count; i++) {
        const char *error = asks[i].err ? asks[i].why.wrong : NULL;

        json_array_append_new(rows, host_row(asks[i].host, asks[i].answer, error));
        json_array_extend(bricks, json_object_get(asks[i].answer, "bricks"));
    }
    return json_object_set_new(own, "hosts", rows) ? NULL : own;
}

/* This host's figures need its clients and slow calls, and the same time as the others'. */
struct own_top {
    json_int_t ms, slow;
    json_t *answer;
};

static void *
own_top_run(void *arg)
{
    struct own_top *o = arg;
    json_t *args = json_pack("{sI sI}", "ms", o->ms, "slow", o->slow);
    struct problem why;

    rcu_register_thread();
    (void)verb_top(args, &o->answer, &why);
    rcu_unregister_thread();
    json_decref(args);
    return NULL;
}

static json_t *
top_of_hosts(json_int_t ms, json_int_t slow)
{
    json_t *all = cluster_describe(), *hosts = json_object_get(all, "hosts");
    struct cluster_ask *asks = calloc(json_array_size(hosts) + 1, sizeof *asks);
    unsigned count = asks ? other_hosts(hosts, asks) : 0;
    json_t *args = json_pack("{sI si}", "ms", ms, "slow", 0), *joined = NULL;
    struct own_top own = {ms, slow, NULL};
    pthread_t thread;
    bool is_running = asks && args && pthread_create(&thread, NULL, own_top_run, &own) == 0;

    if (is_running) {
        cluster_ask_all(asks, count, "top", args, CLUSTER_LOOK_S + (unsigned)(ms + 999) / 1000);
        pthread_join(thread, NULL);
        joined = own.answer ? join_answers(own.answer, asks, count) : NULL;
        cluster_asks_end(asks, count);
    }
    if (!joined)
        json_decref(own.answer);
    json_decref(args);
    free(asks);
    json_decref(all);
    return joined;
}

void
verbs_top_hosts(const struct http_request *req, struct http_answer *answer)
{
    const char *ms = http_query(req, "ms"), *slow = http_query(req, "slow");

    if (!cluster_is_on() || !cluster_has_read()) {
        top_answer(req, answer);
        return;
    }
    long period = ms ? strtol(ms, NULL, 10) : 0, calls = slow ? strtol(slow, NULL, 10) : 0;
    if (period < 0 || period > MS_MAX || calls < 0 || calls > INT32_MAX) {
        http_fail(answer, 400, "ms is 0 to %d, slow a number", MS_MAX);
        return;
    }
    json_t *json = top_of_hosts(period, calls);
    char *text = json ? json_dumps(json, JSON_COMPACT | JSON_REAL_PRECISION(9)) : NULL;
    json_decref(json);
    if (!text) {
        http_fail(answer, 503, "no memory for the figures, or kilnd ends");
        return;
    }
    answer->content_type = "application/json";
    http_put_text(answer, text);
    free(text);
}
