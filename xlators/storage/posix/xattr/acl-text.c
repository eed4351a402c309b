/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/storage/posix/xattr/acl-text.h"

#include <endian.h>
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ACL_VERSION 2
#define ACL_NO_ID UINT32_MAX

enum { TAG_USER_OBJ = 1, TAG_USER = 2, TAG_GROUP_OBJ = 4, TAG_GROUP = 8, TAG_MASK = 0x10, TAG_OTHER = 0x20 };

struct entry {
    uint16_t tag, perm;
    uint32_t id;
};

static const struct {
    const char *letter, *word;
    uint16_t own, named; /* tag without and with a qualifier; named 0: takes none */
} tags[] = {
    {"u", "user", TAG_USER_OBJ, TAG_USER},
    {"g", "group", TAG_GROUP_OBJ, TAG_GROUP},
    {"m", "mask", TAG_MASK, 0},
    {"o", "other", TAG_OTHER, 0},
};
#define TAG_KINDS (sizeof tags / sizeof tags[0])

/* Parses a number. Clients send ids as numbers. Names are refused: resolving them may take as long as the
 * machine's name server, and the users of the brick need not be those of the machine. Returns 0 or -EINVAL.
 */
static int
parse_id(const char *text, uint32_t *out)
{
    char *end;
    unsigned long n = strtoul(text, &end, 10);

    if (text[0] >= '0' && text[0] <= '9' && *end == '\0') {
        if (n >= ACL_NO_ID)
            return -EINVAL;
        *out = (uint32_t)n;
        return 0;
    }
    return -EINVAL;
}

static int
parse_perm(const char *text, uint16_t *out)
{
    uint16_t perm = 0;

    for (; *text != '\0'; text++) {
        switch (*text) {
        case 'r': perm |= 4; break;
        case 'w': perm |= 2; break;
        case 'x': perm |= 1; break;
        case '-': break;
        default: return -EINVAL;
        }
    }
    *out = perm;
    return 0;
}

/* "u:1000:r--" */
static int
parse_entry(char *text, struct entry *out)
{
    char *qualifier = strchr(text, ':');
    char *perm = qualifier ? strchr(qualifier + 1, ':') : NULL;

    if (qualifier == NULL)
        return -EINVAL;
    *qualifier++ = '\0';
    if (perm == NULL) { /* "o:r--" and "m:rwx", without the empty qualifier */
        perm = qualifier;
        qualifier = NULL;
    } else {
        *perm++ = '\0';
    }
    for (size_t i = 0; i < TAG_KINDS; i++) {
        if (strcmp(text, tags[i].letter) != 0 && strcmp(text, tags[i].word) != 0)
            continue;
        out->tag = tags[i].own;
        out->id = ACL_NO_ID;
        if (qualifier != NULL && qualifier[0] != '\0') {
            if (tags[i].named == 0 || parse_id(qualifier, &out->id) != 0)
                return -EINVAL;
            out->tag = tags[i].named;
        }
        return parse_perm(perm, &out->perm);
    }
    return -EINVAL;
}

static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a, *y = b;

    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->id < y->id ? -1 : x->id > y->id;
}

static void
acl_put_entry(unsigned char *p, const struct entry *e)
{
    uint16_t tag = htole16(e->tag), perm = htole16(e->perm);
    uint32_t id = htole32(e->id);

    memcpy(p, &tag, sizeof tag);
    memcpy(p + 2, &perm, sizeof perm);
    memcpy(p + 4, &id, sizeof id);
}

ssize_t
acl_from_text(const char *text, unsigned char out[ACL_BYTES_MAX])
{
    struct entry entries[ACL_ENTRIES_MAX];
    size_t count = 0;
    const uint32_t version = htole32(ACL_VERSION);

    for (;;) {
        char one[128];
        text += strspn(text, ", \t\n");
        if (*text == '\0')
            break;
        size_t len = strcspn(text, ",\n");
        size_t used = len;
        while (used > 0 && (text[used - 1] == ' ' || text[used - 1] == '\t'))
            used--;
        if (used >= sizeof one)
            return -EINVAL;
        if (count == ACL_ENTRIES_MAX)
            return -E2BIG;
        memcpy(one, text, used);
        one[used] = '\0';
        int err = parse_entry(one, &entries[count++]);
        if (err)
            return err;
        text += len;
    }
    if (count == 0)
        return -EINVAL;
    qsort(entries, count, sizeof entries[0], compare_entries);
    memcpy(out, &version, sizeof version);
    for (size_t i = 0; i < count; i++)
        acl_put_entry(out + 4 + 8 * i, &entries[i]);
    return (ssize_t)(4 + 8 * count);
}

static int
print_entry(char *out, size_t size, const unsigned char *p)
{
    uint16_t tag, perm;
    uint32_t id;
    char number[16] = "";

    memcpy(&tag, p, sizeof tag);
    memcpy(&perm, p + 2, sizeof perm);
    memcpy(&id, p + 4, sizeof id);
    tag = le16toh(tag);
    perm = le16toh(perm);
    for (size_t i = 0; i < TAG_KINDS; i++) {
        if (tag != tags[i].own && (tags[i].named == 0 || tag != tags[i].named))
            continue;
        if (tag == tags[i].named)
            snprintf(number, sizeof number, "%u", le32toh(id));
        return snprintf(out, size, "%s:%s:%c%c%c", tags[i].letter, number, perm & 4 ? 'r' : '-',
                        perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
    }
    return -EINVAL;
}

ssize_t
acl_to_text(const unsigned char *acl, size_t len, char *out, size_t size)
{
    uint32_t version;
    size_t used = 0;

    if (len < 4 || (len - 4) % 8 != 0)
        return -EINVAL;
    memcpy(&version, acl, sizeof version);
    if (le32toh(version) != ACL_VERSION)
        return -EINVAL;
    if (size == 0)
        return -E2BIG;
    out[0] = '\0';
    for (size_t at = 4; at < len; at += 8) {
        if (at > 4) {
            if (used + 1 >= size)
                return -E2BIG;
            out[used++] = ',';
        }
        int n = print_entry(out + used, size - used, acl + at);
        if (n < 0)
            return n;
        if ((size_t)n >= size - used)
            return -E2BIG;
        used += (size_t)n;
    }
    return (ssize_t)used;
}
