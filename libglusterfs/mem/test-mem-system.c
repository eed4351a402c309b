/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The pool and the system around it: allocations that fail, options and environment, figures, the sweeper's
 * thread, memory pressure. */
#include "mem/test-mem.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- the system's allocator fails ------------------------------------------------------------- */

/* The whole life of a pool; false as soon as something could not be had. */
static bool
live_through(void)
{
    void *o[200];
    int owner = mem_owner_new("f");
    struct mem_pool *p = mem_pool_new_fn(300, 0, "f"), *n;
    unsigned got = 0;
    bool ok = true;

    if (!p)
        return false;
    n = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "n", .size = 64, .flags = MEM_POOL_NO_POOL });
    ok = n && owner > 0;
    while (ok && got < 200 && (o[got] = owner > 0 && got % 2 ? mem_get_owner(p, (uint16_t)owner) : mem_get0(p)))
        memset(o[got++], 1, 300);
    ok = ok && got == 200 && mem_pool_prefill(p, 100) == 0;
    mem_put_bulk(o, got);
    void *m = ok ? mem_get(n) : NULL;
    ok = ok && m;
    mem_put(m);
    if (owner > 0) {
        ck_assert_int_eq(mem_owner_balance((uint16_t)owner, NULL), 0);
        mem_owner_retire((uint16_t)owner);
    }
    ck_assert_int_eq(stats(p).live, 0);
    mem_pools_check();
    mem_pool_destroy(p);
    mem_pool_destroy(n);
    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now();
    mem_pools_trim(3);
    return ok;
}

/* In a process that has nothing yet, the nth allocation fails, then all is well again. Returns whether there was an
 * nth one, by exit status. */
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

START_TEST(nth_allocation_fails)
{
    int64_t n = 0;
    int status = 0;

    while (status == 0 && ++n < 200) {
        pid_t pid = fork();

        if (!pid)
            fail_once_at(n);
        ck_assert_int_eq(waitpid(pid, &status, 0), pid);
        ck_assert_msg(WIFEXITED(status) && WEXITSTATUS(status) < 2, "allocation %d: status %x", (int)n, (unsigned)status);
    }
    ck_assert_int_gt(n, 8);
    ck_assert_int_lt(n, 200);
}
END_TEST

/* Every allocation from the nth on fails: gets end in NULL, puts never fail. */
START_TEST(memory_ends_for_good)
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

START_TEST(no_memory_at_all)
{
    struct mem_pool *p = mem_pool_new_opts(&(struct mem_pool_opts){ .name = "huge", .size = 15u << 20 });
    static void *o[100000];
    unsigned n = 0;

    if (MEM_ASAN || MEM_TSAN)
        return; /* they reserve address space of their own */
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

/* ---- figures and options ---------------------------------------------------------------------- */

static char dumped[8192];

static void
dump(void *arg, const char *key, const char *value)
{
    (void)arg;
    size_t at = strlen(dumped);
    snprintf(dumped + at, sizeof(dumped) - at, "%s=%s\n", key, value);
}

START_TEST(statedump_keys)
{
    static const char *const keys[] = {
        "pool-name=dumped", "xlator-name=storage/posix", "active-count=1", "sizeof-type=100", "padded-sizeof=128",
        "size=65536", "shared-pool=", "peak-sampled=", "cached-hot=", "cached-cold=", "depot-magazines=",
        "depot-cold-magazines=", "magazine-size=", "gets=1", "puts=0", "hits-hot=", "hits-cold=", "hits-depot=",
        "system-allocs=", "sweep-freed=", "bypass=", "double-free=", "wrong-pool=", "spans=1", "spans-empty=",
        "bytes-resident=65536", "owner=id 1, brick b1, active 1, bytes 128", "sweep-interval-ms=10000", "sweep-count=",
        "sweep-last-us=", "membarrier-us-max=", "handshake=", "threads-attached=1", "threads-skipped=",
        "demote-requests=", "trim-count=", "cap-bytes=", "released-bytes=", "-----=-----" };
    struct mem_pool *p =
        mem_pool_new_opts(&(struct mem_pool_opts){ .name = "dumped", .xlator = "storage/posix", .size = 100 });
    void *o = mem_get_owner(p, (uint16_t)mem_owner_new("b1"));

    mem_pools_dump(dump, NULL);
    for (size_t i = 0; i < sizeof(keys) / sizeof(keys[0]); i++)
        ck_assert_msg(strstr(dumped, keys[i]), "no %s in\n%s", keys[i], dumped);
    mem_put(o);
}
END_TEST

START_TEST(options)
{
    ck_assert_int_eq(mem_pools_set_option("nonsense", "1"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("sweep", "-1"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("sweep", "12x"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("cap", "99999999999999999999999"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("backend", "tape"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    ck_assert_int_eq(mem_pools_set_mode("trace:0"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_mode("maybe"), -EINVAL);
    ck_assert_int_eq(mem_pools_set_mode("trace:7"), 0);
    ck_assert_str_eq(mem_pools_mode(), "trace");
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    mem_pool_new_fn(8, 0, "first");
    ck_assert_int_eq(mem_pools_set_mode("off"), -EBUSY);
    ck_assert_int_eq(mem_pools_set_option("backend", "malloc"), -EBUSY);
    ck_assert_int_eq(mem_pools_set_option("sweep", "500"), 0);
    ck_assert_str_eq(mem_pools_mode(), "on");
}
END_TEST

START_TEST(sweeper_sleeps_and_wakes)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "sleepy");
    struct mem_process_stats a, b;
    void *o;

    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    for (int round = 0; round < 3; round++) {
        o = mem_get(p);
        mem_put(o);
        for (int i = 0; i < 1000 && stats(p).bytes_resident; i++)
            usleep(2000);
        ck_assert_uint_eq(stats(p).bytes_resident, 0);
    }
    usleep(100000);
    mem_pools_stats(&a);
    usleep(200000); /* forty periods */
    mem_pools_stats(&b);
    ck_assert_uint_le(b.sweeps - a.sweeps, 1);
    mem_pools_fini();
    mem_pools_fini();
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

START_TEST(malloc_backend)
{
    ck_assert_int_eq(mem_pools_set_option("backend", "malloc"), 0);
    struct mem_pool *p = mem_pool_new_fn(256, 0, "backed");
    static void *o[20000];

    get_many(p, o, 20000);
    mem_put_bulk(o, 20000);
    mem_put(o[0]);
    ck_assert(strstr(last_message, "backed") && strstr(last_message, "double free"));
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    ck_assert_uint_eq(stats(p).bytes_resident, 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

/* ---- pressure --------------------------------------------------------------------------------- */

static char pressure_file[] = "/tmp/mem-pressure-XXXXXX";

static size_t
pressure_file_is(const char *text)
{
    int fd = open(pressure_file, O_WRONLY | O_TRUNC);

    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    return (size_t)close(fd);
}

START_TEST(pressure_asks_for_trims)
{
    struct pollfd fds[2];
    char back[64] = "";
    int fd = mkstemp(pressure_file);

    ck_assert_int_ge(fd, 0);
    setenv("MEMORY_PRESSURE_WATCH", pressure_file, 1);
    setenv("MEMORY_PRESSURE_WRITE", "c29tZSAyMDAwMDAgMjAwMDAwMA==", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(pread(fd, back, sizeof(back), 0), 19);
    ck_assert_str_eq(back, "some 200000 2000000"); /* the service manager's words were written */
    ck_assert_int_ge(fds[0].fd, 0);
    if (fds[1].fd >= 0)
        close(fds[1].fd);
    fds[0].revents = fds[1].revents = 0;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    fds[0].revents = POLLPRI;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 1);
    ck_assert_int_eq(mem_pressure_level(fds, 2), 2); /* and it goes on */
    fds[0].revents = 0;
    fds[1].fd = open(pressure_file, O_RDONLY);
    pressure_file_is("low 0\nhigh 3\nmax 1\noom 0\n");
    fds[1].revents = POLLPRI;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 2);
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0); /* nothing new */
    pressure_file_is("");
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    fds[1].revents = 0;
    fds[0].revents = POLLERR;
    ck_assert_int_eq(mem_pressure_level(fds, 2), 0);
    ck_assert_int_eq(fds[0].fd, -1); /* not polled again */
    mem_pressure_close(fds, 2);

    setenv("MEMORY_PRESSURE_WRITE", "not base64!", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    mem_pressure_close(fds, 2);
    setenv("MEMORY_PRESSURE_WATCH", "/dev/null", 1);
    ck_assert_int_eq(mem_pressure_open(fds, 2), 2);
    ck_assert_int_eq(fds[0].fd, -1);
    mem_pressure_close(fds, 2);
    close(fd);
    unlink(pressure_file);
}
END_TEST

/* A fifo stands in for the kernel's file: it cannot raise POLLPRI, but its loss raises POLLHUP, and the sweeper must
 * neither spin nor die. */
START_TEST(sweeper_survives_the_loss_of_its_pressure_file)
{
    char path[] = "/tmp/mem-fifo-XXXXXX";
    struct mem_pool *p = mem_pool_new_fn(100, 0, "fifo");
    int fd;

    ck_assert_ptr_nonnull(mkdtemp(path));
    ck_assert_int_eq(rmdir(path), 0);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    setenv("MEMORY_PRESSURE_WATCH", path, 1);
    unsetenv("MEMORY_PRESSURE_WRITE");
    mem_pools_set_option("sweep", "5");
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_put(mem_get(p));
    for (fd = -1; fd < 0; usleep(1000))
        fd = open(path, O_WRONLY | O_NONBLOCK); /* once the sweeper has its end open */
    close(fd);
    while (stats(p).bytes_resident)
        usleep(1000);
    mem_pools_fini();
    unlink(path);
}
END_TEST

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
        nth_allocation_fails, memory_ends_for_good, no_memory_at_all, statedump_keys, sweeper_sleeps_and_wakes,
        malloc_backend, pressure_asks_for_trims, sweeper_survives_the_loss_of_its_pressure_file,
    };
    Suite *s = suite_create("mem-system");
    TCase *t = tcase_create("system"), *o = tcase_create("options"), *e = tcase_create("environment");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    tcase_add_test(o, options);
    suite_add_tcase(s, t);
    suite_add_tcase(s, o);
    tcase_add_checked_fixture(e, environment_setup, NULL);
    tcase_add_test(e, environment_is_read_and_calls_win);
    suite_add_tcase(s, e);
    return s;
}

#include "base/test-main.h"
