/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* errand: work that a cluster layer does in the background after an event, such as the return of a child.
 * The work runs in a coroutine and blocks no worker (work that blocks is a chore, event/chore.h). One run of
 * an errand takes place at a time. A request during a run leads to another run, so that no event is missed.
 *
 * thread: errand_ask() from any thread, in a read section. The struct lies in the layer's private data. A run
 * pins the graph, so the struct outlives the run. */
#ifndef KILN_CLUSTER_ERRAND_H
#define KILN_CLUSTER_ERRAND_H

#include <stdatomic.h>

#include "event/worker.h"
#include "stack/xlator.h"

struct errand {
    struct worker_job job;
    struct xlator *xl;
    void (*go)(struct errand *c); /* in a coroutine */
    atomic_uint asked;            /* 0: no run; 1: a run; bit 1: asked for since the run began */
};

/* Prepares the errand of a layer. Called once, before the layer has children. */
void errand_init(struct errand *c, struct xlator *xl, void (*go)(struct errand *c));
/* Has the errand run soon. Without memory for a coroutine, or while the graph ends, the request is dropped:
 * the next event asks again. */
void errand_ask(struct errand *c);

#endif
