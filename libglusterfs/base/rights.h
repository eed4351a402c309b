/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rights: the capabilities of root that a brick daemon needs because it acts for many users. */
#ifndef KILN_BASE_RIGHTS_H
#define KILN_BASE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* Has this process the capabilities that serving bricks needs? False: `missing` names the capabilities
 * that are not effective, separated by blanks. thread: any; tests the capabilities of the calling thread. */
bool rights_are_enough(char *missing, size_t size);

#endif
