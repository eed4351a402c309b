/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xlator: a layer of a graph: its type (code, const) and its instance (one per volume section of a volfile).
 *
 * Threads: an instance's fields are written while its graph is built or activated, before any other thread
 * sees it, and only read afterwards; but `conf`, which is published with RCU (see xlator_conf), and `is_off`
 * and `next`, which change with it.
 */
#ifndef KILN_STACK_XLATOR_H
#define KILN_STACK_XLATOR_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>

#include "data/option.h"
#include "stack/call-stack.h"

struct brick_client;
struct dump;
struct fd;
struct graph;
struct inode;
struct inode_table;
struct reason;
struct volfile_section;

/* One that waits in a layer, and who has sent it. */
struct parked_call {
    enum fop fop;
    uint32_t uid, gid;
    int32_t pid;
};

/* Objects on which a layer may keep a context. */
enum ctx_kind { CTX_INODE, CTX_FD, CTX_CLIENT, CTX_KINDS };
#define KEEPS(kind) (1u << (kind))

/* CHILD_REFUSED: a brick will not have us, and has said that it never will (wire 3.3). CHILD_SOME_UP and
 * CHILD_SOME_DOWN: the child serves as before, but one of those below it has come or gone, so that what is
 * remembered of its answers may be old; they end at the top, and whoever made the graph is not told. */
enum child_event { CHILD_UP, CHILD_DOWN, CHILD_CONNECTING, CHILD_REFUSED, CHILD_SOME_UP, CHILD_SOME_DOWN };

typedef xl_verdict (*fop_fn)(struct xlator *xl, struct call_stack *stk);

/* Absent means "not interested". `any` is asked for every fop that has no function of its own. */
struct xlator_ops {
    fop_fn any;
    union {
        fop_fn fn[FOP_COUNT];
        struct {
#define FOP(name, ...) fop_fn name;
#include "stack/fops.def"
#undef FOP
        };
    };
};

struct xlator_type {
    const char *name;             /* as in the volfile: "features/locks" */
    const struct option *options; /* ends with OPT_END */
    /* Keys whose new value acts when the brick is started again, and is logged until then; ends with NULL.
     * Absent: all act at once. */
    const char *const *at_start;
    size_t conf_size;
    const struct xlator_ops *ops;
    /* KEEPS(CTX_INODE) | ...: each such object of the graph has room for a context of this layer */
    unsigned keeps;

    /* Absent: always on the way of its fops. False: off it, as long as its options say so. They may change
     * while calls run: a layer that has been off is initialised and started all the same, and one that was
     * switched off may still be called by, or hold frames of, calls that began before. Options that would
     * switch off a layer with several children are refused. */
    bool (*is_active)(const void *conf);
    uint64_t stays_for; /* bits of fops on whose way it is all the same */
    /* Has any number of children and winds each call to those it names (call_stack_wind_child,
     * call_stack_fork). Of other types a layer has one child at most, and a layer between it and the storage
     * that is left out is not in the way. */
    bool fans_out;
    /* Not built: left out of the graph, whatever its options say. What they ask for in vain is told of
     * (graph/unbuilt.h). */
    bool is_not_built;
    /* Answers changes before they are done, and tells by FLUSH what has become of them: such a layer answers
     * a FLUSH_OF_MOUNT itself. */
    bool answers_early;

    /* Makes xl->private. The layers below have been initialised already. 0 or -errno, which *why (empty so
     * far) explains: it is not logged here, for whoever wants the graph is told. "" will do for lack of
     * memory. */
    int (*init)(struct xlator *xl, struct reason *why);
    /* All calls have ended, no inode, fd or client is left. Undo init. */
    void (*fini)(struct xlator *xl);
    /* A new conf was published; `old` is the one before, freed after return and a grace period. */
    void (*reconfigured)(struct xlator *xl, const void *old);

    /* The layer's context of an inode, fd or client must go. Called once per object that has one, when no one
     * else can reach it. */
    void (*inode_forget)(struct xlator *xl, struct inode *inode, void *ctx);
    void (*fd_release)(struct xlator *xl, struct fd *fd, void *ctx);
    void (*client_release)(struct xlator *xl, struct brick_client *client, void *ctx);
    /* The last reference to `fd` is gone, with or without a context; before fd_release. */
    void (*fd_closed)(struct xlator *xl, struct fd *fd);
    /* The client's last connection is gone; its fds are still open. Drop its locks, wake its waiters. */
    void (*client_gone)(struct xlator *xl, struct brick_client *client);
    /* The reply of a call whose `ends_for` is this layer is complete: it may be read, not changed. */
    void (*call_ends)(struct xlator *xl, struct call_stack *stk);
    /* A call in which this layer has the frame `f` is parked below (call_stack_park): what running calls are
     * counted for, it gives back. Under the lock of the layer that parks: it takes leaf locks only. */
    void (*call_parks)(struct frame *f, struct call_stack *stk);
    /* ... goes on. True: counted again, or was. False: later; the layer calls call_stack_unpark() again. */
    bool (*call_goes_on)(struct frame *f, struct call_stack *stk);
    /* Each call that waits in this layer for as long as others please, until `fn` says false; layers that
     * call call_stack_park() have it. `fn` runs under a lock of the layer's: it takes leaf locks only. */
    void (*each_parked)(struct xlator *xl, bool (*fn)(const struct parked_call *c, void *arg), void *arg);
    /* What is below `child` has come up, gone down, or tries to; from any thread. Absent: passed on to the
     * layer above. One that has this passes on, with xlator_tell_parent(), what the layers above shall know.
     */
    void (*notify)(struct xlator *xl, struct xlator *child, enum child_event event);
    /* A lock that this mount has on the object, in this domain, is in another client's way; from any thread.
     * Absent: passed on to the layer above. One that has this passes on what is not its own lock. */
    void (*contended)(struct xlator *xl, const struct gfid *gfid, const char *domain);
    /* Another client has changed the object: what is remembered of it is old. `flags`: UPCALL_*, what has
     * changed. From any thread. Absent: passed on to the layer above. */
    void (*invalidated)(struct xlator *xl, const struct gfid *gfid, uint32_t flags);
    /* Statedump: key=value lines. */
    void (*dump)(struct xlator *xl, struct dump *dump);
    /* Threads of this layer that belong to the whole brick start and stop here: after publish, before drain.
     */
    int (*start)(struct xlator *xl);
    void (*stop)(struct xlator *xl);
    /* After stop, when all calls have ended: inodes and fds that the layer still holds of its own are given
     * back. */
    void (*drained)(struct xlator *xl);
};

enum { GRAPH_LAYERS_MAX = UINT16_MAX };

struct xlator {
    const struct xlator_type *type;
    const char *name; /* the volfile's volume name */
    struct graph *graph;
    struct xlator *parent;    /* above; NULL for the top */
    struct xlator **children; /* below, in the volfile's order */
    unsigned child_count;     /* 0 for storage; more than one only if the type fans out */
    /* the layers below that have none below them, counted in the volfile's order over the whole graph */
    uint16_t leaf_first, leaf_count;
    /* its functions: the type's, or none if that is not built; see xlator_fn() */
    const struct xlator_ops *ops;
    void *conf;             /* RCU: type's conf struct; see xlator_conf() */
    void *private;          /* what init made */
    /* where this layer's context is in an inode, fd, client: the first is 1; 0: keeps none */
    uint16_t slot[CTX_KINDS];
    /* FOP_COUNT figures: calls that wait in this layer for as long as others please, call_stack_park(). NULL:
     * the type has no each_parked, and none are counted */
    atomic_uint *parked;
    atomic_bool is_off;     /* not on the way of its fops; written when options change */
    /* of a layer that is a brick: BRICK_*, as of its last login */
    atomic_uint brick_facts;
    /* how many places further on in the graph's array xlator_next() is; 0: there is none. Written when
     * options change. (Pointers would take four times as much, in each layer of each brick.) */
    _Atomic uint16_t next[FOP_COUNT];
};

/* What a brick has said of itself. */
#define BRICK_REMOVALS_PASS 0x1u /* inodelks of dht. domains do not hold back removals (brick 8.7) */

/* What all bricks below `xl` have said; 0 while one has not said anything yet. Any thread, no lock. */
unsigned xlator_brick_facts(const struct xlator *xl);

/* The layer's conf. Valid until the calling fop function or callback returns: fetch it again after being
 * parked. (Workers and timers run layers inside an RCU read section.) */
static inline const void *
xlator_conf(const struct xlator *xl)
{
    /* as free as a plain load, and the compiler knows what it is */
    return __atomic_load_n(&xl->conf, __ATOMIC_ACQUIRE);
}

/* Is it on the way of its fops? As its options say now; any thread, no lock. */
static inline bool
xlator_is_on(const struct xlator *xl)
{
    return !atomic_load_explicit(&xl->is_off, memory_order_relaxed);
}

/* The layer's function for a fop; NULL: it has none. */
static inline fop_fn
xlator_fn(const struct xlator *xl, enum fop fop)
{
    const struct xlator_ops *ops = xl->ops;

    return ops->fn[fop] ? ops->fn[fop] : ops->any;
}

/* The first layer below `xl` that is on this fop's path; NULL: none, or `xl` has several children. Any
 * thread, no lock; after a change of options the answer may be another. */
static inline struct xlator *
xlator_next(const struct xlator *xl, enum fop fop)
{
    /* as free as a plain load here */
    unsigned distance = atomic_load_explicit(&xl->next[fop], memory_order_acquire);

    return distance ? (struct xlator *)xl + distance : NULL;
}

/* `xl` itself or the first layer below it that is on this fop's path; as xlator_next(). */
static inline struct xlator *
xlator_first(struct xlator *xl, enum fop fop)
{
    static_assert(FOP_COUNT <= 64, "a bit each");
    bool stays = xlator_is_on(xl) || xl->type->stays_for >> fop & 1;

    return stays && xlator_fn(xl, fop) ? xl : xlator_next(xl, fop);
}

/* From now on `below`, of the same array and behind `xl` (GRAPH_LAYERS_MAX), is xlator_next(); NULL: none. */
static inline void
xlator_set_next(struct xlator *xl, enum fop fop, const struct xlator *below)
{
    assert(!below || (below > xl && below - xl <= GRAPH_LAYERS_MAX));
    atomic_store_explicit(&xl->next[fop], (uint16_t)(below ? below - xl : 0), memory_order_release);
}

/* Tells the layers above of what has become of `xl`: the next one with a notify, or, above the top, whoever
 * made the graph (struct graph's watch). Any thread; no lock of the layer's is held. */
void xlator_tell_parent(struct xlator *xl, enum child_event event);
/* The same for a lock that is in another client's way (`contended`). If nobody above cares nothing happens,
 * and the other client waits until the lock is given back. */
void xlator_tell_contended(struct xlator *xl, const struct gfid *gfid, const char *domain);
/* The same for an object that another client has changed (`invalidated`). */
void xlator_tell_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags);

/* The types that are linked in: constant, for ever; any thread. NULL if there is none of this name. */
const struct xlator_type *xlator_type_find(const char *name);
/* All of kilnd's, by number from 0; NULL after the last. Any thread. */
const struct xlator_type *xlator_type_at(size_t number);

#endif
