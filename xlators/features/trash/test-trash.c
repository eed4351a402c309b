/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which removals carry which wishes, and how the trash's folders are protected. The storage's part:
 * test-posix-trash.c. */
#include "xlators/features/test-layers.h"
#include "xlators/storage/posix/trash-wish.h"

extern const struct xlator_type features_trash_xlator;

static struct trash_wish seen;
static bool has_wish, has_gfid_req;
static char seen_dir[64], seen_eliminate[64], seen_inner[64];
static enum fop made[8];
static unsigned made_count;

/* A bottom layer that has no folder yet and records the calls. */
static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    (void)xl;
    has_gfid_req = dict_has(c->xdata, DICT_KEY_GFID_REQ);
    if (c->fop == FOP_lookup && !has_gfid_req && (!made_count || !c->loc.name))
        return -ENOENT;
    if (c->fop == FOP_lookup)
        stk->reply.stat = (struct iatt){.gfid.b = {[15] = 5}, .mode = S_IFDIR | 0755};
    if (c->fop == FOP_mkdir)
        made[made_count++ % 8] = c->fop;
    if (c->fop == FOP_unlink) {
        has_wish = c->hint.kind == HINT_TRASH;
        if (has_wish) {
            seen = *(const struct trash_wish *)c->hint.value;
            snprintf(seen_dir, sizeof seen_dir, "%s", seen.dir);
            snprintf(seen_inner, sizeof seen_inner, "%s", seen.inner_dir ? seen.inner_dir : "");
            snprintf(seen_eliminate, sizeof seen_eliminate, "%s", seen.eliminate);
        }
    }
    return XL_DONE;
}

static void
setup(void)
{
    made_count = 0;
    bench_setup(&features_trash_xlator, (const char *const[]){"trash", "on", NULL}, bottom);
}

static void
setup_options(void)
{
    made_count = 0;
    bench_setup(&features_trash_xlator,
                (const char *const[]){"trash", "on", "trash-dir", "bin", "trash-internal-op", "on",
                                      "trash-max-filesize", "1MB", "trash-eliminate-path", "a,b/c", NULL},
                bottom);
}

static int
ask(enum fop fop, uint8_t parent, const char *name, const char *name2, int pid, bool is_trusted)
{
    struct bench_call *call = bench_call(fop, NULL);
    struct inode *root = inode_root(bench_graph.inodes);
    struct iatt a = {.mode = S_IFDIR | 0755, .gfid.b = {[15] = parent}};
    struct inode *dir = parent == 1 ? inode_ref(root) : inode_link(bench_graph.inodes, root, "dir", &a);

    call->stk->caller.pid = pid;
    call->stk->caller.standing = is_trusted ? PID_COUNTS : PID_COUNTS_NOT;
    call->stk->call.loc = (struct loc){.parent = dir, .name = name};
    if (name2)
        call->stk->call.loc2 = (struct loc){.parent = inode_ref(dir), .name = name2};
    inode_unref(root);
    return bench_run(call);
}

START_TEST(removed_files_are_kept)
{
    ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, 100, true), 0);
    ck_assert(has_wish);
    ck_assert_str_eq(seen_dir, ".trashcan");
    ck_assert_str_eq(seen_inner, "");
    ck_assert_str_eq(seen_eliminate, "");
    ck_assert_uint_eq(seen.size_max, 5 << 20);
    ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, -6, true), 0);
    ck_assert(!has_wish);
    ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, -6, false), 0); /* any client can send this pid */
    ck_assert(has_wish);
}
END_TEST

START_TEST(options_name_the_folder)
{
    ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, 100, true), 0);
    ck_assert_str_eq(seen_dir, "bin");
    ck_assert_str_eq(seen_eliminate, "a,b/c");
    ck_assert_uint_eq(seen.size_max, 1 << 20);
    ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, -3, true), 0);
    ck_assert(has_wish);
    ck_assert_str_eq(seen_inner, "internal_op");
    ck_assert_int_eq(features_trash_xlator.start(bench_xl), 0);
    ck_assert_uint_eq(made_count, 2);
    ck_assert_int_eq(ask(FOP_mkdir, 1, ".trashcan", NULL, 0, true), 0);
    ck_assert_int_eq(ask(FOP_mkdir, 1, "bin", NULL, 0, true), -EPERM);
}
END_TEST

START_TEST(clients_cannot_move_the_folders)
{
    static const enum fop fops[] = {FOP_mkdir, FOP_rmdir, FOP_rename};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        const char *name2 = fops[i] == FOP_rename ? "other" : NULL;

        ck_assert_int_eq(ask(fops[i], 1, ".trashcan", name2, 0, true), -EPERM);
        ck_assert_int_eq(ask(fops[i], 5, "internal_op", name2, 0, true), -EPERM);
        ck_assert_int_eq(ask(fops[i], 1, "internal_op", name2, 0, true), 0);
        ck_assert_int_eq(ask(fops[i], 9, ".trashcan", name2, 0, true), 0);
    }
    ck_assert_int_eq(ask(FOP_rename, 1, "x", ".trashcan", 0, true), -EPERM);
    ck_assert_int_eq(ask(FOP_rename, 1, "x", "y", 0, true), 0);
}
END_TEST

static int
ask_with_gfid(enum fop fop, const char *name, uint8_t gfid)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.xdata = dict_new(&call->stk->arena);
    ck_assert_int_eq(dict_set_gfid(call->stk->call.xdata, DICT_KEY_GFID_REQ, &(struct gfid){{[15] = gfid}}),
                     0);
    call->stk->call.loc = (struct loc){.parent = inode_root(bench_graph.inodes), .name = name};
    return bench_run(call);
}

START_TEST(other_objects_cannot_get_the_gfids)
{
    static const enum fop fops[] = {FOP_mkdir, FOP_create, FOP_mknod, FOP_symlink};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        ck_assert_int_eq(ask_with_gfid(fops[i], "d", 5), -EPERM);
        ck_assert_int_eq(ask_with_gfid(fops[i], "d", 6), -EPERM);
        ck_assert_int_eq(ask_with_gfid(fops[i], "d", 7), 0);
    }
    ck_assert_int_eq(ask_with_gfid(FOP_lookup, "d", 5), 0);
    ck_assert(!has_gfid_req);
    ck_assert_int_eq(ask_with_gfid(FOP_lookup, "d", 7), 0);
    ck_assert(has_gfid_req);
    ck_assert_int_eq(ask_with_gfid(FOP_lookup, ".trashcan", 5), 0);
    ck_assert(has_gfid_req);
}
END_TEST

START_TEST(trash_dir_must_be_a_single_name)
{
    static const char *const bad[] = {"", "a/b", "/a", "..", ".", ".glusterfs"};
    struct reason why = {""};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        bench_teardown();
        bench_setup(&features_trash_xlator, NULL, bottom);
        option_conf_fini(features_trash_xlator.options, bench_xl->conf);
        memset(bench_xl->conf, 0, features_trash_xlator.conf_size);
        const struct option_value value = {"trash-dir", bad[i], 0};
        char error[128];
        ck_assert_int_eq(option_parse(features_trash_xlator.options, &value, 1, bench_xl->conf, NULL, NULL,
                                      error, sizeof error),
                         0);
        ck_assert_int_eq(features_trash_xlator.init(bench_xl, &why), -EINVAL);
        /* the option changed while the brick served */
        ck_assert_int_eq(ask(FOP_unlink, 1, "f", NULL, 100, true), 0);
        ck_assert(!has_wish);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("trash");
    TCase *t = tcase_create("trash"), *o = tcase_create("options");

    tcase_add_checked_fixture(t, setup, bench_teardown);
    tcase_add_test(t, removed_files_are_kept);
    tcase_add_test(t, clients_cannot_move_the_folders);
    tcase_add_test(t, other_objects_cannot_get_the_gfids);
    tcase_add_test(t, trash_dir_must_be_a_single_name);
    tcase_add_checked_fixture(o, setup_options, bench_teardown);
    tcase_add_test(o, options_name_the_folder);
    suite_add_tcase(s, t);
    suite_add_tcase(s, o);
    return s;
}

#include "base/test-main.h"
