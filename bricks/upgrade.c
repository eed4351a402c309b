/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/upgrade.h"

#include <config.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own-program.h"
#include "base/parcel.h"
#include "base/thread.h"
#include "bricks/brick-ops.h"
#include "bricks/bricks.h"
#include "bricks/management.h"
#include "daemon/notify.h"
#include "daemon/sandbox.h"
#include "event/spawner.h"
#include "event/timer.h"
#include "graph/graph.h"
#include "log/log.h"
#include "rpc/transport/saved.h"
#include "xlators/protocol/server/server.h"
#include "xlators/storage/posix/saved.h"

#define STATE_VARIABLE "KILN_SAVED_STATE" /* the number of the descriptor */
#define MAGIC 0x4b534156u
enum { STATE_SANDBOXED = 1, STATE_MANAGED = 2, STATE_MOUNTS = 4 }; /* flags of the state */
enum { ANSWER_MS = 50, DEADLINE_MS = 3000, RETRY_MS = 5, CHECK_MS = 20000 };

static char **arguments;
static int argument_count;
static struct parcel state; /* of the earlier program */
static bool has_state;
static uint64_t frozen_ns;
static unsigned past_programs; /* of this process */
static bool is_sandboxed, is_managed, has_mounts;
static uint16_t port;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the following */
static char next_program[PATH_MAX];
static const char *refusal = "kilnd is still starting", *never; /* `never`: NULL, or why not even later */
static bool is_serving;
static const struct upgrade_mounts *mounts; /* NULL: none; set before upgrades are allowed */
static struct upgrade_figures figures;
static struct timer soon; /* initialised before upgrades are allowed */

/* ---- the new program's side ------------------------------------------------------------------ */

/* The descriptors that the earlier program has left open. Restoring marks its own for closing on exec. */
static struct parcel inherited;

static void
note_inherited(void)
{
    DIR *fds = opendir("/proc/self/fd");
    struct dirent *e;

    while (fds && (e = readdir(fds))) {
        int fd = atoi(e->d_name);

        if (fd > STDERR_FILENO && fcntl(fd, F_GETFD) == 0)
            parcel_put_u32(&inherited, (uint32_t)fd);
    }
    if (fds)
        closedir(fds);
}

/* Closes the connections of bricks that serve no more, so that the clients see the end. */
static void
drop_inherited(void)
{
    while (inherited.at < inherited.used) {
        int fd = (int)parcel_get_u32(&inherited);

        if (fcntl(fd, F_GETFD) == 0)
            close(fd);
    }
    parcel_free(&inherited);
}

/* Reaps the children of the earlier program: each child ends because its pipes have ended. */
static void *
reap(void *arg)
{
    struct parcel *children = arg;

    while (!children->is_broken && children->at < children->used)
        while (waitpid((pid_t)parcel_get_u32(children), NULL, 0) < 0 && errno == EINTR)
            ;
    parcel_free(children);
    free(children);
    return NULL;
}

static void
reap_later(const void *pids, size_t bytes)
{
    struct parcel *children = bytes ? calloc(1, sizeof *children) : NULL;

    if (!children)
        return;
    parcel_put_raw(children, pids, bytes);
    if (thread_start(reap, children) == 0)
        return;
    parcel_free(children);
    free(children);
}

static unsigned
format_of(bool takes_mounts)
{
    return takes_mounts ? UPGRADE_FORMAT_MOUNTS : UPGRADE_FORMAT;
}

static int
read_state(int fd)
{
    int err = parcel_read(&state, fd);
    size_t bytes;

    close(fd);
    if (err)
        return err;
    if (parcel_get_u32(&state) != MAGIC)
        return -EBADMSG;
    uint32_t format = parcel_get_u32(&state);
    frozen_ns = parcel_get_u64(&state);
    past_programs = parcel_get_u32(&state);
    port = (uint16_t)parcel_get_u32(&state);
    uint32_t flags = parcel_get_u32(&state);

    is_sandboxed = flags & STATE_SANDBOXED;
    is_managed = flags & STATE_MANAGED;
    has_mounts = flags & STATE_MOUNTS;
    if (format != format_of(has_mounts))
        return -EBADMSG;
    int socket = (int)parcel_get_u32(&state);
    pid_t pid = (pid_t)parcel_get_u32(&state);
    const void *pids = parcel_get_bytes(&state, &bytes);

    if (socket >= 0 && fcntl(socket, F_SETFD, FD_CLOEXEC) == 0)
        spawner_take_over(socket, pid);
    reap_later(pids, bytes);
    listeners_restore(&state);
    if (is_managed)
        management_restore(&state);
    return state.is_broken ? -EBADMSG : 0;
}

/* exec(2) has named the process after the program's file; under glusterd a link has another name, by which
 * scripts look for bricks. */
static void
name_process(const char *path)
{
    const char *slash = strrchr(path, '/');
    char name[16]; /* the kernel's limit */

    snprintf(name, sizeof name, "%.15s", slash ? slash + 1 : path);
    (void)pthread_setname_np(pthread_self(), name);
}

int
upgrade_begin(int argc, char **argv)
{
    const char *number = getenv(STATE_VARIABLE);

    arguments = argv;
    argument_count = argc;
    if (!number)
        return 0;
    int err = read_state(atoi(number));

    note_inherited();
    name_process(argv[0]);
    unsetenv(STATE_VARIABLE);
    has_state = true;
    if (!err && is_sandboxed)
        err = sandbox_take_over();
    posix_keep_unlinked(!err);
    if (err)
        fprintf(stderr, "kilnd: the state of the earlier program cannot be read: %s\n", strerror(-err));
    return err;
}

int
upgrade_answer_check(bool takes_mounts)
{
    printf("kiln-saved-state %u\n", format_of(takes_mounts));
    return fflush(stdout) ? EXIT_FAILURE : EXIT_SUCCESS;
}

bool
upgrade_has_state(void)
{
    return has_state;
}

bool
upgrade_was_sandboxed(void)
{
    return is_sandboxed;
}

uint16_t
upgrade_brick_port(void)
{
    return port;
}

static void
restore_brick(struct server_restored *sum)
{
    const char *name = parcel_get_text(&state);
    size_t count;
    struct parcel own = {.bytes = (char *)(uintptr_t)parcel_get_bytes(&state, &count)};
    struct graph *g = name ? bricks_find(name) : NULL;

    own.used = own.room = count;
    if (g)
        server_restore_brick(g, &own, sum);
    else
        log_event(LOG_ERROR, NULL, "restore-brick-gone",
                  "brick %s does not serve any more: the brick's clients are cut off", name ? name : "?");
    if (g)
        graph_unpin(g);
}

void
upgrade_restore(void)
{
    struct server_restored sum = {0};

    if (!has_state)
        return;
    while (parcel_get_u32(&state))
        restore_brick(&sum);
    if (is_managed)
        brick_ops_restore(&state);
    posix_keep_unlinked(false);
    pthread_mutex_lock(&lock);
    figures.connections = sum.connections;
    figures.files = sum.files;
    figures.lost_clients = sum.lost_clients;
    figures.stall_ms = (unsigned)((clock_mono_ns() - frozen_ns) / 1000000);
    pthread_mutex_unlock(&lock);
    if (!has_mounts) {
        parcel_free(&state);
        drop_inherited();
    }
    log_event(LOG_INFO, NULL, "upgraded",
              "kilnd %s goes on with %u connections and %u open files after %u ms; %u clients are cut off",
              PACKAGE_VERSION, sum.connections, sum.files, figures.stall_ms, sum.lost_clients);
}

unsigned
upgrade_programs(void)
{
    return past_programs;
}

struct parcel *
upgrade_state_of_mounts(void)
{
    return has_mounts ? &state : NULL;
}

/* The program serves, and so do the mounts. `lock` is held. */
static void
allow_upgrades_locked(void)
{
    refusal = is_serving && !has_mounts ? never : "kilnd is still starting";
    if (is_serving && !has_mounts)
        figures.count = past_programs; /* now `kiln upgrade` knows that this program serves */
}

void
upgrade_mounts_done(unsigned served, unsigned failed)
{
    drop_inherited();
    pthread_mutex_lock(&lock);
    has_mounts = false;
    figures.mounts = served;
    figures.lost_mounts = failed;
    figures.stall_ms = (unsigned)((clock_mono_ns() - frozen_ns) / 1000000);
    unsigned ms = figures.stall_ms;

    allow_upgrades_locked();
    pthread_mutex_unlock(&lock);
    log_event(failed ? LOG_ERROR : LOG_INFO, NULL, "upgraded-mounts",
              "%u mounts inside of kilnd go on after %u ms; %u mounts are lost", served, ms, failed);
}

/* Later than the answer to `kiln upgrade`, which would be lost with the old program. */
static void
signal_due(struct timer *t)
{
    (void)t;
    kill(getpid(), UPGRADE_SIGNAL);
}

void
upgrade_started(uint16_t brick_port, bool has_sandbox, bool has_glusterd,
                const struct upgrade_mounts *with_mounts, const char *why_not)
{
    listeners_drop_rest();
    timer_init(&soon, signal_due);
    pthread_mutex_lock(&lock);
    port = brick_port;
    is_sandboxed = has_sandbox;
    is_managed = has_glusterd;
    mounts = with_mounts;
    is_serving = true;
    never = why_not;
    allow_upgrades_locked();
    pthread_mutex_unlock(&lock);
}

void
upgrade_figures(struct upgrade_figures *out)
{
    pthread_mutex_lock(&lock);
    *out = figures;
    pthread_mutex_unlock(&lock);
}

/* ---- the check of the new program ------------------------------------------------------------ */

/* Reads the output of the child until its end, or until the child has printed nothing for CHECK_MS. */
static void
read_answer(int fd, char *to, size_t size)
{
    struct pollfd p = {.fd = fd, .events = POLLIN};
    size_t have = 0;
    ssize_t n;

    while (have + 1 < size && poll(&p, 1, CHECK_MS) > 0 && (n = read(fd, to + have, size - have - 1)) > 0)
        have += (size_t)n;
    to[have] = '\0';
    to[strcspn(to, "\n")] = '\0';
}

static int
spawn_unconfined(const char *program, char *const argv[], const int fds[3], pid_t *pid)
{
    posix_spawn_file_actions_t actions;
    extern char **environ;

    posix_spawn_file_actions_init(&actions);
    for (int i = 0; i < 3; i++)
        posix_spawn_file_actions_adddup2(&actions, fds[i], i);
    int err = posix_spawn(pid, program, &actions, NULL, argv, environ);

    posix_spawn_file_actions_destroy(&actions);
    return -err;
}

static int
spawn_check(const char *program, int out, pid_t *pid)
{
    char **argv = calloc((size_t)argument_count + 2, sizeof *argv);
    int null = open("/dev/null", O_RDONLY | O_CLOEXEC), err = argv && null >= 0 ? 0 : -ENOMEM;
    const int fds[3] = {null, out, out};

    for (int i = 0; i < argument_count && argv; i++)
        argv[i] = arguments[i];
    if (!err) {
        argv[argument_count] = (char[]){"--upgrade-check"};
        err = spawner_is_there() ? spawner_start(program, argv, NULL, fds, pid)
                                 : spawn_unconfined(program, argv, fds, pid);
    }
    if (null >= 0)
        close(null);
    free(argv);
    return err;
}

int
upgrade_check_program(const char *program, char *error, size_t error_size)
{
    char answer[512] = "";
    int ends[2], status = 0, err;
    unsigned format;
    pid_t pid;

    if (pipe2(ends, O_CLOEXEC))
        return snprintf(error, error_size, "%s", strerror(errno)), -errno;
    err = spawn_check(program, ends[1], &pid);
    close(ends[1]);
    if (!err) {
        read_answer(ends[0], answer, sizeof answer);
        kill(pid, SIGKILL); /* the program has ended, or hangs */
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
            ;
    }
    close(ends[0]);
    if (err) {
        snprintf(error, error_size, "%s cannot be run: %s; expected the absolute path of a kilnd", program,
                 strerror(-err));
        return err;
    }
    if (sscanf(answer, "kiln-saved-state %u", &format) != 1) {
        snprintf(error, error_size, "%s does not start as kilnd: %.300s", program,
                 *answer ? answer : "no answer");
        return -EINVAL;
    }
    if (format != format_of(mounts != NULL)) {
        snprintf(error, error_size, "%s has another format of saved state (%u, this kilnd: %u)", program,
                 format, format_of(mounts != NULL));
        return -EOPNOTSUPP;
    }
    return 0;
}

int
upgrade_ask(const char *program, char *error, size_t error_size)
{
    char path[PATH_MAX];
    int err = program ? 0 : own_program(path);

    if (program && snprintf(path, sizeof path, "%s", program) >= (int)sizeof path)
        err = -ENAMETOOLONG;
    pthread_mutex_lock(&lock);
    const char *why_not = refusal;

    pthread_mutex_unlock(&lock);
    if (why_not) {
        snprintf(error, error_size, "%s", why_not);
        return -EAGAIN;
    }
    if (err) {
        snprintf(error, error_size, "the program's file: %s", strerror(-err));
        return err;
    }
    if ((err = management_collect())) {
        snprintf(error, error_size, "glusterd, which has the volfiles of the bricks, does not answer: %s",
                 strerror(-err));
        return err;
    }
    if ((err = upgrade_check_program(path, error, error_size)))
        return err;
    pthread_mutex_lock(&lock);
    memcpy(next_program, path, sizeof next_program);
    figures.error[0] = '\0';
    pthread_mutex_unlock(&lock);
    log_event(LOG_INFO, NULL, "upgrade-asked", "kilnd is going to run %s", path);
    timer_start(&soon, ANSWER_MS);
    return 0;
}

/* ---- the old program's side ------------------------------------------------------------------ */

static void __attribute__((format(printf, 1, 2)))
upgrade_failed(const char *format, ...)
{
    char error[sizeof figures.error];
    va_list ap;

    va_start(ap, format);
    vsnprintf(error, sizeof error, format, ap);
    va_end(ap);
    log_event(LOG_ERROR, NULL, "upgrade-failed", "%s: this kilnd, %s, serves on", error, PACKAGE_VERSION);
    pthread_mutex_lock(&lock);
    memcpy(figures.error, error, sizeof error);
    pthread_mutex_unlock(&lock);
}

static void
count_parked(struct graph *g, void *arg)
{
    *(unsigned *)arg += graph_parked_count(g);
}

static unsigned
parked_calls(void)
{
    unsigned count = 0;

    return bricks_each(count_parked, &count) ? count : UINT_MAX;
}

/* The spawner, and the other processes that kilnd has started and that still run. */
static void
save_children(struct parcel *to)
{
    DIR *threads = opendir("/proc/self/task");
    pid_t spawner;
    int socket = spawner_socket_of(&spawner);
    struct parcel pids = {0};
    struct dirent *e;

    while (threads && (e = readdir(threads))) {
        char path[64];
        unsigned pid;

        snprintf(path, sizeof path, "/proc/self/task/%.16s/children", e->d_name);
        FILE *f = *e->d_name == '.' ? NULL : fopen(path, "re");

        while (f && fscanf(f, "%u", &pid) == 1)
            if ((pid_t)pid != spawner)
                parcel_put_u32(&pids, pid);
        if (f)
            fclose(f);
    }
    if (threads)
        closedir(threads);
    parcel_put_u32(to, (uint32_t)socket);
    parcel_put_u32(to, (uint32_t)spawner);
    parcel_put_bytes(to, pids.bytes, pids.used);
    parcel_free(&pids);
}

struct save_bricks {
    struct parcel *to;
    int err;
};

static void
save_brick(struct graph *g, void *arg)
{
    struct save_bricks *s = arg;
    struct parcel own = {0};

    if (s->err)
        return;
    s->err = server_save_brick(g, &own);
    parcel_put_u32(s->to, 1);
    parcel_put_text(s->to, g->name);
    parcel_put_bytes(s->to, own.bytes, own.used);
    parcel_free(&own);
}

static int
save_state(struct parcel *to)
{
    struct save_bricks s = {.to = to};
    struct bricks_states states;

    bricks_states(&states);
    if (states.attaching || states.detaching)
        return -EAGAIN;
    parcel_put_u32(to, MAGIC);
    parcel_put_u32(to, format_of(mounts != NULL));
    parcel_put_u64(to, frozen_ns);
    parcel_put_u32(to, past_programs + 1);
    parcel_put_u32(to, port);
    parcel_put_u32(to, (is_sandboxed ? STATE_SANDBOXED : 0) | (is_managed ? STATE_MANAGED : 0) |
                           (mounts ? STATE_MOUNTS : 0));
    save_children(to);
    listeners_save(to);
    if (is_managed)
        management_save(to);
    if (!bricks_each(save_brick, &s))
        return -ENOMEM;
    parcel_put_u32(to, 0);
    if (is_managed)
        brick_ops_save(to);
    if (!s.err && mounts)
        s.err = mounts->save(to);
    return s.err ? s.err : to->is_broken ? -ENOMEM : 0;
}

/* Freezes and saves. 0 with a frozen transport, or -errno. */
static int
freeze_and_save(struct parcel *to)
{
    const struct timespec pause = {.tv_nsec = RETRY_MS * 1000000};
    uint64_t begun = clock_mono_ns(), deadline = begun + DEADLINE_MS * 1000000ull;
    int err = -EAGAIN;

    while (err == -EAGAIN && clock_mono_ns() < deadline) {
        uint64_t now = clock_mono_ns();

        if (!mounts)
            frozen_ns = now; /* else the mounts rest for longer */
        err = transport_freeze((unsigned)((deadline - now) / 1000000), parked_calls);
        if (err)
            return err;
        err = save_state(to);
        if (!err)
            return 0;
        transport_thaw();
        parcel_free(to);
        nanosleep(&pause, NULL);
    }
    return err;
}

/* Lets the spawner's socket survive exec(2), or not. */
static int
keep_spawner(bool keeps)
{
    pid_t pid;
    int socket = spawner_socket_of(&pid);

    return socket >= 0 && fcntl(socket, F_SETFD, keeps ? 0 : FD_CLOEXEC) ? -errno : 0;
}

/* Returns only after a failure: -errno. */
static int
run_next(const char *program, const struct parcel *saved)
{
    char number[16];
    int fd = memfd_create("kiln-saved-state", 0);
    int err = fd < 0 ? -errno : parcel_write(saved, fd);

    err = err ? err : transport_keep_open(true);
    err = err ? err : keep_spawner(true);
    err = err || !mounts ? err : mounts->keep_open(true);
    err = err || !is_sandboxed ? err : sandbox_keep_capabilities(true);
    if (!err) {
        snprintf(number, sizeof number, "%d", fd);
        setenv(STATE_VARIABLE, number, 1);
        notify_give_environment(true);
        execv(program, arguments); /* signals stay blocked: none is lost or ends the new program */
        err = -errno;
        notify_give_environment(false);
        unsetenv(STATE_VARIABLE);
    }
    (void)transport_keep_open(false);
    (void)keep_spawner(false);
    if (mounts)
        (void)mounts->keep_open(false);
    if (is_sandboxed)
        (void)sandbox_keep_capabilities(false);
    if (fd >= 0)
        close(fd);
    return err;
}

void
upgrade_run(void)
{
    struct parcel saved = {0};
    char program[PATH_MAX], why[PATH_MAX + 256] = "";

    pthread_mutex_lock(&lock);
    memcpy(program, next_program, sizeof program);
    next_program[0] = '\0';
    pthread_mutex_unlock(&lock);
    if (!*program)
        return; /* a signal that `kiln upgrade` has not sent */
    notify_reloading();
    frozen_ns = clock_mono_ns();
    int err = mounts ? mounts->freeze(DEADLINE_MS, why, sizeof why) : 0;
    bool are_frozen = !err;

    err = err ? err : freeze_and_save(&saved);
    if (!err) {
        log_event(LOG_INFO, NULL, "upgrade-begins", "kilnd %s runs %s", PACKAGE_VERSION, program);
        err = run_next(program, &saved);
        transport_thaw();
    }
    if (are_frozen && mounts)
        mounts->thaw();
    parcel_free(&saved);
    notify_reloaded();
    if (!are_frozen)
        upgrade_failed("the mount inside of kilnd on %s", why);
    else if (err == -EBUSY || err == -EAGAIN)
        upgrade_failed("a call has not ended within %d seconds", DEADLINE_MS / 1000);
    else
        upgrade_failed("%s cannot be run: %s", program, strerror(-err));
}
