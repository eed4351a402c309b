/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* verbs-internal: the verbs that the table in verbs.c names, and what they share.
 *
 * A verb leaves its answer in *out, as a new reference. It returns 0 or -errno with *why; *out may be set
 * in both cases, and stays NULL with 0 when there was no memory for the answer. It may block; any thread. */
#ifndef KILN_VOLUMES_VERBS_INTERNAL_H
#define KILN_VOLUMES_VERBS_INTERNAL_H

#include <jansson.h>
#include <stdint.h>

#include "volumes/problem.h"

/* json_unpack() of `args`; the last argument is NULL. Every member must be known: what a newer kiln means
 * by one is not guessed. 0, or -EINVAL with *why. */
int verbs_get_args(json_t *args, struct problem *why, const char *format, ...) __attribute__((sentinel));

/* The ports that verbs_begin() was told. */
uint16_t verbs_brick_port(void);
uint16_t verbs_volfile_port(void);

/* verbs-change.c */
int verb_add_bricks(json_t *args, json_t **out, struct problem *why);
int verb_create(json_t *args, json_t **out, struct problem *why);
int verb_limit(json_t *args, json_t **out, struct problem *why);
int verb_quota(json_t *args, json_t **out, struct problem *why);
int verb_delete(json_t *args, json_t **out, struct problem *why);
int verb_remove_bricks(json_t *args, json_t **out, struct problem *why);
int verb_replace_brick(json_t *args, json_t **out, struct problem *why);
int verb_reset(json_t *args, json_t **out, struct problem *why);
int verb_reset_brick(json_t *args, json_t **out, struct problem *why);
int verb_set(json_t *args, json_t **out, struct problem *why);
int verb_start(json_t *args, json_t **out, struct problem *why);
int verb_stop(json_t *args, json_t **out, struct problem *why);

/* verbs-ask.c */
int verb_check(json_t *args, json_t **out, struct problem *why);
int verb_clear_locks(json_t *args, json_t **out, struct problem *why);
int verb_get(json_t *args, json_t **out, struct problem *why);
int verb_heal(json_t *args, json_t **out, struct problem *why);
int verb_info(json_t *args, json_t **out, struct problem *why);
int verb_list(json_t *args, json_t **out, struct problem *why);
int verb_mount(json_t *args, json_t **out, struct problem *why);
int verb_profile(json_t *args, json_t **out, struct problem *why);
int verb_status(json_t *args, json_t **out, struct problem *why);

#endif
