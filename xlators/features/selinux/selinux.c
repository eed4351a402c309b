/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/selinux: stores the clients' SELinux label of a file under another name on disk (brick 5.1, 5.2,
 * 10).
 *
 * A client's security.selinux must not become the brick's own label of the file, so the layer stores it as
 * trusted.glusterfs.selinux. The layer sits above storage and above every layer that reads xattrs. It keeps
 * nothing and takes no lock. A call that does not name the label costs one look at its dict.
 */
#include <errno.h>
#include <string.h>

#include "stack/xlator.h"

struct selinux_conf {
    bool is_on;
};

static const struct option selinux_options[] = {
    OPT_BOOL(struct selinux_conf, is_on, "selinux", "on"),
    OPT_END,
};

static bool
selinux_is_active(const void *conf)
{
    return ((const struct selinux_conf *)conf)->is_on;
}

static xl_verdict
map_reply(struct frame *f, struct call_stack *stk)
{
    (void)f;
    dict_rename(stk->reply.dict, DICT_KEY_SELINUX_STORED, DICT_KEY_SELINUX);
    dict_rename(stk->reply.xdata, DICT_KEY_SELINUX_STORED, DICT_KEY_SELINUX);
    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next)
        dict_rename(e->dict, DICT_KEY_SELINUX_STORED, DICT_KEY_SELINUX);
    return XL_PASS;
}

static xl_verdict
selinux_want_reply(struct xlator *xl, struct call_stack *stk)
{
    return frame_push(stk, xl, map_reply) ? XL_PASS : -ENOMEM;
}

static xl_verdict
selinux_set(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    dict_rename(stk->call.dict, DICT_KEY_SELINUX, DICT_KEY_SELINUX_STORED);
    return XL_PASS;
}

/* Storage stores the keys of a create's xdata as xattrs (brick 4.2). */
static xl_verdict
selinux_create(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    dict_rename(stk->call.xdata, DICT_KEY_SELINUX, DICT_KEY_SELINUX_STORED);
    return XL_PASS;
}

static xl_verdict
selinux_remove(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->call.name && strcmp(stk->call.name, "security.selinux") == 0)
        stk->call.name = "trusted.glusterfs.selinux";
    return XL_PASS;
}

/* Reads the label by name, or reads all xattrs. */
static xl_verdict
selinux_get(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name;

    if (name && strcmp(name, "security.selinux") == 0)
        stk->call.name = "trusted.glusterfs.selinux";
    else if (name && *name)
        return XL_PASS;
    return selinux_want_reply(xl, stk);
}

/* A lookup can request the label among other keys. The key of the request becomes the key of the reply. */
static xl_verdict
selinux_fill(struct xlator *xl, struct call_stack *stk)
{
    if (!dict_has(stk->call.xdata, DICT_KEY_SELINUX))
        return XL_PASS;
    dict_rename(stk->call.xdata, DICT_KEY_SELINUX, DICT_KEY_SELINUX_STORED);
    return selinux_want_reply(xl, stk);
}

const struct xlator_type features_selinux_xlator = {
    .name = "features/selinux",
    .conf_size = sizeof(struct selinux_conf),
    .options = selinux_options,
    .is_active = selinux_is_active,
    .ops = &(const struct xlator_ops){
        .create = selinux_create,
        .mknod = selinux_create,
        .mkdir = selinux_create,
        .symlink = selinux_create,
        .setxattr = selinux_set,
        .fsetxattr = selinux_set,
        .removexattr = selinux_remove,
        .fremovexattr = selinux_remove,
        .getxattr = selinux_get,
        .fgetxattr = selinux_get,
        .lookup = selinux_fill,
        .readdirp = selinux_fill,
    },
};
