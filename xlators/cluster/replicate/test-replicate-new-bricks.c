/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The self-heal daemon fills a new brick, child 2 of three in memory, beside clients that still work with the
 * graph without the brick: such a client changes children 0 and 1 and accuses no child.
 *
 * The daemon heals no object while such a client is there, and names the client. After the client has taken
 * the new graph, the new brick has all changes: of objects that it lacked, and of objects that other clients
 * have made on it meanwhile. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "log/log.h"
#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/test-replicas.h"
#include "xlators/cluster/test-rolls.h"

enum { NEW = 2, A_MOMENT_MS = 5000, A_WHILE_MS = 30000, MANY_MS = 600000 };

static const struct rolls all_rolls[] = {
    {"no clients", {"", "", ""}, NULL, false},
    {"bricks that do not tell", {NULL, NULL, NULL}, NULL, false},
    {"a client of all bricks", {LOGIN("1", "0"), LOGIN("1", "0"), LOGIN("1", "0")}, NULL, false},
    {"an old client", {LOGIN("1", "0"), LOGIN("1", "0"), ""}, "process 11 on host-1", false},
    {"a client that is changing its graph",
     {LOGIN("1", "0") LOGIN("1", "2"), LOGIN("1", "0") LOGIN("1", "2"), LOGIN("1", "2")},
     "process 11 on host-1",
     true},
    {"a client that does not reach a former brick", {LOGIN("1", "0"), "", LOGIN("1", "0")}, NULL, false},
    {"kiln-mount", {LOGIN("1", "3"), LOGIN("1", "4"), LOGIN("1", "5")}, NULL, false},
    {"kiln-mount with an old graph", {LOGIN("1", "0"), LOGIN("1", "1"), ""}, "process 11 on host-1", false},
    {"kiln-mount with both graphs",
     {LOGIN("1", "0") LOGIN("1", "2"), LOGIN("1", "1") LOGIN("1", "3"), LOGIN("1", "4")},
     "process 11 on host-1",
     true},
    {"kiln-mount that does not reach a former brick", {LOGIN("1", "0"), "", LOGIN("1", "2")}, NULL, false},
    {"a new brick that does not tell", {LOGIN("1", "0"), LOGIN("1", "0"), NULL}, NULL, false},
};
enum { ROLLS = sizeof all_rolls / sizeof all_rolls[0], OLD = 3 };

/* ---- the set --------------------------------------------------------------------------------- */

static struct crawler *crawler;

/* Marks the root as kilnd does when an operator adds a brick (volumes/bricks/brick-marks.c). */
static void
set_begin(void)
{
    log_set_level(LOG_CRITICAL);
    scene_clear(3, false);
    for (unsigned i = 0; i < NEW; i++) {
        store_make(i, "/f", S_IFREG | 0644, 3, "before");
        store_make(i, "/d", S_IFDIR | 0755, 4, NULL);
        store_make(i, "/d/g", S_IFREG | 0644, 5, "before");
        for (unsigned what = 0; what < CHANGES; what++)
            replica_accuse("/", i, NEW, (enum change)what);
    }
    rolls = &all_rolls[0];
    rolls_told = 0;
    scene.lie = tell_clients;
}

static void
healer_begin(void)
{
    scene_begin_top(&cluster_replicate_xlator, replicas_options(""));
    crawler = crawler_new(scene.graph, 1, true);
    must(crawler);
    (void)crawler_ask(crawler, false);
}

static void
healer_end(void)
{
    scene_child_down(0); /* ends a crawl that waits */
    scene_run(2000);
    crawler_free(crawler);
    scene.lie = NULL;
    scene_end();
}

/* A client of the old graph changes a file. */
static void
old_client_writes(const char *path, const char *contents)
{
    for (unsigned i = 0; i < NEW; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);

        memcpy(o->data, contents, strlen(contents));
        o->stat.size = strlen(contents);
    }
}

static void
check_waits(const struct rolls *now)
{
    char who[256];

    crawler_waits_for(crawler, who, sizeof who);
    ck_assert_str_eq(who, now->waits_for);
    ck_assert_msg(!store_find(&scene.store[NEW], "/f"), "%s: the file is healed", now->what);
}

static void
check_healed(const char *what)
{
    char who[256];

    crawler_waits_for(crawler, who, sizeof who);
    ck_assert_str_eq(who, "");
    const char *differs = copies_difference(), *left = counters_left();
    ck_assert_msg(!differs, "%s: %s", what, differs);
    ck_assert_msg(!left, "%s: %s", what, left);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_new_brick_is_filled_when_no_client_lacks_it)
{
    const struct rolls *now = &all_rolls[_i];

    set_begin();
    rolls = now;
    healer_begin();
    scene_run(A_MOMENT_MS);
    if (now->waits_for)
        check_waits(now);
    scene_run(A_WHILE_MS);
    if (now->waits_for && !now->is_changing) {
        check_waits(now);
        old_client_writes("/f", "behind");
        old_client_writes("/d/g", "behind");
        rolls = &all_rolls[2];
        scene_run(MANY_MS);
    }
    check_healed(now->what);
    healer_end();
}
END_TEST

/* Clients of the new graph make a file, and a folder with a file, on all bricks. A client of the old graph
 * then writes the files and makes another one, on its bricks only. */
START_TEST(objects_made_beside_an_old_client_are_compared)
{
    set_begin();
    rolls = &all_rolls[OLD];
    healer_begin();
    scene_run(A_WHILE_MS);
    store_make_all("/n", S_IFREG | 0644, 6, "new");
    store_make_all("/e", S_IFDIR | 0755, 7, NULL);
    store_make_all("/e/n", S_IFREG | 0644, 8, "new");
    old_client_writes("/n", "old");
    old_client_writes("/e/n", "old");
    for (unsigned i = 0; i < NEW; i++)
        store_make(i, "/e/o", S_IFREG | 0644, 9, "old");
    scene_run(A_WHILE_MS);
    check_waits(rolls);
    rolls = &all_rolls[2];
    scene_run(MANY_MS);
    check_healed("objects of new clients");
    ck_assert_int_eq(memcmp(store_find(&scene.store[0], "/e/n")->data, "old", 3), 0);
    healer_end();
}
END_TEST

/* A brick that has missed a change which the new brick has is not believed. */
START_TEST(a_new_brick_that_accuses_another_one_keeps_its_copy)
{
    set_begin();
    rolls = &all_rolls[OLD];
    healer_begin();
    scene_run(A_WHILE_MS);
    store_make_all("/n", S_IFREG | 0644, 6, "new");
    memcpy(store_find(&scene.store[0], "/n")->data, "bad", 3);
    replica_accuse("/n", 1, 0, CHANGE_DATA);
    replica_accuse("/n", NEW, 0, CHANGE_DATA);
    rolls = &all_rolls[2];
    scene_run(MANY_MS);
    check_healed("a copy that has missed a change");
    ck_assert_int_eq(memcmp(store_find(&scene.store[0], "/n")->data, "new", 3), 0);
    healer_end();
}
END_TEST

START_TEST(a_set_without_a_new_brick_asks_for_no_clients)
{
    set_begin();
    healer_begin();
    scene_run(MANY_MS);
    check_healed("no clients");
    ck_assert_uint_gt(rolls_told, 0);
    rolls_told = 0;
    rolls = &all_rolls[OLD];
    memcpy(store_find(&scene.store[0], "/f")->data, "behind", 6);
    replica_accuse("/f", 0, 1, CHANGE_DATA);
    replica_accuse("/f", 0, NEW, CHANGE_DATA);
    must(crawler_ask(crawler, false) == 0);
    scene_run(A_WHILE_MS);
    check_healed("an old client, but no new brick");
    ck_assert_uint_eq(rolls_told, 0);
    healer_end();
}
END_TEST

START_TEST(a_full_crawl_waits_too)
{
    set_begin();
    rolls = &all_rolls[OLD];
    healer_begin();
    must(crawler_ask(crawler, true) == 0);
    scene_run(MANY_MS);
    check_waits(rolls);
    must(crawler_full_is_due(crawler));
    rolls = &all_rolls[2];
    scene_run(MANY_MS);
    check_healed("a full crawl");
    must(!crawler_full_is_due(crawler));
    healer_end();
}
END_TEST

/* The next healer begins with the look at the clients. */
START_TEST(a_healer_that_dies_while_it_waits_has_healed_nothing)
{
    set_begin();
    rolls = &all_rolls[OLD];
    healer_begin();
    scene_run(A_WHILE_MS);
    scene_child_down(1);
    scene_run(A_WHILE_MS);
    scene_child_up(1);
    scene_run(A_WHILE_MS);
    check_waits(rolls);
    healer_end();
    scene.lie = tell_clients;
    healer_begin();
    scene_run(A_WHILE_MS);
    check_waits(rolls);
    rolls = &all_rolls[2];
    scene_run(MANY_MS);
    check_healed("the next healer");
    healer_end();
}
END_TEST

/* Each call of the accusations fails once, or is the last one before a brick goes or the healer dies. */
START_TEST(a_fault_at_any_call_delays_the_heal)
{
    for (unsigned at = 0; at < 120; at++) {
        struct fault f = {.child = at % 3,
                          .at = at / 3 % 20,
                          .kind = at < 60 ? FAULT_REFUSED : at % 2 ? FAULT_UNANSWERED : FAULT_CUT_AFTER,
                          .err = EIO};

        set_begin();
        rolls = &all_rolls[OLD];
        healer_begin();
        store_make_all("/n", S_IFREG | 0644, 6, "new");
        store_make_all("/e", S_IFDIR | 0755, 7, NULL);
        store_make_all("/e/n", S_IFREG | 0644, 8, "new");
        old_client_writes("/e/n", "old");
        old_client_writes("/n", "old");
        scene_run(A_WHILE_MS);
        check_waits(rolls);
        scene_arm(&f, 1);
        rolls = &all_rolls[2];
        scene_run(A_WHILE_MS);
        if (scene.is_cut) {
            scene.fault_count = 0;
            healer_end();
            scene.lie = tell_clients;
            healer_begin();
        }
        scene_arm(NULL, 0);
        for (unsigned i = 0; i < scene.count; i++) {
            if (!scene.is_up[i])
                scene_child_up(i);
        }
        scene_run(MANY_MS);
        snprintf(run_text, sizeof run_text, "c%u, fault %u at call %u", f.child, f.kind, f.at);
        check_healed(run_text);
        healer_end();
    }
}
END_TEST

START_TEST(lack_of_memory_delays_the_heal)
{
    bool has_starved = true;

    scene_init_starving();
    for (int64_t at = 1; has_starved; at += 3) {
        set_begin();
        rolls = &all_rolls[OLD];
        healer_begin();
        store_make_all("/n", S_IFREG | 0644, 6, "new");
        old_client_writes("/n", "old");
        scene_starve(at);
        scene_run(A_WHILE_MS);
        bool is_healed = store_find(&scene.store[NEW], "/f"); /* an assertion allocates memory */
        rolls = &all_rolls[2];
        scene_run(A_WHILE_MS);
        has_starved = scene_has_starved();
        scene_starve(0);
        ck_assert_msg(!is_healed, "allocation %d: healed", (int)at);
        (void)crawler_ask(crawler, false);
        scene_run(MANY_MS);
        check_healed("lack of memory");
        healer_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-new-bricks");
    TCase *t = tcase_create("new bricks");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_new_brick_is_filled_when_no_client_lacks_it, 0, ROLLS);
    tcase_add_test(t, objects_made_beside_an_old_client_are_compared);
    tcase_add_test(t, a_new_brick_that_accuses_another_one_keeps_its_copy);
    tcase_add_test(t, a_set_without_a_new_brick_asks_for_no_clients);
    tcase_add_test(t, a_full_crawl_waits_too);
    tcase_add_test(t, a_healer_that_dies_while_it_waits_has_healed_nothing);
    tcase_add_test(t, a_fault_at_any_call_delays_the_heal);
    tcase_add_test(t, lack_of_memory_delays_the_heal);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
