/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pump: runs a program and moves what it reads and writes; for hook scripts and helpers.
 *
 *     source ──▶ pipe ──▶ stdin   child   stdout ──▶ pipe ──▶ sink
 *                                         stderr ──▶ pipe ──▶ sink
 *
 * A source or sink is a function, bytes in memory, or a descriptor. Between a pipe and a descriptor nobody
 * looks at the data, so it is spliced where the kernel can. All else passes through a buffer from the iobuf
 * pool, which a stream holds only while it moves bytes or its sink takes none: a child that is silent costs
 * its pipes and this struct, and an idle process nothing once the sweeper has been by.
 *
 * The child is started by posix_spawn(3), with default signals, no signal blocked, descriptors 0 to 2 and no
 * others, in a process group of its own. Its umask is PUMP_UMASK whatever this process has, so that its
 * sockets and files belong to its user alone. It has ended when the process itself has; what it had written
 * by then still arrives, what a grandchild that holds the pipes writes later does not. When anything goes
 * wrong the whole group is killed.
 *
 * Functions run on workers, one at a time for each pump. After `done` none does. The process must neither
 * ignore SIGCHLD nor wait for children it does not know.
 */
#ifndef KILN_EVENT_PUMP_H
#define KILN_EVENT_PUMP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define PUMP_CHILDREN_MAX 1024
#define PUMP_UMASK 0077

enum pump_kind {
    PUMP_NULL,  /* /dev/null */
    PUMP_BYTES, /* source only: memory, which stays valid until `done` */
    PUMP_FN,
    PUMP_FD,   /* the pump works on a duplicate. A pipe or socket must be non-blocking. */
    PUMP_GIVE, /* the child gets this descriptor itself: nothing is counted, limited or waited for. For
                  helpers that are handed a socket; a daemon's own standard descriptors. */
    PUMP_SAME  /* stderr only: where stdout goes */
};

/* Up to `size` bytes. Their number; 0: the end; -EAGAIN: none now, pump_input_ready() will tell; -errno:
 * kill. */
typedef ssize_t (*pump_source_fn)(void *arg, char *room, size_t size);
/* All of `count` bytes, at least 1. 0; -EAGAIN: none of them now, pump_output_ready() will tell, and until
 * then the child's output stays in the pipe, so that it waits; -errno: kill. */
typedef int (*pump_sink_fn)(void *arg, const char *bytes, size_t count);

struct pump_source {
    enum pump_kind kind;
    const void *bytes;
    size_t count;
    pump_source_fn fn;
    int fd;
};

struct pump_sink {
    enum pump_kind kind;
    pump_sink_fn fn;
    int fd;
};

struct pump_result {
    /* 0: the child has ended by itself, see the next two. -ETIMEDOUT, -EFBIG (more output than allowed),
     * -ECANCELED, or what a function, a source or a sink has failed with: it was killed. -ECHILD: somebody
     * else has waited for it. */
    int error;
    int exit_code; /* -1: a signal has ended it */
    int signal;    /* 0: none */
    uint64_t in_bytes, out_bytes, err_bytes;
};

struct pump;

struct pump_options {
    const char *path;  /* not searched in $PATH */
    char *const *argv; /* ends with NULL */
    char *const *envp; /* NULL: as this process */
    struct pump_source in;
    struct pump_sink out, err;
    uint64_t timeout_ms;       /* of the whole; 0: none */
    uint64_t output_bytes_max; /* stdout and stderr together; 0: no limit */
    size_t buffer_bytes;       /* what a function gets at once, at most; 0: 64 KiB */
    size_t pipe_bytes;         /* larger (or smaller) pipes, if the kernel allows; 0: as they come, 64 KiB */
    void (*done)(struct pump *p, const struct pump_result *r, void *arg); /* once, if pump_start() succeeds */
    void *arg;                                                            /* for all functions */
};

/* 0 or -errno: of the exec (-ENOENT, -EACCES, -ENOEXEC ...), -EMFILE, -ENOMEM, -EINVAL (a descriptor that
 * would block), -EAGAIN (PUMP_CHILDREN_MAX), -ECANCELED (pumps_stop() is waiting). Nothing is left behind
 * then, and `done` is not called. No function has been called when it returns, unless other workers were
 * quick. Blocks until the exec. If `out` is not NULL it gets a reference, to be dropped with pump_unref().
 * thread: any, with the workers running. */
int pump_start(const struct pump_options *options, struct pump **out);
void pump_unref(struct pump *p);

/* Kills it, unless it has ended; `done` says -ECANCELED. Any thread that holds a reference. */
void pump_cancel(struct pump *p);
/* The source function that had said -EAGAIN has bytes now. Any thread that holds a reference. */
void pump_input_ready(struct pump *p);
/* A sink function that had said -EAGAIN takes bytes now. Any thread that holds a reference. */
void pump_output_ready(struct pump *p);

/* Kills all children and waits until each `done` has returned. Before workers_stop(); not from a worker. A
 * child in a system call that cannot be interrupted keeps it waiting. */
void pumps_stop(void);
unsigned pumps_running(void);
/* Once, after iobuf_pools_init(). 0 or -ENOMEM. */
int pump_pools_init(void);

#endif
