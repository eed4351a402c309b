/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Child events of a replicated volume and the event that the layer above gets, options, the statedump, locks
 * that other clients wait for, and the lock on names that many changes of a folder share. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/dump.h"
#include "xlators/cluster/replicate/replicate-internal.h"
#include "xlators/cluster/replicate/test-replicas.h"

/* ---- events ---------------------------------------------------------------------------------- */

static enum child_event told[16];
static unsigned told_count;

static void
note_event(struct graph *g, const struct layer_event *e)
{
    (void)g;
    if (e->kind == EVENT_CHILD && told_count < sizeof told / sizeof told[0])
        told[told_count++] = e->change;
}

static struct replicate *
layer(void)
{
    return scene.graph->top->private;
}

/* A scene whose layer is the top of the graph, so that its events come to the watch. */
static void
events_begin(unsigned count, const char *options)
{
    scene_clear(count, false);
    store_make_all("/f", S_IFREG | 0644, 3, "contents");
    store_make_all("/d", S_IFDIR | 0755, 4, NULL);
    scene_begin_top(&cluster_replicate_xlator, replicas_options(options));
    scene.graph->watch = note_event;
    told_count = 0;
}

START_TEST(the_first_and_the_last_child_change_the_state)
{
    events_begin(3, "");
    scene_child_down(2);
    scene_child_down(1);
    must(told_count == 0); /* the layer is the top: events for parts end here */
    scene_child_down(0);
    must(told_count == 1 && told[0] == CHILD_DOWN);
    scene_child_up(0);
    must(told_count == 1); /* waits for the children that were lost together with this child */
    scene_child_up(1);
    must(told_count == 1);
    scene_child_up(2);
    must(told_count == 2 && told[1] == CHILD_UP && atomic_load(&layer()->up) == 7);
    scene_end();
}
END_TEST

START_TEST(a_child_serves_alone_after_a_while)
{
    events_begin(3, "");
    for (unsigned i = 0; i < 3; i++)
        scene_child_down(i);
    scene_child_up(1);
    must(told_count == 1 && atomic_load(&layer()->up) == 0);
    scene_run(6000);
    must(told_count == 2 && told[1] == CHILD_UP && atomic_load(&layer()->up) == 2);
    scene_child_up(0);
    must(atomic_load(&layer()->up) == 3);
    scene_end();

    /* a child that goes down again while the others are awaited */
    events_begin(3, "");
    for (unsigned i = 0; i < 3; i++)
        scene_child_down(i);
    scene_child_up(1);
    scene_child_down(1);
    scene_run(6000);
    must(atomic_load(&layer()->up) == 0);
    scene_end();
}
END_TEST

START_TEST(children_lost_long_before_are_not_awaited)
{
    events_begin(2, "");
    scene_child_down(0);
    scene_run(10000);
    scene_child_down(1);
    scene_child_up(1);
    must(atomic_load(&layer()->up) == 2 && told_count == 2 && told[1] == CHILD_UP);
    scene_end();
}
END_TEST

START_TEST(other_events_change_nothing)
{
    static const enum child_event events[] = {CHILD_CONNECTING, CHILD_SOME_UP, CHILD_SOME_DOWN};

    events_begin(2, "");
    for (size_t i = 0; i < sizeof events / sizeof events[0]; i++)
        xlator_tell_parent(scene.child[0], events[i]);
    must(told_count == 0 && atomic_load(&layer()->up) == 3);
    xlator_tell_parent(scene.child[0], CHILD_REFUSED);
    must(told_count == 0 && atomic_load(&layer()->up) == 2);
    scene_end();
}
END_TEST

START_TEST(a_refusal_by_the_last_child_is_reported)
{
    events_begin(2, "");
    scene_child_down(0);
    scene_child_down(1);
    unsigned before = told_count;
    xlator_tell_parent(scene.child[0], CHILD_REFUSED);
    must(told_count == before); /* the other child may return */
    xlator_tell_parent(scene.child[1], CHILD_REFUSED);
    must(told_count == before + 1 && told[before] == CHILD_REFUSED);
    xlator_tell_parent(scene.child[1], CHILD_REFUSED);
    must(told_count == before + 1);
    scene_end();
}
END_TEST

/* The events of a mount whose children answer in another way at the start. */
static void
restart_events(enum child_event first, bool second_is_silent)
{
    struct replicate *r;

    events_begin(2, "");
    r = layer();
    scene_child_down(0);
    scene_child_down(1);
    r->has_told = false;
    r->reported = r->refused = r->lost_last = r->gathered = 0;
    told_count = 0;
    if (first == CHILD_UP)
        scene.is_up[0] = true;
    xlator_tell_parent(scene.child[0], first);
    if (!second_is_silent)
        xlator_tell_parent(scene.child[1], CHILD_DOWN);
}

START_TEST(the_first_event_waits_for_all_children_or_for_patience)
{
    static const struct {
        enum child_event first, expected;
    } cases[] = {{CHILD_UP, CHILD_UP}, {CHILD_DOWN, CHILD_DOWN}, {CHILD_REFUSED, CHILD_REFUSED}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        restart_events(cases[i].first, false);
        must(told_count == 1 && told[0] == cases[i].expected);
        scene_end();
        restart_events(cases[i].first, true);
        must(told_count == 0);
        scene_run(20000);
        must(told_count == 1 && told[0] == cases[i].expected);
        scene_end();
    }
}
END_TEST

/* ---- options --------------------------------------------------------------------------------- */

START_TEST(a_wrong_option_is_named)
{
    static const struct {
        unsigned count;
        const char *options, *error;
    } cases[] = {
        {1, "", "1 subvolumes"},
        {2, " option arbiter-count 1\n", "needs 3 subvolumes"},
        {2, " option thin-arbiter host:/path\n", "thin-arbiter is not built"},
        {3, " option quorum-type fixed\n", "quorum-count 0"},
        {2, " option quorum-type fixed\n option quorum-count 3\n", "quorum-count 3"},
        {2, " option afr-pending-xattr a\n", "expected 2 names"},
        {2, " option afr-pending-xattr a,b,c\n", "expected 2 names"},
        {2, " option afr-pending-xattr a,\n", "expected 2 names"},
        {2, " option halo-enabled yes\n", "halo-enabled"},
        {2, " option afr-pending-xattr a,b\n", NULL},
        {2, " option read-subvolume c1\n", NULL},
        {3, " option quorum-type fixed\n option quorum-count 3\n", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene_clear(cases[i].count, false);
        const char *error = scene_refusal(&cluster_replicate_xlator, cases[i].options, false);

        if (!error != !cases[i].error || (error && !strstr(error, cases[i].error)))
            ck_abort_msg("%s: %s", cases[i].options, error ? error : "accepted");
    }
}
END_TEST

START_TEST(a_layer_without_memory_is_refused)
{
    bool has_starved = true;

    scene_init_starving();
    scene_clear(3, false);
    must(!scene_refusal(&cluster_replicate_xlator, "", false)); /* makes the pools */
    for (int64_t n = 1; has_starved; n++) {
        scene_starve(n);
        const char *error = scene_refusal(&cluster_replicate_xlator, "", false);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(error || !has_starved || n > 1);
    }
}
END_TEST

START_TEST(the_statedump_has_the_state_of_the_children)
{
    static const char *const texts[] = {
        "child_count=3\n", "child_up[0]=1\n", "child_up[1]=0\n", "pending_key[2]=trusted.afr.c2\n",
        "quorum-type=fixed\n", "quorum-count=2\n", "healers=0\n", "files-locked=0\n"};
    char *text = NULL;
    size_t len;

    events_begin(3, " option quorum-type fixed\n option quorum-count 2\n");
    scene_child_down(1);
    struct dump d = {.file = open_memstream(&text, &len)};

    cluster_replicate_xlator.dump(scene.graph->top, &d);
    must(fclose(d.file) == 0);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (!strstr(text, texts[i]))
            ck_abort_msg("no %s in %s", texts[i], text);
    }
    free(text);
    scene_end();
}
END_TEST

START_TEST(the_named_child_is_read)
{
    for (unsigned child = 0; child < 3; child++) {
        char options[64];

        scene_clear(3, false);
        store_make_all("/f", S_IFREG | 0644, 3, "contents");
        snprintf(options, sizeof options, " option read-subvolume c%u\n option read-hash-mode 0\n", child);
        replicas_begin(options);
        must(replica_call(FOP_open, "/f", NULL) == 0);
        scene_arm(NULL, 0);
        must(replica_call(FOP_readv, "/f", NULL) == 8);
        must(scene.calls[child] == 1 && scene.calls[ANY_CHILD] == 1);
        scene_end();
    }
    scene_clear(3, false);
    store_make_all("/f", S_IFREG | 0644, 3, "contents");
    replicas_begin(" option read-hash-mode 0\n");
    must(replica_call(FOP_open, "/f", NULL) == 0);
    scene_arm(NULL, 0);
    must(replica_call(FOP_readv, "/f", NULL) == 8 && scene.calls[0] == 1);
    scene_end();
}
END_TEST

/* ---- locks that other clients wait for ------------------------------------------------------- */

static void
fill_write(struct call_stack *stk)
{
    stk->call.payload[0] = (struct iovec){(char *)"new", 3};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = 3;
}

static void
fill_write_flags(struct call_stack *stk)
{
    stk->call.flags = O_RDWR;
}

static void
fill_mode(struct call_stack *stk)
{
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
}

START_TEST(a_contended_lock_is_released)
{
    static const struct {
        const char *domain;
        bool is_data, is_released;
    } cases[] = {
        {"v", true, true}, {"v:metadata", true, false}, {"v:metadata", false, true}, {"other", true, false}};

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct gfid gfid, none = {.b = {0xaa}};

        scene_clear(3, false);
        store_make_all("/f", S_IFREG | 0644, 3, "contents");
        gfid = store_find(&scene.store[0], "/f")->stat.gfid;
        replicas_begin(" option metadata-lock-kept-ms 5000\n");
        must(replica_call(FOP_open, "/f", fill_write_flags) == 0);
        if (cases[i].is_data)
            must(replica_call(FOP_writev, NULL, fill_write) == 3);
        else
            must(replica_call(FOP_setattr, "/f", fill_mode) == 0);
        must(store_locks() == 3); /* kept for the next change */
        xlator_tell_contended(scene.child[0], &none, "v");
        xlator_tell_contended(scene.child[0], &gfid, cases[i].domain);
        scene_run(0);
        must((store_locks() == 0) == cases[i].is_released);
        scene_run(10000);
        must(store_locks() == 0);
        scene_end();
    }
}
END_TEST

/* ---- a folder's shared lock ------------------------------------------------------------------ */

static const char *entry_name, *entry_name2;
static uint8_t entry_number = 50;

static void
fill_entry(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = entry_number++}};

    stk->call.loc = (struct loc){.parent = replica_inode("/d"), .name = entry_name};
    if (entry_name2)
        stk->call.loc2 = (struct loc){.parent = replica_inode("/d"), .name = entry_name2};
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static char source[16];

static const char *
rename_source(void)
{
    snprintf(source, sizeof source, "/d/%s", entry_name);
    return source;
}

/* Has a child the file that a RENAME is about? */
static bool
has_source(const char *name)
{
    bool has = false;

    entry_name = name;
    for (unsigned i = 0; i < scene.count; i++)
        has |= store_find(&scene.store[i], rename_source()) != NULL;
    return has;
}

static void
fill_rename(struct call_stack *stk)
{
    fill_entry(stk);
    stk->call.loc.inode = replica_inode(rename_source());
}

static int
change_name(enum fop fop, const char *name, const char *name2)
{
    entry_name = name;
    entry_name2 = name2;
    return scene_call(fop, fop == FOP_rename ? fill_rename : fill_entry, 0);
}

/* Many changes of one folder, with a fault at one of their calls. Returns whether the fault has struck. */
static bool
run_many_changes(const char *options, const struct fault *f, int64_t starve_at)
{
    static const struct {
        enum fop fop;
        const char *name, *name2;
    } steps[] = {{FOP_mknod, "a0", NULL},  {FOP_mknod, "a1", NULL},   {FOP_mkdir, "s", NULL},
                 {FOP_create, "c", NULL},  {FOP_rename, "a0", "b"},   {FOP_rmdir, "s", NULL},
                 {FOP_unlink, "a1", NULL}, {FOP_mkdir, "s2", NULL},   {FOP_rename, "b", "c"},
                 {FOP_rmdir, "s2", NULL},  {FOP_rmdir, "none", NULL}, {FOP_mknod, "c", NULL}};
    scene_clear(3, false);
    store_make_all("/d", S_IFDIR | 0755, 4, NULL);
    entry_number = 50;
    replicas_begin(options);
    scene_lookup_all();
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        if (steps[i].fop == FOP_rename && !has_source(steps[i].name))
            continue;
        (void)change_name(steps[i].fop, steps[i].name, steps[i].name2);
    }
    bool has_struck = (f && scene.fault[0].has_struck) || scene_has_starved();

    scene_starve(0);
    scene_run(5000);
    scene.fault_count = 0;
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    for (int n = 0; n < 6 && (copies_difference() || counters_left()); n++)
        scene_lookup_all();
    scene_run(5000);
    if (copies_difference())
        finding_add("%s", copies_difference());
    scene_end();
    return has_struck;
}

START_TEST(changes_that_share_a_lock_survive_faults)
{
    static const char *const options[] = {"", " option share-entry-lock off\n option lock-new-files off\n"};

    findings = 0;
    for (size_t o = 0; o < sizeof options / sizeof options[0]; o++) {
        bool has_struck = true;

        for (unsigned at = 0; has_struck; at++) {
            struct fault f = {
                .child = at % 3, .at = at / 3, .kind = (enum fault_kind)(at % 7 % FAULT_CUT), .err = EIO};

            snprintf(run_text, sizeof run_text, "options %zu, c%u fault %u at call %u", o, f.child, f.kind,
                     f.at);
            has_struck = run_many_changes(options[o], &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(changes_that_share_a_lock_survive_lack_of_memory)
{
    bool has_starved = true;

    findings = 0;
    scene_init_starving();
    for (int64_t at = 1; has_starved; at += 3) {
        snprintf(run_text, sizeof run_text, "allocation %d", (int)at);
        has_starved = run_many_changes("", NULL, at);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        the_first_and_the_last_child_change_the_state,
        a_child_serves_alone_after_a_while,
        children_lost_long_before_are_not_awaited,
        other_events_change_nothing,
        a_refusal_by_the_last_child_is_reported,
        the_first_event_waits_for_all_children_or_for_patience,
        a_wrong_option_is_named,
        a_layer_without_memory_is_refused,
        the_statedump_has_the_state_of_the_children,
        the_named_child_is_read,
        a_contended_lock_is_released,
        changes_that_share_a_lock_survive_faults,
        changes_that_share_a_lock_survive_lack_of_memory,
    };
    Suite *s = suite_create("replicate-events");
    TCase *t = tcase_create("events");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
