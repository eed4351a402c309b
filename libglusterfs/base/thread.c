/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

/* 0, or an error number. The thread starts with all signals blocked. */
static int
create_thread(pthread_t *thread, const pthread_attr_t *attr, void *(*run)(void *arg), void *arg)
{
    sigset_t all, before;

    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* else a system call that the sandbox refuses would end the process */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int err = pthread_create(thread, attr, run, arg);

    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err;
}

int
thread_start(void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    int err = pthread_attr_init(&attr);

    if (err)
        return -err;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    err = create_thread(&thread, &attr, run, arg);
    pthread_attr_destroy(&attr);
    return -err;
}

int
thread_run(void *(*run)(void *arg), void *arg)
{
    pthread_t thread;
    int err = create_thread(&thread, NULL, run, arg);

    return -(err ? err : pthread_join(thread, NULL));
}
