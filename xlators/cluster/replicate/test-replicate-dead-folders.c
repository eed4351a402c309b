/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Folders whose names a client was changing when it died (dead-folders.c). Every change of names is cut at
 * each call by the death of its mount, the bricks note the folders, and the next mount compares the folders
 * without a LOOKUP. Then the same with a fault at each call of the comparison, with a second death, and with
 * each allocation failing:
 *
 *      in the end the copies are equal, and no brick has a note
 *      as long as the copies differ, a brick has a note, or a counter (pending xattr) leads healers to the
 *      object
 *      no lock is left
 *
 * Also folders that must wait, notes that change meanwhile, wrong notes, the sets of names, and the mark of a
 * whole folder while a child is away that the mount has never met. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "stack/lock-cmd.h"
#include "xlators/cluster/replicate/heal.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"
#include "xlators/cluster/test-children-internal.h"
#include "xlators/cluster/test-notes.h"

enum { WAIT_MS = 200000 };

/* ---- mounts ---------------------------------------------------------------------------------- */

static const char *
shape_options_of(const struct replica_shape *shape)
{
    return shape->has_arbiter ? " option arbiter-count 1\n" : "";
}

/* Begins a mount that does not know yet that the bricks keep notes. */
static void
mount_begin(const struct replica_shape *shape)
{
    replicas_begin(shape_options_of(shape));
    scene.lie = serve_notes;
}

/* A child returns, and the mount learns which bricks keep notes: it compares the folders. */
static void
compare_now(child_set keepers)
{
    scene_child_down(0);
    scene_child_up(0);
    for (unsigned i = 0; i < scene.count; i++)
        atomic_store(&scene.child[i]->brick_facts, keepers & CHILD(i) ? BRICK_NAME_NOTES : 0);
    scene_run(0);
}

static void
mount_end(void)
{
    scene_end();
    scene.lie = NULL;
    memset(note_counts, 0, sizeof note_counts);
    note_reads = 0;
    renews_notes = false;
}

/* Makes the change in a mount that dies before or after call `at`. The bricks of `keepers` note the folders.
 * Returns false if the change takes fewer calls. */
static bool
cut_change(const struct replica_shape *shape, const struct replica_change *c, const struct fault *cut,
           child_set keepers)
{
    const struct replica_variant v = {0};

    (void)replica_change_run(shape, c, &v, cut, 1);
    bool is_cut = scene.is_cut;

    scene_end();
    for (unsigned i = 0; i < scene.count; i++) {
        note_path(i, keepers & CHILD(i) ? "/" : "/none");
        note_path(i, keepers & CHILD(i) ? "/d" : "/none");
    }
    return is_cut;
}

/* Adds a finding if nothing would lead a healer to a difference. */
static void
check_differences_are_known(void)
{
    if (copies_difference() && !notes_left() && !counters_left())
        finding_add("no note and no counter is left, but %s", copies_difference());
    if (!scene.is_cut && store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

/* Brings all children up, lets folders that wait be compared, and adds a finding unless all is whole then. */
static void
compare_to_the_end(void)
{
    scene.fault_count = 0;
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    compare_now(~0u);
    scene_run(WAIT_MS);
    check_differences_are_known();
    if (notes_left())
        finding_add("%u notes are left", notes_left());
    if (counters_left()) /* the heal of a new object has failed; a LOOKUP or the daemon heals it */
        replica_heal_all();
    if (copies_difference())
        finding_add("in the end %s", copies_difference());
}

/* ---- every change, cut at every call --------------------------------------------------------- */

enum { CHANGES_OF_NAMES = 14 }; /* the first of replica_changes */

START_TEST(names_of_a_dead_client_become_equal_without_a_lookup)
{
    const struct replica_change *c = &replica_changes[_i];
    unsigned differed = 0;

    must(c->kind == CHANGE_ENTRY);
    findings = 0;
    for (unsigned n = 0; n < REPLICA_SHAPES; n++) {
        const struct replica_shape *shape = &replica_shapes[n];
        struct fault cut = {.child = ANY_CHILD, .kind = FAULT_CUT};

        for (; cut_change(shape, c, &cut, cut.at % 2 ? ~0u : CHILD(cut.at / 2 % shape->count)); cut.at++) {
            snprintf(run_text, sizeof run_text, "%s, %s, death at call %u", shape->name, c->name, cut.at);
            differed += copies_difference() != NULL;
            mount_begin(shape);
            compare_now(~0u);
            scene_run(0);
            if (copies_difference() || counters_left())
                finding_add("%s", copies_difference() ? copies_difference() : counters_left());
            compare_to_the_end();
            mount_end();
        }
        memset(note_counts, 0, sizeof note_counts);
    }
    must(differed >= REPLICA_SHAPES);
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* Makes a death after which the copies differ: of N copies, 1 to N - 1 have the change. */
static void
make_difference(const struct replica_shape *shape, const struct replica_change *c, unsigned turn)
{
    static unsigned known[REPLICA_SHAPES][2]; /* of this test's change: number of the call, from 1 */
    unsigned n = turn % (shape->count - 1), differences = 0;
    unsigned *at = &known[shape - replica_shapes][n];
    struct fault cut = {.child = ANY_CHILD, .kind = FAULT_CUT, .at = *at ? *at - 1 : 0};

    for (; cut_change(shape, c, &cut, ~0u); cut.at++) {
        if (*at || (copies_difference() && differences++ == n)) {
            *at = cut.at + 1;
            return;
        }
        memset(note_counts, 0, sizeof note_counts);
    }
    ck_abort_msg("%s, %s: no death leaves different copies", shape->name, c->name);
}

/* Returns whether the fault has struck. */
static bool
compare_with_fault(const struct replica_shape *shape, const struct replica_change *c, const struct fault *f)
{
    snprintf(run_text, sizeof run_text, "%s, %s, c%u fault %u at call %u of the comparison", shape->name,
             c->name, f->child, f->kind, f->at);
    make_difference(shape, c, f->at);
    mount_begin(shape);
    scene_arm(f, 1);
    compare_now(~0u);
    bool has_struck = scene.fault[0].has_struck;

    check_differences_are_known();
    if (scene.is_cut) {
        scene_end();
        mount_begin(shape);
    }
    compare_to_the_end();
    mount_end();
    return has_struck;
}

START_TEST(a_fault_during_the_comparison_keeps_a_way_to_the_difference)
{
    const struct replica_change *c = &replica_changes[_i];
    unsigned struck = 0, step = getenv("FAULTS_ALL") ? 1 : 7;

    findings = 0;
    for (unsigned n = (unsigned)_i % step; n < REPLICA_SHAPES * FAULT_KINDS * 3; n++) {
        const struct replica_shape *shape = &replica_shapes[n % REPLICA_SHAPES];
        struct fault f = {.child = n / REPLICA_SHAPES % 3,
                          .at = n % step,
                          .kind = (enum fault_kind)(n / REPLICA_SHAPES / 3),
                          .err = n % 2 ? ENOSPC : EIO};

        for (; f.child < shape->count && compare_with_fault(shape, c, &f); f.at += step)
            struck++;
    }
    must(struck > 10);
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

START_TEST(a_comparison_without_memory_is_repeated)
{
    const struct replica_change *c = &replica_changes[_i];

    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < REPLICA_SHAPES; n++) {
        bool has_starved = true;

        for (int64_t at = 1 + (int64_t)n + 3 * _i; has_starved; at += 17) {
            snprintf(run_text, sizeof run_text, "%s, %s, allocation %d of the comparison",
                     replica_shapes[n].name, c->name, (int)at);
            make_difference(&replica_shapes[n], c, (unsigned)at);
            mount_begin(&replica_shapes[n]);
            scene_starve(at);
            compare_now(~0u);
            has_starved = scene_has_starved();
            scene_starve(0);
            check_differences_are_known();
            compare_to_the_end();
            mount_end();
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- folders that wait, and notes ------------------------------------------------------------ */

/* Makes a volume in which c1 lacks the file /d/new, and every brick has a note about /d. */
static void
volume_with_difference(void)
{
    replica_volume_make(&replica_shapes[1]);
    for (unsigned i = 0; i < scene.count; i++) {
        if (i != 1)
            (void)store_make(i, "/d/new", S_IFREG | 0644, 40, "new");
        note_path(i, "/d");
    }
}

static bool
is_healed(void)
{
    return !copies_difference() && store_find(&scene.store[1], "/d/new") && !notes_left();
}

/* Another mount's healer takes or releases its lock on /d on c1. */
static void
other_healer_locks(bool takes)
{
    const struct replicate *r = scene.child[1]->parent->private;
    struct call_stack *stk = call_stack_new(NULL, NULL);
    uint8_t owner[8] = {0xee};

    stk->caller.lk_owner = (struct lk_owner){.len = sizeof owner, .bytes = owner};
    stk->call.fop = FOP_entrylk;
    stk->call.cmd = takes ? ENTRYLK_TRY : ENTRYLK_UNLOCK;
    stk->call.volume = r->heal_domain;
    must(lock_serve(1, stk, &store_find(&scene.store[1], "/d")->stat.gfid) == 0);
    call_stack_free(stk);
}

START_TEST(a_folder_that_another_healer_has_locked_waits)
{
    static const uint64_t at_s[] = {0, 2, 6, 14, 30, 62, 126, 190};

    volume_with_difference();
    mount_begin(&replica_shapes[1]);
    other_healer_locks(true);
    compare_now(~0u);
    scene_run(WAIT_MS);
    ck_assert_uint_eq(note_reads, sizeof at_s / sizeof at_s[0]);
    for (unsigned n = 0; n < note_reads; n++)
        ck_assert_uint_eq((note_read_ns[n] - note_read_ns[0]) / 1000000000, at_s[n]);
    ck_assert(copies_difference() && notes_left() == 3);
    other_healer_locks(false);
    scene_run(64000);
    ck_assert(is_healed());
    ck_assert(!store_locks());
    /* the next folder that must wait waits for two seconds again */
    unsigned before = note_reads;

    other_healer_locks(true);
    note_path(0, "/d");
    compare_now(~0u);
    scene_run(2000);
    ck_assert_uint_eq(note_reads, before + 2);
    mount_end(); /* a folder waits: the timer ends with the mount */
}
END_TEST

static void
refuse_notes(unsigned i, struct call_stack *stk, int *ret)
{
    const char *key = dict_key_text(DICT_KEY_DEAD_CHANGES);

    serve_notes(i, stk, ret);
    if (i == 1 && stk->call.fop == FOP_getxattr && stk->call.name && strcmp(stk->call.name, key) == 0)
        *ret = -EIO;
}

START_TEST(a_brick_that_does_not_tell_its_notes_is_asked_again)
{
    volume_with_difference();
    mount_begin(&replica_shapes[1]);
    scene.lie = refuse_notes;
    compare_now(~0u);
    scene_run(3000);
    ck_assert(note_reads == 2 && notes_left() == 3 && copies_difference());
    scene.lie = serve_notes;
    scene_run(4000);
    ck_assert(note_reads == 3 && is_healed());
    mount_end();
}
END_TEST

START_TEST(folders_are_compared_when_all_children_are_there)
{
    volume_with_difference();
    mount_begin(&replica_shapes[1]);
    scene_child_down(2);
    compare_now(~0u);
    scene_run(WAIT_MS);
    ck_assert(note_reads == 0 && notes_left() == 3 && copies_difference());
    scene_child_up(2);
    compare_now(~0u);
    ck_assert(is_healed());
    mount_end();
}
END_TEST

START_TEST(bricks_that_keep_no_notes_are_not_asked)
{
    volume_with_difference();
    mount_begin(&replica_shapes[1]);
    compare_now(CHILD(0) | CHILD(2));
    scene_run(WAIT_MS);
    ck_assert(note_reads == 0 && notes_left() == 3);
    mount_end();
}
END_TEST

START_TEST(a_note_that_was_renewed_meanwhile_stays)
{
    volume_with_difference();
    mount_begin(&replica_shapes[1]);
    renews_notes = true;
    compare_now(~0u);
    renews_notes = false;
    ck_assert(!copies_difference());
    ck_assert_uint_eq(notes_left(), 3);
    compare_now(~0u);
    ck_assert(is_healed());
    mount_end();
}
END_TEST

/* A folder that only c1 has not is not gone. */
START_TEST(a_folder_that_a_copy_lacks_keeps_its_notes)
{
    replica_volume_make(&replica_shapes[1]);
    for (unsigned i = 0; i < scene.count; i += 2) {
        (void)store_make(i, "/lone", S_IFDIR | 0755, 41, NULL);
        note_path(i, "/lone");
    }
    mount_begin(&replica_shapes[1]);
    compare_now(~0u);
    ck_assert_uint_eq(notes_left(), 2);
    scene_lookup_all(); /* heals the folder's own name */
    compare_now(~0u);
    ck_assert(!copies_difference() && !notes_left());
    mount_end();
}
END_TEST

/* The bricks refuse a lock on a folder that all have removed since. */
START_TEST(notes_of_a_folder_that_is_gone_are_removed)
{
    static const struct gfid gone = {.b = {[0] = 0x99, [15] = 0x11}};

    replica_volume_make(&replica_shapes[1]);
    for (unsigned i = 0; i < scene.count; i += 2)
        note_gfid(i, &gone, false);
    mount_begin(&replica_shapes[1]);
    compare_now(~0u);
    ck_assert(!notes_left());
    mount_end();
}
END_TEST

/* ---- a child that the mount has never met ---------------------------------------------------- */

static const char *new_name;

static void
fill_new_name(struct call_stack *stk)
{
    static uint8_t number = 60;
    struct gfid gfid = {.b = {0xcc, [15] = number++}};

    stk->call.loc = (struct loc){.parent = replica_inode("/d"), .name = new_name};
    stk->call.mode = S_IFREG | 0644;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static int
make_name(const char *name)
{
    new_name = name;
    return scene_call(FOP_mknod, fill_new_name, 0);
}

/* Returns whether c0 accuses c1 of so many missed changes of names in /d, and of the whole folder. */
static bool
has_marks(unsigned names, unsigned whole)
{
    const struct stored_xattr *x = store_xattr(store_find(&scene.store[0], "/d"), "trusted.afr.c1");
    struct changelog c;

    changelog_get(&c, x ? x->bytes : NULL, x ? x->len : 0);
    return c.count[CHANGE_ENTRY] == names && c.count[CHANGE_DATA] == whole;
}

/* The mount before may have died in a change of any name, so the first mark tells healers to compare all. */
START_TEST(the_first_change_without_an_unknown_child_marks_the_whole_folder)
{
    volume_with_difference();
    memset(note_counts, 0, sizeof note_counts); /* as bricks that keep no notes */
    scene.stays_down = CHILD(1);
    mount_begin(&replica_shapes[1]);
    ck_assert_int_eq(make_name("x"), -EEXIST);
    ck_assert_msg(has_marks(1, 1), "the mark stays though the change was refused");
    ck_assert_int_eq(make_name("n"), 0);
    ck_assert_msg(has_marks(2, 1), "the folder is marked once");
    scene_child_up(1);
    scene_lookup_all();
    scene_run(5000);
    ck_assert(is_healed() && store_find(&scene.store[1], "/d/n"));
    ck_assert_ptr_null(counters_left());
    scene_child_down(1);
    ck_assert_int_eq(make_name("n2"), 0);
    ck_assert_msg(has_marks(1, 0), "the child was up meanwhile, and this mount has lived since");
    scene_child_up(1);
    mount_end();
}
END_TEST

/* ---- wrong notes ----------------------------------------------------------------------------- */

static const void *wrong_bytes;
static uint32_t wrong_len;
static enum dict_type wrong_type;

static void
send_wrong_notes(unsigned i, struct call_stack *stk, int *ret)
{
    const char *key = dict_key_text(DICT_KEY_DEAD_CHANGES);

    if (stk->call.fop != FOP_getxattr || !stk->call.name || strcmp(stk->call.name, key) != 0) {
        serve_notes(i, stk, ret);
        return;
    }
    *ret = 0;
    must(dict_set_text(reply_dict(stk), key, wrong_type, wrong_bytes, wrong_len) == 0);
}

/* Lets each brick send these bytes. Returns whether /d was compared. */
static bool
compares_after(enum dict_type type, const void *bytes, uint32_t len)
{
    replica_volume_make(&replica_shapes[1]);
    (void)store_make(0, "/d/new", S_IFREG | 0644, 40, "new");
    (void)store_make(2, "/d/new", S_IFREG | 0644, 40, "new");
    mount_begin(&replica_shapes[1]);
    wrong_type = type;
    wrong_bytes = bytes;
    wrong_len = len;
    scene.lie = send_wrong_notes;
    compare_now(~0u);
    bool is_whole = !copies_difference();

    must(is_whole || !store_find(&scene.store[1], "/d/new"));
    must(!store_locks());
    mount_end();
    return is_whole;
}

START_TEST(wrong_notes_are_ignored)
{
    enum { FOLDERS_READ = 16384 };
    static struct brick_note many[FOLDERS_READ + 1];
    struct brick_note two[2] = {{.gfid = {.b = {0}}}};

    replica_volume_make(&replica_shapes[1]);
    two[1].gfid = many[FOLDERS_READ].gfid = store_find(&scene.store[0], "/d")->stat.gfid;
    ck_assert(compares_after(DICT_PTR, two, sizeof two)); /* the first has no gfid */
    ck_assert(compares_after(DICT_UNTYPED, two, sizeof two));
    ck_assert(!compares_after(DICT_PTR, two, sizeof two - 1)); /* a half note */
    ck_assert(!compares_after(DICT_PTR, two, 0));
    ck_assert(!compares_after(DICT_STR, two, sizeof two));
    ck_assert(!compares_after(DICT_PTR, many, sizeof many)); /* the rest waits for the next client */
    ck_assert(compares_after(DICT_PTR, many + 1, sizeof many - sizeof many[0]));
}
END_TEST

/* ---- sets of names --------------------------------------------------------------------------- */

enum { MANY_NAMES = 10000 };

static void
add_names(struct name_sets *s, unsigned i, unsigned from, unsigned to)
{
    char name[32];

    for (unsigned n = from; n < to; n++) {
        snprintf(name, sizeof name, "name-%u", n);
        must(name_sets_add(s, i, name) == 0);
    }
}

START_TEST(names_that_all_children_list_are_known_in_large_folders)
{
    struct name_sets *s = name_sets_new(2);

    add_names(s, 0, 0, MANY_NAMES + 1);
    add_names(s, 1, 1, MANY_NAMES);
    name_sets_sort(s);
    ck_assert(!name_sets_all_have(s, "name-5")); /* each name of so small a folder is looked up */
    add_names(s, 1, MANY_NAMES, MANY_NAMES + 2);
    name_sets_sort(s);
    ck_assert(name_sets_all_have(s, "name-5") && name_sets_all_have(s, "name-10000"));
    ck_assert(!name_sets_all_have(s, "name-0"));     /* only on the first child */
    ck_assert(!name_sets_all_have(s, "name-10001")); /* only on the second */
    ck_assert(!name_sets_all_have(s, "other"));
    name_sets_free(s);
    name_sets_free(NULL);
}
END_TEST

START_TEST(a_set_without_memory_keeps_its_names)
{
    struct name_sets *s = name_sets_new(1);
    unsigned refused = 0;

    for (unsigned n = 0; n < MANY_NAMES; n++) {
        char name[32];

        snprintf(name, sizeof name, "name-%u", n);
        scene_starve(1);
        int err = name_sets_add(s, 0, name);

        scene_starve(0);
        must(err == 0 || err == -ENOMEM);
        refused += err != 0;
        must(err == 0 || name_sets_add(s, 0, name) == 0);
    }
    name_sets_sort(s);
    ck_assert(refused > 1 && name_sets_all_have(s, "name-0") && name_sets_all_have(s, "name-9999"));
    name_sets_free(s);
    scene_starve(1);
    ck_assert_ptr_null(name_sets_new(1));
    scene_starve(0);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        a_folder_that_another_healer_has_locked_waits,
        a_brick_that_does_not_tell_its_notes_is_asked_again,
        folders_are_compared_when_all_children_are_there,
        bricks_that_keep_no_notes_are_not_asked,
        a_note_that_was_renewed_meanwhile_stays,
        a_folder_that_a_copy_lacks_keeps_its_notes,
        notes_of_a_folder_that_is_gone_are_removed,
        the_first_change_without_an_unknown_child_marks_the_whole_folder,
        wrong_notes_are_ignored,
        names_that_all_children_list_are_known_in_large_folders,
        a_set_without_memory_keeps_its_names,
    };
    Suite *s = suite_create("replicate-dead-folders");
    TCase *t = tcase_create("notes"), *every = tcase_create("changes");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    tcase_set_timeout(every, 60);
    tcase_add_loop_test(every, names_of_a_dead_client_become_equal_without_a_lookup, 0, CHANGES_OF_NAMES);
    tcase_add_loop_test(every, a_fault_during_the_comparison_keeps_a_way_to_the_difference, 0,
                        CHANGES_OF_NAMES);
    tcase_add_loop_test(every, a_comparison_without_memory_is_repeated, 0, CHANGES_OF_NAMES);
    suite_add_tcase(s, every);
    return s;
}

#include "base/test-main.h"
