/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mem/iobuf.h"

#include <stdint.h>
#include <stdlib.h>

#include "base/spare.h"
#include "mem/mem-ids.h"

/* The struct and its bytes are a single object, so a buffer takes a single get and put. The size is a power
 * of two of payload plus some room for message heads, so that a 128 KiB write with its header fits the class
 * of 128 KiB. */
#define IOBUF_HEAD 64
#define IOBUF_SLACK 4096

static const size_t class_bytes[] = {4096, 16384, 65536, 131072 + IOBUF_SLACK, 1048576 + IOBUF_SLACK};
static const char *const class_names[] = {"iobuf_4k", "iobuf_16k", "iobuf_64k", "iobuf_128k", "iobuf_1m"};
#define CLASSES (sizeof class_bytes / sizeof class_bytes[0])

_Static_assert(MEM_ID_IOBUF_1M - MEM_ID_IOBUF_4K + 1 == CLASSES, "an id for each class, in order");

static struct mem_pool *class_pools[CLASSES];

_Static_assert(sizeof(struct iobuf) <= IOBUF_HEAD, "the struct lies before the bytes");

/* Values of flags; pooled buffers have their class there. */
#define IOBUF_MALLOC CLASSES
#define IOBUF_SPARE (CLASSES + 1)

#define SPARES 32
static struct iobuf spares[SPARES];
static _Alignas(64) char spare_bytes[SPARES][IOBUF_SPARE_BYTES];
static spare_set spares_used;

int
iobuf_pools_init(void)
{
    int err = 0;

    for (unsigned i = 0; i < CLASSES && !err; i++)
        err = mem_pool_make(&class_pools[i], MEM_ID_IOBUF_4K + i, IOBUF_HEAD * 2 + class_bytes[i],
                            class_names[i]);
    return err;
}

/* Returns the next 64-byte line behind the struct, wherever the pool put it. */
static char *
aligned_bytes(struct iobuf *b)
{
    return (char *)(((uintptr_t)b + sizeof *b + 63) & ~(uintptr_t)63);
}

struct iobuf *
iobuf_get(size_t size)
{
    struct iobuf *b;
    unsigned class = 0;

    while (class < CLASSES && size > class_bytes[class])
        class++;
    if (class < CLASSES) {
        b = mem_get_t(MEM_ID_IOBUF_4K + class);
        size = class_bytes[class];
    } else {
        b = size > SIZE_MAX - 2 * IOBUF_HEAD ? NULL : malloc(2 * IOBUF_HEAD + size);
    }
    if (!b)
        return NULL;
    b->flags = class;
    b->size = size;
    refcount_init(&b->refs, 1);
    b->bytes = aligned_bytes(b);
    return b;
}

struct iobuf *
iobuf_get_aligned(size_t size)
{
    if (size > SIZE_MAX - 8192)
        return NULL;
    struct iobuf *b = iobuf_get(size + 4095);

    if (!b)
        return NULL;
    char *aligned = (char *)(((uintptr_t)b->bytes + 4095) & ~(uintptr_t)4095);
    b->size -= (size_t)(aligned - b->bytes);
    b->bytes = aligned;
    return b;
}

struct iobuf *
iobuf_get_spare(void)
{
    int i = spare_take(&spares_used, SPARES);

    if (i < 0)
        return NULL;
    struct iobuf *b = &spares[i];

    b->flags = IOBUF_SPARE;
    b->size = IOBUF_SPARE_BYTES;
    b->bytes = spare_bytes[i];
    refcount_init(&b->refs, 1);
    return b;
}

bool
iobuf_is_spare(const struct iobuf *b)
{
    return b->flags == IOBUF_SPARE;
}

void
iobuf_free(struct iobuf *b)
{
    if (b->flags == IOBUF_MALLOC)
        free(b);
    else if (b->flags == IOBUF_SPARE)
        spare_give(&spares_used, (unsigned)(b - spares));
    else
        mem_put_t(MEM_ID_IOBUF_4K + b->flags, b);
}
