/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every operation of a distributed volume on 1 to 4 subvolumes: on files that are in their place, behind a
 * linkto file, being moved, or moved since this mount has seen the file; with options that place files
 * elsewhere; with a fault at each call, with each allocation failing, and with bricks that lie. After each
 * run:
 *
 *      the caller has an answer, no lock is left, and no object leaks
 *      a new mount finds every file that the operation did not remove, with its contents
 *
 * OPERATION_RUN=TEXT in the environment makes only the run of that text. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"
#include "xlators/cluster/test-lies.h"

/* ---- the volume ------------------------------------------------------------------------------ */

enum { FILE_T = 20, FOLDER_D = 21, LINK_L = 22, FILE_U = 23, EMPTY_E = 24, FILE_X = 25 };
enum state { IN_PLACE, LINKED, MOVED, GONE, COPYING, STATES };
static const char *const state_names[STATES] = {"in place", "linked", "moved", "gone", "copying"};

static const char *const option_sets[] = {
    "",
    " option min-free-disk 60%\n option weighted-rebalance off\n",
    " option lookup-unhashed off\n option lookup-optimize off\n option decommissioned-bricks c1\n",
    " option lookup-unhashed auto\n option directory-layout-spread 1\n option unlink-takes-migrate-lock on\n",
    " option randomize-hash-range-by-gfid on\n option unlink-takes-migrate-lock off\n"
    " option min-free-disk 1MB\n",
};
enum { OPTION_SETS = sizeof option_sets / sizeof option_sets[0] };

static const char *path_a, *path_b;
static uint8_t new_number;

static void
fill_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xbb, [15] = new_number}};

    stk->call.loc = loc_at(path_a);
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    stk->call.name2 = "target";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_object(struct call_stack *stk)
{
    if (fop_info[stk->call.fop].traits & FOP_BY_FD)
        stk->call.fd = fd_ref(scene.fd);
    else
        stk->call.loc.inode = inode_at(path_a);
    stk->call.size = 4096;
}

static int
name_call(enum fop fop, const char *path, uint8_t number)
{
    path_a = path;
    new_number = number;
    return scene_call(fop, fill_name, 0);
}

static int
object_call(enum fop fop, const char *path)
{
    path_a = path;
    return scene_call(fop, fill_object, 0);
}

static void
look_at_root(void)
{
    (void)object_call(FOP_lookup, "/");
}

/* The subvolume that has the real file, or -1. */
static int
place_of(const char *path)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);

        if (o && !store_xattr(o, "trusted.glusterfs.dht.linkto"))
            return (int)i;
    }
    return -1;
}

static void
put_contents(const char *path, const char *contents)
{
    struct stored_object *o = store_find(&scene.store[place_of(path)], path);

    o->stat.size = strlen(contents);
    memcpy(o->data, contents, strlen(contents));
}

static void
name_other_place(struct stored_object *o, unsigned other)
{
    const char name[] = {'c', (char)('0' + other), '\0'};

    must(store_set_xattr(o, "trusted.glusterfs.dht.linkto", name, sizeof name) == 0);
}

/* Moves /t to another subvolume, as a rebalance does, up to this state. */
static void
move_file(enum state state)
{
    unsigned from = (unsigned)place_of("/t"), other = (from + 1) % scene.count;
    struct stored_object *o = store_find(&scene.store[from], "/t");

    if (store_find(&scene.store[other], "/t") || scene.count == 1)
        return;
    struct stored_object *copy = store_make(other, "/t", S_IFREG | 0644, FILE_T, "contents of t");

    switch (state) {
    case LINKED:
    case MOVED:
        o->stat.mode = S_IFREG | S_ISVTX;
        o->stat.size = 0;
        name_other_place(o, other);
        break;
    case GONE:
        for (unsigned n = 0; n < STORED_NAMES_MAX; n++) {
            struct stored_name *name = &scene.store[from].name[n];

            if (name->is_used && strcmp(name->name, "t") == 0)
                name->is_used = false;
        }
        o->stat.nlink = 0;
        o->stat.mode = 0;
        break;
    case COPYING:
        o->stat.mode |= S_ISVTX | S_ISGID;
        name_other_place(o, other);
        copy->stat.mode = S_IFREG | S_ISVTX;
        name_other_place(copy, from);
        break;
    case IN_PLACE:
    case STATES:
        break;
    }
}

static void
volume_make(unsigned count)
{
    scene_clear(count, false);
    scene_begin(&cluster_distribute_xlator, "");
    look_at_root();
    must(name_call(FOP_mkdir, "/d", FOLDER_D) == 0);
    must(name_call(FOP_mkdir, "/e", EMPTY_E) == 0);
    must(name_call(FOP_mknod, "/t", FILE_T) == 0);
    must(name_call(FOP_mknod, "/u", FILE_U) == 0);
    must(name_call(FOP_mknod, "/d/x", FILE_X) == 0);
    must(name_call(FOP_symlink, "/l", LINK_L) == 0);
    put_contents("/t", "contents of t");
    put_contents("/u", "u");
    must(store_set_xattr(store_find(&scene.store[place_of("/t")], "/t"), "user.a", "value", 5) == 0);
    for (unsigned i = 0; i < count; i++)
        (void)store_set_xattr(store_find(&scene.store[i], "/d"), "user.a", "value", 5);
    scene_end();
}

/* ---- the operations -------------------------------------------------------------------------- */

static const char *text_argument;
static uint32_t cmd_argument, type_argument;

static void
fill_arguments(struct call_stack *stk)
{
    static const uint8_t owner[8] = {7};

    fill_object(stk);
    stk->call.name = text_argument;
    stk->call.has_name = text_argument != NULL;
    stk->call.volume = "above";
    stk->call.cmd = cmd_argument;
    stk->call.type = type_argument;
    stk->call.flock = (struct fop_flock){.type = type_argument, .len = 4};
    stk->caller.lk_owner = (struct lk_owner){.len = sizeof owner, .bytes = owner};
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
    if (stk->call.fop == FOP_writev) {
        stk->call.payload[0] = (struct iovec){(char *)"CONT", 4};
        stk->call.payload_count = 1;
        stk->call.payload_bytes = 4;
    }
    if (stk->call.fop == FOP_setxattr || stk->call.fop == FOP_fsetxattr || stk->call.fop == FOP_xattrop ||
        stk->call.fop == FOP_fxattrop) {
        stk->call.dict = dict_new(&stk->arena);
        const char *key = text_argument ? text_argument : "user.b";

        must(dict_set_text(stk->call.dict, key, DICT_PTR, "\0\0\0\1", 4) == 0);
    }
    if (stk->call.fop == FOP_open)
        stk->call.flags = O_RDWR;
    if (stk->call.fop == FOP_truncate || stk->call.fop == FOP_ftruncate)
        stk->call.offset = 13;
}

static int
argument_call(enum fop fop, const char *path, const char *text)
{
    path_a = path;
    text_argument = text;
    return scene_call(fop, fill_arguments, 0);
}

static int
lock_call(enum fop fop, const char *path)
{
    bool is_entry = fop == FOP_entrylk;
    int ret;

    cmd_argument = is_entry ? 2 : 1;
    type_argument = FLOCK_WRITE;
    ret = argument_call(fop, path, "n");
    if (ret >= 0) {
        cmd_argument = 1;
        type_argument = is_entry ? FLOCK_WRITE : FLOCK_UNLOCK;
        (void)argument_call(fop, path, "n");
    }
    cmd_argument = type_argument = 0;
    return ret;
}

static void
fill_link(struct call_stack *stk)
{
    stk->call.loc.inode = inode_at(path_a);
    stk->call.loc2 = loc_at(path_b);
}

static void
fill_rename(struct call_stack *stk)
{
    stk->call.loc = loc_at(path_a);
    stk->call.loc2 = loc_at(path_b);
}

static int
pair_call(enum fop fop, const char *a, const char *b)
{
    path_a = a;
    path_b = b;
    return scene_call(fop, fop == FOP_link ? fill_link : fill_rename, 0);
}

static void
fill_list(struct call_stack *stk)
{
    fill_object(stk);
    stk->call.offset = scene.next_offset;
}

static int
list_all(enum fop fop)
{
    int ret;

    scene.next_offset = 0;
    do
        ret = scene_call(fop, fill_list, 0);
    while (ret > 0);
    return ret;
}

static const struct operation {
    const char *name;
    enum fop fop;
    const char *path, *text; /* text: an xattr's name, or the second path */
    const char *opened;      /* NULL: no fd is needed */
    uint8_t removes;         /* number of the file that may be gone afterwards; 0: none */
} operations[] = {
    {"stat", FOP_stat, "/t", NULL, NULL, 0},
    {"stat of a folder", FOP_stat, "/d", NULL, NULL, 0},
    {"fstat", FOP_fstat, "/t", NULL, "/t", 0},
    {"readv", FOP_readv, "/t", NULL, "/t", 0},
    {"writev", FOP_writev, "/t", NULL, "/t", FILE_T},
    {"truncate", FOP_truncate, "/t", NULL, NULL, 0},
    {"ftruncate", FOP_ftruncate, "/t", NULL, "/t", 0},
    {"open", FOP_open, "/t", NULL, NULL, 0},
    {"fsync", FOP_fsync, "/t", NULL, "/t", 0},
    {"flush", FOP_flush, "/t", NULL, "/t", 0},
    {"fallocate", FOP_fallocate, "/t", NULL, "/t", 0},
    {"seek", FOP_seek, "/t", NULL, "/t", 0},
    {"lk", FOP_lk, "/t", NULL, "/t", 0},
    {"access", FOP_access, "/t", NULL, NULL, 0},
    {"access of a folder", FOP_access, "/d", NULL, NULL, 0},
    {"setattr", FOP_setattr, "/t", NULL, NULL, 0},
    {"fsetattr", FOP_fsetattr, "/t", NULL, "/t", 0},
    {"setattr of a folder", FOP_setattr, "/d", NULL, NULL, 0},
    {"setattr of the root", FOP_setattr, "/", NULL, NULL, 0},
    {"setxattr", FOP_setxattr, "/t", "user.b", NULL, 0},
    {"fsetxattr", FOP_fsetxattr, "/t", "user.b", "/t", 0},
    {"setxattr of a folder", FOP_setxattr, "/d", "user.b", NULL, 0},
    {"setxattr of the root", FOP_setxattr, "/", "user.b", NULL, 0},
    {"trusted setxattr of a folder", FOP_setxattr, "/d", "trusted.mine", NULL, 0},
    {"setxattr of the layout", FOP_setxattr, "/d", "distribute.fix.layout", NULL, 0},
    {"xattrop of a folder", FOP_xattrop, "/d", "trusted.mine", NULL, 0},
    {"xattrop", FOP_xattrop, "/t", "trusted.mine", NULL, 0},
    {"getxattr", FOP_getxattr, "/t", "user.a", NULL, 0},
    {"getxattr of all", FOP_getxattr, "/t", NULL, NULL, 0},
    {"getxattr of a folder", FOP_getxattr, "/d", "user.a", NULL, 0},
    {"getxattr of a missing xattr of a folder", FOP_getxattr, "/d", "user.none", NULL, 0},
    {"getxattr of a folder's layout", FOP_getxattr, "/d", "trusted.glusterfs.dht", NULL, 0},
    {"getxattr of all of a folder", FOP_getxattr, "/d", NULL, NULL, 0},
    {"getxattr of the place", FOP_getxattr, "/t", "trusted.glusterfs.pathinfo", NULL, 0},
    {"getxattr of a folder's places", FOP_getxattr, "/d", "trusted.glusterfs.pathinfo", NULL, 0},
    {"getxattr of a folder's path", FOP_getxattr, "/d", "glusterfs.ancestry.path", NULL, 0},
    {"fgetxattr", FOP_fgetxattr, "/t", "user.a", "/t", 0},
    {"removexattr", FOP_removexattr, "/t", "user.a", NULL, 0},
    {"removexattr of a folder", FOP_removexattr, "/d", "user.a", NULL, 0},
    {"readlink", FOP_readlink, "/l", NULL, NULL, 0},
    {"statfs", FOP_statfs, "/", NULL, NULL, 0},
    {"statfs of a folder", FOP_statfs, "/d", NULL, NULL, 0},
    {"opendir", FOP_opendir, "/d", NULL, NULL, 0},
    {"readdir", FOP_readdir, "/", NULL, "/", 0},
    {"readdirp", FOP_readdirp, "/", NULL, "/", 0},
    {"fsyncdir", FOP_fsyncdir, "/d", NULL, "/d", 0},
    {"inodelk", FOP_inodelk, "/t", NULL, NULL, 0},
    {"inodelk of a folder", FOP_inodelk, "/d", NULL, NULL, 0},
    {"entrylk", FOP_entrylk, "/d", NULL, NULL, 0},
    {"lookup", FOP_lookup, "/t", "name", NULL, 0},
    {"lookup by gfid", FOP_lookup, "/t", NULL, NULL, 0},
    {"lookup of a folder by gfid", FOP_lookup, "/d", NULL, NULL, 0},
    {"lookup of a missing name", FOP_lookup, "/none", "name", NULL, 0},
    {"create", FOP_create, "/n0", "name", NULL, 0},
    {"create of another name", FOP_create, "/n1", "name", NULL, 0},
    {"create in a folder", FOP_create, "/d/n2", "name", NULL, 0},
    {"create of a present name", FOP_create, "/t", "name", NULL, 0},
    {"mknod", FOP_mknod, "/n3", "name", NULL, 0},
    {"symlink", FOP_symlink, "/n4", "name", NULL, 0},
    {"mkdir", FOP_mkdir, "/n5", "name", NULL, 0},
    {"mkdir of a present name", FOP_mkdir, "/d", "name", NULL, 0},
    {"mkdir in a folder", FOP_mkdir, "/d/n6", "name", NULL, 0},
    {"unlink", FOP_unlink, "/t", "name", NULL, FILE_T},
    {"unlink of a missing name", FOP_unlink, "/none", "name", NULL, 0},
    {"rmdir", FOP_rmdir, "/e", "name", NULL, EMPTY_E},
    {"rmdir of a full folder", FOP_rmdir, "/d", "name", NULL, 0},
    {"link", FOP_link, "/t", "/n7", NULL, 0},
    {"link to a present name", FOP_link, "/t", "/u", NULL, 0},
    {"rename", FOP_rename, "/t", "/n8", NULL, 0},
    {"rename to another name", FOP_rename, "/t", "/n9", NULL, 0},
    {"rename into a folder", FOP_rename, "/t", "/d/n10", NULL, 0},
    {"rename over a file", FOP_rename, "/t", "/u", NULL, FILE_U},
    {"rename over the moved file", FOP_rename, "/u", "/t", NULL, FILE_T},
    {"rename of a folder", FOP_rename, "/d", "/n11", NULL, 0},
    {"rename of a folder over a folder", FOP_rename, "/d", "/e", NULL, EMPTY_E},
    {"rename of a missing name", FOP_rename, "/none", "/n12", NULL, 0},
    {"rchecksum", FOP_rchecksum, "/t", NULL, "/t", 0},
    {"ipc", FOP_ipc, "/", NULL, NULL, 0},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

static int
act(const struct operation *o)
{
    if (o->fop == FOP_readdir || o->fop == FOP_readdirp)
        return list_all(o->fop);
    if (o->fop == FOP_rename || o->fop == FOP_link)
        return pair_call(o->fop, o->path, o->text);
    if (o->fop == FOP_inodelk || o->fop == FOP_entrylk)
        return lock_call(o->fop, o->path);
    if (o->text && strcmp(o->text, "name") == 0)
        return name_call(o->fop, o->path, 60);
    return argument_call(o->fop, o->path, o->text);
}

/* ---- runs ------------------------------------------------------------------------------------ */

struct run {
    const struct operation *o;
    unsigned count;
    enum state state;
    size_t options;
    bool is_fresh; /* the mount has looked at the root only */
};

static struct run
run_of(const struct operation *o, unsigned n)
{
    return (struct run){.o = o,
                        .count = 1 + n % 4,
                        .state = (enum state)(n / 4 % STATES),
                        .options = n / 4 / STATES % OPTION_SETS,
                        .is_fresh = n / 4 / STATES / OPTION_SETS % 2};
}
enum { RUNS = 4 * STATES * OPTION_SETS * 2 };

static bool
run_is_left_out(const struct run *r, const char *what)
{
    const char *only = getenv("OPERATION_RUN");

    snprintf(run_text, sizeof run_text, "%s, %u subvolumes, %s, options %zu%s%s", r->o->name, r->count,
             state_names[r->state], r->options, r->is_fresh ? ", fresh" : "", what);
    if (r->options == 2 && r->count < 3)
        return true; /* c1 leaves the volume */
    return only && strcmp(only, run_text) != 0;
}

static void
run_begin(const struct run *r)
{
    volume_make(r->count);
    log_set_level(LOG_CRITICAL); /* a rename that a fault has left half done is logged as an error */
    if (r->state == LINKED)
        move_file(r->state);
    scene_begin(&cluster_distribute_xlator, option_sets[r->options]);
    look_at_root();
    if (!r->is_fresh)
        scene_lookup_all();
    if (r->o->opened) {
        bool is_dir = strcmp(r->o->opened, "/t") != 0;

        (void)argument_call(is_dir ? FOP_opendir : FOP_open, r->o->opened, NULL);
    }
    if (r->state != LINKED && r->state != IN_PLACE)
        move_file(r->state);
}

static bool
can_run(const struct run *r)
{
    return !r->o->opened || scene.fd;
}

static bool
has_real_file(uint8_t number, const char *contents)
{
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 1; n < STORED_OBJECTS_MAX; n++) {
            const struct stored_object *o = &scene.store[i].object[n];

            if (S_ISREG(o->stat.mode) && o->stat.nlink && o->stat.gfid.b[15] == number &&
                o->stat.size == strlen(contents) && memcmp(o->data, contents, strlen(contents)) == 0)
                return true;
        }
    }
    return false;
}

static void
run_end(const struct run *r, int ret)
{
    bool is_cut = scene.is_cut;

    scene_run(5000);
    if (store_locks() && !is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene.fault_count = 0;
    scene_end();
    scene_begin(&cluster_distribute_xlator, "");
    look_at_root();
    scene_lookup_all();
    if (store_locks())
        finding_add("LOOKUP leaves locks: %s", store_locks_text());
    if (r->o->removes != FILE_T && !has_real_file(FILE_T, "contents of t"))
        finding_add("the contents of t are lost (the operation: %d)", ret);
    if (r->o->removes != FILE_U && !has_real_file(FILE_U, "u"))
        finding_add("the contents of u are lost (the operation: %d)", ret);
    scene_end();
}

START_TEST(an_operation_has_an_answer)
{
    findings = 0;
    for (unsigned n = (unsigned)_i % 3; n < RUNS; n += 3) {
        struct run r = run_of(&operations[_i], n);

        if (run_is_left_out(&r, ""))
            continue;
        run_begin(&r);
        int ret = can_run(&r) ? act(r.o) : -EBADF;

        run_end(&r, ret);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", operations[_i].name, findings);
}
END_TEST

START_TEST(an_operation_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < 4 * 12 * FAULT_KINDS * 5; n += 3) {
        struct run r = run_of(&operations[_i], n * 7 + n / 31);
        struct fault f = {
            .child = n % 4, .at = n / 4 % 12, .kind = (enum fault_kind)(n / 48 % FAULT_KINDS), .err = EIO};
        char what[64];

        f.err = n % 5 == 0 ? ENOENT : n % 5 == 1 ? ESTALE : EIO;
        snprintf(what, sizeof what, ", c%u fault %u errno %d at call %u", f.child, f.kind, f.err, f.at);
        if (run_is_left_out(&r, what) || f.child >= r.count)
            continue;
        run_begin(&r);
        scene_arm(&f, 1);
        int ret = can_run(&r) ? act(r.o) : -EBADF;

        run_end(&r, ret);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", operations[_i].name, findings);
}
END_TEST

START_TEST(an_operation_without_subvolumes_has_an_answer)
{
    findings = 0;
    for (unsigned n = 0; n < 16 * 2; n++) {
        struct run r = run_of(&operations[_i], 3 + 4 * (n / 16) * STATES * OPTION_SETS);
        char what[64];

        snprintf(what, sizeof what, ", subvolumes %x down", n % 16);
        if (run_is_left_out(&r, what))
            continue;
        run_begin(&r);
        for (unsigned i = 0; i < r.count; i++) {
            if (n >> i & 1)
                scene_child_down(i);
        }
        int ret = can_run(&r) ? act(r.o) : -EBADF;

        if (n % 16 == 15 && ret >= 0 && r.o->fop != FOP_flush && r.o->fop != FOP_fsyncdir)
            finding_add("succeeds without subvolumes");
        run_end(&r, ret);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", operations[_i].name, findings);
}
END_TEST

START_TEST(an_operation_without_memory_loses_nothing)
{
    bool has_starved = true;

    findings = 0;
    scene_init_starving();
    for (int64_t at = 1; has_starved || at < 40; at++) {
        struct run r = run_of(&operations[_i], (unsigned)at * 7 + 2);
        char what[64];

        snprintf(what, sizeof what, ", without memory at allocation %d", (int)at);
        if (run_is_left_out(&r, what))
            continue;
        run_begin(&r);
        scene_starve(at);
        int ret = can_run(&r) ? act(r.o) : -EBADF;

        has_starved = scene_has_starved();
        scene_starve(0);
        run_end(&r, ret);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", operations[_i].name, findings);
}
END_TEST

START_TEST(an_operation_of_which_a_brick_lies_ends)
{
    findings = 0;
    for (unsigned n = 0; n < 3 * 5 * LIES; n++) {
        struct run r = run_of(&operations[_i], 2 + 4 * (n * 11 + n / 17));
        char what[64];
        int ret;

        snprintf(what, sizeof what, ", c%u tells %s at call %u", n % 3, lie_names[n / 15], n / 3 % 5);
        if (run_is_left_out(&r, what))
            continue;
        run_begin(&r);
        lie_begin(n % 3, n / 3 % 5, n % 2 ? 100 : 0, (enum lie)(n / 15));
        ret = can_run(&r) ? act(r.o) : -EBADF;
        (void)lie_end();
        (void)ret;
        scene_run(5000);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
    }
    ck_assert_msg(findings == 0, "%s: %u findings", operations[_i].name, findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("distribute-all");
    TCase *t = tcase_create("all");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_operation_has_an_answer, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_survives_faults, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_without_subvolumes_has_an_answer, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_without_memory_loses_nothing, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_of_which_a_brick_lies_ends, 0, OPERATIONS);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
