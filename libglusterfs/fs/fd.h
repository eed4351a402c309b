/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fd: an open file or directory, and the table of one client's fds (spec: brick 12.2, wire 8.4).
 *
 * Threads: refcounted. `flags`, `inode`, `client` are set when made. Context slots as in inode.h. A client's
 * table has a mutex, which its functions take; any thread may call them, but for fd_table_init() and
 * fd_table_fini(), which are for whoever makes and frees the client, alone. Numbers are from 0; errors are
 * -errno.
 */
#ifndef KILN_FS_FD_H
#define KILN_FS_FD_H

#include "fs/inode.h"

struct fd {
    struct refcount refs;
    /* who opened it, as its client says: for `volume status fd`. Set before a client's table has the fd */
    int32_t pid;
    struct inode *inode;   /* a reference */
    struct brick_client *client; /* who opened it; no reference: a client outlives its fds. NULL: internal */
    uint32_t flags;        /* native O_* */
    bool is_dir;
    bool is_anonymous;     /* made for one call on a gfid (-2) */
    _Atomic(void *) ctx[]; /* as in an inode, by xl->slot[CTX_FD] */
};

/* An fd with one reference; the reference to `inode` is taken here. NULL: no memory. */
struct fd *fd_new(struct inode *inode, struct brick_client *client, uint32_t flags, bool is_dir);
/* For one call with fd number -2: as if opened O_RDWR. Not counted in inode->open_fds. */
struct fd *fd_new_anonymous(struct inode *inode, struct brick_client *client);
/* One more for somebody who has one. Takes no lock; returns `fd`. */
struct fd *fd_ref(struct fd *fd);
/* The graph that has opened it. */
static inline struct graph *
fd_graph(const struct fd *fd)
{
    return inode_table_graph(fd->inode->table);
}
/* The last one calls each layer's fd_closed and fd_release, top first, in the calling thread; inode->open_fds
 * no longer counts it then. NULL allowed. */
void fd_unref(struct fd *fd);

/* The layer's context, or NULL: none yet. Lent as long as the caller has a reference to the fd. No lock. */
static inline void *
fd_ctx(struct fd *fd, const struct xlator *xl)
{
    return atomic_load_explicit(&fd->ctx[xl->slot[CTX_FD] - 1], memory_order_acquire);
}

/* The context becomes the fd's, until its layer's fd_release. One that is there already is not looked at: the
 * layer sees to it that no two threads set one, as when the fd is not in a table yet. */
static inline void
fd_ctx_set(struct fd *fd, const struct xlator *xl, void *ctx)
{
    atomic_store_explicit(&fd->ctx[xl->slot[CTX_FD] - 1], ctx, memory_order_release);
}

/* As fd_ctx_set(), where several threads may: the first one's becomes the fd's. Returns the one that is the
 * fd's now; if that is not `fresh`, `fresh` stays the caller's. */
static inline void *
fd_ctx_install(struct fd *fd, const struct xlator *xl, void *fresh)
{
    void *was = NULL;

    if (atomic_compare_exchange_strong_explicit(&fd->ctx[xl->slot[CTX_FD] - 1], &was, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    return was;
}

struct fd_table {
    pthread_mutex_t lock;
    struct fd **slots; /* NULL: free */
    uint32_t *free_numbers; /* a stack; most recently freed first */
    uint32_t capacity, free_count;
    uint32_t cursor; /* where fd_table_take_any looks next */
    bool is_closed;  /* takes no more */
    _Atomic uint32_t *brick_files; /* how many all tables of the brick hold; NULL: a table without a bound */
};

#define FD_TABLE_MAX (1u << 20)

/* How many descriptors the fds of all clients may hold: 3/8 of RLIMIT_NOFILE unless set. No brick may hold
 * more than are left for all others, and no client more than are left for the others of its brick, so a
 * greedy one leaves room whoever comes. */
void fd_files_set_limit(uint32_t limit);
/* How many they hold now. */
uint32_t fd_files_used(uint32_t *limit);

/* Once, when its client is made. */
void fd_table_init(struct fd_table *t);
/* Before something is opened: 0 if the table may take one more, else -ENFILE (all are in use), -EMFILE (the
 * client or its brick has its share). Others may be faster: fd_table_add() has the last word. */
int fd_table_may_add(struct fd_table *t);
/* Puts a reference (taken over) into the table. The number, or -ENOMEM, -EMFILE, -ENFILE, -ENOTCONN (closed);
 * reference then not taken. */
int64_t fd_table_add(struct fd_table *t, struct fd *fd);
/* A new reference; NULL: no such number. */
struct fd *fd_table_get(struct fd_table *t, int64_t number);
/* Takes it out and hands over the table's reference; NULL: no such number. */
struct fd *fd_table_take(struct fd_table *t, int64_t number);
/* Nothing gets in any more: the client is gone. What is in it is taken out by fd_table_take_any(). */
void fd_table_close(struct fd_table *t);
/* How many fds are in it now. */
uint32_t fd_table_count(struct fd_table *t);
/* Calls fn for each fd with its number, under the table's lock. *capacity: numbers there are; *first_free:
 * the lowest free one. */
void fd_table_each(struct fd_table *t, void (*fn)(const struct fd *fd, uint32_t number, void *arg), void *arg,
                   uint32_t *capacity, uint32_t *first_free);
/* Takes out any one; NULL when empty. */
struct fd *fd_table_take_any(struct fd_table *t);
/* Gives back the references that are in it. */
void fd_table_fini(struct fd_table *t);

#endif
