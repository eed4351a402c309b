/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which names of xattrs an ordinary user may set or remove. On a local file system only root may set
 * trusted.* and most of security.*. Here the client's kernel enforces that, but a client without a kernel
 * does not. A mount also does part of its internal work with the user's ids, so these operations must be
 * permitted to every user:
 *
 *   create, mknod, mkdir, symlink  disperse and shard pass their xattrs in xdata
 *   xattrop                        replicate, disperse, distribute and shard keep their counters with xattrop
 *   set                            labels, and the signatures (bit-rot) of files that a user has closed: the
 *                                  kernel and the layers set these
 *   remove                         the kernel removes security.capability from a file that a user writes
 */
#include <string.h>

#include "xlators/features/access-control/access-internal.h"

static bool
name_begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool
is_layers(const char *name)
{
    /* The mark of a quota namespace: a folder with the mark has a limit of its own, or none. */
    if (strcmp(name, "trusted.glusterfs.namespace") == 0)
        return false;
    return name_begins(name, "trusted.glusterfs.") || name_begins(name, "trusted.ec.") ||
           name_begins(name, "trusted.afr.");
}

static bool
is_label(const char *name)
{
    return strcmp(name, "security.selinux") == 0 || strcmp(name, "trusted.glusterfs.selinux") == 0 ||
           strcmp(name, "security.ima") == 0 || strcmp(name, "security.evm") == 0;
}

bool
access_may_name(const char *name, enum access_name_use use, bool is_squashed_work)
{
    bool is_roots = name_begins(name, "trusted.") || name_begins(name, "security.");

    switch (use) {
    case NAME_COUNT:
        return is_layers(name);
    case NAME_CREATE:
        return !is_roots || is_label(name) || is_layers(name);
    case NAME_REMOVE:
        if (strcmp(name, "security.capability") == 0)
            return true;
        break;
    case NAME_SET:
        break;
    }
    return !is_roots || is_label(name) || (is_squashed_work && is_layers(name));
}
