/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names and attributes: lookups, new files, listings, and the removal of names.
 *
 * UNLINK of a regular file, and RENAME over one, when the file has shards:
 *
 *   1. INODELK on the base file, domain: this layer's name
 *   2. LOOKUP of the name: the number of names, the size
 *   3. other names are left: UNLINK or RENAME, unlock, done
 *   4. ENTRYLK on the marker's name in /.shard/.remove_me
 *   5. MKNOD of the marker, with block size and size; one that exists gets the new values
 *   6. UNLINK or RENAME          7. unlock both; the sweep removes the shards (sweep.c)
 *
 * Deaths: bricks drop the locks of a dead client. Between 5 and 6 there is a marker of a file that has its
 * name: the next sweep of any client finds the file, and removes the marker alone. Between 6 and the end of
 * the sweep the marker stays, and the next sweep of any client removes the shards. So nothing that has a name
 * is lost, and nothing without one stays.
 *
 * CREATE of a name that exists opens the file: the brick then sets none of the xattrs of the call. The reply
 * has the time of this call only if the file is new. */
#include <errno.h>
#include <string.h>

#include "xlators/features/shard/shard-internal.h"

/* ---- LOOKUP ---------------------------------------------------------------------------------- */

/* Returns a reference to the inode of a reply's attributes; NULL: out of memory, or no gfid. */
static struct inode *
shard_inode_of(const struct shard *s, const struct iatt *a)
{
    return gfid_is_null(&a->gfid) ? NULL : inode_link(s->xl->graph->inodes, NULL, NULL, a);
}

static xl_verdict
shard_looked_up(struct frame *f, struct call_stack *stk)
{
    struct shard *s = f->xl->private;
    struct fop_reply *r = &stk->reply;

    if (r->op_ret < 0 || !S_ISREG(r->stat.mode))
        return XL_PASS;
    struct inode *inode = shard_inode_of(s, &r->stat);
    bool is_known = inode && shard_file_learn(s, inode, r->xdata, &r->stat);

    if (is_known)
        (void)shard_reply_fix(s, inode, r->xdata, &r->stat);
    inode_unref(inode);
    return is_known ? XL_PASS : -ENOMEM;
}

xl_verdict
shard_lookup(struct xlator *xl, struct call_stack *stk)
{
    int err = shard_ask(stk);

    if (err)
        return err;
    dict_remove(stk->call.xdata, DICT_KEY_CONTENT); /* the base file's contents are not all */
    return frame_push(stk, xl, shard_looked_up) ? XL_PASS : -ENOMEM;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static struct inode *
shard_inode_of_call(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

static struct iatt *
shard_reply_iatt(struct call_stack *stk)
{
    bool sets = stk->call.fop == FOP_setattr || stk->call.fop == FOP_fsetattr;

    return sets ? &stk->reply.post : &stk->reply.stat;
}

/* The reply had no size: reads it. */
static xl_verdict
shard_fix_by_look_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    int err = shard_op_file(&o);

    if (!err && o.f && o.f->block_size)
        err = shard_file_look(&o, NULL);
    if (err)
        return err;
    shard_file_fix(o.f, shard_reply_iatt(stk));
    shard_file_fix(o.f, &stk->reply.pre);
    return XL_DONE;
}

static xl_verdict
shard_attributes_replied(struct frame *f, struct call_stack *stk)
{
    struct shard *s = f->xl->private;
    struct inode *inode = shard_inode_of_call(stk);
    struct fop_reply *r = &stk->reply;
    struct iatt *a = shard_reply_iatt(stk);

    if (r->op_ret < 0 || !S_ISREG(a->mode) || !inode)
        return XL_PASS;
    bool has_size = shard_reply_fix(s, inode, r->xdata, a);
    struct shard_file *file = shard_file_known(s, inode);

    if (!has_size && (!file || file->block_size))
        return coro_fop(f->xl, stk, shard_fix_by_look_go);
    if (a == &r->post)
        shard_file_fix(file, &r->pre);
    return XL_PASS;
}

xl_verdict
shard_attributes(struct xlator *xl, struct call_stack *stk)
{
    struct shard *s = xl->private;
    struct shard_file *f = shard_file_known(s, shard_inode_of_call(stk));
    bool sets_time = (stk->call.fop == FOP_setattr || stk->call.fop == FOP_fsetattr) &&
                     stk->call.valid & (SETATTR_MTIME | SETATTR_MTIME_NOW);
    int err;

    if (f && !f->block_size)
        return XL_PASS;
    if (f && sets_time)
        shard_file_base_written(f, &(struct iatt){0}); /* an owed time is overtaken */
    err = shard_ask(stk);
    if (err)
        return err;
    return frame_push(stk, xl, shard_attributes_replied) ? XL_PASS : -ENOMEM;
}

/* ---- new files ------------------------------------------------------------------------------- */

static int
shard_put_new(struct call_stack *stk, uint64_t block_size)
{
    uint8_t block[SHARD_BLOCK_SIZE_BYTES], size[SHARD_SIZE_BYTES];

    shard_write_block_size(block, block_size);
    shard_write_size(size, 0, 0);
    if (!stk->call.xdata && !(stk->call.xdata = dict_new(&stk->arena)))
        return -ENOMEM;
    int err = dict_set_bytes(stk->call.xdata, DICT_KEY_SHARD_BLOCK_SIZE, block, sizeof block);

    return err ? err : dict_set_bytes(stk->call.xdata, DICT_KEY_SHARD_FILE_SIZE, size, sizeof size);
}

/* local.u64 of a frame */
enum { SHARD_OF_FLAGS, SHARD_OF_BLOCK_SIZE };

/* Returns whether the file has the time of this very call, so the call has made it. */
static bool
shard_is_new(const struct call_stack *stk)
{
    const struct iatt *a = &stk->reply.stat;
    const struct caller *c = &stk->caller;

    return c->time_flags & TIME_MTIME && a->mtime == c->ctime_sec && a->mtime_nsec == c->ctime_nsec &&
           a->ctime == c->ctime_sec && a->ctime_nsec == c->ctime_nsec && !a->size;
}

/* Stock's clients read zeros from every file, also from a single block, while the volume has no /.shard. So
 * the first file of a mount makes the folder before its CREATE is answered; if that fails, the next file
 * does. */
static bool
shard_has_folder(struct shard *s)
{
    pthread_mutex_lock(&s->lock);
    bool has = s->dir || s->is_subdir;
    pthread_mutex_unlock(&s->lock);
    return has;
}

/* The file was perhaps there before. */
static xl_verdict
shard_created_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    bool truncates = stk->call.flags & O_TRUNC;
    struct inode *folder;

    if (!shard_has_folder(o.s) && !shard_dir(&o, true, &folder))
        inode_unref(folder);

    o.fd = stk->reply.fd;
    o.base = o.fd->inode;
    int err = shard_op_file(&o);

    if (!err && o.f && o.f->block_size)
        err = shard_file_look(&o, NULL);
    if (!err && o.f && o.f->block_size && truncates && shard_file_size(o.f))
        err = shard_truncate_to(&o, 0);
    if (err)
        return err;
    shard_file_fix(o.f, &stk->reply.stat);
    return XL_DONE;
}

static xl_verdict
shard_created(struct frame *f, struct call_stack *stk)
{
    struct shard *s = f->xl->private;

    stk->call.flags = (uint32_t)f->local.u64[SHARD_OF_FLAGS];
    if (stk->reply.op_ret < 0 || !stk->reply.fd)
        return XL_PASS;
    if (!shard_has_folder(s) || (!fop_create_is_exclusive(&stk->call) && !shard_is_new(stk)))
        return coro_fop(f->xl, stk, shard_created_go);
    return shard_file_new(s, stk->reply.fd->inode, f->local.u64[SHARD_OF_BLOCK_SIZE], &stk->reply.stat)
               ? XL_PASS
               : -ENOMEM;
}

xl_verdict
shard_create(struct xlator *xl, struct call_stack *stk)
{
    uint64_t block_size = shard_conf(xl->private)->block_size;
    struct frame *f = frame_push(stk, xl, shard_created);

    if (!f || shard_put_new(stk, block_size))
        return -ENOMEM;
    f->local.u64[SHARD_OF_FLAGS] = stk->call.flags;
    f->local.u64[SHARD_OF_BLOCK_SIZE] = block_size;
    if (stk->call.flags) /* 0 has a meaning of its own */
        stk->call.flags = (stk->call.flags & ~(uint32_t)(O_APPEND | O_TRUNC)) | O_CREAT;
    return XL_PASS;
}

xl_verdict
shard_mknod(struct xlator *xl, struct call_stack *stk)
{
    bool is_file = S_ISREG(stk->call.mode) || !(stk->call.mode & S_IFMT);

    return is_file && shard_put_new(stk, shard_conf(xl->private)->block_size) ? -ENOMEM : XL_PASS;
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Leaves /.shard out. Returns whether entries are left, or there were none. */
static bool
shard_hide_folder(struct call_stack *stk)
{
    struct dirent_entry **at = &stk->reply.entries;
    bool had_any = *at != NULL;

    while (*at) {
        struct dirent_entry *e = *at;

        if (strcmp(e->name, ".shard") != 0) {
            at = &e->next;
            continue;
        }
        if (stk->reply.holds_inodes)
            inode_unref(e->inode);
        stk->call.offset = e->off; /* if no entry is left, the next call begins here */
        stk->reply.op_ret--;
        *at = e->next;
    }
    return stk->reply.entries || !had_any;
}

static void
shard_fix_entry(struct shard *s, struct call_stack *stk, struct dirent_entry *e)
{
    if (!S_ISREG(e->iatt.mode) || gfid_is_null(&e->iatt.gfid))
        return;
    struct inode *inode = stk->reply.holds_inodes && e->inode
                              ? inode_ref(e->inode)
                              : inode_find(s->xl->graph->inodes, &e->iatt.gfid);
    bool has_size = dict_has(e->dict, DICT_KEY_SHARD_FILE_SIZE);
    struct shard_file *f = shard_file_known(s, inode);
    uint64_t size, blocks;

    if (has_size && inode)
        (void)shard_reply_fix(s, inode, e->dict, &e->iatt);
    else if (shard_read_size(e->dict, &size, &blocks)) {
        e->iatt.size = size;
        e->iatt.blocks = blocks;
    } else if (f ? f->block_size != 0 : !e->dict) {
        e->iatt = (struct iatt){0}; /* not known: the reader looks the name up */
    }
    inode_unref(inode);
}

static xl_verdict shard_list_again_go(struct xlator *xl, struct call_stack *stk);

static xl_verdict
shard_list_end(struct xlator *xl, struct call_stack *stk)
{
    const struct shard *s = xl->private;
    bool is_root = !s->is_subdir && gfid_is_root(&stk->call.fd->inode->gfid);

    if (stk->reply.op_ret <= 0)
        return XL_PASS;
    if (is_root && !shard_hide_folder(stk) && stk->reply.op_errno != ENOENT)
        return coro_fop(xl, stk, shard_list_again_go);
    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next)
        shard_fix_entry(xl->private, stk, e);
    return XL_PASS;
}

static xl_verdict
shard_listed(struct frame *f, struct call_stack *stk)
{
    return shard_list_end(f->xl, stk);
}

/* Only /.shard was in the reply. */
static xl_verdict
shard_list_again_go(struct xlator *xl, struct call_stack *stk)
{
    struct shard_op o = shard_op_of(xl, stk);
    struct call_stack *copy = coro_call_fork(stk);
    int ret = shard_call(&o, copy);

    if (ret < 0) {
        if (copy)
            call_stack_free(copy);
        return ret;
    }
    stk->reply.entries = NULL;
    shard_op_take(&o, copy);
    xl_verdict verdict = shard_list_end(xl, stk);

    return verdict == XL_PASS ? XL_DONE : verdict;
}

xl_verdict
shard_readdir(struct xlator *xl, struct call_stack *stk)
{
    bool is_root = gfid_is_root(&stk->call.fd->inode->gfid);

    if (stk->call.fop == FOP_readdir && !is_root)
        return XL_PASS;
    if (stk->call.fop == FOP_readdirp && shard_ask(stk))
        return -ENOMEM;
    return frame_push(stk, xl, shard_listed) ? XL_PASS : -ENOMEM;
}

/* ---- removal of a name ----------------------------------------------------------------------- */

/* The file that loses a name. */
struct shard_victim {
    struct shard_op o;         /* an operation on the file */
    const struct loc *loc;     /* the name */
    struct inode *inode;       /* a reference; NULL: the name leads to no file with shards */
    uint32_t nlink;
    uint64_t size, block_size;
    struct inode *markers;     /* a reference, while the marker is locked */
    struct call_stack *unlock_inode, *unlock_marker; /* made before the locks */
};

/* Looks the name up. Returns 0, also if it leads to something else, or -errno. */
static int
shard_victim_look(struct shard_victim *v)
{
    struct shard_op *o = &v->o;
    struct call_stack *stk =
        shard_call_ask(shard_call_name(shard_call_internal(o, FOP_lookup), v->loc->parent, v->loc->name));
    struct inode *inode = NULL;
    uint64_t blocks;

    if (stk)
        stk->caller.time_flags = 0;
    int ret = shard_call(o, stk);

    if (ret >= 0 && S_ISREG(stk->reply.stat.mode) &&
        shard_read_block_size(o->s, stk->reply.xdata, &v->block_size)) {
        inode = shard_inode_of(o->s, &stk->reply.stat);
        v->nlink = stk->reply.stat.nlink;
        if (!shard_read_size(stk->reply.xdata, &v->size, &blocks))
            v->size = 0;
        if (!inode || !shard_file_learn(o->s, inode, stk->reply.xdata, &stk->reply.stat))
            ret = -ENOMEM;
    }
    if (stk)
        call_stack_free(stk);
    inode_unref(v->inode);
    v->inode = inode;
    o->base = inode;
    o->fd = NULL;
    o->f = shard_file_known(o->s, inode);
    return ret < 0 ? ret : 0;
}

static void
shard_victim_unlock(struct shard_victim *v)
{
    shard_call_forget(&v->o, v->unlock_inode);
    shard_call_forget(&v->o, v->unlock_marker);
    v->unlock_inode = v->unlock_marker = NULL;
    inode_unref(v->markers);
    v->markers = NULL;
}

static int
shard_victim_lock(struct shard_victim *v)
{
    const char *domain = v->o.s->xl->name;
    uint8_t owner[8];

    shard_owner_new(owner);
    struct call_stack *unlock = shard_inodelk(&v->o, domain, owner, SHARD_LOCK_DROP);
    int ret = unlock ? shard_call_once(&v->o, shard_inodelk(&v->o, domain, owner, SHARD_LOCK_WAIT)) : -ENOMEM;

    if (ret >= 0)
        v->unlock_inode = unlock;
    else if (unlock)
        call_stack_free(unlock);
    return ret < 0 ? ret : 0;
}

static int
shard_victim_mark(struct shard_victim *v)
{
    const struct shard_op *o = &v->o;
    const char *name = GFID(&v->inode->gfid);
    uint8_t owner[8];
    int err = shard_markers(o, true, &v->markers);

    if (err)
        return err;
    shard_owner_new(owner);
    struct call_stack *unlock = shard_entrylk(o, v->markers, name, owner, SHARD_LOCK_DROP);

    err = unlock ? shard_call_once(o, shard_entrylk(o, v->markers, name, owner, SHARD_LOCK_WAIT)) : -ENOMEM;
    if (err >= 0)
        v->unlock_marker = unlock;
    else if (unlock)
        call_stack_free(unlock);
    if (err >= 0)
        err = shard_marker_make(o, v->markers, v->size, v->block_size);
    return shard_is_missing(err) ? -EIO : err < 0 ? err : 0;
}

enum { SHARD_VICTIM_TRIES = 8 };

/* Finds the file behind the name, and prepares the removal. `stays`: the object that the name will lead to;
 * if it is the same already, nothing is removed. */
static int
shard_victim_begin(struct shard_victim *v, const struct gfid *stays)
{
    int err = shard_victim_look(v);

    for (int i = 0; i < SHARD_VICTIM_TRIES && !err && v->inode; i++) {
        struct gfid locked = v->inode->gfid;

        if (stays && gfid_equal(stays, &locked))
            return 0;
        err = shard_victim_lock(v);
        if (!err)
            err = shard_victim_look(v);
        if (!err && v->inode && gfid_equal(&v->inode->gfid, &locked))
            return v->nlink > 1 ? 0 : shard_victim_mark(v);
        shard_victim_unlock(v); /* the name now leads elsewhere */
    }
    return err || !v->inode ? err : -EBUSY;
}

static void
shard_victim_end(struct shard_victim *v, int ret)
{
    bool is_gone = v->markers && ret >= 0, is_known_to_stay = v->markers && ret < 0 && ret != -ENOTCONN;

    if (is_known_to_stay)
        (void)shard_block_remove(&v->o, v->markers, GFID(&v->inode->gfid), NULL); /* else a sweep does it */
    if (is_gone) {
        pthread_mutex_lock(&v->o.f->lock);
        v->o.f->is_unlinked = true;
        pthread_mutex_unlock(&v->o.f->lock);
    }
    shard_victim_unlock(v);
    inode_unref(v->inode);
    if (is_gone)
        shard_sweep(v->o.s);
}

static xl_verdict
shard_remove_name(struct xlator *xl, struct call_stack *stk, const struct loc *loc, const struct gfid *stays)
{
    struct shard_victim v = {.o = shard_op_of(xl, stk), .loc = loc};
    struct shard_op *o = &v.o;
    int err = shard_victim_begin(&v, stays);

    if (err == -ENOENT || err == -ESTALE) /* the call itself will tell */
        err = 0;
    struct call_stack *copy = err ? NULL : coro_call_fork(stk);

    if (!err)
        err = shard_call(o, copy);
    shard_victim_end(&v, err);
    if (err >= 0) {
        shard_op_take(o, copy);
        return XL_DONE;
    }
    if (copy)
        call_stack_free(copy);
    return err;
}

xl_verdict
shard_unlink_go(struct xlator *xl, struct call_stack *stk)
{
    return shard_remove_name(xl, stk, &stk->call.loc, NULL);
}

/* The reply's attributes of the moved file are those of the whole file as last seen. */
xl_verdict
shard_rename_go(struct xlator *xl, struct call_stack *stk)
{
    struct inode *moved = inode_find_child(xl->graph->inodes, stk->call.loc.parent, stk->call.loc.name);
    xl_verdict verdict =
        shard_remove_name(xl, stk, &stk->call.loc2, moved ? &moved->gfid : NULL);

    if (verdict == XL_DONE && S_ISREG(stk->reply.stat.mode))
        shard_file_fix(shard_file_known(xl->private, moved), &stk->reply.stat);
    inode_unref(moved);
    return verdict;
}
