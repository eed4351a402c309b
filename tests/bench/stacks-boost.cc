/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* stacks-boost CASE WAY [N]: the measurements of stacks-work.c by boost.context, for tests/bench/stacks. Prints
 * "name value" lines: nanoseconds of CPU time a fiber (or a switch there and back).
 *
 * create  N fibers at once, three pages of each stack touched
 *           boost        protected_fixedsize_stack: mmap, and mprotect for the guard
 * reuse, spawn  a fiber that touches a page and ends, again and again
 *           boost        protected_fixedsize_stack: mapped and unmapped
 *           boostpool    pooled_fixedsize_stack: kept, without a guard
 * switch  there and back
 *           boost        fiber::resume()
 */
#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <boost/context/protected_fixedsize_stack.hpp>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <utility>
#include <vector>

namespace ctx = boost::context;

enum { BYTES = 64 << 10, PAGE = 4096, TOUCHED = 3, REUSES = 60000, SWITCHES = 2000000 };

static double
cpu_ns()
{
    struct timespec ts;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &ts);
    return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static unsigned
map_entries()
{
    FILE *f = fopen("/proc/self/maps", "r");
    unsigned lines = 0;

    for (int c; f && (c = fgetc(f)) != EOF;)
        lines += c == '\n';
    if (f)
        fclose(f);
    return lines;
}

static void
touch_pages(int count)
{
    char *here = (char *)__builtin_frame_address(0);

    for (int i = 1; i <= count; i++)
        *(volatile char *)(here - i * PAGE) = 1;
}

static void
create(unsigned n)
{
    std::vector<ctx::fiber> fibers;
    ctx::protected_fixedsize_stack stacks(BYTES);

    fibers.reserve(n);
    unsigned entries = map_entries();
    double from = cpu_ns();
    for (unsigned i = 0; i < n; i++) {
        ctx::fiber f(std::allocator_arg, stacks, [](ctx::fiber &&back) {
            touch_pages(TOUCHED);
            return std::move(back).resume();
        });
        fibers.push_back(std::move(f).resume());
    }
    printf("ns %.3f\n", (cpu_ns() - from) / n);
    printf("entries %.3f\n", ((double)map_entries() - entries) / n);
    fflush(stdout);
    _Exit(0); /* the fibers need not be unwound */
}

template <class Stacks>
static void
spawn(Stacks stacks, unsigned n)
{
    unsigned ended = 0;
    double from = cpu_ns();

    for (unsigned i = 0; i < n; i++) {
        ctx::fiber f(std::allocator_arg, stacks, [&ended](ctx::fiber &&back) {
            touch_pages(1);
            ended++;
            return std::move(back);
        });
        std::move(f).resume();
    }
    printf("ns %.3f\n", (cpu_ns() - from) / n);
    if (ended != n)
        exit(1);
}

static void
switches()
{
    ctx::fiber f(std::allocator_arg, ctx::protected_fixedsize_stack(BYTES), [](ctx::fiber &&back) {
        for (;;)
            back = std::move(back).resume();
        return std::move(back);
    });
    double from = cpu_ns();

    for (unsigned i = 0; i < SWITCHES; i++)
        f = std::move(f).resume();
    printf("ns %.3f\n", (cpu_ns() - from) / SWITCHES);
}

int
main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    bool is_pooled = !strcmp(argv[2], "boostpool");

    if (!strcmp(argv[1], "create"))
        create(argc > 3 ? (unsigned)atoi(argv[3]) : 30000);
    else if (!strcmp(argv[1], "switch"))
        switches();
    else if (is_pooled)
        spawn(ctx::pooled_fixedsize_stack(BYTES), REUSES * 10);
    else
        spawn(ctx::protected_fixedsize_stack(BYTES), REUSES);
    return 0;
}
