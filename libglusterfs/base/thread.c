/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "base/thread.h"

#include <pthread.h>
#include <signal.h>

int
thread_start(void *(*run)(void *arg), void *arg)
{
    pthread_attr_t attr;
    pthread_t thread;
    sigset_t all, before;
    int err = pthread_attr_init(&attr);

    if (err)
        return -err;
    pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    err = pthread_create(&thread, &attr, run, arg);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attr);
    return -err;
}
