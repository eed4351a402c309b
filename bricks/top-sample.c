/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/top-sample.h"

#include <stdlib.h>
#include <string.h>

#include "base/histogram.h"

/* Room for `more` items behind `count`; NULL: no memory, and s->is_short. */
static void *
room_for(struct top_sample *s, void *array, size_t *room, size_t count, size_t more, size_t item)
{
    size_t wanted = *room ? *room : 64;

    if (s->is_short)
        return NULL;
    while (wanted < count + more)
        wanted *= 2;
    void *grown = wanted > *room ? reallocarray(array, wanted, item) : array;
    s->is_short = !grown;
    if (grown)
        *room = wanted;
    return grown;
}

/* True: array[count] to array[count + more - 1] can be written. */
#define MAKE_ROOM(s, array, room, count, more)                                                               \
    ({                                                                                                       \
        void *grown_ = room_for((s), (array), &(room), (count), (more), sizeof *(array));                    \
        (array) = grown_ ? grown_ : (array);                                                                 \
        grown_ != NULL;                                                                                      \
    })

/* ---- adding ---------------------------------------------------------------------------------- */

struct sample_brick *
top_sample_add_brick(struct top_sample *s, const char *name)
{
    size_t bytes = strlen(name) + 1;

    if (!MAKE_ROOM(s, s->bricks, s->brick_room, s->brick_count, 1) ||
        !MAKE_ROOM(s, s->text, s->text_room, s->text_bytes, bytes))
        return NULL;
    memcpy(s->text + s->text_bytes, name, bytes);
    struct sample_brick *b = &s->bricks[s->brick_count++];
    *b = (struct sample_brick){
        .name_at = s->text_bytes, .fop_at = s->fop_count, .client_at = s->client_count};
    s->text_bytes += bytes;
    return b;
}

void
top_sample_add_fop(struct top_sample *s, enum fop fop, uint64_t calls, const struct histogram *h)
{
    if (!MAKE_ROOM(s, s->fops, s->fop_room, s->fop_count, 1))
        return;
    struct sample_fop *f = &s->fops[s->fop_count++];
    *f = (struct sample_fop){.fop = fop, .calls = calls, .sum = h->sum, .bucket_at = s->bucket_count};
    s->bricks[s->brick_count - 1].fops++;
    for (uint32_t left = h->octaves; left; left &= left - 1) {
        unsigned at = (unsigned)__builtin_ctz(left) * HISTOGRAM_SUB;

        if (!MAKE_ROOM(s, s->buckets, s->bucket_room, s->bucket_count, HISTOGRAM_SUB))
            return;
        for (unsigned i = at; i < at + HISTOGRAM_SUB; i++) {
            s->buckets[s->bucket_count] = (struct sample_bucket){i, (uint32_t)h->buckets[i]};
            s->bucket_count += h->buckets[i] != 0;
        }
    }
    f->buckets = (uint32_t)(s->bucket_count - f->bucket_at);
}

void
top_sample_add_client(struct top_sample *s, const struct sample_client *client)
{
    if (!MAKE_ROOM(s, s->clients, s->client_room, s->client_count, 1))
        return;
    s->clients[s->client_count++] = *client;
    s->bricks[s->brick_count - 1].clients++;
}

/* ---- finding --------------------------------------------------------------------------------- */

static bool
is_named(const struct top_sample *s, size_t brick, const char *name)
{
    return strcmp(s->text + s->bricks[brick].name_at, name) == 0;
}

const struct sample_brick *
top_sample_brick(const struct top_sample *s, const char *name, size_t hint)
{
    if (!s)
        return NULL;
    if (hint < s->brick_count && is_named(s, hint, name))
        return &s->bricks[hint];
    for (size_t i = 0; i < s->brick_count; i++) {
        if (is_named(s, i, name))
            return &s->bricks[i];
    }
    return NULL;
}

const struct sample_fop *
top_sample_fop(const struct top_sample *s, const struct sample_brick *b, enum fop fop)
{
    for (size_t i = 0; b && i < b->fops; i++) {
        if (s->fops[b->fop_at + i].fop == fop)
            return &s->fops[b->fop_at + i];
    }
    return NULL;
}

const struct sample_client *
top_sample_client(const struct top_sample *s, const struct sample_brick *b, uint64_t id, size_t hint)
{
    if (!b)
        return NULL;
    const struct sample_client *clients = s->clients + b->client_at;
    if (hint < b->clients && clients[hint].id == id)
        return &clients[hint];
    for (size_t i = 0; i < b->clients; i++) {
        if (clients[i].id == id)
            return &clients[i];
    }
    return NULL;
}

void
top_sample_subtract(const struct top_sample *s, const struct sample_fop *f, struct histogram *h)
{
    const struct sample_bucket *b = f ? s->buckets + f->bucket_at : NULL;

    for (size_t i = 0; f && i < f->buckets; i++) {
        if (h->buckets[b[i].bucket] < b[i].count)
            return;
    }
    for (size_t i = 0; f && i < f->buckets; i++) {
        uint64_t *now = &h->buckets[b[i].bucket];

        h->count -= *now - (uint32_t)(*now - b[i].count);
        *now = (uint32_t)(*now - b[i].count);
    }
    h->sum -= f ? f->sum : 0;
}

void
top_sample_free(struct top_sample *s)
{
    free(s->bricks);
    free(s->fops);
    free(s->buckets);
    free(s->clients);
    free(s->text);
    *s = (struct top_sample){0};
}
