/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* States that other clients, dead mounts and full disks leave behind in a distributed volume: folders that
 * lack subvolumes or ranges, attributes that a change has left unequal, contradictory names looked up with a
 * fault, stale linkto files in a folder that is removed, layouts that changed under this mount, and full
 * subvolumes. Also events, options and the statedump. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children-internal.h"
#include "xlators/cluster/test-children.h"

enum { SUBVOLUMES = 3, FILE_A = 20, FILE_B = 21, FOLDER = 22, FRESH = 60 };
#define LAYOUT_KEY "trusted.glusterfs.dht"
#define MDS_KEY "trusted.glusterfs.dht.mds"
#define LINKTO_KEY "trusted.glusterfs.dht.linkto"

/* ---- calls ----------------------------------------------------------------------------------- */

static const char *path_a, *path_b;
static uint32_t caller_uid;
static enum call_hint_kind hint; /* of calls of names and folders */

static void
fill_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xbb, [15] = FRESH}};

    stk->caller.uid = caller_uid;
    stk->call.hint.kind = hint;
    stk->call.loc = loc_at(path_a);
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT : 0;
    stk->call.name2 = "target";
    if (path_b)
        stk->call.loc2 = loc_at(path_b);
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_object(struct call_stack *stk)
{
    stk->call.loc.inode = inode_at(path_a);
    stk->call.size = 4096;
    stk->call.hint.kind = hint;
}

static int
name_call(enum fop fop, const char *path)
{
    path_a = path;
    path_b = NULL;
    return scene_call(fop, fill_name, 0);
}

static int
rename_call(const char *from, const char *to)
{
    path_a = from;
    path_b = to;
    return scene_call(FOP_rename, fill_name, 0);
}

static int
object_call(enum fop fop, const char *path)
{
    path_a = path;
    return scene_call(fop, fill_object, 0);
}

static void
mount_begin(const char *options)
{
    scene_begin(&cluster_distribute_xlator, options);
    (void)object_call(FOP_lookup, "/");
}

static void
children_return(void)
{
    scene.fault_count = 0;
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
}

static void
linkto_make_at(unsigned i, const char *path, uint8_t number, unsigned target)
{
    const char name[] = {'c', (char)('0' + target), '\0'};
    struct stored_object *o = store_make(i, path, S_IFREG | S_ISVTX, number, NULL);

    must(store_set_xattr(o, LINKTO_KEY, name, sizeof name) == 0);
}

/* ---- folders --------------------------------------------------------------------------------- */

enum folder_state { ABSENT, NO_RANGE, OWN_RANGE, WHOLE_RANGE, ZERO_RANGE, OTHER_MODE, FOLDER_STATES };

static void
put_word(unsigned char *at, uint32_t word)
{
    for (int i = 0; i < 4; i++)
        at[i] = (unsigned char)(word >> (24 - 8 * i));
}

static void
put_range(struct stored_object *o, uint32_t start, uint32_t end)
{
    unsigned char bytes[16] = {0};

    put_word(bytes, 1);
    put_word(bytes + 8, start);
    put_word(bytes + 12, end);
    must(store_set_xattr(o, LAYOUT_KEY, bytes, sizeof bytes) == 0);
}

static void
folder_make(unsigned i, enum folder_state state)
{
    static const uint32_t starts[] = {0, 0x55555555, 0xaaaaaaaa};
    static const uint32_t ends[] = {0x55555554, 0xaaaaaaa9, 0xffffffff};
    uint32_t mode = S_IFDIR | (state == OTHER_MODE ? 0700 : 0755);

    if (state == ABSENT)
        return;
    struct stored_object *o = store_make(i, "/d", mode, FOLDER, NULL);

    if (state == OWN_RANGE || state == OTHER_MODE)
        put_range(o, starts[i], ends[i]);
    else if (state == WHOLE_RANGE)
        put_range(o, 0, UINT32_MAX);
    else if (state == ZERO_RANGE)
        put_range(o, 0, 0);
}

static uint32_t
word_at(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* Each hash has one subvolume, and the folder is the same everywhere. */
static void
check_folder(bool is_known)
{
    uint64_t sum = 0;
    unsigned has = 0;

    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/d");
        struct stored_xattr *x = o ? store_xattr(o, LAYOUT_KEY) : NULL;

        has += o != NULL;
        if (x && word_at(x->bytes + 12))
            sum += (uint64_t)word_at(x->bytes + 12) - word_at(x->bytes + 8) + 1;
        if (o && store_find(&scene.store[0], "/d") &&
            o->stat.mode != store_find(&scene.store[0], "/d")->stat.mode)
            finding_add("the folder has another mode on c%u", i);
    }
    if (is_known && (has != scene.count || sum != UINT64_C(1) << 32))
        finding_add("the folder is on %u subvolumes, with ranges of %llx hashes", has,
                    (unsigned long long)sum);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

static bool
folder_volume(unsigned n, bool *is_known)
{
    *is_known = false;
    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= FOLDER_STATES) {
        folder_make(i, (enum folder_state)(n % FOLDER_STATES));
        *is_known |= n % FOLDER_STATES != ABSENT;
    }
    return n == 0;
}

/* Looks at the folder until a mount has done all that it can, and checks the folder. */
static void
folder_finish(bool is_known)
{
    children_return();
    for (int n = 0; n < 3; n++)
        (void)name_call(FOP_lookup, "/d");
    check_folder(is_known);
    scene_end();
}

START_TEST(lookup_mends_every_folder)
{
    bool is_known;

    findings = 0;
    log_set_level(LOG_CRITICAL);
    for (unsigned n = 0; folder_volume(n, &is_known); n++) {
        snprintf(run_text, sizeof run_text, "folder states %u", n);
        mount_begin("");
        folder_finish(is_known);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_a_folder_survives_faults)
{
    bool is_known;

    findings = 0;
    for (unsigned n = 0; folder_volume(n, &is_known); n++) {
        for (unsigned k = 0; k < 9; k++) {
            unsigned m = n * 13 + k * 29;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 9,
                              .kind = (enum fault_kind)(m / 27 % FAULT_KINDS),
                              .err = m % 2 ? EIO : ENOENT};

            (void)folder_volume(n, &is_known);
            snprintf(run_text, sizeof run_text, "folder states %u, c%u fault %u errno %d at call %u", n,
                     f.child, f.kind, f.err, f.at);
            mount_begin("");
            scene_arm(&f, 1);
            (void)name_call(FOP_lookup, "/d");
            if (scene.is_cut) {
                scene.fault_count = 0;
                scene_end();
                mount_begin("");
            }
            folder_finish(is_known && f.err != ENOENT);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_a_folder_survives_lack_of_memory)
{
    bool is_known;

    findings = 0;
    scene_init_starving();
    for (unsigned n = 1; folder_volume(n, &is_known); n += 3) {
        for (unsigned at = 1 + n % 7; at < 200; at += 29) {
            (void)folder_volume(n, &is_known);
            snprintf(run_text, sizeof run_text, "folder states %u, without memory at allocation %u", n, at);
            mount_begin("");
            scene_starve(at);
            (void)name_call(FOP_lookup, "/d");
            scene_starve(0);
            folder_finish(is_known);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- attributes that a change has left unequal ----------------------------------------------- */

/* Sets the count of changes under way on the subvolume that has the folder's attributes. */
static void
attributes_volume(unsigned mds, int32_t count)
{
    unsigned char bytes[4];

    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    path_a = "/d";
    must(name_call(FOP_mkdir, "/d") == 0);
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/d");
        struct stored_xattr *x = store_xattr(o, MDS_KEY);

        if (x)
            *x = o->xattr[--o->xattr_count];
        put_word(bytes, (uint32_t)count);
        if (i == mds)
            must(store_set_xattr(o, MDS_KEY, bytes, sizeof bytes) == 0);
        (void)store_set_xattr(o, "user.a", i == mds ? "right" : "wrong", 5);
        if (i != mds)
            (void)store_set_xattr(o, "user.old", "old", 3);
    }
}

START_TEST(attributes_of_a_broken_change_are_mended)
{
    for (unsigned mds = 0; mds < SUBVOLUMES; mds++) {
        for (unsigned at = 0; at < 20; at++) {
            struct fault f = {.child = at % 3, .at = at / 3, .kind = FAULT_REFUSED, .err = EIO};

            attributes_volume(mds, -1);
            mount_begin("");
            scene_arm(&f, at < 18);
            (void)name_call(FOP_lookup, "/d");
            children_return();
            (void)name_call(FOP_lookup, "/d");
            scene_end();
            mount_begin("");
            (void)name_call(FOP_lookup, "/d");
            (void)name_call(FOP_lookup, "/d");
            for (unsigned i = 0; i < SUBVOLUMES; i++) {
                struct stored_object *o = store_find(&scene.store[i], "/d");

                must(memcmp(store_xattr(o, "user.a")->bytes, "right", 5) == 0);
            }
            must(!store_locks());
            scene_end();
        }
    }
}
END_TEST

/* ---- contradictory names, looked up with a fault --------------------------------------------- */

enum name_state {
    NOTHING,
    REAL_A,
    REAL_B,
    LINK_TO_0,
    LINK_TO_1,
    LINK_TO_2,
    LINK_ASTRAY,
    A_FOLDER,
    NAME_STATES
};

static void
name_volume(unsigned n)
{
    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    scene_end();
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= NAME_STATES) {
        enum name_state state = (enum name_state)(n % NAME_STATES);

        if (state == REAL_A || state == REAL_B)
            (void)store_make(i, "/n", S_IFREG | 0644, state == REAL_A ? FILE_A : FILE_B, "contents");
        else if (state == A_FOLDER)
            (void)store_make(i, "/n", S_IFDIR | 0755, FOLDER, NULL);
        else if (state != NOTHING)
            linkto_make_at(i, "/n", FILE_A, state == LINK_ASTRAY ? 7 : state - LINK_TO_0);
    }
}

/* No file and no folder is removed by a LOOKUP. */
static void
check_names_kept(unsigned n)
{
    for (unsigned i = 0; i < SUBVOLUMES; i++, n /= NAME_STATES) {
        struct stored_object *o = store_find(&scene.store[i], "/n");
        enum name_state state = (enum name_state)(n % NAME_STATES);
        bool is_real = state == REAL_A || state == REAL_B || state == A_FOLDER;

        if (is_real && (!o || (state == A_FOLDER) != S_ISDIR(o->stat.mode)))
            finding_add("LOOKUP has removed the object on c%u", i);
    }
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

static const char *const lookup_options[] = {"", " option lookup-unhashed off\n",
                                             " option lookup-unhashed auto\n",
                                             " option lookup-optimize off\n"};

static void
look_at_name(unsigned n, const struct fault *f, unsigned starve_at)
{
    name_volume(n);
    mount_begin(lookup_options[n % 4]);
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    (void)name_call(FOP_lookup, "/n");
    scene_starve(0);
    bool is_cut = scene.is_cut;

    if (!is_cut) {
        children_return();
        (void)name_call(FOP_lookup, "/n");
    }
    scene.fault_count = 0;
    scene_end();
    if (is_cut) {
        mount_begin("");
        (void)name_call(FOP_lookup, "/n");
        scene_end();
    }
    check_names_kept(n);
}

START_TEST(lookup_of_contradictions_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < NAME_STATES * NAME_STATES * NAME_STATES; n++) {
        for (unsigned k = 0; k < 5; k++) {
            unsigned m = n * 7 + k * 31;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 7,
                              .kind = (enum fault_kind)(m / 21 % FAULT_KINDS),
                              .err = m % 2 ? EIO : ESTALE};

            snprintf(run_text, sizeof run_text, "name states %u, c%u fault %u at call %u", n, f.child, f.kind,
                     f.at);
            look_at_name(n, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(lookup_of_contradictions_survives_lack_of_memory)
{
    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < NAME_STATES * NAME_STATES * NAME_STATES; n++) {
        for (unsigned at = 1 + n % 13; at < 90; at += 23) {
            snprintf(run_text, sizeof run_text, "name states %u, without memory at allocation %u", n, at);
            look_at_name(n, NULL, at);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a folder with linkto files is removed --------------------------------------------------- */

enum left { EMPTY, STALE_LINK, LINK_OF_FILE, MANY_LINKS, REAL_FILE, LEFTS };

static void
left_make(unsigned i, enum left left)
{
    char path[16];

    snprintf(path, sizeof path, "/e/l%u", i);
    if (left == STALE_LINK)
        linkto_make_at(i, path, (uint8_t)(30 + i), (i + 1) % SUBVOLUMES);
    else if (left == REAL_FILE)
        (void)store_make(i, path, S_IFREG | 0644, (uint8_t)(30 + i), "real");
    for (unsigned k = 0; k < 5 && left == MANY_LINKS; k++) {
        snprintf(path, sizeof path, "/e/m%u%u", i, k);
        linkto_make_at(i, path, (uint8_t)(33 + 5 * i + k), (i + 1) % SUBVOLUMES);
    }
    if (left == LINK_OF_FILE) { /* a file that another client has just made */
        linkto_make_at(i, path, (uint8_t)(50 + i), (i + 1) % SUBVOLUMES);
        (void)store_make((i + 1) % SUBVOLUMES, path, S_IFREG | 0644, (uint8_t)(50 + i), "fresh");
    }
}

static void
remove_folder(unsigned n, const struct fault *f, unsigned starve_at)
{
    bool has_file = false;

    scene_clear(SUBVOLUMES, false);
    mount_begin("");
    must(name_call(FOP_mkdir, "/e") == 0);
    for (unsigned i = 0, m = n; i < SUBVOLUMES; i++, m /= LEFTS) {
        left_make(i, (enum left)(m % LEFTS));
        has_file |= m % LEFTS == LINK_OF_FILE || m % LEFTS == REAL_FILE;
    }
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    int ret = name_call(FOP_rmdir, "/e");

    scene_starve(0);
    if (has_file && ret >= 0)
        finding_add("a folder with a file was removed");
    if (!has_file && !f && !starve_at && ret < 0)
        finding_add("an empty folder was not removed: %s", strerror(-ret));
    bool is_cut = scene.is_cut;

    scene_run(1000);
    if (store_locks() && !is_cut)
        finding_add("locks are left: %s", store_locks_text());
    if (!is_cut)
        children_return();
    scene.fault_count = 0;
    scene_end();
    mount_begin("");
    (void)name_call(FOP_lookup, "/e");
    ret = name_call(FOP_rmdir, "/e");
    if (has_file ? ret != -ENOTEMPTY : ret < 0 && ret != -ENOENT)
        finding_add("the second RMDIR: %s", ret < 0 ? strerror(-ret) : "success");
    scene_end();
}

START_TEST(a_folder_of_linkto_files_can_be_removed)
{
    findings = 0;
    for (unsigned n = 0; n < LEFTS * LEFTS * LEFTS; n++) {
        snprintf(run_text, sizeof run_text, "folder contents %u", n);
        remove_folder(n, NULL, 0);
        for (unsigned k = 0; k < 6; k++) {
            unsigned m = n * 11 + k * 17;
            struct fault f = {.child = m % SUBVOLUMES,
                              .at = m / 3 % 14,
                              .kind = (enum fault_kind)(m / 42 % FAULT_KINDS),
                              .err = EIO};

            snprintf(run_text, sizeof run_text, "folder contents %u, c%u fault %u at call %u", n, f.child,
                     f.kind, f.at);
            remove_folder(n, &f, 0);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_folder_of_linkto_files_is_removed_without_memory)
{
    findings = 0;
    scene_init_starving();
    for (unsigned n = 0; n < LEFTS * LEFTS * LEFTS; n++) {
        unsigned at = 1 + n * 7 % 330;

        snprintf(run_text, sizeof run_text, "folder contents %u, without memory at allocation %u", n, at);
        remove_folder(n, NULL, at);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- a folder that a heal of replicas has parked ----------------------------------------------- */

/* The other subvolumes have the folder under its name. The subvolume with the parked folder gets it back by
 * its own heal; a move from the hidden folder would meet the copies that a healer is about to change. */
START_TEST(a_parked_folder_is_not_moved)
{
    static const char hidden[] = "/.glusterfs-anonymous-inode-ba";
    char parked[64];

    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES; n++) {
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        must(name_call(FOP_mkdir, "/p") == 0);
        struct stored_object folder = *store_find(&scene.store[n], "/p");

        scene_end();
        store_drop_name(&scene.store[n], store_name_of(&scene.store[n], 0, "p"));
        for (unsigned i = 0; i < SUBVOLUMES; i++) {
            const struct stored_xattr *range =
                store_xattr(&scene.store[i].object[0], "trusted.glusterfs.dht");

            must(store_set_xattr(store_make(i, hidden, S_IFDIR | 0700, 40, NULL), range->key, range->bytes,
                                 range->len) == 0);
        }
        snprintf(parked, sizeof parked, "%s/p", hidden);
        store_make(n, parked, S_IFDIR | 0755, 41, NULL)->stat.gfid = folder.stat.gfid;
        mount_begin("");
        (void)name_call(FOP_lookup, "/p");
        scene_run(1000);
        if (!store_find(&scene.store[n], parked) || store_find(&scene.store[n], "/p"))
            finding_add("c%u: the parked folder was moved, or made twice", n);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- layouts that changed under the mount ---------------------------------------------------- */

/* A rebalance has given the whole root to subvolume `owner`. */
static void
change_layout(unsigned owner)
{
    for (unsigned i = 0; i < scene.count; i++)
        put_range(&scene.store[i].object[0], 0, i == owner ? UINT32_MAX : 0);
}

START_TEST(a_file_is_made_by_the_present_layout)
{
    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES * 30; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 2 % 6, .kind = FAULT_REFUSED, .err = EIO};
        unsigned owner = n / SUBVOLUMES % SUBVOLUMES;
        char path[8];

        snprintf(run_text, sizeof run_text, "run %u", n);
        snprintf(path, sizeof path, "/n%u", n % 5);
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        change_layout(owner);
        scene_arm(&f, n % 2);
        int ret = name_call(FOP_create, path);

        if (!(n % 2) && (ret < 0 || !store_find(&scene.store[owner], path)))
            finding_add("%s is not on c%u: %d", path, owner, ret);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_arm(NULL, 0);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- space ----------------------------------------------------------------------------------- */

static unsigned full_child;
static enum { FULL, FEW_INODES, BIG_BLOCKS, QUOTA, SIMPLE_QUOTA, ALL_ZERO, SPACES } space;

static void
answer_space(unsigned child, struct call_stack *stk, int *ret)
{
    struct statvfs *v = &stk->reply.statvfs;

    if (stk->call.fop != FOP_statfs || *ret < 0)
        return;
    if (space == FULL && child == full_child)
        v->f_bavail = v->f_bfree = 1;
    else if (space == FEW_INODES && child == full_child)
        v->f_ffree = 1;
    else if (space == BIG_BLOCKS && child == full_child)
        v->f_frsize = v->f_bsize = 1 << 20;
    else if (space == QUOTA)
        must(dict_set_int(reply_xdata(stk), DICT_KEY_QUOTA_DEEM_STATFS, 1) == 0);
    else if (space == SIMPLE_QUOTA)
        must(dict_set_text(reply_xdata(stk), "simple-quota", DICT_STR, "1", 2) == 0);
    else if (space == ALL_ZERO)
        *v = (struct statvfs){0};
    if (space == QUOTA || space == SIMPLE_QUOTA)
        v->f_bfree = v->f_bavail = 500 - 100 * child;
}

START_TEST(a_full_subvolume_gets_no_new_file)
{
    static const enum fop fops[] = {FOP_create, FOP_mknod, FOP_symlink};

    findings = 0;
    for (unsigned n = 0; n < SUBVOLUMES * 2 * 3 * 4; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 3 % 4, .kind = FAULT_REFUSED, .err = EIO};

        full_child = n % SUBVOLUMES;
        space = n / SUBVOLUMES % 2 ? FEW_INODES : FULL;
        caller_uid = n % 4 ? 1000 : 0;
        scene_clear(SUBVOLUMES, false);
        scene.lie = answer_space;
        mount_begin("");
        for (unsigned k = 0; k < 6; k++) {
            char path[8];

            snprintf(path, sizeof path, "/n%u", k);
            scene_arm(&f, k == 5 && n % 2);
            int ret = name_call(fops[n / 6 % 3], path);
            struct stored_object *o = store_find(&scene.store[full_child], path);

            if (ret >= 0 && o && !store_xattr(o, LINKTO_KEY))
                finding_add("%s was made on a full subvolume", path);
            if (ret < 0 && !(k == 5 && n % 2) && ret != -EEXIST)
                finding_add("%s was not made: %s", path, strerror(-ret));
            if (ret >= 0)
                must(name_call(FOP_lookup, path) == 0 && name_call(FOP_unlink, path) == 0);
        }
        scene.lie = NULL;
        caller_uid = 0;
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(statfs_sums_or_follows_quotas)
{
    for (unsigned n = 0; n < SPACES * 4; n++) {
        scene_clear(SUBVOLUMES, false);
        space = n % SPACES;
        full_child = 1;
        scene.lie = answer_space;
        mount_begin("");
        for (unsigned i = 0; i < n / SPACES && i < SUBVOLUMES; i++)
            scene_child_down(i);
        int ret = object_call(FOP_statfs, "/");

        must(ret == (n / SPACES >= SUBVOLUMES ? -ENOTCONN : 0));
        scene.lie = NULL;
        scene_end();
    }
}
END_TEST

/* ---- subvolumes that are lost ---------------------------------------------------------------- */

/* A name of a lost subvolume is missing, and the others are listed, unless the mount waits for its bricks. */
START_TEST(a_mount_that_waits_gets_the_loss)
{
    for (unsigned n = 0; n < 2 * SUBVOLUMES * 8; n++) {
        unsigned lost = n / 2 % SUBVOLUMES;
        char path[8];

        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        snprintf(path, sizeof path, "/n%u", n / 2 / SUBVOLUMES);
        must(name_call(FOP_create, path) >= 0);
        bool is_lost = store_find(&scene.store[lost], path);
        int missing = n % 2 ? -ENOTCONN : -ENOENT;

        scene_child_down(lost);
        hint = n % 2 ? HINT_WAITS : HINT_NONE;
        ck_assert_int_eq(name_call(FOP_lookup, path), is_lost ? missing : 0);
        ck_assert_int_eq(object_call(FOP_opendir, "/"), n % 2 ? -ENOTCONN : 0);
        ck_assert_int_eq(name_call(FOP_unlink, path), is_lost ? missing : 0);
        hint = HINT_NONE;
        scene_end();
    }
}
END_TEST

/* ---- subvolumes that leave ------------------------------------------------------------------- */

START_TEST(a_subvolume_that_leaves_gets_nothing_new)
{
    findings = 0;
    for (unsigned n = 0; n < 24; n++) {
        struct fault f = {.child = n % SUBVOLUMES, .at = n / 3 % 8, .kind = FAULT_REFUSED, .err = EIO};
        char path[8];

        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        must(scene_reconfigure(" option decommissioned-bricks c1\n") == 0);
        scene_arm(&f, n % 2);
        snprintf(path, sizeof path, "/n%u", n);
        int ret = name_call(n % 4 < 2 ? FOP_create : FOP_mknod, path);
        struct stored_object *o = store_find(&scene.store[1], path);

        if (ret >= 0 && o && !store_xattr(o, LINKTO_KEY))
            finding_add("%s was made on the subvolume that leaves", path);
        if (ret >= 0 && name_call(FOP_lookup, path) < 0)
            finding_add("%s is not found", path);
        (void)name_call(FOP_mkdir, "/new");
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        scene_arm(NULL, 0);
        scene_end();
    }
    /* no other subvolume is up */
    scene_clear(2, false);
    mount_begin(" option decommissioned-bricks c0,c1\n");
    (void)name_call(FOP_create, "/n");
    scene_end();
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* ---- events, options, the statedump ---------------------------------------------------------- */

static enum child_event told[16];
static unsigned told_count;

static void
note_event(struct graph *g, const struct layer_event *e)
{
    (void)g;
    if (e->kind == EVENT_CHILD && told_count < sizeof told / sizeof told[0])
        told[told_count++] = e->change;
}

START_TEST(events_tell_whether_any_subvolume_is_up)
{
    scene_clear(SUBVOLUMES, false);
    scene_begin_top(&cluster_distribute_xlator, "");
    scene.graph->watch = note_event;
    told_count = 0;
    scene_child_down(0);
    scene_child_down(1);
    must(told_count == 0);
    scene_child_down(2);
    must(told_count == 1 && told[0] == CHILD_DOWN);
    xlator_tell_parent(scene.child[0], CHILD_REFUSED);
    must(told_count == 2 && told[1] == CHILD_REFUSED);
    xlator_tell_parent(scene.child[1], CHILD_CONNECTING);
    xlator_tell_parent(scene.child[1], CHILD_SOME_DOWN);
    xlator_tell_parent(scene.child[1], CHILD_SOME_UP);
    scene_child_up(1);
    must(told[told_count - 1] == CHILD_UP);
    unsigned count = told_count;

    scene_child_up(2);
    scene_child_up(2); /* an event for the second time */
    must(told_count == count);
    scene_end();
}
END_TEST

START_TEST(a_wrong_option_is_named)
{
    static const struct {
        unsigned count;
        const char *options, *error;
    } cases[] = {
        {2, " option rsync-hash-regex (\n", "rsync-hash-regex"},
        {2, " option extra-hash-regex (\n", "extra-hash-regex"},
        {2, " option min-free-disk much\n", "min-free-disk"},
        {2, " option xattr-name other\n", "xattr-name"},
        {0, "", "0 subvolumes"},
        {2, " option rsync-hash-regex none\n option extra-hash-regex (.*)~\n", NULL},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene_clear(cases[i].count ? cases[i].count : 1, false);
        if (!cases[i].count)
            continue;
        const char *error = scene_refusal(&cluster_distribute_xlator, cases[i].options, false);

        if (!error != !cases[i].error || (error && !strstr(error, cases[i].error)))
            ck_abort_msg("%s: %s", cases[i].options, error ? error : "accepted");
    }
}
END_TEST

START_TEST(a_layer_without_memory_is_refused)
{
    bool has_starved = true;

    scene_init_starving();
    scene_clear(SUBVOLUMES, false);
    must(!scene_refusal(&cluster_distribute_xlator, "", false)); /* makes the pools */
    for (int64_t n = 1; has_starved; n++) {
        scene_starve(n);
        const char *error = scene_refusal(&cluster_distribute_xlator, "", false);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(error || !has_starved || n > 1);
    }
}
END_TEST

START_TEST(the_statedump_has_the_subvolumes)
{
    char *text = NULL;
    size_t len;

    scene_clear(SUBVOLUMES, false);
    scene_begin_top(&cluster_distribute_xlator, " option decommissioned-bricks c2\n");
    scene_child_down(1);
    struct dump d = {.file = open_memstream(&text, &len)};

    cluster_distribute_xlator.dump(scene.graph->top, &d);
    must(fclose(d.file) == 0);
    must(strstr(text, "subvol_cnt=3\n") && strstr(text, "subvolume_status[1]=0\n"));
    must(strstr(text, "subvolume_leaving[2]=1\n") && !strstr(text, "subvolume_leaving[0]"));
    free(text);
    scene_end();
}
END_TEST

/* A rename by a user: linkto files get the owner of the file. */
START_TEST(a_rename_by_a_user_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < 5 * SUBVOLUMES * 16; n++) {
        struct fault f = {.child = n / 5 % SUBVOLUMES,
                          .at = n / 5 / SUBVOLUMES,
                          .kind = (enum fault_kind)(n % 3),
                          .err = EIO};
        char to[8];

        snprintf(run_text, sizeof run_text, "run %u", n);
        snprintf(to, sizeof to, "/t%u", n % 5);
        scene_clear(SUBVOLUMES, false);
        mount_begin("");
        caller_uid = 1000;
        must(name_call(FOP_mknod, "/from") == 0);
        scene_arm(&f, 1);
        (void)rename_call("/from", to);
        children_return();
        int from = name_call(FOP_lookup, "/from"), moved = name_call(FOP_lookup, to);

        if (from < 0 && moved < 0)
            finding_add("the file is lost: %d, %d", from, moved);
        if (store_locks())
            finding_add("locks are left: %s", store_locks_text());
        caller_uid = 0;
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        lookup_mends_every_folder,
        lookup_of_a_folder_survives_faults,
        lookup_of_a_folder_survives_lack_of_memory,
        attributes_of_a_broken_change_are_mended,
        lookup_of_contradictions_survives_faults,
        lookup_of_contradictions_survives_lack_of_memory,
        a_folder_of_linkto_files_can_be_removed,
        a_folder_of_linkto_files_is_removed_without_memory,
        a_parked_folder_is_not_moved,
        a_file_is_made_by_the_present_layout,
        a_full_subvolume_gets_no_new_file,
        statfs_sums_or_follows_quotas,
        a_mount_that_waits_gets_the_loss,
        a_subvolume_that_leaves_gets_nothing_new,
        events_tell_whether_any_subvolume_is_up,
        a_wrong_option_is_named,
        a_layer_without_memory_is_refused,
        the_statedump_has_the_subvolumes,
        a_rename_by_a_user_survives_faults,
    };
    Suite *s = suite_create("distribute-states");
    TCase *t = tcase_create("states");

    tcase_set_timeout(t, 60);
    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
