/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/worm: write once, read many, for a whole volume (brick 10.2).
 *
 * A file may be made and written through the fd that made it; once that is closed nobody opens it for writing
 * again, and no name goes away or gets a second one. Attributes and xattrs may be set. Internal clients pass:
 * self-heal must write what a replica has missed. Keeps nothing and takes no lock. Retention of single files
 * (worm-file-level) is not built: the option is refused.
 */
#include <errno.h>
#include <fcntl.h>

#include "fs/fd.h"
#include "stack/xlator.h"

struct worm_conf {
    bool is_on;
};

static const struct option worm_options[] = {
    OPT_BOOL(struct worm_conf, is_on, "worm", "off"),
    OPT_MUST_BE("worm-file-level", "off"),
    OPT_IGNORED("default-retention-period"), /* of worm-file-level, as the rest */
    OPT_IGNORED("retention-mode"),
    OPT_IGNORED("auto-commit-period"),
    OPT_IGNORED("worm-files-deletable"),
    OPT_END,
};

static bool
worm_is_active(const void *conf)
{
    return ((const struct worm_conf *)conf)->is_on;
}

static xl_verdict
worm_refuse(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return caller_is_internal(&stk->caller) ? XL_PASS : -EROFS;
}

static xl_verdict
worm_open(struct xlator *xl, struct call_stack *stk)
{
    bool writes = (stk->call.flags & O_ACCMODE) != O_RDONLY || (stk->call.flags & (O_TRUNC | O_APPEND));

    return writes ? worm_refuse(xl, stk) : XL_PASS;
}

/* An anonymous fd is nobody's creation. */
static xl_verdict
worm_write(struct xlator *xl, struct call_stack *stk)
{
    return stk->call.fd->is_anonymous ? worm_refuse(xl, stk) : XL_PASS;
}

const struct xlator_type features_worm_xlator = {
    .name = "features/worm",
    .conf_size = sizeof(struct worm_conf),
    .options = worm_options,
    .is_active = worm_is_active,
    .ops = &(const struct xlator_ops){
        .open = worm_open,
        .link = worm_refuse,
        .unlink = worm_refuse,
        .rename = worm_refuse,
        .truncate = worm_refuse,
        .rmdir = worm_refuse,
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
