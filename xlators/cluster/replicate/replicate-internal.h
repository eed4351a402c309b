/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* replicate-internal: the insides of cluster/replicate.
 *
 *   changelog.c    the counters by which replicas accuse each other, quorum: arithmetic
 *   replicate.c    the layer: options, children that come and go, where each operation begins
 *   fan.c          a call to several children, what they answer, what the caller is told
 *   view.c         which children an object may be read from; asking them anew
 *   transaction.c  what all changes are made of: locks, the marks before and after
 *   hold.c         the lock on a file's data, shared and kept for a second; those on names and attributes,
 *                  for less
 *   data.c         write, truncate and their like         metadata.c   owner, mode, times, xattrs
 *   entry.c        names                                  lookup.c     LOOKUP
 *   new-files.c    locks of a file just made, taken before they are needed
 *   read.c         what one child can answer              open-files.c open, opendir; fds on each child
 *   split-brain.c  what volume and users say of copies none of which is known to be good
 *   heal.h         what the mount makes equal again, in files of its own
 *   all.c          what goes to every child: fsyncdir, flush, statfs, locks of applications
 *
 * An operation is a coroutine of its own from its first line to its last, also when the caller has had the
 * reply long before; `struct op` lies on its stack. A function that runs in one is called something_go(), or
 * takes a struct op.
 *
 * Threads: replies of children come in any order on any thread; a coroutine goes on when the last one is
 * there, so what lies on its stack needs no lock. What operations share:
 *   struct replicate   `up` and `generation` are atomic, the rest is under its lock
 *   struct repl_inode  its lock; `view` is atomic
 *   struct repl_fd     each child's fd is set once, by compare-and-swap
 */
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
#include "xlators/cluster/replicate/changelog.h"

struct replicate_conf {
    char *pending_keys, *thin_arbiter, *read_child;
    int quorum_type; /* enum, and REPL_QUORUM_UNSET */
    int64_t quorum_count, arbiter_count, post_op_delay_s, metadata_kept_ms, read_hash_mode;
    bool eager_lock, ensure_durability, shares_names, locks_new_files;
    bool heals_data, heals_metadata, heals_entries, uses_anonymous_inode;
    int64_t heal_count, heal_queue, heal_window;
    int heal_algorithm; /* enum heal_algorithm */
    int favorite;       /* enum favorite */
    struct gfid volume_id;
};

struct replicate {
    struct xlator *xl;
    unsigned count; /* children */
    child_set all;
    char *keys[REPLICAS_MAX]; /* the names of the counters about each */
    char *heal_domain;        /* of the locks that keep healers apart */
    int arbiter;              /* a child, or -1 */
    int read_child;           /* that the volfile wants, or -1 */
    _Atomic child_set up;
    _Atomic child_set met;   /* children that have been up since this mount began */
    atomic_uint generation;  /* one more whenever a child has come or gone */
    atomic_bool is_stopping; /* no hold is kept any more */
    atomic_bool may_be_parked, is_clearing; /* heal-park.c */
    atomic_uint habits;      /* of enum new_file: what was done to the last new file before its close */
    atomic_uint choice_minutes; /* for how long users' choices in split-brain are good */

    pthread_mutex_t lock;   /* guards what follows. A leaf */
    pthread_cond_t changed; /* of hold_count */
    child_set reported;     /* children that we have heard of */
    child_set refused;      /* children that refuse this client for good, as of their last event */
    bool has_told;          /* the layer above has heard of us: `told` */
    enum child_event told;
    unsigned hold_count;
    struct cds_list_head holds; /* of struct hold that are taken */
    struct timer patience;      /* until children that say nothing count as down */
    struct cds_list_head heals; /* of struct heal_job that wait */
    unsigned heals_running, heals_waiting;
};

/* ---- open-files.c ---------------------------------------------------------------------------- */

/* The context of an fd. One reference is the fd's, others those of operations and holds, which may outlive
 * it. */
struct repl_fd {
    struct refcount refs;
    struct replicate *r;
    uint32_t flags;
    atomic_int list_child;                    /* that a directory is listed from, or -1 */
    atomic_uint tried;                        /* generation + 1 at which the missing ones were last opened */
    _Atomic(struct fd *) child[REPLICAS_MAX]; /* NULL: not open there */
};

/* ---- hold.c ---------------------------------------------------------------------------------- */

/* On the coroutine's stack of an operation that changes data, a name of a folder, or attributes: its place in
 * the hold. */
struct writer {
    struct cds_list_head link; /* in `writers` or `waiting` */
    struct coroutine *self;
    uint64_t start, end; /* the bytes it changes, `end` not included; of a name, its hash */
    bool is_write;       /* of that many bytes */
    bool only_ends;      /* it waits until nobody has the lock, and does not want it */
    bool takes;          /* it is the one that takes the lock for all */
    uint64_t append_start; /* of a write that was let in: as the hold's */
    int result;
    child_set children; /* that it writes to: as of when it was let in */
    child_set readable; /* as the hold's */
};

/* See hold.c. Under the inode's lock, but for what belongs to who takes or ends it. */
struct hold {
    struct repl_inode *ri;
    enum hold_state { HOLD_FREE, HOLD_TAKING, HOLD_HELD, HOLD_ENDING } state;
    bool is_of_attributes; /* else of a file's data, or of a folder's names */
    bool must_end;    /* nobody joins any more; ends with its last writer */
    bool has_changed; /* some operation has been done on some child */
    bool is_unsynced; /* ... and its bytes may be in memory only */
    bool is_one_append;                /* what was written since the last sync is one piece */
    uint64_t append_start, append_end; /* its place */
    child_set had_none, had_less;      /* whose file ended at its start, or before */
    bool is_pinned;   /* the graph, by the hold */
    child_set locked, failed;
    child_set accused;  /* of a file's data: children that were missing when it was taken */
    child_set readable; /* of a file's data: whose copies were good when it was taken */
    uint32_t generation;                            /* at which it was taken */
    uint64_t until_ns;                              /* of names and attributes: it ends then */
    uint8_t owner[8];                               /* of the lock */
    struct cds_list_head writers, waiting, leaving; /* of struct writer */
    struct cds_list_head link;                      /* in the layer's `holds` */
    struct inode *inode;                            /* a reference, while it is taken */
    struct repl_fd *file;                           /* a reference, or NULL: by gfid */
    struct caller caller;                           /* of whoever took it */
    struct timer timer;
    struct worker_job job;
};

/* The context of an inode. */
struct repl_inode {
    pthread_mutex_t lock;  /* guards the holds. A leaf but for timers' and workers' queues */
    _Atomic uint64_t view; /* view.c */
    _Atomic uint64_t named_ns; /* of a folder: when this mount has changed a name last */
    _Atomic child_set doubted; /* of a folder: children about which it says "compare all names" (entry.c) */
    struct hold hold;
    _Atomic(struct hold *) attributes; /* the one on them; NULL: there was none yet */
    struct replicate *r;
    atomic_uint awaits;     /* of a new file, of enum new_file: what was not yet done to it */
    atomic_bool is_in_heal; /* it waits for a heal in the background, or has one */
    /* split-brain.c: the child to read from, and above the lowest 8 bits until which second. 0: none */
    _Atomic uint64_t choice;
};

/* ---- an operation ---------------------------------------------------------------------------- */

struct op {
    struct replicate *r;
    struct call_stack *stk; /* NULL: the caller has its reply */
    enum fop fop;
    struct inode *inode; /* references of the operation's own: it may outlive the call */
    struct inode *dir, *dir2;
    struct fd *fd;
    struct repl_fd *file;
    struct caller caller; /* of its own calls */
    bool is_pinned;       /* the graph: it may go on when the caller has had the reply */
    bool is_pressing;     /* its calls are spare ones: fan_insist() */
    child_set readable;   /* by op_admit(): whose copy of what it changes is good. 0: nobody has asked */
    char name[FOP_NAME_MAX + 1], name2[FOP_NAME_MAX + 1];
};

/* fn(arg) in a coroutine of its own. 0 or -errno. */
int op_run(coroutine_fn fn, void *arg);
/* Runs what begins the operation in a coroutine. */
xl_verdict op_start(struct xlator *xl, struct call_stack *stk);
/* The caller's reply is there: op->stk->reply. Once. */
void op_reply(struct op *op);
/* `err` is -errno. */
void op_fail(struct op *op, int err);
/* The quorum that the volume asks for, or the default for so many children. In a read section. */
struct quorum quorum_of(const struct replicate *r);
/* Whether this set of children may do what the operation wants. */
bool op_has_quorum(const struct op *op, child_set good);
/* Is more than one child needed, for some operations at least? */
bool op_wants_quorum(const struct op *op);

/* ---- fan.c ----------------------------------------------------------------------------------- */

struct fan {
    struct coro_group group;
    child_set sent;
    /* After fan_wait(): who has done it and said so; of the others, to whom it has not gone out, and who has
     * done it, but there was no memory for what it said. The failures are ours, and no child is accused. */
    child_set good, unsent, unread;
    struct call_stack *stk[REPLICAS_MAX];
    int ret[REPLICAS_MAX]; /* as of coro_call(); of those that were sent */
};

void fan_begin(struct fan *f);
/* `stk` (NULL: no memory) goes to child i. */
void fan_wind(struct fan *f, const struct op *op, unsigned i, struct call_stack *stk);
void fan_wait(struct fan *f);
/* A call for child i. NULL: no memory. */
typedef struct call_stack *(*fan_call_fn)(const struct op *op, unsigned i, const void *arg);
/* The caller's own. */
struct call_stack *fan_fork(const struct op *op, unsigned i, const void *unused);
/* All of that, for what all of `to` must do or none: 0, and their answers are there; -ENOMEM: nothing has
 * gone out, and the fan is empty. What has gone out to some goes to the others as soon as there is memory. */
int fan_ask(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg);
/* The same for what must be done whether there is memory or not: waits for it. Of answers only the results
 * are sure to be left: `stk` of a child may be NULL. */
void fan_insist(struct fan *f, const struct op *op, child_set to, fan_call_fn make, const void *arg);
/* Who has done it. */
static inline child_set
fan_done(const struct fan *f)
{
    return f->good | f->unread;
}
/* Somebody was not asked, or not heard: nothing may be concluded from what the others say. */
static inline bool
fan_is_short(const struct fan *f)
{
    return f->unsent | f->unread;
}
/* Gives back the calls and their replies. */
void fan_end(struct fan *f);
/* The errno (positive) that stands for all; 0: none has failed. */
int fan_errno(const struct fan *f);
/* All that were asked have failed in the same way, which was not that they were away. */
bool fan_is_symmetric(const struct fan *f);
/* The reply of child i is the caller's. */
int fan_take(struct fan *f, struct op *op, unsigned i);

/* The operation fails: what a child has said of it besides the errno is for the layer above, which may look
 * for the reason there. Without memory it does not have it. */
void fan_take_refusal(struct fan *f, struct op *op);

/* An empty one; NULL: no memory. */
struct call_stack *op_call_new(const struct op *op);
/* A copy of the caller's call for child i, with that child's fd. */
struct call_stack *op_fork(const struct op *op, unsigned i);
/* One of the operation's own, about its inode and that child's fd if there is one. */
struct call_stack *op_call(const struct op *op, enum fop fop, unsigned i);
/* Its xdata, made on first use. NULL: no memory. */
struct dict *call_xdata(struct call_stack *stk);
/* The caller's own call to child i, whose reply is in op->stk->reply then. As coro_call(). */
int op_call_child(struct op *op, unsigned i);

/* ---- view.c ---------------------------------------------------------------------------------- */

/* Which children may be read, as of some generation. */
struct view {
    uint32_t generation;
    child_set data, metadata; /* of a directory, `data` is about its entries */
};

int repl_inode_pool_init(void);
struct repl_inode *repl_inode(struct replicate *r, struct inode *inode);
void repl_inode_free(struct repl_inode *ri);
/* Its hold on attributes, made on first use. NULL: no memory. */
struct hold *repl_inode_attributes(struct repl_inode *ri);
/* False: nothing is known, or children have come or gone since. */
bool view_get(struct replicate *r, struct inode *inode, struct view *out);
void view_set(struct replicate *r, struct inode *inode, const struct view *v);
/* It is to be asked for again. */
void view_forget(struct replicate *r, struct inode *inode);
/* These children have missed a change. */
void view_drop(struct replicate *r, struct inode *inode, enum change what, child_set missed);
/* The keys by which replicas tell their counters. 0 or -ENOMEM. */
int view_ask(const struct replicate *r, struct dict *xdata, bool is_refresh);
/* What a child has answered to that. */
void replica_read(const struct replicate *r, const struct call_stack *stk, struct replica *out);
/* From the replies of a LOOKUP. */
void view_from_replies(const struct replicate *r, const struct fan *f, uint32_t generation, struct view *out);
/* Of `inode`, which the operation is about; children are asked where it is not known. 0; -ENOTCONN: no
 * quorum; -EIO: split-brain. *out may be empty in one kind, of which the caller does not ask. */
int view_of(struct op *op, struct inode *inode, struct view *out);
/* What every change of data or attributes begins with. `what` is the kind of counter. 0, and op->readable is
 * set; or -errno. */
int op_admit(struct op *op, struct inode *inode, enum change what);
/* The child to read from among `set` (not empty). */
unsigned view_choose(const struct replicate *r, child_set set, const struct inode *inode);

/* ---- transaction.c --------------------------------------------------------------------------- */

/* What is locked: a range of an inode or fd, or a name (NULL: all) of a directory. */
struct lock_entity {
    bool is_entry;
    struct inode *inode;
    const char *name;
    uint64_t start, len; /* len 0: to the end */
    const char *domain;  /* NULL: the layer's name, which keeps changes apart */
};
#define LOCK_ENTITIES_MAX 3
#define METADATA_START ((uint64_t)INT64_MAX - 1) /* the range to lock for attributes, to the end */

struct transaction {
    struct op *op;
    enum change what;
    child_set up, locked, failed;
    child_set readable;  /* who had a good copy before; 0: it does not matter */
    child_set accused;   /* by the mark before: children that were missing */
    bool has_doubted;    /* ... and told healers to compare all names of the folder */
    bool is_for_nothing; /* all have refused it alike */
    bool is_in_vain;     /* not done by enough children, or by none that was good */
    int why; /* errno of a lock or of the mark before; 0 */
    uint8_t owner[8];
    unsigned entity_count;
    struct lock_entity entity[LOCK_ENTITIES_MAX];
    unsigned marked_count; /* objects whose counters are used */
    struct inode *marked[2];
    const char *marked_name[2];
};

void transaction_init(struct transaction *t, struct op *op, enum change what);
void transaction_add(struct transaction *t, struct lock_entity e);
void transaction_mark(struct transaction *t, struct inode *inode, const char *name);
/* Locks and, where some child is missing, the mark before. 0 or -errno; nothing is held then. */
int transaction_begin(struct transaction *t);
/* After that: it shall not be done. What was marked is taken back, and it is unlocked. */
void transaction_give_up(struct transaction *t);
/* The same under locks that are held already, on `locked`, and that transaction_end() leaves alone. */
int transaction_begin_held(struct transaction *t, child_set locked);
/* The operation's calls, to all that are locked and have not failed. 0; -ENOMEM: none has gone out. */
int transaction_ask(struct transaction *t, struct fan *f, fan_call_fn make, const void *arg);
/* What the calls of the operation mean: who has failed. 0, or the -errno that the operation fails with. */
int transaction_judge(struct transaction *t, struct fan *f,
                      bool (*has_failed)(const struct fan *f, unsigned i));
/* The marks after, where they are needed. 0 or -errno: the operation is not known to be recorded. */
int transaction_mark_after(struct transaction *t);
/* Marks, replies (with `err`, -errno, if it is not 0) and unlocks. */
void transaction_end(struct transaction *t, int err);

/* XATTROP to `to`: adds `about` to the counters about each child (all of the set `accused`), `dirty` to
 * that. */
struct marks {
    struct inode *inode;
    struct repl_fd *file; /* NULL: by gfid */
    struct changelog about;
    child_set accused;
    const struct changelog *each; /* in place of `about` and `accused`: about each child. NULL: none */
    struct changelog dirty;
    bool purges_names; /* of a directory whose counters come down to 0: the index forgets its names */
    enum dict_key name_key; /* 0: no xdata */
    const char *name;
};
/* To child i. NULL: no memory. */
struct call_stack *marks_call(const struct op *op, unsigned i, const struct marks *m);
/* The same for fan_ask() and fan_insist(): `m` is a struct marks. */
struct call_stack *marks_make(const struct op *op, unsigned i, const void *m);
/* What they have answered: the counters after. */
void marks_read(const struct replicate *r, const struct fan *f, struct replica out[REPLICAS_MAX]);

/* Takes a lock on all of `on`, at once or one after the other. The children that have given all of them;
 * none, with ENOMEM, when one could not be asked. */
child_set locks_take(const struct op *op, const struct lock_entity *e, unsigned count, child_set on,
                     int *err);
/* Takes it at once or not at all; the children that have given it. */
child_set locks_try(const struct op *op, const struct lock_entity *e, child_set on);
void locks_drop_one(const struct op *op, const struct lock_entity *e, child_set on);
/* Winds the unlocks to `on`; ends in locks_dropped(), which waits for the answers, and, if one could not go
 * out, for memory. */
void locks_drop(const struct op *op, const struct lock_entity *e, unsigned count, child_set on,
                struct fan *fans);
void locks_dropped(const struct op *op, const struct lock_entity *e, unsigned count, struct fan *fans);

/* ---- hold.c ---------------------------------------------------------------------------------- */

void hold_init(struct hold *h, struct repl_inode *ri, bool is_of_attributes);
/* Joins, or takes it: of `inode`, whose context h->ri is. 0 or -errno. */
int hold_join(struct op *op, struct inode *inode, struct hold *h, struct writer *w);
struct hold_outcome {
    child_set failed;
    bool has_changed, is_unsynced, was_synced, may_wait; /* ... keep it for the next one */
    bool breaks_append;           /* a change that is not a write, or was not done as a whole */
    child_set had_none, had_less; /* whose file ended at the writer's append_start before, or before that */
};
/* The writer is done. `waits`: for the end of the hold; then 0, or the -errno of its marks. */
int hold_leave(struct op *op, struct hold *h, struct writer *w, const struct hold_outcome *o, bool waits);
/* Somebody has it, takes it or gives it back. */
bool hold_is_taken(struct hold *h);
/* If nobody writes, it ends now; if somebody does, with the last of them. */
void hold_hurry(struct hold *h);
/* The same, and returns when that is done: what this mount keeps is in the way of what comes next. */
void hold_end(struct op *op, struct inode *inode, struct hold *h);
/* All of them; returns when there is none left. */
void holds_stop(struct replicate *r);

/* ---- open-files.c ---------------------------------------------------------------------------- */

int repl_fd_pool_init(void);
struct repl_fd *repl_fd_ref(struct repl_fd *f);
void repl_fd_unref(struct repl_fd *f);
struct fd *repl_fd_child(const struct repl_fd *f, unsigned i);
/* The children it is open on. */
child_set repl_fd_open(const struct repl_fd *f);
/* Opens it on children that have come up since. 0; -ENOMEM: one could not be asked. */
int repl_fd_complete(struct op *op);
/* The fd of an OPEN, OPENDIR or CREATE: the replies' fds become those of the children. 0 or -ENOMEM. */
int repl_fd_make(struct op *op, struct fan *f, struct inode *inode);
void repl_fd_released(struct replicate *r, struct fd *fd, struct repl_fd *f);

/* ---- read.c ---------------------------------------------------------------------------------- */

/* Children that may answer this operation. */
child_set read_good_for(const struct op *op, const struct view *v);
/* The child has said what is so; another one would say the same. */
bool read_is_answer(int ret);

/* ---- new-files.c ----------------------------------------------------------------------------- */

enum new_file { NEW_IS_WRITTEN = 1, NEW_IS_SET = 2 };
/* The CREATE of `op` has made it; not answered yet. */
void new_file_made(struct op *op, struct inode *inode);
/* It is answered: takes the locks that the next calls are expected to need. */
void new_file_expect(struct op *op);
/* `what` is done to a file, which may be a new one. */
void new_file_changed(struct repl_inode *ri, enum new_file what);
/* An fd of a file, which may be a new one, is closed. */
void new_file_closed(struct repl_inode *ri);
/* MKDIR has made a folder: op->inode is that, for new_folder_expect() when it has been answered. */
void new_folder_made(struct op *op, struct inode *inode);
void new_folder_expect(struct op *op);

/* ---- where operations begin ------------------------------------------------------------------ */

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

/* data.c: FTRUNCATE to 0 of the fd of `op`, for OPEN with O_TRUNC. 0 or -errno. */
int data_truncate_opened(struct op *op);

#endif
