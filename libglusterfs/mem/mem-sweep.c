/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* mem-sweep: ages the lines of all threads, idle and blocked ones too, and frees objects that were already
 * cold.
 *
 * The handshake, per thread. A list is never touched from two sides:
 *
 *      owner                          sweeper
 *   O1 busy = 1                    S1 req = LOCKED
 *   O2 req == NONE ?               M  membarrier: every thread of the process passes a full barrier
 *   O3 move the lists              S2 busy == 0 ?  if not: req = DEMOTE and go on, never wait
 *   O4 busy = 0 (release)          S3 move the lists
 *                                  S4 req = NONE (release)
 *
 * Suppose O3 and S3 overlapped: then O2 read NONE and S2 read 0. If O1 is before the owner's barrier, its
 * store is visible at S2, which then saw a later O4, and acquire/release puts O3 before S3. If the barrier
 * is before O1, it is before O2, which then sees S1's LOCKED or a newer value of the sweeper; NONE is
 * written only at S4, and acquire/release puts S3 before O3. The owner's only write to req is the
 * compare-exchange DEMOTE -> NONE, which cannot make NONE out of LOCKED. So they don't overlap.
 *
 * Where membarrier is refused (cooperative) the sweeper only sends requests, with DEMOTE. */
#include "mem/mem-internal.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <syslog.h>
#include <unistd.h>

#include "base/probe.h"
#include "mem/mem-malloc.h"

enum { GROUP = 32, PRESSURE_FDS = 4, STACK = 256 << 10 };

struct mem_figures mem_figures;
int mem_over_cap;

static struct {
    pthread_mutex_t mutex; /* starting and stopping */
    pthread_t thread;
    bool running;
    int stop;
    int wake; /* eventfd */
    int dormant;
} sweeper = { .mutex = PTHREAD_MUTEX_INITIALIZER, .wake = -1 };

/* Magazines that a pass takes from threads, by pool id; sweep mutex. */
static struct mem_magazine *doomed[MEM_IDS];

/* ---- membarrier ------------------------------------------------------------------------------ */

bool
mem_membarrier_register(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

bool
mem_membarrier(void)
{
    uint64_t from = mem_now_us(), us;

    if (syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) != 0)
        return false;
    us = mem_now_us() - from;
    if (us > mem_figures.membarrier_us_max)
        MEM_WRITE(mem_figures.membarrier_us_max, us);
    return true;
}

/* ---- one thread ------------------------------------------------------------------------------ */

#ifndef MEM_WINDOW
#define MEM_WINDOW(thread, opens)                                                                            \
    ((void)0) /* tests/bench/pool measures how long a thread cannot use its lines */
#endif

static void
drop_line(struct mem_thread *t, struct mem_line *l, struct mem_pool *p)
{
    mem_line_fold(l, p);
    memset(l, 0, sizeof(*l));
    __atomic_fetch_and(&t->used[p->id / 64], ~((uint64_t)1 << (p->id % 64)), __ATOMIC_RELAXED);
}

/* Ages the lines of a thread that is locked out of them. */
static void
age_thread(struct mem_thread *t, bool all)
{
    bool stays = false;
    unsigned id;

    MEM_EACH_USED(t, id) {
        struct mem_line *l = mem_line_of(t, id);
        struct mem_pool *p = mem_pool_by_id(id);

        stays |= mem_line_age(l, all || MEM_READ(p->dying), &doomed[id]);
        if (MEM_READ(p->dying))
            drop_line(t, l, p);
    }
    MEM_WRITE(t->active, stays);
}

/* S2 .. S4, after the barrier. The thread is LOCKED. */
static void
handshake_one(struct mem_thread *t, bool all)
{
    MEM_HOOK(S2);
    if (__atomic_load_n(&t->busy, __ATOMIC_ACQUIRE)) {
        __atomic_store_n(&t->req, MEM_REQ_DEMOTE, __ATOMIC_RELEASE);
        MEM_WINDOW(t, false);
        t->retry = 1;
        MEM_ADD(mem_figures.demotes, 1);
        return;
    }
    MEM_HOOK(S3);
    age_thread(t, all);
    MEM_HOOK(S4);
    __atomic_store_n(&t->req, MEM_REQ_NONE, __ATOMIC_RELEASE);
    MEM_WINDOW(t, false);
}

/* ---- a group --------------------------------------------------------------------------------- */

static void
ask_only(struct mem_thread *t, bool all)
{
    uint32_t none = MEM_REQ_NONE;

    if (t == mem_self) { /* this thread is not inside its own bracket */
        age_thread(t, all);
        return;
    }
    if (__atomic_compare_exchange_n(&t->req, &none, MEM_REQ_DEMOTE, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_RELAXED))
        MEM_ADD(mem_figures.demotes, 1);
}

/* Membarrier failed after it had worked: releases the group and never tries again. */
static void
fall_back(struct mem_thread **group, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        __atomic_store_n(&group[i]->req, MEM_REQ_DEMOTE, __ATOMIC_RELEASE);
        MEM_WINDOW(group[i], false);
    }
    mem_set.cooperative = true;
    mem_message(LOG_WARNING, "mem-pool: membarrier failed (%s), sweeping is cooperative from now on",
                strerror(errno));
}

static unsigned
group_handshake(struct mem_thread **group, unsigned n, bool all, bool last)
{
    unsigned busy = 0;

    if (!mem_membarrier()) {
        fall_back(group, n);
        return 0;
    }
    for (unsigned i = 0; i < n; i++)
        handshake_one(group[i], all);
    /* A thread that was inside its bracket has most likely left it by now. A thread that has aged itself
     * meanwhile is not locked again. */
    for (unsigned i = 0; i < n; i++) {
        uint32_t demote = MEM_REQ_DEMOTE;

        if (!group[i]->retry)
            continue;
        group[i]->retry = 0;
        if (last) /* the thread will age itself */
            continue;
        MEM_HOOK(S1);
        MEM_WINDOW(group[i], true);
        if (__atomic_compare_exchange_n(&group[i]->req, &demote, MEM_REQ_LOCKED, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_RELAXED))
            group[busy++] = group[i];
    }
    return busy;
}

static void
age_group(struct mem_thread **group, unsigned n, bool all)
{
    uint64_t from = mem_now_us(), us;

    for (unsigned i = 0; i < n; i++) {
        MEM_HOOK(S1);
        MEM_WINDOW(group[i], true);
        __atomic_exchange_n(&group[i]->req, MEM_REQ_LOCKED, __ATOMIC_ACQ_REL);
    }
    n = group_handshake(group, n, all, false);
    if (n)
        group_handshake(group, n, all, true);
    us = mem_now_us() - from;
    if (us > mem_figures.window_us_max)
        MEM_WRITE(mem_figures.window_us_max, us);
}

static void
age_threads(bool all)
{
    struct mem_thread *group[GROUP];

    pthread_mutex_lock(&mem_registry_mutex);
    mem_threads_cursor = mem_threads;
    while (mem_threads_cursor) {
        unsigned n = 0;

        while (mem_threads_cursor && n < GROUP) {
            struct mem_thread *t = mem_threads_cursor;

            mem_threads_cursor = t->next;
            if (!MEM_READ(t->active))
                MEM_ADD(mem_figures.skipped, 1); /* nothing cached since it was emptied: one read, no write */
            else if (mem_set.cooperative)
                ask_only(t, all);
            else
                group[n++] = t;
        }
        if (n)
            age_group(group, n, all);
        pthread_mutex_unlock(&mem_registry_mutex); /* lets threads start and exit */
        pthread_mutex_lock(&mem_registry_mutex);
    }
    pthread_mutex_unlock(&mem_registry_mutex);
}

/* ---- depots and spans ------------------------------------------------------------------------ */

static uint64_t
free_chain(struct mem_pool *p, struct mem_magazine *m)
{
    uint64_t objects = 0;

    for (struct mem_magazine *next; m; m = next) {
        next = m->next;
        mem_class_free(&p->class, m->slot, m->count);
        objects += m->count;
        mem_magazine_free(m);
    }
    MEM_ADD(p->sweep_freed, objects);
    return objects;
}

/* Drops pages if slots were returned since the last time. */
static void
trim_pages(struct mem_class *c)
{
    if (!c->span_bytes || MEM_READ(c->returned) == c->returned_trimmed)
        return;
    c->returned_trimmed = MEM_READ(c->returned);
    mem_class_trim_pages(c);
}

/* Releases spans without an object, and the pages between big objects in the other spans. */
static void
release_spans(struct mem_class *c, bool all)
{
    bool idle = mem_class_idle(c);

    mem_class_release(c, idle || all);
    if (idle && c->stride >= MEM_BIG)
        trim_pages(c);
}

/* A twentieth of the period, at least 50 milliseconds, of this thread's CPU time, so that the time is not
 * lost on a busy machine. */
static uint64_t
pages_until(void)
{
    uint64_t us = (uint64_t)MEM_READ(mem_set.sweep_ms) * 1000 / 20;

    return mem_cpu_us() + (us > 50000 ? us : 50000);
}

/* Drops pages between live objects. */
static void
age_pages(void)
{
    uint64_t until = pages_until();

    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pool_by_id(id);

        if (p)
            mem_class_age_pages(&p->class, until);
    }
    mem_magazines_age_pages(until);
}

static size_t
age_pools(bool all, bool release_all)
{
    bool lean = release_all || (mem_set.cap && mem_figures.cached_bytes > mem_set.cap);
    size_t malloc_freed = 0;

    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pool_by_id(id);
        uint64_t n;

        if (!p)
            continue;
        n = free_chain(p, mem_depot_age(p, all || MEM_READ(p->dying), lean));
        n += free_chain(p, doomed[id]);
        doomed[id] = NULL;
        mem_debug_sweep(p, all || MEM_READ(p->dying));
        if (p->class.span_bytes)
            release_spans(&p->class, release_all);
        else
            malloc_freed += n * p->class.stride;
    }
    mem_magazines_release(release_all);
    return malloc_freed;
}

/* Frees a destroyed pool when all its objects are back and no thread has a line for it. */
static void
bury_pools(void)
{
    uint64_t used[4] = { 0 };

    for (struct mem_thread *t = mem_threads; t; t = t->next)
        for (int w = 0; w < 4; w++)
            used[w] |= MEM_READ(t->used[w]);
    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pools[id];

        if (!p || !p->dying)
            continue;
        bool gone = MEM_READ(p->class.carved) == MEM_READ(p->class.returned) && !MEM_READ(p->direct) &&
                    !(used[id / 64] & ((uint64_t)1 << (id % 64)));
        p->gone_sweeps = gone ? p->gone_sweeps + 1 : 0;
        if (p->gone_sweeps >= 2) {
            mem_pool_free(p);
        } else if (!gone && p->dying_sweeps < 3 && ++p->dying_sweeps == 3 && mem_pool_live(p) > 0) {
            mem_message(LOG_WARNING, "mem-pool %s: destroyed, but %lld objects are still live", p->name,
                        (long long)mem_pool_live(p));
        }
    }
}

/* Sums the cached bytes of all pools, and each pool's peak, in one walk. */
static void
take_stock(void)
{
    size_t cached = 0;

    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pools[id];
        int64_t live, held;

        if (!p)
            continue;
        live = mem_pool_live(p);
        held = (int64_t)(MEM_READ(p->class.carved) - MEM_READ(p->class.returned)) - live;
        if (held > 0)
            cached += (size_t)held * p->class.stride;
    }
    MEM_WRITE(mem_figures.cached_bytes, cached);
}

static size_t
sweep_pass(bool all, bool release_all)
{
    uint64_t from = mem_now_us();
    size_t malloc_freed, bytes;

    age_threads(all);
    malloc_freed = age_pools(all, release_all);
    mem_owners_sweep();
    pthread_mutex_lock(&mem_registry_mutex);
    take_stock();
    bury_pools();
    pthread_mutex_unlock(&mem_registry_mutex);
    bytes = mem_reservations_release();
    if (malloc_freed >= (size_t)4 << 20)
        mem_malloc_trim();
    MEM_ADD(mem_figures.sweeps, 1);
    MEM_WRITE(mem_figures.last_us, mem_now_us() - from);
    PROBE2(pool_sweep, mem_figures.last_us, mem_figures.cached_bytes);
    return bytes;
}

static void
halve_magazines(void)
{
    for (unsigned id = 0; id < MEM_IDS; id++) {
        struct mem_pool *p = mem_pool_by_id(id);

        if (!p)
            continue;
        mem_lock(&p->depot.lock);
        if (p->depot.m > 1)
            MEM_WRITE(p->depot.m, p->depot.m / 2);
        mem_unlock(&p->depot.lock);
    }
}

/* ---- followers ------------------------------------------------------------------------------- */

struct mem_follower *mem_followers; /* grows at its head only; changed under the sweep mutex, read without */

void
mem_sweep_follow(struct mem_follower *f)
{
    mem_thread_attach(); /* installs the handlers of fork */
    pthread_mutex_lock(&mem_sweep_mutex);
    f->next = mem_followers;
    __atomic_store_n(&mem_followers, f, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&mem_sweep_mutex);
}

static size_t
sweep_followers(int level)
{
    size_t bytes = 0;

    for (struct mem_follower *f = mem_followers; f; f = f->next)
        bytes += f->sweep(level);
    return bytes;
}

static bool
followers_quiet(void)
{
    for (struct mem_follower *f = __atomic_load_n(&mem_followers, __ATOMIC_ACQUIRE); f; f = f->next)
        if (!f->quiet())
            return false;
    return true;
}

/* ---- passes ---------------------------------------------------------------------------------- */

/* Sweep mutex held. */
static void
sweep_and_cap(void)
{
    /* first, because a magazine that comes to a depot during the pass requests another pass */
    MEM_WRITE(mem_over_cap, 0);
    sweep_pass(false, false);
    age_pages();
    if (mem_set.cap && mem_figures.cached_bytes > mem_set.cap) {
        halve_magazines();
        sweep_pass(false, false);
    }
    sweep_followers(0);
    mem_malloc_age(false);
}

void
mem_pools_sweep_now(void)
{
    if (mem_mode_now() == MEM_MODE_OFF)
        return;
    pthread_mutex_lock(&mem_sweep_mutex);
    sweep_and_cap();
    pthread_mutex_unlock(&mem_sweep_mutex);
}

static size_t
pools_trim(int level)
{
    size_t bytes;

    if (mem_mode_now() == MEM_MODE_OFF)
        return level >= 3 ? (mem_malloc_trim(), 0) : 0;
    pthread_mutex_lock(&mem_sweep_mutex);
    bytes = sweep_pass(level >= 2, true);
    if (level >= 2)
        bytes += sweep_pass(true, true); /* magazines that threads handed in meanwhile */
    for (unsigned id = 0; level >= 3 && id < MEM_IDS; id++)
        if (mem_pools[id])
            bytes += mem_class_trim_pages(&mem_pools[id]->class);
    bytes += sweep_followers(level);
    pthread_mutex_unlock(&mem_sweep_mutex);
    if (level >= 3)
        mem_malloc_trim();
    PROBE2(pool_trim, level, bytes);
    return bytes;
}

size_t
mem_pools_trim(int level)
{
    MEM_ADD(mem_figures.manual, 1);
    return pools_trim(level);
}

/* ---- the thread ------------------------------------------------------------------------------ */

static void
wake_sweeper(void)
{
    uint64_t one = 1;
    int fd = __atomic_load_n(&sweeper.wake, __ATOMIC_ACQUIRE);

    if (fd >= 0 && write(fd, &one, sizeof(one)) < 0 && errno != EAGAIN)
        mem_message(LOG_ERR, "mem-pool: cannot wake the sweeper: %s", strerror(errno));
}

void
mem_sweeper_kick(void)
{
    __atomic_store_n(&sweeper.dormant, 0, __ATOMIC_SEQ_CST);
    wake_sweeper();
}

void
mem_sweeper_rouse(void)
{
    if (MEM_UNLIKELY(__atomic_load_n(&sweeper.dormant, __ATOMIC_SEQ_CST)) &&
        __atomic_exchange_n(&sweeper.dormant, 0, __ATOMIC_SEQ_CST))
        wake_sweeper();
}

/* Would the next pass find nothing to do? */
static bool
pools_quiet(void)
{
    bool quiet = true;

    pthread_mutex_lock(&mem_registry_mutex);
    for (struct mem_thread *t = mem_threads; t && quiet; t = t->next)
        quiet = !MEM_READ(t->active);
    for (unsigned id = 0; id < MEM_IDS && quiet; id++) {
        struct mem_pool *p = mem_pools[id];

        if (!p)
            continue;
        mem_lock(&p->depot.lock);
        quiet = !p->dying && !p->depot.hot && !p->depot.cold && !p->depot.doomed && !p->depot.empty &&
                !p->quarantined;
        mem_unlock(&p->depot.lock);
        mem_lock(&p->class.lock);
        quiet = quiet && !p->class.empties && MEM_READ(p->class.carved) == p->class.carved_swept;
        mem_unlock(&p->class.lock);
    }
    pthread_mutex_unlock(&mem_registry_mutex);
    return quiet && mem_set.mode == MEM_MODE_ON && mem_magazines_quiet() && followers_quiet();
}

/* No thread has used a pool for a while: drops the pages that earlier sweeps had no time for. */
static void
drop_remaining_pages(void)
{
    pthread_mutex_lock(&mem_sweep_mutex);
    for (unsigned id = 0; id < MEM_IDS; id++) {
        if (mem_pools[id])
            trim_pages(&mem_pools[id]->class);
    }
    pthread_mutex_unlock(&mem_sweep_mutex);
    mem_malloc_age(true);
}

static void
fall_asleep_if_quiet(void)
{
    if (!pools_quiet())
        return;
    __atomic_store_n(&sweeper.dormant, 1, __ATOMIC_SEQ_CST);
    if (!pools_quiet()) /* a thread became active before it could see that the sweeper sleeps */
        __atomic_store_n(&sweeper.dormant, 0, __ATOMIC_SEQ_CST);
    else
        drop_remaining_pages();
}

static int
poll_timeout(uint64_t due)
{
    uint64_t now = mem_now_us();

    if (!MEM_READ(mem_set.sweep_ms) || __atomic_load_n(&sweeper.dormant, __ATOMIC_SEQ_CST))
        return -1;
    return due <= now ? 0 : (int)((due - now + 999) / 1000);
}

static void
sweep_periodic(void)
{
    pthread_mutex_lock(&mem_sweep_mutex);
    sweep_and_cap();
    pthread_mutex_unlock(&mem_sweep_mutex);
    MEM_ADD(mem_figures.periodic, 1);
    fall_asleep_if_quiet();
}

static void *
sweeper_main(void *arg)
{
    struct pollfd fds[1 + PRESSURE_FDS] = { { .fd = sweeper.wake, .events = POLLIN } };
    uint64_t due = mem_now_us() + (uint64_t)MEM_READ(mem_set.sweep_ms) * 1000, pressed = 0, got;
    int n = mem_set.pressure ? mem_pressure_open(fds + 1, PRESSURE_FDS) : 0;

    (void)arg;
    pthread_setname_np(pthread_self(), "mem-sweep");
    while (!MEM_READ(sweeper.stop)) {
        int wait = poll_timeout(due), ready = poll(fds, (nfds_t)(1 + n), wait), level;
        uint64_t now = mem_now_us(), period = (uint64_t)MEM_READ(mem_set.sweep_ms) * 1000;

        if (ready < 0 && errno != EINTR)
            break;
        if (fds[0].revents & POLLIN && read(sweeper.wake, &got, sizeof(got)) > 0 && wait < 0)
            due = now + period; /* dormancy ends: the period starts now */
        if (due > now + period)
            due = now + period;
        if (MEM_READ(sweeper.stop))
            break;
        level = ready > 0 && n ? mem_pressure_level(fds + 1, n) : 0;
        if (level && now - pressed >= 1000000) {
            pressed = now;
            MEM_ADD(mem_figures.pressure, 1);
            pools_trim(level);
        }
        if ((period && now >= due) || MEM_READ(mem_over_cap)) {
            sweep_periodic();
            /* counted from now, so that objects put during a pass stay for a whole period, too */
            due = mem_now_us() + period;
        }
    }
    mem_pressure_close(fds + 1, n);
    return NULL;
}

static int
sweeper_start(void)
{
    pthread_attr_t attr;
    sigset_t all, old;
    int err;

    if (sweeper.wake < 0) {
        int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);

        if (fd < 0)
            return -errno;
        __atomic_store_n(&sweeper.wake, fd, __ATOMIC_RELEASE);
    }
    MEM_WRITE(sweeper.stop, 0);
    sweeper.dormant = 0;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, STACK);
    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* else a system call that the sandbox refuses would end the process */
    pthread_sigmask(SIG_SETMASK, &all, &old); /* signals belong to the program's threads */
    err = pthread_create(&sweeper.thread, &attr, sweeper_main, NULL);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    pthread_attr_destroy(&attr);
    if (err)
        return -err;
    sweeper.running = true;
    return 0;
}

int
mem_pools_init(void)
{
    int err = 0;

    if (mem_mode_now() == MEM_MODE_OFF)
        return 0;
    pthread_mutex_lock(&sweeper.mutex);
    if (!sweeper.running)
        err = sweeper_start();
    pthread_mutex_unlock(&sweeper.mutex);
    return err;
}

void
mem_pools_fini(void)
{
    pthread_mutex_lock(&sweeper.mutex);
    if (sweeper.running) {
        MEM_WRITE(sweeper.stop, 1);
        wake_sweeper();
        pthread_join(sweeper.thread, NULL);
        sweeper.running = false; /* the eventfd stays, because a thread may be about to write to it */
    }
    pthread_mutex_unlock(&sweeper.mutex);
}

/* Called in the child of a fork: the thread is gone, and its descriptors must be closed. */
void
mem_sweeper_forget(void)
{
    if (sweeper.wake >= 0)
        close(sweeper.wake);
    sweeper.wake = -1;
    sweeper.running = false;
    sweeper.dormant = 0;
    mem_over_cap = 0;
    pthread_mutex_init(&sweeper.mutex, NULL);
    memset(doomed, 0, sizeof(doomed));
    if (!mem_set.cooperative && !mem_membarrier_register())
        mem_set.cooperative = true;
}

uint64_t
mem_pools_fini_strict(void)
{
    uint64_t live = 0;

    mem_pools_fini();
    if (mem_mode_now() == MEM_MODE_OFF)
        return 0;
    mem_pools_trim(3);
    mem_pools_trim(3);
    pthread_mutex_lock(&mem_registry_mutex);
    for (unsigned id = 0; id < MEM_IDS; id++)
        if (mem_pools[id])
            live += (uint64_t)mem_pool_live(mem_pools[id]);
    pthread_mutex_unlock(&mem_registry_mutex);
    return live;
}
