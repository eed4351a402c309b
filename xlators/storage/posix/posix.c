/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* storage/posix: the bottom of a brick's graph: options, start and end of a brick. posix-internal.h has an
 * overview of the files.
 *
 * A brick starts only if BRICK matches the volfile: a directory, of this volume, on a file system with
 * xattrs, with a .glusterfs that belongs to it (spec: brick 2.3). Every refusal names the path and the fact
 * found. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include "base/lock-order.h"
#include "base/reason.h"
#include "base/rights.h"
#include "log/dump.h"
#include "xlators/storage/posix/entry/entry.h"
#include "xlators/storage/posix/saved.h"

/* ---- per inode, locks ------------------------------------------------------------------------ */

static struct mem_pool *inode_pool;
static pthread_once_t inode_pool_once = PTHREAD_ONCE_INIT;

static void
posix_inode_pool_make(void)
{
    inode_pool = mem_pool_new_opts(&(struct mem_pool_opts){
        .name = "posix_inode", .xlator = "storage/posix", .size = sizeof(struct posix_inode)});
}

static void
posix_inode_free(struct posix_inode *ctx)
{
    pthread_mutex_destroy(&ctx->lock);
    pthread_mutex_destroy(&ctx->mdata_lock);
    pthread_mutex_destroy(&ctx->change_lock);
    mem_put(ctx);
}

struct posix_inode *
posix_inode_get(struct xlator *xl, struct inode *inode)
{
    struct posix_inode *ctx = inode_ctx(inode, xl);

    if (ctx)
        return ctx;
    pthread_once(&inode_pool_once, posix_inode_pool_make);
    ctx = inode_pool ? mem_get0_owner(inode_pool, xl->graph->owner) : NULL;
    if (!ctx)
        return NULL;
    pthread_mutex_init(&ctx->lock, NULL);
    pthread_mutex_init(&ctx->mdata_lock, NULL);
    pthread_mutex_init(&ctx->change_lock, NULL);
    struct posix_inode *installed = inode_ctx_install(inode, xl, ctx);
    if (installed != ctx)
        posix_inode_free(ctx);
    return installed;
}

bool
posix_inode_is_met(const struct xlator *xl, struct inode *inode)
{
    const struct posix_inode *ctx = inode ? inode_ctx(inode, xl) : NULL;

    return ctx && atomic_load_explicit(&ctx->backend_ino, memory_order_relaxed) != 0;
}

bool
posix_inode_is(const struct xlator *xl, struct inode *inode, const struct stat *st)
{
    struct posix_inode *ctx = inode ? inode_ctx(inode, xl) : NULL;

    if (ctx)
        lock_order_may_take(&ctx->lock); /* posix_inode_met() takes it if this returns false */
    return ctx && atomic_load_explicit(&ctx->backend_ino, memory_order_relaxed) == st->st_ino &&
           st->st_dev == posix_of(xl)->dev && (st->st_mode & S_IFMT) == inode->type &&
           !atomic_load_explicit(&ctx->is_unlinked, memory_order_acquire);
}

unsigned
posix_inode_births(const struct xlator *xl, struct inode *inode)
{
    const struct posix_inode *ctx = inode ? inode_ctx(inode, xl) : NULL;

    return ctx ? atomic_load_explicit(&ctx->births, memory_order_acquire) : 0;
}

static int64_t
nanoseconds(const struct timespec *t)
{
    return (int64_t)t->tv_sec * 1000000000 + t->tv_nsec;
}

/* The ctime for later comparisons: 0 if the next change may get the same ctime, because the clock from which
 * file systems take it has not advanced since. */
static int64_t
ctime_to_remember(const struct stat *st)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME_COARSE, &now);
    return nanoseconds(&st->st_ctim) < nanoseconds(&now) ? nanoseconds(&st->st_ctim) : 0;
}

void
posix_inode_met(struct xlator *xl, struct inode *inode, const struct stat *st, unsigned births)
{
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;

    if (!ctx || st->st_dev != posix_of(xl)->dev)
        return;
    pthread_mutex_lock(&ctx->lock);
    if (ctx->births == births && !ctx->is_leaving && !atomic_load(&ctx->is_unlinked)) {
        atomic_store_explicit(&ctx->backend_ino, st->st_ino, memory_order_relaxed);
        atomic_store_explicit(&ctx->checked_ctime, ctime_to_remember(st), memory_order_relaxed);
    }
    pthread_mutex_unlock(&ctx->lock);
}

bool
posix_inode_is_unchanged(const struct xlator *xl, struct inode *inode, const struct stat *st)
{
    const struct posix_inode *ctx = inode_ctx(inode, xl);

    return ctx &&
           atomic_load_explicit(&ctx->checked_ctime, memory_order_relaxed) == nanoseconds(&st->st_ctim);
}

void
posix_inode_led(struct xlator *xl, struct inode *inode, unsigned births)
{
    struct posix_inode *ctx = inode_ctx(inode, xl);

    if (!ctx || atomic_load_explicit(&ctx->has_handle, memory_order_relaxed))
        return;
    pthread_mutex_lock(&ctx->lock);
    if (ctx->births == births && atomic_load(&ctx->backend_ino) != 0)
        atomic_store(&ctx->has_handle, true);
    pthread_mutex_unlock(&ctx->lock);
}

bool
posix_inode_has_handle(const struct xlator *xl, struct inode *inode)
{
    const struct posix_inode *ctx = inode_ctx(inode, xl);

    return ctx && atomic_load_explicit(&ctx->has_handle, memory_order_relaxed);
}

/* Resets the inode's knowledge of the object on the disk. */
static void
forget_object_locked(struct posix_inode *ctx)
{
    atomic_fetch_add(&ctx->births, 1);
    atomic_store(&ctx->has_handle, false);
    atomic_store_explicit(&ctx->backend_ino, 0, memory_order_relaxed);
}

void
posix_inode_doubt(struct xlator *xl, struct inode *inode)
{
    struct posix_inode *ctx = inode_ctx(inode, xl);

    if (!ctx)
        return;
    pthread_mutex_lock(&ctx->lock);
    forget_object_locked(ctx);
    pthread_mutex_unlock(&ctx->lock);
}

void
posix_inode_leaves(struct xlator *xl, struct inode *inode)
{
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;

    if (!ctx)
        return;
    pthread_mutex_lock(&ctx->lock);
    forget_object_locked(ctx);
    ctx->is_leaving = true;
    pthread_mutex_unlock(&ctx->lock);
}

void
posix_inode_gone(struct xlator *xl, struct inode *inode, bool is_gone)
{
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;

    if (!ctx)
        return;
    pthread_mutex_lock(&ctx->lock);
    forget_object_locked(ctx);
    ctx->is_leaving = false;
    atomic_store(&ctx->is_unlinked, is_gone);
    pthread_mutex_unlock(&ctx->lock);
}

void
posix_inode_reborn(struct xlator *xl, const struct gfid *gfid)
{
    struct inode *inode = inode_find(xl->graph->inodes, gfid);
    struct posix_inode *ctx = inode ? posix_inode_get(xl, inode) : NULL;

    if (ctx) {
        pthread_mutex_lock(&ctx->mdata_lock);
        ctx->is_mdata_known = false;
        atomic_store_explicit(&ctx->is_without_mdata, false, memory_order_relaxed);
        pthread_mutex_unlock(&ctx->mdata_lock);
        pthread_mutex_lock(&ctx->lock);
        forget_object_locked(ctx);
        atomic_store(&ctx->is_unlinked, false);
        pthread_mutex_unlock(&ctx->lock);
    }
    inode_unref(inode);
}

pthread_mutex_t *
posix_object_stripe(struct posix *p, const struct gfid *gfid)
{
    return &p->object_locks[(gfid_hash(gfid) >> 32) % POSIX_STRIPES];
}

pthread_mutex_t *
posix_name_stripe(struct posix *p, const struct gfid *parent, const char *name)
{
    uint64_t hash = gfid_hash(parent);

    for (const char *c = name; *c; c++)
        hash = (hash ^ (unsigned char)*c) * 0x100000001b3ull;
    return &p->name_locks[(hash >> 32) % POSIX_STRIPES];
}

pthread_mutex_t *
posix_object_lock(struct posix *p, const struct gfid *gfid)
{
    pthread_mutex_t *m = posix_object_stripe(p, gfid);

    pthread_mutex_lock(m);
    return m;
}

pthread_mutex_t *
posix_name_lock(struct posix *p, const struct gfid *parent, const char *name)
{
    pthread_mutex_t *m = posix_name_stripe(p, parent, name);

    pthread_mutex_lock(m);
    return m;
}

/* ---- start: is BRICK a brick of this volume? ------------------------------------------------- */

/* Sets the reason why the brick does not start, always with its path. Returns -err. */
__attribute__((format(printf, 4, 5))) static int
refuse_brick(const struct posix *p, struct reason *why, int err, const char *fmt, ...)
{
    char text[240];
    va_list ap;

    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    return reason_set(why, -err, "brick %.240s: %s", p->brick ? p->brick : posix_conf(p->xl)->directory,
                      text);
}

static int
check_mount(struct posix *p, struct reason *why)
{
    struct statx stx;

    if (!posix_conf(p->xl)->require_mount)
        return 0;
    if (statx(p->brick_fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &stx) < 0)
        return refuse_brick(p, why, errno, "cannot tell whether it is a mount: %s", strerror(errno));
    if (!(stx.stx_attributes_mask & STATX_ATTR_MOUNT_ROOT))
        return refuse_brick(p, why, EOPNOTSUPP, "this kernel cannot tell whether it is a mount");
    if (!(stx.stx_attributes & STATX_ATTR_MOUNT_ROOT))
        return refuse_brick(p, why, ENODEV, "is not a mount of its own, which option require-mount wants");
    return 0;
}

/* The storages of this process that have a claim on their folder. */
static pthread_mutex_t served_lock = PTHREAD_MUTEX_INITIALIZER;
static CDS_LIST_HEAD(served);

/* Shares the claim of the graph that this one replaces, which still serves. Copies of a descriptor share a
 * claim, which ends with the last copy. */
static bool
share_claim(struct posix *p)
{
    struct posix *other;
    int fd = -1;

    pthread_mutex_lock(&served_lock);
    cds_list_for_each_entry(other, &served, served) {
        if (other->xl->graph == p->xl->graph->replaces && other->dev == p->dev && other->ino == p->ino) {
            fd = fcntl(other->brick_fd, F_DUPFD_CLOEXEC, 0);
            break;
        }
    }
    pthread_mutex_unlock(&served_lock);
    if (fd < 0)
        return false;
    close(p->brick_fd);
    p->brick_fd = fd;
    return true;
}

static bool
brick_claim(struct posix *p)
{
    if (flock(p->brick_fd, LOCK_EX | LOCK_NB) < 0 && errno == EWOULDBLOCK && !share_claim(p))
        return false;
    pthread_mutex_lock(&served_lock);
    cds_list_add(&p->served, &served);
    pthread_mutex_unlock(&served_lock);
    return true;
}

static void
end_claim(struct posix *p)
{
    pthread_mutex_lock(&served_lock);
    cds_list_del_init(&p->served);
    pthread_mutex_unlock(&served_lock);
}

/* Checks for pending signals, because a starting process does not handle its signals yet. */
static bool
is_told_to_end(void)
{
    sigset_t pending;

    return sigpending(&pending) == 0 &&
           (sigismember(&pending, SIGTERM) == 1 || sigismember(&pending, SIGINT) == 1);
}

/* Two daemons on one brick would not see each other's locks. The claim ends with the process, however it
 * ends. A process that was told to end may take long on a slow disk: glusterd waits a second for it and
 * starts the next process, for whose start it waits two minutes. */
#define CLAIM_SECONDS 30

static bool
brick_wait_and_claim(struct posix *p)
{
    const struct timespec pause = {.tv_nsec = 50 * 1000 * 1000};
    bool is_ours = brick_claim(p);

    if (!is_ours)
        log_event(LOG_WARNING, p->xl, "posix-init-waits",
                  "another process serves it: waiting up to %d s for its end", CLAIM_SECONDS);
    for (int i = 0; !is_ours && !is_told_to_end() && i < CLAIM_SECONDS * 20; i++) {
        nanosleep(&pause, NULL);
        is_ours = brick_claim(p);
    }
    return is_ours;
}

static int
open_brick(struct posix *p, struct reason *why)
{
    const struct posix_conf *conf = posix_conf(p->xl);
    struct stat st;

    if (!conf->directory)
        return refuse_brick(p, why, EINVAL, "option directory is missing");
    p->brick = realpath(conf->directory, NULL);
    if (!p->brick)
        return refuse_brick(p, why, errno, "%s", strerror(errno));
    p->brick_len = strlen(p->brick);
    /* the suffixes "/.glusterfs/xx/yy/GFID/name" or ".glusterfs/landfill/..." must fit */
    if (p->brick_len + 64 + 2 * GFID_TEXT_SIZE + NAME_MAX > PATH_MAX)
        return refuse_brick(p, why, ENAMETOOLONG, "the path is too long");
    p->brick_fd = open(p->brick, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (p->brick_fd < 0)
        return refuse_brick(p, why, errno, "cannot be opened as a directory: %s", strerror(errno));
    if (fstat(p->brick_fd, &st) < 0)
        return refuse_brick(p, why, errno, "%s", strerror(errno));
    p->dev = st.st_dev;
    p->ino = st.st_ino;
    int r = posix_reach_probe(p);
    if (r < 0)
        return refuse_brick(p, why, -r, "openat2(2), of Linux 5.6, does not work here: %s", strerror(-r));
    if (!brick_wait_and_claim(p))
        return refuse_brick(p, why, EBUSY, "another brick process serves it");
    return check_mount(p, why);
}

static int
check_xattrs(struct posix *p, struct reason *why)
{
    char byte;

    if (fgetxattr(p->brick_fd, "trusted.glusterfs.kiln-probe", &byte, 1) < 0 && errno == EOPNOTSUPP) {
        if (posix_conf(p->xl)->mandate_attribute)
            return refuse_brick(p, why, EOPNOTSUPP, "the file system has no extended attributes");
        log_event(LOG_WARNING, p->xl, "posix-init-no-xattr-allowed",
                  "brick %s: the file system has no extended attributes", p->brick);
    }
    p->has_acl = !(fgetxattr(p->brick_fd, POSIX_ACL_ACCESS, &byte, 1) < 0 && errno == EOPNOTSUPP);
    if (!p->has_acl)
        log_event(LOG_WARNING, p->xl, "posix-init-no-acl", "brick %s: the file system has no POSIX ACLs",
                  p->brick);
    return 0;
}

/* The folder of a disk that is not mounted has no volume-id. If another volume's disk is mounted on it, it
 * has another volume-id. */
static int
check_volume_id(struct posix *p, struct reason *why)
{
    const struct gfid *wanted = &posix_conf(p->xl)->volume_id;
    struct gfid found;
    uint8_t bytes[64];

    if (gfid_is_null(wanted))
        return 0;
    ssize_t n = fgetxattr(p->brick_fd, POSIX_XATTR_VOLUME_ID, bytes, sizeof bytes);
    if (n < 0 && errno == ENODATA)
        return refuse_brick(p, why, ENODATA,
                      "has no " POSIX_XATTR_VOLUME_ID "; is the brick's file system mounted?");
    if (n < 0)
        return refuse_brick(p, why, errno, "cannot read " POSIX_XATTR_VOLUME_ID ": %s", strerror(errno));
    if (n != GFID_BYTES)
        return refuse_brick(p, why, EINVAL, POSIX_XATTR_VOLUME_ID " has %zd bytes, not 16", n);
    memcpy(&found, bytes, sizeof found);
    if (!gfid_equal(&found, wanted))
        return refuse_brick(p, why, EINVAL, "its volume-id is %s, another volume's: not %s", GFID(&found),
                      GFID(wanted));
    p->xl->graph->volume_id = found; /* logins are compared with it */
    return 0;
}

/* glusterd creates .glusterfs with the brick, and gives the volume-id to any folder that `volume start force`
 * finds in the brick's place. So a folder with an id but without handles is an emptied brick, or the mount
 * point of a disk that is not mounted. Heal would fill it. */
static int
check_handles_dir(struct posix *p, struct reason *why)
{
    struct stat st;

    if (gfid_is_null(&posix_conf(p->xl)->volume_id) ||
        fstatat(p->brick_fd, POSIX_HIDDEN_DIR, &st, AT_SYMLINK_NOFOLLOW) == 0 || errno != ENOENT)
        return 0;
    return refuse_brick(p, why, ENOENT,
                  "has no " POSIX_HIDDEN_DIR "; is the brick's file system mounted? An empty brick is made "
                  "by mkdir -m 600 %s/" POSIX_HIDDEN_DIR,
                  p->brick);
}

static int
check_root_gfid(struct posix *p, struct reason *why)
{
    uint8_t bytes[64];
    struct gfid found;
    ssize_t n = fgetxattr(p->brick_fd, POSIX_XATTR_GFID, bytes, sizeof bytes);

    if (n < 0 && errno == ENODATA) {
        if (fsetxattr(p->brick_fd, POSIX_XATTR_GFID, &gfid_root, GFID_BYTES, XATTR_CREATE) < 0)
            return refuse_brick(p, why, errno, "cannot set " POSIX_XATTR_GFID ": %s", strerror(errno));
        return 0;
    }
    if (n < 0)
        return refuse_brick(p, why, errno, "cannot read " POSIX_XATTR_GFID ": %s", strerror(errno));
    if (n != GFID_BYTES)
        return refuse_brick(p, why, EINVAL, POSIX_XATTR_GFID " has %zd bytes, not 16", n);
    memcpy(&found, bytes, sizeof found);
    if (!gfid_is_root(&found))
        return refuse_brick(p, why, EINVAL, "is the directory %s of a volume, not a volume's root",
                            GFID(&found));
    return 0;
}

/* ---- start: .glusterfs ----------------------------------------------------------------------- */

static int
make_root_handle(struct posix *p, struct reason *why)
{
    struct stat brick, handle;
    const char *path = HANDLE(&gfid_root);
    struct posix_obj obj;
    int r = posix_handle_make_parents(p, path);

    if (r >= 0 && symlinkat("../../..", p->handles_fd, path) < 0 && errno != EEXIST)
        r = -errno;
    if (r < 0)
        return refuse_brick(p, why, -r, "cannot make the root's handle: %s", strerror(-r));
    if (fstat(p->brick_fd, &brick) < 0 || fstatat(p->handles_fd, path, &handle, 0) < 0)
        return refuse_brick(p, why, errno, "cannot follow the root's handle: %s", strerror(errno));
    if (brick.st_ino != handle.st_ino || brick.st_dev != handle.st_dev)
        return refuse_brick(p, why, EINVAL,
                            "different dirs: " POSIX_HIDDEN_DIR "/%s leads to another directory", path);
    posix_obj_gfid(p, &gfid_root, true, &obj); /* check the path that calls will use */
    r = posix_obj_stat(&obj, &handle);
    return r < 0 ? refuse_brick(p, why, -r, "%s", strerror(-r)) : 0;
}

static int
make_handles_dir(struct posix *p, struct reason *why)
{
    struct stat st;

    if (mkdirat(p->brick_fd, POSIX_HIDDEN_DIR, 0700) < 0 && errno != EEXIST)
        return refuse_brick(p, why, errno, "cannot make " POSIX_HIDDEN_DIR ": %s", strerror(errno));
    p->handles_fd = openat(p->brick_fd, POSIX_HIDDEN_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (p->handles_fd < 0 || fstat(p->handles_fd, &st) < 0)
        return refuse_brick(p, why, errno, "cannot open " POSIX_HIDDEN_DIR ": %s", strerror(errno));
    if (st.st_dev != p->dev)
        return refuse_brick(p, why, EXDEV, POSIX_HIDDEN_DIR " is on another file system");
    p->handles_ino = st.st_ino;
    return make_root_handle(p, why);
}

/* Failure does not keep the brick from its service: one directory may be without its handle. */
static int
finish_move(struct posix *p, struct reason *why)
{
    int r = posix_handle_finish_move(p);

    (void)why;
    if (r < 0)
        log_event(LOG_WARNING, p->xl, "posix-move-unfinished",
                  "the last rename of a directory cannot be completed: %s", strerror(-r));
    else if (r > 0)
        log_event(LOG_INFO, p->xl, "posix-move-finished",
                  "the process died in the rename of a directory; the directory has its handle again");
    return 0;
}

/* Returns 0 or -errno. */
static int
chown_brick(struct posix *p)
{
    const struct posix_conf *conf = posix_conf(p->xl);

    if (conf->brick_uid < 0 && conf->brick_gid < 0)
        return 0;
    return fchown(p->brick_fd, (uid_t)conf->brick_uid, (gid_t)conf->brick_gid) < 0 ? -errno : 0;
}

static int
set_brick_owner(struct posix *p, struct reason *why)
{
    int err = chown_brick(p);

    return err ? refuse_brick(p, why, -err, "cannot set brick-uid and brick-gid: %s", strerror(-err)) : 0;
}

static int
take_hostname(struct posix *p, struct reason *why)
{
    const struct posix_conf *conf = posix_conf(p->xl);

    (void)why;
    if (gethostname(p->hostname, sizeof p->hostname - 1) < 0)
        strcpy(p->hostname, "localhost");
    if (conf->hostname)
        snprintf(p->hostname, sizeof p->hostname, "%s", conf->hostname);
    return 0;
}

/* ---- the type -------------------------------------------------------------------------------- */

static void
posix_free(struct posix *p)
{
    end_claim(p);
    if (p->handles_fd >= 0)
        close(p->handles_fd);
    if (p->brick_fd >= 0)
        close(p->brick_fd);
    for (int i = 0; i < POSIX_STRIPES; i++) {
        pthread_mutex_destroy(&p->name_locks[i]);
        pthread_mutex_destroy(&p->object_locks[i]);
    }
    pthread_mutex_destroy(&p->dir_rename_lock);
    for (size_t i = 0; i < POSIX_CHORES; i++)
        chore_destroy(&p->chores[i]);
    free((char *)p->brick);
    free(p);
}

static struct posix *
posix_alloc(struct xlator *xl)
{
    struct posix *p = calloc(1, sizeof *p);

    if (!p)
        return NULL;
    p->xl = xl;
    p->owner = xl->graph->owner;
    p->brick_fd = p->handles_fd = -1;
    CDS_INIT_LIST_HEAD(&p->served);
    for (int i = 0; i < POSIX_STRIPES; i++) {
        pthread_mutex_init(&p->name_locks[i], NULL);
        pthread_mutex_init(&p->object_locks[i], NULL);
    }
    pthread_mutex_init(&p->dir_rename_lock, NULL);
    return p;
}

static int
check_rights(struct posix *p, struct reason *why)
{
    char missing[256];

    if (rights_are_enough(missing, sizeof missing))
        return 0;
    return refuse_brick(p, why, EPERM, "must be served by root: trusted xattrs and owners need %s", missing);
}

static int
posix_init(struct xlator *xl, struct reason *why)
{
    static int (*const steps[])(struct posix *p, struct reason *why) = {
        check_rights,      open_brick,      check_xattrs,     check_volume_id,
        check_handles_dir, check_root_gfid, make_handles_dir, finish_move,
        set_brick_owner,   take_hostname,
    };

    struct posix *p = posix_alloc(xl);
    if (!p)
        return -ENOMEM;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < sizeof steps / sizeof steps[0]; i++)
        r = steps[i](p, why);
    if (r < 0) {
        posix_free(p);
        return r;
    }
    posix_janitor_prepare(p);
    posix_health_init(p);
    posix_janitor_init(p);
    posix_reserve_init(p);
    xl->private = p;
    return 0;
}

static int
posix_start(struct xlator *xl)
{
    struct posix *p = posix_of(xl);

    posix_health_start(p);
    posix_reserve_start(p);
    posix_janitor_take_over(p);
    return 0;
}

/* After this, no chore runs. */
static void
stop_chores(struct posix *p)
{
    for (size_t i = 0; i < POSIX_CHORES; i++)
        /* all at once, so that the wait is that of the slowest chore, not of their sum */
        chore_dismiss(&p->chores[i]);
    for (size_t i = 0; i < POSIX_CHORES; i++)
        chore_stop(&p->chores[i]);
    timer_stop(&p->health_deadline);
}

static void
posix_stop(struct xlator *xl)
{
    stop_chores(posix_of(xl));
}

static void
posix_fini(struct xlator *xl)
{
    /* a rmdir may have woken the janitor of a brick that was never started */
    stop_chores(posix_of(xl));
    posix_free(posix_of(xl));
    xl->private = NULL;
}

static void
posix_reconfigured(struct xlator *xl, const void *old)
{
    const struct posix_conf *now = posix_conf(xl), *was = old;
    bool has_new_owner = now->brick_uid != was->brick_uid || now->brick_gid != was->brick_gid;
    /* only if the option changed, because clients may have changed the owner since */
    int err = has_new_owner ? chown_brick(posix_of(xl)) : 0;

    if (err)
        log_event(LOG_ERROR, xl, "posix-brick-owner", "cannot set brick-uid and brick-gid: %s",
                  strerror(-err));
    /* Not with every change, because frequent changes could delay the check for ever. */
    if (now->health_check_interval != was->health_check_interval)
        posix_health_start(posix_of(xl));
    posix_janitor_wake(posix_of(xl));
}

static void
posix_inode_forget(struct xlator *xl, struct inode *inode, void *ptr)
{
    struct posix_inode *ctx = ptr;

    /* No fd refers to the inode any more, so its unlinked file is useless. */
    posix_drop_unlinked(xl, inode, ctx);
    posix_drop_kept_dir(inode, ctx);
    posix_inode_free(ctx);
}

static void
posix_dump(struct xlator *xl, struct dump *d)
{
    const struct posix *p = posix_of(xl);

    dump_line(d, "directory", "%s", p->brick);
    dump_line(d, "is_full", "%d", atomic_load(&p->is_full));
    dump_line(d, "is_going_down", "%d", atomic_load(&p->is_going_down));
    dump_line(d, "directory_renames", "%u", atomic_load(&p->dir_renames) / 2);
}

static const struct option posix_options[] = {
    OPT_STR(struct posix_conf, directory, "directory", NULL),
    OPT_UUID(struct posix_conf, volume_id, "volume-id"),
    OPT_UUID(struct posix_conf, glusterd_uuid, "glusterd-uuid"),
    OPT_STR(struct posix_conf, hostname, "hostname", NULL),
    OPT_INT(struct posix_conf, shared_brick_count, "shared-brick-count", "1", 0, 1 << 20),
    OPT_PERCENT_OR_SIZE(struct posix_conf, reserve, "reserve", "1"),
    OPT_TIME(struct posix_conf, health_check_interval, "health-check-interval", "30", 0, 86400),
    OPT_TIME(struct posix_conf, health_check_timeout, "health-check-timeout", "20", 0, 86400),
    OPT_TIME(struct posix_conf, janitor_sleep, "janitor-sleep-duration", "10", 1, 86400),
    OPT_INT(struct posix_conf, brick_uid, "brick-uid", "-1", -1, UINT32_MAX),
    OPT_INT(struct posix_conf, brick_gid, "brick-gid", "-1", -1, UINT32_MAX),
    OPT_OCTAL(struct posix_conf, create_mask, "create-mask", "0777"),
    OPT_OCTAL(struct posix_conf, create_directory_mask, "create-directory-mask", "0777"),
    OPT_OCTAL(struct posix_conf, force_create_mode, "force-create-mode", "0"),
    OPT_OCTAL(struct posix_conf, force_directory_mode, "force-directory-mode", "0"),
    OPT_INT(struct posix_conf, max_hardlinks, "max-hardlinks", "100", 0, UINT32_MAX),
    /* how stock delays and orders a batch; here every fsync is done before its reply */
    OPT_IGNORED("batch-fsync-mode"),
    OPT_IGNORED("batch-fsync-delay-usec"),
    OPT_BOOL(struct posix_conf, fips_rchecksum, "fips-mode-rchecksum", "off"),
    OPT_BOOL(struct posix_conf, node_uuid_pathinfo, "node-uuid-pathinfo", "off"),
    OPT_BOOL(struct posix_conf, gfid2path, "gfid2path", "on"),
    OPT_STR(struct posix_conf, gfid2path_separator, "gfid2path-separator", ":"),
    OPT_BOOL(struct posix_conf, ctime, "ctime", "on"),
    OPT_BOOL(struct posix_conf, o_direct, "o-direct", "off"),
    OPT_BOOL(struct posix_conf, export_statfs_size, "export-statfs-size", "on"),
    OPT_BOOL(struct posix_conf, mandate_attribute, "mandate-attribute", "on"),
    OPT_BOOL(struct posix_conf, disable_landfill_purge, "disable-landfill-purge", "off"),
    OPT_BOOL(struct posix_conf, require_mount, "require-mount", "off"), /* an option of Kiln only */
    OPT_BOOL(struct posix_conf, pgfid, "update-link-count-parent", "off"),
    /* These only choose how stock does its I/O. */
    OPT_IGNORED("linux-aio"),
    OPT_IGNORED("linux-io_uring"),
    OPT_IGNORED("background-unlink"),
    OPT_END,
};

static const struct xlator_ops posix_ops = {
#define POSIX_OP(name) .name = posix_fop_##name,
    POSIX_FOPS(POSIX_OP)
#undef POSIX_OP
};

const struct xlator_type storage_posix_xlator = {
    .name = "storage/posix",
    .options = posix_options,
    .at_start = (const char *const[]){"directory", "volume-id", "hostname", "mandate-attribute",
                                      "require-mount", NULL},
    .conf_size = sizeof(struct posix_conf),
    .ops = &posix_ops,
    .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD),
    .init = posix_init,
    .fini = posix_fini,
    .reconfigured = posix_reconfigured,
    .inode_forget = posix_inode_forget,
    .fd_release = posix_fd_release,
    .fd_closed = posix_fd_closed,
    .save = posix_save,
    .restore = posix_restore,
    .dump = posix_dump,
    .start = posix_start,
    .stop = posix_stop,
};
