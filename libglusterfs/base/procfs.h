/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* procfs: figures of the kernel, read often.
 *
 * A file under /proc (or a pressure file, or one of a cgroup) is opened once; a read is one pread(2) into a
 * fixed buffer of the reader's own and ends at the line it is after. Nothing is allocated, and nothing can
 * fail for lack of descriptors once the file is open.
 *
 *     static struct procfs self = PROCFS_FILE("/proc/self/statm");
 *     struct procfs_statm memory;
 *     int err = procfs_statm(&self, &memory);
 *
 * Opened at the first read. "/proc/self" belongs to the process that opened it: a child of fork(2) opens its
 * own. When the file's subject is gone (a process, a cgroup) a read says -ESRCH, -ENODEV or -ENOENT, closes
 * the descriptor and leaves it to the next read to open the path again. -EMFILE and -ENFILE pass in the same
 * way.
 *
 * thread: one at a time for each struct procfs. After vfork(2) or a bare clone(2): not before exec.
 */
#ifndef KILN_BASE_PROCFS_H
#define KILN_BASE_PROCFS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs-text.h"

struct procfs {
    const char *path; /* lives as long as this struct */
    unsigned opens;   /* how often it was opened */
    unsigned process; /* of how many forks the opener is the child, in all */
    int fd;           /* valid if is_open */
    int is_open;
};
#define PROCFS_FILE(file_path)                                                                               \
    {                                                                                                        \
        .path = (file_path)                                                                                  \
    }

/* Open it now, so that later reads need no descriptor. 0 or -errno. Not needed. */
int procfs_open(struct procfs *f);
void procfs_close(struct procfs *f);

/* As much of the file's beginning as there is room for, and a NUL behind it. The number of bytes, or -errno.
 */
ssize_t procfs_read(struct procfs *f, char *buf, size_t size);

/* Fields of /proc/self/status, /proc/meminfo, a cgroup's memory.events. Fields in the order of the file cost
 * one pass; the pass ends with the last one. How many were found, or -errno. */
int procfs_fields(struct procfs *f, struct procfs_field *fields, unsigned count);

/* The readers below, one thread at a time for each struct procfs. 0; -errno of the read; -EBADMSG if the file
 * is not what its name says. `out` is written on success alone. */

/* /proc/PID/statm, in bytes */
struct procfs_statm {
    uint64_t size, resident, shared;
};
int procfs_statm(struct procfs *f, struct procfs_statm *out);

/* /proc/PID/stat; times in clock ticks (sysconf(_SC_CLK_TCK) a second), `start` since boot */
struct procfs_stat {
    char state; /* R, S, D, Z ... */
    int32_t parent;
    uint64_t minor_faults, major_faults, user, system, threads, start;
};
int procfs_stat(struct procfs *f, struct procfs_stat *out);

/* The first line of /proc/stat: all processors together, in clock ticks */
struct procfs_cpu {
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};
int procfs_cpu(struct procfs *f, struct procfs_cpu *out);

/* The groups that /proc/PID/status lists, at most `max` of them. How many, or -errno. */
int procfs_groups(struct procfs *f, uint32_t *out, unsigned max);

/* /proc/loadavg; averages in hundredths */
struct procfs_load {
    uint64_t average_1min, average_5min, average_15min;
    uint64_t runnable, threads;
};
int procfs_load(struct procfs *f, struct procfs_load *out);

/* /proc/pressure/ * and a cgroup's *.pressure; averages in hundredths of a percent. Files without a "full"
 * line (the processors' of older kernels) leave that at 0. -EOPNOTSUPP where the kernel was started without.
 */
struct procfs_stall {
    uint64_t average_10s, average_60s, average_300s, total_us;
};
struct procfs_pressure {
    struct procfs_stall some, full;
};
int procfs_pressure(struct procfs *f, struct procfs_pressure *out);

#endif
