/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* log: log_event() writes a line. Lines have the layout of stock's logs, so that tools for stock's logs
 * can read them.
 *
 *     log_event(LOG_WARNING, xl, "posix-handle-missing", "no handle for %s, using the path", GFID(gfid));
 *
 * The third argument is the message's stable name, unique in the tree. A line of a brick's layer has the
 * brick's name before its text, and is logged at the brick's level.
 *
 * Repeats are counted separately for each name and brick: of the lines within 30 s the first ten are
 * written, the others become one line: "N more like this". log_on_burst() registers a function that learns
 * when a burst has begun and can have that line written by log_flush() when the window is over; without it
 * the line comes with the next line of that name, or at the end.
 *
 * Lines go to a file or to standard error. If standard error is the journal's stream ($JOURNAL_STREAM), a
 * line begins with its priority in the form of sd-daemon(3) and has no time, because the journal adds it.
 *
 * thread: any; one write(2) a line. No function here takes a lock or allocates. */
#ifndef KILN_LOG_LOG_H
#define KILN_LOG_LOG_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level {
    LOG_NONE,
    LOG_EMERG,
    LOG_ALERT,
    LOG_CRITICAL,
    LOG_ERROR,
    LOG_WARNING,
    LOG_NOTICE,
    LOG_INFO,
    LOG_DEBUG,
    LOG_TRACE
};

/* A group of sources with one level: all layers of a graph. */
struct log_group {
    const char *name;  /* put before each text, and repeats are counted for it; NULL: nothing is put there */
    atomic_uint level; /* 0: the process's level; else an enum log_level plus 1. See log_set_group_level() */
};

/* The source of a line. The first member of a layer, so that log_event() takes a layer. */
struct log_source {
    const char *name; /* the domain of the line */
    const struct log_group *group;
};

struct xlator; /* begins with a struct log_source: stack/xlator.h checks this */

/* For log_event() alone: the source that a layer begins with; NULL for NULL. */
static inline const struct log_source *
log_source_of(const struct xlator *xl)
{
    return (const struct log_source *)(const void *)xl;
}

/* Window in seconds in which a burst's lines are counted together. */
#define LOG_WINDOW_SEC 30

/* `xl` may be NULL (the process itself). */
#define log_event(level, xl, name, ...)                                                                      \
    do {                                                                                                     \
        const struct log_source *log_source = log_source_of(xl);                                             \
        if ((level) <= log_level_of(log_source))                                                             \
            log_write(level, __FILE__, __LINE__, __func__, log_source, name, __VA_ARGS__);                   \
    } while (0)

/* For log_event() alone: the present level of this source (NULL: of the process), and the function that
 * writes the line. errno is preserved. */
enum log_level log_level_of(const struct log_source *source);
void log_write(enum log_level level, const char *file, int line, const char *function,
               const struct log_source *source, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* Opens the log; called in the main thread, at the start. Before this, lines go to stderr. `path` NULL or
 * "-": stderr. 0 or -errno. */
int log_open(const char *path);
/* Opens the same path again, after SIGHUP; -errno: the old file stays in use. Main thread. */
int log_reopen(void);
/* Sets the level of the process; any thread. */
void log_set_level(enum log_level level);
/* Sets the level of this group; `is_own` false: the process's level again. Any thread that knows that the
 * group exists. */
void log_set_group_level(struct log_group *group, bool is_own, enum log_level level);
/* Parses stock's names (INFO, WARNING, ...; also lower case). -EINVAL. */
int log_level_parse(const char *text, enum log_level *out);
/* Sets the domain of lines without a layer, instead of kilnd; the pointer is kept. Called before other
 * threads exist. */
void log_set_ident(const char *name);
/* `fn` is called when lines of a burst begin to be counted instead of written; from any thread, with any
 * lock held. Called before other threads exist. */
void log_on_burst(void (*fn)(void));
/* Writes the number of suppressed lines of each burst whose window is over. True: other bursts are still
 * being counted. Main thread. */
bool log_flush(void);
/* Closes the log after the last line; main thread. */
void log_close(void);

#endif
