/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* upgrade: replaces the program of a running kilnd, unnoticed by clients (`kiln upgrade`).
 *
 * The process runs the new program by exec(2), so process id, pid file and service unit stay the same.
 * Connections, open files, locks and calls that wait for locks come along (rpc/transport/saved.h,
 * xlators/protocol/server/server.h); everything else starts anew, as after a restart.
 *
 *   1  the new program is run with --upgrade-check and must name the format of saved state
 *   2  the mounts inside of kilnd come to rest, while their bricks serve (mount/upgrade.h): at most
 *      DEADLINE_MS
 *   3  nothing is accepted or read any more, and calls under way end: at most DEADLINE_MS
 *   4  the state goes to a file in memory, and the process runs the new program
 *   5  the new program attaches the bricks, restores the state, and reads on
 *   6  the mounts go on: each finds the connections to its bricks, and the bricks' ends of the connections
 *
 * Until step 4 a failure is logged and kept for `kiln upgrade`, and the old program serves on. A death after
 * step 4 is a crash of kilnd: the service manager starts the new program, clients connect again, and the
 * volumes that were mounted inside are mounted again.
 *
 * A kilnd of a glusterd fetches the volfiles of its bricks in step 1, for the new program. So a death of
 * glusterd before step 1 is a refusal, and later changes nothing. glusterd's connections to the process come
 * along, because glusterd takes a brick without a connection for stopped; the connection to glusterd is made
 * anew, signs in the bricks, and fetches volfiles that have changed meanwhile.
 *
 * thread: the main thread, except where a function says otherwise. */
#ifndef KILN_BRICKS_UPGRADE_H
#define KILN_BRICKS_UPGRADE_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct parcel;

/* Ignored by default, so this signal does not end a program that is starting. Terminals send the signal,
 * too. */
#define UPGRADE_SIGNAL SIGWINCH
/* Formats of the saved state, without and with mounts: a change of any save function needs further numbers.
 */
enum { UPGRADE_FORMAT = 1, UPGRADE_FORMAT_MOUNTS = 2 };

/* First: keeps the arguments for the next program, and takes the state of an earlier program, if there is
 * any. 0, or -errno after a line on standard error: the state cannot be read, and the process must end, so
 * that the clients see the end of their connections. */
int upgrade_begin(int argc, char **argv);
/* Prints the answer to --upgrade-check. The exit status. */
int upgrade_answer_check(bool takes_mounts);
/* This program follows another program: the process is a daemon already. */
bool upgrade_has_state(void);
/* The earlier program had the sandbox, and so has this program. */
bool upgrade_was_sandboxed(void);
/* The port that the bricks had; 0: none. */
uint16_t upgrade_brick_port(void);
/* Restores all bricks' clients: for server_listen.restore. */
void upgrade_restore(void);
/* The number of programs that this process has run before. */
unsigned upgrade_programs(void);
/* The state of the mounts inside, after upgrade_restore(); the caller frees it, and upgrade_mounts_done() has
 * to follow. NULL: there is no such state. */
struct parcel *upgrade_state_of_mounts(void);
/* The mounts inside go on, or have failed. Any thread. */
void upgrade_mounts_done(unsigned served, unsigned failed);
/* The mounts inside of this process, for an upgrade; the functions of mount/inside.h. */
struct upgrade_mounts {
    int (*freeze)(unsigned ms, char *why, size_t why_size);
    void (*thaw)(void);
    int (*save)(struct parcel *to);
    int (*keep_open)(bool keeps);
};
/* This program serves: from now on an upgrade may be asked for. With has_glusterd, management.h knows the
 * bricks. `with_mounts` (constant): NULL: this kilnd takes no mounts. `refusal` (constant) says why this
 * kilnd cannot be upgraded; NULL: an upgrade is possible. */
void upgrade_started(uint16_t brick_port, bool is_sandboxed, bool has_glusterd,
                     const struct upgrade_mounts *with_mounts, const char *refusal);

/* Runs the program for its format number of saved state. 0, or -errno with *error if this kilnd cannot be
 * upgraded to it. Any thread; may take seconds. */
int upgrade_check_program(const char *program, char *error, size_t error_size);
/* Checks the program (NULL: the present file at the path that this program was started from) and has the main
 * thread run the program soon, by UPGRADE_SIGNAL. 0, or -errno with *error. Any thread; may take seconds. */
int upgrade_ask(const char *program, char *error, size_t error_size);
/* On UPGRADE_SIGNAL. Returns only after a failure. */
void upgrade_run(void);

struct upgrade_figures {
    unsigned count; /* number of programs that this process has run before the present one */
    /* figures of the last upgrade */
    unsigned connections, files, lost_clients, mounts, lost_mounts, stall_ms;
    char error[256]; /* reason of the last attempt that failed in this program; "": none */
};
/* Any thread. */
void upgrade_figures(struct upgrade_figures *out);

#endif
