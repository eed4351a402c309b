/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A rebalance of a volume with folders and files, after a subvolume was added, while another one leaves, with
 * full subvolumes: with each allocation failing in turn, and with faults at the calls. After a further
 * rebalance without faults a new mount finds every file by its name, with its contents; no lock is left. */
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

enum { FILES = 6, FIRST_FILE = 20, MANY_MS = 600000 };

/* ---- the volume ------------------------------------------------------------------------------ */

static const char *path_now;
static uint8_t number_now;
static const char *options_now = "";

static void
fill_name(struct call_stack *stk)
{
    struct gfid gfid = {.b = {0xbb, [15] = number_now}};

    stk->call.loc = loc_at(path_now);
    stk->call.mode = stk->call.fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) == 0);
}

static int
name_call(enum fop fop, const char *path, uint8_t number)
{
    path_now = path;
    number_now = number;
    return scene_call(fop, fill_name, 0);
}

static void
mount_begin(void)
{
    scene_begin(&cluster_distribute_xlator, options_now);
    (void)scene_call(FOP_lookup, fill_root_inode, 0);
}

static const char *
file_path(unsigned i)
{
    static char path[16];

    snprintf(path, sizeof path, i % 3 == 2 ? "/d/f%u" : "/f%u", i);
    return path;
}

static void
put_contents(const char *path)
{
    for (unsigned i = 0; i < scene.count; i++) {
        struct stored_object *o = store_find(&scene.store[i], path);

        if (o && !store_xattr(o, "trusted.glusterfs.dht.linkto")) {
            o->stat.size = strlen(path);
            memcpy(o->data, path, strlen(path));
        }
    }
}

/* A volume of two subvolumes, to which a third was added. */
static void
volume_make(void)
{
    scene_clear(3, false);
    scene.count = 2;
    options_now = "";
    mount_begin();
    must(name_call(FOP_mkdir, "/d", 10) == 0 && name_call(FOP_mkdir, "/d/s", 11) == 0);
    for (unsigned i = 0; i < FILES; i++) {
        must(name_call(FOP_mknod, file_path(i), (uint8_t)(FIRST_FILE + i)) == 0);
        put_contents(file_path(i));
    }
    scene_end();
    scene.count = 3;
}

/* ---- a rebalance ----------------------------------------------------------------------------- */

static enum { ROOMY, FULL_0, FULL_ALL, FEW_INODES, SPACES } space;

static void
answer_space(unsigned child, struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_statfs || *ret < 0)
        return;
    if (space == FULL_ALL || (space == FULL_0 && child == 0))
        stk->reply.statvfs.f_bavail = stk->reply.statvfs.f_bfree = 1;
    if (space == FEW_INODES && child == 0)
        stk->reply.statvfs.f_ffree = 1;
}

static struct rebalance_look last;

static void
children_return(void)
{
    for (unsigned i = 0; i < scene.count && !scene.is_cut; i++) {
        if (!scene.is_up[i])
            scene_child_up(i);
    }
}

static unsigned ended;
static uint64_t moved; /* files, by all rebalances */

static void
note_end(void *arg)
{
    (void)arg;
    ended++;
}

static void
rebalance(enum rebalance_kind kind, unsigned width, const struct fault *f, int64_t starve_at, bool stops)
{
    mount_begin();
    scene_arm(f, f != NULL);
    scene_starve(starve_at);
    struct rebalancer *r = rebalancer_new(scene.child[0]->parent, kind, width, note_end, NULL);

    if (r && rebalancer_start(r) == 0) {
        scene_run(stops ? 0 : 3000);
        if (stops)
            rebalancer_stop(r);
        children_return();
        if (!scene.is_cut)
            scene_run(MANY_MS);
    }
    scene_starve(0);
    if (r) {
        rebalancer_look(r, &last);
        rebalancer_stop(r);
        scene_run(MANY_MS);
        rebalancer_free(r);
    }
    if (store_locks() && !scene.is_cut)
        finding_add("locks are left: %s", store_locks_text());
    scene_end();
}

static void
check_files(void)
{
    mount_begin();
    for (unsigned i = 0; i < FILES; i++) {
        const char *path = file_path(i);
        unsigned copies = 0;

        if (name_call(FOP_lookup, path, 99) < 0 || scene.stat.gfid.b[15] != FIRST_FILE + i) {
            finding_add("LOOKUP of %s finds object %u", path, scene.ret < 0 ? 0 : scene.stat.gfid.b[15]);
            continue;
        }
        for (unsigned k = 0; k < scene.count; k++) {
            struct stored_object *o = store_find(&scene.store[k], path);

            copies += o && o->stat.size == strlen(path) && memcmp(o->data, path, strlen(path)) == 0;
        }
        if (!copies)
            finding_add("%s has lost its contents", path);
    }
    scene_end();
}

/* Rebalances with the fault, then without, and checks the files after each. */
static void
run(enum rebalance_kind kind, const struct fault *f, int64_t starve_at, bool stops)
{
    volume_make();
    log_set_level(LOG_CRITICAL);
    scene.lie = answer_space;
    if (kind == REBALANCE_DRAIN)
        options_now = " option decommissioned-bricks c0\n";
    rebalance(kind, 1 + (unsigned)starve_at % 3, f, starve_at, stops);
    moved += last.moved;
    check_files();
    rebalance(kind, 2, NULL, 0, false);
    moved += last.moved;
    if (last.state != REBALANCE_COMPLETED && space == ROOMY)
        finding_add("the second rebalance ends in state %u: %s", last.state, last.reason);
    check_files();
    scene.lie = NULL;
}

static const enum rebalance_kind kinds[] = {REBALANCE_LAYOUTS, REBALANCE_FILES, REBALANCE_DRAIN};

START_TEST(a_rebalance_loses_no_file)
{
    findings = 0;
    for (unsigned n = 0; n < 3 * SPACES * 2; n++) {
        space = n / 3 % SPACES;
        snprintf(run_text, sizeof run_text, "kind %u, space %u", n % 3, n / 3 % SPACES);
        ended = 0;
        run(kinds[n % 3], NULL, 0, n / 3 / SPACES);
        must(ended > 0);
    }
    must(moved > 10);
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_rebalance_survives_faults)
{
    findings = 0;
    for (unsigned n = 0; n < 3 * 3 * 60; n++) {
        struct fault f = {.child = n / 3 % 3,
                          .at = n / 9 * 3 + n % 2,
                          .kind = (enum fault_kind)((n / 9 + n) % FAULT_KINDS),
                          .err = n % 2 ? ENOSPC : EIO};

        space = n % 7 ? ROOMY : FULL_0;
        snprintf(run_text, sizeof run_text, "kind %u, c%u fault %u at call %u", n % 3, f.child, f.kind, f.at);
        run(kinds[n % 3], &f, 0, false);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

START_TEST(a_rebalance_survives_lack_of_memory)
{
    findings = 0;
    scene_init_starving();
    space = ROOMY;
    for (unsigned at = 1; at < 1200; at += 2) {
        snprintf(run_text, sizeof run_text, "kind %u, without memory at allocation %u", at / 2 % 3, at);
        run(kinds[at / 2 % 3], NULL, at, false);
    }
    ck_assert_msg(findings == 0, "%u findings", findings);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("distribute-rebalance");
    TCase *t = tcase_create("rebalance");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, a_rebalance_loses_no_file);
    tcase_add_test(t, a_rebalance_survives_faults);
    tcase_add_test(t, a_rebalance_survives_lack_of_memory);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
