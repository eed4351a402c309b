/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Paths. Each name of a path is looked up at the bricks, which check the caller's right to search the
 * directory. A path without a leading slash begins at the volume's working directory, or at the object of a
 * call of glfs-handles. `..` goes to the directory that the path has come from, and stays in the root at the
 * root. The directory above an object is found by the path that the bricks know of a directory. */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "data/dict.h"

enum { LINKS_MAX = 40, REST_BYTES = 2 * PATH_MAX };

struct api_walk {
    struct request *r;
    struct inode **dirs; /* references; the root, and the directories down to the present one */
    size_t depth, room;  /* number of `dirs`; size of the array */
    unsigned links;
    size_t real_ends[PATH_MAX / 2]; /* lengths of `real` below each of `dirs` */
    char real[PATH_MAX];
    size_t real_len;
    bool is_from_object; /* dirs[0] is an object that is not the root */
    char *at; /* in `rest` */
    char rest[REST_BYTES];
};

void
place_release(struct place *p)
{
    inode_unref(p->parent);
    inode_unref(p->inode);
    p->parent = p->inode = NULL;
}

void
place_set_name(const struct place *p, struct loc *loc)
{
    loc->parent = p->parent ? inode_ref(p->parent) : NULL;
    loc->name = p->name;
}

/* ---- calls ----------------------------------------------------------------------------------- */

int
object_look(struct request *r, struct inode *inode, struct iatt *out)
{
    struct call_stack *stk = request_call(r, FOP_lookup);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(inode);
    int ret = request_wind(r, stk);

    if (ret >= 0)
        *out = stk->reply.stat;
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* The inode of an object; *is_known: the layers know the object already. Returns 0 or -errno. */
static int
object_find(struct request *r, const struct glfs_object *o, struct inode **out, bool *is_known)
{
    const struct iatt a = {.gfid = o->gfid, .mode = o->type};

    *out = gfid_is_root(&o->gfid) ? inode_root(r->graph->inodes) : inode_find(r->graph->inodes, &o->gfid);
    *is_known = *out && inode_type(*out);
    if (!*out)
        *out = inode_link(r->graph->inodes, NULL, NULL, &a);
    return *out ? 0 : -ENOMEM;
}

/* Like object_look(). Tells the inode its type, and says ESTALE of an object that is gone. */
static int
object_look_first(struct request *r, struct inode *inode, struct iatt *out)
{
    int err = object_look(r, inode, out);

    if (!err && !inode_type(inode))
        inode_learn_type(inode, out->mode);
    return err == -ENOENT ? -ESTALE : err;
}

/* Looks a name up. Sets the inode and the attributes of `out`. */
static int
look_name(struct request *r, struct inode *dir, const char *name, struct place *out)
{
    struct call_stack *stk = request_call(r, FOP_lookup);
    int ret = stk ? request_ask_gfid(stk) : -ENOMEM;

    if (!ret) {
        stk->call.loc.parent = inode_ref(dir);
        stk->call.loc.name = name;
        ret = request_wind(r, stk);
    }
    if (ret >= 0) {
        out->iatt = stk->reply.stat;
        out->inode = inode_link(r->graph->inodes, NULL, NULL, &out->iatt);
        ret = out->inode ? 0 : gfid_is_null(&out->iatt.gfid) ? -EIO : -ENOMEM;
    }
    if (stk)
        call_stack_free(stk);
    return ret;
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Takes over the reference. */
static int
walk_enter(struct api_walk *w, struct inode *dir)
{
    if (w->depth == PATH_MAX / 2) {
        inode_unref(dir);
        return -ENAMETOOLONG;
    }
    if (w->depth == w->room) {
        size_t room = w->room ? 2 * w->room : 16;
        struct inode **more = realloc(w->dirs, room * sizeof(struct inode *));

        if (!more) {
            inode_unref(dir);
            return -ENOMEM;
        }
        w->dirs = more;
        w->room = room;
    }
    w->real_ends[w->depth] = w->real_len;
    w->dirs[w->depth++] = dir;
    return 0;
}

static void
walk_leave_to(struct api_walk *w, size_t depth)
{
    while (w->depth > depth)
        inode_unref(w->dirs[--w->depth]);
    w->real_len = depth ? w->real_ends[depth - 1] : 0;
    w->real[w->real_len] = '\0';
}

static int
add_real(struct api_walk *w, const char *name)
{
    size_t len = strlen(name);

    if (w->real_len + len + 2 > sizeof w->real)
        return -ENAMETOOLONG;
    w->real[w->real_len++] = '/';
    memcpy(w->real + w->real_len, name, len + 1);
    w->real_len += len;
    return 0;
}

static void
skip_slashes(struct api_walk *w)
{
    w->at += strspn(w->at, "/");
}

/* Copies the next name out of the rest of the path. */
static int
walk_take_name(struct api_walk *w, char name[FOP_NAME_MAX + 1])
{
    size_t len = strcspn(w->at, "/");

    if (len > FOP_NAME_MAX)
        return -ENAMETOOLONG;
    memcpy(name, w->at, len);
    name[len] = '\0';
    w->at += len;
    return 0;
}

/* Puts the target of a symbolic link before the rest of the path. */
static int
walk_link(struct api_walk *w, struct inode *link)
{
    struct call_stack *stk = w->links++ < LINKS_MAX ? request_call(w->r, FOP_readlink) : NULL;

    if (!stk)
        return w->links > LINKS_MAX ? -ELOOP : -ENOMEM;
    stk->call.loc.inode = inode_ref(link);
    stk->call.size = FOP_LINKNAME_MAX + 1;
    int ret = request_wind(w->r, stk);
    size_t len = ret < 0 ? 0 : strlen(stk->reply.path), left = strlen(w->at);

    if (ret >= 0 && !len)
        ret = -ENOENT;
    if (ret >= 0 && len + left + 1 > sizeof w->rest)
        ret = -ENAMETOOLONG;
    if (ret >= 0) {
        if (*stk->reply.path == '/')
            walk_leave_to(w, 1);
        memmove(w->rest + len, w->at, left + 1); /* begins with a slash, or is empty */
        memcpy(w->rest, stk->reply.path, len);
        w->at = w->rest;
    }
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* The path ends at a directory of the walk. */
static int
end_at_dir(struct api_walk *w, int how, struct place *out)
{
    if (how & PLACE_NAME)
        return w->depth == 1 ? -EBUSY : -EINVAL; /* `/`, or a path that ends in `.` or `..` */
    bool is_asked = !(how & PLACE_KNOWN) || w->depth > 1;
    int err = is_asked ? object_look_first(w->r, w->dirs[w->depth - 1], &out->iatt) : 0;

    if (!err)
        out->inode = inode_ref(w->dirs[w->depth - 1]);
    if (!err && w->depth > 1) {
        out->parent = inode_ref(w->dirs[w->depth - 2]);
        memcpy(out->name, strrchr(w->real, '/') + 1, strlen(strrchr(w->real, '/')));
    }
    return err;
}

/* The path begins with `..` at an object: the walk begins anew in the root, with the path of the directory
 * above. */
static int
walk_above_object(struct api_walk *w)
{
    struct call_stack *stk = request_call(w->r, FOP_getxattr);

    if (!stk)
        return -ENOMEM;
    stk->call.loc.inode = inode_ref(w->dirs[0]);
    stk->call.name = "glusterfs.ancestry.path";
    stk->call.has_name = true;
    int err = request_wind(w->r, stk);
    const struct dict_pair *p = err < 0 ? NULL : dict_find_text(stk->reply.dict, stk->call.name);
    const char *end = p && p->len ? memrchr(p->v.bytes, '/', p->len) : NULL;
    size_t len = end ? (size_t)(end - (const char *)p->v.bytes) : 0, left = strlen(w->at);

    err = err < 0 ? err : !end ? -ENOENT : len + left + 2 > sizeof w->rest ? -ENAMETOOLONG : 0;
    if (!err) {
        memmove(w->rest + len + 1, w->at, left + 1);
        memcpy(w->rest, p->v.bytes, len);
        w->rest[len] = '/';
        w->at = w->rest;
        walk_leave_to(w, 0);
        w->is_from_object = false;
        err = walk_enter(w, inode_root(w->r->graph->inodes));
    }
    call_stack_free(stk);
    return err;
}

/* Handles the next name. Returns 1: the walk goes on. */
static int
walk_step(struct api_walk *w, int how, struct place *out)
{
    int err = walk_take_name(w, out->name);
    bool has_slash = *w->at == '/';

    if (err)
        return err;
    skip_slashes(w);
    bool is_last = !*w->at;

    if (strcmp(out->name, ".") == 0)
        return 1;
    if (strcmp(out->name, "..") == 0 && w->depth == 1 && w->is_from_object) {
        err = walk_above_object(w);
        return err ? err : 1;
    }
    if (strcmp(out->name, "..") == 0) {
        walk_leave_to(w, w->depth > 1 ? w->depth - 1 : 1);
        return 1;
    }
    struct inode *dir = w->dirs[w->depth - 1];

    if (inode_type(dir) && !S_ISDIR(inode_type(dir))) /* an object that is no directory */
        return -ENOTDIR;
    if (is_last && how & PLACE_NAME) {
        out->parent = inode_ref(dir);
        return 0;
    }
    err = look_name(w->r, dir, out->name, out);
    bool is_link = !err && S_ISLNK(out->iatt.mode);

    if (!err && is_link && (!is_last || has_slash || how & PLACE_FOLLOW)) {
        if (has_slash)
            *--w->at = '/';
        err = walk_link(w, out->inode);
        inode_unref(out->inode);
        out->inode = NULL;
        return err ? err : 1;
    }
    if (!err && (!is_last || has_slash) && !S_ISDIR(out->iatt.mode))
        err = -ENOTDIR;
    if (!err)
        err = add_real(w, out->name);
    if (is_last) {
        out->parent = inode_ref(dir);
        return err;
    }
    if (err)
        return err;
    struct inode *next = out->inode;

    out->inode = NULL;
    err = walk_enter(w, next);
    return err ? err : 1;
}

static int
walk_begin(struct api_walk *w, const char *path)
{
    struct glfs *fs = w->r->fs;

    if (!path || !*path)
        return -EINVAL;
    pthread_mutex_lock(&fs->lock);
    const char *cwd = *path == '/' || !fs->cwd ? "" : fs->cwd;
    size_t len = strlen(cwd);

    if (len + strlen(path) + 2 > PATH_MAX)
        len = SIZE_MAX;
    else
        snprintf(w->rest, sizeof w->rest, "%s/%s", cwd, path);
    pthread_mutex_unlock(&fs->lock);
    w->at = w->rest;
    return len == SIZE_MAX ? -ENAMETOOLONG : walk_enter(w, inode_root(w->r->graph->inodes));
}

static int
walk_begin_at(struct api_walk *w, const struct glfs_object *at, const char *path, int how)
{
    struct inode *inode;
    struct iatt a;
    bool is_known;
    size_t len = path ? strlen(path) : 0;
    int err = len + 1 > sizeof w->rest ? -ENAMETOOLONG : object_find(w->r, at, &inode, &is_known);

    if (err)
        return err;
    if (!is_known && (len || how & PLACE_KNOWN)) /* else the end of the walk looks */
        err = object_look_first(w->r, inode, &a);
    if (err) {
        inode_unref(inode);
        return err;
    }
    if (len)
        memcpy(w->rest, path, len);
    w->rest[len] = '\0';
    w->at = w->rest;
    w->is_from_object = !gfid_is_root(&at->gfid);
    return walk_enter(w, inode);
}

int
place_find(struct request *r, const char *path, int how, struct place *out, char *real)
{
    return place_find_at(r, r->at, path, how, out, real);
}

int
place_find_at(struct request *r, const struct glfs_object *at, const char *path, int how, struct place *out,
              char *real)
{
    struct api_walk *w = calloc(1, sizeof *w);

    memset(out, 0, sizeof *out);
    if (!w)
        return -ENOMEM;
    w->r = r;
    int err = at ? walk_begin_at(w, at, path, how) : walk_begin(w, path);

    if (!err) {
        do {
            skip_slashes(w);
            err = *w->at ? walk_step(w, how, out) : end_at_dir(w, how, out);
        } while (err == 1);
    }
    if (err && err != -ENOENT)
        place_release(out);
    if (real)
        snprintf(real, PATH_MAX, "%s", w->real_len ? w->real : "/");
    walk_leave_to(w, 0);
    free(w->dirs);
    free(w);
    return err;
}
