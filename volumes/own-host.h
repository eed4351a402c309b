/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* own-host: does a name mean this machine? Asks the resolver, so it may block. */
#ifndef KILN_VOLUMES_OWN_HOST_H
#define KILN_VOLUMES_OWN_HOST_H

#include <stdbool.h>

#include "volumes/problem.h"

/* 0; *is_loopback: only programs on this machine can reach it by that name. -EINVAL or -EADDRNOTAVAIL with
 * *why.
 */
int own_host_check(const char *host, bool *is_loopback, struct problem *why);

#endif
