/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* call-stack: an operation on the way down a graph and the reply on the way back up.
 *
 *      protocol/server            call_stack_wind(stk, first layer)
 *           |                        next layer that implements the fop: ops->fn[fop](xl, stk)
 *        io-stats   --- frame        frame_push(): "show me the reply"; XL_PASS
 *        locks      --- call-stub    parked: XL_OWNED, resumed when the lock is released
 *        posix                       fills stk->reply: XL_DONE
 *           |                        call_stack_unwind(): frames popped, newest first
 *        stk->done(stk)              reply encoded and sent, then call_stack_release()
 *
 * A call stack owns everything its operation needs (arguments, reply, arena, references to inodes and fds)
 * until call_stack_release(). A layer that does not implement a fop is not on its path at all. A frame
 * exists only where a layer wants to see the reply. A call-stub is a parked call stack and a queue link.
 *
 * A fop function returns
 *   XL_PASS    not interested (any more): go on to the next layer below
 *   XL_DONE    stk->reply is filled: unwind it now
 *   -errno     answer with that error: reply zeroed, unwound
 *   XL_OWNED   the layer has taken the call stack: it will call call_stack_unwind(), call_stack_resume() or
 *              call_stack_fail() exactly once, from any thread. A layer that waits for other clients, not for
 *              work under way, calls call_stack_park() first, and call_stack_unpark() instead of
 *              call_stack_resume()
 * 0 is none of these: a helper's success that is returned by mistake must not look like a verdict. Builds
 * with assertions stop at a 0; others log it and answer EIO. Builds with assertions also stop at a second
 * answer, and at the release of a call stack that has not been answered.
 *
 * thread: one at a time. Handing a parked stack to another thread happens under the parking layer's lock. */
#ifndef KILN_STACK_CALL_STACK_H
#define KILN_STACK_CALL_STACK_H

#include <stdatomic.h>
#include <time.h>
#include <urcu/list.h>

#include "base/ticks.h"
#include "event/timer.h"
#include "event/worker.h"
#include "mem/arena.h"
#include "stack/fop.h"

struct call_keeper;
struct call_stack;
struct moment;
struct packed_call;
struct brick_client;
struct xlator;

/* The result of a fop function: XL_* or -errno. A variable of this type is called `verdict`; a variable
 * that is 0 or -errno is called `err`. */
typedef int xl_verdict;
enum { XL_PASS = 1, XL_DONE = 2, XL_OWNED = 3 };

/* The state of a call stack, for assertions. */
enum call_state { CALL_NEW, CALL_WOUND, CALL_PARKED, CALL_ANSWERED, CALL_RELEASED };

/* The rights of a caller that sends a negative pid; protocol/server/squash.c decides. */
enum pid_standing {
    PID_COUNTS,      /* internal: the caller does the volume's own work */
    PID_COUNTS_NOT,  /* ordinary: any client can send a negative pid */
    /* internal work of a mount whose root was squashed: the mount is not trusted, but users' objects need
     * the work done */
    PID_WAS_SQUASHED
};

/* The caller of an operation (spec: wire 1.5, brick 3.1). Pointers are into the record or the arena. */
struct caller {
    /* as sent by the client; caller_is_internal() tells whether a negative pid gives rights */
    int32_t pid;
    uint8_t standing; /* enum pid_standing */
    uint32_t uid, gid;
    uint32_t group_count;
    const uint32_t *groups; /* host order */
    struct lk_owner lk_owner;
    uint32_t time_flags; /* which times to set: wire 1.5; 0: none */
    int64_t ctime_sec;
    uint32_t ctime_nsec;
};

/* The pid of GlusterFS's own NFS server, whose data calls are checked by permission. */
#define PID_NFS 1

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
 * calls call_stack_unwind(stk) later. In both cases the frame is freed after the callback. */
typedef xl_verdict (*frame_cb)(struct frame *f, struct call_stack *stk);

/* A layer's place on the way of the reply. `local` is the layer's own small state. */
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

/* A call that waits in a layer: the ticket under which the layer finds the call stack again. All layers that
 * let calls wait use it (io-threads, locks, barrier, index, hard), so the row of this type in the statedump
 * counts the waiting calls of a brick. The call stays where it is, in its request, or is packed. */
struct call_stub {
    struct cds_list_head link; /* of the layer's queue */
    union {
        struct worker_job job;
        struct timer again; /* for call_stub_unpack() that failed */
    };
    struct call_stack *stk; /* NULL: packed */
    struct packed_call *packed;
    struct xlator *xl; /* the layer that parked the call */
    /* Runs when the call's turn comes. The return value is a verdict like that of a fop function. */
    xl_verdict (*go)(struct xlator *xl, struct call_stack *stk);
    /* for the layer's own use */
    struct cds_list_head of_brick;
    int32_t error;
    uint8_t mark;
    /* of the call, also while it is packed */
    uint8_t fop;
    uint32_t uid, gid;
    int32_t pid;
};

/* Reasons for which a call may wait in its brick without a thread. */
enum call_wait {
    WAIT_QUEUE, /* for a free place at the disk: io-threads */
    WAIT_LOCKS, /* for other clients: a layer that called call_stack_park() */
    CALL_WAITS
};

struct call_stack {
    struct caller caller;
    struct brick_client *client; /* NULL: the call was made inside the daemon; else a reference */
    struct xlator *xl;     /* the layer whose fop function runs or ran last */
    struct frame *frames;  /* newest first */
    /* true when the client has disconnected; NULL: the call was made inside the daemon. Outlives the call
     * stack */
    const atomic_bool *is_asker_gone;
    uint8_t state;         /* enum call_state */
    uint8_t path;          /* call_path(), when the call was wound */
    bool joins_always;     /* runs also if an earlier call of its sequence has failed */
    bool takes_fd;         /* of a sequence that begins with an OPEN: call.fd is the OPEN's fd */
    bool closes_fd;        /* no call about call.fd follows: call_stack_join() */
    struct fop_call call;
    struct fop_reply reply;
    struct arena arena;
    void (*done)(struct call_stack *stk); /* called once, when the reply has passed every frame */
    void *owner;                          /* for the creator of the stack */
    /* The layer whose type's call_ends is called when the reply has passed every frame; NULL: none. Only
     * one layer can have this, the first on the way. It costs less than a frame. `began` belongs to that
     * layer. */
    struct xlator *ends_for;
    uint64_t began;
    /* Ticks (base/ticks.h). `arrived`: when the worker had read the call, perhaps together with others; 0:
     * the call did not come over a connection. */
    uint64_t arrived;
    uint64_t waits_since, waited[CALL_WAITS];
    /* A reference of `ends_for` to the moment at which the reply leaves, set by the owner of the call
     * stack's object; NULL: not wanted. */
    struct moment *replied;
    /* The next call of a sequence: call_stack_join(). NULL: none */
    struct call_stack *joined;
    /* of the object that embeds the call stack; NULL: cannot be packed (call-pack.h) */
    const struct call_keeper *keeper;
};

/* Called once, in the main thread, after mem_pools_init(). 0 or -ENOMEM. */
int stack_pools_init(void);

/* Clears all fields of a stack that is embedded in another object (rpc's request), which owns it. The
 * memory may be uninitialised. */
void call_stack_init(struct call_stack *stk);

/* Returns a pooled stack for calls made inside the daemon (nameless lookups, internal flushes). The caller
 * is pid 0, uid 0 unless changed. `done` must end in call_stack_free(). The stack belongs to the calling
 * function until it is wound, then to the layers; any thread. NULL: no memory. */
struct call_stack *call_stack_new(void (*done)(struct call_stack *), void *owner);
/* Like call_stack_new(), but from a small reserve for calls that must be made although there is no memory;
 * the stack has some room on its arena. Free it as soon as it is answered. NULL: all spares are in use. */
struct call_stack *call_stack_new_spare(void (*done)(struct call_stack *), void *owner);
bool call_stack_is_spare(const struct call_stack *stk);
/* Does call_stack_release() and frees the call stack, which must have been answered or never wound. */
void call_stack_free(struct call_stack *stk);

/* Gives back the operation's resources: remaining frames, inode and fd references, reply buffers, the
 * arena. Called once, by the owner of the answer. May free inodes and fds, so the caller holds no lock of
 * a layer. */
void call_stack_release(struct call_stack *stk);

/* Starts stk->call at `top` or the first layer below it that implements the fop. Without such a layer the
 * call is answered EOPNOTSUPP. The call stack then belongs to the layers and may have been answered and
 * freed when this returns. thread: any, in a read section, with no lock held. */
void call_stack_wind(struct call_stack *stk, struct xlator *top);
/* Like call_stack_wind(), but begins below `xl`: for calls that a layer makes itself. */
void call_stack_wind_below(struct call_stack *stk, struct xlator *xl);

/* Makes `next` the call behind `stk` in a sequence for the same child, before `stk` is wound to that child,
 * which must be a protocol/client. The caller does not wind `next`: the child runs `next` when the earlier
 * calls have succeeded (with `always`, after any results), and answers `next` after the earlier calls. A call
 * that was not run is answered ECANCELED with SHORTAGE_UNSENT. Where the child has BRICK_SEQUENCES, one
 * message carries all calls.
 *
 * A call with takes_fd has no call.fd: the child uses the fd that the first call opens. Not with `always`.
 * With closes_fd the child may send the RELEASE of call.fd in the same message: calls about the fd that are
 * made later, or made again for lack of memory, go by the gfid. */
void call_stack_join(struct call_stack *stk, struct call_stack *next, bool always);

/* Called by a layer that is about to answer XL_OWNED and waits for other clients, perhaps for ever: layers
 * above that count running calls (io-threads) no longer count this call, and it counts among the calls
 * that stk->xl has parked (graph_parked()) until it goes on or is answered. Runs under the parking layer's
 * lock, before another thread can wake the call; does not block. */
void call_stack_park(struct call_stack *stk);
/* For layers that let a call wait without call_stack_park(): notes that the wait begins. Called before
 * another thread can have the call. */
static inline void
call_stack_waits(struct call_stack *stk)
{
    stk->waits_since = ticks_now();
}

/* Notes that the wait is over. */
static inline void
call_stack_waited(struct call_stack *stk, enum call_wait what)
{
    stk->waited[what] += ticks_now() - stk->waits_since;
}

/* Wakes a call parked by call_stack_park(): it goes on with the layer below stk->xl, as soon as the layers
 * above have room for it. (To answer instead, call_stack_unwind() or call_stack_fail() need no room.) */
void call_stack_unpark(struct call_stack *stk);

/* For layers that fan out. A layer with several children cannot answer XL_PASS, because XL_PASS names no
 * child. It answers XL_OWNED and winds the call to the child it chooses. */
void call_stack_wind_child(struct call_stack *stk, struct xlator *child);
/* Returns a copy for another child: a call stack with the caller and arguments of `stk`, for
 * call_stack_wind(). The copy has its own references to inodes and fds and its own dicts; strings, payload
 * and lists belong to `stk`, which must not be answered before `done` has been called for each copy.
 * `done` ends in call_stack_free(). NULL: no memory. */
struct call_stack *call_stack_fork(const struct call_stack *stk, void (*done)(struct call_stack *),
                                   void *owner);
/* Like call_stack_fork(), into the new call stack `fork`, which keeps its `done`. NULL: no memory; `fork`
 * has been freed. */
struct call_stack *call_stack_fork_to(struct call_stack *fork, const struct call_stack *stk);

/* Continues with the layer below stk->xl. Called once by the layer that answered XL_OWNED, from any thread
 * that is in a read section, with no lock held; afterwards the call stack does not belong to the layer. */
void call_stack_resume(struct call_stack *stk);
/* Like call_stack_resume(), but runs stk->xl's own fop function again. */
void call_stack_retry(struct call_stack *stk);
/* Like call_stack_resume(), but answers: stk->reply is filled. */
void call_stack_unwind(struct call_stack *stk);
/* Like call_stack_resume(), but answers with an error (positive errno). */
void call_stack_fail(struct call_stack *stk, int err);

/* The verdict of a fop function that has no memory to send the call on: ENOMEM, marked as "nothing was
 * done" (SHORTAGE_UNSENT). */
xl_verdict call_stack_unsent(struct call_stack *stk);
/* Prepares a call that was answered SHORTAGE_UNSENT or FOP_NAME_CHANGED to be wound once more. */
void call_stack_again(struct call_stack *stk);

/* Puts the running layer on the way of the reply. The frame belongs to the call stack; `local`, which is
 * zero, belongs to the layer until its `cb` has returned. Called from the layer's fop function. NULL: no
 * memory (answer -ENOMEM). */
struct frame *frame_push(struct call_stack *stk, struct xlator *xl, frame_cb cb);

/* Acts on a verdict of a layer that answered XL_OWNED before, as the functions above do. */
void call_stack_answer(struct call_stack *stk, xl_verdict verdict);

/* Returns a stub for `stk`, parked by `xl`. The stub belongs to the layer until call_stub_post() or
 * call_stub_free(). It is pooled and counted for the graph's owner. `stk` is unchanged. NULL: no memory. */
struct call_stub *call_stub_new(struct call_stack *stk, struct xlator *xl,
                                xl_verdict (*go)(struct xlator *xl, struct call_stack *stk));
/* Frees the stub and soon runs its `go` on a worker. Any thread, with any lock held. The call is not
 * packed. */
void call_stub_post(struct call_stub *stub);
/* Frees an unused stub; the caller keeps the call stack. */
void call_stub_free(struct call_stub *stub);
/* Packs the stub's call (call-pack.h). Returns the shell, for call_stack_drop_shell() without a lock. NULL:
 * the call cannot be packed, or there is no memory; the call stays as it is. Under the parking layer's
 * lock. */
struct call_stack *call_stub_pack(struct call_stub *stub);
/* Returns the call, which is not packed any more. NULL: no memory; the stub is unchanged. */
struct call_stack *call_stub_unpack(struct call_stub *stub);

/* Return the reply's dicts, which are made on the stack's arena at first use and are valid as long as the
 * call stack. NULL: no memory. */
struct dict *reply_xdata(struct call_stack *stk);
struct dict *reply_dict(struct call_stack *stk);

/* True if the client has disconnected and the call would change nothing, so it may as well fail
 * (ENOTCONN). For layers that let a parked call go on, and for loops that may run for long. */
static inline bool
call_stack_is_abandoned(const struct call_stack *stk)
{
    return stk->is_asker_gone && (fop_info[stk->call.fop].traits & FOP_LOOKS) &&
           atomic_load_explicit(stk->is_asker_gone, memory_order_relaxed);
}

/* Is `gid` the caller's primary group or one of its further groups? */
bool caller_in_group(const struct caller *c, uint32_t gid);

/* pids of callers that do the volume's own work, as stock's programs have them */
enum { PID_REBALANCE = -3, PID_INTERNAL = -4, PID_SELF_HEAL = -6 };

/* Does the caller do the volume's own work (heal, rebalance, linkto files: brick 9.4)? Such a caller
 * passes permissions, the storage reserve and read-only layers. No other code derives a right from the
 * sign of a pid. */
static inline bool
caller_is_internal(const struct caller *c)
{
    return c->pid < 0 && c->standing == PID_COUNTS;
}

/* Are both the same lock owner? */
static inline bool
lk_owner_equal(const struct lk_owner *a, const struct lk_owner *b)
{
    return a->len == b->len && (!a->len || memcmp(a->bytes, b->bytes, a->len) == 0);
}

#endif
