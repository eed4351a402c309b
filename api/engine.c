/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Kiln's workers, timer and pools inside of a program: started by the first volume, shared by all volumes.
 *
 * The threads block all signals, so the program's handlers run in the program's threads. A child of fork()
 * has none of the threads, and its copies of the locks may be held for ever, so a child may use no volume. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <urcu.h>

#include "api/api-internal.h"
#include "base/thread.h"
#include "data/dict.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/transport/tls-config.h"
#include "rpc/transport/transport.h"

enum { ENGINE_WORKERS = 4 }; /* more threads start while these are busy */

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic pid_t started_by; /* 0: not started; written under the lock */
static char *log_file;           /* under the lock */

bool
engine_is_here(void)
{
    return atomic_load_explicit(&started_by, memory_order_relaxed) == getpid();
}

static void
engine_pool_message(int level, const char *text)
{
    (void)level; /* messages are about misuse and lack of memory */
    log_event(LOG_ERROR, NULL, "gfapi-pools", "memory pools: %s", text);
}

static int
start_engine(void)
{
    static int (*const inits[])(void) = {mem_pools_init,       arena_pools_init, iobuf_pools_init,
                                         dict_pools_init,      stack_pools_init, fs_pools_init,
                                         transport_pools_init, coro_stacks_init};
    struct reason why = {""};
    int err = 0;

    mem_pools_set_message_fn(engine_pool_message);
    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    if (!err && (err = tls_management_begin(false, false, &why)))
        log_event(LOG_ERROR, NULL, "gfapi-tls", "TLS to glusterd: %s", why.text);
    return err ? err : workers_start(&(struct worker_options){.min = ENGINE_WORKERS});
}

int
engine_start(void)
{
    int err = 0;

    pthread_mutex_lock(&engine_lock);
    if (!started_by) {
        log_set_ident("libgfapi");
        err = start_engine();
        if (!err)
            atomic_store(&started_by, getpid());
    } else if (!engine_is_here()) {
        err = -ENOTSUP;
    }
    pthread_mutex_unlock(&engine_lock);
    return err;
}

int
engine_log_to(const char *path)
{
    pthread_mutex_lock(&engine_lock);
    bool is_same = log_file && strcmp(log_file, path) == 0;
    char *copy = is_same ? NULL : strdup(path);
    int err = is_same ? 0 : copy ? log_open(path) : -ENOMEM;

    if (!err && copy) {
        free(log_file);
        log_file = copy;
    } else {
        free(copy);
    }
    pthread_mutex_unlock(&engine_lock);
    return err;
}

struct engine_work {
    int (*fn)(void *arg);
    void *arg;
    int ret;
};

static void *
run_engine_work(void *arg)
{
    struct engine_work *w = arg;

    rcu_register_thread();
    w->ret = w->fn(w->arg);
    rcu_unregister_thread();
    return NULL;
}

int
engine_run(int (*fn)(void *arg), void *arg)
{
    struct engine_work w = {.fn = fn, .arg = arg};
    int err = thread_run(run_engine_work, &w);

    return err ? err : w.ret;
}
