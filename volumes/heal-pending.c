/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/heal-pending.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/gfid.h"

enum { PATH_BYTES = PATH_MAX, NAMES_BYTES = 4096 };

static bool
handle_path(const char *brick, const char *gfid, char path[PATH_BYTES])
{
    return snprintf(path, PATH_BYTES, "%s/.glusterfs/%.2s/%.2s/%s", brick, gfid, gfid + 2, gfid) < PATH_BYTES;
}

/* A folder's path below the brick: its handle is a symlink that leads there. */
static bool
folder_of(const char *brick, const char *gfid, char out[PATH_BYTES])
{
    char handle[PATH_BYTES], *real;
    struct gfid g;
    bool is_below = false;

    if (gfid_parse(gfid, strlen(gfid), &g) || !handle_path(brick, gfid, handle))
        return false;
    *out = '\0';
    if (gfid_is_root(&g))
        return true;
    real = realpath(handle, NULL);
    char *base = realpath(brick, NULL);
    if (real && base && strncmp(real, base, strlen(base)) == 0 && real[strlen(base)] == '/') {
        is_below = true;
        snprintf(out, PATH_BYTES, "%s", real + strlen(base));
    }
    free(real);
    free(base);
    return is_below;
}

/* A file's names stand in its xattrs: the parent's gfid, a slash, the name. The first one is taken. */
static bool
file_of(const char *brick, const char *handle, char out[PATH_BYTES])
{
    static const char prefix[] = "trusted.gfid2path.";
    char names[NAMES_BYTES], value[PATH_BYTES], parent[PATH_BYTES];
    ssize_t n = llistxattr(handle, names, sizeof names);

    for (ssize_t at = 0; at < n; at += (ssize_t)strlen(names + at) + 1) {
        if (strncmp(names + at, prefix, sizeof prefix - 1) != 0)
            continue;
        ssize_t len = lgetxattr(handle, names + at, value, sizeof value - 1);
        if (len <= GFID_TEXT_SIZE || value[GFID_TEXT_SIZE - 1] != '/')
            continue;
        value[len] = value[GFID_TEXT_SIZE - 1] = '\0';
        if (folder_of(brick, value, parent))
            return snprintf(out, PATH_BYTES, "%s/%s", parent, value + GFID_TEXT_SIZE) < PATH_BYTES;
    }
    return false;
}

static json_t *
name_of(const char *brick, const char *gfid)
{
    char handle[PATH_BYTES], path[PATH_BYTES];
    struct stat st;
    bool is_known = handle_path(brick, gfid, handle) && lstat(handle, &st) == 0;

    if (is_known)
        is_known = S_ISLNK(st.st_mode) ? folder_of(brick, gfid, path) : file_of(brick, handle, path);
    json_t *name = is_known ? json_string(*path ? path : "/") : NULL; /* NULL too of what is no UTF-8 */
    return name ? name : json_sprintf("<gfid:%s>", gfid);
}

static bool
is_in(const char *brick, const char *index, const char *name)
{
    char path[PATH_BYTES];
    struct stat st;

    return snprintf(path, sizeof path, "%s/.glusterfs/indices/%s/%s", brick, index, name) <
               (int)sizeof path &&
           lstat(path, &st) == 0;
}

/* Adds what stands in one index and not in the other (NULL: none). 0, -ENOMEM, or -errno of the folder; none
 * there is no error. */
static int
add_index(const char *brick, const char *index, const char *other, json_t *entries, json_int_t *count)
{
    char path[PATH_BYTES];
    const struct dirent *e;
    struct gfid g;
    int err = 0;

    if (snprintf(path, sizeof path, "%s/.glusterfs/indices/%s", brick, index) >= (int)sizeof path)
        return -ENAMETOOLONG;
    DIR *d = opendir(path);
    if (!d)
        return errno == ENOENT ? 0 : -errno;
    while (!err && (errno = 0, e = readdir(d))) {
        /* ".", "..", and the file that all names are links of, are no gfids */
        if (gfid_parse(e->d_name, strlen(e->d_name), &g) || (other && is_in(brick, other, e->d_name)))
            continue;
        if ((*count)++ < HEAL_PENDING_NAMED_MAX)
            err = json_array_append_new(entries, name_of(brick, e->d_name)) ? -ENOMEM : 0;
    }
    if (!err && errno)
        err = -errno;
    closedir(d);
    return err;
}

json_t *
heal_pending_of_brick(const char *path)
{
    json_t *entries = json_array();
    json_int_t count = 0;
    struct stat st;
    int err = stat(path, &st) < 0 ? -errno : entries ? 0 : -ENOMEM;

    err = err ? err : add_index(path, "xattrop", NULL, entries, &count);
    err = err ? err : add_index(path, "dirty", "xattrop", entries, &count);
    if (!err)
        return json_pack("{sI so}", "count", count, "entries", entries);
    json_decref(entries);
    return err == -ENOMEM ? NULL : json_pack("{sn s[] ss}", "count", "entries", "error", strerror(-err));
}
