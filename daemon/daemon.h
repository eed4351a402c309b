/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The parts that Kiln's daemons share: the way into the background, the pid file, descriptors, statedumps. */
#ifndef KILN_DAEMON_DAEMON_H
#define KILN_DAEMON_DAEMON_H

#include <signal.h>
#include <stdbool.h>

/* The log folder of daemons without an option for the log. Stock's folder is rotated by stock's packages. */
#define DAEMON_LOG_DIR "/var/log/kiln"

struct graph;

/* Logs a message of the pools: for mem_pools_set_message_fn(). Any thread. */
void daemon_pool_message(int level, const char *text);

/* The parent waits here until daemon_ready() and exits with its status. 0 in the child, which has the
 * parent's process group and session until daemon_ready(); -errno. `program` is the name in messages. */
int daemonise(const char *program);
/* Makes DAEMON_LOG_DIR, and `below` inside unless NULL, if they are missing. A failure shows when the log is
 * opened. */
void daemon_make_log_dir(const char *below);
/* Tells the waiting parent how the start went; `message` is shown on its stderr, behind the program's name.
 * Harmless in the foreground. */
void daemon_ready(const char *program, int exit_status, const char *message);
/* Blocks the signals that daemon_next_signal() waits for: those of *signals, to which this function adds a
 * signal of the log. Before there are threads. */
void daemon_block_signals(sigset_t *signals);
/* Waits for the next of *signals and returns it; the log's own signal is not returned. Meanwhile logs how
 * many lines of a burst were left out. Main thread. */
int daemon_next_signal(const sigset_t *signals);
/* Raises the limit of descriptors as far as the kernel and this process's rights allow, at most to a million.
 * The caller calls it once, before other code reads the limit. Logs a failure. */
void daemon_raise_descriptor_limit(void);
/* Writes and locks the pid file. 0, -EAGAIN (another daemon holds the lock), -errno. */
int pidfile_write(const char *path);
/* Removes the pid file, unless `is_kept`, and unlocks it. */
void pidfile_close(bool is_kept);

/* Writes DIR/NAME.PID.dump.SECONDS, which is complete when it has that name. `each` gets `of`, calls its fn
 * for every graph, and returns false without memory for that. `path` (may be NULL) gets the name of the
 * file. Returns 0 or -errno (logged). Any thread that is registered with RCU and in no read section. */
#define STATEDUMP_PATH_SIZE 4096
int statedump_write(const char *dir, const char *name,
                    bool (*each)(void *of, void (*fn)(struct graph *g, void *arg), void *arg), void *of,
                    char path[STATEDUMP_PATH_SIZE]);

#endif
