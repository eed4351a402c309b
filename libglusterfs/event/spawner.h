/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* spawner: a second process that starts programs for a process whose sandbox forbids execve(2) and fork(2).
 *
 *      process ──(path, arguments, 3 descriptors, status pipe)──▶ spawner ──clone──▶ program
 *              ◀─(pid)──────────────────────────────────────────
 *
 * The spawner is forked before the process has threads, and before the process gives up its rights. The
 * spawner then gives up other rights (`confine`), which all programs inherit. A program is a child of the
 * process, not of the spawner (CLONE_PARENT), so the process waits for the program and kills the program as
 * for any child. The spawner does not wait for the exec; the process reads the result of the exec from the
 * status pipe.
 *
 * If the process dies, the spawner reads the end of its socket and ends. If the spawner dies, no program
 * starts any more: spawner_start() returns -EPIPE until the process starts again.
 *
 * The spawner trusts the process: the process may have any program run, but only with the rights that
 * `confine` has left. */
#ifndef KILN_EVENT_SPAWNER_H
#define KILN_EVENT_SPAWNER_H

#include <stdbool.h>
#include <sys/types.h>

/* Starts the spawner. `confine` (may be NULL) runs in the spawner and returns 0 or -errno; after an error the
 * spawner ends. Returns 0 or -errno, also of `confine`. The process has one spawner at most.
 * thread: main, before other threads exist. */
int spawner_begin(int (*confine)(void *arg), void *arg);

/* Any thread. */
bool spawner_is_there(void);

/* The spawner survives an exec(2) of the process: the old program gets socket and process id (-1: no spawner)
 * and keeps the socket open, and the new program gives both back. thread: main. */
int spawner_socket_of(pid_t *pid);
void spawner_take_over(int socket, pid_t pid);

/* Starts a program with the descriptors fds[0] to fds[2] as 0 to 2 and no others, default signals, no signal
 * blocked, a process group of its own and the umask 0077. `argv` ends with NULL; so does `envp`, which may be
 * NULL: the environment of the process when the spawner began. Returns 0 and the program's process id, which
 * the caller must wait for, or -errno: of the exec, -E2BIG (path, arguments and environment have more than
 * 64 KiB or 512 words), -EPIPE (no spawner). Blocks until the exec. Any thread. */
int spawner_start(const char *path, char *const argv[], char *const envp[], const int fds[3], pid_t *pid);

/* Ends the spawner; programs go on. Called when no other thread calls spawner_start(). Any thread. */
void spawner_end(void);

#endif
