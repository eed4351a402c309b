/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* hooks: runs an administrator's scripts before and after a change of a volume, as glusterd does.
 *
 *     DIR/hooks/VERB/pre/S*      VERB: create, start, stop, delete, set, reset, add-brick, remove-brick,
 *     DIR/hooks/VERB/post/S*     replace-brick, reset-brick
 *
 * Executable files whose names begin with S run one after the other in the order of their names. The
 * argument is --volname=NAME; `set` adds -o KEY=VALUE for each option. The output of scripts goes to the
 * log. A script that fails, or that runs longer than the deadline and is killed, is reported in the
 * log; the verb continues. If kilnd dies meanwhile, the script runs to its end, and the volume stays as
 * the verb had left it.
 *
 * Folders and scripts that another user than kilnd's may write are not run. */
#ifndef KILN_VOLUMES_HOOKS_H
#define KILN_VOLUMES_HOOKS_H

#include <jansson.h>

enum { HOOKS_DEADLINE_S = 30 }; /* the default */

/* Runs the scripts of "pre" or "post" and waits for them. `args`: the arguments of the verb. Not on a
 * worker. */
void hooks_run(const char *verb, const char *when, const json_t *args);
/* Sets the state folder and the deadline of each script in seconds, once, before the first verb. The text
 * must stay valid. */
void hooks_begin(const char *state_dir, unsigned deadline_s);

#endif
