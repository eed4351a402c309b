/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-thread: the lines of a thread from the first object to the exit of the thread, and the effect of fork
 * on lines.
 *
 * A thread block is heap memory that a TLS pointer refers to, so it outlives the thread's TLS and the
 * sweeper never reads a dead stack. No object points to a thread, so no pointer dangles after a thread's
 * exit. */
#include "mem/mem-internal.h"

#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* req is nonzero for ever, so these need no test on the fast path; all such threads write busy, which has
 * no meaning here. */
static struct mem_thread unattached = { .req = MEM_REQ_ALWAYS, .state = MEM_THREAD_UNATTACHED };
static struct mem_thread detached = { .req = MEM_REQ_ALWAYS, .state = MEM_THREAD_DETACHED };

__thread struct mem_thread *mem_self __attribute__((tls_model(MEM_TLS_MODEL))) = &unattached;

pthread_mutex_t mem_sweep_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_mutex_t mem_registry_mutex = PTHREAD_MUTEX_INITIALIZER;
struct mem_thread *mem_threads, *mem_threads_cursor;
uint64_t mem_threads_attached;

static struct mem_thread *spare_blocks; /* registry mutex */
static pthread_key_t exit_key;
static bool exit_key_works;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static_assert(sizeof(struct mem_line) == 64, "a line per pool");
static_assert(sizeof(struct mem_thread) == 2 * 64, "ids 0 and 1 lie under the thread's own fields");
static_assert(offsetof(struct mem_thread, unused0) == offsetof(struct mem_line, end),
              "no reader of id 0 meets a field that others write");
static_assert(offsetof(struct mem_thread, guard0) == offsetof(struct mem_line, word), "guards id 0");
static_assert(offsetof(struct mem_thread, guard1) == 64 + offsetof(struct mem_line, word), "guards id 1");

/* ---- attach ---------------------------------------------------------------------------------- */

static void thread_exit(void *block);
static void fork_prepare(void);
static void fork_parent(void);
static void fork_child(void);

static void
thread_once(void)
{
    exit_key_works = pthread_key_create(&exit_key, thread_exit) == 0;
    pthread_atfork(fork_prepare, fork_parent, fork_child);
}

/* Registry mutex held. */
static struct mem_thread *
block_new(void)
{
    struct mem_thread *t = spare_blocks;

    if (t) {
        spare_blocks = t->next;
    } else {
        if (mem_test_fails())
            return NULL;
        t = mmap(NULL, MEM_THREAD_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (t == MAP_FAILED)
            return NULL;
        MEM_LSAN_ROOT(t, MEM_THREAD_BYTES);
    }
    memset(t, 0, sizeof(*t));
    t->guard0 = t->guard1 = 0x6775617264776f72;
    return t;
}

/* Registry mutex held. Lines in use are zeroed for the next user. */
static void
block_recycle(struct mem_thread *t)
{
    unsigned id;

    MEM_EACH_USED(t, id)
        memset(mem_line_of(t, id), 0, sizeof(struct mem_line));
    t->next = spare_blocks;
    spare_blocks = t;
}

/* Gives the calling thread a block. In the modes without lines the block always takes the slow path and
 * exists only so that threads don't share a cache line. False: the thread is unchanged. */
bool
mem_thread_attach(void)
{
    static uint32_t serial;
    enum mem_mode mode = mem_mode_now();
    struct mem_thread *t;

    pthread_once(&once, thread_once);
    if (mem_self->state != MEM_THREAD_UNATTACHED || !exit_key_works)
        return false;
    pthread_mutex_lock(&mem_registry_mutex);
    t = block_new();
    if (!t || pthread_setspecific(exit_key, t) != 0) {
        if (t)
            block_recycle(t);
        pthread_mutex_unlock(&mem_registry_mutex);
        return false;
    }
    t->serial = ++serial;
    if (mode == MEM_MODE_ON) {
        t->state = MEM_THREAD_ATTACHED;
        t->next = mem_threads;
        if (mem_threads)
            mem_threads->prev = t;
        mem_threads = t;
        MEM_WRITE(mem_threads_attached, mem_threads_attached + 1);
    } else {
        t->state = MEM_THREAD_PRIVATE;
        t->req = MEM_REQ_ALWAYS;
    }
    mem_self = t;
    pthread_mutex_unlock(&mem_registry_mutex);
    return true;
}

/* ---- the way into the lines when the fast path is closed ------------------------------------- */

static void
thread_wake(struct mem_thread *t)
{
    MEM_WRITE(t->active, 1);
    /* Either the sweeper, falling asleep, sees active, or this thread sees that the sweeper is asleep. */
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    mem_sweeper_rouse();
}

bool
mem_admit(struct mem_thread **tp)
{
    struct mem_thread *t = *tp;

    for (;;) {
        uint32_t req;

        if (mem_enter(t)) {
            MEM_HOOK(O3);
            break;
        }
        req = __atomic_load_n(&t->req, __ATOMIC_ACQUIRE);
        if (req == MEM_REQ_LOCKED) {
            mem_leave(t);
            return false;
        }
        if (req == MEM_REQ_DEMOTE) {
            /* A plain store could overwrite a LOCKED that the sweeper has just written, and both would
             * believe they are alone; so this is a compare-exchange. */
            MEM_HOOK(OC);
            if (__atomic_compare_exchange_n(&t->req, &req, MEM_REQ_NONE, false, __ATOMIC_ACQ_REL,
                                            __ATOMIC_ACQUIRE)) {
                MEM_HOOK(O3);
                mem_thread_age_self(t);
                break;
            }
        } else if (req == MEM_REQ_ALWAYS) {
            mem_leave(t);
            if (t->state != MEM_THREAD_UNATTACHED || !mem_thread_attach())
                return false;
            *tp = t = mem_self;
        }
    }
    if (MEM_UNLIKELY(!MEM_READ(t->active)))
        thread_wake(t);
    return true;
}

/* ---- age ------------------------------------------------------------------------------------- */

static void
chain_push(struct mem_magazine **chain, struct mem_magazine *m)
{
    m->next = *chain;
    *chain = m;
}

/* Moves cold magazines to *out; loaded and previous become cold, or also go to *out (if all is set, or
 * they are empty). */
bool
mem_line_age(struct mem_line *l, bool all, struct mem_magazine **out)
{
    struct mem_magazine *old = l->cold, *hot[2] = { NULL, l->previous };
    uint32_t n = 0;

    if (l->base) {
        hot[0] = (struct mem_magazine *)(void *)((char *)l->base - offsetof(struct mem_magazine, slot));
        hot[0]->count = (uint32_t)(l->top - l->base);
    }
    MEM_WRITE(l->flow, l->flow + (uint32_t)(l->top - l->base));
    MEM_WRITE(l->top, NULL);
    MEM_WRITE(l->base, NULL);
    MEM_WRITE(l->end, NULL);
    l->previous = l->cold = NULL;
    for (struct mem_magazine *next; old; old = next) {
        next = old->next;
        chain_push(out, old);
    }
    for (int i = 1; i >= 0; i--) { /* loaded ends on top because it is warmer */
        if (!hot[i])
            continue;
        chain_push(hot[i]->count && !all ? &l->cold : out, hot[i]);
        n += all ? 0 : hot[i]->count;
    }
    MEM_WRITE(l->nprevious, 0);
    MEM_WRITE(l->ncold, (uint16_t)n);
    return l->cold != NULL;
}

/* The owner of the lines executes a DEMOTE of the sweeper; inside the bracket. */
void
mem_thread_age_self(struct mem_thread *t)
{
    unsigned id;

    MEM_EACH_USED(t, id) {
        struct mem_magazine *out = NULL;

        mem_changes_begin(t);
        mem_line_age(mem_line_of(t, id), false, &out);
        mem_changes_end(t);
        mem_depot_doom(mem_pool_by_id(id), out);
    }
}

/* ---- exit ------------------------------------------------------------------------------------ */

/* No other thread may change the line meanwhile. */
void
mem_line_fold(const struct mem_line *l, struct mem_pool *p)
{
    MEM_ADD(p->gets, l->gets);
    MEM_ADD(p->puts, l->gets + (uint64_t)(l->top - l->base) + l->flow);
}

/* Adds the counts of an ended thread to the pools; registry mutex held, so that readers see each count in
 * one place only. */
static void
fold_thread(struct mem_thread *t)
{
    unsigned id;

    MEM_EACH_USED(t, id) {
        mem_line_fold(mem_line_of(t, id), mem_pool_by_id(id));
    }
}

static void
unlink_thread(struct mem_thread *t)
{
    if (mem_threads_cursor == t)
        mem_threads_cursor = t->next;
    *(t->prev ? &t->prev->next : &mem_threads) = t->next;
    if (t->next)
        t->next->prev = t->prev;
    MEM_WRITE(mem_threads_attached, mem_threads_attached - 1);
}

static void
thread_exit(void *block)
{
    struct mem_thread *t = block;
    unsigned id;

    mem_self = &detached; /* later destructors of this thread go to the depot */
    pthread_mutex_lock(&mem_registry_mutex);
    if (t->state == MEM_THREAD_ATTACHED) {
        unlink_thread(t);
        fold_thread(t);
        /* Still under the registry mutex, so that a pool that this thread used cannot be freed before its
         * magazines are in the depot. */
        MEM_EACH_USED(t, id) {
            struct mem_magazine *hot = NULL, *cold = NULL;

            mem_line_age(mem_line_of(t, id), false, &cold);
            hot = mem_line_of(t, id)->cold;
            mem_depot_put_chain(mem_pool_by_id(id), hot, false);
            mem_depot_put_chain(mem_pool_by_id(id), cold, true);
        }
    }
    block_recycle(t);
    pthread_mutex_unlock(&mem_registry_mutex);
}

void
mem_pool_thread_destructor(void)
{
    struct mem_thread *t = mem_self;

    if (t->state != MEM_THREAD_ATTACHED && t->state != MEM_THREAD_PRIVATE)
        return;
    pthread_setspecific(exit_key, NULL);
    thread_exit(t);
}

/* ---- fork ------------------------------------------------------------------------------------ */

static void
fork_locks(void (*op)(struct mem_lock *))
{
    for (unsigned id = 0; id < MEM_IDS; id++)
        if (mem_pools[id])
            op(&mem_pools[id]->depot.lock);
    for (unsigned id = 0; id < MEM_IDS; id++)
        if (mem_pools[id])
            op(&mem_pools[id]->class.lock);
}

static void
lock_op(struct mem_lock *l)
{
    mem_lock(l);
}

static void
unlock_op(struct mem_lock *l)
{
    mem_unlock(l);
}

static void
fork_followers(int step)
{
    for (struct mem_follower *f = mem_followers; f; f = f->next)
        f->fork(step);
}

static void
fork_prepare(void)
{
    pthread_mutex_lock(&mem_sweep_mutex);
    fork_followers(0);
    pthread_mutex_lock(&mem_registry_mutex);
    fork_locks(lock_op);
    mem_span_fork(0);
    mem_trace_fork(0);
    mem_option_fork(0);
}

static void
fork_parent(void)
{
    mem_option_fork(1);
    mem_trace_fork(1);
    mem_span_fork(1);
    fork_locks(unlock_op);
    pthread_mutex_unlock(&mem_registry_mutex);
    fork_followers(1);
    pthread_mutex_unlock(&mem_sweep_mutex);
}

/* Other threads may have been in the middle of changing their lines, and the child may see parts of
 * different moments. Their counts are kept, but their magazines are not used: that memory is lost to the
 * child. */
static void
fork_child(void)
{
    struct mem_thread *t, *next;

    mem_option_fork(2);
    mem_trace_fork(2);
    mem_span_fork(2);
    fork_locks(unlock_op);
    for (t = mem_threads; t; t = next) {
        next = t->next;
        if (t == mem_self)
            continue;
        unlink_thread(t);
        fold_thread(t);
        block_recycle(t);
    }
    mem_threads_cursor = NULL;
    if (mem_self->state == MEM_THREAD_ATTACHED)
        MEM_WRITE(mem_self->active, 1);
    mem_sweeper_forget();
    pthread_mutex_unlock(&mem_registry_mutex);
    fork_followers(2);
    pthread_mutex_unlock(&mem_sweep_mutex);
}
