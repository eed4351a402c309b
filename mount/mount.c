/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/mount.h"

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <time.h>
#include <urcu.h>
#include <urcu/list.h>

#include "base/parcel.h"
#include "base/thread.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mount/client-volume.h"
#include "mount/place.h"
#include "mount/shared.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/protocol/client/saved.h"

enum { NEXT_TELL_S = 10, THREAD_AGAIN_MS = 1000, BRICKS_MS = 10000, LOOK_MS = 1 };
enum { OPTIONS_BYTES_MAX = 65536 };
/* Work for a mount's thread. The thread takes the lowest bit first, but TO_LEAVE before all other bits,
 * because TO_LEAVE ends the mount. */
enum { TO_START = 1, TO_FOLLOW = 2, TO_LEAVE = 4, TO_TIDY = 8 };

struct mount {
    struct cds_list_head link; /* in `mounts`, under list_lock */
    struct mount_options options;
    char *mountpoint, *words;
    /* fields of the mount's thread: */
    void (*settled)(int status, const char *why, void *arg); /* NULL: not wanted, or called already */
    void *arg;
    struct volfile_digest digest; /* of the newest volfile that the graph has taken over */
    struct cds_list_head old;     /* former graphs with open files */
    struct timer again;           /* armed while there is work, and no thread could be started */

    pthread_mutex_t
        lock; /* guards the fields below; the holder calls graph_pin() and spec_refetch() only */
    pthread_cond_t changed;
    /* the mount's thread alone writes the next two fields, and reads both without the lock */
    struct graph *graph;
    struct spec *spec; /* NULL: the volfile comes from a file */
    unsigned to_do;
    bool is_acting; /* the mount has a thread */
    bool has_news;  /* an event of the bricks other than CHILD_CONNECTING has come */
    bool is_refused;
    struct graph *next; /* graph that will replace `graph`; NULL: none */
    bool is_next_up;    /* the bricks of `next` are connected */
    char *text; /* the newest volfile, not parsed yet; NULL: none */
    size_t text_bytes;
    char failure[1024]; /* reason of the last failure to get a volfile */
    char *current;      /* the volfile of `graph`; of the mount's thread */
    size_t current_bytes;
    struct parcel *saved; /* of an earlier program, until the mount serves; NULL: none */
};

static pthread_mutex_t list_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before a mount's lock */
static struct cds_list_head mounts = CDS_LIST_HEAD_INIT(mounts);
static bool is_closed; /* the last mount has gone, and mounts_add() fails; under list_lock */
static bool is_leaving; /* mounts_leave() was called; under list_lock */
static pthread_mutex_t threads_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf */
static pthread_cond_t thread_ended = PTHREAD_COND_INITIALIZER;
static unsigned threads;
static struct mounts_hooks hooks;
static atomic_uint restoring, restored_well, restored_badly; /* numbers of mounts of an earlier program */
static void (*tell_restored)(unsigned served, unsigned failed);

/* ---- the mount's thread ---------------------------------------------------------------------- */

static void *act(void *arg);

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
    int err = thread_start(act, m);
    if (err)
        count_threads(-1);
    return err;
}

/* Adds work, and wakes the mount's thread, or starts a thread if the mount has none. With `what` 0 only wakes
 * the thread. Any thread; `lock` is held, and let go. If no thread can be started, a timer tries again until
 * a thread runs. Only for TO_START mounts_add() returns the error instead. */
static int
wake_and_unlock(struct mount *m, unsigned what)
{
    bool starts = what && !m->is_acting;
    int err = 0;

    m->to_do |= what;
    m->is_acting |= starts;
    pthread_cond_broadcast(&m->changed);
    pthread_mutex_unlock(&m->lock);
    if (starts && (err = start_thread(m))) {
        log_event(LOG_ERROR, NULL, "mount-no-thread", "%s: %s", m->mountpoint, strerror(-err));
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
    (void)wake_and_unlock(m, m->to_do);
}

/* ---- events on workers ----------------------------------------------------------------------- */

static void
volume_event(struct graph *g, const struct layer_event *e)
{
    struct mount *m = g->maker;
    enum child_event event = e->change;

    if (e->kind != EVENT_CHILD)
        return;
    pthread_mutex_lock(&m->lock);
    if (g != m->graph) { /* g is the next graph, or an old graph */
        m->is_next_up = g == m->next ? event == CHILD_UP : m->is_next_up;
        (void)wake_and_unlock(m, 0);
        return;
    }
    bool is_end = event == CHILD_REFUSED && !m->has_news;

    m->is_refused |= is_end;
    m->has_news |= event != CHILD_CONNECTING;
    (void)wake_and_unlock(m, is_end ? TO_LEAVE : 0);
}

static void
unmounted(struct graph *g)
{
    struct mount *m = g->maker;

    log_event(LOG_INFO, NULL, "mount-gone", "%s was unmounted", m->mountpoint);
    pthread_mutex_lock(&m->lock);
    (void)wake_and_unlock(m, TO_LEAVE);
}

/* A file of an old graph was closed. */
static void
file_left(struct graph *g)
{
    struct mount *m = g->maker;

    pthread_mutex_lock(&m->lock);
    (void)wake_and_unlock(m, TO_TIDY);
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
    (void)wake_and_unlock(m, m->graph ? TO_FOLLOW : 0);
}

static void
text_failed(void *arg, int err, const char *why)
{
    struct mount *m = arg;

    (void)err;
    pthread_mutex_lock(&m->lock);
    bool has_volume = m->graph != NULL;

    snprintf(m->failure, sizeof m->failure, "%s", why);
    (void)wake_and_unlock(m, 0);
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

static bool
is_told_to_leave(struct mount *m)
{
    return m->to_do & TO_LEAVE;
}

/* NULL with *error: the servers cannot be asked. */
static struct spec *
start_spec(struct mount *m, char *error, size_t size)
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

/* Returns the volfile of the earlier program's graph. The servers are asked meanwhile; if they have a newer
 * one, the mount follows. */
static char *
saved_text(struct mount *m, size_t *len, char *error, size_t size)
{
    const void *bytes = parcel_get_bytes(m->saved, len);
    char *text = m->saved->is_broken ? NULL : malloc(*len + 1);

    if (!text) {
        snprintf(error, size, "the earlier program's volfile is unreadable, or there is no memory");
        return NULL;
    }
    memcpy(text, bytes, *len);
    text[*len] = '\0';
    if (m->options.volfile || start_spec(m, error, size))
        return text;
    free(text);
    return NULL;
}

/* Returns the first volfile. NULL: *error says why there is none. */
static char *
first_text(struct mount *m, size_t *len, char *error, size_t size)
{
    const struct mount_options *o = &m->options;

    if (o->volfile)
        return volfile_read_text(o->volfile, len, error, size);
    if (!start_spec(m, error, size))
        return NULL;
    pthread_mutex_lock(&m->lock);
    while (!m->text && (!*m->failure || o->is_restored) && !is_told_to_leave(m))
        pthread_cond_wait(&m->changed, &m->lock);
    char *text = m->text;

    *len = m->text_bytes;
    m->text = NULL;
    snprintf(error, size, "%s", *m->failure ? m->failure : "told to end");
    pthread_mutex_unlock(&m->lock);
    return text;
}

/* Keeps the text of the graph's volfile for a newer program. Takes the text over. */
static void
keep_text(struct mount *m, char *text, size_t bytes)
{
    free(m->current);
    m->current = text;
    m->current_bytes = bytes;
}

static struct graph *
make_graph(struct mount *m, char *error, size_t size)
{
    size_t len;
    char *text = m->saved ? saved_text(m, &len, error, size) : first_text(m, &len, error, size);
    struct volfile *v = text ? volume_parse(&m->options, m->mountpoint, text, len, error, size) : NULL;

    keep_text(m, text, len);
    if (v)
        m->digest = volfile_digest(v);
    struct graph *g = v ? mount_graph_new(v, error, size) : NULL;
    if (g) {
        client_volume_log_left_out(g, m->mountpoint);
        g->watch = volume_event;
        g->maker = m;
    }
    return g;
}

/* Sets the mount's first graph. The thread then follows a volfile that has come since the first volfile. */
static void
publish_graph(struct mount *m, struct graph *g)
{
    pthread_mutex_lock(&m->lock);
    m->graph = g;
    (void)wake_and_unlock(m, m->text ? TO_FOLLOW : 0);
}

static void
end_graph(struct graph *g)
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
    while (!m->has_news && !is_told_to_leave(m))
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

/* Waits until all bricks that the earlier program had are connected, or for a while. */
static void
await_saved_bricks(struct mount *m)
{
    for (unsigned ms = 0; ms < BRICKS_MS && !clients_are_up(m->graph); ms += LOOK_MS) {
        pthread_mutex_lock(&m->lock);
        bool is_over = is_told_to_leave(m);

        pthread_mutex_unlock(&m->lock);
        if (is_over)
            return;
        nanosleep(&(struct timespec){.tv_nsec = LOOK_MS * 1000000L}, NULL);
    }
}

static void
free_saved(struct mount *m)
{
    if (m->saved)
        parcel_free(m->saved);
    free(m->saved);
    m->saved = NULL;
}

/* Counts a restored mount that serves, or has failed. */
static void
count_restored(bool is_well)
{
    atomic_fetch_add(is_well ? &restored_well : &restored_badly, 1);
    if (atomic_fetch_sub(&restoring, 1) == 1 && tell_restored)
        tell_restored(atomic_load(&restored_well), atomic_load(&restored_badly));
}

/* Takes the mount over from the earlier program. */
static void
take_over(struct mount *m)
{
    char error[1024] = "";
    struct graph *g = make_graph(m, error, sizeof error);
    int err = g ? fuse_restore(g, m->saved) : 0;

    if (g && !err) {
        publish_graph(m, g);
        err = graph_start(g);
        if (!err) {
            await_saved_bricks(m);
            err = fuse_go_on(g);
        }
    } else if (g) {
        end_graph(g);
        g = NULL;
    }
    free_saved(m);
    count_restored(g && !err);
    if (g && !err)
        return;
    log_event(LOG_CRITICAL, NULL, "mount-not-taken-over", "%s: %s", m->mountpoint,
              err ? strerror(-err) : error);
    (void)umount2(m->mountpoint, MNT_DETACH | UMOUNT_NOFOLLOW);
    pthread_mutex_lock(&m->lock);
    m->to_do |= TO_LEAVE;
    pthread_mutex_unlock(&m->lock);
}

static void
bring_up(struct mount *m)
{
    if (m->saved) {
        take_over(m);
        return;
    }

    char error[1024] = "";
    struct graph *g = mount_is_wanted(m, error, sizeof error) ? make_graph(m, error, sizeof error) : NULL;
    int err = 0;

    if (g && !mount_is_wanted(m, error, sizeof error)) {
        end_graph(g);
        g = NULL;
    }
    if (g) {
        publish_graph(m, g);
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

/* ---- following ------------------------------------------------------------------------------- */

/* Tells whether a newer volfile has come, or the mount is told to leave. `lock` is held. */
static bool
is_superseded(struct mount *m)
{
    return m->to_do & (TO_LEAVE | TO_FOLLOW);
}

/* Waits until *is_there is set (NULL: no such condition), newer work arrives, or NEXT_TELL_S seconds pass.
 * Returns false if newer work has arrived. */
static bool
await_next(struct mount *m, const bool *is_there)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += NEXT_TELL_S;
    pthread_mutex_lock(&m->lock);
    while (!(is_there && *is_there) && !is_superseded(m) && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&m->changed, &m->lock, &until);
    bool goes_on = !is_superseded(m);
    pthread_mutex_unlock(&m->lock);
    return goes_on;
}

static void
tell_not_followed(const struct mount *m, const char *why)
{
    log_event(LOG_ERROR, NULL, "mount-change-not-followed",
              "%s: the volume has other bricks or layers now, and this mount goes on with the old ones: %s",
              m->mountpoint, why);
}

/* Waits for the bricks of the next graph without a time limit. Returns false if newer work has arrived. */
static bool
await_bricks(struct mount *m)
{
    bool goes_on = await_next(m, &m->is_next_up), is_up = false, has_told = false;

    while (goes_on && !is_up) {
        pthread_mutex_lock(&m->lock);
        is_up = m->is_next_up;
        pthread_mutex_unlock(&m->lock);
        if (is_up)
            break;
        if (!has_told)
            tell_not_followed(m, "the new ones are not there; they are waited for");
        has_told = true;
        goes_on = await_next(m, &m->is_next_up);
    }
    return goes_on;
}

static void
drop_next(struct mount *m)
{
    pthread_mutex_lock(&m->lock);
    m->next = NULL;
    pthread_mutex_unlock(&m->lock);
}

/* Takes the volfile over. Returns a started graph with connected bricks; NULL: *error says why, and is empty
 * if newer work has arrived. */
static struct graph *
make_next(struct mount *m, struct volfile *v, char *error, size_t size)
{
    struct graph *g = mount_graph_new_next(v, error, size);

    if (!g)
        return NULL;
    client_volume_log_left_out(g, m->mountpoint);
    g->watch = volume_event;
    g->maker = m;
    pthread_mutex_lock(&m->lock);
    m->next = g;
    m->is_next_up = false;
    pthread_mutex_unlock(&m->lock);
    int err = graph_start(g);
    if (!err && await_bricks(m))
        return g;
    snprintf(error, size, "%s", err ? strerror(-err) : "");
    drop_next(m);
    end_graph(g);
    return NULL;
}

struct old_graph {
    struct cds_list_head link;
    struct graph *graph;
};

/* Frees the old graphs without open files. */
static void
tidy(struct mount *m)
{
    struct old_graph *o, *next;

    cds_list_for_each_entry_safe (o, next, &m->old, link) {
        if (fuse_keeps(m->graph, o->graph))
            continue;
        cds_list_del(&o->link);
        end_graph(o->graph);
        free(o);
        log_event(LOG_INFO, NULL, "mount-old-left",
                  "%s: the last file of bricks and layers of before is closed", m->mountpoint);
    }
}

static int
change_graph(struct mount *m, struct graph *next)
{
    struct old_graph *o = malloc(sizeof *o);

    if (!o) {
        drop_next(m);
        end_graph(next);
        return -ENOMEM;
    }
    struct graph *before = m->graph;
    int err;

    while ((err = fuse_switch(before, next)) == -EBUSY) {
        tell_not_followed(m, "calls under way do not end; it is tried again");
        if (!await_next(m, NULL))
            break;
    }
    pthread_mutex_lock(&m->lock);
    m->graph = err ? before : next;
    m->next = NULL;
    pthread_mutex_unlock(&m->lock);
    if (!err && fuse_keeps(next, before)) {
        o->graph = before;
        cds_list_add_tail(&o->link, &m->old);
        tidy(m); /* the last file of `before` may have closed before `before` was in the list */
        return 0;
    }
    free(o);
    end_graph(err ? next : before);
    return err;
}

/* Takes the volfile over. Returns true if the mount has the volfile's bricks now. */
static bool
change_bricks(struct mount *m, struct volfile *v, const struct volfile_digest *digest)
{
    char error[1024] = "";
    struct graph *next = make_next(m, v, error, sizeof error);
    int err = next ? change_graph(m, next) : 0;

    if (next && !err) {
        m->digest = *digest;
        log_event(LOG_INFO, NULL, "mount-switched", "%s has the bricks and layers of its new volfile",
                  m->mountpoint);
        return true;
    }
    if (err)
        snprintf(error, sizeof error, "%s", strerror(-err));
    if (*error)
        tell_not_followed(m, error);
    else
        log_event(LOG_INFO, NULL, "mount-change-superseded",
                  "%s: a newer volfile came before the bricks of the last one", m->mountpoint);
    return false;
}

/* Takes the volfile over. Returns true if the mount works by this volfile now. */
static bool
change(struct mount *m, struct volfile *v)
{
    const struct volfile_digest digest = volfile_digest(v);
    char error[1024] = "";

    if (memcmp(&digest, &m->digest, sizeof digest) == 0) {
        volfile_free(v);
        return true;
    }
    if (volume_compare(m->graph->volfile, v) == VOLUME_OTHER_BRICKS)
        return change_bricks(m, v, &digest);
    if (graph_reconfigure(m->graph, v, error, sizeof error)) {
        log_event(LOG_ERROR, NULL, "mount-volfile-refused", "%s keeps its options: %s", m->mountpoint, error);
        return false;
    }
    m->digest = digest;
    log_event(LOG_INFO, NULL, "mount-options", "%s has the options of its new volfile", m->mountpoint);
    return true;
}

/* Returns the newest volfile. NULL with an empty *error: no newer volfile has come. */
static char *
next_text(struct mount *m, size_t *len, char *error, size_t size)
{
    if (m->options.volfile)
        return volfile_read_text(m->options.volfile, len, error, size);
    pthread_mutex_lock(&m->lock);
    char *text = m->text;

    *len = m->text_bytes;
    m->text = NULL;
    pthread_mutex_unlock(&m->lock);
    return text;
}

static void
follow(struct mount *m)
{
    char error[1024] = "";
    size_t len;
    char *text = next_text(m, &len, error, sizeof error);
    struct volfile *v =
        text ? volume_parse(&m->options, m->mountpoint, text, len, error, sizeof error) : NULL;

    if (v && change(m, v))
        keep_text(m, text, len);
    else
        free(text);
    if (!v && *error)
        log_event(LOG_ERROR, NULL, "mount-volfile", "%s keeps its options: %s", m->mountpoint, error);
}

/* ---- going ----------------------------------------------------------------------------------- */

static void
free_mount(struct mount *m)
{
    (void)timer_stop(&m->again);
    pthread_cond_destroy(&m->changed);
    pthread_mutex_destroy(&m->lock);
    free(m->text);
    free(m->current);
    free_saved(m);
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
    end_graph(g);
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
take_down(struct mount *m)
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
    pthread_mutex_lock(&list_lock);
    cds_list_del(&m->link);
    is_closed = cds_list_empty(&mounts) && (is_leaving || !hooks.stays);
    bool is_last = is_closed;
    pthread_mutex_unlock(&list_lock);
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
act_until_done(struct mount *m)
{
    for (;;) {
        switch (next_to_do(m)) {
        case TO_START:
            bring_up(m);
            break;
        case TO_FOLLOW:
            follow(m);
            break;
        case TO_TIDY:
            tidy(m);
            break;
        case TO_LEAVE:
            take_down(m);
            if (hooks.leaving)
                hooks.leaving(m->mountpoint);
            bool is_last = leave_list(m);
            if (hooks.left)
                hooks.left(m->mountpoint, is_last);
            free_mount(m);
            if (is_last && hooks.empty)
                hooks.empty();
            return;
        default:
            return; /* another thread may free the mount from here on */
        }
    }
}

static void *
act(void *arg)
{
    pthread_setname_np(pthread_self(), "kiln-mount-op");
    rcu_register_thread();
    act_until_done(arg);
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

    pthread_mutex_lock(&list_lock);
    cds_list_for_each_entry(other, &mounts, link)
    {
        if (strcmp(other->mountpoint, m->mountpoint) == 0)
            err = -EEXIST;
    }
    if (is_closed)
        err = -ESHUTDOWN;
    if (!err)
        cds_list_add_tail(&m->link, &mounts);
    pthread_mutex_unlock(&list_lock);
    return err;
}

static struct mount *
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

/* 0 or -errno; after an error the caller frees the mount. */
static int
mount_begin(struct mount *m)
{
    int err = enter_list(m);
    bool enters = !err;

    if (enters) {
        pthread_mutex_lock(&m->lock);
        err = wake_and_unlock(m, TO_START);
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
    free_mount(m);
    return err;
}

bool
mounts_leave(void)
{
    struct mount *m;

    pthread_mutex_lock(&list_lock);
    is_leaving = true;
    is_closed |= cds_list_empty(&mounts);
    bool has_some = !is_closed;
    cds_list_for_each_entry(m, &mounts, link)
    {
        pthread_mutex_lock(&m->lock);
        (void)wake_and_unlock(m, TO_LEAVE);
    }
    pthread_mutex_unlock(&list_lock);
    return has_some;
}

void
mounts_refetch(void)
{
    struct mount *m;

    pthread_mutex_lock(&list_lock);
    cds_list_for_each_entry(m, &mounts, link)
    {
        pthread_mutex_lock(&m->lock);
        if (m->spec)
            spec_refetch(m->spec);
        (void)wake_and_unlock(m, m->graph && m->options.volfile ? TO_FOLLOW : 0);
    }
    pthread_mutex_unlock(&list_lock);
}

bool
mounts_each_graph(void (*fn)(struct graph *g, void *arg), void *arg)
{
    struct mount *m;

    pthread_mutex_lock(&list_lock);
    cds_list_for_each_entry(m, &mounts, link)
    {
        pthread_mutex_lock(&m->lock);
        struct graph *g = m->graph && graph_pin(m->graph) ? m->graph : NULL;

        pthread_mutex_unlock(&m->lock);
        if (!g)
            continue;
        fn(g, arg);
        graph_unpin(g);
    }
    pthread_mutex_unlock(&list_lock);
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

/* ---- a newer program ------------------------------------------------------------------------- */

/* list_lock is held from mounts_freeze() to mounts_thaw(), so the list stays. */
static struct mount *stopped_before; /* the first mount that is not stopped; NULL: all are */

static void
thaw_until(const struct mount *end)
{
    struct mount *m;

    cds_list_for_each_entry (m, &mounts, link) {
        if (m == end)
            break;
        fuse_thaw(m->graph);
    }
}

/* 0, or -EAGAIN: the mount's thread works, so the mount comes, changes or goes. */
static int
stop_mount(struct mount *m, char *why, size_t why_size)
{
    pthread_mutex_lock(&m->lock);
    bool is_busy = m->is_acting || m->to_do || !m->graph;

    pthread_mutex_unlock(&m->lock);
    int err = is_busy ? -EAGAIN : fuse_freeze_begin(m->graph);

    if (err)
        snprintf(why, why_size, "%s: %s", m->mountpoint,
                 err == -EBUSY ? "files of bricks that the volume had before are still open"
                               : "the mount is coming, changing or going");
    return err;
}

static int
stop_all(char *why, size_t why_size)
{
    struct mount *m;
    int err = 0;

    stopped_before = NULL;
    cds_list_for_each_entry (m, &mounts, link) {
        if ((err = stop_mount(m, why, why_size))) {
            stopped_before = m;
            break;
        }
    }
    return err;
}

/* 1: all mounts rest; 0; or -errno. */
static int
look_at_all(char *why, size_t why_size)
{
    int result = 1;
    struct mount *m;

    cds_list_for_each_entry (m, &mounts, link) {
        int rests = fuse_freeze_look(m->graph);

        if (rests < 0) {
            snprintf(why, why_size, "%s: %s", m->mountpoint,
                     rests == -EOPNOTSUPP ? "a file that was removed is open on a sharded or dispersed volume"
                                          : strerror(-rests));
            return rests;
        }
        if (!rests && result)
            snprintf(why, why_size, "%s: %s in time", m->mountpoint, fuse_freeze_obstacle(m->graph));
        result &= rests;
    }
    return result;
}

int
mounts_freeze(unsigned ms, char *why, size_t why_size)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    uint64_t deadline = clock_mono_ns() + ms * 1000000ull;

    int err, result = 0;

    pthread_mutex_lock(&list_lock);
    while ((err = stop_all(why, why_size)) == -EAGAIN && clock_mono_ns() < deadline) {
        mounts_thaw(); /* the work of a mount's thread may need the lock */
        nanosleep(&pause, NULL);
        pthread_mutex_lock(&list_lock);
    }
    while (!err && (result = look_at_all(why, why_size)) == 0) {
        if (clock_mono_ns() > deadline)
            err = -EBUSY;
        nanosleep(&pause, NULL);
    }
    err = err ? err : result < 0 ? result : 0;
    if (err)
        mounts_thaw();
    return err;
}

void
mounts_thaw(void)
{
    thaw_until(stopped_before);
    pthread_mutex_unlock(&list_lock);
}

static int
save_mount(struct mount *m, struct parcel *to)
{
    struct parcel own = {0};
    char *packet = malloc(OPTIONS_BYTES_MAX);
    int bytes = packet ? shared_encode(&m->options, m->mountpoint, packet, OPTIONS_BYTES_MAX) : -ENOMEM;
    int err = bytes < 0 ? bytes : 0;

    parcel_put_bytes(&own, m->current, m->current_bytes);
    err = err ? err : fuse_save(m->graph, &own);
    if (!err) {
        parcel_put_bytes(to, packet, (size_t)bytes);
        parcel_put_bytes(to, own.bytes, own.used);
    }
    if (!err && (own.is_broken || to->is_broken))
        err = -ENOMEM;
    parcel_free(&own);
    free(packet);
    return err;
}

int
mounts_save(struct parcel *to)
{
    struct mount *m;
    int err = 0;

    cds_list_for_each_entry (m, &mounts, link) {
        parcel_put_u32(to, 1);
        if ((err = save_mount(m, to)))
            return err;
    }
    parcel_put_u32(to, 0);
    return to->is_broken ? -ENOMEM : 0;
}

int
mounts_keep_open(bool keeps)
{
    struct mount *m;
    int err = 0;

    cds_list_for_each_entry (m, &mounts, link) {
        int failed = fuse_keep_open(m->graph, keeps);

        err = err ? err : failed;
    }
    return err;
}

/* 0 or -errno. */
static int
restore_one(const void *packet, size_t packet_bytes, const void *state, size_t bytes)
{
    struct parcel *saved = calloc(1, sizeof *saved);
    char *words = malloc(packet_bytes + 1);
    const char *mountpoint, *bad_word;
    struct mount_options o;
    struct mount *m = NULL;
    int err = saved && words ? 0 : -ENOMEM;

    if (!err) {
        memcpy(words, packet, packet_bytes);
        parcel_put_raw(saved, state, bytes);
        err = shared_decode(words, packet_bytes, &o, &mountpoint, &bad_word);
    }
    if (!err && (saved->is_broken || !(m = mount_new(&o, mountpoint))))
        err = -ENOMEM;
    if (err) {
        if (saved)
            parcel_free(saved);
        free(saved);
        free(words);
        return err;
    }
    m->words = words;
    m->saved = saved;
    err = mount_begin(m);
    if (err)
        free_mount(m);
    return err;
}

unsigned
mounts_restore(struct parcel *from)
{
    unsigned count = 0;

    atomic_fetch_add(&restoring, 1); /* until all have begun */
    while (parcel_get_u32(from)) {
        size_t packet_bytes, bytes;
        const void *packet = parcel_get_bytes(from, &packet_bytes), *state = parcel_get_bytes(from, &bytes);

        atomic_fetch_add(&restoring, 1);
        int err = from->is_broken ? -EBADMSG : restore_one(packet, packet_bytes, state, bytes);

        count++;
        if (!err)
            continue;
        log_event(LOG_CRITICAL, NULL, "mount-not-begun", "a mount of the earlier program is lost: %s",
                  strerror(-err));
        count_restored(false);
    }
    atomic_fetch_sub(&restored_well, 1); /* the count of this function itself */
    count_restored(true);
    return count;
}

void
mounts_when_restored(void (*fn)(unsigned served, unsigned failed))
{
    tell_restored = fn;
}
