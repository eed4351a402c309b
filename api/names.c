/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names, and the working directory of a volume, which is kept as a path without links. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"

struct name_request {
    struct request r;
    enum fop fop;
    const char *path, *path2;
    mode_t mode;
    dev_t rdev;
    const struct glfs_object *at2; /* of path2 */
    bool is_any; /* a removal by the fop that suits the object */
    char *bytes; /* readlink; realpath: PATH_MAX bytes */
    size_t size;
    struct iatt made;
};

static struct name_request *
api_name_of(struct request *r)
{
    return caa_container_of(r, struct name_request, r);
}

/* Winds the call with the caller's names and frees it. */
static int64_t
name_wind(struct name_request *q, struct call_stack *stk)
{
    int ret = request_wind(&q->r, stk);

    q->made = stk->reply.stat;
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* ---- creating, removing ---------------------------------------------------------------------- */

static int64_t
create_go(struct request *r)
{
    struct name_request *q = api_name_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, PLACE_NAME, &p, NULL);
    struct call_stack *stk = ret ? NULL : request_call(r, q->fop);

    if ((ret == -EBUSY || ret == -EINVAL) && q->path && *q->path)
        ret = -EEXIST; /* `/`, `.` and `..` */
    if (!ret && (!stk || request_ask_gfid(stk)))
        ret = -ENOMEM;
    if (!ret) {
        place_set_name(&p, &stk->call.loc);
        stk->call.mode = q->mode;
        stk->call.rdev = q->rdev;
        stk->call.name2 = q->path2;
        ret = name_wind(q, stk);
    } else if (stk) {
        call_stack_free(stk);
    }
    place_release(&p);
    return ret;
}

int
api_make(struct glfs *fs, const struct glfs_object *at, enum fop fop, const char *path, const char *target,
         mode_t mode, dev_t rdev, struct iatt *made)
{
    struct name_request q = {
        .r.at = at, .fop = fop, .path = path, .path2 = target, .mode = mode, .rdev = rdev};

    if (fop == FOP_mkdir)
        q.mode = mode & 07777;
    else if (fop == FOP_mknod && !(mode & S_IFMT))
        q.mode = mode | S_IFREG;
    if (fop == FOP_symlink && !(target && *target && strlen(target) <= FOP_LINKNAME_MAX)) {
        errno = !target ? EINVAL : *target ? ENAMETOOLONG : ENOENT;
        return -1;
    }
    int ret = (int)request_run(&q.r, fs, create_go);

    if (made)
        *made = q.made;
    return ret;
}

GFAPI int
glfs_mkdir(struct glfs *fs, const char *path, mode_t mode)
{
    return api_make(fs, NULL, FOP_mkdir, path, NULL, mode, 0, NULL);
}

GFAPI int
glfs_mknod(struct glfs *fs, const char *path, mode_t mode, dev_t rdev)
{
    return api_make(fs, NULL, FOP_mknod, path, NULL, mode, rdev, NULL);
}

GFAPI int
glfs_symlink(struct glfs *fs, const char *target, const char *path)
{
    return api_make(fs, NULL, FOP_symlink, path, target, 0, 0, NULL);
}

static int64_t
remove_go(struct request *r)
{
    struct name_request *q = api_name_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, q->is_any ? 0 : PLACE_NAME, &p, NULL);
    enum fop fop = !q->is_any ? q->fop : S_ISDIR(p.iatt.mode) ? FOP_rmdir : FOP_unlink;
    struct call_stack *stk = ret ? NULL : request_call(r, fop);

    if (!ret && !stk)
        ret = -ENOMEM;
    if (stk) {
        place_set_name(&p, &stk->call.loc);
        ret = name_wind(q, stk);
    }
    place_release(&p);
    return ret;
}

int
api_remove_any(struct glfs *fs, const struct glfs_object *at, const char *path)
{
    struct name_request q = {.r.at = at, .is_any = true, .path = path};

    return (int)request_run(&q.r, fs, remove_go);
}

GFAPI int
glfs_unlink(struct glfs *fs, const char *path)
{
    struct name_request q = {.fop = FOP_unlink, .path = path};

    return (int)request_run(&q.r, fs, remove_go);
}

GFAPI int
glfs_rmdir(struct glfs *fs, const char *path)
{
    struct name_request q = {.fop = FOP_rmdir, .path = path};

    return (int)request_run(&q.r, fs, remove_go);
}

/* ---- two names ------------------------------------------------------------------------------- */

static int64_t
two_names_go(struct request *r)
{
    struct name_request *q = api_name_of(r);
    bool moves = q->fop == FOP_rename;
    struct place from, to = {0};
    int64_t ret = place_find(r, q->path, moves ? PLACE_NAME : PLACE_KNOWN, &from, NULL);

    if (!ret)
        ret = place_find_at(r, q->at2, q->path2, PLACE_NAME, &to, NULL);
    struct call_stack *stk = ret ? NULL : request_call(r, q->fop);

    if (!ret && !stk)
        ret = -ENOMEM;
    if (stk) {
        if (moves)
            place_set_name(&from, &stk->call.loc);
        else
            stk->call.loc.inode = inode_ref(from.inode);
        place_set_name(&to, &stk->call.loc2);
        ret = name_wind(q, stk);
    }
    place_release(&from);
    place_release(&to);
    return ret;
}

int
api_two_names(struct glfs *fs, enum fop fop, const struct glfs_object *at, const char *path,
              const struct glfs_object *at2, const char *path2)
{
    struct name_request q = {.r.at = at, .fop = fop, .path = path, .at2 = at2, .path2 = path2};

    return (int)request_run(&q.r, fs, two_names_go);
}

GFAPI int
glfs_link(struct glfs *fs, const char *path, const char *path2)
{
    return api_two_names(fs, FOP_link, NULL, path, NULL, path2);
}

GFAPI int
glfs_rename(struct glfs *fs, const char *path, const char *path2)
{
    return api_two_names(fs, FOP_rename, NULL, path, NULL, path2);
}

/* ---- reading links --------------------------------------------------------------------------- */

static int64_t
readlink_go(struct request *r)
{
    struct name_request *q = api_name_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, 0, &p, NULL);

    if (!ret && !S_ISLNK(p.iatt.mode))
        ret = -EINVAL;
    struct call_stack *stk = ret ? NULL : request_call(r, FOP_readlink);

    if (!ret && !stk)
        ret = -ENOMEM;
    if (stk) {
        stk->call.loc.inode = inode_ref(p.inode);
        stk->call.size = FOP_LINKNAME_MAX + 1;
        ret = request_wind(r, stk);
        size_t len = ret < 0 ? 0 : strlen(stk->reply.path);

        len = len < q->size ? len : q->size;
        if (ret >= 0)
            memcpy(q->bytes, stk->reply.path, len);
        ret = ret < 0 ? ret : (int64_t)len;
        call_stack_free(stk);
    }
    place_release(&p);
    return ret;
}

int
api_readlink(struct glfs *fs, const struct glfs_object *at, const char *path, char *bytes, size_t size)
{
    struct name_request q = {.r.at = at, .path = path, .bytes = bytes, .size = size};

    if (bytes && size)
        return (int)request_run(&q.r, fs, readlink_go);
    errno = EINVAL;
    return -1;
}

GFAPI int
glfs_readlink(struct glfs *fs, const char *path, char *bytes, size_t size)
{
    return api_readlink(fs, NULL, path, bytes, size);
}

/* Finds the path without links of an object, or with `mode` S_IFDIR of a directory. */
static int64_t
realpath_go(struct request *r)
{
    struct name_request *q = api_name_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, PLACE_FOLLOW, &p, q->bytes);

    if (!ret && q->mode && !S_ISDIR(p.iatt.mode))
        ret = -ENOTDIR;
    place_release(&p);
    return ret;
}

GFAPI char *
glfs_realpath(struct glfs *fs, const char *path, char *resolved)
{
    char *own = resolved ? NULL : malloc(PATH_MAX);
    struct name_request q = {.path = path, .bytes = resolved ? resolved : own};

    if (q.bytes && request_run(&q.r, fs, realpath_go) == 0)
        return q.bytes;
    free(own);
    return NULL;
}

GFAPI char *
glfs_realpath_34(struct glfs *fs, const char *path, char *resolved)
{
    return glfs_realpath(fs, path, resolved);
}

GFAPI int
glfs_free(void *memory)
{
    free(memory);
    return 0;
}

/* ---- the working directory ------------------------------------------------------------------- */

/* Takes over the path, of a directory. */
static void
set_cwd(struct glfs *fs, char *path)
{
    if (strcmp(path, "/") == 0)
        *path = '\0';
    pthread_mutex_lock(&fs->lock);
    free(fs->cwd);
    fs->cwd = path;
    pthread_mutex_unlock(&fs->lock);
}

GFAPI int
glfs_chdir(struct glfs *fs, const char *path)
{
    char *real = malloc(PATH_MAX);
    struct name_request q = {.path = path, .bytes = real, .mode = S_IFDIR};

    if (!real || request_run(&q.r, fs, realpath_go) < 0) {
        free(real);
        return -1;
    }
    set_cwd(fs, real);
    return 0;
}

GFAPI int
glfs_fchdir(struct glfs_fd *fd)
{
    if (!fd || !fd->fd || !fd->path) {
        errno = fd && fd->fd ? ENOTDIR : EBADF;
        return -1;
    }
    char *copy = strdup(fd->path);

    if (!copy)
        return -1;
    set_cwd(fd->fs, copy);
    return 0;
}

GFAPI char *
glfs_getcwd(struct glfs *fs, char *bytes, size_t size)
{
    if (!fs || !bytes || size < 2) {
        errno = EINVAL;
        return NULL;
    }
    pthread_mutex_lock(&fs->lock);
    int n = snprintf(bytes, size, "%s", fs->cwd && *fs->cwd ? fs->cwd : "/");

    pthread_mutex_unlock(&fs->lock);
    if ((size_t)n < size)
        return bytes;
    errno = ERANGE;
    return NULL;
}

/* ---- versions -------------------------------------------------------------------------------- */

OLD_VERSION(glfs_realpath_34, glfs_realpath, "3.4.0");
