/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-throttle: makes the heals and rebalances of kiln-heal give way to clients (volume options
 * kiln.heal-throttle and cluster.rebal-throttle).
 *
 * A heal consists of units: the look at an object with its attributes and counters, a name of a folder, or a
 * block of a file. A rebalance consists of units, too: a part of a folder's list, the layout of a folder, the
 * move of an entry, or a block of a file. The rule, for each set of bricks, or volume that is rebalanced:
 *
 *      clients rest     no brick of the set has served a call of a client in the last CLIENTS_REST_MS. Units
 *                       begin at once, as many at a time as the set's options allow
 *      clients work     a unit begins when GAP_TIMES the duration of a unit has passed since the last one
 *                       began: heals use 1/GAP_TIMES of one processor at most. Blocks are small
 *
 * The duration is the mean of the latest units of the process, so that heals slow down further when bricks
 * answer slowly. The gap is at least GAP_MIN_MS, for units that a client's call waits for, and at most
 * GAP_MAX_MS, so that each heal ends: at least 1000 / GAP_MAX_MS units begin in a second. All sets of the
 * process share these beginnings, because their bricks share processors.
 *
 * A brick tells how long ago it has served a client (performance/io-threads). The throttle asks the bricks of
 * a set when a unit begins, at most once in LOOK_MS. A brick that does not know counts as resting.
 *
 * A unit of a heal that waits to begin holds no lock that clients take: only that of the healers' domain. So
 * a wait adds no state that the death of a healer could leave. A block of a rebalance waits under the locks
 * of the migration, which its step of copying holds anyway (distribute/migrate.c).
 *
 * thread: any; a unit begins and ends in one coroutine. */
#ifndef KILN_CLUSTER_HEAL_THROTTLE_H
#define KILN_CLUSTER_HEAL_THROTTLE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

enum { CLIENTS_REST_MS = 100, LOOK_MS = 20, GAP_TIMES = 4, GAP_MIN_MS = 2, GAP_MAX_MS = 20 };

/* The throttle of a set. Zeroed memory is a throttle that never makes a heal wait. */
struct heal_throttle {
    /* Asks the bricks; in the coroutine of a heal. Returns the milliseconds since the latest call of a
     * client. NULL: the throttle is off. Constant. */
    uint64_t (*ask)(void *arg);
    void *arg;
    _Atomic uint64_t looked_ns; /* monotonic time of the latest question; 0: none yet */
    atomic_bool clients_work;   /* the answer */
};

struct xlator;

/* Switches the throttle on: it asks all bricks below the layer. Before the first unit. */
void heal_throttle_by_bricks(struct heal_throttle *t, struct xlator *xl);
/* Waits until a unit may begin. Returns the time for heal_unit_end(). */
uint64_t heal_unit_begin(struct heal_throttle *t);
void heal_unit_end(const struct heal_throttle *t, uint64_t begun_ns);
/* Returns whether clients work, as of the latest answer. */
bool heal_gives_way(const struct heal_throttle *t);

/* ---- the arithmetic -------------------------------------------------------------------------- */

/* The beginnings of units. */
struct heal_pace {
    uint64_t next_ns; /* monotonic time at which the next unit may begin */
    uint64_t unit_ns; /* mean duration of the latest units */
};

/* Returns when a unit may begin that wants to begin now, and reserves that time. */
uint64_t heal_pace_reserve(struct heal_pace *p, uint64_t now_ns);
/* Notes the duration of a unit. */
void heal_pace_note(struct heal_pace *p, uint64_t unit_ns);

#endif
