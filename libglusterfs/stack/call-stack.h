/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* call-stack: one operation on its way down a graph and its reply on the way back up.
 *
 *      protocol/server            call_stack_wind(stk, first layer)
 *           |                        next layer that implements the fop: ops->fn[fop](xl, stk)
 *        io-stats   --- frame        frame_push(): "show me the reply"; XL_PASS
 *        locks      --- call-stub    parked: XL_OWNED, resumed by whoever releases the lock
 *        posix                       fills stk->reply: XL_DONE
 *           |                        call_stack_unwind(): frames popped, newest first
 *        stk->done(stk)              reply encoded and sent, then call_stack_release()
 *
 * A call stack owns everything its operation needs (arguments, reply, arena, references to inodes and fds)
 * until call_stack_release(). A layer that does not implement a fop is not on its path at all. A frame exists
 * only where a layer wants to see the reply. A call-stub is nothing but a parked call stack.
 *
 * A fop function returns
 *   XL_PASS    not interested (any more): go on to the next layer below
 *   XL_DONE    stk->reply is filled: unwind it now
 *   -errno     answer with that error: reply zeroed, unwound
 *   XL_OWNED   the layer has taken the call stack: it will call call_stack_unwind(), call_stack_resume() or
 *              call_stack_fail() exactly once, from any thread. One that waits for what other clients do, not
 *              for work under way, calls call_stack_park() before, and call_stack_unpark() in place of
 *              call_stack_resume()
 * 0 is none of these: a helper's success that is returned by mistake must not look like a verdict. Builds
 * with assertions stop at it, others log it and answer EIO. They also stop at a second answer, and at a call
 * stack that is released while nobody has answered it.
 *
 * thread: one at a time. Handing a parked stack to another thread happens under the parking layer's lock.
 */
#ifndef KILN_STACK_CALL_STACK_H
#define KILN_STACK_CALL_STACK_H

#include <stdatomic.h>
#include <time.h>
#include <urcu/list.h>

#include "base/ticks.h"
#include "event/worker.h"
#include "mem/arena.h"
#include "stack/fop.h"

struct call_keeper;
struct call_stack;
struct moment;
struct brick_client;
struct xlator;

/* What a fop function says: one of these, or -errno. A variable of this type is called `verdict`, one that is
 * 0 or -errno `err`. */
typedef int xl_verdict;
enum { XL_PASS = 1, XL_DONE = 2, XL_OWNED = 3 };

/* How far a call stack has come: what assertions look at. */
enum call_state { CALL_NEW, CALL_WOUND, CALL_PARKED, CALL_ANSWERED, CALL_RELEASED };

/* What the negative pid of a caller is worth; protocol/server/squash.c decides. */
enum pid_standing {
    PID_COUNTS,      /* it does the volume's own work */
    PID_COUNTS_NOT,  /* anybody can send one: an ordinary caller */
    /* a mount's own work, which was root's: nobody vouches for it, but users' objects need it done */
    PID_WAS_SQUASHED
};

/* Who asks (spec: wire 1.5, brick 3.1). Pointers are into the record or the arena. */
struct caller {
    int32_t pid;      /* as the client says; caller_is_internal() tells whether a negative one counts */
    uint8_t standing; /* enum pid_standing */
    uint32_t uid, gid;
    uint32_t group_count;
    const uint32_t *groups; /* host order */
    struct lk_owner lk_owner;
    uint32_t time_flags; /* which times to set: wire 1.5; 0: none */
    int64_t ctime_sec;
    uint32_t ctime_nsec;
};

enum {
    TIME_CTIME = 0x1,
    TIME_MTIME = 0x2,
    TIME_ATIME = 0x4,
    TIME_PARENT_CTIME = 0x8,
    TIME_PARENT_MTIME = 0x10,
    TIME_PARENT_ATIME = 0x20,
};

struct frame;
/* Sees (and may change) stk->reply. XL_PASS: go on unwinding. XL_OWNED: the layer holds the reply back and
 * calls call_stack_unwind(stk) later. The frame is gone after the call in both cases. */
typedef xl_verdict (*frame_cb)(struct frame *f, struct call_stack *stk);

/* A layer's place in the reply's way. `local` is the layer's own small state. */
struct frame {
    struct frame *next; /* older */
    struct xlator *xl;
    frame_cb cb;
    union {
        void *ptr;
        uint64_t u64[8];
        struct timespec time;
        uint8_t bytes[64];
    } local;
};

/* A parked call stack, on a layer's queue. (A layer whose queue needs more than this keeps the call stack in
 * an object of its own, or in its frame: features/locks, performance/io-threads.) */
struct call_stub {
    struct cds_list_head link;
    struct worker_job job;
    struct call_stack *stk;
    struct xlator *xl; /* who parked it */
    /* What to do when its turn comes: like a fop function, and its verdict is acted on like one's. */
    xl_verdict (*go)(struct xlator *xl, struct call_stack *stk);
};

/* What a call may wait for in its brick, without a thread. */
enum call_wait {
    WAIT_QUEUE, /* until others have left the disk: io-threads */
    WAIT_LOCKS, /* for what other clients do: who parks it by call_stack_park() */
    CALL_WAITS
};

struct call_stack {
    struct caller caller;
    struct brick_client *client; /* NULL: made inside the daemon. A reference is held */
    struct xlator *xl;     /* the layer whose fop function runs or ran last */
    struct frame *frames;  /* newest first */
    /* NULL: somebody inside the daemon asks. Lives as long as the call stack */
    const atomic_bool *is_asker_gone;
    uint8_t state;         /* enum call_state */
    struct fop_call call;
    struct fop_reply reply;
    struct arena arena;
    void (*done)(struct call_stack *stk); /* called once, when the reply has passed every frame */
    void *owner;                          /* for whoever made the stack */
    /* Who is told, by its type's call_ends, when the reply has passed every frame; NULL: nobody. One layer
     * can have that: the first on the way. It costs less than a frame. `began` is that layer's. */
    struct xlator *ends_for;
    uint64_t began;
    /* Ticks (base/ticks.h). When the worker that read it had it, with others maybe; 0: nobody has read it. */
    uint64_t arrived;
    uint64_t waits_since, waited[CALL_WAITS];
    /* Who embeds the call stack tells when its reply has left; NULL: nobody asks. From `ends_for`; a
     * reference. */
    struct moment *replied;
    /* of the object it is part of; NULL: it cannot be packed (call-pack.h) */
    const struct call_keeper *keeper;
};

/* Once, in the main thread, after mem_pools_init(). 0 or -ENOMEM. */
int stack_pools_init(void);

/* For stacks that are embedded in another object (rpc's request), which owns them: all fields empty. The
 * other object's memory may be uninitialised. */
void call_stack_init(struct call_stack *stk);

/* A pooled stack of its own, for calls made inside the daemon (nameless lookups, internal flushes). Who asks:
 * pid 0, uid 0 unless the caller changes it. `done` must end in call_stack_free(). It is the
 * caller's until it is wound, then whose turn it is; any thread. NULL: no memory. */
struct call_stack *call_stack_new(void (*done)(struct call_stack *), void *owner);
/* The same from a few that the process keeps for calls that must be made though there is no memory: with some
 * room on its arena. To be given back as soon as it is answered. NULL: all are in use. */
struct call_stack *call_stack_new_spare(void (*done)(struct call_stack *), void *owner);
bool call_stack_is_spare(const struct call_stack *stk);
/* call_stack_release(), and the call stack goes. Of one that was answered, or never wound. */
void call_stack_free(struct call_stack *stk);

/* Gives back what the operation holds: frames left over, inode and fd references, reply buffers, the arena.
 * Once, by whoever has its answer; may free inodes and fds, so no lock of a layer's is held. */
void call_stack_release(struct call_stack *stk);

/* Starts stk->call at `top` or the first layer below it that implements the fop. With none it is answered
 * EOPNOTSUPP. The call stack is the layers' now, and may have been answered, and be gone, when this returns.
 * thread: any, in a read section, with no lock held. */
void call_stack_wind(struct call_stack *stk, struct xlator *top);
/* The same below `xl`: for calls that a layer makes itself. */
void call_stack_wind_below(struct call_stack *stk, struct xlator *xl);

/* From a layer that is about to answer XL_OWNED and may keep the call for as long as others please: layers
 * above that count running calls (io-threads) no longer count this one, and it is counted among those that
 * stk->xl has parked (graph_parked()), until it goes on or is answered. Under the parking layer's lock, while
 * nobody can wake the call yet; it blocks on nothing. */
void call_stack_park(struct call_stack *stk);
/* For layers that let a call wait in a way of their own: it begins, before another thread can have it, */
static inline void
call_stack_waits(struct call_stack *stk)
{
    stk->waits_since = ticks_now();
}

/* ... and is over. */
static inline void
call_stack_waited(struct call_stack *stk, enum call_wait what)
{
    stk->waited[what] += ticks_now() - stk->waits_since;
}

/* From who wakes a call that was so parked: go on with the layer below stk->xl, as soon as the layers above
 * have room for it. (An answer instead of that, call_stack_unwind() or call_stack_fail(), needs no room.) */
void call_stack_unpark(struct call_stack *stk);

/* For layers that fan out. A layer with several children has none that XL_PASS could mean: it answers
 * XL_OWNED and winds the call to the child it names, */
void call_stack_wind_child(struct call_stack *stk, struct xlator *child);
/* or copies of it to several: a call stack with the caller and arguments of `stk`, for call_stack_wind().
 * References to inodes and fds and the dicts are its own; strings, payload and lists belong to `stk`, which
 * is not answered before `done` has been called for each copy. `done` ends in call_stack_free(). NULL: no
 * memory. */
struct call_stack *call_stack_fork(const struct call_stack *stk, void (*done)(struct call_stack *),
                                   void *owner);
/* The same into a new call stack, whose `done` stays; without memory that is given back. */
struct call_stack *call_stack_fork_to(struct call_stack *fork, const struct call_stack *stk);

/* From the layer that answered XL_OWNED, in any thread that is in a read section, with no lock held; once,
 * and afterwards the call stack is not the layer's any more: go on with the layer below stk->xl. */
void call_stack_resume(struct call_stack *stk);
/* ... run stk->xl's own fop function again. */
void call_stack_retry(struct call_stack *stk);
/* ... answer: stk->reply is filled. */
void call_stack_unwind(struct call_stack *stk);
/* ... answer with an error (positive errno). */
void call_stack_fail(struct call_stack *stk, int err);

/* What a fop function returns that has no memory to let the call go on from here: ENOMEM, and nothing was
 * done (SHORTAGE_UNSENT). */
xl_verdict call_stack_unsent(struct call_stack *stk);
/* The caller has that answer, or FOP_NAME_CHANGED, and may wind the call once more. */
void call_stack_again(struct call_stack *stk);

/* Puts the running layer on the reply's way. The frame is the call stack's; `local`, which is zero, is the
 * layer's until its `cb` has returned. From the layer's fop function. NULL: no memory (answer -ENOMEM). */
struct frame *frame_push(struct call_stack *stk, struct xlator *xl, frame_cb cb);

/* Acts on what a fop function would have returned, for a layer that answered XL_OWNED: as the functions
 * above. */
void call_stack_answer(struct call_stack *stk, xl_verdict verdict);

/* A stub for `stk`, parked by `xl`: the layer's, until one of the two below. Pooled, and counted for the
 * graph's owner. `stk` is as before. NULL: no memory. */
struct call_stub *call_stub_new(struct call_stack *stk, struct xlator *xl,
                                xl_verdict (*go)(struct xlator *xl, struct call_stack *stk));
/* Its turn has come: soon, on a worker, `go` runs; the stub is gone by then. Any thread, with any lock held.
 */
void call_stub_post(struct call_stub *stub);
/* It is not needed after all: the call stack stays the caller's. */
void call_stub_free(struct call_stub *stub);

/* The reply's dicts on the stack's arena, made on first use; lent, as long as the call stack is. NULL: no
 * memory. */
struct dict *reply_xdata(struct call_stack *stk);
struct dict *reply_dict(struct call_stack *stk);

/* Nobody waits for the answer any more, and the call would change nothing: it may as well fail (ENOTCONN).
 * For layers that let a parked call go on, and for loops that may run for long. */
static inline bool
call_stack_is_abandoned(const struct call_stack *stk)
{
    return stk->is_asker_gone && (fop_info[stk->call.fop].traits & FOP_LOOKS) &&
           atomic_load_explicit(stk->is_asker_gone, memory_order_relaxed);
}

/* Is it one of the caller's groups, the first or a further one? */
bool caller_in_group(const struct caller *c, uint32_t gid);

enum { PID_INTERNAL = -4 }; /* of a client that does the volume's own work */

/* Does it do the volume's own work (heal, rebalance, linkto files: brick 9.4)? Such a caller passes
 * permissions, the storage reserve and read-only layers. The one place that says so: nobody else looks at the
 * sign of a pid for a right. */
static inline bool
caller_is_internal(const struct caller *c)
{
    return c->pid < 0 && c->standing == PID_COUNTS;
}

/* The same owner of locks? */
static inline bool
lk_owner_equal(const struct lk_owner *a, const struct lk_owner *b)
{
    return a->len == b->len && (!a->len || memcmp(a->bytes, b->bytes, a->len) == 0);
}

#endif
