/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* READDIR of a virtual directory (spec: brick 7.5): the real directory's entries, without base files. Stale
 * base files are removed during the listing. With get-gfid-type, the type of each entry is the type of the
 * object that it names; the layer looks the objects up below itself, one after another. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "graph/graph.h"
#include "xlators/features/index/index-internal.h"

/* bytes of the reply's size per entry, besides the name: the same figure as storage's */
#define ENTRY_COST 208
#define GETDENTS_BYTES 8192

/* ---- the descriptor -------------------------------------------------------------------------- */

struct position {
    int fd;
    bool is_kept; /* belongs to the private listing, which is busy */
};

static int
position_open(struct xlator *xl, const struct fd *owner, const char *path, uint64_t at, struct position *out)
{
    struct index_private *priv = index_private(xl);
    struct index_listing *l = &priv->listing;
    int stale = -1;

    *out = (struct position){.fd = -1};
    pthread_mutex_lock(&priv->mutex);
    if (!l->is_busy && !owner->is_anonymous) {
        out->is_kept = l->is_busy = true;
        if (l->owner == owner && l->at == at && at)
            out->fd = l->fd;
        else
            stale = l->fd;
        l->owner = owner;
        l->fd = -1; /* owned by this call while the listing is busy */
    }
    pthread_mutex_unlock(&priv->mutex);
    if (stale >= 0)
        close(stale);
    if (out->fd >= 0)
        return 0;
    out->fd = openat(priv->base_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (out->fd >= 0 && at && lseek(out->fd, (off_t)at, SEEK_SET) < 0) {
        int err = errno;

        close(out->fd);
        out->fd = -1;
        return -err;
    }
    return out->fd < 0 ? -errno : 0;
}

/* `at` 0: the listing has reached the end. */
static void
position_close(struct xlator *xl, struct position *p, uint64_t at)
{
    struct index_private *priv = index_private(xl);
    struct index_listing *l = &priv->listing;
    bool is_kept = p->is_kept && at && p->fd >= 0;

    if (p->is_kept) {
        pthread_mutex_lock(&priv->mutex);
        l->is_busy = false;
        l->at = at;
        l->fd = is_kept ? p->fd : -1;
        if (!is_kept)
            l->owner = NULL;
        pthread_mutex_unlock(&priv->mutex);
    }
    if (!is_kept && p->fd >= 0)
        close(p->fd);
}

void
index_fd_closed(struct xlator *xl, struct fd *fd)
{
    struct index_private *priv = index_private(xl);
    struct index_listing *l = &priv->listing;
    int stale = -1;

    pthread_mutex_lock(&priv->mutex);
    if (l->owner == fd && !l->is_busy) {
        stale = l->fd;
        l->fd = -1;
        l->owner = NULL;
    }
    pthread_mutex_unlock(&priv->mutex);
    if (stale >= 0)
        close(stale);
}

/* ---- listing --------------------------------------------------------------------------------- */

struct linux_dirent64 {
    uint64_t ino;
    int64_t off;
    uint16_t len;
    uint8_t type;
    char name[];
};

struct listing {
    struct xlator *xl;
    struct call_stack *stk;
    enum index_virtual v;
    struct dirent_entry **tail, *last; /* of the returned entries; NULL: none yet */
    uint64_t left; /* of the reply's size */
    uint64_t at;   /* cookie of the last entry examined */
    int count;
};

/* Base files are not entries, and an old base file is useless. But the reader comes back with the cookie of
 * the entry before it, and that cookie must not lead to a removed file: a tmpfs then starts from the
 * beginning, and the reader sees entries twice. So the cookie is set to the position behind the base file. */
static bool
is_hidden(struct listing *l, const struct linux_dirent64 *d, int fd)
{
    enum index_type type = (enum index_type)(l->v - VIRTUAL_XATTROP);

    if (l->v != VIRTUAL_XATTROP && l->v != VIRTUAL_DIRTY)
        return false;
    if (!index_is_base_name(type, d->name))
        return false;
    if (l->last)
        l->last->off = (uint64_t)d->off;
    if (!index_is_current_base(l->xl, type, d->name))
        (void)unlinkat(fd, d->name, 0); /* best effort: the next listing tries again */
    return true;
}

/* Returns 1: added, 0: no room left, -ENOMEM. */
static int
entry_add(struct listing *l, const struct linux_dirent64 *d)
{
    size_t name_len = strlen(d->name);
    uint64_t cost = ENTRY_COST + name_len + 1;

    if (cost > l->left)
        return 0;
    struct dirent_entry *e = arena_zalloc(&l->stk->arena, sizeof *e);
    char *name = e ? arena_dup(&l->stk->arena, d->name, name_len) : NULL;
    if (!name)
        return -ENOMEM;
    *e = (struct dirent_entry){
        .ino = d->ino, .off = (uint64_t)d->off, .name_len = (uint32_t)name_len, .name = name};
    *l->tail = e;
    l->tail = &e->next;
    l->last = e;
    l->left -= cost;
    l->count++;
    return 1;
}

/* Returns 1: more entries to come, 0: the end was reached, -errno. */
static int
listing_read(struct listing *l, int fd)
{
    char buffer[GETDENTS_BYTES] __attribute__((aligned(8)));

    for (;;) {
        long n = syscall(SYS_getdents64, fd, buffer, sizeof buffer);

        if (n < 0)
            return -errno;
        if (n == 0)
            return 0;
        for (long i = 0; i < n;) {
            const struct linux_dirent64 *d = (const void *)(buffer + i);
            int rc = is_hidden(l, d, fd) ? 1 : entry_add(l, d);

            if (rc < 0)
                return rc;
            /* the descriptor has read further: seek back to the position behind the last returned entry */
            if (rc == 0)
                return lseek(fd, (off_t)l->at, SEEK_SET) < 0 ? -errno : 1;
            l->at = (uint64_t)d->off;
            i += d->len;
        }
    }
}

/* ---- types of the objects -------------------------------------------------------------------- */

static xl_verdict types_fill(struct xlator *xl, struct call_stack *stk, struct dirent_entry *from);

/* One lookup. Its reply and type_ask() meet at `arrived`: the second of the two continues the waiting call.
 */
struct typing {
    struct xlator *xl;
    struct call_stack *stk;
    struct dirent_entry *entry;
    atomic_int arrived;
};

static void
type_done(struct call_stack *asked)
{
    struct typing *t = asked->owner;
    struct dirent_entry *e = t->entry;

    if (asked->reply.op_ret >= 0) /* otherwise the object is gone: type 0 */
        e->type = (asked->reply.stat.mode & S_IFMT) >> 12;
    call_stack_free(asked);
    if (atomic_exchange(&t->arrived, 1) == 0)
        return;
    call_stack_answer(t->stk, types_fill(t->xl, t->stk, e->next));
}

/* Returns XL_DONE: the type is known; XL_OWNED: types_fill() will continue later; -ENOMEM. */
static xl_verdict
type_ask(struct xlator *xl, struct call_stack *stk, struct dirent_entry *e, const struct gfid *gfid)
{
    struct typing *t = arena_alloc(&stk->arena, sizeof *t);
    struct call_stack *asked = t ? call_stack_new(type_done, t) : NULL;

    if (!asked)
        return -ENOMEM;
    *t = (struct typing){.xl = xl, .stk = stk, .entry = e};
    asked->call.fop = FOP_lookup;
    asked->call.gfid = *gfid;
    call_stack_wind_below(asked, xl);
    return atomic_exchange(&t->arrived, 1) == 0 ? XL_OWNED : XL_DONE;
}

static xl_verdict
types_fill(struct xlator *xl, struct call_stack *stk, struct dirent_entry *from)
{
    for (struct dirent_entry *e = from; e; e = e->next) {
        struct gfid gfid;

        if (gfid_parse(e->name, e->name_len, &gfid))
            continue;
        struct inode *inode = inode_find(xl->graph->inodes, &gfid);
        uint32_t type = inode ? inode->type : 0;
        inode_unref(inode);
        if (type) {
            e->type = type >> 12;
            continue;
        }
        xl_verdict verdict = type_ask(xl, stk, e, &gfid);
        if (verdict != XL_DONE)
            return verdict;
    }
    return XL_DONE;
}

/* The same bound as READDIR of storage: a reply has at most this many bytes of entries even if the call
 * requests more. The self-heal daemon requests this size. */
#define BATCH_MAX 131072u

/* ---- the fop --------------------------------------------------------------------------------- */

xl_verdict
index_readdir(struct xlator *xl, struct call_stack *stk)
{
    struct fop_call *c = &stk->call;
    enum index_virtual v = c->fd ? index_virtual_of(xl, c->fd->inode) : VIRTUAL_NO;
    uint64_t size = c->size < BATCH_MAX ? c->size : BATCH_MAX;
    struct listing l = {.xl = xl, .stk = stk, .v = v, .left = size, .at = c->offset};
    char path[INDEX_PATH_MAX];
    struct position p;

    if (v == VIRTUAL_NO)
        return XL_PASS;
    if (!index_may_use(&stk->caller)) /* as in index_opendir(); here for anonymous fds */
        return -EACCES;
    l.tail = &stk->reply.entries;
    stk->reply.entries = NULL;
    index_virtual_path(xl, c->fd->inode, v, path);
    int rc = position_open(xl, c->fd, path, c->offset, &p);
    if (!rc)
        rc = listing_read(&l, p.fd);
    else if (rc == -ENOENT)
        rc = 0; /* no dirty directory, or the changes are healed: an empty listing */
    position_close(xl, &p, rc == 1 ? l.at : 0);
    if (rc < 0)
        return rc;
    stk->reply.op_ret = l.count;
    stk->reply.op_errno = rc == 0 ? ENOENT : 0;
    return dict_has(c->xdata, DICT_KEY_GET_GFID_TYPE) ? types_fill(xl, stk, stk->reply.entries) : XL_DONE;
}
