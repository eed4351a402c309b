/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* sandbox: a process gives up the capabilities and the system calls that it does not need.
 *
 * A process with a mistake that a peer can exploit is then of less use: it cannot run programs, load kernel
 * modules, mount (except for kiln-mount, and kilnd with --inside-mounts), trace processes, or use rarely
 * tested parts of the kernel. The filter is the process's own, so it also holds under glusterd and in
 * containers, and in addition to the filter of a service manager.
 *
 *      SANDBOX_ON    A system call outside of the role's list does not run. The call fails with EPERM, and
 *                    the log has its name once. A call whose name libseccomp does not know fails with ENOSYS,
 *                    so that libraries fall back from new calls to old ones. A call of another architecture
 *                    kills the process.
 *      SANDBOX_LOG   The call runs, and the kernel's audit log has its number. All capabilities stay.
 *      SANDBOX_OFF   No filter, all capabilities.
 *
 * A refusal raises SIGSYS in the calling thread; its handler puts the error into the result of the call. So
 * no thread may block SIGSYS: the kernel would kill the process. The programs that a spawner starts
 * (event/spawner.h) have no such handler, so their refused calls fail without a signal, and the kernel's
 * audit log has the number. */
#ifndef KILN_DAEMON_SANDBOX_H
#define KILN_DAEMON_SANDBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "base/reason.h"

enum sandbox_mode { SANDBOX_ON, SANDBOX_LOG, SANDBOX_OFF };

enum sandbox_role {
    SANDBOX_BRICKS,   /* kilnd */
    SANDBOX_VOLUMES,  /* kilnd with a management socket: may become another program (upgrade.h), under the
                         same filter */
    SANDBOX_MOUNT,    /* kiln-mount */
    SANDBOX_HEALER,   /* kiln-heal */
    SANDBOX_PROGRAMS, /* the programs that kilnd starts: hook scripts and kiln-heal */
    SANDBOX_INSIDE,   /* kilnd with --inside-mounts: SANDBOX_VOLUMES and SANDBOX_MOUNT */
};

/* The words on, log and off. Returns 0 or -EINVAL. Any thread. */
int sandbox_mode_parse(const char *text, enum sandbox_mode *mode);
/* Any thread. The text is static. */
const char *sandbox_mode_name(enum sandbox_mode mode);

/* Gives up capabilities, except in the mode SANDBOX_LOG, then installs the filter, for this thread and all
 * others (TSYNC). Capabilities that the process does not have now are not taken. Returns 0 or -errno with the
 * reason; after an error some capabilities may be gone. SANDBOX_OFF does nothing.
 * thread: main, before other threads exist, because capabilities belong to a thread. */
int sandbox_enter(enum sandbox_role role, enum sandbox_mode mode, struct reason *why);

/* Lets this thread's capabilities survive exec(2), although root has none by itself here (SECBIT_NOROOT); or
 * not. Returns 0 or -errno. thread: main. */
int sandbox_keep_capabilities(bool keeps);

/* For a program that follows a program with the mode SANDBOX_ON in the same process: the kernel has kept the
 * filter. Refused calls fail with EPERM from now on; before, such a call kills the process. Returns 0 or
 * -errno. thread: main, before other threads exist. */
int sandbox_take_over(void);

/* From now on a worker logs refused calls soon after they happen, also earlier ones. Called once while
 * workers run; sandbox_unwatch() before they stop. A failure is logged. Main thread. */
void sandbox_watch(void);
void sandbox_unwatch(void);

/* The number of refused calls of this process, 0 where the kernel alone counts. Any thread. */
uint64_t sandbox_refusals(void);

/* Logs the refused calls that were not logged yet. Any thread, outside of a signal handler. */
void sandbox_report(void);

#endif
