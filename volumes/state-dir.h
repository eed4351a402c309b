/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* state-dir: where a daemon keeps its volumes.
 *
 *     DIR/kiln-state            {"format": 1}: what this folder is
 *     DIR/lock                  flock()ed by the daemon whose state this is; its process id
 *     DIR/volumes/NAME.json     a volume (volume.h)
 *     DIR/hooks/                an administrator's scripts (hooks.h); never written
 *     DIR/heal/                 volfiles of self-heal daemons, written anew at each start
 *
 * A file is written under another name (.new-NAME), flushed, renamed, and the folder flushed: whoever is
 * killed at any moment leaves the old text or the new one. What is left of a file that was being written goes
 * at the next start. What is not understood is refused, and nothing is changed: a newer format, a text that
 * is cut off, a folder of somebody else.
 *
 * thread: any; a volume's file is written by one thread at a time.
 */
#ifndef KILN_VOLUMES_STATE_DIR_H
#define KILN_VOLUMES_STATE_DIR_H

#include <stddef.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

struct state_dir;

/* Makes what is missing (not the parents of `path`) and takes the lock. NULL with *why. */
struct state_dir *state_dir_open(const char *path, struct problem *why);
/* The lock goes. NULL allowed. */
void state_dir_close(struct state_dir *s);
const char *state_dir_path(const struct state_dir *s);

/* Every volume, handed over to `each`, which returns 0 or an error that it has put into *why. All files are
 * read and checked; the first one that is wrong ends it. 0 or -errno with *why. */
int state_dir_load(struct state_dir *s, int (*each)(struct volume *v, void *arg, struct problem *why),
                   void *arg, struct problem *why);
/* 0 or -errno with *why. Then the old one is there as it was, unless *is_there (NULL allowed): the new one
 * has taken its place, and it is not known which of the two is on disk. */
int state_dir_save(struct state_dir *s, const struct volume *v, bool *is_there, struct problem *why);
int state_dir_remove(struct state_dir *s, const char *name, struct problem *why);
/* DIR/heal/NAME.vol, mode 0600. */
int state_dir_save_heal(struct state_dir *s, const char *name, const char *text, size_t size,
                        struct problem *why);

/* The text of a state file, checked. NULL with *why. For state_dir_load() and fuzzing. */
struct volume *state_dir_parse(const char *text, size_t size, struct problem *why);

#endif
