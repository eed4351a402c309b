/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal: repair of replicas, by the mount and by the self-heal daemon kiln-heal. Each kind has a file:
 *
 *   heal-name.c      a name that only some children have, found by a LOOKUP      always
 *   heal-metadata.c  owner, mode, times, xattrs                       option metadata-self-heal; where no
 *                                                                     copy is accused, always
 *   heal-entry.c     the names of a directory                         option entry-self-heal
 *   heal-data.c      the contents of a file                           option data-self-heal
 *   heal-park.c      objects that a heal removes from a folder, or moves into it
 *   heal.c           shared functions, and the queue of background heals
 *   crawl.h          the self-heal daemon: reads the bricks' indices, or the whole tree, and heals
 *
 * The three options are off in a mount unless the volume turns them on, as in stock mounts, because the
 * self-heal daemon does that work. Mount and daemon heal by the protocol of stock's daemon, as pid -6 of
 * root, so that no healer interferes with another:
 *
 *      all children are up, or the heal does nothing
 *      lock       the healers' domain, if it is free: else another healer is at work. Not for names
 *      lock       the lock of changes of that kind, on all children
 *      look       LOOKUP on all children: reads the counters (pending xattrs) under the lock
 *      decide     changelog_direction(): from copies that no copy accuses to accused copies. Without an
 *                 unaccused copy the object is in split-brain (split-brain.c)
 *      mend       the accused copies
 *      count back subtract the counters read under the lock, no more: changes counted meanwhile stay counted
 *      unlock
 *
 * A child that fails during the repair stays accused. A heal that stops in the middle (the mount ends, a
 * child goes down) leaves the counters as they were, so that the next healer begins from the start.
 * Meanwhile readers use the good copies.
 *
 * Why all children must be up, although two of three could often heal each other: the missing child may
 * accuse the source. A direction from two copies would then copy a stale object over a good one, or remove
 * a name that only the missing child knows to be new, and the accusations that would have shown this are
 * counted back. Stock's daemon has the same rule.
 *
 * thread: a heal runs in a separate coroutine, or in the coroutine of a LOOKUP; struct heal needs no lock.
 * Coroutines that heal names or blocks of the object at the same time have copies (heal_copy()). */
#ifndef KILN_CLUSTER_REPLICATE_HEAL_H
#define KILN_CLUSTER_REPLICATE_HEAL_H

#include "xlators/cluster/name-sets.h"
#include "xlators/cluster/replicate/replicate-internal.h"

enum favorite { FAVORITE_NONE, FAVORITE_SIZE, FAVORITE_CTIME, FAVORITE_MTIME, FAVORITE_MAJORITY };
enum heal_algorithm { HEAL_DYNAMIC, HEAL_DIFF, HEAL_FULL };

struct heal {
    struct op op; /* the heal's own operation; op.inode is the object to heal */
    uint8_t owner[8];
    uint32_t generation; /* the layer's generation when the heal began */
    /* from the latest heal_look() */
    struct replica replica[REPLICAS_MAX];
    struct iatt stat[REPLICAS_MAX];
    struct direction way;
    bool has_chosen; /* `chosen` is the source, because a user or a policy has resolved the split-brain */
    unsigned chosen;
    bool wants_all_names; /* compare all names of the folder, even if the counters are 0 */
    struct name_sets *names; /* ... but look up only names that some children do not list; NULL: all names */
    bool gives_gfids;     /* give an object that has no gfid on any child a random one */
    unsigned width;       /* number of names of a folder to heal at a time; 0: one */
    child_set gone;       /* from the latest heal_look(): children that do not have the object */
    bool attributes_differ; /* from the latest heal_look(): owner, mode or xattrs differ */
    int why;              /* first errno (positive) of a sink, or 0 */
    unsigned why_child;   /* ... and the sink's index */
    uint64_t unit_ns;  /* heal-throttle.h: when the present unit has begun */
    struct gfid fresh; /* gfid for an object that has none on any child; null: give none */
};

/* Prepares a heal; takes a reference to the inode. */
void heal_begin(struct heal *h, struct replicate *r, struct inode *inode);
void heal_end(struct heal *h);
/* Makes *to a heal of the same object for another coroutine, with a lock owner of its own, but without a
 * reference. *from must outlive the copy. */
void heal_copy(struct heal *to, const struct heal *from);
/* Returns whether the heal must stop: the mount is ending, or a child has gone down, even if it is up
 * again. The child's locks ended with the connection, and with the locks the validity of the look: a source
 * that has missed a write since would overwrite that write on the sinks. */
bool heal_must_stop(const struct heal *h);

/* Takes the lock on all children or none: 0 or -errno. heal_lock_alone() does not wait (-EAGAIN). */
int heal_lock(struct heal *h, const struct lock_entity *e);
int heal_lock_alone(struct heal *h, const struct lock_entity *e);
void heal_unlock(struct heal *h, const struct lock_entity *e);

/* Sends LOOKUP by gfid to all children and computes sources and sinks of this kind. Returns 0, or -errno if
 * a child does not have the object. */
int heal_look(struct heal *h, enum change what);
/* Computes sources and sinks of another kind from the same look. */
void heal_direct(struct heal *h, enum change what);
/* Returns whether the latest look found counters of this kind that call for a heal. */
bool heal_is_marked(const struct heal *h, enum change what);
/* Returns whether the latest look found files of different sizes. The arbiter's file is always empty. */
bool heal_sizes_differ(const struct heal *h);
/* Notes the errno (positive) with which a sink has failed. */
void heal_note(struct heal *h, unsigned child, int why);
/* Returns a call of `fop` about the inode for child i, for the caller to fill in. NULL: out of memory. */
struct call_stack *heal_call(const struct heal *h, enum fop fop, unsigned i);
/* As heal_call(), with an fd that is valid for this one call. */
struct call_stack *heal_fd_call(const struct heal *h, enum fop fop, unsigned i);
/* As heal_call(), about a name in a folder. */
struct call_stack *heal_name_call(const struct heal *h, enum fop fop, unsigned i, struct inode *dir,
                                  const char *name);
/* Called for each name in the folder of child i, except the dots. Returns -errno, or a number that
 * heal_list() sums up. */
typedef int heal_name_fn(struct heal *h, unsigned i, struct inode *dir, const char *name);
/* Returns the sum, or an error as -errno; an error does not stop the listing. Calls `each` for h->width
 * names at a time, each with a copy of *h. */
int heal_list(struct heal *h, unsigned i, struct inode *dir, heal_name_fn *each);
/* Winds the call to child i, waits and frees it. Returns as coro_call(); NULL as `stk` gives -ENOMEM. */
int heal_send(const struct heal *h, unsigned i, struct call_stack *stk);
/* Subtracts the counters of that kind, as of the latest heal_look(), on all children except `failed`, which
 * are accused. */
int heal_count_back(struct heal *h, enum change what, child_set failed);

/* heal-name.c: heals op->dir and op->name, a name that only some children have, or that leads to different
 * objects. The caller looks the name up again. Returns 0, or -errno if the heal failed. */
int heal_name(struct op *op);
/* Returns whether all children have the same object behind the name, or none has one. False if a child
 * cannot answer. */
bool heal_name_is_whole(struct heal *h, const char *name);
/* Heals a name under a lock that the caller holds: h->op.inode is the directory, h->way the direction of
 * its entries. Returns 1: the children had different objects, and the name was mended; 0: no difference; or
 * -errno. */
int heal_name_locked(struct heal *h, const char *name);
/* A LOOKUP of the name on child i that also finds an object without a gfid: its gfid in the reply is null.
 * NULL: no memory. */
struct call_stack *heal_lookup_make(const struct heal *h, unsigned i, struct inode *dir, const char *name);
/* Gives child i's object, which has no gfid, one of its own, so that calls reach the object. *stat holds its
 * attributes and gets the gfid. A brick that dies while it creates an object leaves the object empty and
 * without a gfid. An object that holds data came to the brick some other way, and a heal does not remove it:
 * -EIO. Returns 0 or -errno. */
int heal_give_gfid(const struct heal *h, unsigned i, struct inode *dir, const char *name, struct iatt *stat);

/* ---- heal-park.c ----------------------------------------------------------------------------- */

/* Returns 0 if child i has the object under any name, with its attributes in *out (may be NULL); -ENOENT or
 * -errno. */
int heal_look_by_gfid(const struct heal *h, unsigned i, struct inode *inode, struct iatt *out);
/* Returns whether a child other than this one has the object, under any name. An unknown answer counts as
 * yes. */
bool heal_lives_elsewhere(const struct heal *h, unsigned child, const struct iatt *stat);
/* Makes the volume's hidden folder on all children, as stock's daemon does at its first crawl, so that the
 * roots are equal. A failure shows when an object is parked. */
void heal_make_hidden(const struct heal *h);
/* True for the hidden folder, whose names are each child's own. */
bool heal_is_hidden(const struct replicate *r, const struct inode *dir);
/* Parks the object behind the name on child i. -EBUSY: the volume has no hidden folder. */
int heal_park(const struct heal *h, unsigned i, struct inode *dir, const char *name,
              const struct iatt *stat);
/* Unlinks the parked name of a file that has another name on child i. Two heals of different folders can
 * leave both: the first parks the file's last name there while the second links its new one. So each heal
 * that parks or links a file calls this afterwards. No parked name is no error. */
int heal_unpark_named(const struct heal *h, unsigned i, struct inode *inode);
/* Links or moves a parked object of child i to the name. -EBUSY: the object is not parked. */
int heal_bring_back(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir,
                    const char *name);
/* Moves a folder from its current place on child i to the name, on which the caller has the lock. If h->way
 * has no direction, and the counters of the folder's old place say that child i is right, the folder stays:
 * the heal of the old place moves the other copies. -EBUSY: not now. */
int heal_move_folder(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir,
                     const char *name);
/* Removes parked objects that no other child has. */
void heal_clear_parked(struct replicate *r);

/* ---- kinds of heals -------------------------------------------------------------------------- */

/* Heals h->op.inode. Returns 0, also if all copies were equal, or -errno. */
int heal_metadata(struct heal *h);
/* After a LOOKUP on all children: returns whether owner, mode or xattrs differ. */
bool heal_attributes_differ(const struct fan *f);
int heal_entries(struct heal *h);
/* Returns whether the name is one of the volume's own folders in `dir`, which a heal leaves alone. */
bool heal_is_reserved_name(const struct inode *dir, const char *name);
int heal_data(struct heal *h);

/* dead-folders.c: the comparison of folders whose names a client was changing when it died. */
extern const struct dead_changes_of dead_folders;

/* ---- split-brain.c --------------------------------------------------------------------------- */

enum { SPLIT_CHOICE_MINUTES = 5 };
/* Returns the child of `set`, with attributes in stat[], that the volume's policy selects; -1: none. */
int split_favorite(const struct replicate *r, const struct iatt *stat, child_set set);
/* If the view says split-brain and the volume has a policy: applies the policy and returns true; the caller
 * refreshes the view. Not in a read section. */
bool split_ask_policy(struct replicate *r, struct inode *inode, const struct view *v);
/* Returns the child that a user has chosen to read the file from; -1: none. */
int split_choice(struct replicate *r, struct inode *inode);
/* Handle the xattrs by which users inspect and resolve split-brain. False: another xattr. True: the call is
 * answered. */
bool split_set(struct op *op);
bool split_get(struct op *op);

/* Queues a background heal of all names of a folder, after one name was found to differ though no copy is
 * accused. */
void heal_all_names_soon(struct replicate *r, struct inode *dir);
/* Queues a background heal of an object that a heal of names has made empty on a child, or of a link file
 * to which it has given a name there, if the mount heals such objects. Without this call the object stays
 * accused until a LOOKUP meets it, and a LOOKUP may never come: distribute asks for a linkto file only while
 * the name's hashed subvolume has it. */
void heal_new_object_soon(struct replicate *r, struct inode *inode);
/* After a LOOKUP on all children: queues background heals of the object if needed. */
void heal_consider(struct replicate *r, struct inode *inode, const struct fan *f);

#endif
