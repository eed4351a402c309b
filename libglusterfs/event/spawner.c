/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "event/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    MESSAGE_MAX = 64 * 1024,
    WORDS_MAX = 512,
    FDS = 4, /* standard input, output, error, the status pipe */
    SPAWNER_FD = 3,
    SPAWNER_UMASK = 0077,
};

/* The head of a message. The path, the arguments and the environment follow, each with its 0. */
struct order {
    uint32_t arguments;
    int32_t variables; /* -1: the spawner's environment */
};

struct outcome {
    int32_t pid, err; /* err: 0 or an error number */
};

static pthread_mutex_t spawner_lock = PTHREAD_MUTEX_INITIALIZER; /* one exchange at a time */
static int spawner_socket = -1; /* -1: no spawner */
static pid_t spawner_pid;

/* ---- the program, before its exec ------------------------------------------------------------ */

/* Reports errno to the process and ends. */
static void __attribute__((noreturn))
program_fail(int status_fd)
{
    int err = errno;
    ssize_t n = write(status_fd, &err, sizeof err);

    (void)n; /* the process has gone: no reader is left */
    _exit(127);
}

/* Moves the descriptors above 2 first, so that none is overwritten. */
static int
program_take_fds(int fds[FDS])
{
    for (int i = 0; i < FDS; i++) {
        int fd = fds[i] > STDERR_FILENO ? fds[i] : fcntl(fds[i], F_DUPFD_CLOEXEC, SPAWNER_FD);

        if (fd < 0)
            return -1;
        fds[i] = fd;
    }
    for (int i = 0; i < FDS - 1; i++) {
        if (dup2(fds[i], i) < 0)
            return -1;
    }
    return close_range(SPAWNER_FD, ~0u, CLOSE_RANGE_CLOEXEC);
}

static void
program_reset_signals(void)
{
    const struct sigaction normal = {.sa_handler = SIG_DFL};
    sigset_t none;

    for (int number = 1; number < NSIG; number++)
        (void)sigaction(number, &normal, NULL); /* fails for SIGKILL, SIGSTOP and glibc's own signals */
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

static void __attribute__((noreturn))
program_exec(const char *path, char *const argv[], char *const envp[], int fds[FDS])
{
    if (program_take_fds(fds) < 0 || setpgid(0, 0) < 0)
        program_fail(fds[FDS - 1]);
    program_reset_signals();
    execve(path, argv, envp);
    program_fail(fds[FDS - 1]);
}

/* ---- the spawner ----------------------------------------------------------------------------- */

/* Points `words` at the strings of the message. Returns false unless the message has exactly `count` strings
 * from *at to `end`. */
static bool
split_words(char **at, const char *end, unsigned count, char **words)
{
    for (unsigned i = 0; i < count; i++) {
        char *zero = *at < end ? memchr(*at, '\0', (size_t)(end - *at)) : NULL;

        if (!zero)
            return false;
        words[i] = *at;
        *at = zero + 1;
    }
    words[count] = NULL;
    return true;
}

/* Starts the program of a message. The clone is a fork whose child has the spawner's parent. Nothing is
 * inherited in a bad state, because the spawner has one thread. */
static struct outcome
obey(char *message, size_t bytes, int fds[FDS])
{
    static char *path[2], *argv[WORDS_MAX + 1], *envp[WORDS_MAX + 1];
    struct order o;
    char *at = message + sizeof o, *end = message + bytes;

    if (bytes < sizeof o)
        return (struct outcome){-1, EBADMSG};
    memcpy(&o, message, sizeof o);
    unsigned variables = o.variables > 0 ? (unsigned)o.variables : 0;
    if (o.arguments > WORDS_MAX || variables > WORDS_MAX || !split_words(&at, end, 1, path) ||
        !split_words(&at, end, o.arguments, argv) || !split_words(&at, end, variables, envp) || at != end)
        return (struct outcome){-1, EBADMSG};
    pid_t pid = (pid_t)syscall(SYS_clone, CLONE_PARENT | SIGCHLD, NULL, NULL, NULL, NULL);
    if (pid == 0)
        program_exec(path[0], argv, o.variables < 0 ? environ : envp, fds);
    return (struct outcome){(int32_t)pid, pid < 0 ? errno : 0};
}

/* Receives a message and its descriptors. Returns the message's bytes; 0 at the end; -1 after an error. */
static ssize_t
receive_order(char *message, int fds[FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FDS)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {message, MESSAGE_MAX};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    ssize_t n;

    for (int i = 0; i < FDS; i++)
        fds[i] = -1;
    while ((n = recvmsg(SPAWNER_FD, &m, MSG_CMSG_CLOEXEC)) < 0 && errno == EINTR)
        ;
    const struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
    if (!c || m.msg_flags & (MSG_TRUNC | MSG_CTRUNC) || c->cmsg_level != SOL_SOCKET ||
        c->cmsg_type != SCM_RIGHTS || c->cmsg_len != CMSG_LEN(sizeof(int) * FDS))
        return n > 0 ? -1 : n;
    memcpy(fds, CMSG_DATA(c), sizeof(int) * FDS);
    return n;
}

/* Keeps the socket alone, as descriptor 3. The launcher of a daemon may wait for the end of the standard
 * descriptors, so these lead to /dev/null. */
static int
spawner_keep_socket(int fd)
{
    int null = open("/dev/null", O_RDWR);

    if (null < 0)
        return -errno;
    int kept = fcntl(fd, F_DUPFD, SPAWNER_FD + 1);
    if (kept < 0 || dup2(kept, SPAWNER_FD) < 0)
        return -errno;
    for (int i = 0; i < SPAWNER_FD; i++) {
        if (null != i && dup2(null, i) < 0)
            return -errno;
    }
    return close_range(SPAWNER_FD + 1, ~0u, 0) < 0 ? -errno : 0;
}

static void __attribute__((noreturn))
spawner_main(int fd, int (*confine)(void *arg), void *arg)
{
    static char message[MESSAGE_MAX];
    struct outcome out = {0};
    int fds[FDS];
    ssize_t n = 0;

    prctl(PR_SET_NAME, "kiln-spawner");
    out.err = -spawner_keep_socket(fd);
    if (!out.err && setsid() < 0) /* programs have no terminal */
        out.err = errno;
    umask(SPAWNER_UMASK);
    if (!out.err && confine)
        out.err = -confine(arg);
    do {
        if (n)
            out = obey(message, (size_t)n, fds);
        if (send(SPAWNER_FD, &out, sizeof out, MSG_NOSIGNAL) < 0)
            break;
        (void)close_range(SPAWNER_FD + 1, ~0u, 0); /* cannot fail with these arguments */
    } while ((n || !out.err) && (n = receive_order(message, fds)) > 0);
    _exit(0);
}

/* ---- the process ----------------------------------------------------------------------------- */

static int
receive_outcome(struct outcome *out)
{
    ssize_t n;

    while ((n = recv(spawner_socket, out, sizeof *out, 0)) < 0 && errno == EINTR)
        ;
    return n == sizeof *out ? -out->err : n < 0 ? -errno : -EPIPE;
}

int
spawner_begin(int (*confine)(void *arg), void *arg)
{
    struct outcome out;
    int fds[2];

    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) < 0)
        return -errno;
    pid_t pid = fork();
    if (pid == 0)
        spawner_main(fds[1], confine, arg);
    int err = pid < 0 ? -errno : 0;
    close(fds[1]);
    spawner_socket = fds[0];
    spawner_pid = pid;
    if (!err)
        err = receive_outcome(&out);
    if (!err)
        return 0;
    if (pid > 0)
        spawner_end();
    else
        close(fds[0]);
    spawner_socket = -1;
    return err;
}

bool
spawner_is_there(void)
{
    return spawner_socket >= 0;
}

int
spawner_socket_of(pid_t *pid)
{
    *pid = spawner_pid;
    return spawner_socket;
}

void
spawner_take_over(int socket, pid_t pid)
{
    spawner_socket = socket;
    spawner_pid = pid;
}

/* Appends strings to the message. Returns the number of strings, or -E2BIG. */
static int
append_words(char *message, size_t *used, char *const words[])
{
    int count = 0;

    for (; words[count]; count++) {
        size_t size = strlen(words[count]) + 1;

        if (count == WORDS_MAX || size > MESSAGE_MAX - *used)
            return -E2BIG;
        memcpy(message + *used, words[count], size);
        *used += size;
    }
    return count;
}

/* Returns the bytes of the message, or -E2BIG. */
static ssize_t
order_write(char *message, const char *path, char *const argv[], char *const envp[])
{
    char *const path_alone[] = {(char *)(uintptr_t)path, NULL};
    struct order o = {.variables = -1};
    size_t used = sizeof o;
    int count = append_words(message, &used, path_alone);

    if (count >= 0 && (count = append_words(message, &used, argv)) >= 0)
        o.arguments = (uint32_t)count;
    if (count >= 0 && envp && (count = append_words(message, &used, envp)) >= 0)
        o.variables = count;
    memcpy(message, &o, sizeof o);
    return count < 0 ? count : (ssize_t)used;
}

static int
order_send(char *message, size_t bytes, const int fds[FDS])
{
    union {
        char bytes[CMSG_SPACE(sizeof(int) * FDS)];
        struct cmsghdr align;
    } control = {0};
    struct iovec iov = {message, bytes};
    struct msghdr m = {
        .msg_iov = &iov, .msg_iovlen = 1, .msg_control = &control, .msg_controllen = sizeof control};
    struct cmsghdr *c = CMSG_FIRSTHDR(&m);

    *c = (struct cmsghdr){
        .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int) * FDS)};
    memcpy(CMSG_DATA(c), fds, sizeof(int) * FDS);
    return sendmsg(spawner_socket, &m, MSG_NOSIGNAL) < 0 ? (errno == ECONNRESET ? -EPIPE : -errno) : 0;
}

/* Reads the result of the exec: the end of the pipe after a success, else an error number. */
static int
await_exec(int fd)
{
    int err = 0;
    ssize_t n;

    while ((n = read(fd, &err, sizeof err)) < 0 && errno == EINTR)
        ;
    return n < 0 ? -errno : n == 0 ? 0 : n == sizeof err ? -err : -EPROTO;
}

int
spawner_start(const char *path, char *const argv[], char *const envp[], const int fds[3], pid_t *pid)
{
    int status[2];
    struct outcome out = {0};
    char *message = malloc(MESSAGE_MAX);
    ssize_t bytes = message ? order_write(message, path, argv, envp) : -ENOMEM;
    int err = bytes < 0 ? (int)bytes : pipe2(status, O_CLOEXEC) < 0 ? -errno : 0;

    if (!err) {
        const int all[FDS] = {fds[0], fds[1], fds[2], status[1]};

        pthread_mutex_lock(&spawner_lock);
        err = order_send(message, (size_t)bytes, all);
        err = err ? err : receive_outcome(&out);
        pthread_mutex_unlock(&spawner_lock);
        close(status[1]);
        if (!err && (err = await_exec(status[0])))
            waitpid(out.pid, NULL, 0);
        close(status[0]);
    }
    free(message);
    *pid = out.pid;
    return err;
}

void
spawner_end(void)
{
    if (spawner_socket < 0)
        return;
    close(spawner_socket);
    spawner_socket = -1;
    while (waitpid(spawner_pid, NULL, 0) < 0 && errno == EINTR)
        ;
}
