/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* seed-work: one worker of the seed workload.
 *
 *   seed-work create DIR FILES     creates FILES empty files in DIR
 *   seed-work write  DIR FILES     for each: open, write 4 KiB synchronously, close, unlink
 *   seed-work keep   DIR FILES TAG creates the files again, synchronously, each with 4 KiB of the line
 *                                  `TAG NAME`, and leaves them
 *   seed-work cpu    PID...        prints the sum of these processes' CPU times, in microseconds
 *
 * create, write and keep print `errors N` and the first error's text. The caller starts a worker for each
 * volume and measures the time of all workers. Status 1 when there was an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { BLOCK = 4096 };

static unsigned errors;

static void
count_error(const char *what, const char *name)
{
    if (errors++ == 0)
        printf("first error: %s %s: %s\n", what, name, strerror(errno));
}

static void
create_one(int dir, const char *name)
{
    int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY, 0644);

    if (fd < 0)
        count_error("create", name);
    else if (close(fd) != 0)
        count_error("close", name);
}

static void
write_one(int dir, const char *name, const char *block)
{
    int fd = openat(dir, name, O_WRONLY | O_SYNC);

    if (fd < 0) {
        count_error("open", name);
        return;
    }
    if (write(fd, block, BLOCK) != BLOCK)
        count_error("write", name);
    if (close(fd) != 0)
        count_error("close", name);
    if (unlinkat(dir, name, 0) != 0)
        count_error("unlink", name);
}

static void
keep_one(int dir, const char *name, const char *tag)
{
    char line[BLOCK];
    char block[BLOCK];
    size_t length = (size_t)snprintf(line, sizeof(line), "%s %s\n", tag, name);
    int fd = openat(dir, name, O_CREAT | O_EXCL | O_WRONLY | O_SYNC, 0644);

    if (fd < 0) {
        count_error("create", name);
        return;
    }
    for (size_t at = 0; at < sizeof(block); at++)
        block[at] = line[at % length];
    if (write(fd, block, BLOCK) != BLOCK)
        count_error("write", name);
    if (close(fd) != 0)
        count_error("close", name);
}

/* A process's CPU clock has nanoseconds and knows of the threads that have ended; /proc/PID/stat counts in
 * ticks of 10 ms, /proc/PID/schedstat is the first thread's only.
 */
static int
print_cpu(int pids, char **pid)
{
    long long nanos = 0;

    for (int i = 0; i < pids; i++) {
        struct timespec used;
        clockid_t clock;
        int error = clock_getcpuclockid((pid_t)atol(pid[i]), &clock);

        if (error || clock_gettime(clock, &used) != 0) {
            fprintf(stderr, "seed-work: process %s: %s\n", pid[i], strerror(error ? error : errno));
            return 1;
        }
        nanos += used.tv_sec * 1000000000LL + used.tv_nsec;
    }
    printf("%lld\n", nanos / 1000);
    return 0;
}

int
main(int argc, char **argv)
{
    bool creates = argc == 4 && strcmp(argv[1], "create") == 0;
    bool writes = argc == 4 && strcmp(argv[1], "write") == 0;
    bool keeps = argc == 5 && strcmp(argv[1], "keep") == 0 && strlen(argv[4]) < NAME_MAX;
    char block[BLOCK];
    char name[32];
    int dir;

    if (argc > 2 && strcmp(argv[1], "cpu") == 0)
        return print_cpu(argc - 2, argv + 2);
    if (!creates && !writes && !keeps) {
        fprintf(stderr, "usage: seed-work create|write DIR FILES | keep DIR FILES TAG | cpu PID...\n");
        return 2;
    }
    dir = open(argv[2], O_RDONLY | O_DIRECTORY);
    if (dir < 0) {
        perror(argv[2]);
        return 2;
    }
    memset(block, 'k', sizeof(block));
    for (long i = 0, files = atol(argv[3]); i < files; i++) {
        snprintf(name, sizeof(name), "file-%06ld", i);
        if (creates)
            create_one(dir, name);
        else if (keeps)
            keep_one(dir, name, argv[4]);
        else
            write_one(dir, name, block);
    }
    printf("errors %u\n", errors);
    return errors != 0;
}
