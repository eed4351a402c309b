/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The epoll set, and the protocol that decides whether a source's handler may still be called.
 *
 * With plain edge-triggered events the kernel never reports that no worker is about to handle an event of
 * a descriptor: a worker may have returned from epoll_wait with such an event just before the source was
 * removed and its owner freed. So the event carries no pointer but the descriptor's number and a
 * generation, which lead to a slot that is never freed. A worker pins the slot while it runs the handler;
 * event_remove() closes the slot to new pins, and the thread that drops the last pin reports the source as
 * gone.
 *
 *     slot.state   generation (32) | CLOSED (1) | pins (31)
 *
 * The descriptor stays open until then, so its number has one owner at a time. */
#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "event/event-internal.h"

#define SLOT_CLOSED 0x80000000u
#define CHUNK_SLOTS 256
#define CHUNKS 4096 /* 1M descriptors, the kernel's usual fs.nr_open */

struct slot {
    _Atomic uint64_t state;
    /* Valid while pinned, or not closed. Atomic only because the order between the last read for a former
     * owner and the next owner of the number comes from the kernel: gone() closes the descriptor. */
    _Atomic(struct event_source *) src;
};

static _Atomic(struct slot *) chunks[CHUNKS]; /* by descriptor; made on demand, freed when the loop stops */
static int epoll_fd = -1;
static pthread_mutex_t gone_lock = PTHREAD_MUTEX_INITIALIZER; /* for event_remove() without a `gone` */
static pthread_cond_t gone_wake = PTHREAD_COND_INITIALIZER;

int
sources_open(void)
{
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return epoll_fd < 0 ? -errno : 0;
}

void
sources_close(void)
{
    close(epoll_fd);
    epoll_fd = -1;
    for (size_t i = 0; i < CHUNKS; i++)
        free(atomic_exchange(&chunks[i], NULL));
}

int
sources_epoll_fd(void)
{
    return epoll_fd;
}

int
sources_add_tag(int fd, uint32_t events, uint32_t tag)
{
    struct epoll_event e = {.events = events, .data.u64 = EVENT_TAG(tag)};

    return epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &e) ? -errno : 0;
}

static struct slot *
source_slot(int fd)
{
    struct slot *chunk = atomic_load_explicit(&chunks[fd / CHUNK_SLOTS], memory_order_acquire);

    return chunk ? &chunk[fd % CHUNK_SLOTS] : NULL;
}

static struct slot *
slot_make(int fd)
{
    if (fd >= CHUNKS * CHUNK_SLOTS)
        return NULL;
    if (!source_slot(fd)) {
        struct slot *fresh = calloc(CHUNK_SLOTS, sizeof *fresh), *none = NULL;

        if (!fresh)
            return NULL;
        for (size_t i = 0; i < CHUNK_SLOTS; i++)
            atomic_init(&fresh[i].state, SLOT_CLOSED);
        if (!atomic_compare_exchange_strong(&chunks[fd / CHUNK_SLOTS], &none, fresh))
            free(fresh);
    }
    return source_slot(fd);
}

static struct epoll_event
event_for(const struct event_source *src, uint32_t events)
{
    return (struct epoll_event){.events = events | EPOLLET,
                                .data.u64 = (uint64_t)src->generation << 32 | (uint32_t)src->fd};
}

int
event_add(struct event_source *src, uint32_t events)
{
    struct slot *slot = slot_make(src->fd);

    if (!slot)
        return -ENOMEM;
    uint64_t before = atomic_load(&slot->state);

    assert((uint32_t)before == SLOT_CLOSED);
    src->generation = (uint32_t)(before >> 32) + 1;
    if (src->generation == UINT32_MAX) /* reserved for tags */
        src->generation = 0;
    atomic_store_explicit(&slot->src, src, memory_order_relaxed);
    atomic_store_explicit(&slot->state, (uint64_t)src->generation << 32, memory_order_release);

    struct epoll_event e = event_for(src, events);

    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, src->fd, &e) == 0)
        return 0;
    int err = errno;

    atomic_store(&slot->state, (uint64_t)src->generation << 32 | SLOT_CLOSED);
    return -err;
}

int
event_modify(struct event_source *src, uint32_t events)
{
    struct epoll_event e = event_for(src, events);

    return epoll_ctl(epoll_fd, EPOLL_CTL_MOD, src->fd, &e) ? -errno : 0;
}

static bool
slot_pin(struct slot *slot, uint32_t generation)
{
    uint64_t s = atomic_load_explicit(&slot->state, memory_order_relaxed);

    do {
        if (s >> 32 != generation || (s & SLOT_CLOSED))
            return false;
    } while (!atomic_compare_exchange_weak_explicit(&slot->state, &s, s + 1, memory_order_acquire,
                                                    memory_order_relaxed));
    return true;
}

/* Called by the one thread that saw the slot closed and without pins. */
static void
slot_gone(struct slot *slot)
{
    struct event_source *src = atomic_load_explicit(&slot->src, memory_order_relaxed);

    if (src->gone) {
        src->gone(src);
        return;
    }
    pthread_mutex_lock(&gone_lock);
    slot->src = NULL; /* event_remove() waits for this */
    pthread_cond_broadcast(&gone_wake);
    pthread_mutex_unlock(&gone_lock);
}

static void
slot_unpin(struct slot *slot)
{
    uint64_t was = atomic_fetch_sub_explicit(&slot->state, 1, memory_order_acq_rel);

    if ((uint32_t)was == (SLOT_CLOSED | 1))
        slot_gone(slot);
}

void
event_remove(struct event_source *src)
{
    struct slot *slot = source_slot(src->fd);
    bool waits = !src->gone; /* src may be freed by its gone */

    epoll_ctl(epoll_fd, EPOLL_CTL_DEL, src->fd, NULL);
    uint64_t was = atomic_fetch_or_explicit(&slot->state, SLOT_CLOSED, memory_order_acq_rel);

    assert(!(was & SLOT_CLOSED));
    if ((uint32_t)was == 0)
        slot_gone(slot);
    if (waits) {
        pthread_mutex_lock(&gone_lock);
        while (slot->src)
            pthread_cond_wait(&gone_wake, &gone_lock);
        pthread_mutex_unlock(&gone_lock);
    }
}

void
source_run(const struct epoll_event *event)
{
    struct slot *slot = source_slot((int)(uint32_t)event->data.u64);

    if (!slot || !slot_pin(slot, (uint32_t)(event->data.u64 >> 32)))
        return;
    struct event_source *src = atomic_load_explicit(&slot->src, memory_order_relaxed);

    src->fn(src, event->events);
    slot_unpin(slot);
}
