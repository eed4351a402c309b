/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xlator: a layer of a graph: the type (code, const) and the instance (for a volume section of a volfile).
 *
 * Threads: an instance's fields are written while its graph is built or activated, before any other thread
 * sees it, and are read-only afterwards. Exceptions are `conf`, which is published with RCU (see
 * xlator_conf), and `is_off` and `next`, which change with `conf`. */
#ifndef KILN_STACK_XLATOR_H
#define KILN_STACK_XLATOR_H

#include <assert.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "data/option.h"
#include "log/log.h"
#include "stack/call-stack.h"

struct brick_client;
struct brick_restorer;
struct brick_saver;
struct dump;
struct fd;
struct graph;
struct inode;
struct inode_table;
struct reason;
struct volfile_section;

/* A call that waits in a layer, and its caller. */
struct parked_call {
    enum fop fop;
    uint32_t uid, gid;
    int32_t pid;
};

/* Objects on which a layer may keep a context. */
enum ctx_kind { CTX_INODE, CTX_FD, CTX_CLIENT, CTX_KINDS };
#define KEEPS(kind) (1u << (kind))

/* CHILD_REFUSED: a brick has refused this client for good (wire 3.3). CHILD_SOME_UP and CHILD_SOME_DOWN:
 * the child serves as before, but a layer below it has come or gone, so cached answers of the child may be
 * old; these two events end at the top layer and are not passed to the graph's watch. */
enum child_event { CHILD_UP, CHILD_DOWN, CHILD_CONNECTING, CHILD_REFUSED, CHILD_SOME_UP, CHILD_SOME_DOWN };

/* News from below: any thread; the teller holds no lock of a layer. */
enum layer_event_kind {
    EVENT_CHILD,      /* the layers below `child` have come up, gone down, or try to connect: `change` */
    EVENT_CONTENDED,  /* a lock of this mount on the object, in this domain, blocks another client */
    EVENT_INVALIDATED /* another client has changed the object, so cached data about it is old */
};
struct layer_event {
    enum layer_event_kind kind;
    struct xlator *child;    /* the child of the hearing layer from which the event comes */
    enum child_event change; /* EVENT_CHILD */
    const struct gfid *gfid; /* the object of the other kinds; lent for the call */
    const char *domain;      /* EVENT_CONTENDED */
    uint32_t flags;          /* EVENT_INVALIDATED: UPCALL_*, the kinds of change; or INVALIDATED_CONTENTS */
};

/* Properties of a type of layer. */
/* It has any number of children and chooses a child for each call (call_stack_wind_child, call_stack_fork). A
 * layer without this has at most one child, so if it is left out, calls pass straight to the layer below. */
#define LAYER_FANS_OUT 0x1u
/* Not built: the layer is left out of the graph regardless of its options. Options that turn it on are logged
 * (graph/unbuilt.h). */
#define LAYER_NOT_BUILT 0x2u
/* The layer answers changes before the bricks have made them, reports the results at FLUSH, and answers a
 * FLUSH with HINT_FLUSH_OF_MOUNT by itself. */
#define LAYER_ANSWERS_EARLY 0x4u
/* The layer has nothing to do for a plain WRITE (call_path()): such calls pass the layer by. */
#define LAYER_SKIPS_PLAIN_WRITES 0x8u
/* The layer finds parts of a file by the file's name, so it cannot open a file again that was removed while
 * it was open. */
#define LAYER_OPENS_BY_NAME 0x10u
/* The layer tells the bricks the sizes of changed files at FLUSH, and answers a FLUSH with
 * HINT_FLUSH_OF_MOUNT by itself. */
#define LAYER_WRITES_AT_FLUSH 0x20u

typedef xl_verdict (*fop_fn)(struct xlator *xl, struct call_stack *stk);

/* An absent function means "not interested". `any` is called for every fop that has no function of its
 * own. */
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
    /* Keys whose new value takes effect only when the brick is restarted; until then a change is logged.
     * Ends with NULL. Absent: all take effect at once. */
    const char *const *at_start;
    size_t conf_size;
    const struct xlator_ops *ops;
    /* KEEPS(CTX_INODE) | ...: each such object of the graph has room for a context of this layer */
    unsigned keeps;

    /* Absent: the layer is always on the way of its fops. False: it is off the way, as long as its options
     * say so. The options may change while calls run: a layer that has been off is initialised and started
     * all the same, and a layer that was switched off may still be called by, or hold frames of, calls
     * that began before. Options that would switch off a layer with several children are refused. */
    bool (*is_active)(const void *conf);
    uint64_t stays_for; /* bits of fops that come to the layer even when it is off */
    unsigned traits; /* LAYER_* */

    /* Makes xl->private. The layers below have been initialised already. 0 or -errno with the explanation
     * in *why (empty at the call): init does not log it, because the caller that asked for the graph
     * reports it. For lack of memory "" is enough. */
    int (*init)(struct xlator *xl, struct reason *why);
    /* Undoes init. All calls have ended; no inode, fd or client is left. */
    void (*fini)(struct xlator *xl);
    /* A new conf was published; `old` is the one before, freed after return and a grace period. */
    void (*reconfigured)(struct xlator *xl, const void *old);

    /* Frees the layer's context of an inode, fd or client. Called once per object that has a context, when
     * no other thread can reach the object. */
    void (*inode_forget)(struct xlator *xl, struct inode *inode, void *ctx);
    void (*fd_release)(struct xlator *xl, struct fd *fd, void *ctx);
    void (*client_release)(struct xlator *xl, struct brick_client *client, void *ctx);
    /* The last reference to `fd` is gone, whether or not it has a context; called before fd_release. */
    void (*fd_closed)(struct xlator *xl, struct fd *fd);
    /* The fd that child `i` gets for this fd of the layer; lent. NULL: the file is not open there. Absent:
     * the children get the layer's own fd. */
    struct fd *(*fd_of_child)(const struct xlator *xl, struct fd *fd, unsigned i);
    /* The client's last connection is gone; its fds are still open. Drop the client's locks and wake its
     * waiting calls. */
    void (*client_gone)(struct xlator *xl, struct brick_client *client);
    /* The reply of a call whose `ends_for` is this layer is complete: it may be read, not changed. */
    void (*call_ends)(struct xlator *xl, struct call_stack *stk);
    /* A call in which this layer has the frame `f` is parked below (call_stack_park): the layer gives back
     * its slot for a running call. Runs under the lock of the parking layer, so it may take leaf locks
     * only. */
    void (*call_parks)(struct frame *f, struct call_stack *stk);
    /* A parked call wants to go on. True: it is counted again, or needs no count. False: the layer calls
     * call_stack_unpark() later. */
    bool (*call_goes_on)(struct frame *f, struct call_stack *stk);
    /* Calls `fn` for each call that waits in this layer for other clients, until `fn` returns false; all
     * layers that use call_stack_park() have this. `fn` runs under a lock of the layer, so it may take
     * leaf locks only. */
    void (*each_parked)(struct xlator *xl, bool (*fn)(const struct parked_call *c, void *arg), void *arg);
    /* News from below, from any thread. True: the layer has handled the event, and has told the layers above,
     * with xlator_tell(), what they need. False, as if the function were absent: the event goes to the layer
     * above. */
    bool (*event)(struct xlator *xl, const struct layer_event *e);
    /* A newer program takes this process over, and no call runs but the parked calls. `save` writes state of
     * this layer that the clients rely on and that is not on disk, in this program; `restore` reads the
     * output of the same type's `save`, in the next program, before any client's call (graph/saved-brick.h).
     * 0 or -errno: the take-over is refused, or the client is cut off. Absent: there is no such state. */
    int (*save)(struct xlator *xl, struct brick_saver *saver);
    int (*restore)(struct xlator *xl, struct brick_restorer *restorer);
    /* Writes key=value lines to the statedump. */
    void (*dump)(struct xlator *xl, struct dump *dump);
    /* Start and stop threads of this layer that belong to the whole brick: after publish, before drain. */
    int (*start)(struct xlator *xl);
    void (*stop)(struct xlator *xl);
    /* Called after stop, when all calls have ended: gives back inodes and fds that the layer still holds
     * for itself. */
    void (*drained)(struct xlator *xl);
};

enum { GRAPH_LAYERS_MAX = UINT16_MAX };
/* The cached contents of the file must not be read any more, although its attributes do not show a change. */
#define INVALIDATED_CONTENTS 0x80000000u

struct xlator {
    union {
        const char *name; /* the volfile's volume name */
        struct log_source log; /* log.name is this name */
    };
    const struct xlator_type *type;
    struct graph *graph;
    struct xlator *parent;    /* above; NULL for the top */
    struct xlator **children; /* below, in the volfile's order */
    unsigned child_count;     /* 0 for storage; more than one only if the type fans out */
    /* the leaf layers below, numbered in the volfile's order over the whole graph */
    uint16_t leaf_first, leaf_count;
    /* functions of the type, or none if the type is not built; see xlator_fn() */
    const struct xlator_ops *ops;
    void *conf;             /* RCU: type's conf struct; see xlator_conf() */
    void *private;          /* made by init */
    /* number of this layer's context in an inode, fd and client: the first is 1; 0: no context */
    uint16_t slot[CTX_KINDS];
    /* FOP_COUNT numbers: calls that wait in this layer for other clients, call_stack_park(). NULL: the
     * type has no each_parked, so calls are not counted */
    atomic_uint *parked;
    /* a layer below is away, without which names that exist are not found; written by cluster/distribute */
    atomic_bool is_degraded;
    atomic_bool is_off;     /* not on the way of its fops; written when options change */
    /* of a layer that is a brick: BRICK_* as of its last login */
    atomic_uint brick_facts;
    /* distance in the graph's array to the layer that xlator_next() returns; 0: none. Written when options
     * change. (Pointers would take four times as much, in each layer of each brick.) */
    _Atomic uint16_t next[PATH_COUNT];
};

_Static_assert(offsetof(struct xlator, log) == 0 && offsetof(struct log_source, name) == 0,
               "log_event() takes a layer as the source of a line");

/* Capabilities that a brick announced at login. */
#define BRICK_REMOVALS_PASS 0x1u /* inodelks of dht. domains do not hold back removals (brick 8.7) */
#define BRICK_NAMES_NOTICES 0x2u /* it reports a client that waits for a lock on all names (brick 8.8) */
#define BRICK_SEQUENCES 0x4u     /* it takes several calls in one record: call_stack_join() */
#define BRICK_NAME_NOTES 0x8u    /* it keeps notes about names that a rename changes (features/index) */

/* The capabilities that all bricks below `xl` share; 0 until all have logged in. Any thread, no lock. */
unsigned xlator_brick_facts(const struct xlator *xl);
/* The capabilities that at least one brick below `xl` has announced. Any thread, no lock. */
unsigned xlator_any_brick_facts(const struct xlator *xl);

/* The layer's conf. Valid until the calling fop function or callback returns: fetch it again after being
 * parked. (Workers and timers run layers inside an RCU read section.) */
static inline const void *
xlator_conf(const struct xlator *xl)
{
    /* as cheap as a plain load, and the compiler knows the type */
    return __atomic_load_n(&xl->conf, __ATOMIC_ACQUIRE);
}

/* Is the layer on the way of its fops, according to its present options? Any thread, no lock. */
static inline bool
xlator_is_on(const struct xlator *xl)
{
    return !atomic_load_explicit(&xl->is_off, memory_order_relaxed);
}

/* The layer's function for a fop; NULL: none. */
static inline fop_fn
xlator_fn(const struct xlator *xl, enum fop fop)
{
    const struct xlator_ops *ops = xl->ops;

    return ops->fn[fop] ? ops->fn[fop] : ops->any;
}

/* The fop whose calls take this path. */
static inline enum fop
path_fop(unsigned path)
{
    return path == PATH_PLAIN_WRITE ? FOP_writev : (enum fop)path;
}

/* The first layer below `xl` on this path (the number of a fop or PATH_PLAIN_WRITE); NULL: none, or `xl` has
 * several children. Any thread, no lock; after a change of options the answer may differ. */
static inline struct xlator *
xlator_next(const struct xlator *xl, unsigned path)
{
    /* as cheap as a plain load here */
    unsigned distance = atomic_load_explicit(&xl->next[path], memory_order_acquire);

    return distance ? (struct xlator *)xl + distance : NULL;
}

/* `xl` itself or the first layer below on this path; as xlator_next(). */
static inline struct xlator *
xlator_first(struct xlator *xl, unsigned path)
{
    static_assert(FOP_COUNT <= 64, "a bit each");
    enum fop fop = path_fop(path);
    bool stays = xlator_is_on(xl) || xl->type->stays_for >> fop & 1;

    if (path == PATH_PLAIN_WRITE && xl->type->traits & LAYER_SKIPS_PLAIN_WRITES)
        stays = false;
    return stays && xlator_fn(xl, fop) ? xl : xlator_next(xl, path);
}

/* Makes `below`, which lies behind `xl` in the same array (at most GRAPH_LAYERS_MAX away), the result of
 * xlator_next(); NULL: none. */
static inline void
xlator_set_next(struct xlator *xl, unsigned path, const struct xlator *below)
{
    assert(!below || (below > xl && below - xl <= GRAPH_LAYERS_MAX));
    atomic_store_explicit(&xl->next[path], (uint16_t)(below ? below - xl : 0), memory_order_release);
}

/* Reports an event of `xl` to the first layer above that handles it. The function sets `child`. An
 * EVENT_CHILD or EVENT_INVALIDATED that no layer handles goes to the graph's watch (struct graph); an
 * EVENT_CONTENDED then has no effect, and the other client waits until the lock is released. Any thread; the
 * caller holds no lock of the layer. */
void xlator_tell(struct xlator *xl, struct layer_event e);
/* xlator_tell() with an event of each kind. */
void xlator_tell_parent(struct xlator *xl, enum child_event change);
void xlator_tell_contended(struct xlator *xl, const struct gfid *gfid, const char *domain);
void xlator_tell_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags);

/* Finds a layer type of a program by its name, or returns NULL. Each program has a function of this kind,
 * which it hands to the graphs that it makes (graph_new), so that this library names no layer. Types are
 * constant; any thread may call it. */
typedef const struct xlator_type *xlator_type_find(const char *name);

#endif
