/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* profile: reports the calls of a brick since it was attached, and their latencies.
 *
 * thread: any thread that may pin a brick; takes no lock of the data path.
 */
#ifndef KILN_VOLUMES_PROFILE_H
#define KILN_VOLUMES_PROFILE_H

#include <jansson.h>

#include "volumes/volume.h"

/* Returns {"online": true, "bytes_read": N, "bytes_written": N, "open_files": N, "fops": [{"fop": "WRITE",
 * "calls": N, "mean_us": F, "p50_us": F, "p99_us": F}, ...], "slow": [{"fop", "total_us": F, "stages_us":
 * {"worker": F, ...}, "age_s": F, "bytes", "errno", "pid", "client", "object"}, ...]} as a new reference.
 * "fops" has the fops that were called; their times are null if latencies are not recorded. The result is
 * {"online": false} for a brick that is offline, and NULL without memory. */
json_t *profile_of_brick(const struct volume *v, unsigned brick);
/* The same of a pinned graph; NULL: an offline brick. */
struct graph;
json_t *profile_of_graph(struct graph *g);
/* Returns the processor time of the brick's calls (io-stats.h). `g` must be pinned. */
double profile_cpu_seconds(struct graph *g);

#endif
