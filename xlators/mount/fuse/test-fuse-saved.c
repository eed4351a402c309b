/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The mount in the hands of a newer program of its process: what the kernel has of the old program (numbers,
 * open files, listings, locks) is valid in the new program; files that cannot be opened again; and a saved
 * state that is cut, wrong, or read without memory. */
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

/* ---- an upgrade ------------------------------------------------------------------------------ */

START_TEST(numbers_and_files_stay_valid_in_each_new_program)
{
    uint64_t fresh, fresh_handle = 0, number;

    kernel_clear();
    handover_begin("");
    for (int i = 0; i < 3; i++) {
        upgrade("");
        check_that_mount_serves();
        if (i == 0) { /* a number and a file of the second program, for the third */
            must(kernel_lookup(known.folder, "name3", &fresh) == 0 && fresh >> NUMBER_SHIFT == 1);
            must(kernel_open(FUSE_OPEN, fresh, O_RDWR, &fresh_handle) == 0);
            must(fresh_handle >> NUMBER_SHIFT == 1);
        }
        must(kernel_lookup(known.folder, "name3", &number) == 0 && number == fresh);
        kernel_forget(fresh, 1);
        must(write_to(fresh, fresh_handle, 0) == 0 && getattr_of(fresh) == 0);
    }
    must(kernel_release(FUSE_RELEASE, fresh, fresh_handle) == 0);
    close_all();
    must(!kernel.unmounts);
    kernel_end();
    must(kernel.unmounts == 1);
}
END_TEST

START_TEST(an_object_that_the_kernel_forgets_gets_a_new_number)
{
    uint64_t number;

    kernel_clear();
    handover_begin("");
    must(kernel_lookup(FUSE_ROOT_ID, "e", &number) == 0 && number == known.other_folder);
    upgrade("");
    kernel_forget(known.other_folder, 1);
    must(kernel_lookup(FUSE_ROOT_ID, "e", &number) == 0 && number == known.other_folder);
    kernel_forget(known.other_folder, 2); /* both lookups are known to the new program */
    upgrade("");
    must(kernel_lookup(FUSE_ROOT_ID, "e", &number) == 0 && number >> NUMBER_SHIFT == 2);
    must(getattr_of(number) == 0);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(an_object_is_looked_up_before_its_first_request)
{
    struct fuse_rename_in in = {.newdir = 0};

    kernel_clear();
    handover_begin("");
    upgrade("");
    calls_clear();
    must(getattr_of(known.other_folder) == 0 && calls_of[FOP_lookup] == 1 && calls_of[FOP_stat] == 1);
    must(getattr_of(known.program) == 0 && calls_of[FOP_lookup] == 1); /* open files were looked up before */
    upgrade("");
    calls_clear();
    in.newdir = known.other_folder;
    kernel_request(FUSE_RENAME, FUSE_ROOT_ID);
    kernel_put(&in, sizeof in);
    kernel_put_text("s");
    kernel_put_text("moved");
    must(kernel_ask() == 0 && calls_of[FOP_lookup] == 1 && calls_of[FOP_rename] == 1);
    close_all();
    kernel_end();
}
END_TEST

static void
fail_call(struct call_stack *stk, int *ret)
{
    note_call(stk, ret);
    *ret = -ENOTCONN;
}

START_TEST(an_object_whose_lookup_fails_is_looked_up_again)
{
    kernel_clear();
    handover_begin("");
    upgrade("");
    calls_clear();
    kernel.lie = fail_call;
    must(getattr_of(known.other_folder) == ENOTCONN && calls_of[FOP_lookup] == 1);
    kernel.lie = note_call;
    must(getattr_of(known.other_folder) == 0 && calls_of[FOP_lookup] == 2);
    must(getattr_of(known.other_folder) == 0 && calls_of[FOP_lookup] == 2);
    close_all();
    kernel_end();
}
END_TEST

/* Returns the offset behind the listed names. */
static uint64_t
offset_of_last_name(void)
{
    uint64_t off = 0;

    for (size_t at = 0; at < kernel.len;) {
        const struct fuse_dirent *e = (const void *)(kernel.bytes + at);

        off = e->off;
        at += FUSE_DIRENT_SIZE(e);
    }
    return off;
}

START_TEST(the_state_of_objects_and_files_goes_to_the_new_program)
{
    static const char options[] = " option kernel-writeback-cache on\n";

    kernel_clear();
    kernel.uid = 2000;
    handover_begin(options);
    must(list_folder(0) == 0);
    must(list_folder(offset_of_last_name()) == 0);
    uint64_t end = offset_of_last_name();

    struct fuse_file *f = (struct fuse_file *)(uintptr_t)known.handle; /* NOLINT: the mount's own address */

    atomic_store(&f->err, -ENOSPC);
    upgrade(options);
    must(mount_now()->writes_back && atomic_load(&mount_now()->kills_privs)); /* of the kernel's INIT */
    calls_clear();
    must(list_folder(end) == 0 && kernel.len == 0 && !calls_of[FOP_readdirp]);
    must(write_to(known.file, known.handle, 0) == ENOSPC && write_to(known.file, known.handle, 0) == 0);
    must(write_to(known.program, known.program_handle, FUSE_WRITE_KILL_SUIDGID) == 0);
    must((stored("/s")->stat.mode & 07777) == 0755 && calls_of[FOP_fstat] == 1); /* before the write */
    must(flush_file() == 0 && calls_of[FOP_flush] == 1); /* the file has had a lock */
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_mount_can_be_saved_before_init)
{
    uint64_t number;

    kernel_clear();
    scene_clear(1, false);
    handover_first();
    kernel_begin_next("");
    make_objects();
    must(handover_freeze() == 1);
    handover_exec();
    must(handover_next("") == 0 && !kernel.is_answered);
    kernel_init();
    must(kernel.init.flags & FUSE_HANDLE_KILLPRIV_V2);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0 && getattr_of(number) == 0);
    kernel_end();
}
END_TEST

/* ---- files that cannot be opened again ------------------------------------------------------- */

/* A sharer of the volume has removed the file. The client layer, which has the file's fd, answers calls of
 * the pid that stands for the file. */
static void
answer_for_saved_file(struct call_stack *stk, int *ret)
{
    bool is_file = stk->call.loc.inode && stk->call.loc.inode->gfid.b[15] == 3;

    note_call(stk, ret);
    if (*ret != -ESTALE || !is_file || stk->caller.pid < 1)
        return;
    stk->reply.stat = scene.store[0].object[1].stat;
    if (stk->call.fop == FOP_open)
        stk->reply.fd = fd_new(stk->call.loc.inode, NULL, stk->call.flags, false);
    *ret = 0;
}

START_TEST(a_removed_file_is_opened_by_the_clients_fd)
{
    kernel_clear();
    handover_begin("");
    remove_file();
    must(handover_freeze() == 1);
    handover_exec();
    kernel.lie = answer_for_saved_file;
    must(handover_next("") == 0);
    must(latest_open_pid >= 1);
    must(lost_files() == 0 && file_has("contents"));
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_again_answers_its_close_only)
{
    kernel_clear();
    handover_begin("");
    remove_file();
    for (int i = 0; i < 2; i++) {
        upgrade("");
        must(lost_files() == 1);
        must(read_file() == EBADFD && flush_file() == EBADFD);
        must(write_to(known.file, known.handle, 0) == EBADFD);
        put_lock(FUSE_SETLKW, LOCK_OWNER);
        must(kernel_ask() == EBADFD);
        must(list_folder(known.list_offset) == 0 && kernel.len > 0); /* the others are well */
        must(write_to(known.program, known.program_handle, 0) == 0);
    }
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_lost_folder_cannot_be_listed)
{
    kernel_clear();
    handover_begin("");
    for (int i = 0; i < 5; i++) {
        char path[16];

        snprintf(path, sizeof path, "/d/name%d", i);
        stored(path)->stat.mode = 0;
    }
    stored("/d")->stat.nlink = 0;
    must(handover_freeze() == 1);
    handover_exec();
    must(handover_next("") == 0 && lost_files() == 1);
    must(list_folder(known.list_offset) == EBADFD && list_folder(0) == EBADFD);
    must(file_has("contents"));
    close_all();
    kernel_end();
}
END_TEST

/* ---- lack of memory, and wrong bytes --------------------------------------------------------- */

/* Returns the reason why a new program's mount refuses the saved bytes, or "". */
static const char *
restore_refusal(void)
{
    saved.at = 0;
    only_restores = true;
    const char *error = scene_refusal(kernel.type, " option mountpoint /tmp\n", true);

    must(error); /* at least ECANCELED */
    return strstr(error, strerror(ECANCELED)) ? "" : error;
}

START_TEST(a_saved_state_that_is_cut_is_refused)
{
    kernel_clear();
    handover_begin("");
    must(handover_freeze() == 1);
    handover_exec();
    size_t all = saved.used;

    ck_assert_str_eq(restore_refusal(), "");
    for (saved.used = 0; saved.used < all; saved.used++) {
        saved.is_broken = false;
        must(strstr(restore_refusal(), strerror(EBADMSG)));
    }
    saved.is_broken = false;
    must(handover_next("") == 0);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_saved_state_with_wrong_bytes_is_refused_or_read_within_bounds)
{
    unsigned refused = 0;

    kernel_clear();
    handover_begin("");
    must(handover_freeze() == 1);
    handover_exec();
    for (size_t i = 0; i < saved.used; i++) {
        char was = saved.bytes[i];

        saved.bytes[i] = (char)~was;
        saved.is_broken = false;
        refused += strstr(restore_refusal(), strerror(EBADMSG)) != NULL;
        saved.bytes[i] = was;
    }
    must(refused > 30); /* counts, lengths, indexes, the device */
    saved.is_broken = false;
    must(handover_next("") == 0);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_restoration_without_memory_is_refused)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    handover_begin("");
    wait_for_lock(0);
    must(handover_freeze() == 0);
    scene_release_held(EINTR);
    must(handover_look() == 1);
    handover_exec();
    for (int64_t n = 1; has_starved; n++) {
        saved.is_broken = false;
        scene_starve(n);
        const char *refusal = restore_refusal();

        has_starved = scene_has_starved();
        scene_starve(0);
        must(!*refusal == !has_starved || kernel.unmounts);
    }
    kernel_exec_end();
}
END_TEST

START_TEST(a_new_program_without_memory_opens_all_files_or_fails)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        handover_begin("");
        must(handover_freeze() == 1);
        handover_exec();
        saved.at = 0;
        only_restores = false;
        kernel_begin_next("");
        scene_starve(n);
        int err = fuse_go_on(scene.graph);

        scene_run(0);
        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == -ENOMEM));
        if (!err) {
            unsigned lost = lost_files();

            must(lost == 0 || has_starved);
            must(getattr_of(known.other_folder) == 0 && (read_file() == 0 || lost));
            close_all();
        }
        kernel_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        numbers_and_files_stay_valid_in_each_new_program,
        an_object_that_the_kernel_forgets_gets_a_new_number,
        an_object_is_looked_up_before_its_first_request,
        an_object_whose_lookup_fails_is_looked_up_again,
        the_state_of_objects_and_files_goes_to_the_new_program,
        a_mount_can_be_saved_before_init,
        a_removed_file_is_opened_by_the_clients_fd,
        a_file_that_cannot_be_opened_again_answers_its_close_only,
        a_lost_folder_cannot_be_listed,
        a_saved_state_that_is_cut_is_refused,
        a_saved_state_with_wrong_bytes_is_refused_or_read_within_bounds,
        a_restoration_without_memory_is_refused,
        a_new_program_without_memory_opens_all_files_or_fails,
    };
    Suite *s = suite_create("fuse-saved");
    TCase *t = tcase_create("saved");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
