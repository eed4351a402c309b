/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The versions that tell children with the last change from children that are behind: after a second change
 * with other children away, with exactly K good children, of objects that are being removed, and of
 * directories. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "log/log.h"
#include "xlators/cluster/disperse/test-disperse-file.h"
#include "xlators/cluster/test-children-internal.h"

/* ---- a second change, with other children away ----------------------------------------------- */

static int
change_all_bytes(struct contents *after)
{
    return change_bytes(after, 0, FILE_BYTES, 'z');
}

/* From here on, no child is healed. Reads give the bytes of the change, or EIO. */
static void
check_no_old_bytes(const struct contents *after)
{
    for (unsigned down = 0; down <= CHILDREN; down++) {
        if (down < CHILDREN)
            scene_child_down(down);
        int ret = scene_call(FOP_readv, fill_read, 0);

        if (ret >= 0 && !reads(after))
            finding_add("without c%u the file has other bytes than written", down);
        if (down < CHILDREN)
            scene_child_up(down);
        scene_run(0);
    }
}

/* A child misses a change and comes back stale, then a good child goes away: no K children are good. A change
 * is refused, and raises no counter of the stale child. */
START_TEST(a_change_without_enough_good_children_raises_no_version)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * CHILDREN; pair++) {
        unsigned stale = pair / CHILDREN, away = pair % CHILDREN;
        struct contents after;

        if (stale == away)
            continue;
        snprintf(run_text, sizeof run_text, "c%u stale, c%u away", stale, away);
        file_make(false);
        after = before;
        scene_child_down(stale);
        ck_assert(change_stripe(&after) >= 0);
        scene_run(2000);
        scene_child_up(stale);
        scene_child_down(away);
        scene_run(2000);
        struct stored_object *o = store_find(&scene.store[stale], "/f");
        struct stored_xattr old = *store_xattr(o, "trusted.ec.version");
        struct contents refused = after;
        int ret = _i ? change_mode(&refused) : change_part(&refused);
        if (ret != -EIO)
            finding_add("a change of one good child and a stale one gives %d", ret);
        scene_run(2000);
        if (memcmp(old.bytes, store_xattr(o, "trusted.ec.version")->bytes, old.len) != 0)
            finding_add("the stale child's version has risen");
        scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
        scene_run(5000);
        scene_end();
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static void
remove_name_on(unsigned child)
{
    struct stored_name *n = store_name_of(&scene.store[child], 0, "f");

    if (!n)
        return;
    scene.store[child].object[n->object].is_open = true;
    store_drop_name(&scene.store[child], n);
}

static void
remove_name_later(unsigned child, struct call_stack *stk, int *ret)
{
    (void)ret;
    if (child == 2 && stk->call.fop == FOP_fxattrop)
        remove_name_on(child);
}

/* A client has died in a RENAME of another file over the open file: child 0 keeps the file only for the fd.
 * 0: child 1 is down; 1: all children are up; 2: a living client removes the name on child after child. */
START_TEST(a_change_needs_enough_children_with_a_name)
{
    struct contents after;

    file_make(false);
    after = before;
    remove_name_on(0);
    if (_i == 2) {
        remove_name_on(1);
        scene.lie = remove_name_later;
    }
    if (!_i)
        scene_child_down(1);
    scene_run(0);
    at = 900;
    bytes = 300;
    fill_byte = 'b';
    contents_write(&after, at, fill_byte, bytes);
    ck_assert_int_eq(scene_call(FOP_writev, fill_payload, 2000), _i ? 300 : -EIO);
    ck_assert_int_eq(scene_call(FOP_fsetattr, fill_mode, 2000), _i ? 0 : -EIO);
    at = 0;
    bytes = FILE_BYTES;
    ck_assert_int_eq(scene_call(FOP_readv, fill_range, 0), FILE_BYTES);
    ck_assert(reads(_i ? &after : &before));
    scene_run(5000);
    scene.lie = NULL;
    scene_end();
}
END_TEST

/* A mount dies during a change that child `lost` misses; then another mount changes all bytes, while child
 * `away` (CHILDREN: none) is away. Returns false: the mount did not die. */
static bool
run_second_change(unsigned lost, unsigned away, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at %u, then c%u down", lost, dies_at, away);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    scene_arm(&f, 1);
    (void)change_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    must(scene_call(FOP_open, fill_file, 0) == 0 || scene_call(FOP_open, fill_file, 0) == -EIO);
    if (away < CHILDREN)
        scene_child_down(away);
    scene_run(2000);
    after = before;
    if (scene.fd && change_all_bytes(&after) >= 0) {
        scene_run(2000);
        if (away < CHILDREN)
            scene_child_up(away);
        scene_run(2000);
        check_no_old_bytes(&after);
    }
    scene_run(5000);
    scene_end();
    return has_died;
}

START_TEST(a_version_of_a_dead_mount_is_met_by_no_later_change)
{
    findings = 0;
    for (unsigned pair = 0; pair < CHILDREN * (CHILDREN + 1); pair++) {
        for (unsigned n = 0; run_second_change(pair / (CHILDREN + 1), pair % (CHILDREN + 1), n); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* Another client removes the file while this one keeps its lock: the children learn that one after another.
 * An error of the volume would lose the write; a layer that keeps blocks looks for a new file instead. */
START_TEST(a_change_of_a_file_that_is_being_removed_is_stale)
{
    static const enum fop fops[] = {FOP_writev, FOP_readv, FOP_writev};

    for (unsigned gone = 2; gone <= CHILDREN; gone++) {
        for (unsigned n = 0; n < sizeof fops / sizeof fops[0]; n++) {
            file_make(false);
            if (n < 2) /* the lock is held, and the counters are known */
                must(scene_call(FOP_readv, fill_read, 0) >= 0);
            for (unsigned i = 0; i < gone; i++)
                store_find(&scene.store[i], "/f")->stat.nlink = 0;
            int ret = fops[n] == FOP_readv ? scene_call(FOP_readv, fill_read, 0) : write_without_fd();
            ck_assert_msg(ret == -ESTALE, "%u children without the file, case %u: %d", gone, n, ret);
            scene_run(5000);
            scene_end();
        }
    }
}
END_TEST

/* ---- exactly K good children ------------------------------------------------------------------ */

/* Changes half a stripe: fragments of a stripe whose bytes are all the same may be equal for two such
 * stripes. */
static int
change_half_stripe(struct contents *after)
{
    return change_bytes(after, 0, 512, 'c');
}

/* A mount writes while child `lost` is away, and dies in the next write. All children come up, and another
 * mount heals the file. Both writes have the same bytes, so a write that is half done changes nothing.
 * Returns the result of a read; 1: the mount lived. */
static int
run_death_with_k(unsigned lost, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};
    struct contents after;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of the second write", lost, dies_at);
    file_make(false);
    after = before;
    scene_child_down(lost);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_arm(&f, 1);
    (void)change_half_stripe(&after);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(true);
    heal_file();
    heal_file();
    must(scene_call(FOP_open, fill_file, 0) == 0 || !scene.fd);
    int ret = scene.fd ? scene_call(FOP_readv, fill_read, 0) : -EIO;
    if (ret >= 0 && !reads(&after))
        finding_add("the file has other bytes than written");
    scene_run(5000);
    scene_end();
    return has_died ? ret : 1;
}

START_TEST(a_file_with_exactly_k_good_children_is_healed)
{
    unsigned died = 0;

    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        int ret = 0;

        for (unsigned n = 0; ret != 1; n++) {
            ret = run_death_with_k(lost, n);
            died += ret != 1;
            if (ret < 0)
                finding_add("the file cannot be read: %s", strerror(-ret));
        }
    }
    ck_assert_uint_gt(died, 12);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static bool
is_zero_xattr(const struct stored_xattr *x)
{
    static const unsigned char zeros[STORED_TEXT_MAX];

    return !x || memcmp(x->bytes, zeros, x->len) == 0;
}

static uint32_t wanted_mode;

static void
fill_wanted_mode(struct call_stack *stk)
{
    fill_fd(stk);
    stk->call.stbuf.mode = wanted_mode;
    stk->call.valid = SETATTR_MODE;
}

/* A mount changes the mode while child `lost` is away, and dies in the next change. All children come up, and
 * another mount heals the file. Returns false: the mount lived. */
static bool
run_death_in_setattr(unsigned lost, unsigned dies_at)
{
    struct fault f = {.child = ANY_CHILD, .at = dies_at, .kind = FAULT_CUT};

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of a SETATTR", lost, dies_at);
    file_make(false);
    scene_child_down(lost);
    scene_run(0);
    wanted_mode = 0640;
    must(scene_call(FOP_fsetattr, fill_wanted_mode, 0) == 0);
    scene_run(5000);
    scene_arm(&f, 1);
    wanted_mode = 0600;
    (void)scene_call(FOP_fsetattr, fill_wanted_mode, 0);
    scene_run(2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    set_begin(false);
    heal_file();
    heal_file();
    uint32_t mode = store_find(&scene.store[0], "/f")->stat.mode & 07777;
    if (mode != 0640 && mode != 0600)
        finding_add("the mode is %o", mode);
    for (unsigned i = 1; i < CHILDREN; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");

        if ((o->stat.mode & 07777) != mode || !is_zero_xattr(store_xattr(o, "trusted.ec.dirty")))
            finding_add("c%u is not healed", i);
    }
    scene_end();
    return has_died;
}

START_TEST(attributes_of_exactly_k_good_children_are_healed)
{
    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        for (unsigned n = 0; run_death_in_setattr(lost, n); n++)
            ;
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* A good child comes back with an earlier fragment, whose version is between those of the other children. No
 * K children have one state: the versions alone would decode garbage, and the times tell. */
START_TEST(an_earlier_fragment_makes_no_file_of_k_children)
{
    struct contents after;

    file_make(false);
    struct stored_object *o = store_find(&scene.store[1], "/f"), earlier = *o;
    after = before;
    scene_child_down(2);
    scene_run(0);
    must(change_half_stripe(&after) == 512);
    scene_run(5000);
    scene_end();
    *o = earlier;
    store_xattr(o, "trusted.ec.version")->bytes[7]++;
    set_begin(true);
    heal_file();
    ck_assert_int_eq(scene_call(FOP_open, fill_file, 0), 0);
    ck_assert_int_eq(scene_call(FOP_readv, fill_read, 0), -EIO);
    scene_run(5000);
    scene_end();
}
END_TEST

/* As a lie: the first child's limit is reached a little before the second's. */
static void
lie_over_quota(unsigned child, struct call_stack *stk, int *ret)
{
    if (child == 0 && stk->call.fop == FOP_writev)
        *ret = -EDQUOT;
}

START_TEST(a_write_over_the_limit_of_one_of_k_children_names_the_limit)
{
    struct contents after;

    file_make(false);
    after = before;
    scene_child_down(2);
    scene_run(0);
    scene.lie = lie_over_quota;
    ck_assert_int_eq(change_half_stripe(&after), -EDQUOT);
    scene.lie = NULL;
    scene_run(5000);
    scene_end();
}
END_TEST

static bool
log_has(const char *path, const char *text)
{
    char line[1024];
    bool has = false;
    FILE *f = fopen(path, "r");

    must(f);
    while (!has && fgets(line, sizeof line, f))
        has = strstr(line, text) != NULL;
    fclose(f);
    return has;
}

/* Another client removes the file before this one writes its counters back. Of a file that more than R
 * children do not have nothing is lost, so the layer neither reports the counters nor heals. */
START_TEST(counters_of_a_file_that_is_being_removed_are_not_reported)
{
    static const struct fault refusals[] = {{.child = 0, .err = EIO}, {.child = 1, .err = EIO}};
    static const char name[] = "disperse-marks-stay";

    for (unsigned gone = 0; gone <= CHILDREN; gone++) {
        char log[] = "/tmp/test-disperse-faults-XXXXXX";
        int fd = mkstemp(log);

        must(fd >= 0 && log_open(log) == 0);
        file_make(true);
        log_set_level(LOG_WARNING);
        must(write_without_fd() >= 0);
        for (unsigned i = 0; i < gone; i++)
            store_find(&scene.store[i], "/f")->stat.nlink = 0;
        scene_arm(refusals, gone ? 0 : 2); /* the counters of a file that exists are reported */
        scene_run(5000);
        ck_assert_msg(log_has(log, name) == !gone, "%u children without the file", gone);
        ck_assert_msg(gone < 2 || scene.calls[ANY_CHILD] == 2 * CHILDREN,
                      "%u children without the file: %u calls", gone, scene.calls[ANY_CHILD]);
        scene_end();
        log_close();
        close(fd);
        unlink(log);
    }
}
END_TEST

/* While all children are up, a change of names sets no mark before the versions rise in the end. A child that
 * dies then is behind, and the others' index must name the directory. */
START_TEST(a_directory_whose_last_counters_missed_a_child_is_marked)
{
    static const enum fault_kind kinds[] = {FAULT_REFUSED, FAULT_UNSENT, FAULT_UNANSWERED};

    for (unsigned n = 0; n < 3 * CHILDREN; n++) {
        struct fault f = {.child = n % CHILDREN, .kind = kinds[n / CHILDREN], .err = EIO};

        scene_clear(CHILDREN, false);
        set_begin(false);
        must(scene_call(FOP_create, fill_create, 0) == 0);
        must(scene_call(FOP_flush, fill_fd, 0) == 0);
        scene_arm(&f, 1); /* the calls that follow end the directory's lock */
        scene_run(5000);
        for (unsigned i = 0; i < CHILDREN; i++) {
            struct stored_object *root = store_find(&scene.store[i], "/");

            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.version")), "%u, c%u",
                          n, i);
            ck_assert_msg(i == f.child || !is_zero_xattr(store_xattr(root, "trusted.ec.dirty")),
                          "c%u, fault %u: c%u has no mark", f.child, f.kind, i);
        }
        scene_end();
    }
}
END_TEST

/* Copies child i's version of the root; an absent version is 0. */
static void
root_version(unsigned i, unsigned char out[16])
{
    const struct stored_xattr *x = store_xattr(store_find(&scene.store[i], "/"), "trusted.ec.version");

    memset(out, 0, 16);
    if (x)
        memcpy(out, x->bytes, 16);
}

/* Returns the number of children with a mark of the root. */
static unsigned
root_marks(void)
{
    unsigned marks = 0;

    for (unsigned i = 0; i < CHILDREN; i++)
        marks += !is_zero_xattr(store_xattr(store_find(&scene.store[i], "/"), "trusted.ec.dirty"));
    return marks;
}

static bool
root_versions_are_equal(void)
{
    unsigned char first[16], other[16];

    root_version(0, first);
    for (unsigned i = 1; i < CHILDREN; i++) {
        root_version(i, other);
        if (memcmp(first, other, sizeof other) != 0)
            return false;
    }
    return true;
}

/* A mount makes a name, and dies at call `n` of the end of the directory's lock. Returns false: the mount did
 * not die. */
static bool
run_death_at_the_last_counters(unsigned n, enum fault_kind kind)
{
    struct fault f = {.child = ANY_CHILD, .at = n, .kind = kind};

    scene_clear(CHILDREN, false);
    set_begin(false);
    must(scene_call(FOP_create, fill_create, 0) == 0);
    must(scene_call(FOP_flush, fill_fd, 0) == 0);
    scene_arm(&f, 1);
    scene_run(5000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    snprintf(run_text, sizeof run_text, "mount dies at call %u, fault %u", n, kind);
    if (!root_versions_are_equal() && !root_marks())
        finding_add("versions differ, and no child has a mark");
    set_begin(false);
    struct inode *root = inode_root(scene.graph->inodes);
    must(coro_run(heal_go, root) == 0);
    scene_run(3000);
    inode_unref(root);
    if (!root_versions_are_equal() || root_marks())
        finding_add("the directory is not healed");
    scene_end();
    return has_died;
}

START_TEST(a_mount_that_dies_at_the_last_counters_of_a_directory_leaves_a_mark)
{
    findings = 0;
    for (unsigned n = 0; run_death_at_the_last_counters(n, _i ? FAULT_CUT_AFTER : FAULT_CUT); n++)
        ;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static void
fill_folder(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = 7}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "d"};
    stk->call.mode = 0755;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

/* A child misses a new name, and the mount dies at call `n`. */
static void
run_death_after_a_missed_name(unsigned child, enum fault_kind missed, unsigned n)
{
    struct fault f[] = {{.child = child, .at = 1, .kind = missed, .err = EIO}, /* after the lock */
                        {.child = ANY_CHILD, .at = n, .kind = FAULT_CUT}};

    scene_clear(CHILDREN, false);
    set_begin(false);
    must(scene_call(FOP_mkdir, fill_folder, 5000) == 0);
    snprintf(run_text, sizeof run_text, "c%u misses a name, fault %u, mount dies at call %u", child, missed,
             n);
    scene_arm(f, 2);
    int ret = scene_call(FOP_create, fill_create, 0);
    bool was_dead = scene.was_dead;
    scene_run(5000);
    if (ret == 0 && !was_dead && !root_marks())
        finding_add("the caller has its name, and no child has a mark");
    if (!root_versions_are_equal() && !root_marks())
        finding_add("versions differ, and no child has a mark");
    scene.is_cut = true;
    scene_end();
}

START_TEST(a_name_that_a_child_missed_is_marked_before_the_caller_has_it)
{
    static const enum fault_kind kinds[] = {FAULT_REFUSED, FAULT_UNSENT};

    findings = 0;
    for (unsigned child = 0; child < CHILDREN; child++) {
        for (unsigned n = 0; n < 8 * CHILDREN; n++)
            run_death_after_a_missed_name(child, kinds[_i], n);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static void
fill_root(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

/* With K children, a mount dies at call `n` of a write or of a new name. The next mount with the same
 * children uses the file or the folder. Returns false: the first mount did not die. */
static bool
run_death_of_a_raise(unsigned lost, unsigned n, bool is_name)
{
    struct fault f = {.child = ANY_CHILD, .at = n, .kind = FAULT_CUT};
    struct contents after = before;

    snprintf(run_text, sizeof run_text, "c%u down, mount dies at call %u of a %s", lost, n,
             is_name ? "new folder" : "write");
    file_make(false);
    scene_child_down(lost);
    scene_run(2000);
    scene_arm(&f, 1);
    if (is_name)
        (void)scene_call(FOP_mkdir, fill_folder, 2000);
    else
        (void)change_half_stripe(&after);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    scene.stays_down = 1U << lost;
    set_begin(false);
    int ret = is_name ? scene_call(FOP_stat, fill_root, 5000) : scene_call(FOP_readv, fill_read, 5000);
    if (ret < 0)
        finding_add("the next mount gets %d", ret);
    unsigned marks = 0;
    for (unsigned i = 0; i < CHILDREN; i++) {
        struct stored_object *o = store_find(&scene.store[i], is_name ? "/" : "/f");

        marks += !is_zero_xattr(store_xattr(o, "trusted.ec.dirty"));
    }
    if (has_died && n > 4 && !marks)
        finding_add("no child has a mark");
    scene.stays_down = 0;
    scene_end();
    return has_died;
}

START_TEST(a_raise_on_k_children_that_a_dead_mount_has_begun_is_completed)
{
    findings = 0;
    for (unsigned lost = 0; lost < CHILDREN; lost++) {
        for (unsigned n = 0; run_death_of_a_raise(lost, n, _i); n++)
            ;
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* ---- objects whose versions need not rise, or must not --------------------------------------- */

static unsigned counter_calls, gone_marks;

/* As a lie, but counts calls only: those about the folder, and those that set a mark of an object that the
 * child does not have. */
static void
count_counters(unsigned child, struct call_stack *stk, int *ret)
{
    int64_t dirty[2] = {0, 0};

    if (stk->call.fop != FOP_xattrop && stk->call.fop != FOP_fxattrop)
        return;
    struct inode *folder = scene_inode(child, "/d");
    counter_calls += stk->call.loc.inode && stk->call.loc.inode == folder;
    inode_unref(folder);
    ec_get_words(stk->call.dict, "trusted.ec.dirty", (uint64_t *)dirty);
    gone_marks += *ret == -ESTALE && (dirty[0] > 0 || dirty[1] > 0);
}

static void
fill_in_folder(struct call_stack *stk)
{
    fill_create(stk);
    inode_unref(stk->call.loc.parent);
    stk->call.loc.parent = scene_inode(0, "/d");
}

static void
fill_made_in_folder(struct call_stack *stk)
{
    stk->call.loc =
        (struct loc){.parent = scene_inode(0, "/d"), .name = "f", .inode = scene_inode(0, "/d/f")};
}

static void
fill_made_folder(struct call_stack *stk)
{
    stk->call.loc = (struct loc){
        .parent = inode_root(scene.graph->inodes), .name = "d", .inode = scene_inode(0, "/d")};
}

START_TEST(the_version_of_a_folder_does_not_rise_while_all_children_are_good)
{
    scene_clear(CHILDREN, false);
    set_begin(false);
    must(scene_call(FOP_mkdir, fill_folder, 5000) == 0);
    struct stored_xattr first = *store_xattr(store_find(&scene.store[0], "/d"), "trusted.ec.version");
    ck_assert(!is_zero_xattr(&first));
    scene.lie = count_counters;
    for (unsigned n = 0; n < 4; n++) {
        counter_calls = 0;
        if (n % 2)
            must(scene_call(FOP_unlink, fill_made_in_folder, 5000) == 0);
        else
            must(scene_call(FOP_create, fill_in_folder, 5000) == 0);
        /* the mount asks for the version, once */
        ck_assert_uint_eq(counter_calls, n ? 0 : CHILDREN);
        for (unsigned i = 0; i < CHILDREN; i++) {
            struct stored_object *d = store_find(&scene.store[i], "/d");

            ck_assert_mem_eq(store_xattr(d, "trusted.ec.version")->bytes, first.bytes, first.len);
        }
    }
    scene.lie = NULL;
    scene_end();
}
END_TEST

static void
fill_symlink(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = 8}};

    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "s"};
    stk->call.name2 = "target";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_made_symlink(struct call_stack *stk)
{
    stk->call.loc = (struct loc){
        .parent = inode_root(scene.graph->inodes), .name = "s", .inode = scene_inode(0, "/s")};
    stk->call.stbuf.uid = 5;
    stk->call.valid = SETATTR_UID;
}

/* A brick adds the entry of its index before it looks for the object, so that the entry of an object that has
 * gone would stay. 0: a symbolic link, whose version would rise from 0; 1: a folder; 2: a folder, and a child
 * goes away after the change. */
START_TEST(an_object_that_is_removed_gets_no_mark)
{
    scene_clear(CHILDREN, false);
    set_begin(false);
    must(scene_call(FOP_symlink, fill_symlink, 5000) == 0);
    must(scene_call(FOP_mkdir, fill_folder, 5000) == 0);
    gone_marks = 0;
    scene.lie = count_counters;
    if (_i == 0) {
        must(scene_call(FOP_setattr, fill_made_symlink, 0) == 0);
        must(scene_call(FOP_unlink, fill_made_symlink, 0) == 0);
    } else {
        must(scene_call(FOP_create, fill_in_folder, 0) == 0);
        must(scene_call(FOP_unlink, fill_made_in_folder, 0) == 0);
        must(scene_call(FOP_rmdir, fill_made_folder, 0) == 0);
    }
    if (_i == 2)
        scene_child_down(2);
    scene_run(5000);
    ck_assert_uint_eq(gone_marks, 0);
    scene.lie = NULL;
    scene_end();
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_loop_test(t, a_change_without_enough_good_children_raises_no_version, 0, 2);
    tcase_add_loop_test(t, a_change_needs_enough_children_with_a_name, 0, 3);
    tcase_add_test(t, a_version_of_a_dead_mount_is_met_by_no_later_change);
    tcase_add_test(t, a_file_with_exactly_k_good_children_is_healed);
    tcase_add_test(t, attributes_of_exactly_k_good_children_are_healed);
    tcase_add_test(t, an_earlier_fragment_makes_no_file_of_k_children);
    tcase_add_test(t, a_write_over_the_limit_of_one_of_k_children_names_the_limit);
    tcase_add_test(t, a_directory_whose_last_counters_missed_a_child_is_marked);
    tcase_add_loop_test(t, a_mount_that_dies_at_the_last_counters_of_a_directory_leaves_a_mark, 0, 2);
    tcase_add_loop_test(t, a_name_that_a_child_missed_is_marked_before_the_caller_has_it, 0, 2);
    tcase_add_loop_test(t, a_raise_on_k_children_that_a_dead_mount_has_begun_is_completed, 0, 2);
    tcase_add_test(t, the_version_of_a_folder_does_not_rise_while_all_children_are_good);
    tcase_add_loop_test(t, an_object_that_is_removed_gets_no_mark, 0, 3);
    tcase_add_test(t, a_change_of_a_file_that_is_being_removed_is_stale);
    tcase_add_test(t, counters_of_a_file_that_is_being_removed_are_not_reported);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-versions", add_tests);
}

#include "base/test-main.h"
