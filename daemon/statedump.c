/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* SIGUSR1: the state of the whole process, in a file that gets its final name only when the file is complete
 * (management 1.8). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "coro/stack-pool.h"
#include "daemon/daemon.h"
#include "daemon/statedump-options.h"
#include "event/worker.h"
#include "graph/graph.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-malloc.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport.h"

/* The folder in which glusterd puts the options of a dump. The folder of the dumps may be another. */
#define OPTIONS_DIR "/var/run/gluster"

static void
dump_time(struct dump *d, const char *key)
{
    struct timespec now;
    struct tm tm;
    char text[32];

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    fprintf(d->file, "%s: %s.%06ld +0000\n", key, text, now.tv_nsec / 1000);
}

struct pool_dump {
    struct dump *d;
    const char *section;
    unsigned number;
    bool wants_section;
    bool is_left_out; /* the pool of the coming lines */
};

static void
pool_line(void *arg, const char *key, const char *value)
{
    struct pool_dump *p = arg;

    if (key[0] == '-') {
        p->wants_section = true;
        return;
    }
    if (p->wants_section) { /* the first line: the name */
        enum dump_part part = strncmp(value, "iobuf", 5) == 0 ? DUMP_IOBUF : DUMP_MEM;

        p->is_left_out = p->d->leaves_out & part;
        if (!p->is_left_out)
            dump_section(p->d, "%s.%u", p->section, p->number++);
    }
    p->wants_section = false;
    if (!p->is_left_out)
        dump_line(p->d, key, "%s", value);
}

static void
dump_calls(struct dump *d)
{
    struct worker_stats w;
    struct transport_stats t;

    worker_stats(&w);
    dump_section(d, "workers");
    dump_line(d, "threads", "%u", w.threads);
    dump_line(d, "waiting", "%u", w.waiting);
    dump_line(d, "blocked", "%u", w.blocked);
    dump_line(d, "events", "%llu", (unsigned long long)w.events);
    dump_line(d, "posted", "%llu", (unsigned long long)w.posted);
    dump_line(d, "grown", "%llu", (unsigned long long)w.grown);
    dump_line(d, "shrunk", "%llu", (unsigned long long)w.shrunk);
    transport_stats(&t);
    dump_section(d, "transport");
    dump_line(d, "connections", "%llu", (unsigned long long)(t.accepted - t.closed));
    dump_line(d, "records", "%llu", (unsigned long long)t.records);
    dump_line(d, "messages", "%llu", (unsigned long long)t.messages);
    dump_line(d, "bytes-in", "%llu", (unsigned long long)t.bytes_in);
    dump_line(d, "bytes-out", "%llu", (unsigned long long)t.bytes_out);
    dump_line(d, "reads", "%llu", (unsigned long long)t.reads);
    dump_line(d, "writes", "%llu", (unsigned long long)t.writes);
}

/* The allocator beneath the pools. A figure that jemalloc was built without is left out. */
static void
dump_allocator(struct dump *d)
{
    static const char *const figures[] = {"allocated", "active", "metadata",
                                          "resident",  "mapped", "retained"};

    if (!mem_malloc_look())
        return;
    dump_section(d, "jemalloc");
    for (size_t i = 0; i < sizeof figures / sizeof figures[0]; i++) {
        size_t bytes;

        if (mem_malloc_figure(figures[i], &bytes))
            dump_line(d, figures[i], "%zu", bytes);
    }
}

static void
dump_pools(struct dump *d)
{
    struct pool_dump pools = {.d = d, .section = "mempool"};

    dump_section(d, "mempool");
    mem_pools_dump(pool_line, &pools);
    pools = (struct pool_dump){.d = d, .section = "stackpool"};
    stack_pools_dump(pool_line, &pools);
    if (!(d->leaves_out & DUMP_MEM))
        dump_allocator(d);
}

static void
dump_graph(struct graph *g, void *arg)
{
    graph_dump(g, arg);
}

/* "/bricks/b1" -> "bricks-b1" */
static void
dashed(const char *name, char *out, size_t size)
{
    size_t n = 0;

    for (const char *p = name[0] == '/' ? name + 1 : name; *p && n + 1 < size; p++)
        out[n++] = *p == '/' ? '-' : *p;
    out[n] = '\0';
}

int
statedump_write(const char *dir, const char *name,
                bool (*each)(void *of, void (*fn)(struct graph *g, void *arg), void *arg), void *of,
                char path[STATEDUMP_PATH_SIZE])
{
    char temporary[STATEDUMP_PATH_SIZE], final[STATEDUMP_PATH_SIZE], dash[1024];
    struct dump d = {0};
    struct statedump_options wanted;
    int no_options = statedump_options_read(OPTIONS_DIR, (long)getpid(), &wanted);

    if (no_options)
        log_event(LOG_ERROR, NULL, "statedump-options", "the options of the statedump cannot be read: %s",
                  strerror(-no_options));
    d.leaves_out = wanted.leaves_out;
    if (*wanted.dir)
        dir = wanted.dir;
    dashed(name, dash, sizeof dash);
    if (snprintf(temporary, sizeof temporary, "%s/dumpXXXXXX", dir) >= (int)sizeof temporary ||
        snprintf(final, sizeof final, "%s/%s.%ld.dump.%lld", dir, dash, (long)getpid(),
                 (long long)time(NULL)) >= (int)sizeof final)
        return -ENAMETOOLONG;
    if (mkdir(dir, 0755) < 0 && errno != EEXIST) {
        log_event(LOG_ERROR, NULL, "statedump-dir", "no statedump: the folder %s cannot be made: %s", dir,
                  strerror(errno));
        return -errno;
    }
    int fd = mkstemp(temporary);
    d.file = fd < 0 ? NULL : fdopen(fd, "w");
    if (!d.file) {
        int err = -errno;

        log_event(LOG_ERROR, NULL, "statedump-open", "no statedump: %s cannot be made: %s", temporary,
                  strerror(-err));
        if (fd >= 0) {
            close(fd);
            unlink(temporary);
        }
        return err;
    }
    dump_time(&d, "DUMP-START-TIME");
    if (!(d.leaves_out & DUMP_CALLS))
        dump_calls(&d);
    if (~d.leaves_out & (DUMP_MEM | DUMP_IOBUF))
        dump_pools(&d);
    if (!each(of, dump_graph, &d))
        log_event(LOG_ERROR, NULL, "statedump-graphs", "no memory to list what is served");
    fputc('\n', d.file);
    dump_time(&d, "DUMP-END-TIME");
    bool is_written = !ferror(d.file);
    if (fclose(d.file) != 0 || !is_written || rename(temporary, final) < 0) {
        int err = errno ? -errno : -EIO;

        log_event(LOG_ERROR, NULL, "statedump-write", "no statedump: %s cannot be written: %s", final,
                  strerror(-err));
        unlink(temporary);
        return err;
    }
    log_event(LOG_INFO, NULL, "statedump", "written to %s", final);
    if (path)
        strcpy(path, final);
    return 0;
}
