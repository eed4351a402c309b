/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* test-random-fop: calls and replies with every member filled with random values, from a seed. For tests and
 * benchmarks. */
#ifndef KILN_RPC_XDR_TEST_RANDOM_FOP_H
#define KILN_RPC_XDR_TEST_RANDOM_FOP_H

#include <stdio.h>

#include "data/dict.h"
#include "stack/fop.h"

static inline uint64_t
random_u64(uint64_t *seed)
{
    uint64_t z = *seed += 0x9e3779b97f4a7c15ull;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ z >> 27) * 0x94d049bb133111ebull;
    return z ^ z >> 31;
}

static inline char *
random_bytes(struct arena *a, size_t n, uint64_t *seed)
{
    char *p = arena_alloc(a, n + 1);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)random_u64(seed);
    return p;
}

static inline char *
random_text(struct arena *a, size_t max, uint64_t *seed)
{
    size_t n = random_u64(seed) % (max + 1);
    char *p = arena_alloc(a, n + 1);

    for (size_t i = 0; i < n; i++)
        p[i] = (char)('!' + random_u64(seed) % 90);
    p[n] = '\0';
    return p;
}

static inline struct iatt
random_iatt(uint64_t *seed)
{
    struct iatt iatt = {0};

    for (size_t i = 0; i < GFID_BYTES; i++)
        iatt.gfid.b[i] = (uint8_t)random_u64(seed);
    iatt.flags = random_u64(seed);
    iatt.ino = random_u64(seed);
    iatt.dev = random_u64(seed);
    iatt.rdev = random_u64(seed);
    iatt.size = random_u64(seed);
    iatt.blocks = random_u64(seed);
    iatt.atime = (int64_t)random_u64(seed);
    iatt.mtime = (int64_t)random_u64(seed);
    iatt.ctime = (int64_t)random_u64(seed);
    iatt.btime = (int64_t)random_u64(seed);
    iatt.atime_nsec = (uint32_t)random_u64(seed);
    iatt.mtime_nsec = (uint32_t)random_u64(seed);
    iatt.ctime_nsec = (uint32_t)random_u64(seed);
    iatt.btime_nsec = (uint32_t)random_u64(seed);
    iatt.nlink = (uint32_t)random_u64(seed);
    iatt.uid = (uint32_t)random_u64(seed);
    iatt.gid = (uint32_t)random_u64(seed);
    iatt.blksize = (uint32_t)random_u64(seed);
    iatt.mode = (uint32_t)random_u64(seed);
    return iatt;
}

static inline struct dict *
random_dict(struct arena *a, uint64_t *seed)
{
    unsigned pairs = (unsigned)(random_u64(seed) % 20);
    struct dict *d;

    if (pairs == 19)
        return NULL;
    d = dict_new(a);
    for (unsigned i = 0; i < pairs; i++) {
        char *key = arena_printf(a, "user.%u.%.*s", i, (int)(random_u64(seed) % 8), "abcdefgh");
        struct dict_pair pair = {.key = key, .key_len = (uint16_t)strlen(key)};

        pair.type = (uint8_t)(DICT_UNTYPED + random_u64(seed) % DICT_MDATA);
        if (pair.type == DICT_INT || pair.type == DICT_UINT || pair.type == DICT_DOUBLE) {
            pair.v.u = random_u64(seed);
        } else if (pair.type == DICT_GFID) {
            pair.v.gfid = random_iatt(seed).gfid;
        } else if (pair.type == DICT_IATT) {
            struct iatt *iatt = arena_alloc(a, sizeof *iatt);

            *iatt = random_iatt(seed);
            pair.v.iatt = iatt;
        } else if (pair.type == DICT_MDATA) {
            struct mdata *m = arena_zalloc(a, sizeof *m);

            m->atime = (int64_t)random_u64(seed);
            m->ctime_nsec = (uint32_t)random_u64(seed);
            pair.v.mdata = m;
        } else {
            pair.len = (uint32_t)(random_u64(seed) % 40);
            pair.v.bytes = random_bytes(a, pair.len, seed);
        }
        dict_append(d, &pair);
    }
    return d;
}

static inline struct fop_flock
random_flock(struct arena *a, uint64_t *seed)
{
    struct fop_flock f = {
        .type = (uint32_t)random_u64(seed),
        .whence = (uint32_t)random_u64(seed),
        .start = (int64_t)random_u64(seed),
        .len = (int64_t)random_u64(seed),
        .pid = (uint32_t)random_u64(seed),
    };

    f.owner.len = (uint32_t)(random_u64(seed) % 20);
    f.owner.bytes = (uint8_t *)random_bytes(a, f.owner.len, seed);
    return f;
}

static inline struct active_lock *
random_locks(struct arena *a, uint64_t *seed)
{
    struct active_lock *list = NULL;

    for (unsigned n = (unsigned)(random_u64(seed) % 4); n; n--) {
        struct active_lock *l = arena_zalloc(a, sizeof *l);

        l->flock = random_flock(a, seed);
        l->client_uid = random_text(a, 60, seed);
        l->flags = (uint32_t)random_u64(seed);
        l->next = list;
        list = l;
    }
    return list;
}

/* A name that a directory can hold: a list with an empty name or a '/' does not decode. */
static inline const char *
random_entry_name(struct arena *a, uint64_t *seed)
{
    char *name = arena_zalloc(a, FOP_NAME_MAX + 1);
    size_t len = 1 + random_u64(seed) % FOP_NAME_MAX;

    for (size_t i = 0; i < len; i++) {
        name[i] = (char)(1 + random_u64(seed) % 255);
        if (name[i] == '/')
            name[i] = 'n';
    }
    return name;
}

static inline struct dirent_entry *
random_dirents(struct arena *a, uint64_t *seed)
{
    struct dirent_entry *list = NULL;

    for (unsigned n = (unsigned)(random_u64(seed) % 6); n; n--) {
        struct dirent_entry *e = arena_zalloc(a, sizeof *e);

        e->ino = random_u64(seed);
        e->off = random_u64(seed);
        e->type = (uint32_t)random_u64(seed);
        e->name = random_entry_name(a, seed);
        e->name_len = (uint32_t)strlen(e->name);
        e->iatt = random_iatt(seed);
        e->dict = random_dict(a, seed);
        e->next = list;
        list = e;
    }
    return list;
}

static inline void
random_call(struct fop_call *c, struct arena *a, uint64_t *seed)
{
    *c = (struct fop_call){
        .gfid = random_iatt(seed).gfid,
        .pargfid = random_iatt(seed).gfid,
        .gfid2 = random_iatt(seed).gfid,
        .pargfid2 = random_iatt(seed).gfid,
        .fd_nr = (int64_t)random_u64(seed),
        .fd2_nr = (int64_t)random_u64(seed),
        .name = random_text(a, FOP_NAME_MAX, seed),
        .name2 = random_text(a, FOP_NAME_MAX, seed),
        .volume = random_text(a, FOP_LOCK_DOMAIN_MAX, seed),
        .offset = random_u64(seed),
        .offset2 = random_u64(seed),
        .size = random_u64(seed),
        .rdev = random_u64(seed),
        .flags = (uint32_t)random_u64(seed),
        .mode = (uint32_t)random_u64(seed),
        .umask = (uint32_t)random_u64(seed),
        .valid = (int32_t)random_u64(seed),
        .cmd = (uint32_t)random_u64(seed),
        .type = (uint32_t)random_u64(seed),
        .has_name = (uint32_t)(random_u64(seed) % 2),
        .stbuf = random_iatt(seed),
        .flock = random_flock(a, seed),
        .locks = random_locks(a, seed),
        .dict = random_dict(a, seed),
        .xdata = random_dict(a, seed),
        .payload_count = 1,
        .payload_bytes = random_u64(seed) % 300,
    };
    c->lease.cmd = (uint32_t)random_u64(seed);
    c->lease.flags = (uint32_t)random_u64(seed);
    memcpy(c->lease.id, c->gfid.b, sizeof c->lease.id);
    c->payload[0] = (struct iovec){random_bytes(a, c->payload_bytes, seed), c->payload_bytes};
}

static inline void
random_reply(struct fop_reply *r, struct arena *a, uint64_t *seed)
{
    *r = (struct fop_reply){
        .op_ret = (int32_t)(random_u64(seed) & INT32_MAX),
        .op_errno = (int32_t)random_u64(seed),
        .xdata = random_dict(a, seed),
        .stat = random_iatt(seed),
        .pre = random_iatt(seed),
        .post = random_iatt(seed),
        .pre2 = random_iatt(seed),
        .post2 = random_iatt(seed),
        .dict = random_dict(a, seed),
        .fd_nr = (int64_t)random_u64(seed),
        .path = random_text(a, FOP_LINKNAME_MAX, seed),
        .offset = random_u64(seed),
        .flock = random_flock(a, seed),
        .weak = (uint32_t)random_u64(seed),
        .checksum_flags = (uint32_t)random_u64(seed),
        .entries = random_dirents(a, seed),
        .locks = random_locks(a, seed),
    };
    r->statvfs.f_bavail = random_u64(seed);
    r->statvfs.f_namemax = random_u64(seed);
    r->lease.type = (uint32_t)random_u64(seed);
    memcpy(r->strong, random_bytes(a, sizeof r->strong, seed), sizeof r->strong);
    r->payload.iov_len = random_u64(seed) % 300;
    r->payload.iov_base = random_bytes(a, r->payload.iov_len, seed);
}

#endif
