/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Attributes of folders, cached for as long as the kernel may cache attributes.
 *
 * The kernel drops a folder's attributes whenever this mount creates or removes a name in the folder, and
 * asks for the attributes before the next name: one more call for each replica set and file. But the reply
 * of the change contains the folder's new times. So attributes from the bricks are cached for
 * --attribute-timeout, updated with the times of this mount's changes; the kernel is told the remaining
 * part of that time. Changes by other clients become visible as without this cache: no later than
 * --attribute-timeout after the change.
 *
 *      GETATTR, nothing cached the bricks answer; the reply is cached, unless this mount has changed a name
 *                              meanwhile. A LOOKUP of the folder is cached, too
 *      OPENDIR with a time     drops the cache: the time may be that of the last access
 *      change of a name        takes the folder's times from the reply, if no other client has changed the
 *                              folder in between (its times before the change are not newer than the cached
 *                              times); else drops the cache
 *      change of the folder's attributes or xattrs, removal or rename of a folder: drops the cache
 *      invalidation from a brick after another client's change (news.c): drops the cache
 *
 * Only times and the number of links are updated, because on a distributed volume the reply is one
 * subvolume's. Attributes of files are not cached, because the kernel relies on their size.
 * `folder-attributes off` disables the cache. */
#include "event/timer.h"
#include "xlators/mount/fuse/fuse-internal.h"

struct fuse_folder {
    pthread_mutex_t lock; /* guards the fields below; a leaf lock */
    unsigned changing;    /* number of changes without a reply yet */
    uint32_t changes;     /* number of changes begun */
    uint32_t epoch;       /* the mount's epoch when the attributes were cached */
    uint64_t until_ns;    /* 0: nothing is cached */
    struct iatt iatt;
};

static struct mem_pool *pool;

int
fuse_folder_pool_init(void)
{
    if (!pool)
        pool = mem_pool_new(struct fuse_folder, 0);
    return pool ? 0 : -1;
}

void
fuse_folder_free(struct fuse_folder *f)
{
    if (f)
        pthread_mutex_destroy(&f->lock);
    mem_put(f);
}

static struct fuse_folder *
fuse_folder_make(struct fuse_mount *m, struct fuse_node *node)
{
    struct fuse_folder *f = mem_get0_owner(pool, m->owner), *other = NULL;

    if (!f)
        return NULL;
    pthread_mutex_init(&f->lock, NULL);
    if (atomic_compare_exchange_strong(&node->folder, &other, f))
        return f;
    fuse_folder_free(f);
    return other;
}

/* Returns the cache of the folder, made on first use. NULL: not a folder, caching is off, or out of memory.
 */
static struct fuse_folder *
fuse_folder_of(struct fuse_mount *m, struct fuse_node *node)
{
    if (!node || !S_ISDIR(node->inode->type) || !fuse_conf(m)->folder_attributes || m->attr_timeout_s <= 0)
        return NULL;
    struct fuse_folder *f = atomic_load(&node->folder);

    return f ? f : fuse_folder_make(m, node);
}

/* ---- reading the cache ----------------------------------------------------------------------- */

bool
fuse_folder_get(struct fuse_mount *m, struct fuse_node *node, struct iatt *out, double *left_s)
{
    struct fuse_folder *f = fuse_folder_of(m, node);
    uint64_t now = clock_mono_ns();

    if (!f)
        return false;
    pthread_mutex_lock(&f->lock);
    bool is_kept = f->until_ns > now && f->epoch == atomic_load(&m->folder_epoch);

    if (is_kept) {
        *out = f->iatt;
        *left_s = (double)(f->until_ns - now) / 1e9;
    }
    pthread_mutex_unlock(&f->lock);
    return is_kept;
}

struct fuse_folder_look
fuse_folder_look(struct fuse_mount *m, struct fuse_node *node)
{
    struct fuse_folder_look look = {.folder = fuse_folder_of(m, node)};

    if (!look.folder)
        return look;
    look.at_ns = clock_mono_ns();
    look.epoch = atomic_load(&m->folder_epoch);
    pthread_mutex_lock(&look.folder->lock);
    look.changes = look.folder->changes;
    look.is_quiet = !look.folder->changing;
    pthread_mutex_unlock(&look.folder->lock);
    return look;
}

void
fuse_folder_keep(struct fuse_mount *m, const struct fuse_folder_look *look, const struct iatt *iatt)
{
    struct fuse_folder *f = look->folder;

    if (!f || !look->is_quiet)
        return;
    pthread_mutex_lock(&f->lock);
    if (f->changes == look->changes) { /* this mount has begun no change since */
        f->iatt = *iatt;
        f->epoch = look->epoch;
        f->until_ns = look->at_ns + (uint64_t)(m->attr_timeout_s * 1e9);
    }
    pthread_mutex_unlock(&f->lock);
}

void
fuse_folder_drop(struct fuse_node *node)
{
    struct fuse_folder *f = atomic_load(&node->folder);

    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->changes++; /* a concurrent look may have read the old attributes */
    f->until_ns = 0;
    pthread_mutex_unlock(&f->lock);
}

/* ---- changes --------------------------------------------------------------------------------- */

struct fuse_folder *
fuse_folder_change(struct fuse_mount *m, struct fuse_node *node)
{
    struct fuse_folder *f = fuse_folder_of(m, node);

    if (!f)
        return NULL;
    pthread_mutex_lock(&f->lock);
    f->changing++;
    f->changes++;
    pthread_mutex_unlock(&f->lock);
    return f;
}

static int
compare_folder_times(int64_t a, uint32_t a_nsec, int64_t b, uint32_t b_nsec)
{
    return a != b ? (a > b) - (a < b) : (a_nsec > b_nsec) - (a_nsec < b_nsec);
}

static int
compare_ctimes(const struct iatt *a, const struct iatt *b)
{
    return compare_folder_times(a->ctime, a->ctime_nsec, b->ctime, b->ctime_nsec);
}

/* Of two concurrent changes the later times remain. */
static void
put_times(struct iatt *kept, const struct iatt *post)
{
    if (compare_folder_times(post->mtime, post->mtime_nsec, kept->mtime, kept->mtime_nsec) > 0) {
        kept->mtime = post->mtime;
        kept->mtime_nsec = post->mtime_nsec;
    }
    if (compare_ctimes(post, kept) > 0) {
        kept->ctime = post->ctime;
        kept->ctime_nsec = post->ctime_nsec;
    }
}

void
fuse_folder_changed(struct fuse_folder *f, const struct iatt *pre, const struct iatt *post)
{
    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->changing--;
    if (!post || !post->ctime || !pre->ctime || !gfid_equal(&post->gfid, &f->iatt.gfid) ||
        (!f->changing && compare_ctimes(pre, &f->iatt) > 0)) {
        f->until_ns = 0;
    } else {
        put_times(&f->iatt, post);
        f->iatt.nlink += post->nlink - pre->nlink;
    }
    pthread_mutex_unlock(&f->lock);
}
