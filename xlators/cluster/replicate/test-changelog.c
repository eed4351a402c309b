/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The counter matrices are as stock clients have left them on bricks; tests/replicate/replica_work.py prints
 * them. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/replicate/changelog.h"

/* ---- counters -------------------------------------------------------------------------------- */

START_TEST(counters_are_big_endian_words)
{
    struct changelog c = {{1, 0x01020304, 0xffffffff}}, back;
    unsigned char bytes[CHANGELOG_BYTES];
    static const unsigned char want[] = {0, 0, 0, 1, 1, 2, 3, 4, 255, 255, 255, 255};

    changelog_put(&c, bytes);
    ck_assert_mem_eq(bytes, want, sizeof want);
    changelog_get(&back, bytes, sizeof bytes);
    ck_assert_mem_eq(&back, &c, sizeof c);
}
END_TEST

START_TEST(missing_counter_bytes_are_zero)
{
    static const unsigned char bytes[] = {0, 0, 0, 7, 0, 0, 0, 2};
    struct changelog c;

    changelog_get(&c, bytes, sizeof bytes);
    ck_assert_uint_eq(c.count[CHANGE_DATA], 7);
    ck_assert_uint_eq(c.count[CHANGE_METADATA], 2);
    ck_assert_uint_eq(c.count[CHANGE_ENTRY], 0);
    changelog_get(&c, NULL, 0);
    ck_assert_uint_eq(c.count[CHANGE_DATA], 0);
}
END_TEST

/* ---- readable copies ------------------------------------------------------------------------- */

static struct replica three[3];

static void
all_there(void)
{
    memset(three, 0, sizeof three);
    for (unsigned i = 0; i < 3; i++)
        three[i] = (struct replica){.is_there = true, .is_file = true, .size = 100};
}

START_TEST(zero_counters_accuse_no_child)
{
    all_there();
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 7);
    three[1].dirty.count[CHANGE_DATA] = 1; /* dirty does not matter to readers */
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 7);
    three[1].is_there = false;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_METADATA, -1), 5);
}
END_TEST

START_TEST(accused_copies_are_not_read)
{
    all_there();
    three[0].about[1].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(changelog_accused(three, 2, CHANGE_DATA), CHILD(1));
    ck_assert_uint_eq(changelog_readable(three, 2, CHANGE_DATA, -1), CHILD(0));
    ck_assert_uint_eq(changelog_readable(three, 2, CHANGE_METADATA, -1), CHILD(0) | CHILD(1));
    three[1].about[0].count[CHANGE_DATA] = 3; /* split-brain */
    ck_assert_uint_eq(changelog_readable(three, 2, CHANGE_DATA, -1), 0);
    three[1].is_there = false; /* the counters of an absent child are unknown */
    ck_assert_uint_eq(changelog_readable(three, 2, CHANGE_DATA, -1), CHILD(0));
}
END_TEST

START_TEST(a_copy_that_accuses_itself_is_read)
{
    all_there();
    three[1].about[1].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 7);
}
END_TEST

START_TEST(counters_in_host_byte_order_count_too)
{
    all_there();
    three[2].about[0].count[CHANGE_METADATA] = 0x01000000;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_METADATA, -1), 6);
}
END_TEST

START_TEST(a_short_copy_is_not_read)
{
    all_there();
    three[2].size = 40;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 3);
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_METADATA, -1), 7);
    three[0].is_locked = true; /* being written: sizes differ for a moment */
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 7);
    three[0].is_locked = false;
    three[0].size = 500; /* an accused copy's size does not matter */
    three[1].about[0].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), CHILD(1));
    for (unsigned i = 0; i < 3; i++)
        three[i].is_file = false; /* sizes of directories mean nothing */
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 6);
}
END_TEST

START_TEST(an_arbiter_has_no_data)
{
    all_there();
    three[2].size = 0;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, 2), 3);
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_METADATA, 2), 7);
    three[2].about[0].count[CHANGE_DATA] = three[2].about[1].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, 2), 0);
}
END_TEST

START_TEST(a_bad_copy_is_not_read)
{
    all_there();
    three[1].is_bad = true;
    ck_assert_uint_eq(changelog_readable(three, 3, CHANGE_DATA, -1), 5);
}
END_TEST

/* ---- direction of a heal --------------------------------------------------------------------- */

static struct direction
way(enum change what)
{
    struct direction d;

    changelog_direction(three, 3, what, &d);
    return d;
}

START_TEST(zero_counters_give_no_sink)
{
    all_there();
    ck_assert_uint_eq(way(CHANGE_DATA).sources, 7);
    ck_assert_uint_eq(way(CHANGE_DATA).sinks, 0);
    ck_assert(!way(CHANGE_DATA).is_dirty);
    three[1].dirty.count[CHANGE_DATA] = 1;
    ck_assert(way(CHANGE_DATA).is_dirty);
    ck_assert(!way(CHANGE_METADATA).is_dirty);
}
END_TEST

START_TEST(good_copies_heal_accused_copies)
{
    all_there();
    three[0].about[2].count[CHANGE_ENTRY] = 4;
    ck_assert_uint_eq(way(CHANGE_ENTRY).sources, 3);
    ck_assert_uint_eq(way(CHANGE_ENTRY).sinks, CHILD(2));
    three[2].about[1].count[CHANGE_ENTRY] = 1; /* an accused child may rightly accuse another */
    ck_assert_uint_eq(way(CHANGE_ENTRY).sources, CHILD(0));
    ck_assert_uint_eq(way(CHANGE_ENTRY).sinks, CHILD(1) | CHILD(2));
}
END_TEST

START_TEST(split_brain_has_no_source)
{
    all_there();
    for (unsigned i = 0; i < 3; i++)
        three[i].about[(i + 1) % 3].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(way(CHANGE_DATA).sources, 0);
    ck_assert_uint_eq(way(CHANGE_DATA).sinks, 0);
}
END_TEST

START_TEST(a_bad_copy_is_no_source)
{
    all_there();
    three[0].about[2].count[CHANGE_DATA] = 1;
    three[0].is_bad = true;
    ck_assert_uint_eq(way(CHANGE_DATA).sources, CHILD(1));
    three[1].is_bad = true;
    ck_assert_uint_eq(way(CHANGE_DATA).sources, 0);
}
END_TEST

START_TEST(a_copy_that_accuses_itself_is_left_to_the_daemon)
{
    all_there();
    three[0].about[0].count[CHANGE_DATA] = 1;
    three[0].about[1].count[CHANGE_DATA] = 1;
    ck_assert_uint_eq(way(CHANGE_DATA).sources, 0);
    ck_assert_uint_eq(way(CHANGE_METADATA).sources, 7);
}
END_TEST

/* ---- quorum ---------------------------------------------------------------------------------- */

START_TEST(quorum_depends_on_type_and_count)
{
    struct quorum none = {QUORUM_NONE, 0}, automatic = {QUORUM_AUTO, 0}, fixed = {QUORUM_FIXED, 2};

    ck_assert(quorum_is_met(&none, 2, CHILD(1)));
    ck_assert(!quorum_is_met(&none, 2, 0));
    ck_assert(!quorum_is_met(&automatic, 3, CHILD(0)));
    ck_assert(quorum_is_met(&automatic, 3, CHILD(1) | CHILD(2)));
    ck_assert(quorum_is_met(&automatic, 2, CHILD(0))); /* the half with the first child */
    ck_assert(!quorum_is_met(&automatic, 2, CHILD(1)));
    ck_assert(quorum_is_met(&automatic, 4, CHILD(0) | CHILD(3)));
    ck_assert(!quorum_is_met(&automatic, 4, CHILD(1) | CHILD(3)));
    ck_assert(!quorum_is_met(&fixed, 5, CHILD(4)));
    ck_assert(quorum_is_met(&fixed, 5, CHILD(4) | CHILD(1)));
}
END_TEST

START_TEST(specific_errors_win_over_general_ones)
{
    ck_assert_int_eq(replica_worse_errno(ENOTCONN, ENOENT), ENOENT);
    ck_assert_int_eq(replica_worse_errno(ENOENT, ENOTCONN), ENOENT);
    ck_assert_int_eq(replica_worse_errno(ESTALE, ENOENT), ENOENT);
    ck_assert_int_eq(replica_worse_errno(ENOSPC, EIO), ENOSPC);
    ck_assert_int_eq(replica_worse_errno(EIO, EACCES), EACCES);
    ck_assert_int_eq(replica_worse_errno(EIO, 0), EIO);
}
END_TEST

/* ---- choice of the child to read from -------------------------------------------------------- */

static struct gfid
gfid_from(const char *text)
{
    struct gfid g;

    ck_assert_int_eq(gfid_parse(text, strlen(text), &g), 0);
    return g;
}

START_TEST(gfids_hash_as_in_stock)
{
    static const struct {
        const char *gfid;
        uint32_t hash;
    } vectors[] = {
        {"00000000-0000-0000-0000-000000000001", 0xfe513317},
        {"01234567-89ab-cdef-0123-456789abcdef", 0xca97d754},
        {"ffffffff-ffff-ffff-ffff-ffffffffffff", 0x1919323f},
    };

    for (size_t i = 0; i < sizeof vectors / sizeof vectors[0]; i++) {
        struct gfid g = gfid_from(vectors[i].gfid);

        ck_assert_uint_eq(gfid_super_fast_hash(&g), vectors[i].hash);
    }
}
END_TEST

START_TEST(the_hashed_child_is_read_if_readable)
{
    struct gfid g = gfid_from("00000000-0000-0000-0000-000000000001"); /* odd hash: the second of two */

    ck_assert_uint_eq(replica_choose(3, 2, &g), 1);
    ck_assert_uint_eq(replica_choose(1, 2, &g), 0);
    ck_assert_uint_eq(replica_choose(4, 3, &g), 2);
}
END_TEST

START_TEST(break_leaves_a_loop_over_children)
{
    child_set seen = 0;

    for_each_child(i, CHILD(1) | CHILD(3) | CHILD(4))
    {
        if (i == 1)
            continue;
        seen |= CHILD(i);
        if (i == 3)
            break;
    }
    for_each_child(i, 0) seen |= CHILD(i);
    ck_assert_uint_eq(seen, CHILD(3));
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("changelog");
    TCase *t = tcase_create("changelog");

    tcase_add_test(t, counters_are_big_endian_words);
    tcase_add_test(t, missing_counter_bytes_are_zero);
    tcase_add_test(t, zero_counters_accuse_no_child);
    tcase_add_test(t, accused_copies_are_not_read);
    tcase_add_test(t, a_copy_that_accuses_itself_is_read);
    tcase_add_test(t, counters_in_host_byte_order_count_too);
    tcase_add_test(t, a_short_copy_is_not_read);
    tcase_add_test(t, an_arbiter_has_no_data);
    tcase_add_test(t, a_bad_copy_is_not_read);
    tcase_add_test(t, zero_counters_give_no_sink);
    tcase_add_test(t, good_copies_heal_accused_copies);
    tcase_add_test(t, split_brain_has_no_source);
    tcase_add_test(t, a_bad_copy_is_no_source);
    tcase_add_test(t, a_copy_that_accuses_itself_is_left_to_the_daemon);
    tcase_add_test(t, quorum_depends_on_type_and_count);
    tcase_add_test(t, specific_errors_win_over_general_ones);
    tcase_add_test(t, gfids_hash_as_in_stock);
    tcase_add_test(t, the_hashed_child_is_read_if_readable);
    tcase_add_test(t, break_leaves_a_loop_over_children);
    suite_add_tcase(s, t);
    SRunner *r = srunner_create(s);

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);

    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
