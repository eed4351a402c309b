/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Children of a daemon, by the pump and by a naive loop: fork, exec, and reads of 4 KiB into a buffer from
 * malloc each.
 *
 *     pump pump|naive look|file|null MIB  a child that writes MIB; the output is examined or passed on
 *     pump pump|naive short COUNT         children that read 1 KiB and write 1 KiB, in succession
 *     pump pump|popen|thread|uv ten MIB   ten such children at once, all output through a CRC32: by the pump,
 *                                         popen(3) and poll(2), popen(3) and a thread each, libuv
 *
 * prints seconds, seconds of CPU (child included), allocations and bytes to start a child, and after its
 * start.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "event/pump.h"
#include "event/worker.h"
#include "loops-bench.h"
#include "mem/mem-pool.h"

#define SHORT_BYTES 1024

static uint64_t seen;
static uint64_t got;
static bool is_passed_on; /* to a descriptor, unseen */
static char input[SHORT_BYTES];
static struct allocations begun, started, ended; /* of the last child */
static sem_t done;

static void
look(const char *bytes, size_t count)
{
    for (size_t i = 0; i < count; i += 512)
        seen += (unsigned char)bytes[i];
    got += count;
}

/* ---- the child ------------------------------------------------------------------------------- */

static int
child_main(size_t mib)
{
    static char block[65536];

    memset(block, 'x', sizeof block);
    if (mib == 0) {
        must(read(0, block, SHORT_BYTES) == SHORT_BYTES, "read");
        must(write(1, block, SHORT_BYTES) == SHORT_BYTES, "write");
        return 0;
    }
    for (size_t i = 0; i < mib * 16; i++)
        must(write(1, block, sizeof block) == sizeof block, "write");
    return 0;
}

/* ---- by the pump ----------------------------------------------------------------------------- */

static int
look_fn(void *arg, const char *bytes, size_t count)
{
    (void)arg;
    look(bytes, count);
    return 0;
}

static void
done_fn(struct pump *p, const struct pump_result *r, void *arg)
{
    (void)p;
    (void)arg;
    must(r->error == 0 && r->exit_code == 0, "child");
    if (is_passed_on)
        got += r->out_bytes;
    ended = allocations_now();
    sem_post(&done);
}

static void
by_pump(char *const argv[], int sink)
{
    struct pump_options o = {.path = "/proc/self/exe",
                             .argv = argv,
                             .in = {.kind = PUMP_BYTES, .bytes = input, .count = sizeof input},
                             .out = {.kind = sink < 0 ? PUMP_FN : PUMP_FD, .fn = look_fn, .fd = sink},
                             .done = done_fn};

    is_passed_on = sink >= 0;
    begun = allocations_now();
    must(!pump_start(&o, NULL), "pump_start");
    started = allocations_now(); /* the first bytes may have come */
    while (sem_wait(&done))
        ;
}

/* ---- by hand --------------------------------------------------------------------------------- */

static void
naive_read(int from, int sink)
{
    for (;;) {
        char *block = malloc(4096);

        must(block != NULL, "malloc");
        ssize_t n = read(from, block, 4096);

        must(n >= 0, "read");
        if (n > 0 && sink < 0)
            look(block, (size_t)n);
        else if (n > 0) {
            must(write(sink, block, (size_t)n) == n, "write");
            got += (uint64_t)n;
        }
        free(block);
        if (n == 0)
            return;
    }
}

static void
by_hand(char *const argv[], int sink)
{
    int in[2], out[2], status;

    begun = allocations_now();
    must(!pipe2(in, O_CLOEXEC) && !pipe2(out, O_CLOEXEC), "pipe");
    pid_t pid = fork();

    must(pid >= 0, "fork");
    if (pid == 0) {
        dup2(in[0], 0);
        dup2(out[1], 1);
        execv("/proc/self/exe", argv);
        _exit(127);
    }
    close(in[0]);
    close(out[1]);
    started = allocations_now();
    must(write(in[1], input, sizeof input) == sizeof input, "write");
    close(in[1]);
    naive_read(out[0], sink);
    close(out[0]);
    must(waitpid(pid, &status, 0) == pid && status == 0, "child");
    ended = allocations_now();
}

/* ---- ten at once ----------------------------------------------------------------------------- */

enum { TEN = 10 };

static uint32_t crc_table[256];

static struct ten {
    uint32_t crc;
    uint64_t bytes;
    FILE *from; /* of popen(3) */
    pthread_t thread;
} ten[TEN];

static void
crc_begin(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;

        for (int k = 0; k < 8; k++)
            c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
        crc_table[i] = c;
    }
}

static void
crc_take(struct ten *t, const char *bytes, size_t count)
{
    uint32_t c = t->crc;

    for (size_t i = 0; i < count; i++)
        c = crc_table[(c ^ (unsigned char)bytes[i]) & 255] ^ c >> 8;
    t->crc = c;
    t->bytes += count;
}

static int
crc_fn(void *arg, const char *bytes, size_t count)
{
    crc_take(arg, bytes, count);
    return 0;
}

static void
ten_by_pump(char *const argv[])
{
    for (int i = 0; i < TEN; i++) {
        struct pump_options o = {.path = "/proc/self/exe",
                                 .argv = argv,
                                 .out = {.kind = PUMP_FN, .fn = crc_fn},
                                 .done = done_fn,
                                 .arg = &ten[i]};

        must(!pump_start(&o, NULL), "pump_start");
    }
    started = allocations_now();
    for (int i = 0; i < TEN; i++)
        while (sem_wait(&done))
            ;
}

static void
ten_popen(const char *mib)
{
    char path[4096], line[4200];
    ssize_t n = readlink("/proc/self/exe", path, sizeof path - 1);

    must(n > 0, "readlink");
    path[n] = '\0';
    snprintf(line, sizeof line, "exec %s child %s", path, mib);
    for (int i = 0; i < TEN; i++)
        must((ten[i].from = popen(line, "re")) != NULL, "popen");
    started = allocations_now();
}

/* One read of a child's output; false at its end. */
static bool
ten_read(struct ten *t, char *block, size_t size)
{
    ssize_t n = read(fileno(t->from), block, size);

    must(n >= 0, "read");
    crc_take(t, block, (size_t)n);
    if (n == 0)
        must(pclose(t->from) == 0, "pclose");
    return n > 0;
}

static void
ten_by_poll(const char *mib)
{
    static char block[65536];
    struct pollfd fds[TEN];
    int left = TEN;

    ten_popen(mib);
    for (int i = 0; i < TEN; i++)
        fds[i] = (struct pollfd){.fd = fileno(ten[i].from), .events = POLLIN};
    while (left > 0) {
        must(poll(fds, TEN, -1) > 0, "poll");
        for (int i = 0; i < TEN; i++) {
            if (fds[i].revents && !ten_read(&ten[i], block, sizeof block)) {
                fds[i].fd = -1;
                left--;
            }
        }
    }
}

static void *
ten_thread(void *arg)
{
    char *block = malloc(65536);

    must(block != NULL, "malloc");
    while (ten_read(arg, block, 65536))
        continue;
    free(block);
    return NULL;
}

static void
ten_by_threads(const char *mib)
{
    ten_popen(mib);
    for (int i = 0; i < TEN; i++)
        must(!pthread_create(&ten[i].thread, NULL, ten_thread, &ten[i]), "pthread_create");
    for (int i = 0; i < TEN; i++)
        pthread_join(ten[i].thread, NULL);
}

static void
crc_take_any(void *arg, const char *bytes, size_t count)
{
    crc_take(arg, bytes, count);
}

static void
ten_by_loop(char *child[])
{
    void *each[TEN];

    for (int i = 0; i < TEN; i++)
        each[i] = &ten[i];
    ten_by_uv(child, TEN, crc_take_any, each, &started);
}

static void
ten_at_once(const char *way, char *child[])
{
    begun = allocations_now();
    if (!strcmp(way, "pump"))
        ten_by_pump(child);
    else if (!strcmp(way, "popen"))
        ten_by_poll(child[2]);
    else if (!strcmp(way, "uv"))
        ten_by_loop(child);
    else
        ten_by_threads(child[2]);
    ended = allocations_now();
    for (int i = 0; i < TEN; i++) {
        must(ten[i].crc == ten[0].crc, "the same bytes, the same sum");
        got += ten[i].bytes;
    }
}

/* ---- a case ---------------------------------------------------------------------------------- */

static int
open_sink(const char *what)
{
    if (!strcmp(what, "file"))
        return memfd_create("sink", MFD_CLOEXEC);
    return !strcmp(what, "null") ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
}

/* Grows the process to the size of a daemon, because fork(2) copies the page tables. */
static void
be_a_daemon(void)
{
    void *memory =
        mmap(NULL, 64 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);

    must(memory != MAP_FAILED, "mmap");
}

int
pump_main(int argc, char **argv)
{
    if (argc == 2)
        return child_main((size_t)atol(argv[1]));
    must(argc == 4, "usage");
    bool is_ten = !strcmp(argv[2], "ten"), is_short = !strcmp(argv[2], "short");
    bool is_pump = !strcmp(argv[1], "pump");
    unsigned count = is_short ? (unsigned)atoi(argv[3]) : 1;
    char *child[] = {"loops-work", "child", is_short ? "0" : argv[3], NULL},
         *warm[] = {"loops-work", "child", "0", NULL};
    int sink = open_sink(argv[2]);

    signal(SIGPIPE, SIG_IGN); /* the flooding child does not read */
    pools_start(true);
    must(!pump_pools_init() && !workers_start(NULL) && !sem_init(&done, 0, 0), "start");
    be_a_daemon();
    for (int i = 0; i < 4; i++)
        (is_pump ? by_pump : by_hand)(warm, sink);
    seen = got = 0;
    double wall = wall_seconds(), cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN);

    if (is_ten) {
        crc_begin();
        ten_at_once(argv[1], child);
    }
    for (unsigned i = 0; i < count && !is_ten; i++)
        (is_pump ? by_pump : by_hand)(child, sink);
    wall = wall_seconds() - wall;
    cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu;
    uint64_t mib = (uint64_t)atol(argv[3]) * (is_ten ? TEN : 1);

    must(got == (is_short ? (uint64_t)count * SHORT_BYTES : mib << 20), "all bytes");
    printf("%.6f %.6f %llu %llu %llu %llu\n", wall, cpu, (unsigned long long)(started.calls - begun.calls),
           (unsigned long long)(started.bytes - begun.bytes),
           (unsigned long long)(ended.calls - started.calls),
           (unsigned long long)(ended.bytes - started.bytes));
    pumps_stop();
    workers_stop();
    return 0;
}
