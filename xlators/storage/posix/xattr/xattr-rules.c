/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/xattr/xattr-rules.h"

#include <fnmatch.h>
#include <stddef.h>
#include <string.h>

#define PID_GEOREP (-1)
#define PID_QUOTA_MOUNT (-5)

/* The first row that matches counts. `*` at the end only: a prefix; elsewhere: a pattern. */
static const struct row {
    const char *name;
    enum xattr_kind kind;
} rows[] = {
    {"trusted.gfid", XATTR_IDENTITY},
    {"trusted.glusterfs.volume-id", XATTR_IDENTITY},
    {"trusted.gfid2path.*", XATTR_GFID2PATH},
    {"trusted.glusterfs.mdata", XATTR_MDATA},
    {"set-ctime-mdata", XATTR_MDATA_FIRST},
    {"system.posix_acl_access", XATTR_ACL},
    {"system.posix_acl_default", XATTR_ACL},
    {"glusterfs.posix.acl", XATTR_ACL_TEXT},
    {"glusterfs.posix.default_acl", XATTR_ACL_TEXT},
    {"security.selinux", XATTR_SELINUX},
    {"trusted.bit-rot.*", XATTR_BITROT},
    {"trusted.glusterfs.quota.size*", XATTR_QUOTA_SUM},
    {"trusted.glusterfs.quota.*.contri*", XATTR_QUOTA_SUM},
    {"trusted.glusterfs.quota*", XATTR_QUOTA},
    {"trusted.pgfid.*", XATTR_QUOTA},
    {"trusted.SGI_ACL_*", XATTR_SHADOW},

    {"trusted.glusterfs.pathinfo", XATTR_VIRTUAL},
    {"glusterfs.pathinfo", XATTR_VIRTUAL},
    {"trusted.glusterfs.node-uuid", XATTR_VIRTUAL},
    {"trusted.glusterfs.list-node-uuids", XATTR_VIRTUAL},
    {"glusterfs.gfidtopath", XATTR_VIRTUAL},
    {"glusterfs.gfid2path", XATTR_VIRTUAL},
    {"glusterfs.gfid", XATTR_VIRTUAL},
    {"glusterfs.gfid.string", XATTR_VIRTUAL},
    {"glusterfs.ancestry.*", XATTR_VIRTUAL},
    {"glusterfs.get_real_filename:*", XATTR_VIRTUAL},
    {"glusterfs.xattrop_*", XATTR_VIRTUAL},

    {"trusted.io-stats-dump", XATTR_IGNORED},
    {"glusterfs.internal-ctx*", XATTR_IGNORED},
    {"glusterfs-internal-fop", XATTR_IGNORED},
    {"force-replace*", XATTR_IGNORED},
    {"gfid-req", XATTR_IGNORED},
    {"gfidless-lookup", XATTR_IGNORED},
    {"dht-get-iatt-in-xattr", XATTR_IGNORED},
    {"sync_backend_xattrs", XATTR_IGNORED},
    {"link-count", XATTR_IGNORED},
    {"glusterfs.open-fd-count", XATTR_IGNORED},
    {"glusterfs.inodelk-count", XATTR_IGNORED},
    {"glusterfs.entrylk-count", XATTR_IGNORED},
    {"glusterfs.parent-entrylk", XATTR_IGNORED},
    {"glusterfs.posixlk-count", XATTR_IGNORED},
    {"glusterfs.inodelk-dom-count", XATTR_IGNORED},

    {"*.glusterfs.*.stime", XATTR_GEOREP},
    {"*.glusterfs.*.xtime", XATTR_GEOREP},
    {"*.glusterfs.*.entry_stime", XATTR_GEOREP},
    {"*.glusterfs.*.volume-mark*", XATTR_GEOREP},
    {"*.glusterfs.volume-mark*", XATTR_GEOREP},
    {"*.glusterfs.lockinfo", XATTR_GEOREP},
};

static bool
row_fits(const struct row *row, const char *name)
{
    const char *star = strchr(row->name, '*');

    if (star == NULL)
        return strcmp(row->name, name) == 0;
    if (star[1] == '\0')
        return strncmp(row->name, name, (size_t)(star - row->name)) == 0;
    /* All of these patterns have this in the middle, and most names do not. */
    return strstr(name, ".glusterfs.") != NULL && fnmatch(row->name, name, 0) == 0;
}

bool
xattr_has_namespace(const char *name)
{
    static const char *const prefixes[] = {"trusted.", "user.", "security.", "system."};

    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(name, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    return false;
}

enum xattr_kind
xattr_kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (row_fits(&rows[i], name))
            return rows[i].kind;
    }
    return xattr_has_namespace(name) ? XATTR_PLAIN : XATTR_NO_NAMESPACE;
}

bool
caller_is_georep(const struct caller *c)
{
    return c->pid == PID_GEOREP && caller_is_internal(c);
}

bool
xattr_is_quota_command(const char *name, const struct caller *c)
{
    static const char limit[] = "trusted.glusterfs.quota.limit-";

    return c->pid == PID_QUOTA_MOUNT && caller_is_internal(c) && strncmp(name, limit, sizeof limit - 1) == 0;
}

bool
xattr_hidden_in_list(enum xattr_kind kind, const struct caller *c)
{
    switch (kind) {
    case XATTR_IDENTITY:
    case XATTR_GFID2PATH:
    case XATTR_QUOTA:
    case XATTR_QUOTA_SUM:
    case XATTR_SHADOW:
    /* the label of the brick's own machine; features/selinux shows clients their labels */
    case XATTR_SELINUX:
        return true;
    case XATTR_GEOREP:
        return !caller_is_georep(c);
    case XATTR_MDATA:
        return !caller_is_internal(c); /* heal copies it */
    default:
        return false;
    }
}

bool
xattr_hidden_in_fill(enum xattr_kind kind)
{
    switch (kind) {
    case XATTR_IDENTITY:
    case XATTR_GFID2PATH:
    case XATTR_QUOTA:
    case XATTR_QUOTA_SUM:
    case XATTR_SHADOW:
    case XATTR_SELINUX:
    case XATTR_GEOREP:
        return true;
    default:
        return false;
    }
}

bool
xattr_is_synced(const char *name)
{
    static const char *const healed[] = {
        "system.posix_acl_access",           "system.posix_acl_default",
        "trusted.glusterfs.selinux",         "trusted.glusterfs.quota.limit-set",
        "trusted.glusterfs.quota.limit-objects",
    };

    if (strncmp(name, "user.", 5) == 0)
        return true;
    for (size_t i = 0; i < sizeof healed / sizeof healed[0]; i++) {
        if (strcmp(healed[i], name) == 0)
            return true;
    }
    return false;
}
