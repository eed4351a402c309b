/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Xattrs, virtual names, the keys that a request's xdata selects, xattrop and directory listings. */
#include "xlators/storage/posix/test-brick.h"

#include "xlators/storage/posix/entry/gfid2path.h"
#include "fs/brick-client.h"
#include "xlators/storage/posix/xattr/xattr-fill.h"
#include "xlators/storage/posix/xattr/xattrop.h"

static struct inode *file;

static void
setup(void)
{
    brick_setup();
    file = brick_make("file", S_IFREG);
}

static void
teardown(void)
{
    inode_unref(file);
    brick_teardown();
}

static const char *
backend(const char *name)
{
    static char path[256];

    snprintf(path, sizeof path, "%s/%s", brick.dir, name);
    return path;
}

/* Sets a key. Returns 0 or -errno. */
static int
set(struct inode *inode, const char *key, const void *value, uint32_t len, uint32_t flags)
{
    struct call_stack stk;

    call_on_inode(&stk, FOP_setxattr, inode);
    ck_assert_int_eq(dict_set_text(call_dict(&stk), key, DICT_PTR, value, len), 0);
    stk.call.flags = flags;
    int r = posix_fop_setxattr(&brick.xl, &stk);
    if (r == XL_DONE) {
        ck_assert(dict_has(stk.reply.xdata, DICT_KEY_PRESTAT));
        ck_assert(dict_has(stk.reply.xdata, DICT_KEY_POSTSTAT));
        ck_assert(dict_has(stk.reply.xdata, DICT_KEY_IATT_IN_XATTR));
    }
    call_end(&stk);
    return r == XL_DONE ? 0 : r;
}

static int
get_call(struct call_stack *stk, struct inode *inode, const char *key, int32_t pid)
{
    call_on_inode(stk, FOP_getxattr, inode);
    stk->call.name = key;
    stk->call.has_name = key != NULL;
    stk->caller.pid = pid;
    int r = posix_fop_getxattr(&brick.xl, stk);
    return r == XL_DONE ? stk->reply.op_ret : r;
}

/* Reads a key and compares its value with `want`, unless NULL. Returns op_ret or -errno. */
static int
get(struct inode *inode, const char *key, int32_t pid, const void *want)
{
    struct call_stack stk;
    int r = get_call(&stk, inode, key, pid);

    if (r >= 0 && want != NULL) {
        const struct dict_pair *p = dict_find_text(stk.reply.dict, key);
        ck_assert_ptr_nonnull(p);
        ck_assert_mem_eq(p->v.bytes, want, (size_t)r);
    }
    call_end(&stk);
    return r;
}

static int
remove_key(struct inode *inode, const char *key, int32_t pid)
{
    struct call_stack stk;

    call_on_inode(&stk, FOP_removexattr, inode);
    stk.call.name = key;
    stk.caller.pid = pid;
    int r = posix_fop_removexattr(&brick.xl, &stk);
    call_end(&stk);
    return r == XL_DONE ? 0 : r;
}

START_TEST(set_get_remove)
{
    ck_assert_int_eq(get(file, "user.a", 0, NULL), -ENODATA);
    ck_assert_int_eq(set(file, "user.a", "one", 3, 0), 0);
    ck_assert_int_eq(get(file, "user.a", 0, "one"), 3);
    ck_assert_int_eq(set(file, "user.a", "two", 3, XATTR_CREATE), -EEXIST);
    ck_assert_int_eq(set(file, "user.b", "two", 3, XATTR_REPLACE), -ENODATA);
    ck_assert_int_eq(set(file, "trusted.glusterfs.dht.linkto", "v1-client-0", 12, 0), 0);
    ck_assert_int_eq(get(file, "trusted.glusterfs.dht.linkto", 0, "v1-client-0"), 12);
    ck_assert_int_eq(remove_key(file, "user.a", 0), 0);
    ck_assert_int_eq(remove_key(file, "user.a", 0), -ENODATA);

    char big[3000];
    memset(big, 'x', sizeof big);
    ck_assert_int_eq(set(file, "user.big", big, sizeof big, 0), 0);
    ck_assert_int_eq(get(file, "user.big", 0, big), sizeof big);
    ck_assert_int_eq(set(file, "user.empty", "", 0, 0), 0);
    ck_assert_int_eq(get(file, "user.empty", 0, ""), 0);
}
END_TEST

START_TEST(forbidden_names_are_refused)
{
    char gfid[16] = {1};

    ck_assert_int_eq(set(file, "foo.bar", "x", 1, 0), -ENOTSUP);
    ck_assert_int_eq(set(file, "trusted.glusterfs.pathinfo", "x", 1, 0), -EACCES);
    ck_assert_int_eq(set(file, "trusted.gfid2path.0123", "x", 1, 0), -ENOTSUP);
    ck_assert_int_eq(set(file, "trusted.bit-rot.version", "x", 1, 0), -EINVAL);
    ck_assert_int_eq(set(file, "trusted.gfid", gfid, 16, 0), 0); /* and nothing happens */
    ck_assert_int_eq(lgetxattr(backend("file"), "trusted.gfid", gfid, 16), 16);
    ck_assert_mem_eq(gfid, file->gfid.b, 16);
    int malformed = set(file, "system.posix_acl_access", "nonsense", 8, 0);
    ck_assert(malformed == -EINVAL || malformed == -EOPNOTSUPP); /* the file system's choice */

    struct call_stack stk;
    ck_assert_int_eq(get_call(&stk, file, "trusted.gfid", 0), 16);
    ck_assert_uint_eq(stk.reply.dict->count, 0);
    call_end(&stk);
    ck_assert_int_eq(get(file, "trusted.gfid2path.0123", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(file, "glusterfs.gfid.string", 0, NULL), -ENOTSUP);
    ck_assert_int_eq(get(file, "foo.bar", 0, NULL), -ENOTSUP);
    ck_assert_int_eq(remove_key(file, "trusted.gfid", 0), -EPERM);
    ck_assert_int_eq(remove_key(file, "trusted.gfid2path.0123", 0), -ENODATA);
    ck_assert_int_eq(remove_key(file, "system.posix_acl_access", 0), 0);
    ck_assert_int_eq(remove_key(file, "foo.bar", 0), -ENOTSUP);
}
END_TEST

START_TEST(acl_as_text)
{
    static const char text[] = "u::rw-,u:1000:r--,g::r--,m::r--,o::r--";
    struct call_stack stk;

    ck_assert_int_eq(chmod(backend("file"), 0751), 0);
    ck_assert_int_eq(get(file, "glusterfs.posix.acl", 0, "u::rwx,g::r-x,o::--x"), 20);
    ck_assert_int_eq(get(file, "glusterfs.posix.default_acl", 0, NULL), -ENODATA);
    ck_assert_int_eq(set(file, "glusterfs.posix.acl", text, sizeof text - 1, 0), 0);
    ck_assert_int_eq(get(file, "glusterfs.posix.acl", 0, text), sizeof text - 1);
    ck_assert_int_eq(get(file, "system.posix_acl_access", 0, NULL), 44);
    call_on_inode(&stk, FOP_stat, file);
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_ACL_ACCESS_TEXT, 0), 0);
    ck_assert_int_eq(posix_fop_stat(&brick.xl, &stk), XL_DONE);
    ck_assert_str_eq(dict_get_str(stk.reply.xdata, DICT_KEY_ACL_ACCESS_TEXT), text);
    call_end(&stk);
}
END_TEST

START_TEST(mdata_merges_and_is_for_internal_clients)
{
    const struct mdata times = {.atime = 5, .mtime = 6, .ctime = 7};
    struct call_stack stk;
    uint8_t bytes[57];

    call_on_inode(&stk, FOP_setxattr, file);
    struct dict_pair p = {.key = "set-ctime-mdata", .key_len = 15, .type = DICT_MDATA, .v.mdata = &times};
    ck_assert_ptr_nonnull(dict_append(call_dict(&stk), &p));
    ck_assert_int_eq(posix_fop_setxattr(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(lgetxattr(backend("file"), "trusted.glusterfs.mdata", bytes, 57), 57);
    ck_assert_int_eq(bytes[0], 1);
    ck_assert_int_eq(bytes[16], 7);
    ck_assert_int_eq(get(file, "trusted.glusterfs.mdata", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(file, "trusted.glusterfs.mdata", -6, bytes), 57);
    bytes[16] = 3; /* an older ctime */
    bytes[32] = 9; /* a later mtime */
    ck_assert_int_eq(set(file, "trusted.glusterfs.mdata", bytes, 57, 0), 0);
    bytes[16] = 7;
    ck_assert_int_eq(get(file, "trusted.glusterfs.mdata", -6, bytes), 57);
    ck_assert_int_eq(set(file, "trusted.glusterfs.mdata", bytes, 56, 0), -EINVAL);
}
END_TEST

/* set() by a client of the given pid. */
static int
set_as(int32_t pid, struct inode *inode, const char *key)
{
    struct call_stack stk;

    call_on_inode(&stk, FOP_setxattr, inode);
    ck_assert_int_eq(dict_set_text(call_dict(&stk), key, DICT_PTR, "1", 1), 0);
    stk.caller.pid = pid;
    int r = posix_fop_setxattr(&brick.xl, &stk);
    call_end(&stk);
    return r == XL_DONE ? 0 : r;
}

START_TEST(quota_limits_are_refused_to_the_command_alone)
{
    static const char *const limits[] = {"trusted.glusterfs.quota.limit-set",
                                         "trusted.glusterfs.quota.limit-objects"};

    for (size_t i = 0; i < 2; i++) {
        ck_assert_int_eq(set_as(-5, file, limits[i]), -ENOTSUP);
        ck_assert_int_eq(get(file, limits[i], -6, NULL), -ENODATA);
        ck_assert_int_eq(set_as(-6, file, limits[i]), 0); /* a heal copies the xattrs of a stock brick */
        ck_assert_int_eq(set_as(0, file, limits[i]), 0);
        ck_assert_int_eq(remove_key(file, limits[i], -5), 0);
    }
    ck_assert_int_eq(set_as(-5, file, "trusted.glusterfs.dht"), 0);
}
END_TEST

START_TEST(list_hides_the_bricks_own)
{
    struct call_stack stk;

    ck_assert_int_eq(set(file, "user.a", "1", 1, 0), 0);
    ck_assert_int_eq(set(file, "trusted.afr.dirty", "\0\0\0\0\0\0\0\0\0\0\0\1", 12, 0), 0);
    ck_assert_int_eq(lsetxattr(backend("file"), "trusted.gfid2path.00", "x", 1, 0), 0);
    ck_assert_int_eq(lsetxattr(backend("file"), "trusted.glusterfs.quota.limit-set", "x", 1, 0), 0);
    ck_assert_int_gt(get_call(&stk, file, NULL, 0), 0);
    ck_assert_uint_eq(stk.reply.dict->count, 2);
    ck_assert_ptr_nonnull(dict_find_text(stk.reply.dict, "user.a"));
    ck_assert_ptr_nonnull(dict_find_text(stk.reply.dict, "trusted.afr.dirty"));
    call_end(&stk);
}
END_TEST

START_TEST(one_call_removes_all_xattrs_of_the_dict)
{
    struct call_stack stk;

    ck_assert_int_eq(set(file, "trusted.glusterfs.dht", "1234", 4, 0), 0);
    call_on_inode(&stk, FOP_removexattr, file);
    stk.call.name = "";
    ck_assert_int_eq(dict_set_text(call_xdata(&stk), "trusted.glusterfs.dht", DICT_STR, "", 1), 0);
    ck_assert_int_eq(dict_set_text(call_xdata(&stk), "trusted.glusterfs.dht.mds", DICT_STR, "", 1), 0);
    ck_assert_int_eq(posix_fop_removexattr(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(get(file, "trusted.glusterfs.dht", 0, NULL), -ENODATA);

    /* AFR sends an empty name and an empty dict when the sink has no xattr to remove; without a dict the call
     * fails. */
    call_on_inode(&stk, FOP_removexattr, file);
    stk.call.name = "";
    ck_assert_ptr_nonnull(call_xdata(&stk));
    ck_assert_int_eq(posix_fop_removexattr(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(remove_key(file, "", 0), -EINVAL);
}
END_TEST

START_TEST(sync_removes_user_xattrs_that_the_call_lacks)
{
    struct inode *dir = brick_make("dir", S_IFDIR);
    struct call_stack stk;

    ck_assert_int_eq(set(dir, "user.old", "1", 1, 0), 0);
    ck_assert_int_eq(set(dir, "trusted.glusterfs.dht", "1234", 4, 0), 0);
    call_on_inode(&stk, FOP_setxattr, dir);
    ck_assert_int_eq(dict_set_text(call_dict(&stk), "user.new", DICT_PTR, "2", 1), 0);
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_SYNC_BACKEND_XATTRS, 1), 0);
    ck_assert_int_eq(posix_fop_setxattr(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(get(dir, "user.old", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(dir, "user.new", 0, "2"), 1);
    ck_assert_int_eq(get(dir, "trusted.glusterfs.dht", 0, "1234"), 4);
    inode_unref(dir);
}
END_TEST

START_TEST(virtual_names_show_paths_and_ancestry)
{
    struct inode *dir = brick_make("dir", S_IFDIR);
    struct posix_obj obj;
    char want[512];

    snprintf(want, sizeof want, "<POSIX(%s):testhost:%s/file>", brick.dir, brick.dir);
    ck_assert_int_eq(get(file, "trusted.glusterfs.pathinfo", 0, want), (int)strlen(want));
    ck_assert_int_eq(get(file, "trusted.glusterfs.node-uuid", 0, TEST_NODE_UUID), 36);
    ck_assert_int_eq(get(file, "glusterfs.gfid2path", 0, "/file"), 5);
    ck_assert_int_eq(get(brick.root, "glusterfs.gfid2path", 0, "/"), 1);
    ck_assert_int_eq(get(dir, "glusterfs.ancestry.path", 0, "/dir"), 4);
    ck_assert_int_eq(get(file, "glusterfs.ancestry.path", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(file, "glusterfs.gfidtopath", 0, NULL), -ENODATA);
    posix_obj_inode(brick.p, file, &obj);
    posix_gfid2path_set(&brick.xl, &obj, &gfid_root, "file");
    posix_gfid2path_set(&brick.xl, &obj, &dir->gfid, "second");
    struct call_stack stk;
    ck_assert_int_eq(get_call(&stk, file, "glusterfs.gfidtopath", 0), 17);
    const struct dict_pair *p = dict_find_text(stk.reply.dict, "glusterfs.gfidtopath");
    ck_assert_ptr_nonnull(p);
    ck_assert(memcmp(p->v.bytes, "/file:/dir/second", 17) == 0 ||
              memcmp(p->v.bytes, "/dir/second:/file", 17) == 0);
    call_end(&stk);
    ck_assert_int_eq(get(file, "glusterfs.ancestry.path", 0, NULL), -ENODATA); /* build-pgfid is off */
    ((struct posix_conf *)brick.xl.conf)->pgfid = true;
    ck_assert_int_eq(get_call(&stk, file, "glusterfs.ancestry.path", 0), 17);
    p = dict_find_text(stk.reply.dict, "glusterfs.ancestry.path");
    ck_assert_ptr_nonnull(p);
    ck_assert(memcmp(p->v.bytes, "/file:/dir/second", 17) == 0 ||
              memcmp(p->v.bytes, "/dir/second:/file", 17) == 0);
    call_end(&stk);
    ck_assert_int_eq(get(brick.root, "glusterfs.get_real_filename:FILE", 0, "file"), 4);
    ck_assert_int_eq(get(brick.root, "glusterfs.get_real_filename:none", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(brick.root, "glusterfs.get_real_filename:.GLUSTERFS", 0, NULL), -ENODATA);
    ck_assert_int_eq(get(file, "glusterfs.get_real_filename:x", 0, NULL), -ENOTDIR);
    ck_assert_int_eq(get(file, "trusted.gl", 0, NULL), -ENODATA);
    inode_unref(dir);
}
END_TEST

/* The keys that a stock client requests in a LOOKUP, requested here in a STAT. */
START_TEST(a_stat_returns_the_requested_xattrs_that_exist)
{
    struct call_stack stk;
    static const char *const keys[] = {"trusted.afr.dirty",
                                       "trusted.afr.v-client-0",
                                       "security.capability",
                                       "user.*",
                                       "trusted.glusterfs.dht.linkto",
                                       "system.posix_acl_access"};
    uint64_t fds;

    ck_assert_int_eq(set(file, "user.a", "1", 1, 0), 0);
    ck_assert_int_eq(set(file, "user.b", "2", 1, 0), 0);
    ck_assert_int_eq(set(file, "trusted.afr.dirty", "123456789012", 12, 0), 0);
    ck_assert_int_eq(set(file, "trusted.other", "x", 1, 0), 0);
    call_on_inode(&stk, FOP_stat, file);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        ck_assert_int_eq(dict_set_text_int(call_xdata(&stk), keys[i], 0), 0);
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_OPEN_FD_COUNT, 0), 0);
    ck_assert_int_eq(posix_fop_stat(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.xdata->count, 4);
    ck_assert_ptr_nonnull(dict_find_text(stk.reply.xdata, "user.a"));
    ck_assert_ptr_nonnull(dict_find_text(stk.reply.xdata, "user.b"));
    const struct dict_pair *dirty = dict_find_text(stk.reply.xdata, "trusted.afr.dirty");
    ck_assert_ptr_nonnull(dirty);
    ck_assert_uint_eq(dirty->type, DICT_PTR);
    ck_assert_mem_eq(dirty->v.bytes, "123456789012", 12);
    ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_OPEN_FD_COUNT, &fds), 0);
    call_end(&stk);

    /* Nothing there: no dict at all. */
    call_on_inode(&stk, FOP_stat, file);
    ck_assert_int_eq(dict_set_text_int(call_xdata(&stk), "trusted.none", 0), 0);
    ck_assert_int_eq(posix_fop_stat(&brick.xl, &stk), XL_DONE);
    ck_assert_ptr_null(stk.reply.xdata);
    call_end(&stk);

    call_on_inode(&stk, FOP_stat, file);
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_LIST_XATTR, 0), 0);
    ck_assert_int_eq(dict_set_text_int(call_xdata(&stk), "user.a", 0), 0);
    ck_assert_int_eq(posix_fop_stat(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.xdata->count, 4);
    call_end(&stk);
}
END_TEST

static int
stat_asking(struct call_stack *stk, unsigned count, const char *format)
{
    char key[64];

    call_on_inode(stk, FOP_stat, file);
    for (unsigned i = 0; i < count; i++) {
        snprintf(key, sizeof key, format, i);
        ck_assert_int_eq(dict_set_text_int(call_xdata(stk), key, 0), 0);
    }
    return posix_fop_stat(&brick.xl, stk);
}

START_TEST(hundreds_of_keys_and_16_patterns_are_answered)
{
    struct call_stack stk;
    char key[32];

    for (unsigned i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "user.key%u", 7 * i);
        ck_assert_int_eq(set(file, key, "1", 1, 0), 0);
    }
    /* Counts of keys that are compared one by one, and counts that need a table. */
    for (unsigned count = 31; count <= 256; count += count < 34 ? 1 : 111) {
        ck_assert_int_eq(stat_asking(&stk, count, "user.key%u"), XL_DONE);
        ck_assert_uint_eq(stk.reply.xdata->count, (count + 6) / 7);
        call_end(&stk);
    }
    ck_assert_int_eq(stat_asking(&stk, 16, "user.key%u?"), XL_DONE);
    ck_assert_uint_eq(stk.reply.xdata->count, 21); /* 14, 21 ... 147, 154 */
    call_end(&stk);
    ck_assert_int_eq(stat_asking(&stk, 17, "user.key%u?"), -E2BIG);
    call_end(&stk);
}
END_TEST

START_TEST(a_call_of_a_lost_client_is_cancelled)
{
    struct brick_client client = {.is_gone = true};
    struct posix_fill fill = {.xl = &brick.xl, .client = &client};

    ck_assert_int_eq(posix_xattr_fill(&fill), -ECANCELED);
    client.is_gone = false;
    ck_assert_int_eq(posix_xattr_fill(&fill), 0);
}
END_TEST

START_TEST(a_stat_returns_the_content_of_a_small_file)
{
    struct call_stack stk;
    int fd = open(backend("file"), O_WRONLY);

    ck_assert_int_eq(write(fd, "small", 5), 5);
    close(fd);
    for (uint64_t limit = 4; limit <= 5; limit++) {
        call_on_inode(&stk, FOP_stat, file);
        ck_assert_int_eq(dict_set_uint(call_xdata(&stk), DICT_KEY_CONTENT, limit), 0);
        ck_assert_int_eq(posix_fop_stat(&brick.xl, &stk), XL_DONE);
        const struct dict_pair *p = dict_find(stk.reply.xdata, DICT_KEY_CONTENT);
        ck_assert_int_eq(p != NULL, limit == 5);
        if (p != NULL)
            ck_assert_mem_eq(p->v.bytes, "small", 5);
        call_end(&stk);
    }
}
END_TEST

static int
xattrop(uint32_t op, const char *key, const void *value, uint32_t len, struct call_stack *stk)
{
    call_on_inode(stk, FOP_xattrop, file);
    stk->call.flags = op;
    ck_assert_int_eq(dict_set_text(call_dict(stk), key, DICT_PTR, value, len), 0);
    return posix_fop_xattrop(&brick.xl, stk);
}

START_TEST(counters)
{
    struct call_stack stk;
    static const unsigned char one[12] = {0, 0, 0, 1}, zero[12], big[16] = {1};
    const struct dict_pair *p;

    /* Asking stores nothing. */
    ck_assert_int_eq(xattrop(XATTROP_ADD, "trusted.afr.dirty", zero, 12, &stk), XL_DONE);
    p = dict_find_text(stk.reply.dict, "trusted.afr.dirty");
    ck_assert_ptr_nonnull(p);
    ck_assert_mem_eq(p->v.bytes, zero, 12);
    call_end(&stk);
    ck_assert_int_eq(get(file, "trusted.afr.dirty", 0, NULL), -ENODATA);

    for (unsigned char want = 1; want <= 2; want++) {
        ck_assert_int_eq(xattrop(XATTROP_ADD, "trusted.afr.dirty", one, 12, &stk), XL_DONE);
        p = dict_find_text(stk.reply.dict, "trusted.afr.dirty");
        ck_assert_uint_eq(((const unsigned char *)p->v.bytes)[3], want);
        ck_assert_uint_eq(p->len, 12);
        call_end(&stk);
    }
    ck_assert_int_eq(xattrop(XATTROP_ADD, "trusted.afr.dirty", one, 8, &stk), -ERANGE);
    call_end(&stk);

    /* Several keys in one call: the stored counter is incremented, the other counters start at zero. */
    call_on_inode(&stk, FOP_xattrop, file);
    static const char *const keys[] = {"trusted.afr.v-client-0", "trusted.afr.dirty",
                                       "trusted.afr.v-client-1"};
    for (size_t i = 0; i < 3; i++)
        ck_assert_int_eq(dict_set_text(call_dict(&stk), keys[i], DICT_PTR, i < 2 ? one : zero, 12), 0);
    ck_assert_int_eq(posix_fop_xattrop(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(((const unsigned char *)dict_find_text(stk.reply.dict, keys[0])->v.bytes)[3], 1);
    ck_assert_uint_eq(((const unsigned char *)dict_find_text(stk.reply.dict, keys[1])->v.bytes)[3], 3);
    ck_assert_uint_eq(((const unsigned char *)dict_find_text(stk.reply.dict, keys[2])->v.bytes)[3], 0);
    call_end(&stk);
    ck_assert_int_eq(get(file, keys[2], 0, NULL), -ENODATA);
    ck_assert_int_eq(xattrop(XATTROP_ADD, "nonamespace", one, 12, &stk), -ENOTSUP);
    call_end(&stk);
    ck_assert_int_eq(xattrop(2, "trusted.x", one, 12, &stk), -EINVAL);
    call_end(&stk);

    /* get-and-set without and with an old value. */
    ck_assert_int_eq(xattrop(XATTROP_GET_AND_SET, "trusted.x", one, 12, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.dict->count, 0);
    call_end(&stk);
    ck_assert_int_eq(xattrop(XATTROP_GET_AND_SET, "trusted.x", big, 16, &stk), XL_DONE);
    p = dict_find_text(stk.reply.dict, "trusted.x");
    ck_assert_mem_eq(p->v.bytes, one, 12);
    call_end(&stk);

    /* By an fd, of a file that has no name any more. */
    struct fd *fd = brick_open(file, O_RDONLY);
    ck_assert_int_eq(unlink(backend("file")), 0);
    call_on_fd(&stk, FOP_fxattrop, fd);
    ck_assert_int_eq(dict_set_text(call_dict(&stk), "trusted.afr.dirty", DICT_PTR, one, 12), 0);
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_MODE_IN_XATTR, 0), 0);
    ck_assert_int_eq(posix_fop_fxattrop(&brick.xl, &stk), XL_DONE);
    int64_t mode;
    ck_assert_int_eq(dict_get_int(stk.reply.xdata, DICT_KEY_MODE_IN_XATTR, &mode), 0);
    ck_assert(S_ISREG(mode));
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

/* Concurrent additions by several threads are all counted. */
enum { ADDERS = 4, ADDITIONS = 250 };

static void *
add_often(void *arg)
{
    for (int i = 0; i < ADDITIONS; i++) {
        struct call_stack stk;

        call_on_inode(&stk, FOP_xattrop, file);
        if (dict_set_text(call_dict(&stk), "trusted.ec.version", DICT_PTR, arg, 8) == 0) {
            stk.call.flags = XATTROP_ADD64;
            posix_fop_xattrop(&brick.xl, &stk);
        }
        call_end(&stk);
    }
    return NULL;
}

START_TEST(counters_of_many_threads)
{
    pthread_t threads[ADDERS];
    static unsigned char one[8] = {0, 0, 0, 0, 0, 0, 0, 1};

    for (int i = 0; i < ADDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, add_often, one), 0);
    for (int i = 0; i < ADDERS; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(get(file, "trusted.ec.version", 0, "\0\0\0\0\0\0\3\350"), 8); /* 1000 */
}
END_TEST

/* ---- directories ----------------------------------------------------------------------------- */

static int
list_call(struct call_stack *stk, struct fd *fd, bool is_plus, uint64_t offset, uint64_t size)
{
    call_on_fd(stk, is_plus ? FOP_readdirp : FOP_readdir, fd);
    stk->call.offset = offset;
    stk->call.size = size;
    int r = is_plus ? posix_fop_readdirp(&brick.xl, stk) : posix_fop_readdir(&brick.xl, stk);
    return r == XL_DONE ? stk->reply.op_ret : r;
}

static const struct dirent_entry *
entry(const struct call_stack *stk, const char *name)
{
    for (const struct dirent_entry *e = stk->reply.entries; e; e = e->next) {
        if (strcmp(e->name, name) == 0)
            return e;
    }
    return NULL;
}

START_TEST(listing_of_the_root)
{
    struct inode *dir = brick_make("dir", S_IFDIR);
    struct fd *fd = brick_open(brick.root, 0);
    struct call_stack stk;

    ck_assert_int_eq(list_call(&stk, fd, false, 0, 65536), 4); /* . .. file dir */
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    ck_assert_ptr_null(entry(&stk, ".glusterfs"));
    ck_assert_uint_eq(entry(&stk, "file")->type, DT_REG);
    call_end(&stk);

    /* Plain fds and anonymous ones alike. */
    struct fd *anonymous = fd_new_anonymous(brick.root, NULL);
    ck_assert_int_eq(set(file, "user.a", "1", 1, 0), 0);
    call_on_fd(&stk, FOP_readdirp, anonymous);
    stk.call.size = 65536;
    ck_assert_int_eq(dict_set_text_int(call_xdata(&stk), "user.a", 0), 0);
    ck_assert_int_eq(posix_fop_readdirp(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 4);
    const struct dirent_entry *e = entry(&stk, "file");
    ck_assert(gfid_equal(&e->iatt.gfid, &file->gfid));
    ck_assert_uint_eq(e->ino, gfid_ino(&file->gfid));
    ck_assert_uint_eq(e->iatt.nlink, 1);
    ck_assert_ptr_nonnull(dict_find_text(e->dict, "user.a"));
    ck_assert(gfid_equal(&entry(&stk, "dir")->iatt.gfid, &dir->gfid));
    ck_assert_uint_eq(entry(&stk, ".")->ino, 1);
    ck_assert_uint_eq(entry(&stk, "..")->ino, UINT64_MAX);
    ck_assert(gfid_is_null(&entry(&stk, "..")->iatt.gfid));
    call_end(&stk);

    call_on_fd(&stk, FOP_readdirp, fd);
    stk.call.size = 65536;
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_READDIR_FILTER_DIRS, 1), 0);
    ck_assert_int_eq(posix_fop_readdirp(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 1);
    call_end(&stk);
    fd_unref(fd);
    fd_unref(anonymous);
    inode_unref(dir);
}
END_TEST

START_TEST(listing_in_pieces)
{
    struct inode *dir = brick_make("many", S_IFDIR);
    struct fd *fd = brick_open(dir, 0);
    struct call_stack stk;
    enum { FILES = 1000 };
    static bool seen[FILES];
    uint64_t offset = 0;
    int total = 0;

    memset(seen, 0, sizeof seen);
    for (int i = 0; i < FILES; i++) {
        char name[32];
        snprintf(name, sizeof name, "many/f%d", i);
        close(open(backend(name), O_CREAT | O_WRONLY, 0600));
    }
    for (;;) {
        int n = list_call(&stk, fd, false, offset, 4096);
        ck_assert_int_ge(n, 0);
        for (const struct dirent_entry *e = stk.reply.entries; e; e = e->next) {
            offset = e->off;
            total++;
            if (e->name[0] == 'f') {
                ck_assert(!seen[atoi(e->name + 1)]);
                seen[atoi(e->name + 1)] = true;
            }
        }
        bool is_end = stk.reply.op_errno == ENOENT;
        ck_assert(is_end || n > 0);
        call_end(&stk);
        if (is_end)
            break;
    }
    ck_assert_int_eq(total, FILES + 2);

    /* Behind the end, at the start again, and budgets as stock's. */
    ck_assert_int_eq(list_call(&stk, fd, false, offset, 4096), 0);
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    call_end(&stk);
    ck_assert_int_eq(list_call(&stk, fd, false, 0, 700), 3);
    ck_assert_int_eq(stk.reply.op_errno, 0);
    call_end(&stk);
    ck_assert_int_eq(list_call(&stk, fd, false, 0, 200), 0);
    ck_assert_int_eq(stk.reply.op_errno, 0);
    call_end(&stk);
    /* Files without a gfid are listed all the same. */
    ck_assert_int_ge(list_call(&stk, fd, true, 0, 4096), 10);
    ck_assert(gfid_is_null(&stk.reply.entries->next->next->iatt.gfid));
    ck_assert_uint_eq(stk.reply.entries->next->next->ino, UINT64_MAX);
    call_end(&stk);
    fd_unref(fd);
    inode_unref(dir);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-xattr");
    TCase *t = tcase_create("xattr");

    brick_or_skip();
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, set_get_remove);
    tcase_add_test(t, forbidden_names_are_refused);
    tcase_add_test(t, acl_as_text);
    tcase_add_test(t, mdata_merges_and_is_for_internal_clients);
    tcase_add_test(t, quota_limits_are_refused_to_the_command_alone);
    tcase_add_test(t, list_hides_the_bricks_own);
    tcase_add_test(t, one_call_removes_all_xattrs_of_the_dict);
    tcase_add_test(t, sync_removes_user_xattrs_that_the_call_lacks);
    tcase_add_test(t, virtual_names_show_paths_and_ancestry);
    tcase_add_test(t, a_stat_returns_the_requested_xattrs_that_exist);
    tcase_add_test(t, hundreds_of_keys_and_16_patterns_are_answered);
    tcase_add_test(t, a_call_of_a_lost_client_is_cancelled);
    tcase_add_test(t, a_stat_returns_the_content_of_a_small_file);
    tcase_add_test(t, counters);
    tcase_add_test(t, counters_of_many_threads);
    tcase_add_test(t, listing_of_the_root);
    tcase_add_test(t, listing_in_pieces);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
