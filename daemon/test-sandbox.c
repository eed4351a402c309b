/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Each test runs in a process of its own, because no sandbox can be left. unshare(CLONE_FS), which succeeds
 * for every user, stands for the refused calls. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/test-child.h"
#include "base/test-must.h"
#include "daemon/sandbox.h"
#include "event/worker.h"
#include "log/log.h"
#include "mem/mem-pool.h"

/* A number that no kernel has, and that libseccomp has no name for. */
#define NO_CALL 999

static void
enter(enum sandbox_role role, enum sandbox_mode mode)
{
    struct reason why = {""};

    ck_assert_msg(sandbox_enter(role, mode, &why) == 0, "%s", why.text);
}

/* Returns 0 or the error number. */
static int
unshare_fs(void)
{
    return unshare(CLONE_FS) < 0 ? errno : 0;
}

/* Returns the line of /proc/self/status with this key, without the key. */
static const char *
status_line(const char *key)
{
    static char line[256];
    FILE *f = fopen("/proc/self/status", "r");
    size_t len = strlen(key);

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f) && strncmp(line, key, len) != 0)
        ;
    fclose(f);
    line[strcspn(line, "\n")] = '\0';
    return line + len + strspn(line + len, ":\t ");
}

/* ---- the filter ------------------------------------------------------------------------------ */

START_TEST(a_refused_call_fails_with_eperm)
{
    enum sandbox_role role = (enum sandbox_role)_i;

    ck_assert_int_eq(unshare_fs(), 0);
    enter(role, SANDBOX_ON);
    ck_assert_int_eq(unshare_fs(), EPERM);
    ck_assert_int_eq(syscall(SYS_keyctl, 0, 0, 0, 0, 0), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(syscall(NO_CALL), -1);
    ck_assert_int_eq(errno, ENOSYS);
    ck_assert_str_eq(status_line("Seccomp:"), "2");
    ck_assert_str_eq(status_line("NoNewPrivs:"), "1");
}
END_TEST

START_TEST(a_socket_of_another_family_is_refused)
{
    enter(SANDBOX_BRICKS, SANDBOX_ON);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    ck_assert_int_ge(fd, 0);
    ck_assert_int_eq(close(fd), 0);
    ck_assert_int_eq(socket(AF_ALG, SOCK_SEQPACKET, 0), -1);
    ck_assert_int_eq(errno, EPERM);
}
END_TEST

START_TEST(memory_is_not_writable_and_executable)
{
    enter((enum sandbox_role)_i, SANDBOX_ON);
    void *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ck_assert_ptr_ne(page, MAP_FAILED);
    ck_assert_int_eq(mprotect(page, 4096, PROT_READ | PROT_EXEC), -1);
    ck_assert_int_eq(errno, EPERM);
    ck_assert_int_eq(mprotect(page, 4096, PROT_READ), 0);
    ck_assert_ptr_eq(mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0),
                     MAP_FAILED);
    ck_assert_int_eq(errno, EPERM);
}
END_TEST

static sem_t asked, answered;
static int thread_result;

static void *
wait_and_call(void *arg)
{
    (void)arg;
    sem_wait(&asked);
    thread_result = unshare_fs();
    sem_post(&answered);
    return NULL;
}

static int
call_in_thread(void)
{
    sem_post(&asked);
    sem_wait(&answered);
    return thread_result;
}

START_TEST(threads_from_before_and_after_are_covered)
{
    pthread_t before, after;

    sem_init(&asked, 0, 0);
    sem_init(&answered, 0, 0);
    ck_assert_int_eq(pthread_create(&before, NULL, wait_and_call, NULL), 0);
    enter(SANDBOX_BRICKS, SANDBOX_ON);
    ck_assert_int_eq(call_in_thread(), EPERM);
    ck_assert_int_eq(pthread_create(&after, NULL, wait_and_call, NULL), 0); /* clone3 falls back to clone */
    ck_assert_int_eq(call_in_thread(), EPERM);
    pthread_join(before, NULL);
    pthread_join(after, NULL);
}
END_TEST

static int
fork_errno(void)
{
    pid_t pid = fork();

    if (pid == 0)
        _exit(unshare_fs());
    return pid < 0 ? errno : test_child_status(pid) == EPERM ? 0 : EPROTO;
}

START_TEST(only_a_mount_and_programs_may_fork)
{
    enter((enum sandbox_role)_i, SANDBOX_ON);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
    ck_assert_int_eq(fork_errno(), 0); /* the sanitizer needs a process at the end */
#else
    ck_assert_int_eq(fork_errno(), _i == SANDBOX_MOUNT || _i == SANDBOX_PROGRAMS ? 0 : EPERM);
#endif
}
END_TEST

START_TEST(only_programs_may_run_programs)
{
    pid_t pid;
    char *const argv[] = {"true", NULL};

    enter((enum sandbox_role)_i, SANDBOX_ON);
    if (_i == SANDBOX_PROGRAMS) {
        ck_assert_int_eq(posix_spawn(&pid, "/bin/true", NULL, NULL, argv, environ), 0);
        ck_assert_int_eq(test_child_status(pid), 0);
    } else {
        ck_assert_int_eq(execv("/bin/true", argv), -1);
        ck_assert_int_eq(errno, EPERM);
    }
}
END_TEST

/* A program may have a sandbox of its own, as kiln-heal has. */
START_TEST(sandboxes_can_be_nested)
{
    enter(SANDBOX_PROGRAMS, SANDBOX_ON);
    enter(SANDBOX_HEALER, SANDBOX_ON);
    ck_assert_int_eq(unshare_fs(), EPERM);
    ck_assert_int_eq(execv("/bin/true", (char *const[]){"true", NULL}), -1);
    ck_assert_int_eq(errno, EPERM);
}
END_TEST

START_TEST(log_and_off_refuse_nothing)
{
    char before[64];

    snprintf(before, sizeof before, "%s", status_line("CapEff:"));
    enter(SANDBOX_BRICKS, SANDBOX_OFF);
    ck_assert_str_eq(status_line("Seccomp:"), "0");
    enter(SANDBOX_BRICKS, SANDBOX_LOG);
    ck_assert_str_eq(status_line("Seccomp:"), "2");
    ck_assert_str_eq(status_line("CapEff:"), before);
    ck_assert_int_eq(unshare_fs(), 0);
}
END_TEST

/* ---- capabilities ---------------------------------------------------------------------------- */

/* Numbers of linux/capability.h. */
#define BIT(number) (1ull << (number))

START_TEST(a_role_keeps_its_capabilities_alone)
{
    static const unsigned long long kept[] = {
        [SANDBOX_BRICKS] =
            BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(10) | BIT(21) | BIT(24) | BIT(27) | BIT(31),
        [SANDBOX_VOLUMES] =
            BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(10) | BIT(21) | BIT(24) | BIT(27) | BIT(31),
        [SANDBOX_PROGRAMS] =
            BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(10) | BIT(21) | BIT(24) | BIT(27) | BIT(31),
        [SANDBOX_MOUNT] = BIT(1) | BIT(10) | BIT(19) | BIT(21) | BIT(24),
        [SANDBOX_INSIDE] = BIT(0) | BIT(1) | BIT(3) | BIT(4) | BIT(10) | BIT(19) | BIT(21) | BIT(24) |
                           BIT(27) | BIT(31),
        [SANDBOX_HEALER] = BIT(10) | BIT(24)};
    unsigned long long had = strtoull(status_line("CapPrm:"), NULL, 16); /* 0 without root */

    enter((enum sandbox_role)_i, SANDBOX_ON);
    ck_assert_uint_eq(strtoull(status_line("CapEff:"), NULL, 16), had & kept[_i]);
    ck_assert_uint_eq(strtoull(status_line("CapPrm:"), NULL, 16), had & kept[_i]);
    if (had & BIT(8)) /* CAP_SETPCAP */
        ck_assert_uint_eq(strtoull(status_line("CapBnd:"), NULL, 16), had & kept[_i]);
}
END_TEST

/* ---- the log --------------------------------------------------------------------------------- */

static char log_file[64];

static unsigned
lines_with(const char *text)
{
    char line[1024];
    unsigned count = 0;
    FILE *f = fopen(log_file, "r");

    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        count += strstr(line, text) != NULL;
    fclose(f);
    return count;
}

static void
open_log(void)
{
    strcpy(log_file, "/tmp/test-sandbox-XXXXXX");
    int fd = mkstemp(log_file);

    ck_assert_int_ge(fd, 0);
    close(fd);
    ck_assert_int_eq(log_open(log_file), 0);
}

static void
close_log(void)
{
    log_close();
    unlink(log_file);
}

START_TEST(a_refused_call_is_logged_by_name)
{
    open_log();
    enter(SANDBOX_BRICKS, SANDBOX_ON);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(unshare_fs(), EPERM);
    ck_assert_int_eq(syscall(NO_CALL), -1);
    sandbox_report();
    ck_assert_uint_eq(sandbox_refusals(), 4);
    ck_assert_uint_eq(lines_with("system call unshare "), 1);
    ck_assert_uint_eq(lines_with("until now: 3 "), 1);
    ck_assert_uint_eq(lines_with("(number 999)"), 1);
    sandbox_report(); /* nothing new */
    ck_assert_uint_eq(lines_with("sandbox-refused"), 2);
    close_log();
}
END_TEST

START_TEST(a_worker_logs_a_call_soon_and_once)
{
    open_log();
    ck_assert_int_eq(mem_pools_init(), 0);
    enter(SANDBOX_BRICKS, SANDBOX_ON);
    ck_assert_int_eq(unshare_fs(), EPERM); /* before the workers */
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2}), 0);
    sandbox_watch();
    while (!lines_with("system call unshare "))
        usleep(1000);
    ck_assert_int_eq(syscall(SYS_acct, NULL), -1);
    while (!lines_with("system call acct "))
        usleep(1000);
    for (int i = 0; i < 100; i++)
        ck_assert_int_eq(unshare_fs(), EPERM);
    sandbox_unwatch();
    ck_assert_int_eq(unshare_fs(), EPERM); /* the end of the process */
    workers_stop();
    ck_assert_uint_eq(lines_with("system call unshare "), 1);
    sandbox_report();
    ck_assert_uint_eq(lines_with("system call unshare "), 2);
    ck_assert_uint_eq(lines_with("until now: 102 "), 1);
    mem_pools_fini();
    close_log();
}
END_TEST

/* Another process's SIGSYS is no refusal: it changes no register. */
START_TEST(a_sent_sigsys_is_ignored)
{
    open_log();
    enter(SANDBOX_BRICKS, SANDBOX_ON);
    ck_assert_int_eq(kill(getpid(), SIGSYS), 0);
    sandbox_report();
    ck_assert_uint_eq(lines_with("sandbox-refused"), 0);
    close_log();
}
END_TEST

/* ---- words ----------------------------------------------------------------------------------- */

START_TEST(modes_have_names)
{
    enum sandbox_mode mode;

    for (int i = SANDBOX_ON; i <= SANDBOX_OFF; i++) {
        ck_assert_int_eq(sandbox_mode_parse(sandbox_mode_name((enum sandbox_mode)i), &mode), 0);
        ck_assert_int_eq((int)mode, i);
    }
    ck_assert_int_eq(sandbox_mode_parse("maybe", &mode), -EINVAL);
    ck_assert_int_eq(sandbox_mode_parse("", &mode), -EINVAL);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("sandbox");
    TCase *t = tcase_create("sandbox");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_refused_call_fails_with_eperm, SANDBOX_BRICKS, SANDBOX_INSIDE + 1);
    tcase_add_test(t, a_socket_of_another_family_is_refused);
    tcase_add_loop_test(t, memory_is_not_writable_and_executable, SANDBOX_BRICKS, SANDBOX_HEALER + 1);
    tcase_add_test(t, threads_from_before_and_after_are_covered);
    tcase_add_loop_test(t, only_a_mount_and_programs_may_fork, SANDBOX_BRICKS, SANDBOX_PROGRAMS + 1);
    tcase_add_loop_test(t, only_programs_may_run_programs, SANDBOX_BRICKS, SANDBOX_PROGRAMS + 1);
    tcase_add_test(t, sandboxes_can_be_nested);
    tcase_add_test(t, log_and_off_refuse_nothing);
    tcase_add_loop_test(t, a_role_keeps_its_capabilities_alone, SANDBOX_BRICKS, SANDBOX_INSIDE + 1);
    tcase_add_test(t, a_refused_call_is_logged_by_name);
    tcase_add_test(t, a_worker_logs_a_call_soon_and_once);
    tcase_add_test(t, a_sent_sigsys_is_ignored);
    tcase_add_test(t, modes_have_names);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
