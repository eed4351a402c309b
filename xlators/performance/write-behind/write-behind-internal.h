/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* write-behind-internal: the insides of performance/write-behind.
 *
 *   write-behind.c   the layer: which operation waits for which writes, lookups, options, life
 *   queue.c          a file's queue of writes that were answered but are not done, and their waiters
 *
 *      WRITE ---> piece in the file's queue ---> answered
 *                    |
 *                    +-- at once, if no piece is under way; together with its neighbours, when one has ended;
 *                        or when a call waits ---> sent below ---> done: off the queue, waiters continue
 *
 * Pieces with overlapping ranges are sent in succession, all other pieces side by side. A piece that fails is
 * not retried: each open file that has written gets the error once, at its next write, fsync or close, as
 * with the kernel's page cache.
 */
#ifndef KILN_PERFORMANCE_WRITE_BEHIND_INTERNAL_H
#define KILN_PERFORMANCE_WRITE_BEHIND_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/worker.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/coro-call.h"
#include "stack/xlator.h"

/* Bound per file, because each reply walks over all of a file's pieces. */
#define WB_PIECES_MAX 256

struct wb_conf {
    uint64_t window, aggregate; /* bytes */
    bool strict_o_direct, strict_order, pass_through;
};

/* The layer. */
struct wb {
    struct xlator *xl;
    atomic_bool is_stopping;      /* writes are no longer answered early */
    atomic_size_t held;           /* bytes in the buffers of all files' pieces */
    /* number of pieces that are in queues, and of those that have ended. A piece is added to `ended` before
     * it is subtracted from `left` */
    _Atomic uint64_t left, ended;
    pthread_mutex_t lock;         /* for waiting until `left` is 0; a leaf */
    pthread_cond_t idle;
};

/* A file's queue: the layer's context of an inode, from the first queued write on. `lock` is a leaf, and
 * guards all fields except those set at creation. `errors` may be read without it. */
struct wb_inode {
    struct wb *wb;
    struct inode *inode; /* the inode with this context: no reference */
    pthread_mutex_t lock;
    struct cds_list_head pieces;  /* in the order in which they were answered */
    struct cds_list_head waiters; /* oldest first */
    uint64_t next;                /* number of the next piece */
    uint64_t ended_at;            /* value of the layer's `ended` when the last piece had ended */
    uint64_t bytes;               /* in pieces, or promised to a waiter */
    unsigned count;               /* pieces and promises */
    unsigned sent;                /* pieces that are under way */
    atomic_uint errors;           /* number of pieces that have failed */
    unsigned reported;            /* value of `errors` when an open file last got an error */
    int err;                      /* of the last failed piece: -errno */
    bool is_job_posted;
    /* sends the sendable pieces; holds the inode and pins the graph while it is posted */
    struct worker_job job;
};

/* An open file that has written: the layer's context of an fd. Under the lock of its inode's queue. */
struct wb_file {
    unsigned seen; /* value of the queue's `errors` that the open file has seen */
};

/* A waiting call, on the stack of its coroutine. */
struct wb_waiter {
    struct cds_list_head link;
    struct coroutine *self;
    uint64_t start, end;   /* waits for pieces that overlap this range */
    uint64_t before;       /* and are older than this number; set by wb_wait() */
    /* if room is not 0, the call waits instead for this many bytes of the window, which it then owns */
    uint64_t room, window;
};

int wb_pools_init(void);
/* NULL: no write was ever queued. */
struct wb_inode *wb_inode_get(struct wb *wb, struct inode *inode);
/* Creates the queue on first use; NULL: no memory. */
struct wb_inode *wb_inode_make(struct wb *wb, struct inode *inode);
void wb_inode_free(struct wb_inode *wi);
void wb_file_free(struct wb_file *file);

/* True if the call would have to wait. */
bool wb_has_to_wait(struct wb_inode *wi, struct wb_waiter *w);
/* Waits, in a coroutine that holds the inode. */
void wb_wait(struct wb_inode *wi, struct wb_waiter *w);
/* Reserves a piece and this many bytes of the window for the caller. Returns false if there is no room. */
bool wb_reserve(struct wb_inode *wi, uint64_t bytes, uint64_t window);
/* Queues the write with the caller's reservation, and takes over its payload. Returns 0, or -errno: the write
 * is not queued, and the reservation has been returned. */
int wb_queue(struct wb_inode *wi, struct call_stack *stk);
/* Returns the error that this open file has not been given yet, once: -errno or 0. */
int wb_take_error(struct wb_inode *wi, struct fd *fd);
/* True if the file has a piece in the queue, or a piece has left the queue since the layer's `ended` had this
 * value. */
bool wb_was_busy(struct wb_inode *wi, uint64_t ended);

#endif
