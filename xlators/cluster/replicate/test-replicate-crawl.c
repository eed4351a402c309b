/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The self-heal daemon's crawls (crawl.h) after every change that one child has missed: by the index of the
 * bricks and over the whole tree, with a fault at each call, a death of the daemon, and each allocation
 * failing. Also index entries of objects that have gone, the reports for an operator, retries, and the
 * resolution of split-brain. */
#include <check.h>
#include <errno.h>
#include <semaphore.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"

int __real_sem_wait(sem_t *s);
int __wrap_sem_wait(sem_t *s);

/* A caller of the crawler waits: the crawler works. */
int
__wrap_sem_wait(sem_t *s)
{
    scene_run(0);
    return __real_sem_wait(s);
}

/* ---- the daemon ------------------------------------------------------------------------------ */

static struct crawler *crawler;

static void
daemon_begin(const char *options, bool heals)
{
    scene_begin_top(&cluster_replicate_xlator, replicas_options(options));
    crawler = crawler_new(scene.graph, 1, heals);
    must(crawler);
}

static void
daemon_end(void)
{
    scene_run(1000);
    crawler_free(crawler);
    crawler = NULL;
    scene_end();
}

static const char *
shape_options(const struct replica_shape *shape)
{
    return shape->has_arbiter ? " option arbiter-count 1\n" : "";
}

/* Crawls, with retries, and adds a finding unless the copies are equal then. */
static void
crawl_to_the_end(bool is_full)
{
    scene_arm(NULL, 0);
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    for (int n = 0; n < 3 && (n == 0 || copies_difference() || counters_left()); n++) {
        must(crawler_ask(crawler, is_full && n == 0) == 0);
        scene_run(60000);
    }
    if (copies_difference())
        finding_add("after the crawl %s", copies_difference());
    else if (counters_left())
        finding_add("after the crawl %s", counters_left());
    if (store_locks())
        finding_add("the crawl leaves locks: %s", store_locks_text());
}

/* ---- a change that one child has missed ------------------------------------------------------ */

static unsigned missing;

static void
child_goes(void)
{
    scene_child_down(missing);
}

/* Makes the change without child `which`. Returns false if the volume cannot do without this child. */
static bool
miss_change(const struct replica_shape *shape, const struct replica_change *c, unsigned which)
{
    const struct replica_variant v = {.before_act = child_goes};

    missing = which;
    int ret = replica_change_run(shape, c, &v, NULL, 0);

    scene_end();
    return ret >= 0;
}

static void
run_crawl(const struct replica_shape *shape, const struct replica_change *c, unsigned which, bool is_full,
          const struct fault *f)
{
    static const char *const widths[] = {"", " option shd-max-threads 4\n",
                                         " option background-self-heal-count 0\n"};
    char options[256];

    if (!miss_change(shape, c, which))
        return;
    snprintf(options, sizeof options, "%s%s", shape_options(shape), widths[(f ? f->at : 0) % 3]);
    daemon_begin(options, true);
    scene_arm(f, f != NULL);
    (void)crawler_ask(crawler, is_full);
    scene_run(0);
    if (scene.is_cut) {
        scene.fault_count = 0;
        daemon_end();
        daemon_begin(options, true);
    }
    crawl_to_the_end(is_full);
    daemon_end();
}

START_TEST(a_crawl_heals_a_missed_change)
{
    const struct replica_change *c = &replica_changes[_i];
    unsigned turn = 0;

    findings = 0;
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        const struct replica_shape *shape = &replica_shapes[s];

        for (unsigned n = 0; n < 2 * shape->count; n++) {
            snprintf(run_text, sizeof run_text, "%s, %s, c%u away, %s crawl", shape->name, c->name, n / 2,
                     n % 2 ? "full" : "index");
            run_crawl(shape, c, n / 2, n % 2, NULL);
        }
        for (unsigned n = 0; n < shape->count * 60 * FAULT_KINDS; n++) {
            struct fault f = {.child = n % shape->count,
                              .at = n / shape->count % 60,
                              .kind = (enum fault_kind)(n / shape->count / 60),
                              .err = n % 2 ? ENOSPC : EIO};

            if (turn++ % 11 && !getenv("FAULTS_ALL"))
                continue;
            snprintf(run_text, sizeof run_text, "%s, %s, c%u fault %u at call %u of a crawl", shape->name,
                     c->name, f.child, f.kind, f.at);
            run_crawl(shape, c, (n + 1) % shape->count, n % 4 == 0, &f);
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

START_TEST(a_crawl_without_memory_ends_and_is_repeated)
{
    const struct replica_change *c = &replica_changes[_i];

    findings = 0;
    scene_init_starving();
    for (size_t s = 0; s < REPLICA_SHAPES; s++) {
        bool has_starved = true;

        for (int64_t at = 1 + (int64_t)s; has_starved; at += 5) {
            snprintf(run_text, sizeof run_text, "%s, %s, allocation %d of a crawl", replica_shapes[s].name,
                     c->name, (int)at);
            if (!miss_change(&replica_shapes[s], c, at % 2 ? 1 : replica_shapes[s].count - 1))
                break;
            daemon_begin(shape_options(&replica_shapes[s]), true);
            scene_starve(at);
            (void)crawler_ask(crawler, at % 3 == 0);
            scene_run(0);
            has_starved = scene_has_starved();
            scene_starve(0);
            crawl_to_the_end(at % 3 == 0);
            daemon_end();
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- the index ------------------------------------------------------------------------------- */

START_TEST(index_entries_of_objects_that_have_gone_are_removed)
{
    replica_volume_make(&replica_shapes[1]);
    for (unsigned i = 0; i < 3; i++) {
        scene.store[i].index_ghost[0] = (struct gfid){.b = {0xaa, [15] = (uint8_t)i}};
        scene.store[i].index_ghost[1] = store_find(&scene.store[0], "/f")->stat.gfid; /* without counters */
        scene.store[i].index_folder_ghost[0] = (struct gfid){.b = {0xab, [15] = (uint8_t)i}};
        scene.store[i].index_folder_ghost[1] = store_find(&scene.store[0], "/d")->stat.gfid;
    }
    daemon_begin("", true);
    must(crawler_ask(crawler, false) == 0);
    scene_run(0);
    for (unsigned i = 0; i < 3; i++) {
        must(gfid_is_null(&scene.store[i].index_ghost[0]));
        must(!gfid_is_null(&scene.store[i].index_ghost[1])); /* a check by the brick removes this entry */
        must(gfid_is_null(&scene.store[i].index_folder_ghost[0]));
        must(!gfid_is_null(&scene.store[i].index_folder_ghost[1]));
    }
    daemon_end();
}
END_TEST

static void
lie_about_index(unsigned child, struct call_stack *stk, int *ret)
{
    static const char *const names[] = {"..", "not-a-gfid", "00000000-0000-0000-0000-000000000000"};
    unsigned n = 0;

    (void)ret;
    if (stk->call.fop == FOP_getxattr && child == 1)
        stk->reply.dict = NULL;
    for (struct dirent_entry *e = stk->reply.entries; stk->call.fop == FOP_readdir && e; e = e->next, n++) {
        e->name = names[n % 3];
        e->name_len = (uint32_t)strlen(e->name);
    }
}

START_TEST(wrong_index_entries_are_ignored)
{
    must(miss_change(&replica_shapes[1], &replica_changes[0], 1));
    daemon_begin("", true);
    scene.lie = lie_about_index;
    must(crawler_ask(crawler, false) == 0);
    scene_run(0);
    must(copies_difference());
    scene.lie = NULL;
    findings = 0;
    crawl_to_the_end(false);
    must(!findings);
    daemon_end();
}
END_TEST

/* ---- reports --------------------------------------------------------------------------------- */

/* The disk of child 1 is full, and the file there stays wrong. */
static void
refuse_writes(unsigned child, struct call_stack *stk, int *ret)
{
    if (child != 1 || stk->call.fop != FOP_writev)
        return;
    store_find(&scene.store[1], "/f")->data[0] = '?';
    *ret = -ENOSPC;
}

START_TEST(looks_and_faults_are_reported)
{
    struct crawl_look looks[CRAWL_LOOKS_KEPT];
    struct crawl_fault faults[CRAWL_FAULTS_KEPT];

    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin("", true);
    must(crawler_children(crawler) == 3 && crawler_faults(crawler, faults) == 0);
    scene.lie = refuse_writes;
    must(crawler_ask(crawler, false) == 0);
    scene_run(0);
    scene.lie = NULL;
    unsigned count = crawler_faults(crawler, faults);

    must(count == 1 && faults[0].why == ENOSPC && strcmp(faults[0].child, "c1") == 0);
    must(gfid_equal(&faults[0].gfid, &store_find(&scene.store[0], "/f")->stat.gfid));
    scene_arm(NULL, 0);
    for (int n = 0; n < CRAWL_LOOKS_KEPT + 2; n++) {
        must(crawler_ask(crawler, n % 2) == 0);
        scene_run(0);
    }
    must(crawler_faults(crawler, faults) == 0);
    must(crawler_looks(crawler, 0, looks) == CRAWL_LOOKS_KEPT);
    bool has_full = false;

    for (unsigned n = 0; n < CRAWL_LOOKS_KEPT; n++) {
        must(!looks[n].is_running && looks[n].left == 0 && !looks[n].failed);
        has_full |= looks[n].is_full;
    }
    must(has_full);
    daemon_end();
}
END_TEST

START_TEST(a_crawl_is_repeated_after_a_failure)
{
    struct crawl_look looks[CRAWL_LOOKS_KEPT];

    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin(" option heal-timeout 60\n", true);
    /* the copies cannot be locked: another healer is at work */
    struct fault busy = {.child = 0, .at = 0, .kind = FAULT_REFUSED, .err = EAGAIN};
    for (unsigned at = 0; at < 60; at += 4) {
        busy.at = at;
        scene_arm(&busy, 1);
        must(crawler_ask(crawler, false) == 0);
        scene_run(200000);
    }
    must(crawler_looks(crawler, 1, looks) == CRAWL_LOOKS_KEPT);
    must(!copies_difference() && !counters_left());
    daemon_end();
}
END_TEST

START_TEST(a_daemon_that_heals_nothing_answers)
{
    struct gfid gfids[3];
    uint8_t needs[3];

    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin("", false);
    must(crawler_ask(crawler, false) == -EPERM);
    gfids[0] = store_find(&scene.store[0], "/f")->stat.gfid;
    gfids[1] = store_find(&scene.store[0], "/g")->stat.gfid;
    gfids[2] = (struct gfid){.b = {0xaa}};
    must(crawler_judge(crawler, gfids, 3, needs) == 0);
    must(needs[0] == CRAWL_HEAL && needs[1] == CRAWL_NO_HEAL && needs[2] == CRAWL_NO_HEAL);
    scene_child_down(2);
    must(crawler_judge(crawler, gfids, 3, needs) == 0);
    must(needs[0] == CRAWL_HEAL && needs[2] == CRAWL_HEAL); /* the missing child may have the object */
    must(copies_difference());
    atomic_store(&scene.graph->is_draining, true);
    must(crawler_judge(crawler, gfids, 3, needs) == -ENOTCONN);
    atomic_store(&scene.graph->is_draining, false);
    daemon_end();
}
END_TEST

static unsigned
full_looks(void)
{
    struct crawl_look looks[CRAWL_LOOKS_KEPT];
    unsigned full = 0, count = crawler_looks(crawler, 0, looks);

    for (unsigned n = 0; n < count; n++)
        full += looks[n].is_full;
    return full;
}

START_TEST(a_full_crawl_that_loses_a_child_begins_anew)
{
    unsigned cuts = 0;

    for (unsigned at = 0; at < 40; at++) {
        const struct fault gone = {.child = 1, .at = at, .kind = FAULT_UNSENT};

        must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
        daemon_begin("", true);
        scene_run(0);
        scene_arm(&gone, 1);
        must(crawler_ask(crawler, true) == 0 && crawler_full_is_due(crawler));
        scene_run(0);
        cuts += !scene.is_up[1];
        must(crawler_full_is_due(crawler) == !scene.is_up[1]);
        if (!scene.is_up[1])
            scene_child_up(1);
        scene_run(0);
        must(!crawler_full_is_due(crawler) && full_looks());
        daemon_end();
    }
    must(cuts > 5);
}
END_TEST

START_TEST(a_stopped_full_crawl_does_not_begin)
{
    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin("", true);
    scene_child_down(2);
    must(crawler_ask(crawler, true) == -ENOTCONN && crawler_full_is_due(crawler));
    scene_run(0);
    must(crawler_full_is_due(crawler));
    crawler_stop_full(crawler);
    must(!crawler_full_is_due(crawler));
    scene_child_up(2);
    scene_run(60000);
    must(full_looks() == 0 && !copies_difference()); /* the crawl of the index has healed */
    daemon_end();
}
END_TEST

START_TEST(a_crawl_waits_for_all_children)
{
    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin("", true);
    scene_child_down(2);
    must(crawler_ask(crawler, false) == -ENOTCONN);
    scene_run(0);
    must(copies_difference());
    scene_child_up(2);
    scene_run(60000);
    must(!copies_difference() && !counters_left());
    daemon_end();
}
END_TEST

/* Clients that reach a child later than the daemon change objects without the child in the meantime. */
START_TEST(crawls_follow_the_return_of_a_child)
{
    struct crawl_look looks[CRAWL_LOOKS_KEPT];
    unsigned done = 0;

    must(crawl_next_pause(&done, 1000) == 1000 && crawl_next_pause(&done, 600000) == 5000);
    must(crawl_next_pause(&done, 600000) == 20000 && crawl_next_pause(&done, 30000) == 30000);
    must(crawl_next_pause(&done, 600000) == 60000 && crawl_next_pause(&done, 600000) == 600000);

    must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
    daemon_begin(" option heal-timeout 600\n", true);
    scene_child_down(1);
    scene_child_up(1);
    scene_run(0);
    unsigned first = crawler_looks(crawler, 1, looks);
    must(first > 0);
    scene_run(4000);
    must(crawler_looks(crawler, 1, looks) == first);
    scene_run(90000);
    must(crawler_looks(crawler, 1, looks) == first + CRAWL_FOLLOW_UPS);
    scene_run(400000);
    must(crawler_looks(crawler, 1, looks) == first + CRAWL_FOLLOW_UPS);
    daemon_end();
}
END_TEST

START_TEST(a_question_without_memory_fails)
{
    bool has_starved = true;

    scene_init_starving();
    for (int64_t at = 1; has_starved; at++) {
        uint8_t needs[1];

        must(miss_change(&replica_shapes[1], &replica_changes[14], 1));
        daemon_begin("", true);
        struct gfid gfid = store_find(&scene.store[0], "/f")->stat.gfid;

        scene_starve(at);
        int err = crawler_judge(crawler, &gfid, 1, needs);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(needs[0] == CRAWL_HEAL && (err == 0 || (has_starved && err == -ENOMEM)));
        scene_run(60000);
        daemon_end();
    }
}
END_TEST

/* ---- split-brain ----------------------------------------------------------------------------- */

static void
split(const char *path, enum change what)
{
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned k = 0; k < scene.count; k++) {
            if (i != k)
                replica_accuse(path, i, k, what);
        }
    }
}

static const char *const contents[] = {"zero", "first copy", "second"};

static void
split_volume(const struct replica_shape *shape)
{
    scene_clear(shape->count, shape->has_arbiter);
    store_make_all("/d", S_IFDIR | 0755, 4, NULL);
    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_make(i, "/f", S_IFREG | 0644, 3, contents[i]);

        o->stat.mtime = 100 - (int64_t)i;
    }
    split("/f", CHANGE_DATA);
}

static int
resolve_f(enum crawl_choice how, unsigned source)
{
    struct gfid gfid = store_find(&scene.store[0], "/f")->stat.gfid;
    int err = crawler_resolve(crawler, &gfid, NULL, how, source);

    scene_run(60000);
    return err;
}

START_TEST(a_user_resolves_split_brain)
{
    static const struct {
        enum crawl_choice how;
        unsigned source, winner;
    } cases[] = {{CRAWL_BIGGER_FILE, 0, 1}, {CRAWL_LATEST_MTIME, 0, 0}, {CRAWL_SOURCE, 2, 2}};

    for (size_t n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        struct crawl_look looks[CRAWL_LOOKS_KEPT];

        split_volume(&replica_shapes[1]);
        daemon_begin("", true);
        must(crawler_ask(crawler, false) == 0);
        scene_run(0);
        must(crawler_looks(crawler, 0, looks) > 0 && looks[0].split > 0 && !looks[0].failed);
        must(copies_difference());
        must(resolve_f(cases[n].how, cases[n].source) == 0);
        must(!copies_difference() && !counters_left());
        struct stored_object *o = store_find(&scene.store[0], "/f");

        must(o->stat.size == strlen(contents[cases[n].winner]));
        must(memcmp(o->data, contents[cases[n].winner], (size_t)o->stat.size) == 0);
        must(resolve_f(cases[n].how, cases[n].source) == -EINVAL); /* no split-brain any more */
        daemon_end();
    }
}
END_TEST

START_TEST(a_tie_is_not_resolved)
{
    split_volume(&replica_shapes[1]);
    for (unsigned i = 0; i < 3; i++) {
        store_find(&scene.store[i], "/f")->stat.mtime = 7;
        store_find(&scene.store[i], "/f")->stat.size = 4;
    }
    daemon_begin("", true);
    must(resolve_f(CRAWL_BIGGER_FILE, 0) == -ENODATA);
    must(resolve_f(CRAWL_LATEST_MTIME, 0) == -ENODATA);
    struct gfid none = {.b = {0xaa}};
    must(crawler_resolve(crawler, &none, NULL, CRAWL_SOURCE, 0) == -ENOENT ||
         crawler_resolve(crawler, &none, NULL, CRAWL_SOURCE, 0) == -ESTALE);
    daemon_end();
}
END_TEST

START_TEST(a_name_of_different_objects_is_resolved)
{
    for (unsigned chosen = 0; chosen < 3; chosen++) {
        struct gfid root = {.b = {[15] = 1}};

        scene_clear(3, false);
        for (unsigned i = 0; i < 3; i++)
            (void)store_make(i, "/x", S_IFREG | 0644, (uint8_t)(20 + i), contents[i]);
        split("/", CHANGE_ENTRY);
        daemon_begin("", true);
        must(crawler_resolve(crawler, &root, "none", CRAWL_SOURCE, chosen) == -EINVAL);
        must(crawler_resolve(crawler, &root, "x", CRAWL_SOURCE, chosen) == 0);
        scene_run(60000);
        for (unsigned i = 0; i < 3; i++) {
            struct stored_object *o = store_find(&scene.store[i], "/x");

            must(o && o->stat.gfid.b[15] == 20 + chosen);
        }
        must(!store_locks());
        daemon_end();
    }
}
END_TEST

/* The question about a name fails before a call is sent, so its coroutine ends in the call that starts it. */
START_TEST(a_question_that_ends_at_once_has_its_error)
{
    struct gfid root = {.b = {[15] = 1}};

    split_volume(&replica_shapes[1]);
    daemon_begin("", true);
    scene_child_down(1);
    must(crawler_resolve(crawler, &root, "x", CRAWL_SOURCE, 0) == -ENOTCONN);
    must(crawler_resolve(crawler, &root, NULL, CRAWL_SOURCE, 0) == -ENOTCONN);
    scene_child_up(1);
    daemon_end();
}
END_TEST

START_TEST(a_policy_resolves_split_brain_in_a_crawl)
{
    split_volume(&replica_shapes[1]);
    daemon_begin(" option favorite-child-policy size\n", true);
    findings = 0;
    crawl_to_the_end(false);
    must(!findings);
    must(store_find(&scene.store[0], "/f")->stat.size == strlen(contents[1]));
    daemon_end();
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        index_entries_of_objects_that_have_gone_are_removed,
        wrong_index_entries_are_ignored,
        looks_and_faults_are_reported,
        a_crawl_is_repeated_after_a_failure,
        a_daemon_that_heals_nothing_answers,
        a_crawl_waits_for_all_children,
        crawls_follow_the_return_of_a_child,
        a_full_crawl_that_loses_a_child_begins_anew,
        a_stopped_full_crawl_does_not_begin,
        a_question_without_memory_fails,
        a_user_resolves_split_brain,
        a_tie_is_not_resolved,
        a_name_of_different_objects_is_resolved,
        a_question_that_ends_at_once_has_its_error,
        a_policy_resolves_split_brain_in_a_crawl,
    };
    Suite *s = suite_create("replicate-crawl");
    TCase *t = tcase_create("crawl");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    tcase_add_loop_test(t, a_crawl_heals_a_missed_change, 0, REPLICA_CHANGES);
    tcase_add_loop_test(t, a_crawl_without_memory_ends_and_is_repeated, 0, REPLICA_CHANGES);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
