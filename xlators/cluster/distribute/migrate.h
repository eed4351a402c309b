/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* migrate: moves a file from one subvolume to another. Private to cluster/distribute. */
#ifndef KILN_DISTRIBUTE_MIGRATE_H
#define KILN_DISTRIBUTE_MIGRATE_H

#include "xlators/cluster/distribute/distribute-internal.h"

enum { PID_REBALANCE = -3 };

struct migration {
    struct inode *parent; /* borrowed, as the next two */
    const char *name;
    struct inode *file;
    unsigned from, to; /* children; `to` is the hashed subvolume of the name */
    const atomic_bool *stops;    /* the migration is given up */
    _Atomic uint64_t *bytes;     /* counter of copied bytes */
    const char *stays; /* out: reason why the file stays; NULL: none */
};

static inline bool
migration_must_stop(const struct migration *m)
{
    return atomic_load(m->stops);
}

static inline void
migration_add_bytes(const struct migration *m, uint64_t bytes)
{
    atomic_fetch_add(m->bytes, bytes);
}

/* Moves the file. Returns 0; -EAGAIN with the reason in m->stays; -ENOENT: the name leads to this file on
 * `from` no more; -EEXIST: another file has the name on `to`; -ECANCELED: m->stops; or another -errno. After
 * a failure the file is where it was. In a coroutine. */
int migrate_file(const struct op *o, struct migration *m);
/* The same for a symbolic link, a device, a socket or a pipe. */
int migrate_special(const struct op *o, struct migration *m);
/* For a file that is on its hashed subvolume m->from: removes what an earlier migration has left. */
int migrate_settle(const struct op *o, struct migration *m);

#endif
