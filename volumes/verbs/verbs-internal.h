/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* verbs-internal: the verbs of verbs.def, and their helpers.
 *
 * A verb returns its answer in *out, as a new reference. It returns 0 or -errno with *why. *out may be set
 * in both cases, and is NULL with 0 if there was no memory for the answer. A verb may block, and may run
 * on any thread. */
#ifndef KILN_VOLUMES_VERBS_INTERNAL_H
#define KILN_VOLUMES_VERBS_INTERNAL_H

#include <jansson.h>
#include <stdint.h>

#include "volumes/problem.h"

/* json_unpack() of `args`; the last argument must be NULL. Unknown members are refused, because a newer
 * kiln may give them a meaning that this kilnd must not ignore. Returns 0, or -EINVAL with *why. */
int verbs_get_args(json_t *args, struct problem *why, const char *format, ...) __attribute__((sentinel));

/* The ports that were passed to verbs_begin(). */
uint16_t verbs_brick_port(void);
uint16_t verbs_volfile_port(void);

struct volume;
struct volume_brick;
/* The host of the brick in answers. */
const char *verbs_shown_host(const struct volume_brick *b);
/* Lists the results of `look` for each brick, together with the names of the bricks. Returns 0 or -ENOMEM
 * with *why. */
int verbs_list_bricks(const struct volume *v, json_t *(*look)(const struct volume *v, unsigned brick),
                      json_t **out, struct problem *why);

/* Builds a volume with only these bricks, a list of texts. Returns NULL with *why on failure. */
struct volume *verbs_named_bricks(const json_t *bricks, struct problem *why);

/* The verbs: verbs-change.c changes volumes and verbs-ask.c shows them; verb-heal.c, verb-rebalance.c,
 * verb-host.c (hosts and jobs), verb-store.c and verb-move.c have a topic each; verbs.c has the verbs about
 * the process. */
#define VERB(name, run, run_of_process, of_hosts, change, hook)                                              \
    int run(json_t *args, json_t **out, struct problem *why);
#include "volumes/verbs/verbs.def"
#undef VERB

/* verbs-process.c: the same for a daemon without --state, about the bricks of the process */
int verb_process_list(json_t *args, json_t **out, struct problem *why);
int verb_process_profile(json_t *args, json_t **out, struct problem *why);
int verb_process_status(json_t *args, json_t **out, struct problem *why);

/* verb-top.c: the figures of this host for kiln top; with a store, each host is asked for its own. */
int verb_top(json_t *args, json_t **out, struct problem *why);
/* verb-host.c: returns 0, or -EOPNOTSUPP with *why if this kilnd has no store. */
int verbs_need_store(struct problem *why);
/* verbs.c: refuses changes from now on, because the volumes move to `location`; NULL: takes them again. */
void verbs_freeze(const char *location);
/* verbs-ask.c: lists the features that the brick's volume asks for and that the brick does not have. NULL: no
 * brick. */
struct graph;
json_t *verbs_list_unbuilt(const struct graph *g);
/* verbs-ask.c: returns the number of objects of which this brick knows that others missed changes, or null:
 * not known. */
json_t *verbs_heal_pending(const struct graph *g);

#endif
