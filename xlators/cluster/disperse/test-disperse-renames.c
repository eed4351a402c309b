/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The heal of an object that a dead mount has renamed on some children only. */
#include <check.h>
#include <errno.h>

#include "xlators/cluster/disperse/test-disperse-file.h"
#include "xlators/cluster/test-children-internal.h"

enum { WIDE = 4 }; /* 3+1 children: two of them are neither K nor at most R */

static unsigned count; /* of children */
static unsigned redundancy = 1;
static const char *path_of_new, *new_folder, *new_name;
static bool is_folder; /* the renamed object; else a file */

static void
begin(void)
{
    char options[80];

    scene.takes_sequences = takes_joined;
    snprintf(options, sizeof options, " option redundancy %u\n option background-heals 0\n", redundancy);
    scene_begin(&cluster_disperse_xlator, options);
}

static void
fill_make(struct call_stack *stk)
{
    static unsigned char serial;
    struct gfid gfid = {.b = {0xdd, [15] = ++serial}};

    stk->call.loc = (struct loc){.parent = scene_inode_of(new_folder), .name = new_name};
    stk->call.mode = 0755;
    stk->call.flags = O_RDWR | O_CREAT;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
make(enum fop fop, const char *folder, const char *name)
{
    new_folder = folder;
    new_name = name;
    must(scene_call(fop, fill_make, 0) == 0);
}

static void
fill_bytes(struct call_stack *stk)
{
    static char payload[FILE_BYTES];
    struct inode *inode = scene_inode_of(is_folder ? "/a/x/f" : "/a/x");

    memset(payload, fill_byte, sizeof payload);
    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.payload[0] = (struct iovec){payload, sizeof payload};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = sizeof payload;
}

static void
write_bytes(char byte)
{
    fill_byte = byte;
    must(scene_call(FOP_writev, fill_bytes, 5000) == FILE_BYTES);
}

static void
fill_rename(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = scene_inode_of("/a"), .name = "x"};
    stk->call.loc.inode = scene_inode_of("/a/x");
    stk->call.loc2 = (struct loc){.parent = scene_inode_of(new_folder), .name = "y"};
}

static void
heal_folder_go(void *inode)
{
    bool was_whole;

    (void)ec_heal_object(scene.graph->top->children[0]->private, inode, HEAL_FULL, &was_whole);
}

static void
heal(const char *path)
{
    struct inode *inode = scene_inode_of(path);

    if (inode)
        must(coro_run(heal_folder_go, inode) == 0);
    scene_run(3000);
    inode_unref(inode);
}

static unsigned
children_with(const char *path)
{
    unsigned has = 0;

    for (unsigned i = 0; i < count; i++)
        has += store_find(&scene.store[i], path) != NULL;
    return has;
}

static void
fill_read_renamed(struct call_stack *stk)
{
    struct inode *inode = scene_inode_of(path_of_new);

    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.size = STORED_DATA_MAX;
}

/* The object is whole under one name at least. The target of the RENAME, of which too few fragments are left,
 * has the object's or its own (is_over). */
static void
check_renamed(const char *old_path, const char *new_path, bool is_over)
{
    char path[STORED_TEXT_MAX + 2];
    unsigned with_old = children_with(old_path), with_new = children_with(new_path);

    if ((with_old % count) || (with_new % count))
        finding_add("%u children have the old name, %u the new one", with_old, with_new);
    else if (!with_old && !with_new)
        finding_add("no child has a name of the object");
    else if (is_over && !with_new)
        finding_add("the target has gone");
    snprintf(path, sizeof path, "%s%s", with_old ? old_path : new_path, is_folder ? "/f" : "");
    heal(path);
    path_of_new = path;
    int ret = children_with(path) ? scene_call(FOP_readv, fill_read_renamed, 0) : -ENOENT;
    bool is_right =
        ret == FILE_BYTES && scene.text[0] == fill_byte && scene.text[FILE_BYTES - 1] == fill_byte;
    if (!is_right)
        finding_add("%s: %d, byte %c", path, ret, ret > 0 ? scene.text[0] : '-');
}

struct rename_case {
    unsigned count, away; /* children; the child that is away when the contents change (CHILDREN_MAX: none) */
    bool is_folder, is_over;
    const char *to; /* the folder */
};

/* Makes /a/x and renames it; the mount dies at call `n`. Returns false: the mount did not die. */
static bool
rename_half(const struct rename_case *c, unsigned n, enum fault_kind kind)
{
    struct fault f = {.child = ANY_CHILD, .at = n, .kind = kind};

    count = c->count;
    is_folder = c->is_folder;
    scene_clear(count, false);
    begin();
    make(FOP_mkdir, "/", "a");
    make(FOP_mkdir, "/", "b");
    make(is_folder ? FOP_mkdir : FOP_create, "/a", "x");
    if (is_folder)
        make(FOP_create, "/a/x", "f");
    write_bytes('o');
    if (c->is_over)
        make(is_folder ? FOP_mkdir : FOP_create, c->to, "y");
    scene_run(5000);
    if (c->away < count) {
        scene_child_down(c->away);
        scene_run(0);
        write_bytes('n');
    }
    new_folder = c->to;
    scene_arm(&f, 1);
    (void)scene_call(FOP_rename, fill_rename, 2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    return has_died;
}

enum { HEALER_LIVES = 10000 };

/* Heals the folders in one order or the other. The first healer dies at call `m`. Returns false: it did not
 * die. */
static bool
run_heals(const struct rename_case *c, unsigned n, unsigned m, bool heals_new_first)
{
    struct fault f = {.child = ANY_CHILD, .at = m, .kind = FAULT_CUT};
    char new_path[STORED_TEXT_MAX];
    bool has_died = false;

    snprintf(run_text, sizeof run_text,
             "%u children, c%u away, %s to %s%s, died at call %u, %s first, heal to %u", c->count, c->away,
             c->is_folder ? "folder" : "file", c->to, c->is_over ? " (over)" : "", n,
             heals_new_first ? "new" : "old", m);
    snprintf(new_path, sizeof new_path, "%s/y", c->to);
    for (unsigned life = m == HEALER_LIVES; life < 2; life++) {
        begin();
        if (!life)
            scene_arm(&f, 1);
        for (unsigned pass = 0; pass < 3; pass++) {
            heal(heals_new_first ? c->to : "/a");
            heal(heals_new_first ? "/a" : c->to);
        }
        has_died |= scene.is_cut;
        if (life)
            check_renamed("/a/x", new_path, c->is_over && m == HEALER_LIVES);
        scene.is_cut |= !life;
        scene_run(5000);
        scene_end();
    }
    return has_died;
}

static const struct rename_case cases[] = {
    {CHILDREN, 1, false, false, "/a"},
    {CHILDREN, 1, false, false, "/b"},
    {CHILDREN, 1, true, false, "/b"},
    {CHILDREN, CHILDREN_MAX, false, false, "/b"},
    {CHILDREN, CHILDREN_MAX, true, false, "/b"},
    {WIDE, CHILDREN_MAX, false, false, "/a"},
    {WIDE, CHILDREN_MAX, false, false, "/b"},
    {WIDE, CHILDREN_MAX, false, true, "/b"},
    {WIDE, CHILDREN_MAX, true, false, "/a"},
    {WIDE, CHILDREN_MAX, true, false, "/b"},
    {WIDE, CHILDREN_MAX, true, true, "/b"},
};

/* An object that was renamed on some children has too few fragments under each of its names. */
START_TEST(an_object_that_a_dead_mount_has_half_renamed_is_kept)
{
    bool dies = true;

    findings = 0;
    for (unsigned n = 0; dies; n++) {
        for (unsigned way = 0; way < 4; way++) {
            dies = rename_half(&cases[_i], n, way & 1 ? FAULT_CUT_AFTER : FAULT_CUT);
            (void)run_heals(&cases[_i], n, HEALER_LIVES, way & 2);
        }
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* Also the healer dies, in the heal. */
START_TEST(a_half_renamed_object_outlives_its_healer)
{
    unsigned calls = 0, died = 0;

    findings = 0;
    while (rename_half(&cases[_i], calls, FAULT_CUT))
        calls++;
    for (unsigned n = calls < 12 ? 0 : calls - 12; n < calls; n++) {
        for (unsigned order = 0; order < 2; order++) {
            for (unsigned m = 0; m < HEALER_LIVES; m += 1 + m / 16) {
                (void)rename_half(&cases[_i], n, FAULT_CUT);
                if (!run_heals(&cases[_i], n, m, order))
                    break;
                died++;
            }
        }
    }
    ck_assert_uint_gt(died, 100);
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* ---- renames in a circle ---------------------------------------------------------------------- */

static const char *from_folder, *from_name, *to_folder, *to_name;

static void
fill_move(struct call_stack *stk)
{
    char path[STORED_TEXT_MAX];

    snprintf(path, sizeof path, "%s/%s", from_folder, from_name);
    stk->call.loc = (struct loc){.parent = scene_inode_of(from_folder), .name = from_name};
    stk->call.loc.inode = scene_inode_of(path);
    stk->call.loc2 = (struct loc){.parent = scene_inode_of(to_folder), .name = to_name};
}

static void
move(const char *folder, const char *name, const char *folder2, const char *name2)
{
    from_folder = folder;
    from_name = name;
    to_folder = folder2;
    to_name = name2;
    must(scene_call(FOP_rename, fill_move, 0) == 0);
}

/* Child 1 is away while two objects change names. On that child, each object has the name that the other
 * one or the new folder needs. 0, 1: files or folders change names; 2, 3: a new folder of the object's old
 * name gets the object. */
START_TEST(objects_that_have_changed_names_are_moved)
{
    bool is_circle = _i < 2;
    const char *path = is_circle ? "/b/y" : "/a/x/y";
    enum fop fop = _i % 2 ? FOP_mkdir : FOP_create;

    count = CHILDREN;
    is_folder = _i % 2;
    scene_clear(count, false);
    begin();
    make(FOP_mkdir, "/", "a");
    make(FOP_mkdir, "/", "b");
    make(fop, "/a", "x");
    if (is_folder)
        make(FOP_create, "/a/x", "f");
    write_bytes('n');
    make(fop, "/b", "y");
    scene_run(5000);
    scene_child_down(1);
    scene_run(0);
    move("/a", "x", "/b", "z");
    if (is_circle) {
        move("/b", "y", "/a", "x");
        move("/b", "z", "/b", "y");
    } else {
        make(FOP_mkdir, "/a", "x");
        move("/b", "z", "/a/x", "y");
    }
    scene_run(5000);
    scene_child_up(1);
    for (unsigned pass = 0; pass < 6; pass++) {
        heal("/a");
        heal("/b");
        heal("/a/x");
        heal("/b/y");
    }
    findings = 0;
    snprintf(run_text, sizeof run_text, "case %d", _i);
    check_renamed(path, "/none", false);
    heal(path);
    ck_assert_uint_eq(findings, 0);
    ck_assert_uint_eq(children_with("/a/x") + children_with("/b/y"), 2 * count);
    scene_child_down(0);
    snprintf(run_text, sizeof run_text, "case %d, without c0", _i);
    check_renamed(path, "/none", false);
    ck_assert_uint_eq(findings, 0);
    scene_run(5000);
    scene_end();
}
END_TEST

/* ---- files that a client was removing when it died ------------------------------------------- */

/* The child has done the removal of the name, the object's last one. */
static void
lose_name(unsigned child, const char *folder, const char *name)
{
    struct store *s = &scene.store[child];
    struct stored_name *n = store_name_of(s, (unsigned)(store_find(s, folder) - s->object), name);
    struct stored_object *o = &s->object[n->object];

    store_drop_name(s, n);
    o->stat.mode = 0;
}

/* Makes a set of `all` children, of which `r` may be lost, with the folder /a and the file /a/x. */
static void
file_begin(unsigned all, unsigned r)
{
    count = all;
    redundancy = r;
    is_folder = false;
    findings = 0;
    scene_clear(count, false);
    begin();
    make(FOP_mkdir, "/", "a");
    make(FOP_create, "/a", "x");
    write_bytes('o');
    scene_run(5000);
}

/* Heals. The file goes from all children, or is whole. */
static void
heal_half_removed(bool goes)
{
    for (unsigned pass = 0; pass < 3; pass++)
        heal("/a");
    scene_run(10000);
    if (goes)
        ck_assert_uint_eq(children_with("/a/x"), 0);
    else
        check_renamed("/a/x", "/none", false);
    ck_assert_uint_eq(children_with("/a/other"), count);
    ck_assert_uint_eq(findings, 0);
    scene_run(5000);
    scene_end();
}

/* A mount dies in the UNLINK of a file, which child 0 has done. 3+1 children. Child 3 was away
 *      0: while the file's bytes changed: too few children have them, and the file goes
 *      1: while only the folder changed: the file stays
 *      2: as 1, but then a second mount dies in a raise of the version that child 1 alone has made */
START_TEST(a_file_that_a_dead_mount_has_half_removed_goes_or_is_whole)
{
    snprintf(run_text, sizeof run_text, "case %d", _i);
    file_begin(WIDE, 1);
    scene_child_down(3);
    scene_run(0);
    make(FOP_create, "/a", "other");
    if (!_i)
        write_bytes('n');
    scene_run(5000);
    lose_name(0, "/a", "x");
    if (_i == 2) {
        const unsigned char mark[16] = {[7] = 1, [15] = 1};
        struct stored_object *raised = store_find(&scene.store[1], "/a/x");
        struct stored_xattr *version = store_xattr(raised, "trusted.ec.version");

        version->bytes[6]++;
        version->bytes[14]++;
        must(store_set_xattr(raised, "trusted.ec.dirty", mark, sizeof mark) == 0);
    }
    scene_child_up(3);
    scene_run(0);
    heal_half_removed(!_i);
}
END_TEST

/* 4+2 children, of which two have missed a change of the bytes, so that too few have them after the UNLINK of
 * child 0. While one of the two is away, nothing shows this, and the heal of the folder waits. */
START_TEST(a_file_that_may_be_half_removed_waits_for_all_children)
{
    file_begin(6, 2);
    scene_child_down(4);
    scene_child_down(5);
    scene_run(0);
    write_bytes('n');
    make(FOP_create, "/a", "other");
    scene_run(5000);
    lose_name(0, "/a", "x");
    scene_child_up(4);
    scene_run(0);
    heal("/a");
    scene_run(10000);
    ck_assert_uint_eq(children_with("/a/x"), 5);
    scene_child_up(5);
    scene_run(0);
    heal_half_removed(true);
}
END_TEST

/* 4+2 children, of which two miss the RENAME of a folder or file. The next mount dies in the removal of the
 * new name, which two children have done. The old name does not come back. */
START_TEST(a_name_that_was_renamed_away_does_not_come_back)
{
    count = 6;
    redundancy = 2;
    is_folder = !_i;
    findings = 0;
    snprintf(run_text, sizeof run_text, "case %d", _i);
    scene_clear(count, false);
    begin();
    make(FOP_mkdir, "/", "a");
    make(FOP_mkdir, "/", "b");
    make(is_folder ? FOP_mkdir : FOP_create, "/a", "x");
    scene_run(5000);
    scene_child_down(3);
    scene_child_down(4);
    scene_run(0);
    move("/a", "x", "/b", "y");
    scene_run(5000);
    lose_name(0, "/b", "y");
    lose_name(1, "/b", "y");
    scene_child_up(3);
    scene_child_up(4);
    scene_run(0);
    for (unsigned pass = 0; pass < 3; pass++) {
        heal("/b");
        heal("/a");
    }
    ck_assert_uint_eq(children_with("/a/x"), 0);
    ck_assert_uint_eq(children_with("/b/y") % count, 0);
    scene_run(5000);
    scene_end();
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_loop_test(t, an_object_that_a_dead_mount_has_half_renamed_is_kept, 0,
                        sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(t, a_half_renamed_object_outlives_its_healer, 0, sizeof cases / sizeof cases[0]);
    tcase_add_loop_test(t, objects_that_have_changed_names_are_moved, 0, 4);
    tcase_add_loop_test(t, a_name_that_was_renamed_away_does_not_come_back, 0, 2);
    tcase_add_loop_test(t, a_file_that_a_dead_mount_has_half_removed_goes_or_is_whole, 0, 3);
    tcase_add_test(t, a_file_that_may_be_half_removed_waits_for_all_children);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-renames", add_tests);
}

#include "base/test-main.h"
