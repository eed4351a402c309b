/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* janitor: removes files and directories for good that other calls have only moved out of the volume (spec:
 * brick 11.4).
 *
 *   .glusterfs/unlink    files without a name; kept while an fd is open on them. Emptied at each start.
 *   .glusterfs/landfill  directories removed together with their contents (rmdir with flags). Emptied
 *                        janitor-sleep-duration after the last one was moved there.
 *
 * The janitor does not descend into trees: it moves a directory found in one up into the landfill under a
 * unique name. So each directory is flat when its turn comes, and neither depth nor length of paths matter. A
 * run that is interrupted at any point is continued by the next one. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "xlators/storage/posix/object/handle.h"
#include "xlators/storage/posix/saved.h"

#define LANDFILL "landfill"
#define UNLINKED "unlink"

/* "landfill/<random>". */
struct landfill_name {
    char text[sizeof LANDFILL + GFID_TEXT_SIZE];
};

static const char *
landfill_name(struct landfill_name *n)
{
    struct gfid unique;

    gfid_random(&unique);
    memcpy(n->text, LANDFILL "/", sizeof LANDFILL);
    gfid_text(&unique, n->text + sizeof LANDFILL);
    return n->text;
}

static DIR *
open_hidden_dir(int at, const char *name)
{
    int fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static bool
is_dots(const char *name)
{
    return strcmp(name, ".") == 0 || strcmp(name, "..") == 0;
}

/* Removes the handle with the last name of a file, or with a directory whose handle is dangling (its name is
 * gone). Under the object's lock, which also covers the removal of the name, because a concurrent unlink or
 * link of another name counts the links too. */
static void
drop_handle_locked(struct posix *p, const struct gfid *gfid, const struct stat *st)
{
    struct stat handle;
    bool is_dangling;
    POSIX_OBJ(found);
    int r = posix_obj_find(p, gfid, &found, &handle, &is_dangling);
    bool is_same = r == 0 && handle.st_ino == st->st_ino && handle.st_dev == st->st_dev;
    bool is_last = S_ISDIR(st->st_mode) ? is_dangling || is_same : is_same && st->st_nlink <= 2;
    /* The inode's knowledge of the object must not be applied to the next object with its number. */
    struct inode *inode = inode_find(p->xl->graph->inodes, gfid);

    posix_inode_leaves(p->xl, inode);
    posix_inode_gone(p->xl, inode, is_last);
    inode_unref(inode);
    if (is_last)
        unlinkat(p->handles_fd, HANDLE(gfid), 0);
}

/* Removes one name. A call that reached the folder before its removal may be creating an object under the
 * name, or healing the handle of one; the lock of the name keeps the handle from being linked after the
 * janitor has looked for it. `dir_gfid`: of the folder; null if the folder has none and no call knows it. */
static int
landfill_remove_entry(struct posix *p, const char *at, const struct gfid *dir_gfid, int dir_fd,
                      const char *name)
{
    struct landfill_name fresh;
    struct posix_obj obj;
    struct gfid gfid;
    struct stat st;
    POSIX_LOCKED pthread_mutex_t *name_lock =
        gfid_is_null(dir_gfid) ? NULL : posix_name_lock(p, dir_gfid, name);

    posix_obj_hidden(p, at, name, &obj);
    bool has_gfid = posix_obj_get_gfid(&obj, &gfid) == 0;
    POSIX_LOCKED pthread_mutex_t *lock = has_gfid ? posix_object_lock(p, &gfid) : NULL;
    if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : -errno;
    if (has_gfid)
        drop_handle_locked(p, &gfid, &st);
    if (!S_ISDIR(st.st_mode))
        return unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT ? -errno : 0;
    if (unlinkat(dir_fd, name, AT_REMOVEDIR) == 0)
        return 0;
    return renameat(dir_fd, name, p->handles_fd, landfill_name(&fresh)) < 0 ? -errno : 0;
}

/* Empties the directory `at` (relative to .glusterfs): removes files, moves directories up. */
static int
empty_dir(struct posix *p, const char *at)
{
    DIR *dir = open_hidden_dir(p->handles_fd, at);
    struct gfid dir_gfid = {0};
    int first_error = 0;

    if (!dir)
        return -errno;
    if (fgetxattr(dirfd(dir), POSIX_XATTR_GFID, &dir_gfid, sizeof dir_gfid) != sizeof dir_gfid)
        dir_gfid = (struct gfid){0};
    for (struct dirent *d; (d = readdir(dir)) != NULL && !chore_is_dismissed(&p->chores[POSIX_JANITOR]);) {
        if (is_dots(d->d_name))
            continue;
        int r = landfill_remove_entry(p, at, &dir_gfid, dirfd(dir), d->d_name);
        if (r < 0 && first_error == 0)
            first_error = r;
    }
    closedir(dir);
    return first_error;
}

/* Makes one pass. Returns 1: the landfill was not empty (and more may have been moved in meanwhile); 0:
 * empty; -errno: an entry cannot be removed. */
static int
purge_once(struct posix *p)
{
    DIR *dir = open_hidden_dir(p->handles_fd, LANDFILL);
    int found = 0, r = 0;

    if (!dir)
        return -errno;
    for (struct dirent *d;
         r >= 0 && !chore_is_dismissed(&p->chores[POSIX_JANITOR]) && (d = readdir(dir)) != NULL;) {
        char at[sizeof LANDFILL + NAME_MAX + 1];

        if (is_dots(d->d_name))
            continue;
        found = 1;
        snprintf(at, sizeof at, LANDFILL "/%s", d->d_name);
        r = empty_dir(p, at);
        if (chore_is_dismissed(&p->chores[POSIX_JANITOR]))
            break;
        if (r == 0 || r == -ENOTDIR)
            r = unlinkat(p->handles_fd, at, r == 0 ? AT_REMOVEDIR : 0) < 0 ? -errno : 0;
    }
    closedir(dir);
    return r < 0 ? r : found;
}

static uint64_t
janitor_chore(struct chore *c)
{
    struct posix *p = caa_container_of(c, struct posix, chores[POSIX_JANITOR]);
    uint64_t pause_ms = (uint64_t)posix_conf(p->xl)->janitor_sleep * 1000;
    int r = 0;

    if (posix_conf(p->xl)->disable_landfill_purge)
        return 0;
    atomic_store(&p->has_landfill, false);
    while (!chore_is_dismissed(&p->chores[POSIX_JANITOR]) && (r = purge_once(p)) > 0)
        ;
    if (r < 0) {
        log_event(LOG_WARNING, p->xl, "posix-landfill",
                  "%s/" POSIX_HIDDEN_DIR "/" LANDFILL " cannot be emptied: %s", p->brick, strerror(-r));
        return pause_ms;
    }
    return atomic_load(&p->has_landfill) ? pause_ms : 0;
}

void
posix_janitor_init(struct posix *p)
{
    chore_init(&p->chores[POSIX_JANITOR], janitor_chore);
}

void
posix_janitor_wake(struct posix *p)
{
    atomic_store(&p->has_landfill, true);
    chore_start(&p->chores[POSIX_JANITOR], (uint64_t)posix_conf(p->xl)->janitor_sleep * 1000);
}

static void
warn(const struct posix *p, const char *what, int err)
{
    log_event(LOG_WARNING, p->xl, "posix-janitor-prepare", "%s/" POSIX_HIDDEN_DIR "/%s: %s", p->brick, what,
              strerror(err));
}

void
posix_janitor_prepare(struct posix *p)
{
    if (mkdirat(p->handles_fd, LANDFILL, 0755) < 0 && errno != EEXIST)
        warn(p, LANDFILL, errno);
    if (mkdirat(p->handles_fd, UNLINKED, 0600) < 0 && errno != EEXIST)
        warn(p, UNLINKED, errno);
}

void
posix_janitor_take_over(struct posix *p)
{
    struct landfill_name fresh;
    int r = posix_keeps_unlinked() ? 0 : empty_dir(p, UNLINKED);

    if (r < 0)
        warn(p, UNLINKED, -r);
    /* The landfill of the old format. Bricks no longer use such a directory, and one that a client created
     * has a gfid. */
    struct posix_obj obj;
    struct gfid gfid;
    struct stat st;
    posix_obj_at(p, p->brick_fd, ".landfill", &obj);
    if (posix_obj_stat(&obj, &st) == 0 && S_ISDIR(st.st_mode) &&
        posix_obj_get_gfid(&obj, &gfid) == -ENODATA &&
        renameat(obj.dirfd, obj.rel, p->handles_fd, landfill_name(&fresh)) < 0)
        warn(p, LANDFILL, errno);
    posix_janitor_wake(p); /* the last run may have left entries */
}
