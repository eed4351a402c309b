/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* verbs: executes requests about volumes from the management socket: POST /v1/VERB with a JSON object of
 * arguments. The answer is a JSON object. A refused request gets the status 400, 404, 409, 500 or 501, and
 *
 *     {"error": "there is no volume x", "expected": "...", "try": "kiln volume list"}
 *
 * One table has all verbs; kiln(8) uses the same words.
 */
#ifndef KILN_VOLUMES_VERBS_H
#define KILN_VOLUMES_VERBS_H

#include <jansson.h>
#include <stdint.h>

#include "volumes/problem.h"

struct http_request;
struct http_answer;

/* Enables the verbs about volumes, which a daemon without --state refuses. Mounting needs `volfile_port`. */
void verbs_begin(uint16_t volfile_port);
/* After that: enables the verbs that every kilnd has: they describe the bricks of the process, grouped by
 * volume. Until then all verbs are refused, because kilnd is starting. `status` shows `brick_port`.
 * `write_dump` writes a statedump and returns 0 or -errno; any thread may call it. */
void verbs_begin_process(uint16_t brick_port, int (*write_dump)(char path[4096]));

/* Handles the route "/v1/ *", which may block. */
enum { VERBS_BODY_MAX = 1 << 20 };
void verbs_handle(const struct http_request *req, struct http_answer *answer);
/* Handles the route "/top-hosts" (verb-top.c), which waits. */
void verbs_top_hosts(const struct http_request *req, struct http_answer *answer);

/* Runs a verb without HTTP. Returns 0 with the answer in *out (a new reference), or -errno with *why.
 * `body` may have any bytes.
 */
int verbs_run(const char *verb, const char *body, size_t bytes, json_t **out, struct problem *why);

#endif
