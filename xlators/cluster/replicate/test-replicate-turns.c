/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Three copies that are cut off in turn, without a heal between: the two copies that are left are stale, and
 * accuse each other (pending xattr). Such copies take no change, regardless of the call that fails, and
 * accuse no good copy. The heal then keeps each acknowledged change, and brings no removed name back. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

enum { GOOD = 1, CALLS_MAX = 40 };

static const char *turn_name, *turn_name2;
static char turn_source[STORED_TEXT_MAX];
static uint8_t turn_number;

static void
fill_turn(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = turn_number++}};

    stk->call.loc = (struct loc){.parent = replica_inode("/d"), .name = turn_name};
    if (stk->call.fop == FOP_rename)
        stk->call.loc.inode = replica_inode(turn_source);
    if (turn_name2)
        stk->call.loc2 = (struct loc){.parent = replica_inode("/d"), .name = turn_name2};
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static int
turn_change(enum fop fop, const char *name, const char *name2)
{
    turn_name = name;
    turn_name2 = name2;
    snprintf(turn_source, sizeof turn_source, "/d/%s", name);
    return scene_call(fop, fill_turn, 0);
}

static void
fill_turn_mode(struct call_stack *stk)
{
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
}

/* The changes that the stale copies are asked for. */
static const struct {
    enum fop fop;
    const char *name, *name2;
} turn_changes[] = {
    {FOP_mknod, "new", NULL},   {FOP_create, "new", NULL},    {FOP_mkdir, "new", NULL},
    {FOP_unlink, "kept", NULL}, {FOP_rename, "kept", "moved"}, {FOP_rmdir, "folder", NULL},
};
enum { TURN_CHANGES = sizeof turn_changes / sizeof turn_changes[0] };

static int
turn_change_number(unsigned n)
{
    return turn_change(turn_changes[n].fop, turn_changes[n].name, turn_changes[n].name2);
}

/* Removes a name while each of children 0 and 2 is away, so that only child 1 has missed no change. */
static void
turns_begin(const char *options)
{
    turn_number = 50;
    scene_clear(3, false);
    store_make_all("/d", S_IFDIR | 0755, 4, NULL);
    store_make_all("/d/gone0", S_IFREG | 0644, 5, "gone0");
    store_make_all("/d/gone2", S_IFREG | 0644, 6, "gone2");
    store_make_all("/d/kept", S_IFREG | 0644, 7, "kept");
    store_make_all("/d/folder", S_IFDIR | 0755, 8, NULL);
    replicas_begin(options);
    scene_lookup_all();
    for (unsigned i = 0; i < 3; i += 2) {
        scene_child_down(i);
        must(turn_change(FOP_unlink, i ? "gone2" : "gone0", NULL) == 0);
        must(replica_call(FOP_setattr, "/d/kept", fill_turn_mode) == 0);
        scene_child_up(i);
        scene_run(0);
    }
}

static void
must_keep_good_copy(void)
{
    struct stored_object *objects[] = {store_find(&scene.store[0], "/d"), store_find(&scene.store[2], "/d"),
                                       store_find(&scene.store[0], "/d/kept"),
                                       store_find(&scene.store[2], "/d/kept")};

    for (size_t n = 0; n < sizeof objects / sizeof objects[0]; n++) {
        struct stored_xattr *x = objects[n] ? store_xattr(objects[n], "trusted.afr.c1") : NULL;
        struct changelog c;

        changelog_get(&c, x ? x->bytes : NULL, x ? x->len : 0);
        if (c.count[CHANGE_ENTRY] || c.count[CHANGE_METADATA])
            finding_add("copy %zu accuses the good child", n);
    }
}

/* Heals by a mount that heals everything. */
static void
turns_end(void)
{
    scene.fault_count = 0;
    scene_run(5000);
    must_keep_good_copy();
    scene_end();
    replicas_begin("");
    for (int n = 0; n < 8 && (copies_difference() || counters_left()); n++)
        scene_lookup_all();
    scene_run(5000);
    if (copies_difference() || counters_left())
        finding_add("after the heal %s", copies_difference() ? copies_difference() : counters_left());
    for (unsigned i = 0; i < scene.count; i++) {
        if (store_find(&scene.store[i], "/d/gone0") || store_find(&scene.store[i], "/d/gone2"))
            finding_add("a removed name is back on c%u", i);
    }
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

#define NO_HEALS " option entry-self-heal off\n option metadata-self-heal off\n option data-self-heal off\n"

START_TEST(stale_copies_take_no_change)
{
    findings = 0;
    for (unsigned n = 0; n < TURN_CHANGES; n++) {
        turns_begin(NO_HEALS);
        scene_child_down(GOOD);
        snprintf(run_text, sizeof run_text, "change %u", n);
        must(turn_change_number(n) == -ENOTCONN);
        must(replica_call(FOP_setattr, "/d/kept", fill_turn_mode) == -EIO);
        scene_child_up(GOOD);
        turns_end();
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* The good copy is lost, refuses or does not answer at each call of the change. */
START_TEST(stale_copies_that_are_left_in_a_change_accuse_no_good_copy)
{
    static const enum fault_kind kinds[] = {FAULT_UNSENT, FAULT_UNANSWERED, FAULT_REFUSED};
    unsigned struck = 0;

    findings = 0;
    for (unsigned n = 0; n <= TURN_CHANGES; n++) {
        for (unsigned at = 0; at < CALLS_MAX * 3; at++) {
            struct fault f = {.child = GOOD, .at = at / 3, .kind = kinds[at % 3], .err = EACCES};

            turns_begin(NO_HEALS);
            snprintf(run_text, sizeof run_text, "change %u, fault %u of kind %u", n, f.at, at % 3);
            scene_arm(&f, 1);
            (void)(n < TURN_CHANGES ? turn_change_number(n)
                                    : replica_call(FOP_setattr, "/d/kept", fill_turn_mode));
            bool has_struck = scene.fault[0].has_struck;
            struck += has_struck;
            if (!scene.is_up[GOOD])
                scene_child_up(GOOD);
            turns_end();
            if (!has_struck)
                break;
        }
    }
    must(struck > TURN_CHANGES);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* The mount dies at each call of a change that is refused: no stale copy accuses the good copy meanwhile. */
START_TEST(a_mount_that_dies_in_a_refused_change_accuses_no_good_copy)
{
    bool has_struck = true;

    findings = 0;
    for (unsigned at = 0; has_struck; at++) {
        struct fault f = {.child = ANY_CHILD, .at = at / 2, .kind = at % 2 ? FAULT_CUT_AFTER : FAULT_CUT};

        turns_begin(NO_HEALS);
        scene_child_down(GOOD);
        snprintf(run_text, sizeof run_text, "death %u at call %u", at % 2, f.at);
        scene_arm(&f, 1);
        must(turn_change(FOP_mknod, "new", NULL) < 0);
        has_struck = scene.fault[0].has_struck;
        turns_end();
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* Another client, which reaches all bricks, heals the folder while this mount does not reach the good one. */
START_TEST(healed_copies_take_changes_again)
{
    turns_begin(NO_HEALS);
    scene_child_down(GOOD);
    must(turn_change(FOP_mknod, "new", NULL) == -ENOTCONN);
    for (unsigned i = 0; i < 3; i++) {
        struct stored_object *dir = store_find(&scene.store[i], "/d");
        static const unsigned char none[CHANGELOG_BYTES];

        (void)store_set_xattr(dir, "trusted.afr.c0", none, sizeof none);
        (void)store_set_xattr(dir, "trusted.afr.c2", none, sizeof none);
    }
    must(turn_change(FOP_mknod, "new", NULL) == 0);
    scene_end();
}
END_TEST

START_TEST(stale_copies_without_quorum_take_changes)
{
    turns_begin(NO_HEALS " option quorum-type none\n");
    scene_child_down(GOOD);
    must(turn_change(FOP_mknod, "new", NULL) == 0);
    scene_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-turns");
    TCase *t = tcase_create("turns");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, stale_copies_take_no_change);
    tcase_add_test(t, stale_copies_that_are_left_in_a_change_accuse_no_good_copy);
    tcase_add_test(t, a_mount_that_dies_in_a_refused_change_accuses_no_good_copy);
    tcase_add_test(t, healed_copies_take_changes_again);
    tcase_add_test(t, stale_copies_without_quorum_take_changes);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
