/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* inode: what one brick remembers about an object, and the table that finds it (spec: brick 12.1).
 *
 * A table per brick maps gfid -> inode and (parent, name) -> inode. It is a cache: any gfid can be looked up
 * again on the disk. Unreferenced inodes stay on an LRU list up to a limit; what falls off is forgotten: its
 * dentries go and each layer's inode_forget is called. Layers keep their own state in numbered context slots
 * (struct xlator's `slot`).
 *
 * Threads: the table's mutex guards both hashes, the LRU list and dentries; it is never held over a system
 * call or a callback into a layer. `type` is set once when linked. A context slot is set once by
 * compare-and-swap (inode_ctx_install) and read with acquire; what it points to is guarded by its layer.
 * Every function here may be called by any thread, and takes the table's mutex itself, unless it says
 * otherwise. One that can drop the last reference or shorten the LRU list (inode_unref,
 * inode_table_set_limit, whatever links or unlinks) may call layers' inode_forget before it returns, in the
 * calling thread, without the mutex: no lock of a layer's that inode_forget takes may be held.
 */
#ifndef KILN_FS_INODE_H
#define KILN_FS_INODE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <urcu/list.h>

#include "base/refcount.h"
#include "data/iatt.h"
#include "stack/xlator.h"

struct inode_table;

#define CTX_SLOTS_MAX 1024 /* layers of one graph that keep a context on the same kind of object */

struct inode {
    struct gfid gfid;
    struct inode_table *table;
    struct refcount refs;   /* users; 0 = on the LRU list. Only the table decides by it, under its mutex */
    atomic_uint open_fds;   /* fds that refer to it (anonymous ones not counted) */
    uint32_t type;          /* S_IFMT bits; set when made */
    /* its last known name was removed: not kept when unused. Under the table's mutex */
    bool is_doomed;
    struct cds_list_head hash_link, lru_link;
    struct cds_list_head all_link; /* every inode of the table, also one that is found by nobody any more */
    struct cds_list_head dentries; /* names that lead here */
    struct cds_list_head children; /* dentries inside it, if a directory */
    /* as many as the graph's layers keep: xl->slot[CTX_INODE] - 1 is a layer's index */
    _Atomic(void *) ctx[];
};

/* Once, in the main thread, after mem_pools_init(). 0 or -ENOMEM. */
int fs_pools_init(void);

/* For a graph in which no layer has the option inode-lru-limit. */
#define INODE_LRU_LIMIT_DEFAULT 16384
/* lru_limit: unreferenced inodes kept; 0: no limit. The root is always there. The caller's, until
 * inode_table_free(). `graph`, of which the contexts and the owner of pooled objects are, outlives it; NULL
 * in tests. NULL: no memory. */
struct inode_table *inode_table_new(struct graph *graph, uint32_t lru_limit);
/* Forgets everything; nobody else uses the table any more. No references may be left: the number of those
 * that were is returned, and they are leaked on purpose. */
unsigned inode_table_free(struct inode_table *t);
struct graph *inode_table_graph(const struct inode_table *t);
uint32_t inode_table_limit(struct inode_table *t);
/* Inodes above a lower limit are forgotten at once. */
void inode_table_set_limit(struct inode_table *t, uint32_t lru_limit);

/* All of these, and those that link, hand over a reference, to be given back with inode_unref(). NULL: not in
 * the table. */
struct inode *inode_root(struct inode_table *t);
struct inode *inode_find(struct inode_table *t, const struct gfid *gfid);
struct inode *inode_find_child(struct inode_table *t, struct inode *parent, const char *name);

/* The object behind `iatt` exists, and (unless parent is NULL) has the name: finds or makes inode and dentry.
 * A dentry of that name that led elsewhere is replaced. NULL: no memory; or the gfid is null, or the name is
 * empty or longer than FOP_NAME_MAX, as in the reply of a peer that lies. */
struct inode *inode_link(struct inode_table *t, struct inode *parent, const char *name,
                         const struct iatt *iatt);

/* A reply that says "this name leads there" may be older than another call's "this name is gone". Whoever
 * asks the disk takes the name's epoch before, and links with it afterwards: if the name was removed in
 * between, only the inode is linked, not the name. (Names share a few hundred epochs: at worst a name is not
 * cached.) The type of an inode is what a reply by name says, if the name is still true; a late one, or one
 * by gfid alone, leaves it alone: the gfid may have been used again for another kind of object meanwhile. */
uint32_t inode_name_epoch(struct inode_table *t, struct inode *parent, const char *name);
struct inode *inode_link_epoch(struct inode_table *t, struct inode *parent, const char *name,
                               const struct iatt *iatt, uint32_t epoch);
/* The same for a listing, whose names are not known before: all epochs at once. */
#define INODE_EPOCHS 256
struct inode_epochs {
    uint32_t at[INODE_EPOCHS];
};
void inode_epochs_take(struct inode_table *t, struct inode_epochs *out);
struct inode *inode_link_listed(struct inode_table *t, struct inode *parent, const char *name,
                                const struct iatt *iatt, const struct inode_epochs *epochs);

/* The name is gone (unlink, rmdir, a lookup that found nothing). Harmless if it was not known. An inode that
 * loses its last known name is not kept once it is unused: a later call by gfid asks the disk. */
void inode_unlink(struct inode_table *t, struct inode *parent, const char *name);
/* What was (parent, name) is now (parent2, name2). */
void inode_rename(struct inode_table *t, struct inode *parent, const char *name, struct inode *parent2,
                  const char *name2, struct inode *inode);

/* One more for somebody who has one, or the table's mutex. Takes no lock; returns `inode`. */
struct inode *inode_ref(struct inode *inode);
/* NULL allowed. The mutex is taken only for what may be the last one. */
void inode_unref(struct inode *inode);
/* The object is gone for good: not found by gfid any more, forgotten when the last reference goes. */
void inode_forget(struct inode *inode);

/* Path from the root, "/a/b", by the dentries known, with its NUL. 0; -ENOENT if the chain is not complete;
 * -ENAMETOOLONG if it has more than `size` bytes. What `path` holds then means nothing. */
int inode_path(struct inode *inode, char *path, size_t size);

/* The layer's context, or NULL: none yet. Lent for as long as the caller has a reference to the inode. The
 * layer keeps one (its type's `keeps`). No lock. */
static inline void *
inode_ctx(struct inode *inode, const struct xlator *xl)
{
    return atomic_load_explicit(&inode->ctx[xl->slot[CTX_INODE] - 1], memory_order_acquire);
}

/* Installs `fresh`, which becomes the inode's, unless another thread was faster; returns the one that is
 * installed. The caller frees `fresh` if it is not the one returned. No lock. */
void *inode_ctx_install(struct inode *inode, const struct xlator *xl, void *fresh);

/* The context is not the inode's any more: its layer keeps it elsewhere. Nobody else looks at it. */
static inline void
inode_ctx_take_away(struct inode *inode, const struct xlator *xl)
{
    atomic_store_explicit(&inode->ctx[xl->slot[CTX_INODE] - 1], NULL, memory_order_release);
}

/* Calls fn for every inode that has a context of `xl`, with a reference held, without the table's mutex.
 * Exact: whatever was in the table before the call and is referenced until its turn comes is seen once, also
 * if it is found by nobody any more (its gfid was used again, or inode_forget()), and whatever others add,
 * evict or look up meanwhile. What is added meanwhile is not seen. thread: any, several at once */
void inode_table_each(struct inode_table *t, const struct xlator *xl,
                      void (*fn)(struct inode *inode, void *ctx, void *arg), void *arg);

struct inode_table_stats {
    unsigned inodes; /* that are found */
    unsigned unhashed; /* that are not, but still referenced */
    unsigned lru, dentries;
};
/* A figure: at one moment, under the mutex. */
void inode_table_stats(struct inode_table *t, struct inode_table_stats *out);

#endif
