/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* test-mem: shared by the tests of the pool in one thread: a fixed mode, stored messages, statistics. */
#ifndef KILN_TEST_MEM_H
#define KILN_TEST_MEM_H

#include "mem/test-refuse.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

static char last_message[600];
static int messages;

static inline void
keep_message(int level, const char *text)
{
    (void)level;
    snprintf(last_message, sizeof(last_message), "%s", text);
    messages++;
}

static inline void
setup(void)
{
    ck_assert_int_eq(mem_pools_set_mode("on"), 0);
    ck_assert_int_eq(mem_pools_set_option("abort", "0"), 0);
    mem_pools_set_message_fn(keep_message);
}

static inline void
teardown(void)
{
    mem_pools_check();
}

static inline struct mem_pool_stats
stats(struct mem_pool *p)
{
    struct mem_pool_stats s;

    mem_pool_stats(p, &s);
    return s;
}

static inline void
get_many(struct mem_pool *p, void **o, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (!(o[i] = mem_get(p))) /* ck_assert is slow */
            ck_abort_msg("object %u of %u", i, n);
}

/* ---- a fake clock ---------------------------------------------------------------------------- */

#ifdef TEST_MEM_CLOCK
static time_t clock_ahead_s;
static struct timespec clock_stopped_at;

/* The clock of this program: the kernel's, plus an offset that a test sets, or standing still. */
int
clock_gettime(clockid_t id, struct timespec *ts)
{
    int err = 0;

    if (clock_stopped_at.tv_sec)
        *ts = clock_stopped_at;
    else
        err = (int)syscall(SYS_clock_gettime, id, ts);
    ts->tv_sec += clock_ahead_s;
    return err;
}
#endif

/* ---- other threads of the process ------------------------------------------------------------ */

static inline bool
task_file(pid_t tid, const char *file, char *text, size_t n)
{
    char path[64];
    ssize_t got = -1;

    snprintf(path, sizeof(path), "/proc/self/task/%d/%s", (int)tid, file);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0) {
        got = read(fd, text, n - 1);
        close(fd);
    }
    text[got > 0 ? got : 0] = 0;
    return got > 0;
}

/* Returns the thread's id; 0: there is none. */
static inline pid_t
thread_named(const char *name)
{
    DIR *tasks = opendir("/proc/self/task");
    pid_t found = 0;
    char text[64];

    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *e; !found && (e = readdir(tasks));)
        if (task_file(atoi(e->d_name), "comm", text, sizeof(text)) && !strncmp(text, name, strlen(name)))
            found = atoi(e->d_name);
    closedir(tasks);
    return found;
}

static inline int
count_threads(void)
{
    DIR *tasks = opendir("/proc/self/task");
    int n = 0;

    ck_assert_ptr_nonnull(tasks);
    for (struct dirent *e; (e = readdir(tasks));)
        n += e->d_name[0] != '.';
    closedir(tasks);
    return n;
}

/* Returns as soon as that thread has been seen blocked in that system call. */
static inline void
wait_until_in(pid_t tid, long call)
{
    char text[64];

    while (!task_file(tid, "syscall", text, sizeof(text)) || text[0] == 'r' || atol(text) != call)
        usleep(1000); /* or until the test's time is up */
}

static inline void
wait_until_sweeper_polls(void)
{
#ifdef SYS_poll
    const long call = SYS_poll;
#else
    const long call = SYS_ppoll;
#endif
    pid_t tid;

    while (!(tid = thread_named("mem-sweep")))
        usleep(1000);
    wait_until_in(tid, call);
}

#endif
