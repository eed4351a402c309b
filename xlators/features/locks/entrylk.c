/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* ENTRYLK, FENTRYLK: locks on one name in a directory, or on all names (spec: brick 8.3).
 *
 * A name is mapped to a range of one position, its 63-bit tag, and the whole directory to all positions. So
 * entry locks use the same trees as byte ranges. Two names with the same tag exclude each other, which only
 * makes one of them wait. The tag is keyed by a number drawn at start, so an attacker cannot search for such
 * names.
 */
#include <errno.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "stack/lock-cmd.h"
#include "xlators/features/locks/locks-internal.h"


static int
entrylk_check(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    /* Stock fails an unknown command with errno 0, which no client can interpret. */
    if (c->cmd > ENTRYLK_TRY || c->type > FLOCK_WRITE)
        return -EINVAL;
    return lock_domain_check(stk);
}

static uint64_t tag_seed;

static void
entrylk_draw_seed(void)
{
    if (getrandom(&tag_seed, sizeof tag_seed, GRND_NONBLOCK) != sizeof tag_seed)
        tag_seed = (uintptr_t)&tag_seed; /* early boot: better than a constant */
}

void
entrylk_range(const char *name, int64_t *start, int64_t *end)
{
    static pthread_once_t seeded = PTHREAD_ONCE_INIT;

    *start = 0;
    *end = INT64_MAX;
    if (!name)
        return;
    pthread_once(&seeded, entrylk_draw_seed);
    *start = *end = (int64_t)(XXH3_64bits_withSeed(name, strlen(name), tag_seed) >> 1);
}

xl_verdict
locks_entrylk(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct inode *inode = c->fd ? c->fd->inode : c->loc.inode;
    const char *name = c->name && *c->name ? c->name : NULL;
    int err = entrylk_check(stk);

    if (err)
        return err;
    if (!inode)
        return -ESTALE;
    if ((err = locks_counts_prepare(xl, stk)))
        return err;
    stk->reply.op_ret = 0;
    if (c->cmd == ENTRYLK_UNLOCK) {
        struct lock key;

        lock_key(&key, stk, name);
        entrylk_range(name, &key.start, &key.end);
        return lock_queue_unlock(xl, inode, c->volume, LOCK_ENTRY, &key);
    }
    struct lock *l = lock_new(xl, stk, name);
    if (!l)
        return -ENOMEM;
    entrylk_range(name, &l->start, &l->end);
    l->is_exclusive = true; /* the type makes no difference: two readers exclude each other too */
    return lock_queue_request(xl, stk, inode, c->volume, LOCK_ENTRY, l, c->cmd == ENTRYLK_WAIT);
}
