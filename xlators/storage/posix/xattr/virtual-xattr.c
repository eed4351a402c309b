/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/xattr/virtual-xattr.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/entry/readdir.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"

struct answer {
    struct xlator *xl;
    struct call_stack *stk;
    struct posix_obj *obj;
    struct inode *inode;
    const char *name;
};

static ssize_t
answer_bytes(struct answer *a, enum dict_type type, const char *text, size_t len)
{
    int err =
        dict_set_text(a->stk->reply.dict, a->name, type, text, (uint32_t)(type == DICT_STR ? len + 1 : len));

    return err ? err : (ssize_t)len;
}

static ssize_t
answer_string(struct answer *a, const char *text)
{
    return answer_bytes(a, DICT_STR, text, strlen(text));
}

/* ---- paths ----------------------------------------------------------------------------------- */

/* Expands a gfid2path xattr's value "<parent gfid>/<name>" to a path from the root. Returns its length or
 * -errno. */
static ssize_t
expand_gfid2path(struct posix *p, const char *value, size_t len, char *path, size_t size)
{
    struct gfid parent;

    if (len <= GFID_TEXT_SIZE || value[GFID_TEXT_SIZE - 1] != '/' ||
        gfid_parse(value, GFID_TEXT_SIZE - 1, &parent) != 0)
        return -EINVAL;
    ssize_t at = posix_handle_real_path(p, &parent, path, size);
    if (at < 0)
        return at;
    if (at == 1) /* "/" */
        at = 0;
    size_t name_len = len - (GFID_TEXT_SIZE - 1);
    if ((size_t)at + name_len >= size)
        return -ENAMETOOLONG;
    memcpy(path + at, value + GFID_TEXT_SIZE - 1, name_len);
    path[(size_t)at + name_len] = '\0';
    return at + (ssize_t)name_len;
}

/* Calls fn for each stored path of a non-directory. Stops at the first result that is not 0, and returns it.
 */
static int
each_stored_path(struct answer *a, int (*fn)(const char *path, size_t len, void *arg), void *arg)
{
    static const char prefix[] = POSIX_XATTR_GFID2PATH;
    char room[1024], *names, path[PATH_MAX];
    ssize_t len = posix_xattr_names(a->obj, room, sizeof room, &a->stk->arena, &names);

    if (len < 0)
        return (int)len;
    for (const char *name = names; name < names + len; name += strlen(name) + 1) {
        char value[POSIX_GFID2PATH_VALUE_SIZE];
        if (strncmp(name, prefix, sizeof prefix - 1) != 0)
            continue;
        ssize_t n = posix_obj_getxattr(a->obj, name, value, sizeof value);
        if (n >= 0)
            n = expand_gfid2path(posix_of(a->xl), value, (size_t)n, path, sizeof path);
        if (n < 0) /* a stale one: the paths of other names may be valid */
            continue;
        int r = fn(path, (size_t)n, arg);
        if (r != 0)
            return r;
    }
    return 0;
}

struct path_buffer {
    char *path;
    size_t size;
};

static int
take_path(const char *path, size_t len, void *arg)
{
    struct path_buffer *b = arg;

    if (len >= b->size)
        return -ENAMETOOLONG;
    memcpy(b->path, path, len + 1);
    return 1;
}

/* Finds a path of the object below BRICK: of a directory by its handle, else by the names in the table or the
 * stored ones, and otherwise the handle itself. Returns 0 or -errno. */
static int
real_path(struct answer *a, char *path, size_t size)
{
    if (S_ISDIR(a->inode->type)) {
        ssize_t n = posix_handle_real_path(posix_of(a->xl), &a->inode->gfid, path, size);
        return n < 0 ? (int)n : 0;
    }
    if (inode_path(a->inode, path, size) == 0)
        return 0;
    struct path_buffer b = {path, size};
    int r = each_stored_path(a, take_path, &b);
    if (r > 0)
        return 0;
    if (r == -ENOMEM)
        return r;
    snprintf(path, size, "/" POSIX_HIDDEN_DIR "/%s", HANDLE(&a->inode->gfid));
    return 0;
}

static ssize_t
get_pathinfo(struct answer *a)
{
    const struct posix *p = posix_of(a->xl);
    const struct posix_conf *conf = posix_conf(a->xl);
    bool by_uuid = conf->node_uuid_pathinfo && !gfid_is_null(&conf->glusterd_uuid);
    const char *host = by_uuid ? GFID(&conf->glusterd_uuid) : p->hostname;
    char path[PATH_MAX];
    int err = real_path(a, path, sizeof path);

    if (err)
        return err;
    /* BRICK's own path ends without a slash, and the root's path is a single slash. */
    const char *text = arena_printf(&a->stk->arena, "<POSIX(%s):%s:%s%s>", p->brick, host, p->brick, path);
    return text ? answer_string(a, text) : -ENOMEM;
}

static ssize_t
get_node_uuid(struct answer *a)
{
    const struct gfid *uuid = &posix_conf(a->xl)->glusterd_uuid;

    return gfid_is_null(uuid) ? -ENODATA : answer_string(a, GFID(uuid));
}

static ssize_t
get_directory_path(struct answer *a)
{
    char path[PATH_MAX];
    ssize_t n = posix_handle_real_path(posix_of(a->xl), &a->inode->gfid, path, sizeof path);

    return n < 0 ? n : answer_string(a, path);
}

struct joined {
    char *text;
    size_t len, size;
    const char *separator;
};

static int
join_path(const char *path, size_t len, void *arg)
{
    struct joined *j = arg;
    size_t sep = j->len > 0 ? strlen(j->separator) : 0;

    if (j->len + sep + len >= j->size)
        return -ERANGE;
    memcpy(j->text + j->len, j->separator, sep);
    memcpy(j->text + j->len + sep, path, len + 1);
    j->len += sep + len;
    return 0;
}

/* Joins all paths of a file. Returns 0, or -ENODATA: none is stored. */
static int
join_stored_paths(struct answer *a, struct joined *j)
{
    j->size = 65536;
    j->text = arena_alloc(&a->stk->arena, j->size);
    if (j->text == NULL)
        return -ENOMEM;
    int err = each_stored_path(a, join_path, j);
    return err ? err : j->len > 0 ? 0 : -ENODATA;
}

/* For files only with storage.build-pgfid, as with stock. */
static ssize_t
get_ancestry_path(struct answer *a)
{
    struct joined j = {.separator = ":"};

    if (S_ISDIR(a->inode->type))
        return get_directory_path(a);
    int err = posix_conf(a->xl)->pgfid ? join_stored_paths(a, &j) : -ENODATA;
    return err ? err : answer_string(a, j.text);
}

static ssize_t
get_gfid_to_path(struct answer *a)
{
    const struct posix_conf *conf = posix_conf(a->xl);
    struct joined j = {.separator = conf->gfid2path_separator ? conf->gfid2path_separator : ":"};

    if (S_ISDIR(a->inode->type))
        return get_directory_path(a);
    int err = join_stored_paths(a, &j);
    return err ? err : answer_bytes(a, DICT_PTR, j.text, j.len);
}

/* For the self-heal daemon, which skips an entry without this answer. */
static ssize_t
get_gfid2path(struct answer *a)
{
    char path[PATH_MAX];

    if (gfid_is_root(&a->inode->gfid))
        return answer_string(a, "/");
    if (inode_path(a->inode, path, sizeof path) != 0)
        snprintf(path, sizeof path, "<gfid:%s>", GFID(&a->inode->gfid));
    return answer_string(a, path);
}

/* ---- a name in its stored spelling ----------------------------------------------------------- */

struct real_name {
    const char *wanted;
    char found[NAME_MAX + 1];
};

static int
compare_name(const struct dirent64 *d, void *arg)
{
    struct real_name *r = arg;

    if (strcasecmp(d->d_name, r->wanted) != 0)
        return 0;
    snprintf(r->found, sizeof r->found, "%s", d->d_name);
    return 1;
}

/* glusterfs.get_real_filename:<name> of Samba: the entry whose name differs in case only. */
static ssize_t
get_real_filename(struct answer *a)
{
    char buf[16384] __attribute__((aligned(8)));
    struct real_name r = {.wanted = strchr(a->name, ':') + 1};
    POSIX_OBJ(dir);

    posix_obj_inode(posix_of(a->xl), a->inode, &dir);
    if (!S_ISDIR(a->inode->type))
        return -ENOTDIR;
    int fd = posix_obj_open(&dir, O_RDONLY | O_DIRECTORY, 0);
    if (fd < 0)
        return fd;
    int found = posix_dir_scan(fd, buf, sizeof buf, compare_name, &r);
    close(fd);
    if (found < 0)
        return found;
    if (found == 0 || (gfid_is_root(&a->inode->gfid) && strcmp(r.found, POSIX_HIDDEN_DIR) == 0))
        return -ENODATA;
    return answer_string(a, r.found);
}

/* ---- the table ------------------------------------------------------------------------------- */

static const struct {
    const char *name; /* `*` at the end: a prefix */
    ssize_t (*get)(struct answer *a);
} getters[] = {
    {"trusted.glusterfs.pathinfo", get_pathinfo},
    {"glusterfs.pathinfo", get_pathinfo},
    {"trusted.glusterfs.node-uuid", get_node_uuid},
    {"glusterfs.gfidtopath", get_gfid_to_path},
    {"glusterfs.gfid2path", get_gfid2path},
    {"glusterfs.ancestry.path", get_ancestry_path},
    {"glusterfs.get_real_filename:*", get_real_filename},
};

ssize_t
posix_virtual_get(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode,
                  const char *name)
{
    struct answer a = {.xl = xl, .stk = stk, .obj = obj, .inode = inode, .name = name};

    for (size_t i = 0; i < sizeof getters / sizeof getters[0]; i++) {
        size_t len = strlen(getters[i].name);
        bool is_prefix = getters[i].name[len - 1] == '*';
        if (is_prefix ? strncmp(name, getters[i].name, len - 1) == 0 : strcmp(name, getters[i].name) == 0)
            return getters[i].get(&a);
    }
    /* Other layers answer list-node-uuids and the index's names. Names that only a client's layer answers
     * (glusterfs.gfid), or that only a lookup may request, are errors here. */
    return strncmp(name, "glusterfs.gfid", 14) == 0 || strcmp(name, "glusterfs.ancestry.dentry") == 0
               ? -ENOTSUP
               : -ENODATA;
}
