/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Concurrent changes of names: in any order, no handle is left over or missing, and no call sees a change
 * half done. */
#include <pthread.h>

#include "xlators/storage/posix/test-entry.h"

enum { CROWD = 8, ROUNDS = 300 };

static void *
create_and_unlink(void *arg)
{
    long made = 0, other;
    int err;

    for (int i = 0; i < ROUNDS; i++) {
        struct gfid g;
        gfid_random(&g);
        struct inode *inode = make_as(i & 1 ? FOP_mknod : FOP_create, w.root, "same", &g, &err);
        ck_assert(inode || err == -EEXIST || err == -ENOENT);
        made += inode != NULL;
        inode_unref(inode);
        err = find(w.root, "same", NULL);
        ck_assert_msg(err == 0 || err == -ENOENT, "lookup: %s", strerror(-err));
        err = remove_entry(FOP_unlink, w.root, "same", 0);
        ck_assert_msg(err == 0 || err == -ENOENT, "unlink: %s", strerror(-err));
    }
    other = *(long *)arg;
    *(long *)arg = other + made;
    return NULL;
}

static void
count_handles(unsigned *count)
{
    char command[256], text[32];

    snprintf(command, sizeof command, "find %s/.glusterfs/?? %s/.glusterfs/unlink -type f | wc -l", w.dir,
             w.dir);
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(fgets(text, sizeof text, pipe));
    pclose(pipe);
    *count = (unsigned)atoi(text);
}

START_TEST(concurrent_creates_and_unlinks_of_one_name_leave_no_handle)
{
    pthread_t threads[CROWD];
    long made[CROWD] = {0}, total = 0;
    unsigned left;

    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, create_and_unlink, &made[i]), 0);
    for (int i = 0; i < CROWD; i++) {
        pthread_join(threads[i], NULL);
        total += made[i];
    }
    ck_assert_int_gt(total, 0);
    remove_entry(FOP_unlink, w.root, "same", 0);
    count_handles(&left);
    ck_assert_uint_eq(left, 0);
}
END_TEST

static atomic_bool is_over;

static void *
rename_back_and_forth(void *arg)
{
    (void)arg;
    for (int i = 0; i < ROUNDS * 4; i++) {
        ck_assert_int_eq(move(w.root, "a", w.root, "b"), 0);
        ck_assert_int_eq(move(w.root, "b", w.root, "a"), 0);
    }
    atomic_store(&is_over, true);
    return NULL;
}

/* Calls that know a directory by its gfid succeed while the directory, or a directory above, is renamed. */
static void *
work_inside(void *arg)
{
    struct inode *dir = arg;
    char name[32];

    snprintf(name, sizeof name, "%p", (void *)&name);
    while (!atomic_load(&is_over)) {
        inode_unref(make(FOP_create, dir, name));
        ck_assert_int_eq(find(dir, name, NULL), 0);
        ck_assert_int_eq(find_gfid(&dir->gfid, NULL), 0);
        ck_assert_int_eq(remove_entry(FOP_unlink, dir, name, 0), 0);
    }
    return NULL;
}

START_TEST(calls_in_a_directory_succeed_during_renames)
{
    struct inode *a = make(FOP_mkdir, w.root, "a"), *sub = make(FOP_mkdir, a, "sub");
    pthread_t renamer, workers[3];

    atomic_store(&is_over, false);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&workers[i], NULL, work_inside, i ? sub : a), 0);
    ck_assert_int_eq(pthread_create(&renamer, NULL, rename_back_and_forth, NULL), 0);
    pthread_join(renamer, NULL);
    for (int i = 0; i < 3; i++)
        pthread_join(workers[i], NULL);
    inode_unref(sub);
    inode_unref(a);
}
END_TEST

static void *
open_and_close(void *arg)
{
    struct inode *f = arg;
    struct call_stack stk;

    call_begin(&stk, FOP_open);
    stk.call.loc.inode = inode_ref(f);
    stk.call.flags = O_RDWR;
    int r = call_run(&stk);
    ck_assert(r == 0 || r == -ENOENT);
    call_stack_release(&stk);
    return NULL;
}

START_TEST(a_concurrent_open_and_unlink_leave_no_handle)
{
    unsigned left;

    for (int i = 0; i < ROUNDS; i++) {
        struct inode *f = make(FOP_create, w.root, "f");
        pthread_t thread;

        ck_assert_int_eq(pthread_create(&thread, NULL, open_and_close, f), 0);
        ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
        pthread_join(thread, NULL);
        ck_assert(!has_handle_of(&f->gfid));
        inode_unref(f);
    }
    count_handles(&left);
    ck_assert_uint_eq(left, 0);
}
END_TEST

/* Threads add and remove names of one inode: the handle must exist as long as any name does. */
static void *
link_and_unlink(void *arg)
{
    struct inode *f = arg;
    char name[32];

    snprintf(name, sizeof name, "l%p", (void *)&name);
    for (int i = 0; i < ROUNDS; i++) {
        ck_assert_int_eq(link_to(f, w.root, name), 0);
        ck_assert_int_eq(find_gfid(&f->gfid, NULL), 0);
        if (i & 1)
            ck_assert_int_eq(move(w.root, name, w.root, name + 1), 0);
        ck_assert_int_eq(remove_entry(FOP_unlink, w.root, i & 1 ? name + 1 : name, 0), 0);
    }
    return NULL;
}

START_TEST(concurrent_links_and_unlinks_of_one_file_leave_no_handle)
{
    struct inode *f = make(FOP_create, w.root, "f");
    pthread_t threads[CROWD];
    unsigned left;

    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, link_and_unlink, f), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    ck_assert_int_eq(remove_entry(FOP_unlink, w.root, "f", 0), 0);
    count_handles(&left);
    ck_assert_uint_eq(left, 0);
    inode_unref(f);
}
END_TEST

/* All threads rename over each other's names: in the end each remaining handle has exactly one name. */
static void *
rename_around(void *arg)
{
    const char *const names[] = {"a", "b", "c", "d"};
    unsigned seed = (unsigned)(uintptr_t)arg;

    for (int i = 0; i < ROUNDS; i++) {
        const char *from = names[rand_r(&seed) % 4], *to = names[rand_r(&seed) % 4];
        struct gfid g;
        int err;

        gfid_random(&g);
        inode_unref(make_as(FOP_create, w.root, from, &g, &err));
        ck_assert_msg(err == 0 || err == -EEXIST, "create: %s", strerror(-err));
        err = move(w.root, from, w.root, to);
        ck_assert_msg(err == 0 || err == -ENOENT, "rename: %s", strerror(-err));
        err = find(w.root, to, NULL);
        ck_assert_msg(err == 0 || err == -ENOENT, "lookup: %s", strerror(-err));
    }
    return NULL;
}

START_TEST(concurrent_renames_leave_one_handle_for_each_file)
{
    const char *const names[] = {"a", "b", "c", "d"};
    pthread_t threads[CROWD];
    unsigned left, found = 0;

    for (int i = 0; i < CROWD; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, rename_around, (void *)(uintptr_t)(i + 1)), 0);
    for (int i = 0; i < CROWD; i++)
        pthread_join(threads[i], NULL);
    brick_down();
    brick_up("");
    for (int i = 0; i < 4; i++) {
        struct iatt iatt;

        if (find(w.root, names[i], &iatt) == 0) {
            ck_assert_uint_eq(iatt.nlink, 1);
            found++;
        }
    }
    count_handles(&left);
    ck_assert_uint_eq(left, found);
}
END_TEST

/* ---- a removed tree -------------------------------------------------------------------------- */

static void *
take_away(void *arg)
{
    struct posix *p = posix_of(w.xl);

    (void)arg;
    chore_now(p, POSIX_JANITOR);
    return NULL;
}

/* The janitor removes a folder while the second names of its files, outside of the folder, are removed or
 * made. */
static void
tree_goes_while_names(bool come)
{
    enum { FILES = 8 };
    struct inode *files[FILES];
    unsigned left;
    char name[16];

    for (int i = 0; i < ROUNDS / 3; i++) {
        struct inode *d = make(FOP_mkdir, w.root, "d");
        pthread_t janitor;

        for (int k = 0; k < FILES; k++) {
            snprintf(name, sizeof name, "%d", k);
            files[k] = make(FOP_create, d, name);
            if (!come)
                ck_assert_int_eq(link_to(files[k], w.root, name), 0);
        }
        ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
        ck_assert_int_eq(pthread_create(&janitor, NULL, take_away, NULL), 0);
        for (int k = 0; k < FILES; k++) {
            snprintf(name, sizeof name, "%d", k);
            int r = come ? link_to(files[k], w.root, name) : remove_entry(FOP_unlink, w.root, name, 0);
            ck_assert(r == 0 || (come && (r == -ENOENT || r == -ESTALE)));
        }
        pthread_join(janitor, NULL);
        for (int k = 0; k < FILES; k++) {
            snprintf(name, sizeof name, "%d", k);
            ck_assert_int_eq(has_handle_of(&files[k]->gfid), find(w.root, name, NULL) == 0);
            remove_entry(FOP_unlink, w.root, name, 0);
            inode_unref(files[k]);
        }
        inode_unref(d);
    }
    count_handles(&left);
    ck_assert_uint_eq(left, 0);
}

START_TEST(a_tree_is_removed_while_other_names_are_removed)
{
    tree_goes_while_names(false);
}
END_TEST

START_TEST(a_tree_is_removed_while_other_names_are_made)
{
    tree_goes_while_names(true);
}
END_TEST

/* By the time of the removal another folder has the gfid, and its entry of the same name is a symlink with a
 * text that is too long for a path. */
START_TEST(a_tree_with_misleading_handles_is_removed)
{
    struct inode *d = make(FOP_mkdir, w.root, "d"), *e = make(FOP_mkdir, d, "e");
    char text[4001];
    int err;

    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    struct inode *d2 = make_as(FOP_mkdir, w.root, "d2", &d->gfid, &err);
    ck_assert_int_eq(err, 0);
    char path[256];
    snprintf(path, sizeof path, "%s/d2/e", w.dir);
    ck_assert_int_eq(symlink(text, path), 0);
    ck_assert_int_eq(remove_entry(FOP_rmdir, w.root, "d", 1), 0);
    take_away(NULL);
    ck_assert(!has_handle_of(&e->gfid));
    inode_unref(e);
    inode_unref(d2);
    inode_unref(d);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-races");
    TCase *c = tcase_create("races");

    root_or_skip();
    tcase_add_checked_fixture(c, world_setup, world_teardown);
    tcase_set_timeout(c, 30);
    tcase_add_test(c, concurrent_creates_and_unlinks_of_one_name_leave_no_handle);
    tcase_add_test(c, calls_in_a_directory_succeed_during_renames);
    tcase_add_test(c, a_concurrent_open_and_unlink_leave_no_handle);
    tcase_add_test(c, concurrent_links_and_unlinks_of_one_file_leave_no_handle);
    tcase_add_test(c, concurrent_renames_leave_one_handle_for_each_file);
    tcase_add_test(c, a_tree_is_removed_while_other_names_are_removed);
    tcase_add_test(c, a_tree_is_removed_while_other_names_are_made);
    tcase_add_test(c, a_tree_with_misleading_handles_is_removed);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
