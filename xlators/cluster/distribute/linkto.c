/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Linkto files: empty files of mode 01000, with the gfid of the real file, and an xattr with the name of
 * the subvolume that stores it. They belong to the volume, not to a user: created and removed as root, pid
 * -4, with the caller's times.
 *
 * A client that finds a linkto file follows it or, if it points nowhere or to a file of another gfid, looks
 * on all subvolumes (lookup.c). So a stale linkto file costs extra calls. A missing linkto file hides the
 * file: where lookups are optimized (lookup-optimize), the hashed subvolume's ENOENT is the answer. So a
 * linkto file is replaced by a RENAME of a new linkto file, made under a name that no lookup uses
 * (linkto_replace()). A client that dies between the two calls leaves the stale linkto file and the one
 * with the spare name, which the next replacement, a rebalance or the removal of the folder removes. A
 * brick removes the name only if it is still a linkto file and, if the call asks for that, no client has it
 * open (brick 4.4). */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/hash.h"
#include "xlators/cluster/distribute/distribute-internal.h"

int
linkto_target(const struct dist *d, const struct call_stack *stk)
{
    const struct dict_pair *p = dict_find(stk->reply.xdata, DICT_KEY_DHT_LINKTO);

    /* The brick's value is the name with its NUL; any other value is no child of this volume. */
    for (unsigned i = 0; p && i < d->count; i++) {
        const char *name = d->child[i].xl->name;

        if (p->len == strlen(name) + 1 && memcmp(p->v.bytes, name, p->len) == 0)
            return (int)i;
    }
    return -1;
}

static bool
is_linkto_at(const struct op *o, unsigned at, struct inode *parent, const char *name)
{
    struct call_stack *stk = lookup_call(o, parent, name, NULL, true);
    bool is = dist_call_at(o, at, stk) >= 0 && reply_is_linkto(stk);

    if (stk)
        call_stack_free(stk);
    return is;
}

struct call_stack *
linkto_call(const struct op *o, struct inode *parent, const char *name, const struct gfid *gfid,
            unsigned target, bool replaces)
{
    const char *to = o->d->child[target].xl->name;
    struct call_stack *stk = dist_call_for_name(dist_call_new_internal(o, FOP_mknod), parent, name);

    if (stk)
        stk->call.mode = LINKTO_MODE;
    stk = dist_call_put_gfid(stk, DICT_KEY_GFID_REQ, gfid);
    stk = dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
    stk = dist_call_put_bytes(stk, DICT_KEY_DHT_LINKTO, to, strlen(to) + 1);
    return replaces ? dist_call_put_str(stk, DICT_KEY_FORCE_REPLACE, "yes") : stk;
}

static int
linkto_made(const struct op *o, unsigned at, struct inode *parent, const char *name, int ret)
{
    if (ret == -EEXIST && is_linkto_at(o, at, parent, name))
        return 0;
    return ret < 0 ? ret : 0;
}

int
linkto_make(const struct op *o, unsigned at, struct inode *parent, const char *name, const struct gfid *gfid,
            unsigned target, bool replaces)
{
    struct call_stack *stk = linkto_call(o, parent, name, gfid, target, replaces);

    return linkto_made(o, at, parent, name, dist_call_once(o, at, stk));
}

struct call_stack *
linkto_remove_call(const struct op *o, struct inode *parent, const char *name, bool unless_open)
{
    struct call_stack *stk = dist_call_for_name(dist_call_new_internal(o, FOP_unlink), parent, name);

    stk = dist_call_put_int(stk, DICT_KEY_UNLINK_ONLY_LINKTO, 1);
    return unless_open ? dist_call_put_int(stk, DICT_KEY_DONT_UNLINK_FOR_OPEN_FD, 1) : stk;
}

int
linkto_remove(const struct op *o, unsigned at, struct inode *parent, const char *name, bool unless_open)
{
    int ret = dist_call_once(o, at, linkto_remove_call(o, parent, name, unless_open));

    return ret < 0 ? ret : 0;
}

/* The holder of the locks on `name` alone uses its spare name. */
static const char *
linkto_spare_name(const struct op *o, const char *name)
{
    enum { SPARE_BYTES = 40 };
    char *text = arena_alloc(&o->stk->arena, SPARE_BYTES);

    if (text)
        snprintf(text, SPARE_BYTES, ".kiln-linkto-%016" PRIx64, hash_text(name));
    return text;
}

static struct call_stack *
linkto_rename_call(const struct op *o, struct inode *parent, const char *from, const char *to)
{
    struct call_stack *stk = dist_call_for_name(dist_call_new_internal(o, FOP_rename), parent, from);

    if (stk) {
        stk->call.loc2.parent = inode_ref(parent);
        stk->call.loc2.name = to;
    }
    return dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes");
}

int
linkto_replace(const struct op *o, unsigned at, struct inode *parent, const char *name,
               const struct gfid *gfid, unsigned target)
{
    const char *spare = linkto_spare_name(o, name);
    int ret = -ENOMEM;

    for (unsigned n = 0; spare && n < 2; n++) {
        ret = dist_call_once(o, at, linkto_call(o, parent, spare, gfid, target, true));
        if (ret != -EEXIST)
            break;
        (void)linkto_remove(o, at, parent, spare, false); /* of a client that died */
    }
    if (ret < 0)
        return ret;
    ret = dist_call_once(o, at, linkto_rename_call(o, parent, spare, name));
    if (ret < 0)
        (void)linkto_remove(o, at, parent, spare, false);
    return ret < 0 ? ret : 0;
}

int
linkto_retarget(const struct op *o, unsigned at, const struct iatt *file, unsigned target)
{
    const char *to = o->d->child[target].xl->name;
    struct inode *inode = inode_link(o->d->xl->graph->inodes, NULL, NULL, file);
    struct call_stack *stk =
        inode ? dist_call_for_inode(dist_call_new_internal(o, FOP_setxattr), inode) : NULL;
    int err = -ENOMEM;

    inode_unref(inode);
    if (stk && (stk->call.dict = dict_new(&stk->arena)))
        err = dict_set_bytes(stk->call.dict, DICT_KEY_DHT_LINKTO, to, (uint32_t)strlen(to) + 1);
    if (err && stk)
        call_stack_free(stk);
    if (err)
        return err;
    int ret = dist_call_once(o, at, dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes"));
    return ret < 0 ? ret : 0;
}

enum linkto_use { LINKTO_UNUSED, LINKTO_REMAINS, LINKTO_USED };

/* Returns LINKTO_USED if the file that the linkto file points to is being copied to the linkto file, or if
 * that is not known; LINKTO_REMAINS if the file is there, so that the linkto file has no contents of its
 * own. */
static enum linkto_use
linkto_find_use(const struct op *o, unsigned at, const struct call_stack *link, struct inode *parent,
                const char *name)
{
    int target = linkto_target(o->d, link);
    struct call_stack *stk = target < 0 ? NULL : lookup_call(o, parent, name, NULL, true);
    int ret = target < 0 ? -ENOENT : dist_call_at(o, (unsigned)target, stk);
    enum linkto_use use = ret == -ENOENT || ret == -ESTALE ? LINKTO_UNUSED : LINKTO_USED;

    if (ret >= 0) {
        const struct iatt *a = &stk->reply.stat;
        bool is_same = !reply_is_linkto(stk) && gfid_equal(&a->gfid, &link->reply.stat.gfid);

        use = linkto_target(o->d, stk) == (int)at && (file_is_copying(a) || !is_same) ? LINKTO_USED
              : is_same                                                              ? LINKTO_REMAINS
                                                                                     : LINKTO_UNUSED;
    }
    if (stk)
        call_stack_free(stk);
    return use;
}

int
linkto_remove_unused(const struct op *o, unsigned at, struct inode *parent, const char *name)
{
    struct call_stack *link = lookup_call(o, parent, name, NULL, true);
    int ret = dist_call_at(o, at, link), err = ret < 0 ? ret : 0;

    enum linkto_use use =
        !err && reply_is_linkto(link) ? linkto_find_use(o, at, link, parent, name) : LINKTO_USED;

    if (!err && use == LINKTO_USED)
        err = -EBUSY;
    if (!err) /* clients that have the remains of a moved file open find the file */
        err = linkto_remove(o, at, parent, name, use == LINKTO_UNUSED);
    if (link)
        call_stack_free(link);
    return err;
}

/* Ignores failure, because a linkto file's owner decides nothing. Linkto files are created with owner root.
 */
void
linkto_own(const struct op *o, unsigned at, const struct iatt *file)
{
    if (!file->uid && !file->gid)
        return;
    struct inode *inode = inode_link(o->d->xl->graph->inodes, NULL, NULL, file);
    struct call_stack *stk =
        inode ? dist_call_for_inode(dist_call_new_internal(o, FOP_setattr), inode) : NULL;

    inode_unref(inode);
    if (stk) {
        stk->call.valid = SETATTR_UID | SETATTR_GID;
        stk->call.stbuf.uid = file->uid;
        stk->call.stbuf.gid = file->gid;
    }
    (void)dist_call_once(o, at, dist_call_put_str(stk, DICT_KEY_INTERNAL_FOP, "yes"));
}
