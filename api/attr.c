/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>
#include <time.h>

#include "api/api-internal.h"

enum { API_BLOCK_BYTES = 128 << 10 }; /* the I/O size reported to programs, as by mounts */

void
api_stat_of(const struct glfs *fs, const struct iatt *a, struct stat *st)
{
    *st = (struct stat){
        .st_dev = fs->dev,
        .st_ino = a->ino,
        .st_mode = a->mode,
        .st_nlink = a->nlink,
        .st_uid = a->uid,
        .st_gid = a->gid,
        .st_rdev = makedev((unsigned)(a->rdev >> 32), (unsigned)a->rdev),
        .st_size = (off_t)a->size,
        .st_blksize = API_BLOCK_BYTES,
        .st_blocks = (blkcnt_t)a->blocks,
        .st_atim = {a->atime, a->atime_nsec},
        .st_mtim = {a->mtime, a->mtime_nsec},
        .st_ctim = {a->ctime, a->ctime_nsec},
    };
}

void
api_statx_of(const struct glfs *fs, const struct iatt *a, struct glfs_stat *out)
{
    if (!out)
        return;
    if (!a->mode) { /* the call was answered without attributes */
        memset(out, 0, sizeof *out);
        return;
    }
    *out = (struct glfs_stat){
        .mask = 0x7ff, /* statx(2): all basic attributes */
        .atime = {a->atime, a->atime_nsec},
        .btime = {a->btime, a->btime_nsec},
        .ctime = {a->ctime, a->ctime_nsec},
        .mtime = {a->mtime, a->mtime_nsec},
        .ino = a->ino,
        .size = a->size,
        .blocks = a->blocks,
        .rdev_major = (uint32_t)(a->rdev >> 32),
        .rdev_minor = (uint32_t)a->rdev,
        .dev_major = (uint32_t)(fs->dev >> 32),
        .dev_minor = (uint32_t)fs->dev,
        .blksize = API_BLOCK_BYTES,
        .nlink = a->nlink,
        .uid = a->uid,
        .gid = a->gid,
        .mode = a->mode,
    };
}

struct attr_request {
    struct request r;
    struct glfs_fd *fd; /* or `path` */
    const char *path;
    int how; /* PLACE_* */
    enum fop fop;
    int32_t valid; /* SETATTR_*: attributes to set, in `set` */
    struct iatt set;
    struct iatt iatt;
    off_t size;
    uint32_t mode; /* access */
    struct statvfs statvfs;
};

static struct attr_request *
attr_of(struct request *r)
{
    return caa_container_of(r, struct attr_request, r);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int64_t
fstat_go(struct request *r)
{
    struct attr_request *q = attr_of(r);
    struct call_stack *stk = request_call_on(r, FOP_fstat, q->fd);

    if (!stk)
        return -ENOMEM;
    int ret = request_wind(r, stk);

    q->iatt = stk->reply.stat;
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

int
api_fstat(struct glfs_fd *fd, struct iatt *out)
{
    struct attr_request q = {.fd = fd};
    int ret = (int)request_run_on(&q.r, fd, fstat_go);

    *out = q.iatt;
    return ret;
}

static int64_t
stat_go(struct request *r)
{
    struct attr_request *q = attr_of(r);
    struct place p;
    int err = place_find(r, q->path, q->how, &p, NULL);

    q->iatt = p.iatt;
    place_release(&p);
    return err;
}

int
api_stat_path(struct glfs *fs, const struct glfs_object *at, const char *path, int how, struct iatt *out)
{
    struct attr_request q = {.r.at = at, .path = path, .how = how};
    int ret = (int)request_run(&q.r, fs, stat_go);

    *out = q.iatt;
    return ret;
}

static int
stat_path(struct glfs *fs, const char *path, int how, struct stat *st)
{
    struct iatt a;

    if (!st) {
        errno = EINVAL;
        return -1;
    }
    if (api_stat_path(fs, NULL, path, how, &a) < 0)
        return -1;
    api_stat_of(fs, &a, st);
    return 0;
}

GFAPI int
glfs_stat(struct glfs *fs, const char *path, struct stat *st)
{
    return stat_path(fs, path, PLACE_FOLLOW, st);
}

GFAPI int
glfs_lstat(struct glfs *fs, const char *path, struct stat *st)
{
    return stat_path(fs, path, 0, st);
}

GFAPI int
glfs_fstat(struct glfs_fd *fd, struct stat *st)
{
    struct iatt a;

    if (!st) {
        errno = EINVAL;
        return -1;
    }
    if (api_fstat(fd, &a) < 0)
        return -1;
    api_stat_of(fd->fs, &a, st);
    return 0;
}

GFAPI int
glfs_statx(struct glfs *fs, const char *path, unsigned mask, struct glfs_stat *out)
{
    const unsigned reserved = 1u << 31;
    struct iatt a;

    if (mask & reserved) {
        errno = EINVAL;
        return -1;
    }
    if (api_stat_path(fs, NULL, path, PLACE_FOLLOW, &a) < 0)
        return -1;
    api_statx_of(fs, &a, out);
    return 0;
}

/* ---- calls on a path or file ----------------------------------------------------------------- */

static int64_t
attr_wind(struct attr_request *q, struct call_stack *stk)
{
    if (!stk)
        return -ENOMEM;
    stk->call.stbuf = q->set;
    stk->call.valid = q->valid;
    stk->call.offset = (uint64_t)q->size;
    stk->call.flags = q->mode;
    int ret = request_wind(&q->r, stk);

    q->statvfs = stk->reply.statvfs;
    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

static int64_t
attr_path_go(struct request *r)
{
    struct attr_request *q = attr_of(r);
    struct place p;
    int64_t ret = place_find(r, q->path, q->how, &p, NULL);

    if (!ret && q->fop == FOP_truncate && S_ISDIR(inode_type(p.inode)))
        ret = -EISDIR;
    if (!ret) {
        struct call_stack *stk = request_call(r, q->fop);

        if (stk)
            stk->call.loc.inode = inode_ref(p.inode);
        ret = attr_wind(q, stk);
    }
    place_release(&p);
    return ret;
}

static int64_t
attr_file_go(struct request *r)
{
    struct attr_request *q = attr_of(r);

    return attr_wind(q, request_call_on(r, q->fop, q->fd));
}

/* Without a path the call is about the object `at`. */
static struct attr_request
attr_request_at(const struct glfs_object *at, const char *path, enum fop fop)
{
    return (struct attr_request){
        .r.at = at, .path = path, .how = path ? PLACE_FOLLOW : PLACE_KNOWN, .fop = fop};
}

int
api_access(struct glfs *fs, const struct glfs_object *at, const char *path, int mode)
{
    struct attr_request q = attr_request_at(at, path, FOP_access);

    q.mode = (uint32_t)mode;
    return (int)request_run(&q.r, fs, attr_path_go);
}

GFAPI int
glfs_access(struct glfs *fs, const char *path, int mode)
{
    return api_access(fs, NULL, path, mode);
}

int
api_truncate(struct glfs *fs, const struct glfs_object *at, const char *path, off_t size)
{
    struct attr_request q = attr_request_at(at, path, FOP_truncate);

    if (size < 0) {
        errno = EINVAL;
        return -1;
    }
    q.size = size;
    return (int)request_run(&q.r, fs, attr_path_go);
}

GFAPI int
glfs_truncate(struct glfs *fs, const char *path, off_t size)
{
    return api_truncate(fs, NULL, path, size);
}

GFAPI int
glfs_statvfs(struct glfs *fs, const char *path, struct statvfs *out)
{
    return api_statvfs(fs, NULL, path, out);
}

int
api_statvfs(struct glfs *fs, const struct glfs_object *at, const char *path, struct statvfs *out)
{
    struct attr_request q = attr_request_at(at, path, FOP_statfs);

    if (!out) {
        errno = EINVAL;
        return -1;
    }
    if (request_run(&q.r, fs, attr_path_go) < 0)
        return -1;
    *out = q.statvfs;
    return 0;
}

/* ---- setting --------------------------------------------------------------------------------- */

int
api_set(struct glfs *fs, const struct glfs_object *at, const char *path, int how, int32_t valid,
        const struct iatt *set)
{
    struct attr_request q = {
        .r.at = at, .path = path, .how = how, .fop = FOP_setattr, .valid = valid, .set = *set};

    return (int)request_run(&q.r, fs, attr_path_go);
}

static int
set_path(struct glfs *fs, const char *path, int how, int32_t valid, const struct iatt *set)
{
    return api_set(fs, NULL, path, how, valid, set);
}

static int
set_file(struct glfs_fd *fd, int32_t valid, const struct iatt *set)
{
    struct attr_request q = {.fd = fd, .fop = FOP_fsetattr, .valid = valid, .set = *set};

    return (int)request_run_on(&q.r, fd, attr_file_go);
}

GFAPI int
glfs_chmod(struct glfs *fs, const char *path, mode_t mode)
{
    return set_path(fs, path, PLACE_FOLLOW, SETATTR_MODE, &(struct iatt){.mode = mode & 07777});
}

GFAPI int
glfs_fchmod(struct glfs_fd *fd, mode_t mode)
{
    return set_file(fd, SETATTR_MODE, &(struct iatt){.mode = mode & 07777});
}

/* (uid_t)-1 and (gid_t)-1: not to be changed. */
static int32_t
owner_bits(uid_t uid, gid_t gid)
{
    return (uid == (uid_t)-1 ? 0 : SETATTR_UID) | (gid == (gid_t)-1 ? 0 : SETATTR_GID);
}

GFAPI int
glfs_chown(struct glfs *fs, const char *path, uid_t uid, gid_t gid)
{
    return set_path(fs, path, PLACE_FOLLOW, owner_bits(uid, gid), &(struct iatt){.uid = uid, .gid = gid});
}

GFAPI int
glfs_lchown(struct glfs *fs, const char *path, uid_t uid, gid_t gid)
{
    return set_path(fs, path, 0, owner_bits(uid, gid), &(struct iatt){.uid = uid, .gid = gid});
}

GFAPI int
glfs_fchown(struct glfs_fd *fd, uid_t uid, gid_t gid)
{
    return set_file(fd, owner_bits(uid, gid), &(struct iatt){.uid = uid, .gid = gid});
}

/* Translates utimensat(2)'s times; NULL: now. "Now" is this machine's time (wire 6.2). Returns the bits, or
 * -1 with errno. */
static int32_t
take_times(const struct timespec times[2], struct iatt *set)
{
    struct timespec now, t[2];
    int32_t valid = 0;

    clock_gettime(CLOCK_REALTIME, &now);
    for (int i = 0; i < 2; i++) {
        bool is_now = !times || times[i].tv_nsec == UTIME_NOW;

        t[i] = is_now ? now : times[i];
        if (t[i].tv_nsec == UTIME_OMIT)
            continue;
        if (t[i].tv_nsec < 0 || t[i].tv_nsec > 999999999) {
            errno = EINVAL;
            return -1;
        }
        valid |= i ? SETATTR_MTIME : SETATTR_ATIME;
        if (is_now)
            valid |= i ? SETATTR_MTIME_NOW : SETATTR_ATIME_NOW;
    }
    *set = (struct iatt){.atime = t[0].tv_sec,
                         .atime_nsec = (uint32_t)t[0].tv_nsec,
                         .mtime = t[1].tv_sec,
                         .mtime_nsec = (uint32_t)t[1].tv_nsec};
    return valid;
}

GFAPI int
glfs_utimens(struct glfs *fs, const char *path, const struct timespec times[2])
{
    struct iatt set;
    int32_t valid = take_times(times, &set);

    return valid < 0 ? -1 : set_path(fs, path, PLACE_FOLLOW, valid, &set);
}

GFAPI int
glfs_lutimens(struct glfs *fs, const char *path, const struct timespec times[2])
{
    struct iatt set;
    int32_t valid = take_times(times, &set);

    return valid < 0 ? -1 : set_path(fs, path, 0, valid, &set);
}

GFAPI int
glfs_futimens(struct glfs_fd *fd, const struct timespec times[2])
{
    struct iatt set;
    int32_t valid = take_times(times, &set);

    return valid < 0 ? -1 : set_file(fd, valid, &set);
}

/* Translates the attributes that glfs_setattr() can set. As with GlusterFS's library, others are ignored, the
 * size too. Returns the bits. */
static int32_t
statx_bits(const struct glfs_stat *st, struct iatt *set)
{
    enum { STATX_BIT_MODE = 0x2, STATX_BIT_UID = 0x8, STATX_BIT_GID = 0x10 };
    enum { STATX_BIT_ATIME = 0x20, STATX_BIT_MTIME = 0x40 };
    const struct timespec *at = &st->atime, *mt = &st->mtime;

    *set = (struct iatt){.mode = st->mode & 07777,
                         .uid = st->uid,
                         .gid = st->gid,
                         .atime = at->tv_sec,
                         .atime_nsec = (uint32_t)at->tv_nsec,
                         .mtime = mt->tv_sec,
                         .mtime_nsec = (uint32_t)mt->tv_nsec};
    return (st->mask & STATX_BIT_MODE ? SETATTR_MODE : 0) | (st->mask & STATX_BIT_UID ? SETATTR_UID : 0) |
           (st->mask & STATX_BIT_GID ? SETATTR_GID : 0) | (st->mask & STATX_BIT_ATIME ? SETATTR_ATIME : 0) |
           (st->mask & STATX_BIT_MTIME ? SETATTR_MTIME : 0);
}

GFAPI int
glfs_setattr(struct glfs *fs, const char *path, struct glfs_stat *st, int follow)
{
    struct iatt set;

    if (!st || !path) {
        errno = EINVAL;
        return -1;
    }
    int32_t valid = statx_bits(st, &set);

    return set_path(fs, path, follow ? PLACE_FOLLOW : 0, valid, &set);
}

GFAPI int
glfs_fsetattr(struct glfs_fd *fd, struct glfs_stat *st)
{
    struct iatt set;

    if (!fd || !st) {
        errno = EINVAL;
        return -1;
    }
    int32_t valid = statx_bits(st, &set);

    return set_file(fd, valid, &set);
}
