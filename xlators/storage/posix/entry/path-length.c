/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* path-length: keeps the sum of BRICK's path and a name's path in the volume below PATH_MAX. The brick itself
 * has no such limit, but kernels and tools use paths, and a user could neither use nor remove a folder whose
 * path is too long.
 *
 * The length of a directory's path is cached with its inode, until a directory of the brick is renamed. */
#include <errno.h>
#include <string.h>

#include "xlators/storage/posix/entry/entry.h"

/* The length of "/a/b", by the names in the table or else by the handles. -ENAMETOOLONG, -ENOMEM; 0 if it
 * cannot be determined because a directory on the path is being moved: then no name is refused. */
static ssize_t
find_length(struct posix *p, struct inode *dir)
{
    char path[PATH_MAX];
    ssize_t n = inode_path(dir, path, sizeof path);

    if (n == 0)
        return (ssize_t)strlen(path);
    if (n != -ENAMETOOLONG)
        n = posix_handle_real_path(p, &dir->gfid, path, sizeof path);
    return n >= 0 || n == -ENAMETOOLONG || n == -ENOMEM ? n : 0;
}

static ssize_t
path_length(struct xlator *xl, struct inode *dir)
{
    struct posix *p = posix_of(xl);
    struct posix_inode *ctx = posix_inode_get(xl, dir);
    uint64_t renames = atomic_load_explicit(&p->dir_renames, memory_order_acquire);

    if (!ctx)
        return -ENOMEM;
    uint64_t known = atomic_load_explicit(&ctx->path_len, memory_order_relaxed);
    if (known >> 32 == renames && (uint32_t)known != 0)
        return (ssize_t)(uint32_t)known;
    ssize_t n = find_length(p, dir);
    if (n > 0 && !(renames & 1))
        atomic_store_explicit(&ctx->path_len, renames << 32 | (uint64_t)n, memory_order_relaxed);
    return n;
}

int
posix_path_check(struct xlator *xl, struct inode *parent, const char *name)
{
    ssize_t n = gfid_is_root(&parent->gfid) ? 0 : path_length(xl, parent);

    if (n < 0)
        return (int)n;
    return posix_of(xl)->brick_len + (size_t)n + 1 + strlen(name) >= PATH_MAX ? -ENAMETOOLONG : 0;
}
