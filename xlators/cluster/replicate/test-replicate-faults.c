/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every change of a replicated volume, with a fault at each of its calls.
 *
 * For each change (create, write, rename, ...) on 2, 3 and 2+1 replicas, the test first makes the change
 * without a fault and counts the calls to each child. Then it makes the change again, once for each call
 * and each kind of fault at that call: the child refuses the call, loses the connection before or after
 * it, answers late, or the mount dies. The third pass sets two faults: a child fails, and the mount dies
 * at a later call. FAULTS_RUN="2 replicas, create, c0 unsent at call 2" in the environment makes only
 * that run, and CHILDREN_TRACE=1 prints its calls. After each run:
 *
 *      the caller has an answer, and no lock is left
 *      a change reported as done is on a copy, and that copy accuses (pending xattr) each copy without it
 *      without a death of the mount, one fault never makes the change fail
 *      when all children are up (in a new mount if the mount died), LOOKUP heals: the copies are equal, no
 *      counter is left, and a change reported as done is there; else the state is the old or the new one */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

/* ---- the volume ------------------------------------------------------------------------------ */

static const struct shape {
    const char *name;
    unsigned count;
    bool has_arbiter;
} shapes[] = {{"2 replicas", 2, false}, {"3 replicas", 3, false}, {"2 replicas and an arbiter", 3, true}};

static void
volume_make(const struct shape *shape)
{
    scene_clear(shape->count, shape->has_arbiter);
    store_make_all("/d", S_IFDIR | 0755, 2, NULL);
    store_make_all("/f", S_IFREG | 0644, 3, "contents of f");
    store_make_all("/g", S_IFREG | 0600, 4, "g");
    store_make_all("/e", S_IFDIR | 0755, 5, NULL);
    store_make_all("/d/x", S_IFREG | 0644, 6, "x in d");
    store_make_all("/h", S_IFREG | 0644, 7, "two names");
    store_make_all("/h2", S_IFREG | 0644, 7, NULL);
    store_make_all("/full", S_IFDIR | 0755, 8, NULL);
    store_make_all("/full/y", S_IFREG | 0644, 9, "y");
}

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *path_a, *path_b; /* of the next call: "/dir/name" */
static const char *payload;
static uint64_t offset;
static uint8_t new_number;

static struct inode *
inode_of(const char *path)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct inode *inode = scene_inode(i, path);

        if (inode)
            return inode;
    }
    return NULL;
}

static struct loc
loc_of(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[64];

    snprintf(dir, sizeof dir, "%.*s", (int)(name - path), path);
    return (struct loc){.parent = inode_of(dir), .name = name};
}

static void
fill_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = new_number}};

    stk->call.loc = loc_of(path_a);
    stk->call.mode = stk->call.fop == FOP_mknod ? S_IFREG | 0644 : 0755;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    stk->call.name2 = path_b;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_link(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.loc2 = loc_of(path_b);
}

static void
fill_rename(struct call_stack *stk)
{
    stk->call.loc = loc_of(path_a);
    stk->call.loc2 = loc_of(path_b);
}

static void
fill_open(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.flags = (uint32_t)offset;
}

static void
fill_write(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
    stk->call.offset = offset;
    stk->call.payload[0] = (struct iovec){(char *)payload, strlen(payload)};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = strlen(payload);
}

static void
fill_truncate(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.offset = offset;
}

static void
fill_ftruncate(struct call_stack *stk)
{
    stk->call.fd = fd_ref(scene.fd);
    stk->call.offset = offset;
}

static void
fill_setattr(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.stbuf.mode = 0640;
    stk->call.stbuf.uid = 77;
    stk->call.valid = SETATTR_MODE | SETATTR_UID;
}

static void
fill_setxattr(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.a", DICT_PTR, "value", 5) == 0);
}

static void
fill_warm(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.warm", DICT_PTR, "1", 1) == 0);
}

static void
fill_removexattr(struct call_stack *stk)
{
    stk->call.loc.inode = inode_of(path_a);
    stk->call.name = "user.old";
}

/* ---- the changes ----------------------------------------------------------------------------- */

static bool
has_contents(struct store *s, const char *path, const char *contents)
{
    struct stored_object *o = store_find(s, path);

    return o && o->stat.size == strlen(contents) && memcmp(o->data, contents, strlen(contents)) == 0;
}

static bool
leads_to(struct store *s, const char *path, uint8_t first, uint8_t number)
{
    struct stored_object *o = store_find(s, path);

    return o && o->stat.gfid.b[0] == first && o->stat.gfid.b[15] == number;
}

static void
open_file(const char *path, uint32_t flags)
{
    path_a = path;
    offset = flags;
    must(scene_call(FOP_open, fill_open, 0) == 0);
}

static void
open_g(void)
{
    open_file("/g", O_RDWR);
}

static void
open_f(void)
{
    open_file("/f", O_RDWR);
}

static void
open_f_appending(void)
{
    open_file("/f", O_RDWR | O_APPEND);
}

static int
act_write(const char *text, uint64_t at)
{
    payload = text;
    offset = at;
    int ret = scene_call(FOP_writev, fill_write, 0);

    must(ret < 0 || ret == (int)strlen(text));
    return ret;
}

static int
act_create(void)
{
    path_a = "/n";
    return scene_call(FOP_create, fill_name, 0);
}

static bool
has_n(struct store *s)
{
    return leads_to(s, "/n", 0xcc, new_number);
}

static int
act_create_in_folder(void)
{
    path_a = "/d/n";
    return scene_call(FOP_create, fill_name, 0);
}

static bool
has_n_in_folder(struct store *s)
{
    return leads_to(s, "/d/n", 0xcc, new_number);
}

static int
act_mknod(void)
{
    path_a = "/n";
    return scene_call(FOP_mknod, fill_name, 0);
}

static int
act_mkdir(void)
{
    path_a = "/n";
    return scene_call(FOP_mkdir, fill_name, 0);
}

static int
act_symlink(void)
{
    path_a = "/n";
    path_b = "target";
    return scene_call(FOP_symlink, fill_name, 0);
}

static int
act_link(void)
{
    path_a = "/f";
    path_b = "/d/n";
    return scene_call(FOP_link, fill_link, 0);
}

static bool
has_linked(struct store *s)
{
    return leads_to(s, "/d/n", 0xbb, 3);
}

static int
act_unlink(void)
{
    path_a = "/f";
    return scene_call(FOP_unlink, fill_name, 0);
}

static bool
lacks_f(struct store *s)
{
    return !store_find(s, "/f");
}

static int
act_unlink_second(void)
{
    path_a = "/h2";
    return scene_call(FOP_unlink, fill_name, 0);
}

static bool
lacks_h2(struct store *s)
{
    return !store_find(s, "/h2");
}

static int
act_rmdir(void)
{
    path_a = "/e";
    return scene_call(FOP_rmdir, fill_name, 0);
}

static bool
lacks_e(struct store *s)
{
    return !store_find(s, "/e");
}

static int
act_rename(void)
{
    path_a = "/f";
    path_b = "/d/moved";
    return scene_call(FOP_rename, fill_rename, 0);
}

static bool
has_renamed(struct store *s)
{
    return !store_find(s, "/f") && leads_to(s, "/d/moved", 0xbb, 3);
}

static int
act_rename_beside(void)
{
    path_a = "/f";
    path_b = "/moved";
    return scene_call(FOP_rename, fill_rename, 0);
}

static bool
has_renamed_beside(struct store *s)
{
    return !store_find(s, "/f") && leads_to(s, "/moved", 0xbb, 3);
}

static int
act_rename_over(void)
{
    path_a = "/f";
    path_b = "/g";
    return scene_call(FOP_rename, fill_rename, 0);
}

static bool
has_renamed_over(struct store *s)
{
    return !store_find(s, "/f") && leads_to(s, "/g", 0xbb, 3);
}

static int
act_rename_folder(void)
{
    path_a = "/full";
    path_b = "/d/full";
    return scene_call(FOP_rename, fill_rename, 0);
}

static bool
has_renamed_folder(struct store *s)
{
    return !store_find(s, "/full") && leads_to(s, "/d/full", 0xbb, 8);
}

static int
act_rename_over_folder(void)
{
    path_a = "/full";
    path_b = "/e";
    return scene_call(FOP_rename, fill_rename, 0);
}

static bool
has_renamed_over_folder(struct store *s)
{
    return !store_find(s, "/full") && leads_to(s, "/e", 0xbb, 8);
}

static int
act_overwrite(void)
{
    return act_write("CONTENTS", 0);
}

static bool
has_overwritten(struct store *s)
{
    return has_contents(s, "/f", "CONTENTS of f");
}

static int
act_extend(void)
{
    return act_write("ggg", 1);
}

static bool
has_extended(struct store *s)
{
    return has_contents(s, "/g", "gggg");
}

static int
act_append(void)
{
    return act_write(" and more", 0);
}

static bool
has_appended(struct store *s)
{
    return has_contents(s, "/f", "contents of f and more");
}

static int
act_write_and_sync(void)
{
    int ret = act_write("CONTENTS", 0);

    offset = 0;
    return ret < 0 ? ret : scene_call(FOP_fsync, fill_ftruncate, 0);
}

static int
act_truncate(void)
{
    path_a = "/f";
    offset = 8;
    return scene_call(FOP_truncate, fill_truncate, 0);
}

static bool
has_truncated(struct store *s)
{
    return has_contents(s, "/f", "contents");
}

static int
act_ftruncate(void)
{
    offset = 8;
    return scene_call(FOP_ftruncate, fill_ftruncate, 0);
}

static int
act_setattr(void)
{
    path_a = "/f";
    return scene_call(FOP_setattr, fill_setattr, 0);
}

static bool
has_attributes(struct store *s)
{
    struct stored_object *o = store_find(s, "/f");

    return o && (o->stat.mode & 0777) == 0640 && o->stat.uid == 77;
}

static int
act_setxattr(void)
{
    path_a = "/f";
    return scene_call(FOP_setxattr, fill_setxattr, 0);
}

static bool
has_xattr(struct store *s)
{
    return store_xattr(store_find(s, "/f"), "user.a") != NULL;
}

static int
act_setxattr_folder(void)
{
    path_a = "/d";
    return scene_call(FOP_setxattr, fill_setxattr, 0);
}

static bool
has_xattr_folder(struct store *s)
{
    return store_xattr(store_find(s, "/d"), "user.a") != NULL;
}

static void
set_old_xattr(void)
{
    for (unsigned i = 0; i < scene.count; i++)
        (void)store_set_xattr(store_find(&scene.store[i], "/f"), "user.old", "1", 1);
}

static int
act_removexattr(void)
{
    path_a = "/f";
    return scene_call(FOP_removexattr, fill_removexattr, 0);
}

static bool
lacks_xattr(struct store *s)
{
    return !store_xattr(store_find(s, "/f"), "user.old");
}

/* A rename of a file that no caller was told of may leave both names. */
static bool
has_both_names(struct store *s)
{
    struct stored_object *o = store_find(s, path_a);

    return o && o == store_find(s, path_b) && o->stat.nlink == 2;
}

static const struct change_case {
    const char *name;
    void (*prepare)(void); /* with all children up; may be NULL */
    int (*act)(void);
    bool (*is_done)(struct store *s);
    enum change kind;
    const char *marked; /* the object whose counters tell which copies lack the change */
    /* a third state that an unanswered change may leave; may be NULL */
    bool (*is_half)(struct store *s);
} cases[] = {
    {"create", NULL, act_create, has_n, CHANGE_ENTRY, "/", NULL},
    {"create in a folder", NULL, act_create_in_folder, has_n_in_folder, CHANGE_ENTRY, "/d", NULL},
    {"mknod", NULL, act_mknod, has_n, CHANGE_ENTRY, "/", NULL},
    {"mkdir", NULL, act_mkdir, has_n, CHANGE_ENTRY, "/", NULL},
    {"symlink", NULL, act_symlink, has_n, CHANGE_ENTRY, "/", NULL},
    {"link", NULL, act_link, has_linked, CHANGE_ENTRY, "/d", NULL},
    {"unlink", NULL, act_unlink, lacks_f, CHANGE_ENTRY, "/", NULL},
    {"unlink of one of two names", NULL, act_unlink_second, lacks_h2, CHANGE_ENTRY, "/", NULL},
    {"rmdir", NULL, act_rmdir, lacks_e, CHANGE_ENTRY, "/", NULL},
    {"rename", NULL, act_rename, has_renamed, CHANGE_ENTRY, "/d", has_both_names},
    {"rename in one folder", NULL, act_rename_beside, has_renamed_beside, CHANGE_ENTRY, "/", has_both_names},
    {"rename over a file", NULL, act_rename_over, has_renamed_over, CHANGE_ENTRY, "/", has_both_names},
    {"rename of a folder", NULL, act_rename_folder, has_renamed_folder, CHANGE_ENTRY, "/d", NULL},
    {"rename over an empty folder", NULL, act_rename_over_folder, has_renamed_over_folder, CHANGE_ENTRY, "/",
     NULL},
    {"overwrite", open_f, act_overwrite, has_overwritten, CHANGE_DATA, "/f", NULL},
    {"write at the end", open_g, act_extend, has_extended, CHANGE_DATA, "/g", NULL},
    {"append", open_f_appending, act_append, has_appended, CHANGE_DATA, "/f", NULL},
    {"write and fsync", open_f, act_write_and_sync, has_overwritten, CHANGE_DATA, "/f", NULL},
    {"truncate", NULL, act_truncate, has_truncated, CHANGE_DATA, "/f", NULL},
    {"ftruncate", open_f, act_ftruncate, has_truncated, CHANGE_DATA, "/f", NULL},
    {"setattr", NULL, act_setattr, has_attributes, CHANGE_METADATA, "/f", NULL},
    {"setxattr", NULL, act_setxattr, has_xattr, CHANGE_METADATA, "/f", NULL},
    {"setxattr of a folder", NULL, act_setxattr_folder, has_xattr_folder, CHANGE_METADATA, "/d", NULL},
    {"removexattr", set_old_xattr, act_removexattr, lacks_xattr, CHANGE_METADATA, "/f", NULL},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* ---- checks ---------------------------------------------------------------------------------- */

static bool
has_change_copy(const struct change_case *c, unsigned i)
{
    return c->is_done(&scene.store[i]);
}

/* Does child i hold what the change changes? An arbiter holds no data. */
static bool
can_tell(const struct change_case *c, unsigned i)
{
    return c->kind != CHANGE_DATA || !scene.store[i].is_arbiter;
}

static bool
accuses(const struct change_case *c, unsigned by, unsigned whom)
{
    struct stored_object *o = store_find(&scene.store[by], c->marked);
    struct changelog counters;
    char key[32];

    snprintf(key, sizeof key, "trusted.afr.c%u", whom);
    struct stored_xattr *x = o ? store_xattr(o, key) : NULL;

    changelog_get(&counters, x ? x->bytes : NULL, x ? x->len : 0);
    return counters.count[c->kind] != 0;
}

/* A change reported as done: some copy has it, and the copies that lack the change are accused by such a
 * copy. */
static void
check_recorded(const struct change_case *c)
{
    unsigned has = 0;

    for (unsigned i = 0; i < scene.count; i++)
        has += can_tell(c, i) && has_change_copy(c, i);
    if (!has)
        finding_add("reported as done, and no copy has the change");
    for (unsigned k = 0; k < scene.count; k++) {
        bool is_accused = false;

        for (unsigned i = 0; i < scene.count; i++)
            is_accused |= i != k && can_tell(c, i) && has_change_copy(c, i) && accuses(c, i, k);
        if (can_tell(c, k) && !has_change_copy(c, k) && !is_accused)
            finding_add("reported as done, but c%u lacks the change and is not accused", k);
    }
}

/* ---- healing --------------------------------------------------------------------------------- */

enum { ROUNDS_MAX = 6 };

static void
heal_all(void)
{
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    for (unsigned n = 0; n < ROUNDS_MAX && (copies_difference() || counters_left()); n++)
        scene_lookup_all();
    scene_run(5000);
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct variant {
    bool is_warm;    /* a change in the same folder has just been made, so locks are shared */
    bool tells_late; /* a child that goes down fails its calls before it sends the event */
};

static void
warm_up(void)
{
    new_number = 90;
    path_a = "/warm1";
    must(scene_call(FOP_mknod, fill_name, 0) == 0);
    new_number = 91;
    path_a = "/warm2";
    must(scene_call(FOP_mknod, fill_name, 0) == 0);
    path_a = "/f";
    must(scene_call(FOP_setxattr, fill_warm, 0) == 0);
}

static struct store before; /* child 0 before the change */

static bool
is_cut(void)
{
    return scene.is_cut;
}

/* Makes the change with these faults. Returns its result, after all holds have ended. */
static int
run_change(const struct shape *shape, const struct change_case *c, const struct variant *v,
           const struct fault *faults, unsigned fault_count)
{
    volume_make(shape);
    replicas_begin(shape->has_arbiter ? " option arbiter-count 1\n" : "");
    scene.tells_late = v->tells_late;
    scene_lookup_all();
    if (c->prepare)
        c->prepare();
    if (v->is_warm)
        warm_up();
    new_number = 50;
    before = scene.store[0];
    scene_arm(faults, fault_count);
    int ret = c->act();

    scene_run(5000);
    return ret;
}

static void
finish_run(const struct shape *shape, const struct change_case *c, int ret)
{
    if (ret >= 0 && !is_cut())
        check_recorded(c);
    if (!is_cut() && store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene.fault_count = 0;
    if (is_cut()) {
        scene_end();
        replicas_begin(shape->has_arbiter ? " option arbiter-count 1\n" : "");
    }
    heal_all();
    const char *differs = copies_difference(), *left = counters_left();

    if (differs)
        finding_add("after the heal %s (the change: %d)", differs, ret);
    else if (left)
        finding_add("after the heal %s", left);
    for (unsigned i = 0; i < scene.count && ret >= 0; i++) {
        if (can_tell(c, i) && !has_change_copy(c, i))
            finding_add("c%u has lost a change that was reported as done", i);
    }
    bool is_half = c->is_half && c->is_half(&scene.store[0]);
    const char *lost =
        differs || has_change_copy(c, 0) || is_half ? NULL : store_difference(&before, &scene.store[0]);

    if (lost)
        finding_add("the result is neither the old state nor the new: %s", lost);
    if (store_locks())
        finding_add("the heal leaves locks: %s", store_locks_text());
    scene_end();
}

static const char *const kind_names[] = {"refused", "unsent",     "unanswered",
                                         "late",    "mount dies", "mount dies after"};

static void
name_run(const struct shape *shape, const struct change_case *c, const struct variant *v,
         const struct fault *f, unsigned count)
{
    int at = snprintf(run_text, sizeof run_text, "%s, %s%s%s", shape->name, c->name,
                      v->is_warm ? ", warm" : "", v->tells_late ? ", late event" : "");

    for (unsigned i = 0; i < count; i++)
        at += snprintf(run_text + at, sizeof run_text - (size_t)at, ", c%u %s at call %u", f[i].child,
                       kind_names[f[i].kind], f[i].at);
}

/* Runs one of twelve, because all take minutes with a sanitizer. FAULTS_ALL in the environment: all. */
static bool
is_skipped(void)
{
    static unsigned turn;

    return turn++ % 12 && !getenv("FAULTS_ALL") && !getenv("FAULTS_RUN");
}

static void
run_with(const struct shape *shape, const struct change_case *c, const struct variant *v,
         const struct fault *f, unsigned count)
{
    const char *only = getenv("FAULTS_RUN"); /* the text of a run, to debug it */

    name_run(shape, c, v, f, count);
    if (only && strcmp(only, run_text) != 0)
        return;
    if (only)
        fprintf(stderr, "%s\n", run_text);
    int ret = run_change(shape, c, v, f, count);
    bool is_mild = count < 2 && !is_cut();

    if (ret < 0 && is_mild)
        finding_add("the change fails: %s", strerror(-ret));
    finish_run(shape, c, ret);
}

/* Counts the calls to each child without a fault. */
static void
count_calls(const struct shape *shape, const struct change_case *c, const struct variant *v, unsigned *calls)
{
    run_with(shape, c, v, NULL, 0);
    name_run(shape, c, v, NULL, 0);
    (void)run_change(shape, c, v, NULL, 0);
    memcpy(calls, scene.calls, sizeof scene.calls);
    scene_end();
}

static void
run_single_faults(const struct shape *shape, const struct change_case *c, const struct variant *v)
{
    unsigned calls[CHILDREN_MAX + 1];

    count_calls(shape, c, v, calls);
    for (unsigned i = 0; i < shape->count; i++) {
        for (unsigned at = 0; at < calls[i]; at++) {
            for (unsigned kind = 0; kind < FAULT_KINDS; kind++) {
                struct fault f = {.child = i, .at = at, .kind = (enum fault_kind)kind, .err = EIO};

                run_with(shape, c, v, &f, 1);
            }
        }
    }
}

START_TEST(one_fault_loses_no_change)
{
    static const struct variant variants[] = {{false, false}, {false, true}, {true, false}};
    const struct change_case *c = &cases[_i];

    findings = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        for (size_t v = 0; v < sizeof variants / sizeof variants[0]; v++)
            run_single_faults(&shapes[s], c, &variants[v]);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

/* A child fails, and the mount dies at one of the next calls; or a second child fails. */
static void
run_two_faults(const struct shape *shape, const struct change_case *c, const struct fault *first,
               unsigned calls)
{
    static const struct variant plain = {false, false};
    struct fault f[2] = {*first};

    for (unsigned at = 0; at < calls + 4; at++) {
        f[1] = (struct fault){.child = ANY_CHILD, .at = at, .kind = FAULT_CUT};
        if (!is_skipped())
            run_with(shape, c, &plain, f, 2);
    }
    for (unsigned k = 0; k < shape->count * shape->count; k++) {
        f[1] = (struct fault){
            .child = k % shape->count, .at = first->at + k / shape->count, .kind = FAULT_UNANSWERED};
        if (f[1].child != first->child && shape->count > 2 && !is_skipped())
            run_with(shape, c, &plain, f, 2);
    }
}

START_TEST(two_faults_lose_no_change)
{
    static const struct variant plain = {false, false};
    const struct change_case *c = &cases[_i];
    unsigned calls[CHILDREN_MAX + 1];

    findings = 0;
    for (size_t s = 0; s < sizeof shapes / sizeof shapes[0]; s++) {
        count_calls(&shapes[s], c, &plain, calls);
        for (unsigned i = 0; i < shapes[s].count; i++) {
            for (unsigned n = 0; n < 2 * calls[i]; n++) {
                struct fault f = {.child = i, .at = n / 2, .kind = n % 2 ? FAULT_UNSENT : FAULT_UNANSWERED};

                run_two_faults(&shapes[s], c, &f, calls[ANY_CHILD]);
            }
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", c->name, findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-faults");
    TCase *t = tcase_create("faults");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, one_fault_loses_no_change, 0, CASES);
    suite_add_tcase(s, t);
    t = tcase_create("two");
    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, two_faults_lose_no_change, 0, CASES);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
