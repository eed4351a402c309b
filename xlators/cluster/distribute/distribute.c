/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster/distribute: spreads the files of a volume over subvolumes, by the hashes of their names.
 *
 * The translator is in a client's graph below features/utime and above the subvolumes: bricks
 * (protocol/client) or sets of replicas. It stores on disk only data that all clients of the volume share:
 * xattrs of folders (trusted.glusterfs.dht and .dht.mds), and linkto files. So many clients, stock clients
 * included, work on one volume independently; operations that must exclude each other take locks on the
 * bricks (client 2.7).
 *
 * With one subvolume all calls pass unchanged, except that a new folder gets a layout.
 *
 * The context of an inode has a file's subvolume, or a folder's layout (place.c). No lock is held over a
 * call. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

static const char *const unhashed_modes[] = {"on", "off", "auto", NULL};
static const char *const unlink_locks_modes[] = {"auto", "on", "off", NULL};

static const struct option dist_options[] = {
    OPT_STR(struct dist_conf, extra_regex, "extra-hash-regex", NULL),
    OPT_STR(struct dist_conf, rsync_regex, "rsync-hash-regex", HASH_RULE_RSYNC),
    OPT_BOOL(struct dist_conf, optimizes_lookup, "lookup-optimize", "on"),
    OPT_ENUM(struct dist_conf, looks_unhashed, "lookup-unhashed", "on", unhashed_modes),
    OPT_PERCENT_OR_SIZE(struct dist_conf, min_free_disk, "min-free-disk", "10%"),
    OPT_INT(struct dist_conf, min_free_inodes, "min-free-inodes", "5", 0, 100),
    OPT_INT(struct dist_conf, spread, "directory-layout-spread", "0", 0, LAYOUT_CHILDREN_MAX),
    OPT_BOOL(struct dist_conf, weighs, "weighted-rebalance", "on"),
    OPT_BOOL(struct dist_conf, by_gfid, "randomize-hash-range-by-gfid", "off"),
    OPT_ENUM(struct dist_conf, unlink_locks, "unlink-takes-migrate-lock", "auto", unlink_locks_modes),
    OPT_STR(struct dist_conf, leaving, "decommissioned-bricks", ""),
    OPT_MUST_BE("xattr-name", "trusted.glusterfs.dht"),
    OPT_MUST_BE("switch-pattern", ""),
    OPT_MUST_BE("unhashed-sticky-bit", "off"),
    OPT_MUST_BE("lock-migration", "off"),
    OPT_IGNORED("readdir-optimize"), /* same replies either way */
    OPT_IGNORED("use-readdirp"),     /* always on */
    OPT_IGNORED("assert-no-child-down"),
    OPT_IGNORED("force-migration"),  /* for the rebalance process */
    OPT_IGNORED("ensure-durability"),
    OPT_PREFIX("rebal"),
    OPT_END,
};

/* ---- subvolumes ------------------------------------------------------------------------------ */

uint32_t
dist_hash(const struct dist *d, const char *name)
{
    return hash_name(d->rules, sizeof d->rules / sizeof d->rules[0], name);
}

int
child_longest_up(const struct dist *d)
{
    int best = -1;

    for (unsigned i = 0; i < d->count; i++) {
        if (child_is_up(d, i) &&
            (best < 0 || atomic_load(&d->child[i].up_since) < atomic_load(&d->child[best].up_since)))
            best = (int)i;
    }
    return best;
}

bool
children_all_up(const struct dist *d)
{
    for (unsigned i = 0; i < d->count; i++) {
        if (!child_is_up(d, i))
            return false;
    }
    return true;
}

int
child_by_name(const struct dist *d, const char *name)
{
    for (unsigned i = 0; i < d->count; i++) {
        if (strcmp(d->child[i].xl->name, name) == 0)
            return (int)i;
    }
    return -1;
}

static unsigned
child_number(const struct dist *d, const struct xlator *child)
{
    unsigned i = 0;

    while (i < d->count && d->child[i].xl != child)
        i++;
    return i;
}

/* Sets the event to report to the parent: none until each child has sent an event, then whether any child
 * is up. If only some children come up or go down, the parent learns that its cached data may be stale.
 * Returns false if there is nothing to report. */
static bool
parent_event_locked(struct dist *d, enum child_event event, enum child_event *out)
{
    bool any_up = false, all_told = true, any_refused = false;

    for (unsigned i = 0; i < d->count; i++) {
        any_up |= child_is_up(d, i);
        all_told &= d->child[i].has_told;
        any_refused |= d->child[i].refuses;
    }
    *out = any_up ? CHILD_UP : any_refused ? CHILD_REFUSED : CHILD_DOWN;
    if (!all_told)
        return false;
    if (d->told_any && d->told == *out) {
        if (event != CHILD_UP && event != CHILD_DOWN)
            return false;
        *out = event == CHILD_UP ? CHILD_SOME_UP : CHILD_SOME_DOWN;
        return any_up;
    }
    d->told_any = true;
    d->told = *out;
    return true;
}

static void
dist_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    struct dist *d = xl->private;
    unsigned i = child_number(d, child);
    enum child_event news;

    pthread_mutex_lock(&d->lock);
    if (event == CHILD_UP && !child_is_up(d, i))
        atomic_store(&d->child[i].up_since, atomic_fetch_add(&d->events, 1));
    if (event == CHILD_UP || event == CHILD_DOWN || event == CHILD_REFUSED) {
        atomic_store(&d->child[i].is_up, event == CHILD_UP);
        d->child[i].has_told = true;
        d->child[i].refuses = event == CHILD_REFUSED;
    }
    if (event == CHILD_UP || event == CHILD_SOME_UP)
        atomic_fetch_add(&d->generation, 1);
    unsigned away = 0;
    for (unsigned k = 0; k < d->count; k++)
        away += !child_is_up(d, k);
    atomic_store(&xl->is_degraded, away > 0);
    bool has_news = parent_event_locked(d, event, &news);
    pthread_mutex_unlock(&d->lock);
    if (event == CHILD_UP && d->count > 1)
        space_ask_one(d, i);
    if ((event == CHILD_UP || event == CHILD_SOME_UP) && d->count > 1 && children_all_up(d))
        errand_ask(&d->settling);
    if (event == CHILD_SOME_UP || event == CHILD_SOME_DOWN || event == CHILD_CONNECTING)
        xlator_tell_parent(xl, event);
    else if (has_news)
        xlator_tell_parent(xl, news);
}

static bool
dist_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD)
        dist_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

/* ---- dispatch of fops ------------------------------------------------------------------------ */

static bool
is_folder_call(const struct call_stack *stk)
{
    const struct inode *inode = stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;

    return inode && S_ISDIR(inode->type);
}

/* Start functions of coroutines. Other fops go to the file's subvolume, or for a folder to all subvolumes. */
static const fop_fn start_functions[FOP_COUNT] = {
    [FOP_lookup] = dist_lookup_go,   [FOP_create] = dist_create_go,   [FOP_mknod] = dist_create_go,
    [FOP_symlink] = dist_create_go,  [FOP_mkdir] = dist_mkdir_go,     [FOP_rmdir] = dist_rmdir_go,
    [FOP_unlink] = dist_unlink_go,   [FOP_link] = dist_link_go,       [FOP_rename] = dist_rename_go,
    [FOP_opendir] = dist_opendir_go, [FOP_readdir] = dist_readdir_go, [FOP_readdirp] = dist_readdir_go,
    [FOP_statfs] = dist_statfs_go,
};

/* With one subvolume, gives a new folder a layout of one range. */
static xl_verdict
pass_to_only_child(struct call_stack *stk)
{
    static const uint8_t whole[LAYOUT_BYTES] = {[12] = 0xff, 0xff, 0xff, 0xff};

    if (stk->call.fop != FOP_mkdir)
        return XL_PASS;
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    if (!stk->call.xdata || dict_set_bytes(stk->call.xdata, DICT_KEY_DHT_LAYOUT, whole, sizeof whole))
        return -ENOMEM;
    return XL_PASS;
}

/* Returns whether the call is the virtual xattr that fixes a layout; its value does not matter. */
static bool
asks_for_layout(const struct call_stack *stk)
{
    return stk->call.fop == FOP_setxattr && dict_find_text(stk->call.dict, "distribute.fix.layout");
}

static xl_verdict
fix_layout(struct xlator *xl, struct call_stack *stk)
{
    struct dist *d = xl->private;

    if (!is_folder_call(stk))
        return -EOPNOTSUPP;
    if (stk->caller.uid != 0)
        return -EPERM;
    return d->count == 1 ? XL_DONE : coro_fop(xl, stk, dist_fix_layout_go);
}

static xl_verdict
dist_any(struct xlator *xl, struct call_stack *stk)
{
    struct dist *d = xl->private;

    if (asks_for_layout(stk))
        return fix_layout(xl, stk);
    if (d->count == 1)
        return pass_to_only_child(stk);
    if (start_functions[stk->call.fop])
        return coro_fop(xl, stk, start_functions[stk->call.fop]);
    if (is_folder_call(stk))
        return dist_is_lock(stk->call.fop) ? dist_folder_lock(xl, stk) : coro_fop(xl, stk, dist_all_go);
    return dist_file_any(xl, stk);
}

/* ---- life ------------------------------------------------------------------------------------ */

static bool
is_name_in_list(const char *names, const char *name)
{
    static const char between[] = ", ";

    for (size_t len; *names; names += len + strspn(names + len, between)) {
        len = strcspn(names, between);
        if (strlen(name) == len && strncmp(names, name, len) == 0)
            return true;
    }
    return false;
}

/* Also called while other calls run; each of them sees either the old or the new state. */
static void
set_leaving(struct dist *d)
{
    const char *names = dist_conf(d)->leaving ? dist_conf(d)->leaving : "";

    for (unsigned i = 0; i < d->count; i++) {
        bool is = is_name_in_list(names, d->child[i].xl->name);

        if (atomic_exchange(&d->child[i].is_leaving, is) != is)
            log_event(LOG_INFO, d->xl, "distribute-leaving", "%s %s", d->child[i].xl->name,
                      is ? "is being removed from the volume: nothing is made there any more"
                         : "stays in the volume");
    }
}

static void
dist_reconfigured(struct xlator *xl, const void *old)
{
    (void)old;
    set_leaving(xl->private);
}

static void
sort_by_name(struct dist *d)
{
    for (unsigned i = 0; i < d->count; i++) {
        unsigned at = i;

        for (; at > 0 && strcmp(d->child[d->order[at - 1]].xl->name, d->child[i].xl->name) > 0; at--)
            d->order[at] = d->order[at - 1];
        d->order[at] = (uint16_t)i;
    }
}

static int
set_rules(struct dist *d, struct reason *why)
{
    const struct dist_conf *conf = dist_conf(d);
    const char *const texts[] = {conf->extra_regex, conf->rsync_regex};
    char error[256];

    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        if (hash_rule_set(&d->rules[i], texts[i], error, sizeof error))
            return reason_set(why, -EINVAL, "%s-hash-regex %s: %s", i ? "rsync" : "extra", texts[i], error);
    }
    return 0;
}

static void
dist_fini(struct xlator *xl)
{
    struct dist *d = xl->private;

    for (size_t i = 0; i < sizeof d->rules / sizeof d->rules[0]; i++)
        hash_rule_clear(&d->rules[i]);
    pthread_mutex_destroy(&d->lock);
    free(d->child);
    free(d->order);
    free(d);
}

static int
dist_init(struct xlator *xl, struct reason *why)
{
    struct dist *d = calloc(1, sizeof *d);

    if (xl->child_count == 0 || xl->child_count > LAYOUT_CHILDREN_MAX) {
        free(d);
        return reason_set(why, -EINVAL, "%u subvolumes", xl->child_count);
    }
    if (!d)
        return -ENOMEM;
    d->xl = xl;
    d->count = xl->child_count;
    d->child = calloc(d->count, sizeof *d->child);
    d->order = calloc(d->count, sizeof *d->order);
    pthread_mutex_init(&d->lock, NULL);
    errand_init(&d->settling, xl, settle_all);
    xl->private = d;
    int err = !d->child || !d->order || place_pool_init() ? -ENOMEM : set_rules(d, why);
    if (err) {
        dist_fini(xl);
        xl->private = NULL;
        return err;
    }
    for (unsigned i = 0; i < d->count; i++)
        d->child[i].xl = xl->children[i];
    sort_by_name(d);
    set_leaving(d);
    return 0;
}

static void
dist_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    place_free(ctx);
}

static void
dump_subvolume(struct dist *d, unsigned i, struct dump *dump)
{
    const struct xlator *child = d->child[i].xl;
    char key[40];

    snprintf(key, sizeof key, "subvolumes[%u]", i);
    dump_line(dump, key, "%s.%s", child->type->name, child->name);
    snprintf(key, sizeof key, "subvolume_status[%u]", i);
    dump_line(dump, key, "%d", child_is_up(d, i) ? 1 : 0);
    if (!child_is_leaving(d, i))
        return;
    snprintf(key, sizeof key, "subvolume_leaving[%u]", i);
    dump_line(dump, key, "1");
}

/* Names and values are as in a stock client's statedump where both report the same fact. */
static void
dist_dump(struct xlator *xl, struct dump *dump)
{
    struct dist *d = xl->private;

    dump_line(dump, "subvol_cnt", "%u", d->count);
    for (unsigned i = 0; i < d->count; i++)
        dump_subvolume(d, i, dump);
    dump_line(dump, "gen", "%u", atomic_load(&d->generation));
    dump_line(dump, "commit-hash", "%u", atomic_load(&d->commit));
}

const struct xlator_type cluster_distribute_xlator = {
    .name = "cluster/distribute",
    .options = dist_options,
    .conf_size = sizeof(struct dist_conf),
    .ops = &(const struct xlator_ops){.any = dist_any},
    .keeps = KEEPS(CTX_INODE),
    .traits = LAYER_FANS_OUT,
    .init = dist_init,
    .fini = dist_fini,
    .reconfigured = dist_reconfigured,
    .event = dist_event,
    .inode_forget = dist_inode_forget,
    .dump = dist_dump,
};
