/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/barrier: while a snapshot is taken, no client learns that a change is durable (brick 10.3).
 *
 * The layers below execute operations as always. While the barrier is up, the layer holds back the replies to
 * operations that promise durability (a removed name, a synced file), so no client can build on a change that
 * the snapshot may miss. All held replies leave when the barrier comes down: by the management command, by
 * the option, or `barrier-timeout` after the barrier went up.
 *
 * The layer pushes a frame for such an operation also while the barrier is down, so a reply that arrives
 * under the barrier is held even if its operation began before. All other operations never meet this layer. A
 * held call stack is parked as a call-stub on one queue, under the layer's lock.
 */
#include "xlators/features/barrier/barrier.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "event/timer.h"
#include "fs/fd.h"
#include "log/dump.h"
#include "log/log.h"
#include "stack/xlator.h"

struct barrier_conf {
    bool is_on;
    int64_t timeout_s;
};

/* xl->private */
struct barrier {
    struct xlator *xl;
    atomic_bool is_up;         /* written under `lock` */
    pthread_mutex_t lock;      /* protects the fields below */
    struct cds_list_head held; /* of struct call_stub, in the order of their replies */
    unsigned held_count;
    uint64_t held_ever;
    struct timer timer; /* armed while the barrier is up */
};

/* ---- holding replies back -------------------------------------------------------------------- */

static xl_verdict
answer_held(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    (void)stk;
    return XL_DONE;
}

/* Parks the reply. Returns false if the barrier came down meanwhile or there is no memory to park the reply.
 */
static bool
barrier_hold(struct barrier *b, struct call_stack *stk)
{
    struct call_stub *stub = call_stub_new(stk, b->xl, answer_held);

    if (!stub) {
        log_event(LOG_WARNING, b->xl, "barrier-no-memory", "no memory to hold a reply back: it is sent");
        return false;
    }
    pthread_mutex_lock(&b->lock);
    bool is_up = atomic_load_explicit(&b->is_up, memory_order_relaxed);

    if (is_up) {
        cds_list_add_tail(&stub->link, &b->held);
        b->held_count++;
        b->held_ever++;
    }
    pthread_mutex_unlock(&b->lock);
    if (!is_up)
        call_stub_free(stub);
    return is_up;
}

static xl_verdict
barrier_replied(struct frame *f, struct call_stack *stk)
{
    struct barrier *b = f->xl->private;

    if (!atomic_load_explicit(&b->is_up, memory_order_acquire))
        return XL_PASS;
    return barrier_hold(b, stk) ? XL_OWNED : XL_PASS;
}

static xl_verdict
barrier_watch(struct xlator *xl, struct call_stack *stk)
{
    return frame_push(stk, xl, barrier_replied) ? XL_PASS : -ENOMEM;
}

static xl_verdict
barrier_write(struct xlator *xl, struct call_stack *stk)
{
    uint32_t flags = stk->call.flags | stk->call.fd->flags;

    return flags & (O_SYNC | O_DSYNC) ? barrier_watch(xl, stk) : XL_PASS;
}

/* ---- up and down ----------------------------------------------------------------------------- */

static bool
raise_barrier(struct barrier *b)
{
    pthread_mutex_lock(&b->lock);
    bool was_down = !atomic_exchange(&b->is_up, true);
    pthread_mutex_unlock(&b->lock);
    if (was_down) {
        const struct barrier_conf *conf = xlator_conf(b->xl);

        timer_start(&b->timer, (uint64_t)conf->timeout_s * 1000);
    }
    return was_down;
}

static bool
lower_barrier(struct barrier *b)
{
    struct cds_list_head held;
    struct call_stub *stub, *next;

    CDS_INIT_LIST_HEAD(&held);
    pthread_mutex_lock(&b->lock);
    bool was_up = atomic_exchange(&b->is_up, false);
    cds_list_splice(&b->held, &held);
    CDS_INIT_LIST_HEAD(&b->held);
    b->held_count = 0;
    pthread_mutex_unlock(&b->lock);
    cds_list_for_each_entry_safe(stub, next, &held, link)
        call_stub_post(stub);
    return was_up;
}

int
barrier_switch(struct xlator *xl, bool is_on)
{
    struct barrier *b = xl->private;
    bool has_changed = is_on ? raise_barrier(b) : lower_barrier(b);

    if (has_changed && !is_on)
        timer_stop(&b->timer);
    return has_changed ? 0 : -EALREADY;
}

static void
barrier_timed_out(struct timer *t)
{
    struct barrier *b = caa_container_of(t, struct barrier, timer);

    if (lower_barrier(b))
        log_event(LOG_WARNING, b->xl, "barrier-timeout",
                  "the barrier was not taken down in time: held replies are sent");
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
barrier_init(struct xlator *xl, struct reason *why)
{
    struct barrier *b = calloc(1, sizeof *b);

    (void)why;
    if (!b)
        return -ENOMEM;
    b->xl = xl;
    pthread_mutex_init(&b->lock, NULL);
    CDS_INIT_LIST_HEAD(&b->held);
    timer_init(&b->timer, barrier_timed_out);
    xl->private = b;
    return 0;
}

static int
barrier_start(struct xlator *xl)
{
    const struct barrier_conf *conf = xlator_conf(xl);

    if (conf->is_on)
        raise_barrier(xl->private);
    return 0;
}

static void
barrier_stop(struct xlator *xl)
{
    (void)barrier_switch(xl, false); /* -EALREADY is fine: the barrier may be down */
}

static void
barrier_fini(struct xlator *xl)
{
    struct barrier *b = xl->private;

    timer_stop(&b->timer);
    assert(cds_list_empty(&b->held));
    pthread_mutex_destroy(&b->lock);
    free(b);
}

/* A new value of the option moves the barrier only if the value changed, because the management may have set
 * another state since the last reconfigure. */
static void
barrier_reconfigured(struct xlator *xl, const void *old)
{
    const struct barrier_conf *before = old, *conf = xlator_conf(xl);

    if (before->is_on != conf->is_on)
        (void)barrier_switch(xl, conf->is_on); /* -EALREADY is fine */
}

static void
barrier_dump(struct xlator *xl, struct dump *dump)
{
    struct barrier *b = xl->private;

    pthread_mutex_lock(&b->lock);
    unsigned held = b->held_count;
    uint64_t ever = b->held_ever;
    pthread_mutex_unlock(&b->lock);
    dump_line(dump, "enabled", "%d", atomic_load(&b->is_up) ? 1 : 0);
    dump_line(dump, "held", "%u", held);
    dump_line(dump, "held_ever", "%llu", (unsigned long long)ever);
}

static const struct option barrier_options[] = {
    OPT_BOOL(struct barrier_conf, is_on, "barrier", "disable"),
    OPT_TIME(struct barrier_conf, timeout_s, "barrier-timeout", "120", 0, 3600),
    OPT_END,
};

const struct xlator_type features_barrier_xlator = {
    .name = "features/barrier",
    .traits = LAYER_SKIPS_PLAIN_WRITES,
    .conf_size = sizeof(struct barrier_conf),
    .options = barrier_options,
    .ops = &(const struct xlator_ops){
        .writev = barrier_write,
        .fsync = barrier_watch,
        .unlink = barrier_watch,
        .rmdir = barrier_watch,
        .rename = barrier_watch,
        .truncate = barrier_watch,
        .ftruncate = barrier_watch,
        .removexattr = barrier_watch,
        .fremovexattr = barrier_watch,
    },
    .init = barrier_init,
    .start = barrier_start,
    .stop = barrier_stop,
    .fini = barrier_fini,
    .reconfigured = barrier_reconfigured,
    .dump = barrier_dump,
};
