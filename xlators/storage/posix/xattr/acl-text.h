/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* acl-text: POSIX ACLs in the kernel's format, and in the text format of `glusterfs.posix.acl`.
 *
 *   stored (brick 2.4)  u32 version 2, then {u16 tag, u16 perm, u32 id} each, all little endian
 *   text                u::rw-,u:1000:r--,g::r--,m::rw-,o::r--      separated by commas or newlines
 *
 * Parsed text may spell the tags out ("user"). Users and groups are numbers in both directions. Any thread.
 */
#ifndef KILN_POSIX_ACL_TEXT_H
#define KILN_POSIX_ACL_TEXT_H

#include <stddef.h>
#include <sys/types.h>

#define ACL_ENTRIES_MAX 512
#define ACL_BYTES_MAX (4 + 8 * ACL_ENTRIES_MAX)
#define ACL_TEXT_MAX (20 * ACL_ENTRIES_MAX)

/* Converts `text` to the stored format, in the order that the kernel demands. Returns its length, or -EINVAL
 * (not an ACL) or -E2BIG. The kernel checks whether the entries make a valid ACL together. */
ssize_t acl_from_text(const char *text, unsigned char out[ACL_BYTES_MAX]);

/* Converts a stored ACL to text, NUL-terminated. Returns strlen of the text, or -EINVAL (not an ACL) or
 * -E2BIG. */
ssize_t acl_to_text(const unsigned char *acl, size_t len, char *out, size_t size);

#endif
