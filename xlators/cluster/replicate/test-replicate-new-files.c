/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The lives of new files and folders, whose locks are taken before the first change needs them: files are
 * made, written, changed and closed several times in turn, opened again and written, so that the layer
 * expects each next change. Each life with a fault at each of its calls, with each allocation failing, and
 * with options that switch the locks off; on bricks with and without joined calls. With joined calls a
 * CREATE or OPEN takes the file's lock and mark in the same message: the mount, or a brick, dies before and
 * after each call of the message. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"

static const char *new_name;
static uint8_t new_number;
static uint32_t new_flags;

static void
fill_new(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = new_number}};

    stk->call.loc = (struct loc){.parent = replica_inode("/d"), .name = new_name};
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = new_flags;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_change(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = new_number}};
    struct iatt a = {.gfid = gfid, .mode = stk->call.fop == FOP_setxattr ? S_IFDIR | 0755 : S_IFREG | 0644};

    if (fop_info[stk->call.fop].traits & FOP_BY_FD)
        stk->call.fd = fd_ref(scene.fd);
    else
        stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &a);
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.layout", DICT_PTR, "1", 1) == 0);
    if (stk->call.fop == FOP_writev) {
        stk->call.payload[0] = (struct iovec){(char *)"new contents", 12};
        stk->call.payload_count = 1;
        stk->call.payload_bytes = stk->call.size = 12;
    }
}

static void
fill_reopen(struct call_stack *stk)
{
    struct iatt a = {.gfid = {.b = {0xcc, [15] = new_number}}, .mode = S_IFREG | 0644};

    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &a);
    stk->call.flags = new_flags;
}

static void
close_file(void)
{
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(0);
}

/* Truncates the latest file to nothing, by path as the kernel does after an OPEN with O_TRUNC. */
static int
empty_file(void)
{
    return scene_call(FOP_truncate, fill_change, 0);
}

/* Opens the latest file, and may write and close it. */
static void
reopen(uint32_t flags, bool writes, bool closes)
{
    new_flags = flags;
    if (scene_call(FOP_open, fill_reopen, 0) < 0)
        return;
    if (writes)
        (void)scene_call(FOP_writev, fill_change, 0);
    if (closes)
        close_file();
}

/* Makes, changes and closes one object. `how`: bits of the changes. */
static void
live(unsigned n, unsigned how)
{
    char name[8];

    snprintf(name, sizeof name, "n%u", n);
    new_name = name;
    new_number = (uint8_t)(50 + n);
    new_flags = how & 1 ? O_RDONLY | O_CREAT : O_RDWR | O_CREAT;
    if (how & 8) {
        if (scene_call(FOP_mkdir, fill_new, 0) == 0 && how & 2)
            (void)scene_call(FOP_setxattr, fill_change, 0);
        return;
    }
    if (scene_call(FOP_create, fill_new, 0) < 0)
        return;
    if (how & 2 && !(how & 1))
        (void)scene_call(FOP_writev, fill_change, 0);
    if (how & 4)
        (void)scene_call(FOP_setattr, fill_change, 0);
    if (how & 2)
        (void)scene_call(FOP_flush, fill_change, 0);
    close_file();
    if (how & 16)
        reopen(how & 4 ? O_RDWR | O_TRUNC : O_RDWR, how & 2, how & 1);
    if (scene.fd) {
        (void)empty_file();
        if (how & 4)
            (void)scene_call(FOP_writev, fill_change, 0);
        close_file();
    }
}

static const char *const option_sets[] = {"", " option lock-new-files off\n", " option eager-lock off\n",
                                          " option metadata-lock-kept-ms 0\n option post-op-delay-secs 0\n",
                                          " option share-entry-lock off\n option ensure-durability off\n"};
enum { OPTION_SETS = sizeof option_sets / sizeof option_sets[0], LIVES = 4 };

/* Returns whether the fault or the lack of memory has struck. */
static bool
run_lives(unsigned n, const struct fault *f, int64_t starve_at)
{
    const struct replica_shape *shape = &replica_shapes[n % REPLICA_SHAPES];
    char options[256];

    scene_clear(shape->count, shape->has_arbiter);
    scene.takes_sequences = n / 2 % 2;
    store_make_all("/d", S_IFDIR | 0755, 2, NULL);
    snprintf(options, sizeof options, "%s%s", shape->has_arbiter ? " option arbiter-count 1\n" : "",
             option_sets[n / REPLICA_SHAPES % OPTION_SETS]);
    replicas_begin(options);
    scene_lookup_all();
    live(LIVES, 2 | 4 | 16); /* the layer learns from the first file */
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    for (unsigned k = 0; k < LIVES; k++)
        live(k, (n / 3 + k * 5) % 32);
    bool has_struck = (f && scene.fault[0].has_struck) || scene_has_starved();

    scene_starve(0);
    scene.fault_count = 0;
    scene_run(5000);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    replica_heal_all();
    if (copies_difference())
        finding_add("after the heal %s", copies_difference());
    else if (counters_left())
        finding_add("after the heal %s", counters_left());
    scene_end();
    return has_struck;
}

START_TEST(lives_of_new_files_survive_faults)
{
    findings = 0;
    for (unsigned n = 0; n < 3000; n++) {
        struct fault f = {
            .child = n % 3, .at = n / 7 % 50, .kind = (enum fault_kind)(n % FAULT_CUT), .err = EIO};

        snprintf(run_text, sizeof run_text, "run %u: c%u fault %u at call %u", n, f.child, f.kind, f.at);
        (void)run_lives(n, n % 10 ? &f : NULL, 0);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lives_of_new_files_survive_lack_of_memory)
{
    unsigned struck = 0;

    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < 1500; n++) {
        snprintf(run_text, sizeof run_text, "run %u: without memory at allocation %u", n, 1 + n * 7 % 400);
        struck += run_lives(n, NULL, 1 + n * 7 % 400);
    }
    ck_assert_uint_gt(struck, 300);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- CREATE and OPEN with lock and mark ------------------------------------------------------- */

/* Begins a mount that has seen a new file written. */
static void
begin_expecting(const struct replica_shape *shape, bool takes_sequences)
{
    scene_clear(shape->count, shape->has_arbiter);
    scene.takes_sequences = takes_sequences;
    store_make_all("/d", S_IFDIR | 0755, 2, NULL);
    replicas_begin(shape->has_arbiter ? " option arbiter-count 1\n" : "");
    scene_lookup_all();
    live(LIVES, 2 | 16);
    scene_run(5000);
}

/* Makes a file; the fd stays open. */
static int
make_open(unsigned n, uint32_t flags)
{
    static char name[8];

    snprintf(name, sizeof name, "n%u", n);
    new_name = name;
    new_number = (uint8_t)(50 + n);
    new_flags = flags;
    return scene_call(FOP_create, fill_new, 0);
}

static bool
is_dirty(struct store *s, const char *path)
{
    struct stored_object *o = store_find(s, path);
    struct stored_xattr *x = o ? store_xattr(o, "trusted.afr.dirty") : NULL;
    struct changelog c = {{0}};

    changelog_get(&c, x ? x->bytes : NULL, x ? x->len : 0);
    return c.count[CHANGE_DATA];
}

START_TEST(a_create_takes_lock_and_mark_in_its_message)
{
    begin_expecting(&replica_shapes[0], true);
    scene_arm(NULL, 0);
    scene.sequences = 0;
    ck_assert_int_eq(make_open(1, O_RDWR | O_CREAT | O_EXCL), 0);
    ck_assert_uint_eq(scene.sequences, scene.count);
    for (unsigned i = 0; i < scene.count; i++)
        ck_assert(is_dirty(&scene.store[i], "/d/n1"));
    scene_arm(NULL, 0);
    ck_assert_int_eq(scene_call(FOP_writev, fill_change, 0), 12);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], scene.count); /* the write alone */
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(5000);
    ck_assert_uint_eq(store_locks(), 0);
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

START_TEST(an_open_takes_lock_and_mark_in_its_message)
{
    begin_expecting(&replica_shapes[0], true);
    live(1, 0);
    scene_run(5000);
    scene.sequences = 0;
    reopen(O_RDWR, false, false);
    ck_assert_uint_eq(scene.sequences, scene.count);
    for (unsigned i = 0; i < scene.count; i++)
        ck_assert(is_dirty(&scene.store[i], "/d/n1"));
    scene_arm(NULL, 0);
    ck_assert_int_eq(scene_call(FOP_writev, fill_change, 0), 12);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], scene.count); /* the write alone */
    scene_arm(NULL, 0);
    scene.sequences = 0;
    close_file();
    ck_assert_uint_eq(scene.sequences, scene.count);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], 2 * scene.count); /* mark and unlock */
    ck_assert_uint_eq(store_locks(), 0);
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

/* Opens the latest file, which has contents, and replaces these; with `by_path` the truncation is that of the
 * kernel after an OPEN with O_TRUNC. */
static void
replace_contents(bool by_path)
{
    begin_expecting(&replica_shapes[0], true);
    reopen(O_RDWR, false, false);
    scene_arm(NULL, 0);
    if (by_path)
        ck_assert_int_eq(empty_file(), 0);
    else
        ck_assert_int_eq(scene_call(FOP_ftruncate, fill_change, 0), 0);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], scene.count); /* the truncation alone */
    for (unsigned i = 0; i < scene.count; i++)
        ck_assert_uint_eq(store_find(&scene.store[i], "/d/n4")->stat.size, 0);
    ck_assert_int_eq(scene_call(FOP_writev, fill_change, 0), 12);
    ck_assert_uint_eq(scene.calls[ANY_CHILD], 2 * scene.count); /* and the write */
    scene_arm(NULL, 0);
    close_file();
    ck_assert_uint_eq(scene.calls[ANY_CHILD], 2 * scene.count); /* mark and unlock, no FSYNC */
    ck_assert_uint_eq(store_locks(), 0);
    ck_assert_ptr_null(counters_left());
    scene_end();
}

START_TEST(a_truncation_to_nothing_keeps_the_lock_for_the_write)
{
    replace_contents(false);
    replace_contents(true);
}
END_TEST

START_TEST(a_truncation_of_a_closed_file_keeps_no_lock)
{
    begin_expecting(&replica_shapes[0], true);
    ck_assert_int_eq(empty_file(), 0);
    ck_assert_uint_eq(store_locks(), 0);
    ck_assert_ptr_null(counters_left());
    reopen(O_RDWR, true, false); /* the write is not synced */
    ck_assert_int_eq(scene_call(FOP_writev, fill_change, 0), 12);
    scene_arm(NULL, 0);
    ck_assert_int_eq(empty_file(), 0);
    close_file();
    /* the truncation, FSYNC because two writes were no append, mark and unlock */
    ck_assert_uint_eq(scene.calls[ANY_CHILD], 4 * scene.count);
    scene_end();
}
END_TEST

START_TEST(an_open_for_reading_takes_no_lock)
{
    begin_expecting(&replica_shapes[0], true);
    scene.sequences = 0;
    reopen(O_RDONLY, false, true);
    ck_assert_uint_eq(scene.sequences, 0);
    reopen(O_RDWR, false, true); /* this one is expected to be written, and is not */
    ck_assert_uint_eq(scene.sequences, 2 * scene.count);
    reopen(O_RDWR, false, true);
    ck_assert_uint_eq(scene.sequences, 2 * scene.count);
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

/* As a lie: another client has the lock on the second brick. */
static void
refuse_second_lock(unsigned child, struct call_stack *stk, int *ret)
{
    if (child == 1 && stk->takes_fd && stk->call.fop == FOP_finodelk && stk->call.type != FLOCK_UNLOCK)
        *ret = -EAGAIN;
}

START_TEST(an_open_of_a_locked_file_leaves_the_file_unmarked)
{
    begin_expecting(&replica_shapes[0], true);
    scene.sequences = 0;
    scene.lie = refuse_second_lock;
    reopen(O_RDWR, false, false);
    ck_assert_ptr_nonnull(scene.fd);
    ck_assert_uint_eq(scene.sequences, scene.count);
    scene.lie = NULL;
    for (unsigned i = 0; i < scene.count; i++)
        ck_assert(!is_dirty(&scene.store[i], "/d/n4"));
    ck_assert_uint_eq(store_locks(), 1); /* the other client's */
    close_file();
    scene.sequences = 0;
    reopen(O_RDWR, false, true);
    ck_assert_uint_eq(scene.sequences, 0); /* no further attempt */
    scene_end();
}
END_TEST

/* As a lie: opens the file that another client has made under this name. */
static void
open_present(unsigned child, struct call_stack *stk, int *ret)
{
    struct stored_object *o = stk->call.fop == FOP_create ? store_find(&scene.store[child], "/d/n1") : NULL;
    struct inode *inode = o && *ret == -EEXIST ? inode_link(scene.graph->inodes, NULL, NULL, &o->stat) : NULL;

    if (!inode)
        return;
    *ret = 0;
    stk->reply.stat = o->stat;
    stk->reply.fd = fd_new(inode, NULL, stk->call.flags, false);
    inode_unref(inode);
}

START_TEST(a_create_that_opens_another_file_leaves_that_file_unmarked)
{
    begin_expecting(&replica_shapes[0], true);
    store_make_all("/d/n1", S_IFREG | 0644, 77, "others");
    scene.sequences = 0;
    scene.lie = open_present;
    ck_assert_int_eq(make_open(1, O_RDWR | O_CREAT), 0);
    ck_assert_uint_eq(scene.sequences, scene.count);
    ck_assert_uint_eq(scene.stat.gfid.b[15], 77);
    ck_assert_uint_eq(store_locks(), 0);
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

/* Runs CREATE, write and close, or with `is_open` OPEN, write and close, with a fault, and then a new mount
 * that heals. Returns whether the fault has struck. */
static bool
die_in_life(const struct replica_shape *shape, const struct fault *f, bool is_open)
{
    begin_expecting(shape, true);
    scene_arm(f, 1);
    if (is_open && f->at % 3 == 0) {
        reopen(O_RDWR, false, false);
        if (scene.fd && empty_file() == 0)
            (void)scene_call(FOP_writev, fill_change, 0);
        if (scene.fd)
            close_file();
    } else if (is_open) {
        reopen(f->at % 2 ? O_RDWR | O_TRUNC : O_RDWR, true, true);
    } else {
        live(1, 2);
    }
    bool has_struck = scene.fault[0].has_struck;
    bool has_died = scene.is_cut;

    scene_run(5000);
    if (has_died) {
        scene_end();
        scene.takes_sequences = true;
        replicas_begin(shape->has_arbiter ? " option arbiter-count 1\n" : "");
        scene_lookup_all();
    }
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    replica_heal_all();
    if (copies_difference())
        finding_add("after the heal %s", copies_difference());
    else if (counters_left())
        finding_add("after the heal %s", counters_left());
    scene_end();
    return has_struck;
}

/* Returns the number of faults that have struck. */
static unsigned
die_at_each_call(const struct replica_shape *shape, unsigned child, enum fault_kind kind)
{
    unsigned struck = 0;

    for (unsigned n = 0; n < 20 * shape->count; n++) {
        struct fault f = {.child = child, .at = n / 2, .kind = kind, .err = EIO};

        snprintf(run_text, sizeof run_text, "%u copies%s: c%u fault %u at call %u", shape->count,
                 n % 2 ? ", open" : "", child, kind, f.at);
        struck += die_in_life(shape, &f, n % 2);
    }
    return struck;
}

START_TEST(a_death_in_a_creation_or_open_leaves_a_state_that_heals)
{
    unsigned struck = 0;

    findings = 0;
    for (unsigned s = 0; s < REPLICA_SHAPES; s++) {
        const struct replica_shape *shape = &replica_shapes[s];

        for (unsigned n = 0; n < FAULT_KINDS * (shape->count + 1); n++) {
            unsigned child = n / FAULT_KINDS < shape->count ? n / FAULT_KINDS : ANY_CHILD;

            struck += die_at_each_call(shape, child, (enum fault_kind)(n % FAULT_KINDS));
        }
    }
    ck_assert_uint_gt(struck, 400);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a link file of cluster/distribute ------------------------------------------------------- */

static void
fill_second_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = replica_inode("/d"), .name = "second"};
    stk->call.mode = S_IFREG | 01000;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ,
                       &store_find(&scene.store[0], "/d/left")->stat.gfid) == 0);
}

static uint32_t
accusation_of(const char *path, enum change what)
{
    struct stored_xattr *x = store_xattr(store_find(&scene.store[0], path), "trusted.afr.c2");
    struct changelog c = {0};

    if (x)
        changelog_get(&c, x->bytes, x->len);
    return c.count[what];
}

/* A dead rename has left a link file. The next rename makes a link file with the same gfid, which is a second
 * name of the file. All copies have the file, so only the folder accuses the child that is away: nobody would
 * look up the first name, which leads nowhere, and heal the file. */
START_TEST(a_second_name_of_a_link_file_accuses_in_the_folder_only)
{
    scene_clear(3, false);
    store_make_all("/d", S_IFDIR | 0755, 21, NULL);
    store_make_all("/d/left", S_IFREG | 01000, 22, NULL);
    replicas_begin("");
    scene_child_down(2);
    ck_assert_int_eq(scene_call(FOP_mknod, fill_second_name, 5000), 0);
    ck_assert_ptr_nonnull(store_find(&scene.store[0], "/d/second"));
    ck_assert_uint_eq(accusation_of("/d", CHANGE_ENTRY), 1);
    ck_assert_uint_eq(accusation_of("/d/left", CHANGE_DATA), 0);
    ck_assert_uint_eq(accusation_of("/d/left", CHANGE_METADATA), 0);
    scene_child_up(2);
    for (int n = 0; n < 4; n++) {
        scene_lookup_all();
        scene_run(5000);
    }
    ck_assert_msg(!copies_difference() && !counters_left(), "not healed");
    scene_end();
}
END_TEST

static void
fill_folder_lookup(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = new_name};
    stk->call.name = new_name;
}

/* A link file was renamed while a brick was away, so the others accuse the brick of missing it. The brick has
 * the file under its former name. The mount looks up the folders alone: the file of the name is gone. */
START_TEST(a_link_file_that_gets_its_name_back_is_healed)
{
    static const char *const folders[] = {"/d", "/e"};

    scene_clear(3, false);
    store_make_all("/d", S_IFDIR | 0755, 21, NULL);
    store_make_all("/e", S_IFDIR | 0755, 23, NULL);
    (void)store_make(2, "/e/first", S_IFREG | 01000, 22, NULL);
    for (unsigned by = 0; by < 2; by++) {
        (void)store_make(by, "/d/second", S_IFREG | 01000, 22, NULL);
        replica_accuse("/d/second", by, 2, CHANGE_DATA);
        replica_accuse("/d/second", by, 2, CHANGE_METADATA);
        for (unsigned n = 0; n < 2; n++)
            replica_accuse(folders[n], by, 2, CHANGE_ENTRY);
    }
    replicas_begin("");
    for (unsigned n = 0; n < 2; n++) {
        new_name = folders[n] + 1;
        ck_assert_int_eq(scene_call(FOP_lookup, fill_folder_lookup, 5000), 0);
    }
    ck_assert_ptr_null(copies_difference());
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-new-files");
    TCase *t = tcase_create("lives");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, lives_of_new_files_survive_faults);
    tcase_add_test(t, lives_of_new_files_survive_lack_of_memory);
    tcase_add_test(t, a_create_takes_lock_and_mark_in_its_message);
    tcase_add_test(t, a_create_that_opens_another_file_leaves_that_file_unmarked);
    tcase_add_test(t, an_open_takes_lock_and_mark_in_its_message);
    tcase_add_test(t, a_truncation_to_nothing_keeps_the_lock_for_the_write);
    tcase_add_test(t, a_truncation_of_a_closed_file_keeps_no_lock);
    tcase_add_test(t, an_open_for_reading_takes_no_lock);
    tcase_add_test(t, an_open_of_a_locked_file_leaves_the_file_unmarked);
    tcase_add_test(t, a_death_in_a_creation_or_open_leaves_a_state_that_heals);
    tcase_add_test(t, a_second_name_of_a_link_file_accuses_in_the_folder_only);
    tcase_add_test(t, a_link_file_that_gets_its_name_back_is_healed);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
