/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Directories. Entries of a brick's list that did not fit into the kernel's buffer are requested again,
 * from the cookie of the last entry that fit. The kernel always asks for entries after the last entry; if the
 * end of the list came together with that entry, the request is answered here. A new start (rewinddir) asks
 * the bricks again. Bricks are asked for attributes even when the kernel wants only names: inode numbers in a
 * list without attributes are those of the brick's local file system, which no stat returns. */
#include <errno.h>
#include <stdlib.h>

#include "xlators/mount/fuse/fuse-internal.h"

enum { LIST_MAX = 128 << 10 };

static bool
is_dot_dirent(const struct dirent_entry *e)
{
    return e->name[0] == '.' && (e->name[1] == '\0' || (e->name[1] == '.' && e->name[2] == '\0'));
}

static void
plain_stat(const struct dirent_entry *e, struct stat *st)
{
    *st = (struct stat){.st_ino = e->ino, .st_mode = (mode_t)(e->type << 12)};
}

/* Returns the size of the entry; more than `room`: the entry was not added. */
static size_t
add_plain(struct task *t, char *at, size_t room, const struct dirent_entry *e)
{
    struct stat st;

    plain_stat(e, &st);
    return fuse_add_direntry(t->req, at, room, e->name, &st, (off_t)e->off);
}

/* Adds an entry with attributes and a number, which saves a lookup; without both if the brick sent none. */
static size_t
add_plus(struct task *t, char *at, size_t room, const struct dirent_entry *e)
{
    struct fuse_entry_param param = {0};
    size_t bytes = fuse_add_direntry_plus(t->req, NULL, 0, e->name, &param, 0);

    if (bytes > room)
        return bytes;
    if (is_dot_dirent(e) || entry_fill(t->m, &e->iatt, &param)) {
        param = (struct fuse_entry_param){0};
        plain_stat(e, &param.attr);
    }
    return fuse_add_direntry_plus(t->req, at, room, e->name, &param, (off_t)e->off);
}

/* Takes back the lookups of the entries, because the kernel has not taken the list. */
static void
take_back_lookups(struct task *t, const struct dirent_entry *end)
{
    for (const struct dirent_entry *e = t->stk->reply.entries; e != end; e = e->next) {
        struct inode *inode = is_dot_dirent(e) ? NULL : inode_find(t->m->xl->graph->inodes, &e->iatt.gfid);

        if (inode)
            node_forget(t->m, inode, 1);
        inode_unref(inode);
    }
}

static void
reply_list(struct task *t, size_t (*add)(struct task *t, char *at, size_t room, const struct dirent_entry *e))
{
    struct iobuf *buf = iobuf_get(t->size);
    const struct dirent_entry *e = t->stk->reply.entries;
    uint64_t last = 0;
    size_t used = 0;

    if (!buf) {
        task_fail(t, -ENOMEM);
        return;
    }
    for (; e; e = e->next) {
        size_t bytes = add(t, buf->bytes + used, t->size - used, e);

        if (bytes > t->size - used)
            break;
        used += bytes;
        last = e->off;
    }
    t->file->is_in_list = used > 0;
    if (!e && t->stk->reply.op_errno == ENOENT)
        atomic_store(&t->file->end, last);
    if (fuse_reply_buf(t->req, buf->bytes, used) && add == add_plus)
        take_back_lookups(t, e);
    iobuf_unref(buf);
}

static void
fuse_readdir_go(struct task *t)
{
    int ret = task_call(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        reply_list(t, add_plain);
}

static void
fuse_readdirplus_go(struct task *t)
{
    int ret = task_call(t);

    if (ret < 0)
        task_fail(t, ret);
    else
        reply_list(t, add_plus);
}

static void
task_start_list(fuse_req_t req, void (*go)(struct task *t), fuse_ino_t number, size_t size, off_t off,
     struct fuse_file_info *fi)
{
    struct fuse_file *f = file_of(fuse_req_userdata(req), fi);

    if (off == 0) {
        atomic_store(&f->end, 0);
    } else if ((uint64_t)off == atomic_load(&f->end)) {
        f->is_in_list = false;
        fuse_reply_buf(req, NULL, 0);
        return;
    }
    struct task *t = task_new(req, FOP_readdirp, number, go);

    if (!t)
        return;
    t->file = f;
    t->err = f->is_lost ? -EBADFD : 0;
    task_set_fd(t, file_listing_fd(t->m, t->file, off == 0));
    t->size = size < LIST_MAX ? size : LIST_MAX;
    t->stk->call.size = t->size;
    t->stk->call.offset = (uint64_t)off;
    task_start(t);
}

void
op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi)
{
    task_start_list(req, fuse_readdir_go, number, size, off, fi);
}

void
op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi)
{
    task_start_list(req, fuse_readdirplus_go, number, size, off, fi);
}

static void
fuse_fsyncdir_go(struct task *t)
{
    task_result(t, task_call(t));
}

void
op_fsyncdir(fuse_req_t req, fuse_ino_t number, int datasync, struct fuse_file_info *fi)
{
    struct task *t = task_new(req, FOP_fsyncdir, number, fuse_fsyncdir_go);

    if (!t)
        return;
    task_set_file(t, fi);
    t->stk->call.flags = (uint32_t)datasync;
    task_start(t);
}
