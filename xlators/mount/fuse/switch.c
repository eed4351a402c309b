/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Replacement of the graph below a mount point while files are open, after the volume's bricks or layers
 * changed:
 *
 *      device                          paused: requests of the kernel wait there
 *      running tasks                   end. Tasks that wait for locks are left: such a task gets ENOTCONN
 * when
 *                                      the old graph ends, and repeats the request in the new graph
 *                                      (task_follow)
 *      each node's inode, by gfid      looked up in the new graph, so that the new layers know the inode
 *      each open file                  flushed, opened in the new graph; the bricks move the locks to the new
 *                                      fd
 *      the mount's layer               replaced; the device is read again
 *
 * The kernel holds addresses of nodes and files, which stay. A file that cannot be opened again (without a
 * name, or with bricks that are down) stays with the old graph. So does an unfinished listing, because the
 * cookies are valid in that graph only. Requests for such files and listings go to the old graph. The old
 * graph and the connections stay until the last such file is closed (fuse_keeps).
 *
 * Locks are moved by trusted.glusterfs.lockinfo: the value read from the old fd is set on the new fd, and
 * each brick moves the locks atomically. A brick that is not in the old graph, or has lost the connection to
 * the old graph, knows no locks to move. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/read-section.h"
#include "data/dict.h"
#include "log/log.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"

enum { TASKS_END_MS = 10000, LOOK_AGAIN_US = 5000 };

/* A node that the kernel knows, or that has open files. */
struct carried {
    struct fuse_node *node;
    struct inode *inode; /* in the new graph; a reference */
};

struct carry {
    struct fuse_mount *m;
    struct xlator *from, *to; /* mount/fuse of both graphs */
    struct carried *nodes;
    size_t count, room;
    unsigned files, kept, locks, lost_locks;
    bool is_short;
    sem_t done;
};

/* ---- collecting nodes ------------------------------------------------------------------------ */

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
        struct carried *more = reallocarray(c->nodes, room, sizeof *more);

        if (!more) {
            c->is_short = true;
            return;
        }
        c->nodes = more;
        c->room = room;
    }
    c->nodes[c->count++] = (struct carried){.node = node};
}

/* ---- moving to the new graph, in a coroutine ------------------------------------------------- */

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

/* Looks the inode up in the new graph, because layers keep data with the inode. A failure is ignored: later
 * calls fail in the same way. */
static void
lookup_in_new_graph(struct carry *c, struct inode *inode)
{
    struct call_stack *stk = call_new(FOP_lookup, inode);

    if (!stk)
        return;
    (void)coro_call(stk, c->to);
    call_stack_free(stk);
}

/* Opens the file in the new graph. NULL: the file cannot be opened in that graph. */
static struct fd *
open_again(struct carry *c, const struct fd *old, struct inode *inode)
{
    struct call_stack *stk = call_new(old->is_dir ? FOP_opendir : FOP_open, inode);
    struct fd *fd = NULL;
    int ret = -ENOMEM;

    if (stk) {
        stk->call.flags = old->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
        ret = coro_call(stk, c->to);
        if (ret >= 0) {
            fd = stk->reply.fd;
            stk->reply.fd = NULL;
        }
        call_stack_free(stk);
    }
    if (!fd)
        log_event(LOG_INFO, c->to, "fuse-file-kept", "%s cannot be opened in the new graph: %s",
                  GFID(&inode->gfid), strerror(-ret));
    return fd;
}

static struct call_stack *
call_on(enum fop fop, struct fd *fd)
{
    struct call_stack *stk = call_new(fop, fd->inode);

    if (stk)
        stk->call.fd = fd_ref(fd);
    return stk;
}

/* Flushes writes that were answered early. Returns -errno if a write has failed, and the failure was not
 * reported yet. */
static int
end_early_answers(struct carry *c, struct fd *old)
{
    const struct xlator *xl = c->from;
    struct call_stack *stk;
    int ret = -ENOMEM;

    while (!(xl->type->traits & LAYER_ANSWERS_EARLY) && xl->child_count == 1)
        xl = xl->children[0];
    if (!(xl->type->traits & LAYER_ANSWERS_EARLY))
        return 0;
    if ((stk = call_on(FOP_flush, old))) {
        stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
        ret = coro_call(stk, c->from);
        call_stack_free(stk);
    }
    return ret < 0 ? ret : 0;
}

/* Writes delayed data to the brick before another graph reads the file. The file's next write, fsync or
 * close reports an error. */
static void
write_out(struct carry *c, struct fuse_file *f)
{
    struct fd *old = f->fd;
    struct call_stack *stk = NULL;
    int err = 0, ret = 0;

    if (!old->is_dir && (old->flags & O_ACCMODE) != O_RDONLY) {
        err = end_early_answers(c, old);
        if ((stk = call_on(FOP_fsync, old)))
            ret = coro_call(stk, c->from);
    }
    if (err)
        atomic_store(&f->err, err);
    if (ret < 0 && ret != -ENOTCONN) /* the bricks are gone: the writers have already got errors */
        log_event(LOG_WARNING, c->from, "fuse-switch-fsync",
                  "delayed data of file %s could not be written: %s", GFID(&old->inode->gfid),
                  strerror(-ret));
    if (stk)
        call_stack_free(stk);
}

/* Sets the old fd's lock info on `to`. Returns 1: there were locks to move; 0; or -errno. */
static int
give_locks(struct carry *c, const struct call_stack *said, struct fd *to)
{
    const struct dict_pair *p = dict_find(said->reply.dict, DICT_KEY_LOCKINFO);
    struct call_stack *stk = p ? call_on(FOP_fsetxattr, to) : NULL;

    if (!stk)
        return p ? -ENOMEM : 0;
    stk->call.dict = dict_new(&stk->arena);
    int ret = !stk->call.dict || dict_set_bytes(stk->call.dict, DICT_KEY_LOCKINFO, p->v.bytes, p->len)
                  ? -ENOMEM
                  : coro_call(stk, c->to);

    call_stack_free(stk);
    return ret < 0 ? ret : 1;
}

/* Returns 1: locks were moved; 0: the bricks know none; or -errno. */
static int
move_locks_of_fd(struct carry *c, struct fd *from, struct fd *to)
{
    struct call_stack *stk = call_on(FOP_fgetxattr, from);

    if (!stk)
        return -ENOMEM;
    stk->call.name = "trusted.glusterfs.lockinfo";
    stk->call.has_name = 1;
    int ret = coro_call(stk, c->from);

    if (ret >= 0)
        ret = give_locks(c, stk, to);
    call_stack_free(stk);
    return ret;
}

/* Keeps the old fd for an unfinished listing. */
static void
keep_list(struct carry *c, struct fuse_file *f)
{
    if (!f->fd->is_dir || !f->is_in_list || f->listing)
        return;
    f->listing = fd_ref(f->fd);
    c->kept++;
}

static void
carry_file(struct carry *c, struct fuse_node *node, struct fuse_file *f, struct inode *inode)
{
    write_out(c, f);
    struct fd *fd = open_again(c, f->fd, inode);
    int moved = 0;

    if (!fd) {
        atomic_fetch_add(&node->kept, 1);
        c->kept++;
        return;
    }
    if (atomic_load(&node->has_had_locks) && !f->fd->is_dir)
        moved = move_locks_of_fd(c, f->fd, fd);
    if (moved < 0)
        log_event(LOG_WARNING, c->to, "fuse-locks-lost", "cannot move the locks of %s: %s",
                  GFID(&inode->gfid), strerror(-moved));
    keep_list(c, f);
    fd_unref(f->fd);
    f->fd = fd;
    c->files++;
    c->locks += moved > 0;
    c->lost_locks += moved < 0;
}

static void
carry_files(struct carry *c, struct fuse_node *node, struct inode *inode)
{
    struct fuse_file *f;

    cds_list_for_each_entry (f, &node->files, node_link) {
        if (fd_graph(f->fd) == c->from->graph) /* else the file stayed with an earlier graph */
            carry_file(c, node, f, inode);
    }
}

static struct inode *
same_inode(struct carry *c, const struct inode *old)
{
    const struct iatt a = {.gfid = old->gfid, .mode = old->type};

    return old == c->m->root ? inode_root(c->to->graph->inodes)
                             : inode_link(c->to->graph->inodes, NULL, NULL, &a);
}

/* Makes the new inodes of all nodes before the first node moves: a node that stayed behind would point into a
 * graph that is freed. Returns false if out of memory. */
static bool
make_new_inodes(struct carry *c)
{
    for (size_t i = 0; i < c->count; i++) {
        c->nodes[i].inode = same_inode(c, c->nodes[i].node->inode);
        if (!c->nodes[i].inode)
            return false;
    }
    return true;
}

static void
drop_new_inodes(struct carry *c)
{
    for (size_t i = 0; i < c->count; i++) {
        inode_unref(c->nodes[i].inode);
        c->nodes[i].inode = NULL;
    }
}

/* Moves the kernel's references to the new inode. Tasks drop references to the old inode when the tasks
 * end. */
static void
carry_node(struct carry *c, struct fuse_node *node, struct inode *inode)
{
    struct inode *old = node->inode;

    lookup_in_new_graph(c, inode);
    carry_files(c, node, inode);
    (void)inode_ctx_install(inode, c->to, node);
    inode_ctx_take_away(old, c->from);
    node->inode = inode;
    if (atomic_load(&node->lookups)) {
        inode_ref(inode);
        inode_unref(old);
    }
}

static void
carry_go(void *arg)
{
    struct carry *c = arg;
    struct inode *root = inode_root(c->to->graph->inodes);

    lookup_in_new_graph(c, root);
    inode_unref(root);
    for (size_t i = 0; i < c->count; i++)
        carry_node(c, c->nodes[i].node, c->nodes[i].inode);
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
    if (c->is_short || !make_new_inodes(c))
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

/* Makes later tasks use the new graph. */
static void
change_layer(struct carry *c)
{
    struct fuse_mount *m = c->m;
    struct inode *before = m->root;

    m->root = inode_root(c->to->graph->inodes);
    inode_unref(before);
    m->xl = c->to;
    meta_forget(m);
    __atomic_store_n(&c->from->private, NULL, __ATOMIC_RELEASE);
    __atomic_store_n(&c->to->private, m, __ATOMIC_RELEASE);
}

int
fuse_switch(struct graph *from, struct graph *to)
{
    struct carry c = {.m = mount_of(from->top), .from = from->top, .to = to->top};

    if (!device_pause(c.m))
        return -ENOTCONN;
    tasks_hold_back(c.m);
    int err = tasks_end(c.m) ? 0 : -EBUSY;

    sem_init(&c.done, 0, 0);
    if (!err)
        err = carry_all(&c);
    if (!err) {
        change_layer(&c);
        /* threads that handle invalidations may still use the old graph's mount and nodes */
        read_sections_wait();
    }
    drop_new_inodes(&c);
    tasks_go_on(c.m);
    device_go_on(c.m);
    sem_destroy(&c.done);
    free(c.nodes);
    if (!err)
        log_event(LOG_INFO, to->top, "fuse-switched",
                  "%zu inodes and %u open files are in the new graph, with locks of %u; %u stay with the old "
                  "one, locks of %u could not be moved",
                  c.count, c.files, c.locks, c.kept, c.lost_locks);
    return err;
}
