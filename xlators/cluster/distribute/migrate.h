/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* migrate: moves a file from one subvolume to another. Private to cluster/distribute. */
#ifndef KILN_DISTRIBUTE_MIGRATE_H
#define KILN_DISTRIBUTE_MIGRATE_H

#include "xlators/cluster/distribute/distribute-internal.h"
#include "xlators/cluster/heal-throttle.h"

struct migration {
    struct inode *parent; /* borrowed, as the next two */
    const char *name;
    struct inode *file;
    unsigned from, to; /* children; `to` is the hashed subvolume of the name */
    bool moves_links; /* a file of several names is moved with all of them */
    const atomic_bool *stops;    /* the migration is given up */
    _Atomic uint64_t *bytes;     /* counter of copied bytes */
    struct heal_throttle *throttle;
    uint64_t unit_ns; /* heal-throttle.h: when the present unit has begun */
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
/* For a file that is on its hashed subvolume m->from: removes the remains of an earlier migration. */
int migrate_settle(const struct op *o, struct migration *m);

/* ---- migrate-names.c ------------------------------------------------------------------------- */

enum { MIGRATE_NAMES_MAX = 15 };

/* The other names of a file. */
struct migrate_names {
    unsigned count;
    struct migrate_name {
        struct inode *parent; /* a reference */
        const char *name;     /* on the operation's arena */
        unsigned hashed;
    } of[MIGRATE_NAMES_MAX];
};

/* Finds the other names of the file behind m->name on m->from. If the brick does not tell them, or there are
 * too many, the list is empty. Returns 0 or -errno. */
int migrate_names_find(const struct op *o, const struct migration *m, struct migrate_names *out);
void migrate_names_end(struct migrate_names *names);
/* Fills in the locks of the names, at most 2 * MIGRATE_NAMES_MAX. Returns their number. */
unsigned migrate_names_locks(const struct migrate_names *names, struct dist_lock *out);
/* Under the locks: returns 0 if each name leads to the file; -EBUSY, or another -errno. */
int migrate_names_check(const struct op *o, const struct migration *m, const struct migrate_names *names);
/* Gives the copy the names. Returns 0 or -errno. */
int migrate_names_make(const struct op *o, const struct migration *m, const struct migrate_names *names);
/* After the switch: makes the names lead to the copy, and removes them from m->from. */
void migrate_names_switch(const struct op *o, const struct migration *m, const struct migrate_names *names);

#endif
