/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* log: one call. Lines have the layout of stock's logs, so that the tools that read those read these.
 *
 *     log_event(LOG_WARNING, xl, "posix-handle-missing", "no handle for %s, using the path", GFID(gfid));
 *
 * The third argument is the message's stable name, unique in the tree. Repeats of a name are folded: after a
 * burst the rest are counted and reported in one line. thread: any; one write(2) a line, no lock held over
 * it.
 */
#ifndef KILN_LOG_LOG_H
#define KILN_LOG_LOG_H

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

struct xlator;

/* `xl` may be NULL (the process itself). */
#define log_event(level, xl, name, ...)                                                                      \
    do {                                                                                                     \
        if ((level) <= log_level_now())                                                                      \
            log_write(level, __FILE__, __LINE__, __func__, xl, name, __VA_ARGS__);                           \
    } while (0)

/* For log_event() alone: what is logged now, and the line itself. Nothing is kept; errno stays as it was. */
enum log_level log_level_now(void);
void log_write(enum log_level level, const char *file, int line, const char *function,
               const struct xlator *xl, const char *name, const char *fmt, ...)
    __attribute__((format(printf, 7, 8)));

/* In the main thread, at the start. Before this lines go to stderr. `path` NULL or "-": stderr. 0 or -errno.
 */
int log_open(const char *path);
/* SIGHUP: open the same path anew; -errno: the old file stays in use. Main thread. */
int log_reopen(void);
/* From now on; any thread. */
void log_set_level(enum log_level level);
/* By stock's names (INFO, WARNING, ...; also lower case). -EINVAL. */
int log_level_parse(const char *text, enum log_level *out);
/* The last line has been written; main thread. */
void log_close(void);

#endif
