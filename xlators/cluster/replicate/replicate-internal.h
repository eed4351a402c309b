/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* replicate-internal: the private header of cluster/replicate.
 *
 *   changelog.c    the counters by which replicas accuse each other, quorum: arithmetic only
 *   replicate.c    the translator itself: options, child up and down events
 *   fan.c          one call to several children, their replies, the reply to the caller
 *   view.c         the children that an object may be read from, and how to refresh that set
 *   locks.c        the locks of changes
 *   copies.c       the copies that a change goes to, and its marks before and after
 *   transaction.c  the frame of a change of names or attributes: locks, marks before, change, marks after
 *   hold.c         the frame of changes of a file's data, shared and kept for a second; the locks on names
 *                  and on attributes, kept for some milliseconds
 *   data.c         write, truncate and similar            metadata.c   owner, mode, times, xattrs
 *   entry.c        names                                  lookup.c     LOOKUP
 *   new-files.c    locks of a new file, taken before the first operation needs them
 *   read.c         operations that one child answers      open-files.c open, opendir; fds on each child
 *   split-brain.c  policies and user choices for copies that all accuse each other
 *   heal.h         healing, in separate files; crawl.h: the self-heal daemon
 *   dead-folders.c folders whose names a dead client may have left half-changed
 *   all.c          operations for every child: fsyncdir, flush, statfs, locks of applications
 *
 * An operation runs in a separate coroutine from start to end, also after the caller has received the
 * reply. `struct op` lies on the coroutine's stack. A function that runs in such a coroutine is called
 * something_go(), or takes a struct op.
 *
 * Threads: replies of children arrive in any order on any thread. The coroutine continues after the last
 * reply, so data on the coroutine's stack needs no lock. Data that operations share:
 *   struct replicate   `up` and `generation` are atomic, the other fields are under the struct's lock
 *   struct repl_inode  the struct's lock; `view` is atomic
 *   struct repl_fd     each child's fd is set once, by compare-and-swap */
#ifndef KILN_CLUSTER_REPLICATE_INTERNAL_H
#define KILN_CLUSTER_REPLICATE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "stack/coro-call.h"
#include "stack/xlator.h"
#include "xlators/cluster/dead-changes.h"
#include "xlators/cluster/fan.h"
#include "xlators/cluster/heal-throttle.h"
#include "xlators/cluster/replicate/changelog.h"

struct replicate_conf {
    char *pending_keys, *thin_arbiter, *read_child;
    int quorum_type; /* enum, and REPL_QUORUM_UNSET */
    int64_t quorum_count, arbiter_count, post_op_delay_s, metadata_kept_ms, names_kept_ms, read_hash_mode;
    bool eager_lock, ensure_durability, shares_names, locks_new_files;
    bool heals_data, heals_metadata, heals_entries, uses_anonymous_inode;
    int64_t heal_count, heal_queue, heal_window;
    int64_t heal_timeout_s, healer_threads; /* healer_threads: 0: not set */
    bool throttles_heals;
    int heal_algorithm; /* enum heal_algorithm */
    int favorite;       /* enum favorite */
    struct gfid volume_id;
};

struct replicate {
    struct xlator *xl;
    unsigned count; /* number of children */
    child_set all;
    char *keys[REPLICAS_MAX]; /* for each child, the xattr of the counters about that child */
    char *heal_domain;        /* lock domain that keeps healers apart */
    int arbiter;              /* index of a child, or -1 */
    int read_child;           /* index of the child that the volfile names, or -1 */
    _Atomic child_set up;
    _Atomic child_set met;   /* children that have been up since this mount began */
    atomic_uint generation;  /* incremented whenever a child comes up or goes down */
    _Atomic uint64_t pending; /* the answer of nothing_pends(), and until when it holds (read.c) */
    atomic_bool is_stopping; /* set: release all holds, keep no new hold */
    atomic_bool may_be_parked, is_clearing; /* heal-park.c */
    struct dead_changes dead_changes;        /* dead-folders.c */
    _Atomic(struct crawler *) crawler;      /* crawl.h; NULL: this is a mount */
    struct heal_throttle throttle;          /* of the crawler's heals; off in a mount */
    /* bits of enum new_file: operations on the latest new or opened file before its close */
    atomic_uint habits;
    atomic_uint choice_minutes; /* lifetime of a user's choice in split-brain, in minutes */

    pthread_mutex_t lock;   /* guards the fields below; a leaf lock */
    pthread_cond_t changed; /* signalled when hold_count drops to 0 */
    child_set reported;     /* children that have sent an event */
    child_set refused;      /* children that refuse this client for good, as of their last event */
    bool has_told;          /* the parent has had an event from this layer: `told` */
    enum child_event told;
    unsigned hold_count;
    struct cds_list_head holds; /* struct hold, all that are taken */
    struct timer patience;      /* until silent children count as down */
    /* after the loss of the last child, under the lock: see gather_locked() */
    struct timer gathering;
    child_set lost_last, gathered; /* lost at that time; returned since, and not serving yet */
    uint64_t lost_ns[REPLICAS_MAX];
    struct cds_list_head heals; /* struct heal_job, waiting */
    unsigned heals_running, heals_waiting;
};

/* ---- copies.c -------------------------------------------------------------------------------- */

/* The copies that a change goes to, in a transaction or a hold. */
#define COPIES_OBJECTS_MAX 2 /* a rename changes two folders */
struct copies {
    enum change what;
    child_set locked;   /* children that have granted the locks */
    child_set failed;   /* of these, the children that have refused the mark before or the change */
    child_set readable; /* children with a good copy before; 0: not checked */
    child_set accused;  /* missing children that the mark before has accused */
    child_set stale[COPIES_OBJECTS_MAX]; /* of each object, by the mark before: children that others accuse */
    int why; /* errno (positive) of a lock, of the mark before or of the change; 0: none */
};

/* ---- open-files.c ---------------------------------------------------------------------------- */

/* The context of an fd. The fd has one reference. Operations and holds have further references, and may
 * outlive the fd. */
struct repl_fd {
    struct refcount refs;
    struct replicate *r;
    uint32_t flags;
    atomic_int list_child;                    /* index of the child that a directory is listed from, or -1 */
    atomic_uint tried; /* generation + 1 of the last attempt to open the fd on missing children */
    _Atomic(struct fd *) child[REPLICAS_MAX]; /* NULL: the fd is not open on that child */
};

/* ---- hold.c ---------------------------------------------------------------------------------- */

/* The place of an operation in a hold: an operation that changes data, a name of a folder, or attributes.
 * It lies on the operation's coroutine stack. */
struct writer {
    struct cds_list_head link; /* in `writers` or `waiting` */
    struct coroutine *self;
    uint64_t start, end; /* byte range of the change, `end` excluded; for a name, the name's hash */
    bool is_write;       /* a write of exactly that range */
    bool only_ends;      /* waits until the hold is free, and does not take the lock */
    bool takes;          /* this writer takes the lock for all writers */
    uint64_t append_start; /* copied from the hold when the writer is admitted */
    bool has_fd;           /* as of then: the hold ends by an fd that is open on all its children */
    int result;
    child_set children; /* children to change, as of the writer's admission */
    /* locked children that have failed since, so that no copy accuses them before the hold ends */
    child_set unrecorded;
    child_set readable; /* copied from the hold */
};

/* See hold.c. Guarded by the inode's lock, except for fields that only the coroutine that takes or ends the
 * hold uses. */
struct hold {
    struct repl_inode *ri;
    enum hold_state { HOLD_FREE, HOLD_TAKING, HOLD_HELD, HOLD_ENDING } state;
    bool is_of_attributes; /* a lock on attributes; false: on a file's data, or on a folder's names */
    bool must_end;    /* admits no new writer; ends with the last one */
    bool has_changed; /* an operation has succeeded on at least one child */
    bool is_dirty;    /* the marks include a dirty mark: see lock_and_mark() */
    bool is_unsynced; /* ... and the written bytes may not be on stable storage */
    bool is_one_append;                /* all writes since the last sync are contiguous */
    uint64_t append_start, append_end; /* range of these writes */
    child_set had_none, had_less;      /* children whose file ended exactly at append_start, or before */
    bool is_pinned;   /* this hold has pinned the graph */
    struct copies copies; /* a file's data: with marks; names and attributes: `locked` and `failed` alone */
    uint32_t generation;                            /* the layer's generation when the lock was taken */
    uint64_t until_ns; /* names and attributes only: end of the hold's lifetime */
    uint8_t owner[8];                               /* lock owner */
    struct cds_list_head writers, waiting, leaving; /* struct writer */
    struct cds_list_head link;                      /* in the layer's `holds` */
    struct inode *inode;                            /* a reference while the lock is taken */
    struct repl_fd *file;                           /* a reference, or NULL: use the gfid */
    struct caller caller;                           /* the caller that took the lock */
    struct timer timer;
    struct worker_job job;
};

/* The context of an inode. */
struct repl_inode {
    pthread_mutex_t lock;  /* guards the holds; a leaf lock, except for the queues of timers and workers */
    _Atomic uint64_t view; /* view.c */
    _Atomic uint64_t named_ns; /* folder: time of this mount's last change of a name */
    _Atomic uint64_t contended_ns; /* folder: time at which another client last waited for the names */
    _Atomic child_set doubted; /* folder: children already marked with "compare all names" (entry.c) */
    struct hold hold;
    _Atomic(struct hold *) attributes; /* the hold on attributes; NULL before the first use */
    struct replicate *r;
    atomic_uint awaits;     /* new or opened file: bits of enum new_file for operations still to come */
    atomic_bool is_in_heal; /* a background heal is queued or running */
    /* split-brain.c: the child to read from in the lowest 8 bits, above them the second at which the choice
     * expires. 0: no choice */
    _Atomic uint64_t choice;
};

/* ---- an operation ---------------------------------------------------------------------------- */

struct op {
    struct replicate *r;
    struct call_stack *stk; /* NULL: the caller has received the reply */
    enum fop fop;
    struct inode *inode; /* the operation's own references: it may outlive the call */
    struct inode *dir, *dir2;
    struct fd *fd;
    struct repl_fd *file;
    struct caller caller; /* caller of the operation's internal calls */
    bool is_pinned;       /* this operation has pinned the graph, and may outlive the caller's call */
    bool is_pressing;     /* internal calls are spare ones: fan_insist() */
    child_set readable;   /* set by op_admit(): children with a good copy. 0: not checked */
    char name[FOP_NAME_MAX + 1], name2[FOP_NAME_MAX + 1];
};

/* Starts the operation's something_go() function in a coroutine. */
xl_verdict op_start(struct xlator *xl, struct call_stack *stk);
/* Sends op->stk->reply to the caller, once. */
void op_reply(struct op *op);
/* Fails the caller's call; `err` is -errno. */
void op_fail(struct op *op, int err);
/* Returns the quorum of the volume option, or the default for this number of children. Call in a read
 * section. */
struct quorum quorum_of(const struct replicate *r);
/* Returns whether `good` is enough children for quorum. */
bool op_has_quorum(const struct op *op, child_set good);
/* Returns whether the volume has a quorum (more than one child is needed for some operations). */
bool op_wants_quorum(const struct op *op);

/* ---- fan.c ----------------------------------------------------------------------------------- */

/* Winds `stk` to child i. `stk` may be NULL (out of memory). */
void fan_wind(struct fan *f, const struct op *op, unsigned i, struct call_stack *stk);
/* Returns a call for child i; NULL: out of memory. */
typedef struct call_stack *(*fan_call_fn)(const struct op *op, unsigned i, const void *arg);
/* Copies the caller's call. */
struct call_stack *fan_fork(const struct op *op, unsigned i, const void *unused);
/* fan_send(), fan_send_rest() and fan_press() of the operation's calls. */
int fan_ask(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg);
int fan_ask_rest(struct fan *f, const struct op *op, fan_call_fn make, const void *arg);
void fan_insist(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg);
/* Returns the errno (positive) that stands for all failures; 0: no call has failed. */
int fan_errno(const struct fan *f);
/* Returns whether all calls failed with the same error, other than a lost connection. */
bool fan_is_symmetric(const struct fan *f);
/* Copies the reply of child i into the caller's reply. */
int fan_take(struct fan *f, struct op *op, unsigned i);

/* For a failed operation: copies the xdata of a child's error reply, in which the layer above may look for
 * the reason. Out of memory, the caller's reply has no xdata. */
void fan_take_refusal(struct fan *f, struct op *op);

/* Returns an empty call; NULL: out of memory. */
struct call_stack *op_call_new(const struct op *op);
/* Returns a copy of the caller's call for child i, with that child's fd. */
struct call_stack *op_fork(const struct op *op, unsigned i);
/* Returns an internal call about the operation's inode, with child i's fd if the fd is open there. */
struct call_stack *op_call(const struct op *op, enum fop fop, unsigned i);
/* Winds the caller's own call to child i; the reply is then in op->stk->reply. Returns as coro_call(). */
int op_call_child(struct op *op, unsigned i);
/* lock_calls_in_turn() and lock_calls_find_holder() with the caller's call. */
int op_lock_in_turn(struct op *op, child_set on, child_set *has);
int op_find_lock_holder(struct op *op, child_set on);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* The children that may be read, as of a generation. */
struct view {
    uint32_t generation;
    child_set data, metadata; /* for a directory, `data` is about entries */
};

int repl_inode_pool_init(void);
struct repl_inode *repl_inode(struct replicate *r, struct inode *inode);
void repl_inode_free(struct repl_inode *ri);
/* Returns the hold on the inode's attributes, made on first use. NULL: out of memory. */
struct hold *repl_inode_attributes(struct repl_inode *ri);
/* Returns false if no view is kept, or if a child has come up or gone down since. */
bool view_get(struct replicate *r, struct inode *inode, struct view *out);
void view_set(struct replicate *r, struct inode *inode, const struct view *v);
/* Makes the next operation refresh the view. */
void view_forget(struct replicate *r, struct inode *inode);
/* Removes children that have missed a change. */
void view_drop(struct replicate *r, struct inode *inode, enum change what, child_set missed);
/* Adds the keys that make replicas return their counters. Returns 0 or -ENOMEM. */
int view_ask(const struct replicate *r, struct dict *xdata, bool is_refresh);
/* Reads the counters from a child's reply. */
void replica_read(const struct replicate *r, const struct call_stack *stk, struct replica *out);
/* Computes the view from the replies of a LOOKUP. */
void view_from_replies(const struct replicate *r, const struct fan *f, uint32_t generation, struct view *out);
/* Returns the view of `inode`, an inode of the operation; refreshes an unknown view. Returns 0; -ENOTCONN:
 * no quorum; -EIO: split-brain. With 0, one kind in *out may be empty: the caller checks the kind that it
 * needs. */
int view_of(struct op *op, struct inode *inode, struct view *out);
/* The first step of every change of data or attributes; `what` is the kind of counter. Returns 0 with
 * op->readable set, or -errno. */
int op_admit(struct op *op, struct inode *inode, enum change what);
/* Returns the child to read from among `set` (not empty). */
unsigned view_choose(const struct replicate *r, child_set set, const struct inode *inode);

/* ---- locks.c --------------------------------------------------------------------------------- */

/* A lock: a range of an inode or fd, or a name (NULL: all names) of a directory. */
struct lock_entity {
    bool is_entry;
    struct inode *inode;
    const char *name;
    uint64_t start, len; /* len 0: to the end */
    const char *domain;  /* NULL: the layer's name, the domain that keeps changes apart */
};
#define LOCK_ENTITIES_MAX 3
#define METADATA_START ((uint64_t)INT64_MAX - 1) /* the range to lock for attributes, to the end */

/* Takes all locks on all children of `on`, in parallel if they are free, else one after the other. Returns
 * the children that have granted all locks; the empty set with ENOMEM if a child could not be asked. */
child_set locks_take(const struct op *op, const struct lock_entity *e, unsigned count, child_set on,
                     int *err);
/* Return the calls to child i that try the lock without waiting, and release it. NULL: out of memory. */
struct call_stack *lock_now_make(const struct op *op, unsigned i, const struct lock_entity *e);
struct call_stack *lock_drop_make(const struct op *op, unsigned i, const struct lock_entity *e);
/* Tries the lock without waiting. Returns the children that have granted it. */
child_set locks_try(const struct op *op, const struct lock_entity *e, child_set on);
void locks_drop_one(const struct op *op, const struct lock_entity *e, child_set on);
/* Winds the unlocks to `on`. Call locks_dropped() afterwards: it waits for the replies and, if an unlock
 * could not go out, for memory. */
void locks_drop(const struct op *op, const struct lock_entity *e, unsigned count, child_set on,
                struct fan *fans);
void locks_dropped(const struct op *op, const struct lock_entity *e, unsigned count, struct fan *fans);

/* ---- copies.c -------------------------------------------------------------------------------- */

/* An XATTROP: adds `about` to the counters about each child of the set `accused`, and `dirty` to
 * trusted.afr.dirty. */
struct marks {
    struct inode *inode;
    struct repl_fd *file; /* NULL: use the gfid */
    struct changelog about;
    child_set accused;
    /* replaces `about` and `accused`: one entry for each child. NULL: not used */
    const struct changelog *each;
    struct changelog dirty;
    bool purges_names; /* directory whose counters return to 0: the brick's index forgets the names */
    enum dict_key name_key; /* 0: no xdata */
    const char *name;
};
/* Returns the call for child i. NULL: out of memory. */
struct call_stack *marks_call(const struct op *op, unsigned i, const struct marks *m);
/* The same for fan_ask() and fan_insist(): `m` is a struct marks. */
struct call_stack *marks_make(const struct op *op, unsigned i, const void *m);
/* Reads the counters after the XATTROP from the replies. */
void marks_read(const struct replicate *r, const struct fan *f, struct replica out[REPLICAS_MAX]);

/* Returns the locked children that have not failed. */
child_set copies_left(const struct copies *c);
/* Returns -errno for a change that too few children can make: the reason of a child that has failed, or
 * -ENOTCONN. */
int copies_errno(const struct copies *c);
/* Returns whether a change that `done` have made is on a quorum and on a good copy of each object. Other
 * clients would not see a change that is only on copies that others accuse. */
bool copies_suffice(const struct op *op, const struct copies *c, child_set done);
/* Sets the mark before on the children that are left; children that refuse the mark have failed. With
 * `insists`, waits for memory. Returns 0 with the replies in the fan, or -ENOMEM: no mark was set, and the
 * fan is empty. */
int copies_mark_before(const struct op *op, struct copies *c, const struct marks *m, bool insists,
                       struct fan *f);
/* Sets the accusations of the mark after: +1 about each child that has missed the change and is not accused
 * already, or, if nothing has changed, -1 about the children that the mark before has accused. */
void copies_accuse_after(const struct replicate *r, const struct copies *c, bool has_changed,
                         struct marks *m);
/* Sets the mark after on the children that are left. Returns 0, or -errno if too few have set it; with the
 * replies in the fan. */
int copies_mark_after(const struct op *op, const struct copies *c, const struct marks *m, bool has_changed,
                      struct fan *f);

/* ---- transaction.c --------------------------------------------------------------------------- */

struct transaction {
    struct op *op;
    struct copies copies;
    bool is_refused;     /* all locked children have stale copies */
    bool is_for_nothing; /* all children refused in the same way */
    bool is_in_vain;     /* too few children succeeded, or none with a good copy */
    uint8_t owner[8];
    unsigned entity_count;
    struct lock_entity entity[LOCK_ENTITIES_MAX];
    unsigned marked_count; /* objects whose counters are used */
    struct inode *marked[COPIES_OBJECTS_MAX];
    const char *marked_name[COPIES_OBJECTS_MAX];
    bool doubted[COPIES_OBJECTS_MAX];    /* the mark before told healers to compare all names of the folder */
};

void transaction_init(struct transaction *t, struct op *op, enum change what);
void transaction_add(struct transaction *t, struct lock_entity e);
void transaction_mark(struct transaction *t, struct inode *inode, const char *name);
/* Takes the locks and, where a child is missing, sets the mark before. Returns 0, or -errno with all locks
 * released. */
int transaction_begin(struct transaction *t);
/* Undoes transaction_begin() if the change shall not happen: takes the mark back and unlocks. */
void transaction_give_up(struct transaction *t);
/* As transaction_begin(), under locks on `locked` that the caller already holds. transaction_end() does not
 * release these locks. */
int transaction_begin_held(struct transaction *t, child_set locked);
/* Sends the operation's calls to all locked children that have not failed. Returns 0; -ENOMEM: no call has
 * gone out. */
int transaction_ask(struct transaction *t, struct fan *f, fan_call_fn make, const void *arg);
/* Does the same for the CREATE of a new file, with the file's lock and mark in the same messages where the
 * file is expected to be written: new-files.c. */
int transaction_create(struct transaction *t, struct fan *f);
/* Decides from the replies which children have failed. Returns 0, or the -errno that the operation fails
 * with. */
int transaction_judge(struct transaction *t, struct fan *f,
                      bool (*has_failed)(const struct fan *f, unsigned i));
/* Sets the marks after, where needed. Returns 0, or -errno if the change is not known to be recorded. */
int transaction_mark_after(struct transaction *t);
/* Sets the marks, replies (with the error `err`, if it is not 0) and unlocks. */
void transaction_end(struct transaction *t, int err);

/* ---- hold.c ---------------------------------------------------------------------------------- */

void hold_init(struct hold *h, struct repl_inode *ri, bool is_of_attributes);
/* Joins the hold, or takes its lock, for `inode`, which must be the inode of h->ri. Returns 0 or -errno. */
int hold_join(struct op *op, struct inode *inode, struct hold *h, struct writer *w);
struct hold_outcome {
    child_set failed;
    int why; /* errno (positive) of these children; 0: none */
    bool has_changed, is_unsynced, was_synced, may_wait; /* may_wait: keep the lock for the next writer */
    bool breaks_append;           /* a change other than a write, or an incomplete write */
    bool empties;                 /* the file is empty on all children of the hold */
    child_set had_none, had_less; /* children whose file ended at the writer's append_start, or before that */
};
/* Removes the writer from the hold. With `waits`, waits for the end of the hold and returns 0 or the -errno
 * of its marks. */
int hold_leave(struct op *op, struct hold *h, struct writer *w, const struct hold_outcome *o, bool waits);
/* For the CREATE or OPEN of the file: takes the file's free hold, whose lock and mark go behind that
 * call in the same message to each child. Returns false if the hold is not free. After true:
 * hold_early_step() for each child, and hold_early_end() after the replies. */
bool hold_early_begin(const struct op *op, struct inode *inode, struct hold *h);
/* Sets the two steps behind the CREATE or OPEN, of the fans `lock` and `mark`. A call is NULL: out of
 * memory. */
void hold_early_step(const struct op *op, struct hold *h, unsigned i, struct fan_step out[2]);
/* Keeps the hold for the first write if all children have lock and mark, and else gives back the locks and
 * marks of single children. The fans have their replies; this frees them. Returns whether the hold is
 * kept. */
bool hold_early_end(const struct op *op, struct hold *h, struct fan *lock, struct fan *mark);
/* Makes a hold that was taken without an open file send its last calls through this file. */
void hold_use_file(struct hold *h, struct repl_fd *file);
/* Returns for how many milliseconds the lock on a folder's names is kept after the last change of a name. */
uint64_t names_kept_ms(const struct replicate *r);
/* Returns whether a coroutine has, takes or releases the lock. */
bool hold_is_taken(struct hold *h);
/* Ends the hold now, or after the last current writer. */
void hold_hurry(struct hold *h);
/* Ends the hold and waits for the end, because the caller's next lock would conflict with this one. */
void hold_end(struct op *op, struct inode *inode, struct hold *h);
/* Ends all holds of the layer; returns when none is left. */
void holds_stop(struct replicate *r);

/* ---- open-files.c ---------------------------------------------------------------------------- */

int repl_fd_pool_init(void);
struct repl_fd *repl_fd_ref(struct repl_fd *f);
void repl_fd_unref(struct repl_fd *f);
/* As repl_fd_child(), of an fd of this layer; lent. NULL: the file is not open there. */
struct fd *replicate_fd_of_child(const struct xlator *xl, struct fd *fd, unsigned i);
struct fd *repl_fd_child(const struct repl_fd *f, unsigned i);
/* Returns whether the caller's is the last reference, and no call by the children's fds is under way. */
bool repl_fd_is_unused(const struct repl_fd *f);
/* Returns the children on which the file is open. */
child_set repl_fd_open(const struct repl_fd *f);
/* Opens the file on children that have come up since. Returns 0; -ENOMEM: a child could not be asked. */
int repl_fd_complete(struct op *op);
/* Makes the fd of an OPEN, OPENDIR or CREATE from the fds in the replies. Returns 0 or -ENOMEM. */
int repl_fd_make(struct op *op, struct fan *f, struct inode *inode);
void repl_fd_released(struct replicate *r, struct fd *fd, struct repl_fd *f);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Returns the children that may answer this operation. */
child_set read_good_for(const struct op *op, const struct view *v);
/* Returns whether the result is about the object, so that another child would return the same. */
bool read_is_answer(int ret);

/* ---- new-files.c ----------------------------------------------------------------------------- */

enum new_file { NEW_IS_WRITTEN = 1, NEW_IS_SET = 2, OPEN_IS_WRITTEN = 4 };
/* Notes that the CREATE of `op` has made the file; call before the reply. */
void new_file_made(struct op *op, struct inode *inode);
/* After the reply: takes the locks that the next calls are expected to need. */
void new_file_expect(struct op *op);
/* For an OPEN: if a write is expected, makes the calls on all children, with the file's lock and mark in the
 * same messages. The fan then has the replies; fan_ask_rest() is due. Else returns false. */
bool open_early(struct op *op, const struct view *v, struct fan *f, fan_call_fn make);
/* Notes the OPEN of `op`, whose reply has the fd; call before the reply. */
void opened_file(struct op *op);
/* Notes operations `what` on a file, which may be a new or an opened one. */
void new_file_changed(struct repl_inode *ri, unsigned what);
/* Notes the close of an fd; the file may be a new one. */
void new_file_closed(struct repl_inode *ri);
/* Notes a folder that MKDIR has made, in op->inode, for new_folder_expect() after the reply. */
void new_folder_made(struct op *op, struct inode *inode);
void new_folder_expect(struct op *op);

/* ---- start functions of operations ----------------------------------------------------------- */

typedef void (*op_fn)(struct op *op);
void lookup_go(struct op *op);
void read_go(struct op *op);
void readdir_go(struct op *op);
void getxattr_go(struct op *op);
void open_go(struct op *op);
void opendir_go(struct op *op);
void writev_go(struct op *op);
void truncate_go(struct op *op);
void allocate_go(struct op *op);
void fsync_go(struct op *op);
void metadata_go(struct op *op);
void entry_go(struct op *op);
void rmdir_go(struct op *op);
void rename_go(struct op *op);
void all_go(struct op *op);
void lockinfo_go(struct op *op);
void statfs_go(struct op *op);
void lk_go(struct op *op);
void locks_go(struct op *op);

/* data.c: FTRUNCATE to 0 of the fd of `op`, for OPEN with O_TRUNC. Returns 0 or -errno. */
int data_truncate_opened(struct op *op);

#endif
