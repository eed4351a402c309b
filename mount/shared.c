/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "mount/shared.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/parcel.h"
#include "log/log.h"
#include "mount/mount.h"
#include "mount/option-table.h"

enum { PACKET_MAX = 65536, REPLY_MAX = 1200 };
enum { TAKE_MS = 5000, REST_MS = 200, AGAIN_US = 50000, AGAIN_MAX = 1200 };

/* ---- packets --------------------------------------------------------------------------------- */

/* The packet under construction. `used` counts bytes beyond `size` too, so that the end finds an overflow. */
struct packet {
    char *bytes;
    size_t size, used;
};

static void
packet_put(struct packet *p, const char *name, const char *value)
{
    size_t left = p->used < p->size ? p->size - p->used : 0;

    if (value)
        p->used += (size_t)snprintf(left ? p->bytes + p->used : NULL, left, "%s=%s", name, value) + 1;
}

static const char *
packet_name(const struct mount_option *row)
{
    return row->sent_as ? row->sent_as : row->name;
}

/* Is the option kept in a member that belongs to the mount? */
static bool
is_sent(const struct mount_option *row)
{
    return !row->is_of_process && (row->kind == OPTION_TEXT || row->kind == OPTION_TEXTS ||
                                   row->kind == OPTION_FLAG || row->kind == OPTION_NUMBER);
}

static void
packet_put_row(struct packet *p, const struct mount_option *row, const struct mount_options *o)
{
    const char *at = (const char *)o + row->at, *name = packet_name(row);
    const char *const *texts = (const char *const *)(const void *)at;
    char number[16];

    switch (row->kind) {
    case OPTION_TEXT:
        packet_put(p, name, *texts);
        break;
    case OPTION_TEXTS:
        for (unsigned i = 0; i < *(const unsigned *)(const void *)((const char *)o + row->count_at); i++)
            packet_put(p, name, texts[i]);
        break;
    case OPTION_FLAG:
        packet_put(p, name, *(const bool *)at ? "on" : NULL);
        break;
    default:
        snprintf(number, sizeof number, "%u", *(const unsigned *)(const void *)at);
        packet_put(p, name, number);
        break;
    }
}

/* Reads the name of a namespace, which is the same for all processes in that namespace. */
static void
name_namespace(const char *link, char *out, size_t size)
{
    ssize_t n = readlink(link, out, size - 1);

    out[n < 0 ? 0 : n] = '\0';
}

int
shared_encode(const struct mount_options *o, const char *mountpoint, char *out, size_t size)
{
    struct packet p = {.bytes = out, .size = size};
    char place[64];

    name_namespace("/proc/self/ns/mnt", place, sizeof place);
    packet_put(&p, "namespace", place);
    packet_put(&p, "mountpoint", mountpoint);
    for (const struct mount_option *row = mount_option_rows; row->name; row++) {
        if (is_sent(row))
            packet_put_row(&p, row, o);
    }
    return p.used <= size ? (int)p.used : -ENOSPC;
}

static bool
parse_packet_word(struct mount_options *o, const char *name, char *value)
{
    const struct mount_option *row = mount_option_rows;

    while (row->name && (!is_sent(row) || strcmp(packet_name(row), name) != 0))
        row++;
    if (!row->name)
        return false;
    char *at = (char *)o + row->at;
    unsigned *count = (unsigned *)(void *)((char *)o + row->count_at);

    switch (row->kind) {
    case OPTION_TEXT:
        *(const char **)(void *)at = value;
        return true;
    case OPTION_TEXTS:
        if (*count == row->max)
            return false;
        ((const char **)(void *)at)[(*count)++] = value;
        return true;
    case OPTION_FLAG:
        *(bool *)at = true;
        return true;
    default:
        *(unsigned *)(void *)at = (unsigned)strtoul(value, NULL, 10);
        return true;
    }
}

int
shared_decode(char *packet, size_t bytes, struct mount_options *o, const char **mountpoint,
              const char **bad_word)
{
    char place[64];
    bool is_here = false;

    *o = (struct mount_options){0};
    *mountpoint = NULL;
    *bad_word = "the end";
    if (!bytes || packet[bytes - 1])
        return -EINVAL;
    name_namespace("/proc/self/ns/mnt", place, sizeof place);
    for (char *word = packet, *next; word < packet + bytes; word = next) {
        char *equals = strchr(word, '=');

        next = word + strlen(word) + 1;
        *bad_word = word;
        if (!equals)
            return -EINVAL;
        *equals = '\0';
        if (strcmp(word, "mountpoint") == 0)
            *mountpoint = equals + 1;
        else if (strcmp(word, "namespace") == 0)
            is_here = strcmp(equals + 1, place) == 0;
        else if (!parse_packet_word(o, word, equals + 1))
            return -EINVAL;
    }
    *bad_word = is_here ? "mountpoint" : "namespace";
    bool is_whole = *mountpoint && (o->volfile || (o->server_count && o->volume));

    return is_here && is_whole ? 0 : -EINVAL;
}

/* ---- asking ---------------------------------------------------------------------------------- */

static int
socket_at(const char *path, struct sockaddr_un *to)
{
    *to = (struct sockaddr_un){.sun_family = AF_UNIX};
    if (strlen(path) >= sizeof to->sun_path)
        return -ENAMETOOLONG;
    strcpy(to->sun_path, path);
    int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    return fd < 0 ? -errno : fd;
}

/* Tells whether the process at the other end sees the same mounts. A process outside of a container that
 * shares /run has the id 0 here. */
static bool
is_in_namespace(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;
    char name[64], own[64], other[64];

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) < 0)
        return true;
    snprintf(name, sizeof name, "/proc/%d/ns/mnt", (int)who.pid);
    name_namespace("/proc/self/ns/mnt", own, sizeof own);
    name_namespace(name, other, sizeof other);
    return who.pid != 0 && (!*other || strcmp(own, other) == 0);
}

static bool
is_root(int fd)
{
    struct ucred who;
    socklen_t size = sizeof who;

    return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &size) == 0 && who.uid == geteuid();
}

/* Asks for a mount, and returns the outcome. A reply of no bytes: the other process has ended, or is about to
 * end. */
static enum shared_outcome
exchange(int fd, const char *packet, size_t bytes, int *status, char *why, size_t why_size)
{
    char reply[REPLY_MAX];

    if (!is_root(fd)) {
        snprintf(why, why_size, "the socket is not root's");
        return SHARED_FAILED;
    }
    if (!is_in_namespace(fd))
        return SHARED_ELSEWHERE;
    if (send(fd, packet, bytes, MSG_NOSIGNAL) < 0)
        return SHARED_NONE;
    ssize_t n = recv(fd, reply, sizeof reply - 1, 0);
    if (n < 1)
        return SHARED_NONE;
    reply[n] = '\0';
    *status = (unsigned char)reply[0];
    snprintf(why, why_size, "%s", reply + 1);
    return SHARED_JOINED;
}

enum shared_outcome
shared_join(const char *path, const struct mount_options *o, const char *mountpoint, int *status, char *why,
            size_t why_size)
{
    struct sockaddr_un to;
    char *packet = malloc(PACKET_MAX);
    int bytes = packet ? shared_encode(o, mountpoint, packet, PACKET_MAX) : -ENOMEM;
    int fd = bytes < 0 ? bytes : socket_at(path, &to);
    enum shared_outcome outcome = SHARED_NONE;

    if (fd < 0) {
        snprintf(why, why_size, "%s: %s", path, strerror(-fd));
        outcome = SHARED_FAILED;
    } else if (connect(fd, (struct sockaddr *)&to, sizeof to) == 0) {
        outcome = exchange(fd, packet, (size_t)bytes, status, why, why_size);
    }
    if (fd >= 0)
        close(fd);
    free(packet);
    return outcome;
}

/* ---- the shared process ---------------------------------------------------------------------- */

static int lock_fd = -1, listen_fd = -1, stop_fds[2] = {-1, -1};
static pthread_t taker;

/* Takes the lock. Returns 0 or -errno; -EWOULDBLOCK: another process has the lock. */
static int
lock_beside_socket(const char *path)
{
    char name[128];

    snprintf(name, sizeof name, "%s.lock", path);
    int fd = open(name, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return -errno;
    if (flock(fd, LOCK_EX | LOCK_NB) < 0) {
        int err = -errno;

        close(fd);
        return err;
    }
    lock_fd = fd;
    return 0;
}

enum shared_outcome
shared_find(const char *path, const struct mount_options *o, const char *mountpoint, int *status, char *why,
            size_t why_size)
{
    for (int i = 0; i < AGAIN_MAX; i++, usleep(AGAIN_US)) { /* another process starts or ends */
        enum shared_outcome outcome = shared_join(path, o, mountpoint, status, why, why_size);
        int err = outcome == SHARED_NONE ? lock_beside_socket(path) : 0;

        if (outcome != SHARED_NONE)
            return outcome;
        if (!err)
            return SHARED_FIRST;
        if (err != -EWOULDBLOCK) {
            snprintf(why, why_size, "%s.lock: %s", path, strerror(-err));
            return SHARED_FAILED;
        }
    }
    snprintf(why, why_size, "the process that holds %s.lock has not begun to answer for a minute", path);
    return SHARED_FAILED;
}

enum shared_outcome
shared_await(const char *path, const struct mount_options *o, const char *mountpoint, int *status, char *why,
             size_t why_size)
{
    for (int i = 0; i < AGAIN_MAX; i++, usleep(AGAIN_US)) {
        enum shared_outcome outcome = shared_join(path, o, mountpoint, status, why, why_size);

        if (outcome != SHARED_NONE)
            return outcome;
    }
    snprintf(why, why_size, SHARED_SERVICE " was started and does not answer at %s; its log: journalctl -u "
             SHARED_SERVICE, path);
    return SHARED_FAILED;
}

int
shared_become(const char *path)
{
    return lock_beside_socket(path);
}

/* ---- systemd --------------------------------------------------------------------------------- */

/* Tells whether systemd runs this machine and sees the same mounts. */
static bool
has_systemd(void)
{
    char own[64], its[64];

    name_namespace("/proc/self/ns/mnt", own, sizeof own);
    name_namespace("/proc/1/ns/mnt", its, sizeof its);
    return access("/run/systemd/system", F_OK) == 0 && strcmp(own, its) == 0;
}

bool
shared_start_service(void)
{
    static char *const argv[] = {"systemctl", "-q", "start", SHARED_SERVICE, NULL};
    posix_spawn_file_actions_t quiet;
    int status = -1;
    pid_t pid;

    if (!has_systemd() || posix_spawn_file_actions_init(&quiet))
        return false;
    /* a missing unit, or the unit of an older package, is no error here */
    int err = posix_spawn_file_actions_addopen(&quiet, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    err = err ? err : posix_spawnp(&pid, argv[0], &quiet, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&quiet);
    while (!err && waitpid(pid, &status, 0) < 0)
        err = errno == EINTR ? 0 : errno;
    return !err && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* ---- answering ------------------------------------------------------------------------------- */

static void
reply(int fd, int status, const char *why)
{
    char packet[REPLY_MAX];
    int n = snprintf(packet, sizeof packet, "%c%s", (char)status, why ? why : "");

    packet[0] = (char)status; /* after snprintf(), because a status of 0 would end the text */
    if (send(fd, packet, (size_t)(n < REPLY_MAX ? n : REPLY_MAX - 1), MSG_NOSIGNAL) < 0)
        log_event(LOG_WARNING, NULL, "shared-no-reply", "who asked for a mount has gone: %s",
                  strerror(errno));
    close(fd);
}

static void
settled(int status, const char *why, void *arg)
{
    reply((int)(intptr_t)arg, status, why);
}

/* Hands the connection to the mount, whose settled() replies, or replies with an error at once. */
static void
start_requested_mount(int fd, char *packet, size_t bytes)
{
    struct mount_options o;
    const char *mountpoint, *word;
    char why[2 * PATH_MAX + 128];

    if (shared_decode(packet, bytes, &o, &mountpoint, &word)) {
        snprintf(why, sizeof why, "the shared process does not take %s", word);
        free(packet);
        reply(fd, EXIT_FAILURE, why);
        return;
    }
    int err = mounts_add(&o, mountpoint, packet, settled, (void *)(intptr_t)fd);
    if (!err)
        return;
    snprintf(why, sizeof why, MOUNTED_ALREADY, mountpoint, mountpoint);
    if (err == -ESHUTDOWN) /* the client tries again, and becomes the shared process after this process */
        close(fd);
    else
        reply(fd, err == -EEXIST ? EXIT_MOUNTED : EXIT_FAILURE, err == -EEXIST ? why : strerror(-err));
    free(packet);
}

static void
serve_connection(int fd)
{
    char *packet = malloc(PACKET_MAX);
    struct timeval patience = {.tv_sec = TAKE_MS / 1000};

    (void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    ssize_t n = packet && is_root(fd) ? recv(fd, packet, PACKET_MAX, 0) : -1;
    if (n > 0) {
        start_requested_mount(fd, packet, (size_t)n);
        return;
    }
    log_event(LOG_WARNING, NULL, "shared-no-request", "a connection without a request");
    free(packet);
    close(fd);
}

/* Pauses after accept4() failed for lack of descriptors or memory. The client stays in the queue, so poll()
 * would report the client again at once. */
static void
rest(struct pollfd *stop, int err)
{
    log_event(LOG_WARNING, NULL, "shared-not-taken", "a request for a mount waits: %s", strerror(err));
    (void)poll(stop, 1, REST_MS);
}

static void *
serve_mount_requests(void *arg)
{
    struct pollfd fds[2] = {{.fd = listen_fd, .events = POLLIN}, {.fd = stop_fds[0], .events = POLLIN}};

    (void)arg;
    pthread_setname_np(pthread_self(), "kiln-shared");
    while (!fds[1].revents) {
        if (poll(fds, 2, -1) < 1 || !fds[0].revents)
            continue;
        int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC);
        if (fd >= 0)
            serve_connection(fd);
        else
            rest(&fds[1], errno);
    }
    return NULL;
}

static int
open_socket(const char *path)
{
    struct sockaddr_un to;
    int fd = socket_at(path, &to), err = 0;

    if (fd < 0)
        return fd;
    unlink(path); /* the socket of a killed process, because this process has the lock */
    /* The mode comes before the name, so that no other user could ever connect. */
    if (fchmod(fd, 0600) < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) < 0 || listen(fd, 64) < 0)
        err = -errno;
    if (err)
        close(fd);
    return err ? err : fd;
}

int
shared_listen(const char *path)
{
    int err = 0;

    if (listen_fd < 0)
        listen_fd = open_socket(path);
    if (listen_fd < 0)
        return listen_fd;
    if (pipe2(stop_fds, O_CLOEXEC) < 0)
        return -errno;
    err = pthread_create(&taker, NULL, serve_mount_requests, NULL);
    if (!err)
        return 0;
    close(stop_fds[0]);
    close(stop_fds[1]);
    stop_fds[1] = -1;
    return -err;
}

void
shared_end(const char *path)
{
    if (stop_fds[1] >= 0) {
        close(stop_fds[1]); /* wakes the thread, which then ends */
        pthread_join(taker, NULL);
        close(stop_fds[0]);
    }
    if (listen_fd >= 0) {
        unlink(path);
        close(listen_fd); /* clients in the queue ask again */
    }
    if (lock_fd >= 0)
        close(lock_fd);
}

/* ---- a newer program ------------------------------------------------------------------------- */

void
shared_save(struct parcel *to)
{
    parcel_put_u32(to, (uint32_t)lock_fd);
    parcel_put_u32(to, (uint32_t)listen_fd);
}

int
shared_keep_open(bool keeps)
{
    int flags = keeps ? 0 : FD_CLOEXEC;

    return fcntl(lock_fd, F_SETFD, flags) || fcntl(listen_fd, F_SETFD, flags) ? -errno : 0;
}

void
shared_restore(struct parcel *from)
{
    lock_fd = (int)parcel_get_u32(from);
    listen_fd = (int)parcel_get_u32(from);
    if (shared_keep_open(false))
        lock_fd = listen_fd = -1; /* another process may have the mounts from now on */
}
