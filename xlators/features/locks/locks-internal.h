/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* locks: what the files of features/locks share (spec: brick 8).
 *
 *   inode ctx: struct lock_inode
 *       domains --> struct lock_domain "vol-replicate-0" --> inodelks: struct lock_queue
 *               |                                        \-> entrylks: struct lock_queue
 *               \-> struct lock_domain ...
 *       posix: struct lock_queue
 *       removals: unlink, rmdir and rename-over that wait or run
 *
 *   struct lock_queue: granted, waiting: each a list in the order in which they came, and a tree by range
 *   held, wanted: trees by owner of all granted and all waiting locks of the inode
 *
 * One mutex per inode guards all of it. No mutex is shared by two inodes, and none is held across a
 * call_stack_* function (but call_stack_park), a callback to a client or inode_unref(): what a change makes
 * due is collected in a struct lock_batch under the mutex and done after it (lock_inode_leave).
 *
 * What is done under the mutex is short, whatever clients do, for workers wait for it: a request, an unlock
 * and a wait are a few steps down a tree, O(log n). This is how:
 *   - A lock that waits hangs on ONE other that it waits for, its blocker: a granted lock, one that waits
 *     ahead of it, or a removal. Only when that goes away is the lock looked at again: it is granted, or
 *     finds another blocker. So an unlock looks at those that hung on what was freed, not at all.
 *   - A lock that waits for several prefers the one that came right before it: a crowd that waits for the
 *     same range is a chain, of which an unlock frees the first link only.
 *   - Those to be looked at are in the tree `pending`, by age. They are looked at in slices (SETTLE_MAX),
 *     between which the mutex is free.
 *
 * A lock that waits has a struct waiter: the parked call stack, packed (stack/call-pack.h). Granting moves
 * the waiter to the batch; the lock stays on the granted list and may be released by another thread at once,
 * so an answer never looks at the lock.
 *
 * Lifetimes: an inode with locks, waiters or removals holds a reference to itself, so a lock_inode is
 * forgotten only when empty. A lock points to its client without a reference: client_gone drops all locks of
 * the client before the client can go, and a client that is marked gone gets no new ones
 * (lock_inode_enter_for). It points to its fd without one: fd_closed does the same.
 */
#ifndef KILN_LOCKS_INTERNAL_H
#define KILN_LOCKS_INTERNAL_H

#include <pthread.h>
#include <urcu/list.h>

#include "base/tree.h"
#include "event/timer.h"
#include "event/worker.h"
#include "fs/brick-client.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "log/dump.h"
#include "mem/arena.h"
#include "stack/call-pack.h"
#include "stack/xlator.h"

struct locks_conf {
    bool notify_contention;
    int64_t notify_contention_delay; /* seconds */
    int64_t client_limit;       /* locks, granted and waiting, of one client on this brick */
    int64_t client_inode_limit; /* ... on one inode */
    char *asked[7];             /* for what is not built (graph/unbuilt.h) */
};

/* What the layer keeps of its brick. */
struct locks {
    pthread_mutex_t parked_mutex; /* a leaf; taken when a request is parked and when it goes on */
    struct cds_list_head parked;  /* of struct waiter, by `of_brick` */
};

/* A parked request: packed, or, if that cannot be, as it is. */
struct waiter {
    struct cds_list_head link; /* of a batch */
    union {
        struct worker_job job;
        struct timer again; /* there was no memory to unpack it */
    };
    union {
        struct packed_call *packed;
        struct call_stack *stk;
    };
    struct cds_list_head of_brick; /* once it is parked; the oldest first */
    uint32_t uid, gid;             /* the caller's, as is pid */
    int32_t pid;
    int error;       /* 0: granted */
    uint8_t fop;
    bool is_packed;
    bool is_removal; /* granted means: go on with the layer below; else the lock's reply is sent */
};

#define LOCK_TEXT_INLINE 96
#define LOCK_TEXT_MAX (2 * LK_OWNER_MAX + FOP_NAME_MAX + 1) /* two owners and a name; domains are shorter */

/* What a tree by range knows of a subtree: the lock that ends last, and that of any other owner that ends
 * last. So whether somebody else has a lock there that reaches a place is seen without looking at one's own,
 * however many those are. */
struct lock_reach {
    const struct lock *far, *other;
};

struct lock {
    struct cds_list_head link;    /* of the queue's granted or waiting list */
    struct tree_node by_range;    /* of the queue's granted_tree or waiting_tree */
    struct lock_reach any;        /* of by_range's subtree */
    struct lock_reach exclusive;  /* ... those locks that let no other owner in */
    uint64_t seq_min;             /* ... the oldest one's */
    struct tree_node by_owner;    /* of the inode's held or wanted */
    struct tree_node aside;       /* granted: perhaps of holders; waiting: perhaps of pending or behind */
    struct cds_list_head waiters; /* by their wait_link: who waits for this one */
    struct cds_list_head wait_link;
    struct lock_queue *queue;
    uint64_t seq;                 /* age, of the inode's locks */
    struct brick_client *client;  /* NULL: made inside the daemon */
    struct fd *fd;             /* posix: who placed it; NULL: an anonymous one */
    int64_t fd_nr;
    struct waiter *waiter;     /* NULL: granted */
    uint64_t contended_ns;     /* its holder was last told of a contention; 0: never */
    int64_t since;             /* wall clock seconds: asked for, then granted */
    /* inodelk, posix: inclusive; INT64_MAX: to the end of file. entrylk: see entrylk.c */
    int64_t start, end;
    uint32_t type;             /* FLOCK_READ, FLOCK_WRITE */
    int32_t pid;
    bool is_exclusive;         /* a read inodelk or posix lock is not */
    bool is_holder;            /* on holders: removals wait for it */
    bool is_pending, is_behind;
    struct lk_owner owner;
    struct fop_flock flock;    /* as sent; its owner too points to `text` */
    const char *name;          /* entrylk: NULL is the whole directory */
    char *long_text;           /* pooled, instead of text, if that is too small */
    char text[LOCK_TEXT_INLINE];
};

/* Posix locks of one fd: the fd's context of this layer, as a number. */
struct lock_fd_counts {
    uint32_t granted, waiting;
};

enum lock_kind { LOCK_INODE, LOCK_ENTRY, LOCK_POSIX };

/* inodelks or entrylks of one domain, or the inode's posix locks. */
struct lock_queue {
    struct cds_list_head granted, waiting;
    struct tree_node *granted_tree, *waiting_tree;
    unsigned count; /* of both */
    enum lock_kind kind;
    bool delays_removals;
};

#define DOMAIN_NAME_INLINE 96

struct lock_domain {
    struct cds_list_head link;
    struct cds_list_head idle_link; /* on the inode's idle_domains, since it had no lock */
    struct tree_node by_name;
    struct lock_queue inodelks, entrylks;
    char *name; /* inline_name, or pooled if longer */
    char inline_name[DOMAIN_NAME_INLINE];
};

struct lock_inode {
    pthread_mutex_t mutex;
    struct xlator *xl;
    struct inode *inode; /* no reference by itself; see `count` */
    unsigned count;      /* locks, removals and a settle_job; while not 0, a reference to inode is held */
    unsigned counts[LOCK_POSIX + 1]; /* locks of each kind */
    uint64_t last_seq;
    struct cds_list_head domains, idle_domains;
    struct tree_node *domains_tree;
    struct lock_queue posix;
    struct lock_fd_counts anonymous; /* posix locks without an fd */
    struct tree_node *held;          /* all granted ones, by client, owner, kind, queue, range */
    struct tree_node *wanted;        /* all that wait, by client, owner, kind, queue, age */
    struct tree_node *holders;       /* by client: granted locks that delay removals by others */
    /* by owner: waiting locks that hang on a waiting one or a removal; see lock-queue.c */
    struct tree_node *behind;
    struct tree_node *pending;       /* by age: waiting locks without a blocker, to be looked at */
    struct cds_list_head removals;
    struct worker_job settle_job; /* posted while is_settling */
    bool is_settling;
};

/* What has to be done once the mutex is released. */
struct lock_batch {
    struct xlator *xl;
    struct cds_list_head waiters;
    struct contention *contentions; /* on the arena */
    struct fd *fd; /* of a call that was parked; see lock_park_locked */
    struct call_stack *shell; /* of one that was packed; see waiter_pack_locked */
    unsigned unpins;
    bool settles; /* the inode's settle_job is to be posted */
    struct arena arena;
};

/* locks.c */
struct lock_inode *lock_inode_get(struct xlator *xl, struct inode *inode); /* makes it; NULL: no memory */
void lock_inode_enter(struct lock_inode *li, struct lock_batch *b, struct xlator *xl);
/* The same for a request that adds a lock. False: its client is gone, answer ENOTCONN (entered all the same).
 */
bool lock_inode_enter_for(struct lock_inode *li, struct lock_batch *b, struct xlator *xl,
                          const struct brick_client *client);
/* Releases the mutex and does what the batch holds. `li` may be gone on return. */
void lock_inode_leave(struct lock_inode *li, struct lock_batch *b);
void lock_inode_pin_locked(struct lock_inode *li);
void lock_inode_unpin_locked(struct lock_inode *li, struct lock_batch *b);
/* After locks went away or were granted: lets removals and waiters go on that now can. */
void lock_inode_settle_locked(struct lock_inode *li, struct lock_batch *b);
/* Whether one more lock of `client` is within the bounds: 0 or -ENOLCK. */
int lock_inode_has_room(const struct lock_inode *li, const struct brick_client *client);
/* For unlocking and asking: a lock on the stack that is never on a queue; its texts stay the call's. */
void lock_key(struct lock *key, const struct call_stack *stk, const char *name);
/* A lock as `stk` asks for it, on no list. NULL: no memory. */
struct lock *lock_new(struct xlator *xl, const struct call_stack *stk, const char *name);
struct lock *lock_copy(struct xlator *xl, const struct lock *from);
void lock_free(struct lock *l);
/* LOCK_TEXT_MAX bytes, for what has no room inline; mem_put() gives them back. NULL: no memory. */
char *lock_text_new(struct xlator *xl);
bool lock_same_owner(const struct lock *a, const struct lock *b);
bool lock_overlaps(const struct lock *a, const struct lock *b);
struct waiter *waiter_new(struct xlator *xl, struct call_stack *stk);
/* call_stack_park(), and it is told by each_parked from now on. Before it is packed. */
void waiter_park_locked(struct waiter *w);
/* A call that is parked gives up its record, arena and request. Its stack is gone when the mutex is released.
 */
void waiter_pack_locked(struct waiter *w, struct lock_batch *b);
/* The same for one that waits for a lock, which also gives up its fd: else RELEASE would not be the end of
 * the fd, whose locks and waiters it has to end. (Its inode stays: the lock that waits pins it.) */
void lock_park_locked(struct waiter *w, struct lock_batch *b);
/* Answers it (positive errno, 0: granted) when the mutex is released. */
void waiter_wake_locked(struct waiter *w, int error, struct lock_batch *b);

/* lock-tree.c: the trees that locks are in. All are under the inode's mutex. */
extern const struct tree_kind lock_by_range;
extern const struct tree_kind lock_held, lock_wanted; /* of lock.by_owner */
extern const struct tree_kind lock_aside_by_owner, lock_aside_by_client, lock_aside_by_age;
static inline struct lock *
lock_aside(struct tree_node *n)
{
    return n ? caa_container_of(n, struct lock, aside) : NULL;
}
/* The first, by start, of a tree by range that conflicts with `l`; NULL: none. */
struct lock *lock_tree_conflict(struct tree_node *root, const struct lock *l);
/* Any one of them that is older. */
struct lock *lock_tree_older_conflict(struct tree_node *root, const struct lock *l);
/* Calls fn for each that overlaps [start, end], until it says false. False: it has. */
typedef bool (*lock_each)(struct lock *l, void *arg);
bool lock_tree_each(struct tree_node *root, int64_t start, int64_t end, lock_each fn, void *arg);
/* In held or wanted, the first: of l's owner; of its locks in this queue (of wanted: the oldest). NULL: none.
 */
struct lock *lock_tree_of_owner(struct tree_node *root, const struct lock *l);
struct lock *lock_tree_of_owner_in(struct tree_node *root, const struct lock *l, const struct lock_queue *q);
/* In held: the one that ends first at or behind `at`, of posix locks, of which one owner's don't overlap. */
struct lock *lock_tree_of_owner_at(struct tree_node *root, const struct lock *l, const struct lock_queue *q,
                                   int64_t at);
/* ... of l's queue, the oldest with exactly l's range; name and type of an entrylk must agree, too. */
struct lock *lock_tree_same(struct tree_node *root, const struct lock *l);
struct lock *lock_tree_of_client(struct tree_node *root, const struct brick_client *client);
uint32_t lock_tree_count_of_client(const struct tree_node *root, const struct brick_client *client);
/* In `behind`: one of l's owner for which it makes a difference that `l` was granted on `q`. */
struct lock *lock_tree_behind(struct tree_node *root, const struct lock *l, const struct lock_queue *q);

/* lock-domain.c */
int lock_domain_pool_init(void);
/* What an inodelk and an entrylk must say both: a domain, and who asks. 0 or -EINVAL. */
int lock_domain_check(const struct call_stack *stk);
struct lock_domain *lock_domain_find(const struct lock_inode *li, const char *name);
/* Makes it. Who then adds no lock to it says so by lock_domain_idle(). NULL: no memory. */
struct lock_domain *lock_domain_get(struct lock_inode *li, const char *name, struct xlator *xl);
/* `q`, an inodelk or entrylk queue, has got no lock, or has none any more: its domain, if it is empty, is
 * pruned. */
void lock_domain_idle(struct lock_inode *li, struct lock_queue *q);
/* Frees those that have no locks. */
void lock_domains_prune(struct lock_inode *li);

/* lock-queue.c */
void lock_queue_init(struct lock_queue *q, enum lock_kind kind);
bool lock_conflicts(const struct lock *a, const struct lock *b);
/* On the granted list and its trees. The waiters it has stay on it. */
void lock_hold_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l);
/* On the waiting list, hanging on the first of `blocker`'s waiters. */
void lock_await_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l,
                       struct cds_list_head *blocker, bool is_behind);
/* The posix locks of `fd`, NULL: of all anonymous ones. */
struct lock_fd_counts lock_fd_counts(const struct lock_inode *li, struct fd *fd);
/* Off all lists and trees. Those who waited for it are pending. */
void lock_take_out_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b);
/* The same for good; one that waits is answered with `error`. */
void lock_drop_locked(struct lock_inode *li, struct lock *l, int error, struct lock_batch *b);
/* A granted one gets another range, within its old one. Those who waited for it are pending. */
void lock_resize_locked(struct lock_inode *li, struct lock *l, int64_t start, int64_t end);
/* All that hang on `waiters` are to be looked at. */
void lock_release_waiters_locked(struct lock_inode *li, struct cds_list_head *waiters);
/* Looks at pending ones, the oldest first, at most `most` of them. */
void lock_examine_locked(struct lock_inode *li, unsigned most, struct lock_batch *b);
/* A request for a lock in `domain`, parked if need be. Takes `l` over. What a fop function returns. */
xl_verdict lock_queue_request(struct xlator *xl, struct call_stack *stk, struct inode *inode,
                              const char *domain, enum lock_kind kind, struct lock *l, bool may_wait);
xl_verdict lock_queue_unlock(struct xlator *xl, struct inode *inode, const char *domain, enum lock_kind kind,
                             struct lock *key);
/* Takes out each lock that `match` says yes to: waiting ones are answered with `error`. How many of each,
 * added. */
typedef bool (*lock_match)(const struct lock *l, const void *arg);
void lock_queue_drop_locked(struct lock_inode *li, struct lock_queue *q, lock_match match, const void *arg,
                            int error, struct lock_batch *b, unsigned *granted, unsigned *waiting);

/* inodelk.c, entrylk.c, posixlk.c */
xl_verdict locks_inodelk(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_entrylk(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_lk(struct xlator *xl, struct call_stack *stk);
/* Start, len as on the wire -> first and last byte. 0, -EINVAL, -EOVERFLOW. */
int lock_range(int64_t start, int64_t len, int64_t *first, int64_t *last);

/* Puts `l`, which conflicts with nothing, on the granted list in place of what its owner had there. 0,
 * -ENOMEM or -ENOLCK (nothing has changed). */
int posixlk_set_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b);
/* The tag of an entrylk's name, as a range. */
void entrylk_range(const char *name, int64_t *start, int64_t *end);

/* removal.c */
int removal_pool_init(void);
xl_verdict locks_unlink(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_rename(struct xlator *xl, struct call_stack *stk);
/* A removal waits or runs that `l`, of a queue that delays removals, would delay once granted: who hangs on
 * that. NULL: none. */
struct cds_list_head *removal_ahead_of(struct lock_inode *li, const struct lock *l);
void removal_settle_locked(struct lock_inode *li, struct lock_batch *b);
void removal_drop_client_locked(struct lock_inode *li, const struct brick_client *client,
                                struct lock_batch *b);
unsigned removal_count(const struct lock_inode *li);

/* unfinished.c */
/* Where replicate's lock on an object's attributes begins; it has no end. */
#define METADATA_START (INT64_MAX - 1)
/* A granted lock under which a replicate client changes the object's attributes. */
bool lock_is_of_attributes(const struct lock *l);
/* Counts the object's metadata as dirty, so that a self-heal daemon compares the replicas. Returns before
 * that is done. In a read section, without locks. */
void unfinished_mark(struct xlator *xl, struct inode *inode);

/* contention.c */
/* Tells the holder of `l`, unless told within the last notify-contention-delay seconds. */
void contention_note_locked(struct lock_inode *li, struct lock *l, const char *domain, struct lock_batch *b);
/* ... of all granted inodelks that conflict with `l`, a new request. Of at most so many, for it is done under
 * the mutex: who has more of them than that meets the rest with a later request. */
#define CONTENTIONS_MAX 1024
void contention_note_all_locked(struct lock_inode *li, const struct lock_queue *q, const struct lock *l,
                                struct lock_batch *b);
void contention_send(struct lock_batch *b, const struct gfid *gfid);

/* counts.c */
xl_verdict locks_counts(struct xlator *xl, struct call_stack *stk);
/* Puts the running layer on the reply's way if the request asks for counts. 0 or -ENOMEM. */
int locks_counts_prepare(struct xlator *xl, struct call_stack *stk);

/* clrlk.c, lockinfo.c */
xl_verdict locks_getxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict lockinfo_get(struct xlator *xl, struct call_stack *stk);
xl_verdict lockinfo_set(struct xlator *xl, struct call_stack *stk, const struct dict_pair *pair);

/* lock-dump.c */
void locks_dump(struct xlator *xl, struct dump *dump);

/* Implemented by protocol/server: a callback to one of the client's connections; nothing is sent if it has
 * none. */
void brick_client_callback_inodelk_contention(struct brick_client *client, const struct gfid *gfid,
                                              const struct fop_flock *flock, uint32_t pid,
                                              const char *domain);

#endif
