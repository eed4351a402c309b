/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* gfapi: the calls of libgfapi.so.0 that programs make, as their dynamic symbol tables and
 * doc/protocol/client.md chapter 6 describe them. The header is not installed: programs are built with the
 * headers of GlusterFS. gfapi.map gives the version of each name.
 *
 * Where two versions of a name exist, the function with the suffix of the older version (_34, _35 ...) has
 * the older prototype. Unless a comment says otherwise, calls that return an int or a size return -1 with
 * errno, and calls that return a pointer return NULL with errno. Offsets and sizes are in bytes.
 *
 * thread: any thread may make any call, at the same time as others. A thread that makes a call of a file or
 * volume must know that no other thread closes it meanwhile. Callbacks run on threads of the library.
 * fork: a child process cannot use volumes that its parent has opened (ENOTCONN), and cannot open volumes if
 * the parent has opened one (ENOTSUP). */
#ifndef KILN_API_GFAPI_H
#define KILN_API_GFAPI_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <time.h>

#define GFAPI __attribute__((visibility("default")))

struct glfs;    /* a volume */
struct glfs_fd; /* an open file or directory, with a position of its own */
struct glfs_object; /* a file or directory without a path */
struct glfs_xreaddirp_stat; /* of an entry of a directory; freed by glfs_free(), with the object inside */

/* Attributes before and after a call. The bits of `mask` are those of statx(2). */
struct glfs_stat {
    uint64_t mask, attributes, attributes_mask;
    struct timespec atime, btime, ctime, mtime;
    uint64_t ino, size, blocks;
    uint32_t rdev_major, rdev_minor, dev_major, dev_minor;
    uint64_t blksize, nlink;
    uint32_t uid, gid, mode;
};

/* The callbacks of asynchronous calls: called once, on a thread of the library, with errno set if `ret` is
 * negative. `before` and `after` are NULL if the brick has sent no attributes. */
typedef void glfs_io_cbk(struct glfs_fd *fd, ssize_t ret, struct glfs_stat *before, struct glfs_stat *after,
                         void *data);
typedef void glfs_io_cbk_34(struct glfs_fd *fd, ssize_t ret, void *data);

/* ---- volumes: volume.c ----------------------------------------------------------------------- */

/* Makes a volume that is not connected. The name is copied. */
GFAPI struct glfs *glfs_new(const char *volume);
/* Adds a server of the volfile, tried in the order of the calls. `transport`: tcp (NULL too), or unix with
 * the path of a socket as `host`; port 0: 24007. unset removes the server again. Before init. */
GFAPI int glfs_set_volfile_server(struct glfs *fs, const char *transport, const char *host, int port);
GFAPI int glfs_unset_volfile_server(struct glfs *fs, const char *transport, const char *host, int port);
/* Takes the volfile from a file instead of a server. Before init. */
GFAPI int glfs_set_volfile(struct glfs *fs, const char *path);
/* Sets an option of the layers whose names match the pattern. After init: when the next volfile comes. */
GFAPI int glfs_set_xlator_option(struct glfs *fs, const char *pattern, const char *key, const char *value);
/* Copies the volfile that the volume uses. Returns `size`; or, if the buffer is too small, the number of
 * missing bytes as a negative number. */
GFAPI ssize_t glfs_get_volfile(struct glfs *fs, void *out, size_t size);
/* The log file ("-": standard error; NULL: the default) and the level, 0 to 9; below 0: the default. A
 * process has one log file: the file of the volume that was initialised last. */
GFAPI int glfs_set_logging(struct glfs *fs, const char *path, int level);
/* The folder for statedumps; the default is /var/run/gluster. EINVAL: the path is no folder. */
GFAPI int glfs_set_statedump_path(struct glfs *fs, const char *path);
/* 's' writes a statedump, FOLDER/glusterdump.PID.dump.SECONDS; 'h' logs the keys. ENOTSUP: another key. */
GFAPI int glfs_sysrq(struct glfs *fs, char key);
/* Connects: fetches the volfile, makes the graph, and waits until the bricks are up or down. */
GFAPI int glfs_init(struct glfs *fs);
/* Waits for running calls and their callbacks, disconnects and frees the volume, whose files and directories
 * must be closed. A callback must not call this function. */
GFAPI int glfs_fini(struct glfs *fs);
/* Copies the 16 bytes of the volume's id; NULL: returns the number of bytes only. */
GFAPI int glfs_get_volumeid(struct glfs *fs, char *id, size_t size);
/* Frees memory that a call has returned for glfs_free(). */
GFAPI int glfs_free(void *memory);

/* The caller of the calling thread's calls, instead of the thread's effective ids; groups: size 0 resets. */
GFAPI int glfs_setfsuid(uid_t uid);
GFAPI int glfs_setfsgid(gid_t gid);
GFAPI int glfs_setfsgroups(size_t size, const gid_t *groups);
/* The 16 bytes of the lease that later calls use; NULL: none. Without effect, because no lease is given. */
GFAPI int glfs_setfsleaseid(const char *id);

/* ---- files: file.c --------------------------------------------------------------------------- */

GFAPI struct glfs_fd *glfs_open(struct glfs *fs, const char *path, int flags);
/* Opens a file, making it if it does not exist. `mode` is not masked by the process's umask. */
GFAPI struct glfs_fd *glfs_creat(struct glfs *fs, const char *path, int flags, mode_t mode);
GFAPI int glfs_close(struct glfs_fd *fd);
/* A second object for the same open file, with a position of its own. */
GFAPI struct glfs_fd *glfs_dup(struct glfs_fd *fd);
GFAPI struct glfs *glfs_from_glfd(struct glfs_fd *fd);
GFAPI off_t glfs_lseek(struct glfs_fd *fd, off_t offset, int whence);
/* The owner of later locks of this object, at most 1024 bytes. */
GFAPI int glfs_fd_set_lkowner(struct glfs_fd *fd, void *owner, int size);
GFAPI int glfs_posix_lock(struct glfs_fd *fd, int cmd, struct flock *lock);
/* The same with `mode` 0; other modes: ENOTSUP. */
GFAPI int glfs_file_lock(struct glfs_fd *fd, int cmd, struct flock *lock, int mode);

/* ---- data: io.c. `flags` is for the future: 0 ------------------------------------------------ */

GFAPI ssize_t glfs_read(struct glfs_fd *fd, void *bytes, size_t size, int flags);
GFAPI ssize_t glfs_write(struct glfs_fd *fd, const void *bytes, size_t size, int flags);
GFAPI ssize_t glfs_readv(struct glfs_fd *fd, const struct iovec *iov, int count, int flags);
GFAPI ssize_t glfs_writev(struct glfs_fd *fd, const struct iovec *iov, int count, int flags);
GFAPI ssize_t glfs_preadv(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags);
GFAPI ssize_t glfs_pwritev(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags);
GFAPI ssize_t glfs_pread(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags,
                         struct glfs_stat *after);
GFAPI ssize_t glfs_pread_34(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags);
GFAPI ssize_t glfs_pwrite(struct glfs_fd *fd, const void *bytes, size_t size, off_t offset, int flags,
                          struct glfs_stat *before, struct glfs_stat *after);
GFAPI ssize_t glfs_pwrite_34(struct glfs_fd *fd, const void *bytes, size_t size, off_t offset, int flags);
GFAPI int glfs_fsync(struct glfs_fd *fd, struct glfs_stat *before, struct glfs_stat *after);
GFAPI int glfs_fsync_34(struct glfs_fd *fd);
GFAPI int glfs_fdatasync(struct glfs_fd *fd, struct glfs_stat *before, struct glfs_stat *after);
GFAPI int glfs_fdatasync_34(struct glfs_fd *fd);
GFAPI int glfs_ftruncate(struct glfs_fd *fd, off_t size, struct glfs_stat *before, struct glfs_stat *after);
GFAPI int glfs_ftruncate_34(struct glfs_fd *fd, off_t size);
GFAPI int glfs_fallocate(struct glfs_fd *fd, int keeps_size, off_t offset, size_t size);
GFAPI int glfs_discard(struct glfs_fd *fd, off_t offset, size_t size);
GFAPI int glfs_zerofill(struct glfs_fd *fd, off_t offset, off_t size);
/* Copies between two files on the bricks. The offsets advance by the bytes copied; NULL: the position. */
GFAPI ssize_t glfs_copy_file_range(struct glfs_fd *in, off64_t *in_offset, struct glfs_fd *out,
                                   off64_t *out_offset, size_t size, unsigned flags,
                                   struct glfs_stat *in_stat, struct glfs_stat *before,
                                   struct glfs_stat *after);

/* The asynchronous forms return 0, or -1 with errno and call nothing. The buffers belong to the call until
 * the callback; the array of struct iovec until the return. */
GFAPI int glfs_read_async(struct glfs_fd *fd, void *bytes, size_t size, int flags, glfs_io_cbk *fn,
                          void *data);
GFAPI int glfs_read_async_34(struct glfs_fd *fd, void *bytes, size_t size, int flags, glfs_io_cbk_34 *fn,
                             void *data);
GFAPI int glfs_write_async(struct glfs_fd *fd, const void *bytes, size_t size, int flags, glfs_io_cbk *fn,
                           void *data);
GFAPI int glfs_write_async_34(struct glfs_fd *fd, const void *bytes, size_t size, int flags,
                              glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_readv_async(struct glfs_fd *fd, const struct iovec *iov, int count, int flags, glfs_io_cbk *fn,
                           void *data);
GFAPI int glfs_readv_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, int flags,
                              glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_writev_async(struct glfs_fd *fd, const struct iovec *iov, int count, int flags,
                            glfs_io_cbk *fn, void *data);
GFAPI int glfs_writev_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, int flags,
                               glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_pread_async(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags,
                           glfs_io_cbk *fn, void *data);
GFAPI int glfs_pread_async_34(struct glfs_fd *fd, void *bytes, size_t size, off_t offset, int flags,
                              glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_pwrite_async(struct glfs_fd *fd, const void *bytes, int size, off_t offset, int flags,
                            glfs_io_cbk *fn, void *data);
GFAPI int glfs_pwrite_async_34(struct glfs_fd *fd, const void *bytes, int size, off_t offset, int flags,
                               glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_preadv_async(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags,
                            glfs_io_cbk *fn, void *data);
GFAPI int glfs_preadv_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset,
                               int flags, glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_pwritev_async(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset, int flags,
                             glfs_io_cbk *fn, void *data);
GFAPI int glfs_pwritev_async_34(struct glfs_fd *fd, const struct iovec *iov, int count, off_t offset,
                                int flags, glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_fsync_async(struct glfs_fd *fd, glfs_io_cbk *fn, void *data);
GFAPI int glfs_fsync_async_34(struct glfs_fd *fd, glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_fdatasync_async(struct glfs_fd *fd, glfs_io_cbk *fn, void *data);
GFAPI int glfs_fdatasync_async_34(struct glfs_fd *fd, glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_ftruncate_async(struct glfs_fd *fd, off_t size, glfs_io_cbk *fn, void *data);
GFAPI int glfs_ftruncate_async_34(struct glfs_fd *fd, off_t size, glfs_io_cbk_34 *fn, void *data);
GFAPI int glfs_discard_async(struct glfs_fd *fd, off_t offset, size_t size, glfs_io_cbk *fn, void *data);
GFAPI int glfs_discard_async_35(struct glfs_fd *fd, off_t offset, size_t size, glfs_io_cbk_34 *fn,
                                void *data);
GFAPI int glfs_zerofill_async(struct glfs_fd *fd, off_t offset, off_t size, glfs_io_cbk *fn, void *data);
GFAPI int glfs_zerofill_async_35(struct glfs_fd *fd, off_t offset, off_t size, glfs_io_cbk_34 *fn,
                                 void *data);

/* ---- names: names.c -------------------------------------------------------------------------- */

GFAPI int glfs_unlink(struct glfs *fs, const char *path);
GFAPI int glfs_rmdir(struct glfs *fs, const char *path);
GFAPI int glfs_mkdir(struct glfs *fs, const char *path, mode_t mode);
GFAPI int glfs_mknod(struct glfs *fs, const char *path, mode_t mode, dev_t rdev);
GFAPI int glfs_symlink(struct glfs *fs, const char *target, const char *path);
GFAPI int glfs_readlink(struct glfs *fs, const char *path, char *bytes, size_t size);
GFAPI int glfs_link(struct glfs *fs, const char *path, const char *path2);
GFAPI int glfs_rename(struct glfs *fs, const char *path, const char *path2);
GFAPI int glfs_chdir(struct glfs *fs, const char *path);
GFAPI int glfs_fchdir(struct glfs_fd *fd);
GFAPI char *glfs_getcwd(struct glfs *fs, char *bytes, size_t size);
/* The path without symbolic links. `resolved` NULL: memory for glfs_free(), of the older version for
 * free(3). */
GFAPI char *glfs_realpath(struct glfs *fs, const char *path, char *resolved);
GFAPI char *glfs_realpath_34(struct glfs *fs, const char *path, char *resolved);

/* ---- attributes: attr.c ---------------------------------------------------------------------- */

GFAPI int glfs_stat(struct glfs *fs, const char *path, struct stat *st);
/* The same in the other form. The call gives all attributes, also those that `mask` does not name. */
GFAPI int glfs_statx(struct glfs *fs, const char *path, unsigned mask, struct glfs_stat *out);
GFAPI int glfs_lstat(struct glfs *fs, const char *path, struct stat *st);
GFAPI int glfs_fstat(struct glfs_fd *fd, struct stat *st);
GFAPI int glfs_access(struct glfs *fs, const char *path, int mode);
GFAPI int glfs_chmod(struct glfs *fs, const char *path, mode_t mode);
GFAPI int glfs_fchmod(struct glfs_fd *fd, mode_t mode);
GFAPI int glfs_chown(struct glfs *fs, const char *path, uid_t uid, gid_t gid);
GFAPI int glfs_lchown(struct glfs *fs, const char *path, uid_t uid, gid_t gid);
GFAPI int glfs_fchown(struct glfs_fd *fd, uid_t uid, gid_t gid);
GFAPI int glfs_utimens(struct glfs *fs, const char *path, const struct timespec times[2]);
GFAPI int glfs_lutimens(struct glfs *fs, const char *path, const struct timespec times[2]);
GFAPI int glfs_futimens(struct glfs_fd *fd, const struct timespec times[2]);
/* Set those attributes of st->mask that are mode, owner, group and times. */
GFAPI int glfs_setattr(struct glfs *fs, const char *path, struct glfs_stat *st, int follow);
GFAPI int glfs_fsetattr(struct glfs_fd *fd, struct glfs_stat *st);
GFAPI int glfs_truncate(struct glfs *fs, const char *path, off_t size);
GFAPI int glfs_statvfs(struct glfs *fs, const char *path, struct statvfs *out);

/* ---- extended attributes: xattr.c ------------------------------------------------------------ */

GFAPI int glfs_setxattr(struct glfs *fs, const char *path, const char *name, const void *value, size_t size,
                        int flags);
GFAPI int glfs_lsetxattr(struct glfs *fs, const char *path, const char *name, const void *value, size_t size,
                         int flags);
GFAPI int glfs_fsetxattr(struct glfs_fd *fd, const char *name, const void *value, size_t size, int flags);
GFAPI ssize_t glfs_getxattr(struct glfs *fs, const char *path, const char *name, void *value, size_t size);
GFAPI ssize_t glfs_lgetxattr(struct glfs *fs, const char *path, const char *name, void *value, size_t size);
GFAPI ssize_t glfs_fgetxattr(struct glfs_fd *fd, const char *name, void *value, size_t size);
GFAPI ssize_t glfs_listxattr(struct glfs *fs, const char *path, void *names, size_t size);
GFAPI ssize_t glfs_llistxattr(struct glfs *fs, const char *path, void *names, size_t size);
GFAPI ssize_t glfs_flistxattr(struct glfs_fd *fd, void *names, size_t size);
GFAPI int glfs_removexattr(struct glfs *fs, const char *path, const char *name);
GFAPI int glfs_lremovexattr(struct glfs *fs, const char *path, const char *name);
GFAPI int glfs_fremovexattr(struct glfs_fd *fd, const char *name);

/* ---- directories: dir.c ---------------------------------------------------------------------- */

GFAPI struct glfs_fd *glfs_opendir(struct glfs *fs, const char *path);
GFAPI int glfs_closedir(struct glfs_fd *fd);
/* The _r forms return 0 with *out NULL at the end. The others return NULL at the end, with errno unchanged;
 * the entry is valid until the next call for this object. */
GFAPI struct dirent *glfs_readdir(struct glfs_fd *fd);
GFAPI int glfs_readdir_r(struct glfs_fd *fd, struct dirent *entry, struct dirent **out);
GFAPI struct dirent *glfs_readdirplus(struct glfs_fd *fd, struct stat *st);
GFAPI int glfs_readdirplus_r(struct glfs_fd *fd, struct stat *st, struct dirent *entry, struct dirent **out);
GFAPI long glfs_telldir(struct glfs_fd *fd);
GFAPI void glfs_seekdir(struct glfs_fd *fd, long offset);

/* ---- objects: object.c ----------------------------------------------------------------------- */

/* The calls return objects of the program, which glfs_h_close() frees. `st` NULL: not wanted. */

/* A path from a directory; `dir` NULL: from the working directory. `follow`: also a link at the end. */
GFAPI struct glfs_object *glfs_h_lookupat(struct glfs *fs, struct glfs_object *dir, const char *path,
                                          struct stat *st, int follow);
GFAPI struct glfs_object *glfs_h_lookupat_342(struct glfs *fs, struct glfs_object *dir, const char *path,
                                              struct stat *st);
/* Handles have 16 bytes. `handle` NULL: returns that number only. ERANGE: `size` is less. */
GFAPI ssize_t glfs_h_extract_handle(struct glfs_object *o, unsigned char *handle, int size);
/* ESTALE: the object is gone. */
GFAPI struct glfs_object *glfs_h_create_from_handle(struct glfs *fs, unsigned char *handle, int size,
                                                    struct stat *st);
GFAPI struct glfs_object *glfs_object_copy(struct glfs_object *o);
GFAPI int glfs_h_close(struct glfs_object *o);

GFAPI struct glfs_object *glfs_h_creat(struct glfs *fs, struct glfs_object *dir, const char *name, int flags,
                                       mode_t mode, struct stat *st);
/* `flags` 0: a new file, for reading and writing. */
GFAPI struct glfs_object *glfs_h_creat_open(struct glfs *fs, struct glfs_object *dir, const char *name,
                                            int flags, mode_t mode, struct stat *st, struct glfs_fd **out_fd);
GFAPI struct glfs_object *glfs_h_mkdir(struct glfs *fs, struct glfs_object *dir, const char *name,
                                       mode_t mode, struct stat *st);
GFAPI struct glfs_object *glfs_h_mknod(struct glfs *fs, struct glfs_object *dir, const char *name,
                                       mode_t mode, dev_t rdev, struct stat *st);
GFAPI struct glfs_object *glfs_h_symlink(struct glfs *fs, struct glfs_object *dir, const char *name,
                                         const char *target, struct stat *st);
/* Removes a file, or an empty directory. */
GFAPI int glfs_h_unlink(struct glfs *fs, struct glfs_object *dir, const char *name);
GFAPI int glfs_h_link(struct glfs *fs, struct glfs_object *o, struct glfs_object *dir, const char *name);
GFAPI int glfs_h_rename(struct glfs *fs, struct glfs_object *dir, const char *name, struct glfs_object *dir2,
                        const char *name2);
GFAPI int glfs_h_readlink(struct glfs *fs, struct glfs_object *o, char *bytes, size_t size);

GFAPI int glfs_h_stat(struct glfs *fs, struct glfs_object *o, struct stat *st);
GFAPI int glfs_h_getattrs(struct glfs *fs, struct glfs_object *o, struct stat *st);
/* `valid`: mode 0x1, uid 0x2, gid 0x4, size 0x8, atime 0x10, mtime 0x20. */
GFAPI int glfs_h_setattrs(struct glfs *fs, struct glfs_object *o, struct stat *st, int valid);
GFAPI int glfs_h_truncate(struct glfs *fs, struct glfs_object *o, off_t size);
GFAPI int glfs_h_access(struct glfs *fs, struct glfs_object *o, int mode);
GFAPI int glfs_h_statfs(struct glfs *fs, struct glfs_object *o, struct statvfs *out);
/* `name` NULL or empty: lists the names. */
GFAPI int glfs_h_getxattrs(struct glfs *fs, struct glfs_object *o, const char *name, void *value,
                           size_t size);
GFAPI int glfs_h_setxattrs(struct glfs *fs, struct glfs_object *o, const char *name, const void *value,
                           size_t size, int flags);
GFAPI int glfs_h_removexattrs(struct glfs *fs, struct glfs_object *o, const char *name);

GFAPI struct glfs_fd *glfs_h_open(struct glfs *fs, struct glfs_object *o, int flags);
/* glfs_fchdir() does not take the result, because the path is not known. */
GFAPI struct glfs_fd *glfs_h_opendir(struct glfs *fs, struct glfs_object *o);
GFAPI ssize_t glfs_h_anonymous_read(struct glfs *fs, struct glfs_object *o, const void *bytes, size_t size,
                                    off_t offset);
GFAPI ssize_t glfs_h_anonymous_write(struct glfs *fs, struct glfs_object *o, const void *bytes, size_t size,
                                     off_t offset);

/* The next entry of a directory. `flags`: 0x1 attributes, 0x2 object. Returns the flags that *out has; 0 with
 * *entry_out and *out NULL at the end. get_stat and get_object return NULL with EINVAL without the flag;
 * the results are valid until glfs_free(*out). */
GFAPI int glfs_xreaddirplus_r(struct glfs_fd *fd, uint32_t flags, struct glfs_xreaddirp_stat **out,
                              struct dirent *entry, struct dirent **entry_out);
GFAPI struct stat *glfs_xreaddirplus_get_stat(struct glfs_xreaddirp_stat *x);
GFAPI struct glfs_object *glfs_xreaddirplus_get_object(struct glfs_xreaddirp_stat *x);

/* ---- ACLs: acl.c ----------------------------------------------------------------------------- */

/* ACLs of libacl: the program frees the result with acl_free(3). `type`: ACL_TYPE_ACCESS or ACL_TYPE_DEFAULT
 * of sys/acl.h. An object without an access ACL has the three entries of its mode, and a directory without a
 * default ACL an ACL without entries. Setting a default ACL without entries removes the ACL. A call fails
 * with ENOTSUP if the machine has no libacl.so.1. */
GFAPI void *glfs_h_acl_get(struct glfs *fs, struct glfs_object *o, unsigned type);
GFAPI int glfs_h_acl_set(struct glfs *fs, struct glfs_object *o, unsigned type, void *acl);

/* ---- upcalls: upcall.c ----------------------------------------------------------------------- */

struct glfs_upcall;       /* an event; freed by glfs_free() */
struct glfs_upcall_inode; /* the changed object of an event */

/* Called on a thread of the library; must free `u`. */
typedef void glfs_upcall_cbk(struct glfs_upcall *u, void *data);

/* Has the function called for the events of the mask: 0x1, an object was changed by another client. Returns
 * the accepted events; unregister: the removed ones. A volume has one function. */
GFAPI int glfs_upcall_register(struct glfs *fs, uint32_t events, glfs_upcall_cbk *fn, void *data);
GFAPI int glfs_upcall_unregister(struct glfs *fs, uint32_t events);
/* Always ENOSYS: bricks give no leases. */
GFAPI int glfs_lease(struct glfs_fd *fd, void *lease, void *fn, void *data);
GFAPI int glfs_h_lease(struct glfs *fs, struct glfs_object *o, void *lease);
/* Of events that recall a lease, which there are none of: NULL and 0. */
GFAPI struct glfs_object *glfs_upcall_lease_get_object(void *event);
GFAPI uint32_t glfs_upcall_lease_get_lease_type(void *event);
/* The oldest event since the first call. Returns 0 with *out NULL and errno ENOENT if there is none. */
GFAPI int glfs_h_poll_upcall(struct glfs *fs, struct glfs_upcall **out);
GFAPI struct glfs *glfs_upcall_get_fs(struct glfs_upcall *u);
/* 1: an object was changed; `event` is a struct glfs_upcall_inode, valid as long as `u`. */
GFAPI int glfs_upcall_get_reason(struct glfs_upcall *u);
GFAPI void *glfs_upcall_get_event(struct glfs_upcall *u);
GFAPI struct glfs_object *glfs_upcall_inode_get_object(struct glfs_upcall_inode *i);
/* Kinds of change: links 0x1, mode 0x2, owner 0x4, size 0x8, times 0x10, atime 0x20, permissions 0x40, a
 * rename 0x80, removed 0x100, times of the parent 0x200. */
GFAPI uint64_t glfs_upcall_inode_get_flags(struct glfs_upcall_inode *i);
/* Not told by bricks: 0 or NULL. */
GFAPI uint64_t glfs_upcall_inode_get_expire(struct glfs_upcall_inode *i);
GFAPI struct stat *glfs_upcall_inode_get_stat(struct glfs_upcall_inode *i);
GFAPI struct glfs_object *glfs_upcall_inode_get_pobject(struct glfs_upcall_inode *i);
GFAPI struct stat *glfs_upcall_inode_get_pstat(struct glfs_upcall_inode *i);
GFAPI struct glfs_object *glfs_upcall_inode_get_oldpobject(struct glfs_upcall_inode *i);
GFAPI struct stat *glfs_upcall_inode_get_oldpstat(struct glfs_upcall_inode *i);

#endif
