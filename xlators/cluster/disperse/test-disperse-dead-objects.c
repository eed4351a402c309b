/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Objects that a client was changing when it died (dead-objects.c). Every change of attributes and names is
 * cut at each call by the death of its mount. The bricks note the objects whose locks the mount held, and
 * the next mount compares these objects without a LOOKUP. Then the mount that compares dies, too, at each of
 * its calls:
 *
 *      in the end all children have the same names and attributes, no brick has a note, and no lock is left
 *      as long as they differ, a brick has a note, or a counter leads healers to the object
 *      a file that no caller has removed has a name, and its contents
 *
 * Also writes, after which a healer that does not look at contents has taken the marks back: any K children
 * give the same bytes. */
#include <check.h>
#include <errno.h>
#include <stdarg.h>

#include "xlators/cluster/disperse/test-disperse-file.h"
#include "xlators/cluster/test-children-internal.h"
#include "xlators/cluster/test-notes.h"

static unsigned count; /* of children: 2+1, or 3+1, of which a half is neither K nor at most R */

/* ---- the volume ------------------------------------------------------------------------------ */

/* The volume's objects, and the names that changes make. */
static const char *const paths[] = {"/a",   "/b",   "/a/x", "/a/d", "/a/e", "/a/e/z",
                                    "/b/y", "/a/n", "/b/n", "/a/n/z", "/b/n/z"};
enum { PATHS = sizeof paths / sizeof paths[0] };

static const char *folder, *name, *folder2, *name2;

static void
fill_new(struct call_stack *stk)
{
    static unsigned char serial;
    struct gfid gfid = {.b = {0xdd, [15] = ++serial}};

    stk->call.loc = (struct loc){.parent = scene_inode_of(folder), .name = name};
    stk->call.mode = 0755 | (stk->call.fop == FOP_mknod ? S_IFREG : 0);
    stk->call.flags = O_RDWR | O_CREAT;
    stk->call.name2 = "target";
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
make(enum fop fop, const char *in, const char *text)
{
    folder = in;
    name = text;
    must(scene_call(fop, fill_new, 0) >= 0);
}

static void
fill_content(struct call_stack *stk)
{
    static char payload[FILE_BYTES];
    char path[STORED_TEXT_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    memset(payload, name[0], sizeof payload);
    struct inode *inode = scene_inode_of(path);
    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.payload[0] = (struct iovec){payload, sizeof payload};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = sizeof payload;
}

static void
make_file(const char *in, const char *text)
{
    make(FOP_create, in, text);
    must(scene_call(FOP_writev, fill_content, 0) == FILE_BYTES);
}

static bool
has_dirty_contents(struct stored_object *o)
{
    static const unsigned char zeros[8];
    const struct stored_xattr *x = store_xattr(o, "trusted.ec.dirty");

    return x && x->len >= sizeof zeros && memcmp(x->bytes, zeros, sizeof zeros) != 0;
}

static void
note_lock(unsigned child, const struct gfid *gfid, const char *domain)
{
    int object = store_object_of(&scene.store[child], gfid);

    if (strcmp(domain, "v") == 0)
        note_gfid(child, gfid, object >= 0 && has_dirty_contents(&scene.store[child].object[object]));
}

static void
begin(void)
{
    scene.takes_sequences = takes_joined;
    scene_begin(&cluster_disperse_xlator, " option redundancy 1\n option background-heals 8\n");
    scene.lie = serve_notes;
}

static void
volume_make(void)
{
    scene_clear(count, false);
    memset(note_counts, 0, sizeof note_counts);
    scene.lock_lost = NULL;
    begin();
    make(FOP_mkdir, "/", "a");
    make(FOP_mkdir, "/", "b");
    make_file("/a", "x");
    make_file("/b", "y");
    make(FOP_mkdir, "/a", "d");
    make(FOP_mkdir, "/a", "e");
    make_file("/a/e", "z");
    scene_run(5000);
    scene_end();
}

/* ---- changes --------------------------------------------------------------------------------- */

static void
fill_name(struct call_stack *stk)
{
    char path[STORED_TEXT_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    stk->call.loc = (struct loc){.parent = scene_inode_of(folder), .name = name};
    stk->call.loc.inode = scene_inode_of(path);
    if (name2)
        stk->call.loc2 = (struct loc){.parent = scene_inode_of(folder2), .name = name2};
    snprintf(path, sizeof path, "%s/%s", folder2 ? folder2 : "", name2 ? name2 : "");
    stk->call.loc2.inode = name2 && stk->call.fop == FOP_rename ? scene_inode_of(path) : NULL;
}

static void
fill_attributes(struct call_stack *stk)
{
    char path[STORED_TEXT_MAX];

    snprintf(path, sizeof path, "%s/%s", folder, name);
    stk->call.loc.inode = scene_inode_of(path);
    stk->call.stbuf.mode = 0600;
    stk->call.valid = SETATTR_MODE;
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.color", DICT_PTR, "green", 5) == 0);
}

static const struct change {
    enum fop fop;
    void (*fill)(struct call_stack *stk);
    const char *folder, *name, *folder2, *name2;
} changes[] = {
    {FOP_setattr, fill_attributes, "/a", "x", NULL, NULL},
    {FOP_setattr, fill_attributes, "/a", "d", NULL, NULL},
    {FOP_setxattr, fill_attributes, "/a", "x", NULL, NULL},
    {FOP_setxattr, fill_attributes, "/a", "d", NULL, NULL},
    {FOP_create, fill_new, "/a", "n", NULL, NULL},
    {FOP_mknod, fill_new, "/a", "n", NULL, NULL},
    {FOP_mkdir, fill_new, "/a", "n", NULL, NULL},
    {FOP_symlink, fill_new, "/a", "n", NULL, NULL},
    {FOP_unlink, fill_name, "/a", "x", NULL, NULL},
    {FOP_rmdir, fill_name, "/a", "d", NULL, NULL},
    {FOP_link, fill_name, "/a", "x", "/b", "n"},
    {FOP_rename, fill_name, "/a", "x", "/a", "n"},
    {FOP_rename, fill_name, "/a", "x", "/b", "n"},
    {FOP_rename, fill_name, "/a", "x", "/b", "y"},
    {FOP_rename, fill_name, "/a", "e", "/a", "n"},
    {FOP_rename, fill_name, "/a", "e", "/b", "n"},
    {FOP_rename, fill_name, "/a", "e", "/a", "d"},
};
enum { CHANGES = sizeof changes / sizeof changes[0] };

static const char *const change_words[] = {[FOP_setattr] = "chmod", [FOP_setxattr] = "setxattr",
                                           [FOP_create] = "create", [FOP_mknod] = "mknod",
                                           [FOP_mkdir] = "mkdir",   [FOP_symlink] = "symlink",
                                           [FOP_unlink] = "unlink", [FOP_rmdir] = "rmdir",
                                           [FOP_link] = "link",     [FOP_rename] = "rename"};

/* Makes the change in a mount that dies at call `n`. Returns false: the change takes fewer calls. */
static bool
change_half(const struct change *c, unsigned n, enum fault_kind kind)
{
    struct fault f = {.child = ANY_CHILD, .at = n, .kind = kind};

    volume_make();
    begin();
    scene.lock_lost = note_lock;
    folder = c->folder;
    name = c->name;
    folder2 = c->folder2;
    name2 = c->name2;
    scene_arm(&f, 1);
    (void)scene_call(c->fop, c->fill, 2000);
    bool has_died = scene.is_cut;
    scene.is_cut = true;
    scene_end();
    return has_died;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool
is_same(const struct stored_object *a, const struct stored_object *b)
{
    const struct stored_xattr *x, *y;

    if (!a || !b)
        return a == b;
    x = store_xattr((struct stored_object *)a, "user.color");
    y = store_xattr((struct stored_object *)b, "user.color");
    return gfid_equal(&a->stat.gfid, &b->stat.gfid) && a->stat.mode == b->stat.mode &&
           a->stat.nlink == b->stat.nlink && !x == !y;
}

/* Returns a path with different objects or attributes; NULL: there is none. */
static const char *
difference(void)
{
    for (unsigned p = 0; p < PATHS; p++) {
        for (unsigned i = 1; i < count; i++) {
            if (!is_same(store_find(&scene.store[0], paths[p]), store_find(&scene.store[i], paths[p])))
                return paths[p];
        }
    }
    return NULL;
}

static bool
is_marked(void)
{
    for (unsigned i = 0; i < count; i++) {
        if (store_pending(&scene.store[i]))
            return true;
    }
    return false;
}

static const char *read_path;

static void
fill_read_path(struct call_stack *stk)
{
    struct inode *inode = scene_inode_of(read_path);

    stk->call.fd = fd_new_anonymous(inode, NULL);
    inode_unref(inode);
    stk->call.size = STORED_DATA_MAX;
}

static void
check_content(const char *path, char byte)
{
    read_path = path;
    int ret = store_find(&scene.store[0], path) ? scene_call(FOP_readv, fill_read_path, 0) : -ENOENT;

    if (ret != FILE_BYTES || scene.text[0] != byte || scene.text[FILE_BYTES - 1] != byte)
        finding_add("%s: %d, byte %c", path, ret, ret > 0 ? scene.text[0] : '-');
}

/* The files that the change is not to remove are whole under the old name or the new one. The target of a
 * rename, of which too few fragments are left, may go if a comparison has died (heal-move.c). */
static void
check_files(const struct change *c, bool has_died)
{
    struct store *s = &scene.store[0];
    bool is_over = c->name2 && strcmp(c->name2, "y") == 0;
    const char *new_x = is_over ? "/b/y" : store_find(s, "/b/n") ? "/b/n" : "/a/n", *z = "/a/e/z";

    z = store_find(s, "/a/n/z") ? "/a/n/z" : store_find(s, "/b/n/z") ? "/b/n/z" : z;
    z = store_find(s, "/a/d/z") ? "/a/d/z" : z;
    if (c->fop != FOP_unlink)
        check_content(store_find(s, "/a/x") ? "/a/x" : new_x, 'x');
    check_content(z, 'z');
    if (!is_over || (store_find(s, "/a/x") && !has_died))
        check_content("/b/y", 'y');
}

static void
check_differences_are_known(void)
{
    if (difference() && !notes_left() && !is_marked())
        finding_add("no note and no counter is left, but %s differs", difference());
}

/* The children return, and the mount learns that the bricks keep notes: it compares the objects. */
static void
compare(uint64_t ms)
{
    scene_child_down(0);
    scene_child_up(0);
    for (unsigned i = 0; i < count; i++)
        atomic_store(&scene.child[i]->brick_facts, BRICK_NAME_NOTES);
    scene_run(ms);
}

enum { COMPARER_LIVES = 10000, WAIT_MS = 60000 };

/* A mount compares the objects and dies at call `m`; the next one compares again. Returns false: the first
 * did not die. */
static bool
run_comparison(const struct change *c, unsigned n, enum fault_kind kind, unsigned m)
{
    struct fault f = {.child = ANY_CHILD, .at = m, .kind = FAULT_CUT};
    bool has_died = false;

    snprintf(run_text, sizeof run_text,
             "%u children, %s %s/%s to %s/%s, died %s call %u, the comparison at %u", count,
             change_words[c->fop], c->folder, c->name, c->folder2 ? c->folder2 : "",
             c->name2 ? c->name2 : "", kind == FAULT_CUT ? "before" : "after", n, m);
    check_differences_are_known();
    if (m < COMPARER_LIVES) {
        begin();
        scene_arm(&f, 1);
        compare(WAIT_MS);
        has_died = scene.is_cut;
        check_differences_are_known();
        scene.is_cut = true;
        scene_end();
    }
    begin();
    compare(WAIT_MS);
    if (difference())
        finding_add("in the end %s differs", difference());
    if (notes_left())
        finding_add("%u notes are left", notes_left());
    check_files(c, has_died);
    scene_run(5000);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
    return has_died;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void
fill_part(struct call_stack *stk)
{
    static char payload[700];

    memset(payload, 'w', sizeof payload);
    fill_read_path(stk);
    stk->call.offset = 300;
    stk->call.payload[0] = (struct iovec){payload, sizeof payload};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = sizeof payload;
}

/* As a healer that finds equal versions and sizes, and compares no contents. */
static void
take_marks_back(void)
{
    static const unsigned char zeros[16];

    for (unsigned i = 0; i < count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/a/x");
        struct stored_object *first = store_find(&scene.store[0], "/a/x");

        for (unsigned k = 0; k < 2; k++) {
            const char *key = k ? "trusted.ec.size" : "trusted.ec.version";
            const struct stored_xattr *x = store_xattr(o, key), *y = store_xattr(first, key);

            if (memcmp(x->bytes, y->bytes, x->len) != 0)
                return;
        }
    }
    for (unsigned i = 0; i < count; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/a/x");

        must(store_set_xattr(o, "trusted.ec.dirty", zeros, sizeof zeros) == 0);
    }
}

/* Reads without each child in turn. */
static void
check_same_bytes(void)
{
    char first[STORED_DATA_MAX] = "";

    read_path = "/a/x";
    for (unsigned away = 0; away < count; away++) {
        scene_child_down(away);
        scene_run(0);
        int ret = scene_call(FOP_readv, fill_read_path, 5000);

        if (ret != FILE_BYTES)
            finding_add("%d without c%u", ret, away);
        else if (!away)
            memcpy(first, scene.text, FILE_BYTES);
        else if (memcmp(first, scene.text, FILE_BYTES) != 0)
            finding_add("other bytes without c%u", away);
        scene_child_up(away);
        scene_run(5000);
    }
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(children_become_equal_after_the_death_of_a_mount_in_a_change)
{
    const struct change *c = &changes[_i];
    unsigned differed = 0;

    findings = 0;
    for (count = 3; count <= 4; count++) {
        bool dies = true;

        for (unsigned n = 0; dies; n++) {
            for (enum fault_kind kind = FAULT_CUT; kind <= FAULT_CUT_AFTER; kind++) {
                dies = change_half(c, n, kind);
                differed += difference() != NULL;
                (void)run_comparison(c, n, kind, COMPARER_LIVES);
            }
        }
    }
    ck_assert_uint_ge(differed, 2);
    ck_assert_uint_eq(findings, 0);
}
END_TEST

START_TEST(a_comparison_that_dies_is_repeated)
{
    const struct change *c = &changes[_i];
    unsigned died = 0;

    findings = 0;
    for (count = 3; count <= 4; count++) {
        for (unsigned n = 0; change_half(c, n, FAULT_CUT); n++) {
            if (!difference())
                continue;
            for (unsigned m = 0; run_comparison(c, n, FAULT_CUT, m); m += 1 + m / 16) {
                died++;
                (void)change_half(c, n, FAULT_CUT);
            }
        }
    }
    ck_assert_uint_gt(died, 10);
    ck_assert_uint_eq(findings, 0);
}
END_TEST

START_TEST(contents_of_a_cut_write_are_compared_without_a_mark)
{
    findings = 0;
    for (count = 3; count <= 4; count++) {
        for (unsigned n = 0;; n++) {
            struct fault f = {.child = ANY_CHILD, .at = n, .kind = _i ? FAULT_CUT_AFTER : FAULT_CUT};

            volume_make();
            begin();
            scene.lock_lost = note_lock;
            scene_arm(&f, 1);
            read_path = "/a/x";
            (void)scene_call(FOP_writev, fill_part, 2000);
            bool has_died = scene.is_cut;
            scene.is_cut = true;
            scene_end();
            if (!has_died)
                break;
            snprintf(run_text, sizeof run_text, "%u children, death at call %u", count, n);
            take_marks_back();
            begin();
            compare(WAIT_MS);
            if (notes_left())
                finding_add("%u notes are left", notes_left());
            check_same_bytes();
            scene_end();
        }
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

static void
add_tests(TCase *t)
{
    tcase_add_loop_test(t, children_become_equal_after_the_death_of_a_mount_in_a_change, 0, CHANGES);
    tcase_add_loop_test(t, a_comparison_that_dies_is_repeated, 0, CHANGES);
    tcase_add_loop_test(t, contents_of_a_cut_write_are_compared_without_a_mark, 0, 2);
}

static Suite *
test_suite(void)
{
    return suite_of_both("disperse-dead-objects", add_tests);
}

#include "base/test-main.h"
