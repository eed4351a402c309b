/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The job rebalance: the task of a volume (volume-task.h) is done by the kiln-heal of the host that owns the
 * job. The task in the store says whether the rebalance is to go on; the record of the job shows progress.
 *
 *     task of the volume {"state": "running", "job": ID}  and record of the job     one transaction
 *     owner: kiln-heal gets the task; every CLUSTER_JOB_LOOK_S seconds the record gets its progress
 *     kiln-heal has ended ─▶ task: completed or failed, record: done or failed      one transaction
 *
 * Deaths: between any two lines the record still runs, so the next owner gives the task to its kiln-heal. A
 * record without its task (the volume was deleted) is ended by its owner. */
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <unistd.h>
#include <urcu/list.h>

#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-jobs-internal.h"
#include "volumes/heal/rebalance.h"
#include "volumes/volume-task.h"
#include "volumes/volume.h"

struct done_here {
    struct cds_list_head link;
    const struct cluster_job *job;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list; a leaf */
static CDS_LIST_HEAD(here); /* jobs whose tasks this host's kiln-heal has */

bool
cluster_jobs_does_task(const struct volume *v)
{
    const char *id = volume_task_job(v);
    struct done_here *d;
    bool does = false;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(d, &here, link)
        does |= id && strcmp(d->job->id, id) == 0;
    pthread_mutex_unlock(&lock);
    return does;
}

/* Gives the task to kiln-heal, or takes it away. */
static void
set_done_here(struct done_here *d, bool is_here, bool *was_here)
{
    if (is_here == *was_here)
        return;
    pthread_mutex_lock(&lock);
    if (is_here)
        cds_list_add(&d->link, &here);
    else
        cds_list_del(&d->link);
    pthread_mutex_unlock(&lock);
    *was_here = is_here;
    rebalance_follow(d->job->subject);
}

/* Ends the record as the task has ended. */
static void
finish_as_task(const struct cluster_job *j, const struct volume *v)
{
    const char *id = v ? volume_task_job(v) : NULL;

    if (!id || strcmp(id, j->id) != 0)
        cluster_job_finish(j->id, "failed", "the volume does not have this rebalance any more");
    else if (strcmp(volume_task_state(v), TASK_STOPPED) == 0)
        cluster_job_finish(j->id, "stopped", "");
    else if (strcmp(volume_task_state(v), "completed") == 0)
        cluster_job_finish(j->id, "done", "");
    else
        cluster_job_finish(j->id, "failed", "see the status of the rebalance");
}

/* Looks once. Returns false if the job has ended, or is another host's. */
static bool
look_at_task(struct done_here *d, bool *is_here)
{
    const struct cluster_job *j = d->job;
    struct problem why = {0};
    int64_t from;
    int err = cluster_job_check_owner(j->id, &why);
    struct volume *v = err ? NULL : cluster_read_volume(j->subject, &from, &why);

    if (err == -EPERM)
        return false;
    if (err || (!v && why.err != -ENOENT)) {
        set_done_here(d, false, is_here); /* another host may own the job now */
        return true;
    }
    const char *id = v ? volume_task_job(v) : NULL;
    bool goes_on = id && strcmp(id, j->id) == 0 && volume_task_is_running(v);
    if (goes_on) {
        set_done_here(d, true, is_here);
        json_t *look = rebalance_progress(j->subject);
        json_t *members = json_pack("{sO? sI sI ss}", "look", look, "done",
                                    json_integer_value(json_object_get(look, "looked")), "total",
                                    json_integer_value(json_object_get(look, "expected")), "text",
                                    v->status == VOLUME_STARTED ? "" : "the volume is not started");
        json_decref(look);
        (void)cluster_job_update(j->id, members); /* the task, not the record, ends the job */
    } else {
        finish_as_task(j, v);
    }
    volume_free(v);
    return goes_on;
}

void
job_rebalance_run(const struct cluster_job *j)
{
    struct done_here d = {.job = j};
    bool is_here = false;

    while (cluster_job_goes_on() && look_at_task(&d, &is_here))
        sleep(CLUSTER_JOB_LOOK_S);
    set_done_here(&d, false, &is_here);
}
