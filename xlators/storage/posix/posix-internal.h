/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* posix-internal: what the files of storage/posix share: a brick's state, its options, what it keeps per
 * inode and fd.
 *
 * storage/posix is the bottom of every brick's graph: the only layer that touches the disk.
 *
 *   obj.h      addressing: how a gfid, an entry of a directory or an fd becomes arguments of a system call,
 *              and the check that what was reached is what was meant
 *   handle.h   the links below .glusterfs by which a gfid is found
 *   stat.h     iatt: attributes as clients see them
 *   mdata.h    the three times of the ctime feature
 *   entry.h    a name in a directory as the subject of a call; data.h: contents and fds; readdir.h: listings
 *   xattr-*.h, xattrop.h, virtual-xattr.h, acl-text.h, gfid2path.h, pgfid.h: extended attributes
 *
 * Functions return 0 or -errno unless they say otherwise. Once the brick runs any thread may call them in a
 * read section; those that take an object or a name may block in system calls. What they hand out is the
 * caller's; what they are given stays the giver's.
 *
 * Descriptors of an idle brick: BRICK, BRICK/.glusterfs. Nothing else is kept open.
 *
 * Locks of a brick, in the order in which they are taken:
 *   name_locks[]              striped by (parent, name): whoever makes, removes or replaces that name
 *   object_locks[]            striped by gfid: whoever changes an object's links or handle, or opens it
 *   posix_inode.change_lock   read-modify-write of one object's xattrs; check-and-write of its data
 *   posix_inode.mdata_lock    one object's cached mdata
 *   dir_rename_lock           a directory's name and its handle, which cannot be moved in one step
 *                             (rename.c, handle.h)
 *   posix_inode.lock          what is known of the object on the disk; the last one, no system call is made
 *                             under it but fcntl(2)
 * The list of storages that serve (posix.c) has a lock of the process, which is a leaf.
 * Two stripes of one array are taken in the order of their index. These locks are held over system calls:
 * what they make atomic consists of several. None is taken by the everyday lookup or stat.
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
    int64_t max_hardlinks; /* 0: no limit of ours */
    bool fips_rchecksum, node_uuid_pathinfo, gfid2path, pgfid, ctime, o_direct, export_statfs_size,
        mandate_attribute;
    bool disable_landfill_purge, require_mount;
};

#define POSIX_STRIPES 64

enum posix_chore { POSIX_HEALTH, POSIX_JANITOR, POSIX_RESERVE, POSIX_CHORES };

/* A brick. Made by init, gone with fini. Fields without a comment are set by init and only read afterwards.
 */
struct posix {
    struct xlator *xl;
    struct cds_list_head served; /* among those of the process: posix.c */
    const char *brick;  /* real path of BRICK: no symlinks, no trailing slash */
    size_t brick_len;
    int brick_fd, handles_fd; /* BRICK and BRICK/.glusterfs */
    dev_t dev;
    ino_t ino, handles_ino;
    char hostname[256]; /* for pathinfo */
    bool has_acl;       /* the file system stores POSIX ACLs */
    uint16_t owner; /* of pooled objects: the graph's */

    pthread_mutex_t dir_rename_lock;
    atomic_uint dir_renames; /* odd: one is under way. Written under dir_rename_lock; see handle.h */
    pthread_mutex_t name_locks[POSIX_STRIPES], object_locks[POSIX_STRIPES];

    atomic_bool is_full; /* storage.reserve: reserve.c */
    /* what reserve.c has seen last */
    struct {
        _Atomic uint64_t bytes, bytes_used, bytes_free, inodes, inodes_free;
    } disk;
    atomic_bool is_going_down;
    atomic_bool has_landfill; /* the janitor has something to do */

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

/* Made on first use, dropped when the table forgets the inode. */
struct posix_inode {
    /* the last of all: reaching an object takes it, which may be done under any other */
    pthread_mutex_t lock;
    /* held while mdata is read from the disk or written, and so while the object is reached */
    pthread_mutex_t mdata_lock;
    pthread_mutex_t change_lock; /* read-modify-write of xattrs (xattrop) and of data (write-is-append): a
                                    stat does not wait for these, which may be slow */
    struct mdata mdata;  /* under mdata_lock: the copy of the disk's; it wins over the disk */
    bool is_mdata_known; /* under mdata_lock: the disk was read or written */
    bool has_mdata;      /* under mdata_lock, if known */
    /* no name, no handle; by gfid it is not found any more. Written under the object lock */
    atomic_bool is_unlinked;
    /* its handle was moved to .glusterfs/unlink and is there. Written under the object lock */
    atomic_bool is_kept;
    /* st_ino on the disk, of a look that was checked; 0: none yet, or forgotten. Written under lock */
    _Atomic uint64_t backend_ino;
    /* st_ctim of the last look that read trusted.gfid, in nanoseconds; 0: none. Written under lock */
    _Atomic int64_t checked_ctime;
    atomic_uint births;           /* how often backend_ino was forgotten. Written under lock */
    bool is_leaving;              /* under lock: see posix_inode_leaves() */
    /* the handle led to backend_ino: forgotten with it. Written under lock */
    atomic_bool has_handle;
    /* a removed directory that is open: its descriptor + 1; 0: none. Written under lock (kept.c) */
    atomic_int kept_dir;
    /* of a directory: dir_renames and, in the lower half, its path's length then (path-length.c) */
    _Atomic uint64_t path_len;
};

/* The inode's context, made if need be. NULL: no memory. */
struct posix_inode *posix_inode_get(struct xlator *xl, struct inode *inode);

/* Has the object been looked at and checked since it was made? */
bool posix_inode_is_met(const struct xlator *xl, struct inode *inode);
/* Has its last name gone? Then open fds alone reach it. */
bool posix_inode_is_gone(const struct xlator *xl, struct inode *inode);
/* Is what stat found the object of this inode, by the number of an earlier look that was checked? Saves
 * reading the gfid. */
bool posix_inode_is(const struct xlator *xl, struct inode *inode, const struct stat *st);
/* To be asked before the object is looked at, for posix_inode_met(). `inode` may be NULL. */
unsigned posix_inode_births(const struct xlator *xl, struct inode *inode);
/* It was looked at and checked: its number is good, unless the object has gone or was made anew meanwhile.
 * `inode` may be NULL. */
void posix_inode_met(struct xlator *xl, struct inode *inode, const struct stat *st, unsigned births);
/* Has nothing about the object changed since its gfid was read last? Whoever takes the gfid away by hand, or
 * gives the object another, changes the ctime, but so does every other change. `st`: a stat of the object. */
bool posix_inode_is_unchanged(const struct xlator *xl, struct inode *inode, const struct stat *st);
/* The object of this number no longer has the inode's gfid, or the handle has gone: the number is forgotten.
 */
void posix_inode_doubt(struct xlator *xl, struct inode *inode);
/* It was met through its handle: a LOOKUP by name need not look there again. One that was met by its name, as
 * READDIRP does, may have none. `births` as for posix_inode_met(). */
void posix_inode_led(struct xlator *xl, struct inode *inode, unsigned births);
bool posix_inode_has_handle(const struct xlator *xl, struct inode *inode);
/* Its last name may be about to go, and then the number of the disk's inode may soon mean another object: it
 * is forgotten and not learnt anew until posix_inode_gone() says how that ended: the name is gone, or the
 * object is as it was. `inode` may be NULL. Both under the object lock. The first may be left out where
 * nobody minds that the object is not found for a moment. */
void posix_inode_leaves(struct xlator *xl, struct inode *inode);
void posix_inode_gone(struct xlator *xl, struct inode *inode, bool is_gone);
/* A new object has this gfid. If the table has an inode of it, from an object that was removed, what is
 * remembered of that is void. Under the lock of its name, before anybody is told of the object. */
void posix_inode_reborn(struct xlator *xl, const struct gfid *gfid);

/* ---- per fd ---------------------------------------------------------------------------------- */

struct posix_fd {
    int sysfd;
    uint32_t flags; /* as opened */
    bool is_dir;
    pthread_mutex_t dir_lock; /* a directory's offset, from seek to the end of the batch */
    uint64_t dir_off;         /* under dir_lock: where the descriptor stands */
    DIR *dir;                 /* NULL unless readdir makes one; owns sysfd then */
};

/* Takes `sysfd` over (also on failure, where it is closed). NULL: no memory. */
struct posix_fd *posix_fd_new(struct posix *p, int sysfd, uint32_t flags, bool is_dir);
void posix_fd_free(struct posix_fd *pfd);

/* ---- locks ----------------------------------------------------------------------------------- */

/* The stripe of a name or an object. */
pthread_mutex_t *posix_name_stripe(struct posix *p, const struct gfid *parent, const char *name);
pthread_mutex_t *posix_object_stripe(struct posix *p, const struct gfid *gfid);
/* The same, locked; given back with pthread_mutex_unlock(). */
pthread_mutex_t *posix_name_lock(struct posix *p, const struct gfid *parent, const char *name);
/* Whoever opens an object by its handle holds this from before open() until the fd is counted in
 * inode->open_fds, so that an unlink at the same moment knows whether to keep the object for the fd. */
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

/* -ENOSPC if the brick is full and the caller is not one of those that may write all the same; else 0. */
int posix_reserve_check(struct xlator *xl, const struct call_stack *stk);
/* The same with a fresh look at the disk (fallocate). */
int posix_reserve_check_now(struct xlator *xl, const struct call_stack *stk);

/* ---- chores: health.c, janitor.c, reserve.c -------------------------------------------------- */

void posix_health_init(struct posix *p);
void posix_health_start(struct posix *p);
void posix_janitor_init(struct posix *p);
/* Makes .glusterfs/landfill and .glusterfs/unlink. Warns only. */
void posix_janitor_prepare(struct posix *p);
/* What the last run has left: empties .glusterfs/unlink, moves a landfill of the old format, wakes the
 * janitor. When the brick starts, not when it is built: whoever serves the folder until then has open files
 * there. Warns only. */
void posix_janitor_take_over(struct posix *p);
/* Something lies in the landfill. */
void posix_janitor_wake(struct posix *p);
void posix_reserve_init(struct posix *p);
void posix_reserve_start(struct posix *p);

/* ---- file operations: posix_fop_lookup() and so on (libc has a posix_fallocate of its own) --- */

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
