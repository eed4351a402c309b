/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* statedump-json: GET /statedump.json: the statedump as JSON (doc/statedump-schema.json), with the twenty
 * pools that hold most before all else. ?brick=PATH: of that brick alone; ?max_bytes=N: at most so much of
 * each brick's sections (4 MiB).
 *
 * thread: a handler's that may block (daemon/http.h), because layers lock the objects that they dump. */
#ifndef KILN_BRICKS_STATEDUMP_JSON_H
#define KILN_BRICKS_STATEDUMP_JSON_H

struct http_answer;
struct http_request;

/* A handler of daemon/http.h. 404: no such brick; 400: max_bytes is no number. */
void statedump_json(const struct http_request *req, struct http_answer *answer);

#endif
