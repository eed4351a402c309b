/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/folder-place.h"

#include <errno.h>
#include <string.h>

#include "data/iatt.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "stack/coro-call.h"

#define FOLDER_KEY "glusterfs.ancestry.path"
#define FILE_KEY "glusterfs.gfidtopath" /* all names, separated by ':' */

/* Returns a copy of the child's path, to be cut into names; NULL: the child does not report it. */
static char *
copy_path(struct call_stack *stk, const char *key)
{
    const struct dict_pair *p = dict_find_text(stk->reply.dict, key);
    bool has_bytes = p && (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED);
    size_t len = has_bytes ? strnlen(p->v.bytes, p->len) : 0;
    char *path = len ? arena_alloc(&stk->arena, len + 1) : NULL;

    if (!path || ((const char *)p->v.bytes)[0] != '/')
        return NULL;
    memcpy(path, p->v.bytes, len);
    path[len] = '\0';
    return path;
}

/* Looks up all names of the path but the last one. */
static int
walk_ancestry(struct folder_place *out, struct inode_table *table, char *path, unsigned i, folder_look *look,
              const void *heal)
{
    int err = 0;

    out->dir = inode_root(table);
    out->name = path + 1;
    for (char *slash; !err && (slash = strchr(out->name, '/')); out->name = slash + 1) {
        struct iatt stat;

        *slash = '\0';
        err = look(heal, i, out->dir, out->name, &stat);
        inode_unref(out->dir);
        out->dir = err ? NULL : inode_link(table, NULL, NULL, &stat);
        if (!err && !out->dir)
            err = -ENOMEM;
    }
    return err ? err : *out->name ? 0 : FOLDER_PLACE_UNKNOWN;
}

static int
place_find(struct folder_place *out, const char *key, struct xlator *xl, unsigned i, struct call_stack *stk,
           folder_look *look, const void *heal)
{
    *out = (struct folder_place){.stk = stk};
    if (!stk)
        return -ENOMEM;
    stk->call.name = key;
    stk->call.has_name = 1;
    int ret = coro_call(stk, xl->children[i]);
    char *path = ret >= 0 ? copy_path(stk, key) : NULL;

    if (ret < 0)
        return ret;
    if (path && strcmp(key, FILE_KEY) == 0)
        path[strcspn(path, ":")] = '\0';
    return path ? walk_ancestry(out, xl->graph->inodes, path, i, look, heal) : FOLDER_PLACE_UNKNOWN;
}

int
folder_place_find(struct folder_place *out, struct xlator *xl, unsigned i, struct call_stack *stk,
                  folder_look *look, const void *heal)
{
    return place_find(out, FOLDER_KEY, xl, i, stk, look, heal);
}

int
file_place_find(struct folder_place *out, struct xlator *xl, unsigned i, struct call_stack *stk,
                folder_look *look, const void *heal)
{
    return place_find(out, FILE_KEY, xl, i, stk, look, heal);
}

void
folder_place_end(struct folder_place *p)
{
    inode_unref(p->dir);
    if (p->stk)
        call_stack_free(p->stk);
}
