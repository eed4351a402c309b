/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* performance/io-threads: limits how many operations of one brick may be in blocking calls at once (spec:
 * brick 10.6).
 *
 * The layer has no threads: the worker that read a request executes it. But one slow disk must not block all
 * workers, so at most thread-count operations of a brick may be in the layers below, and of those at most a
 * limit of each priority. Further operations are parked here, and continue when an operation leaves the
 * brick. The layer sits where stock has it, above all layers that touch the disk and below features/index.
 *
 * An operation's frame sees the reply, which is the moment at which the operation leaves. A parked operation
 * has a call-stub. Without memory for the stub the operation fails with ENOMEM.
 *
 * The priority of a fop is a column of stack/fops.def. Lock operations, which may wait for hours in
 * features/locks without a thread, and operations without disk access (flush, release) are not counted.
 * Otherwise 16 waiting locks would keep out the unlock.
 *
 * A layer below that parks an operation for an unbounded time (a removal that waits for an inodelk) calls
 * call_stack_park(): the operation gives its place back, and takes a place again before it continues, parked
 * here if necessary. It gets the stub for that when it gives its place back; without memory it keeps the
 * place.
 *
 * An operation of a client that is gone (brick_client's is_gone) fails with ENOTCONN when the turn comes: the
 * client's locks are being released, and another client may hold the same locks by then. No client waits for
 * the answer. An operation that has entered runs to the end.
 *
 * The layer also notes when the bricks of this process have served a client: not a call of a healer or
 * another process of the volume's own. A healer asks with a getxattr of kiln.client-call-age, and gives way
 * to clients (xlators/cluster/heal-throttle.h).
 *
 * The counts are one atomic word:
 *
 *      bits  0..11  12..23  24..35  36..47   48..51
 *            HIGH   NORMAL  LOW     LEAST    "an operation of this priority is parked"
 *
 * The rule against lost wake-ups: the decision to park is a compare-and-swap on that word which sets the
 * parked bit while there is no room, made under the lock that also guards the queues. The decision to leave
 * is a compare-and-swap on the same word. If the leaver is first, the entering operation sees the room. If
 * the bit is first, the leaver sees it and takes the lock, under which it finds the parked operation. With no
 * bit set, entering and leaving are one compare-and-swap each.
 */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "data/dict.h"
#include "event/worker.h"
#include "fs/brick-client.h"
#include "log/dump.h"
#include "stack/xlator.h"
#include "xlators/performance/io-threads/io-threads.h"

#define COUNT_BITS 12
#define COUNT_MASK ((1u << COUNT_BITS) - 1)
#define ONE(priority) (UINT64_C(1) << COUNT_BITS * (priority))
#define PARKED(priority) (UINT64_C(1) << (COUNT_BITS * PRIORITIES + (priority)))
#define ANY_PARKED (PARKED(PRIORITIES) - PARKED(0))
#define LIMIT_MAX 64
_Static_assert(LIMIT_MAX < COUNT_MASK, "counts fit their bits");

enum { PID_NO_ROOT_SQUASH = -4 }; /* an internal pid, but it works for a mount's user */

static const char *const priority_names[PRIORITIES] = {"HIGH", "NORMAL", "LOW", "LEAST"};

struct iot_conf {
    int64_t thread_count;
    int64_t limits[PRIORITIES];
    bool least_on;
};

/* xl->private */
struct iot {
    _Alignas(64) _Atomic uint64_t word;
    _Alignas(64) pthread_mutex_t lock;       /* protects queues, sizes, figures */
    struct cds_list_head queues[PRIORITIES]; /* of struct call_stub; `mark`: the priority */
    unsigned parked[PRIORITIES];
    uint64_t parked_ever[PRIORITIES];
};

/* Lies in the local state of an operation's frame. */
struct place {
    struct call_stub *stub; /* the operation is parked, here or below; NULL: it is not */
    uint8_t priority;
    bool is_taken; /* the operation is counted in the word */
};
_Static_assert(sizeof(struct place) <= sizeof(((struct frame *)0)->local), "a frame has room for it");

static bool
is_of_client(const struct call_stack *stk)
{
    return !caller_is_internal(&stk->caller) || stk->caller.pid == PID_NO_ROOT_SQUASH;
}

static enum fop_priority
priority_of(const struct iot_conf *conf, const struct call_stack *stk)
{
    enum fop_priority p = fop_info[stk->call.fop].priority;

    return p != PRIORITY_NONE && conf->least_on && !is_of_client(stk) ? PRIORITY_LEAST : p;
}

/* True if the client's last connection has ended: from now on other clients get the client's locks. */
static bool
is_of_gone_client(const struct call_stack *stk)
{
    return stk->client && atomic_load_explicit(&stk->client->is_gone, memory_order_acquire);
}

/* ---- the clients' latest call ---------------------------------------------------------------- */

static _Atomic uint64_t client_call_ticks; /* of all bricks; 0: no call so far */

/* Writes only every millisecond, because all processors read the variable. */
static void
note_client_call(void)
{
    uint64_t now = ticks_now(), noted = atomic_load_explicit(&client_call_ticks, memory_order_relaxed);

    if (now - noted >= ticks_of_ns(1000000))
        atomic_store_explicit(&client_call_ticks, now, memory_order_relaxed);
}

/* Mounts that are exempt from root-squash are PID_NO_ROOT_SQUASH. As this pid, distribute also looks at
 * layouts and makes link files, for a rebalance, too. It asks for the free space on its own. */
static bool
is_work_of_client(const struct call_stack *stk)
{
    if (stk->caller.pid == PID_NO_ROOT_SQUASH)
        return stk->call.fop == FOP_readv || stk->call.fop == FOP_writev;
    return !caller_is_internal(&stk->caller) && stk->call.fop != FOP_statfs;
}

static xl_verdict
answer_client_call_age(struct call_stack *stk)
{
    uint64_t noted = atomic_load_explicit(&client_call_ticks, memory_order_relaxed);
    uint64_t age_ms = ticks_to_ns(ticks_now() - noted) / 1000000;
    struct dict *d = reply_dict(stk);

    if (!noted)
        return -ENODATA;
    if (!d || dict_set_int(d, DICT_KEY_CLIENT_CALL_AGE, (int64_t)age_ms))
        return -ENOMEM;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

static unsigned
iot_count(uint64_t word, enum fop_priority p)
{
    return (unsigned)(word >> COUNT_BITS * p) & COUNT_MASK;
}

/* True if one more operation of this priority may run. */
static bool
iot_has_room(const struct iot_conf *conf, uint64_t word, enum fop_priority p)
{
    unsigned all = iot_count(word, PRIORITY_HIGH) + iot_count(word, PRIORITY_NORMAL) +
                   iot_count(word, PRIORITY_LOW) + iot_count(word, PRIORITY_LEAST);

    return all < conf->thread_count && iot_count(word, p) < conf->limits[p];
}

/* ---- entering -------------------------------------------------------------------------------- */

/* The fast path: enters if there is room and no operation of the same priority is parked. */
static bool
iot_enter(struct iot *iot, const struct iot_conf *conf, enum fop_priority p)
{
    uint64_t word = atomic_load_explicit(&iot->word, memory_order_relaxed);

    while (!(word & PARKED(p)) && iot_has_room(conf, word, p)) {
        if (atomic_compare_exchange_weak(&iot->word, &word, word + ONE(p)))
            return true;
    }
    return false;
}

/* The slow path: returns false if the operation is parked. It may then already run on another thread. */
static bool
enter_or_park(struct iot *iot, const struct iot_conf *conf, struct call_stub *w)
{
    enum fop_priority p = w->mark;
    uint64_t word, after;
    bool enters;

    pthread_mutex_lock(&iot->lock);
    word = atomic_load_explicit(&iot->word, memory_order_relaxed);
    do {
        enters = !(word & PARKED(p)) && iot_has_room(conf, word, p);
        after = enters ? word + ONE(p) : word | PARKED(p);
    } while (!atomic_compare_exchange_weak(&iot->word, &word, after));
    if (!enters) {
        cds_list_add_tail(&w->link, &iot->queues[p]);
        iot->parked[p]++;
        iot->parked_ever[p]++;
    }
    pthread_mutex_unlock(&iot->lock);
    return enters;
}

/* ---- leaving --------------------------------------------------------------------------------- */

/* Returns the first parked operation, by priority, for which `word` has room, and counts it in `word`. */
static struct call_stub *
take_parked_locked(struct iot *iot, const struct iot_conf *conf, uint64_t *word)
{
    for (enum fop_priority p = PRIORITY_HIGH; p < PRIORITIES; p++) {
        struct call_stub *w;

        if (!iot->parked[p] || !iot_has_room(conf, *word, p))
            continue;
        w = cds_list_first_entry(&iot->queues[p], struct call_stub, link);
        *word += ONE(p);
        if (iot->parked[p] == 1)
            *word &= ~PARKED(p);
        return w;
    }
    return NULL;
}

/* Returns the place `gone` (0: none, limits were raised) and admits one parked operation if there is room.
 * Returns false if none was admitted. */
static bool
iot_pass_on(struct iot *iot, const struct iot_conf *conf, uint64_t gone)
{
    struct call_stub *w;
    uint64_t word, after;

    pthread_mutex_lock(&iot->lock);
    word = atomic_load_explicit(&iot->word, memory_order_relaxed);
    do {
        after = word - gone;
        w = take_parked_locked(iot, conf, &after);
    } while (!atomic_compare_exchange_weak(&iot->word, &word, after));
    if (w) {
        cds_list_del(&w->link);
        iot->parked[w->mark]--;
    }
    pthread_mutex_unlock(&iot->lock);
    if (w) /* on any worker, because the leaving one has a reply to send and may block after that */
        worker_post_any(&w->job);
    return w != NULL;
}

static void
iot_leave(struct iot *iot, const struct iot_conf *conf, enum fop_priority p)
{
    uint64_t word = atomic_load_explicit(&iot->word, memory_order_relaxed);

    while (!(word & ANY_PARKED)) {
        if (atomic_compare_exchange_weak(&iot->word, &word, word - ONE(p)))
            return;
    }
    iot_pass_on(iot, conf, ONE(p));
}

/* ---- the layer ------------------------------------------------------------------------------- */

static struct place *
place_of(struct frame *f)
{
    return (struct place *)(void *)&f->local;
}

static xl_verdict
iot_left(struct frame *f, struct call_stack *stk)
{
    struct place *at = place_of(f);

    (void)stk;
    if (at->stub) /* the layer below answers a call that it had parked */
        call_stub_free(at->stub);
    if (at->is_taken)
        iot_leave(f->xl->private, xlator_conf(f->xl), at->priority);
    return XL_PASS;
}

/* Returns this layer's frame of a call that it has parked. */
static struct frame *
frame_of(const struct call_stub *w)
{
    struct frame *f = w->stk->frames;

    while (f->xl != w->xl)
        f = f->next;
    return f;
}

static void
iot_run_parked(struct worker_job *job)
{
    struct call_stub *w = caa_container_of(job, struct call_stub, job);
    struct call_stack *stk = w->stk;
    struct place *at = place_of(frame_of(w));

    at->is_taken = true;
    at->stub = NULL;
    call_stub_free(w);
    call_stack_waited(stk, WAIT_QUEUE);
    if (call_stack_is_abandoned(stk) || is_of_gone_client(stk))
        call_stack_fail(stk, ENOTCONN);
    else
        call_stack_unpark(stk); /* from this layer, or from the layer below that had parked it */
}

static struct call_stub *
iot_stub_new(struct xlator *xl, struct call_stack *stk, uint8_t priority)
{
    struct call_stub *w = call_stub_new(stk, xl, NULL);

    if (w) {
        w->job.run = iot_run_parked;
        w->mark = priority;
    }
    return w;
}

/* Enters by the slow path with the stub of `at`. Returns false if the operation is parked. It may then
 * already run on another thread. */
static bool
enter_slowly(struct frame *f, struct call_stack *stk)
{
    struct place *at = place_of(f);
    struct call_stub *w = at->stub;

    w->stk = stk; /* a call that was packed has moved */
    call_stack_waits(stk);
    if (!enter_or_park(f->xl->private, xlator_conf(f->xl), w))
        return false;
    at->stub = NULL;
    call_stub_free(w);
    return at->is_taken = true;
}

static void
iot_call_parks(struct frame *f, struct call_stack *stk)
{
    struct place *at = place_of(f);

    if (!at->is_taken || !(at->stub = iot_stub_new(f->xl, stk, at->priority)))
        return;
    at->is_taken = false;
    iot_leave(f->xl->private, xlator_conf(f->xl), at->priority);
}

static bool
iot_call_goes_on(struct frame *f, struct call_stack *stk)
{
    struct place *at = place_of(f);

    if (at->is_taken || !iot_enter(f->xl->private, xlator_conf(f->xl), at->priority))
        return at->is_taken || enter_slowly(f, stk);
    call_stub_free(at->stub);
    at->stub = NULL;
    return at->is_taken = true;
}

static xl_verdict
iot_any(struct xlator *xl, struct call_stack *stk)
{
    const struct iot_conf *conf = xlator_conf(xl);
    enum fop_priority p = priority_of(conf, stk);
    struct frame *f;

    if (p == PRIORITY_NONE)
        return XL_PASS;
    if (is_of_gone_client(stk))
        return -ENOTCONN;
    if (is_work_of_client(stk))
        note_client_call();
    f = frame_push(stk, xl, iot_left);
    if (!f)
        return -ENOMEM;
    struct place *at = place_of(f);

    at->priority = (uint8_t)p;
    if (iot_enter(xl->private, conf, p)) {
        at->is_taken = true;
        return XL_PASS;
    }
    if (!(at->stub = iot_stub_new(xl, stk, at->priority)))
        return -ENOMEM;
    return enter_slowly(f, stk) ? XL_PASS : XL_OWNED;
}

static xl_verdict
answer_queue_sizes(const struct xlator *xl, struct call_stack *stk)
{
    struct iot *iot = xl->private;
    unsigned parked[PRIORITIES];
    struct dict *d;
    int err = 0;

    pthread_mutex_lock(&iot->lock);
    memcpy(parked, iot->parked, sizeof parked);
    pthread_mutex_unlock(&iot->lock);
    d = reply_dict(stk);
    for (enum fop_priority p = PRIORITY_HIGH; d && p < PRIORITIES && !err; p++)
        err = dict_set_text_int(d, priority_names[p], parked[p]);
    if (!d || err)
        return -ENOMEM;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

/* Answers a getxattr for the number of parked operations per priority, or for the age of the latest call of a
 * client. */
static xl_verdict
iot_getxattr(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name;

    if (name && strcmp(name, dict_key_text(DICT_KEY_IO_THREAD_QUEUE_SIZE)) == 0)
        return answer_queue_sizes(xl, stk);
    if (name && strcmp(name, dict_key_text(DICT_KEY_CLIENT_CALL_AGE)) == 0)
        return answer_client_call_age(stk);
    return iot_any(xl, stk);
}

static int
iot_init(struct xlator *xl, struct reason *why)
{
    struct iot *iot = aligned_alloc(_Alignof(struct iot), sizeof *iot);

    (void)why;
    if (!iot)
        return -ENOMEM;
    memset(iot, 0, sizeof *iot);
    pthread_mutex_init(&iot->lock, NULL);
    for (enum fop_priority p = PRIORITY_HIGH; p < PRIORITIES; p++)
        CDS_INIT_LIST_HEAD(&iot->queues[p]);
    xl->private = iot;
    return 0;
}

static void
iot_fini(struct xlator *xl)
{
    struct iot *iot = xl->private;

    assert(atomic_load(&iot->word) == 0);
    pthread_mutex_destroy(&iot->lock);
    free(iot);
}

/* Admits parked operations if a limit was raised, because otherwise they would wait until the next operation
 * leaves. */
static void
iot_reconfigured(struct xlator *xl, const void *old)
{
    (void)old;
    while (iot_pass_on(xl->private, xlator_conf(xl), 0))
        ;
}

void
io_threads_load(const struct xlator *xl, unsigned *running, unsigned *parked)
{
    struct iot *iot = xl->private;
    uint64_t word = atomic_load_explicit(&iot->word, memory_order_relaxed);

    *running = *parked = 0;
    pthread_mutex_lock(&iot->lock);
    for (enum fop_priority p = PRIORITY_HIGH; p < PRIORITIES; p++)
        *parked += iot->parked[p];
    pthread_mutex_unlock(&iot->lock);
    for (enum fop_priority p = PRIORITY_HIGH; p < PRIORITIES; p++)
        *running += iot_count(word, p);
}

static void
iot_dump(struct xlator *xl, struct dump *dump)
{
    const struct iot_conf *conf = xlator_conf(xl);
    struct iot *iot = xl->private;
    uint64_t word = atomic_load(&iot->word);
    unsigned parked[PRIORITIES];
    uint64_t ever[PRIORITIES];

    pthread_mutex_lock(&iot->lock);
    memcpy(parked, iot->parked, sizeof parked);
    memcpy(ever, iot->parked_ever, sizeof ever);
    pthread_mutex_unlock(&iot->lock);
    dump_line(dump, "maximum_threads_count", "%lld", (long long)conf->thread_count);
    for (enum fop_priority p = PRIORITY_HIGH; p < PRIORITIES; p++) {
        char key[64];

        snprintf(key, sizeof key, "%s_priority_running", priority_names[p]);
        dump_line(dump, key, "%u", iot_count(word, p));
        snprintf(key, sizeof key, "%s_priority_parked", priority_names[p]);
        dump_line(dump, key, "%u", parked[p]);
        snprintf(key, sizeof key, "%s_priority_parked_ever", priority_names[p]);
        dump_line(dump, key, "%llu", (unsigned long long)ever[p]);
    }
}

static const struct option iot_options[] = {
    OPT_INT(struct iot_conf, thread_count, "thread-count", "16", 1, LIMIT_MAX),
    OPT_INT(struct iot_conf, limits[PRIORITY_HIGH], "high-prio-threads", "16", 1, LIMIT_MAX),
    OPT_INT(struct iot_conf, limits[PRIORITY_NORMAL], "normal-prio-threads", "16", 1, LIMIT_MAX),
    OPT_INT(struct iot_conf, limits[PRIORITY_LOW], "low-prio-threads", "16", 1, LIMIT_MAX),
    OPT_INT(struct iot_conf, limits[PRIORITY_LEAST], "least-prio-threads", "1", 1, LIMIT_MAX),
    OPT_BOOL(struct iot_conf, least_on, "enable-least-priority", "on"),
    OPT_IGNORED("idle-time"),                 /* there are no threads that could idle */
    OPT_IGNORED("watchdog-secs"),             /* the workers' own watchdog is always on */
    /* always: reads of a lost connection are not executed, writes are */
    OPT_IGNORED("cleanup-disconnected-reqs"),
    OPT_IGNORED("pass-through"),              /* a limit on the process's workers must not be switched off */
    OPT_END,
};

const struct xlator_type performance_io_threads_xlator;
const struct xlator_type performance_io_threads_xlator = {
    .name = "performance/io-threads",
    .options = iot_options,
    .conf_size = sizeof(struct iot_conf),
    .ops = &(const struct xlator_ops){.any = iot_any, .getxattr = iot_getxattr},
    .init = iot_init,
    .fini = iot_fini,
    .reconfigured = iot_reconfigured,
    .call_parks = iot_call_parks,
    .call_goes_on = iot_call_goes_on,
    .dump = iot_dump,
};
