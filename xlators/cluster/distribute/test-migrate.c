/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance of a volume in memory, with a fault at each of its calls.
 *
 * A file is on another subvolume than the hashed one of its name, with or without a linkto file; a rebalance
 * moves the file. The test counts the calls to each subvolume, and makes the rebalance again, once for each
 * call and each kind of fault there. After each fault:
 *
 *      a new mount finds the file by its name, with the whole contents
 *      the next rebalance moves the file, if that has not been done
 *      then the file is on the hashed subvolume alone, with contents, mode, times and xattrs, without marks
 *      and no lock is left
 *
 * The same for a symbolic link, and for a file with set-id and sticky bits of its own.
 *
 * In the second test another mount, which has the file open, makes a change after each number of calls: the
 * change is in the moved file. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "stack/coro-call.h"
#include "xlators/cluster/distribute/rebalance.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"

enum { FILE_NUMBER = 10, MANY_MS = 600000 };
static const char linkto[] = "trusted.glusterfs.dht.linkto";
static const char contents[] = "contents that are moved";

struct moved {
    const char *what;
    uint32_t mode;
    bool has_linkto;
};
static const struct moved kinds[] = {
    {"a file", S_IFREG | 0644, false},
    {"a file with a linkto file", S_IFREG | 0644, true},
    {"a set-id file with a linkto file", S_IFREG | 07644, true},
    {"a symbolic link", S_IFLNK | 0777, false},
    {"a symbolic link with a linkto file", S_IFLNK | 0777, true},
};
enum { KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- the scene ------------------------------------------------------------------------------- */

static unsigned hashed; /* subvolume of the name */

static void
fill_file_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
}

static void
begin_mount(void)
{
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
}

static unsigned
other(unsigned i)
{
    return (i + 1) % scene.count;
}

/* Makes the file on the wrong subvolume. */
static void
make_misplaced(const struct moved *k)
{
    scene_clear(2, false);
    begin_mount();
    hashed = subvolume_of_hash("f");
    struct stored_object *o = store_make(other(hashed), "/f", k->mode, FILE_NUMBER, contents);

    if (S_ISLNK(k->mode))
        snprintf(o->target, sizeof o->target, "%s", contents);
    o->stat.mtime = 12345;
    must(store_set_xattr(o, "user.a", "value", 5) == 0);
    if (k->has_linkto) {
        const char name[] = {'c', (char)('0' + other(hashed)), '\0'};

        o = store_make(hashed, "/f", S_IFREG | S_ISVTX, FILE_NUMBER, NULL);
        must(store_set_xattr(o, linkto, name, sizeof name) == 0);
    }
}

static struct rebalance_look last;

/* Runs a rebalance until its end, or until the mount is dead. Subvolumes that went down come up again. */
static struct rebalancer *
run_rebalance(void)
{
    struct rebalancer *r = rebalancer_new(scene.child[0]->parent, REBALANCE_FILES, 1, NULL, NULL);

    must(r != NULL && rebalancer_start(r) == 0);
    scene_run(5000);
    for (unsigned i = 0; i < scene.count && !scene.is_cut; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    if (!scene.is_cut)
        scene_run(MANY_MS);
    return r;
}

/* ---- checks ---------------------------------------------------------------------------------- */

static struct iatt found; /* by the latest LOOKUP */

static void
fill_read(struct call_stack *stk)
{
    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &found);
    stk->call.size = STORED_DATA_MAX;
    if (stk->call.fop == FOP_readv)
        stk->call.fd = fd_new_anonymous(stk->call.loc.inode, NULL);
}

static void
check_found(const struct moved *k, const char *when)
{
    int ret = scene_call(FOP_lookup, fill_file_name, 0);

    if (ret < 0 || (scene.stat.mode & S_IFMT) != (k->mode & S_IFMT)) {
        finding_add("%s: LOOKUP answers %s, mode %o", when, ret < 0 ? strerror(-ret) : "0", scene.stat.mode);
        return;
    }
    found = scene.stat;
    ret = scene_call(S_ISLNK(k->mode) ? FOP_readlink : FOP_readv, fill_read, 0);
    if (ret < 0 || strncmp(scene.text, contents, sizeof contents - 1) != 0)
        finding_add("%s: the contents are \"%.*s\" (%d)", when, (int)scene.text_len, scene.text, ret);
}

static void
check_moved(const struct moved *k)
{
    struct stored_object *was = store_find(&scene.store[other(hashed)], "/f");
    struct stored_object *o = store_find(&scene.store[hashed], "/f");
    struct stored_xattr *x = o ? store_xattr(o, "user.a") : NULL;

    if (was)
        finding_add("the name is still on c%u, with mode %o", other(hashed), was->stat.mode);
    if (!o || o->stat.mode != k->mode)
        finding_add("c%u has mode %o", hashed, o ? o->stat.mode : 0);
    if (o && o->stat.mtime != 12345)
        finding_add("the file has another time");
    if (!x || x->len != 5 || memcmp(x->bytes, "value", 5) != 0)
        finding_add("the file has lost an xattr");
    for (unsigned i = 0; o && i < o->xattr_count; i++) {
        if (strstr(o->xattr[i].key, "linkto") || strstr(o->xattr[i].key, "kiln"))
            finding_add("the file has the xattr %s", o->xattr[i].key);
    }
}

/* ---- faults ---------------------------------------------------------------------------------- */

static const char *const fault_names[] = {"refused", "unsent",     "unanswered",
                                          "late",    "mount dies", "mount dies after"};

static void
end_scene(struct rebalancer *r)
{
    rebalancer_look(r, &last);
    rebalancer_stop(r);
    scene_run(MANY_MS);
    rebalancer_free(r);
    scene_end();
}

static void
run_with_fault(const struct moved *k, const struct fault *f)
{
    const char *only = getenv("FAULTS_RUN");

    snprintf(run_text, sizeof run_text, "%s", k->what);
    if (f)
        snprintf(run_text, sizeof run_text, "%s, c%u %s at call %u", k->what, f->child, fault_names[f->kind],
                 f->at);
    if (only && strcmp(only, run_text) != 0)
        return;
    make_misplaced(k);
    scene_arm(f, f != NULL);
    end_scene(run_rebalance());
    begin_mount();
    check_found(k, "after the fault");
    end_scene(run_rebalance());
    begin_mount();
    check_found(k, "after the next rebalance");
    check_moved(k);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

START_TEST(a_fault_at_any_call_loses_no_file)
{
    const struct moved *k = &kinds[_i];
    unsigned calls[CHILDREN_MAX + 1];

    findings = 0;
    run_with_fault(k, NULL);
    make_misplaced(k);
    scene_arm(NULL, 0);
    struct rebalancer *r = run_rebalance();
    memcpy(calls, scene.calls, sizeof calls);
    end_scene(r);
    ck_assert_uint_eq(last.moved, 1);
    ck_assert_uint_eq(last.failed, 0);
    for (unsigned i = 0; i < 2; i++) {
        for (unsigned n = 0; n < calls[i] * FAULT_KINDS; n++) {
            struct fault f = {
                .child = i, .at = n / FAULT_KINDS, .kind = (enum fault_kind)(n % FAULT_KINDS), .err = EIO};

            run_with_fault(k, &f);
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", k->what, findings);
}
END_TEST

/* ---- a client meanwhile ---------------------------------------------------------------------- */

/* A call of another mount, which has the file open, after `delay` other calls of that mount. */
struct client {
    const char *what;
    enum fop fop;
    unsigned delay;
    int ret;
    bool has_ended;
};
static const struct client clients[] = {
    {.what = "write", .fop = FOP_writev},   {.what = "truncate", .fop = FOP_ftruncate},
    {.what = "chmod", .fop = FOP_setattr},  {.what = "setxattr", .fop = FOP_setxattr},
    {.what = "unlink", .fop = FOP_unlink},  {.what = "link", .fop = FOP_link},
};
enum { CLIENTS = sizeof clients / sizeof clients[0], DELAY_MAX = 90, CUT_SIZE = 8 };
static const char changed_contents[] = "conXYZts that are moved";

static void
fill_open(struct call_stack *stk)
{
    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &found);
    stk->call.flags = O_RDWR;
}

static void
fill_client_call(struct call_stack *stk, enum fop fop)
{
    stk->caller.pid = 100;
    stk->call.fop = fop;
    if (fop == FOP_unlink) {
        fill_file_name(stk);
        return;
    }
    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &found);
    if (fop == FOP_writev || fop == FOP_ftruncate)
        stk->call.fd = fd_ref(scene.fd);
    stk->call.offset = fop == FOP_writev ? 3 : CUT_SIZE;
    stk->call.payload[0] = (struct iovec){(void *)"XYZ", 3};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = 3;
    stk->call.stbuf.mode = 0600;
    stk->call.valid = SETATTR_MODE;
    if (fop == FOP_setxattr) {
        stk->call.dict = dict_new(&stk->arena);
        must(dict_set_text(stk->call.dict, "user.b", DICT_PTR, "b", 1) == 0);
    }
    if (fop == FOP_link)
        stk->call.loc2 = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "second"};
}

static void
client_go(void *arg)
{
    struct client *c = arg;

    for (unsigned n = 0; n <= c->delay; n++) {
        struct call_stack *stk = coro_call_new();

        fill_client_call(stk, n < c->delay ? FOP_access : c->fop);
        c->ret = coro_call(stk, scene.graph->top);
        call_stack_free(stk);
    }
    c->has_ended = true;
}

static void
check_client(const struct client *c)
{
    struct stored_object *o = store_find(&scene.store[hashed], "/f");
    const char *want = c->fop == FOP_writev ? changed_contents : contents;
    uint64_t size = c->fop == FOP_ftruncate ? CUT_SIZE : sizeof contents - 1;

    if (!c->has_ended || c->ret < 0)
        finding_add("the call of the client %s: %s", c->has_ended ? "fails" : "has no answer",
                    strerror(-c->ret));
    if (c->fop == FOP_unlink) {
        for (unsigned i = 0; i < scene.count; i++) {
            o = store_find(&scene.store[i], "/f");
            if (o && (o->stat.mode & 07777) != S_ISVTX)
                finding_add("the removed file is on c%u, with mode %o", i, o->stat.mode);
        }
        return;
    }
    for (unsigned i = 0; c->fop == FOP_link && i < scene.count && (!o || (o->stat.mode & 07777) == S_ISVTX);
         i++)
        o = store_find(&scene.store[i], "/f"); /* a file of two names may stay */
    if (!o || o->stat.size != size || memcmp(o->data, want, size) != 0)
        finding_add("the contents are \"%.*s\"", o ? (int)o->stat.size : 0, o ? (char *)o->data : "");
    if (o && c->fop == FOP_setattr && (o->stat.mode & 07777) != 0600)
        finding_add("the mode is %o", o->stat.mode);
    if (o && c->fop == FOP_setxattr && !store_xattr(o, "user.b"))
        finding_add("the xattr is lost");
}

static void
fill_second_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "second"};
}

static void
run_client(const struct moved *k, struct client c)
{
    const char *only = getenv("FAULTS_RUN");
    struct coroutine *co;

    snprintf(run_text, sizeof run_text, "%s, %s after %u calls", k->what, c.what, c.delay);
    if (only && strcmp(only, run_text) != 0)
        return;
    make_misplaced(k);
    struct rebalancer *r = rebalancer_new(scene.child[0]->parent, REBALANCE_FILES, 1, NULL, NULL);
    scene_begin_beside("");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
    check_found(k, "before");
    must(scene_call(FOP_open, fill_open, 0) >= 0);
    must(rebalancer_start(r) == 0);
    must(coroutine_new(coro_stacks(), client_go, &c, &co) == 0);
    coroutine_resume(co);
    scene_run_job(); /* the rebalance begins */
    scene_run(MANY_MS);
    rebalancer_stop(r);
    scene_run(MANY_MS);
    rebalancer_free(r);
    scene_end_beside(false);
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
    begin_mount();
    end_scene(run_rebalance());
    check_client(&c);
    begin_mount();
    if (c.fop == FOP_link && scene_call(FOP_lookup, fill_second_name, 0) < 0)
        finding_add("the new name is lost");
    scene_end();
}

START_TEST(changes_of_a_client_are_in_the_moved_file)
{
    findings = 0;
    for (unsigned kind = 0; kind < 2; kind++) {
        for (unsigned n = 0; n < DELAY_MAX; n++) {
            struct client c = clients[_i];

            c.delay = n;
            run_client(&kinds[kind], c);
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", clients[_i].what, findings);
}
END_TEST

/* ---- all ------------------------------------------------------------------------------------- */

static Suite *
test_suite(void)
{
    Suite *s = suite_create("migrate");
    TCase *t = tcase_create("faults");

    tcase_set_timeout(t, 600);
    tcase_add_loop_test(t, a_fault_at_any_call_loses_no_file, 0, KINDS);
    tcase_add_loop_test(t, changes_of_a_client_are_in_the_moved_file, 0, CLIENTS);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
