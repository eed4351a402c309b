/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* state-dir: the folder in which a daemon keeps its volumes.
 *
 *     DIR/kiln-state            {"format": 1}: marks the folder
 *     DIR/lock                  flock()ed by the daemon that uses the folder; has its process id
 *     DIR/volumes/NAME.json     a volume (volume.h)
 *     DIR/hooks/                an administrator's scripts (hooks.h); never written
 *
 * A file is written under another name (.new-NAME), flushed and renamed, and then the folder is flushed.
 * So a process that is killed at any moment leaves the old or the new text. The next start removes
 * unfinished files. The daemon refuses, and leaves unchanged, a folder of a newer format, a truncated
 * text, and a folder that another program uses.
 *
 * thread: any; one thread at a time writes the file of a volume.
 */
#ifndef KILN_VOLUMES_STATE_DIR_H
#define KILN_VOLUMES_STATE_DIR_H

#include <stddef.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

struct state_dir;

/* Creates missing files and folders (but not the parents of `path`) and takes the lock. Returns NULL with
 * *why on failure. */
struct state_dir *state_dir_open(const char *path, struct problem *why);
/* Releases the lock. NULL is allowed. */
void state_dir_close(struct state_dir *s);
const char *state_dir_path(const struct state_dir *s);

/* Passes every volume to `each`, which takes ownership and returns 0, or an error that it has put into
 * *why. Reads and checks all files, and stops at the first wrong one. Returns 0 or -errno with *why. */
int state_dir_load(struct state_dir *s, int (*each)(struct volume *v, void *arg, struct problem *why),
                   void *arg, struct problem *why);
/* Writes the volume. Returns 0, or -errno with *why; then the old file is unchanged, unless *is_there
 * (NULL allowed) is true: then the new file has taken its place, but may not be on disk yet. */
int state_dir_save(struct state_dir *s, const struct volume *v, bool *is_there, struct problem *why);
int state_dir_remove(struct state_dir *s, const char *name, struct problem *why);

/* Parses and checks the text of a state file. Returns NULL with *why on failure. For state_dir_load() and
 * fuzzing. */
struct volume *state_dir_parse(const char *text, size_t size, struct problem *why);

#endif
