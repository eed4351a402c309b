/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which writes are answered early, which calls wait for them, and which open files get the errors. The bottom
 * layer keeps each WRITE until the test releases it. */
#include <fcntl.h>
#include <pthread.h>

#include "fs/fd.h"
#include "mem/iobuf.h"
#include "stack/coro-call.h"
#include "xlators/features/test-layers.h"
#include "xlators/performance/write-behind/write-behind-internal.h"

extern const struct xlator_type performance_write_behind_xlator;

enum { KIB = 1024, HELD_MAX = 512, FILE_MAX = 256 * KIB };

/* Under the lock: the calls that the bottom layer keeps, and the number of calls that reached it. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct call_stack *held[HELD_MAX];
static unsigned held_count, reached[FOP_COUNT];
static bool holds; /* the bottom layer keeps WRITEs */
static char file[FILE_MAX];
static uint64_t file_size;
static uint32_t file_mode;

static struct inode *inode;
static struct fd *fd, *other_fd;

/* ---- the bottom layer ------------------------------------------------------------------------ */

static void
write_it(struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;

    ck_assert_uint_eq(call->size, call->payload[0].iov_len);
    memcpy(file + call->offset, call->payload[0].iov_base, call->size);
    if (call->offset + call->size > file_size)
        file_size = call->offset + call->size;
    stk->reply.op_ret = (int32_t)call->size;
    stk->reply.post = (struct iatt){.gfid = inode->gfid, .mode = file_mode, .uid = 7, .gid = 8};
}

static void
show(struct call_stack *stk)
{
    struct iatt a = {.gfid = inode->gfid, .mode = file_mode, .size = file_size};

    if (stk->call.fop == FOP_fsetattr && stk->call.valid) {
        ck_assert_uint_eq(stk->caller.uid, 7);
        ck_assert_int_eq(stk->call.valid, SETATTR_MODE);
        file_mode = S_IFREG | stk->call.stbuf.mode;
    }

    stk->reply.op_ret = 0;
    stk->reply.stat = a;
    if (stk->call.fop != FOP_readdirp)
        return;
    struct dirent_entry *e = arena_zalloc(&stk->arena, sizeof *e);

    e->iatt = a;
    stk->reply.entries = e;
    stk->reply.op_ret = 1;
}

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict = XL_DONE;

    (void)xl;
    pthread_mutex_lock(&lock);
    reached[stk->call.fop]++;
    if (stk->call.fop != FOP_writev) {
        show(stk);
    } else if (holds) {
        ck_assert_uint_lt(held_count, HELD_MAX);
        held[held_count++] = stk;
        verdict = XL_OWNED;
    } else {
        write_it(stk);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    return verdict;
}

static bool
wait_locked(const unsigned *count, unsigned for_count)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 60;
    while (*count < for_count && pthread_cond_timedwait(&changed, &lock, &until) == 0)
        ;
    return *count >= for_count;
}

/* Waits until the bottom layer keeps enough WRITEs, and releases the one at this place. err: its error. */
static void
let_go_at(unsigned at, int err)
{
    pthread_mutex_lock(&lock);
    ck_assert_msg(wait_locked(&held_count, at + 1), "no WRITE has come");
    struct call_stack *stk = held[at];

    memmove(held + at, held + at + 1, (--held_count - at) * sizeof held[0]);
    if (!err)
        write_it(stk);
    pthread_mutex_unlock(&lock);
    read_section_begin();
    if (err)
        call_stack_fail(stk, err);
    else
        call_stack_unwind(stk);
    read_section_end();
}

static void
let_go(int err)
{
    let_go_at(0, err);
}

static void
await_held(unsigned count)
{
    pthread_mutex_lock(&lock);
    ck_assert_msg(wait_locked(&held_count, count), "%u WRITEs have come, not %u", held_count, count);
    ck_assert_uint_eq(held_count, count);
    pthread_mutex_unlock(&lock);
}

static unsigned
reached_by(enum fop fop)
{
    pthread_mutex_lock(&lock);
    unsigned n = reached[fop];

    pthread_mutex_unlock(&lock);
    return n;
}

/* ---- the bench ------------------------------------------------------------------------------- */

static void
setup_with(const char *const *options)
{
    ck_assert_int_eq(coro_stacks_init(), 0);
    memset(file, 0, sizeof file);
    memset(reached, 0, sizeof reached);
    held_count = 0;
    file_size = 0;
    file_mode = S_IFREG | 0644;
    holds = true;
    bench_setup(&performance_write_behind_xlator, options, bottom);
    inode = bench_inode("file", 1, S_IFREG);
    fd = fd_new(inode, NULL, O_RDWR, false);
    other_fd = fd_new(inode, NULL, O_RDWR, false);
}

static void
setup(void)
{
    setup_with(NULL);
}

/* A worker may drop its pin after the last reply, so teardown waits for the pins. */
static void
teardown(void)
{
    for (int tries = 0; atomic_load(&bench_graph.pins) != 1 && tries < 6000; tries++)
        nanosleep(&(struct timespec){.tv_nsec = 10000000}, NULL);
    ck_assert_int_eq(atomic_load(&bench_graph.pins), 1);
    fd_unref(fd);
    fd_unref(other_fd);
    inode_unref(inode);
    bench_teardown();
}

static struct bench_call *
call_on(enum fop fop, struct fd *on)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.fd = fd_ref(on);
    call->stk->call.loc.inode = inode_ref(inode);
    return call;
}

static struct bench_call *
write_call(struct fd *on, uint64_t offset, size_t size, char byte)
{
    struct bench_call *call = call_on(FOP_writev, on);
    struct fop_call *c = &call->stk->call;

    c->payload_iobuf = iobuf_get(size);
    memset(c->payload_iobuf->bytes, byte, size);
    c->payload[0] = (struct iovec){c->payload_iobuf->bytes, size};
    c->payload_count = 1;
    c->payload_bytes = c->size = size;
    c->offset = offset;
    return call;
}

/* A write that must be answered at once. */
static int
write_early(struct fd *on, uint64_t offset, size_t size, char byte)
{
    struct bench_call *call = write_call(on, offset, size, byte);

    bench_wind(call);
    ck_assert_msg(bench_is_done(call), "a write waits");
    int ret = bench_result(call);

    bench_free(call);
    return ret;
}

static int
run_on(enum fop fop, struct fd *on)
{
    return bench_run(call_on(fop, on));
}

/* ---- early answers --------------------------------------------------------------------------- */

START_TEST(a_write_is_answered_before_it_is_done)
{
    ck_assert_int_eq(write_early(fd, 0, 100, 'a'), 100);
    await_held(1);
    ck_assert_uint_eq(file_size, 0);
    let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_uint_eq(file_size, 100);
    ck_assert_int_eq(file[99], 'a');
}
END_TEST

/* Checks that the write waits for the brick, while `before` writes are kept already. */
static void
check_waits_for_brick(struct bench_call *call, unsigned before)
{
    bench_wind(call);
    ck_assert(!bench_is_done(call));
    let_go_at(before, 0);
    ck_assert_int_eq(bench_result(call), 10);
    bench_free(call);
}

START_TEST(a_synchronous_write_waits)
{
    static const uint32_t flags[] = {O_SYNC, O_DSYNC};

    for (size_t i = 0; i < 2; i++) {
        struct fd *sync = fd_new(inode, NULL, O_WRONLY | flags[i], false);
        struct bench_call *call = write_call(fd, 0, 10, 'a');

        call->stk->call.flags = flags[i];
        check_waits_for_brick(call, 0);
        check_waits_for_brick(write_call(sync, 0, 10, 'a'), 0);
        fd_unref(sync);
    }
    ck_assert_uint_eq(reached_by(FOP_writev), 4);
}
END_TEST

START_TEST(o_direct_waits_when_strict)
{
    struct fd *direct = fd_new(inode, NULL, O_WRONLY | O_DIRECT, false);

    ck_assert_int_eq(write_early(direct, 0, 10, 'a'), 10);
    let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    fd_unref(direct);
    teardown();
    setup_with((const char *const[]){"strict-O_DIRECT", "on", NULL});
    direct = fd_new(inode, NULL, O_WRONLY | O_DIRECT, false);
    check_waits_for_brick(write_call(direct, 0, 10, 'a'), 0);
    fd_unref(direct);
}
END_TEST

START_TEST(pass_through_switches_the_layer_off)
{
    teardown();
    setup_with((const char *const[]){"pass-through", "on", NULL});
    check_waits_for_brick(write_call(fd, 0, 10, 'a'), 0);
}
END_TEST

START_TEST(the_window_bounds_the_bytes_under_way)
{
    teardown();
    setup_with((const char *const[]){"cache-size", "64KB", "aggregate-size", "4KB", NULL});
    ck_assert_int_eq(write_early(fd, 0, 48 * KIB, 'a'), 48 * KIB);
    struct bench_call *second = write_call(fd, 48 * KIB, 48 * KIB, 'b');

    bench_wind(second);
    ck_assert(!bench_is_done(second));
    await_held(1);
    let_go(0);
    ck_assert_int_eq(bench_result(second), 48 * KIB);
    bench_free(second);
    let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_uint_eq(file_size, 96 * KIB);
}
END_TEST

/* Each reply walks over all of a file's pieces, so their number is bounded, however little data each has. */
START_TEST(small_pieces_are_bounded_too)
{
    for (unsigned i = 0; i < WB_PIECES_MAX; i++)
        ck_assert_int_eq(write_early(fd, 2 * i, 1, 'a'), 1);
    struct bench_call *next = write_call(fd, 2 * WB_PIECES_MAX, 1, 'b');

    bench_wind(next);
    ck_assert(!bench_is_done(next));
    await_held(WB_PIECES_MAX);
    let_go(0);
    ck_assert_int_eq(bench_result(next), 1);
    bench_free(next);
    for (unsigned i = 0; i < WB_PIECES_MAX; i++)
        let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_uint_eq(file_size, 2 * WB_PIECES_MAX + 1);
}
END_TEST

/* A write that joins a piece does not count as a piece. */
START_TEST(joined_writes_are_not_counted)
{
    ck_assert_int_eq(write_early(fd, 0, 1, 'a'), 1);
    await_held(1);
    for (unsigned i = 1; i <= 2 * WB_PIECES_MAX; i++)
        ck_assert_int_eq(write_early(fd, i, 1, 'a'), 1);
    let_go(0);
    let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_uint_eq(file_size, 2 * WB_PIECES_MAX + 1);
}
END_TEST

/* ---- order ----------------------------------------------------------------------------------- */

START_TEST(neighbours_become_one)
{
    ck_assert_int_eq(write_early(fd, 0, 4 * KIB, 'a'), 4 * KIB);
    await_held(1);
    for (unsigned i = 1; i <= 20; i++)
        ck_assert_int_eq(write_early(fd, i * 4 * KIB, 4 * KIB, (char)('a' + i)), 4 * KIB);
    await_held(1);
    let_go(0);
    await_held(1);
    let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_uint_eq(reached_by(FOP_writev), 2);
    for (unsigned i = 0; i <= 20; i++)
        ck_assert_int_eq(file[i * 4 * KIB + 4095], 'a' + (int)i);
}
END_TEST

START_TEST(other_files_and_callers_stay_apart)
{
    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    await_held(1);
    ck_assert_int_eq(write_early(fd, 10, 10, 'b'), 10);
    ck_assert_int_eq(write_early(other_fd, 20, 10, 'c'), 10);
    struct bench_call *call = write_call(other_fd, 30, 10, 'd');

    call->stk->caller.uid = 7;
    ck_assert_int_eq(bench_run(call), 10);
    let_go(0);
    await_held(3);
    for (int i = 0; i < 3; i++)
        let_go(0);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_int_eq(memcmp(file + 5, "aaaaabbbbbbbbbbccccccccccdddddddddd", 35), 0);
}
END_TEST

START_TEST(overlapping_writes_keep_their_order)
{
    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    ck_assert_int_eq(write_early(other_fd, 5, 10, 'b'), 10);
    ck_assert_int_eq(write_early(fd, 7, 2, 'c'), 2);
    for (int i = 0; i < 3; i++) {
        await_held(1);
        let_go(0);
    }
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_int_eq(memcmp(file, "aaaaabbccbbbbbb", 15), 0);
}
END_TEST

START_TEST(appends_go_one_after_the_other)
{
    struct fd *append = fd_new(inode, NULL, O_WRONLY | O_APPEND, false);

    ck_assert_int_eq(write_early(append, 0, 10, 'a'), 10);
    await_held(1);
    ck_assert_int_eq(write_early(append, 100, 10, 'b'), 10);
    ck_assert_int_eq(write_early(fd, 200, 10, 'c'), 10);
    for (int i = 0; i < 3; i++) {
        await_held(1);
        let_go(0);
    }
    ck_assert_int_eq(run_on(FOP_fsync, append), 0);
    fd_unref(append);
}
END_TEST

/* ---- calls that wait ------------------------------------------------------------------------- */

START_TEST(calls_that_look_at_the_file_wait)
{
    static const enum fop fops[] = {FOP_stat,      FOP_fstat,    FOP_setattr,   FOP_fsetattr, FOP_truncate,
                                    FOP_ftruncate, FOP_fsync,    FOP_flush,     FOP_seek,     FOP_lk,
                                    FOP_link,      FOP_discard,  FOP_fallocate, FOP_zerofill, FOP_readv,
                                    FOP_rchecksum};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        struct bench_call *call = call_on(fops[i], other_fd);

        ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
        bench_wind(call);
        ck_assert_msg(!bench_is_done(call) && reached_by(fops[i]) == 0, "%s does not wait",
                      fop_info[fops[i]].name);
        let_go(0);
        ck_assert_int_eq(bench_result(call), 0);
        ck_assert_uint_eq(reached_by(fops[i]), 1);
        bench_free(call);
    }
}
END_TEST

START_TEST(a_read_behind_all_writes_does_not_wait)
{
    struct bench_call *call = call_on(FOP_readv, fd);

    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    call->stk->call.offset = 10;
    call->stk->call.size = 10;
    ck_assert_int_eq(bench_run(call), 0);
    let_go(0);
}
END_TEST

START_TEST(a_flush_of_the_mount_goes_no_further)
{
    struct bench_call *call = call_on(FOP_flush, fd);

    call->stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
    ck_assert_int_eq(bench_run(call), 0);
    call = call_on(FOP_flush, fd);
    call->stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    bench_wind(call);
    ck_assert(!bench_is_done(call));
    let_go(0);
    ck_assert_int_eq(bench_result(call), 0);
    bench_free(call);
    ck_assert_uint_eq(reached_by(FOP_flush), 0);
}
END_TEST

/* Attributes that a brick returns while writes are under way are not passed on. */
START_TEST(a_lookup_shows_the_written_size)
{
    struct bench_call *look = call_on(FOP_lookup, fd), *list = call_on(FOP_readdirp, fd);

    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    bench_wind(look);
    ck_assert(!bench_is_done(look));
    bench_wind(list);
    ck_assert_int_eq(bench_result(list), 1);
    ck_assert(gfid_is_null(&list->stk->reply.entries->iatt.gfid));
    bench_free(list);
    let_go(0);
    ck_assert_int_eq(bench_result(look), 0);
    ck_assert_uint_eq(look->stk->reply.stat.size, 10);
    bench_free(look);
    list = call_on(FOP_readdirp, fd);
    bench_wind(list);
    ck_assert_int_eq(bench_result(list), 1);
    ck_assert_uint_eq(list->stk->reply.entries->iatt.size, 10);
    bench_free(list);
}
END_TEST

/* ---- errors ---------------------------------------------------------------------------------- */

static void
fail_one(struct fd *on, int err)
{
    ck_assert_int_eq(write_early(on, 0, 10, 'a'), 10);
    let_go(err);
}

START_TEST(each_open_file_gets_an_error_once)
{
    struct fd *reader = fd_new(inode, NULL, O_RDWR, false);

    fail_one(fd, EDQUOT);
    ck_assert_int_eq(run_on(FOP_fsync, fd), -EDQUOT);
    ck_assert_int_eq(run_on(FOP_fsync, fd), 0);
    ck_assert_int_eq(run_on(FOP_fsync, reader), 0); /* another open file got the error */
    fail_one(other_fd, EIO);
    ck_assert_int_eq(run_on(FOP_flush, other_fd), -EIO);
    ck_assert_int_eq(run_on(FOP_flush, other_fd), 0);
    ck_assert_int_eq(bench_run(write_call(fd, 0, 10, 'a')), -EIO); /* this open file had written, too */
    fail_one(fd, ENOSPC);
    ck_assert_int_eq(run_on(FOP_fsync, reader), -ENOSPC); /* no open file got the error before */
    ck_assert_int_eq(run_on(FOP_fsync, fd), -ENOSPC);
    ck_assert_int_eq(run_on(FOP_fsync, other_fd), -ENOSPC);
    fd_unref(reader);
}
END_TEST

START_TEST(a_flush_for_locks_reaches_the_brick_after_an_error)
{
    fail_one(fd, EIO);
    ck_assert_int_eq(run_on(FOP_flush, fd), -EIO);
    ck_assert_uint_eq(reached_by(FOP_flush), 1);
}
END_TEST

/* ---- the end --------------------------------------------------------------------------------- */

static atomic_bool has_stopped;

static void *
stop_main(void *arg)
{
    (void)arg;
    performance_write_behind_xlator.stop(bench_xl);
    atomic_store(&has_stopped, true);
    return NULL;
}

/* The bits are cleared before a call that looks at the file is answered, unless the caller may keep them. */
START_TEST(a_write_takes_set_id_bits_away)
{
    static const uint32_t after[] = {06755, 0755};

    for (uint32_t kills = 0; kills < 2; kills++) {
        struct bench_call *call = write_call(fd, 0, 10, 'a'), *look = call_on(FOP_fstat, fd);

        file_mode = S_IFREG | 06755;
        call->stk->call.hint.kind = kills ? HINT_KILLS_PRIVS : HINT_NONE;
        bench_wind(call);
        ck_assert_int_eq(bench_result(call), 10);
        bench_wind(look);
        ck_assert(!bench_is_done(look));
        let_go(0);
        ck_assert_int_eq(bench_result(look), 0);
        ck_assert_uint_eq(look->stk->reply.stat.mode, S_IFREG | after[kills]);
        ck_assert_uint_eq(reached_by(FOP_fsetattr), kills);
        bench_free(call);
        bench_free(look);
    }
}
END_TEST

START_TEST(stop_waits_for_answered_writes)
{
    const struct wb *wb = bench_xl->private;
    pthread_t thread;

    atomic_store(&has_stopped, false);
    ck_assert_int_eq(write_early(fd, 0, 10, 'a'), 10);
    await_held(1);
    ck_assert_int_eq(pthread_create(&thread, NULL, stop_main, NULL), 0);
    while (!atomic_load(&wb->is_stopping))
        sched_yield();
    check_waits_for_brick(write_call(other_fd, 100, 10, 'b'), 1); /* writes are no longer answered early */
    ck_assert(!atomic_load(&has_stopped));
    let_go(0);
    ck_assert_int_eq(pthread_join(thread, NULL), 0);
    ck_assert_uint_eq(file_size, 110);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        a_write_is_answered_before_it_is_done,
        a_synchronous_write_waits,
        o_direct_waits_when_strict,
        pass_through_switches_the_layer_off,
        the_window_bounds_the_bytes_under_way,
        small_pieces_are_bounded_too,
        joined_writes_are_not_counted,
        neighbours_become_one,
        other_files_and_callers_stay_apart,
        overlapping_writes_keep_their_order,
        appends_go_one_after_the_other,
        calls_that_look_at_the_file_wait,
        a_read_behind_all_writes_does_not_wait,
        a_flush_of_the_mount_goes_no_further,
        a_lookup_shows_the_written_size,
        each_open_file_gets_an_error_once,
        a_flush_for_locks_reaches_the_brick_after_an_error,
        a_write_takes_set_id_bits_away,
        stop_waits_for_answered_writes,
    };
    Suite *s = suite_create("write-behind");
    TCase *t = tcase_create("write-behind");

    tcase_set_timeout(t, 120);
    tcase_add_checked_fixture(t, setup, teardown);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
