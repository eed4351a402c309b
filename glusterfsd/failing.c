/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A brick whose storage has failed (brick 11.3): its clients are told at once; half a minute later it is detached, and the
 * other bricks go on. The last brick takes the process with it.
 *
 * Detaching waits for calls that may hang in a dead disk for ever, so each has a short-lived thread of its own: neither the
 * main thread nor a worker may be lost to it. Threads: `state` changes FINE -> DOWN (a worker), -> DUE (timer), -> GOING
 * (main), -> GONE (its thread); each step has one writer, and wakes the main thread by SIGALRM. */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "event/timer.h"
#include "glusterfsd/kilnd.h"
#include "graph/graph.h"
#include "log/log.h"
#include "xlators/protocol/server/server.h"

#define DETACH_AFTER_MS 30000
#define HANGS_AFTER_SEC 30

enum brick_state { BRICK_FINE, BRICK_DOWN, BRICK_DUE, BRICK_GOING, BRICK_GONE };

struct brick_fate {
    _Atomic enum brick_state state;
    struct timer timer;
    struct graph *g;
};

static struct brick_fate fates[KILND_BRICKS_MAX];
static unsigned fate_count;

static void
step(struct brick_fate *f, enum brick_state state)
{
    atomic_store(&f->state, state);
    kill(getpid(), SIGALRM);
}

static void
time_is_up(struct timer *t)
{
    step(caa_container_of(t, struct brick_fate, timer), BRICK_DUE);
}

static void
child_event(struct graph *g, bool is_up)
{
    server_child_event(g, is_up);
    for (unsigned i = 0; i < fate_count && !is_up; i++) {
        enum brick_state fine = BRICK_FINE;

        if (fates[i].g == g && atomic_compare_exchange_strong(&fates[i].state, &fine, BRICK_DOWN)) {
            log_event(LOG_CRITICAL, NULL, "brick-failed", "brick %s has failed and will be detached in %d s", g->name,
                      DETACH_AFTER_MS / 1000);
            timer_start(&fates[i].timer, DETACH_AFTER_MS);
        }
    }
}

void
failing_watch(struct graph *const *graphs, unsigned count)
{
    for (fate_count = 0; fate_count < count; fate_count++) {
        fates[fate_count].g = graphs[fate_count];
        timer_init(&fates[fate_count].timer, time_is_up);
    }
    graph_on_child_event(child_event);
}

static void *
detach(void *arg)
{
    struct brick_fate *f = arg;

    pthread_setname_np(pthread_self(), "kiln-detach");
    rcu_register_thread();
    graph_detach(f->g->name);
    rcu_unregister_thread();
    step(f, BRICK_GONE);
    return NULL;
}

static void
start_detach(struct brick_fate *f)
{
    pthread_attr_t attr;
    pthread_t thread;

    atomic_store(&f->state, BRICK_GOING);
    pthread_attr_init(&attr);
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    int err = pthread_create(&thread, &attr, detach, f);
    pthread_attr_destroy(&attr);
    if (!err)
        return;
    log_event(LOG_ERROR, NULL, "brick-detach-thread", "brick %s: %s; trying again", f->g->name, strerror(err));
    atomic_store(&f->state, BRICK_DOWN);
    timer_start(&f->timer, DETACH_AFTER_MS);
}

bool
failing_run(void)
{
    unsigned left = 0;

    for (unsigned i = 0; i < fate_count; i++) {
        if (atomic_load(&fates[i].state) == BRICK_DUE)
            start_detach(&fates[i]);
        left += atomic_load(&fates[i].state) != BRICK_GONE;
    }
    return left > 0;
}

bool
failing_is_gone(unsigned i)
{
    return i < fate_count && atomic_load(&fates[i].state) == BRICK_GONE;
}

bool
failing_end(void)
{
    bool hangs = false;

    graph_on_child_event(NULL);
    for (unsigned i = 0; i < fate_count; i++) {
        const struct timespec tick = {.tv_nsec = 10000000};

        timer_stop(&fates[i].timer);
        for (int n = 0; n < HANGS_AFTER_SEC * 100 && atomic_load(&fates[i].state) == BRICK_GOING; n++)
            nanosleep(&tick, NULL);
        if (atomic_load(&fates[i].state) == BRICK_GOING) {
            log_event(LOG_CRITICAL, NULL, "brick-hangs", "brick %s: calls to its disk do not return", fates[i].g->name);
            hangs = true;
        }
    }
    return hangs;
}
