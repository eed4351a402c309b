/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Names that another client changes after the layers have checked their objects and before storage acts.
 *
 * The brick is real: protocol/server, a layer with rules, a layer of this test, storage/posix. The layer of
 * the test stands right above storage, and does the other client's work when a call of the user BOB passes.
 */
#include <sys/stat.h>
#include <sys/xattr.h>

#include "base/test-root.h"
#include "xlators/protocol/server/test-bench.h"
#include "xlators/storage/posix/posix-internal.h"

extern const struct xlator_type features_access_control_xlator, features_worm_xlator;

enum { ALICE = 1000, BOB = 2000 };

static char dir[64];

/* ---- the layer between the rules and storage ------------------------------------------------- */

static void (*between)(void); /* the changes of other clients; NULL: none */
static int times;             /* number of times; -1: each time */
static atomic_int met;        /* number of BOB's calls on names that passed */

static xl_verdict
hook_any(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->caller.uid != BOB || !between || !(fop_info[stk->call.fop].traits & FOP_BY_NAME) ||
        stk->call.fop == FOP_lookup)
        return XL_PASS;
    atomic_fetch_add(&met, 1);
    if (times == 0)
        return XL_PASS;
    times -= times > 0;
    between();
    return XL_PASS;
}

static const struct xlator_type hook_type = {
    .name = "test/hook",
    .ops = &(const struct xlator_ops){.any = hook_any},
};

static int result;

static void
own_done(struct call_stack *stk)
{
    result = stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;
    call_stack_free(stk);
}

static struct call_stack *
own_call(enum fop fop, uint32_t uid)
{
    struct call_stack *stk = call_stack_new(own_done, NULL);

    ck_assert_ptr_nonnull(stk);
    stk->caller.uid = stk->caller.gid = uid;
    stk->call.fop = fop;
    stk->call.xdata = dict_new(&stk->arena);
    return stk;
}

/* Storage answers at once. */
static void
own_run(struct call_stack *stk)
{
    call_stack_wind_below(stk, &layers[2]);
    ck_assert_msg(result == 0, "%s", strerror(-result));
}

static struct gfid
gfid_on_disk(const char *name)
{
    char path[128];
    struct gfid g = gfid_null;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_int_eq(lgetxattr(path, "trusted.gfid", g.b, 16), 16);
    return g;
}

/* Finds the object as a client that asks the disk. */
static struct loc
loc_of(const char *name)
{
    char path[128];
    struct stat st;
    struct loc loc = {.parent = inode_root(graph.inodes), .name = name};

    snprintf(path, sizeof path, "%s/%s", dir, name);
    if (lstat(path, &st) == 0) {
        const struct iatt a = {.gfid = gfid_on_disk(name), .mode = st.st_mode};

        loc.inode = inode_link(graph.inodes, NULL, NULL, &a);
    }
    return loc;
}

static void
make(enum fop fop, uint32_t uid, const char *name)
{
    struct call_stack *stk = own_call(fop, uid);
    struct gfid g;

    gfid_random(&g);
    ck_assert_int_eq(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &g), 0);
    stk->call.loc = loc_of(name);
    stk->call.flags = O_RDWR | O_EXCL;
    stk->call.mode = fop == FOP_mkdir ? 0700 : S_IFREG | 0600;
    own_run(stk);
}

static void
move(const char *name, const char *to)
{
    struct call_stack *stk = own_call(FOP_rename, 0);

    stk->call.loc = loc_of(name);
    stk->call.loc2 = loc_of(to);
    own_run(stk);
}

static void
write_text(const char *name, const char *text)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    int fd = open(path, O_WRONLY);
    ck_assert_int_eq(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

static struct stat
stat_on_disk(const char *name)
{
    char path[128];
    struct stat st;

    snprintf(path, sizeof path, "%s/%s", dir, name);
    ck_assert_msg(lstat(path, &st) == 0, "%s: %s", name, strerror(errno));
    return st;
}

static bool
is_there(const char *name)
{
    char path[128];

    snprintf(path, sizeof path, "%s/%s", dir, name);
    return access(path, F_OK) == 0;
}

/* ---- BOB ------------------------------------------------------------------------------------- */

static struct peer *bob;

static void
setup_rules(const struct xlator_type *rules, const char *key)
{
    strcpy(dir, "/dev/shm/kiln-names-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    umask(0);
    middle = rules;
    middle_options[0] = (struct option_value){key, "on", 0};
    middle_option_count = key ? 1 : 0;
    hook = &hook_type;
    bottom = &storage_posix_xlator;
    bottom_options[0] = (struct option_value){"directory", dir, 0};
    bottom_option_count = 1;
    setup();
    ck_assert_int_eq(chmod(dir, 01777), 0);
    bob = logged_in("bob");
    bob->caller.uid = bob->caller.gid = BOB;
    bob->caller.pid = 77;
    atomic_store(&met, 0);
    times = 1;
}

static void
setup_access(void)
{
    setup_rules(&features_access_control_xlator, NULL);
}

static void
setup_worm(void)
{
    setup_rules(&features_worm_xlator, "worm");
}

static void
teardown_names(void)
{
    char command[128];

    between = NULL;
    peer_free(bob);
    teardown();
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static int
bob_creates(const char *name, uint32_t flags, struct fop_reply *reply)
{
    struct arena arena = {0};
    struct dict *xdata = dict_new(&arena);
    struct gfid g;

    gfid_random(&g);
    ck_assert_int_eq(dict_set_gfid(xdata, DICT_KEY_GFID_REQ, &g), 0);
    int err =
        fop(bob, FOP_create,
            CALL(.pargfid = gfid_root, .name = name, .flags = flags, .mode = 0644, .xdata = xdata), reply);
    arena_release(&arena);
    return err;
}

static int
bob_removes(enum fop what, const char *name)
{
    return fop(bob, what, CALL(.pargfid = gfid_root, .name = name), NULL);
}

static int
bob_renames(const char *name, const char *to)
{
    return fop(bob, FOP_rename, CALL(.pargfid = gfid_root, .name = name, .pargfid2 = gfid_root, .name2 = to),
               NULL);
}

static int
bob_looks_up(const char *name)
{
    return fop(bob, FOP_lookup, CALL(.pargfid = gfid_root, .name = name), NULL);
}

/* ---- CREATE ---------------------------------------------------------------------------------- */

static void
alice_makes_f(void)
{
    make(FOP_create, ALICE, "f");
    write_text("f", "secret");
}

static void
bob_makes_f(void)
{
    make(FOP_create, BOB, "f");
    write_text("f", "12345678");
}

START_TEST(create_asks_for_the_file_that_it_opens)
{
    between = alice_makes_f;
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT | O_TRUNC, NULL), EACCES);
    ck_assert_int_eq(bob_creates("f", O_RDONLY | O_CREAT, NULL), EACCES);
    ck_assert_int_eq(stat_on_disk("f").st_size, 6);
    ck_assert_uint_eq(stat_on_disk("f").st_uid, ALICE);
}
END_TEST

START_TEST(create_opens_a_file_of_ones_own_made_meanwhile)
{
    struct fop_reply reply;

    between = bob_makes_f;
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT, &reply), 0);
    struct gfid g = gfid_on_disk("f");
    ck_assert(gfid_equal(&reply.stat.gfid, &g));
    ck_assert_uint_eq(reply.stat.size, 8);
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT | O_TRUNC, &reply), 0);
    ck_assert_uint_eq(reply.stat.size, 0);
    ck_assert_int_eq(atomic_load(&met), 3); /* one of them passed twice */
}
END_TEST

START_TEST(exclusive_create_fails_at_once)
{
    between = bob_makes_f;
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT | O_EXCL, NULL), EEXIST);
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT | O_EXCL, NULL), EEXIST);
    ck_assert_int_eq(atomic_load(&met), 2);
}
END_TEST

static void
f_is_moved(void)
{
    move("f", "moved");
}

static void
f_is_replaced_by_alices(void)
{
    move("f", "moved");
    make(FOP_create, ALICE, "f");
}

START_TEST(create_makes_a_file_when_the_known_one_has_gone)
{
    struct fop_reply reply;

    bob_makes_f();
    ck_assert_int_eq(bob_looks_up("f"), 0);
    between = f_is_moved;
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT, &reply), 0);
    struct gfid g = gfid_on_disk("f");
    ck_assert(gfid_equal(&reply.stat.gfid, &g));
    ck_assert_int_eq(stat_on_disk("f").st_size, 0);
    ck_assert_int_eq(stat_on_disk("moved").st_size, 8);
}
END_TEST

START_TEST(create_asks_for_the_file_that_has_replaced_the_known_one)
{
    bob_makes_f();
    ck_assert_int_eq(bob_looks_up("f"), 0);
    between = f_is_replaced_by_alices;
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT, NULL), EACCES);
}
END_TEST

/* ---- the sticky bit -------------------------------------------------------------------------- */

static void
d_is_replaced_by_alices(void)
{
    move("d", "moved");
    make(FOP_mkdir, ALICE, "d");
}

START_TEST(unlink_removes_no_other_file)
{
    bob_makes_f();
    ck_assert_int_eq(bob_looks_up("f"), 0);
    between = f_is_replaced_by_alices;
    ck_assert_int_eq(bob_removes(FOP_unlink, "f"), EACCES);
    ck_assert_uint_eq(stat_on_disk("f").st_uid, ALICE);
    ck_assert_uint_eq(stat_on_disk("moved").st_uid, BOB);
    ck_assert_int_eq(bob_removes(FOP_unlink, "moved"), 0);
}
END_TEST

START_TEST(rmdir_removes_no_other_folder)
{
    make(FOP_mkdir, BOB, "d");
    ck_assert_int_eq(bob_looks_up("d"), 0);
    between = d_is_replaced_by_alices;
    ck_assert_int_eq(bob_removes(FOP_rmdir, "d"), EACCES);
    ck_assert_uint_eq(stat_on_disk("d").st_uid, ALICE);
    ck_assert_int_eq(bob_removes(FOP_rmdir, "moved"), 0);
}
END_TEST

START_TEST(rename_moves_no_other_file)
{
    bob_makes_f();
    ck_assert_int_eq(bob_looks_up("f"), 0);
    between = f_is_replaced_by_alices;
    ck_assert_int_eq(bob_renames("f", "mine"), EACCES);
    ck_assert_uint_eq(stat_on_disk("f").st_uid, ALICE);
    ck_assert(!is_there("mine"));
}
END_TEST

static void
alice_takes_mine(void)
{
    make(FOP_create, ALICE, "mine");
}

static void
mine_is_replaced_by_alices(void)
{
    move("mine", "moved");
    alice_takes_mine();
}

START_TEST(rename_replaces_no_other_file)
{
    bob_makes_f();
    between = alice_takes_mine;
    ck_assert_int_eq(bob_renames("f", "mine"), EACCES);
    ck_assert_uint_eq(stat_on_disk("mine").st_uid, ALICE);
    ck_assert_uint_eq(stat_on_disk("f").st_uid, BOB);
    move("mine", "gone");
    between = NULL;
    make(FOP_create, BOB, "mine");
    ck_assert_int_eq(bob_looks_up("mine"), 0);
    between = mine_is_replaced_by_alices;
    times = 1;
    ck_assert_int_eq(bob_renames("f", "mine"), EACCES);
    ck_assert_uint_eq(stat_on_disk("mine").st_uid, ALICE);
}
END_TEST

START_TEST(rename_replaces_ones_own_file_made_meanwhile)
{
    make(FOP_create, BOB, "mine");
    struct gfid g = gfid_on_disk("mine");

    between = bob_makes_f;
    ck_assert_int_eq(bob_renames("mine", "f"), 0);
    struct gfid now = gfid_on_disk("f");
    ck_assert(gfid_equal(&g, &now));
    ck_assert(!is_there("mine"));
}
END_TEST

/* ---- bounds ---------------------------------------------------------------------------------- */

static void
two_are_swapped(void)
{
    move("f", "third");
    move("second", "f");
    move("third", "second");
}

START_TEST(a_name_that_changes_each_time_ends_the_call)
{
    bob_makes_f();
    make(FOP_create, BOB, "second");
    ck_assert_int_eq(bob_looks_up("f"), 0);
    between = two_are_swapped;
    times = -1;
    ck_assert_int_eq(bob_removes(FOP_unlink, "f"), ESTALE);
    ck_assert_int_eq(bob_looks_up("f"), 0);
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT, NULL), ESTALE);
    ck_assert(is_there("f"));
    ck_assert(is_there("second"));
    times = 5;
    ck_assert_int_eq(bob_removes(FOP_unlink, "f"), 0);
}
END_TEST

/* ---- write once ------------------------------------------------------------------------------ */

START_TEST(worm_volume_keeps_a_file_made_meanwhile)
{
    between = bob_makes_f;
    ck_assert_int_eq(bob_creates("f", O_WRONLY | O_CREAT | O_TRUNC, NULL), EROFS);
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT, NULL), EROFS);
    ck_assert_int_eq(bob_creates("f", O_RDWR | O_CREAT | O_EXCL, NULL), EEXIST);
    ck_assert_int_eq(stat_on_disk("f").st_size, 8);
    ck_assert_int_eq(bob_creates("f", O_RDONLY | O_CREAT, NULL), 0);
    ck_assert_int_eq(bob_creates("new", O_RDWR | O_CREAT, NULL), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("names");
    TCase *t = tcase_create("access-control"), *worm = tcase_create("worm");

    root_or_skip();
    tcase_add_checked_fixture(t, setup_access, teardown_names);
    tcase_add_test(t, create_asks_for_the_file_that_it_opens);
    tcase_add_test(t, create_opens_a_file_of_ones_own_made_meanwhile);
    tcase_add_test(t, exclusive_create_fails_at_once);
    tcase_add_test(t, create_makes_a_file_when_the_known_one_has_gone);
    tcase_add_test(t, create_asks_for_the_file_that_has_replaced_the_known_one);
    tcase_add_test(t, unlink_removes_no_other_file);
    tcase_add_test(t, rmdir_removes_no_other_folder);
    tcase_add_test(t, rename_moves_no_other_file);
    tcase_add_test(t, rename_replaces_no_other_file);
    tcase_add_test(t, rename_replaces_ones_own_file_made_meanwhile);
    tcase_add_test(t, a_name_that_changes_each_time_ends_the_call);
    suite_add_tcase(s, t);
    tcase_add_checked_fixture(worm, setup_worm, teardown_names);
    tcase_add_test(worm, worm_volume_keeps_a_file_made_meanwhile);
    suite_add_tcase(s, worm);
    return s;
}

#include "base/test-main.h"
