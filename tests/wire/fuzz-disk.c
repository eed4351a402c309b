/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on the decoders of data on a brick's file system, where another program may have put any
 * bytes: mdata, ACLs, the texts of handles, pending counts, names of xattrs. The first byte selects the
 * decoder, the second varies the call. ACLs are read once more without memory.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>

#include "base/gfid.h"
#include "xlators/features/access-control/acl.h"
#undef ACL_ENTRIES_MAX /* each has its own */
#include "xlators/storage/posix/xattr/acl-text.h"
#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/object/handle.h"
#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/xattr/xattr-rules.h"
#include "xlators/storage/posix/xattr/xattrop.h"
#include "tests/wire/fuzz-memory.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void
run_mdata(const void *bytes, size_t len)
{
    struct mdata m;
    uint8_t again[POSIX_MDATA_BYTES];

    if (posix_mdata_decode(bytes, len, &m))
        return;
    posix_mdata_encode(&m, again);
    if (posix_mdata_decode(again, sizeof again, &m))
        abort();
}

static void
run_acl(const void *bytes, size_t len, uint8_t how)
{
    struct acl *acl;
    uint32_t groups[2] = {20, how}, mode = 0777u & (how * 5u);
    struct caller c = {.uid = how % 3 ? how : 10, .gid = how / 3, .group_count = 2, .groups = groups};

    allocations_left = how % 2;
    int err = acl_parse(bytes, len, &acl);
    allocations_left = 0;
    if (err || !acl)
        return;
    if (acl_bytes(acl) > len)
        abort();
    (void)acl_permits(acl, how % 2, 5, 0640, &c, how % 8);
    (void)acl_permits(NULL, how % 2, 5, 0640, &c, how % 8);
    (void)acl_permits_any_user(acl, how % 3, how % 5, 0640, how % 8);
    (void)acl_permits_any_user(NULL, how % 3, how % 5, 0640, how % 8);
    void *out = malloc(acl_bytes(acl));

    acl_write(acl, out);
    struct acl *again;

    if (acl_parse(out, acl_bytes(acl), &again))
        abort();
    free(again);
    free(out);
    (void)acl_inherit(acl, &mode);
    if (mode & ~0777u)
        abort();
    free(acl);
}

static void
run_acl_text(const void *bytes, size_t len, uint8_t how)
{
    size_t room = how ? how : ACL_TEXT_MAX;
    char *text = malloc(room);
    ssize_t n = acl_to_text(bytes, len, text, room);

    if (n >= 0 && ((size_t)n >= room || strlen(text) != (size_t)n))
        abort();
    free(text);
}

static void
run_handle_text(const char *bytes, size_t len)
{
    char text[POSIX_HANDLE_TEXT_MAX + 1], again[POSIX_HANDLE_TEXT_MAX];
    struct gfid parent;
    const char *name;

    len = len < POSIX_HANDLE_TEXT_MAX ? len : POSIX_HANDLE_TEXT_MAX;
    memcpy(text, bytes, len);
    text[len] = '\0';
    if (strlen(text) != len)
        return; /* no symlink's text */
    if (!posix_handle_text_parse(text, len, &parent, &name))
        return;
    /* An accepted handle text names an entry of a folder: neither the folder itself nor a folder above. */
    if (!*name || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 || strchr(name, '/') ||
        strlen(name) > 255)
        abort();
    posix_handle_text(&parent, name, again);
    if (strcasecmp(text, again) != 0)
        abort();
}

static void
run_xattrop(uint8_t op, const uint8_t *bytes, size_t len)
{
    ssize_t n = xattrop_result_len(op % 8, bytes, len);

    if (n < 0)
        return;
    if ((size_t)n > len)
        abort();
    unsigned char *value = calloc(1, n ? (size_t)n : 1);

    for (int i = 0; i < 3; i++)
        xattrop_apply(op % 8, bytes, value, (size_t)n);
    free(value);
}

static void
run_name(const char *bytes, size_t len)
{
    char name[256], key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE];
    struct gfid parent = {{1, 2, 3}};

    len = len < sizeof name - 1 ? len : sizeof name - 1;
    memcpy(name, bytes, len);
    name[len] = '\0';
    enum xattr_kind kind = xattr_kind_of(name);

    (void)xattr_has_namespace(name);
    (void)xattr_hidden_in_list(kind, &(struct caller){.pid = -1});
    (void)xattr_hidden_in_list(kind, &(struct caller){.uid = 1000});
    (void)xattr_hidden_in_fill(kind);
    (void)xattr_is_synced(name);
    if (xattr_is_quota_command(name, &(struct caller){.pid = -5, .standing = PID_COUNTS_NOT}))
        abort(); /* anybody may say that number */
    (void)xattr_is_quota_command(name, &(struct caller){.pid = -5});
    if (posix_gfid2path_pair(&parent, name, key, value) != 37 + strlen(name) || strlen(key) != sizeof key - 1)
        abort();
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    size_t len = size - 2;
    uint8_t *bytes = malloc(len ? len : 1); /* an exact copy, so that ASan sees a step outside */

    memcpy(bytes, data + 2, len);
    switch (data[0] % 6) {
    case 0:
        run_mdata(bytes, len);
        break;
    case 1:
        run_acl(bytes, len, data[1]);
        break;
    case 2:
        run_acl_text(bytes, len, data[1]);
        break;
    case 3:
        run_handle_text((char *)bytes, len);
        break;
    case 4:
        run_xattrop(data[1], bytes, len);
        break;
    default:
        run_name((char *)bytes, len);
    }
    free(bytes);
    return 0;
}
