/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* heal-daemon: the stock self-heal daemon, one for each volume that is started and replicated, unless the
 * option cluster.self-heal-daemon is off. Started with a volfile of its own (state-dir.h), watched by the
 * process pump, started again when it ends: after a second, then two, four, up to a minute.
 *
 *     none ──▶ RUNNING ──ends──▶ WAITING ──▶ RUNNING        not wanted any more: killed, none
 *                 └──────────── MISSING: the program is not installed; looked for again each minute
 *
 * A daemon that an earlier kilnd has left (it was killed) is found by its pid file and ended first.
 *
 * A program that may connect to the daemon's socket has its rights, because the daemon loads what it is told
 * there. So the socket lies in a folder of mode 0700, which is made before the daemon starts, and the
 * daemon's umask is 0077 (pump.h).
 *
 * Threads: heal_daemons_follow() by whoever has the volume's operation, so one at a time for each volume; it
 * may wait for a process to end. The rest by any. One mutex guards the list; nothing is waited for under it
 * but a condition.
 */
#ifndef KILN_VOLUMES_HEAL_DAEMON_H
#define KILN_VOLUMES_HEAL_DAEMON_H

#include <stdint.h>

#define HEAL_DAEMON_PROGRAM "/usr/sbin/glusterfs"

/* `port`: where bricks are served. Before the first of the next. */
void heal_daemons_begin(uint16_t port);
/* The volume's daemon becomes what the volume says: started, started anew with another volfile, ended. What
 * fails is logged, and heal_daemon_look() tells. */
void heal_daemons_follow(const char *volume);
/* Where it can be asked (heal-ask.h). One that waits to be started again is started now. 0; -ENOENT: there is
 * none. */
#define HEAL_DAEMON_SOCKET_SIZE 108
int heal_daemon_wake(const char *volume, char socket[HEAL_DAEMON_SOCKET_SIZE]);
/* All end. Before workers_stop(), no operation is under way. */
void heal_daemons_stop(void);

enum heal_daemon_state { HEAL_NONE, HEAL_RUNNING, HEAL_WAITING, HEAL_MISSING };
struct heal_daemon_look {
    enum heal_daemon_state state;
    long pid;          /* RUNNING; 0: not known yet */
    unsigned restarts; /* since it was wanted first */
    char reason[128];  /* why it ended last; "" */
};
void heal_daemon_look(const char *volume, struct heal_daemon_look *out);

#endif
