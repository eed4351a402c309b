/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fd: an open file or directory, and the table of one client's fds (spec: brick 12.2, wire 8.4).
 *
 * Threads: refcounted. `flags`, `inode`, `client` are set when made. Context slots as in inode.h. A
 * client's table has a mutex, which its functions take; any thread may call them, except fd_table_init()
 * and fd_table_fini(), which only the creator of the client calls, when no other thread uses the table.
 * Numbers are from 0; errors are -errno. */
#ifndef KILN_FS_FD_H
#define KILN_FS_FD_H

#include "fs/inode.h"

struct fd {
    struct refcount refs;
    /* process that opened the file, as sent by the client: for `volume status fd`. Set before the fd is in
     * a client's table */
    int32_t pid;
    struct inode *inode;   /* a reference */
    /* client that opened the fd; no reference: a client outlives its fds. NULL: internal */
    struct brick_client *client;
    uint32_t flags;        /* native O_* */
    bool is_dir;
    bool is_anonymous;     /* made for one call on a gfid (-2) */
    _Atomic(void *) ctx[]; /* as in an inode, by xl->slot[CTX_FD] */
};

/* Returns an fd with one reference; takes a reference to `inode`. NULL: no memory. */
struct fd *fd_new(struct inode *inode, struct brick_client *client, uint32_t flags, bool is_dir);
/* Makes an fd for one call with fd number -2, as if opened O_RDWR. Not counted in inode->open_fds. */
struct fd *fd_new_anonymous(struct inode *inode, struct brick_client *client);
/* Takes another reference and returns `fd`. The caller must already hold a reference. Takes no lock. */
struct fd *fd_ref(struct fd *fd);
/* The graph in which the fd was opened. */
static inline struct graph *
fd_graph(const struct fd *fd)
{
    return inode_table_graph(fd->inode->table);
}
/* Ends an fd whose last reference has been dropped: for fd_unref(). */
void fd_end(struct fd *fd);
/* Drops a reference. The last one calls each layer's fd_closed and fd_release, top first, in the calling
 * thread; inode->open_fds has been lowered before. NULL allowed. */
static inline void
fd_unref(struct fd *fd)
{
    if (fd && refcount_put(&fd->refs))
        fd_end(fd);
}

/* The layer's context, or NULL: none yet. Valid as long as the caller has a reference to the fd. No lock. */
static inline void *
fd_ctx(struct fd *fd, const struct xlator *xl)
{
    return atomic_load_explicit(&fd->ctx[xl->slot[CTX_FD] - 1], memory_order_acquire);
}

/* Gives the fd a context, which it owns until the layer's fd_release. An existing context is overwritten:
 * the layer must ensure that no two threads set a context, for example because the fd is not in a table
 * yet. */
static inline void
fd_ctx_set(struct fd *fd, const struct xlator *xl, void *ctx)
{
    atomic_store_explicit(&fd->ctx[xl->slot[CTX_FD] - 1], ctx, memory_order_release);
}

/* Like fd_ctx_set(), for layers where several threads may set a context: the first thread wins. Returns
 * the context that the fd has now; if that is not `fresh`, the caller keeps `fresh`. */
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
    uint32_t *free_numbers; /* a stack; the most recently freed number is on top */
    uint32_t capacity, free_count;
    uint32_t cursor; /* next slot for fd_table_take_any() */
    bool is_closed;  /* accepts no more fds */
    /* number of fds in all tables of the brick; NULL: a table without a bound */
    _Atomic uint32_t *brick_files;
};

#define FD_TABLE_MAX (1u << 20)

/* Sets the number of descriptors for the fds of all clients: 3/8 of RLIMIT_NOFILE by default. A brick may
 * not hold more than are left for all other bricks, and a client not more than are left for the other
 * clients of its brick, so a greedy client always leaves room for others. */
void fd_files_set_limit(uint32_t limit);
/* The number of descriptors that the fds of all clients hold now; *limit: the bound. */
uint32_t fd_files_used(uint32_t *limit);

/* Makes an empty table. Called once, when the client is made. */
void fd_table_init(struct fd_table *t);
/* Called before a file is opened: 0 if the table may take one more fd, else -ENFILE (all descriptors are
 * in use) or -EMFILE (the client or its brick has its share). Another thread may take the last place
 * meanwhile, so fd_table_add() checks again. */
int fd_table_may_add(struct fd_table *t);
/* Puts a reference, which is taken over, into the table. Returns the number, or -ENOMEM, -EMFILE, -ENFILE,
 * -ENOTCONN (closed); then the reference is not taken over. */
int64_t fd_table_add(struct fd_table *t, struct fd *fd);
/* Returns a new reference; NULL: no such number. */
struct fd *fd_table_get(struct fd_table *t, int64_t number);
/* As fd_table_add(), at a number that is free: for an fd that an earlier program of this process has opened.
 * The shares do not bound it. Returns 0 or -errno; -EEXIST: the number is taken. */
int fd_table_put(struct fd_table *t, struct fd *fd, uint32_t number);
/* The fd's number; -1: the fd is not in the table. */
int64_t fd_table_number(struct fd_table *t, const struct fd *fd);
/* Removes an fd and returns the table's reference; NULL: no such number. */
struct fd *fd_table_take(struct fd_table *t, int64_t number);
/* Closes the table to new fds because the client is gone. The remaining fds are removed by
 * fd_table_take_any(). */
void fd_table_close(struct fd_table *t);
/* The number of fds in the table now. */
uint32_t fd_table_count(struct fd_table *t);
/* Calls fn for each fd with its number, under the table's lock. *capacity: the size of the table;
 * *first_free: the lowest free number. */
void fd_table_each(struct fd_table *t, void (*fn)(const struct fd *fd, uint32_t number, void *arg), void *arg,
                   uint32_t *capacity, uint32_t *first_free);
/* Removes some fd; NULL when empty. */
struct fd *fd_table_take_any(struct fd_table *t);
/* Drops all references in the table and frees it. */
void fd_table_fini(struct fd_table *t);

#endif
