/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* storage/posix: creation of objects, and the gfids, handles and attributes of new objects. */
#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/test-entry.h"

START_TEST(create_leaves_gfid_handle_and_path)
{
    struct inode *f = make(FOP_create, w.root, "f");
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE], found[512], path[128];
    struct iatt iatt;
    struct gfid g;

    snprintf(path, sizeof path, "%s/f", w.dir);
    ck_assert_int_eq(getxattr(path, "trusted.gfid", &g, 16), 16);
    ck_assert(gfid_equal(&g, &f->gfid));
    ck_assert(has_handle_of(&g));
    size_t len = posix_gfid2path_pair(&gfid_root, "f", key, value);
    ck_assert_int_eq(getxattr(path, key, found, sizeof found), (ssize_t)len);
    ck_assert_int_eq(memcmp(found, value, len), 0);
    ck_assert_int_eq(find(w.root, "f", &iatt), 0);
    ck_assert_uint_eq(iatt.nlink, 1);
    ck_assert_uint_eq(iatt.ino, gfid_ino(&g));
    ck_assert_uint_eq(iatt.mode, S_IFREG | 0644);
    ck_assert_int_eq(iatt.mtime, 1700000000 + next_gfid);
    ck_assert_int_eq(find_gfid(&g, &iatt), 0);
    inode_unref(f);
}
END_TEST

START_TEST(gfid2path_has_the_key_and_value_of_the_spec)
{
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE];

    ck_assert_uint_eq(posix_gfid2path_pair(&gfid_root, "f1", key, value), 39);
    ck_assert_str_eq(key, "trusted.gfid2path.5b24eafb4345038c");
    ck_assert_str_eq(value, "00000000-0000-0000-0000-000000000001/f1");
}
END_TEST

START_TEST(create_without_gfid_is_refused)
{
    struct call_stack stk;

    call_begin(&stk, FOP_create);
    call_loc(&stk.call.loc, w.root, "f");
    stk.call.flags = O_RDWR;
    ck_assert_int_eq(call_run(&stk), -EINVAL);
    call_stack_release(&stk);
    ck_assert_int_eq(find(w.root, "f", NULL), -ENOENT);
}
END_TEST

START_TEST(create_over_an_existing_file)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct gfid other = fresh_gfid();
    struct call_stack stk;
    int err;

    ck_assert_ptr_null(make_as(FOP_create, w.root, "f", &other, &err));
    ck_assert_int_eq(err, -EEXIST);
    call_begin(&stk, FOP_create);
    call_loc(&stk.call.loc, w.root, "f");
    want_gfid(&stk, &other);
    stk.call.flags = O_RDWR;
    stk.call.mode = S_IFREG | 0600;
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert(gfid_equal(&stk.reply.stat.gfid, &f->gfid));
    ck_assert_ptr_eq(stk.reply.fd->inode, f);
    ck_assert_uint_eq(stk.reply.stat.mode & 07777, 0644);
    call_stack_release(&stk);
    ck_assert(!has_handle_of(&other));
    inode_unref(f);
}
END_TEST

/* The gfid is in use: the name must not stay. */
START_TEST(a_taken_gfid_is_refused_to_a_new_object)
{
    struct inode *f = make(FOP_create, w.root, "f");
    const enum fop fops[] = {FOP_create, FOP_mknod, FOP_symlink, FOP_mkdir};
    int err;

    for (size_t i = 0; i < 4; i++) {
        ck_assert_ptr_null(make_as(fops[i], w.root, "g", &f->gfid, &err));
        ck_assert_int_eq(err, -EEXIST);
        ck_assert_int_eq(find(w.root, "g", NULL), -ENOENT);
    }
    ck_assert_int_eq(find_gfid(&f->gfid, NULL), 0);
    inode_unref(f);
}
END_TEST

START_TEST(mknod_stores_owner_mode_and_xattrs_of_the_call)
{
    struct gfid g = fresh_gfid();
    struct call_stack stk;
    char path[128], value[32];

    snprintf(path, sizeof path, "%s/f", w.dir);
    call_begin(&stk, FOP_mknod);
    call_loc(&stk.call.loc, w.root, "f");
    want_gfid(&stk, &g);
    stk.caller.uid = 1000;
    stk.caller.gid = 1001;
    stk.call.mode = S_IFREG | 04751;
    dict_set_bytes(stk.call.xdata, DICT_KEY_DHT_LINKTO, "vol-client-1", 13);
    dict_set_text(stk.call.xdata, "trusted.afr.dirty", DICT_PTR, "abcdefghijkl", 12);
    dict_set_int(stk.call.xdata, DICT_KEY_MDATA, 1); /* a question, not a value */
    dict_set_text(stk.call.xdata, "unknown.key", DICT_STR, "x", 2);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.uid, 1000);
    ck_assert_uint_eq(stk.reply.stat.gid, 1001);
    ck_assert_uint_eq(stk.reply.stat.mode, S_IFREG | 04751);
    ck_assert_int_eq(getxattr(path, "trusted.glusterfs.dht.linkto", value, sizeof value), 13);
    ck_assert_int_eq(getxattr(path, "trusted.afr.dirty", value, sizeof value), 12);
    ck_assert_int_eq(getxattr(path, "trusted.glusterfs.mdata", NULL, 0), 57);
    call_stack_release(&stk);
}
END_TEST

START_TEST(a_setgid_directory_gives_its_group_to_a_new_directory)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct gfid g = fresh_gfid();
    struct call_stack stk;
    char path[128];

    snprintf(path, sizeof path, "%s/d", w.dir);
    ck_assert_int_eq(chown(path, 0, 77), 0);
    ck_assert_int_eq(chmod(path, 02775), 0);
    call_begin(&stk, FOP_mkdir);
    call_loc(&stk.call.loc, d, "sub");
    want_gfid(&stk, &g);
    stk.caller.uid = 1000;
    stk.caller.gid = 1001;
    stk.call.mode = 0750;
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.uid, 1000);
    ck_assert_uint_eq(stk.reply.stat.gid, 77);
    ck_assert_uint_eq(stk.reply.stat.mode, S_IFDIR | 02750);
    call_stack_release(&stk);
    inode_unref(d);
}
END_TEST

static int
mkdir_by(uint32_t uid, int32_t pid, struct inode *parent, const char *name, const struct gfid *gfid)
{
    struct call_stack stk;

    call_begin(&stk, FOP_mkdir);
    call_loc(&stk.call.loc, parent, name);
    want_gfid(&stk, gfid);
    stk.call.mode = 0777;
    stk.caller.uid = stk.caller.gid = uid;
    stk.caller.pid = pid;
    int r = call_run(&stk);
    call_stack_release(&stk);
    return r;
}

/* MKDIR with the gfid of an existing directory is refused to a caller who may not move that directory: other
 * clients that know the directory by its gfid would work in the new directory. */
START_TEST(mkdir_moves_a_directory_with_the_same_gfid_only_with_permission)
{
    struct inode *place = make(FOP_mkdir, w.root, "place"), *old = make(FOP_mkdir, place, "old");
    struct inode *mine = make(FOP_mkdir, w.root, "mine"), *f = make(FOP_create, place, "f");
    char path[128], in_old[160];

    snprintf(path, sizeof path, "%s/place", w.dir);
    snprintf(in_old, sizeof in_old, "%s/old", path);
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "trap", &old->gfid), -EEXIST);
    ck_assert_int_eq(chmod(path, 01777), 0); /* sticky: still not the caller's */
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "trap", &old->gfid), -EEXIST);
    ck_assert_int_eq(find(mine, "trap", NULL), -ENOENT);
    ck_assert_int_eq(find(place, "old", NULL), 0);
    ck_assert_int_eq(mkdir_by(0, 1, mine, "file", &f->gfid), -EEXIST); /* a file's: root neither */
    ck_assert_int_eq(chown(in_old, 1000, 1000), 0);
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "own", &old->gfid), 0);
    ck_assert_int_eq(find(mine, "own", NULL), 0);
    struct inode *second = make(FOP_mkdir, place, "second"), *third = make(FOP_mkdir, place, "third");
    ck_assert_int_eq(mkdir_by(1000, -3, mine, "healed", &second->gfid), 0); /* as DHT's heal */
    ck_assert_int_eq(chmod(path, 0777), 0);
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "moved", &third->gfid), 0);
    inode_unref(third);
    inode_unref(second);
    inode_unref(f);
    inode_unref(mine);
    inode_unref(old);
    inode_unref(place);
}
END_TEST

START_TEST(create_and_mkdir_are_refused_after_a_change_of_the_layout)
{
    struct gfid g = fresh_gfid();
    struct inode *d = make(FOP_mkdir, w.root, "d");
    const enum fop fops[] = {FOP_mkdir, FOP_create};
    char path[128];

    snprintf(path, sizeof path, "%s/d", w.dir);
    ck_assert_int_eq(setxattr(path, "trusted.glusterfs.dht", "old layout old l", 16, 0), 0);
    for (size_t i = 0; i < 4; i++) {
        bool is_same = i >= 2;
        struct call_stack stk;
        int64_t failed = 0;

        call_begin(&stk, fops[i % 2]);
        call_loc(&stk.call.loc, d, i % 2 ? "file" : "dir");
        g = fresh_gfid();
        want_gfid(&stk, &g);
        stk.call.flags = O_RDWR;
        dict_set_str(stk.call.xdata, DICT_KEY_PREOP_PARENT_KEY, "trusted.glusterfs.dht");
        dict_set_text(stk.call.xdata, "trusted.glusterfs.dht", DICT_PTR,
                      is_same ? "old layout old l" : "new layout new l", 16);
        call_run(&stk);
        ck_assert_int_eq(stk.reply.op_ret, is_same ? 0 : -1);
        ck_assert_int_eq(stk.reply.op_errno, is_same || fops[i % 2] == FOP_mkdir ? 0 : EIO);
        if (!is_same) {
            ck_assert_int_eq(dict_get_int(stk.reply.xdata, DICT_KEY_PREOP_CHECK_FAILED, &failed), 0);
            ck_assert_int_eq(failed, 1);
            ck_assert_uint_eq(stk.reply.pre.mode, 0);
        }
        call_stack_release(&stk);
    }
    snprintf(path, sizeof path, "%s/d/dir", w.dir);
    ck_assert_int_eq(getxattr(path, "trusted.glusterfs.dht", NULL, 0), -1); /* consumed */
    inode_unref(d);
}
END_TEST

START_TEST(dot_names_and_glusterfs_are_refused)
{
    const char *const bad[] = {".", "..", ".glusterfs"};
    const int create_errno[] = {EPERM, EPERM, EEXIST}, mkdir_errno[] = {EPERM, EPERM, EPERM};
    struct gfid g = fresh_gfid();
    int err;

    for (size_t i = 0; i < 3; i++) {
        ck_assert_ptr_null(make_as(FOP_create, w.root, bad[i], &g, &err));
        ck_assert_int_eq(err, -create_errno[i]);
        ck_assert_ptr_null(make_as(FOP_mkdir, w.root, bad[i], &g, &err));
        ck_assert_int_eq(err, -mkdir_errno[i]);
        ck_assert_int_eq(find(w.root, bad[i], NULL), -EPERM);
    }
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, ".glusterfs", 0), -ENOENT);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, ".glusterfs", 0), -EPERM);
    ck_assert_int_eq(move(w.root, ".glusterfs", w.root, "x"), -ENOENT);
}
END_TEST

START_TEST(the_handle_of_a_directory_names_parent_and_name)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *sub = make(FOP_mkdir, d, "sub");
    char text[512], want[POSIX_HANDLE_TEXT_MAX];
    ssize_t n = readlinkat(w.p->handles_fd, HANDLE(&sub->gfid), text, sizeof text);

    ck_assert_int_eq(n, (ssize_t)posix_handle_text(&d->gfid, "sub", want));
    ck_assert_int_eq(memcmp(text, want, (size_t)n), 0);
    struct iatt iatt;
    ck_assert_int_eq(find_gfid(&sub->gfid, &iatt), 0);
    ck_assert_uint_eq(iatt.nlink, 2);
    inode_unref(sub);
    inode_unref(d);
}
END_TEST

/* A symlink whose text looks like a directory's handle is still a symlink. */
START_TEST(a_symlink_with_the_text_of_a_handle_is_a_symlink)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct gfid g = fresh_gfid();
    char text[POSIX_HANDLE_TEXT_MAX];
    struct call_stack stk;
    struct iatt iatt = {0};

    posix_handle_text(&gfid_root, "d", text);
    call_begin(&stk, FOP_symlink);
    call_loc(&stk.call.loc, w.root, "s");
    want_gfid(&stk, &g);
    stk.call.name2 = text;
    ck_assert_int_eq(call_run(&stk), 0);
    call_stack_release(&stk);
    ck_assert_int_eq(find_gfid(&g, &iatt), 0);
    ck_assert_uint_eq(iatt.mode & S_IFMT, S_IFLNK);
    /* The handle is a symlink even after its last name was removed on the disk. */
    ck_assert_int_eq(unlinkat(w.p->brick_fd, "s", 0), 0);
    ck_assert_int_eq(find_gfid(&g, &iatt), 0);
    ck_assert_uint_eq(iatt.mode & S_IFMT, S_IFLNK);
    inode_unref(d);
}
END_TEST

START_TEST(internal_mknod_links_to_the_gfid)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct call_stack stk;

    call_begin(&stk, FOP_mknod);
    call_loc(&stk.call.loc, w.root, "g");
    want_gfid(&stk, &f->gfid);
    dict_set_str(stk.call.xdata, DICT_KEY_INTERNAL_FOP, "yes");
    stk.call.mode = S_IFREG | 0644;
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.nlink, 2);
    ck_assert(gfid_equal(&stk.reply.stat.gfid, &f->gfid));
    call_stack_release(&stk);
    inode_unref(f);
}
END_TEST

START_TEST(force_replace_removes_a_stale_linkto)
{
    struct gfid stale = fresh_gfid(), fresh = fresh_gfid();

    for (int i = 0; i < 2; i++) {
        struct call_stack stk;

        call_begin(&stk, FOP_mknod);
        call_loc(&stk.call.loc, w.root, "f");
        want_gfid(&stk, i ? &fresh : &stale);
        stk.call.mode = S_IFREG | 01000;
        dict_set_bytes(stk.call.xdata, DICT_KEY_DHT_LINKTO, "vol-client-1", 13);
        if (i)
            dict_set_str(stk.call.xdata, DICT_KEY_FORCE_REPLACE, "yes");
        ck_assert_int_eq(call_run(&stk), 0);
        call_stack_release(&stk);
    }
    ck_assert(!has_handle_of(&stale));
    ck_assert(has_handle_of(&fresh));
}
END_TEST

/* A failed step undoes the steps before. The step that fails is an xattr too large for any file system. */
START_TEST(a_failed_creation_leaves_neither_name_nor_handle)
{
    static char huge[128 * 1024];
    const enum fop fops[] = {FOP_create, FOP_mknod, FOP_mkdir};

    for (size_t i = 0; i < 3; i++) {
        struct gfid g = fresh_gfid();
        struct call_stack stk;

        call_begin(&stk, fops[i]);
        call_loc(&stk.call.loc, w.root, "f");
        want_gfid(&stk, &g);
        stk.call.flags = O_RDWR;
        stk.call.mode = S_IFREG | 0644;
        dict_set_text(stk.call.xdata, "trusted.huge", DICT_PTR, huge, sizeof huge);
        ck_assert_int_lt(call_run(&stk), 0);
        ck_assert_ptr_null(stk.reply.fd);
        call_stack_release(&stk);
        ck_assert_int_eq(find(w.root, "f", NULL), -ENOENT);
        ck_assert(!has_handle_of(&g));
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-create");
    TCase *bytes = tcase_create("bytes");
    TCase *names = tcase_create("names");

    root_or_skip();
    tcase_add_test(bytes, gfid2path_has_the_key_and_value_of_the_spec);
    suite_add_tcase(s, bytes);
    tcase_add_checked_fixture(names, world_setup, world_teardown);
    tcase_add_test(names, create_leaves_gfid_handle_and_path);
    tcase_add_test(names, create_without_gfid_is_refused);
    tcase_add_test(names, create_over_an_existing_file);
    tcase_add_test(names, a_taken_gfid_is_refused_to_a_new_object);
    tcase_add_test(names, mknod_stores_owner_mode_and_xattrs_of_the_call);
    tcase_add_test(names, a_setgid_directory_gives_its_group_to_a_new_directory);
    tcase_add_test(names, mkdir_moves_a_directory_with_the_same_gfid_only_with_permission);
    tcase_add_test(names, create_and_mkdir_are_refused_after_a_change_of_the_layout);
    tcase_add_test(names, dot_names_and_glusterfs_are_refused);
    tcase_add_test(names, the_handle_of_a_directory_names_parent_and_name);
    tcase_add_test(names, a_symlink_with_the_text_of_a_handle_is_a_symlink);
    tcase_add_test(names, internal_mknod_links_to_the_gfid);
    tcase_add_test(names, force_replace_removes_a_stale_linkto);
    tcase_add_test(names, a_failed_creation_leaves_neither_name_nor_handle);
    suite_add_tcase(s, names);
    return s;
}

#include "base/test-main.h"
