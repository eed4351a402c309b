/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Attributes are of fixed size: the room is checked once, then fields are stored one after another. */
#include "rpc/xdr/xdr-types.h"

static inline uint32_t
next_u32(const char **p)
{
    uint32_t v = xdr_load_u32(*p);

    *p += 4;
    return v;
}

static inline uint64_t
next_u64(const char **p)
{
    uint64_t v = xdr_load_u64(*p);

    *p += 8;
    return v;
}

static inline void
store_u32(char **p, uint32_t v)
{
    xdr_store_u32(*p, v);
    *p += 4;
}

static inline void
store_u64(char **p, uint64_t v)
{
    xdr_store_u64(*p, v);
    *p += 8;
}

void
xdr_get_iatt(struct xdr *x, struct iatt *out)
{
    const char *p = xdr_take(x, IATT_XDR_BYTES);

    if (!p) {
        *out = (struct iatt){0};
        return;
    }
    memcpy(&out->gfid, p, GFID_BYTES);
    p += GFID_BYTES;
    out->flags = next_u64(&p);
    out->ino = next_u64(&p);
    out->dev = next_u64(&p);
    out->rdev = next_u64(&p);
    out->size = next_u64(&p);
    out->blocks = next_u64(&p);
    p += 16; /* attributes, attributes_mask: always 0 */
    out->atime = (int64_t)next_u64(&p);
    out->mtime = (int64_t)next_u64(&p);
    out->ctime = (int64_t)next_u64(&p);
    out->btime = (int64_t)next_u64(&p);
    out->atime_nsec = next_u32(&p);
    out->mtime_nsec = next_u32(&p);
    out->ctime_nsec = next_u32(&p);
    out->btime_nsec = next_u32(&p);
    out->nlink = next_u32(&p);
    out->uid = next_u32(&p);
    out->gid = next_u32(&p);
    out->blksize = next_u32(&p);
    out->mode = next_u32(&p);
}

void
xdr_put_iatt(struct xdr *x, const struct iatt *iatt)
{
    char *p = xdr_room(x, IATT_XDR_BYTES);

    if (!p)
        return;
    memcpy(p, &iatt->gfid, GFID_BYTES);
    p += GFID_BYTES;
    store_u64(&p, iatt->flags);
    store_u64(&p, iatt->ino);
    store_u64(&p, iatt->dev);
    store_u64(&p, iatt->rdev);
    store_u64(&p, iatt->size);
    store_u64(&p, iatt->blocks);
    store_u64(&p, 0); /* attributes */
    store_u64(&p, 0); /* attributes_mask */
    store_u64(&p, (uint64_t)iatt->atime);
    store_u64(&p, (uint64_t)iatt->mtime);
    store_u64(&p, (uint64_t)iatt->ctime);
    store_u64(&p, (uint64_t)iatt->btime);
    store_u32(&p, iatt->atime_nsec);
    store_u32(&p, iatt->mtime_nsec);
    store_u32(&p, iatt->ctime_nsec);
    store_u32(&p, iatt->btime_nsec);
    store_u32(&p, iatt->nlink);
    store_u32(&p, iatt->uid);
    store_u32(&p, iatt->gid);
    store_u32(&p, iatt->blksize);
    store_u32(&p, iatt->mode);
}

void
xdr_get_old_iatt(struct xdr *x, struct iatt *out)
{
    const char *p = xdr_take(x, OLD_IATT_XDR_BYTES);

    *out = (struct iatt){0};
    if (!p)
        return;
    memcpy(&out->gfid, p, GFID_BYTES);
    p += GFID_BYTES;
    out->ino = next_u64(&p);
    out->dev = next_u64(&p);
    out->mode = next_u32(&p);
    out->nlink = next_u32(&p);
    out->uid = next_u32(&p);
    out->gid = next_u32(&p);
    out->rdev = next_u64(&p);
    out->size = next_u64(&p);
    out->blksize = next_u32(&p);
    out->blocks = next_u64(&p);
    out->atime = next_u32(&p);
    out->atime_nsec = next_u32(&p);
    out->mtime = next_u32(&p);
    out->mtime_nsec = next_u32(&p);
    out->ctime = next_u32(&p);
    out->ctime_nsec = next_u32(&p);
}

void
xdr_put_old_iatt(struct xdr *x, const struct iatt *iatt)
{
    char *p = xdr_room(x, OLD_IATT_XDR_BYTES);

    if (!p)
        return;
    memcpy(p, &iatt->gfid, GFID_BYTES);
    p += GFID_BYTES;
    store_u64(&p, iatt->ino);
    store_u64(&p, iatt->dev);
    store_u32(&p, iatt->mode);
    store_u32(&p, iatt->nlink);
    store_u32(&p, iatt->uid);
    store_u32(&p, iatt->gid);
    store_u64(&p, iatt->rdev);
    store_u64(&p, iatt->size);
    store_u32(&p, iatt->blksize);
    store_u64(&p, iatt->blocks);
    store_u32(&p, (uint32_t)iatt->atime);
    store_u32(&p, iatt->atime_nsec);
    store_u32(&p, (uint32_t)iatt->mtime);
    store_u32(&p, iatt->mtime_nsec);
    store_u32(&p, (uint32_t)iatt->ctime);
    store_u32(&p, iatt->ctime_nsec);
}

void
xdr_get_mdata(struct xdr *x, struct mdata *out)
{
    const char *p = xdr_take(x, MDATA_XDR_BYTES);

    *out = (struct mdata){0};
    if (!p)
        return;
    out->atime = (int64_t)next_u64(&p);
    out->mtime = (int64_t)next_u64(&p);
    out->ctime = (int64_t)next_u64(&p);
    out->atime_nsec = next_u32(&p);
    out->mtime_nsec = next_u32(&p);
    out->ctime_nsec = next_u32(&p);
}

void
xdr_put_mdata(struct xdr *x, const struct mdata *m)
{
    char *p = xdr_room(x, MDATA_XDR_BYTES);

    if (!p)
        return;
    store_u64(&p, (uint64_t)m->atime);
    store_u64(&p, (uint64_t)m->mtime);
    store_u64(&p, (uint64_t)m->ctime);
    store_u32(&p, m->atime_nsec);
    store_u32(&p, m->mtime_nsec);
    store_u32(&p, m->ctime_nsec);
}

void
xdr_get_statvfs(struct xdr *x, struct statvfs *out)
{
    const char *p = xdr_take(x, STATVFS_XDR_BYTES);

    *out = (struct statvfs){0};
    if (!p)
        return;
    out->f_bsize = next_u64(&p);
    out->f_frsize = next_u64(&p);
    out->f_blocks = next_u64(&p);
    out->f_bfree = next_u64(&p);
    out->f_bavail = next_u64(&p);
    out->f_files = next_u64(&p);
    out->f_ffree = next_u64(&p);
    out->f_favail = next_u64(&p);
    out->f_fsid = next_u64(&p);
    out->f_flag = next_u64(&p);
    out->f_namemax = next_u64(&p);
}

void
xdr_put_statvfs(struct xdr *x, const struct statvfs *s)
{
    char *p = xdr_room(x, STATVFS_XDR_BYTES);

    if (!p)
        return;
    store_u64(&p, s->f_bsize);
    store_u64(&p, s->f_frsize);
    store_u64(&p, s->f_blocks);
    store_u64(&p, s->f_bfree);
    store_u64(&p, s->f_bavail);
    store_u64(&p, s->f_files);
    store_u64(&p, s->f_ffree);
    store_u64(&p, s->f_favail);
    store_u64(&p, s->f_fsid);
    store_u64(&p, s->f_flag);
    store_u64(&p, s->f_namemax);
}
