/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* States that other clients and dead mounts leave behind in a distributed volume: folders that lack
 * subvolumes or ranges, attributes that a change has left unequal, contradictory names looked up with a
 * fault, stale linkto files in a folder that is removed, and layouts that changed under this mount. */
#include "xlators/cluster/distribute/test-distribute-calls.h"

/* ---- folders --------------------------------------------------------------------------------- */

enum folder_state { ABSENT, NO_RANGE, OWN_RANGE, WHOLE_RANGE, ZERO_RANGE, OTHER_MODE, FOLDER_STATES };

static void
put_word(unsigned char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(word >> (24 - 8 * i));
}

static void
put_range(struct stored_object *o, uint32_t start, uint32_t end)
{
    unsigned char bytes[16] = {0};

    put_word(bytes, 1);
    put_word(bytes + 8, start);
    put_word(bytes + 12, end);
    must(store_set_xattr(o, LAYOUT_KEY, bytes, sizeof bytes) == 0);
}

static void
folder_make(unsigned i, enum folder_state state)
{
    static const uint32_t starts[] = {0, 0x55555555, 0xaaaaaaaa};
    static const uint32_t ends[] = {0x55555554, 0xaaaaaaa9, 0xffffffff};
    uint32_t mode = S_IFDIR | (state == OTHER_MODE ? 0700 : 0755);

    if (state == ABSENT)
        return;
    struct stored_object *o = store_make(i, "/d", mode, FOLDER, NULL);

    if (state == OWN_RANGE || state == OTHER_MODE)
        put_range(o, starts[i], ends[i]);
    else if (state == WHOLE_RANGE)
        put_range(o, 0, UINT32_MAX);
    else if (state == ZERO_RANGE)
        put_range(o, 0, 0);
}

static uint32_t
word_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Each hash has one subvolume, and the folder is the same everywhere. */
static void
check_folder(bool is_known)
{
    uint64_t sum = 0;
    unsigned has = 0;

    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/d");
        struct stored_xattr *x = o ? store_xattr(o, LAYOUT_KEY) : NULL;

        has += o != NULL;
        if (x && word_at(x->bytes + 12))
            sum += (uint64_t)word_at(x->bytes + 12) - word_at(x->bytes + 8) + 1;
        if (o && store_find(&scene.store[0], "/d") &&
            o->stat.mode != store_find(&scene.store[0], "/d")->stat.mode)
            finding_add("the folder has another mode on c%u", i);
    }
    if (is_known && (has != scene.count || sum != UINT64_C(1) << 32))
        finding_add("the folder is on %u subvolumes, with ranges of %llx hashes", has,
                    (unsigned long long)sum);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

static bool
folder_volume(unsigned n, bool *is_known)
{
    *is_known = false;
    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= FOLDER_STATES) {
        folder_make(i, (enum folder_state)(n % FOLDER_STATES));
        *is_known |= n % FOLDER_STATES != ABSENT;
    }
    return n == 0;
}

/* Looks at the folder until a mount has done all that it can, and checks the folder. */
static void
folder_finish(bool is_known)
{
    children_return();
    for (int n = 0; n < 3; n++)
        (void)name_call(FOP_lookup, "/d");
    check_folder(is_known);
    scene_end();
}

START_TEST(lookup_mends_every_folder)
{
    bool is_known;

    findings = 0;
    log_set_level(LOG_CRITICAL);
    for (unsigned n = 0; folder_volume(n, &is_known); n++) {
        snprintf(run_text, sizeof run_text, "folder states %u", n);
        mount_begin("");
        folder_finish(is_known);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_a_folder_survives_faults)
{
    bool is_known;

    findings = 0;
    for (unsigned n = 0; folder_volume(n, &is_known); n++) {
        for (unsigned k = 0; k < 9; k++) {
            unsigned m = n * 13 + k * 29;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 9,
                              .kind = (enum fault_kind)(m / 27 % FAULT_KINDS),
                              .err = m % 2 ? EIO : ENOENT};

            (void)folder_volume(n, &is_known);
            snprintf(run_text, sizeof run_text, "folder states %u, c%u fault %u errno %d at call %u", n,
                     f.child, f.kind, f.err, f.at);
            mount_begin("");
            scene_arm(&f, 1);
            (void)name_call(FOP_lookup, "/d");
            if (scene.is_cut) {
                scene.fault_count = 0;
                scene_end();
                mount_begin("");
            }
            folder_finish(is_known && f.err != ENOENT);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_a_folder_survives_lack_of_memory)
{
    bool is_known;

    findings = 0;
    scene_init_starving();
    for (unsigned n = 1; folder_volume(n, &is_known); n += 3) {
        for (unsigned at = 1 + n % 7; at < 200; at += 29) {
            (void)folder_volume(n, &is_known);
            snprintf(run_text, sizeof run_text, "folder states %u, without memory at allocation %u", n, at);
            mount_begin("");
            scene_starve(at);
            (void)name_call(FOP_lookup, "/d");
            scene_starve(0);
            folder_finish(is_known);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- attributes that a change has left unequal ----------------------------------------------- */

/* Sets the count of changes under way on the subvolume that has the folder's attributes. */
static void
attributes_volume(unsigned mds, int32_t count)
{
    unsigned char bytes[4];

    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    path_a = "/d";
    must(name_call(FOP_mkdir, "/d") == 0);
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/d");
        struct stored_xattr *x = store_xattr(o, MDS_KEY);

        if (x)
            *x = o->xattr[--o->xattr_count];
        put_word(bytes, (uint32_t)count);
        if (i == mds)
            must(store_set_xattr(o, MDS_KEY, bytes, sizeof bytes) == 0);
        (void)store_set_xattr(o, "user.a", i == mds ? "right" : "wrong", 5);
        if (i != mds)
            (void)store_set_xattr(o, "user.old", "old", 3);
    }
}

START_TEST(attributes_of_a_broken_change_are_mended)
{
    for (unsigned mds = 0; mds < SUBVOLUMES; mds++) {
        for (unsigned at = 0; at < 20; at++) {
            struct fault f = {.child = at % 3, .at = at / 3, .kind = FAULT_REFUSED, .err = EIO};

            attributes_volume(mds, -1);
            mount_begin("");
            scene_arm(&f, at < 18);
            (void)name_call(FOP_lookup, "/d");
            children_return();
            (void)name_call(FOP_lookup, "/d");
            scene_end();
            mount_begin("");
            (void)name_call(FOP_lookup, "/d");
            (void)name_call(FOP_lookup, "/d");
            for (unsigned i = 0; i < SUBVOLUMES; i++) {
                struct stored_object *o = store_find(&scene.store[i], "/d");

                must(memcmp(store_xattr(o, "user.a")->bytes, "right", 5) == 0);
            }
            must(!store_locks());
            scene_end();
        }
    }
}
END_TEST

/* ---- contradictory names, looked up with a fault --------------------------------------------- */

enum name_state {
    NOTHING,
    REAL_A,
    REAL_B,
    LINK_TO_0,
    LINK_TO_1,
    LINK_TO_2,
    LINK_ASTRAY,
    A_FOLDER,
    NAME_STATES
};

static void
name_volume(unsigned n)
{
    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= NAME_STATES) {
        enum name_state state = (enum name_state)(n % NAME_STATES);

        if (state == REAL_A || state == REAL_B)
            (void)store_make(i, "/n", S_IFREG | 0644, state == REAL_A ? FILE_A : FILE_B, "contents");
        else if (state == A_FOLDER)
            (void)store_make(i, "/n", S_IFDIR | 0755, FOLDER, NULL);
        else if (state != NOTHING)
            linkto_make_at(i, "/n", FILE_A, state == LINK_ASTRAY ? 7 : state - LINK_TO_0);
    }
}

/* No file and no folder is removed by a LOOKUP. */
static void
check_names_kept(unsigned n)
{
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= NAME_STATES) {
        struct stored_object *o = store_find(&scene.store[i], "/n");
        enum name_state state = (enum name_state)(n % NAME_STATES);
        bool is_real = state == REAL_A || state == REAL_B || state == A_FOLDER;

        if (is_real && (!o || (state == A_FOLDER) != S_ISDIR(o->stat.mode)))
            finding_add("LOOKUP has removed the object on c%u", i);
    }
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

static const char *const lookup_options[] = {"", " option lookup-unhashed off\n",
                                             " option lookup-unhashed auto\n",
                                             " option lookup-optimize off\n"};

static void
look_at_name(unsigned n, const struct fault *f, unsigned starve_at)
{
    name_volume(n);
    mount_begin(lookup_options[n % 4]);
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    (void)name_call(FOP_lookup, "/n");
    scene_starve(0);
    bool is_cut = scene.is_cut;

    if (!is_cut) {
        children_return();
        (void)name_call(FOP_lookup, "/n");
    }
    scene.fault_count = 0;
    scene_end();
    if (is_cut) {
        mount_begin("");
        (void)name_call(FOP_lookup, "/n");
        scene_end();
    }
    check_names_kept(n);
}

START_TEST(lookup_of_contradictions_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < NAME_STATES * NAME_STATES * NAME_STATES; n++) {
        for (unsigned k = 0; k < 5; k++) {
            unsigned m = n * 7 + k * 31;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 7,
                              .kind = (enum fault_kind)(m / 21 % FAULT_KINDS),
                              .err = m % 2 ? EIO : ESTALE};

            snprintf(run_text, sizeof run_text, "name states %u, c%u fault %u at call %u", n, f.child, f.kind,
                     f.at);
            look_at_name(n, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_contradictions_survives_lack_of_memory)
{
    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < NAME_STATES * NAME_STATES * NAME_STATES; n++) {
        for (unsigned at = 1 + n % 13; at < 90; at += 23) {
            snprintf(run_text, sizeof run_text, "name states %u, without memory at allocation %u", n, at);
            look_at_name(n, NULL, at);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a folder with linkto files is removed --------------------------------------------------- */

enum left { EMPTY, STALE_LINK, LINK_OF_FILE, MANY_LINKS, REAL_FILE, LEFTS };

static void
left_make(unsigned i, enum left left)
{
    char path[16];

    snprintf(path, sizeof path, "/e/l%u", i);
    if (left == STALE_LINK)
        linkto_make_at(i, path, (uint8_t)(30 + i), (i + 1) % SUBVOLUMES);
    else if (left == REAL_FILE)
        (void)store_make(i, path, S_IFREG | 0644, (uint8_t)(30 + i), "real");
    for (unsigned k = 0; k < 5 && left == MANY_LINKS; k++) {
        snprintf(path, sizeof path, "/e/m%u%u", i, k);
        linkto_make_at(i, path, (uint8_t)(33 + 5 * i + k), (i + 1) % SUBVOLUMES);
    }
    if (left == LINK_OF_FILE) { /* a file that another client has just made */
        linkto_make_at(i, path, (uint8_t)(50 + i), (i + 1) % SUBVOLUMES);
        (void)store_make((i + 1) % SUBVOLUMES, path, S_IFREG | 0644, (uint8_t)(50 + i), "fresh");
    }
}

static void
remove_folder(unsigned n, const struct fault *f, unsigned starve_at)
{
    bool has_file = false;

    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    must(name_call(FOP_mkdir, "/e") == 0);
    for (unsigned i = 0, m = n; i < SUBVOLUMES; i++, m /= LEFTS) {
        left_make(i, (enum left)(m % LEFTS));
        has_file |= m % LEFTS == LINK_OF_FILE || m % LEFTS == REAL_FILE;
    }
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    int ret = name_call(FOP_rmdir, "/e");

    scene_starve(0);
    if (has_file && ret >= 0)
        finding_add("a folder with a file was removed");
    if (!has_file && !f && !starve_at && ret < 0)
        finding_add("an empty folder was not removed: %s", strerror(-ret));
    bool is_cut = scene.is_cut;

    scene_run(1000);
    if (store_locks() && !is_cut)
        finding_add("locks are left: %s", store_locks_text());
    if (!is_cut)
        children_return();
    scene.fault_count = 0;
    scene_end();
    mount_begin("");
    (void)name_call(FOP_lookup, "/e");
    ret = name_call(FOP_rmdir, "/e");
    if (has_file ? ret != -ENOTEMPTY : ret < 0 && ret != -ENOENT)
        finding_add("the second RMDIR: %s", ret < 0 ? strerror(-ret) : "success");
    scene_end();
}

START_TEST(a_folder_of_linkto_files_can_be_removed)
{
    findings = 0;
    for (unsigned n = 0; n < LEFTS * LEFTS * LEFTS; n++) {
        snprintf(run_text, sizeof run_text, "folder contents %u", n);
        remove_folder(n, NULL, 0);
        for (unsigned k = 0; k < 6; k++) {
            unsigned m = n * 11 + k * 17;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 14,
                              .kind = (enum fault_kind)(m / 42 % FAULT_KINDS),
                              .err = EIO};

            snprintf(run_text, sizeof run_text, "folder contents %u, c%u fault %u at call %u", n, f.child,
                     f.kind, f.at);
            remove_folder(n, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_folder_of_linkto_files_is_removed_without_memory)
{
    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < LEFTS * LEFTS * LEFTS; n++) {
        unsigned at = 1 + n * 7 % 330;

        snprintf(run_text, sizeof run_text, "folder contents %u, without memory at allocation %u", n, at);
        remove_folder(n, NULL, at);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a folder that a heal of replicas has parked ----------------------------------------------- */

/* The other subvolumes have the folder under its name. The subvolume with the parked folder gets it back by
 * its own heal; a move from the hidden folder would meet the copies that a healer is about to change. */
START_TEST(a_parked_folder_is_not_moved)
{
    static const char hidden[] = "/.glusterfs-anonymous-inode-ba";
    char parked[64];

    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES; n++) {
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        must(name_call(FOP_mkdir, "/p") == 0);
        struct stored_object folder = *store_find(&scene.store[n], "/p");

        scene_end();
        store_drop_name(&scene.store[n], store_name_of(&scene.store[n], 0, "p"));
        for (unsigned i = 0; i < SUBVOLUMES; i++) {
            const struct stored_xattr *range =
                store_xattr(&scene.store[i].object[0], "trusted.glusterfs.dht");

            must(store_set_xattr(store_make(i, hidden, S_IFDIR | 0700, 40, NULL), range->key, range->bytes,
                                 range->len) == 0);
        }
        snprintf(parked, sizeof parked, "%s/p", hidden);
        store_make(n, parked, S_IFDIR | 0755, 41, NULL)->stat.gfid = folder.stat.gfid;
        mount_begin("");
        (void)name_call(FOP_lookup, "/p");
        scene_run(1000);
        if (!store_find(&scene.store[n], parked) || store_find(&scene.store[n], "/p"))
            finding_add("c%u: the parked folder was moved, or made twice", n);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- layouts that changed under the mount ---------------------------------------------------- */

/* A rebalance has given the whole root to subvolume `owner`. */
static void
change_layout(unsigned owner)
{
    for (unsigned i = 0; i < scene.count; i++)
        put_range(&scene.store[i].object[0], 0, i == owner ? UINT32_MAX : 0);
}

START_TEST(a_file_is_made_by_the_present_layout)
{
    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES * 30; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 2 % 6, .kind = FAULT_REFUSED, .err = EIO};
        unsigned owner = n / SUBVOLUMES % SUBVOLUMES;
        char path[8];

        snprintf(run_text, sizeof run_text, "run %u", n);
        snprintf(path, sizeof path, "/n%u", n % 5);
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        change_layout(owner);
        scene_arm(&f, n % 2);
        int ret = name_call(FOP_create, path);

        if (!(n % 2) && (ret < 0 || !store_find(&scene.store[owner], path)))
            finding_add("%s is not on c%u: %d", path, owner, ret);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_arm(NULL, 0);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        lookup_mends_every_folder,
        lookup_of_a_folder_survives_faults,
        lookup_of_a_folder_survives_lack_of_memory,
        attributes_of_a_broken_change_are_mended,
        lookup_of_contradictions_survives_faults,
        lookup_of_contradictions_survives_lack_of_memory,
        a_folder_of_linkto_files_can_be_removed,
        a_folder_of_linkto_files_is_removed_without_memory,
        a_parked_folder_is_not_moved,
        a_file_is_made_by_the_present_layout,
    };
    Suite *s = suite_create("distribute-states");
    TCase *t = tcase_create("states");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
