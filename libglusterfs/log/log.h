/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* log: one call. Lines have the layout of stock's logs, so that the tools that read those read these.
 *
 *     log_event(LOG_WARNING, xl, "posix-handle-missing", "no handle for %s, using the path", GFID(gfid));
 *
 * The third argument is the message's stable name, unique in the tree. A line of a brick's layer has the
 * brick's name before its text, and is logged at the brick's level.
 *
 * Repeats are counted apart for each name and brick: of the lines within 30 s the first ten are written, the
 * rest is one line: "N more like this". Who is told that a burst has begun (log_on_burst()) has that line
 * written when its time is up (log_flush()); else it comes with the next line of that name, or at the end.
 *
 * To a file, or to standard error. There, when it is the journal's stream ($JOURNAL_STREAM), a line begins
 * with its priority as sd-daemon(3) has it, and the journal has the time.
 *
 * thread: any; one write(2) a line. Nothing here takes a lock or allocates.
 */
#ifndef KILN_LOG_LOG_H
#define KILN_LOG_LOG_H

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

struct graph;
struct xlator;

/* Within so many seconds a burst's lines are counted together. */
#define LOG_WINDOW_SEC 30

/* `xl` may be NULL (the process itself). */
#define log_event(level, xl, name, ...)                                                                      \
    do {                                                                                                     \
        if ((level) <= log_level_of(xl))                                                                     \
            log_write(level, __FILE__, __LINE__, __func__, xl, name, __VA_ARGS__);                           \
    } while (0)

/* For log_event() alone: what is logged of this layer (NULL: of the process) now, and the line itself. errno
 * stays as it was. */
enum log_level log_level_of(const struct xlator *xl);
void log_write(enum log_level level, const char *file, int line, const char *function,
               const struct xlator *xl, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* In the main thread, at the start. Before this lines go to stderr. `path` NULL or "-": stderr. 0 or -errno.
 */
int log_open(const char *path);
/* SIGHUP: open the same path anew; -errno: the old file stays in use. Main thread. */
int log_reopen(void);
/* Of the process, from now on; any thread. */
void log_set_level(enum log_level level);
/* Of this brick, from now on; `is_own` false: the process's again. Any thread that knows the graph is there.
 */
void log_set_brick_level(struct graph *g, bool is_own, enum log_level level);
/* By stock's names (INFO, WARNING, ...; also lower case). -EINVAL. */
int log_level_parse(const char *text, enum log_level *out);
/* What lines without a layer are said to be of, in place of kilnd; kept. Before there are threads. */
void log_set_ident(const char *name);
/* `fn` is called when lines of a burst begin to be counted instead of written; from any thread, with any lock
 * held. Before there are threads. */
void log_on_burst(void (*fn)(void));
/* Says of bursts whose time is up how many lines they had more. True: others are still being counted. Main
 * thread. */
bool log_flush(void);
/* The last line has been written; main thread. */
void log_close(void);

#endif
