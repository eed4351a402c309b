/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kilnd: start-up, the signals, the way down.
 *
 * The main thread starts workers, has the bricks attached, opens the listener, and then only waits for
 * signals and writes statedumps. The way down ends the background work first, then the connections, so
 * that running calls can finish, then the bricks. */
#include <config.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <urcu.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "base/rights.h"
#include "bricks/brick-ops.h"
#include "bricks/bricks.h"
#include "bricks/management.h"
#include "bricks/upgrade.h"
#include "bricks/volfiles.h"
#include "daemon/notify.h"
#include "daemon/sandbox.h"
#include "data/dict.h"
#include "event/pump.h"
#include "event/spawner.h"
#include "event/worker.h"
#include "fs/inode.h"
#include "glusterfsd/brick-types.h"
#include "glusterfsd/http-routes.h"
#include "glusterfsd/kilnd.h"
#include "glusterfsd/questions.h"
#include "graph/graph.h"
#include "graph/pools.h"
#include "graph/unbuilt.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "mount/inside.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/tls-config.h"
#include "rpc/transport/transport.h"
#include "volumes/front.h"
#include "volumes/heal/healer.h"
#include "volumes/verbs/verbs.h"
#include "xlators/protocol/server/server.h"

#define PORT_DEFAULT 49152
#define DUMP_DIR "/var/run/gluster"

/* jemalloc reads this at its start; the environment's MALLOC_CONF wins. Operations do not call the allocator.
 * Attaching a brick does, in a separate thread, and each thread takes the next arena. With the default of
 * four arenas for each processor the lasting memory would be spread over all arenas, and an arena that no
 * thread visits any more gives nothing back. For the same reason no thread keeps freed memory for itself:
 * with 40 bricks at rest such memory was 1.3 of 10.7 MB. */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "narenas:1,tcache:false";

static const char daemon_name[] = "kilnd";
static struct kilnd_options options;
static char failure[2048];
static bool has_begun; /* bricks may be attached */
static bool is_sandboxed; /* the filter is on; also if an earlier program of this process has entered */
static bool is_logging; /* the log is open; before, main() prints the failure */
/* The options of the process in the first brick's volfile; that brick may be gone when the process needs the
 * options. NULL: not set. */
static char *first_brick, *bind_address;
static int64_t volfile_port = -1;
static uint16_t brick_port; /* that clients connect to */

/* Gives the reason to the log and to the process that started the daemon. */
static int __attribute__((format(printf, 2, 3)))
kilnd_start_fail(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(failure, sizeof failure, fmt, ap);
    va_end(ap);
    if (is_logging)
        log_event(LOG_CRITICAL, NULL, "start-failed", "%s", failure);
    return status;
}

/* Given values go behind the file's own, so that the given values win; the first of several on the command
 * line is added last. */
static int
apply_xlator_options(struct volfile *v, char *error, size_t error_size)
{
    int err = 0;

    for (unsigned i = options.xlator_option_count; i-- > 0 && !err;) {
        const char *text = options.xlator_options[i], *dot = strchr(text, '.'), *equals = strchr(dot, '=');
        char *pattern = strndup(text, (size_t)(dot - text));
        char *key = strndup(dot + 1, (size_t)(equals - dot - 1));

        err = pattern && key ? volfile_override(v, pattern, key, equals + 1) : -ENOMEM;
        free(pattern);
        free(key);
    }
    if (err)
        snprintf(error, error_size, "%s: no memory", v->path);
    return err;
}

/* From a brick's thread. */
static void
no_brick_left(void)
{
    kill(getpid(), SIGALRM);
}

/* A brick with failed storage is going: glusterd shall not send clients here. */
static void
brick_failed(const char *name)
{
    bool is_last;

    (void)management_remove(name, &is_last); /* glusterd does not know a volfile given by hand */
}

/* The last brick was terminated: as on SIGTERM. */
static void
none_left_by_request(void)
{
    kill(getpid(), SIGTERM);
}

static int
begin(void)
{
    const struct bricks_hooks hooks = {
        .find_type = brick_type_find,
        .prepare = apply_xlator_options,
        .failed = brick_failed,
        /* a kilnd that keeps volumes goes on without bricks */
        .none_left = options.state_dir ? NULL : no_brick_left};
    const struct brick_ops_hooks ops = {.prepare = apply_xlator_options, .none_left = none_left_by_request};

    if (options.is_strict)
        graph_refuse_unbuilt();
    bricks_begin(&hooks);
    has_begun = true;
    int err = options.socket_path ? brick_ops_listen(options.socket_path, &ops) : 0;
    return err ? kilnd_start_fail(EXIT_FAILURE, "%s: %s", options.socket_path, strerror(-err)) : 0;
}

/* The first brick alone, then the others: the first volfile sets the options of the process. */
static int
attach_bricks(void)
{
    const char **names = calloc(options.volfile_count + 1, sizeof *names); /* NULL: the volfile's own */
    char error[1024] = "";

    if (!names)
        return kilnd_start_fail(EXIT_FAILURE, "no memory");
    for (unsigned i = 0; i < options.brick_name_count; i++)
        names[i] = options.brick_names[i];
    unsigned first = options.volfile_count > 0;
    int err = bricks_attach_all(options.volfiles, names, first, error, sizeof error);
    if (!err)
        err = bricks_attach_all(options.volfiles + first, names + first, options.volfile_count - first, error,
                                sizeof error);
    free(names);
    return err ? kilnd_start_fail(EXIT_FAILURE, "%s", error) : 0;
}

/* One brick of the earlier program. 0 or the exit status. */
static int
attach_restored(unsigned number, char *error, size_t error_size)
{
    int status = EXIT_FAILURE;
    struct volfile *v = management_restored_volfile(number, &status, error, error_size);
    char *name = v ? strdup(graph_brick_name(v)) : NULL;

    if (!v)
        return status;
    int err = bricks_attach_volfile(v, NULL, true, error, error_size);
    if (err && name)
        management_not_attached(name, false);
    free(name);
    return err ? EXIT_FAILURE : 0;
}

/* All bricks of the earlier program. A brick that does not come along must not end the others. */
static int
attach_all_restored(void)
{
    char error[1024] = "";
    int status = EXIT_FAILURE;
    unsigned served = 0;
    const char *id;

    for (unsigned i = 0; (id = management_restored_id(i)); i++) {
        int failed = attach_restored(i, error, sizeof error);

        served += !failed;
        status = failed ? failed : status;
        if (failed)
            log_event(LOG_ERROR, NULL, "restore-brick-volfile", "brick %s is not served any more: %s", id,
                      error);
    }
    return served ? 0 : kilnd_start_fail(status, "no brick of the earlier program can be served: %s", error);
}

/* As glusterd starts bricks: the volfile comes from glusterd. */
static int
attach_from_glusterd(void)
{
    const struct management_options o = {
        .host = options.server_is_unix ? NULL : options.server,
        .unix_path = options.server_is_unix ? options.server : NULL,
        .port = (uint16_t)(options.server_port ? options.server_port : GLUSTERD_PORT),
        .brick_name = options.brick_names[0],
        .brick_port = (uint16_t)options.port,
        .prepare = apply_xlator_options,
    };
    char error[1024] = "";
    int status = EXIT_FAILURE, err = management_start(&o);

    if (err)
        return kilnd_start_fail(EXIT_FAILURE, "glusterd at %s: %s", options.server, strerror(-err));
    if (upgrade_has_state())
        return attach_all_restored();
    struct volfile *v = management_first_volfile(options.volfile_id, &status, error, sizeof error);
    if (!v)
        return kilnd_start_fail(status, "%s", error);
    err = bricks_attach_volfile(v, NULL, true, error, sizeof error);
    return err ? kilnd_start_fail(EXIT_FAILURE, "%s", error) : 0;
}

static int
open_state(void)
{
    char error[1536] = "";

    const struct cluster_options *shared = options.shared.store.location ? &options.shared : NULL;

    if (!options.state_dir || front_open(options.state_dir, options.hook_deadline_s, shared,
                                         apply_xlator_options, error, sizeof error) == 0)
        return 0;
    return kilnd_start_fail(EXIT_FAILURE, "%s", error);
}

static int
attach_all(void)
{
    if (options.server)
        return attach_from_glusterd();
    if (!options.state_dir)
        return attach_bricks();
    front_attach(); /* a brick that does not start must not stop the others */
    return 0;
}

static char *
copy_or_null(const char *text, bool *is_short)
{
    char *copy = text ? strdup(text) : NULL;

    *is_short |= text && !copy;
    return copy;
}

static int
learn_of_process(void)
{
    struct graph *g = bricks_first();
    bool is_short = false;

    if (g && options.state_dir) { /* no brick's volfile counts for all */
        graph_unpin(g);
        return 0;
    }
    if (!g)
        return 0;
    const struct server_process_options o = server_process_options(g);
    first_brick = copy_or_null(g->name, &is_short);
    bind_address = copy_or_null(o.bind_address, &is_short);
    volfile_port = o.port;
    server_set_limits(g);
    graph_unpin(g);
    return is_short ? kilnd_start_fail(EXIT_FAILURE, "no memory") : 0;
}

static uint16_t
wanted_port(void)
{
    if (upgrade_brick_port())
        return upgrade_brick_port();
    return (uint16_t)(options.port >= 0 ? options.port : volfile_port >= 0 ? volfile_port : PORT_DEFAULT);
}

/* Writes a new file with a name that no other user can guess, so that a file or link in the folder is neither
 * followed nor written. */
static int
port_file_write(const char *path, uint16_t port)
{
    char temporary[4096], text[16];
    int len = snprintf(text, sizeof text, "%u\n", port);

    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    if (fd < 0)
        return -errno;
    errno = EIO;
    int err = write(fd, text, (size_t)len) == len && fchmod(fd, 0644) == 0 ? 0 : -errno;
    if (close(fd) < 0 && !err)
        err = -errno;
    if (!err && rename(temporary, path) < 0)
        err = -errno;
    if (err)
        unlink(temporary);
    return err;
}

/* The first brick's statedump-path, which may change while the brick serves. NULL: none. */
static char *
volfile_dump_dir(void)
{
    struct graph *g = bricks_first();
    bool is_short = false;

    if (!g)
        return NULL;
    read_section_begin();
    char *dir = copy_or_null(server_process_options(g).statedump_path, &is_short);
    read_section_end();
    graph_unpin(g);
    if (is_short)
        log_event(LOG_ERROR, NULL, "statedump-dir-name",
                  "no memory for the name of the folder for statedumps");
    return dir;
}

/* The bricks, then the mounts inside. */
static bool
each_graph(void *unused, void (*fn)(struct graph *g, void *arg), void *arg)
{
    (void)unused;
    return bricks_each(fn, arg) && inside_mounts_each(fn, arg);
}

/* Called by the main thread and by the verb statedump. `path` may be NULL. */
static int
write_statedump(char path[STATEDUMP_PATH_SIZE])
{
    char *of_volfile = options.dump_dir || options.state_dir ? NULL : volfile_dump_dir();
    const char *dir = options.dump_dir ? options.dump_dir : of_volfile;

    if (!dir)
        dir = options.state_dir ? FRONT_SOCKET_DIR : DUMP_DIR;
    int err = statedump_write(dir, first_brick ? first_brick : "kilnd", each_graph, NULL, path);
    free(of_volfile);
    return err;
}

static int
listen_for_clients(void)
{
    char error[512];
    uint16_t port;
    const struct server_listen listen = {
        .host = bind_address, .port = wanted_port(), .find_brick = bricks_find,
        .first_brick = options.state_dir ? NULL : bricks_first, .is_brick_changing = bricks_is_changing,
        .restore = upgrade_restore, .no_sequences = options.no_compound};
    int err = server_listen_start(&listen, &port, error, sizeof error);

    if (err == -EADDRINUSE && options.state_dir && options.port < 0) {
        /* clients ask for the port, so any port will do */
        const struct server_listen anywhere = {.port = 0,
                                               .find_brick = bricks_find,
                                               .is_brick_changing = bricks_is_changing,
                                               .no_sequences = options.no_compound};

        log_event(LOG_WARNING, NULL, "brick-port-taken", "%s: taking any", error);
        err = server_listen_start(&anywhere, &port, error, sizeof error);
    }
    if (err)
        return kilnd_start_fail(err == -EADDRINUSE ? EXIT_PORT_TAKEN : EXIT_FAILURE, "%s", error);
    log_event(LOG_INFO, NULL, "listening", "serving %u bricks on port %u", bricks_count(), port);
    if (options.port_path && (err = port_file_write(options.port_path, port)))
        return kilnd_start_fail(EXIT_FAILURE, "%s: %s", options.port_path, strerror(-err));
    uint16_t asked = (uint16_t)(options.volfile_port ? options.volfile_port : GLUSTERD_PORT);
    err = options.state_dir ? front_listen(asked, port, error, sizeof error) : 0;
    if (err)
        return kilnd_start_fail(err == -EADDRINUSE ? EXIT_PORT_TAKEN : EXIT_FAILURE, "%s", error);
    verbs_begin_process(port, write_statedump);
    brick_port = port;
    return 0;
}

static void
allow_upgrades(void)
{
    static const struct upgrade_mounts with_mounts = {.freeze = inside_mounts_freeze,
                                                      .thaw = inside_mounts_thaw,
                                                      .save = inside_mounts_save,
                                                      .keep_open = inside_mounts_keep_open};

    upgrade_started(brick_port, is_sandboxed, options.server != NULL,
                    options.takes_mounts ? &with_mounts : NULL,
                    !options.server && options.socket_path
                        ? "bricks are attached to this kilnd by its socket (-S), and no glusterd has their "
                          "volfiles: restart kilnd"
                        : NULL);
}

static int
start_pools(void)
{
    mem_pools_set_message_fn(daemon_pool_message);
    int err = graph_pools_init();
    err = err ? err : transport_pools_init();
    err = err ? err : rpc_server_pools_init();
    err = err || !options.state_dir ? err : pump_pools_init();
    return err ? kilnd_start_fail(EXIT_FAILURE, "memory pools: %s", strerror(-err)) : 0;
}

static int
listen_for_questions(void)
{
    char error[4608];

    return questions_listen(&options, error, sizeof error) ? kilnd_start_fail(EXIT_FAILURE, "%s", error) : 0;
}

/* Several kilnds may name the same socket in their configuration file: only a socket of this process's own
 * has mounts. */
static int
listen_for_mounts(void)
{
    char error[4608];

    if (!options.takes_mounts)
        return 0;
    if (!options.management_path || options.is_socket_shared)
        return kilnd_start_fail(EXIT_OPTION,
                                "--inside-mounts needs a --management-socket that no other kilnd has");
    return inside_mounts_begin(options.management_path, error, sizeof error)
               ? kilnd_start_fail(EXIT_FAILURE, "%s", error)
               : 0;
}

static int
start(void)
{
    int status = start_pools();

    if (status)
        return status;
    struct reason why = {""};
    int err = tls_management_begin(options.is_secure_given, options.is_secure, &why);
    if (err)
        return kilnd_start_fail(EXIT_FAILURE, "management TLS (%s): %s", TLS_SECURE_ACCESS, why.text);
    err = workers_start(&(struct worker_options){0});
    if (err)
        return kilnd_start_fail(EXIT_FAILURE, "workers: %s", strerror(-err));
    sandbox_watch();
    if ((status = begin()) || (status = open_state()) || (status = listen_for_questions()) ||
        (status = attach_all()) ||
        (status = learn_of_process()) || (status = listen_for_clients()) ||
        (status = listen_for_mounts()))
        return status;
    allow_upgrades();
    err = options.server ? management_sign_in() : 0;
    return err ? kilnd_start_fail(EXIT_FAILURE, "the brick could not be signed in: %s", strerror(-err)) : 0;
}

static void
stop(void)
{
    notify_stopping();
    inside_mounts_end();
    brick_ops_stop();
    management_sign_out();
    front_quiet();
    bool is_quiet = questions_stop();
    if ((has_begun && !bricks_end()) || !is_quiet)
        _exit(EXIT_FAILURE);
    front_stop();
    server_listen_stop();
    transport_close_all(); /* glusterd's connection, if there never was a listener for clients */
    management_stop();
    bricks_detach_all();
    front_close();
    brick_ops_free();
    spawner_end();
    sandbox_unwatch();
    workers_stop();
    sandbox_report();
    inside_mounts_free();
    rcu_barrier();
    mem_pools_fini();
}

/* --check of a volfile: prints a problem on standard output. False: a brick of this volfile would not
 * start. */
static bool
check_volfile(const char *path)
{
    char error[1024] = "";
    struct volfile *v = volfile_read(path, error, sizeof error);
    bool starts = v && apply_xlator_options(v, error, sizeof error) == 0 &&
                  graph_check(brick_type_find, v, false, error, sizeof error) == 0;

    if (!starts)
        printf("%s: does not start: %s\n", path, error);
    else if (graph_check(brick_type_find, v, true, error, sizeof error))
        printf("%s: %s: %s\n", path, options.is_strict ? "does not start" : "serves without a feature",
               error);
    if (starts && *error && options.is_strict)
        starts = false;
    volfile_free(v);
    return starts;
}

static int
check_volfiles(void)
{
    bool is_well = true;

    for (unsigned i = 0; i < options.volfile_count; i++)
        is_well &= check_volfile(options.volfiles[i]);
    options_free(&options);
    return is_well && fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Files that were given with -f. */
static void
reread_volfiles(void)
{
    for (unsigned i = 0; i < options.volfile_count; i++)
        volfiles_reread(options.volfiles[i], i < options.brick_name_count ? options.brick_names[i] : NULL,
                        apply_xlator_options);
}

static void
report_ready(void)
{
    char status[128];

    snprintf(status, sizeof status, "serving %u bricks", bricks_count());
    int err = notify_ready(status);
    if (err)
        log_event(LOG_ERROR, NULL, "notify-ready", "the service manager could not be told: %s",
                  strerror(-err));
}

/* Until SIGTERM or SIGINT, or until the last brick has failed. The exit status. */
static int
serve(const sigset_t *signals)
{
    for (;;) {
        int number = daemon_next_signal(signals), err;

        switch (number) {
        case SIGTERM:
        case SIGINT:
            log_event(LOG_INFO, NULL, "stopping", "signal %d: finishing what is running", number);
            return EXIT_SUCCESS;
        case SIGALRM:
            log_event(LOG_CRITICAL, NULL, "no-brick-left", "every brick has failed: ending");
            return EXIT_FAILURE;
        case SIGHUP:
            notify_reloading();
            if ((err = log_reopen()))
                log_event(LOG_ERROR, NULL, "log-reopen", "the log could not be reopened: %s", strerror(-err));
            else
                log_event(LOG_INFO, NULL, "log-reopened", "log reopened");
            management_refetch();
            reread_volfiles();
            inside_mounts_refetch();
            notify_reloaded();
            break;
        case SIGUSR1:
            (void)write_statedump(NULL); /* logs a failure */
            break;
        case UPGRADE_SIGNAL:
            upgrade_run();
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
    sigaddset(signals, UPGRADE_SIGNAL);
    sigaddset(signals, SIGALRM);
    daemon_block_signals(signals);
}

/* Problems with the command line that need no daemon to be seen. */
static int
prepare(void)
{
    enum log_level level = LOG_INFO;
    char missing[256];

    if (options.state_dir && !options.management_path)
        options.management_path = FRONT_SOCKET;
    if (options.log_level)
        (void)log_level_parse(options.log_level, &level); /* options_parse() has checked the word */
    log_set_level(level);
    if (!rights_are_enough(missing, sizeof missing))
        return kilnd_start_fail(EXIT_FAILURE,
                       "must be run as root, or with the capabilities that it lacks now: %s (bricks keep "
                       "trusted.* xattrs and the owners of files)",
                       missing);
    if (!options.log_path && !options.is_foreground) {
        options.log_path = DAEMON_LOG_DIR "/kilnd.log";
        daemon_make_log_dir(NULL);
    }
    int err = log_open(options.log_path);
    if (err)
        return kilnd_start_fail(EXIT_FAILURE, "%s: %s", options.log_path, strerror(-err));
    is_logging = true;
    return 0;
}

/* glusterd takes a process for the brick's if the process has the brick's folder open (management 5.4), and
 * looks as soon as the pid file is there: a process that is still fetching its volfile would get a twin. -1:
 * the storage will report the failure. */
static int
show_folder(void)
{
    bool is_of_glusterd = options.server && options.brick_name_count > 0;

    return is_of_glusterd ? open(options.brick_names[0], O_PATH | O_DIRECTORY | O_CLOEXEC) : -1;
}

/* In the spawner. */
static int
confine_programs(void *arg)
{
    return sandbox_enter(SANDBOX_PROGRAMS, options.sandbox, arg);
}

/* Upgrades are asked for over the management socket. */
static bool
may_upgrade(void)
{
    return options.state_dir || options.management_path;
}

/* Without a kernel that takes the filter kilnd serves, unless the operator has asked for the sandbox. */
static int
enter_sandbox(void)
{
    enum sandbox_role role = options.takes_mounts ? SANDBOX_INSIDE
                             : may_upgrade()      ? SANDBOX_VOLUMES
                                                  : SANDBOX_BRICKS;
    struct reason why = {""};
    int err = 0;

    if (options.sandbox == SANDBOX_OFF || upgrade_has_state()) /* an earlier program has entered */
        return 0;
    if (may_upgrade() && (err = spawner_begin(confine_programs, &why)))
        reason_set(&why, err, "the process that starts programs: %s", strerror(-err));
    err = err ? err : sandbox_enter(role, options.sandbox, &why);
    is_sandboxed = !err;
    if (err && options.is_sandbox_given)
        return kilnd_start_fail(EXIT_FAILURE, "--sandbox %s: %s", sandbox_mode_name(options.sandbox),
                                why.text);
    if (err)
        log_event(LOG_WARNING, NULL, "sandbox-missing", "kilnd serves without its sandbox: %s", why.text);
    return 0;
}

int
main(int argc, char **argv)
{
    sigset_t signals;

    hand_over_to_stock(argv);
    if (upgrade_begin(argc, argv))
        return EXIT_FAILURE;
    options_parse(&options, argc, argv);
    is_sandboxed = upgrade_was_sandboxed();
    if (options.is_upgrade_check)
        return upgrade_answer_check(options.takes_mounts);
    if (options.is_check)
        return check_volfiles();
    int status = prepare();
    if (status) {
        fprintf(stderr, "kilnd: %s\n", failure);
        return status;
    }
    umask(0);
    if ((status = notify_begin())) {
        fprintf(stderr, "kilnd: NOTIFY_SOCKET: %s\n", strerror(-status));
        return EXIT_FAILURE;
    }
    block_signals(&signals);
    int err = options.is_foreground || upgrade_has_state() ? 0 : daemonise(daemon_name);
    if (err) {
        fprintf(stderr, "kilnd: %s\n", strerror(-err));
        return EXIT_FAILURE;
    }
    log_event(LOG_INFO, NULL, "started", "kilnd %s, allocator %s, %u volfiles", PACKAGE_VERSION,
              KILN_ALLOCATOR, options.volfile_count);
    for (unsigned i = 0; i < options.ignored_count; i++)
        log_event(LOG_INFO, NULL, "option-ignored", "%s means nothing here: ignored", options.ignored[i]);
    daemon_raise_descriptor_limit();
    status = enter_sandbox();
    healer_set_sandbox(sandbox_mode_name(options.sandbox));
    rcu_register_thread();
    int folder = show_folder();
    if (!status && options.pid_path && (err = pidfile_write(options.pid_path)))
        status = kilnd_start_fail(EXIT_FAILURE, "%s: %s", options.pid_path,
                         err == -EAGAIN ? "held by a daemon that is running" : strerror(-err));
    if (!status)
        status = start();
    bool is_started = !status;
    if (folder >= 0)
        close(folder); /* the storage has the folder open */
    if (is_started) {
        http_routes_started();
        daemon_ready(daemon_name, 0, NULL);
        report_ready();
        status = serve(&signals);
    }
    stop();
    pidfile_close(options.server != NULL); /* glusterd removes its own */
    if (is_started && options.port_path)
        unlink(options.port_path);
    if (!is_started)
        daemon_ready(daemon_name, status, failure); /* last: a new start at once finds nothing in the way */
    log_event(LOG_INFO, NULL, "stopped", "exit status %d", status);
    rcu_unregister_thread();
    log_close();
    free(first_brick);
    free(bind_address);
    options_free(&options);
    return status;
}
