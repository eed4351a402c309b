/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal: what the mount itself makes equal again. A file for each kind:
 *
 *   heal-name.c      a name that only some children have, found by a LOOKUP      always
 *   heal-metadata.c  owner, mode, times, xattrs                       option metadata-self-heal; where no
 *                                                                     copy is accused, always
 *   heal-entry.c     the names of a directory                         option entry-self-heal
 *   heal-data.c      what a file holds                                option data-self-heal
 *   heal-park.c      objects that a heal takes out of their place, or moves into it
 *   heal.c           what they share, and which of them runs when
 *
 * The three options are off unless the volume turns them on, as with stock's mounts: the self-heal daemon
 * does that work. Whatever is done here is done by the daemon's own protocol, as pid -6 of root, so that
 * both, and other mounts, keep out of each other's way:
 *
 *      all children are there, or nothing is done
 *      lock       a lock in the healers' own domain, if it is free: else somebody else heals. Not for names
 *      lock       what changes of that kind lock, on all children
 *      look       LOOKUP on all: who accuses whom, under the lock
 *      decide     changelog_direction(): from one that nobody accuses to those that are accused. Without such
 *                 a one it is split-brain (split-brain.c)
 *      mend       the accused ones
 *      count back what was read under the lock, no more: what came in meanwhile stays counted
 *      unlock
 *
 * A child that fails while it is mended stays accused. What stops in the middle (the mount ends, a child
 * goes) leaves the counts as they were, so that the next healer begins anew. Readers are served by the good
 * ones meanwhile.
 *
 * thread: a heal is a coroutine of its own, or runs in that of a LOOKUP; what is in it needs no lock.
 */
#ifndef KILN_CLUSTER_REPLICATE_HEAL_H
#define KILN_CLUSTER_REPLICATE_HEAL_H

#include "xlators/cluster/replicate/replicate-internal.h"

enum favorite { FAVORITE_NONE, FAVORITE_SIZE, FAVORITE_CTIME, FAVORITE_MTIME, FAVORITE_MAJORITY };
enum heal_algorithm { HEAL_DYNAMIC, HEAL_DIFF, HEAL_FULL };

struct heal {
    struct op op; /* its own, of which `inode` is what is healed */
    uint8_t owner[8];
    uint32_t generation; /* of the layer, when it began */
    /* as of the last look */
    struct replica replica[REPLICAS_MAX];
    struct iatt stat[REPLICAS_MAX];
    struct direction way;
    bool has_chosen; /* split-brain is healed from this child: somebody has said so */
    unsigned chosen;
    bool wants_all_names; /* of a folder: they are looked at whatever the counters say */
    struct gfid fresh; /* for an object that has none on any child; null: none is to be given */
};

/* Takes a reference to the inode. */
void heal_begin(struct heal *h, struct replicate *r, struct inode *inode);
void heal_end(struct heal *h);
/* The end of the mount is near, or a child has gone, be it back or not: what is not begun is left. Its locks
 * went with it, and what the look has found, for writes may have passed it by: a source that has missed one
 * would take it from the others. */
bool heal_must_stop(const struct heal *h);

/* On all children or none: 0 or -errno. `alone`: at once or not at all (-EAGAIN). */
int heal_lock(struct heal *h, const struct lock_entity *e);
int heal_lock_alone(struct heal *h, const struct lock_entity *e);
void heal_unlock(struct heal *h, const struct lock_entity *e);

/* LOOKUP by gfid on all, and who heals whom in this kind. 0 or -errno: some child has not got it. */
int heal_look(struct heal *h, enum change what);
/* One call of `fop` about the inode to child i, to be filled. NULL: no memory. */
struct call_stack *heal_call(const struct heal *h, enum fop fop, unsigned i);
/* The same with an fd that is good for this call. */
struct call_stack *heal_fd_call(const struct heal *h, enum fop fop, unsigned i);
/* The same about a name in a folder. */
struct call_stack *heal_name_call(const struct heal *h, enum fop fop, unsigned i, struct inode *dir,
                                  const char *name);
/* Called for each name that child i has in the folder, but the dots. -errno, or a number that is added up. */
typedef int heal_name_fn(struct heal *h, unsigned i, struct inode *dir, const char *name);
/* The sum; or -errno: the first error, which does not keep the names after it from being gone through. */
int heal_list(struct heal *h, unsigned i, struct inode *dir, heal_name_fn *each);
/* Winds it at child i, waits and gives it back. As coro_call(); no call is no memory. */
int heal_send(const struct heal *h, unsigned i, struct call_stack *stk);
/* The counters of that kind, as last looked at, are taken back on all but `failed`, which are accused. */
int heal_count_back(struct heal *h, enum change what, child_set failed);

/* heal-name.c: of op->dir and op->name, which some children have and others not, or of different objects. The
 * name is to be asked for again. 0, or -errno: it could not be mended. */
int heal_name(struct op *op);
/* Have all children the same behind the name, or none anything? Not if one cannot say. */
bool heal_name_is_whole(struct heal *h, const char *name);
/* Under a lock on the name: h->op.inode is the directory, h->way of its entries. 1: the children had
 * different objects behind it, and it was mended. 0: there was nothing to do; or -errno. */
int heal_name_locked(struct heal *h, const char *name);

/* ---- heal-park.c ----------------------------------------------------------------------------- */

/* Whether child i has the object, under any name. *out: its attributes, or NULL. 0, -ENOENT or -errno. */
int heal_look_by_gfid(const struct heal *h, unsigned i, struct inode *inode, struct iatt *out);
/* Whether a child other than this one has the object, under any name. An unknown answer counts as yes. */
bool heal_lives_elsewhere(const struct heal *h, unsigned child, const struct iatt *stat);
/* Parks the object behind the name, on child i. -EBUSY: the volume has no hidden folder. */
int heal_park(const struct heal *h, unsigned i, struct inode *dir, const char *name,
              const struct iatt *stat);
/* Unlinks the parked name of a file that has another name on child i. Two heals of different folders can
 * leave both: the first parks the file's last name there while the second links its new one. So each heal
 * that parks or links a file calls this afterwards. No parked name is no error. */
int heal_unpark_named(const struct heal *h, unsigned i, struct inode *inode);
/* Gives a parked object of child i the name. -EBUSY: it is not parked. */
int heal_bring_back(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir,
                    const char *name);
/* Moves a folder from its place on child i, whatever that is, to the name, on which the caller has the lock.
 * Where the counters of h->way give no direction, and those of the folder's old place say that child i is
 * right, that stays for the heal of the old place. -EBUSY: not now. */
int heal_move_folder(const struct heal *h, unsigned i, struct inode *inode, struct inode *dir,
                     const char *name);
/* Removes parked objects that live on no other child. */
void heal_clear_parked(struct replicate *r);

/* ---- kinds of heals -------------------------------------------------------------------------- */

/* Of h->op.inode. 0, also if there was nothing to do, or -errno. */
int heal_metadata(struct heal *h);
/* After a LOOKUP on all children: whether owner, mode or xattrs are not the same on all. */
bool heal_attributes_differ(const struct fan *f);
int heal_entries(struct heal *h);
int heal_data(struct heal *h);

/* ---- split-brain.c --------------------------------------------------------------------------- */

enum { SPLIT_CHOICE_MINUTES = 5 };
/* Of `set`, whose attributes are in stat[], the one that the volume's policy takes; -1: none. */
int split_favorite(const struct replicate *r, const struct iatt *stat, child_set set);
/* If the view says split-brain, and the volume has a policy: true, it was applied, ask again. */
bool split_ask_policy(struct replicate *r, struct inode *inode, const struct view *v);
/* The child that the user has chosen to read it from; -1: none. */
int split_choice(struct replicate *r, struct inode *inode);
/* Xattrs by which users tell and ask of it. False: it is another one. Else the call has been answered. */
bool split_set(struct op *op);
bool split_get(struct op *op);

/* In the background: all names of a folder of which one was found to need mending though no copy is accused.
 */
void heal_all_names_soon(struct replicate *r, struct inode *dir);
/* After a LOOKUP on all children: what is to be healed, is soon, in the background. */
void heal_consider(struct replicate *r, struct inode *inode, const struct fan *f);

#endif
