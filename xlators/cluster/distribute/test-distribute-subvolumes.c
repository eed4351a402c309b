/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Subvolumes that are full, lost or about to leave. Also events, options and the statedump, and a rename by a
 * user. */
#include "log/dump.h"
#include "xlators/cluster/distribute/test-distribute-calls.h"

/* ---- space ----------------------------------------------------------------------------------- */

static unsigned full_child;
static enum { FULL, FEW_INODES, BIG_BLOCKS, QUOTA, SIMPLE_QUOTA, ALL_ZERO, SPACES } space;

static void
answer_space(unsigned child, struct call_stack *stk, int *ret)
{
    struct statvfs *v = &stk->reply.statvfs;

    if (stk->call.fop != FOP_statfs || *ret < 0)
        return;
    if (space == FULL && child == full_child)
        v->f_bavail = v->f_bfree = 1;
    else if (space == FEW_INODES && child == full_child)
        v->f_ffree = 1;
    else if (space == BIG_BLOCKS && child == full_child)
        v->f_frsize = v->f_bsize = 1 << 20;
    else if (space == QUOTA)
        must(dict_set_int(reply_xdata(stk), DICT_KEY_QUOTA_DEEM_STATFS, 1) == 0);
    else if (space == SIMPLE_QUOTA)
        must(dict_set_text(reply_xdata(stk), "simple-quota", DICT_STR, "1", 2) == 0);
    else if (space == ALL_ZERO)
        *v = (struct statvfs){0};
    if (space == QUOTA || space == SIMPLE_QUOTA)
        v->f_bfree = v->f_bavail = 500 - 100 * child;
}

START_TEST(a_full_subvolume_gets_no_new_file)
{
    static const enum fop fops[] = {FOP_create, FOP_mknod, FOP_symlink};

    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES * 2 * 3 * 4; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 3 % 4, .kind = FAULT_REFUSED, .err = EIO};

        full_child = n % SUBVOLUMES;
        space = n / SUBVOLUMES % 2 ? FEW_INODES : FULL;
        caller_uid = n % 4 ? 1000 : 0;
        scene_clear(SUBVOLUMES, false);
        scene.lie = answer_space;
        mount_begin("");
        for (unsigned k = 0; k < 6; k++) {
            char path[8];

            snprintf(path, sizeof path, "/n%u", k);
            scene_arm(&f, k == 5 && n % 2);
            int ret = name_call(fops[n / 6 % 3], path);
            struct stored_object *o = store_find(&scene.store[full_child], path);

            if (ret >= 0 && o && !store_xattr(o, LINKTO_KEY))
                finding_add("%s was made on a full subvolume", path);
            if (ret < 0 && !(k == 5 && n % 2) && ret != -EEXIST)
                finding_add("%s was not made: %s", path, strerror(-ret));
            if (ret >= 0)
                must(name_call(FOP_lookup, path) == 0 && name_call(FOP_unlink, path) == 0);
        }
        scene.lie = NULL;
        caller_uid = 0;
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(statfs_sums_or_follows_quotas)
{
    for (unsigned n = 0; n < SPACES * 4; n++) {
        scene_clear(SUBVOLUMES, false);
        space = n % SPACES;
        full_child = 1;
        scene.lie = answer_space;
        mount_begin("");
        for (unsigned i = 0; i < n / SPACES && i < SUBVOLUMES; i++)
            scene_child_down(i);
        int ret = object_call(FOP_statfs, "/");

        must(ret == (n / SPACES >= SUBVOLUMES ? -ENOTCONN : 0));
        scene.lie = NULL;
        scene_end();
    }
}
END_TEST

/* ---- subvolumes that are lost ---------------------------------------------------------------- */

/* A name of a lost subvolume is missing, and the others are listed, unless the mount waits for its bricks. */
START_TEST(a_mount_that_waits_gets_the_loss)
{
    for (unsigned n = 0; n < 2 * SUBVOLUMES * 8; n++) {
        unsigned lost = n / 2 % SUBVOLUMES;
        char path[8];

        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        snprintf(path, sizeof path, "/n%u", n / 2 / SUBVOLUMES);
        must(name_call(FOP_create, path) >= 0);
        bool is_lost = store_find(&scene.store[lost], path);
        int missing = n % 2 ? -ENOTCONN : -ENOENT;

        scene_child_down(lost);
        hint = n % 2 ? HINT_WAITS : HINT_NONE;
        ck_assert_int_eq(name_call(FOP_lookup, path), is_lost ? missing : 0);
        ck_assert_int_eq(object_call(FOP_opendir, "/"), n % 2 ? -ENOTCONN : 0);
        ck_assert_int_eq(name_call(FOP_unlink, path), is_lost ? missing : 0);
        hint = HINT_NONE;
        scene_end();
    }
}
END_TEST

/* ---- subvolumes that leave ------------------------------------------------------------------- */

START_TEST(a_subvolume_that_leaves_gets_nothing_new)
{
    findings = 0;
    for (unsigned n = 0; n < 24; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 3 % 8, .kind = FAULT_REFUSED, .err = EIO};
        char path[8];

        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        must(scene_reconfigure(" option decommissioned-bricks c1\n") == 0);
        scene_arm(&f, n % 2);
        snprintf(path, sizeof path, "/n%u", n);
        int ret = name_call(n % 4 < 2 ? FOP_create : FOP_mknod, path);
        struct stored_object *o = store_find(&scene.store[1], path);

        if (ret >= 0 && o && !store_xattr(o, LINKTO_KEY))
            finding_add("%s was made on the subvolume that leaves", path);
        if (ret >= 0 && name_call(FOP_lookup, path) < 0)
            finding_add("%s is not found", path);
        (void)name_call(FOP_mkdir, "/new");
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_arm(NULL, 0);
        scene_end();
    }
    /* no other subvolume is up */
    scene_clear(2, false);
    mount_begin(" option decommissioned-bricks c0,c1\n");
    (void)name_call(FOP_create, "/n");
    scene_end();
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- events, options, the statedump ---------------------------------------------------------- */

static enum child_event told[16];
static unsigned told_count;

static void
note_event(struct graph *g, const struct layer_event *e)
{
    (void)g;
    if (e->kind == EVENT_CHILD && told_count < sizeof told / sizeof told[0])
        told[told_count++] = e->change;
}

START_TEST(events_tell_whether_any_subvolume_is_up)
{
    scene_clear(SUBVOLUMES, false);
    scene_begin_top(&cluster_distribute_xlator, "");
    scene.graph->watch = note_event;
    told_count = 0;
    scene_child_down(0);
    scene_child_down(1);
    must(told_count == 0);
    scene_child_down(2);
    must(told_count == 1 && told[0] == CHILD_DOWN);
    xlator_tell_parent(scene.child[0], CHILD_REFUSED);
    must(told_count == 2 && told[1] == CHILD_REFUSED);
    xlator_tell_parent(scene.child[1], CHILD_CONNECTING);
    xlator_tell_parent(scene.child[1], CHILD_SOME_DOWN);
    xlator_tell_parent(scene.child[1], CHILD_SOME_UP);
    scene_child_up(1);
    must(told[told_count - 1] == CHILD_UP);
    unsigned count = told_count;

    scene_child_up(2);
    scene_child_up(2); /* an event for the second time */
    must(told_count == count);
    scene_end();
}
END_TEST

START_TEST(a_wrong_option_is_named)
{
    static const struct {
        unsigned count;
        const char *options, *error;
    } cases[] = {
        {2, " option rsync-hash-regex (\n", "rsync-hash-regex"},
        {2, " option extra-hash-regex (\n", "extra-hash-regex"},
        {2, " option min-free-disk much\n", "min-free-disk"},
        {2, " option xattr-name other\n", "xattr-name"},
        {0, "", "0 subvolumes"},
        {2, " option rsync-hash-regex none\n option extra-hash-regex (.*)~\n", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene_clear(cases[i].count ? cases[i].count : 1, false);
        if (!cases[i].count)
            continue;
        const char *error = scene_refusal(&cluster_distribute_xlator, cases[i].options, false);

        if (!error != !cases[i].error || (error && !strstr(error, cases[i].error)))
            ck_abort_msg("%s: %s", cases[i].options, error ? error : "accepted");
    }
}
END_TEST

START_TEST(a_layer_without_memory_is_refused)
{
    bool has_starved = true;

    scene_init_starving();
    scene_clear(SUBVOLUMES, false);
    must(!scene_refusal(&cluster_distribute_xlator, "", false)); /* makes the pools */
    for (int64_t n = 1; has_starved; n++) {
        scene_starve(n);
        const char *error = scene_refusal(&cluster_distribute_xlator, "", false);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(error || !has_starved || n > 1);
    }
}
END_TEST

START_TEST(the_statedump_has_the_subvolumes)
{
    char *text = NULL;
    size_t len;

    scene_clear(SUBVOLUMES, false);
    scene_begin_top(&cluster_distribute_xlator, " option decommissioned-bricks c2\n");
    scene_child_down(1);
    struct dump d = {.file = open_memstream(&text, &len)};

    cluster_distribute_xlator.dump(scene.graph->top, &d);
    must(fclose(d.file) == 0);
    must(strstr(text, "subvol_cnt=3\n") && strstr(text, "subvolume_status[1]=0\n"));
    must(strstr(text, "subvolume_leaving[2]=1\n") && !strstr(text, "subvolume_leaving[0]"));
    free(text);
    scene_end();
}
END_TEST

/* A rename by a user: linkto files get the owner of the file. */
START_TEST(a_rename_by_a_user_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < 5 * SUBVOLUMES * 16; n++) {
        struct fault f = {.child = n / 5 % SUBVOLUMES,
                          .at = n / 5 / SUBVOLUMES,
                          .kind = (enum fault_kind)(n % 3),
                          .err = EIO};
        char to[8];

        snprintf(run_text, sizeof run_text, "run %u", n);
        snprintf(to, sizeof to, "/t%u", n % 5);
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        caller_uid = 1000;
        must(name_call(FOP_mknod, "/from") == 0);
        scene_arm(&f, 1);
        (void)rename_call("/from", to);
        children_return();
        int from = name_call(FOP_lookup, "/from"), moved = name_call(FOP_lookup, to);

        if (from < 0 && moved < 0)
            finding_add("the file is lost: %d, %d", from, moved);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        caller_uid = 0;
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        a_full_subvolume_gets_no_new_file,
        statfs_sums_or_follows_quotas,
        a_mount_that_waits_gets_the_loss,
        a_subvolume_that_leaves_gets_nothing_new,
        events_tell_whether_any_subvolume_is_up,
        a_wrong_option_is_named,
        a_layer_without_memory_is_refused,
        the_statedump_has_the_subvolumes,
        a_rename_by_a_user_survives_faults,
    };
    Suite *s = suite_create("distribute-subvolumes");
    TCase *t = tcase_create("subvolumes");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
