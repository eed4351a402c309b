/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* figures: the figures of the process and its bricks, read at one go for /metrics and /top. No call is
 * stopped for the figures and no disk is asked.
 *
 * thread: any that is registered with RCU, several at once. The bricks are pinned until figures_free(). */
#ifndef KILN_BRICKS_FIGURES_H
#define KILN_BRICKS_FIGURES_H

#include "base/procfs.h"
#include "bricks/bricks.h"
#include "event/worker.h"
#include "graph/unbuilt.h"
#include "rpc/transport/transport.h"
#include "xlators/debug/io-stats/io-stats.h"
#include "xlators/storage/posix/capacity.h"

enum { UNBUILT_SHOWN = 32 /* of a brick */, FIGURES_VOLUME_SIZE = 256 };

struct brick_figures {
    struct graph *graph;  /* named as the brick */
    struct xlator *stats; /* for io_stats_latencies(); NULL: the brick has no io-stats, and no counts */
    char volume[FIGURES_VOLUME_SIZE]; /* "": the volfile does not tell */
    bool is_up;
    struct io_stats_counts counts;
    struct posix_capacity disk;
    bool is_first_on_disk; /* no brick before this one in the list has its file system */
    unsigned clients;
    unsigned running, queued;           /* in io-threads */
    unsigned locks_held, locks_waiting; /* of all kinds */
    unsigned inodes;                    /* that the brick remembers */
    uint64_t memory_bytes;              /* pooled objects that are the brick's */
    int64_t heal_pending; /* objects that the brick accuses others of having missed; -1: no index */
    const struct unbuilt_feature *unbuilt[UNBUILT_SHOWN]; /* features that the volume asks for in vain */
    unsigned unbuilt_count;
};

struct pool_figures {
    char name[64];
    uint64_t live, hot, cold; /* objects: in use, cached and used lately, cached and idle */
    uint64_t gets, system_allocations, resident_bytes;
};

/* Figures of the whole machine, to find out why bricks are slow. Pressure: the share of the last ten seconds
 * in which some task waited for the resource, in hundredths of a percent; below 0: this kernel does not
 * tell. */
struct machine_figures {
    struct procfs_cpu cpu;
    uint64_t load_1min; /* in hundredths */
    uint64_t memory_available; /* bytes that programs can take without swapping */
    int64_t cpu_pressure, memory_pressure, io_pressure;
};
/* A figure that the kernel does not tell is 0, and a pressure -1. */
void figures_of_machine(struct machine_figures *m);

struct figures {
    struct brick_figures *bricks; /* in the order of their attach */
    unsigned brick_count;
    struct pool_figures *pools;
    unsigned pool_count;
    struct bricks_states states;
    struct worker_stats workers;
    struct transport_stats transport;
    struct procfs_statm memory;
    unsigned threads;
    double cpu_seconds, start_seconds, age_seconds; /* start: since 1970 */
};

/* Puts the name of the volume of a brick into `out`: the layer storage/posix is called VOLUME-posix by
 * glusterd and by kilnd. "" for a brick with another name. */
void figures_name_volume(const struct graph *g, char out[FIGURES_VOLUME_SIZE]);

/* Returns the number of objects that the brick accuses other bricks of having missed; -1: the brick has no
 * index. The graph is pinned. */
int64_t figures_heal_pending(const struct graph *g);

/* Without the pools, which are looked through object by object, pools and memory of bricks stay 0. NULL: no
 * memory. */
struct figures *figures_take(bool with_pools);
/* The bricks may go; their `graph` and `stats` are NULL. */
void figures_unpin(struct figures *f);
/* NULL allowed. */
void figures_free(struct figures *f);

#endif
