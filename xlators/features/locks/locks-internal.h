/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* locks: the declarations that the files of features/locks share (spec: brick 8).
 *
 *   inode ctx: struct lock_inode
 *       domains --> struct lock_domain "vol-replicate-0" --> inodelks: struct lock_queue
 *               |                                        \-> entrylks: struct lock_queue
 *               \-> struct lock_domain ...
 *       posix: struct lock_queue
 *       removals: unlink, rmdir and rename-over that wait or run
 *
 *   struct lock_queue: granted, waiting: each a list in the order of arrival, and a tree by range
 *   held, wanted: trees by owner of all granted and all waiting locks of the inode
 *
 * Each inode has a mutex that guards these structures. No mutex is shared by two inodes, and none is held
 * across a call_stack_* function (except call_stack_park), a callback to a client or inode_unref(). A change
 * collects such actions in a struct lock_batch under the mutex, and lock_inode_leave() executes them after
 * releasing it.
 *
 * The work under the mutex must be short for any behaviour of clients, because worker threads wait for the
 * mutex. A request, an unlock and a wait each take a few steps down a tree, O(log n):
 *   - A waiting lock hangs on a SINGLE blocker: a granted lock, a lock that waits ahead, or a removal. Only
 *     when the blocker goes away is the waiting lock examined again, and granted or given another blocker. So
 *     an unlock examines only the locks that hung on the freed lock.
 *   - A lock that waits for several locks prefers the latest arrival as its blocker. A
 *     crowd that waits for the same range is a chain, of which an unlock frees only the first link.
 *   - The locks to be examined are in the tree `pending`, by age. They are examined in slices (SETTLE_MAX);
 *     between slices the mutex is free.
 *
 * A waiting lock has a call-stub with the parked call stack, packed (stack/call-pack.h). Granting moves the
 * stub to the batch. The lock stays on the granted list, where another thread may release it at once, so
 * sending the reply never accesses the lock.
 *
 * Lifetimes: an inode with locks, waiters or removals holds a reference to itself, so a lock_inode is
 * forgotten only when it is empty. A lock points to its client without a reference: client_gone drops all
 * locks of the client before the client can be freed, and a client that is marked gone gets no new locks
 * (lock_inode_enter_for). A lock points to its fd without a reference in the same way: fd_closed drops all
 * locks of the fd.
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

/* `mark` of a stub: the step that follows when it is woken without an error. */
enum waiter_mark {
    WAITER_ANSWERS, /* the reply to the lock request is sent */
    WAITER_GOES_ON, /* a removal: the call continues with the layer below */
};

struct locks_conf {
    bool notify_contention;
    int64_t notify_contention_delay; /* seconds */
    int64_t client_limit;       /* bound on the granted and waiting locks of one client on this brick */
    int64_t client_inode_limit; /* bound on the locks of one client on one inode */
    char *asked[7];             /* for options that Kiln does not implement (graph/unbuilt.h) */
};

/* The layer's state for its brick. */
struct locks {
    pthread_mutex_t parked_mutex; /* a leaf lock; taken when a request is parked and when it continues */
    struct cds_list_head parked;  /* of struct call_stub, by `of_brick`; the oldest first */
};

#define LOCK_TEXT_INLINE 96
#define LOCK_TEXT_MAX (2 * LK_OWNER_MAX + FOP_NAME_MAX + 1) /* two owners and a name; domains are shorter */

/* Summary of a subtree of a tree by range: the lock that ends last, and the lock of any other owner that ends
 * last. So a search sees whether another owner has a lock that reaches an offset without visiting the locks
 * of its own owner, however many these are. */
struct lock_reach {
    const struct lock *far, *other;
};

struct lock {
    struct cds_list_head link;    /* of the queue's granted or waiting list */
    struct tree_node by_range;    /* of the queue's granted_tree or waiting_tree */
    struct lock_reach any;        /* of by_range's subtree */
    struct lock_reach exclusive;  /* the same, of the locks that exclude every other owner */
    uint64_t seq_min;             /* the smallest seq of the subtree */
    struct tree_node by_owner;    /* of the inode's held or wanted */
    struct tree_node aside; /* a granted lock may be in holders; a waiting lock may be in pending or behind */
    struct cds_list_head waiters; /* the locks that wait for this one, by their wait_link */
    struct cds_list_head wait_link;
    struct lock_queue *queue;
    uint64_t seq;                 /* age, among the inode's locks */
    struct brick_client *client;  /* NULL: an internal request of the daemon */
    struct fd *fd;             /* posix: the fd that placed the lock; NULL: an anonymous one */
    int64_t fd_nr;
    struct call_stub *waiter;     /* NULL: granted */
    uint64_t contended_ns;     /* when its holder last got a contention callback; 0: never */
    int64_t since;             /* wall clock seconds: of the request, then of the grant */
    /* inodelk, posix: inclusive; INT64_MAX: to the end of file. entrylk: see entrylk.c */
    int64_t start, end;
    uint32_t type;             /* FLOCK_READ, FLOCK_WRITE */
    int32_t pid;
    bool is_exclusive;         /* false only for a read inodelk or a read posix lock */
    bool is_holder;            /* in holders: removals wait for this lock */
    bool is_pending, is_behind;
    struct lk_owner owner;
    struct fop_flock flock;    /* as sent; its owner points to `text` too */
    const char *name;          /* entrylk: NULL is the whole directory */
    char *long_text;           /* pooled; replaces `text` if that is too small */
    char text[LOCK_TEXT_INLINE];
};

/* Number of the posix locks of one fd: the fd's context of this layer, stored as a number. */
struct lock_fd_counts {
    uint32_t granted, waiting;
};

enum lock_kind { LOCK_INODE, LOCK_ENTRY, LOCK_POSIX };

/* The inodelks or entrylks of one domain, or the inode's posix locks. */
struct lock_queue {
    struct cds_list_head granted, waiting;
    struct tree_node *granted_tree, *waiting_tree;
    unsigned count; /* of granted and waiting locks */
    enum lock_kind kind;
    bool delays_removals;
};

#define DOMAIN_NAME_INLINE 96

struct lock_domain {
    struct cds_list_head link;
    struct cds_list_head idle_link; /* on the inode's idle_domains while the domain has no lock */
    struct tree_node by_name;
    struct lock_queue inodelks, entrylks;
    char *name; /* inline_name, or pooled if longer */
    char inline_name[DOMAIN_NAME_INLINE];
};

struct lock_inode {
    pthread_mutex_t mutex;
    struct xlator *xl;
    struct inode *inode; /* without a reference of its own; see `count` */
    /* number of locks and removals, plus one for settle_job; while it is not 0, a reference to inode is held
     */
    unsigned count;
    unsigned counts[LOCK_POSIX + 1]; /* locks of each kind */
    uint64_t last_seq;
    struct cds_list_head domains, idle_domains;
    struct tree_node *domains_tree;
    struct lock_queue posix;
    struct lock_fd_counts anonymous; /* posix locks without an fd */
    struct tree_node *held;          /* all granted locks, by client, owner, kind, queue, range */
    struct tree_node *wanted;        /* all waiting locks, by client, owner, kind, queue, age */
    struct tree_node *holders;       /* by client: the granted locks that delay removals by other clients */
    /* by owner: waiting locks that hang on a waiting lock or a removal; see lock-queue.c */
    struct tree_node *behind;
    struct tree_node *pending;       /* by age: waiting locks without a blocker, to be examined */
    struct cds_list_head removals;
    struct worker_job settle_job; /* posted while is_settling */
    bool is_settling;
};

/* The actions to execute after the mutex is released. */
struct lock_batch {
    struct xlator *xl;
    struct cds_list_head waiters;
    struct contention *contentions; /* on the arena */
    struct fd *fd; /* of a call that was parked; see lock_park_locked */
    struct call_stack *shell; /* the stack of a call that was packed; see waiter_pack_locked */
    unsigned unpins;
    bool settles; /* the inode's settle_job must be posted */
    struct arena arena;
};

/* locks.c */
/* creates the context if necessary; NULL: no memory */
struct lock_inode *lock_inode_get(struct xlator *xl, struct inode *inode);
void lock_inode_enter(struct lock_inode *li, struct lock_batch *b, struct xlator *xl);
/* The same for a request that adds a lock. Returns false if the client is gone: the mutex is taken, and the
 * caller answers ENOTCONN.
 */
bool lock_inode_enter_for(struct lock_inode *li, struct lock_batch *b, struct xlator *xl,
                          const struct brick_client *client);
/* Releases the mutex and executes the batch. `li` may be freed on return. */
void lock_inode_leave(struct lock_inode *li, struct lock_batch *b);
void lock_inode_pin_locked(struct lock_inode *li);
void lock_inode_unpin_locked(struct lock_inode *li, struct lock_batch *b);
/* Examines pending locks after locks were released or granted: grants waiting locks and starts removals that
 * no longer have to wait. */
void lock_inode_settle_locked(struct lock_inode *li, struct lock_batch *b);
/* Checks the bounds for one more lock of `client`. Returns 0 or -ENOLCK. */
int lock_inode_has_room(const struct lock_inode *li, const struct brick_client *client);
/* Fills a lock on the stack for unlocking and searching. The lock is never on a queue; its texts belong to
 * the call. */
void lock_key(struct lock *key, const struct call_stack *stk, const char *name);
/* Creates the lock that `stk` requests, on no list. NULL: no memory. */
struct lock *lock_new(struct xlator *xl, const struct call_stack *stk, const char *name);
struct lock *lock_copy(struct xlator *xl, const struct lock *from);
void lock_free(struct lock *l);
/* Returns LOCK_TEXT_MAX bytes for a text that does not fit inline; mem_put() frees them. NULL: no memory. */
char *lock_text_new(struct xlator *xl);
bool lock_same_owner(const struct lock *a, const struct lock *b);
bool lock_overlaps(const struct lock *a, const struct lock *b);
/* A stub whose `mark` says what follows (enum waiter_mark); `error` 0: the lock is granted. NULL: no
 * memory. */
struct call_stub *waiter_new(struct xlator *xl, struct call_stack *stk);
/* Calls call_stack_park(), and lists the request for each_parked. Must run before the request is packed. */
void waiter_park_locked(struct call_stub *w);
/* Packs a parked call, which frees its record, arena and request. The call's stack is freed when the mutex is
 * released.
 */
void waiter_pack_locked(struct call_stub *w, struct lock_batch *b);
/* The same for a call that waits for a lock. It also drops the call's fd: otherwise RELEASE would not be the
 * end of the fd, and that end must drop the fd's locks and waiters. (The inode stays, because the waiting
 * lock pins it.) */
void lock_park_locked(struct call_stub *w, struct lock_batch *b);
/* Answers the request when the mutex is released (positive errno, 0: granted). */
void waiter_wake_locked(struct call_stub *w, int error, struct lock_batch *b);

/* lock-tree.c: the trees of locks. All of them are protected by the inode's mutex. */
extern const struct tree_kind lock_by_range;
extern const struct tree_kind lock_held, lock_wanted; /* of lock.by_owner */
extern const struct tree_kind lock_aside_by_owner, lock_aside_by_client, lock_aside_by_age;
static inline struct lock *
lock_aside(struct tree_node *n)
{
    return n ? caa_container_of(n, struct lock, aside) : NULL;
}
/* Returns the first lock, by start, in a tree by range that conflicts with `l`; NULL: none. */
struct lock *lock_tree_conflict(struct tree_node *root, const struct lock *l);
/* Returns any conflicting lock that is older; NULL: none. */
struct lock *lock_tree_older_conflict(struct tree_node *root, const struct lock *l);
/* Calls fn for each lock that overlaps [start, end], until fn returns false. Returns false if fn did. */
typedef bool (*lock_each)(struct lock *l, void *arg);
bool lock_tree_each(struct tree_node *root, int64_t start, int64_t end, lock_each fn, void *arg);
/* Returns the first lock of l's owner in held or wanted; the second function only searches this queue (in
 * wanted: the oldest). NULL: none.
 */
struct lock *lock_tree_of_owner(struct tree_node *root, const struct lock *l);
struct lock *lock_tree_of_owner_in(struct tree_node *root, const struct lock *l, const struct lock_queue *q);
/* In held: returns the posix lock that ends first at or behind `at`. The posix locks of one owner don't
 * overlap. */
struct lock *lock_tree_of_owner_at(struct tree_node *root, const struct lock *l, const struct lock_queue *q,
                                   int64_t at);
/* In l's queue: returns the owner's oldest lock with exactly l's range; name and type of an entrylk must
 * match too. */
struct lock *lock_tree_same(struct tree_node *root, const struct lock *l);
struct lock *lock_tree_of_client(struct tree_node *root, const struct brick_client *client);
uint32_t lock_tree_count_of_client(const struct tree_node *root, const struct brick_client *client);
/* In `behind`: returns a lock of l's owner that must be examined because `l` was granted on `q`. */
struct lock *lock_tree_behind(struct tree_node *root, const struct lock *l, const struct lock_queue *q);

/* lock-domain.c */
int lock_domain_pool_init(void);
/* Checks that an inodelk or entrylk names a domain and an owner. Returns 0 or -EINVAL. */
int lock_domain_check(const struct call_stack *stk);
struct lock_domain *lock_domain_find(const struct lock_inode *li, const char *name);
/* The domain of a queue of inodelks or entrylks. */
struct lock_domain *lock_queue_domain(const struct lock_queue *q);
/* Finds or creates the domain. A caller that then adds no lock to it calls lock_domain_idle(). NULL: no
 * memory. */
struct lock_domain *lock_domain_get(struct lock_inode *li, const char *name, struct xlator *xl);
/* `q`, an inodelk or entrylk queue, has no lock: schedules its domain for pruning if the domain is empty. */
void lock_domain_idle(struct lock_inode *li, struct lock_queue *q);
/* Frees the domains without locks. */
void lock_domains_prune(struct lock_inode *li);

/* lock-queue.c */
void lock_queue_init(struct lock_queue *q, enum lock_kind kind);
bool lock_conflicts(const struct lock *a, const struct lock *b);
/* Puts the lock on the granted list and its trees. Its waiters keep hanging on it. */
void lock_hold_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l);
/* Puts the lock on the waiting list. `blocker` is the list of the blocker's waiters. */
void lock_await_locked(struct lock_inode *li, struct lock_queue *q, struct lock *l,
                       struct cds_list_head *blocker, bool is_behind);
/* Counts the posix locks of `fd`; NULL: of all anonymous fds. */
struct lock_fd_counts lock_fd_counts(const struct lock_inode *li, struct fd *fd);
/* Removes the lock from all lists and trees. Its waiters become pending. */
void lock_take_out_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b);
/* Removes and frees the lock. A waiting one is answered with `error`. */
void lock_drop_locked(struct lock_inode *li, struct lock *l, int error, struct lock_batch *b);
/* Shrinks a granted lock to a range within the old one. Its waiters become pending. */
void lock_resize_locked(struct lock_inode *li, struct lock *l, int64_t start, int64_t end);
/* Makes all locks that hang on `waiters` pending. */
void lock_release_waiters_locked(struct lock_inode *li, struct cds_list_head *waiters);
/* Examines at most `most` pending locks, the oldest first. */
void lock_examine_locked(struct lock_inode *li, unsigned most, struct lock_batch *b);
/* Requests a lock in `domain`, and parks the call if it must wait. Takes ownership of `l`. Returns the
 * verdict of a fop function. */
xl_verdict lock_queue_request(struct xlator *xl, struct call_stack *stk, struct inode *inode,
                              const char *domain, enum lock_kind kind, struct lock *l, bool may_wait);
xl_verdict lock_queue_unlock(struct xlator *xl, struct inode *inode, const char *domain, enum lock_kind kind,
                             struct lock *key);
/* Drops each lock for which `match` returns true; waiting ones are answered with `error`. Adds the numbers to
 * *granted and *waiting. */
typedef bool (*lock_match)(const struct lock *l, const void *arg);
void lock_queue_drop_locked(struct lock_inode *li, struct lock_queue *q, lock_match match, const void *arg,
                            int error, struct lock_batch *b, unsigned *granted, unsigned *waiting);

/* inodelk.c, entrylk.c, posixlk.c */
xl_verdict locks_inodelk(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_entrylk(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_lk(struct xlator *xl, struct call_stack *stk);
/* Converts start and len of the wire to the first and last byte. Returns 0, -EINVAL or -EOVERFLOW. */
int lock_range(int64_t start, int64_t len, int64_t *first, int64_t *last);

/* Grants `l`, which conflicts with no lock. It replaces the owner's locks in its range. Returns 0, or -ENOMEM
 * or -ENOLCK (nothing has changed). */
int posixlk_set_locked(struct lock_inode *li, struct lock *l, struct lock_batch *b);
/* Returns the tag of an entrylk's name, as a range. */
void entrylk_range(const char *name, int64_t *start, int64_t *end);

/* removal.c */
int removal_pool_init(void);
xl_verdict locks_unlink(struct xlator *xl, struct call_stack *stk);
xl_verdict locks_rename(struct xlator *xl, struct call_stack *stk);
/* If a removal waits or runs that `l` would delay once it was granted, returns the list of the locks that
 * hang on that removal. `l` belongs to a queue that delays removals. NULL: no such removal. */
struct cds_list_head *removal_ahead_of(struct lock_inode *li, const struct lock *l);
void removal_settle_locked(struct lock_inode *li, struct lock_batch *b);
void removal_drop_client_locked(struct lock_inode *li, const struct brick_client *client,
                                struct lock_batch *b);
unsigned removal_count(const struct lock_inode *li);
/* Those that wait. */
unsigned removal_waiting(const struct lock_inode *li);

/* unfinished.c */
/* Where replicate's lock on an object's attributes begins; it has no end. */
#define METADATA_START (INT64_MAX - 1)
/* A granted lock under which a replicate client changes the object's attributes. */
bool lock_is_of_attributes(const struct lock *l);
/* A granted lock under which a replicate client changes names in the directory. */
bool lock_is_of_names(const struct lock *l);
/* A granted lock under which a disperse client changes the object's attributes, or the directory's names. */
bool lock_is_of_fragments(const struct lock *l);
/* Counts the object's metadata as dirty, so that a self-heal daemon compares the replicas; or, is_noted, has
 * features/index note the object. Returns before that is done. In a read section, without locks. */
void unfinished_mark(struct xlator *xl, struct inode *inode, bool is_noted);

/* contention.c */
/* Sends a contention callback to the holder of `l`, unless the holder got one within the last
 * notify-contention-delay seconds. */
void contention_note_locked(struct lock_inode *li, struct lock *l, const char *domain, struct lock_batch *b);
/* The same for the granted inodelks, or locks on all names, that conflict with `l`, a new request. At most
 * this many, because it runs under the mutex; the holders beyond the bound get their callback at a later
 * request. */
#define CONTENTIONS_MAX 1024
void contention_note_all_locked(struct lock_inode *li, const struct lock_queue *q, const struct lock *l,
                                struct lock_batch *b);
void contention_send(struct lock_batch *b, const struct gfid *gfid);

/* counts.c */
xl_verdict locks_counts(struct xlator *xl, struct call_stack *stk);
/* Adds the layer to the reply's path if the request asks for counts. Returns 0 or -ENOMEM. */
int locks_counts_prepare(struct xlator *xl, struct call_stack *stk);

/* clrlk.c, lockinfo.c */
xl_verdict locks_getxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict lockinfo_get(struct xlator *xl, struct call_stack *stk);
xl_verdict lockinfo_set(struct xlator *xl, struct call_stack *stk, const struct dict_pair *pair);

/* saved.c */
int locks_save(struct xlator *xl, struct brick_saver *saver);
int locks_restore(struct xlator *xl, struct brick_restorer *r);

/* lock-dump.c */
void locks_dump(struct xlator *xl, struct dump *dump);

/* Implemented by protocol/server: sends a callback on one of the client's connections, or nothing if the
 * client has none. */
void brick_client_callback_inodelk_contention(struct brick_client *client, const struct gfid *gfid,
                                              const struct fop_flock *flock, uint32_t pid,
                                              const char *domain);
void brick_client_callback_entrylk_contention(struct brick_client *client, const struct gfid *gfid,
                                              uint32_t type, uint32_t pid, const char *domain);

#endif
