/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The layer's knowledge of a file: the block size, which never changes; the size, which other clients change;
 * and the time of the last write.
 *
 * Size and number of blocks are an xattr of the base file, because the base file itself is at most one block
 * long. Each reply with attributes of a regular file gets them from the xattr, which the same call asks for.
 * The last seen size is only a hint for this layer: a write or a read that depends on the true size asks the
 * brick (hold.c, data.c).
 *
 * A write that reaches only shards does not change the times of the base file. Stock's clients leave it at
 * that; other clients then keep cached contents of such a file for ever. This layer sets the base file's time
 * itself: at most once a second, and at the latest at fsync, flush and close. Until then its own replies show
 * the time. A mount that dies leaves a time that is at most a second too old. */
#include <errno.h>
#include <string.h>
#include <time.h>

#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/shard/shard-internal.h"

static struct mem_pool *shard_files, *shard_block_pool;

int
shard_file_pools_init(void)
{
    if (!shard_files)
        shard_files = mem_pool_new(struct shard_file, 0);
    if (!shard_block_pool)
        shard_block_pool = mem_pool_new(struct shard_block, 0);
    return shard_files && shard_block_pool ? 0 : -ENOMEM;
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

static uint64_t
shard_load(const uint8_t *p)
{
    uint64_t v;

    memcpy(&v, p, sizeof v);
    return __builtin_bswap64(v);
}

static void
shard_store(uint8_t *p, uint64_t v)
{
    v = __builtin_bswap64(v);
    memcpy(p, &v, sizeof v);
}

static const uint8_t *
shard_bytes_of(const struct dict *d, enum dict_key key, uint32_t len)
{
    const struct dict_pair *p = dict_find(d, key);
    bool has_bytes = p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED);

    return has_bytes && p->len >= len ? p->v.bytes : NULL;
}

/* A block size that no option allows is refused: by blocks of one byte a brick would turn one write into a
 * million files on the other bricks. */
bool
shard_read_block_size(const struct shard *s, const struct dict *d, uint64_t *out)
{
    const uint8_t *p = shard_bytes_of(d, DICT_KEY_SHARD_BLOCK_SIZE, SHARD_BLOCK_SIZE_BYTES);

    if (p)
        *out = shard_load(p);
    return p && (*out == shard_conf(s)->block_size || (*out >= SHARD_BLOCK_MIN && *out <= SHARD_BLOCK_MAX));
}

bool
shard_read_size(const struct dict *d, uint64_t *size, uint64_t *blocks)
{
    const uint8_t *p = shard_bytes_of(d, DICT_KEY_SHARD_FILE_SIZE, SHARD_SIZE_BYTES);

    if (!p)
        return false;
    *size = shard_load(p);
    *blocks = shard_load(p + 16);
    if ((int64_t)*size < 0) /* more was subtracted than there was */
        *size = 0;
    if ((int64_t)*blocks < 0)
        *blocks = 0;
    return true;
}

void
shard_write_size(uint8_t out[SHARD_SIZE_BYTES], uint64_t size, uint64_t blocks)
{
    memset(out, 0, SHARD_SIZE_BYTES);
    shard_store(out, size);
    shard_store(out + 16, blocks);
}

void
shard_write_block_size(uint8_t out[SHARD_BLOCK_SIZE_BYTES], uint64_t block_size)
{
    shard_store(out, block_size);
}

/* ---- contexts -------------------------------------------------------------------------------- */

struct shard_file *
shard_file_known(const struct shard *s, struct inode *inode)
{
    struct shard_ctx *ctx = inode ? inode_ctx(inode, s->xl) : NULL;

    return ctx && !ctx->is_block ? caa_container_of(ctx, struct shard_file, ctx) : NULL;
}

static void
shard_file_free(struct shard_file *f)
{
    shard_file_drop_dirty(f);
    pthread_mutex_destroy(&f->lock);
    mem_put(f);
}

static struct shard_file *
shard_file_make(const struct shard *s, struct inode *inode, uint64_t block_size)
{
    struct shard_file *fresh = mem_get0_owner(shard_files, s->xl->graph->owner);

    if (!fresh)
        return NULL;
    fresh->block_size = block_size;
    pthread_mutex_init(&fresh->lock, NULL);
    CDS_INIT_LIST_HEAD(&fresh->dirty);
    CDS_INIT_LIST_HEAD(&fresh->changes);
    CDS_INIT_LIST_HEAD(&fresh->hold.waiters);
    struct shard_ctx *ctx = inode_ctx_install(inode, s->xl, &fresh->ctx);

    if (ctx == &fresh->ctx)
        return fresh;
    shard_file_free(fresh);
    return ctx->is_block ? NULL : caa_container_of(ctx, struct shard_file, ctx);
}

static void
shard_file_note(struct shard_file *f, const struct dict *xattrs, const struct iatt *a)
{
    uint64_t size, blocks;
    bool has_size = shard_read_size(xattrs, &size, &blocks);

    pthread_mutex_lock(&f->lock);
    if (has_size) {
        f->size = size;
        f->blocks = blocks;
    }
    if (a && a->mode) {
        f->last = *a;
        /* another mount has removed the last name: after the last close here the sweep may find work */
        if (!a->nlink)
            f->is_unlinked = f->has_strays = true;
    }
    pthread_mutex_unlock(&f->lock);
}

struct shard_file *
shard_file_learn(const struct shard *s, struct inode *inode, const struct dict *xattrs, const struct iatt *a)
{
    struct shard_file *f = shard_file_known(s, inode);
    uint64_t block_size = 0;

    if (!f && dict_has(xattrs, DICT_KEY_SHARD_BLOCK_SIZE) && !shard_read_block_size(s, xattrs, &block_size)) {
        log_event(LOG_ERROR, s->xl, "shard-block-size-bad",
                  "%s: trusted.glusterfs.shard.block-size has no valid value; the file is not served",
                  GFID(&inode->gfid));
        block_size = UINT64_MAX;
    }
    if (!f)
        f = shard_file_make(s, inode, block_size);
    if (f && f->block_size)
        shard_file_note(f, xattrs, a);
    return f;
}

struct shard_file *
shard_file_new(const struct shard *s, struct inode *inode, uint64_t block_size, const struct iatt *a)
{
    struct shard_file *f = shard_file_make(s, inode, block_size);

    if (f)
        shard_file_note(f, NULL, a);
    return f;
}

uint64_t
shard_file_size(struct shard_file *f)
{
    pthread_mutex_lock(&f->lock);
    uint64_t size = f->size;
    pthread_mutex_unlock(&f->lock);
    return size;
}

struct iatt
shard_file_iatt(struct shard_file *f)
{
    pthread_mutex_lock(&f->lock);
    struct iatt a = f->last;
    pthread_mutex_unlock(&f->lock);
    shard_file_fix(f, &a);
    return a;
}

/* ---- asking the brick ------------------------------------------------------------------------ */

int
shard_file_look(const struct shard_op *o, struct iatt *out)
{
    struct call_stack *stk = shard_call_ask(shard_call_base(o, FOP_fstat, FOP_stat, true));
    uint64_t size, blocks;

    if (stk)
        stk->caller.time_flags = 0;
    int ret = shard_call(o, stk);

    if (ret >= 0 && o->f && !shard_read_size(stk->reply.xdata, &size, &blocks))
        ret = -EIO; /* the file has a block size, and so had a size */
    if (ret >= 0 && o->f)
        shard_file_note(o->f, stk->reply.xdata, &stk->reply.stat);
    if (ret >= 0 && out) {
        *out = stk->reply.stat;
        shard_file_fix(o->f, out);
    }
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* By the fd, which also finds a file without a name; or by a LOOKUP, as a STAT needs no less. */
static int
shard_file_ask(struct shard_op *o)
{
    struct call_stack *stk = shard_call_ask(shard_call_base(o, FOP_fstat, FOP_lookup, true));

    if (stk)
        stk->caller.time_flags = 0;
    int ret = shard_call(o, stk);

    if (ret >= 0 && S_ISREG(stk->reply.stat.mode) &&
        !(o->f = shard_file_learn(o->s, o->base, stk->reply.xdata, &stk->reply.stat)))
        ret = -ENOMEM;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

int
shard_op_file(struct shard_op *o)
{
    int err = 0;

    if (!o->base)
        return -EINVAL;
    o->f = shard_file_known(o->s, o->base);
    if (!o->f)
        err = shard_file_ask(o);
    return err ? err : o->f && o->f->block_size == UINT64_MAX ? -EIO : 0;
}

/* ---- replies --------------------------------------------------------------------------------- */

static bool
shard_is_newer(const struct shard_file *f, const struct iatt *a)
{
    return f->owed_sec > a->mtime || (f->owed_sec == a->mtime && f->owed_nsec > a->mtime_nsec);
}

void
shard_file_fix(struct shard_file *f, struct iatt *a)
{
    if (!f || !f->block_size || !a->mode)
        return;
    pthread_mutex_lock(&f->lock);
    a->size = f->size;
    a->blocks = f->blocks;
    if (f->owed_sec && shard_is_newer(f, a)) {
        a->mtime = a->ctime = f->owed_sec;
        a->mtime_nsec = a->ctime_nsec = f->owed_nsec;
    }
    pthread_mutex_unlock(&f->lock);
}

bool
shard_reply_fix(struct shard *s, struct inode *inode, struct dict *xdata, struct iatt *a)
{
    bool has_size = dict_has(xdata, DICT_KEY_SHARD_FILE_SIZE);

    if (!S_ISREG(a->mode) || !inode)
        return true;
    struct shard_file *f =
        has_size ? shard_file_learn(s, inode, xdata, a) : shard_file_known(s, inode);

    shard_file_fix(f, a);
    if (xdata) {
        dict_remove(xdata, DICT_KEY_SHARD_FILE_SIZE);
        dict_remove(xdata, DICT_KEY_SHARD_BLOCK_SIZE);
    }
    return has_size;
}

/* ---- the time of the last write -------------------------------------------------------------- */

bool
shard_file_owes_time(struct shard_file *f)
{
    pthread_mutex_lock(&f->lock);
    bool owes = f->owed_sec != 0;
    pthread_mutex_unlock(&f->lock);
    return owes;
}

bool
shard_file_owes(const struct shard *s, struct shard_file *f)
{
    pthread_mutex_lock(&f->lock);
    bool owes = f->owed_sec != 0 || (s->flushes && f->is_unflushed);
    pthread_mutex_unlock(&f->lock);
    return owes;
}

void
shard_file_base_written(struct shard_file *f, const struct iatt *post)
{
    pthread_mutex_lock(&f->lock);
    f->owed_sec = 0;
    if (post->mode)
        f->last = *post;
    pthread_mutex_unlock(&f->lock);
}

int
shard_file_pay_time(const struct shard_op *o)
{
    struct shard_file *f = o->f;

    pthread_mutex_lock(&f->lock);
    int64_t sec = f->owed_sec;
    uint32_t nsec = f->owed_nsec;

    f->owed_sec = 0;
    if (sec)
        f->told_sec = sec;
    pthread_mutex_unlock(&f->lock);
    if (!sec)
        return 0;
    struct call_stack *stk = shard_call_base(o, FOP_fsetattr, FOP_setattr, true);

    if (stk) {
        stk->caller.time_flags = 0;
        stk->caller.ctime_sec = sec;
        stk->caller.ctime_nsec = nsec;
        stk->call.valid = SETATTR_MTIME;
        stk->call.stbuf.mtime = sec;
        stk->call.stbuf.mtime_nsec = nsec;
    }
    int ret = shard_call_once(o, stk);

    if (ret >= 0 || shard_is_missing(ret))
        return 0;
    pthread_mutex_lock(&f->lock);
    if (!f->owed_sec) {
        f->owed_sec = sec;
        f->owed_nsec = nsec;
    }
    pthread_mutex_unlock(&f->lock);
    return ret;
}

void
shard_file_written(const struct shard_op *o)
{
    const struct caller *who = &o->stk->caller;
    struct timespec now = {.tv_sec = who->ctime_sec, .tv_nsec = who->ctime_nsec};

    if (!(who->time_flags & TIME_MTIME))
        clock_gettime(CLOCK_REALTIME, &now);
    pthread_mutex_lock(&o->f->lock);
    bool tells = now.tv_sec != o->f->told_sec;

    o->f->owed_sec = now.tv_sec;
    o->f->owed_nsec = (uint32_t)now.tv_nsec;
    pthread_mutex_unlock(&o->f->lock);
    if (tells)
        (void)shard_file_pay_time(o); /* on failure the time is owed still */
}

/* ---- shards to sync -------------------------------------------------------------------------- */

int
shard_block_dirty(const struct shard_op *o, struct inode *inode)
{
    struct shard_ctx *ctx = inode_ctx(inode, o->s->xl);

    if (!ctx) {
        struct shard_block *fresh = mem_get0_owner(shard_block_pool, o->s->xl->graph->owner);

        if (!fresh)
            return -ENOMEM;
        fresh->ctx.is_block = true;
        fresh->inode = inode;
        fresh->base = o->base->gfid;
        ctx = inode_ctx_install(inode, o->s->xl, &fresh->ctx);
        if (ctx != &fresh->ctx)
            mem_put(fresh);
    }
    if (!ctx->is_block)
        return -EIO; /* a user's file lies in /.shard */
    struct shard_block *b = caa_container_of(ctx, struct shard_block, ctx);

    if (!gfid_equal(&b->base, &o->base->gfid))
        return -EIO; /* a brick has given two files one shard, and each file's lock would guard it */
    pthread_mutex_lock(&o->f->lock);
    b->writes++;
    o->f->is_unflushed = true;
    if (!b->is_dirty) {
        b->is_dirty = true;
        inode_ref(inode);
        cds_list_add_tail(&b->link, &o->f->dirty);
    }
    pthread_mutex_unlock(&o->f->lock);
    return 0;
}

void
shard_block_synced(struct shard_file *f, struct shard_block *b, uint64_t writes)
{
    pthread_mutex_lock(&f->lock);
    bool ends = b->is_dirty && b->writes == writes;

    if (ends) {
        cds_list_del(&b->link);
        b->is_dirty = false;
    }
    pthread_mutex_unlock(&f->lock);
    if (ends)
        inode_unref(b->inode);
}

void
shard_file_drop_dirty(struct shard_file *f)
{
    struct inode *inode;

    do {
        pthread_mutex_lock(&f->lock);
        struct shard_block *b =
            cds_list_empty(&f->dirty) ? NULL : cds_list_first_entry(&f->dirty, struct shard_block, link);

        if (b) {
            cds_list_del(&b->link);
            b->is_dirty = false;
        }
        inode = b ? b->inode : NULL;
        pthread_mutex_unlock(&f->lock);
        inode_unref(inode);
    } while (inode);
}

void
shard_ctx_free(struct shard_ctx *ctx)
{
    if (ctx->is_block)
        mem_put(caa_container_of(ctx, struct shard_block, ctx));
    else
        shard_file_free(caa_container_of(ctx, struct shard_file, ctx));
}
