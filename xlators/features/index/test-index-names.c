/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* index's notes about renames, in a temporary brick folder with two directories of files. */
#include "xlators/features/test-layers.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "xlators/features/index/index-internal.h"

extern const struct xlator_type features_index_xlator;

static char brick[64], base[128];
static struct inode *from_dir, *to_dir, *file;
static int storage_fails; /* the -errno of each call; 0: it succeeds */

static unsigned char ec_dirty[16]; /* of each object: counts of contents and attributes */

static xl_verdict
notes_bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.op_ret = 0;
    if (dict_find_text(stk->call.xdata, "trusted.ec.dirty"))
        ck_assert_int_eq(
            dict_set_text(reply_xdata(stk), "trusted.ec.dirty", DICT_PTR, ec_dirty, sizeof ec_dirty), 0);
    return storage_fails ? storage_fails : XL_DONE;
}

static void
start_noted_brick(void)
{
    const char *const options[] = {"index-base", base, "xattrop-pending-watchlist", "trusted.afr.v-", NULL};

    bench_setup(&features_index_xlator, options, notes_bottom);
    from_dir = bench_inode("from", 1, S_IFDIR);
    to_dir = bench_inode("to", 2, S_IFDIR);
    file = bench_inode("f", 3, S_IFREG);
}

static void
stop_noted_brick(void)
{
    inode_unref(from_dir);
    inode_unref(to_dir);
    inode_unref(file);
    bench_teardown();
}

/* The path of a name below the directory's handle. */
static const char *
brick_path(const struct inode *dir, const char *name)
{
    static char path[512];

    snprintf(path, sizeof path, "%s/%02x/%02x/%s/%s", brick, dir->gfid.b[0], dir->gfid.b[1], GFID(&dir->gfid),
             name);
    return path;
}

static void
touch(const char *path)
{
    int fd = open(path, O_CREAT | O_WRONLY, 0600);

    ck_assert_int_ge(fd, 0);
    close(fd);
}

static void
notes_setup(void)
{
    char command[640];

    storage_fails = 0;
    strcpy(brick, "/tmp/kiln-test-names-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(brick));
    snprintf(base, sizeof base, "%s/indices", brick);
    start_noted_brick();
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", brick_path(from_dir, "x"));
    ck_assert_int_eq(system(command), 0);
    snprintf(command, sizeof command, "mkdir -p $(dirname %s)", brick_path(to_dir, "x"));
    ck_assert_int_eq(system(command), 0);
}

static void
notes_teardown(void)
{
    char command[128];

    stop_noted_brick();
    snprintf(command, sizeof command, "rm -rf %s", brick);
    ck_assert_int_eq(system(command), 0);
}

/* Returns the number of notes on disk, which is also the counted number. */
static int
note_count(void)
{
    struct index_private *priv = index_private(bench_xl);
    int64_t n = index_count(bench_xl, INDEX_NOTES);

    ck_assert_int_eq(n, atomic_load(&priv->name_notes));
    return (int)n;
}

static struct bench_call *
noted_call(enum fop fop, const char *text)
{
    struct bench_call *call = bench_call(fop, NULL);

    call->stk->call.xdata = dict_new(&call->stk->arena);
    if (text)
        ck_assert_int_eq(dict_set_str(call->stk->call.xdata, DICT_KEY_NAME_NOTE, text), 0);
    return call;
}

/* A LINK or RENAME to the name in to_dir. */
static int
change_to(enum fop fop, const char *name, const char *note)
{
    struct bench_call *call = noted_call(fop, note);

    call->stk->call.loc.inode = inode_ref(file);
    call->stk->call.loc2.parent = inode_ref(to_dir);
    call->stk->call.loc2.name = name;
    return bench_run(call);
}

static int
link_to(const char *name, const char *old)
{
    char text[512];

    snprintf(text, sizeof text, "%s/%s", GFID(&from_dir->gfid), old);
    return change_to(FOP_link, name, text);
}

/* The answer of a LOOKUP to the question about a note; "": none. */
static const char *
ask_note(struct inode *dir, const char *name)
{
    static char out[512];
    struct bench_call *call = noted_call(FOP_lookup, "1");

    call->stk->call.loc.parent = inode_ref(dir);
    call->stk->call.loc.name = name;
    bench_wind(call);
    (void)bench_result(call);
    const char *note = dict_get_str(call->stk->reply.xdata, DICT_KEY_NAME_NOTE);

    snprintf(out, sizeof out, "%s", note ? note : "");
    bench_free(call);
    return out;
}

static int
report_done(enum fop fop, const char *name)
{
    struct bench_call *call = noted_call(fop, NULL);
    char text[512];

    snprintf(text, sizeof text, "%s/%s", GFID(&to_dir->gfid), name);
    ck_assert_int_eq(dict_set_str(call->stk->call.xdata, DICT_KEY_NAME_NOTE_DONE, text), 0);
    call->stk->call.loc.inode = inode_ref(file);
    return bench_run(call);
}

START_TEST(a_link_leaves_notes_until_the_rename_ends)
{
    char text[512];

    touch(brick_path(from_dir, "old"));
    ck_assert_int_eq(link_to("new", "old"), 0);
    ck_assert_int_eq(note_count(), 2);
    ck_assert_str_eq(ask_note(to_dir, "new"), "over"); /* the fake storage has made no link */
    char old[512];

    strcpy(old, brick_path(from_dir, "old"));
    ck_assert_int_eq(link(old, brick_path(to_dir, "new")), 0);
    ck_assert_str_eq(ask_note(to_dir, "new"), "link");
    snprintf(text, sizeof text, "from/%s/new", GFID(&to_dir->gfid));
    ck_assert_str_eq(ask_note(from_dir, "old"), text);
    ck_assert_str_eq(ask_note(from_dir, "new"), "");
    stop_noted_brick();
    start_noted_brick();
    ck_assert_int_eq(note_count(), 2);
    ck_assert_str_eq(ask_note(to_dir, "new"), "link");
    ck_assert_int_eq(report_done(FOP_inodelk, "other"), 0);
    ck_assert_int_eq(note_count(), 2);
    ck_assert_int_eq(report_done(FOP_inodelk, "new"), 0);
    ck_assert_int_eq(note_count(), 0);
    ck_assert_str_eq(ask_note(to_dir, "new"), "");
}
END_TEST

START_TEST(a_rename_leaves_one_note)
{
    ck_assert_int_eq(change_to(FOP_rename, "new", "over"), 0);
    ck_assert_int_eq(note_count(), 1);
    ck_assert_str_eq(ask_note(to_dir, "new"), "over");
    ck_assert_int_eq(report_done(FOP_lookup, "new"), 0);
    ck_assert_int_eq(note_count(), 0);
    ck_assert_int_eq(change_to(FOP_rename, "new", NULL), 0); /* not asked for */
    ck_assert_int_eq(note_count(), 0);
}
END_TEST

START_TEST(a_failed_change_leaves_no_note)
{
    storage_fails = -EPERM;
    ck_assert_int_eq(link_to("new", "old"), -EPERM);
    ck_assert_int_eq(change_to(FOP_rename, "new", "over"), -EPERM);
    ck_assert_int_eq(note_count(), 0);
    storage_fails = -EEXIST; /* the name may be that of an earlier rename */
    ck_assert_int_eq(link_to("new", "old"), -EEXIST);
    ck_assert_int_eq(note_count(), 2);
}
END_TEST

START_TEST(a_newer_rename_has_the_note)
{
    ck_assert_int_eq(link_to("new", "old"), 0);
    ck_assert_int_eq(link_to("new", "older"), 0);
    ck_assert_int_eq(note_count(), 3);
    ck_assert_str_eq(ask_note(from_dir, "old"), ""); /* and the outdated note goes */
    ck_assert_int_eq(note_count(), 2);
}
END_TEST

START_TEST(a_removed_name_has_no_note)
{
    struct bench_call *call = noted_call(FOP_unlink, NULL);

    ck_assert_int_eq(link_to("new", "old"), 0);
    call->stk->call.loc.parent = inode_ref(to_dir);
    call->stk->call.loc.name = "new";
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(note_count(), 0);
    ck_assert_int_eq(link_to("new", "old"), 0);
    call = noted_call(FOP_unlink, NULL);
    call->stk->call.loc.parent = inode_ref(from_dir);
    call->stk->call.loc.name = "old";
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(note_count(), 1);
    ck_assert_str_eq(ask_note(to_dir, "new"), "over");
}
END_TEST

START_TEST(texts_that_are_no_names_are_refused)
{
    static const char gfid[] = "aa000000-0000-0000-0000-000000000001";
    const char *const bad[] = {"", "x", "/x", "%s", "%s/", "%s/.", "%s/..", "%s/%300d", "%sx/y", "zz%s/y"};
    char text[512], long_name[300];

    memset(long_name, 'n', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *hole = strstr(bad[i], "%s");

        snprintf(text, sizeof text, "%.*s%s%s", hole ? (int)(hole - bad[i]) : 64, bad[i], hole ? gfid : "",
                 !hole ? "" : strstr(hole, "300") ? "/" : hole + 2);
        if (strstr(bad[i], "300"))
            strcat(text, long_name);
        ck_assert_msg(change_to(FOP_link, "new", text) == -EINVAL, "\"%s\" is taken", text);
    }
    ck_assert_int_eq(note_count(), 0);
}
END_TEST

START_TEST(an_opened_folder_tells_its_noted_names)
{
    struct bench_call *call;
    const struct dict_pair *p;

    ck_assert_int_eq(link_to("new", "old"), 0);
    ck_assert_int_eq(change_to(FOP_rename, "newer", "over"), 0);
    call = noted_call(FOP_opendir, "1");
    call->stk->call.loc.inode = inode_ref(to_dir);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    p = dict_find(call->stk->reply.xdata, DICT_KEY_NAME_NOTE);
    ck_assert_ptr_nonnull(p);
    ck_assert_uint_eq(p->len, sizeof "new" + sizeof "newer");
    ck_assert(memmem(p->v.bytes, p->len, "new", 4) && memmem(p->v.bytes, p->len, "newer", 6));
    bench_free(call);
    call = noted_call(FOP_opendir, "1");
    call->stk->call.loc.inode = inode_ref(from_dir);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert(!dict_has(call->stk->reply.xdata, DICT_KEY_NAME_NOTE));
    bench_free(call);
}
END_TEST

/* The brick's own locks report a client that died with a lock on the folder's names. */
static void
report_death(struct inode *folder)
{
    struct bench_call *call = bench_call(FOP_lookup, NULL);

    call->stk->caller.pid = PID_INTERNAL;
    call->stk->call.loc.inode = inode_ref(folder);
    call->stk->call.xdata = dict_new(&call->stk->arena);
    ck_assert_int_eq(dict_set_int(call->stk->call.xdata, DICT_KEY_DEAD_CHANGE, 1), 0);
    ck_assert_int_eq(bench_run(call), storage_fails);
}

/* Copies the value of kiln.dead-changes; returns its length. */
static uint32_t
dead_changes(uint8_t out[256])
{
    struct bench_call *call = bench_call(FOP_getxattr, NULL);
    uint32_t len = 0;

    call->stk->call.name = "kiln.dead-changes";
    call->stk->call.has_name = 1;
    bench_wind(call);
    int ret = bench_result(call);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find(call->stk->reply.dict, DICT_KEY_DEAD_CHANGES);

    ck_assert(ret == -ENODATA || (p && p->len <= 256));
    if (p)
        memcpy(out, p->v.bytes, len = p->len);
    bench_free(call);
    return len;
}

static void
forget_death(const uint8_t *bytes, uint32_t len)
{
    struct bench_call *call = noted_call(FOP_lookup, NULL);

    ck_assert_int_eq(dict_set_bytes(call->stk->call.xdata, DICT_KEY_DEAD_CHANGE_DONE, bytes, len), 0);
    ck_assert_int_eq(bench_run(call), 0);
}

START_TEST(an_object_of_a_dead_client_is_noted_until_it_is_compared)
{
    uint8_t first[256], second[256];

    ck_assert_uint_eq(dead_changes(first), 0);
    report_death(to_dir);
    ck_assert_uint_eq(dead_changes(first), 24);
    ck_assert_int_eq(memcmp(first, &to_dir->gfid, GFID_BYTES), 0);
    report_death(to_dir); /* renews the note */
    ck_assert_uint_eq(dead_changes(second), 24);
    ck_assert_int_ne(memcmp(first, second, 24), 0);
    ck_assert_int_eq(note_count(), 1);
    forget_death(first, 24);
    forget_death(second, 23);
    ck_assert_int_eq(note_count(), 1);
    report_death(from_dir);
    ck_assert_uint_eq(dead_changes(first), 48);
    ck_assert_int_eq(link_to("new", "old"), 0); /* the notes of names are no folders */
    ck_assert_uint_eq(dead_changes(first), 48);
    forget_death(second, 24);
    ck_assert_uint_eq(dead_changes(first), 24);
    ck_assert_int_eq(memcmp(first, &from_dir->gfid, GFID_BYTES), 0);
    stop_noted_brick();
    start_noted_brick();
    ck_assert_uint_eq(dead_changes(second), 24);
    ck_assert_int_eq(memcmp(first, second, 24), 0);
}
END_TEST

/* The first bit of the number tells of a write under way, in any death since. */
START_TEST(a_note_tells_of_changed_contents)
{
    uint8_t bytes[256];

    ec_dirty[15] = 1;
    report_death(file);
    ck_assert(dead_changes(bytes) == 24 && !(bytes[16] & 0x80));
    ec_dirty[7] = 1;
    report_death(file);
    ck_assert(dead_changes(bytes) == 24 && (bytes[16] & 0x80));
    ec_dirty[7] = ec_dirty[15] = 0;
    report_death(file);
    ck_assert(dead_changes(bytes) == 24 && (bytes[16] & 0x80));
    forget_death(bytes, 24);
    report_death(file);
    ck_assert(dead_changes(bytes) == 24 && !(bytes[16] & 0x80));
    forget_death(bytes, 24);
    storage_fails = -ENOENT;
    report_death(file);
    storage_fails = 0;
    ck_assert_uint_eq(dead_changes(bytes), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("index-names");
    TCase *t = tcase_create("notes");

    tcase_add_checked_fixture(t, notes_setup, notes_teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_link_leaves_notes_until_the_rename_ends);
    tcase_add_test(t, a_rename_leaves_one_note);
    tcase_add_test(t, a_failed_change_leaves_no_note);
    tcase_add_test(t, a_newer_rename_has_the_note);
    tcase_add_test(t, a_removed_name_has_no_note);
    tcase_add_test(t, texts_that_are_no_names_are_refused);
    tcase_add_test(t, an_opened_folder_tells_its_noted_names);
    tcase_add_test(t, an_object_of_a_dead_client_is_noted_until_it_is_compared);
    tcase_add_test(t, a_note_tells_of_changed_contents);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
