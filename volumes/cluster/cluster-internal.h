/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-internal: the state of this host among the hosts of a store, for the files that share the state:
 * cluster.c has the threads, the lease and this host's record; cluster-copy.c follows the store and applies
 * volumes; cluster-hosts.c answers questions about hosts. */
#ifndef KILN_VOLUMES_CLUSTER_INTERNAL_H
#define KILN_VOLUMES_CLUSTER_INTERNAL_H

#include <jansson.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#include "base/gfid.h"
#include "volumes/cluster/cluster.h"

struct cluster_state {
    const struct cluster_options *o; /* NULL: no store */
    struct store *store;
    char id[GFID_TEXT_SIZE]; /* of this machine, from the state folder */
    uint16_t brick_port;
    json_int_t since; /* seconds since 1970 */
    pthread_t threads[3]; /* the main thread's, like the next field */
    unsigned thread_count;

    pthread_mutex_t lock;   /* guards everything below */
    pthread_cond_t changed; /* of the monotonic clock */
    /* By name: the records of hosts, of live hosts, the texts of volumes, the revisions of these texts, the
     * volumes that are to be applied, and the faults of the last application. */
    json_t *hosts, *alive, *texts, *revisions, *dirty, *faults;
    json_t *jobs;    /* records of jobs, by their ids */
    json_t *refused; /* the reason, by the names of hosts without a proof (host-proof.h) */
    json_t *roots;   /* [{"path", "free"}] of this host */
    bool is_measuring, roots_changed;
    json_t *held;       /* the host that is changing the bricks of a volume, by the name of the volume */
    char applying[256]; /* "": no volume */
    bool has_read, is_away, is_ending, is_removed;
    /* The store was away and is back: a connection from before may hang in TCP's retransmission. */
    bool watch_is_old;
    char away_reason[512];
    int64_t lease;
};
extern struct cluster_state cluster;

/* cluster.c; any thread. Returns the monotonic time in so many seconds. */
struct timespec cluster_time_in(unsigned seconds);
/* Waits for so long. Returns false at the end of the cluster. */
bool cluster_pause(unsigned seconds);
/* Lets the self-heal daemon follow all volumes: another host may heal some of them now. */
void cluster_follow_healers(void);

/* cluster-copy.c: reads the whole store, as of revision *at. Returns 0 or -errno with *why. */
int cluster_read_all(int64_t *at, struct problem *why);
/* The threads that follow the store (arg: int64_t *, the revision to begin behind) and apply volumes. */
void *cluster_watcher_run(void *arg);
void *cluster_applier_run(void *arg);

#endif
