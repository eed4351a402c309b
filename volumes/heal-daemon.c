/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal-daemon.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu/list.h>

#include "base/own-dir.h"
#include "event/pump.h"
#include "event/timer.h"
#include "event/worker.h"
#include "glusterfsd/daemon.h"
#include "log/log.h"
#include "volumes/child-log.h"
#include "volumes/volumes.h"

enum { BACKOFF_FIRST_MS = 1000, BACKOFF_MAX_MS = 60000, LONG_LIFE_S = 60, PATH_BYTES = 4352 };

struct heal_daemon {
    struct cds_list_head link;
    char *volume, *text;         /* text: the current volfile */
    struct heal_files files;
    enum heal_daemon_state state;
    bool is_wanted;
    bool is_starting;            /* a thread is in pump_start() */
    struct pump *pump;           /* owns a reference; NULL: no process runs */
    unsigned restarts, failures; /* failures: consecutive ones */
    uint64_t started_ns;
    char reason[128];
    struct timer timer;          /* armed in the states WAITING and MISSING */
    struct worker_job job;
    bool is_posted;
    unsigned texts;              /* number of volfiles so far */
    struct child_log log;        /* used by the pump while it runs */
};

/* `lock` guards the list and all fields of all daemons except the constant fields volume and files. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static struct cds_list_head daemons = CDS_LIST_HEAD_INIT(daemons);
static uint16_t brick_port; /* written before the first daemon starts */

static void daemon_start(struct heal_daemon *d);

static struct heal_daemon *
find_daemon_locked(const char *volume)
{
    struct heal_daemon *d;

    cds_list_for_each_entry(d, &daemons, link)
        if (strcmp(d->volume, volume) == 0)
            return d;
    return NULL;
}

/* ---- one that was left ----------------------------------------------------------------------- */

static long
read_pid(const char *path)
{
    FILE *f = fopen(path, "re");
    long pid = 0;

    if (f && fscanf(f, "%ld", &pid) != 1)
        pid = 0;
    if (f)
        fclose(f);
    return pid > 1 ? pid : 0;
}

/* Tells whether the process was started with this volfile. The pid may belong to another process by now. */
static bool
was_started_with(long pid, const char *file)
{
    char path[64], line[8192];

    snprintf(path, sizeof path, "/proc/%ld/cmdline", pid);
    FILE *f = fopen(path, "re");
    size_t n = f ? fread(line, 1, sizeof line - 1, f) : 0;
    if (f)
        fclose(f);
    line[n] = '\0';
    for (size_t at = 0; at < n; at += strlen(line + at) + 1) {
        if (strcmp(line + at, file) == 0)
            return true;
    }
    return false;
}

static void
end_left_over(const struct heal_daemon *d)
{
    long pid = read_pid(d->files.pid);
    int fd = pid ? pidfd_open((pid_t)pid, 0) : -1;

    /* The check runs after pidfd_open(), so it is about the process that the descriptor pins. */
    if (fd >= 0 && was_started_with(pid, d->files.volfile)) {
        log_event(LOG_INFO, NULL, "heal-daemon-left",
                  "volume %s: ending process %ld, which an earlier kilnd left", d->volume, pid);
        if (pidfd_send_signal(fd, SIGKILL, NULL, 0) < 0)
            log_event(LOG_WARNING, NULL, "heal-daemon-left-signal", "process %ld: %s", pid, strerror(errno));
    }
    if (fd >= 0)
        close(fd);
    (void)unlink(d->files.pid);
    (void)unlink(d->files.socket);
}

/* ---- its life -------------------------------------------------------------------------------- */

static void
post_start_locked(struct heal_daemon *d)
{
    if (d->is_posted)
        return;
    d->is_posted = true;
    worker_post_any(&d->job);
}

static void
restart_timer_fired(struct timer *t)
{
    struct heal_daemon *d = caa_container_of(t, struct heal_daemon, timer);

    pthread_mutex_lock(&lock);
    post_start_locked(d);
    pthread_mutex_unlock(&lock);
}

static void
run_start_job(struct worker_job *job)
{
    daemon_start(caa_container_of(job, struct heal_daemon, job));
}

static void
schedule_restart_locked(struct heal_daemon *d, enum heal_daemon_state state)
{
    if (!d->is_wanted) { /* daemon_end() waits for no timer */
        d->state = HEAL_NONE;
        return;
    }
    unsigned shift = d->failures < 6 ? d->failures : 6;
    uint64_t ms = (uint64_t)BACKOFF_FIRST_MS << shift;

    d->state = state;
    d->failures++;
    timer_start(&d->timer, state == HEAL_MISSING || ms > BACKOFF_MAX_MS ? BACKOFF_MAX_MS : ms);
}

static void
log_ended(const struct heal_daemon *d, const char *reason)
{
    pthread_mutex_lock(&lock);
    bool is_wanted = d->is_wanted;
    pthread_mutex_unlock(&lock);
    if (is_wanted)
        log_event(LOG_WARNING, NULL, "heal-daemon-ended",
                  "volume %s: the self-heal daemon ended (%s) and will be restarted", d->volume, reason);
}

static int
log_output(void *arg, const char *bytes, size_t count)
{
    struct heal_daemon *d = arg;

    child_log_put(&d->log, bytes, count);
    return 0;
}

/* Runs on a worker after the process has ended. The daemon is not freed before its pump is gone. */
static void
process_ended(struct pump *p, const struct pump_result *r, void *arg)
{
    struct heal_daemon *d = arg;
    bool is_by_us = r->error == -ECANCELED;
    char reason[128];

    child_log_end(&d->log);
    (void)p;
    snprintf(reason, sizeof reason, r->signal ? "signal %d" : "exit status %d",
             r->signal ? r->signal : r->exit_code);
    if (!is_by_us)
        log_ended(d, reason);
    pthread_mutex_lock(&lock);
    while (d->is_starting) /* pump_start() returns soon */
        pthread_cond_wait(&changed, &lock);
    struct pump *mine = d->pump;
    d->pump = NULL;
    memcpy(d->reason, reason, sizeof reason);
    if (clock_mono_ns() - d->started_ns > LONG_LIFE_S * 1000000000ull)
        d->failures = 0;
    if (!d->is_wanted) {
        d->state = HEAL_NONE;
    } else if (is_by_us) {
        d->state = HEAL_WAITING;
        post_start_locked(d);
    } else {
        d->restarts++;
        schedule_restart_locked(d, HEAL_WAITING);
    }
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (mine)
        pump_unref(mine);
}

/* Repeated failures are logged once. */
static bool
is_first_failure(const struct heal_daemon *d)
{
    pthread_mutex_lock(&lock);
    bool is_first = d->failures == 0;
    pthread_mutex_unlock(&lock);
    return is_first;
}

/* Returns 0, or -errno after logging the reason. */
static int
make_socket_dir(const struct heal_daemon *d)
{
    int dir = own_dir_make(VOLUMES_HEAL_SOCKET_DIR, 0700);

    if (dir < 0 && is_first_failure(d))
        log_event(LOG_ERROR, NULL, "heal-daemon-folder",
                  "volume %s is not healed: " VOLUMES_HEAL_SOCKET_DIR ": %s; expected: a folder of user %u",
                  d->volume, strerror(-dir), (unsigned)geteuid());
    if (dir >= 0)
        close(dir);
    return dir < 0 ? dir : 0;
}

static int
launch(struct heal_daemon *d, struct pump **out)
{
    char log[PATH_BYTES], uuid[64];
    char *const argv[] = {"glusterfs",
                          "-N",
                          "-f",
                          d->files.volfile,
                          "-l",
                          log,
                          "-p",
                          d->files.pid,
                          "-S",
                          d->files.socket,
                          "--process-name",
                          "glustershd",
                          "--client-pid=-6",
                          "--xlator-option",
                          uuid,
                          NULL};
    const struct pump_options o = {.path = HEAL_DAEMON_PROGRAM, .argv = argv, .done = process_ended, .arg = d,
                                   .out = {.kind = PUMP_FN, .fn = log_output},
                                   .err = {.kind = PUMP_SAME},
                                   .buffer_bytes = 4096};
    int err = make_socket_dir(d);

    if (err)
        return err;
    child_log_begin(&d->log, "volume %s: heal daemon", d->volume);
    daemon_make_log_dir(NULL); /* if this fails, the child process logs the problem */
    snprintf(log, sizeof log, DAEMON_LOG_DIR "/heal-%s.log", d->volume);
    /* The process needs the uuid of a cluster node; any constant will do, because there is one node. */
    snprintf(uuid, sizeof uuid, "*replicate*.node-uuid=%s", "6b696c6e-0000-4000-8000-000000000001");
    return pump_start(&o, out);
}

static void
log_not_started(const struct heal_daemon *d, int err)
{
    if (!is_first_failure(d))
        return;
    if (err == -ENOENT)
        log_event(LOG_ERROR, NULL, "heal-daemon-missing",
                  "volume %s is not healed: " HEAL_DAEMON_PROGRAM " is missing (install glusterfs-client)",
                  d->volume);
    else
        log_event(LOG_ERROR, NULL, "heal-daemon-start", "volume %s: the self-heal daemon cannot start: %s",
                  d->volume, strerror(-err));
}

/* Runs on a worker or in an operation. The daemon is not freed while is_starting is true. */
static void
daemon_start(struct heal_daemon *d)
{
    struct pump *p = NULL;

    pthread_mutex_lock(&lock);
    d->is_posted = false;
    bool may = d->is_wanted && !d->pump && !d->is_starting;
    d->is_starting |= may;
    unsigned text = d->texts;
    if (!may)
        pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
    if (!may)
        return;
    end_left_over(d);
    int err = launch(d, &p);
    if (err)
        log_not_started(d, err);

    pthread_mutex_lock(&lock);
    d->is_starting = false;
    d->pump = p;
    if (!err) {
        d->state = HEAL_RUNNING;
        d->started_ns = clock_mono_ns();
    } else {
        snprintf(d->reason, sizeof d->reason, "%s", strerror(-err));
        schedule_restart_locked(d, err == -ENOENT ? HEAL_MISSING : HEAL_WAITING);
    }
    if (p && (!d->is_wanted || d->texts != text)) /* the volfile changed meanwhile */
        pump_cancel(p);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Ends the process. When this returns, no code of the daemon runs any more. */
static void
daemon_end(struct heal_daemon *d)
{
    pthread_mutex_lock(&lock);
    d->is_wanted = false;
    pthread_mutex_unlock(&lock);
    (void)timer_stop(&d->timer);
    pthread_mutex_lock(&lock);
    while (d->is_starting || d->pump || d->is_posted) {
        if (d->pump)
            pump_cancel(d->pump); /* a repeated cancel has no effect */
        pthread_cond_wait(&changed, &lock);
    }
    d->state = HEAL_NONE;
    pthread_mutex_unlock(&lock);
}

/* ---- what the volume says -------------------------------------------------------------------- */

static struct heal_daemon *
new_daemon(const char *volume)
{
    struct heal_daemon *d = calloc(1, sizeof *d);

    if (!d || !(d->volume = strdup(volume))) {
        free(d);
        return NULL;
    }
    timer_init(&d->timer, restart_timer_fired);
    d->job.run = run_start_job;
    pthread_mutex_lock(&lock);
    cds_list_add_tail(&d->link, &daemons);
    pthread_mutex_unlock(&lock);
    return d;
}

static void
free_daemon(struct heal_daemon *d)
{
    daemon_end(d);
    (void)unlink(d->files.pid);
    (void)unlink(d->files.socket);
    pthread_mutex_lock(&lock);
    cds_list_del(&d->link);
    pthread_mutex_unlock(&lock);
    free(d->volume);
    free(d->text);
    free(d);
}

/* Consumes `text`. */
static void
daemon_set_volfile(struct heal_daemon *d, char *text)
{
    struct problem why;

    pthread_mutex_lock(&lock);
    bool is_news = !d->text || strcmp(d->text, text) != 0;
    pthread_mutex_unlock(&lock);
    if (!is_news) {
        free(text);
        return;
    }
    if (volumes_save_heal(d->volume, text, &d->files, &why)) {
        log_event(LOG_ERROR, NULL, "heal-daemon-volfile", "volume %s: %s", d->volume, why.wrong);
        free(text);
        return;
    }
    pthread_mutex_lock(&lock);
    char *old = d->text;
    d->text = text;
    d->texts++;
    d->is_wanted = true;
    struct pump *p = d->pump;
    if (p)
        pump_cancel(p); /* process_ended() starts it again with the new volfile */
    pthread_mutex_unlock(&lock);
    free(old);
    if (!p)
        daemon_start(d);
}

void
heal_daemons_follow(const char *volume)
{
    bool is_wanted;
    char *text = volumes_heal_volfile(volume, brick_port, &is_wanted);

    if (is_wanted && !text) {
        log_event(LOG_ERROR, NULL, "heal-daemon-memory", "volume %s: no memory for the self-heal daemon",
                  volume);
        return;
    }
    pthread_mutex_lock(&lock);
    struct heal_daemon *d = find_daemon_locked(volume);
    pthread_mutex_unlock(&lock);
    if (!is_wanted) {
        if (d)
            free_daemon(d);
        return;
    }
    if (!d && !(d = new_daemon(volume))) {
        log_event(LOG_ERROR, NULL, "heal-daemon-memory-new", "volume %s: no memory for the self-heal daemon",
                  volume);
        free(text);
        return;
    }
    daemon_set_volfile(d, text);
}

int
heal_daemon_wake(const char *volume, char socket[HEAL_DAEMON_SOCKET_SIZE])
{
    pthread_mutex_lock(&lock);
    struct heal_daemon *d = find_daemon_locked(volume);
    bool is_there = d && d->state != HEAL_MISSING;
    if (is_there && !d->pump && !d->is_starting)
        post_start_locked(d);
    if (is_there)
        memcpy(socket, d->files.socket, HEAL_DAEMON_SOCKET_SIZE);
    pthread_mutex_unlock(&lock);
    return is_there ? 0 : -ENOENT;
}

void
heal_daemon_look(const char *volume, struct heal_daemon_look *out)
{
    *out = (struct heal_daemon_look){.state = HEAL_NONE};
    char pid_file[PATH_BYTES] = "";

    pthread_mutex_lock(&lock);
    struct heal_daemon *d = find_daemon_locked(volume);
    if (d) {
        out->state = d->state;
        out->restarts = d->restarts;
        memcpy(out->reason, d->reason, sizeof out->reason);
        memcpy(pid_file, d->files.pid, sizeof pid_file);
    }
    pthread_mutex_unlock(&lock);
    if (out->state == HEAL_RUNNING)
        out->pid = read_pid(pid_file);
}

void
heal_daemons_begin(uint16_t port)
{
    brick_port = port;
}

void
heal_daemons_stop(void)
{
    struct heal_daemon *d, *next;

    cds_list_for_each_entry_safe(d, next, &daemons, link)
        free_daemon(d);
}
