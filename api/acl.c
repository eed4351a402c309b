/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ACLs of objects, as libacl's objects: a program such as NFS-Ganesha reads and changes the entries with
 * libacl's calls.
 *
 *   get: GETXATTR of system.posix_acl_* -> text with numeric ids -> acl_from_text(3)
 *   set: acl_to_any_text(3) with numeric ids -> bytes -> SETXATTR
 *
 * The text is the only form that all versions of libacl share. The library libacl.so.1 is loaded at the first
 * call, because most programs never make the calls, and a program that does has loaded libacl itself. */
#include <dlfcn.h>
#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "api/api-internal.h"
#include "log/log.h"

/* The xattr's value: a version of 4 bytes, then entries. All numbers are little-endian. */
struct h_acl_entry {
    uint16_t tag, perm;
    uint32_t id;
};
enum { H_ACL_VERSION = 2, H_ACL_HEADER = 4, H_ACL_ENTRY = sizeof(struct h_acl_entry) };
enum { H_ACL_BYTES_MAX = 65536, H_ACL_LINE = 32 /* bytes of the longest entry in text */ };
enum { H_ACL_ACCESS = 0x8000, H_ACL_DEFAULT = 0x4000 }; /* ACL_TYPE_* of sys/acl.h */
enum { H_ACL_NUMERIC_IDS = 8 };                         /* TEXT_NUMERIC_IDS of acl/libacl.h */

/* ---- libacl ---------------------------------------------------------------------------------- */

static struct {
    void *(*from_text)(const char *text);
    char *(*to_any_text)(void *acl, const char *prefix, char separator, int options);
    int (*release)(void *object);
} libacl;
static pthread_once_t libacl_once = PTHREAD_ONCE_INIT;

static void
libacl_load(void)
{
    void *handle = dlopen("libacl.so.1", RTLD_NOW | RTLD_LOCAL);

    if (!handle) {
        log_event(LOG_ERROR, NULL, "gfapi-no-libacl", "ACLs of objects are refused: %s", dlerror());
        return;
    }
    libacl.to_any_text = (char *(*)(void *, const char *, char, int))dlsym(handle, "acl_to_any_text");
    libacl.release = (int (*)(void *))dlsym(handle, "acl_free");
    libacl.from_text = (void *(*)(const char *))dlsym(handle, "acl_from_text");
}

/* Returns the xattr of the ACL, or NULL with errno. */
static const char *
h_acl_xattr(const struct glfs *fs, const struct glfs_object *o, unsigned type)
{
    if (!fs || !o || (type != H_ACL_ACCESS && type != H_ACL_DEFAULT)) {
        errno = EINVAL;
        return NULL;
    }
    pthread_once(&libacl_once, libacl_load);
    if (libacl.from_text && libacl.to_any_text && libacl.release)
        return type == H_ACL_ACCESS ? "system.posix_acl_access" : "system.posix_acl_default";
    errno = ENOTSUP;
    return NULL;
}

/* ---- text and bytes -------------------------------------------------------------------------- */

static const struct {
    uint16_t tag;
    bool has_id;
    char name[8];
} h_acl_tags[] = {{0x01, false, "user"}, {0x02, true, "user"},  {0x04, false, "group"},
                  {0x08, true, "group"}, {0x10, false, "mask"}, {0x20, false, "other"}};

enum { H_ACL_TAGS = sizeof h_acl_tags / sizeof h_acl_tags[0] };

static size_t
h_acl_write_line(char *out, size_t tag, uint32_t id, unsigned perm)
{
    char number[12] = "";

    if (h_acl_tags[tag].has_id)
        snprintf(number, sizeof number, "%u", id);
    return (size_t)snprintf(out, H_ACL_LINE, "%s:%s:%c%c%c\n", h_acl_tags[tag].name, number,
                            perm & 4 ? 'r' : '-', perm & 2 ? 'w' : '-', perm & 1 ? 'x' : '-');
}

/* Returns the xattr's value as text, which the caller frees; NULL with errno. */
static char *
h_acl_text(const uint8_t *bytes, size_t size)
{
    size_t count = size >= H_ACL_HEADER ? (size - H_ACL_HEADER) / H_ACL_ENTRY : 0, at = 0;
    uint32_t version = 0;

    if (size >= H_ACL_HEADER)
        memcpy(&version, bytes, sizeof version);
    bool is_acl = le32toh(version) == H_ACL_VERSION && size == H_ACL_HEADER + count * H_ACL_ENTRY;
    char *text = malloc(count * H_ACL_LINE + 1);

    if (!text)
        return NULL;
    *text = '\0';
    for (size_t i = 0; i < count && is_acl; i++) {
        struct h_acl_entry e;
        size_t tag = 0;

        memcpy(&e, bytes + H_ACL_HEADER + i * H_ACL_ENTRY, sizeof e);
        while (tag < H_ACL_TAGS && h_acl_tags[tag].tag != le16toh(e.tag))
            tag++;
        is_acl = tag < H_ACL_TAGS;
        at += is_acl ? h_acl_write_line(text + at, tag, le32toh(e.id), le16toh(e.perm)) : 0;
    }
    if (is_acl)
        return text;
    free(text);
    errno = EIO; /* the brick has sent something else */
    return NULL;
}

/* Reads "TAG:ID:rwx". Returns the end of the entry; NULL: not of this form. */
static const char *
h_acl_read_entry(const char *text, uint8_t *out)
{
    const char *id = strchr(text, ':'), *perm = id ? strchr(id + 1, ':') : NULL;
    uint32_t number = UINT32_MAX;
    unsigned bits = 0;
    size_t tag = 0;

    if (!perm)
        return NULL;
    bool has_id = perm != id + 1;

    while (tag < H_ACL_TAGS &&
           (h_acl_tags[tag].has_id != has_id || strlen(h_acl_tags[tag].name) != (size_t)(id - text) ||
            memcmp(h_acl_tags[tag].name, text, (size_t)(id - text)) != 0))
        tag++;
    if (tag == H_ACL_TAGS)
        return NULL;
    if (has_id) {
        char *end;

        number = (uint32_t)strtoul(id + 1, &end, 10);
        if (end != perm)
            return NULL;
    }
    for (perm++; *perm && *perm != ','; perm++)
        bits |= *perm == 'r' ? 4 : *perm == 'w' ? 2 : *perm == 'x' ? 1 : 0;
    const struct h_acl_entry e = {htole16(h_acl_tags[tag].tag), htole16((uint16_t)bits), htole32(number)};

    memcpy(out, &e, sizeof e);
    return perm;
}

/* Writes the ACL's xattr into `bytes`, which has room for H_ACL_BYTES_MAX. Returns the size, or 0 with
 * errno. */
static size_t
h_acl_bytes(const char *text, uint8_t *bytes)
{
    const uint32_t version = htole32(H_ACL_VERSION);
    size_t size = H_ACL_HEADER;

    memcpy(bytes, &version, sizeof version);
    for (; *text; text += *text == ',') {
        if (size + H_ACL_ENTRY > H_ACL_BYTES_MAX) {
            errno = E2BIG;
            return 0;
        }
        text = h_acl_read_entry(text, bytes + size);
        if (!text) {
            errno = EINVAL;
            return 0;
        }
        size += H_ACL_ENTRY;
    }
    return size;
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The ACL of an object that has none, as text; NULL with errno. */
static char *
h_acl_of_mode(struct glfs *fs, struct glfs_object *o, unsigned type)
{
    struct iatt a;
    size_t at = 0;

    if (api_stat_path(fs, o, NULL, 0, &a) < 0)
        return NULL;
    if (type == H_ACL_DEFAULT && !S_ISDIR(a.mode)) {
        errno = EACCES; /* as acl_get_file(3) */
        return NULL;
    }
    char *text = calloc(3, H_ACL_LINE);

    for (size_t i = 0; i < 3 && text && type == H_ACL_ACCESS; i++) {
        static const size_t tags[] = {0, 2, 5}; /* owner, group, others: places in h_acl_tags */

        at += h_acl_write_line(text + at, tags[i], 0, a.mode >> (6 - 3 * i) & 7);
    }
    return text;
}

GFAPI void *
glfs_h_acl_get(struct glfs *fs, struct glfs_object *o, unsigned type)
{
    const char *name = h_acl_xattr(fs, o, type);
    uint8_t *bytes = name ? malloc(H_ACL_BYTES_MAX) : NULL;
    char *text;

    if (!bytes)
        return NULL;
    ssize_t size = api_getxattr(fs, o, NULL, PLACE_KNOWN, name, bytes, H_ACL_BYTES_MAX);

    if (size >= 0)
        text = h_acl_text(bytes, (size_t)size);
    else
        text = errno == ENODATA ? h_acl_of_mode(fs, o, type) : NULL;
    free(bytes);
    void *acl = text ? libacl.from_text(text) : NULL;
    int err = errno;

    free(text);
    errno = err;
    return acl;
}

static int
h_acl_set_text(struct glfs *fs, struct glfs_object *o, unsigned type, const char *name, const char *text)
{
    struct iatt a;

    if (type == H_ACL_DEFAULT && api_stat_path(fs, o, NULL, 0, &a) < 0)
        return -1;
    if (type == H_ACL_DEFAULT && !S_ISDIR(a.mode)) {
        errno = EACCES; /* as acl_set_file(3) */
        return -1;
    }
    if (!*text && type == H_ACL_DEFAULT) {
        int ret = api_removexattr(fs, o, NULL, PLACE_KNOWN, name);

        return ret < 0 && errno == ENODATA ? 0 : ret;
    }
    uint8_t *bytes = malloc(H_ACL_BYTES_MAX);
    size_t size = bytes ? h_acl_bytes(text, bytes) : 0;
    int ret = size ? api_setxattr(fs, o, NULL, PLACE_KNOWN, name, bytes, size, 0) : -1;
    int err = errno;

    free(bytes);
    errno = err;
    return ret;
}

GFAPI int
glfs_h_acl_set(struct glfs *fs, struct glfs_object *o, unsigned type, void *acl)
{
    const char *name = h_acl_xattr(fs, o, type);

    if (name && !acl)
        errno = EINVAL;
    char *text = name && acl ? libacl.to_any_text(acl, NULL, ',', H_ACL_NUMERIC_IDS) : NULL;

    if (!text)
        return -1;
    int ret = h_acl_set_text(fs, o, type, name, text), err = errno;

    libacl.release(text);
    errno = err;
    return ret;
}
