/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Upcalls: a brick with features.cache-invalidation says that another client has changed an object, and the
 * program drops its data about the object. Without the option of the volume there are no upcalls, and the
 * registration succeeds nevertheless, as with GlusterFS.
 *
 * A program registers a function, or asks for the events one after the other. While a function is registered,
 * the function gets all new events; else they are kept from the program's first question on, at most
 * QUEUE_MAX of them: the oldest goes first. An event is one allocation, which the program frees with
 * glfs_free(). No lease is given, so none is recalled.
 *
 * Threads: the registration and the queue are under the volume's lock. The function is called on a worker,
 * with the graph pinned, so glfs_fini() waits for it. glfs_upcall_unregister() does not wait: a program may
 * hold a lock that its function needs. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"

enum { QUEUE_MAX = 4096 };
enum { UPCALL_REASON_NONE = 0, UPCALL_REASON_INVALIDATE = 1 };
#define UPCALL_EVENT_INVALIDATE 0x1u
#define FLAGS_OF_CONTENTS 0x18u /* size and times */

struct glfs_upcall_inode {
    struct glfs_object object;
    uint64_t flags; /* GlusterFS's bits of the kinds of change */
};

struct glfs_upcall {
    struct cds_list_head link; /* in the queue */
    struct worker_job job;
    struct graph *graph; /* pinned, until the function is called */
    struct glfs_upcall_inode inode;
};

/* ---- from the graph -------------------------------------------------------------------------- */

/* The volume's lock is held. */
static bool
upcall_has_fn(const struct glfs *fs)
{
    return fs->upcall_fn && fs->upcall_events & UPCALL_EVENT_INVALIDATE;
}

static void
call_back(struct worker_job *job)
{
    struct glfs_upcall *u = caa_container_of(job, struct glfs_upcall, job);
    struct glfs *fs = u->inode.object.fs;
    struct graph *g = u->graph;

    pthread_mutex_lock(&fs->lock);
    glfs_upcall_cbk *fn = upcall_has_fn(fs) ? fs->upcall_fn : NULL;
    void *data = fs->upcall_data;
    pthread_mutex_unlock(&fs->lock);
    if (fn)
        fn(u, data); /* frees `u` */
    else
        free(u);
    graph_unpin(g);
}

/* Returns whether the queue has taken the event. */
static bool
upcall_queue(struct glfs *fs, struct glfs_upcall *u)
{
    struct glfs_upcall *oldest = NULL;

    pthread_mutex_lock(&fs->lock);
    bool is_queued = fs->is_polling && !upcall_has_fn(fs);
    if (is_queued) {
        cds_list_add_tail(&u->link, &fs->upcalls);
        if (++fs->upcall_count > QUEUE_MAX) {
            oldest = cds_list_first_entry(&fs->upcalls, struct glfs_upcall, link);
            cds_list_del(&oldest->link);
            fs->upcall_count--;
        }
    }
    pthread_mutex_unlock(&fs->lock);
    free(oldest);
    return is_queued;
}

void
api_upcall(struct graph *g, const struct gfid *gfid, uint32_t flags)
{
    struct glfs *fs = g->maker;

    pthread_mutex_lock(&fs->lock);
    bool is_wanted = fs->is_polling || upcall_has_fn(fs);
    pthread_mutex_unlock(&fs->lock);
    struct glfs_upcall *u = is_wanted ? calloc(1, sizeof *u) : NULL;

    if (!u) /* or no memory: the program's knowledge ends with its own timeout */
        return;
    u->inode.object = (struct glfs_object){.fs = fs, .gfid = *gfid};
    u->inode.flags = flags & INVALIDATED_CONTENTS ? FLAGS_OF_CONTENTS : flags;
    if (upcall_queue(fs, u))
        return;
    if (!graph_pin(g)) {
        free(u);
        return;
    }
    u->graph = g;
    u->job.run = call_back;
    worker_post_any(&u->job);
}

void
api_upcalls_drop(struct glfs *fs)
{
    struct glfs_upcall *u, *next;

    cds_list_for_each_entry_safe(u, next, &fs->upcalls, link)
        free(u);
    CDS_INIT_LIST_HEAD(&fs->upcalls);
    fs->upcall_count = 0;
}

/* ---- calls of the program -------------------------------------------------------------------- */

GFAPI int
glfs_upcall_register(struct glfs *fs, uint32_t events, glfs_upcall_cbk *fn, void *data)
{
    if (!fs || !fn) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&fs->lock);
    fs->upcall_events |= events & UPCALL_EVENT_INVALIDATE;
    fs->upcall_fn = fn;
    fs->upcall_data = data;
    int accepted = (int)(events & UPCALL_EVENT_INVALIDATE);
    pthread_mutex_unlock(&fs->lock);
    return accepted;
}

GFAPI int
glfs_upcall_unregister(struct glfs *fs, uint32_t events)
{
    if (!fs) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&fs->lock);
    int removed = (int)(fs->upcall_events & events);
    fs->upcall_events &= ~events;
    pthread_mutex_unlock(&fs->lock);
    return removed;
}

GFAPI int
glfs_h_poll_upcall(struct glfs *fs, struct glfs_upcall **out)
{
    if (!fs || !out) {
        errno = EINVAL;
        return -1;
    }
    pthread_mutex_lock(&fs->lock);
    fs->is_polling = true;
    *out = cds_list_empty(&fs->upcalls) ? NULL
                                        : cds_list_first_entry(&fs->upcalls, struct glfs_upcall, link);
    if (*out) {
        cds_list_del(&(*out)->link);
        fs->upcall_count--;
    }
    pthread_mutex_unlock(&fs->lock);
    if (!*out)
        errno = ENOENT;
    return 0;
}

GFAPI struct glfs *
glfs_upcall_get_fs(struct glfs_upcall *u)
{
    return u ? u->inode.object.fs : NULL;
}

GFAPI int
glfs_upcall_get_reason(struct glfs_upcall *u)
{
    return u ? UPCALL_REASON_INVALIDATE : UPCALL_REASON_NONE;
}

GFAPI void *
glfs_upcall_get_event(struct glfs_upcall *u)
{
    return u ? &u->inode : NULL;
}

GFAPI struct glfs_object *
glfs_upcall_inode_get_object(struct glfs_upcall_inode *i)
{
    return &i->object;
}

GFAPI uint64_t
glfs_upcall_inode_get_flags(struct glfs_upcall_inode *i)
{
    return i->flags;
}

/* The brick does not say for how long attributes may be kept. */
GFAPI uint64_t
glfs_upcall_inode_get_expire(struct glfs_upcall_inode *i)
{
    (void)i;
    return 0;
}

/* Kiln's client does not pass on attributes and parents of the notice. */
#define UPCALL_WITHOUT(type, name)                                                                           \
    GFAPI type *name(struct glfs_upcall_inode *i)                                                            \
    {                                                                                                        \
        (void)i;                                                                                             \
        return NULL;                                                                                         \
    }
UPCALL_WITHOUT(struct stat, glfs_upcall_inode_get_stat)
UPCALL_WITHOUT(struct glfs_object, glfs_upcall_inode_get_pobject)
UPCALL_WITHOUT(struct stat, glfs_upcall_inode_get_pstat)
UPCALL_WITHOUT(struct glfs_object, glfs_upcall_inode_get_oldpobject)
UPCALL_WITHOUT(struct stat, glfs_upcall_inode_get_oldpstat)

/* ---- leases: refused, as by GlusterFS's library ----------------------------------------------- */

GFAPI int
glfs_lease(struct glfs_fd *fd, void *lease, void *fn, void *data)
{
    (void)fn;
    (void)data;
    errno = fd && lease ? ENOSYS : EINVAL;
    return -1;
}

GFAPI int
glfs_h_lease(struct glfs *fs, struct glfs_object *o, void *lease)
{
    errno = fs && o && lease ? ENOSYS : EINVAL;
    return -1;
}

GFAPI struct glfs_object *
glfs_upcall_lease_get_object(void *event)
{
    (void)event;
    return NULL;
}

GFAPI uint32_t
glfs_upcall_lease_get_lease_type(void *event)
{
    (void)event;
    return 0;
}
