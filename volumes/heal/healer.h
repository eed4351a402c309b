/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* healer: runs kiln-heal, one process for the heals and rebalances of all volumes that are started. The
 * process runs under a process pump and gets volumes and questions over its standard input
 * (heal/channel.h). When the process ends, kilnd restarts it: after a second, then two, four, up to a minute.
 *
 *     none ──▶ RUNNING ──ends──▶ WAITING ──▶ RUNNING        last volume stopped: killed, none
 *                 └──────────── MISSING: the program is not installed; checked again each minute
 *
 * A killed kilnd closes the pipes, and the process ends by itself. The program is looked for in the folder
 * of kilnd's own executable.
 *
 * Threads: healer_follow() is called by the thread that has the volume's operation, so one at a time for
 * each volume; it may wait for the process to end. The other functions may be called by any thread.
 * healer_ask() waits and is not for workers, because workers deliver the answer. One mutex guards all data;
 * under the mutex a thread waits only for a condition. */
#ifndef KILN_VOLUMES_HEALER_H
#define KILN_VOLUMES_HEALER_H

#include <jansson.h>
#include <stdint.h>

/* A mode of the sandbox (static text), for the program. Must run before healer_begin(). */
void healer_set_sandbox(const char *mode);
/* Must run before the next functions. `port`: the port of the bricks. */
void healer_begin(uint16_t port);
/* Gives the volume to the process as the volume is now, or takes it away. Starts the process for the first
 * volume and ends it after the last. Logs failures. */
void healer_follow(const char *volume);
/* Asks a question, which is consumed: an object without "id". Starts a process that waits for its restart at
 * once. Returns 0 with the answer in *out, a new reference; -ENOENT: the process does not know a volume of
 * kilnd yet, or has none; -ETIMEDOUT; -EPIPE: the process ended; -ENOMEM. */
int healer_ask(json_t *question, unsigned timeout_s, json_t **out);
/* Gives the process a line under a key, which must not be the name of a volume, or takes it away with the
 * line `drop`. Each new process gets the line again. `line` is consumed. healer_give() returns 0 or
 * -ENOMEM. */
int healer_give(const char *key, char *line);
void healer_take_away(const char *key, const char *drop);
/* `fn` gets messages of the process that are no answers. It must not wait, and not call this module. */
void healer_set_notice(void (*fn)(const json_t *notice));
/* Ends the process. Must run before workers_stop(), with no operation in progress. */
void healer_stop(void);

enum healer_state { HEALER_NONE, HEALER_RUNNING, HEALER_WAITING, HEALER_MISSING };
struct healer_look {
    enum healer_state state;
    long pid;          /* in state RUNNING; 0: not known yet */
    unsigned restarts; /* restarts since kilnd first needed the process */
    char reason[128];  /* reason of the last end; "": none */
};
/* Fills *out. */
void healer_look(struct healer_look *out);

#endif
