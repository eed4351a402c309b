/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* For unit tests that make bricks. */
#ifndef KILN_BASE_TEST_ROOT_H
#define KILN_BASE_TEST_ROOT_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

/* Ends the program as skipped, with a reason, where bricks cannot be made. */
static inline void
root_or_skip(void)
{
    char probe[] = "/dev/shm/kiln-probe-XXXXXX";
    const char *why = NULL;

    if (geteuid() != 0)
        why = "needs root: trusted xattrs";
    else if (!mkdtemp(probe) || setxattr(probe, "trusted.kiln", "1", 1, 0) < 0)
        why = "no directory with trusted xattrs in /dev/shm";
    rmdir(probe);
    if (why) {
        printf("skipped: %s\n", why);
        exit(77);
    }
}

#endif
