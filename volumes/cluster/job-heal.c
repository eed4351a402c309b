/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The job heal: the kiln-heal of the host that heals a volume (cluster_healer()) walks the whole volume. Any
 * host may own the job: the owner asks the healing host for the walk, and looks for its end.
 *
 *     record: "asked": {"host": healing host, "before": [start of the last full crawl of each set]}
 *     healing host: heal full           each set has a full crawl that is due
 *     healing host: statistics          every CLUSTER_JOB_LOOK_S seconds
 *     no full crawl is due, and the last one of each set has another start ─▶ record: done or failed
 *
 * Deaths: between any two lines the next owner finds the record and goes on with the line after it. When the
 * healing host dies, another host heals the volume, and the owner asks that host, which walks once the bricks
 * are back; so does the first host if it is back before, and the owner asks it again. A kiln-heal that was
 * started anew has no crawl that is due, so it is asked again. Texts of starts are only compared: clocks do
 * not matter. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "volumes/cluster/cluster-jobs-internal.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/volume-options.h"
#include "volumes/volume.h"
#include "volumes/volumes.h"

/* The full crawls of a volume, as the healing host describes them. */
struct walk_look {
    char host[CLUSTER_HOST_BYTES];
    json_t *starts; /* of the last full crawl of each set; "": none. Owned */
    bool is_due, is_known; /* a set is to be walked; the host tells so */
    json_int_t sets, walked, healed, split, failed, left;
};

/* ---- questions to the healing host ----------------------------------------------------------- */

static int
ask_for_walk(const char *volume, const char *what, char host[CLUSTER_HOST_BYTES], json_t **out,
             struct problem *why)
{
    json_t *args = json_pack("{ss ss}", "name", volume, "what", what);
    int err = args ? cluster_ask_healer(args, host, out, why) : problem_no_memory(why);

    json_decref(args);
    return err;
}

int
job_heal_check(const char *volume, struct problem *why)
{
    char host[CLUSTER_HOST_BYTES];
    json_t *out = NULL;
    int err = ask_for_walk(volume, "statistics", host, &out, why);
    struct volume *v = err ? NULL : volumes_find(volume, why);

    json_decref(out);
    if (err || !v)
        return why->err;
    why->err = 0;
    if (!volume_option_bool(v, "cluster.self-heal-daemon")) {
        problem_set(why, -EINVAL, "volume %s has no self-heal daemon: it is switched off", volume);
        problem_type(why, "kiln volume set %s cluster.self-heal-daemon on", volume);
    }
    volume_free(v);
    return why->err;
}

void
job_heal_stop_walk(const char *volume)
{
    char host[CLUSTER_HOST_BYTES];
    struct problem why;
    json_t *out = NULL;

    if (ask_for_walk(volume, "stop-full", host, &out, &why))
        log_event(LOG_WARNING, NULL, "job-walk", "volume %s: the full heal goes on: %s", volume, why.wrong);
    json_decref(out);
}

/* ---- the statistics -------------------------------------------------------------------------- */

static json_int_t
look_number(const json_t *look, const char *key)
{
    const char *text = json_string_value(json_object_get(look, key));
    long long n = 0;

    return text && sscanf(text, "%lld", &n) == 1 ? n : 0;
}

/* Returns the last full crawl of a set, which counts as one of its first brick; NULL: none. */
static const json_t *
last_walk_of_set(const json_t *bricks, size_t first)
{
    const json_t *last = NULL, *look;
    size_t i;

    json_array_foreach(json_object_get(json_array_get(bricks, first), "looks"), i, look)
    {
        const char *type = json_string_value(json_object_get(look, "type"));

        if (type && strcmp(type, "FULL") == 0)
            last = look;
    }
    return last;
}

static int
look_at_walk(const struct volume *v, struct walk_look *w, struct problem *why)
{
    json_t *out = NULL, *due;
    size_t i;

    *w = (struct walk_look){.sets = v->brick_count / v->replica};
    int err = ask_for_walk(v->name, "statistics", w->host, &out, why);
    if (err)
        return err;
    w->starts = json_array();
    for (size_t first = 0; first < v->brick_count; first += v->replica) {
        const json_t *last = last_walk_of_set(json_object_get(out, "bricks"), first);
        const char *started = json_string_value(json_object_get(last, "started"));

        json_array_append_new(w->starts, json_string(started ? started : ""));
        w->healed += look_number(last, "healed");
        w->split += look_number(last, "split_brain");
        w->failed += look_number(last, "failed");
        w->left += look_number(last, "left");
    }
    json_array_foreach(json_object_get(out, "full_due"), i, due)
    {
        w->is_known = true;
        w->is_due |= json_is_true(due);
        w->walked += !json_is_true(due);
    }
    json_decref(out);
    return json_array_size(w->starts) == (size_t)w->sets ? 0 : problem_no_memory(why);
}

/* Tells whether each set has another full crawl than before. */
static bool
has_walked(const struct walk_look *w, const json_t *before)
{
    const json_t *one;
    size_t i;
    bool has = !w->is_due && json_array_size(before) == json_array_size(w->starts);

    json_array_foreach(w->starts, i, one)
        has &= *json_string_value(one) && !json_equal(one, json_array_get(before, i));
    return has;
}

/* ---- the job --------------------------------------------------------------------------------- */

static bool
job_say(const struct cluster_job *j, const char *text)
{
    return cluster_job_update(j->id, json_pack("{ss}", "text", text));
}

static void
finish_walk(const struct cluster_job *j, const struct walk_look *w)
{
    char text[160];
    const bool is_well = !w->failed && !w->split;

    snprintf(text, sizeof text, "%lld objects healed%s", (long long)w->healed, is_well ? "" : ", ");
    if (!is_well)
        snprintf(text + strlen(text), sizeof text - strlen(text),
                 "%lld heals failed, %lld objects in split-brain; see heal info", (long long)w->failed,
                 (long long)w->split);
    (void)cluster_job_update(j->id, json_pack("{sI sI}", "done", w->sets, "total", w->sets));
    cluster_job_finish(j->id, is_well ? "done" : "failed", text);
}

/* Asks for the walk, after the record knows the crawls before it. Returns false if the job is to end. */
static bool
begin_walk(const struct cluster_job *j, const struct walk_look *w)
{
    char host[CLUSTER_HOST_BYTES];
    struct problem why;
    json_t *out = NULL;

    if (!cluster_job_update(j->id, json_pack("{s{ss sO} sI sI}", "asked", "host", w->host, "before",
                                             w->starts, "done", (json_int_t)0, "total", w->sets)))
        return false;
    int err = ask_for_walk(j->subject, "full", host, &out, &why);
    json_decref(out);
    return job_say(j, err ? why.wrong : "");
}

static bool
show_walk(const struct cluster_job *j, const struct walk_look *w)
{
    char text[CLUSTER_HOST_BYTES + 96];

    if (w->left || w->healed)
        snprintf(text, sizeof text, "host %s: %lld objects healed, %lld folders left", w->host,
                 (long long)w->healed, (long long)w->left);
    else
        snprintf(text, sizeof text, "host %s walks when all bricks of a set are online", w->host);
    return cluster_job_update(
        j->id, json_pack("{sI sI ss}", "done", w->walked, "total", w->sets, "text", text));
}

/* Looks once. Returns false if the job has ended, or is to end. */
static bool
look_at_job(const struct cluster_job *j, const struct volume *v)
{
    struct walk_look w;
    struct problem why = {0};
    json_t *record = cluster_job_read(j->id, &why);
    const json_t *asked = json_object_get(record, "asked");
    const char *host = json_string_value(json_object_get(asked, "host"));
    const json_t *before = json_object_get(asked, "before");
    bool goes_on = why.err != -ENOENT;

    if (!record)
        return goes_on; /* an error of the store passes */
    if (v->status != VOLUME_STARTED) {
        goes_on = job_say(j, "the volume is not started");
    } else if (look_at_walk(v, &w, &why)) {
        goes_on = job_say(j, why.wrong);
    } else {
        const bool is_same = host && strcmp(host, w.host) == 0 && json_array_size(before) == (size_t)w.sets;

        if (is_same && has_walked(&w, before)) {
            finish_walk(j, &w);
            goes_on = false;
        } else if (!is_same || (w.is_known && !w.is_due)) {
            goes_on = begin_walk(j, &w);
        } else {
            goes_on = show_walk(j, &w);
        }
        json_decref(w.starts);
    }
    json_decref(record);
    return goes_on;
}

void
job_heal_run(const struct cluster_job *j)
{
    bool goes_on = true;

    while (goes_on && cluster_job_goes_on()) {
        struct problem why = {0};
        int err = cluster_job_check_owner(j->id, &why);
        struct volume *v = err ? NULL : volumes_find(j->subject, &why);

        if (v)
            goes_on = look_at_job(j, v);
        else if (err)
            goes_on = err != -EPERM; /* another host owns the job, or the store is away */
        else
            goes_on = false;
        if (!v && !err)
            cluster_job_finish(j->id, "failed", why.wrong);
        volume_free(v);
        if (goes_on)
            sleep(CLUSTER_JOB_LOOK_S);
    }
}
