/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Files in blocks of 16 bytes, on a brick in memory.
 *
 * A test makes random writes, appends, truncates, punches, allocations and reads, and compares each result
 * with an array of bytes. The others make one change, first to count its calls to the brick, then once for
 * each of these calls with a fault there: the call is refused; or the mount dies before it, or after it.
 * After a death a new mount sweeps. Then the file is as before the change or as after it, as far as a mount
 * that died may leave it; no byte that the change does not reach is lost; no lock is left; and no block of a
 * file without a name is left, and no marker.
 *
 * FAULTS_RUN=TEXT in the environment makes only the run of that text, and CHILDREN_TRACE=1 prints its calls.
 * */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type features_shard_xlator;

enum { BLOCK = 16, LENGTH_MAX = 200, SWEEP_MS = 5000 };

static const char options[] = "    option shard-block-size 16\n";

/* ---- calls ----------------------------------------------------------------------------------- */

static struct {
    const char *name, *name2; /* in the root */
    uint8_t number;           /* of a new file's gfid */
    uint64_t offset, size;
    uint32_t flags;
    const char *bytes;
} args;

static void
fill_times(struct call_stack *stk)
{
    stk->caller.time_flags = TIME_MTIME | TIME_CTIME;
    stk->caller.ctime_sec = 1000;
}

static void
fill_names(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xcc, [15] = args.number}};

    fill_times(stk);
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = args.name};
    if (args.name2)
        stk->call.loc2 = (struct loc){.parent = inode_root(scene.graph->inodes), .name = args.name2};
    stk->call.mode = S_IFREG | 0644;
    stk->call.flags = stk->call.fop == FOP_create ? O_RDWR | O_CREAT | O_EXCL : 0;
    if (args.number)
        must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static void
fill_root(struct call_stack *stk)
{
    stk->call.loc.inode = inode_root(scene.graph->inodes);
}

static void
fill_data(struct call_stack *stk)
{
    fill_times(stk);
    stk->call.xdata = NULL;
    stk->call.fd = fd_ref(scene.fd);
    stk->call.loc.inode = inode_ref(scene.fd->inode);
    stk->call.offset = args.offset;
    stk->call.size = args.size;
    stk->call.flags = args.flags;
    if (stk->call.fop == FOP_writev) {
        stk->call.payload[0] = (struct iovec){(void *)(uintptr_t)args.bytes, args.size};
        stk->call.payload_count = 1;
        stk->call.payload_bytes = args.size;
    }
}

static int
call_data(enum fop fop, uint64_t offset, uint64_t size)
{
    args.offset = offset;
    args.size = size;
    return scene_call(fop, fill_data, 0);
}

static int
call_name(enum fop fop, const char *name, const char *name2, uint8_t number)
{
    args.name = name;
    args.name2 = name2;
    args.number = number;
    return scene_call(fop, fill_names, 0);
}

static void
fill_open(struct call_stack *stk)
{
    fill_times(stk);
    stk->call.loc.inode = scene_inode(0, args.name);
    stk->call.flags = O_RDWR;
}

/* Opens the file by a lookup. Returns 0 or -errno. */
static int
open_file(const char *name)
{
    char path[32];
    int ret = call_name(FOP_lookup, name, NULL, 0);

    if (ret < 0)
        return ret;
    snprintf(path, sizeof path, "/%s", name);
    args.name = path;
    return scene_call(FOP_open, fill_open, 0);
}

static void
close_file(void)
{
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(0);
}

static void
write_bytes(const char *bytes, uint64_t offset, uint64_t size)
{
    args.bytes = bytes;
    ck_assert_int_eq(call_data(FOP_writev, offset, size), (int)size);
}

/* ---- the random test ------------------------------------------------------------------------- */

static unsigned char model[LENGTH_MAX];
static unsigned length;
static unsigned seed;

static unsigned
below(unsigned n)
{
    seed = seed * 1103515245 + 12345;
    return (seed >> 16) % n;
}

static void
check_contents(const char *when)
{
    static const unsigned sizes[] = {1, 7, BLOCK, 50, LENGTH_MAX};
    unsigned at = below(LENGTH_MAX), size = sizes[below(5)];
    int want = at >= length ? 0 : (int)(length - at < size ? length - at : size);
    int ret = call_data(FOP_readv, at, size);

    if (ret != want || (ret > 0 && memcmp(scene.text, model + at, (size_t)ret) != 0))
        ck_abort_msg("%s: a read at %u of %u bytes returns %d", when, at, size, ret);
    ck_assert_int_ge(call_data(FOP_fstat, 0, 0), 0);
    if (scene.stat.size != length)
        ck_abort_msg("%s: the size is %u instead of %u", when, (unsigned)scene.stat.size, length);
}

/* Objects without names would fill the brick's disk in memory. */
static void
drop_nameless(void)
{
    for (unsigned i = 1; i < STORED_OBJECTS_MAX; i++) {
        struct stored_object *o = &scene.store[0].object[i];

        if (o->stat.mode && !o->stat.nlink)
            o->stat.mode = 0;
    }
}

static void
grow_model(unsigned end)
{
    if (end > length) {
        memset(model + length, 0, end - length);
        length = end;
    }
}

static void
change_at_random(void)
{
    static char bytes[60];
    unsigned at = below(150), size = 1 + below(40), kind = below(12);

    for (unsigned i = 0; i < size; i++)
        bytes[i] = (char)(1 + below(250));
    args.bytes = bytes;
    if (kind < 5) {
        grow_model(at + size);
        memcpy(model + at, bytes, size);
        ck_assert_int_eq(call_data(FOP_writev, at, size), (int)size);
    } else if (kind < 7 && length + size <= LENGTH_MAX) {
        at = length;
        grow_model(at + size);
        memcpy(model + at, bytes, size);
        args.flags = O_APPEND;
        ck_assert_int_eq(call_data(FOP_writev, 0, size), (int)size);
    } else if (kind < 9) {
        at = kind == 8 ? at / BLOCK * BLOCK : at;
        grow_model(at);
        length = at;
        ck_assert_int_eq(call_data(FOP_ftruncate, at, 0), 0);
    } else if (kind == 9) {
        for (unsigned i = at; i < at + size && i < length; i++)
            model[i] = 0;
        ck_assert_int_eq(call_data(FOP_discard, at, size), 0);
    } else if (kind == 10) {
        grow_model(at + size);
        memset(model + at, 0, size);
        ck_assert_int_eq(call_data(FOP_zerofill, at, size), 0);
    } else {
        grow_model(at + size);
        ck_assert_int_eq(call_data(FOP_fallocate, at, size), 0);
    }
    args.flags = 0;
}

START_TEST(random_changes_match_an_array)
{
    char when[64];

    scene_clear(1, false);
    scene_begin(&features_shard_xlator, options);
    seed = (unsigned)_i + 1;
    length = 0;
    memset(&args, 0, sizeof args);
    ck_assert_int_eq(scene_call(FOP_lookup, fill_root, SWEEP_MS), 0);
    ck_assert_int_eq(call_name(FOP_create, "f", NULL, 1), 0);
    for (unsigned i = 0; i < 400; i++) {
        change_at_random();
        snprintf(when, sizeof when, "seed %u, change %u", (unsigned)_i + 1, i);
        check_contents(when);
        drop_nameless();
        if (i % 50 == 49) { /* a new mount knows nothing */
            ck_assert_int_eq(call_data(FOP_fsync, 0, 0), 0);
            close_file();
            scene_end();
            scene_begin(&features_shard_xlator, options);
            ck_assert_int_eq(open_file("f"), 0);
        }
    }
    close_file();
    ck_assert_int_eq(call_name(FOP_unlink, "f", NULL, 0), 0);
    scene_run(SWEEP_MS);
    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        const struct stored_name *n = &scene.store[0].name[i];

        ck_assert_msg(!n->is_used || strcmp(n->name, ".shard") == 0 || strcmp(n->name, ".remove_me") == 0,
                      "%s is left", n->name);
    }
    scene_end();
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

static const char old_bytes[] = "The old contents of the file, in three blocks.", /* 46 bytes */
    new_bytes[] = "and these are the new ones of the other file";           /* 44 bytes */
enum {
    OLD = sizeof old_bytes - 1,
    NEW = sizeof new_bytes - 1,
    PATCH_AT = 40,
    PATCH = 30,
    CUT_TO = 20,
    CUT_EVEN = 32
};

static int
act_extend(void)
{
    args.bytes = new_bytes;
    return call_data(FOP_writev, PATCH_AT, PATCH);
}

static int
act_append(void)
{
    args.bytes = new_bytes;
    args.flags = O_APPEND;
    int ret = call_data(FOP_writev, 0, PATCH);

    args.flags = 0;
    return ret;
}

static int
act_cut(void)
{
    return call_data(FOP_ftruncate, CUT_TO, 0);
}

static int
act_cut_even(void)
{
    return call_data(FOP_ftruncate, CUT_EVEN, 0);
}

static int
act_unlink(void)
{
    return call_name(FOP_unlink, "f", NULL, 0);
}

static int
act_rename(void)
{
    return call_name(FOP_rename, "g", "f", 0);
}

static const struct shard_act {
    const char *name;
    int (*act)(void);
    unsigned kept;  /* bytes of the old contents that must stay */
    unsigned after; /* size after the change; 0: the file is another one, or gone */
} acts[] = {
    {"a write behind the end", act_extend, PATCH_AT, PATCH_AT + PATCH},
    {"an append", act_append, OLD, OLD + PATCH},
    {"a truncate", act_cut, CUT_TO, CUT_TO},
    {"a truncate to a block's end", act_cut_even, CUT_EVEN, CUT_EVEN},
    {"a removal", act_unlink, OLD, 0},
    {"a rename over the file", act_rename, OLD, 0},
};
enum { ACTS = sizeof acts / sizeof acts[0] };

static void
prepare_files(const struct shard_act *a)
{
    scene_clear(1, false);
    scene_begin(&features_shard_xlator, options);
    memset(&args, 0, sizeof args);
    ck_assert_int_eq(scene_call(FOP_lookup, fill_root, SWEEP_MS), 0);
    ck_assert_int_eq(call_name(FOP_create, "g", NULL, 2), 0);
    write_bytes(new_bytes, 0, NEW);
    close_file();
    ck_assert_int_eq(call_name(FOP_create, "f", NULL, 1), 0);
    write_bytes(old_bytes, 0, OLD);
    scene_run(SWEEP_MS);
    if (!a->after)
        close_file();
}

/* Reads the file; returns its size, or -errno. */
static int
read_file(const char *name)
{
    int ret = open_file(name), size;

    if (ret < 0)
        return ret;
    (void)call_data(FOP_fstat, 0, 0);
    size = (int)scene.stat.size;
    ret = call_data(FOP_readv, 0, LENGTH_MAX);
    close_file();
    if (ret != size)
        finding_add("%s: the size is %d, and a read returns %d", name, size, ret);
    return ret;
}

static unsigned
names_with(const char *part)
{
    unsigned count = 0;

    for (unsigned i = 0; i < STORED_NAMES_MAX; i++) {
        const struct stored_name *n = &scene.store[0].name[i];

        count += n->is_used && strstr(n->name, part) && n->name[0] != '.';
    }
    return count;
}

static void
check_changed(const struct shard_act *a, int ret)
{
    int size = read_file("f");

    if (ret >= 0 && size != (int)a->after)
        finding_add("the change was reported as done, and the size is %d instead of %u", size, a->after);
    if (size != (int)a->after && size != OLD)
        finding_add("the size is %d", size);
    if (size < (int)a->kept || memcmp(scene.text, old_bytes, a->kept) != 0)
        finding_add("the old contents are lost");
    if (ret >= 0 && size > (int)a->kept &&
        memcmp(scene.text + a->kept, new_bytes, (size_t)size - a->kept) != 0)
        finding_add("the new contents are lost");
}

static void
check_removed(const struct shard_act *a, int ret)
{
    int size = read_file("f");
    bool is_old = size == OLD && memcmp(scene.text, old_bytes, OLD) == 0;
    bool is_new = size == NEW && memcmp(scene.text, new_bytes, NEW) == 0;
    bool renames = a->act == act_rename, is_after = renames ? is_new : size == -ENOENT;

    if (!is_after && (!is_old || ret >= 0))
        finding_add("the name leads to a file of %d bytes", size);
    if (is_after && names_with("cc000000-0000-0000-0000-000000000001"))
        finding_add("%u blocks or markers of the removed file are left",
                    names_with("cc000000-0000-0000-0000-000000000001"));
    if (!is_after && names_with("cc000000-0000-0000-0000-000000000001") != 2)
        finding_add("the file has %u blocks and markers instead of 2",
                    names_with("cc000000-0000-0000-0000-000000000001"));
}

static void
run_fault(const struct shard_act *a, enum fault_kind kind, unsigned at)
{
    struct fault fault = {.child = 0, .at = at, .kind = kind, .err = EIO};
    const char *only = getenv("FAULTS_RUN");

    snprintf(run_text, sizeof run_text, "%s, %s at call %u", a->name,
             kind == FAULT_REFUSED ? "refused"
             : kind == FAULT_CUT   ? "death before"
                                   : "death after",
             at);
    if (only && strcmp(only, run_text) != 0)
        return;
    prepare_files(a);
    scene_arm(&fault, 1);
    int ret = a->act();

    if (kind == FAULT_REFUSED)
        scene_run(SWEEP_MS);
    close_file();
    scene_end();
    drop_nameless();
    scene_begin(&features_shard_xlator, options);
    scene_run(SWEEP_MS); /* the new mount sweeps before any call */
    if (a->after)
        check_changed(a, ret);
    else
        check_removed(a, ret);
    scene_run(SWEEP_MS);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

START_TEST(faults_lose_nothing)
{
    const struct shard_act *a = &acts[_i];

    prepare_files(a);
    scene_arm(NULL, 0);
    ck_assert_int_ge(a->act(), 0);
    scene_run(SWEEP_MS);
    unsigned calls = scene.calls[0];

    close_file();
    scene_end();
    ck_assert_uint_ge(calls, 4);
    findings = 0;
    for (unsigned at = 0; at < calls; at++) {
        run_fault(a, FAULT_REFUSED, at);
        run_fault(a, FAULT_CUT, at);
        run_fault(a, FAULT_CUT_AFTER, at);
    }
    ck_assert_uint_eq(findings, 0);
}
END_TEST

/* ---- lies of a brick, and large files -------------------------------------------------------- */

static uint8_t lied_block_size[8];
static const char *lied_name; /* of the shard whose gfid all shards get */

static void
lie_about_block_size(unsigned child, struct call_stack *stk, int *ret)
{
    (void)child;
    if (*ret >= 0 && dict_has(stk->reply.xdata, DICT_KEY_SHARD_BLOCK_SIZE))
        must(!dict_set_bytes(stk->reply.xdata, DICT_KEY_SHARD_BLOCK_SIZE, lied_block_size, 8));
}

static void
lie_about_shard(unsigned child, struct call_stack *stk, int *ret)
{
    bool makes = stk->call.fop == FOP_mknod || stk->call.fop == FOP_lookup;
    const char *name = makes && stk->call.loc.name ? stk->call.loc.name : "";
    char path[64];

    if (*ret < 0 || strlen(name) < GFID_TEXT_SIZE || !strchr(name, '.'))
        return;
    snprintf(path, sizeof path, "/.shard/%s", lied_name ? lied_name : name);
    stk->reply.stat.gfid = store_find(&scene.store[child], path)->stat.gfid;
}

START_TEST(block_sizes_that_no_option_allows_are_refused)
{
    static const uint64_t sizes[] = {
        0, 1, 15, 4096, (UINT64_C(4) << 20) - 1, (UINT64_C(4) << 40) + 1, INT64_MAX};

    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        scene_clear(1, false);
        scene_begin(&features_shard_xlator, options);
        memset(&args, 0, sizeof args);
        ck_assert_int_eq(call_name(FOP_create, "f", NULL, 1), 0);
        write_bytes("0123456789abcdef0123", 0, 20);
        close_file();
        scene_end();
        scene_begin(&features_shard_xlator, options);
        for (unsigned b = 0; b < 8; b++)
            lied_block_size[b] = (uint8_t)(sizes[i] >> (56 - 8 * b));
        scene.lie = lie_about_block_size;
        ck_assert_int_eq(open_file("f"), 0);
        ck_assert_int_eq(call_data(FOP_readv, 0, 20), -EIO);
        args.bytes = old_bytes;
        ck_assert_int_eq(call_data(FOP_writev, 0, 40), -EIO);
        scene.lie = NULL;
        close_file();
        scene_end();
    }
}
END_TEST

/* Each file's lock guards the list of its shards, so a shard may be in the list of one file only. */
START_TEST(one_shard_of_two_files_is_refused)
{
    char name[64];
    struct gfid gfid = {.b = {0xcc, [15] = 1}};

    scene_clear(1, false);
    scene_begin(&features_shard_xlator, options);
    memset(&args, 0, sizeof args);
    ck_assert_int_eq(call_name(FOP_create, "f", NULL, 1), 0);
    write_bytes("0123456789abcdef0123", 0, 20);
    struct fd *first = fd_ref(scene.fd);
    ck_assert_int_eq(call_name(FOP_create, "g", NULL, 2), 0);
    snprintf(name, sizeof name, "%s.1", GFID(&gfid));
    lied_name = name;
    scene.lie = lie_about_shard;
    args.bytes = new_bytes;
    ck_assert_int_eq(call_data(FOP_writev, 0, 20), -EIO);
    scene.lie = NULL;
    lied_name = NULL;
    fd_unref(scene.fd);
    scene.fd = first;
    write_bytes("0123456789abcdef0123", 0, 20);
    ck_assert_int_eq(call_data(FOP_fsync, 0, 0), 0);
    close_file();
    scene_end();
}
END_TEST

START_TEST(seek_in_a_huge_hole_asks_for_few_blocks)
{
    const uint64_t far = UINT64_C(1) << 44, end = INT64_MAX;

    scene_clear(1, false);
    scene_begin(&features_shard_xlator, options);
    memset(&args, 0, sizeof args);
    ck_assert_int_eq(call_name(FOP_create, "f", NULL, 1), 0);
    write_bytes("0123456789abcdef", 0, 16);
    write_bytes("0123456789abcdef", far, 16);
    ck_assert_int_eq(call_data(FOP_ftruncate, end, 0), 0);
    scene_arm(NULL, 0);
    ck_assert_int_eq(call_data(FOP_seek, 16, 0), 0);
    ck_assert_uint_eq(scene.next_offset, far);
    ck_assert_int_eq(call_data(FOP_seek, far + 16, 0), -ENXIO);
    ck_assert_uint_lt(scene.calls[0], 200);
    close_file();
    scene_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("shard");
    TCase *c = tcase_create("files in blocks");

    tcase_set_timeout(c, 600);
    tcase_add_loop_test(c, random_changes_match_an_array, 0, 8);
    tcase_add_loop_test(c, faults_lose_nothing, 0, ACTS);
    tcase_add_test(c, block_sizes_that_no_option_allows_are_refused);
    tcase_add_test(c, one_shard_of_two_files_is_refused);
    tcase_add_test(c, seek_in_a_huge_hole_asks_for_few_blocks);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
