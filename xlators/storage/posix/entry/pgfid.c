/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/entry/pgfid.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

#define POSIX_XATTR_PGFID "trusted.pgfid."

static int
count(struct posix_obj *obj, const char *key, int by)
{
    uint32_t be = 0;
    ssize_t n = posix_obj_getxattr(obj, key, &be, sizeof be);

    if (n < 0 && n != -ENODATA)
        return (int)n;
    int64_t names = (n == sizeof be ? (int64_t)be32toh(be) : 0) + by;
    if (names <= 0)
        return n == -ENODATA ? 0 : posix_obj_removexattr(obj, key);
    be = htobe32((uint32_t)names);
    return posix_obj_setxattr(obj, key, &be, sizeof be, 0);
}

void
posix_pgfid_count(struct xlator *xl, struct posix_obj *obj, const struct gfid *parent, int by)
{
    char key[sizeof POSIX_XATTR_PGFID + GFID_TEXT_SIZE];

    if (!posix_conf(xl)->pgfid)
        return;
    gfid_text(parent, stpcpy(key, POSIX_XATTR_PGFID));
    int r = count(obj, key, by);
    if (r < 0)
        log_event(LOG_WARNING, xl, "posix-pgfid", "cannot count names by %s: %s", key, strerror(-r));
}
