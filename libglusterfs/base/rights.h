/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rights: a brick is served with the rights of many users, so its daemon needs some of root's. */
#ifndef KILN_BASE_RIGHTS_H
#define KILN_BASE_RIGHTS_H

#include <stdbool.h>
#include <stddef.h>

/* Has this process the capabilities that serving bricks takes? False: `missing` names those that are not
 * effective, with blanks between. Thread: any; they are the calling thread's. */
bool rights_are_enough(char *missing, size_t size);

#endif
