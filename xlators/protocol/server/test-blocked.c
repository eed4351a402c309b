/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Calls that wait in features/locks below a real protocol/server: the memory that each keeps meanwhile, and
 * that each continues with all its data. */
#include "xlators/protocol/server/test-bench.h"

extern const struct xlator_type features_locks_xlator;

/* The limit is the packed call, its lock and its call-stub, and 1/500 of an iobuf that the connection may
 * still hold. */
enum { BLOCKED = 500, NOW = 1, WAIT = 2, BLOCKED_BYTES_MAX = 1280 + 34 };

static const uint32_t groups[] = {7, 8, 9};
static char owner[16];

static void
setup_blocked(void)
{
    middle = &features_locks_xlator;
    middle_options[0] =
        /* its callbacks would arrive among the replies */
        (struct option_value){"notify-contention", "off", 0};
    middle_option_count = 1;
    setup();
}

static struct peer *
member(const char *uid)
{
    struct peer *p = logged_in(uid);

    p->caller.groups = groups;
    p->caller.group_count = 3;
    p->caller.pid = 100;
    return p;
}

static void
set_owner(struct peer *p, unsigned n)
{
    snprintf(owner, sizeof owner, "owner-%u", n);
    p->caller.lk_owner = (struct lk_owner){(uint32_t)strlen(owner), (const uint8_t *)owner};
}

static struct fop_call
inodelk_call(uint32_t cmd, uint32_t type)
{
    return (struct fop_call){
        .cmd = cmd, .type = type, .flock = {.type = type}, .volume = "v-replicate-0", .gfid = gfid_no(3)};
}

static struct brick_client *
newest_client(void)
{
    return cds_list_entry(graph.clients.prev, struct brick_client, link);
}

/* Waits until the client that logged in last has this many locks, granted and waiting. */
static void
wait_locks(unsigned count)
{
    struct brick_client *c = newest_client();

    for (int i = 0; i < 20000 && atomic_load(&c->locks) != count; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert_uint_eq(atomic_load(&c->locks), count);
}

struct live {
    uint64_t count, bytes;
    bool counts; /* pools are on */
};

static void
add_live(void *arg, const char *key, const char *value)
{
    struct live *live = arg;

    if (strcmp(key, "mode") == 0)
        live->counts = strcmp(value, "on") == 0;
    else if (strcmp(key, "active-count") == 0)
        live->count = strtoull(value, NULL, 10);
    else if (strcmp(key, "padded-sizeof") == 0)
        live->bytes += live->count * strtoull(value, NULL, 10);
}

/* Returns the bytes of all pooled objects in use. */
static struct live
live_now(void)
{
    struct live live = {0};

    mem_pools_dump(add_live, &live);
    return live;
}

START_TEST(a_blocked_lock_keeps_no_record)
{
    struct peer *holder = member("holder"), *p = member("waiter");
    struct fop_call lock = inodelk_call(NOW, FLOCK_WRITE), blocked = inodelk_call(WAIT, FLOCK_READ);
    bool is_answered[BLOCKED] = {false};

    ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    struct live before = live_now();
    uint32_t first = p->xid + 1;

    for (unsigned n = 0; n < BLOCKED; n++) {
        set_owner(p, n);
        send_fop(p, FOP_inodelk, &blocked);
    }
    wait_locks(BLOCKED);
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
    struct live meanwhile = live_now();
    if (meanwhile.counts)
        ck_assert_uint_le((meanwhile.bytes - before.bytes) / BLOCKED, BLOCKED_BYTES_MAX);
    lock.type = FLOCK_UNLOCK;
    ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
    for (unsigned n = 0; n < BLOCKED; n++) {
        struct fop_reply r = {0};

        ck_assert(receive(p));
        ck_assert_uint_eq(p->accept, RPC_SUCCESS);
        ck_assert_int_eq(fop_decode_reply(FOP_inodelk, &p->results, &r), 0);
        ck_assert_int_eq(r.op_ret, 0);
        uint32_t xid = xdr_load_u32(p->in) - first;
        ck_assert(xid < BLOCKED && !is_answered[xid]);
        is_answered[xid] = true;
    }
    blocked.type = FLOCK_UNLOCK;
    for (unsigned n = 0; n < BLOCKED; n++) { /* each was granted to its own owner */
        set_owner(p, n);
        ck_assert_int_eq(fop(p, FOP_inodelk, &blocked, NULL), 0);
    }
    peer_free(p);
    peer_free(holder);
}
END_TEST

/* The reply repeats the range, the owner and the xdata of the request. */
START_TEST(a_blocked_posix_lock_is_echoed)
{
    struct peer *holder = member("holder"), *p = member("waiter");
    struct arena arena = {0};
    struct dict *xdata = dict_new(&arena);
    struct fop_reply r;
    struct fop_call lk = {
        .gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS, .cmd = NOW, .type = FLOCK_WRITE, .flock = {.start = 5}};

    ck_assert_int_eq(dict_set_text(xdata, "a-key-of-its-own", DICT_STR, "text", 5), 0);
    ck_assert_int_eq(dict_set_int(xdata, DICT_KEY_PRESTAT, 77), 0);
    ck_assert_int_eq(fop(holder, FOP_lk, &lk, NULL), 0);
    set_owner(p, 1);
    lk.cmd = WAIT;
    lk.flock = (struct fop_flock){.start = 10, .len = 20, .pid = 4711, .owner = p->caller.lk_owner};
    lk.xdata = xdata;
    send_fop(p, FOP_lk, &lk);
    wait_locks(1);
    lk = (struct fop_call){.gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS, .cmd = NOW, .type = FLOCK_UNLOCK};
    ck_assert_int_eq(fop(holder, FOP_lk, &lk, NULL), 0);
    ck_assert(receive(p));
    ck_assert_int_eq(fop_decode_reply(FOP_lk, &p->results, &r), 0);
    ck_assert_int_eq(r.op_ret, 0);
    ck_assert_int_eq(r.flock.start, 10);
    ck_assert_int_eq(r.flock.len, 20);
    ck_assert_uint_eq(r.flock.pid, 4711);
    ck_assert_uint_eq(r.flock.owner.len, 7);
    ck_assert_int_eq(memcmp(r.flock.owner.bytes, "owner-1", 7), 0);
    ck_assert_uint_eq(r.xdata->count, 2);
    ck_assert_str_eq(dict_pair_str(dict_find_text(r.xdata, "a-key-of-its-own")), "text");
    int64_t number;
    ck_assert_int_eq(dict_get_int(r.xdata, DICT_KEY_PRESTAT, &number), 0);
    ck_assert_int_eq(number, 77);
    arena_release(&arena);
    peer_free(p);
    peer_free(holder);
}
END_TEST

static bool
removal_is_seen(void)
{
    return atomic_load(&is_removal_seen);
}

/* A removal continues with its names, caller and xdata, even if it is too large for a pooled object, or too
 * large to be packed at all. */
START_TEST(a_blocked_removal_goes_on_whole)
{
    static char text[100000];
    static const uint32_t sizes[] = {5, 1000, 70000};
    struct peer *holder = member("holder"), *p = member("remover");
    struct arena arena = {0};
    struct dict *xdata = dict_new(&arena);
    struct fop_call lock = inodelk_call(NOW, FLOCK_WRITE);

    memset(text, 'x', sizeof text);
    lock.gfid = gfid_no(3);
    ck_assert_int_eq(dict_set_int(xdata, DICT_KEY_PRESTAT, 1), 0);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), 0);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        atomic_store(&is_removal_seen, false);
        lock.type = FLOCK_WRITE;
        ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
        ck_assert_int_eq(dict_set_text(xdata, "text", DICT_PTR, text, sizes[i]), 0);
        send_fop(p, FOP_unlink, CALL(.pargfid = gfid_no(1), .name = "file", .flags = 11, .xdata = xdata));
        ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_no(3)), NULL), 0);
        ck_assert(!removal_is_seen());
        lock.type = FLOCK_UNLOCK;
        ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
        wait_until(removal_is_seen);
        ck_assert(receive(p));
        ck_assert_str_eq(seen_removal, "1/file 3 11 2");
        ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), 0);
    }
    arena_release(&arena);
    peer_free(p);
    peer_free(holder);
}
END_TEST

static bool
one_client_left(void)
{
    pthread_mutex_lock(&graph.clients_lock);
    bool is_one = graph.clients.next == graph.clients.prev;
    pthread_mutex_unlock(&graph.clients_lock);
    return is_one;
}

START_TEST(a_client_dies_while_blocked)
{
    struct peer *holder = member("holder"), *p = member("waiter");
    struct fop_call lock = inodelk_call(NOW, FLOCK_WRITE), blocked = inodelk_call(WAIT, FLOCK_WRITE);

    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_no(1), .name = "file"), NULL), 0);
    ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
    for (unsigned n = 0; n < 20; n++) {
        set_owner(p, n);
        send_fop(p, FOP_inodelk, &blocked);
    }
    send_fop(p, FOP_unlink, CALL(.pargfid = gfid_no(1), .name = "file"));
    wait_locks(20);
    peer_free(p);
    wait_until(one_client_left);
    lock.type = FLOCK_UNLOCK;
    ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
    p = member("next");
    lock.type = FLOCK_WRITE;
    ck_assert_int_eq(fop(p, FOP_inodelk, &lock, NULL), 0); /* no client holds it */
    peer_free(p);
    peer_free(holder);
}
END_TEST

START_TEST(a_brick_is_detached_while_locks_are_blocked)
{
    struct peer *holder = member("holder"), *p = member("waiter");
    struct fop_call lock = inodelk_call(NOW, FLOCK_WRITE), blocked = inodelk_call(WAIT, FLOCK_WRITE);

    ck_assert_int_eq(fop(holder, FOP_inodelk, &lock, NULL), 0);
    for (unsigned n = 0; n < 20; n++) {
        set_owner(p, n);
        send_fop(p, FOP_inodelk, &blocked);
    }
    wait_locks(20);
    session_close_graph(&graph);
    wait_until(is_unpinned);
    while (receive(p)) /* an EAGAIN may arrive before the end */
        ;
    peer_free(p);
    peer_free(holder);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("blocked");
    TCase *c = tcase_create("blocked");

    tcase_add_checked_fixture(c, setup_blocked, teardown);
    tcase_add_test(c, a_blocked_lock_keeps_no_record);
    tcase_add_test(c, a_blocked_posix_lock_is_echoed);
    tcase_add_test(c, a_blocked_removal_goes_on_whole);
    tcase_add_test(c, a_client_dies_while_blocked);
    tcase_add_test(c, a_brick_is_detached_while_locks_are_blocked);
    tcase_set_timeout(c, 60);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
