/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The direction of heals for every matrix of counters (pending xattrs): 0 or 1 each, with and without a
 * change begun (dirty), on 2, 3 and 2+1 copies.
 *
 * The rules are stated here once more, apart from the code, and compared with changelog_direction() and with
 * the copies after a heal by LOOKUP on bricks in memory. */
#include <check.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

enum { COPIES_MAX = 3 };

/* One matrix: `accuses[i][j]`: copy i accuses copy j. */
struct matrix {
    unsigned count;
    bool has_arbiter; /* the last copy */
    bool accuses[COPIES_MAX][COPIES_MAX], is_dirty[COPIES_MAX], is_bad[COPIES_MAX];
};

static bool
takes_bit(unsigned *bits)
{
    bool is_set = *bits & 1;

    *bits >>= 1;
    return is_set;
}

/* ---- the rules ------------------------------------------------------------------------------- */

static bool
rule_is_accused(const struct matrix *m, unsigned copy)
{
    bool is = false;

    for (unsigned i = 0; i < m->count; i++)
        is |= i != copy && m->accuses[i][copy];
    return is;
}

static bool
rule_any_accuses_itself(const struct matrix *m)
{
    bool any = false;

    for (unsigned i = 0; i < m->count; i++)
        any |= m->accuses[i][i];
    return any;
}

static bool
rule_is_source(const struct matrix *m, unsigned copy)
{
    return !m->is_bad[copy] && !rule_is_accused(m, copy) && !rule_any_accuses_itself(m);
}

static bool
rule_has_source(const struct matrix *m)
{
    bool has = false;

    for (unsigned i = 0; i < m->count; i++)
        has |= rule_is_source(m, i);
    return has;
}

static bool
rule_any_accused(const struct matrix *m)
{
    bool any = false;

    for (unsigned i = 0; i < m->count; i++)
        any |= rule_is_accused(m, i);
    return any;
}

static bool
rule_any_dirty(const struct matrix *m)
{
    return m->is_dirty[0] || m->is_dirty[1] || m->is_dirty[2];
}

static bool
rule_has_data(const struct matrix *m, unsigned copy)
{
    return !(m->has_arbiter && copy + 1 == m->count);
}

/* ---- changelog_direction() ------------------------------------------------------------------- */

static void
check_direction(const struct matrix *m, enum change kind)
{
    struct replica r[REPLICAS_MAX] = {0};
    struct direction way;

    for (unsigned i = 0; i < m->count; i++) {
        r[i].is_there = true;
        r[i].is_bad = m->is_bad[i];
        r[i].dirty.count[kind] = m->is_dirty[i];
        for (unsigned j = 0; j < m->count; j++)
            r[i].about[j].count[kind] = m->accuses[i][j];
        /* counters of other kinds do not matter */
        r[i].about[0].count[(kind + 1) % CHANGES] = 1;
        r[i].dirty.count[(kind + 2) % CHANGES] = 1;
    }
    changelog_direction(r, m->count, kind, &way);
    must(way.is_dirty == rule_any_dirty(m));
    for (unsigned i = 0; i < m->count; i++) {
        bool is_sink = rule_has_source(m) && rule_is_accused(m, i);

        must(!!(way.sources & CHILD(i)) == rule_is_source(m, i));
        must(!!(way.sinks & CHILD(i)) == is_sink);
    }
}

START_TEST(direction_follows_the_rule_for_every_matrix)
{
    for (unsigned count = 2; count <= COPIES_MAX; count++) {
        for (unsigned n = 0; n < 1u << (count * count + 2 * count); n++) {
            struct matrix m = {.count = count};
            unsigned bits = n;

            for (unsigned i = 0; i < count; i++) {
                m.is_dirty[i] = takes_bit(&bits);
                m.is_bad[i] = takes_bit(&bits);
                for (unsigned j = 0; j < count; j++)
                    m.accuses[i][j] = takes_bit(&bits);
            }
            for (enum change kind = 0; kind < CHANGES; kind++)
                check_direction(&m, kind);
        }
    }
}
END_TEST

/* ---- heals on bricks in memory --------------------------------------------------------------- */

static const struct {
    unsigned count;
    bool has_arbiter;
} shapes[] = {{2, false}, {3, false}, {3, true}};

static void
put_counter(struct stored_object *o, const char *key, enum change kind)
{
    struct changelog c = {0};
    unsigned char bytes[CHANGELOG_BYTES];

    c.count[kind] = 1;
    changelog_put(&c, bytes);
    must(store_set_xattr(o, key, bytes, sizeof bytes) == 0);
}

static void
put_counters(const struct matrix *m, const char *path, enum change kind)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);

        for (unsigned j = 0; j < m->count; j++) {
            char key[] = "trusted.afr.c0";

            key[sizeof key - 2] = (char)('0' + j);
            if (m->accuses[i][j])
                put_counter(o, key, kind);
        }
        if (m->is_dirty[i])
            put_counter(o, "trusted.afr.dirty", kind);
    }
}

static char matrix_text[128];

static void
describe(const struct matrix *m, unsigned variant)
{
    int at = snprintf(matrix_text, sizeof matrix_text, "%u copies%s, variant %u:", m->count,
                      m->has_arbiter ? " with arbiter" : "", variant);

    for (unsigned i = 0; i < m->count; i++) {
        at += snprintf(matrix_text + at, sizeof matrix_text - (size_t)at, " c%u%s accuses", i,
                       m->is_dirty[i] ? " (dirty)" : "");
        for (unsigned j = 0; j < m->count; j++)
            at += snprintf(matrix_text + at, sizeof matrix_text - (size_t)at, "%s",
                           !m->accuses[i][j] ? ""
                           : j == 0          ? " c0"
                           : j == 1          ? " c1"
                                             : " c2");
    }
}

#define check_that(claim, what)                                                                              \
    do {                                                                                                     \
        if (!(claim))                                                                                        \
            ck_abort_msg("%s: %s", matrix_text, what);                                                       \
    } while (0)

/* Calls `heals` for each matrix of each shape; self-accusations only with 2 copies. */
static void
for_each_matrix(unsigned variants, void (*heals)(const struct matrix *m, unsigned variant))
{
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        unsigned count = shapes[s].count, cells = count == 2 ? 4 : 6;

        for (unsigned n = 0; n < variants << (cells + count); n++) {
            struct matrix m = {.count = count, .has_arbiter = shapes[s].has_arbiter};
            unsigned bits = n;

            for (unsigned i = 0; i < count; i++) {
                m.is_dirty[i] = takes_bit(&bits);
                for (unsigned j = 0; j < count; j++)
                    m.accuses[i][j] = (count == 2 || i != j) && takes_bit(&bits);
            }
            describe(&m, bits);
            scene_clear(count, m.has_arbiter);
            heals(&m, bits);
            scene_end();
        }
    }
}

static void
heal_by_lookup(const struct matrix *m)
{
    replicas_begin(m->has_arbiter ? " option arbiter-count 1\n" : "");
    for (unsigned round = 0; round < 3; round++)
        scene_lookup_all();
    scene_run(5000);
}

/* ---- data ------------------------------------------------------------------------------------ */

static const char *const contents[][COPIES_MAX] = {
    {"aaaa", "bbbb", "cccc"}, {"aaaaaa", "bbbb", "cccc"}, {"aaaa", "bbbb", "cccccc"}};

/* Is copy i a better source than copy k? The longer, then a copy with a change begun, then the newer. */
static bool
rule_is_better(const struct matrix *m, unsigned variant, unsigned i, unsigned k)
{
    size_t a = strlen(contents[variant][i]), b = strlen(contents[variant][k]);

    return a != b ? a > b : m->is_dirty[i] != m->is_dirty[k] ? m->is_dirty[i] : i > k;
}

static int
rule_data_source(const struct matrix *m, unsigned variant)
{
    int best = -1;

    for (unsigned i = 0; i < m->count; i++) {
        if (rule_is_source(m, i) && rule_has_data(m, i) &&
            (best < 0 || rule_is_better(m, variant, i, (unsigned)best)))
            best = (int)i;
    }
    return best;
}

static bool
rule_sizes_differ(const struct matrix *m, unsigned variant)
{
    return variant == 1 || (variant == 2 && m->count == 3 && !m->has_arbiter);
}

static const char *
rule_contents(const struct matrix *m, unsigned variant, unsigned copy)
{
    int source = rule_data_source(m, variant);
    const char *own = contents[variant][copy];
    bool is_seen = rule_any_accused(m) || rule_any_dirty(m) || rule_sizes_differ(m, variant);

    if (source < 0 || !is_seen)
        return own;
    bool is_mended =
        rule_is_accused(m, copy) || rule_any_dirty(m) || strlen(own) != strlen(contents[variant][source]);

    return is_mended ? contents[variant][source] : own;
}

static void
check_data_heal(const struct matrix *m, unsigned variant)
{
    for (unsigned i = 0; i < m->count; i++) {
        struct stored_object *o = store_make(i, "/f", S_IFREG | 0644, 3, contents[variant][i]);

        o->stat.ctime = 5000 + i;
    }
    put_counters(m, "/f", CHANGE_DATA);
    heal_by_lookup(m);
    bool is_split = rule_data_source(m, variant) < 0;

    for (unsigned i = 0; i < m->count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");
        const char *want = rule_contents(m, variant, i);

        check_that(!rule_has_data(m, i) ||
                       (o->stat.size == strlen(want) && memcmp(o->data, want, strlen(want)) == 0),
                   "another copy was taken");
    }
    /* a copy that accuses only itself is seen by no reader, so no heal begins */
    check_that(is_split || !counters_left(), "a counter is left");
}

START_TEST(data_heal_takes_the_copy_of_the_rule)
{
    for_each_matrix(sizeof contents / sizeof contents[0], check_data_heal);
}
END_TEST

/* ---- comparing ------------------------------------------------------------------------------- */

static unsigned compared; /* checksums that child 1 was asked for */

static void
count_checksums(unsigned child, struct call_stack *stk, int *ret)
{
    (void)ret;
    compared += child == 1 && stk->call.fop == FOP_rchecksum;
}

/* Copy 0 has the data and accuses copy 1, which has `old`. Returns the number of compared blocks. */
static unsigned
blocks_compared(const char *old, bool is_sparse)
{
    static const uint8_t accusation[12] = {[3] = 1};

    scene_clear(2, false);
    for (unsigned i = 0; i < 2; i++) {
        struct stored_object *o = store_make(i, "/f", S_IFREG | 0644, 3, i ? old : "new data");

        o->stat.blocks = is_sparse ? 0 : o->stat.blocks;
        if (i == 0)
            (void)store_set_xattr(o, "trusted.afr.c1", accusation, sizeof accusation);
    }
    compared = 0;
    scene.lie = count_checksums;
    replicas_begin("");
    scene_lookup_all();
    scene_run(5000);
    scene.lie = NULL;
    ck_assert_ptr_null(copies_difference());
    ck_assert_ptr_null(counters_left());
    scene_end();
    return compared;
}

START_TEST(data_heal_compares_no_block_behind_the_end_of_a_copy)
{
    ck_assert_uint_eq(blocks_compared("old data", false), 1);
    ck_assert_uint_eq(blocks_compared("old", false), 1);
    ck_assert_uint_eq(blocks_compared("", false), 0);
    ck_assert_uint_eq(blocks_compared("", true), 1); /* zeros stay a hole */
}
END_TEST

/* ---- attributes ------------------------------------------------------------------------------ */

static int
rule_attribute_source(const struct matrix *m)
{
    int first = -1;

    for (unsigned i = 0; i < m->count; i++) {
        if (rule_is_source(m, i) && (first < 0 || (m->is_dirty[i] && !m->is_dirty[first])))
            first = (int)i;
    }
    return first;
}

static void
check_attribute_heal(const struct matrix *m, unsigned variant)
{
    (void)variant;
    for (unsigned i = 0; i < m->count; i++)
        (void)store_make(i, "/f", S_IFREG | 0600 | i, 3, NULL);
    put_counters(m, "/f", CHANGE_METADATA);
    heal_by_lookup(m);
    int source = rule_attribute_source(m);

    for (unsigned i = 0; i < m->count; i++) {
        unsigned want = source < 0 ? i : (unsigned)source;

        check_that((store_find(&scene.store[i], "/f")->stat.mode & 07777) == (0600 | want),
                   "the mode of another copy was taken");
    }
    check_that(source < 0 || !counters_left(), "a counter is left");
}

START_TEST(attribute_heal_takes_the_copy_of_the_rule)
{
    for_each_matrix(1, check_attribute_heal);
}
END_TEST

/* ---- names ----------------------------------------------------------------------------------- */

/* Each copy has one name that the others lack. Does the name stay? */
static bool
rule_name_stays(const struct matrix *m, unsigned owner)
{
    bool is_clear = rule_has_source(m) && rule_any_accused(m) && !rule_any_dirty(m);
    bool has_data_source = false;

    for (unsigned i = 0; i < m->count; i++)
        has_data_source |= rule_has_data(m, i) && rule_is_source(m, i);
    if (is_clear && !rule_is_source(m, owner))
        return false;
    /* the arbiter has no contents for the others */
    return rule_has_data(m, owner) || !has_data_source;
}

static void
check_name_heal(const struct matrix *m, unsigned variant)
{
    static const char *const names[] = {"/d/n0", "/d/n1", "/d/n2"};

    (void)variant;
    for (unsigned i = 0; i < m->count; i++) {
        (void)store_make(i, "/d", S_IFDIR | 0755, 2, NULL);
        (void)store_make(i, names[i], S_IFREG | 0644, (uint8_t)(20 + i), "contents");
    }
    put_counters(m, "/d", CHANGE_ENTRY);
    heal_by_lookup(m);
    for (unsigned i = 0; i < m->count; i++) {
        for (unsigned k = 0; k < m->count; k++)
            check_that((store_find(&scene.store[k], names[i]) != NULL) == rule_name_stays(m, i),
                       rule_name_stays(m, i) ? "a name is missing" : "a name was restored");
    }
    check_that(!copies_difference(), copies_difference());
    if (!rule_any_accuses_itself(m))
        check_that(!counters_left(), counters_left());
}

START_TEST(name_heal_keeps_the_names_of_the_rule)
{
    for_each_matrix(1, check_name_heal);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-direction");
    TCase *t = tcase_create("direction");

    tcase_add_test(t, direction_follows_the_rule_for_every_matrix);
    tcase_add_test(t, data_heal_takes_the_copy_of_the_rule);
    tcase_add_test(t, data_heal_compares_no_block_behind_the_end_of_a_copy);
    tcase_add_test(t, attribute_heal_takes_the_copy_of_the_rule);
    tcase_add_test(t, name_heal_keeps_the_names_of_the_rule);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
