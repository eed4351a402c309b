/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A file removed at /a/b/f is moved to /.trashcan/a/b/f_2026-11-23_023012_+0000. The folders are created when
 * needed, and have no gfid until a client looks them up (spec: brick 10.9).
 *
 * No user gains access to a file by that. The folders belong to root, and only root may write in them. Other
 * users may search or list one only if every user may do so with the folder it stands for. Each removal
 * checks that again: if the folder's permissions were withdrawn meanwhile, so are those of its counterpart. A
 * folder that does not belong to root was put there by another user and is not used. Every step is a name in
 * an open directory, and no symlink is followed.
 *
 * A file that cannot be kept (no space, no such folder, a path too long) is removed, as its owner requested,
 * and logged. System calls: 4 for each level, 2 to 5 more. */
#include "xlators/storage/posix/entry/trash.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/entry/pgfid.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/trash-wish.h"

#define LINKTO_MODE 01000
#define ROOTS_DIR_MODE 0755
#define TIME_TEXT "_YYYY-MM-DD_HHMMSS_+0000"
#define AGAIN_TEXT_MAX 4 /* "_99" */
#define AGAIN_MAX 99
#define SKEW_MAX 86400

/* A folder of the volume and its counterpart in the trash. */
struct pair {
    int real, kept; /* -1: not open */
};

static void
pair_done(struct pair *at)
{
    if (at->real >= 0)
        close(at->real);
    if (at->kept >= 0)
        close(at->kept);
}

/* ---- whether to keep the file ---------------------------------------------------------------- */

/* True if `path` is the folder `dir` of `bytes` bytes, or below it. Neither begins with a slash. */
static bool
is_below(const char *path, const char *dir, size_t bytes)
{
    return strncmp(path, dir, bytes) == 0 && (!path[bytes] || path[bytes] == '/');
}

/* The list is separated by commas; folders may have slashes around them. */
static bool
is_eliminated(const char *list, const char *path)
{
    while (*list) {
        size_t bytes = strcspn(list, ","), skip = strspn(list, "/"), rest = bytes;

        if (skip < bytes) {
            while (rest > skip && list[rest - 1] == '/')
                rest--;
            if (is_below(path, list + skip, rest - skip))
                return true;
        }
        list += bytes + (list[bytes] == ',');
    }
    return false;
}

/* True for distribute's link files, which have no data. */
static bool
is_linkto_file(struct posix_entry *e, const struct stat *st)
{
    return S_ISREG(st->st_mode) && (st->st_mode & 07777) == LINKTO_MODE &&
           posix_obj_getxattr(&e->obj, POSIX_XATTR_LINKTO, NULL, 0) >= 0;
}

static bool
is_wanted(const struct trash_wish *wish, struct posix_entry *e, const struct stat *st, const char *path)
{
    return !(S_ISREG(st->st_mode) && (uint64_t)st->st_size > wish->size_max) &&
           !is_below(path, wish->dir, strlen(wish->dir)) && !is_eliminated(wish->eliminate, path) &&
           !is_linkto_file(e, st);
}

/* ---- the folder ------------------------------------------------------------------------------ */

/* The permissions of users other than root in the folder's counterpart. The folder's owner, group and the
 * users of its ACL count as others in the trash, so the counterpart grants only permissions that owner, group
 * and others all have. */
static mode_t
counterpart_mode(int dir, const struct stat *st)
{
    mode_t all = st->st_mode >> 6 & st->st_mode >> 3 & st->st_mode & 05;

    if (fgetxattr(dir, POSIX_ACL_ACCESS, NULL, 0) > 0)
        all = 0;
    return (st->st_mode & 0700) | all << 3 | all;
}

static int
open_subdir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

    return fd < 0 ? -errno : fd;
}

/* Opens the folder `name` in a folder of the trash, and creates it if necessary. The permissions of an
 * existing one are never extended. */
static int
open_kept(const struct posix *p, int at, const char *name, mode_t mode)
{
    int fd = open_subdir(at, name);
    bool is_new = false;
    struct stat st;
    int r = 0;

    if (fd == -ENOENT) {
        is_new = mkdirat(at, name, 0700) == 0;
        if (!is_new && errno != EEXIST)
            return -errno;
        fd = open_subdir(at, name);
    }
    if (fd < 0)
        return fd;
    if (fstat(fd, &st) < 0)
        r = -errno;
    else if (st.st_uid != 0 || st.st_dev != p->dev)
        r = -EPERM;
    mode_t want = is_new ? mode : st.st_mode & mode;
    if (r == 0 && (st.st_mode & 07777) != want && fchmod(fd, want) < 0)
        r = -errno;
    if (r == 0)
        return fd;
    close(fd);
    return r;
}

/* Opens the trash's folder. It belongs to the administrator, so its owner and mode are not checked. */
static int
open_trash(const struct posix *p, const struct trash_wish *wish)
{
    int fd = open_subdir(p->brick_fd, wish->dir);

    if (fd < 0 || !wish->inner_dir)
        return fd;
    int inner = open_kept(p, fd, wish->inner_dir, ROOTS_DIR_MODE);
    close(fd);
    return inner;
}

static int
trash_step(const struct posix *p, struct pair *at, const char *name)
{
    struct pair next = {.real = open_subdir(at->real, name), .kept = -1};
    struct stat st;
    int r = next.real < 0 ? next.real : fstat(next.real, &st) < 0 ? -errno : 0;

    if (r == 0) {
        next.kept = open_kept(p, at->kept, name, counterpart_mode(next.real, &st));
        r = next.kept < 0 ? next.kept : 0;
    }
    pair_done(at);
    *at = next;
    return r;
}

/* Walks down to the folder that contains the file, which must be the folder that the call has reached. */
static int
trash_walk(const struct posix *p, const struct trash_wish *wish, char *path, const struct stat *end,
     struct pair *at)
{
    struct stat st;
    char *rest = path;
    int r;

    at->kept = open_trash(p, wish);
    if (at->kept < 0)
        return at->kept;
    at->real = open_subdir(p->brick_fd, ".");
    r = at->real < 0 ? at->real : 0;
    for (char *name; r == 0 && (name = strsep(&rest, "/"));)
        if (*name)
            r = trash_step(p, at, name);
    if (r < 0)
        return r;
    if (fstat(at->real, &st) < 0)
        return -errno;
    return st.st_ino == end->st_ino && st.st_dev == end->st_dev ? 0 : -ESTALE;
}

/* The path by the names in the table, or by the handles. "a/b"; "": the root. */
static int
folder_path(struct posix *p, struct inode *dir, bool by_handle, char path[PATH_MAX])
{
    ssize_t r = by_handle ? posix_handle_real_path(p, &dir->gfid, path, PATH_MAX)
                          : inode_path(dir, path, PATH_MAX);

    if (r < 0)
        return (int)r;
    memmove(path, path + 1, strlen(path));
    return 0;
}

/* ---- the name -------------------------------------------------------------------------------- */

/* Uses the client's time of the removal, so that replicas agree, unless the client's clock is wrong. */
static void
removal_time(const struct caller *c, char text[sizeof TIME_TEXT])
{
    time_t now = time(NULL), when = now;
    struct tm tm;

    if (c->time_flags & TIME_CTIME && c->ctime_sec > now - SKEW_MAX && c->ctime_sec < now + SKEW_MAX)
        when = c->ctime_sec;
    gmtime_r(&when, &tm);
    strftime(text, sizeof TIME_TEXT, "_%Y-%m-%d_%H%M%S_+0000", &tm);
}

/* Truncates a long name, between characters of UTF-8. */
static size_t
name_bytes(const char *name)
{
    size_t bytes = strlen(name), max = NAME_MAX - (sizeof TIME_TEXT - 1) - (AGAIN_TEXT_MAX - 1);

    if (bytes <= max)
        return bytes;
    for (bytes = max; bytes > max - 4 && ((unsigned char)name[bytes] & 0xc0) == 0x80;)
        bytes--;
    return bytes;
}

/* Tries further names, because another file of this name may have been removed in the same second. */
static int
move_in(const struct caller *c, struct posix_entry *e, int kept, char name[NAME_MAX + 1])
{
    char when[sizeof TIME_TEXT];
    int bytes = (int)name_bytes(e->name);

    removal_time(c, when);
    int r = posix_obj_reach(&e->obj);
    if (r < 0)
        return r;
    for (unsigned i = 1; i <= AGAIN_MAX; i++) {
        char again[AGAIN_TEXT_MAX + 8] = "";

        if (i > 1)
            snprintf(again, sizeof again, "_%u", i);
        snprintf(name, NAME_MAX + 1, "%.*s%s%s", bytes, e->name, when, again);
        if (renameat2(e->obj.dirfd, e->obj.rel, kept, name, RENAME_NOREPLACE) == 0)
            return 0;
        if (errno != EEXIST)
            return -errno;
    }
    return -EEXIST;
}

/* The move is done, so failures to record it are only logged. */
static void
note_move(struct xlator *xl, const struct call_stack *stk, const struct posix_entry *e, int kept,
          const char *name, struct inode *inode)
{
    struct posix_obj obj, dir;
    struct gfid dir_gfid;

    posix_obj_at(posix_of(xl), kept, name, &obj);
    posix_obj_at(posix_of(xl), kept, ".", &dir);
    posix_gfid2path_remove(xl, &obj, &e->parent->gfid, e->name);
    posix_pgfid_count(xl, &obj, &e->parent->gfid, -1);
    if (posix_obj_get_gfid(&dir, &dir_gfid) == 0) { /* a folder that no client has looked up has no gfid */
        posix_gfid2path_set(xl, &obj, &dir_gfid, name);
        posix_pgfid_count(xl, &obj, &dir_gfid, 1);
    }
    int r = posix_mdata_update(xl, &stk->caller, &obj, inode, NULL);
    if (r < 0)
        log_event(LOG_WARNING, xl, "posix-trash-mdata", "times of %s: %s", name, strerror(-r));
}

/* True for errors that mean the trash cannot keep the file; after other errors the file must not be removed.
 */
static bool
is_to_be_removed(int err)
{
    switch (-err) {
    case ENOSPC:
    case EDQUOT:
    case EMLINK:
    case ENAMETOOLONG:
    case ENOENT:
    case ENOTDIR:
    case ELOOP:
    case EEXIST:
    case EPERM:
    case ESTALE:
    case EXDEV:
    case EINVAL: /* no RENAME_NOREPLACE here */
        return true;
    }
    return false;
}

static const struct trash_wish *
wish_of(const struct call_stack *stk)
{
    return stk->call.hint.value;
}

static int
trash_move_removed(struct xlator *xl, const struct call_stack *stk, struct posix_entry *e,
                   const struct stat *st, struct inode *inode, bool by_handle)
{
    const struct trash_wish *wish = wish_of(stk);
    __attribute__((cleanup(pair_done))) struct pair at = {-1, -1};
    struct posix *p = posix_of(xl);
    char path[PATH_MAX], name[NAME_MAX + 1];

    int r = folder_path(p, e->parent, by_handle, path);
    if (r < 0)
        return r;
    if (!is_wanted(wish, e, st, path))
        return POSIX_TRASH_NOT;
    if (p->brick_len + strlen(wish->dir) + strlen(path) + 2 * NAME_MAX >= PATH_MAX)
        return -ENAMETOOLONG;
    r = trash_walk(p, wish, path, &e->dir_st, &at);
    if (r == 0)
        r = move_in(&stk->caller, e, at.kept, name);
    if (r == 0)
        note_move(xl, stk, e, at.kept, name, inode);
    return r;
}

int
posix_trash_keep(struct xlator *xl, const struct call_stack *stk, struct posix_entry *e,
                 const struct stat *st, struct inode *inode)
{
    int r = trash_move_removed(xl, stk, e, st, inode, false);

    if (r == -ENOENT || r == -ESTALE || r == -ENOTDIR) /* the table has no path, or an old one */
        r = trash_move_removed(xl, stk, e, st, inode, true);
    if (r >= 0)
        return r;
    log_event(LOG_WARNING, xl, "posix-trash-not", "%s/%s cannot be kept in %s: %s%s", GFID(&e->parent->gfid),
              e->name, wish_of(stk)->dir, strerror(-r), is_to_be_removed(r) ? ". It is removed" : "");
    return is_to_be_removed(r) ? POSIX_TRASH_NOT : r;
}
