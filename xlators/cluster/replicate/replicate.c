/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster/replicate: several bricks with the same contents, in a client's graph between distribute and
 * protocol/client. The translator's name is the domain of its locks, and the names in `afr-pending-xattr`
 * are the names of the counters (pending xattrs): both must be the same in all other clients and healers.
 *
 * This file has the options and the handling of child events. Every operation runs in a coroutine (fan.c
 * has the table); replicate-internal.h lists the other files.
 *
 * Changes that a child has missed are counted on the other children, so that the self-heal daemon finds
 * them. heal.h describes the repairs that this layer itself makes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/cluster/replicate/crawl.h"
#include "xlators/cluster/replicate/heal.h"

enum {
    PATIENCE_MS = 10000, /* until a silent child counts as down */
    GATHER_MS = 5000,    /* until children serve without those that were lost with them */
    TOGETHER_MS = 2000,  /* losses within this time count as one */
};

static const char *const quorum_types[] = {"none", "auto", "fixed", "", NULL};
/* enum favorite */
static const char *const favorites[] = {"none", "size", "ctime", "mtime", "majority", NULL};
static const char *const heal_algorithms[] = {"", "diff", "full", NULL}; /* enum heal_algorithm */

static const struct option replicate_options[] = {
    OPT_STR(struct replicate_conf, pending_keys, "afr-pending-xattr", NULL),
    OPT_ENUM(struct replicate_conf, quorum_type, "quorum-type", "", quorum_types),
    OPT_INT(struct replicate_conf, quorum_count, "quorum-count", "0", 0, REPLICAS_MAX),
    OPT_INT(struct replicate_conf, arbiter_count, "arbiter-count", "0", 0, 1),
    OPT_INT(struct replicate_conf, post_op_delay_s, "post-op-delay-secs", "1", 0, 86400),
    OPT_INT(struct replicate_conf, read_hash_mode, "read-hash-mode", "1", 0, 5),
    OPT_STR(struct replicate_conf, read_child, "read-subvolume", NULL),
    OPT_STR(struct replicate_conf, thin_arbiter, "thin-arbiter", NULL),
    OPT_BOOL(struct replicate_conf, eager_lock, "eager-lock", "on"),
    OPT_BOOL(struct replicate_conf, locks_new_files, "lock-new-files", "on"),
    OPT_BOOL(struct replicate_conf, shares_names, "share-entry-lock", "on"),
    OPT_INT(struct replicate_conf, metadata_kept_ms, "metadata-lock-kept-ms", "10", 0, 60000),
    OPT_INT(struct replicate_conf, names_kept_ms, "names-lock-kept-ms", "1000", 0, 60000),
    OPT_BOOL(struct replicate_conf, ensure_durability, "ensure-durability", "on"),
    OPT_MUST_BE("halo-enabled", "no"),
    OPT_MUST_BE("consistent-metadata", "no"),
    OPT_MUST_BE("consistent-io", "no"),
    OPT_MUST_BE("pre-op-compat", "on"),
    OPT_BOOL(struct replicate_conf, heals_data, "data-self-heal", "off"),
    OPT_BOOL(struct replicate_conf, heals_metadata, "metadata-self-heal", "off"),
    OPT_BOOL(struct replicate_conf, heals_entries, "entry-self-heal", "off"),
    OPT_INT(struct replicate_conf, heal_count, "background-self-heal-count", "8", 0, 256),
    OPT_INT(struct replicate_conf, heal_queue, "heal-wait-queue-length", "128", 0, 10000),
    OPT_INT(struct replicate_conf, heal_window, "data-self-heal-window-size", "8", 1, 1024),
    OPT_ENUM(struct replicate_conf, heal_algorithm, "data-self-heal-algorithm", "", heal_algorithms),
    OPT_ENUM(struct replicate_conf, favorite, "favorite-child-policy", "none", favorites),
    OPT_BOOL(struct replicate_conf, uses_anonymous_inode, "use-anonymous-inode", "no"),
    OPT_UUID(struct replicate_conf, volume_id, "volume-id"),
    /* options of the self-heal daemon (crawl.c); a mount ignores them */
    OPT_INT(struct replicate_conf, heal_timeout_s, "heal-timeout", "600", 1, INT32_MAX),
    OPT_INT(struct replicate_conf, healer_threads, "shd-max-threads", "0", 0, 64),
    OPT_BOOL(struct replicate_conf, throttles_heals, "heal-throttle", "off"),
    OPT_IGNORED("self-heal-readdir-size"),
    OPT_IGNORED("self-heal-daemon"),
    OPT_IGNORED("iam-self-heal-daemon"),
    OPT_IGNORED("shd-wait-qlength"),
    /* changed names are always recorded, which is right with on and off */
    OPT_IGNORED("granular-entry-heal"),
    /* options of stock for which this layer has another design */
    OPT_IGNORED("use-compound-fops"),
    OPT_IGNORED("full-lock"),
    OPT_IGNORED("optimistic-change-log"),
    OPT_IGNORED("choose-local"), /* the gfid spreads files over the children */
    OPT_IGNORED("locking-scheme"),
    OPT_IGNORED("quorum-reads"),
    OPT_IGNORED("metadata-splitbrain-forced-heal"),
    OPT_IGNORED("read-subvolume-index"),
    OPT_IGNORED("node-uuid"),
    OPT_END,
};

/* ---- child events ---------------------------------------------------------------------------- */

static unsigned
child_index(const struct replicate *r, const struct xlator *child)
{
    unsigned i = 0;

    while (i < r->count && r->xl->children[i] != child)
        i++;
    assert(i < r->count);
    return i;
}

/* Under the lock: sets the event to report to the parent after `up` has changed from `was` to `is`. Returns
 * false if there is nothing to report. */
static bool
parent_event(struct replicate *r, child_set was, child_set is, bool is_impatient, enum child_event *out)
{
    if (!r->has_told) {
        *out = is ? CHILD_UP : r->refused ? CHILD_REFUSED : CHILD_DOWN;
        r->has_told = r->reported == r->all || is_impatient;
        return r->has_told;
    }
    if (was == is)
        return false;
    if (!was || !is)
        *out = is ? CHILD_UP : CHILD_DOWN;
    else
        *out = is & ~was ? CHILD_SOME_UP : CHILD_SOME_DOWN;
    return true;
}

/* Under the lock: the children that serve once those of `which` are up. After the loss of the last child, a
 * child that returns serves only together with all children that were lost at that time, or after
 * GATHER_MS. A child that returned first and served alone would take changes that the others miss, and it
 * may itself lack the last changes that the others have: with two restarts in a row each copy would accuse
 * the other. */
static child_set
gather_locked(struct replicate *r, child_set was, child_set which)
{
    if (was || !r->lost_last)
        return was | which;
    if (!r->gathered)
        timer_start(&r->gathering, GATHER_MS);
    r->gathered |= which;
    if (r->lost_last & ~r->gathered)
        return 0;
    child_set all = r->gathered;

    r->gathered = r->lost_last = 0;
    return all;
}

/* Under the lock: notes the loss of the children of `which`, of which `was` were up. */
static void
lose_locked(struct replicate *r, child_set was, child_set which)
{
    uint64_t now = clock_mono_ns();

    r->gathered &= ~which;
    for_each_child (i, was & which)
        r->lost_ns[i] = now;
    if (!was || was & ~which)
        return;
    r->lost_last = 0;
    for_each_child (i, r->all) {
        if (r->lost_ns[i] && now - r->lost_ns[i] < (uint64_t)TOGETHER_MS * 1000000)
            r->lost_last |= CHILD(i);
    }
}

/* Under the lock: the children of `is` serve from now on. As parent_event(). */
static bool
serve_locked(struct replicate *r, child_set is, bool is_impatient, enum child_event *event)
{
    child_set was = atomic_load(&r->up);

    atomic_store(&r->up, is);
    atomic_fetch_or(&r->met, is);
    if (was != is)
        atomic_fetch_add(&r->generation, 1);
    return parent_event(r, was, is, is_impatient, event);
}

static void
gathering_ends(struct timer *t)
{
    struct replicate *r = caa_container_of(t, struct replicate, gathering);
    enum child_event event;
    bool tells = false;

    pthread_mutex_lock(&r->lock);
    if (r->gathered) {
        child_set is = atomic_load(&r->up) | r->gathered;

        r->gathered = r->lost_last = 0;
        tells = serve_locked(r, is, false, &event);
    }
    pthread_mutex_unlock(&r->lock);
    if (tells)
        xlator_tell_parent(r->xl, event);
}

/* Records an event of the children of `which`. An empty set: children that have sent no event count as
 * down. If no child is up at the time of the first report, and a child has refused this client for good,
 * this layer reports a refusal too. It does so later when the last child refuses this client: a call need not
 * wait for any child's return. */
static void
set_children_state(struct replicate *r, child_set which, enum child_event what)
{
    bool is_up = what == CHILD_UP;
    enum child_event event;

    pthread_mutex_lock(&r->lock);
    child_set was = atomic_load(&r->up), is = is_up ? gather_locked(r, was, which) : was & ~which;

    if (!is_up)
        lose_locked(r, was, which);
    r->reported |= which;
    child_set refused = r->refused;
    r->refused = what == CHILD_REFUSED ? refused | which : refused & ~which;
    bool tells = serve_locked(r, is, !which, &event);
    if (!tells && r->has_told && refused != r->all && r->refused == r->all) {
        event = CHILD_REFUSED;
        tells = true;
    }
    pthread_mutex_unlock(&r->lock);
    if (tells)
        xlator_tell_parent(r->xl, event);
    struct crawler *crawler = atomic_load(&r->crawler);
    if (crawler && is & ~was)
        crawler_child_up(crawler);
    if (is & ~was)
        dead_changes_ask(&r->dead_changes);
}

static void
replicate_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    struct replicate *r = xl->private;
    child_set which = CHILD(child_index(r, child));

    switch (event) {
    case CHILD_UP:
    case CHILD_REFUSED: /* the child has logged the refusal; other children may serve */
    case CHILD_DOWN:
        set_children_state(r, which, event);
        break;
    case CHILD_CONNECTING:
    case CHILD_SOME_UP:
    case CHILD_SOME_DOWN:
        break;
    }
}

static void
patience_ends(struct timer *t)
{
    set_children_state(caa_container_of(t, struct replicate, patience), 0, CHILD_DOWN);
}

/* Bricks report a contended lock with its domain. The domain of the lock on attributes ends with this
 * suffix. */
static bool
is_attributes_domain(const struct xlator *xl, const char *domain)
{
    size_t len = strlen(xl->name);

    return strncmp(domain, xl->name, len) == 0 && strcmp(domain + len, ":metadata") == 0;
}

/* Another client waits for a lock of this mount: release the lock as soon as the marks of finished writes
 * are set. */
static bool
replicate_contended(struct xlator *xl, const struct gfid *gfid, const char *domain)
{
    bool attributes = is_attributes_domain(xl, domain);

    if (!attributes && strcmp(domain, xl->name) != 0)
        return false;
    struct inode *inode = inode_find(xl->graph->inodes, gfid);
    struct repl_inode *ri = inode ? inode_ctx(inode, xl) : NULL;
    struct hold *h = !ri ? NULL : attributes ? atomic_load(&ri->attributes) : &ri->hold;

    if (h && !attributes)
        atomic_store(&ri->contended_ns, clock_mono_ns());
    if (h)
        hold_hurry(h);
    inode_unref(inode);
    return true;
}

static bool
replicate_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CONTENDED)
        return replicate_contended(xl, e->gfid, e->domain);
    if (e->kind == EVENT_CHILD)
        replicate_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
replicate_fini(struct xlator *xl)
{
    struct replicate *r = xl->private;

    for (unsigned i = 0; i < r->count; i++)
        free(r->keys[i]);
    free(r->heal_domain);
    dead_changes_fini(&r->dead_changes);
    pthread_cond_destroy(&r->changed);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

static char *
counter_key(const char *name, size_t len)
{
    char *key = NULL;

    return asprintf(&key, "trusted.afr.%.*s", (int)len, name) < 0 ? NULL : key;
}

/* Parses "V-client-0,V-client-1": one name for each child. */
static int
parse_keys(struct replicate *r, const char *names, struct reason *why)
{
    const char *at = names;

    for (unsigned i = 0; i < r->count; i++) {
        size_t len = strcspn(at, ",");
        bool is_last = i + 1 == r->count;

        if (!len || (at[len] == '\0') != is_last)
            return reason_set(why, -EINVAL, "option afr-pending-xattr %s: expected %u names", names,
                              r->count);
        r->keys[i] = counter_key(at, len);
        if (!r->keys[i])
            return -ENOMEM;
        at += len + 1;
    }
    return 0;
}

static int
set_keys(struct replicate *r, struct reason *why)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    if (conf->pending_keys)
        return parse_keys(r, conf->pending_keys, why);
    for (unsigned i = 0; i < r->count; i++) {
        r->keys[i] = counter_key(r->xl->children[i]->name, strlen(r->xl->children[i]->name));
        if (!r->keys[i])
            return -ENOMEM;
    }
    return 0;
}

static int
replicate_check_options(const struct replicate *r, struct reason *why)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    if (r->count < 2 || r->count > REPLICAS_MAX)
        return reason_set(why, -EINVAL, "%u subvolumes: 2 to %d are possible", r->count, REPLICAS_MAX);
    if (conf->arbiter_count && r->count != 3)
        return reason_set(why, -EINVAL, "option arbiter-count 1: it needs 3 subvolumes, and there are %u",
                          r->count);
    if (conf->thin_arbiter)
        return reason_set(why, -EOPNOTSUPP, "option thin-arbiter is not built");
    if (conf->quorum_type == QUORUM_FIXED && (conf->quorum_count < 1 || conf->quorum_count > r->count))
        return reason_set(why, -EINVAL, "option quorum-count %d: 1 to %u are possible",
                          (int)conf->quorum_count, r->count);
    return 0;
}

static void
set_children(struct replicate *r)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    r->all = CHILDREN(r->count);
    r->arbiter = conf->arbiter_count ? (int)r->count - 1 : -1;
    r->read_child = -1;
    for (unsigned i = 0; i < r->count; i++) {
        if (conf->read_child && strcmp(r->xl->children[i]->name, conf->read_child) == 0)
            r->read_child = (int)i;
    }
}

static int
replicate_init(struct xlator *xl, struct reason *why)
{
    struct replicate *r = calloc(1, sizeof *r);

    if (!r)
        return -ENOMEM;
    r->xl = xl;
    r->count = xl->child_count;
    dead_changes_init(&r->dead_changes, xl, &dead_folders);
    xl->private = r;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->changed, NULL);
    CDS_INIT_LIST_HEAD(&r->holds);
    CDS_INIT_LIST_HEAD(&r->heals);
    timer_init(&r->patience, patience_ends);
    timer_init(&r->gathering, gathering_ends);
    atomic_init(&r->generation, 1); /* 0 means no generation */
    atomic_init(&r->may_be_parked, true); /* parked by an earlier mount */
    atomic_init(&r->choice_minutes, SPLIT_CHOICE_MINUTES);
    int err = replicate_check_options(r, why);

    if (!err) {
        set_children(r);
        err = repl_fd_pool_init() || repl_inode_pool_init() ? -ENOMEM : set_keys(r, why);
    }
    if (!err && asprintf(&r->heal_domain, "%s:self-heal", xl->name) < 0) {
        r->heal_domain = NULL;
        err = -ENOMEM;
    }
    if (err) {
        if (r->count > REPLICAS_MAX)
            r->count = 0; /* no key was allocated */
        replicate_fini(xl);
        xl->private = NULL;
    }
    return err;
}

static int
replicate_start(struct xlator *xl)
{
    struct replicate *r = xl->private;

    timer_start(&r->patience, PATIENCE_MS);
    return 0;
}

/* The children are still connected: release all locks that are held. */
static void
replicate_stop(struct xlator *xl)
{
    struct replicate *r = xl->private;

    timer_stop(&r->patience);
    timer_stop(&r->gathering);
    holds_stop(r);
    dead_changes_stop(&r->dead_changes);
}

static void
replicate_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    repl_inode_free(ctx);
}

static void
replicate_fd_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    repl_fd_released(xl->private, fd, ctx);
}

/* Scripts find the line of a brick by the name of its counter, and take the line before it. */
static void
dump_children(const struct replicate *r, struct dump *d)
{
    child_set up = atomic_load(&r->up);

    dump_line(d, "child_count", "%u", r->count);
    for (unsigned i = 0; i < r->count; i++) {
        char key[32];

        snprintf(key, sizeof key, "child_up[%u]", i);
        dump_line(d, key, "%d", up & CHILD(i) ? 1 : 0);
        snprintf(key, sizeof key, "pending_key[%u]", i);
        dump_line(d, key, "%s", r->keys[i]);
    }
}

static void
dump_heals(struct replicate *r, struct dump *d)
{
    const struct replicate_conf *conf = xlator_conf(r->xl);

    pthread_mutex_lock(&r->lock);
    unsigned healers = r->heals_running, waiting = r->heals_waiting;
    pthread_mutex_unlock(&r->lock);
    dump_line(d, "data_self_heal", "%d", conf->heals_data);
    dump_line(d, "metadata_self_heal", "%d", conf->heals_metadata);
    dump_line(d, "entry_self_heal", "%d", conf->heals_entries);
    dump_line(d, "heal-wait-queue-length", "%lld", (long long)conf->heal_queue);
    dump_line(d, "heal-waiters", "%u", waiting);
    dump_line(d, "background-self-heal-count", "%lld", (long long)conf->heal_count);
    dump_line(d, "healers", "%u", healers);
}

static void
dump_quorum(const struct replicate *r, struct dump *d)
{
    struct quorum q = quorum_of(r);

    dump_line(d, "quorum-type", "%s", quorum_types[q.type]);
    if (q.type == QUORUM_FIXED)
        dump_line(d, "quorum-count", "%u", q.count);
}

/* Names and values are as in a stock client's statedump where both report the same fact. */
static void
replicate_dump(struct xlator *xl, struct dump *d)
{
    const struct replicate_conf *conf = xlator_conf(xl);
    struct replicate *r = xl->private;

    pthread_mutex_lock(&r->lock);
    unsigned holds = r->hold_count;
    pthread_mutex_unlock(&r->lock);
    dump_children(r, d);
    dump_heals(r, d);
    dump_line(d, "read-hash-mode", "%lld", (long long)conf->read_hash_mode);
    dump_line(d, "use-anonymous-inode", "%d", conf->uses_anonymous_inode);
    dump_quorum(r, d);
    dump_line(d, "up", "%d", atomic_load(&r->up) ? 1 : 0);
    dump_line(d, "generation", "%u", atomic_load(&r->generation));
    dump_line(d, "files-locked", "%u", holds);
}

const struct xlator_type cluster_replicate_xlator = {
    .name = "cluster/replicate",
    .options = replicate_options,
    .conf_size = sizeof(struct replicate_conf),
    .ops = &(const struct xlator_ops){.any = op_start},
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .traits = LAYER_FANS_OUT,
    .init = replicate_init,
    .start = replicate_start,
    .stop = replicate_stop,
    .fini = replicate_fini,
    .event = replicate_event,
    .inode_forget = replicate_inode_forget,
    .fd_release = replicate_fd_release,
    .fd_of_child = replicate_fd_of_child,
    .dump = replicate_dump,
};
