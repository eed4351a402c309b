/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* acl-text: POSIX ACLs as the kernel stores them, and as the text that `glusterfs.posix.acl` carries.
 *
 *   stored (brick 2.4)  u32 version 2, then {u16 tag, u16 perm, u32 id} each, all little endian
 *   text                u::rw-,u:1000:r--,g::r--,m::rw-,o::r--      separated by commas or newlines
 *
 * Text that is read may spell the tags out ("user") and name users and groups; text that is made has numbers.
 */
#ifndef KILN_POSIX_ACL_TEXT_H
#define KILN_POSIX_ACL_TEXT_H

#include <stddef.h>
#include <sys/types.h>

#define ACL_ENTRIES_MAX 512
#define ACL_BYTES_MAX (4 + 8 * ACL_ENTRIES_MAX)
#define ACL_TEXT_MAX (20 * ACL_ENTRIES_MAX)

/* The stored form of `text`, in the order the kernel wants. Its length, or -EINVAL (not an ACL), -E2BIG.
 * Whether the entries make a valid ACL together is for the kernel to say. */
ssize_t acl_from_text(const char *text, unsigned char out[ACL_BYTES_MAX]);

/* The text of a stored ACL, NUL-terminated. strlen of it, or -EINVAL (not an ACL), -E2BIG. */
ssize_t acl_to_text(const unsigned char *acl, size_t len, char *out, size_t size);

#endif
