/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* top-sample: the counts of all bricks at a moment, packed, to be subtracted from later counts. Of a
 * histogram only buckets that are not empty are kept: 80 busy bricks are some 300 KB.
 *
 *     bricks   [/b1 ...][/b2 ...]         each with a run of fops and one of clients
 *     fops     [writev ...][stat ...]     each with a run of buckets
 *     buckets  [12: 3][13: 9]
 *
 * The sample holds nothing of a brick: a brick may go while its sample stays.
 *
 * thread: one at a time */
#ifndef KILN_BRICKS_TOP_SAMPLE_H
#define KILN_BRICKS_TOP_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/procfs.h"
#include "stack/fop.h"

struct histogram;

struct sample_bucket {
    uint32_t bucket;
    uint32_t count; /* modulo 2^32: fewer calls come between two samples */
};

struct sample_fop {
    enum fop fop;
    uint32_t buckets;
    size_t bucket_at;
    uint64_t calls, sum;
};

struct sample_client {
    uint64_t id, received, sent;
};

struct sample_brick {
    size_t name_at; /* in `text` */
    size_t fop_at, client_at;
    uint32_t fops, clients;
    uint64_t bytes_read, bytes_written, cpu_ns;
};

/* Zeros: empty. The last brick takes the fops and clients that are added. */
struct top_sample {
    uint64_t time_ns;
    double cpu_seconds;
    struct procfs_cpu machine_cpu;
    struct sample_brick *bricks;
    struct sample_fop *fops;
    struct sample_bucket *buckets;
    struct sample_client *clients;
    char *text;
    size_t brick_count, fop_count, bucket_count, client_count, text_bytes;
    size_t brick_room, fop_room, bucket_room, client_room, text_room;
    bool is_short; /* there was no memory */
};

/* The new brick. NULL: no memory, for this brick and all later additions. */
struct sample_brick *top_sample_add_brick(struct top_sample *s, const char *name);
void top_sample_add_fop(struct top_sample *s, enum fop fop, uint64_t calls, const struct histogram *h);
void top_sample_add_client(struct top_sample *s, const struct sample_client *client);

/* All three functions: NULL when the sample has no such item; `hint` is the likely place, which is tried
 * first. `s` NULL allowed. */
const struct sample_brick *top_sample_brick(const struct top_sample *s, const char *name, size_t hint);
const struct sample_fop *top_sample_fop(const struct top_sample *s, const struct sample_brick *b,
                                        enum fop fop);
const struct sample_client *top_sample_client(const struct top_sample *s, const struct sample_brick *b,
                                              uint64_t id, size_t hint);
/* Leaves the counts since the sample in `h`, unless `h` has less than the sample: then the brick began anew.
 * `f` NULL allowed. */
void top_sample_subtract(const struct top_sample *s, const struct sample_fop *f, struct histogram *h);

void top_sample_free(struct top_sample *s);

#endif
