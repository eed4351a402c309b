/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xattr-rules: classifies xattr names (spec: brick 5). The consequences are coded where keys are set
 * (xattr-set.c), read (xattr-get.c, xattr-fill.c) and removed (xattr-remove.c). */
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
    XATTR_IDENTITY,     /* trusted.gfid, trusted.glusterfs.volume-id: only the brick sets them */
    XATTR_GFID2PATH,    /* trusted.gfid2path.*: only the brick sets them */
    XATTR_MDATA,        /* trusted.glusterfs.mdata: merged, shown to internal clients only */
    XATTR_MDATA_FIRST,  /* set-ctime-mdata: a client sets the times of a file without mdata */
    XATTR_BITROT,       /* trusted.bit-rot.*: of the bitrot stub, which Kiln does not implement */
    XATTR_SELINUX,      /* security.selinux: reaches storage only where features/selinux is off */
    XATTR_GEOREP,       /* *.xtime and similar names: shown to geo-replication (pid -1) only */
    XATTR_QUOTA,        /* quota limits, link accounting: stored, not listed */
    XATTR_QUOTA_SUM,    /* quota figures that only the brick can compute */
    XATTR_SHADOW,       /* XFS shows ACLs a second time under these names */
    XATTR_VIRTUAL,      /* the value is computed; cannot be set */
    XATTR_IGNORED,      /* in-process marks that travel in dicts of xattrs */
};

enum xattr_kind xattr_kind_of(const char *name);

/* True if the name begins with trusted., user., security. or system. */
bool xattr_has_namespace(const char *name);

/* True for geo-replication's worker, which alone sees its marks. */
bool caller_is_georep(const struct caller *c);

/* True for glusterd's own mount, which sends `volume quota VOL limit-usage` and `limit-objects`. It must get
 * an error, because no layer here would enforce the limit. Other clients copy limits with a folder. */
bool xattr_is_quota_command(const char *name, const struct caller *c);

/* True if getxattr's list of all keys omits the name for this caller. */
bool xattr_hidden_in_list(enum xattr_kind kind, const struct caller *c);

/* True if a lookup's `list-xattr` omits the name. */
bool xattr_hidden_in_fill(enum xattr_kind kind);

/* True if DHT's directory heal keeps the xattr equal on all bricks of a volume: it is removed before the
 * wanted set is set (sync_backend_xattrs). */
bool xattr_is_synced(const char *name);

#endif
