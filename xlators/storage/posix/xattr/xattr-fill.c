/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/xattr/xattr-fill.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <unistd.h>

#include "fs/brick-client.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/object/stat.h"
#include "xlators/storage/posix/xattr/acl-text.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"

/* ---- values ---------------------------------------------------------------------------------- */

ssize_t
posix_xattr_value(struct posix_obj *obj, const char *name, struct arena *arena, const void **value)
{
    char small[256];
    ssize_t n = posix_obj_getxattr(obj, name, small, sizeof small);

    if (n >= 0) {
        void *copy = arena_alloc(arena, n > 0 ? (size_t)n : 1);
        if (copy == NULL)
            return -ENOMEM;
        memcpy(copy, small, (size_t)n);
        *value = copy;
        return n;
    }
    /* The value may grow between the two calls. */
    while (n == -ERANGE) {
        ssize_t size = posix_obj_getxattr(obj, name, NULL, 0);
        if (size < 0)
            return size;
        void *big = arena_alloc(arena, size > 0 ? (size_t)size : 1);
        if (big == NULL)
            return -ENOMEM;
        n = posix_obj_getxattr(obj, name, big, (size_t)size);
        if (n > size) /* size was 0, so the call above only asked for the length */
            n = -ERANGE;
        *value = big;
    }
    return n;
}

ssize_t
posix_xattr_names(struct posix_obj *obj, char *room, size_t room_size, struct arena *arena, char **names)
{
    ssize_t n = posix_obj_listxattr(obj, room, room_size);

    *names = room;
    while (n == -ERANGE) {
        ssize_t size = posix_obj_listxattr(obj, NULL, 0);
        if (size < 0)
            return size;
        *names = arena_alloc(arena, (size_t)size + 1);
        if (*names == NULL)
            return -ENOMEM;
        n = posix_obj_listxattr(obj, *names, (size_t)size + 1);
    }
    return n;
}

int
posix_dict_add(struct dict *d, const char *key, const void *value, size_t len)
{
    size_t key_len = strlen(key);
    char *copy = arena_dup(d->arena, key, key_len);

    if (copy == NULL)
        return -ENOMEM;
    const struct dict_pair pair = {
        .key = copy, .key_len = (uint16_t)key_len, .type = DICT_PTR, .len = (uint32_t)len, .v.bytes = value};
    return dict_append(d, &pair) ? 0 : -ENOMEM;
}

/* Makes the text of an ACL that says the same as the mode. */
static ssize_t
acl_text_of_mode(struct posix_obj *obj, struct arena *arena, char **text)
{
    struct stat st;
    int err = posix_obj_stat(obj, &st);

    if (err)
        return err;
    if (S_ISLNK(st.st_mode))
        return -ENODATA;
    *text = arena_alloc(arena, sizeof "u::rwx,g::rwx,o::rwx");
    if (*text == NULL)
        return -ENOMEM;
    strcpy(*text, "u::rwx,g::rwx,o::rwx");
    for (int bit = 0; bit < 9; bit++) { /* 7 characters for each three of them */
        if (!(st.st_mode & (0400 >> bit)))
            (*text)[7 * (bit / 3) + 3 + bit % 3] = '-';
    }
    return (ssize_t)strlen(*text);
}

ssize_t
posix_acl_text(struct posix_obj *obj, bool is_default, struct arena *arena, char **text)
{
    const void *acl;
    ssize_t n = posix_xattr_value(obj, is_default ? POSIX_ACL_DEFAULT : POSIX_ACL_ACCESS, arena, &acl);

    if (n == -ENODATA && !is_default)
        return acl_text_of_mode(obj, arena, text);
    if (n < 0)
        return n;
    *text = arena_alloc(arena, ACL_TEXT_MAX);
    if (*text == NULL)
        return -ENOMEM;
    n = acl_to_text(acl, (size_t)n, *text, ACL_TEXT_MAX);
    return n < 0 ? -EIO : n; /* a file system that stores ACLs in another format */
}

int
posix_xattr_mdata(struct xlator *xl, struct posix_obj *obj, struct inode *inode, struct arena *arena,
                  const void **value)
{
    struct mdata m;
    int r = posix_mdata_get(xl, obj, inode, &m);

    if (r <= 0)
        return r;
    uint8_t *bytes = arena_alloc(arena, POSIX_MDATA_BYTES);
    if (bytes == NULL)
        return -ENOMEM;
    posix_mdata_encode(&m, bytes);
    *value = bytes;
    return 1;
}

/* ---- keys that are not xattrs ---------------------------------------------------------------- */

static struct dict *
fill_dict(struct posix_fill *f)
{
    if (*f->reply == NULL)
        *f->reply = dict_new(f->arena);
    return *f->reply;
}

static int
fill_uint(struct posix_fill *f, enum dict_key key, uint64_t value)
{
    struct dict *d = fill_dict(f);

    return d ? dict_set_uint(d, key, value) : -ENOMEM;
}

/* Reads the object's attributes if this has not been done yet. */
static int
fill_need_iatt(struct posix_fill *f)
{
    if (f->iatt != NULL)
        return 0;
    struct iatt *iatt = arena_zalloc(f->arena, sizeof *iatt);
    if (iatt == NULL)
        return -ENOMEM;
    int err = posix_iatt(f->xl, f->obj, f->inode, iatt, NULL);
    if (err == 0)
        f->iatt = iatt;
    return err;
}

static ssize_t
read_content(struct posix_fill *f, char *buf, size_t size)
{
    size_t done = 0;
    struct stat st;

    if (size == 0)
        return 0;
    int fd = posix_obj_open_file(f->xl, f->obj, f->inode, O_RDONLY, &st);
    if (fd < 0)
        return fd;

    while (done < size) {
        ssize_t n = pread(fd, buf + done, size - done, (off_t)done);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0) /* shorter than before, or unreadable: the reply is sent without the content */
            break;
        done += (size_t)n;
    }
    close(fd);
    return (ssize_t)done;
}

/* Adds the whole content of a small file. For a file that is changing or cannot be read, the reply has no
 * content, and the client reads it in the usual way. */
static int
fill_content(struct posix_fill *f, const struct dict_pair *asked)
{
    int64_t limit = 0;

    if (f->obj->fd >= 0 || dict_pair_int(asked, &limit) != 0 || limit <= 0)
        return 0;
    int err = fill_need_iatt(f);
    if (err)
        return err;
    uint64_t size = f->iatt->size;
    if (!S_ISREG(f->iatt->mode) || size > (uint64_t)limit || size > f->content_room)
        return 0;
    char *content = arena_alloc(f->arena, size + 1);
    ssize_t n = content ? read_content(f, content, size) : 0;
    if (content == NULL)
        return -ENOMEM;
    if (n != (ssize_t)size)
        return 0;
    struct dict *d = fill_dict(f);
    if (d == NULL)
        return -ENOMEM;
    f->content_room -= size;
    return posix_dict_add(d, dict_key_text(DICT_KEY_CONTENT), content, size);
}

/* An object without an ACL, or a file system without ACLs, is not an error. */
static int
fill_acl_text(struct posix_fill *f, enum dict_key key)
{
    char *text;
    ssize_t n = posix_acl_text(f->obj, key == DICT_KEY_ACL_DEFAULT_TEXT, f->arena, &text);

    if (n < 0)
        return n == -ENOMEM ? -ENOMEM : 0;
    struct dict *d = fill_dict(f);
    return d ? dict_set_str(d, key, text) : -ENOMEM;
}

/* Returns 1: the key was a special one; 0: the key may be an xattr; -errno. */
static int
fill_special(struct posix_fill *f, const struct dict_pair *p)
{
    int err = 0;

    switch (p->key_id) {
    case DICT_KEY_OPEN_FD_COUNT:
        err = fill_uint(f, p->key_id, f->inode ? atomic_load(&f->inode->open_fds) : 0);
        break;
    case DICT_KEY_GET_SIZE:
        err = fill_need_iatt(f);
        if (err == 0)
            err = fill_uint(f, p->key_id, f->iatt->size);
        break;
    case DICT_KEY_REQUEST_LINK_COUNT:
        if (!(f->where & (POSIX_FILL_LOOKUP | POSIX_FILL_XATTROP)))
            break;
        err = fill_need_iatt(f);
        if (err == 0)
            err = fill_uint(f, p->key_id, f->iatt->nlink);
        break;
    case DICT_KEY_MODE_IN_XATTR:
        if (f->where != POSIX_FILL_XATTROP)
            break;
        err = fill_need_iatt(f);
        if (err == 0)
            err = fill_dict(f) ? dict_set_int(*f->reply, p->key_id, f->iatt->mode) : -ENOMEM;
        break;
    case DICT_KEY_CONTENT:
        if (f->where & (POSIX_FILL_LOOKUP | POSIX_FILL_STAT | POSIX_FILL_READDIRP))
            err = fill_content(f, p);
        break;
    case DICT_KEY_CLEAN_WRITEXATTR: /* the migration of the file was abandoned */
        if (f->where == POSIX_FILL_LOOKUP) {
            err = posix_obj_removexattr(f->obj, dict_key_text(DICT_KEY_PROTECT_WRITES));
            err = err == -ENODATA ? 0 : err;
        }
        break;
    case DICT_KEY_ACL_ACCESS_TEXT:
    case DICT_KEY_ACL_DEFAULT_TEXT:
        err = fill_acl_text(f, p->key_id);
        break;
    default:
        return 0;
    }
    return err ? err : 1;
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

/* The times of an object that is not in the inode table have just been read into its iatt. */
static ssize_t
mdata_of_iatt(struct posix_fill *f, const void **value)
{
    const struct iatt *i = f->iatt;
    const struct mdata m = {
        .atime = i->atime,
        .mtime = i->mtime,
        .ctime = i->ctime,
        .atime_nsec = i->atime_nsec,
        .mtime_nsec = i->mtime_nsec,
        .ctime_nsec = i->ctime_nsec,
    };
    uint8_t *bytes = arena_alloc(f->arena, POSIX_MDATA_BYTES);

    if (bytes == NULL)
        return -ENOMEM;
    posix_mdata_encode(&m, bytes);
    *value = bytes;
    return POSIX_MDATA_BYTES;
}

/* Adds an xattr to the reply; is_listed: the list of names had it. A missing xattr is not an error. */
static int
fill_xattr(struct posix_fill *f, const char *name, bool is_listed)
{
    const void *value = NULL;
    ssize_t n;

    if (strcmp(name, POSIX_XATTR_MDATA) == 0 && posix_conf(f->xl)->ctime) {
        if (is_listed && f->inode == NULL && f->iatt != NULL) {
            n = mdata_of_iatt(f, &value);
        } else {
            n = posix_xattr_mdata(f->xl, f->obj, f->inode, f->arena, &value);
            n = n > 0 ? POSIX_MDATA_BYTES : n == 0 ? -ENODATA : n;
        }
    } else {
        n = posix_xattr_value(f->obj, name, f->arena, &value);
    }
    if (n == -ENODATA || n == -EOPNOTSUPP)
        return 0;
    if (n < 0)
        return (int)n;
    struct dict *d = fill_dict(f);
    return d ? posix_dict_add(d, name, value, (size_t)n) : -ENOMEM;
}

static bool
is_pattern(const char *key)
{
    return strpbrk(key, "*?[\\") != NULL;
}

/* The keys of the request except the special ones. */
struct wanted {
    const struct dict_pair *only; /* the last one */
    unsigned count, pattern_count;
    const char *patterns[POSIX_PATTERNS_MAX];
    bool wants_list;
};

/* Up to this number, which covers a stock client's request, keys are compared one by one. More keys are
 * searched in a hash table, so that the cost of a request is the sum of its keys and the object's names, not
 * their product. */
#define COMPARE_MAX 32

static uint32_t
fill_key_hash(const char *key, size_t len)
{
    uint32_t h = 2166136261u;

    for (size_t i = 0; i < len; i++)
        h = (h ^ (uint8_t)key[i]) * 16777619u;
    return h;
}

/* Open-addressed, at most half full; a slot has a pair's number + 1. Built once per request. */
static int
table_make(struct posix_fill *f)
{
    uint32_t slots = 2 * COMPARE_MAX;

    while (slots < 2 * f->asked->count)
        slots *= 2;
    f->table = arena_zalloc(f->arena, slots * sizeof *f->table);
    if (f->table == NULL)
        return -ENOMEM;
    f->table_mask = slots - 1;
    for (uint32_t i = 0; i < f->asked->count; i++) {
        const struct dict_pair *p = &f->asked->pairs[i];
        uint32_t at = fill_key_hash(p->key, p->key_len) & f->table_mask;

        while (f->table[at] != 0)
            at = (at + 1) & f->table_mask;
        f->table[at] = i + 1;
    }
    return 0;
}

static bool
is_key(const struct dict_pair *p, const char *name, size_t len)
{
    return p->key_len == len && memcmp(p->key, name, len) == 0;
}

static bool
is_asked(const struct posix_fill *f, const struct wanted *w, const char *name, size_t len)
{
    if (f->table == NULL) {
        dict_for_each (p, f->asked) {
            if (is_key(p, name, len))
                return true;
        }
    } else {
        for (uint32_t at = fill_key_hash(name, len) & f->table_mask; f->table[at] != 0;
             at = (at + 1) & f->table_mask) {
            if (is_key(&f->asked->pairs[f->table[at] - 1], name, len))
                return true;
        }
    }
    for (unsigned i = 0; i < w->pattern_count; i++) {
        if (fnmatch(w->patterns[i], name, 0) == 0)
            return true;
    }
    return false;
}

/* Loops over the names, not over the keys, so that an xattr that several keys select is read once. */
static int
fill_from_names(struct posix_fill *f, const struct wanted *w, char *names, size_t len)
{
    size_t name_len;

    if (f->table == NULL && w->count > COMPARE_MAX && table_make(f) != 0)
        return -ENOMEM;
    for (char *name = names; name < names + len; name += name_len + 1) {
        name_len = strlen(name);
        bool is_wanted = w->count > 0 && is_asked(f, w, name, name_len);
        if (!is_wanted && (!w->wants_list || xattr_hidden_in_fill(xattr_kind_of(name))))
            continue;
        int err = fill_xattr(f, name, true);
        if (err)
            return err;
    }
    return 0;
}

static int
fill_wanted_xattrs(struct posix_fill *f, const struct wanted *w)
{
    char room[1024], *names;

    if (w->count == 0 && !w->wants_list)
        return 0;
    if (w->count == 1 && w->pattern_count == 0 && !w->wants_list)
        return fill_xattr(f, w->only->key, false);
    ssize_t len = posix_xattr_names(f->obj, room, sizeof room, f->arena, &names);
    if (len == -EOPNOTSUPP)
        return 0;
    if (len < 0)
        return (int)len;
    return fill_from_names(f, w, names, (size_t)len);
}

/* True if no client waits for the answer any more. (A brick that is being detached first closes its clients'
 * connections, so it is also true then.) */
static bool
is_given_up(const struct posix_fill *f)
{
    return f->client != NULL && atomic_load_explicit(&f->client->is_gone, memory_order_relaxed);
}

static int
wanted_add(struct wanted *w, const struct dict_pair *p)
{
    w->only = p;
    w->count++;
    if (!is_pattern(p->key))
        return 0;
    if (w->pattern_count == POSIX_PATTERNS_MAX)
        return -E2BIG;
    w->patterns[w->pattern_count++] = p->key;
    return 0;
}

int
posix_xattr_fill(struct posix_fill *f)
{
    struct wanted w;

    w.only = NULL;
    w.count = w.pattern_count = 0;
    w.wants_list = false;
    if (is_given_up(f))
        return -ECANCELED;
    if (f->content_room == 0)
        f->content_room = POSIX_CONTENT_MAX;
    dict_for_each (p, f->asked) {
        int r = fill_special(f, p);
        if (r < 0)
            return r;
        if (r > 0)
            continue;
        if (p->key_id == DICT_KEY_LIST_XATTR) {
            w.wants_list = true;
        } else if (xattr_has_namespace(p->key)) {
            r = wanted_add(&w, p);
            if (r < 0)
                return r;
        }
    }
    return fill_wanted_xattrs(f, &w);
}

int
posix_xattr_fill_reply(struct xlator *xl, struct call_stack *stk, struct posix_obj *obj, struct inode *inode,
                       const struct iatt *iatt, enum posix_fill_where where)
{
    struct posix_fill f = {
        .xl = xl,
        .asked = stk->call.xdata,
        .obj = obj,
        .inode = inode,
        .iatt = iatt,
        .where = where,
        .arena = &stk->arena,
        .reply = &stk->reply.xdata,
        .client = stk->client,
    };

    return f.asked ? posix_xattr_fill(&f) : 0;
}
