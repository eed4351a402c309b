/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/replicate/test-replica-changes.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/replicate/test-replicas.h"

/* ---- the volume ------------------------------------------------------------------------------ */

const struct replica_shape replica_shapes[REPLICA_SHAPES] = {
    {"2 replicas", 2, false}, {"3 replicas", 3, false}, {"2 replicas and an arbiter", 3, true}};

void
replica_volume_make(const struct replica_shape *shape)
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

static struct loc
loc_of(const char *path)
{
    const char *name = strrchr(path, '/') + 1;
    char dir[64];

    snprintf(dir, sizeof dir, "%.*s", (int)(name - path), path);
    return (struct loc){.parent = scene_inode_of(dir), .name = name};
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
    stk->call.loc.inode = scene_inode_of(path_a);
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
    stk->call.loc.inode = scene_inode_of(path_a);
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
    stk->call.loc.inode = scene_inode_of(path_a);
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
    stk->call.loc.inode = scene_inode_of(path_a);
    stk->call.stbuf.mode = 0640;
    stk->call.stbuf.uid = 77;
    stk->call.valid = SETATTR_MODE | SETATTR_UID;
}

static void
fill_setxattr(struct call_stack *stk)
{
    stk->call.loc.inode = scene_inode_of(path_a);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.a", DICT_PTR, "value", 5) == 0);
}

static void
fill_warm(struct call_stack *stk)
{
    stk->call.loc.inode = scene_inode_of(path_a);
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.warm", DICT_PTR, "1", 1) == 0);
}

static void
fill_removexattr(struct call_stack *stk)
{
    stk->call.loc.inode = scene_inode_of(path_a);
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

/* As features/shard and cluster/distribute call: with the object behind the name. */
static void
fill_known_object(struct call_stack *stk)
{
    fill_name(stk);
    stk->call.loc.inode = scene_inode_of(path_a);
}

static int
act_rmdir_known(void)
{
    path_a = "/e";
    return scene_call(FOP_rmdir, fill_known_object, 0);
}

/* The mount has just written the file and set an xattr, and still has the locks of both changes. */
static void
change_h(void)
{
    open_file("/h", O_RDWR);
    must(act_write("TWO", 0) == 3);
    path_a = "/h";
    must(scene_call(FOP_setxattr, fill_warm, 0) == 0);
}

static int
act_unlink_known(void)
{
    path_a = "/h2";
    return scene_call(FOP_unlink, fill_known_object, 0);
}

/* The mount has found the folder behind the path under the name e, which it removes then. */
static void
look_up_e(const char *path)
{
    struct inode *root = inode_root(scene.graph->inodes);

    inode_unref(inode_link(scene.graph->inodes, root, "e", &store_find(&scene.store[0], path)->stat));
    inode_unref(root);
}

static void
look_up_right_folder(void)
{
    look_up_e("/e");
}

/* Another client has then moved that folder away, and made another one of that name. */
static void
look_up_former_folder(void)
{
    look_up_e("/full");
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

const struct replica_change replica_changes[REPLICA_CHANGES] = {
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
    {"unlink by the written file", change_h, act_unlink_known, lacks_h2, CHANGE_ENTRY, "/", NULL},
    {"rmdir by the folder", NULL, act_rmdir_known, lacks_e, CHANGE_ENTRY, "/", NULL},
    {"rmdir of a known name", look_up_right_folder, act_rmdir, lacks_e, CHANGE_ENTRY, "/", NULL},
    {"rmdir of a name that leads elsewhere", look_up_former_folder, act_rmdir, lacks_e, CHANGE_ENTRY, "/",
     NULL},
};

/* ---- checks ---------------------------------------------------------------------------------- */

bool
replica_has_change(const struct replica_change *c, unsigned i)
{
    return c->is_done(&scene.store[i]);
}

bool
replica_can_tell(const struct replica_change *c, unsigned i)
{
    return c->kind != CHANGE_DATA || !scene.store[i].is_arbiter;
}

static bool
accuses(const struct replica_change *c, unsigned by, unsigned whom)
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
check_recorded(const struct replica_change *c)
{
    unsigned has = 0;

    for (unsigned i = 0; i < scene.count; i++)
        has += replica_can_tell(c, i) && replica_has_change(c, i);
    if (!has)
        finding_add("reported as done, and no copy has the change");
    for (unsigned k = 0; k < scene.count; k++) {
        bool is_accused = false;

        for (unsigned i = 0; i < scene.count; i++)
            is_accused |= i != k && replica_can_tell(c, i) && replica_has_change(c, i) && accuses(c, i, k);
        if (replica_can_tell(c, k) && !replica_has_change(c, k) && !is_accused)
            finding_add("reported as done, but c%u lacks the change and is not accused", k);
    }
}

/* ---- healing --------------------------------------------------------------------------------- */

enum { ROUNDS_MAX = 6 };

void
replica_heal_all(void)
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

struct store replica_before;

static bool
is_cut(void)
{
    return scene.is_cut;
}

int
replica_change_run(const struct replica_shape *shape, const struct replica_change *c,
                   const struct replica_variant *v, const struct fault *faults, unsigned fault_count)
{
    replica_volume_make(shape);
    replicas_begin(shape->has_arbiter ? " option arbiter-count 1\n" : "");
    scene.tells_late = v->tells_late;
    scene_lookup_all();
    if (c->prepare)
        c->prepare();
    if (v->is_warm)
        warm_up();
    new_number = 50;
    replica_before = scene.store[0];
    scene_arm(faults, fault_count);
    if (v->before_act)
        v->before_act();
    int ret = c->act();

    scene_run(5000);
    return ret;
}

void
replica_change_finish(const struct replica_shape *shape, const struct replica_change *c, int ret)
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
    replica_heal_all();
    const char *differs = copies_difference(), *left = counters_left();

    if (differs)
        finding_add("after the heal %s (the change: %d)", differs, ret);
    else if (left)
        finding_add("after the heal %s", left);
    for (unsigned i = 0; i < scene.count && ret >= 0; i++) {
        if (replica_can_tell(c, i) && !replica_has_change(c, i))
            finding_add("c%u has lost a change that was reported as done", i);
    }
    bool is_half = c->is_half && c->is_half(&scene.store[0]);
    const char *lost =
        differs || replica_has_change(c, 0) || is_half
            ? NULL
            : store_difference(&replica_before, &scene.store[0]);

    if (lost)
        finding_add("the result is neither the old state nor the new: %s", lost);
    if (store_locks())
        finding_add("the heal leaves locks: %s", store_locks_text());
    scene_end();
}
