/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* A child's life: started, watched by a pidfd, killed if need be, waited for, reported.
 *
 * Events of the child's pipes, its end, its timer and calls from other threads all set a bit in `wake`; a
 * thread that sets RUNNING when it was clear works on the pump until no bit is left. So no other state
 * here needs a lock, and functions of one pump run one at a time. The process id is valid until that
 * worker has waited for the child, and only that worker kills. */
#include "event/pump.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread.h"
#include "event/pump-internal.h"
#include "event/spawner.h"
#include "mem/mem-pool.h"

static struct {
    pthread_mutex_t lock;
    pthread_cond_t emptied;
    struct cds_list_head running;
    unsigned count;
    bool is_stopping;
    struct mem_pool *pool;
} pumps = {
    .lock = PTHREAD_MUTEX_INITIALIZER,
    .emptied = PTHREAD_COND_INITIALIZER,
    .running = CDS_LIST_HEAD_INIT(pumps.running),
};

int
pump_pools_init(void)
{
    if (!pumps.pool)
        pumps.pool = mem_pool_new(struct pump, 0);
    return pumps.pool ? 0 : -ENOMEM;
}

void
pump_unref(struct pump *p)
{
    if (refcount_put(&p->refs))
        mem_put(p);
}

static int
pump_enlist(struct pump *p)
{
    int err = 0;

    pthread_mutex_lock(&pumps.lock);
    if (pumps.is_stopping)
        err = -ECANCELED;
    else if (pumps.count >= PUMP_CHILDREN_MAX)
        err = -EAGAIN;
    if (!err) {
        cds_list_add_tail(&p->link, &pumps.running);
        pumps.count++;
    }
    pthread_mutex_unlock(&pumps.lock);
    return err;
}

static void
pump_unlist(struct pump *p)
{
    pthread_mutex_lock(&pumps.lock);
    cds_list_del(&p->link);
    if (--pumps.count == 0)
        pthread_cond_broadcast(&pumps.emptied);
    pthread_mutex_unlock(&pumps.lock);
}

/* ---- the RUNNING thread ---------------------------------------------------------------------- */

static void pump_run(struct pump *p);

static void
pump_job(struct worker_job *job)
{
    pump_run(caa_container_of(job, struct pump, job));
}

static bool
wake_sets_running(struct pump *p, unsigned why)
{
    return !(atomic_fetch_or(&p->wake, why | WAKE_RUNNING) & WAKE_RUNNING);
}

static void
pump_wake(struct pump *p, unsigned why)
{
    if (wake_sets_running(p, why))
        worker_post_any(&p->job);
}

static void
port_event(struct event_source *src, uint32_t events)
{
    struct port *port = caa_container_of(src, struct port, src);

    (void)events;
    if (wake_sets_running(port->pump, port->wake))
        pump_run(port->pump);
}

static void
pump_timer_due(struct timer *t)
{
    pump_wake(caa_container_of(t, struct pump, timer), WAKE_TIMEOUT);
}

void
pump_cancel(struct pump *p)
{
    pump_wake(p, WAKE_CANCEL);
}

void
pump_input_ready(struct pump *p)
{
    pump_wake(p, WAKE_IN);
}

void
pump_output_ready(struct pump *p)
{
    pump_wake(p, WAKE_OUT | WAKE_ERR);
}

/* ---- descriptors in the loop ----------------------------------------------------------------- */

static void
port_gone(struct event_source *src)
{
    struct port *port = caa_container_of(src, struct port, src);

    close(src->fd);
    pump_unref(port->pump);
}

int
port_open(struct port *port, struct pump *p, int fd, uint32_t events, unsigned wake)
{
    port->src = (struct event_source){.fd = fd, .fn = port_event, .gone = port_gone};
    port->pump = p;
    port->wake = wake;
    port->is_open = true;
    refcount_get(&p->refs);
    int err = event_add(&port->src, events);

    port->is_registered = !err;
    if (err)
        pump_unref(p);
    return err;
}

void
port_close(struct port *port)
{
    if (!port->is_open)
        return;
    port->is_open = false;
    if (port->is_registered)
        event_remove(&port->src); /* port_gone() may close the descriptor later */
    else
        close(port->src.fd);
}

/* ---- work ------------------------------------------------------------------------------------ */

/* Kills the whole group, because a shell's children hold the pipes too. The kernel does not reuse the
 * group's number before the wait. */
static void
kill_group(const struct pump *p)
{
    if (!p->is_reaped)
        kill(-p->pid, SIGKILL);
}

static void
pump_fail(struct pump *p, int err)
{
    if (!p->result.error)
        p->result.error = err;
    kill_group(p);
    stream_close(&p->in);
    stream_close(&p->out);
    stream_close(&p->err);
}

/* Waits for the child if it has ended. */
static void
check_child(struct pump *p)
{
    siginfo_t info = {0};

    if (p->is_reaped ||
        (waitid(P_PIDFD, (id_t)p->child.src.fd, &info, WEXITED | WNOHANG) == 0 && info.si_pid == 0))
        return;
    p->is_reaped = true;
    port_close(&p->child);
    if (info.si_pid == 0) { /* a handler of SIGCHLD, or ignoring SIGCHLD, was quicker */
        if (!p->result.error)
            p->result.error = -ECHILD;
        p->result.exit_code = -1;
    } else if (info.si_code == CLD_EXITED) {
        p->result.exit_code = info.si_status;
    } else {
        p->result.exit_code = -1;
        p->result.signal = info.si_status;
    }
}

/* Returns the wake bits of the work that must continue after other jobs had their turn. */
static unsigned
move_stream(struct pump *p, struct stream *s, unsigned wake)
{
    if (!s->is_open)
        return 0;
    int moved = stream_move(s);

    if (moved < 0)
        pump_fail(p, moved);
    else if (moved == MOVED_END)
        stream_close(s);
    return moved == MOVED_TURN ? wake : 0;
}

/* Returns the wake bits of unfinished work. */
static unsigned
pump_work(struct pump *p, unsigned why)
{
    unsigned more = 0;

    if (why & WAKE_CANCEL)
        pump_fail(p, -ECANCELED);
    if (why & WAKE_TIMEOUT)
        pump_fail(p, -ETIMEDOUT);
    bool was_reaped = p->is_reaped;

    if (why & WAKE_CHILD)
        check_child(p);
    if (p->is_reaped && !was_reaped) { /* the child reads no more, and its pipes hold all remaining output */
        stream_close(&p->in);
        why |= WAKE_STREAMS;
    }
    if (why & WAKE_IN)
        more |= move_stream(p, &p->in, WAKE_IN);
    if (why & WAKE_OUT)
        more |= move_stream(p, &p->out, WAKE_OUT);
    if (why & WAKE_ERR)
        more |= move_stream(p, &p->err, WAKE_ERR);
    return more;
}

static void
pump_finish(struct pump *p)
{
    timer_stop(&p->timer); /* from here on no thread can become RUNNING: the bit stays set */
    stream_close(&p->in);
    p->result.in_bytes = p->in.moved;
    p->result.out_bytes = p->out.moved;
    p->result.err_bytes = p->err.moved;
    p->done(p, &p->result, p->arg);
    pump_unlist(p);
    pump_unref(p);
}

static void
pump_run(struct pump *p)
{
    for (;;) {
        unsigned why = atomic_fetch_and(&p->wake, WAKE_RUNNING) & ~WAKE_RUNNING;
        unsigned more = pump_work(p, why), alone = WAKE_RUNNING;

        if (p->is_reaped && !p->out.is_open && !p->err.is_open) {
            pump_finish(p);
            return;
        }
        if (more) { /* a child that writes without end must not occupy a worker */
            atomic_fetch_or(&p->wake, more);
            worker_post_any(&p->job);
            return;
        }
        if (atomic_compare_exchange_strong(&p->wake, &alone, 0))
            return;
    }
}

/* ---- start ----------------------------------------------------------------------------------- */

static struct pump *
pump_new(const struct pump_options *o)
{
    struct pump *p = mem_get0(pumps.pool);

    if (!p)
        return NULL;
    refcount_init(&p->refs, 1);
    atomic_init(&p->wake, WAKE_RUNNING); /* until pump_start() is done */
    p->job.run = pump_job;
    timer_init(&p->timer, pump_timer_due);
    p->in.pump = p->out.pump = p->err.pump = p;
    p->output_bytes_max = o->output_bytes_max;
    p->buffer_bytes = o->buffer_bytes ? o->buffer_bytes : PUMP_BUFFER_BYTES;
    p->done = o->done;
    p->arg = o->arg;
    return p;
}

static int
spawn_actions(posix_spawn_file_actions_t *a, const struct pump_options *o, const int child_fds[3])
{
    int err = 0;

    for (int i = 0; i < 3 && !err; i++) {
        if (child_fds[i] >= 0)
            err = posix_spawn_file_actions_adddup2(a, child_fds[i], i);
        else if (i == 2 && o->err.kind == PUMP_SAME)
            err = posix_spawn_file_actions_adddup2(a, 1, 2);
        else
            err = posix_spawn_file_actions_addopen(a, i, "/dev/null", i == 0 ? O_RDONLY : O_WRONLY, 0);
    }
    return err ? err : posix_spawn_file_actions_addclosefrom_np(a, 3);
}

struct spawn {
    const struct pump_options *o;
    const posix_spawn_file_actions_t *actions;
    const posix_spawnattr_t *attr;
    pid_t pid;
    int err;
};

/* A child inherits the umask of the thread that starts it. All threads of a process share a umask, which
 * may be 0 here because clients send complete modes. So this thread separates its umask from the other
 * threads before the change. */
static void *
spawn_main(void *arg)
{
    struct spawn *s = arg;

    s->err = unshare(CLONE_FS) < 0 ? errno : 0;
    if (s->err)
        return NULL;
    umask(PUMP_UMASK);
    s->err = posix_spawn(&s->pid, s->o->path, s->actions, s->attr, s->o->argv,
                         s->o->envp ? s->o->envp : environ);
    return NULL;
}

/* The spawner gives the program its three descriptors, so /dev/null is opened here. */
static int
spawn_by_spawner(struct pump *p, const struct pump_options *o, const int child_fds[3])
{
    int null = open("/dev/null", O_RDWR | O_CLOEXEC), fds[3];

    if (null < 0)
        return -errno;
    for (int i = 0; i < 3; i++)
        fds[i] = child_fds[i] >= 0 ? child_fds[i] : i == 2 && o->err.kind == PUMP_SAME ? fds[1] : null;
    worker_block_begin(); /* until the exec, which may be from a slow disk */
    int err = spawner_start(o->path, o->argv, o->envp, fds, &p->pid);
    worker_block_end();
    close(null);
    p->is_reaped = err != 0;
    return err;
}

static int
spawn_child(struct pump *p, const struct pump_options *o, const int child_fds[3])
{
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attr;
    struct spawn s = {.o = o, .actions = &actions, .attr = &attr};
    sigset_t none, all;

    if (spawner_is_there())
        return spawn_by_spawner(p, o, child_fds);
    int err = posix_spawn_file_actions_init(&actions);

    if (err)
        return -err;
    err = posix_spawnattr_init(&attr);
    if (!err) {
        sigemptyset(&none);
        sigfillset(&all);
        posix_spawnattr_setsigmask(&attr, &none);
        posix_spawnattr_setsigdefault(&attr, &all);
        posix_spawnattr_setpgroup(&attr, 0);
        posix_spawnattr_setflags(&attr,
                                 POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
        err = spawn_actions(&actions, o, child_fds);
        worker_block_begin(); /* until the exec, which may be from a slow disk */
        if (!err)
            err = -thread_run(spawn_main, &s);
        if (!err)
            err = s.err;
        worker_block_end();
        posix_spawnattr_destroy(&attr);
    }
    posix_spawn_file_actions_destroy(&actions);
    p->pid = s.pid;
    p->is_reaped = err != 0;
    return -err;
}

static int
watch_child(struct pump *p)
{
    int fd = pidfd_open(p->pid, 0);

    return fd < 0 ? -errno : port_open(&p->child, p, fd, EPOLLIN, WAKE_CHILD);
}

/* Ends a pump that is half started. Only this thread works on it. */
static void
pump_abandon(struct pump *p)
{
    pump_fail(p, -ECANCELED);
    port_close(&p->child);
    if (!p->is_reaped)
        waitpid(p->pid, NULL, 0);
    pump_unlist(p);
    pump_unref(p);
}

static int
open_streams(struct pump *p, const struct pump_options *o, int child_fds[3])
{
    int err = stream_open_in(p, o, &child_fds[0]);

    if (!err)
        err = stream_open_out(p, &p->out, &o->out, o->pipe_bytes, WAKE_OUT, &child_fds[1]);
    return err ? err : stream_open_out(p, &p->err, &o->err, o->pipe_bytes, WAKE_ERR, &child_fds[2]);
}

int
pump_start(const struct pump_options *o, struct pump **out)
{
    int child_fds[3] = {-1, -1, -1};
    struct pump *p = pump_new(o);

    if (!p)
        return -ENOMEM;
    assert(o->path && o->argv && o->done);
    int err = pump_enlist(p);

    if (err) {
        pump_unref(p);
        return err;
    }
    p->is_reaped = true; /* there is no child yet */
    err = open_streams(p, o, child_fds);
    if (!err)
        err = spawn_child(p, o, child_fds);
    for (int i = 0; i < 3; i++) {
        if (child_fds[i] >= 0)
            close(child_fds[i]);
    }
    if (!err)
        err = watch_child(p);
    if (err) {
        pump_abandon(p);
        return err;
    }
    if (out) {
        refcount_get(&p->refs);
        *out = p;
    }
    if (o->timeout_ms)
        timer_start(&p->timer, o->timeout_ms);
    atomic_fetch_or(&p->wake, WAKE_STREAMS | WAKE_CHILD);
    worker_post(&p->job);
    return 0;
}

/* ---- shutdown -------------------------------------------------------------------------------- */

void
pumps_stop(void)
{
    struct pump *p;

    pthread_mutex_lock(&pumps.lock);
    pumps.is_stopping = true;
    cds_list_for_each_entry(p, &pumps.running, link) pump_cancel(p);
    while (pumps.count)
        pthread_cond_wait(&pumps.emptied, &pumps.lock);
    pumps.is_stopping = false;
    pthread_mutex_unlock(&pumps.lock);
}

unsigned
pumps_running(void)
{
    pthread_mutex_lock(&pumps.lock);
    unsigned count = pumps.count;

    pthread_mutex_unlock(&pumps.lock);
    return count;
}
