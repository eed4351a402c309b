/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/mount.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>
#include <urcu/list.h>

#include "base/thread.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mount/client-volume.h"
#include "mount/mount-internal.h"
#include "mount/place.h"
#include "xlators/mount/fuse/fuse.h"

enum { THREAD_AGAIN_MS = 1000 };

pthread_mutex_t mounts_lock = PTHREAD_MUTEX_INITIALIZER;
struct cds_list_head mounts_list = CDS_LIST_HEAD_INIT(mounts_list);
static bool is_closed; /* the last mount has gone, and mounts_add() fails; under mounts_lock */
static bool is_leaving; /* mounts_leave() was called; under mounts_lock */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static pthread_cond_t thread_ended = PTHREAD_COND_INITIALIZER;
static unsigned threads;
static struct mounts_hooks hooks;

/* ---- the mount's thread ---------------------------------------------------------------------- */

static void *mount_thread_main(void *arg);

static void
count_threads(int change)
{
    pthread_mutex_lock(&threads_lock);
    threads += (unsigned)change;
    pthread_cond_broadcast(&thread_ended);
    pthread_mutex_unlock(&threads_lock);
}

static int
start_thread(struct mount *m)
{
    count_threads(1);
    int err = thread_start(mount_thread_main, m);
    if (err)
        count_threads(-1);
    return err;
}

int
mount_wake_and_unlock(struct mount *m, unsigned what)
{
    bool starts = what && !m->is_acting;
    int err = 0;

    m->to_do |= what;
    m->is_acting |= starts;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (starts && (err = start_thread(m))) {
        log_event(LOG_ERROR, NULL, "mount-no-thread", "no thread can be started for the mount at %s: %s",
                  m->mountpoint, strerror(-err));
        pthread_mutex_lock(&m->lock);
        m->is_acting = what == TO_START; /* keeps other threads off the mount, which mounts_add() frees */
        if (!m->is_acting) /* under the lock, because another thread may free the mount later */
            timer_start(&m->again, THREAD_AGAIN_MS);
        pthread_mutex_unlock(&m->lock);
    }
    return err;
}

static void
try_again(struct timer *t)
{
    struct mount *m = caa_container_of(t, struct mount, again);

    pthread_mutex_lock(&m->lock);
    (void)mount_wake_and_unlock(m, m->to_do);
}

/* ---- events on workers ----------------------------------------------------------------------- */

void
mount_volume_event(struct graph *g, const struct layer_event *e)
{
    struct mount *m = g->maker;
    enum child_event event = e->change;

    if (e->kind != EVENT_CHILD)
        return;
    pthread_mutex_lock(&m->lock);
    if (g != m->graph) { /* g is the next graph, or an old graph */
        m->is_next_up = g == m->next ? event == CHILD_UP : m->is_next_up;
        (void)mount_wake_and_unlock(m, 0);
        return;
    }
    bool is_end = event == CHILD_REFUSED && !m->has_news;

    m->is_refused |= is_end;
    m->has_news |= event != CHILD_CONNECTING;
    (void)mount_wake_and_unlock(m, is_end ? TO_LEAVE : 0);
}

static void
unmounted(struct graph *g)
{
    struct mount *m = g->maker;

    log_event(LOG_INFO, NULL, "mount-gone", "%s was unmounted", m->mountpoint);
    pthread_mutex_lock(&m->lock);
    (void)mount_wake_and_unlock(m, TO_LEAVE);
}

/* A file of an old graph was closed. */
static void
file_left(struct graph *g)
{
    struct mount *m = g->maker;

    pthread_mutex_lock(&m->lock);
    (void)mount_wake_and_unlock(m, TO_TIDY);
}

static void
text_came(void *arg, const char *text, size_t bytes)
{
    struct mount *m = arg;
    char *copy = malloc(bytes + 1);

    if (!copy) {
        log_event(LOG_ERROR, NULL, "mount-volfile-memory", "%s: no memory for a volfile", m->mountpoint);
        return;
    }
    memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    pthread_mutex_lock(&m->lock);
    free(m->text);
    m->text = copy;
    m->text_bytes = bytes;
    (void)mount_wake_and_unlock(m, m->graph ? TO_FOLLOW : 0);
}

static void
text_failed(void *arg, int err, const char *why)
{
    struct mount *m = arg;

    (void)err;
    pthread_mutex_lock(&m->lock);
    bool has_volume = m->graph != NULL;

    snprintf(m->failure, sizeof m->failure, "%s", why);
    (void)mount_wake_and_unlock(m, 0);
    if (has_volume)
        log_event(LOG_WARNING, NULL, "mount-volfile-kept", "%s keeps its volfile: %s", m->mountpoint, why);
}

static const struct spec_ops spec_ops = {.text = text_came, .failed = text_failed};

/* ---- coming up ------------------------------------------------------------------------------- */

static void
settle(struct mount *m, int status, const char *why)
{
    if (status)
        log_event(LOG_CRITICAL, NULL, "mount-failed", "%s: %s", m->mountpoint, why);
    if (m->settled)
        m->settled(status, why, m->arg);
    m->settled = NULL;
}

struct spec *
mount_ask_servers(struct mount *m, char *error, size_t size)
{
    const struct mount_options *o = &m->options;
    int err;
    struct spec *spec =
        spec_new(o->servers, o->server_count, (uint16_t)o->server_port, o->volume, &spec_ops, m, &err);

    if (!spec) {
        snprintf(error, size, "glusterd cannot be asked: %s", strerror(-err));
        return NULL;
    }
    pthread_mutex_lock(&m->lock);
    m->spec = spec;
    pthread_mutex_unlock(&m->lock);
    return spec;
}

/* Returns the first volfile. NULL: *error says why there is none. */
static char *
first_text(struct mount *m, size_t *len, char *error, size_t size)
{
    const struct mount_options *o = &m->options;

    if (o->volfile)
        return volfile_read_text(o->volfile, len, error, size);
    if (!mount_ask_servers(m, error, size))
        return NULL;
    pthread_mutex_lock(&m->lock);
    while (!m->text && (!*m->failure || o->is_restored) && !mount_must_leave(m))
        pthread_cond_wait(&m->changed, &m->lock);
    char *text = m->text;

    *len = m->text_bytes;
    m->text = NULL;
    snprintf(error, size, "%s", *m->failure ? m->failure : "told to end");
    pthread_mutex_unlock(&m->lock);
    return text;
}

void
mount_keep_text(struct mount *m, char *text, size_t bytes)
{
    free(m->current);
    m->current = text;
    m->current_bytes = bytes;
}

struct graph *
mount_make_graph(struct mount *m, char *error, size_t size)
{
    size_t len;
    char *text = m->saved ? mount_saved_text(m, &len, error, size) : first_text(m, &len, error, size);
    struct volfile *v = text ? volume_parse(&m->options, m->mountpoint, text, len, error, size) : NULL;

    mount_keep_text(m, text, len);
    if (v)
        m->digest = volfile_digest(v);
    struct graph *g = v ? mount_graph_new(v, error, size) : NULL;
    if (g) {
        client_volume_log_left_out(g, m->mountpoint);
        g->watch = mount_volume_event;
        g->maker = m;
    }
    return g;
}

void
mount_publish_graph(struct mount *m, struct graph *g)
{
    pthread_mutex_lock(&m->lock);
    m->graph = g;
    (void)mount_wake_and_unlock(m, m->text ? TO_FOLLOW : 0);
}

void
mount_end_graph(struct graph *g)
{
    graph_drain(g);
    graph_free(g);
}

/* Waits for the first news of the bricks, or until the mount is told to leave. Settles the mount with success
 * if the first news is no refusal. */
static void
await_news(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    while (!m->has_news && !mount_must_leave(m))
        pthread_cond_wait(&m->changed, &m->lock);
    bool is_there = m->has_news && !m->is_refused;
    pthread_mutex_unlock(&m->lock);
    if (is_there)
        settle(m, 0, NULL);
}

/* Tells whether the mount is still wanted: the dead mount of a killed process may have been unmounted by
 * hand. */
static bool
mount_is_wanted(struct mount *m, char *error, size_t size)
{
    if (!m->options.is_restored || place_is_dead(m->mountpoint))
        return true;
    snprintf(error, size, "the dead mount was unmounted meanwhile");
    return false;
}

static void
start_mount(struct mount *m)
{
    if (m->saved) {
        mount_take_over(m);
        return;
    }

    char error[1024] = "";
    bool is_wanted = mount_is_wanted(m, error, sizeof error);
    struct graph *g = is_wanted ? mount_make_graph(m, error, sizeof error) : NULL;
    int err = 0;

    if (g && !mount_is_wanted(m, error, sizeof error)) {
        mount_end_graph(g);
        g = NULL;
    }
    if (g) {
        mount_publish_graph(m, g);
        if (hooks.entering)
            hooks.entering(&m->options, m->mountpoint);
        err = place_clear(m->mountpoint);
        err = err ? err : graph_start(g);
    }
    if (g && !err) {
        await_news(m);
        return;
    }
    if (err)
        snprintf(error, sizeof error, "it could not be mounted: %s", strerror(-err));
    settle(m, EXIT_FAILURE, error);
    pthread_mutex_lock(&m->lock);
    m->to_do |= TO_LEAVE;
    pthread_mutex_unlock(&m->lock);
}

/* ---- going ----------------------------------------------------------------------------------- */

void
mount_free(struct mount *m)
{
    (void)timer_stop(&m->again);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m->text);
    free(m->current);
    mount_free_saved(m);
    mount_options_free(&m->options);
    free(m->mountpoint);
    free(m->words);
    free(m);
}

/* Drains the old graphs first, so that the calls in these graphs are answered and end. Then frees `g`, which
 * closes the files of the old graphs. */
static void
end_all(struct mount *m, struct graph *g)
{
    struct old_graph *o, *next;

    cds_list_for_each_entry (o, &m->old, link)
        graph_drain(o->graph);
    mount_end_graph(g);
    cds_list_for_each_entry_safe (o, next, &m->old, link) {
        graph_free(o->graph);
        free(o);
    }
    CDS_INIT_LIST_HEAD(&m->old);
}

/* Describes why the mount ends before users could use the mount point. */
static void
describe_early_end(struct mount *m, char *out, size_t size)
{
    struct reason why = {""};

    if (m->graph && m->is_refused)
        graph_refusal(m->graph, &why);
    if (m->is_refused)
        snprintf(out, size,
                 "a brick refuses this client: %s (look at auth.allow, auth.reject, auth.ssl-allow, "
                 "server.ssl and client.ssl of the volume, and at --subdir-mount)",
                 why.text);
    else
        snprintf(out, size, "unmounted before it could be used");
}

static void
end_mount(struct mount *m)
{
    struct spec *spec = m->spec;
    struct graph *g = m->graph;
    char refusal[800];

    describe_early_end(m, refusal, sizeof refusal);
    pthread_mutex_lock(&m->lock); /* no new pins from here on; end_all() waits for earlier pins */
    m->spec = NULL;
    m->graph = NULL;
    pthread_mutex_unlock(&m->lock);
    spec_free(spec);
    if (g) {
        fuse_unmount(g);
        end_all(m, g);
    }
    settle(m, m->settled ? EXIT_FAILURE : 0, refusal);
    log_event(LOG_INFO, NULL, "mount-left", "%s is no more", m->mountpoint);
}

/* Returns true if the mount was the last in the list. */
static bool
leave_list(struct mount *m)
{
    pthread_mutex_lock(&mounts_lock);
    cds_list_del(&m->link);
    is_closed = cds_list_empty(&mounts_list) && (is_leaving || !hooks.stays);
    bool is_last = is_closed;
    pthread_mutex_unlock(&mounts_lock);
    return is_last;
}

/* Returns the next work. 0: no work is left, and the thread must not touch the mount any more. */
static unsigned
next_to_do(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    unsigned what = m->to_do & TO_LEAVE ? TO_LEAVE : m->to_do & -m->to_do;

    m->to_do &= ~what;
    m->is_acting = what != 0;
    pthread_mutex_unlock(&m->lock);
    return what;
}

static void
mount_work_until_done(struct mount *m)
{
    for (;;) {
        switch (next_to_do(m)) {
        case TO_START:
            start_mount(m);
            break;
        case TO_FOLLOW:
            mount_follow(m);
            break;
        case TO_TIDY:
            mount_tidy(m);
            break;
        case TO_LEAVE:
            end_mount(m);
            if (hooks.leaving)
                hooks.leaving(m->mountpoint);
            bool is_last = leave_list(m);
            if (hooks.left)
                hooks.left(m->mountpoint, is_last);
            mount_free(m);
            if (is_last && hooks.empty)
                hooks.empty();
            return;
        default:
            return; /* another thread may free the mount from here on */
        }
    }
}

static void *
mount_thread_main(void *arg)
{
    pthread_setname_np(pthread_self(), "kiln-mount-op");
    rcu_register_thread();
    mount_work_until_done(arg);
    rcu_unregister_thread();
    count_threads(-1);
    return NULL;
}

/* ---- all mounts ------------------------------------------------------------------------------ */

void
mounts_begin(const struct mounts_hooks *wanted)
{
    hooks = *wanted;
    fuse_set_hooks(unmounted, file_left);
}

static int
enter_list(struct mount *m)
{
    const struct mount *other;
    int err = 0;

    pthread_mutex_lock(&mounts_lock);
    cds_list_for_each_entry(other, &mounts_list, link)
    {
        if (strcmp(other->mountpoint, m->mountpoint) == 0)
            err = -EEXIST;
    }
    if (is_closed)
        err = -ESHUTDOWN;
    if (!err)
        cds_list_add_tail(&m->link, &mounts_list);
    pthread_mutex_unlock(&mounts_lock);
    return err;
}

struct mount *
mount_new(const struct mount_options *o, const char *mountpoint)
{
    struct mount *m = calloc(1, sizeof *m);

    if (!m || !(m->mountpoint = strdup(mountpoint))) {
        free(m);
        return NULL;
    }
    m->options = *o;
    CDS_INIT_LIST_HEAD(&m->old);
    timer_init(&m->again, try_again);
    pthread_mutex_init(&m->lock, NULL);
    pthread_cond_init(&m->changed, NULL);
    return m;
}

int
mount_begin(struct mount *m)
{
    int err = enter_list(m);
    bool enters = !err;

    if (enters) {
        pthread_mutex_lock(&m->lock);
        err = mount_wake_and_unlock(m, TO_START);
    }
    if (err && enters && leave_list(m) && hooks.empty)
        hooks.empty();
    return err;
}

int
mounts_add(const struct mount_options *o, const char *mountpoint, char *words,
           void (*settled)(int status, const char *why, void *arg), void *arg)
{
    struct mount *m = mount_new(o, mountpoint);

    if (!m)
        return -ENOMEM;
    m->settled = settled;
    m->arg = arg;
    m->words = words;
    int err = mount_begin(m);

    if (!err)
        return 0;
    m->options = (struct mount_options){0};
    m->words = NULL;
    mount_free(m);
    return err;
}

bool
mounts_leave(void)
{
    struct mount *m;

    pthread_mutex_lock(&mounts_lock);
    is_leaving = true;
    is_closed |= cds_list_empty(&mounts_list);
    bool has_some = !is_closed;
    cds_list_for_each_entry(m, &mounts_list, link)
    {
        pthread_mutex_lock(&m->lock);
        (void)mount_wake_and_unlock(m, TO_LEAVE);
    }
    pthread_mutex_unlock(&mounts_lock);
    return has_some;
}

void
mounts_refetch(void)
{
    struct mount *m;

    pthread_mutex_lock(&mounts_lock);
    cds_list_for_each_entry(m, &mounts_list, link)
    {
        pthread_mutex_lock(&m->lock);
        if (m->spec)
            spec_refetch(m->spec);
        (void)mount_wake_and_unlock(m, m->graph && m->options.volfile ? TO_FOLLOW : 0);
    }
    pthread_mutex_unlock(&mounts_lock);
}

bool
mounts_each_graph(void (*fn)(struct graph *g, void *arg), void *arg)
{
    struct mount *m;

    pthread_mutex_lock(&mounts_lock);
    cds_list_for_each_entry(m, &mounts_list, link)
    {
        pthread_mutex_lock(&m->lock);
        struct graph *g = m->graph && graph_pin(m->graph) ? m->graph : NULL;

        pthread_mutex_unlock(&m->lock);
        if (!g)
            continue;
        fn(g, arg);
        graph_unpin(g);
    }
    pthread_mutex_unlock(&mounts_lock);
    return true;
}

void
mounts_end(void)
{
    pthread_mutex_lock(&threads_lock);
    while (threads)
        pthread_cond_wait(&thread_ended, &threads_lock);
    pthread_mutex_unlock(&threads_lock);
}
