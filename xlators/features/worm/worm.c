/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/worm: write once, read many, for a whole volume or for single files (brick 10.2).
 *
 * A whole volume (worm): a file may be created and written through the fd that created it. After that fd is
 * closed, no client can open the file for writing, and no name can be removed or linked. Attributes and
 * xattrs may be set. Single files (worm-file-level): see worm-file.c. Internal clients pass, because
 * self-heal must write the data that a replica has missed. The layer keeps nothing and takes no lock.
 */
#include <errno.h>
#include <fcntl.h>

#include "fs/fd.h"
#include "xlators/features/worm/worm-file.h"

static const char *const retention_modes[] = {"relax", "enterprise", NULL};

static const struct option worm_options[] = {
    OPT_BOOL(struct worm_conf, is_on, "worm", "off"),
    OPT_BOOL(struct worm_conf, is_file_level, "worm-file-level", "off"),
    OPT_TIME(struct worm_conf, retention_period, "default-retention-period", "120", 0, INT64_MAX),
    OPT_ENUM(struct worm_conf, retention_mode, "retention-mode", "relax", retention_modes),
    OPT_TIME(struct worm_conf, commit_period, "auto-commit-period", "180", 0, INT64_MAX),
    OPT_BOOL(struct worm_conf, is_deletable, "worm-files-deletable", "on"),
    OPT_END,
};

static bool
worm_is_active(const void *conf)
{
    const struct worm_conf *c = conf;

    return c->is_on || c->is_file_level;
}

static bool
is_volume_worm(const struct xlator *xl)
{
    return ((const struct worm_conf *)xlator_conf(xl))->is_on;
}

static xl_verdict
refuse_users(const struct call_stack *stk)
{
    return caller_is_internal(&stk->caller) ? XL_PASS : -EROFS;
}

static xl_verdict
worm_change(struct xlator *xl, struct call_stack *stk)
{
    return is_volume_worm(xl) ? refuse_users(stk) : worm_file_change(xl, stk);
}

static xl_verdict
worm_refuse(struct xlator *xl, struct call_stack *stk)
{
    return is_volume_worm(xl) ? refuse_users(stk) : XL_PASS;
}

static bool
opens_for_writing(const struct fop_call *c)
{
    return (c->flags & O_ACCMODE) != O_RDONLY || (c->flags & (O_TRUNC | O_APPEND));
}

static xl_verdict
worm_open(struct xlator *xl, struct call_stack *stk)
{
    if (is_volume_worm(xl))
        return opens_for_writing(&stk->call) ? refuse_users(stk) : XL_PASS;
    return stk->call.flags & O_TRUNC ? worm_file_change(xl, stk) : XL_PASS;
}

/* An anonymous fd never created the file. */
static xl_verdict
worm_write(struct xlator *xl, struct call_stack *stk)
{
    const struct fd *fd = stk->call.fop == FOP_copy_file_range ? stk->call.fd2 : stk->call.fd;

    if (is_volume_worm(xl))
        return fd->is_anonymous ? refuse_users(stk) : XL_PASS;
    return worm_file_change(xl, stk);
}

/* A CREATE with loc.inode opens this file and no other (FOP_NAME_CHANGED). */
static xl_verdict
worm_create(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    bool is_open = c->loc.inode && !fop_create_is_exclusive(c);

    if (!is_volume_worm(xl))
        return worm_file_create(xl, stk);
    return is_open && opens_for_writing(c) ? refuse_users(stk) : XL_PASS;
}

static xl_verdict
worm_setattr(struct xlator *xl, struct call_stack *stk)
{
    return is_volume_worm(xl) ? XL_PASS : worm_file_setattr(xl, stk);
}

const struct xlator_type features_worm_xlator = {
    .name = "features/worm",
    .conf_size = sizeof(struct worm_conf),
    .options = worm_options,
    .is_active = worm_is_active,
    .ops = &(const struct xlator_ops){
        .open = worm_open,
        .create = worm_create,
        .link = worm_change,
        .unlink = worm_change,
        .rename = worm_change,
        .truncate = worm_change,
        .rmdir = worm_refuse,
        .setattr = worm_setattr,
        .fsetattr = worm_setattr,
        .removexattr = worm_refuse,
        .fremovexattr = worm_refuse,
        .writev = worm_write,
        .ftruncate = worm_write,
        .fallocate = worm_write,
        .discard = worm_write,
        .zerofill = worm_write,
        .copy_file_range = worm_write,
    },
};
