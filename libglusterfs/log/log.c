/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The line layout is stock's (management 1.9): [time] L [file:line:function] G-DOMAIN: text.
 *
 * Threads: the descriptor is exchanged atomically (reopen dups the new file over it); the folding table has a
 * mutex that is not held over a write. */
#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "log/escape.h"
#include "stack/xlator.h"

#define LINE_BYTES 4096

/* After BURST lines of one name within WINDOW seconds the rest are counted. */
#define FOLD_SLOTS 128
#define FOLD_BURST 10
#define FOLD_WINDOW_SEC 30

struct fold {
    char name[48];
    time_t since;
    unsigned seen;
    char level;
};

static atomic_int level_now = LOG_INFO;
static int log_fd = STDERR_FILENO;
static char *log_path;
static const char ident[] = "kilnd"; /* shown when there is no xlator */
static pthread_mutex_t fold_lock = PTHREAD_MUTEX_INITIALIZER;
static struct fold folds[FOLD_SLOTS];

static const struct {
    const char *name;
    char letter;
} levels[] = {
    [LOG_NONE] = {"NONE", ' '},       [LOG_EMERG] = {"EMERGENCY", 'M'}, [LOG_ALERT] = {"ALERT", 'A'},
    [LOG_CRITICAL] = {"CRITICAL", 'C'}, [LOG_ERROR] = {"ERROR", 'E'},   [LOG_WARNING] = {"WARNING", 'W'},
    [LOG_NOTICE] = {"NOTICE", 'N'},   [LOG_INFO] = {"INFO", 'I'},       [LOG_DEBUG] = {"DEBUG", 'D'},
    [LOG_TRACE] = {"TRACE", 'T'},
};

enum log_level
log_level_now(void)
{
    return atomic_load_explicit(&level_now, memory_order_relaxed);
}

void
log_set_level(enum log_level level)
{
    atomic_store_explicit(&level_now, level, memory_order_relaxed);
}

int
log_level_parse(const char *text, enum log_level *out)
{
    for (size_t i = 0; i < sizeof levels / sizeof levels[0]; i++) {
        if (strcasecmp(text, levels[i].name) == 0) {
            *out = (enum log_level)i;
            return 0;
        }
    }
    return -EINVAL;
}

static void
write_line(const char *line, size_t len)
{
    /* A log that cannot be written must not stop the daemon; nowhere is left to say so. */
    ssize_t n = write(log_fd, line, len);

    (void)n;
}

static size_t
format_prefix(char *line, size_t size, char letter, const char *file, int number, const char *function,
              const struct xlator *xl)
{
    struct timespec now;
    struct tm tm;
    char stamp[32];
    const char *base = strrchr(file, '/');

    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &tm);
    int n = snprintf(line, size, "[%s.%06ld +0000] %c [%s:%d:%s] 0-%s: ", stamp, now.tv_nsec / 1000, letter,
                     base ? base + 1 : file, number, function, xl ? xl->name : ident);
    return n < 0 ? 0 : (size_t)n < size ? (size_t)n : size - 1;
}

/* True if this line is to be swallowed. *repeats: how many were, in the window that has just ended. */
static bool
is_folded(const char *name, char letter, unsigned *repeats, struct fold *ended)
{
    uint32_t hash = 2166136261u;
    struct timespec now;
    bool swallow = false;

    for (const char *p = name; *p; p++)
        hash = (hash ^ (uint8_t)*p) * 16777619u;
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);

    pthread_mutex_lock(&fold_lock);
    struct fold *f = &folds[hash % FOLD_SLOTS];
    *repeats = 0;
    if (strncmp(f->name, name, sizeof f->name - 1) != 0 || now.tv_sec - f->since >= FOLD_WINDOW_SEC) {
        if (f->seen > FOLD_BURST) {
            *repeats = f->seen - FOLD_BURST;
            *ended = *f;
        }
        snprintf(f->name, sizeof f->name, "%s", name);
        f->since = now.tv_sec;
        f->seen = 0;
        f->level = letter;
    }
    swallow = ++f->seen > FOLD_BURST;
    pthread_mutex_unlock(&fold_lock);
    return swallow;
}

static void
write_repeats(const struct fold *f, unsigned repeats)
{
    char line[512];
    size_t n = format_prefix(line, sizeof line, f->level, __FILE__, __LINE__, __func__, NULL);

    n += (size_t)snprintf(line + n, sizeof line - n, "The message \"%s\" repeated %u times more\n", f->name,
                          repeats);
    write_line(line, n);
}

void
log_write(enum log_level level, const char *file, int number, const char *function, const struct xlator *xl,
          const char *name, const char *fmt, ...)
{
    char line[LINE_BYTES], text[LINE_BYTES];
    unsigned repeats;
    struct fold ended;
    va_list ap;
    int saved = errno;
    bool swallow = is_folded(name, levels[level].letter, &repeats, &ended);

    if (repeats)
        write_repeats(&ended, repeats);
    if (!swallow) {
        size_t n = format_prefix(line, sizeof line, levels[level].letter, file, number, function, xl);

        va_start(ap, fmt);
        int m = vsnprintf(text, sizeof text, fmt, ap);
        va_end(ap);
        size_t text_len = m < 0 ? 0 : (size_t)m < sizeof text ? (size_t)m : sizeof text - 1;
        n += log_escape(line + n, sizeof line - n, text, text_len);
        int k = snprintf(line + n, sizeof line - n, " [%s]\n", name);
        n = k > 0 && n + (size_t)k < sizeof line ? n + (size_t)k : sizeof line - 1;
        line[n - 1] = '\n';
        write_line(line, n);
    }
    errno = saved;
}

int
log_open(const char *path)
{
    if (!path || strcmp(path, "-") == 0)
        return 0;
    char *copy = strdup(path);
    if (!copy)
        return -ENOMEM;
    free(log_path);
    log_path = copy;
    return log_reopen();
}

int
log_reopen(void)
{
    if (!log_path)
        return 0;
    int fd = open(log_path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    if (fd < 0)
        return -errno;
    if (log_fd == STDERR_FILENO) {
        log_fd = fd;
        return 0;
    }
    /* Writers keep the number they have read; what it leads to changes under them in one step. */
    int err = dup3(fd, log_fd, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return err;
}

void
log_close(void)
{
    for (size_t i = 0; i < FOLD_SLOTS; i++) {
        if (folds[i].seen > FOLD_BURST)
            write_repeats(&folds[i], folds[i].seen - FOLD_BURST);
        folds[i].seen = 0;
    }
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = STDERR_FILENO;
    free(log_path);
    log_path = NULL;
}
