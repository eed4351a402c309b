/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Declarations shared by the cases of tests/bench/loops. Each case prints its figures on one line. */
#ifndef KILN_BENCH_LOOPS_H
#define KILN_BENCH_LOOPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Calls of malloc and its kin, and the bytes requested; only in the program built with -DLOOPS_COUNT.
 */
struct allocations {
    uint64_t calls, bytes;
};
bool allocations_are_counted(void);
struct allocations allocations_now(void);

void must(bool is_good, const char *what);
double cpu_seconds(int who); /* RUSAGE_SELF ... */
double wall_seconds(void);
void pools_start(bool on);

/* Starts `count` children with `argv` by libuv and hands each output to take(args[i]). */
typedef void (*ten_take)(void *arg, const char *bytes, size_t count);
void ten_by_uv(char *argv[], unsigned count, ten_take take, void *const *args, struct allocations *started);

int framing_main(int argc, char **argv);
int pump_main(int argc, char **argv);

#endif
