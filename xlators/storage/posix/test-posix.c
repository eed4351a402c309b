/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Everything that makes, finds, moves and removes names, and attributes. */
#include <sys/statvfs.h>

#include "xlators/storage/posix/gfid2path.h"
#include "xlators/storage/posix/mdata.h"
#include "xlators/storage/posix/test-entry.h"

/* ---- creating -------------------------------------------------------------------------------- */

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

START_TEST(gfid2path_vector)
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
START_TEST(gfid_of_another_object)
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

START_TEST(owner_mode_and_keys)
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

START_TEST(group_of_a_setgid_directory)
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

/* Whoever knows a directory by its gfid would work in another one. */
START_TEST(gfid_of_another_directory)
{
    struct inode *place = make(FOP_mkdir, w.root, "place"), *old = make(FOP_mkdir, place, "old");
    struct inode *mine = make(FOP_mkdir, w.root, "mine"), *f = make(FOP_create, place, "f");
    char path[128], in_old[160];

    snprintf(path, sizeof path, "%s/place", w.dir);
    snprintf(in_old, sizeof in_old, "%s/old", path);
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "trap", &old->gfid), -EEXIST);
    ck_assert_int_eq(chmod(path, 01777), 0); /* sticky: not his either */
    ck_assert_int_eq(mkdir_by(1000, 1, mine, "trap", &old->gfid), -EEXIST);
    ck_assert_int_eq(find(mine, "trap", NULL), -ENOENT);
    ck_assert_int_eq(find(place, "old", NULL), 0);
    ck_assert_int_eq(mkdir_by(0, 1, mine, "file", &f->gfid), -EEXIST); /* of a file: nobody */
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

START_TEST(layout_that_has_changed)
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

START_TEST(names_that_are_not_allowed)
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

START_TEST(mkdir_handle_text)
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
START_TEST(symlink_that_pretends_to_be_a_handle)
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
    /* ... even when its last name has gone behind our back. */
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

/* ---- lookup and healing ---------------------------------------------------------------------- */

START_TEST(lookup_answers)
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

/* A stock disperse client puts what it has read into the dict of a LOOKUP, and cannot heal without one. */
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

START_TEST(lookup_gives_a_gfid)
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

/* ---- removing -------------------------------------------------------------------------------- */

START_TEST(unlink_takes_the_handle_with_the_last_name)
{
    struct inode *f = make(FOP_create, w.root, "f");
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE], path[128];

    ck_assert_int_eq(link_to(f, w.root, "g"), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert(has_handle_of(&f->gfid));
    snprintf(path, sizeof path, "%s/g", w.dir);
    posix_gfid2path_pair(&gfid_root, "f", key, value);
    ck_assert_int_eq(getxattr(path, key, NULL, 0), -1);
    posix_gfid2path_pair(&gfid_root, "g", key, value);
    ck_assert_int_gt(getxattr(path, key, NULL, 0), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "g", 0), 0);
    ck_assert(!has_handle_of(&f->gfid));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "g", 0), -ENOENT);
    inode_unref(f);
}
END_TEST

static struct fd *
open_file(struct inode *inode)
{
    struct call_stack stk;

    call_begin(&stk, FOP_open);
    stk.call.loc.inode = inode_ref(inode);
    stk.call.flags = O_RDWR;
    ck_assert_int_eq(call_run(&stk), 0);
    struct fd *fd = fd_ref(stk.reply.fd);
    call_stack_release(&stk);
    return fd;
}

START_TEST(unlinked_files_live_while_open)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct fd *fd = open_file(f);
    char kept[64];
    struct iatt iatt;
    struct call_stack stk;

    snprintf(kept, sizeof kept, "unlink/%s", GFID(&f->gfid));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert(has_hidden(kept));
    ck_assert_int_eq(find_gfid(&f->gfid, &iatt), -ENOENT);
    call_begin(&stk, FOP_lookup);
    stk.call.gfid = f->gfid;
    dict_set_uint(stk.call.xdata, DICT_KEY_UNLINKED_LOOKUP, 1);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.nlink, 0);
    call_stack_release(&stk);
    call_begin(&stk, FOP_fstat);
    stk.call.fd = fd_ref(fd);
    stk.call.loc.inode = inode_ref(f);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_uint_eq(stk.reply.stat.nlink, 0);
    call_stack_release(&stk);
    fd_unref(fd);
    ck_assert(!has_hidden(kept));
    inode_unref(f);
}
END_TEST

/* Heal makes an object anew under the gfid of one that was removed here and is still open. */
START_TEST(gfid_comes_back_while_the_old_file_is_open)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct fd *fd = open_file(f);
    struct iatt iatt;
    char kept[64];
    int err;

    snprintf(kept, sizeof kept, "unlink/%s", GFID(&f->gfid));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    struct inode *again = make_as(FOP_mknod, w.root, "g", &f->gfid, &err);
    ck_assert_int_eq(err, 0);
    ck_assert_int_eq(find_gfid(&f->gfid, &iatt), 0);
    ck_assert_uint_eq(iatt.nlink, 1);
    ck_assert_int_eq(iatt.mtime, 1700000000 + next_gfid);
    fd_unref(fd);
    ck_assert(!has_hidden(kept));
    ck_assert_int_eq(find(w.root, "g", &iatt), 0);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "g", 0), 0);
    inode_unref(again);
    inode_unref(f);
}
END_TEST

/* An inode number of the disk that is used again is no proof of identity. */
START_TEST(reused_inode_number)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct call_stack stk;
    struct posix_inode *ctx;
    struct stat st;

    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    struct inode *g = make(FOP_mknod, w.root, "f");
    ck_assert_int_eq(fstatat(w.p->brick_fd, "f", &st, 0), 0);
    ctx = posix_inode_get(w.xl, f);
    atomic_store(&ctx->backend_ino, st.st_ino);
    /* A lookup that was resolved before the unlink and runs now. */
    call_begin(&stk, FOP_lookup);
    call_loc(&stk.call.loc, w.root, "f");
    inode_unref(stk.call.loc.inode);
    stk.call.loc.inode = inode_ref(f);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert(gfid_equal(&stk.reply.stat.gfid, &g->gfid));
    call_stack_release(&stk);
    inode_unref(g);
    inode_unref(f);
}
END_TEST

START_TEST(unlink_conditions)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct fd *fd = open_file(f);
    struct call_stack stk;
    uint64_t n;

    call_begin(&stk, FOP_unlink);
    call_loc(&stk.call.loc, w.root, "f");
    dict_set_int(stk.call.xdata, DICT_KEY_DONT_UNLINK_FOR_OPEN_FD, 1);
    ck_assert_int_eq(call_run(&stk), -EBUSY);
    call_stack_release(&stk);
    fd_unref(fd);
    call_begin(&stk, FOP_unlink);
    call_loc(&stk.call.loc, w.root, "f");
    dict_set_int(stk.call.xdata, DICT_KEY_UNLINK_ONLY_LINKTO, 1);
    ck_assert_int_eq(call_run(&stk), -EBUSY);
    call_stack_release(&stk);
    call_begin(&stk, FOP_unlink);
    call_loc(&stk.call.loc, w.root, "f");
    dict_set_int(stk.call.xdata, DICT_KEY_DONT_UNLINK_FOR_OPEN_FD, 1);
    dict_set_int(stk.call.xdata, DICT_KEY_GET_LINK_COUNT, 1);
    dict_set_int(stk.call.xdata, DICT_KEY_IATT_IN_XATTR, 1);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_GET_LINK_COUNT, &n), 0);
    ck_assert_uint_eq(n, 1);
    ck_assert(dict_has(stk.reply.xdata, DICT_KEY_POSTSTAT));
    ck_assert_uint_eq(stk.reply.post.mode & S_IFMT, S_IFDIR);
    call_stack_release(&stk);
    inode_unref(f);
}
END_TEST

START_TEST(rmdir_and_landfill)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *sub = make(FOP_mkdir, d, "sub"),
                 *f = make(FOP_create, sub, "f");
    char lies[64];

    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 0), -ENOTEMPTY);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "d", 0), -EISDIR);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
    ck_assert(!has_handle_of(&d->gfid));
    snprintf(lies, sizeof lies, "landfill/%s", GFID(&d->gfid));
    ck_assert(has_hidden(lies));
    ck_assert_uint_eq(w.p->janitor.fn(w.p), 0);
    ck_assert(!has_hidden(lies));
    ck_assert(!has_handle_of(&sub->gfid));
    ck_assert(!has_handle_of(&f->gfid));
    /* Nothing but the directory itself is left. */
    ck_assert_int_eq(unlinkat(w.p->handles_fd, "landfill", AT_REMOVEDIR), 0);
    inode_unref(f);
    inode_unref(sub);
    inode_unref(d);
}
END_TEST

START_TEST(landfill_keeps_files_with_other_names)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *f = make(FOP_create, d, "f");

    ck_assert_int_eq(link_to(f, w.root, "g"), 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
    ck_assert_uint_eq(w.p->janitor.fn(w.p), 0);
    ck_assert(has_handle_of(&f->gfid));
    ck_assert_int_eq(find(w.root, "g", NULL), 0);
    inode_unref(f);
    inode_unref(d);
}
END_TEST

/* ---- rename ---------------------------------------------------------------------------------- */

START_TEST(rename_file_over_file)
{
    struct inode *a = make(FOP_create, w.root, "a"), *b = make(FOP_create, w.root, "b");
    struct iatt iatt;
    char key[POSIX_GFID2PATH_KEY_SIZE], value[POSIX_GFID2PATH_VALUE_SIZE], path[128];

    ck_assert_int_eq(move(w.root, "a", w.root, "b"), 0);
    ck_assert_int_eq(find(w.root, "a", NULL), -ENOENT);
    ck_assert_int_eq(find(w.root, "b", &iatt), 0);
    ck_assert(gfid_equal(&iatt.gfid, &a->gfid));
    ck_assert(!has_handle_of(&b->gfid));
    snprintf(path, sizeof path, "%s/b", w.dir);
    posix_gfid2path_pair(&gfid_root, "a", key, value);
    ck_assert_int_eq(getxattr(path, key, NULL, 0), -1);
    posix_gfid2path_pair(&gfid_root, "b", key, value);
    ck_assert_int_gt(getxattr(path, key, NULL, 0), 0);
    inode_unref(a);
    inode_unref(b);
}
END_TEST

START_TEST(rename_over_an_open_file_keeps_it)
{
    struct inode *a = make(FOP_create, w.root, "a"), *b = make(FOP_create, w.root, "b");
    struct fd *fd = open_file(b);
    char kept[64];

    snprintf(kept, sizeof kept, "unlink/%s", GFID(&b->gfid));
    ck_assert_int_eq(move(w.root, "a", w.root, "b"), 0);
    ck_assert(has_hidden(kept));
    fd_unref(fd);
    ck_assert(!has_hidden(kept));
    inode_unref(a);
    inode_unref(b);
}
END_TEST

START_TEST(rename_hard_links_of_one_file)
{
    struct inode *f = make(FOP_create, w.root, "f");

    ck_assert_int_eq(link_to(f, w.root, "g"), 0);
    ck_assert_int_eq(move(w.root, "f", w.root, "g"), 0);
    inode_unref(f);
    brick_down();
    brick_up("");
    ck_assert_int_eq(find(w.root, "f", NULL), 0);
    ck_assert_int_eq(find(w.root, "g", NULL), 0);
}
END_TEST

START_TEST(rename_directory_moves_its_handle)
{
    struct inode *a = make(FOP_mkdir, w.root, "a"), *b = make(FOP_mkdir, w.root, "b"),
                 *f = make(FOP_create, a, "f");
    struct inode *empty = make(FOP_mkdir, b, "new");

    ck_assert_int_eq(move(w.root, "a", b, "new"), 0);
    ck_assert(!has_handle_of(&empty->gfid));
    ck_assert_int_eq(find_gfid(&a->gfid, NULL), 0);
    ck_assert_int_eq(find(a, "f", NULL), 0);
    ck_assert_int_eq(move(w.root, "b", a, "loop"), -EINVAL);
    ck_assert_int_eq(find_gfid(&b->gfid, NULL), 0);
    inode_unref(empty);
    inode_unref(f);
    inode_unref(b);
    inode_unref(a);
}
END_TEST

START_TEST(rename_that_fails)
{
    struct inode *a = make(FOP_mkdir, w.root, "a"), *b = make(FOP_mkdir, w.root, "b"),
                 *in = make(FOP_create, b, "in");
    struct inode *f = make(FOP_create, w.root, "f");

    ck_assert_int_eq(move(w.root, "a", w.root, "b"), -ENOTEMPTY);
    ck_assert_int_eq(move(w.root, "a", w.root, "f"), -ENOTDIR);
    ck_assert_int_eq(move(w.root, "f", w.root, "a"), -EISDIR);
    ck_assert_int_eq(move(w.root, "none", w.root, "x"), -ENOENT);
    ck_assert_int_eq(move(w.root, "f", w.root, ".glusterfs"), -ENOTEMPTY);
    ck_assert_int_eq(find_gfid(&a->gfid, NULL), 0);
    ck_assert_int_eq(find_gfid(&b->gfid, NULL), 0);
    ck_assert_int_eq(find_gfid(&f->gfid, NULL), 0);
    inode_unref(f);
    inode_unref(in);
    inode_unref(b);
    inode_unref(a);
}
END_TEST

/* ---- deep trees ------------------------------------------------------------------------------ */

/* More than 40 levels: the kernel does not follow so many handles. */
START_TEST(deep_tree)
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
    ck_assert_uint_eq(w.p->janitor.fn(w.p), 0);
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

/* What users could neither use nor remove is refused: BRICK's path and the name's together have to stay below
 * PATH_MAX. */
START_TEST(paths_too_long)
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

/* A brick may have such paths all the same, from before or by a rename above: they can be looked at and
 * removed. */
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

/* LOOKUP alone makes an inode known: the next one needs not read the gfid. */
START_TEST(lookup_meets_the_inode)
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

/* Calls by gfid while an fd is open on what has no name any more. */
static int
by_gfid(enum fop fop, struct inode *inode, struct iatt *post)
{
    struct call_stack stk;

    call_begin(&stk, fop);
    stk.call.loc.inode = inode_ref(inode);
    stk.call.valid = SETATTR_MODE;
    stk.call.stbuf.mode = 0711;
    stk.call.flags = fop == FOP_setxattr ? 0 : O_RDONLY;
    stk.call.dict = dict_new(&stk.arena);
    ck_assert_int_eq(dict_set_text(stk.call.dict, "trusted.kept", DICT_PTR, "x", 1), 0);
    stk.call.name = "trusted.kept";
    stk.call.has_name = true;
    int r = call_run(&stk);
    *post = stk.reply.post;
    call_stack_release(&stk);
    return r;
}

static void
kept_while_open(struct inode *inode, enum fop open, enum fop remove, unsigned flags)
{
    const enum fop fops[] = {FOP_stat, FOP_setattr, FOP_setxattr, FOP_getxattr, open};
    struct call_stack stk;
    struct iatt post;
    size_t i;

    call_begin(&stk, open);
    stk.call.loc.inode = inode_ref(inode);
    ck_assert_int_eq(call_run(&stk), 0);
    struct fd *fd = fd_ref(stk.reply.fd);
    call_stack_release(&stk);

    ck_assert_int_eq(remove_entry(remove, w.root, "kept", flags), 0);
    for (i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        ck_assert_int_eq(by_gfid(fops[i], inode, &post), 0);
        if (fops[i] == FOP_setattr) {
            ck_assert_uint_eq(post.mode & 07777, 0711);
            ck_assert_uint_eq(post.nlink, 0);
        }
    }
    ck_assert_int_eq(link_to(inode, w.root, "again"), S_ISDIR(inode->type) ? -EPERM : -ENOENT);
    fd_unref(fd);
    for (i = 0; i < sizeof fops / sizeof fops[0]; i++)
        ck_assert_int_eq(by_gfid(fops[i], inode, &post), -ENOENT);
}

START_TEST(removed_but_open)
{
    for (int i = 0; i < 3; i++) {
        struct inode *inode = make(i ? FOP_mkdir : FOP_create, w.root, "kept");

        kept_while_open(inode, i ? FOP_opendir : FOP_open, i ? FOP_rmdir : FOP_unlink, i == 2);
        inode_unref(inode);
    }
    /* A directory that is replaced by another one. */
    struct inode *a = make(FOP_mkdir, w.root, "a"), *b = make(FOP_mkdir, w.root, "b");
    struct call_stack stk;
    struct iatt post;
    call_begin(&stk, FOP_opendir);
    stk.call.loc.inode = inode_ref(b);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_int_eq(move(w.root, "a", w.root, "b"), 0);
    ck_assert_int_eq(by_gfid(FOP_setattr, b, &post), 0);
    ck_assert_uint_eq(post.nlink, 0);
    call_stack_release(&stk);
    ck_assert_int_eq(by_gfid(FOP_setattr, b, &post), -ENOENT);
    inode_unref(a);
    inode_unref(b);
}
END_TEST

/* Of a directory whose inode was met: what is answered is from after the change. */
START_TEST(setattr_of_a_directory)
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

START_TEST(statfs_is_less_than_the_disk)
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

START_TEST(mdata_bytes)
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

/* A step that fails takes back what was done: here a value that no file system stores. */
START_TEST(creation_that_fails_half_way)
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

START_TEST(unlink_of_a_large_file)
{
    struct inode *f = make(FOP_create, w.root, "f");
    int fd = openat(w.p->brick_fd, "f", O_WRONLY);

    ck_assert_int_eq(fallocate(fd, 0, 0, 80 << 20), 0);
    close(fd);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert(!has_handle_of(&f->gfid));
    inode_unref(f);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix");
    TCase *bytes = tcase_create("bytes"), *names = tcase_create("names");

    root_or_skip();
    tcase_add_test(bytes, gfid2path_vector);
    tcase_add_test(bytes, mdata_bytes);
    suite_add_tcase(s, bytes);

    tcase_add_checked_fixture(names, world_setup, world_teardown);
    tcase_add_test(names, create_leaves_gfid_handle_and_path);
    tcase_add_test(names, create_without_gfid_is_refused);
    tcase_add_test(names, create_over_an_existing_file);
    tcase_add_test(names, gfid_of_another_object);
    tcase_add_test(names, owner_mode_and_keys);
    tcase_add_test(names, group_of_a_setgid_directory);
    tcase_add_test(names, gfid_of_another_directory);
    tcase_add_test(names, layout_that_has_changed);
    tcase_add_test(names, names_that_are_not_allowed);
    tcase_add_test(names, mkdir_handle_text);
    tcase_add_test(names, symlink_that_pretends_to_be_a_handle);
    tcase_add_test(names, internal_mknod_links_to_the_gfid);
    tcase_add_test(names, force_replace_removes_a_stale_linkto);
    tcase_add_test(names, lookup_answers);
    tcase_add_test(names, a_lookup_that_succeeds_has_a_dict);
    tcase_add_test(names, lookup_heals_handles);
    tcase_add_test(names, lookup_gives_a_gfid);
    tcase_add_test(names, unlink_takes_the_handle_with_the_last_name);
    tcase_add_test(names, unlinked_files_live_while_open);
    tcase_add_test(names, unlink_conditions);
    tcase_add_test(names, gfid_comes_back_while_the_old_file_is_open);
    tcase_add_test(names, reused_inode_number);
    tcase_add_test(names, rmdir_and_landfill);
    tcase_add_test(names, landfill_keeps_files_with_other_names);
    tcase_add_test(names, rename_file_over_file);
    tcase_add_test(names, rename_over_an_open_file_keeps_it);
    tcase_add_test(names, rename_hard_links_of_one_file);
    tcase_add_test(names, rename_directory_moves_its_handle);
    tcase_add_test(names, rename_that_fails);
    tcase_add_test(names, deep_tree);
    tcase_add_test(names, setattr_of_a_directory);
    tcase_add_test(names, paths_too_long);
    tcase_add_test(names, lookup_meets_the_inode);
    tcase_add_test(names, removed_but_open);
    tcase_add_test(names, paths_too_long_are_removed);
    tcase_add_test(names, setattr_times_and_mode);
    tcase_add_test(names, statfs_is_less_than_the_disk);
    tcase_add_test(names, creation_that_fails_half_way);
    tcase_add_test(names, unlink_of_a_large_file);
    suite_add_tcase(s, names);
    return s;
}

#include "base/test-main.h"
