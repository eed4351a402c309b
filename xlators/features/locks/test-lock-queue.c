/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Random inodelks, entrylks and removals compared with a simple model: a list whose waiting entries are all
 * examined after every change. Then tests with many thousands of locks, and of the bounds. */
#include "xlators/features/test-layers.h"

#include "xlators/features/locks/locks-internal.h"

extern const struct xlator_type features_locks_xlator;

enum { OWNERS = 5, LOCKS_MAX = 60, PLACES = 6, STEPS = 6000, NB = 1, WAIT = 2 };

static struct inode *object;
static struct brick_client *clients[2];
static const char *const owner_names[OWNERS] = {"a", "b", "c", "d", "a"};
static unsigned finished;

static int
bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

static void
setup_with(const char *const *options)
{
    bench_setup(&features_locks_xlator, options, bottom);
    object = bench_inode("o", 1, S_IFDIR);
    clients[0] = bench_client("alice");
    clients[1] = bench_client("bob");
}

static void
setup(void)
{
    setup_with(NULL);
}

static void
setup_bounds(void)
{
    setup_with((const char *const[]){"client-lock-limit", "50", "client-inode-lock-limit", "20", NULL});
}

static void
teardown(void)
{
    for (int i = 0; i < 2; i++)
        bench_client_gone(clients[i]);
    struct lock_inode *li = inode_ctx(object, bench_xl);
    ck_assert(!li || li->count == 0);
    inode_unref(object);
    bench_teardown();
}

static struct brick_client *
client_of(unsigned owner)
{
    return clients[owner >= 3]; /* owner 4 has the name of owner 0, at another client */
}

static struct bench_call *
lock_call(bool is_entry, unsigned owner, uint32_t cmd, uint32_t type, int64_t start, int64_t end)
{
    static const char *const names[PLACES] = {"n0", "n1", "n2", "n3", "n4", "n5"};
    struct bench_call *call = bench_call(is_entry ? FOP_entrylk : FOP_inodelk, client_of(owner));
    struct fop_call *c = &call->stk->call;

    call->stk->caller.lk_owner = (struct lk_owner){1, (const uint8_t *)owner_names[owner]};
    call->stk->caller.pid = 100;
    c->loc.inode = inode_ref(object);
    c->volume = "v-replicate-0";
    c->type = type;
    if (is_entry) {
        c->cmd = type == FLOCK_UNLOCK ? 1 : cmd == NB ? 2 : 0;
        c->type = FLOCK_WRITE;
        c->name = start == 0 && end == INT64_MAX ? NULL : names[start];
    } else {
        c->cmd = cmd;
        c->flock.start = start;
        c->flock.len = end == INT64_MAX ? 0 : end - start + 1;
    }
    return call;
}

/* ---- the model ------------------------------------------------------------------------------- */

struct model_lock {
    unsigned owner;
    uint32_t type;
    int64_t start, end;
    bool is_granted;
    struct bench_call *call; /* of a lock that waits or has waited */
};

static struct model_lock model[LOCKS_MAX]; /* in the order of arrival */
static unsigned model_count;
static struct bench_call *removal; /* at most one */
static unsigned remover;
static bool is_entry_model;

static bool
model_conflict(const struct model_lock *a, const struct model_lock *b)
{
    return a->owner != b->owner && a->start <= b->end && b->start <= a->end &&
           (is_entry_model || a->type == FLOCK_WRITE || b->type == FLOCK_WRITE);
}

/* `at`: the lock's index, or model_count for a new lock. */
static bool
model_must_wait(const struct model_lock *l, unsigned at)
{
    bool conflicts_ahead = false, has_place = false, has_granted = false;

    for (unsigned i = 0; i < model_count; i++) {
        const struct model_lock *m = &model[i];

        if (i == at)
            continue;
        if (m->is_granted && model_conflict(m, l))
            return true;
        has_granted |= m->is_granted && m->owner == l->owner;
        if (!m->is_granted && i < at)
            conflicts_ahead |= model_conflict(m, l);
        has_place |= m->owner == l->owner && (m->is_granted || i < at);
    }
    if (!is_entry_model && removal && clients[remover] != client_of(l->owner) && !has_granted)
        return true;
    return conflicts_ahead && !has_place;
}

static bool
model_removal_waits(void)
{
    for (unsigned i = 0; !is_entry_model && i < model_count; i++) {
        if (model[i].is_granted && client_of(model[i].owner) != clients[remover])
            return true;
    }
    return false;
}

/* Grants the oldest lock that can be granted, again and again, because a grant may make an older lock an
 * exception. */
static void
model_grant(void)
{
    for (unsigned i = 0; i < model_count; i++) {
        if (model[i].is_granted || model_must_wait(&model[i], i))
            continue;
        model[i].is_granted = true;
        ck_assert_int_eq(bench_result(model[i].call), 0);
        finished++;
        i = -1u;
    }
}

static void
model_settle(void)
{
    bool goes_on = removal && !model_removal_waits();

    model_grant(); /* the removal stays ahead of the locks until it is done */
    if (!goes_on)
        return;
    ck_assert_int_eq(bench_result(removal), 0);
    bench_free(removal);
    removal = NULL;
    model_grant();
}

/* Checks that the locks that wait in the model also wait in the layer. */
static void
compare(void)
{
    struct lock_inode *li = inode_ctx(object, bench_xl);
    unsigned waiting = 0, granted = 0;

    for (unsigned i = 0; i < model_count; i++) {
        waiting += !model[i].is_granted;
        granted += model[i].is_granted;
        if (!model[i].is_granted)
            ck_assert(!bench_is_done(model[i].call));
    }
    ck_assert(!removal || !bench_is_done(removal));
    if (!li)
        return;
    pthread_mutex_lock(&li->mutex);
    ck_assert_uint_eq(li->wanted ? li->wanted->count : 0, waiting);
    ck_assert_uint_eq(li->held ? li->held->count : 0, granted);
    ck_assert_ptr_null(li->pending);
    pthread_mutex_unlock(&li->mutex);
}

static void
model_remove(unsigned at)
{
    if (model[at].call)
        bench_free(model[at].call);
    memmove(&model[at], &model[at + 1], (--model_count - at) * sizeof *model);
}

static void
unlock_at(unsigned at)
{
    struct model_lock m = model[at];

    /* Among equal locks of one owner, the oldest is released: the first in both the model and the layer. */
    for (unsigned i = 0; i < at; i++) {
        if (model[i].is_granted && model[i].owner == m.owner && model[i].start == m.start &&
            model[i].end == m.end)
            at = i;
    }
    model_remove(at);
    ck_assert_int_eq(bench_run(lock_call(is_entry_model, m.owner, NB, FLOCK_UNLOCK, m.start, m.end)), 0);
}

static void
request(unsigned *seed)
{
    struct model_lock m = {.owner = (unsigned)rand_r(seed) % OWNERS, .type = (uint32_t)rand_r(seed) % 2};
    bool waits = rand_r(seed) % 4;

    m.start = rand_r(seed) % PLACES;
    m.end = is_entry_model ? m.start : m.start + rand_r(seed) % (PLACES - m.start);
    if (rand_r(seed) % 12 == 0) {
        m.start = 0;
        m.end = INT64_MAX;
    }
    bool must_wait = model_must_wait(&m, model_count);
    struct bench_call *call = lock_call(is_entry_model, m.owner, waits ? WAIT : NB, m.type, m.start, m.end);

    if (!waits || !must_wait) {
        ck_assert_int_eq(bench_run(call), must_wait ? -EAGAIN : 0);
    } else {
        bench_wind(call);
        m.call = call;
    }
    m.is_granted = !must_wait;
    if (!must_wait || waits)
        model[model_count++] = m;
}

static void
remove_object(unsigned *seed)
{
    remover = (unsigned)rand_r(seed) % 2;
    removal = bench_call(FOP_unlink, clients[remover]);
    removal->stk->call.loc.inode = inode_ref(object);
    bench_wind(removal);
}

static void
step(unsigned *seed)
{
    unsigned at = model_count ? (unsigned)rand_r(seed) % model_count : 0;

    if (!removal && !is_entry_model && rand_r(seed) % 20 == 0)
        remove_object(seed);
    else if (model_count == LOCKS_MAX || (model_count && rand_r(seed) % 100 < 45)) {
        for (unsigned tries = 0; tries < model_count && !model[at].is_granted; tries++)
            at = (at + 1) % model_count;
        if (model[at].is_granted)
            unlock_at(at);
    } else {
        request(seed);
    }
    model_settle();
    compare();
}

static void
against_model(bool is_entry, unsigned seed)
{
    is_entry_model = is_entry;
    finished = 0;
    for (int n = 0; n < STEPS; n++)
        step(&seed);
    ck_assert_uint_gt(finished, STEPS / 50); /* enough requests have waited */
    while (model_count || removal) {
        unsigned at = 0;

        while (at < model_count && !model[at].is_granted)
            at++;
        ck_assert_uint_lt(at, model_count); /* not all of them wait */
        unlock_at(at);
        model_settle();
        compare();
    }
}

START_TEST(inodelks_match_the_model)
{
    against_model(false, 4711 + (unsigned)_i);
}
END_TEST

START_TEST(entrylks_match_the_model)
{
    against_model(true, 815 + (unsigned)_i);
}
END_TEST

/* ---- many ------------------------------------------------------------------------------------ */

enum { MANY = 8000 };

static struct bench_call *waits[MANY];
static uint8_t many_owners[MANY][4];

static struct bench_call *
of_many(unsigned client, unsigned n, uint32_t cmd, uint32_t type, int64_t start, int64_t len)
{
    struct bench_call *call = lock_call(false, client * 3, cmd, type, start, start + len - 1);

    memcpy(many_owners[n], &n, sizeof n);
    call->stk->caller.lk_owner = (struct lk_owner){4, many_owners[n]};
    return call;
}

/* One client is granted 8,000 locks, and 8,000 locks of another client wait. An unlock examines only the lock
 * that waited for the freed range, not all 64 million pairs, which would take hours. */
START_TEST(unlocks_among_thousands)
{
    bool is_whole = _i; /* each waits for the whole range, not for a single lock */

    for (unsigned n = 0; n < MANY; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_READ, n * 10, 10)), 0);
    for (unsigned n = 0; n < MANY; n++) {
        waits[n] = is_whole ? of_many(1, n, WAIT, FLOCK_WRITE, 0, MANY * 10)
                            : of_many(1, n, WAIT, FLOCK_WRITE, n * 10, 10);
        bench_wind(waits[n]);
    }
    for (unsigned n = 0; n < MANY; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_UNLOCK, n * 10, 10)), 0);
    for (unsigned n = 0; n < MANY; n++) {
        ck_assert_int_eq(bench_result(waits[n]), 0);
        bench_free(waits[n]);
        ck_assert_int_eq(bench_run(is_whole ? of_many(1, n, NB, FLOCK_UNLOCK, 0, MANY * 10)
                                            : of_many(1, n, NB, FLOCK_UNLOCK, n * 10, 10)), 0);
    }
}
END_TEST

/* All are freed at once, and granted in slices. */
START_TEST(one_unlock_that_frees_thousands)
{
    ck_assert_int_eq(bench_run(of_many(0, 0, NB, FLOCK_WRITE, 0, MANY)), 0);
    for (unsigned n = 0; n < MANY; n++) {
        waits[n] = of_many(1, n, WAIT, FLOCK_READ, 0, MANY);
        bench_wind(waits[n]);
    }
    ck_assert_int_eq(bench_run(of_many(0, 0, NB, FLOCK_UNLOCK, 0, MANY)), 0);
    for (unsigned n = 0; n < MANY; n++) {
        ck_assert_int_eq(bench_result(waits[n]), 0);
        bench_free(waits[n]);
    }
} /* the locks are dropped with their client, also in slices */
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

START_TEST(locks_of_one_client)
{
    struct inode *other = bench_inode("p", 2, S_IFREG), *first = object;
    struct bench_call *last;

    for (unsigned n = 0; n < 20; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_READ, n, 1)), 0);
    ck_assert_int_eq(bench_run(of_many(0, 99, NB, FLOCK_READ, 99, 1)), -ENOLCK);
    ck_assert_int_eq(bench_run(of_many(0, 99, WAIT, FLOCK_READ, 99, 1)), -ENOLCK);
    ck_assert_int_eq(bench_run(lock_call(true, 0, NB, FLOCK_WRITE, 1, 1)), -ENOLCK);
    ck_assert_int_eq(bench_run(of_many(1, 99, NB, FLOCK_READ, 0, 1)), 0); /* another client has room */
    ck_assert_int_eq(bench_run(of_many(0, 3, NB, FLOCK_UNLOCK, 3, 1)), 0);
    last = of_many(0, 98, WAIT, FLOCK_WRITE, 0, 1); /* waiting locks count too */
    bench_wind(last);
    ck_assert(!bench_is_done(last));
    ck_assert_int_eq(bench_run(of_many(0, 99, NB, FLOCK_READ, 99, 1)), -ENOLCK);
    object = other; /* the bound of one client on the brick: 50 */
    for (unsigned n = 0; n < 20; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_READ, n, 1)), 0);
    inode_unref(other);
    object = other = bench_inode("q", 3, S_IFREG);
    for (unsigned n = 0; n < 10; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_READ, n, 1)), 0);
    ck_assert_int_eq(bench_run(of_many(0, 99, NB, FLOCK_READ, 99, 1)), -ENOLCK);
    ck_assert_int_eq(bench_run(of_many(0, 3, NB, FLOCK_UNLOCK, 3, 1)), 0);
    ck_assert_int_eq(bench_run(of_many(0, 99, NB, FLOCK_READ, 99, 1)), 0);
    inode_unref(other);
    object = first;
    ck_assert_int_eq(bench_run(of_many(0, 0, NB, FLOCK_UNLOCK, 0, 1)), 0);
    ck_assert_int_eq(bench_run(of_many(1, 99, NB, FLOCK_UNLOCK, 0, 1)), 0);
    ck_assert_int_eq(bench_result(last), 0);
    bench_free(last);
}
END_TEST

/* A domain is created for its first lock. If that lock is refused, no domain stays. */
START_TEST(a_refused_lock_leaves_no_domain)
{
    struct lock_inode *li;

    for (unsigned n = 0; n < 20; n++)
        ck_assert_int_eq(bench_run(of_many(0, n, NB, FLOCK_READ, n, 1)), 0);
    li = inode_ctx(object, bench_xl);
    for (unsigned n = 0; n < 10; n++) {
        char domain[16];
        struct bench_call *call = of_many(0, 99, NB, FLOCK_READ, 99, 1);

        snprintf(domain, sizeof domain, "domain-%u", n);
        call->stk->call.volume = domain;
        ck_assert_int_eq(bench_run(call), -ENOLCK);
        ck_assert_ptr_eq(li->domains.next, li->domains.prev);
    }
}
END_TEST

/* An unlock in the middle of a lock splits it in two. The bound limits that too. */
START_TEST(posix_locks_cut_in_pieces)
{
    struct fd *fd = fd_new(object, clients[0], 0, false);
    int last = 0;

    for (int64_t n = -1; n < 30 && !last; n++) {
        struct bench_call *call = bench_call(FOP_lk, clients[0]);
        struct fop_call *c = &call->stk->call;

        c->fd = fd_ref(fd);
        c->cmd = NB;
        c->type = n < 0 ? FLOCK_WRITE : FLOCK_UNLOCK;
        c->flock.start = n < 0 ? 0 : n * 2 + 1;
        c->flock.len = n < 0 ? 0 : 1;
        last = bench_run(call);
        ck_assert(last == 0 || n == 19);
    }
    ck_assert_int_eq(last, -ENOLCK);
    ck_assert_uint_eq(atomic_load(&clients[0]->locks), 20);
    fd_unref(fd);
    ck_assert_uint_eq(atomic_load(&clients[0]->locks), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("lock-queue");
    TCase *t = tcase_create("lock-queue"), *bounds = tcase_create("bounds");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, inodelks_match_the_model, 0, 3);
    tcase_add_loop_test(t, entrylks_match_the_model, 0, 2);
    tcase_add_loop_test(t, unlocks_among_thousands, 0, 2);
    tcase_add_test(t, one_unlock_that_frees_thousands);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(bounds, setup_bounds, teardown);
    tcase_add_test(bounds, locks_of_one_client);
    tcase_add_test(bounds, a_refused_lock_leaves_no_domain);
    tcase_add_test(bounds, posix_locks_cut_in_pieces);
    suite_add_tcase(s, bounds);
    return s;
}

#include "base/test-main.h"
