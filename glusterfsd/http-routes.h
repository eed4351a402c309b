/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* http-routes: the paths that kilnd answers over HTTP (http.h): health, figures, dumps and verbs.
 *
 *   GET /healthz   200 as long as the process answers
 *   POST /v1/VERB  the questions of `kiln` about the volumes of this daemon: volumes/verbs/verbs.h. On the
 *                  socket alone
 *   GET /readyz    200 when every brick serves, else 503 with the number of bricks in each state
 *   GET /metrics   figures for Prometheus (glusterfsd/metrics.h)
 *   GET /top       figures for `kiln top` (bricks/top-answer.c). On the socket alone
 *   GET /statedump.json   the statedump of SIGUSR1, as JSON (bricks/statedump-json.h). On the socket
 *                         alone
 */
#ifndef KILN_GLUSTERFSD_HTTP_ROUTES_H
#define KILN_GLUSTERFSD_HTTP_ROUTES_H

#include "daemon/http.h"

extern const struct http_route http_routes[];

/* The bricks of the command line are attached and clients may come: from now on /readyz may answer 200. */
void http_routes_started(void);

#endif
