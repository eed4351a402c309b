/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volumes: the volumes that this daemon keeps itself, without a glusterd: the list, the state of each
 * volume, and its bricks (bricks/bricks.h).
 *
 *     create ──▶ CREATING ──▶ CREATED ──▶ STARTED ◀──▶ STOPPED ──▶ delete
 *                   │ failed, or the daemon died: undone
 *
 * An operation claims its volume; a second operation on the same volume is refused (-EBUSY). Operations on
 * different volumes run in parallel. Each operation takes effect as a whole or not at all: it first tries
 * the steps that can fail, then writes the state folder (state-dir.h), which makes it effective, and a
 * failure undoes the steps so far.
 *
 * This folder has the volumes, their state folder and volfiles, limits (quota.h), and the start of all
 * parts (front.h). Its rooms:
 *
 *     bricks/   the steps on the bricks of one change: places, marks, jobs that run in parallel
 *     cluster/  hosts that share a store: the store, calls to other hosts, changes, long jobs (job-*.c)
 *     heal/     the processes that heal and rebalance
 *     verbs/    the verbs of `kiln`, a function for each (verbs.def)
 *
 * Threads: any thread that may call bricks.h (registered with RCU, not a worker) may call the operations;
 * any thread may call the queries at the end. One mutex guards the list. A volume in the list is never
 * changed but replaced, so readers hold the mutex. The mutex is not held during a system call or an
 * operation of a brick.
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
    /* Changes a volfile before a brick is built from it (--xlator-option). Returns 0 or -errno with a
     * text. May be NULL. */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
    /* Called after an operation has taken effect, because client volfiles of the volume may have changed.
     * May be NULL. */
    void (*changed)(const char *volume);
    /* Tells whether this host's self-heal daemon heals the volume. NULL: yes. Called under the mutex. */
    bool (*heals)(const struct volume *v);
};

/* Opens and reads the state folder, and undoes volumes that were created only in part. Returns 0 or -errno
 * with *why. Call once. */
int volumes_open(const char *state_dir, const struct volumes_hooks *hooks, struct problem *why);
/* Attaches the bricks of all started volumes, several at a time. A brick that fails is logged, and its
 * volume continues without it. */
void volumes_attach(void);
/* Releases the state folder when no operation runs any more. Does nothing if it was never opened. */
void volumes_close(void);

/* ---- operations: 0, or -errno with *why ------------------------------------------------------ */

/* Consumes `v`, which must have the status CREATING, and sets `made` of its bricks. */
int volumes_create(struct volume *v, struct problem *why);
/* Takes over a volume whose bricks exist, with any status but CREATING and STARTED. Consumes `v`. */
int volumes_adopt(struct volume *v, struct problem *why);
/* `is_forced`: continue without bricks that cannot be attached; on a started volume, retry missing bricks. */
/* A forced start goes on without bricks that do not start: it returns 0, with their failures in why->wrong,
 * which is empty if all bricks run. */
int volumes_start(const char *name, bool is_forced, struct problem *why);
int volumes_stop(const char *name, struct problem *why);
/* The folders of the bricks stay unchanged. */
int volumes_delete(const char *name, struct problem *why);
/* `options` are pairs of texts: {"key": "value", ...}. Sets all or none. */
int volumes_set(const char *name, const json_t *options, struct problem *why);
/* `key` is a key or "all". *count: number of options that were set. */
int volumes_reset(const char *name, const char *key, unsigned *count, struct problem *why);

/* Changes the volume by `fn`, which changes `fresh`, a copy. `fn` returns 0 or -errno with *why. */
int volumes_change(const char *name, int (*fn)(struct volume *fresh, void *arg, struct problem *why),
                   void *arg, struct problem *why);

/* Adds or removes bricks (brick-plan.h), all or none; mounted clients follow. `added` and `removed` are
 * volumes with only these bricks; replica 0 keeps the number of replicas. New bricks must satisfy the
 * rules of a new volume. Removed bricks must hold no files or, with fewer replicas, no changes that others
 * missed; their folders stay. */
int volumes_add_bricks(const char *name, const struct volume *added, unsigned replica, bool with_arbiter,
                       struct problem *why);
int volumes_remove_bricks(const char *name, const struct volume *removed, unsigned replica,
                          struct problem *why);
/* Replaces `from`, a path or HOST:/path, by the one brick of `to`, which is then healed. */
int volumes_replace_brick(const char *name, const char *from, const struct volume *to, struct problem *why);
/* Takes the brick offline until the volume is started with force or the daemon restarts. */
int volumes_take_brick_down(const char *name, const char *path, struct problem *why);

/* Calls fn with a volume that is not started, and blocks operations on it meanwhile. Returns -EINVAL if it
 * is started, else the result of fn. */
int volumes_at_rest(const char *name, int (*fn)(const struct volume *v, void *arg, struct problem *why),
                    void *arg, struct problem *why);

/* ---- hosts that share a store (cluster.h): 0, or -errno with *why ---------------------------- */

/* Makes the bricks of this host for a volume of the status CREATING, which stays in the list with that
 * status. Consumes `v`. */
int volumes_make_here(struct volume *v, struct problem *why);
/* Makes the volume equal to the volume of the store: attaches, detaches and reconfigures the bricks of this
 * host. Consumes `fresh`; NULL: the store has no such volume. A brick that fails is an error, and the others
 * serve. */
int volumes_take(const char *name, struct volume *fresh, struct problem *why);

/* ---- questions ------------------------------------------------------------------------------- */

/* Returns a copy, or NULL with *why: -ENOENT, -ENOMEM. */
struct volume *volumes_find(const char *name, struct problem *why);
/* Calls fn for each volume, sorted by name, with the mutex held. */
void volumes_each(void (*fn)(const struct volume *v, void *arg), void *arg);
/* Refuses a mount point of the volume, an absolute path, that is a brick of this machine, or lies in or above
 * a brick: the mount would hide the brick, and a restart of the brick would find the volume itself. Returns 0
 * or -EBUSY. */
int volumes_check_mount_point(const char *name, const char *dir, struct problem *why);
/* Returns the number of offline bricks of started volumes. Any thread; looks at each brick. */
unsigned volumes_bricks_missing(void);
/* Calls fn with each name, without the mutex. Returns 0 or -ENOMEM with *why. */
int volumes_each_name(void (*fn)(const char *name), struct problem *why);
/* Returns the volfile for a client; the caller frees it. NULL with *err: -ENOENT, -EAGAIN (not started),
 * -ENOMEM, -EOPNOTSUPP: the client is too old, `*needed` is the op-version that it needs. */
char *volumes_client_volfile(const char *name, const struct volfile_place *place,
                             const struct op_versions *known, uint32_t *needed, int *err);
/* Returns 0 with the volume's id, or -ENOENT. */
int volumes_id(const char *name, struct gfid *out);
/* Returns the self-heal daemon's volfile of each replica set as a JSON array, a new reference. NULL with
 * *is_wanted false: the volume is not started or not replicated; with *is_wanted true: no memory. *heals:
 * the option cluster.self-heal-daemon. */
json_t *volumes_heal_sets(const char *name, uint16_t brick_port, bool *is_wanted, bool *heals);

/* The state folder; thread: any after volumes_open(). */
const char *volumes_state_path(void);

#endif
