/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Children of tests of the pump, and a suite that runs each test with and without the spawner. */
#ifndef KILN_EVENT_TEST_PUMP_H
#define KILN_EVENT_TEST_PUMP_H

#include <check.h>
#include <dirent.h>
#include <errno.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "event/pump.h"
#include "event/spawner.h"
#include "event/worker.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"

/* A child of a test, and its results. */
struct child {
    sem_t done;
    struct pump_result result;
    char out[4096];
    size_t out_bytes, err_bytes, in_asked;
    char err[4096];
    atomic_int inside; /* functions of one pump run one at a time */
    int fails_with, busy_for;
    struct pump *pump;
};

static char place[64];
static unsigned descriptors_before;

static inline unsigned
descriptors(void)
{
    DIR *dir = opendir("/proc/self/fd");
    unsigned n = 0;

    while (readdir(dir))
        n++;
    closedir(dir);
    return n;
}

static inline void
setup(void)
{
    strcpy(place, "/tmp/test-pump-XXXXXX");
    int fd = mkstemp(place);

    ck_assert_int_ge(fd, 0);
    close(fd);
    /* Else the sweeper would open files when it starts to run, and take descriptors that a test has left
     * for the pump. */
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    ck_assert_int_eq(mem_pools_init(), 0);
    mem_pools_fini(); /* from now on the pools keep one descriptor */
    descriptors_before = descriptors();
    ck_assert_int_eq(mem_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(pump_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 4}), 0);
}

/* After every test: no child, no descriptor and no object is left. */
static inline void
teardown(void)
{
    pumps_stop();
    ck_assert_uint_eq(pumps_running(), 0);
    workers_stop();
    ck_assert_int_eq(waitpid(-1, NULL, WNOHANG), -1);
    ck_assert_int_eq(errno, ECHILD);
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
    ck_assert_uint_eq(descriptors(), descriptors_before);
    unlink(place);
}

static inline void
wait_for(sem_t *s)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 20;
    while (sem_timedwait(s, &until))
        ck_assert_int_eq(errno, EINTR);
}

static inline int
take_out(void *arg, const char *bytes, size_t count)
{
    struct child *c = arg;

    ck_assert_int_eq(c->inside++, 0);
    ck_assert_uint_ge(count, 1);
    for (size_t i = 0; i < count && c->out_bytes + i < sizeof c->out - 1; i++)
        c->out[c->out_bytes + i] = bytes[i];
    c->out_bytes += count;
    c->inside--;
    return c->fails_with;
}

static inline int
take_err(void *arg, const char *bytes, size_t count)
{
    struct child *c = arg;

    ck_assert_int_eq(c->inside++, 0);
    for (size_t i = 0; i < count && c->err_bytes + i < sizeof c->err - 1; i++)
        c->err[c->err_bytes + i] = bytes[i];
    c->err_bytes += count;
    c->inside--;
    return 0;
}

static inline void
done(struct pump *p, const struct pump_result *r, void *arg)
{
    struct child *c = arg;

    (void)p;
    ck_assert_int_eq(c->inside++, 0);
    c->result = *r;
    sem_post(&c->done);
}

static inline struct child *
child_new(void)
{
    struct child *c = calloc(1, sizeof *c);

    sem_init(&c->done, 0, 0);
    return c;
}

static inline struct pump_options
shell(struct child *c, char *const argv[])
{
    return (struct pump_options){.path = argv[0],
                                 .argv = argv,
                                 .out = {.kind = PUMP_FN, .fn = take_out},
                                 .err = {.kind = PUMP_FN, .fn = take_err},
                                 .done = done,
                                 .arg = c};
}
#define SH(text) ((char *const[]){"/bin/sh", "-c", (char *)(uintptr_t)(text), NULL})

static inline void
run(struct child *c, const struct pump_options *o)
{
    ck_assert_int_eq(pump_start(o, NULL), 0);
    wait_for(&c->done);
}

static inline void
free_child(struct child *c)
{
    sem_destroy(&c->done);
    free(c);
}

/* ---- by the spawner -------------------------------------------------------------------------- */

static inline void
setup_with_spawner(void)
{
    ck_assert_int_eq(spawner_begin(NULL, NULL), 0);
    setup();
}

static inline void
teardown_with_spawner(void)
{
    descriptors_before--; /* the spawner's socket */
    spawner_end();
    teardown();
}

/* Returns a suite of the tests that `add` adds; *plain: the case without the spawner. */
static inline Suite *
pump_suite(const char *name, void (*add)(TCase *t), TCase **plain)
{
    Suite *s = suite_create(name);
    TCase *t = tcase_create("pump"), *by_spawner = tcase_create("pump with a spawner");

    tcase_set_timeout(t, 60);
    tcase_add_checked_fixture(t, setup, teardown);
    add(t);
    suite_add_tcase(s, t);
    tcase_set_timeout(by_spawner, 60);
    tcase_add_checked_fixture(by_spawner, setup_with_spawner, teardown_with_spawner);
    add(by_spawner);
    suite_add_tcase(s, by_spawner);
    *plain = t;
    return s;
}

#endif
