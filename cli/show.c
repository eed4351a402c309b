/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Prints answers for people. The text has the words of `gluster volume info` and `status`, because scripts
 * parse those words. */
#include <stdio.h>
#include <string.h>

#include "cli/kiln.h"

/* Returns the text, or "-" for any other value, because the process behind the socket may be no kilnd. */
static const char *
said(const json_t *value)
{
    return json_is_string(value) ? json_string_value(value) : "-";
}

static const char *
text(const json_t *json, const char *key)
{
    return said(json_object_get(json, key));
}

static long long
number(const json_t *json, const char *key)
{
    return json_integer_value(json_object_get(json, key));
}

/* "2 x 2 = 4", "1 x (2 + 1) = 3", "4". */
static void
show_brick_count(const json_t *v)
{
    size_t count = json_array_size(json_object_get(v, "bricks"));
    long long replica = number(v, "replica"), arbiter = number(v, "arbiter");

    printf("Number of Bricks: ");
    if (replica <= 1)
        printf("%zu\n", count);
    else if (arbiter)
        printf("%zu x (%lld + %lld) = %zu\n", count / (size_t)replica, replica - arbiter, arbiter, count);
    else
        printf("%zu x %lld = %zu\n", count / (size_t)replica, replica, count);
}

static void
show_one_info(json_t *v)
{
    json_t *brick, *value;
    const char *key;
    size_t i;

    printf("\nVolume Name: %s\nType: %s\nVolume ID: %s\nStatus: %s\n", text(v, "name"), text(v, "type"),
           text(v, "id"), text(v, "status"));
    show_brick_count(v);
    printf("Transport-type: tcp\nBricks:\n");
    json_array_foreach(json_object_get(v, "bricks"), i, brick)
        printf("Brick%zu: %s:%s%s\n", i + 1, text(brick, "host"), text(brick, "path"),
               json_is_true(json_object_get(brick, "arbiter")) ? " (arbiter)" : "");
    if (json_object_size(json_object_get(v, "options")) > 0)
        printf("Options Reconfigured:\n");
    json_object_foreach(json_object_get(v, "options"), key, value)
        printf("%s: %s\n", key, said(value));
}

int
show_info(const json_t *answer)
{
    json_t *v;
    size_t i;

    json_array_foreach(json_object_get(answer, "volumes"), i, v)
        show_one_info(v);
    if (i == 0)
        printf("No volumes present\n");
    return KILN_DONE;
}

int
show_list(const json_t *answer)
{
    json_t *v;
    size_t i;

    json_array_foreach(json_object_get(answer, "volumes"), i, v)
        printf("%s\n", said(v));
    return KILN_DONE;
}

static void
show_self_heal(const json_t *heal)
{
    long long pid = number(heal, "pid");

    if (!json_is_object(heal))
        return;
    if (strcmp(text(heal, "state"), "running") == 0 && pid)
        printf("%-55s %-6s %-7s %lld\n", "Self-heal Daemon on localhost", "N/A", "Y", pid);
    else
        printf("%-55s %-6s %-7s N/A\n", "Self-heal Daemon on localhost", "N/A", "N");
    if (strcmp(text(heal, "state"), "not installed") == 0)
        printf("Nothing is healed: the self-heal daemon is not installed. Try: %s\n",
               text(heal, "type"));
    else if (strcmp(text(heal, "state"), "starting again") == 0)
        printf("The self-heal daemon is started again; it ended with %s.\n", text(heal, "ended"));
}

static void
show_unbuilt(const json_t *brick)
{
    const json_t *feature;
    size_t i;

    json_array_foreach(json_object_get(brick, "not_built"), i, feature)
        printf("  not built: %s %s: %s\n", text(feature, "layer"), text(feature, "option"),
               text(feature, "without"));
}

static void
show_usage(const json_t *v)
{
    const json_t *limit = json_object_get(v, "limit"), *used = json_object_get(v, "used");

    if (json_is_integer(limit))
        printf("Limit: %lld bytes", number(v, "limit"));
    if (json_is_integer(limit) && json_is_integer(used))
        printf(", used: %lld", number(v, "used"));
    if (json_is_integer(limit))
        putchar('\n');
}

/* Sums of all volumes that are shown. */
struct status_sums {
    size_t volumes, started, bricks, online;
    long long heal_pending;
};

static void
add_status(struct status_sums *sums, const json_t *v)
{
    const json_t *brick;
    bool is_started = strcmp(text(v, "status"), "Started") == 0;
    size_t i;

    sums->volumes++;
    sums->started += is_started;
    json_array_foreach(json_object_get(v, "bricks"), i, brick)
    {
        sums->bricks += is_started;
        sums->online += json_is_true(json_object_get(brick, "online"));
        sums->heal_pending += number(brick, "heal_pending");
    }
}

static void
show_heal_pending(const json_t *v)
{
    struct status_sums sums = {0};

    add_status(&sums, v);
    if (sums.heal_pending > 0)
        printf("Waiting for heal: %lld objects; see: kiln heal %s info\n", sums.heal_pending,
               text(v, "name"));
}

static void
show_one_status(json_t *v)
{
    json_t *brick;
    size_t i;

    printf("Status of volume: %s\n", text(v, "name"));
    if (strcmp(text(v, "status"), "Started") != 0) {
        printf("It is not started.\n\n");
        return;
    }
    printf("%-55s %-6s %-7s %s\n", "Process", "Port", "Online", "Pid");
    json_array_foreach(json_object_get(v, "bricks"), i, brick)
    {
        bool is_online = json_is_true(json_object_get(brick, "online"));
        char name[1400], port[24] = "N/A", pid[24] = "N/A";

        snprintf(name, sizeof name, "Brick %s:%s", text(brick, "host"), text(brick, "path"));
        if (is_online) {
            snprintf(port, sizeof port, "%lld", number(brick, "port"));
            snprintf(pid, sizeof pid, "%lld", number(brick, "pid"));
        }
        printf("%-55s %-6s %-7s %s\n", name, port, is_online ? "Y" : "N", pid);
        if (json_object_get(brick, "error"))
            printf("  unknown: %s\n", text(brick, "error"));
        show_unbuilt(brick);
    }
    show_self_heal(json_object_get(v, "self-heal"));
    show_usage(v);
    show_heal_pending(v);
    putchar('\n');
}

int
show_quota(const json_t *answer)
{
    json_t *one;
    size_t i;

    if (!json_is_true(json_object_get(answer, "counts"))) {
        printf("Volume %s has no limits; set one: kiln volume quota %s set PATH SIZE\n", text(answer, "name"),
               text(answer, "name"));
        return KILN_DONE;
    }
    printf("%-50s %18s %18s %18s\n", "Path", "Limit", "Used", "Available");
    json_array_foreach(json_object_get(answer, "limits"), i, one)
    {
        long long limit = number(one, "limit"), used = number(one, "used");
        char available[24] = "-", of[24] = "none";

        if (limit > 0) {
            snprintf(of, sizeof of, "%lld", limit);
            snprintf(available, sizeof available, "%lld", limit > used ? limit - used : 0);
        }
        printf("%-50s %18s %18lld %18s%s\n", text(one, "path"), of, used, available,
               json_is_true(json_object_get(one, "counting")) ? "  (being counted)" : "");
    }
    if (!json_is_true(json_object_get(answer, "whole")))
        printf("No brick of some set is served: its files are missing in these figures.\n");
    return KILN_DONE;
}

int
show_status(const json_t *answer)
{
    struct status_sums sums = {0};
    json_t *v;
    size_t i;

    json_array_foreach(json_object_get(answer, "volumes"), i, v)
    {
        show_one_status(v);
        add_status(&sums, v);
    }
    if (sums.volumes > 1)
        printf("All: %zu volumes, %zu started; %zu bricks of these, %zu online; %lld objects wait for heal\n",
               sums.volumes, sums.started, sums.bricks, sums.online, sums.heal_pending);
    if (i == 0)
        printf("No volumes present\n");
    return KILN_DONE;
}

static void
show_brick_check(json_t *brick)
{
    const json_t *pending = json_object_get(brick, "pending");
    json_t *line;
    size_t i;

    printf("Brick %s:%s\n", text(brick, "host"), text(brick, "path"));
    json_array_foreach(json_object_get(brick, "flaws"), i, line) printf("  %s\n", said(line));
    if (json_object_get(brick, "error"))
        printf("  It could not be looked through: %s\n", text(brick, "error"));
    printf("  %lld objects, %lld of them not whole", number(brick, "objects"), number(brick, "bad"));
    if (json_is_integer(pending))
        printf(", %lld to be healed on other bricks", (long long)json_integer_value(pending));
    printf("\n\n");
}

int
show_check(const json_t *answer)
{
    bool is_whole = true;
    json_t *brick;
    size_t i;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        is_whole &= number(brick, "bad") == 0 && !json_object_get(brick, "error");
        if (!kiln_options.is_json)
            show_brick_check(brick);
    }
    int status = kiln_options.is_json ? show_json(answer) : KILN_DONE;
    return is_whole ? status : KILN_REFUSED;
}

static void
show_heal_brick(const json_t *brick)
{
    printf("Brick %s:%s\n", text(brick, "host"), text(brick, "path"));
}

static void
show_heal_end(const json_t *brick, const char *title, const char *key)
{
    const json_t *count = json_object_get(brick, key);

    if (json_is_integer(count))
        printf("%s: %lld\n", title, (long long)json_integer_value(count));
    else
        printf("%s: - (%s)\n", title, text(brick, "error"));
}

static void
show_heal_status(const json_t *brick)
{
    printf("Status: %s\n", json_is_true(json_object_get(brick, "online")) ? "Connected" : "not served");
}

static bool
is_among(const json_t *list, const json_t *name)
{
    const json_t *one;
    size_t i;

    json_array_foreach(list, i, one)
    {
        if (json_equal(one, name))
            return true;
    }
    return false;
}

static void
show_heal_entry(const json_t *brick, const json_t *entry)
{
    const char *failed =
        json_string_value(json_object_get(json_object_get(brick, "failed"), json_string_value(entry)));

    printf("%s", said(entry));
    if (is_among(json_object_get(brick, "split_brain"), entry))
        printf(" - Is in split-brain\n");
    else if (is_among(json_object_get(brick, "under_heal"), entry))
        printf(" - Possibly undergoing heal\n");
    else if (failed)
        printf(" - Heal failed: %s\n", failed);
    putchar('\n');
}

int
show_resolved(const json_t *answer)
{
    printf("volume %s: split-brain resolved for %lld entries\n", text(answer, "name"),
           (long long)json_integer_value(json_object_get(answer, "resolved")));
    return KILN_DONE;
}

int
show_full_heal(const json_t *answer)
{
    const char *name = text(answer, "name");

    if (json_object_get(answer, "job"))
        printf("volume %s: job %s heals all of it; see: kiln job list\n", name, text(answer, "job"));
    else
        printf("volume %s: the self-heal daemon looks through all of it; see: kiln volume heal %s info\n",
               name, name);
    return KILN_DONE;
}

int
show_heal(const json_t *answer)
{
    json_t *brick, *entry;
    size_t i, k;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        show_heal_brick(brick);
        json_array_foreach(json_object_get(brick, "entries"), k, entry)
            show_heal_entry(brick, entry);
        show_heal_status(brick);
        show_heal_end(brick, "Number of entries", "count");
        putchar('\n');
    }
    return KILN_DONE;
}

int
show_split_brain(const json_t *answer)
{
    json_t *brick, *entry;
    size_t i, k;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        show_heal_brick(brick);
        json_array_foreach(json_object_get(brick, "split_brain"), k, entry)
            printf("%s\n", said(entry));
        show_heal_status(brick);
        show_heal_end(brick, "Number of entries in split-brain", "split_brain_count");
        putchar('\n');
    }
    return KILN_DONE;
}

int
show_heal_summary(const json_t *answer)
{
    json_t *brick;
    size_t i;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        show_heal_brick(brick);
        show_heal_status(brick);
        show_heal_end(brick, "Total Number of entries", "count");
        show_heal_end(brick, "Number of entries in split-brain", "split_brain_count");
        putchar('\n');
    }
    return KILN_DONE;
}

static void
show_look(const json_t *look)
{
    static const struct {
        const char *title, *key;
    } lines[] = {{"Starting time of crawl", "started"},
                 {"Ending time of crawl", "ended"},
                 {"Type of crawl", "type"},
                 {"No. of entries healed", "healed"},
                 {"No. of entries in split-brain", "split_brain"},
                 {"No. of heal failed entries", "failed"}};
    bool is_running = strcmp(text(look, "under_way"), "1") == 0;

    putchar('\n');
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        printf("%s: %s\n", lines[i].title,
               is_running && strcmp(lines[i].key, "ended") == 0 ? "in progress" : text(look, lines[i].key));
    if (is_running)
        printf("No. of entries left: %s\nCurrent entry: <gfid:%s>\n", text(look, "left"),
               text(look, "current"));
}

int
show_heal_statistics(const json_t *answer)
{
    json_t *brick, *look;
    size_t i, k;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        show_heal_brick(brick);
        if (*text(brick, "waits_for"))
            printf("Waits for a client that is not connected to a new brick: %s\n",
                   text(brick, "waits_for"));
        json_array_foreach(json_object_get(brick, "looks"), k, look) show_look(look);
        putchar('\n');
    }
    return KILN_DONE;
}

static void
show_time(const json_t *fop, const char *key)
{
    const json_t *us = json_object_get(fop, key);

    if (json_is_real(us))
        printf(" %12.1f", json_real_value(us));
    else
        printf(" %12s", "-");
}

static void
show_brick_profile(json_t *brick)
{
    json_t *fop;
    size_t i;

    printf("Brick: %s:%s\n", text(brick, "host"), text(brick, "path"));
    if (!json_is_true(json_object_get(brick, "online"))) {
        const char *error = json_string_value(json_object_get(brick, "error"));

        printf("  %s%s\n\n", error ? "unknown: " : "not served", error ? error : "");
        return;
    }
    printf("  %-16s %10s %12s %12s %12s\n", "Fop", "Calls", "Mean us", "p50 us", "p99 us");
    json_array_foreach(json_object_get(brick, "fops"), i, fop)
    {
        printf("  %-16s %10lld", text(fop, "fop"), number(fop, "calls"));
        show_time(fop, "mean_us");
        show_time(fop, "p50_us");
        show_time(fop, "p99_us");
        putchar('\n');
    }
    printf("  Read: %lld bytes, written: %lld bytes, open files: %lld\n\n", number(brick, "bytes_read"),
           number(brick, "bytes_written"), number(brick, "open_files"));
}

int
show_profile(const json_t *answer)
{
    json_t *brick;
    size_t i;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick) show_brick_profile(brick);
    return KILN_DONE;
}

/* Prints "client 53 on web1" for the client id "...-PID:53-HOST:web1-PC_NAME:...". Prints any other id
 * unchanged. */
static void
put_client(const char *uid)
{
    const char *pid = strstr(uid, "-PID:"), *host = pid ? strstr(pid, "-HOST:") : NULL;
    const char *end = host ? strstr(host, "-PC_NAME:") : NULL;

    if (end)
        printf("client %.*s on %.*s", (int)(host - pid - 5), pid + 5, (int)(end - host - 6), host + 6);
    else
        printf("client %s", *uid ? uid : "kilnd");
}

static void
show_milliseconds(const json_t *us)
{
    if (json_is_number(us))
        printf(" %9.1f", json_number_value(us) / 1000);
    else
        printf(" %9s", "-");
}

static void
show_slow_call(const json_t *call)
{
    static const char *const stages[] = {"worker", "queue", "locks", "disk", "reply"};
    long long bytes = number(call, "bytes"), err = number(call, "errno");

    printf("  %-12s", text(call, "fop"));
    show_milliseconds(json_object_get(call, "total_us"));
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++)
        show_milliseconds(json_object_get(json_object_get(call, "stages_us"), stages[i]));
    printf(" %5.0f s  %s; ", json_number_value(json_object_get(call, "age_s")), text(call, "object"));
    put_client(text(call, "client"));
    printf(", process %lld", number(call, "pid"));
    if (bytes > 0)
        printf("; %lld bytes", bytes);
    if (err > 0)
        printf("; %s", strerror((int)err));
    putchar('\n');
}

int
show_slow(const json_t *answer)
{
    const json_t *brick, *call;
    size_t i, k;

    json_array_foreach(json_object_get(answer, "bricks"), i, brick)
    {
        const json_t *calls = json_object_get(brick, "slow");

        printf("Brick: %s:%s\n", text(brick, "host"), text(brick, "path"));
        if (json_array_size(calls) == 0) {
            printf("  %s\n\n", json_is_true(json_object_get(brick, "online"))
                                   ? "no call of the last ten minutes took 0.1 ms"
                               : json_object_get(brick, "error") ? text(brick, "error")
                                                                 : "not served");
            continue;
        }
        printf("  %-12s %9s %9s %9s %9s %9s %9s %7s  What and whose\n", "Milliseconds", "Total", "Worker",
               "Queue", "Locks", "Disk", "Reply", "Ago");
        json_array_foreach(calls, k, call) show_slow_call(call);
        putchar('\n');
    }
    return KILN_DONE;
}

int
show_options(const json_t *answer)
{
    json_t *o;
    size_t i;

    printf("%-45s %s\n", "Option", "Value");
    json_array_foreach(json_object_get(answer, "options"), i, o)
        printf("%-45s %s%s\n", text(o, "option"), text(o, "value"),
               json_is_true(json_object_get(o, "set")) ? "" : " (DEFAULT)");
    return KILN_DONE;
}

/* ---- rebalance ------------------------------------------------------------------------------- */

static void
show_bytes(double bytes)
{
    static const char *const units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
    unsigned u = 0;

    for (; bytes >= 1024 && u + 1 < sizeof units / sizeof units[0]; u++)
        bytes /= 1024;
    printf(u ? "%.1f %s" : "%.0f %s", bytes, units[u]);
}

static void
show_duration(long long seconds)
{
    printf("%lld:%02lld:%02lld", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

/* Says why a rebalance or drain has failed. Returns the exit status. */
static int
rebalance_result(const json_t *answer)
{
    const json_t *look = json_object_get(answer, "look");
    const char *name = text(answer, "name"), *reason = text(look, "reason");
    bool is_drain = strcmp(text(answer, "kind"), "drain") == 0;
    char type[512];

    if (strcmp(text(answer, "state"), "failed") != 0)
        return KILN_DONE;
    snprintf(type, sizeof type,
             is_drain ? "kiln volume remove-brick %s BRICK... start   # tries again"
                      : "kiln volume rebalance %s start   # tries again",
             name);
    return refuse(KILN_REFUSED, NULL, type, "the %s of volume %s has failed: files or folders: %lld%s%s",
                  is_drain ? "drain" : "rebalance", name, number(look, "failed"),
                  *reason ? "; the latest: " : "", reason);
}

static void
print_rebalance(const json_t *answer)
{
    const json_t *look = json_object_get(answer, "look"), *brick;
    const char *kind = text(answer, "kind");
    long long seconds = number(look, "seconds"), left = number(answer, "seconds_left");
    size_t i;

    printf("Rebalance of %s (%s): %s\n", text(answer, "name"), kind, text(answer, "state"));
    if (*text(look, "waits_for"))
        printf("Waits for a client that is not connected to all sets of bricks: %s\n",
               text(look, "waits_for"));
    json_array_foreach(json_object_get(answer, "leaving"), i, brick)
        printf("Leaving brick: %s\n", said(brick));
    if (!look)
        return;
    printf("Files moved: %lld (", number(look, "moved"));
    show_bytes((double)number(look, "bytes"));
    printf("), skipped: %lld, failed: %lld\n", number(look, "skipped"), number(look, "failed"));
    printf("Files looked at: %lld", number(look, "looked"));
    if (strcmp(text(answer, "state"), "completed") != 0) /* the estimate counts the bricks' own files, too */
        printf(" of about %lld", number(look, "expected"));
    printf(", folders: %lld\n", number(look, "folders"));
    printf("Run time: ");
    show_duration(seconds);
    if (seconds > 0) {
        printf(", %.1f files and ", (double)number(look, "moved") / (double)seconds);
        show_bytes((double)number(look, "bytes") / (double)seconds);
        printf(" a second");
    }
    if (json_object_get(answer, "seconds_left") && left >= 0) {
        printf(", left: about ");
        show_duration(left);
    }
    printf("\n");
    if (*text(look, "current"))
        printf("Folder: %s\n", text(look, "current"));
    if (*text(look, "reason"))
        printf("Latest of the rest: %s\n", text(look, "reason"));
}

int
show_rebalance(const json_t *answer)
{
    if (kiln_options.is_json) {
        int status = show_json(answer);

        return status || strcmp(text(answer, "state"), "failed") != 0 ? status : KILN_REFUSED;
    }
    print_rebalance(answer);
    (void)fflush(stdout);
    return rebalance_result(answer);
}
