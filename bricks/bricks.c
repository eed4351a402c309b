/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/bricks.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu.h>

#include "base/thread.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "log/log.h"

#define DETACH_AFTER_MS 30000
#define HANGS_AFTER_SEC 30
#define START_THREADS 8
#define ERROR_BYTES 1024

enum brick_state { BRICK_ATTACHING, BRICK_SERVING, BRICK_FAILED, BRICK_DETACHING };

/* All members are under `lock`, except that the operation that has the brick (is_busy) may read its own brick
 * without the lock. */
struct brick {
    struct cds_list_head link;
    char *name;
    enum brick_state state;
    struct graph *graph;  /* written by the operation alone. NULL: not built yet, or gone already */
    bool is_busy;         /* an operation has the brick */
    bool has_failed;      /* its storage; for good */
    unsigned waiting;     /* operations that wait for the brick */
    struct timer timer;   /* FAILED: due when the brick is detached */
    struct volfile_digest digest;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct cds_list_head bricks = CDS_LIST_HEAD_INIT(bricks); /* in the order of their attach */
static struct bricks_hooks hooks;
static unsigned jobs; /* posted and not done */
static struct cds_list_head turns = CDS_LIST_HEAD_INIT(turns); /* the jobs, in the order of their posting */
static bool is_ending;

static void time_is_up(struct timer *t);

/* ---- the list -------------------------------------------------------------------------------- */

static struct brick *
find_locked(const char *name)
{
    struct brick *b;

    cds_list_for_each_entry(b, &bricks, link)
        if (strcmp(b->name, name) == 0)
            return b;
    return NULL;
}

/* A new brick in the list, which the caller has. NULL: no memory. */
static struct brick *
new_locked(const char *name)
{
    struct brick *b = calloc(1, sizeof *b);

    if (!b || !(b->name = strdup(name))) {
        free(b);
        return NULL;
    }
    b->is_busy = true;
    timer_init(&b->timer, time_is_up);
    cds_list_add_tail(&b->link, &bricks);
    return b;
}

/* The brick of this name, which the caller has until release_locked(). NULL: no such brick. */
static struct brick *
claim_locked(const char *name)
{
    struct brick *b;

    while ((b = find_locked(name)) && b->is_busy) {
        b->waiting++;
        pthread_cond_wait(&changed, &lock);
        b->waiting--;
    }
    if (b)
        b->is_busy = true;
    return b;
}

static void
release_locked(struct brick *b)
{
    b->is_busy = false;
    pthread_cond_broadcast(&changed);
    if (b->graph || b->waiting)
        return;
    cds_list_del(&b->link);
    free(b->name);
    free(b);
}

static void
release(struct brick *b)
{
    pthread_mutex_lock(&lock);
    release_locked(b);
    pthread_mutex_unlock(&lock);
}

static bool
is_found_locked(const struct brick *b)
{
    return b->graph && (b->state == BRICK_SERVING || b->state == BRICK_FAILED);
}

struct graph *
bricks_find(const char *name)
{
    struct graph *g = NULL;

    pthread_mutex_lock(&lock);
    struct brick *b = find_locked(name);
    if (b && is_found_locked(b) &&
        graph_pin(b->graph)) /* the graph drains only after its state has changed under this mutex */
        g = b->graph;
    pthread_mutex_unlock(&lock);
    return g;
}

bool
bricks_has_failed(const char *name)
{
    pthread_mutex_lock(&lock);
    const struct brick *b = find_locked(name);
    bool has = b && b->has_failed;
    pthread_mutex_unlock(&lock);
    return has;
}

bool
bricks_is_changing(const char *name)
{
    pthread_mutex_lock(&lock);
    struct brick *b = find_locked(name);
    bool is_so = b && !is_found_locked(b);
    pthread_mutex_unlock(&lock);
    return is_so;
}

struct graph *
bricks_first(void)
{
    struct graph *g = NULL;
    struct brick *b;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(b, &bricks, link) {
        if (is_found_locked(b) && graph_pin(b->graph)) {
            g = b->graph;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return g;
}

static unsigned
count_locked(void)
{
    struct brick *b;
    unsigned n = 0;

    cds_list_for_each_entry(b, &bricks, link)
        n += is_found_locked(b);
    return n;
}

unsigned
bricks_count(void)
{
    pthread_mutex_lock(&lock);
    unsigned n = count_locked();
    pthread_mutex_unlock(&lock);
    return n;
}

void
bricks_states(struct bricks_states *out)
{
    unsigned counts[BRICK_DETACHING + 1] = {0};
    struct brick *b;

    pthread_mutex_lock(&lock);
    cds_list_for_each_entry(b, &bricks, link)
        counts[b->state]++;
    pthread_mutex_unlock(&lock);
    *out = (struct bricks_states){.attaching = counts[BRICK_ATTACHING],
                                  .serving = counts[BRICK_SERVING],
                                  .failed = counts[BRICK_FAILED],
                                  .detaching = counts[BRICK_DETACHING]};
}

bool
bricks_each(void (*fn)(struct graph *g, void *arg), void *arg)
{
    struct graph **pinned;
    struct brick *b;
    unsigned n = 0;

    pthread_mutex_lock(&lock);
    pinned = malloc((count_locked() + 1) * sizeof *pinned);
    cds_list_for_each_entry(b, &bricks, link) {
        if (pinned && is_found_locked(b) && graph_pin(b->graph))
            pinned[n++] = b->graph;
    }
    pthread_mutex_unlock(&lock);
    for (unsigned i = 0; i < n; i++) {
        fn(pinned[i], arg);
        graph_unpin(pinned[i]);
    }
    free(pinned);
    return pinned != NULL;
}

/* ---- storage that fails ---------------------------------------------------------------------- */

static void
start_countdown_locked(struct brick *b)
{
    b->state = BRICK_FAILED;
    timer_start(&b->timer, DETACH_AFTER_MS);
}

/* From a worker or the timer thread. Failed storage does not come back, because the disk may have lost
 * writes. */
static void
watch(struct graph *g, const struct layer_event *e)
{
    struct brick *b = g->maker;

    if (e->kind != EVENT_CHILD || e->change != CHILD_DOWN)
        return;
    pthread_mutex_lock(&lock);
    bool is_news = !b->has_failed;
    b->has_failed = true;
    if (is_news && b->state == BRICK_SERVING) /* a brick in its attach: when the brick serves */
        start_countdown_locked(b);
    pthread_mutex_unlock(&lock);
    if (is_news)
        log_event(LOG_CRITICAL, NULL, "brick-failed", "brick %s has failed and will be detached in %d s",
                  g->name, DETACH_AFTER_MS / 1000);
}

/* ---- operations ------------------------------------------------------------------------------ */

/* The caller has the brick. No client finds the brick any more; all its objects are freed. */
static void
brick_shut_down(struct brick *b)
{
    struct graph *g = b->graph;

    pthread_mutex_lock(&lock);
    b->state = BRICK_DETACHING;
    pthread_mutex_unlock(&lock);
    timer_stop(&b->timer);
    graph_drain(g);
    log_event(LOG_INFO, NULL, "brick-detached", "brick %s is detached", b->name);
    graph_free(g);
    pthread_mutex_lock(&lock);
    b->graph = NULL;
    b->has_failed = false;
    b->state = BRICK_ATTACHING; /* the next state, if the brick stays */
    pthread_mutex_unlock(&lock);
}

/* Builds a graph of the volfile and takes the volfile over. No other thread knows the graph yet. */
static struct graph *
build(struct brick *b, struct volfile *v, char *error, size_t size)
{
    struct graph *g = b->graph ? graph_new_beside(b->graph, v, error, size)
                               : graph_new(hooks.find_type, v, b->name, error, size);

    if (g) {
        g->maker = b;
        g->watch = watch;
    }
    return g;
}

/* Starts the graph: clients find the graph from now on. The brick has no other graph. On failure the graph is
 * freed. */
static int
publish(struct brick *b, struct graph *g, char *error, size_t size)
{
    int err = graph_start(g);

    if (err) {
        snprintf(error, size, "brick %s does not start: %s", b->name, strerror(-err));
        graph_free(g);
        pthread_mutex_lock(&lock);
        b->has_failed = false;
        pthread_mutex_unlock(&lock);
        return err;
    }
    pthread_mutex_lock(&lock);
    b->graph = g;
    b->state = BRICK_SERVING;
    if (b->has_failed)
        start_countdown_locked(b);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* Takes the volfile over. The serving graph goes only when all faults of the new graph (its folder, its
 * volume-id, its lists) have been looked for: until then both graphs exist, and the new graph has touched
 * nothing but the files that a brick's first start makes. */
static int
replace(struct brick *b, struct volfile *v, const struct volfile_digest *digest, char *error, size_t size)
{
    struct graph *g = build(b, v, error, size);

    if (!g)
        return -EINVAL;
    if (b->graph)
        brick_shut_down(b);
    b->digest = *digest;
    return publish(b, g, error, size);
}

/* Lets the caller have the brick of this name, which may serve, or a new brick. */
static int
claim_for_attach(const char *name, struct brick **out, char *error, size_t size)
{
    int err = 0;

    pthread_mutex_lock(&lock);
    struct brick *b = claim_locked(name);
    if (is_ending) {
        if (b)
            release_locked(b);
        err = -ESHUTDOWN;
    } else if (!b && !(b = new_locked(name))) {
        err = -ENOMEM;
    }
    pthread_mutex_unlock(&lock);
    if (err)
        snprintf(error, size, "%s", err == -ENOMEM ? "no memory" : "the process is ending");
    *out = b;
    return err;
}

static bool
serves(struct brick *b, const struct volfile_digest *digest)
{
    pthread_mutex_lock(&lock);
    bool is_so = b->graph && b->state == BRICK_SERVING && memcmp(&b->digest, digest, sizeof *digest) == 0;
    pthread_mutex_unlock(&lock);
    return is_so;
}

int
bricks_attach_volfile(struct volfile *v, const char *name, bool is_new, char *error, size_t error_size)
{
    const struct volfile_digest digest = volfile_digest(v);
    struct brick *b;
    int err = claim_for_attach(name ? name : graph_brick_name(v), &b, error, error_size);

    if (err) {
        volfile_free(v);
        return err;
    }
    if (b->graph && is_new) {
        snprintf(error, error_size, "brick %s is given twice", b->name);
        err = -EEXIST;
        volfile_free(v);
    } else if (serves(b, &digest)) {
        volfile_free(v);
    } else {
        err = replace(b, v, &digest, error, error_size);
    }
    release(b);
    return err;
}

static struct volfile *
read_volfile(const char *path, char *error, size_t size, int *err)
{
    struct volfile *v = volfile_read(path, error, size);

    *err = v ? 0 : -EINVAL;
    if (v && hooks.prepare && (*err = hooks.prepare(v, error, size))) {
        volfile_free(v);
        v = NULL;
    }
    return v;
}

int
bricks_attach(const char *volfile_path, const char *name, bool is_new, char *error, size_t error_size)
{
    char reason[ERROR_BYTES] = "";
    int err;
    struct volfile *v = read_volfile(volfile_path, error, error_size, &err);

    if (!v)
        return err;
    err = bricks_attach_volfile(v, name, is_new, reason, sizeof reason);
    if (err)
        snprintf(error, error_size, "%s: %s", volfile_path, reason);
    return err;
}

int
bricks_detach(const char *name)
{
    pthread_mutex_lock(&lock);
    struct brick *b = claim_locked(name);
    pthread_mutex_unlock(&lock);
    if (!b)
        return -ENOENT;
    bool is_there = b->graph != NULL;
    if (is_there)
        brick_shut_down(b);
    release(b);
    return is_there ? 0 : -ENOENT;
}

/* Takes the volfile over; `how` is graph_reconfigure or graph_follow. */
static int
change(const char *name, struct volfile *v, int (*how)(struct graph *, struct volfile *, char *, size_t),
       char *error, size_t error_size)
{
    const struct volfile_digest digest = volfile_digest(v);
    int err = 0;

    pthread_mutex_lock(&lock);
    struct brick *b = claim_locked(name);
    pthread_mutex_unlock(&lock);
    if (!b || !b->graph) {
        snprintf(error, error_size, "there is no brick %s", name);
        err = -ENOENT;
        volfile_free(v);
    } else if (serves(b, &digest)) {
        volfile_free(v);
    } else if ((err = how(b->graph, v, error, error_size)) >= 0) {
        pthread_mutex_lock(&lock);
        b->digest = digest;
        pthread_mutex_unlock(&lock);
    }
    if (b)
        release(b);
    return err;
}

int
bricks_reconfigure_volfile(const char *name, struct volfile *v, char *error, size_t error_size)
{
    return change(name, v, graph_reconfigure, error, error_size);
}

int
bricks_follow_volfile(const char *name, struct volfile *v, char *error, size_t error_size)
{
    return change(name, v, graph_follow, error, error_size);
}

static int
bricks_reconfigure(const char *name, const char *volfile_path, char *error, size_t error_size)
{
    int err;
    struct volfile *v = read_volfile(volfile_path, error, error_size, &err);

    return v ? bricks_reconfigure_volfile(name, v, error, error_size) : err;
}

/* ---- in threads of their own ----------------------------------------------------------------- */

struct job {
    struct cds_list_head turn; /* in `turns`, until the job is done */
    enum { JOB_ATTACH, JOB_DETACH, JOB_RECONFIGURE, JOB_FOLLOW, JOB_WORK, JOB_FAILED } kind;
    char *path, *name;       /* name NULL: the name in the volfile at `path` */
    struct volfile *volfile; /* in the path's place; NULL: none */
    bricks_done done;
    void *arg;
};

static void
job_free(struct job *j)
{
    volfile_free(j->volfile);
    free(j->path);
    free(j->name);
    free(j);
}

/* Detaches a brick half a minute after its failure, unless the brick has been detached, or attached anew,
 * meanwhile. */
static int
detach_failed(const char *name)
{
    pthread_mutex_lock(&lock);
    struct brick *b = claim_locked(name);
    bool is_failed = b && b->graph && b->state == BRICK_FAILED;
    pthread_mutex_unlock(&lock);
    if (is_failed && hooks.failed)
        hooks.failed(name);
    if (is_failed)
        brick_shut_down(b);
    pthread_mutex_lock(&lock);
    if (b)
        release_locked(b);
    bool is_last = is_failed && cds_list_empty(&bricks);
    pthread_mutex_unlock(&lock);
    if (is_last && hooks.none_left)
        hooks.none_left();
    return is_failed ? 0 : -ENOENT;
}

static struct volfile *
job_release_volfile(struct job *j)
{
    struct volfile *v = j->volfile;

    j->volfile = NULL;
    return v;
}

static void
run(struct job *j)
{
    char error[ERROR_BYTES] = "";
    int err = 0;

    switch (j->kind) {
    case JOB_ATTACH:
        err = j->volfile ? bricks_attach_volfile(job_release_volfile(j), j->name, false, error, sizeof error)
                         : bricks_attach(j->path, j->name, false, error, sizeof error);
        break;
    case JOB_DETACH:
        err = bricks_detach(j->name);
        break;
    case JOB_RECONFIGURE:
        err = j->volfile ? bricks_reconfigure_volfile(j->name, job_release_volfile(j), error, sizeof error)
                         : bricks_reconfigure(j->name, j->path, error, sizeof error);
        break;
    case JOB_FOLLOW:
        err = bricks_follow_volfile(j->name, job_release_volfile(j), error, sizeof error);
        break;
    case JOB_WORK:
        break;
    case JOB_FAILED:
        err = detach_failed(j->name);
        break;
    }
    if (j->done)
        j->done(err, error, j->arg);
}

static bool
is_turn_locked(const struct job *j)
{
    struct job *earlier;

    cds_list_for_each_entry(earlier, &turns, turn) {
        if (earlier == j)
            break;
        if (j->name && earlier->name && strcmp(j->name, earlier->name) == 0)
            return false;
    }
    return true;
}

/* Threads begin in any order; an ATTACH that was posted after a TERMINATE must not find the brick still
 * there. */
static void
await_turn(const struct job *j)
{
    pthread_mutex_lock(&lock);
    while (!is_turn_locked(j))
        pthread_cond_wait(&changed, &lock);
    pthread_mutex_unlock(&lock);
}

static bool
enter_job(struct job *j)
{
    pthread_mutex_lock(&lock);
    bool may = !is_ending;
    jobs += may;
    if (may)
        cds_list_add_tail(&j->turn, &turns);
    pthread_mutex_unlock(&lock);
    return may;
}

static void
job_end_turn(struct job *j)
{
    pthread_mutex_lock(&lock);
    jobs--;
    cds_list_del(&j->turn);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void *
job_thread(void *arg)
{
    struct job *j = arg;

    pthread_setname_np(pthread_self(), "kiln-brick");
    rcu_register_thread();
    await_turn(j);
    run(j);
    rcu_unregister_thread();
    job_end_turn(j);
    job_free(j);
    return NULL;
}

/* Takes the volfile over, unless NULL. */
static int
post(int kind, const char *path, struct volfile *v, const char *name, bricks_done done, void *arg)
{
    struct job *j = calloc(1, sizeof *j);

    if (!j) {
        volfile_free(v);
        return -ENOMEM;
    }
    if (v && !name)
        name = graph_brick_name(v);
    *j = (struct job){.kind = kind, .volfile = v, .done = done, .arg = arg};
    if ((path && !(j->path = strdup(path))) || (name && !(j->name = strdup(name)))) {
        job_free(j);
        return -ENOMEM;
    }
    int err = enter_job(j) ? 0 : -ESHUTDOWN;
    if (!err && (err = thread_start(job_thread, j)))
        job_end_turn(j);
    if (err)
        job_free(j);
    return err;
}

static const int job_kinds[] = {[BRICK_ATTACH] = JOB_ATTACH,
                                [BRICK_DETACH] = JOB_DETACH,
                                [BRICK_RECONFIGURE] = JOB_RECONFIGURE,
                                [BRICK_FOLLOW] = JOB_FOLLOW,
                                [BRICK_WORK] = JOB_WORK};

int
bricks_post(enum brick_op op, const char *volfile_path, const char *name, bricks_done done, void *arg)
{
    return post(job_kinds[op], volfile_path, NULL, name, done, arg);
}

int
bricks_post_volfile(enum brick_op op, struct volfile *v, const char *name, bricks_done done, void *arg)
{
    return post(job_kinds[op], NULL, v, name, done, arg);
}

static void
time_is_up(struct timer *t)
{
    struct brick *b = caa_container_of(t, struct brick, timer);
    /* brick_shut_down() waits for this timer before the brick can go. */
    int err = post(JOB_FAILED, NULL, NULL, b->name, NULL, NULL);

    if (!err || err == -ESHUTDOWN)
        return;
    log_event(LOG_ERROR, NULL, "brick-detach-thread", "brick %s: %s; trying again", b->name, strerror(-err));
    timer_start(t, DETACH_AFTER_MS);
}

/* ---- many at once ---------------------------------------------------------------------------- */

struct start {
    const char *const *paths, *const *names;
    unsigned count;
    atomic_uint next;
    pthread_mutex_t lock; /* guards the members below */
    unsigned failed_at;   /* the first brick that has failed; count: none */
    int err;
    char *error;
    size_t error_size;
};

static void
start_some(struct start *s)
{
    unsigned i;

    while ((i = atomic_fetch_add(&s->next, 1)) < s->count) {
        char error[ERROR_BYTES] = "";
        int err = bricks_attach(s->paths[i], s->names ? s->names[i] : NULL, true, error, sizeof error);

        if (!err)
            continue;
        pthread_mutex_lock(&s->lock);
        if (i < s->failed_at) {
            s->failed_at = i;
            s->err = err;
            snprintf(s->error, s->error_size, "%s", error);
        }
        pthread_mutex_unlock(&s->lock);
        atomic_store(&s->next, s->count); /* no further ones */
    }
}

static void *
start_thread_run(void *arg)
{
    rcu_register_thread();
    start_some(arg);
    rcu_unregister_thread();
    return NULL;
}

int
bricks_attach_all(const char *const *volfile_paths, const char *const *names, unsigned count, char *error,
                  size_t error_size)
{
    struct start s = {.paths = volfile_paths,
                      .names = names,
                      .count = count,
                      .failed_at = count,
                      .error = error,
                      .error_size = error_size,
                      .lock = PTHREAD_MUTEX_INITIALIZER};
    pthread_t threads[START_THREADS];
    unsigned n = 0;

    while (n < START_THREADS && n + 1 < count && pthread_create(&threads[n], NULL, start_thread_run, &s) == 0)
        n++;
    start_some(&s); /* also without any thread */
    for (unsigned i = 0; i < n; i++)
        pthread_join(threads[i], NULL);
    return s.err;
}

int
bricks_check_volfile(struct volfile *v, char *error, size_t error_size)
{
    return graph_check(hooks.find_type, v, true, error, error_size);
}

/* ---- begin and end --------------------------------------------------------------------------- */

void
bricks_begin(const struct bricks_hooks *wanted)
{
    pthread_mutex_lock(&lock);
    hooks = *wanted;
    is_ending = false;
    pthread_mutex_unlock(&lock);
}

bool
bricks_end(void)
{
    struct timespec until;
    struct brick *b;
    int err = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += HANGS_AFTER_SEC;
    pthread_mutex_lock(&lock);
    is_ending = true;
    while (jobs && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&changed, &lock, &until);
    bool is_idle = jobs == 0;
    cds_list_for_each_entry(b, &bricks, link) {
        if (!is_idle && b->is_busy)
            log_event(LOG_CRITICAL, NULL, "brick-hangs", "brick %s: calls to its disk do not return",
                      b->name);
    }
    pthread_mutex_unlock(&lock);
    return is_idle;
}

void
bricks_detach_all(void)
{
    pthread_mutex_lock(&lock);
    while (!cds_list_empty(&bricks)) {
        struct brick *b = cds_list_first_entry(&bricks, struct brick, link);

        if (b->is_busy) {
            pthread_cond_wait(&changed, &lock); /* its operation ends some time; the brick may be gone then */
            continue;
        }
        b->is_busy = true;
        pthread_mutex_unlock(&lock);
        if (b->graph)
            brick_shut_down(b);
        pthread_mutex_lock(&lock);
        release_locked(b);
    }
    pthread_mutex_unlock(&lock);
}
