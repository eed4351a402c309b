/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* metrics: GET /metrics, in OpenMetrics text (doc/metrics.md lists every family), and GET /top, the figures
 * of `kiln top` (top-answer.c). thread: a handler's (glusterfsd/http.h). */
#ifndef KILN_GLUSTERFSD_METRICS_H
#define KILN_GLUSTERFSD_METRICS_H

#include <stddef.h>

struct http_answer;
struct http_request;

/* Handlers of glusterfsd/http.h. Neither asks a disk. */
void metrics_answer(const struct http_request *req, struct http_answer *answer);
void top_answer(const struct http_request *req, struct http_answer *answer);
/* The same as a text, which the caller frees. NULL: no memory, or kilnd ends meanwhile. */
char *top_text(unsigned ms, size_t slow);

#endif
