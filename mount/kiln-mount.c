/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln-mount: mounts volumes. This file has the start, the signals and the end of the process.
 *
 * The main thread waits for signals. Mounts start and end in their own threads (mount.h), and all other code
 * runs on workers. These threads set flags for the main thread, and wake the main thread by SIGALRM. */
#include <config.h>

#include <errno.h>
#include <limits.h>
#include <linux/magic.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <urcu.h>

#include "base/reason.h"
#include "daemon/daemon.h"
#include "daemon/sandbox.h"
#include "data/dict.h"
#include "event/worker.h"
#include "fs/inode.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "mount/helper.h"
#include "mount/inside.h"
#include "mount/mount.h"
#include "mount/place.h"
#include "mount/records.h"
#include "mount/shared.h"
#include "mount/upgrade.h"
#include "rpc/transport/tls-config.h"
#include "rpc/transport/transport.h"
#include "stack/coro-call.h"
#include "xlators/mount/fuse/fuse.h"

#define STOCK_LOG_DIR "/var/log/glusterfs"

static const char daemon_name[] = "kiln-mount";
static const char *dump_name = daemon_name; /* prefix of the names of statedumps */
/* Options of jemalloc, if jemalloc is the allocator. There is one arena only, because jemalloc 5.3 follows a
 * null pointer in a thread that gets no arena for lack of memory. */
extern const char *malloc_conf;
__attribute__((visibility("default"))) const char *malloc_conf = "narenas:1";
static struct mount_options options;
static char mountpoint[PATH_MAX], log_path[PATH_MAX + 64];
static char failure[2048 + 2 * PATH_MAX];
static bool is_sandboxed;
static bool is_logging; /* the log is open; before, prepare() prints the failure */
/* Events of the mounts. A thread that sets a flag sends SIGALRM to the main thread afterwards. */
static atomic_bool is_settled, is_empty, has_left, is_taken_over;
static int settled_status; /* written before is_settled */

static int __attribute__((format(printf, 2, 3)))
mount_start_fail(int status, const char *fmt, ...)
{
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(failure, sizeof failure, fmt, ap);
    va_end(ap);
    if (is_logging)
        log_event(LOG_CRITICAL, NULL, "mount-start-failed", "%s", failure);
    return status;
}

/* ---- events of mounts ------------------------------------------------------------------------ */

static void
wake_main_for(atomic_bool *what)
{
    if (!atomic_exchange(what, true))
        kill(getpid(), SIGALRM);
}

static void
settled(int status, const char *why, void *arg)
{
    (void)arg;
    settled_status = status;
    snprintf(failure, sizeof failure, "%s", why ? why : "");
    wake_main_for(&is_settled);
}

static void
empty(void)
{
    wake_main_for(&is_empty);
}

/* The first mount of a shared process has failed, and other mounts keep the process. */
static void
left(const char *which, bool is_last)
{
    if (!is_last && strcmp(which, mountpoint) == 0)
        wake_main_for(&has_left);
}

/* All mounts of the earlier program serve, or are lost. */
static void
restored(unsigned served, unsigned failed)
{
    mount_upgrade_done(served, failed);
    wake_main_for(&is_taken_over);
}

/* ---- records of shared mounts ---------------------------------------------------------------- */

static void
save_record(const struct mount_options *o, const char *which)
{
    int err = record_save(RECORDS_DIR, o, which);

    if (err) /* the mount works, and does not come back if this process is killed */
        log_event(LOG_WARNING, NULL, "record-save", "%s: no record of the mount: %s", which, strerror(-err));
}

static void
remove_record(const char *which)
{
    record_remove(RECORDS_DIR, which);
}

/* Mounts a recorded mount of a killed process again. */
static void
restore_mount(const struct mount_options *recorded, const char *which, char *packet)
{
    struct mount_options o = *recorded;

    o.is_restored = true;
    int err = mounts_add(&o, which, packet, NULL, NULL);
    if (!err) {
        log_event(LOG_INFO, NULL, "mount-restored", "%s: mounting again after the process before was killed",
                  which);
        return;
    }
    if (err != -EEXIST) /* -EEXIST: the record is of the first mount of this process */
        log_event(LOG_ERROR, NULL, "mount-not-restored", "%s is not mounted again: %s", which,
                  strerror(-err));
    free(packet);
}

/* ---- up and down ----------------------------------------------------------------------------- */

static int
start_pools(void)
{
    int err = options.pools_mode ? mem_pools_set_mode(options.pools_mode) : 0;

    if (err == -EINVAL)
        return mount_start_fail(EXIT_OPTION, "--pools %s: expected on, off, poison or trace:K",
                                options.pools_mode);
    mem_pools_set_message_fn(daemon_pool_message);
    static int (*const inits[])(void) = {mem_pools_init,       arena_pools_init, iobuf_pools_init,
                                         dict_pools_init,      stack_pools_init, fs_pools_init,
                                         transport_pools_init, coro_stacks_init};
    for (size_t i = 0; i < sizeof inits / sizeof inits[0] && !err; i++)
        err = inits[i]();
    return err ? mount_start_fail(EXIT_FAILURE, "memory pools: %s", strerror(-err)) : 0;
}

/* If the kernel refuses the filter, the mount works without a sandbox, unless the user has asked for one. */
static int
enter_sandbox(void)
{
    struct reason why = {""};

    if (mount_upgrade_has_state()) {
        is_sandboxed = mount_upgrade_was_sandboxed();
        return 0;
    }
    if (!sandbox_enter(SANDBOX_MOUNT, options.sandbox, &why)) {
        is_sandboxed = options.sandbox == SANDBOX_ON;
        return 0;
    }
    if (options.is_sandbox_given)
        return mount_start_fail(EXIT_FAILURE, "--sandbox %s: %s", sandbox_mode_name(options.sandbox),
                                why.text);
    log_event(LOG_WARNING, NULL, "mount-sandbox-missing", "kiln-mount works without its sandbox: %s",
              why.text);
    return 0;
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
        return mount_start_fail(EXIT_FAILURE, "management TLS (%s): %s", TLS_SECURE_ACCESS, why.text);
    err = workers_start(&(struct worker_options){0});
    if (err)
        return mount_start_fail(EXIT_FAILURE, "workers: %s", strerror(-err));
    sandbox_watch();
    struct mounts_hooks hooks = {.empty = empty, .left = left};
    if (options.is_shared) {
        hooks.entering = save_record;
        hooks.leaving = remove_record;
    }
    mounts_begin(&hooks);
    mounts_when_restored(restored);
    if (mount_upgrade_has_state()) /* a service without mounts is at rest */
        is_taken_over = mount_upgrade_restore() == 0;
    else
        err = options.is_service ? 0 : mounts_add(&options, mountpoint, NULL, settled, NULL);
    if (err)
        return mount_start_fail(EXIT_FAILURE, "%s: %s", mountpoint, strerror(-err));
    if (!options.is_shared)
        return 0;
    if (!mount_upgrade_has_state())
        records_each(RECORDS_DIR, restore_mount);
    if (!(err = shared_listen(SHARED_SOCKET)))
        return 0;
    (void)mounts_leave(); /* stop() waits for the mounts */
    return mount_start_fail(EXIT_FAILURE, "%s: %s", SHARED_SOCKET, strerror(-err));
}

/* Ends the process's parts after the last mount. */
static void
stop(void)
{
    if (options.is_shared)
        shared_end(SHARED_SOCKET);
    mounts_end();
    fuse_process_end();
    transport_close_all();
    sandbox_unwatch();
    workers_stop();
    sandbox_report();
    coro_stacks_end();
    rcu_barrier();
    mem_pools_fini();
}

static bool
each_mounted_graph(void *unused, void (*fn)(struct graph *g, void *arg), void *arg)
{
    (void)unused;
    return mounts_each_graph(fn, arg);
}

static void
act_on(int number)
{
    int err;

    switch (number) {
    case SIGTERM:
    case SIGINT:
        log_event(LOG_INFO, NULL, "mount-stopping", "signal %d: unmounting", number);
        if (!mounts_leave())
            empty();
        break;
    case SIGHUP:
        if ((err = log_reopen()))
            log_event(LOG_ERROR, NULL, "mount-log-reopen", "the log could not be reopened: %s",
                      strerror(-err));
        mounts_refetch();
        break;
    case MOUNT_UPGRADE_SIGNAL:
        mount_upgrade_run();
        break;
    case SIGUSR1:
        /* statedump_write() logs errors. */
        (void)statedump_write(options.dump_dir ? options.dump_dir : "/var/run/gluster", dump_name,
                              each_mounted_graph, NULL, NULL);
        break;
    default:
        break;
    }
}

/* Handles signals until the last mount is gone. Reports to the parent process as soon as the first mount can
 * be used, or has failed while other mounts keep this process. Returns the exit status. */
static int
serve(const sigset_t *signals)
{
    bool follows = mount_upgrade_has_state(), is_ready = options.is_service || follows, is_allowed = false;

    while (!atomic_load(&is_empty)) {
        if (!is_allowed && is_ready && (!follows || atomic_load(&is_taken_over))) {
            mount_upgrade_allow(is_sandboxed, options.is_shared);
            is_allowed = true;
        }
        act_on(daemon_next_signal(signals));
        if (!is_ready && atomic_load(&is_settled) && (!settled_status || atomic_load(&has_left))) {
            daemon_ready(daemon_name, settled_status, settled_status ? failure : NULL);
            is_ready = true;
        }
    }
    return is_ready ? EXIT_SUCCESS : settled_status;
}

static void
mount_block_signals(sigset_t *signals)
{
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGALRM, MOUNT_UPGRADE_SIGNAL};

    sigemptyset(signals);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaddset(signals, numbers[i]);
    daemon_block_signals(signals);
}

/* ---- the program ----------------------------------------------------------------------------- */

/* Returns the log folder of the stock client if that folder exists, because the stock packages rotate the
 * logs in that folder. */
static const char *
log_dir(void)
{
    if (access(STOCK_LOG_DIR, F_OK) == 0)
        return STOCK_LOG_DIR;
    daemon_make_log_dir("mount");
    return DAEMON_LOG_DIR "/mount";
}

/* Returns the log's path: mnt-data.log for /mnt/data, as the stock client does, or kiln-mount.log for a
 * shared process. */
static const char *
default_log(void)
{
    int n = snprintf(log_path, sizeof log_path, "%s/", log_dir());
    char *name = log_path + n;
    const char *mounted = mountpoint[1] ? mountpoint + 1 : "root";

    snprintf(name, sizeof log_path - (size_t)n, "%s.log", options.is_shared ? "kiln-mount" : mounted);
    for (; *name; name++)
        *name = *name == '/' ? '-' : *name;
    return log_path;
}

/* Tells whether an automounter waits for this mount. Until the mount is there, only the automounter's process
 * group may use the place, so no other process of kiln-mount could mount there. */
static bool
is_automount(const char *place)
{
    struct statfs fs;

    return statfs(place, &fs) == 0 && fs.f_type == AUTOFS_SUPER_MAGIC;
}

/* Makes the mount point absolute. Refuses a mount point with a live mount of a volume; the mount replaces a
 * dead mount. */
static int
check_mountpoint(void)
{
    if (!realpath(options.mountpoint, mountpoint))
        return mount_start_fail(EXIT_FAILURE, "mount point %s: %s%s%s", options.mountpoint, strerror(errno),
                                errno == ENOENT ? "; try: mkdir -p " : "",
                                errno == ENOENT ? options.mountpoint : "");
    if (place_look(mountpoint) == PLACE_LIVE)
        return mount_start_fail(EXIT_MOUNTED, MOUNTED_ALREADY, mountpoint, mountpoint);
    return 0;
}

static int
take_log_level(void)
{
    enum log_level level = LOG_INFO;

    if (options.log_level && log_level_parse(options.log_level, &level))
        return mount_start_fail(EXIT_OPTION,
                       "--log-level %s: expected TRACE, DEBUG, INFO, WARNING, ERROR, CRITICAL or NONE",
                       options.log_level);
    log_set_level(level);
    return 0;
}

/* Checks the command line as far as possible without a daemon. Makes paths absolute, because the daemon
 * changes to the root folder. */
static int
check_options(void)
{
    const char *given = options.volfile;
    int status = take_log_level();

    if (status)
        return status;
    if (geteuid() != 0)
        return mount_start_fail(EXIT_FAILURE, "must be run as root: it mounts");
    status = options.is_service ? 0 : check_mountpoint();
    if (status)
        return status;
    if (options.volfile && !(options.volfile = realpath(options.volfile, NULL)))
        return strchr(given, '/')
                   ? mount_start_fail(EXIT_FAILURE, "%s: %s", given, strerror(errno))
                   : mount_start_fail(EXIT_FAILURE, "source %s: expected HOST:/%s, or the path of a volfile",
                                      given, given);
    if (!options.is_service && is_automount(mountpoint))
        options.is_shared = false;
    return 0;
}

static int
open_log(void)
{
    if (!options.log_path && !options.is_foreground)
        options.log_path = default_log();
    int err = log_open(options.log_path);
    if (err)
        return mount_start_fail(EXIT_FAILURE, "%s: %s", options.log_path, strerror(-err));
    is_logging = true;
    return 0;
}

/* Asks the shared process, or has systemd start the shared process and asks then, or becomes the shared
 * process. A process with a log or a pid file of its own, or in the foreground, does not ask systemd. */
static enum shared_outcome
find_shared(int *status)
{
    enum shared_outcome outcome =
        shared_join(SHARED_SOCKET, &options, mountpoint, status, failure, sizeof failure);

    if (outcome == SHARED_NONE && !options.log_path && !options.pid_path && !options.is_foreground &&
        shared_start_service())
        return shared_await(SHARED_SOCKET, &options, mountpoint, status, failure, sizeof failure);
    if (outcome != SHARED_NONE)
        return outcome;
    return shared_find(SHARED_SOCKET, &options, mountpoint, status, failure, sizeof failure);
}

/* Returns true if this process ends with *status. */
static bool
become_service(int *status)
{
    int err = shared_become(SHARED_SOCKET);

    *status = err && err != -EWOULDBLOCK
                  ? mount_start_fail(EXIT_FAILURE, "%s.lock: %s", SHARED_SOCKET, strerror(-err))
                  : 0;
    if (err == -EWOULDBLOCK)
        log_event(LOG_INFO, NULL, "shared-there",
                  "another process has the shared mounts already: nothing to do");
    return err != 0;
}

/* Has kilnd make the mount. Returns the exit status. */
static int
mount_inside(void)
{
    char path[PATH_MAX];
    int status = EXIT_FAILURE;

    snprintf(path, sizeof path, "%s%s", options.inside, INSIDE_SOCKET_ENDING);
    switch (shared_join(path, &options, mountpoint, &status, failure, sizeof failure)) {
    case SHARED_JOINED:
        return status;
    case SHARED_ELSEWHERE:
        return mount_start_fail(EXIT_FAILURE,
                       "--inside: kilnd at %s has mounts of its own (a container, or options such as "
                       "ProtectSystem= and PrivateTmp= of its service), and nothing else would see what it "
                       "mounts",
                       options.inside);
    case SHARED_NONE:
        return mount_start_fail(EXIT_FAILURE,
                       "--inside: no kilnd takes mounts at %s; start kilnd with --inside-mounts, or mount "
                       "without inside",
                       path);
    default:
        return EXIT_FAILURE;
    }
}

/* Returns true if this process ends with *status: another process has made the mount, has failed to make the
 * mount, or is the service already. */
static bool
is_done_by_another(int *status)
{
    if (options.is_service)
        return become_service(status);
    if (options.inside) {
        *status = mount_inside();
        return true;
    }
    enum shared_outcome outcome = options.is_shared ? find_shared(status) : SHARED_NONE;
    if (outcome == SHARED_FAILED)
        *status = EXIT_FAILURE;
    if (outcome == SHARED_ELSEWHERE)
        options.is_shared = false;
    return outcome == SHARED_JOINED || outcome == SHARED_FAILED;
}

/* Does the work before the start of the daemon. Returns true if this process ends with *status. */
static bool
prepare(int *status)
{
    bool follows = mount_upgrade_has_state();

    *status = follows ? take_log_level() : check_options();
    bool is_done = *status || (!follows && is_done_by_another(status));

    if (!is_done)
        is_done = (*status = open_log()) != 0;
    if (*status)
        fprintf(stderr, "%s: %s\n", daemon_name, failure);
    return is_done;
}

/* Translates mount(8)'s command line. The new words stay as long as the process. Returns true if the shared
 * process may have the mount. */
static bool
be_helper(int *argc, char ***argv)
{
    static struct helper helper;
    int status = helper_translate(&helper, *argc, *argv);

    if (status)
        fprintf(stderr, "mount.kiln: %s\n", helper.error);
    if (!status && helper.is_help)
        printf("%s\nOptions: kiln-mount(8)\n", HELPER_USAGE);
    if (status || helper.is_fake || helper.is_help)
        exit(status);
    *argc = helper.count;
    *argv = helper.words;
    return !helper.is_alone;
}

/* Runs the daemon. Returns the exit status. */
static int
run(const sigset_t *signals)
{
    int status, err;

    if (options.is_service)
        log_event(LOG_INFO, NULL, "mount-service-started", "kiln-mount %s: shared mounts", PACKAGE_VERSION);
    else
        log_event(LOG_INFO, NULL, "mount-started", "kiln-mount %s: %s on %s", PACKAGE_VERSION,
                  options.source ? options.source : options.volfile, mountpoint);
    daemon_raise_descriptor_limit();
    status = enter_sandbox();
    rcu_register_thread();
    if (!status && options.pid_path && (err = pidfile_write(options.pid_path)))
        status = mount_start_fail(EXIT_FAILURE, "%s: %s", options.pid_path,
                         err == -EAGAIN ? "held by a process that is running" : strerror(-err));
    if (!status)
        status = start();
    if (!status)
        status = serve(signals);
    stop();
    pidfile_close(false);
    if (status) /* last, so that the user's next attempt finds nothing in the way */
        daemon_ready(daemon_name, status, failure);
    log_event(LOG_INFO, NULL, "mount-stopped", "exit status %d", status);
    rcu_unregister_thread();
    return status;
}

/* Scripts look for processes by name. A process that stands in for the stock client has the stock client's
 * name, and writes statedumps under the stock client's names. */
static void
name_process_after(const char *program)
{
    const char *slash = strrchr(program, '/'), *name = slash ? slash + 1 : program;

    prctl(PR_SET_NAME, name);
    if (strcmp(name, "glusterfs") == 0)
        dump_name = "glusterdump";
}

int
main(int argc, char **argv)
{
    name_process_after(argv[0]);
    if (mount_upgrade_begin(argc, argv))
        return EXIT_FAILURE;
    bool is_helper = helper_is_wanted(argv[0]), joins = is_helper && be_helper(&argc, &argv);
    sigset_t signals;
    int status;

    log_set_ident(daemon_name);
    mount_options_parse(&options, argc, argv, is_helper ? EXIT_FAILURE : EXIT_OPTION);
    options.is_shared |= joins;
    if (options.is_upgrade_check)
        return mount_upgrade_answer_check();
    if (mount_upgrade_has_state())
        options.is_shared = mount_upgrade_was_shared();
    if (prepare(&status))
        return status;
    umask(0022); /* for files of this process; files of the mount get their modes from the bricks */
    mount_block_signals(&signals);
    int err = options.is_foreground || mount_upgrade_has_state() ? 0 : daemonise(daemon_name);
    if (err) {
        fprintf(stderr, "%s: %s\n", daemon_name, strerror(-err));
        return EXIT_FAILURE;
    }
    status = run(&signals);
    log_close();
    return status;
}
