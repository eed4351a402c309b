/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/pools.h"

#include <stddef.h>

#include "fs/inode.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"

int
graph_pools_init(void)
{
    static int (*const inits[])(void) = {mem_pools_init,  arena_pools_init, iobuf_pools_init,
                                         dict_pools_init, stack_pools_init, fs_pools_init};
    int err = 0;

    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    return err;
}
