/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Whose an xattr's name is. Above a local file system only root may set trusted.* and most of security.*;
 * here a client's kernel has seen to that, and a client without a kernel has not. But a mount does part of
 * its work with the user's own ids, so what it sends that way is anybody's:
 *
 *   create, mknod, mkdir, symlink  disperse and shard bring their own xattrs along in xdata
 *   xattrop                        replicate, disperse, distribute and shard keep their books with it
 *   set                            labels, and seals of files that a user has closed: kernel and layers make
 *                                  them
 *   remove                         the kernel takes security.capability off a file that a user writes
 */
#include <string.h>

#include "xlators/features/access-control/access-internal.h"

static bool
begins(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

static bool
is_layers(const char *name)
{
    return begins(name, "trusted.glusterfs.") || begins(name, "trusted.ec.") || begins(name, "trusted.afr.");
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
    bool is_roots = begins(name, "trusted.") || begins(name, "security.");

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
