/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* storage/posix: unlink, rmdir and rename, and the handles that an object has afterwards. */
#include <pthread.h>

#include "xlators/storage/posix/entry/gfid2path.h"
#include "xlators/storage/posix/test-entry.h"
#include "xlators/storage/posix/xattr/xattrop.h"

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

/* Returns the number of names of an open file, as an XATTROP tells clients of dispersed volumes. */
static uint64_t
names_of(struct fd *fd)
{
    struct call_stack stk;
    uint64_t n = 99;

    call_begin(&stk, FOP_fxattrop);
    stk.call.fd = fd_ref(fd);
    stk.call.flags = XATTROP_ADD64;
    dict_set_int(stk.call.xdata, DICT_KEY_REQUEST_LINK_COUNT, 1);
    ck_assert_int_eq(call_run(&stk), 0);
    ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_REQUEST_LINK_COUNT, &n), 0);
    call_stack_release(&stk);
    return n;
}

START_TEST(unlinked_files_live_while_open)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct fd *fd = open_file(f);
    char kept[64];
    struct iatt iatt;
    struct call_stack stk;

    snprintf(kept, sizeof kept, "unlink/%s", GFID(&f->gfid));
    ck_assert_uint_eq(names_of(fd), 1);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert_uint_eq(names_of(fd), 0);
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

/* A heal creates an object with the gfid of a file that was removed here and is still open. */
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

/* An internal MKNOD gives an open file without a name a new name. A name that is taken changes nothing: the
 * file goes with its last fd. */
START_TEST(internal_mknod_at_a_taken_name_leaves_the_open_file)
{
    struct inode *f = make(FOP_create, w.root, "f"), *taken = make(FOP_create, w.root, "taken");
    struct fd *fd = open_file(f);
    struct call_stack stk;
    char kept[64];

    snprintf(kept, sizeof kept, "unlink/%s", GFID(&f->gfid));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    call_begin(&stk, FOP_mknod);
    call_loc(&stk.call.loc, w.root, "taken");
    want_gfid(&stk, &f->gfid);
    dict_set_str(stk.call.xdata, DICT_KEY_INTERNAL_FOP, "yes");
    stk.call.mode = S_IFREG | 0644;
    ck_assert_int_eq(call_run(&stk), -EEXIST);
    call_stack_release(&stk);
    ck_assert(has_hidden(kept));
    ck_assert(!has_handle_of(&f->gfid));
    fd_unref(fd);
    ck_assert(!has_hidden(kept));
    inode_unref(taken);
    inode_unref(f);
}
END_TEST

/* An inode number of the disk that is used again is no proof of identity. */
START_TEST(a_lookup_detects_a_reused_inode_number)
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

START_TEST(unlink_is_refused_if_a_condition_of_the_call_does_not_hold)
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

START_TEST(a_forced_rmdir_moves_the_tree_to_the_landfill)
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
    ck_assert_uint_eq(chore_now(w.p, POSIX_JANITOR), 0);
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
    ck_assert_uint_eq(chore_now(w.p, POSIX_JANITOR), 0);
    ck_assert(has_handle_of(&f->gfid));
    ck_assert_int_eq(find(w.root, "g", NULL), 0);
    inode_unref(f);
    inode_unref(d);
}
END_TEST

/* The heal of a folder that was renamed elsewhere makes the folder anew at its new place, and then removes it
 * at its old place. `take_away` removes the old folder. Ends with the folder at its new place. */
static void
check_old_place_leaves(int (*take_away)(void))
{
    struct inode *d = make(FOP_mkdir, w.root, "old"), *parent = make(FOP_mkdir, w.root, "parent");
    int err;
    struct inode *again = make_as(FOP_mkdir, parent, "new", &d->gfid, &err);
    struct iatt found;

    ck_assert_int_eq(err, 0);
    ck_assert_ptr_eq(again, d);
    ck_assert_int_eq(take_away(), 0);
    ck_assert(has_handle_of(&d->gfid));
    ck_assert_int_eq(find_gfid(&d->gfid, &found), 0);
    ck_assert_uint_ge(found.nlink, 2);
    inode_unref(make(FOP_create, d, "f"));
    inode_unref(again);
    inode_unref(parent);
    inode_unref(d);
}

static int
remove_old(void)
{
    return remove_entry(FOP_rmdir, w.root, "old", 0);
}

static int
move_old_to_landfill(void)
{
    return remove_entry(FOP_rmdir, w.root, "old", 1);
}

static int
rename_over_old(void)
{
    inode_unref(make(FOP_mkdir, w.root, "other"));
    return move(w.root, "other", w.root, "old");
}

START_TEST(a_folder_lives_at_its_new_place_when_the_old_one_is_removed)
{
    int (*const ways[])(void) = {remove_old, move_old_to_landfill, rename_over_old};

    check_old_place_leaves(ways[_i]);
}
END_TEST

/* The brick looks for the handle, and must not wait for its own rename. */
START_TEST(rename_over_a_folder_without_a_handle)
{
    struct inode *old = make(FOP_mkdir, w.root, "old");

    ck_assert_int_eq(unlinkat(w.p->handles_fd, HANDLE(&old->gfid), 0), 0);
    inode_unref(make(FOP_mkdir, w.root, "other"));
    ck_assert_int_eq(move(w.root, "other", w.root, "old"), 0);
    inode_unref(old);
}
END_TEST

static void *
run_janitor(void *arg)
{
    ck_assert_uint_eq(chore_now(w.p, POSIX_JANITOR), 0);
    return arg;
}

/* A call that reached the folder before its removal holds the name's lock while it heals the handle. */
START_TEST(janitor_waits_for_the_lock_of_a_name)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *f = make(FOP_create, d, "f");
    char name[80];
    pthread_t janitor;

    snprintf(name, sizeof name, "landfill/%s/f", GFID(&d->gfid));
    pthread_mutex_t *lock = posix_name_lock(w.p, &d->gfid, "f");
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
    ck_assert_int_eq(pthread_create(&janitor, NULL, run_janitor, NULL), 0);
    usleep(50000);
    ck_assert(has_hidden(name));
    pthread_mutex_unlock(lock);
    pthread_join(janitor, NULL);
    ck_assert(!has_hidden(name));
    ck_assert(!has_handle_of(&f->gfid));
    inode_unref(f);
    inode_unref(d);
}
END_TEST

/* Calls `fop` by gfid, for an object without a name that an fd holds open. */
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

START_TEST(a_removed_object_lives_while_it_is_open)
{
    for (int i = 0; i < 3; i++) {
        struct inode *inode = make(i ? FOP_mkdir : FOP_create, w.root, "kept");

        kept_while_open(inode, i ? FOP_opendir : FOP_open, i ? FOP_rmdir : FOP_unlink, i == 2);
        inode_unref(inode);
    }
    /* A rename replaces an open directory. */
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

START_TEST(unlink_of_a_large_file_removes_its_handle)
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

/* The self-heal daemon renames all names of a removed file to one name, and expects that a successful rename
 * has removed the old name. */
START_TEST(healer_renames_hard_links_of_one_file)
{
    struct inode *f = make(FOP_create, w.root, "f");
    struct call_stack stk;

    ck_assert_int_eq(link_to(f, w.root, "g"), 0);
    call_begin(&stk, FOP_rename);
    stk.caller.pid = -6;
    call_loc(&stk.call.loc, w.root, "f");
    call_loc(&stk.call.loc2, w.root, "g");
    ck_assert_int_eq(call_run(&stk), 0);
    call_stack_release(&stk);
    inode_unref(f);
    brick_down();
    brick_up("");
    ck_assert_int_eq(find(w.root, "f", NULL), -ENOENT);
    ck_assert_int_eq(find(w.root, "g", NULL), 0);
}
END_TEST

/* A healer may not lose a file by moving its only name to itself: the data would stay below .glusterfs, in a
 * file that no call reaches. */
START_TEST(a_name_that_is_renamed_to_itself_stays)
{
    static const int pids[] = {4711, -6};
    struct inode *made = _i < 2 ? make(FOP_create, w.root, "f") : make(FOP_symlink, w.root, "f");
    struct call_stack stk;
    struct iatt iatt;

    call_begin(&stk, FOP_rename);
    stk.caller.pid = pids[_i % 2];
    call_loc(&stk.call.loc, w.root, "f");
    call_loc(&stk.call.loc2, w.root, "f");
    ck_assert_int_eq(call_run(&stk), 0);
    call_stack_release(&stk);
    ck_assert_int_eq(find(w.root, "f", &iatt), 0);
    ck_assert(gfid_equal(&iatt.gfid, &made->gfid));
    ck_assert_uint_eq(iatt.nlink, 1);
    ck_assert(has_handle_of(&made->gfid));
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    ck_assert(!has_handle_of(&made->gfid));
    inode_unref(made);
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

START_TEST(a_refused_rename_leaves_all_objects)
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

/* ---- names counted by directory -------------------------------------------------------------- */

static void
setup_counted(void)
{
    pools();
    brick_dir(w.dir);
    brick_up(" option update-link-count-parent on\n");
}

static int
names_in(struct inode *f, struct inode *dir)
{
    char key[64], path[192];
    unsigned char be[4];

    snprintf(key, sizeof key, "trusted.pgfid.%s", GFID(&dir->gfid));
    snprintf(path, sizeof path, "%s/.glusterfs/%s", w.dir, HANDLE(&f->gfid));
    ssize_t n = lgetxattr(path, key, be, sizeof be);
    ck_assert(n == 4 || (n == -1 && errno == ENODATA));
    return n == 4 ? be[3] : 0;
}

START_TEST(names_are_counted_by_directory)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *f = make(FOP_create, w.root, "f");
    struct inode *s = make(FOP_symlink, d, "s"), *g = make(FOP_create, d, "g");

    ck_assert_int_eq(names_in(f, w.root), 1);
    ck_assert_int_eq(names_in(s, d), 1);
    ck_assert_int_eq(names_in(d, w.root), 0);
    ck_assert_int_eq(link_to(f, w.root, "f2"), 0);
    ck_assert_int_eq(link_to(f, d, "f3"), 0);
    ck_assert_int_eq(names_in(f, w.root), 2);
    ck_assert_int_eq(names_in(f, d), 1);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f2", 0), 0);
    ck_assert_int_eq(names_in(f, w.root), 1);
    ck_assert_int_eq(move(w.root, "f", w.root, "f4"), 0);
    ck_assert_int_eq(names_in(f, w.root), 1);
    ck_assert_int_eq(move(w.root, "f4", d, "f4"), 0);
    ck_assert_int_eq(names_in(f, w.root), 0);
    ck_assert_int_eq(names_in(f, d), 2);
    ck_assert_int_eq(move(d, "g", d, "f3"), 0); /* one of its names is replaced */
    ck_assert_int_eq(names_in(f, d), 1);
    ck_assert_int_eq(names_in(g, d), 1);
    inode_unref(d);
    inode_unref(f);
    inode_unref(s);
    inode_unref(g);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-remove");
    TCase *names = tcase_create("names");

    root_or_skip();
    tcase_add_checked_fixture(names, world_setup, world_teardown);
    tcase_add_test(names, unlink_takes_the_handle_with_the_last_name);
    tcase_add_test(names, unlinked_files_live_while_open);
    tcase_add_test(names, unlink_is_refused_if_a_condition_of_the_call_does_not_hold);
    tcase_add_test(names, gfid_comes_back_while_the_old_file_is_open);
    tcase_add_test(names, internal_mknod_at_a_taken_name_leaves_the_open_file);
    tcase_add_test(names, a_lookup_detects_a_reused_inode_number);
    tcase_add_test(names, a_forced_rmdir_moves_the_tree_to_the_landfill);
    tcase_add_loop_test(names, a_folder_lives_at_its_new_place_when_the_old_one_is_removed, 0, 3);
    tcase_add_test(names, rename_over_a_folder_without_a_handle);
    tcase_add_test(names, landfill_keeps_files_with_other_names);
    tcase_add_test(names, janitor_waits_for_the_lock_of_a_name);
    tcase_add_test(names, rename_file_over_file);
    tcase_add_test(names, rename_over_an_open_file_keeps_it);
    tcase_add_test(names, rename_hard_links_of_one_file);
    tcase_add_test(names, healer_renames_hard_links_of_one_file);
    tcase_add_loop_test(names, a_name_that_is_renamed_to_itself_stays, 0, 4);
    tcase_add_test(names, rename_directory_moves_its_handle);
    tcase_add_test(names, a_refused_rename_leaves_all_objects);
    tcase_add_test(names, a_removed_object_lives_while_it_is_open);
    tcase_add_test(names, unlink_of_a_large_file_removes_its_handle);
    suite_add_tcase(s, names);
    TCase *counted = tcase_create("counted");
    tcase_add_checked_fixture(counted, setup_counted, world_teardown);
    tcase_add_test(counted, names_are_counted_by_directory);
    suite_add_tcase(s, counted);
    return s;
}

#include "base/test-main.h"
