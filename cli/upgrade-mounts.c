/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln upgrade mounts: has each kiln-mount of this machine run the present file at its program's path, and
 * waits until the new program serves. A kiln-mount without a socket has no other way to answer than its
 * environment, which /proc shows (mount/upgrade.h). */
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "cli/kiln.h"

enum { CHECK_MS = 20000, SERVES_MS = 30000, PEEK_MS = 10 };
#define MOUNT_PROGRAM "kiln-mount"
#define ANSWER "kiln-mount-saved-state " /* mount/upgrade.h has this and the next two */
#define COUNT "KILN_MOUNT_UPGRADES"
#define MOUNT_SIGNAL SIGWINCH

/* The path of the process's program, where a newer file may lie. False: it is no kiln-mount, or gone. */
static bool
mount_program(pid_t pid, char path[PATH_MAX])
{
    static const char deleted[] = " (deleted)";
    size_t tail = sizeof deleted - 1;
    char link[64];

    snprintf(link, sizeof link, "/proc/%d/exe", (int)pid);
    ssize_t len = readlink(link, path, PATH_MAX - 1);
    if (len < 0)
        return false;
    path[len] = '\0';
    if ((size_t)len > tail && strcmp(path + len - tail, deleted) == 0)
        path[(size_t)len - tail] = '\0';
    const char *slash = strrchr(path, '/');
    return slash && strcmp(slash + 1, MOUNT_PROGRAM) == 0;
}

/* Runs PROGRAM --upgrade-check, for a while at most, and reads the first line. 0 or -errno. */
static int
ask_format(const char *program, char *answer, size_t size)
{
    char check[] = "--upgrade-check", *argv[] = {(char[]){MOUNT_PROGRAM}, check, NULL};
    posix_spawn_file_actions_t actions;
    size_t have = 0;
    int ends[2];
    ssize_t n;
    pid_t pid;

    if (pipe(ends))
        return -errno;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    int err = -posix_spawn(&pid, program, &actions, NULL, argv, environ);
    struct pollfd p = {.fd = ends[0], .events = POLLIN};

    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    while (!err && have + 1 < size && poll(&p, 1, CHECK_MS) > 0 &&
           (n = read(ends[0], answer + have, size - have - 1)) > 0)
        have += (size_t)n;
    close(ends[0]);
    answer[have] = '\0';
    answer[strcspn(answer, "\n")] = '\0';
    if (!err) {
        kill(pid, SIGKILL); /* the program has ended, or hangs */
        while (waitpid(pid, NULL, 0) < 0 && errno == EINTR)
            ;
    }
    return err;
}

/* Copies the count that the process keeps in its environment; "": no count yet. False: the process ended. */
static bool
read_count(pid_t pid, char *out, size_t size)
{
    char path[64], word[4096];
    size_t have = 0;
    int c = 0;

    *out = '\0';
    snprintf(path, sizeof path, "/proc/%d/environ", (int)pid);
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    while (c != EOF) {
        c = getc(f);
        if (c != EOF && c != '\0') {
            if (have + 1 < sizeof word)
                word[have++] = (char)c;
            continue;
        }
        word[have] = '\0';
        if (strncmp(word, COUNT "=", sizeof COUNT) == 0)
            snprintf(out, size, "%.200s", word + sizeof COUNT);
        have = 0;
    }
    fclose(f);
    return kill(pid, 0) == 0;
}

/* True if the next program may take over. */
static int
check_formats(pid_t pid, const char *program)
{
    char running[64], before[512], next[512];

    snprintf(running, sizeof running, "/proc/%d/exe", (int)pid);
    int err = ask_format(running, before, sizeof before);

    if (err || strncmp(before, ANSWER, sizeof ANSWER - 1) != 0)
        return refuse(KILN_REFUSED, NULL, "umount and mount again", "process %d cannot be upgraded: %s",
                      (int)pid, err ? strerror(-err) : "its program knows no upgrades");
    err = ask_format(program, next, sizeof next);
    if (err || strncmp(next, ANSWER, sizeof ANSWER - 1) != 0)
        return refuse(KILN_REFUSED, NULL, NULL, "%s does not start as kiln-mount: %s", program,
                      err      ? strerror(-err)
                      : *next ? next
                              : "no answer");
    if (strcmp(before, next) != 0)
        return refuse(KILN_REFUSED, NULL, "umount and mount again",
                      "%s has another format of saved state (%s, process %d: %s)", program,
                      next + sizeof ANSWER - 1, (int)pid, before + sizeof ANSWER - 1);
    return KILN_DONE;
}

static int
await_next_mount(pid_t pid, unsigned long before)
{
    const struct timespec pause = {.tv_nsec = PEEK_MS * 1000000};
    unsigned ms, stall = 0, mounts = 0, lost = 0;
    unsigned long count;
    char text[256];

    for (ms = 0; ms < SERVES_MS; ms += PEEK_MS) {
        if (!read_count(pid, text, sizeof text))
            return refuse(KILN_REFUSED, NULL, "journalctl -u kiln-mount", "process %d has ended", (int)pid);
        int words = sscanf(text, "%lu serving after %u ms %u mounts %u lost", &count, &stall, &mounts, &lost);

        if (words == 4 && count > before) {
            printf("kiln-mount (process %d) runs the present program: %u mounts came along, calls waited %u "
                   "ms\n",
                   (int)pid, mounts, stall);
            return lost ? refuse(KILN_REFUSED, NULL, "kiln mount", "%u mounts of process %d are lost", lost,
                                 (int)pid)
                        : KILN_DONE;
        }
        nanosleep(&pause, NULL);
    }
    return refuse(KILN_REFUSED, NULL, "kiln upgrade mounts   # later",
                  "process %d goes on with the old program; its log says why", (int)pid);
}

static int
upgrade_mount(pid_t pid)
{
    char program[PATH_MAX], text[256];

    if (!mount_program(pid, program))
        return refuse(KILN_REFUSED, "the process id of a kiln-mount, or none for all", "pgrep -a kiln-mount",
                      "process %d is no kiln-mount", (int)pid);
    int status = check_formats(pid, program);
    if (status)
        return status;
    (void)read_count(pid, text, sizeof text);
    unsigned long before = strtoul(text, NULL, 10);

    if (kill(pid, MOUNT_SIGNAL))
        return refuse(KILN_REFUSED, NULL, NULL, "process %d: %s", (int)pid, strerror(errno));
    return await_next_mount(pid, before);
}

static int
upgrade_all_mounts(void)
{
    DIR *proc = opendir("/proc");
    char program[PATH_MAX];
    int status = KILN_DONE;
    struct dirent *e;

    while (proc && (e = readdir(proc))) {
        pid_t pid = (pid_t)strtol(e->d_name, NULL, 10);
        int one = pid > 0 && mount_program(pid, program) ? upgrade_mount(pid) : KILN_DONE;

        status = status ? status : one;
    }
    if (proc)
        closedir(proc);
    return status;
}

int
upgrade_mounts(int argc, char **argv)
{
    int status = argc ? KILN_DONE : upgrade_all_mounts();

    for (int i = 0; i < argc && !status; i++) {
        char *end;
        long pid = strtol(argv[i], &end, 10);

        if (end == argv[i] || *end || pid < 1 || pid > INT_MAX)
            return refuse(KILN_USAGE, "the process id of a kiln-mount, or none for all",
                          "pgrep -a kiln-mount", "'%.200s' is no process id", argv[i]);
        status = upgrade_mount((pid_t)pid);
    }
    return status;
}
