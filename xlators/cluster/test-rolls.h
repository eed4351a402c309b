/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Bricks in memory that tell their clients (xlators/cluster/old-clients.h), for unit tests of rebalances and
 * heals. */
#ifndef KILN_CLUSTER_TEST_ROLLS_H
#define KILN_CLUSTER_TEST_ROLLS_H

#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children.h"

#define LOGIN(process, graph)                                                                                \
    "CTX_ID:" process "-GRAPH_ID:" graph "-PID:" process process "-HOST:host-" process "\n"

struct rolls {
    const char *what;
    const char *told[CHILDREN_MAX]; /* NULL: the brick does not tell its clients */
    const char *waits_for;          /* NULL: the walk does not wait */
    bool is_changing;               /* the walk waits for some seconds only */
};

static const struct rolls *rolls;
static unsigned rolls_told;

/* A scene.lie. */
static inline void
tell_clients(unsigned child, struct call_stack *stk, int *ret)
{
    const char *text = rolls->told[child], *key = dict_key_text(DICT_KEY_CLIENTS);

    if (stk->call.fop != FOP_getxattr || !stk->call.name || strcmp(stk->call.name, key) != 0)
        return;
    rolls_told++;
    *ret = text ? 0 : -ENODATA;
    if (text)
        must(dict_set_text(reply_dict(stk), key, DICT_PTR, text, (uint32_t)strlen(text)) == 0);
}

#endif
