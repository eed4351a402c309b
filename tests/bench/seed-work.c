/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* seed-work: one worker of the seed workload.
 *
 *   seed-work create DIR FILES     creates FILES empty files in DIR
 *   seed-work write  DIR FILES     for each: open, write 4 KiB synchronously, close, unlink
 *
 * Prints `errors N` and the first error's text, and waits for nobody: the caller starts one for each volume and takes
 * the time of all. Status 1 when there was an error.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
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

int
main(int argc, char **argv)
{
    bool creates = argc == 4 && strcmp(argv[1], "create") == 0;
    bool writes = argc == 4 && strcmp(argv[1], "write") == 0;
    char block[BLOCK];
    char name[32];
    int dir;

    if (!creates && !writes) {
        fprintf(stderr, "usage: seed-work create|write DIR FILES\n");
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
        else
            write_one(dir, name, block);
    }
    printf("errors %u\n", errors);
    return errors != 0;
}
