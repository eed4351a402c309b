/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The job upgrade: has the kilnd of each host run a newer program (bricks/upgrade.h), host by host.
 *
 *     all bricks are online, nothing waits for heal ─▶ record: the host and its mark ─▶ question "upgrade"
 *     the mark of the host's lease has changed: its new program serves ─▶ record: one more host is done
 *
 * The mark is the process, its start and its number of upgrades. The job fails at the first host that
 * refuses, that does not return in RETURN_S seconds, or if the volumes are not well WELL_S seconds later.
 *
 * Deaths: an owner that dies after it wrote the mark, also by its own upgrade, leaves the mark. The next
 * owner asks the host again if the host has its old mark, which runs the same program once more at most. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "log/log.h"
#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-jobs-internal.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/cluster/cluster.h"
#include "volumes/volumes.h"

enum { RETURN_S = 120, WELL_S = 600, MARK_BYTES = 96, TEXT_BYTES = 512 };

struct rolling {
    const struct cluster_job *job;
    char host[256];   /* the host of the present step */
    char program[4096]; /* "": the file that each kilnd was started from */
    bool is_asked;    /* by this owner */
    time_t since;     /* of the present wait, monotonic; 0: none */
};

static time_t
upgrade_clock(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec;
}

/* "": the host is down. */
static void
host_mark(const char *host, char mark[MARK_BYTES])
{
    json_t *live = cluster_live_hosts();
    const json_t *record = json_object_get(live, host);

    mark[0] = '\0';
    if (record)
        snprintf(mark, MARK_BYTES, "%lld %lld %lld",
                 (long long)json_integer_value(json_object_get(record, "pid")),
                 (long long)json_integer_value(json_object_get(record, "since")),
                 (long long)json_integer_value(json_object_get(record, "upgrades")));
    json_decref(live);
}

/* ---- are the volumes well? ------------------------------------------------------------------- */

static void
collect_replicated(const struct volume *v, void *arg)
{
    if (v->status == VOLUME_STARTED && v->replica > 1)
        json_array_append_new(arg, json_string(v->name));
}

static bool
bricks_are_online(char text[TEXT_BYTES])
{
    json_t *args = json_object(), *out = NULL, *volume, *brick;
    struct problem why = {0};
    bool is_well = cluster_look("volume-status", args, &out, &why) == 0;
    size_t i, k;

    if (!is_well)
        snprintf(text, TEXT_BYTES, "%.500s", why.wrong);
    json_array_foreach(json_object_get(out, "volumes"), i, volume)
    {
        const char *status = json_string_value(json_object_get(volume, "status"));

        if (!status || strcmp(status, "Started") != 0)
            continue;
        json_array_foreach(json_object_get(volume, "bricks"), k, brick)
        {
            const char *host = json_string_value(json_object_get(brick, "host"));
            const char *path = json_string_value(json_object_get(brick, "path"));

            if (json_is_true(json_object_get(brick, "online")))
                continue;
            is_well = false;
            snprintf(text, TEXT_BYTES, "brick %.200s:%.200s is offline", host ? host : "", path ? path : "");
        }
    }
    json_decref(out);
    json_decref(args);
    return is_well;
}

/* Tells whether one more host may be away for a moment. */
static bool
volumes_are_well(char text[TEXT_BYTES])
{
    json_t *names = json_array(), *name;
    bool is_well = bricks_are_online(text);
    size_t i;

    volumes_each(collect_replicated, names);
    json_array_foreach(names, i, name)
    {
        if (!is_well || cluster_volume_is_healed(json_string_value(name)))
            continue;
        is_well = false;
        snprintf(text, TEXT_BYTES, "volume %s is being healed", json_string_value(name));
    }
    json_decref(names);
    return is_well;
}

/* ---- one step -------------------------------------------------------------------------------- */

/* Returns true if the wait that began with `r->since` is too long. */
static bool
is_late(struct rolling *r, unsigned seconds)
{
    if (!r->since)
        r->since = upgrade_clock();
    return upgrade_clock() - r->since >= (time_t)seconds;
}

/* Ends the job at this host. */
static bool
fail_at(const struct rolling *r, const char *text)
{
    char full[1100];

    snprintf(full, sizeof full, "host %.255s: %.800s", r->host, text);
    cluster_job_finish(r->job->id, "failed", full);
    return false;
}

static bool
ask_to_upgrade(struct rolling *r)
{
    struct cluster_ask ask = {.host = r->host};
    json_t *args = json_pack("{ss*}", "program", *r->program ? r->program : NULL);

    r->is_asked = true;
    r->since = 0;
    cluster_ask_all(&ask, 1, "upgrade", args, CLUSTER_CHANGE_S);
    json_decref(args);
    cluster_asks_end(&ask, 1);
    /* the host may run its new program before it has sent its answer; the next step sees the new mark */
    if (ask.err && ask.err != -ETIMEDOUT && ask.err != -EHOSTUNREACH && ask.err != -EAGAIN)
        return fail_at(r, ask.why.wrong);
    return true;
}

/* Asks a host with the old program to upgrade, or waits until the volumes are well. Returns false if the job
 * ends. */
static bool
begin_host(struct rolling *r, const char *mark)
{
    char text[TEXT_BYTES] = "";

    if (!*mark)
        return fail_at(r, "the host is down");
    if (!volumes_are_well(text)) {
        if (is_late(r, WELL_S))
            return fail_at(r, text);
        return cluster_job_update(r->job->id, json_pack("{ss}", "text", text));
    }
    return cluster_job_update(r->job->id, json_pack("{ss ss}", "mark", mark, "text", r->host)) &&
           ask_to_upgrade(r);
}

/* Reads the error of the host's last attempt. */
static bool
check_attempt(struct rolling *r)
{
    struct cluster_ask ask = {.host = r->host};
    json_t *args = json_object();

    cluster_ask_all(&ask, 1, "version", args, CLUSTER_LOOK_S);
    const char *error = json_string_value(json_object_get(ask.answer, "upgrade_error"));
    bool goes_on = true;
    if (!ask.err && error && *error)
        goes_on = fail_at(r, error);
    else if (is_late(r, RETURN_S))
        goes_on = fail_at(r, "the new program does not serve");
    cluster_asks_end(&ask, 1);
    json_decref(args);
    return goes_on;
}

static bool
end_host(struct rolling *r, json_int_t done)
{
    char text[TEXT_BYTES] = "";

    if (!volumes_are_well(text)) {
        if (is_late(r, WELL_S))
            return fail_at(r, text);
        return cluster_job_update(r->job->id, json_pack("{ss}", "text", text));
    }
    log_event(LOG_INFO, NULL, "job-host-upgraded", "job %s: host %s runs its new program", r->job->id,
              r->host);
    r->is_asked = false;
    r->since = 0;
    return cluster_job_update(r->job->id, json_pack("{sI sn ss}", "done", done + 1, "mark", "text", ""));
}

/* Does what is next. Returns false if the job has ended, or is another host's. */
static bool
upgrade_step(struct rolling *r)
{
    struct problem why;
    char mark[MARK_BYTES];
    int err = cluster_job_check_owner(r->job->id, &why);
    json_t *record = err ? NULL : cluster_job_read(r->job->id, &why);

    if (err || !record)
        return err != -EPERM && why.err != -ENOENT;
    json_int_t done = json_integer_value(json_object_get(record, "done"));
    const char *host = json_string_value(json_array_get(json_object_get(record, "hosts"), (size_t)done));
    const char *before = json_string_value(json_object_get(record, "mark"));
    char was[MARK_BYTES];
    bool has_begun = before != NULL;

    snprintf(was, sizeof was, "%s", has_begun ? before : "");
    snprintf(r->host, sizeof r->host, "%s", host ? host : "");
    err = cluster_job_ordered_program(record, r->job->id, r->program, sizeof r->program, &why);
    json_decref(record);
    if (err) {
        cluster_job_finish(r->job->id, "failed", why.wrong);
        return false;
    }
    if (!*r->host) {
        cluster_job_finish(r->job->id, "done", "");
        return false;
    }
    host_mark(r->host, mark);
    if (!has_begun)
        return begin_host(r, mark);
    if (*mark && strcmp(mark, was) != 0)
        return end_host(r, done);
    return *mark && !r->is_asked ? ask_to_upgrade(r) : check_attempt(r);
}

void
job_upgrade_run(const struct cluster_job *j)
{
    struct rolling r = {.job = j};

    while (cluster_job_goes_on() && upgrade_step(&r))
        sleep(CLUSTER_JOB_LOOK_S);
}
