/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* acl: POSIX access control lists as a value: read from and written to the form of system.posix_acl_* (spec:
 * brick 2.4), evaluated (9.1), inherited. No state, no locks; an ACL is immutable once made. */
#ifndef KILN_ACL_H
#define KILN_ACL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "stack/call-stack.h"

enum { ACL_USER_OBJ = 1, ACL_USER = 2, ACL_GROUP_OBJ = 4, ACL_GROUP = 8, ACL_MASK = 0x10, ACL_OTHER = 0x20 };
enum { ACL_READ = 4, ACL_WRITE = 2, ACL_EXECUTE = 1 };

#define ACL_ENTRIES_MAX 8191 /* an xattr's 64 KiB */
#define ACL_HEADER_BYTES 4
#define ACL_ENTRY_BYTES 8

struct acl_entry {
    uint16_t tag, perm;
    uint32_t id; /* of USER and GROUP */
};

struct acl {
    unsigned count;
    struct acl_entry entries[]; /* valid: sorted by tag, the three obligatory ones are there */
};

static inline size_t
acl_bytes(const struct acl *a)
{
    return ACL_HEADER_BYTES + a->count * (size_t)ACL_ENTRY_BYTES;
}

/* Made with malloc; free() it. An ACL without entries (as one that removes) is *out NULL. 0, -EINVAL,
 * -ENOMEM. */
int acl_parse(const void *bytes, size_t len, struct acl **out);
/* acl_bytes() bytes at `out`. */
void acl_write(const struct acl *a, void *out);

/* May `c` do all of `want` (ACL_*) with an object of this owner and mode? `access` NULL: by the mode bits. */
bool acl_permits(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, const struct caller *c,
                 unsigned want);

/* May anybody but root do all of `want`: the owner, the group or one that the ACL names, if they are not
 * root's, or the others? */
bool acl_permits_any_user(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, unsigned want);

/* The access ACL that a new object gets from its directory's default one: the permissions of `a` (a copy of
 * the default ACL) are limited by *mode, and *mode becomes what they say. True: it says more than the mode
 * does, and must be stored. */
bool acl_inherit(struct acl *a, uint32_t *mode);

#endif
