/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The figures of `volume profile info`: those since the start (or the last clear), and those of the interval
 * since the previous request (management 4.7). No counter is reset: each window stores the sums at its
 * beginning.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "xlators/debug/io-stats/io-stats-internal.h"

enum info_op { INFO_ALL = 1, INFO_INCREMENTAL, INFO_CUMULATIVE, INFO_CLEAR };

/* The keys of a window begin with its number and a dash. */
struct profile_writer {
    struct dict *out;
    int number;
    int err;
};

__attribute__((format(printf, 3, 4))) static void
profile_put_number(struct profile_writer *t, uint64_t value, const char *format, ...)
{
    char name[64], key[96];
    va_list args;

    va_start(args, format);
    vsnprintf(name, sizeof name, format, args);
    va_end(args);
    snprintf(key, sizeof key, "%d-%s", t->number, name);
    if (!t->err)
        t->err = dict_set_text_int(t->out, key, (int64_t)value);
}

static void
profile_put_double(struct profile_writer *t, double value, unsigned fop, const char *name)
{
    char key[96], text[64];
    int len = snprintf(text, sizeof text, "%f", value);

    snprintf(key, sizeof key, "%d-%u-%s", t->number, fop, name);
    if (!t->err)
        t->err = dict_set_text(t->out, key, DICT_STR, text, (uint32_t)len + 1);
}

static void
report_fop(struct profile_writer *t, const struct ios *ios, enum ios_window window, enum fop fop,
         const struct figures *now)
{
    const struct figures *since = &ios->since[window];
    uint64_t calls = now->calls[fop] - since->calls[fop], sum = now->sum[fop] - since->sum[fop], min, max;
    unsigned number = fop_info[fop].profile_number;

    if (!number)
        return;
    if (now->hits[fop] != since->hits[fop])
        profile_put_number(t, now->hits[fop] - since->hits[fop], "%u-hits", number);
    if (!calls)
        return;
    ios_latency_bounds(ios, fop, window, &min, &max);
    profile_put_double(t, (double)sum / (double)calls, number, "avglatency");
    profile_put_double(t, (double)min, number, "minlatency");
    profile_put_double(t, (double)max, number, "maxlatency");
}

static void
report_releases(struct profile_writer *t, const struct figures *since, const struct figures *now)
{
    static const unsigned numbers[RELEASES] = {[RELEASE_FILE] = 42, [RELEASE_DIR] = 43}; /* management 4.7 */

    for (enum ios_release r = 0; r < RELEASES; r++) {
        if (now->releases[r] != since->releases[r])
            profile_put_number(t, now->releases[r] - since->releases[r], "%u-hits", numbers[r]);
    }
}

static int
report_window(struct ios *ios, enum ios_window window, const struct figures *now, struct dict *out)
{
    const struct figures *since = &ios->since[window];
    struct profile_writer t = {.out = out, .number = window == WINDOW_CUMULATIVE ? -1 : (int)ios->interval};

    t.err = dict_set_text_int(out, window == WINDOW_CUMULATIVE ? "cumulative" : "interval", t.number);
    profile_put_number(&t, now->seconds - since->seconds, "duration");
    profile_put_number(&t, now->bytes_read - since->bytes_read, "total-read");
    profile_put_number(&t, now->bytes_written - since->bytes_written, "total-write");
    for (unsigned c = 0; c < SIZE_CLASSES; c++) {
        if (now->reads[c] != since->reads[c])
            profile_put_number(&t, now->reads[c] - since->reads[c], "read-%" PRIu64, UINT64_C(1) << c);
        if (now->writes[c] != since->writes[c])
            profile_put_number(&t, now->writes[c] - since->writes[c], "write-%" PRIu64, UINT64_C(1) << c);
    }
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++)
        report_fop(&t, ios, window, fop, now);
    report_releases(&t, since, now);
    return t.err;
}

static int
report_windows(struct ios *ios, enum info_op op, bool is_peek, struct dict *out)
{
    struct figures now;
    int err = 0;

    ios_figures(ios, &now);
    if (op != INFO_INCREMENTAL)
        err = report_window(ios, WINDOW_CUMULATIVE, &now, out);
    if (err || op == INFO_CUMULATIVE)
        return err;
    err = report_window(ios, WINDOW_INTERVAL, &now, out);
    if (!err && !is_peek) {
        ios->interval++;
        ios_window_begin(ios, WINDOW_INTERVAL);
    }
    return err;
}

int
ios_profile(struct xlator *xl, const struct dict *input, struct dict *output)
{
    struct ios *ios = xl->private;
    int64_t asked = ios_input(input, "info-op", INFO_ALL);
    enum info_op op = asked >= INFO_ALL && asked <= INFO_CLEAR ? (enum info_op)asked : INFO_ALL;
    int err = dict_set_text_int(output, "info-op", op);

    pthread_mutex_lock(&ios->lock);
    if (!err && op == INFO_CLEAR) {
        ios_window_begin(ios, WINDOW_CUMULATIVE);
        ios_window_begin(ios, WINDOW_INTERVAL);
        ios->interval = 0;
        err = dict_set_text_int(output, "stats-cleared", 1);
    } else if (!err) {
        err = report_windows(ios, op, ios_input(input, "peek", 0) != 0, output);
    }
    pthread_mutex_unlock(&ios->lock);
    return err;
}
