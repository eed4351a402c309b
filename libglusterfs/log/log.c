/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The line layout is stock's (management 1.9): [time] L [file:line:function] G-DOMAIN: text.
 *
 * Threads: the descriptor is exchanged atomically (reopen dups the new file over it). The table of bursts
 * has no lock: see struct burst. */
#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "log/escape.h"

#define LINE_BYTES 4096

/* Counts the lines of one name and brick within the last LOG_WINDOW_SEC.
 *
 * A burst lies in one of the PROBES places that follow from its key. A thread that finds no burst for its
 * key takes a place that is free, or whose window is over with nothing left to report: it exchanges the
 * old key for KEY_TAKEN, which no search matches, and writes the new key last. Threads that still count in
 * the old burst then count in the new one: at most a line too few, once. */
#define BURSTS 1024
#define PROBES 8
#define BURST_LINES 10
#define KEY_TAKEN 1

struct burst {
    _Atomic uint64_t key;   /* 0: never used */
    _Atomic uint32_t since; /* seconds */
    _Atomic uint32_t seen;
    /* written by the thread that has taken the place, read by the thread that reports */
    const char *name;
    enum log_level level;
    char brick[104]; /* the end of the brick's name */
};

static atomic_int level_now = LOG_INFO;
static int log_fd = STDERR_FILENO;
static char *log_path;
static const char *ident = "kilnd"; /* domain of lines without an xlator; set before other threads exist */
static bool is_journal; /* written before other threads exist */
static void (*burst_began)(void);
static struct burst bursts[BURSTS];

static const struct {
    const char *name;
    char letter, priority; /* the priority is syslog(3)'s */
} levels[] = {
    [LOG_NONE] = {"NONE", ' ', '7'},         [LOG_EMERG] = {"EMERGENCY", 'M', '0'},
    [LOG_ALERT] = {"ALERT", 'A', '1'},       [LOG_CRITICAL] = {"CRITICAL", 'C', '2'},
    [LOG_ERROR] = {"ERROR", 'E', '3'},       [LOG_WARNING] = {"WARNING", 'W', '4'},
    [LOG_NOTICE] = {"NOTICE", 'N', '5'},     [LOG_INFO] = {"INFO", 'I', '6'},
    [LOG_DEBUG] = {"DEBUG", 'D', '7'},       [LOG_TRACE] = {"TRACE", 'T', '7'},
};

enum log_level
log_level_of(const struct log_source *source)
{
    const struct log_group *g = source ? source->group : NULL;
    unsigned own = g ? atomic_load_explicit(&g->level, memory_order_relaxed) : 0;

    return own ? (enum log_level)(own - 1)
               : (enum log_level)atomic_load_explicit(&level_now, memory_order_relaxed);
}

void
log_set_group_level(struct log_group *group, bool is_own, enum log_level level)
{
    atomic_store_explicit(&group->level, is_own ? (unsigned)level + 1 : 0, memory_order_relaxed);
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
    /* a log that cannot be written must not stop the daemon, and there is no other place to report it */
    ssize_t n = write(log_fd, line, len);

    (void)n;
}

/* Writes the part of a line before the text. `brick` NULL: none. */
static size_t
format_prefix(char *line, size_t size, enum log_level level, const char *file, int number,
              const char *function, const char *domain, const char *brick)
{
    struct timespec now;
    struct tm tm;
    char stamp[32];
    const char *base = strrchr(file, '/');
    int n;

    if (is_journal) {
        n = snprintf(line, size, "<%c>", levels[level].priority);
    } else {
        clock_gettime(CLOCK_REALTIME, &now);
        gmtime_r(&now.tv_sec, &tm);
        strftime(stamp, sizeof stamp, "%Y-%m-%d %H:%M:%S", &tm);
        n = snprintf(line, size, "[%s.%06ld +0000] ", stamp, now.tv_nsec / 1000);
    }
    n += snprintf(line + n, size - (size_t)n, "%c [%s:%d:%s] 0-%s: ", levels[level].letter,
                  base ? base + 1 : file, number, function, domain);
    size_t len = (size_t)n < size ? (size_t)n : size - 1;
    if (!brick)
        return len;
    len += log_escape(line + len, size - len, brick, strlen(brick));
    n = snprintf(line + len, size - len, ": ");
    return len + (size_t)n < size ? len + (size_t)n : size - 1;
}

/* ---- bursts ---------------------------------------------------------------------------------- */

static uint32_t
seconds_now(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    return (uint32_t)now.tv_sec;
}

/* Names are literals, so a name's address identifies it. `brick` NULL: the process. */
static uint64_t
burst_key(const char *name, const struct log_group *brick)
{
    uint64_t h = (uint64_t)(uintptr_t)name * 0x9e3779b97f4a7c15u ^ (uint64_t)(uintptr_t)brick;

    h = (h ^ h >> 32) * 0xd6e8feb86659fd93u;
    return (h ^ h >> 29) | 2; /* neither 0 nor KEY_TAKEN */
}

static bool
burst_is_over(const struct burst *b, uint32_t now)
{
    return now - atomic_load_explicit(&b->since, memory_order_relaxed) >= LOG_WINDOW_SEC;
}

/* True if the place holds no burst that still has lines to report. */
static bool
may_be_taken(struct burst *b, uint64_t key, uint32_t now)
{
    return !key || (key != KEY_TAKEN && burst_is_over(b, now) &&
                    atomic_load_explicit(&b->seen, memory_order_relaxed) <= BURST_LINES);
}

static struct burst *
burst_take_place(uint64_t key, const char *name, enum log_level level, const struct log_group *brick,
                 uint32_t now)
{
    for (unsigned i = 0; i < PROBES; i++) {
        struct burst *b = &bursts[(key + i) % BURSTS];
        uint64_t had = atomic_load_explicit(&b->key, memory_order_acquire);

        if (!may_be_taken(b, had, now) || !atomic_compare_exchange_strong(&b->key, &had, KEY_TAKEN))
            continue;
        size_t len = brick ? strlen(brick->name) : 0,
               from = len < sizeof b->brick ? 0 : len - sizeof b->brick + 1;
        b->name = name;
        b->level = level;
        snprintf(b->brick, sizeof b->brick, "%s", brick ? brick->name + from : "");
        atomic_store_explicit(&b->since, now, memory_order_relaxed);
        atomic_store_explicit(&b->seen, 0, memory_order_relaxed);
        atomic_store_explicit(&b->key, key, memory_order_release);
        return b;
    }
    return NULL;
}

static struct burst *
burst_find(uint64_t key)
{
    for (unsigned i = 0; i < PROBES; i++) {
        struct burst *b = &bursts[(key + i) % BURSTS];

        if (atomic_load_explicit(&b->key, memory_order_acquire) == key)
            return b;
    }
    return NULL;
}

/* Returns the burst of the brick or, if too many bricks have bursts, that of the name alone. NULL: no room
 * for either. */
static struct burst *
burst_of(const char *name, enum log_level level, const struct log_group *brick, uint32_t now)
{
    uint64_t key = burst_key(name, brick);
    struct burst *b = burst_find(key);

    if (!b)
        b = burst_take_place(key, name, level, brick, now);
    return b || !brick ? b : burst_of(name, level, NULL, now);
}

static void
write_more(const struct burst *b, unsigned count)
{
    char line[512];
    size_t n = format_prefix(line, sizeof line, b->level, __FILE__, __LINE__, __func__, ident,
                             *b->brick ? b->brick : NULL);
    int k = snprintf(line + n, sizeof line - n, "%u more like this [%s]\n", count, b->name);

    write_line(line, k > 0 && n + (size_t)k < sizeof line ? n + (size_t)k : sizeof line - 1);
}

/* Begins the next window. Of the threads that see the window's end, exactly one reports the number of
 * suppressed lines. */
static void
end_window(struct burst *b, uint32_t now)
{
    uint32_t since = atomic_load_explicit(&b->since, memory_order_relaxed);

    if (now - since < LOG_WINDOW_SEC || !atomic_compare_exchange_strong(&b->since, &since, now))
        return;
    unsigned seen = atomic_exchange(&b->seen, 0);
    if (seen > BURST_LINES)
        write_more(b, seen - BURST_LINES);
}

static bool
is_left_out(const char *name, enum log_level level, const struct log_group *brick)
{
    uint32_t now = seconds_now();
    struct burst *b = burst_of(name, level, brick, now);

    if (!b)
        return false;
    end_window(b, now);
    unsigned seen = atomic_fetch_add_explicit(&b->seen, 1, memory_order_relaxed);
    if (seen == BURST_LINES && burst_began)
        burst_began();
    return seen >= BURST_LINES;
}

void
log_set_ident(const char *name)
{
    ident = name;
}

void
log_on_burst(void (*fn)(void))
{
    burst_began = fn;
}

bool
log_flush(void)
{
    uint32_t now = seconds_now();
    bool is_more = false;

    for (unsigned i = 0; i < BURSTS; i++) {
        struct burst *b = &bursts[i];

        if (atomic_load_explicit(&b->key, memory_order_acquire) <= KEY_TAKEN ||
            atomic_load_explicit(&b->seen, memory_order_relaxed) <= BURST_LINES)
            continue;
        end_window(b, now);
        is_more |= atomic_load_explicit(&b->seen, memory_order_relaxed) > BURST_LINES;
    }
    return is_more;
}

/* ---- a line ---------------------------------------------------------------------------------- */

void
log_write(enum log_level level, const char *file, int number, const char *function,
          const struct log_source *source, const char *name, const char *fmt, ...)
{
    char line[LINE_BYTES], text[LINE_BYTES];
    const struct log_group *group = source ? source->group : NULL,
                           *brick = group && group->name ? group : NULL;
    va_list ap;
    int saved = errno;

    if (!is_left_out(name, level, brick)) {
        size_t n = format_prefix(line, sizeof line, level, file, number, function,
                                 source ? source->name : ident, brick ? brick->name : NULL);

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

/* ---- destination ----------------------------------------------------------------------------- */

/* $JOURNAL_STREAM names the stream that systemd has made standard error; it may have been redirected
 * since. */
static bool
stderr_is_journal(void)
{
    const char *stream = getenv("JOURNAL_STREAM");
    uintmax_t device, inode;
    struct stat st;

    return stream && sscanf(stream, "%ju:%ju", &device, &inode) == 2 && fstat(STDERR_FILENO, &st) == 0 &&
           st.st_dev == device && st.st_ino == inode;
}

int
log_open(const char *path)
{
    is_journal = false;
    if (!path || strcmp(path, "-") == 0) {
        is_journal = stderr_is_journal();
        return 0;
    }
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
    /* writers keep the descriptor's number; dup3 changes the file behind the number in one step */
    int err = dup3(fd, log_fd, O_CLOEXEC) < 0 ? -errno : 0;
    close(fd);
    return err;
}

void
log_close(void)
{
    for (size_t i = 0; i < BURSTS; i++) {
        unsigned seen = atomic_exchange(&bursts[i].seen, 0);

        if (seen > BURST_LINES)
            write_more(&bursts[i], seen - BURST_LINES);
    }
    if (log_fd != STDERR_FILENO)
        close(log_fd);
    log_fd = STDERR_FILENO;
    is_journal = false;
    free(log_path);
    log_path = NULL;
}
