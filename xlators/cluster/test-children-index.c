/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The index of bricks in memory, as features/index has it: virtual folders, whose gfids are xattrs of the
 * root. Their entries are the gfids of objects with counters (pending xattrs), computed at each listing, and
 * the ghosts of a test: entries of objects that have gone. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "base/test-must.h"
#include "fs/inode.h"
#include "xlators/cluster/test-children-internal.h"

enum { INDEX_XATTROP, INDEX_DIRTY, INDEX_NAMES, INDEX_KINDS };

static struct gfid
index_gfid(unsigned kind)
{
    return (struct gfid){.b = {0xee, 0xee, [15] = (uint8_t)(kind + 1)}};
}

static int
index_kind(const struct inode *inode)
{
    for (unsigned k = 0; inode && k < INDEX_KINDS; k++) {
        struct gfid gfid = index_gfid(k);

        if (gfid_equal(&inode->gfid, &gfid))
            return (int)k;
    }
    return -1;
}

static int
index_key(const struct fop_call *call)
{
    static const enum dict_key keys[INDEX_KINDS] = {DICT_KEY_XATTROP_INDEX_GFID, DICT_KEY_XATTROP_DIRTY_GFID,
                                                    DICT_KEY_XATTROP_ENTRY_CHANGES_GFID};

    for (unsigned k = 0; call->fop == FOP_getxattr && call->name && k < INDEX_KINDS; k++) {
        if (strcmp(call->name, dict_key_text(keys[k])) == 0)
            return (int)k;
    }
    return -1;
}

bool
index_is_asked(const struct fop_call *call)
{
    return index_key(call) >= 0 || index_kind(call->loc.inode) >= 0 || index_kind(call->loc.parent) >= 0 ||
           (call->fd && index_kind(call->fd->inode) >= 0);
}

static bool
has_counter(struct stored_object *o, unsigned kind)
{
    bool has = false;

    for (unsigned i = 0; o->stat.mode && i < o->xattr_count; i++) {
        bool is_dirty = strcmp(o->xattr[i].key, "trusted.afr.dirty") == 0;
        bool is_counter = strncmp(o->xattr[i].key, "trusted.afr.", 12) == 0 ||
                          strcmp(o->xattr[i].key, "trusted.ec.dirty") == 0;

        for (unsigned b = 0; is_counter && is_dirty == (kind == INDEX_DIRTY) && b < o->xattr[i].len; b++)
            has |= o->xattr[i].bytes[b] != 0;
    }
    return has;
}

static void
add_index_entry(struct call_stack *stk, struct dirent_entry ***at, const struct gfid *gfid, uint32_t type)
{
    struct dirent_entry *e = arena_zalloc(&stk->arena, sizeof *e);
    char *name = arena_alloc(&stk->arena, GFID_TEXT_SIZE);

    (void)gfid_text(gfid, name);
    e->name = name;
    e->name_len = (uint32_t)strlen(name);
    e->off = 1;
    e->type = type;
    **at = e;
    *at = &e->next;
}

/* All entries at offset 0, and then the end. */
static int
index_list_all(struct store *s, struct call_stack *stk, unsigned kind)
{
    struct dirent_entry **at = &stk->reply.entries;
    const struct gfid *ghosts = kind == INDEX_NAMES ? s->index_folder_ghost : s->index_ghost;
    int count = 0;

    for (unsigned i = 0; i < STORED_OBJECTS_MAX && kind != INDEX_NAMES && !stk->call.offset; i++) {
        if (!has_counter(&s->object[i], kind))
            continue;
        add_index_entry(stk, &at, &s->object[i].stat.gfid, IFTODT(s->object[i].stat.mode));
        count++;
    }
    for (unsigned i = 0; i < STORED_GHOSTS_MAX && kind != INDEX_DIRTY && !stk->call.offset; i++) {
        if (gfid_is_null(&ghosts[i]))
            continue;
        add_index_entry(stk, &at, &ghosts[i], DT_REG);
        count++;
    }
    *at = NULL;
    return count;
}

static int
index_remove_ghost(struct store *s, const char *name, unsigned kind)
{
    struct gfid *ghosts = kind == INDEX_NAMES ? s->index_folder_ghost : s->index_ghost, gfid;

    must(gfid_parse(name, strlen(name), &gfid) == 0);
    for (unsigned i = 0; i < STORED_GHOSTS_MAX; i++) {
        if (gfid_equal(&ghosts[i], &gfid)) {
            ghosts[i] = (struct gfid){0};
            return 0;
        }
    }
    return -ENOENT;
}

static int
index_open(struct xlator *xl, struct call_stack *stk, unsigned kind)
{
    struct iatt a = {.gfid = index_gfid(kind), .mode = S_IFDIR | 0600};
    struct inode *inode = inode_link(xl->graph->inodes, NULL, NULL, &a);

    stk->reply.fd = fd_new(inode, NULL, 0, true);
    inode_unref(inode);
    return 0;
}

int
index_serve(struct store *s, struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *call = &stk->call;
    int key = index_key(call), of_folder = index_kind(call->fd ? call->fd->inode : call->loc.inode);
    int of_parent = index_kind(call->loc.parent);

    if (key >= 0) {
        struct gfid gfid = index_gfid((unsigned)key);

        return dict_set_text(reply_dict(stk), call->name, DICT_PTR, &gfid, sizeof gfid);
    }
    switch (call->fop) {
    case FOP_opendir:
        return index_open(xl, stk, (unsigned)of_folder);
    case FOP_readdir:
        return index_list_all(s, stk, (unsigned)of_folder);
    case FOP_unlink:
    case FOP_rmdir:
        return index_remove_ghost(s, call->loc.name, (unsigned)of_parent);
    default:
        return -EOPNOTSUPP;
    }
}
