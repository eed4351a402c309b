/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* folder: lists a folder on the disk, part by part, for counts (walk.c) and after a kill (recover.c). */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "xlators/features/simple-quota/squota-internal.h"

enum { LIST_BYTES = 32768 };

int
squota_folder_open(struct xlator *xl, const struct gfid *gfid, struct fd **fd)
{
    struct squota_mark mark;
    struct iatt stat;
    int err = squota_lookup(xl, NULL, NULL, gfid, &stat, &mark);

    *fd = NULL;
    if (err || !S_ISDIR(stat.mode))
        return err ? err : -ENOTDIR;
    struct inode *dir = inode_link(xl->graph->inodes, NULL, NULL, &stat);
    struct call_stack *stk = dir ? squota_call(FOP_opendir) : NULL;
    if (!stk) {
        inode_unref(dir);
        return -ENOMEM;
    }
    stk->call.loc.inode = dir;
    stk->call.gfid = *gfid;
    err = squota_run(xl, stk);
    if (err == 0)
        *fd = fd_ref(stk->reply.fd);
    call_stack_free(stk);
    return err;
}

int
squota_folder_list(struct xlator *xl, struct fd *fd, uint64_t *offset, squota_entry_do *each, void *arg)
{
    struct call_stack *stk = squota_call(FOP_readdirp);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.loc.inode = inode_ref(fd->inode);
    stk->call.gfid = fd->inode->gfid;
    stk->call.size = LIST_BYTES;
    stk->call.offset = *offset;
    stk->call.xdata = dict_new(&stk->arena);
    int err = -ENOMEM;
    if (stk->call.xdata && dict_set_text_int(stk->call.xdata, SQUOTA_XATTR_NAMESPACE, 1) == 0)
        err = squota_run(xl, stk);
    int n = 0;
    for (const struct dirent_entry *e = err == 0 ? stk->reply.entries : NULL; e; e = e->next, n++) {
        if (strcmp(e->name, ".") != 0 && strcmp(e->name, "..") != 0)
            each(arg, fd->inode, e);
        *offset = e->off;
    }
    call_stack_free(stk);
    return err ? err : n;
}
