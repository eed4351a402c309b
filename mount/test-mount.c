/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A mount that gets no thread at the start, while all mounts leave. The linker replaces thread_start() and
 * pthread_mutex_lock() by functions of this file (--wrap). */
#include "mount/mount.h"

#include <check.h>
#include <errno.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "base/thread.h"
#include "mount/client-volume.h"
#include "mount/spec.h"
#include "xlators/mount/fuse/fuse.h"

int __real_thread_start(void *(*run)(void *arg), void *arg);
int __wrap_thread_start(void *(*run)(void *arg), void *arg);
int __real_pthread_mutex_lock(pthread_mutex_t *m);
int __wrap_pthread_mutex_lock(pthread_mutex_t *m);

static atomic_int asked, started, emptied, settled_count; /* `asked`: calls of thread_start() */
static __thread bool is_adding, is_leaving;

/* Refuses the first thread. */
int
__wrap_thread_start(void *(*run)(void *arg), void *arg)
{
    if (atomic_fetch_add(&asked, 1) == 0)
        return -EAGAIN;
    atomic_fetch_add(&started, 1);
    return __real_thread_start(run, arg);
}

/* Makes all mounts leave before each lock that mounts_add() takes after the refusal of the thread. At these
 * points mounts_add() holds no lock. */
int
__wrap_pthread_mutex_lock(pthread_mutex_t *m)
{
    if (is_adding && !is_leaving && atomic_load(&asked)) {
        is_leaving = true;
        mounts_leave();
        if (atomic_load(&started))
            mounts_end(); /* waits until the thread has freed the objects that the thread frees */
        is_leaving = false;
    }
    return __real_pthread_mutex_lock(m);
}

/* ---- functions that the test must not reach -------------------------------------------------- */

void
fuse_set_hooks(void (*unmounted)(struct graph *g), void (*left)(struct graph *g))
{
    (void)unmounted, (void)left;
}

/* The functions for a newer program: these tests have none. */
int
fuse_freeze_begin(struct graph *g)
{
    (void)g;
    return -ENOTCONN;
}

int
fuse_freeze_look(struct graph *g)
{
    (void)g;
    return -ENOTCONN;
}

const char *
fuse_freeze_obstacle(struct graph *g)
{
    (void)g;
    return "";
}

void
fuse_thaw(struct graph *g)
{
    (void)g;
}

int
fuse_save(struct graph *g, struct parcel *to)
{
    (void)g;
    (void)to;
    return -ENOTCONN;
}

int
fuse_keep_open(struct graph *g, bool keeps)
{
    (void)g;
    (void)keeps;
    return -ENOTCONN;
}

int
fuse_restore(struct graph *g, struct parcel *from)
{
    (void)g;
    (void)from;
    return -ENOTCONN;
}

int
fuse_go_on(struct graph *g)
{
    (void)g;
    return -ENOTCONN;
}

void
fuse_unmount(struct graph *g)
{
    (void)g;
    abort();
}

int
fuse_switch(struct graph *from, struct graph *to)
{
    (void)from, (void)to;
    abort();
}

bool
fuse_keeps(struct graph *now, const struct graph *g)
{
    (void)now, (void)g;
    abort();
}

struct spec *
spec_new(const char *const *servers, unsigned count, uint16_t port, const char *id,
         const struct spec_ops *ops, void *arg, int *err)
{
    (void)servers, (void)count, (void)port, (void)id, (void)ops, (void)arg, (void)err;
    abort();
}

void
spec_refetch(struct spec *s)
{
    (void)s;
    abort();
}

void
spec_free(struct spec *s)
{
    ck_assert_ptr_null(s);
}

struct volfile *
volume_parse(const struct mount_options *o, const char *mountpoint, const char *text, size_t len, char *error,
             size_t error_size)
{
    (void)o, (void)mountpoint, (void)text, (void)len, (void)error, (void)error_size;
    abort();
}

struct graph *
mount_graph_new(struct volfile *v, char *error, size_t error_size)
{
    (void)v, (void)error, (void)error_size;
    abort();
}

struct graph *
mount_graph_new_next(struct volfile *v, char *error, size_t error_size)
{
    (void)v, (void)error, (void)error_size;
    abort();
}

void
client_volume_log_left_out(const struct graph *g, const char *mountpoint)
{
    (void)g, (void)mountpoint;
    abort();
}

enum volume_change
volume_compare(const struct volfile *before, const struct volfile *now)
{
    (void)before, (void)now;
    abort();
}

void
mount_options_free(struct mount_options *o)
{
    (void)o;
}

/* ---- the test -------------------------------------------------------------------------------- */

static void
empty(void)
{
    atomic_fetch_add(&emptied, 1);
}

static void
settled(int status, const char *why, void *arg)
{
    (void)status, (void)why, (void)arg;
    atomic_fetch_add(&settled_count, 1);
}

START_TEST(one_that_gets_no_thread_is_freed_once_while_all_leave)
{
    struct mount_options o = {.volfile = "/none"};

    mounts_begin(&(struct mounts_hooks){.empty = empty});
    is_adding = true;
    int err = mounts_add(&o, "/mnt", NULL, settled, NULL);
    is_adding = false;
    mounts_end();
    ck_assert_int_eq(err, -EAGAIN);
    ck_assert_int_eq(atomic_load(&emptied), 1);
    ck_assert_int_eq(atomic_load(&settled_count), 0); /* nothing has begun */
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("mount");
    TCase *t = tcase_create("mount");

    tcase_add_test(t, one_that_gets_no_thread_is_freed_once_while_all_leave);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
