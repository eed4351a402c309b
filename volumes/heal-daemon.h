/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-daemon: runs the stock self-heal daemon, one process for each volume that is started and
 * replicated, unless the option cluster.self-heal-daemon is off. The process gets a volfile of its own
 * (state-dir.h) and runs under a process pump. When it ends, kilnd restarts it: after a second, then two,
 * four, up to a minute.
 *
 *     none ──▶ RUNNING ──ends──▶ WAITING ──▶ RUNNING        volume stopped: killed, none
 *                 └──────────── MISSING: the program is not installed; checked again each minute
 *
 * A killed kilnd leaves its self-heal daemon running. The next kilnd finds the process by its pid file and
 * ends it first.
 *
 * Any program that can connect to the daemon's socket can make the daemon load code, and so gets its
 * rights. Therefore the socket lies in a folder of mode 0700, which is made before the daemon starts, and
 * the daemon's umask is 0077 (pump.h).
 *
 * Threads: heal_daemons_follow() is called by the thread that has the volume's operation, so one at a time
 * for each volume; it may wait for a process to end. The other functions may be called by any thread. One
 * mutex guards the list; under the mutex a thread waits only for a condition.
 */
#ifndef KILN_VOLUMES_HEAL_DAEMON_H
#define KILN_VOLUMES_HEAL_DAEMON_H

#include <stdint.h>

#define HEAL_DAEMON_PROGRAM "/usr/sbin/glusterfs"

/* Must run before the next functions. `port`: the port of the bricks. */
void heal_daemons_begin(uint16_t port);
/* Starts, restarts (with a new volfile) or ends the daemon of the volume, as the volume now requires. Logs
 * failures, which heal_daemon_look() also reports. */
void heal_daemons_follow(const char *volume);
/* Returns the socket of the daemon (heal-ask.h). Starts a daemon that waits for its restart at once.
 * Returns 0, or -ENOENT if there is no daemon. */
#define HEAL_DAEMON_SOCKET_SIZE 108
int heal_daemon_wake(const char *volume, char socket[HEAL_DAEMON_SOCKET_SIZE]);
/* Ends all daemons. Must run before workers_stop(), with no operation in progress. */
void heal_daemons_stop(void);

enum heal_daemon_state { HEAL_NONE, HEAL_RUNNING, HEAL_WAITING, HEAL_MISSING };
struct heal_daemon_look {
    enum heal_daemon_state state;
    long pid;          /* in state RUNNING; 0: not known yet */
    unsigned restarts; /* restarts since the volume first needed the daemon */
    char reason[128];  /* reason of the last end; "": none */
};
void heal_daemon_look(const char *volume, struct heal_daemon_look *out);

#endif
