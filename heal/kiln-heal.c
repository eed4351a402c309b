/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-heal: the self-heal daemon and rebalancer of a kilnd without a glusterd: one process for all
 * volumes.
 *
 * kilnd starts the program, gives it volumes and questions over standard input (channel.h), and restarts
 * the program when it ends. The program connects to the bricks like any client. The main thread reads the channel;
 * workers heal. The end of the channel ends the program. */
#include <config.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu.h>

#include "daemon/daemon.h"
#include "daemon/sandbox.h"
#include "data/dict.h"
#include "event/worker.h"
#include "fs/inode.h"
#include "heal/channel.h"
#include "heal/heal-volume.h"
#include "heal/rebalance-jobs.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport.h"
#include "stack/coro-call.h"

enum { EXIT_USAGE = 64, WORKERS = 2, END_S = 30 };

static const char daemon_name[] = "kiln-heal";
static const char *log_path;
static enum sandbox_mode sandbox;
/* jemalloc's, if that is the allocator; see mount/kiln-mount.c */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "narenas:1";

static int
start_heal_pools(void)
{
    static int (*const inits[])(void) = {mem_pools_init,       arena_pools_init, iobuf_pools_init,
                                         dict_pools_init,      stack_pools_init, fs_pools_init,
                                         transport_pools_init, coro_stacks_init};
    int err = 0;

    mem_pools_set_message_fn(daemon_pool_message);
    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    return err ? err : workers_start(&(struct worker_options){.min = WORKERS});
}

static int
run(void)
{
    struct reason why = {""};

    daemon_raise_descriptor_limit();
    if (sandbox_enter(SANDBOX_HEALER, sandbox, &why))
        log_event(LOG_WARNING, NULL, "heal-sandbox-missing", "kiln-heal runs without its sandbox: %s",
                  why.text);
    rcu_register_thread();
    int err = start_heal_pools();

    if (err) {
        log_event(LOG_CRITICAL, NULL, "heal-start", "kiln-heal cannot start: %s", strerror(-err));
        return EXIT_FAILURE;
    }
    sandbox_watch();
    log_event(LOG_INFO, NULL, "heal-started", "kiln-heal %s", PACKAGE_VERSION);
    channel_serve();
    log_event(LOG_INFO, NULL, "heal-stopping", "the channel to kilnd has ended");
    alarm(END_S); /* a brick that does not answer must not keep the process */
    rebalance_jobs_drop_all();
    heal_volumes_drop_all();
    transport_close_all();
    sandbox_unwatch();
    workers_stop();
    sandbox_report();
    coro_stacks_end();
    rcu_barrier();
    mem_pools_fini();
    rcu_unregister_thread();
    return EXIT_SUCCESS;
}

static bool
is_pipe(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISFIFO(st.st_mode);
}

/* Returns 0 or EXIT_USAGE. */
static int
parse_options(int argc, char **argv)
{
    static const char log_option[] = "--log-file=", sandbox_option[] = "--sandbox=";

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], log_option, sizeof log_option - 1) == 0)
            log_path = argv[i] + sizeof log_option - 1;
        else if (strncmp(argv[i], sandbox_option, sizeof sandbox_option - 1) == 0 &&
                 sandbox_mode_parse(argv[i] + sizeof sandbox_option - 1, &sandbox) == 0)
            continue;
        else if (strcmp(argv[i], "--version") == 0)
            exit(printf("kiln-heal %s\n", PACKAGE_VERSION) < 0);
        else if (strcmp(argv[i], "--help") == 0)
            exit(printf("Usage: kiln-heal [--log-file=FILE] [--sandbox=on|off|log]\n\n"
                        "The self-heal daemon and rebalancer of kilnd --state, which starts the program.\n") < 0);
        else
            return EXIT_USAGE;
    }
    return 0;
}

int
main(int argc, char **argv)
{
    int status = parse_options(argc, argv);

    if (status) {
        fprintf(stderr, "kiln-heal: see kiln-heal --help\n");
        return status;
    }
    if (!is_pipe(STDIN_FILENO) || !is_pipe(STDOUT_FILENO)) {
        fprintf(stderr, "kiln-heal: standard input is no pipe; expected: a start by kilnd --state\n");
        return EXIT_USAGE;
    }
    log_set_ident(daemon_name);
    signal(SIGPIPE, SIG_IGN);
    signal(SIGHUP, SIG_IGN);
    signal(SIGUSR1, SIG_IGN);
    int err = log_open(log_path);

    if (err)
        fprintf(stderr, "kiln-heal: %s: %s; the log goes to standard error\n", log_path, strerror(-err));
    status = run();
    log_close();
    return status;
}
