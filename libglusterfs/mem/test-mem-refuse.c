/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Resources that the system may refuse a process, one by one and for real: memory, address space, threads,
 * descriptors, keys, advice. The pool reports that, or works without, and continues. */
#include "mem/test-mem.h"
#include "base/test-child.h"

#include <linux/membarrier.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>

START_TEST(without_heap_gets_fail_with_enomem)
{
    if (tools_watch())
        return;
    struct mem_pool *p = mem_pool_new_fn(100, 0, "spans");
    struct mem_pool *n =
        mem_pool_new_opts(&(struct mem_pool_opts){.name = "n", .size = 100, .flags = MEM_POOL_NO_POOL});

    take_all_memory();
    errno = 0;
    void *o = mem_get(p);
    int spans_error = errno;
    void *passed = mem_get(n);
    int passed_error = errno;
    struct mem_pool *none = mem_pool_new_fn(8, 0, "none");
    int owner = mem_owner_new("none");
    give_memory_back();

    ck_assert_ptr_null(o);
    ck_assert_int_eq(spans_error, ENOMEM);
    ck_assert_ptr_null(passed);
    ck_assert_int_eq(passed_error, ENOMEM);
    ck_assert_ptr_null(none);
    ck_assert_int_eq(owner, -ENOMEM);
    ck_assert_ptr_nonnull(o = mem_get(p)); /* and everything works again */
    mem_put(o);
    ck_assert_int_eq(stats(p).live, 0);
    ck_assert_int_eq(stats(n).live, 0);
}
END_TEST

/* ---- an address space without room ----------------------------------------------------------- */

enum { HOLE = 4 << 20, PIECES = 4096 };
static struct {
    char *at;
    size_t bytes;
} filler[PIECES];
static unsigned pieces;

/* Fills all of it except a hole as large as the pool's request, which starts a page past a multiple of 2
 * MiB. */
static char *
fill_address_space(void)
{
    char *hole = NULL;

    for (size_t bytes = (size_t)1 << 46; bytes >= 4096; bytes /= 2) {
        void *p;

        while (pieces < PIECES &&
               (p = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)) !=
                   MAP_FAILED) {
            filler[pieces].at = p;
            filler[pieces++].bytes = bytes;
        }
    }
    for (unsigned i = 0; i < pieces && !hole; i++)
        if (filler[i].bytes >= 4 * HOLE)
            hole = (char *)(((uintptr_t)filler[i].at + HOLE) / HOLE * HOLE + 4096);
    if (hole)
        munmap(hole, HOLE);
    return hole;
}

static void
empty_address_space(char *hole)
{
    for (unsigned i = 0; i < pieces; i++) {
        char *at = filler[i].at, *end = at + filler[i].bytes;

        if (hole < at || hole >= end) {
            munmap(at, filler[i].bytes);
        } else { /* memory of the pool in this place stays */
            munmap(at, (size_t)(hole - at));
            munmap(hole + HOLE, (size_t)(end - hole - HOLE));
        }
    }
}

START_TEST(without_address_space_gets_fail_with_enomem)
{
    static void *o[100000];
    unsigned n = 0;

    if (tools_watch())
        return;
    struct mem_pool *p = mem_pool_new_fn(1000, 0, "narrow");
    mem_put(mem_get(p));
    mem_pools_trim(3); /* the thread has its block, the pool has nothing */
    mem_pools_trim(3);
    char *hole = fill_address_space();
    while (hole && n < 100000 && (o[n] = mem_get(p)))
        n++;
    int error = errno;
    empty_address_space(hole);
    ck_assert_ptr_nonnull(hole);
    ck_assert_int_eq(error, ENOMEM);
    ck_assert_uint_gt(n, 1000);  /* the 2 MiB that are aligned were found and used */
    ck_assert_uint_lt(n, 2 * 2097); /* and no more was taken */
    ck_assert(strstr(last_message, "narrow") && strstr(last_message, "out of memory"));
    for (unsigned i = 0; i < n; i++)
        memset(o[i], 1, 1000);
    mem_put_bulk(o, n);
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

/* ---- a thread without a block ---------------------------------------------------------------- */

static uint64_t
attached(void)
{
    struct mem_process_stats s;

    mem_pools_stats(&s);
    return s.threads;
}

/* Gets and puts of a thread that could not be attached: slower, but correct. */
static void
work_unattached(struct mem_pool *p)
{
    void *o[20];

    get_many(p, o, 20);
    ck_assert_int_eq(stats(p).live, 20);
    mem_put_bulk(o, 20);
    ck_assert_int_eq(stats(p).live, 0);
    ck_assert_uint_eq(stats(p).bypass, 40);
    ck_assert_uint_eq(attached(), 0);
}

START_TEST(a_thread_without_a_block_works_unattached)
{
    struct mem_pool *p = mem_pool_new_fn(100, 20, "blockless");

    if (tools_watch())
        return;
    ck_assert_int_eq(mem_pool_prefill(p, 0), 0);
    refuse(SYS_mmap, ENOMEM);
    work_unattached(p);
}
END_TEST

START_TEST(a_process_without_a_free_key_works_unattached)
{
    struct mem_pool *p = mem_pool_new_fn(100, 20, "keyless");
    pthread_key_t key;

    ck_assert_int_eq(mem_pool_prefill(p, 0), 0);
    while (pthread_key_create(&key, NULL) == 0)
        ;
    work_unattached(p);
}
END_TEST

static void *
use_and_go(void *pool)
{
    mem_put(mem_get(pool));
    return NULL;
}

/* The block exists, left by another thread, but the C library has no memory for the key's value. */
START_TEST(a_thread_without_a_specific_value_works_unattached)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "valueless");
    pthread_key_t key;
    pthread_t t;

    if (tools_watch())
        return;
    for (int i = 0; i < 64; i++) /* the first 32 are stored in the thread itself */
        ck_assert_int_eq(pthread_key_create(&key, NULL), 0);
    ck_assert_int_eq(pthread_create(&t, NULL, use_and_go, p), 0);
    pthread_join(t, NULL);
    take_all_memory();
    void *o = mem_get(p);
    uint64_t during = attached();
    mem_put(o);
    give_memory_back();
    ck_assert_ptr_nonnull(o);
    ck_assert_uint_eq(during, 0);
    mem_put(mem_get(p));
    ck_assert_uint_eq(attached(), 1);
}
END_TEST

/* ---- a sweeper that cannot start, be woken or wait ------------------------------------------- */

START_TEST(without_descriptors_init_fails_with_emfile)
{
    struct rlimit was, none = { 0 };

    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &was), 0);
    none.rlim_max = was.rlim_max;
    mem_settle();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &none), 0);
    int err = mem_pools_init();
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &was), 0);
    ck_assert_int_eq(err, -EMFILE);
    mem_pools_fini();
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_pools_fini();
}
END_TEST

START_TEST(without_threads_init_fails_with_eagain)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "alone");

    if (tools_watch())
        return;
#ifdef SYS_clone3
    refuse(SYS_clone3, EAGAIN);
#endif
    refuse(SYS_clone, EAGAIN);
    ck_assert_int_eq(mem_pools_init(), -EAGAIN);
    mem_put(mem_get(p));
    mem_pools_sweep_now();
    mem_pools_fini();
}
END_TEST

/* Returns the descriptor that wakes the sweeper. */
static int
wake_fd(void)
{
    char path[64], target[64];

    for (int fd = 0; fd < 1024; fd++) {
        snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
        ssize_t n = readlink(path, target, sizeof(target) - 1);

        if (n > 0 && !strncmp(target, "anon_inode:[eventfd]", (size_t)n))
            return fd;
    }
    return -1;
}

START_TEST(a_failed_wake_up_of_the_sweeper_is_reported)
{
    mem_pools_set_option("sweep", "20");
    ck_assert_int_eq(mem_pools_init(), 0);
    int fd = wake_fd();
    ck_assert_int_ge(fd, 0);
    refuse_when(SYS_write, 0, (uint32_t)fd, EIO);
    ck_assert_int_eq(mem_pools_set_option("sweep", "10"), 0);
    ck_assert(strstr(last_message, "cannot wake the sweeper"));
    /* The process ends without mem_pools_fini(), which would wait for a sweeper that may have fallen
     * asleep meanwhile and can no longer be woken. */
}
END_TEST

static void *
tell_id(void *tid)
{
    *(pid_t *)tid = (pid_t)syscall(SYS_gettid);
    return NULL;
}

START_TEST(the_sweeper_cannot_wait)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "unswept");
    char name[64];
    pthread_t t;
    pid_t tid;

    /* the first thread may start a thread of a tool; wait until both are gone */
    ck_assert_int_eq(pthread_create(&t, NULL, tell_id, &tid), 0);
    pthread_join(t, NULL);
    while (task_file(tid, "comm", name, sizeof(name)))
        usleep(1000);
#ifdef SYS_poll
    refuse(SYS_poll, ENOMEM);
#endif
    refuse(SYS_ppoll, ENOMEM);
    int threads = count_threads();
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_put(mem_get(p));
    while (count_threads() > threads)
        usleep(1000); /* it ends by itself */
    mem_pools_fini();
    mem_pools_sweep_now();
    ck_assert_int_eq(stats(p).live, 0);
}
END_TEST

/* ---- no barrier for a child ------------------------------------------------------------------ */

START_TEST(membarrier_refused_after_fork)
{
    struct mem_pool *p = mem_pool_new_fn(100, 0, "parent");
    struct mem_process_stats s;
    int status;

    mem_put(mem_get(p));
    mem_pools_stats(&s);
    if (!strcmp(s.handshake, "cooperative"))
        return; /* here it is refused from the start */
    refuse_when(SYS_membarrier, 0, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, EPERM);
    pid_t pid = test_fork();
    if (!pid) {
        mem_put(mem_get(p));
        mem_pools_sweep_now();
        mem_pools_stats(&s);
        exit(strcmp(s.handshake, "cooperative") ? 1 : 0);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert_int_eq(status, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        without_heap_gets_fail_with_enomem, without_address_space_gets_fail_with_enomem,
        a_thread_without_a_block_works_unattached, a_process_without_a_free_key_works_unattached,
        a_thread_without_a_specific_value_works_unattached, without_descriptors_init_fails_with_emfile,
        without_threads_init_fails_with_eagain, a_failed_wake_up_of_the_sweeper_is_reported,
        the_sweeper_cannot_wait, membarrier_refused_after_fork
    };
    Suite *s = suite_create("mem-refuse");
    TCase *t = tcase_create("refused");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof(tests) / sizeof(tests[0]); i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
