/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Measures the speed of the brick's disk, for `volume top VOL write-perf|read-perf bs BYTES count N`
 * (management 4.8): writes a file of N blocks, or writes, syncs and reads it, and takes the time.
 *
 * The file has no name, so no client can access it and it does not outlive the test. A test ends early, with
 * the rate so far, after MEASURE_SECONDS or when the brick is being detached.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "log/log.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

#define BYTES_MAX (INT64_C(10) << 30)
#define CHUNK_MAX (INT64_C(1) << 20)
#define MEASURE_SECONDS 10

struct measure {
    struct graph *graph;
    int fd;
    bool reads;
    int64_t block, total;
    char *chunk; /* zeros, or the buffer of reads; min(block, CHUNK_MAX) bytes */
    int64_t done;
    double us;
};

static double
clock_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* Transfers whole blocks, each in calls of at most CHUNK_MAX. Returns 0 or -errno. */
static int
transfer(struct measure *m, bool reads)
{
    double begin = clock_us(), end = begin + MEASURE_SECONDS * 1e6;

    for (m->done = 0; m->done < m->total && clock_us() < end && !atomic_load(&m->graph->is_draining);) {
        int64_t left = m->block - m->done % m->block;
        size_t size = (size_t)(left < CHUNK_MAX ? left : CHUNK_MAX);
        ssize_t n = reads ? read(m->fd, m->chunk, size) : write(m->fd, m->chunk, size);

        if (n < 0)
            return -errno;
        if (n == 0)
            break; /* the write test stopped here when its time was over */
        m->done += n;
    }
    m->us = clock_us() - begin;
    return 0;
}

static int
measure(struct measure *m)
{
    int err = transfer(m, false);

    if (err || !m->reads)
        return err;
    m->total = m->done;
    if (fsync(m->fd) < 0 || lseek(m->fd, 0, SEEK_SET) < 0)
        return -errno;
    return transfer(m, true);
}

/* The brick's name is its folder. Returns 0 or -errno. */
static int
measure_in_brick(struct measure *m)
{
    int64_t size = m->block < CHUNK_MAX ? m->block : CHUNK_MAX;

    m->fd = open(m->graph->name, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (m->fd < 0)
        return -errno;
    m->chunk = calloc(1, (size_t)size);
    int err = m->chunk ? measure(m) : -ENOMEM;
    free(m->chunk);
    close(m->fd);
    return err;
}

static bool
measure_of(const struct xlator *xl, const struct dict *input, struct measure *m)
{
    int64_t op = ios_input(input, "top-op", 0);
    int64_t block = ios_input(input, "blk-size", 0), count = ios_input(input, "blk-cnt", 0);

    *m = (struct measure){.graph = xl->graph, .reads = op == TOP_READ_PERF, .block = block};
    if (ios_input(input, "op", 0) != IOS_OP_TOP || (op != TOP_READ_PERF && op != TOP_WRITE_PERF))
        return false;
    if (block <= 0 || count <= 0 || block > BYTES_MAX || count > BYTES_MAX / block)
        return false;
    m->total = block * count;
    return true;
}

bool
io_stats_wants_throughput(struct xlator *xl, const struct dict *input)
{
    struct measure m;

    return measure_of(xl, input, &m);
}

static int
put_decimal(struct dict *out, const char *key, double value)
{
    char text[64];
    int len = snprintf(text, sizeof text, "%f", value);

    return dict_set_text(out, key, DICT_STR, text, (uint32_t)len + 1);
}

int
io_stats_throughput(struct xlator *xl, const struct dict *input, struct dict *output)
{
    struct measure m;

    if (!measure_of(xl, input, &m))
        return 0;
    int err = measure_in_brick(&m);
    if (err) {
        log_event(LOG_WARNING, xl, "top-throughput", "the throughput is not measured: %s", strerror(-err));
        return 0; /* the other parts of the request are answered nevertheless, as by stock */
    }
    err = put_decimal(output, "throughput", m.us > 0 ? (double)m.done / m.us : 0);
    return err ? err : put_decimal(output, "time", m.us);
}
