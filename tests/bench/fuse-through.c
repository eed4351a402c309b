/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fuse-through: shows a folder at another place through FUSE, to measure the costs of the kernel's part.
 *
 *   fuse-through DIR MOUNTPOINT      in the foreground, until umount(8) or SIGTERM
 *
 * An inode is a descriptor (O_PATH), found by device and number; its address is its number at the kernel. One
 * lock guards the table. The kernel caches names and attributes for a second, as with the other mounts.
 */
#define FUSE_USE_VERSION 35
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fuse_lowlevel.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

enum { BUCKETS = 1 << 16 };

struct node {
    struct node *next;
    dev_t dev;
    ino_t ino;
    int fd;
    uint64_t lookups;
};

static struct node root;
static struct node *table[BUCKETS];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static struct node *
node_of(fuse_ino_t number)
{
    return number == FUSE_ROOT_ID ? &root : (struct node *)(uintptr_t)number; /* NOLINT: our own address */
}

static struct node **
bucket(ino_t ino)
{
    return &table[(ino * 2654435761u) % BUCKETS];
}

/* The path by which a descriptor is opened once more. */
static const char *
path_of(const struct node *n, char out[32])
{
    snprintf(out, 32, "/proc/self/fd/%d", n->fd);
    return out;
}

static void
reply(fuse_req_t req, int ret)
{
    fuse_reply_err(req, ret < 0 ? errno : 0);
}

/* Takes fd over. */
static struct node *
node_get(int fd, const struct stat *st)
{
    struct node **at = bucket(st->st_ino), *n;

    pthread_mutex_lock(&lock);
    for (n = *at; n && (n->ino != st->st_ino || n->dev != st->st_dev); n = n->next)
        ;
    if (n) {
        close(fd);
    } else if ((n = calloc(1, sizeof *n))) {
        *n = (struct node){.next = *at, .dev = st->st_dev, .ino = st->st_ino, .fd = fd};
        *at = n;
    }
    if (n)
        n->lookups++;
    pthread_mutex_unlock(&lock);
    return n;
}

static void
node_put(struct node *n, uint64_t count)
{
    struct node **at;

    if (n == &root)
        return;
    pthread_mutex_lock(&lock);
    n->lookups -= count;
    if (n->lookups) {
        pthread_mutex_unlock(&lock);
        return;
    }
    for (at = bucket(n->ino); *at != n; at = &(*at)->next)
        ;
    *at = n->next;
    pthread_mutex_unlock(&lock);
    close(n->fd);
    free(n);
}

/* 0 or -1 with errno. */
static int
look(const struct node *dir, const char *name, struct fuse_entry_param *e)
{
    int fd = openat(dir->fd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);

    *e = (struct fuse_entry_param){.attr_timeout = 1, .entry_timeout = 1};
    if (fd < 0)
        return -1;
    if (fstatat(fd, "", &e->attr, AT_EMPTY_PATH) != 0) {
        close(fd);
        return -1;
    }
    e->ino = (uintptr_t)node_get(fd, &e->attr);
    return e->ino ? 0 : -1;
}

static void
reply_look(fuse_req_t req, fuse_ino_t parent, const char *name, int made)
{
    struct fuse_entry_param e;

    if (made < 0 || look(node_of(parent), name, &e))
        fuse_reply_err(req, errno);
    else
        fuse_reply_entry(req, &e);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void
op_lookup(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply_look(req, parent, name, 0);
}

static void
op_forget(fuse_req_t req, fuse_ino_t number, uint64_t count)
{
    node_put(node_of(number), count);
    fuse_reply_none(req);
}

static void
op_forget_multi(fuse_req_t req, size_t count, struct fuse_forget_data *all)
{
    for (size_t i = 0; i < count; i++)
        node_put(node_of(all[i].ino), all[i].nlookup);
    fuse_reply_none(req);
}

static void
op_mkdir(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode)
{
    reply_look(req, parent, name, mkdirat(node_of(parent)->fd, name, mode));
}

static void
op_symlink(fuse_req_t req, const char *target, fuse_ino_t parent, const char *name)
{
    reply_look(req, parent, name, symlinkat(target, node_of(parent)->fd, name));
}

static void
op_link(fuse_req_t req, fuse_ino_t number, fuse_ino_t parent, const char *name)
{
    char path[32];

    path_of(node_of(number), path);
    reply_look(req, parent, name, linkat(AT_FDCWD, path, node_of(parent)->fd, name, AT_SYMLINK_FOLLOW));
}

static void
op_unlink(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply(req, unlinkat(node_of(parent)->fd, name, 0));
}

static void
op_rmdir(fuse_req_t req, fuse_ino_t parent, const char *name)
{
    reply(req, unlinkat(node_of(parent)->fd, name, AT_REMOVEDIR));
}

static void
op_rename(fuse_req_t req, fuse_ino_t parent, const char *name, fuse_ino_t parent2, const char *name2,
          unsigned flags)
{
    reply(req, renameat2(node_of(parent)->fd, name, node_of(parent2)->fd, name2, flags));
}

static void
op_readlink(fuse_req_t req, fuse_ino_t number)
{
    char target[4097];
    ssize_t n = readlinkat(node_of(number)->fd, "", target, sizeof target - 1);

    if (n < 0) {
        fuse_reply_err(req, errno);
        return;
    }
    target[n] = '\0';
    fuse_reply_readlink(req, target);
}

/* ---- attributes ------------------------------------------------------------------------------ */

static void
op_getattr(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    struct stat st;

    (void)fi;
    if (fstatat(node_of(number)->fd, "", &st, AT_EMPTY_PATH) != 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_attr(req, &st, 1);
}

static int
set_times(const char *path, const struct stat *attr, int what)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = UTIME_OMIT}};

    if (what & FUSE_SET_ATTR_ATIME)
        times[0] = attr->st_atim;
    if (what & FUSE_SET_ATTR_MTIME)
        times[1] = attr->st_mtim;
    if (what & FUSE_SET_ATTR_ATIME_NOW)
        times[0].tv_nsec = UTIME_NOW;
    if (what & FUSE_SET_ATTR_MTIME_NOW)
        times[1].tv_nsec = UTIME_NOW;
    return utimensat(AT_FDCWD, path, times, 0);
}

static void
op_setattr(fuse_req_t req, fuse_ino_t number, struct stat *attr, int what, struct fuse_file_info *fi)
{
    struct node *n = node_of(number);
    char path[32];
    int ret = 0;

    path_of(n, path);
    if (what & FUSE_SET_ATTR_MODE)
        ret = chmod(path, attr->st_mode);
    if (!ret && what & (FUSE_SET_ATTR_UID | FUSE_SET_ATTR_GID))
        ret = fchownat(n->fd, "", what & FUSE_SET_ATTR_UID ? attr->st_uid : (uid_t)-1,
                       what & FUSE_SET_ATTR_GID ? attr->st_gid : (gid_t)-1, AT_EMPTY_PATH);
    if (!ret && what & FUSE_SET_ATTR_SIZE)
        ret = truncate(path, attr->st_size);
    if (!ret && what & (FUSE_SET_ATTR_ATIME | FUSE_SET_ATTR_MTIME))
        ret = set_times(path, attr, what);
    if (ret)
        fuse_reply_err(req, errno);
    else
        op_getattr(req, number, fi);
}

static void
op_statfs(fuse_req_t req, fuse_ino_t number)
{
    struct statvfs st;

    (void)number;
    if (fstatvfs(root.fd, &st) != 0)
        fuse_reply_err(req, errno);
    else
        fuse_reply_statfs(req, &st);
}

/* ---- files ----------------------------------------------------------------------------------- */

static void
op_create(fuse_req_t req, fuse_ino_t parent, const char *name, mode_t mode, struct fuse_file_info *fi)
{
    int fd = openat(node_of(parent)->fd, name, (fi->flags | O_CREAT | O_CLOEXEC) & ~O_NOFOLLOW, mode);
    struct fuse_entry_param e;

    if (fd < 0 || look(node_of(parent), name, &e)) {
        fuse_reply_err(req, errno);
        return;
    }
    fi->fh = (uint64_t)fd;
    fuse_reply_create(req, &e, fi);
}

static void
op_open(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    char path[32];
    int fd = open(path_of(node_of(number), path), (fi->flags | O_CLOEXEC) & ~(O_NOFOLLOW | O_DIRECT));

    if (fd < 0) {
        fuse_reply_err(req, errno);
        return;
    }
    fi->fh = (uint64_t)fd;
    fi->keep_cache = 1;
    fuse_reply_open(req, fi);
}

static void
op_release(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void)number;
    close((int)fi->fh);
    fuse_reply_err(req, 0);
}

static void
op_read(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi)
{
    struct fuse_bufvec buf = FUSE_BUFVEC_INIT(size);

    (void)number;
    buf.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    buf.buf[0].fd = (int)fi->fh;
    buf.buf[0].pos = off;
    fuse_reply_data(req, &buf, 0);
}

static void
op_write_buf(fuse_req_t req, fuse_ino_t number, struct fuse_bufvec *in, off_t off, struct fuse_file_info *fi)
{
    struct fuse_bufvec out = FUSE_BUFVEC_INIT(fuse_buf_size(in));

    (void)number;
    out.buf[0].flags = FUSE_BUF_IS_FD | FUSE_BUF_FD_SEEK;
    out.buf[0].fd = (int)fi->fh;
    out.buf[0].pos = off;
    ssize_t n = fuse_buf_copy(&out, in, 0);

    if (n < 0)
        fuse_reply_err(req, (int)-n);
    else
        fuse_reply_write(req, (size_t)n);
}

static void
op_fsync(fuse_req_t req, fuse_ino_t number, int datasync, struct fuse_file_info *fi)
{
    (void)number;
    reply(req, datasync ? fdatasync((int)fi->fh) : fsync((int)fi->fh));
}

/* ---- directories ----------------------------------------------------------------------------- */

static void
op_opendir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    int fd = openat(node_of(number)->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);

    if (!dir) {
        fuse_reply_err(req, errno);
        return;
    }
    fi->fh = (uintptr_t)dir;
    fuse_reply_open(req, fi);
}

static void
op_releasedir(fuse_req_t req, fuse_ino_t number, struct fuse_file_info *fi)
{
    (void)number;
    closedir((DIR *)(uintptr_t)fi->fh); /* NOLINT: our own address */
    fuse_reply_err(req, 0);
}

static void
op_readdirplus(fuse_req_t req, fuse_ino_t number, size_t size, off_t off, struct fuse_file_info *fi)
{
    DIR *dir = (DIR *)(uintptr_t)fi->fh; /* NOLINT: our own address */
    char *out = malloc(size);
    size_t used = 0;
    struct dirent *d;

    if (!out) {
        fuse_reply_err(req, ENOMEM);
        return;
    }
    seekdir(dir, off);
    while ((d = readdir(dir))) {
        struct fuse_entry_param e = {.attr = {.st_ino = d->d_ino, .st_mode = (mode_t)(d->d_type << 12)}};
        bool is_dot = strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0;

        if (!is_dot && look(node_of(number), d->d_name, &e))
            continue; /* removed meanwhile */
        size_t bytes = fuse_add_direntry_plus(req, out + used, size - used, d->d_name, &e, d->d_off);

        if (bytes > size - used) {
            if (!is_dot)
                node_put(node_of(e.ino), 1);
            break;
        }
        used += bytes;
    }
    fuse_reply_buf(req, out, used);
    free(out);
}

static const struct fuse_lowlevel_ops ops = {
    .lookup = op_lookup,
    .forget = op_forget,
    .forget_multi = op_forget_multi,
    .getattr = op_getattr,
    .setattr = op_setattr,
    .readlink = op_readlink,
    .mkdir = op_mkdir,
    .unlink = op_unlink,
    .rmdir = op_rmdir,
    .symlink = op_symlink,
    .rename = op_rename,
    .link = op_link,
    .open = op_open,
    .create = op_create,
    .read = op_read,
    .write_buf = op_write_buf,
    .release = op_release,
    .fsync = op_fsync,
    .opendir = op_opendir,
    .readdirplus = op_readdirplus,
    .releasedir = op_releasedir,
    .statfs = op_statfs,
};

int
main(int argc, char **argv)
{
    char *words[] = {argv[0], "-o", "default_permissions,allow_other,fsname=fuse-through"};
    struct fuse_args args = FUSE_ARGS_INIT(3, words);
    struct fuse_loop_config config = {.clone_fd = 1, .max_idle_threads = 4};

    if (argc != 3 || (root.fd = open(argv[1], O_PATH | O_DIRECTORY)) < 0) {
        fprintf(stderr, "usage: fuse-through DIR MOUNTPOINT\n");
        return 2;
    }
    umask(0);
    struct fuse_session *se = fuse_session_new(&args, &ops, sizeof ops, NULL);

    if (!se || fuse_set_signal_handlers(se) || fuse_session_mount(se, argv[2]))
        return 1;
    int ret = fuse_session_loop_mt(se, &config);

    fuse_session_unmount(se);
    fuse_remove_signal_handlers(se);
    fuse_session_destroy(se);
    return ret < 0;
}
