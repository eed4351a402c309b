/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool of workers, the jobs posted to them, and the watchdog.
 *
 * A worker takes ONE event from an epoll_wait. If it took several and then blocked in a disk call for the
 * first, the others would be stranded, because the kernel believes them delivered. Left in the kernel's
 * ready list they wake the next waiting worker (the kernel does so itself when events are left over). The
 * kernel keeps waiters last in, first out, so warm workers do the work and the others get old enough to
 * retire.
 *
 * Jobs: each worker has a FIFO of its own under a mutex that is practically never contended: only the
 * watchdog locks it from outside, when the worker has been in one handler for a whole tick, and moves the
 * waiting jobs to the shared FIFO. The shared FIFO is announced by an eventfd that is never read:
 * edge-triggered, each write is an event, and a worker takes one job and announces the others before it
 * runs it, so that no job waits behind a job that blocks.
 *
 * The watchdog is a 10 ms timer, armed when the last waiting worker leaves epoll_wait or a job is posted
 * locally, and disarmed after some quiet ticks: an idle process has no wake-ups.
 *
 * Lock order: pool.lock, then a worker's lock, then pool.post_lock. None is held over a handler or a job. */
#include "event/worker.h"

#include <assert.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "base/ticks.h"
#include "base/procfs.h"
#include "base/read-section.h"
#include "event/charge.h"
#include "event/event-internal.h"
#include "event/timer.h"
#include "log/log.h"
#include "mem/mem-malloc.h"
#include "mem/mem-pool.h"

#define WORKERS_MAX_DEFAULT 256
#define IDLE_MS_DEFAULT 10000
#define TICK_MS 10
#define QUIET_TICKS 10

enum { TAG_JOBS, TAG_STOP };

struct worker {
    struct cds_list_head link; /* pool.workers or pool.left; pool.lock */
    pthread_t thread;
    pthread_mutex_t lock; /* guards jobs */
    struct cds_list_head jobs;
    /* Written by the worker, read by the watchdog and statistics. */
    atomic_bool is_running, is_blocked;
    _Atomic uint64_t serial; /* number of handlers and jobs begun */
    _Atomic uint64_t events, posted;
    uint64_t serial_seen; /* value of `serial` at the watchdog's last tick */
    /* Private to the worker: turns until the next measured turn, and the state of the random numbers that
     * choose it. */
    unsigned turns_left;
    uint32_t random;
    bool may_have_jobs; /* private: set by a post, cleared when `jobs` was seen empty */
};

static struct {
    pthread_mutex_t lock; /* guards the lists, the count and the statistics */
    struct cds_list_head workers, left;
    unsigned min, max, cores, idle_ms;
    atomic_uint threads; /* written under the lock, read without it */
    uint64_t grown, shrunk, events, posted; /* events and posted: sums of the workers that have left */
    bool is_stopping;
    atomic_uint waiting; /* in epoll_wait */
    _Atomic uint64_t missed_ms; /* when the watchdog last found too few workers, or a worker was added */

    pthread_mutex_t post_lock; /* guards the shared FIFO */
    struct cds_list_head jobs;
    bool is_announced; /* an event is on its way to some worker */
    uint64_t posted_any;
    int jobs_fd, stop_fd;

    struct timer watchdog;
    atomic_bool is_armed;
    unsigned quiet_ticks; /* private to the watchdog */
    struct procfs loadavg; /* private to the watchdog; may be missing */
} pool = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .workers = CDS_LIST_HEAD_INIT(pool.workers),
    .left = CDS_LIST_HEAD_INIT(pool.left),
    .post_lock = PTHREAD_MUTEX_INITIALIZER,
    .jobs = CDS_LIST_HEAD_INIT(pool.jobs),
    .jobs_fd = -1,
    .stop_fd = -1,
    .loadavg = PROCFS_FILE("/proc/loadavg"),
};

static __thread struct worker *self; /* NULL on other threads */
__thread _Atomic uint64_t *worker_charge;

static void *worker_main(void *arg);

/* Increments a counter that has one writer, so no locked instruction is needed. */
static void
count_up(_Atomic uint64_t *counter)
{
    atomic_store_explicit(counter, atomic_load_explicit(counter, memory_order_relaxed) + 1,
                          memory_order_relaxed);
}

static void
watchdog_arm(void)
{
    if (!atomic_load_explicit(&pool.is_armed, memory_order_seq_cst) && !atomic_exchange(&pool.is_armed, true))
        timer_start(&pool.watchdog, TICK_MS);
}

/* ---- jobs ------------------------------------------------------------------------------------ */

static void
announce_event(int fd)
{
    uint64_t one = 1;

    while (write(fd, &one, sizeof one) < 0 && errno == EINTR)
        ;
}

/* Moves `list` to the end of the shared FIFO. */
static void
share_jobs(struct cds_list_head *list, unsigned newly_posted)
{
    pthread_mutex_lock(&pool.post_lock);
    pool.posted_any += newly_posted;
    bool announces = !pool.is_announced;

    pool.is_announced = true;
    cds_list_splice(list, pool.jobs.prev);
    pthread_mutex_unlock(&pool.post_lock);
    if (announces)
        announce_event(pool.jobs_fd);
}

void
worker_post_any(struct worker_job *job)
{
    CDS_LIST_HEAD(one);

    cds_list_add(&job->link, &one);
    share_jobs(&one, 1);
}

void
worker_post(struct worker_job *job)
{
    struct worker *w = self;

    if (!w) {
        worker_post_any(job);
        return;
    }
    pthread_mutex_lock(&w->lock);
    cds_list_add_tail(&job->link, &w->jobs);
    pthread_mutex_unlock(&w->lock);
    w->may_have_jobs = true;
    count_up(&w->posted);
    watchdog_arm(); /* in case the present handler gets stuck */
}

static struct worker_job *
take_own_job(struct worker *w)
{
    struct worker_job *job = NULL;

    if (!w->may_have_jobs)
        return NULL;
    pthread_mutex_lock(&w->lock);
    w->may_have_jobs = !cds_list_empty(&w->jobs);
    if (w->may_have_jobs) {
        job = cds_list_first_entry(&w->jobs, struct worker_job, link);
        cds_list_del(&job->link);
    }
    pthread_mutex_unlock(&w->lock);
    return job;
}

static struct worker_job *
take_shared_job(void)
{
    struct worker_job *job = NULL;
    bool announces = false;

    pthread_mutex_lock(&pool.post_lock);
    if (!cds_list_empty(&pool.jobs)) {
        job = cds_list_first_entry(&pool.jobs, struct worker_job, link);
        cds_list_del(&job->link);
        announces = !cds_list_empty(&pool.jobs);
    }
    pool.is_announced = announces;
    pthread_mutex_unlock(&pool.post_lock);
    if (announces)
        announce_event(pool.jobs_fd);
    return job;
}

static void
worker_run_job(struct worker *w, struct worker_job *job)
{
    count_up(&w->serial);
    read_section_begin();
    job->run(job);
    read_section_end();
}

static void
run_own_jobs(struct worker *w)
{
    for (struct worker_job *job; (job = take_own_job(w));)
        worker_run_job(w, job);
}

void
worker_block_begin(void)
{
    if (self)
        atomic_store_explicit(&self->is_blocked, true, memory_order_relaxed);
}

void
worker_block_end(void)
{
    if (self)
        atomic_store_explicit(&self->is_blocked, false, memory_order_relaxed);
}

/* ---- life of a worker ------------------------------------------------------------------------ */

static uint64_t
coarse_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static struct worker *
worker_start_locked(void)
{
    struct worker *w = calloc(1, sizeof *w);
    sigset_t all, before;

    if (!w)
        return NULL;
    pthread_mutex_init(&w->lock, NULL);
    CDS_INIT_LIST_HEAD(&w->jobs);
    sigfillset(&all); /* signals are for the main thread */
    sigdelset(&all, SIGSYS); /* else a system call that the sandbox refuses would end the process */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(&w->thread, NULL, worker_main, w);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (err) {
        pthread_mutex_destroy(&w->lock);
        free(w);
        errno = err;
        return NULL;
    }
    cds_list_add_tail(&w->link, &pool.workers);
    atomic_store_explicit(&pool.missed_ms, coarse_ms(), memory_order_relaxed);
    pool.threads++;
    return w;
}

/* Joins the threads of `list`, which only the caller has. */
static void
join_workers(struct cds_list_head *list)
{
    struct worker *w, *next;

    cds_list_for_each_entry_safe (w, next, list, link) {
        pthread_join(w->thread, NULL);
        pthread_mutex_destroy(&w->lock);
        free(w);
    }
}

static void
account_locked(const struct worker *w)
{
    pool.events += atomic_load(&w->events);
    pool.posted += atomic_load(&w->posted);
}

/* True if this worker is surplus: it is then in pool.left, and a later caller joins it. */
static bool
worker_retire(struct worker *w)
{
    CDS_LIST_HEAD(earlier);

    pthread_mutex_lock(&pool.lock);
    bool retires = pool.threads > pool.min && !pool.is_stopping;

    if (retires) {
        pool.threads--;
        pool.shrunk++;
        account_locked(w);
        cds_list_splice(&pool.left, &earlier);
        CDS_INIT_LIST_HEAD(&pool.left);
        cds_list_move(&w->link, &pool.left);
    }
    pthread_mutex_unlock(&pool.lock);
    join_workers(&earlier);
    return retires;
}

/* Has the watchdog had enough workers for the idle time although there are more than min? Then a worker
 * that has just served is as surplus as a waiting one: the kernel may spread a small load, such as the
 * pings of many connections, so that no worker ever waits that long. */
static bool
is_surplus(void)
{
    return atomic_load_explicit(&pool.threads, memory_order_relaxed) > pool.min &&
           coarse_ms() > atomic_load_explicit(&pool.missed_ms, memory_order_relaxed) + pool.idle_ms;
}

/* Returns the number of events, 0 or 1. *leaves: the idle time has passed, so the worker should retire
 * after this event if it may. */
static int
wait_event(struct epoll_event *event, bool *leaves)
{
    unsigned threads = atomic_load_explicit(&pool.threads, memory_order_relaxed);
    int timeout = threads > pool.min ? (int)pool.idle_ms : -1;

    mem_pool_idle();
    atomic_fetch_add(&pool.waiting, 1);
    int n = epoll_wait(sources_epoll_fd(), event, 1, timeout);

    if (atomic_fetch_sub(&pool.waiting, 1) == 1)
        watchdog_arm();
    *leaves = n == 0 || is_surplus();
    if (n < 0) {
        assert(errno == EINTR);
        return 0;
    }
    return n;
}

/* False when the pool stops. */
static bool
worker_serve(struct worker *w, const struct epoll_event *event)
{
    if (event->data.u64 == EVENT_TAG(TAG_STOP)) {
        for (struct worker_job *job; (job = take_shared_job());) {
            worker_run_job(w, job);
            run_own_jobs(w);
        }
        return false;
    }
    if (event->data.u64 == EVENT_TAG(TAG_JOBS)) {
        struct worker_job *job = take_shared_job();

        if (job)
            worker_run_job(w, job);
    } else {
        count_up(&w->serial);
        count_up(&w->events);
        read_section_begin();
        source_run(event);
        read_section_end();
    }
    run_own_jobs(w);
    return true;
}

/* ---- processor time -------------------------------------------------------------------------- */

static uint64_t
thread_cpu_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The time that reading the clock adds to a turn. */
static uint64_t
clock_cost_ns(void)
{
    uint64_t least = UINT64_MAX;

    for (int i = 0; i < 8; i++) {
        uint64_t began = thread_cpu_ns(), took = thread_cpu_ns() - began;

        least = took < least ? took : least;
    }
    return least;
}

/* Returns 1 to 2 * WORKER_SAMPLE - 1, uniformly: so work that comes at regular times is sampled as often
 * as other work. */
static unsigned
turns_to_pass(struct worker *w)
{
    w->random ^= w->random << 13; /* xorshift */
    w->random ^= w->random >> 17;
    w->random ^= w->random << 5;
    return 1 + w->random % (2 * WORKER_SAMPLE - 1);
}

/* The read section keeps the counter in worker_charge valid. */
static bool
serve_measured(struct worker *w, const struct epoll_event *event, uint64_t began_ns, uint64_t cost_ns)
{
    worker_charge = NULL;
    read_section_begin();
    bool goes_on = worker_serve(w, event);
    if (worker_charge) {
        uint64_t ns = thread_cpu_ns() - began_ns;

        atomic_fetch_add_explicit(worker_charge, WORKER_SAMPLE * (ns > cost_ns ? ns - cost_ns : 0),
                                  memory_order_relaxed);
    }
    read_section_end();
    return goes_on;
}

static void *
worker_main(void *arg)
{
    struct worker *w = arg;
    struct epoll_event event;
    bool goes_on = true, leaves;
    uint64_t cost_ns = clock_cost_ns();

    self = w;
    w->random = (uint32_t)((uintptr_t)w >> 4) | 1;
    w->turns_left = turns_to_pass(w);
    pthread_setname_np(pthread_self(), "kiln-worker");
    rcu_register_thread();
    mem_malloc_serve();
    while (goes_on) {
        bool is_measured = --w->turns_left == 0;
        uint64_t began_ns = is_measured ? thread_cpu_ns() : 0;

        if (wait_event(&event, &leaves)) {
            atomic_store_explicit(&w->is_running, true, memory_order_relaxed);
            goes_on = is_measured ? serve_measured(w, &event, began_ns, cost_ns) : worker_serve(w, &event);
            atomic_store_explicit(&w->is_running, false, memory_order_relaxed);
        }
        if (goes_on && leaves && worker_retire(w))
            break;
        if (is_measured)
            w->turns_left = turns_to_pass(w);
    }
    rcu_unregister_thread();
    self = NULL;
    return NULL;
}

/* ---- the watchdog ---------------------------------------------------------------------------- */

/* Threads of the machine that could use a processor at this moment; -1 if the kernel does not tell. */
static int
runnable_threads(void)
{
    struct procfs_load load;

    return procfs_load(&pool.loadavg, &load) ? -1 : (int)load.runnable;
}

static bool
is_work_pending(void)
{
    struct pollfd p = {.fd = sources_epoll_fd(), .events = POLLIN};

    pthread_mutex_lock(&pool.post_lock);
    bool is_pending = !cds_list_empty(&pool.jobs);

    pthread_mutex_unlock(&pool.post_lock);
    return is_pending || poll(&p, 1, 0) > 0;
}

/* Gives the waiting jobs of a worker that has been in one handler for a tick to the other workers. */
static void
rescue_jobs(struct worker *w)
{
    CDS_LIST_HEAD(jobs);

    pthread_mutex_lock(&w->lock);
    cds_list_splice(&w->jobs, &jobs);
    CDS_INIT_LIST_HEAD(&w->jobs);
    pthread_mutex_unlock(&w->lock);
    if (!cds_list_empty(&jobs))
        share_jobs(&jobs, 0);
}

/* Counts workers that have been in the same handler since the last tick or have declared that they are
 * blocked. */
static unsigned
look_at_workers_locked(unsigned *running)
{
    unsigned stuck = 0;
    struct worker *w;

    cds_list_for_each_entry (w, &pool.workers, link) {
        uint64_t serial = atomic_load_explicit(&w->serial, memory_order_relaxed);

        if (atomic_load_explicit(&w->is_running, memory_order_relaxed)) {
            ++*running;
            if (serial == w->serial_seen || atomic_load_explicit(&w->is_blocked, memory_order_relaxed)) {
                stuck++;
                rescue_jobs(w);
            }
        }
        w->serial_seen = serial;
    }
    return stuck;
}

/* More threads help if fewer than one per core are moving, or if all are in short blocking calls, which
 * shows in idle processors. More threads do not help if the present threads merely compete for processors. */
static unsigned
workers_wanted(unsigned stuck)
{
    unsigned moving = pool.threads - stuck;

    if (moving < pool.cores)
        return pool.cores - moving;
    int runnable = runnable_threads(); /* this thread is one of them */

    return runnable >= 0 && (unsigned)runnable - 1 < pool.cores ? 1 + pool.threads / 8 : 0;
}

static void
pool_grow_locked(unsigned wanted)
{
    for (unsigned i = 0; i < wanted && !pool.is_stopping; i++) {
        if (pool.threads >= pool.max) {
            log_event(LOG_DEBUG, NULL, "workers-at-limit", "all %u workers are busy", pool.threads);
            return;
        }
        if (!worker_start_locked()) {
            log_event(LOG_WARNING, NULL, "worker-start-failed", "no further worker beside %u: %s",
                      pool.threads, strerror(errno));
            return;
        }
        pool.grown++;
    }
}

/* True if jobs wait for a worker's present handler to end; another worker could take them. */
static bool
has_posted_jobs(void)
{
    bool has = false;
    struct worker *w;

    pthread_mutex_lock(&pool.lock);
    cds_list_for_each_entry (w, &pool.workers, link) {
        pthread_mutex_lock(&w->lock);
        has |= !cds_list_empty(&w->jobs);
        pthread_mutex_unlock(&w->lock);
    }
    pthread_mutex_unlock(&pool.lock);
    return has;
}

/* A tick is quiet if no worker moves and at least one waits for events. Stuck workers alone need no
 * watching: their jobs have been taken from them, and both the last waiter that leaves and the next job
 * that is posted arm the timer again. */
static void
watchdog_tick(struct timer *t)
{
    unsigned running = 0;
    bool is_short = atomic_load(&pool.waiting) == 0 && is_work_pending();

    pthread_mutex_lock(&pool.lock);
    unsigned stuck = look_at_workers_locked(&running);

    if (is_short) {
        atomic_store_explicit(&pool.missed_ms, coarse_ms(), memory_order_relaxed);
        pool_grow_locked(workers_wanted(stuck));
    }
    pthread_mutex_unlock(&pool.lock);

    bool is_quiet = running == stuck && atomic_load(&pool.waiting) > 0;

    pool.quiet_ticks = is_quiet ? pool.quiet_ticks + 1 : 0;
    if (pool.quiet_ticks < QUIET_TICKS) {
        timer_start(t, TICK_MS);
        return;
    }
    /* Disarm first, then check again: a worker that leaves or posts now either sees the timer disarmed or
     * is seen here. */
    pool.quiet_ticks = 0;
    atomic_store(&pool.is_armed, false);
    if (atomic_load(&pool.waiting) == 0 || has_posted_jobs())
        watchdog_arm();
}

/* ---- the pool -------------------------------------------------------------------------------- */

static int
descriptors_open(void)
{
    int err = sources_open();

    if (err)
        return err;
    pool.jobs_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    pool.stop_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    procfs_open(&pool.loadavg); /* now, while there are free descriptors; else the watchdog tries again */
    if (pool.jobs_fd < 0 || pool.stop_fd < 0)
        return -errno;
    err = sources_add_tag(pool.jobs_fd, EPOLLIN | EPOLLET, TAG_JOBS);
    /* level-triggered and never read, so it reaches every worker */
    return err ? err : sources_add_tag(pool.stop_fd, EPOLLIN, TAG_STOP);
}

static void
descriptors_close(void)
{
    int *all[] = {&pool.jobs_fd, &pool.stop_fd};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        if (*all[i] >= 0)
            close(*all[i]);
        *all[i] = -1;
    }
    procfs_close(&pool.loadavg);
    sources_close();
}

static void
join_all(void)
{
    CDS_LIST_HEAD(all);

    pthread_mutex_lock(&pool.lock);
    pool.is_stopping = true; /* no worker retires or is added from here on */
    pthread_mutex_unlock(&pool.lock);
    announce_event(pool.stop_fd);

    pthread_mutex_lock(&pool.lock);
    cds_list_splice(&pool.workers, &all);
    cds_list_splice(&pool.left, &all);
    CDS_INIT_LIST_HEAD(&pool.workers);
    CDS_INIT_LIST_HEAD(&pool.left);
    pthread_mutex_unlock(&pool.lock);
    join_workers(&all);
    pool.threads = 0;
}

int
workers_start(const struct worker_options *options)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int err = descriptors_open();

    ticks_start();
    if (err) {
        descriptors_close();
        return err;
    }
    pool.cores = cores > 0 ? (unsigned)cores : 1;
    pool.min = options && options->min ? options->min : pool.cores + 2;
    pool.max = options && options->max ? options->max : WORKERS_MAX_DEFAULT;
    pool.idle_ms = options && options->idle_ms ? options->idle_ms : IDLE_MS_DEFAULT;
    if (pool.max < pool.min)
        pool.max = pool.min;
    pool.is_stopping = false;
    pool.grown = pool.shrunk = pool.events = pool.posted = pool.posted_any = 0;
    atomic_store(&pool.is_armed, false);
    timer_init(&pool.watchdog, watchdog_tick);
    err = timers_start();
    if (err) {
        descriptors_close();
        return err;
    }
    pthread_mutex_lock(&pool.lock);
    while (!err && pool.threads < pool.min) {
        if (!worker_start_locked())
            err = -errno;
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_mutex_lock(&pool.post_lock); /* jobs that were posted before there were workers */
    pool.is_announced = !cds_list_empty(&pool.jobs);
    bool announces = pool.is_announced;
    pthread_mutex_unlock(&pool.post_lock);
    if (announces)
        announce_event(pool.jobs_fd);
    if (err)
        workers_stop();
    return err;
}

void
workers_stop(void)
{
    assert(!self);
    timers_stop(); /* also stops the watchdog, so no worker is added any more */
    join_all();
    timer_stop(&pool.watchdog); /* may have been armed by a worker on its way out */
    descriptors_close();
}

void
worker_stats(struct worker_stats *out)
{
    struct worker *w;

    pthread_mutex_lock(&pool.lock);
    *out = (struct worker_stats){.threads = pool.threads,
                                 .waiting = atomic_load(&pool.waiting),
                                 .events = pool.events,
                                 .posted = pool.posted,
                                 .grown = pool.grown,
                                 .shrunk = pool.shrunk};
    cds_list_for_each_entry (w, &pool.workers, link) {
        out->blocked += atomic_load(&w->is_blocked);
        out->events += atomic_load(&w->events);
        out->posted += atomic_load(&w->posted);
    }
    pthread_mutex_lock(&pool.post_lock);
    out->posted += pool.posted_any;
    pthread_mutex_unlock(&pool.post_lock);
    pthread_mutex_unlock(&pool.lock);
}
