/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* rebalance: the walk of a distributed volume that gives ranges to added subvolumes and moves files. A
 * rebalancer belongs to a layer cluster/distribute.
 *
 *      layouts   each folder is created where it is missing, and gets a layout over all subvolumes that are
 *                not leaving (option decommissioned-bricks)
 *      files     also moves each file to the hashed subvolume of its name (migrate.c)
 *      drain     also moves the files of the leaving subvolumes
 *
 * The folders below a folder are created on all subvolumes before the folder's layout changes, because a
 * client lists a folder by the hashed subvolume of its name.
 *
 * The walk waits until all subvolumes are up, also when one goes down meanwhile; then it does the folder
 * again. The walk also waits until no client works with an old list of bricks (old-clients.h), before the
 * first folder and, once a second, before others. The walk keeps nothing on disk: a walk after the death of
 * the process finds what there is left to do, and passes quickly over the rest.
 *
 * While clients work, a rebalancer that gives way (heal-throttle.h) handles one entry, part of a list or
 * block of a file after the other. It still begins 1000 / GAP_MAX_MS of them in a second, so that the walk
 * ends beside clients that never stop.
 *
 * Threads: any thread may call the functions, rebalancer_free() one. */
#ifndef KILN_CLUSTER_REBALANCE_H
#define KILN_CLUSTER_REBALANCE_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

struct xlator;
struct rebalancer;

enum rebalance_kind { REBALANCE_LAYOUTS, REBALANCE_FILES, REBALANCE_DRAIN };
enum rebalance_state {
    REBALANCE_WAITS, /* for subvolumes or clients */
    REBALANCE_RUNS,
    REBALANCE_COMPLETED,
    REBALANCE_STOPPED,
    REBALANCE_FAILED /* ended; some files or folders were not handled */
};

struct rebalance_look {
    enum rebalance_state state;
    uint64_t folders, looked; /* folders done; files looked at */
    uint64_t moved, bytes;    /* files moved; bytes copied */
    uint64_t skipped, failed;
    uint64_t expected; /* estimate of the files that the walk will look at; 0: not known */
    time_t started, ended;
    unsigned seconds; /* the duration so far */
    char current[256]; /* path of the folder being handled */
    char reason[256];  /* the latest reason for a skip or a failure; "": none */
    char waits_for[256]; /* the process that works with an old list of bricks; "": none */
};

/* Makes a rebalancer for the layer cluster/distribute, before graph_start(). `width`: files moved at a time.
 * `ended` is called in any thread when the walk has ended by itself. NULL: no memory. */
struct rebalancer *rebalancer_new(struct xlator *distribute, enum rebalance_kind kind, unsigned width,
                                  void (*ended)(void *arg), void *arg);
/* Makes the walk give way to clients of the bricks. Before rebalancer_start(). */
void rebalancer_give_way(struct rebalancer *r);
/* Begins the walk, after graph_start(). Returns 0 or -errno. */
int rebalancer_start(struct rebalancer *r);
/* Ends the walk after the present calls, without waiting. */
void rebalancer_stop(struct rebalancer *r);
/* Waits for the end of the walk. May be called after graph_drain(), which makes the walk end. */
void rebalancer_free(struct rebalancer *r);
void rebalancer_look(struct rebalancer *r, struct rebalance_look *out);

#endif
