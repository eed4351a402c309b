/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The versions that tell children with the last change from children that are behind: after a second change
 * with other children away, with exactly K good children, of objects that are being removed, and of
 * directories. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/log.h"
#include "xlators/cluster/disperse/test-disperse-file.h"

/* ---- a second change, with other children away ----------------------------------------------- */

static int
change_all_bytes(struct contents *after)
{
    return change_bytes(after, 0, FILE_BYTES, 'z');
}

/* From here on, no child is healed. Reads give the bytes of the change, or EIO. */
static void
check_no_old_bytes(const struct contents *after)
{
    for (unsigned down = 0; down <= CHILDREN; down++) {
        if (down < CHILDREN)
            scene_child_down(down);
        int ret = scene_call(FOP_readv, fill_read, 0);

        if (ret >= 0 && !reads(after))
            finding_add("without c%u the file has other bytes than written", down);
        if (down < CHILDREN)
            scene_child_up(down);
        scene_run(0);
    }
}

/* A child misses a change and comes back stale, then a good child goes away: no K children are good. A change
 * is refused, and raises no counter of the stale child. */
START_TEST(a_change_without_enough_good_children_raises_no_version)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * CHILDREN; pair++) {
        unsigned stale = pair / CHILDREN, away = pair % CHILDREN;
        struct contents after;

        if (stale == away)
            continue;
        snprintf(run_text, sizeof run_text, "c%u stale, c%u away", stale, away);
        file_make(false);
        after = before;
        scene_child_down(stale);
        ck_assert(change_stripe(&after) >= 0);
        scene_run(2000);
        scene_child_up(stale);
        scene_child_down(away);
        scene_run(2000);
        struct stored_object *o = store_find(&scene.store[stale], "/f");
        struct stored_xattr old = *store_xattr(o, "trusted.ec.version");
        struct contents refused = after;
        int ret = _i ? change_mode(&refused) : change_part(&refused);
        if (ret != -EIO)
            finding_add("a change of one good child and a stale one gives %d", ret);
        scene_run(2000);
        if (memcmp(old.bytes, store_xattr(o, "trusted.ec.version")->bytes, old.len) != 0)
            finding_add("the stale child's version has risen");
        scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
        scene_run(5000);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* A mount dies during a change that child `lost` misses; then another mount changes all bytes, while child
 * `away` (CHILDREN: none) is away. Returns false: the mount did not die. */
static bool
run_second_change(unsigned lost, unsigned away, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at %u, then c%u down", lost, dies_at, away);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    scene_arm(&f, 1);
    (void)change_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    must(scene_call(FOP_open, fill_file, 0) == 0 || scene_call(FOP_open, fill_file, 0) == -EIO);
    if (away < CHILDREN)
        scene_child_down(away);
    scene_run(2000);
    after = before;
    if (scene.fd && change_all_bytes(&after) >= 0) {
        scene_run(2000);
        if (away < CHILDREN)
            scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
    }
    scene_run(5000);
    scene_end();
    return has_died;
}

START_TEST(a_version_of_a_dead_mount_is_met_by_no_later_change)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * (CHILDREN + 1); pair++) {
        for (unsigned n = 0; run_second_change(pair / (CHILDREN + 1), pair % (CHILDREN + 1), n); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* Another client removes the file while this one keeps its lock: the children learn that one after another.
 * An error of the volume would lose the write; a layer that keeps blocks looks for a new file instead. */
START_TEST(a_change_of_a_file_that_is_being_removed_is_stale)
{
    static const enum fop fops[] = {FOP_writev, FOP_readv, FOP_writev};

    for (unsigned gone = 2; gone <= CHILDREN; gone++) {
        for (unsigned n = 0; n < sizeof fops / sizeof fops[0]; n++) {
            file_make(false);
            if (n < 2) /* the lock is held, and the counters are known */
                must(scene_call(FOP_readv, fill_read, 0) >= 0);
            for (unsigned i = 0; i < gone; i++)
                store_find(&scene.store[i], "/f")->stat.nlink = 0;
            int ret = fops[n] == FOP_readv ? scene_call(FOP_readv, fill_read, 0) : write_without_fd();
            ck_assert_msg(ret == -ESTALE, "%u children without the file, case %u: %d", gone, n, ret);
            scene_run(5000);
            scene_end();
        }
    }
}
END_TEST

/* ---- exactly K good children ------------------------------------------------------------------ */

/* Changes half a stripe: fragments of a stripe whose bytes are all the same may be equal for two such
 * stripes. */
static int
change_half_stripe(struct contents *after)
{
    return change_bytes(after, 0, 512, 'c');
}

/* A mount writes while child `lost` is away, and dies in the next write. All children come up, and another
 * mount heals the file. Both writes have the same bytes, so a write that is half done changes nothing.
 * Returns the result of a read; 1: the mount lived. */
static int
run_death_with_k(unsigned lost, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of the second write", lost, dies_at);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_arm(&f, 1);
    (void)change_half_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(true);
    heal_file();
    heal_file();
    must(scene_call(FOP_open, fill_file, 0) == 0 || !scene.fd);
    int ret = scene.fd ? scene_call(FOP_readv, fill_read, 0) : -EIO;
    if (ret >= 0 && !reads(&after))
        finding_add("the file has other bytes than written");
    scene_run(5000);
    scene_end();
    return has_died ? ret : 1;
}

START_TEST(a_file_with_exactly_k_good_children_is_healed)
{
    unsigned died = 0;

    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        int ret = 0;

        for (unsigned n = 0; ret != 1; n++) {
            ret = run_death_with_k(lost, n);
            died += ret != 1;
            if (ret < 0)
                finding_add("the file cannot be read: %s", strerror(-ret));
        }
    }
    ck_assert_uint_gt(died, 12);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static bool
is_zero_xattr(const struct stored_xattr *x)
{
    static const unsigned char zeros[STORED_TEXT_MAX];

    return !x || memcmp(x->bytes, zeros, x->len) == 0;
}

static uint32_t wanted_mode;

static void
fill_wanted_mode(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.stbuf.mode = wanted_mode;
    stk->call.valid = SETATTR_MODE;
}

/* A mount changes the mode while child `lost` is away, and dies in the next change. All children come up, and
 * another mount heals the file. Returns false: the mount lived. */
static bool
run_death_in_setattr(unsigned lost, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of a SETATTR", lost, dies_at);
    file_make(false);
    scene_child_down(lost);
    scene_run(0);
    wanted_mode = 0640;
    must(scene_call(FOP_fsetattr, fill_wanted_mode, 0) == 0);
    scene_run(5000);
    scene_arm(&f, 1);
    wanted_mode = 0600;
    (void)scene_call(FOP_fsetattr, fill_wanted_mode, 0);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    heal_file();
    heal_file();
    uint32_t mode = store_find(&scene.store[0], "/f")->stat.mode & 07777;
    if (mode != 0640 && mode != 0600)
        finding_add("the mode is %o", mode);
    for (unsigned i = 1; i < CHILDREN; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");

        if ((o->stat.mode & 07777) != mode || !is_zero_xattr(store_xattr(o, "trusted.ec.dirty")))
            finding_add("c%u is not healed", i);
    }
    scene_end();
    return has_died;
}

START_TEST(attributes_of_exactly_k_good_children_are_healed)
{
    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        for (unsigned n = 0; run_death_in_setattr(lost, n); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* A good child comes back with an earlier fragment, whose version is between those of the other children. No
 * K children have one state: the versions alone would decode garbage, and the times tell. */
START_TEST(an_earlier_fragment_makes_no_file_of_k_children)
{
    struct contents after;

    file_make(false);
    struct stored_object *o = store_find(&scene.store[1], "/f"), earlier = *o;
    after = before;
    scene_child_down(2);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_end();
    *o = earlier;
    store_xattr(o, "trusted.ec.version")->bytes[7]++;
    set_begin(true);
    heal_file();
    ck_assert_int_eq(scene_call(FOP_open, fill_file, 0), 0);
    ck_assert_int_eq(scene_call(FOP_readv, fill_read, 0), -EIO);
    scene_run(5000);
    scene_end();
}
END_TEST

/* As a lie: the first child's limit is reached a little before the second's. */
static void
lie_over_quota(unsigned child, struct call_stack *stk, int *ret)
{
    if (child == 0 && stk->call.fop == FOP_writev)
        *ret = -EDQUOT;
}

START_TEST(a_write_over_the_limit_of_one_of_k_children_names_the_limit)
{
    struct contents after;

    file_make(false);
    after = before;
    scene_child_down(2);
    scene_run(0);
    scene.lie = lie_over_quota;
    ck_assert_int_eq(change_half_stripe(&after), -EDQUOT);
    scene.lie = NULL;
    scene_run(5000);
    scene_end();
}
END_TEST

static bool
log_has(const char *path, const char *text)
{
    char line[1024];
    bool has = false;
    FILE *f = fopen(path, "r");

    must(f);
    while (!has && fgets(line, sizeof line, f))
        has = strstr(line, text) != NULL;
    fclose(f);
    return has;
}

/* Another client removes the file before this one writes its counters back. Of a file that more than R
 * children do not have nothing is lost, so the layer neither reports the counters nor heals. */
START_TEST(counters_of_a_file_that_is_being_removed_are_not_reported)
{
    static const struct fault refusals[] = {{.child = 0, .err = EIO}, {.child = 1, .err = EIO}};
    static const char name[] = "disperse-marks-stay";

    for (unsigned gone = 0; gone <= CHILDREN; gone++) {
        char log[] = "/tmp/test-disperse-faults-XXXXXX";
        int fd = mkstemp(log);

        must(fd >= 0 && log_open(log) == 0);
        file_make(true);
        log_set_level(LOG_WARNING);
        must(write_without_fd() >= 0);
        for (unsigned i = 0; i < gone; i++)
            store_find(&scene.store[i], "/f")->stat.nlink = 0;
        scene_arm(refusals, gone ? 0 : 2); /* the counters of a file that exists are reported */
        scene_run(5000);
        ck_assert_msg(log_has(log, name) == !gone, "%u children without the file", gone);
        ck_assert_msg(gone < 2 || scene.calls[ANY_CHILD] == 2 * CHILDREN,
                      "%u children without the file: %u calls", gone, scene.calls[ANY_CHILD]);
        scene_end();
        log_close();
        close(fd);
        unlink(log);
    }
}
END_TEST

/* While all children are up, a change of names sets no mark before the versions rise in the end. A child that
 * dies then is behind, and the others' index must name the directory. */
START_TEST(a_directory_whose_last_counters_missed_a_child_is_marked)
{
    static const enum fault_kind kinds[] = {FAULT_REFUSED, FAULT_UNSENT, FAULT_UNANSWERED};

    for (unsigned n = 0; n < 3 * CHILDREN; n++) {
        struct fault f = {.child = n % CHILDREN, .kind = kinds[n / CHILDREN], .err = EIO};

        scene_clear(CHILDREN, false);
        set_begin(false);
        must(scene_call(FOP_create, fill_create, 0) == 0);
        must(scene_call(FOP_flush, fill_fd, 0) == 0);
        scene_arm(&f, 1); /* the calls that follow end the directory's lock */
        scene_run(5000);
        for (unsigned i = 0; i < CHILDREN; i++) {
            struct stored_object *root = store_find(&scene.store[i], "/");

            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.version")), "%u, c%u",
                          n, i);
            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.dirty")),
                          "c%u, fault %u: c%u has no mark", f.child, f.kind, i);
        }
        scene_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("disperse-versions");
    TCase *t = tcase_create("versions");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_change_without_enough_good_children_raises_no_version, 0, 2);
    tcase_add_test(t, a_version_of_a_dead_mount_is_met_by_no_later_change);
    tcase_add_test(t, a_file_with_exactly_k_good_children_is_healed);
    tcase_add_test(t, attributes_of_exactly_k_good_children_are_healed);
    tcase_add_test(t, an_earlier_fragment_makes_no_file_of_k_children);
    tcase_add_test(t, a_write_over_the_limit_of_one_of_k_children_names_the_limit);
    tcase_add_test(t, a_directory_whose_last_counters_missed_a_child_is_marked);
    tcase_add_test(t, a_change_of_a_file_that_is_being_removed_is_stale);
    tcase_add_test(t, counters_of_a_file_that_is_being_removed_are_not_reported);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
