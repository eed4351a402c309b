/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* metrics: GET /metrics, in OpenMetrics text (doc/metrics.md lists every family). thread: a handler's
 * (daemon/http.h). */
#ifndef KILN_GLUSTERFSD_METRICS_H
#define KILN_GLUSTERFSD_METRICS_H

struct http_answer;
struct http_request;

/* A handler of daemon/http.h, which asks no disk. */
void metrics_answer(const struct http_request *req, struct http_answer *answer);

#endif
