/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool and the system around it: allocations that fail, options and environment, statistics, the
 * sweeper's thread. */
#define TEST_MEM_CLOCK
#include "mem/test-mem.h"
#include "base/test-child.h"

#include <sys/wait.h>

/* ---- the system's allocator fails ------------------------------------------------------------ */

static void
ignore_audit(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where)
{
    (void)pool;
    (void)bytes;
    (void)where;
    *(int64_t *)arg += count;
}

static void
ignore_dump(void *arg, const char *key, const char *value)
{
    *(size_t *)arg += strlen(key) + strlen(value);
}

/* Gets and puts of every kind. False as soon as a get has failed; nothing stays behind. */
static bool
use_every_call(struct mem_pool *p, struct mem_pool *n, uint16_t owner)
{
    void *o[50], *m;
    unsigned got = 0;
    bool ok = mem_get_bulk(p, o, 10) == 0;

    got = ok ? 10 : 0;
    for (unsigned i = 0; ok && i < 40; i++) {
        void *object = i % 4 == 0   ? mem_get0(p)
                       : i % 4 == 1 ? mem_get_owner(p, owner)
                       : i % 4 == 2 ? mem_get0_owner(p, owner)
                                    : mem_get(p);

        ok = object != NULL;
        if (ok)
            memset(o[got++] = object, 1, 300);
    }
    ok = ok && mem_pool_prefill(p, 60) == 0;
    ok = (m = mem_get(n)) && ok;
    mem_put(m);
    ok = (m = mem_get_t(9)) && ok;
    mem_put_t(9, m);
    mem_pool_idle();
    mem_put_bulk(o, got);
    return ok;
}

struct visit {
    struct mem_pool *p, *n;
    uint16_t owner;
    bool ok;
};

static void *
visitor(void *arg)
{
    struct visit *v = arg;

    v->ok = use_every_call(v->p, v->n, v->owner);
    mem_pool_thread_destructor();
    v->ok &= use_every_call(v->p, v->n, v->owner);
    return NULL;
}

/* Calls every function of mem-pool.h, over the whole life of a pool; false as soon as an allocation has
 * failed. */
static bool
live_through(void)
{
    struct mem_process_stats figures;
    struct mem_pool *typed, *made, *p = mem_pool_new_fn(300, 0, "f"), *n;
    int owner = mem_owner_new("f");
    size_t dumped = 0;
    int64_t audited = 0;
    bool ok = p && owner > 0;
    pthread_t t;

    n = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "n", .size = 64, .flags = MEM_POOL_NO_POOL });
    typed = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "t", .xlator = "x", .size = 64, .id = 9 });
    made = mem_pool_new(struct visit, 10);
    ok = n && typed && made && ok && mem_pools_init() == 0;
    if (ok) {
        struct visit v = { p, n, (uint16_t)owner, false };

        ok = pthread_create(&t, NULL, visitor, &v) == 0;
        if (ok)
            pthread_join(t, NULL);
        ok = use_every_call(p, n, (uint16_t)owner) && v.ok && ok;
        ok = mem_pool_prefill(made, 0) == 0 && ok;
    }
    mem_pools_fini();
    mem_pools_stats(&figures);
    mem_pools_dump(ignore_dump, &dumped);
    ck_assert_uint_gt(dumped, 100);
    if (owner > 0) {
        ck_assert_int_eq(mem_owner_audit((uint16_t)owner, ignore_audit, &audited), 0);
        ck_assert_int_eq(mem_owner_balance((uint16_t)owner, NULL) + audited, 0);
        mem_owner_retire((uint16_t)owner);
    }
    ck_assert_int_eq(p ? stats(p).live : 0, 0);
    mem_pools_check();
    mem_pool_destroy(p);
    mem_pool_destroy(n);
    mem_pool_destroy(typed);
    mem_pool_destroy(made);
    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now();
    mem_pools_trim(3);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
    return ok;
}

/* In a new process, the nth allocation fails, then all succeed. The exit status tells whether there was an
 * nth allocation. */
static void
fail_once_at(int64_t n)
{
    mem_test_fail_at = n;
    live_through();
    bool too_few = mem_test_fail_at > 0;
    mem_test_fail_at = 0;
    mem_pools_check();
    bool well = live_through();
    exit(!well ? 2 : too_few ? 1 : 0);
}

static const char *const ways[][2] = { { "mode", "on" }, { "handshake", "cooperative" }, { "mode", "off" },
                                       { "mode", "poison" }, { "mode", "trace:1" } };
enum { WAYS = sizeof(ways) / sizeof(ways[0]) };

START_TEST(nth_allocation_fails)
{
    int64_t n = 0;
    int status = 0;

    ck_assert_int_eq(mem_pools_set_option(ways[_i][0], ways[_i][1]), 0);
    while (status == 0 && n < 2000) {
        n += n < 40 ? 1 : 7; /* allocations of single objects are many and alike */
        pid_t pid = test_fork();

        if (!pid)
            fail_once_at(n);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "allocation %d: status %x", (int)n,
                      (unsigned)status);
    }
    ck_assert_int_gt(n, 8);
    ck_assert_int_lt(n, 2000);
}
END_TEST

/* Every allocation from the nth on fails: gets end in NULL, puts never fail. */
START_TEST(without_memory_gets_fail_and_puts_work)
{
    struct mem_pool *p = mem_pool_new_fn(300, 0, "end");
    static void *o[30000];
    unsigned n = 0;

    get_many(p, o, 500);
    mem_test_fail_at = INT64_MAX;
    mem_test_fail_always = true;
    for (n = 500; n < 29000 && (o[n] = mem_get(p)); n++)
        ;
    ck_assert_uint_lt(n, 29000);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert_int_eq(mem_get_bulk(p, o + n, 10), -ENOMEM);
    ck_assert_ptr_null(mem_get0(p));
    ck_assert_ptr_null(mem_get_owner(p, 1));
    ck_assert_int_eq(mem_pool_prefill(p, 1000), -ENOMEM);
    ck_assert_ptr_null(mem_pool_new_fn(8, 0, "none"));
    ck_assert_int_eq(mem_owner_new("none"), -ENOMEM);
    ck_assert(strstr(last_message, "end") && strstr(last_message, "out of memory"));
    mem_put_bulk(o, n);
    ck_assert_int_eq(stats(p).live, 0);
    mem_pools_trim(3);
    mem_test_fail_always = false;
    mem_test_fail_at = 0;
    get_many(p, o, 500);
    mem_put_bulk(o, 500);
}
END_TEST

START_TEST(a_prefill_without_memory_fails)
{
    struct mem_pool *p = mem_pool_new_fn(300, 100, "unfilled");

    for (int n = 1; n < 3; n++) { /* none for a magazine; none for an object */
        mem_test_fail_at = n;
        ck_assert_int_eq(mem_pool_prefill(p, 20000), -ENOMEM);
        mem_test_fail_at = 0;
        mem_pools_trim(3);
        mem_pools_trim(3);
    }
    ck_assert_int_eq(mem_pool_prefill(p, 0), 0);
}
END_TEST

START_TEST(gets_fail_at_the_limit_of_address_space)
{
    struct mem_pool *p = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "huge", .size = 15u << 20 });
    static void *o[100000];
    unsigned n = 0;

    if (MEM_ASAN || MEM_TSAN)
        return; /* such tools reserve address space themselves */
    struct rlimit limit = { .rlim_cur = 1u << 30, .rlim_max = 1u << 30 };
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &limit), 0);
    while (n < 100000 && (o[n] = mem_get(p)))
        n++;
    ck_assert_uint_lt(n, 100000);
    ck_assert_int_eq(errno, ENOMEM);
    ck_assert(strstr(last_message, "huge") && strstr(last_message, "out of memory"));
    mem_put_bulk(o, n);
    ck_assert_ptr_nonnull(o[0] = mem_get(p));
    mem_put(o[0]);
}
END_TEST

/* ---- figures and options --------------------------------------------------------------------- */

static char dumped[8192];

static void
dump(void *arg, const char *key, const char *value)
{
    (void)arg;
    size_t at = strlen(dumped);
    snprintf(dumped + at, sizeof(dumped) - at, "%s=%s\n", key, value);
}

START_TEST(a_dump_has_all_keys)
{
    static const char *const keys[] = {"pool-name=dumped",
                                       "xlator-name=storage/posix",
                                       "active-count=1",
                                       "sizeof-type=100",
                                       "padded-sizeof=128",
                                       "size=65536",
                                       "shared-pool=",
                                       "peak-sampled=",
                                       "cached-hot=",
                                       "cached-cold=",
                                       "depot-magazines=",
                                       "depot-cold-magazines=",
                                       "magazine-size=",
                                       "gets=1",
                                       "puts=0",
                                       "hits-hot=",
                                       "hits-cold=",
                                       "hits-depot=",
                                       "system-allocs=",
                                       "sweep-freed=",
                                       "bypass=",
                                       "double-free=",
                                       "wrong-pool=",
                                       "spans=1",
                                       "spans-empty=",
                                       "bytes-resident=65536",
                                       "owner=id 1, brick b1, active 1, bytes 128",
                                       "sweep-interval-ms=10000",
                                       "sweep-count=",
                                       "sweep-last-us=",
                                       "membarrier-us-max=",
                                       "handshake=",
                                       "threads-attached=1",
                                       "threads-skipped=",
                                       "demote-requests=",
                                       "trim-count=",
                                       "cap-bytes=",
                                       "released-bytes=",
                                       "-----=-----"};
    struct mem_pool *p =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "dumped", .xlator = "storage/posix", .size = 100});
    void *o = mem_get_owner(p, (uint16_t)mem_owner_new("b1"));

    mem_pools_dump(dump, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_msg(strstr(dumped, keys[i]), "no %s in\n%s", keys[i], dumped);
    /* readers of GlusterFS's statedumps find their seven keys, first and in their order */
    const char *at = strstr(dumped, "-----=-----\npool-name=");
    ck_assert_ptr_nonnull(at);
    for (int i = 0; i < 7; i++) {
        static const char *const stock[] = { "pool-name=", "xlator-name=", "active-count=", "sizeof-type=",
                                             "padded-sizeof=", "size=", "shared-pool=" };

        at = strchr(at, '\n') + 1;
        ck_assert_msg(!strncmp(at, stock[i], strlen(stock[i])), "%s is not the next of\n%s", stock[i],
                      dumped);
    }
    mem_put(o);
}
END_TEST

START_TEST(invalid_options_and_late_modes_are_refused)
{
    ck_assert_int_eq(mem_pools_set_option("nonsense", "1"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("sweep", "-1"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("sweep", "12x"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("cap", "99999999999999999999999"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("handshake", "firm"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    ck_assert_int_eq(mem_pools_set_mode("trace:0"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_mode("maybe"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_mode("trace:7"), 0);
    ck_assert_str_eq(mem_pools_mode(), "trace");
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    mem_pool_new_fn(8, 0, "first");
    ck_assert_int_eq(mem_pools_set_mode("off"), -EBUSY);
    ck_assert_int_eq(mem_pools_set_option("handshake", "auto"), -EBUSY);
    ck_assert_int_eq(mem_pools_set_option("sweep", "500"), 0);
    ck_assert_str_eq(mem_pools_mode(), "on");
}
END_TEST

START_TEST(sweeper_sleeps_and_wakes)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "sleepy");
    void *o;

    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int round = 0; round < 3; round++) {
        o = mem_get(p);
        mem_put(o);
        while (stats(p).bytes_resident) /* or until the test's time is up */
            usleep(2000);
    }
    mem_pools_fini();
    mem_pools_fini();
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

/* ---- the sweeper's thread -------------------------------------------------------------------- */

/* Number of voluntary context switches of a thread of that name; -1 if there is none. */
static long
voluntary_switches(const char *thread)
{
    pid_t tid = thread_named(thread);
    char text[4096], *at;

    if (!tid || !task_file(tid, "status", text, sizeof(text)))
        return -1;
    at = strstr(text, "\nvoluntary_ctxt_switches:");
    return at ? atol(strchr(at, ':') + 1) : -1;
}

/* Sooner or later the sweeper sleeps through forty of its periods, and then again. A slow machine takes
 * longer to get there. */
START_TEST(the_sweeper_sleeps_when_no_memory_is_cached)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "idle");
    static void *o[5000];
    int quiet = 0;

    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    get_many(p, o, 5000);
    mem_put_bulk(o, 5000);
    while (stats(p).bytes_resident)
        usleep(5000);
    while (quiet < 2) {
        long before = voluntary_switches("mem-sweep");

        usleep(200000);
        long after = voluntary_switches("mem-sweep");
        if (before >= 0)
            quiet = before == after ? quiet + 1 : 0;
    }
    mem_put(mem_get(p)); /* the sweeper is asleep, not gone */
    while (stats(p).bytes_resident)
        usleep(5000);
    mem_pools_fini();
    ck_assert_int_eq(voluntary_switches("mem-sweep"), -1);
}
END_TEST

START_TEST(a_shorter_period_counts_at_once)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "sooner");

    mem_pools_set_option("sweep", "3600000");
    ck_assert_int_eq(mem_pools_init(), 0);
    wait_until_sweeper_polls();
    mem_put(mem_get(p));
    ck_assert_int_eq(mem_pools_set_option("sweep", "5"), 0);
    while (stats(p).bytes_resident) /* or until the test's time is up */
        usleep(5000);
    mem_pools_fini();
}
END_TEST

/* No pool has memory to free, but a span of magazines is empty and must be given back before the sweeper
 * may sleep. */
START_TEST(cached_magazines_keep_the_sweeper_awake)
{
    struct mem_process_stats s;

    ck_assert_ptr_nonnull(mem_pool_new_fn(100, 0, "none"));
    mem_magazine_free(mem_magazine_new(64));
    ck_assert(!mem_magazines_quiet());
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    do {
        usleep(5000);
        mem_pools_stats(&s);
    } while (s.resident_bytes);
    mem_pools_fini();
    ck_assert(mem_magazines_quiet());
}
END_TEST

static void *
settle(void *tid)
{
    __atomic_store_n((pid_t *)tid, (pid_t)syscall(SYS_gettid), __ATOMIC_RELEASE);
    mem_settle();
    return NULL;
}

/* Both find the mode open and wait for the lock; the second finds it fixed. */
START_TEST(two_threads_may_choose_the_mode_at_once)
{
    static pid_t tid[2];
    pthread_t t[2];

    mem_option_fork(0); /* takes the lock */
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&t[i], NULL, settle, &tid[i]), 0);
    for (int i = 0; i < 2; i++) {
        while (!__atomic_load_n(&tid[i], __ATOMIC_ACQUIRE))
            usleep(1000);
        wait_until_in(tid[i], SYS_futex);
    }
    ck_assert(!mem_set.latched);
    mem_option_fork(1);
    for (int i = 0; i < 2; i++)
        pthread_join(t[i], NULL);
    ck_assert(mem_set.latched);
}
END_TEST

/* A daemon starts its sweeper after the last fork; a process that had a sweeper before starts it again. */
START_TEST(a_child_of_fork_starts_its_own_sweeper)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "daemon");
    int status;

    mem_put(mem_get(p));
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    pid_t pid = test_fork();
    if (!pid) {
        mem_put(mem_get(p));
        if (voluntary_switches("mem-sweep") >= 0)
            exit(1);
        if (MEM_TSAN)
            exit(0); /* TSan allows no threads in a child */
        if (mem_pools_init() != 0)
            exit(2);
        while (stats(p).bytes_resident)
            usleep(1000);
        mem_pools_fini();
        exit(mem_pools_fini_strict() ? 3 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_msg(status == 0, "the child ended with %x", (unsigned)status);
    mem_pools_fini();
}
END_TEST

/* ---- messages -------------------------------------------------------------------------------- */

START_TEST(repeats_are_counted)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "often");
    void *o = mem_get(p);

    mem_put(o);
    for (int i = 0; i < 15; i++)
        mem_put(o);
    int said = messages;
    ck_assert_int_ge(said, 10);
    clock_ahead_s = 11;
    mem_put(o);
    clock_ahead_s = 0;
    ck_assert_int_eq(messages, said + 1);
    ck_assert_msg(said > 10 || strstr(last_message, "(5 more like this were not shown)"), "said: %s",
                  last_message);
}
END_TEST

START_TEST(messages_go_to_stderr)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "loud");
    int ends[2], was = dup(STDERR_FILENO);
    char text[300] = "";
    void *o = mem_get(p);

    mem_put(o);
    ck_assert_int_eq(pipe(ends), 0);
    mem_pools_set_message_fn(NULL);
    dup2(ends[1], STDERR_FILENO);
    mem_put(o);
    dup2(was, STDERR_FILENO);
    close(ends[1]); /* else the read would not end without a message */
    ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
    ck_assert(strstr(text, "loud") && strstr(text, "double free") && strchr(text, '\n'));
}
END_TEST

/* ---- the environment ------------------------------------------------------------------------- */

static void
environment_setup(void)
{
    setenv("KILN_POOLS", "poison", 1);
    setenv("KILN_POOL_SWEEP", "1234", 1);
    setenv("KILN_POOL_RELEASE", "sometimes", 1);
    setenv("KILN_POOL_CAP", "5000000", 1);
    setenv("KILN_POOL_ABORT", "0", 1);
    mem_pools_set_message_fn(keep_message);
}

START_TEST(environment_is_read_and_calls_win)
{
    struct mem_process_stats s;

    ck_assert_str_eq(mem_pools_mode(), "poison");
    ck_assert(strstr(last_message, "KILN_POOL_RELEASE=sometimes"));
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    ck_assert_int_eq(mem_pools_set_option("cap", "6000000"), 0);
    mem_pools_stats(&s);
    ck_assert_str_eq(s.mode, "on");
    ck_assert_uint_eq(s.sweep_ms, 1234);
    ck_assert_uint_eq(s.cap_bytes, 6000000);
    ck_assert_str_eq(s.release, "drop");
    ck_assert_int_eq(mem_pools_set_option("abort", "yes"), -EINVAL);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        without_memory_gets_fail_and_puts_work,
        a_prefill_without_memory_fails,
        gets_fail_at_the_limit_of_address_space,
        a_dump_has_all_keys,
        sweeper_sleeps_and_wakes,
        the_sweeper_sleeps_when_no_memory_is_cached,
        a_shorter_period_counts_at_once,
        cached_magazines_keep_the_sweeper_awake,
        repeats_are_counted,
        messages_go_to_stderr,
        a_child_of_fork_starts_its_own_sweeper,
    };
    Suite *s = suite_create("mem-system");
    TCase *t = tcase_create("system"), *o = tcase_create("options"), *e = tcase_create("environment");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    tcase_add_loop_test(t, nth_allocation_fails, 0, WAYS);
    tcase_add_test(o, invalid_options_and_late_modes_are_refused);
    tcase_add_test(o, two_threads_may_choose_the_mode_at_once);
    suite_add_tcase(s, t);
    suite_add_tcase(s, o);
    tcase_add_checked_fixture(e, environment_setup, NULL);
    tcase_add_test(e, environment_is_read_and_calls_win);
    suite_add_tcase(s, e);
    return s;
}

#include "base/test-main.h"
