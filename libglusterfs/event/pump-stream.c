/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* The bytes of a pump's child.
 *
 * A move goes on until one side would block, because events are edge-triggered, or until the stream has
 * used its turn. It runs only on workers, whose signals are all blocked, so writing to a child that does
 * not read gives EPIPE and no SIGPIPE. */
#include <errno.h>
#include <fcntl.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event/pump-internal.h"
#include "mem/iobuf.h"

#define TURN_BYTES (1u << 20)

/* ---- ends ------------------------------------------------------------------------------------ */

/* Moves a descriptor above 0, 1 and 2, which will be the child's own. */
static int
raise_fd(int fd)
{
    if (fd > 2)
        return fd;
    int high = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    int err = errno;

    close(fd);
    errno = err;
    return high;
}

/* fds[0] is ours. The child's end blocks, as programs expect. */
static int
pipe_open(int fds[2], bool is_input, size_t bytes)
{
    int both[2];

    if (pipe2(both, O_CLOEXEC))
        return -errno;
    fds[0] = raise_fd(both[is_input]);
    int err = fds[0] < 0 ? -errno : 0;

    fds[1] = raise_fd(both[!is_input]);
    if (!err && fds[1] < 0)
        err = -errno;
    if (!err && fcntl(fds[0], F_SETFL, O_NONBLOCK) < 0)
        err = -errno;
    if (err) {
        for (int i = 0; i < 2; i++) {
            if (fds[i] >= 0)
                close(fds[i]);
        }
        return err;
    }
    if (bytes) /* fails at the limits of an unprivileged user; the pipe works without */
        (void)fcntl(fds[0], F_SETPIPE_SZ, (int)(bytes < INT32_MAX ? bytes : INT32_MAX));
    return 0;
}

static int
open_pipe(struct pump *p, struct stream *s, size_t bytes, unsigned wake, int *child_fd)
{
    int fds[2], err = pipe_open(fds, s->is_input, bytes);

    if (err)
        return err;
    *child_fd = fds[1];
    s->is_open = true;
    return port_open(&s->pipe, p, fds[0], s->is_input ? EPOLLOUT : EPOLLIN | EPOLLRDHUP, wake);
}

/* Refuses a descriptor on which a worker would have to wait for the other end. Regular files never block
 * in this sense. */
static int
open_other(struct pump *p, struct stream *s, int fd, unsigned wake)
{
    struct stat st;
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || fstat(fd, &st))
        return -errno;
    bool is_file = S_ISREG(st.st_mode) || S_ISBLK(st.st_mode);

    if (!is_file && !S_ISCHR(st.st_mode) && !(flags & O_NONBLOCK))
        return -EINVAL;
    int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

    if (own < 0)
        return -errno;
    int err = port_open(&s->other, p, own, s->is_input ? EPOLLIN | EPOLLRDHUP : EPOLLOUT, wake);

    return err == -EPERM ? 0 : err; /* a file, or a device like a file: never blocks */
}

/* The child gets the descriptor itself, without a stream. */
static int
give_descriptor(int fd, int *child_fd)
{
    *child_fd = fcntl(fd, F_DUPFD_CLOEXEC, 3);
    return *child_fd < 0 ? -errno : 0;
}

int
stream_open_in(struct pump *p, const struct pump_options *o, int *child_fd)
{
    struct stream *s = &p->in;

    s->is_input = true;
    s->kind = o->in.kind;
    s->bytes = o->in.bytes;
    s->bytes_left = o->in.count;
    s->source = o->in.fn;
    if (s->kind == PUMP_NULL)
        return 0;
    if (s->kind == PUMP_GIVE)
        return give_descriptor(o->in.fd, child_fd);
    if (s->kind == PUMP_SAME || (s->kind == PUMP_FN && !s->source))
        return -EINVAL;
    int err = open_pipe(p, s, o->pipe_bytes, WAKE_IN, child_fd);

    return err || s->kind != PUMP_FD ? err : open_other(p, s, o->in.fd, WAKE_IN);
}

int
stream_open_out(struct pump *p, struct stream *s, const struct pump_sink *sink, size_t pipe_bytes,
                unsigned wake, int *child_fd)
{
    s->kind = sink->kind;
    s->sink = sink->fn;
    if (s->kind == PUMP_NULL || (s->kind == PUMP_SAME && s == &p->err))
        return 0;
    if (s->kind == PUMP_GIVE)
        return give_descriptor(sink->fd, child_fd);
    if (s->kind == PUMP_SAME || s->kind == PUMP_BYTES || (s->kind == PUMP_FN && !s->sink))
        return -EINVAL;
    int err = open_pipe(p, s, pipe_bytes, wake, child_fd);

    return err || s->kind != PUMP_FD ? err : open_other(p, s, sink->fd, wake);
}

void
stream_close(struct stream *s)
{
    s->is_open = false;
    port_close(&s->pipe);
    port_close(&s->other);
    iobuf_unref(s->buf);
    s->buf = NULL;
}

/* ---- the buffer ------------------------------------------------------------------------------ */

static int
buffer_take(struct stream *s)
{
    if (!s->buf)
        s->buf = iobuf_get(s->pump->buffer_bytes);
    s->start = s->end = 0;
    return s->buf ? 0 : -ENOMEM;
}

/* The usable size: the pool's buffer may be larger than requested. */
static size_t
buffer_room(const struct stream *s)
{
    return s->buf->size < s->pump->buffer_bytes ? s->buf->size : s->pump->buffer_bytes;
}

/* Frees an empty buffer, so that a waiting stream holds none. */
static int
buffer_done(struct stream *s, int result)
{
    if (s->start == s->end) {
        iobuf_unref(s->buf);
        s->buf = NULL;
        s->start = s->end = 0;
    }
    return result;
}

/* Writes the contents of the buffer. 0 when it is empty, or -errno. */
static int
buffer_write(struct stream *s, int fd)
{
    while (s->start < s->end) {
        ssize_t n = write(fd, s->buf->bytes + s->start, s->end - s->start);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return -errno;
        s->start += (size_t)n;
        if (s->is_input)
            s->moved += (uint64_t)n;
    }
    return 0;
}

/* ---- moving ---------------------------------------------------------------------------------- */

static void
count_output(struct stream *s, size_t n)
{
    s->moved += n;
    s->pump->output_bytes += n;
}

/* Number of bytes of the child's output that may be taken at once; 0: the limit is reached. */
static size_t
output_room(const struct stream *s, size_t most)
{
    const struct pump *p = s->pump;

    if (!p->output_bytes_max)
        return most;
    uint64_t room = p->output_bytes_max - p->output_bytes;

    return room < most ? (size_t)room : most;
}

/* Result for an empty pipe of the child. Once the child is gone the pipe counts as ended, even if another
 * process holds its other end. */
static int
output_empty(const struct stream *s)
{
    return s->pump->is_reaped ? MOVED_END : MOVED_ALL;
}

/* The limit is reached, which is no error if the child writes no more. */
static int
output_beyond(struct stream *s)
{
    char one;
    ssize_t n;

    do {
        n = read(s->pipe.src.fd, &one, 1);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        return -EFBIG;
    return n == 0 ? MOVED_END : errno == EAGAIN ? output_empty(s) : -errno;
}

/* A child that does not read all its input is no error. */
static int
input_failed(int err)
{
    return err == -EAGAIN ? MOVED_ALL : err == -EPIPE ? MOVED_END : err;
}

static int
move_bytes(struct stream *s)
{
    while (s->bytes_left) {
        ssize_t n = write(s->pipe.src.fd, s->bytes, s->bytes_left);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return input_failed(-errno);
        s->bytes += n;
        s->bytes_left -= (size_t)n;
        s->moved += (uint64_t)n;
    }
    return MOVED_END;
}

static int
move_from_function(struct stream *s)
{
    for (size_t turn = 0; turn < TURN_BYTES;) {
        int err = s->buf ? buffer_write(s, s->pipe.src.fd) : 0;

        if (err)
            return input_failed(err);
        if ((err = buffer_take(s)))
            return err;
        ssize_t n = s->source(s->pump->arg, s->buf->bytes, buffer_room(s));

        if (n <= 0)
            return n == 0 ? MOVED_END : n == -EAGAIN ? MOVED_ALL : (int)n;
        s->end = (size_t)n;
        turn += (size_t)n;
    }
    return MOVED_TURN;
}

/* Passes the bytes of the buffer to the sink. 0; -EAGAIN: the sink accepts none now, and they stay;
 * -errno. */
static int
buffer_sink(struct stream *s)
{
    int err = s->start < s->end ? s->sink(s->pump->arg, s->buf->bytes, s->end) : 0;

    if (err != -EAGAIN)
        s->start = s->end = 0;
    return err;
}

static int
move_to_function(struct stream *s)
{
    int err = s->buf ? buffer_sink(s) : 0;

    if (!err)
        err = buffer_take(s);
    for (size_t turn = 0; !err && turn < TURN_BYTES;) {
        size_t room = output_room(s, buffer_room(s));

        if (room == 0)
            return output_beyond(s);
        ssize_t n = read(s->pipe.src.fd, s->buf->bytes, room);

        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return n == 0 ? MOVED_END : errno == EAGAIN ? output_empty(s) : -errno;
        count_output(s, (size_t)n);
        turn += (size_t)n;
        s->end = (size_t)n;
        err = buffer_sink(s);
    }
    return err == -EAGAIN ? MOVED_ALL : err ? err : MOVED_TURN;
}

/* Moves up to `most` bytes from the source, into the buffer if splice is impossible. Returns their number;
 * 0: the source's end; -EAGAIN: one of the two sides would block. */
static ssize_t
stream_take(struct stream *s, int from, int to, size_t most)
{
    ssize_t n;

    if (!s->cannot_splice) {
        n = splice(from, NULL, to, NULL, most, SPLICE_F_NONBLOCK | SPLICE_F_MOVE);
        if (n > 0 && s->is_input)
            s->moved += (uint64_t)n;
        /* a file opened to append, a terminal, some file systems */
        s->cannot_splice = n < 0 && errno == EINVAL;
        if (!s->cannot_splice)
            return n < 0 ? -errno : n;
    }
    int err = buffer_take(s);

    if (err)
        return err;
    n = read(from, s->buf->bytes, most < s->buf->size ? most : s->buf->size);
    if (n > 0)
        s->end = (size_t)n;
    return n < 0 ? -errno : n;
}

/* Finds out which side would block: an empty pipe of the child may be the end. */
static int
pass_blocked(const struct stream *s)
{
    int left = 0;

    if (s->is_input || (s->buf && s->start < s->end) || ioctl(s->pipe.src.fd, FIONREAD, &left) || left > 0)
        return MOVED_ALL;
    return output_empty(s);
}

static int
move_descriptor(struct stream *s)
{
    int from = s->is_input ? s->other.src.fd : s->pipe.src.fd;
    int to = s->is_input ? s->pipe.src.fd : s->other.src.fd;

    for (size_t turn = 0; turn < TURN_BYTES;) {
        int err = s->buf ? buffer_write(s, to) : 0;

        if (err)
            return s->is_input || err == -EAGAIN ? input_failed(err) : err;
        size_t most = s->is_input ? TURN_BYTES : output_room(s, TURN_BYTES);

        if (most == 0)
            return output_beyond(s);
        ssize_t n = stream_take(s, from, to, most);

        if (n == 0)
            return MOVED_END;
        if (n == -EINTR)
            continue;
        if (n == -EAGAIN)
            return pass_blocked(s);
        if (n < 0)
            return s->is_input && n == -EPIPE ? MOVED_END : (int)n;
        if (!s->is_input)
            count_output(s, (size_t)n);
        turn += (size_t)n;
    }
    return MOVED_TURN;
}

int
stream_move(struct stream *s)
{
    int result;

    switch (s->kind) {
    case PUMP_BYTES:
        return move_bytes(s);
    case PUMP_FN:
        return buffer_done(s, s->is_input ? move_from_function(s) : move_to_function(s));
    default:
        worker_block_begin(); /* a file may be on a slow disk */
        result = buffer_done(s, move_descriptor(s));
        worker_block_end();
        return result;
    }
}
