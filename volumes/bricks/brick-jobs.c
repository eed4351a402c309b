/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-jobs.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bricks/bricks.h"
#include "graph/volfile.h"
#include "log/log.h"
#include "volumes/brick-host.h"
#include "volumes/bricks/brick-place.h"
#include "volumes/volfile-text.h"

enum { AT_ONCE = 16, ERROR_BYTES = 8192 };

/* Jobs whose end a caller waits for. */
struct batch {
    pthread_mutex_t lock; /* guards the count, and each result until the job has ended */
    pthread_cond_t done;
    unsigned under_way;
};
#define BATCH_INIT {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, 0}

struct brick_job {
    struct batch *batch;
    int err;
    char *error; /* owned; NULL: no error, or no memory for the text */
};

static brick_place_check_fn check_place;

void
brick_jobs_check_places(brick_place_check_fn check)
{
    check_place = check;
}

/* ---- one job --------------------------------------------------------------------------------- */

static struct volfile *
volfile_of(const struct volume *v, unsigned brick, brick_prepare prepare, char *error, size_t size)
{
    char name[VOLUME_NAME_MAX + 32];
    char *text = volfile_text_brick(v, brick, brick_place_shared(v, brick));

    snprintf(name, sizeof name, "volume %s", v->name);
    struct volfile *file = text ? volfile_parse(name, text, strlen(text), error, size) : NULL;
    if (!text)
        snprintf(error, size, "no memory");
    free(text);
    if (file && prepare && prepare(file, error, size)) {
        volfile_free(file);
        return NULL;
    }
    return file;
}

static void
finish_job(int err, const char *error, void *arg)
{
    struct brick_job *j = arg;
    struct batch *b = j->batch;
    char *copy = err ? strdup(*error ? error : strerror(-err)) : NULL;

    pthread_mutex_lock(&b->lock);
    j->err = err;
    j->error = copy;
    b->under_way--;
    pthread_cond_signal(&b->done);
    pthread_mutex_unlock(&b->lock);
}

static void
wait_until_at_most(struct batch *b, unsigned count)
{
    pthread_mutex_lock(&b->lock);
    while (b->under_way > count)
        pthread_cond_wait(&b->done, &b->lock);
    pthread_mutex_unlock(&b->lock);
}

static void
begin_job(struct brick_job *j, struct batch *b, enum brick_op op, const struct volume *v, unsigned brick,
          brick_prepare prepare)
{
    const char *path = v->bricks[brick].path;
    char error[ERROR_BYTES] = "";
    struct volfile *file = op == BRICK_DETACH ? NULL : volfile_of(v, brick, prepare, error, sizeof error);
    int err = op == BRICK_DETACH || file ? 0 : -EINVAL;

    if (op == BRICK_ATTACH && file && check_place && (err = check_place(v, brick, error, sizeof error))) {
        volfile_free(file);
        file = NULL;
    }
    j->batch = b;
    wait_until_at_most(b, AT_ONCE - 1);
    pthread_mutex_lock(&b->lock);
    b->under_way++;
    pthread_mutex_unlock(&b->lock);
    if (!err)
        err = file ? bricks_post_volfile(op, file, NULL, finish_job, j)
                   : bricks_post(op, NULL, path, finish_job, j);
    if (err)
        finish_job(err, error, j);
}

/* ---- all of a volume's ----------------------------------------------------------------------- */

static void
jobs_free(struct brick_job *jobs, unsigned count)
{
    for (unsigned i = 0; i < count && jobs; i++)
        free(jobs[i].error);
    free(jobs);
}

/* Runs the operation on all bricks, or on the bricks for which `only` is true. Returns the results, to be
 * released with jobs_free(), or NULL if there was no memory; then nothing has started. */
static struct brick_job *
run_jobs(enum brick_op op, const struct volume *v, const bool *only, brick_prepare prepare)
{
    struct batch b = BATCH_INIT;
    struct brick_job *jobs = calloc(v->brick_count, sizeof *jobs);

    for (unsigned i = 0; i < v->brick_count && jobs; i++) {
        if ((!only || only[i]) && brick_host_is_here(&v->bricks[i]))
            begin_job(&jobs[i], &b, op, v, i, prepare);
    }
    wait_until_at_most(&b, 0);
    return jobs;
}

/* Puts all failures into *why. Returns the error of the first, or 0 if no job failed. */
static int
first_failure(const struct volume *v, const struct brick_job *jobs, int allowed, struct problem *why)
{
    int err = 0;

    for (unsigned i = 0; i < v->brick_count; i++) {
        if (!jobs[i].err || jobs[i].err == allowed)
            continue;
        err = err ? err : problem_set(why, jobs[i].err, "%s", "");
        problem_also(why, "brick %s: %s", v->bricks[i].path,
                     jobs[i].error ? jobs[i].error : strerror(-jobs[i].err));
    }
    return err;
}

int
brick_jobs_check(const struct volume *v, brick_prepare prepare, struct problem *why)
{
    char error[ERROR_BYTES] = "";

    for (unsigned i = 0; i < v->brick_count; i++) {
        struct volfile *file = volfile_of(v, i, prepare, error, sizeof error);
        int err = file ? bricks_check_volfile(file, error, sizeof error) : -EINVAL;

        volfile_free(file);
        if (!err)
            continue;
        problem_set(why, err, "brick %s: %s", v->bricks[i].path, error);
        if (err == -ENOENT && strstr(error, "TLS: "))
            problem_type(why, "kiln tls init   # or kiln tls cert, where another host has the authority");
        return err;
    }
    return 0;
}

int
brick_jobs_attach(const struct volume *v, const bool *only, brick_prepare prepare, bool is_forced,
                  struct problem *why)
{
    struct brick_job *jobs = run_jobs(BRICK_ATTACH, v, only, prepare);

    if (!jobs)
        return problem_no_memory(why);
    int err = first_failure(v, jobs, 0, why);
    jobs_free(jobs, v->brick_count);
    if (err && !is_forced)
        brick_jobs_detach(v, only);
    return err;
}

void
brick_jobs_attach_all(const struct volume *const *volumes, unsigned count, brick_prepare prepare)
{
    struct batch b = BATCH_INIT;
    struct brick_job **jobs = calloc(count + 1, sizeof *jobs);

    for (unsigned i = 0; i < count && jobs; i++) {
        jobs[i] = calloc(volumes[i]->brick_count, sizeof **jobs);
        if (!jobs[i])
            log_event(LOG_CRITICAL, NULL, "volume-attach-memory", "volume %s: no memory to start it",
                      volumes[i]->name);
        for (unsigned k = 0; k < volumes[i]->brick_count && jobs[i]; k++) {
            if (brick_host_is_here(&volumes[i]->bricks[k]))
                begin_job(&jobs[i][k], &b, BRICK_ATTACH, volumes[i], k, prepare);
        }
    }
    wait_until_at_most(&b, 0);
    for (unsigned i = 0; i < count && jobs; i++) {
        for (unsigned k = 0; k < volumes[i]->brick_count && jobs[i]; k++) {
            if (jobs[i][k].err)
                log_event(LOG_ERROR, NULL, "volume-brick-offline", "volume %s: brick %s does not start: %s",
                          volumes[i]->name, volumes[i]->bricks[k].path,
                          jobs[i][k].error ? jobs[i][k].error : strerror(-jobs[i][k].err));
        }
        jobs_free(jobs[i], jobs[i] ? volumes[i]->brick_count : 0);
    }
    if (!jobs)
        log_event(LOG_CRITICAL, NULL, "volumes-jobs-memory", "no memory to start the volumes");
    free(jobs);
}

void
brick_jobs_detach(const struct volume *v, const bool *only)
{
    struct problem why;
    struct brick_job *jobs = run_jobs(BRICK_DETACH, v, only, NULL);

    /* -ENOENT is no error: the brick never attached, or has failed already. */
    if (!jobs)
        log_event(LOG_CRITICAL, NULL, "volume-detach-memory", "volume %s: no memory to stop its bricks",
                  v->name);
    else if (first_failure(v, jobs, -ENOENT, &why))
        log_event(LOG_ERROR, NULL, "volume-brick-detach", "a brick of volume %s could not be stopped: %s",
                  v->name, why.wrong);
    jobs_free(jobs, v->brick_count);
}

int
brick_jobs_reconfigure(const struct volume *fresh, const struct volume *old, brick_prepare prepare,
                       struct problem *why)
{
    struct brick_job *jobs = run_jobs(BRICK_RECONFIGURE, fresh, NULL, prepare);

    if (!jobs)
        return problem_no_memory(why);
    int err = first_failure(fresh, jobs, -ENOENT, why);
    jobs_free(jobs, fresh->brick_count);
    if (!err)
        return 0;
    brick_jobs_revert(old, prepare);
    problem_expected(why,
                     "an option that can change while the volume is started, or a volume that is stopped");
    problem_type(why, "kiln volume stop %s", old->name);
    return err;
}

void
brick_jobs_revert(const struct volume *old, brick_prepare prepare)
{
    struct problem why;
    struct brick_job *jobs = run_jobs(BRICK_RECONFIGURE, old, NULL, prepare);

    if (!jobs)
        log_event(LOG_CRITICAL, NULL, "volume-revert-memory",
                  "volume %s: no memory to restore its old options", old->name);
    else if (first_failure(old, jobs, -ENOENT, &why))
        log_event(LOG_CRITICAL, NULL, "volume-revert", "volume %s: the old options could not be restored: %s",
                  old->name, why.wrong);
    jobs_free(jobs, old->brick_count);
}
