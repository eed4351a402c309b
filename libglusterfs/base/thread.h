/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* thread: one that does its work and goes, and that nobody joins. */
#ifndef KILN_BASE_THREAD_H
#define KILN_BASE_THREAD_H

/* Runs run(arg) in a detached thread that gets no signals: those are for the main thread. Any thread. 0, or
 * -errno: there is none. */
int thread_start(void *(*run)(void *arg), void *arg);

#endif
