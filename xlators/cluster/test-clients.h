/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Clients of bricks in memory, for unit tests of the throttle of heals and rebalances (heal-throttle.h): each
 * brick answers how long ago it has served a client. */
#ifndef KILN_CLUSTER_TEST_CLIENTS_H
#define KILN_CLUSTER_TEST_CLIENTS_H

#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/heal-throttle.h"
#include "xlators/cluster/test-children.h"

#define MS UINT64_C(1000000)

static uint64_t client_called_ns; /* of the bricks; UINT64_MAX: they do not tell */
static bool client_goes_on;       /* calls all the time */
static unsigned questions;

/* A part of scene.lie. */
static inline void
answer_client_call_age(struct call_stack *stk, int *ret)
{
    uint64_t age = client_goes_on ? 0 : (scene.now_ns - client_called_ns) / MS;

    if (stk->call.fop != FOP_getxattr || !stk->call.name ||
        strcmp(stk->call.name, "kiln.client-call-age") != 0)
        return;
    questions++;
    *ret = client_called_ns == UINT64_MAX ? -ENODATA : 0;
    if (*ret == 0)
        must(!dict_set_int(reply_dict(stk), DICT_KEY_CLIENT_CALL_AGE, (int64_t)age));
}

/* The clients have called for the last time long ago. */
static inline void
clients_rest(void)
{
    client_goes_on = false;
    client_called_ns = 0;
    scene.now_ns += 3600 * 1000 * MS;
}

#endif
