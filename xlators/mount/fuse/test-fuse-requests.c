/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Every request of the kernel, each in a fresh mount: as the kernel sends the request, with each errno of the
 * brick at each of the request's calls, with each allocation failing in turn, with a reply that the kernel
 * does not take, and for a caller with supplementary groups. After each run:
 *
 *      the kernel has exactly one reply, with the errno of the fault or the result of the request
 *      the mount holds exactly the lookups and open files that the kernel knows of
 *      the same kind of request works afterwards, and the end of the mount leaves no object */
#include <check.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test-must.h"
#include "fs/inode.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/test-kernel.h"

/* ---- the brick, and the objects that the kernel knows ---------------------------------------- */

static uint64_t file, folder, symlink_number, program; /* numbers at the kernel */
static uint64_t file_handle, sync_handle, folder_handle;

static void
world_begin(const char *options)
{
    kernel_begin(options);
    (void)store_make(0, "/f", S_IFREG | 0644, 3, "contents");
    (void)store_make(0, "/d", S_IFDIR | 0755, 4, NULL);
    (void)store_make(0, "/d/x", S_IFREG | 0644, 5, "x");
    (void)store_make(0, "/l", S_IFLNK | 0777, 6, "target");
    (void)store_make(0, "/g", S_IFREG | 0644, 7, "g");
    (void)store_make(0, "/e", S_IFDIR | 0755, 8, NULL);
    (void)store_make(0, "/s", S_IFREG | 06755, 9, "program");
    store_find(&scene.store[0], "/s")->stat.uid = 1000;
    must(store_set_xattr(store_find(&scene.store[0], "/f"), "user.a", "value", 5) == 0);
    must(store_set_xattr(store_find(&scene.store[0], "/f"), "trusted.afr.v", "hidden", 6) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "f", &file) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &folder) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "l", &symlink_number) == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "s", &program) == 0);
    must(kernel_open(FUSE_OPEN, file, O_RDWR, &file_handle) == 0);
    must(kernel_open(FUSE_OPEN, file, O_RDWR | O_SYNC, &sync_handle) == 0);
    must(kernel_open(FUSE_OPENDIR, folder, O_RDONLY, &folder_handle) == 0);
}

/* ---- the requests ---------------------------------------------------------------------------- */

static void
name_request(uint32_t opcode, const void *args, size_t size, const char *name)
{
    kernel_request(opcode, FUSE_ROOT_ID);
    kernel_put(args, size);
    kernel_put_text(name);
}

static void
put_lookup(void)
{
    name_request(FUSE_LOOKUP, NULL, 0, "g");
}

static void
put_lookup_again(void)
{
    name_request(FUSE_LOOKUP, NULL, 0, "d");
}

static void
put_lookup_missing(void)
{
    name_request(FUSE_LOOKUP, NULL, 0, "missing");
}

static void
put_lookup_long(void)
{
    char name[400];

    memset(name, 'n', sizeof name);
    name[300] = '\0';
    name_request(FUSE_LOOKUP, NULL, 0, name);
}

static void
put_rename_long(void)
{
    char name[400];

    memset(name, 'n', sizeof name);
    name[256] = '\0';
    struct fuse_rename_in in = {.newdir = FUSE_ROOT_ID};
    name_request(FUSE_RENAME, &in, sizeof in, "f");
    kernel_put_text(name);
}

static void
put_mknod(void)
{
    struct fuse_mknod_in in = {.mode = S_IFIFO | 0600, .umask = 022};

    name_request(FUSE_MKNOD, &in, sizeof in, "new");
}

static void
put_mkdir(void)
{
    struct fuse_mkdir_in in = {.mode = S_IFDIR | 0755};

    name_request(FUSE_MKDIR, &in, sizeof in, "new");
}

static void
put_symlink(void)
{
    name_request(FUSE_SYMLINK, NULL, 0, "new");
    kernel_put_text("elsewhere");
}

static void
put_link(void)
{
    struct fuse_link_in in = {.oldnodeid = file};

    name_request(FUSE_LINK, &in, sizeof in, "new");
}

static void
put_unlink(void)
{
    name_request(FUSE_UNLINK, NULL, 0, "g");
}

static void
put_rmdir(void)
{
    name_request(FUSE_RMDIR, NULL, 0, "e");
}

static void
put_rename(void)
{
    struct fuse_rename_in in = {.newdir = folder};

    name_request(FUSE_RENAME, &in, sizeof in, "f");
    kernel_put_text("moved");
}

static void
put_rename_folder(void)
{
    struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID};

    name_request(FUSE_RENAME2, &in, sizeof in, "d");
    kernel_put_text("moved");
}

static void
put_rename_exchange(void)
{
    struct fuse_rename2_in in = {.newdir = FUSE_ROOT_ID, .flags = 2};

    name_request(FUSE_RENAME2, &in, sizeof in, "f");
    kernel_put_text("g");
}

static void
put_create(void)
{
    struct fuse_create_in in = {.flags = O_RDWR | O_CREAT, .mode = S_IFREG | 0644};

    name_request(FUSE_CREATE, &in, sizeof in, "new");
}

static void
put_readlink(void)
{
    kernel_request(FUSE_READLINK, symlink_number);
}

static void
put_open_flags(uint32_t opcode, uint64_t number, uint32_t flags)
{
    struct fuse_open_in in = {.flags = flags};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
}

static void
put_open(void)
{
    put_open_flags(FUSE_OPEN, file, O_RDWR);
}

static void
put_open_truncate(void)
{
    put_open_flags(FUSE_OPEN, file, O_WRONLY | O_TRUNC);
}

static void
put_open_append(void)
{
    put_open_flags(FUSE_OPEN, file, O_WRONLY | O_APPEND);
}

static void
put_opendir(void)
{
    put_open_flags(FUSE_OPENDIR, folder, O_RDONLY);
}

static void
put_read_in(uint32_t opcode, uint64_t number, uint64_t fh, uint64_t offset, uint32_t size)
{
    struct fuse_read_in in = {.fh = fh, .offset = offset, .size = size};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
}

static void
put_read(void)
{
    put_read_in(FUSE_READ, file, file_handle, 2, 100);
}

static void
put_read_nothing(void)
{
    put_read_in(FUSE_READ, file, file_handle, 2, 0);
}

static void
put_read_beyond(void)
{
    put_read_in(FUSE_READ, file, file_handle, UINT64_MAX >> 1, 100);
}

static void
put_readdir(void)
{
    put_read_in(FUSE_READDIR, folder, folder_handle, 0, 4096);
}

static void
put_readdirplus(void)
{
    put_read_in(FUSE_READDIRPLUS, folder, folder_handle, 0, 1 << 20);
}

static void
put_readdir_short(void)
{
    put_read_in(FUSE_READDIRPLUS, folder, folder_handle, 0, 16);
}

static void
put_write_flags(uint64_t fh, uint32_t flags, size_t size)
{
    static char bytes[128 << 10];
    struct fuse_write_in in = {.fh = fh, .offset = 3, .size = (uint32_t)size, .flags = flags};

    kernel_request(FUSE_WRITE, file);
    kernel_put(&in, sizeof in);
    kernel_put(bytes, size);
}

static void
put_write(void)
{
    put_write_flags(file_handle, O_RDWR, 20);
}

static void
put_write_nothing(void)
{
    put_write_flags(file_handle, O_RDWR, 0);
}

static void
put_write_sync(void)
{
    put_write_flags(sync_handle, O_RDWR | O_SYNC, 20);
}

static void
put_getattr_of(uint64_t number, uint32_t flags, uint64_t fh)
{
    struct fuse_getattr_in in = {.getattr_flags = flags, .fh = fh};

    kernel_request(FUSE_GETATTR, number);
    kernel_put(&in, sizeof in);
}

static void
put_getattr(void)
{
    put_getattr_of(file, 0, 0);
}

static void
put_getattr_folder(void)
{
    put_getattr_of(folder, 0, 0);
}

static void
put_getattr_root(void)
{
    put_getattr_of(FUSE_ROOT_ID, 0, 0);
}

static void
put_fgetattr(void)
{
    put_getattr_of(file, FUSE_GETATTR_FH, file_handle);
}

static void
put_setattr_of(uint64_t number, uint32_t valid, uint64_t size)
{
    struct fuse_setattr_in in = {.valid = valid,
                                 .fh = file_handle,
                                 .size = size,
                                 .mode = S_IFREG | 0600,
                                 .uid = 7,
                                 .gid = 8,
                                 .atime = 100,
                                 .mtime = 200};

    kernel_request(FUSE_SETATTR, number);
    kernel_put(&in, sizeof in);
}

static void
put_chmod(void)
{
    put_setattr_of(file, FATTR_MODE | FATTR_UID | FATTR_GID, 0);
}

static void
put_utimes(void)
{
    put_setattr_of(folder, FATTR_ATIME | FATTR_MTIME | FATTR_ATIME_NOW | FATTR_MTIME_NOW, 0);
}

static void
put_truncate(void)
{
    put_setattr_of(file, FATTR_SIZE | FATTR_MTIME, 3);
}

static void
put_ftruncate(void)
{
    put_setattr_of(file, FATTR_SIZE | FATTR_FH, 3);
}

static void
put_fchmod(void)
{
    put_setattr_of(file, FATTR_MODE | FATTR_FH, 3);
}

static void
put_setattr_nothing(void)
{
    put_setattr_of(file, 0, 0);
}

static void
put_setattr_kill(void)
{
    put_setattr_of(program, FATTR_SIZE | FATTR_KILL_SUIDGID, 2);
}

static void
put_setattr_kill_only(void)
{
    put_setattr_of(program, 0, 0);
}

static void
put_statfs(void)
{
    kernel_request(FUSE_STATFS, folder);
}

static void
put_statfs_root(void)
{
    kernel_request(FUSE_STATFS, 0);
}

static void
put_access(void)
{
    struct fuse_access_in in = {.mask = R_OK};

    kernel_request(FUSE_ACCESS, file);
    kernel_put(&in, sizeof in);
}

static void
put_flush(void)
{
    struct fuse_flush_in in = {.fh = file_handle, .lock_owner = 77};

    kernel_request(FUSE_FLUSH, file);
    kernel_put(&in, sizeof in);
}

static void
put_fsync_of(uint32_t opcode, uint64_t number, uint64_t fh, uint32_t flags)
{
    struct fuse_fsync_in in = {.fh = fh, .fsync_flags = flags};

    kernel_request(opcode, number);
    kernel_put(&in, sizeof in);
}

static void
put_fsync(void)
{
    put_fsync_of(FUSE_FSYNC, file, file_handle, 0);
}

static void
put_fsync_sync(void)
{
    put_fsync_of(FUSE_FSYNC, file, sync_handle, FUSE_FSYNC_FDATASYNC);
}

static void
put_fsyncdir(void)
{
    put_fsync_of(FUSE_FSYNCDIR, folder, folder_handle, 0);
}

static void
put_setxattr_of(const char *name, const char *value)
{
    uint32_t in[2] = {(uint32_t)strlen(value), 0}; /* without FUSE_SETXATTR_EXT */

    kernel_request(FUSE_SETXATTR, file);
    kernel_put(in, sizeof in);
    kernel_put_text(name);
    kernel_put(value, strlen(value));
}

static void
put_setxattr(void)
{
    put_setxattr_of("user.b", "new");
}

static void
put_removexattr(void)
{
    kernel_request(FUSE_REMOVEXATTR, file);
    kernel_put_text("user.a");
}

static void
put_getxattr_of(uint32_t opcode, const char *name, uint32_t size)
{
    struct fuse_getxattr_in in = {.size = size};

    kernel_request(opcode, file);
    kernel_put(&in, sizeof in);
    if (name)
        kernel_put_text(name);
}

static void
put_getxattr(void)
{
    put_getxattr_of(FUSE_GETXATTR, "user.a", 100);
}

static void
put_listxattr(void)
{
    put_getxattr_of(FUSE_LISTXATTR, NULL, 100);
}

static void
put_lock_of(uint32_t opcode, uint32_t type, uint32_t flags)
{
    struct fuse_lk_in in = {
        .fh = file_handle, .owner = 77, .lk = {.start = 5, .end = 9, .type = type}, .lk_flags = flags};

    kernel_request(opcode, file);
    kernel_put(&in, sizeof in);
}

static void
put_getlk(void)
{
    put_lock_of(FUSE_GETLK, F_RDLCK, 0);
}

static void
put_setlk(void)
{
    put_lock_of(FUSE_SETLK, F_WRLCK, 0);
}

static void
put_setlkw(void)
{
    put_lock_of(FUSE_SETLKW, F_WRLCK, 0);
}

static void
put_unlock(void)
{
    put_lock_of(FUSE_SETLKW, F_UNLCK, 0);
}

static void
put_flock(void)
{
    put_lock_of(FUSE_SETLKW, F_RDLCK, FUSE_LK_FLOCK);
}

static void
put_flock_try(void)
{
    put_lock_of(FUSE_SETLK, F_WRLCK, FUSE_LK_FLOCK);
}

static void
put_fallocate_of(uint32_t mode, uint64_t offset, uint64_t length)
{
    struct fuse_fallocate_in in = {.fh = file_handle, .offset = offset, .length = length, .mode = mode};

    kernel_request(FUSE_FALLOCATE, file);
    kernel_put(&in, sizeof in);
}

static void
put_fallocate(void)
{
    put_fallocate_of(0, 0, 100);
}

static void
put_punch(void)
{
    put_fallocate_of(FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, 4);
}

static void
put_zero(void)
{
    put_fallocate_of(FALLOC_FL_ZERO_RANGE, 0, 4);
}

static void
put_zero_inside(void)
{
    put_fallocate_of(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 2, 400);
}

static void
put_zero_outside(void)
{
    put_fallocate_of(FALLOC_FL_ZERO_RANGE | FALLOC_FL_KEEP_SIZE, 200, 400);
}

static void
put_collapse(void)
{
    put_fallocate_of(FALLOC_FL_COLLAPSE_RANGE, 0, 4096);
}

static void
put_lseek_of(uint64_t offset, uint32_t whence)
{
    struct fuse_lseek_in in = {.fh = file_handle, .offset = offset, .whence = whence};

    kernel_request(FUSE_LSEEK, file);
    kernel_put(&in, sizeof in);
}

static void
put_lseek_data(void)
{
    put_lseek_of(0, SEEK_DATA);
}

static void
put_lseek_hole(void)
{
    put_lseek_of(0, SEEK_HOLE);
}

static void
put_lseek_end(void)
{
    put_lseek_of(0, SEEK_END);
}

static void
put_lseek_negative(void)
{
    put_lseek_of((uint64_t)-5, SEEK_HOLE);
}

static void
put_unknown(void)
{
    kernel_request(FUSE_IOCTL, file);
    kernel_put(&(struct fuse_ioctl_in){.fh = file_handle}, sizeof(struct fuse_ioctl_in));
}

/* `err`: the errno of a request without a fault. */
static const struct request {
    const char *name;
    void (*put)(void);
    int err;
    unsigned lookups, files; /* that a success adds */
} requests[] = {
    {"LOOKUP", put_lookup, 0, 1, 0},
    {"LOOKUP of a known folder", put_lookup_again, 0, 1, 0},
    {"LOOKUP of a missing name", put_lookup_missing, ENOENT, 0, 0},
    {"LOOKUP of a long name", put_lookup_long, ENAMETOOLONG, 0, 0},
    {"RENAME to a long name", put_rename_long, ENAMETOOLONG, 0, 0},
    {"MKNOD", put_mknod, 0, 1, 0},
    {"MKDIR", put_mkdir, 0, 1, 0},
    {"SYMLINK", put_symlink, 0, 1, 0},
    {"LINK", put_link, 0, 1, 0},
    {"UNLINK", put_unlink, 0, 0, 0},
    {"RMDIR", put_rmdir, 0, 0, 0},
    {"RENAME", put_rename, 0, 0, 0},
    {"RENAME of a folder", put_rename_folder, 0, 0, 0},
    {"RENAME with flags", put_rename_exchange, EINVAL, 0, 0},
    {"CREATE", put_create, 0, 1, 1},
    {"READLINK", put_readlink, 0, 0, 0},
    {"OPEN", put_open, 0, 0, 1},
    {"OPEN with O_TRUNC", put_open_truncate, 0, 0, 1},
    {"OPEN with O_APPEND", put_open_append, 0, 0, 1},
    {"OPENDIR", put_opendir, 0, 0, 1},
    {"READ", put_read, 0, 0, 0},
    {"READ of no byte", put_read_nothing, 0, 0, 0},
    {"READ beyond the end", put_read_beyond, 0, 0, 0},
    {"READDIR", put_readdir, 0, 0, 0},
    {"READDIRPLUS", put_readdirplus, 0, 1, 0},
    {"READDIRPLUS into 16 bytes", put_readdir_short, 0, 0, 0},
    {"WRITE", put_write, 0, 0, 0},
    {"WRITE of no byte", put_write_nothing, 0, 0, 0},
    {"WRITE with O_SYNC", put_write_sync, 0, 0, 0},
    {"GETATTR", put_getattr, 0, 0, 0},
    {"GETATTR of a folder", put_getattr_folder, 0, 0, 0},
    {"GETATTR of the root", put_getattr_root, 0, 0, 0},
    {"GETATTR of an open file", put_fgetattr, 0, 0, 0},
    {"SETATTR of the mode", put_chmod, 0, 0, 0},
    {"SETATTR of the times", put_utimes, 0, 0, 0},
    {"SETATTR of the size", put_truncate, 0, 0, 0},
    {"SETATTR of an open file's size", put_ftruncate, 0, 0, 0},
    {"SETATTR of an open file's mode", put_fchmod, 0, 0, 0},
    {"SETATTR of nothing", put_setattr_nothing, 0, 0, 0},
    {"SETATTR that clears set-id bits", put_setattr_kill, 0, 0, 0},
    {"SETATTR that only clears set-id bits", put_setattr_kill_only, 0, 0, 0},
    {"STATFS", put_statfs, 0, 0, 0},
    {"STATFS of the root", put_statfs_root, 0, 0, 0},
    {"ACCESS", put_access, 0, 0, 0},
    {"FLUSH", put_flush, 0, 0, 0},
    {"FSYNC", put_fsync, 0, 0, 0},
    {"FSYNC of data, with O_SYNC", put_fsync_sync, 0, 0, 0},
    {"FSYNCDIR", put_fsyncdir, 0, 0, 0},
    {"SETXATTR", put_setxattr, 0, 0, 0},
    {"REMOVEXATTR", put_removexattr, 0, 0, 0},
    {"GETXATTR", put_getxattr, 0, 0, 0},
    {"LISTXATTR", put_listxattr, 0, 0, 0},
    {"GETLK", put_getlk, 0, 0, 0},
    {"SETLK", put_setlk, 0, 0, 0},
    {"SETLKW", put_setlkw, 0, 0, 0},
    {"SETLKW of an unlock", put_unlock, 0, 0, 0},
    {"flock", put_flock, 0, 0, 0},
    {"flock with LOCK_NB", put_flock_try, 0, 0, 0},
    {"FALLOCATE", put_fallocate, 0, 0, 0},
    {"FALLOCATE of a hole", put_punch, 0, 0, 0},
    {"FALLOCATE of zeros", put_zero, 0, 0, 0},
    {"FALLOCATE of zeros across the end", put_zero_inside, 0, 0, 0},
    {"FALLOCATE of zeros behind the end", put_zero_outside, 0, 0, 0},
    {"FALLOCATE of a collapse", put_collapse, EOPNOTSUPP, 0, 0},
    {"LSEEK to data", put_lseek_data, 0, 0, 0},
    {"LSEEK to a hole", put_lseek_hole, 0, 0, 0},
    {"LSEEK to the end", put_lseek_end, EINVAL, 0, 0},
    {"LSEEK of a negative offset", put_lseek_negative, ENXIO, 0, 0},
    {"IOCTL", put_unknown, ENOSYS, 0, 0},
};
enum { REQUESTS = sizeof requests / sizeof requests[0] };

/* ---- the state that the mount keeps for the kernel ------------------------------------------- */

static void
add_lookups(struct inode *inode, void *ctx, void *arg)
{
    (void)inode;
    *(uint64_t *)arg += atomic_load(&((struct fuse_node *)ctx)->lookups);
}

static uint64_t
lookups_of_mount(void)
{
    struct xlator *xl = scene.graph->top;
    uint64_t sum = 0;

    inode_table_each(xl->graph->inodes, xl, add_lookups, &sum);
    return sum;
}

static unsigned
files_of_mount(void)
{
    struct fuse_file *f;
    unsigned count = 0;

    cds_list_for_each_entry (f, &mount_of(scene.graph->top)->files, link)
        count++;
    return count;
}

/* Makes one request, and checks lookups and files afterwards. Returns the errno. `is_taken`: the kernel takes
 * the reply. A listing without memory for nodes has entries without numbers. */
static int
run_request(const struct request *r, bool is_taken, const char *why)
{
    uint64_t lookups = lookups_of_mount();
    unsigned files = files_of_mount();

    r->put();
    int err = kernel_ask();
    bool adds = !err && is_taken, is_short_list = r->put == put_readdirplus && scene_has_starved();
    uint64_t expected = lookups + (adds && !is_short_list ? r->lookups : 0);

    if (lookups_of_mount() != expected || files_of_mount() != files + (adds ? r->files : 0))
        ck_abort_msg("%s, %s: errno %d, %d lookups and %d files more", r->name, why, err,
                     (int)(lookups_of_mount() - lookups), (int)(files_of_mount() - files));
    must(atomic_load(&mount_of(scene.graph->top)->running) == 0);
    return err;
}

static void
check_that_mount_serves(void)
{
    scene_arm(NULL, 0);
    put_getattr_of(file, FUSE_GETATTR_FH, file_handle);
    must(kernel_ask() == 0);
    must(kernel_lookup(FUSE_ROOT_ID, "s", &program) == 0);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void
run_plain(const struct request *r, const char *options)
{
    world_begin(options);
    int err = run_request(r, true, "without a fault");

    if (err != r->err)
        ck_abort_msg("%s: errno %d", r->name, err);
    check_that_mount_serves();
    kernel_end();
}

START_TEST(a_request_has_its_result)
{
    static const char *const options[] = {
        "",
        " option folder-attributes off\n option negative-timeout 0\n option acl on\n",
        " option attribute-timeout 0\n option direct-io-mode enable\n option skip-synced-fsync off\n",
        " option kernel-writeback-cache on\n option handle-killpriv off\n option client-pid -6\n"};

    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++) {
        kernel_clear();
        run_plain(&requests[_i], options[i]);
        kernel.uid = kernel.gid = 1000;
        run_plain(&requests[_i], options[i]);
    }
}
END_TEST

/* Returns whether the kernel may get this errno for the brick's errno. */
static bool
is_errno_of(int err, int of_brick)
{
    return err == of_brick || (err == ESTALE && of_brick == ENOENT) || (err == EPERM && of_brick == EACCES);
}

static void
run_refused(const struct request *r, enum fault_kind kind, int refusal, unsigned at)
{
    struct fault f = {.at = at, .kind = kind, .err = refusal};
    char why[64];

    snprintf(why, sizeof why, "with fault %u, errno %d at call %u", kind, refusal, at);
    world_begin("");
    scene_arm(&f, 1);
    int err = run_request(r, true, why);
    bool has_struck = scene.fault[0].has_struck;

    if (has_struck && at == 0 && refusal == EIO && err != EIO)
        ck_abort_msg("%s: errno %d of the brick becomes %d", r->name, refusal, err);
    if (err != r->err && !(has_struck && is_errno_of(err, refusal)))
        ck_abort_msg("%s, %s: errno %d", r->name, why, err);
    scene.fault_count = 0;
    if (!scene.is_up[0])
        scene_child_up(0);
    check_that_mount_serves();
    kernel_end();
}

START_TEST(an_errno_of_the_brick_reaches_the_kernel)
{
    static const int errnos[] = {EIO,    ENOENT, ESTALE,   EACCES, ENOSPC,
                                 EDQUOT, EROFS,  ENOTCONN, EAGAIN, ENOMEM};

    kernel_clear();
    kernel.uid = _i % 2 ? 1000 : 0;
    for (size_t i = 0; i < sizeof errnos / sizeof errnos[0]; i++) {
        for (unsigned at = 0; at < 4; at++)
            run_refused(&requests[_i], FAULT_REFUSED, errnos[i], at);
    }
    run_refused(&requests[_i], FAULT_UNSENT, ENOTCONN, 0);
    run_refused(&requests[_i], FAULT_UNANSWERED, ENOTCONN, 0);
    run_refused(&requests[_i], FAULT_LATE, 0, 0);
}
END_TEST

START_TEST(a_request_without_memory_fails_and_leaves_nothing)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    kernel.uid = _i % 2 ? 1000 : 0;
    for (int64_t n = 1; has_starved; n++) {
        char why[64];

        snprintf(why, sizeof why, "without memory at allocation %lld", (long long)n);
        world_begin("");
        scene_starve(n);
        int err = run_request(&requests[_i], true, why);

        has_starved = scene_has_starved();
        scene_starve(0);
        if (err != requests[_i].err && !(has_starved && err == ENOMEM))
            ck_abort_msg("%s, %s: errno %d", requests[_i].name, why, err);
        check_that_mount_serves();
        kernel_end();
    }
}
END_TEST

START_TEST(a_graph_that_drains_refuses_requests)
{
    kernel_clear();
    world_begin("");
    atomic_store(&scene.graph->is_draining, true);
    int err = run_request(&requests[_i], true, "while the graph drains");

    if (err != requests[_i].err && err != ENOTCONN)
        ck_abort_msg("%s: errno %d while the graph drains", requests[_i].name, err);
    must(kernel_release(FUSE_RELEASE, file, file_handle) == ENOTCONN);
    atomic_store(&scene.graph->is_draining, false);
    must(kernel_lookup(FUSE_ROOT_ID, "s", &program) == 0);
    kernel_end();
}
END_TEST

START_TEST(a_reply_that_the_kernel_drops_leaves_nothing)
{
    kernel_clear();
    world_begin("");
    kernel.write_err = ENOENT;
    (void)run_request(&requests[_i], false, "with a dropped reply");
    kernel.write_err = 0;
    check_that_mount_serves();
    kernel_end();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("fuse-requests");
    TCase *t = tcase_create("requests");

    tcase_add_loop_test(t, a_request_has_its_result, 0, REQUESTS);
    tcase_add_loop_test(t, an_errno_of_the_brick_reaches_the_kernel, 0, REQUESTS);
    tcase_add_loop_test(t, a_request_without_memory_fails_and_leaves_nothing, 0, REQUESTS);
    tcase_add_loop_test(t, a_graph_that_drains_refuses_requests, 0, REQUESTS);
    tcase_add_loop_test(t, a_reply_that_the_kernel_drops_leaves_nothing, 0, REQUESTS);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
