/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* index: the declarations that the files of features/index share (spec: brick 7).
 *
 *   BRICK/.glusterfs/indices/
 *       xattrop/        <gfid> for each object with a pending counter   hard links of xattrop-<uuid>
 *       dirty/          <gfid> for each object with a dirty mark        ... of dirty-<uuid>
 *       entry-changes/  <directory's gfid>/<name> for each entry that changed while a brick was down
 *       kiln-names/     notes about renames under way, and about changes of dead clients: index-names.c,
 *                       index-dead.c
 *
 * Clients see the first three as virtual directories with gfids of their own. The gfids are random, new at
 * each start, and differ only in their last byte, so one comparison tells whether a call concerns them.
 *
 * Locks: a context's mutex and the private one are held for a few instructions. An xattrop and its index
 * entry must be exclusive across system calls and across storage's reply. For that, the context has the flag
 * `is_busy` and a queue of parked calls.
 */
#ifndef KILN_INDEX_INTERNAL_H
#define KILN_INDEX_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "event/worker.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "stack/xlator.h"

enum index_type { INDEX_XATTROP, INDEX_DIRTY, INDEX_ENTRY_CHANGES, INDEX_TYPES };
#define INDEX_GFID_TYPES 2 /* the first two types have one entry per object */

extern const char *const index_dir_names[INDEX_TYPES];
#define INDEX_NOTES "kiln-names"

struct index_conf {
    char *base;
    char *dirty_list, *pending_list, *list64; /* prefixes, separated by commas or spaces; NULL: none */
};

/* A listing under way keeps its descriptor, because on a tmpfs a position is a count of entries, and the
 * reader removes entries while it reads. One descriptor per brick; a second reader opens and seeks. */
struct index_listing {
    const struct fd *owner; /* only compared; NULL: none */
    int fd;
    uint64_t at; /* cookie of the last returned entry */
    bool is_busy;
};

struct index_private {
    int base_fd;
    struct gfid virtual_gfid; /* its last byte is replaced by an index_type */
    atomic_long counts[INDEX_GFID_TYPES];
    atomic_long name_notes;   /* number of notes on disk */
    pthread_mutex_t mutex;    /* guards the fields below */
    struct gfid base_uuid;
    struct index_listing listing;
};

enum index_state { INDEX_UNKNOWN, INDEX_IN, INDEX_OUT };

/* The context of a real inode: the known state of its entries. The context of a virtual subdirectory: the
 * directory whose changes it lists. */
struct index_ctx {
    pthread_mutex_t mutex; /* guards is_busy and parked */
    bool is_busy;
    struct cds_list_head parked; /* of call-stubs */
    uint8_t state[INDEX_GFID_TYPES]; /* only the call that holds is_busy accesses it */
    bool is_subdir;                  /* this and the next field are set before the context is installed */
    struct gfid subdir_of;
};

/* index.c */
struct index_ctx *index_ctx_get(struct xlator *xl, struct inode *inode);
struct index_ctx *index_ctx_new(struct xlator *xl);
void index_ctx_free(struct index_ctx *ctx);
static inline struct index_private *
index_private(const struct xlator *xl)
{
    return xl->private;
}

/* Enters the context. XL_PASS: the caller owns the context's state until index_leave(). XL_OWNED: `stk` is
 * parked, and `go` will run when the context is free; its verdict is that of a fop function. -ENOMEM. */
typedef xl_verdict (*index_go)(struct xlator *xl, struct call_stack *stk);
xl_verdict index_enter(struct xlator *xl, struct index_ctx *ctx, struct call_stack *stk, index_go go);
void index_leave(struct index_ctx *ctx);

/* index-entry.c: files on disk. The functions return 0 or -errno. */
#define INDEX_PATH_MAX (64 + 40 + 256)
int index_base_open(struct xlator *xl, struct reason *why);
int index_entry_add(struct xlator *xl, enum index_type type, const struct gfid *gfid);
int index_entry_remove(struct xlator *xl, enum index_type type, const struct gfid *gfid);
int index_change_add(struct xlator *xl, const struct gfid *dir, const char *name);
int index_change_remove(struct xlator *xl, const struct gfid *dir, const char *name);
/* Removes all recorded changes of a directory. The contents, if any, are removed in the background. */
int index_changes_purge(struct xlator *xl, const char *dir_name);
/* The same for a directory that was removed. While the gfid has a handle, the changes stay: a heal has made
 * the directory anew before it has removed the one at the old place. */
int index_changes_forget(struct xlator *xl, const struct gfid *gfid);
bool index_is_base_name(enum index_type type, const char *name);
bool index_is_current_base(struct xlator *xl, enum index_type type, const char *name);
/* Returns the number of entries on disk now in a directory of the index, or -errno. */
int64_t index_count(struct xlator *xl, const char *directory);

/* index-xattrop.c */
xl_verdict index_xattrop(struct xlator *xl, struct call_stack *stk);

/* index-virtual.c */
enum index_virtual { VIRTUAL_NO, VIRTUAL_XATTROP, VIRTUAL_DIRTY, VIRTUAL_ENTRY_CHANGES, VIRTUAL_SUBDIR };
enum index_virtual index_virtual_of(const struct xlator *xl, struct inode *inode);
/* Returns the directory's path below the base; for VIRTUAL_SUBDIR, the path of its changes. */
void index_virtual_path(struct xlator *xl, struct inode *inode, enum index_virtual v,
                        char path[INDEX_PATH_MAX]);
/* True for root and internal clients. Only they may use the virtual directories, because access-control is
 * below this layer and never checks them. */
bool index_may_use(const struct caller *c);
xl_verdict index_lookup(struct xlator *xl, struct call_stack *stk);
xl_verdict index_fstat(struct xlator *xl, struct call_stack *stk);
xl_verdict index_opendir(struct xlator *xl, struct call_stack *stk);
xl_verdict index_unlink(struct xlator *xl, struct call_stack *stk);
/* Prepares a fop that removes `folder` (NULL or another type: does nothing). Returns XL_PASS or -errno. */
xl_verdict index_folder_removal(struct xlator *xl, struct call_stack *stk, const struct inode *folder);
xl_verdict index_getxattr(struct xlator *xl, struct call_stack *stk);
xl_verdict index_any(struct xlator *xl, struct call_stack *stk);

/* index-names.c. The functions named for a fop prepare it, and return XL_PASS or -errno. */
xl_verdict index_names_change(struct xlator *xl, struct call_stack *stk); /* LINK and RENAME: complete fops */
xl_verdict index_names_unlink(struct xlator *xl, struct call_stack *stk);
xl_verdict index_names_lookup(struct xlator *xl, struct call_stack *stk);
xl_verdict index_names_opendir(struct xlator *xl, struct call_stack *stk);
xl_verdict index_names_list(struct xlator *xl, struct call_stack *stk); /* GETXATTR kiln.name-notes */
xl_verdict index_names_inodelk(struct xlator *xl, struct call_stack *stk); /* a complete fop */

/* Write a note, in place of an older one, and remove a note. Return 0 or -errno. */
int index_note_write(struct index_private *priv, const char *path, const char *text);
void index_note_remove(struct index_private *priv, const char *path);

/* index-dead.c */
xl_verdict index_dead_lookup(struct xlator *xl, struct call_stack *stk); /* acts on the keys of a LOOKUP */
xl_verdict index_dead_list(struct xlator *xl, struct call_stack *stk); /* GETXATTR kiln.dead-changes */

/* index-readdir.c */
xl_verdict index_readdir(struct xlator *xl, struct call_stack *stk);
void index_fd_closed(struct xlator *xl, struct fd *fd);

#endif
