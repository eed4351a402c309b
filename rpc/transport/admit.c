/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The peers that may connect, and the time they may stay without a login.
 *
 * Descriptors are shared out by the number left: one address may have no more connections than are left for
 * all others. So one greedy address gets half, two addresses get a third each, and a later peer always finds
 * room. A table counts addresses by a hash with a random seed; two addresses with the same slot share the
 * allowance of that slot.
 *
 * A peer that has not logged in is a stranger, on a list in the order of arrival. The oldest stranger is
 * closed when its time is over, when there are too many strangers, and when the buffers of all take more
 * than their bound. A peer that has asked for a volfile is a guest: a guest may stay for as long as it is
 * mounted, and has the bounds of a stranger in all else. A guest at rest holds no buffer, so a guest with a
 * buffer is closed before a stranger. Peers of a unix socket have passed the permissions of the socket's
 * folder: a management daemon keeps such a connection open without a login, so these peers are no strangers.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/resource.h>

#include "log/log.h"
#include "rpc/transport/transport-internal.h"

#define ADDRESS_SLOTS 4096
#define STRANGERS_MIN 16

static struct {
    pthread_mutex_t lock; /* all below but `login_bytes`; not held over a call to conn_close() */
    struct cds_list_head strangers, guests; /* oldest first */
    unsigned stranger_count, count, limit;
    unsigned by_address[ADDRESS_SLOTS];
    uint64_t seed;
    struct timer deadline; /* of the oldest */
    bool is_made;
} admit = {.lock = PTHREAD_MUTEX_INITIALIZER, .strangers = CDS_LIST_HEAD_INIT(admit.strangers),
           .guests = CDS_LIST_HEAD_INIT(admit.guests)};

static _Atomic size_t login_bytes; /* of all strangers' buffers */

static void deadline_passed(struct timer *t);

void
admit_init(void)
{
    struct rlimit files;

    pthread_mutex_lock(&admit.lock);
    admit.limit = getrlimit(RLIMIT_NOFILE, &files) || files.rlim_cur > 1u << 20
                      ? 1u << 19
                      : (unsigned)(files.rlim_cur / 2);
    if (!admit.is_made) {
        timer_init(&admit.deadline, deadline_passed);
        if (getrandom(&admit.seed, sizeof admit.seed, GRND_NONBLOCK) != sizeof admit.seed)
            admit.seed = (uintptr_t)&files; /* early in a boot: the loader's choice of addresses has to do */
        admit.is_made = true;
    }
    pthread_mutex_unlock(&admit.lock);
}

/* An IPv6 host has a whole /64 to choose from. */
static unsigned
slot_of(const struct sockaddr_storage *a)
{
    uint64_t key = 0;

    if (a->ss_family == AF_INET)
        key = ((const struct sockaddr_in *)a)->sin_addr.s_addr;
    else if (a->ss_family == AF_INET6)
        memcpy(&key, &((const struct sockaddr_in6 *)a)->sin6_addr, sizeof key);
    key = (key ^ admit.seed) * 0x9e3779b97f4a7c15ull;
    key = (key ^ key >> 32) * 0xd6e8feb86659fd93ull;
    return (unsigned)(key >> 40) % ADDRESS_SLOTS;
}

static unsigned
strangers_max(void)
{
    return admit.limit / 8 > STRANGERS_MIN ? admit.limit / 8 : STRANGERS_MIN;
}

/* Neither a stranger nor a guest any more. */
static void
leave_list_locked(struct conn *c)
{
    if (!c->is_stranger && !c->is_guest)
        return;
    cds_list_del(&c->stranger);
    admit.stranger_count -= c->is_stranger;
    c->is_stranger = c->is_guest = false;
}

/* Takes the stranger off the list; the caller closes the connection and drops the reference. */
static struct conn *
take_stranger_locked(struct conn *c)
{
    leave_list_locked(c);
    return conn_ref(c);
}

static void
close_stranger(struct conn *c, const char *why)
{
    if (!c)
        return;
    log_event(LOG_WARNING, NULL, "transport-stranger-closed", "a connection without a login is closed: %s",
              why);
    conn_close(c);
    conn_unref(c);
}

static void
arm_deadline_locked(uint64_t now)
{
    uint64_t due;

    if (cds_list_empty(&admit.strangers))
        return;
    due = cds_list_first_entry(&admit.strangers, struct conn, stranger)->since_ns +
          transport_limits.login_ms * 1000000ull;
    timer_start(&admit.deadline, due > now ? (due - now) / 1000000 + 1 : 1);
}

static struct conn *
next_overdue(void)
{
    struct conn *c = NULL;
    uint64_t now = clock_mono_ns();

    pthread_mutex_lock(&admit.lock);
    if (!cds_list_empty(&admit.strangers)) {
        c = cds_list_first_entry(&admit.strangers, struct conn, stranger);
        if (now - c->since_ns >= transport_limits.login_ms * 1000000ull) {
            take_stranger_locked(c);
        } else {
            c = NULL;
            arm_deadline_locked(now);
        }
    }
    pthread_mutex_unlock(&admit.lock);
    return c;
}

static void
deadline_passed(struct timer *t)
{
    struct conn *c;

    (void)t;
    while ((c = next_overdue()))
        close_stranger(c, "its time to log in is over");
}

/* ---- coming, logging in, leaving ------------------------------------------------------------- */

bool
admit_enter(struct conn *c)
{
    struct conn *oldest = NULL;
    unsigned slot = slot_of(&c->peer), limit = 0, held = 0;
    bool is_known = !c->is_tcp || c->is_dialled;

    pthread_mutex_lock(&admit.lock);
    if (admit.count >= admit.limit)
        limit = admit.limit;
    else if (!is_known && admit.by_address[slot] >= admit.limit - admit.count)
        held = admit.by_address[slot];
    if (!limit && !held) {
        admit.count++;
        c->is_counted = true;
    }
    if (c->is_counted && !is_known) {
        admit.by_address[slot]++;
        c->address_slot = slot;
        if (admit.stranger_count >= strangers_max())
            oldest = take_stranger_locked(cds_list_first_entry(&admit.strangers, struct conn, stranger));
        c->is_stranger = true;
        c->since_ns = clock_mono_ns();
        cds_list_add_tail(&c->stranger, &admit.strangers);
        if (admit.stranger_count++ == 0)
            arm_deadline_locked(c->since_ns);
    }
    pthread_mutex_unlock(&admit.lock);
    if (limit)
        log_event(LOG_WARNING, NULL, "transport-too-many-connections", "refused: %u connections are open",
                  limit);
    if (held)
        log_event(LOG_WARNING, NULL, "transport-too-many-of-one-address",
                  "refused: %u connections of one address are open, and fewer are left for all others", held);
    close_stranger(oldest, "it is the oldest of too many");
    return c->is_counted;
}

void
admit_login(struct conn *c)
{
    pthread_mutex_lock(&admit.lock);
    leave_list_locked(c);
    pthread_mutex_unlock(&admit.lock);
}

void
admit_guest(struct conn *c)
{
    pthread_mutex_lock(&admit.lock);
    if (c->is_stranger) {
        leave_list_locked(c);
        c->is_guest = true;
        cds_list_add_tail(&c->stranger, &admit.guests);
    }
    pthread_mutex_unlock(&admit.lock);
}

static unsigned
count_guests_locked(void)
{
    struct conn *c;
    unsigned n = 0;

    cds_list_for_each_entry (c, &admit.guests, stranger)
        n++;
    return n;
}

bool
transport_each_guest(void (*fn)(struct conn *c, void *arg), void *arg)
{
    struct conn *c;
    unsigned n = 0;

    pthread_mutex_lock(&admit.lock);
    struct conn **guests = malloc((count_guests_locked() + 1) * sizeof *guests);
    cds_list_for_each_entry (c, &admit.guests, stranger)
        if (guests)
            guests[n++] = conn_ref(c);
    pthread_mutex_unlock(&admit.lock);
    for (unsigned i = 0; i < n; i++) {
        fn(guests[i], arg);
        conn_unref(guests[i]);
    }
    free(guests);
    return guests != NULL;
}

void
admit_leave(struct conn *c)
{
    admit_login(c);
    pthread_mutex_lock(&admit.lock);
    if (c->is_counted) {
        admit.count--;
        if (c->is_tcp && !c->is_dialled)
            admit.by_address[c->address_slot]--;
    }
    c->is_counted = false;
    pthread_mutex_unlock(&admit.lock);
}

unsigned
transport_connections_left(void)
{
    pthread_mutex_lock(&admit.lock);
    unsigned left = admit.limit > admit.count ? admit.limit - admit.count : 0;

    pthread_mutex_unlock(&admit.lock);
    return left;
}

/* ---- strangers' buffers ---------------------------------------------------------------------- */

static struct conn *
take_holder_locked(struct cds_list_head *list)
{
    struct conn *c;

    cds_list_for_each_entry (c, list, stranger) {
        if (!atomic_load_explicit(&c->login_bytes, memory_order_relaxed))
            continue;
        take_stranger_locked(c);
        atomic_fetch_sub(&login_bytes, atomic_exchange_explicit(&c->login_bytes, 0, memory_order_relaxed));
        return c;
    }
    return NULL;
}

/* The oldest guest with a buffer, else the oldest stranger with a buffer. */
static struct conn *
take_oldest_holder(void)
{
    pthread_mutex_lock(&admit.lock);
    struct conn *found = take_holder_locked(&admit.guests);
    if (!found)
        found = take_holder_locked(&admit.strangers);
    pthread_mutex_unlock(&admit.lock);
    return found;
}

void
admit_buffers(struct conn *c, size_t bytes)
{
    size_t was = atomic_exchange_explicit(&c->login_bytes, bytes, memory_order_relaxed);

    if (bytes == was)
        return;
    size_t all = atomic_fetch_add(&login_bytes, bytes - was) + bytes - was;

    if (bytes > was && all > transport_limits.login_bytes_all)
        close_stranger(take_oldest_holder(), "it is the oldest of those that hold too much");
}
