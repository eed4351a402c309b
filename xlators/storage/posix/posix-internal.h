/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* posix-internal: the declarations that the files of storage/posix share: a brick's state, its options, its
 * contexts of inodes and fds.
 *
 * storage/posix is the bottom of every brick's graph: the only layer that touches the disk.
 *
 * This folder has the brick itself: its start (posix.c), health check, reserve, janitor, statfs. Its rooms:
 *
 *   object/  addressing: how a gfid, an entry of a directory or an fd becomes arguments of a system call, and
 *            the check that the reached object is the right one (obj.h, reach.c); the links below .glusterfs
 *            by which a gfid is found (handle.h); attributes as clients see them (stat.h); the three times
 *            of the ctime feature (mdata.h)
 *   entry/   names: a name in a directory as the object of a call (entry.h); LOOKUP, listings, creation,
 *            removal and rename; the objects that outlive their names (kept.c, trash.h)
 *   data/    contents: open, read, write, space (data.h)
 *   xattr/   extended attributes: those of the disk, computed ones, counters, ACLs
 *
 * Functions return 0 or -errno unless their comments say otherwise. Once the brick runs, any thread may call
 * them in a read section; functions that take an object or a name may block in system calls. The caller owns
 * their results and keeps its arguments.
 *
 * Descriptors of an idle brick: BRICK, BRICK/.glusterfs. No others stay open.
 *
 * Locks of a brick, in the order in which they are taken:
 *   name_locks[]             striped by (parent, name): for creating, removing or replacing that name
 *   object_locks[]           striped by gfid: for changing an object's links or handle, or opening it
 *   posix_inode.change_lock  read-modify-write of one object's xattrs; check-and-write of its data
 *   posix_inode.mdata_lock   one object's cached mdata
 *   dir_rename_lock          a directory's name and its handle, which cannot be moved in one step
 *                            (rename.c, handle.h)
 *   posix_inode.lock         the inode's knowledge of the object on the disk; the last one, no system call
 *                            except fcntl(2) is made under it
 * The list of serving storages (posix.c) has a lock of the process, which is a leaf.
 * Two stripes of one array are taken in the order of their index. These locks are held across system calls,
 * because each makes a sequence of system calls atomic. A plain lookup or stat takes none of them.
 */
#ifndef KILN_POSIX_INTERNAL_H
#define KILN_POSIX_INTERNAL_H

#include <dirent.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/stat.h>
#include <urcu/list.h>

#include "base/gfid.h"
#include "data/dict.h"
#include "data/iatt.h"
#include "event/chore.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "stack/call-stack.h"
#include "stack/xlator.h"

#define POSIX_XATTR_GFID "trusted.gfid"
#define POSIX_XATTR_VOLUME_ID "trusted.glusterfs.volume-id"
#define POSIX_XATTR_MDATA "trusted.glusterfs.mdata"
#define POSIX_XATTR_GFID2PATH "trusted.gfid2path." /* a prefix */
#define POSIX_XATTR_LINKTO "trusted.glusterfs.dht.linkto"
#define POSIX_XATTR_MOVING_DIR "trusted.kiln.moving-dir" /* of .glusterfs: handle.h */
#define POSIX_ACL_ACCESS "system.posix_acl_access"
#define POSIX_ACL_DEFAULT "system.posix_acl_default"
#define POSIX_HIDDEN_DIR ".glusterfs"

struct posix_conf {
    char *directory, *hostname;
    struct gfid volume_id, glusterd_uuid; /* null: not given */
    char *gfid2path_separator;
    int64_t shared_brick_count;
    uint64_t reserve; /* below 100: percent; else bytes */
    int64_t health_check_interval, health_check_timeout; /* seconds; interval 0: off */
    int64_t janitor_sleep;                               /* seconds */
    int64_t brick_uid, brick_gid;                        /* -1: leave alone */
    int64_t create_mask, create_directory_mask, force_create_mode, force_directory_mode;
    int64_t max_hardlinks; /* 0: Kiln sets no limit */
    bool fips_rchecksum, node_uuid_pathinfo, gfid2path, pgfid, ctime, o_direct, export_statfs_size,
        mandate_attribute;
    bool disable_landfill_purge, require_mount;
};

#define POSIX_STRIPES 64

enum posix_chore { POSIX_HEALTH, POSIX_JANITOR, POSIX_RESERVE, POSIX_CHORES };

/* A brick. Created by init, freed by fini. Fields without a comment are set by init and read-only afterwards.
 */
struct posix {
    struct xlator *xl;
    struct cds_list_head served; /* in the process's list of serving storages: posix.c */
    const char *brick;  /* real path of BRICK: no symlinks, no trailing slash */
    size_t brick_len;
    int brick_fd, handles_fd; /* BRICK and BRICK/.glusterfs */
    dev_t dev;
    ino_t ino, handles_ino;
    char hostname[256]; /* for pathinfo */
    bool has_acl;       /* the file system stores POSIX ACLs */
    uint16_t owner; /* of pooled objects: the graph's */

    pthread_mutex_t dir_rename_lock;
    atomic_uint dir_renames; /* odd: a rename is under way. Written under dir_rename_lock; see handle.h */
    pthread_mutex_t name_locks[POSIX_STRIPES], object_locks[POSIX_STRIPES];

    atomic_bool is_full; /* storage.reserve: reserve.c */
    /* last figures of reserve.c */
    struct {
        _Atomic uint64_t bytes, bytes_used, bytes_free, inodes, inodes_free;
    } disk;
    atomic_bool is_going_down;
    atomic_bool has_landfill; /* the janitor has work */

    struct chore chores[POSIX_CHORES];
    struct timer health_deadline; /* armed while the health check runs */
};

static inline struct posix *
posix_of(const struct xlator *xl)
{
    return xl->private;
}

static inline const struct posix_conf *
posix_conf(const struct xlator *xl)
{
    return xlator_conf(xl);
}

/* ---- per inode ------------------------------------------------------------------------------- */

/* Created on first use, freed when the table forgets the inode. */
struct posix_inode {
    /* the last in the order: reaching an object takes it, which may happen under any other lock */
    pthread_mutex_t lock;
    /* held while mdata is read from the disk or written, so also while the object is reached */
    pthread_mutex_t mdata_lock;
    /* read-modify-write of xattrs (xattrop) and of data (write-is-append). A stat does not wait for these,
     * which may be slow */
    pthread_mutex_t change_lock;
    struct mdata mdata;  /* under mdata_lock: the copy of the disk's mdata; takes precedence over the disk */
    bool is_mdata_known; /* under mdata_lock: the disk was read or written */
    bool has_mdata;      /* under mdata_lock, if known */
    /* known, and absent; written under mdata_lock, read without a lock */
    atomic_bool is_without_mdata;
    /* no name, no handle; not found by gfid any more. Written under the object lock */
    atomic_bool is_unlinked;
    /* its handle was moved to .glusterfs/unlink and is there. Written under the object lock */
    atomic_bool is_kept;
    /* st_ino on the disk, from a checked stat; 0: none yet, or forgotten. Written under lock */
    _Atomic uint64_t backend_ino;
    /* st_ctim of the last stat with a read of trusted.gfid, in nanoseconds; 0: none. Written under lock */
    _Atomic int64_t checked_ctime;
    atomic_uint births;           /* how often backend_ino was forgotten. Written under lock */
    bool is_leaving;              /* under lock: see posix_inode_leaves() */
    /* the handle led to backend_ino: forgotten with it. Written under lock */
    atomic_bool has_handle;
    /* descriptor + 1 of a removed directory on which an fd is open; 0: none. Written under lock (kept.c) */
    atomic_int kept_dir;
    /* of a directory: dir_renames and, in the lower half, the length of its path at that time (path-length.c)
     */
    _Atomic uint64_t path_len;
};

/* Returns the inode's context, created if necessary. NULL: no memory. */
struct posix_inode *posix_inode_get(struct xlator *xl, struct inode *inode);

/* True if the object was statted and checked since it was created. */
bool posix_inode_is_met(const struct xlator *xl, struct inode *inode);
/* True if the object's last name was removed. Then only open fds reach it. */
static inline bool
posix_inode_is_gone(const struct xlator *xl, struct inode *inode)
{
    const struct posix_inode *ctx = inode_ctx(inode, xl);

    return ctx && atomic_load_explicit(&ctx->is_unlinked, memory_order_acquire);
}
/* True if the stat is of this inode's object, by the number of an earlier checked stat. Saves reading the
 * gfid. */
bool posix_inode_is(const struct xlator *xl, struct inode *inode, const struct stat *st);
/* Must be read before the object is statted, for posix_inode_met(). `inode` may be NULL. */
unsigned posix_inode_births(const struct xlator *xl, struct inode *inode);
/* Learns the object's number after a checked stat, unless the object was removed or created anew meanwhile.
 * `inode` may be NULL. */
void posix_inode_met(struct xlator *xl, struct inode *inode, const struct stat *st, unsigned births);
/* True if the object has not changed since its gfid was read last. Removing or changing the gfid by hand
 * changes the ctime, but so does every other change. `st`: a stat of the object. */
bool posix_inode_is_unchanged(const struct xlator *xl, struct inode *inode, const struct stat *st);
/* Forgets the number, because its object no longer has the inode's gfid or the handle is gone.
 */
void posix_inode_doubt(struct xlator *xl, struct inode *inode);
/* Notes that the object was reached through its handle, so a LOOKUP by name need not check the handle again.
 * An object that was met by its name only, as in READDIRP, may have no handle. `births` as for
 * posix_inode_met(). */
void posix_inode_led(struct xlator *xl, struct inode *inode, unsigned births);
bool posix_inode_has_handle(const struct xlator *xl, struct inode *inode);
/* posix_inode_leaves() forgets the object's number before its last name may be removed, because the number
 * may soon belong to another object. The number is not learnt again until posix_inode_gone(), which says
 * whether the name was removed or the object stays. `inode` may be NULL. Both under the object lock. The
 * first may be omitted if it does no harm that the object is not found for a moment. */
void posix_inode_leaves(struct xlator *xl, struct inode *inode);
void posix_inode_gone(struct xlator *xl, struct inode *inode, bool is_gone);
/* Runs when a new object gets this gfid: if the table has an inode of a removed object with this gfid, resets
 * the inode's knowledge. Under the lock of the name, before any client learns of the object. */
void posix_inode_reborn(struct xlator *xl, const struct gfid *gfid);

/* ---- per fd ---------------------------------------------------------------------------------- */

struct posix_fd {
    int sysfd;
    uint32_t flags; /* as opened */
    bool is_dir;
    pthread_mutex_t dir_lock; /* a directory's offset, from seek to the end of the batch */
    uint64_t dir_off;         /* under dir_lock: the descriptor's position */
    DIR *dir;                 /* NULL unless readdir creates it; owns sysfd then */
};

/* Takes over `sysfd` (also on failure, where it is closed). NULL: no memory. */
struct posix_fd *posix_fd_new(struct posix *p, int sysfd, uint32_t flags, bool is_dir);
void posix_fd_free(struct posix_fd *pfd);

/* ---- locks ----------------------------------------------------------------------------------- */

/* Return the stripe of a name or an object. */
pthread_mutex_t *posix_name_stripe(struct posix *p, const struct gfid *parent, const char *name);
pthread_mutex_t *posix_object_stripe(struct posix *p, const struct gfid *gfid);
/* Return the same, locked; release it with pthread_mutex_unlock(). */
pthread_mutex_t *posix_name_lock(struct posix *p, const struct gfid *parent, const char *name);
/* A call that opens an object by its handle holds this lock from before open() until the fd is counted in
 * inode->open_fds, so that a concurrent unlink knows whether to keep the object for the fd. */
pthread_mutex_t *posix_object_lock(struct posix *p, const struct gfid *gfid);

static inline void
posix_unlock_cleanup(pthread_mutex_t **m)
{
    if (*m)
        pthread_mutex_unlock(*m);
}
/* A lock that ends with its block: POSIX_LOCKED pthread_mutex_t *l = posix_object_lock(...); */
#define POSIX_LOCKED __attribute__((cleanup(posix_unlock_cleanup), unused))

/* ---- storage.reserve (reserve.c) ------------------------------------------------------------- */

/* True if the disk has no more free space than storage.reserve keeps, as of the last look. */
static inline bool
posix_disk_is_full(const struct posix *p)
{
    return atomic_load_explicit(&p->is_full, memory_order_relaxed);
}
/* Returns -ENOSPC if the brick is full and the caller is not one of those that may still write; otherwise 0.
 */
int posix_reserve_check(struct xlator *xl, const struct call_stack *stk);
/* The same with fresh figures of the disk (fallocate). */
int posix_reserve_check_now(struct xlator *xl, const struct call_stack *stk);

/* ---- chores: health.c, janitor.c, reserve.c -------------------------------------------------- */

void posix_health_init(struct posix *p);
void posix_health_start(struct posix *p);
void posix_janitor_init(struct posix *p);
/* Creates .glusterfs/landfill and .glusterfs/unlink. A failure is only logged. */
void posix_janitor_prepare(struct posix *p);
/* Cleans up after the last run: empties .glusterfs/unlink, moves a landfill of the old format, wakes the
 * janitor. Runs when the brick starts, not when it is built, because the process that served the folder
 * before may still have open files there. A failure is only logged. */
void posix_janitor_take_over(struct posix *p);
/* Wakes the janitor after an object was moved to the landfill. */
void posix_janitor_wake(struct posix *p);
void posix_reserve_init(struct posix *p);
void posix_reserve_start(struct posix *p);

/* ---- file operations: posix_fop_lookup() and so on (libc has its own posix_fallocate) -------- */

#define POSIX_FOPS(X)                                                                                        \
    X(lookup) X(create) X(mknod) X(mkdir) X(symlink) X(link) X(unlink) X(rmdir) X(rename) X(setattr)         \
    X(fsetattr) X(statfs)                                                                                    \
    X(stat) X(fstat) X(readlink) X(open) X(opendir) X(readv) X(writev) X(truncate) X(ftruncate) X(flush)     \
    X(fsync) X(fsyncdir) X(release) X(releasedir) X(setxattr) X(fsetxattr) X(getxattr) X(fgetxattr)          \
    X(removexattr) X(fremovexattr) X(xattrop) X(fxattrop) X(access) X(readdir) X(readdirp) X(rchecksum)      \
    X(fallocate) X(discard) X(zerofill) X(seek) X(copy_file_range) X(ipc)            \
    X(lease)

#define POSIX_FOP_PROTOTYPE(name) int posix_fop_##name(struct xlator *xl, struct call_stack *stk);
POSIX_FOPS(POSIX_FOP_PROTOTYPE)
#undef POSIX_FOP_PROTOTYPE

/* The type's fd_release: closes and frees (fd.c). */
void posix_fd_release(struct xlator *xl, struct fd *fd, void *ctx);

extern const struct xlator_type storage_posix_xlator;

#endif
