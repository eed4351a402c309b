/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Into the background, and the pid file. The parent waits on a pipe until the child serves or has failed, so
 * that the process that started the daemon gets its exit status and its reason. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "daemon/daemon.h"
#include "log/log.h"

/* Descriptors. */
#define FILES_WANTED 1048576
#define FILES_ENOUGH 65536

static int ready_fd = -1;
static int pid_fd = -1;
static char *pid_path;

struct verdict {
    int exit_status;
    char message[1024];
};

static void __attribute__((noreturn))
wait_for_child(const char *program, int fd)
{
    struct verdict v = {.exit_status = EXIT_FAILURE};
    size_t have = 0;
    ssize_t n;

    while (have < sizeof v &&
           ((n = read(fd, (char *)&v + have, sizeof v - have)) > 0 || (n < 0 && errno == EINTR)))
        have += n > 0 ? (size_t)n : 0;
    if (have < sizeof v) {
        fprintf(stderr, "%s: the daemon ended while it was starting; see its log\n", program);
        _exit(EXIT_FAILURE);
    }
    v.message[sizeof v.message - 1] = '\0';
    if (v.message[0])
        fprintf(stderr, "%s: %s\n", program, v.message);
    fflush(stderr);
    _exit(v.exit_status);
}

int
daemonise(const char *program)
{
    int fds[2];

    if (pipe2(fds, O_CLOEXEC) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid < 0) {
        int err = -errno;

        close(fds[0]);
        close(fds[1]);
        return err;
    }
    if (pid > 0) {
        close(fds[1]);
        wait_for_child(program, fds[0]);
    }
    close(fds[0]);
    ready_fd = fds[1];
    return chdir("/") < 0 ? -errno : 0;
}

void
daemon_ready(const char *program, int exit_status, const char *message)
{
    struct verdict v = {.exit_status = exit_status};

    if (ready_fd < 0) {
        if (message && *message)
            fprintf(stderr, "%s: %s\n", program, message);
        return;
    }
    snprintf(v.message, sizeof v.message, "%s", message ? message : "");
    /* Not before: an automounter lets its own process group mount, and keeps all other processes waiting. */
    if (setsid() < 0)
        log_event(LOG_WARNING, NULL, "daemon-setsid", "the daemon stays in the session of the command: %s",
                  strerror(errno));
    /* The parent may have been killed: the daemon goes on then. */
    ssize_t n = write(ready_fd, &v, sizeof v);
    (void)n;
    close(ready_fd);
    ready_fd = -1;
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null >= 0) {
        dup2(null, STDIN_FILENO);
        dup2(null, STDOUT_FILENO);
        dup2(null, STDERR_FILENO);
        if (null > STDERR_FILENO)
            close(null);
    }
}

void
daemon_make_log_dir(const char *below)
{
    char path[128];

    (void)mkdir(DAEMON_LOG_DIR, 0755);
    if (below && snprintf(path, sizeof path, DAEMON_LOG_DIR "/%s", below) < (int)sizeof path)
        (void)mkdir(path, 0755);
}

static bool
is_ours(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() && st.st_nlink == 1;
}

int
pidfile_write(const char *path)
{
    char text[24];

    /* In a folder where others may make files, the name may be a link or pipe of another user. */
    pid_fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0644);
    if (pid_fd < 0)
        return -errno;
    if (!is_ours(pid_fd)) {
        close(pid_fd);
        pid_fd = -1;
        return -EPERM;
    }
    if (flock(pid_fd, LOCK_EX | LOCK_NB) < 0) {
        int err = errno == EWOULDBLOCK ? -EAGAIN : -errno;

        close(pid_fd);
        pid_fd = -1;
        return err;
    }
    int len = snprintf(text, sizeof text, "%ld\n", (long)getpid());
    if (ftruncate(pid_fd, 0) < 0 || pwrite(pid_fd, text, (size_t)len, 0) != len)
        return errno ? -errno : -EIO;
    pid_path = strdup(path);
    return pid_path ? 0 : -ENOMEM;
}

void
pidfile_close(bool is_kept)
{
    if (pid_path && !is_kept)
        unlink(pid_path);
    free(pid_path);
    pid_path = NULL;
    if (pid_fd >= 0)
        close(pid_fd);
    pid_fd = -1;
}

/* ---- signals --------------------------------------------------------------------------------- */

/* The signal of the thread that logs the first counted line of a burst, so that the main thread looks again
 * after a while. */
#define SIGBURST SIGUSR2

static atomic_bool is_burst; /* set by any thread, cleared by the main thread */

static void
burst_began(void)
{
    if (!atomic_exchange(&is_burst, true))
        kill(getpid(), SIGBURST);
}

void
daemon_block_signals(sigset_t *signals)
{
    sigaddset(signals, SIGBURST);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
    log_on_burst(burst_began);
}

int
daemon_next_signal(const sigset_t *signals)
{
    const struct timespec window = {.tv_sec = LOG_WINDOW_SEC + 1};

    for (;;) {
        bool must_look = atomic_load(&is_burst);
        int number = must_look ? sigtimedwait(signals, NULL, &window) : sigwaitinfo(signals, NULL);

        if (number > 0 && number != SIGBURST)
            return number;
        if (number < 0 && errno == EAGAIN) {
            atomic_store(&is_burst, false); /* first: a burst that begins now sets the flag again */
            if (log_flush())
                atomic_store(&is_burst, true);
        }
    }
}

/* ---- pools ----------------------------------------------------------------------------------- */

void
daemon_pool_message(int level, const char *text)
{
    /* syslog's levels are one lower than the log's. */
    log_event((enum log_level)(level + 1), NULL, "mem-pool", "%s", text);
}

void
daemon_raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= FILES_WANTED)
        return;
    /* The kernel (fs.nr_open) or our rights may allow less than is wanted. */
    const rlim_t tries[] = {FILES_WANTED, limit.rlim_max < FILES_ENOUGH ? FILES_ENOUGH : limit.rlim_max,
                            limit.rlim_max};
    for (size_t i = 0; i < sizeof tries / sizeof tries[0]; i++) {
        const struct rlimit raised = {tries[i], limit.rlim_max > tries[i] ? limit.rlim_max : tries[i]};

        if (setrlimit(RLIMIT_NOFILE, &raised) == 0)
            return;
    }
    log_event(LOG_WARNING, NULL, "descriptor-limit", "the limit of descriptors stays at %ju: %s",
              (uintmax_t)limit.rlim_cur, strerror(errno));
}
