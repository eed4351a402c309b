/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Writes the figures as JSON to a file, every `ios-dump-interval` seconds, for programs that collect them
 * from stock bricks: /var/lib/glusterd/stats/glusterfsd_<path of the brick>.dump, or glusterfs_<volume>.dump
 * of a mount. The file contains two objects, one after the other: "aggr", the figures of the profile since it
 * was started, and "inter", the figures since the last file, per second. A new file replaces the old one by a
 * rename, so a reader never sees a part of a file.
 *
 * The keys are stock's. Times are in microseconds, as their names say (stock writes nanoseconds under these
 * names).
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "log/log.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

#define STATS_PARENT "/var/lib/glusterd"
#define STATS_FOLDER STATS_PARENT "/stats"

struct stats_writer {
    FILE *to;
    char prefix[640]; /* of each key */
    bool has_some;
    const struct figures *since, *now;
    double seconds; /* of the interval; 0: the window is the whole time */
};

static void
put_key(struct stats_writer *t, const char *group, const char *name, const char *unit)
{
    fprintf(t->to, "%s\n\"%s.%s%s%s\": ", t->has_some ? "," : "", t->prefix, group, name, unit);
    t->has_some = true;
}

/* Writes a count of the whole time, or per second. */
static void
put_count(struct stats_writer *t, const char *group, const char *name, const char *unit, uint64_t count)
{
    char rate[32];

    snprintf(rate, sizeof rate, "%s%sper_sec", t->seconds ? "" : unit, *unit == '.' ? "." : "_");
    put_key(t, group, name, t->seconds ? rate : unit);
    if (t->seconds)
        fprintf(t->to, "%.2f", (double)count / t->seconds);
    else
        fprintf(t->to, "%" PRIu64, count);
}

static void
put_sizes(struct stats_writer *t)
{
    for (unsigned c = 0; c < SIZE_CLASSES - 1; c++) {
        static const char *const units[] = {"b", "kb", "mb"};
        char name[16];
        unsigned unit = c / 10 < 2 ? c / 10 : 2;

        snprintf(name, sizeof name, "%u%s", 1U << (c - unit * 10), units[unit]);
        put_count(t, "read_", name, "", t->now->reads[c] - t->since->reads[c]);
        put_count(t, "write_", name, "", t->now->writes[c] - t->since->writes[c]);
    }
}

static void
stats_put_fop(struct stats_writer *t, const struct ios *ios, enum ios_window window, enum fop fop)
{
    const char *name = fop == FOP_readv ? "read" : fop == FOP_writev ? "write" : fop_info[fop].name;
    uint64_t calls = t->now->calls[fop] - t->since->calls[fop], min, max;
    double sum = (double)(t->now->sum[fop] - t->since->sum[fop]);

    ios_latency_bounds(ios, fop, window, &min, &max);
    put_count(t, "fop.", name, ".count", t->now->hits[fop] - t->since->hits[fop]);
    put_key(t, "fop.", name, ".latency_ave_usec");
    fprintf(t->to, "%.2f", calls ? sum / (double)calls / 1000 : 0);
    put_key(t, "fop.", name, ".latency_min_usec");
    fprintf(t->to, "%.2f", (double)min / 1000);
    put_key(t, "fop.", name, ".latency_max_usec");
    fprintf(t->to, "%.2f", (double)max / 1000);
}

static void
put_window(struct stats_writer *t, struct ios *ios, enum ios_window window)
{
    static const char *const releases[RELEASES] = {[RELEASE_FILE] = "release", [RELEASE_DIR] = "releasedir"};

    fputc('{', t->to);
    t->has_some = false;
    put_sizes(t);
    if (!t->seconds) {
        put_count(t, "fds.", "open_count", "", (uint64_t)atomic_load(&ios->open_now));
        put_count(t, "fds.", "max_open_count", "", (uint64_t)atomic_load(&ios->open_most));
    }
    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        if (fop_info[fop].profile_number)
            stats_put_fop(t, ios, window, fop);
    }
    for (enum ios_release r = 0; r < RELEASES; r++)
        put_count(t, "fop.", releases[r], ".count", t->now->releases[r] - t->since->releases[r]);
    if (t->seconds) {
        put_key(t, "", "sample_interval_sec", "");
        fprintf(t->to, "%.2f", t->seconds);
    } else {
        put_count(t, "", "uptime", "", t->now->seconds - t->since->seconds);
    }
    put_count(t, "", "bytes_read", "", t->now->bytes_read - t->since->bytes_read);
    put_count(t, "", "bytes_written", "", t->now->bytes_written - t->since->bytes_written);
    fputs("\n}\n", t->to);
}

/* Copies `name` with "_" for each "/". */
static void
as_one_name(char *to, size_t size, const char *name)
{
    snprintf(to, size, "%s", name);
    for (char *p = to; (p = strchr(p, '/')) != NULL;)
        *p = '_';
}

static void
put_all_figures(struct ios *ios, const char *name, bool is_brick, FILE *to)
{
    struct figures now;
    struct stats_writer t = {.to = to, .now = &now};

    ios_figures(ios, &now);
    pthread_mutex_lock(&ios->lock);
    for (enum ios_window w = WINDOW_CUMULATIVE; w <= WINDOW_FILE; w += WINDOW_FILE - WINDOW_CUMULATIVE) {
        t.since = &ios->since[w];
        t.seconds = w == WINDOW_FILE ? (double)(now.seconds - t.since->seconds) : 0;
        t.seconds = w == WINDOW_FILE && t.seconds < 1 ? 1 : t.seconds;
        snprintf(t.prefix, sizeof t.prefix, "gluster.%s%s.%s", is_brick ? "brick." : "", name,
                 w == WINDOW_FILE ? "inter" : "aggr");
        put_window(&t, ios, w);
    }
    ios_window_begin(ios, WINDOW_FILE);
    pthread_mutex_unlock(&ios->lock);
}

/* Returns a descriptor of the folder, or -errno. */
static int
open_stats_folder(void)
{
    if ((mkdir(STATS_PARENT, 0755) < 0 && errno != EEXIST) ||
        (mkdir(STATS_FOLDER, 0755) < 0 && errno != EEXIST))
        return -errno;
    int fd = open(STATS_FOLDER, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Writes the file. Returns 0 or -errno. A stock brick makes the folder writable for all users, so the new
 * name is always created, never opened. */
static int
write_file(struct ios *ios, int dir, const char *file, const char *name, bool is_brick)
{
    char new_name[NAME_MAX + 1];

    if ((size_t)snprintf(new_name, sizeof new_name, ".%s.new", file) >= sizeof new_name)
        return -ENAMETOOLONG;
    if (unlinkat(dir, new_name, 0) < 0 && errno != ENOENT)
        return -errno;
    int fd = openat(dir, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0644);
    FILE *to = fd < 0 ? NULL : fdopen(fd, "w");

    if (!to) {
        int err = errno;
        if (fd >= 0)
            close(fd);
        return -err;
    }
    put_all_figures(ios, name, is_brick, to);
    bool is_bad = ferror(to);
    int err = fclose(to) != 0 || is_bad ? (errno ? errno : EIO) : 0;
    if (!err && renameat(dir, new_name, dir, file) < 0)
        err = errno;
    if (err)
        unlinkat(dir, new_name, 0);
    return -err;
}

static uint64_t
stats_chore(struct chore *c)
{
    struct ios *ios = caa_container_of(c, struct ios, stats_chore);
    struct xlator *xl = ios->xl;
    const struct ios_conf *conf = xlator_conf(xl);
    bool is_brick = xl->name[0] == '/';
    char name[NAME_MAX + 1], file[NAME_MAX + 24];

    if (!conf->ios_dump_interval)
        return 0;
    as_one_name(name, sizeof name, xl->name);
    snprintf(file, sizeof file, "%s_%s.dump", is_brick ? "glusterfsd" : "glusterfs", name);
    int dir = open_stats_folder(), err = dir;

    if (dir >= 0) {
        err = write_file(ios, dir, file, name, is_brick);
        close(dir);
    }
    if (err < 0 && err != ios->stats_error)
        log_event(LOG_WARNING, xl, "io-stats-file", STATS_FOLDER "/%s cannot be written: %s", file,
                  strerror(-err));
    ios->stats_error = err < 0 ? err : 0;
    return (uint64_t)conf->ios_dump_interval * 1000;
}

void
ios_stats_file_init(struct ios *ios)
{
    chore_init(&ios->stats_chore, stats_chore);
    ios_stats_file_start(ios);
}

void
ios_stats_file_start(struct ios *ios)
{
    const struct ios_conf *conf = xlator_conf(ios->xl);

    if (conf->ios_dump_interval && conf->ios_dump_format != IOS_FORMAT_JSON)
        log_event(LOG_WARNING, ios->xl, "io-stats-format",
                  "ios-dump-format: only json is built; files in " STATS_FOLDER " are JSON");
    if (conf->ios_dump_interval)
        chore_restart(&ios->stats_chore, (uint64_t)conf->ios_dump_interval * 1000);
}

void
ios_stats_file_fini(struct ios *ios)
{
    chore_stop(&ios->stats_chore);
    chore_destroy(&ios->stats_chore);
}
