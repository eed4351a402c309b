/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* migrate-internal: the migration of a file, shared by its parts. migrate.c has the steps and says which
 * states a death leaves; migrate-calls.c makes the calls to S and D; migrate-copy.c copies contents and
 * xattrs; migrate-names.c moves the other names of a file. */
#ifndef KILN_DISTRIBUTE_MIGRATE_INTERNAL_H
#define KILN_DISTRIBUTE_MIGRATE_INTERNAL_H

#include <sys/stat.h>

#include "xlators/cluster/distribute/migrate.h"

enum {
    MIGRATE_MARK = S_ISVTX | S_ISGID,
    MIGRATE_TRIES_MAX = 100, /* of copying a block or an attribute that clients change all the time */
};

#define MIGRATE_LINKTO_KEY "trusted.glusterfs.dht.linkto"

struct migrating {
    struct migration *m;
    const struct op *o;
    struct migrate_names names; /* the other names, all locked; count 0: none, or the file stays */
    struct iatt source; /* latest look at S */
    bool may_be_complete; /* step 6 was begun */
    struct fd *fd;      /* the file, open on S and D; NULL: not open */
    uint32_t mode;      /* permission bits of the file, without the mark */
    struct call_stack *list; /* the xattrs of S that D has; NULL: none yet */
    _Atomic uint64_t next;   /* offset of the next block that is copied, up to `end` */
    uint64_t end;
    atomic_int err;
};

/* ---- migrate-calls.c: each returns 0 or -errno, or a call for dist_call_at(), NULL without memory -- */

struct call_stack *migrate_call(const struct migrating *g, enum fop fop);
struct call_stack *migrate_fd_call(const struct migrating *g, enum fop fop);
struct call_stack *migrate_name_call(const struct migrating *g, enum fop fop);
int migrate_at(const struct migrating *g, unsigned child, struct call_stack *stk);
/* Opens the file on S and D. A client does not remove a linkto file that is open (client 2). */
int migrate_open(struct migrating *g);
int migrate_stat(const struct migrating *g, unsigned child, struct iatt *out);
/* `before`, if not NULL, gets the attributes before the change. */
int migrate_setattr(const struct migrating *g, unsigned child, const struct iatt *a, int32_t valid,
                    struct iatt *before);
int migrate_set_mode(const struct migrating *g, unsigned child, uint32_t mode, struct iatt *before);
int migrate_truncate(const struct migrating *g, unsigned child, uint64_t size);
int migrate_remove_xattr(const struct migrating *g, unsigned child, const char *key);
int migrate_set_xattrs(const struct migrating *g, unsigned child, struct dict *set);
/* Returns whether D has several bricks, so that a change of D may be on some of them only. */
static inline bool
migrate_has_replicas(const struct migrating *g)
{
    return g->o->d->child[g->m->to].xl->child_count > 0;
}
/* Records on a D of several bricks whether it has all of the file. */
int migrate_set_done(const struct migrating *g, bool is_done);
/* Makes `child` name `target` in its xattr linkto. With `mode`, the xattr of the file's own mode, too. */
int migrate_set_linkto(const struct migrating *g, unsigned child, unsigned target, const uint32_t *mode);

/* ---- migrate-copy.c: each returns 0 or -errno; -ECANCELED: the migration must stop ----------- */

/* Copies the blocks from S to D; a block that clients change meanwhile is copied again. */
int migrate_copy_data(struct migrating *g);
int migrate_copy_size(struct migrating *g);
/* Gives D the xattrs of S, except ACLs. */
int migrate_copy_xattrs(struct migrating *g);
/* Reads the xattrs of S into g->list. */
int migrate_read_xattrs(struct migrating *g);
/* The same after clients may have changed xattrs, compared with the first time. */
int migrate_copy_changed_xattrs(struct migrating *g);
/* Sets the ACLs of `list`, or its other xattrs, on D. */
int migrate_give_xattrs(const struct migrating *g, const struct dict *list, bool wants_acl);

#endif
