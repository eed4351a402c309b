/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* simple-quota: the declarations that the files of the layer share (spec: gluster11 2). The purpose of the
 * layer is described in simple-quota.c.
 *
 *   simple-quota.c   options, the operations, the type
 *   xattr.c          marks, limits, the virtual names, STATFS
 *   account.c        how a change of one object changes the usage of its namespace
 *   namespace.c      the namespace of an object; limits; a namespace's xattrs
 *   ask.c            the daemon's requests (simple-quota.h), the sum of all bricks
 *   shared.c         usage of the bricks of one process
 *   state.c          the file that makes the usage survive a kill
 *   walk.c           counts a namespace anew
 *   recover.c        corrects the usage after a kill
 *   folder.c         lists a folder on the disk
 *
 * The usage of a namespace is the sum of the charges of its objects: the bytes that the file system has
 * allotted to each (st_blocks). An object with several names is charged once. The charge of an object is the
 * result of the last stat of it. Each change runs between squota_begin() and squota_end(). squota_end()
 * charges the figures of the reply and queues the object for a stat, because a reply hides the blocks beyond
 * a file's end and because changes of one object overlap. The layer stats the queued objects once a second,
 * before it refuses a change, and before it reports usage.
 *
 * Locks: squota.lock guards all fields below unless their comments say otherwise. It is held for a few
 * instructions, never across a system call or a call to another layer. While a thread holds it, it takes only
 * the inode table's locks, in inode_ref().
 */
#ifndef KILN_SQUOTA_INTERNAL_H
#define KILN_SQUOTA_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "stack/xlator.h"
#include "xlators/features/simple-quota/simple-quota.h"
#include "xlators/storage/posix/object/stat.h"

#define SQUOTA_XATTR_NAMESPACE "trusted.glusterfs.namespace"
#define SQUOTA_XATTR_LIMIT "trusted.gfs.squota.limit"
#define SQUOTA_XATTR_SIZE "trusted.gfs.squota.size"
#define SQUOTA_TOTAL "glusterfs.quota.total-usage"
#define SQUOTA_RESET "glusterfs.quota.reset"
#define SQUOTA_DISABLE_CHECK "glusterfs.quota.disable-check"

#define SQUOTA_NAME_NEEDS 4096 /* bytes that a new name may cost */

enum { SQUOTA_PID_PROVISIONER = -14 }; /* kadalu's provisioner: limited like a user, but may set limits */

struct squota_conf {
    bool passes_through, cmd_from_all;
    char *use_backend; /* for an option that Kiln does not implement */
};

struct squota_walk;
struct squota_shared;

/* A folder with the mark. Created when the layer first meets the folder; lives as long as the layer. */
struct squota_ns {
    struct cds_list_head link; /* in squota.namespaces */
    struct gfid gfid;
    /* number of its record in the state file; 0: the file is full, so the namespace is counted at each start
     */
    unsigned record;
    int64_t limit;       /* bytes; 0 or less: none */
    int64_t used;        /* bytes, charged; while the namespace is being counted: the sum so far */
    /* While the namespace is being counted: the usage from before the count, with later changes. It stands in
     * for `used` as long as the sum is smaller, so that a count lets nobody pass the limit. Before a count:
     * the last known usage. */
    int64_t floor;
    int64_t reserved;    /* bytes that running changes may add */
    int64_t ahead; /* bytes of `used` that the file system allotted beyond files' ends without a request */
    /* The usage of other bricks, from the last sum of all bricks; < 0: never received. Kept in the state
     * file. */
    int64_t others;
    int64_t listed; /* the part of this brick in the sum that will come; < 0: not listed */
    /* The last sum that lacked subvolumes: which ones (0: none), and `others` and the sum of the rest when
     * that began. */
    uint32_t missing;
    int64_t others_then, rest_then;
    /* Usage of the volume's bricks in this process as of now; NULL: unknown. `cell`: this brick's part of it,
     * < 0: none. `remote`: the usage of all further bricks. */
    struct squota_shared *shared;
    int cell;
    int64_t remote;
    int64_t stored;      /* value of the size xattr */
    bool is_gone;        /* the folder was removed */
    struct squota_walk *walk; /* NULL unless the namespace is being counted */
};

/* The usage as limits, replies and the disk know it. Under the lock. */
static inline int64_t
squota_used(const struct squota_ns *ns)
{
    return ns->walk && ns->floor > ns->used ? ns->floor : ns->used;
}

/* The layer's context of an inode. */
struct squota_inode {
    struct squota_ns *ns; /* NULL: in no namespace */
    unsigned generation;  /* squota.generation when `ns` was determined; 0: not yet */
    unsigned flying;      /* changes under way; if any, the object is on squota.flyers */
    unsigned begun;       /* changes ever begun, wraps */
    unsigned slot;        /* in the state file while flying or queued; 0: none */
    bool is_known;        /* `charge` is valid */
    bool is_queued;       /* on squota.queue, which then holds a reference to the inode */
    uint32_t changed_s;   /* when the last change began: seconds of CLOCK_MONOTONIC */
    int64_t charge;       /* bytes */
    int64_t reserved, ahead; /* this object's part of the namespace's `reserved` and `ahead` */
    bool is_allotted;     /* a client has requested blocks beyond the file's end */
    bool has_overlapped;  /* two changes ran at once since `flying` was 0 */
    int64_t made;         /* the charge at the first stat: the size of a new object, for squota_made() */
    int64_t size;         /* file size at the last stat */
    struct inode *inode;  /* no reference, unless is_queued */
    struct cds_list_head link, flyers_link;
};

struct squota {
    struct xlator *xl, *storage; /* set at creation */
    pthread_mutex_t lock;
    /* serialises the threads that empty the queue. Taken before `lock`, and held across calls to the layers
     * below, which take no lock of this layer */
    pthread_mutex_t look_lock;
    struct cds_list_head namespaces;
    unsigned ns_count;
    /* incremented when a folder is marked, so that objects look for their namespace anew */
    unsigned generation;
    struct cds_list_head queue; /* of squota_inode */
    struct cds_list_head flyers; /* squota_inodes with running changes */
    unsigned queued;
    bool is_check_off;
    struct squota_state *state; /* NULL: the layer is off */
    struct timer timer;
    struct worker_job job;
    bool is_timer_set, is_job_posted, is_stopping;
    pthread_cond_t idle; /* signalled when the job or a walk ends */
    unsigned walks;      /* number of running walks */
};

static inline struct squota *
squota_of(const struct xlator *xl)
{
    return xl->private;
}

/* ---- state.c: BRICK/.glusterfs/kiln-squota --------------------------------------------------- */

/* Opens or creates the file. *is_whole: its usage figures are correct once the objects in its slots have been
 * statted; otherwise the file is empty. Returns NULL after logging if the file cannot be used. */
struct squota_state *squota_state_open(struct xlator *xl, bool *is_whole);
/* Closes the file. `is_clean`: no change is running, so the contents stay valid even after a crash of the
 * machine. */
void squota_state_close(struct squota_state *s, bool is_clean);
/* Removes the file, because the brick is served without the layer and the figures will become wrong. */
void squota_state_forget(struct xlator *xl);
/* The following functions run under squota.lock. A record number of 0 means that the namespace has no record,
 * or that the file is full. *used: the recorded usage. *is_counting: a count was not finished. */
unsigned squota_state_find(struct squota_state *s, const struct gfid *ns, int64_t *used, bool *is_counting);
unsigned squota_state_add(struct squota_state *s, const struct gfid *ns);
void squota_state_drop(struct squota_state *s, unsigned record);
void squota_state_counting(struct squota_state *s, unsigned record, bool is_counting);
void squota_state_set(struct squota_state *s, unsigned record, int64_t used);
/* Takes a slot for an object of this namespace that may change, with its present charge. Returns 0 if the
 * file is full; then the namespace is counted at the next start. */
unsigned squota_slot_take(struct squota_state *s, unsigned record, const struct gfid *object, int64_t charge);
void squota_slot_give(struct squota_state *s, unsigned slot);
/* Stores the namespace's usage and the charge of the slot's object. After a kill the file contains both
 * values or neither. */
void squota_state_settle(struct squota_state *s, unsigned record, int64_t used, unsigned slot,
                         int64_t charge);
/* The usage of other bricks of the volume when the last sum was received; < 0: none was received. */
int64_t squota_state_others(const struct squota_state *s, unsigned record);
void squota_state_set_others(struct squota_state *s, unsigned record, int64_t others);
/* At the start of a brick: returns the next taken slot after `slot` (0 at first), or 0. *record 0: the
 * namespace has been removed. */
unsigned squota_slot_next(struct squota_state *s, unsigned slot, unsigned *record, struct gfid *object,
                          int64_t *charge);
int64_t squota_state_used(const struct squota_state *s, unsigned record);
/* Returns the next namespace after `record` (0 at first), or 0. */
unsigned squota_state_next(const struct squota_state *s, unsigned record, struct gfid *ns);

/* ---- ask.c ----------------------------------------------------------------------------------- */

/* All bricks together use `total` bytes. `missing`: the sum lacks some subvolumes, see simple_quota_tell().
 * Under the lock. */
void squota_ns_told(struct squota *q, struct squota_ns *ns, int64_t total, uint32_t missing);
/* Forgets the sum of all bricks. Under the lock. */
void squota_ns_untold(struct squota *q, struct squota_ns *ns);

/* ---- shared.c -------------------------------------------------------------------------------- */

/* Publishes that the brick of this cell uses `bytes`, and returns the usage of all bricks of this process:
 * the sum over the subvolumes of the fullest replica. Two bricks that both publish an addition before either
 * is made see each other's. Cell < 0: publishes nothing, and adds `bytes` to the sum. */
int64_t squota_shared_put(struct squota_shared *s, int cell, int64_t bytes);
/* Publishes the usage of the namespace after a change. Under the lock. */
static inline void
squota_shared_show(const struct squota_ns *ns)
{
    if (ns->shared && ns->cell >= 0)
        simple_quota_shared_set(ns->shared, (unsigned)ns->cell,
                                squota_used(ns) - ns->ahead + ns->reserved);
}

/* ---- namespace.c ----------------------------------------------------------------------------- */

/* Returns the inode's context, with its namespace determined. NULL: no memory. *err: -errno if the namespace
 * could not be determined. May call the layers below. `parent`: a folder that contains the object, if known.
 */
struct squota_inode *squota_inode_get(struct xlator *xl, struct inode *inode, struct inode *parent, int *err);
/* Returns the context as it is, creating it if necessary. NULL: no memory. */
struct squota_inode *squota_inode_ctx(struct xlator *xl, struct inode *inode);
/* Makes the marked folder a namespace. Returns 0 or -ENOMEM. */
int squota_ns_mark(struct xlator *xl, struct inode *dir);
/* Parses a limit or a size. A text that is not a number means 0: no limit. */
int64_t squota_limit_parse(const struct dict_pair *p);
/* At the start of a brick: loads the namespaces of the state file, with their limits. */
void squota_ns_load_all(struct xlator *xl);
void squota_ns_set_limit(struct xlator *xl, struct squota_ns *ns, int64_t limit);
/* A client has written the size xattr: schedules the xattr to be written again in a second. */
void squota_ns_is_stale(struct xlator *xl, struct squota_ns *ns);
/* Writes the size xattr if its value is out of date. */
void squota_ns_store(struct xlator *xl, struct squota_ns *ns);
void squota_ns_store_all(struct xlator *xl);
/* True if the object is the folder of a namespace. Calls no other layer. */
static inline bool
squota_is_root_of(const struct squota_inode *ctx, const struct gfid *gfid)
{
    return ctx->ns && gfid_equal(&ctx->ns->gfid, gfid);
}

/* Asks the storage layer, the only layer that knows the allotted blocks. Returns 0 or -errno. */
int squota_stat(struct xlator *xl, struct inode *inode, struct posix_allotted *out);

/* The layer's internal calls are wound below the layer, and their replies arrive before the functions return.
 * They return 0 or -errno. */
struct squota_mark {
    bool is_marked;
    int64_t limit;
    int64_t size; /* the size xattr */
};
/* Looks an object up by name, or by gfid if `parent` is NULL. */
int squota_lookup(struct xlator *xl, struct inode *parent, const char *name, const struct gfid *gfid,
                  struct iatt *out, struct squota_mark *mark);
/* Returns a call stack for an internal call, which squota_run() winds. squota_run() returns 0 or -errno. The
 * caller frees the stack. NULL: no memory. */
struct call_stack *squota_call(enum fop fop);
int squota_run(struct xlator *xl, struct call_stack *stk);

/* ---- account.c ------------------------------------------------------------------------------- */

/* Bytes that a change may add: `fixed` bytes, or the blocks of a file's range that are not allotted yet. */
struct squota_need {
    int64_t fixed;
    uint64_t offset, bytes;
    bool allots; /* allocates also beyond the file's end */
};
/* Begins a change of the object. Returns NULL with *err 0 if the object is in no namespace; then there is
 * nothing to end. -EDQUOT: a user's change would exceed the limit. *reserved: to be passed to squota_end().
 * May call the layers below. `need` NULL: the change adds nothing. */
struct squota_inode *squota_begin(struct xlator *xl, const struct call_stack *stk, struct inode *inode,
                                  struct inode *parent, const struct squota_need *need, int64_t *reserved,
                                  int *err);
/* State of the object after the change. */
enum squota_after {
    SQUOTA_CHANGED, /* `after` has the size of the file; its blocks beyond the end need a stat */
    SQUOTA_UNSURE,  /* needs a stat */
    SQUOTA_GONE,    /* the object no longer exists */
    SQUOTA_AS_WAS,  /* the change did not happen */
};
/* Ends a change. `ctx` NULL: no change was begun. */
void squota_end(struct xlator *xl, struct squota_inode *ctx, enum squota_after what, const struct iatt *after,
                int64_t reserved);
/* squota_expect() takes a slot for a new object of this gfid that is about to be created in the folder
 * `parent`, while a change of `parent` is running. squota_made() charges the new object with the attributes
 * `after`; NULL: the object was not created. */
unsigned squota_expect(struct xlator *xl, struct squota_inode *parent, const struct gfid *gfid);
void squota_made(struct xlator *xl, struct squota_inode *parent, unsigned slot, const struct iatt *after);
/* Counts an object of a namespace that is being walked, unless it was counted before. */
void squota_count(struct xlator *xl, struct squota_ns *ns, struct inode *inode);
/* At the beginning of a walk: counts the objects that are being changed, or wait for a stat. Under the
 * lock. */
void squota_count_busy(struct squota *q, const struct squota_ns *ns);
/* True if the object has more than a tolerated number of blocks beyond its end. The file system will free
 * these without notice. */
bool squota_has_ahead(const struct posix_allotted *found);
/* Stats a file, of which the usage contains `charged` bytes, again and again as long as may_drift() asks for
 * that: the last fds of the killed process may be closed only now. */
void squota_watch(struct xlator *xl, struct inode *inode, int64_t charged);
/* The last reference to an fd of the file is gone. The file system frees blocks beyond the file's end now, so
 * the file is statted again if it has any. */
void squota_closed(struct xlator *xl, struct squota_inode *ctx);
/* Stats the queued objects of the namespace (NULL: of all namespaces). `is_due_only`: only those that are
 * due. */
void squota_look(struct xlator *xl, const struct squota_ns *ns, bool is_due_only);
/* Schedules the background work in one second. Under the lock. */
void squota_wake(struct squota *q);
/* Moves the charge of an object to the namespace that it is in now. */
void squota_moved(struct xlator *xl, struct squota_inode *ctx, struct squota_ns *to);
/* Charges the object `bytes` from now on. Under the lock. */
void squota_settle(struct squota *q, struct squota_inode *ctx, int64_t bytes);
/* Subtracts the object's blocks beyond its end from `ahead` of its namespace. Under the lock. */
static inline void
squota_forget_ahead(struct squota_inode *ctx)
{
    if (ctx->ns)
        ctx->ns->ahead -= ctx->ahead;
    ctx->ahead = 0;
}
static inline bool
squota_is_checked(const struct caller *c)
{
    return !caller_is_internal(c) || c->pid == SQUOTA_PID_PROVISIONER;
}

/* ---- simple-quota.c -------------------------------------------------------------------------- */

/* Begins a change of `inode` alone and pushes a frame whose callback `cb` ends the change. Returns the
 * verdict. */
xl_verdict squota_change_of(struct xlator *xl, struct call_stack *stk, struct inode *inode,
                            const struct squota_need *need, frame_cb cb);
/* Such a callback, for changes whose reply has no attributes of the object. */
xl_verdict squota_object_changed(struct frame *f, struct call_stack *stk);

/* ---- xattr.c --------------------------------------------------------------------------------- */

/* The layer's operations of these names. */
xl_verdict squota_setxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_removexattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_getxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_statfs(struct xlator *xl, struct call_stack *stk);

/* ---- walk.c ---------------------------------------------------------------------------------- */

/* Counts the namespace anew, in the background. `is_less`: contents have left the namespace, so the usage
 * from before the count is too large to stand in for the sum. Not under the lock. */
void squota_walk_start(struct xlator *xl, struct squota_ns *ns, bool is_less);
/* Queues a folder for another walk, because it was moved within the namespace during the count. Under the
 * lock. */
void squota_walk_again(struct squota_walk *w, const struct gfid *dir);
/* True at the first call for each object: the object was not counted yet. Under the lock. */
bool squota_walk_counts(struct squota_walk *w, const struct gfid *object);
bool squota_walk_has_counted(const struct squota_walk *w, const struct gfid *object);

/* ---- recover.c ------------------------------------------------------------------------------- */

/* At the start of a brick: settles the objects that the previous process left in the middle of a change, and
 * loads the namespaces. */
void squota_recover(struct xlator *xl);

/* ---- folder.c -------------------------------------------------------------------------------- */

/* Opens a folder for squota_folder_list(). Returns 0 and a reference in *fd, or -errno. */
int squota_folder_open(struct xlator *xl, const struct gfid *gfid, struct fd **fd);
typedef void squota_entry_do(void *arg, struct inode *folder, const struct dirent_entry *e);
/* Calls each() for the next entries from *offset on, without . and .., and moves *offset. An entry's dict has
 * the mark of a namespace. Returns the number of entries with . and .., 0 at the end, or -errno. */
int squota_folder_list(struct xlator *xl, struct fd *fd, uint64_t *offset, squota_entry_do *each, void *arg);
#endif
