/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* write-behind-internal: the insides of performance/write-behind.
 *
 *   write-behind.c   the layer: which operation waits for what, lookups, options, life
 *   queue.c          a file's writes that were answered and are not done, and who waits for them
 *
 *      WRITE ---> piece in the file's queue ---> answered
 *                    |
 *                    +-- at once, if none is under way; together with its neighbours, when one has ended;
 *                        or when somebody waits ---> sent below ---> done: out of the queue, waiters go on
 *
 * Pieces whose ranges overlap follow one another; others run side by side. A piece that fails is not tried
 * again: the error is told once to each open file that has written, by its next write, fsync or close, as the
 * kernel does for its own cache.
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

/* Of one file: each reply looks at all of them. */
#define WB_PIECES_MAX 256

struct wb_conf {
    uint64_t window, aggregate; /* bytes */
    bool strict_o_direct, strict_order, pass_through;
};

/* The layer. */
struct wb {
    struct xlator *xl;
    atomic_bool is_stopping;      /* nothing is answered early any more */
    atomic_size_t held;           /* bytes of the buffers of all files' pieces */
    _Atomic uint64_t left, ended; /* pieces that are in queues; that have left them: counted before they are
                                     no longer in `left` */
    pthread_mutex_t lock;         /* for the wait for `left` to be 0; a leaf */
    pthread_cond_t idle;
};

/* A file's queue: the layer's context of an inode, while something is in it or was. `lock` is a leaf, and
 * guards all but what is set when it is made; `errors` may be read without it. */
struct wb_inode {
    struct wb *wb;
    struct inode *inode; /* whose context it is: no reference */
    pthread_mutex_t lock;
    struct cds_list_head pieces;  /* in the order in which they were answered */
    struct cds_list_head waiters; /* oldest first */
    uint64_t next;                /* number of the next piece */
    uint64_t ended_at;            /* the layer's `ended` when the last piece had ended */
    uint64_t bytes;               /* in pieces, or promised to a waiter */
    unsigned count;               /* pieces, and promises */
    unsigned sent;                /* pieces that are under way */
    atomic_uint errors;           /* pieces that have failed */
    unsigned reported;            /* `errors` when somebody was last told */
    int err;                      /* of the last that failed: -errno */
    bool is_job_posted;
    struct worker_job job; /* sends what may be sent; holds the inode and pins the graph while it is posted */
};

/* An open file that has written: the layer's context of an fd. Under the lock of its inode's queue. */
struct wb_file {
    unsigned seen; /* the queue's `errors` that it was told of */
};

/* Who waits, on the stack of its coroutine. */
struct wb_waiter {
    struct cds_list_head link;
    struct coroutine *self;
    uint64_t start, end;   /* for pieces that overlap this, */
    uint64_t before;       /* and are older than this number; set by wb_wait() */
    /* or, if room is not 0, for a piece of so many bytes of the window, which are its then */
    uint64_t room, window;
};

int wb_pools_init(void);
/* NULL: nothing was ever queued. */
struct wb_inode *wb_inode_get(struct wb *wb, struct inode *inode);
/* Made on first use; NULL: no memory. */
struct wb_inode *wb_inode_make(struct wb *wb, struct inode *inode);
void wb_inode_free(struct wb_inode *wi);
void wb_file_free(struct wb_file *file);

/* Would it have to wait? */
bool wb_has_to_wait(struct wb_inode *wi, struct wb_waiter *w);
/* In a coroutine that holds the inode. */
void wb_wait(struct wb_inode *wi, struct wb_waiter *w);
/* A piece, and so many bytes of the window, are the caller's. False: there is no room. */
bool wb_reserve(struct wb_inode *wi, uint64_t bytes, uint64_t window);
/* The write is in the queue, with what was reserved; its payload is the queue's. 0, or -errno: it is not,
 * and what was reserved is given back. */
int wb_queue(struct wb_inode *wi, struct call_stack *stk);
/* The error that this open file is to be told of, once: -errno or 0. */
int wb_take_error(struct wb_inode *wi, struct fd *fd);
/* Is something of the file in the queue, or has it left the queue since the layer had counted `ended`? */
bool wb_was_busy(struct wb_inode *wi, uint64_t ended);

#endif
