/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The groups that the server gives to callers. This program contains the name service, which can be slow,
 * fail, and not know a user. */
#include <grp.h>
#include <pwd.h>

#include "log/dump.h"
#include "xlators/protocol/server/test-bench.h"

enum { KNOWN = 5001, SLOW = 5002, ADMIN = 5003 /* in group 0 */, UNKNOWN = 5999, CROWDED = 6000 };
enum { FLOOD = 30000 /* and above: as slow as SLOW */, ASKED_MAX = 4096 };

static pthread_mutex_t service_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t service_turns = PTHREAD_COND_INITIALIZER;
static unsigned asked, groups_of_each, at_gate;
static bool is_slow, is_failing;
static unsigned turns; /* number of slow queries that may continue */
static uint32_t order[ASKED_MAX]; /* the users of the queries, in order */

int __wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found);
int __wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count);

/* Entries need some room, so that the first buffer is too small. */
int
__wrap_getpwuid_r(uid_t uid, struct passwd *entry, char *buffer, size_t size, struct passwd **found)
{
    *found = NULL;
    if (size < 4096)
        return ERANGE;
    pthread_mutex_lock(&service_lock);
    if (asked < ASKED_MAX)
        order[asked] = uid;
    asked++;
    at_gate++;
    while (is_slow && !turns && (uid == SLOW || uid >= FLOOD))
        pthread_cond_wait(&service_turns, &service_lock);
    if (turns && (uid == SLOW || uid >= FLOOD))
        turns--;
    at_gate--;
    int err = is_failing ? EIO : 0;
    pthread_mutex_unlock(&service_lock);
    if (err || uid == UNKNOWN)
        return err;
    snprintf(buffer, size, "u%u", uid);
    entry->pw_name = buffer;
    *found = entry;
    return 0;
}

int
__wrap_getgrouplist(const char *user, gid_t group, gid_t *groups, int *count)
{
    int room = *count, n = 0;

    ck_assert_int_eq(user[0], 'u');
    pthread_mutex_lock(&service_lock);
    int all = (int)(strcmp(user, "u6000") == 0 ? 70000 : groups_of_each) + 1;
    pthread_mutex_unlock(&service_lock);
    for (; n < all && n < room; n++)
        groups[n] = !n ? group : n == 1 && strcmp(user, "u5003") == 0 ? 0 : 100 + (gid_t)n;
    *count = all;
    return all <= room ? all : -1;
}

static void
set_service(bool slow, bool failing, unsigned groups)
{
    pthread_mutex_lock(&service_lock);
    is_slow = slow;
    is_failing = failing;
    groups_of_each = groups;
    pthread_cond_broadcast(&service_turns);
    pthread_mutex_unlock(&service_lock);
}

static unsigned
asked_since(void)
{
    pthread_mutex_lock(&service_lock);
    unsigned n = asked;

    asked = 0;
    pthread_mutex_unlock(&service_lock);
    return n;
}

static void
setup_lookup(const char *key, const char *value)
{
    extra_options[0] = (struct option_value){"manage-gids", "on", 0};
    setup_with(key, value);
    set_service(false, false, 3);
    asked_since();
}

static void
setup_groups(void)
{
    setup_lookup(NULL, NULL);
}

static void
setup_no_memory_of_them(void)
{
    setup_lookup("gid-timeout", "0");
}

static void
setup_squash(void)
{
    setup_lookup("root-squash", "on");
}

static const uint32_t sent[] = {7, 8};

static struct peer *
member(const char *name, uint32_t uid)
{
    struct peer *p = logged_in(name);

    p->caller.uid = uid;
    p->caller.gid = 55;
    p->caller.groups = sent;
    p->caller.group_count = 2;
    return p;
}

static void
send_access(struct peer *p)
{
    send_fop(p, FOP_access, CALL(.gfid = gfid_no(3)));
}

static uint32_t
groups_seen(struct peer *p)
{
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_uint_eq(seen.gid, 55);
    return seen.group_count;
}

START_TEST(groups_replace_those_of_the_client)
{
    struct peer *p = member("one", KNOWN), *unknown = member("two", UNKNOWN), *root = member("three", 0);

    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(asked_since(), 1);
    ck_assert_uint_eq(groups_seen(unknown), 0);
    ck_assert_uint_eq(groups_seen(unknown), 0);
    ck_assert_uint_eq(asked_since(), 1);
    ck_assert_uint_eq(groups_seen(root), 0);
    ck_assert_uint_eq(asked_since(), 0);
    set_service(false, false, 5);
    ck_assert_uint_eq(groups_seen(p), 3); /* cached */
    ck_assert_uint_eq(asked_since(), 0);
    peer_free(p);
    peer_free(unknown);
    peer_free(root);
}
END_TEST

START_TEST(groups_are_asked_for_again_after_the_timeout)
{
    struct peer *p = member("one", KNOWN);

    ck_assert_uint_eq(groups_seen(p), 3);
    set_service(false, false, 200);
    ck_assert_uint_eq(groups_seen(p), 200);
    set_service(false, false, 0);
    ck_assert_uint_eq(groups_seen(p), 0);
    ck_assert_uint_eq(asked_since(), 3);
    peer_free(p);
}
END_TEST

START_TEST(known_groups_stay_while_the_service_fails)
{
    struct peer *p = member("one", KNOWN), *other = member("two", KNOWN + 10);

    ck_assert_uint_eq(groups_seen(p), 3);
    set_service(false, true, 3);
    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(groups_seen(other), 0);
    set_service(false, false, 4);
    ck_assert_uint_eq(groups_seen(p), 4);
    peer_free(p);
    peer_free(other);
}
END_TEST

START_TEST(a_user_gets_at_most_the_maximum_of_groups)
{
    struct peer *p = member("one", CROWDED);

    ck_assert_uint_eq(groups_seen(p), GROUPS_OF_USER_MAX);
    peer_free(p);
}
END_TEST

static bool
is_one_at_gate(void)
{
    pthread_mutex_lock(&service_lock);
    bool is_so = at_gate == 1;

    pthread_mutex_unlock(&service_lock);
    return is_so;
}

/* There are at most eight workers. */
START_TEST(a_slow_answer_holds_up_its_user_alone)
{
    struct peer *slow = member("slow", SLOW), *p = member("one", KNOWN);

    set_service(true, false, 3);
    for (unsigned i = 0; i < 40; i++)
        send_access(slow);
    wait_until(is_one_at_gate);
    for (unsigned i = 0; i < 10; i++)
        ck_assert_uint_eq(groups_seen(p), 3);
    set_service(false, false, 3);
    for (unsigned i = 0; i < 40; i++)
        ck_assert(receive(slow));
    ck_assert_uint_eq(asked_since(), 2);
    peer_free(slow);
    peer_free(p);
}
END_TEST

/* The querying thread may block for any time without delaying the end of the brick. */
START_TEST(a_brick_ends_during_a_query)
{
    struct peer *slow = member("slow", SLOW);

    set_service(true, false, 3);
    for (unsigned i = 0; i < 5; i++)
        send_access(slow);
    wait_until(is_one_at_gate);
    protocol_server_xlator.stop(&layers[0]);
    while (receive(slow))
        ;
    peer_free(slow);
    wait_until(is_unpinned);
}
END_TEST

static void
teardown_late(void)
{
    teardown();
    set_service(false, false, 3);
}

/* Returns the number of cached users, from the statedump. */
static unsigned
users_now(void)
{
    char text[256] = "";
    struct dump d = {.file = fmemopen(text, sizeof text, "w")};
    unsigned users = 0;

    groups_dump(server_of(&graph)->groups, &d);
    fclose(d.file);
    ck_assert_int_eq(sscanf(text, "groups=users=%u", &users), 1);
    return users;
}

START_TEST(the_oldest_users_are_evicted)
{
    struct peer *p = member("one", KNOWN);

    for (unsigned i = 0; i < GROUPS_USERS_MAX + 20; i++) {
        p->caller.uid = 10000 + i;
        ck_assert_uint_eq(groups_seen(p), 3);
    }
    ck_assert_uint_eq(users_now(), GROUPS_USERS_MAX);
    asked_since();
    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(asked_since(), 0);
    p->caller.uid = 10000;
    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(asked_since(), 1);
    for (unsigned i = 0; i < 8; i++) { /* a quarter of the bytes each */
        set_service(false, false, GROUPS_OF_USER_MAX);
        p->caller.uid = 20000 + i;
        ck_assert_uint_eq(groups_seen(p), GROUPS_OF_USER_MAX);
    }
    ck_assert_uint_le(users_now(), GROUPS_BYTES_MAX / GROUPS_OF_USER_MAX / sizeof(gid_t));
    peer_free(p);
}
END_TEST

START_TEST(a_squashed_root_gets_the_groups_of_its_new_user)
{
    struct peer *p = member("one", 0), *admin = member("two", ADMIN);

    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert_uint_eq(asked_since(), 1);
    /* root's group is squashed, whether the client or this machine names it */
    ck_assert_uint_eq(groups_seen(admin), 3);
    ck_assert_uint_eq(seen_first_group, 65534);
    peer_free(p);
    peer_free(admin);
}
END_TEST

/* ---- turns ----------------------------------------------------------------------------------- */

enum { ASKERS = 4 };

static unsigned
at_gate_now(void)
{
    pthread_mutex_lock(&service_lock);
    unsigned n = at_gate;

    pthread_mutex_unlock(&service_lock);
    return n;
}

static bool
all_are_at_gate(void)
{
    return at_gate_now() == ASKERS;
}

static unsigned wanted_waiting;

static bool
as_many_wait(void)
{
    char text[256] = "";
    struct dump d = {.file = fmemopen(text, sizeof text, "w")};
    unsigned waiting = 0;

    groups_dump(server_of(&graph)->groups, &d);
    fclose(d.file);
    ck_assert_int_eq(sscanf(text, "groups=users=%*u bytes=%*u waiting=%u", &waiting), 1);
    return waiting == wanted_waiting;
}

/* Sends `count` calls of users from `first` on, and returns when they wait. */
static void
flood(struct peer *p, uint32_t first, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        p->caller.uid = first + i;
        send_access(p);
    }
    wanted_waiting += count;
    wait_until(as_many_wait);
}

static void
let_on(unsigned count)
{
    pthread_mutex_lock(&service_lock);
    turns = count;
    pthread_cond_broadcast(&service_turns);
    pthread_mutex_unlock(&service_lock);
}

/* Returns the place of a user among the queries; ASKED_MAX: no query was made. */
static unsigned
place_of(uint32_t uid)
{
    unsigned i = 0;

    pthread_mutex_lock(&service_lock);
    while (i < ASKED_MAX && i < asked && order[i] != uid)
        i++;
    unsigned place = i < asked ? i : ASKED_MAX;
    pthread_mutex_unlock(&service_lock);
    return place;
}

/* A client of another address of this machine. */
static struct peer *
elsewhere(const char *address, const char *name, uint32_t uid)
{
    peer_from = address;
    struct peer *p = member(name, uid);

    peer_from = NULL;
    return p;
}

/* Two connections of one address ask about 400 users. A user of another address is asked about next, and a
 * user that both addresses ask about does not wait for the end of the long queue. */
static bool
others_last_is_asked(void)
{
    return place_of(FLOOD + 1199) < ASKED_MAX;
}

START_TEST(clients_take_turns)
{
    struct peer *one = member("one", 0), *two = member("two", 0), *other = elsewhere("127.0.0.2", "other", 0);

    wanted_waiting = 0;
    set_service(true, false, 3);
    flood(one, FLOOD, 200);
    wait_until(all_are_at_gate);
    flood(two, FLOOD + 1000, 200);
    flood(other, KNOWN, 1);
    flood(other, FLOOD + 1199, 1);
    let_on(4);
    ck_assert(receive(other));
    ck_assert_uint_lt(place_of(KNOWN), ASKERS + 4);
    let_on(10);
    wait_until(others_last_is_asked); /* all ten may have continued before that query */
    ck_assert_uint_lt(place_of(FLOOD + 1199), ASKERS + 10);
    set_service(false, false, 3);
    ck_assert(receive(other));
    for (unsigned i = 0; i < 200; i++)
        ck_assert(receive(one) && receive(two));
    peer_free(one);
    peer_free(two);
    peer_free(other);
}
END_TEST

static void
receive_all(struct peer *p, unsigned count, unsigned *refused)
{
    for (unsigned i = 0; i < count; i++) {
        ck_assert(receive(p));
        int32_t op_ret = (int32_t)xdr_load_u32(p->results.at),
                op_errno = (int32_t)xdr_load_u32(p->results.at + 4);

        ck_assert(op_ret == 0 || op_errno == EAGAIN);
        *refused += op_ret != 0;
    }
}

/* However many connections it has, an address has at most this many users in the queue. */
START_TEST(a_client_has_a_bounded_queue)
{
    enum { PEERS = 3, EACH = 1000, AT_ONCE = GROUPS_QUEUED_MAX + ASKERS };
    struct peer *peers[PEERS], *other = elsewhere("127.0.0.2", "other", 0);
    unsigned refused = 0;

    wanted_waiting = 0;
    set_service(true, false, 3);
    for (unsigned i = 0; i < PEERS; i++)
        peers[i] = member((const char *[]){"a", "b", "c"}[i], 0);
    flood(peers[0], FLOOD, EACH);
    wait_until(all_are_at_gate);
    flood(peers[1], FLOOD + EACH, EACH);
    for (unsigned i = 0; i < EACH; i++) {
        peers[2]->caller.uid = FLOOD + 2 * EACH + i;
        send_access(peers[2]);
    }
    receive_all(peers[2], PEERS * EACH - AT_ONCE, &refused);
    ck_assert_uint_eq(refused, PEERS * EACH - AT_ONCE);
    wanted_waiting = AT_ONCE;
    wait_until(as_many_wait);
    flood(other, KNOWN, 1); /* of another client: its call waits */
    set_service(false, false, 3);
    receive_all(peers[0], EACH, &refused);
    receive_all(peers[1], EACH, &refused);
    receive_all(peers[2], AT_ONCE - 2 * EACH, &refused);
    receive_all(other, 1, &refused);
    ck_assert_uint_eq(refused, PEERS * EACH - AT_ONCE);
    for (unsigned i = 0; i < PEERS; i++)
        peer_free(peers[i]);
    peer_free(other);
}
END_TEST

/* A client that asks about more users than a brick caches loses its own users. */
START_TEST(a_client_cannot_evict_the_users_of_others)
{
    struct peer *p = member("one", KNOWN), *greedy = elsewhere("127.0.0.2", "greedy", 0);

    ck_assert_uint_eq(groups_seen(p), 3);
    for (unsigned i = 0; i < 2 * GROUPS_USERS_MAX; i++) {
        greedy->caller.uid = 10000 + i;
        ck_assert_uint_eq(groups_seen(greedy), 3);
    }
    ck_assert_uint_eq(users_now(), GROUPS_USERS_MAX);
    asked_since();
    ck_assert_uint_eq(groups_seen(p), 3);
    ck_assert_uint_eq(asked_since(), 0);
    peer_free(p);
    peer_free(greedy);
}
END_TEST

static TCase *
tcase(Suite *s, const char *name, void (*start)(void))
{
    TCase *c = tcase_create(name);

    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, start, teardown_late);
    suite_add_tcase(s, c);
    return c;
}

static Suite *
test_suite(void)
{
    Suite *s = suite_create("groups");
    TCase *c = tcase(s, "remembered", setup_groups);

    tcase_add_test(c, groups_replace_those_of_the_client);
    tcase_add_test(c, a_user_gets_at_most_the_maximum_of_groups);
    tcase_add_test(c, a_slow_answer_holds_up_its_user_alone);
    tcase_add_test(c, a_brick_ends_during_a_query);
    tcase_add_test(c, the_oldest_users_are_evicted);
    tcase_add_test(c, clients_take_turns);
    tcase_add_test(c, a_client_has_a_bounded_queue);
    tcase_add_test(c, a_client_cannot_evict_the_users_of_others);
    c = tcase(s, "not-remembered", setup_no_memory_of_them);
    tcase_add_test(c, groups_are_asked_for_again_after_the_timeout);
    tcase_add_test(c, known_groups_stay_while_the_service_fails);
    tcase_add_test(tcase(s, "squashed", setup_squash), a_squashed_root_gets_the_groups_of_its_new_user);
    return s;
}

#include "base/test-main.h"
