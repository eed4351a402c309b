/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* upgrade: replaces the program of a running kiln-mount, unnoticed by the users of its mounts (`kiln upgrade
 * mounts`).
 *
 * The process runs the new program by exec(2), as kilnd does (bricks/upgrade.h): process id, pid file and
 * unit stay the same. The kernel's device of each mount, the connections to the bricks with their fds and
 * locks, open files and the requests that wait for locks come along (xlators/mount/fuse/saved.c,
 * xlators/protocol/client/saved.h); encrypted connections are made anew.
 *
 *   1  `kiln upgrade mounts` runs the new program with --upgrade-check, which must name the format of
 *      saved state that the running program names, and sends UPGRADE_SIGNAL
 *   2  requests under way end, new ones wait in the kernel: at most DEADLINE_MS
 *   3  the state goes to a file in memory, and the process runs the present file at its own path
 *   4  the new program makes the graphs, opens the files, and reads on
 *
 * Until step 3 a failure is logged, and the old program goes on. A death after step 3 is a crash of
 * kiln-mount: the mount points are dead until the unit starts the next process (records.h).
 *
 * thread: the main thread. */
#ifndef KILN_MOUNT_UPGRADE_H
#define KILN_MOUNT_UPGRADE_H

#include <signal.h>
#include <stdbool.h>

#define MOUNT_UPGRADE_SIGNAL SIGWINCH /* as bricks/upgrade.h, and for the same reason */
#define MOUNT_UPGRADE_FORMAT 1 /* of the saved state: a change of any save function needs the next number */
/* The answer to --upgrade-check, followed by the format. */
#define MOUNT_UPGRADE_ANSWER "kiln-mount-saved-state"
/* In the environment of each next program: the number of programs before it, and from the time that it serves
 * "N serving after N ms N mounts N lost". `kiln upgrade` reads it there (cli/upgrade-mounts.c). */
#define MOUNT_UPGRADE_COUNT "KILN_MOUNT_UPGRADES"

/* First: keeps the arguments for the next program, and takes the state of an earlier program, if there is
 * any. 0, or -errno after a line on standard error: the state cannot be read, and the process must end. */
int mount_upgrade_begin(int argc, char **argv);
/* Prints the answer to --upgrade-check. The exit status. */
int mount_upgrade_answer_check(void);
/* This program follows another program: the process is a daemon already. */
bool mount_upgrade_has_state(void);
/* What the earlier program was. */
bool mount_upgrade_was_sandboxed(void);
bool mount_upgrade_was_shared(void);
/* Begins the earlier program's mounts. Returns their number. */
unsigned mount_upgrade_restore(void);
/* Logs the end of the upgrade. */
void mount_upgrade_done(unsigned served, unsigned failed);
/* This program serves: from now on UPGRADE_SIGNAL is obeyed. */
void mount_upgrade_allow(bool is_sandboxed, bool is_shared);
/* On UPGRADE_SIGNAL. Returns only after a failure. */
void mount_upgrade_run(void);

#endif
