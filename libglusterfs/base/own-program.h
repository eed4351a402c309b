/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* own-program: paths of the running program and of the programs that are installed or built beside it.
 *
 * The kernel marks the path of a program whose file was replaced or removed with " (deleted)". The functions
 * drop this mark, so the path leads to the newer file that a package may have put there. thread: any. */
#ifndef KILN_BASE_OWN_PROGRAM_H
#define KILN_BASE_OWN_PROGRAM_H

#include <limits.h>

/* The path of the running program. 0 or -errno. */
int own_program(char path[PATH_MAX]);
/* The path of the program `name` in the folder of the running program, whether it exists or not. 0; -errno;
 * -ENAMETOOLONG. */
int own_program_beside(char path[PATH_MAX], const char *name);

#endif
