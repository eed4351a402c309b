/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* inode: the cached state of a brick's object, and the table that finds it (spec: brick 12.1).
 *
 * A table per brick maps gfid -> inode and (parent, name) -> inode. It is a cache: any gfid can be looked
 * up again on the disk. Unreferenced inodes stay on an LRU list up to a limit; the oldest inodes above the
 * limit are forgotten: their dentries go and each layer's inode_forget is called. Layers keep their own
 * state in numbered context slots (struct xlator's `slot`).
 *
 * Threads: the table's mutex guards both hashes, the LRU list and dentries; it is never held over a system
 * call or a callback into a layer. `type` is set once when linked. A context slot is set once by
 * compare-and-swap (inode_ctx_install) and read with acquire; the context itself is guarded by its layer.
 * Every function here may be called by any thread, and takes the table's mutex itself, unless its comment
 * says otherwise. A function that can drop the last reference or shorten the LRU list (inode_unref,
 * inode_table_set_limit, all functions that link or unlink) may call layers' inode_forget before it
 * returns, in the calling thread, without the mutex: the caller must not hold a layer's lock that
 * inode_forget takes. */
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
    struct refcount refs;   /* users; 0 = on the LRU list. Only the table acts on 0, under its mutex */
    atomic_uint open_fds;   /* fds of this inode, without anonymous fds */
    /* S_IFMT bits; set when made. 0: not known yet, of an object that a healer has found by its gfid in a
     * brick's list; see inode_learn_type() */
    uint32_t type;
    /* the last known name was removed, so the inode is not cached when unused. Under the table's mutex */
    bool is_doomed;
    struct cds_list_head hash_link, lru_link;
    /* every inode of the table, including inodes that can no longer be found */
    struct cds_list_head all_link;
    struct cds_list_head dentries; /* names that lead here */
    struct cds_list_head children; /* dentries inside it, if a directory */
    /* the layers' contexts: xl->slot[CTX_INODE] - 1 is a layer's index */
    _Atomic(void *) ctx[];
};

/* Makes the pools of inodes, fds and clients; once, in the main thread, after mem_pools_init(). 0 or
 * -ENOMEM. */
int fs_pools_init(void);

/* For a graph in which no layer has the option inode-lru-limit. */
#define INODE_LRU_LIMIT_DEFAULT 16384
/* Makes a table with the root inode, which always stays. lru_limit: unreferenced inodes kept; 0: no limit.
 * The caller frees the table with inode_table_free(). `graph`, which defines the contexts and the owner of
 * pooled objects, outlives the table; NULL in tests. NULL: no memory. */
struct inode_table *inode_table_new(struct graph *graph, uint32_t lru_limit);
/* Frees the table and all its inodes; no other thread may use the table. No references may be left:
 * returns the number of inodes that were still referenced, which are leaked on purpose. */
unsigned inode_table_free(struct inode_table *t);
struct graph *inode_table_graph(const struct inode_table *t);
uint32_t inode_table_limit(struct inode_table *t);
/* Sets the limit; inodes above a lower limit are forgotten at once. */
void inode_table_set_limit(struct inode_table *t, uint32_t lru_limit);

/* The find and link functions return a reference, to be given back with inode_unref(). NULL: not in the
 * table. */
struct inode *inode_root(struct inode_table *t);
struct inode *inode_find(struct inode_table *t, const struct gfid *gfid);
struct inode *inode_find_child(struct inode_table *t, struct inode *parent, const char *name);

/* Notes that the object of `iatt` exists and (unless parent is NULL) has the name: finds or makes inode
 * and dentry. An old dentry of that name that led to another inode is replaced. NULL: no memory; or the
 * gfid is null, or the name is empty or longer than FOP_NAME_MAX, as in the reply of a peer that lies. */
struct inode *inode_link(struct inode_table *t, struct inode *parent, const char *name,
                         const struct iatt *iatt);

/* A reply that says "this name leads to X" may be older than another call's "this name is gone". A layer
 * therefore takes the name's epoch before it reads the disk and links with this epoch afterwards: if the
 * name was removed in between, only the inode is linked, not the name. (Names share a few hundred epochs:
 * at worst a name is not cached.) A reply by name sets the type of an inode if the name is still true. A
 * late reply, or a reply by gfid alone, does not change the type, because the gfid may meanwhile have been
 * used again for another kind of object. */
uint32_t inode_name_epoch(struct inode_table *t, struct inode *parent, const char *name);
struct inode *inode_link_epoch(struct inode_table *t, struct inode *parent, const char *name,
                               const struct iatt *iatt, uint32_t epoch);
/* Like inode_link_epoch(), for a listing, whose names are not known before: takes all epochs at once. */
#define INODE_EPOCHS 256
struct inode_epochs {
    uint32_t at[INODE_EPOCHS];
};
void inode_epochs_take(struct inode_table *t, struct inode_epochs *out);
struct inode *inode_link_listed(struct inode_table *t, struct inode *parent, const char *name,
                                const struct iatt *iatt, const struct inode_epochs *epochs);

/* Returns the type, or 0. No lock. */
static inline uint32_t
inode_type(const struct inode *inode)
{
    return __atomic_load_n(&inode->type, __ATOMIC_RELAXED);
}

/* Sets a type that is not known yet. No lock. */
static inline void
inode_learn_type(struct inode *inode, uint32_t mode)
{
    uint32_t unknown = 0;

    (void)__atomic_compare_exchange_n(&inode->type, &unknown, mode & S_IFMT, false, __ATOMIC_RELAXED,
                                      __ATOMIC_RELAXED);
}

/* Notes that the name is gone (unlink, rmdir, a lookup that found nothing). Harmless if the name was not
 * known. An inode that loses its last known name is not cached once it is unused: a later call by gfid
 * reads the disk. */
void inode_unlink(struct inode_table *t, struct inode *parent, const char *name);
/* Notes that (parent, name) has become (parent2, name2). */
void inode_rename(struct inode_table *t, struct inode *parent, const char *name, struct inode *parent2,
                  const char *name2, struct inode *inode);

/* Takes another reference and returns `inode`. The caller must already hold a reference or the table's
 * mutex. Takes no lock. */
static inline struct inode *
inode_ref(struct inode *inode)
{
    refcount_get(&inode->refs);
    return inode;
}
/* Drops a reference that may be the last one, under the table's mutex: for inode_unref(). */
void inode_unref_last(struct inode *inode);
/* Drops a reference. NULL allowed. Takes the mutex only when this may be the last reference. */
static inline void
inode_unref(struct inode *inode)
{
    if (inode && !refcount_put_shared(&inode->refs))
        inode_unref_last(inode);
}
/* Notes that the object is gone for good: the gfid no longer finds the inode, which is freed when its last
 * reference goes. */
void inode_forget(struct inode *inode);

/* Writes the path from the root, "/a/b", by the known dentries, with its NUL. 0; -ENOENT if the chain is
 * not complete; -ENAMETOOLONG if it has more than `size` bytes. After an error the contents of `path` are
 * undefined. */
int inode_path(struct inode *inode, char *path, size_t size);

/* The layer's context, or NULL: none yet. Valid as long as the caller has a reference to the inode. The
 * layer must have a context slot (its type's `keeps`). No lock. */
static inline void *
inode_ctx(struct inode *inode, const struct xlator *xl)
{
    return atomic_load_explicit(&inode->ctx[xl->slot[CTX_INODE] - 1], memory_order_acquire);
}

/* Installs `fresh`, which then belongs to the inode, unless another thread was faster; returns the
 * installed context. The caller frees `fresh` if another context is returned. No lock. */
void *inode_ctx_install(struct inode *inode, const struct xlator *xl, void *fresh);

/* Removes the context from the inode because its layer keeps it elsewhere. No other thread may use the
 * context. */
static inline void
inode_ctx_take_away(struct inode *inode, const struct xlator *xl)
{
    atomic_store_explicit(&inode->ctx[xl->slot[CTX_INODE] - 1], NULL, memory_order_release);
}

/* Calls fn for every inode that has a context of `xl`, with a reference held, without the table's mutex.
 * Exact: an inode that was in the table before the call and stays referenced until its turn is visited
 * once, even if it can no longer be found (its gfid was used again, or inode_forget()), and regardless of
 * inodes that other threads add, evict or look up meanwhile. Inodes added meanwhile are not visited.
 * thread: any, several at once */
void inode_table_each(struct inode_table *t, const struct xlator *xl,
                      void (*fn)(struct inode *inode, void *ctx, void *arg), void *arg);

struct inode_table_stats {
    unsigned inodes; /* that can be found */
    unsigned unhashed; /* that can no longer be found, but are still referenced */
    unsigned lru, dentries;
};
/* Fills *out with the numbers at one moment, under the mutex. */
void inode_table_stats(struct inode_table *t, struct inode_table_stats *out);

#endif
