/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A mount in the hands of a newer program of the same process (mount/upgrade.h). The old program:
 *
 *      fuse_freeze_begin()  the device is not read any more: new requests wait in the kernel
 *      fuse_freeze_look()   1  running requests end; the bricks end the waits for locks (EINTR), and such
 *                              requests are kept as the kernel has sent them
 *                           2  layers write out what they have answered early
 *                           3  layers give back the locks that they keep for the next call, until no call
 *                              is under way in the graph
 *                           4  the connections rest: the mount can be saved
 *      fuse_thaw()          everything goes on, and the kept requests run again
 *
 * The new program:
 *
 *      fuse_restore()       keeps the state for the graph's start, which mounts nothing
 *      fuse_go_on()         makes the nodes and files, reads the device, and runs the kept requests
 *
 * The kernel keeps numbers of nodes and files. The new program finds an old number in a sorted array, because
 * the set of old numbers never grows. An object without an open file is looked up when a request first uses
 * the object, so the time of fuse_go_on() depends on the number of open files alone.
 *
 * A file that cannot be opened again answers each request but its close with EBADFD. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/read-section.h"
#include "event/timer.h"
#include "log/log.h"
#include "xlators/mount/fuse/fuse.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/protocol/client/saved.h"

enum { AGAIN_MS = 20, CALLED_OFF_MAX = 64, OPENING_WIDTH = 32, REST_LOOKS = 2 };
enum { NODE_HAS_PRIVS = 1, NODE_HAS_HAD_LOCKS = 2 };

/* ---- the old program: freezing --------------------------------------------------------------- */

enum stage { STAGE_TASKS, STAGE_WRITE_OUT, STAGE_CALLS, STAGE_CONNECTIONS };

struct saving {
    struct fuse_mount *m;
    struct graph *graph;
    enum stage stage;
    uint64_t again_ns; /* time of the next attempt to hurry others */
    unsigned rests;
    atomic_int users; /* this file's functions, and the coroutine that writes out */
    atomic_bool has_written_out;
    int err; /* of the coroutine; read after has_written_out */
};

static void
saving_put(struct saving *s)
{
    if (atomic_fetch_sub(&s->users, 1) == 1)
        free(s);
}

static bool
has_older_files(struct fuse_mount *m)
{
    const struct graph *now = m->xl->graph;
    const struct fuse_file *f;
    bool has = false;

    pthread_mutex_lock(&m->lock);
    cds_list_for_each_entry (f, &m->files, link)
        has |= (!f->is_lost && fd_graph(f->fd) != now) || f->listing;
    pthread_mutex_unlock(&m->lock);
    return has;
}

int
fuse_freeze_begin(struct graph *g)
{
    struct fuse_mount *m = mount_of(g->top);

    if (!m || has_older_files(m))
        return m ? -EBUSY : -ENOTCONN;
    struct saving *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->m = m;
    s->graph = g;
    atomic_init(&s->users, 1);
    if (!device_pause(m)) {
        free(s);
        return -ENOTCONN;
    }
    atomic_store(&m->saving, s);
    return 0;
}

/* Has the bricks end the waits for locks. */
static void
call_off_waits(struct fuse_mount *m)
{
    struct task *asking[CALLED_OFF_MAX];
    struct lock_wait *w;
    unsigned count = 0;

    pthread_mutex_lock(&m->lock); /* keeps the waiting tasks */
    cds_list_for_each_entry (w, &m->lock_waits, link) {
        struct task *t = w->bytes && count < CALLED_OFF_MAX ? lock_call_off(w->task) : NULL;

        w->is_called_off |= t != NULL;
        if (t)
            asking[count++] = t;
    }
    pthread_mutex_unlock(&m->lock);
    read_section_begin();
    while (count)
        task_start(asking[--count]);
    read_section_end();
}

static bool
tasks_are_gone(struct fuse_mount *m)
{
    pthread_mutex_lock(&m->lock);
    bool are_gone = cds_list_empty(&m->lock_waits) && atomic_load(&m->running) == 0;

    pthread_mutex_unlock(&m->lock);
    return are_gone;
}

static struct call_stack *
saving_call(enum fop fop, struct inode *inode, struct fd *fd)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->call.fop = fop;
    stk->call.loc.inode = inode_ref(inode);
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    return stk;
}

/* Returns 0 or -errno of writes that were answered before. */
static int
write_out_file(struct saving *s, struct fd *fd)
{
    struct call_stack *stk = saving_call(FOP_flush, fd->inode, fd);

    if (!stk)
        return -ENOMEM;
    stk->call.hint.kind = HINT_FLUSH_OF_MOUNT;
    int ret = coro_call(stk, s->m->xl);

    call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* Layers that keep a file's size or pieces in xattrs cannot find these without a name. */
static int
must_have_name(struct saving *s, struct inode *inode)
{
    struct call_stack *stk = saving_call(FOP_lookup, inode, NULL);

    if (!stk)
        return -ENOMEM;
    int ret = coro_call(stk, s->m->xl);

    call_stack_free(stk);
    if (ret != -ENOENT && ret != -ESTALE)
        return 0;
    log_event(LOG_WARNING, s->m->xl, "fuse-save-nameless",
              "%s is open and was removed: a sharded or dispersed volume cannot open it again",
              GFID(&inode->gfid));
    return -EOPNOTSUPP;
}

static bool
needs_names(const struct graph *g)
{
    bool needs = false;

    for (unsigned i = 0; i < g->layer_count; i++)
        needs |= (g->layers[i].type->traits & LAYER_OPENS_BY_NAME) != 0;
    return needs;
}

static bool
answers_early(const struct xlator *xl)
{
    while (!(xl->type->traits & LAYER_ANSWERS_EARLY) && xl->child_count == 1)
        xl = xl->children[0];
    return xl->type->traits & LAYER_ANSWERS_EARLY;
}

static void
write_out_go(void *arg)
{
    struct saving *s = arg;
    struct fuse_file *f;
    bool is_early = answers_early(s->m->xl), names = needs_names(s->graph);

    /* no request runs, so the list stays */
    cds_list_for_each_entry (f, &s->m->files, link) {
        bool is_file = !f->is_lost && !f->fd->is_dir;
        bool may_owe = is_file && is_early && (f->fd->flags & O_ACCMODE) != O_RDONLY;
        int err = may_owe ? write_out_file(s, f->fd) : 0;

        if (err)
            atomic_store(&f->err, err); /* the file's next write, fsync or close reports the error */
        if (is_file && names && !s->err)
            s->err = must_have_name(s, f->fd->inode);
    }
    struct graph *g = s->graph;

    atomic_store(&s->has_written_out, true);
    saving_put(s);
    graph_unpin(g);
}

static int
begin_to_write_out(struct saving *s)
{
    struct coroutine *co;
    int err = graph_pin(s->graph) ? coroutine_new(coro_stacks(), write_out_go, s, &co) : -ENOTCONN;

    if (err) {
        if (err != -ENOTCONN)
            graph_unpin(s->graph);
        return err;
    }
    atomic_fetch_add(&s->users, 1);
    read_section_begin();
    coroutine_resume(co);
    read_section_end();
    return 0;
}

static void
hurry_inode(struct inode *inode, void *ctx, void *arg)
{
    struct xlator *xl = arg;
    char domain[256];

    (void)ctx;
    snprintf(domain, sizeof domain, "%s:metadata", xl->name);
    struct layer_event e = {.kind = EVENT_CONTENDED, .gfid = &inode->gfid, .domain = xl->name};

    (void)xl->type->event(xl, &e);
    e.domain = domain;
    (void)xl->type->event(xl, &e);
}

/* As if another client waited for each lock that a layer keeps for its next call. */
static void
hurry_holds(struct graph *g)
{
    read_section_begin();
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        if (xl->type->event && xl->slot[CTX_INODE])
            inode_table_each(g->inodes, xl, hurry_inode, xl);
    }
    read_section_end();
}

static bool
is_time(struct saving *s)
{
    uint64_t now = clock_mono_ns();

    if (now < s->again_ns)
        return false;
    s->again_ns = now + AGAIN_MS * 1000000ull;
    return true;
}

static int
look_at_stage(struct saving *s)
{
    switch (s->stage) {
    case STAGE_TASKS:
        if (tasks_are_gone(s->m)) {
            s->stage = STAGE_WRITE_OUT;
            return begin_to_write_out(s);
        }
        if (is_time(s))
            call_off_waits(s->m);
        return 0;
    case STAGE_WRITE_OUT:
        if (!atomic_load(&s->has_written_out))
            return 0;
        s->stage = STAGE_CALLS;
        s->again_ns = 0;
        return s->err;
    case STAGE_CALLS:
        if (atomic_load(&s->graph->pins) == 1) {
            clients_pause(s->graph, true);
            s->stage = STAGE_CONNECTIONS;
        } else if (is_time(s)) {
            hurry_holds(s->graph);
        }
        return 0;
    case STAGE_CONNECTIONS:
        s->rests = clients_rest(s->graph) ? s->rests + 1 : 0;
        return s->rests >= REST_LOOKS;
    }
    return -EINVAL;
}

int
fuse_freeze_look(struct graph *g)
{
    struct saving *s = atomic_load(&mount_of(g->top)->saving);
    enum stage before;
    int result;

    do {
        before = s->stage;
        result = look_at_stage(s);
    } while (!result && s->stage != before);
    return result;
}

const char *
fuse_freeze_obstacle(struct graph *g)
{
    const struct saving *s = atomic_load(&mount_of(g->top)->saving);
    static const char *const words[] = {
        [STAGE_TASKS] = "a request has not ended",
        [STAGE_WRITE_OUT] = "written data has not reached the bricks",
        [STAGE_CALLS] = "a call to a brick, a heal or a lock of this mount has not ended",
        [STAGE_CONNECTIONS] = "a brick's connection does not come to rest"};

    return words[s->stage];
}

static void
run_withdrawn(struct fuse_mount *m)
{
    struct parcel all;
    size_t bytes;

    pthread_mutex_lock(&m->lock);
    all = m->withdrawn;
    m->withdrawn = (struct parcel){0};
    pthread_mutex_unlock(&m->lock);
    read_section_begin();
    while (!all.is_broken && all.at < all.used) {
        const void *request = parcel_get_bytes(&all, &bytes);

        if (bytes)
            device_replay(m, (char *)(uintptr_t)request, bytes);
    }
    read_section_end();
    parcel_free(&all);
}

void
fuse_thaw(struct graph *g)
{
    struct fuse_mount *m = mount_of(g->top);
    struct saving *s = atomic_exchange(&m->saving, NULL);

    if (s->stage == STAGE_CONNECTIONS)
        clients_pause(g, false);
    saving_put(s);
    device_go_on(m);
    run_withdrawn(m);
}

/* ---- the old program: saving ----------------------------------------------------------------- */

struct save_nodes {
    struct fuse_mount *m;
    struct parcel nodes, files;
    uint32_t node_count, file_count;
    struct fd **fds; /* lent, in the order of the files */
    uint32_t room;
    bool is_short;
};

static void
fuse_save_file(struct save_nodes *s, struct fuse_file *f)
{
    if (s->file_count == s->room) {
        uint32_t room = s->room ? 2 * s->room : 64;
        struct fd **more = reallocarray(s->fds, room, sizeof *more);

        if (!more) {
            s->is_short = true;
            return;
        }
        s->fds = more;
        s->room = room;
    }
    s->fds[s->file_count++] = f->is_lost ? NULL : f->fd;
    parcel_put_u64(&s->files, f->number);
    parcel_put_u32(&s->files, s->node_count);
    parcel_put_u32(&s->files, f->fd->flags);
    parcel_put_u32(&s->files, f->fd->is_dir);
    parcel_put_u32(&s->files, f->is_lost);
    parcel_put_u32(&s->files, f->is_in_list);
    parcel_put_u64(&s->files, atomic_load(&f->end));
    parcel_put_u32(&s->files, (uint32_t)atomic_load(&f->err));
}

static void
fuse_save_node(struct inode *inode, void *ctx, void *arg)
{
    struct save_nodes *s = arg;
    struct fuse_node *node = ctx;
    struct fuse_file *f;

    if (!atomic_load(&node->lookups) && cds_list_empty(&node->files))
        return;
    parcel_put_u64(&s->nodes, inode == s->m->root ? FUSE_ROOT_ID : node->number);
    parcel_put_bytes(&s->nodes, &inode->gfid, sizeof inode->gfid);
    parcel_put_u32(&s->nodes, inode_type(inode));
    parcel_put_u64(&s->nodes, atomic_load(&node->lookups));
    parcel_put_u32(&s->nodes, (atomic_load(&node->has_privs) ? NODE_HAS_PRIVS : 0u) |
                                  (atomic_load(&node->has_had_locks) ? NODE_HAS_HAD_LOCKS : 0u));
    cds_list_for_each_entry (f, &node->files, node_link)
        fuse_save_file(s, f);
    s->node_count++;
}

int
fuse_save(struct graph *g, struct parcel *to)
{
    struct fuse_mount *m = mount_of(g->top);
    struct save_nodes s = {.m = m};

    parcel_put_u32(to, (uint32_t)m->device.fd);
    parcel_put_u64(to, m->mounted_as.device);
    parcel_put_bytes(to, m->init, m->init_bytes);
    inode_table_each(g->inodes, m->xl, fuse_save_node, &s);
    parcel_put_u32(to, s.node_count);
    parcel_put_bytes(to, s.nodes.bytes, s.nodes.used);
    parcel_put_u32(to, s.file_count);
    parcel_put_bytes(to, s.files.bytes, s.files.used);
    parcel_put_bytes(to, m->withdrawn.bytes, m->withdrawn.used);
    bool is_short = s.is_short || s.nodes.is_broken || s.files.is_broken;
    int err = is_short ? -ENOMEM : clients_save(g, s.fds, s.file_count, to);

    parcel_free(&s.nodes);
    parcel_free(&s.files);
    free(s.fds);
    return err ? err : to->is_broken ? -ENOMEM : 0;
}

int
fuse_keep_open(struct graph *g, bool keeps)
{
    int fd = mount_of(g->top)->device.fd, err = fcntl(fd, F_SETFD, keeps ? 0 : FD_CLOEXEC) ? -errno : 0;
    int err2 = clients_keep_open(g, keeps);

    return err ? err : err2;
}

/* ---- the new program ------------------------------------------------------------------------- */

struct saved_node {
    uint64_t number;
    struct fuse_node *node; /* NULL: not made; the root's is not in the table */
    struct gfid gfid;
    uint32_t type, bits;
    uint64_t lookups;
};

struct saved_file {
    uint64_t number;
    struct fuse_file *file;
    uint32_t node; /* index into by_order */
    uint32_t flags;
    bool is_dir, is_lost, is_in_list;
    uint64_t end;
    int err;
};

/* An array in the saved order, and the same entries sorted by number. */
struct restored {
    int device;
    struct saved_node *nodes, **nodes_sorted;
    struct saved_file *files, **files_sorted;
    size_t node_count, file_count;
    atomic_uint lost;
};

void
restored_free(struct fuse_mount *m)
{
    struct restored *r = m->restored;

    if (!r)
        return;
    free(r->nodes);
    free(r->nodes_sorted);
    free(r->files);
    free(r->files_sorted);
    free(r);
    m->restored = NULL;
}

int
restored_device(struct fuse_mount *m)
{
    return m->restored ? m->restored->device : -ENOENT;
}

static int
compare_nodes(const void *a, const void *b)
{
    const struct saved_node *x = *(struct saved_node *const *)a, *y = *(struct saved_node *const *)b;

    return x->number < y->number ? -1 : x->number > y->number;
}

static int
compare_files(const void *a, const void *b)
{
    const struct saved_file *x = *(struct saved_file *const *)a, *y = *(struct saved_file *const *)b;

    return x->number < y->number ? -1 : x->number > y->number;
}

struct fuse_node *
restored_node(const struct fuse_mount *m, uint64_t number)
{
    const struct saved_node key = {.number = number}, *at = &key;
    struct saved_node **found = bsearch(&at, m->restored->nodes_sorted, m->restored->node_count, sizeof at,
                                        compare_nodes);

    return (*found)->node; /* the kernel passes only numbers that the kernel got */
}

struct fuse_file *
restored_file(const struct fuse_mount *m, uint64_t number)
{
    const struct saved_file key = {.number = number}, *at = &key;
    struct saved_file **found = bsearch(&at, m->restored->files_sorted, m->restored->file_count, sizeof at,
                                        compare_files);

    return (*found)->file;
}

static void
read_nodes(struct restored *r, struct parcel *from)
{
    for (size_t i = 0; i < r->node_count; i++) {
        struct saved_node *n = r->nodes_sorted[i] = &r->nodes[i];

        n->number = parcel_get_u64(from);
        parcel_get_exactly(from, &n->gfid, sizeof n->gfid);
        n->type = parcel_get_u32(from);
        n->lookups = parcel_get_u64(from);
        n->bits = parcel_get_u32(from);
    }
}

static void
read_files(struct restored *r, struct parcel *from)
{
    for (size_t i = 0; i < r->file_count; i++) {
        struct saved_file *f = r->files_sorted[i] = &r->files[i];

        f->number = parcel_get_u64(from);
        f->node = parcel_get_u32(from);
        f->flags = parcel_get_u32(from);
        f->is_dir = parcel_get_u32(from);
        f->is_lost = parcel_get_u32(from);
        f->is_in_list = parcel_get_u32(from);
        f->end = parcel_get_u64(from);
        f->err = (int)parcel_get_u32(from);
        from->is_broken |= f->node >= r->node_count;
    }
}

/* A piece of a parcel, as a parcel to read; lent. */
static struct parcel
piece_of(struct parcel *from)
{
    size_t bytes;
    const void *at = parcel_get_bytes(from, &bytes);

    return (struct parcel){.bytes = (char *)(uintptr_t)at, .used = bytes, .room = bytes};
}

/* Makes the arrays. The counts are not larger than the pieces. */
static int
read_restored(struct restored *r, struct parcel *from)
{
    r->node_count = parcel_get_u32(from);
    struct parcel nodes = piece_of(from);

    r->file_count = parcel_get_u32(from);
    struct parcel files = piece_of(from);

    if (from->is_broken || r->node_count > nodes.used || r->file_count > files.used)
        return -EBADMSG;
    r->nodes = calloc(r->node_count + 1, sizeof *r->nodes);
    r->nodes_sorted = calloc(r->node_count + 1, sizeof *r->nodes_sorted);
    r->files = calloc(r->file_count + 1, sizeof *r->files);
    r->files_sorted = calloc(r->file_count + 1, sizeof *r->files_sorted);
    if (!r->nodes || !r->nodes_sorted || !r->files || !r->files_sorted)
        return -ENOMEM;
    read_nodes(r, &nodes);
    read_files(r, &files);
    if (nodes.is_broken || files.is_broken)
        return -EBADMSG;
    qsort(r->nodes_sorted, r->node_count, sizeof *r->nodes_sorted, compare_nodes);
    qsort(r->files_sorted, r->file_count, sizeof *r->files_sorted, compare_files);
    return 0;
}

int
fuse_restore(struct graph *g, struct parcel *from)
{
    struct fuse_mount *m = mount_of(g->top);
    struct restored *r = calloc(1, sizeof *r);
    size_t bytes;

    if (!m || !r) {
        free(r);
        return m ? -ENOMEM : -EINVAL;
    }
    m->restored = r;
    r->device = (int)parcel_get_u32(from);
    m->mounted_as.device = parcel_get_u64(from);
    const void *init = parcel_get_bytes(from, &bytes);

    if (from->is_broken || bytes > sizeof m->init)
        return -EBADMSG;
    if (bytes)
        memcpy(m->init, init, bytes);
    m->init_bytes = bytes;
    int err = read_restored(r, from);
    if (err)
        return err;
    const void *withdrawn = parcel_get_bytes(from, &bytes);

    parcel_put_raw(&m->withdrawn, withdrawn, bytes);
    if (from->is_broken || m->withdrawn.is_broken || fcntl(r->device, F_SETFD, FD_CLOEXEC))
        return -EBADMSG;
    return clients_restore(g, from);
}

/* Makes the nodes that the kernel knows. `inodes` keeps a reference to each inode. */
static int
make_nodes(struct fuse_mount *m, struct inode **inodes)
{
    struct restored *r = m->restored;

    for (size_t i = 0; i < r->node_count; i++) {
        struct saved_node *n = &r->nodes[i];
        const struct iatt a = {.gfid = n->gfid, .mode = n->type};
        bool is_root = n->number == FUSE_ROOT_ID;

        inodes[i] = is_root ? inode_ref(m->root) : inode_link(m->xl->graph->inodes, NULL, NULL, &a);
        struct fuse_node *node = inodes[i] ? node_of(m, inodes[i]) : NULL;

        if (!node)
            return -ENOMEM;
        n->node = node;
        node->number = n->number;
        atomic_store(&node->is_unseen, true);
        atomic_store(&node->has_privs, n->bits & NODE_HAS_PRIVS);
        atomic_store(&node->has_had_locks, n->bits & NODE_HAS_HAD_LOCKS);
        atomic_store(&node->lookups, n->lookups);
        if (n->lookups)
            inode_ref(inodes[i]);
    }
    return 0;
}

/* Looks the object up in the layers below. After a failure that may pass, as while bricks are away, the next
 * request looks the object up again. `pid` stands for a file: protocol/client/saved.h. */
static int
lookup_saved(struct fuse_mount *m, struct inode *inode, int32_t pid)
{
    struct call_stack *stk = saving_call(FOP_lookup, inode, NULL);

    if (!stk)
        return -ENOMEM;
    stk->caller.pid = pid;
    int ret = coro_call(stk, m->xl);
    struct fuse_node *node = inode_ctx(inode, m->xl);

    if (node && (ret >= 0 || ret == -ENOENT || ret == -ESTALE))
        atomic_store(&node->is_unseen, false);
    call_stack_free(stk);
    return ret;
}

static struct fd *
open_saved(struct fuse_mount *m, const struct saved_file *f, struct inode *inode, int32_t pid)
{
    struct call_stack *stk = saving_call(f->is_dir ? FOP_opendir : FOP_open, inode, NULL);
    struct fd *fd = NULL;
    int ret = -ENOMEM;

    if (stk) {
        stk->caller.pid = pid;
        stk->call.flags = f->flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC);
        ret = coro_call(stk, m->xl);
        if (ret >= 0) {
            fd = stk->reply.fd;
            stk->reply.fd = NULL;
        }
        call_stack_free(stk);
    }
    if (!fd)
        log_event(LOG_ERROR, m->xl, "fuse-file-lost", "%s cannot be opened again: %s", GFID(&inode->gfid),
                  strerror(-ret));
    return fd;
}

struct reopening {
    struct fuse_mount *m;
    struct inode **inodes;
    bool is_short;
    sem_t done;
};

static void
reopen_file(void *arg, size_t i)
{
    struct reopening *o = arg;
    struct restored *r = o->m->restored;
    struct saved_file *f = &r->files[i];
    struct saved_node *n = &r->nodes[f->node];
    struct inode *inode = o->inodes[f->node];
    int32_t pid = (int32_t)i + 1;
    int ret = f->is_lost ? -EBADFD : lookup_saved(o->m, inode, 0);

    if (ret == -ENOENT || ret == -ESTALE)
        ret = lookup_saved(o->m, inode, pid);
    struct fd *fd = f->is_lost ? NULL : open_saved(o->m, f, inode, pid);
    bool is_lost = !fd;

    if (is_lost)
        fd = fd_new_anonymous(inode, NULL);
    f->file = fd ? file_new(o->m, n->node, fd) : NULL;
    if (!f->file) {
        fd_unref(fd);
        o->is_short = true;
        return;
    }
    if (is_lost)
        atomic_fetch_add(&r->lost, 1);
    f->file->number = f->number;
    f->file->is_lost = is_lost;
    f->file->is_in_list = f->is_in_list;
    atomic_store(&f->file->end, f->end);
    atomic_store(&f->file->err, f->err);
}

static void
reopen_go(void *arg)
{
    struct reopening *o = arg;

    (void)lookup_saved(o->m, o->m->root, 0);
    coro_each(OPENING_WIDTH, o->m->restored->file_count, reopen_file, o);
    sem_post(&o->done);
}

static int
reopen_files(struct fuse_mount *m, struct inode **inodes)
{
    struct reopening o = {.m = m, .inodes = inodes};
    struct coroutine *co;
    int err = coroutine_new(coro_stacks(), reopen_go, &o, &co);

    if (err)
        return err;
    sem_init(&o.done, 0, 0);
    read_section_begin();
    coroutine_resume(co);
    read_section_end();
    while (sem_wait(&o.done) < 0)
        ;
    sem_destroy(&o.done);
    return o.is_short ? -ENOMEM : 0;
}

int
fuse_go_on(struct graph *g)
{
    struct fuse_mount *m = mount_of(g->top);
    struct restored *r = m->restored;
    struct inode **inodes = calloc(r->node_count + 1, sizeof *inodes);
    int err = inodes ? make_nodes(m, inodes) : -ENOMEM;

    if (!err)
        err = reopen_files(m, inodes);
    for (size_t i = 0; inodes && i < r->node_count; i++)
        inode_unref(inodes[i]);
    free(inodes);
    if (err)
        return err;
    clients_restored(g);
    read_section_begin();
    device_replay_init(m);
    read_section_end();
    device_begin(m);
    run_withdrawn(m);
    log_event(LOG_INFO, m->xl, "fuse-restored",
              "%zu inodes and %zu open files of the earlier program; %u are lost", r->node_count,
              r->file_count, atomic_load(&r->lost));
    return 0;
}

static void
lookup_unseen_inode(struct fuse_mount *m, struct inode *inode)
{
    struct fuse_node *node = inode ? inode_ctx(inode, m->xl) : NULL;

    if (!node || !atomic_load(&node->is_unseen))
        return;
    (void)lookup_saved(m, inode, 0); /* a failure is that of the task, too */
}

void
task_see(struct task *t)
{
    struct fuse_mount *m = t->m;

    if (t->xl != m->xl)
        return; /* a file of an older graph */
    lookup_unseen_inode(m, t->stk->call.loc.inode);
    lookup_unseen_inode(m, t->stk->call.loc.parent);
    lookup_unseen_inode(m, t->stk->call.loc2.parent);
    lookup_unseen_inode(m, t->stk->call.loc2.inode);
}
