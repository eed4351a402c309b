/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Replacement of the graph below a mount point: the kernel's numbers, open files, locks, unfinished listings
 * and waiting lock requests stay valid, with each errno and each lack of memory during the replacement. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/test-must.h"
#include "fs/inode.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/test-kernel.h"

#define NEXT_OPTIONS " option mountpoint /tmp\n option takes-over on\n"

static uint64_t file, folder, handle, folder_handle, list_offset;
static unsigned locks_moved, lock_infos;
static bool is_lock_info_wrong;

/* The bricks' side of moving locks. */
static void
move_locks(struct call_stack *stk, int *ret)
{
    const char *name = stk->call.name;

    if (stk->call.fop == FOP_fgetxattr && name && strcmp(name, "trusted.glusterfs.lockinfo") == 0 &&
        !scene.fault_count) {
        *ret = 0;
        lock_infos++;
        stk->reply.dict = dict_new(&stk->arena);
        if (!is_lock_info_wrong)
            must(dict_set_bytes(stk->reply.dict, DICT_KEY_LOCKINFO, "locks", 5) == 0);
    }
    if (stk->call.fop == FOP_fsetxattr && *ret >= 0) {
        const struct dict_pair *p = dict_find(stk->call.dict, DICT_KEY_LOCKINFO);

        must(p && p->len == 5 && memcmp(p->v.bytes, "locks", 5) == 0);
        locks_moved++;
    }
}

static void
world_begin(void)
{
    struct fuse_lk_in lock = {.owner = 77, .lk = {.start = 5, .end = 9, .type = F_WRLCK}};
    struct fuse_read_in list = {.size = 100};

    locks_moved = lock_infos = 0;
    kernel_begin("");
    (void)store_make(0, "/f", S_IFREG | 0644, 3, "contents");
    (void)store_make(0, "/d", S_IFDIR | 0755, 4, NULL);
    for (int i = 0; i < 5; i++) {
        char path[16];

        snprintf(path, sizeof path, "/d/name%d", i);
        (void)store_make(0, path, S_IFREG | 0644, (uint8_t)(10 + i), "x");
    }
    must(kernel_lookup(FUSE_ROOT_ID, "f", &file) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &folder) == 0);
    must(kernel_open(FUSE_OPEN, file, O_RDWR, &handle) == 0);
    must(kernel_open(FUSE_OPENDIR, folder, O_RDONLY, &folder_handle) == 0);
    kernel.lie = move_locks;
    lock.fh = handle;
    kernel_request(FUSE_SETLK, file);
    kernel_put(&lock, sizeof lock);
    must(kernel_ask() == 0);
    list.fh = folder_handle;
    kernel_request(FUSE_READDIR, folder);
    kernel_put(&list, sizeof list);
    must(kernel_ask() == 0 && kernel.len > 0);
    list_offset = ((const struct fuse_dirent *)(const void *)kernel.bytes)->off;
}

static int
read_file(void)
{
    struct fuse_read_in in = {.fh = handle, .size = 100};

    kernel_request(FUSE_READ, file);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

static int
list_folder(uint64_t offset)
{
    struct fuse_read_in in = {.fh = folder_handle, .size = 4096, .offset = offset};

    kernel_request(FUSE_READDIR, folder);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

static void
close_all(void)
{
    must(kernel_release(FUSE_RELEASE, file, handle) == 0);
    must(kernel_release(FUSE_RELEASEDIR, folder, folder_handle) == 0);
}

static void
check_that_mount_serves(void)
{
    uint64_t number;

    must(read_file() == 0 && kernel.len == 8 && memcmp(kernel.bytes, "contents", 8) == 0);
    must(list_folder(list_offset) == 0 && kernel.len > 0); /* goes on where the old listing was */
    must(list_folder(0) == 0 && kernel.len > 0);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0 && number == file);
    kernel_forget(file, 1);
}

static int
change_graph(void)
{
    scene_begin_beside(NEXT_OPTIONS);
    return fuse_switch(scene.beside, scene.graph);
}

/* Ends the graph that no longer serves; `err` of the switch. */
static void
end_other(int err)
{
    must(err || !fuse_keeps(scene.graph, scene.beside));
    scene_end_beside(err != 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(open_files_and_locks_move_to_the_new_graph)
{
    kernel_clear();
    world_begin();
    must(change_graph() == 0);
    must(locks_moved == 1 && lock_infos == 1);
    must(fuse_keeps(scene.graph, scene.beside)); /* the unfinished listing */
    must(read_file() == 0 && kernel.len == 8);
    must(list_folder(list_offset) == 0 && kernel.len > 0);
    must(fuse_keeps(scene.graph, scene.beside));
    must(list_folder(0) == 0 && kernel.left == 1); /* rewinddir */
    end_other(0);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_graph_can_be_replaced_many_times)
{
    kernel_clear();
    world_begin();
    for (int i = 0; i < 4; i++) {
        must(change_graph() == 0);
        must(list_folder(0) == 0);
        end_other(0);
        check_that_mount_serves();
        kernel_forget(file, 0);
    }
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_file_that_cannot_be_opened_again_stays_with_the_old_graph)
{
    uint64_t other;

    kernel_clear();
    world_begin();
    must(kernel_open(FUSE_OPEN, file, O_RDONLY, &other) == 0);
    scene.store[0].name[0].is_used = false; /* another client has removed the name */
    scene.store[0].object[1].stat.nlink = 0;
    must(change_graph() == 0);
    must(fuse_keeps(scene.graph, scene.beside));
    must(list_folder(0) == 0 && fuse_keeps(scene.graph, scene.beside));
    must(read_file() == 0 && kernel.len == 8);
    kernel_request(FUSE_GETATTR, file); /* by its open file */
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    must(kernel_ask() == 0);
    struct fuse_link_in link = {.oldnodeid = file}; /* in a folder of the new graph */

    scene_arm(NULL, 0);
    kernel_request(FUSE_LINK, FUSE_ROOT_ID);
    kernel_put(&link, sizeof link);
    kernel_put_text("again");
    must(kernel_ask() == ESTALE && scene.calls[0] == 0);
    must(kernel_release(FUSE_RELEASE, file, other) == 0);
    kernel.left = 0;
    must(kernel_release(FUSE_RELEASE, file, handle) == 0);
    must(kernel.left == 1);
    must(kernel_release(FUSE_RELEASEDIR, folder, folder_handle) == 0);
    end_other(0);
    kernel_end();
}
END_TEST

START_TEST(a_request_under_way_prevents_the_switch)
{
    struct fault held = {.kind = FAULT_HELD};
    struct fuse_read_in in = {.size = 100};

    kernel_clear();
    world_begin();
    in.fh = handle;
    scene_begin_beside(NEXT_OPTIONS);
    scene_arm(&held, 1);
    kernel_request(FUSE_READ, file);
    kernel_put(&in, sizeof in);
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    must(fuse_switch(scene.beside, scene.graph) == -EBUSY);
    scene_release_held(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    must(fuse_switch(scene.beside, scene.graph) == 0);
    must(list_folder(0) == 0);
    end_other(0);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_mount_that_is_not_read_cannot_be_switched)
{
    kernel_clear();
    world_begin();
    scene_begin_beside(NEXT_OPTIONS);
    must(device_pause(mount_of(scene.beside->top)));
    must(fuse_switch(scene.beside, scene.graph) == -ENOTCONN);
    device_go_on(mount_of(scene.beside->top));
    end_other(-ENOTCONN);
    check_that_mount_serves();
    close_all();
    kernel_end();
}
END_TEST

/* ---- locks that wait ------------------------------------------------------------------------- */

static void
wait_for_lock_held(void)
{
    struct fault held = {.kind = FAULT_HELD};
    struct fuse_lk_in lock = {.fh = handle, .owner = 78, .lk = {.start = 5, .end = 9, .type = F_WRLCK}};

    scene_arm(&held, 1);
    kernel_request(FUSE_SETLKW, file);
    kernel_put(&lock, sizeof lock);
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    scene_arm(NULL, 0);
    kernel_listen();
    must(!kernel.is_answered);
}

START_TEST(a_waiting_lock_is_asked_for_again_in_the_new_graph)
{
    static const int errnos[] = {ENOTCONN, EAGAIN, 0};

    kernel_clear();
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        world_begin();
        wait_for_lock_held();
        must(change_graph() == 0);
        scene_arm(NULL, 0);
        scene_release_held(errnos[i]);
        scene_run(0);
        kernel_listen();
        must(kernel.is_answered && kernel.err == (errnos[i] == EAGAIN ? EAGAIN : 0));
        must(scene.calls[0] == (errnos[i] == EAGAIN ? 0 : 1));
        must(list_folder(0) == 0);
        end_other(0);
        close_all();
        kernel_end();
    }
}
END_TEST

static bool is_released;

/* The old brick grants the lock while the graph is being replaced. */
static void
grant_during_switch(struct call_stack *stk, int *ret)
{
    move_locks(stk, ret);
    if (stk->call.fop == FOP_lookup && !is_released) {
        is_released = true;
        scene_release_held(ENOTCONN);
    }
}

START_TEST(a_lock_that_is_answered_during_the_switch_waits_for_the_end)
{
    kernel_clear();
    world_begin();
    wait_for_lock_held();
    is_released = false;
    kernel.lie = grant_during_switch;
    must(change_graph() == 0);
    must(is_released);
    scene_run(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    must(list_folder(0) == 0);
    end_other(0);
    close_all();
    kernel_end();
}
END_TEST

START_TEST(a_waiting_lock_without_memory_for_the_new_call_fails)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        world_begin();
        wait_for_lock_held();
        must(change_graph() == 0);
        scene_starve(n);
        scene_release_held(ENOTCONN);
        scene_run(0);
        has_starved = scene_has_starved();
        scene_starve(0);
        kernel_listen();
        must(kernel.is_answered);
        must(kernel.err == 0 || (has_starved && (kernel.err == ENOTCONN || kernel.err == ENOMEM)));
        must(list_folder(0) == 0);
        end_other(0);
        close_all();
        kernel_end();
    }
}
END_TEST

/* ---- faults ---------------------------------------------------------------------------------- */

START_TEST(an_errno_during_the_switch_loses_no_file)
{
    bool has_struck = true;

    kernel_clear();
    for (unsigned at = 0; has_struck; at++) {
        struct fault f = {.at = at, .kind = FAULT_REFUSED, .err = EIO};

        world_begin();
        scene_begin_beside(NEXT_OPTIONS);
        scene_arm(&f, 1);
        int err = fuse_switch(scene.beside, scene.graph);

        has_struck = scene.fault[0].has_struck;
        scene_arm(NULL, 0);
        must(err == 0);
        must(read_file() == 0 && kernel.len == 8);
        must(list_folder(list_offset) == 0);
        must(list_folder(0) == 0);
        close_all();
        end_other(0);
        kernel_end();
    }
}
END_TEST

START_TEST(bricks_without_locks_have_none_to_move)
{
    kernel_clear();
    is_lock_info_wrong = true;
    world_begin();
    must(change_graph() == 0 && locks_moved == 0 && lock_infos == 1);
    must(list_folder(0) == 0);
    end_other(0);
    close_all();
    kernel_end();
    is_lock_info_wrong = false;
}
END_TEST

START_TEST(lack_of_memory_during_the_switch_loses_no_file)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        world_begin();
        scene_begin_beside(NEXT_OPTIONS);
        scene_starve(n);
        int err = fuse_switch(scene.beside, scene.graph);

        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == -ENOMEM));
        if (err)
            scene_end_beside(true);
        must(read_file() == 0 && kernel.len == 8);
        must(list_folder(list_offset) == 0);
        must(list_folder(0) == 0);
        close_all();
        if (!err)
            end_other(0);
        kernel_end();
    }
}
END_TEST

/* ---- layers that answer writes early --------------------------------------------------------- */

static int flush_err;

static void
answer_flush(struct call_stack *stk, int *ret)
{
    move_locks(stk, ret);
    if (stk->call.fop == FOP_flush && stk->call.hint.kind == HINT_FLUSH_OF_MOUNT)
        *ret = flush_err;
}

START_TEST(an_error_of_early_answered_writes_is_kept_for_the_file)
{
    static const int errnos[] = {0, -ENOSPC};
    struct fuse_flush_in in = {.lock_owner = 77};

    kernel_clear();
    kernel.brick_answers_early = true;
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        world_begin();
        flush_err = errnos[i];
        kernel.lie = answer_flush;
        must(change_graph() == 0);
        flush_err = 0;
        in.fh = handle;
        kernel_request(FUSE_FLUSH, file);
        kernel_put(&in, sizeof in);
        must(kernel_ask() == -errnos[i]);
        must(kernel_ask() == 0); /* the same request once more */
        must(list_folder(0) == 0);
        end_other(0);
        close_all();
        kernel_end();
    }
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        open_files_and_locks_move_to_the_new_graph,
        a_graph_can_be_replaced_many_times,
        a_file_that_cannot_be_opened_again_stays_with_the_old_graph,
        a_request_under_way_prevents_the_switch,
        a_mount_that_is_not_read_cannot_be_switched,
        a_waiting_lock_is_asked_for_again_in_the_new_graph,
        a_lock_that_is_answered_during_the_switch_waits_for_the_end,
        a_waiting_lock_without_memory_for_the_new_call_fails,
        an_errno_during_the_switch_loses_no_file,
        bricks_without_locks_have_none_to_move,
        lack_of_memory_during_the_switch_loses_no_file,
        an_error_of_early_answered_writes_is_kept_for_the_file,
    };
    Suite *s = suite_create("fuse-switch");
    TCase *t = tcase_create("switch");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
