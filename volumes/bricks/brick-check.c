/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/brick-check.h"

#include <errno.h>
#include <fts.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/gfid.h"

struct check {
    const char *brick;
    size_t brick_len;
    json_t *flaws;
    json_int_t objects, bad;
    int err; /* -ENOMEM, or the error that ended the walk */
};

static void
add_flaw(struct check *c, const char *path, const char *text)
{
    if (c->bad++ >= BRICK_CHECK_NAMED_MAX)
        return;
    json_t *line = json_sprintf("%s: %s", path + c->brick_len, text);

    /* json_sprintf() fails for a name that is not UTF-8. */
    if (!line)
        line = json_sprintf("a name that cannot be shown: %s", text);
    if (json_array_append_new(c->flaws, line))
        c->err = -ENOMEM;
}

static const char *
check_folder_handle(const char *path, const char *handle)
{
    struct stat here, there;

    if (stat(handle, &there) < 0)
        return "its handle leads nowhere";
    if (lstat(path, &here) < 0)
        return strerror(errno);
    return here.st_ino == there.st_ino && here.st_dev == there.st_dev ? NULL
                                                                      : "its handle leads to another folder";
}

/* Returns NULL for an intact object, else the flaw. */
static const char *
check_object(const struct check *c, const char *path, const struct stat *st)
{
    char handle[PATH_MAX];
    struct gfid gfid;
    struct stat other;
    ssize_t n = lgetxattr(path, "trusted.gfid", &gfid, sizeof gfid);

    if (n < 0)
        return errno == ENODATA ? "it has no gfid" : strerror(errno);
    if (n != sizeof gfid || gfid_is_null(&gfid))
        return "its gfid has a wrong size or is null";
    const char *text = GFID(&gfid);
    if (snprintf(handle, sizeof handle, "%s/.glusterfs/%.2s/%.2s/%s", c->brick, text, text + 2, text) >=
        (int)sizeof handle)
        return "its handle's path is too long";
    if (lstat(handle, &other) < 0)
        return errno == ENOENT ? "it has no handle" : strerror(errno);
    if (S_ISDIR(st->st_mode))
        return S_ISLNK(other.st_mode) ? check_folder_handle(path, handle) : "its handle is no symlink";
    return other.st_ino == st->st_ino && other.st_dev == st->st_dev ? NULL : "its handle is another file";
}

/* Skips names that do not belong to the volume. */
static bool
is_foreign_name(const FTSENT *e)
{
    return e->fts_level == 1 &&
           (strcmp(e->fts_name, ".glusterfs") == 0 || strcmp(e->fts_name, "lost+found") == 0);
}

static void
check_entry(struct check *c, FTS *walk, FTSENT *e)
{
    const char *text = NULL;

    if (is_foreign_name(e)) {
        (void)fts_set(walk, e, FTS_SKIP);
        return;
    }
    switch (e->fts_info) {
    case FTS_DP:
        return; /* reported on the way in */
    case FTS_DNR:
    case FTS_ERR:
    case FTS_NS:
        text = strerror(e->fts_errno);
        break;
    default:
        if (e->fts_level == 0) /* the gfid of the root is a constant */
            return;
        text = check_object(c, e->fts_path, e->fts_statp);
    }
    c->objects++;
    if (text)
        add_flaw(c, e->fts_path, text);
}

json_t *
brick_check(const char *path)
{
    struct check c = {.brick = path, .brick_len = strlen(path), .flaws = json_array()};
    char *const roots[] = {(char *)path, NULL};
    FTSENT *e;
    struct stat st;

    if (!c.flaws)
        return NULL;
    FTS *walk = lstat(path, &st) < 0 ? NULL : fts_open(roots, FTS_PHYSICAL | FTS_XDEV | FTS_NOCHDIR, NULL);
    if (!walk)
        return json_pack("{si si so ss}", "objects", 0, "bad", 0, "flaws", c.flaws, "error", strerror(errno));
    while (!c.err && (errno = 0, e = fts_read(walk)))
        check_entry(&c, walk, e);
    if (!c.err && errno)
        c.err = -errno;
    (void)fts_close(walk);
    json_t *json = json_pack("{sI sI so}", "objects", c.objects, "bad", c.bad, "flaws", c.flaws);
    if (json && c.err)
        json_object_set_new(json, "error", json_string(strerror(-c.err)));
    return json;
}
