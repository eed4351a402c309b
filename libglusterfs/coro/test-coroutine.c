/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* Coroutines: the state that survives a switch, the return of stacks, and the way of coroutines from
 * thread to thread. Also built with ucontext instead of Kiln's own switch. */
#include "coro/coroutine.h"
#include "base/test-child.h"
#include "mem/mem-internal.h"
#include "coro/stack-pool.h"

#include <check.h>
#include <errno.h>
#include <fenv.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define SANITIZED (MEM_ASAN || MEM_TSAN)

static struct stack_pool *stacks;

static void
setup(void)
{
    ck_assert_int_eq(stack_pool_new(&(struct stack_pool_opts){ .name = "coroutines" }, &stacks), 0);
}

static void
teardown(void)
{
    stack_pool_check(stacks);
    ck_assert_uint_eq(stack_pool_destroy(stacks), 0);
}

static uint32_t
live(void)
{
    struct stack_pool_stats s;

    stack_pool_stats(stacks, &s);
    return s.live;
}

static struct coroutine *
start(coroutine_fn fn, void *arg)
{
    struct coroutine *c;

    ck_assert_int_eq(coroutine_new(stacks, fn, arg, &c), 0);
    return c;
}

/* ---- one thread ------------------------------------------------------------------------------ */

static void
count_to_three(void *arg)
{
    int *n = arg;

    for (*n = 1; *n < 3; ++*n)
        coroutine_yield();
}

START_TEST(runs_until_it_yields_or_ends)
{
    int n = 0;
    struct coroutine *c = start(count_to_three, &n);

    ck_assert_int_eq(n, 0);
    ck_assert(!coroutine_resume(c));
    ck_assert_int_eq(n, 1);
    ck_assert(!coroutine_resume(c));
    ck_assert_int_eq(n, 2);
    ck_assert_uint_eq(live(), 1);
    ck_assert(coroutine_resume(c));
    ck_assert_int_eq(n, 3);
    ck_assert_uint_eq(live(), 0);
}
END_TEST

struct both {
    struct coroutine *inner, *seen;
    int n;
};

static void
resume_another(void *arg)
{
    struct both *b = arg;
    struct coroutine *self = coroutine_self();

    b->inner = start(count_to_three, &b->n);
    ck_assert(!coroutine_resume(b->inner));
    ck_assert_ptr_eq(coroutine_self(), self);
    coroutine_yield();
    ck_assert(!coroutine_resume(b->inner));
    ck_assert(coroutine_resume(b->inner));
    b->seen = coroutine_self();
}

START_TEST(a_coroutine_may_resume_another)
{
    struct both b = { 0 };
    struct coroutine *c = start(resume_another, &b);

    ck_assert_ptr_null(coroutine_self());
    ck_assert(!coroutine_resume(c));
    ck_assert_ptr_null(coroutine_self());
    ck_assert(coroutine_resume(c));
    ck_assert_ptr_eq(b.seen, c);
    ck_assert_int_eq(b.n, 3);
}
END_TEST

/* A reply that comes at once: the resume is before the yield. */
static void
answer_at_once(void *arg)
{
    for (int i = 0; i < 1000; i++) {
        ck_assert(!coroutine_resume(coroutine_self()));
        coroutine_yield();
        ++*(int *)arg;
    }
}

START_TEST(resume_may_come_before_the_yield)
{
    int n = 0;

    ck_assert(coroutine_resume(start(answer_at_once, &n)));
    ck_assert_int_eq(n, 1000);
}
END_TEST

static __attribute__((noinline)) uint64_t
mix(uint64_t a)
{
    return a * 0x9e3779b97f4a7c15 + 1;
}

/* Uses more values than there are registers to keep them in over the yields. */
static void
keep_registers_busy(void *arg)
{
    uint64_t *sum = arg, a = mix(*sum), b = mix(a), c = mix(b), d = mix(c), e = mix(d), f = mix(e),
             g = mix(f);
    double x = (double)(a >> 40), y = (double)(b >> 40);

    for (int i = 0; i < 100; i++) {
        coroutine_yield();
        a += b ^ i, b += c, c ^= d, d += e, e ^= f, f += g, g ^= a;
        x += y / 2, y += 1;
    }
    *sum = a ^ b ^ c ^ d ^ e ^ f ^ g ^ (uint64_t)(x + y);
}

START_TEST(registers_survive_a_switch)
{
    enum { N = 50 };
    uint64_t one = 7, many[N];
    struct coroutine *c = start(keep_registers_busy, &one), *cs[N];

    while (!coroutine_resume(c))
        ;
    for (int i = 0; i < N; i++) {
        many[i] = 7;
        cs[i] = start(keep_registers_busy, &many[i]);
    }
    for (int turn = 0; turn <= 100; turn++)
        for (int i = 0; i < N; i++)
            ck_assert(coroutine_resume(cs[i]) == (turn == 100));
    for (int i = 0; i < N; i++)
        ck_assert_uint_eq(many[i], one);
}
END_TEST

static void
round_upward(void *arg)
{
    fesetround(FE_UPWARD);
    coroutine_yield();
    *(int *)arg = fegetround();
    fesetround(FE_DOWNWARD);
}

/* As with any function call, the callee may change the rounding mode and must restore it; a switch keeps
 * each side's mode. */
START_TEST(rounding_mode_stays_with_its_side)
{
    int was = 0;
    struct coroutine *c = start(round_upward, &was);

#if !defined(__x86_64__) && !defined(CORO_UCONTEXT)
    coroutine_free(c);
    return;
#endif
    coroutine_resume(c);
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
    coroutine_resume(c);
    ck_assert_int_eq(was, FE_UPWARD);
    ck_assert_int_eq(fegetround(), FE_TONEAREST);
}
END_TEST

static void
format(void *arg)
{
    char text[64];

    ck_assert_uint_eq(((uintptr_t)__builtin_frame_address(0) + 2 * sizeof(void *)) % 16, 0);
    snprintf(text, sizeof(text), "%.3Lf %d", 1.5L, 7); /* snprintf needs an aligned stack */
    strcpy(arg, text);
}

START_TEST(stack_is_aligned)
{
    char text[64] = "";

    ck_assert(coroutine_resume(start(format, text)));
    ck_assert_str_eq(text, "1.500 7");
}
END_TEST

START_TEST(ten_thousand_coroutines_sleep_and_end)
{
    const int n = SANITIZED ? 1000 : 10000;
    struct coroutine **c = calloc((size_t)n, sizeof(struct coroutine *));
    int *at = calloc((size_t)n, sizeof(int));

    for (int i = 0; i < n; i++) {
        c[i] = start(count_to_three, &at[i]);
        ck_assert(!coroutine_resume(c[i]));
    }
    ck_assert_uint_eq(live(), n);
    for (int i = n - 1; i >= 0; i--)
        ck_assert(!coroutine_resume(c[i]));
    for (int i = 0; i < n; i++)
        ck_assert(coroutine_resume(c[i]));
    for (int i = 0; i < n; i++)
        ck_assert_int_eq(at[i], 3);
    ck_assert_uint_eq(live(), 0);
    free(c);
    free(at);
}
END_TEST

START_TEST(a_coroutine_above_the_cap_is_refused)
{
    struct stack_pool *few;
    struct coroutine *c[3];
    int n = 0;

    ck_assert_int_eq(stack_pool_new(&(struct stack_pool_opts){ .name = "few", .cap = 2 }, &few), 0);
    ck_assert_int_eq(coroutine_new(few, count_to_three, &n, &c[0]), 0);
    ck_assert_int_eq(coroutine_new(few, count_to_three, &n, &c[1]), 0);
    ck_assert_int_eq(coroutine_new(few, count_to_three, &n, &c[2]), -EAGAIN);
    coroutine_free(c[1]);
    ck_assert_int_eq(coroutine_new(few, count_to_three, &n, &c[2]), 0);
    while (!coroutine_resume(c[2]))
        ;
    coroutine_free(c[0]);
    ck_assert_uint_eq(stack_pool_destroy(few), 0);
}
END_TEST

/* ---- overflow -------------------------------------------------------------------------------- */

static volatile uintptr_t near;
static char alternate[64 << 10];

/* Exits with 7: the fault is in the page below the stack that overflowed. */
static void
on_segv(int sig, siginfo_t *info, void *context)
{
    uintptr_t at = (uintptr_t)info->si_addr;

    (void)sig, (void)context;
    _exit(at <= near && near - at <= 8192 ? 7 : 8);
}

static int dig(int n);
/* else a compiler makes one frame of many, larger than the guard */
static int (*volatile next_dig)(int n) = dig;

static int
dig(int n)
{
    volatile char frame[256];

    near = (uintptr_t)&frame;
    frame[0] = (char)n;
    return n ? next_dig(n + 1) + frame[0] : 0;
}

static void
dig_down(void *arg)
{
    (void)arg;
    dig(1);
}

START_TEST(a_stack_overflow_hits_the_guard)
{
    int status;
    pid_t child = test_fork();

    if (!child) {
        struct sigaction a = { .sa_sigaction = on_segv, .sa_flags = SA_SIGINFO | SA_ONSTACK };

        sigaltstack(&(stack_t){ .ss_sp = alternate, .ss_size = sizeof(alternate) }, NULL);
        sigaction(SIGSEGV, &a, NULL);
        coroutine_resume(start(dig_down, NULL));
        _exit(9);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    ck_assert(WIFEXITED(status));
    ck_assert_int_eq(WEXITSTATUS(status), 7);
}
END_TEST

/* ---- from thread to thread ------------------------------------------------------------------- */

enum { TRAVELLERS = 100, THREADS = 4 };

/* Coroutines that each thread is to resume. A coroutine goes from each queue to the next. */
static struct queue {
    pthread_mutex_t mutex;
    pthread_cond_t more;
    struct coroutine *item[TRAVELLERS];
    unsigned n;
    bool is_over;
} queues[THREADS];

static void
enqueue(struct queue *q, struct coroutine *c)
{
    pthread_mutex_lock(&q->mutex);
    q->item[q->n++] = c;
    pthread_cond_signal(&q->more);
    pthread_mutex_unlock(&q->mutex);
}

static void *
resume_from_queue(void *arg)
{
    struct queue *q = arg;

    for (;;) {
        struct coroutine *c;

        pthread_mutex_lock(&q->mutex);
        while (!q->n && !q->is_over)
            pthread_cond_wait(&q->more, &q->mutex);
        if (!q->n) {
            pthread_mutex_unlock(&q->mutex);
            return NULL;
        }
        c = q->item[--q->n];
        pthread_mutex_unlock(&q->mutex);
        coroutine_resume(c);
    }
}

static unsigned travelling;

/* The last traveller ends the threads. The resumer of a traveller cannot end them, because it cannot tell the
 * last traveller. */
static void
arrive(void)
{
    if (__atomic_sub_fetch(&travelling, 1, __ATOMIC_ACQ_REL))
        return;
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_lock(&queues[i].mutex);
        queues[i].is_over = true;
        pthread_cond_signal(&queues[i].more);
        pthread_mutex_unlock(&queues[i].mutex);
    }
}

static struct mem_pool *objects;

static __attribute__((noinline)) struct mem_thread *
thread_block(void)
{
    __asm__ volatile("" ::: "memory");
    return mem_self;
}

static __attribute__((noinline)) void
set_errno(int n)
{
    errno = n;
}

static __attribute__((noinline)) int
get_errno(void)
{
    return errno;
}

/* pthread_self() is declared to return the same value for ever, so a compiler calls it only once. */
static __attribute__((noinline)) pthread_t
thread_now(void)
{
    __asm__ volatile("" ::: "memory");
    return pthread_self();
}

struct traveller {
    unsigned hops, moves, at; /* at: the queue it is resumed from */
    bool is_wrong;
};

/* Puts in one thread an object that was got in another. The coroutine is queued before its yield, because
 * another thread may resume the coroutine before the yield. */
static void
travel(void *arg)
{
    struct traveller *t = arg;

    for (unsigned i = 0; i < t->hops; i++) {
        pthread_t before = thread_now();
        uint64_t *o = mem_get(objects);
        struct mem_thread *block = thread_block();

        if (!o) {
            t->is_wrong = true;
            break;
        }
        *o = i;
        set_errno(1000 + (int)i);
        t->at = (t->at + 1) % THREADS;
        enqueue(&queues[t->at], coroutine_self());
        coroutine_yield();
        if (!pthread_equal(before, thread_now())) { /* else the resume came before the yield */
            t->moves++;
            t->is_wrong |= thread_block() == block && mem_mode_now() == MEM_MODE_ON;
        }
        set_errno(0);
        t->is_wrong |= get_errno() != 0;
        t->is_wrong |= *o != i;
        mem_put(o);
    }
    arrive();
}

START_TEST(coroutines_are_resumed_by_any_thread)
{
    struct traveller t[TRAVELLERS];
    pthread_t thread[THREADS];
    unsigned moves = 0;

    objects = mem_pool_new(uint64_t, 0);
    travelling = TRAVELLERS;
    for (int i = 0; i < THREADS; i++) {
        pthread_mutex_init(&queues[i].mutex, NULL);
        pthread_cond_init(&queues[i].more, NULL);
    }
    for (unsigned i = 0; i < TRAVELLERS; i++) {
        t[i] = (struct traveller){ .hops = SANITIZED ? 50 : 300, .at = i % THREADS };
        enqueue(&queues[t[i].at], start(travel, &t[i]));
    }
    for (int i = 0; i < THREADS; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, resume_from_queue, &queues[i]), 0);
    for (int i = 0; i < THREADS; i++)
        pthread_join(thread[i], NULL);
    for (int i = 0; i < TRAVELLERS; i++) {
        ck_assert(!t[i].is_wrong);
        moves += t[i].moves;
    }
    ck_assert_uint_gt(moves, TRAVELLERS);
    ck_assert_uint_eq(live(), 0);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
}
END_TEST

/* Like an operation that winds to several children: the last reply resumes. */
struct fan_out {
    struct coroutine *self;
    uint32_t pending;
    uint64_t sum;
};

enum { CHILDREN = 3 };

static struct {
    struct fan_out *item[256];
    uint32_t head, tail;
    bool is_over;
} replies[CHILDREN];

static void *
reply(void *arg)
{
    unsigned me = (unsigned)(uintptr_t)arg;

    for (uint32_t at = 0;;) {
        if (at == __atomic_load_n(&replies[me].head, __ATOMIC_ACQUIRE)) {
            if (__atomic_load_n(&replies[me].is_over, __ATOMIC_ACQUIRE))
                return NULL;
            sched_yield();
            continue;
        }
        struct fan_out *f = replies[me].item[at++ % 256];

        __atomic_fetch_add(&f->sum, me + 1, __ATOMIC_RELAXED);
        if (__atomic_sub_fetch(&f->pending, 1, __ATOMIC_ACQ_REL) == 0)
            coroutine_resume(f->self);
    }
}

static void
wind_to_all(struct fan_out *f)
{
    f->pending = CHILDREN;
    for (unsigned i = 0; i < CHILDREN; i++) {
        uint32_t head = __atomic_fetch_add(&replies[i].tail, 1, __ATOMIC_RELAXED);

        replies[i].item[head % 256] = f;
        __atomic_store_n(&replies[i].head, head + 1, __ATOMIC_RELEASE);
    }
}

static int ended;

static void
fan_out(void *arg)
{
    struct fan_out f = { .self = coroutine_self() };

    for (unsigned i = 0; i < *(unsigned *)arg; i++) {
        wind_to_all(&f);
        coroutine_yield();
        ck_assert_uint_eq(f.sum, (i + 1) * 6);
    }
    __atomic_store_n(&ended, 1, __ATOMIC_RELEASE);
}

START_TEST(the_last_reply_resumes_the_coroutine)
{
    pthread_t thread[CHILDREN];
    unsigned rounds = SANITIZED ? 500 : 5000;

    for (uintptr_t i = 0; i < CHILDREN; i++)
        ck_assert_int_eq(pthread_create(&thread[i], NULL, reply, (void *)i), 0);
    coroutine_resume(start(fan_out, &rounds));
    while (!__atomic_load_n(&ended, __ATOMIC_ACQUIRE))
        sched_yield();
    for (unsigned i = 0; i < CHILDREN; i++)
        __atomic_store_n(&replies[i].is_over, true, __ATOMIC_RELEASE);
    for (unsigned i = 0; i < CHILDREN; i++)
        pthread_join(thread[i], NULL);
    ck_assert_uint_eq(live(), 0);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("coroutine");
    TCase *t = tcase_create("coroutine");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, runs_until_it_yields_or_ends);
    tcase_add_test(t, a_coroutine_may_resume_another);
    tcase_add_test(t, resume_may_come_before_the_yield);
    tcase_add_test(t, registers_survive_a_switch);
    tcase_add_test(t, rounding_mode_stays_with_its_side);
    tcase_add_test(t, stack_is_aligned);
    tcase_add_test(t, ten_thousand_coroutines_sleep_and_end);
    tcase_add_test(t, a_coroutine_above_the_cap_is_refused);
    tcase_add_test(t, a_stack_overflow_hits_the_guard);
    tcase_add_test(t, coroutines_are_resumed_by_any_thread);
    tcase_add_test(t, the_last_reply_resumes_the_coroutine);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
