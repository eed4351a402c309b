/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/errand.h"

#include "graph/graph.h"
#include "stack/coro-call.h"

enum { ERRAND_RUNS = 1, ERRAND_ASKED = 2 };

static void
errand_go(void *arg)
{
    struct errand *c = arg;
    struct graph *graph = c->xl->graph;

    do {
        atomic_store(&c->asked, ERRAND_RUNS);
        c->go(c);
    } while (atomic_fetch_sub(&c->asked, ERRAND_RUNS) > ERRAND_RUNS);
    graph_unpin(graph); /* another run of the errand may have begun */
}

static void
errand_run(struct worker_job *job)
{
    struct errand *c = caa_container_of(job, struct errand, job);
    struct graph *graph = c->xl->graph;

    if (!coro_run(errand_go, c))
        return;
    atomic_store(&c->asked, 0);
    graph_unpin(graph);
}

void
errand_init(struct errand *c, struct xlator *xl, void (*go)(struct errand *c))
{
    c->job.run = errand_run;
    c->xl = xl;
    c->go = go;
    atomic_init(&c->asked, 0);
}

void
errand_ask(struct errand *c)
{
    if (atomic_fetch_or(&c->asked, ERRAND_ASKED))
        return;
    if (graph_pin(c->xl->graph))
        worker_post(&c->job);
    else
        atomic_store(&c->asked, 0);
}
