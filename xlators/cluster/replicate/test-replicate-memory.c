/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a replicated volume, with each of its allocations failing in turn: as without memory for a
 * moment. The change fails, or is done on all copies or recorded; no lock is left, and the copies become
 * equal by a heal (test-replica-changes.h). MEMORY_RUN=TEXT in the environment makes only the run of that
 * text. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replica-changes.h"

static int64_t starve_at;

static void
starve_next_change(void)
{
    scene_starve(starve_at);
}

/* Returns whether an allocation has failed. */
static bool
run_starved(const struct replica_shape *shape, const struct replica_change *c, bool is_warm)
{
    const struct replica_variant v = {.is_warm = is_warm, .before_act = starve_next_change};
    const char *only = getenv("MEMORY_RUN");

    snprintf(run_text, sizeof run_text, "%s, %s%s, allocation %lld", shape->name, c->name,
             is_warm ? ", warm" : "", (long long)starve_at);
    if (only && strcmp(only, run_text) != 0)
        return starve_at < 1000;
    int ret = replica_change_run(shape, c, &v, NULL, 0);
    bool has_starved = scene_has_starved();

    scene_starve(0);
    if (ret < 0 && !(has_starved && ret == -ENOMEM))
        finding_add("the change fails: %s", strerror(-ret));
    replica_change_finish(shape, c, ret);
    return has_starved;
}

START_TEST(a_change_without_memory_leaves_equal_copies)
{
    const struct replica_change *c = &replica_changes[_i / 2];

    findings = 0;
    scene_init_starving();
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        starve_at = 1;
        while (run_starved(&replica_shapes[s], c, _i % 2))
            starve_at++;
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-memory");
    TCase *t = tcase_create("memory");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_change_without_memory_leaves_equal_copies, 0, 2 * REPLICA_CHANGES);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
