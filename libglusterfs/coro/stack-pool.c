/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stack-pool: lends stacks, grows the pool and ages it.
 *
 * The list of cached stacks is in the order of their release, and each stack carries the number of the
 * sweep before which it was released: cold stacks lie at the old end, and no list is ever moved. */
#include "coro/stack-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

enum { BYTES_DEFAULT = 64 << 10, BYTES_MIN = 16 << 10, BYTES_MAX = 16 << 20, CAP_DEFAULT = 32768,
       SLAB_BYTES_MAX = 64 << 20, COUNT_AGAIN_US = 100000 };

pthread_mutex_t stack_pools_mutex = PTHREAD_MUTEX_INITIALIZER;
struct stack_pool *stack_pools;

/* ---- policy ---------------------------------------------------------------------------------- */

static const char *const policy_words[] = { "age", "keep", "drop" };
enum { POLICY_AGE, POLICY_KEEP, POLICY_DROP };
static int policy; /* set and read by any thread, relaxed; takes effect at the next release or sweep */

int
stack_pools_set_policy(const char *word)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(word, policy_words[i]) != 0)
            continue;
        MEM_WRITE(policy, i);
        mem_sweeper_rouse();
        return 0;
    }
    return -EINVAL;
}

const char *
stack_pools_policy(void)
{
    return policy_words[MEM_READ(policy)];
}

/* True if a sweep leaves the cached stacks as they are. */
static bool
sweep_keeps(void)
{
    return MEM_READ(mem_set.keeps) || MEM_READ(policy) == POLICY_KEEP;
}

/* ---- lists; pool.lock held ------------------------------------------------------------------- */

static void
cached_unlink(struct stack_pool *p, struct stack *s)
{
    *(s->newer ? &s->newer->older : &p->newest) = s->older;
    *(s->older ? &s->older->newer : &p->oldest) = s->newer;
    p->cached--;
    if (s->stamp == p->sweeps)
        p->hot--;
    s->slab->ncached--;
}

static void
cached_push_newest(struct stack_pool *p, struct stack *s)
{
    s->state = STACK_CACHED;
    s->stamp = p->sweeps;
    s->newer = NULL;
    s->older = p->newest;
    *(s->older ? &s->older->newer : &p->oldest) = s;
    p->newest = s;
    p->cached++;
    p->hot++;
    s->slab->ncached++;
}

/* Makes the stack as old as the oldest one. For stacks that this sweep leaves in the cache: they are cold
 * when the sweep is over. */
static void
cached_push_oldest(struct stack_pool *p, struct stack *s)
{
    s->state = STACK_CACHED;
    s->stamp = p->oldest ? p->oldest->stamp : s->stamp;
    s->older = NULL;
    s->newer = p->oldest;
    *(s->newer ? &s->newer->older : &p->newest) = s;
    p->oldest = s;
    p->cached++;
    if (s->stamp == p->sweeps)
        p->hot++;
    s->slab->ncached++;
}

static void
room_unlink(struct stack_pool *p, struct stack_slab *b)
{
    *(b->room_prev ? &b->room_prev->room_next : &p->room) = b->room_next;
    *(b->room_next ? &b->room_next->room_prev : &p->room_last) = b->room_prev;
}

/* Wholly bare slabs come last, so that they can be unmapped. */
static void
room_link(struct stack_pool *p, struct stack_slab *b)
{
    bool tail = b->nbare == b->n;

    b->room_prev = tail ? p->room_last : NULL;
    b->room_next = tail ? NULL : p->room;
    *(b->room_prev ? &b->room_prev->room_next : &p->room) = b;
    *(b->room_next ? &b->room_next->room_prev : &p->room_last) = b;
}

static struct stack *
bare_take(struct stack_pool *p)
{
    struct stack_slab *b = p->room;
    uint32_t i = 0;

    while (!b->bare.word[i / 64])
        i += 64;
    i += (uint32_t)__builtin_ctzll(b->bare.word[i / 64]);
    b->bare.word[i / 64] &= b->bare.word[i / 64] - 1;
    p->nbare--;
    if (!--b->nbare)
        room_unlink(p, b);
    return &b->stack[i];
}

static void
bare_put(struct stack_pool *p, struct stack *s)
{
    struct stack_slab *b = s->slab;

    s->state = STACK_BARE;
    b->bare.word[s->index / 64] |= (uint64_t)1 << (s->index % 64);
    p->nbare++;
    if (b->nbare)
        room_unlink(p, b);
    b->nbare++;
    b->bare_since = p->sweeps;
    room_link(p, b);
}

static void
slab_link(struct stack_pool *p, struct stack_slab *b)
{
    b->next = p->slabs;
    if (b->next)
        b->next->prev = b;
    p->slabs = b;
    p->nslabs++;
    p->entries += b->entries;
    p->nbare += b->n;
    b->bare_since = p->sweeps;
    room_link(p, b);
}

/* Removes a slab without live or cached stacks. */
static void
slab_unlink(struct stack_pool *p, struct stack_slab *b)
{
    room_unlink(p, b);
    *(b->prev ? &b->prev->next : &p->slabs) = b->next;
    if (b->next)
        b->next->prev = b->prev;
    p->nslabs--;
    p->entries -= b->entries;
    p->nbare -= b->n;
    p->total -= b->n;
    p->unmapped++;
}

static struct stack *
stack_take_locked(struct stack_pool *p)
{
    struct stack *s = p->newest;

    if (s) {
        cached_unlink(p, s);
        p->reused++;
    } else if (p->room) {
        s = bare_take(p);
    } else {
        return NULL;
    }
    s->state = STACK_LIVE;
    p->takes++;
    if (++p->live > p->peak)
        p->peak = p->live;
    return s;
}

/* ---- take ------------------------------------------------------------------------------------ */

/* May the process's memory map get `more` further entries? Other mappings are counted again when the
 * pool's entries have doubled, and before a refusal. slow held. */
static bool
maps_allow(struct stack_pool *p, uint32_t more)
{
    uint64_t now = mem_now_us();
    bool is_stale = !p->counted_us || p->entries > 2 * p->others_at;

    for (;;) {
        if (is_stale) {
            uint32_t all = stack_map_entries();

            p->others = all > p->entries ? all - p->entries : 0;
            p->others_at = p->entries > 16 ? p->entries : 16;
            p->counted_us = now;
        }
        if ((uint64_t)p->others + p->entries + more <= p->entries_max)
            return true;
        if (is_stale || now - p->counted_us < COUNT_AGAIN_US)
            return false;
        is_stale = true;
    }
}

static uint32_t
slab_size(const struct stack_pool *p)
{
    uint32_t n = (uint32_t)STACK_SLAB_FIRST << (p->nslabs < 5 ? p->nslabs : 5);

    if (p->is_direct)
        return 1;
    if (n > p->slab_max)
        n = p->slab_max;
    return n < p->cap - p->total ? n : p->cap - p->total;
}

/* Adds a slab; a smaller one if there is no room for a large one. slow held. */
static int
pool_grow(struct stack_pool *p)
{
    struct stack_slab *b = NULL;
    uint32_t n;
    int err;

    mem_lock(&p->lock);
    n = slab_size(p);
    mem_unlock(&p->lock);
    assert(n);
    for (;; n /= 2) {
        err = maps_allow(p, stack_slab_entries(p, n)) ? stack_slab_map(p, n, &b) : -EMLINK;
        if (!err || n == 1)
            break;
    }
    mem_lock(&p->lock);
    if (!err) {
        p->total += n;
        slab_link(p, b);
    }
    p->refused_maps += err == -EMLINK;
    p->no_memory += err == -ENOMEM;
    mem_unlock(&p->lock);
    return err == -EMLINK ? -EAGAIN : err;
}

static __attribute__((noinline)) int
stack_take_slow(struct stack_pool *p, struct stack **out)
{
    struct stack *s = NULL;
    int err = 0;

    pthread_mutex_lock(&p->slow);
    while (!s && !err) {
        mem_lock(&p->lock);
        s = stack_take_locked(p);
        if (!s && p->total == p->cap) { /* this thread holds slow, so no stack is between cached and bare */
            p->refused_cap++;
            err = -EAGAIN;
        }
        mem_unlock(&p->lock);
        if (!s && !err)
            err = pool_grow(p);
    }
    pthread_mutex_unlock(&p->slow);
    if (s)
        *out = s;
    return err;
}

int
stack_take(struct stack_pool *p, struct stack **out)
{
    struct stack *s;
    int err = 0;

    mem_lock(&p->lock);
    s = stack_take_locked(p);
    if (!s && p->total == p->cap && !p->dropping) {
        p->refused_cap++;
        err = -EAGAIN;
    }
    mem_unlock(&p->lock);
    if (MEM_UNLIKELY(!s)) {
        if (!err)
            err = stack_take_slow(p, &s);
        if (err)
            return err;
    }
    /* objects that a sleeping coroutine points to are not leaked */
    MEM_LSAN_ROOT(s->low, (size_t)(s->top - s->low));
    *out = s;
    return 0;
}

/* ---- release --------------------------------------------------------------------------------- */

static void pool_free(struct stack_pool *p);

/* Unlinks slabs without a live or cached stack for at least a period, or all such slabs; the caller unmaps
 * them. */
static struct stack_slab *
empty_slabs(struct stack_pool *p, bool all)
{
    struct stack_slab *list = NULL;

    for (struct stack_slab *b = p->room_last, *before; b && b->nbare == b->n; b = before) {
        before = b->room_prev;
        if (!all && b->bare_since == p->sweeps)
            continue;
        slab_unlink(p, b);
        b->next = list;
        list = b;
    }
    return list;
}

static size_t
unmap_list(struct stack_slab *list)
{
    size_t bytes = 0;

    for (struct stack_slab *next; list; list = next) {
        next = list->next;
        bytes += list->map_bytes;
        stack_slab_unmap(list);
    }
    return bytes;
}

/* Releases without caching, because pools are off or the pool is destroyed. */
static struct stack_slab *
release_for_good(struct stack_pool *p, struct stack *s)
{
    struct stack_slab *b = s->slab;

    bare_put(p, s);
    if (b->nbare != b->n)
        return NULL;
    slab_unlink(p, b);
    b->next = NULL;
    return b;
}

static void
bad_release(const struct stack *s, const struct stack_pool *p)
{
    static const char *const what[] = { "bare", "live", "cached", "being dropped" };

    mem_message(LOG_CRIT, "stack-pool %s: release of the stack at %p, which is not live but %s", p->name,
                (const void *)s->low, s->state <= STACK_DROPPING ? what[s->state] : "none of ours");
    if (mem_set.abort_on_error)
        abort();
}

/* Gives back the pages of a stack in state DROPPING and makes it bare. slow is held, as by a sweep, so a
 * stack_take() that finds no stack waits for this one. */
static void
drop_one(struct stack_pool *p, struct stack *s)
{
    struct stack_bits bits = { 0 };

    bits.word[s->index / 64] = (uint64_t)1 << (s->index % 64);
    (void)stack_slab_drop(s->slab, &bits);
    mem_lock(&p->lock);
    bare_put(p, s);
    p->dropping--;
    p->dropped++;
    mem_unlock(&p->lock);
}

/* Releases a stack under the policy drop. False: the pool caches no stacks anyway. */
static bool
release_dropped(struct stack_pool *p, struct stack *s)
{
    pthread_mutex_lock(&p->slow);
    mem_lock(&p->lock);
    bool drops = s->state == STACK_LIVE && !p->is_direct && !p->is_dying;
    if (drops) {
        p->live--;
        p->dropping++;
        s->state = STACK_DROPPING;
    }
    mem_unlock(&p->lock);
    if (drops) {
        MEM_LSAN_UNROOT(s->low, (size_t)(s->top - s->low));
        drop_one(p, s);
    }
    pthread_mutex_unlock(&p->slow);
    return drops;
}

void
stack_release(struct stack *s)
{
    struct stack_pool *p = s->slab->pool;
    struct stack_slab *gone = NULL;
    bool is_last;

    MEM_ASAN_SHOW(s->low, (size_t)(s->top - s->low)); /* frames that were left behind */
    if (MEM_UNLIKELY(MEM_READ(policy) == POLICY_DROP) && release_dropped(p, s)) {
        mem_sweeper_rouse(); /* to unmap the slab if it is bare now */
        return;
    }
    mem_lock(&p->lock);
    if (MEM_UNLIKELY(s->state != STACK_LIVE)) {
        mem_unlock(&p->lock);
        bad_release(s, p);
        return;
    }
    MEM_LSAN_UNROOT(s->low, (size_t)(s->top - s->low));
    p->live--;
    if (MEM_UNLIKELY(p->is_direct || p->is_dying))
        gone = release_for_good(p, s);
    else
        cached_push_newest(p, s);
    is_last = p->is_dying && !p->live;
    mem_unlock(&p->lock);
    if (MEM_UNLIKELY(gone != NULL))
        unmap_list(gone);
    if (MEM_UNLIKELY(is_last))
        pool_free(p);
    mem_sweeper_rouse();
}

/* ---- sweep ----------------------------------------------------------------------------------- */

/* Takes the slab's cold (or all) cached stacks out of the list and marks them DROPPING. */
static struct stack_bits
collect_cached(struct stack_pool *p, struct stack_slab *b, bool all)
{
    struct stack_bits bits = { 0 };

    mem_lock(&p->lock);
    for (uint32_t i = 0; b->ncached && i < b->n; i++) {
        struct stack *s = &b->stack[i];

        if (s->state != STACK_CACHED || (!all && s->stamp == p->sweeps))
            continue;
        cached_unlink(p, s);
        s->state = STACK_DROPPING;
        p->dropping++;
        bits.word[i / 64] |= (uint64_t)1 << (i % 64);
    }
    mem_unlock(&p->lock);
    return bits;
}

#define EACH_BIT(bits, i)                                                                                    \
    for (uint32_t w_ = 0; w_ < STACK_WORDS; w_++)                                                            \
        for (uint64_t rest_ = (bits).word[w_];                                                               \
             rest_ && ((i) = w_ * 64 + (uint32_t)__builtin_ctzll(rest_), 1); rest_ &= rest_ - 1)

/* Drops the pages of the slab's cold stacks. */
static size_t
slab_age(struct stack_pool *p, struct stack_slab *b, bool all)
{
    struct stack_bits bits = collect_cached(p, b, all);
    size_t bytes = stack_slab_drop(b, &bits);
    uint32_t i;

    if (!bytes)
        return 0;
    mem_lock(&p->lock);
    EACH_BIT(bits, i) {
        bare_put(p, &b->stack[i]);
        p->dropping--;
        p->dropped++;
    }
    mem_unlock(&p->lock);
    return bytes;
}

/* Drops the used lower parts of the slab's remaining cached stacks. */
static size_t
slab_drop_lower(struct stack_pool *p, struct stack_slab *b)
{
    struct stack_bits bits = collect_cached(p, b, true);
    size_t bytes = 0, n = 0;
    uint32_t i;

    EACH_BIT(bits, i) {
        size_t was = stack_drop_lower(&b->stack[i]);

        bytes += was;
        n += was > 0;
    }
    mem_lock(&p->lock);
    EACH_BIT(bits, i) {
        cached_push_oldest(p, &b->stack[i]);
        p->dropping--;
    }
    p->dropped_lower += n;
    mem_unlock(&p->lock);
    return bytes;
}

/* Only the sweep unlinks slabs of a pool that lives and caches stacks, so the slabs can be walked without
 * a lock. */
static size_t
sweep_slabs(struct stack_pool *p, int level, bool all)
{
    struct stack_slab *b;
    size_t bytes = 0;

    mem_lock(&p->lock);
    bool is_idle = !p->oldest || (level < 1 && !all && p->oldest->stamp == p->sweeps);
    b = is_idle ? NULL : p->slabs;
    mem_unlock(&p->lock);
    for (; b; b = b->next) {
        /* one slab at a time, so that a stack_take() without a free stack waits for one slab at most */
        pthread_mutex_lock(&p->slow);
        bytes += slab_age(p, b, all);
        if (level == 1)
            bytes += slab_drop_lower(p, b);
        pthread_mutex_unlock(&p->slow);
    }
    return bytes;
}

static size_t
pool_sweep(struct stack_pool *p, int level)
{
    bool keeps = level == 0 ? sweep_keeps() : MEM_READ(mem_set.keeps);
    bool all = level >= 2;
    struct stack_slab *gone = NULL;
    size_t bytes = 0;

    if (!keeps)
        bytes = sweep_slabs(p, level, all);
    mem_lock(&p->lock);
    if (!keeps)
        gone = empty_slabs(p, level >= 1);
    p->sweeps++;
    p->hot = 0;
    mem_unlock(&p->lock);
    unmap_list(gone); /* already bare: frees address space, no memory */
    return bytes;
}

static size_t
follow_sweep(int level)
{
    size_t bytes = 0;

    pthread_mutex_lock(&stack_pools_mutex);
    for (struct stack_pool *p = stack_pools; p; p = p->next)
        if (!p->is_direct)
            bytes += pool_sweep(p, level);
    pthread_mutex_unlock(&stack_pools_mutex);
    return bytes;
}

static bool
follow_quiet(void)
{
    bool quiet = true;

    pthread_mutex_lock(&stack_pools_mutex);
    for (struct stack_pool *p = stack_pools; p && quiet; p = p->next) {
        if (p->is_direct || sweep_keeps())
            continue;
        mem_lock(&p->lock);
        quiet = !p->cached && !(p->room_last && p->room_last->nbare == p->room_last->n);
        mem_unlock(&p->lock);
    }
    pthread_mutex_unlock(&stack_pools_mutex);
    return quiet;
}

static void
follow_fork(int step)
{
    if (step == 0) {
        pthread_mutex_lock(&stack_pools_mutex);
        for (struct stack_pool *p = stack_pools; p; p = p->next) {
            pthread_mutex_lock(&p->slow);
            mem_lock(&p->lock);
        }
        return;
    }
    for (struct stack_pool *p = stack_pools; p; p = p->next) {
        mem_unlock(&p->lock);
        pthread_mutex_unlock(&p->slow);
    }
    pthread_mutex_unlock(&stack_pools_mutex);
}

/* ---- life of a pool -------------------------------------------------------------------------- */

static struct mem_follower follower = { .sweep = follow_sweep, .quiet = follow_quiet, .fork = follow_fork };

static void
register_follower(void)
{
    mem_sweep_follow(&follower);
}

static int
pool_init(struct stack_pool *p, const struct stack_pool_opts *o)
{
    size_t bytes = o->bytes ? o->bytes : BYTES_DEFAULT;

    if (bytes < BYTES_MIN || bytes > BYTES_MAX)
        return -EINVAL;
    p->page = (size_t)sysconf(_SC_PAGESIZE);
    p->bytes = (bytes + p->page - 1) / p->page * p->page;
    p->cap = o->cap ? o->cap : CAP_DEFAULT;
    p->entries_max = o->map_entries_max ? o->map_entries_max : stack_map_limit() / 2;
    p->is_mprotect = o->is_mprotect;
    p->is_direct = mem_mode_now() == MEM_MODE_OFF;
    p->slab_max = (uint32_t)(SLAB_BYTES_MAX / (p->bytes + p->page));
    if (p->slab_max > STACK_SLAB_MAX)
        p->slab_max = STACK_SLAB_MAX;
    p->name = strdup(o->name ? o->name : "stacks");
    return p->name ? 0 : -ENOMEM;
}

int
stack_pool_new(const struct stack_pool_opts *opts, struct stack_pool **out)
{
    static const struct stack_pool_opts defaults;
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct stack_pool *p = aligned_alloc(64, (sizeof(*p) + 63) / 64 * 64);
    int err;

    if (!p)
        return -ENOMEM;
    mem_settle();
    memset(p, 0, sizeof(*p));
    err = pool_init(p, opts ? opts : &defaults);
    if (err) {
        free(p);
        return err;
    }
    pthread_mutex_init(&p->slow, NULL);
    pthread_once(&once, register_follower);
    pthread_mutex_lock(&stack_pools_mutex);
    p->next = stack_pools;
    stack_pools = p;
    pthread_mutex_unlock(&stack_pools_mutex);
    *out = p;
    return 0;
}

static void
pool_free(struct stack_pool *p)
{
    assert(!p->slabs && !p->total);
    pthread_mutex_destroy(&p->slow);
    free(p->name);
    free(p);
}

uint32_t
stack_pool_destroy(struct stack_pool *p)
{
    struct stack_slab *gone;
    uint32_t live;

    if (!p)
        return 0;
    pthread_mutex_lock(&stack_pools_mutex); /* after this no sweep visits the pool */
    for (struct stack_pool **at = &stack_pools; *at; at = &(*at)->next) {
        if (*at == p) {
            *at = p->next;
            break;
        }
    }
    pthread_mutex_unlock(&stack_pools_mutex);
    pthread_mutex_lock(&p->slow); /* now no release drops pages */
    mem_lock(&p->lock);
    while (p->oldest) {
        struct stack *s = p->oldest;

        cached_unlink(p, s);
        bare_put(p, s);
    }
    gone = empty_slabs(p, true);
    p->is_dying = true;
    live = p->live;
    mem_unlock(&p->lock);
    pthread_mutex_unlock(&p->slow);
    unmap_list(gone);
    if (!live)
        pool_free(p);
    return live;
}
