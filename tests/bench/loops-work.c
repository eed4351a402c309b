/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The program of tests/bench/loops: each process runs one case.
 *
 *     loops-work framing WAY STREAMS DEPTH ROUNDS     loops-framing.c
 *     loops-work pump WAY CASE                        loops-pump.c
 *     loops-work loop ITERATIONS                      allocations of the event loop
 *     loops-work procfs WAY FILE READS                us and bytes allocated a read
 */
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "base/procfs.h"
#include "event/timer.h"
#include "event/worker.h"
#include "loops-bench.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"

/* ---- counting -------------------------------------------------------------------------------- */

#ifdef LOOPS_COUNT
static _Atomic uint64_t calls, bytes;

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t align, size_t n);

static void
note(size_t n)
{
    atomic_fetch_add_explicit(&calls, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&bytes, n, memory_order_relaxed);
}

void *
malloc(size_t n)
{
    note(n);
    return __libc_malloc(n);
}

void *
calloc(size_t n, size_t size)
{
    note(n * size);
    return __libc_calloc(n, size);
}

void *
realloc(void *p, size_t n)
{
    note(n);
    return __libc_realloc(p, n);
}

void *
memalign(size_t align, size_t n)
{
    note(n);
    return __libc_memalign(align, n);
}

void *
aligned_alloc(size_t align, size_t n)
{
    note(n);
    return __libc_memalign(align, n);
}

int
posix_memalign(void **out, size_t align, size_t n)
{
    note(n);
    *out = __libc_memalign(align, n);
    return *out ? 0 : ENOMEM;
}

bool
allocations_are_counted(void)
{
    return true;
}

/* Memory that the pools take from the system counts too. */
struct allocations
allocations_now(void)
{
    struct mem_process_stats s;

    mem_pools_stats(&s);
    return (struct allocations){calls, bytes + s.resident_bytes};
}
#else
bool
allocations_are_counted(void)
{
    return false;
}

struct allocations
allocations_now(void)
{
    return (struct allocations){0, 0};
}
#endif

/* ---- what all need --------------------------------------------------------------------------- */

void
must(bool is_good, const char *what)
{
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

double
cpu_seconds(int who)
{
    struct rusage u;

    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

double
wall_seconds(void)
{
    return 1e-9 * (double)clock_mono_ns();
}

void
pools_start(bool on)
{
    must(!mem_pools_set_mode(on ? "on" : "off") && !mem_pools_init() && !iobuf_pools_init(), "pools");
}

/* ---- the event loop -------------------------------------------------------------------------- */

/* An iteration is an event, a job that the event's handler posts, and a timer that the job starts and that
 * causes the next event. */
static struct {
    struct event_source src;
    struct worker_job job;
    struct timer timer;
    unsigned left;
    sem_t done;
} ring;

static void
ring_event(struct event_source *src, uint32_t events)
{
    uint64_t n;

    (void)events;
    while (read(src->fd, &n, sizeof n) == sizeof n)
        worker_post(&ring.job);
}

static void
ring_job(struct worker_job *job)
{
    (void)job;
    timer_start(&ring.timer, 0);
}

static void
ring_due(struct timer *t)
{
    uint64_t one = 1;

    (void)t;
    if (ring.left-- == 0)
        sem_post(&ring.done);
    else
        must(write(ring.src.fd, &one, sizeof one) == sizeof one, "write");
}

static void
ring_run(unsigned iterations)
{
    ring.left = iterations;
    timer_start(&ring.timer, 0);
    while (sem_wait(&ring.done))
        ;
}

static int
loop_main(unsigned iterations)
{
    pools_start(true);
    must(!workers_start(NULL), "workers_start");
    sem_init(&ring.done, 0, 0);
    ring.src = (struct event_source){.fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC), .fn = ring_event};
    ring.job.run = ring_job;
    timer_init(&ring.timer, ring_due);
    must(!event_add(&ring.src, EPOLLIN), "event_add");
    ring_run(1000);
    struct allocations before = allocations_now();
    double begin = wall_seconds();

    ring_run(iterations);
    double us = 1e6 * (wall_seconds() - begin) / iterations;
    struct allocations after = allocations_now();

    printf("%llu %llu %.2f\n", (unsigned long long)(after.calls - before.calls),
           (unsigned long long)(after.bytes - before.bytes), us);
    event_remove(&ring.src);
    workers_stop();
    close(ring.src.fd);
    return 0;
}

/* ---- /proc ----------------------------------------------------------------------------------- */

static uint64_t sum; /* so that nothing is optimised away */

/* Reads the same figures as the procfs reader, in the naive way. */
static void
open_read_close(const char *path, const char *key, const char *format, int figures)
{
    unsigned long long v[8] = {0};
    char line[1024];
    FILE *f = fopen(path, "re");

    must(f != NULL, path);
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, key, strlen(key)) == 0)
            break;
    }
    must(sscanf(line, format, &v[0], &v[1], &v[2], &v[3], &v[4], &v[5], &v[6], &v[7]) == figures, path);
    sum += v[0];
    fclose(f);
}

static int
read_kept(struct procfs *f, const char *file)
{
    union {
        struct procfs_statm statm;
        struct procfs_stat stat;
        struct procfs_cpu cpu;
    } u;
    struct procfs_field available = {.key = "MemAvailable:"};
    int err;

    if (!strcmp(file, "statm"))
        err = procfs_statm(f, &u.statm);
    else if (!strcmp(file, "stat"))
        err = procfs_stat(f, &u.stat);
    else if (!strcmp(file, "meminfo"))
        err = procfs_fields(f, &available, 1) == 1 ? 0 : -EBADMSG;
    else
        err = procfs_cpu(f, &u.cpu);
    sum += u.statm.size + available.value;
    return err;
}

static int
procfs_main(const char *way, const char *file, unsigned reads)
{
    static const struct {
        const char *name, *path, *key, *format;
        int figures;
    } files[] = {
        {"statm", "/proc/self/statm", "", "%llu %llu %llu", 3},
        {"stat", "/proc/self/stat", "",
         "%*d (%*[^)]) %*c %llu %*d %*d %*d %*d %*u %llu %*u %llu %*u %llu %llu %*d %*d %*d %*d %llu %*d "
         "%llu",
         7},
        {"meminfo", "/proc/meminfo", "MemAvailable:", "MemAvailable: %llu", 1},
        {"cpu", "/proc/stat", "cpu ", "cpu %llu %llu %llu %llu %llu %llu %llu %llu", 8},
    };
    size_t i = 0;

    while (i < 3 && strcmp(files[i].name, file))
        i++;
    struct procfs f = PROCFS_FILE(files[i].path);
    bool is_kept = !strcmp(way, "kept");

    must(!read_kept(&f, file), file);
    struct allocations before = allocations_now();
    double begin = cpu_seconds(RUSAGE_THREAD);

    for (unsigned n = 0; n < reads; n++) {
        if (is_kept)
            must(!read_kept(&f, file), file);
        else
            open_read_close(files[i].path, files[i].key, files[i].format, files[i].figures);
    }
    double us = 1e6 * (cpu_seconds(RUSAGE_THREAD) - begin) / reads;
    struct allocations after = allocations_now();

    printf("%.3f %.1f\n", us, (double)(after.bytes - before.bytes) / reads);
    procfs_close(&f);
    return sum == 0;
}

int
main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "framing"))
        return framing_main(argc - 1, argv + 1);
    if (argc > 1 && (!strcmp(argv[1], "pump") || !strcmp(argv[1], "child")))
        return pump_main(argc - 1, argv + 1);
    if (argc == 3 && !strcmp(argv[1], "loop"))
        return loop_main((unsigned)atoi(argv[2]));
    if (argc == 5 && !strcmp(argv[1], "procfs"))
        return procfs_main(argv[2], argv[3], (unsigned)atoi(argv[4]));
    fprintf(stderr, "usage: see the head of loops-work.c\n");
    return 2;
}
