/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster/disperse: a file's stripes as fragments on N bricks, of which any K give the file back (an erasure
 * code), in a client's graph between distribute and protocol/client. A child's place in `subvolumes` is the
 * index of its fragments. The translator's name is the domain of its locks, and must be the same in all
 * other clients and healers.
 *
 * This file has the options and the handling of child events. Every operation runs in a coroutine (fan.c
 * has the table); disperse-internal.h lists the other files; hold.c says which states deaths leave. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/cluster/crawl-looks.h"
#include "xlators/cluster/disperse/child-options.h"
#include "xlators/cluster/disperse/heal.h"

enum { EC_PATIENCE_MS = 10000 }; /* until a silent child counts as down */

static const char *const read_policies[] = {"round-robin", "gfid-hash", NULL}; /* enum read_policy */

static const struct option disperse_options[] = {
    OPT_INT(struct disperse_conf, redundancy, "redundancy", "0", 0, 15),
    OPT_BOOL(struct disperse_conf, eager_lock, "eager-lock", "on"),
    OPT_BOOL(struct disperse_conf, other_eager_lock, "other-eager-lock", "on"),
    OPT_INT(struct disperse_conf, kept_s, "eager-lock-timeout", "1", 1, 60),
    OPT_INT(struct disperse_conf, other_kept_s, "other-eager-lock-timeout", "1", 1, 60),
    OPT_BOOL(struct disperse_conf, is_optimistic, "optimistic-change-log", "on"),
    OPT_BOOL(struct disperse_conf, writes_in_parallel, "parallel-writes", "on"),
    OPT_INT(struct disperse_conf, cached_stripes, "stripe-cache", "4", 0, STRIPES_CACHED_MAX),
    OPT_ENUM(struct disperse_conf, read_policy, "read-policy", "gfid-hash", read_policies),
    OPT_INT(struct disperse_conf, quorum_count, "quorum-count", "0", 0, FAN_CHILDREN_MAX),
    OPT_STR(struct disperse_conf, read_mask, "ec-read-mask", NULL),
    OPT_INT(struct disperse_conf, heal_count, "background-heals", "8", 0, 256),
    OPT_INT(struct disperse_conf, heal_window, "self-heal-window-size", "32", 1, 1024),
    OPT_BOOL(struct disperse_conf, is_daemon, "iam-self-heal-daemon", "off"),
    OPT_BOOL(struct disperse_conf, daemon_heals, "self-heal-daemon", "on"),
    OPT_INT(struct disperse_conf, heal_timeout_s, "heal-timeout", "600", 1, INT32_MAX),
    OPT_BOOL(struct disperse_conf, throttles_heals, "heal-throttle", "off"),
    OPT_IGNORED("heal-wait-qlength"),
    OPT_IGNORED("shd-max-threads"),
    OPT_IGNORED("shd-wait-qlength"),
    OPT_IGNORED("cpu-extensions"), /* the processor's best are chosen at the start */
    OPT_END,
};

/* ---- child events ---------------------------------------------------------------------------- */

/* Under the lock: sets the event to report to the parent. The set serves once K children are up and all
 * have reported, or have been waited for: otherwise the first writes would leave children behind. Returns
 * false if there is nothing to report. */
static bool
ec_parent_event(struct disperse *d, child_set was, child_set is, bool is_impatient, enum child_event *out)
{
    bool serves = children_count(is) >= d->data;

    if (!d->has_told) {
        if (d->reported != d->all && !is_impatient)
            return false;
        *out = serves ? CHILD_UP : d->refused && !is ? CHILD_REFUSED : CHILD_DOWN;
    } else if (serves != d->was_serving) {
        *out = serves ? CHILD_UP : CHILD_DOWN;
    } else if (was != is && serves) {
        *out = is & ~was ? CHILD_SOME_UP : CHILD_SOME_DOWN;
    } else {
        return false;
    }
    d->has_told = true;
    d->was_serving = serves;
    return true;
}

/* Records an event of the children of `which`. An empty set: children that have sent no event count as
 * down. */
static void
ec_set_children_state(struct disperse *d, child_set which, enum child_event what)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    enum child_event event;

    pthread_mutex_lock(&d->lock);
    child_set was = atomic_load(&d->up), is = what == CHILD_UP ? was | which : was & ~which;

    d->reported |= which;
    bool could_return = children_count(d->all & ~d->refused) >= d->data;
    d->refused = what == CHILD_REFUSED ? d->refused | which : d->refused & ~which;
    atomic_store(&d->up, is);
    if (was != is)
        atomic_fetch_add(&d->generation, 1);
    if (d->had_enough && children_count(was) < d->data && children_count(is) >= d->data)
        atomic_store(&d->enough_ns, clock_mono_ns());
    d->had_enough |= children_count(is) >= d->data;
    for_each_child (i, was & ~is)
        atomic_store(&d->lost_at[i], atomic_load(&d->generation));
    bool tells = ec_parent_event(d, was, is, !which, &event);
    /* a call need not wait for the return of children that refuse this client */
    if (!tells && d->has_told && could_return && children_count(d->all & ~d->refused) < d->data) {
        event = CHILD_REFUSED;
        tells = true;
    }
    pthread_mutex_unlock(&d->lock);
    if (tells)
        xlator_tell_parent(d->xl, event);
    if (is & ~was) {
        atomic_store(&d->up_ns, clock_mono_ns());
        ec_crawl_child_up(d);
        if (!conf->is_daemon && conf->heal_count)
            dead_changes_ask(&d->dead_changes);
    }
}

static void
disperse_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    struct disperse *d = xl->private;
    unsigned i = 0;

    while (i < d->count && xl->children[i] != child)
        i++;
    assert(i < d->count);
    if (event == CHILD_UP || event == CHILD_DOWN || event == CHILD_REFUSED)
        ec_set_children_state(d, CHILD(i), event);
}

static void
ec_patience_ends(struct timer *t)
{
    ec_set_children_state(caa_container_of(t, struct disperse, patience), 0, CHILD_DOWN);
}

/* Another client waits for a lock of this mount: release the lock as soon as its users have ended. */
/* False: the lock belongs to a layer above. */
static bool
disperse_contended(struct xlator *xl, const struct gfid *gfid, const char *domain)
{
    if (strcmp(domain, xl->name) != 0)
        return false;
    struct inode *inode = inode_find(xl->graph->inodes, gfid);
    struct ec_inode *ei = inode ? inode_ctx(inode, xl) : NULL;

    if (ei)
        ec_hurry(&ei->hold);
    inode_unref(inode);
    return true;
}

static bool
disperse_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CONTENDED)
        return disperse_contended(xl, e->gfid, e->domain);
    if (e->kind == EVENT_CHILD)
        disperse_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
disperse_fini(struct xlator *xl)
{
    struct disperse *d = xl->private;

    looks_free(d->looks);
    dead_changes_fini(&d->dead_changes);
    ec_doubts_put(d->doubts);
    free(d->heal_domain);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}

static int
disperse_check_options(const struct disperse *d, struct reason *why)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    unsigned r = (unsigned)conf->redundancy;

    if (d->count < 3 || d->count > FAN_CHILDREN_MAX)
        return reason_set(why, -EINVAL, "%u subvolumes: 3 to %d are possible", d->count, FAN_CHILDREN_MAX);
    if (r < 1 || d->count < 2 * r + 1)
        return reason_set(why, -EINVAL, "option redundancy %u: 1 to %u are possible with %u subvolumes", r,
                          (d->count - 1) / 2, d->count);
    if (d->count - r > CODEC_DATA_MAX)
        return reason_set(why, -EINVAL, "%u data bricks: %d are possible", d->count - r, CODEC_DATA_MAX);
    return 0;
}

/* Takes quorum-count over; a value that cannot be stays out, and *why has the fault. Returns 0 or -EINVAL. */
static int
take_quorum(struct disperse *d, struct reason *why)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    struct reason fault = {0};

    if (disperse_quorum_check(conf->quorum_count, d->count, d->data, &fault))
        return reason_set(why, -EINVAL, "option quorum-count %lld: %s", (long long)conf->quorum_count,
                          fault.text);
    atomic_store(&d->quorum, (unsigned)conf->quorum_count);
    return 0;
}

/* The same for ec-read-mask. */
static int
take_read_mask(struct disperse *d, struct reason *why)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);
    struct reason fault = {0};
    child_set mask = d->all;

    if (conf->read_mask && disperse_mask_parse(conf->read_mask, d->count, d->data, &mask, &fault))
        return reason_set(why, -EINVAL, "option ec-read-mask %.100s: %s", conf->read_mask, fault.text);
    atomic_store(&d->read_mask, mask);
    return 0;
}

/* Version 0, algorithm 0, words of 8 bits, N, R, and the bytes of a chunk in 24 bits. */
static void
set_shape(struct disperse *d)
{
    const struct disperse_conf *conf = xlator_conf(d->xl);

    d->redundancy = (unsigned)conf->redundancy;
    d->data = d->count - d->redundancy;
    d->stripe = (size_t)d->data * CODEC_CHUNK;
    d->all = CHILDREN(d->count);
    memcpy(d->config,
           (unsigned char[]){0, 0, 8, (unsigned char)d->count, (unsigned char)d->redundancy, 0,
                             CODEC_CHUNK >> 8, CODEC_CHUNK & 0xff},
           sizeof d->config);
}

static int
disperse_init(struct xlator *xl, struct reason *why)
{
    const struct disperse_conf *conf = xlator_conf(xl);
    struct disperse *d = calloc(1, sizeof *d);

    if (!d)
        return -ENOMEM;
    d->xl = xl;
    d->count = xl->child_count;
    xl->private = d;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    CDS_INIT_LIST_HEAD(&d->holds);
    timer_init(&d->patience, ec_patience_ends);
    ec_crawl_start(d);
    dead_changes_init(&d->dead_changes, xl, &dead_objects);
    atomic_init(&d->generation, 1); /* 0 means no generation */
    atomic_init(&d->habits, USES_OPENED | WRITES_OPENED | WRITES_NEW);
    int err = disperse_check_options(d, why);

    if (!err && conf->is_daemon && !(d->looks = looks_new(d->count)))
        err = -ENOMEM;
    if (!err) {
        set_shape(d);
        err = take_quorum(d, why) || take_read_mask(d, why) ? -EINVAL : 0;
    }
    if (!err) {
        err = ec_fd_pool_init() || ec_inode_pool_init() ? -ENOMEM : 0;
    }
    if (!err && asprintf(&d->heal_domain, "%s:self-heal", xl->name) < 0) {
        d->heal_domain = NULL;
        err = -ENOMEM;
    }
    if (err) {
        disperse_fini(xl);
        xl->private = NULL;
    }
    return err;
}

static void
log_kept_option(const struct disperse *d, const struct reason *why)
{
    log_event(LOG_ERROR, d->xl, "disperse-options-kept", "%s: the option keeps its value of before",
              why->text);
}

/* A change of the redundancy would make all files unreadable. Operations that have begun keep their
 * quorum. */
static void
disperse_reconfigured(struct xlator *xl, const void *old)
{
    const struct disperse_conf *conf = xlator_conf(xl);
    struct disperse *d = xl->private;
    struct reason why = {0};

    (void)old;
    if ((unsigned)conf->redundancy != d->redundancy) {
        reason_set(&why, -EINVAL, "option redundancy %u: the files of the volume have %u",
                   (unsigned)conf->redundancy, d->redundancy);
        log_kept_option(d, &why);
    }
    if (take_quorum(d, &why))
        log_kept_option(d, &why);
    if (take_read_mask(d, &why))
        log_kept_option(d, &why);
}

static int
disperse_start(struct xlator *xl)
{
    timer_start(&((struct disperse *)xl->private)->patience, EC_PATIENCE_MS);
    return 0;
}

/* The children are still connected: release all locks that are held. */
static void
disperse_stop(struct xlator *xl)
{
    struct disperse *d = xl->private;

    timer_stop(&d->patience);
    ec_holds_stop(d);
    ec_crawl_stop(d);
    dead_changes_stop(&d->dead_changes);
}

static void
disperse_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    ec_inode_free(ctx);
}

static void
disperse_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    ec_fd_released(xl->private, fd, ctx);
}

static void
dump_read_mask(struct disperse *d, struct dump *dump)
{
    char text[4 * FAN_CHILDREN_MAX] = "";
    size_t len = 0;

    for_each_child (i, atomic_load(&d->read_mask))
        len += (size_t)snprintf(text + len, sizeof text - len, "%s%u", len ? ":" : "", i);
    dump_line(dump, "ec-read-mask", "%s", text);
    dump_line(dump, "reads-beside-mask", "%lu", atomic_load(&d->reads_beside_mask));
}

/* Names are as in a stock client's statedump where both report the same fact. */
static void
disperse_dump(struct xlator *xl, struct dump *dump)
{
    const struct disperse_conf *conf = xlator_conf(xl);
    struct disperse *d = xl->private;
    child_set up = atomic_load(&d->up);

    pthread_mutex_lock(&d->lock);
    unsigned holds = d->hold_count;
    pthread_mutex_unlock(&d->lock);
    dump_line(dump, "nodes", "%u", d->count);
    dump_line(dump, "redundancy", "%u", d->redundancy);
    dump_line(dump, "fragment_size", "%d", CODEC_CHUNK);
    dump_line(dump, "stripe_size", "%zu", d->stripe);
    dump_line(dump, "childs_up", "%u", children_count(up));
    for (unsigned i = 0; i < d->count; i++) {
        char key[32];

        snprintf(key, sizeof key, "child_up[%u]", i);
        dump_line(dump, key, "%d", up & CHILD(i) ? 1 : 0);
        snprintf(key, sizeof key, "read-us[%u]", i);
        dump_line(dump, key, "%" PRIu64, read_time_expected(&d->read_times[i], clock_mono_ns()) / 1000);
    }
    dump_line(dump, "read-policy", "%s", read_policies[conf->read_policy]);
    dump_line(dump, "parallel-writes", "%d", conf->writes_in_parallel);
    dump_line(dump, "stripe-cache", "%lld", (long long)conf->cached_stripes);
    dump_line(dump, "quorum-count", "%u", atomic_load(&d->quorum));
    dump_read_mask(d, dump);
    dump_line(dump, "cpu-extensions", "%s", codec_cpu_name(codec_best()));
    dump_line(dump, "files-locked", "%u", holds);
}

const struct xlator_type cluster_disperse_xlator = {
    .name = "cluster/disperse",
    .options = disperse_options,
    .conf_size = sizeof(struct disperse_conf),
    .ops = &(const struct xlator_ops){.any = ec_start},
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .traits = LAYER_FANS_OUT | LAYER_OPENS_BY_NAME | LAYER_WRITES_AT_FLUSH,
    .init = disperse_init,
    .reconfigured = disperse_reconfigured,
    .start = disperse_start,
    .stop = disperse_stop,
    .fini = disperse_fini,
    .event = disperse_event,
    .inode_forget = disperse_inode_forget,
    .fd_release = disperse_fd_release,
    .fd_of_child = disperse_fd_of_child,
    .dump = disperse_dump,
};
