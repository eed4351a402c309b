/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes, reads and heals of a replicated volume of which one brick lies (xlators/cluster/test-lies.h). The
 * contents behind a lie may be lost with it; but
 *
 *      the caller has an answer, no lock is left, and no object leaks
 *      on three copies: a change reported as done is on a copy of an honest brick
 *      a file on the honest bricks has its old contents or the new */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"
#include "xlators/cluster/test-lies.h"

static struct {
    unsigned child, at, times;
    enum lie lie;
} next_lie;

static void
begin_lie(void)
{
    lie_begin(next_lie.child, next_lie.at, next_lie.times, next_lie.lie);
}

static void
check_honest(const struct replica_shape *shape, const struct replica_change *c, int ret)
{
    bool is_done = false, can_tell = false;

    for (unsigned i = 0; i < shape->count; i++) {
        struct stored_object *f = store_find(&scene.store[i], "/f");

        if (i == next_lie.child)
            continue;
        can_tell |= replica_can_tell(c, i);
        is_done |= replica_can_tell(c, i) && replica_has_change(c, i);
        if (f && S_ISREG(f->stat.mode) && f->stat.size > 22)
            finding_add("c%u: f has %u bytes", i, (unsigned)f->stat.size);
    }
    if (ret >= 0 && can_tell && !is_done && shape->count > 2)
        finding_add("reported as done, and no honest copy has the change");
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

/* Returns whether the lie was told. */
static bool
run_lie(const struct replica_shape *shape, const struct replica_change *c)
{
    const struct replica_variant v = {.before_act = begin_lie};

    snprintf(run_text, sizeof run_text, "%s, %s, c%u tells %s at call %u, %u times", shape->name, c->name,
             next_lie.child, lie_names[next_lie.lie], next_lie.at, next_lie.times + 1);
    int ret = replica_change_run(shape, c, &v, NULL, 0);
    bool is_told = lie_end();

    check_honest(shape, c, ret);
    /* a heal, of which the brick lies again */
    lie_begin(next_lie.child, next_lie.at, next_lie.times, next_lie.lie);
    scene_lookup_all();
    (void)lie_end();
    scene_run(5000);
    if (store_locks())
        finding_add("the heal leaves locks: %s", store_locks_text());
    scene_end();
    return is_told;
}

START_TEST(a_lie_loses_nothing_on_honest_bricks)
{
    const struct replica_change *c = &replica_changes[_i];
    unsigned told = 0;

    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        const struct replica_shape *shape = &replica_shapes[s];

        for (unsigned n = 0; n < shape->count * 8 * LIES * 2; n += 5) {
            next_lie.child = n % shape->count;
            next_lie.at = n / shape->count % 8;
            next_lie.lie = (enum lie)(n / shape->count / 8 % LIES);
            next_lie.times = n / shape->count / 8 / LIES ? 1000 : 0;
            told += run_lie(shape, c);
        }
    }
    ck_assert_uint_gt(told, 20);
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- a heal ---------------------------------------------------------------------------------- */

static unsigned missing;

static void
child_goes(void)
{
    scene_child_down(missing);
}

START_TEST(a_lie_during_a_heal_ends)
{
    static const struct replica_variant v = {.before_act = child_goes};
    const struct replica_change *c = &replica_changes[_i];

    findings = 0;
    for (unsigned n = 0; n < 3 * 3 * 14 * LIES; n++) {
        if (n % 17)
            continue;
        next_lie.child = n % 3;
        missing = n / 3 % 3;
        next_lie.at = 3 * (n / 9 % 14);
        next_lie.lie = (enum lie)(n / 9 / 14);
        snprintf(run_text, sizeof run_text, "%s, c%u was away, c%u tells %s at call %u of the heal", c->name,
                 missing, next_lie.child, lie_names[next_lie.lie], next_lie.at);
        (void)replica_change_run(&replica_shapes[1], c, &v, NULL, 0);
        scene_child_up(missing);
        lie_begin(next_lie.child, next_lie.at, n % 2 ? 1000 : 0, next_lie.lie);
        scene_lookup_all();
        (void)lie_end();
        scene_run(5000);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- reads ----------------------------------------------------------------------------------- */

static void
fill_xattr(struct call_stack *stk)
{
    stk->call.name = "user.a";
    stk->call.has_name = 1;
}

START_TEST(a_lie_in_a_read_ends)
{
    static const enum fop fops[] = {FOP_stat,    FOP_readlink, FOP_access,  FOP_getxattr, FOP_open,
                                    FOP_opendir, FOP_readdirp, FOP_readdir, FOP_statfs,   FOP_lookup,
                                    FOP_readv,   FOP_fstat,    FOP_seek,    FOP_lk};

    for (unsigned n = 0; n < 3 * 6 * LIES * sizeof fops / sizeof fops[0]; n++) {
        enum fop fop = fops[n / (3 * 6 * LIES)];
        bool is_list = fop == FOP_readdirp || fop == FOP_readdir;
        const char *path = fop == FOP_readlink                ? "/l"
                           : is_list || fop == FOP_opendir    ? "/full"
                                                              : "/f";

        replica_volume_make(&replica_shapes[1]);
        store_make_all("/l", S_IFLNK | 0777, 40, "target");
        replicas_begin("");
        if (fop_info[fop].traits & FOP_BY_FD)
            must(replica_call(is_list ? FOP_opendir : FOP_open, path, NULL) == 0);
        lie_begin(n % 3, n / 3 % 6, n % 4 ? 0 : 1000, (enum lie)(n / 18 % LIES));
        int ret = replica_call(fop, path, fop == FOP_getxattr ? fill_xattr : NULL);

        must(ret < 0 || fop != FOP_readv || ret <= 4096);
        (void)replica_call(fop, path, fop == FOP_getxattr ? fill_xattr : NULL);
        (void)lie_end();
        scene_run(5000);
        must(!store_locks());
        scene_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-lies");
    TCase *t = tcase_create("lies");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_lie_loses_nothing_on_honest_bricks, 0, REPLICA_CHANGES);
    tcase_add_loop_test(t, a_lie_during_a_heal_ends, 0, REPLICA_CHANGES);
    tcase_add_test(t, a_lie_in_a_read_ends);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
