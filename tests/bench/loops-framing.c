/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Small messages over rpc/transport, echoed.
 *
 *     framing real|plain|each|each-pool STREAMS DEPTH ROUNDS
 *
 *   real       the transport as it is: replies of a batch one after another in one buffer
 *   plain      the same with pools off
 *   each       a buffer from malloc for every message, both ways; pools off
 *   each-pool  the same with its buffers from pools
 *
 * A client in a process of its own writes DEPTH messages to each stream and then reads the replies of each,
 * ROUNDS times. The client numbers the messages; a lost, doubled or changed message ends the run. Prints
 * messages, seconds, seconds of the server's CPU, records a read, messages a write, bytes of framing buffers
 * and pieces that the idle connections hold, bytes of each connection's own struct, allocations and bytes
 * from the second half of the rounds.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/worker.h"
#include "loops-bench.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport.h"

#define MESSAGE_BYTES 64
#define DEPTH_MAX 100

static bool is_real;
static unsigned streams, depth, rounds;

/* ---- the server ------------------------------------------------------------------------------ */

static int
accepted(struct conn *c, void *arg)
{
    (void)arg;
    conn_set_trusted(c);
    return 0;
}

static void
reply_framed(struct conn *c, struct record *r)
{
    conn_send(c, r->iov[0].iov_base, r->bytes, NULL, NULL, 0);
    record_release(r);
}

static void
reply_each(struct conn *c, struct record *r)
{
    struct iobuf *in = iobuf_get(r->bytes), *out = iobuf_get(TRANSPORT_MARK_BYTES + r->bytes);

    must(in && out, "iobuf_get");
    memcpy(in->bytes, r->iov[0].iov_base, r->bytes);
    memcpy(out->bytes + TRANSPORT_MARK_BYTES, in->bytes, r->bytes);
    iobuf_unref(in);
    conn_send_iobuf(c, out, r->bytes);
    record_release(r);
}

static void
record(struct conn *c, struct record *r, void *arg)
{
    (void)arg;
    must(r->count == 1 && r->bytes == MESSAGE_BYTES, "record");
    if (is_real)
        reply_framed(c, r);
    else
        reply_each(c, r);
}

static void
closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
}

static const struct transport_ops ops = {.accepted = accepted, .record = record, .closed = closed};

/* Live objects times their size, of the pools for messages under way and for connections. */
struct held {
    char name[64];
    uint64_t live, conn_bytes, framing_bytes;
};

static void
held_line(void *arg, const char *key, const char *value)
{
    struct held *h = arg;

    if (!strcmp(key, "pool-name"))
        snprintf(h->name, sizeof h->name, "%s", value);
    else if (!strcmp(key, "active-count"))
        h->live = strtoull(value, NULL, 10);
    else if (!strcmp(key, "padded-sizeof")) {
        uint64_t bytes = h->live * strtoull(value, NULL, 10);

        if (strstr(h->name, "iobuf") || !strcmp(h->name, "transport_chunk") ||
            !strcmp(h->name, "transport_batch"))
            h->framing_bytes += bytes;
        else if (strstr(h->name, "conn"))
            h->conn_bytes += bytes;
    }
}

/* Waits for idle pools, because a worker may return its buffers a moment after the client has read the last
 * reply. */
static struct held
held_when_idle(void)
{
    struct held h;

    for (int tries = 0; tries < 1000; tries++) {
        h = (struct held){0};
        mem_pools_dump(held_line, &h);
        if (h.framing_bytes == 0)
            break;
        usleep(1000);
    }
    return h;
}

static void
wait_byte(int fd)
{
    char b;

    must(read(fd, &b, 1) == 1, "the client's word");
}

static void
say(int fd)
{
    must(write(fd, "", 1) == 1, "write");
}

static void
serve(int to, int from, bool pools_on)
{
    struct transport_stats t;
    int err = 0;

    pools_start(pools_on);
    must(!transport_pools_init() && !workers_start(NULL), "start");
    struct listener *l = listener_open_tcp("127.0.0.1", 0, &ops, NULL, &err);

    errno = -err;
    must(l != NULL, "listen");
    uint16_t port = listener_port(l);

    must(write(to, &port, sizeof port) == sizeof port, "write");
    wait_byte(from); /* warm */
    double wall = wall_seconds(), cpu = cpu_seconds(RUSAGE_SELF);
    struct allocations before = allocations_now();
    struct transport_stats early;

    transport_stats(&early);
    say(to);
    wait_byte(from); /* all replies are there */
    wall = wall_seconds() - wall;
    cpu = cpu_seconds(RUSAGE_SELF) - cpu;
    struct allocations after = allocations_now();

    transport_stats(&t);
    struct held held = held_when_idle();
    double messages = (double)(t.records - early.records);

    printf("%.0f %.6f %.6f %.2f %.2f %.1f %.1f %llu %llu\n", messages, wall, cpu,
           messages / (double)(t.reads - early.reads), messages / (double)(t.writes - early.writes),
           (double)held.framing_bytes / streams, (double)held.conn_bytes / streams,
           (unsigned long long)(after.calls - before.calls),
           (unsigned long long)(after.bytes - before.bytes));
    say(to);
    listener_close(l);
    transport_close_all();
    workers_stop();
}

/* ---- the client ------------------------------------------------------------------------------ */

static int
connect_to(uint16_t port)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    must(fd >= 0 && connect(fd, (struct sockaddr *)&a, sizeof a) == 0, "connect");
    return fd;
}

struct message {
    uint32_t mark;
    uint32_t stream;
    uint64_t number;
    char rest[MESSAGE_BYTES - 12];
} __attribute__((packed));

static void
put_round(int fd, uint32_t stream, uint64_t first)
{
    static struct message m[DEPTH_MAX];
    size_t size = depth * sizeof *m;

    for (unsigned i = 0; i < depth; i++) {
        m[i].mark = htonl(0x80000000u | MESSAGE_BYTES);
        m[i].stream = stream;
        m[i].number = first + i;
        memset(m[i].rest, (int)(stream + i), sizeof m[i].rest);
    }
    for (size_t at = 0; at < size;) {
        ssize_t n = write(fd, (char *)m + at, size - at);

        must(n > 0, "write");
        at += (size_t)n;
    }
}

/* Checks that each message of the round has arrived once, in any order. */
static void
check_round(int fd, uint32_t stream, uint64_t first)
{
    static struct message m[DEPTH_MAX];
    size_t size = depth * sizeof *m;
    bool have[DEPTH_MAX] = {false};

    for (size_t at = 0; at < size;) {
        ssize_t n = read(fd, (char *)m + at, size - at);

        must(n > 0, "read");
        at += (size_t)n;
    }
    for (unsigned i = 0; i < depth; i++) {
        uint64_t nth = m[i].number - first;

        must(m[i].stream == stream && nth < depth && !have[nth],
             "a message was lost, doubled or misled");
        must(m[i].rest[0] == (char)(stream + nth) && m[i].rest[sizeof m[i].rest - 1] == m[i].rest[0],
             "bytes were changed");
        have[nth] = true;
    }
}

static void
client(int from, int to)
{
    int *fds = calloc(streams, sizeof *fds);
    uint16_t port;

    must(read(from, &port, sizeof port) == sizeof port, "read");
    for (unsigned i = 0; i < streams; i++)
        fds[i] = connect_to(port);
    for (unsigned r = 0; r < rounds + rounds / 4 + 1; r++) {
        if (r == rounds / 4 + 1) {
            say(to);
            wait_byte(from);
        }
        for (unsigned i = 0; i < streams; i++)
            put_round(fds[i], i, (uint64_t)r * depth);
        for (unsigned i = 0; i < streams; i++)
            check_round(fds[i], i, (uint64_t)r * depth);
    }
    say(to);
    wait_byte(from); /* the connections stay open while the server counts their memory */
    for (unsigned i = 0; i < streams; i++)
        close(fds[i]);
    free(fds);
}

int
framing_main(int argc, char **argv)
{
    int to_client[2], to_server[2], status;

    must(argc == 5, "usage");
    is_real = !strcmp(argv[1], "real") || !strcmp(argv[1], "plain");
    streams = (unsigned)atoi(argv[2]);
    depth = (unsigned)atoi(argv[3]);
    rounds = (unsigned)atoi(argv[4]);
    must(streams && depth && depth <= DEPTH_MAX && rounds, "usage");
    must(!pipe(to_client) && !pipe(to_server), "pipe");
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        close(to_client[1]);
        close(to_server[0]);
        client(to_client[0], to_server[1]);
        exit(0);
    }
    close(to_client[0]);
    close(to_server[1]); /* so that a client that fails is noticed */
    serve(to_client[1], to_server[0], !strcmp(argv[1], "real") || !strcmp(argv[1], "each-pool"));
    must(waitpid(pid, &status, 0) == pid && status == 0, "the client");
    return 0;
}
