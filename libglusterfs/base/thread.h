/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* thread: a thread that does one piece of work and ends. */
#ifndef KILN_BASE_THREAD_H
#define KILN_BASE_THREAD_H

/* Runs run(arg) in a detached thread that gets no signals, because signals are for the main thread. Any
 * thread. 0, or -errno: the thread was not made. */
int thread_start(void *(*run)(void *arg), void *arg);
/* Runs run(arg) in such a thread and waits until it has ended, for work that changes attributes of a
 * thread (its umask, its namespaces). 0, or -errno: the thread was not made. */
int thread_run(void *(*run)(void *arg), void *arg);

#endif
