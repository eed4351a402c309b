/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* distribute-internal: the insides of cluster/distribute.
 *
 *   distribute.c   the layer: options, subvolumes that come and go, which function serves which fop
 *   hash.c         the hash of a name                      layout.c     a folder's ranges
 *   place.c        what is remembered of an inode: where a file is, a folder's layout
 *   calls.c        further calls for one call: made, sent to one subvolume or to several at once, locks
 *   space.c        how large subvolumes are and how full; statfs
 *   lookup.c       names and gfids looked for              folder.c     a folder looked at on all subvolumes
 *   heal.c         layouts made and mended, folders made where they are missing
 *   linkto.c       files that only say where the file is
 *   create.c       files of all kinds made                 mkdir.c, rmdir.c
 *   names.c        unlink, link                            rename.c
 *   readdir.c      opendir, readdir(p)                     file.c       what is done to a file, where it is
 *   all.c          what is done to a folder, on all subvolumes
 *
 * Words: a name's *hashed* subvolume is the one whose range of the folder's layout has the name's hash; a
 * file's *cached* subvolume is the one that has it. They differ when the name has been changed, or the
 * layout; then there is a *linkto* file of that name on the hashed one, whose xattr names the other. A
 * folder is on all subvolumes; the one that was its name's hashed one when it was made is its *MDS* and has
 * the last word on attributes.
 *
 * Each call of the layer above that needs more than one subvolume is a coroutine (coro_fop); what it knows
 * is a struct op on its stack. A function called something_go() is the first of one. Calls that go to one
 * subvolume whatever it answers are wound there without a coroutine.
 *
 * Threads: any number of calls at a time. Beyond what xlator.h says of every layer, fields that several
 * threads touch are atomic or under `lock`, a leaf that nothing is called under.
 */
#ifndef KILN_DISTRIBUTE_INTERNAL_H
#define KILN_DISTRIBUTE_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "fs/fd.h"
#include "graph/graph.h"
#include "stack/coro-call.h"
#include "stack/xlator.h"
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
    atomic_bool is_leaving;    /* the volume shall go on without it: nothing new comes there */
    _Atomic uint64_t up_since; /* a count of events, not a time */
    bool has_told;             /* under the lock */
    bool refuses;              /* this client, for good, as of its last event; under the lock */
    /* of its last STATFS; under the lock */
    uint64_t bytes_total, bytes_free, inodes_total, inodes_free;
    bool space_is_known;
};

struct dist {
    struct xlator *xl;
    unsigned count;
    struct dist_child *child;
    uint16_t *order; /* children by name: the order of ranges and of locks */
    struct hash_rule rules[2];
    /* counts subvolumes that have come up: layouts of before are asked for again */
    _Atomic uint32_t generation;
    _Atomic uint32_t commit; /* the volume's commit hash */
    _Atomic uint64_t space_asked_ns;
    _Atomic uint64_t events;
    pthread_mutex_t lock; /* guards has_told, told, space and every struct place's layout */
    bool told_any;
    enum child_event told;
};

/* One call of the layer above, on the stack of its coroutine. */
struct op {
    struct dist *d;
    struct call_stack *stk;
    uint8_t owner[8]; /* of its locks */
    bool has_names;   /* it has the locks of the names that it looks up */
    bool has_given;   /* it has given a gfid to what had none: once is enough */
    bool is_pressing; /* its calls must be made: by spare ones */
};

static inline const struct dist_conf *
dist_conf(const struct dist *d)
{
    return xlator_conf(d->xl);
}

struct op dist_op_of(struct xlator *xl, struct call_stack *stk);

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
/* The one that has been up for longest; -1: none is. */
int child_longest_up(const struct dist *d);
int child_by_name(const struct dist *d, const char *name);
bool children_all_up(const struct dist *d);
uint32_t dist_hash(const struct dist *d, const char *name);

/* ---- place.c --------------------------------------------------------------------------------- */

/* The layer's context of an inode. */
struct place {
    _Atomic int32_t cached; /* of a file: its subvolume; of a folder: its MDS. -1: not known */
    struct layout *layout;  /* of a folder; under dist's lock */
};

int place_pool_init(void);
int place_cached(const struct dist *d, struct inode *inode);
/* 0 or -ENOMEM. */
int place_set(struct dist *d, struct inode *inode, int child);
/* A reference; NULL: none, or it is older than the last subvolume that came up. */
struct layout *place_layout(struct dist *d, struct inode *inode);
/* A reference, of whatever age; NULL: none. */
struct layout *place_layout_any(struct dist *d, struct inode *inode);
/* The layout's reference is taken over, also on failure. 0 or -ENOMEM. */
int place_set_layout(struct dist *d, struct inode *inode, struct layout *l);
void place_free(struct place *p);

/* ---- calls.c --------------------------------------------------------------------------------- */

/* A call for the caller of `o`, or for the volume itself, on the caller's behalf: root, with its times.
 * Those that fill one return it, or NULL when memory has ended: then it has been freed. All take NULL and
 * give it back. */
struct call_stack *dist_call_new(const struct op *o, enum fop fop);
struct call_stack *dist_call_new_internal(const struct op *o, enum fop fop);
struct call_stack *dist_call_for_inode(struct call_stack *stk, struct inode *inode);
/* `name` is lent until the call is freed. */
struct call_stack *dist_call_for_name(struct call_stack *stk, struct inode *parent, const char *name);
struct call_stack *dist_call_put_int(struct call_stack *stk, enum dict_key key, int64_t value);
struct call_stack *dist_call_put_uint(struct call_stack *stk, enum dict_key key, uint64_t value);
struct call_stack *dist_call_put_str(struct call_stack *stk, enum dict_key key, const char *text);
struct call_stack *dist_call_put_bytes(struct call_stack *stk, enum dict_key key, const void *bytes,
                                       size_t len);
struct call_stack *dist_call_put_gfid(struct call_stack *stk, enum dict_key key, const struct gfid *gfid);
/* The caller's arguments and xdata: coro_call_fork(). */
struct call_stack *dist_call_copy(const struct op *o);

/* Winds it at child `i` and waits. As coro_call(); -ENOMEM for NULL. */
int dist_call_at(const struct op *o, unsigned i, struct call_stack *stk);
/* ... and frees it: where only that matters. */
int dist_call_once(const struct op *o, unsigned i, struct call_stack *stk);
/* Its reply, with all it owns, becomes the reply of the caller's call; the call is freed. */
xl_verdict dist_op_answer_with(const struct op *o, struct call_stack *stk);

/* One call for each child, or for some. */
struct fan {
    const struct op *o;
    struct call_stack **call; /* by child; NULL: not asked */
    unsigned count;
    bool is_short;
};
int dist_fan_begin(struct fan *f, const struct op *o);
/* Takes the call over, which may have been answered already; NULL: memory has ended. */
void dist_fan_add(struct fan *f, unsigned i, struct call_stack *stk);
/* All at once, and waits for all. 0, or -ENOMEM: nothing has been sent. */
int dist_fan_go(struct fan *f);
/* ... those that have not been sent, in the group: who waits for that has all. */
void dist_fan_wind(struct fan *f, struct coro_group *g);
void dist_fan_end(struct fan *f);
/* -ENOTCONN for one that was not asked. */
int dist_fan_result(const struct fan *f, unsigned i);

/* Of a folder's xattrs: is this one the same on all subvolumes (client 2)? Else it is the brick's own. */
bool dist_belongs_to_all(const char *key);

/* Locks of one operation: at once if all are free, else in an order that all clients keep. */
struct dist_lock {
    unsigned child;
    struct inode *inode; /* lent */
    const char *domain;
    const char *name; /* NULL: an inodelk over the whole */
    uint32_t type;    /* FLOCK_READ, FLOCK_WRITE */
    bool may_miss;    /* that the inode is not there is no failure */
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
/* 0, or -errno with none held. */
int dist_locks_take(const struct op *o, struct dist_lock *lock, unsigned count);
/* The `first` ones, in their order, before the others in theirs. */
int dist_locks_take_parts(const struct op *o, struct dist_lock *lock, unsigned first, unsigned count);
/* At once or not at all, while the caller does something else in between; on the caller's stack. */
struct lock_try {
    struct dist_lock *lock;
    struct call_stack **calls;
    unsigned count;
    struct coro_group group;
};
/* 0, and then to be ended; or -ENOMEM. */
int dist_locks_try_begin(const struct op *o, struct lock_try *t, struct dist_lock *lock, unsigned count);
/* 0, or -errno with none held; -EAGAIN: one of them is taken. */
int dist_locks_try_end(const struct op *o, struct lock_try *t);
/* ... and nothing else in between. */
int dist_locks_try(const struct op *o, struct dist_lock *lock, unsigned count);
/* The newest first, all at once; nobody waits for it. */
void dist_locks_drop(const struct op *o, struct dist_lock *lock, unsigned count);
/* The two locks that keep a name of `parent` as it is. Returns how many were put there: 2. */
unsigned dist_locks_namespace(struct dist_lock *out, unsigned child, struct inode *parent, const char *name);

/* ---- folder.c -------------------------------------------------------------------------------- */

/* What all subvolumes say of a folder. */
struct folder_look {
    struct layout *layout; /* a reference; settled */
    struct layout_flaws flaws;
    struct iatt iatt;        /* merged */
    struct iatt *each;       /* by child; mode 0: it has none. On the arena */
    struct call_stack *best; /* a good reply, the MDS's if there is one; NULL: none */
    int mds;                 /* -1: none */
    unsigned found;          /* subvolumes that have the folder */
    unsigned files;          /* ... that have something else by this name */
    unsigned others;         /* ... that have another folder by this name */
    bool attributes_differ, mds_is_behind;
    int err; /* the worst of what failed; 0: nothing did */
};
/* By name in `parent`, or by `inode` if parent is NULL. Child `known`, if not -1, has been asked already:
 * `reply`, which is taken over. Where subvolumes have several folders of the name, the hashed one says which
 * it is. 0 or -errno: the folder is on no subvolume. To be ended in both cases. */
int folder_look(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
                struct inode *inode, int known, struct call_stack *reply);
void folder_look_end(struct folder_look *f);
/* The folder's layout, of now: a reference in *out. 0 or -errno. */
int folder_layout(const struct op *o, struct inode *folder, struct layout **out);
/* Asks again, whatever is remembered. */
int folder_layout_fresh(const struct op *o, struct inode *folder, struct layout **out);
/* The subvolume of a name in `parent`: its number, or -errno. -EIO: nobody has its range; -ESTALE: because
 * the folder is not on all subvolumes, so it comes or goes. */
int folder_hashed(const struct op *o, struct inode *parent, const char *name);
/* ... and the layout that says so: a reference, NULL on failure. */
int folder_hashed_by(const struct op *o, struct inode *parent, const char *name, struct layout **out);
/* The layout and the MDS are remembered. 0 or -ENOMEM. */
int folder_keep(const struct op *o, const struct folder_look *f, struct inode *folder);
/* Attributes of one subvolume more; *sum is all zero before the first. */
void folder_merge(struct iatt *sum, const struct iatt *one);
void folder_fix(struct iatt *a); /* size and blocks do not add up */

/* rmdir.c: 0: nothing is in it on any subvolume; linkto files that led nowhere are no more. -ENOTEMPTY. */
int folder_clear(const struct op *o, struct inode *folder);

/* ---- heal.c ---------------------------------------------------------------------------------- */

/* Mends what `f` has found, if nothing stands against it; `f` is then as it should be. `parent` NULL: by
 * inode, nothing can be made where it is missing. 0 or -errno; -EAGAIN: the name leads to another folder. */
int heal_folder(const struct op *o, struct folder_look *f, struct inode *parent, const char *name,
                struct inode *folder);
/* What was removed from some subvolumes, and shall be there all the same. The name's locks are held. */
void folder_make_again(const struct op *o, struct inode *parent, const char *name, struct inode *folder,
                       const struct iatt *a, const bool *where);
/* A layout for a new folder, written everywhere; it was made on the children whose err in `l` is
 * LAYOUT_NO_XATTR. The caller has the lock of mkdir.c's step 3. `is_ours`: nobody else can have given it one.
 * Takes the reference over. */
int heal_layout_new(const struct op *o, struct inode *folder, struct layout *l, bool is_ours);
/* SETXATTR distribute.fix.layout on a folder: children that have no range get one. */
xl_verdict dist_fix_layout_go(struct xlator *xl, struct call_stack *stk);

/* ---- lookup.c -------------------------------------------------------------------------------- */

/* A LOOKUP with all keys that this layer asks for. */
struct call_stack *lookup_call(const struct op *o, struct inode *parent, const char *name,
                               struct inode *inode, bool is_internal);
bool reply_is_linkto(const struct call_stack *stk);
/* The name as it is found now, in full, as for an application. */
struct found {
    struct call_stack *reply; /* to be freed */
    struct inode *inode;      /* a reference */
    int cached;               /* -1: a folder */
    bool is_dir;
};
/* LOOKUPs of one name that were sent before their turn, with their replies. */
#define AHEAD_MAX 2
struct ahead {
    unsigned count, child[AHEAD_MAX];
    struct call_stack *reply[AHEAD_MAX];
};
/* At one child, in the group: at most AHEAD_MAX of them, then lookup_name(), then ahead_end(). */
void ahead_wind(const struct op *o, struct ahead *a, struct coro_group *g, unsigned child,
                struct inode *parent, const char *name);
void ahead_end(struct ahead *a);
/* `a` NULL: none. */
int lookup_name(const struct op *o, struct inode *parent, const char *name, struct ahead *a,
                struct found *out);
void found_end(struct found *f);
/* The subvolume of a file, asked for if it is not known. The number or -errno. */
int lookup_cached(const struct op *o, struct inode *inode);

/* ---- linkto.c -------------------------------------------------------------------------------- */

/* A linkto file (parent, name) on `at` that says `target`. 0: it is there. */
int linkto_make(const struct op *o, unsigned at, struct inode *parent, const char *name,
                const struct gfid *gfid, unsigned target, bool replaces);
/* The same in two steps: the call, and what its result means. */
struct call_stack *linkto_call(const struct op *o, struct inode *parent, const char *name,
                               const struct gfid *gfid, unsigned target, bool replaces);
int linkto_made(const struct op *o, unsigned at, struct inode *parent, const char *name, int ret);
/* Removes it if it is one; `unless_open`: and nobody has it open. */
int linkto_remove(const struct op *o, unsigned at, struct inode *parent, const char *name, bool unless_open);
struct call_stack *linkto_remove_call(const struct op *o, struct inode *parent, const char *name,
                                      bool unless_open);
/* It gets the owner of the file that it stands for. */
void linkto_own(const struct op *o, unsigned at, const struct iatt *file);
/* The child that a linkto's reply names; -1: none of ours. */
int linkto_target(const struct dist *d, const struct call_stack *stk);

/* ---- space.c --------------------------------------------------------------------------------- */

/* Sizes for layouts, one for each child, on the arena. NULL: no memory. */
uint32_t *space_weights(const struct op *o);
/* Has it less free than `min-free-disk` and `min-free-inodes` want? */
bool space_is_short(struct dist *d, unsigned i);
/* The one with most free space that has the folder and is not leaving; `hashed` if there is none better. */
unsigned space_best(struct dist *d, const struct layout *l, unsigned hashed);
/* Asks all for their space, if that was not done a moment ago; nobody waits. */
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
xl_verdict dist_all_go(struct xlator *xl, struct call_stack *stk);   /* folders: everything else */
xl_verdict dist_file_any(struct xlator *xl, struct call_stack *stk); /* files; not a coroutine */

#endif
