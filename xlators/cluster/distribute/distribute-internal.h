/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* distribute-internal: the private header of cluster/distribute.
 *
 *   distribute.c   the translator itself: options, child events, dispatch of fops
 *   hash.c         the hash of a name                      layout.c     a folder's ranges
 *   place.c        data kept with an inode: a file's subvolume, a folder's layout
 *   calls.c        calls for an operation: construction, sending to one subvolume or several, locks
 *   space.c        size and free space of subvolumes; statfs
 *   lookup.c       LOOKUP by name and by gfid              folder.c     the state of a folder on all
 *                                                                       subvolumes
 *   heal.c         layouts computed and repaired, folders created where missing
 *   heal-place.c   folders moved to the name that other subvolumes have
 *   linkto.c       link files that point to a file's subvolume
 *   create.c       new files of all kinds                  mkdir.c, rmdir.c
 *   names.c        unlink, link                            rename.c
 *   settle.c       names that a dead rename has left
 *   readdir.c      opendir, readdir(p)                     file.c       operations on a file's subvolume
 *   all.c          operations on a folder, on all subvolumes
 *   rebalance.c    the walk that moves files            migrate.c    moves a file
 *   migrate-names.c  the other names of a moved file
 *
 * Terms: a name's *hashed* subvolume is the subvolume whose range in the folder's layout has the name's
 * hash. A file's *cached* subvolume is the subvolume that stores the file. They differ after a rename, or
 * after a change of the layout; then a *linkto* file of that name on the hashed subvolume has an xattr that
 * names the cached one. A folder is on all subvolumes; its name's hashed subvolume at creation is the
 * folder's *MDS*, which is authoritative for attributes.
 *
 * A call of the layer above that needs more than one subvolume runs in a coroutine (coro_fop), with a
 * struct op on the coroutine's stack. A function called something_go() starts such a coroutine. A call that
 * goes to one subvolume, with any reply, is wound without a coroutine.
 *
 * Threads: any number of calls run at the same time. Beyond the rules of xlator.h, fields that several
 * threads use are atomic or under `lock`, a leaf lock. */
#ifndef KILN_DISTRIBUTE_INTERNAL_H
#define KILN_DISTRIBUTE_INTERNAL_H

#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/fd.h"
#include "graph/graph.h"
#include "stack/coro-call.h"
#include "stack/xlator.h"
#include "xlators/cluster/errand.h"
#include "xlators/cluster/distribute/hash.h"
#include "xlators/cluster/distribute/layout.h"

#define LINKTO_MODE (S_IFREG | S_ISVTX)

struct dist_conf {
    char *extra_regex, *rsync_regex, *leaving;
    bool optimizes_lookup, weighs, by_gfid;
    int looks_unhashed, unlink_locks; /* enums */
    uint64_t min_free_disk;
    int64_t min_free_inodes, spread;
};
enum { UNHASHED_ON, UNHASHED_OFF, UNHASHED_AUTO };
enum { UNLINK_LOCKS_AUTO, UNLINK_LOCKS_ON, UNLINK_LOCKS_OFF };

struct dist_child {
    struct xlator *xl;
    atomic_bool is_up;
    atomic_bool is_leaving; /* the volume will go on without this subvolume: nothing new is created there */
    _Atomic uint64_t up_since; /* value of the event counter, not a time */
    bool has_told;             /* the child has sent an event; under the lock */
    bool refuses; /* the child refuses this client for good, as of its last event; under the lock */
    /* from the last STATFS reply; under the lock */
    uint64_t bytes_total, bytes_free, inodes_total, inodes_free;
    bool space_is_known;
};

struct dist {
    struct xlator *xl;
    unsigned count;
    struct dist_child *child;
    uint16_t *order; /* children sorted by name: the order of ranges and of locks */
    struct hash_rule rules[2];
    /* incremented when a subvolume comes up: older layouts are refreshed */
    _Atomic uint32_t generation;
    _Atomic uint32_t commit; /* the volume's commit hash */
    _Atomic uint64_t space_asked_ns;
    _Atomic uint64_t events;
    struct errand settling; /* settle.c */
    pthread_mutex_t lock; /* guards has_told, refuses, told, space and the layout of each struct place */
    bool told_any;
    enum child_event told;
};

/* An operation: one call of the layer above; on the stack of its coroutine. */
struct op {
    struct dist *d;
    struct call_stack *stk;
    uint8_t owner[8]; /* owner of the operation's locks */
    bool has_names;   /* the locks of the looked-up names are held */
    bool has_settled; /* a name that a dead rename left was settled, which is tried once */
    bool has_given;   /* a gfid was already set on an object without one, which is done once */
    bool is_pressing; /* calls must not fail for lack of memory: use spare ones */
};

static inline const struct dist_conf *
dist_conf(const struct dist *d)
{
    return xlator_conf(d->xl);
}

struct op dist_op_of(struct xlator *xl, struct call_stack *stk);

/* Returns whether the mount waits for lost subvolumes, so that the names of a lost subvolume must not be
 * reported as missing. */
static inline bool
dist_op_waits(const struct op *o)
{
    return o->stk->call.hint.kind == HINT_WAITS;
}

/* ---- distribute.c ---------------------------------------------------------------------------- */

static inline bool
child_is_up(const struct dist *d, unsigned i)
{
    return atomic_load_explicit(&d->child[i].is_up, memory_order_relaxed);
}
static inline bool
child_is_leaving(const struct dist *d, unsigned i)
{
    return atomic_load_explicit(&d->child[i].is_leaving, memory_order_relaxed);
}
/* Returns the child that has been up for the longest time; -1: no child is up. */
int child_longest_up(const struct dist *d);
int child_by_name(const struct dist *d, const char *name);
bool children_all_up(const struct dist *d);
uint32_t dist_hash(const struct dist *d, const char *name);

/* ---- place.c --------------------------------------------------------------------------------- */

/* The context of an inode. */
struct place {
    _Atomic int32_t cached; /* file: its subvolume; folder: its MDS. -1: unknown */
    struct layout *layout;  /* of a folder; under the lock of struct dist */
};

int place_pool_init(void);
int place_cached(const struct dist *d, struct inode *inode);
/* Returns 0 or -ENOMEM. */
int place_set(struct dist *d, struct inode *inode, int child);
/* Returns the layout with a reference; NULL: none is kept, or a subvolume has come up since. */
struct layout *place_layout(struct dist *d, struct inode *inode);
/* Returns the layout of any age with a reference; NULL: none is kept. */
struct layout *place_layout_any(struct dist *d, struct inode *inode);
/* Keeps the layout. Takes over the reference, also on failure. Returns 0 or -ENOMEM. */
int place_set_layout(struct dist *d, struct inode *inode, struct layout *l);
void place_free(struct place *p);

/* ---- calls.c --------------------------------------------------------------------------------- */

/* Calls for the caller of `o`, or internal calls for the volume on the caller's behalf: as root, with the
 * caller's times. Functions that fill in a call return the call, or NULL after freeing it when out of
 * memory. They accept NULL and return NULL. */
struct call_stack *dist_call_new(const struct op *o, enum fop fop);
struct call_stack *dist_call_new_internal(const struct op *o, enum fop fop);
struct call_stack *dist_call_for_inode(struct call_stack *stk, struct inode *inode);
/* `name` must stay valid until the call is freed. */
struct call_stack *dist_call_for_name(struct call_stack *stk, struct inode *parent, const char *name);
struct call_stack *dist_call_put_int(struct call_stack *stk, enum dict_key key, int64_t value);
struct call_stack *dist_call_put_uint(struct call_stack *stk, enum dict_key key, uint64_t value);
struct call_stack *dist_call_put_str(struct call_stack *stk, enum dict_key key, const char *text);
struct call_stack *dist_call_put_bytes(struct call_stack *stk, enum dict_key key, const void *bytes,
                                       size_t len);
struct call_stack *dist_call_put_gfid(struct call_stack *stk, enum dict_key key, const struct gfid *gfid);
/* Copies the caller's arguments and xdata: coro_call_fork(). */
struct call_stack *dist_call_copy(const struct op *o);

/* Returns whether a call about a name has succeeded or has found no such name. After a removal the name is
 * gone then. */
static inline bool
dist_is_definite(int ret)
{
    return ret >= 0 || ret == -ENOENT || ret == -ESTALE;
}

/* Winds the call to child `i` and waits. Returns as coro_call(); -ENOMEM for NULL. */
int dist_call_at(const struct op *o, unsigned i, struct call_stack *stk);
/* As dist_call_at(), and frees the call: for callers that need the result only. */
int dist_call_once(const struct op *o, unsigned i, struct call_stack *stk);
/* Moves the reply of `stk`, with all objects it owns, to the caller's call, and frees `stk`. */
xl_verdict dist_op_answer_with(const struct op *o, struct call_stack *stk);

/* A call to each child, or to some children. */
struct fan {
    const struct op *o;
    struct call_stack **call; /* indexed by child; NULL: not asked */
    unsigned count;
    bool is_short;
};
int dist_fan_begin(struct fan *f, const struct op *o);
/* Adds a call, which the fan owns from now on; the call may be answered already. NULL: out of memory. */
void dist_fan_add(struct fan *f, unsigned i, struct call_stack *stk);
/* Winds all calls and waits for all. Returns 0, or -ENOMEM: nothing was sent. */
int dist_fan_go(struct fan *f);
/* Winds the unsent calls in the group; coro_group_wait() waits for them. */
void dist_fan_wind(struct fan *f, struct coro_group *g);
void dist_fan_end(struct fan *f);
/* Returns the result of child i; -ENOTCONN if the child was not asked. */
int dist_fan_result(const struct fan *f, unsigned i);

/* Returns whether a folder's xattr must be the same on all subvolumes (client 2). Other xattrs belong to
 * each brick. */
bool dist_belongs_to_all(const char *key);

/* The locks of an operation: taken in parallel if all are free, else in an order that all clients keep. */
struct dist_lock {
    unsigned child;
    struct inode *inode; /* borrowed */
    const char *domain;
    const char *name; /* NULL: an inodelk on the whole inode */
    uint32_t type;    /* FLOCK_READ, FLOCK_WRITE */
    bool may_miss;    /* a missing inode is no failure */
    const char *note_done; /* its unlock reports the end of a rename to this name (settle.c); NULL: no */
    bool is_held;
};
#define LOCKS_MAX 8
struct locks {
    struct dist_lock lock[LOCKS_MAX];
    unsigned count;
};
#define DOMAIN_LAYOUT "dht.layout.heal"
#define DOMAIN_ENTRY "dht.entry.sync"
#define DOMAIN_MIGRATE "dht.file.migrate"
/* Returns 0, or -errno with no lock held. */
int dist_locks_take(const struct op *o, struct dist_lock *lock, unsigned count);
/* Takes the first `first` locks in their order before the other locks in their order. */
int dist_locks_take_parts(const struct op *o, struct dist_lock *lock, unsigned first, unsigned count);
/* An attempt to take locks without waiting, which runs while the caller does other work; on the caller's
 * stack. */
struct lock_try {
    struct dist_lock *lock;
    struct call_stack **calls;
    unsigned count;
    struct coro_group group;
};
/* Returns 0: call dist_locks_try_end() next; or -ENOMEM. */
int dist_locks_try_begin(const struct op *o, struct lock_try *t, struct dist_lock *lock, unsigned count);
/* Returns 0, or -errno with no lock held; -EAGAIN: another client has one of the locks. */
int dist_locks_try_end(const struct op *o, struct lock_try *t);
/* Both steps, without other work in between. */
int dist_locks_try(const struct op *o, struct dist_lock *lock, unsigned count);
/* Releases the locks, the newest first, in parallel and without waiting. */
void dist_locks_drop(const struct op *o, struct dist_lock *lock, unsigned count);
/* Fills in the two locks that protect a name of `parent`. Returns the number of locks: 2. */
unsigned dist_locks_namespace(struct dist_lock *out, unsigned child, struct inode *parent, const char *name);

/* ---- folder.c -------------------------------------------------------------------------------- */

/* The state of a folder on all subvolumes. */
struct folder_look {
    struct layout *layout; /* a reference; settled */
    struct layout_flaws flaws;
    struct iatt iatt;        /* merged attributes */
    struct iatt *each;       /* indexed by child, on the arena; mode 0: the child lacks the folder */
    struct call_stack *best; /* a good reply, of the MDS if possible; NULL: none */
    int mds;                 /* -1: none */
    unsigned found;          /* number of subvolumes that have the folder */
    unsigned files;          /* number of subvolumes that have an object of another type by this name */
    unsigned others;         /* number of subvolumes that have another folder by this name */
    bool attributes_differ, mds_is_behind;
    int err; /* the worst error; 0: none */
};
/* Looks a folder up on all subvolumes, by name in `parent`, or by `inode` if parent is NULL. Child `known`,
 * if not -1, has already answered: `reply`, which this function takes over. If subvolumes have several
 * folders of the name, the hashed subvolume decides. Returns 0 or -errno: no subvolume has the folder. Call
 * folder_look_end() in both cases. */
int folder_look(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
                struct inode *inode, int known, struct call_stack *reply);
void folder_look_end(struct folder_look *f);
/* Sets *out to the folder's current layout, with a reference. Returns 0 or -errno. */
int folder_layout(const struct op *o, struct inode *folder, struct layout **out);
/* As folder_layout(), but ignores the kept layout. */
int folder_layout_fresh(const struct op *o, struct inode *folder, struct layout **out);
/* Returns the hashed subvolume of a name in `parent`, or -errno. -EIO: no range has the hash; -ESTALE: the
 * same because the folder is not on all subvolumes, so it is being created or removed. */
int folder_hashed(const struct op *o, struct inode *parent, const char *name);
/* As folder_hashed(); *out is the layout used, with a reference, NULL on failure. */
int folder_hashed_by(const struct op *o, struct inode *parent, const char *name, struct layout **out);
/* Keeps the layout and the MDS with the inode. Returns 0 or -ENOMEM. */
int folder_keep(const struct op *o, const struct folder_look *f, struct inode *folder);
/* Merges the attributes of one more subvolume; *sum is all zero before the first. */
void folder_merge(struct iatt *sum, const struct iatt *one);
void folder_fix(struct iatt *a); /* Sets constant size and blocks, which cannot be summed. */

/* rmdir.c: removes linkto files that point nowhere. Returns 0 if the folder is then empty on all
 * subvolumes; -ENOTEMPTY or another -errno. */
int folder_clear(const struct op *o, struct inode *folder);

/* ---- heal.c ---------------------------------------------------------------------------------- */

/* Repairs the defects in `f` if possible and updates `f`. `parent` NULL: found by inode, missing folders
 * cannot be created. Returns 0 or -errno; -EAGAIN: the name leads to another folder. */
int heal_folder(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
                struct inode *folder);
/* Moves the folder to the name on a child that lacks the name, under the locks of the name (heal-place.c).
 * Returns 0; -ENOENT: the child does not have the folder; -EBUSY: not now; or -errno. */
int folder_move_here(const struct op *o, unsigned child, struct inode *folder, struct inode *parent,
                     const char *name);
/* Creates a folder again on the subvolumes `where` it was removed. The caller holds the name's locks. */
void folder_make_again(const struct op *o, struct inode *parent, const char *name, struct inode *folder,
                       const struct iatt *a, const bool *where);
/* Computes a layout for a new folder and writes it on all subvolumes. The folder was created on the
 * children whose err in `l` is LAYOUT_NO_XATTR. The caller has the lock of mkdir.c's step 3. `is_ours`: no
 * other client can have written a layout. Takes over the reference to `l`. */
int heal_layout_new(const struct op *o, struct inode *folder, struct layout *l, bool is_ours);
/* Gives a range to children without one, and takes the ranges of leaving children away. Returns 0 or
 * -errno. */
int folder_fix_layout(const struct op *o, struct inode *folder);
/* SETXATTR distribute.fix.layout on a folder: folder_fix_layout(). */
xl_verdict dist_fix_layout_go(struct xlator *xl, struct call_stack *stk);

/* ---- lookup.c -------------------------------------------------------------------------------- */

/* Returns a LOOKUP with all keys that this layer needs. */
struct call_stack *lookup_call(const struct op *o, struct inode *parent, const char *name,
                               struct inode *inode, bool is_internal);
bool reply_is_linkto(const struct call_stack *stk);
/* The result of looking up a name, complete for an application. */
struct found {
    struct call_stack *reply; /* to be freed */
    struct inode *inode;      /* a reference */
    int cached;               /* -1: a folder */
    bool is_dir;
    const char *note; /* a brick's note about an unfinished rename (settle.c), on the arena; NULL: none */
};
/* LOOKUPs of one name, sent in advance, with their replies. */
#define AHEAD_MAX 2
struct ahead {
    unsigned count, child[AHEAD_MAX];
    struct call_stack *reply[AHEAD_MAX];
};
/* Winds a LOOKUP in advance, in the group. At most AHEAD_MAX of these, then lookup_name(), then
 * ahead_end(). */
void ahead_wind(const struct op *o, struct ahead *a, struct coro_group *g, unsigned child,
                struct inode *parent, const char *name);
void ahead_end(struct ahead *a);
/* Looks up a name. `a` may be NULL: no LOOKUP was sent in advance. */
int lookup_name(const struct op *o, struct inode *parent, const char *name, struct ahead *a,
                struct found *out);
void found_end(struct found *f);
/* Returns the cached subvolume of a file, looked up if unknown, or -errno. */
int lookup_cached(const struct op *o, struct inode *inode);

/* ---- settle.c -------------------------------------------------------------------------------- */

/* Returns whether all bricks of the child keep notes about renames. */
bool settle_has_notes(const struct op *o, unsigned child);
/* Returns the note in a reply to LOOKUP, on the operation's arena; NULL: none. */
const char *settle_note_of(const struct op *o, const struct call_stack *stk);
/* Returns the text of a name in notes, on the operation's arena; NULL: out of memory. */
const char *settle_name_text(const struct op *o, const struct loc *loc);
/* Acts on the note about a name. Returns whether the name may lead to another object now. */
bool settle_note(const struct op *o, struct inode *parent, const char *name, const char *note);
/* Settles all noted names, while all children are up: an errand. */
void settle_all(struct errand *c);
/* Settles the names in a reply to OPENDIR. */
void settle_listed(const struct op *o, struct inode *folder, const struct call_stack *opened);

/* ---- linkto.c -------------------------------------------------------------------------------- */

/* Creates a linkto file (parent, name) on `at` that points to `target`. Returns 0 if it exists then. */
int linkto_make(const struct op *o, unsigned at, struct inode *parent, const char *name,
                const struct gfid *gfid, unsigned target, bool replaces);
/* Returns the call of linkto_make(); NULL: out of memory. */
struct call_stack *linkto_call(const struct op *o, struct inode *parent, const char *name,
                               const struct gfid *gfid, unsigned target, bool replaces);
/* Replaces the linkto file of the name, which has another gfid, under the locks of the name. The name has a
 * linkto file at any time. Returns 0 or -errno. */
int linkto_replace(const struct op *o, unsigned at, struct inode *parent, const char *name,
                   const struct gfid *gfid, unsigned target);
/* Has the file's linkto files on `at` point to `target`. Returns 0 or -errno. */
int linkto_retarget(const struct op *o, unsigned at, const struct iatt *file, unsigned target);
/* Removes the name if it is a linkto file; `unless_open`: and no client has it open. */
int linkto_remove(const struct op *o, unsigned at, struct inode *parent, const char *name, bool unless_open);
/* Removes a linkto file that is not on the hashed subvolume of its name, unless a client has it open, or a
 * migration copies a file to it: -EBUSY. The caller has the locks of the name. */
int linkto_remove_unused(const struct op *o, unsigned at, struct inode *parent, const char *name);
struct call_stack *linkto_remove_call(const struct op *o, struct inode *parent, const char *name,
                                      bool unless_open);
/* Sets the owner of the linkto file to the owner of `file`. */
void linkto_own(const struct op *o, unsigned at, const struct iatt *file);
/* Returns the child that a linkto file's reply names; -1: no child has that name. */
int linkto_target(const struct dist *d, const struct call_stack *stk);

/* ---- file.c ---------------------------------------------------------------------------------- */

/* An xattr on a file that is being migrated: a client could not repeat a change on the copy. */
#define MIGRATE_VETO_KEY "trusted.kiln.migrate.veto"
/* An xattr on such a file whose own mode has bits of the mark: the mode. */
#define MIGRATE_MODE_KEY "trusted.kiln.migrate.mode"
/* An xattr on the copy: "1" if the copy has all of the file (migrate.c). */
#define MIGRATE_DONE_KEY "trusted.kiln.migrate.done"
/* Tell whether the attributes may be those of a file that is being copied to another subvolume, or of the
 * remains after the copy. */
bool file_is_copying(const struct iatt *a);
bool file_is_copied(const struct iatt *a);
/* Returns the subvolume that the file is being copied to from child `from`; -1: none; -2: one that this
 * volfile does not have. */
int file_copy_target(const struct op *o, struct inode *file, int from);
/* Removes the mode bits of a file that is being copied from the reply to a LOOKUP. */
void file_hide_copying(struct call_stack *stk);

/* ---- space.c --------------------------------------------------------------------------------- */

/* Returns the weight of each child for layouts, on the arena. NULL: out of memory. */
uint32_t *space_weights(const struct op *o);
/* Returns whether the child, as of its last STATFS, can take `bytes` and still has the free space that
 * `min-free-disk` demands. */
bool space_has_room(struct dist *d, unsigned i, uint64_t bytes);
/* Returns the number of inodes in use, as of the last STATFS. */
uint64_t space_used_inodes(struct dist *d, unsigned i);
/* Returns whether the child has less free space than `min-free-disk` and `min-free-inodes` demand. */
bool space_is_short(struct dist *d, unsigned i);
/* Returns the child with most free space that has the folder and is not leaving; `hashed` if no child is
 * better. */
unsigned space_best(struct dist *d, const struct layout *l, unsigned hashed);
/* Refreshes the free space of all children unless that was done within a second; does not wait. */
void space_ask(struct dist *d);
void space_ask_one(struct dist *d, unsigned i);

/* ---- fops ------------------------------------------------------------------------------------ */

xl_verdict dist_lookup_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_create_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_mkdir_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_rmdir_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_unlink_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_link_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_rename_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_opendir_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_readdir_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_statfs_go(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_all_go(struct xlator *xl, struct call_stack *stk);   /* folders: all other fops */
/* A lock of a layer above on a folder; not a coroutine. */
bool dist_is_lock(enum fop fop);
xl_verdict dist_folder_lock(struct xlator *xl, struct call_stack *stk);
xl_verdict dist_file_any(struct xlator *xl, struct call_stack *stk); /* files; not a coroutine */

#endif
