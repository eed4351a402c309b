/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Steps 4 and 5 of a migration (migrate.c): the contents and the xattrs of the file go from S to D while
 * clients change both.
 *
 * A block of a file of more than one small block is a unit of the throttle (heal-throttle.h). While clients
 * work, blocks are small. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "mem/iobuf.h"
#include "xlators/cluster/distribute/migrate-internal.h"

enum { BLOCK_BYTES = 1 << 20, SMALL_BLOCK_BYTES = 128 * 1024, BLOCKS_AT_A_TIME = 4 };
enum { SEEK_TO_DATA = 0, SEEK_TO_HOLE = 1 };

/* ---- contents -------------------------------------------------------------------------------- */

static struct call_stack *
read_block(const struct migrating *g, uint64_t offset, uint64_t size, int *ret)
{
    struct call_stack *stk = migrate_fd_call(g, FOP_readv);

    if (stk) {
        stk->call.offset = offset;
        stk->call.size = size;
    }
    *ret = dist_call_at(g->o, g->m->from, stk);
    return stk;
}

/* Writes the bytes that were read to D. */
static int
write_block(const struct migrating *g, uint64_t offset, const struct fop_reply *from)
{
    struct call_stack *stk = migrate_fd_call(g, FOP_writev);
    size_t bytes = from->payload.iov_len;

    if (stk) {
        stk->call.offset = offset;
        stk->call.payload_iobuf = iobuf_ref(from->iobuf);
        stk->call.payload[0] = from->payload;
        stk->call.payload_count = 1;
        stk->call.payload_bytes = stk->call.size = bytes;
    }
    int ret = dist_call_once(g->o, g->m->to, stk);
    return ret < 0 ? ret : (size_t)ret == bytes ? 0 : -ENOSPC;
}

static bool
is_zero_block(const struct iovec *bytes)
{
    const char *at = bytes->iov_base;

    return bytes->iov_len == 0 || (*at == 0 && memcmp(at, at + 1, bytes->iov_len - 1) == 0);
}

static bool
are_equal_blocks(const struct call_stack *a, const struct call_stack *b)
{
    const struct iovec *x = &a->reply.payload, *y = &b->reply.payload;

    return a->reply.op_ret == b->reply.op_ret &&
           (a->reply.op_ret == 0 || memcmp(x->iov_base, y->iov_base, x->iov_len) == 0);
}

/* Copies a block until D has the contents of S. D's block is a hole before the first attempt, but for
 * changes that clients have made there as on S: zeros need not be written then. */
static int
copy_block_to_copy(const struct migrating *g, uint64_t offset, uint64_t size)
{
    int ret;
    struct call_stack *now = read_block(g, offset, size, &ret);
    bool is_done = ret == 0 || (ret > 0 && is_zero_block(&now->reply.payload));

    for (unsigned n = 0; ret >= 0 && !is_done; n++) {
        int err = now->reply.op_ret > 0 ? write_block(g, offset, &now->reply) : 0;
        struct call_stack *again = err ? NULL : read_block(g, offset, size, &ret);

        ret = err ? err : ret;
        is_done = ret >= 0 && are_equal_blocks(now, again);
        if (now)
            call_stack_free(now);
        now = again;
        if (n == MIGRATE_TRIES_MAX && !is_done)
            ret = -EBUSY;
    }
    if (now)
        call_stack_free(now);
    return ret < 0 ? ret : 0;
}

/* Copies the next block of the range. Returns false if there is nothing left to do. */
static bool
copy_next_block(struct migrating *g)
{
    uint64_t most = heal_gives_way(g->m->throttle) ? SMALL_BLOCK_BYTES : BLOCK_BYTES;

    if (atomic_load(&g->err) || migration_must_stop(g->m))
        return false;
    uint64_t offset = atomic_fetch_add(&g->next, most);

    if (offset >= g->end)
        return false;
    uint64_t size = g->end - offset < most ? g->end - offset : most;
    int err = copy_block_to_copy(g, offset, size);

    if (err)
        atomic_store(&g->err, err);
    else
        migration_add_bytes(g->m, size);
    return true;
}

static void
copy_blocks_in_turn(void *arg, size_t n)
{
    struct migrating *g = arg;
    bool goes_on;

    (void)n;
    do {
        uint64_t begun = heal_unit_begin(g->m->throttle);

        goes_on = copy_next_block(g);
        heal_unit_end(g->m->throttle, begun);
    } while (goes_on);
}

static int
copy_range(struct migrating *g, uint64_t from, uint64_t end)
{
    uint64_t blocks = (end - from + BLOCK_BYTES - 1) / BLOCK_BYTES;

    atomic_store(&g->next, from);
    g->end = end;
    atomic_store(&g->err, 0);
    if (g->source.size <= SMALL_BLOCK_BYTES) { /* the entry's unit goes on */
        (void)copy_next_block(g);
    } else {
        unsigned width = blocks < BLOCKS_AT_A_TIME ? (unsigned)blocks : BLOCKS_AT_A_TIME;

        heal_unit_end(g->m->throttle, g->m->unit_ns);
        coro_each(width, width, copy_blocks_in_turn, g);
        g->m->unit_ns = heal_unit_begin(g->m->throttle);
    }
    return migration_must_stop(g->m) ? -ECANCELED : atomic_load(&g->err);
}

/* Returns the offset of the next data, or hole, at or behind `offset`; `end` if there is none before. If S
 * cannot tell, everything is data. */
static uint64_t
seek_on_source(const struct migrating *g, uint64_t offset, uint64_t end, uint32_t what)
{
    struct call_stack *stk = migrate_fd_call(g, FOP_seek);
    uint64_t at = what == SEEK_TO_DATA ? offset : end;

    if (stk) {
        stk->call.offset = offset;
        stk->call.cmd = what;
    }
    int ret = dist_call_at(g->o, g->m->from, stk);
    if (ret >= 0)
        at = stk->reply.offset;
    else if (ret == -ENXIO)
        at = end;
    if (stk)
        call_stack_free(stk);
    return at < offset ? offset : at > end ? end : at;
}

int
migrate_copy_data(struct migrating *g)
{
    uint64_t end = g->source.size, at = 0;
    bool is_sparse = g->source.blocks * 512 < end;
    int err = 0;

    while (!err && at < end) {
        uint64_t data = is_sparse ? seek_on_source(g, at, end, SEEK_TO_DATA) : at;
        uint64_t hole = is_sparse && data < end ? seek_on_source(g, data, end, SEEK_TO_HOLE) : end;

        if (data < end)
            err = copy_range(g, data, hole > data ? hole : end);
        at = hole > data ? hole : end;
    }
    return err;
}

/* Gives D the size of S. If clients change the size meanwhile, the part that the truncation may have cut is
 * copied again. */
int
migrate_copy_size(struct migrating *g)
{
    struct iatt copy;

    for (unsigned n = 0; n < MIGRATE_TRIES_MAX; n++) {
        int err = migrate_stat(g, g->m->from, &g->source);

        err = err ? err : migrate_stat(g, g->m->to, &copy);
        if (err || copy.size == g->source.size)
            return err;
        uint64_t size = g->source.size;
        err = migrate_truncate(g, g->m->to, size);
        err = err ? err : migrate_stat(g, g->m->from, &g->source);
        if (!err && g->source.size > size)
            err = copy_range(g, size, g->source.size);
        if (err)
            return err;
    }
    return -EBUSY;
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

static bool
has_prefix(const char *text, const char *prefix)
{
    return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* Returns whether an xattr belongs to the file and not to the brick that has it. */
static bool
is_xattr_of_file(const struct dict_pair *p)
{
    static const char *const of_brick[] = {
        "trusted.gfid",   "trusted.afr.", "trusted.glusterfs.dht", "trusted.glusterfs.protect.writes",
        "trusted.pgfid.", "glusterfs.",   "trusted.kiln.migrate.", "trusted.glusterfs.quota."};

    for (size_t i = 0; i < sizeof of_brick / sizeof of_brick[0]; i++) {
        if (has_prefix(p->key, of_brick[i]))
            return false;
    }
    return (p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED) &&
           (has_prefix(p->key, "trusted.") || has_prefix(p->key, "user.") ||
            has_prefix(p->key, "security.") || has_prefix(p->key, "system."));
}

static bool
is_acl(const struct dict_pair *p)
{
    return has_prefix(p->key, "system.posix_acl_");
}

static int
migrate_list_xattrs(const struct migrating *g, unsigned child, struct call_stack **out)
{
    int ret = dist_call_at(g->o, child, *out = migrate_call(g, FOP_getxattr));

    if (ret < 0 && *out) {
        call_stack_free(*out);
        *out = NULL;
    }
    return ret < 0 ? ret : 0;
}

static bool
has_equal_xattr(const struct dict *in, const struct dict_pair *p)
{
    const struct dict_pair *q = dict_find_text(in, p->key);

    return q && q->len == p->len && memcmp(q->v.bytes, p->v.bytes, p->len) == 0;
}

/* Compares all xattrs but the ACL, which the mode of a linkto file changes. */
static bool
are_equal_xattrs(const struct dict *a, const struct dict *b)
{
    dict_for_each (p, a) {
        if (is_xattr_of_file(p) && !is_acl(p) && !has_equal_xattr(b, p))
            return false;
    }
    dict_for_each (p, b) {
        if (is_xattr_of_file(p) && !is_acl(p) && !dict_find_text(a, p->key))
            return false;
    }
    return true;
}

/* Sets the xattrs of `list` on D: the ACL, or all others. */
int
migrate_give_xattrs(const struct migrating *g, const struct dict *list, bool wants_acl)
{
    struct dict *set = dict_new(&g->o->stk->arena);
    int err = set ? 0 : -ENOMEM;

    dict_for_each (p, list) {
        if (!err && is_xattr_of_file(p) && is_acl(p) == wants_acl)
            err = dict_set_text(set, p->key, DICT_PTR, p->v.bytes, p->len);
    }
    return err || !set->count ? err : migrate_set_xattrs(g, g->m->to, set);
}

/* Removes xattrs that S has lost since `was`. */
static int
drop_xattrs(const struct migrating *g, const struct dict *was, const struct dict *now)
{
    int err = 0;

    dict_for_each (p, was) {
        if (!err && is_xattr_of_file(p) && !is_acl(p) && !dict_find_text(now, p->key))
            err = migrate_remove_xattr(g, g->m->to, p->key);
    }
    return err;
}

int
migrate_read_xattrs(struct migrating *g)
{
    return migrate_list_xattrs(g, g->m->from, &g->list);
}

int
migrate_copy_xattrs(struct migrating *g)
{
    int err = migrate_read_xattrs(g);

    return err ? err : migrate_give_xattrs(g, g->list->reply.dict, false);
}

/* Gives D the changes of xattrs of S since the last look, but not of the ACL. */
int
migrate_copy_changed_xattrs(struct migrating *g)
{
    struct call_stack *now;
    int err = migrate_list_xattrs(g, g->m->from, &now);

    if (err)
        return err;
    if (!are_equal_xattrs(g->list->reply.dict, now->reply.dict)) {
        err = drop_xattrs(g, g->list->reply.dict, now->reply.dict);
        err = err ? err : migrate_give_xattrs(g, now->reply.dict, false);
    }
    call_stack_free(g->list);
    g->list = now;
    return err;
}
