/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* inode: the table of one brick.
 *
 * References: the count is changed without the mutex except for the steps 0 -> 1 (found in the table) and
 * 1 -> 0 (goes to the LRU list or is freed). So a count of 0 seen under the mutex stays 0 while the mutex
 * is held, and an inode is never freed while another thread finds it.
 *
 * Dentries hold no references: a dentry goes when its parent or its inode goes. Inodes to be freed are
 * taken out of both hashes under the mutex, collected on a local list and freed after unlocking, because
 * the layers' inode_forget may take their time.
 *
 * The hashes grow by doubling; the new array is allocated without the mutex.
 *
 * Every inode, hashed or not, is on the table's list `all` from its linking until its eviction: walks
 * (inode_table_each) and the count at the table's end use this list. New inodes are put in front, where no
 * walk has to look. A walk that unlocks the mutex has its position on the table's list of walks; the
 * thread that evicts the inode at that position moves the walk on. */
#include "fs/inode.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

#include "fs/fs-internal.h"
#include "graph/graph.h"
#include "mem/mem-ids.h"

#define BUCKETS_MIN 64u
#define DENTRY_SHORT 56u /* name bytes with NUL in the small type of dentry */

struct dentry {
    struct cds_list_head hash_link;
    struct cds_list_head inode_link;  /* on inode->dentries */
    struct cds_list_head parent_link; /* on parent->children */
    struct inode *inode, *parent;
    uint64_t hash;
    uint32_t len; /* of the name, without NUL */
    char name[];
};

struct hash {
    struct cds_list_head *buckets;
    uint32_t mask, count;
    bool is_growing;
};

struct inode_table {
    pthread_mutex_t lock;
    struct graph *graph;
    struct mem_pool *pool, *fd_pool; /* by the number of contexts that the graph's layers keep */
    struct hash inodes, names;
    struct cds_list_head lru; /* oldest first */
    struct cds_list_head all; /* newest first */
    struct cds_list_head walks; /* of struct walk */
    unsigned all_count;
    unsigned lru_count, lru_limit;
    struct inode *root;
    uint64_t seed; /* secret, because clients choose gfids and names and must not be able to choose buckets */
    uint32_t epochs[INODE_EPOCHS];
};

/* A walk over all inodes, on the stack of the walking thread. */
struct walk {
    struct cds_list_head link;
    struct cds_list_head *at; /* next inode to look at; the head of the list: done */
};

static struct mem_pool *dentry_pool, *dentry_long_pool;
static struct ctx_pools inode_pools = {.name = "struct inode", .head = sizeof(struct inode), .room = 6};

int
fs_pools_init(void)
{
    const size_t head = sizeof(struct dentry);
    int err = mem_pool_make(&inode_pools.usual, MEM_ID_INODE,
                            inode_pools.head + inode_pools.room * sizeof(void *), inode_pools.name);

    err = err ? err : mem_pool_make(&dentry_pool, MEM_ID_DENTRY, head + DENTRY_SHORT, "struct dentry");
    err = err ? err
              : mem_pool_make(&dentry_long_pool, MEM_ID_DENTRY_LONG, head + FOP_NAME_MAX + 1,
                              "struct dentry (long)");
    err = err ? err : fd_pool_init();
    return err ? err : brick_client_pool_init();
}

/* ---- hashes ---------------------------------------------------------------------------------- */

static struct cds_list_head *
buckets_new(uint32_t n)
{
    struct cds_list_head *b = malloc(n * sizeof *b);

    for (uint32_t i = 0; b && i < n; i++)
        CDS_INIT_LIST_HEAD(&b[i]);
    return b;
}

static uint64_t
inode_hash(const struct inode_table *t, const struct gfid *gfid)
{
    return XXH3_64bits_withSeed(gfid, sizeof *gfid, t->seed);
}

static uint64_t
inode_name_hash(const struct inode_table *t, const struct inode *parent, const char *name, size_t len)
{
    return XXH3_64bits_withSeed(name, len, t->seed ^ (uintptr_t)parent);
}

static void
move_inodes(struct inode_table *t, struct cds_list_head *fresh, uint32_t mask)
{
    struct inode *i, *next;

    for (uint32_t b = 0; b <= t->inodes.mask; b++)
        cds_list_for_each_entry_safe(i, next, &t->inodes.buckets[b], hash_link)
            cds_list_move(&i->hash_link, &fresh[inode_hash(t, &i->gfid) & mask]);
}

static void
move_names(struct inode_table *t, struct cds_list_head *fresh, uint32_t mask)
{
    struct dentry *d, *next;

    for (uint32_t b = 0; b <= t->names.mask; b++)
        cds_list_for_each_entry_safe(d, next, &t->names.buckets[b], hash_link)
            cds_list_move(&d->hash_link, &fresh[d->hash & mask]);
}

/* Doubles a full hash. Without memory the hash keeps its size and becomes slower. */
static void
hash_grow(struct inode_table *t, struct hash *h)
{
    pthread_mutex_lock(&t->lock);
    if (h->count <= h->mask || h->is_growing || h->mask >= UINT32_MAX / 4) {
        pthread_mutex_unlock(&t->lock);
        return;
    }
    uint32_t n = (h->mask + 1) * 2;
    h->is_growing = true;
    pthread_mutex_unlock(&t->lock);

    struct cds_list_head *fresh = buckets_new(n), *old = NULL;

    pthread_mutex_lock(&t->lock);
    if (fresh) {
        if (h == &t->inodes)
            move_inodes(t, fresh, n - 1);
        else
            move_names(t, fresh, n - 1);
        old = h->buckets;
        h->buckets = fresh;
        h->mask = n - 1;
    }
    h->is_growing = false;
    pthread_mutex_unlock(&t->lock);
    free(old);
}

/* ---- dentries -------------------------------------------------------------------------------- */

static struct dentry *
dentry_new(const struct inode_table *t, size_t len)
{
    return mem_get_owner(len < DENTRY_SHORT ? dentry_pool : dentry_long_pool, t->graph ? t->graph->owner : 0);
}

static void
dentry_free(struct dentry *d, size_t len)
{
    mem_put_t(len < DENTRY_SHORT ? MEM_ID_DENTRY : MEM_ID_DENTRY_LONG, d);
}

static struct dentry *
dentry_find_locked(struct inode_table *t, const struct inode *parent, const char *name, size_t len,
                   uint64_t hash)
{
    struct dentry *d;

    cds_list_for_each_entry(d, &t->names.buckets[hash & t->names.mask], hash_link)
        if (d->hash == hash && d->parent == parent && d->len == len && memcmp(d->name, name, len) == 0)
            return d;
    return NULL;
}

static void
dentry_remove_locked(struct inode_table *t, struct dentry *d)
{
    cds_list_del(&d->hash_link);
    cds_list_del(&d->inode_link);
    cds_list_del(&d->parent_link);
    t->names.count--;
    dentry_free(d, d->len);
}

static void
dentries_remove_locked(struct inode_table *t, struct inode *inode)
{
    struct dentry *d, *next;

    cds_list_for_each_entry_safe(d, next, &inode->dentries, inode_link)
        dentry_remove_locked(t, d);
    cds_list_for_each_entry_safe(d, next, &inode->children, parent_link)
        dentry_remove_locked(t, d);
}

static void
inode_put(const struct inode_table *t, struct inode *i)
{
    if (t->pool == inode_pools.usual)
        mem_put_t(MEM_ID_INODE, i);
    else
        mem_put(i);
}

/* ---- life of an inode ------------------------------------------------------------------------ */

static struct inode *
inode_alloc(struct inode_table *t, const struct gfid *gfid, uint32_t type)
{
    struct inode *i = mem_get0_owner(t->pool, t->graph ? t->graph->owner : 0);

    if (!i)
        return NULL;
    i->gfid = *gfid;
    i->table = t;
    i->type = type;
    refcount_init(&i->refs, 1);
    CDS_INIT_LIST_HEAD(&i->hash_link);
    CDS_INIT_LIST_HEAD(&i->lru_link);
    CDS_INIT_LIST_HEAD(&i->all_link);
    CDS_INIT_LIST_HEAD(&i->dentries);
    CDS_INIT_LIST_HEAD(&i->children);
    return i;
}

static void
inode_hash_locked(struct inode_table *t, struct inode *i)
{
    cds_list_add(&i->hash_link, &t->inodes.buckets[inode_hash(t, &i->gfid) & t->inodes.mask]);
    t->inodes.count++;
}

static void
inode_unhash_locked(struct inode_table *t, struct inode *i)
{
    if (!cds_list_empty(&i->hash_link)) {
        cds_list_del_init(&i->hash_link);
        t->inodes.count--;
    }
    dentries_remove_locked(t, i);
}

/* Takes a reference to an inode found in the table. No other function raises a count from 0 to 1. */
static struct inode *
inode_get_locked(struct inode_table *t, struct inode *i)
{
    if (atomic_fetch_add_explicit(&i->refs.n, 1, memory_order_acquire) == 0) {
        cds_list_del_init(&i->lru_link);
        t->lru_count--;
    }
    return i;
}

/* Undoes inode_get_locked(), for an inode that is hashed and stays hashed. */
static void
inode_give_back_locked(struct inode_table *t, struct inode *i)
{
    if (atomic_fetch_sub_explicit(&i->refs.n, 1, memory_order_acq_rel) == 1) {
        cds_list_add_tail(&i->lru_link, &t->lru);
        t->lru_count++;
    }
}

static struct inode *
inode_lookup_locked(struct inode_table *t, const struct gfid *gfid)
{
    struct inode *i;

    cds_list_for_each_entry(i, &t->inodes.buckets[inode_hash(t, gfid) & t->inodes.mask], hash_link)
        if (gfid_equal(&i->gfid, gfid))
            return i;
    return NULL;
}

/* Enters a new inode into the table. */
static void
inode_enter_locked(struct inode_table *t, struct inode *i)
{
    inode_hash_locked(t, i);
    cds_list_add(&i->all_link, &t->all);
    t->all_count++;
}

/* Takes an unreferenced inode that is not on the LRU list out of the table, for inodes_free(). */
static void
inode_evict_locked(struct inode_table *t, struct inode *i, struct cds_list_head *victims)
{
    struct walk *w;

    inode_unhash_locked(t, i);
    cds_list_for_each_entry(w, &t->walks, link) {
        if (w->at == &i->all_link)
            w->at = i->all_link.next;
    }
    cds_list_del(&i->all_link);
    t->all_count--;
    cds_list_add_tail(&i->lru_link, victims);
}

static void
lru_take_locked(struct inode_table *t, struct inode *i, struct cds_list_head *victims)
{
    cds_list_del(&i->lru_link);
    t->lru_count--;
    inode_evict_locked(t, i, victims);
}

static void
lru_prune_locked(struct inode_table *t, struct cds_list_head *victims)
{
    while (t->lru_limit && t->lru_count > t->lru_limit)
        lru_take_locked(t, cds_list_first_entry(&t->lru, struct inode, lru_link), victims);
}

/* The inode has lost a name. Without any name left it is not worth caching: the object may be gone from
 * the disk. */
static void
inode_name_lost_locked(struct inode_table *t, struct inode *i, struct cds_list_head *victims)
{
    if (i == t->root || !cds_list_empty(&i->dentries))
        return;
    i->is_doomed = true;
    if (atomic_load_explicit(&i->refs.n, memory_order_relaxed) == 0)
        lru_take_locked(t, i, victims);
}

/* Calls the layers' inode_forget and frees the inodes, which no other thread can reach. */
static void
inodes_free(struct inode_table *t, struct cds_list_head *victims)
{
    struct inode *i, *next;

    cds_list_for_each_entry_safe(i, next, victims, lru_link) {
        for (unsigned l = 0; t->graph && l < t->graph->layer_count; l++) {
            struct xlator *xl = &t->graph->layers[l];
            void *ctx = xl->slot[CTX_INODE] ? inode_ctx(i, xl) : NULL;

            if (ctx && xl->type->inode_forget)
                xl->type->inode_forget(xl, i, ctx);
        }
        inode_put(t, i);
    }
}

void
inode_unref_last(struct inode *inode)
{
    assert(atomic_load_explicit(&inode->refs.n, memory_order_relaxed) > 0);

    /* This is decided under the mutex, because until then the table may give out more references. */
    struct inode_table *t = inode->table;
    CDS_LIST_HEAD(victims);

    pthread_mutex_lock(&t->lock);
    if (atomic_fetch_sub_explicit(&inode->refs.n, 1, memory_order_acq_rel) == 1) {
        if (cds_list_empty(&inode->hash_link) || inode->is_doomed) {
            inode_evict_locked(t, inode, &victims);
        } else {
            cds_list_add_tail(&inode->lru_link, &t->lru);
            t->lru_count++;
            lru_prune_locked(t, &victims);
        }
    }
    pthread_mutex_unlock(&t->lock);
    inodes_free(t, &victims);
}

void
inode_forget(struct inode *inode)
{
    struct inode_table *t = inode->table;

    pthread_mutex_lock(&t->lock);
    if (inode != t->root)
        inode_unhash_locked(t, inode);
    pthread_mutex_unlock(&t->lock);
}

/* ---- finding --------------------------------------------------------------------------------- */

struct inode *
inode_root(struct inode_table *t)
{
    return inode_ref(t->root);
}

struct inode *
inode_find(struct inode_table *t, const struct gfid *gfid)
{
    pthread_mutex_lock(&t->lock);
    struct inode *i = inode_lookup_locked(t, gfid);

    if (i)
        inode_get_locked(t, i);
    pthread_mutex_unlock(&t->lock);
    return i;
}

struct inode *
inode_find_child(struct inode_table *t, struct inode *parent, const char *name)
{
    size_t len = strlen(name);
    uint64_t hash = inode_name_hash(t, parent, name, len);

    pthread_mutex_lock(&t->lock);
    struct dentry *d = dentry_find_locked(t, parent, name, len, hash);
    struct inode *i = d ? inode_get_locked(t, d->inode) : NULL;
    pthread_mutex_unlock(&t->lock);
    return i;
}

uint32_t
inode_name_epoch(struct inode_table *t, struct inode *parent, const char *name)
{
    return __atomic_load_n(&t->epochs[inode_name_hash(t, parent, name, strlen(name)) % INODE_EPOCHS],
                           __ATOMIC_ACQUIRE);
}

static void
epoch_bump_locked(struct inode_table *t, uint64_t hash)
{
    __atomic_store_n(&t->epochs[hash % INODE_EPOCHS], t->epochs[hash % INODE_EPOCHS] + 1, __ATOMIC_RELEASE);
}

/* ---- linking --------------------------------------------------------------------------------- */

/* A link under way. Objects that it may need are allocated without the mutex, and freed if not needed. */
struct linking {
    struct inode_table *t;
    struct inode *parent;
    const char *name;
    size_t len;
    uint64_t hash;
    const uint32_t *epoch;       /* of this name */
    const struct inode_epochs *epochs; /* or of all names; both NULL: the name is certainly true */
    struct inode *spare_inode;
    struct dentry *spare_dentry;
    struct cds_list_head victims;
};

static void
dentry_add_locked(struct linking *l, struct inode *inode)
{
    struct dentry *d = l->spare_dentry;

    l->spare_dentry = NULL;
    d->inode = inode;
    d->parent = l->parent;
    d->hash = l->hash;
    d->len = (uint32_t)l->len;
    memcpy(d->name, l->name, l->len + 1);
    cds_list_add(&d->hash_link, &l->t->names.buckets[l->hash & l->t->names.mask]);
    cds_list_add(&d->inode_link, &inode->dentries);
    cds_list_add(&d->parent_link, &l->parent->children);
    l->t->names.count++;
    inode->is_doomed = false;
}

/* Does the name still lead to the inode, as far as the table knows? */
static bool
is_name_true_locked(const struct linking *l)
{
    const uint32_t *then = l->epochs ? &l->epochs->at[l->hash % INODE_EPOCHS] : l->epoch;

    if (then && l->t->epochs[l->hash % INODE_EPOCHS] != *then)
        return false; /* the name was removed meanwhile */
    return !cds_list_empty(&l->parent->hash_link); /* else the directory itself is gone */
}

/* False: a spare dentry is needed first. */
static bool
link_name_locked(struct linking *l, struct inode *inode)
{
    struct inode_table *t = l->t;

    if (!is_name_true_locked(l))
        return true;
    struct dentry *d = dentry_find_locked(t, l->parent, l->name, l->len, l->hash);

    if (d && d->inode == inode) {
        inode->is_doomed = false;
        return true;
    }
    if (!l->spare_dentry)
        return false;
    if (d) {
        struct inode *was = d->inode;

        dentry_remove_locked(t, d);
        inode_name_lost_locked(t, was, &l->victims);
    }
    if (S_ISDIR(inode->type)) { /* a directory has one name only: an older name is out of date */
        struct dentry *old, *next;

        cds_list_for_each_entry_safe(old, next, &inode->dentries, inode_link)
            dentry_remove_locked(t, old);
    }
    dentry_add_locked(l, inode);
    return true;
}

/* Returns the inode with a reference; NULL: a spare inode or dentry is needed first. */
static struct inode *
link_locked(struct linking *l, const struct iatt *iatt)
{
    struct inode_table *t = l->t;
    uint32_t type = iatt->mode & S_IFMT;
    struct inode *i = inode_lookup_locked(t, &iatt->gfid);
    bool is_old = i != NULL;

    /* The gfid has been used again for another kind of object. A reply that may be older than the inode is
     * no proof of that. */
    if (i && i->type && type && i->type != type && i != t->root && l->parent && is_name_true_locked(l)) {
        if (!l->spare_inode)
            return NULL;
        inode_unhash_locked(t, i);
        if (atomic_load_explicit(&i->refs.n, memory_order_relaxed) == 0)
            lru_take_locked(t, i, &l->victims);
        i = NULL;
        is_old = false;
    }
    if (!i && !(i = l->spare_inode))
        return NULL;
    if (is_old)
        inode_get_locked(t, i); /* before a name is replaced: this inode must not become the victim */
    if (!l->parent) {
        i->is_doomed = false;
    } else if (i != t->root && !link_name_locked(l, i)) {
        if (is_old) /* until the spare dentry has been allocated */
            inode_give_back_locked(t, i);
        return NULL;
    }
    if (!is_old) {
        l->spare_inode = NULL;
        inode_enter_locked(t, i);
    }
    return i;
}

static struct inode *
link_loop(struct linking *l, const struct iatt *iatt)
{
    struct inode_table *t = l->t;

    for (bool is_second = false;; is_second = true) {
        pthread_mutex_lock(&t->lock);
        struct inode *i = link_locked(l, iatt);
        bool is_full = t->inodes.count > t->inodes.mask || t->names.count > t->names.mask;
        pthread_mutex_unlock(&t->lock);
        if (i) {
            if (is_full) {
                hash_grow(t, &t->inodes);
                hash_grow(t, &t->names);
            }
            return i;
        }
        if (is_second) /* cannot happen: both spares were allocated */
            return NULL;
        l->spare_inode = inode_alloc(t, &iatt->gfid, iatt->mode & S_IFMT);
        if (l->parent)
            l->spare_dentry = dentry_new(t, l->len);
        if (!l->spare_inode || (l->parent && !l->spare_dentry))
            return NULL;
    }
}

static struct inode *
link_any(struct inode_table *t, struct inode *parent, const char *name, const struct iatt *iatt,
         const uint32_t *epoch, const struct inode_epochs *epochs)
{
    struct linking l = {.t = t, .parent = parent, .name = name, .epoch = epoch, .epochs = epochs};

    CDS_INIT_LIST_HEAD(&l.victims);
    l.len = parent ? strlen(name) : 0;
    if (gfid_is_null(&iatt->gfid) || (parent && (l.len == 0 || l.len > FOP_NAME_MAX)))
        return NULL;
    if (parent)
        l.hash = inode_name_hash(t, parent, name, l.len);
    struct inode *i = link_loop(&l, iatt);

    inode_put(t, l.spare_inode);
    dentry_free(l.spare_dentry, l.len);
    inodes_free(t, &l.victims);
    return i;
}

struct inode *
inode_link(struct inode_table *t, struct inode *parent, const char *name, const struct iatt *iatt)
{
    return link_any(t, parent, name, iatt, NULL, NULL);
}

struct inode *
inode_link_epoch(struct inode_table *t, struct inode *parent, const char *name, const struct iatt *iatt,
                 uint32_t epoch)
{
    return link_any(t, parent, name, iatt, &epoch, NULL);
}

void
inode_epochs_take(struct inode_table *t, struct inode_epochs *out)
{
    for (unsigned i = 0; i < INODE_EPOCHS; i++)
        out->at[i] = __atomic_load_n(&t->epochs[i], __ATOMIC_ACQUIRE);
}

struct inode *
inode_link_listed(struct inode_table *t, struct inode *parent, const char *name, const struct iatt *iatt,
                  const struct inode_epochs *epochs)
{
    return link_any(t, parent, name, iatt, NULL, epochs);
}

void
inode_unlink(struct inode_table *t, struct inode *parent, const char *name)
{
    size_t len = strlen(name);
    uint64_t hash = inode_name_hash(t, parent, name, len);
    CDS_LIST_HEAD(victims);

    pthread_mutex_lock(&t->lock);
    epoch_bump_locked(t, hash);
    struct dentry *d = dentry_find_locked(t, parent, name, len, hash);

    if (d) {
        struct inode *was = d->inode;

        dentry_remove_locked(t, d);
        inode_name_lost_locked(t, was, &victims);
    }
    pthread_mutex_unlock(&t->lock);
    inodes_free(t, &victims);
}

void
inode_rename(struct inode_table *t, struct inode *parent, const char *name, struct inode *parent2,
             const char *name2, struct inode *inode)
{
    size_t len = strlen(name), len2 = strlen(name2);
    uint64_t hash = inode_name_hash(t, parent, name, len), hash2 = inode_name_hash(t, parent2, name2, len2);

    if (parent == parent2 && len == len2 && memcmp(name, name2, len) == 0)
        return;
    pthread_mutex_lock(&t->lock);
    epoch_bump_locked(t, hash);
    epoch_bump_locked(t, hash2);
    struct dentry *d = dentry_find_locked(t, parent, name, len, hash);

    if (d) /* the caller holds `inode`; if the dentry leads to another inode, only the name is forgotten */
        dentry_remove_locked(t, d);
    pthread_mutex_unlock(&t->lock);

    struct iatt iatt = {.gfid = inode->gfid, .mode = inode->type};

    inode_unref(inode_link(t, parent2, name2, &iatt));
}

/* ---- contexts -------------------------------------------------------------------------------- */

void *
inode_ctx_install(struct inode *inode, const struct xlator *xl, void *fresh)
{
    void *was = NULL;

    if (atomic_compare_exchange_strong_explicit(&inode->ctx[xl->slot[CTX_INODE] - 1], &was, fresh,
                                                memory_order_acq_rel, memory_order_acquire))
        return fresh;
    return was;
}

#define EACH_BATCH 64
#define EACH_LOOK_MAX                                                                                        \
    4096 /* inodes without a context that a walk passes before it unlocks the mutex for others */

/* Returns the next inodes of a walk that have a context, with references. 0 does not mean that the walk is
 * done: see walk.at. */
static unsigned
walk_collect_locked(struct inode_table *t, const struct xlator *xl, struct walk *w, struct inode **out)
{
    unsigned n = 0;

    for (unsigned looked = 0; w->at != &t->all && n < EACH_BATCH && looked < EACH_LOOK_MAX; looked++) {
        struct inode *i = caa_container_of(w->at, struct inode, all_link);

        w->at = w->at->next;
        if (inode_ctx(i, xl))
            out[n++] = inode_get_locked(t, i);
    }
    return n;
}

void
inode_table_each(struct inode_table *t, const struct xlator *xl,
                 void (*fn)(struct inode *inode, void *ctx, void *arg), void *arg)
{
    struct inode *batch[EACH_BATCH];
    struct walk w;

    pthread_mutex_lock(&t->lock);
    w.at = t->all.next;
    cds_list_add(&w.link, &t->walks);
    while (w.at != &t->all) {
        unsigned n = walk_collect_locked(t, xl, &w, batch);

        pthread_mutex_unlock(&t->lock);
        for (unsigned k = 0; k < n; k++) {
            fn(batch[k], inode_ctx(batch[k], xl), arg);
            inode_unref(batch[k]);
        }
        pthread_mutex_lock(&t->lock);
    }
    cds_list_del(&w.link);
    pthread_mutex_unlock(&t->lock);
}

/* ---- the table ------------------------------------------------------------------------------- */

struct inode_table *
inode_table_new(struct graph *graph, uint32_t lru_limit)
{
    struct inode_table *t = calloc(1, sizeof *t);

    if (!t)
        return NULL;
    t->graph = graph;
    t->lru_limit = lru_limit;
    CDS_INIT_LIST_HEAD(&t->lru);
    CDS_INIT_LIST_HEAD(&t->all);
    CDS_INIT_LIST_HEAD(&t->walks);
    pthread_mutex_init(&t->lock, NULL);
    if (getrandom(&t->seed, sizeof t->seed, GRND_NONBLOCK) != sizeof t->seed)
        t->seed = (uintptr_t)t; /* early boot: better than a constant */
    t->inodes = (struct hash){.buckets = buckets_new(BUCKETS_MIN), .mask = BUCKETS_MIN - 1};
    t->names = (struct hash){.buckets = buckets_new(BUCKETS_MIN), .mask = BUCKETS_MIN - 1};
    t->pool = ctx_pool_for(&inode_pools, graph ? graph->slots[CTX_INODE] : 0);
    t->fd_pool = ctx_pool_for(&fd_pools, graph ? graph->slots[CTX_FD] : 0);
    t->root = t->pool && t->fd_pool ? inode_alloc(t, &gfid_root, S_IFDIR) : NULL;
    if (!t->inodes.buckets || !t->names.buckets || !t->root) {
        inode_put(t, t->root);
        free(t->inodes.buckets);
        free(t->names.buckets);
        pthread_mutex_destroy(&t->lock);
        free(t);
        return NULL;
    }
    inode_enter_locked(t, t->root);
    return t;
}

struct mem_pool *
inode_table_fd_pool(const struct inode_table *t)
{
    return t->fd_pool;
}

struct graph *
inode_table_graph(const struct inode_table *t)
{
    return t->graph;
}

uint32_t
inode_table_limit(struct inode_table *t)
{
    pthread_mutex_lock(&t->lock);
    uint32_t limit = t->lru_limit;
    pthread_mutex_unlock(&t->lock);
    return limit;
}

void
inode_table_set_limit(struct inode_table *t, uint32_t lru_limit)
{
    CDS_LIST_HEAD(victims);

    pthread_mutex_lock(&t->lock);
    t->lru_limit = lru_limit;
    lru_prune_locked(t, &victims);
    pthread_mutex_unlock(&t->lock);
    inodes_free(t, &victims);
}

unsigned
inode_table_free(struct inode_table *t)
{
    CDS_LIST_HEAD(victims);

    if (!t)
        return 0;
    pthread_mutex_lock(&t->lock);
    while (!cds_list_empty(&t->lru))
        lru_take_locked(t, cds_list_first_entry(&t->lru, struct inode, lru_link), &victims);
    if (atomic_load(&t->root->refs.n) == 1)
        inode_evict_locked(t, t->root, &victims);
    unsigned left = t->all_count;
    pthread_mutex_unlock(&t->lock);
    inodes_free(t, &victims);
    if (left) /* references to these inodes remain, so the table must stay, too */
        return left;
    free(t->inodes.buckets);
    free(t->names.buckets);
    pthread_mutex_destroy(&t->lock);
    free(t);
    return 0;
}

int
inode_path(struct inode *inode, char *path, size_t size)
{
    struct inode_table *t = inode->table;
    size_t at = size; /* written from the end */
    int err = 0;

    if (size < 2)
        return -ENAMETOOLONG;
    path[--at] = '\0';
    pthread_mutex_lock(&t->lock);
    if (inode == t->root)
        path[--at] = '/';
    for (struct inode *i = inode; i != t->root;) {
        if (cds_list_empty(&i->dentries)) {
            err = -ENOENT;
            break;
        }
        const struct dentry *d = cds_list_first_entry(&i->dentries, struct dentry, inode_link);

        if (at < d->len + 1u) {
            err = -ENAMETOOLONG; /* also ends a loop of names */
            break;
        }
        at -= d->len;
        memcpy(path + at, d->name, d->len);
        path[--at] = '/';
        i = d->parent;
    }
    pthread_mutex_unlock(&t->lock);
    if (!err)
        memmove(path, path + at, size - at);
    return err;
}

void
inode_table_stats(struct inode_table *t, struct inode_table_stats *out)
{
    pthread_mutex_lock(&t->lock);
    *out = (struct inode_table_stats){.inodes = t->inodes.count,
                                      .unhashed = t->all_count - t->inodes.count,
                                      .lru = t->lru_count,
                                      .dentries = t->names.count};
    pthread_mutex_unlock(&t->lock);
}
