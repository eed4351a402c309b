/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Clearing locks by name (spec: brick 8.9): getxattr of glusterfs.clrlk.t<kind>.k<state>[.<range>], which the
 * CLI's clear-locks sends; only root may use it, because it clears locks of other users. And fgetxattr of
 * glusterfs.intrlk.tposix.kblocked.<range>, with which a mount interrupts one of its own lock requests. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/locks/locks-internal.h"

#define CLRLK "glusterfs.clrlk."
#define INTRLK "glusterfs.intrlk."

enum clear_kind { CLEAR_INODE, CLEAR_ENTRY, CLEAR_POSIX };

struct clear {
    enum clear_kind kind;
    bool granted, blocked;
    bool has_range;
    int64_t start, end;
    const char *name; /* entry: NULL is any */
    const struct call_stack *of; /* intrlk: only locks of this call's client and pid; NULL: of every client */
};

static bool
clrlk_skip_word(const char **at, const char *text)
{
    size_t len = strlen(text);

    if (strncmp(*at, text, len) != 0 || ((*at)[len] != '.' && (*at)[len] != '\0'))
        return false;
    *at += len;
    return true;
}

static bool
parse_range(const char *text, struct clear *c)
{
    int64_t start, len;
    short whence;
    int end = 0;

    if (sscanf(text, "%hd,%" SCNd64 "-%" SCNd64 "%n", &whence, &start, &len, &end) != 3 || text[end])
        return false;
    c->has_range = true;
    return lock_range(start, len, &c->start, &c->end) == 0;
}

/* `at`: the text behind the prefix. */
static bool
clear_parse(const char *at, struct clear *c)
{
    if (clrlk_skip_word(&at, "tinode"))
        c->kind = CLEAR_INODE;
    else if (clrlk_skip_word(&at, "tentry"))
        c->kind = CLEAR_ENTRY;
    else if (clrlk_skip_word(&at, "tposix"))
        c->kind = CLEAR_POSIX;
    else
        return false;
    if (*at++ != '.')
        return false;
    if (clrlk_skip_word(&at, "kall"))
        c->granted = c->blocked = true;
    else if (clrlk_skip_word(&at, "kgranted"))
        c->granted = true;
    else if (clrlk_skip_word(&at, "kblocked"))
        c->blocked = true;
    else
        return false;
    if (*at == '\0')
        return true;
    at++;
    if (c->kind != CLEAR_ENTRY)
        return parse_range(at, c);
    c->name = *at ? at : NULL;
    return true;
}

static bool
is_cleared(const struct lock *l, const void *arg)
{
    const struct clear *c = arg;

    if (l->waiter ? !c->blocked : !c->granted)
        return false;
    if (c->of && (l->client != c->of->client || l->pid != c->of->caller.pid))
        return false;
    if (c->kind == CLEAR_ENTRY)
        return !c->name || (l->name && strcmp(l->name, c->name) == 0);
    return !c->has_range || (l->start <= c->end && c->start <= l->end);
}

static void
clear_locked(struct lock_inode *li, const struct clear *c, struct lock_batch *b, unsigned *granted,
             unsigned *blocked)
{
    struct lock_domain *d;

    if (c->kind == CLEAR_POSIX)
        lock_queue_drop_locked(li, &li->posix, is_cleared, c, EINTR, b, granted, blocked);
    else
        cds_list_for_each_entry(d, &li->domains, link)
            lock_queue_drop_locked(li, c->kind == CLEAR_ENTRY ? &d->entrylks : &d->inodelks, is_cleared, c,
                                   EAGAIN, b, granted, blocked);
    if (*granted || *blocked)
        lock_inode_settle_locked(li, b);
}

static const char *
clear_report(struct xlator *xl, struct call_stack *stk, struct inode *inode, enum clear_kind kind,
             unsigned granted, unsigned blocked)
{
    static const char *const kinds[] = {"inode", "entry", "posix"};
    char path[4096], host[256];

    if (!granted && !blocked)
        return "No locks cleared.";
    if (gethostname(host, sizeof host))
        snprintf(host, sizeof host, "localhost");
    host[sizeof host - 1] = '\0';
    if (inode_path(inode, path, sizeof path) < 0)
        snprintf(path, sizeof path, "/<gfid:%s>", GFID(&inode->gfid));
    return arena_printf(&stk->arena, "%s:%s%s: %s blocked locks=%u granted locks=%u", host, xl->graph->name,
                        path, kinds[kind], blocked, granted);
}

static xl_verdict
clear_by_spec(struct xlator *xl, struct call_stack *stk, const char *spec, const struct call_stack *of)
{
    struct inode *inode = stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
    struct clear c = {.of = of};
    unsigned granted = 0, blocked = 0;
    struct lock_batch b;

    if (!clear_parse(spec, &c))
        return -EINVAL;
    if (!inode)
        return -ESTALE;
    struct lock_inode *li = inode_ctx(inode, xl);
    if (li) {
        lock_inode_enter(li, &b, xl);
        clear_locked(li, &c, &b, &granted, &blocked);
        lock_inode_leave(li, &b);
    }
    const char *text = clear_report(xl, stk, inode, c.kind, granted, blocked);
    struct dict *dict = text ? reply_dict(stk) : NULL;
    if (!dict || dict_set_text(dict, stk->call.name, DICT_STR, text, (uint32_t)strlen(text) + 1))
        return -ENOMEM;
    if (granted && !of)
        log_event(LOG_WARNING, xl, "locks-cleared", "%s", text);
    stk->reply.op_ret = 0;
    return XL_DONE;
}

xl_verdict
locks_getxattr(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name;

    if (!name || !*name)
        return locks_counts(xl, stk);
    if (strncmp(name, CLRLK, sizeof CLRLK - 1) == 0)
        return stk->caller.uid && !caller_is_internal(&stk->caller)
                   ? -EPERM
                   : clear_by_spec(xl, stk, name + sizeof CLRLK - 1, NULL);
    if (stk->call.fop == FOP_fgetxattr) {
        if (strncmp(name, INTRLK, sizeof INTRLK - 1) == 0)
            return clear_by_spec(xl, stk, name + sizeof INTRLK - 1, stk);
        if (strcmp(name, "trusted.glusterfs.lockinfo") == 0)
            return lockinfo_get(xl, stk);
    }
    return locks_counts(xl, stk);
}
