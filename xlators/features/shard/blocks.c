/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The folder /.shard and the shards in it.
 *
 * Both folders have gfids that are the same in all volumes, so clients that make them at the same time make
 * the same folder. A shard is made by the first write into it; a missing shard is a hole. Two clients that
 * make a shard at the same time: the second gets EEXIST and finds the first one's. Shards are kept in the
 * inode table by their names. Another client may have removed the shard of a kept inode (truncate): then a
 * call by its gfid fails with ENOENT or ESTALE, and the caller looks the name up again (shard_block_lost).
 *
 * A shard has the permissions of its base file, but no mode bits above them, because cluster/distribute gives
 * these a meaning.
 *
 * Deaths: a client that dies after MKNOD leaves an empty shard, which is a hole. A client that dies in a
 * removal leaves the rest of the shards: below the end of the file they are read as before, and behind the
 * end a marker (sweep.c) or the next truncate covers them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "xlators/features/shard/shard-internal.h"

const struct gfid shard_dir_gfid = {
    {0xbe, 0x31, 0x86, 0x38, 0xe8, 0xa0, 0x4c, 0x6d, 0x97, 0x7d, 0x7a, 0x93, 0x7a, 0xa8, 0x48, 0x06}};
const struct gfid shard_markers_gfid = {
    {0x77, 0xdd, 0x5a, 0x45, 0xdb, 0xf5, 0x45, 0x92, 0xb3, 0x1b, 0xb4, 0x40, 0x38, 0x23, 0x02, 0xe9}};

enum { SHARD_MAKE_TRIES = 4, SHARD_LIST_BYTES = 128 << 10, SHARD_MODE_MASK = 0777, SHARD_REMOVALS_MAX = 64 };

/* ---- folders --------------------------------------------------------------------------------- */

/* Looks the name up; *out is a reference. */
static int
shard_name_look(const struct shard_op *o, struct inode *parent, const char *name, struct inode **out)
{
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_lookup), parent, name);

    if (stk)
        stk->caller.time_flags = 0;
    int ret = shard_call(o, stk);

    if (ret >= 0) {
        *out = inode_link(o->s->xl->graph->inodes, parent, name, &stk->reply.stat);
        ret = *out ? 0 : -ENOMEM;
    }
    if (stk)
        call_stack_free(stk);
    return ret;
}

static struct call_stack *
shard_call_is_internal(struct call_stack *stk)
{
    struct dict *d = stk ? stk->call.xdata : NULL;

    if (!d || !dict_set_int(d, DICT_KEY_INTERNAL_FOP, 1))
        return stk;
    call_stack_free(stk);
    return NULL;
}

static int
shard_folder_make(const struct shard_op *o, struct inode *parent, const char *name, const struct gfid *gfid)
{
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_mkdir), parent, name);

    stk = shard_call_is_internal(shard_call_put_gfid(stk, DICT_KEY_GFID_REQ, gfid));
    if (stk)
        stk->call.mode = 0755;
    int ret = shard_call_once(o, stk);

    return ret == -EEXIST ? 0 : ret < 0 ? ret : 0;
}

static int
shard_folder_find(const struct shard_op *o, struct inode *parent, const char *name, const struct gfid *gfid,
                  bool makes, struct inode **out)
{
    int err = shard_name_look(o, parent, name, out);

    if (err == -ENOENT && makes) {
        err = shard_folder_make(o, parent, name, gfid);
        if (!err)
            err = shard_name_look(o, parent, name, out);
    }
    if (err || (gfid_equal(&(*out)->gfid, gfid) && S_ISDIR(inode_type(*out))))
        return err;
    log_event(LOG_ERROR, o->s->xl, "shard-folder-bad",
              "%s has the gfid %s instead of %s: shards are not used", name, GFID(&(*out)->gfid), GFID(gfid));
    inode_unref(*out);
    *out = NULL;
    return -EIO;
}

/* Returns the kept inode with a reference; NULL: none is kept. */
static struct inode *
shard_kept(const struct shard_op *o, struct inode **kept)
{
    pthread_mutex_lock(&o->s->lock);
    struct inode *inode = *kept ? inode_ref(*kept) : NULL;
    pthread_mutex_unlock(&o->s->lock);
    return inode;
}

static void
shard_keep(const struct shard_op *o, struct inode **kept, struct inode *inode)
{
    pthread_mutex_lock(&o->s->lock);
    bool is_first = !*kept;

    if (is_first)
        *kept = inode_ref(inode);
    pthread_mutex_unlock(&o->s->lock);
}

/* Finds the folder by its gfid, because its name is out of reach. */
static int
shard_folder_find_by_gfid(const struct shard_op *o, bool makes, struct inode **out)
{
    struct iatt a = {.gfid = shard_dir_gfid, .mode = S_IFDIR | 0755};
    struct inode *inode = inode_link(o->s->xl->graph->inodes, NULL, NULL, &a);
    int ret =
        inode ? shard_call_once(o, shard_call_inode(shard_call_internal(o, FOP_lookup), inode)) : -ENOMEM;

    if (ret >= 0) {
        *out = inode;
        return 0;
    }
    inode_unref(inode);
    if (!shard_is_missing(ret))
        return ret;
    if (makes)
        log_event(
            LOG_ERROR, o->s->xl, "shard-folder-missing",
            "the volume has no folder /.shard yet, and a mount of a subdirectory cannot make it: write a "
            "file larger than one block through a mount of the whole volume first");
    return makes ? -EOPNOTSUPP : -ENOENT;
}

static int
shard_dir_find(const struct shard_op *o, bool makes, struct inode **out)
{
    if (o->s->is_subdir)
        return shard_folder_find_by_gfid(o, makes, out);
    struct inode *root = inode_root(o->s->xl->graph->inodes);
    int err = shard_folder_find(o, root, ".shard", &shard_dir_gfid, makes, out);

    inode_unref(root);
    return err;
}

int
shard_dir(const struct shard_op *o, bool makes, struct inode **out)
{
    if ((*out = shard_kept(o, &o->s->dir)))
        return 0;
    int err = shard_dir_find(o, makes, out);

    if (!err)
        shard_keep(o, &o->s->dir, *out);
    return err;
}

int
shard_markers(const struct shard_op *o, bool makes, struct inode **out)
{
    struct inode *dir;

    if ((*out = shard_kept(o, &o->s->markers)))
        return 0;
    int err = shard_dir(o, makes, &dir);

    if (err)
        return err;
    err = shard_folder_find(o, dir, ".remove_me", &shard_markers_gfid, makes, out);
    inode_unref(dir);
    if (!err)
        shard_keep(o, &o->s->markers, *out);
    return err;
}

/* ---- shards ---------------------------------------------------------------------------------- */

void
shard_block_name(char out[SHARD_NAME_MAX], const struct gfid *gfid, uint64_t n)
{
    snprintf(out, SHARD_NAME_MAX, "%s.%llu", GFID(gfid), (unsigned long long)n);
}

static int
shard_find_in(const struct shard_op *o, struct inode *dir, const char *name, struct inode **out)
{
    *out = inode_find_child(o->s->xl->graph->inodes, dir, name);
    return *out ? 0 : shard_name_look(o, dir, name, out);
}

int
shard_block_find(const struct shard_op *o, uint64_t n, struct inode **out)
{
    char name[SHARD_NAME_MAX];
    struct inode *dir;
    int err = shard_dir(o, false, &dir);

    if (err)
        return err;
    shard_block_name(name, &o->base->gfid, n);
    err = shard_find_in(o, dir, name, out);
    inode_unref(dir);
    return err;
}

static int
shard_block_mknod(const struct shard_op *o, struct inode *dir, const char *name, struct inode **out)
{
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_mknod), dir, name);
    struct gfid gfid;

    gfid_random(&gfid);
    stk = shard_call_put_gfid(stk, DICT_KEY_GFID_REQ, &gfid);
    if (stk) {
        stk->caller.time_flags |= stk->caller.time_flags ? TIME_CTIME | TIME_MTIME | TIME_ATIME : 0;
        pthread_mutex_lock(&o->f->lock);
        stk->call.mode = S_IFREG | (o->f->last.mode & SHARD_MODE_MASK);
        pthread_mutex_unlock(&o->f->lock);
    }
    int ret = shard_call(o, stk);

    if (ret >= 0) {
        *out = inode_link(o->s->xl->graph->inodes, dir, name, &stk->reply.stat);
        ret = *out ? 0 : -ENOMEM;
    }
    if (stk)
        call_stack_free(stk);
    return ret;
}

int
shard_block_make(const struct shard_op *o, uint64_t n, struct inode **out)
{
    char name[SHARD_NAME_MAX];
    struct inode *dir;
    int err = shard_dir(o, true, &dir);

    if (err)
        return err;
    shard_block_name(name, &o->base->gfid, n);
    err = shard_find_in(o, dir, name, out);
    for (int i = 0; i < SHARD_MAKE_TRIES && err == -ENOENT; i++) {
        err = shard_block_mknod(o, dir, name, out);
        if (err == -EEXIST)
            err = shard_name_look(o, dir, name, out);
    }
    inode_unref(dir);
    return err;
}

void
shard_block_lost(const struct shard_op *o, uint64_t n, struct inode *inode)
{
    struct inode_table *t = o->s->xl->graph->inodes;
    char name[SHARD_NAME_MAX];
    struct inode *dir = shard_kept(o, &o->s->dir);

    if (!dir)
        return;
    shard_block_name(name, &o->base->gfid, n);
    struct inode *now = inode_find_child(t, dir, name);

    if (now == inode)
        inode_unlink(t, dir, name);
    inode_unref(now);
    inode_unref(dir);
}

int
shard_block_remove(const struct shard_op *o, struct inode *dir, const char *name, uint64_t *blocks)
{
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_unlink), dir, name);
    uint64_t freed = 0;

    stk = shard_call_put_uint(stk, DICT_KEY_FILE_BLOCK_COUNT, 0);
    if (stk) /* cluster/replicate ends its work on the object before it goes */
        stk->call.loc.inode = inode_find_child(o->s->xl->graph->inodes, dir, name);
    int ret = shard_call(o, stk);

    if (ret >= 0 && !dict_get_uint(stk->reply.xdata, DICT_KEY_FILE_BLOCK_COUNT, &freed) && blocks)
        *blocks = o->f ? shard_counted(o->f, freed) : freed;
    if (ret >= 0)
        atomic_fetch_add(&o->s->swept, 1);
    if (ret >= 0 || shard_is_missing(ret))
        inode_unlink(o->s->xl->graph->inodes, dir, name);
    if (stk)
        call_stack_free(stk);
    return ret >= 0 || shard_is_missing(ret) ? 0 : ret;
}

/* ---- removing several ------------------------------------------------------------------------ */

struct shard_removal {
    const struct shard_op *o;
    struct inode *dir;
    const struct gfid *gfid;
    uint64_t first;
    pthread_mutex_t lock; /* guards blocks, err */
    uint64_t blocks;
    int err;
};

static void
shard_removal_note(struct shard_removal *r, uint64_t blocks, int err)
{
    pthread_mutex_lock(&r->lock);
    r->blocks += blocks;
    r->err = r->err ? r->err : err;
    pthread_mutex_unlock(&r->lock);
}

static void
shard_remove_nth(void *arg, size_t n)
{
    struct shard_removal *r = arg;
    char name[SHARD_NAME_MAX];
    uint64_t blocks = 0;

    shard_block_name(name, r->gfid, r->first + n);
    int err = shard_block_remove(r->o, r->dir, name, &blocks);

    shard_removal_note(r, blocks, err);
}

int
shard_blocks_remove(const struct shard_op *o, const struct gfid *gfid, uint64_t first, uint64_t last,
                    uint64_t *blocks)
{
    struct shard_removal r = {.o = o, .gfid = gfid, .first = first};

    if (first > last)
        return 0;
    if (last - first >= SHARD_BLOCKS_BY_NUMBER)
        return shard_blocks_remove_listed(o, gfid, first, blocks);
    int err = shard_dir(o, false, &r.dir);

    if (err)
        return err == -ENOENT ? 0 : err;
    pthread_mutex_init(&r.lock, NULL);
    unsigned rate = (unsigned)shard_conf(o->s)->deletion_rate;

    coro_each(rate < SHARD_REMOVALS_MAX ? rate : SHARD_REMOVALS_MAX, last - first + 1, shard_remove_nth, &r);
    pthread_mutex_destroy(&r.lock);
    inode_unref(r.dir);
    if (blocks)
        *blocks += r.blocks;
    return r.err;
}

/* ---- listings -------------------------------------------------------------------------------- */

/* Reads one part of the listing. Returns the number of entries, or -errno; *offset: where the next part
 * begins. */
static int
shard_walk_part(const struct shard_op *o, struct fd *fd, uint64_t *offset,
                int (*fn)(const struct shard_op *o, const char *name, void *arg), void *arg)
{
    struct call_stack *stk = shard_call_fd(shard_call_internal(o, FOP_readdir), fd);

    if (stk) {
        stk->caller.time_flags = 0;
        stk->call.offset = *offset;
        stk->call.size = SHARD_LIST_BYTES;
    }
    int ret = shard_call(o, stk), err = 0;

    for (struct dirent_entry *e = ret > 0 ? stk->reply.entries : NULL; e && !err; e = e->next) {
        *offset = e->off;
        if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
            err = fn(o, e->name, arg);
    }
    if (stk)
        call_stack_free(stk);
    return err ? err : ret;
}

int
shard_dir_walk(const struct shard_op *o, struct inode *dir,
               int (*fn)(const struct shard_op *o, const char *name, void *arg), void *arg)
{
    struct call_stack *stk = shard_call_inode(shard_call_internal(o, FOP_opendir), dir);
    int ret = shard_call(o, stk);
    struct fd *fd = ret >= 0 ? stk->reply.fd : NULL;
    uint64_t offset = 0;

    if (fd)
        stk->reply.fd = NULL;
    if (stk)
        call_stack_free(stk);
    if (ret >= 0 && !fd)
        ret = -EIO;
    for (int more = 1; ret >= 0 && more > 0 && !atomic_load(&o->s->is_stopping);) {
        more = shard_walk_part(o, fd, &offset, fn, arg);
        ret = more < 0 ? more : 0;
    }
    fd_unref(fd);
    return ret < 0 ? ret : 0;
}

/* Returns whether this is the name of a shard of the file, and sets *n. */
static bool
shard_name_is_of(const char *name, const struct gfid *gfid, uint64_t *n)
{
    const char *text = GFID(gfid);
    size_t len = strlen(text);
    char *end;

    if (strncmp(name, text, len) != 0 || name[len] != '.' || !name[len + 1])
        return false;
    *n = strtoull(name + len + 1, &end, 10);
    return !*end;
}

static int
shard_remove_if_named(const struct shard_op *o, const char *name, void *arg)
{
    struct shard_removal *r = arg;
    uint64_t blocks = 0, n;

    if (!shard_name_is_of(name, r->gfid, &n) || n < r->first)
        return 0;
    int err = shard_block_remove(o, r->dir, name, &blocks);

    shard_removal_note(r, blocks, err);
    return 0;
}

int
shard_blocks_remove_listed(const struct shard_op *o, const struct gfid *gfid, uint64_t first,
                           uint64_t *blocks)
{
    struct shard_removal r = {.o = o, .gfid = gfid, .first = first};
    int err = shard_dir(o, false, &r.dir);

    if (err)
        return err == -ENOENT ? 0 : err;
    pthread_mutex_init(&r.lock, NULL);
    err = shard_dir_walk(o, r.dir, shard_remove_if_named, &r);
    pthread_mutex_destroy(&r.lock);
    inode_unref(r.dir);
    if (blocks)
        *blocks += r.blocks;
    return err ? err : r.err;
}

struct shard_next {
    uint64_t first, next; /* next: UINT64_MAX: none */
};

static int
shard_next_if_named(const struct shard_op *o, const char *name, void *arg)
{
    struct shard_next *x = arg;
    uint64_t n;

    if (shard_name_is_of(name, &o->base->gfid, &n) && n >= x->first && n < x->next)
        x->next = n;
    return 0;
}

int
shard_block_next(const struct shard_op *o, uint64_t first, uint64_t *next)
{
    struct shard_next x = {.first = first, .next = UINT64_MAX};
    struct inode *dir;
    int err = shard_dir(o, false, &dir);

    if (!err) {
        err = shard_dir_walk(o, dir, shard_next_if_named, &x);
        inode_unref(dir);
    }
    if (!err && atomic_load(&o->s->is_stopping))
        err = -ENOTCONN; /* the walk has not come to its end */
    *next = x.next;
    return err == -ENOENT ? 0 : err;
}
