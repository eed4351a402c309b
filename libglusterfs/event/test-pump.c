/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "event/test-pump.h"
#include "event/timer.h"

/* ---- basic use ------------------------------------------------------------------------------- */

START_TEST(bytes_go_in_and_come_out)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("cat; echo oops >&2; exit 3"));

    o.in = (struct pump_source){.kind = PUMP_BYTES, .bytes = "hello\n", .count = 6};
    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, 3);
    ck_assert_int_eq(c->result.signal, 0);
    ck_assert_str_eq(c->out, "hello\n");
    ck_assert_str_eq(c->err, "oops\n");
    ck_assert_uint_eq(c->result.in_bytes, 6);
    ck_assert_uint_eq(c->result.out_bytes, 6);
    ck_assert_uint_eq(c->result.err_bytes, 5);
    free_child(c);
}
END_TEST

START_TEST(output_to_no_sink_is_dropped)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("cat; echo a; echo b >&2"));

    o.out = o.err = (struct pump_sink){.kind = PUMP_NULL};
    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, 0);
    ck_assert_uint_eq(c->result.out_bytes + c->result.err_bytes, 0);
    free_child(c);
}
END_TEST

START_TEST(standard_error_can_share_the_sink_of_standard_output)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("echo 1; echo 2 >&2; echo 3"));

    o.err = (struct pump_sink){.kind = PUMP_SAME};
    run(c, &o);
    ck_assert_str_eq(c->out, "1\n2\n3\n");
    c->out_bytes = 0;
    c->inside = 0;
    o.out = (struct pump_sink){.kind = PUMP_NULL};
    run(c, &o);
    ck_assert_uint_eq(c->out_bytes, 0);
    free_child(c);
}
END_TEST

START_TEST(the_child_gets_the_given_environment_and_arguments)
{
    struct child *c = child_new();
    struct pump_options o =
        shell(c, ((char *const[]){"/bin/sh", "-c", "echo $A-$1-$PPID_NOT", "x", "y z", NULL}));

    o.envp = (char *const[]){"A=b", NULL};
    run(c, &o);
    ck_assert_str_eq(c->out, "b-y z-\n");
    free_child(c);
}
END_TEST

/* Other descriptors than its three, blocked signals and ignored signals of this process do not reach the
 * child. */
START_TEST(the_child_inherits_nothing)
{
    struct child *c = child_new();
    struct pump_options o =
        shell(c, SH("ls /proc/self/fd | tr '\\n' ' '; "
                    /* read by the shell itself, because a child that waits in vfork has all signals
                     * blocked */
                    "while read name bits; do case $name in SigBlk:) echo $bits;; "
                    "SigIgn:) echo ${bits#?????????};; " /* libc uses 32 and 33 itself */
                    "esac; done </proc/self/status; "
                    "read pid name state ppid pgrp rest </proc/$$/stat; [ $pgrp = $$ ] && echo leads"));
    int leaky = open("/dev/null", O_RDONLY); /* without O_CLOEXEC */

    signal(SIGUSR1, SIG_IGN);
    signal(SIGPIPE, SIG_IGN);
    run(c, &o);
    signal(SIGUSR1, SIG_DFL);
    signal(SIGPIPE, SIG_DFL);
    close(leaky);
    ck_assert_str_eq(c->out, "0 1 2 3 0000000000000000\n0000000\nleads\n");
    free_child(c);
}
END_TEST

/* A daemon has umask 0. Its umask is unchanged. */
START_TEST(the_child_makes_files_for_its_user_alone)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("umask"));
    mode_t before = umask(0);

    run(c, &o);
    ck_assert_uint_eq(umask(before), 0);
    ck_assert_str_eq(c->out, "0077\n");
    free_child(c);
}
END_TEST

/* ---- misbehaving children -------------------------------------------------------------------- */

START_TEST(a_child_may_exit_without_reading_its_input)
{
    struct child *c = child_new();
    size_t bytes = 4 << 20;
    void *much = calloc(1, bytes);
    struct pump_options o = shell(c, SH("exec true"));

    o.in = (struct pump_source){.kind = PUMP_BYTES, .bytes = much, .count = bytes};
    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, 0);
    ck_assert_uint_lt(c->result.in_bytes, bytes);
    free(much);
    free_child(c);
}
END_TEST

START_TEST(a_child_may_close_its_input_and_continue)
{
    struct child *c = child_new();
    size_t bytes = 4 << 20;
    void *much = calloc(1, bytes);
    struct pump_options o = shell(c, SH("exec <&-; sleep 0.05; echo still here"));

    signal(SIGPIPE, SIG_DFL);
    o.in = (struct pump_source){.kind = PUMP_BYTES, .bytes = much, .count = bytes};
    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_str_eq(c->out, "still here\n");
    free(much);
    free_child(c);
}
END_TEST

START_TEST(a_child_that_never_reads_is_killed_at_the_timeout)
{
    struct child *c = child_new();
    size_t bytes = 4 << 20;
    void *much = calloc(1, bytes);
    struct pump_options o = shell(c, SH("exec sleep 1000"));

    o.in = (struct pump_source){.kind = PUMP_BYTES, .bytes = much, .count = bytes};
    o.timeout_ms = 50;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -ETIMEDOUT);
    ck_assert_int_eq(c->result.signal, SIGKILL);
    ck_assert_uint_gt(c->result.in_bytes, 0);
    ck_assert_uint_lt(c->result.in_bytes, bytes);
    free(much);
    free_child(c);
}
END_TEST

START_TEST(a_child_above_the_output_limit_is_killed)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("exec cat /dev/zero"));

    o.output_bytes_max = 10000001;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -EFBIG);
    ck_assert_int_eq(c->result.signal, SIGKILL);
    ck_assert_uint_eq(c->out_bytes, 10000001);
    ck_assert_uint_eq(c->result.out_bytes, 10000001);
    free_child(c);
}
END_TEST

START_TEST(both_outputs_count_for_the_output_limit)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("printf 12345; printf 67890 >&2"));

    o.output_bytes_max = 10;
    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_uint_eq(c->out_bytes + c->err_bytes, 10);
    c->inside = 0;
    o.output_bytes_max = 9;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -EFBIG);
    ck_assert_uint_eq(c->result.out_bytes + c->result.err_bytes, 9);
    free_child(c);
}
END_TEST

START_TEST(the_result_has_the_signal_that_killed_the_child)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("echo before; kill -TERM $$"));

    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, -1);
    ck_assert_int_eq(c->result.signal, SIGTERM);
    ck_assert_str_eq(c->out, "before\n");
    free_child(c);
}
END_TEST

/* The shell's own child holds the pipes and ignores all signals that can be ignored. */
START_TEST(the_timeout_ends_a_child_with_children)
{
    struct child *c = child_new();
    struct pump_options o =
        shell(c, SH("trap '' TERM HUP; (trap '' TERM HUP; echo $BASHPID; sleep 1000); true"));
    uint64_t begin = clock_mono_ns();

    o.timeout_ms = 100;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -ETIMEDOUT);
    ck_assert_uint_lt(clock_mono_ns() - begin, 15000000000u);
    free_child(c);
}
END_TEST

/* A daemon that a hook leaves behind keeps the pipes open. */
START_TEST(a_daemon_of_the_child_does_not_keep_the_pump_waiting)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("sleep 1000 & echo $!"));
    uint64_t begin = clock_mono_ns();

    run(c, &o);
    ck_assert_int_eq(c->result.error, 0);
    ck_assert_int_eq(c->result.exit_code, 0);
    ck_assert_uint_lt(clock_mono_ns() - begin, 15000000000u);
    pid_t left = (pid_t)atoi(c->out);

    ck_assert_int_gt(left, 1);
    ck_assert_int_eq(kill(left, SIGKILL), 0); /* the daemon lives */
    free_child(c);
}
END_TEST

START_TEST(a_program_that_cannot_be_run_is_an_error)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, ((char *const[]){"/no/such/program", NULL}));
    struct pump *p = NULL;

    ck_assert_int_eq(pump_start(&o, &p), -ENOENT);
    o.path = "/etc/passwd";
    ck_assert_int_eq(pump_start(&o, &p), -EACCES);
    o.path = "/tmp";
    ck_assert_int_eq(pump_start(&o, &p), -EACCES);
    ck_assert_int_eq(chmod(place, 0700), 0);
    o.path = place; /* empty */
    ck_assert_int_eq(pump_start(&o, &p), -ENOEXEC);
    ck_assert_ptr_null(p);
    ck_assert_uint_eq(pumps_running(), 0);
    free_child(c);
}
END_TEST

START_TEST(a_start_without_descriptors_fails_with_emfile)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("echo fine"));
    struct rlimit limit, low;
    int fillers[100], count = 0;

    o.in = (struct pump_source){.kind = PUMP_BYTES};
    ck_assert_int_eq(getrlimit(RLIMIT_NOFILE, &limit), 0);
    low = (struct rlimit){.rlim_cur = 100, .rlim_max = limit.rlim_max};
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &low), 0);
    while ((fillers[count] = dup(0)) >= 0)
        count++;
    for (int left = 0; left <= 6; left++) { /* three pipes; and the pidfd, after the child has got its ends */
        int err = pump_start(&o, NULL);

        if (!err)
            wait_for(&c->done);
        ck_assert_int_eq(err, left < 6 ? -EMFILE : 0);
        ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
        close(fillers[--count]);
    }
    while (count)
        close(fillers[--count]);
    ck_assert_int_eq(setrlimit(RLIMIT_NOFILE, &limit), 0);
    c->inside = 0;
    memset(c->out, 0, sizeof c->out);
    c->out_bytes = 0;
    run(c, &o);
    ck_assert_str_eq(c->out, "fine\n");
    free_child(c);
}
END_TEST

START_TEST(an_error_of_the_sink_kills_the_child)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("cat /dev/zero"));

    c->fails_with = -EDQUOT;
    run(c, &o);
    ck_assert_int_eq(c->result.error, -EDQUOT);
    ck_assert_int_eq(c->result.signal, SIGKILL);
    free_child(c);
}
END_TEST

/* A sink that accepts nothing for a while: the child waits, and no byte is lost. */
static struct {
    bool refuses;
    unsigned refusals;
    uint64_t bytes;
    size_t largest;
    uint32_t sum;
} slow;

static int
take_later(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    if (__atomic_load_n(&slow.refuses, __ATOMIC_ACQUIRE)) {
        __atomic_fetch_add(&slow.refusals, 1, __ATOMIC_RELEASE);
        return -EAGAIN;
    }
    for (size_t i = 0; i < count; i++)
        slow.sum = slow.sum * 31 + (unsigned char)bytes[i];
    slow.bytes += count;
    if (count > slow.largest)
        slow.largest = count;
    return 0;
}

START_TEST(a_slow_sink_gets_all_output)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("seq 1 200000; echo end >&2"));
    struct pump *p;
    uint32_t sum = 0;
    char line[16];

    slow.refuses = true;
    o.out = (struct pump_sink){.kind = PUMP_FN, .fn = take_later};
    o.buffer_bytes = 4096;
    ck_assert_int_eq(pump_start(&o, &p), 0);
    while (!__atomic_load_n(&slow.refusals, __ATOMIC_ACQUIRE))
        usleep(1000);
    for (int i = 0; i < 3; i++) { /* called too early, it refuses again */
        unsigned before = __atomic_load_n(&slow.refusals, __ATOMIC_ACQUIRE);

        pump_output_ready(p);
        while (__atomic_load_n(&slow.refusals, __ATOMIC_ACQUIRE) == before)
            usleep(1000);
    }
    /* the child has not written to stderr yet, because its pipe is full */
    ck_assert_uint_eq(c->err_bytes, 0);
    __atomic_store_n(&slow.refuses, false, __ATOMIC_RELEASE);
    pump_output_ready(p);
    wait_for(&c->done);
    for (int i = 1; i <= 200000; i++) {
        int n = snprintf(line, sizeof line, "%d\n", i);

        for (int k = 0; k < n; k++)
            sum = sum * 31 + (unsigned char)line[k];
    }
    ck_assert_uint_eq(slow.sum, sum);
    ck_assert_uint_eq(slow.bytes, c->result.out_bytes);
    ck_assert_uint_le(slow.largest, 4096);
    ck_assert_str_eq(c->err, "end\n");
    pump_unref(p);
    free_child(c);
}
END_TEST

START_TEST(a_cancelled_child_is_killed)
{
    struct child *c = child_new();
    struct pump_options o = shell(c, SH("exec sleep 1000"));
    struct pump *p;

    ck_assert_int_eq(pump_start(&o, &p), 0);
    pump_cancel(p);
    wait_for(&c->done);
    ck_assert_int_eq(c->result.error, -ECANCELED);
    ck_assert_int_eq(c->result.signal, SIGKILL);
    pump_cancel(p); /* too late, which is no error */
    pump_unref(p);
    free_child(c);
}
END_TEST

/* ---- many ------------------------------------------------------------------------------------ */

START_TEST(a_hundred_children_run_at_once)
{
    struct child *c[100];
    char text[100][64];

    for (int i = 0; i < 100; i++) {
        c[i] = child_new();
        snprintf(text[i], sizeof text[i], "cat; echo %d; exit %d", i, i);
        struct pump_options o = shell(c[i], SH(text[i]));

        o.in = (struct pump_source){.kind = PUMP_BYTES, .bytes = "in ", .count = 3};
        ck_assert_int_eq(pump_start(&o, NULL), 0);
    }
    for (int i = 0; i < 100; i++) {
        char expected[16];

        wait_for(&c[i]->done);
        snprintf(expected, sizeof expected, "in %d\n", i);
        ck_assert_str_eq(c[i]->out, expected);
        ck_assert_int_eq(c[i]->result.exit_code, i);
        ck_assert_int_eq(c[i]->result.error, 0);
        free_child(c[i]);
    }
}
END_TEST

START_TEST(pumps_stop_kills_running_children)
{
    struct child *c[8];

    for (int i = 0; i < 8; i++) {
        c[i] = child_new();
        struct pump_options o = shell(c[i], i % 2 ? SH("exec cat /dev/zero") : SH("exec sleep 1000"));

        ck_assert_int_eq(pump_start(&o, NULL), 0);
    }
    pumps_stop();
    for (int i = 0; i < 8; i++) {
        ck_assert_int_eq(sem_trywait(&c[i]->done), 0);
        ck_assert_int_eq(c[i]->result.error, -ECANCELED);
        free_child(c[i]);
    }
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_test(t, bytes_go_in_and_come_out);
    tcase_add_test(t, output_to_no_sink_is_dropped);
    tcase_add_test(t, standard_error_can_share_the_sink_of_standard_output);
    tcase_add_test(t, the_child_gets_the_given_environment_and_arguments);
    tcase_add_test(t, the_child_inherits_nothing);
    tcase_add_test(t, the_child_makes_files_for_its_user_alone);
    tcase_add_test(t, a_child_may_exit_without_reading_its_input);
    tcase_add_test(t, a_child_may_close_its_input_and_continue);
    tcase_add_test(t, a_child_that_never_reads_is_killed_at_the_timeout);
    tcase_add_test(t, a_child_above_the_output_limit_is_killed);
    tcase_add_test(t, both_outputs_count_for_the_output_limit);
    tcase_add_test(t, the_result_has_the_signal_that_killed_the_child);
    tcase_add_test(t, the_timeout_ends_a_child_with_children);
    tcase_add_test(t, a_daemon_of_the_child_does_not_keep_the_pump_waiting);
    tcase_add_test(t, a_program_that_cannot_be_run_is_an_error);
    tcase_add_test(t, an_error_of_the_sink_kills_the_child);
    tcase_add_test(t, a_slow_sink_gets_all_output);
    tcase_add_test(t, a_cancelled_child_is_killed);
    tcase_add_test(t, a_hundred_children_run_at_once);
    tcase_add_test(t, pumps_stop_kills_running_children);
}

static Suite *
test_suite(void)
{
    TCase *t;
    Suite *s = pump_suite("pump", add_tests, &t);

    tcase_add_test(t, a_start_without_descriptors_fails_with_emfile);
    return s;
}

#include "base/test-main.h"
