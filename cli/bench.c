/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln bench: measures a volume through a temporary mount, and for comparison a folder next to the volume's
 * first brick. Each load runs for some seconds, and makes one call after the other, as one program does. The
 * command flushes written data before the clock stops, and drops the data from the cache before reads. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "cli/kiln.h"

enum { SECONDS_DEFAULT = 2, SECONDS_MAX = 600, SMALL_BYTES = 1024, CALLS_MAX = 1 << 20 };
#define FILE_BYTES_MAX (512ll << 20)

/* A place that is measured. */
struct place {
    char dir[PATH_MAX];
    double seconds;
    long files;       /* small files in the folder */
    long long bytes;  /* size of the large file */
    char *buffer;     /* 128 KiB */
    float *times;     /* durations of the calls, microseconds; CALLS_MAX items */
    long calls;       /* calls of the current load */
    double began;
};

struct load {
    const char *name;
    size_t bytes; /* bytes of a call; 0: a rate in MB/s has no meaning */
    /* -errno, or 0 with the place's calls counted */
    int (*run)(struct place *p, const struct load *l);
};

struct result {
    double a_second, mb_a_second, p50_us, p99_us;
};

static volatile sig_atomic_t is_stopped;

static void
stop(int signal)
{
    is_stopped = signal;
}

/* ---- time ------------------------------------------------------------------------------------ */

static double
now_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

static bool
has_time(const struct place *p)
{
    return !is_stopped && p->calls < CALLS_MAX && now_us() - p->began < p->seconds * 1e6;
}

static void
count_call(struct place *p, double began)
{
    p->times[p->calls++] = (float)(now_us() - began);
}

/* ---- loads ----------------------------------------------------------------------------------- */

static const char *
name_of(const struct place *p, long file)
{
    static char path[PATH_MAX + 64];

    snprintf(path, sizeof path, "%s/small/%ld", p->dir, file);
    return path;
}

static int
one_small(struct place *p, long file, int flags)
{
    int fd = open(name_of(p, file), flags | O_CLOEXEC, 0600);
    ssize_t n = -1;
    int err = fd < 0 ? -errno : 0;

    if (!err)
        n = flags & O_CREAT ? write(fd, p->buffer, SMALL_BYTES) : read(fd, p->buffer, SMALL_BYTES);
    if (!err && n != SMALL_BYTES)
        err = n < 0 ? -errno : -EIO;
    if (fd >= 0 && close(fd) < 0 && !err)
        err = -errno;
    return err;
}

static int
create_small(struct place *p, const struct load *l)
{
    char dir[PATH_MAX + 16];

    (void)l;
    snprintf(dir, sizeof dir, "%s/small", p->dir);
    if (mkdir(dir, 0700) < 0)
        return -errno;
    while (has_time(p)) {
        double began = now_us();
        int err = one_small(p, p->files, O_CREAT | O_EXCL | O_WRONLY);

        if (err)
            return err;
        p->files++;
        count_call(p, began);
    }
    return 0;
}

/* Calls `look` for the small files in turn, again and again, until the time is over. */
static int
look_at_small(struct place *p, int (*look)(struct place *p, long file))
{
    for (long i = 0; p->files > 0 && has_time(p); i = (i + 1) % p->files) {
        double began = now_us();
        int err = look(p, i);

        if (err)
            return err;
        count_call(p, began);
    }
    return 0;
}

static int
stat_one(struct place *p, long file)
{
    struct stat st;

    return stat(name_of(p, file), &st) < 0 ? -errno : 0;
}

static int
read_one(struct place *p, long file)
{
    return one_small(p, file, O_RDONLY);
}

static int
stat_small(struct place *p, const struct load *l)
{
    (void)l;
    return look_at_small(p, stat_one);
}

static int
read_small(struct place *p, const struct load *l)
{
    (void)l;
    return look_at_small(p, read_one);
}

/* Deletes small files until none is left or the time is over. */
static int
delete_small(struct place *p, const struct load *l)
{
    (void)l;
    while (p->files > 0 && has_time(p)) {
        double began = now_us();

        if (unlink(name_of(p, p->files - 1)) < 0)
            return -errno;
        p->files--;
        count_call(p, began);
    }
    return 0;
}

static int
open_large(const struct place *p, int flags)
{
    char path[PATH_MAX + 16];

    snprintf(path, sizeof path, "%s/large", p->dir);
    int fd = open(path, flags | O_CLOEXEC, 0600);
    return fd < 0 ? -errno : fd;
}

static int
write_large(struct place *p, const struct load *l)
{
    int fd = open_large(p, O_CREAT | O_TRUNC | O_WRONLY), err = fd < 0 ? fd : 0;

    for (p->bytes = 0; !err && p->bytes < FILE_BYTES_MAX && has_time(p); p->bytes += (long long)l->bytes) {
        double began = now_us();
        ssize_t n = write(fd, p->buffer, l->bytes);

        if (n != (ssize_t)l->bytes)
            err = n < 0 ? -errno : -EIO;
        else
            count_call(p, began);
    }
    if (!err && fsync(fd) < 0)
        err = -errno;
    if (fd >= 0 && close(fd) < 0 && !err)
        err = -errno;
    return err;
}

/* Reads the large file once from the beginning to the end. */
static int
read_large(struct place *p, const struct load *l)
{
    int fd = open_large(p, O_RDONLY), err = fd < 0 ? fd : 0;

    if (!err)
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* on failure the reads hit a cache */
    p->began = now_us();
    for (long long at = 0; !err && at < p->bytes && has_time(p); at += (long long)l->bytes) {
        double began = now_us();
        ssize_t n = pread(fd, p->buffer, l->bytes, at);

        if (n != (ssize_t)l->bytes)
            err = n < 0 ? -errno : -EIO;
        else
            count_call(p, began);
    }
    if (fd >= 0)
        close(fd);
    return err;
}

static const struct load loads[] = {
    {"1 KiB files, created", 0, create_small}, {"1 KiB files, looked at", 0, stat_small},
    {"1 KiB files, read", 0, read_small},      {"1 KiB files, deleted", 0, delete_small},
    {"4 KiB writes", 4096, write_large},       {"4 KiB reads", 4096, read_large},
    {"128 KiB writes", 131072, write_large},   {"128 KiB reads", 131072, read_large},
};
enum { LOADS = sizeof loads / sizeof loads[0] };

/* ---- a place --------------------------------------------------------------------------------- */

static int
by_time(const void *a, const void *b)
{
    const float *x = a, *y = b;

    return (*x > *y) - (*x < *y);
}

static int
run_load(struct place *p, const struct load *l, struct result *out)
{
    p->calls = 0;
    p->began = now_us();
    int err = l->run(p, l);
    double seconds = (now_us() - p->began) / 1e6;

    if (err || is_stopped || p->calls == 0)
        return err;
    qsort(p->times, (size_t)p->calls, sizeof *p->times, by_time);
    out->a_second = (double)p->calls / seconds;
    out->mb_a_second = out->a_second * (double)l->bytes / 1e6;
    out->p50_us = (double)p->times[p->calls / 2];
    out->p99_us = (double)p->times[p->calls * 99 / 100];
    return 0;
}

static int
run_place(const char *dir, double seconds, struct result results[LOADS])
{
    struct place p = {
        .seconds = seconds, .buffer = calloc(1, 131072), .times = calloc(CALLS_MAX, sizeof(float))};
    int status = KILN_DONE;

    snprintf(p.dir, sizeof p.dir, "%s", dir);
    if (!p.buffer || !p.times)
        status = refuse(KILN_REFUSED, NULL, NULL, "no memory");
    for (size_t i = 0; i < LOADS && !status && !is_stopped; i++) {
        int err = run_load(&p, &loads[i], &results[i]);
        if (err)
            status = refuse(KILN_REFUSED, NULL, NULL, "%s in %s: %s", loads[i].name, dir, strerror(-err));
    }
    free(p.buffer);
    free(p.times);
    return status;
}

static int
remove_one(const char *path, const struct stat *st, int type, struct FTW *walk)
{
    (void)st;
    (void)type;
    (void)walk;
    return remove(path) < 0 ? -1 : 0;
}

/* Measures in a new folder below `parent`, and removes the folder afterwards. */
static int
run_below(const char *parent, double seconds, struct result results[LOADS])
{
    char dir[PATH_MAX];

    if (snprintf(dir, sizeof dir, "%s/.kiln-bench.XXXXXX", parent) >= (int)sizeof dir)
        return refuse(KILN_REFUSED, NULL, NULL, "the path %s is too long", parent);
    if (!mkdtemp(dir))
        return refuse(KILN_REFUSED, "a folder that can be written to", NULL, "%s: %s", parent,
                      strerror(errno));
    int status = run_place(dir, seconds, results);
    if (nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS) < 0 && !status)
        return refuse(KILN_REFUSED, NULL, "rm -r", "%s could not be removed: %s", dir, strerror(errno));
    return status;
}

/* ---- both ------------------------------------------------------------------------------------ */

struct bench {
    double seconds;
    double load; /* average of the last minute before the measurement; -1: not known */
    struct result volume[LOADS], bare[LOADS];
};

static int
on_mount(const char *dir, void *arg)
{
    struct bench *b = arg;

    return run_below(dir, b->seconds, b->volume);
}

/* Finds the folder next to the first brick. Returns 0 or an exit status. */
static int
find_bare(const char *name, char parent[PATH_MAX])
{
    json_t *answer;
    int status = ask("volume-info", json_pack("{ss}", "name", name), &answer);

    if (status)
        return status;
    const json_t *v = json_array_get(json_object_get(answer, "volumes"), 0);
    const json_t *brick = json_array_get(json_object_get(v, "bricks"), 0);
    const char *path = json_string_value(json_object_get(brick, "path"));
    if (path)
        snprintf(parent, PATH_MAX, "%.*s", (int)(strrchr(path, '/') - path), path);
    else
        status = refuse(KILN_REFUSED, NULL, NULL, "kilnd says of no brick of %s where it is", name);
    json_decref(answer);
    return status;
}

static json_t *
describe(const struct result *r)
{
    return json_pack("{sf sf sf sf}", "a_second", r->a_second, "mb_a_second", r->mb_a_second, "p50_us",
                     r->p50_us, "p99_us", r->p99_us);
}

static int
show_as_json(const char *name, const struct bench *b, const char *parent)
{
    json_t *list = json_array();

    for (size_t i = 0; i < LOADS; i++)
        json_array_append_new(list, json_pack("{ss so so}", "load", loads[i].name, "volume",
                                              describe(&b->volume[i]), "bare", describe(&b->bare[i])));
    json_t *all = json_pack("{ss ss sf sf so}", "name", name, "bare_folder", parent, "seconds", b->seconds,
                            "load_average", b->load, "loads", list);
    int status = all ? show_json(all) : KILN_REFUSED;
    json_decref(all);
    return status;
}

static void
show_side(const struct load *l, const struct result *r)
{
    char speed[24] = "-";

    if (l->bytes)
        snprintf(speed, sizeof speed, "%.0f", r->mb_a_second);
    printf(" | %8.0f %6s %7.0f %7.0f", r->a_second, speed, r->p50_us, r->p99_us);
}

static int
show_table(const char *name, const struct bench *b, const char *parent)
{
    printf("%-24s | %-31.31s | %-31.31s |\n", "", name, parent);
    printf("%-24s", "one call at a time");
    for (int side = 0; side < 2; side++)
        printf(" | %8s %6s %7s %7s", "calls/s", "MB/s", "p50 us", "p99 us");
    printf(" | of bare\n");
    for (size_t i = 0; i < LOADS; i++) {
        double bare = b->bare[i].a_second;

        printf("%-24s", loads[i].name);
        show_side(&loads[i], &b->volume[i]);
        show_side(&loads[i], &b->bare[i]);
        printf(" | %5.1f %%\n", bare > 0 ? 100 * b->volume[i].a_second / bare : 0);
    }
    if (b->load >= 0)
        printf("Load average of this machine before the measurement: %.1f on %ld processors%s\n", b->load,
               sysconf(_SC_NPROCESSORS_ONLN),
               b->load > (double)sysconf(_SC_NPROCESSORS_ONLN) ? ": other work slows both down" : "");
    return KILN_DONE;
}

/* NAME [SECONDS] */
int
bench(const struct verb *v, int argc, char **argv)
{
    struct bench b = {.seconds = SECONDS_DEFAULT};
    char parent[PATH_MAX] = "", *end = NULL;

    if (argc > 1)
        b.seconds = strtod(argv[1], &end);
    if (end && (*end || !(b.seconds >= 0.1) || b.seconds > SECONDS_MAX))
        return usage(v, "'%s': expected 0.1 to %d seconds for each load", argv[1], SECONDS_MAX);
    if (getloadavg(&b.load, 1) != 1)
        b.load = -1; /* not known */
    int status = find_bare(argv[0], parent);
    signal(SIGINT, stop); /* the command still unmounts the volume and removes the files */
    signal(SIGTERM, stop);
    if (!status)
        status = on_own_mount(argv[0], on_mount, &b);
    if (!status && !is_stopped)
        status = run_below(*parent ? parent : "/", b.seconds, b.bare);
    if (is_stopped)
        return refuse(KILN_REFUSED, NULL, NULL, "it was ended by a signal");
    if (status)
        return status;
    return kiln_options.is_json ? show_as_json(argv[0], &b, parent) : show_table(argv[0], &b, parent);
}
