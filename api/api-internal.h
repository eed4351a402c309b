/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* api-internal: the private header of libgfapi.
 *
 *   gfapi.h     the calls that programs make        gfapi.map   their versions
 *   engine.c    Kiln's workers and pools inside of a program
 *   volume.c    a volume: volfile, graph, first event of the bricks, changes
 *   request.c   a call of a program: its coroutine, its caller, its end
 *   path.c      paths to inodes
 *   file.c      open files, positions, locks         io.c        data, synchronous and asynchronous
 *   names.c     names, the working directory         attr.c      attributes
 *   xattr.c     extended attributes                  dir.c       directories
 *   object.c    objects without paths, handles       acl.c       ACLs of objects
 *   upcall.c    news of other clients' changes
 *   refused.c   names of calls that are not built
 *
 * A request is a coroutine, as in mount/fuse:
 *
 *      program's thread: glfs_stat() -> request_run(): posts the request, sleeps
 *      worker:           go(request) in a coroutine; request_wind() winds calls and sleeps
 *      worker:           reply of the brick -> the coroutine continues here, returns: wakes the program's
 * thread
 *
 * Code of a request never runs on a program's thread, which may have signal handlers, and a program's
 * callback never runs on the small stack of a coroutine. A function that runs in a coroutine is called
 * something_go().
 *
 * Lock order: engine.c's lock, a volume's lock, a file's lock; no lock is held over a call to bricks, except
 * a file's `position`, which no coroutine takes. */
#ifndef KILN_API_INTERNAL_H
#define KILN_API_INTERNAL_H

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdbool.h>

#include <urcu/list.h>

#include "api/gfapi.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "mount/spec.h"
#include "stack/coro-call.h"

/* Gives a function of this file the older version of a name. */
#define OLD_VERSION(function, name, version) __asm__(".symver " #function ", " #name "@GFAPI_" version)

#define API_IO_MAX (1u << 20) /* bytes of one call to the bricks */

/* ---- engine.c -------------------------------------------------------------------------------- */

/* Starts workers and pools unless they run. They stay until the process ends, because threads of the program
 * may hold their memory. Returns 0 or -errno; -ENOTSUP: this process is a child of the process that started
 * them. */
int engine_start(void);
/* Returns whether this process has started the engine, and is no child of a process that did. */
bool engine_is_here(void);
/* Makes `path` the process's log file, unless it is already. Returns 0 or -errno. */
int engine_log_to(const char *path);
/* Runs fn(arg) in a thread of the library, registered with RCU, and waits. Returns its result, or -errno. */
int engine_run(int (*fn)(void *arg), void *arg);

/* ---- volume.c -------------------------------------------------------------------------------- */

struct api_option {
    char *pattern, *key, *value;
};

struct glfs {
    char *volume, *volfile, *log_path;
    char *servers[SPEC_SERVERS_MAX]; /* in spec_new()'s form */
    unsigned server_count;
    int log_level;
    uint64_t dev; /* st_dev of all objects */

    pthread_mutex_t lock; /* guards the fields below */
    pthread_cond_t changed;
    struct api_option *options;
    unsigned option_count;
    struct graph *graph; /* NULL: not initialised */
    struct spec *spec;   /* NULL: the volfile comes from a file */
    char *text;          /* the newest volfile, not parsed yet; NULL: none */
    size_t text_bytes;
    struct volfile_digest digest; /* of the newest volfile that the graph has taken over */
    char *used;                   /* the text of that volfile; NULL: the volume has no graph */
    size_t used_bytes;
    int failure;         /* -errno of the first failure to get a volfile; 0: none */
    bool has_news, is_refused, is_up;
    uint32_t upcall_events;       /* bits that the program has registered for */
    glfs_upcall_cbk *upcall_fn;   /* NULL: none */
    void *upcall_data;
    struct cds_list_head upcalls; /* events that the program has not asked for yet */
    unsigned upcall_count;
    bool is_polling;              /* the program asks for events */
    bool is_following, is_closing; /* a thread follows a new volfile; the volume ends */
    char *dump_dir;                /* folder for statedumps; NULL: the default */
    char *cwd;                     /* absolute, without a slash at the end; "": the root */
    struct cds_list_head files;    /* all open files */
};

/* Pins the volume's graph. NULL with errno ENOTCONN: not initialised, or a child process. */
struct graph *volume_pin(struct glfs *fs);

/* ---- request.c ------------------------------------------------------------------------------- */

/* Stands for an object of a volume by its gfid, and holds nothing: the graph's inode table finds the inode,
 * or the bricks are asked. */
struct glfs_object {
    struct glfs *fs;
    struct gfid gfid;
    uint32_t type; /* S_IFMT bits; 0: not known */
};

struct request {
    struct worker_job job;
    struct glfs *fs;
    const struct glfs_object *at; /* its paths begin there; NULL: at the working directory */
    struct graph *graph; /* pinned */
    int64_t (*go)(struct request *r);
    void (*deliver)(struct request *r); /* asynchronous: on a worker's own stack, after the end; frees it */
    sem_t *ended;                       /* synchronous */
    int64_t ret;                        /* of go: -errno */
    struct caller caller;
    uint32_t *groups; /* of the caller, allocated; NULL: none */
    uint8_t owner[8]; /* the default lock owner */
};

/* Runs r->go in a coroutine and waits. Returns go's result; if that is negative: -1 with errno. The other
 * fields of `r` need not be set; a volume or, with a file, the file's graph is pinned meanwhile. */
int64_t request_run(struct request *r, struct glfs *fs, int64_t (*go)(struct request *r));
int64_t request_run_on(struct request *r, struct glfs_fd *fd, int64_t (*go)(struct request *r));
/* Starts r->go in a coroutine; r->deliver follows. Returns 0, or -1 with errno: nothing follows. */
int request_start_on(struct request *r, struct glfs_fd *fd, int64_t (*go)(struct request *r),
                     void (*deliver)(struct request *r));
/* In the coroutine: a call of the request's caller. NULL: no memory. */
struct call_stack *request_call(struct request *r, enum fop fop);
/* The same, for an open file: its fd, inode and lock owner. */
struct call_stack *request_call_on(struct request *r, enum fop fop, struct glfs_fd *fd);
/* In the coroutine: winds the call and waits, as coro_call(). */
int request_wind(struct request *r, struct call_stack *stk);
/* Adds a fresh gfid to the call: an object without a gfid gets it. Returns 0 or -ENOMEM. */
int request_ask_gfid(struct call_stack *stk);
/* Returns `ret`, or -1 with errno if it is negative. */
int64_t request_result(int64_t ret);

/* ---- path.c ---------------------------------------------------------------------------------- */

/* The place that a path leads to. place_release() drops the references. */
struct place {
    struct inode *parent; /* NULL: the root */
    char name[FOP_NAME_MAX + 1];
    struct inode *inode; /* NULL: no such name, or not asked */
    struct iatt iatt;    /* of the inode */
};

enum {
    PLACE_FOLLOW = 1 /* a symbolic link at the end */,
    PLACE_NAME = 2 /* the last name is not looked up */,
    PLACE_KNOWN = 4 /* the attributes of an object without a path are not needed */
};

/* In a coroutine: resolves a path, which begins at r->at. Without a path (NULL) the place is r->at itself.
 * Returns 0 or -errno. -ENOENT: if only the last name is missing, parent and name are set. `real`: NULL, or
 * PATH_MAX bytes for the path without links. */
int place_find(struct request *r, const char *path, int how, struct place *out, char *real);
/* The same from another object, or with `at` NULL from the working directory. */
int place_find_at(struct request *r, const struct glfs_object *at, const char *path, int how,
                  struct place *out, char *real);
void place_release(struct place *p);
/* Sets a loc to the name or to the inode of the place. */
void place_set_name(const struct place *p, struct loc *loc);
/* In a coroutine: looks up an object by its gfid. */
int object_look(struct request *r, struct inode *inode, struct iatt *out);

/* ---- upcall.c -------------------------------------------------------------------------------- */

/* For the graph's watch: another client has changed the object. `flags`: as of EVENT_INVALIDATED. */
void api_upcall(struct graph *g, const struct gfid *gfid, uint32_t flags);
/* Frees the queued events; no other thread uses the volume. */
void api_upcalls_drop(struct glfs *fs);

/* ---- names.c: `at` as in struct request ------------------------------------------------------- */

/* Makes a name by FOP_mkdir, FOP_mknod or FOP_symlink. 0, or -1 with errno. */
int api_make(struct glfs *fs, const struct glfs_object *at, enum fop fop, const char *path,
             const char *target, mode_t mode, dev_t rdev, struct iatt *made);
/* Removes the name of a file or of an empty directory. */
int api_remove_any(struct glfs *fs, const struct glfs_object *at, const char *path);
/* FOP_link or FOP_rename. */
int api_two_names(struct glfs *fs, enum fop fop, const struct glfs_object *at, const char *path,
                  const struct glfs_object *at2, const char *path2);
int api_readlink(struct glfs *fs, const struct glfs_object *at, const char *path, char *bytes, size_t size);

/* ---- file.c ---------------------------------------------------------------------------------- */

struct dir_batch;

struct glfs_fd {
    atomic_uint refs; /* the program's, and one for each asynchronous call */
    struct glfs *fs;
    struct cds_list_head in_files; /* of the volume, under its lock */
    struct fd *fd;                 /* a reference; NULL: the volume was closed before the file */
    char *path;    /* directory: absolute, for fchdir; NULL: file */
    bool appends;  /* opened with O_APPEND: the fd of a sharded file does not have the flag */
    /* the owner of locks; written while the program makes no other call of the file. len 0: the default */
    uint8_t owner[LK_OWNER_MAX];
    uint32_t owner_len;
    atomic_bool has_had_locks;
    pthread_mutex_t position; /* guards the fields below, over calls to bricks */
    off_t offset;
    struct dir_batch *batch; /* of entries that the bricks have sent */
    struct dirent entry;     /* for readdir without _r */
};

/* Opens or, with `creates`, makes a file. *made: its attributes; NULL: not wanted. */
struct glfs_fd *api_open(struct glfs *fs, const struct glfs_object *at, const char *path, int flags,
                         mode_t mode, bool creates, struct iatt *made);
/* Takes over the reference to `fd`. NULL with errno: no memory. `path` is copied; NULL: no directory. */
struct glfs_fd *api_file_new(struct glfs *fs, struct fd *fd, const char *path);
struct glfs_fd *api_file_ref(struct glfs_fd *fd);
/* On a worker. */
void api_file_unref(struct glfs_fd *fd);
/* Drops the fds of the volume's open files and returns the number of files. The program may still close the
 * files, and gets EBADF for all other calls. No call may be running. */
unsigned api_files_abandon(struct glfs *fs);

/* ---- attr.c ---------------------------------------------------------------------------------- */

void api_stat_of(const struct glfs *fs, const struct iatt *a, struct stat *st);
/* NULL allowed: nothing is done. */
void api_statx_of(const struct glfs *fs, const struct iatt *a, struct glfs_stat *out);
/* Asks for attributes by path. `how`: PLACE_*. */
int api_stat_path(struct glfs *fs, const struct glfs_object *at, const char *path, int how, struct iatt *out);
/* Sets the attributes of `valid` (SETATTR_*). */
int api_set(struct glfs *fs, const struct glfs_object *at, const char *path, int how, int32_t valid,
            const struct iatt *set);
int api_truncate(struct glfs *fs, const struct glfs_object *at, const char *path, off_t size);
int api_access(struct glfs *fs, const struct glfs_object *at, const char *path, int mode);
int api_statvfs(struct glfs *fs, const struct glfs_object *at, const char *path, struct statvfs *out);
/* Asks for the attributes of an open file. Returns 0, or -1 with errno. */
int api_fstat(struct glfs_fd *fd, struct iatt *out);

/* ---- dir.c ----------------------------------------------------------------------------------- */

void dir_batch_free(struct dir_batch *b);
struct glfs_fd *api_opendir(struct glfs *fs, const struct glfs_object *at, const char *path);
/* The next entry, as glfs_readdirplus_r(). `a` NULL: the attributes are not wanted. distribute lists folders
 * without their gfids: with `needs_gfid` they are looked up. */
int api_read_entry(struct glfs_fd *fd, struct iatt *a, bool needs_gfid, struct dirent *entry,
                   struct dirent **out);

/* ---- xattr.c --------------------------------------------------------------------------------- */

int api_setxattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how, const char *name,
                 const void *value, size_t size, int flags);
/* `name` NULL: lists the names. */
ssize_t api_getxattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how,
                     const char *name, void *value, size_t size);
int api_removexattr(struct glfs *fs, const struct glfs_object *at, const char *path, int how,
                    const char *name);

#endif
