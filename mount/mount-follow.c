/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount-follow: a mount changes to a newer volfile: options of the same graph, or a second graph with the new
 * bricks and layers, which takes over the mount point when its bricks are connected. */
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <urcu/list.h>

#include "graph/graph.h"
#include "log/log.h"
#include "mount/client-volume.h"
#include "mount/mount-internal.h"
#include "xlators/mount/fuse/fuse.h"

enum { NEXT_TELL_S = 10 };

/* ---- waiting for the next graph -------------------------------------------------------------- */

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
make_next_graph(struct mount *m, struct volfile *v, char *error, size_t size)
{
    struct graph *g = mount_graph_new_next(v, error, size);

    if (!g)
        return NULL;
    client_volume_log_left_out(g, m->mountpoint);
    g->watch = mount_volume_event;
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
    mount_end_graph(g);
    return NULL;
}

void
mount_tidy(struct mount *m)
{
    struct old_graph *o, *next;

    cds_list_for_each_entry_safe (o, next, &m->old, link) {
        if (fuse_keeps(m->graph, o->graph))
            continue;
        cds_list_del(&o->link);
        mount_end_graph(o->graph);
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
        mount_end_graph(next);
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
        mount_tidy(m); /* the last file of `before` may have closed before `before` was in the list */
        return 0;
    }
    free(o);
    mount_end_graph(err ? next : before);
    return err;
}

/* Takes the volfile over. Returns true if the mount has the volfile's bricks now. */
static bool
change_bricks(struct mount *m, struct volfile *v, const struct volfile_digest *digest)
{
    char error[1024] = "";
    struct graph *next = make_next_graph(m, v, error, sizeof error);
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

void
mount_follow(struct mount *m)
{
    char error[1024] = "";
    size_t len;
    char *text = next_text(m, &len, error, sizeof error);
    struct volfile *v =
        text ? volume_parse(&m->options, m->mountpoint, text, len, error, sizeof error) : NULL;

    if (v && change(m, v))
        mount_keep_text(m, text, len);
    else
        free(text);
    if (!v && *error)
        log_event(LOG_ERROR, NULL, "mount-volfile", "%s keeps its options: %s", m->mountpoint, error);
}
