/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Children whose input and output are functions, files, pipes and other descriptors, and the process's wait
 * for a child. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "event/test-pump.h"

/* ---- functions and descriptors --------------------------------------------------------------- */

static ssize_t
give_slowly(void *arg, char *room, size_t size)
{
    struct child *c = arg;

    ck_assert_int_eq(c->inside++, 0);
    ck_assert_uint_eq(size, 65536);
    unsigned turn = c->in_asked++;

    memset(room, 'a' + (int)(turn % 26), size);
    c->inside--;
    if (turn % 8 == 7)
        sem_post(&c->done); /* the test resumes the source */
    return turn == 63 ? 0 : turn % 8 == 7 ? -EAGAIN : (ssize_t)size;
}

START_TEST(a_slow_source_gives_all_input)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("wc -c"));
    struct pump *p;

    o.in = (struct pump_source){.kind = PUMP_FN, .fn = give_slowly};
    ck_assert_int_eq(pump_start(&o, &p), 0);
    for (int i = 0; i < 7; i++) {
        wait_for(&c->done);
        pump_input_ready(p);
    }
    wait_for(&c->done); /* of the 64th call */
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_uint_eq(c->result.in_bytes, 56 * 65536);
    ck_assert_uint_eq(strtoul(c->out, NULL, 10), 56 * 65536);
    pump_unref(p);
    free_child(c);
}
END_TEST

static void
check_file(const char *path, size_t bytes)
{
    struct stat st;

    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq((size_t)st.st_size, bytes);
}

START_TEST(a_child_copies_a_file_to_a_file)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("cat"));
    size_t bytes = 3000001;
    char *text = malloc(bytes), *back = malloc(bytes), to[80];
    int from = open(place, O_RDWR | O_TRUNC), fd;

    for (size_t i = 0; i < bytes; i++)
        text[i] = (char)(i * 7 + i / 251);
    ck_assert_int_eq(pwrite(from, text, bytes, 0), (ssize_t)bytes);
    snprintf(to, sizeof to, "%s.out", place);
    for (int appends = 0; appends < 2; appends++) { /* splice(2) refuses a file that is open for appending */
        ck_assert_int_eq(lseek(from, 0, SEEK_SET), 0);
        fd = open(to, O_RDWR | O_CREAT | O_TRUNC | (appends ? O_APPEND : 0), 0600);
        c->inside = 0;
        o.in = (struct pump_source){.kind = PUMP_FD, .fd = from};
        o.out = (struct pump_sink){.kind = PUMP_FD, .fd = fd};
        o.pipe_bytes = appends ? 0 : 1 << 20;
        run(c, &o);
        ck_assert_int_eq(c->result.error, 0);
        ck_assert_int_eq(c->result.exit_code, 0);
        ck_assert_uint_eq(c->result.in_bytes, bytes);
        ck_assert_uint_eq(c->result.out_bytes, bytes);
        check_file(to, bytes);
        ck_assert_int_eq(pread(fd, back, bytes, 0), (ssize_t)bytes);
        ck_assert_mem_eq(text, back, bytes);
        close(fd);
    }
    unlink(to);
    close(from);
    free(text);
    free(back);
    free_child(c);
}
END_TEST

/* The other pipe is not read until the child has long exited. */
START_TEST(output_waits_for_room_in_a_full_pipe)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("head -c 100000 /dev/zero"));
    int fds[2];
    char buf[4096];
    size_t got = 0;

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    o.out = (struct pump_sink){.kind = PUMP_FD, .fd = fds[1]};
    ck_assert_int_eq(pump_start(&o, NULL), -EINVAL); /* it would block */
    ck_assert_int_eq(fcntl(fds[1], F_SETFL, O_NONBLOCK), 0);
    ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, 4096), 4096);
    ck_assert_int_eq(pump_start(&o, NULL), 0);
    close(fds[1]);
    for (ssize_t n; (n = read(fds[0], buf, sizeof buf)) > 0;)
        got += (size_t)n;
    ck_assert_uint_eq(got, 100000);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_uint_eq(c->result.out_bytes, 100000);
    close(fds[0]);

    /* And a pipe that is never read: the child may be gone, but the time limit still holds. */
    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    ck_assert_int_ge(fcntl(fds[1], F_SETPIPE_SZ, 4096), 4096);
    c->inside = 0;
    o = shell(c, SH("head -c 20000 /dev/zero"));
    o.out = (struct pump_sink){.kind = PUMP_FD, .fd = fds[1]};
    o.timeout_ms = 1000;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -ETIMEDOUT);
    ck_assert_int_eq(c->result.exit_code, 0);
    close(fds[0]);
    close(fds[1]);
    free_child(c);
}
END_TEST

START_TEST(output_to_a_closed_pipe_fails_with_epipe)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("cat /dev/zero"));
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    o.out = (struct pump_sink){.kind = PUMP_FD, .fd = fds[1]};
    ck_assert_int_eq(pump_start(&o, NULL), 0);
    close(fds[1]);
    close(fds[0]);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, -EPIPE);
    free_child(c);
}
END_TEST

START_TEST(input_comes_from_a_pipe)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("exec cat"));
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    o.in = (struct pump_source){.kind = PUMP_FD, .fd = fds[0]};
    o.output_bytes_max = 100;
    ck_assert_int_eq(pump_start(&o, NULL), 0);
    close(fds[0]);
    ck_assert_int_eq(write(fds[1], "one ", 4), 4);
    ck_assert_int_eq(write(fds[1], "two", 3), 3);
    close(fds[1]);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_str_eq(c->out, "one two");
    free_child(c);
}
END_TEST

/* As fusermount gets the descriptor for its answer. */
START_TEST(a_given_descriptor_is_used_by_the_child_directly)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("read line <&0; echo \"got $line\" >&0; echo x"));
    char answer[16] = "";
    int fds[2];

    ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
    o.in = (struct pump_source){.kind = PUMP_GIVE, .fd = fds[0]};
    o.out = o.err = (struct pump_sink){.kind = PUMP_GIVE, .fd = fds[0]};
    ck_assert_int_eq(pump_start(&o, NULL), 0);
    close(fds[0]);
    ck_assert_int_eq(write(fds[1], "it\n", 3), 3);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, 0);
    ck_assert_uint_eq(c->result.in_bytes + c->result.out_bytes, 0);
    ck_assert_int_eq(read(fds[1], answer, sizeof answer), 9); /* and no other process holds it: */
    ck_assert_str_eq(answer, "got it\nx\n");
    ck_assert_int_eq(read(fds[1], answer, sizeof answer), 0);
    close(fds[1]);
    o.in.fd = -1;
    ck_assert_int_eq(pump_start(&o, NULL), -EBADF);
    free_child(c);
}
END_TEST

/* This is an error of the process, but the pump must not wait for ever. */
START_TEST(the_process_waits_for_the_child_itself)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("echo out; exec sleep 0.2"));

    signal(SIGCHLD, SIG_IGN);
    run(c, &o);
    signal(SIGCHLD, SIG_DFL);
    ck_assert_int_eq(c->result.error, -ECHILD);
    ck_assert_str_eq(c->out, "out\n");
    free_child(c);
}
END_TEST

struct count {
    char name[64];
    uint64_t live;
};

static void
count_line(void *arg, const char *key, const char *value)
{
    struct count *c = arg;

    if (!strcmp(key, "pool-name"))
        snprintf(c->name, sizeof c->name, "%s", value);
    else if (!strcmp(key, "active-count") && !strncmp(c->name, "iobuf", 5))
        c->live += strtoull(value, NULL, 10);
}

static int
take_and_tell(void *arg, const char *bytes, size_t count)
{
    struct child *c = arg;
    int err = take_out(arg, bytes, count);

    if (c->out[c->out_bytes - 1] == '\n')
        sem_post(&c->done);
    return err;
}

/* Buffers are held only while bytes move, and cached buffers do not outlive two sweeps. */
START_TEST(a_silent_child_holds_no_buffer)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("exec cat"));
    struct count count;
    struct mem_process_stats stats;
    int fds[2];

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC | O_NONBLOCK), 0);
    o.in = (struct pump_source){.kind = PUMP_FD, .fd = fds[0]};
    o.out.fn = take_and_tell;
    ck_assert_int_eq(pump_start(&o, NULL), 0);
    close(fds[0]);
    ck_assert_int_eq(write(fds[1], "line\n", 5), 5);
    wait_for(&c->done);
    for (int tries = 0; tries < 2000; tries++) { /* the worker is about to give it back */
        count = (struct count){0};
        mem_pools_dump(count_line, &count);
        if (count.live == 0)
            break;
        usleep(1000);
    }
    if (strcmp(mem_pools_mode(), "off"))
        ck_assert_uint_eq(count.live, 0);
    close(fds[1]);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, 0);
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    mem_pools_sweep_now();
    mem_pools_stats(&stats);
    ck_assert_uint_eq(stats.cached_bytes, 0);
    free_child(c);
}
END_TEST

START_TEST(invalid_options_are_refused)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("true"));

    o.in.kind = PUMP_FN;
    ck_assert_int_eq(pump_start(&o, NULL), -EINVAL);
    o.in.kind = PUMP_SAME;
    ck_assert_int_eq(pump_start(&o, NULL), -EINVAL);
    o.in.kind = PUMP_NULL;
    o.out = (struct pump_sink){.kind = PUMP_SAME};
    ck_assert_int_eq(pump_start(&o, NULL), -EINVAL);
    o.out = (struct pump_sink){.kind = PUMP_FD, .fd = -1};
    ck_assert_int_eq(pump_start(&o, NULL), -EBADF);
    o.out = (struct pump_sink){.kind = PUMP_BYTES};
    ck_assert_int_eq(pump_start(&o, NULL), -EINVAL);
    free_child(c);
}
END_TEST

static void
add_descriptor_tests(TCase *t)
{
    tcase_add_test(t, a_slow_source_gives_all_input);
    tcase_add_test(t, a_child_copies_a_file_to_a_file);
    tcase_add_test(t, output_waits_for_room_in_a_full_pipe);
    tcase_add_test(t, output_to_a_closed_pipe_fails_with_epipe);
    tcase_add_test(t, input_comes_from_a_pipe);
    tcase_add_test(t, a_given_descriptor_is_used_by_the_child_directly);
    tcase_add_test(t, the_process_waits_for_the_child_itself);
    tcase_add_test(t, a_silent_child_holds_no_buffer);
    tcase_add_test(t, invalid_options_are_refused);
}

static Suite *
test_suite(void)
{
    TCase *t;

    return pump_suite("pump-descriptors", add_descriptor_tests, &t);
}

#include "base/test-main.h"
