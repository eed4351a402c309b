/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster: this host among the hosts that share a store (kilnd --store LOCATION --host NAME).
 *
 * The store is the only authority. Each host keeps a copy of all volumes in its state folder and in memory,
 * follows the store, and serves the bricks of its own name. So every host answers every client's request for
 * a volfile.
 *
 *     store ──watch──▶ volumes to apply ──▶ volumes_take(): bricks attached, detached, reconfigured;
 *                                           the copy in the state folder; clients and healer are notified
 *     kiln ──▶ kilnd of any host ──▶ one transaction ──▶ store (cluster-change.h)
 *
 * Hosts have no connection with each other. A host asks another one through the store (cluster-ask.h), so
 * only programs that may write to the store can change a volume. With an authority in the store, records of
 * hosts, questions and answers count only if their host has signed them (host-proof.h).
 *
 * Liveness is a lease of CLUSTER_LEASE_S seconds. While the store does not answer, bricks, volfiles and heals
 * go on, and changes are refused. A host that starts without its store serves the bricks of its copy, but
 * gives no volfile before it has read the store once, because the copy may be old.
 *
 * Deaths: a host that dies loses its lease; its bricks are offline until the host returns, and then the host
 * reads everything anew. A copy in the state folder is only read until then. A store that restores a backup
 * has lower revisions: the host sees a watch that fails, and reads everything.
 *
 * Threads: a keeper renews the lease, a watcher follows the store, a third thread applies volumes, and each
 * question of another host has a thread, CLUSTER_ASKS_MAX at most. One mutex guards all data; it is not
 * held during a call of the store or of volumes.h. Functions may be called by any thread that may wait.
 */
#ifndef KILN_VOLUMES_CLUSTER_H
#define KILN_VOLUMES_CLUSTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "volumes/cluster/store.h"
#include "volumes/problem.h"

struct volume;

enum { CLUSTER_LEASE_S = 15, CLUSTER_SPACE_S = 60, CLUSTER_ASKS_MAX = 8, CLUSTER_FORMAT = 1 };

struct cluster_options {
    struct store_options store;
    const char *host; /* name of this host, as other hosts and clients reach it */
    const char *state_dir;
    const char **roots; /* --brick-root: folders that this host offers for bricks */
    unsigned root_count;
};

/* Checks options and state folder, before the bricks are attached. The options must stay valid. Returns 0 or
 * -errno with *why. */
int cluster_open(const struct cluster_options *o, struct problem *why);
/* Registers the host and follows the store, in threads. `brick_port` is shown to other hosts. Refuses a name
 * that another machine has, and a newer store. A store that does not answer is no error. */
int cluster_start(uint16_t brick_port, struct problem *why);
/* Ends waits for answers: before the management socket is closed. */
void cluster_quiet(void);
/* Ends the lease and the threads. */
void cluster_stop(void);
void cluster_close(void);

/* Tells whether kilnd has a store. */
bool cluster_is_on(void);
/* The store, for transactions. */
struct store *cluster_store(void);
/* Returns false until the host has read the store once. True without a store. */
bool cluster_has_read(void);
/* Returns 0, or -EAGAIN with *why while the store does not answer. */
int cluster_check_store(struct problem *why);
/* Returns 0 if `host` is registered, else -ENOENT with *why. */
int cluster_check_host(const char *host, struct problem *why);
/* The same for a host that is to leave, so that the remedy is not to start its kilnd. */
int cluster_check_member(const char *host, struct problem *why);
bool cluster_is_alive(const char *host);
/* This host's lease; 0: none now. */
int64_t cluster_lease(void);
/* Tells whether this host's self-heal daemon heals the volume: one live host with bricks of the volume,
 * chosen by the names alone, so that all hosts choose the same. Without the store every host heals its
 * volumes. */
bool cluster_heals(const struct volume *v);
/* Returns the name of that host: one of the volume's bricks or this host's, valid as long as the volume. */
const char *cluster_healer(const struct volume *v);
/* {"hosts": [{"name", "alive", "version", "since", "bricks", "self"}, ...], "store": {"location", "state",
 * "reason"}}, a new reference; NULL: no memory. */
json_t *cluster_describe(void);
/* {NAME: {"version", "roots": [{"path", "free"}], ...}} of all live hosts, a new reference; `free` in bytes,
 * at most CLUSTER_SPACE_S old. NULL: no memory. */
json_t *cluster_live_hosts(void);
/* The record alive/HOST, a new reference; NULL: the host is down, or has no proof. */
json_t *cluster_host_record(const char *host);
/* Writes this host's record alive/NAME anew, signed by its present certificate. Returns 0 or -errno with
 * *why. */
int cluster_announce(struct problem *why);
/* Tells whether the store has a running job (cluster-jobs.h). */
bool cluster_has_jobs(void);
/* Compares the volume again when the lease of host `from` ends, which is changing its bricks. */
void cluster_hold(const char *name, const char *from);
/* Compares the volume of this host with the store's again. */
void cluster_check_again(const char *name);
/* Waits until this host has applied the volume as of revision `at`. Returns 0, or the error of a brick of
 * this host, or -ETIMEDOUT, with *why. */
int cluster_wait_applied(const char *name, int64_t at, struct problem *why);

#endif
