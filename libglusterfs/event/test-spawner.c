/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The spawner alone; test-pump.c runs programs under a pump with it. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test-child.h"
#include "event/spawner.h"

static int null;
static char text[4096];

static void
setup(void)
{
    alarm(TEST_CHILD_SECONDS);
    umask(0);
    null = open("/dev/null", O_RDWR | O_CLOEXEC);
    ck_assert_int_ge(null, 0);
}

/* Runs a program by the spawner. Fills `text` with its output, and returns the exit status, or -errno. */
static int
run_program(const char *path, char *const argv[], char *const envp[])
{
    size_t used = 0;
    int fds[2], status;
    ssize_t n;
    pid_t pid;

    ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
    int err = spawner_start(path, argv, envp, (const int[3]){null, fds[1], fds[1]}, &pid);
    close(fds[1]);
    while (!err && (n = read(fds[0], text + used, sizeof text - 1 - used)) > 0)
        used += (size_t)n;
    close(fds[0]);
    text[used] = '\0';
    if (err) {
        ck_assert_int_eq(waitpid(pid ? pid : -1, NULL, WNOHANG), pid ? -1 : 0); /* no program is left */
        return err;
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFEXITED(status));
    return WEXITSTATUS(status);
}

static int
run_shell(const char *script)
{
    return run_program("/bin/sh", (char *const[]){"sh", "-c", (char *)(uintptr_t)script, NULL}, NULL);
}

START_TEST(a_program_is_a_child_of_the_process)
{
    char expected[64];

    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    ck_assert(spawner_is_there());
    ck_assert_int_eq(run_shell("echo $PPID; umask; exit 3"), 3);
    snprintf(expected, sizeof expected, "%d\n0077\n", (int)getpid());
    ck_assert_str_eq(text, expected);
    ck_assert_int_eq(run_shell("echo ok >&2"), 0);
    ck_assert_str_eq(text, "ok\n");
    spawner_end();
    ck_assert(!spawner_is_there());
}
END_TEST

/* glibc's posix_spawn(3), by which make starts this program, ignores the two signals of glibc, 32 and 33. */
#define SHOW_SIGNALS "grep -E '^Sig(Blk|Ign)' /proc/self/status | sed s/0000000180000000/0000000000000000/"

START_TEST(a_program_has_default_signals_and_three_descriptors)
{
    sigset_t all;

    sigfillset(&all);
    sigprocmask(SIG_SETMASK, &all, NULL);
    signal(SIGPIPE, SIG_IGN);
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    ck_assert_int_eq(run_shell(SHOW_SIGNALS "; ls /proc/$$/fd"), 0);
    ck_assert_str_eq(text, "SigBlk:\t0000000000000000\nSigIgn:\t0000000000000000\n0\n1\n2\n");
    spawner_end();
}
END_TEST

START_TEST(arguments_and_environment_arrive_unchanged)
{
    char *const argv[] = {"env", "-", "A=", "B=b c", "/usr/bin/env", NULL};
    char *const envp[] = {"ONE=1", "TWO= 2 ", NULL};

    setenv("KILN_OF_THE_PROCESS", "yes", 1);
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    ck_assert_int_eq(run_program("/usr/bin/env", argv, NULL), 0);
    ck_assert_str_eq(text, "A=\nB=b c\n");
    ck_assert_int_eq(run_program("/usr/bin/env", (char *const[]){"env", NULL}, envp), 0);
    ck_assert_str_eq(text, "ONE=1\nTWO= 2 \n");
    ck_assert_int_eq(run_program("/usr/bin/env", (char *const[]){"env", NULL}, (char *const[]){NULL}), 0);
    ck_assert_str_eq(text, "");
    ck_assert_int_eq(run_shell("echo $KILN_OF_THE_PROCESS"), 0);
    ck_assert_str_eq(text, "yes\n");
    spawner_end();
}
END_TEST

START_TEST(a_message_that_is_too_large_is_refused_and_the_next_program_runs)
{
    char *long_word = calloc(1, 70000);
    char **words = calloc(600, sizeof *words);

    memset(long_word, 'x', 69999);
    for (int i = 0; i < 599; i++)
        words[i] = "x";
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    ck_assert_int_eq(run_program("/bin/true", (char *const[]){"true", long_word, NULL}, NULL), -E2BIG);
    ck_assert_int_eq(run_program("/bin/true", words, NULL), -E2BIG);
    ck_assert_int_eq(run_program("/bin/true", (char *const[]){"true", NULL}, words), -E2BIG);
    words[512] = NULL; /* the largest number of words */
    ck_assert_int_eq(run_program("/bin/true", words, NULL), 0);
    ck_assert_int_eq(run_program("/no/such/program", words, NULL), -ENOENT);
    ck_assert_int_eq(run_program("/tmp", words, NULL), -EACCES);
    ck_assert_int_eq(run_shell("true"), 0);
    spawner_end();
    free(long_word);
    free(words);
}
END_TEST

static int
confine(void *arg)
{
    return setenv("KILN_CONFINED", "yes", 1) ? -ENOMEM : *(int *)arg;
}

START_TEST(programs_run_after_confine_has_succeeded)
{
    int err = 0;

    ck_assert_int_eq(spawner_begin(confine, &err), 0);
    ck_assert_int_eq(run_shell("echo $KILN_CONFINED"), 0);
    ck_assert_str_eq(text, "yes\n");
    ck_assert_ptr_null(getenv("KILN_CONFINED"));
    spawner_end();
    err = -EXDEV;
    ck_assert_int_eq(spawner_begin(confine, &err), -EXDEV);
    ck_assert(!spawner_is_there());
    ck_assert_int_eq(waitpid(-1, NULL, 0), -1); /* the spawner has ended */
    ck_assert_int_eq(errno, ECHILD);
}
END_TEST

/* The process id of the spawner: the only child. */
static pid_t
spawner_of_this_process(void)
{
    char path[64];
    int pid = 0;

    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    FILE *f = fopen(path, "r");
    if (!f)
        return 0; /* a kernel without this file */
    if (fscanf(f, "%d", &pid) != 1)
        pid = 0;
    fclose(f);
    return pid;
}

START_TEST(without_its_spawner_the_process_gets_epipe)
{
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    pid_t pid = spawner_of_this_process();

    if (pid) {
        siginfo_t info;

        ck_assert_int_eq(kill(pid, SIGKILL), 0);
        ck_assert_int_eq(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
        ck_assert_int_eq(spawner_start("/bin/true", (char *const[]){"true", NULL}, NULL,
                                       (const int[3]){null, null, null}, &pid),
                         -EPIPE);
    }
    spawner_end();
}
END_TEST

/* The test becomes the parent of the spawner when the process of the spawner has died. */
START_TEST(the_spawner_ends_with_its_process)
{
    int status;

    ck_assert_int_eq(prctl(PR_SET_CHILD_SUBREAPER, 1), 0);
    pid_t pid = test_fork();
    if (pid == 0) {
        if (spawner_begin(NULL, NULL))
            _exit(1);
        kill(getpid(), SIGKILL);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    ck_assert(WIFSIGNALED(status));
    ck_assert_int_gt(waitpid(-1, &status, 0), 0);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("spawner");
    TCase *t = tcase_create("spawner");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, NULL);
    tcase_add_test(t, a_program_is_a_child_of_the_process);
    tcase_add_test(t, a_program_has_default_signals_and_three_descriptors);
    tcase_add_test(t, arguments_and_environment_arrive_unchanged);
    tcase_add_test(t, a_message_that_is_too_large_is_refused_and_the_next_program_runs);
    tcase_add_test(t, programs_run_after_confine_has_succeeded);
    tcase_add_test(t, without_its_spawner_the_process_gets_epipe);
    tcase_add_test(t, the_spawner_ends_with_its_process);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
