/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* LOOKUP of a name about which the copies contradict each other: every combination of objects on 2, 3 and
 * 2+1 copies, with every kind of accusation (pending xattr) between the copies of the folder; then the same
 * with a fault at a call of the heal, a death of the mount, and an allocation that fails. After the heal:
 *
 *      LOOKUP finds split-brain (EIO), or the copies are equal, unless the heal leaves the name alone
 *      if some copies are accused, no copy is dirty, and the others agree: the others are right
 *      a file whose contents a copy that is not accused has is never lost
 *      no lock is left */
#include <check.h>
#include <errno.h>
#include <stdlib.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/heal.h"
#include "xlators/cluster/replicate/test-replica-changes.h"
#include "xlators/cluster/replicate/test-replicas.h"

enum state { NOTHING, FILE_A, FILE_B, NAMELESS, NAMELESS_DATA, LINK, EMPTY_FOLDER, FULL_FOLDER, STATES };
enum blame { NO_BLAME, BLAME_0, BLAME_1, BLAME_2, BLAME_ALL, DIRTY, BLAMES };
enum { A = 20, B = 21, L = 22, F = 23, INSIDE = 24, REPLICAS = 3 };

static void
make_state(unsigned i, enum state state)
{
    switch (state) {
    case NOTHING:
    case STATES:
        break;
    case FILE_A:
        (void)store_make(i, "/n", S_IFREG | 0644, A, "contents A");
        break;
    case FILE_B:
        (void)store_make(i, "/n", S_IFREG | 0644, B, "contents of B");
        break;
    case NAMELESS:
    case NAMELESS_DATA:
        store_make(i, "/n", S_IFREG | 0644, (uint8_t)(30 + i), state == NAMELESS ? NULL : "lost")->stat.gfid =
            (struct gfid){0};
        break;
    case LINK:
        (void)store_make(i, "/n", S_IFLNK | 0777, L, "target");
        break;
    case EMPTY_FOLDER:
    case FULL_FOLDER:
        (void)store_make(i, "/n", S_IFDIR | 0755, F, NULL);
        if (state == FULL_FOLDER)
            (void)store_make(i, "/n/x", S_IFREG | 0644, INSIDE, "x");
        break;
    }
}

static void
make_blame(enum blame blame)
{
    static const unsigned char dirty[CHANGELOG_BYTES] = {[11] = 1};

    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned k = 0; k < scene.count; k++) {
            bool accuses_k = blame >= BLAME_0 && blame <= BLAME_2 && k == blame - BLAME_0;
            bool accuses = blame == BLAME_ALL || accuses_k;

            if (i != k && accuses)
                replica_accuse("/", i, k, CHANGE_ENTRY);
        }
        if (blame == DIRTY)
            (void)store_set_xattr(&scene.store[i].object[0], "trusted.afr.dirty", dirty, sizeof dirty);
    }
}

/* The objects have a second name on all copies: a rename was under way. */
static void
make_old_names(const enum state *state, bool has_old)
{
    for (unsigned i = 0; i < scene.count && has_old; i++) {
        for (unsigned k = 0; k < scene.count; k++) {
            if (state[k] == FILE_A && !store_find(&scene.store[i], "/old"))
                (void)store_make(i, "/old", S_IFREG | 0644, A, store_find(&scene.store[i], "/n") &&
                                 state[i] == FILE_A ? NULL : "contents A");
        }
    }
}

struct contradiction {
    const struct replica_shape *shape;
    enum state state[REPLICAS];
    enum blame blame;
    bool has_old;
};

static struct contradiction
contradiction_of(unsigned n)
{
    struct contradiction c = {.shape = &replica_shapes[n % REPLICA_SHAPES]};

    n /= REPLICA_SHAPES;
    for (unsigned i = 0; i < REPLICAS; i++, n /= STATES)
        c.state[i] = (enum state)(n % STATES);
    c.blame = (enum blame)(n % BLAMES);
    c.has_old = n / BLAMES;
    return c;
}
enum { CONTRADICTIONS = REPLICA_SHAPES * STATES * STATES * STATES * BLAMES * 2 };

static bool
is_possible(const struct contradiction *c)
{
    if (c->shape->count < 3 && (c->state[2] != NOTHING || c->blame == BLAME_2))
        return false;
    for (unsigned i = 0; i < c->shape->count && c->has_old; i++) {
        if (c->state[i] == NAMELESS || c->state[i] == NAMELESS_DATA)
            return false; /* a brick never has two objects of a gfid */
    }
    return !c->shape->has_arbiter || c->state[2] != NAMELESS_DATA;
}

static const char *
options_of(const struct contradiction *c)
{
    return c->shape->has_arbiter ? " option arbiter-count 1\n" : "";
}

static void
contradiction_make(const struct contradiction *c)
{
    scene_clear(c->shape->count, c->shape->has_arbiter);
    for (unsigned i = 0; i < c->shape->count; i++)
        make_state(i, c->state[i]);
    make_old_names(c->state, c->has_old);
    make_blame(c->blame);
}

static bool
has_file(unsigned number, const char *contents)
{
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 0; n < STORED_OBJECTS_MAX; n++) {
            const struct stored_object *o = &scene.store[i].object[n];

            if (o->stat.mode && o->stat.nlink && o->stat.gfid.b[0] == 0xbb && o->stat.gfid.b[15] == number &&
                o->stat.size == strlen(contents) && memcmp(o->data, contents, strlen(contents)) == 0)
                return true;
        }
    }
    return false;
}

/* Is the contents of this state on a copy with data that no copy accuses, and does no accusation tell that
 * the name was removed or replaced? */
static bool
must_stay(const struct contradiction *c, enum state state)
{
    bool is_clear = c->blame >= BLAME_0 && c->blame <= BLAME_2;

    for (unsigned i = 0; i < c->shape->count; i++) {
        bool is_accused = is_clear && i == (unsigned)(c->blame - BLAME_0);

        if (c->state[i] == state && !is_accused && !scene.store[i].is_arbiter)
            return true;
    }
    return false;
}

/* Returns the state of the copies that are right, or STATES if that is not clear. */
static enum state
right_state(const struct contradiction *c)
{
    enum state right = STATES;

    if (c->blame < BLAME_0 || c->blame > BLAME_2)
        return STATES;
    for (unsigned i = 0; i < c->shape->count; i++) {
        if (i == (unsigned)(c->blame - BLAME_0))
            continue;
        if (right != STATES && c->state[i] != right)
            return STATES;
        right = c->state[i];
    }
    return right;
}

static bool
is_in_state(unsigned i, enum state state)
{
    struct stored_object *o = store_find(&scene.store[i], "/n");
    static const uint8_t numbers[STATES] = {[FILE_A] = A, [FILE_B] = B, [LINK] = L, [EMPTY_FOLDER] = F,
                                            [FULL_FOLDER] = F};

    if (state == NOTHING || !o)
        return state == NOTHING && !o;
    return state == NAMELESS || state == NAMELESS_DATA || o->stat.gfid.b[15] == numbers[state];
}

/* Does the heal leave the name alone? An object without gfid that has contents came to the brick in some
 * other way, and the heal neither removes nor names such an object; and if only accused copies know a gfid,
 * no copy is right. */
static bool
is_left_alone(const struct contradiction *c)
{
    bool is_clear = c->blame >= BLAME_0 && c->blame <= BLAME_2, knows = false, has_nameless = false;

    for (unsigned i = 0; i < c->shape->count; i++) {
        if (c->state[i] == NAMELESS_DATA)
            return true;
        if (is_clear && i == (unsigned)(c->blame - BLAME_0))
            continue;
        has_nameless |= c->state[i] == NAMELESS;
        knows |= c->state[i] != NOTHING && c->state[i] != NAMELESS;
    }
    return is_clear && has_nameless && !knows;
}

static const char *name_looked_up = "n";

static void
fill_lookup(struct call_stack *stk)
{
    struct gfid fresh = {.b = {0xdd, [15] = 7}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = name_looked_up};
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &fresh) == 0);
}

static int
look(void)
{
    return scene_call(FOP_lookup, fill_lookup, 0);
}

static void
contradiction_finish(const struct contradiction *c)
{
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    int ret = look();

    for (int n = 0; n < 6 && ret != -EIO && (copies_difference() || counters_left()); n++) {
        scene_lookup_all();
        ret = look();
    }
    scene_run(5000);
    ret = look();
    const char *differs = copies_difference();

    if (ret != -EIO && ret < 0 && ret != -ENOENT && !(is_left_alone(c) && ret == -ENODATA))
        finding_add("LOOKUP: %s", strerror(-ret));
    else if (ret != -EIO && differs && !is_left_alone(c))
        finding_add("%s", differs);
    enum state right = right_state(c);

    for (unsigned i = 0; i < scene.count && ret != -EIO && !is_left_alone(c); i++) {
        if (right != STATES && !is_in_state(i, right))
            finding_add("the right state is %u, and c%u has another one", right, i);
    }
    if (must_stay(c, FILE_A) && !has_file(A, "contents A") && right != NOTHING)
        finding_add("the contents of A are lost");
    if (must_stay(c, FILE_B) && !c->has_old && !has_file(B, "contents of B"))
        finding_add("the contents of B are lost");
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

static void
name_contradiction(const struct contradiction *c, unsigned n, const char *what)
{
    snprintf(run_text, sizeof run_text, "%u: %s, states %u %u %u, blame %u%s%s", n, c->shape->name,
             c->state[0], c->state[1], c->state[2], c->blame, c->has_old ? ", old name" : "", what);
}

/* NAMES_RUN=NUMBER in the environment makes only that contradiction. */
static bool
is_left_out(unsigned n)
{
    const char *only = getenv("NAMES_RUN");

    return only && strtoul(only, NULL, 10) != n;
}

enum { PARTS = 8 };

START_TEST(lookup_heals_every_contradiction)
{
    findings = 0;
    for (unsigned n = (unsigned)_i; n < CONTRADICTIONS; n += PARTS) {
        struct contradiction c = contradiction_of(n);

        if (!is_possible(&c) || is_left_out(n))
            continue;
        name_contradiction(&c, n, "");
        contradiction_make(&c);
        replicas_begin(options_of(&c));
        (void)look();
        contradiction_finish(&c);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_fault_during_the_heal_loses_nothing)
{
    findings = 0;
    for (unsigned n = 101 + (unsigned)_i; n < CONTRADICTIONS; n += 7 * PARTS) {
        struct contradiction c = contradiction_of(n);
        struct fault f = {.child = n % c.shape->count,
                          .at = n / 5 % 40,
                          .kind = (enum fault_kind)(n / 200 % FAULT_KINDS),
                          .err = n % 2 ? ENOSPC : EIO};
        char what[64];

        if (!is_possible(&c) || is_left_out(n))
            continue;
        snprintf(what, sizeof what, ", c%u fault %u at call %u", f.child, f.kind, f.at);
        name_contradiction(&c, n, what);
        contradiction_make(&c);
        replicas_begin(options_of(&c));
        scene_arm(&f, 1);
        (void)look();
        scene_run(0);
        scene.fault_count = 0;
        if (scene.is_cut) {
            scene_end();
            replicas_begin(options_of(&c));
        }
        contradiction_finish(&c);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lack_of_memory_during_the_heal_loses_nothing)
{
    findings = 0;
    scene_init_starving();
    for (unsigned n = 57 + (unsigned)_i; n < CONTRADICTIONS; n += 5 * PARTS) {
        struct contradiction c = contradiction_of(n);
        unsigned at = 1 + n / 3 % 190;
        char what[64];

        if (!is_possible(&c) || is_left_out(n))
            continue;
        snprintf(what, sizeof what, ", without memory at allocation %u", at);
        name_contradiction(&c, n, what);
        contradiction_make(&c);
        replicas_begin(options_of(&c));
        scene_starve(at);
        (void)look();
        scene_run(0);
        scene_starve(0);
        contradiction_finish(&c);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- the hidden folder ----------------------------------------------------------------------- */

#define HIDDEN "/.glusterfs-anonymous-inode-ba000000-0000-0000-0000-000000000028"
#define HIDDEN_OPTIONS                                                                                       \
    " option use-anonymous-inode yes\n option volume-id ba000000-0000-0000-0000-000000000028\n"
#define PARKED "bb000000-0000-0000-0000-000000000017" /* F */
enum { HIDDEN_NUMBER = 0x28, OLD = 26 };

static void
fill_parked_lookup(struct call_stack *stk)
{
    struct iatt a = store_find(&scene.store[0], HIDDEN)->stat;

    stk->call.loc = (struct loc){.parent = inode_link(scene.graph->inodes, NULL, NULL, &a), .name = PARKED};
    stk->call.pargfid = a.gfid;
    stk->call.name = PARKED;
}

static void
clear_parked_go(void *r)
{
    heal_clear_parked(r);
}

static void
heal_clear_parked_now(void)
{
    must(coro_run(clear_parked_go, scene.child[0]->parent->private) == 0);
    scene_run(0);
}

static bool
folder_is_at(unsigned i, const char *path)
{
    const struct stored_object *o = store_find(&scene.store[i], path);

    return o && o->stat.gfid.b[15] == F;
}

/* A heal has parked a folder on one copy, from its old name, while the other has it at its new name. A client
 * asks for the parked name, as cluster/distribute does that looks for the folder's place. */
START_TEST(a_lookup_in_the_hidden_folder_moves_no_object)
{
    scene_clear(2, false);
    store_make_all(HIDDEN, S_IFDIR | 0700, HIDDEN_NUMBER, NULL);
    store_make_all("/old", S_IFDIR | 0755, OLD, NULL);
    (void)store_make(0, "/new", S_IFDIR | 0755, F, NULL);
    (void)store_make(0, "/new/x", S_IFREG | 0644, INSIDE, "x");
    (void)store_make(1, HIDDEN "/" PARKED, S_IFDIR | 0755, F, NULL);
    (void)store_make(1, HIDDEN "/" PARKED "/x", S_IFREG | 0644, INSIDE, "x");
    replicas_begin(HIDDEN_OPTIONS);
    (void)scene_call(FOP_lookup, fill_parked_lookup, 0);
    ck_assert_msg(folder_is_at(0, "/new"), "the living folder has left its place");
    for (int n = 0; n < 4; n++) {
        scene_lookup_all();
        scene_run(5000);
    }
    ck_assert_msg(folder_is_at(0, "/new") && folder_is_at(1, "/new"), "the folder is not healed");
    ck_assert_msg(store_find(&scene.store[1], "/new/x"), "the folder's contents are lost");
    scene_end();
}
END_TEST

/* Two heals have parked the same folder on both copies. No copy has removed the folder, so it is kept. */
START_TEST(an_object_that_is_parked_everywhere_is_kept)
{
    scene_clear(2, false);
    store_make_all(HIDDEN, S_IFDIR | 0700, HIDDEN_NUMBER, NULL);
    store_make_all(HIDDEN "/" PARKED, S_IFDIR | 0755, F, NULL);
    store_make_all(HIDDEN "/" PARKED "/x", S_IFREG | 0644, INSIDE, "x");
    replicas_begin(HIDDEN_OPTIONS);
    heal_clear_parked_now();
    for (unsigned i = 0; i < 2; i++)
        ck_assert_msg(store_find(&scene.store[i], HIDDEN "/" PARKED "/x"), "a copy of the contents is gone");
    scene_end();
}
END_TEST

/* The other copy has removed the folder. */
START_TEST(a_parked_object_that_a_copy_has_removed_goes)
{
    scene_clear(2, false);
    store_make_all(HIDDEN, S_IFDIR | 0700, HIDDEN_NUMBER, NULL);
    (void)store_make(1, HIDDEN "/" PARKED, S_IFDIR | 0755, F, NULL);
    (void)store_make(1, HIDDEN "/" PARKED "/x", S_IFREG | 0644, INSIDE, "x");
    replicas_begin(HIDDEN_OPTIONS);
    heal_clear_parked_now();
    ck_assert_ptr_null(store_find(&scene.store[1], HIDDEN "/" PARKED));
    scene_end();
}
END_TEST

/* c1 was away when the folder and its file were removed. */
START_TEST(a_full_folder_stays_while_no_hidden_folder_is_allowed)
{
    scene_clear(2, false);
    (void)store_make(1, "/n", S_IFDIR | 0755, F, NULL);
    (void)store_make(1, "/n/x", S_IFREG | 0644, INSIDE, "x");
    replica_accuse("/", 0, 1, CHANGE_ENTRY);
    scene_begin(&cluster_replicate_xlator, " option entry-self-heal on\n option use-anonymous-inode no\n");
    for (int n = 0; n < 3; n++) {
        scene_lookup_all();
        scene_run(5000);
    }
    ck_assert_msg(store_find(&scene.store[1], "/n/x"), "the contents went without a look at them");
    ck_assert_msg(counters_left(), "no counter leads the next healer to the folder");
    ck_assert(!store_locks());
    scene_end();
    replicas_begin("");
    for (int n = 0; n < 3; n++) {
        scene_lookup_all();
        scene_run(5000);
    }
    ck_assert_ptr_null(store_find(&scene.store[1], "/n"));
    ck_assert_ptr_null(copies_difference());
    ck_assert_ptr_null(counters_left());
    scene_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-names");
    TCase *t = tcase_create("names");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, lookup_heals_every_contradiction, 0, PARTS);
    tcase_add_loop_test(t, a_fault_during_the_heal_loses_nothing, 0, PARTS);
    tcase_add_loop_test(t, lack_of_memory_during_the_heal_loses_nothing, 0, PARTS);
    tcase_add_test(t, a_lookup_in_the_hidden_folder_moves_no_object);
    tcase_add_test(t, an_object_that_is_parked_everywhere_is_kept);
    tcase_add_test(t, a_parked_object_that_a_copy_has_removed_goes);
    tcase_add_test(t, a_full_folder_stays_while_no_hidden_folder_is_allowed);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
