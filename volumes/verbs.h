/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* verbs: what may be asked of this daemon's volumes over the management socket: POST /v1/VERB with a JSON
 * object of arguments. The answer is a JSON object; of what was refused
 *
 *     {"error": "there is no volume x", "expected": "...", "type": "kiln volume list"}
 *
 * with the status 400, 404, 409, 500 or 501. One table of verbs; kiln(8) has the same words.
 */
#ifndef KILN_VOLUMES_VERBS_H
#define KILN_VOLUMES_VERBS_H

#include <jansson.h>
#include <stdint.h>

#include "volumes/problem.h"

struct http_request;
struct http_answer;

/* From now on questions are answered; before, and in a daemon that keeps no volumes, they are refused. Any
 * thread. `brick_port` is what `status` shows, `volfile_port` what mounting needs, `dump_dir` (which stays)
 * where statedumps go. */
void verbs_begin(uint16_t brick_port, uint16_t volfile_port, const char *dump_dir);

/* For a route "/v1/ *" that may block. */
enum { VERBS_BODY_MAX = 1 << 20 };
void verbs_handle(const struct http_request *req, struct http_answer *answer);

/* The same without HTTP: 0 with the answer in *out (a new reference), or -errno with *why. `body` is any
 * bytes.
 */
int verbs_run(const char *verb, const char *body, size_t bytes, json_t **out, struct problem *why);

#endif
