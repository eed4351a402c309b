/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Child processes for unit tests. A child ends by itself after a time, so that a test that waits for it
 * fails within a minute, and not only at Check's limit, which is long on slow machines. */
#ifndef KILN_BASE_TEST_CHILD_H
#define KILN_BASE_TEST_CHILD_H

#include <check.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

enum { TEST_CHILD_SECONDS = 60 };

/* fork(2). The child ends with SIGALRM after TEST_CHILD_SECONDS, and with its parent. */
static inline pid_t
test_fork(void)
{
    pid_t pid = fork();

    ck_assert_int_ge(pid, 0);
    if (pid == 0) {
        alarm(TEST_CHILD_SECONDS);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    }
    return pid;
}

/* Returns the exit status of a child that must end by itself. */
static inline int
test_child_status(pid_t pid)
{
    int how;

    ck_assert_int_eq(waitpid(pid, &how, 0), pid);
    ck_assert_msg(WIFEXITED(how), "child %d: signal %d", (int)pid, WTERMSIG(how));
    return WEXITSTATUS(how);
}

#endif
