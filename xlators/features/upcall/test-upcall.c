/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Which clients get which invalidations: the list of an object's watchers, and the layer above a storage that
 * answers at once. The messages of each fop are compared with stock's by
 * tests/fops/upcall-invalidations-match-stock.t. */
#include "xlators/features/test-layers.h"
#include "xlators/features/upcall/upcall.h"

extern const struct xlator_type features_upcall_xlator;

/* ---- the list -------------------------------------------------------------------------------- */

START_TEST(only_others_who_looked_lately_are_collected)
{
    struct watchers w;
    uint64_t ids[WATCHERS_MAX];

    watchers_init(&w);
    ck_assert_uint_eq(watchers_note(&w, 7, 100, 60), 0);
    ck_assert_uint_eq(watchers_note(&w, 3, 120, 60), 0);
    ck_assert_uint_eq(watchers_note(&w, 9, 130, 60), 0);
    ck_assert_uint_eq(watchers_collect(&w, 9, 161, 60, ids), 2);
    ck_assert_uint_eq(ids[0], 3);
    ck_assert_uint_eq(ids[1], 7);
    ck_assert_uint_eq(watchers_collect(&w, 0, 162, 60, ids), 2);
    ck_assert_uint_eq(ids[0], 3);
    ck_assert_uint_eq(ids[1], 9);
    ck_assert_uint_eq(watchers_note(&w, 3, 170, 60), 0);
    ck_assert_uint_eq(watchers_collect(&w, 0, 200, 60, ids), 1);
    ck_assert_uint_eq(ids[0], 3);
    watchers_fini(&w);
}
END_TEST

START_TEST(a_clock_that_wraps_does_no_harm)
{
    struct watchers w;
    uint64_t ids[WATCHERS_MAX];

    watchers_init(&w);
    watchers_note(&w, 1, UINT32_MAX - 5, 60);
    ck_assert_uint_eq(watchers_collect(&w, 0, 10, 60, ids), 1);
    ck_assert_uint_eq(watchers_collect(&w, 0, 100, 60, ids), 0);
    watchers_fini(&w);
}
END_TEST

START_TEST(the_list_is_bounded_and_the_oldest_goes)
{
    struct watchers w;
    uint64_t ids[WATCHERS_MAX];

    watchers_init(&w);
    for (unsigned i = 0; i < WATCHERS_MAX; i++)
        ck_assert_uint_eq(watchers_note(&w, 1000 + (i * 7) % WATCHERS_MAX, 10 + i, 100000), 0);
    ck_assert_uint_eq(w.count, WATCHERS_MAX);
    ck_assert_uint_eq(watchers_note(&w, 1, 5000, 100000), 1000);
    ck_assert_uint_eq(watchers_collect(&w, 0, 5000, 100000, ids), WATCHERS_MAX);
    ck_assert_uint_eq(ids[0], 1);
    for (unsigned i = 1; i < WATCHERS_MAX; i++)
        ck_assert_uint_lt(ids[i - 1], ids[i]);
    /* Expired watchers make room without a message, and a short list needs no malloc. */
    ck_assert_uint_eq(watchers_note(&w, 2, 5000, 10), 0);
    ck_assert_uint_eq(w.count, 2);
    ck_assert_ptr_eq(w.list, w.own);
    watchers_fini(&w);
}
END_TEST

/* ---- the layer ------------------------------------------------------------------------------- */

static struct {
    unsigned calls, count;
    uint64_t clients[WATCHERS_MAX];
    struct cache_invalidation what;
} told;

static struct inode *file, *dir;
static struct brick_client *a, *b;
static int storage_error;
static struct iatt shown;

static void
record(struct graph *g, const uint64_t *clients, unsigned count, const struct cache_invalidation *what)
{
    ck_assert_ptr_eq(g, &bench_graph);
    told.calls++;
    told.count = count;
    memcpy(told.clients, clients, count * sizeof *clients);
    told.what = *what;
}

static xl_verdict
storage(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (storage_error)
        return -storage_error;
    stk->reply.op_ret = 0;
    stk->reply.stat = shown;
    stk->reply.post.size = 4711;
    if (stk->call.fop == FOP_readdirp) {
        struct dirent_entry *e = arena_alloc(&stk->arena, sizeof *e);

        ck_assert_ptr_nonnull(e);
        *e = (struct dirent_entry){.name = "shown", .name_len = 5, .iatt = shown};
        stk->reply.entries = e;
    }
    return XL_DONE;
}

static void
setup_of(const char *const *options)
{
    bench_setup(&features_upcall_xlator, options, storage);
    ((struct upcall_private *)bench_xl->private)->send = record;
    memset(&told, 0, sizeof told);
    storage_error = 0;
    shown = (struct iatt){0};
    file = bench_inode("file", 1, S_IFREG);
    dir = bench_inode("dir", 2, S_IFDIR);
    a = bench_client("a");
    b = bench_client("b");
}

static void
setup(void)
{
    setup_of((const char *const[]){"cache-invalidation", "on", NULL});
}

static void
teardown(void)
{
    inode_unref(file);
    inode_unref(dir);
    if (a)
        bench_client_gone(a);
    bench_client_gone(b);
    bench_teardown();
}

static struct bench_call *
call(enum fop fop, struct brick_client *client, struct inode *inode)
{
    struct bench_call *c = bench_call(fop, client);

    c->stk->call.loc.inode = inode_ref(inode);
    return c;
}

static void
look(struct brick_client *client, struct inode *inode)
{
    ck_assert_int_eq(bench_run(call(FOP_stat, client, inode)), 0);
}

static void
write_by(struct brick_client *client, struct inode *inode)
{
    memset(&told, 0, sizeof told);
    ck_assert_int_eq(bench_run(call(FOP_writev, client, inode)), 0);
}

START_TEST(a_change_invalidates_other_watchers)
{
    look(a, file);
    look(b, file);
    write_by(b, file);
    ck_assert_uint_eq(told.calls, 1);
    ck_assert_uint_eq(told.count, 1);
    ck_assert_uint_eq(told.clients[0], a->id);
    ck_assert_uint_eq(told.what.flags, 0x18);
    ck_assert_uint_eq(told.what.event_type, 1);
    ck_assert_uint_eq(told.what.expire_seconds, 60);
    ck_assert_uint_eq(told.what.stat.size, 4711);
    ck_assert(gfid_equal(&told.what.gfid, &file->gfid));
    write_by(b, dir);
    ck_assert_uint_eq(told.calls, 0);
    write_by(NULL, file); /* a write by the daemon itself */
    ck_assert_uint_eq(told.count, 2);
}
END_TEST

START_TEST(failed_changes_send_nothing)
{
    look(a, file);
    storage_error = ENOSPC;
    memset(&told, 0, sizeof told);
    ck_assert_int_eq(bench_run(call(FOP_writev, b, file)), -ENOSPC);
    ck_assert_uint_eq(told.calls, 0);
}
END_TEST

/* The list still has the client's number, but sending finds no client for it. A call of that client that ends
 * later does not enter the list. */
START_TEST(a_client_that_has_gone_is_not_noted_again)
{
    struct bench_call *late = call(FOP_stat, a, dir);

    look(a, file);
    bench_client_gone(a);
    a = NULL;
    ck_assert_int_eq(bench_run(late), 0);
    write_by(b, dir);
    ck_assert_uint_eq(told.calls, 0);
}
END_TEST

START_TEST(listed_objects_are_watched)
{
    struct inode *found;

    shown = (struct iatt){.mode = S_IFREG | 0644, .gfid.b = {0xbb, [15] = 1}};
    ck_assert_int_eq(bench_run(call(FOP_readdirp, a, dir)), 0);
    ck_assert_ptr_nonnull(found = inode_find(bench_graph.inodes, &shown.gfid));
    write_by(b, found);
    ck_assert_uint_eq(told.count, 1);
    inode_unref(found);
}
END_TEST

START_TEST(created_and_looked_up_objects_are_watched)
{
    struct inode *found;
    struct bench_call *c = bench_call(FOP_mknod, b);

    look(a, dir);
    shown = (struct iatt){.mode = S_IFREG | 0644, .gfid.b = {0xbb, [15] = 2}};
    c->stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = "new"};
    ck_assert_int_eq(bench_run(c), 0);
    ck_assert_uint_eq(told.what.flags, 0x10);
    ck_assert(gfid_equal(&told.what.gfid, &dir->gfid));
    ck_assert_ptr_nonnull(found = inode_find(bench_graph.inodes, &shown.gfid));
    c = bench_call(FOP_lookup, a);
    c->stk->call.loc = (struct loc){.parent = inode_ref(dir), .name = "new"};
    ck_assert_int_eq(bench_run(c), 0);
    write_by(NULL, found);
    ck_assert_uint_eq(told.count, 2);
    inode_unref(found);
}
END_TEST

/* They would get no further invalidations. */
START_TEST(watchers_of_a_forgotten_inode_must_forget)
{
    struct inode *i = bench_inode("gone", 9, S_IFREG);

    look(a, i);
    look(b, i);
    memset(&told, 0, sizeof told);
    inode_forget(i);
    ck_assert_uint_eq(told.calls, 0);
    inode_unref(i);
    ck_assert_uint_eq(told.count, 2);
    ck_assert_uint_eq(told.what.flags, 0x100);
}
END_TEST

static void
set_xattr(const char *name)
{
    struct bench_call *c = call(FOP_setxattr, b, file);

    memset(&told, 0, sizeof told);
    c->stk->call.dict = dict_new(&c->stk->arena);
    ck_assert_int_eq(dict_set_text(c->stk->call.dict, name, DICT_PTR, "1", 1), 0);
    ck_assert_int_eq(bench_run(c), 0);
}

static int
watch(const char *format, unsigned from, unsigned count)
{
    struct bench_call *c = bench_call(FOP_ipc, a);
    char name[64];

    c->stk->call.cmd = 2;
    c->stk->call.xdata = dict_new(&c->stk->arena);
    for (unsigned i = 0; i < count; i++) {
        snprintf(name, sizeof name, format, from + i);
        ck_assert_int_eq(dict_set_text(c->stk->call.xdata, name, DICT_STR, "", 1), 0);
    }
    return bench_run(c);
}

START_TEST(only_cached_xattrs_are_sent)
{
    look(a, file);
    set_xattr("user.x");
    ck_assert_uint_eq(told.calls, 0);
    ck_assert_int_eq(watch("user.*", 0, 1), 0);
    set_xattr("user.x");
    ck_assert_uint_eq(told.count, 1);
    ck_assert_uint_eq(told.what.flags, 0x410);
    set_xattr("trusted.x");
    ck_assert_uint_eq(told.calls, 0);
}
END_TEST

START_TEST(names_of_xattrs_are_bounded)
{
    ck_assert_int_eq(watch("user.%u", 0, XATTR_NAMES_MAX), 0);
    ck_assert_int_eq(watch("user.%u", 0, XATTR_NAMES_MAX), 0);
    ck_assert_int_eq(watch("user.%u", 100000, 1), -ENOSPC);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("upcall");
    TCase *list = tcase_create("list"), *t = tcase_create("layer");

    tcase_add_test(list, only_others_who_looked_lately_are_collected);
    tcase_add_test(list, a_clock_that_wraps_does_no_harm);
    tcase_add_test(list, the_list_is_bounded_and_the_oldest_goes);
    suite_add_tcase(s, list);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_change_invalidates_other_watchers);
    tcase_add_test(t, failed_changes_send_nothing);
    tcase_add_test(t, a_client_that_has_gone_is_not_noted_again);
    tcase_add_test(t, listed_objects_are_watched);
    tcase_add_test(t, created_and_looked_up_objects_are_watched);
    tcase_add_test(t, watchers_of_a_forgotten_inode_must_forget);
    tcase_add_test(t, only_cached_xattrs_are_sent);
    tcase_add_test(t, names_of_xattrs_are_bounded);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
