/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Joined calls of cluster/disperse: locks and counters that go with another call, in one message to each
 * brick, and the deaths of mount and bricks between the calls of such a message. */
#include <check.h>
#include <errno.h>

#include "xlators/cluster/disperse/test-disperse-file.h"

static uint32_t open_flags;

static void
begin(void)
{
    scene_clear(CHILDREN, false);
    scene.takes_sequences = true;
    scene_begin(&cluster_disperse_xlator, " option redundancy 1\n option background-heals 8\n");
    scene_arm(NULL, 0);
    scene.sequences = 0;
}

static void
fill_open(struct call_stack *stk)
{
    fill_file(stk);
    stk->call.flags = open_flags;
}

static void
fill_close(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
}

static void
forget_fd(void)
{
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(0);
}

static int
create_write_close(void)
{
    int ret = scene_call(FOP_create, fill_create, 0);

    at = 0;
    bytes = FILE_BYTES;
    fill_byte = 'n';
    ret = ret < 0 ? ret : scene_call(FOP_writev, fill_payload, 2000);
    ret = ret < 0 ? ret : scene_call(FOP_flush, fill_close, 2000);
    return ret;
}

static unsigned
marks_left(void)
{
    static const unsigned char zeros[16];
    unsigned left = 0;

    for (unsigned i = 0; i < CHILDREN; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");
        struct stored_xattr *dirty = o ? store_xattr(o, "trusted.ec.dirty") : NULL;

        left += dirty && memcmp(dirty->bytes, zeros, dirty->len) != 0;
    }
    return left;
}

START_TEST(a_new_file_takes_three_messages_a_brick)
{
    begin();
    ck_assert_int_eq(create_write_close(), 0);
    /* CREATE, lock and counters; counters and unlock. The folder's lock and the WRITE go alone. */
    ck_assert_uint_eq(scene.sequences, 2 * CHILDREN);
    ck_assert_uint_eq(marks_left(), 0);
    forget_fd();
    scene_run(5000);
    ck_assert_uint_eq(store_locks(), 0);
    scene_end();
}
END_TEST

START_TEST(a_sync_goes_with_the_size)
{
    static const unsigned char size[8] = {[6] = FILE_BYTES >> 8, [7] = FILE_BYTES & 255};

    begin();
    ck_assert_int_eq(scene_call(FOP_create, fill_create, 0), 0);
    at = 0;
    bytes = FILE_BYTES;
    ck_assert_int_eq(scene_call(FOP_writev, fill_payload, 0), FILE_BYTES);
    scene.sequences = 0;
    ck_assert_int_eq(scene_call(FOP_fsync, fill_fd, 0), 0);
    ck_assert_uint_eq(scene.sequences, CHILDREN);
    for (unsigned i = 0; i < CHILDREN; i++)
        ck_assert_mem_eq(store_xattr(store_find(&scene.store[i], "/f"), "trusted.ec.size")->bytes, size, 8);
    scene.sequences = 0;
    ck_assert_int_eq(scene_call(FOP_fsync, fill_fd, 0), 0);
    ck_assert_uint_eq(scene.sequences, 0); /* no size to record */
    scene_run(5000);
    scene_end();
}
END_TEST

static void
reopen(uint32_t flags)
{
    open_flags = flags;
    ck_assert_int_eq(scene_call(FOP_open, fill_open, 0), 0);
}

START_TEST(an_open_takes_the_hold_if_files_are_used)
{
    begin();
    ck_assert_int_eq(create_write_close(), 0);
    forget_fd();
    scene_run(5000);
    scene.sequences = 0;
    reopen(O_RDONLY);
    ck_assert_uint_eq(scene.sequences, CHILDREN);
    scene_arm(NULL, 0);
    at = 0;
    bytes = FILE_BYTES;
    ck_assert_int_eq(scene_call(FOP_readv, fill_range, 0), FILE_BYTES);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], CHILDREN - 1); /* K READs */
    forget_fd();
    scene_run(5000);
    ck_assert_uint_eq(store_locks(), 0);
    /* an OPEN that is not used is the last that takes the hold, until a program uses a file again */
    reopen(O_RDONLY);
    forget_fd();
    ck_assert_uint_eq(store_locks(), 0);
    scene.sequences = 0;
    reopen(O_RDONLY);
    ck_assert_uint_eq(scene.sequences, 0);
    ck_assert_int_eq(scene_call(FOP_readv, fill_range, 5000), FILE_BYTES);
    forget_fd();
    scene.sequences = 0;
    reopen(O_RDONLY);
    ck_assert_uint_eq(scene.sequences, CHILDREN);
    scene_run(5000);
    scene_end();
}
END_TEST

/* As a lie: another client has the lock on the second brick. */
static void
refuse_second_lock(unsigned child, struct call_stack *stk, int *ret)
{
    if (child == 1 && stk->takes_fd && stk->call.fop == FOP_finodelk && stk->call.type != FLOCK_UNLOCK)
        *ret = -EAGAIN;
}

START_TEST(an_open_of_a_locked_file_leaves_no_lock_and_no_mark)
{
    begin();
    ck_assert_int_eq(create_write_close(), 0);
    forget_fd();
    scene_run(5000);
    scene.lie = refuse_second_lock;
    scene.sequences = 0;
    reopen(O_RDWR);
    ck_assert_ptr_nonnull(scene.fd);
    ck_assert_uint_eq(scene.sequences, CHILDREN);
    scene.lie = NULL;
    ck_assert_uint_eq(marks_left(), 0);
    ck_assert_uint_eq(store_locks(), 1); /* the other client's */
    scene_end();
}
END_TEST

static void
heal_root_go(void *inode)
{
    bool was_whole;

    (void)ec_heal_object(scene.graph->top->children[0]->private, inode, HEAL_FULL, &was_whole);
}

/* Runs CREATE, write and close with a fault; then a new mount heals. Returns whether the fault has struck. */
static bool
create_with_fault(unsigned child, unsigned n, enum fault_kind kind)
{
    struct fault f = {.child = child, .at = n, .kind = kind, .err = EIO};

    snprintf(run_text, sizeof run_text, "fault %u at call %u of child %u", kind, n, child);
    begin();
    scene_arm(&f, 1);
    int ret = create_write_close();
    scene_run(5000);
    bool has_struck = scene.fault[0].has_struck;
    scene_end();
    scene_begin(&cluster_disperse_xlator, " option redundancy 1\n option background-heals 8\n");
    struct inode *root = inode_root(scene.graph->inodes);
    struct disperse *d = scene.graph->top->children[0]->private;
    for (unsigned pass = 0; pass < 2; pass++) {
        atomic_store(&d->up_ns, clock_mono_ns() - UINT64_C(6) * 1000 * 1000 * 1000);
        must(coro_run(heal_root_go, root) == 0);
        scene_run(3000);
        if (store_find(&scene.store[0], "/f"))
            heal_file();
    }
    unsigned has = 0;
    for (unsigned i = 0; i < CHILDREN; i++)
        has += store_find(&scene.store[i], "/f") != NULL;
    if (has % CHILDREN || (ret >= 0 && !has))
        finding_add("%u children have the file, result %d", has, ret);
    if (has && scene_call(FOP_readv, fill_read, 0) < 0)
        finding_add("the file is not readable: %d", scene.ret);
    else if (ret >= 0 && (scene.text_len != FILE_BYTES || scene.text[FILE_BYTES - 1] != 'n'))
        finding_add("the file has %u bytes", scene.text_len);
    scene_run(5000);
    if (marks_left())
        finding_add("%u marks are left", marks_left());
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    inode_unref(root);
    scene_end();
    return has_struck;
}

/* A late call of a sequence does not strike: the message is late as a whole. */
START_TEST(a_fault_between_joined_calls_is_healed)
{
    enum { CALLS_MAX = 48 };
    unsigned struck = 0;

    findings = 0;
    for (unsigned n = 0; n < CALLS_MAX * 2; n++) {
        unsigned child = n % 2 ? ANY_CHILD : n / 2 % CHILDREN;

        struck += create_with_fault(child, n % 2 ? n / 2 : n / 2 / CHILDREN, (enum fault_kind)_i);
    }
    ck_assert_uint_gt(struck, 20);
    ck_assert_uint_eq(findings, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("disperse-joined");
    TCase *t = tcase_create("joined");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_new_file_takes_three_messages_a_brick);
    tcase_add_test(t, a_sync_goes_with_the_size);
    tcase_add_test(t, an_open_takes_the_hold_if_files_are_used);
    tcase_add_test(t, an_open_of_a_locked_file_leaves_no_lock_and_no_mark);
    tcase_add_loop_test(t, a_fault_between_joined_calls_is_healed, 0, FAULT_KINDS);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
