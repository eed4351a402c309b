/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The list of pending objects of a brick (features/index): entries of a virtual directory, whose gfid is an
 * xattr of the root. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/disperse/heal.h"

enum { PENDING_MAX = 100000, PENDING_BYTES = 128 * 1024 };

static void
pending_add(struct index_list *l, const struct dirent_entry *e)
{
    struct gfid gfid;

    if (gfid_parse(e->name, e->name_len, &gfid) || gfid_is_null(&gfid))
        return;
    l->is_cut |= l->count == PENDING_MAX;
    if (l->is_cut)
        return;
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 256;
        struct index_entry *at = realloc(l->at, room * sizeof *at);

        l->is_cut = !at;
        if (!at)
            return;
        l->at = at;
        l->room = room;
    }
    l->at[l->count++] = (struct index_entry){.gfid = gfid};
}

struct inode *
ec_index_directory(const struct ec_heal *h, unsigned i)
{
    struct call_stack *stk = ec_heal_call(h, FOP_getxattr, i);
    struct iatt a = {.mode = S_IFDIR | 0600};
    struct inode *dir = NULL;

    if (!stk)
        return NULL;
    stk->call.name = dict_key_text(DICT_KEY_XATTROP_INDEX_GFID);
    stk->call.has_name = 1;
    if (coro_call(stk, h->op.d->xl->children[i]) >= 0 &&
        !dict_get_gfid(stk->reply.dict, DICT_KEY_XATTROP_INDEX_GFID, &a.gfid) && !gfid_is_null(&a.gfid))
        dir = inode_link(h->op.d->xl->graph->inodes, NULL, NULL, &a);
    call_stack_free(stk);
    return dir;
}

/* Returns 1: there is more; 0: the end; or -errno. */
static int
pending_part(const struct ec_heal *h, unsigned i, struct fd *fd, uint64_t *offset, struct index_list *l)
{
    struct call_stack *stk = ec_heal_call(h, FOP_readdir, i);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = PENDING_BYTES;
    int ret = coro_call(stk, h->op.d->xl->children[i]);
    const struct dirent_entry *first = ret >= 0 ? stk->reply.entries : NULL;
    for (const struct dirent_entry *e = first; e; e = e->next) {
        *offset = e->off;
        pending_add(l, e);
    }
    ret = ret < 0 ? ret : first != NULL && !ec_heal_must_stop(h);
    call_stack_free(stk);
    return ret;
}

static int
compare_entries(const void *a, const void *b)
{
    const struct index_entry *x = a, *y = b;

    return memcmp(&x->gfid, &y->gfid, sizeof x->gfid);
}

const struct index_entry *
ec_index_find(const struct index_list *l, const struct gfid *gfid)
{
    struct index_entry wanted = {.gfid = *gfid};

    return l->count ? bsearch(&wanted, l->at, l->count, sizeof *l->at, compare_entries) : NULL;
}

int
ec_index_read(const struct ec_heal *h, unsigned i, struct inode *dir, struct index_list *l)
{
    struct call_stack *stk = ec_call(&h->op, FOP_opendir, i, false, dir, NULL);
    int ret = stk ? coro_call(stk, h->op.d->xl->children[i]) : -ENOMEM;
    uint64_t offset = 0;

    while (ret >= 0) {
        ret = pending_part(h, i, stk->reply.fd, &offset, l);
        if (ret == 0)
            break;
    }
    if (stk)
        call_stack_free(stk);
    if (l->count)
        qsort(l->at, l->count, sizeof *l->at, compare_entries);
    return ret < 0 ? ret : 0;
}
