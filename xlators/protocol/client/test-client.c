/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Tests of protocol/client: fds and their numbers, also after a lost connection, locks, and replies while the
 * brick is down. */
#include "xlators/protocol/client/test-client-brick.h"

START_TEST(an_fd_is_sent_by_number_and_released)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);
    long long number = brick.next_number;

    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    ck_assert_int_eq(brick.last_number, number);
    ck_assert_int_eq(brick.releases, 0);
    close_one(fd);
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, number);
}
END_TEST

START_TEST(create_makes_the_inode_of_the_reply)
{
    mount_it("");
    wait_on(&came_up);
    struct call_stack *stk = make(FOP_create, NULL);

    stk->call.loc.parent = inode_root(graph->inodes);
    stk->call.loc.name = "n";
    stk->call.flags = O_CREAT | O_RDWR;
    wind(stk);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, 0);
    ck_assert_int_eq(stk->reply.fd->inode->gfid.b[0], 7);
    call_stack_free(stk); /* no layer has taken the fd */
    wait_for_releases(1);
}
END_TEST

/* The layer that gets the reply would link it. */
START_TEST(an_object_without_a_gfid_fails_the_lookup)
{
    static const enum fop fops[] = {FOP_create, FOP_lookup, FOP_mknod, FOP_mkdir, FOP_symlink, FOP_link};

    brick.has_no_gfids = true;
    mount_it("");
    wait_on(&came_up);
    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        struct call_stack *stk = make(fops[i], NULL);

        stk->call.loc.parent = inode_root(graph->inodes);
        stk->call.loc.name = "n";
        wind(stk);
        wait_on(&one_done);
        ck_assert_int_eq(stk->reply.op_ret, -1);
        ck_assert_int_eq(stk->reply.op_errno, EIO);
        call_stack_free(stk);
    }
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0);
}
END_TEST

static int
ask_of_root(enum fop fop)
{
    struct call_stack *stk = make(fop, NULL);

    stk->call.loc.inode = inode_root(graph->inodes);
    wind(stk);
    wait_on(&one_done);
    int err = stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;

    call_stack_free(stk);
    return err;
}

/* The kernel would give up the root, and with it the mount. */
START_TEST(impossible_attributes_fail_the_call)
{
    static const enum fop fops[] = {FOP_stat, FOP_setattr, FOP_truncate};

    mount_it("");
    wait_on(&came_up);
    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        brick.mode = S_IFREG | 0755;
        ck_assert_int_eq(ask_of_root(fops[i]), -EIO);
        brick.mode = 0; /* an arbiter's reply */
        ck_assert_int_eq(ask_of_root(fops[i]), fops[i] == FOP_truncate ? 0 : -EIO);
        brick.mode = S_IFDIR | 0755;
        brick.size = UINT64_MAX;
        ck_assert_int_eq(ask_of_root(fops[i]), -EIO);
        brick.size = 4096;
        ck_assert_int_eq(ask_of_root(fops[i]), 0);
    }
}
END_TEST

static void
open_along(struct fd *fd)
{
    struct call_stack *stk = make(FOP_open, fd);

    stk->call.loc.inode = inode_ref(fd->inode);
    stk->call.flags = O_RDWR;
    wind(stk);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, 0);
    ck_assert_ptr_eq(stk->reply.fd, fd);
    call_stack_free(stk);
}

START_TEST(a_write_of_more_bytes_than_were_sent_fails)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    brick.writes_more = 1;
    ck_assert_int_eq(ask(FOP_writev, fd), -EIO);
    brick.writes_more = INT32_MAX - 1;
    ck_assert_int_eq(ask(FOP_writev, fd), -EIO);
    brick.writes_more = 0;
    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    close_one(fd);
}
END_TEST

START_TEST(a_passed_fd_gets_the_number)
{
    mount_it("");
    wait_on(&came_up);
    struct iatt a = {.gfid.b = {9}, .mode = S_IFREG | 0644};
    struct inode *inode = inode_link(graph->inodes, NULL, NULL, &a);
    struct fd *fd = fd_new(inode, NULL, O_RDWR, false);

    inode_unref(inode);
    ck_assert_int_eq(ask(FOP_flush, fd), -EBADFD); /* not open here */
    open_along(fd);
    long long first = brick.next_number;

    ck_assert_int_eq(ask(FOP_flush, fd), 0);
    ck_assert_int_eq(brick.last_number, first);
    open_along(fd); /* once more: the first number is given back */
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, first);
    ck_assert_int_eq(ask(FOP_flush, fd), 0);
    ck_assert_int_eq(brick.last_number, first + 1);
    close_one(fd);
    wait_for_releases(2);
    ck_assert_int_eq(brick.last_released, first + 1);
}
END_TEST

START_TEST(an_fd_is_open_again_when_the_brick_is_back)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR | O_APPEND | O_TRUNC);
    long long before = brick.next_number;

    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(brick.logins, 2);
    ck_assert_int_eq(brick.opens, 2);
    ck_assert_uint_eq(brick.last_flags, O_RDWR | O_APPEND); /* the file is not truncated again */
    ck_assert_int_eq(ask(FOP_fsync, fd), 0);
    ck_assert_int_eq(brick.last_number, before + 1);
    close_one(fd);
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, before + 1);
}
END_TEST

START_TEST(an_fd_that_cannot_be_reopened_uses_the_gfid_or_fails)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    brick.opens_nothing = true;
    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    ck_assert_int_eq(brick.last_number, FD_ANONYMOUS);
    ck_assert_int_eq(ask(FOP_flush, fd), -EBADFD);
    close_one(fd); /* the brick has no number for it: nothing to give back */
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0);
    ck_assert_int_eq(brick.releases, 0);
}
END_TEST

static void
lock_one(struct fd *fd, uint32_t type, int64_t start, int64_t len)
{
    flock.type = type;
    flock.start = start;
    flock.len = len;
    ck_assert_int_eq(ask(FOP_lk, fd), 0);
}

/* Returns whether the brick got this lock request after its return, by the lock's first byte. */
static bool
was_taken(uint32_t type, long long start, long long len, long long number)
{
    for (int i = 0; i < brick.locks; i++) {
        if (brick.lock[i].start == start)
            return brick.lock[i].type == type && brick.lock[i].len == len && brick.lock[i].number == number;
    }
    return false;
}

START_TEST(locks_are_taken_again_when_the_brick_is_back)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR), *other = open_one(O_RDWR);

    lock_one(fd, FLOCK_WRITE, 100, 100);
    lock_one(fd, FLOCK_UNLOCK, 120, 10); /* splits the lock */
    lock_one(fd, FLOCK_READ, 190, 50);   /* takes a part of the second one's range */
    lock_one(fd, FLOCK_WRITE, 1000, 0);
    lock_one(other, FLOCK_UNLOCK, 1000, 0); /* of the same owner */
    lock_one(other, FLOCK_WRITE, 5000, 0);
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 4);
    long long number = brick.lock[0].start == 5000 ? brick.lock[1].number : brick.lock[0].number;

    ck_assert(was_taken(FLOCK_WRITE, 100, 20, number));
    ck_assert(was_taken(FLOCK_WRITE, 130, 60, number));
    ck_assert(was_taken(FLOCK_READ, 190, 50, number));
    ck_assert(!was_taken(FLOCK_WRITE, 5000, 0, number)); /* through the other fd */
    close_one(other);
    wait_for_releases(1); /* and the locks taken through it */
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 3);
    ck_assert_int_eq(ask(FOP_flush, fd), 0); /* drops the owner's locks */
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 0);
    close_one(fd);
}
END_TEST

START_TEST(strict_locks_leave_an_fd_with_locks_dead)
{
    mount_it(" option strict-locks on\n");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_lk, fd), 0);
    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(brick.opens, 1);
    ck_assert_int_eq(ask(FOP_writev, fd), -EBADFD);
    close_one(fd);
}
END_TEST

/* This brick does not offer sequences. */
START_TEST(joined_calls_go_one_after_another)
{
    mount_it("");
    wait_on(&came_up);
    struct call_stack *a = make(FOP_statfs, NULL), *b = make(FOP_lookup, NULL), *c = make(FOP_statfs, NULL);
    struct call_stack *d = make(FOP_statfs, NULL);

    call_stack_join(a, b, false);
    call_stack_join(b, c, false);
    call_stack_join(c, d, true);
    wind(a);
    for (int i = 0; i < 4; i++)
        wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_int_eq(b->reply.op_errno, EIO); /* no gfid comes */
    ck_assert_int_eq(c->reply.op_errno, ECANCELED);
    ck_assert_int_eq(c->reply.shortage, SHORTAGE_UNSENT);
    ck_assert_int_eq(d->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
    call_stack_free(c);
    call_stack_free(d);
}
END_TEST

START_TEST(a_call_that_waits_gets_enotconn)
{
    mount_it("");
    wait_on(&came_up);
    brick.answers_not = true;
    struct call_stack *stk = make(FOP_statfs, NULL);

    wind(stk);
    lose_brick();
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, -1);
    ck_assert_int_eq(stk->reply.op_errno, ENOTCONN);
    call_stack_free(stk);
}
END_TEST

START_TEST(a_call_ends_with_the_frame_timeout)
{
    mount_it(" option frame-timeout 1\n");
    wait_on(&came_up);
    brick.answers_not = true;
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

/* The first timeout would be longer than the test. */
START_TEST(a_new_frame_timeout_takes_effect)
{
    char text[512], error[512] = "";

    mount_it(" option frame-timeout 3600\n");
    wait_on(&came_up);
    int n =
        snprintf(text, sizeof text,
                 "volume c\n type protocol/client\n option remote-host 127.0.0.1\n option remote-port %u\n"
                 " option remote-subvolume /brick\n option frame-timeout 1\n end-volume\n",
                 port);
    struct volfile *v = volfile_parse("t.vol", text, (size_t)n, error, sizeof error);

    ck_assert_msg(v && graph_reconfigure(graph, v, error, sizeof error) == 0, "%s", error);
    brick.answers_not = true;
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

START_TEST(a_missing_brick_is_reported_and_calls_fail_at_once)
{
    port = 1;
    mount_it("");
    wait_on(&went_down);
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

START_TEST(a_graph_ends_while_calls_wait)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    brick.answers_not = true;
    struct call_stack *stk = make(FOP_statfs, NULL);

    ck_assert(graph_pin(graph));
    wind(stk);
    graph_stop(graph);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_errno, ENOTCONN);
    call_stack_free(stk);
    close_one(fd);
    graph_unpin(graph);
}
END_TEST

static void
add_client_tests(TCase *tc)
{
    tcase_add_test(tc, an_fd_is_sent_by_number_and_released);
    tcase_add_test(tc, create_makes_the_inode_of_the_reply);
    tcase_add_test(tc, an_object_without_a_gfid_fails_the_lookup);
    tcase_add_test(tc, impossible_attributes_fail_the_call);
    tcase_add_test(tc, a_write_of_more_bytes_than_were_sent_fails);
    tcase_add_test(tc, a_passed_fd_gets_the_number);
    tcase_add_test(tc, an_fd_is_open_again_when_the_brick_is_back);
    tcase_add_test(tc, an_fd_that_cannot_be_reopened_uses_the_gfid_or_fails);
    tcase_add_test(tc, locks_are_taken_again_when_the_brick_is_back);
    tcase_add_test(tc, strict_locks_leave_an_fd_with_locks_dead);
    tcase_add_test(tc, joined_calls_go_one_after_another);
    tcase_add_test(tc, a_call_that_waits_gets_enotconn);
    tcase_add_test(tc, a_call_ends_with_the_frame_timeout);
    tcase_add_test(tc, a_new_frame_timeout_takes_effect);
    tcase_add_test(tc, a_missing_brick_is_reported_and_calls_fail_at_once);
    tcase_add_test(tc, a_graph_ends_while_calls_wait);
}

int
main(void)
{
    return client_tests_run("protocol/client", add_client_tests);
}
