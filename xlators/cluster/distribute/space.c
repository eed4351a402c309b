/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Size and free space of subvolumes.
 *
 * A subvolume is asked when it comes up, so that the first layouts take free space into account.
 *
 * STATFS of the volume is the sum over all replies, in blocks of the largest block size. The data about
 * each subvolume is refreshed at most once a second, when a name is created, without waiting. Only the
 * first layout, whose ranges are proportional to the subvolumes' sizes, waits for the reply. */
#include <errno.h>

#include "event/timer.h"
#include "xlators/cluster/distribute/distribute-internal.h"

enum { ASK_AGAIN_NS = 1000000000, MIB = 1 << 20 };

/* ---- known sizes ----------------------------------------------------------------------------- */

static void
space_store(struct dist *d, unsigned i, const struct statvfs *v)
{
    struct dist_child *c = &d->child[i];
    uint64_t unit = v->f_frsize ? v->f_frsize : v->f_bsize;

    pthread_mutex_lock(&d->lock);
    c->bytes_total = (uint64_t)v->f_blocks * unit;
    c->bytes_free = (uint64_t)v->f_bavail * unit;
    c->inodes_total = v->f_files;
    c->inodes_free = v->f_ffree;
    c->space_is_known = true;
    pthread_mutex_unlock(&d->lock);
}

/* Returns a percentage, rounded down; 100 if the whole is 0. */
static uint64_t
percent(uint64_t part, uint64_t whole)
{
    return whole ? (uint64_t)((double)part * 100.0 / (double)whole) : 100;
}

static bool
is_short_locked(const struct dist_conf *conf, const struct dist_child *c)
{
    bool is_percent = conf->min_free_disk < 100;
    uint64_t has = is_percent ? percent(c->bytes_free, c->bytes_total) : c->bytes_free;

    return c->space_is_known && (has < conf->min_free_disk ||
                                 percent(c->inodes_free, c->inodes_total) < (uint64_t)conf->min_free_inodes);
}

bool
space_is_short(struct dist *d, unsigned i)
{
    pthread_mutex_lock(&d->lock);
    bool is = is_short_locked(dist_conf(d), &d->child[i]);

    pthread_mutex_unlock(&d->lock);
    return is;
}

bool
space_has_room(struct dist *d, unsigned i, uint64_t bytes)
{
    pthread_mutex_lock(&d->lock);
    struct dist_child after = d->child[i];

    pthread_mutex_unlock(&d->lock);
    after.bytes_free = after.bytes_free > bytes ? after.bytes_free - bytes : 0;
    return !is_short_locked(dist_conf(d), &after);
}

uint64_t
space_used_inodes(struct dist *d, unsigned i)
{
    const struct dist_child *c = &d->child[i];

    pthread_mutex_lock(&d->lock);
    uint64_t used = c->inodes_total > c->inodes_free ? c->inodes_total - c->inodes_free : 0;

    pthread_mutex_unlock(&d->lock);
    return used;
}

unsigned
space_best(struct dist *d, const struct layout *l, unsigned hashed)
{
    const struct dist_conf *conf = dist_conf(d);
    uint64_t most = 0;
    unsigned best = hashed;
    bool must_move = child_is_leaving(d, hashed);

    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < d->count; i++) {
        const struct dist_child *c = &d->child[i];

        if (l->of[i].err || !child_is_up(d, i) || child_is_leaving(d, i))
            continue;
        if (must_move && best == hashed) /* even a full subvolume, or one of unknown space */
            best = i;
        if (!c->space_is_known || is_short_locked(conf, c))
            continue;
        if (c->bytes_free > most) {
            most = c->bytes_free;
            best = i;
        }
    }
    pthread_mutex_unlock(&d->lock);
    return best;
}

/* ---- refreshing ------------------------------------------------------------------------------ */

static void
statfs_done(struct call_stack *stk)
{
    struct dist_child *c = stk->owner;
    struct dist *d = c->xl->parent->private;
    struct graph *g = d->xl->graph;

    if (stk->reply.op_ret >= 0)
        space_store(d, (unsigned)(c - d->child), &stk->reply.statvfs);
    call_stack_free(stk);
    graph_unpin(g);
}

void
space_ask_one(struct dist *d, unsigned i)
{
    struct call_stack *stk;

    if (!child_is_up(d, i) || !graph_pin(d->xl->graph))
        return;
    stk = call_stack_new(statfs_done, &d->child[i]);
    if (stk) {
        stk->call.fop = FOP_statfs;
        stk->call.loc.inode = inode_root(d->xl->graph->inodes);
        stk = dist_call_put_int(stk, DICT_KEY_IGNORE_DEEM_STATFS, 1);
    }
    if (stk)
        call_stack_wind(stk, d->child[i].xl);
    else
        graph_unpin(d->xl->graph);
}

void
space_ask(struct dist *d)
{
    uint64_t now = clock_mono_ns(), asked = atomic_load(&d->space_asked_ns);

    if (asked && now - asked < ASK_AGAIN_NS)
        return;
    if (!atomic_compare_exchange_strong(&d->space_asked_ns, &asked, now))
        return;
    for (unsigned i = 0; i < d->count; i++)
        space_ask_one(d, i);
}

/* ---- weights for layouts --------------------------------------------------------------------- */

static bool
is_space_known(struct dist *d, unsigned i)
{
    pthread_mutex_lock(&d->lock);
    bool known = d->child[i].space_is_known;

    pthread_mutex_unlock(&d->lock);
    return known;
}

/* Asks subvolumes of unknown size, and waits. */
static int
ask_missing(const struct op *o)
{
    struct inode *root = inode_root(o->d->xl->graph->inodes);
    struct fan fan;
    int err = dist_fan_begin(&fan, o);

    for (unsigned i = 0; i < fan.count; i++) {
        if (!is_space_known(o->d, i))
            dist_fan_add(&fan, i,
                    dist_call_put_int(dist_call_for_inode(dist_call_new_internal(o, FOP_statfs), root),
                                 DICT_KEY_IGNORE_DEEM_STATFS, 1));
    }
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        if (dist_fan_result(&fan, i) >= 0)
            space_store(o->d, i, &fan.call[i]->reply.statvfs);
    }
    dist_fan_end(&fan);
    inode_unref(root);
    return err;
}

/* The weights are sizes in MiB if the sizes of all live subvolumes are known; else all weights are equal. */
uint32_t *
space_weights(const struct op *o)
{
    struct dist *d = o->d;
    uint32_t *w = arena_alloc(&o->stk->arena, d->count * sizeof *w);
    bool all_known = dist_conf(d)->weighs;

    if (!w || (all_known && ask_missing(o)))
        return NULL;
    pthread_mutex_lock(&d->lock);
    for (unsigned i = 0; i < d->count; i++) {
        const struct dist_child *c = &d->child[i];

        all_known &= c->space_is_known || !child_is_up(d, i);
        w[i] = (uint32_t)((c->bytes_total + MIB - 1) / MIB);
    }
    pthread_mutex_unlock(&d->lock);
    for (unsigned i = 0; i < d->count; i++)
        w[i] = all_known ? w[i] : 1;
    return w;
}

/* ---- STATFS ---------------------------------------------------------------------------------- */

static void
add_statvfs(struct statvfs *sum, const struct statvfs *one)
{
    unsigned long largest = one->f_frsize > sum->f_frsize ? one->f_frsize : sum->f_frsize;
    double was = largest ? (double)sum->f_frsize / (double)largest : 1;
    double more = largest ? (double)one->f_frsize / (double)largest : 1;

    sum->f_blocks = (fsblkcnt_t)((double)sum->f_blocks * was + (double)one->f_blocks * more);
    sum->f_bfree = (fsblkcnt_t)((double)sum->f_bfree * was + (double)one->f_bfree * more);
    sum->f_bavail = (fsblkcnt_t)((double)sum->f_bavail * was + (double)one->f_bavail * more);
    sum->f_files += one->f_files;
    sum->f_ffree += one->f_ffree;
    sum->f_favail += one->f_favail;
    sum->f_frsize = largest;
    sum->f_bsize = one->f_bsize > sum->f_bsize ? one->f_bsize : sum->f_bsize;
    sum->f_namemax = one->f_namemax;
    sum->f_flag = one->f_flag;
    sum->f_fsid = one->f_fsid;
}

/* Returns whether a quota makes each subvolume answer for the whole volume; then the fullest counts. */
static bool
is_quota_of_volume(const struct call_stack *stk)
{
    return dict_get_flag(stk->reply.xdata, DICT_KEY_QUOTA_DEEM_STATFS);
}

/* Returns whether the folder has a limit, which applies to all subvolumes together, while each reports its
 * own usage (gluster11 2.6). */
static bool
is_simple_quota_limit(const struct call_stack *stk)
{
    return dict_find_text(stk->reply.xdata, "simple-quota");
}

static uint64_t
subtract_or_zero(uint64_t from, uint64_t used)
{
    return from > used ? from - used : 0;
}

/* Subtracts the usage of one more subvolume, `times` times, from `all`, which has the limit. Blocks of
 * another size are converted by bytes. */
static void
add_usage(struct statvfs *all, const struct statvfs *one, unsigned times)
{
    unsigned long size = all->f_frsize ? all->f_frsize : 1, of_one = one->f_frsize ? one->f_frsize : 1;
    uint64_t blocks = subtract_or_zero(one->f_blocks, one->f_bfree) * of_one / size * times;
    uint64_t files = subtract_or_zero(one->f_files, one->f_ffree) * times;

    all->f_bfree = subtract_or_zero(all->f_bfree, blocks);
    all->f_bavail = subtract_or_zero(all->f_bavail, blocks);
    all->f_ffree = subtract_or_zero(all->f_ffree, files);
    all->f_favail = subtract_or_zero(all->f_favail, files);
}

/* Returns the sum of the `good` replies. A subvolume that did not answer is assumed to have the average
 * usage. */
static struct statvfs
sum_limited(const struct fan *fan, unsigned good, unsigned failed)
{
    struct statvfs all = {0}, used = {0};
    bool has_first = false;

    for (unsigned i = 0; i < fan->count; i++) {
        const struct statvfs *v = dist_fan_result(fan, i) < 0 ? NULL : &fan->call[i]->reply.statvfs;

        if (!v)
            continue;
        if (has_first)
            add_usage(&all, v, 1);
        else
            all = *v;
        has_first = true;
        used.f_frsize = all.f_frsize;
        used.f_blocks += subtract_or_zero(v->f_blocks, v->f_bfree) * (v->f_frsize ? v->f_frsize : 1) /
                         (all.f_frsize ? all.f_frsize : 1);
        used.f_files += subtract_or_zero(v->f_files, v->f_ffree);
    }
    used.f_blocks /= good;
    used.f_files /= good;
    add_usage(&all, &used, failed);
    return all;
}

static bool
is_fuller(const struct statvfs *a, const struct statvfs *b)
{
    return a->f_blocks - a->f_bfree > b->f_blocks - b->f_bfree;
}

xl_verdict
dist_statfs_go(struct xlator *xl, struct call_stack *stk)
{
    struct op o = dist_op_of(xl, stk);
    struct statvfs sum = {0}, whole = {0};
    struct fan fan;
    unsigned good = 0, failed = 0, wholes = 0, limited = 0;
    int worst = -ENOTCONN, err = dist_fan_begin(&fan, &o);

    for (unsigned i = 0; i < fan.count; i++)
        dist_fan_add(&fan, i, dist_call_copy(&o));
    if (!err)
        err = dist_fan_go(&fan);
    for (unsigned i = 0; i < fan.count && !err; i++) {
        const struct statvfs *v = &fan.call[i]->reply.statvfs;

        if (dist_fan_result(&fan, i) < 0) {
            worst = dist_fan_result(&fan, i);
            failed++;
            continue;
        }
        good++;
        limited += is_simple_quota_limit(fan.call[i]);
        add_statvfs(&sum, v);
        if (is_quota_of_volume(fan.call[i]) && (!wholes++ || is_fuller(v, &whole)))
            whole = *v;
    }
    if (!err && limited)
        sum = sum_limited(&fan, good, failed);
    dist_fan_end(&fan);
    if (err || !good)
        return err ? err : worst;
    stk->reply.op_ret = 0;
    stk->reply.statvfs = wholes ? whole : sum;
    return XL_DONE;
}
