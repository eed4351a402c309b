/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* notify: tells the service manager that started this process how it goes (sd_notify(3)'s datagrams, without
 * its library): ready, ending, and, while clients would be served, that this is so.
 *
 * A sign of life is sent by a worker that epoll_wait has handed an event to, as it hands over what clients
 * send; the event comes from the timer thread. So it stops when either is stuck: when all workers hang in a
 * lock, or none gets events. A disk that does not answer holds up the workers that wait for it, not the
 * others.
 *
 * Without $NOTIFY_SOCKET all of it does nothing. thread: the main thread.
 */
#ifndef KILN_GLUSTERFSD_NOTIFY_H
#define KILN_GLUSTERFSD_NOTIFY_H

/* Takes what the manager has said out of the environment, so that no child answers for this process. Before
 * there are threads. 0, or -errno when the socket it has named is none. */
int notify_begin(void);
/* Ready, with a line for people. With $WATCHDOG_USEC signs of life begin: workers run. 0 or -errno. */
int notify_ready(const char *status);
/* The configuration is read anew, or has been. */
void notify_reloading(void);
void notify_reloaded(void);
/* The way down has begun: no more signs of life. Before workers_stop(); harmless without notify_ready(). */
void notify_stopping(void);

#endif
