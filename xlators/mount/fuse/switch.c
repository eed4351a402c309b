/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Another graph below a mount point, while files are open: the volume has got other bricks or layers.
 *
 *      the device is not read          what the kernel asks waits there
 *      running tasks end               those that wait for locks are left: they are answered ENOTCONN when
 *                                      the old graph goes, and ask the new one (task_follow)
 *      each node's inode, by gfid      looked up in the new graph, so that its layers know it
 *      each open file                  opened there
 *      the mount changes its layer     the device is read again
 *
 * What the kernel holds are the addresses of nodes and files, which stay. Locks that were granted are lost,
 * and the log says for how many files. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read-section.h"
#include "log/log.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { TASKS_END_MS = 10000, LOOK_AGAIN_US = 5000 };

struct carry {
    struct fuse_mount *m;
    struct xlator *from, *to; /* mount/fuse of both graphs */
    struct fuse_node **nodes; /* that the kernel knows, or that have open files */
    size_t count, room;
    unsigned files, lost_files, locks;
    bool is_short;
    sem_t done;
};

/* ---- what there is --------------------------------------------------------------------------- */

static void
note_node(struct inode *inode, void *ctx, void *arg)
{
    struct carry *c = arg;
    struct fuse_node *node = ctx;

    (void)inode;
    if (!atomic_load(&node->lookups) && cds_list_empty(&node->files) && inode != c->m->root)
        return;
    if (c->count == c->room) {
        size_t room = c->room ? 2 * c->room : 1024;
        struct fuse_node **more = reallocarray(c->nodes, room, sizeof *more);

        if (!more) {
            c->is_short = true;
            return;
        }
        c->nodes = more;
        c->room = room;
    }
    c->nodes[c->count++] = node;
}

/* ---- in the new graph; in a coroutine -------------------------------------------------------- */

static struct call_stack *
call_new(enum fop fop, struct inode *inode)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->call.fop = fop;
    stk->call.loc.inode = inode_ref(inode);
    return stk;
}

/* Its layers keep what they learn with the inode. What is not found is answered by them, as it would be. */
static void
look_up(struct carry *c, struct inode *inode)
{
    struct call_stack *stk = call_new(FOP_lookup, inode);

    if (!stk)
        return;
    (void)coro_call(stk, c->to);
    call_stack_free(stk);
}

/* The file's fd in the new graph; one that could not be opened is answered EBADFD from then on. NULL: no
 * memory. */
static struct fd *
open_again(struct carry *c, const struct fd *old, struct inode *inode)
{
    uint32_t flags = old->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
    struct call_stack *stk = call_new(old->is_dir ? FOP_opendir : FOP_open, inode);
    struct fd *fd = NULL;
    int ret = -ENOMEM;

    if (stk) {
        stk->call.flags = flags;
        ret = coro_call(stk, c->to);
        if (ret >= 0) {
            fd = stk->reply.fd;
            stk->reply.fd = NULL;
        }
        call_stack_free(stk);
    }
    if (fd)
        return fd;
    log_event(LOG_WARNING, c->to, "fuse-file-lost", "%s could not be opened again: %s", GFID(&inode->gfid),
              strerror(-ret));
    c->lost_files++;
    return fd_new(inode, NULL, flags, old->is_dir);
}

static void
carry_files(struct carry *c, struct fuse_node *node, struct inode *inode)
{
    struct fuse_file *f;

    cds_list_for_each_entry (f, &node->files, node_link) {
        struct fd *fd = open_again(c, f->fd, inode);

        if (!fd)
            continue; /* no memory: the old graph's, which answers ENOTCONN */
        fd_unref(f->fd);
        f->fd = fd;
        c->files++;
    }
}

static struct inode *
same_inode(struct carry *c, const struct inode *old)
{
    const struct iatt a = {.gfid = old->gfid, .mode = old->type};

    return old == c->m->root ? inode_root(c->to->graph->inodes)
                             : inode_link(c->to->graph->inodes, NULL, NULL, &a);
}

/* Its references change over; what others hold of the old inode, they give back. */
static void
carry_node(struct carry *c, struct fuse_node *node)
{
    struct inode *old = node->inode, *inode = same_inode(c, old);

    if (!inode) {
        c->is_short = true;
        return;
    }
    look_up(c, inode);
    carry_files(c, node, inode);
    (void)inode_ctx_install(inode, c->to, node);
    inode_ctx_take_away(old, c->from);
    node->inode = inode;
    c->locks += atomic_load(&node->has_had_locks);
    if (atomic_load(&node->lookups)) {
        inode_ref(inode);
        inode_unref(old);
    }
    inode_unref(inode);
}

static void
carry_go(void *arg)
{
    struct carry *c = arg;
    struct inode *root = inode_root(c->to->graph->inodes);

    look_up(c, root);
    inode_unref(root);
    for (size_t i = 0; i < c->count; i++)
        carry_node(c, c->nodes[i]);
    sem_post(&c->done);
}

/* ---- the switch ------------------------------------------------------------------------------ */

static bool
tasks_end(struct fuse_mount *m)
{
    for (int waited_us = 0; atomic_load(&m->running); waited_us += LOOK_AGAIN_US) {
        if (waited_us > TASKS_END_MS * 1000)
            return false;
        usleep(LOOK_AGAIN_US);
    }
    return true;
}

static int
carry_all(struct carry *c)
{
    struct coroutine *co;
    int err = 0;

    inode_table_each(c->from->graph->inodes, c->from, note_node, c);
    if (c->is_short)
        return -ENOMEM;
    if ((err = coroutine_new(coro_stacks(), carry_go, c, &co)))
        return err;
    read_section_begin();
    coroutine_resume(co);
    read_section_end();
    while (sem_wait(&c->done) < 0)
        ;
    return 0;
}

/* From here on tasks are of the new graph. */
static void
change_layer(struct carry *c)
{
    struct fuse_mount *m = c->m;
    struct inode *before = m->root;

    m->root = inode_root(c->to->graph->inodes);
    inode_unref(before);
    m->xl = c->to;
    __atomic_store_n(&c->from->private, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&c->to->private, m, __ATOMIC_RELEASE);
}

int
fuse_switch(struct graph *from, struct graph *to)
{
    struct carry c = {.m = mount_of(from->top), .from = from->top, .to = to->top};

    if (!device_pause(c.m))
        return -ENOTCONN;
    int err = tasks_end(c.m) ? 0 : -EBUSY;

    sem_init(&c.done, 0, 0);
    if (!err)
        err = carry_all(&c);
    if (!err)
        change_layer(&c);
    device_go_on(c.m);
    sem_destroy(&c.done);
    free(c.nodes);
    if (!err)
        log_event(LOG_INFO, to->top, "fuse-switched",
                  "%zu inodes and %u open files are in the new graph; %u files could not be opened, locks of "
                  "%u files are lost",
                  c.count, c.files, c.lost_files, c.locks);
    return err;
}
