/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* acl: a POSIX access control list as a value: converted from and to the format of system.posix_acl_* (spec:
 * brick 2.4), evaluated (9.1), inherited. No state, no locks, any thread; an ACL is immutable once made. */
#ifndef KILN_ACL_H
#define KILN_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/call-stack.h"

enum { ACL_USER_OBJ = 1, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_GROUP = 8, ACL_MASK = 0x10, ACL_OTHER = 0x20 };
enum { ACL_READ = 4, ACL_WRITE = 2, ACL_EXECUTE = 1 };

#define ACL_ENTRIES_MAX 8191 /* as many as fit in an xattr of 64 KiB */
#define ACL_HEADER_BYTES 4
#define ACL_ENTRY_BYTES 8

struct acl_entry {
    uint16_t tag, perm;
    uint32_t id; /* only in ACL_USER and ACL_GROUP entries */
};

struct acl {
    unsigned count;
    struct acl_entry entries[]; /* valid: sorted by tag, with the three obligatory entries */
};

static inline size_t
acl_bytes(const struct acl *a)
{
    return ACL_HEADER_BYTES + a->count * (size_t)ACL_ENTRY_BYTES;
}

/* Converts the xattr's value into a malloc'ed ACL, which the caller frees with free(). *out is NULL for an
 * ACL without entries (a value that removes the ACL). Returns 0, -EINVAL or -ENOMEM. */
int acl_parse(const void *bytes, size_t len, struct acl **out);
/* Writes acl_bytes() bytes to `out`. */
void acl_write(const struct acl *a, void *out);

/* True if `c` may do all of `want` (ACL_*) with an object of this owner and mode. Without an ACL (`access`
 * NULL) the mode bits decide. */
bool acl_permits(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, const struct caller *c,
                 unsigned want);

/* True if some user other than root may do all of `want`: the owner, the group or a user or group that the
 * ACL names (unless that is root's), or others. */
bool acl_permits_any_user(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, unsigned want);

/* Computes the access ACL that a new object inherits from its directory's default ACL. `a` is a copy of the
 * default ACL: its permissions are limited by *mode, and the permission bits of *mode become those of the
 * result. Returns true if the ACL says more than the mode does, so that the caller must store it. */
bool acl_inherit(struct acl *a, uint32_t *mode);

#endif
