/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal: the repair of fragments, attributes and names on children that are behind, by the protocol of stock
 * healers. heal.c has the queue of background heals and attributes, heal-data.c fragments, heal-entry.c
 * names, heal-move.c objects that were renamed, crawl.c the pending objects that the bricks list
 * (index-list.c), crawl-tree.c the whole tree, dead-objects.c objects that a client was changing when it
 * died.
 *
 * Every heal needs more than K children, and its first step locks the object, or a part of it, as every
 * operation does. A healer keeps other healers away by a second lock on the object, in the domain
 * NAME:self-heal. State after the death of the healer or of a brick at any step:
 *
 *      data       the sinks' versions have bit 62 (a heal has begun), or are still lower: they are not read,
 *                 and the next heal begins anew. The version of a sink rises in one XATTROP after all its
 *                 fragments were written
 *      metadata   the sinks' metadata versions are still lower: again
 *      names      the folder's data versions are still lower: again. A name that was made on a sink leads to
 *                 an empty object of version 0; the object was marked dirty on the other children before. A
 *                 RENAME that a dead client left half done may have been completed or taken back on some
 *                 children: again (heal-move.c)
 *
 * The dirty counters are lowered last, by their values at the beginning of the heal, and only if all N
 * children took part.
 *
 * An object, a name of a folder and a block of a file are units of the throttle (heal-throttle.h): the heals
 * of the self-heal daemon give way to clients. No lock on the object is held while a unit waits, only that on
 * healers. */
#ifndef KILN_CLUSTER_DISPERSE_HEAL_H
#define KILN_CLUSTER_DISPERSE_HEAL_H

#include "xlators/cluster/disperse/disperse-internal.h"
#include "xlators/cluster/name-sets.h"

#define VERSION_HEALING (UINT64_C(1) << 62) /* in the data word: this child is being healed */

/* A child's object. */
struct ec_copy {
    struct iatt stat; /* size: that of the fragment */
    uint64_t version[2], dirty[2], size;
};

/* Returns whether the counters are those of a whole copy: not being healed, and no values that only damage
 * explains. */
static inline bool
ec_copy_is_source(const struct ec_copy *c)
{
    return c->version[WORD_DATA] < VERSION_HEALING && c->size <= INT64_MAX;
}

struct ec_heal {
    struct ec_op op; /* the heal's own operation; op.inode is the object */
    uint8_t lock_owner[8], healer_owner[8];
    uint32_t generation; /* the layer's generation when the heal began */
    child_set on;        /* children that were up then */
    /* from the latest heal_see() */
    child_set has, lacks; /* children with and without the object; those in neither did not answer */
    struct ec_copy copy[FAN_CHILDREN_MAX];
    bool compares_all;       /* HEAL_DEAD_WRITE */
    bool is_patient;         /* the heal may come later: clients that can mend the file come first */
    struct name_sets *names; /* HEAL_DEAD: the names that each child lists; NULL: all names are looked up */
    uint64_t unit_ns; /* heal-throttle.h: when the present unit has begun */
};

/* Prepares a heal; takes a reference to the inode. */
void ec_heal_begin(struct ec_heal *h, struct disperse *d, struct inode *inode);
void ec_heal_end(struct ec_heal *h);
/* Returns whether the heal must stop: the mount is ending, or a child has come or gone, and with its
 * connection its locks. */
bool ec_heal_must_stop(const struct ec_heal *h);
/* Locks the object on all children of h->on: 0 or -errno. */
int ec_heal_lock(struct ec_heal *h, struct inode *inode);
void ec_heal_unlock(struct ec_heal *h, struct inode *inode);
/* Keeps other healers away, without waiting: 0, or -EAGAIN: another healer is at work. */
int ec_healer_lock(struct ec_heal *h);
void ec_healer_unlock(struct ec_heal *h);
/* Reads attributes and counters of all children. Returns 0, or -errno if K or fewer have the object. */
int ec_heal_see(struct ec_heal *h);
/* Adds of[i] to version, dirty counter and size of child i's object, on the children of `on` at once. Returns
 * 0 or the first -errno; *done (NULL allowed): the children that have done it. */
struct ec_change {
    uint64_t version[2], dirty[2], size;
};
int ec_heal_add(const struct ec_heal *h, child_set on, struct inode *inode, const struct ec_change of[],
                child_set *done);
/* Lowers the dirty counter `word` of the children of `of` by its value in the latest heal_see(), if all
 * children took part. */
int ec_heal_clear_dirty(struct ec_heal *h, child_set of, unsigned word);
/* Winds the call to child i, waits and frees it. Returns as coro_call(); NULL as `stk` gives -ENOMEM. */
int ec_heal_send(const struct ec_heal *h, unsigned i, struct call_stack *stk);
/* Returns a call about the object for child i; NULL: out of memory. */
struct call_stack *ec_heal_call(const struct ec_heal *h, enum fop fop, unsigned i);

/* Objects or names that are healed at once (coro_each()): the heal of a small object is a row of messages,
 * each of which waits for the one before. */
enum { HEAL_LANES = 8 };

/* Heal one kind. Return 0, also if nothing was to heal, or -errno. */
int ec_heal_data(struct ec_heal *h);
int ec_heal_metadata(struct ec_heal *h);
int ec_heal_entries(struct ec_heal *h);
/* True for names that belong to each brick alone, and for . and .. */
bool ec_heal_is_brick_own(const struct inode *dir, const char *name);
/* Renames the object `inode` on child i to `name` in the folder h->op.inode, whose lock the heal has. Returns
 * 0; -ENOENT: the child has it nowhere; -EAGAIN: its old parent is locked there; or -errno. */
int ec_heal_move(const struct ec_heal *h, unsigned i, struct inode *inode, const char *name);
/* The other way round: from `name` to a name that a child of `of` has for it. Returns 0; -EAGAIN: not yet;
 * -ENODATA: these children report no name, or child i has a second folder of the gfid; or -errno. */
int ec_heal_move_back(const struct ec_heal *h, unsigned i, child_set of, struct inode *inode,
                      const char *name);
/* Returns whether another child has another object at child i's name of the object: a RENAME had that object
 * as its target. */
bool ec_heal_move_would_uncover(const struct ec_heal *h, unsigned i, struct inode *inode);
/* Parts of an object that a heal compares although the counters show no difference: */
enum ec_heal_how {
    HEAL_MARKED,     /* nothing */
    HEAL_FOR_CALL,   /* nothing; a call waits for the heal */
    HEAL_FULL,       /* attributes, and all names of a folder */
    HEAL_DEAD,       /* the same, but of a large folder only the names that some children do not list */
    HEAL_DEAD_WRITE, /* attributes and contents */
};
/* Heals all kinds of the object. Returns 0 or -errno; *was_whole: the counters showed nothing to heal. */
int ec_heal_object(struct disperse *d, struct inode *inode, enum ec_heal_how how, bool *was_whole);
/* Looks at the object on all children. Returns its type (S_IFMT bits); 0: unknown; *is_gone: no child has
 * it. */
uint32_t ec_heal_type(struct disperse *d, struct inode *inode, bool *is_gone);
/* dead-objects.c: the comparison of objects that a client was changing when it died. */
extern const struct dead_changes_of dead_objects;

/* Returns the largest group of children with the same data version and size, in the latest heal_see(). */
child_set ec_largest_equal(const struct ec_heal *h);
/* Gives the children `of` the same version, if they differ only because a client died before a change.
 * Returns 0, also if K have the same version already, or -errno. */
int ec_mend_raise(struct disperse *d, struct inode *inode, child_set of);

/* Queues a background heal of an object with children that are behind. */
void ec_heal_soon(struct disperse *d, struct inode *inode);

/* ---- index-list.c: the list of pending objects of a brick -------------------------------------- */

struct index_entry {
    struct gfid gfid;
    uint32_t type; /* S_IFMT bits; 0: not known */
    bool is_done, is_gone;
};

struct index_list {
    struct index_entry *at; /* to be freed */
    size_t count, room;
    bool is_cut;  /* there are more, without memory or beyond the bound */
    bool is_busy; /* an object was locked by another client */
};

/* Returns the virtual directory of child i's index: a reference; NULL: the brick has none. */
struct inode *ec_index_directory(const struct ec_heal *h, unsigned i);
/* Adds the entries of the index to the list, and sorts the list by gfid. Returns 0 or -errno. */
int ec_index_read(const struct ec_heal *h, unsigned i, struct inode *dir, struct index_list *l);
/* Returns the entry of the object in a sorted list; NULL: none. */
const struct index_entry *ec_index_find(const struct index_list *l, const struct gfid *gfid);

/* ---- crawl.c: the self-heal daemon's work, with the option iam-self-heal-daemon --------------- */

/* Starts the timer of crawls. */
void ec_crawl_start(struct disperse *d);
/* Starts a crawl soon, because a child has come up. */
void ec_crawl_child_up(struct disperse *d);
/* Ends the crawls; returns when none runs. */
void ec_crawl_stop(struct disperse *d);
/* Heals an object for the looks at child i; sets *is_busy if another client kept it locked. Returns 0 or
 * -errno; *was_whole as ec_heal_object(). */
int ec_crawl_object(struct disperse *d, unsigned i, struct inode *inode, bool is_full, bool *was_whole);
/* crawl-tree.c: walks the whole tree, if a full crawl is due. Sets *is_busy if another client kept an object
 * locked. */
void ec_crawl_tree(struct disperse *d, bool *is_busy);

#endif
