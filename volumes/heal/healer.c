/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal/healer.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu/list.h>

#include "base/own-program.h"
#include "daemon/daemon.h"
#include "event/pump.h"
#include "event/timer.h"
#include "event/worker.h"
#include "log/log.h"
#include "volumes/heal/child-log.h"
#include "volumes/volumes.h"

#define HEALER_PROGRAM "kiln-heal"
enum {
    BACKOFF_FIRST_MS = 1000,
    BACKOFF_MAX_MS = 60000,
    LONG_LIFE_S = 60,
    END_S = 10, /* until a process that should end is killed */
    LINE_MAX_BYTES = 64 * 1024 * 1024
};

/* A volume of the process, or a rebalance. */
struct client_volume {
    struct cds_list_head link;
    char *name, *line; /* line: the message that gives it to the process */
};

/* A question that waits for its answer; lies on the asker's stack. */
struct asked {
    struct cds_list_head link;
    json_int_t id;
    json_t *answer; /* NULL: none yet */
    bool has_ended; /* the process ended */
};

struct bytes {
    char *at;
    size_t count, room;
};

/* `lock` guards all of this, except the log, which the pump's functions use one at a time. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static struct cds_list_head volumes = CDS_LIST_HEAD_INIT(volumes);
static struct cds_list_head questions = CDS_LIST_HEAD_INIT(questions);
static struct {
    uint16_t brick_port;
    enum healer_state state;
    bool is_starting; /* a thread is in pump_start() */
    bool is_posted, is_ended;
    bool is_closing; /* the process has had the end of its input, because no volume is left */
    struct pump *pump; /* owns a reference; NULL: no process runs */
    long pid;
    unsigned restarts, failures; /* failures: consecutive ones */
    uint64_t started_ns;
    char reason[128];
    json_int_t last_id;
    void (*notice)(const json_t *notice);
    struct bytes to_send, received; /* received: bytes of a line that is not whole */
    struct timer timer;             /* armed in the states WAITING and MISSING */
    struct worker_job job;
} healer;
static struct child_log child_log;

static void healer_start(void);

/* ---- bytes ----------------------------------------------------------------------------------- */

static int
bytes_add(struct bytes *b, const char *from, size_t count)
{
    if (b->count + count > b->room) {
        size_t room = 2 * (b->count + count) + 4096;
        char *at = room <= 2 * (size_t)LINE_MAX_BYTES ? realloc(b->at, room) : NULL;

        if (!at)
            return -ENOMEM;
        b->at = at;
        b->room = room;
    }
    memcpy(b->at + b->count, from, count);
    b->count += count;
    return 0;
}

/* Removes bytes from the beginning; frees the memory of an empty buffer. */
static void
bytes_drop(struct bytes *b, size_t count)
{
    b->count -= count;
    if (b->count) {
        memmove(b->at, b->at + count, b->count);
        return;
    }
    free(b->at);
    *b = (struct bytes){0};
}

/* ---- messages to the process ----------------------------------------------------------------- */

static bool
is_wanted_locked(void)
{
    return !healer.is_ended && !cds_list_empty(&volumes);
}

static int
queue_line_locked(const char *line)
{
    int err = bytes_add(&healer.to_send, line, strlen(line));

    err = err ? err : bytes_add(&healer.to_send, "\n", 1);
    if (!err && healer.pump)
        pump_input_ready(healer.pump);
    return err;
}

/* The pump's source. */
static ssize_t
healer_pump_source(void *arg, char *room, size_t size)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    size_t count = healer.to_send.count < size ? healer.to_send.count : size;
    if (count) {
        memcpy(room, healer.to_send.at, count);
        bytes_drop(&healer.to_send, count);
    }
    bool ends = !count && !is_wanted_locked();
    healer.is_closing |= ends;
    pthread_mutex_unlock(&lock);
    return count ? (ssize_t)count : ends ? 0 : -EAGAIN;
}

/* ---- messages of the process ----------------------------------------------------------------- */

static void
take_answer_locked(const char *line, size_t bytes)
{
    json_error_t error;
    json_t *answer = json_loadb(line, bytes, 0, &error);
    json_int_t id = json_integer_value(json_object_get(answer, "id"));
    struct asked *q;

    if (!answer) {
        log_event(LOG_ERROR, NULL, "healer-answer", "the self-heal daemon's answer cannot be read: %s",
                  error.text);
        return;
    }
    if (id == 0 && !json_object_get(answer, "pid") && healer.notice)
        healer.notice(answer);
    else if (id == 0)
        healer.pid = (long)json_integer_value(json_object_get(answer, "pid"));
    cds_list_for_each_entry (q, &questions, link) {
        if (id && q->id == id && !q->answer)
            q->answer = json_incref(answer);
    }
    json_decref(answer);
    pthread_cond_broadcast(&changed);
}

/* The pump's sink. */
static int
healer_pump_sink(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    pthread_mutex_lock(&lock);
    int err = bytes_add(&healer.received, bytes, count);
    char *end;
    size_t done = 0;
    while (!err && (end = memchr(healer.received.at + done, '\n', healer.received.count - done))) {
        size_t len = (size_t)(end - healer.received.at) - done;

        take_answer_locked(healer.received.at + done, len);
        done += len + 1;
    }
    if (done)
        bytes_drop(&healer.received, done);
    pthread_mutex_unlock(&lock);
    return err;
}

static int
log_errors(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    child_log_put(&child_log, bytes, count);
    return 0;
}

/* ---- its life -------------------------------------------------------------------------------- */

static void
healer_post_start_locked(void)
{
    if (healer.is_posted)
        return;
    healer.is_posted = true;
    worker_post_any(&healer.job);
}

static void
healer_timer_fired(struct timer *t)
{
    (void)t;
    pthread_mutex_lock(&lock);
    healer_post_start_locked();
    pthread_mutex_unlock(&lock);
}

static void
healer_job_run(struct worker_job *job)
{
    (void)job;
    healer_start();
}

static void
healer_restart_later_locked(enum healer_state state)
{
    if (!is_wanted_locked()) { /* healer_end() waits for no timer */
        healer.state = HEALER_NONE;
        return;
    }
    uint64_t ms = (uint64_t)BACKOFF_FIRST_MS << (healer.failures < 6 ? healer.failures : 6);

    healer.state = state;
    healer.failures++;
    timer_start(&healer.timer, state == HEALER_MISSING || ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms);
}

static void
healer_forget_process_locked(const char *reason)
{
    struct asked *q;

    healer.pump = NULL;
    healer.pid = 0;
    snprintf(healer.reason, sizeof healer.reason, "%s", reason);
    bytes_drop(&healer.to_send, healer.to_send.count);
    bytes_drop(&healer.received, healer.received.count);
    cds_list_for_each_entry (q, &questions, link)
        q->has_ended = true;
    if (clock_mono_ns() - healer.started_ns > LONG_LIFE_S * 1000000000ull)
        healer.failures = 0;
}

/* Runs on a worker after the process has ended. */
static void
healer_process_ended(struct pump *p, const struct pump_result *r, void *arg)
{
    char reason[128];

    (void)p;
    (void)arg;
    child_log_end(&child_log);
    if (r->error)
        snprintf(reason, sizeof reason, "%s", strerror(-r->error));
    else
        snprintf(reason, sizeof reason, r->signal ? "signal %d" : "exit status %d",
                 r->signal ? r->signal : r->exit_code);
    pthread_mutex_lock(&lock);
    while (healer.is_starting) /* pump_start() returns soon */
        pthread_cond_wait(&changed, &lock);
    struct pump *mine = healer.pump;
    healer_forget_process_locked(reason);
    bool is_wanted = is_wanted_locked(), is_by_us = r->error == -ECANCELED || healer.is_closing;
    if (is_by_us && is_wanted) {
        healer.state = HEALER_WAITING;
        healer_post_start_locked();
    } else {
        healer.restarts += is_wanted;
        healer_restart_later_locked(HEALER_WAITING);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (is_wanted && !is_by_us)
        log_event(LOG_WARNING, NULL, "healer-ended",
                  "the self-heal daemon ended (%s) and will be restarted", reason);
    if (mine)
        pump_unref(mine);
}

static const char *sandbox_mode = "on";

void
healer_set_sandbox(const char *mode)
{
    sandbox_mode = mode;
}

static int
healer_launch(struct pump **out)
{
    char path[PATH_MAX];
    char sandbox[32];
    char *const argv[] = {HEALER_PROGRAM, "--log-file=" DAEMON_LOG_DIR "/heal.log", sandbox, NULL};
    const struct pump_options o = {.path = path,
                                   .argv = argv,
                                   .done = healer_process_ended,
                                   .in = {.kind = PUMP_FN, .fn = healer_pump_source},
                                   .out = {.kind = PUMP_FN, .fn = healer_pump_sink},
                                   .err = {.kind = PUMP_FN, .fn = log_errors}};
    int err = own_program_beside(path, HEALER_PROGRAM);

    if (err)
        return err;
    snprintf(sandbox, sizeof sandbox, "--sandbox=%s", sandbox_mode);
    child_log_begin(&child_log, "self-heal daemon");
    daemon_make_log_dir(NULL); /* if this fails, the process logs the problem */
    return pump_start(&o, out);
}

/* Repeated failures are logged once. */
static void
log_no_start(int err)
{
    if (err == -ENOENT)
        log_event(LOG_ERROR, NULL, "healer-missing",
                  "no volume is healed: the program " HEALER_PROGRAM " is missing in the folder of kilnd");
    else
        log_event(LOG_ERROR, NULL, "healer-start", "no volume is healed: " HEALER_PROGRAM " cannot start: %s",
                  strerror(-err));
}

/* Queues the messages that give all volumes to a new process. */
static int
queue_volumes_locked(void)
{
    struct client_volume *v;
    int err = 0;

    bytes_drop(&healer.to_send, healer.to_send.count);
    cds_list_for_each_entry (v, &volumes, link)
        err = err ? err : queue_line_locked(v->line);
    return err;
}

static void
healer_started_locked(struct pump *p, int err)
{
    healer.is_starting = false;
    healer.pump = p;
    if (err) {
        snprintf(healer.reason, sizeof healer.reason, "%s", strerror(-err));
        healer_restart_later_locked(err == -ENOENT ? HEALER_MISSING : HEALER_WAITING);
    } else {
        healer.state = HEALER_RUNNING;
        healer.started_ns = clock_mono_ns();
        healer.is_closing = false;
        pump_input_ready(p); /* the volumes, or the end of the input */
    }
    pthread_cond_broadcast(&changed);
}

/* Runs on a worker or in an operation. */
static void
healer_start(void)
{
    struct pump *p = NULL;

    pthread_mutex_lock(&lock);
    healer.is_posted = false;
    bool may = is_wanted_locked() && !healer.pump && !healer.is_starting;
    bool is_first = healer.failures == 0;
    int err = 0;
    if (may) {
        healer.is_starting = true;
        err = queue_volumes_locked();
    } else {
        pthread_cond_broadcast(&changed);
    }
    pthread_mutex_unlock(&lock);
    if (!may)
        return;
    err = err ? err : healer_launch(&p);
    if (err && is_first)
        log_no_start(err);
    pthread_mutex_lock(&lock);
    healer_started_locked(p, err);
    pthread_mutex_unlock(&lock);
}

/* Ends the process if no volume wants it. When this returns, no code of it runs any more. */
static void
healer_end_unwanted(void)
{
    pthread_mutex_lock(&lock);
    bool is_wanted = is_wanted_locked();
    pthread_mutex_unlock(&lock);
    if (is_wanted)
        return;
    (void)timer_stop(&healer.timer);
    struct timespec end;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += END_S;
    pthread_mutex_lock(&lock);
    while (!is_wanted_locked() && (healer.is_starting || healer.pump || healer.is_posted)) {
        if (healer.pump && err)
            pump_cancel(healer.pump); /* a repeated cancel has no effect */
        else if (healer.pump)
            pump_input_ready(healer.pump);
        if (err)
            pthread_cond_wait(&changed, &lock);
        else
            err = pthread_cond_timedwait(&changed, &lock, &end);
    }
    if (!is_wanted_locked())
        healer.state = HEALER_NONE;
    pthread_mutex_unlock(&lock);
}

/* ---- volumes --------------------------------------------------------------------------------- */

static struct client_volume *
find_client_volume_locked(const char *name)
{
    struct client_volume *v;

    cds_list_for_each_entry (v, &volumes, link) {
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

void
healer_take_away(const char *name, const char *drop)
{
    pthread_mutex_lock(&lock);
    struct client_volume *v = find_client_volume_locked(name);
    if (v) {
        cds_list_del(&v->link);
        /* without memory for the message the process starts again, with the other volumes */
        if (healer.pump && (!drop || queue_line_locked(drop)))
            pump_cancel(healer.pump);
    }
    pthread_mutex_unlock(&lock);
    if (!v)
        return;
    free(v->name);
    free(v->line);
    free(v);
    healer_end_unwanted();
}

static void
volume_take_away(const char *name)
{
    json_t *message = json_pack("{ss ss}", "do", "drop", "name", name);
    char *line = json_dumps(message, JSON_COMPACT);

    json_decref(message);
    healer_take_away(name, line);
    free(line);
}

int
healer_give(const char *name, char *line)
{
    struct client_volume *fresh = calloc(1, sizeof *fresh);
    char *name_copy = strdup(name), *old = line;
    int err = fresh && name_copy ? 0 : -ENOMEM;

    pthread_mutex_lock(&lock);
    struct client_volume *v = find_client_volume_locked(name);
    if (!err && !v) {
        v = fresh;
        fresh = NULL;
        v->name = name_copy;
        name_copy = NULL;
        cds_list_add_tail(&v->link, &volumes);
    }
    bool is_news = !err && (!v->line || strcmp(v->line, line) != 0);
    if (is_news) {
        old = v->line;
        v->line = line;
    }
    if (is_news && healer.pump && queue_line_locked(line))
        pump_cancel(healer.pump); /* it starts again, with all volumes */
    bool starts = is_news && healer.state == HEALER_NONE && !healer.is_ended;
    pthread_mutex_unlock(&lock);
    free(old);
    free(name_copy);
    free(fresh);
    if (starts)
        healer_start();
    return err;
}

void
healer_follow(const char *volume)
{
    bool heals = false, is_wanted = false;
    json_t *sets = volumes_heal_sets(volume, healer.brick_port, &is_wanted, &heals);

    if (!is_wanted) {
        volume_take_away(volume);
        return;
    }
    json_t *message =
        sets ? json_pack("{ss ss sb so}", "do", "volume", "name", volume, "heals", heals, "sets", sets)
             : NULL;
    char *line = message ? json_dumps(message, JSON_COMPACT) : NULL;

    json_decref(message);
    if (!line || healer_give(volume, line))
        log_event(LOG_ERROR, NULL, "healer-memory", "volume %s is not healed: no memory", volume);
}

/* ---- questions ------------------------------------------------------------------------------- */

/* Waits for the answer, until `end` (monotonic time). */
static int
await_answer_locked(struct asked *q, const struct timespec *end)
{
    int err = 0;

    while (!q->answer && !q->has_ended && !err)
        err = pthread_cond_timedwait(&changed, &lock, end);
    return q->answer ? 0 : q->has_ended ? -EPIPE : -err;
}

/* Waits for a process; returns false at `end`, or if there will be none soon. */
static bool
await_process_locked(const struct timespec *end)
{
    int err = 0;

    while (is_wanted_locked() && !healer.pump && healer.state != HEALER_MISSING && !err) {
        if (!healer.is_starting)
            healer_post_start_locked();
        err = pthread_cond_timedwait(&changed, &lock, end);
    }
    return healer.pump != NULL;
}

int
healer_ask(json_t *question, unsigned timeout_s, json_t **out)
{
    struct asked q = {0};
    struct timespec end;

    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += timeout_s;
    pthread_mutex_lock(&lock);
    q.id = ++healer.last_id;
    json_object_set_new(question, "id", json_integer(q.id));
    char *line = json_dumps(question, JSON_COMPACT);
    int err = line ? 0 : -ENOMEM;
    if (!err && !await_process_locked(&end))
        err = -ENOENT;
    cds_list_add_tail(&q.link, &questions);
    err = err ? err : queue_line_locked(line);
    err = err ? err : await_answer_locked(&q, &end);
    cds_list_del(&q.link);
    pthread_mutex_unlock(&lock);
    free(line);
    json_decref(question);
    if (err)
        return err;
    err = (int)json_integer_value(json_object_get(q.answer, "error"));
    if (err)
        json_decref(q.answer);
    else
        *out = q.answer;
    return err;
}

void
healer_look(struct healer_look *out)
{
    pthread_mutex_lock(&lock);
    *out = (struct healer_look){.state = healer.state, .pid = healer.pid, .restarts = healer.restarts};
    memcpy(out->reason, healer.reason, sizeof out->reason);
    pthread_mutex_unlock(&lock);
}

void
healer_set_notice(void (*fn)(const json_t *notice))
{
    pthread_mutex_lock(&lock);
    healer.notice = fn;
    pthread_mutex_unlock(&lock);
}

void
healer_begin(uint16_t port)
{
    pthread_condattr_t attr;

    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attr);
    pthread_condattr_destroy(&attr);
    healer.brick_port = port;
    timer_init(&healer.timer, healer_timer_fired);
    healer.job.run = healer_job_run;
}

void
healer_stop(void)
{
    struct client_volume *v, *next;

    pthread_mutex_lock(&lock);
    healer.is_ended = true;
    pthread_mutex_unlock(&lock);
    healer_end_unwanted();
    cds_list_for_each_entry_safe (v, next, &volumes, link) {
        cds_list_del(&v->link);
        free(v->name);
        free(v->line);
        free(v);
    }
}
