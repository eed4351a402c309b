/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/shard: large files in blocks, each of which is a file of its own, so that cluster/distribute
 * spreads the blocks over its subvolumes, and a heal copies blocks and not whole files.
 *
 * The layer is in a client's graph above cluster/distribute and below features/utime. Names, xattrs and the
 * order of messages are those of stock's clients, which use the same files at the same time
 * (shard-internal.h has the terms). A file keeps the block size of its creation; a file from before the
 * option has no shards, and its calls pass.
 *
 * Users do not see /.shard, and can neither read nor set this layer's xattrs. A caller of pid -1
 * (geo-replication) sees everything as the bricks have it.
 *
 * The context of an inode has the known state of a file or a shard (file.c). No lock is held over a call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "log/dump.h"
#include "xlators/features/shard/shard-internal.h"

#define SHARD_XATTR_PREFIX "trusted.glusterfs.shard."

static const struct option shard_options[] = {
    OPT_SIZE(struct shard_conf, block_size, "shard-block-size", "64MB", SHARD_BLOCK_MAX),
    OPT_INT(struct shard_conf, deletion_rate, "shard-deletion-rate", "100", 1, INT32_MAX),
    OPT_IGNORED("shard-lru-limit"), /* the mount's inode table keeps shards */
    OPT_IGNORED("shard"),           /* for kadalu */
    OPT_END,
};

enum { SHARD_PID_RAW = -1 };

/* ---- what users must not reach --------------------------------------------------------------- */

static bool
shard_is_hidden(const struct shard *s, const struct loc *loc)
{
    if (!loc->parent || !loc->name)
        return loc->inode && (gfid_equal(&loc->inode->gfid, &shard_dir_gfid) ||
                              gfid_equal(&loc->inode->gfid, &shard_markers_gfid));
    return (!s->is_subdir && gfid_is_root(&loc->parent->gfid) && strcmp(loc->name, ".shard") == 0) ||
           gfid_equal(&loc->parent->gfid, &shard_dir_gfid) ||
           gfid_equal(&loc->parent->gfid, &shard_markers_gfid);
}

static bool
shard_is_own_xattr(const char *name)
{
    return name && strncmp(name, SHARD_XATTR_PREFIX, strlen(SHARD_XATTR_PREFIX)) == 0;
}

static bool
shard_has_own_xattr(const struct dict *d)
{
    dict_for_each (p, d) {
        if (shard_is_own_xattr(p->key))
            return true;
    }
    return false;
}

static xl_verdict
shard_change_xattr(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    bool sets = stk->call.fop == FOP_setxattr || stk->call.fop == FOP_fsetxattr;

    return (sets ? shard_has_own_xattr(stk->call.dict) : shard_is_own_xattr(stk->call.name)) ? -EPERM
                                                                                             : XL_PASS;
}

static xl_verdict
shard_xattrs_read(struct frame *f, struct call_stack *stk)
{
    (void)f;
    if (stk->reply.op_ret >= 0 && stk->reply.dict) {
        dict_remove(stk->reply.dict, DICT_KEY_SHARD_BLOCK_SIZE);
        dict_remove(stk->reply.dict, DICT_KEY_SHARD_FILE_SIZE);
    }
    return XL_PASS;
}

static xl_verdict
shard_read_xattr(struct xlator *xl, struct call_stack *stk)
{
    if (shard_is_own_xattr(stk->call.name))
        return -ENODATA;
    return frame_push(stk, xl, shard_xattrs_read) ? XL_PASS : -ENOMEM;
}

/* ---- dispatch of fops ------------------------------------------------------------------------ */

static xl_verdict
shard_open(struct xlator *xl, struct call_stack *stk)
{
    return stk->call.flags & (O_APPEND | O_TRUNC) ? coro_fop(xl, stk, shard_open_go) : XL_PASS;
}

static xl_verdict
shard_flush(struct xlator *xl, struct call_stack *stk)
{
    struct shard_file *f = shard_file_known(xl->private, stk->call.fd->inode);

    return f && shard_file_owes(xl->private, f) ? coro_fop(xl, stk, shard_flush_go) : XL_PASS;
}

/* The removal of anything but a regular file passes. */
static xl_verdict
shard_unlink(struct xlator *xl, struct call_stack *stk)
{
    return coro_fop(xl, stk, shard_unlink_go);
}

static xl_verdict
shard_rename(struct xlator *xl, struct call_stack *stk)
{
    return coro_fop(xl, stk, shard_rename_go);
}

static xl_verdict
shard_no_copy(struct xlator *xl, struct call_stack *stk)
{
    const struct shard *s = xl->private;
    const struct shard_file *a = shard_file_known(s, stk->call.fd->inode);
    const struct shard_file *b = stk->call.fd2 ? shard_file_known(s, stk->call.fd2->inode) : NULL;
    bool is_whole = a && b && !a->block_size && !b->block_size;

    return is_whole ? XL_PASS : -EOPNOTSUPP; /* the kernel copies by reads and writes */
}

static const fop_fn shard_functions[FOP_COUNT] = {
    [FOP_lookup] = shard_lookup,
    [FOP_stat] = shard_attributes,
    [FOP_fstat] = shard_attributes,
    [FOP_setattr] = shard_attributes,
    [FOP_fsetattr] = shard_attributes,
    [FOP_link] = shard_attributes,
    [FOP_create] = shard_create,
    [FOP_mknod] = shard_mknod,
    [FOP_open] = shard_open,
    [FOP_flush] = shard_flush,
    [FOP_readdir] = shard_readdir,
    [FOP_readdirp] = shard_readdir,
    [FOP_unlink] = shard_unlink,
    [FOP_rename] = shard_rename,
    [FOP_copy_file_range] = shard_no_copy,
    [FOP_getxattr] = shard_read_xattr,
    [FOP_fgetxattr] = shard_read_xattr,
    [FOP_setxattr] = shard_change_xattr,
    [FOP_fsetxattr] = shard_change_xattr,
    [FOP_removexattr] = shard_change_xattr,
    [FOP_fremovexattr] = shard_change_xattr,
};

/* Start functions of coroutines, for files that may have shards. */
static const fop_fn shard_starts[FOP_COUNT] = {
    [FOP_readv] = shard_readv_go,         [FOP_writev] = shard_writev_go,
    [FOP_fallocate] = shard_space_go,     [FOP_discard] = shard_space_go,
    [FOP_zerofill] = shard_space_go,      [FOP_seek] = shard_seek_go,
    [FOP_fsync] = shard_fsync_go,         [FOP_truncate] = shard_truncate_go,
    [FOP_ftruncate] = shard_truncate_go,
};

static xl_verdict
shard_any(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;
    fop_fn start = shard_starts[call->fop];

    if (stk->caller.pid == SHARD_PID_RAW)
        return XL_PASS;
    if (shard_is_hidden(xl->private, &call->loc) || shard_is_hidden(xl->private, &call->loc2))
        return -EPERM;
    if (shard_functions[call->fop])
        return shard_functions[call->fop](xl, stk);
    if (!start)
        return XL_PASS;
    const struct shard_file *f =
        shard_file_known(xl->private, call->fd ? call->fd->inode : call->loc.inode);

    return f && !f->block_size ? XL_PASS : coro_fop(xl, stk, start);
}

/* ---- a closed file --------------------------------------------------------------------------- */

struct shard_closing {
    struct shard *s;
    struct inode *inode; /* a reference */
};

/* The graph is pinned. `arg` is valid until the first yield. */
static void
shard_closing_go(void *arg)
{
    struct shard_closing c = *(struct shard_closing *)arg;
    struct graph *g = c.s->xl->graph;
    struct call_stack *stk = coro_call_new();
    struct shard_op o = {.s = c.s, .stk = stk, .base = c.inode, .f = shard_file_known(c.s, c.inode)};

    if (stk) {
        (void)shard_file_pay_time(&o); /* the file is closed: there is no later try */
        call_stack_free(stk);
    }
    inode_unref(c.inode);
    graph_unpin(g);
}

static void
shard_tell_time(struct shard *s, struct inode *inode)
{
    struct shard_closing c = {s, inode};

    if (!graph_pin(s->xl->graph))
        return;
    inode_ref(inode);
    if (!coro_run(shard_closing_go, &c))
        return;
    inode_unref(inode);
    graph_unpin(s->xl->graph);
}

static void
shard_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct shard *s = xl->private;
    struct shard_file *f = fd->is_anonymous ? NULL : shard_file_known(s, fd->inode);

    if (!f || !f->block_size)
        return;
    pthread_mutex_lock(&f->lock);
    bool is_unlinked = f->is_unlinked;
    pthread_mutex_unlock(&f->lock);
    if (is_unlinked)
        shard_sweep(s);
    else if (shard_file_owes_time(f))
        shard_tell_time(s, fd->inode);
}

/* Begins the first sweep of a mount, and a sweep after an outage. The first sweep waits for no call, because
 * a mount may never look up a name that exists. */
static bool
shard_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD && (e->change == CHILD_UP || e->change == CHILD_SOME_UP))
        shard_sweep(xl->private);
    return false;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
shard_fini(struct xlator *xl)
{
    struct shard *s = xl->private;

    pthread_mutex_destroy(&s->lock);
    free(s->size_domain);
    free(s);
}

static bool
shard_has_subdir(const struct volfile *v)
{
    for (size_t i = 0; i < v->section_count; i++) {
        for (size_t k = 0; k < v->sections[i].option_count; k++) {
            if (strcmp(v->sections[i].options[k].key, "subdir-mount") == 0)
                return true;
        }
    }
    return false;
}

static int
shard_init(struct xlator *xl, struct reason *why)
{
    static const char suffix[] = ".size";
    size_t size = strlen(xl->name) + sizeof suffix;
    struct shard *s;

    if (!xl->child_count)
        return reason_set(why, -EINVAL, "no subvolume");
    if (size > FOP_LOCK_DOMAIN_MAX)
        return reason_set(why, -EINVAL, "the volume's name is too long");
    if (shard_file_pools_init() || !(s = calloc(1, sizeof *s)))
        return -ENOMEM;
    s->xl = xl;
    s->is_subdir = shard_has_subdir(xl->graph->volfile);
    s->flushes = xl->graph->traits & LAYER_WRITES_AT_FLUSH;
    pthread_mutex_init(&s->lock, NULL);
    xl->private = s;
    if (!(s->size_domain = malloc(size))) {
        shard_fini(xl);
        xl->private = NULL;
        return -ENOMEM;
    }
    memcpy(s->size_domain, xl->name, size - sizeof suffix);
    memcpy(s->size_domain + size - sizeof suffix, suffix, sizeof suffix);
    shard_sweep_init(s);
    return 0;
}

static void
shard_stop(struct xlator *xl)
{
    shard_sweep_stop(xl->private);
}

static void
shard_drop_one(struct inode *inode, void *ctx, void *arg)
{
    struct shard_ctx *c = ctx;

    (void)inode;
    (void)arg;
    if (!c->is_block)
        shard_file_drop_dirty(caa_container_of(c, struct shard_file, ctx));
}

static void
shard_drained(struct xlator *xl)
{
    struct shard *s = xl->private;

    inode_table_each(xl->graph->inodes, xl, shard_drop_one, NULL);
    inode_unref(s->markers);
    inode_unref(s->dir);
    s->markers = s->dir = NULL;
}

static void
shard_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    shard_ctx_free(ctx);
}

static void
shard_dump(struct xlator *xl, struct dump *dump)
{
    struct shard *s = xl->private;

    pthread_mutex_lock(&s->lock);
    bool is_sweeping = s->is_sweeping;
    pthread_mutex_unlock(&s->lock);
    dump_line(dump, "block-size", "%llu", (unsigned long long)shard_conf(s)->block_size);
    dump_line(dump, "sweep-runs", "%d", is_sweeping);
    dump_line(dump, "files-swept", "%llu", (unsigned long long)atomic_load(&s->swept));
}

const struct xlator_type features_shard_xlator = {
    .name = "features/shard",
    .conf_size = sizeof(struct shard_conf),
    .options = shard_options,
    .keeps = KEEPS(CTX_INODE),
    .traits = LAYER_OPENS_BY_NAME,
    .ops = &(const struct xlator_ops){.any = shard_any},
    .init = shard_init,
    .fini = shard_fini,
    .stop = shard_stop,
    .drained = shard_drained,
    .inode_forget = shard_inode_forget,
    .fd_closed = shard_fd_closed,
    .event = shard_event,
    .dump = shard_dump,
};
