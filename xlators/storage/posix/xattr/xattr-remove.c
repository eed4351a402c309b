/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* removexattr, fremovexattr: removes one xattr by name, or, with an empty name, every key of the request's
 * xdata (spec: brick 5.3). */
#include <errno.h>

#include "xlators/storage/posix/xattr/xattr-fill.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"
#include "xlators/storage/posix/xattr/xattr-set.h"

/* Under the inode's lock: see set_stored() in xattr-set.c. */
static int
remove_stored(struct xlator *xl, struct posix_obj *obj, struct inode *inode, const char *name)
{
    struct posix_inode *pi = posix_inode_get(xl, inode);

    if (pi == NULL)
        return -ENOMEM;
    pthread_mutex_lock(&pi->change_lock);
    int err = posix_obj_removexattr(obj, name);
    pthread_mutex_unlock(&pi->change_lock);
    return err;
}

static int
remove_key(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode,
           const char *name)
{
    int err;

    switch (xattr_kind_of(name)) {
    case XATTR_IDENTITY:
        return -EPERM;
    case XATTR_GFID2PATH:
        return -ENODATA;
    case XATTR_BITROT:
        return -EINVAL;
    case XATTR_MDATA:
        /* Users do not see the xattr. Heal removes the xattrs that the source's list lacks and then sets the
         * source's times, which are merged with the stored ones. */
        return caller_is_internal(&stk->caller) ? 0 : -ENODATA;
    case XATTR_ACL:
        err = remove_stored(xl, obj, inode, name);
        return err == -ENODATA ? 0 : err;
    case XATTR_ACL_TEXT:
        err = remove_stored(xl, obj, inode,
                            strcmp(name, dict_key_text(DICT_KEY_ACL_DEFAULT_TEXT)) == 0 ? POSIX_ACL_DEFAULT
                                                                                         : POSIX_ACL_ACCESS);
        return err == -ENODATA ? 0 : err;
    case XATTR_NO_NAMESPACE:
        return -ENOTSUP;
    default:
        return remove_stored(xl, obj, inode, name);
    }
}

/* For AFR's heal of metadata. Keys with other purposes (marks, counts) are skipped like missing xattrs. */
static int
remove_keys_of_xdata(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode)
{
    dict_for_each (p, stk->call.xdata) {
        /* The key belongs to the call, not to the object. */
        if (!xattr_has_namespace(p->key) || p->key_id == DICT_KEY_DURABLE_OP)
            continue;
        int err = remove_key(xl, stk, obj, inode, p->key);
        if (err && err != -ENODATA)
            return err;
    }
    return 0;
}

static int
remove_asked(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode)
{
    const char *name = stk->call.name;

    if (name != NULL && name[0] != '\0')
        return remove_key(xl, stk, obj, inode, name);
    if (stk->call.xdata == NULL)
        /* no name at all; heal sends an empty dict when there is no xattr to remove */
        return -EINVAL;
    return remove_keys_of_xdata(xl, stk, obj, inode);
}

xl_verdict
posix_fop_removexattr(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_loc(xl, &stk->call.loc, &obj);

    return err ? err : posix_xattr_change_object(xl, stk, &obj, stk->call.loc.inode, remove_asked);
}

xl_verdict
posix_fop_fremovexattr(struct xlator *xl, struct call_stack *stk)
{
    POSIX_OBJ(obj);
    int err = posix_obj_of_fd(xl, stk->call.fd, &obj);

    return err ? err : posix_xattr_change_object(xl, stk, &obj, stk->call.fd->inode, remove_asked);
}
