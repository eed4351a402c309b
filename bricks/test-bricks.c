/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A brick's life: whole stock stacks are attached and detached while calls run on them and on a neighbour; a
 * failed attach leaves nothing behind; options change as a whole or not at all. */
#include "bricks/bricks.h"
#include "glusterfsd/brick-types.h"

#include "bricks/test-brick-stack.h"
#include "graph/unbuilt.h"
#include "xlators/features/locks/locks-internal.h"
#include "xlators/storage/posix/posix-internal.h"

enum { CALLERS = 4, ROUNDS = 200, CALLS_A_ROUND = 12 };

static char stays[64], comes[64];

static void
setup(void)
{
    process_setup();
    bricks_begin(&(struct bricks_hooks){.find_type = brick_type_find});
    brick_folder(stays, "stays");
    brick_folder(comes, "comes");
}

static void
teardown(void)
{
    process_teardown();
}

/* ---- callers --------------------------------------------------------------------------------- */

/* A thread that works on a brick whenever there is a brick of that name. */
struct worker_thread {
    pthread_t thread;
    const char *brick;
    unsigned number;
    uint64_t failures;
};

static struct worker_thread callers[CALLERS];
static atomic_bool is_over;
static pthread_mutex_t progress_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t progress = PTHREAD_COND_INITIALIZER;
static uint64_t calls_done[2]; /* of the staying brick, of the other */

static void
made_progress(const char *brick)
{
    pthread_mutex_lock(&progress_lock);
    calls_done[brick == comes]++;
    pthread_cond_broadcast(&progress);
    pthread_mutex_unlock(&progress_lock);
}

static void
wait_for_calls(unsigned which, uint64_t more)
{
    pthread_mutex_lock(&progress_lock);
    uint64_t until = calls_done[which] + more;
    while (calls_done[which] < until)
        pthread_cond_wait(&progress, &progress_lock);
    pthread_mutex_unlock(&progress_lock);
}

/* A file's life, with a lock that the other threads want too. A failure is counted: nothing here may fail. */
static unsigned
one_file(struct graph *g, const char *brick, unsigned number)
{
    struct inode *root = inode_root(g->inodes);
    struct fd *fd = NULL;
    char name[32];
    unsigned failures = 0;

    snprintf(name, sizeof name, "file-%u", number);
    failures += call_inodelk(g, root, FLOCK_WRITE) != 0;
    failures += call_create(g, root, name, &fd) != 0;
    made_progress(brick);
    if (fd) {
        failures += call_on_fd(g, FOP_writev, fd, "some bytes") != 0;
        failures += call_on_fd(g, FOP_fstat, fd, NULL) != 0;
        failures += call_on_fd(g, FOP_flush, fd, NULL) != 0;
    }
    made_progress(brick);
    fd_unref(fd);
    failures += call_inodelk(g, root, FLOCK_UNLOCK) != 0;
    failures += call_by_name(g, FOP_lookup, root, name) != 0;
    failures += call_by_name(g, FOP_unlink, root, name) != 0;
    made_progress(brick);
    inode_unref(root);
    return failures;
}

static void *
work(void *arg)
{
    struct worker_thread *w = arg;

    rcu_register_thread();
    memcpy(call_owner, &w->number, sizeof call_owner);
    while (!atomic_load(&is_over)) {
        struct graph *g = bricks_find(w->brick);

        if (!g) {
            sched_yield();
            continue;
        }
        w->failures += one_file(g, w->brick, w->number);
        /* A second pin while the first is held: refused when the brick is on its way out, and the file is
         * made all the same. */
        if (graph_pin(g)) {
            w->failures += one_file(g, w->brick, w->number);
            graph_unpin(g);
        }
        graph_unpin(g);
    }
    rcu_unregister_thread();
    return NULL;
}

static void
callers_start(void)
{
    atomic_store(&is_over, false);
    for (unsigned i = 0; i < CALLERS; i++) {
        callers[i] = (struct worker_thread){.brick = i & 1 ? comes : stays, .number = i};
        ck_assert_int_eq(pthread_create(&callers[i].thread, NULL, work, &callers[i]), 0);
    }
}

static void
callers_end(void)
{
    atomic_store(&is_over, true);
    for (unsigned i = 0; i < CALLERS; i++) {
        pthread_join(callers[i].thread, NULL);
        ck_assert_msg(callers[i].failures == 0, "caller %u of %s: %llu calls failed", i, callers[i].brick,
                      (unsigned long long)callers[i].failures);
    }
}

/* ---- attach and detach ----------------------------------------------------------------------- */

START_TEST(a_brick_comes_and_goes_under_load)
{
    brick_attach(stays);
    struct held before = held_now();

    callers_start();
    for (int i = 0; i < ROUNDS; i++) {
        uint16_t owner = brick_attach(comes)->owner;

        wait_for_calls(1, CALLS_A_ROUND);
        ck_assert_int_eq(bricks_detach(comes), 0);
        ck_assert_int_eq(mem_owner_balance(owner, NULL), 0);
        ck_assert_ptr_null(bricks_find(comes));
        ck_assert_int_eq(bricks_detach(comes), -ENOENT);
    }
    wait_for_calls(0, CALLS_A_ROUND);
    callers_end();
    /* The neighbour has had inodes and the like meanwhile; only the number of descriptors has to be as
     * before. */
    ck_assert_uint_eq(held_now().descriptors, before.descriptors);
    ck_assert_int_eq(bricks_detach(stays), 0);
}
END_TEST

START_TEST(nothing_of_a_brick_is_left)
{
    struct held before = held_now();
    struct fd *fd;

    for (int i = 0; i < ROUNDS; i++) {
        struct graph *g = brick_attach(comes);
        struct inode *root = inode_root(g->inodes);
        uint16_t owner = g->owner;

        ck_assert_int_eq(call_create(g, root, "kept", &fd), i == 0 ? 0 : EEXIST);
        fd_unref(fd);
        ck_assert_int_eq(call_by_name(g, FOP_lookup, root, "kept"), 0);
        ck_assert_int_eq(call_inodelk(g, root, FLOCK_WRITE), 0);
        ck_assert_int_eq(call_inodelk(g, root, FLOCK_UNLOCK), 0);
        inode_unref(root);
        ck_assert_int_eq(bricks_detach(comes), 0);
        ck_assert_int_eq(mem_owner_balance(owner, NULL), 0);
    }
    expect_held(&before);
}
END_TEST

/* Detaching waits for each holder of a pin, and no caller gets a new pin. */
static void *
detach_it(void *arg)
{
    (void)arg;
    rcu_register_thread();
    ck_assert_int_eq(bricks_detach(comes), 0);
    rcu_unregister_thread();
    return NULL;
}

START_TEST(a_pin_holds_the_brick)
{
    struct held before = held_now();
    pthread_t thread;

    brick_attach(comes);
    struct graph *g = bricks_find(comes);
    ck_assert_ptr_nonnull(g);
    ck_assert_int_eq(pthread_create(&thread, NULL, detach_it, NULL), 0);
    while (graph_pin(g))
        graph_unpin(g);
    ck_assert_ptr_null(bricks_find(comes));
    ck_assert_uint_eq(one_file(g, comes, 0), 0); /* running calls run to their end */
    ck_assert_uint_eq(logged("brick-detached"), 0);
    graph_unpin(g);
    pthread_join(thread, NULL);
    ck_assert_uint_eq(logged("brick-detached"), 1);
    expect_held(&before);
}
END_TEST

static void
count_graph(struct graph *g, void *arg)
{
    ck_assert_int_ge(atomic_load(&g->pins), 2);
    ++*(unsigned *)arg;
}

static int
attach_text(const struct twist *twist, bool is_new, char error[512])
{
    return bricks_attach_volfile(stack_volfile(comes, twist, twist != NULL), NULL, is_new, error, 512);
}

/* The same volfile again changes nothing, another volfile replaces the first, and an attach that demands a
 * new brick is refused. */
START_TEST(a_name_is_given_once)
{
    static const struct twist other = {"io-stats", NULL, " option latency-measurement on\n"};
    struct held before = held_now();
    struct graph *first = brick_attach(comes);
    struct held with_one = held_now();
    char error[512] = "";
    unsigned count = 0;

    ck_assert_int_eq(attach_text(NULL, true, error), -EEXIST);
    ck_assert_msg(strstr(error, "is given twice"), "%s", error);
    ck_assert_int_eq(attach_text(NULL, false, error), 0);
    expect_held(&with_one);
    ck_assert(bricks_each(count_graph, &count));
    ck_assert_uint_eq(count, 1);
    ck_assert_ptr_eq(bricks_find(comes), first);
    graph_unpin(first);
    ck_assert_uint_eq(logged("brick-detached"), 0);
    ck_assert_msg(attach_text(&other, false, error) == 0, "%s", error);
    ck_assert_uint_eq(logged("brick-detached"), 1);
    ck_assert_uint_eq(bricks_count(), 1);
    ck_assert_int_eq(bricks_detach(comes), 0);
    expect_held(&before);
}
END_TEST

/* The serving brick takes nothing of a volfile with impossible options. */
START_TEST(a_bad_attach_leaves_what_serves)
{
    static const struct twist bad[] = {{"server", NULL, " option transport.socket.ssl-cert-depth -1\n"},
                                       {"posix", NULL, " option reserve -1\n"},
                                       {"upcall", "features/unheard-of", NULL},
                                       /* found only when the layers are set up */
                                       {"posix", NULL, " option volume-id " OTHER_ID "\n"},
                                       {"server", NULL, " option auth.addr.comes.allow 1.2.3.4/77\n"}};
    struct held before = held_now();
    struct graph *first = brick_attach(comes), *g;
    char error[512];

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        error[0] = '\0';
        ck_assert_int_lt(attach_text(&bad[i], false, error), 0);
        ck_assert_str_ne(error, "");
        ck_assert_ptr_eq(g = bricks_find(comes), first);
        ck_assert_uint_eq(one_file(g, comes, 0), 0);
        graph_unpin(g);
    }
    ck_assert_int_eq(bricks_detach(comes), 0);
    expect_held(&before);
}
END_TEST

/* ---- as jobs --------------------------------------------------------------------------------- */

struct result {
    sem_t is_there;
    int err;
    char error[512];
};

static void
take_result(int err, const char *error, void *arg)
{
    struct result *r = arg;

    r->err = err;
    snprintf(r->error, sizeof r->error, "%s", error);
    sem_post(&r->is_there);
}

static int
wait_result(struct result *r)
{
    while (sem_wait(&r->is_there) && errno == EINTR)
        ;
    return r->err;
}

START_TEST(an_attach_waits_for_the_detach_under_way)
{
    struct held before = held_now();
    struct result detached = {0}, attached = {0};
    char path[96];

    sem_init(&detached.is_there, 0, 0);
    sem_init(&attached.is_there, 0, 0);
    stack_file(path, comes, NULL, 0);
    brick_attach(comes);
    struct graph *g = bricks_find(comes);
    ck_assert_int_eq(bricks_post(BRICK_DETACH, NULL, comes, take_result, &detached), 0);
    while (graph_pin(g))
        graph_unpin(g);
    ck_assert_int_eq(bricks_post(BRICK_ATTACH, path, NULL, take_result, &attached), 0);
    ck_assert_uint_eq(one_file(g, comes, 0), 0); /* neither can end before the pin is given back */
    ck_assert_ptr_null(bricks_find(comes));
    ck_assert(bricks_is_changing(comes)); /* clients may come again */
    ck_assert(!bricks_is_changing(stays));
    graph_unpin(g);
    ck_assert_int_eq(wait_result(&detached), 0);
    ck_assert_msg(wait_result(&attached) == 0, "%s", attached.error);
    g = bricks_find(comes);
    ck_assert_ptr_nonnull(g);
    ck_assert(!bricks_is_changing(comes));
    ck_assert_uint_eq(one_file(g, comes, 0), 0);
    graph_unpin(g);
    ck_assert_int_eq(bricks_detach(comes), 0);
    ck_assert_int_eq(bricks_post(BRICK_DETACH, NULL, comes, take_result, &detached), 0);
    ck_assert_int_eq(wait_result(&detached), -ENOENT);
    expect_held(&before);
}
END_TEST

/* As a volume that is stopped and started at once: in any order of threads, each job finds the state that the
 * job before has left. */
START_TEST(jobs_of_a_brick_are_done_in_the_order_of_their_posting)
{
    enum { ROUNDS = 100 };
    static struct result detached[ROUNDS], attached[ROUNDS];
    char path[96], error[512];

    stack_file(path, comes, NULL, 0);
    brick_attach(comes);
    for (int i = 0; i < ROUNDS; i++) {
        sem_init(&detached[i].is_there, 0, 0);
        sem_init(&attached[i].is_there, 0, 0);
        struct volfile *v = volfile_read(path, error, sizeof error);
        ck_assert_ptr_nonnull(v);
        ck_assert_int_eq(bricks_post(BRICK_DETACH, NULL, comes, take_result, &detached[i]), 0);
        ck_assert_int_eq(bricks_post_volfile(BRICK_ATTACH, v, NULL, take_result, &attached[i]), 0);
    }
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(wait_result(&detached[i]), 0);
        ck_assert_msg(wait_result(&attached[i]) == 0, "%s", attached[i].error);
    }
    ck_assert_int_eq(bricks_detach(comes), 0);
}
END_TEST

START_TEST(what_a_job_cannot_do_it_says)
{
    struct result r = {0};
    char path[96];

    sem_init(&r.is_there, 0, 0);
    ck_assert_int_eq(bricks_post(BRICK_ATTACH, "/nowhere/x.vol", NULL, take_result, &r), 0);
    ck_assert_int_lt(wait_result(&r), 0);
    ck_assert_msg(strstr(r.error, "/nowhere/x.vol: No such file"), "%s", r.error);
    stack_file(path, comes, &(struct twist){"posix", NULL, " option shared-brick-count many\n"}, 1);
    ck_assert_int_eq(bricks_post(BRICK_ATTACH, path, NULL, take_result, &r), 0);
    ck_assert_int_lt(wait_result(&r), 0);
    ck_assert_msg(strstr(r.error, path) && strstr(r.error, "shared-brick-count"), "%s", r.error);
    ck_assert_int_eq(bricks_post(BRICK_RECONFIGURE, path, comes, take_result, &r), 0);
    ck_assert_int_eq(wait_result(&r), -ENOENT);
    ck_assert_uint_eq(bricks_count(), 0);
    brick_attach(comes);
    ck_assert_int_eq(bricks_post(BRICK_RECONFIGURE, path, comes, take_result, &r), 0);
    ck_assert_int_lt(wait_result(&r), 0);
    stack_file(path, comes, &(struct twist){"posix", NULL, " option health-check-interval 7\n"}, 1);
    ck_assert_int_eq(bricks_post(BRICK_RECONFIGURE, path, comes, take_result, &r), 0);
    ck_assert_msg(wait_result(&r) == 0, "%s", r.error);
    ck_assert(bricks_end());
    ck_assert_int_eq(bricks_post(BRICK_ATTACH, path, NULL, take_result, &r), -ESHUTDOWN);
    bricks_detach_all();
    ck_assert_uint_eq(bricks_count(), 0);
}
END_TEST

/* Bricks are attached side by side, and the attach of one brick fails. */
START_TEST(all_are_attached_or_the_first_reason_is_given)
{
    enum { MANY = 20 };
    static char dirs[MANY][64], paths[MANY][96];
    const char *list[MANY];
    struct held before = held_now();
    char error[1024] = "";

    for (unsigned i = 0; i < MANY; i++) {
        char name[16];

        snprintf(name, sizeof name, "many-%u", i);
        brick_folder(dirs[i], name);
        stack_file(paths[i], dirs[i], NULL, 0);
        list[i] = paths[i];
    }
    ck_assert_int_eq(bricks_attach_all(list, NULL, MANY, error, sizeof error), 0);
    ck_assert_uint_eq(bricks_count(), MANY);
    bricks_detach_all();
    expect_held(&before);
    list[7] = paths[3];
    ck_assert_int_eq(bricks_attach_all(list, NULL, MANY, error, sizeof error), -EEXIST);
    ck_assert_msg(strstr(error, "is given twice"), "%s", error);
    bricks_detach_all();
    expect_held(&before);
}
END_TEST

/* ---- health ---------------------------------------------------------------------------------- */

/* Also for a brick that was attached to a running process. The countdown does not keep the brick from being
 * detached at once. */
START_TEST(a_brick_whose_storage_fails_is_watched)
{
    struct held before = held_now();
    struct graph *g = brick_attach(comes);

    read_section_begin();
    xlator_tell_parent(layer_of(g, "storage/posix"), CHILD_DOWN);
    xlator_tell_parent(layer_of(g, "storage/posix"), CHILD_DOWN);
    read_section_end();
    ck_assert_uint_eq(logged("brick-failed"), 1);
    ck_assert(!atomic_load(&g->is_child_up));
    ck_assert_ptr_eq(bricks_find(comes), g);
    graph_unpin(g);
    ck_assert_int_eq(bricks_detach(comes), 0);
    brick_attach(comes); /* attached anew the brick works again */
    ck_assert_int_eq(bricks_detach(comes), 0);
    ck_assert_uint_eq(logged("brick-failed"), 1);
    expect_held(&before);
}
END_TEST

/* ---- failed attaches ------------------------------------------------------------------------- */

static const struct bad_brick {
    struct twist twist;
    const char *says;
} bad_bricks[] = {
    {{"upcall", "features/unheard-of", NULL}, "the type features/unheard-of is not built"},
    /* a wrong value of an option, in every layer that has options */
    {{"posix", NULL, " option shared-brick-count many\n"}, "shared-brick-count"},
    {{"posix", NULL, " option reserve -1\n"}, "reserve"},
    {{"locks", NULL, " option notify-contention perhaps\n"}, "notify-contention"},
    {{"access-control", NULL, " option super-uid root\n"}, "super-uid"},
    {{"io-threads", NULL, " option thread-count 0\n"}, "thread-count"},
    {{"selinux", NULL, " option selinux maybe\n"}, "selinux"},
    {{"upcall", NULL, " option cache-invalidation perhaps\n"}, "cache-invalidation"},
    {{"io-stats", NULL, " option latency-measurement 7\n"}, "latency-measurement"},
    {{"server", NULL, " option anonuid -5\n"}, "anonuid"},
    {{"server", NULL, " option inode-lru-limit 1048577\n"}, "inode-lru-limit"},
    {{"server", NULL, " option transport-type rdma\n"}, "transport-type"},
    {{"posix", NULL, " option volume-id no-uuid\n"}, "volume-id"},
    {{"trash", NULL, " option trash on\n option trash-dir ../out\n"}, "trash-dir"},
    {{"server", NULL,
      " option transport.socket.ssl-enabled on\n option transport.socket.ssl-own-cert /nowhere.pem\n"},
     "/nowhere.pem: No such file"},
    {{"worm", NULL, " option retention-mode for-ever\n"}, "retention-mode"},
    /* a disk that is not this brick's: layers that are up already come down again */
    {{"posix", NULL, " option directory %s/missing\n"}, "missing"},
    {{"posix", NULL, " option directory %s/a-file\n"}, "a-file"},
    {{"posix", NULL, " option directory relative/path\n"}, "relative/path"},
    {{"posix", NULL, " option volume-id " OTHER_ID "\n"}, "volume"},
    {{"posix", NULL, " option require-mount on\n"}, "mount"},
    {{"index", NULL, " option index-base %s/a-file/indices\n"}, "index"},
    {{"server", NULL, " option auth.login.%s.allow joe\n option auth.addr.%s.allow 300.1.2.3/99\n"}, NULL},
};

START_TEST(what_cannot_be_attached_leaves_nothing)
{
    const struct bad_brick *b = &bad_bricks[_i];
    struct held before;
    char error[1024], path[128];

    snprintf(path, sizeof path, "%s/a-file", comes);
    ck_assert_int_eq(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)), 0);
    brick_attach(stays);
    before = held_now();
    for (int i = 0; i < 12; i++) { /* the log folds frequent messages; each caller still gets the error */
        error[0] = '\0';
        struct graph *g =
            graph_new(brick_type_find, stack_volfile(comes, &b->twist, 1), NULL, error, sizeof error);

        if (!b->says && g) { /* accepted: the graph must free all that it took */
            graph_free(g);
            continue;
        }
        ck_assert_ptr_null(g);
        ck_assert_msg(!b->says || strstr(error, b->says), "'%s' does not say '%s'", error, b->says);
        expect_held(&before);
    }
    expect_held(&before);
    /* The place is as good as before. */
    brick_attach(comes);
    ck_assert_int_eq(bricks_detach(comes), 0);
    expect_held(&before);
    ck_assert_int_eq(bricks_detach(stays), 0);
}
END_TEST

/* A brick's layers are a chain. */
START_TEST(a_layer_has_one_below)
{
    static const char text[] =
        "volume a\n type storage/posix\nend-volume\nvolume b\n type storage/posix\nend-volume\n"
        "volume top\n type debug/io-stats\n subvolumes a b\nend-volume\n";
    struct held before = held_now();
    char error[512] = "";
    struct volfile *v = volfile_parse("test.vol", text, sizeof text - 1, error, sizeof error);

    ck_assert_msg(v != NULL, "%s", error);
    ck_assert_ptr_null(graph_new(brick_type_find, v, NULL, error, sizeof error));
    ck_assert_msg(strstr(error, "test.vol:7: volume top (debug/io-stats) has 2 subvolumes"), "%s", error);
    expect_held(&before);
}
END_TEST

START_TEST(too_many_bricks_are_refused)
{
    struct held before = held_now();
    uint16_t owners[4096];
    unsigned count = 0;
    char error[512] = "";
    int owner;

    while ((owner = mem_owner_new("filler")) > 0)
        owners[count++] = (uint16_t)owner;
    if (owner < 0) {
        ck_assert_ptr_null(
            graph_new(brick_type_find, stack_volfile(comes, NULL, 0), NULL, error, sizeof error));
        ck_assert_msg(strstr(error, "too many bricks"), "%s", error);
    }
    while (count)
        mem_owner_retire(owners[--count]);
    mem_pools_sweep_now(); /* ids are free after two; with pools off, at once */
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    expect_held(&before);
    brick_attach(comes);
    ck_assert_int_eq(bricks_detach(comes), 0);
    expect_held(&before);
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

static const struct twist others[] = {
    {"posix", NULL, " option create-mask 0750\n option gfid2path-separator ;\n"},
    {"locks", NULL, " option notify-contention no\n option notify-contention-delay 9\n"},
    {"io-threads", NULL,
     " option thread-count 3\n option high-prio-threads 1\n option normal-prio-threads 1\n"},
    {"io-stats", NULL, " option latency-measurement on\n option count-fop-hits on\n"},
    {"server", NULL, " option inode-lru-limit 7\n"},
    {"selinux", NULL, " option selinux off\n"},
};
enum { OTHERS = sizeof others / sizeof others[0] };

static bool
is_on_path(struct graph *g, const struct xlator *layer, enum fop fop)
{
    struct xlator *xl = xlator_first(g->brick, fop);

    while (xl && xl != layer)
        xl = xlator_next(xl, fop);
    return xl == layer;
}

/* The values in force, layer by layer, are all of one volfile. */
static void
expect_options(struct graph *g, bool is_other)
{
    read_section_begin();
    const struct posix_conf *posix = xlator_conf(layer_of(g, "storage/posix"));
    const struct locks_conf *locks = xlator_conf(layer_of(g, "features/locks"));
    ck_assert_int_eq(posix->create_mask, is_other ? 0750 : 0777);
    ck_assert_str_eq(posix->gfid2path_separator, is_other ? ";" : ":");
    ck_assert_int_eq(locks->notify_contention, !is_other);
    ck_assert_uint_eq(inode_table_limit(g->inodes), is_other ? 7 : INODE_LRU_LIMIT_DEFAULT);
    ck_assert_int_eq(locks->notify_contention_delay, is_other ? 9 : 5);
    ck_assert(is_on_path(g, layer_of(g, "features/selinux"), FOP_setxattr) != is_other);
    ck_assert(!is_on_path(g, layer_of(g, "features/read-only"), FOP_setxattr));
    read_section_end();
}

START_TEST(options_change_under_load)
{
    char error[512] = "";
    void *old[LAYERS];

    brick_attach(stays);
    struct graph *g = brick_attach(comes);
    struct held before = held_now();

    callers_start();
    for (int i = 0; i < ROUNDS; i++) {
        bool is_other = !(i & 1);

        for (unsigned k = 0; k < g->layer_count; k++)
            old[k] = g->layers[k].conf;
        int err =
            graph_reconfigure(g, stack_volfile(comes, others, is_other ? OTHERS : 0), error, sizeof error);
        ck_assert_msg(err == 0, "%s", error);
        for (unsigned k = 0; k < g->layer_count; k++)
            ck_assert_ptr_ne(g->layers[k].conf, old[k]);
        expect_options(g, is_other);
        wait_for_calls(1, 3);
    }
    callers_end();
    ck_assert_uint_eq(held_now().descriptors, before.descriptors);
    ck_assert_int_eq(bricks_detach(comes), 0);
    ck_assert_int_eq(bricks_detach(stays), 0);
}
END_TEST

/* A good change of every layer, and an impossible change in one layer. */
static const struct bad_brick bad_changes[] = {
    {{"posix", NULL, " option max-hardlinks -3\n"}, "max-hardlinks"},
    {{"locks", NULL, " option client-lock-limit many\n"}, "client-lock-limit"},
    {{"io-threads", NULL, " option least-prio-threads none\n"}, "least-prio-threads"},
    {{"io-stats", NULL, " option latency-measurement on-and-off\n"}, "latency-measurement"},
    {{"server", NULL, " option all-squash 2\n"}, "all-squash"},
    {{"server", NULL, " option transport.socket.ssl-cert-depth -1\n"}, "ssl-cert-depth"},
    {{"upcall", "features/leases", NULL}, "restart"},
};
enum { BAD_CHANGES = sizeof bad_changes / sizeof bad_changes[0] };

START_TEST(a_bad_value_changes_nothing)
{
    char error[512];
    void *old[LAYERS];
    struct twist twists[OTHERS + 1];

    brick_attach(stays);
    struct graph *g = brick_attach(comes);
    struct held before = held_now();
    struct volfile *volfile = g->volfile;

    for (unsigned k = 0; k < g->layer_count; k++)
        old[k] = g->layers[k].conf;
    memcpy(twists, others, sizeof others);
    callers_start();
    for (int i = 0; i < 5 * BAD_CHANGES; i++) {
        const struct bad_brick *b = &bad_changes[i % BAD_CHANGES];

        twists[OTHERS] = b->twist;
        error[0] = '\0';
        ck_assert_int_lt(graph_reconfigure(g, stack_volfile(comes, twists, OTHERS + 1), error, sizeof error),
                         0);
        ck_assert_msg(strstr(error, b->says), "'%s' does not say '%s'", error, b->says);
        for (unsigned k = 0; k < g->layer_count; k++)
            ck_assert_ptr_eq(g->layers[k].conf, old[k]);
        ck_assert_ptr_eq(g->volfile, volfile);
        expect_options(g, false);
        wait_for_calls(1, 3);
    }
    callers_end();
    ck_assert_uint_eq(held_now().descriptors, before.descriptors);
    ck_assert_int_eq(bricks_detach(comes), 0);
    ck_assert_int_eq(bricks_detach(stays), 0);
}
END_TEST

/* As glusterd changes a volume: a refused option does not keep the other options out. */
START_TEST(a_brick_follows_what_it_can)
{
    char error[512] = "";
    struct twist twists[OTHERS + 1];

    brick_attach(stays);
    struct graph *g = brick_attach(comes);
    struct held before = held_now();
    memcpy(twists, others, sizeof others);
    callers_start();
    for (unsigned i = 0; i < BAD_CHANGES; i++) { /* once: the log only counts frequent messages */
        const struct bad_brick *b = &bad_changes[i];
        bool is_layer = b->twist.type != NULL;

        twists[OTHERS] = b->twist;
        unsigned told = logged("option-refused"), waits = logged("layer-waits");
        int r = bricks_follow_volfile(comes, stack_volfile(comes, twists, OTHERS + 1), error, sizeof error);
        ck_assert_msg(r == !is_layer, "%d: %s", r, error);
        ck_assert_uint_eq(logged("option-refused"), told + !is_layer);
        ck_assert_uint_eq(logged("layer-waits"), waits + 2 * is_layer);
        ck_assert_uint_ge(logged(is_layer ? "features/leases" : b->says), 1);
        expect_options(g, true);
        wait_for_calls(1, 3);
        ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, NULL, 0), error, sizeof error), 0);
        expect_options(g, false);
    }
    callers_end();
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(stays, NULL, 0), error, sizeof error),
                     -EINVAL);
    ck_assert_msg(strstr(error, stays), "%s", error);
    expect_options(g, false);
    ck_assert_uint_eq(held_now().descriptors, before.descriptors);
    ck_assert_int_eq(bricks_detach(comes), 0);
    ck_assert_int_eq(bricks_detach(stays), 0);
}
END_TEST

/* The log names at once the layers that the operator will miss at the next start; debug layers are only
 * passed over. */
START_TEST(a_layer_that_is_not_built_is_told)
{
    static const struct twist cdc = {"upcall", "features/cdc", NULL};
    static const struct twist sdfs = {"upcall", "features/sdfs", " option pass-through false\n"};
    static const struct twist off = {"upcall", "features/simple-quota",
                                     " option pass-through true\n option no-distribute true\n"};
    static const struct twist trace = {"upcall", "debug/trace", NULL};
    char error[512] = "";

    brick_attach(comes);
    unsigned refused = logged("layer-refused"), waits = logged("layer-waits");
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, &cdc, 1), error, sizeof error), 1);
    ck_assert_uint_eq(logged("layer-refused"), refused + 1);
    ck_assert_uint_eq(logged("layer-waits"), waits + 1); /* upcall goes */
    ck_assert_uint_ge(logged("features/cdc"), 1);
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, &sdfs, 1), error, sizeof error), 0);
    ck_assert_uint_eq(logged("layer-refused"), refused + 1);
    ck_assert_uint_eq(logged("feature-not-built"), 1);
    waits = logged("layer-waits");
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, &off, 1), error, sizeof error), 0);
    ck_assert_uint_eq(logged("layer-refused"), refused + 1);
    ck_assert_uint_eq(logged("layer-waits"), waits + 1); /* upcall goes; a layer that is off does not come */
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, &trace, 1), error, sizeof error), 0);
    ck_assert_uint_eq(logged("layer-refused"), refused + 1);
    ck_assert_int_eq(bricks_detach(comes), 0);
}
END_TEST

/* ---- features that are not built ------------------------------------------------------------- */

static const struct twist unbuilt[] = {
    {"quota", NULL, " option server-quota on\n"},
    {"locks", NULL, " option mandatory-locking forced\n"},
    {"bitrot-stub", NULL, " option bitrot enable\n"},
    {"marker", NULL, " option quota on\n option quota off\n"}, /* the last one counts */
    {"upcall", "features/unheard-of", " option pass-through true\n"},
    {"selinux", "features/gate", " option gate off\n"},
};
enum { UNBUILT = sizeof unbuilt / sizeof unbuilt[0] };

static void
count_unbuilt(const struct unbuilt_feature *f, void *arg)
{
    ck_assert_ptr_eq(unbuilt_find(f->layer, f->option), f);
    ++*(unsigned *)arg;
}

static unsigned
unbuilt_of(const struct graph *g)
{
    unsigned count = 0;

    graph_each_unbuilt(g, count_unbuilt, &count);
    return count;
}

START_TEST(a_brick_serves_without_what_is_not_built)
{
    char error[512] = "";

    ck_assert_int_eq(bricks_attach_volfile(stack_volfile(comes, unbuilt, UNBUILT), NULL, true, error, 512),
                     0);
    struct graph *g = bricks_find(comes);
    ck_assert_ptr_nonnull(g);
    ck_assert_uint_eq(unbuilt_of(g), 3);
    ck_assert_uint_eq(logged("feature-not-built"), 3);
    ck_assert_uint_ge(logged("server-quota on is not built: no limit is kept"), 1);
    callers_start();
    wait_for_calls(1, 3);
    callers_end();
    /* logged once, and again after the option was off */
    for (unsigned i = 0; i < 3; i++) {
        unsigned on = i & 1;

        ck_assert_int_eq(
            bricks_follow_volfile(comes, stack_volfile(comes, unbuilt, on ? 1 : 0), error, sizeof error), 0);
        ck_assert_uint_eq(unbuilt_of(g), on);
        ck_assert_uint_eq(logged("feature-not-built"), i > 0 ? 4 : 3);
    }
    ck_assert_uint_eq(logged("option-refused"), 0);
    /* a change by kiln(8) would be refused */
    ck_assert_int_lt(graph_check(brick_type_find, g->volfile, true, error, sizeof error), 0);
    graph_unpin(g);
    ck_assert_int_eq(bricks_detach(comes), 0);
}
END_TEST

START_TEST(strict_features_refuse_what_is_not_built)
{
    char error[512] = "";

    graph_refuse_unbuilt(); /* of this test's process */
    for (unsigned i = 0; i < 3; i++) {
        ck_assert_ptr_null(
            graph_new(brick_type_find, stack_volfile(comes, &unbuilt[i], 1), NULL, error, sizeof error));
        ck_assert_msg(strstr(error, "this feature is not built"), "%s", error);
    }
    struct graph *g = brick_attach(comes);
    ck_assert_int_eq(bricks_follow_volfile(comes, stack_volfile(comes, unbuilt, 1), error, sizeof error), 1);
    ck_assert_uint_eq(logged("option-refused"), 1);
    ck_assert_uint_eq(unbuilt_of(g), 0);
    ck_assert_int_lt(graph_reconfigure(g, stack_volfile(comes, unbuilt, 1), error, sizeof error), 0);
    ck_assert_uint_eq(logged("feature-not-built"), 0);
    ck_assert_int_eq(bricks_detach(comes), 0);
}
END_TEST

START_TEST(what_acts_at_the_start_is_told)
{
    static const struct twist later = {"posix", NULL, " option hostname elsewhere\n"};
    char error[512] = "";
    struct graph *g = brick_attach(comes);

    ck_assert_int_eq(graph_reconfigure(g, stack_volfile(comes, others, OTHERS), error, sizeof error), 0);
    ck_assert_uint_eq(logged("option-waits"), 0);
    ck_assert_int_eq(graph_reconfigure(g, stack_volfile(comes, &later, 1), error, sizeof error), 0);
    ck_assert_uint_eq(logged("option-waits"), 1);
    ck_assert_int_eq(bricks_detach(comes), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("bricks");
    TCase *life = tcase_create("life"), *failing = tcase_create("failing"),
          *options = tcase_create("options");

    root_or_skip();
    TCase *const all[] = {life, failing, options};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) {
        tcase_add_checked_fixture(all[i], setup, teardown);
        tcase_set_timeout(all[i], 180);
        suite_add_tcase(s, all[i]);
    }
    tcase_add_test(life, a_brick_comes_and_goes_under_load);
    tcase_add_test(life, nothing_of_a_brick_is_left);
    tcase_add_test(life, a_pin_holds_the_brick);
    tcase_add_test(life, a_name_is_given_once);
    tcase_add_test(life, a_bad_attach_leaves_what_serves);
    tcase_add_test(life, an_attach_waits_for_the_detach_under_way);
    tcase_add_test(life, jobs_of_a_brick_are_done_in_the_order_of_their_posting);
    tcase_add_test(life, what_a_job_cannot_do_it_says);
    tcase_add_test(life, all_are_attached_or_the_first_reason_is_given);
    tcase_add_test(life, a_brick_whose_storage_fails_is_watched);
    tcase_add_loop_test(failing, what_cannot_be_attached_leaves_nothing, 0,
                        sizeof bad_bricks / sizeof bad_bricks[0]);
    tcase_add_test(failing, a_layer_has_one_below);
    tcase_add_test(failing, too_many_bricks_are_refused);
    tcase_add_test(options, options_change_under_load);
    tcase_add_test(options, a_layer_that_is_not_built_is_told);
    tcase_add_test(options, a_brick_serves_without_what_is_not_built);
    tcase_add_test(options, strict_features_refuse_what_is_not_built);
    tcase_add_test(options, what_acts_at_the_start_is_told);
    tcase_add_test(options, a_bad_value_changes_nothing);
    tcase_add_test(options, a_brick_follows_what_it_can);
    return s;
}

#include "base/test-main.h"
