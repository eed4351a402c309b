/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* RELEASEs of protocol/client that wait for the next message to the brick, and calls joined in one
 * message. */
#include "xlators/protocol/client/test-client-brick.h"

static void
mount_for_sequences(const char *wait_ms)
{
    char options[64];

    snprintf(options, sizeof options, " option release-wait-ms %s\n", wait_ms);
    brick.takes_sequences = true;
    mount_it(options);
    wait_on(&came_up);
}

/* Sends two joined calls. */
static void
ask_joined(void)
{
    struct fd *fd = open_one(O_RDWR);
    struct call_stack *a = make(FOP_fsync, fd), *b = make(FOP_fsync, fd);

    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_int_eq(b->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
    close_one(fd);
}

START_TEST(a_release_rides_behind_the_next_sequence)
{
    mount_for_sequences("60000");
    struct fd *fd = open_one(O_RDWR);
    long long number = brick.next_number;

    close_one(fd);
    ck_assert_int_eq(brick.releases, 0);
    ask_joined();
    ck_assert_int_eq(brick.releases, 1);
    ck_assert_int_eq(brick.last_released, number);
    ck_assert_int_eq(brick.sequences, 1);
    ck_assert_int_eq(brick.steps, 3);
}
END_TEST

START_TEST(a_release_rides_behind_the_last_calls_about_its_fd)
{
    mount_for_sequences("0");
    struct fd *fd = open_one(O_RDWR);
    struct call_stack *a = make(FOP_fsync, fd), *b = make(FOP_fsync, fd);
    long long number = brick.next_number;

    b->closes_fd = true;
    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(b->reply.op_ret, 0);
    ck_assert_int_eq(brick.steps, 3);
    ck_assert_int_eq(brick.releases, 1);
    ck_assert_int_eq(brick.last_released, number);
    call_stack_free(a);
    call_stack_free(b);
    ck_assert_int_eq(ask(FOP_fsync, fd), 0); /* by the gfid */
    ck_assert_int_eq(brick.last_number, FD_ANONYMOUS);
    close_one(fd);
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0); /* a RELEASE would come before it */
    ck_assert_int_eq(brick.releases, 1);
}
END_TEST

/* Joins a call behind an OPEN, by the OPEN's fd. */
static void
ask_opened(void)
{
    struct iatt file = {.gfid.b = {9}, .mode = S_IFREG | 0644};
    struct call_stack *a = make(FOP_open, NULL), *b = make(FOP_fsync, NULL);

    a->call.loc.inode = inode_link(graph->inodes, NULL, NULL, &file);
    b->call.loc.inode = inode_ref(a->call.loc.inode);
    b->takes_fd = true;
    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_ptr_nonnull(a->reply.fd);
    ck_assert_int_eq(b->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
}

START_TEST(a_joined_call_takes_the_fd_of_the_open_before)
{
    mount_for_sequences("0");
    ask_opened();
    ck_assert_int_eq(brick.sequences, 1);
    ck_assert_int_eq(brick.fd_of, 1);
}
END_TEST

START_TEST(a_call_of_its_own_takes_the_fd_of_the_open_before)
{
    mount_it("");
    wait_on(&came_up);
    ask_opened();
    ck_assert_int_eq(brick.last_number, brick.next_number);
}
END_TEST

START_TEST(six_releases_that_wait_share_a_record)
{
    mount_for_sequences("60000");
    for (int i = 0; i < RELEASES_LATE_MAX; i++)
        close_one(open_one(O_RDWR));
    wait_for_releases(RELEASES_LATE_MAX);
    ck_assert_int_eq(brick.sequences, 1);
}
END_TEST

START_TEST(a_lone_release_is_sent_after_its_time)
{
    mount_for_sequences("1");
    close_one(open_one(O_RDWR));
    wait_for_releases(1);
    ck_assert_int_eq(brick.sequences, 0);
}
END_TEST

START_TEST(the_release_of_a_locked_file_does_not_wait)
{
    mount_for_sequences("60000");
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_lk, fd), 0);
    close_one(fd);
    wait_for_releases(1);
}
END_TEST

START_TEST(a_release_that_the_brick_has_not_run_is_sent_again)
{
    mount_for_sequences("60000");
    close_one(open_one(O_RDWR));
    long long number = brick.next_number;

    brick.runs_no_release = true;
    ask_joined();
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, number);
}
END_TEST

/* The number would close another file of the new session. */
START_TEST(a_release_that_waits_ends_with_its_connection)
{
    mount_for_sequences("60000");
    close_one(open_one(O_RDWR));
    lose_brick();
    wait_on(&came_up);
    ask_joined();
    ck_assert_int_eq(brick.steps, 2);
    ck_assert_int_eq(brick.releases, 0);
}
END_TEST

static void
add_release_tests(TCase *tc)
{
    tcase_add_test(tc, a_release_rides_behind_the_next_sequence);
    tcase_add_test(tc, a_release_rides_behind_the_last_calls_about_its_fd);
    tcase_add_test(tc, a_joined_call_takes_the_fd_of_the_open_before);
    tcase_add_test(tc, a_call_of_its_own_takes_the_fd_of_the_open_before);
    tcase_add_test(tc, six_releases_that_wait_share_a_record);
    tcase_add_test(tc, a_lone_release_is_sent_after_its_time);
    tcase_add_test(tc, the_release_of_a_locked_file_does_not_wait);
    tcase_add_test(tc, a_release_that_the_brick_has_not_run_is_sent_again);
    tcase_add_test(tc, a_release_that_waits_ends_with_its_connection);
}

int
main(void)
{
    return client_tests_run("client-release", add_release_tests);
}
