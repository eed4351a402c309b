/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/object/handle.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

/* ---- texts ----------------------------------------------------------------------------------- */

char *
posix_handle_path(const struct gfid *gfid, char path[POSIX_HANDLE_SIZE])
{
    gfid_text(gfid, path + 6);
    memcpy(path, (char[]){path[6], path[7], '/', path[8], path[9], '/'}, 6);
    return path;
}

/* "../../pp/qq/PARENT/name": offsets of the fixed parts (brick 2.2). */
enum { TEXT_HANDLE_AT = 6, TEXT_GFID_AT = 12, TEXT_NAME_AT = 49 };

size_t
posix_handle_text(const struct gfid *parent, const char *name, char text[POSIX_HANDLE_TEXT_MAX])
{
    size_t len = strnlen(name, NAME_MAX);

    memcpy(text, "../../", 6);
    posix_handle_path(parent, text + TEXT_HANDLE_AT);
    text[TEXT_NAME_AT - 1] = '/';
    memcpy(text + TEXT_NAME_AT, name, len);
    text[TEXT_NAME_AT + len] = '\0';
    return TEXT_NAME_AT + len;
}

bool
posix_handle_text_parse(const char *text, size_t len, struct gfid *parent, const char **name)
{
    char want[POSIX_HANDLE_SIZE];

    if (len <= TEXT_NAME_AT || len >= POSIX_HANDLE_TEXT_MAX || memcmp(text, "../../", 6) != 0)
        return false;
    if (text[TEXT_NAME_AT - 1] != '/' || gfid_parse(text + TEXT_GFID_AT, GFID_TEXT_SIZE - 1, parent) < 0)
        return false;
    /* The two levels must be those of the gfid, followed by a single name. */
    posix_handle_path(parent, want);
    if (memcmp(text + TEXT_HANDLE_AT, want, 6) != 0 || strchr(text + TEXT_NAME_AT, '/'))
        return false;
    *name = text + TEXT_NAME_AT;
    return strlen(*name) <= NAME_MAX && strcmp(*name, ".") != 0 && strcmp(*name, "..") != 0;
}

ssize_t
posix_handle_read_text(struct posix *p, const struct gfid *gfid, char text[POSIX_HANDLE_TEXT_MAX])
{
    ssize_t n = readlinkat(p->handles_fd, HANDLE(gfid), text, POSIX_HANDLE_TEXT_MAX - 1);

    if (n < 0)
        return -errno;
    text[n] = '\0';
    return n;
}

/* ---- the object of a gfid -------------------------------------------------------------------- */

/* Returns 0 if the object at this address has the gfid; -ESTALE: another gfid, or none. */
static int
find_check(struct posix_obj *obj, const struct gfid *gfid)
{
    struct gfid found;
    int r = posix_obj_get_gfid(obj, &found);

    if (r == -ENODATA || r == -EINVAL)
        return -ESTALE;
    return r < 0 ? r : gfid_equal(&found, gfid) ? 0 : -ESTALE;
}

/* Handles a handle that is a symlink: that of a directory, or that of a symlink which has lost its name. */
static int
find_symlink(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st,
             bool *is_dangling)
{
    struct stat link = *st;

    posix_obj_gfid(p, gfid, true, obj);
    int r = posix_obj_stat(obj, st); /* success: it has reached a directory of this gfid */
    if (r != -ENOENT && r != -ENOTDIR && r != -ESTALE)
        return r;
    posix_obj_gfid(p, gfid, false, obj);
    *st = link;
    int own = find_check(obj, gfid);
    if (own != -ESTALE)
        return own;
    *is_dangling = true;
    return r == -ESTALE ? -ESTALE : -ENOENT;
}

int
posix_obj_find(struct posix *p, const struct gfid *gfid, struct posix_obj *obj, struct stat *st,
               bool *is_dangling)
{
    *is_dangling = false;
    posix_obj_gfid(p, gfid, false, obj);
    int r = posix_obj_stat(obj, st);

    if (r < 0 || gfid_is_root(gfid))
        return r;
    if (S_ISLNK(st->st_mode) && st->st_nlink == 1)
        return find_symlink(p, gfid, obj, st, is_dangling);
    return find_check(obj, gfid);
}

/* ---- creating and removing handles ----------------------------------------------------------- */

int
posix_handle_make_parents(struct posix *p, const char *path)
{
    char dir[6];

    memcpy(dir, path, 5);
    dir[5] = '\0';
    if (mkdirat(p->handles_fd, dir, 0700) == 0 || errno == EEXIST)
        return 0;
    if (errno != ENOENT)
        return -errno;
    dir[2] = '\0';
    if (mkdirat(p->handles_fd, dir, 0700) < 0 && errno != EEXIST)
        return -errno;
    dir[2] = '/';
    return mkdirat(p->handles_fd, dir, 0700) == 0 || errno == EEXIST ? 0 : -errno;
}

/* Checks whether the existing handle is this object. */
static int
handle_is_same(struct posix_obj *entry, const char *path)
{
    struct stat handle, st;

    if (fstatat(entry->p->handles_fd, path, &handle, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    int r = posix_obj_stat(entry, &st);
    if (r < 0)
        return r;
    return handle.st_ino == st.st_ino && handle.st_dev == st.st_dev ? 0 : -EEXIST;
}

int
posix_handle_link(struct posix_obj *entry, const struct gfid *gfid)
{
    struct posix *p = entry->p;
    char *path = HANDLE(gfid);
    bool have_parents = false;
    int reached = posix_obj_reach(entry);

    if (reached < 0)
        return reached;
    while (linkat(entry->dirfd, entry->rel, p->handles_fd, path, 0) < 0) {
        int err = errno;

        if (err == EEXIST)
            return handle_is_same(entry, path);
        /* ENOENT: the handle's directory is missing, or the entry was removed */
        if (err != ENOENT || have_parents)
            return -err;
        int r = posix_handle_make_parents(p, path);
        if (r < 0)
            return r;
        have_parents = true;
    }
    return 0;
}

/* True for a hard link to a file or to a client's symlink; a directory's handle is a separate symlink. */
static bool
handle_is_link(struct posix *p, const char *path)
{
    struct stat st;

    return fstatat(p->handles_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0 &&
           (!S_ISLNK(st.st_mode) || st.st_nlink > 1);
}

int
posix_handle_set_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    char text[POSIX_HANDLE_TEXT_MAX], fresh[GFID_TEXT_SIZE + 8];
    char *path = HANDLE(gfid);
    struct gfid unique;

    posix_handle_text(parent, name, text);
    if (symlinkat(text, p->handles_fd, path) == 0)
        return 0;
    if (errno == ENOENT) {
        int r = posix_handle_make_parents(p, path);
        if (r < 0)
            return r;
        if (symlinkat(text, p->handles_fd, path) == 0)
            return 0;
    }
    if (errno != EEXIST)
        return -errno;
    if (handle_is_link(p, path))
        return -EEXIST;
    /* Replaces an existing handle in a single step, so that the directory can be reached by gfid at any
     * moment. The temporary name lies in .glusterfs/unlink, which is emptied at each start. */
    gfid_random(&unique);
    memcpy(fresh, "unlink/", 7);
    gfid_text(&unique, fresh + 7);
    if (symlinkat(text, p->handles_fd, fresh) < 0)
        return -errno;
    if (renameat(p->handles_fd, fresh, p->handles_fd, path) < 0) {
        int err = errno;

        unlinkat(p->handles_fd, fresh, 0);
        return -err;
    }
    return 0;
}

int
posix_handle_drop_dir(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    char text[POSIX_HANDLE_TEXT_MAX], want[POSIX_HANDLE_TEXT_MAX];
    ssize_t len = posix_handle_read_text(p, gfid, text);

    if (len < 0)
        return len == -ENOENT || len == -EINVAL ? 0 : (int)len;
    posix_handle_text(parent, name, want);
    if (strcmp(text, want) != 0)
        return 0;
    return unlinkat(p->handles_fd, HANDLE(gfid), 0) < 0 && errno != ENOENT ? -errno : 0;
}

enum dir_place { DIR_NOWHERE, DIR_HERE, DIR_ELSEWHERE };

/* Returns where the handle leads: to the directory `st`, to another directory of this gfid, or to none. */
static enum dir_place
dir_handle_place(struct posix *p, const struct gfid *gfid, const struct stat *st)
{
    struct gfid found_gfid;
    struct stat found;
    POSIX_OBJ(obj);

    posix_obj_gfid(p, gfid, true, &obj);
    if (posix_obj_stat(&obj, &found) < 0)
        return DIR_NOWHERE;
    if (found.st_ino == st->st_ino && found.st_dev == st->st_dev)
        return DIR_HERE;
    bool is_of_gfid = posix_obj_get_gfid(&obj, &found_gfid) == 0 && gfid_equal(&found_gfid, gfid);
    return is_of_gfid ? DIR_ELSEWHERE : DIR_NOWHERE;
}

bool
posix_handle_leads_elsewhere(struct posix *p, const struct gfid *gfid, const struct stat *st)
{
    return dir_handle_place(p, gfid, st) == DIR_ELSEWHERE;
}

int
posix_handle_heal(struct posix_obj *entry, const struct gfid *gfid, const struct stat *st,
                  const struct gfid *parent, const char *name)
{
    if (!S_ISDIR(st->st_mode))
        return posix_handle_link(entry, gfid);
    if (dir_handle_place(entry->p, gfid, st) != DIR_NOWHERE)
        return 0;
    return posix_handle_set_dir(entry->p, gfid, parent, name);
}

/* ---- a directory that moves ------------------------------------------------------------------ */

struct moving_dir {
    struct gfid gfid;
    char text[POSIX_HANDLE_TEXT_MAX]; /* target of the handle at the new place */
};

int
posix_handle_note_move(struct posix *p, const struct gfid *gfid, const struct gfid *parent, const char *name)
{
    struct moving_dir m = {.gfid = *gfid};
    size_t size = sizeof m.gfid + posix_handle_text(parent, name, m.text);

    return fsetxattr(p->handles_fd, POSIX_XATTR_MOVING_DIR, &m, size, 0) < 0 ? -errno : 0;
}

int
posix_handle_finish_move(struct posix *p)
{
    struct moving_dir m = {0};
    ssize_t size = fgetxattr(p->handles_fd, POSIX_XATTR_MOVING_DIR, &m, sizeof m - 1);
    POSIX_OBJ(dir);
    POSIX_OBJ(obj);
    struct gfid parent;
    struct stat st;
    const char *name;

    if (size < 0)
        return errno == ENODATA ? 0 : -errno;
    if ((size_t)size < sizeof m.gfid ||
        !posix_handle_text_parse(m.text, (size_t)size - sizeof m.gfid, &parent, &name))
        return -EINVAL;
    posix_obj_gfid(p, &parent, true, &dir);
    int r = posix_obj_reach(&dir);
    if (r == 0) {
        posix_obj_child(&dir, name, &obj);
        r = posix_obj_stat(&obj, &st);
    }
    if (r == 0)
        r = find_check(&obj, &m.gfid);
    if (r == -ENOENT || r == -ENOTDIR || r == -ESTALE)
        return 0; /* it was not renamed, or was moved again or removed since */
    if (r < 0 || !S_ISDIR(st.st_mode) || dir_handle_place(p, &m.gfid, &st) == DIR_HERE)
        return r;
    r = posix_handle_set_dir(p, &m.gfid, &parent, name);
    return r < 0 ? r : 1;
}
