/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volumes: the volumes that this daemon keeps itself, without a glusterd: the list of them, what becomes of
 * each, and their bricks (glusterfsd/bricks.h).
 *
 *     create ──▶ CREATING ──▶ CREATED ──▶ STARTED ◀──▶ STOPPED ──▶ delete
 *                   │ could not be made, or the daemon died: undone
 *
 * An operation has its volume alone; one that meets another of the same volume is refused (-EBUSY).
 * Operations on different volumes run side by side. Each is done as a whole or not at all: what can fail is
 * tried first, then the state folder is written (state-dir.h), which is the moment when it counts, and a
 * failure takes back what was tried.
 *
 *     kiln ──unix socket, HTTP──▶ verbs ──▶ volumes ──▶ brick-jobs ──▶ glusterfsd/bricks.c
 *                                              │   └───▶ state-dir      a file per volume, replaced whole
 *     client ──port 24007──▶ volfile-server ──▶ volfile-text            made on request from the volume
 *
 * A brick whose host was not given gets the address at which the client has reached the daemon, because a
 * machine has many names and no name is right for every client.
 *
 * Threads: operations are called by any thread that may call bricks.h (registered with RCU, not a worker);
 * the questions at the end by any thread. One mutex guards the list; a volume in it is never changed but
 * replaced, so that who reads does it under the mutex. It is not held over a system call or a brick's
 * operation.
 */
#ifndef KILN_VOLUMES_VOLUMES_H
#define KILN_VOLUMES_VOLUMES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

struct volfile;
struct op_versions;
struct volfile_place;

struct volumes_hooks {
    /* Changes a volfile before a brick is made of it (--xlator-option). 0 or -errno with a text. May be
     * NULL. */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
    /* A client's volfile may be another now. After the operation counts; may be NULL. */
    void (*changed)(const char *volume);
};

/* Takes the state folder, reads it, undoes volumes that were half made. 0 or -errno with *why. Once. */
int volumes_open(const char *state_dir, const struct volumes_hooks *hooks, struct problem *why);
/* Attaches the bricks of all volumes that are started, some at a time. One that cannot is logged, and its
 * volume goes on without it. */
void volumes_attach(void);
/* No operation runs any more; the state folder is given back. Harmless if it was never opened. */
void volumes_close(void);

/* ---- operations: 0, or -errno with *why ------------------------------------------------------ */

/* Takes `v` over, whose status is CREATING and whose bricks' `made` are filled here. */
int volumes_create(struct volume *v, struct problem *why);
/* `is_forced`: a brick that cannot be attached is left out, and a started volume's missing bricks are
 * tried. */
int volumes_start(const char *name, bool is_forced, struct problem *why);
int volumes_stop(const char *name, struct problem *why);
/* The bricks' folders stay as they are. */
int volumes_delete(const char *name, struct problem *why);
/* Pairs of texts: {"key": "value", ...}. All or none. */
int volumes_set(const char *name, const json_t *options, struct problem *why);
/* A key, or "all". *count: how many were set. */
int volumes_reset(const char *name, const char *key, unsigned *count, struct problem *why);

/* Bricks come or leave (brick-plan.h), all or none; mounted clients follow. `added` and `removed` are volumes
 * with these bricks alone; replica 0: as it is. Bricks that come must be as those of a new volume. Those that
 * leave must hold no files, or with fewer replicas nothing that others lack; their folders stay. */
int volumes_add_bricks(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                       struct problem *why);
int volumes_remove_bricks(const char *name, const struct volume *removed, unsigned replica,
                          struct problem *why);
/* The one brick of `to` takes the place of `from`, and is healed. */
int volumes_replace_brick(const char *name, const char *from, const struct volume *to, struct problem *why);
/* Served no more, until the next start of the volume with force, or of the daemon. */
int volumes_take_brick_down(const char *name, const char *path, struct problem *why);

/* Calls fn with a volume that is not started, and nothing is done to it meanwhile. -EINVAL: it is started;
 * else what fn returns. */
int volumes_at_rest(const char *name, int (*fn)(const struct volume *v, void *arg, struct problem *why),
                    void *arg, struct problem *why);

/* ---- questions ------------------------------------------------------------------------------- */

/* A copy; NULL with *why: -ENOENT, -ENOMEM. */
struct volume *volumes_find(const char *name, struct problem *why);
/* Calls fn for each, by name in order, under the mutex. */
void volumes_each(void (*fn)(const struct volume *v, void *arg), void *arg);
/* How many bricks of volumes that are started are not served. Any thread; looks at each brick. */
unsigned volumes_bricks_missing(void);
/* Calls fn with the name of each, without the mutex. 0, -ENOMEM with *why. */
int volumes_each_name(void (*fn)(const char *name), struct problem *why);
/* The volfile for a client; to be freed. NULL with *err: -ENOENT, -EAGAIN (it is not started), -ENOMEM,
 * -EOPNOTSUPP: the client does not know what is in it, `*needed` is the op-version that it would have to. */
char *volumes_client_volfile(const char *name, const struct volfile_place *place,
                             const struct op_versions *known, uint32_t *needed, int *err);
/* The self-heal daemon's, to be freed. NULL: *is_wanted says whether the volume has one, then there is no
 * memory. */
char *volumes_heal_volfile(const char *name, uint16_t brick_port, bool *is_wanted);
/* Files of a self-heal daemon. The socket's name is short whatever the volume's is; its folder has to be made
 * with mode 0700 first. */
#define VOLUMES_HEAL_SOCKET_DIR "/run/kiln/heal"
struct heal_files {
    char volfile[4352], pid[4352], socket[108];
};
/* Writes the volfile. 0 or -errno with *why. */
int volumes_save_heal(const char *name, const char *text, struct heal_files *files, struct problem *why);

#endif
