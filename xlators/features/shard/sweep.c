/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The sweep: removes the shards of removed files, in the background. Every client sweeps, for all clients:
 * when it has connected to its subvolumes and when a lost subvolume returns, after each removal of a file,
 * when a removed file is closed here, and every ten minutes. A sweep that had to leave a marker is repeated
 * after a second, then after longer and longer times.
 *
 * For each marker in /.shard/.remove_me:
 *
 *   1. ENTRYLK on its name, without waiting: another client has it, so it is left
 *   2. LOOKUP of the base file by its gfid. It is there, with a name: go to 5
 *   3. LOOKUP with `unlinked-lookup`. It is there, without a name: a client has it open, so the marker is
 *   left.
 *      Any other error than "missing" in 2 and 3 leaves the marker, too
 *   4. UNLINK of the shards: those of the size that the marker has, and further ones. Writers that had the
 *   file
 *      open after its removal, and calls that failed, have perhaps left shards behind that size. (Stock's
 *      clients leave them for ever.) Right after a removal by this mount of a file that no client had open
 *      there can be none but those of failed calls of dead clients, which follow the others closely: blocks
 *      are tried until SHARD_PROBES in a row are missing. In all other cases a listing of /.shard shows them
 *   5. UNLINK of the marker     6. unlock
 *
 * Deaths: a client that dies here leaves the marker as long as a shard may be left, and the brick drops the
 * lock. The next sweep of any client begins the marker anew; a shard that is gone already is no error. */
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/features/shard/shard-internal.h"

enum { SHARD_SOON_MS = 1000, SHARD_LATE_MS = 600000, SHARD_PROBES = 4, SHARD_XATTROP_SET = 4 };

/* ---- markers --------------------------------------------------------------------------------- */

static struct call_stack *
shard_marker_xattrs(struct call_stack *stk, uint64_t size, uint64_t block_size)
{
    uint8_t block[SHARD_BLOCK_SIZE_BYTES], bytes[SHARD_SIZE_BYTES];

    shard_write_block_size(block, block_size);
    shard_write_size(bytes, size, 0);
    stk = shard_call_put_bytes(stk, DICT_KEY_SHARD_BLOCK_SIZE, block, sizeof block);
    return shard_call_put_bytes(stk, DICT_KEY_SHARD_FILE_SIZE, bytes, sizeof bytes);
}

static int
shard_marker_renew(const struct shard_op *o, struct inode *markers, const char *name, uint64_t size,
                   uint64_t block_size)
{
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_lookup), markers, name);
    int ret = shard_call(o, stk);
    struct inode *marker =
        ret < 0 ? NULL : inode_link(o->s->xl->graph->inodes, markers, name, &stk->reply.stat);

    if (stk)
        call_stack_free(stk);
    if (!marker)
        return ret < 0 ? ret : -ENOMEM;
    stk =
        shard_marker_xattrs(shard_call_inode(shard_call_internal(o, FOP_xattrop), marker), size, block_size);
    if (stk) {
        stk->call.dict = stk->call.xdata;
        stk->call.xdata = NULL;
        stk->call.flags = SHARD_XATTROP_SET;
    }
    ret = shard_call_once(o, stk);
    inode_unref(marker);
    return ret < 0 ? ret : 0;
}

int
shard_marker_make(const struct shard_op *o, struct inode *markers, uint64_t size, uint64_t block_size)
{
    const char *name = GFID(&o->base->gfid);
    struct call_stack *stk = shard_call_name(shard_call_internal(o, FOP_mknod), markers, name);
    struct gfid gfid;

    gfid_random(&gfid);
    stk = shard_marker_xattrs(shard_call_put_gfid(stk, DICT_KEY_GFID_REQ, &gfid), size, block_size);
    if (stk && dict_set_int(stk->call.xdata, DICT_KEY_INTERNAL_FOP, 1)) {
        call_stack_free(stk);
        stk = NULL;
    }
    if (stk) {
        stk->call.mode = S_IFREG;
        stk->caller.time_flags |= stk->caller.time_flags ? TIME_CTIME | TIME_MTIME | TIME_ATIME : 0;
    }
    int ret = shard_call_once(o, stk);

    if (ret == -EEXIST)
        ret = shard_marker_renew(o, markers, name, size, block_size);
    return ret < 0 ? ret : 0;
}

/* ---- one marker ------------------------------------------------------------------------------ */

struct shard_sweep_op {
    struct shard_op o;
    struct inode *markers;
    unsigned left; /* markers that must be looked at again */
};

/* Returns 0: the object of this gfid is there; -ENOENT; another -errno. */
static int
shard_gfid_look(const struct shard_op *o, struct inode *inode, bool is_unlinked)
{
    struct call_stack *stk = shard_call_inode(shard_call_internal(o, FOP_lookup), inode);

    if (is_unlinked)
        stk = shard_call_put_uint(stk, DICT_KEY_UNLINKED_LOOKUP, 1);
    int ret = shard_call_once(o, stk);

    return shard_is_missing(ret) ? -ENOENT : ret < 0 ? ret : 0;
}

/* Returns 0: has a name; -ENOENT: is gone; -EBUSY: is open, or that is not known. */
static int
shard_base_state(const struct shard_op *o, struct inode *inode)
{
    int err = shard_gfid_look(o, inode, false);

    if (err != -ENOENT)
        return err ? -EBUSY : 0;
    if (atomic_load(&inode->open_fds))
        return -EBUSY;
    return shard_gfid_look(o, inode, true) == -ENOENT ? -ENOENT : -EBUSY;
}

/* Reads the marker's xattrs. */
static int
shard_marker_read(const struct shard_sweep_op *w, const char *name, uint64_t *size, uint64_t *block_size)
{
    struct call_stack *stk =
        shard_call_ask(shard_call_name(shard_call_internal(&w->o, FOP_lookup), w->markers, name));
    int ret = shard_call(&w->o, stk);
    uint64_t blocks;

    if (ret >= 0 && (!shard_read_block_size(w->o.s, stk->reply.xdata, block_size) ||
                     !shard_read_size(stk->reply.xdata, size, &blocks)))
        ret = -ENODATA;
    if (stk)
        call_stack_free(stk);
    return ret < 0 ? ret : 0;
}

/* Removes blocks from `n` on, until some in a row are missing. */
static int
shard_probe(const struct shard_op *o, const struct gfid *gfid, uint64_t n)
{
    struct inode *dir;
    int err = shard_dir(o, false, &dir);

    for (unsigned missing = 0; !err && missing < SHARD_PROBES; n++) {
        char name[SHARD_NAME_MAX];
        uint64_t before = atomic_load(&o->s->swept);

        shard_block_name(name, gfid, n);
        err = shard_block_remove(o, dir, name, NULL);
        missing = atomic_load(&o->s->swept) == before ? missing + 1 : 0;
    }
    inode_unref(dir);
    return err == -ENOENT ? 0 : err;
}

/* Removes the shards of the marker. */
static int
shard_marker_serve(const struct shard_sweep_op *w, const char *name, struct inode *base, bool is_certain)
{
    const struct shard_op *o = &w->o;
    uint64_t size = 0, block_size = 1, count = 0;
    int err = shard_marker_read(w, name, &size, &block_size);

    if (!err)
        count = size ? (size - 1) / block_size : 0; /* shards, without block 0 */
    if (err == -ENODATA) { /* a marker without values: the listing tells */
        is_certain = false;
        err = 0;
    }
    if (!err && count)
        err = shard_blocks_remove(o, &base->gfid, 1, count, NULL);
    if (!err)
        err = is_certain ? shard_probe(o, &base->gfid, count + 1)
                         : shard_blocks_remove_listed(o, &base->gfid, 1, NULL);
    return err;
}

/* Returns whether this mount has removed the file, and no call has left shards of the file behind. */
static bool
shard_is_certain(const struct shard *s, struct inode *inode)
{
    struct shard_file *f = shard_file_known(s, inode);

    if (!f)
        return false;
    pthread_mutex_lock(&f->lock);
    bool is = f->is_unlinked && !f->has_strays;
    pthread_mutex_unlock(&f->lock);
    return is;
}

static void
shard_is_uncertain(const struct shard *s, struct inode *inode)
{
    struct shard_file *f = shard_file_known(s, inode);

    if (!f)
        return;
    pthread_mutex_lock(&f->lock);
    f->has_strays = true;
    pthread_mutex_unlock(&f->lock);
}

/* With the marker's lock. Returns 0: the marker is gone; -EBUSY: left for later; another -errno. */
static int
shard_marker_locked(const struct shard_sweep_op *w, const char *name, struct inode *base)
{
    int err = shard_base_state(&w->o, base);

    if (err == -EBUSY)
        shard_is_uncertain(w->o.s, base);
    if (err == -ENOENT)
        err = shard_marker_serve(w, name, base, shard_is_certain(w->o.s, base));
    return err || atomic_load(&w->o.s->is_stopping) ? err ? err : -EBUSY
                                                    : shard_block_remove(&w->o, w->markers, name, NULL);
}

static int
shard_marker_sweep(const struct shard_sweep_op *w, const char *name, struct inode *base)
{
    const struct shard_op *o = &w->o;
    uint8_t owner[8];

    shard_owner_new(owner);
    struct call_stack *unlock = shard_entrylk(o, w->markers, name, owner, SHARD_LOCK_DROP);
    int err =
        unlock ? shard_call_once(o, shard_entrylk(o, w->markers, name, owner, SHARD_LOCK_TRY)) : -ENOMEM;

    if (err < 0) {
        if (unlock)
            call_stack_free(unlock);
        return err;
    }
    err = shard_marker_locked(w, name, base);
    shard_call_forget(o, unlock);
    return err;
}

static int
shard_sweep_name(const struct shard_op *o, const char *name, void *arg)
{
    struct shard_sweep_op *w = arg;
    struct iatt a = {.mode = S_IFREG};

    if (atomic_load(&o->s->is_stopping) ||
        atomic_load_explicit(&o->s->xl->children[0]->is_degraded, memory_order_relaxed)) {
        w->left++;
        return -ENOTCONN; /* a base file that a lost brick has would seem to be gone */
    }
    if (gfid_parse(name, strlen(name), &a.gfid) || gfid_is_null(&a.gfid))
        return 0; /* no marker */
    struct inode *base = inode_link(o->s->xl->graph->inodes, NULL, NULL, &a);
    int err = base ? shard_marker_sweep(w, name, base) : -ENOMEM;

    inode_unref(base);
    if (err)
        w->left++;
    if (err && err != -EBUSY && err != -EAGAIN && err != -ENOTCONN)
        log_event(LOG_WARNING, o->s->xl, "shard-sweep-failed",
                  "%s: %s: the shards of this removed file stay until a later try", name, strerror(-err));
    return 0;
}

/* ---- the sweep ------------------------------------------------------------------------------- */

static unsigned
shard_sweep_once(struct shard *s, struct call_stack *stk)
{
    struct shard_sweep_op w = {.o = {.s = s, .stk = stk}};
    int err = shard_markers(&w.o, false, &w.markers);

    if (err)
        return err == -ENOENT ? 0 : 1;
    err = shard_dir_walk(&w.o, w.markers, shard_sweep_name, &w);
    inode_unref(w.markers);
    return err ? w.left + 1 : w.left;
}

/* Returns whether the sweep must begin again; else it is over. */
static bool
shard_sweep_wanted(struct shard *s)
{
    pthread_mutex_lock(&s->lock);
    bool again = s->wants_sweep && !atomic_load(&s->is_stopping);

    s->wants_sweep = false;
    s->is_sweeping = again;
    pthread_mutex_unlock(&s->lock);
    return again;
}

/* The graph is pinned. `stk` only carries the caller and an arena. */
static void
shard_sweep_go(void *arg)
{
    struct shard *s = arg;
    struct graph *g = s->xl->graph;
    unsigned left = 0;

    do {
        struct call_stack *stk = coro_call_new();

        left = stk ? shard_sweep_once(s, stk) : 1;
        if (stk)
            call_stack_free(stk);
    } while (shard_sweep_wanted(s));
    if (!left)
        atomic_store(&s->again_ms, SHARD_LATE_MS);
    shard_sweep_later(s);
    graph_unpin(g);
}

static bool
shard_sweep_begins(struct shard *s)
{
    pthread_mutex_lock(&s->lock);
    bool begins = !s->is_sweeping && !atomic_load(&s->is_stopping) && graph_pin(s->xl->graph);

    s->wants_sweep |= s->is_sweeping;
    s->is_sweeping |= begins;
    pthread_mutex_unlock(&s->lock);
    return begins;
}

static void
shard_sweep_run(struct shard *s)
{
    if (!shard_sweep_begins(s) || !coro_run(shard_sweep_go, s))
        return;
    pthread_mutex_lock(&s->lock);
    s->is_sweeping = false;
    pthread_mutex_unlock(&s->lock);
    shard_sweep_later(s);
    graph_unpin(s->xl->graph);
}

static void
shard_sweep_job(struct worker_job *job)
{
    struct shard *s = caa_container_of(job, struct shard, job);
    struct graph *g = s->xl->graph;

    atomic_store(&s->is_posted, false);
    shard_sweep_run(s);
    graph_unpin(g);
}

/* The job begins after the caller has returned, and so after the brick has been told of a closed file. */
static void
shard_sweep_post(struct shard *s)
{
    if (atomic_load(&s->is_stopping) || atomic_exchange(&s->is_posted, true))
        return;
    if (graph_pin(s->xl->graph))
        worker_post(&s->job);
    else
        atomic_store(&s->is_posted, false);
}

static void
shard_sweep_due(struct timer *t)
{
    shard_sweep_post(caa_container_of(t, struct shard, again));
}

void
shard_sweep(struct shard *s)
{
    atomic_store(&s->again_ms, SHARD_SOON_MS);
    shard_sweep_post(s);
}

void
shard_sweep_later(struct shard *s)
{
    unsigned ms = atomic_load(&s->again_ms);

    atomic_store(&s->again_ms, ms * 2 < SHARD_LATE_MS ? ms * 2 : SHARD_LATE_MS);
    if (!atomic_load(&s->is_stopping))
        timer_start(&s->again, ms);
}

void
shard_sweep_init(struct shard *s)
{
    timer_init(&s->again, shard_sweep_due);
    s->job.run = shard_sweep_job;
    atomic_store(&s->again_ms, SHARD_SOON_MS);
}

void
shard_sweep_stop(struct shard *s)
{
    atomic_store(&s->is_stopping, true);
    timer_stop(&s->again);
}
