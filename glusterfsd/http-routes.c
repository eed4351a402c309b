/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "glusterfsd/http-routes.h"

#include <stdatomic.h>

#include "bricks/bricks.h"
#include "bricks/statedump-json.h"
#include "bricks/top-answer.h"
#include "glusterfsd/metrics.h"
#include "volumes/verbs/verbs.h"
#include "volumes/volumes.h"

static atomic_bool has_started;

void
http_routes_started(void)
{
    atomic_store(&has_started, true);
}

static void
healthz(const struct http_request *req, struct http_answer *answer)
{
    (void)req;
    http_printf(answer, "ok\n");
}

static void
readyz(const struct http_request *req, struct http_answer *answer)
{
    bool is_ready = atomic_load(&has_started);
    struct bricks_states s;

    (void)req;
    bricks_states(&s);
    /* A failed brick is detached after a while, and then only its volume knows of the brick. */
    unsigned missing = volumes_bricks_missing();
    is_ready &= !s.attaching && !s.failed && !s.detaching && !missing;
    answer->status = is_ready ? 200 : 503;
    http_printf(answer, "%s: bricks serving %u, attaching %u, failed %u, detaching %u, missing %u\n",
                is_ready ? "ready" : "not ready", s.serving, s.attaching, s.failed, s.detaching, missing);
}

/* Separate limits, so that /top and statedumps leave the verbs their threads. */
static struct http_threads for_verbs = {.max = 8}, for_dumps = {.max = 8}, for_top = {.max = 8};

const struct http_route http_routes[] = {
    {.method = "GET", .path = "/healthz", .handle = healthz, .is_public = true},
    {.method = "GET", .path = "/readyz", .handle = readyz, .is_public = true},
    {.method = "GET", .path = "/metrics", .handle = metrics_answer, .is_public = true},
    {.method = "GET", .path = "/top", .handle = top_answer, .threads = &for_top},
    {.method = "GET", .path = "/top-hosts", .handle = verbs_top_hosts, .threads = &for_top},
    {.method = "GET", .path = "/statedump.json", .handle = statedump_json, .threads = &for_dumps},
    {.method = "POST", .path = "/v1/*", .handle = verbs_handle,
     .body_max = VERBS_BODY_MAX, .threads = &for_verbs},
    {0},
};
