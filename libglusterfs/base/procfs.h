/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* procfs: statistics of the kernel that are read often.
 *
 * A file under /proc (or a pressure file, or a file of a cgroup) is opened once; a read is one pread(2)
 * into a fixed buffer on the reader's stack and ends at the line that is needed. Nothing is allocated, and
 * no read can fail for lack of descriptors once the file is open.
 *
 *     static struct procfs self = PROCFS_FILE("/proc/self/statm");
 *     struct procfs_statm memory;
 *     int err = procfs_statm(&self, &memory);
 *
 * The file is opened at the first read. "/proc/self" belongs to the process that opened it: a child of
 * fork(2) opens the path again. When the file's subject is gone (a process, a cgroup) a read returns
 * -ESRCH, -ENODEV or -ENOENT and closes the descriptor; the next read opens the path again. After -EMFILE
 * and -ENFILE the next read also tries again.
 *
 * thread: one at a time for each struct procfs. After vfork(2) or a bare clone(2): not before exec. */
#ifndef KILN_BASE_PROCFS_H
#define KILN_BASE_PROCFS_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/procfs-text.h"

struct procfs {
    const char *path; /* lives as long as this struct */
    unsigned opens;   /* number of times it was opened */
    unsigned process; /* number of forks between the program's start and the process that opened the file */
    int fd;           /* valid if is_open */
    int is_open;
};
#define PROCFS_FILE(file_path)                                                                               \
    {                                                                                                        \
        .path = (file_path)                                                                                  \
    }

/* Opens the file now, so that later reads need no descriptor. 0 or -errno. Optional. */
int procfs_open(struct procfs *f);
void procfs_close(struct procfs *f);

/* Reads the beginning of the file, up to size - 1 bytes, and adds a NUL. Returns the number of bytes, or
 * -errno. */
ssize_t procfs_read(struct procfs *f, char *buf, size_t size);

/* Reads fields of /proc/self/status, /proc/meminfo, a cgroup's memory.events. Fields in the order of the
 * file cost one pass, which ends with the last field. Returns the number of fields found, or -errno. */
int procfs_fields(struct procfs *f, struct procfs_field *fields, unsigned count);

/* The readers below may be used by one thread at a time for each struct procfs. 0; -errno of the read;
 * -EBADMSG if the contents of the file do not match its name. `out` is written only on success. */

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

/* the first line of /proc/stat: sums over all processors, in clock ticks */
struct procfs_cpu {
    uint64_t user, nice, system, idle, iowait, irq, softirq, steal;
};
int procfs_cpu(struct procfs *f, struct procfs_cpu *out);

/* Reads the groups that /proc/PID/status lists, at most `max` of them. Returns their number, or -errno. */
int procfs_groups(struct procfs *f, uint32_t *out, unsigned max);

/* /proc/loadavg; averages in hundredths */
struct procfs_load {
    uint64_t average_1min, average_5min, average_15min;
    uint64_t runnable, threads;
};
int procfs_load(struct procfs *f, struct procfs_load *out);

/* /proc/pressure/ * and a cgroup's *.pressure; averages in hundredths of a percent. Files without a "full"
 * line (the processors' of older kernels) leave `full` at 0. -EOPNOTSUPP if the kernel was started without
 * pressure statistics. */
struct procfs_stall {
    uint64_t average_10s, average_60s, average_300s, total_us;
};
struct procfs_pressure {
    struct procfs_stall some, full;
};
int procfs_pressure(struct procfs *f, struct procfs_pressure *out);

#endif
