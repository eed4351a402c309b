/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* trusted.glusterfs.lockinfo (spec: brick 6.3): a client that switches graphs reads this xattr from the old
 * fd and writes it to the new one, and the posix locks of the old fd move to the new one. The value is a
 * dictionary in the old opaque format (wire 4.1) with one pair per brick: "<POSIX(brick):host" -> number of
 * the old fd. */
#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "xlators/features/locks/locks-internal.h"

static const char *
brick_key(const struct xlator *xl, struct arena *a)
{
    char host[256];

    if (gethostname(host, sizeof host))
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    return arena_printf(a, "<POSIX(%s):%s", xl->graph->name, host);
}

static bool
fd_has_locks(struct xlator *xl, struct fd *fd)
{
    struct lock_inode *li = inode_ctx(fd->inode, xl);

    if (!li)
        return false;
    pthread_mutex_lock(&li->mutex);
    bool has = lock_fd_counts(li, fd).granted;
    pthread_mutex_unlock(&li->mutex);
    return has;
}

xl_verdict
lockinfo_get(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    struct dict *dict = reply_dict(stk);
    char number[24];

    if (!dict)
        return -ENOMEM;
    stk->reply.op_ret = 0;
    if (!c->fd || !fd_has_locks(xl, c->fd))
        return XL_DONE; /* an empty dictionary: no locks to move */
    const char *key = brick_key(xl, &stk->arena);
    if (!key)
        return -ENOMEM;
    uint32_t key_len = (uint32_t)strlen(key);
    uint32_t value_len = (uint32_t)snprintf(number, sizeof number, "%" PRId64, c->fd_nr) + 1;
    uint32_t head[3] = {htobe32(1), htobe32(key_len), htobe32(value_len)};
    uint32_t size = (uint32_t)sizeof head + key_len + 1 + value_len;
    char *bytes = arena_alloc(&stk->arena, size);

    if (!bytes)
        return -ENOMEM;
    memcpy(bytes, head, sizeof head);
    memcpy(bytes + sizeof head, key, key_len + 1);
    memcpy(bytes + sizeof head + key_len + 1, number, value_len);
    return dict_set_bytes(dict, DICT_KEY_LOCKINFO, bytes, size) ? -ENOMEM : XL_DONE;
}

static bool
take_u32(const uint8_t **at, const uint8_t *end, uint32_t *out)
{
    uint32_t be;

    if (end - *at < 4)
        return false;
    memcpy(&be, *at, 4);
    *out = be32toh(be);
    *at += 4;
    return true;
}

/* Finds this brick's fd number in the dictionary. Returns 0, -ENOENT or -EINVAL. */
static int
find_number(const uint8_t *at, uint32_t size, const char *key, int64_t *number)
{
    const uint8_t *end = at + size;
    uint32_t count, key_len, value_len;

    if (!take_u32(&at, end, &count))
        return -EINVAL;
    while (count--) {
        if (!take_u32(&at, end, &key_len) || !take_u32(&at, end, &value_len))
            return -EINVAL;
        uint64_t left = (uint64_t)(end - at), need = (uint64_t)key_len + 1 + value_len;
        if (need > left || at[key_len] != '\0')
            return -EINVAL;
        const char *value = (const char *)at + key_len + 1;
        if (strlen(key) == key_len && memcmp(at, key, key_len) == 0) {
            char *rest;

            if (!value_len || value[value_len - 1] != '\0')
                return -EINVAL;
            errno = 0;
            *number = strtoll(value, &rest, 10);
            return errno || rest == value || *rest ? -EINVAL : 0;
        }
        at += need;
    }
    return -ENOENT;
}

/* The new graph's client has another uid, but the part before "-GRAPH_ID:" names the process and is the same.
 * This check keeps a client from taking the locks of another process. */
static bool
is_same_process(const struct brick_client *a, const struct brick_client *b)
{
    if (a == b)
        return true;
    if (!a || !b)
        return false;
    const char *mark = strstr(a->uid, "-GRAPH_ID:");
    return mark && mark > a->uid && strncmp(a->uid, b->uid, (size_t)(mark - a->uid) + 10) == 0;
}

/* Gives a lock that has been taken out a new client and fd. On failure (no memory, too many locks) the lock
 * keeps the old ones. */
static int
move_lock(struct lock_inode *li, struct lock *l, const struct call_stack *stk, struct lock_batch *b)
{
    struct brick_client *client = l->client;
    struct fd *fd = l->fd;

    l->client = stk->client;
    l->fd = stk->call.fd;
    int err = posixlk_set_locked(li, l, b); /* the new client's owner may already have locks there */
    if (!err) {
        l->fd_nr = stk->call.fd_nr;
        return 0;
    }
    l->client = client;
    l->fd = fd;
    lock_hold_locked(li, &li->posix, l);
    return err;
}

static int
lockinfo_move_locks(struct lock_inode *li, const struct call_stack *stk, int64_t number, struct lock_batch *b)
{
    CDS_LIST_HEAD(moving);
    struct lock *l, *next;
    int err = 0;

    cds_list_for_each_entry_safe(l, next, &li->posix.granted, link) {
        if (l->fd_nr != number || !l->fd || !is_same_process(l->client, stk->client))
            continue;
        lock_take_out_locked(li, l, b);
        cds_list_add_tail(&l->link, &moving);
    }
    cds_list_for_each_entry_safe(l, next, &moving, link) {
        cds_list_del_init(&l->link);
        int failed = move_lock(li, l, stk, b);
        err = err ? err : failed;
    }
    lock_inode_settle_locked(li, b);
    return err;
}

xl_verdict
lockinfo_set(struct xlator *xl, struct call_stack *stk, const struct dict_pair *pair)
{
    struct fd *fd = stk->call.fd;
    struct lock_batch b;
    int64_t number = -1;

    if ((pair->type != DICT_PTR && pair->type != DICT_UNTYPED && pair->type != DICT_STR) || !fd)
        return -EINVAL;
    const char *key = brick_key(xl, &stk->arena);
    int err = key ? find_number(pair->v.bytes, pair->len, key, &number) : -ENOMEM;
    if (err && err != -ENOENT)
        return err;
    stk->reply.op_ret = 0;
    struct lock_inode *li = inode_ctx(fd->inode, xl);
    if (err || !li || fd->is_anonymous)
        return XL_DONE; /* the old fd had no locks here */
    if (lock_inode_enter_for(li, &b, xl, stk->client))
        err = lockinfo_move_locks(li, stk, number, &b);
    else
        err = -ENOTCONN;
    lock_inode_leave(li, &b);
    return err ? err : XL_DONE;
}
