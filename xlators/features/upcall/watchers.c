/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/features/upcall/watchers.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void
watchers_init(struct watchers *w)
{
    w->count = 0;
    w->room = WATCHERS_OWN;
    w->list = w->own;
}

void
watchers_fini(struct watchers *w)
{
    if (w->list != w->own)
        free(w->list);
}

/* Waits a second more than the timeout, because both times are rounded down and no client may be dropped too
 * early. */
static bool
watcher_is_expired(const struct watcher *one, uint32_t now_s, uint32_t timeout_s)
{
    return now_s - one->at_s > (uint64_t)timeout_s + 1;
}

/* The index of `client`, or the index where it must be inserted. */
static uint32_t
watcher_place(const struct watchers *w, uint64_t client)
{
    uint32_t low = 0, high = w->count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (w->list[middle].client < client)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static void
drop_expired(struct watchers *w, uint32_t now_s, uint32_t timeout_s)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < w->count; i++) {
        if (!watcher_is_expired(&w->list[i], now_s, timeout_s))
            w->list[kept++] = w->list[i];
    }
    w->count = kept;
    if (kept <= WATCHERS_OWN && w->list != w->own) {
        memcpy(w->own, w->list, kept * sizeof w->own[0]);
        free(w->list);
        w->list = w->own;
        w->room = WATCHERS_OWN;
    }
}

static bool
watchers_grow(struct watchers *w)
{
    uint32_t room = w->room * 2 < WATCHERS_MAX ? w->room * 2 : WATCHERS_MAX;
    struct watcher *longer = w->room < room ? malloc(room * sizeof *longer) : NULL;

    if (!longer)
        return false;
    memcpy(longer, w->list, w->count * sizeof *longer);
    watchers_fini(w);
    w->list = longer;
    w->room = room;
    return true;
}

static void
remove_at(struct watchers *w, uint32_t i)
{
    memmove(&w->list[i], &w->list[i + 1], (--w->count - i) * sizeof w->list[0]);
}

static uint64_t
remove_oldest(struct watchers *w, uint32_t now_s)
{
    uint32_t oldest = 0;

    for (uint32_t i = 1; i < w->count; i++) {
        if (now_s - w->list[i].at_s > now_s - w->list[oldest].at_s)
            oldest = i;
    }
    uint64_t client = w->list[oldest].client;
    remove_at(w, oldest);
    return client;
}

uint64_t
watchers_note(struct watchers *w, uint64_t client, uint32_t now_s, uint32_t timeout_s)
{
    uint32_t i = watcher_place(w, client);
    uint64_t gone = 0;

    if (i < w->count && w->list[i].client == client) {
        w->list[i].at_s = now_s;
        return 0;
    }
    if (w->count == w->room) {
        drop_expired(w, now_s, timeout_s);
        if (w->count == w->room && !watchers_grow(w))
            gone = remove_oldest(w, now_s);
        i = watcher_place(w, client);
    }
    memmove(&w->list[i + 1], &w->list[i], (w->count++ - i) * sizeof w->list[0]);
    w->list[i] = (struct watcher){.client = client, .at_s = now_s};
    return gone;
}

unsigned
watchers_collect(struct watchers *w, uint64_t changer, uint32_t now_s, uint32_t timeout_s,
                 uint64_t out[WATCHERS_MAX])
{
    unsigned n = 0;

    drop_expired(w, now_s, timeout_s);
    for (uint32_t i = 0; i < w->count; i++) {
        if (w->list[i].client != changer)
            out[n++] = w->list[i].client;
    }
    return n;
}
