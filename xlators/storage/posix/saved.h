/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* saved: the state that storage hands to a newer program in the same process (graph/saved-brick.h). */
#ifndef KILN_POSIX_SAVED_H
#define KILN_POSIX_SAVED_H

#include <stdbool.h>

struct brick_restorer;
struct brick_saver;
struct xlator;

/* True: bricks that start from now on keep the removed files of .glusterfs/unlink, because an earlier program
 * had these open. Main thread; bricks that start meanwhile see either value. */
void posix_keep_unlinked(bool keeps);
bool posix_keeps_unlinked(void);

/* The type's hooks. 0 or -errno. */
int posix_save(struct xlator *xl, struct brick_saver *saver);
/* Reads the output of posix_save(). */
int posix_restore(struct xlator *xl, struct brick_restorer *restorer);

#endif
