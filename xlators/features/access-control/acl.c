/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/features/access-control/acl.h"

#include <assert.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define ACL_VERSION 2
#define NO_ID 0xffffffffu

static_assert(sizeof(struct acl_entry) == ACL_ENTRY_BYTES,
              "an entry in memory has the layout of one on disk");

/* True if the ACL has the order and number of entries that the kernel also demands. */
static bool
is_valid(const struct acl *a)
{
    unsigned user_obj = 0, group_obj = 0, mask = 0, other = 0, named = 0;

    for (unsigned i = 0; i < a->count; i++) {
        const struct acl_entry *e = &a->entries[i];

        if (e->perm > 7 || (i && e->tag < e[-1].tag))
            return false;
        switch (e->tag) {
        case ACL_USER_OBJ:
            user_obj++;
            break;
        case ACL_GROUP_OBJ:
            group_obj++;
            break;
        case ACL_MASK:
            mask++;
            break;
        case ACL_OTHER:
            other++;
            break;
        case ACL_USER:
        case ACL_GROUP:
            if (e->id == NO_ID)
                return false;
            named++;
            break;
        default:
            return false;
        }
    }
    return user_obj == 1 && group_obj == 1 && other == 1 && mask <= 1 && (mask || !named);
}

int
acl_parse(const void *bytes, size_t len, struct acl **out)
{
    const uint8_t *at = bytes;
    uint32_t version;

    *out = NULL;
    if (len < ACL_HEADER_BYTES || (len - ACL_HEADER_BYTES) % ACL_ENTRY_BYTES)
        return -EINVAL;
    memcpy(&version, at, sizeof version);
    size_t count = (len - ACL_HEADER_BYTES) / ACL_ENTRY_BYTES;
    if (le32toh(version) != ACL_VERSION || count > ACL_ENTRIES_MAX)
        return -EINVAL;
    if (!count)
        return 0;
    struct acl *a = malloc(sizeof *a + count * sizeof a->entries[0]);
    if (!a)
        return -ENOMEM;
    a->count = (unsigned)count;
    at += ACL_HEADER_BYTES;
    for (unsigned i = 0; i < count; i++, at += ACL_ENTRY_BYTES) {
        struct acl_entry raw;

        memcpy(&raw, at, sizeof raw);
        a->entries[i] = (struct acl_entry){le16toh(raw.tag), le16toh(raw.perm), le32toh(raw.id)};
    }
    if (!is_valid(a)) {
        free(a);
        return -EINVAL;
    }
    *out = a;
    return 0;
}

void
acl_write(const struct acl *a, void *out)
{
    uint32_t version = htole32(ACL_VERSION);
    uint8_t *at = out;

    memcpy(at, &version, sizeof version);
    at += ACL_HEADER_BYTES;
    for (unsigned i = 0; i < a->count; i++, at += ACL_ENTRY_BYTES) {
        const struct acl_entry *e = &a->entries[i];
        bool is_named = e->tag == ACL_USER || e->tag == ACL_GROUP;
        struct acl_entry raw = {htole16(e->tag), htole16(e->perm), htole32(is_named ? e->id : NO_ID)};

        memcpy(at, &raw, sizeof raw);
    }
}

static bool
mode_permits(uint32_t uid, uint32_t gid, uint32_t mode, const struct caller *c, unsigned want)
{
    unsigned bits = c->uid == uid ? mode >> 6 : caller_in_group(c, gid) ? mode >> 3 : mode;

    return (bits & want) == want;
}

static unsigned
mask_of(const struct acl *a)
{
    for (unsigned i = 0; i < a->count; i++) {
        if (a->entries[i].tag == ACL_MASK)
            return a->entries[i].perm;
    }
    return 7;
}

bool
acl_permits(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, const struct caller *c,
            unsigned want)
{
    bool is_in_group = false;

    if (!access)
        return mode_permits(uid, gid, mode, c, want);
    unsigned mask = mask_of(access);
    /* entries are sorted in the order of evaluation */
    for (unsigned i = 0; i < access->count; i++) {
        const struct acl_entry *e = &access->entries[i];

        switch (e->tag) {
        case ACL_USER_OBJ:
            if (c->uid == uid)
                return (e->perm & want) == want;
            break;
        case ACL_USER:
            if (c->uid == e->id)
                return (e->perm & mask & want) == want;
            break;
        case ACL_GROUP_OBJ:
        case ACL_GROUP:
            if (caller_in_group(c, e->tag == ACL_GROUP ? e->id : gid)) {
                if ((e->perm & mask & want) == want)
                    return true;
                /* another group of the caller may permit it; the entry for others no longer applies */
                is_in_group = true;
            }
            break;
        case ACL_OTHER:
            return !is_in_group && (e->perm & want) == want;
        default:
            break;
        }
    }
    return false;
}

bool
acl_permits_any_user(const struct acl *access, uint32_t uid, uint32_t gid, uint32_t mode, unsigned want)
{
    if (!access)
        return (uid && (mode >> 6 & want) == want) || (gid && (mode >> 3 & want) == want) ||
               (mode & want) == want;
    unsigned mask = mask_of(access);
    for (unsigned i = 0; i < access->count; i++) {
        const struct acl_entry *e = &access->entries[i];
        bool is_masked = e->tag == ACL_USER || e->tag == ACL_GROUP_OBJ || e->tag == ACL_GROUP;
        uint32_t who = e->tag == ACL_USER_OBJ    ? uid
                       : e->tag == ACL_GROUP_OBJ ? gid
                       : e->tag == ACL_OTHER     ? 1
                                                 : e->id;

        if (who && e->tag != ACL_MASK && (e->perm & (is_masked ? mask : 7) & want) == want)
            return true;
    }
    return false;
}

bool
acl_inherit(struct acl *a, uint32_t *mode)
{
    struct acl_entry *group = NULL, *mask = NULL;
    uint32_t bits = 0;

    for (unsigned i = 0; i < a->count; i++) {
        struct acl_entry *e = &a->entries[i];

        switch (e->tag) {
        case ACL_USER_OBJ:
            e->perm &= *mode >> 6 & 7;
            bits |= (uint32_t)e->perm << 6;
            break;
        case ACL_OTHER:
            e->perm &= *mode & 7;
            bits |= e->perm;
            break;
        case ACL_GROUP_OBJ:
            group = e;
            break;
        case ACL_MASK:
            mask = e;
            break;
        default:
            break;
        }
    }
    struct acl_entry *class = mask ? mask : group; /* the entry that the mode's group bits stand for */
    class->perm &= *mode >> 3 & 7;
    bits |= (uint32_t)class->perm << 3;
    *mode = (*mode & ~0777u) | bits;
    return a->count > 3;
}
