/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* storage/posix: how objects are found, healed, described and changed. */
#include <sys/statvfs.h>

#include "xlators/storage/posix/object/mdata.h"
#include "xlators/storage/posix/test-entry.h"

/* ---- lookup and healing ---------------------------------------------------------------------- */

START_TEST(lookup_answers_missing_names_and_gfids_with_errors)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");
    struct gfid unknown = fresh_gfid();

    ck_assert_int_eq(find(w.root, "none", NULL), -ENOENT);
    ck_assert_int_eq(find_gfid(&unknown, NULL), -ENOENT);
    ck_assert_int_eq(find_gfid(&gfid_null, NULL), -EINVAL);
    ck_assert_int_eq(find_gfid(&gfid_root, NULL), 0);
    ck_assert_int_eq(unlinkat(w.p->brick_fd, "d", AT_REMOVEDIR), 0);
    ck_assert_int_eq(find(d, "x", NULL), -ESTALE);
    /* The dangling handle goes. */
    ck_assert(has_handle_of(&d->gfid));
    ck_assert_int_eq(find_gfid(&d->gfid, NULL), -ENOENT);
    ck_assert(!has_handle_of(&d->gfid));
    inode_unref(d);
}
END_TEST

/* A stock disperse client stores results in the dict of a LOOKUP's reply, and cannot heal without that
 * dict. */
START_TEST(a_lookup_that_succeeds_has_a_dict)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct call_stack stk;

    for (int by_name = 0; by_name < 2; by_name++) {
        call_begin(&stk, FOP_lookup);
        if (by_name)
            call_loc(&stk.call.loc, w.root, "f");
        else
            stk.call.gfid = f->gfid;
        ck_assert_int_eq(call_run(&stk), 0);
        ck_assert_ptr_nonnull(stk.reply.xdata);
        ck_assert_uint_eq(stk.reply.xdata->count, 0);
        call_stack_release(&stk);
    }
    call_begin(&stk, FOP_lookup);
    call_loc(&stk.call.loc, w.root, "none");
    ck_assert_int_eq(call_run(&stk), -ENOENT);
    ck_assert_ptr_null(stk.reply.xdata);
    call_stack_release(&stk);
    inode_unref(f);
}
END_TEST

START_TEST(lookup_heals_handles)
{
    struct inode *f = make(FOP_create, w.root, "f"), *d = make(FOP_mkdir, w.root, "d");
    struct gfid fg = f->gfid, dg = d->gfid;
    struct iatt iatt;

    inode_unref(f);
    inode_unref(d);
    ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&fg), 0), 0);
    ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&dg), 0), 0);
    /* A restart: nothing is in the table. */
    brick_down();
    brick_up("");
    ck_assert_int_eq(find_gfid(&fg, NULL), -ENOENT);
    ck_assert_int_eq(find(w.root, "f", &iatt), 0);
    ck_assert_uint_eq(iatt.nlink, 1);
    ck_assert_int_eq(find_gfid(&fg, NULL), 0);
    ck_assert_int_eq(find(w.root, "d", NULL), 0);
    ck_assert_int_eq(find_gfid(&dg, NULL), 0);
}
END_TEST

/* A process that died in a CREATE leaves an empty file with a gfid, but no handle. A heal makes it anew. */
START_TEST(the_remains_of_a_dead_create_are_removed)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct gfid g = f->gfid;
    static const char *const names[] = {"empty", "full"};

    for (int i = 0; i < 2; i++) {
        int fd = openat(w.p->brick_fd, names[i], O_CREAT | O_WRONLY, 0600);

        ck_assert_int_ge(fd, 0);
        ck_assert_int_eq(fsetxattr(fd, "trusted.gfid", &g, sizeof g, 0), 0);
        ck_assert_int_eq(write(fd, "bytes", 5 * (size_t)i), 5 * i);
        close(fd);
    }
    ck_assert_int_eq(find(w.root, "empty", NULL), 0); /* it may be in the making */
    usleep(1100000);
    ck_assert_int_eq(find(w.root, "empty", NULL), -ENOENT);
    ck_assert_int_eq(faccessat(w.p->brick_fd, "empty", F_OK, 0), -1);
    ck_assert_int_eq(find(w.root, "full", NULL), 0);
    ck_assert_int_eq(find(w.root, "f", NULL), 0);
    ck_assert_int_eq(find_gfid(&g, NULL), 0);
    inode_unref(f);
}
END_TEST

START_TEST(lookup_gives_the_proposed_gfid_to_an_object_without_one)
{
    struct gfid g = fresh_gfid();
    struct call_stack stk;

    ck_assert_int_eq(close(openat(w.p->brick_fd, "f", O_CREAT | O_WRONLY, 0644)), 0);
    ck_assert_int_eq(mkdirat(w.p->brick_fd, "d", 0755), 0);
    ck_assert_int_eq(find(w.root, "f", NULL), -ENODATA);
    for (int i = 0; i < 2; i++) {
        call_begin(&stk, FOP_lookup);
        call_loc(&stk.call.loc, w.root, i ? "d" : "f");
        g = fresh_gfid();
        want_gfid(&stk, &g);
        ck_assert_int_eq(call_run(&stk), 0);
        ck_assert(gfid_equal(&stk.reply.stat.gfid, &g));
        call_stack_release(&stk);
        ck_assert_int_eq(find_gfid(&g, NULL), 0);
    }
}
END_TEST

/* One LOOKUP makes an inode known: the next LOOKUP needs not read the gfid. */
START_TEST(lookup_records_the_inode_number)
{
    for (int i = 0; i < 2; i++) {
        const char *name = i ? "d" : "f";
        struct inode *inode = make(i ? FOP_mkdir : FOP_mknod, w.root, name);

        ck_assert_int_eq(find(w.root, name, NULL), 0);
        ck_assert(posix_inode_is_met(w.xl, inode));
        inode_unref(inode);
    }
}
END_TEST

/* ---- changes on the disk while the brick serves ---------------------------------------------- */

static void
path_of(const char *name, char path[128])
{
    snprintf(path, 128, "%s/%s", w.dir, name);
}

/* Waits until the file system's clock has moved on, so that the next change gets another ctime than the last
 * change. */
static void
wait_for_the_clock(const char *name)
{
    char path[128];
    struct stat st;
    struct timespec now;

    path_of(name, path);
    ck_assert_int_eq(lstat(path, &st), 0);
    do
        clock_gettime(CLOCK_REALTIME_COARSE, &now);
    while (now.tv_sec == st.st_ctim.tv_sec && now.tv_nsec == st.st_ctim.tv_nsec);
}

static struct inode *
make_met(enum fop fop, const char *name)
{
    struct inode *inode = make(fop, w.root, name);

    for (int i = 0; i < 2; i++) {
        ck_assert_int_eq(find(w.root, name, NULL), 0);
        wait_for_the_clock(name);
    }
    ck_assert(posix_inode_is_met(w.xl, inode) && posix_inode_has_handle(w.xl, inode));
    return inode;
}

/* An object that has its mdata and changed less than a second ago may be in the making: ENOENT until then. */
static int
find_with_gfid(const char *name, const struct gfid *gfid, struct iatt *out)
{
    int r = -ENOENT;

    for (int i = 0; i < 500 && r == -ENOENT; i++) {
        struct call_stack stk;

        if (i > 0)
            nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
        call_begin(&stk, FOP_lookup);
        call_loc(&stk.call.loc, w.root, name);
        want_gfid(&stk, gfid);
        r = call_run(&stk);
        *out = stk.reply.stat;
        call_stack_release(&stk);
    }
    return r;
}

START_TEST(a_gfid_removed_by_hand_is_restored)
{
    const enum fop fops[] = {FOP_create, FOP_mkdir, FOP_symlink};
    const char *const names[] = {"f", "d", "l"};
    struct iatt iatt;
    char path[128];

    for (int i = 0; i < 3; i++) {
        struct inode *inode = make_met(fops[i], names[i]);

        path_of(names[i], path);
        ck_assert_int_eq(lremovexattr(path, "trusted.gfid"), 0);
        ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&inode->gfid), 0), 0);
        ck_assert_int_eq(find(w.root, names[i], NULL), -ENODATA);
        ck_assert_int_eq(find_with_gfid(names[i], &inode->gfid, &iatt), 0);
        ck_assert(gfid_equal(&iatt.gfid, &inode->gfid));
        ck_assert(has_handle_of(&inode->gfid));
        ck_assert_int_eq(find(w.root, names[i], NULL), 0);
        ck_assert_int_eq(find_gfid(&inode->gfid, NULL), 0);
        inode_unref(inode);
    }
}
END_TEST

START_TEST(a_missing_gfid_or_handle_is_restored)
{
    const enum fop fops[] = {FOP_create, FOP_mkdir};
    const char *const names[] = {"f", "d"};
    struct iatt iatt;
    char path[128];

    for (int i = 0; i < 2; i++) {
        struct inode *inode = make_met(fops[i], names[i]);

        path_of(names[i], path);
        ck_assert_int_eq(lremovexattr(path, "trusted.gfid"), 0);
        ck_assert_int_eq(find_with_gfid(names[i], &inode->gfid, &iatt), 0);
        ck_assert(gfid_equal(&iatt.gfid, &inode->gfid));
        wait_for_the_clock(names[i]);
        ck_assert_int_eq(find(w.root, names[i], NULL), 0);
        wait_for_the_clock(names[i]);
        ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&inode->gfid), 0), 0);
        if (i == 1) /* the ctime of a folder does not tell of its handle */
            ck_assert_int_eq(chmod(path, 0700), 0);
        ck_assert_int_eq(find(w.root, names[i], NULL), 0);
        ck_assert(has_handle_of(&inode->gfid));
        inode_unref(inode);
    }
}
END_TEST

START_TEST(a_gfid_changed_by_hand_is_answered)
{
    const enum fop fops[] = {FOP_create, FOP_mkdir};
    const char *const names[] = {"f", "d"};
    struct iatt iatt;
    char path[128];

    for (int i = 0; i < 2; i++) {
        struct inode *inode = make_met(fops[i], names[i]);
        struct gfid other = fresh_gfid();

        path_of(names[i], path);
        ck_assert_int_eq(lsetxattr(path, "trusted.gfid", other.b, 16, XATTR_REPLACE), 0);
        for (int round = 0; round < 2; round++) {
            ck_assert_int_eq(find(w.root, names[i], &iatt), 0);
            ck_assert(gfid_equal(&iatt.gfid, &other));
            ck_assert_int_eq(find_gfid(&other, &iatt), 0);
            ck_assert_int_eq(find_gfid(&inode->gfid, NULL), -ESTALE);
        }
        inode_unref(inode);
    }
}
END_TEST

/* ---- deep trees ------------------------------------------------------------------------------ */

/* More than 40 levels: the kernel does not follow so many handles. */
START_TEST(objects_60_folders_deep_can_be_changed_and_removed)
{
    enum { DEPTH = 60 };
    const char *name = "a name of some length";
    struct inode *dirs[DEPTH + 1] = {inode_ref(w.root)};
    struct iatt iatt;

    for (int i = 0; i < DEPTH; i++)
        dirs[i + 1] = make(FOP_mkdir, dirs[i], name);
    struct inode *f = make(FOP_create, dirs[DEPTH], name);
    ck_assert_int_eq(find(dirs[DEPTH], name, &iatt), 0);
    ck_assert(gfid_equal(&iatt.gfid, &f->gfid));
    ck_assert_int_eq(find_gfid(&dirs[DEPTH]->gfid, NULL), 0);
    ck_assert_int_eq(link_to(f, dirs[DEPTH], "l"), 0);
    ck_assert_int_eq(move(dirs[DEPTH], "l", dirs[DEPTH - 1], "m"), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, dirs[DEPTH - 1], "m", 0), 0);
    inode_unref(make(FOP_symlink, dirs[DEPTH], "s"));
    ck_assert_int_eq(remove_entry(FOP_unlink, dirs[DEPTH], "s", 0), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, dirs[DEPTH], name, 0), 0);
    ck_assert_int_eq(move(dirs[DEPTH - 1], name, dirs[DEPTH - 1], "short"), 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, dirs[DEPTH - 1], "short", 0), 0);
    /* ... and out of the way with all that is in it. */
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, name, 1), 0);
    ck_assert_uint_eq(chore_now(w.p, POSIX_JANITOR), 0);
    ck_assert(!has_handle_of(&dirs[DEPTH - 1]->gfid));
    ck_assert_int_eq(unlinkat(w.p->handles_fd, "landfill", AT_REMOVEDIR), 0);
    inode_unref(f);
    for (int i = 0; i <= DEPTH; i++)
        inode_unref(dirs[i]);
}
END_TEST

static int
try_make(enum fop fop, struct inode *parent, const char *name)
{
    struct gfid g = fresh_gfid();
    int err;

    inode_unref(make_as(fop, parent, name, &g, &err));
    return err;
}

/* Names whose whole path has PATH_MAX bytes or more are refused, because users could neither use nor remove
 * them. */
START_TEST(objects_with_paths_too_long_are_not_made)
{
    static const enum fop makers[] = {FOP_mkdir, FOP_create, FOP_mknod, FOP_symlink};
    struct inode *dirs[32] = {inode_ref(w.root)}, *f = make(FOP_create, w.root, "f");
    size_t len = strlen(w.dir);
    char name[256], fits[256];
    unsigned depth = 0;

    memset(name, 'n', 200);
    name[200] = '\0';
    for (; len + 1 + 200 < PATH_MAX; len += 201, depth++)
        dirs[depth + 1] = make(FOP_mkdir, dirs[depth], name);
    struct inode *last = dirs[depth];
    memset(fits, 'f', sizeof fits);
    fits[PATH_MAX - 1 - len - 1] = '\0';
    for (size_t i = 0; i < sizeof makers / sizeof makers[0]; i++) {
        ck_assert_int_eq(try_make(makers[i], last, name), -ENAMETOOLONG);
        ck_assert_int_eq(try_make(makers[i], last, fits), 0);
        ck_assert_int_eq(remove_entry(i == 0 ? FOP_rmdir : FOP_unlink, last, fits, 0), 0);
    }
    ck_assert_int_eq(link_to(f, last, name), -ENAMETOOLONG);
    ck_assert_int_eq(move(w.root, "f", last, name), -ENAMETOOLONG);
    ck_assert_int_eq(move(w.root, "f", last, fits), 0);
    ck_assert_int_eq(move(last, fits, w.root, "f"), 0);
    /* Names that the table has forgotten count, too. */
    inode_unlink(w.graph->inodes, dirs[depth - 1], name);
    ck_assert_int_eq(move(w.root, "f", last, name), -ENAMETOOLONG);
    /* A folder above gets a shorter name: then there is room. */
    ck_assert_int_eq(find(dirs[depth - 1], name, NULL), 0);
    ck_assert_int_eq(move(w.root, name, w.root, "n"), 0);
    ck_assert_int_eq(try_make(FOP_mkdir, last, fits), 0);
    ck_assert_int_eq(try_make(FOP_mkdir, last, name), 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "n", 1), 0);
    inode_unref(f);
    for (unsigned i = 0; i <= depth; i++)
        inode_unref(dirs[i]);
}
END_TEST

/* A brick may still have longer paths, from earlier times or through the rename of a folder above: LOOKUP
 * finds and RMDIR removes such objects. */
START_TEST(paths_too_long_are_removed)
{
    enum { DEPTH = 60 };
    struct inode *dirs[DEPTH + 1] = {inode_ref(w.root)};
    char name[256];
    int at = dup(w.p->brick_fd);

    memset(name, 'd', 255);
    name[255] = '\0';
    for (int i = 0; i < DEPTH; i++) {
        struct gfid g = fresh_gfid();
        ck_assert_int_eq(mkdirat(at, name, 0755), 0);
        int next = openat(at, name, O_RDONLY | O_DIRECTORY);
        ck_assert_int_eq(fsetxattr(next, "trusted.gfid", &g, sizeof g, 0), 0);
        close(at);
        at = next;
    }
    close(at);
    for (int i = 0; i < DEPTH; i++) {
        struct iatt iatt;
        ck_assert_int_eq(find(dirs[i], name, &iatt), 0);
        dirs[i + 1] = inode_link(w.graph->inodes, dirs[i], name, &iatt);
    }
    ck_assert_int_eq(find_gfid(&dirs[DEPTH]->gfid, NULL), 0);
    ck_assert_int_eq(try_make(FOP_mkdir, dirs[DEPTH], "more"), -ENAMETOOLONG);
    ck_assert_int_eq(move(dirs[DEPTH - 1], name, w.root, "out"), 0);
    ck_assert_int_eq(try_make(FOP_mkdir, dirs[DEPTH], "more"), 0);
    for (int i = DEPTH - 2; i >= 0; i--)
        ck_assert_int_eq(remove_entry(FOP_rmdir, dirs[i], name, 0), 0);
    for (int i = 0; i <= DEPTH; i++)
        inode_unref(dirs[i]);
}
END_TEST

/* ---- attributes ------------------------------------------------------------------------------ */

/* The reply has the attributes after the change, also for a directory whose inode was met. */
START_TEST(setattr_changes_the_mode_of_a_directory)
{
    struct inode *d = make(FOP_mkdir, w.root, "d");

    ck_assert_int_eq(find(w.root, "d", NULL), 0);
    for (mode_t mode = 0700; mode <= 0777; mode += 077) {
        struct call_stack stk;

        call_begin(&stk, FOP_setattr);
        stk.call.loc.inode = inode_ref(d);
        stk.call.valid = SETATTR_MODE;
        stk.call.stbuf.mode = mode;
        ck_assert_int_eq(call_run(&stk), 0);
        ck_assert_uint_eq(stk.reply.post.mode, S_IFDIR | mode);
        call_stack_release(&stk);
    }
    inode_unref(d);
}
END_TEST

START_TEST(setattr_times_and_mode)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct call_stack stk;

    call_begin(&stk, FOP_setattr);
    stk.call.loc.inode = inode_ref(f);
    stk.caller.time_flags = TIME_CTIME;
    stk.caller.ctime_sec = 1900000000;
    stk.call.valid = SETATTR_MODE | SETATTR_UID | SETATTR_MTIME;
    stk.call.stbuf = (struct iatt){.mode = 0600, .uid = 12, .mtime = 1000000, .mtime_nsec = 7};
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.pre.mode, S_IFREG | 0644);
    ck_assert_uint_eq(stk.reply.post.mode, S_IFREG | 0600);
    ck_assert_uint_eq(stk.reply.post.uid, 12);
    ck_assert_uint_eq(stk.reply.post.gid, 0);
    ck_assert_int_eq(stk.reply.post.mtime, 1000000); /* back in time */
    ck_assert_uint_eq(stk.reply.post.mtime_nsec, 7);
    ck_assert_int_eq(stk.reply.post.ctime, 1900000000);
    call_stack_release(&stk);
    inode_unref(f);
}
END_TEST

START_TEST(statfs_shows_less_free_space_than_the_disk)
{
    struct call_stack stk;
    struct statvfs v;

    ck_assert_int_eq(statvfs(w.dir, &v), 0);
    call_begin(&stk, FOP_statfs);
    stk.call.loc.inode = inode_ref(w.root);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.statvfs.f_blocks, v.f_blocks);
    ck_assert_uint_lt(stk.reply.statvfs.f_bfree, v.f_bfree);
    call_stack_release(&stk);
}
END_TEST

START_TEST(mdata_has_the_bytes_of_the_spec)
{
    const struct mdata m = {1700000000, 1700000000, 1700000000, 123456789, 123456789, 123456789};
    const char want[] = "\x01\0\0\0\0\0\0\0\0\0\0\0\0\x65\x53\xf1\0\0\0\0\0\x07\x5b\xcd\x15";
    uint8_t bytes[POSIX_MDATA_BYTES];
    struct mdata back;

    posix_mdata_encode(&m, bytes);
    ck_assert_int_eq(memcmp(bytes, want, sizeof want - 1), 0);
    ck_assert_int_eq(posix_mdata_decode(bytes, sizeof bytes, &back), 0);
    ck_assert(m.ctime == back.ctime && m.mtime_nsec == back.mtime_nsec && m.atime == back.atime);
    ck_assert_int_eq(posix_mdata_decode(bytes, 56, &back), -EINVAL);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-lookup");
    TCase *bytes = tcase_create("bytes");
    TCase *names = tcase_create("names");

    root_or_skip();
    tcase_add_test(bytes, mdata_has_the_bytes_of_the_spec);
    suite_add_tcase(s, bytes);
    tcase_add_checked_fixture(names, world_setup, world_teardown);
    tcase_add_test(names, lookup_answers_missing_names_and_gfids_with_errors);
    tcase_add_test(names, a_lookup_that_succeeds_has_a_dict);
    tcase_add_test(names, lookup_heals_handles);
    tcase_add_test(names, the_remains_of_a_dead_create_are_removed);
    tcase_add_test(names, lookup_gives_the_proposed_gfid_to_an_object_without_one);
    tcase_add_test(names, objects_60_folders_deep_can_be_changed_and_removed);
    tcase_add_test(names, setattr_changes_the_mode_of_a_directory);
    tcase_add_test(names, objects_with_paths_too_long_are_not_made);
    tcase_add_test(names, lookup_records_the_inode_number);
    tcase_add_test(names, a_gfid_removed_by_hand_is_restored);
    tcase_add_test(names, a_missing_gfid_or_handle_is_restored);
    tcase_add_test(names, a_gfid_changed_by_hand_is_answered);
    tcase_add_test(names, paths_too_long_are_removed);
    tcase_add_test(names, setattr_times_and_mode);
    tcase_add_test(names, statfs_shows_less_free_space_than_the_disk);
    suite_add_tcase(s, names);
    return s;
}

#include "base/test-main.h"
