/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance from one replica set to another one, whose process dies in the middle of a change of the
 * target: one brick of the target has not got the change yet, or has lost its connection before.
 *
 * Then a client writes the file by its name, and reports success. After the next rebalance, the file has the
 * client's write, whichever brick of the target the client and the rebalance read. No mount heals in between,
 * as if the heal came late. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/test-must.h"
#include "log/log.h"
#include "xlators/cluster/distribute/rebalance.h"
#include "xlators/cluster/distribute/test-subvolumes.h"
#include "xlators/cluster/test-children.h"

extern const struct xlator_type cluster_replicate_xlator;

enum { BRICKS = 4, FILE_NUMBER = 10, MANY_MS = 600000, BEFORE = 5, AFTER = 5 };
static const char contents[] = "contents that are moved";
static const char changed[] = "conXYZts that are moved";

static bool has_old_copy; /* the target has a linkto file, which an earlier attempt has called complete */
static unsigned target; /* the first brick of the set that gets the file */
static struct iatt found;
static char pair_options[128];

static void
begin_mount(unsigned read_child)
{
    snprintf(pair_options, sizeof pair_options, " option read-subvolume c%u\n option read-hash-mode 0\n"
             " option background-self-heal-count 0\n",
             read_child);
    scene.pair_options = pair_options;
    scene_begin(&cluster_distribute_xlator, "");
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
}

static void
make_misplaced(uint32_t mode)
{
    scene_clear(BRICKS, false);
    scene.has_pairs = true;
    pair_type = &cluster_replicate_xlator;
    begin_mount(0);
    target = subvolume_of_hash("f") & ~1u;
    scene_end();
    for (unsigned i = 0; i < BRICKS; i++) {
        if ((i & ~1u) != target) {
            (void)store_make(i, "/f", mode, FILE_NUMBER, contents);
        } else if (has_old_copy) {
            struct stored_object *o = store_make(i, "/f", S_IFREG | S_ISVTX, FILE_NUMBER, "former");
            const char name[] = {'r', (char)('0' + !(target / 2)), '\0'};

            must(store_set_xattr(o, "trusted.glusterfs.dht.linkto", name, sizeof name) == 0);
            must(store_set_xattr(o, "trusted.kiln.migrate.done", "1", 2) == 0);
        }
    }
}

static void
run_rebalance(void)
{
    struct rebalancer *r =
        rebalancer_new(scene.child[0]->parent->parent, REBALANCE_FILES, 1, NULL, NULL);

    must(r != NULL && rebalancer_start(r) == 0);
    scene_run(5000);
    for (unsigned i = 0; i < scene.count && !scene.is_cut; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
    if (!scene.is_cut)
        scene_run(MANY_MS);
    rebalancer_stop(r);
    scene_run(MANY_MS);
    rebalancer_free(r);
}

static void
fill_name(struct call_stack *stk)
{
    stk->call.loc = (struct loc){.parent = inode_root(scene.graph->inodes), .name = "f"};
}

static void
fill_call(struct call_stack *stk)
{
    stk->caller.pid = 100;
    stk->call.loc.inode = inode_link(scene.graph->inodes, NULL, NULL, &found);
    stk->call.flags = O_RDWR;
    stk->call.size = STORED_DATA_MAX;
    if (stk->call.fop == FOP_open)
        return;
    stk->call.fd = fd_ref(scene.fd);
    if (stk->call.fop == FOP_readv)
        return;
    stk->call.offset = 3;
    stk->call.payload[0] = (struct iovec){(void *)"XYZ", 3};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = 3;
}

/* Opens the file by its name. Returns false if a call fails. */
static bool
open_file(void)
{
    int ret = scene_call(FOP_lookup, fill_name, 0);

    if (ret < 0)
        return false;
    found = scene.stat;
    return scene_call(FOP_open, fill_call, 0) >= 0;
}

static void
run(uint32_t mode, const struct fault faults[2], unsigned count, unsigned client_reads, unsigned walk_reads)
{
    const char *only = getenv("FAULTS_RUN");

    snprintf(run_text, sizeof run_text,
             "mode %o, c%u fault %u at %u, c%u fault %u at %u, reads %u and %u", mode, faults[0].child,
             faults[0].kind, faults[0].at, faults[1].child, faults[1].kind, faults[1].at, client_reads,
             walk_reads);
    if (only && strcmp(only, run_text) != 0)
        return;
    make_misplaced(mode);
    begin_mount(0);
    scene_arm(faults, count);
    run_rebalance();
    scene_end();

    begin_mount(target + client_reads);
    bool has_written = open_file() && scene_call(FOP_writev, fill_call, 0) >= 0;
    if (!has_written)
        finding_add("the client cannot write: %s", strerror(-scene.ret));
    scene_end();

    begin_mount(target + walk_reads);
    run_rebalance();
    scene_end();

    begin_mount(0);
    if (!open_file() || scene_call(FOP_readv, fill_call, 0) < 0)
        finding_add("the file cannot be read: %s", strerror(-scene.ret));
    else if (scene.text_len != sizeof changed - 1 || memcmp(scene.text, changed, scene.text_len) != 0)
        finding_add("the contents are \"%.*s\"", (int)scene.text_len, scene.text);
    scene_end();
    for (unsigned i = 0; i < BRICKS && count == 0; i++) {
        struct stored_object *o = store_find(&scene.store[i], "/f");

        if ((i & ~1u) != target && o)
            finding_add("the name is still on c%u, with mode %o", i, o->stat.mode);
        for (unsigned n = 0; o && n < o->xattr_count; n++) {
            if ((i & ~1u) == target && (strstr(o->xattr[n].key, "linkto") || strstr(o->xattr[n].key, "kiln")))
                finding_add("c%u has the xattr %s", i, o->xattr[n].key);
        }
    }
    if (store_locks())
        finding_add("locks are left: %s", store_locks_text());
}

static const uint32_t modes[] = {S_IFREG | 0644, S_IFREG | 07644};

/* Returns the number of calls to a brick of the target, and checks the rebalance without a fault. */
static unsigned
count_calls(uint32_t mode)
{
    const struct fault none[2] = {{.child = 0}};

    log_set_level(LOG_CRITICAL);
    findings = 0;
    make_misplaced(mode);
    begin_mount(0);
    scene_arm(NULL, 0);
    run_rebalance();
    unsigned calls = scene.calls[target];
    scene_end();
    run(mode, none, 0, 0, 0);
    ck_assert_uint_eq(findings, 0);
    return calls;
}

START_TEST(a_half_made_change_of_the_target_loses_no_write)
{
    struct fault faults[2];
    uint32_t mode = modes[_i];
    unsigned calls = count_calls(mode);

    for (unsigned n = 0; n < calls * 4; n++) {
        unsigned lost = target + n % 2, dies = target + !(n % 2), at = n / 4;

        /* the bricks' calls of one change differ by a few in number */
        for (unsigned died = at < BEFORE ? 0 : 2 * (at - BEFORE); died < 2 * (at + AFTER); died++) {
            faults[0] = (struct fault){.child = lost, .at = at, .kind = n & 2 ? FAULT_UNSENT : FAULT_LATE};
            faults[1] = (struct fault){
                .child = dies, .at = died / 2, .kind = died % 2 ? FAULT_CUT : FAULT_CUT_AFTER};
            for (unsigned reads = 0; reads < 4; reads++)
                run(mode, faults, 2, reads / 2, reads % 2);
        }
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

/* A replica of the target has one fault, and the migrator may go on. In half of the runs the target has a
 * linkto file of an earlier attempt, which is no copy. */
START_TEST(a_fault_of_a_replica_loses_no_write)
{
    unsigned calls = count_calls(modes[_i / 2]) + 8;

    has_old_copy = _i % 2;
    for (unsigned n = 0; n < calls * 2 * FAULT_KINDS; n++) {
        struct fault f[2] = {{.child = target + n % 2,
                              .at = n / 2 % calls,
                              .kind = (enum fault_kind)(n / 2 / calls),
                              .err = EIO}};

        f[1] = f[0];
        for (unsigned reads = 0; reads < 4; reads++)
            run(modes[_i / 2], f, 1, reads / 2, reads % 2);
    }
    has_old_copy = false;
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("migrate-replicas");
    TCase *t = tcase_create("replicas");

    tcase_set_timeout(t, 120);
    tcase_add_loop_test(t, a_half_made_change_of_the_target_loses_no_write, 0,
                        sizeof modes / sizeof modes[0]);
    tcase_add_loop_test(t, a_fault_of_a_replica_loses_no_write, 0, 2 * sizeof modes / sizeof modes[0]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
