/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* bench-transport: an echo server on this transport and clients in a process of their own.
 *
 *     bench-transport [-t tcp|unix] [-c connections] [-d depth] [-b bytes] [-s seconds] [-r reply bytes]
 *
 * prints messages a second, and how many records a read and messages a write carried. `strace -c -f` counts
 * the rest.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/timer.h"
#include "event/worker.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport.h"

static const char *transport_name = "tcp";
static unsigned connections = 4, depth = 1, seconds = 2;
static size_t record_bytes = 128, reply_bytes = 128;

static char zeros[1 << 20];

static int
bench_accepted(struct conn *c, void *arg)
{
    (void)arg;
    conn_set_trusted(c);
    return 0;
}

static void
bench_record(struct conn *c, struct record *r, void *arg)
{
    (void)arg;
    record_release(r);
    conn_send(c, zeros, reply_bytes, NULL, NULL, 0);
}

static void
bench_closed(struct conn *c, void *arg)
{
    (void)c;
    (void)arg;
}

static const struct transport_ops bench_ops = {
    .accepted = bench_accepted, .record = bench_record, .closed = bench_closed};

/* ---- the clients ----------------------------------------------------------------------------- */

static void
must(bool is_good, const char *what)
{
    if (!is_good) {
        perror(what);
        exit(1);
    }
}

static struct sockaddr_storage server;
static socklen_t server_size;
static uint64_t end_ns;

static void
send_all(int fd, const char *from, size_t bytes)
{
    for (size_t at = 0; at < bytes;) {
        ssize_t n = write(fd, from + at, bytes - at);

        must(n > 0, "write");
        at += (size_t)n;
    }
}

/* Keeps `depth` requests outstanding: writes them together, waits for all the replies. */
static void *
client_main(void *arg)
{
    uint64_t *count = arg;
    size_t out_bytes = depth * (4 + record_bytes), in_bytes = depth * (4 + reply_bytes);
    char *out = calloc(1, out_bytes), *in = malloc(in_bytes);
    uint32_t mark = htonl(0x80000000u | (uint32_t)record_bytes);
    int fd = socket(server.ss_family, SOCK_STREAM, 0);

    for (unsigned i = 0; i < depth; i++)
        memcpy(out + i * (4 + record_bytes), &mark, 4);
    must(connect(fd, (struct sockaddr *)&server, server_size) == 0, "connect");
    while (clock_mono_ns() < end_ns) {
        send_all(fd, out, out_bytes);
        for (size_t at = 0; at < in_bytes;) {
            ssize_t n = read(fd, in, in_bytes - at);

            must(n > 0, "read");
            at += (size_t)n;
        }
        *count += depth;
    }
    close(fd);
    free(out);
    free(in);
    return NULL;
}

/* Learns the server's address from `from`, writes the number of answered messages to `to`. */
static void
clients_main(int from, int to)
{
    pthread_t *thread = calloc(connections, sizeof *thread);
    uint64_t *count = calloc(connections * 8u, sizeof *count), sum = 0; /* a cache line each */

    must(read(from, &server, sizeof server) == sizeof server, "read");
    server_size = server.ss_family == AF_UNIX ? sizeof(struct sockaddr_un) : sizeof(struct sockaddr_in);
    end_ns = clock_mono_ns() + seconds * 1000000000ull;
    for (unsigned i = 0; i < connections; i++)
        must(!pthread_create(&thread[i], NULL, client_main, &count[i * 8]), "pthread_create");
    for (unsigned i = 0; i < connections; i++) {
        pthread_join(thread[i], NULL);
        sum += count[i * 8];
    }
    must(write(to, &sum, sizeof sum) == sizeof sum, "write");
    free(thread);
    free(count);
}

/* ---- the server ------------------------------------------------------------------------------ */

static struct listener *
open_listener(char *dir)
{
    struct listener *l;
    int err = 0;

    if (!strcmp(transport_name, "unix")) {
        struct sockaddr_un *a = (struct sockaddr_un *)&server;

        must(mkdtemp(dir) != NULL, "mkdtemp");
        a->sun_family = AF_UNIX;
        snprintf(a->sun_path, sizeof a->sun_path, "%s/socket", dir);
        l = listener_open_unix(a->sun_path, &bench_ops, NULL, &err);
    } else {
        struct sockaddr_in *a = (struct sockaddr_in *)&server;

        l = listener_open_tcp("127.0.0.1", 0, &bench_ops, NULL, &err);
        a->sin_family = AF_INET;
        a->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        a->sin_port = htons(l ? listener_port(l) : 0);
    }
    errno = -err;
    must(l != NULL, "listen");
    return l;
}

static double
cpu_seconds(int who)
{
    struct rusage u;

    getrusage(who, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
           1e-6 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
}

static void
serve(int to, int from)
{
    char dir[] = "/tmp/bench-transport-XXXXXX";
    struct transport_stats t;
    struct worker_stats w;
    uint64_t sum;

    must(!mem_pools_init() && !iobuf_pools_init() && !transport_pools_init() && !workers_start(NULL),
         "start");
    struct listener *l = open_listener(dir);

    must(write(to, &server, sizeof server) == sizeof server, "write");
    must(read(from, &sum, sizeof sum) == sizeof sum, "read");
    transport_stats(&t);
    worker_stats(&w);
    double cpu = cpu_seconds(RUSAGE_SELF);

    listener_close(l);
    transport_close_all();
    workers_stop();
    rmdir(dir);
    printf("%s, %u connections, depth %u, %zu/%zu bytes: %.0f messages/s; a message: %.2f us server CPU, "
           "%.3f reads, "
           "%.3f writes, %.3f events; %u workers\n",
           transport_name, connections, depth, record_bytes, reply_bytes, (double)sum / seconds,
           1e6 * cpu / (double)sum, (double)t.reads / (double)sum, (double)t.writes / (double)sum,
           (double)w.events / (double)sum, w.threads);
}

static bool
parse(int argc, char **argv)
{
    int o;

    while ((o = getopt(argc, argv, "t:c:d:b:r:s:")) != -1) {
        switch (o) {
        case 't':
            transport_name = optarg;
            break;
        case 'c':
            connections = (unsigned)atoi(optarg);
            break;
        case 'd':
            depth = (unsigned)atoi(optarg);
            break;
        case 'b':
            record_bytes = (size_t)atol(optarg);
            break;
        case 'r':
            reply_bytes = (size_t)atol(optarg);
            break;
        case 's':
            seconds = (unsigned)atoi(optarg);
            break;
        default:
            return false;
        }
    }
    return connections && depth && seconds && record_bytes && record_bytes <= TRANSPORT_RECORD_MAX &&
           reply_bytes <= sizeof zeros;
}

int
main(int argc, char **argv)
{
    int address[2], result[2];

    if (!parse(argc, argv)) {
        fprintf(stderr,
                "usage: %s [-t tcp|unix] [-c connections] [-d depth] [-b bytes] [-r bytes] [-s seconds]\n",
                argv[0]);
        return 2;
    }
    must(!pipe(address) && !pipe(result), "pipe");
    pid_t child = fork();

    must(child >= 0, "fork");
    if (child == 0) {
        clients_main(address[0], result[1]);
        return 0;
    }
    close(result[1]); /* so that a client that fails is noticed */
    serve(address[1], result[0]);
    waitpid(child, NULL, 0);
    return 0;
}
