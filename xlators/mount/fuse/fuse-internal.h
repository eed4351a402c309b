/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fuse-internal: the private header of mount/fuse.
 *
 *   fuse.c    the translator itself: options, mount and unmount, reading requests from the kernel's device
 *   task.c    a request in progress: its coroutine, its caller, its end
 *   node.c    objects that the kernel knows by number: inodes with lookup counts, open files
 *   entry.c   names: lookup, create and remove        attr.c   attributes, statfs
 *   folder.c  attributes of folders, cached for a second
 *   news.c    invalidations from bricks after changes by other clients
 *   data.c    open files                              dir.c    directories
 *   xattr.c   extended attributes                     lock.c   fcntl and flock locks
 *   privs.c   set-id bits of changed files
 *   switch.c  replacement of the graph below the mount point
 *   saved.c   the mount in the hands of a newer program of the same process
 *   meta.c    the folder .meta: facts about the mount
 *
 * A request is a coroutine: straight-line code that fills in a call stack, calls the graph below and
 * replies. libfuse decodes requests and encodes replies, but runs no thread and no loop here.
 *
 *      worker: read(device) -> libfuse calls op_lookup() -> task_new(), task_start()
 *                                                             | coroutine: task_call() winds the call,
 *                                                             sleeps
 *              reads the next request  <----------------------+
 *      worker: reply of the brick -> the coroutine continues here: fuse_reply_entry(), task ends
 *
 * A function that runs in a coroutine is called something_go(). Such code sleeps only in task_call() and
 * similar functions. */
#ifndef KILN_MOUNT_FUSE_INTERNAL_H
#define KILN_MOUNT_FUSE_INTERNAL_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "base/parcel.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "stack/coro-call.h"

#define FUSE_WRITE_MAX (1u << 20)
/* The I/O size that stat reports to programs, as in stock's mounts. With the bricks' 4 KiB each 4 KiB of a
 * C program's output would be a request. */
#define FUSE_BLOCK_BYTES (128 << 10)

struct fuse_conf {
    char *mountpoint, *source;
    char *attr_timeout, *entry_timeout, *negative_timeout; /* as given: fractions are allowed */
    char *kernel_options; /* names of mount(2) flags, separated by commas */
    bool is_read_only, acl, folder_attributes, skips_synced_fsync, handles_killpriv, is_told;
    bool writes_back; /* the kernel caches writes */
    bool is_inside; /* calls to bricks may block the thread that reads the device */
    bool takes_over; /* will take over the mount point of another graph: fuse_switch() */
    int direct_io;   /* enum */
    int64_t client_pid; /* pid of all callers, as bricks see it; 0: the callers' own */
};
enum { FUSE_IS_MOUNTED = 1, FUSE_HAS_NEWS = 2, FUSE_READY = 3 };
enum { DIRECT_IO_AUTO, DIRECT_IO_ENABLE, DIRECT_IO_DISABLE };

/* The file system at a mount point (mounted-as.c). */
struct mounted_as {
    dev_t device;
    uint64_t id; /* of the mount, never given again; 0: the kernel does not tell */
};
/* Returns the file system at the path, without asking its server. */
struct mounted_as mounted_as_now(const char *path);
/* Returns whether this file system, whose connection has ended, is still mounted at the path. May take a
 * second before Linux 6.8. */
bool mounted_as_still(const char *path, const struct mounted_as *as);

/* A mount point. The mount point stays while the graph below changes (switch.c), so tasks, nodes and open
 * files are accounted to the mount, not to a graph. */
struct fuse_mount {
    struct xlator *_Atomic xl; /* this layer in the serving graph */
    uint16_t owner;
    /* incremented when a folder is removed or moved: older cached attributes are invalid */
    atomic_uint folder_epoch;
    atomic_uint running; /* number of tasks, except those that wait for locks */
    struct fuse_session *se;
    struct event_source device;
    /* is_inside: reads on while a worker is stuck in a request; see device_want_help() */
    struct worker_job help;
    atomic_bool needs_help, is_help_posted;
    unsigned helps; /* posted or running; under device_lock */
    pthread_cond_t helps_ended;
    atomic_bool is_mounted;
    atomic_bool has_ended;  /* `unmounted` was called */
    atomic_bool kills_privs; /* the kernel leaves clearing set-id bits to us: privs.c */
    bool writes_back;        /* the kernel caches writes: data.c. Set before the first request */
    unsigned long flags;    /* of mount(2) */
    size_t init_bytes;      /* the kernel's INIT; 0: not read yet */
    char init[256];
    struct saving *_Atomic saving;   /* saved.c: while a newer program is about to run */
    struct restored *restored; /* saved.c: the numbers that an earlier program has given; NULL: none */
    struct mounted_as mounted_as; /* written before other threads see the mount */
    struct inode *root;     /* a reference */
    _Atomic double attr_timeout_s; /* a new volfile may change the value */
    double entry_timeout_s, negative_timeout_s;
    struct meta_options *meta_options; /* RCU: meta.c; NULL: use the graph's volfile */
    atomic_uint meta_epoch;            /* incremented when the contents of .meta may have changed */

    /* guards ready_for and is_reading, and the event-loop system call; only locks of the event loop are
     * taken inside */
    pthread_mutex_t device_lock;
    unsigned ready_for;          /* bits of FUSE_*; all set: the device is in the event loop, or has been */
    bool is_reading;             /* the device is in the event loop now: requests are served */

    /* guards the fields up to `parked`, the nodes' `files`, the files' `listing`; a leaf lock */
    pthread_mutex_t lock;
    struct cds_list_head files;  /* all open files: the kernel closes none after an abort */
    struct cds_list_head lock_waits; /* struct lock_wait: requests for locks that wait at the bricks */
    struct parcel withdrawn;     /* such requests that saved.c has called off, as read from the device */
    bool is_switching;           /* another graph is about to serve */
    struct cds_list_head parked; /* tasks that have waited for a lock and continue after the switch: task.c */
};

/* A request for a lock that waits, for saved.c; on the stack of the task's coroutine. */
struct lock_wait {
    struct cds_list_head link; /* the rest under the mount's lock, too */
    struct task *task;
    bool is_called_off; /* its end by EINTR is no answer for the kernel */
    size_t bytes;       /* of the request as read from the device; 0: too long to be kept */
    char request[128];
};

int fuse_pools_init(void);
static inline const struct fuse_conf *
fuse_conf(const struct fuse_mount *m)
{
    return xlator_conf(m->xl);
}

struct task;

/* ---- node.c ---------------------------------------------------------------------------------- */

/* The numbers of nodes and files at the kernel are their addresses, and in the upper bits the generation of
 * the program that has made them: the number of programs before it in this process. */
#define NUMBER_SHIFT 48
extern uint64_t fuse_generation; /* shifted; set before the first mount */
#define NUMBER_OF(object) ((uint64_t)(uintptr_t)(object) | fuse_generation)

/* The context of an inode. `number` is the inode's number at the kernel, except for the root. While `lookups`
 * is not 0 the kernel knows the number, and one reference to the inode is held for all lookups. */
struct fuse_node {
    struct inode *inode; /* the inode of this context; no reference. Changed by switch.c while no task runs */
    uint64_t number;
    atomic_bool is_unseen; /* the layers below have not looked the object up yet: saved.c */
    _Atomic uint64_t lookups;
    atomic_bool has_privs;      /* in the mode last sent to the kernel: privs.c */
    atomic_bool has_had_locks;  /* a lock was requested on this mount: FLUSH must reach the brick */
    atomic_uint kept;           /* number of the inode's open files with an older graph: switch.c */
    /* number of changes by this mount to the file or its attributes, except changes that were on the
     * bricks' disks at the reply */
    atomic_uint changes;
    atomic_uint synced;         /* `changes` before the last FSYNC, plus 1: these changes are on the disks */
    _Atomic(struct fuse_folder *) folder; /* folder.c; set once */
    struct cds_list_head files; /* open files, newest first; under the mount's lock */
};

/* An open file or directory; `number` is the kernel's file handle. The graph of an fd is the graph of the
 * fd's inode: the serving graph, or an older graph, which stays while a file here belongs to that graph. */
struct fuse_file {
    struct cds_list_head link, node_link;
    uint64_t number;
    bool is_lost; /* could not be opened again by a newer program; `fd` is anonymous */
    struct fuse_node *node;
    struct fd *fd;        /* changed by switch.c while no task runs */
    struct fd *listing;   /* directory: an fd of an older graph with an unfinished listing; or NULL */
    bool is_in_list; /* a listing was begun; written by the task that lists, read while no task runs */
    _Atomic uint64_t end; /* directory: the listing ends after this cookie; 0: unknown */
    atomic_int err; /* -errno of failed writes that an older graph had already answered; reported once */
};

int node_pools_init(void);
/* Returns a new reference to the inode of a number. The kernel passes only numbers that the kernel got from
 * here. */
struct inode *node_inode(struct fuse_mount *m, fuse_ino_t number);
/* Returns the node of a number. NULL: out of memory, possible for the root only. */
struct fuse_node *node_at(struct fuse_mount *m, fuse_ino_t number);
/* Returns the inode's context, made on first use. NULL: out of memory. */
struct fuse_node *node_of(struct fuse_mount *m, struct inode *inode);
/* Returns the inode's number for the kernel, and increments the lookup count. 0: out of memory. */
fuse_ino_t node_tell(struct fuse_mount *m, struct inode *inode);
/* Subtracts `count` lookups that the kernel has forgotten. */
void node_forget(struct fuse_mount *m, struct inode *inode, uint64_t count);
void node_free(struct fuse_node *node);
/* Makes an open file, and takes over the reference to fd. Returns NULL if out of memory, and then leaves the
 * reference to the caller. A NULL node means that there was no memory for the node. */
struct fuse_file *file_new(struct fuse_mount *m, struct fuse_node *node, struct fd *fd);
void file_free(struct fuse_mount *m, struct fuse_file *f);
/* Notes a change of the task's file that is not on the bricks' disks yet. */
void node_has_changed(struct task *t);
/* Notes a successful FSYNC; `changes` was read before the FSYNC. */
static inline void
node_is_synced(struct fuse_node *node, unsigned changes)
{
    atomic_store(&node->synced, changes + 1);
}
/* Returns a reference to an fd of this graph, of a file that is open on the node; NULL: none is. */
struct fd *file_fd_of(struct fuse_mount *m, struct fuse_node *node, const struct graph *g);
/* As file_fd_of(), for graphs that serve no more. */
struct fd *file_kept_fd_of(struct fuse_mount *m, struct fuse_node *node);
/* Returns a reference to the fd that a listing must be read from. `from_start` drops an older graph's
 * listing. */
struct fd *file_listing_fd(struct fuse_mount *m, struct fuse_file *f, bool from_start);
/* Drops all files and lookups after the mount point is gone, because the kernel does not release them. */
void nodes_drop(struct fuse_mount *m);

/* ---- saved.c --------------------------------------------------------------------------------- */

/* The objects with a number that an earlier program has given. */
struct fuse_node *restored_node(const struct fuse_mount *m, uint64_t number);
struct fuse_file *restored_file(const struct fuse_mount *m, uint64_t number);
void restored_free(struct fuse_mount *m);
/* In a coroutine, before the task runs: looks up the task's objects that no layer has seen. */
void task_see(struct task *t);
/* For start(): the mount point of an earlier program. Returns the descriptor, or -ENOENT: there is none. */
int restored_device(struct fuse_mount *m);

static inline struct fuse_file *
file_of(const struct fuse_mount *m, const struct fuse_file_info *fi)
{
    if ((fi->fh ^ fuse_generation) >> NUMBER_SHIFT)
        return restored_file(m, fi->fh);
    return (struct fuse_file *)(uintptr_t)(fi->fh & ~(UINT64_MAX << NUMBER_SHIFT)); /* NOLINT: our own */
}

/* ---- task.c ---------------------------------------------------------------------------------- */

struct task {
    struct fuse_mount *m;
    /* the layer that the task calls: the mount's at the task's beginning, or the file's. The layer's graph is
     * pinned */
    struct xlator *xl;
    fuse_ino_t number;           /* the inode's number; 0: by name */
    fuse_req_t req;              /* NULL: no reply is expected */
    void (*go)(struct task *t);
    struct call_stack *stk;      /* the task's call, with its arguments */
    struct call_stack *before;   /* the first call, after an open file has repeated the call; or NULL */
    struct call_stack *again;    /* the repetition of a refused call, which has its reply; or NULL */
    struct fuse_file_info fi;    /* open, create: to be returned */
    struct fuse_file *file;      /* the file of the request; or NULL */
    size_t size;                 /* size of the kernel's buffer for data that is read */
    int to_set;                  /* setattr */
    bool kills_privs;            /* write, setattr, create: the kernel asks to clear set-id bits */
    bool has_old_groups;         /* see groups.c */
    int err;                     /* -errno: the task fails without a run */
    uint8_t owner[8];            /* lock owner */
};

int task_pools_init(void);

/* groups.c: the supplementary groups that the calling thread has now, or had at most 10 ms ago (*is_old),
 * into `out`, at most CRED_GROUPS_MAX. Return the number of groups, or -errno: the thread has ended.
 * thread: any. */
int groups_of(const struct fuse_ctx *ctx, uint32_t *out, bool *is_old);
int groups_now(const struct fuse_ctx *ctx, uint32_t *out);
void groups_end(void); /* call when no request is left */

/* Makes a task for a call of `fop` with the request's caller and, if `number` is not 0, the inode's gfid.
 * NULL: the request is already answered. */
struct task *task_new(fuse_req_t req, enum fop fop, fuse_ino_t number, void (*go)(struct task *t));
/* Makes a task without a request, for the caller, inode and fd of a waiting task. NULL: out of memory, or
 * the mount is ending. */
struct task *task_new_inside(struct task *waiting, enum fop fop, void (*go)(struct task *t));
/* Copies the text to the call's arena. NULL marks the task as out of memory, which task_start() answers. */
const char *task_text(struct task *t, const char *text);
/* Sets the entry of the directory `parent` that the call is about. A name that is too long fails the task. */
void task_set_entry(struct task *t, fuse_ino_t parent, const char *name);
/* LINK and RENAME: sets the new entry. */
void task_set_new_entry(struct task *t, fuse_ino_t parent, const char *name);
void task_set_file(struct task *t, struct fuse_file_info *fi);
/* Sets the fd of the call, and the fd's graph as the graph to call, which may be an older graph. Takes over
 * the reference. */
void task_set_fd(struct task *t, struct fd *fd);
/* Sets the lock owner that the kernel has passed, instead of the process. */
void task_set_owner(struct task *t, uint64_t owner);
/* Adds a fresh gfid-req to the call's xdata: a new object gets that gfid. */
void task_ask_gfid(struct task *t);
/* Marks the task as out of memory. */
void task_is_short(struct task *t);
/* Runs the task; ends with the reply. The caller must not use the task afterwards. */
void task_start(struct task *t);

/* In a coroutine: winds the task's call. Returns as coro_call(). */
int task_call(struct task *t);
/* Returns a further call for the same caller, inode and fd; NULL: out of memory. The caller winds the call
 * with task_wind(), and then frees the call. */
struct call_stack *task_call_new(struct task *t, enum fop fop);
int task_wind(struct task *t, struct call_stack *stk);
/* As task_call(), for a call that may wait for other clients without limit. Such a call does not delay a
 * switch of graphs, and may be lost with the old graph. */
int task_call_waiting(struct task *t);
/* Returns true if the file has moved to another graph, and the lock call with this result must be repeated:
 * the task then belongs to the new graph. */
bool task_follow(struct task *t, int ret);
/* Between these two calls, tasks that have finished waiting are parked; tasks_go_on() resumes them. */
void tasks_hold_back(struct fuse_mount *m);
void tasks_go_on(struct fuse_mount *m);
/* As task_wind(), for calls by number. ENOENT becomes ESTALE, so that the kernel looks the name up again. A
 * brick does not find an object without a name by gfid: if the object is open, the call is repeated by the
 * open file. Then *stk is the new call, and the task owns the old call. */
int task_wind_by_number(struct task *t, struct call_stack **stk);
int task_call_by_number(struct task *t);
/* Reply to the kernel. `err` is -errno. */
void task_fail(struct task *t, int err);
void task_done(struct task *t);          /* an empty reply */
void task_result(struct task *t, int ret); /* task_fail() or task_done() */

/* ---- folder.c -------------------------------------------------------------------------------- */

struct fuse_folder;
int fuse_folder_pool_init(void);
void fuse_folder_free(struct fuse_folder *f);
/* All these functions take a node that stays because the caller holds the inode or the kernel knows the
 * number; NULL: no cache. */
/* Returns cached attributes, and the seconds for which the attributes stay valid. */
bool fuse_folder_get(struct fuse_mount *m, struct fuse_node *node, struct iatt *out, double *left_s);
/* The state before a call that reads attributes. The result is cached if the folder has not changed since. */
struct fuse_folder_look {
    struct fuse_folder *folder; /* NULL: do not cache; else valid while the inode is held */
    uint64_t at_ns;
    uint32_t changes, epoch;
    bool is_quiet;
};
struct fuse_folder_look fuse_folder_look(struct fuse_mount *m, struct fuse_node *node);
void fuse_folder_keep(struct fuse_mount *m, const struct fuse_folder_look *look, const struct iatt *iatt);
/* Begins a change of the folder. The caller holds the inode until fuse_folder_changed(). Returns NULL if
 * there is no cache. */
struct fuse_folder *fuse_folder_change(struct fuse_mount *m, struct fuse_node *node);
/* Ends the change, with the folder's attributes before and after; NULL: unknown, or the change may have
 * failed. */
void fuse_folder_changed(struct fuse_folder *f, const struct iatt *pre, const struct iatt *post);
/* Drops the cached attributes. */
void fuse_folder_drop(struct fuse_node *node);

/* ---- news.c ---------------------------------------------------------------------------------- */

void fuse_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags);
/* Invalidates all of the kernel's cached attributes, because invalidations from bricks may have been lost. */
void fuse_news_missed(struct xlator *xl);

/* ---- privs.c --------------------------------------------------------------------------------- */

/* I/O functions for libfuse. */
extern const struct fuse_custom_io privs_io;
/* Examines a request, and possibly changes the bytes, before libfuse gets the request. */
void privs_look(struct fuse_mount *m, const char *bytes, size_t size);
/* From now on this thread's replies go nowhere, or to the device again. */
void privs_mute(bool is_mute);
/* Returns whether this thread's latest request asks to clear set-id bits. Not for coroutines. */
bool privs_are_to_be_killed(void);
/* Notes the mode that is sent to the kernel. */
static inline void
privs_told(struct fuse_node *node, const struct iatt *a)
{
    bool has = iatt_privs(a) != 0;

    if (node && atomic_load(&node->has_privs) != has)
        atomic_store(&node->has_privs, has);
}
/* In a coroutine: clears the set-id bits of the file, whose attributes are `a`; updates `a`. fd: NULL, or
 * of the file. Returns 0 or -errno. */
int privs_kill(struct task *t, struct fd *fd, struct iatt *a);
/* As privs_kill(), for a SETATTR of no attribute. */
int privs_kill_if_allowed(struct task *t, struct iatt *a);
/* As privs_kill(), for a task that writes: before the write, if the kernel knows of such bits, and after the
 * write, by the mode in the reply. */
int privs_before_write(struct task *t);
int privs_after_write(struct task *t);

/* ---- meta.c ---------------------------------------------------------------------------------- */

/* Returns whether the number is that of an object of .meta. */
static inline bool
meta_has(uint64_t number)
{
    return number & 1 && number != FUSE_ROOT_ID;
}
/* Handles a request as read from the kernel. Returns true if the request was for .meta, and is answered. */
bool meta_answers(struct fuse_mount *m, char *bytes, size_t size);
/* Takes the options of a new volfile, of the same shape, that the graph now uses. */
void meta_reconfigured(struct fuse_mount *m, const struct volfile *fresh);
/* Resets the options after a change of graph, or before the mount goes. */
void meta_forget(struct fuse_mount *m);

/* ---- fuse.c ---------------------------------------------------------------------------------- */

/* The request that this thread reads; NULL with *bytes 0: none. For functions that libfuse calls, and for a
 * coroutine until its first call. */
const char *device_request(size_t *bytes);
/* Handles a request as if the device had sent it. In a read section. */
void device_replay(struct fuse_mount *m, char *request, size_t bytes);
/* Handles the kernel's INIT again, without an answer. */
void device_replay_init(struct fuse_mount *m);
/* Begins to read a restored mount's device. */
void device_begin(struct fuse_mount *m);
/* Asks the bricks to end the task's wait for a lock; see lock.c. NULL: no memory. Started by task_start(). */
struct task *lock_call_off(struct task *waiting);
/* Stops reading requests: after return none runs in the device's handler. Returns false if requests were
 * not being read. */
bool device_pause(struct fuse_mount *m);
/* Reads requests again. */
void device_go_on(struct fuse_mount *m);
/* Tells the program that the last file of an older graph may have been closed. */
void fuse_tell_left(struct fuse_mount *m);
/* Returns the layer's mount; NULL: not taken over yet, or given to another layer. */
static inline struct fuse_mount *
mount_of(const struct xlator *xl)
{
    return __atomic_load_n(&xl->private, __ATOMIC_ACQUIRE);
}

/* ---- entry.c ... ----------------------------------------------------------------------------- */
void iatt_to_stat(const struct iatt *a, struct stat *st);
/* Returns the inode of a's gfid, with a reference; NULL: out of memory, or no gfid. */
struct inode *entry_inode(struct fuse_mount *m, const struct iatt *a);
/* Fills in the kernel's entry, including node_tell(). Returns 0 or -errno. */
int entry_fill(struct fuse_mount *m, const struct iatt *a, struct fuse_entry_param *e);

void op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count);
void op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *forgets);
void op_mknod(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, dev_t rdev);
void op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode);
void op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name);
void op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name);
void op_readlink(fuse_req_t req, fuse_ino_t number);
void op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t parent2, const char *name2,
               unsigned flags);
void op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char *name);
void op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi);

void op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *attr, int to_set, struct fuse_file_info *fi);
void op_statfs(fuse_req_t req, fuse_ino_t number);
void op_access(fuse_req_t req, fuse_ino_t number, int mask);

void op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi);
void op_write(fuse_req_t req, fuse_ino_t number, const char *bytes, size_t size, off_t off,
              struct fuse_file_info *fi);
void op_flush(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_fsync(fuse_req_t req, fuse_ino_t number, int datasync, struct fuse_file_info *fi);
void op_fallocate(fuse_req_t req, fuse_ino_t number, int mode, off_t offset, off_t length,
                  struct fuse_file_info *fi);
void op_lseek(fuse_req_t req, fuse_ino_t number, off_t off, int whence, struct fuse_file_info *fi);
/* If the device's buffer holds these bytes, returns the buffer, and the reader will use another buffer. Else
 * returns NULL. */
struct iobuf *device_take_buffer(const char *bytes);
void fuse_file_flags(struct fuse_mount *m, struct fuse_file_info *fi);
/* Returns the open(2) flags to send to bricks. */
uint32_t fuse_flags_for_bricks(const struct fuse_mount *m, int flags);

void op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi);
void op_readdir(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi);
void op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi);
void op_fsyncdir(fuse_req_t req, fuse_ino_t number, int datasync, struct fuse_file_info *fi);

void op_setxattr(fuse_req_t req, fuse_ino_t number, const char *name, const char *value, size_t size,
                 int flags);
void op_getxattr(fuse_req_t req, fuse_ino_t number, const char *name, size_t size);
void op_listxattr(fuse_req_t req, fuse_ino_t number, size_t size);
void op_removexattr(fuse_req_t req, fuse_ino_t number, const char *name);

void op_getlk(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, struct flock *lock);
void op_setlk(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, struct flock *lock, int sleep);
void op_flock(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi, int op);
/* For release(): drops remaining flock(2) locks. In a coroutine. */
void lock_drop(struct task *t);

#endif
