/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xlator: a layer of a graph: its type (code, const) and its instance (one per volume section of a volfile).
 *
 * Threads: an instance's fields are written while its graph is built or activated, before any other thread sees it, and
 * only read afterwards; but `conf`, which is published with RCU (see xlator_conf).
 */
#ifndef KILN_STACK_XLATOR_H
#define KILN_STACK_XLATOR_H

#include <stdbool.h>
#include <stdio.h>

#include "data/option.h"
#include "stack/call-stack.h"

struct client;
struct dump;
struct fd;
struct graph;
struct inode;
struct inode_table;
struct volfile_section;

typedef int (*fop_fn)(struct xlator *xl, struct call_stack *stk);

/* Absent means "not interested". `any` is asked for every fop that has no function of its own. */
struct xlator_ops {
    fop_fn any;
    union {
        fop_fn fn[FOP_COUNT];
        struct {
#define FOP(name, profile, traits, req, rep) fop_fn name;
#include "stack/fops.def"
#undef FOP
        };
    };
};

struct xlator_type {
    const char *name;             /* as in the volfile: "features/locks" */
    const struct option *options; /* ends with OPT_END */
    size_t conf_size;
    const struct xlator_ops *ops;

    /* Absent: always in the graph. False: the layer is left out as long as its options say so. */
    bool (*is_active)(const void *conf);
    /* Not built: accepted only while its options leave it off (OPT_MUST_BE rows); then left out of the graph. */
    bool is_not_built;

    /* Makes xl->private. The layers below have been initialised already. 0 or -errno, with a reason logged. */
    int (*init)(struct xlator *xl);
    /* All calls have ended, no inode, fd or client is left. Undo init. */
    void (*fini)(struct xlator *xl);
    /* A new conf was published; `old` is the one before, freed after return and a grace period. */
    void (*reconfigured)(struct xlator *xl, const void *old);

    /* The layer's context of an inode or fd must go. Called once per object that has one, when no one else can reach it. */
    void (*inode_forget)(struct xlator *xl, struct inode *inode, void *ctx);
    void (*fd_release)(struct xlator *xl, struct fd *fd, void *ctx);
    /* The last reference to `fd` is gone, with or without a context; before fd_release. */
    void (*fd_closed)(struct xlator *xl, struct fd *fd);
    /* The client's last connection is gone; its fds are still open. Drop its locks, wake its waiters. */
    void (*client_gone)(struct xlator *xl, struct client *client);
    /* Statedump: key=value lines. */
    void (*dump)(struct xlator *xl, struct dump *dump);
    /* Threads of this layer that belong to the whole brick start and stop here: after publish, before drain. */
    int (*start)(struct xlator *xl);
    void (*stop)(struct xlator *xl);
};

#define XLATOR_CTX_MAX 8 /* layers of one graph that keep something per inode or fd */

struct xlator {
    const struct xlator_type *type;
    const char *name; /* the volfile's volume name */
    struct graph *graph;
    struct xlator *parent;  /* above; NULL for the top */
    struct xlator *child;   /* below; NULL for storage. (A client graph's fan-out has its own list: later) */
    struct xlator *next[FOP_COUNT]; /* first layer below that is on this fop's path; NULL: none */
    fop_fn fn[FOP_COUNT];   /* this layer's function for a fop, `any` filled in; NULL: skipped */
    void *conf;             /* RCU: type's conf struct; see xlator_conf() */
    void *private;          /* what init made */
    int ctx_slot;           /* index of this layer's context in inodes and fds; -1: has none */
    bool is_skipped;
};

/* The layer's conf. Valid until the calling fop function or callback returns: fetch it again after being parked.
 * (Workers and timers run layers inside an RCU read section.) */
static inline const void *
xlator_conf(const struct xlator *xl)
{
    return __atomic_load_n(&xl->conf, __ATOMIC_ACQUIRE); /* as free as a plain load, and the compiler knows what it is */
}

/* The types that are linked in. NULL if there is none of this name. */
const struct xlator_type *xlator_type_find(const char *name);

#endif
