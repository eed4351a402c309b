/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <string.h>
#include <unistd.h>

#define MORE_THAN_A_PAGE 4097 /* for the files with fields; most kernels print less than half of that */

/* Counts forks, so that a child notices the fork without getting its process id in every read. */
static atomic_uint generation;
static pthread_once_t generation_once = PTHREAD_ONCE_INIT;

static void
count_fork(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_relaxed);
}

static void
watch_forks(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

/* ---- the descriptor -------------------------------------------------------------------------- */

int
procfs_open(struct procfs *f)
{
    pthread_once(&generation_once, watch_forks);
    procfs_close(f);
    int fd = open(f->path, O_RDONLY | O_CLOEXEC);

    if (fd < 0)
        return -errno;
    f->fd = fd;
    f->is_open = true;
    f->opens++;
    f->process = atomic_load_explicit(&generation, memory_order_relaxed);
    return 0;
}

void
procfs_close(struct procfs *f)
{
    if (f->is_open)
        close(f->fd);
    f->is_open = false;
}

static bool
is_open_here(const struct procfs *f)
{
    return f->is_open && f->process == atomic_load_explicit(&generation, memory_order_relaxed);
}

ssize_t
procfs_read(struct procfs *f, char *buf, size_t size)
{
    ssize_t n;

    if (!is_open_here(f)) {
        int err = procfs_open(f);

        if (err)
            return err;
    }
    do {
        n = pread(f->fd, buf, size - 1, 0);
    } while (n < 0 && errno == EINTR);
    if (n < 0) {
        int err = -errno;

        /* the subject is gone, and the path may lead to a new one later */
        if (err == -ESRCH || err == -ENODEV || err == -ENOENT)
            procfs_close(f);
        return err;
    }
    buf[n] = '\0';
    return n;
}

/* ---- parsing in place ------------------------------------------------------------------------ */

/* "12.34" is 1234. */
static bool
take_hundredths(const char **at, uint64_t *out)
{
    uint64_t whole, part = 0;

    if (!procfs_take_number(at, &whole) || whole > UINT64_MAX / 100 - 1)
        return false;
    if (**at == '.') {
        const char *digits = ++*at;

        if (!procfs_take_number(at, &part) || *at != digits + 2)
            return false;
    }
    *out = whole * 100 + part;
    return true;
}

static bool
skip_word(const char **at, const char *word)
{
    size_t n = strlen(word);

    while (**at == ' ' || **at == '\n')
        ++*at;
    if (strncmp(*at, word, n) != 0)
        return false;
    *at += n;
    return true;
}

/* ---- the readers ----------------------------------------------------------------------------- */

int
procfs_fields(struct procfs *f, struct procfs_field *fields, unsigned count)
{
    char text[MORE_THAN_A_PAGE];
    ssize_t n = procfs_read(f, text, sizeof text);

    return n < 0 ? (int)n : (int)procfs_parse_fields(text, fields, count);
}

int
procfs_statm(struct procfs *f, struct procfs_statm *out)
{
    static uint64_t page_bytes; /* every thread writes the same value */
    char text[160];
    ssize_t n = procfs_read(f, text, sizeof text);
    const char *at = text;

    if (n < 0)
        return (int)n;
    uint64_t page = __atomic_load_n(&page_bytes, __ATOMIC_RELAXED);

    if (!page) {
        page = (uint64_t)sysconf(_SC_PAGESIZE);
        __atomic_store_n(&page_bytes, page, __ATOMIC_RELAXED);
    }
    if (!procfs_take_number(&at, &out->size) || !procfs_take_number(&at, &out->resident) ||
        !procfs_take_number(&at, &out->shared))
        return -EBADMSG;
    out->size *= page;
    out->resident *= page;
    out->shared *= page;
    return 0;
}

/* Skips `count` fields, which may be negative. */
static void
skip_fields(const char **at, unsigned count)
{
    while (count--) {
        while (**at == ' ')
            ++*at;
        while (**at && **at != ' ')
            ++*at;
    }
}

int
procfs_stat(struct procfs *f, struct procfs_stat *out)
{
    char text[1024];
    ssize_t n = procfs_read(f, text, sizeof text);
    uint64_t parent = 0;

    if (n < 0)
        return (int)n;
    const char *at =
        strrchr(text, ')'); /* the program's name may contain a ')', the fields behind it cannot */

    if (!at || at[1] != ' ' || !at[2])
        return -EBADMSG;
    out->state = at[2];
    at += 3;
    bool is_good = procfs_take_number(&at, &parent);

    skip_fields(&at, 5); /* group, session, terminal, its group, flags */
    is_good = is_good && procfs_take_number(&at, &out->minor_faults);
    skip_fields(&at, 1);
    is_good = is_good && procfs_take_number(&at, &out->major_faults);
    skip_fields(&at, 1);
    is_good = is_good && procfs_take_number(&at, &out->user) && procfs_take_number(&at, &out->system);
    skip_fields(&at, 4); /* times of children, priority, nice */
    is_good = is_good && procfs_take_number(&at, &out->threads);
    skip_fields(&at, 1);
    is_good = is_good && procfs_take_number(&at, &out->start);
    out->parent = (int32_t)parent;
    return is_good ? 0 : -EBADMSG;
}

int
procfs_cpu(struct procfs *f, struct procfs_cpu *out)
{
    char text[256]; /* ten numbers of twenty digits */
    ssize_t n = procfs_read(f, text, sizeof text);
    const char *at = text;

    if (n < 0)
        return (int)n;
    bool is_good = skip_word(&at, "cpu ") && procfs_take_number(&at, &out->user) &&
                   procfs_take_number(&at, &out->nice) && procfs_take_number(&at, &out->system) &&
                   procfs_take_number(&at, &out->idle) && procfs_take_number(&at, &out->iowait) &&
                   procfs_take_number(&at, &out->irq) && procfs_take_number(&at, &out->softirq) &&
                   procfs_take_number(&at, &out->steal);

    return is_good ? 0 : -EBADMSG;
}

int
procfs_groups(struct procfs *f, uint32_t *out, unsigned max)
{
    char text[MORE_THAN_A_PAGE]; /* the line comes early: a hundred groups fit */
    ssize_t n = procfs_read(f, text, sizeof text);
    const char *at = n > 0 ? procfs_find_line(text, text + n, "Groups:", 7) : NULL;
    uint64_t group;
    unsigned count = 0;

    if (n < 0)
        return (int)n;
    if (!at)
        return -EBADMSG;
    while (count < max && procfs_take_number(&at, &group) && *at != '\0')
        out[count++] = (uint32_t)group;
    return (int)count;
}

int
procfs_load(struct procfs *f, struct procfs_load *out)
{
    char text[128];
    ssize_t n = procfs_read(f, text, sizeof text);
    const char *at = text;

    if (n < 0)
        return (int)n;
    bool is_good = take_hundredths(&at, &out->average_1min) && take_hundredths(&at, &out->average_5min) &&
                   take_hundredths(&at, &out->average_15min) && procfs_take_number(&at, &out->runnable) &&
                   *at++ == '/' && procfs_take_number(&at, &out->threads);

    return is_good ? 0 : -EBADMSG;
}

static bool
take_stall(const char **at, struct procfs_stall *out)
{
    return skip_word(at, "avg10=") && take_hundredths(at, &out->average_10s) && skip_word(at, "avg60=") &&
           take_hundredths(at, &out->average_60s) && skip_word(at, "avg300=") &&
           take_hundredths(at, &out->average_300s) && skip_word(at, "total=") &&
           procfs_take_number(at, &out->total_us);
}

int
procfs_pressure(struct procfs *f, struct procfs_pressure *out)
{
    char text[256];
    ssize_t n = procfs_read(f, text, sizeof text);
    const char *at = text;

    if (n < 0)
        return (int)n;
    *out = (struct procfs_pressure){0};
    if (!skip_word(&at, "some") || !take_stall(&at, &out->some))
        return -EBADMSG;
    return !skip_word(&at, "full") || take_stall(&at, &out->full) ? 0 : -EBADMSG;
}
