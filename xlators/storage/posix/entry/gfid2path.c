/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/entry/gfid2path.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <xxhash.h>

size_t
posix_gfid2path_pair(const struct gfid *parent, const char *name, char key[POSIX_GFID2PATH_KEY_SIZE],
                     char value[POSIX_GFID2PATH_VALUE_SIZE])
{
    static const char hex[] = "0123456789abcdef";
    size_t name_len = strnlen(name, NAME_MAX), len = GFID_TEXT_SIZE + name_len;

    gfid_text(parent, value);
    value[GFID_TEXT_SIZE - 1] = '/';
    memcpy(value + GFID_TEXT_SIZE, name, name_len);
    value[len] = '\0';

    uint64_t hash = XXH64(value, len, 0);
    char *at = stpcpy(key, POSIX_XATTR_GFID2PATH);
    for (int shift = 60; shift >= 0; shift -= 4)
        *at++ = hex[hash >> shift & 15];
    *at = '\0';
    return len;
}

void
posix_gfid2path_set(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent, const char *name)
{
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE];

    if (!posix_conf(xl)->gfid2path)
        return;
    size_t len = posix_gfid2path_pair(parent, name, key, value);
    int r = posix_obj_setxattr(obj, key, value, len, XATTR_CREATE);

    if (r < 0 && r != -EEXIST)
        log_event(LOG_WARNING, xl, "posix-gfid2path-set", "cannot set %s on %s/%s: %s", key, GFID(parent),
                  name, strerror(-r));
}

void
posix_gfid2path_remove(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent, const char *name)
{
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE];

    if (!posix_conf(xl)->gfid2path)
        return;
    posix_gfid2path_pair(parent, name, key, value);
    int r = posix_obj_removexattr(obj, key);

    if (r < 0 && r != -ENODATA)
        log_event(LOG_WARNING, xl, "posix-gfid2path-remove", "cannot remove %s of %s/%s: %s", key,
                  GFID(parent), name, strerror(-r));
}
