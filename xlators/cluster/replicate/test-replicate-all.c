/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Operations of a replicated volume that go to every child without a transaction (locks of applications,
 * locks moved to another fd, statfs, ipc, places), and changes of data and attributes that
 * test-replica-changes.h does not have: each with faults at each of its calls, and with each allocation
 * failing. OPERATION_RUN=TEXT in the environment makes only the run of that text. */
#include <check.h>
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/test-must.h"
#include "stack/lock-cmd.h"
#include "xlators/cluster/replicate/test-replicas.h"

static const struct {
    unsigned count;
    const char *options;
} shapes[] = {{2, ""},
              {3, ""},
              {3, " option arbiter-count 1\n"},
              {3, " option quorum-type none\n option eager-lock off\n"},
              {2, " option quorum-type fixed\n option quorum-count 2\n option post-op-delay-secs 0\n"}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

static void
volume_make(size_t shape)
{
    scene_clear(shapes[shape].count, strstr(shapes[shape].options, "arbiter") != NULL);
    store_make_all("/f", S_IFREG | 0644, 3, "contents");
    store_make_all("/d", S_IFDIR | 0755, 5, NULL);
    store_make_all("/d/x", S_IFREG | 0644, 6, "x");
    for (unsigned i = 0; i < scene.count; i++) {
        must(store_set_xattr(store_find(&scene.store[i], "/f"), "user.a", "value", 5) == 0);
        must(store_set_xattr(store_find(&scene.store[i], "/d"), "user.a", "value", 5) == 0);
    }
}

/* ---- the operations -------------------------------------------------------------------------- */

static uint32_t lock_cmd, lock_type;

static void
fill_lock(struct call_stack *stk)
{
    static const uint8_t owner[8] = {7};

    stk->call.cmd = lock_cmd;
    stk->call.type = lock_type;
    stk->call.flock = (struct fop_flock){.type = lock_type, .len = 4};
    stk->call.volume = "above";
    stk->call.name = "n";
    stk->caller.lk_owner = (struct lk_owner){.len = sizeof owner, .bytes = owner};
}

static int
act_lock(uint32_t cmd, uint32_t type)
{
    lock_cmd = cmd;
    lock_type = type;
    return replica_call(FOP_lk, NULL, fill_lock);
}

static int
act_getlk(void)
{
    return act_lock(0, FLOCK_WRITE);
}

static int
act_setlk(void)
{
    return act_lock(1, FLOCK_WRITE);
}

static int
act_setlkw(void)
{
    return act_lock(2, FLOCK_READ);
}

static int
act_unlock(void)
{
    return act_lock(1, FLOCK_UNLOCK);
}

static const char *name_of_xattr;

static void
fill_xattr_name(struct call_stack *stk)
{
    stk->call.name = name_of_xattr;
    stk->call.has_name = 1;
}

static int
act_getxattr(enum fop fop, const char *path, const char *name)
{
    name_of_xattr = name;
    return replica_call(fop, path, fill_xattr_name);
}

static int
act_lockinfo(void)
{
    return act_getxattr(FOP_fgetxattr, NULL, "trusted.glusterfs.lockinfo");
}

static int
act_pathinfo(void)
{
    return act_getxattr(FOP_getxattr, "/f", "trusted.glusterfs.pathinfo");
}

static int
act_clear_locks(void)
{
    return act_getxattr(FOP_getxattr, "/f", "glusterfs.clrlk.tposix.kall");
}

static int
act_interrupt(void)
{
    return act_getxattr(FOP_fgetxattr, NULL, "glusterfs.intrlk.tposix.kblocked.0,0-0");
}

static void
fill_lockinfo(struct call_stack *stk)
{
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_bytes(stk->call.dict, DICT_KEY_LOCKINFO, "\0\0\0\0", 4) == 0);
}

static int
act_set_lockinfo(void)
{
    return replica_call(FOP_fsetxattr, NULL, fill_lockinfo);
}

static int
act_ipc(void)
{
    return replica_call(FOP_ipc, "/", NULL);
}

static int
act_statfs(void)
{
    return replica_call(FOP_statfs, "/d", NULL);
}

static int
act_flush(void)
{
    return replica_call(FOP_flush, NULL, NULL);
}

static int
act_fsyncdir(void)
{
    return replica_call(FOP_fsyncdir, NULL, NULL);
}

static void
fill_seek(struct call_stack *stk)
{
    stk->call.offset = 3;
}

static int
act_seek(void)
{
    return replica_call(FOP_seek, NULL, fill_seek);
}

static int
act_checksum(void)
{
    return replica_call(FOP_rchecksum, NULL, NULL);
}

static void
fill_range(struct call_stack *stk)
{
    stk->call.offset = 2;
    stk->call.size = 4;
}

static int
act_fallocate(void)
{
    return replica_call(FOP_fallocate, NULL, fill_range);
}

static int
act_discard(void)
{
    return replica_call(FOP_discard, NULL, fill_range);
}

static int
act_zerofill(void)
{
    return replica_call(FOP_zerofill, NULL, fill_range);
}

static int
act_fsync(void)
{
    return replica_call(FOP_fsync, NULL, NULL);
}

static void
fill_attributes(struct call_stack *stk)
{
    stk->call.valid = SETATTR_MODE;
    stk->call.stbuf.mode = 0600;
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "user.b", DICT_PTR, "value", 5) == 0);
    stk->call.name = "user.a";
}

static int
act_fsetattr(void)
{
    return replica_call(FOP_fsetattr, NULL, fill_attributes);
}

static int
act_fsetxattr(void)
{
    return replica_call(FOP_fsetxattr, NULL, fill_attributes);
}

static int
act_fremovexattr(void)
{
    return replica_call(FOP_fremovexattr, NULL, fill_attributes);
}

static void
fill_xattrop(struct call_stack *stk)
{
    stk->call.dict = dict_new(&stk->arena);
    must(dict_set_text(stk->call.dict, "trusted.mine", DICT_PTR, "\0\0\0\1", 4) == 0);
}

static int
act_xattrop(void)
{
    return replica_call(FOP_xattrop, "/f", fill_xattrop);
}

static int
act_fxattrop(void)
{
    return replica_call(FOP_fxattrop, NULL, fill_xattrop);
}

static void
fill_open(struct call_stack *stk)
{
    stk->call.flags = O_RDWR | O_TRUNC;
}

static int
act_open_truncate(void)
{
    return replica_call(FOP_open, "/f", fill_open);
}

static int
act_opendir(void)
{
    return replica_call(FOP_opendir, "/d", NULL);
}

static int
act_readdir(void)
{
    return replica_call(FOP_readdirp, NULL, NULL);
}

static int
act_access(void)
{
    return replica_call(FOP_access, "/f", NULL);
}

static int
act_lookup(void)
{
    return replica_call(FOP_lookup, "/f", NULL);
}

static const struct operation {
    const char *name;
    int (*act)(void);
    const char *opened; /* the object that is open; NULL: none */
    bool changes;
} operations[] = {
    {"getlk", act_getlk, "/f", false},
    {"setlk", act_setlk, "/f", false},
    {"setlkw", act_setlkw, "/f", false},
    {"unlock", act_unlock, "/f", false},
    {"lockinfo", act_lockinfo, "/f", false},
    {"set lockinfo", act_set_lockinfo, "/f", false},
    {"pathinfo", act_pathinfo, NULL, false},
    {"clear locks", act_clear_locks, NULL, false},
    {"interrupt", act_interrupt, "/f", false},
    {"ipc", act_ipc, NULL, false},
    {"statfs", act_statfs, NULL, false},
    {"flush", act_flush, "/f", false},
    {"fsyncdir", act_fsyncdir, "/d", false},
    {"seek", act_seek, "/f", false},
    {"rchecksum", act_checksum, "/f", false},
    {"fallocate", act_fallocate, "/f", true},
    {"discard", act_discard, "/f", true},
    {"zerofill", act_zerofill, "/f", true},
    {"fsync", act_fsync, "/f", false},
    {"fsetattr", act_fsetattr, "/f", true},
    {"fsetxattr", act_fsetxattr, "/f", true},
    {"fsetxattr of a folder", act_fsetxattr, "/d", true},
    {"fremovexattr", act_fremovexattr, "/f", true},
    {"xattrop", act_xattrop, NULL, true},
    {"fxattrop", act_fxattrop, "/f", true},
    {"open with O_TRUNC", act_open_truncate, NULL, true},
    {"opendir", act_opendir, NULL, false},
    {"readdirp", act_readdir, "/d", false},
    {"access", act_access, NULL, false},
    {"lookup", act_lookup, NULL, false},
};
enum { OPERATIONS = sizeof operations / sizeof operations[0] };

/* ---- runs ------------------------------------------------------------------------------------ */

static void
fill_read_write(struct call_stack *stk)
{
    stk->call.flags = O_RDWR;
}

static bool
is_left_out(void)
{
    const char *only = getenv("OPERATION_RUN");

    return only && strcmp(only, run_text) != 0;
}

static void
operation_begin(size_t shape, const struct operation *o, bool is_viewed)
{
    volume_make(shape);
    replicas_begin(shapes[shape].options);
    if (is_viewed)
        scene_lookup_all();
    if (o->opened)
        must(replica_call(strcmp(o->opened, "/d") == 0 ? FOP_opendir : FOP_open, o->opened,
                          fill_read_write) == 0);
}

/* Ends the scene: locks are gone, and copies become equal. */
static void
operation_end(const struct operation *o)
{
    scene_run(5000);
    if (store_locks() && !scene.is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene_arm(NULL, 0);
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    for (int n = 0; n < 5 && (copies_difference() || counters_left()); n++)
        scene_lookup_all();
    scene_run(5000);
    if (copies_difference())
        finding_add("after the heal %s", copies_difference());
    else if (o->changes && counters_left())
        finding_add("after the heal %s", counters_left());
    scene_end();
}

START_TEST(an_operation_survives_faults)
{
    const struct operation *o = &operations[_i];

    findings = 0;
    for (size_t n = 0; n < SHAPES * 2 * CHILDREN_MAX * 12 * FAULT_CUT; n++) {
        size_t shape = n % SHAPES, rest = n / SHAPES;
        struct fault f = {.child = rest / 2 % CHILDREN_MAX,
                          .at = rest / 2 / CHILDREN_MAX % 12,
                          .kind = (enum fault_kind)(rest / 2 / CHILDREN_MAX / 12),
                          .err = n % 3 ? EIO : EAGAIN};

        if (f.child >= shapes[shape].count)
            continue;
        snprintf(run_text, sizeof run_text, "shape %zu, %s, c%u fault %u at call %u", shape, o->name, f.child,
                 f.kind, f.at);
        if (is_left_out())
            continue;
        operation_begin(shape, o, rest % 2);
        scene_arm(&f, 1);
        (void)o->act();
        operation_end(o);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", o->name, findings);
}
END_TEST

START_TEST(an_operation_needs_its_quorum)
{
    const struct operation *o = &operations[_i];

    findings = 0;
    for (size_t n = 0; n < SHAPES * 8; n++) {
        size_t shape = n % SHAPES;
        unsigned down = (unsigned)(n / SHAPES) & ((1u << shapes[shape].count) - 1);

        snprintf(run_text, sizeof run_text, "shape %zu, %s, children %u down", shape, o->name, down);
        if (is_left_out())
            continue;
        operation_begin(shape, o, n % 2);
        for (unsigned i = 0; i < scene.count; i++) {
            if (down & 1u << i)
                scene_child_down(i);
        }
        int ret = o->act();

        if (down == 0 && ret < 0 && ret != -ENODATA)
            finding_add("fails: %s", strerror(-ret));
        if (down == (1u << shapes[shape].count) - 1 && ret != -ENOTCONN)
            finding_add("without children: %s", ret < 0 ? strerror(-ret) : "success");
        operation_end(o);
    }
    ck_assert_msg(findings == 0, "%s: %u findings", o->name, findings);
}
END_TEST

START_TEST(an_operation_without_memory_leaves_nothing)
{
    const struct operation *o = &operations[_i];

    findings = 0;
    scene_init_starving();
    for (size_t n = 0; n < SHAPES * 2; n++) {
        bool has_starved = true;

        for (int64_t at = 1; has_starved; at++) {
            snprintf(run_text, sizeof run_text, "shape %zu, %s, allocation %d", n / 2, o->name, (int)at);
            if (is_left_out()) {
                has_starved = at < 500;
                continue;
            }
            operation_begin(n / 2, o, n % 2);
            scene_starve(at);
            int ret = o->act();

            has_starved = scene_has_starved();
            scene_starve(0);
            if (ret < 0 && ret != -ENODATA && !(has_starved && ret == -ENOMEM))
                finding_add("fails: %s", strerror(-ret));
            operation_end(o);
        }
    }
    ck_assert_msg(findings == 0, "%s: %u findings", o->name, findings);
}
END_TEST

/* ---- replies that are joined ----------------------------------------------------------------- */

static unsigned lockinfo_form; /* for each child two bits: none, a pair, short, an integer */

static void
answer_lockinfo(unsigned child, struct call_stack *stk, int *ret)
{
    static const uint8_t pair[] = {0, 0, 0, 1, 'a', 'b'};
    unsigned form = lockinfo_form >> 2 * child & 3;

    if (stk->call.fop != FOP_fgetxattr)
        return;
    *ret = 0;
    stk->reply.dict = dict_new(&stk->arena);
    if (form == 1)
        must(dict_set_bytes(stk->reply.dict, DICT_KEY_LOCKINFO, pair, sizeof pair) == 0);
    else if (form == 2)
        must(dict_set_bytes(stk->reply.dict, DICT_KEY_LOCKINFO, pair, 3) == 0);
    else if (form == 3)
        must(dict_set_int(stk->reply.dict, DICT_KEY_LOCKINFO, 9) == 0);
}

START_TEST(lockinfo_of_all_children_is_joined)
{
    for (unsigned n = 0; n < 64; n++) {
        operation_begin(1, &operations[4], true);
        lockinfo_form = n;
        scene.lie = answer_lockinfo;
        must(act_lockinfo() == 0);
        scene.lie = NULL;
        operation_end(&operations[4]);
    }
}
END_TEST

static uint32_t holder_type[3];

static void
answer_holder(unsigned child, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_lk)
        return;
    *ret = 0;
    stk->reply.flock = (struct fop_flock){.type = holder_type[child], .pid = child + 1};
}

START_TEST(the_first_child_that_knows_a_holder_answers)
{
    for (unsigned n = 0; n < 8; n++) {
        operation_begin(1, &operations[0], true);
        for (unsigned i = 0; i < 3; i++)
            holder_type[i] = n >> i & 1 ? FLOCK_WRITE : FLOCK_UNLOCK;
        scene.lie = answer_holder;
        scene_arm(NULL, 0);
        must(act_getlk() == 0);
        must(scene.calls[ANY_CHILD] == (n & 1 ? 1 : n & 2 ? 2 : 3));
        scene.lie = NULL;
        operation_end(&operations[0]);
    }
}
END_TEST

static unsigned unlocked_children; /* bit i: child i */

/* Loses the reply of child 1 to a lock for lack of memory. */
static void
lose_lock_reply(unsigned child, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_lk)
        return;
    if (stk->call.type == FLOCK_UNLOCK) {
        unlocked_children |= 1u << child;
    } else if (child == 1) {
        *ret = -ENOMEM;
        stk->reply.shortage = SHORTAGE_UNREAD;
    }
}

START_TEST(a_lock_whose_reply_is_lost_is_released)
{
    unlocked_children = 0;
    operation_begin(1, &operations[1], true);
    scene.lie = lose_lock_reply;
    must(act_setlk() == -ENOMEM);
    scene.lie = NULL;
    must(unlocked_children == 7);
    operation_end(&operations[1]);
}
END_TEST

static unsigned refusing_child;

static void
refuse_lock(unsigned child, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_lk)
        return;
    if (stk->call.type == FLOCK_UNLOCK)
        unlocked_children |= 1u << child;
    else if (child == refusing_child)
        *ret = -EAGAIN;
}

/* After the first child's grant, a lock that does not wait goes to all the rest, and a lock that waits to the
 * next child. */
START_TEST(a_refused_lock_is_released)
{
    static const struct {
        unsigned child;
        uint32_t cmd;
        unsigned asked, unlocked;
    } cases[] = {{0, LK_SET, 1, 0}, {0, LK_SET_WAIT, 1, 0}, {1, LK_SET, 3, 5}, {1, LK_SET_WAIT, 2, 1},
                 {2, LK_SET, 3, 3}, {2, LK_SET_WAIT, 3, 3}};

    for (unsigned n = 0; n < sizeof cases / sizeof cases[0]; n++) {
        operation_begin(1, &operations[1], true);
        unlocked_children = 0;
        refusing_child = cases[n].child;
        scene.lie = refuse_lock;
        scene_arm(NULL, 0);
        must(act_lock(cases[n].cmd, FLOCK_WRITE) == -EAGAIN);
        must(unlocked_children == cases[n].unlocked);
        unsigned unlocks = (unsigned)__builtin_popcount(unlocked_children);
        must(scene.calls[ANY_CHILD] == cases[n].asked + unlocks);
        scene.lie = NULL;
        operation_end(&operations[1]);
    }
}
END_TEST

static void
answer_place(unsigned child, struct call_stack *stk, int *ret)
{
    char text[16];

    if (stk->call.fop != FOP_getxattr)
        return;
    *ret = 0;
    snprintf(text, sizeof text, "<place%u>", child);
    stk->reply.dict = dict_new(&stk->arena);
    if (child != 1)
        must(dict_set_text(stk->reply.dict, stk->call.name, DICT_STR, text, (uint32_t)strlen(text) + 1) == 0);
}

START_TEST(places_are_joined)
{
    operation_begin(1, &operations[6], true);
    scene.lie = answer_place;
    must(act_pathinfo() == 0);
    must(act_getxattr(FOP_getxattr, "/f", "glusterfs.pathinfo") == 0);
    scene.lie = NULL;
    operation_end(&operations[6]);
}
END_TEST

static void
answer_free_space(unsigned child, struct call_stack *stk, int *ret)
{
    (void)ret;
    stk->reply.statvfs.f_bavail = 100 - 10 * child;
}

START_TEST(the_child_with_the_least_space_answers)
{
    operation_begin(1, &operations[10], true);
    scene.lie = answer_free_space;
    must(act_statfs() == 0);
    scene.lie = NULL;
    operation_end(&operations[10]);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("replicate-all");
    TCase *t = tcase_create("all");

    tcase_set_timeout(t, 60);
    tcase_add_loop_test(t, an_operation_survives_faults, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_needs_its_quorum, 0, OPERATIONS);
    tcase_add_loop_test(t, an_operation_without_memory_leaves_nothing, 0, OPERATIONS);
    tcase_add_test(t, lockinfo_of_all_children_is_joined);
    tcase_add_test(t, the_first_child_that_knows_a_holder_answers);
    tcase_add_test(t, a_lock_whose_reply_is_lost_is_released);
    tcase_add_test(t, a_refused_lock_is_released);
    tcase_add_test(t, places_are_joined);
    tcase_add_test(t, the_child_with_the_least_space_answers);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
