/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event/pump.h"
#include "event/spawner.h"
#include "event/timer.h"
#include "event/worker.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"

/* A child of a test, and its results. */
struct child {
    sem_t done;
    struct pump_result result;
    char out[4096];
    size_t out_bytes, err_bytes, in_asked;
    char err[4096];
    atomic_int inside; /* functions of one pump run one at a time */
    int fails_with, busy_for;
    struct pump *pump;
};

static char place[64];
static unsigned descriptors_before;

static unsigned
descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static void
setup(void)
{
    strcpy(place, "/tmp/test-pump-XXXXXX");
    int fd = mkstemp(place);

    ck_assert_int_ge(fd, 0);
    close(fd);
    /* Else the sweeper would open files when it starts to run, and take descriptors that a test has left
     * for the pump. */
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_pools_fini(); /* from now on the pools keep one descriptor */
    descriptors_before = descriptors();
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(pump_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 4}), 0);
}

/* After every test: no child, no descriptor and no object is left. */
static void
teardown(void)
{
    pumps_stop();
    ck_assert_uint_eq(pumps_running(), 0);
    workers_stop();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
    ck_assert_uint_eq(descriptors(), descriptors_before);
    unlink(place);
}

static void
wait_for(sem_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (sem_timedwait(s, &until))
        ck_assert_int_eq(errno, EINTR);
}

static int
take_out(void *arg, const char *bytes, size_t count)
{
    struct child *c = arg;

    ck_assert_int_eq(c->inside++, 0);
    ck_assert_uint_ge(count, 1);
    for (size_t i = 0; i < count && c->out_bytes + i < sizeof c->out - 1; i++)
        c->out[c->out_bytes + i] = bytes[i];
    c->out_bytes += count;
    c->inside--;
    return c->fails_with;
}

static int
take_err(void *arg, const char *bytes, size_t count)
{
    struct child *c = arg;

    ck_assert_int_eq(c->inside++, 0);
    for (size_t i = 0; i < count && c->err_bytes + i < sizeof c->err - 1; i++)
        c->err[c->err_bytes + i] = bytes[i];
    c->err_bytes += count;
    c->inside--;
    return 0;
}

static void
done(struct pump *p, const struct pump_result *r, void *arg)
{
    struct child *c = arg;

    (void)p;
    ck_assert_int_eq(c->inside++, 0);
    c->result = *r;
    sem_post(&c->done);
}

static struct child *
child_new(void)
{
    struct child *c = calloc(1, sizeof *c);

    sem_init(&c->done, 0, 0);
    return c;
}

static struct pump_options
shell(struct child *c, char *const argv[])
{
    return (struct pump_options){.path = argv[0],
                                 .argv = argv,
                                 .out = {.kind = PUMP_FN, .fn = take_out},
                                 .err = {.kind = PUMP_FN, .fn = take_err},
                                 .done = done,
                                 .arg = c};
}
#define SH(text) ((char *const[]){"/bin/sh", "-c", (char *)(uintptr_t)(text), NULL})

static void
run(struct child *c, const struct pump_options *o)
{
    ck_assert_int_eq(pump_start(o, NULL), 0);
    wait_for(&c->done);
}

static void
free_child(struct child *c)
{
    sem_destroy(&c->done);
    free(c);
}

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

/* ---- by the spawner -------------------------------------------------------------------------- */

static void
setup_with_spawner(void)
{
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    setup();
}

static void
teardown_with_spawner(void)
{
    descriptors_before--; /* the spawner's socket */
    spawner_end();
    teardown();
}

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
    Suite *s = suite_create("pump");
    TCase *t = tcase_create("pump"), *by_spawner = tcase_create("pump with a spawner");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    add_tests(t);
    tcase_add_test(t, a_start_without_descriptors_fails_with_emfile);
    suite_add_tcase(s, t);
    tcase_set_timeout(by_spawner, 60);
    tcase_add_checked_fixture(by_spawner, setup_with_spawner, teardown_with_spawner);
    add_tests(by_spawner);
    suite_add_tcase(s, by_spawner);
    return s;
}

#include "base/test-main.h"
