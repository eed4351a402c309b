/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fuse-internal: the insides of mount/fuse.
 *
 *   fuse.c    the layer: options, mount and unmount, requests read from the kernel's device
 *   task.c    a request on its way: its coroutine, its caller, its end
 *   node.c    what the kernel knows by number: inodes with their lookup counts, open files
 *   entry.c   names: lookup, create and remove        attr.c   attributes, statfs
 *   folder.c  attributes of folders, kept for a second
 *   news.c    what bricks say that others have changed
 *   data.c    open files                              dir.c    directories
 *   xattr.c   extended attributes                     lock.c   fcntl and flock locks
 *   privs.c   set-id bits of what is changed
 *   switch.c  another graph below the mount point
 *   meta.c    the folder .meta: facts about the mount
 *
 * A request is a coroutine: straight-line code that fills a call stack, calls the graph below and replies.
 * libfuse decodes requests and encodes replies; it has no thread and no loop here.
 *
 *      worker: read(device) -> libfuse calls op_lookup() -> task_new(), task_start()
 *                                                             | coroutine: task_call() winds the call, sleeps
 *              reads the next request  <----------------------+
 *      worker: reply of the brick -> the coroutine goes on here: fuse_reply_entry(), task ends
 *
 * A function that runs in a coroutine is called something_go(), and what it calls may sleep only in
 * task_call() and its like.
 */
#ifndef KILN_MOUNT_FUSE_INTERNAL_H
#define KILN_MOUNT_FUSE_INTERNAL_H

#define FUSE_USE_VERSION 35
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "stack/coro-call.h"

#define FUSE_WRITE_MAX (1u << 20)
/* What programs are told to read and write at a time, as by stock's mounts: of the bricks' 4 KiB
 * a C program's output would be a request each. */
#define FUSE_BLOCK_BYTES (128 << 10)

struct fuse_conf {
    char *mountpoint, *source;
    char *attr_timeout, *entry_timeout, *negative_timeout; /* as given: fractions are allowed */
    char *kernel_options; /* names of mount(2)'s flags, with commas between */
    bool is_read_only, acl, folder_attributes, skips_synced_fsync, handles_killpriv, is_told;
    bool writes_back; /* the kernel keeps what is written */
    bool takes_over; /* the mount point of another graph, later: fuse_switch() */
    int direct_io;   /* enum */
    int64_t client_pid; /* of all callers, for the bricks; 0: their own */
};
enum { FUSE_IS_MOUNTED = 1, FUSE_HAS_NEWS = 2, FUSE_READY = 3 };
enum { DIRECT_IO_AUTO, DIRECT_IO_ENABLE, DIRECT_IO_DISABLE };

/* A mount point. It stays while graphs below it change (switch.c): what it has (tasks, nodes, open files) is
 * counted for an owner of its own. */
struct fuse_mount {
    struct xlator *_Atomic xl; /* this layer in the graph that serves */
    uint16_t owner;
    atomic_uint folder_epoch; /* one more when a folder has gone or moved: nothing kept before counts */
    atomic_uint running; /* tasks, but for those that wait for locks */
    struct fuse_session *se;
    struct event_source device;
    atomic_bool is_mounted;
    atomic_bool has_ended;  /* `unmounted` was called */
    atomic_bool kills_privs; /* the kernel leaves that to us: privs.c */
    bool writes_back;        /* the kernel keeps what is written: data.c. Before the first request */
    unsigned long flags;    /* of mount(2) */
    dev_t mounted_as;       /* the file system's number; written before others see the mount */
    struct inode *root;     /* a reference */
    _Atomic double attr_timeout_s; /* a new volfile may bring another one */
    double entry_timeout_s, negative_timeout_s;
    struct meta_options *meta_options; /* RCU: meta.c; NULL: those of the graph's volfile count */
    atomic_uint meta_epoch;            /* one more when what .meta has may be another */

    pthread_mutex_t device_lock; /* guards the next two, and their system call; nothing is taken inside but
                                    the event loop's */
    unsigned ready_for;          /* FUSE_*; all of them: the device is in the event loop, or has been */
    bool is_reading;             /* ... it is: requests are served */

    /* guards what follows up to `parked`, the nodes' `files`, the files' `listing`. A leaf */
    pthread_mutex_t lock;
    struct cds_list_head files;  /* all open ones: the kernel closes none when it is cut off */
    bool is_switching;           /* another graph is about to serve */
    struct cds_list_head parked; /* tasks that had waited for a lock and go on after that: task.c */
};

int fuse_pools_init(void);
static inline const struct fuse_conf *
fuse_conf(const struct fuse_mount *m)
{
    return xlator_conf(m->xl);
}

struct task;

/* ---- node.c ---------------------------------------------------------------------------------- */

/* The layer's context of an inode. Its address is the inode's number at the kernel. While `lookups` is not 0
 * the kernel knows it, and one reference to the inode is held for all of them. */
struct fuse_node {
    struct inode *inode; /* whose context it is; no reference. Changed by switch.c while nothing runs */
    _Atomic uint64_t lookups;
    atomic_bool has_privs;      /* in the mode that the kernel was told last: privs.c */
    atomic_bool has_had_locks;  /* somebody of this mount has asked for one: FLUSH must reach the brick */
    atomic_uint kept;           /* of its open files, those that stayed with an older graph: switch.c */
    atomic_uint changes;        /* that this mount has made of the file or its attributes, but for those that
                                   were on the bricks' disks with their reply */
    atomic_uint synced;         /* `changes` of before the last FSYNC, and 1: then they are on the disks */
    _Atomic(struct fuse_folder *) folder; /* folder.c; set once */
    struct cds_list_head files; /* open ones, newest first; under the mount's lock */
};

/* An open file or directory; its address is the kernel's file handle. The graph of an fd is that of its
 * inode: the one that serves, or an older one, which stays for as long as a file here is of it. */
struct fuse_file {
    struct cds_list_head link, node_link;
    struct fuse_node *node;
    struct fd *fd;        /* changed by switch.c while nothing runs */
    struct fd *listing;   /* of an older graph, in which a list was begun that is not read to its end; NULL */
    bool is_in_list;      /* a list was begun; written by the task that reads it, read while nothing runs */
    _Atomic uint64_t end; /* of a directory: its list ends after this cookie; 0: not known */
    atomic_int err;       /* -errno: writes that an older graph had answered have failed; told once */
};

int node_pools_init(void);
/* A new reference. The kernel gives numbers that it was given only. */
struct inode *node_inode(struct fuse_mount *m, fuse_ino_t number);
/* NULL: no memory, of the root only. */
struct fuse_node *node_at(struct fuse_mount *m, fuse_ino_t number);
/* The context, made on first use. NULL: no memory. */
struct fuse_node *node_of(struct fuse_mount *m, struct inode *inode);
/* The kernel is told of the inode (once more): its number, and the count goes up. 0: no memory. */
fuse_ino_t node_tell(struct fuse_mount *m, struct inode *inode);
/* ... has forgotten it `count` times. */
void node_forget(struct fuse_mount *m, struct inode *inode, uint64_t count);
void node_free(struct fuse_node *node);
/* Takes the reference to fd over; NULL (no memory): not taken. The node may be NULL: then there was none. */
struct fuse_file *file_new(struct fuse_mount *m, struct fuse_node *node, struct fd *fd);
void file_free(struct fuse_mount *m, struct fuse_file *f);
/* The file of the task has been changed, and not on the bricks' disks yet. */
void node_has_changed(struct task *t);
/* Of `changes` before an FSYNC that has succeeded. */
static inline void
node_is_synced(struct fuse_node *node, unsigned changes)
{
    atomic_store(&node->synced, changes + 1);
}
/* A reference to an fd, of this graph, of a file that is open on the node; NULL: none is. */
struct fd *file_fd_of(struct fuse_mount *m, struct fuse_node *node, const struct graph *g);
/* ... of a graph that does not serve any more. */
struct fd *file_kept_fd_of(struct fuse_mount *m, struct fuse_node *node);
/* What the list is read from that is read from here: a reference to an fd. From its beginning: an older
 * graph's is not needed any more. */
struct fd *file_listing_fd(struct fuse_mount *m, struct fuse_file *f, bool from_start);
/* The mount point is gone: the kernel does not give back what it had. */
void nodes_drop(struct fuse_mount *m);

static inline struct fuse_file *
file_of(const struct fuse_file_info *fi)
{
    return (struct fuse_file *)(uintptr_t)fi->fh; /* NOLINT: our own address */
}

/* ---- task.c ---------------------------------------------------------------------------------- */

struct task {
    struct fuse_mount *m;
    struct xlator *xl;           /* where it calls: m's when it began, or its file's. Its graph is pinned */
    fuse_ino_t number;           /* the inode's; 0: by name */
    fuse_req_t req;              /* NULL: nobody waits for a reply */
    void (*go)(struct task *t);
    struct call_stack *stk;      /* the call it is about, with its arguments */
    struct call_stack *before;   /* the one that has been made again by a file; NULL */
    struct fuse_file_info fi;    /* open, create: to be returned */
    struct fuse_file *file;      /* the one meant; NULL */
    size_t size;                 /* room that the kernel has for what is read */
    int to_set;                  /* setattr */
    bool kills_privs;            /* write, setattr, create: the kernel says so */
    int err;                     /* why it is not to be run: -errno */
    uint8_t owner[8];            /* of locks */
};

int task_pools_init(void);

/* groups.c: the supplementary groups of the thread that asks, as they are now.
 * At most CRED_GROUPS_MAX are put into `out`. How many, or -errno: the thread has ended. thread: any. */
int groups_of(const struct fuse_ctx *ctx, uint32_t *out);
void groups_end(void); /* no request is there any more */

/* A request that will be a call of `fop`: caller, gfid of `number` if that is not 0. NULL: it has been
 * answered already. */
struct task *task_new(fuse_req_t req, enum fop fop, fuse_ino_t number, void (*go)(struct task *t));
/* The same without a request, for the caller of a task that waits, about the same inode and fd. NULL: no
 * memory, or the mount ends. */
struct task *task_new_inside(struct task *waiting, enum fop fop, void (*go)(struct task *t));
/* Copies of texts and bytes on the call's arena; NULL marks the task as short of memory, which task_start()
 * answers. */
const char *task_text(struct task *t, const char *text);
/* The call is about this entry of the directory `parent`. A name that is too long fails the task. */
void task_set_entry(struct task *t, fuse_ino_t parent, const char *name);
/* LINK and RENAME: the entry that the call makes. */
void task_set_new_entry(struct task *t, fuse_ino_t parent, const char *name);
void task_set_file(struct task *t, struct fuse_file_info *fi);
/* The call is about this fd, whose graph may be an older one: then that is called. The reference is taken
 * over. */
void task_set_fd(struct task *t, struct fd *fd);
/* The lock owner that the kernel has named, in place of the process. */
void task_set_owner(struct task *t, uint64_t owner);
/* A dict for the call's xdata with a fresh gfid-req: what is made shall have it. */
void task_ask_gfid(struct task *t);
/* Something could not be had. */
void task_is_short(struct task *t);
/* Runs it; ends with the reply. The task is not the caller's any more. */
void task_start(struct task *t);

/* In a coroutine: the call of the task. As coro_call(). */
int task_call(struct task *t);
/* A further call for the same caller, about the same inode and fd; NULL: no memory. To be wound with
 * task_wind() and freed. */
struct call_stack *task_call_new(struct task *t, enum fop fop);
int task_wind(struct task *t, struct call_stack *stk);
/* As task_call(), for a call that may wait for as long as others please: it does not hold up a switch of
 * graphs, and may be lost with its graph. */
int task_call_waiting(struct task *t);
/* True: the file is another graph's since then, and the call (of a lock) with this outcome is to be made
 * again: the task is that graph's now. */
bool task_follow(struct task *t, int ret);
/* From now on what has waited goes on after tasks_go_on(), which resumes it. */
void tasks_hold_back(struct fuse_mount *m);
void tasks_go_on(struct fuse_mount *m);
/* By number: what is gone is stale, and the kernel looks the name up again. A brick knows nothing by gfid of
 * what has no name any more: if it is open, it is asked once more by the file. Then *stk is another call, and
 * the old one is the task's. */
int task_wind_by_number(struct task *t, struct call_stack **stk);
int task_call_by_number(struct task *t);
/* Replies. `err` is -errno. */
void task_fail(struct task *t, int err);
void task_done(struct task *t);          /* an empty reply */
void task_result(struct task *t, int ret); /* one of these two */

/* ---- folder.c -------------------------------------------------------------------------------- */

struct fuse_folder;
int fuse_folder_pool_init(void);
void fuse_folder_free(struct fuse_folder *f);
/* Of a node that the caller holds by its inode, or the kernel by its number; NULL: nothing is kept. */
/* Its attributes, if they are kept, and how many seconds they are good for. */
bool fuse_folder_get(struct fuse_mount *m, struct fuse_node *node, struct iatt *out, double *left_s);
/* The bricks are asked: what comes back is kept, if nothing has changed since the look. */
struct fuse_folder_look {
    struct fuse_folder *folder; /* NULL: will not be kept; else good for as long as the inode is held */
    uint64_t at_ns;
    uint32_t changes, epoch;
    bool is_quiet;
};
struct fuse_folder_look fuse_folder_look(struct fuse_mount *m, struct fuse_node *node);
void fuse_folder_keep(struct fuse_mount *m, const struct fuse_folder_look *look, const struct iatt *iatt);
/* A change of the folder begins; the caller holds the inode until it has ended it by the next one. NULL:
 * nothing is kept. */
struct fuse_folder *fuse_folder_change(struct fuse_mount *m, struct fuse_node *node);
/* It has been done: the folder's attributes before and after; NULL: not known, or it may have failed. */
void fuse_folder_changed(struct fuse_folder *f, const struct iatt *pre, const struct iatt *post);
/* What is kept of it is not true any more. */
void fuse_folder_drop(struct fuse_node *node);

/* ---- news.c ---------------------------------------------------------------------------------- */

void fuse_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags);
/* What bricks had to say may have been missed: nothing of what the kernel knows counts. */
void fuse_news_missed(struct xlator *xl);

/* ---- privs.c --------------------------------------------------------------------------------- */

/* How libfuse reaches the device. */
extern const struct fuse_custom_io privs_io;
/* Before libfuse has the request, which it may change. */
void privs_look(struct fuse_mount *m, const char *bytes, size_t size);
/* Does the request that this thread has looked at last want set-id bits killed? Not in a coroutine. */
bool privs_are_to_be_killed(void);
/* The kernel is told of this mode. */
static inline void
privs_told(struct fuse_node *node, const struct iatt *a)
{
    bool has = iatt_privs(a) != 0;

    if (node && atomic_load(&node->has_privs) != has)
        atomic_store(&node->has_privs, has);
}
/* In a coroutine: a mode as in `a`, which the file has, becomes one without them; `a` is what it has then.
 * fd: NULL, or of the file. 0 or -errno. */
int privs_kill(struct task *t, struct fd *fd, struct iatt *a);
/* The same for a SETATTR of nothing. */
int privs_kill_if_allowed(struct task *t, struct iatt *a);
/* The same for a task that writes: before it, if the kernel knows of such bits, and with what its reply says.
 */
int privs_before_write(struct task *t);
int privs_after_write(struct task *t);

/* ---- meta.c ---------------------------------------------------------------------------------- */

/* Is the object with this number one of .meta? */
static inline bool
meta_has(uint64_t number)
{
    return number & 1 && number != FUSE_ROOT_ID;
}
/* A request as it came from the kernel. True: it was one for .meta, and has been answered. */
bool meta_answers(struct fuse_mount *m, char *bytes, size_t size);
/* The graph has taken over the options of this volfile, which has its shape. */
void meta_reconfigured(struct fuse_mount *m, const struct volfile *fresh);
/* The mount has another graph, or is about to go. */
void meta_forget(struct fuse_mount *m);

/* ---- fuse.c ---------------------------------------------------------------------------------- */

/* Requests are not read any more: none runs in the device's handler after return. False: they were not. */
bool device_pause(struct fuse_mount *m);
/* ... are again. */
void device_go_on(struct fuse_mount *m);
/* The last file of an older graph may have been closed: the program is told. */
void fuse_tell_left(struct fuse_mount *m);
/* The layer's mount; NULL: it has not taken it over yet, or has given it away. */
static inline struct fuse_mount *
mount_of(const struct xlator *xl)
{
    return __atomic_load_n(&xl->private, __ATOMIC_ACQUIRE);
}

/* ---- entry.c ... ----------------------------------------------------------------------------- */
void iatt_to_stat(const struct iatt *a, struct stat *st);
/* The inode behind a's gfid, with a reference; NULL: no memory, or no gfid. */
struct inode *entry_inode(struct fuse_mount *m, const struct iatt *a);
/* What the kernel is told of it; node_tell() included. 0 or -errno. */
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
/* Whether the device's buffer holds these bytes: a reference to it, which takes it away from the reader.
 * NULL: no. */
struct iobuf *device_take_buffer(const char *bytes);
void fuse_file_flags(struct fuse_mount *m, struct fuse_file_info *fi);
/* The flags of open(2) with which bricks are to open it. */
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
/* release(): whatever flock(2) has left. In a coroutine. */
void lock_drop(struct task *t);

#endif
