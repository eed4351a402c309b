/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* readdir, readdirp.
 *
 * Entries come from getdents64(2) on the fd's own descriptor. d_off is the cookie that clients send back. The
 * descriptor's position is kept in the fd's context, so a listing from front to back seeks only when a batch
 * was cut short. An anonymous fd is opened for the call and seeks each time.
 *
 * A batch ends when the next entry would exceed the rest of the request's size, by stock's measure (brick
 * 4.12). op_errno is ENOENT when the directory's end was reached. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/syscall.h>

#include "xlators/storage/posix/data/data.h"
#include "xlators/storage/posix/entry/readdir.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"

#define ENTRY_COST 208u /* size of stock's record in memory, without the name */
#define BATCH_MAX 131072u

int
posix_dir_scan(int fd, char *buf, size_t size, posix_dir_fn fn, void *arg)
{
    for (;;) {
        long n = syscall(SYS_getdents64, fd, buf, size);
        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        for (long at = 0; at < n;) {
            const struct dirent64 *d = (const struct dirent64 *)(buf + at);
            at += d->d_reclen;
            int r = fn(d, arg);
            if (r != 0)
                return r;
        }
    }
}

/* A running READDIR(P). */
struct listing {
    struct xlator *xl;
    struct call_stack *stk;
    struct inode *dir;
    int fd;
    bool is_plus, is_root, skips_dirs;
    uint32_t left; /* of the budget */
    uint64_t off;  /* cookie of the last entry that was added or skipped */
    struct dirent_entry **tail;
    int32_t count;
    struct posix_fill fill; /* READDIRP */
};

static bool
readdir_is_dot_name(const char *name)
{
    return name[0] == '.' && name[1] == '\0';
}

static bool
is_dot_dot(const char *name)
{
    return name[0] == '.' && name[1] == '.' && name[2] == '\0';
}

/* Clients must not see the directory above the brick: returns the attributes of the root, without its
 * identity (wire 5.7). */
static int
fill_above_root(struct listing *l, struct dirent_entry *e)
{
    int err = posix_iatt_fd(l->xl, l->fd, l->dir, &e->iatt);

    e->iatt.gfid = gfid_null;
    e->iatt.ino = UINT64_MAX;
    e->iatt.flags = IATT_FLAGS_NO_INO;
    e->ino = UINT64_MAX;
    return err;
}

/* Fills attributes and xattrs of an entry. An entry that was removed meanwhile stays in the list with a zero
 * iatt. */
static int
fill_plus(struct listing *l, struct dirent_entry *e)
{
    struct inode *inode = NULL;
    POSIX_OBJ(obj);

    posix_obj_at(posix_of(l->xl), l->fd, e->name, &obj);
    if (l->is_root && is_dot_dot(e->name))
        return fill_above_root(l, e);
    if (readdir_is_dot_name(e->name))
        inode = inode_ref(l->dir);
    else if (!is_dot_dot(e->name))
        inode = inode_find_child(l->dir->table, l->dir, e->name);
    if (inode)
        posix_obj_set_inode(&obj, inode);

    int err = posix_iatt(l->xl, &obj, inode, &e->iatt, NULL);
    if (err == -ESTALE && inode != NULL) { /* the name means another object than in the table */
        inode_unref(inode);
        inode = NULL;
        err = posix_iatt(l->xl, &obj, NULL, &e->iatt, NULL);
    }
    if (err == 0) {
        e->ino = e->iatt.ino;
        l->fill.obj = &obj;
        l->fill.inode = inode;
        l->fill.iatt = &e->iatt;
        l->fill.reply = &e->dict;
        if (l->fill.asked != NULL)
            err = posix_xattr_fill(&l->fill);
    }
    inode_unref(inode);
    if (err == -ENOMEM)
        return err;
    if (err) {
        memset(&e->iatt, 0, sizeof e->iatt);
        e->dict = NULL;
    }
    return 0;
}

/* Stats the entry if the directory does not have its type. */
static uint32_t
entry_type(const struct listing *l, const struct dirent64 *d)
{
    struct stat st;

    if (d->d_type != DT_UNKNOWN || fstatat(l->fd, d->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return d->d_type;
    return IFTODT(st.st_mode);
}

/* Returns 0: continue; 1: the batch is full; -errno. */
static int
list_entry(const struct dirent64 *d, void *arg)
{
    struct listing *l = arg;
    size_t len = strlen(d->d_name);
    uint32_t cost = ENTRY_COST + (uint32_t)len + 1, type;

    if (l->is_root && strcmp(d->d_name, POSIX_HIDDEN_DIR) == 0)
        goto skip;
    type = entry_type(l, d);
    if (l->skips_dirs && type == DT_DIR)
        goto skip;
    if (cost > l->left)
        return 1;

    struct dirent_entry *e = arena_zalloc(&l->stk->arena, sizeof *e);
    if (e == NULL)
        return -ENOMEM;
    e->name = arena_dup(&l->stk->arena, d->d_name, len);
    if (e->name == NULL)
        return -ENOMEM;
    e->name_len = (uint32_t)len;
    e->ino = d->d_ino;
    e->off = (uint64_t)d->d_off;
    e->type = type;
    if (l->is_plus) {
        int err = fill_plus(l, e);
        if (err)
            return err;
    }
    *l->tail = e;
    l->tail = &e->next;
    l->count++;
    l->left -= cost;
skip:
    l->off = (uint64_t)d->d_off;
    return 0;
}

/* Room for about as many entries as fit the budget, so that few are read twice: a kernel entry takes 24 bytes
 * and its name, one of the budget 208. */
static size_t
scan_size(uint32_t budget)
{
    size_t size = budget / 5;

    return size < 1024 ? 1024 : size > 32768 ? 32768 : size;
}

/* Lists from the call's offset on. *at: the descriptor's position (in and out). */
static int
list_batch(struct listing *l, uint64_t *at)
{
    char buf[32768] __attribute__((aligned(8)));
    uint64_t from = l->stk->call.offset;

    if (from > INT64_MAX)
        return -EINVAL;
    /* A rewind always seeks, because the directory must be read anew. */
    if ((from == 0 || from != *at) && lseek(l->fd, (off_t)from, SEEK_SET) < 0)
        return -errno;
    l->off = from;
    *at = UINT64_MAX; /* unknown until the batch has succeeded */
    int r = posix_dir_scan(l->fd, buf, scan_size(l->left), list_entry, l);
    if (r < 0)
        return r;
    if (r == 0) {
        *at = l->off;
        l->stk->reply.op_errno = ENOENT;
    }
    return 0;
}

static int
list_directory(struct xlator *xl, struct call_stack *stk, bool is_plus)
{
    POSIX_IO(io);
    int err = posix_io_get(xl, stk->call.fd, 0, &io);

    if (err)
        return err;
    if (io.inode->type != S_IFDIR)
        return -ENOTDIR;
    struct listing l = {
        .xl = xl,
        .stk = stk,
        .dir = io.inode,
        .fd = io.fd,
        .is_plus = is_plus,
        .is_root = gfid_is_root(&io.inode->gfid),
        .skips_dirs = dict_get_flag(stk->call.xdata, DICT_KEY_READDIR_FILTER_DIRS),
        .left = stk->call.size < BATCH_MAX ? (uint32_t)stk->call.size : BATCH_MAX,
        .tail = &stk->reply.entries,
        .fill = {.xl = xl, .asked = stk->call.xdata, .where = POSIX_FILL_READDIRP, .arena = &stk->arena,
                 .client = stk->client},
    };
    l.fill.content_room = POSIX_CONTENT_MAX;
    if (io.pfd != NULL) {
        /* Two calls on one fd share its position. */
        pthread_mutex_lock(&io.pfd->dir_lock);
        err = list_batch(&l, &io.pfd->dir_off);
        pthread_mutex_unlock(&io.pfd->dir_lock);
    } else {
        uint64_t at = 0;
        err = list_batch(&l, &at);
    }
    if (err)
        return err;
    stk->reply.op_ret = l.count;
    return XL_DONE;
}

xl_verdict
posix_fop_readdir(struct xlator *xl, struct call_stack *stk)
{
    return list_directory(xl, stk, false);
}

xl_verdict
posix_fop_readdirp(struct xlator *xl, struct call_stack *stk)
{
    return list_directory(xl, stk, true);
}
