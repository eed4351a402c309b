/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The calls of a migration to the subvolume that has the file (S) and to the one that gets the file (D). */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "xlators/cluster/distribute/migrate-internal.h"

struct call_stack *
migrate_call(const struct migrating *g, enum fop fop)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(g->o, fop), g->m->file);

    if (stk)
        stk->caller.pid = PID_REBALANCE;
    return stk;
}

struct call_stack *
migrate_fd_call(const struct migrating *g, enum fop fop)
{
    struct call_stack *stk = migrate_call(g, fop);

    if (stk)
        stk->call.fd = fd_ref(g->fd);
    return stk;
}

struct call_stack *
migrate_name_call(const struct migrating *g, enum fop fop)
{
    struct call_stack *stk =
        dist_call_for_name(dist_call_new_internal(g->o, fop), g->m->parent, g->m->name);

    if (stk)
        stk->caller.pid = PID_REBALANCE;
    return stk;
}

int
migrate_at(const struct migrating *g, unsigned child, struct call_stack *stk)
{
    int ret = dist_call_once(g->o, child, stk);

    return ret < 0 ? ret : 0;
}

int
migrate_open(struct migrating *g)
{
    const unsigned both[] = {g->m->from, g->m->to};
    int err = 0;

    g->fd = fd_new(g->m->file, NULL, O_RDWR, false);
    for (size_t i = 0; i < sizeof both / sizeof both[0] && !err; i++) {
        struct call_stack *stk = g->fd ? migrate_fd_call(g, FOP_open) : NULL;

        if (stk)
            stk->call.flags = O_RDWR;
        err = migrate_at(g, both[i], stk);
    }
    return err;
}

int
migrate_stat(const struct migrating *g, unsigned child, struct iatt *out)
{
    struct call_stack *stk = migrate_call(g, FOP_stat);
    int ret = dist_call_at(g->o, child, stk);

    if (ret >= 0)
        *out = stk->reply.stat;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

int
migrate_setattr(const struct migrating *g, unsigned child, const struct iatt *a, int32_t valid,
                struct iatt *before)
{
    struct call_stack *stk = migrate_call(g, FOP_setattr);

    if (stk) {
        stk->call.stbuf = *a;
        stk->call.valid = valid;
    }
    int ret = dist_call_at(g->o, child, stk);
    if (ret >= 0 && before)
        *before = stk->reply.pre;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

int
migrate_set_mode(const struct migrating *g, unsigned child, uint32_t mode, struct iatt *before)
{
    return migrate_setattr(g, child, &(struct iatt){.mode = S_IFREG | mode}, SETATTR_MODE, before);
}

int
migrate_truncate(const struct migrating *g, unsigned child, uint64_t size)
{
    struct call_stack *stk = migrate_call(g, FOP_truncate);

    if (stk)
        stk->call.offset = size;
    return migrate_at(g, child, stk);
}

int
migrate_remove_xattr(const struct migrating *g, unsigned child, const char *key)
{
    struct call_stack *stk = migrate_call(g, FOP_removexattr);

    if (stk)
        stk->call.name = key;
    int err = migrate_at(g, child, stk);
    return err == -ENODATA ? 0 : err;
}

int
migrate_set_xattrs(const struct migrating *g, unsigned child, struct dict *set)
{
    struct call_stack *stk = migrate_call(g, FOP_setxattr);

    if (stk)
        stk->call.dict = set;
    return migrate_at(g, child, stk);
}

int
migrate_set_done(const struct migrating *g, bool is_done)
{
    struct dict *set;

    if (!migrate_has_replicas(g))
        return 0;
    set = dict_new(&g->o->stk->arena);
    int err = set ? dict_set_text(set, MIGRATE_DONE_KEY, DICT_PTR, is_done ? "1" : "0", 2) : -ENOMEM;

    return err ? err : migrate_set_xattrs(g, g->m->to, set);
}

int
migrate_set_linkto(const struct migrating *g, unsigned child, unsigned target, const uint32_t *mode)
{
    const char *to = g->o->d->child[target].xl->name;
    struct dict *set = dict_new(&g->o->stk->arena);
    char text[16];
    int err = set ? dict_set_text(set, MIGRATE_LINKTO_KEY, DICT_PTR, to, (uint32_t)strlen(to) + 1) : -ENOMEM;

    if (!err && mode) {
        int len = snprintf(text, sizeof text, "%o", *mode);

        err = dict_set_text(set, MIGRATE_MODE_KEY, DICT_PTR, text, (uint32_t)len + 1);
    }
    return err ? err : migrate_set_xattrs(g, child, set);
}
