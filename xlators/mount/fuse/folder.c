/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Attributes of folders, kept for as long as the kernel may believe them.
 *
 * The kernel forgets a folder's attributes whenever this mount makes or removes a name in it, and asks for
 * them again before the next name: one more call for each replica set and file. But the reply of the change
 * brought the folder's new times. So what the bricks said of a folder is kept for --attribute-timeout, with
 * the times of our own changes put in; the kernel is told how much of that time is left. What other clients
 * do to a folder is seen when it was before: no later than --attribute-timeout after it was done.
 *
 *      asked, nothing kept     the bricks answer; kept, unless we have changed a name meanwhile. So is what a
 *                              LOOKUP of the folder says
 *      opened, with a time     nothing is kept: it may be the time of its last access
 *      a name has been changed the folder's times are those of the reply, if nobody else has changed it
 *                              in between (its times before the change are not newer than what is kept);
 *                              else nothing is kept
 *      its own attributes or xattrs are set; a folder has been removed or moved: nothing is kept
 *      a brick says that another client has changed it (news.c): nothing is kept
 *
 * Only times and the number of links are put in: on a distributed volume the reply is one subvolume's.
 * Files' attributes are not kept: the kernel goes by their size. `folder-attributes off` keeps none. */
#include "event/timer.h"
#include "xlators/mount/fuse/fuse-internal.h"

struct fuse_folder {
    pthread_mutex_t lock; /* guards what follows. A leaf */
    unsigned changing;    /* changes that have no reply yet */
    uint32_t changes;     /* how many have begun */
    uint32_t epoch;       /* the mount's, when it was kept */
    uint64_t until_ns;    /* 0: nothing is kept */
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
make(struct fuse_mount *m, struct fuse_node *node)
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

/* NULL: no folder, nothing is to be kept, or no memory. */
static struct fuse_folder *
folder_of(struct fuse_mount *m, struct fuse_node *node)
{
    if (!node || !S_ISDIR(node->inode->type) || !fuse_conf(m)->folder_attributes || m->attr_timeout_s <= 0)
        return NULL;
    struct fuse_folder *f = atomic_load(&node->folder);

    return f ? f : make(m, node);
}

/* ---- asked ----------------------------------------------------------------------------------- */

bool
fuse_folder_get(struct fuse_mount *m, struct fuse_node *node, struct iatt *out, double *left_s)
{
    struct fuse_folder *f = folder_of(m, node);
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
    struct fuse_folder_look look = {.folder = folder_of(m, node)};

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
    if (f->changes == look->changes) { /* no change of ours has begun since */
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
    f->changes++; /* who looks just now may have seen it as it was */
    f->until_ns = 0;
    pthread_mutex_unlock(&f->lock);
}

/* ---- changed --------------------------------------------------------------------------------- */

struct fuse_folder *
fuse_folder_change(struct fuse_mount *m, struct fuse_node *node)
{
    struct fuse_folder *f = folder_of(m, node);

    if (!f)
        return NULL;
    pthread_mutex_lock(&f->lock);
    f->changing++;
    f->changes++;
    pthread_mutex_unlock(&f->lock);
    return f;
}

static int
compare_times(int64_t a, uint32_t a_nsec, int64_t b, uint32_t b_nsec)
{
    return a != b ? (a > b) - (a < b) : (a_nsec > b_nsec) - (a_nsec < b_nsec);
}

static int
compare_ctimes(const struct iatt *a, const struct iatt *b)
{
    return compare_times(a->ctime, a->ctime_nsec, b->ctime, b->ctime_nsec);
}

/* Of two changes at once the later one's times stay. */
static void
put_times(struct iatt *kept, const struct iatt *post)
{
    if (compare_times(post->mtime, post->mtime_nsec, kept->mtime, kept->mtime_nsec) > 0) {
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
