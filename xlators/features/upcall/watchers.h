/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* watchers: which clients have looked at one object, and when: those that may keep what they saw.
 *
 * Clients are numbers (struct brick_client's id, never used again), so nothing here keeps one alive, and one
 * that has gone is found by nobody when a message is to be sent. The list is in the order of numbers. Who has
 * not looked for `timeout` is not told any more and leaves the list when somebody collects, or when its place
 * is needed: nobody walks over all objects.
 *
 * Bound: WATCHERS_MAX clients an object. The one beyond takes the place of the one that has not looked for
 * longest, which has to be told to forget, or it would keep what nobody tells it about. The same when there
 * is no memory for a longer list.
 *
 * thread: under the lock of whoever holds the list
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
    struct watcher *list; /* `own`, or from malloc */
    struct watcher own[WATCHERS_OWN];
};

void watchers_init(struct watchers *w);
void watchers_fini(struct watchers *w);

/* `client` looks now. The number of the client that had to go; 0: none. */
uint64_t watchers_note(struct watchers *w, uint64_t client, uint32_t now_s, uint32_t timeout_s);

/* Whom a change concerns: the numbers of those who looked within the timeout, in order, without `changer`.
 * How many. */
unsigned watchers_collect(struct watchers *w, uint64_t changer, uint32_t now_s, uint32_t timeout_s,
                          uint64_t out[WATCHERS_MAX]);

#endif
