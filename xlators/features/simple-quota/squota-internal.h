/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* simple-quota: what the files of the layer share (spec: gluster11 2). simple-quota.c tells what it is for.
 *
 *   simple-quota.c   options, the operations, the type
 *   xattr.c          marks, limits, the virtual names, STATFS
 *   account.c        what one change of one object does to the usage of its namespace
 *   namespace.c      which namespace an object is in; limits; a namespace's xattrs
 *   ask.c            what the daemon asks and tells (simple-quota.h)
 *   state.c          the file that makes the usage survive a kill
 *   walk.c           counts a namespace anew
 *
 * The usage of a namespace is the sum of the charges of the objects in it: the bytes that the file system
 * has allotted to each (st_blocks), an object with several names once. An object is charged what the last
 * look at it showed. Around each change stand squota_begin() and squota_end(), which charges what the reply
 * tells and puts the object on the queue of those to be looked at: a reply hides what is allotted beyond a
 * file's end, and changes of one object overlap. The queue is emptied once a second, before a change is
 * refused, and before usage is told.
 *
 * Locks: squota.lock guards all fields below but where they say otherwise. It is held for some instructions,
 * never over a system call or a call to another layer; inside it only the inode table's locks are taken, by
 * inode_ref().
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
#include "xlators/storage/posix/stat.h"

#define SQUOTA_XATTR_NAMESPACE "trusted.glusterfs.namespace"
#define SQUOTA_XATTR_LIMIT "trusted.gfs.squota.limit"
#define SQUOTA_XATTR_SIZE "trusted.gfs.squota.size"
#define SQUOTA_TOTAL "glusterfs.quota.total-usage"
#define SQUOTA_RESET "glusterfs.quota.reset"
#define SQUOTA_DISABLE_CHECK "glusterfs.quota.disable-check"

#define SQUOTA_NAME_NEEDS 4096 /* bytes: what a new name may cost */

enum { SQUOTA_PID_PROVISIONER = -14 }; /* kadalu's: a user like others, but for what it may set */

struct squota_conf {
    bool passes_through, cmd_from_all;
    char *use_backend; /* for what is not built */
};

struct squota_walk;

/* A folder with the mark. Made when it is met first; lives as long as the layer. */
struct squota_ns {
    struct cds_list_head link; /* in squota.namespaces */
    struct gfid gfid;
    /* its number in the state file; 0: there is no room, so it is counted at each start */
    unsigned record;
    int64_t limit;       /* bytes; 0 or less: none */
    int64_t used;        /* bytes, charged */
    int64_t reserved;    /* bytes that running changes may add */
    int64_t ahead;       /* of `used`: allotted to files beyond their ends, unasked */
    int64_t told_total, told_at; /* of all bricks, and `used` when that was told; told_total < 0: never */
    int64_t stored;      /* what the xattr says */
    bool is_gone;        /* the folder was removed */
    struct squota_walk *walk; /* NULL unless it is being counted */
};

/* Of an inode. */
struct squota_inode {
    struct squota_ns *ns; /* NULL: in none */
    unsigned generation;  /* squota.generation when `ns` was looked for; 0: not yet */
    unsigned flying;      /* changes under way */
    unsigned begun;       /* changes ever begun, wraps */
    unsigned slot;        /* in the state file while flying or queued; 0: none */
    bool is_known;        /* `charge` is */
    bool is_queued;       /* on squota.queue, which then has a reference to the inode */
    uint32_t changed_s;   /* when its last change began: seconds of CLOCK_MONOTONIC */
    int64_t charge;       /* bytes */
    int64_t reserved, ahead; /* of the namespace's, by this object */
    bool is_allotted;     /* a client has asked for blocks beyond its end */
    int64_t made;         /* the charge when it was met first: what a new object had, for squota_made() */
    int64_t size;         /* a file's, at the last look */
    struct inode *inode;  /* no reference, unless is_queued */
    struct cds_list_head link;
};

struct squota {
    struct xlator *xl, *storage; /* set when made */
    pthread_mutex_t lock;
    pthread_mutex_t
        look_lock; /* one thread at a time empties the queue. Taken before `lock`, and held over calls
                                  to the layers below, which take none of this layer's */
    struct cds_list_head namespaces;
    unsigned ns_count;
    unsigned generation; /* goes up when a folder is marked: objects look for their namespace anew */
    struct cds_list_head queue; /* of squota_inode */
    unsigned queued;
    bool is_check_off;
    struct squota_state *state; /* NULL: not on */
    struct timer timer;
    struct worker_job job;
    bool is_timer_set, is_job_posted, is_stopping;
    pthread_cond_t idle; /* the job or a walk has ended */
    unsigned walks;      /* under way */
};

static inline struct squota *
squota_of(const struct xlator *xl)
{
    return xl->private;
}

/* ---- state.c: BRICK/.glusterfs/kiln-squota --------------------------------------------------- */

/* Opens or makes it. *is_whole: what it says of the namespaces is true, once its slots were looked at; else
 * it is empty. NULL: it cannot be had, and it was logged. */
struct squota_state *squota_state_open(struct xlator *xl, bool *is_whole);
/* The end; `is_clean`: nothing is flying, so that it is true even after a crash of the machine. */
void squota_state_close(struct squota_state *s, bool is_clean);
/* The brick is served without the layer: what the file says will not be true any more. */
void squota_state_forget(struct xlator *xl);
/* Under squota.lock, all of them. A namespace's record: 0 none, or no room. *used: what it says.
 * *is_counting: a count was not finished. */
unsigned squota_state_find(struct squota_state *s, const struct gfid *ns, int64_t *used, bool *is_counting);
unsigned squota_state_add(struct squota_state *s, const struct gfid *ns);
void squota_state_drop(struct squota_state *s, unsigned record);
void squota_state_counting(struct squota_state *s, unsigned record, bool is_counting);
void squota_state_set(struct squota_state *s, unsigned record, int64_t used);
/* A slot for an object of this namespace that may change, charged so much; 0: there is no room, and the
 * namespace will be counted at the next start. */
unsigned squota_slot_take(struct squota_state *s, unsigned record, const struct gfid *object, int64_t charge);
void squota_slot_give(struct squota_state *s, unsigned slot);
/* In one step as seen after a kill: the namespace has `used`, the slot's object is charged `charge`. */
void squota_state_settle(struct squota_state *s, unsigned record, int64_t used, unsigned slot,
                         int64_t charge);
/* At the start: the next slot after `slot` that is taken (0 at first), or 0; *record 0: its namespace is
 * gone. */
unsigned squota_slot_next(struct squota_state *s, unsigned slot, unsigned *record, struct gfid *object,
                          int64_t *charge);
int64_t squota_state_used(const struct squota_state *s, unsigned record);
/* The next namespace after `record` (0 at first), or 0. */
unsigned squota_state_next(const struct squota_state *s, unsigned record, struct gfid *ns);

/* ---- namespace.c ----------------------------------------------------------------------------- */

/* The inode's context, with its namespace found. NULL: no memory. *err: -errno if it could not be found. May
 * call the layers below. `parent`: a folder that it is in, if known. */
struct squota_inode *squota_inode_get(struct xlator *xl, struct inode *inode, struct inode *parent, int *err);
/* The context as it is; made if need be. NULL: no memory. */
struct squota_inode *squota_inode_ctx(struct xlator *xl, struct inode *inode);
/* The folder has the mark: it is a namespace from now on. 0 or -ENOMEM. */
int squota_ns_mark(struct xlator *xl, struct inode *dir);
/* A limit's text; what is no number is no limit. */
int64_t squota_limit_parse(const struct dict_pair *p);
/* At the start: the namespaces that the state file names, with their limits. */
void squota_ns_load_all(struct xlator *xl);
void squota_ns_set_limit(struct xlator *xl, struct squota_ns *ns, int64_t limit);
/* Somebody else has written the size xattr: it is written again in a second. */
void squota_ns_is_stale(struct xlator *xl, struct squota_ns *ns);
/* Writes the size xattr, if it is old. */
void squota_ns_store(struct xlator *xl, struct squota_ns *ns);
void squota_ns_store_all(struct xlator *xl);
/* The object is a namespace's folder: which one. No calls. */
static inline bool
squota_is_root_of(const struct squota_inode *ctx, const struct gfid *gfid)
{
    return ctx->ns && gfid_equal(&ctx->ns->gfid, gfid);
}

/* Asks the storage, which is the only layer that knows: 0 or -errno. */
int squota_stat(struct xlator *xl, struct inode *inode, struct posix_allotted *out);

/* Calls of the layer's own, wound below it and answered before they return: 0 or -errno. */
struct squota_mark {
    bool is_marked;
    int64_t limit;
};
/* By name, or by gfid when `parent` is NULL. */
int squota_lookup(struct xlator *xl, struct inode *parent, const char *name, const struct gfid *gfid,
                  struct iatt *out, struct squota_mark *mark);
/* A call stack for one of them, which squota_run() winds: 0 or -errno. The caller frees it. NULL: no
 * memory. */
struct call_stack *squota_call(enum fop fop);
int squota_run(struct xlator *xl, struct call_stack *stk);

/* ---- account.c ------------------------------------------------------------------------------- */

/* What a change may add: `fixed` bytes, or the blocks for a range of a file that are not allotted yet. */
struct squota_need {
    int64_t fixed;
    uint64_t offset, bytes;
    bool allots; /* also beyond the file's end */
};
/* A change of the object begins. NULL with *err 0: it is in no namespace, and there is nothing to end.
 * -EDQUOT: the limit is in the way, and the caller is a user. *reserved: for squota_end(). May call the
 * layers below. `need` NULL: nothing. */
struct squota_inode *squota_begin(struct xlator *xl, const struct call_stack *stk, struct inode *inode,
                                  struct inode *parent, const struct squota_need *need, int64_t *reserved,
                                  int *err);
/* What is known of the object after the change. */
enum squota_after {
    SQUOTA_CHANGED, /* `after` tells the size of a file; what it has beyond that is to be looked at */
    SQUOTA_UNSURE,  /* it is to be looked at */
    SQUOTA_GONE,    /* it is not there any more */
    SQUOTA_AS_WAS,  /* nothing has happened */
};
/* `ctx` NULL: nothing was begun. */
void squota_end(struct xlator *xl, struct squota_inode *ctx, enum squota_after what, const struct iatt *after,
                int64_t reserved);
/* A new object of this gfid is about to be made in the folder `parent`, a change of which is under way: a
 * slot for it. squota_made(): it was made, and is as `after` says; NULL: it was not. */
unsigned squota_expect(struct xlator *xl, struct squota_inode *parent, const struct gfid *gfid);
void squota_made(struct xlator *xl, struct squota_inode *parent, unsigned slot, const struct iatt *after);
/* Counts an object of a namespace that is walked, unless it was counted. */
void squota_count(struct xlator *xl, struct squota_ns *ns, struct inode *inode);
/* The object has more blocks beyond its end than are passed over: the file system gives them back, untold. */
bool squota_has_ahead(const struct posix_allotted *found);
/* An object that is charged what it has is looked at until the file system has given back what it will. */
void squota_watch(struct xlator *xl, struct inode *inode);
/* Looks at those of the namespace (NULL: at all) that are due, or at all of them. */
void squota_look(struct xlator *xl, const struct squota_ns *ns, bool is_due_only);
/* Under the lock: there is something to do in a second. */
void squota_wake(struct squota *q);
/* Moves the charge of an object to the namespace it is in now. */
void squota_moved(struct xlator *xl, struct squota_inode *ctx, struct squota_ns *to);
/* Under the lock: the object is charged `bytes` from now on. */
void squota_settle(struct squota *q, struct squota_inode *ctx, int64_t bytes);
/* Under the lock: what it has beyond its end is not its namespace's any more. */
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

/* Winds a call that changes `inode` alone; `cb` is its frame's, which ends the change. The verdict. */
xl_verdict squota_change_of(struct xlator *xl, struct call_stack *stk, struct inode *inode,
                            const struct squota_need *need, frame_cb cb);
/* Such a frame's, for changes of which the reply tells nothing. */
xl_verdict squota_object_changed(struct frame *f, struct call_stack *stk);

/* ---- xattr.c --------------------------------------------------------------------------------- */

/* The layer's operations of these names. */
xl_verdict squota_setxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_removexattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_getxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict squota_statfs(struct xlator *xl, struct call_stack *stk);

/* ---- walk.c ---------------------------------------------------------------------------------- */

/* Counts the namespace anew, in the background. While it runs the usage is what was counted so far. Not
 * under the lock. */
void squota_walk_start(struct xlator *xl, struct squota_ns *ns);
/* A folder was moved within the namespace while it is counted: it is walked once more. Under the lock. */
void squota_walk_again(struct squota_walk *w, const struct gfid *dir);
/* True once for each object: it was not counted yet. Under the lock. */
bool squota_walk_counts(struct squota_walk *w, const struct gfid *object);
bool squota_walk_has_counted(const struct squota_walk *w, const struct gfid *object);
#endif
