/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/utime: all objects that one call of an application changes get the same timestamp.
 *
 * The layer sits in a client's graph above distribute and replicate. It takes the time once and stores it in
 * the call's caller. A layer below that makes further calls for the operation copies the caller, including
 * the time, so all replicas and all subvolumes store the same time (wire 1.5). A time taken below would
 * differ between replicas, and no heal would ever make those times equal.
 *
 * A LOOKUP requests the stored times. An object without them, because it is older than the feature, gets the
 * times of the LOOKUP's reply, by a call in the background.
 *
 * The layer keeps nothing and takes no lock. */
#include <errno.h>
#include <time.h>

#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "stack/xlator.h"

enum { PID_UTIME = -13 }; /* pid of the call that sets missing times */

struct utime_conf {
    bool no_atime;
};

static const struct option utime_options[] = {
    OPT_BOOL(struct utime_conf, no_atime, "noatime", "on"),
    OPT_END,
};

enum {
    MAKES = TIME_CTIME | TIME_MTIME | TIME_ATIME | TIME_PARENT_CTIME | TIME_PARENT_MTIME,
    CHANGES_NAMES = TIME_CTIME | TIME_PARENT_CTIME | TIME_PARENT_MTIME,
    WRITES = TIME_CTIME | TIME_MTIME,
};

/* The flags are those of stock's clients, except where POSIX requires more: stock's clients set an xattr and
 * allocate blocks without a ctime, and punch a hole without any time. */
static const uint8_t time_flags[FOP_COUNT] = {
    [FOP_create] = MAKES,
    [FOP_mknod] = MAKES,
    [FOP_mkdir] = MAKES,
    [FOP_symlink] = MAKES,
    [FOP_unlink] = CHANGES_NAMES,
    [FOP_rmdir] = CHANGES_NAMES,
    [FOP_link] = CHANGES_NAMES,
    [FOP_rename] = CHANGES_NAMES,
    [FOP_writev] = WRITES,
    [FOP_truncate] = WRITES,
    [FOP_ftruncate] = WRITES,
    [FOP_setxattr] = TIME_CTIME,
    [FOP_fsetxattr] = TIME_CTIME,
    [FOP_removexattr] = TIME_CTIME,
    [FOP_fremovexattr] = TIME_CTIME,
    [FOP_fallocate] = WRITES,
    [FOP_discard] = WRITES,
    [FOP_zerofill] = WRITES,
};

static uint32_t
flags_of(const struct utime_conf *conf, const struct fop_call *call)
{
    const int32_t changes_ctime = SETATTR_MODE | SETATTR_UID | SETATTR_GID;

    switch (call->fop) {
    case FOP_setattr:
    case FOP_fsetattr: /* a call that sets times names them itself */
        return !call->valid || call->valid & changes_ctime ? TIME_CTIME : 0;
    case FOP_open:
    case FOP_opendir:
    case FOP_readv:
        return conf->no_atime ? 0 : TIME_ATIME;
    default:
        return time_flags[call->fop];
    }
}

/* A setattr of times alone has no flag, but the brick takes the ctime from the call. */
static bool
carries_a_time(enum fop fop, uint32_t flags)
{
    return flags || fop == FOP_setattr || fop == FOP_fsetattr;
}

static xl_verdict
utime_any(struct xlator *xl, struct call_stack *stk)
{
    uint32_t flags = flags_of(xlator_conf(xl), &stk->call);
    struct timespec now;

    if (!carries_a_time(stk->call.fop, flags))
        return XL_PASS;
    clock_gettime(CLOCK_REALTIME, &now);
    stk->caller.time_flags = flags;
    stk->caller.ctime_sec = now.tv_sec;
    stk->caller.ctime_nsec = (uint32_t)now.tv_nsec;
    return XL_PASS;
}

/* ---- objects without times ------------------------------------------------------------------- */

static void
missing_times_set(struct call_stack *stk)
{
    struct graph *g = stk->owner;

    if (stk->reply.op_ret < 0)
        log_event(LOG_DEBUG, NULL, "utime-not-set", "the missing times of %s were not set: %s",
                  GFID(&stk->call.gfid), strerror(stk->reply.op_errno));
    call_stack_free(stk);
    graph_unpin(g);
}

static int
fill_times(struct call_stack *stk, const struct iatt *a)
{
    struct mdata *m = arena_alloc(&stk->arena, sizeof *m);
    struct dict *d = dict_new(&stk->arena);
    const char *key = dict_key_text(DICT_KEY_SET_CTIME_MDATA);

    if (!m || !d)
        return -ENOMEM;
    *m = (struct mdata){a->atime, a->mtime, a->ctime, a->atime_nsec, a->mtime_nsec, a->ctime_nsec};
    stk->call.dict = d;
    return dict_append(d,
                       &(struct dict_pair){
                           .key = key, .key_len = (uint16_t)strlen(key), .type = DICT_MDATA, .v.mdata = m})
               ? 0
               : -ENOMEM;
}

/* Without memory the next LOOKUP sets them. */
static void
set_missing_times(struct xlator *xl, const struct iatt *a)
{
    struct graph *g = xl->graph;

    if (!graph_pin(g))
        return;
    struct call_stack *stk = call_stack_new(missing_times_set, g);
    if (!stk) {
        graph_unpin(g);
        return;
    }
    stk->caller.pid = PID_UTIME;
    stk->call.fop = FOP_setxattr;
    stk->call.loc.inode = inode_link(g->inodes, NULL, NULL, a);
    if (stk->call.loc.inode && !fill_times(stk, a)) {
        call_stack_wind_below(stk, xl);
        return;
    }
    call_stack_free(stk);
    graph_unpin(g);
}

static xl_verdict
utime_looked_up(struct frame *f, struct call_stack *stk)
{
    const struct fop_reply *r = &stk->reply;

    if (r->op_ret >= 0 && !gfid_is_null(&r->stat.gfid) && !dict_has(r->xdata, DICT_KEY_MDATA))
        set_missing_times(f->xl, &r->stat);
    return XL_PASS;
}

static xl_verdict
utime_lookup(struct xlator *xl, struct call_stack *stk)
{
    if (!stk->call.xdata && !(stk->call.xdata = dict_new(&stk->arena)))
        return -ENOMEM;
    if (dict_set_int(stk->call.xdata, DICT_KEY_MDATA, 1) || !frame_push(stk, xl, utime_looked_up))
        return -ENOMEM;
    return XL_PASS;
}

const struct xlator_type features_utime_xlator = {
    .name = "features/utime",
    .conf_size = sizeof(struct utime_conf),
    .options = utime_options,
    .ops = &(const struct xlator_ops){.any = utime_any, .lookup = utime_lookup},
};
