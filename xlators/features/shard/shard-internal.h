/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* shard-internal: the private header of features/shard.
 *
 *   shard.c    the translator itself: options, dispatch of fops, life
 *   calls.c    calls for an operation: construction, replies, locks
 *   file.c     the state of a file: block size, size, modification time; these in replies
 *   hold.c     the lock on a file's size, and changes of the size
 *   blocks.c   the folder /.shard and the shards in it: found, created, removed
 *   data.c     read, write, fallocate, discard, zerofill, seek, fsync
 *   length.c   truncate, and opens that truncate
 *   names.c    lookup, create, link, unlink, rename, listings
 *   sweep.c    removal of the shards of removed files
 *
 * Terms: the *base file* has the name that users see, and holds block 0. Block n >= 1 is a *shard*, the file
 * /.shard/GFID.n, where GFID is the base file's gfid. A *marker* is a file /.shard/.remove_me/GFID, which
 * says that the shards of a removed base file are to be removed.
 *
 * A call that needs more than one message runs in a coroutine (coro_fop), with a struct shard_op on the
 * coroutine's stack. */
#ifndef KILN_SHARD_INTERNAL_H
#define KILN_SHARD_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <urcu/list.h>

#include "event/timer.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "stack/coro-call.h"
#include "stack/xlator.h"

/* The block sizes that `volume set` allows. */
#define SHARD_BLOCK_MIN (UINT64_C(4) << 20)
#define SHARD_BLOCK_MAX (UINT64_C(4) << 40)

struct shard_conf {
    uint64_t block_size;   /* of new files; bytes */
    int64_t deletion_rate; /* shards that are removed at the same time */
};

/* xl->private */
struct shard {
    struct xlator *xl;
    char *size_domain;    /* the domain of locks on sizes */
    bool is_subdir;       /* the mount's root is a folder of the volume */
    bool flushes;         /* a layer below has to write sizes of shards at FLUSH */
    pthread_mutex_t lock; /* guards the fields up to `wants_sweep`; a leaf */
    struct inode *dir;    /* /.shard: a reference; NULL: not known to exist */
    struct inode *markers; /* /.shard/.remove_me, in the same way */
    bool is_sweeping, wants_sweep;
    atomic_bool is_stopping;
    atomic_bool is_posted;   /* the job waits for a worker */
    _Atomic unsigned again_ms; /* delay of the next sweep after one that has left a marker */
    struct timer again;      /* the next sweep, for markers of files that were open */
    struct worker_job job;   /* starts a sweep */
    _Atomic uint64_t swept;  /* number of shards that were removed since the start */
};

/* The lock on a file's size (hold.c), under the lock of its struct shard_file. */
struct shard_hold {
    enum { SHARD_HOLD_NONE, SHARD_HOLD_TAKING, SHARD_HOLD_HELD, SHARD_HOLD_DROPPING } state;
    bool is_exclusive;
    unsigned users, joins;
    uint64_t size;   /* the file's size, as long as the lock is held */
    uint64_t append; /* where the next append begins */
    struct call_stack *unlock; /* the call that drops the lock */
    struct cds_list_head waiters; /* oldest first */
};

/* The context of an inode: a file (with `is_block` false) or a shard. */
struct shard_ctx {
    bool is_block;
};

/* A file, with shards or without. `lock` is a leaf and guards all fields except those set at creation. */
struct shard_file {
    struct shard_ctx ctx; /* the first member */
    uint64_t block_size;  /* 0: the file has no shards, all calls pass */
    pthread_mutex_t lock;
    uint64_t size, blocks; /* as last seen: other clients may have changed them */
    struct iatt last;      /* the base file's attributes as last seen; mode 0: never */
    bool is_unlinked;      /* this mount has removed the last name, or has seen that there is none */
    bool has_strays;       /* a call of this mount has failed, and may have left shards behind the end */
    /* The time of the last write that the base file does not show yet; 0: none. */
    int64_t owed_sec, told_sec;
    uint32_t owed_nsec;
    struct cds_list_head dirty; /* of struct shard_block: written since the last fsync */
    bool is_unflushed;          /* shards were written since the last flush */
    struct shard_hold hold;
    struct cds_list_head changes; /* of the size, that wait for is_changing to end */
    bool is_changing;
};

/* A shard. */
struct shard_block {
    struct shard_ctx ctx;       /* the first member */
    struct inode *inode;        /* the inode of this context; a reference while in the list */
    struct gfid base;           /* of the file; set at creation. The file's lock guards the fields below */
    struct cds_list_head link;  /* in the file's `dirty`, under the file's lock */
    bool is_dirty;
    uint64_t writes; /* number of writes; under the file's lock */
    uint64_t flushed; /* of these, before the last FLUSH */
};

/* An operation: one call of the layer above, or of a sweep; on the stack of its coroutine. */
struct shard_op {
    struct shard *s;
    struct call_stack *stk;
    struct inode *base;     /* borrowed; NULL: none */
    struct fd *fd;          /* of the base file; borrowed; NULL: none */
    struct shard_file *f;   /* of `base`, after shard_op_file() */
};

extern const struct gfid shard_dir_gfid, shard_markers_gfid;

/* The 512-byte blocks of a shard, or of the base file, that count for the file: a file system that allocates
 * ahead takes more, and gives them back later. */
static inline uint64_t
shard_counted(const struct shard_file *f, uint64_t blocks)
{
    uint64_t most = f->block_size / 512;

    return blocks < most ? blocks : most;
}

static inline const struct shard_conf *
shard_conf(const struct shard *s)
{
    return xlator_conf(s->xl);
}

/* ---- calls.c --------------------------------------------------------------------------------- */

struct shard_op shard_op_of(struct xlator *xl, struct call_stack *stk);

/* Calls for the caller of `o`. As root: for shards, which belong to root, with the caller's pid, so that
 * limits for users apply. Internal: for the volume, also past limits. Functions that fill in a call return
 * the call, or NULL after freeing it when out of memory. They accept NULL and return NULL. */
struct call_stack *shard_call_new(const struct shard_op *o, enum fop fop);
struct call_stack *shard_call_root(const struct shard_op *o, enum fop fop);
struct call_stack *shard_call_internal(const struct shard_op *o, enum fop fop);
struct call_stack *shard_call_inode(struct call_stack *stk, struct inode *inode);
/* `name` must stay valid until the call is freed. */
struct call_stack *shard_call_name(struct call_stack *stk, struct inode *parent, const char *name);
struct call_stack *shard_call_fd(struct call_stack *stk, struct fd *fd);
/* The base file: by the operation's fd, else by its inode. `by_fd` and `by_inode` are the two fops. */
struct call_stack *shard_call_base(const struct shard_op *o, enum fop by_fd, enum fop by_inode,
                                   bool is_internal);
struct call_stack *shard_call_put_uint(struct call_stack *stk, enum dict_key key, uint64_t value);
struct call_stack *shard_call_put_bytes(struct call_stack *stk, enum dict_key key, const void *bytes,
                                        size_t len);
struct call_stack *shard_call_put_gfid(struct call_stack *stk, enum dict_key key, const struct gfid *gfid);
/* Asks the brick for both xattrs of the file. */
struct call_stack *shard_call_ask(struct call_stack *stk);
int shard_ask(struct call_stack *stk);

/* Winds the call below and waits. Returns as coro_call(); -ENOMEM for NULL. The caller frees the call. */
int shard_call(const struct shard_op *o, struct call_stack *stk);
/* As shard_call(), and frees the call. */
int shard_call_once(const struct shard_op *o, struct call_stack *stk);
/* Moves the reply of `stk`, with all objects it owns, to the operation's call, and frees `stk`. */
void shard_op_take(const struct shard_op *o, struct call_stack *stk);
/* Sends the call without waiting for the reply; frees the call. NULL allowed. */
void shard_call_forget(const struct shard_op *o, struct call_stack *stk);

enum shard_lock_how { SHARD_LOCK_WAIT, SHARD_LOCK_TRY, SHARD_LOCK_DROP };
/* A call for an inodelk on the operation's base file, or an entrylk on a name in `dir`. `owner` has 8 bytes.
 * */
struct call_stack *shard_inodelk(const struct shard_op *o, const char *domain, const uint8_t *owner,
                                 enum shard_lock_how how);
struct call_stack *shard_entrylk(const struct shard_op *o, struct inode *dir, const char *name,
                                 const uint8_t *owner, enum shard_lock_how how);
/* A new owner of locks. */
void shard_owner_new(uint8_t owner[8]);

static inline bool
shard_is_missing(int err)
{
    return err == -ENOENT || err == -ESTALE;
}

/* ---- file.c ---------------------------------------------------------------------------------- */

int shard_file_pools_init(void);
/* Returns the context of a file; NULL: not known. */
struct shard_file *shard_file_known(const struct shard *s, struct inode *inode);
/* Returns the context of a file, made if necessary, and updated by the xattrs of a reply about the file.
 * NULL: out of memory. */
struct shard_file *shard_file_learn(const struct shard *s, struct inode *inode, const struct dict *xattrs,
                                    const struct iatt *a);
/* The context of a file that was just created with this block size. */
struct shard_file *shard_file_new(const struct shard *s, struct inode *inode, uint64_t block_size,
                                  const struct iatt *a);
/* Sets o->f: asks the brick if the file is not known. Returns 0 or -errno. In a coroutine. */
int shard_op_file(struct shard_op *o);
/* Reads the size from the brick, to o->f and, unless NULL, *out. Returns 0 or -errno. */
int shard_file_look(const struct shard_op *o, struct iatt *out);
/* Reads the two xattrs. Returns false if the dict lacks the key or has nonsense. */
bool shard_read_block_size(const struct shard *s, const struct dict *d, uint64_t *out);
bool shard_read_size(const struct dict *d, uint64_t *size, uint64_t *blocks);
/* Writes the value of the xattr file-size, 32 bytes. */
enum { SHARD_SIZE_BYTES = 32, SHARD_BLOCK_SIZE_BYTES = 8 };
void shard_write_size(uint8_t out[SHARD_SIZE_BYTES], uint64_t size, uint64_t blocks);
void shard_write_block_size(uint8_t out[SHARD_BLOCK_SIZE_BYTES], uint64_t block_size);
/* Replaces size, blocks and modification time by those of the whole file as last seen. */
void shard_file_fix(struct shard_file *f, struct iatt *a);
/* Returns whether the attributes could be fixed by the xattrs of the same reply; removes the xattrs from the
 * reply's xdata. */
bool shard_reply_fix(struct shard *s, struct inode *inode, struct dict *xdata, struct iatt *a);
uint64_t shard_file_size(struct shard_file *f);
/* Notes a write that has changed only shards; tells the base file the time, at most once a second. */
void shard_file_written(const struct shard_op *o);
/* Notes that the base file was written, which has set its time. */
void shard_file_base_written(struct shard_file *f, const struct iatt *post);
/* Tells the base file an owed time. Returns 0 or -errno. */
int shard_file_pay_time(const struct shard_op *o);
bool shard_file_owes_time(struct shard_file *f);
/* Returns whether a FLUSH has something to do. */
bool shard_file_owes(const struct shard *s, struct shard_file *f);
/* Notes that the shard was written and must be synced. */
int shard_block_dirty(const struct shard_op *o, struct inode *inode);
/* Notes that an FSYNC of the shard has covered the first `writes` writes. */
void shard_block_synced(struct shard_file *f, struct shard_block *b, uint64_t writes);
/* The attributes of the whole file as last seen. */
struct iatt shard_file_iatt(struct shard_file *f);
void shard_ctx_free(struct shard_ctx *ctx);
/* Drops the references to dirty shards. */
void shard_file_drop_dirty(struct shard_file *f);

/* ---- hold.c ---------------------------------------------------------------------------------- */

/* Takes the lock on the size, or joins the calls of this mount that have it. Exclusive: no other call of this
 * mount has it. The true size is then in o->f->hold.size. Returns 0 or -errno. */
int shard_hold_join(const struct shard_op *o, bool is_exclusive);
void shard_hold_leave(const struct shard_op *o);
/* Returns where an append of `len` bytes goes, and reserves the place. With the lock. */
uint64_t shard_hold_append(struct shard_file *f, uint64_t len);
/* Makes the size at least `end`, and adds blocks, under the lock. Returns 0 or -errno. */
int shard_size_extend(const struct shard_op *o, uint64_t end, int64_t blocks);
/* Makes the size `size`, under the exclusive lock. */
int shard_size_set(const struct shard_op *o, uint64_t size, int64_t blocks);
/* Adds blocks without the lock, and reads the size. Returns 0 or -errno. */
int shard_blocks_add(const struct shard_op *o, int64_t blocks, uint64_t *size);

/* ---- blocks.c -------------------------------------------------------------------------------- */

enum { SHARD_NAME_MAX = GFID_TEXT_SIZE + 24 };
/* Finds /.shard, or /.shard/.remove_me; creates them if `makes`. *out is a reference. Returns 0, -ENOENT, or
 * another -errno. */
int shard_dir(const struct shard_op *o, bool makes, struct inode **out);
int shard_markers(const struct shard_op *o, bool makes, struct inode **out);
/* Finds block n >= 1; *out is a reference. */
int shard_block_find(const struct shard_op *o, uint64_t n, struct inode **out);
/* Finds block n >= 1 or creates it. */
int shard_block_make(const struct shard_op *o, uint64_t n, struct inode **out);
/* Notes that the shard of this inode is gone, because another client has removed it. */
void shard_block_lost(const struct shard_op *o, uint64_t n, struct inode *inode);
/* Removes block n of the file `gfid` in the folder; adds its blocks to *blocks, unless NULL. Returns 0, also
 * if there is none, or -errno. */
int shard_block_remove(const struct shard_op *o, struct inode *dir, const char *name, uint64_t *blocks);
void shard_block_name(char out[SHARD_NAME_MAX], const struct gfid *gfid, uint64_t n);
/* Removes blocks `first` to `last`. Returns 0 or the first -errno. */
int shard_blocks_remove(const struct shard_op *o, const struct gfid *gfid, uint64_t first, uint64_t last,
                        uint64_t *blocks);
/* Removes all shards of the file that a listing of /.shard shows, from block `first` on. */
int shard_blocks_remove_listed(const struct shard_op *o, const struct gfid *gfid, uint64_t first,
                               uint64_t *blocks);
/* Sets *next to the number of the first block from `first` on that a listing of /.shard shows; UINT64_MAX:
 * none. */
int shard_block_next(const struct shard_op *o, uint64_t first, uint64_t *next);
/* Above this number of blocks a removal goes by a listing. */
enum { SHARD_BLOCKS_BY_NUMBER = 65536 };
/* Calls fn for each name in the folder. fn returns 0 or -errno, which ends the walk. */
int shard_dir_walk(const struct shard_op *o, struct inode *dir,
                   int (*fn)(const struct shard_op *o, const char *name, void *arg), void *arg);

/* ---- length.c -------------------------------------------------------------------------------- */

/* Makes the file `size` bytes long. Returns 0 or -errno. */
int shard_truncate_to(struct shard_op *o, uint64_t size);
xl_verdict shard_truncate_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_open_go(struct xlator *xl, struct call_stack *stk);

/* ---- sweep.c --------------------------------------------------------------------------------- */

void shard_sweep_init(struct shard *s);
/* Starts a sweep in the background, or lets the one that runs begin again. */
void shard_sweep(struct shard *s);
/* Lets the timer start a sweep. */
void shard_sweep_later(struct shard *s);
void shard_sweep_stop(struct shard *s);
/* Writes the marker of the operation's base file. Returns 0 or -errno. */
int shard_marker_make(const struct shard_op *o, struct inode *markers, uint64_t size, uint64_t block_size);

/* ---- fops ------------------------------------------------------------------------------------ */

xl_verdict shard_readv_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_writev_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_space_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_seek_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_fsync_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_flush_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_lookup(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_create(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_mknod(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_readdir(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_unlink_go(struct xlator *xl, struct call_stack *stk);
xl_verdict shard_rename_go(struct xlator *xl, struct call_stack *stk);
/* STAT, FSTAT, SETATTR, FSETATTR, LINK: one call, and attributes of the whole file in the reply. */
xl_verdict shard_attributes(struct xlator *xl, struct call_stack *stk);

#endif
