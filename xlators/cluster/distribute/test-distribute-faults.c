/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of names on a distributed volume, with a fault at each of their calls.
 *
 * For each change (create, mkdir, rmdir, link, unlink, rename) on 2 and 3 subvolumes, with names of every
 * placement, the test first makes the change without a fault and counts the calls to each subvolume. Then
 * it makes the change again, once for each call and each kind of fault at that call. FAULTS_RUN=TEXT in
 * the environment makes only the run of that text. After each run:
 *
 *      the caller has an answer, and no lock is left
 *      when all subvolumes are up, LOOKUP by this mount and by a new mount finds the state after the
 *      change, if
 *      the change was reported as done; else the state before or after it
 *      a rename that failed may leave a file with both names, never without a name
 *      contents are not lost, and a folder is on all subvolumes, with ranges for every hash, none twice
 *
 * Known gap: a rename of a folder whose RENAME on one subvolume had no answer, or during which the mount
 * died, may leave the folder with different names on different subvolumes, and no LOOKUP mends that.
 * After such a run only answers and locks are checked.
 *
 * Three more tests: attributes of a folder with a fault at each call, LOOKUP of a name about which three
 * subvolumes contradict each other, in every combination, and a listing with a fault at each call. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *path_a, *path_b; /* of the next call: "/name" or "/dir/name" */
static uint8_t new_number;

static void
fill_new(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = new_number}};

    stk->call.loc = loc_at(path_a);
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_name(struct call_stack *stk)
{
    stk->call.loc = loc_at(path_a);
}

static void
fill_both(struct call_stack *stk)
{
    stk->call.loc = loc_at(path_a);
    stk->call.loc2 = loc_at(path_b);
}

/* Returns the number of the object behind the name, as the mount finds it; 0: no such name; or -errno. */
static int
look(const char *path)
{
    path_a = path;
    int ret = scene_call(FOP_lookup, fill_name, 0);

    return ret == -ENOENT ? 0 : ret < 0 ? ret : scene.stat.gfid.b[15];
}

static void
fill_link(struct call_stack *stk)
{
    struct iatt stat = {.gfid.b = {0xcc, [15] = 10}, .mode = S_IFREG | 0644};

    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &stat);
    stk->call.loc2 = loc_at(path_b);
}

static void
make_new(enum fop fop, const char *path, uint8_t number)
{
    path_a = path;
    new_number = number;
    must(scene_call(fop, fill_new, 0) == 0);
}

/* ---- the changes ----------------------------------------------------------------------------- */

enum { SOURCE = 10, TARGET = 11, FRESH = 12, PARENT = 13 }; /* numbers of objects */

static char source[16], target[16]; /* names of this placement */

static int
act_create(void)
{
    path_a = target;
    new_number = FRESH;
    return scene_call(FOP_create, fill_new, 0);
}

static int
act_mkdir(void)
{
    path_a = target;
    new_number = FRESH;
    return scene_call(FOP_mkdir, fill_new, 0);
}

static int
act_unlink(void)
{
    path_a = source;
    return scene_call(FOP_unlink, fill_name, 0);
}

static int
act_rmdir(void)
{
    path_a = source;
    return scene_call(FOP_rmdir, fill_name, 0);
}

static int
act_link(void)
{
    path_b = target;
    return scene_call(FOP_link, fill_link, 0);
}

static int
act_rename(void)
{
    path_a = source;
    path_b = target;
    return scene_call(FOP_rename, fill_both, 0);
}

static const struct name_change {
    const char *name;
    enum fop source_by, target_by; /* how the names are made before; null: the name is free */
    int (*act)(void);
    int source_after, target_after; /* numbers of the objects behind the names after the change */
    bool may_have_both; /* a change that failed may leave the new target without removing the source */
    /* Each name was that of another file: the files lie anywhere, behind linkto files. The names are in a
     * folder of the volume's last layout, so the hashed subvolume's ENOENT is the answer of a LOOKUP. */
    bool renamed_before;
} changes[] = {
    {"create", FOP_null, FOP_null, act_create, 0, FRESH, false, false},
    {"mkdir", FOP_null, FOP_null, act_mkdir, 0, FRESH, false, false},
    {"unlink", FOP_create, FOP_null, act_unlink, 0, 0, false, false},
    {"rmdir", FOP_mkdir, FOP_null, act_rmdir, 0, 0, false, false},
    {"link", FOP_create, FOP_null, act_link, SOURCE, SOURCE, false, false},
    {"rename", FOP_create, FOP_null, act_rename, 0, SOURCE, true, false},
    {"rename over a file", FOP_create, FOP_create, act_rename, 0, SOURCE, true, false},
    {"unlink of a renamed file", FOP_create, FOP_null, act_unlink, 0, 0, false, true},
    {"link of a renamed file", FOP_create, FOP_null, act_link, SOURCE, SOURCE, false, true},
    {"rename of a renamed file", FOP_create, FOP_null, act_rename, 0, SOURCE, true, true},
    {"rename over a renamed file", FOP_create, FOP_create, act_rename, 0, SOURCE, true, true},
    {"rename of a folder", FOP_mkdir, FOP_null, act_rename, 0, SOURCE, false, false},
    {"rename over an empty folder", FOP_mkdir, FOP_mkdir, act_rename, 0, SOURCE, false, false},
};
enum { CHANGES_COUNT = sizeof changes / sizeof changes[0] };

static int
source_before(const struct name_change *c)
{
    return c->source_by == FOP_null ? 0 : SOURCE;
}

static int
target_before(const struct name_change *c)
{
    return c->target_by == FOP_null ? 0 : TARGET;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool
is_state(const struct name_change *c, int s, int t, bool is_done)
{
    if (s == c->source_after && t == c->target_after)
        return true;
    if (is_done)
        return false;
    if (s == source_before(c) && t == target_before(c))
        return true;
    return c->may_have_both && s == SOURCE && t == SOURCE;
}

static bool
is_real_file(struct stored_object *o)
{
    return S_ISREG(o->stat.mode) && (o->stat.mode & 07777) != S_ISVTX;
}

static bool
has_contents(uint8_t number)
{
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 1; n < STORED_OBJECTS_MAX; n++) {
            struct stored_object *o = &scene.store[i].object[n];

            if (is_real_file(o) && o->stat.gfid.b[15] == number && o->stat.nlink && o->stat.size == number)
                return true;
        }
    }
    return false;
}

/* Does a folder that was renamed have different names on different subvolumes? */
static bool
is_half_renamed(const struct name_change *c, int ret)
{
    bool is_half = false;

    for (unsigned i = 1; i < scene.count; i++) {
        const struct stored_object *s = store_find(&scene.store[i], source),
                                   *s0 = store_find(&scene.store[0], source);
        const struct stored_object *t = store_find(&scene.store[i], target),
                                   *t0 = store_find(&scene.store[0], target);

        is_half |= !s != !s0 || !t != !t0 || (t && !gfid_equal(&t->stat.gfid, &t0->stat.gfid));
    }
    return is_half && ret < 0 && c->act == act_rename && c->source_by == FOP_mkdir;
}

static void
check_names(const struct name_change *c, int ret, const char *when)
{
    int s = look(source), t = look(target);

    if (!is_state(c, s, t, ret >= 0) && !is_half_renamed(c, ret))
        finding_add("%s: the source leads to %d, the target to %d (the change: %d)", when, s, t, ret);
    if ((s == SOURCE || t == SOURCE) && c->source_by == FOP_create && !has_contents(SOURCE))
        finding_add("%s: the contents of the source are lost", when);
    if (t == TARGET && c->target_by == FOP_create && !has_contents(TARGET))
        finding_add("%s: the contents of the target are lost", when);
}

static uint32_t
word_of(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Checks that a folder is on all subvolumes, and that each hash has one subvolume. */
static void
check_folder(const char *path)
{
    uint64_t sum = 0;
    unsigned has = 0;

    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);
        struct stored_xattr *x = o ? store_xattr(o, "trusted.glusterfs.dht") : NULL;

        has += o != NULL;
        if (!o || !S_ISDIR(o->stat.mode))
            continue;
        if (!x)
            finding_add("folder %s has no range on c%u", path, i);
        else if (word_of(x->bytes + 12))
            sum += (uint64_t)word_of(x->bytes + 12) - word_of(x->bytes + 8) + 1;
    }
    if (has && has != scene.count)
        finding_add("folder %s is on %u subvolumes only", path, has);
    else if (has && sum != UINT64_C(1) << 32)
        finding_add("the ranges of folder %s have %llu hashes", path, (unsigned long long)sum);
}

static void
check_folders(const struct name_change *c)
{
    check_folder("/");
    if (c->source_by == FOP_mkdir)
        check_folder(source);
    if (c->source_by == FOP_mkdir || c->act == act_mkdir)
        check_folder(target);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Gives the file's contents on its subvolume a size that tells the file. */
static void
put_contents(const char *path, uint8_t number)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);

        if (o && is_real_file(o))
            o->stat.size = number;
    }
}

/* Makes the object with the name, or with another name, which is then changed. */
static void
make_named(const struct name_change *c, enum fop by, const char *name, uint8_t number)
{
    static char before[32];

    snprintf(before, sizeof before, c->renamed_before ? "/p/before-%s" : "%s",
             c->renamed_before ? name + 3 : name);
    if (by == FOP_null)
        return;
    make_new(by, before, number);
    path_a = before;
    path_b = name;
    must(!c->renamed_before || scene_call(FOP_rename, fill_both, 0) == 0);
}

static void
make_names(const struct name_change *c)
{
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    if (c->renamed_before)
        make_new(FOP_mkdir, "/p", PARENT);
    make_named(c, c->source_by, source, SOURCE);
    make_named(c, c->target_by, target, TARGET);
    put_contents(source, SOURCE);
    put_contents(target, TARGET);
    fd_unref(scene.fd);
    scene.fd = NULL;
}

static void
look_folders(const struct name_change *c)
{
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    if (c->renamed_before)
        must(look("/p") == PARENT);
}

static int
run_change(unsigned count, const struct name_change *c, bool is_fresh, const struct fault *faults,
           unsigned fault_count)
{
    scene_clear(count, false);
    scene_begin(&cluster_distribute_xlator, "");
    make_names(c);
    if (is_fresh) { /* a mount that remembers nothing */
        scene_end();
        scene_begin(&cluster_distribute_xlator, "");
        look_folders(c);
    }
    scene_arm(faults, fault_count);
    int ret = c->act();

    scene_run(5000);
    return ret;
}

static void
finish_run(const struct name_change *c, int ret)
{
    bool is_cut = scene.is_cut;

    if (!is_cut && store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene.fault_count = 0;
    for (unsigned i = 0; i < scene.count && !is_cut; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    if (!is_cut)
        check_names(c, ret, "by the same mount");
    scene_end();
    scene_begin(&cluster_distribute_xlator, "");
    look_folders(c);
    check_names(c, ret, "by a new mount");
    check_names(c, ret, "at the second look");
    if (is_half_renamed(c, ret))
        check_folder("/");
    else
        check_folders(c);
    if (store_locks())
        finding_add("the lookups leave locks: %s", store_locks_text());
    scene_end();
}

static const char *const kind_names[] = {"refused", "unsent",     "unanswered",
                                         "late",    "mount dies", "mount dies after"};

static void
run_with(unsigned count, const struct name_change *c, bool is_fresh, const struct fault *f)
{
    const char *only = getenv("FAULTS_RUN");
    int at = snprintf(run_text, sizeof run_text, "%u subvolumes, %s, %s to %s%s", count, c->name, source,
                      target, is_fresh ? ", fresh" : "");

    if (f)
        snprintf(run_text + at, sizeof run_text - (size_t)at, ", c%u %s at call %u", f->child,
                 kind_names[f->kind], f->at);
    if (only && strcmp(only, run_text) != 0)
        return;
    if (only)
        fprintf(stderr, "%s\n", run_text);
    int ret = run_change(count, c, is_fresh, f, f != NULL);

    if (ret < 0 && (!f || f->kind == FAULT_LATE))
        finding_add("the change fails: %s", strerror(-ret));
    finish_run(c, ret);
}

static void
run_placement(unsigned count, const struct name_change *c, bool is_fresh)
{
    unsigned calls[CHILDREN_MAX + 1];

    run_with(count, c, is_fresh, NULL);
    (void)run_change(count, c, is_fresh, NULL, 0);
    memcpy(calls, scene.calls, sizeof calls);
    scene_end();
    for (unsigned i = 0; i < count; i++) {
        for (unsigned n = 0; n < calls[i] * FAULT_KINDS; n++) {
            struct fault f = {
                .child = i, .at = n / FAULT_KINDS, .kind = (enum fault_kind)(n % FAULT_KINDS), .err = EIO};

            run_with(count, c, is_fresh, &f);
        }
    }
}

enum { PLACEMENTS = 6 };

START_TEST(a_fault_leaves_the_old_or_the_new_names)
{
    const struct name_change *c = &changes[_i];

    findings = 0;
    for (unsigned n = 0; n < 2 * PLACEMENTS; n++) {
        snprintf(source, sizeof source, "%s/s%u", c->renamed_before ? "/p" : "", n / 2 % 3);
        snprintf(target, sizeof target, "%s/t%u", c->renamed_before ? "/p" : "", n / 2);
        run_placement(2 + n % 2, c, n / 2 % 2);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* ---- attributes of a folder ------------------------------------------------------------------ */

static void
fill_folder_change(struct call_stack *stk)
{
    stk->call.loc.inode = scene_inode(0, source);
    stk->call.stbuf.mode = 0700;
    stk->call.valid = SETATTR_MODE;
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.a", DICT_PTR, "value", 5) == 0);
}

/* Has the folder the change on child i? */
static bool
has_folder_change(unsigned i, enum fop fop)
{
    struct stored_object *o = store_find(&scene.store[i], source);

    return fop == FOP_setattr ? (o->stat.mode & 07777) == 0700 : store_xattr(o, "user.a") != NULL;
}

static void
change_folder(unsigned count, enum fop fop, const struct fault *f)
{
    snprintf(run_text, sizeof run_text, "%u subvolumes, %s of a folder, c%u %s at call %u", count,
             fop_info[fop].name, f->child, kind_names[f->kind], f->at);
    scene_clear(count, false);
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    make_new(FOP_mkdir, source, SOURCE);
    scene_arm(f, 1);
    int ret = scene_call(fop, fill_folder_change, 0);
    bool is_cut = scene.is_cut;

    scene.fault_count = 0;
    scene_end();
    if (store_locks() && !is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    (void)look(source);
    (void)look(source);
    for (unsigned i = 0; i < count; i++) {
        if (has_folder_change(i, fop) != has_folder_change(0, fop))
            finding_add("the folder differs on c0 and c%u (the change: %d)", i, ret);
        if (ret >= 0 && !has_folder_change(i, fop))
            finding_add("c%u has lost a change that was reported as done", i);
    }
    scene_end();
}

START_TEST(attributes_of_a_folder_become_equal)
{
    findings = 0;
    for (unsigned n = 0; n < 4 * 3 * 8 * FAULT_KINDS; n++) {
        unsigned count = 2 + n % 2;
        struct fault f = {
            .child = n / 4 % 3, .at = n / 12 % 8, .kind = (enum fault_kind)(n / 96), .err = EIO};

        snprintf(source, sizeof source, "/s%u", n % 5);
        if (f.child < count)
            change_folder(count, n / 2 % 2 ? FOP_setattr : FOP_setxattr, &f);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- contradictions -------------------------------------------------------------------------- */

enum { SUBVOLUMES = 3, NOTHING = 0, FILE_A, FILE_B, LINK_TO_0, LINK_TO_1, LINK_TO_2, FOLDER, STATES };
static char contradiction[64];

static void
put_state(unsigned i, const char *path, unsigned state)
{
    if (state == FILE_A || state == FILE_B) {
        (void)store_make(i, path, S_IFREG | 0644, state == FILE_A ? SOURCE : TARGET, "contents");
    } else if (state == FOLDER) {
        (void)store_make(i, path, S_IFDIR | 0755, FRESH, NULL);
    } else if (state != NOTHING) {
        const char name[] = {'c', (char)('0' + state - LINK_TO_0), '\0'};
        struct stored_object *o = store_make(i, path, S_IFREG | S_ISVTX, SOURCE, NULL);

        must(store_set_xattr(o, "trusted.glusterfs.dht.linkto", name, sizeof name) == 0);
    }
}

/* Checks that no file or folder was removed. */
static void
check_kept(const unsigned state[SUBVOLUMES], const char *path)
{
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);
        uint8_t number = state[i] == FILE_A ? SOURCE : state[i] == FILE_B ? TARGET : FRESH;
        bool is_real = state[i] == FILE_A || state[i] == FILE_B || state[i] == FOLDER;

        if (is_real && (!o || o->stat.gfid.b[15] != number))
            ck_abort_msg("%s: LOOKUP has removed the object on c%u", contradiction, i);
    }
}

/* The answer that is certain: the only kind of object that there is. A linkto file of another gfid is that of
 * a replaced file. -1: the objects contradict each other. */
static int
certain_answer(const unsigned state[SUBVOLUMES])
{
    unsigned files_a = 0, files_b = 0, folders = 0;

    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        files_a += state[i] == FILE_A;
        files_b += state[i] == FILE_B;
        folders += state[i] == FOLDER;
    }
    if (files_a + files_b + folders == 0)
        return 0;
    if (files_a + files_b == 1 && !folders)
        return files_a ? SOURCE : TARGET;
    return folders && !files_a && !files_b ? FRESH : -1;
}

static void
check_contradiction(const unsigned state[SUBVOLUMES], const char *path)
{
    int sure = certain_answer(state), first, again;

    snprintf(contradiction, sizeof contradiction, "%s: states %u %u %u", path, state[0], state[1], state[2]);
    scene_clear(SUBVOLUMES, false);
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    for (unsigned i = 0; i < SUBVOLUMES; i++)
        put_state(i, path, state[i]);
    (void)look(path); /* the first look may repair */
    first = look(path);
    if (store_locks())
        ck_abort_msg("%s: locks are left: %s", contradiction, store_locks_text());
    scene_end();
    scene_begin(&cluster_distribute_xlator, "");
    again = look(path);
    if (sure >= 0 && (first != sure || again != sure))
        ck_abort_msg("%s: LOOKUP finds %d, a new mount %d", contradiction, first, again);
    if (first != again)
        ck_abort_msg("%s: LOOKUP finds %d, a new mount %d", contradiction, first, again);
    check_kept(state, path);
    scene_end();
}

START_TEST(lookup_settles_every_contradiction)
{
    static const char *const names[] = {"/t0", "/t1", "/t2", "/t3"};

    for (unsigned n = 0; n < STATES * STATES * STATES; n++) {
        unsigned state[SUBVOLUMES] = {n % STATES, n / STATES % STATES, n / STATES / STATES};

        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            check_contradiction(state, names[i]);
    }
}
END_TEST

/* ---- a listing ------------------------------------------------------------------------------- */

enum { LISTED = 12 };
static uint64_t list_offset;

static void
fill_list(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
    stk->call.size = 4096;
    stk->call.offset = list_offset;
}

static void
fill_opendir(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

/* Lists the root. Returns 0 or -errno; counts each name in `seen`. */
static int
list_root(unsigned seen[LISTED])
{
    int ret = scene_call(FOP_opendir, fill_opendir, 0);
    unsigned replies = 0;

    memset(seen, 0, LISTED * sizeof *seen);
    list_offset = 0;
    while (ret >= 0 && (ret = scene_call(FOP_readdirp, fill_list, 0)) > 0) {
        for (char *at = scene.names, *name; (name = strsep(&at, "/"));) {
            if (*name)
                seen[strtoul(name + 1, NULL, 10)]++;
        }
        must(scene.next_offset != list_offset);
        must(++replies < 100);
        list_offset = scene.next_offset;
    }
    return ret;
}

static void
list_with(const struct fault *f)
{
    unsigned seen[LISTED], whole[LISTED];
    char name[16];

    scene_clear(SUBVOLUMES, false);
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    for (unsigned i = 0; i < LISTED; i++) {
        snprintf(name, sizeof name, "/n%u", i);
        make_new(i % 4 ? FOP_mknod : FOP_mkdir, name, (uint8_t)(20 + i));
    }
    scene_arm(f, f != NULL);
    int ret = list_root(seen);

    for (unsigned i = 0; i < LISTED; i++) {
        if (seen[i] > 1 || (!seen[i] && ret >= 0 && (!f || f->kind == FAULT_LATE)))
            ck_abort_msg("c%u %s at call %u: n%u is listed %u times", f ? f->child : 0,
                         f ? kind_names[f->kind] : "", f ? f->at : 0, i, seen[i]);
    }
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    scene.fault_count = 0;
    ret = list_root(whole);
    for (unsigned i = 0; i < LISTED; i++) {
        if (ret < 0 || whole[i] != 1)
            ck_abort_msg("after c%u %s at call %u: %d, n%u is listed %u times", f ? f->child : 0,
                         f ? kind_names[f->kind] : "", f ? f->at : 0, ret, i, whole[i]);
    }
    scene_end();
}

START_TEST(a_listing_never_repeats_a_name)
{
    list_with(NULL);
    for (unsigned n = 0; n < SUBVOLUMES * 12 * FAULT_CUT; n++) {
        struct fault f = {.child = n % SUBVOLUMES,
                          .at = n / SUBVOLUMES % 12,
                          .kind = (enum fault_kind)(n / SUBVOLUMES / 12),
                          .err = EIO};

        list_with(&f);
    }
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("distribute-faults");
    TCase *t = tcase_create("faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, a_fault_leaves_the_old_or_the_new_names, 0, CHANGES_COUNT);
    tcase_add_test(t, attributes_of_a_folder_become_equal);
    tcase_add_test(t, lookup_settles_every_contradiction);
    tcase_add_test(t, a_listing_never_repeats_a_name);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
