/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* pump: runs a program and moves its input and output; for hook scripts and helper programs.
 *
 *     source ──▶ pipe ──▶ stdin   child   stdout ──▶ pipe ──▶ sink
 *                                         stderr ──▶ pipe ──▶ sink
 *
 * A source or sink is a function, bytes in memory, or a descriptor. Between a pipe and a descriptor the
 * data need not be seen, so it is spliced where the kernel can. All other data passes through a buffer
 * from the iobuf pool, which a stream holds only while it moves bytes or its sink accepts none: a silent
 * child costs its pipes and this struct, and an idle process nothing once the sweeper has run.
 *
 * The child is started by posix_spawn(3), or by the spawner of the process (spawner.h), with default
 * signals, no signal blocked, descriptors 0 to 2 and no others, in a process group of its own. The child's
 * umask is PUMP_UMASK regardless of this process's umask, so that no other user can open the child's
 * sockets and files. The child counts as ended when its process has ended; bytes that it wrote before still
 * arrive, but later bytes of a grandchild that holds the pipes do not. After any error the whole group is
 * killed.
 *
 * Functions run on workers, one at a time for each pump. None runs after `done`. The process must neither
 * ignore SIGCHLD nor wait for unknown children. */
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
    /* the child gets this descriptor itself: the pump does not count, limit or wait for anything. For
     * helper programs that are handed a socket; a daemon's own standard descriptors. */
    PUMP_GIVE,
    PUMP_SAME  /* stderr only: same destination as stdout */
};

/* Fills `room` with up to `size` bytes and returns their number; 0: the end; -EAGAIN: none now, call
 * pump_input_ready() later; -errno: kill the child. */
typedef ssize_t (*pump_source_fn)(void *arg, char *room, size_t size);
/* Accepts all of `count` bytes, at least 1. 0; -EAGAIN: accepts none of them now, call pump_output_ready()
 * later; until then the child's output stays in the pipe, so the child waits; -errno: kill the child. */
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
    /* 0: the child has ended by itself, see the next two members. -ETIMEDOUT, -EFBIG (more output than
     * allowed), -ECANCELED, or the error of a function, a source or a sink: the child was killed. -ECHILD:
     * another part of the process has waited for the child. */
    int error;
    int exit_code; /* -1: the child was ended by a signal */
    int signal;    /* 0: none */
    uint64_t in_bytes, out_bytes, err_bytes;
};

struct pump;

struct pump_options {
    const char *path;  /* not searched in $PATH */
    char *const *argv; /* ends with NULL */
    char *const *envp; /* NULL: this process's environment */
    struct pump_source in;
    struct pump_sink out, err;
    uint64_t timeout_ms;       /* for the whole run; 0: none */
    uint64_t output_bytes_max; /* stdout and stderr together; 0: no limit */
    size_t buffer_bytes;       /* most bytes passed to a function at once; 0: 64 KiB */
    size_t pipe_bytes;         /* size of the pipes, if the kernel allows; 0: the default, 64 KiB */
    /* called once, if pump_start() succeeds */
    void (*done)(struct pump *p, const struct pump_result *r, void *arg);
    void *arg;                                                            /* for all functions */
};

/* Starts the program. 0 or -errno: of the exec (-ENOENT, -EACCES, -ENOEXEC ...), -EMFILE, -ENOMEM, -EINVAL
 * (a descriptor that would block), -EAGAIN (PUMP_CHILDREN_MAX), -ECANCELED (pumps_stop() is waiting).
 * After an error nothing is left behind, and `done` is not called. Workers may call functions of the pump
 * even before this returns. Blocks until the exec. If `out` is not NULL it gets a reference, to be dropped
 * with pump_unref(). thread: any, with the workers running. */
int pump_start(const struct pump_options *options, struct pump **out);
void pump_unref(struct pump *p);

/* Kills the child, unless it has ended; the result is -ECANCELED. Any thread that holds a reference. */
void pump_cancel(struct pump *p);
/* Resumes the source function, which returned -EAGAIN before. Any thread that holds a reference. */
void pump_input_ready(struct pump *p);
/* Resumes a sink function that returned -EAGAIN before. Any thread that holds a reference. */
void pump_output_ready(struct pump *p);

/* Kills all children and waits until each `done` has returned. Called before workers_stop(); not from a
 * worker. A child in an uninterruptible system call delays it. */
void pumps_stop(void);
unsigned pumps_running(void);
/* Called once, after iobuf_pools_init(). 0 or -ENOMEM. */
int pump_pools_init(void);

#endif
