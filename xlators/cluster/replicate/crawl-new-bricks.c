/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Before a crawl: bricks that are new in the set.
 *
 * A new brick (added, or in the place of another one) is empty, and the other bricks accuse it of lacking
 * everything: their root folders have pending xattrs with a data counter about it, which nothing else sets on
 * the root (volumes/bricks/brick-marks.h). A client that still works with the graph of before changes objects
 * on the other bricks only and accuses no brick. So the crawl takes these steps before it heals the first
 * object:
 *
 *      look       at the root's counters on all children. No data counter: the crawl begins
 *      wait       until no client works without the new brick, as of two looks at the clients, one after the
 *                 other (xlators/cluster/old-clients.h)
 *      accuse     clients of the new graph have made objects on the new brick meanwhile, which clients of the
 *                 old one may have changed without it. Each object that the new brick has is accused by the
 *                 other copies (XATTROP), unless the new copy accuses them
 *      crawl      heals the root, which counts the mark back, and all accused objects
 *
 * Until the crawl, a client of the new graph may read an object that such a client has made on the new brick
 * without the changes of a client of the old graph.
 *
 * A healer that dies before the crawl has changed nothing, or has accused some objects: the next one begins
 * anew, because the root's mark is still there. Objects that a heal had mended are accused again, and healed
 * once more. A healer that lives on accuses once. If a brick dies, the crawl stops, and begins anew
 * when the brick is back.
 *
 * Not covered: mounts that heal data themselves (options cluster.data-self-heal and the like, off by
 * default), and stock's self-heal daemon. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/old-clients.h"
#include "xlators/cluster/replicate/crawl-internal.h"

enum { LIST_BYTES = 128 * 1024, LOOKS = 2, PAUSES = 5 };

/* ---- the accusations ------------------------------------------------------------------------- */

struct folders {
    struct gfid *at; /* still to be walked; a stack */
    size_t count, room;
};

static int
folders_push(struct folders *f, const struct gfid *gfid)
{
    if (f->count == f->room) {
        size_t room = f->room ? 2 * f->room : 64;
        struct gfid *at = realloc(f->at, room * sizeof *at);

        if (!at)
            return -ENOMEM;
        f->at = at;
        f->room = room;
    }
    f->at[f->count++] = *gfid;
    return 0;
}

static bool
has_gone(int err)
{
    return err == -ENOENT || err == -ESTALE;
}

static bool
accuses(const struct replica *r, unsigned k)
{
    return r->about[k].count[CHANGE_DATA] || r->about[k].count[CHANGE_METADATA] ||
           r->about[k].count[CHANGE_ENTRY];
}

/* Lets the other copies of the object count a change of each kind that child k has missed. */
static int
accuse_object(const struct crawler *c, unsigned k, const struct gfid *gfid, uint32_t type)
{
    struct iatt a = {.gfid = *gfid, .mode = type};
    struct inode *inode = inode_link(c->graph->inodes, NULL, NULL, &a);
    struct marks m = {.inode = inode, .accused = CHILD(k), .about.count[CHANGE_METADATA] = 1};
    child_set others = 0;
    struct heal h;
    struct fan f;

    if (!inode)
        return -ENOMEM;
    m.about.count[CHANGE_DATA] = S_ISREG(type) || S_ISDIR(type);
    m.about.count[CHANGE_ENTRY] = S_ISDIR(type);
    heal_begin(&h, c->r, inode);
    int err = heal_look(&h, CHANGE_METADATA);
    for_each_child (i, c->r->all & ~CHILD(k))
        others |= h.replica[i].is_there && !accuses(&h.replica[k], i) ? CHILD(i) : 0;
    if ((!err || has_gone(err)) && others) {
        err = fan_ask(&f, &h.op, others, marks_make, &m);
        if (!err && f.good != f.sent)
            err = -fan_errno(&f);
        fan_end(&f);
    }
    heal_end(&h);
    inode_unref(inode);
    return has_gone(err) ? 0 : err;
}

static int
accuse_listed(const struct crawler *c, unsigned k, const struct inode *dir,
              const struct dirent_entry *entries, uint64_t *offset, struct folders *todo)
{
    int err = 0;

    for (const struct dirent_entry *e = entries; e && !err; e = e->next) {
        *offset = e->off;
        if (gfid_is_null(&e->iatt.gfid) || strcmp(e->name, ".") == 0 || strcmp(e->name, "..") == 0 ||
            heal_is_reserved_name(dir, e->name))
            continue;
        err = accuse_object(c, k, &e->iatt.gfid, e->iatt.mode & S_IFMT);
        if (!err && S_ISDIR(e->iatt.mode))
            err = folders_push(todo, &e->iatt.gfid);
    }
    return err;
}

/* Returns 1: there is more; 0: the end; or -errno. */
static int
accuse_part(const struct heal *h, const struct crawler *c, unsigned k, struct fd *fd, uint64_t *offset,
            struct folders *todo)
{
    struct call_stack *stk = heal_call(h, FOP_readdirp, k);

    if (!stk)
        return -ENOMEM;
    stk->call.fd = fd_ref(fd);
    stk->call.offset = *offset;
    stk->call.size = LIST_BYTES;
    int ret = coro_call(stk, c->r->xl->children[k]);

    if (ret >= 0) {
        bool has_more = stk->reply.entries != NULL;

        ret = accuse_listed(c, k, h->op.inode, stk->reply.entries, offset, todo);
        ret = ret ? ret : has_more;
    }
    call_stack_free(stk);
    return ret;
}

/* Accuses the objects in a folder of child k, and adds its folders to the stack. */
static int
accuse_folder(const struct crawler *c, unsigned k, const struct gfid *gfid, struct folders *todo)
{
    struct iatt a = {.gfid = *gfid, .mode = S_IFDIR};
    struct inode *dir = inode_link(c->graph->inodes, NULL, NULL, &a);
    uint64_t offset = 0;
    struct heal h;

    if (!dir)
        return -ENOMEM;
    heal_begin(&h, c->r, dir);
    struct call_stack *stk = heal_call(&h, FOP_opendir, k);
    int ret = stk ? coro_call(stk, c->r->xl->children[k]) : -ENOMEM;

    while (ret >= 0) {
        ret = heal_must_stop(&h) ? -ENOTCONN : accuse_part(&h, c, k, stk->reply.fd, &offset, todo);
        if (ret == 0)
            break;
    }
    if (stk)
        call_stack_free(stk);
    heal_end(&h);
    inode_unref(dir);
    return has_gone(ret) ? 0 : ret;
}

/* Accuses all objects that child k has, except the root, which is accused. */
static int
accuse_all(const struct crawler *c, unsigned k)
{
    struct folders todo = {0};
    int err = folders_push(&todo, &gfid_root);

    while (!err && todo.count > 0) {
        struct gfid next = todo.at[--todo.count];

        err = accuse_folder(c, k, &next, &todo);
    }
    free(todo.at);
    return err;
}

/* ---- the wait -------------------------------------------------------------------------------- */

/* Puts the new children into *fresh. Returns 0 or -errno. */
static int
find_new(struct crawler *c, child_set *fresh)
{
    struct inode *root = inode_root(c->graph->inodes);
    struct heal h;

    *fresh = 0;
    heal_begin(&h, c->r, root);
    int err = heal_look(&h, CHANGE_DATA);
    for_each_child (i, c->r->all) {
        for_each_child (k, c->r->all & ~CHILD(i))
            *fresh |= h.replica[i].about[k].count[CHANGE_DATA] ? CHILD(k) : 0;
    }
    heal_end(&h);
    inode_unref(root);
    return err;
}

static void
set_waits_for(struct crawler *c, const char *who)
{
    pthread_mutex_lock(&c->lock);
    bool is_same = strcmp(c->waits_for, who) == 0;
    snprintf(c->waits_for, sizeof c->waits_for, "%s", who);
    pthread_mutex_unlock(&c->lock);
    if (*who && !is_same)
        log_event(LOG_WARNING, c->r->xl, "crawl-old-client",
                  "the heal of a new brick waits for %s, which is not connected to the brick", who);
}

/* Waits CLIENTS_MS, or a part of that if the crawl must stop. */
static void
pause_crawl(const struct crawler *c)
{
    for (unsigned n = 0; n < PAUSES && !crawl_must_stop(c); n++)
        coro_pause(CLIENTS_MS / PAUSES);
}

/* Returns false if the crawl must stop. */
static bool
wait_for_clients(struct crawler *c, child_set fresh)
{
    bool needs[REPLICAS_MAX] = {false};
    struct client_watch w = {.xl = c->r->xl, .needs = needs};

    for_each_child (i, fresh)
        needs[i] = true;
    for (unsigned looks = 0; looks < LOOKS && !crawl_must_stop(c); pause_crawl(c)) {
        looks = client_watch_look(&w) ? looks + 1 : 0;
        set_waits_for(c, looks ? "" : w.who);
    }
    set_waits_for(c, "");
    return !crawl_must_stop(c);
}

int
crawl_prepare(struct crawler *c)
{
    child_set fresh = 0;
    int err = find_new(c, &fresh);

    if (!err) {
        c->accused &= fresh;
        fresh &= ~c->accused;
    }
    if (!err && fresh && !wait_for_clients(c, fresh))
        err = -ENOTCONN;
    for_each_child (k, fresh) {
        err = err ? err : accuse_all(c, k);
        c->accused |= err ? 0 : CHILD(k);
    }
    if (err && !crawl_must_stop(c))
        log_event(LOG_WARNING, c->r->xl, "crawl-new-bricks",
                  "no object is healed, because the set cannot be searched for new bricks: %s",
                  strerror(-err));
    return err;
}
