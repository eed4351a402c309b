/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Removed files in the trash: their places there, their permissions, and the files that the trash does not
 * keep. */
#include <dirent.h>
#include <sys/stat.h>

#include "xlators/storage/posix/test-entry.h"
#include "xlators/storage/posix/trash-wish.h"

#define TRASH ".trashcan"

static struct trash_wish wish;

static const char *
at(const char *path)
{
    static char text[4][PATH_MAX];
    static unsigned next;
    char *t = text[next++ % 4];

    snprintf(t, PATH_MAX, "%s/%s", w.dir, path);
    return t;
}

static void
setup(void)
{
    world_setup();
    ck_assert_int_eq(mkdir(at(TRASH), 0755), 0);
    wish = (struct trash_wish){.dir = TRASH, .eliminate = "", .size_max = 1000};
}

static int
trash(struct inode *parent, const char *name)
{
    struct call_stack stk;

    call_begin(&stk, FOP_unlink);
    stk.caller.ctime_sec = time(NULL);
    call_loc(&stk.call.loc, parent, name);
    stk.call.hint = (struct call_hint){HINT_TRASH, &wish};
    int err = call_run(&stk);
    if (err == 0)
        inode_unlink(w.graph->inodes, parent, name);
    call_stack_release(&stk);
    return err;
}

/* Makes it and removes it. */
static void
make_and_trash(struct inode *parent, const char *name)
{
    inode_unref(make(FOP_create, parent, name));
    ck_assert_int_eq(trash(parent, name), 0);
}

/* Counts the entries of a folder of the brick whose names begin with `prefix`, without "." and "..". */
static unsigned
count(const char *dir, const char *prefix)
{
    DIR *d = opendir(at(dir));
    struct dirent *entry;
    unsigned n = 0;

    if (!d)
        return 0;
    while ((entry = readdir(d)))
        n += strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0 &&
             strncmp(entry->d_name, prefix, strlen(prefix)) == 0;
    closedir(d);
    return n;
}

static mode_t
mode_of(const char *path)
{
    struct stat st;

    ck_assert_int_eq(lstat(at(path), &st), 0);
    ck_assert_uint_eq(st.st_uid, 0);
    return st.st_mode & 07777;
}

START_TEST(a_trashed_file_keeps_its_path_below_the_trash)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *e = make(FOP_mkdir, d, "e");
    struct inode *f = make(FOP_create, e, "f");
    struct iatt iatt;

    ck_assert_int_eq(trash(e, "f"), 0);
    ck_assert_uint_eq(count("d/e", ""), 0);
    ck_assert_uint_eq(count(TRASH "/d/e", "f_20"), 1);
    ck_assert(has_handle_of(&f->gfid));
    ck_assert_int_eq(find_gfid(&f->gfid, &iatt), 0);
    ck_assert_uint_eq(iatt.nlink, 1);
    /* in the same second */
    make_and_trash(e, "f");
    make_and_trash(e, "f");
    ck_assert_uint_eq(count(TRASH "/d/e", "f_20"), 3);
    make_and_trash(w.root, "r");
    ck_assert_uint_eq(count(TRASH, "r_20"), 1);
    inode_unref(make(FOP_symlink, w.root, "link"));
    ck_assert_int_eq(trash(w.root, "link"), 0);
    ck_assert_uint_eq(count(TRASH, "link_20"), 1);
    inode_unref(f);
    inode_unref(e);
    inode_unref(d);
}
END_TEST

START_TEST(only_the_last_name_is_kept)
{
    struct inode *f = make(FOP_create, w.root, "f");

    ck_assert_int_eq(link_to(f, w.root, "g"), 0);
    ck_assert_int_eq(trash(w.root, "f"), 0);
    ck_assert_uint_eq(count(TRASH, ""), 0);
    ck_assert_int_eq(trash(w.root, "g"), 0);
    ck_assert_uint_eq(count(TRASH, "g_20"), 1);
    inode_unref(f);
}
END_TEST

START_TEST(trash_folders_are_no_more_open_than_their_sources)
{
    static const struct { mode_t real, kept; } modes[] = {
        {0755, 0755}, {0700, 0700}, {0750, 0700}, {0705, 0700}, {0777, 0755}, {01777, 0755}, {0711, 0711}};
    char name[16], path[64];

    for (size_t i = 0; i < sizeof modes / sizeof modes[0]; i++) {
        snprintf(name, sizeof name, "d%zu", i);
        snprintf(path, sizeof path, TRASH "/d%zu", i);
        struct inode *d = make(FOP_mkdir, w.root, name);
        ck_assert_int_eq(chown(at(name), 1234, 1234), 0);
        ck_assert_int_eq(chmod(at(name), modes[i].real), 0);
        make_and_trash(d, "f");
        ck_assert_uint_eq(mode_of(path), modes[i].kept);
        /* the folder is closed to other users, and later opened again */
        ck_assert_int_eq(chmod(at(name), 0700), 0);
        make_and_trash(d, "g");
        ck_assert_uint_eq(mode_of(path), 0700);
        ck_assert_int_eq(chmod(at(name), 0755), 0);
        make_and_trash(d, "h");
        ck_assert_uint_eq(mode_of(path), 0700);
        ck_assert_uint_eq(count(path, ""), 3);
        inode_unref(d);
    }
}
END_TEST

/* The ACL denies a user the access that the mode grants. A folder with an ACL is closed in the trash. */
START_TEST(the_trash_copy_of_a_folder_with_an_acl_is_closed)
{
    static const unsigned char acl[] = {2, 0, 0, 0, 1,    0,    7,    0,    0xff, 0xff, 0xff, 0xff,
                                        2, 0, 0, 0, 0x39, 0x30, 0,    0,    4,    0,    5,    0,
                                        0xff, 0xff, 0xff, 0xff, 0x10, 0,    5,    0,    0xff, 0xff,
                                        0xff, 0xff, 0x20, 0,    5,    0,    0xff, 0xff, 0xff, 0xff};
    struct inode *d = make(FOP_mkdir, w.root, "d");

    if (setxattr(at("d"), POSIX_ACL_ACCESS, acl, sizeof acl, 0) == 0) {
        ck_assert_uint_eq(mode_of("d"), 0755);
        make_and_trash(d, "f");
        ck_assert_uint_eq(mode_of(TRASH "/d"), 0700);
    } else {
        ck_assert_int_eq(errno, EOPNOTSUPP); /* this file system has none */
    }
    inode_unref(d);
}
END_TEST

/* Objects that other users have put in the place of a folder of the trash are not used. */
START_TEST(symlinks_and_folders_of_other_users_get_no_files)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *e = make(FOP_mkdir, d, "e");
    struct inode *f = make(FOP_create, e, "f");
    char outside[80];

    snprintf(outside, sizeof outside, "%s.out", w.dir);
    ck_assert_int_eq(mkdir(outside, 0777), 0);
    ck_assert_int_eq(symlink(outside, at(TRASH "/d")), 0);
    ck_assert_int_eq(trash(e, "f"), 0);
    ck_assert_int_eq(rmdir(outside), 0); /* empty */
    ck_assert(!has_handle_of(&f->gfid));
    ck_assert_int_eq(unlink(at(TRASH "/d")), 0);

    ck_assert_int_eq(mkdir(at(TRASH "/d"), 0777), 0);
    ck_assert_int_eq(chown(at(TRASH "/d"), 1234, 1234), 0);
    make_and_trash(e, "g");
    ck_assert_uint_eq(count(TRASH "/d", ""), 0);
    ck_assert_int_eq(rmdir(at(TRASH "/d")), 0);

    ck_assert_int_eq(mknod(at(TRASH "/d"), S_IFREG | 0644, 0), 0);
    make_and_trash(e, "h");
    ck_assert_int_eq(unlink(at(TRASH "/d")), 0);
    ck_assert_uint_eq(count("d/e", ""), 0);

    ck_assert_int_eq(rmdir(at(TRASH)), 0);
    make_and_trash(e, "i");
    ck_assert_int_eq(symlink(outside, at(TRASH)), 0);
    make_and_trash(e, "j");
    ck_assert_int_eq(unlink(at(TRASH)), 0);
    inode_unref(f);
    inode_unref(e);
    inode_unref(d);
}
END_TEST

START_TEST(long_names_are_cut)
{
    char name[NAME_MAX + 1], prefix[NAME_MAX + 1];

    memset(name, 'n', NAME_MAX);
    name[NAME_MAX] = '\0';
    make_and_trash(w.root, name);
    snprintf(prefix, sizeof prefix, "%.228s_20", name);
    ck_assert_uint_eq(count(TRASH, prefix), 1);
    make_and_trash(w.root, name);
    ck_assert_uint_eq(count(TRASH, prefix), 2);
    for (size_t i = 0; i + 1 < NAME_MAX; i += 2)
        memcpy(name + i + 1, "\xc3\xa4", 2); /* the cut would be inside of a character */
    make_and_trash(w.root, name);
    snprintf(prefix, sizeof prefix, "%.227s_20", name);
    ck_assert_uint_eq(count(TRASH, prefix), 1);
}
END_TEST

START_TEST(paths_longer_than_path_max_are_not_made)
{
    char name[201];
    struct inode *dir = inode_ref(w.root);

    memset(name, 'd', 200);
    name[200] = '\0';
    for (int i = 0; i < 18; i++) {
        struct inode *next = make(FOP_mkdir, dir, name);
        inode_unref(dir);
        dir = next;
    }
    make_and_trash(dir, "f");
    ck_assert_uint_eq(count(TRASH, ""), 0);
    inode_unref(dir);
}
END_TEST

START_TEST(eliminated_paths_large_files_and_linkto_files_are_removed)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *x = make(FOP_mkdir, d, "x");
    struct inode *dx = make(FOP_mkdir, w.root, "dx");

    wish.eliminate = ",/d/x/,q//,";
    make_and_trash(x, "f");
    ck_assert_uint_eq(count(TRASH, ""), 0);
    wish.eliminate = "d/xx,x,/,//";
    make_and_trash(x, "f");
    ck_assert_uint_eq(count(TRASH "/d/x", "f"), 1);
    wish.eliminate = "d";
    make_and_trash(x, "g");
    make_and_trash(dx, "g");
    ck_assert_uint_eq(count(TRASH "/d/x", "g"), 0);
    ck_assert_uint_eq(count(TRASH "/dx", "g"), 1);
    wish.eliminate = "";

    inode_unref(make(FOP_create, w.root, "large"));
    ck_assert_int_eq(truncate(at("large"), 1001), 0);
    ck_assert_int_eq(trash(w.root, "large"), 0);
    inode_unref(make(FOP_create, w.root, "fits"));
    ck_assert_int_eq(truncate(at("fits"), 1000), 0);
    ck_assert_int_eq(trash(w.root, "fits"), 0);
    ck_assert_uint_eq(count(TRASH, "large"), 0);
    ck_assert_uint_eq(count(TRASH, "fits"), 1);

    /* distribute's pointers */
    inode_unref(make(FOP_create, w.root, "pointer"));
    ck_assert_int_eq(setxattr(at("pointer"), POSIX_XATTR_LINKTO, "v-client-1", 11, 0), 0);
    ck_assert_int_eq(chmod(at("pointer"), 01000), 0);
    ck_assert_int_eq(trash(w.root, "pointer"), 0);
    ck_assert_uint_eq(count(TRASH, "pointer"), 0);
    inode_unref(d);
    inode_unref(dx);
    inode_unref(x);
}
END_TEST

START_TEST(files_of_the_trash_are_removed)
{
    int err;
    struct gfid gfid = {{[15] = 5}};

    ck_assert_int_eq(rmdir(at(TRASH)), 0);
    struct inode *can = make_as(FOP_mkdir, w.root, TRASH, &gfid, &err), *d = make(FOP_mkdir, can, "d");
    make_and_trash(can, "f");
    make_and_trash(d, "f");
    ck_assert_uint_eq(count(TRASH, ""), 1);
    ck_assert_uint_eq(count(TRASH "/d", ""), 0);
    inode_unref(d);
    inode_unref(can);
}
END_TEST

/* The table knows another path than the disk. */
START_TEST(files_of_a_renamed_folder_are_kept_below_the_new_name)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *f = make(FOP_create, d, "f");
    struct call_stack stk;

    call_begin(&stk, FOP_rename);
    call_loc(&stk.call.loc, w.root, "d");
    stk.call.loc2 = (struct loc){.parent = inode_ref(w.root), .name = "moved"};
    ck_assert_int_eq(call_run(&stk), 0);
    call_stack_release(&stk);
    ck_assert_int_eq(trash(d, "f"), 0);
    ck_assert_uint_eq(count(TRASH "/moved", "f_20"), 1);
    ck_assert(has_handle_of(&f->gfid));
    inode_unref(f);
    inode_unref(d);
}
END_TEST

START_TEST(an_open_file_stays_open_in_the_trash)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct fd *fd = open_file(f);
    struct call_stack stk;

    ck_assert_int_eq(trash(w.root, "f"), 0);
    call_begin(&stk, FOP_fstat);
    stk.call.fd = fd_ref(fd);
    stk.call.loc.inode = inode_ref(f);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.nlink, 1);
    call_stack_release(&stk);
    fd_unref(fd);
    ck_assert_uint_eq(count(TRASH, "f_20"), 1);
    inode_unref(f);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-trash");
    TCase *t = tcase_create("trash");

    root_or_skip();
    tcase_add_checked_fixture(t, setup, world_teardown);
    tcase_add_test(t, a_trashed_file_keeps_its_path_below_the_trash);
    tcase_add_test(t, only_the_last_name_is_kept);
    tcase_add_test(t, trash_folders_are_no_more_open_than_their_sources);
    tcase_add_test(t, the_trash_copy_of_a_folder_with_an_acl_is_closed);
    tcase_add_test(t, symlinks_and_folders_of_other_users_get_no_files);
    tcase_add_test(t, long_names_are_cut);
    tcase_add_test(t, paths_longer_than_path_max_are_not_made);
    tcase_add_test(t, eliminated_paths_large_files_and_linkto_files_are_removed);
    tcase_add_test(t, files_of_the_trash_are_removed);
    tcase_add_test(t, files_of_a_renamed_folder_are_kept_below_the_new_name);
    tcase_add_test(t, an_open_file_stays_open_in_the_trash);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
