/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* reserve: keeps a part of the disk free for heals and internal clients (spec: brick 3.7).
 *
 * A chore reads the disk's figures every five seconds, and calls only read a flag. */
#include <errno.h>
#include <sys/statvfs.h>

#include "xlators/storage/posix/capacity.h"
#include "xlators/storage/posix/posix-internal.h"

#define REFRESH_MS 5000

static bool
is_full(uint64_t reserve, const struct statvfs *v)
{
    /* A file system without a size (tmpfs can be one) is never full. */
    if (reserve == 0 || v->f_blocks == 0)
        return false;
    if (reserve < 100)
        return (uint64_t)v->f_bfree * 100 <= (uint64_t)v->f_blocks * reserve;
    return (uint64_t)v->f_bfree * v->f_frsize <= reserve;
}

static void
keep_figures(struct posix *p, const struct statvfs *v)
{
    atomic_store_explicit(&p->disk.bytes, (uint64_t)v->f_blocks * v->f_frsize, memory_order_relaxed);
    atomic_store_explicit(&p->disk.bytes_used, (uint64_t)(v->f_blocks - v->f_bfree) * v->f_frsize,
                          memory_order_relaxed);
    atomic_store_explicit(&p->disk.bytes_free, (uint64_t)v->f_bavail * v->f_frsize, memory_order_relaxed);
    atomic_store_explicit(&p->disk.inodes, v->f_files, memory_order_relaxed);
    atomic_store_explicit(&p->disk.inodes_free, v->f_ffree, memory_order_relaxed);
}

void
posix_capacity(const struct xlator *xl, struct posix_capacity *out)
{
    struct posix *p = posix_of(xl);

    *out = (struct posix_capacity){
        .bytes = atomic_load_explicit(&p->disk.bytes, memory_order_relaxed),
        .bytes_used = atomic_load_explicit(&p->disk.bytes_used, memory_order_relaxed),
        .bytes_free = atomic_load_explicit(&p->disk.bytes_free, memory_order_relaxed),
        .inodes = atomic_load_explicit(&p->disk.inodes, memory_order_relaxed),
        .inodes_free = atomic_load_explicit(&p->disk.inodes_free, memory_order_relaxed),
        .device = p->dev,
    };
}

static void
reserve_refresh(struct posix *p)
{
    struct statvfs v;

    if (fstatvfs(p->brick_fd, &v) < 0) {
        log_event(LOG_WARNING, p->xl, "posix-reserve-statvfs", "%s: how full is it? %s", p->brick,
                  strerror(errno));
        return;
    }
    keep_figures(p, &v);
    bool now = is_full(posix_conf(p->xl)->reserve, &v);
    bool was = atomic_exchange(&p->is_full, now);

    if (now != was)
        log_event(LOG_WARNING, p->xl, "posix-reserve", "%s: free space is %s what storage.reserve keeps",
                  p->brick, now ? "down to" : "again above");
}

static uint64_t
reserve_chore(struct chore *c)
{
    struct posix *p = caa_container_of(c, struct posix, chores[POSIX_RESERVE]);

    reserve_refresh(p);
    return REFRESH_MS;
}

void
posix_reserve_init(struct posix *p)
{
    chore_init(&p->chores[POSIX_RESERVE], reserve_chore);
    reserve_refresh(p);
}

void
posix_reserve_start(struct posix *p)
{
    chore_start(&p->chores[POSIX_RESERVE], REFRESH_MS);
}

static bool
may_use_reserve(const struct call_stack *stk)
{
    return caller_is_internal(&stk->caller) || dict_has(stk->call.xdata, DICT_KEY_INTERNAL_FOP);
}

int
posix_reserve_check(struct xlator *xl, const struct call_stack *stk)
{
    return posix_disk_is_full(posix_of(xl)) && !may_use_reserve(stk) ? -ENOSPC : 0;
}

int
posix_reserve_check_now(struct xlator *xl, const struct call_stack *stk)
{
    reserve_refresh(posix_of(xl));
    return posix_reserve_check(xl, stk);
}
