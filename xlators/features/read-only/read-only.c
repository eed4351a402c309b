/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/read-only: clients may read the volume but not change it (brick 10.1).
 *
 * The layer sits above the layers that touch the disk, so a refused operation costs nothing below. Internal
 * clients (self-heal, rebalance) pass, because they bring replicas together and are not users of the volume.
 * The layer keeps nothing and takes no lock. Stock does not refuse some operations that change data
 * (fremovexattr, discard, zerofill, copy_file_range, open with O_TRUNC). Here the layer refuses every fop
 * that fops.def marks as a write.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "stack/xlator.h"

struct read_only_conf {
    bool is_on;
};

static const struct option read_only_options[] = {
    OPT_BOOL(struct read_only_conf, is_on, "read-only", "off"),
    OPT_END,
};

static bool
read_only_is_active(const void *conf)
{
    return ((const struct read_only_conf *)conf)->is_on;
}

static bool
may_change(const struct call_stack *stk)
{
    return caller_is_internal(&stk->caller);
}

static xl_verdict
read_only_any(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return (fop_info[stk->call.fop].traits & FOP_WRITES) && !may_change(stk) ? -EROFS : XL_PASS;
}

static xl_verdict
read_only_open(struct xlator *xl, struct call_stack *stk)
{
    bool writes = (stk->call.flags & O_ACCMODE) != O_RDONLY || (stk->call.flags & O_TRUNC);

    (void)xl;
    return writes && !may_change(stk) ? -EROFS : XL_PASS;
}

/* Clients read counters by adding zero. */
static xl_verdict
read_only_xattrop(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (may_change(stk))
        return XL_PASS;
    dict_for_each(p, stk->call.dict) {
        const uint8_t *bytes = p->len ? p->v.bytes : NULL;

        for (uint32_t i = 0; i < p->len; i++) {
            if (bytes[i])
                return -EROFS;
        }
        if (!bytes && p->v.u)
            return -EROFS;
    }
    return XL_PASS;
}

const struct xlator_type features_read_only_xlator = {
    .name = "features/read-only",
    .conf_size = sizeof(struct read_only_conf),
    .options = read_only_options,
    .is_active = read_only_is_active,
    .ops = &(const struct xlator_ops){
        .any = read_only_any,
        .open = read_only_open,
        .xattrop = read_only_xattrop,
        .fxattrop = read_only_xattrop,
    },
};
