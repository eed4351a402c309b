/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* watchers: the clients that have looked at one object and may cache it, each with the time of the last look.
 *
 * Clients are stored as numbers (the id of struct brick_client, which is never used again), so the list keeps
 * no client alive, and the number of a client that has gone is ignored when a message is to be sent. The list
 * is sorted by number. A client that has not looked for `timeout` gets no more messages. It leaves the list
 * when the next change collects the list, or when its place is needed. No timer walks over all objects.
 *
 * Bound: WATCHERS_MAX clients per object. A client beyond the bound replaces the client that has not looked
 * for the longest time. The caller must tell the replaced client to forget the object, because that client
 * will get no further messages about it. The same happens when there is no memory for a longer list.
 *
 * thread: under the lock of the list's owner
 */
#ifndef KILN_UPCALL_WATCHERS_H
#define KILN_UPCALL_WATCHERS_H

#include <stdint.h>

#define WATCHERS_OWN 3
#define WATCHERS_MAX 1024

struct watcher {
    uint64_t client;
    uint32_t at_s; /* seconds of CLOCK_MONOTONIC */
};

struct watchers {
    uint32_t count, room;
    struct watcher *list; /* `own`, or malloc'ed */
    struct watcher own[WATCHERS_OWN];
};

void watchers_init(struct watchers *w);
void watchers_fini(struct watchers *w);

/* Notes that `client` looks now. Returns the number of the client that was replaced; 0: none. */
uint64_t watchers_note(struct watchers *w, uint64_t client, uint32_t now_s, uint32_t timeout_s);

/* Collects the clients to be told of a change: the numbers, in order, of those that looked within the
 * timeout, without `changer`. Returns their count. */
unsigned watchers_collect(struct watchers *w, uint64_t changer, uint32_t now_s, uint32_t timeout_s,
                          uint64_t out[WATCHERS_MAX]);

#endif
