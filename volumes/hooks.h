/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* hooks: an administrator's scripts before and after what changes a volume, as glusterd's users have them.
 *
 *     DIR/hooks/VERB/pre/S*      VERB: create, start, stop, delete, set, reset, add-brick, remove-brick,
 *     DIR/hooks/VERB/post/S*     replace-brick, reset-brick
 *
 * Executable files whose names begin with S run one after the other in the order of their names, with
 * --volname=NAME, of `set` also with -o KEY=VALUE for each option. Their output goes to the log. A script
 * that fails or takes longer than HOOKS_DEADLINE_MS (it is killed then) is named in the log, and the verb
 * goes on: a kilnd that dies meanwhile leaves a script that runs to its end, and the volume as the verb had
 * left it.
 *
 * A folder or script that another user than kilnd's may write is not run. */
#ifndef KILN_VOLUMES_HOOKS_H
#define KILN_VOLUMES_HOOKS_H

#include <jansson.h>

enum { HOOKS_DEADLINE_MS = 30000 };

/* Runs the scripts of "pre" or "post" and waits for them. `args`: the verb's arguments. Not on a worker. */
void hooks_run(const char *verb, const char *when, const json_t *args);
/* Once, before: the state folder, whose text stays. */
void hooks_begin(const char *state_dir);

#endif
