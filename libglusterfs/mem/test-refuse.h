/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* test-refuse: lets a test make the system refuse requests: any system call with any error, by seccomp,
 * and memory to the last byte. No mocks. */
#ifndef KILN_TEST_REFUSE_H
#define KILN_TEST_REFUSE_H

#include "mem/mem-internal.h"

#include <check.h>
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#if __has_include(<valgrind/valgrind.h>)
#include <valgrind/valgrind.h>
#else
#define RUNNING_ON_VALGRIND 0
#endif

/* Makes this call fail from now on in all threads of the process: always (arg -1), or when its argument
 * number arg has that value. This cannot be undone: a test that needs it runs in a process of its own, as
 * Check provides. Ends the test where seccomp is not possible. */
static inline void
refuse_when(long call, int arg, uint32_t value, int error)
{
    uint32_t at =
        arg < 0 ? offsetof(struct seccomp_data, nr) : offsetof(struct seccomp_data, args) + 8 * (uint32_t)arg;
    struct sock_filter code[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)call, 0, 3),
        /* low half first: little endian, like all supported machines */
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, arg < 0 ? (uint32_t)call : value, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | (uint32_t)error),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = { sizeof(code) / sizeof(code[0]), code };

    if (RUNNING_ON_VALGRIND) { /* valgrind does not support seccomp */
        printf("skipped: call %ld cannot be refused under valgrind\n", call);
        exit(0);
    }
    ck_assert_int_eq(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
    ck_assert_int_eq(syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program), 0);
}

static inline void
refuse(long call, int error)
{
    refuse_when(call, -1, 0, error);
}

/* A program that measures coverage must save its counters here. */
extern void __gcov_dump(void) __attribute__((weak));

static inline void
last_words(int signal)
{
    (void)signal;
    if (__gcov_dump)
        __gcov_dump();
}

/* Sanitizers and valgrind need memory, maps and calls themselves, which must not fail. */
static inline bool
tools_watch(void)
{
    mem_settle();
    return MEM_ASAN || MEM_TSAN || mem_set.valgrind;
}

/* ---- a heap without a byte, until give_memory_back ------------------------------------------- */

static void *hoard;
static struct rlimit address_space;

static inline void
take_all_memory(void)
{
    volatile char stack[256 << 10];
    struct rlimit none;

    for (size_t i = 0; i < sizeof(stack); i += 4096)
        stack[i] = 1; /* so that the stack need not grow soon */
    ck_assert_int_eq(getrlimit(RLIMIT_AS, &address_space), 0);
    none = (struct rlimit){ .rlim_cur = 4096, .rlim_max = address_space.rlim_max };
    ck_assert_int_eq(setrlimit(RLIMIT_AS, &none), 0);
    /* small sizes one by one, because the C library caches some of each */
    for (size_t size = 1 << 20; size >= sizeof(void *); size = size > 4096 ? size / 2 : size - 8) {
        for (void **p; (p = malloc(size)); hoard = p)
            *p = hoard;
    }
}

static inline void
give_memory_back(void)
{
    setrlimit(RLIMIT_AS, &address_space);
    for (void *next; hoard; hoard = next) {
        next = *(void **)hoard;
        free(hoard);
    }
}

#endif
