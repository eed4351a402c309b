/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* mount/fuse: the translator, and the kernel's device.
 *
 *      start()       mount(2): processes that use the mount point wait
 *      notify()      first event of the bricks, good or bad: from now on the device is read
 *      worker        reads until no request is left, one at a time; several workers may read at once
 *      ENODEV        the mount point was unmounted: tells the program
 *      stop()        reading ends; unmounts if necessary; running requests complete
 *      fini()        drops the objects that the kernel has not released
 *
 * A request is read into a buffer of a megabyte and a page. The next request uses the same buffer; only a
 * large WRITE keeps it. A few buffers are cached for all mounts of the process, so an idle mount has none. */
#include "xlators/mount/fuse/fuse.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mount.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/reason.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/mount/fuse/fuse-internal.h"

#define DEVICE_HEAD_BYTES 4096 /* maximal size of headers before the data of a WRITE */
#define DEVICE_BUFFER_BYTES (FUSE_WRITE_MAX + DEVICE_HEAD_BYTES)
#define INODES_KEPT                                                                                          \
    64 /* unreferenced inodes: the kernel is the cache, and looks forgotten names up again */
#define MOUNT_TYPE "fuse.glusterfs" /* the type that tools look for */

static const char *const direct_io_modes[] = {"auto", "enable", "disable", NULL};

static const struct option fuse_options[] = {
    OPT_STR(struct fuse_conf, mountpoint, "mountpoint", NULL),
    OPT_STR(struct fuse_conf, source, "source", "kiln"),
    OPT_STR(struct fuse_conf, attr_timeout, "attribute-timeout", "1"),
    OPT_STR(struct fuse_conf, entry_timeout, "entry-timeout", "1"),
    OPT_STR(struct fuse_conf, negative_timeout, "negative-timeout", "0"),
    OPT_STR(struct fuse_conf, kernel_options, "kernel-options", ""),
    OPT_BOOL(struct fuse_conf, takes_over, "takes-over", "off"),
    OPT_BOOL(struct fuse_conf, is_inside, "inside", "off"),
    OPT_BOOL(struct fuse_conf, is_read_only, "read-only", "off"),
    OPT_BOOL(struct fuse_conf, acl, "acl", "off"),
    OPT_BOOL(struct fuse_conf, folder_attributes, "folder-attributes", "on"),
    OPT_BOOL(struct fuse_conf, skips_synced_fsync, "skip-synced-fsync", "on"),
    OPT_BOOL(struct fuse_conf, handles_killpriv, "handle-killpriv", "on"),
    OPT_BOOL(struct fuse_conf, is_told, "cache-invalidation", "off"),
    OPT_BOOL(struct fuse_conf, writes_back, "kernel-writeback-cache", "off"),
    OPT_INT(struct fuse_conf, client_pid, "client-pid", "0", INT32_MIN, INT32_MAX),
    OPT_ENUM(struct fuse_conf, direct_io, "direct-io-mode", "auto", direct_io_modes),
    OPT_END,
};

static void (*tell_unmounted)(struct graph *g), (*tell_left)(struct graph *g);

void
fuse_set_hooks(void (*unmounted)(struct graph *g), void (*left)(struct graph *g))
{
    tell_unmounted = unmounted;
    tell_left = left;
}

void
fuse_tell_left(struct fuse_mount *m)
{
    if (tell_left)
        tell_left(m->xl->graph);
}

/* ---- capabilities ---------------------------------------------------------------------------- */

static void
op_init(void *userdata, struct fuse_conn_info *conn)
{
    static const unsigned wanted = FUSE_CAP_ASYNC_READ | FUSE_CAP_POSIX_LOCKS | FUSE_CAP_FLOCK_LOCKS |
                                   FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO |
                                   FUSE_CAP_AUTO_INVAL_DATA | FUSE_CAP_ASYNC_DIO | FUSE_CAP_PARALLEL_DIROPS;
    struct fuse_mount *m = userdata;
    unsigned want = wanted;

    if (fuse_conf(m)->acl) /* the brick applies the umask, because the brick knows default ACLs */
        want |= FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK;
    if (fuse_conf(m)->writes_back)
        want |= FUSE_CAP_WRITEBACK_CACHE;
    conn->want = want & conn->capable;
    m->writes_back = conn->want & FUSE_CAP_WRITEBACK_CACHE;
    conn->max_write = FUSE_WRITE_MAX;
    conn->max_background = 64;
    conn->congestion_threshold = 48;
    conn->time_gran = 1;
}

static const struct fuse_lowlevel_ops ops = {
    .init = op_init,
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .mknod = op_mknod,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .create = op_create,
    .open = op_open,
    .read = op_read,
    .write = op_write,
    .flush = op_flush,
    .release = op_release,
    .fsync = op_fsync,
    .opendir = op_opendir,
    .readdir = op_readdir,
    .readdirplus = op_readdirplus,
    .releasedir = op_release,
    .fsyncdir = op_fsyncdir,
    .statfs = op_statfs,
    .setxattr = op_setxattr,
    .getxattr = op_getxattr,
    .listxattr = op_listxattr,
    .removexattr = op_removexattr,
    .access = op_access,
    .getlk = op_getlk,
    .setlk = op_setlk,
    .flock = op_flock,
    .fallocate = op_fallocate,
    .lseek = op_lseek,
};

/* ---- the device ------------------------------------------------------------------------------ */

static pthread_mutex_t spare_lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf lock */
static struct iobuf *spare[4];

static struct iobuf *
buffer_get(void)
{
    struct iobuf *buf = NULL;

    pthread_mutex_lock(&spare_lock);
    for (size_t i = 0; i < sizeof spare / sizeof spare[0] && !buf; i++) {
        buf = spare[i];
        spare[i] = NULL;
    }
    pthread_mutex_unlock(&spare_lock);
    return buf ? buf : iobuf_get(DEVICE_BUFFER_BYTES);
}

static void
buffer_put(struct iobuf *buf)
{
    pthread_mutex_lock(&spare_lock);
    for (size_t i = 0; i < sizeof spare / sizeof spare[0] && buf; i++) {
        if (!spare[i]) {
            spare[i] = buf;
            buf = NULL;
        }
    }
    pthread_mutex_unlock(&spare_lock);
    iobuf_unref(buf);
}

/* The buffer of this thread's current request; NULL: no request, or a WRITE has taken the buffer. For
 * functions that libfuse calls, outside of coroutines. */
static __thread struct iobuf *reading;

static __thread const char *request;
static __thread size_t request_bytes;

static void device_ready(struct event_source *src, uint32_t events);

const char *
device_request(size_t *bytes)
{
    *bytes = request ? request_bytes : 0;
    return request;
}

void
device_replay(struct fuse_mount *m, char *bytes, size_t count)
{
    request = bytes;
    request_bytes = count;
    privs_look(m, bytes, count);
    fuse_session_process_buf(m->se, &(struct fuse_buf){.mem = bytes, .size = count});
    request = NULL;
}

void
device_replay_init(struct fuse_mount *m)
{
    if (!m->init_bytes)
        return; /* the kernel's INIT has not been read yet */
    privs_mute(true);
    device_replay(m, m->init, m->init_bytes);
    privs_mute(false);
}

struct iobuf *
device_take_buffer(const char *bytes)
{
    struct iobuf *buf = reading;

    if (!buf || bytes < buf->bytes || bytes >= buf->bytes + buf->size)
        return NULL;
    reading = NULL;
    return buf;
}

static void
mount_ended(struct fuse_mount *m)
{
    if (!atomic_exchange(&m->has_ended, true) && tell_unmounted)
        tell_unmounted(m->xl->graph);
}

/* A request is about to run whose calls may block this worker (rpc/server/inside.c): the requests behind it
 * have had their event already. The job runs on this worker after its present work; if the worker gets
 * stuck, the watchdog gives the job to another worker (event/worker.h), which reads on. */
static void
device_want_help(struct fuse_mount *m)
{
    atomic_store(&m->needs_help, true);
    if (atomic_exchange(&m->is_help_posted, true))
        return;
    pthread_mutex_lock(&m->device_lock);
    m->helps++;
    pthread_mutex_unlock(&m->device_lock);
    worker_post(&m->help);
}

static void
device_help(struct worker_job *job)
{
    struct fuse_mount *m = caa_container_of(job, struct fuse_mount, help);

    atomic_store(&m->is_help_posted, false);
    pthread_mutex_lock(&m->device_lock);
    bool reads = m->is_reading;
    pthread_mutex_unlock(&m->device_lock);
    if (reads && atomic_exchange(&m->needs_help, false))
        device_ready(&m->device, EPOLLIN);
    pthread_mutex_lock(&m->device_lock);
    m->helps--;
    pthread_cond_broadcast(&m->helps_ended);
    pthread_mutex_unlock(&m->device_lock);
}

/* Reads and handles a request. Returns false if there is no request, or after the end. ENOENT: the request
 * was withdrawn between arrival and read. */
static bool
read_request(struct fuse_mount *m, char *bytes)
{
    ssize_t n = read(m->device.fd, bytes, DEVICE_BUFFER_BYTES);

    if (n > 0) {
        if (fuse_conf(m)->is_inside)
            device_want_help(m);
        if (meta_answers(m, bytes, (size_t)n))
            return true;
        device_replay(m, bytes, (size_t)n);
        return true;
    }
    int err = n < 0 ? errno : 0;

    if (err == EINTR || err == ENOENT)
        return true;
    if (err != EAGAIN)
        mount_ended(m);
    atomic_store(&m->needs_help, false); /* no request is left behind */
    return false;
}

/* Without memory for a buffer, requests are read into a static buffer and answered, most with ENOMEM, because
 * unread requests would hang the callers. The static buffer is never taken. */
static void
read_into_reserve(struct fuse_mount *m, struct event_source *src)
{
    static char reserve[DEVICE_BUFFER_BYTES] __attribute__((aligned(16)));
    static atomic_bool is_used;

    if (atomic_exchange(&is_used, true)) {
        (void)event_modify(src, EPOLLIN); /* reports a ready device again */
        return;
    }
    log_event(LOG_ERROR, m->xl, "fuse-no-buffer",
              "out of memory for request buffers; using the static buffer");
    while (read_request(m, reserve))
        ;
    atomic_store(&is_used, false);
}

static void
device_ready(struct event_source *src, uint32_t events)
{
    struct fuse_mount *m = caa_container_of(src, struct fuse_mount, device);

    (void)events;
    do {
        if (!reading && !(reading = buffer_get())) {
            read_into_reserve(m, src);
            return;
        }
    } while (read_request(m, reading->bytes));
    if (reading)
        buffer_put(reading);
    reading = NULL;
}

/* ---- mounting -------------------------------------------------------------------------------- */

/* Gives libfuse the device before the mount, because processes would hang at a mount point whose device has
 * no reader. Returns the descriptor, which fuse_session_destroy() closes, or -errno. */
static int
open_device(struct fuse_mount *m)
{
    int fd = restored_device(m), err;

    if (fd < 0)
        fd = open("/dev/fuse", O_RDWR | O_CLOEXEC | O_NONBLOCK);

    if (fd < 0) {
        err = -errno;
        log_event(LOG_ERROR, m->xl, "fuse-device", "/dev/fuse: %s", strerror(-err));
        return err;
    }
    err = fuse_session_custom_io(m->se, &privs_io, fd); /* instead of fuse_session_mount() */
    if (err) {
        log_event(LOG_ERROR, m->xl, "fuse-session", "libfuse cannot use /dev/fuse: %s",
                  strerror(-err));
        close(fd);
        return err;
    }
    return fd;
}

static int
mount_at_mountpoint(struct fuse_mount *m)
{
    const struct fuse_conf *conf = fuse_conf(m);
    char data[256];
    struct stat st;
    int fd = open_device(m);

    if (fd < 0)
        return fd;
    int err = m->restored || stat(conf->mountpoint, &st) == 0 ? 0 : -errno;

    if (!err && !m->restored) {
        snprintf(data, sizeof data,
                 "fd=%d,rootmode=%o,user_id=%u,group_id=%u,default_permissions,allow_other", fd,
                 st.st_mode & S_IFMT, geteuid(), getegid());
        err = mount(conf->source, conf->mountpoint, MOUNT_TYPE, m->flags, data) < 0
                  ? -errno
                  : 0;
    }
    if (err) {
        log_event(LOG_ERROR, m->xl, "fuse-mount", "cannot mount %s: %s", conf->mountpoint,
                  strerror(-err));
        return err;
    }
    atomic_store(&m->is_mounted, true);
    struct mounted_as as = mounted_as_now(conf->mountpoint);
    if (!m->restored || as.device == m->mounted_as.device)
        m->mounted_as = as;
    m->device = (struct event_source){.fd = fd, .fn = device_ready};
    return 0;
}

/* Adds a condition. Reading begins after both the mount and the first event of the bricks; the event may
 * come first, because the layers below start before this one. The thread that adds the second condition
 * begins reading. */
static void
begin_reading(struct fuse_mount *m, unsigned what)
{
    int err = 0;

    pthread_mutex_lock(&m->device_lock);
    unsigned had = m->ready_for;

    m->ready_for |= what;
    if (had != FUSE_READY && m->ready_for == FUSE_READY) {
        err = event_add(&m->device, EPOLLIN);
        m->is_reading = !err;
    }
    pthread_mutex_unlock(&m->device_lock);
    if (err) {
        log_event(LOG_ERROR, m->xl, "fuse-device-watch", "cannot watch the FUSE device: %s", strerror(-err));
        mount_ended(m);
    }
}

void
device_begin(struct fuse_mount *m)
{
    begin_reading(m, FUSE_IS_MOUNTED | FUSE_HAS_NEWS);
}

bool
device_pause(struct fuse_mount *m)
{
    pthread_mutex_lock(&m->device_lock);
    bool was_reading = m->is_reading;

    m->is_reading = false;
    pthread_mutex_unlock(&m->device_lock);
    if (was_reading)
        event_remove(&m->device);
    pthread_mutex_lock(&m->device_lock);
    while (m->helps)
        pthread_cond_wait(&m->helps_ended, &m->device_lock);
    pthread_mutex_unlock(&m->device_lock);
    return was_reading;
}

/* Requests that arrived meanwhile are reported when the device is watched again. */
void
device_go_on(struct fuse_mount *m)
{
    m->device = (struct event_source){.fd = m->device.fd, .fn = device_ready};
    pthread_mutex_lock(&m->device_lock);
    int err = event_add(&m->device, EPOLLIN);

    m->is_reading = !err;
    pthread_mutex_unlock(&m->device_lock);
    if (!err)
        return;
    log_event(LOG_ERROR, m->xl, "fuse-device-again", "cannot watch the FUSE device: %s", strerror(-err));
    mount_ended(m);
}

static int
fuse_start(struct xlator *xl)
{
    if (!mount_of(xl))
        return 0;
    int err = mount_at_mountpoint(xl->private);

    if (!err && !mount_of(xl)->restored) /* else fuse_go_on() */
        begin_reading(xl->private, FUSE_IS_MOUNTED);
    return err;
}

/* The first event ends the wait of processes that use the mount point: the brick is up, or these processes
 * get ENOTCONN now. */
static void
fuse_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    struct fuse_mount *m = mount_of(xl);

    (void)child;
    if ((event == CHILD_DOWN || event == CHILD_SOME_DOWN) && graph_pin(xl->graph)) {
        fuse_news_missed(xl);
        graph_unpin(xl->graph);
    }
    if (event == CHILD_SOME_UP || event == CHILD_SOME_DOWN)
        return; /* an event for layers that cache data of children */
    bool is_bad = event == CHILD_DOWN || event == CHILD_REFUSED;

    log_event(is_bad ? LOG_WARNING : LOG_INFO, xl, "fuse-volume-event", "the volume is %s",
              event == CHILD_UP        ? "there"
              : event == CHILD_DOWN    ? "away"
              : event == CHILD_REFUSED ? "refused"
                                       : "being connected");
    if (m)
        begin_reading(m, FUSE_HAS_NEWS);
    xlator_tell_parent(xl, event);
}

static bool
fuse_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD)
        fuse_notify(xl, e->child, e->change);
    if (e->kind == EVENT_INVALIDATED)
        fuse_invalidated(xl, e->gfid, e->flags);
    return e->kind != EVENT_CONTENDED;
}

/* Returns whether the mount point still exists. On the device an unmount looks like an abort, after which
 * the mount point remains. */
static bool
is_still_there(const struct fuse_mount *m)
{
    return !atomic_load(&m->has_ended) || mounted_as_still(fuse_conf(m)->mountpoint, &m->mounted_as);
}

void
fuse_unmount(struct graph *g)
{
    struct fuse_mount *m = mount_of(g->top);

    if (m && atomic_exchange(&m->is_mounted, false) && is_still_there(m) &&
        umount2(fuse_conf(m)->mountpoint, MNT_DETACH) < 0)
        log_event(LOG_WARNING, m->xl, "fuse-unmount", "%s cannot be unmounted: %s", fuse_conf(m)->mountpoint,
                  strerror(errno));
}

static void
fuse_stop(struct xlator *xl)
{
    struct fuse_mount *m = mount_of(xl);

    if (!m)
        return;
    fuse_unmount(xl->graph);
    fuse_session_exit(m->se);
    pthread_mutex_lock(&m->device_lock);
    m->ready_for = FUSE_READY; /* late events begin nothing */
    pthread_mutex_unlock(&m->device_lock);
    (void)device_pause(m);
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
timeout_of(const char *key, const char *text, double *out, struct reason *why)
{
    char *end;

    *out = strtod(text, &end);
    if (end != text && !*end && *out >= 0 && *out <= 1e9)
        return 0;
    return reason_set(why, -EINVAL, "option %s %s: expected seconds, 0 or more", key, text);
}

static int
take_flags(struct fuse_mount *m, const char *names, struct reason *why)
{
    static const struct {
        const char *name;
        unsigned long flag;
    } known[] = {
        {"nodev", MS_NODEV},           {"nosuid", MS_NOSUID},     {"noexec", MS_NOEXEC},
        {"noatime", MS_NOATIME},       {"relatime", MS_RELATIME}, {"nodiratime", MS_NODIRATIME},
        {"strictatime", MS_STRICTATIME}, {"sync", MS_SYNCHRONOUS}, {"dirsync", MS_DIRSYNC},
        /* flags that are the default: stock's helper passes on everything that mount(8) gives */
        {"dev", 0},                    {"suid", 0},               {"exec", 0},
        {"atime", 0},                  {"diratime", 0},           {"norelatime", 0},
        {"nostrictatime", 0},          {"async", 0},
    };

    for (size_t len; *names; names += len + (names[len] == ',')) {
        size_t i = 0;

        len = strcspn(names, ",");
        while (i < sizeof known / sizeof known[0] &&
               (strlen(known[i].name) != len || strncmp(known[i].name, names, len) != 0))
            i++;
        if (i == sizeof known / sizeof known[0])
            return reason_set(why, -EINVAL, "option kernel-options: %.*s is not known", (int)len, names);
        m->flags |= known[i].flag;
    }
    return 0;
}

static int
take_conf(struct fuse_mount *m, struct reason *why)
{
    const struct fuse_conf *conf = fuse_conf(m);
    int err;

    if (!conf->mountpoint || conf->mountpoint[0] != '/')
        return reason_set(why, -EINVAL, "option mountpoint: expected an absolute path");
    m->flags = conf->is_read_only ? MS_RDONLY : 0;
    err = take_flags(m, conf->kernel_options, why);
    if (err)
        return err;
    double attr_timeout_s = 0;

    err = timeout_of("attribute-timeout", conf->attr_timeout, &attr_timeout_s, why);
    atomic_store(&m->attr_timeout_s, attr_timeout_s);
    if (!err)
        err = timeout_of("entry-timeout", conf->entry_timeout, &m->entry_timeout_s, why);
    return err ? err : timeout_of("negative-timeout", conf->negative_timeout, &m->negative_timeout_s, why);
}

static struct fuse_session *
session_new(struct fuse_mount *m)
{
    char name[] = "kiln-mount", *argv[] = {name, NULL};
    struct fuse_args args = FUSE_ARGS_INIT(1, argv);
    struct fuse_session *se = fuse_session_new(&args, &ops, sizeof ops, m);

    fuse_opt_free_args(&args);
    return se;
}

static void
report_mount_leak(void *arg, const char *pool_name, int64_t count, uint64_t bytes, const char *where)
{
    const struct fuse_mount *m = arg;

    (void)where;
    log_event(LOG_ERROR, m->xl, "fuse-audit", "the mount left %lld objects of pool %s (%llu bytes)",
              (long long)count, pool_name, (unsigned long long)bytes);
}

static void
fuse_fini(struct xlator *xl)
{
    struct fuse_mount *m = mount_of(xl);

    if (!m)
        return;
    if (m->se)
        fuse_session_destroy(m->se); /* closes the device; later requests of the kernel fail there */
    if (m->owner) {
        mem_owner_audit(m->owner, report_mount_leak, m);
        mem_owner_retire(m->owner);
    }
    meta_forget(m);
    restored_free(m);
    parcel_free(&m->withdrawn);
    pthread_mutex_destroy(&m->lock);
    pthread_mutex_destroy(&m->device_lock);
    pthread_cond_destroy(&m->helps_ended);
    free(m);
}

static int
make_mount(struct xlator *xl, struct reason *why)
{
    struct fuse_mount *m = calloc(1, sizeof *m);

    if (!m)
        return -ENOMEM;
    m->xl = xl;
    xl->private = m;
    pthread_mutex_init(&m->lock, NULL);
    pthread_mutex_init(&m->device_lock, NULL);
    pthread_cond_init(&m->helps_ended, NULL);
    m->help.run = device_help;
    CDS_INIT_LIST_HEAD(&m->files);
    CDS_INIT_LIST_HEAD(&m->parked);
    CDS_INIT_LIST_HEAD(&m->lock_waits);
    int err = take_conf(m, why), owner = err ? 0 : mem_owner_new(fuse_conf(m)->mountpoint);

    if (owner < 0)
        err = owner;
    if (!err) {
        m->owner = (uint16_t)owner;
        m->se = session_new(m);
        err = !m->se || node_pools_init() || task_pools_init() ? -ENOMEM : 0;
    }
    if (!err) {
        m->root = inode_root(xl->graph->inodes);
        return 0;
    }
    fuse_fini(xl);
    xl->private = NULL;
    return err;
}

static int
fuse_init(struct xlator *xl, struct reason *why)
{
    const struct fuse_conf *conf = xlator_conf(xl);

    inode_table_set_limit(xl->graph->inodes, INODES_KEPT);
    return conf->takes_over ? 0 : make_mount(xl, why);
}

/* The kernel keeps earlier attributes for the timeout that was sent with these attributes. */
static void
fuse_reconfigured(struct xlator *xl, const void *old)
{
    struct fuse_mount *m = mount_of(xl);
    const struct fuse_conf *conf = xlator_conf(xl);
    struct reason why = {0};
    double timeout_s;

    (void)old;
    if (!m)
        return;
    meta_reconfigured(m, xl->graph->volfile_fresh);
    if (timeout_of("attribute-timeout", conf->attr_timeout, &timeout_s, &why))
        log_event(LOG_WARNING, xl, "fuse-timeout", "the former cache time stays in force: %s", why.text);
    else
        atomic_store(&m->attr_timeout_s, timeout_s);
}

void
fuse_process_end(void)
{
    groups_end();
    for (size_t i = 0; i < sizeof spare / sizeof spare[0]; i++) {
        iobuf_unref(spare[i]);
        spare[i] = NULL;
    }
}

/* Drops the objects that the kernel will not release any more. */
static void
fuse_drained(struct xlator *xl)
{
    struct fuse_mount *m = mount_of(xl);

    if (!m)
        return;
    nodes_drop(m);
    inode_unref(m->root);
    m->root = NULL;
}

static void
fuse_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    node_free(ctx);
}

static void
fuse_dump(struct xlator *xl, struct dump *d)
{
    struct fuse_mount *m = mount_of(xl);
    struct fuse_file *f;
    unsigned files = 0;

    if (!m)
        return;
    pthread_mutex_lock(&m->lock);
    cds_list_for_each_entry (f, &m->files, link)
        files++;
    pthread_mutex_unlock(&m->lock);
    dump_line(d, "mountpoint", "%s", fuse_conf(m)->mountpoint);
    dump_line(d, "mounted", "%d", atomic_load(&m->is_mounted) ? 1 : 0);
    dump_line(d, "open-files", "%u", files);
}

const struct xlator_type mount_fuse_xlator = {
    .name = "mount/fuse",
    .options = fuse_options,
    .conf_size = sizeof(struct fuse_conf),
    .ops = &(const struct xlator_ops){0},
    .keeps = KEEPS(CTX_INODE),
    .init = fuse_init,
    .start = fuse_start,
    .stop = fuse_stop,
    .fini = fuse_fini,
    .drained = fuse_drained,
    .event = fuse_event,
    .reconfigured = fuse_reconfigured,
    .inode_forget = fuse_inode_forget,
    .dump = fuse_dump,
};
