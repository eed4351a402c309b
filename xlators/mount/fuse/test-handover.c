/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/mount/fuse/test-handover.h"

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
#include "xlators/mount/fuse/test-kernel.h"

extern const struct xlator_type mount_fuse_xlator;

struct known known;

/* ---- the brick ------------------------------------------------------------------------------- */

unsigned calls_of[FOP_COUNT]; /* number of calls of each operation */
int32_t latest_open_pid;
char latest_name[128];

void
note_call(struct call_stack *stk, int *ret)
{
    (void)ret;
    calls_of[stk->call.fop]++;
    if (stk->call.fop == FOP_open)
        latest_open_pid = stk->caller.pid;
    if (stk->call.name)
        snprintf(latest_name, sizeof latest_name, "%s", stk->call.name);
}

void
calls_clear(void)
{
    memset(calls_of, 0, sizeof calls_of);
    latest_name[0] = '\0';
}

struct stored_object *
stored(const char *path)
{
    return store_find(&scene.store[0], path);
}

/* ---- the requests ---------------------------------------------------------------------------- */

void
put_read(uint32_t opcode, uint64_t number, uint64_t fh, uint64_t offset, uint32_t size)
{
    struct fuse_read_in in = {.fh = fh, .offset = offset, .size = size};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
}

int
read_file(void)
{
    put_read(FUSE_READ, known.file, known.handle, 0, 100);
    return kernel_ask();
}

bool
file_has(const char *text)
{
    return read_file() == 0 && kernel.len == strlen(text) && memcmp(kernel.bytes, text, kernel.len) == 0;
}

int
list_folder(uint64_t offset)
{
    put_read(FUSE_READDIR, known.folder, known.folder_handle, offset, 4096);
    return kernel_ask();
}

int
write_to(uint64_t number, uint64_t fh, uint32_t write_flags)
{
    struct fuse_write_in in = {.fh = fh, .size = 3, .write_flags = write_flags};

    kernel_request(FUSE_WRITE, number);
    kernel_put(&in, sizeof in);
    kernel_put("abc", 3);
    return kernel_ask();
}

int
getattr_of(uint64_t number)
{
    kernel_request(FUSE_GETATTR, number);
    kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
    return kernel_ask();
}

int
flush_file(void)
{
    struct fuse_flush_in in = {.fh = known.handle, .lock_owner = LOCK_OWNER};

    kernel_request(FUSE_FLUSH, known.file);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

void
put_lock(uint32_t opcode, uint64_t owner)
{
    struct fuse_lk_in in = {
        .fh = known.handle, .owner = owner, .lk = {.start = 5, .end = 9, .type = F_WRLCK}};

    kernel_request(opcode, known.file);
    kernel_put(&in, sizeof in);
}

void
close_all(void)
{
    must(kernel_release(FUSE_RELEASE, known.file, known.handle) == 0);
    must(kernel_release(FUSE_RELEASE, known.program, known.program_handle) == 0);
    must(kernel_release(FUSE_RELEASEDIR, known.folder, known.folder_handle) == 0);
    must(kernel_release(FUSE_RELEASEDIR, FUSE_ROOT_ID, known.root_handle) == 0);
}

void
wait_for_lock(size_t more_bytes)
{
    struct fault held = {.kind = FAULT_HELD};
    char zeros[128] = {0};

    scene_arm(&held, 1);
    put_lock(FUSE_SETLKW, LOCK_OWNER + 1);
    kernel_put(zeros, more_bytes);
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    scene_arm(NULL, 0);
    kernel_listen();
    must(!kernel.is_answered);
    calls_clear();
}

void
remove_file(void)
{
    scene.store[0].name[0].is_used = false;
    scene.store[0].object[1].stat.nlink = 0;
}

/* ---- the mount ------------------------------------------------------------------------------- */

struct parcel saved;
static unsigned programs;
bool only_restores; /* the new program's mount ends after fuse_restore() */

static int
start_restored(struct xlator *xl)
{
    int err = fuse_restore(xl->graph, &saved);

    if (!err && only_restores)
        err = -ECANCELED;
    return err ? err : mount_fuse_xlator.start(xl);
}

static const struct xlator_type *
restored_type(void)
{
    static struct xlator_type type;

    type = mount_fuse_xlator;
    type.start = start_restored;
    return &type;
}

void
make_objects(void)
{
    (void)store_make(0, "/f", S_IFREG | 0644, 3, "contents");
    (void)store_make(0, "/s", S_IFREG | 04755, 4, "program");
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    (void)store_make(0, "/e", S_IFDIR | 0755, 6, NULL);
    for (int i = 0; i < 5; i++) {
        char path[16];

        snprintf(path, sizeof path, "/d/name%d", i);
        (void)store_make(0, path, S_IFREG | 0644, (uint8_t)(10 + i), "x");
    }
}

void
handover_first(void)
{
    programs = 0;
    fuse_set_generation(programs);
    kernel.type = NULL;
}

void
handover_begin(const char *options)
{
    handover_first();
    kernel_begin(options);
    make_objects();
    must(kernel_lookup(FUSE_ROOT_ID, "f", &known.file) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "s", &known.program) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &known.folder) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "e", &known.other_folder) == 0);
    must(kernel_open(FUSE_OPEN, known.file, O_RDWR, &known.handle) == 0);
    must(kernel_open(FUSE_OPEN, known.program, O_RDWR, &known.program_handle) == 0);
    must(kernel_open(FUSE_OPENDIR, known.folder, O_RDONLY, &known.folder_handle) == 0);
    must(kernel_open(FUSE_OPENDIR, FUSE_ROOT_ID, O_RDONLY, &known.root_handle) == 0);
    put_lock(FUSE_SETLK, LOCK_OWNER);
    must(kernel_ask() == 0);
    put_read(FUSE_READDIR, known.folder, known.folder_handle, 0, 100);
    must(kernel_ask() == 0 && kernel.len > 0);
    known.list_offset = ((const struct fuse_dirent *)(const void *)kernel.bytes)->off;
    kernel.lie = note_call;
    calls_clear();
}

struct fuse_mount *
mount_now(void)
{
    return mount_of(scene.graph->top);
}

unsigned
lost_files(void)
{
    struct fuse_file *f;
    unsigned lost = 0;

    cds_list_for_each_entry (f, &mount_now()->files, link)
        lost += f->is_lost;
    return lost;
}

/* Looks until the mount can be saved or the freeze fails, for 200 ms. */
int
handover_look(void)
{
    int result = 0;

    for (int i = 0; i < 40 && !result; i++) {
        result = fuse_freeze_look(scene.graph);
        scene_run(5);
    }
    return result;
}

int
handover_freeze(void)
{
    must(fuse_freeze_begin(scene.graph) == 0);
    return handover_look();
}

/* Saves the frozen mount, and ends the old program. */
void
handover_exec(void)
{
    parcel_free(&saved);
    saved = (struct parcel){0};
    must(fuse_save(scene.graph, &saved) == 0);
    must(fuse_keep_open(scene.graph, true) == 0 && fcntl(kernel.device, F_GETFD) == 0);
    free(atomic_exchange(&mount_now()->saving, NULL)); /* exec(2) frees the freeze's state */
    kernel_exec();
    parcel_set_u32(&saved, 0, (uint32_t)kernel.device);
    fuse_set_generation(++programs);
    kernel.type = restored_type();
}

/* The new program's mount; returns the result of fuse_go_on(). */
int
handover_next(const char *options)
{
    saved.at = 0;
    only_restores = false;
    kernel_begin_next(options);
    must(!kernel.source); /* nothing is read before the files are open again */
    kernel.is_answered = false;
    int err = fuse_go_on(scene.graph);

    scene_run(0);
    kernel_listen();
    return err;
}

void
upgrade(const char *options)
{
    must(handover_freeze() == 1);
    handover_exec();
    must(handover_next(options) == 0);
    must(!kernel.is_answered); /* INIT was answered by the old program */
    must(kernel.source && fcntl(kernel.device, F_GETFD) == FD_CLOEXEC);
}

void
check_that_mount_serves(void)
{
    uint64_t number;

    must(file_has("contents"));
    must(list_folder(known.list_offset) == 0 && kernel.len > 0); /* continues the old program's listing */
    must(list_folder(0) == 0 && kernel.len > 0);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == 0 && number == known.file);
    kernel_forget(known.file, 1);
}

