/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* notify: tells the service manager that started this process the state of the process (sd_notify(3)'s
 * datagrams, without its library): ready, ending, and signs of life while clients would be served.
 *
 * A worker that epoll_wait has handed an event to sends the sign of life, as workers get the data of
 * clients; the event comes from the timer thread. So the signs stop when either is stuck: when all workers
 * hang in a lock, or no worker gets events. A disk that does not answer holds up the workers that wait for
 * the disk, not the others.
 *
 * Without $NOTIFY_SOCKET all functions do nothing. thread: the main thread.
 */
#ifndef KILN_DAEMON_NOTIFY_H
#define KILN_DAEMON_NOTIFY_H

#include <stdbool.h>

/* Takes the manager's variables out of the environment, so that no child answers for this process. Before
 * there are threads. 0, or -errno when $NOTIFY_SOCKET names no socket. */
int notify_begin(void);
/* Puts these variables back for the program that takes this process over, or takes them out again. Other
 * threads read no environment meanwhile. */
void notify_give_environment(bool gives);
/* Ready, with a line for people. With $WATCHDOG_USEC signs of life begin: workers run. 0 or -errno. */
int notify_ready(const char *status);
/* The configuration is being read anew, or has been read. */
void notify_reloading(void);
void notify_reloaded(void);
/* The way down has begun: no more signs of life. Before workers_stop(); harmless without notify_ready(). */
void notify_stopping(void);

#endif
