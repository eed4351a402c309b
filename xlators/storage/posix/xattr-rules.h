/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-rules: what kind of key an xattr name is (spec: brick 5). What follows from the kind is decided where
 * keys are set (xattr-set.c), read (xattr-get.c, xattr-fill.c) and removed (xattr-remove.c). */
#ifndef KILN_POSIX_XATTR_RULES_H
#define KILN_POSIX_XATTR_RULES_H

#include <stdbool.h>
#include <stdint.h>

#include "stack/call-stack.h"

enum xattr_kind {
    XATTR_NO_NAMESPACE, /* no file system stores it */
    XATTR_PLAIN,        /* trusted.*, user.*, security.*, system.*: stored and read verbatim */
    XATTR_ACL,          /* system.posix_acl_access, _default */
    XATTR_ACL_TEXT,     /* glusterfs.posix.acl, .default_acl */
    XATTR_IDENTITY,     /* trusted.gfid, trusted.glusterfs.volume-id: the brick's own */
    XATTR_GFID2PATH,    /* trusted.gfid2path.*: the brick's own */
    XATTR_MDATA,        /* trusted.glusterfs.mdata: merged, seen by internal clients only */
    XATTR_MDATA_FIRST,  /* set-ctime-mdata: a client brings the times of a file that has none */
    XATTR_BITROT,       /* trusted.bit-rot.*: the bitrot stub's, which is not built */
    XATTR_SELINUX,      /* security.selinux: of clients only where features/selinux is off */
    XATTR_GEOREP,       /* *.xtime and its like: seen by geo-replication (pid -1) only */
    XATTR_QUOTA,        /* quota limits, link accounting: stored, not listed */
    XATTR_QUOTA_SUM,    /* ... and what only the brick can know */
    XATTR_SHADOW,       /* XFS shows ACLs a second time under these */
    XATTR_VIRTUAL,      /* answered by code; cannot be set */
    XATTR_IGNORED,      /* in-process marks that travel in dicts of xattrs */
};

enum xattr_kind xattr_kind_of(const char *name);

/* Begins with trusted., user., security. or system. */
bool xattr_has_namespace(const char *name);

/* Geo-replication's worker: it alone sees its marks. */
bool caller_is_georep(const struct caller *c);

/* glusterd's own mount, through which `volume quota VOL limit-usage` and `limit-objects` come: nothing here
 * would keep a limit, so who sets one is to hear that. Others copy limits, as part of a folder. */
bool xattr_is_quota_command(const char *name, const struct caller *c);

/* Left out of getxattr's list of all keys, for this caller. */
bool xattr_hidden_in_list(enum xattr_kind kind, const struct caller *c);

/* Left out when a lookup asks for `list-xattr`. */
bool xattr_hidden_in_fill(enum xattr_kind kind);

/* Kept by DHT's directory heal on every brick of a volume: removed before the wanted set is set
 * (sync_backend_xattrs). */
bool xattr_is_synced(const char *name);

#endif
