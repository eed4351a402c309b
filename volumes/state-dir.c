/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/state-dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define NEW_PREFIX ".new-"
#define MARKER "kiln-state"
#define LOCK "lock"
#define SUFFIX ".json"
#define FILE_BYTES_MAX (16u << 20)
#define FORMAT 1

struct state_dir {
    char *path;
    int fd, volumes_fd, lock_fd; /* -1: not open */
};

const char *
state_dir_path(const struct state_dir *s)
{
    return s->path;
}

static int
problem_errno(struct problem *why, const struct state_dir *s, const char *what)
{
    int err = -errno;

    return problem_set(why, err, "%s: %s: %s", s->path, what, strerror(-err));
}

/* ---- whole files ----------------------------------------------------------------------------- */

static int
write_all(int fd, const char *text, size_t size)
{
    while (size > 0) {
        ssize_t n = write(fd, text, size);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        text += n;
        size -= (size_t)n;
    }
    return fsync(fd) < 0 ? -errno : 0;
}

/* Writes the temporary file and flushes it to disk. */
static int
write_temporary(int dir, const char *temporary, const char *text, size_t size)
{
    (void)unlinkat(dir, temporary, 0); /* if this fails, O_EXCL reports it */
    int fd = openat(dir, temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    int err = write_all(fd, text, size);
    if (close(fd) < 0 && !err)
        err = -errno;
    return err;
}

/* Returns 0 or -errno; *is_there (NULL allowed): the file has its new text. */
static int
replace_file(int dir, const char *name, const char *text, size_t size, bool *is_there)
{
    char temporary[NAME_MAX + 1];

    if (snprintf(temporary, sizeof temporary, NEW_PREFIX "%s", name) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    int err = write_temporary(dir, temporary, text, size);
    if (!err && renameat(dir, temporary, dir, name) < 0)
        err = -errno;
    if (is_there)
        *is_there = !err;
    if (err) {
        (void)unlinkat(dir, temporary, 0); /* if this fails, the next start removes the file */
        return err;
    }
    return fsync(dir) < 0 ? -errno : 0;
}

/* Reads a whole file and appends a NUL. The caller frees the text. Returns NULL with errno on failure. */
static char *
read_state_file(int dir, const char *name, size_t *size)
{
    int fd = openat(dir, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK);
    struct stat st;
    char *text = NULL;

    if (fd < 0)
        return NULL;
    if (fstat(fd, &st) < 0) {
        text = NULL; /* keeps the errno of fstat(2) */
    } else if (!S_ISREG(st.st_mode) || st.st_size > FILE_BYTES_MAX) {
        errno = S_ISDIR(st.st_mode) ? EISDIR : S_ISREG(st.st_mode) ? EFBIG : EINVAL;
    } else if ((text = malloc((size_t)st.st_size + 1))) {
        ssize_t n = pread(fd, text, (size_t)st.st_size, 0);

        if (n != st.st_size) {
            errno = n < 0 ? errno : EIO;
            free(text);
            text = NULL;
        } else {
            text[n] = '\0';
            *size = (size_t)n;
        }
    }
    int saved = errno;
    close(fd);
    errno = saved;
    return text;
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool
is_leftover(const char *name)
{
    return strncmp(name, NEW_PREFIX, sizeof NEW_PREFIX - 1) == 0;
}

/* Calls fn with each name except "." and "..". Returns 0 or -errno. */
static int
for_each_name(int dir, int (*fn)(int dir, const char *name, void *arg), void *arg)
{
    int fd = openat(dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), err = 0;
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *e;

    if (!d) {
        err = -errno;
        if (fd >= 0)
            close(fd);
        return err;
    }
    while (!err && (errno = 0, e = readdir(d))) {
        if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0)
            err = fn(dir, e->d_name, arg);
    }
    if (!err && errno)
        err = -errno;
    closedir(d);
    return err;
}

/* Allows, in a folder without a marker, only the files that a killed start may have left. */
static int
is_nothing_of_ours(int dir, const char *name, void *arg)
{
    (void)dir;
    (void)arg;
    return is_leftover(name) || strcmp(name, LOCK) == 0 || strcmp(name, "lost+found") == 0 ? 0 : -ENOTEMPTY;
}

static int
remove_leftover(int dir, const char *name, void *arg)
{
    (void)arg;
    return is_leftover(name) && unlinkat(dir, name, 0) < 0 && errno != ENOENT ? -errno : 0;
}

static int
check_owner(const struct state_dir *s, struct problem *why)
{
    struct stat st;

    if (fstat(s->fd, &st) < 0)
        return problem_errno(why, s, "stat");
    if (st.st_uid == geteuid() && !(st.st_mode & (S_IWGRP | S_IWOTH)))
        return 0;
    problem_set(why, -EPERM, "%s belongs to user %u and has mode %04o", s->path, (unsigned)st.st_uid,
                (unsigned)st.st_mode & 07777);
    problem_expected(why, "a folder of user %u that no other user may write", (unsigned)geteuid());
    problem_type(why, "chown %u %s && chmod 700 %s", (unsigned)geteuid(), s->path, s->path);
    return why->err;
}

static int
check_format(const struct state_dir *s, const char *text, size_t size, struct problem *why)
{
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
    const json_t *format = json_object_get(json, "format");
    json_int_t n = json_is_integer(format) ? json_integer_value(format) : 0;

    json_decref(json);
    if (n == FORMAT)
        return 0;
    if (n < 1)
        problem_set(why, -EINVAL, "%s/" MARKER " was not written by kilnd", s->path);
    else
        problem_set(why, -EPROTO, "%s is a state folder of format %lld", s->path, (long long)n);
    problem_expected(why, "{\"format\": %d}%s", FORMAT, n > FORMAT ? ": a newer kilnd has written it" : "");
    return why->err;
}

/* Returns true for a state folder; false with why->err 0 for an empty folder. */
static bool
has_marker(const struct state_dir *s, struct problem *why)
{
    size_t size = 0;
    char *text = read_state_file(s->fd, MARKER, &size);

    why->err = 0;
    if (text) {
        bool is_good = check_format(s, text, size, why) == 0;

        free(text);
        return is_good;
    }
    if (errno != ENOENT) {
        problem_errno(why, s, MARKER);
        return false;
    }
    int err = for_each_name(s->fd, is_nothing_of_ours, NULL);
    if (err == -ENOTEMPTY) {
        problem_set(why, err, "%s is not empty and is not a state folder", s->path);
        problem_expected(why, "an empty folder, or a folder with a file " MARKER);
    } else if (err) {
        problem_set(why, err, "%s: %s", s->path, strerror(-err));
    }
    return false;
}

static int
lock_state(struct state_dir *s, struct problem *why)
{
    char holder[32] = "";

    s->lock_fd = openat(s->fd, LOCK, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (s->lock_fd < 0)
        return problem_errno(why, s, LOCK);
    if (flock(s->lock_fd, LOCK_EX | LOCK_NB) == 0) {
        int len = snprintf(holder, sizeof holder, "%ld\n", (long)getpid());

        /* The process id is information for people; only the lock counts. */
        if (ftruncate(s->lock_fd, 0) < 0 || pwrite(s->lock_fd, holder, (size_t)len, 0) != len)
            return problem_errno(why, s, LOCK);
        return 0;
    }
    if (errno != EWOULDBLOCK)
        return problem_errno(why, s, LOCK);
    ssize_t n = pread(s->lock_fd, holder, sizeof holder - 1, 0);
    holder[n > 0 ? n : 0] = '\0';
    problem_set(why, -EBUSY, "%s is in use by a running kilnd (process %ld)", s->path,
                strtol(holder, NULL, 10));
    problem_expected(why, "one daemon for each state folder");
    return why->err;
}

static int
make_marker(struct state_dir *s, struct problem *why)
{
    static const char text[] = "{\"format\": 1}\n";
    int err = replace_file(s->fd, MARKER, text, sizeof text - 1, NULL);

    return err ? problem_set(why, err, "%s/" MARKER ": %s", s->path, strerror(-err)) : 0;
}

static int
open_state_folder(struct state_dir *s, const char *name, int *fd, struct problem *why)
{
    if (mkdirat(s->fd, name, 0700) < 0 && errno != EEXIST)
        return problem_errno(why, s, name);
    *fd = openat(s->fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (*fd < 0)
        return problem_errno(why, s, name);
    int err = for_each_name(*fd, remove_leftover, NULL);
    return err ? problem_set(why, err, "%s/%s: %s", s->path, name, strerror(-err)) : 0;
}

static int
open_state(struct state_dir *s, struct problem *why)
{
    if (mkdir(s->path, 0700) < 0 && errno != EEXIST)
        return problem_errno(why, s, errno == ENOENT ? "cannot be made in a folder that is missing (mkdir -p)"
                                                     : "cannot be made");
    s->fd = open(s->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (s->fd < 0)
        return problem_errno(why, s, "cannot be opened");
    if (check_owner(s, why))
        return why->err;
    bool is_ours = has_marker(s, why);
    if (why->err || lock_state(s, why) || (!is_ours && make_marker(s, why)))
        return why->err;
    int err = for_each_name(s->fd, remove_leftover, NULL);
    if (err)
        return problem_set(why, err, "%s: %s", s->path, strerror(-err));
    if (open_state_folder(s, "volumes", &s->volumes_fd, why))
        return why->err;
    return fsync(s->fd) < 0 ? problem_errno(why, s, "fsync") : 0;
}

struct state_dir *
state_dir_open(const char *path, struct problem *why)
{
    struct state_dir *s = calloc(1, sizeof *s);

    if (s)
        *s = (struct state_dir){strdup(path), -1, -1, -1};
    if (!s || !s->path) {
        problem_no_memory(why);
    } else {
        why->err = 0;
        if (open_state(s, why) == 0)
            return s;
    }
    state_dir_close(s);
    return NULL;
}

void
state_dir_close(struct state_dir *s)
{
    if (!s)
        return;
    const int fds[] = {s->volumes_fd, s->fd, s->lock_fd};
    for (size_t i = 0; i < sizeof fds / sizeof fds[0]; i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    free(s->path);
    free(s);
}

/* ---- volumes --------------------------------------------------------------------------------- */

struct volume *
state_dir_parse(const char *text, size_t size, struct problem *why)
{
    json_error_t flaw;
    json_t *json = json_loadb(text, size, JSON_REJECT_DUPLICATES, &flaw);

    if (!json) {
        problem_set(why, -EINVAL, "line %d: %s", flaw.line, flaw.text);
        return NULL;
    }
    struct volume *v = volume_from_json(json, why);
    json_decref(json);
    return v;
}

struct loading {
    const struct state_dir *s;
    int (*each)(struct volume *v, void *arg, struct problem *why);
    void *arg;
    struct problem *why;
};

/* Adds to *why the name of the file, and a command for the operator. */
static int
refuse_file(const struct loading *l, const char *name)
{
    struct problem p = *l->why;

    problem_set(l->why, p.err, "%s/volumes/%.255s: %.400s", l->s->path, name, p.wrong);
    problem_expected(l->why, "%s", *p.expected ? p.expected : "the text that kilnd wrote");
    problem_type(l->why, "mv %s/volumes/%.255s /root/   # then kilnd serves the other volumes", l->s->path,
                 name);
    return p.err;
}

static int
load_one(int dir, const char *name, void *arg)
{
    const struct loading *l = arg;
    size_t size = 0, len = strlen(name), stem = len - (sizeof SUFFIX - 1);

    if (len < sizeof SUFFIX || strcmp(name + stem, SUFFIX) != 0) {
        problem_set(l->why, -EINVAL, "it is not a file of kilnd");
        return refuse_file(l, name);
    }
    char *text = read_state_file(dir, name, &size);
    if (!text) {
        problem_set(l->why, -errno, "%s", strerror(errno));
        return refuse_file(l, name);
    }
    struct volume *v = state_dir_parse(text, size, l->why);
    free(text);
    if (!v)
        return refuse_file(l, name);
    if (strlen(v->name) != stem || strncmp(v->name, name, stem) != 0) {
        problem_set(l->why, -EINVAL, "it holds the volume %s", v->name);
        volume_free(v);
        return refuse_file(l, name);
    }
    return l->each(v, l->arg, l->why) ? refuse_file(l, name) : 0;
}

int
state_dir_load(struct state_dir *s, int (*each)(struct volume *v, void *arg, struct problem *why), void *arg,
               struct problem *why)
{
    struct loading l = {s, each, arg, why};

    why->err = 0;
    int err = for_each_name(s->volumes_fd, load_one, &l);
    if (err && !why->err)
        problem_set(why, err, "%s/volumes: %s", s->path, strerror(-err));
    return err;
}

static int
file_name(const struct volume *v, char name[NAME_MAX + 1])
{
    return snprintf(name, NAME_MAX + 1, "%s" SUFFIX, v->name) > NAME_MAX ? -ENAMETOOLONG : 0;
}

int
state_dir_save(struct state_dir *s, const struct volume *v, bool *is_there, struct problem *why)
{
    char name[NAME_MAX + 1];
    json_t *json = volume_to_json(v);
    char *text = json ? json_dumps(json, JSON_INDENT(2)) : NULL;
    int err = text ? file_name(v, name) : -ENOMEM;

    json_decref(json);
    if (!err)
        err = replace_file(s->volumes_fd, name, text, strlen(text), is_there);
    free(text);
    if (!err)
        return 0;
    problem_set(why, err, "the volume could not be written to %s/volumes: %s", s->path, strerror(-err));
    if (err == -ENOSPC || err == -EDQUOT) {
        problem_expected(why, "free space there");
        problem_type(why, "df -h %s", s->path);
    }
    return err;
}

int
state_dir_remove(struct state_dir *s, const char *name, struct problem *why)
{
    char file[NAME_MAX + 1];

    if (snprintf(file, sizeof file, "%s" SUFFIX, name) >= (int)sizeof file)
        return problem_set(why, -ENAMETOOLONG, "the volume's name is too long");
    if (unlinkat(s->volumes_fd, file, 0) < 0 || fsync(s->volumes_fd) < 0)
        return problem_errno(why, s, file);
    return 0;
}
