/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Notes of unfinished renames (settle.c): a client died in a rename to "new", whose old name is "old", and
 * the bricks of the file's subvolume have kept the note. Each way on which a client meets the note (LOOKUP
 * of the new name or of the old one, OPENDIR of the folder, the list of all notes when a subvolume
 * returns), in each state that the dead client may leave, on three subvolumes; with a fault at each call,
 * with each allocation failing, and with broken notes. Afterwards, on a new mount without faults:
 *
 *      the file has its new name if the rename was done, else its old one, and no lock is left
 *      the replaced file is gone if the rename was done, and the note is gone, unless its name is
 *      an outdated note changes no name */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"

#define LINKTO "trusted.glusterfs.dht.linkto"

enum { SUBVOLUMES = 3, RENAMED = 10, REPLACED = 11, MANY_MS = 600000 };

enum state {
    DONE,          /* the hashed subvolume leads to the renamed file; the replaced one is elsewhere */
    DONE_IN_PLACE, /* the renamed file is on the hashed subvolume of its new name */
    NOT_DONE,      /* the file has both names, and the hashed subvolume has the replaced file */
    NEW_NAME,      /* the same without a file to replace */
    OUTDATED,      /* the note has outlived the rename, whose linkto file another client has removed */
    STATES
};
static const char *const state_names[STATES] = {"done", "done in place", "not done", "new name", "outdated"};

enum way { BY_NEW_NAME, BY_OLD_NAME, BY_LISTING, BY_RETURN, WAYS };
static const char *const way_names[WAYS] = {"new name", "old name", "listing", "return"};

static unsigned hashed, noted, third;
static bool has_note;
static enum state state_now;
static const char *broken_note; /* in the place of the note; NULL: none */

/* ---- bricks with notes ----------------------------------------------------------------------- */

static bool
is_noted_state_of_one_file(void)
{
    return state_now == NOT_DONE || state_now == NEW_NAME;
}

static void
note_in_lookup(struct call_stack *stk)
{
    static const char from_new[] = "from/00000000-0000-0000-0000-000000000001/new";
    const char *name = stk->call.loc.name, *note = NULL;

    if (strcmp(name, "new") == 0)
        note = is_noted_state_of_one_file() ? "link" : "rename";
    else if (strcmp(name, "old") == 0)
        note = from_new;
    if (note)
        must(dict_set_str(reply_xdata(stk), DICT_KEY_NAME_NOTE, broken_note ? broken_note : note) == 0);
}

static void
answer(unsigned child, struct call_stack *stk, int *ret)
{
    static const char listed[] = "new", all[] = "00000000-0000-0000-0000-000000000001/new";
    const char *bytes = broken_note;

    if (child != noted)
        return;
    if (stk->call.fop == FOP_lookup && dict_has(stk->call.xdata, DICT_KEY_NAME_NOTE_DONE))
        has_note = false;
    if (!has_note)
        return;
    if (stk->call.fop == FOP_lookup && stk->call.loc.name && *ret >= 0)
        note_in_lookup(stk);
    if (stk->call.fop == FOP_opendir && *ret >= 0)
        must(dict_set_bytes(reply_xdata(stk), DICT_KEY_NAME_NOTE, bytes ? bytes : listed,
                            bytes ? (uint32_t)strlen(bytes) : sizeof listed) == 0);
    if (stk->call.fop == FOP_getxattr && stk->call.name && strcmp(stk->call.name, "kiln.name-notes") == 0 &&
        *ret == -ENODATA) {
        *ret = 0;
        must(dict_set_bytes(reply_dict(stk), DICT_KEY_NAME_NOTES, bytes ? bytes : all,
                            bytes ? (uint32_t)strlen(bytes) + 1 : sizeof all) == 0);
    }
}

/* ---- the volume ------------------------------------------------------------------------------ */

static const char *name_now;

static void
fill_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name_now};
}

static void
mount_begin(void)
{
    scene_begin(&cluster_distribute_xlator, "");
    for (unsigned i = 0; i < scene.count; i++)
        atomic_store(&scene.child[i]->brick_facts, BRICK_NAME_NOTES);
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
}

static void
linkto_make_at(unsigned i, const char *path, uint8_t number, unsigned target)
{
    const char name[] = {'c', (char)('0' + target), '\0'};
    struct stored_object *o = store_make(i, path, S_IFREG | S_ISVTX, number, NULL);

    must(store_set_xattr(o, LINKTO, name, sizeof name) == 0);
}

/* Gives the object behind `path` a second name in the root. */
static void
name_second(unsigned i, const char *path, const char *name)
{
    struct stored_object *o = store_find(&scene.store[i], path);

    for (unsigned n = 0; n < STORED_NAMES_MAX; n++) {
        struct stored_name *free_name = &scene.store[i].name[n];

        if (free_name->is_used)
            continue;
        *free_name = (struct stored_name){.is_used = true, .object = (unsigned)(o - scene.store[i].object)};
        snprintf(free_name->name, sizeof free_name->name, "%s", name);
        o->stat.nlink++;
        return;
    }
    ck_abort_msg("the brick has too many names");
}

static void
make_state(enum state state)
{
    scene_clear(SUBVOLUMES, false);
    scene.lie = NULL;
    mount_begin();
    hashed = subvolume_of_hash("new");
    noted = state == DONE_IN_PLACE ? hashed : (hashed + 1) % SUBVOLUMES;
    third = (hashed + 2) % SUBVOLUMES;
    scene_end();
    (void)store_make(noted, "/new", S_IFREG | 0644, RENAMED, "renamed");
    if (state == DONE)
        linkto_make_at(hashed, "/new", RENAMED, noted);
    if (state == DONE || state == DONE_IN_PLACE)
        (void)store_make(third, "/new", S_IFREG | 0600, REPLACED, "replaced");
    if (state == NOT_DONE)
        (void)store_make(hashed, "/new", S_IFREG | 0600, REPLACED, "replaced");
    if (state == NOT_DONE || state == NEW_NAME)
        name_second(noted, "/new", "old");
    has_note = true;
    state_now = state;
    scene.lie = answer;
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void
children_return(void)
{
    for (unsigned i = 0; i < scene.count && !scene.is_cut; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
}

static int
look_up(const char *name)
{
    name_now = name;
    return scene_call(FOP_lookup, fill_name, 0);
}

static void
meet_note(enum way way)
{
    switch (way) {
    case BY_NEW_NAME:
        (void)look_up("new");
        break;
    case BY_OLD_NAME:
        (void)look_up("old");
        break;
    case BY_LISTING:
        (void)scene_call(FOP_opendir, fill_root_inode, 0);
        break;
    case BY_RETURN:
        scene_child_down(third);
        scene_child_up(third);
        break;
    case WAYS:
        break;
    }
    if (!scene.is_cut)
        scene_run(MANY_MS);
}

static void
check_name(const char *name, uint8_t number)
{
    int ret = look_up(name);
    unsigned has = ret < 0 ? 0 : scene.stat.gfid.b[15];

    if (has != number)
        finding_add("LOOKUP of %s finds object %u (%s), not %u", name, has, strerror(ret < 0 ? -ret : 0),
                    number);
}

static void
check_settled(void)
{
    bool is_done = state_now == DONE || state_now == DONE_IN_PLACE;

    mount_begin();
    check_name("new", is_done || state_now == OUTDATED ? RENAMED : state_now == NOT_DONE ? REPLACED : 0);
    if (is_noted_state_of_one_file())
        check_name("old", RENAMED);
    if (is_done && store_find(&scene.store[third], "/new"))
        finding_add("the replaced file is still there");
    if (has_note && store_find(&scene.store[noted], "/new"))
        finding_add("the note is still there");
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

/* Returns whether the fault has struck, or an allocation has failed. */
static bool
run(enum state state, enum way way, const struct fault *f, int64_t starve_at)
{
    if (way == BY_OLD_NAME && state != NOT_DONE && state != NEW_NAME)
        return false;
    make_state(state);
    log_set_level(LOG_CRITICAL);
    mount_begin();
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    meet_note(way);
    bool has_struck = starve_at ? scene_has_starved() : f && scene.fault[0].has_struck;
    scene_starve(0);
    scene.fault_count = 0;
    children_return();
    if (!scene.is_cut)
        scene_run(MANY_MS);
    if (store_locks() && !scene.is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
    check_settled();
    return has_struck;
}

START_TEST(a_client_that_meets_a_note_settles_the_name)
{
    findings = 0;
    for (unsigned n = 0; n < STATES * WAYS; n++) {
        snprintf(run_text, sizeof run_text, "%s, by %s", state_names[n / WAYS], way_names[n % WAYS]);
        (void)run((enum state)(n / WAYS), (enum way)(n % WAYS), NULL, 0);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_fault_at_any_call_leaves_a_name_to_settle)
{
    enum state state = (enum state)(_i / WAYS);
    enum way way = (enum way)(_i % WAYS);

    findings = 0;
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        bool has_struck = true;

        for (unsigned n = 0; has_struck; n++) {
            struct fault f = {.child = i,
                              .at = n / FAULT_KINDS,
                              .kind = (enum fault_kind)(n % FAULT_KINDS),
                              .err = n % 2 ? ESTALE : EIO};

            snprintf(run_text, sizeof run_text, "%s, by %s, c%u fault %u at call %u", state_names[state],
                     way_names[way], i, f.kind, f.at);
            has_struck = run(state, way, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lack_of_memory_leaves_a_name_to_settle)
{
    enum state state = (enum state)(_i / WAYS);
    enum way way = (enum way)(_i % WAYS);
    bool has_struck = true;

    findings = 0;
    scene_init_starving();
    for (unsigned at = 1; has_struck; at++) {
        snprintf(run_text, sizeof run_text, "%s, by %s, without memory at allocation %u", state_names[state],
                 way_names[way], at);
        has_struck = run(state, way, NULL, at);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(broken_notes_change_no_name)
{
    static const char *const broken[] = {"",
                                         "from/",
                                         "from/short",
                                         "from/00000000-0000-0000-0000-00000000000x/new",
                                         "from/00000000-0000-0000-0000-000000000001/",
                                         "from/00000000-0000-0000-0000-000000000001/a/b",
                                         "00000000-0000-0000-0000-000000000001/a/b",
                                         "no end"};

    findings = 0;
    for (unsigned n = 0; n < sizeof broken / sizeof broken[0] * WAYS; n++) {
        enum way way = (enum way)(n % WAYS);

        snprintf(run_text, sizeof run_text, "broken note %u, by %s", n / WAYS, way_names[way]);
        make_state(way == BY_OLD_NAME ? NEW_NAME : OUTDATED);
        broken_note = broken[n / WAYS];
        mount_begin();
        meet_note(way);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
        broken_note = NULL;
        scene.lie = NULL;
        mount_begin();
        check_name("new", RENAMED);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("distribute-settle");
    TCase *t = tcase_create("notes");

    tcase_set_timeout(t, 600);
    tcase_add_test(t, a_client_that_meets_a_note_settles_the_name);
    tcase_add_loop_test(t, a_fault_at_any_call_leaves_a_name_to_settle, 0, STATES * WAYS);
    tcase_add_loop_test(t, lack_of_memory_leaves_a_name_to_settle, 0, STATES * WAYS);
    tcase_add_test(t, broken_notes_change_no_name);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
