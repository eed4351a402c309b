/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* disperse-internal: the private header of cluster/disperse.
 *
 *   codec.c        the erasure code: arithmetic only
 *   disperse.c     the translator itself: options, child up and down events
 *   child-options.c  the values of quorum-count and ec-read-mask
 *   fan.c          calls of an operation to its children (xlators/cluster/fan.h), the reply to the caller
 *   answers.c      comparing and joining the replies of children
 *   hold.c         the lock on an inode, shared by this mount's operations and kept for a second
 *   debt.c         sizes and stripes that a live mount owes the bricks, after too many bricks were lost
 *   locks.c        that lock, child by child
 *   counters.c     versions, sizes and dirty counters on the bricks, before and after operations
 *   write.c        write, truncate, fallocate, discard      read.c       read, seek
 *   metadata.c     stat, attributes, xattrs                 entry.c      names
 *   lookup.c       LOOKUP                                   readdir.c    listings
 *   doubts.c       objects that a listing may have wrong
 *   open-files.c   open, opendir; fds on each child         all.c        flush, fsync, statfs, locks
 *   heal.h         healing, in separate files
 *
 * An operation runs in a separate coroutine from start to end, also after the caller has received the
 * reply. `struct ec_op` lies on the coroutine's stack. A function that runs in such a coroutine is called
 * something_go(), or takes a struct ec_op.
 *
 * Threads: as in cluster/replicate. Fields of struct disperse are atomic or under its lock; a hold, and the
 * debts of a file, are under the lock of the struct ec_inode; each child's fd in a struct ec_fd is set once,
 * by compare-and-swap. */
#ifndef KILN_CLUSTER_DISPERSE_INTERNAL_H
#define KILN_CLUSTER_DISPERSE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "stack/xlator.h"
#include "xlators/cluster/disperse/codec.h"
#include "xlators/cluster/disperse/read-times.h"
#include "xlators/cluster/dead-changes.h"
#include "xlators/cluster/fan.h"
#include "xlators/cluster/heal-throttle.h"

struct disperse_conf {
    int64_t redundancy, quorum_count, kept_s, other_kept_s, cached_stripes;
    int64_t heal_count, heal_window, heal_timeout_s;
    bool eager_lock, other_eager_lock, is_optimistic, writes_in_parallel;
    char *read_mask;
    int read_policy; /* enum read_policy */
    bool is_daemon, daemon_heals; /* this is a self-heal daemon, and it is to heal */
    bool throttles_heals;
};

enum read_policy { READ_BY_TURNS, READ_BY_GFID };

enum { PLANS_KEPT = 8 };

struct disperse {
    struct xlator *xl;
    unsigned count, data, redundancy; /* N, K, R */
    size_t stripe;                    /* bytes of a file's stripe: K * 512 */
    child_set all;
    unsigned char config[8]; /* the value of trusted.ec.config */
    _Atomic child_set up;
    atomic_uint generation; /* incremented whenever a child comes up or goes down */
    atomic_uint lost_at[FAN_CHILDREN_MAX]; /* the generation in which the child was lost last; 0: never */
    _Atomic uint64_t up_ns;     /* when a child has come up, the latest */
    _Atomic uint64_t enough_ns; /* when K children were up again after fewer, the latest; 0: never */
    atomic_uint turn;       /* READ_BY_TURNS: the next read's first child */
    atomic_bool is_stopping; /* set: release all holds, keep no new hold */
    atomic_uint habits;      /* bits of enum ec_habit */
    struct read_times read_times[FAN_CHILDREN_MAX];
    _Atomic uint64_t explored_ns; /* read-times.h */
    atomic_uint quorum;           /* quorum-count: children that must make a change; 0: K, as for all else */
    _Atomic child_set read_mask;  /* ec-read-mask: children that READs prefer; all: no mask */
    /* READs that also asked another child, for lack of children of the mask */
    atomic_ulong reads_beside_mask;

    pthread_mutex_t lock;   /* guards the fields below; a leaf lock */
    pthread_cond_t changed; /* signalled when hold_count drops to 0 */
    child_set reported, refused; /* children that have sent an event; that refuse this client for good */
    bool has_told, was_serving;  /* the parent has had an event from this layer */
    bool had_enough;             /* K children have been up */
    unsigned hold_count;
    struct cds_list_head holds; /* struct ec_hold, all that are taken */
    struct timer patience;      /* until silent children count as down */
    struct {
        child_set from; /* 0: free */
        struct codec_plan plan;
    } plans[PLANS_KEPT];
    unsigned next_plan;
    char *heal_domain;     /* lock domain that keeps healers apart */
    unsigned heals_running; /* in the background */
    bool is_crawling, crawls_again;
    /* crawls of the whole tree that were asked for, and the last of them that needs no walk any more */
    unsigned full_asked, full_done;
    uint64_t crawl_pause_ms; /* before the next crawl for objects that were locked */
    unsigned crawl_follow_ups; /* crawls since a child came up; crawl_next_pause() */
    struct timer crawl_timer;
    struct worker_job crawl_job;
    struct crawl_looks *looks; /* NULL: not a self-heal daemon */
    struct dead_changes dead_changes; /* dead-objects.c */
    struct ec_doubts *doubts;         /* doubts.c; NULL: not asked yet */
    struct heal_throttle throttle; /* of the self-heal daemon's heals; off in a mount */
};

/* The context of an fd. The fd has one reference; operations and holds have further references. */
struct ec_fd {
    struct refcount refs;
    struct disperse *d;
    uint32_t flags;
    atomic_int list_child; /* index of the child that a directory is listed from, or -1 */
    atomic_uint tried;     /* generation + 1 of the last attempt to open the fd on missing children */
    _Atomic(struct fd *) child[FAN_CHILDREN_MAX]; /* NULL: the fd is not open on that child */
};

/* ---- an operation ---------------------------------------------------------------------------- */

struct ec_op {
    struct disperse *d;
    struct call_stack *stk; /* NULL: the caller has received the reply */
    enum fop fop;
    struct inode *inode; /* the operation's own references: it may outlive the call */
    struct inode *dir, *dir2;
    struct fd *fd;
    struct ec_fd *file;
    struct caller caller; /* caller of the operation's internal calls */
    uint8_t owner[32];    /* the application's lock owner, at most these bytes */
    bool is_pinned;       /* this operation has pinned the graph, and may outlive the caller's call */
    /* quorum-count when the operation began; 0: none. An internal operation, such as a heal, has none */
    unsigned quorum;
    bool settles;      /* the operation mends torn stripes (debt.c) */
    bool lacks_quorum; /* K children at least have made a change of this operation, but fewer than `quorum` */
    char name[FOP_NAME_MAX + 1], name2[FOP_NAME_MAX + 1];
};

/* Winds the caller's own call to child i; the reply is then in op->stk->reply. Returns as coro_call(). */
int ec_call_child(struct ec_op *op, unsigned i);
/* Starts the operation's something_go() function in a coroutine. */
xl_verdict ec_start(struct xlator *xl, struct call_stack *stk);
/* Sends op->stk->reply to the caller, once. */
void ec_reply(struct ec_op *op);
/* Fails the caller's call; `err` is -errno. */
void ec_fail(struct ec_op *op, int err);
/* Replies, or fails if `err` is negative; a change without a quorum fails with EIO. */
void ec_finish(struct ec_op *op, int err);

/* ---- fan.c ----------------------------------------------------------------------------------- */

/* Returns a call for child i; NULL: out of memory. is_spare: from the reserve for lack of memory. */
typedef struct call_stack *(*ec_make_fn)(const struct ec_op *op, unsigned i, bool is_spare, const void *arg);
/* fan_send() and fan_press() of the operation's calls. */
int ec_ask(struct fan *f, const struct ec_op *op, child_set to, ec_make_fn make, const void *arg);
void ec_insist(struct fan *f, const struct ec_op *op, child_set to, ec_make_fn make, const void *arg);
/* The second halves, for calls that the caller has wound and waited for. */
int ec_ask_rest(struct fan *f, const struct ec_op *op, ec_make_fn make, const void *arg);
void ec_insist_rest(struct fan *f, const struct ec_op *op, ec_make_fn make, const void *arg);
struct ec_hold;
struct ec_early;
/* ec_ask() to all children, of a CREATE or OPEN of the file whose hold ec_early_hold() has begun. */
int ec_ask_with_hold(struct fan *f, struct ec_op *op, ec_make_fn make, const void *arg, struct ec_hold *h,
                     struct ec_early *e);
/* lock_calls_in_turn() and lock_calls_find_holder() with the caller's call. */
int ec_lock_in_turn(struct ec_op *op, child_set on, child_set *has);
int ec_find_lock_holder(struct ec_op *op, child_set on);
/* Copies the caller's call, with child i's fd. */
struct call_stack *ec_fork(const struct ec_op *op, unsigned i, bool is_spare, const void *unused);
/* The same, and asks for the number of clients that hold or want the lock of a hold (ec_hold). */
struct call_stack *ec_fork_held(const struct ec_op *op, unsigned i, bool is_spare, const void *unused);
/* Returns an internal call about the inode, with child i's fd of `file` (may be NULL) if it is open there
 * and `fop` takes an fd. */
struct call_stack *ec_call(const struct ec_op *op, enum fop fop, unsigned i, bool is_spare,
                           struct inode *inode, const struct ec_fd *file);
/* The same for an fop by fd: an anonymous fd if the file is not open on child i. */
struct call_stack *ec_fd_call(const struct ec_op *op, enum fop fop, unsigned i, bool is_spare,
                              struct inode *inode, const struct ec_fd *file);

/* ---- answers.c ------------------------------------------------------------------------------- */

/* Returns the largest set of children with equal replies. Replies with different attributes (owner, mode)
 * are different only with compares_modes. The reply of each child of the set is readable, unless the set
 * is empty. `*ret`: the common result or -errno; of no reply -ENOTCONN. */
child_set answers_winner(const struct fan *f, bool compares_modes, int *ret);
/* Judges the replies to a call that needs K equal answers: as answers_winner(), but a set of fewer than K
 * children gives -EIO; -ENOMEM if replies were lost for lack of memory; -ENOTCONN if children were lost
 * meanwhile, and fewer than K are left. */
child_set answers_judge(const struct ec_op *op, const struct fan *f, bool compares_modes, int *ret);
/* The same for a change. If K children have made the change, but fewer than the operation's quorum, `*ret`
 * and the result are those of a success, so that counters and sizes follow the bricks, and ec_finish() fails
 * the caller's call. */
child_set answers_judge_change(struct ec_op *op, const struct fan *f, bool compares_modes, int *ret);
/* Returns the error of a call of a known object that too few children have done: -ESTALE if a child says that
 * the object has gone, because another client is removing it; -ENOSPC or -EDQUOT if a child has no room;
 * -ENOTCONN if children were lost meanwhile, and fewer than K are left; else -EIO. */
int answers_too_few(const struct ec_op *op, const struct fan *f);
/* Copies the reply of the set's first child to the caller, with joined attributes; trusted.ec.* is hidden.
 * Sizes are still those of a brick's fragment: set them with iatt_set_size(). Returns 0 or -ENOMEM. */
int answers_take(struct ec_op *op, const struct fan *f, child_set set);
/* Joins the attributes of all replies of the set: times, blocks. `of`: offset of a struct iatt in struct
 * fop_reply. */
void answers_join_iatt(const struct disperse *d, const struct fan *f, child_set set, size_t of,
                       struct iatt *out);
/* Sets the size of a file's attributes; harmless for other objects. */
void iatt_set_size(struct iatt *a, uint64_t size);
/* Removes the keys trusted.ec.* (NULL allowed). */
void dict_hide_ec(struct dict *d);
/* Reads a counter pair or a number from an xattr of a reply; missing bytes are 0. */
void ec_get_words(const struct dict *d, const char *key, uint64_t out[2]);
/* Returns the file's size in a reply, for attributes: at most INT64_MAX, which no file exceeds. */
uint64_t ec_get_size(const struct dict *d);
/* Returns the length of each fragment of a file of this size. */
static inline uint64_t
fragment_length(const struct disperse *d, uint64_t size)
{
    return (size + d->stripe - 1) / d->stripe * CODEC_CHUNK;
}
/* Returns whether another client waits for a lock of this layer, by the replies. */
bool answers_show_waiter(const struct fan *f, child_set set);

/* ---- hold.c ---------------------------------------------------------------------------------- */

enum { WORD_DATA, WORD_METADATA }; /* the two words of trusted.ec.version and .dirty */
/* The needs of an operation that the hold meets before the operation runs. */
enum {
    NEEDS_LOCK = 0,
    NEEDS_INFO = 1,
    COUNTS_METADATA = 2, /* changes attributes */
    COUNTS_DATA = 4,     /* changes contents or names */
    MUST_MARK = 8,       /* the dirty mark is set also while all children are good */
};

/* Uses of the last file that a program opened or made: then the next OPEN or CREATE takes the hold. */
enum ec_habit { USES_OPENED = 1, WRITES_OPENED = 2, WRITES_NEW = 4 };

/* The place of an operation in a hold; lies on the operation's coroutine stack. */
struct ec_user {
    struct cds_list_head link; /* in `users` or `waiting` */
    struct coroutine *self;
    uint64_t start, end; /* byte range, `end` excluded */
    bool is_shared;      /* runs beside other shared users */
    bool takes;          /* this user takes the lock for all */
    int result;
};

enum { STRIPES_CACHED_MAX = 10 };

/* See hold.c. Guarded by the inode's lock, except for fields that only the coroutine that takes, prepares
 * or ends the hold uses. */
struct ec_hold {
    struct ec_inode *ei;
    enum ec_hold_state { EC_FREE, EC_TAKING, EC_HELD, EC_ENDING } state;
    bool must_end;   /* admits no new user; ends with the last one */
    bool is_pinned;  /* this hold has pinned the graph */
    bool is_busy;    /* a user sends the XATTROP before */
    bool has_info;   /* version and size are known */
    bool is_torn;    /* a change was neither made nor refused by K children */
    bool is_split;   /* the counters of no K children were equal */
    bool is_unused;  /* taken with an OPEN or CREATE, and no user has come yet */
    unsigned habits; /* for which the OPEN or CREATE took the hold */
    uint32_t generation; /* the layer's generation when the lock was taken */
    child_set locked, good; /* children with the lock; those that hold the newest fragments */
    child_set nameless;     /* children whose fragment goes with the last fd (ec_wait_for_names()) */
    child_set recorded[2];  /* children whose lag is in that version of the good ones, on their disks */
    uint64_t version[2];    /* on the bricks when the lock was taken; valid with has_info */
    uint64_t stored_size, size; /* on the bricks; now */
    uint64_t sure_size;         /* the bricks have answered that they have it */
    uint64_t grown_ns;          /* when `size` became larger than `stored_size` */
    uint64_t length;            /* bytes of a good fragment when the size was read */
    bool has_rest; /* a client died in a change: bytes behind the size, in its stripe, may not be zeros */
    bool is_dirty[2], has_changed[2];
    bool is_unraised[2]; /* a change was made that the versions do not show yet */
    int post_err;           /* -errno of a failed XATTROP after */
    uint8_t owner[8];       /* lock owner */
    struct cds_list_head users, waiting, preparing; /* struct ec_user */
    struct cds_list_head link;                      /* in the layer's `holds` */
    struct inode *inode;    /* a reference while the lock is taken */
    struct ec_fd *file;     /* a reference, or NULL: use the gfid */
    struct caller caller;   /* the caller that took the lock */
    struct timer timer;
    struct worker_job job;
    /* decoded stripes that this mount wrote in part; valid while the lock is held */
    struct {
        uint64_t number; /* of the stripe */
        uint64_t used;   /* `uses` at the last use; 0: empty */
        struct iobuf *bytes;
    } stripe[STRIPES_CACHED_MAX];
    uint64_t uses;
};

/* The context of an inode. */
struct ec_inode {
    /* guards the hold and has_version; a leaf lock, except for the queues of timers and workers */
    pthread_mutex_t lock;
    struct disperse *d;
    struct ec_hold hold;
    /* A hold has ended without recording the size, because the bricks were lost: the size that acknowledged
     * writes gave the file, and that of the bricks before */
    bool owes_size, has_debt_job;
    uint64_t owed_size, owed_base;
    int lost_err; /* -errno: the size could not be recorded later; for the next FSYNC or FLUSH */
    struct ec_torn *torn; /* debt.c; NULL: none */
    bool has_version[2]; /* the version, data and metadata, of K children at least is not 0 */
    atomic_bool is_in_heal; /* a background heal runs */
};

int ec_inode_pool_init(void);
/* Returns the context, made on first use; NULL: out of memory. */
struct ec_inode *ec_inode(struct disperse *d, struct inode *inode);
void ec_inode_free(struct ec_inode *ei);

/* Joins the hold of the inode, or takes its lock, and prepares it for `needs`. Returns 0, and then
 * ec_leave() is due, or -errno: -EIO if fewer children are good than K, or than the quorum of a change. */
int ec_join(struct ec_op *op, struct inode *inode, struct ec_user *u, unsigned needs);
/* Removes the user; keeps the lock for the next user, or ends the hold. */
void ec_leave(struct ec_op *op, struct inode *inode, struct ec_user *u);
/* As ec_leave(), of a FLUSH: ends the hold, and answers the FLUSH when the counters are written. */
void ec_leave_flushed(struct ec_op *op, struct inode *inode, struct ec_user *u);
/* Returns the children with the newest fragments. */
child_set ec_good(struct ec_hold *h);
/* Returns whether the children `set` are enough for a change by the operation. */
bool ec_is_quorum(const struct ec_op *op, child_set set);
/* Takes children out of the good ones; the hold ends with its last user. */
void ec_blame(struct ec_hold *h, child_set which);
/* Returns the size of the file now; of a hold that the caller has joined with NEEDS_INFO. */
uint64_t ec_size(struct ec_hold *h);
void ec_set_size(struct ec_hold *h, uint64_t size);
/* Makes the size `end` at least; writers of other stripes may do so at the same time. Returns the size. */
uint64_t ec_grow_size(struct ec_hold *h, uint64_t end);
/* Returns whether the bricks are not known to have a size of `end` bytes at least. */
bool ec_is_size_unsure(struct ec_hold *h, uint64_t end);
/* Returns whether the bricks have another size on record than the file has now. */
bool ec_has_new_size(struct ec_hold *h);
/* Is there anything to write back? Of an inode whose hold the caller may not have joined. */
bool ec_is_unwritten(struct disperse *d, struct inode *inode);
/* Returns the size of the file as this mount knows it while it holds the lock; false: no lock. */
bool ec_size_held(struct disperse *d, struct inode *inode, uint64_t *out);
/* Ends the hold now, or after the last current user. */
void ec_hurry(struct ec_hold *h);
/* Ends all holds of the layer; returns when none is left. */
void ec_holds_stop(struct disperse *d);
/* The hold of an inode that the caller has joined. */
struct ec_hold *ec_hold_of(struct disperse *d, struct inode *inode);

struct ec_lock {
    struct inode *inode;
    const char *domain;
    const uint8_t *owner; /* 8 bytes */
    uint32_t cmd, type;
};
/* Makes an INODELK of the lock `arg`, for calls in a sequence. */
struct call_stack *ec_lock_make(const struct ec_op *op, unsigned i, bool is_spare, const void *arg);
/* Takes and drops the lock of `owner` on the inode on all children of `on`, in a domain. locks_take: returns
 * the locked children, or 0 with *err (negative). */
child_set ec_locks_take(const struct ec_op *op, struct inode *inode, const char *domain,
                        const uint8_t owner[8], child_set on, int *err);
void ec_locks_drop(const struct ec_op *op, struct inode *inode, const char *domain, const uint8_t owner[8],
                   child_set on);
/* Takes the locks that are free. Returns the locked children. */
child_set ec_locks_try(const struct ec_op *op, struct inode *inode, const char *domain,
                       const uint8_t owner[8], child_set on);

/* ---- debt.c ---------------------------------------------------------------------------------- */

/* Returns whether a job of this mount gives the bricks a size or stripes of the file that they lack. */
bool ec_pays_debt(const struct disperse *d, struct inode *inode);
/* Notes that the hold ends without its size on the bricks. */
void ec_note_debt(struct ec_hold *h);
/* Returns an error of earlier writes that no call has reported yet, or 0. */
int ec_take_lost_err(struct disperse *d, struct inode *inode);
/* Under a hold that has just learnt the size: goes on with the size that an earlier hold owes, if the bricks
 * are as that hold has left them. */
void ec_settle_size(struct ec_hold *h);
/* Keeps the plain bytes of `count` stripes from `first` on that some children may have not written, because
 * they were lost meanwhile. is_done: K have written them. Without memory nothing is kept. */
void ec_torn_keep(struct ec_hold *h, uint64_t first, uint64_t count, struct iobuf *plain, bool is_done);
/* The hold has ended, and the versions tell which children lack its writes: forgets stripes that K have. */
void ec_torn_end(struct ec_inode *ei);
/* Writes the kept stripes again, under a hold of the whole file, where the fragments do not belong together.
 * Returns 0, or -errno: they stay kept. */
int ec_torn_settle(struct disperse *d, struct inode *inode);
bool ec_has_torn(struct disperse *d, struct inode *inode);
/* Forgets them. */
void ec_torn_free(struct ec_inode *ei);

/* ---- counters.c ------------------------------------------------------------------------------ */

/* An XATTROP of counters: values to add; all zero asks for the present ones. */
struct ec_delta {
    struct ec_hold *h;
    bool asks; /* for version, size and configuration */
    bool has_version, has_dirty, has_size;
    uint64_t version[2], dirty[2], size; /* negative values in two's complement */
    uint64_t new_size; /* of the file, after take_deltas() */
    bool is_removed; /* after the call: more than R children say that the object is gone */
};

/* The lock of a hold and its XATTROP before, in one message to each child that is BRICK_SEQUENCES. */
struct ec_early {
    struct fan lock, before;
    struct ec_delta x;
};
/* Begins, for a hold in the state TAKING without a lock. Returns false: a child is missing or takes no
 * sequences, or the needs want no XATTROP. Else all children get the steps, behind each other, and
 * ec_early_end() waits for the replies. It returns false if the lock was not free everywhere; then neither
 * lock nor mark is left. */
bool ec_early_begin(const struct ec_op *op, struct ec_hold *h, unsigned needs, struct ec_early *e);
void ec_early_steps(const struct ec_op *op, struct ec_hold *h, struct ec_early *e, unsigned i,
                    struct fan_step out[2]);
bool ec_early_end(struct ec_op *op, struct ec_hold *h, struct ec_early *e);
/* Begins the hold of a file with its OPEN or CREATE (hold.c). Returns NULL if the file is in use already, or
 * the last files were opened or made without any use. ec_early_keep() waits for the replies, and keeps the
 * hold for the first user. */
struct ec_hold *ec_early_hold(struct ec_op *op, struct inode *inode, struct ec_early *e);
void ec_early_keep(struct ec_op *op, struct ec_hold *h, struct ec_early *e);
/* Returns whether the hold was taken with an OPEN or CREATE, and has had no user. */
bool ec_is_unused(struct disperse *d, struct inode *inode);
/* Returns a difference of versions that no other change has: a child whose version rose by another change,
 * or by the attempt of a mount that died, never has the version of this change by accident. */
uint64_t ec_version_step(void);
/* Sends the XATTROP before, for an operation that has joined the hold; waits while another user sends it.
 * Returns 0 or -errno. */
int ec_prepare(struct ec_op *op, struct ec_hold *h, unsigned needs);
/* Waits, before a change, until enough good children have a name of the file, or none has one. Returns 0 or
 * -errno: -EIO if a client seems to have died in the removal of the names. */
int ec_wait_for_names(struct ec_op *op, struct ec_hold *h);
/* Records a change of the words `needs` that K children have made (`is_done`) or refused; of the children
 * that were `sent` it, `good` are in that group. An empty `good`: no group has K children. If a child fell
 * back, its lag is written to the others before this returns. */
void ec_record(struct ec_op *op, struct inode *inode, unsigned needs, child_set sent, child_set good,
               bool is_done);
/* Writes version and size, for flush and fsync, of a hold that the caller has joined. Returns 0 or -errno. */
int ec_hold_write_back(struct ec_op *op, struct ec_hold *h);
/* A call to all children that goes behind an XATTROP, in the same message, where they take that (is_sent). */
struct ec_behind {
    ec_make_fn make;
    const void *arg;
    bool always; /* also where the XATTROP fails */
    bool is_sent;
    struct fan fan; /* the replies, if is_sent */
};
/* The same, with another call. */
int ec_hold_write_back_with(struct ec_op *op, struct ec_hold *h, struct ec_behind *behind);
/* Sends the XATTROP at the end of the hold, which no user has any more; with the unlock, where possible: sets
 * *unlocked. Returns 0 or -errno. */
int ec_write_back_last(struct ec_op *op, struct ec_hold *h, child_set *unlocked);

/* ---- open-files.c ---------------------------------------------------------------------------- */

int ec_fd_pool_init(void);
struct ec_fd *ec_fd_ref(struct ec_fd *f);
void ec_fd_unref(struct ec_fd *f);
/* As ec_fd_child(), of an fd of this layer; lent. NULL: the file is not open there. */
struct fd *disperse_fd_of_child(const struct xlator *xl, struct fd *fd, unsigned i);
struct fd *ec_fd_child(const struct ec_fd *f, unsigned i);
/* Returns the children on which the file is open. */
child_set ec_fd_open(const struct ec_fd *f);
/* Opens the file on children that have come up since. */
void ec_fd_complete(struct ec_op *op);
/* Makes the fd of an OPEN, OPENDIR or CREATE from the fds in the replies of `set`. Returns 0 or -ENOMEM. */
int ec_fd_make(struct ec_op *op, struct fan *f, child_set set, struct inode *inode);
void ec_fd_released(struct disperse *d, struct fd *fd, struct ec_fd *f);

/* ---- doubts.c -------------------------------------------------------------------------------- */

/* Returns the objects whose attributes in a brick's listing may be wrong; ec_doubts_put() is due. NULL: all.
 * In a coroutine. */
struct ec_doubts *ec_doubts_get(struct disperse *d);
void ec_doubts_put(struct ec_doubts *x);
bool ec_doubts_have(const struct ec_doubts *x, const struct gfid *gfid);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Returns the child where reads of this file begin. */
unsigned read_first_child(struct disperse *d, const struct inode *inode);
/* Reads whole stripes from K of the children `from`, and decodes them to `out`; bytes behind the fragments'
 * ends are zeros. Children that fail are added to *failed. is_internal: for a change of part of a stripe.
 * Returns 0 or -errno. */
int read_stripes(struct ec_op *op, struct inode *inode, child_set from, uint64_t first, size_t count,
                 bool is_internal, unsigned char *out, child_set *failed);

/* ---- write.c --------------------------------------------------------------------------------- */

/* Writes whole stripes, whose plain bytes are given, under a hold that the caller has joined for them. The
 * size does not change. Returns 0 or -errno. */
int write_stripes_again(struct ec_op *op, struct ec_hold *h, uint64_t first, uint64_t count,
                        struct iobuf *plain);
/* FTRUNCATE to 0 of the new fd in the reply of an OPEN with O_TRUNC. Returns 0 or -errno. */
int write_truncate_opened(struct ec_op *op);

/* ---- start functions of operations ----------------------------------------------------------- */

void ec_lookup_go(struct ec_op *op);
void ec_readv_go(struct ec_op *op);
void ec_seek_go(struct ec_op *op);
void ec_writev_go(struct ec_op *op);
void ec_truncate_go(struct ec_op *op);
void ec_fallocate_go(struct ec_op *op);
void ec_discard_go(struct ec_op *op);
void ec_stat_go(struct ec_op *op);
void ec_one_go(struct ec_op *op);
void ec_getxattr_go(struct ec_op *op);
void ec_setattr_go(struct ec_op *op);
void ec_setxattr_go(struct ec_op *op);
void ec_entry_go(struct ec_op *op);
void ec_link_go(struct ec_op *op);
void ec_rename_go(struct ec_op *op);
void ec_open_go(struct ec_op *op);
void ec_opendir_go(struct ec_op *op);
void ec_readdir_go(struct ec_op *op);
void ec_flush_go(struct ec_op *op);
void ec_fsync_go(struct ec_op *op);
void ec_statfs_go(struct ec_op *op);
void ec_lk_go(struct ec_op *op);
void ec_locks_go(struct ec_op *op);
void ec_ipc_go(struct ec_op *op);

#endif
