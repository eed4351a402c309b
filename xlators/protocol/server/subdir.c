/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* subdir: a client that mounts a directory of the volume sees that directory as its root (spec: wire 3.6). */
#include <errno.h>
#include <string.h>

#include "rpc/xdr/callback-program.h"
#include "xlators/protocol/server/server-internal.h"

static void
gfid_in(struct gfid *g, const struct gfid *top)
{
    if (gfid_is_root(g))
        *g = *top;
}

void
subdir_translate_call(struct fop_call *call, const struct gfid *top)
{
    gfid_in(&call->gfid, top);
    gfid_in(&call->pargfid, top);
    gfid_in(&call->gfid2, top);
    gfid_in(&call->pargfid2, top);
}

static void
iatt_out(struct iatt *iatt, const struct gfid *top)
{
    if (gfid_equal(&iatt->gfid, top)) {
        iatt->gfid = gfid_root;
        iatt->ino = gfid_ino(&gfid_root);
    }
}

void
subdir_translate_reply(struct fop_reply *reply, const struct gfid *top)
{
    struct iatt *iatts[] = {&reply->stat, &reply->pre, &reply->post, &reply->pre2, &reply->post2};

    for (size_t i = 0; i < sizeof iatts / sizeof iatts[0]; i++)
        iatt_out(iatts[i], top);
    for (struct dirent_entry *e = reply->entries; e; e = e->next)
        iatt_out(&e->iatt, top);
}

void
subdir_translate_invalidation(struct cache_invalidation *what, const struct gfid *top)
{
    struct iatt *iatts[] = {&what->stat, &what->parent, &what->old_parent};

    if (gfid_equal(&what->gfid, top))
        what->gfid = gfid_root;
    for (size_t i = 0; i < sizeof iatts / sizeof iatts[0]; i++)
        iatt_out(iatts[i], top);
}

/* ---- finding the directory at login ---------------------------------------------------------- */

static void subdir_walk_step(struct subdir_walk *w);

static void
subdir_walk_end(struct subdir_walk *w, int err)
{
    w->at = w->dir->gfid;
    inode_unref(w->dir);
    w->walked(w, err);
}

static void
component_found(struct call_stack *stk)
{
    struct subdir_walk *w = stk->owner;
    const struct fop_reply *r = &stk->reply;
    int err = r->op_ret < 0 ? -r->op_errno : 0;
    struct inode *found = NULL;

    if (!err && (!S_ISDIR(r->stat.mode) || gfid_is_null(&r->stat.gfid)))
        err = -ENOTDIR;
    if (!err && !(found = inode_link(w->graph->inodes, w->dir, w->name, &r->stat)))
        err = -ENOMEM;
    if (found) {
        inode_unref(w->dir);
        w->dir = found;
    }
    call_stack_free(stk);
    if (err)
        subdir_walk_end(w, err);
    else
        subdir_walk_step(w);
}

/* Takes the next component of the path. Returns 0 at the end of the path. */
static int
next_component(struct subdir_walk *w)
{
    while (*w->rest == '/')
        w->rest++;
    size_t len = strcspn(w->rest, "/");

    if (len > FOP_NAME_MAX || (len > 0 && ++w->depth > SUBDIR_DEPTH_MAX))
        return -ENAMETOOLONG;
    memcpy(w->name, w->rest, len);
    w->name[len] = '\0';
    w->rest += len;
    return len > 0;
}

static void
subdir_walk_step(struct subdir_walk *w)
{
    int more = next_component(w);
    int err = more > 0 ? resolve_check_name(FOP_lookup, w->dir, w->name) : more;
    struct call_stack *stk = more > 0 && !err ? call_stack_new(component_found, w) : NULL;

    if (!stk) {
        subdir_walk_end(w, more > 0 && !err ? -ENOMEM : err);
        return;
    }
    stk->call.fop = FOP_lookup;
    stk->call.loc.parent = inode_ref(w->dir);
    stk->call.loc.name = stk->call.name = w->name;
    stk->call.loc.inode = inode_find_child(w->graph->inodes, w->dir, w->name);
    stk->call.pargfid = w->dir->gfid;
    call_stack_wind(stk, w->graph->brick);
}

void
subdir_walk(struct subdir_walk *w)
{
    w->dir = inode_root(w->graph->inodes);
    subdir_walk_step(w);
}
