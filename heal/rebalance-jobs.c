/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "heal/rebalance-jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "fs/inode.h"
#include "graph/graph.h"
#include "heal/channel.h"
#include "log/log.h"
#include "xlators/cluster/distribute/rebalance.h"

extern const struct xlator_type cluster_disperse_xlator, cluster_distribute_xlator, cluster_replicate_xlator,
    protocol_client_xlator;

enum { REBALANCE_INODES_KEPT = 1024, WIDTH_MAX = 64 };

struct rebalance_job {
    struct cds_list_head link;
    char *volume, *line; /* line: the message, to recognise the same job */
    json_int_t number;
    struct graph *graph;
    struct rebalancer *rebalancer;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list */
static struct cds_list_head jobs = CDS_LIST_HEAD_INIT(jobs);

static const char *const kind_words[] = {
    [REBALANCE_LAYOUTS] = "layouts", [REBALANCE_FILES] = "files", [REBALANCE_DRAIN] = "drain"};
static const char *const state_words[] = {[REBALANCE_WAITS] = "waiting",
                                          [REBALANCE_RUNS] = "running",
                                          [REBALANCE_COMPLETED] = "completed",
                                          [REBALANCE_STOPPED] = "stopped",
                                          [REBALANCE_FAILED] = "failed"};

/* ---- progress -------------------------------------------------------------------------------- */

static json_t *
describe_rebalance(const struct rebalance_look *l)
{
    return json_pack("{ss sI sI sI sI sI sI sI sI sI sI ss ss ss}", "state", state_words[l->state], "folders",
                     (json_int_t)l->folders, "looked", (json_int_t)l->looked, "moved", (json_int_t)l->moved,
                     "bytes", (json_int_t)l->bytes, "skipped", (json_int_t)l->skipped, "failed",
                     (json_int_t)l->failed, "expected", (json_int_t)l->expected, "started",
                     (json_int_t)l->started, "ended", (json_int_t)l->ended, "seconds", (json_int_t)l->seconds,
                     "current", l->current, "reason", l->reason, "waits_for", l->waits_for);
}

static json_t *
job_progress(const struct rebalance_job *job)
{
    struct rebalance_look look;

    rebalancer_look(job->rebalancer, &look);
    return describe_rebalance(&look);
}

static void
job_ended(void *arg)
{
    const struct rebalance_job *job = arg;
    json_t *look = job_progress(job);

    if (look)
        channel_answer(0, json_pack("{ss sI so}", "ended", job->volume, "job", job->number, "look", look));
}

/* Tells kilnd that a job could not begin. */
static void
tell_no_start(const char *volume, json_int_t number, const char *reason)
{
    struct rebalance_look look = {.state = REBALANCE_FAILED, .failed = 1};

    snprintf(look.reason, sizeof look.reason, "%s", reason);
    json_t *described = describe_rebalance(&look);
    log_event(LOG_ERROR, NULL, "rebalance-start", "volume %s is not rebalanced: %s", volume, reason);
    if (described)
        channel_answer(0, json_pack("{ss sI so}", "ended", volume, "job", number, "look", described));
}

/* ---- a job ----------------------------------------------------------------------------------- */

static const struct xlator_type *
rebalance_type_find(const char *name)
{
    static const struct xlator_type *const types[] = {&cluster_distribute_xlator, &cluster_disperse_xlator,
                                                      &cluster_replicate_xlator, &protocol_client_xlator};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    }
    return NULL;
}

/* Returns NULL with a text in `error`. */
static struct graph *
job_graph_new(const char *volume, const char *text, char *error, size_t error_size)
{
    struct volfile *file = volfile_parse(volume, text, strlen(text), error, error_size);
    struct graph *g = file ? graph_new(rebalance_type_find, file, NULL, error, error_size) : NULL;

    if (g && g->top->type != &cluster_distribute_xlator) {
        snprintf(error, error_size, "the volfile's top is no cluster/distribute");
        graph_free(g);
        return NULL;
    }
    if (g)
        inode_table_set_limit(g->inodes, REBALANCE_INODES_KEPT);
    return g;
}

/* After the drain no call comes any more, and the walk has ended. */
static void
job_end(struct rebalance_job *job)
{
    if (job->rebalancer)
        rebalancer_stop(job->rebalancer);
    if (job->graph)
        graph_drain(job->graph);
    if (job->rebalancer)
        rebalancer_free(job->rebalancer);
    graph_free(job->graph);
    free(job->volume);
    free(job->line);
    free(job);
}

static int
kind_of(const char *word)
{
    for (size_t i = 0; word && i < sizeof kind_words / sizeof kind_words[0]; i++) {
        if (strcmp(word, kind_words[i]) == 0)
            return (int)i;
    }
    return -1;
}

/* Returns NULL with a text in `error`. */
static struct rebalance_job *
job_new(const char *volume, const json_t *message, char *error, size_t error_size)
{
    const char *text = json_string_value(json_object_get(message, "volfile"));
    json_int_t width = json_integer_value(json_object_get(message, "width"));
    int kind = kind_of(json_string_value(json_object_get(message, "kind")));
    struct rebalance_job *job = text && kind >= 0 ? calloc(1, sizeof *job) : NULL;

    snprintf(error, error_size, text && kind >= 0 ? "no memory" : "the message of kilnd cannot be read");
    if (!job)
        return NULL;
    job->number = json_integer_value(json_object_get(message, "job"));
    job->volume = strdup(volume);
    job->line = json_dumps(message, JSON_COMPACT);
    job->graph = job->volume && job->line ? job_graph_new(volume, text, error, error_size) : NULL;
    if (job->graph)
        job->rebalancer = rebalancer_new(job->graph->top, (enum rebalance_kind)kind,
                                         width < 1           ? 1
                                         : width > WIDTH_MAX ? WIDTH_MAX
                                                             : (unsigned)width,
                                         job_ended, job);
    if (job->rebalancer && json_is_true(json_object_get(message, "gives-way")))
        rebalancer_give_way(job->rebalancer);
    int err = job->rebalancer ? graph_start(job->graph) : -EINVAL;
    if (job->rebalancer && err)
        snprintf(error, error_size, "%s", strerror(-err));
    if (!err)
        return job;
    job_end(job);
    return NULL;
}

/* ---- all jobs -------------------------------------------------------------------------------- */

static struct rebalance_job *
find_job_locked(const char *volume)
{
    struct rebalance_job *job;

    cds_list_for_each_entry (job, &jobs, link) {
        if (strcmp(job->volume, volume) == 0)
            return job;
    }
    return NULL;
}

static bool
is_known_job(const char *volume, const json_t *message)
{
    char *line = json_dumps(message, JSON_COMPACT);

    pthread_mutex_lock(&lock);
    const struct rebalance_job *job = find_job_locked(volume);
    bool is = line && job && strcmp(job->line, line) == 0;
    pthread_mutex_unlock(&lock);
    free(line);
    return is;
}

void
rebalance_jobs_take(const json_t *message)
{
    const char *volume = json_string_value(json_object_get(message, "name"));
    json_int_t number = json_integer_value(json_object_get(message, "job"));
    char error[1024];

    if (is_known_job(volume, message))
        return;
    rebalance_jobs_drop(volume);
    struct rebalance_job *job = job_new(volume, message, error, sizeof error);
    if (!job) {
        tell_no_start(volume, number, error);
        return;
    }
    pthread_mutex_lock(&lock);
    cds_list_add_tail(&job->link, &jobs);
    pthread_mutex_unlock(&lock);
    int err = rebalancer_start(job->rebalancer);
    if (err) {
        rebalance_jobs_drop(volume);
        tell_no_start(volume, number, strerror(-err));
    }
}

void
rebalance_jobs_drop(const char *volume)
{
    pthread_mutex_lock(&lock);
    struct rebalance_job *job = find_job_locked(volume);
    if (job)
        cds_list_del(&job->link);
    pthread_mutex_unlock(&lock);
    if (job)
        job_end(job);
}

void
rebalance_jobs_drop_all(void)
{
    struct rebalance_job *job, *next;
    CDS_LIST_HEAD(all);

    pthread_mutex_lock(&lock);
    cds_list_splice(&jobs, &all);
    CDS_INIT_LIST_HEAD(&jobs);
    pthread_mutex_unlock(&lock);
    cds_list_for_each_entry_safe (job, next, &all, link)
        job_end(job);
}

json_t *
rebalance_jobs_look(const char *volume)
{
    pthread_mutex_lock(&lock);
    const struct rebalance_job *job = find_job_locked(volume);
    json_t *look = job ? job_progress(job) : NULL;
    pthread_mutex_unlock(&lock);
    return look;
}
