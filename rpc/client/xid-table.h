/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xid-table: the calls that wait for a reply, by the xid that the reply will carry.
 *
 * A call has a slot. Its xid is the slot's index and the number of times the slot has been used, so a
 * reply finds its slot without a search, and the reply to a finished call finds nothing. Free slots are a
 * list without a lock.
 *
 *             xid_take        xid_publish           xid_claim (reply, error, connection lost)
 *      free ----------> taken -----------> WAITING ------------------------------> taken --xid_put--> free
 *                                             | xid_expire
 *                                             +---------> EXPIRED --late reply, or connection lost--> free
 *
 * Each waiting call is claimed exactly once: by the reply, its expiry, the loss of the connection or the
 * thread that failed to send it. An expired call keeps its slot, and with it the xid, until the late reply
 * has come or can no longer come: an xid that the peer may still answer is never given to another call.
 *
 * Memory grows with the number of concurrent calls, up to the maximum, by blocks that double the table, and
 * is freed with the table. A program may have thousands of tables with a call now and then, so the first
 * block is small. thread: any, without a lock except for growth. */
#ifndef KILN_RPC_XID_TABLE_H
#define KILN_RPC_XID_TABLE_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define XID_INDEX_BITS 14
#define XID_FIRST_BITS 3 /* the first block has 1 << XID_FIRST_BITS slots */
#define XID_BLOCKS (XID_INDEX_BITS - XID_FIRST_BITS + 1)
#define XID_CALLS_MAX (1u << XID_INDEX_BITS)

/* `cb`, `arg` and `what` belong to the thread that has taken or claimed the slot. */
struct xid_slot {
    _Atomic uint64_t word;     /* state << 32 | xid */
    _Atomic uint32_t next;     /* in the free list: index + 1; 0: the last */
    _Atomic uint32_t deadline; /* in ticks of the client; XID_NO_DEADLINE */
    uint32_t index;
    uint32_t uses;
    uint32_t xid;
    uint32_t what; /* for messages */
    void (*cb)(void);
    void *arg;
};

#define XID_NO_DEADLINE 0

struct xid_table {
    _Atomic uint64_t free; /* number of changes << 32 | index of the first slot + 1 */
    atomic_uint made;      /* number of existing slots */
    unsigned max;
    pthread_mutex_t grow; /* guards growth; taken alone */
    _Atomic(struct xid_slot *) blocks[XID_BLOCKS]; /* of 8, 8, 16, 32 ... slots */
};

/* Makes a table for `max` concurrent calls, rounded up to a power of two of at least 8, at most
 * XID_CALLS_MAX. */
void xid_table_init(struct xid_table *t, unsigned max);
/* Frees the table; no slot may be in use. */
void xid_table_fini(struct xid_table *t);

/* Takes a slot with a new xid, never 0. NULL: too many concurrent calls, or no memory. */
struct xid_slot *xid_take(struct xid_table *t);
/* True if the table has all the slots that it may have, free or not. */
bool xid_is_full(struct xid_table *t);

/* Makes the slot claimable; its members are set. */
void xid_publish(struct xid_slot *s);

/* Claims the waiting call of this xid for the caller; NULL if there is none. *was_late: there was one, but
 * it had expired; its slot is free now. */
struct xid_slot *xid_claim(struct xid_table *t, uint32_t xid, bool *was_late);

/* Frees the slot. */
void xid_put(struct xid_table *t, struct xid_slot *s);

/* Expires a waiting call with a deadline not after `now`, and copies the call's data to *out. False: there is
 * none. *waiting is set if a call still waits; *from is the position to continue at, 0 at first. */
struct xid_expired {
    void (*cb)(void);
    void *arg;
    uint32_t xid, what;
};
bool xid_expire(struct xid_table *t, uint32_t now, unsigned *from, bool *waiting, struct xid_expired *out);

/* Claims the next waiting call from *from on (0 at first), after the loss of a connection; NULL: no more.
 * Expired calls on the way are freed. */
struct xid_slot *xid_claim_any(struct xid_table *t, unsigned *from);

/* Counts calls that wait or have expired, for statedumps and tests; not exact while calls come and go. */
void xid_count(struct xid_table *t, unsigned *waiting, unsigned *expired);

#endif
