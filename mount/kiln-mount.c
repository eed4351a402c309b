/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-mount: a volume, mounted. Start-up, the signals, the way down.
 *
 * The main thread builds the graph, starts it, and waits for signals; everything else runs on workers. What
 * happens to the mount is told to it by SIGALRM. There is one mount a process so far, but nothing here or
 * below counts on it: what belongs to a mount is in its graph. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu.h>

#include "data/dict.h"
#include "event/worker.h"
#include "fs/inode.h"
#include "glusterfsd/daemon.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "mount/kiln-mount.h"
#include "rpc/transport/transport.h"
#include "stack/coro-call.h"
#include "xlators/mount/fuse/fuse.h"

const char daemon_name[] = "kiln-mount";
static struct mount_options options;
static char mountpoint[PATH_MAX], log_path[PATH_MAX + 64];
static char failure[2048];
static struct graph *graph; /* the main thread's */
/* What workers have to tell; each is followed by SIGALRM. */
static atomic_bool is_settled, is_refused, is_unmounted;

static int __attribute__((format(printf, 2, 3)))
give_up(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(failure, sizeof failure, fmt, ap);
    va_end(ap);
    log_event(LOG_CRITICAL, NULL, "mount-failed", "%s", failure);
    return status;
}

/* ---- what workers tell ----------------------------------------------------------------------- */

static void
tell(atomic_bool *what)
{
    if (!atomic_exchange(what, true))
        kill(getpid(), SIGALRM);
}

static void
volume_event(struct graph *g, enum child_event event)
{
    (void)g;
    if (event == CHILD_REFUSED && !atomic_load(&is_settled))
        tell(&is_refused);
    if (event != CHILD_CONNECTING)
        tell(&is_settled);
}

static void
unmounted(struct graph *g)
{
    (void)g;
    tell(&is_unmounted);
}

/* ---- up and down ----------------------------------------------------------------------------- */

static int
start_pools(void)
{
    int err = options.pools_mode ? mem_pools_set_mode(options.pools_mode) : 0;

    if (err == -EINVAL)
        return give_up(EXIT_OPTION, "--pools %s: expected on, off, poison or trace:K", options.pools_mode);
    mem_pools_set_message_fn(daemon_pool_message);
    static int (*const inits[])(void) = {mem_pools_init,      arena_pools_init, iobuf_pools_init,
                                         dict_pools_init,     stack_pools_init, fs_pools_init,
                                         transport_pools_init, coro_stacks_init};
    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    return err ? give_up(EXIT_FAILURE, "memory pools: %s", strerror(-err)) : 0;
}

static int
start(void)
{
    char error[1024] = "";
    int status = start_pools();

    if (status)
        return status;
    int err = workers_start(&(struct worker_options){0});
    if (err)
        return give_up(EXIT_FAILURE, "workers: %s", strerror(-err));
    fuse_set_unmounted(unmounted);
    graph = volume_new(&options, mountpoint, error, sizeof error);
    if (!graph)
        return give_up(EXIT_FAILURE, "%s", error);
    graph->watch = volume_event;
    err = graph_start(graph);
    return err ? give_up(EXIT_FAILURE, "%s could not be mounted: %s", mountpoint, strerror(-err)) : 0;
}

static void
stop(void)
{
    if (graph) {
        fuse_unmount(graph);
        graph_drain(graph);
        graph_free(graph);
        graph = NULL;
    }
    fuse_process_end();
    coro_stacks_end();
    transport_close_all();
    workers_stop();
    rcu_barrier();
    mem_pools_fini();
}

static bool
each_graph(void (*fn)(struct graph *g, void *arg), void *arg)
{
    fn(graph, arg);
    return true;
}

/* True: the process goes on. */
static bool
act_on(int number, int *status)
{
    int err;

    switch (number) {
    case SIGTERM:
    case SIGINT:
        log_event(LOG_INFO, NULL, "mount-stopping", "signal %d: unmounting", number);
        return false;
    case SIGHUP:
        if ((err = log_reopen()))
            log_event(LOG_ERROR, NULL, "mount-log-reopen", "the log could not be reopened: %s",
                      strerror(-err));
        return true;
    case SIGUSR1:
        /* It logs. */
        (void)statedump_write(options.dump_dir ? options.dump_dir : "/var/run/gluster", graph->name,
                              each_graph);
        return true;
    case SIGALRM:
        if (atomic_load(&is_refused)) {
            *status =
                give_up(EXIT_FAILURE, "volume %s: the brick does not let us in; see the log", graph->name);
            return false;
        }
        if (atomic_load(&is_unmounted))
            log_event(LOG_INFO, NULL, "mount-gone", "%s was unmounted", mountpoint);
        return !atomic_load(&is_unmounted);
    default:
        return true;
    }
}

/* Until the end; whoever started us is told as soon as the mount can be used. The exit status. */
static int
serve(const sigset_t *signals)
{
    bool is_ready = false;
    int status = EXIT_SUCCESS, number;

    for (;;) {
        if (sigwait(signals, &number) != 0)
            continue;
        if (!act_on(number, &status))
            break;
        if (!is_ready && atomic_load(&is_settled)) {
            daemon_ready(0, NULL);
            is_ready = true;
        }
    }
    return status;
}

static void
block_signals(sigset_t *signals)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM};

    sigemptyset(signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(signals, numbers[i]);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* /mnt/data -> /var/log/glusterfs/mnt-data.log, as the stock client's. */
static const char *
default_log(void)
{
    int n = snprintf(log_path, sizeof log_path, "/var/log/glusterfs/");
    char *name = log_path + n;

    snprintf(name, sizeof log_path - (size_t)n, "%s.log", mountpoint[1] ? mountpoint + 1 : "root");
    for (; *name; name++)
        *name = *name == '/' ? '-' : *name;
    return log_path;
}

/* Problems with the command line that need no daemon to be seen. Paths are made absolute: the daemon goes to
 * the root. */
static int
prepare(void)
{
    enum log_level level = LOG_INFO;
    static char volfile[PATH_MAX];

    if (options.log_level && log_level_parse(options.log_level, &level))
        return give_up(EXIT_OPTION, "--log-level %s: not a level", options.log_level);
    log_set_level(level);
    if (geteuid() != 0)
        return give_up(EXIT_FAILURE, "must be run as root: it mounts");
    if (!realpath(options.mountpoint, mountpoint))
        return give_up(EXIT_FAILURE, "%s: %s", options.mountpoint, strerror(errno));
    if (!realpath(options.volfile, volfile))
        return give_up(EXIT_FAILURE, "%s: %s", options.volfile, strerror(errno));
    options.volfile = volfile;
    if (!options.log_path && !options.is_foreground)
        options.log_path = default_log();
    int err = log_open(options.log_path);
    return err ? give_up(EXIT_FAILURE, "%s: %s", options.log_path, strerror(-err)) : 0;
}

int
main(int argc, char **argv)
{
    sigset_t signals;

    mount_options_parse(&options, argc, argv);
    int status = prepare();
    if (status) {
        if (options.log_path)
            fprintf(stderr, "kiln-mount: %s\n", failure);
        return status;
    }
    umask(0);
    block_signals(&signals);
    int err = options.is_foreground ? 0 : daemonise();
    if (err) {
        fprintf(stderr, "kiln-mount: %s\n", strerror(-err));
        return EXIT_FAILURE;
    }
    log_event(LOG_INFO, NULL, "mount-started", "kiln-mount %s: %s on %s", PACKAGE_VERSION, options.volfile,
              mountpoint);
    rcu_register_thread();
    if (options.pid_path && (err = pidfile_write(options.pid_path)))
        status = give_up(EXIT_FAILURE, "%s: %s", options.pid_path,
                         err == -EAGAIN ? "held by a process that is running" : strerror(-err));
    if (!status)
        status = start();
    if (!status)
        status = serve(&signals);
    stop();
    pidfile_close(false);
    if (status)
        daemon_ready(status, failure); /* last: whoever tries again at once finds nothing in the way */
    log_event(LOG_INFO, NULL, "mount-stopped", "exit status %d", status);
    rcu_unregister_thread();
    log_close();
    return status;
}
