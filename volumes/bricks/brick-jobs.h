/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-jobs: runs the same operation on all bricks of a volume that are on this host (brick-host.h),
 * several at a time, each in a thread of bricks.c. The caller waits for all of them.
 *
 * thread: any thread that may wait for a disk.
 */
#ifndef KILN_VOLUMES_BRICK_JOBS_H
#define KILN_VOLUMES_BRICK_JOBS_H

#include <stdbool.h>
#include <stddef.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

struct volfile;
/* the hook `prepare` of struct volumes_hooks; may be NULL */
typedef int (*brick_prepare)(struct volfile *v, char *error, size_t error_size);

/* Returns 0 if the folder of the brick may be attached, or -errno with a text. */
typedef int (*brick_place_check_fn)(const struct volume *v, unsigned brick, char *error, size_t error_size);

/* Sets a further check before each attach. Called once, before the first attach. */
void brick_jobs_check_places(brick_place_check_fn check);
/* Checks whether the volfiles of the volume describe bricks that can be built. Returns 0 or -errno with
 * *why. */
int brick_jobs_check(const struct volume *v, brick_prepare prepare, struct problem *why);
/* Attaches all bricks, or the bricks for which `only` is true. Returns 0, or the error of the first failed
 * brick with *why. After a failure all these bricks are detached again; with is_forced the other bricks
 * stay attached. */
int brick_jobs_attach(const struct volume *v, const bool *only, brick_prepare prepare, bool is_forced,
                      struct problem *why);
/* Attaches the bricks of several volumes at once. Logs failures. */
void brick_jobs_attach_all(const struct volume *const *volumes, unsigned count, brick_prepare prepare);
/* Detaches all bricks, or the bricks for which `only` is true. Logs failures. */
void brick_jobs_detach(const struct volume *v, const bool *only);
/* Gives the attached bricks the options of `fresh`. Returns 0, or -errno with *why; then all bricks have
 * the options of `old` again. */
int brick_jobs_reconfigure(const struct volume *fresh, const struct volume *old, brick_prepare prepare,
                           struct problem *why);
/* Gives the attached bricks the options of `old` again. Logs failures. */
void brick_jobs_revert(const struct volume *old, brick_prepare prepare);

#endif
