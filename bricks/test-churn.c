/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A brick is attached and detached over and over beside 80 busy bricks. Nothing is left of that brick: no
 * threads, descriptors or pooled objects, and the process is no larger than before (3 %).
 * KILN_CHURN_ROUNDS=1000 is the long form. */
#include "bricks/bricks.h"
#include "glusterfsd/brick-types.h"

#include "bricks/test-brick-stack.h"

#include <malloc.h>

enum { BUSY = 80, CALLERS = 4, ROUNDS = 30, WARM_UP = 100 };

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { IS_SANITIZED = 1 }; /* the sanitizer's record of freed memory is no leak */
#else
enum { IS_SANITIZED = 0 };
#endif

static char busy[BUSY][64], comes[64], volfile[96];

static void
setup(void)
{
    static char paths[BUSY][96];
    const char *list[BUSY];
    char error[1024] = "", name[16];

    process_setup();
    bricks_begin(&(struct bricks_hooks){.find_type = brick_type_find});
    brick_folder(comes, "comes");
    stack_file(volfile, comes, NULL, 0);
    for (unsigned i = 0; i < BUSY; i++) {
        snprintf(name, sizeof name, "busy-%u", i);
        brick_folder(busy[i], name);
        stack_file(paths[i], busy[i], NULL, 0);
        list[i] = paths[i];
    }
    ck_assert_msg(bricks_attach_all(list, NULL, BUSY, error, sizeof error) == 0, "%s", error);
}

static void
teardown(void)
{
    ck_assert(bricks_end());
    bricks_detach_all();
    process_teardown();
}

/* ---- load ------------------------------------------------------------------------------------ */

struct busy_thread {
    pthread_t thread;
    unsigned number, failures;
    uint64_t files;
};

static struct busy_thread callers[CALLERS];
static atomic_bool is_over;

/* The failures in a file's life. */
static unsigned
one_file(const char *brick, unsigned number)
{
    struct graph *g = bricks_find(brick);
    struct fd *fd = NULL;
    unsigned failures = 0;
    char name[32];

    if (!g)
        return 1;
    struct inode *root = inode_root(g->inodes);
    snprintf(name, sizeof name, "file-%u", number);
    failures += call_inodelk(g, root, FLOCK_WRITE) != 0;
    failures += call_create(g, root, name, &fd) != 0;
    failures += !fd || call_on_fd(g, FOP_writev, fd, "some bytes") != 0;
    fd_unref(fd);
    failures += call_inodelk(g, root, FLOCK_UNLOCK) != 0;
    failures += call_by_name(g, FOP_unlink, root, name) != 0;
    inode_unref(root);
    graph_unpin(g);
    return failures;
}

/* Each brick gets a call at least once, on a busy machine too: the first call to a brick makes objects that
 * stay (contexts of its root), and a brick without a call in the warm-up would seem to leak. */
static void *
work(void *arg)
{
    struct busy_thread *c = arg;
    unsigned i = c->number;

    rcu_register_thread();
    memcpy(call_owner, &c->number, sizeof c->number);
    do {
        c->failures += one_file(busy[i++ % BUSY], c->number);
        c->files++;
    } while (c->files < BUSY || !atomic_load(&is_over));
    rcu_unregister_thread();
    return NULL;
}

static uint64_t
churn(unsigned rounds)
{
    uint64_t files = 0;
    char error[1024];

    atomic_store(&is_over, false);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct busy_thread){.number = i + 1};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, work, &callers[i]), 0);
    }
    for (unsigned i = 0; i < rounds; i++) {
        int err = bricks_attach(volfile, NULL, true, error, sizeof error);

        ck_assert_msg(err == 0, "round %u: %s", i, error);
        struct graph *g = bricks_find(comes);
        uint16_t owner = g->owner;
        graph_unpin(g);
        ck_assert_uint_eq(one_file(comes, 0), 0);
        ck_assert_int_eq(bricks_detach(comes), 0);
        ck_assert_int_eq(mem_owner_balance(owner, NULL), 0);
    }
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_uint_eq(callers[i].failures, 0);
        files += callers[i].files;
    }
    return files;
}

/* ---- leftovers ------------------------------------------------------------------------------- */

static unsigned
thread_count(void)
{
    unsigned n = 0;
    DIR *dir = opendir("/proc/self/task");

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static unsigned long
rss_pages(void)
{
    unsigned long size, rss = 0;

    for (int i = 0; i < 3; i++)
        mem_pools_sweep_now(); /* cached objects, and numbers of former bricks, go back */
    malloc_trim(0);
    FILE *f = fopen("/proc/self/statm", "r");

    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(fscanf(f, "%lu %lu", &size, &rss), 2);
    fclose(f);
    return rss;
}

START_TEST(nothing_is_left_of_a_brick_that_comes_and_goes)
{
    const char *wanted = getenv("KILN_CHURN_ROUNDS");
    unsigned rounds = wanted ? (unsigned)strtoul(wanted, NULL, 10) : ROUNDS;

    /* Twice: the second round takes the memory that the threads of the first callers and a trim leave to the
     * allocator. */
    churn(WARM_UP);
    rss_pages();
    churn(WARM_UP);
    struct held before = held_now();
    unsigned threads = thread_count();
    unsigned long rss = rss_pages();

    uint64_t files = churn(rounds);
    unsigned long rss_after = rss_pages();
    expect_held(&before);
    printf("# %u rounds beside %d bricks, which made %llu files: RSS %lu pages before, %lu after; threads "
           "%u, %u\n",
           rounds, BUSY, (unsigned long long)files, rss, rss_after, threads, thread_count());
    ck_assert_uint_le(thread_count(), threads); /* a worker that the load had made may have retired */
    if (!IS_SANITIZED)
        ck_assert_uint_le(rss_after, rss + rss * 3 / 100);
    ck_assert_uint_eq(logged("graph-audit"), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("churn");
    TCase *t = tcase_create("churn");

    root_or_skip();
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 600);
    tcase_add_test(t, nothing_is_left_of_a_brick_that_comes_and_goes);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
