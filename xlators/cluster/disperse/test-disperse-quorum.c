/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quorum-count and ec-read-mask: their values, at a mount and when they change, the changes that a quorum
 * refuses or fails, and the children that READs ask. */
#include <check.h>
#include <errno.h>

#include "xlators/cluster/disperse/child-options.h"
#include "xlators/cluster/disperse/test-disperse-file.h"

static struct disperse *
set_now(void)
{
    return scene.graph->top->children[0]->private;
}

static void
reconfigure(const char *options)
{
    char text[256];

    snprintf(text, sizeof text, " option redundancy 1\n option background-heals 0\n%s", options);
    ck_assert_int_eq(scene_reconfigure(text), 0);
}

/* ---- values ---------------------------------------------------------------------------------- */

START_TEST(bad_values_are_refused_at_the_mount)
{
    static const struct {
        const char *option, *error; /* NULL: accepted */
    } cases[] = {
        {"quorum-count 0", NULL},
        {"quorum-count 2", NULL},
        {"quorum-count 3", NULL},
        {"quorum-count 1", "option quorum-count 1: 0, or 2 to 3 are possible"},
        {"quorum-count 4", "option quorum-count 4: 0, or 2 to 3 are possible"},
        {"quorum-count -1", "quorum-count"},
        {"quorum-count many", "quorum-count"},
        {"ec-read-mask 0:1", NULL},
        {"ec-read-mask 2:0", NULL},
        {"ec-read-mask 0:1:2", NULL},
        {"ec-read-mask :00::2:2:", NULL},
        {"ec-read-mask 0", "option ec-read-mask 0: 1 bricks are too few: a read needs 2"},
        {"ec-read-mask 1:1", "1 bricks are too few"},
        {"ec-read-mask :", "0 bricks are too few"},
        {"ec-read-mask 0:3", "3 is not the index of a brick: 0 to 2 are possible"},
        {"ec-read-mask 0:1:-1", "-1 is not the index of a brick"},
        {"ec-read-mask 0:1:4294967296", "4294967296 is not the index of a brick"},
        {"ec-read-mask 0:1:99999999999999999999", "'99999999999999999999' is not a number"},
        {"ec-read-mask none", "'none' is not a number"},
        {"ec-read-mask 0,1", "'0,1' is not a number"},
        {"ec-read-mask 0:1:2x", "'2x' is not a number"},
        {"ec-read-mask 0:1:0x2", "'0x2' is not a number"},
    };

    scene_clear(CHILDREN, false);
    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        char options[128];

        snprintf(options, sizeof options, " option redundancy 1\n option %s\n", cases[n].option);
        const char *refusal = scene_refusal(&cluster_disperse_xlator, options, false);

        ck_assert_msg(!refusal == !cases[n].error, "%s: %s", cases[n].option, refusal);
        ck_assert_msg(!refusal || strstr(refusal, cases[n].error), "%s: %s", cases[n].option, refusal);
    }
}
END_TEST

START_TEST(all_bricks_of_the_largest_set_can_be_in_a_mask)
{
    struct reason why = {0};
    child_set mask = 0;

    ck_assert_int_eq(disperse_mask_parse("0:1:2:3:4:5:6:7:8:9:10:11:12:13:14:15:16:17:18:19:20:21:22:23:24:"
                                         "25:26:27:28:29:30",
                                         FAN_CHILDREN_MAX, 16, &mask, &why),
                     0);
    ck_assert_uint_eq(mask, CHILDREN(FAN_CHILDREN_MAX));
    ck_assert_int_eq(
        disperse_mask_parse("0:1:2:3:4:5:6:7:8:9:10:11:12:13:14", FAN_CHILDREN_MAX, 16, &mask, &why),
        -EINVAL);
    ck_assert_uint_eq(mask, CHILDREN(FAN_CHILDREN_MAX));
}
END_TEST

START_TEST(a_bad_value_of_a_running_mount_keeps_the_old_one)
{
    file_make(false);
    reconfigure(" option quorum-count 3\n option ec-read-mask 0:2\n");
    ck_assert_uint_eq(set_now()->quorum, 3);
    ck_assert_uint_eq(set_now()->read_mask, CHILD(0) | CHILD(2));
    reconfigure(" option quorum-count 1\n option ec-read-mask 1:2\n");
    ck_assert_uint_eq(set_now()->quorum, 3);
    ck_assert_uint_eq(set_now()->read_mask, CHILD(1) | CHILD(2));
    reconfigure(" option quorum-count 2\n option ec-read-mask 0:3\n");
    ck_assert_uint_eq(set_now()->quorum, 2);
    ck_assert_uint_eq(set_now()->read_mask, CHILD(1) | CHILD(2));
    reconfigure("");
    ck_assert_uint_eq(set_now()->quorum, 0);
    ck_assert_uint_eq(set_now()->read_mask, CHILDREN(CHILDREN));
    scene_end();
}
END_TEST

/* ---- calls ----------------------------------------------------------------------------------- */

static void
fill_new_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xdd, [15] = 1}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "new"};
    stk->call.mode = 0755;
    stk->call.flags = O_RDWR | O_CREAT;
    stk->call.name2 = "target";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_file_name(struct call_stack *stk)
{
    stk->call.loc =
        (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f", .inode = file_inode()};
}

static void
fill_folder_name(struct call_stack *stk)
{
    stk->call.loc =
        (struct loc){.parent = inode_root(scene.graph->inodes), .name = "d", .inode = scene_inode(1, "/d")};
}

static void
fill_link(struct call_stack *stk)
{
    stk->call.loc.inode = file_inode();
    stk->call.loc2 = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "new"};
}

static void
fill_rename(struct call_stack *stk)
{
    fill_file_name(stk);
    stk->call.loc2 = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "new"};
}

static void
fill_all(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.size = FILE_BYTES;
}

static void
fill_cut(struct call_stack *stk)
{
    fill_file(stk);
    stk->call.flags = O_RDWR | O_TRUNC;
}

static void
fill_xattr(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.key", DICT_PTR, "value", 5) == 0);
}

static void
fill_xattr_name(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.name = "user.old";
}

/* As cluster/distribute and features/shard add to numbers of theirs. */
static void
fill_number(struct call_stack *stk)
{
    static const unsigned char one[8] = {[7] = 1};

    fill_fd(stk);
    stk->call.dict = dict_new(&stk->arena);
    stk->call.flags = 1;
    must(dict_set_text(stk->call.dict, "trusted.number", DICT_PTR, one, sizeof one) == 0);
}

static void
fill_root(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

static const struct call {
    const char *name;
    enum fop fop;
    void (*fill)(struct call_stack *stk);
    enum fop at_brick; /* the fop that the bricks get, if it is another one */
} changing[] = {
    {"write", FOP_writev, fill_payload, 0},
    {"truncate", FOP_ftruncate, fill_size, 0},
    {"open with O_TRUNC", FOP_open, fill_cut, FOP_ftruncate},
    {"fallocate", FOP_fallocate, fill_range, 0},
    {"discard", FOP_discard, fill_all, 0},
    {"zerofill", FOP_zerofill, fill_range, FOP_writev},
    {"setattr", FOP_fsetattr, fill_mode, 0},
    {"setxattr", FOP_fsetxattr, fill_xattr, 0},
    {"removexattr", FOP_fremovexattr, fill_xattr_name, 0},
    {"xattrop", FOP_fxattrop, fill_number, 0},
    {"create", FOP_create, fill_new_name, 0},
    {"mknod", FOP_mknod, fill_new_name, 0},
    {"mkdir", FOP_mkdir, fill_new_name, 0},
    {"symlink", FOP_symlink, fill_new_name, 0},
    {"link", FOP_link, fill_link, 0},
    {"rename", FOP_rename, fill_rename, 0},
    {"unlink", FOP_unlink, fill_file_name, 0},
    {"rmdir", FOP_rmdir, fill_folder_name, 0},
};

static const struct call looking[] = {
    {"read", FOP_readv, fill_read, 0},        {"stat", FOP_stat, fill_file, 0},
    {"lookup", FOP_lookup, fill_file_name, 0}, {"open", FOP_open, fill_file, 0},
    {"flush", FOP_flush, fill_fd, 0},         {"fsync", FOP_fsync, fill_fd, 0},
    {"getxattr", FOP_getxattr, fill_file, 0}, {"statfs", FOP_statfs, fill_root, 0},
    {"opendir", FOP_opendir, fill_root, 0},
};

enum { CHANGING = sizeof changing / sizeof changing[0], LOOKING = sizeof looking / sizeof looking[0] };

static int
call_make(const struct call *c)
{
    at = 700; /* a part of a stripe for each change of data */
    bytes = 600;
    fill_byte = 'q';
    return scene_call(c->fop, c->fill, 0);
}

static void
fill_old_folder(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xdd, [15] = 2}};

    fill_new_name(stk);
    stk->call.loc.name = "d";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_old_xattr(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.old", DICT_PTR, "value", 5) == 0);
}

/* A file, with an xattr, and a folder; no hold is left. */
static void
objects_make(void)
{
    file_make(false);
    must(scene_call(FOP_mkdir, fill_old_folder, 0) == 0);
    must(scene_call(FOP_fsetxattr, fill_old_xattr, 0) == 0);
    scene_run(5000);
}

static bool
store_is(unsigned child, const struct store *was)
{
    const struct store *s = &scene.store[child];

    return memcmp(s->object, was->object, sizeof s->object) == 0 &&
           memcmp(s->name, was->name, sizeof s->name) == 0;
}

/* ---- a quorum -------------------------------------------------------------------------------- */

/* The brick that is down misses nothing, and no heal is necessary when the brick is back. */
START_TEST(a_change_without_a_quorum_is_refused_without_a_trace)
{
    static struct store was[CHILDREN];

    for (unsigned down = 0; down < CHILDREN; down++) {
        objects_make();
        reconfigure(" option quorum-count 3\n");
        scene_child_down(down);
        scene_run(0);
        memcpy(was, scene.store, sizeof was);
        for (unsigned n = 0; n < CHANGING; n++) {
            int ret = call_make(&changing[n]);

            ck_assert_msg(ret == -EIO, "%s without c%u: %d", changing[n].name, down, ret);
        }
        scene_run(5000);
        for (unsigned i = 0; i < CHILDREN; i++)
            ck_assert_msg(store_is(i, &was[i]), "c%u has changed without c%u", i, down);
        ck_assert_uint_eq(store_locks(), 0);
        scene_child_up(down);
        scene_run(0);
        int ret = call_make(&changing[_i]);
        ck_assert_msg(ret >= 0, "%s with all children: %d", changing[_i].name, ret);
        scene_run(5000);
        scene_end();
    }
}
END_TEST

START_TEST(reads_and_a_flush_need_no_quorum)
{
    for (unsigned down = 0; down < CHILDREN; down++) {
        objects_make();
        reconfigure(" option quorum-count 3\n");
        scene_child_down(down);
        scene_run(0);
        for (unsigned n = 0; n < LOOKING; n++) {
            int ret = call_make(&looking[n]);

            ck_assert_msg(ret >= 0, "%s without c%u: %d", looking[n].name, down, ret);
        }
        scene_run(5000);
        scene_end();
    }
}
END_TEST

START_TEST(a_smaller_quorum_allows_changes_at_once)
{
    static const char *const options[] = {"", " option quorum-count 2\n"};

    objects_make();
    reconfigure(" option quorum-count 3\n");
    scene_child_down(2);
    scene_run(0);
    ck_assert_int_eq(call_make(&changing[_i]), -EIO);
    for (unsigned n = 0; n < 2; n++) {
        struct contents after = before;

        reconfigure(options[n]);
        ck_assert_int_ge(change_part(&after), 0);
        reconfigure(" option quorum-count 3\n");
        ck_assert_int_eq(change_part(&after), -EIO);
    }
    reconfigure("");
    int ret = call_make(&changing[_i]);
    ck_assert_msg(ret >= 0, "%s: %d", changing[_i].name, ret);
    scene_run(5000);
    scene_end();
}
END_TEST

static void
heal_inode(struct inode *inode)
{
    must(coro_run(heal_go, inode) == 0);
    scene_run(3000);
    inode_unref(inode);
}

/* A child that is up but behind does not count. The mount with the quorum heals it. */
START_TEST(a_stale_child_does_not_count)
{
    struct contents after;

    file_make(false);
    after = before;
    scene_child_down(0);
    scene_run(0);
    ck_assert_int_ge(change_stripe(&after), 0);
    scene_run(5000);
    scene_child_up(0);
    scene_run(0);
    reconfigure(" option quorum-count 3\n");
    struct contents refused = after;
    ck_assert_int_eq(change_part(&refused), -EIO);
    ck_assert_int_eq(change_mode(&refused), -EIO);
    ck_assert_int_ge(scene_call(FOP_readv, fill_read, 0), 0);
    ck_assert(reads(&after));
    scene_run(5000);
    heal_file();
    ck_assert_int_ge(change_part(&after), 0);
    scene_run(5000);
    for (unsigned down = 0; down < CHILDREN; down++) {
        scene_child_down(down);
        ck_assert_int_ge(scene_call(FOP_readv, fill_read, 0), 0);
        ck_assert_msg(reads(&after), "without c%u", down);
        scene_child_up(down);
        scene_run(0);
    }
    scene_run(5000);
    scene_end();
}
END_TEST

static enum fop refused_fop;
static unsigned refused_child, number_of_call, calls_seen;

static bool
is_marked(unsigned child, const char *path)
{
    static const unsigned char zeros[16];
    struct stored_object *o = store_find(&scene.store[child], path);
    const struct stored_xattr *x = o ? store_xattr(o, "trusted.ec.dirty") : NULL;

    return x && memcmp(x->bytes, zeros, x->len) != 0;
}

static void
find_call(unsigned child, struct call_stack *stk, int *ret)
{
    (void)ret;
    if (child != refused_child)
        return;
    if (stk->call.fop == refused_fop)
        number_of_call = calls_seen;
    calls_seen++;
}

/* Makes the call once, and finds the number of the call to the child that makes the change there. */
static void
find_number_of_call(const struct call *c)
{
    objects_make();
    refused_fop = c->at_brick ? c->at_brick : c->fop;
    calls_seen = 0;
    number_of_call = UINT32_MAX;
    scene.lie = find_call;
    ck_assert_int_ge(call_make(c), 0);
    scene.lie = NULL;
    ck_assert_uint_ne(number_of_call, UINT32_MAX);
    scene_run(5000);
    scene_end();
}

/* An absent mark is one of zeros. */
static void
remove_mark(struct stored_object *o)
{
    struct stored_xattr *x = store_xattr(o, "trusted.ec.dirty");

    if (x)
        *x = o->xattr[--o->xattr_count];
}

/* Returns the first difference of two disks besides the bytes of fragments, and marks. */
static const char *
difference(unsigned a, unsigned b)
{
    static struct store copy[2];

    copy[0] = scene.store[a];
    copy[1] = scene.store[b];
    for (unsigned n = 0; n < 2 * STORED_OBJECTS_MAX; n++) {
        struct stored_object *o = &copy[n % 2].object[n / 2];

        memset(o->data, 0, STORED_DATA_MAX);
        remove_mark(o);
    }
    return store_difference(&copy[0], &copy[1]);
}

/* Each two children give the same bytes of the file. */
static void
check_same_bytes(const char *name)
{
    struct contents first = {.len = 0};

    for (unsigned down = 0; down < CHILDREN; down++) {
        scene_child_down(down);
        ck_assert_msg(scene_call(FOP_readv, fill_read, 0) >= 0, "%s, c%u down: %s", name, down,
                      strerror(-scene.ret));
        ck_assert_msg(!down || reads(&first), "%s: other bytes without c%u than without c0", name, down);
        first.len = scene.text_len;
        memcpy(first.bytes, scene.text, scene.text_len);
        scene_child_up(down);
        scene_run(5000);
    }
}

/* The call is made by K children, and refused by one. The caller gets EIO, the others keep the change, and
 * the heal by the mount with the quorum completes it. */
START_TEST(a_change_that_misses_the_quorum_is_completed_by_the_heal)
{
    static struct store was;
    const struct call *c = &changing[_i];

    for (refused_child = 0; refused_child < CHILDREN; refused_child++) {
        unsigned other = (refused_child + 1) % CHILDREN;

        find_number_of_call(c);
        struct fault f = {.child = refused_child, .at = number_of_call, .kind = FAULT_REFUSED, .err = ENOSPC};
        objects_make();
        reconfigure(" option quorum-count 3\n");
        was = scene.store[other];
        scene_arm(&f, 1);
        int ret = call_make(c);
        ck_assert_msg(ret == -EIO, "%s refused by c%u: %d", c->name, refused_child, ret);
        scene_arm(NULL, 0);
        ck_assert_msg(!store_is(other, &was), "%s was made nowhere", c->name);
        ck_assert_msg(is_marked(other, "/") || is_marked(other, "/f"), "%s left no mark", c->name);
        scene_run(5000);
        heal_inode(inode_root(scene.graph->inodes));
        if (store_find(&scene.store[other], "/new"))
            heal_inode(scene_inode(other, "/new"));
        bool has_file = store_find(&scene.store[other], "/f");
        if (has_file)
            heal_file();
        const char *text = difference(refused_child, other);
        ck_assert_msg(!text, "%s, c%u: %s", c->name, refused_child, text);
        for (unsigned i = 0; i < CHILDREN; i++)
            ck_assert_msg(!is_marked(i, "/") && !is_marked(i, "/f") && !is_marked(i, "/new"),
                          "%s, c%u has a mark", c->name, i);
        if (has_file)
            check_same_bytes(c->name);
        scene_end();
    }
}
END_TEST

/* ---- the mask of reads ----------------------------------------------------------------------- */

static unsigned reads_of[CHILDREN];

static void
count_reads(unsigned child, struct call_stack *stk, int *ret)
{
    (void)ret;
    reads_of[child] += stk->call.fop == FOP_readv;
}

/* Returns the children that a read of the file asks. */
static child_set
asked_by_read(void)
{
    child_set asked = 0;

    memset(reads_of, 0, sizeof reads_of);
    scene.lie = count_reads;
    ck_assert_int_ge(scene_call(FOP_readv, fill_read, 0), 0);
    scene.lie = NULL;
    ck_assert(reads(&before));
    for (unsigned i = 0; i < CHILDREN; i++)
        asked |= reads_of[i] ? CHILD(i) : 0;
    return asked;
}

START_TEST(reads_ask_the_children_of_the_mask)
{
    static const char *const masks[] = {"0:1", "0:2", "1:2"};
    static const child_set sets[] = {CHILD(0) | CHILD(1), CHILD(0) | CHILD(2), CHILD(1) | CHILD(2)};

    file_make(false);
    for (unsigned n = 0; n < 3; n++) {
        char options[64];

        snprintf(options, sizeof options, " option ec-read-mask %s\n", masks[n]);
        reconfigure(options);
        for (unsigned k = 0; k < 4; k++) {
            ck_assert_uint_eq(asked_by_read(), sets[n]);
            scene_run(1500); /* the time after which a read asks a spare child */
        }
        /* a write of a part of a stripe reads the rest of the stripe */
        struct contents after = before;
        memset(reads_of, 0, sizeof reads_of);
        scene.lie = count_reads;
        ck_assert_int_ge(change_bytes(&after, 10 * n, 5, 'a'), 0);
        scene.lie = NULL;
        for (unsigned i = 0; i < CHILDREN; i++)
            ck_assert_msg(!reads_of[i] == !(sets[n] & CHILD(i)), "mask %s, c%u", masks[n], i);
        scene_run(5000);
    }
    ck_assert_uint_eq(set_now()->reads_beside_mask, 0);
    scene_end();
}
END_TEST

/* Children of the mask are still preferred to others. */
START_TEST(the_mask_gives_way_to_a_read_that_needs_others)
{
    struct fault f = {.child = 0, .at = 0, .kind = FAULT_REFUSED, .err = EIO};

    file_make(false);
    reconfigure(" option ec-read-mask 0:1\n");
    ck_assert_uint_eq(asked_by_read(), CHILD(0) | CHILD(1));
    scene_arm(&f, 1); /* the lock is held: the next call is a READ */
    ck_assert_uint_eq(asked_by_read() & CHILD(2), CHILD(2));
    ck_assert(scene.fault[0].has_struck);
    scene_arm(NULL, 0);
    scene_run(5000);
    ck_assert_uint_eq(asked_by_read(), CHILD(0) | CHILD(1));
    for (unsigned down = 0; down < 2; down++) {
        scene_child_down(down);
        scene_run(0);
        ck_assert_uint_eq(asked_by_read(), CHILD(1 - down) | CHILD(2));
        struct contents after = before;
        ck_assert_int_ge(change_bytes(&after, 20, 5, 'a'), 0);
        scene_run(5000);
        scene_child_up(down);
        scene_run(0);
        /* up, and behind */
        ck_assert_uint_eq(asked_by_read(), CHILD(1 - down) | CHILD(2));
        scene_run(5000);
        heal_file();
        ck_assert_uint_eq(asked_by_read(), CHILD(0) | CHILD(1));
        scene_run(5000);
    }
    ck_assert_uint_ge(set_now()->reads_beside_mask, 5);
    scene_end();
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_test(t, bad_values_are_refused_at_the_mount);
    tcase_add_test(t, all_bricks_of_the_largest_set_can_be_in_a_mask);
    tcase_add_test(t, a_bad_value_of_a_running_mount_keeps_the_old_one);
    tcase_add_loop_test(t, a_change_without_a_quorum_is_refused_without_a_trace, 0, CHANGING);
    tcase_add_test(t, reads_and_a_flush_need_no_quorum);
    tcase_add_loop_test(t, a_smaller_quorum_allows_changes_at_once, 0, CHANGING);
    tcase_add_test(t, a_stale_child_does_not_count);
    tcase_add_loop_test(t, a_change_that_misses_the_quorum_is_completed_by_the_heal, 0, CHANGING);
    tcase_add_test(t, reads_ask_the_children_of_the_mask);
    tcase_add_test(t, the_mask_gives_way_to_a_read_that_needs_others);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-quorum", add_tests);
}

#include "base/test-main.h"
