/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Directories. Entries come in batches with their attributes, because a list without attributes has the inode
 * numbers of the brick's local file system, which no stat returns. An offset is the bricks' cookie after an
 * entry. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"

enum { DIR_BYTES = 64 << 10 };

struct dir_item {
    uint64_t off; /* cookie after this entry */
    uint32_t type;
    struct iatt iatt; /* all zero: the brick has sent none */
    char name[FOP_NAME_MAX + 1];
};

struct dir_batch {
    size_t count, next;
    bool is_last; /* nothing follows the batch */
    struct dir_item items[];
};

struct dir_request {
    struct request r;
    struct glfs_fd *fd;
    const char *path;
    struct fd *opened;
    char *real; /* PATH_MAX bytes */
    struct dir_batch *batch;
};

static struct dir_request *
dir_of(struct request *r)
{
    return caa_container_of(r, struct dir_request, r);
}

void
dir_batch_free(struct dir_batch *b)
{
    free(b);
}

/* ---- opening --------------------------------------------------------------------------------- */

static int64_t
dir_open_go(struct request *r)
{
    struct dir_request *q = dir_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, PLACE_FOLLOW, &p, q->real);

    if (!ret && !S_ISDIR(p.iatt.mode))
        ret = -ENOTDIR;
    struct call_stack *stk = ret ? NULL : request_call(r, FOP_opendir);

    if (!ret && !stk)
        ret = -ENOMEM;
    if (stk) {
        stk->call.loc.inode = inode_ref(p.inode);
        ret = request_wind(r, stk);
        if (ret >= 0) {
            q->opened = stk->reply.fd;
            stk->reply.fd = NULL;
            ret = q->opened ? 0 : -EIO;
        }
        call_stack_free(stk);
    }
    place_release(&p);
    return ret;
}

static int64_t
drop_dir_go(struct request *r)
{
    fd_unref(dir_of(r)->opened);
    return 0;
}

struct glfs_fd *
api_opendir(struct glfs *fs, const struct glfs_object *at, const char *path)
{
    char *real = malloc(PATH_MAX);
    struct dir_request q = {.r.at = at, .path = path, .real = real};
    struct glfs_fd *f = NULL;

    if (real && request_run(&q.r, fs, dir_open_go) == 0) {
        f = api_file_new(fs, q.opened, at ? NULL : real); /* the path of an object is not known */
        if (!f) {
            request_run(&q.r, fs, drop_dir_go);
            errno = ENOMEM;
        }
    }
    free(real);
    return f;
}

GFAPI struct glfs_fd *
glfs_opendir(struct glfs *fs, const char *path)
{
    return api_opendir(fs, NULL, path);
}

/* ---- listing --------------------------------------------------------------------------------- */

static struct dir_batch *
make_batch(const struct fop_reply *reply)
{
    size_t count = 0;

    for (const struct dirent_entry *e = reply->entries; e; e = e->next)
        count++;
    struct dir_batch *b = malloc(sizeof *b + count * sizeof b->items[0]);

    if (!b)
        return NULL;
    b->count = b->next = 0;
    b->is_last = !count || reply->op_errno == ENOENT;
    for (const struct dirent_entry *e = reply->entries; e; e = e->next) {
        struct dir_item *i = &b->items[b->count];

        if (e->name_len > FOP_NAME_MAX) /* of a brick that lies */
            continue;
        i->off = e->off;
        i->type = e->type;
        i->iatt = e->iatt;
        memcpy(i->name, e->name, e->name_len);
        i->name[e->name_len] = '\0';
        b->count++;
    }
    return b;
}

static int64_t
dir_list_go(struct request *r)
{
    struct dir_request *q = dir_of(r);
    struct call_stack *stk = request_call_on(r, FOP_readdirp, q->fd);

    if (!stk)
        return -ENOMEM;
    stk->call.size = DIR_BYTES;
    stk->call.offset = (uint64_t)q->fd->offset;
    int64_t ret = request_wind(r, stk);

    if (ret >= 0)
        ret = (q->batch = make_batch(&stk->reply)) ? 0 : -ENOMEM;
    call_stack_free(stk);
    return ret;
}

/* Returns the next entry, which is valid until the next call; NULL: the end, or with *ret -1 an error. The
 * position's lock is held. */
static const struct dir_item *
next_item(struct glfs_fd *fd, int *ret)
{
    struct dir_request q = {.fd = fd};

    *ret = 0;
    if (!fd->batch || fd->batch->next == fd->batch->count) {
        if (fd->batch && fd->batch->is_last)
            return NULL;
        if (request_run_on(&q.r, fd, dir_list_go) < 0) {
            *ret = -1;
            return NULL;
        }
        free(fd->batch);
        fd->batch = q.batch;
        if (!fd->batch->count)
            return NULL;
    }
    const struct dir_item *i = &fd->batch->items[fd->batch->next++];

    fd->offset = (off_t)i->off;
    return i;
}

static int64_t
look_at_item_go(struct request *r)
{
    struct dir_request *q = dir_of(r);
    struct dir_item *i = &q->fd->batch->items[q->fd->batch->next - 1];
    struct call_stack *stk = request_call(r, FOP_lookup);
    int ret = stk ? request_ask_gfid(stk) : -ENOMEM;

    if (!ret) {
        stk->call.loc.parent = inode_ref(q->fd->fd->inode);
        stk->call.loc.name = i->name;
        ret = request_wind(r, stk);
    }
    if (ret >= 0)
        i->iatt = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return ret;
}

static bool
is_dot_item(const struct dir_item *i)
{
    return strcmp(i->name, ".") == 0 || strcmp(i->name, "..") == 0;
}

int
api_read_entry(struct glfs_fd *fd, struct iatt *a, bool needs_gfid, struct dirent *entry, struct dirent **out)
{
    struct dir_request q = {.fd = fd};
    int ret;

    *out = NULL;
    if (!fd || !fd->fd || !fd->fd->is_dir) {
        errno = fd && fd->fd ? ENOTDIR : EBADF;
        return -1;
    }
    pthread_mutex_lock(&fd->position);
    entry = entry ? entry : &fd->entry;
    const struct dir_item *i = next_item(fd, &ret);

    if (i && a && (!i->iatt.mode || (needs_gfid && gfid_is_null(&i->iatt.gfid))) && !is_dot_item(i))
        (void)request_run_on(&q.r, fd, look_at_item_go); /* a name that is gone stays without attributes */
    if (i) {
        *entry = (struct dirent){.d_ino = i->iatt.ino,
                                 .d_off = (off_t)i->off,
                                 .d_reclen = sizeof *entry,
                                 .d_type = (unsigned char)i->type};
        snprintf(entry->d_name, sizeof entry->d_name, "%s", i->name);
        if (a)
            *a = i->iatt;
        *out = entry;
    }
    pthread_mutex_unlock(&fd->position);
    return ret;
}

static int
read_entry(struct glfs_fd *fd, struct stat *st, struct dirent *entry, struct dirent **out)
{
    struct iatt a;
    int ret = api_read_entry(fd, st ? &a : NULL, false, entry, out);

    if (st && *out)
        api_stat_of(fd->fs, &a, st);
    return ret;
}

GFAPI int
glfs_readdirplus_r(struct glfs_fd *fd, struct stat *st, struct dirent *entry, struct dirent **out)
{
    struct dirent *own;

    return read_entry(fd, st, entry, out ? out : &own);
}

GFAPI int
glfs_readdir_r(struct glfs_fd *fd, struct dirent *entry, struct dirent **out)
{
    return glfs_readdirplus_r(fd, NULL, entry, out);
}

GFAPI struct dirent *
glfs_readdirplus(struct glfs_fd *fd, struct stat *st)
{
    struct dirent *out;

    read_entry(fd, st, NULL, &out);
    return out;
}

GFAPI struct dirent *
glfs_readdir(struct glfs_fd *fd)
{
    return glfs_readdirplus(fd, NULL);
}

GFAPI long
glfs_telldir(struct glfs_fd *fd)
{
    if (!fd) {
        errno = EBADF;
        return -1;
    }
    pthread_mutex_lock(&fd->position);
    long at = fd->offset;

    pthread_mutex_unlock(&fd->position);
    return at;
}

GFAPI void
glfs_seekdir(struct glfs_fd *fd, long offset)
{
    if (!fd)
        return;
    pthread_mutex_lock(&fd->position);
    fd->offset = offset;
    free(fd->batch);
    fd->batch = NULL;
    pthread_mutex_unlock(&fd->position);
}
