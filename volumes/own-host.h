/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* own-host: tells whether a host name means this machine. It asks the resolver, so it may block. */
#ifndef KILN_VOLUMES_OWN_HOST_H
#define KILN_VOLUMES_OWN_HOST_H

#include <stdbool.h>

#include "volumes/problem.h"

/* Returns 0 with *is_loopback (true: only programs on this machine can use this name), or -EINVAL or
 * -EADDRNOTAVAIL with *why.
 */
int own_host_check(const char *host, bool *is_loopback, struct problem *why);

#endif
