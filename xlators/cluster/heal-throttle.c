/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/heal-throttle.h"

#include <pthread.h>

#include "event/timer.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "stack/coro-call.h"

#define MS UINT64_C(1000000)

enum { MEAN_OF = 8, BRICKS_AT_A_TIME = 32 };

static pthread_mutex_t pace_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf; guards the next one */
static struct heal_pace pace;

/* ---- the arithmetic -------------------------------------------------------------------------- */

uint64_t
heal_pace_reserve(struct heal_pace *p, uint64_t now_ns)
{
    uint64_t gap = GAP_TIMES * p->unit_ns, at = p->next_ns > now_ns ? p->next_ns : now_ns;

    gap = gap < GAP_MIN_MS * MS ? GAP_MIN_MS * MS : gap > GAP_MAX_MS * MS ? GAP_MAX_MS * MS : gap;
    p->next_ns = at + gap;
    return at;
}

/* A unit that waits for a lock of a client says nothing about the load beyond the longest gap. */
void
heal_pace_note(struct heal_pace *p, uint64_t unit_ns)
{
    uint64_t most = GAP_MAX_MS * MS;

    unit_ns = unit_ns < most ? unit_ns : most;
    p->unit_ns = p->unit_ns ? (p->unit_ns * (MEAN_OF - 1) + unit_ns) / MEAN_OF : unit_ns;
}

/* ---- the bricks ------------------------------------------------------------------------------ */

struct ages {
    struct xlator *const *children;
    _Atomic uint64_t least;
};

static uint64_t
ask_brick(struct xlator *brick)
{
    struct call_stack *stk = coro_call_new();
    uint64_t ms = UINT64_MAX;

    if (!stk)
        return ms;
    stk->caller.pid = PID_SELF_HEAL;
    stk->call.fop = FOP_getxattr;
    stk->call.loc.inode = inode_root(brick->graph->inodes);
    stk->call.name = dict_key_text(DICT_KEY_CLIENT_CALL_AGE);
    stk->call.has_name = 1;
    if (coro_call(stk, brick) < 0 || dict_get_uint(stk->reply.dict, DICT_KEY_CLIENT_CALL_AGE, &ms))
        ms = UINT64_MAX;
    call_stack_free(stk);
    return ms;
}

static uint64_t ask_bricks(void *layer);

static void
ask_child(void *arg, size_t n)
{
    struct ages *ages = arg;
    struct xlator *child = ages->children[n];
    uint64_t ms = child->child_count ? ask_bricks(child) : ask_brick(child);
    uint64_t least = atomic_load(&ages->least);

    while (ms < least && !atomic_compare_exchange_weak(&ages->least, &least, ms))
        continue;
}

static uint64_t
ask_bricks(void *layer)
{
    struct xlator *xl = layer;
    struct ages ages = {.children = xl->children, .least = UINT64_MAX};

    coro_each(BRICKS_AT_A_TIME, xl->child_count, ask_child, &ages);
    return ages.least;
}

void
heal_throttle_by_bricks(struct heal_throttle *t, struct xlator *xl)
{
    t->arg = xl;
    t->ask = ask_bricks;
}

/* ---- units ----------------------------------------------------------------------------------- */

static void
look_at_clients(struct heal_throttle *t, uint64_t now)
{
    uint64_t looked = atomic_load(&t->looked_ns);

    if ((looked && now - looked < LOOK_MS * MS) ||
        !atomic_compare_exchange_strong(&t->looked_ns, &looked, now))
        return; /* the answer is new, or another coroutine asks */
    atomic_store(&t->clients_work, t->ask(t->arg) < CLIENTS_REST_MS);
}

uint64_t
heal_unit_begin(struct heal_throttle *t)
{
    uint64_t now = clock_mono_ns();

    if (!t->ask)
        return now;
    look_at_clients(t, now);
    if (!heal_gives_way(t))
        return now;
    now = clock_mono_ns();
    pthread_mutex_lock(&pace_lock);
    uint64_t at = heal_pace_reserve(&pace, now);
    pthread_mutex_unlock(&pace_lock);
    if (at <= now)
        return now;
    coro_pause((unsigned)((at - now + MS - 1) / MS));
    return clock_mono_ns();
}

void
heal_unit_end(const struct heal_throttle *t, uint64_t begun_ns)
{
    if (!heal_gives_way(t))
        return;
    pthread_mutex_lock(&pace_lock);
    heal_pace_note(&pace, clock_mono_ns() - begun_ns);
    pthread_mutex_unlock(&pace_lock);
}

bool
heal_gives_way(const struct heal_throttle *t)
{
    return atomic_load(&t->clients_work);
}
