/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/records.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "log/log.h"
#include "mount/shared.h"

enum { RECORD_BYTES_MAX = 65536, RECORD_PATH = 512 };

/* A mount point may be longer than the name of a file, so a hash of the mount point is the name. */
static void
name_record(char out[RECORD_PATH], const char *dir, const char *mountpoint)
{
    snprintf(out, RECORD_PATH, "%s/%016llx", dir,
             (unsigned long long)XXH3_64bits(mountpoint, strlen(mountpoint)));
}

static int
write_record(const char *path, const char *bytes, size_t count)
{
    char temporary[RECORD_PATH + 8];
    int err;

    snprintf(temporary, sizeof temporary, "%s.new", path);
    int fd = open(temporary, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    errno = EIO;
    err = write(fd, bytes, count) == (ssize_t)count ? 0 : -errno;
    if (close(fd) < 0 && !err)
        err = -errno;
    if (!err && rename(temporary, path) < 0)
        err = -errno;
    if (err)
        unlink(temporary);
    return err;
}

int
record_save(const char *dir, const struct mount_options *o, const char *mountpoint)
{
    char path[RECORD_PATH], *packet = malloc(RECORD_BYTES_MAX);
    int bytes = packet ? shared_encode(o, mountpoint, packet, RECORD_BYTES_MAX) : -ENOMEM;

    name_record(path, dir, mountpoint);
    if (bytes > 0 && mkdir(dir, 0700) < 0 && errno != EEXIST)
        bytes = -errno;
    int err = bytes < 0 ? bytes : write_record(path, packet, (size_t)bytes);
    free(packet);
    return err;
}

void
record_remove(const char *dir, const char *mountpoint)
{
    char path[RECORD_PATH];

    name_record(path, dir, mountpoint);
    if (unlink(path) < 0 && errno != ENOENT)
        log_event(LOG_WARNING, NULL, "record-stays", "the record %s of a mount cannot be removed: %s", path,
                  strerror(errno));
}

/* Returns the bytes of the file, which the caller frees, or NULL. */
static char *
read_record(const char *path, size_t *bytes)
{
    char *packet = malloc(RECORD_BYTES_MAX);
    int fd = packet ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
    struct stat st;
    ssize_t n = -1;

    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid())
        n = read(fd, packet, RECORD_BYTES_MAX);
    if (fd >= 0)
        close(fd);
    *bytes = n > 0 ? (size_t)n : 0;
    if (n > 0)
        return packet;
    free(packet);
    return NULL;
}

void
records_each(const char *dir, void (*fn)(const struct mount_options *o, const char *mountpoint, char *packet))
{
    struct dirent **names;
    int count = scandir(dir, &names, NULL, alphasort);

    for (int i = 0; i < count; i++) {
        char path[RECORD_PATH];
        const char *mountpoint, *word = "";
        struct mount_options o;
        size_t bytes = 0;

        snprintf(path, sizeof path, "%s/%.200s", dir, names[i]->d_name);
        bool is_record = names[i]->d_name[0] != '.';
        char *packet = is_record ? read_record(path, &bytes) : NULL;
        free(names[i]);
        if (packet && shared_decode(packet, bytes, &o, &mountpoint, &word) == 0) {
            fn(&o, mountpoint, packet);
            continue;
        }
        if (is_record) {
            log_event(LOG_WARNING, NULL, "record-dropped", "%s is no record of a mount here: %s", path, word);
            (void)unlink(path);
        }
        free(packet);
    }
    if (count >= 0)
        free(names);
}
