/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The job drain: replaces the bricks of a host by bricks on other hosts. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"
#include "volumes/cluster/cluster-bricks.h"
#include "volumes/cluster/cluster-jobs-internal.h"
#include "volumes/cluster/cluster-look.h"
#include "volumes/cluster/cluster-place.h"
#include "volumes/volumes.h"

struct drain_look {
    const char *host;
    json_int_t left;
    char volume[VOLUME_NAME_MAX + 1]; /* the first with a brick there; "": none */
};

static void
look_at_volume(const struct volume *v, void *arg)
{
    struct drain_look *d = arg;

    for (unsigned i = 0; i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].host, d->host) != 0)
            continue;
        d->left++;
        if (!*d->volume)
            snprintf(d->volume, sizeof d->volume, "%s", v->name);
    }
}

bool
cluster_volume_is_healed(const char *name)
{
    json_t *args = json_pack("{ss ss}", "name", name, "what", "info"), *out = NULL, *brick;
    struct problem why;
    bool is_well = cluster_look("volume-heal", args, &out, &why) == 0;
    size_t i;

    json_array_foreach(json_object_get(out, "bricks"), i, brick)
    {
        const json_t *count = json_object_get(brick, "count");

        is_well &= json_is_integer(count) && json_integer_value(count) == 0;
    }
    json_decref(out);
    json_decref(args);
    return is_well;
}

/* Replaces the first brick of the volume on the host. */
static int
drain_brick(const char *volume, const char *host, struct problem *why)
{
    struct volume *v = volumes_find(volume, why), *to = v ? volume_new("bricks", 1, false) : NULL;
    char from[VOLUME_BRICK_PATH_MAX + 300] = "";
    unsigned i = 0;
    int err = to ? 0 : v ? problem_no_memory(why) : why->err;

    while (!err && i < v->brick_count && strcmp(v->bricks[i].host, host) != 0)
        i++;
    if (!err && i < v->brick_count) {
        snprintf(from, sizeof from, "%s:%s", v->bricks[i].host, v->bricks[i].path);
        err = cluster_place_other(v, i, to, why);
        err = err ? err : cluster_replace_brick(volume, from, to, why);
        if (!err)
            log_event(LOG_INFO, NULL, "job-brick", "volume %s: %s replaced by %s:%s", volume, from,
                      to->bricks[0].host, to->bricks[0].path);
    }
    volume_free(v);
    volume_free(to);
    return err;
}

/* Waits until the volume is healed. Returns false if the job is to end. */
static bool
await_heal(const struct cluster_job *j, const char *volume)
{
    while (!cluster_volume_is_healed(volume)) {
        char text[VOLUME_NAME_MAX + 64];

        snprintf(text, sizeof text, "volume %s is being healed", volume);
        if (!cluster_job_goes_on() || !cluster_job_update(j->id, json_pack("{ss}", "text", text)))
            return false;
        sleep(CLUSTER_JOB_LOOK_S);
    }
    return true;
}

/* Tells whether a step may succeed later without the operator: a host was down, or bricks were not equal. */
static bool
may_pass(int err)
{
    return err == -EHOSTUNREACH || err == -ETIMEDOUT || err == -EBUSY;
}

void
job_drain_run(const struct cluster_job *j)
{
    json_int_t total = 0;

    while (cluster_job_goes_on()) {
        struct drain_look d = {.host = j->subject};
        struct problem why;

        volumes_each(look_at_volume, &d);
        total = total ? total : d.left;
        if (!cluster_job_update(j->id,
                                json_pack("{sI sI ss}", "done", total - d.left, "total", total, "text", "")))
            return;
        if (!*d.volume) {
            cluster_job_finish(j->id, "done", "");
            return;
        }
        int err = drain_brick(d.volume, j->subject, &why);
        if (err == -EAGAIN)
            return; /* without the store; the next owner goes on when it is back */
        if (err && !may_pass(err)) {
            cluster_job_finish(j->id, "failed", why.wrong);
            return;
        }
        if (err) {
            if (!cluster_job_update(j->id, json_pack("{ss}", "text", why.wrong)))
                return;
            sleep(CLUSTER_JOB_LOOK_S);
            continue;
        }
        if (!await_heal(j, d.volume))
            return;
    }
}
