/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-ask: questions to other hosts, through keys of the store.
 *
 *     asker                  /kiln/ask/HOST/ID = {"from", "verb", "args"}       bound to the asker's lease
 *     HOST sees it, answers  /kiln/answer/FROM/ID = {"ok"} or {"error", "errno", ...}     HOST's lease
 *     asker sees the answer  both keys deleted
 *
 * Deaths: the lease of a dead asker ends, and its question and then the answer vanish; a host that has begun
 * to answer finishes. The answer of a dead host never comes: the asker's deadline passes, or the asker sees
 * the host's lease end. A host that returns finds the question and answers, which harms nothing, because the
 * asker ignores an answer to a question that it no longer has, and every verb of a question may run again.
 *
 * With an authority in the store the asker signs the question and the host its answer (host-proof.h); others
 * are ignored, and logged.
 *
 * thread: any that may wait; not a worker.
 */
#ifndef KILN_VOLUMES_CLUSTER_ASK_H
#define KILN_VOLUMES_CLUSTER_ASK_H

#include <jansson.h>

#include "volumes/problem.h"

struct volume;

enum { CLUSTER_LOOK_S = 5, CLUSTER_CHANGE_S = 60 };

/* A question to one host. */
struct cluster_ask {
    const char *host;
    json_t *answer; /* the answer of the verb, owned; NULL: none */
    int err;        /* 0, or -errno with the reason in `why` */
    struct problem why;
};

/* Asks all of them the same, at once, and waits for `seconds` at most. `args` stays the caller's. The host
 * itself may be among them. */
void cluster_ask_all(struct cluster_ask *asks, unsigned count, const char *verb, json_t *args,
                     unsigned seconds);
/* Drops the answers. */
void cluster_asks_end(struct cluster_ask *asks, unsigned count);

/* cluster.c: a key below ask/ or answer/ was put. */
void cluster_ask_seen(const char *host, const char *id, const char *text);
void cluster_answer_seen(const char *id, const char *text);
/* A host's lease has ended: questions to that host fail at once. */
void cluster_ask_host_gone(const char *host);
/* Ends all waits; later questions fail. */
void cluster_asks_stop(void);
/* Waits until no question of another host is being answered. */
void cluster_asks_drain(void);

#endif
