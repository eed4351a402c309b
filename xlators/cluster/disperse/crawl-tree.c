/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The full crawl of a dispersed set: walks the whole tree from the root. Each folder's names are compared on
 * all children and made where they are missing, regardless of the counters; then each object behind a name is
 * healed by its counters. So objects come back that no index names: the objects of a disk that was emptied or
 * exchanged while the brick's process was away.
 *
 * All children must be connected. A walk that dies, or that a lost child cuts, leaves each object as a heal
 * that stops leaves it (heal.h), and begins anew when the child is back. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/crawl-looks.h"
#include "xlators/cluster/disperse/heal.h"

enum { LIST_BYTES = 128 * 1024, PART_MAX = 1024, OBJECTS_AT_ONCE = 4 };

struct tree_object {
    struct gfid gfid;
    uint32_t type; /* S_IFMT bits */
};

struct tree {
    struct ec_heal *h; /* of the root: tells when the walk must stop */
    struct gfid *folders; /* still to be walked; a stack */
    size_t count, room;
    bool is_short; /* no memory for a folder */
    atomic_bool is_busy;
    struct tree_object part[PART_MAX];
    size_t part_count;
};

static bool
tree_goes_on(const struct tree *t)
{
    struct disperse *d = t->h->op.d;

    pthread_mutex_lock(&d->lock);
    bool is_due = d->full_asked != d->full_done;
    pthread_mutex_unlock(&d->lock);
    return is_due && !ec_heal_must_stop(t->h);
}

static void
folder_push(struct tree *t, const struct gfid *gfid)
{
    if (t->count == t->room) {
        size_t room = t->room ? 2 * t->room : 256;
        struct gfid *folders = realloc(t->folders, room * sizeof *folders);

        if (!folders) {
            t->is_short = true;
            return;
        }
        t->folders = folders;
        t->room = room;
    }
    t->folders[t->count++] = *gfid;
}

static void
tree_heal(struct tree *t, const struct tree_object *o)
{
    struct disperse *d = t->h->op.d;
    struct iatt a = {.gfid = o->gfid, .mode = o->type};
    struct inode *inode = tree_goes_on(t) ? inode_link(d->xl->graph->inodes, NULL, NULL, &a) : NULL;
    bool was_whole;

    if (!inode)
        return;
    int err = ec_crawl_object(d, 0, inode, true, &was_whole);
    if (err == -EAGAIN)
        atomic_store(&t->is_busy, true);
    inode_unref(inode);
}

static void
part_object_heal(void *arg, size_t n)
{
    struct tree *t = arg;

    tree_heal(t, &t->part[n]);
}

static void
part_heal(struct tree *t)
{
    coro_each(OBJECTS_AT_ONCE, t->part_count, part_object_heal, t);
    t->part_count = 0;
}

static void
take_entry(struct tree *t, const struct inode *dir, const struct dirent_entry *e)
{
    uint32_t type = e->iatt.mode & S_IFMT;

    if (gfid_is_null(&e->iatt.gfid) || ec_heal_is_brick_own(dir, e->name))
        return;
    if (S_ISDIR(type)) {
        folder_push(t, &e->iatt.gfid);
        return;
    }
    t->part[t->part_count++] = (struct tree_object){.gfid = e->iatt.gfid, .type = type};
    if (t->part_count == PART_MAX)
        part_heal(t);
}

/* Returns 1: there is more; 0: the end; or -errno. */
static int
tree_list(struct tree *t, const struct ec_heal *h, struct fd *fd, uint64_t *offset)
{
    struct call_stack *stk = ec_heal_call(h, FOP_readdirp, 0);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = LIST_BYTES;
    int ret = coro_call(stk, h->op.d->xl->children[0]);
    const struct dirent_entry *first = ret >= 0 ? stk->reply.entries : NULL;

    for (const struct dirent_entry *e = first; e; e = e->next) {
        *offset = e->off;
        take_entry(t, h->op.inode, e);
    }
    part_heal(t);
    call_stack_free(stk);
    return ret < 0 ? ret : first != NULL;
}

/* A folder that has gone needs no heal. */
static void
judge_list(const struct tree *t, const struct gfid *folder, int ret)
{
    struct disperse *d = t->h->op.d;

    if (ret >= 0 || ret == -ENOENT || ret == -ESTALE || !tree_goes_on(t))
        return;
    looks_end_object(d->looks, 0, LOOK_FAILED, false);
    log_event(LOG_WARNING, d->xl, "disperse-crawl-list", "the folder %s cannot be listed: %s", GFID(folder),
              strerror(-ret));
}

/* Heals a folder, so that all children have the same names, and then the objects behind the names. */
static void
tree_folder(struct tree *t, const struct gfid *gfid)
{
    struct disperse *d = t->h->op.d;
    struct tree_object self = {.gfid = *gfid, .type = S_IFDIR};
    struct iatt a = {.gfid = *gfid, .mode = S_IFDIR};
    struct inode *dir = inode_link(d->xl->graph->inodes, NULL, NULL, &a);
    uint64_t offset = 0;
    struct ec_heal h;

    tree_heal(t, &self);
    t->is_short |= !dir;
    if (!dir)
        return;
    ec_heal_begin(&h, d, dir);
    struct call_stack *stk = ec_heal_call(&h, FOP_opendir, 0);
    int ret = stk ? coro_call(stk, d->xl->children[0]) : -ENOMEM;

    while (ret >= 0 && tree_goes_on(t)) {
        ret = tree_list(t, &h, stk->reply.fd, &offset);
        if (ret == 0)
            break;
    }
    judge_list(t, gfid, ret);
    if (stk)
        call_stack_free(stk);
    ec_heal_end(&h);
    inode_unref(dir);
}

static void
tree_walk(struct tree *t)
{
    struct disperse *d = t->h->op.d;

    pthread_mutex_lock(&d->lock);
    unsigned asked = d->full_asked;
    pthread_mutex_unlock(&d->lock);
    looks_begin(d->looks, 0, true);
    folder_push(t, &gfid_root);
    while (t->count > 0 && tree_goes_on(t)) {
        struct gfid folder = t->folders[--t->count];

        tree_folder(t, &folder);
        looks_set_left(d->looks, 0, t->count);
    }
    looks_end(d->looks, 0);
    pthread_mutex_lock(&d->lock);
    if (d->full_asked != d->full_done && !ec_heal_must_stop(t->h) && !t->is_short)
        d->full_done = asked;
    pthread_mutex_unlock(&d->lock);
}

void
ec_crawl_tree(struct disperse *d, bool *is_busy)
{
    struct inode *root = inode_root(d->xl->graph->inodes);
    struct ec_heal h;

    ec_heal_begin(&h, d, root);
    struct tree *t = calloc(1, sizeof *t);
    if (t) {
        t->h = &h;
        if (h.on == d->all && tree_goes_on(t))
            tree_walk(t);
        *is_busy |= t->is_short || atomic_load(&t->is_busy);
        free(t->folders);
    } else {
        *is_busy = true; /* soon again */
    }
    free(t);
    ec_heal_end(&h);
    inode_unref(root);
}
