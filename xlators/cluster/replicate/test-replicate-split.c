/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Split-brain: reads and changes of an object whose copies all accuse each other (pending xattrs), the
 * policies that choose a copy, and the xattrs by which a user inspects and resolves split-brain. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

enum { REPLICAS = 3 };

/* ---- the volume: /f, whose copies differ ----------------------------------------------------- */

static const char *const contents[] = {"copy zero!", "copy one", "copy two is longest"};

static void
accuse_all(const char *path, enum change what)
{
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned k = 0; k < scene.count; k++) {
            if (i != k)
                replica_accuse(path, i, k, what);
        }
    }
}

static void
volume_make(unsigned count, bool has_arbiter)
{
    scene_clear(count, has_arbiter);
    store_make_all("/d", S_IFDIR | 0755, 4, NULL);
    store_make_all("/g", S_IFREG | 0644, 5, "good");
    for (unsigned i = 0; i < count; i++)
        (void)store_make(i, "/f", S_IFREG | 0644, 3, contents[i]);
}

/* Begins a mount that heals nothing by itself. */
static void
mount_begin(const char *options)
{
    char all[512];

    snprintf(all, sizeof all, " option data-self-heal off\n option metadata-self-heal off\n%s", options);
    replicas_begin(all);
}

static int
read_f(void)
{
    int err = replica_call(FOP_open, "/f", NULL);

    return err ? err : replica_call(FOP_readv, "/f", NULL);
}

static bool
has_read(unsigned i)
{
    return scene.text_len == strlen(contents[i]) && memcmp(scene.text, contents[i], scene.text_len) == 0;
}

/* ---- xattrs of the user ---------------------------------------------------------------------- */

static const char *xattr_name, *xattr_value;
static uint32_t xattr_len;
static enum dict_type xattr_type;

static void
fill_xattr(struct call_stack *stk)
{
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, xattr_name, xattr_type, xattr_value, xattr_len) == 0);
}

static int
set_xattr(const char *path, const char *name, const char *value)
{
    xattr_name = name;
    xattr_value = value;
    xattr_len = (uint32_t)strlen(value);
    xattr_type = DICT_PTR;
    return replica_call(FOP_setxattr, path, fill_xattr);
}

static void
fill_name(struct call_stack *stk)
{
    stk->call.name = xattr_name;
    stk->call.has_name = 1;
}

static int
get_xattr(const char *path, const char *name)
{
    xattr_name = name;
    return replica_call(FOP_getxattr, path, fill_name);
}

/* ---- without a way out ----------------------------------------------------------------------- */

static void
fill_mode(struct call_stack *stk)
{
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
}

START_TEST(split_data_can_be_neither_read_nor_changed)
{
    static const enum change kinds[] = {CHANGE_DATA, CHANGE_METADATA};

    for (unsigned n = 0; n < 4; n++) {
        volume_make(n / 2 ? REPLICAS : 2, false);
        accuse_all("/f", kinds[n % 2]);
        mount_begin("");
        must(read_f() == -EIO);
        must(replica_call(FOP_truncate, "/f", NULL) == -EIO);
        must(replica_call(FOP_setattr, "/f", fill_mode) == -EIO);
        must(get_xattr("/f", "user.a") == -EIO);
        must(replica_call(FOP_stat, "/f", NULL) == 0); /* so that the name can be seen and removed */
        must(replica_call(FOP_access, "/f", NULL) == (kinds[n % 2] == CHANGE_METADATA ? -EIO : 0));
        scene_end();
        must(!store_locks());
    }
}
END_TEST

START_TEST(a_split_folder_can_be_listed)
{
    volume_make(REPLICAS, false);
    store_make_all("/d/x", S_IFREG | 0644, 6, "x");
    accuse_all("/d", CHANGE_ENTRY);
    mount_begin("");
    must(replica_call(FOP_opendir, "/d", NULL) == 0);
    must(replica_call(FOP_readdir, "/d", NULL) == 1 && strcmp(scene.names, "x/") == 0);
    scene_end();
}
END_TEST

/* ---- policies -------------------------------------------------------------------------------- */

/* Returns the child whose value is the greatest, or -1: a tie. */
static int
expected_winner(const int value[REPLICAS], unsigned count)
{
    int best = -1;

    for (unsigned i = 0; i < count; i++) {
        bool is_best = true;

        for (unsigned k = 0; k < count; k++)
            is_best &= k == i || value[k] < value[i];
        best = is_best ? (int)i : best;
    }
    return best;
}

static void
set_values(const char *policy, const int value[REPLICAS], bool modes_differ)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");

        o->stat.ctime = o->stat.mtime = 77;
        o->stat.size = 4;
        o->stat.mode = S_IFREG | (0640 + (modes_differ ? i : 0));
        memset(o->data, 'a' + (int)i, 4);
        if (strcmp(policy, "size") == 0)
            o->stat.size = (uint64_t)value[i] + 1;
        else if (strcmp(policy, "ctime") == 0)
            o->stat.ctime = value[i] / 2, o->stat.ctime_nsec = (uint32_t)value[i] % 2;
        else if (strcmp(policy, "mtime") == 0)
            o->stat.mtime = value[i] / 2, o->stat.mtime_nsec = (uint32_t)value[i] % 2;
    }
}

static void
check_policy(const char *policy, unsigned count, const int value[REPLICAS], enum change what)
{
    char options[64];

    volume_make(count, false);
    set_values(policy, value, what == CHANGE_METADATA);
    accuse_all("/f", what);
    snprintf(options, sizeof options, " option favorite-child-policy %s\n", policy);
    mount_begin(options);
    int winner = expected_winner(value, count), ret = read_f(), copy = -1;

    if (ret > 0 && what == CHANGE_DATA)
        copy = scene.text[0] - 'a';
    else if (ret > 0 && replica_call(FOP_stat, "/f", NULL) == 0)
        copy = (int)(scene.stat.mode & 0777) - 0640;
    if (copy != winner || (winner < 0 && ret != -EIO))
        ck_abort_msg("%s, values %d %d %d: the read returns %d from copy %d", policy, value[0], value[1],
                     value[2], ret, copy);
    must(!store_locks());
    scene_end();
}

START_TEST(a_policy_chooses_the_copy)
{
    static const char *const policies[] = {"size", "ctime", "mtime"};

    for (unsigned n = 0; n < 64; n++) {
        int value[REPLICAS] = {(int)(n % 4), (int)(n / 4 % 4), (int)(n / 16)};

        for (size_t p = 0; p < sizeof policies / sizeof policies[0]; p++)
            check_policy(policies[p], n / 16 ? REPLICAS : 2, value, n % 2 ? CHANGE_DATA : CHANGE_METADATA);
    }
}
END_TEST

START_TEST(the_majority_chooses_the_copy)
{
    for (unsigned n = 0; n < 8; n++) {
        unsigned winners = 0;

        volume_make(REPLICAS, false);
        for (unsigned i = 0; i < REPLICAS; i++) {
            struct stored_object *o = store_find(&scene.store[i], "/f");

            o->stat.size = 4 + (n >> i & 1);
            o->stat.mtime = 5;
            winners += n >> i & 1;
        }
        accuse_all("/f", CHANGE_DATA);
        mount_begin(" option favorite-child-policy majority\n");
        int ret = read_f();

        must(ret == (winners >= 2 ? 5 : 4));
        scene_end();
    }
    volume_make(2, false);
    accuse_all("/f", CHANGE_DATA);
    mount_begin(" option favorite-child-policy majority\n");
    must(read_f() == -EIO);
    scene_end();
}
END_TEST

START_TEST(a_policy_waits_for_all_children_and_survives_faults)
{
    bool has_struck = true;

    for (unsigned at = 0; has_struck; at++) {
        struct fault f = {.child = at % REPLICAS, .at = at / REPLICAS, .kind = FAULT_REFUSED, .err = EROFS};

        volume_make(REPLICAS, false);
        accuse_all("/f", CHANGE_DATA);
        mount_begin(" option favorite-child-policy size\n");
        must(replica_call(FOP_open, "/f", NULL) == -EIO || true);
        scene_arm(&f, 1);
        int ret = read_f();

        has_struck = scene.fault[0].has_struck || at < 9;
        must(ret == -EIO || ret == -EROFS || has_read(2));
        scene_arm(NULL, 0);
        must(read_f() > 0 && has_read(2));
        must(!store_locks());
        scene_end();
    }
    volume_make(REPLICAS, false);
    accuse_all("/f", CHANGE_DATA);
    mount_begin(" option favorite-child-policy size\n");
    scene_child_down(0);
    must(read_f() == -EIO);
    scene_end();
}
END_TEST

START_TEST(an_arbiter_never_wins)
{
    volume_make(REPLICAS, true);
    accuse_all("/f", CHANGE_DATA);
    mount_begin(" option arbiter-count 1\n option favorite-child-policy ctime\n");
    int ret = read_f();

    must(ret == -EIO || has_read(0) || has_read(1));
    must(set_xattr("/f", "replica.split-brain-choice", "c2") == -EINVAL);
    must(set_xattr("/f", "replica.split-brain-heal-finalize", "c2") == -EINVAL);
    scene_end();
}
END_TEST

/* ---- a user's choice ------------------------------------------------------------------------- */

START_TEST(a_user_chooses_the_copy_to_read)
{
    volume_make(REPLICAS, false);
    accuse_all("/f", CHANGE_DATA);
    mount_begin("");
    must(read_f() == -EIO);
    must(get_xattr("/f", "replica.split-brain-status") == 0);
    for (unsigned i = 0; i < REPLICAS; i++) {
        char name[4] = {'c', (char)('0' + i), '\0'};

        must(set_xattr("/f", "replica.split-brain-choice", name) == 0);
        must(read_f() > 0 && has_read(i));
        must(replica_call(FOP_stat, "/f", NULL) == 0);
    }
    must(set_xattr("/f", "replica.split-brain-choice", "none") == 0);
    must(read_f() == -EIO);
    must(set_xattr("/f", "replica.split-brain-choice-timeout", "0") == 0);
    must(set_xattr("/f", "replica.split-brain-choice", "c1") == 0);
    must(read_f() == -EIO); /* expired at once */
    must(set_xattr("/f", "replica.split-brain-choice-timeout", "10") == 0);
    must(set_xattr("/f", "replica.split-brain-choice", "c1") == 0);
    scene_child_down(1);
    must(read_f() == -ENOTCONN);
    scene_end();
}
END_TEST

START_TEST(a_wrong_choice_is_refused)
{
    static const struct {
        const char *path, *name, *value;
    } cases[] = {
        {"/f", "replica.split-brain-choice", "c9"},
        {"/f", "replica.split-brain-choice", ""},
        {"/g", "replica.split-brain-choice", "c1"}, /* no split-brain */
        {"/d", "replica.split-brain-choice", "c1"},
        {"/f", "replica.split-brain-choice-timeout", "x"},
        {"/f", "replica.split-brain-choice-timeout", "5x"},
        {"/f", "replica.split-brain-choice-timeout", "100000"},
        {"/f", "replica.split-brain-heal-finalize", "c9"},
    };
    char big[STORED_DATA_MAX];

    volume_make(REPLICAS, false);
    accuse_all("/f", CHANGE_DATA);
    mount_begin("");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        must(set_xattr(cases[i].path, cases[i].name, cases[i].value) == -EINVAL);
    memset(big, 'c', sizeof big);
    xattr_name = "replica.split-brain-choice";
    xattr_value = big;
    xattr_len = STORED_DATA_MAX;
    must(replica_call(FOP_setxattr, "/f", fill_xattr) == -EINVAL);
    must(get_xattr("/f", "glusterfs.heal-info") == -ENODATA);
    must(get_xattr("/f", "glusterfs.heal-sbrain") == -ENODATA);
    must(get_xattr("/g", "replica.split-brain-status") == 0);
    scene_child_down(0);
    scene_child_down(1);
    must(set_xattr("/f", "replica.split-brain-choice", "c2") == -ENOTCONN);
    must(get_xattr("/f", "replica.split-brain-status") == -ENOTCONN);
    scene_end();
}
END_TEST

START_TEST(a_user_heals_from_a_copy)
{
    static const enum change kinds[] = {CHANGE_DATA, CHANGE_METADATA};

    for (unsigned n = 0; n < 6; n++) {
        unsigned chosen = n % REPLICAS;
        char name[4] = {'c', (char)('0' + chosen), '\0'};

        volume_make(REPLICAS, false);
        store_find(&scene.store[chosen], "/f")->stat.mode = S_IFREG | 0640;
        accuse_all("/f", kinds[n / REPLICAS]);
        mount_begin("");
        must(set_xattr("/f", "replica.split-brain-choice", name) == 0);
        must(set_xattr("/f", "replica.split-brain-heal-finalize", name) == 0);
        must(read_f() > 0);
        if (kinds[n / REPLICAS] == CHANGE_DATA)
            must(has_read(chosen));
        else
            must(replica_call(FOP_stat, "/f", NULL) == 0 && (scene.stat.mode & 0777) == 0640);
        scene_run(5000);
        must(!counters_left());
        scene_end();
    }
}
END_TEST

START_TEST(a_heal_from_a_copy_survives_faults)
{
    for (unsigned n = 0; n < REPLICAS * 30; n++) {
        struct fault f = {.child = n % REPLICAS, .at = n / REPLICAS, .kind = FAULT_REFUSED, .err = ENOSPC};

        volume_make(REPLICAS, false);
        accuse_all("/f", CHANGE_DATA);
        mount_begin("");
        scene_arm(&f, 1);
        int ret = set_xattr("/f", "replica.split-brain-heal-finalize", "c1");
        bool has_struck = scene.fault[0].has_struck;

        must(ret == 0 || has_struck);
        scene_arm(NULL, 0);
        ret = set_xattr("/f", "replica.split-brain-heal-finalize", "c1");
        must(ret == 0);
        must(read_f() > 0 && has_read(1));
        scene_run(5000);
        must(!store_locks() && !copies_difference() && !counters_left());
        scene_end();
    }
}
END_TEST

START_TEST(lack_of_memory_in_a_choice_is_enomem)
{
    static const char *const names[] = {"replica.split-brain-choice", "replica.split-brain-heal-finalize",
                                        "replica.split-brain-choice-timeout"};
    bool has_starved = true;

    scene_init_starving();
    for (int64_t at = 1; has_starved; at++) {
        has_starved = false;
        for (size_t i = 0; i < 4; i++) {
            volume_make(REPLICAS, false);
            accuse_all("/f", CHANGE_DATA);
            mount_begin("");
            scene_starve(at);
            int ret = i == 3 ? get_xattr("/f", "replica.split-brain-status")
                             : set_xattr("/f", names[i], i == 2 ? "7" : "c1");

            has_starved |= scene_has_starved();
            if (ret != 0 && !(scene_has_starved() && (ret == -ENOMEM || ret == -EIO || ret == -EAGAIN)))
                ck_abort_msg("request %zu without memory at allocation %d: %s", i, (int)at, strerror(-ret));
            scene_starve(0);
            must(set_xattr("/f", "replica.split-brain-heal-finalize", "c1") == 0);
            must(!store_locks());
            scene_end();
        }
    }
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        split_data_can_be_neither_read_nor_changed,
        a_split_folder_can_be_listed,
        a_policy_chooses_the_copy,
        the_majority_chooses_the_copy,
        a_policy_waits_for_all_children_and_survives_faults,
        an_arbiter_never_wins,
        a_user_chooses_the_copy_to_read,
        a_wrong_choice_is_refused,
        a_user_heals_from_a_copy,
        a_heal_from_a_copy_survives_faults,
        lack_of_memory_in_a_choice_is_enomem,
    };
    Suite *s = suite_create("replicate-split");
    TCase *t = tcase_create("split");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
