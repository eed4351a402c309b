/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fs-internal: what the files of fs/ share. */
#ifndef KILN_FS_INTERNAL_H
#define KILN_FS_INTERNAL_H

#include "mem/mem-pool.h"

/* Parts of fs_pools_init(). 0 or -ENOMEM. */
int fd_pool_init(void);
int client_pool_init(void);

#endif
