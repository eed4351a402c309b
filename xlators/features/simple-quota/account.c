/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* account: how a change of one object changes the usage of its namespace. squota-internal.h describes the
 * idea.
 *
 * A change is permitted when limit >= usage + the reservations of running changes + the bytes that the change
 * itself may add. A write reserves at most the blocks that the file system may have to allot for it: none for
 * overwriting bytes of a file without holes. A write behind the file's end also reserves blocks that the file
 * system has allotted in between. At the end of the change the reservation is returned and the really
 * allotted bytes are charged. */
#include <errno.h>
#include <sys/stat.h>

#include "xlators/features/simple-quota/squota-internal.h"

enum {
    BLOCK = 4096,
    QUEUE_LOOK_AT = 1024,  /* queue length at which the objects are statted at once */
    /* after a change; XFS frees preallocated blocks at one of its next two scans, which run every 5 minutes
     */
    AHEAD_SECONDS = 700,
    /* time in which the kernel has written back dirty data and allotted index blocks for it */
    WRITTEN_SECONDS = 60,
    CLOSED_SECONDS = 3, /* after a change, or after the last fd was closed: in this time the blocks beyond the
                         * end of a file are freed, however few they are */
    LARGE = 1024 * 1024,   /* bytes: smaller files without holes rarely need index blocks */
    /* bytes: smaller files without holes need no index blocks, because XFS's inode has room for nine extents
     * beside the extended attributes */
    SMALL = 9 * BLOCK,
    AHEAD_MAX = 64 * 1024, /* bytes beyond a file's end that are tolerated while many files are queued */
    QUEUE_SHORT = QUEUE_LOOK_AT / 2, /* length of a queue that also keeps files which drift by a few blocks */
};

static uint32_t
squota_now_s(void)
{
    return (uint32_t)(clock_mono_ns() / 1000000000);
}

static int64_t
block_round_up(int64_t bytes)
{
    return (bytes + BLOCK - 1) / BLOCK * BLOCK;
}

/* True if the error says that no path leads to the object, so that nothing is charged for it. */
static bool
is_nowhere(int err)
{
    return err == -ENOENT || err == -ESTALE || err == -ENODATA;
}

/* ---- charging -------------------------------------------------------------------------------- */

/* While the namespace is being counted, its usage lacks the objects that were not counted yet. Counts this
 * object, whose charge is known, with the charge. Under the lock. */
static void
count_once(struct squota_inode *ctx)
{
    struct squota_ns *ns = ctx->ns;

    if (ns->walk && squota_walk_counts(ns->walk, &ctx->inode->gfid))
        ns->used += ctx->charge;
}

void
squota_count_busy(struct squota *q, const struct squota_ns *ns)
{
    struct squota_inode *ctx;

    cds_list_for_each_entry(ctx, &q->flyers, flyers_link) {
        if (ctx->ns == ns)
            count_once(ctx);
    }
    cds_list_for_each_entry(ctx, &q->queue, link) {
        if (ctx->ns == ns)
            count_once(ctx);
    }
}

void
squota_settle(struct squota *q, struct squota_inode *ctx, int64_t bytes)
{
    struct squota_ns *ns = ctx->ns;

    count_once(ctx);
    int64_t delta = bytes - ctx->charge;
    ns->used += delta;
    ns->floor += ns->walk ? delta : 0;
    if (delta)
        squota_wake(q);
    if (delta || ctx->slot)
        squota_state_settle(q->state, ns->record, squota_used(ns), ctx->slot, bytes);
    ctx->charge = bytes;
    ctx->is_known = true;
    squota_forget_ahead(ctx);
    if (S_ISREG(ctx->inode->type) && !ctx->is_allotted && bytes > block_round_up(ctx->size))
        ctx->ahead = bytes - block_round_up(ctx->size);
    ns->ahead += ctx->ahead;
    squota_shared_show(ns);
}

static void
settle_as(struct squota *q, struct squota_inode *ctx, const struct posix_allotted *found)
{
    ctx->size = found->is_file ? found->size : 0;
    squota_settle(q, ctx, found->bytes);
}

/* The bytes that an iatt shows: the blocks of a file up to its end. */
static int64_t
bytes_told(const struct iatt *a)
{
    int64_t bytes = (int64_t)a->blocks * 512;

    return S_ISREG(a->mode) ? block_round_up(bytes) : 0;
}

static void
give_slot(struct squota *q, struct squota_inode *ctx)
{
    if (ctx->flying > 0 || ctx->is_queued)
        return;
    squota_slot_give(q->state, ctx->slot);
    ctx->slot = 0;
}

static void
take_slot(struct squota *q, struct squota_inode *ctx)
{
    if (!ctx->slot)
        ctx->slot = squota_slot_take(q->state, ctx->ns->record, &ctx->inode->gfid, ctx->charge);
}

/* ---- the queue of objects to be statted ------------------------------------------------------ */

static void
post_job(struct squota *q)
{
    if (q->is_job_posted || q->is_stopping)
        return;
    q->is_job_posted = true;
    worker_post_any(&q->job);
}

/* Queues an object for a stat. Under the lock. */
static void
look_enqueue(struct squota *q, struct squota_inode *ctx)
{
    if (ctx->is_queued || ctx->ns->is_gone)
        return;
    count_once(ctx);
    ctx->is_queued = true;
    inode_ref(ctx->inode);
    cds_list_add_tail(&ctx->link, &q->queue);
    take_slot(q, ctx);
    if (++q->queued >= QUEUE_LOOK_AT)
        post_job(q);
    squota_wake(q);
}

void
squota_wake(struct squota *q)
{
    if (q->is_timer_set || q->is_stopping)
        return;
    q->is_timer_set = true;
    timer_start(&q->timer, 1000);
}

bool
squota_has_ahead(const struct posix_allotted *found)
{
    return found->is_file && found->bytes > block_round_up(found->size) + AHEAD_MAX;
}

/* True if the file system may change the file's blocks without a change by a client. An unlinked file is
 * freed with its last fd; blocks beyond a file's end are freed when it is closed, or minutes later; index
 * blocks are allotted when it is written back. A file with holes may have blocks beyond its end, too: fewer
 * than the holes lack, so its size does not show them. Under the lock. */
static bool
may_drift(const struct squota *q, const struct squota_inode *ctx, const struct posix_allotted *found)
{
    int64_t bytes = found->bytes, size = block_round_up(found->size);
    uint32_t age = squota_now_s() - ctx->changed_s;
    bool is_short = q->queued < QUEUE_SHORT;

    if (!found->is_file || bytes == 0)
        return false;
    if (!found->has_name)
        return true;
    if (age < CLOSED_SECONDS && bytes > size)
        return true;
    if (age < WRITTEN_SECONDS && (bytes > LARGE || bytes < size || (is_short && bytes > SMALL)))
        return true;
    return age < AHEAD_SECONDS && (squota_has_ahead(found) || (is_short && bytes != size));
}

/* Stats a queued object. Returns true if the object is off the queue; its reference is then the caller's. */
static bool
look_at_object(struct xlator *xl, struct squota_inode *ctx)
{
    struct squota *q = squota_of(xl);
    struct posix_allotted found;

    pthread_mutex_lock(&q->lock);
    unsigned begun = ctx->begun;
    bool is_flying = ctx->flying > 0;
    pthread_mutex_unlock(&q->lock);
    if (is_flying)
        return false;
    int err = squota_stat(xl, ctx->inode, &found);

    pthread_mutex_lock(&q->lock);
    bool is_settled = begun == ctx->begun && ctx->flying == 0 && (!err || is_nowhere(err));
    if (is_settled && ctx->ns && err)
        squota_settle(q, ctx, 0);
    else if (is_settled && ctx->ns)
        settle_as(q, ctx, &found);
    bool is_done = is_settled && (err || !ctx->ns || !may_drift(q, ctx, &found));
    if (is_done) {
        cds_list_del_init(&ctx->link);
        ctx->is_queued = false;
        q->queued--;
        give_slot(q, ctx);
    }
    pthread_mutex_unlock(&q->lock);
    return is_done;
}

/* An object whose blocks only may drift is statted every fifth second. */
static bool
look_is_due(const struct squota_inode *ctx, const struct squota_ns *ns, bool is_due_only)
{
    uint32_t age = squota_now_s() - ctx->changed_s;

    return (!ns || ctx->ns == ns) && (!is_due_only || age < 2 || age % 5 == 0);
}

void
squota_look(struct xlator *xl, const struct squota_ns *ns, bool is_due_only)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->look_lock);
    pthread_mutex_lock(&q->lock);
    /* Objects that are queued meanwhile wait for the next run. Only the holder of look_lock removes objects
     * from the queue. */
    unsigned count = q->queued;
    struct cds_list_head *at = q->queue.next;
    while (count-- > 0 && at != &q->queue) {
        struct squota_inode *ctx = caa_container_of(at, struct squota_inode, link);
        at = at->next;
        bool looks = look_is_due(ctx, ns, is_due_only);
        if (!looks)
            continue;
        pthread_mutex_unlock(&q->lock);
        struct inode *inode = ctx->inode;
        if (look_at_object(xl, ctx))
            inode_unref(inode);
        pthread_mutex_lock(&q->lock);
    }
    pthread_mutex_unlock(&q->lock);
    pthread_mutex_unlock(&q->look_lock);
}

void
squota_closed(struct xlator *xl, struct squota_inode *ctx)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    /* While a change runs, the charge may be older than the blocks that a stat has just seen. */
    bool has_ahead = ctx->is_known && (ctx->flying > 0 || ctx->charge > block_round_up(ctx->size));
    if (ctx->ns && has_ahead && !q->is_stopping) {
        ctx->changed_s = squota_now_s();
        look_enqueue(q, ctx);
    }
    pthread_mutex_unlock(&q->lock);
}

/* ---- a change -------------------------------------------------------------------------------- */

/* Bytes between the file's end and the range. */
static int64_t
bytes_skipped(const struct squota_inode *ctx, const struct squota_need *need)
{
    int64_t begin = need->offset > INT64_MAX ? INT64_MAX : (int64_t)(need->offset / BLOCK * BLOCK);
    int64_t size = block_round_up(ctx->size);

    return begin > size ? begin - size : 0;
}

/* The file system may have allotted blocks from the file's end on, which count only once they are inside of
 * the file. Returns the bytes of such blocks that the range leaves between the old end and itself. Running
 * changes have reserved their part. `on_disk`: bytes that the file has. Under the lock. */
static int64_t
bytes_enclosed(const struct squota_inode *ctx, const struct squota_need *need, int64_t on_disk)
{
    int64_t skipped = bytes_skipped(ctx, need), uncounted = on_disk - (ctx->charge - ctx->ahead);
    int64_t enclosed = (uncounted < skipped ? uncounted : skipped) - ctx->reserved;

    return enclosed > 0 ? enclosed : 0;
}

/* The number of bytes of the range's blocks that the file does not have yet, judging by its size. Under the
 * lock. */
static int64_t
bytes_of_range(const struct squota_inode *ctx, const struct squota_need *need)
{
    bool ends = need->offset + need->bytes <= INT64_MAX - BLOCK && need->bytes <= INT64_MAX - BLOCK;
    int64_t end = ends ? block_round_up((int64_t)(need->offset + need->bytes)) : INT64_MAX;
    int64_t whole = end - (int64_t)(need->offset / BLOCK * BLOCK);
    int64_t size = block_round_up(ctx->size), has = ctx->is_allotted ? ctx->charge : size;
    bool is_dense = ctx->charge >= size && (int64_t)need->offset <= size;
    int64_t grows = end > has ? end - has : 0;

    return is_dense && grows < whole ? grows : whole;
}

/* True if the change stays below the limit. Under the lock. */
static bool
fits(const struct squota *q, const struct squota_ns *ns, int64_t needs)
{
    /* Blocks that the file system allotted ahead will be freed, so they do not count. A write into them
     * reserves its own need. */
    int64_t used = squota_used(ns), total = used - ns->ahead;

    if (needs <= 0 || ns->limit <= 0 || q->is_check_off)
        return true;
    total += ns->reserved;
    if (needs > ns->limit || total > ns->limit - needs)
        return false;
    if (!ns->shared)
        return ns->others <= ns->limit - needs - total;
    if (squota_shared_put(ns->shared, ns->cell, total + needs) <= ns->limit - ns->remote)
        return true;
    squota_shared_show(ns);
    return false;
}

struct beginning {
    const struct squota_need *need;
    bool is_checked;
    bool is_in; /* the object is in a namespace */
    int64_t on_disk; /* bytes that the object has; < 0: unknown */
    int64_t reserved;
};

/* Stats the object. Determines its charge at its first change, unless a concurrent change has done it. The
 * usage has the blocks of each object with a name already. It lacks those of an open file that was removed
 * before the layer was switched on: no walk meets the file, so the stat after the change charges its
 * blocks. */
static int
charge_learn(struct xlator *xl, struct squota_inode *ctx, int64_t *on_disk)
{
    struct squota *q = squota_of(xl);
    struct posix_allotted found;
    int err = squota_stat(xl, ctx->inode, &found);

    if (err)
        return err;
    *on_disk = found.bytes;
    pthread_mutex_lock(&q->lock);
    if (!ctx->is_known) {
        ctx->is_known = true;
        ctx->charge = ctx->made = found.has_name ? found.bytes : 0;
        ctx->size = found.is_file ? found.size : 0;
    }
    pthread_mutex_unlock(&q->lock);
    return 0;
}

/* Registers a running change. Under the lock. */
static void
change_register(struct squota *q, struct squota_inode *ctx, int64_t needs)
{
    count_once(ctx);
    take_slot(q, ctx);
    if (ctx->flying++ == 0)
        cds_list_add_tail(&ctx->flyers_link, &q->flyers);
    else
        ctx->has_overlapped = true;
    ctx->begun++;
    ctx->changed_s = squota_now_s();
    ctx->reserved += needs;
    ctx->ns->reserved += needs;
    squota_shared_show(ctx->ns);
}

/* True if the need depends on blocks beyond the file's end, which only a stat shows. Under the lock. */
static bool
needs_stat(const struct squota_inode *ctx, const struct beginning *b)
{
    return b->is_checked && b->on_disk < 0 && ctx->ns->limit > 0 && b->need && b->need->bytes > 0 &&
           bytes_skipped(ctx, b->need) > 0;
}

/* The number of bytes that the change may add. Under the lock. */
static int64_t
bytes_needed(const struct squota_inode *ctx, const struct beginning *b)
{
    if (!b->need || b->need->bytes == 0)
        return b->need ? b->need->fixed : 0;
    int64_t range = bytes_of_range(ctx, b->need);
    int64_t enclosed = b->on_disk >= 0 ? bytes_enclosed(ctx, b->need, b->on_disk) : 0;

    return range < INT64_MAX - enclosed ? range + enclosed : INT64_MAX;
}

/* Returns 0: begun, or in no namespace. -EAGAIN: the object needs a stat before. -EDQUOT. */
static int
try_begin(struct squota *q, struct squota_inode *ctx, struct beginning *b)
{
    int err = 0;

    pthread_mutex_lock(&q->lock);
    b->is_in = ctx->ns && !ctx->ns->is_gone;
    if (b->is_in && (!ctx->is_known || needs_stat(ctx, b))) {
        err = -EAGAIN;
    } else if (b->is_in) {
        ctx->is_allotted |= b->need && b->need->allots;
        b->reserved = bytes_needed(ctx, b);
        if (b->is_checked && !fits(q, ctx->ns, b->reserved))
            err = -EDQUOT;
        else
            change_register(q, ctx, b->reserved);
    }
    pthread_mutex_unlock(&q->lock);
    return err;
}

struct squota_inode *
squota_begin(struct xlator *xl, const struct call_stack *stk, struct inode *inode, struct inode *parent,
             const struct squota_need *need, int64_t *reserved, int *err)
{
    struct squota *q = squota_of(xl);
    struct squota_inode *ctx = squota_inode_get(xl, inode, parent, err);
    struct beginning b = {.need = need, .is_checked = squota_is_checked(&stk->caller), .on_disk = -1};

    *reserved = 0;
    if (*err == 0)
        *err = try_begin(q, ctx, &b);
    for (int i = 0; i < 3 && *err == -EAGAIN; i++) {
        *err = charge_learn(xl, ctx, &b.on_disk);
        if (*err == 0)
            *err = try_begin(q, ctx, &b);
    }
    if (*err == -EDQUOT) {
        squota_look(xl, ctx->ns, false);
        *err = try_begin(q, ctx, &b);
    }
    bool is_begun = *err == 0 && b.is_in;
    if (is_nowhere(*err))
        *err = 0;
    *reserved = is_begun ? b.reserved : 0;
    return is_begun ? ctx : NULL;
}

/* Charges the figures of the reply until the next stat: a file that has grown has at least the blocks up to
 * its end, and a file that has shrunk has lost those beyond, as far as a reply can show. Replies of changes
 * that ran at once arrive in any order, so a smaller file may be an old figure. Such a reply only raises the
 * charge, because a lower charge would let the next change pass the limit. */
static void
charge_told(struct squota *q, struct squota_inode *ctx, const struct iatt *after)
{
    int64_t told = bytes_told(after), size = (int64_t)after->size;

    if (!S_ISREG(after->mode))
        return;
    bool shrinks = size < ctx->size && !ctx->has_overlapped;
    if (size > ctx->size || shrinks)
        ctx->size = size;
    squota_settle(q, ctx, told > ctx->charge || shrinks ? told : ctx->charge);
}

void
squota_end(struct xlator *xl, struct squota_inode *ctx, enum squota_after what, const struct iatt *after,
           int64_t reserved)
{
    struct squota *q = squota_of(xl);

    if (!ctx)
        return;
    pthread_mutex_lock(&q->lock);
    ctx->reserved -= reserved;
    if (ctx->ns) {
        ctx->ns->reserved -= reserved;
        if (what == SQUOTA_CHANGED)
            charge_told(q, ctx, after);
        else if (what == SQUOTA_GONE)
            squota_settle(q, ctx, 0);
        if (what == SQUOTA_CHANGED || what == SQUOTA_UNSURE)
            look_enqueue(q, ctx);
        squota_shared_show(ctx->ns);
    }
    if (--ctx->flying == 0) {
        cds_list_del_init(&ctx->flyers_link);
        ctx->has_overlapped = false;
    }
    give_slot(q, ctx);
    pthread_mutex_unlock(&q->lock);
}

/* ---- new objects ----------------------------------------------------------------------------- */

unsigned
squota_expect(struct xlator *xl, struct squota_inode *parent, const struct gfid *gfid)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    unsigned slot = squota_slot_take(q->state, parent->ns->record, gfid, 0);
    pthread_mutex_unlock(&q->lock);
    return slot;
}

void
squota_made(struct xlator *xl, struct squota_inode *parent, unsigned slot, const struct iatt *after)
{
    struct squota *q = squota_of(xl);
    struct inode *inode = after ? inode_link(xl->graph->inodes, NULL, NULL, after) : NULL;
    struct squota_inode *ctx = inode ? squota_inode_ctx(xl, inode) : NULL;
    struct posix_allotted found = {.bytes = 0};
    int err = inode ? squota_stat(xl, inode, &found) : 0;

    pthread_mutex_lock(&q->lock);
    struct squota_ns *ns = parent->ns;
    if (ctx && !ctx->is_known && !ctx->flying && !ctx->is_queued) {
        ctx->ns = ns;
        ctx->generation = parent->generation;
        ctx->charge = 0;
        ctx->slot = slot;
        squota_settle(q, ctx, err ? 0 : found.bytes);
        ctx->slot = 0;
        ctx->changed_s = squota_now_s();
    } else if (after) {
        /* Another client's change of the new object came before this reply and took the object's first size
         * for charged. */
        bool is_known = ctx && ctx->is_known;
        int64_t bytes = is_known ? ctx->made : found.bytes;
        ns->floor += ns->walk ? bytes : 0;
        if (!ns->walk)
            ns->used += bytes;
        else if (squota_walk_counts(ns->walk, &after->gfid))
            ns->used += is_known ? ctx->charge : bytes;
        squota_state_settle(q->state, ns->record, squota_used(ns), slot, bytes);
        squota_wake(q);
    }
    squota_slot_give(q->state, slot);
    pthread_mutex_unlock(&q->lock);
    inode_unref(inode);
}

/* Charges the object to another namespace from now on. `to` NULL: to none. Under the lock. */
static void
move_to(struct squota *q, struct squota_inode *ctx, struct squota_ns *to)
{
    int64_t charge = ctx->charge;

    if (ctx->ns) {
        if (ctx->is_known)
            squota_settle(q, ctx, 0);
        ctx->ns->reserved -= ctx->reserved;
    }
    squota_slot_give(q->state, ctx->slot);
    ctx->slot = 0;
    ctx->ns = to;
    ctx->charge = 0;
    ctx->generation = q->generation;
    if (to) {
        to->reserved += ctx->reserved;
        if (ctx->is_queued || ctx->flying)
            take_slot(q, ctx);
        if (ctx->is_known)
            squota_settle(q, ctx, charge);
    }
}

void
squota_count(struct xlator *xl, struct squota_ns *ns, struct inode *inode)
{
    struct squota *q = squota_of(xl);
    struct squota_inode *ctx = squota_inode_ctx(xl, inode);
    struct posix_allotted found;

    if (!ctx)
        return;
    pthread_mutex_lock(&q->lock);
    /* A folder was marked since then, and may be above the object. */
    if (ctx->generation != q->generation && (ctx->is_queued || ctx->flying)) {
        if (ctx->ns != ns)
            move_to(q, ctx, ns);
        ctx->generation = q->generation;
    } else if (ctx->generation != q->generation) {
        squota_forget_ahead(ctx);
        ctx->ns = ns;
        ctx->generation = q->generation;
        ctx->is_known = false;
    }
    bool counts = ctx->ns == ns && ns->walk && !squota_walk_has_counted(ns->walk, &inode->gfid);
    bool learns = counts && !ctx->is_known;
    pthread_mutex_unlock(&q->lock);
    int64_t on_disk;
    int err = learns ? charge_learn(xl, ctx, &on_disk) : 0;
    if (!counts || is_nowhere(err))
        return;
    pthread_mutex_lock(&q->lock);
    bool is_counted = ctx->ns == ns && ns->walk;
    if (is_counted && !ctx->is_known) { /* its stat is repeated until the disk answers */
        ctx->is_known = true;
        ctx->charge = ctx->made = 0;
    }
    if (is_counted)
        change_register(q, ctx, 0);
    unsigned begun = ctx->begun;
    pthread_mutex_unlock(&q->lock);
    if (!is_counted)
        return;
    err = squota_stat(xl, inode, &found);
    pthread_mutex_lock(&q->lock);
    bool is_alone = begun == ctx->begun && ctx->flying == 1 && err == 0;
    if (is_alone && ctx->ns)
        settle_as(q, ctx, &found);
    bool is_final = is_alone && !may_drift(q, ctx, &found);
    pthread_mutex_unlock(&q->lock);
    squota_end(xl, ctx, is_final ? SQUOTA_AS_WAS : SQUOTA_UNSURE, NULL, 0);
}

void
squota_watch(struct xlator *xl, struct inode *inode, int64_t charged)
{
    struct squota *q = squota_of(xl);
    struct call_stack *stk = squota_call(FOP_stat);
    int64_t reserved;
    int err;

    if (!stk)
        return;
    struct squota_inode *ctx = squota_inode_get(xl, inode, NULL, &err);
    pthread_mutex_lock(&q->lock);
    if (!err && ctx->ns && !ctx->is_known) {
        ctx->is_known = true;
        ctx->charge = ctx->made = charged;
    }
    pthread_mutex_unlock(&q->lock);
    ctx = squota_begin(xl, stk, inode, NULL, NULL, &reserved, &err);
    call_stack_free(stk);
    squota_end(xl, ctx, SQUOTA_UNSURE, NULL, reserved);
}

void
squota_moved(struct xlator *xl, struct squota_inode *ctx, struct squota_ns *to)
{
    struct squota *q = squota_of(xl);

    pthread_mutex_lock(&q->lock);
    move_to(q, ctx, to);
    pthread_mutex_unlock(&q->lock);
}
