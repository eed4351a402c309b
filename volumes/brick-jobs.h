/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-jobs: the same operation on all bricks of a volume, some at a time, each in its thread of bricks.c;
 * the caller waits for all of them.
 *
 * thread: any that may wait for a disk.
 */
#ifndef KILN_VOLUMES_BRICK_JOBS_H
#define KILN_VOLUMES_BRICK_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

struct volfile;
/* struct volumes_hooks' `prepare`; may be NULL */
typedef int (*brick_prepare)(struct volfile *v, char *error, size_t error_size);

/* Could bricks be made of the volume's volfiles, as far as these alone say? 0 or -errno with *why. */
int brick_jobs_check(const struct volume *v, brick_prepare prepare, struct problem *why);
/* Of all bricks, or (`only`) of those for which it is true, as the next. 0, or the first brick's -errno with
 * *why; then all are detached again, unless it is_forced: then the others stay. */
int brick_jobs_attach(const struct volume *v, const bool *only, brick_prepare prepare, bool is_forced,
                      struct problem *why);
/* Of several volumes at once; what fails is logged. */
void brick_jobs_attach_all(const struct volume *const *volumes, unsigned count, brick_prepare prepare);
/* What fails is logged. */
void brick_jobs_detach(const struct volume *v, const bool *only);
/* Those that are attached get the options of `fresh`. 0, or -errno with *why: then all have those of `old`
 * again. */
int brick_jobs_reconfigure(const struct volume *fresh, const struct volume *old, brick_prepare prepare,
                           struct problem *why);
/* They have the options of `old` again; what fails is logged. */
void brick_jobs_revert(const struct volume *old, brick_prepare prepare);

#endif
