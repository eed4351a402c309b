/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kilnd: start-up, the signals, the way down.
 *
 * The main thread builds the bricks, starts workers and listener, and then only waits for signals; statedumps are
 * written by it. Order of start: options, log, background, pools, bricks (each checked whole before the next), workers, bricks published,
 * listener. The way down is the reverse: connections first, so that what runs can finish. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu.h>

#include "data/dict.h"
#include "event/worker.h"
#include "fs/inode.h"
#include "glusterfsd/kilnd.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/transport.h"
#include "xlators/protocol/server/server.h"

#define PORT_DEFAULT 49152
#define NOFILE_WANTED 1048576

static struct kilnd_options options;
static struct graph *graphs[KILND_BRICKS_MAX];
static unsigned graph_count;
static char failure[1024];
/* Of the first brick, which may be gone by the time they are needed. */
static char *first_brick, *volfile_dump_dir;

/* Says why, to the log and to whoever started the daemon. */
static int __attribute__((format(printf, 2, 3)))
give_up(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(failure, sizeof failure, fmt, ap);
    va_end(ap);
    log_event(LOG_CRITICAL, NULL, "start-failed", "%s", failure);
    return status;
}

static void
pool_message(int level, const char *text)
{
    /* syslog's levels are one lower than the log's. */
    log_event((enum log_level)(level + 1), NULL, "mem-pool", "%s", text);
}

static void
raise_descriptor_limit(void)
{
    struct rlimit limit;

    if (getrlimit(RLIMIT_NOFILE, &limit) < 0 || limit.rlim_cur >= NOFILE_WANTED)
        return;
    struct rlimit wanted = {.rlim_cur = NOFILE_WANTED, .rlim_max = NOFILE_WANTED};
    if (setrlimit(RLIMIT_NOFILE, &wanted) == 0)
        return;
    limit.rlim_cur = limit.rlim_max;
    if (setrlimit(RLIMIT_NOFILE, &limit) < 0)
        log_event(LOG_WARNING, NULL, "descriptor-limit", "could not be raised: %s", strerror(errno));
}

/* --xlator-option PATTERN.KEY=VALUE, split at the first '.' and the first '=' (management 2.5). Given values go behind the
 * file's own, so that they win; the first of several on the command line is added last. */
static int
apply_xlator_options(struct volfile *v)
{
    for (unsigned i = options.xlator_option_count; i-- > 0;) {
        char *text = (char *)options.xlator_options[i];
        char *dot = strchr(text, '.'), *equals = dot ? strchr(dot, '=') : NULL;

        if (!equals || !equals[1])
            return give_up(EXIT_OPTION, "--xlator-option %s: expected PATTERN.KEY=VALUE", text);
        char *pattern = strndup(text, (size_t)(dot - text));
        char *key = strndup(dot + 1, (size_t)(equals - dot - 1));
        if (!pattern || !key)
            return give_up(EXIT_FAILURE, "no memory");
        int err = volfile_override(v, pattern, key, equals + 1);
        free(pattern);
        free(key);
        if (err)
            return give_up(EXIT_FAILURE, "no memory");
    }
    return 0;
}

static int
check_is_new(unsigned i, const char *name)
{
    for (unsigned k = 0; k < graph_count; k++) {
        if (strcmp(graphs[k]->name, name) == 0)
            return give_up(EXIT_FAILURE, "%s: brick %s is given twice", options.volfiles[i], name);
    }
    return 0;
}

static int
start_brick(unsigned i)
{
    char error[768];
    const char *name = i < options.brick_name_count ? options.brick_names[i] : NULL;
    struct volfile *v = volfile_read(options.volfiles[i], error, sizeof error);

    if (!v)
        return give_up(EXIT_FAILURE, "%s", error);
    int status = check_is_new(i, name ? name : graph_brick_name(v));
    if (!status)
        status = apply_xlator_options(v);
    if (status) {
        volfile_free(v);
        return status;
    }
    struct graph *g = graph_new(v, name, error, sizeof error);
    if (!g)
        return give_up(EXIT_FAILURE, "%s: %s", options.volfiles[i], error);
    graphs[graph_count++] = g;
    return 0;
}

static int
publish_bricks(void)
{
    for (unsigned i = 0; i < graph_count; i++) {
        int err = graph_start(graphs[i]);

        if (!err)
            err = graph_publish(graphs[i]);
        if (err)
            return give_up(EXIT_FAILURE, "%s: brick %s does not start: %s", options.volfiles[i], graphs[i]->name,
                           strerror(-err));
    }
    return 0;
}

/* An option of the first brick's server section; NULL: not given. */
static const char *
server_option(const char *key)
{
    return volfile_option(graphs[0]->volfile->top, key);
}

static int
wanted_port(void)
{
    const char *text = server_option("transport.socket.listen-port");
    int64_t port;

    if (options.port >= 0)
        return options.port;
    if (!text)
        text = server_option("listen-port");
    if (!text)
        return PORT_DEFAULT;
    return option_int(text, &port) == 0 && port >= 0 && port <= 65535 ? (int)port : -1;
}

static int
listen_for_clients(void)
{
    char error[512];
    uint16_t port;
    int wanted = wanted_port();

    if (wanted < 0)
        return give_up(EXIT_FAILURE, "%s: option listen-port: expected a number from 0 to 65535", options.volfiles[0]);
    int err = server_listen_start(server_option("transport.socket.bind-address"), (uint16_t)wanted,
                                  options.socket_path, &port, error, sizeof error);
    if (err)
        return give_up(err == -EADDRINUSE ? EXIT_PORT_TAKEN : EXIT_FAILURE, "%s", error);
    log_event(LOG_INFO, NULL, "listening", "serving %u bricks on port %u", graph_count, port);
    if (!options.port_path)
        return 0;

    char temporary[4096];
    snprintf(temporary, sizeof temporary, "%s.new", options.port_path);
    FILE *f = fopen(temporary, "w");
    bool is_written = f && fprintf(f, "%u\n", port) > 0;
    if ((f && fclose(f) != 0) || !is_written || rename(temporary, options.port_path) < 0)
        return give_up(EXIT_FAILURE, "%s: %s", options.port_path, strerror(errno));
    return 0;
}

static int
start_pools(void)
{
    int err = options.pools_mode ? mem_pools_set_mode(options.pools_mode) : 0;

    if (err == -EINVAL)
        return give_up(EXIT_OPTION, "--pools %s: expected on, off, poison or trace:K", options.pools_mode);
    mem_pools_set_message_fn(pool_message);
    static int (*const inits[])(void) = {mem_pools_init,   arena_pools_init, iobuf_pools_init,     dict_pools_init,
                                         stack_pools_init, fs_pools_init,    transport_pools_init, rpc_server_pools_init};
    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    return err ? give_up(EXIT_FAILURE, "memory pools: %s", strerror(-err)) : 0;
}

static int
start(void)
{
    int status = start_pools();

    for (unsigned i = 0; i < options.volfile_count && !status; i++)
        status = start_brick(i);
    if (status)
        return status;
    const char *dir = server_option("statedump-path");
    first_brick = strdup(graphs[0]->name);
    volfile_dump_dir = strdup(dir ? dir : "/var/run/gluster");
    if (!first_brick || !volfile_dump_dir)
        return give_up(EXIT_FAILURE, "no memory");
    int err = workers_start(&(struct worker_options){0});
    if (err)
        return give_up(EXIT_FAILURE, "workers: %s", strerror(-err));
    if ((status = publish_bricks()))
        return status;
    failing_watch(graphs, graph_count);
    return listen_for_clients();
}

static void
stop(void)
{
    bool hangs = failing_end();

    if (hangs)
        _exit(EXIT_FAILURE);
    server_listen_stop();
    for (unsigned i = 0; i < graph_count; i++) {
        struct graph *g = graphs[i];

        if (failing_is_gone(i))
            continue;
        if (g->is_published) {
            graph_detach(g->name);
        } else {
            graph_stop(g);
            graph_free(g);
        }
    }
    graph_count = 0;
    workers_stop();
    rcu_barrier();
    mem_pools_fini();
}

static void
write_statedump(void)
{
    const char *dir = options.dump_dir ? options.dump_dir : volfile_dump_dir;

    statedump_write(dir ? dir : "/var/run/gluster", first_brick);
}

/* Until SIGTERM or SIGINT, or until the last brick has failed. The exit status. */
static int
serve(const sigset_t *signals)
{
    for (;;) {
        int number = 0, err;

        if (sigwait(signals, &number) != 0)
            continue;
        switch (number) {
        case SIGTERM:
        case SIGINT:
            log_event(LOG_INFO, NULL, "stopping", "signal %d: finishing what is running", number);
            return EXIT_SUCCESS;
        case SIGALRM:
            if (!failing_run()) {
                log_event(LOG_CRITICAL, NULL, "no-brick-left", "every brick has failed: ending");
                return EXIT_FAILURE;
            }
            break;
        case SIGHUP:
            if ((err = log_reopen()))
                log_event(LOG_ERROR, NULL, "log-reopen", "the log could not be reopened: %s", strerror(-err));
            else
                log_event(LOG_INFO, NULL, "log-reopened", "log reopened");
            break;
        case SIGUSR1:
            write_statedump();
            break;
        default:
            break;
        }
    }
}

static void
block_signals(sigset_t *signals)
{
    sigemptyset(signals);
    sigaddset(signals, SIGTERM);
    sigaddset(signals, SIGINT);
    sigaddset(signals, SIGHUP);
    sigaddset(signals, SIGUSR1);
    sigaddset(signals, SIGALRM);
    pthread_sigmask(SIG_BLOCK, signals, NULL);
    signal(SIGPIPE, SIG_IGN);
}

/* Problems with the command line that need no daemon to be seen. */
static int
prepare(void)
{
    enum log_level level = LOG_INFO;

    if (options.log_level && log_level_parse(options.log_level, &level))
        return give_up(EXIT_OPTION, "--log-level %s: not a level", options.log_level);
    log_set_level(level);
    if (geteuid() != 0)
        return give_up(EXIT_FAILURE, "must be run as root: bricks keep trusted.* xattrs and the owners of files");
    if (!options.log_path && !options.is_foreground)
        options.log_path = "/var/log/glusterfs/kilnd.log";
    int err = log_open(options.log_path);
    if (err)
        return give_up(EXIT_FAILURE, "%s: %s", options.log_path, strerror(-err));
    return 0;
}

int
main(int argc, char **argv)
{
    sigset_t signals;

    options_parse(&options, argc, argv);
    int status = prepare();
    if (status) {
        if (options.log_path)
            fprintf(stderr, "kilnd: %s\n", failure);
        return status;
    }
    umask(0);
    block_signals(&signals);
    int err = options.is_foreground ? 0 : daemonise();
    if (err) {
        fprintf(stderr, "kilnd: %s\n", strerror(-err));
        return EXIT_FAILURE;
    }
    log_event(LOG_INFO, NULL, "started", "kilnd %s, allocator %s, %u volfiles", PACKAGE_VERSION, KILN_ALLOCATOR,
              options.volfile_count);
    rcu_register_thread();
    raise_descriptor_limit();
    if (options.pid_path && (err = pidfile_write(options.pid_path)))
        status = give_up(EXIT_FAILURE, "%s: %s", options.pid_path,
                         err == -EAGAIN ? "held by a daemon that is running" : strerror(-err));
    if (!status)
        status = start();
    bool is_started = !status;
    if (is_started) {
        daemon_ready(0, NULL);
        status = serve(&signals);
    }
    stop();
    pidfile_remove();
    if (is_started && options.port_path)
        unlink(options.port_path);
    if (!is_started)
        daemon_ready(status, failure); /* last: whoever tries again at once finds nothing in the way */
    log_event(LOG_INFO, NULL, "stopped", "exit status %d", status);
    rcu_unregister_thread();
    log_close();
    free(first_brick);
    free(volfile_dump_dir);
    free(options.volfiles);
    free(options.brick_names);
    free(options.xlator_options);
    return status;
}
