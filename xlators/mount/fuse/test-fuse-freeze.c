/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The freeze of a mount before a newer program takes the mount over: what the freeze waits for, locks that
 * wait, what prevents a save, and lack of memory. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/test-must.h"
#include "fs/inode.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/test-handover.h"
#include "xlators/mount/fuse/test-kernel.h"

extern const struct xlator_type mount_fuse_xlator;

/* ---- the freeze ------------------------------------------------------------------------------ */

START_TEST(requests_wait_in_the_device_during_a_freeze)
{
    kernel_clear();
    handover_begin("");
    must(handover_freeze() == 1);
    must(!kernel.source);
    put_read(FUSE_READ, known.file, known.handle, 0, 100);
    kernel_queue();
    kernel.is_answered = false;
    fuse_thaw(scene.graph);
    kernel_wake();
    scene_run(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0 && kernel.len == 8);
    must(handover_freeze() == 1);
    put_read(FUSE_READ, known.file, known.handle, 0, 100);
    kernel_queue();
    handover_exec();
    must(handover_next("") == 0 && !kernel.is_answered);
    kernel_wake();
    scene_run(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0 && kernel.len == 8);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_mount_that_cannot_be_frozen_goes_on)
{
    kernel_clear();
    handover_begin("");
    must(fuse_freeze_begin(scene.graph) == 0);
    must(fuse_freeze_begin(scene.graph) == -ENOTCONN); /* nobody reads the device */
    fuse_thaw(scene.graph);
    scene_begin_beside(" option mountpoint /tmp\n option takes-over on\n");
    must(fuse_freeze_begin(scene.graph) == -ENOTCONN); /* the graph has no mount yet */
    must(fuse_switch(scene.beside, scene.graph) == 0);
    must(fuse_freeze_begin(scene.graph) == -EBUSY); /* a listing of the older graph is unfinished */
    must(list_folder(0) == 0);
    scene_end_beside(false);
    check_that_mount_serves();
    must(handover_freeze() == 1);
    fuse_thaw(scene.graph);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_file_of_an_older_graph_prevents_a_freeze)
{
    kernel_clear();
    handover_begin("");
    remove_file(); /* the file cannot be opened in another graph */
    scene_begin_beside(" option mountpoint /tmp\n option takes-over on\n");
    must(fuse_switch(scene.beside, scene.graph) == 0);
    must(list_folder(0) == 0);
    must(fuse_freeze_begin(scene.graph) == -EBUSY);
    must(kernel_release(FUSE_RELEASE, known.file, known.handle) == 0);
    must(handover_freeze() == 1);
    fuse_thaw(scene.graph);
    must(kernel_release(FUSE_RELEASE, known.program, known.program_handle) == 0);
    must(kernel_release(FUSE_RELEASEDIR, known.folder, known.folder_handle) == 0);
    scene_end_beside(false);
    kernel_end();
}
END_TEST

static bool
obstacle_is(const char *part)
{
    return strstr(fuse_freeze_obstacle(scene.graph), part) != NULL;
}

START_TEST(a_freeze_waits_for_a_request)
{
    struct fault held = {.kind = FAULT_HELD};

    kernel_clear();
    handover_begin("");
    scene_arm(&held, 1);
    put_read(FUSE_READ, known.file, known.handle, 0, 100);
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    must(handover_freeze() == 0 && obstacle_is("a request has not ended"));
    scene_release_held(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    must(handover_look() == 1 && obstacle_is("connection"));
    fuse_thaw(scene.graph);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_freeze_waits_for_calls_of_layers)
{
    kernel_clear();
    handover_begin("");
    must(graph_pin(scene.graph)); /* as a heal or a kept lock of a layer does */
    must(handover_freeze() == 0 && obstacle_is("a heal or a lock"));
    fuse_thaw(scene.graph);
    check_that_mount_serves();
    must(handover_freeze() == 0);
    graph_unpin(scene.graph);
    must(handover_look() == 1);
    fuse_thaw(scene.graph);
    close_all();
    kernel_end();
}
END_TEST

static int flush_err;

static void
answer_flush(struct call_stack *stk, int *ret)
{
    note_call(stk, ret);
    if (stk->call.fop == FOP_flush && stk->call.hint.kind == HINT_FLUSH_OF_MOUNT && stk->call.fd &&
        stk->call.fd->inode->gfid.b[15] == 3)
        *ret = flush_err;
}

START_TEST(early_answered_writes_are_written_out_before_the_save)
{
    struct fault held = {.kind = FAULT_HELD};
    uint64_t reader;

    kernel_clear();
    kernel.brick_answers_early = true;
    for (int fails = 0; fails < 2; fails++) {
        handover_begin("");
        must(kernel_open(FUSE_OPEN, known.file, O_RDONLY, &reader) == 0);
        flush_err = fails ? -ENOSPC : 0;
        kernel.lie = answer_flush;
        scene_arm(&held, 1);
        must(handover_freeze() == 0 && obstacle_is("written data"));
        scene_release_held(0);
        must(handover_look() == 1);
        must(calls_of[FOP_flush] == 2); /* not of the file that is open for reading */
        flush_err = 0;
        handover_exec();
        must(handover_next("") == 0);
        must(flush_file() == -(fails ? -ENOSPC : 0) && flush_file() == 0); /* reported once */
        must(kernel_release(FUSE_RELEASE, known.file, reader) == 0);
        close_all();
        kernel_end();
    }
}
END_TEST

START_TEST(a_nameless_file_of_a_layer_that_opens_by_name_prevents_the_save)
{
    struct xlator_type by_name = mount_fuse_xlator;

    by_name.traits |= LAYER_OPENS_BY_NAME;
    kernel_clear();
    for (int is_removed = 0; is_removed < 2; is_removed++) {
        handover_first();
        kernel.type = &by_name;
        kernel_begin("");
        make_objects();
        must(kernel_lookup(FUSE_ROOT_ID, "f", &known.file) == 0);
        must(kernel_lookup(FUSE_ROOT_ID, "d", &known.folder) == 0);
        must(kernel_open(FUSE_OPEN, known.file, O_RDWR, &known.handle) == 0);
        must(kernel_open(FUSE_OPENDIR, known.folder, O_RDONLY, &known.folder_handle) == 0);
        if (is_removed)
            remove_file();
        must(handover_freeze() == (is_removed ? -EOPNOTSUPP : 1));
        fuse_thaw(scene.graph);
        must(file_has("contents")); /* the mount goes on */
        kernel_end();
    }
}
END_TEST

/* ---- locks that wait ------------------------------------------------------------------------- */

/* The bricks answer the waiting lock with `err`; returns whether the mount can be saved then. */
static bool
call_off(int err)
{
    must(handover_freeze() == 0);
    must(calls_of[FOP_fgetxattr] > 1); /* asked again and again, not with each look */
    must(calls_of[FOP_fgetxattr] < 15);
    ck_assert_str_eq(latest_name, "glusterfs.intrlk.tposix.kblocked.0,5-5");
    scene_release_held(err);
    kernel_listen();
    return handover_look() == 1;
}

START_TEST(a_waiting_lock_is_asked_for_again_after_the_freeze)
{
    kernel_clear();
    for (int has_upgrade = 0; has_upgrade < 2; has_upgrade++) {
        handover_begin("");
        wait_for_lock(0);
        must(call_off(EINTR) && !kernel.is_answered);
        calls_clear();
        if (has_upgrade) {
            handover_exec();
            must(handover_next("") == 0);
        } else {
            fuse_thaw(scene.graph);
            scene_run(0);
            kernel_listen();
        }
        must(kernel.is_answered && kernel.err == 0 && calls_of[FOP_lk] == 1);
        check_that_mount_serves();
        close_all();
        kernel_end();
    }
}
END_TEST

START_TEST(a_waiting_lock_that_the_bricks_answer_is_not_asked_for_again)
{
    static const int errnos[] = {0, EAGAIN};

    kernel_clear();
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        handover_begin("");
        wait_for_lock(0);
        must(call_off(errnos[i]) && kernel.is_answered && kernel.err == errnos[i]);
        calls_clear();
        fuse_thaw(scene.graph);
        scene_run(0);
        must(!calls_of[FOP_lk]);
        close_all();
        kernel_end();
    }
}
END_TEST

START_TEST(a_waiting_lock_that_a_signal_interrupts_is_not_asked_for_again)
{
    kernel_clear();
    handover_begin("");
    wait_for_lock(0);
    struct fuse_interrupt_in in = {.unique = kernel.unique};

    kernel_request(FUSE_INTERRUPT, 0);
    kernel_put(&in, sizeof in);
    kernel_send();
    scene_run(0);
    must(call_off(EINTR) && kernel.is_answered && kernel.err == EINTR);
    calls_clear();
    fuse_thaw(scene.graph);
    scene_run(0);
    must(!calls_of[FOP_lk]);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_waiting_lock_whose_request_cannot_be_kept_is_not_called_off)
{
    kernel_clear();
    handover_begin("");
    wait_for_lock(100); /* a kernel whose request is longer than the mount keeps */
    must(handover_freeze() == 0 && obstacle_is("a request has not ended"));
    must(!calls_of[FOP_fgetxattr]);
    fuse_thaw(scene.graph);
    scene_release_held(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_waiting_lock_without_memory_for_its_withdrawal_is_called_off_later)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        handover_begin("");
        wait_for_lock(0);
        must(fuse_freeze_begin(scene.graph) == 0);
        scene_starve(n);
        must(fuse_freeze_look(scene.graph) == 0);
        scene_run(0);
        has_starved = scene_has_starved();
        scene_starve(0);
        scene_run(20);
        must(handover_look() == 0 && calls_of[FOP_fgetxattr]);
        scene_release_held(EINTR);
        must(handover_look() == 1);
        kernel.is_answered = false;
        fuse_thaw(scene.graph);
        scene_run(0);
        kernel_listen();
        must(kernel.is_answered && kernel.err == 0);
        close_all();
        kernel_end();
    }
}
END_TEST

START_TEST(a_waiting_lock_without_memory_for_its_request_fails)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        handover_begin("");
        wait_for_lock(0);
        must(handover_freeze() == 0);
        scene_starve(n);
        scene_release_held(EINTR);
        has_starved = scene_has_starved();
        scene_starve(0);
        kernel_listen();
        must(kernel.is_answered == has_starved && (!has_starved || kernel.err == ENOMEM));
        must(handover_look() == 1);
        fuse_thaw(scene.graph);
        scene_run(0);
        kernel_listen();
        must(kernel.is_answered && kernel.err == (has_starved ? ENOMEM : 0));
        close_all();
        kernel_end();
    }
}
END_TEST

/* ---- lack of memory -------------------------------------------------------------------------- */

START_TEST(a_freeze_without_memory_loses_nothing)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    kernel.brick_answers_early = true;
    for (int64_t n = 1; has_starved; n++) {
        struct parcel to = {0};

        handover_begin("");
        scene_starve(n);
        int err = fuse_freeze_begin(scene.graph);
        bool has_begun = !err;
        int result = err ? err : handover_look();

        err = result == 1 ? fuse_save(scene.graph, &to) : result;
        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == -ENOMEM));
        parcel_free(&to);
        if (has_begun)
            fuse_thaw(scene.graph);
        must(kernel.source);
        int written = write_to(known.file, known.handle, 0);

        /* ENOMEM: earlier writes may not have been written out */
        must(written == 0 || (has_starved && written == ENOMEM));
        must(read_file() == 0 && list_folder(known.list_offset) == 0);
        close_all();
        kernel_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        requests_wait_in_the_device_during_a_freeze,
        a_mount_that_cannot_be_frozen_goes_on,
        a_file_of_an_older_graph_prevents_a_freeze,
        a_freeze_waits_for_a_request,
        a_freeze_waits_for_calls_of_layers,
        early_answered_writes_are_written_out_before_the_save,
        a_nameless_file_of_a_layer_that_opens_by_name_prevents_the_save,
        a_waiting_lock_is_asked_for_again_after_the_freeze,
        a_waiting_lock_that_the_bricks_answer_is_not_asked_for_again,
        a_waiting_lock_that_a_signal_interrupts_is_not_asked_for_again,
        a_waiting_lock_whose_request_cannot_be_kept_is_not_called_off,
        a_waiting_lock_without_memory_for_its_withdrawal_is_called_off_later,
        a_waiting_lock_without_memory_for_its_request_fails,
        a_freeze_without_memory_loses_nothing,
    };
    Suite *s = suite_create("fuse-freeze");
    TCase *t = tcase_create("freeze");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
