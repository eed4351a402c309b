/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The heal of a file of many blocks, of which several are copied at a time, with a fault at each of its
 * calls: a child refuses the call, loses the connection before or after it, answers late, or the mount
 * dies. */
#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/test-replicas.h"

enum { BLOCK = 128 * 1024, AT_A_TIME = 4, EXTRA_MAX = 24 };
static const char good[] = "many blocks!"; /* a letter is a block */

int __real_sem_wait(sem_t *s);
int __wrap_sem_wait(sem_t *s);

/* A caller of the crawler waits: the crawler works. */
int
__wrap_sem_wait(sem_t *s)
{
    scene_run(0);
    return __real_sem_wait(s);
}

static unsigned held, held_most; /* locks of blocks on child 0 */
static unsigned reads, reads_refused_from;
static unsigned writes_refused_by, writes_refused_from, writes;

/* Counts calls, and refuses some, as if the brick had. */
static void
watch_call(unsigned child, struct call_stack *stk, int *ret)
{
    const struct fop_call *call = &stk->call;
    bool is_lock = call->fop == FOP_inodelk || call->fop == FOP_finodelk;

    if (is_lock && child == 0 && call->flock.len == BLOCK) {
        held = call->flock.type == F_UNLCK ? held - 1 : held + 1;
        held_most = held > held_most ? held : held_most;
    }
    if (call->fop == FOP_readv && child == 0 && reads++ >= reads_refused_from)
        *ret = -EIO;
    if (call->fop == FOP_writev && child == writes_refused_by && writes++ >= writes_refused_from)
        *ret = -ENOSPC;
}

/* `files` files on `count` children; child 0 accuses the others, which have `old`. */
static void
blocks_volume(unsigned count, unsigned files, const char *old)
{
    char path[STORED_TEXT_MAX];

    scene_clear(count, false);
    scene.scale = BLOCK;
    for (unsigned n = 0; n < files; n++) {
        snprintf(path, sizeof path, "/f%u", n);
        for (unsigned i = 0; i < count; i++) {
            (void)store_make(i, path, S_IFREG | 0644, (uint8_t)(n + 3), i ? old : good);
            if (i)
                replica_accuse(path, 0, i, CHANGE_DATA);
        }
    }
    held = held_most = reads = writes = 0;
    reads_refused_from = writes_refused_from = UINT32_MAX;
}

/* Heals the first file, by a LOOKUP. */
static void
blocks_heal(const struct fault *faults, unsigned fault_count)
{
    replicas_begin(" option data-self-heal-window-size 1\n");
    scene.lie = watch_call;
    scene_arm(faults, fault_count);
    (void)replica_call(FOP_lookup, "/f0", NULL);
    scene_run(5000);
    scene.lie = NULL;
}

static void
check_healed(void)
{
    ck_assert_ptr_null(copies_difference());
    ck_assert_ptr_null(counters_left());
    ck_assert_uint_eq(store_locks(), 0);
}

START_TEST(a_heal_copies_several_blocks_at_a_time)
{
    static const char *const old[] = {"", "many", "mxny bloxks!", "many blocks! and more"};

    for (size_t k = 0; k < sizeof old / sizeof old[0]; k++) {
        blocks_volume(2, 1, old[k]);
        blocks_heal(NULL, 0);
        check_healed();
        ck_assert_uint_eq(held_most, AT_A_TIME);
        ck_assert_uint_eq(held, 0);
        ck_assert_uint_eq(reads, k == 0 ? 12 : k == 1 ? 8 : k == 2 ? 2 : 0);
        scene_end();
    }
}
END_TEST

START_TEST(heals_of_many_files_share_the_blocks_of_the_process)
{
    enum { FILES = 12 };

    for (unsigned turn = 0; turn < 2; turn++) { /* the second: all were given back */
        blocks_volume(2, FILES, "");
        scene_begin_top(&cluster_replicate_xlator,
                        replicas_options(" option data-self-heal-window-size 1\n"
                                         " option background-self-heal-count 16\n"));
        struct crawler *crawler = crawler_new(scene.graph, 1, true);

        scene.lie = watch_call;
        ck_assert_int_eq(crawler_ask(crawler, false), 0);
        scene_run(5000);
        scene.lie = NULL;
        check_healed();
        ck_assert_uint_eq(held_most, FILES + EXTRA_MAX);
        crawler_free(crawler);
        scene_end();
    }
}
END_TEST

START_TEST(a_sink_that_fails_gets_no_further_blocks_and_the_other_is_healed)
{
    blocks_volume(3, 1, "");
    writes_refused_by = 1;
    writes_refused_from = 5;
    blocks_heal(NULL, 0);
    ck_assert_uint_le(writes, 5 + AT_A_TIME);
    struct stored_object *copy = store_find(&scene.store[0], "/f0");
    struct changelog about[3];

    for (unsigned i = 1; i < 3; i++) {
        struct stored_xattr *x = store_xattr(copy, i == 1 ? "trusted.afr.c1" : "trusted.afr.c2");

        changelog_get(&about[i], x ? x->bytes : NULL, x ? x->len : 0);
    }
    ck_assert_uint_ne(about[1].count[CHANGE_DATA], 0);
    ck_assert_uint_eq(about[2].count[CHANGE_DATA], 0);
    ck_assert_ptr_null(store_difference(&scene.store[0], &scene.store[2]));
    ck_assert_uint_eq(store_locks(), 0);
    writes_refused_from = UINT32_MAX;
    scene_end();
    blocks_heal(NULL, 0); /* the next mount */
    check_healed();
    scene_end();
}
END_TEST

START_TEST(a_source_that_fails_ends_the_heal_after_the_blocks_at_work)
{
    blocks_volume(2, 1, "");
    reads_refused_from = 3;
    blocks_heal(NULL, 0);
    ck_assert_uint_le(reads, 3 + AT_A_TIME);
    ck_assert_ptr_nonnull(counters_left());
    ck_assert_uint_eq(store_locks(), 0);
    reads_refused_from = UINT32_MAX;
    scene_end();
    blocks_heal(NULL, 0);
    check_healed();
    scene_end();
}
END_TEST

/* ---- a fault at each call -------------------------------------------------------------------- */

static bool
is_accused(unsigned child)
{
    struct stored_object *o = store_find(&scene.store[0], "/f0");
    char key[STORED_TEXT_MAX];
    struct changelog c;

    snprintf(key, sizeof key, "trusted.afr.c%u", child);
    struct stored_xattr *x = store_xattr(o, key);

    changelog_get(&c, x ? x->bytes : NULL, x ? x->len : 0);
    return c.count[CHANGE_DATA] != 0;
}

static void
heal_with_fault(unsigned count, const char *old, const struct fault *f)
{
    blocks_volume(count, 1, old);
    blocks_heal(f, 1);
    if (!scene.is_cut && store_locks())
        finding_add("locks are left: %s", store_locks_text());
    for (unsigned i = 1; i < count; i++) {
        const char *why = store_difference(&scene.store[0], &scene.store[i]);

        if (why && !is_accused(i))
            finding_add("copy %u differs (%s) and is not accused", i, why);
    }
    if (strncmp((char *)store_find(&scene.store[0], "/f0")->data, good, strlen(good)) != 0)
        finding_add("the source has changed");
    scene_end();
    blocks_heal(NULL, 0);
    const char *difference = copies_difference(), *counter = counters_left();

    if (difference || counter || store_locks())
        finding_add("the next heal leaves: %s, %s", difference ? difference : "", counter ? counter : "");
    scene_end();
}

START_TEST(a_fault_at_any_call_of_a_block_leaves_the_copy_accused)
{
    static const char *const old[] = {"", "mxny bloxks!"};
    unsigned count = 2 + (unsigned)_i / 2, calls[CHILDREN_MAX + 1];

    findings = 0;
    blocks_volume(count, 1, old[_i % 2]);
    blocks_heal(NULL, 0);
    memcpy(calls, scene.calls, sizeof calls);
    scene_end();
    for (unsigned i = 0; i < count; i++) {
        for (unsigned n = 0; n < calls[i] * FAULT_KINDS; n++) {
            struct fault f = {
                .child = i, .at = n / FAULT_KINDS, .kind = (enum fault_kind)(n % FAULT_KINDS), .err = EIO};

            snprintf(run_text, sizeof run_text, "%u copies, \"%s\", c%u fault %d at call %u", count,
                     old[_i % 2], i, (int)f.kind, f.at);
            heal_with_fault(count, old[_i % 2], &f);
        }
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-blocks");
    TCase *t = tcase_create("blocks");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_heal_copies_several_blocks_at_a_time);
    tcase_add_test(t, heals_of_many_files_share_the_blocks_of_the_process);
    tcase_add_test(t, a_sink_that_fails_gets_no_further_blocks_and_the_other_is_healed);
    tcase_add_test(t, a_source_that_fails_ends_the_heal_after_the_blocks_at_work);
    tcase_add_loop_test(t, a_fault_at_any_call_of_a_block_leaves_the_copy_accused, 0, 4);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
