/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* walk: counts a namespace from the disk while clients go on changing it.
 *
 * A count runs after a folder with contents was marked, after a crash of the machine, and on request of
 * glusterfs.quota.reset. Each object is counted once, with its charge of that moment: at the start of the
 * walk if the object is being changed or waits for a stat, at the next change, or by the walk. So later
 * changes of charges are right also when the walk ends before them. The gfids of the counted objects are kept
 * until the end of the walk. Objects that move are counted when they move. A folder that moves is walked once
 * more, because the walk may have missed it in both places. Until the end the usage from before the count
 * stands in where it is larger (squota_used()), also after a kill: a count opens no gap in the limit.
 *
 * A worker thread runs the walk, one part of a folder's list at a time, so a walk blocks no thread for long.
 * A brick that stops ends its walks. The record in the state file still says that a count is running, so the
 * next start counts the namespace from the beginning.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "log/log.h"
#include "xlators/features/simple-quota/squota-internal.h"

struct squota_walk {
    struct worker_job job;
    struct xlator *xl;
    struct squota_ns *ns;
    /* under squota.lock */
    struct gfid *dirs; /* folders still to be walked */
    size_t dir_count, dir_room;
    struct gfid *counted; /* hash table of gfids, open addressing; null gfid: free */
    size_t counted_count, counted_room; /* a power of two, or 0 */
    bool has_no_memory, starts_again, is_less;
    /* used only by the worker */
    struct fd *fd; /* of the folder that is being listed */
    uint64_t offset;
};

/* ---- counted objects ------------------------------------------------------------------------- */

static size_t
counted_place(const struct gfid *set, size_t room, const struct gfid *g)
{
    size_t at = (size_t)(gfid_hash(g) >> 20) & (room - 1);

    while (!gfid_is_null(&set[at]) && !gfid_equal(&set[at], g))
        at = (at + 1) & (room - 1);
    return at;
}

static bool
counted_grow(struct squota_walk *w)
{
    size_t room = w->counted_room ? 2 * w->counted_room : 1024;
    struct gfid *set = calloc(room, sizeof *set);

    if (!set)
        return false;
    for (size_t i = 0; i < w->counted_room; i++) {
        if (!gfid_is_null(&w->counted[i]))
            set[counted_place(set, room, &w->counted[i])] = w->counted[i];
    }
    free(w->counted);
    w->counted = set;
    w->counted_room = room;
    return true;
}

bool
squota_walk_has_counted(const struct squota_walk *w, const struct gfid *object)
{
    return w->counted_room && !gfid_is_null(&w->counted[counted_place(w->counted, w->counted_room, object)]);
}

bool
squota_walk_counts(struct squota_walk *w, const struct gfid *object)
{
    if (4 * w->counted_count >= 3 * w->counted_room && !counted_grow(w)) {
        w->has_no_memory = true; /* the walk will start again */
        return false;
    }
    struct gfid *at = &w->counted[counted_place(w->counted, w->counted_room, object)];
    if (!gfid_is_null(at))
        return false;
    *at = *object;
    w->counted_count++;
    return true;
}

void
squota_walk_again(struct squota_walk *w, const struct gfid *dir)
{
    if (w->dir_count == w->dir_room) {
        size_t room = w->dir_room ? 2 * w->dir_room : 64;
        struct gfid *dirs = realloc(w->dirs, room * sizeof *dirs);
        if (!dirs) {
            w->has_no_memory = true;
            return;
        }
        w->dirs = dirs;
        w->dir_room = room;
    }
    w->dirs[w->dir_count++] = *dir;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Starts the count from the beginning. Under the lock. */
static void
begin_anew(struct squota *q, struct squota_walk *w)
{
    free(w->counted);
    w->counted = NULL;
    w->counted_count = w->counted_room = w->dir_count = 0;
    if (w->is_less)
        w->ns->floor = 0;
    else if (w->ns->used > w->ns->floor)
        w->ns->floor = w->ns->used;
    w->has_no_memory = w->starts_again = w->is_less = false;
    squota_state_counting(q->state, w->ns->record, true);
    w->ns->used = 0;
    squota_state_set(q->state, w->ns->record, squota_used(w->ns));
    squota_count_busy(q, w->ns);
    squota_walk_again(w, &w->ns->gfid);
}

static void
close_dir(struct squota_walk *w)
{
    fd_unref(w->fd);
    w->fd = NULL;
    w->offset = 0;
}

static void
walk_end(struct squota_walk *w, bool is_done)
{
    struct squota *q = squota_of(w->xl);
    struct squota_ns *ns = w->ns;

    close_dir(w);
    pthread_mutex_lock(&q->lock);
    if (is_done) {
        squota_state_settle(q->state, ns->record, ns->used, 0, 0);
        squota_state_counting(q->state, ns->record, false);
    }
    ns->walk = NULL;
    ns->floor = 0;
    int64_t used = ns->used;
    squota_wake(q);
    pthread_mutex_unlock(&q->lock);
    if (is_done)
        log_event(LOG_INFO, w->xl, "squota-counted", "namespace %s was counted: %zu objects, %lld bytes",
                  GFID(&ns->gfid), w->counted_count, (long long)used);
    free(w->counted);
    free(w->dirs);
    free(w);
    pthread_mutex_lock(&q->lock);
    q->walks--;
    pthread_cond_broadcast(&q->idle);
    pthread_mutex_unlock(&q->lock);
}

/* Opens the folder. Returns 0 or -errno. */
static int
walk_open_dir(struct squota_walk *w, const struct gfid *gfid)
{
    int err = squota_folder_open(w->xl, gfid, &w->fd);

    if (err == 0)
        squota_count(w->xl, w->ns, w->fd->inode);
    return err;
}

static void
count_entry(void *arg, struct inode *folder, const struct dirent_entry *e)
{
    struct squota_walk *w = arg;
    struct squota *q = squota_of(w->xl);
    bool is_dir = S_ISDIR(e->iatt.mode);

    (void)folder;
    if (is_dir && dict_find_text(e->dict, SQUOTA_XATTR_NAMESPACE))
        return; /* a namespace inside of this one */
    /* an object that was put on the disk by hand and has no gfid yet: charged here, and known from its first
     * LOOKUP on */
    if (gfid_is_null(&e->iatt.gfid)) {
        pthread_mutex_lock(&q->lock);
        w->ns->used += (int64_t)e->iatt.blocks * 512;
        pthread_mutex_unlock(&q->lock);
        return;
    }
    if (is_dir) { /* counted when the walk opens it */
        pthread_mutex_lock(&q->lock);
        squota_walk_again(w, &e->iatt.gfid);
        pthread_mutex_unlock(&q->lock);
        return;
    }
    struct inode *inode = inode_link(w->xl->graph->inodes, NULL, NULL, &e->iatt);
    if (inode) {
        squota_count(w->xl, w->ns, inode);
    } else {
        pthread_mutex_lock(&q->lock);
        w->has_no_memory = true;
        pthread_mutex_unlock(&q->lock);
    }
    inode_unref(inode);
}

static void
next_part(struct squota_walk *w, const struct gfid *dir)
{
    struct squota *q = squota_of(w->xl);
    int r = 0;

    if (dir)
        r = walk_open_dir(w, dir);
    if (r == 0 && w->fd)
        r = squota_folder_list(w->xl, w->fd, &w->offset, count_entry, w);
    if (r <= 0)
        close_dir(w);
    if (r >= 0 || r == -ENOENT || r == -ESTALE || r == -ENOTDIR)
        return; /* the folder was removed meanwhile, with its contents */
    log_event(LOG_WARNING, w->xl, "squota-not-counted",
              "a folder of namespace %s cannot be listed: %s. The objects in it are missing in the usage",
              GFID(&w->ns->gfid), strerror(-r));
    pthread_mutex_lock(&q->lock);
    w->has_no_memory = w->has_no_memory || r == -ENOMEM;
    pthread_mutex_unlock(&q->lock);
}

static void
squota_walk_step(struct worker_job *job)
{
    struct squota_walk *w = caa_container_of(job, struct squota_walk, job);
    struct squota *q = squota_of(w->xl);
    struct gfid dir;
    bool has_dir = false;

    pthread_mutex_lock(&q->lock);
    bool stops = q->is_stopping || w->ns->is_gone;
    if (!stops && w->starts_again)
        begin_anew(q, w);
    if (!stops && !w->fd && w->dir_count > 0) {
        dir = w->dirs[--w->dir_count];
        has_dir = true;
    }
    bool is_done = !stops && !w->fd && !has_dir;
    bool repeats = is_done && w->has_no_memory;
    if (repeats)
        w->starts_again = true;
    pthread_mutex_unlock(&q->lock);
    if (stops || (is_done && !repeats)) {
        walk_end(w, is_done);
        return;
    }
    if (!repeats)
        next_part(w, has_dir ? &dir : NULL);
    worker_post_any(&w->job);
}

void
squota_walk_start(struct xlator *xl, struct squota_ns *ns, bool is_less)
{
    struct squota *q = squota_of(xl);
    struct squota_walk *fresh = calloc(1, sizeof *fresh);
    bool is_new = false;

    pthread_mutex_lock(&q->lock);
    if (ns->walk) {
        ns->walk->starts_again = true;
        ns->walk->is_less |= is_less;
    } else if (fresh && !q->is_stopping) {
        *fresh = (struct squota_walk){.xl = xl, .ns = ns, .is_less = is_less, .job.run = squota_walk_step};
        ns->walk = fresh;
        begin_anew(q, fresh);
        q->walks++;
        is_new = true;
    } else {
        squota_state_counting(q->state, ns->record, true);
    }
    pthread_mutex_unlock(&q->lock);
    if (is_new)
        worker_post_any(&fresh->job);
    else
        free(fresh);
}
