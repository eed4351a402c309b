/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The heal of a folder's names: of many names at once, on a child that was away while they came and went.
 * And the attributes in listings by a child that has missed a change. */
#include <check.h>

#include "xlators/cluster/disperse/test-disperse-file.h"

enum { FILES = 12 };

static char name[16];

static void
fill_new(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xdd, [14] = (unsigned char)name[0], [15] = (unsigned char)name[1]}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name};
    stk->call.mode = 0755;
    stk->call.flags = O_RDWR | O_CREAT;
    stk->call.name2 = "target";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
make(enum fop fop, const char *text)
{
    snprintf(name, sizeof name, "%s", text);
    must(scene_call(fop, fill_new, 0) >= 0);
}

static void
fill_old(struct call_stack *stk)
{
    char path[sizeof name + 1];

    snprintf(path, sizeof path, "/%s", name);
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name};
    stk->call.loc.inode = scene_inode(1, path);
}

static void
remove_name(enum fop fop, const char *text)
{
    snprintf(name, sizeof name, "%s", text);
    must(scene_call(fop, fill_old, 0) >= 0);
}

static void
fill_second_name(struct call_stack *stk)
{
    stk->call.loc.inode = scene_inode(1, "/a0");
    stk->call.loc2 = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name};
}

static void
heal_root(void)
{
    struct inode *root = inode_root(scene.graph->inodes);

    must(coro_run(heal_go, root) == 0);
    scene_run(3000);
    inode_unref(root);
}

static void
check_same(const char *path)
{
    const struct stored_object *good = store_find(&scene.store[1], path);

    for (unsigned i = 0; i < CHILDREN; i++) {
        const struct stored_object *o = store_find(&scene.store[i], path);

        ck_assert_msg(!o == !good, "c%u: %s", i, path);
        ck_assert_msg(!o || gfid_equal(&o->stat.gfid, &good->stat.gfid), "c%u: gfid of %s", i, path);
        ck_assert_msg(!o || o->stat.nlink == good->stat.nlink || S_ISDIR(o->stat.mode), "c%u: %u links of %s",
                      i, o ? o->stat.nlink : 0, path);
    }
}

START_TEST(names_of_a_child_that_was_away_are_healed_together)
{
    static const char *const links[] = {"l0", "l1", "l2"};
    char text[16], path[17];

    scene_clear(CHILDREN, false);
    set_begin(false);
    make(FOP_mkdir, "d0");
    make(FOP_create, "z0");
    make(FOP_create, "z1");
    scene_run(5000);
    scene_child_down(0);
    scene_run(0);
    for (unsigned n = 0; n < FILES; n++) {
        snprintf(text, sizeof text, "%c0", 'a' + n % FILES);
        make(n == 3 ? FOP_symlink : n == 4 ? FOP_mkdir : FOP_create, strcmp(text, "d0") == 0 ? "m0" : text);
    }
    for (unsigned n = 0; n < 3; n++) {
        snprintf(name, sizeof name, "%s", links[n]);
        if (n)
            must(scene_call(FOP_link, fill_second_name, 0) >= 0);
    }
    remove_name(FOP_rmdir, "d0");
    remove_name(FOP_unlink, "z0");
    scene_run(5000);
    scene_child_up(0);
    scene_run(0);
    heal_root();
    ck_assert_ptr_null(store_find(&scene.store[0], "/z0"));
    ck_assert_ptr_null(store_find(&scene.store[0], "/d0"));
    for (char c = 'a'; c <= 'z'; c++) {
        for (char d = '0'; d <= '2'; d++) {
            snprintf(path, sizeof path, "/%c%c", c, d);
            check_same(path);
        }
    }
    ck_assert_ptr_nonnull(store_find(&scene.store[0], "/l2"));
    scene_end();
}
END_TEST

static const struct gfid no_gfid;

/* A brick dies while it makes an object, and leaves it without a gfid. The object goes, also if the others
 * have removed or renamed theirs meanwhile. */
START_TEST(an_object_that_a_dead_brick_has_half_made_is_healed)
{
    static const enum fop ways[][2] = {{FOP_create, FOP_unlink}, {FOP_mkdir, FOP_rmdir}};

    scene_clear(CHILDREN, false);
    set_begin(false);
    make(ways[_i][0], "z1");
    make(ways[_i][0], "z2");
    make(FOP_create, "y1");
    scene_run(5000);
    store_find(&scene.store[0], "/z1")->stat.gfid = no_gfid;
    store_find(&scene.store[0], "/z2")->stat.gfid = no_gfid;
    scene_child_down(0);
    scene_run(0);
    remove_name(ways[_i][1], "z1");
    remove_name(FOP_unlink, "y1");
    scene_run(5000);
    scene_child_up(0);
    scene_run(0);
    heal_root();
    ck_assert_ptr_null(store_find(&scene.store[0], "/z1"));
    check_same("/z2");
    check_same("/y1");
    ck_assert_ptr_nonnull(store_find(&scene.store[0], "/z2"));
    scene_end();
}
END_TEST

/* ---- listings -------------------------------------------------------------------------------- */

static void
fill_root(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

static void
fill_list(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.size = 4096;
}

/* Lists the root, which has one file. */
static void
list_root(void)
{
    must(scene_call(FOP_opendir, fill_root, 0) == 0);
    memset(&scene.listed, 0, sizeof scene.listed);
    ck_assert_int_eq(scene_call(FOP_readdirp, fill_list, 0), 1);
    ck_assert(S_ISREG(scene.listed.mode));
}

/* A child is away while the file grows. The folder is whole on that child, which lists the old size if
 * asked. */
START_TEST(a_listing_has_no_size_that_its_child_has_missed)
{
    struct contents after;
    unsigned without = 0;

    for (unsigned away = 0; away < CHILDREN; away++) {
        file_make(false);
        scene_run(5000);
        list_root();
        ck_assert_uint_eq(scene.listed.size, FILE_BYTES);
        ck_assert(!gfid_is_null(&scene.listed.gfid));
        must(scene_call(FOP_open, fill_file, 0) == 0);
        scene_child_down(away);
        scene_run(0);
        after = before;
        ck_assert_int_eq(change_bytes(&after, FILE_BYTES, 500, 'b'), 500);
        scene_run(5000);
        scene_child_up(away);
        scene_run(0);
        list_root();
        ck_assert_msg(gfid_is_null(&scene.listed.gfid) || scene.listed.size == after.len, "%d bytes",
                      (int)scene.listed.size);
        without += gfid_is_null(&scene.listed.gfid);
        heal_file();
        scene_run(1000);
        list_root();
        ck_assert_msg(scene.listed.size == after.len, "%d bytes after the heal", (int)scene.listed.size);
        scene_end();
    }
    ck_assert_uint_gt(without, 0);
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_test(t, names_of_a_child_that_was_away_are_healed_together);
    tcase_add_loop_test(t, an_object_that_a_dead_brick_has_half_made_is_healed, 0, 2);
    tcase_add_test(t, a_listing_has_no_size_that_its_child_has_missed);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-names", add_tests);
}

#include "base/test-main.h"
