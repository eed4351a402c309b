/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Contents: open, read, write, truncate, space, checksums, stat, by fds of clients and by anonymous fds. */
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "fs/brick-client.h"
#include "xlators/storage/posix/test-brick.h"

static struct inode *file;

static void
setup(void)
{
    brick_setup();
    file = brick_make("file", S_IFREG);
}

static void
teardown(void)
{
    inode_unref(file);
    brick_teardown();
}

/* op_ret or -errno; the call is left for the caller to look at. */
static int
write_call(struct call_stack *stk, struct fd *fd, uint64_t offset, const char *text)
{
    call_on_fd(stk, FOP_writev, fd);
    stk->call.offset = offset;
    /* The payload is in two pieces, as a record may have it. */
    size_t len = strlen(text), half = len / 2;
    stk->call.payload[0] = (struct iovec){(void *)text, half};
    stk->call.payload[1] = (struct iovec){(void *)(text + half), len - half};
    stk->call.payload_count = 2;
    stk->call.payload_bytes = len;
    return 0;
}

static int
write_text(struct fd *fd, uint64_t offset, const char *text)
{
    struct call_stack stk;

    write_call(&stk, fd, offset, text);
    int r = posix_fop_writev(&brick.xl, &stk);
    int ret = r == XL_DONE ? stk.reply.op_ret : r;
    if (r == XL_DONE)
        ck_assert_uint_ge(stk.reply.post.size, offset + strlen(text));
    call_end(&stk);
    return ret;
}

static int
read_call(struct call_stack *stk, struct fd *fd, uint64_t offset, uint64_t size)
{
    call_on_fd(stk, FOP_readv, fd);
    stk->call.offset = offset;
    stk->call.size = size;
    return posix_fop_readv(&brick.xl, stk);
}

START_TEST(a_read_returns_the_written_bytes)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    ck_assert_int_eq(write_text(fd, 0, "hello world"), 11);
    ck_assert_int_eq(read_call(&stk, fd, 0, 5), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 5);
    ck_assert_int_eq(stk.reply.op_errno, 0);
    ck_assert_uint_eq(stk.reply.stat.size, 11);
    ck_assert_uint_eq(stk.reply.stat.nlink, 1);
    ck_assert(gfid_equal(&stk.reply.stat.gfid, &file->gfid));
    ck_assert_mem_eq(stk.reply.payload.iov_base, "hello", 5);
    call_end(&stk);

    /* The end: ENOENT, with and without bytes. */
    ck_assert_int_eq(read_call(&stk, fd, 6, 100), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 5);
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 11, 300000), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 0);
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    call_end(&stk);

    ck_assert_int_eq(read_call(&stk, fd, 0, 0), -EINVAL);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 0, POSIX_READ_MAX + 1ull), -EINVAL);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, UINT64_MAX - 3, 2), -EINVAL);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

START_TEST(open_modes_are_kept)
{
    struct fd *rd = brick_open(file, O_RDONLY), *wr = brick_open(file, O_WRONLY);
    struct call_stack stk;

    ck_assert_uint_eq(atomic_load(&file->open_fds), 2);
    ck_assert_int_eq(write_text(rd, 0, "x"), -EBADF);
    ck_assert_int_eq(read_call(&stk, wr, 0, 1), -EBADF);
    call_end(&stk);
    fd_unref(rd);
    fd_unref(wr);
    ck_assert_uint_eq(atomic_load(&file->open_fds), 0);

    struct fd *appending = brick_open(file, O_RDWR | O_APPEND);
    ck_assert_int_eq(write_text(appending, 0, "abc"), 3);
    ck_assert_int_eq(write_text(appending, 0, "def"), 3);
    ck_assert_int_eq(read_call(&stk, appending, 0, 10), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 6);
    call_end(&stk);
    fd_unref(appending);
}
END_TEST

START_TEST(open_refuses_folders_and_symlinks)
{
    struct inode *dir = brick_make("dir", S_IFDIR), *link = brick_make("link", S_IFLNK);
    struct call_stack stk;

    call_on_inode(&stk, FOP_open, dir);
    stk.call.flags = O_RDWR;
    ck_assert_int_eq(posix_fop_open(&brick.xl, &stk), -EISDIR);
    call_end(&stk);
    call_on_inode(&stk, FOP_open, link);
    ck_assert_int_eq(posix_fop_open(&brick.xl, &stk), -ELOOP);
    call_end(&stk);
    call_on_inode(&stk, FOP_opendir, file);
    ck_assert_int_eq(posix_fop_opendir(&brick.xl, &stk), -ENOTDIR);
    call_end(&stk);
    call_on_inode(&stk, FOP_readlink, link);
    stk.call.size = 4096;
    ck_assert_int_eq(posix_fop_readlink(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 6);
    ck_assert_str_eq(stk.reply.path, "target");
    ck_assert(S_ISLNK(stk.reply.stat.mode));
    call_end(&stk);
    inode_unref(dir);
    inode_unref(link);
}
END_TEST

START_TEST(a_write_reports_whether_it_appends)
{
    struct fd *fd = brick_open(file, O_RDWR), *second = brick_open(file, O_RDONLY);
    struct call_stack stk;
    uint64_t is_append, fds;

    static const struct { uint64_t offset, want; } writes[] = {{0, 1}, {3, 1}, {3, 0}, {100, 0}};
    for (size_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        write_call(&stk, fd, writes[i].offset, "abc");
        ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_WRITE_IS_APPEND, 0), 0);
        ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_OPEN_ACTIVE_FD_COUNT, 0), 0);
        ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
        ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_WRITE_IS_APPEND, &is_append), 0);
        ck_assert_uint_eq(is_append, writes[i].want);
        ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_OPEN_ACTIVE_FD_COUNT, &fds), 0);
        ck_assert_uint_eq(fds, 2);
        call_end(&stk);
    }
    fd_unref(fd);
    fd_unref(second);
}
END_TEST

START_TEST(writes_of_a_migration_do_not_overwrite_protected_writes)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    write_call(&stk, fd, 0, "new");
    ck_assert_int_eq(dict_set_bytes(call_xdata(&stk), DICT_KEY_PROTECT_WRITES, "1", 1), 0);
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    write_call(&stk, fd, 0, "old");
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_AVOID_OVERWRITE, 1), 0);
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), -EBUSY);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

/* Counts descriptors of the brick's files only, because other threads (the sweeper of the pools) open files
 * at any time. */
static int
count_descriptors(void)
{
    DIR *d = opendir("/proc/self/fd");
    size_t len = strlen(brick.dir);
    int n = 0;

    ck_assert_ptr_nonnull(d);
    for (const struct dirent *e; (e = readdir(d)) != NULL;) {
        char target[PATH_MAX];
        ssize_t got = readlinkat(dirfd(d), e->d_name, target, sizeof target);

        n += got >= (ssize_t)len && memcmp(target, brick.dir, len) == 0;
    }
    closedir(d);
    return n;
}

START_TEST(anonymous_fds_leave_nothing_open)
{
    struct fd *fd = fd_new_anonymous(file, NULL);
    int before = count_descriptors();
    struct call_stack stk;

    ck_assert_int_gt(before, 0);
    ck_assert_int_eq(write_text(fd, 0, "anon"), 4);
    ck_assert_int_eq(read_call(&stk, fd, 0, 10), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 4);
    call_end(&stk);
    call_on_fd(&stk, FOP_fstat, fd);
    ck_assert_int_eq(posix_fop_fstat(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.stat.size, 4);
    call_end(&stk);
    ck_assert_int_eq(count_descriptors(), before);
    ck_assert_uint_eq(atomic_load(&file->open_fds), 0);

    /* Unlinked while open: the handle is in .glusterfs/unlink, and the table need not know. */
    char to[64];
    snprintf(to, sizeof to, "unlink/%s", GFID(&file->gfid));
    ck_assert_int_eq(unlinkat(brick.p->brick_fd, "file", 0), 0);
    ck_assert_int_eq(renameat(brick.p->handles_fd, HANDLE(&file->gfid), brick.p->handles_fd, to), 0);
    ck_assert_int_eq(read_call(&stk, fd, 0, 10), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 4);
    ck_assert_uint_eq(stk.reply.stat.nlink, 0);
    call_end(&stk);
    ck_assert_int_eq(unlinkat(brick.p->handles_fd, to, 0), 0);
    ck_assert_int_eq(read_call(&stk, fd, 0, 10), -ENOENT);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

START_TEST(truncate_shrinks_and_extends)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct inode *dir = brick_make("dir", S_IFDIR);
    struct call_stack stk;

    ck_assert_int_eq(write_text(fd, 0, "0123456789"), 10);
    call_on_inode(&stk, FOP_truncate, file);
    stk.call.offset = 4;
    ck_assert_int_eq(posix_fop_truncate(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.pre.size, 10);
    ck_assert_uint_eq(stk.reply.post.size, 4);
    call_end(&stk);
    call_on_fd(&stk, FOP_ftruncate, fd);
    stk.call.offset = 8000;
    ck_assert_int_eq(posix_fop_ftruncate(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.post.size, 8000);
    call_end(&stk);
    call_on_inode(&stk, FOP_truncate, dir);
    ck_assert_int_eq(posix_fop_truncate(&brick.xl, &stk), -EISDIR);
    call_end(&stk);
    fd_unref(fd);
    inode_unref(dir);
}
END_TEST

START_TEST(a_write_sets_the_times_of_its_caller)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    write_call(&stk, fd, 0, "x");
    stk.caller.time_flags = TIME_CTIME | TIME_MTIME;
    stk.caller.ctime_sec = 1700000000;
    stk.caller.ctime_nsec = 123456789;
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.post.mtime, 1700000000);
    ck_assert_int_ne(stk.reply.pre.mtime, 1700000000);
    call_end(&stk);
    call_on_fd(&stk, FOP_fstat, fd);
    ck_assert_int_eq(posix_fop_fstat(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.stat.mtime, 1700000000);
    ck_assert_uint_eq(stk.reply.stat.mtime_nsec, 123456789);
    call_end(&stk);
    write_call(&stk, fd, 0, "y"); /* pre: the times after the last write; only the mtime changes */
    stk.caller.time_flags = TIME_MTIME;
    stk.caller.ctime_sec = 1700000010;
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.pre.mtime, 1700000000);
    ck_assert_uint_eq(stk.reply.pre.mtime_nsec, 123456789);
    ck_assert_int_eq(stk.reply.post.mtime, 1700000010);
    ck_assert_int_eq(stk.reply.post.ctime, 1700000000);
    call_end(&stk);
    write_call(&stk, fd, 0, "z"); /* a write without time flags changes no times */
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.pre.mtime, 1700000010);
    ck_assert_int_eq(stk.reply.post.mtime, 1700000010);
    ck_assert_int_eq(stk.reply.post.ctime, 1700000000);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

START_TEST(fallocate_zerofill_discard_and_seek_change_and_find_ranges)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    ck_assert_int_eq(write_text(fd, 0, "abcdefgh"), 8);
    call_on_fd(&stk, FOP_fallocate, fd);
    stk.call.size = 100000;
    ck_assert_int_eq(posix_fop_fallocate(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.post.size, 100000);
    call_end(&stk);
    call_on_fd(&stk, FOP_zerofill, fd);
    stk.call.offset = 2;
    stk.call.size = 200000;
    ck_assert_int_eq(posix_fop_zerofill(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.post.size, 200002);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 0, 8), XL_DONE);
    ck_assert_mem_eq(stk.reply.payload.iov_base, "ab\0\0\0\0\0\0", 8);
    call_end(&stk);
    ck_assert_int_eq(write_text(fd, 131072, "data"), 4);
    call_on_fd(&stk, FOP_discard, fd);
    stk.call.size = 131072;
    ck_assert_int_eq(posix_fop_discard(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    call_on_fd(&stk, FOP_seek, fd); /* data from the start: behind the hole */
    ck_assert_int_eq(posix_fop_seek(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.offset, 131072);
    call_end(&stk);
    call_on_fd(&stk, FOP_seek, fd);
    stk.call.offset = 1 << 20;
    ck_assert_int_eq(posix_fop_seek(&brick.xl, &stk), -ENXIO);
    stk.call.cmd = 2;
    ck_assert_int_eq(posix_fop_seek(&brick.xl, &stk), -ENOTSUP);
    call_end(&stk);
    call_on_fd(&stk, FOP_discard, fd);
    stk.call.offset = INT64_MAX;
    stk.call.size = 2;
    ck_assert_int_eq(posix_fop_discard(&brick.xl, &stk), -EINVAL);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

/* ---- the writes of a heal -------------------------------------------------------------------- */

static off64_t writeback_end; /* of the latest sync_file_range(); 0: none */

int __real_sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags);
int __wrap_sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags);

int
__wrap_sync_file_range(int fd, off64_t offset, off64_t bytes, unsigned flags)
{
    writeback_end = offset + bytes;
    return __real_sync_file_range(fd, offset, bytes, flags);
}

START_TEST(a_large_write_of_a_healer_goes_to_the_disk_soon)
{
    static char bytes[64 * 1024 + 1], few[4096 + 1];
    static const struct {
        int32_t pid;
        const char *text;
        bool is_soon;
    } cases[] = {
        {-6, bytes, true}, {-3, bytes, true}, {-6, few, false}, {0, bytes, false}, {-4, bytes, false}};
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    memset(bytes, 'b', sizeof bytes - 1);
    memset(few, 'f', sizeof few - 1);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        write_call(&stk, fd, 4096, cases[i].text);
        stk.caller.pid = cases[i].pid;
        writeback_end = 0;
        ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
        call_end(&stk);
        ck_assert_int_eq(writeback_end, cases[i].is_soon ? 4096 + (off64_t)strlen(cases[i].text) : 0);
    }
    fd_unref(fd);
}
END_TEST

/* ---- ZEROFILL where the file system has no ZERO_RANGE ---------------------------------------- */

static bool has_no_zero_range;
static int zero_writes;          /* since a test began */
static int last_write;           /* after this write `ends` becomes true; 0: never */
static atomic_bool *ends;

int __real_fallocate64(int fd, int mode, off64_t offset, off64_t len);
int __wrap_fallocate64(int fd, int mode, off64_t offset, off64_t len);
ssize_t __real_pwritev64(int fd, const struct iovec *iov, int count, off64_t offset);
ssize_t __wrap_pwritev64(int fd, const struct iovec *iov, int count, off64_t offset);

int
__wrap_fallocate64(int fd, int mode, off64_t offset, off64_t len)
{
    if (!has_no_zero_range || mode != FALLOC_FL_ZERO_RANGE)
        return __real_fallocate64(fd, mode, offset, len);
    errno = EOPNOTSUPP;
    return -1;
}

ssize_t
__wrap_pwritev64(int fd, const struct iovec *iov, int count, off64_t offset)
{
    ssize_t n = __real_pwritev64(fd, iov, count, offset);

    if (has_no_zero_range && ++zero_writes == last_write)
        atomic_store(ends, true);
    return n;
}

static int
zerofill(struct fd *fd, struct brick_client *client, uint64_t offset, uint64_t size)
{
    struct call_stack stk;

    call_on_fd(&stk, FOP_zerofill, fd);
    stk.call.offset = offset;
    stk.call.size = size;
    stk.client = client;
    has_no_zero_range = true;
    zero_writes = 0;
    int r = posix_fop_zerofill(&brick.xl, &stk);
    has_no_zero_range = false;
    stk.client = NULL; /* no reference was taken */
    call_end(&stk);
    return r;
}

static uint64_t
file_size(struct fd *fd)
{
    struct call_stack stk;

    call_on_fd(&stk, FOP_fstat, fd);
    ck_assert_int_eq(posix_fop_fstat(&brick.xl, &stk), XL_DONE);
    uint64_t size = stk.reply.stat.size;
    call_end(&stk);
    return size;
}

START_TEST(zerofill_is_bounded)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct statvfs disk;

    ck_assert_int_eq(write_text(fd, 0, "abc"), 3);
    ck_assert_int_eq(zerofill(fd, NULL, 0, 0), -EINVAL);
    ck_assert_int_eq(zerofill(fd, NULL, (uint64_t)INT64_MAX + 1, 1), -EINVAL);
    ck_assert_int_eq(zerofill(fd, NULL, 1, INT64_MAX), -EINVAL);
    ck_assert_int_eq(zerofill(fd, NULL, 1, UINT64_MAX), -EINVAL);
    ck_assert_int_eq(zero_writes, 0);
    ck_assert_int_eq(zerofill(fd, NULL, 1, (3 << 20) + 7), XL_DONE); /* a megabyte at a time, and a rest */
    ck_assert_int_eq(zero_writes, 4);
    ck_assert_uint_eq(file_size(fd), (3 << 20) + 8);
    ck_assert_int_eq(statvfs(brick.dir, &disk), 0);
    if (disk.f_blocks) { /* a range larger than the disk fails before the first write */
        ck_assert_int_eq(zerofill(fd, NULL, 0, (uint64_t)disk.f_blocks * disk.f_frsize + (64 << 20)),
                         -ENOSPC);
        ck_assert_int_eq(zerofill(fd, NULL, 0, INT64_MAX), -ENOSPC);
        ck_assert_int_eq(zero_writes, 0);
        ck_assert_uint_eq(file_size(fd), (3 << 20) + 8);
    }
    fd_unref(fd);
}
END_TEST

START_TEST(zerofill_ends_with_its_client_and_its_brick)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct brick_client client = {0};

    last_write = 2;
    ends = &client.is_gone;
    ck_assert_int_eq(zerofill(fd, &client, 0, 8 << 20), -ENOTCONN);
    ck_assert_int_eq(zero_writes, 2);
    ck_assert_uint_eq(file_size(fd), 2 << 20);
    client.is_gone = false;
    last_write = 3;
    ends = &brick.graph.is_draining;
    ck_assert_int_eq(zerofill(fd, &client, 0, 8 << 20), -EINTR);
    ck_assert_int_eq(zero_writes, 3);
    brick.graph.is_draining = false;
    last_write = 1; /* a finished call succeeds although its client has gone */
    ends = &client.is_gone;
    ck_assert_int_eq(zerofill(fd, &client, 0, 1 << 20), XL_DONE);
    last_write = 0;
    fd_unref(fd);
}
END_TEST

START_TEST(copy_file_range_stops_at_the_end_of_the_source)
{
    struct inode *other = brick_make("other", S_IFREG);
    struct fd *in = brick_open(file, O_RDWR), *out = brick_open(other, O_RDWR);
    struct call_stack stk;

    ck_assert_int_eq(write_text(in, 0, "0123456789"), 10);
    call_on_fd(&stk, FOP_copy_file_range, in);
    stk.call.fd2 = fd_ref(out);
    stk.call.offset = 2;
    stk.call.offset2 = 1;
    stk.call.size = 100;
    ck_assert_int_eq(posix_fop_copy_file_range(&brick.xl, &stk), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 8);
    ck_assert_uint_eq(stk.reply.stat.size, 10);
    ck_assert_uint_eq(stk.reply.pre.size, 0);
    ck_assert_uint_eq(stk.reply.post.size, 9);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, out, 0, 100), XL_DONE);
    ck_assert_mem_eq(stk.reply.payload.iov_base, "\00023456789", 9);
    call_end(&stk);
    fd_unref(in);
    fd_unref(out);
    inode_unref(other);
}
END_TEST

START_TEST(rchecksum_returns_the_values_of_the_spec)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;
    uint64_t zeroes;
    int64_t fips;

    /* The two known values of the specs: "abcdefgh" a hundred times, and "XYz". */
    char text[801];
    for (int i = 0; i < 100; i++)
        memcpy(text + 8 * i, "abcdefgh", 9);
    ck_assert_int_eq(write_text(fd, 0, text), 800);
    call_on_fd(&stk, FOP_rchecksum, fd);
    stk.call.size = 4096;
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_CHECK_ZERO_FILLED, 1), 0);
    ck_assert_int_eq(posix_fop_rchecksum(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.weak, 0x62653a1f);
    ck_assert_uint_eq(stk.reply.checksum_flags, 1);
    ck_assert_int_eq(dict_get_int(stk.reply.xdata, DICT_KEY_FIPS_RCHECKSUM, &fips), 0);
    ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_BUF_HAS_ZEROES, &zeroes), 0);
    ck_assert_uint_eq(zeroes, 0);
    call_end(&stk);
    ck_assert_int_eq(write_text(fd, 0, "XYz"), 3);
    call_on_fd(&stk, FOP_rchecksum, fd);
    stk.call.size = 3;
    ck_assert_int_eq(posix_fop_rchecksum(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.weak, 36962603);
    call_end(&stk);
    call_on_fd(&stk, FOP_ftruncate, fd);
    ck_assert_int_eq(posix_fop_ftruncate(&brick.xl, &stk), XL_DONE);
    stk.call.offset = 5000;
    ck_assert_int_eq(posix_fop_ftruncate(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    call_on_fd(&stk, FOP_rchecksum, fd);
    stk.call.size = 65536;
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_CHECK_ZERO_FILLED, 1), 0);
    ck_assert_int_eq(posix_fop_rchecksum(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.weak, 0);
    ck_assert_int_eq(dict_get_uint(stk.reply.xdata, DICT_KEY_BUF_HAS_ZEROES, &zeroes), 0);
    ck_assert_uint_eq(zeroes, 1);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

START_TEST(fsync_and_fsyncdir_succeed_and_a_batched_fsync_has_no_attributes)
{
    struct fd *fd = brick_open(file, O_RDWR), *dirfd = brick_open(brick.root, 0);
    struct call_stack stk;

    ck_assert_int_eq(write_text(fd, 0, "abc"), 3);
    call_on_fd(&stk, FOP_fsync, fd);
    ck_assert_int_eq(posix_fop_fsync(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.post.size, 3);
    call_end(&stk);
    call_on_fd(&stk, FOP_fsync, fd);
    stk.call.flags = 1;
    ck_assert_int_eq(dict_set_int(call_xdata(&stk), DICT_KEY_BATCH_FSYNC, 1), 0);
    ck_assert_int_eq(posix_fop_fsync(&brick.xl, &stk), XL_DONE);
    ck_assert_uint_eq(stk.reply.post.size, 0); /* batched: no iatts */
    call_end(&stk);
    call_on_fd(&stk, FOP_fsyncdir, dirfd);
    ck_assert_int_eq(posix_fop_fsyncdir(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    write_call(&stk, fd, 0, "def");
    stk.call.flags = O_SYNC;
    ck_assert_int_eq(posix_fop_writev(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    fd_unref(fd);
    fd_unref(dirfd);
}
END_TEST

START_TEST(large_reads_are_not_larger_than_the_file)
{
    struct fd *fd = brick_open(file, O_RDWR);
    struct call_stack stk;

    call_on_fd(&stk, FOP_ftruncate, fd);
    stk.call.offset = 3 << 20;
    ck_assert_int_eq(posix_fop_ftruncate(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 1 << 20, POSIX_READ_MAX), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 2 << 20);
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    ck_assert_uint_lt(stk.reply.iobuf->size, 4u << 20);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 0, 1 << 20), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 1 << 20);
    ck_assert_int_eq(stk.reply.op_errno, 0);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

START_TEST(a_read_of_unaligned_bytes_from_an_o_direct_fd_succeeds)
{
    struct call_stack stk;
    static char block[4096 + 1];

    call_on_inode(&stk, FOP_open, file);
    stk.call.flags = O_RDWR | O_DIRECT;
    int r = posix_fop_open(&brick.xl, &stk);
    if (r == -EINVAL) { /* a file system without O_DIRECT: an old tmpfs */
        call_end(&stk);
        return;
    }
    ck_assert_int_eq(r, XL_DONE);
    struct fd *fd = fd_ref(stk.reply.fd);
    call_end(&stk);
    for (size_t i = 0; i < sizeof block - 1; i++)
        block[i] = (char)('a' + i % 26);
    ck_assert_int_eq(write_text(fd, 0, block), 4096);
    call_on_fd(&stk, FOP_ftruncate, fd);
    stk.call.offset = 4000;
    ck_assert_int_eq(posix_fop_ftruncate(&brick.xl, &stk), XL_DONE);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 100, 50), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 50);
    ck_assert_mem_eq(stk.reply.payload.iov_base, block + 100, 50);
    call_end(&stk);
    ck_assert_int_eq(read_call(&stk, fd, 3990, 5000), XL_DONE);
    ck_assert_int_eq(stk.reply.op_ret, 10);
    ck_assert_int_eq(stk.reply.op_errno, ENOENT);
    ck_assert_mem_eq(stk.reply.payload.iov_base, block + 3990, 10);
    call_end(&stk);
    fd_unref(fd);
}
END_TEST

/* Threads append at the same offsets: for each offset exactly one reply reports an append. */
enum { APPENDERS = 4, PLACES = 300 };
static atomic_uint appended[PLACES];

static void *
append_everywhere(void *arg)
{
    struct fd *fd = arg;

    for (unsigned i = 0; i < PLACES; i++) {
        struct call_stack stk;
        uint64_t is_append = 0;

        write_call(&stk, fd, i * 4, "abcd");
        if (dict_set_int(call_xdata(&stk), DICT_KEY_WRITE_IS_APPEND, 0) == 0 &&
            posix_fop_writev(&brick.xl, &stk) == XL_DONE &&
            dict_get_uint(stk.reply.xdata, DICT_KEY_WRITE_IS_APPEND, &is_append) == 0 && is_append)
            atomic_fetch_add(&appended[i], 1);
        call_end(&stk);
    }
    return NULL;
}

START_TEST(one_write_of_each_offset_is_an_append)
{
    struct fd *fd = brick_open(file, O_RDWR);
    pthread_t threads[APPENDERS];

    for (int i = 0; i < APPENDERS; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, append_everywhere, fd), 0);
    for (int i = 0; i < APPENDERS; i++)
        pthread_join(threads[i], NULL);
    for (int i = 0; i < PLACES; i++)
        ck_assert_uint_eq(atomic_load(&appended[i]), 1);
    fd_unref(fd);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("posix-data");
    TCase *t = tcase_create("data");

    brick_or_skip();
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_read_returns_the_written_bytes);
    tcase_add_test(t, a_large_write_of_a_healer_goes_to_the_disk_soon);
    tcase_add_test(t, open_modes_are_kept);
    tcase_add_test(t, open_refuses_folders_and_symlinks);
    tcase_add_test(t, a_write_reports_whether_it_appends);
    tcase_add_test(t, writes_of_a_migration_do_not_overwrite_protected_writes);
    tcase_add_test(t, anonymous_fds_leave_nothing_open);
    tcase_add_test(t, truncate_shrinks_and_extends);
    tcase_add_test(t, a_write_sets_the_times_of_its_caller);
    tcase_add_test(t, fallocate_zerofill_discard_and_seek_change_and_find_ranges);
    tcase_add_test(t, zerofill_is_bounded);
    tcase_add_test(t, zerofill_ends_with_its_client_and_its_brick);
    tcase_add_test(t, copy_file_range_stops_at_the_end_of_the_source);
    tcase_add_test(t, rchecksum_returns_the_values_of_the_spec);
    tcase_add_test(t, fsync_and_fsyncdir_succeed_and_a_batched_fsync_has_no_attributes);
    tcase_add_test(t, large_reads_are_not_larger_than_the_file);
    tcase_add_test(t, a_read_of_unaligned_bytes_from_an_o_direct_fd_succeeds);
    tcase_add_test(t, one_write_of_each_offset_is_an_append);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
