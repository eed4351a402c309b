/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fop: one file operation as data: the call's arguments, the reply's results, and the table of all fops.
 *
 * One struct for the arguments of every fop and one for every reply. Members that several fops share are
 * shared; fops.def says which ones a fop has. Strings and payload point into the received record or the
 * request's arena and live until the reply has been sent.
 */
#ifndef KILN_STACK_FOP_H
#define KILN_STACK_FOP_H

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/statvfs.h>
#include <sys/uio.h>

#include "base/gfid.h"
#include "data/dict.h"
#include "data/iatt.h"

struct fd;
struct inode;
struct iobuf;

enum fop {
#define FOP(name, wire, ...) FOP_##name = (wire),
#include "stack/fops.def"
#undef FOP
    FOP_COUNT
};

/* Ways through the layers: the number of a fop, or PATH_PLAIN_WRITE (call_path() in call-stack.c). */
enum { PATH_PLAIN_WRITE = FOP_COUNT, PATH_COUNT };

/* Traits, see fops.def. */
#define FOP_READS 0x1
#define FOP_WRITES 0x2
#define FOP_LOOKS 0x4
#define FOP_WAITS 0x8
#define FOP_BY_GFID 0x10
#define FOP_BY_NAME 0x20
#define FOP_BY_FD 0x40
#define FOP_NAME_MUST 0x100 /* the entry named must exist */
#define FOP_NAME_NOT 0x200  /* the entry named must not exist */
#define FOP_NAME2 0x800

/* The limit of io-threads that counts a fop. No row of fops.def has LEAST: it is for the calls of internal
 * callers. */
enum fop_priority { PRIORITY_HIGH, PRIORITY_NORMAL, PRIORITY_LOW, PRIORITY_LEAST, PRIORITIES, PRIORITY_NONE };

struct fop_info {
    const char *name;
    uint16_t traits;
    uint8_t profile_number;
    uint8_t priority; /* enum fop_priority */
};
extern const struct fop_info fop_info[FOP_COUNT];

/* An object addressed by a call: filled by the resolver, references held by the call stack. */
struct loc {
    struct inode *inode;  /* the object; NULL if it does not exist (yet) */
    struct inode *parent; /* its directory; NULL when addressed by gfid alone */
    const char *name;     /* entry name in `parent`, at most 255 bytes, no '/'; NULL when by gfid */
};

#define FOP_NAME_MAX 255
#define FOP_LOCK_DOMAIN_MAX 1024
#define FOP_LINKNAME_MAX 4095

/* A lock owner; the bytes belong to the record or to the copy's holder. Compared as (len, bytes). */
struct lk_owner {
    uint32_t len;
    const uint8_t *bytes;
};
#define LK_OWNER_MAX 1024

enum { FLOCK_READ = 0, FLOCK_WRITE = 1, FLOCK_UNLOCK = 2 }; /* wire 5.5 */

struct fop_flock {
    uint32_t type;   /* FLOCK_* */
    uint32_t whence; /* 0 SET, 1 CUR, 2 END */
    int64_t start, len; /* len 0: to the end of file */
    uint32_t pid;
    struct lk_owner owner; /* a copy; the owner in the credential decides */
};

struct fop_lease {
    uint32_t cmd, type, flags;
    uint8_t id[16];
};

/* One directory entry of a READDIR(P) reply; a list on the request's arena. */
struct dirent_entry {
    struct dirent_entry *next;
    uint64_t ino, off; /* off: cookie to continue after this entry */
    uint32_t type;     /* DT_* */
    uint32_t name_len;
    const char *name;
    struct iatt iatt;   /* READDIRP; zero when unknown */
    struct dict *dict;  /* READDIRP; may be NULL */
    struct inode *inode; /* a reference of the reply or NULL; set only if the reply's holds_inodes is true */
};

/* One lock of GETACTIVELK / SETACTIVELK. */
struct active_lock {
    struct active_lock *next;
    struct fop_flock flock;
    const char *client_uid;
    uint32_t flags;
};

/* The errno of a brick's storage for a CREATE, UNLINK, RMDIR or RENAME whose name no longer leads to the
 * object that the layers above found in call.loc or call.loc2 (NULL: no such name). Nothing was done.
 * protocol/server looks the name up again and winds the call once more; clients never get this errno. */
enum { FOP_NAME_CHANGED = ERESTART };

#define FOP_PAYLOAD_IOVS 4

/* A hint that a layer leaves in a call for a layer below that knows the hint. All other layers pass the hint
 * on, and it is never sent to bricks. `value` belongs to the layer that left it and lives as long as the
 * call. */
enum call_hint_kind {
    HINT_NONE,
    /* FLUSH: for the mount's own layers (LAYER_ANSWERS_EARLY, LAYER_WRITES_AT_FLUSH); bricks do nothing */
    HINT_FLUSH_OF_MOUNT,
    /* WRITE: the caller must not leave set-id bits in the file's mode (iatt_privs), so a layer that answers
     * the WRITE early must clear them */
    HINT_KILLS_PRIVS,
    /* UNLINK: `value` is a struct trash_wish (xlators/storage/posix/trash-wish.h) */
    HINT_TRASH,
    /* about a name or a listing: the mount waits for lost bricks (features/hard). So a layer that misses a
     * child answers ENOTCONN where it would otherwise say that the names of that child do not exist */
    HINT_WAITS
};
struct call_hint {
    enum call_hint_kind kind;
    const void *value; /* NULL: the kind says all */
};

struct fop_call {
    enum fop fop;

    /* As resolved (protocol/server). fop functions use these, not the wire's numbers below. */
    struct loc loc;  /* by gfid, or parent + name; of an fd fop: loc.inode is the fd's inode */
    struct loc loc2; /* FOP_NAME2: rename's target, link's new name */
    struct fd *fd, *fd2;

    /* As on the wire. */
    struct gfid gfid, pargfid, gfid2, pargfid2;
    int64_t fd_nr, fd2_nr; /* FD_ANONYMOUS (-2): operate on gfid */
    const char *name;      /* entry name, or xattr name; "" or NULL where optional */
    const char *name2;     /* new name; symlink's target text */
    const char *volume;    /* lock domain */
    uint64_t offset, offset2;
    uint64_t size;
    uint64_t rdev;   /* mknod: a Linux dev_t */
    uint32_t flags;  /* open, create: native Linux O_* (translated at the border); else as on the wire */
    uint32_t mode, umask;
    int32_t valid;   /* setattr: SETATTR_* */
    uint32_t cmd, type;
    struct call_hint hint;
    uint32_t has_name; /* the wire's namelen flag of getxattr and entrylk */
    struct iatt stbuf; /* setattr */
    struct fop_flock flock;
    struct fop_lease lease;
    struct active_lock *locks;
    struct dict *dict;  /* set/getxattr, xattrop */
    struct dict *xdata; /* NULL: none */
    /* writev, put: into the received record(s), or into payload_iobuf */
    struct iovec payload[FOP_PAYLOAD_IOVS];
    int payload_count;
    size_t payload_bytes;
    /* NULL, or a reference of the call stack to the buffer that holds the whole payload */
    struct iobuf *payload_iobuf;
};

/* For ENOMEM replies: whether this process, not the brick, lacked the memory, and at which step. */
enum shortage {
    SHORTAGE_NONE,
    SHORTAGE_UNSENT, /* the call was not sent: the brick does not know of it */
    SHORTAGE_UNREAD, /* the brick has executed the call, but there was no memory to read its answer */
};

/* Must this CREATE make the file? A call with no flags at all is an old form of "make it, for reading and
 * writing" (brick 4.2). */
static inline bool
fop_create_is_exclusive(const struct fop_call *c)
{
    return c->flags == 0 || c->flags & O_EXCL;
}

struct fop_reply {
    int32_t op_ret, op_errno; /* op_errno matters if op_ret is -1, and ENOENT = end in readv, readdir(p) */
    struct dict *xdata;       /* NULL: none */
    struct iatt stat, pre, post, pre2, post2; /* which ones: fops.def */
    struct dict *dict;        /* getxattr, xattrop */
    struct fd *fd;            /* open, create, opendir: a reference handed to the call stack */
    int64_t fd_nr;            /* number of `fd`, given by protocol/server */
    const char *path;         /* readlink, NUL-terminated */
    uint64_t offset;          /* seek */
    struct statvfs statvfs;
    struct fop_flock flock;
    struct fop_lease lease;
    uint32_t weak, checksum_flags; /* rchecksum */
    uint8_t strong[32];
    struct dirent_entry *entries;
    bool holds_inodes; /* each entry's `inode` is set or NULL */
    uint8_t shortage;  /* enum shortage, of protocol/client; never on the wire */
    struct active_lock *locks;
    struct iobuf *iobuf;      /* readv: holds the payload; a reference handed to the call stack */
    struct iovec payload;     /* readv: op_ret bytes inside iobuf */
};

#define FD_ANONYMOUS (-2)

#endif
