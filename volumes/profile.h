/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* profile: what a brick has done since it was attached, and how long it took.
 *
 * thread: any that may pin a brick; takes no lock of the data path.
 */
#ifndef KILN_VOLUMES_PROFILE_H
#define KILN_VOLUMES_PROFILE_H

#include <jansson.h>

#include "volumes/volume.h"

/* {"online": true, "bytes_read": N, "bytes_written": N, "open_files": N, "fops": [{"fop": "WRITE",
 * "calls": N, "mean_us": F, "p50_us": F, "p99_us": F}, ...], "slow": [{"fop", "total_us": F, "stages_us":
 * {"worker": F, ...}, "age_s": F, "bytes", "errno", "pid", "client", "object"}, ...]}: fops that were called;
 * times are null where none were kept. {"online": false} of a brick that is not served. A new reference;
 * NULL: no memory. */
json_t *profile_of_brick(const struct volume *v, unsigned brick);
/* Processor time that its calls have taken (io-stats.h). `g`: pinned. */
struct graph;
double profile_cpu_seconds(struct graph *g);

#endif
