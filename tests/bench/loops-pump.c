/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Children of a daemon, by the pump and by a loop as one would write it first: fork, exec, and reads of 4 KiB
 * into a buffer from malloc each.
 *
 *     pump pump|naive look|file|null MIB     a child that writes so much; its output is looked at, or goes to
 * a file pump pump|naive short COUNT            children that read 1 KiB and write 1 KiB, one after another
 *
 * prints seconds, seconds of CPU (child included), allocations and bytes to start a child, and after its
 * start.
 */
#include <errno.h>
#include <fcntl.h>
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

/* ---- a case ---------------------------------------------------------------------------------- */

static int
open_sink(const char *what)
{
    if (!strcmp(what, "file"))
        return memfd_create("sink", MFD_CLOEXEC);
    return !strcmp(what, "null") ? open("/dev/null", O_WRONLY | O_CLOEXEC) : -1;
}

/* As large as a daemon is: fork(2) copies its page tables. */
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
    bool is_short = !strcmp(argv[2], "short"), is_pump = !strcmp(argv[1], "pump");
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

    for (unsigned i = 0; i < count; i++)
        (is_pump ? by_pump : by_hand)(child, sink);
    wall = wall_seconds() - wall;
    cpu = cpu_seconds(RUSAGE_SELF) + cpu_seconds(RUSAGE_CHILDREN) - cpu;
    must(got == (is_short ? (uint64_t)count * SHORT_BYTES : (uint64_t)atol(argv[3]) << 20), "all bytes");
    printf("%.6f %.6f %llu %llu %llu %llu\n", wall, cpu, (unsigned long long)(started.calls - begun.calls),
           (unsigned long long)(started.bytes - begun.bytes),
           (unsigned long long)(ended.calls - started.calls),
           (unsigned long long)(ended.bytes - started.bytes));
    pumps_stop();
    workers_stop();
    return 0;
}
