/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a replicated volume, with a fault at each of its calls.
 *
 * For each change (create, write, rename, ...) on 2, 3 and 2+1 replicas, the test first makes the change
 * without a fault and counts the calls to each child. Then it makes the change again, once for each call
 * and each kind of fault at that call: the child refuses the call, loses the connection before or after
 * it, answers late, or the mount dies. The third pass sets two faults: a child fails, and the mount dies
 * at a later call. The fourth pass does so while one child is down and another one is stale.
 * FAULTS_RUN="2 replicas, create, c0 unsent at call 2" in the environment makes only that run, and
 * CHILDREN_TRACE=1 prints its calls. After each run:
 *
 *      the caller has an answer, and no lock is left
 *      a change reported as done is on a copy, and that copy accuses (pending xattr) each copy without it
 *      without a death of the mount, one fault never makes the change fail
 *      when all children are up (in a new mount if the mount died), LOOKUP heals: the copies are equal, no
 *      counter is left, and a change reported as done is there; else the state is the old or the new one */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"

static const char *const kind_names[] = {"refused", "unsent",     "unanswered",
                                         "late",    "mount dies", "mount dies after"};

static void
name_run(const struct replica_shape *shape, const struct replica_change *c, const struct replica_variant *v,
         const struct fault *f, unsigned count)
{
    int at = snprintf(run_text, sizeof run_text, "%s, %s%s%s", shape->name, c->name,
                      v->is_warm ? ", warm" : "", v->tells_late ? ", late event" : "");

    for (unsigned i = 0; i < count; i++)
        at += snprintf(run_text + at, sizeof run_text - (size_t)at, ", c%u %s at call %u", f[i].child,
                       kind_names[f[i].kind], f[i].at);
}

/* Runs one of twelve, because all take minutes with a sanitizer. FAULTS_ALL in the environment: all. */
static bool
is_skipped(void)
{
    static unsigned turn;

    return turn++ % 12 && !getenv("FAULTS_ALL") && !getenv("FAULTS_RUN");
}

static void
run_with(const struct replica_shape *shape, const struct replica_change *c, const struct replica_variant *v,
         const struct fault *f, unsigned count)
{
    const char *only = getenv("FAULTS_RUN"); /* the text of a run, to debug it */

    name_run(shape, c, v, f, count);
    if (only && strcmp(only, run_text) != 0)
        return;
    if (only)
        fprintf(stderr, "%s\n", run_text);
    int ret = replica_change_run(shape, c, v, f, count);
    bool is_mild = count < 2 && !scene.is_cut;

    if (ret < 0 && is_mild)
        finding_add("the change fails: %s", strerror(-ret));
    replica_change_finish(shape, c, ret);
}

/* Counts the calls to each child without a fault. */
static void
count_calls(const struct replica_shape *shape, const struct replica_change *c,
            const struct replica_variant *v, unsigned *calls)
{
    run_with(shape, c, v, NULL, 0);
    name_run(shape, c, v, NULL, 0);
    (void)replica_change_run(shape, c, v, NULL, 0);
    memcpy(calls, scene.calls, sizeof scene.calls);
    scene_end();
}

static void
run_single_faults(const struct replica_shape *shape, const struct replica_change *c,
                  const struct replica_variant *v)
{
    unsigned calls[CHILDREN_MAX + 1];

    count_calls(shape, c, v, calls);
    for (unsigned i = 0; i < shape->count; i++) {
        for (unsigned at = 0; at < calls[i]; at++) {
            for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
                struct fault f = {.child = i, .at = at, .kind = (enum fault_kind)kind, .err = EIO};

                run_with(shape, c, v, &f, 1);
            }
        }
    }
}

START_TEST(one_fault_loses_no_change)
{
    static const struct replica_variant variants[] = {
        {.is_warm = false}, {.tells_late = true}, {.is_warm = true}};
    const struct replica_change *c = &replica_changes[_i];

    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            run_single_faults(&replica_shapes[s], c, &variants[v]);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* A child fails, and the mount dies at one of the next calls; or a second child fails. */
static void
run_two_faults(const struct replica_shape *shape, const struct replica_change *c, const struct fault *first,
               unsigned calls)
{
    static const struct replica_variant plain = {.is_warm = false};
    struct fault f[2] = {*first};

    for (unsigned at = 0; at < calls + 4; at++) {
        f[1] = (struct fault){.child = ANY_CHILD, .at = at, .kind = FAULT_CUT};
        if (!is_skipped())
            run_with(shape, c, &plain, f, 2);
    }
    for (unsigned k = 0; k < shape->count * shape->count; k++) {
        f[1] = (struct fault){
            .child = k % shape->count, .at = first->at + k / shape->count, .kind = FAULT_UNANSWERED};
        if (f[1].child != first->child && shape->count > 2 && !is_skipped())
            run_with(shape, c, &plain, f, 2);
    }
}

START_TEST(two_faults_lose_no_change)
{
    static const struct replica_variant plain = {.is_warm = false};
    const struct replica_change *c = &replica_changes[_i];
    unsigned calls[CHILDREN_MAX + 1];

    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        count_calls(&replica_shapes[s], c, &plain, calls);
        for (unsigned i = 0; i < replica_shapes[s].count; i++) {
            for (unsigned n = 0; n < 2 * calls[i]; n++) {
                struct fault f = {.child = i, .at = n / 2, .kind = n % 2 ? FAULT_UNSENT : FAULT_UNANSWERED};

                run_two_faults(&replica_shapes[s], c, &f, calls[ANY_CHILD]);
            }
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- a stale copy, and the loss of the good child and of the mount ---------------------------- */

enum { GOOD, STALE, AWAY }; /* children */
static const struct replica_change *staled;
static bool away_is_stale, view_is_old;

/* Child STALE has missed a change, as the others tell, and child AWAY goes down. */
static void
make_stale(void)
{
    scene_child_down(AWAY);
    replica_accuse(staled->marked, GOOD, STALE, staled->kind);
    replica_accuse(staled->marked, away_is_stale ? GOOD : AWAY, away_is_stale ? AWAY : STALE, staled->kind);
    if (!view_is_old)
        scene_lookup_all();
}

/* The stale copy may then accuse the good one or the one that is away, which has missed nothing. A heal from
 * the good child corrects that when it returns: replica_change_finish() finds no lost change. */
START_TEST(a_stale_copy_that_accuses_loses_no_change)
{
    static const struct replica_variant v = {.before_act = make_stale};
    const struct replica_shape *shape = &replica_shapes[1];
    const struct replica_change *c = staled = &replica_changes[_i];
    unsigned calls[CHILDREN_MAX + 1];

    findings = 0;
    for (unsigned variant = 0; variant < 4; variant++) {
        away_is_stale = variant & 1;
        view_is_old = variant & 2;
        (void)replica_change_run(shape, c, &v, NULL, 0);
        memcpy(calls, scene.calls, sizeof calls);
        scene_end();
        for (unsigned n = 0; n < 2 * calls[GOOD]; n++) {
            for (unsigned at = n / 2; at < calls[ANY_CHILD] + 4; at++) {
                struct fault f[2] = {
                    {.child = GOOD, .at = n / 2, .kind = n % 2 ? FAULT_UNSENT : FAULT_UNANSWERED},
                    {.child = ANY_CHILD, .at = at, .kind = FAULT_CUT}};

                if (!is_skipped())
                    run_with(shape, c, &v, f, 2);
            }
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- one copy of the data is left ------------------------------------------------------------ */

static void
lose_second_child(void)
{
    scene_child_down(1);
}

static bool
is_dirty_on(unsigned i, const char *path)
{
    struct stored_object *o = store_find(&scene.store[i], path);
    const struct stored_xattr *x = o ? store_xattr(o, "trusted.afr.dirty") : NULL;
    struct changelog dirty = {{0}};

    if (x)
        changelog_get(&dirty, x->bytes, x->len);
    return dirty.count[CHANGE_DATA];
}

static void
find_dirty_copies(const struct replica_change *c)
{
    for (unsigned i = 0; i < scene.count; i++) {
        if (is_dirty_on(i, c->marked))
            finding_add("%s is dirty on c%u", c->marked, i);
    }
}

/* Stock's daemon does not heal each file that is dirty and accuses the only other copy of the data. */
START_TEST(a_lone_copy_is_never_dirty)
{
    static const struct replica_variant variant = {.before_act = lose_second_child};
    const struct replica_change *c = &replica_changes[_i];

    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        const struct replica_shape *shape = &replica_shapes[s];
        bool is_lone = shape->count == 2 || shape->has_arbiter;

        for (unsigned at = 0; is_lone && at < 24 && c->kind == CHANGE_DATA; at++) {
            struct fault f = {.child = ANY_CHILD, .at = at, .kind = FAULT_CUT_AFTER};

            snprintf(run_text, sizeof run_text, "%s, %s, c1 is down, mount dies after call %u", shape->name,
                     c->name, at);
            int ret = replica_change_run(shape, c, &variant, &f, 1);
            find_dirty_copies(c);
            replica_change_finish(shape, c, ret);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a file that was just written is removed ------------------------------------------------- */

static unsigned unlinks;

static void
expect_clear_marks(unsigned i, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_unlink || *ret < 0)
        return;
    unlinks++;
    if (is_dirty_on(i, "/h"))
        finding_add("the name goes while the file is dirty on c%u", i);
}

static void
expect_dirty_file(void)
{
    for (unsigned i = 0; i < scene.count; i++)
        must(is_dirty_on(i, "/h"));
    scene.lie = expect_clear_marks;
}

/* After the last name, no call would reach the file to clear its marks. */
START_TEST(the_marks_of_a_removed_file_are_cleared_first)
{
    static const struct replica_variant v = {.before_act = expect_dirty_file};
    const struct replica_change *c = &replica_changes[24];

    must(strcmp(c->name, "unlink by the written file") == 0);
    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        unlinks = 0;
        snprintf(run_text, sizeof run_text, "%s, %s", replica_shapes[s].name, c->name);
        int ret = replica_change_run(&replica_shapes[s], c, &v, NULL, 0);

        ck_assert(ret == 0 && unlinks == replica_shapes[s].count);
        scene.lie = NULL;
        replica_change_finish(&replica_shapes[s], c, ret);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-faults");
    TCase *t = tcase_create("faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_lone_copy_is_never_dirty, 0, REPLICA_CHANGES);
    tcase_add_test(t, the_marks_of_a_removed_file_are_cleared_first);
    tcase_add_loop_test(t, one_fault_loses_no_change, 0, REPLICA_CHANGES);
    suite_add_tcase(s, t);
    t = tcase_create("two");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, two_faults_lose_no_change, 0, REPLICA_CHANGES);
    suite_add_tcase(s, t);
    t = tcase_create("stale");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_stale_copy_that_accuses_loses_no_change, 0, REPLICA_CHANGES);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
