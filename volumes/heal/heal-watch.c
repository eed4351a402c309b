/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal/heal-watch.h"

#include <errno.h>
#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <string.h>
#include <urcu.h>

#include "base/thread.h"
#include "bricks/bricks.h"
#include "bricks/figures.h"
#include "graph/graph.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/cluster/cluster.h"
#include "volumes/volumes.h"

enum { LOOKS_FIRST = 2, LOOKS_MOST = 40 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static bool is_looking; /* guarded by `lock` */
/* {volume: {"count", "own": whether this host heals the volume}} of the former look, and {volume: {"count",
 * "left", "wait"}} of volumes whose count has caused a crawl: the looks that are left before the same count
 * causes another crawl, of so many. Of the looking thread. */
static json_t *seen, *crawled;

static void
count_pending(const struct volume *v, void *arg)
{
    json_int_t sum = 0;

    if (v->status != VOLUME_STARTED || v->replica < 2)
        return;
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct graph *g = brick_host_is_here(&v->bricks[i]) ? bricks_find(v->bricks[i].path) : NULL;
        int64_t pending = g ? figures_heal_pending(g) : 0;

        if (g)
            graph_unpin(g);
        sum += pending > 0 ? pending : 0;
    }
    if (sum > 0)
        json_object_set_new(arg, v->name, json_pack("{sI sb}", "count", sum, "own", cluster_heals(v)));
}

/* Tells whether the count is new, or as old as it has to be for another crawl. Any count of a volume that
 * another host heals is as old as the first above zero: a question to that host is written to the store. */
static bool
is_crawl_due(const char *name, json_int_t count, bool is_own)
{
    json_t *last = json_object_get(crawled, name);
    json_int_t left = json_integer_value(json_object_get(last, "left")) - 1;
    json_int_t wait = 2 * json_integer_value(json_object_get(last, "wait"));
    bool is_same = last && (!is_own || json_integer_value(json_object_get(last, "count")) == count);

    if (is_same && left > 0) {
        json_object_set_new(last, "left", json_integer(left));
        return false;
    }
    wait = !is_same ? LOOKS_FIRST : wait < LOOKS_MOST ? wait : LOOKS_MOST;
    json_object_set_new(crawled, name, json_pack("{sI sI sI}", "count", count, "left", wait, "wait", wait));
    return true;
}

static void
ask_for_crawl(const char *name, json_int_t count)
{
    char host[CLUSTER_HOST_BYTES];
    struct problem why;
    json_t *args = json_pack("{ss ss}", "name", name, "what", "index"), *answer = NULL;
    int err = args ? cluster_ask_healer(args, host, &answer, &why) : -ENOMEM;

    json_decref(answer);
    json_decref(args);
    if (!err) /* else a brick is away, and its return starts the crawl, or the next look asks again */
        log_event(LOG_INFO, NULL, "heal-watch",
                  "volume %s: %lld objects wait for heal, a crawl begins at host %s", name, (long long)count,
                  host);
}

static void
look_once(void)
{
    json_t *now = json_object(), *value;
    const char *name;
    void *next;

    if (!seen)
        seen = json_object();
    if (!crawled)
        crawled = json_object();
    volumes_each(count_pending, now);
    json_object_foreach(now, name, value)
    {
        json_int_t count = json_integer_value(json_object_get(value, "count"));

        if (json_object_get(seen, name) &&
            is_crawl_due(name, count, json_is_true(json_object_get(value, "own"))))
            ask_for_crawl(name, count);
    }
    json_object_foreach_safe(crawled, next, name, value)
    {
        if (!json_object_get(now, name) && !json_object_get(seen, name))
            json_object_del(crawled, name);
    }
    json_decref(seen);
    seen = now;
}

static void *
look_run(void *arg)
{
    rcu_register_thread();
    look_once();
    rcu_unregister_thread();
    pthread_mutex_lock(&lock);
    is_looking = false;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return arg;
}

void
heal_watch_look(void)
{
    pthread_mutex_lock(&lock);
    bool may = !is_looking;
    is_looking = true;
    pthread_mutex_unlock(&lock);
    if (!may || thread_start(look_run, NULL) == 0)
        return;
    pthread_mutex_lock(&lock);
    is_looking = false; /* the next look tries again */
    pthread_mutex_unlock(&lock);
}

void
heal_watch_end(void)
{
    pthread_mutex_lock(&lock);
    while (is_looking)
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
    json_decref(seen);
    json_decref(crawled);
    seen = crawled = NULL;
}
