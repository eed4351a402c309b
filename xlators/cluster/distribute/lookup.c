/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names and gfids looked for.
 *
 * By name:
 *   1. LOOKUP on the hashed subvolume.   A file: that is all.
 *   2. A folder: LOOKUP on the others too; the answers are put together, and what is wrong with it is mended
 *      (heal.c).
 *   3. A linkto file: LOOKUP on the subvolume that it names. It is good if it is a file of the same gfid
 *      there.
 *   4. Not there, and the folder's layout is not of the volume's last rebalance; or the linkto leads
 *      nowhere; or the hashed subvolume does not answer: LOOKUP everywhere. A file found elsewhere gets a
 *      linkto file on its hashed subvolume, one that leads astray is removed, unless somebody has it open.
 *   5. There, but without a gfid: LOOKUP everywhere once more, after the locks of the name were had. Stock
 *      bricks show a folder that is being made so. ENODATA is for one whose maker has died.
 * A folder whose name is known is looked for on all subvolumes at once.
 *
 * By gfid: on all subvolumes at once.
 *
 * Others see: a linkto file more or less, of which no application knows. Between the look and its making
 * another client may have made a file of that name: the linkto is made under the locks of the name, after a
 * second look. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

/* ---- a call, and what came back -------------------------------------------------------------- */

struct call_stack *
lookup_call(const struct op *o, struct inode *parent, const char *name, struct inode *inode, bool is_internal)
{
    struct call_stack *stk =
        is_internal ? dist_call_new_internal(o, FOP_lookup) : dist_call_new(o, FOP_lookup);
    const struct inode *target = inode;
    int err = 0;

    if (stk && o->stk->call.fop == FOP_lookup) {
        stk->call.xdata = dict_dup(o->stk->call.xdata, &stk->arena, &err);
        if (!err && stk->call.xdata)
            dict_remove(stk->call.xdata, DICT_KEY_GFID_REQ); /* nothing is to be healed by chance */
    }
    if (err) {
        call_stack_free(stk);
        return NULL;
    }
    if (inode)
        stk = dist_call_for_inode(stk, inode);
    if (parent)
        stk = dist_call_for_name(stk, parent, name);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
    stk = dist_call_put_uint(stk, DICT_KEY_OPEN_FD_COUNT, 4);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_LAYOUT, LAYOUT_BYTES);
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_MDS, 4);
    stk = dist_call_put_int(stk, DICT_KEY_ACL_ACCESS, 0);
    stk = dist_call_put_int(stk, DICT_KEY_ACL_DEFAULT, 0);
    if (target && gfid_is_root(&target->gfid))
        stk = dist_call_put_uint(stk, DICT_KEY_DHT_COMMIT, 4);
    return stk;
}

bool
reply_is_linkto(const struct call_stack *stk)
{
    const struct iatt *a = &stk->reply.stat;

    return stk->reply.op_ret >= 0 && S_ISREG(a->mode) && (a->mode & 07777) == S_ISVTX &&
           dict_has(stk->reply.xdata, DICT_KEY_DHT_LINKTO);
}

/* 0 or -errno. In *out the call with its reply, to be freed by the caller; NULL: no memory. */
static int
look_at(const struct op *o, unsigned child, struct inode *parent, const char *name, struct inode *inode,
        struct call_stack **out)
{
    *out = lookup_call(o, parent, name, inode, false);
    int ret = dist_call_at(o, child, *out);

    return ret < 0 ? ret : 0;
}

void
found_end(struct found *f)
{
    if (f->reply)
        call_stack_free(f->reply);
    inode_unref(f->inode);
    *f = (struct found){0};
}

/* ---- what was found -------------------------------------------------------------------------- */

static struct inode *
link_inode(const struct op *o, struct inode *parent, const char *name, const struct iatt *a)
{
    return parent ? inode_link(o->d->xl->graph->inodes, parent, name, a)
                  : inode_link(o->d->xl->graph->inodes, NULL, NULL, a);
}

/* `stk` is a file's reply, and becomes that of `out`. */
static int
is_file(const struct op *o, struct inode *parent, const char *name, unsigned child, struct call_stack *stk,
        struct found *out)
{
    *out = (struct found){.reply = stk, .cached = (int)child};
    out->inode = link_inode(o, parent, name, &stk->reply.stat);
    return out->inode ? place_set(o->d, out->inode, (int)child) : -ENOMEM;
}

/* A folder, of which `known`, if not -1, has answered `stk` already. */
static int
is_folder(const struct op *o, struct inode *parent, const char *name, struct inode *inode, int known,
          struct call_stack *stk, struct found *out)
{
    struct folder_look f;
    int err = folder_look(o, &f, parent, name, inode, known, stk);

    *out = (struct found){.cached = -1, .is_dir = true};
    if (!err && f.files)
        err = -EIO; /* a file here and a folder there: nobody can tell which is meant */
    if (!err && !(out->inode = link_inode(o, parent, name, &f.iatt)))
        err = -ENOMEM;
    if (!err)
        err = heal_folder(o, &f, parent, name, out->inode);
    if (!err)
        err = folder_keep(o, &f, out->inode);
    if (!err) {
        out->reply = f.best;
        f.best = NULL;
        out->reply->reply.stat = f.iatt;
    }
    folder_look_end(&f);
    return err;
}

/* ---- everywhere ------------------------------------------------------------------------------ */

struct everywhere {
    struct fan fan;
    int hashed;                /* -1: none */
    int file, folder;          /* children that have one; -1: none */
    bool has_linkto;           /* the hashed one */
    bool no_data;
    int err;                   /* what was not "not there" */
};

static bool
has_open_fds(const struct call_stack *stk)
{
    uint64_t count = 0;

    return dict_get_uint(stk->reply.xdata, DICT_KEY_OPEN_FD_COUNT, &count) == 0 && count > 0;
}

static void
sort_out(const struct op *o, struct everywhere *e, struct inode *parent, const char *name)
{
    for (unsigned i = 0; i < e->fan.count; i++) {
        const struct call_stack *stk = e->fan.call[i];
        int ret = coro_call_result(stk);

        e->no_data |= ret == -ENODATA;
        if (ret < 0 && ret != -ENOENT && ret != -ESTALE && !e->err)
            e->err = ret;
        if (ret < 0)
            continue;
        if (S_ISDIR(stk->reply.stat.mode))
            e->folder = (int)i;
        else if (!reply_is_linkto(stk))
            e->file = e->file < 0 ? (int)i : e->file;
        else if ((int)i == e->hashed)
            e->has_linkto = true;
        else if (parent && !has_open_fds(stk))
            (void)linkto_remove(o, i, parent, name, true); /* left over: nobody looks there for it */
    }
}

/* A file that is not where its name's hash is: a linkto file shall be there. That it cannot be made fails
 * nothing. 0, or -errno: what is there stands against it. */
static int
mend_linkto(const struct op *o, struct everywhere *e, struct inode *parent, const char *name)
{
    const struct call_stack *file = e->fan.call[e->file], *link = e->fan.call[e->hashed];
    const struct gfid *gfid = &file->reply.stat.gfid;
    struct dist_lock lock[2];
    int err = 0;

    if (e->has_linkto && linkto_target(o->d, link) == e->file)
        return gfid_equal(gfid, &link->reply.stat.gfid) ? 0 : -ESTALE;
    if (e->has_linkto && !has_open_fds(link))
        err = linkto_remove(o, (unsigned)e->hashed, parent, name, true);
    if (err == -EBUSY || err == -ENOTCONN)
        return -EIO;
    unsigned count = dist_locks_namespace(lock, (unsigned)e->hashed, parent, name);

    if (dist_locks_take(o, lock, count))
        return 0;
    struct call_stack *now, *there;
    int at_hashed = look_at(o, (unsigned)e->hashed, parent, name, NULL, &now);
    int at_file = look_at(o, (unsigned)e->file, parent, name, NULL, &there);

    if (at_hashed == -ENOENT && !at_file && gfid_equal(gfid, &there->reply.stat.gfid) &&
        !linkto_make(o, (unsigned)e->hashed, parent, name, gfid, (unsigned)e->file, false))
        linkto_own(o, (unsigned)e->hashed, &file->reply.stat);
    dist_locks_drop(o, lock, count);
    if (now)
        call_stack_free(now);
    if (there)
        call_stack_free(there);
    return 0;
}

static int
nothing_found(const struct op *o, struct everywhere *e, struct inode *parent, const char *name)
{
    if (e->has_linkto)
        (void)linkto_remove(o, (unsigned)e->hashed, parent, name, true);
    if (e->no_data)
        return -ENODATA;
    /* Somebody who might have it has not answered; but a name that is hashed to one that is away is not
     * there. */
    return e->err && e->err != -ENOTCONN ? e->err : child_longest_up(o->d) < 0 ? -ENOTCONN : -ENOENT;
}

static int
look_everywhere(const struct op *o, struct inode *parent, const char *name, int hashed, struct found *out)
{
    struct everywhere e = {.hashed = hashed, .file = -1, .folder = -1};
    int err = dist_fan_begin(&e.fan, o);

    *out = (struct found){.cached = -1};
    for (unsigned i = 0; i < e.fan.count; i++)
        dist_fan_add(&e.fan, i, lookup_call(o, parent, name, NULL, false));
    if (!err)
        err = dist_fan_go(&e.fan);
    if (!err) {
        sort_out(o, &e, parent, name);
        if (e.file >= 0 && e.folder >= 0)
            err = -EIO;
        else if (e.folder >= 0)
            err = is_folder(o, parent, name, NULL, -1, NULL, out);
        else if (e.file < 0)
            err = nothing_found(o, &e, parent, name);
        else if (e.file != hashed && hashed >= 0)
            err = mend_linkto(o, &e, parent, name);
    }
    if (!err && e.file >= 0) {
        struct call_stack *stk = e.fan.call[e.file];

        e.fan.call[e.file] = NULL;
        err = is_file(o, parent, name, (unsigned)e.file, stk, out);
    }
    dist_fan_end(&e.fan);
    return err;
}

/* ---- by name --------------------------------------------------------------------------------- */

static bool
may_look_everywhere(const struct dist *d, const struct layout *parent)
{
    if (dist_conf(d)->optimizes_lookup)
        return parent->commit != atomic_load(&d->commit);
    return dist_conf(d)->looks_unhashed != UNHASHED_OFF;
}

static int
follow_linkto(const struct op *o, struct inode *parent, const char *name, int hashed, struct call_stack *link,
              struct found *out)
{
    int target = linkto_target(o->d, link);
    struct gfid gfid = link->reply.stat.gfid;
    struct call_stack *stk;

    call_stack_free(link);
    if (target < 0)
        return look_everywhere(o, parent, name, hashed, out);
    int err = look_at(o, (unsigned)target, parent, name, NULL, &stk);

    if (!err && !S_ISDIR(stk->reply.stat.mode) && !reply_is_linkto(stk) &&
        gfid_equal(&gfid, &stk->reply.stat.gfid))
        return is_file(o, parent, name, (unsigned)target, stk, out);
    if (stk)
        call_stack_free(stk);
    return err == -ENOTCONN || err == -ENOMEM ? err : look_everywhere(o, parent, name, hashed, out);
}

/* A name without a gfid is being made, or its maker has died. Makers hold the locks of the name. */
static void
wait_for_maker(const struct op *o, unsigned hashed, struct inode *parent, const char *name)
{
    struct dist_lock lock[2];
    unsigned count = dist_locks_namespace(lock, hashed, parent, name);

    if (!dist_locks_take(o, lock, count))
        dist_locks_drop(o, lock, count);
}

/* With the parent's layout. */
static int
look_for(const struct op *o, struct inode *parent, const char *name, const struct layout *layout,
         struct found *out)
{
    int hashed = layout_find(layout, dist_hash(o->d, name));
    struct call_stack *stk;

    if (hashed < 0)
        return look_everywhere(o, parent, name, -1, out);
    int err = look_at(o, (unsigned)hashed, parent, name, NULL, &stk);

    if (!err && S_ISDIR(stk->reply.stat.mode))
        return is_folder(o, parent, name, NULL, hashed, stk, out);
    if (!err && reply_is_linkto(stk))
        return follow_linkto(o, parent, name, hashed, stk, out);
    if (!err)
        return is_file(o, parent, name, (unsigned)hashed, stk, out);
    if (stk)
        call_stack_free(stk);
    if (err == -ENODATA)
        wait_for_maker(o, (unsigned)hashed, parent, name);
    if (err == -ENOTCONN || err == -ENODATA || (err == -ENOENT && may_look_everywhere(o->d, layout)))
        return look_everywhere(o, parent, name, hashed, out);
    return err;
}

int
lookup_name(const struct op *o, struct inode *parent, const char *name, struct found *out)
{
    struct inode_table *t = o->d->xl->graph->inodes;
    struct inode *known = inode_find_child(t, parent, name);
    struct layout *layout;
    int err = -ENOENT;

    *out = (struct found){.cached = -1};
    if (known && S_ISDIR(known->type)) {
        err = is_folder(o, parent, name, NULL, -1, NULL, out);
        if (err)
            found_end(out);
    }
    inode_unref(known);
    if (!err)
        return 0;
    err = folder_layout(o, parent, &layout);
    if (err)
        return err;
    err = look_for(o, parent, name, layout, out);
    layout_unref(layout);
    if (err == -ENOENT)
        inode_unlink(t, parent, name);
    if (err)
        found_end(out);
    return err;
}

/* ---- by gfid --------------------------------------------------------------------------------- */

static int
look_by_gfid(const struct op *o, struct inode *inode, struct found *out)
{
    struct everywhere e = {.hashed = -1, .file = -1, .folder = -1};
    int err = dist_fan_begin(&e.fan, o);

    *out = (struct found){.cached = -1};
    if (S_ISDIR(inode->type)) {
        dist_fan_end(&e.fan);
        return is_folder(o, NULL, NULL, inode, -1, NULL, out);
    }
    for (unsigned i = 0; i < e.fan.count; i++)
        dist_fan_add(&e.fan, i, lookup_call(o, NULL, NULL, inode, false));
    if (!err)
        err = dist_fan_go(&e.fan);
    if (!err) {
        sort_out(o, &e, NULL, NULL);
        if (e.folder >= 0)
            err = e.file >= 0 ? -EIO : is_folder(o, NULL, NULL, inode, -1, NULL, out);
        else if (e.file < 0)
            err = e.err ? e.err : -ESTALE;
    }
    if (!err && e.file >= 0) {
        struct call_stack *stk = e.fan.call[e.file];

        e.fan.call[e.file] = NULL;
        err = is_file(o, NULL, NULL, (unsigned)e.file, stk, out);
    }
    dist_fan_end(&e.fan);
    return err;
}

int
lookup_cached(const struct op *o, struct inode *inode)
{
    struct found found;
    int cached = place_cached(o->d, inode);

    if (cached >= 0)
        return cached;
    int err = look_by_gfid(o, inode, &found);

    cached = found.cached;
    found_end(&found);
    return err ? err : cached < 0 ? -EISDIR : cached;
}

/* ---- LOOKUP ---------------------------------------------------------------------------------- */

xl_verdict
dist_lookup_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    const struct loc *loc = &stk->call.loc;
    struct found found;
    int err = loc->parent ? lookup_name(&o, loc->parent, loc->name, &found)
              : loc->inode ? look_by_gfid(&o, loc->inode, &found)
                           : -EINVAL;

    if (!loc->parent && !loc->inode)
        return err;
    if (err) {
        found_end(&found);
        return err;
    }
    if (!stk->call.loc.inode) /* held until the layers above have it too */
        stk->call.loc.inode = inode_ref(found.inode);
    struct call_stack *reply = found.reply;

    found.reply = NULL;
    found_end(&found);
    return dist_op_answer_with(&o, reply);
}
