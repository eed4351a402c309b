/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* locks: what the files of features/locks share (spec: brick 8).
 *
 *   inode ctx: struct lock_inode
 *       domains --> struct lock_domain "vol-replicate-0" --> inodelks:  granted | blocked (FIFO)
 *               |                                        \-> entrylks:  granted | blocked
 *               \-> struct lock_domain ...
 *       posix_granted | posix_blocked (FIFO)
 *       removals: unlink, rmdir and rename-over that wait or run
 *
 * One mutex per inode guards all of it. No mutex is shared by two inodes, and none is held across a call_stack_*
 * function, a callback to a client or inode_unref(): what a change makes due is collected in a struct lock_batch under the
 * mutex and done after it (lock_inode_leave).
 *
 * A lock that waits has a struct waiter: the parked call stack. Granting moves the waiter to the batch; the lock stays on
 * the granted list and may be released by another thread at once, so an answer never looks at the lock.
 *
 * Lifetimes: an inode with locks, waiters or removals holds a reference to itself, so a lock_inode is forgotten only when
 * empty. A lock points to its client without a reference: client_gone drops all locks of the client before the client can go,
 * and a client that is marked gone gets no new ones (lock_inode_enter_for).
 */
#ifndef KILN_LOCKS_INTERNAL_H
#define KILN_LOCKS_INTERNAL_H

#include <pthread.h>
#include <urcu/list.h>

#include "event/worker.h"
#include "fs/client.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "log/dump.h"
#include "mem/arena.h"
#include "stack/xlator.h"

struct locks_conf {
    bool notify_contention;
    int64_t notify_contention_delay; /* seconds */
};

/* A parked request. */
struct waiter {
    struct cds_list_head link; /* of a batch */
    struct worker_job job;
    struct call_stack *stk;
    int error;       /* 0: granted */
    bool is_removal; /* granted means: go on with the layer below; else the lock's reply is sent */
};

#define LOCK_TEXT_INLINE 96
#define LOCK_TEXT_MAX (2 * LK_OWNER_MAX + FOP_NAME_MAX + 1) /* two owners and a name; domains are shorter */

struct lock {
    struct cds_list_head link; /* on a granted or a blocked list */
    struct client *client;     /* NULL: made inside the daemon */
    struct fd *fd;             /* posix: who placed it, only compared; NULL: an anonymous one */
    int64_t fd_nr;
    struct waiter *waiter;     /* NULL: granted */
    uint64_t contended_ns;     /* its holder was last told of a contention; 0: never */
    int64_t since;             /* wall clock seconds: asked for, then granted */
    int64_t start, end;        /* inodelk, posix: inclusive; INT64_MAX: to the end of file */
    uint32_t type;             /* FLOCK_READ, FLOCK_WRITE */
    int32_t pid;
    struct lk_owner owner;
    struct fop_flock flock;    /* as sent; its owner too points to `text` */
    const char *name;          /* entrylk: NULL is the whole directory */
    char *long_text;           /* pooled, instead of text, if that is too small */
    char text[LOCK_TEXT_INLINE];
};

/* inodelks or entrylks of one domain: same rules, but for what a conflict and what an exact match is. */
struct lock_queue {
    struct cds_list_head granted, blocked;
    unsigned count; /* of both lists */
    bool is_entry;
};

#define DOMAIN_NAME_INLINE 96

struct lock_domain {
    struct cds_list_head link;
    struct lock_queue inodelks, entrylks;
    char *name; /* inline_name, or pooled if longer */
    char inline_name[DOMAIN_NAME_INLINE];
};

struct lock_inode {
    pthread_mutex_t mutex;
    struct inode *inode; /* no reference by itself; see `count` */
    unsigned count;      /* locks and removals; while not 0, a reference to inode is held */
    unsigned inodelk_count, entrylk_count, posix_count;
    struct cds_list_head domains;
    struct cds_list_head posix_granted, posix_blocked;
    struct cds_list_head removals;
};

/* What has to be done once the mutex is released. */
struct lock_batch {
    struct xlator *xl;
    struct cds_list_head waiters;
    struct contention *contentions; /* on the arena */
    struct fd *fd; /* of a call that was parked; see lock_park_locked */
    unsigned unpins;
    struct arena arena;
};

/* locks.c */
struct lock_inode *lock_inode_get(struct xlator *xl, struct inode *inode); /* makes it; NULL: no memory */
struct lock_inode *lock_inode_new(struct xlator *xl, struct inode *inode);
void lock_inode_free(struct lock_inode *li);
int locks_pools_init(void);
void lock_inode_enter(struct lock_inode *li, struct lock_batch *b, struct xlator *xl);
/* The same for a request that adds a lock. False: its client is gone, answer ENOTCONN (entered all the same). */
bool lock_inode_enter_for(struct lock_inode *li, struct lock_batch *b, struct xlator *xl, const struct client *client);
/* Releases the mutex and does what the batch holds. `li` may be gone on return. */
void lock_inode_leave(struct lock_inode *li, struct lock_batch *b);
void lock_inode_pin_locked(struct lock_inode *li);
void lock_inode_unpin_locked(struct lock_inode *li, struct lock_batch *b);
/* After locks went away: lets removals and waiters go on that now can, and drops empty domains. */
void lock_inode_settle_locked(struct lock_inode *li, struct lock_batch *b);
/* A lock as `stk` asks for it, on no list. NULL: no memory. */
struct lock *lock_new(struct xlator *xl, const struct call_stack *stk, const char *name);
struct lock *lock_copy(struct xlator *xl, const struct lock *from);
void lock_free(struct lock *l);
/* LOCK_TEXT_MAX bytes, for what has no room inline; mem_put() gives them back. NULL: no memory. */
char *lock_text_new(struct xlator *xl);
bool lock_same_owner(const struct lock *a, const struct lock *b);
bool lock_owned_by(const struct lock *l, const struct client *client, const struct lk_owner *owner);
bool lock_overlaps(const struct lock *a, const struct lock *b);
struct waiter *waiter_new(struct xlator *xl, struct call_stack *stk);
/* A call about to be parked gives up its fd: else RELEASE would not be the end of the fd, whose locks and waiters it has to
 * end. (Its inode stays: the lock that waits pins it.) */
void lock_park_locked(struct call_stack *stk, struct lock_batch *b);
/* Answers it (positive errno, 0: granted) when the mutex is released. */
void waiter_wake_locked(struct waiter *w, int error, struct lock_batch *b);

/* lock-queue.c */
int lock_queue_pool_init(void);
struct lock_domain *lock_domain_find(struct lock_inode *li, const char *name);
struct lock_domain *lock_domain_get(struct lock_inode *li, const char *name, struct xlator *xl); /* NULL: no memory */
void lock_domain_free(struct lock_domain *d);
void lock_queue_init(struct lock_queue *q, bool is_entry);
bool lock_queue_conflict(const struct lock_queue *q, const struct lock *a, const struct lock *b);
/* A request for a lock in `domain`, parked if need be. Takes `l` over. What a fop function returns. */
int lock_queue_request(struct xlator *xl, struct call_stack *stk, struct inode *inode, const char *domain,
                       bool is_entry, struct lock *l, bool may_wait);
int lock_queue_unlock(struct xlator *xl, struct call_stack *stk, struct inode *inode, const char *domain,
                      bool is_entry, struct lock *key);
void lock_queue_grant_locked(struct lock_inode *li, struct lock_queue *q, struct lock_batch *b);
/* Takes out each lock that `match` says yes to: waiting ones are answered with `error`. How many of each, added. */
typedef bool (*lock_match)(const struct lock *l, const void *arg);
void lock_queue_drop_locked(struct lock_inode *li, struct lock_queue *q, lock_match match, const void *arg, int error,
                            struct lock_batch *b, unsigned *granted, unsigned *blocked);

/* inodelk.c, entrylk.c, posixlk.c */
int locks_inodelk(struct xlator *xl, struct call_stack *stk);
int locks_entrylk(struct xlator *xl, struct call_stack *stk);
int locks_lk(struct xlator *xl, struct call_stack *stk);
/* Start, len as on the wire -> first and last byte. 0, -EINVAL, -EOVERFLOW. */
int lock_range(int64_t start, int64_t len, int64_t *first, int64_t *last);

/* Puts `l`, which conflicts with nothing, on the granted list in place of what its owner had there. 0 or -ENOMEM (nothing
 * has changed). */
int posixlk_set_locked(struct xlator *xl, struct lock_inode *li, struct lock *l, struct lock_batch *b);
/* Takes the range of `key` out of what its owner has granted. 0 or -ENOMEM. */
int posixlk_clear_locked(struct xlator *xl, struct lock_inode *li, const struct lock *key, struct lock_batch *b);
void posixlk_grant_locked(struct lock_inode *li, struct lock_batch *b);
const struct lock *posixlk_conflict(const struct lock_inode *li, const struct lock *l);
void posixlk_drop_locked(struct lock_inode *li, lock_match match, const void *arg, int error, struct lock_batch *b,
                         unsigned *granted, unsigned *blocked);

/* removal.c */
int removal_pool_init(void);
int locks_unlink(struct xlator *xl, struct call_stack *stk);
int locks_rename(struct xlator *xl, struct call_stack *stk);
/* A removal waits or runs that `l`, once granted, would have delayed. */
bool removal_is_ahead_of(const struct lock_inode *li, const struct lock *l);
void removal_settle_locked(struct lock_inode *li, struct lock_batch *b);
void removal_drop_client_locked(struct lock_inode *li, const struct client *client, struct lock_batch *b);
unsigned removal_count(const struct lock_inode *li);

/* contention.c */
/* Tells the holder of `l`, unless told within the last notify-contention-delay seconds. */
void contention_note_locked(struct lock_inode *li, struct lock *l, const char *domain, struct lock_batch *b);
void contention_send(struct lock_batch *b, const struct gfid *gfid);

/* counts.c */
int locks_counts(struct xlator *xl, struct call_stack *stk);
/* Puts the running layer on the reply's way if the request asks for counts. 0 or -ENOMEM. */
int locks_counts_prepare(struct xlator *xl, struct call_stack *stk);

/* clrlk.c, lockinfo.c */
int locks_getxattr(struct xlator *xl, struct call_stack *stk);
int locks_setxattr(struct xlator *xl, struct call_stack *stk);
int lockinfo_get(struct xlator *xl, struct call_stack *stk);
int lockinfo_set(struct xlator *xl, struct call_stack *stk, const struct dict_pair *pair);

/* lock-dump.c */
void locks_dump(struct xlator *xl, struct dump *dump);

/* Implemented by protocol/server: a callback to one of the client's connections; nothing is sent if it has none. */
void client_callback_inodelk_contention(struct client *client, const struct gfid *gfid, const struct fop_flock *flock,
                                        uint32_t pid, const char *domain);

#endif
