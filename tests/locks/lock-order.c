/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* lock-order: a library for LD_PRELOAD that aborts a program whose order of locks could cause a deadlock,
 * also when no deadlock has happened.
 *
 * All mutexes that the same pthread_mutex_init() call of the source makes are a class; each static mutex is a
 * separate class. Taking a mutex while another mutex is held is an edge from the held mutex's class to the
 * taken mutex's class. The library calls abort() with the stacks of both ends when
 *
 *   - a thread takes a mutex that it holds, which would be a hang;
 *   - a thread takes a second mutex of a class, unless the held mutex has the lower address in the same
 *     array;
 *   - an edge closes a cycle: two threads that went the two ways at once would wait for each other;
 *   - a thread waits on a condition and holds another mutex than the condition's.
 *
 * An RCU read section counts as a class: a thread that waits for the sections' end may not hold a lock that
 * is taken in a section. A pthread_mutex_trylock() does not wait, so it makes no edge. The edges are written
 * to the file $KILN_LOCK_ORDER, an `A B` a line, by classes' names (the object's file name and the place in
 * the object), once for each process. tests/locks/lock-order merges the files of many processes.
 * $KILN_LOCK_ORDER_LOG: a file for the message before abort(), instead of stderr. */
#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CLASSES_MAX 2048
#define HELD_MAX 192 /* a walk over all stripes, and more */
#define FRAMES 14
#define SHARDS 256
#define SLOTS 1024 /* to begin with, of each shard */

enum { RCU = 0, ON_HEAP = 1 }; /* class 0: read sections; 1: mutexes without an initialising call */

/* ---- classes --------------------------------------------------------------------------------- */

/* the return address of pthread_mutex_init(), or a static mutex. Under graph_lock */
static uintptr_t classes[CLASSES_MAX];
static atomic_uint class_count = 2;
static uint8_t edges[CLASSES_MAX][CLASSES_MAX]; /* set once. Under graph_lock to set */

struct shard {
    atomic_flag lock;
    struct slot {
        uintptr_t mutex;
        unsigned class;
    } *slots;
    size_t capacity, used;
};
static struct shard shards[SHARDS];

/* Of a thread. */
struct held {
    pthread_mutex_t *mutex;
    unsigned class;
    void *from; /* who took it */
};
static _Thread_local struct held held[HELD_MAX] __attribute__((tls_model("initial-exec")));
static _Thread_local unsigned held_count __attribute__((tls_model("initial-exec")));
static _Thread_local bool is_inside __attribute__((tls_model("initial-exec")));

static int (*real_lock)(pthread_mutex_t *), (*real_trylock)(pthread_mutex_t *),
    (*real_unlock)(pthread_mutex_t *);
static int (*real_init)(pthread_mutex_t *, const pthread_mutexattr_t *), (*real_destroy)(pthread_mutex_t *);
static int (*real_wait)(pthread_cond_t *, pthread_mutex_t *);
static int (*real_timedwait)(pthread_cond_t *, pthread_mutex_t *, const struct timespec *);
static int (*real_clockwait)(pthread_cond_t *, pthread_mutex_t *, clockid_t, const struct timespec *);
static void (*real_synchronize)(void);
static int (*read_ongoing)(void);
static pthread_mutex_t graph_lock = PTHREAD_MUTEX_INITIALIZER;

static void *
next(const char *name, const char *version)
{
    void *p = version ? dlvsym(RTLD_NEXT, name, version) : NULL;

    return p ? p : dlsym(RTLD_NEXT, name);
}

__attribute__((constructor)) static void
start(void)
{
    void *frames[2];

    if (real_lock)
        return;
    real_init = next("pthread_mutex_init", NULL);
    real_destroy = next("pthread_mutex_destroy", NULL);
    real_trylock = next("pthread_mutex_trylock", NULL);
    real_unlock = next("pthread_mutex_unlock", NULL);
    real_wait = next("pthread_cond_wait", "GLIBC_2.3.2");
    real_timedwait = next("pthread_cond_timedwait", "GLIBC_2.3.2");
    real_clockwait = next("pthread_cond_clockwait", NULL);
    real_synchronize = next("urcu_memb_synchronize_rcu", NULL);
    read_ongoing = (int (*)(void))dlsym(RTLD_DEFAULT, "urcu_memb_read_ongoing");
    real_lock = next("pthread_mutex_lock", NULL);
    backtrace(frames, 2); /* its first call allocates */
}

static struct shard *
shard_of(const void *mutex)
{
    struct shard *s = &shards[((uintptr_t)mutex >> 4) * 0x9e3779b97f4a7c15u >> 56];

    while (atomic_flag_test_and_set_explicit(&s->lock, memory_order_acquire))
        ;
    return s;
}

static void
shard_done(struct shard *s)
{
    atomic_flag_clear_explicit(&s->lock, memory_order_release);
}

static struct slot *
slot_find(struct shard *s, uintptr_t mutex)
{
    if (!s->slots)
        return NULL;
    for (size_t at = (mutex >> 4) * 0x9e3779b97f4a7c15u >> 20;; at++) {
        struct slot *slot = &s->slots[at & (s->capacity - 1)];

        if (!slot->mutex || slot->mutex == mutex)
            return slot;
    }
}

static void
shard_grow(struct shard *s)
{
    struct shard old = *s;

    s->capacity = old.capacity ? old.capacity * 2 : SLOTS;
    /* mmap() instead of malloc(), because malloc() may be the function that takes the mutex. */
    s->slots = mmap(NULL, s->capacity * sizeof *s->slots, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
                    -1, 0);
    if (s->slots == MAP_FAILED)
        abort();
    for (size_t i = 0; i < old.capacity; i++)
        if (old.slots[i].mutex)
            *slot_find(s, old.slots[i].mutex) = old.slots[i];
    if (old.slots)
        munmap(old.slots, old.capacity * sizeof *old.slots);
}

static void
class_note(const void *mutex, unsigned class)
{
    struct shard *s = shard_of(mutex);

    if (2 * s->used >= s->capacity)
        shard_grow(s);
    struct slot *slot = slot_find(s, (uintptr_t)mutex);
    s->used += !slot->mutex;
    *slot = (struct slot){(uintptr_t)mutex, class};
    shard_done(s);
}

static unsigned
class_of_place(uintptr_t place)
{
    real_lock(&graph_lock);
    unsigned c = 2;

    while (c < class_count && classes[c] != place)
        c++;
    if (c == CLASSES_MAX)
        abort();
    if (c == class_count) {
        classes[c] = place;
        atomic_fetch_add(&class_count, 1);
    }
    real_unlock(&graph_lock);
    return c;
}

static unsigned
class_of(pthread_mutex_t *mutex)
{
    struct shard *s = shard_of(mutex);
    const struct slot *slot = slot_find(s, (uintptr_t)mutex);
    unsigned class = slot && slot->mutex ? slot->class : 0;
    Dl_info info;

    shard_done(s);
    if (class)
        return class;
    class = dladdr(mutex, &info) ? class_of_place((uintptr_t)mutex) : ON_HEAP;
    class_note(mutex, class);
    return class;
}

static const char *
class_name(unsigned class, char *text, size_t size)
{
    Dl_info info;

    if (class <= ON_HEAP)
        return class == RCU ? "read-section" : "somewhere";
    if (!dladdr((void *)classes[class], &info))
        snprintf(text, size, "?+%p", (void *)classes[class]);
    else
        snprintf(text, size, "%s+%#lx", info.dli_fname,
                 (unsigned long)(classes[class] - (uintptr_t)info.dli_fbase));
    return text;
}

/* ---- what is said ---------------------------------------------------------------------------- */

static int
log_fd(void)
{
    const char *path = getenv("KILN_LOCK_ORDER_LOG");
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

    return fd >= 0 ? fd : STDERR_FILENO;
}

/* A line, without malloc. */
__attribute__((format(printf, 2, 3))) static void
tell(int fd, const char *format, ...)
{
    char line[2600];
    va_list args;

    va_start(args, format);
    int len = vsnprintf(line, sizeof line - 1, format, args);
    va_end(args);
    len = len < (int)sizeof line - 1 ? len : (int)sizeof line - 2;
    line[len++] = '\n';
    if (write(fd, line, (size_t)len) != len)
        abort();
}

__attribute__((format(printf, 1, 2), noreturn)) static void
complain(const char *format, ...)
{
    void *frames[32];
    char line[2560], name[512];
    int fd = log_fd();
    va_list args;

    is_inside = true;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    tell(fd, "LOCK ORDER: %s", line);
    for (unsigned i = 0; i < held_count; i++) {
        tell(fd, "  holds %p of %s, taken at:", (void *)held[i].mutex,
             class_name(held[i].class, name, sizeof name));
        backtrace_symbols_fd(&held[i].from, 1, fd);
    }
    tell(fd, "  this thread:");
    backtrace_symbols_fd(frames, backtrace(frames, 32), fd);
    abort();
}

static void
edge_write(unsigned from, unsigned to)
{
    const char *path = getenv("KILN_LOCK_ORDER");
    char a[512], b[512], line[1100];
    int fd = path ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666) : -1;

    if (fd < 0)
        return;
    int len =
        snprintf(line, sizeof line, "%s %s\n", class_name(from, a, sizeof a), class_name(to, b, sizeof b));
    if (write(fd, line, (size_t)len) != len)
        abort();
    close(fd);
}

/* ---- the graph ------------------------------------------------------------------------------- */

/* Does `from` lead to `to`? path: the classes between, for the message. */
static bool
leads_to(unsigned from, unsigned to, uint8_t *seen, unsigned *path, unsigned *length)
{
    path[(*length)++] = from;
    seen[from] = 1;
    for (unsigned c = 0; c < class_count; c++) {
        if (!edges[from][c])
            continue;
        if (c == to || (!seen[c] && leads_to(c, to, seen, path, length)))
            return true;
    }
    --*length;
    return false;
}

static void
edge_add(unsigned from, unsigned to)
{
    static unsigned path[CLASSES_MAX];
    static uint8_t seen[CLASSES_MAX];
    unsigned length = 0;
    char text[2048] = "", name[512];

    real_lock(&graph_lock);
    bool is_new = !edges[from][to];
    if (is_new) {
        memset(seen, 0, sizeof seen);
        bool is_cycle = leads_to(to, from, seen, path, &length);

        edges[from][to] = 1;
        for (unsigned i = 0; is_cycle && i < length; i++) {
            strncat(text, class_name(path[i], name, sizeof name), sizeof text - strlen(text) - 1);
            strncat(text, " -> ", sizeof text - strlen(text) - 1);
        }
        if (is_cycle)
            complain("a cycle: %s back to %s", text, class_name(from, name, sizeof name));
        edge_write(from, to);
    }
    real_unlock(&graph_lock);
}

static void
before_wait(pthread_mutex_t *mutex, unsigned class)
{
    char name[512];

    for (unsigned i = 0; i < held_count; i++) {
        const struct held *h = &held[i];

        if (h->mutex == mutex)
            complain("%p of %s is taken by who holds it", (void *)mutex,
                     class_name(class, name, sizeof name));
        if (h->class != class)
            edge_add(h->class, class);
        else if (class != ON_HEAP && (mutex < h->mutex || mutex > h->mutex + 64))
            complain("%p and %p of %s are held together, in no order", (void *)h->mutex, (void *)mutex,
                     class_name(class, name, sizeof name));
    }
    if (read_ongoing && read_ongoing())
        edge_add(RCU, class);
}

static void
note_held(pthread_mutex_t *mutex, unsigned class, void *from)
{
    if (held_count == HELD_MAX)
        complain("more than %d are held", HELD_MAX);
    held[held_count++] = (struct held){mutex, class, from};
}

static void
note_released(const pthread_mutex_t *mutex)
{
    for (unsigned i = held_count; i-- > 0;)
        if (held[i].mutex == mutex) {
            memmove(&held[i], &held[i + 1], (--held_count - i) * sizeof held[0]);
            return;
        }
}

/* ---- what it stands in the place of ---------------------------------------------------------- */

int
pthread_mutex_init(pthread_mutex_t *mutex, const pthread_mutexattr_t *attr)
{
    start();
    if (!is_inside) {
        is_inside = true;
        class_note(mutex, class_of_place((uintptr_t)__builtin_return_address(0)));
        is_inside = false;
    }
    return real_init(mutex, attr);
}

int
pthread_mutex_destroy(pthread_mutex_t *mutex)
{
    start();
    for (unsigned i = 0; i < held_count; i++)
        if (held[i].mutex == mutex)
            complain("%p is destroyed by who holds it", (void *)mutex);
    return real_destroy(mutex);
}

int
pthread_mutex_lock(pthread_mutex_t *mutex)
{
    start();
    if (is_inside)
        return real_lock(mutex);
    is_inside = true;
    unsigned class = class_of(mutex);

    before_wait(mutex, class);
    is_inside = false;
    int err = real_lock(mutex);
    note_held(mutex, class, __builtin_return_address(0));
    return err;
}

/* See libglusterfs/base/lock-order.h. */
void kiln_lock_order_may_take(pthread_mutex_t *mutex);

void
kiln_lock_order_may_take(pthread_mutex_t *mutex)
{
    start();
    if (is_inside)
        return;
    is_inside = true;
    before_wait(mutex, class_of(mutex));
    is_inside = false;
}

int
pthread_mutex_trylock(pthread_mutex_t *mutex)
{
    start();
    int err = real_trylock(mutex);

    if (err == 0 && !is_inside) {
        is_inside = true;
        note_held(mutex, class_of(mutex), __builtin_return_address(0));
        is_inside = false;
    }
    return err;
}

int
pthread_mutex_unlock(pthread_mutex_t *mutex)
{
    start();
    if (!is_inside)
        note_released(mutex);
    return real_unlock(mutex);
}

static void
before_cond(const pthread_mutex_t *mutex)
{
    start();
    for (unsigned i = 0; i < held_count && !is_inside; i++)
        if (held[i].mutex != mutex)
            complain("a thread waits on a condition and holds another lock than the condition's");
}

int
pthread_cond_wait(pthread_cond_t *cond, pthread_mutex_t *mutex)
{
    before_cond(mutex);
    return real_wait(cond, mutex);
}

int
pthread_cond_timedwait(pthread_cond_t *cond, pthread_mutex_t *mutex, const struct timespec *until)
{
    before_cond(mutex);
    return real_timedwait(cond, mutex, until);
}

int
pthread_cond_clockwait(pthread_cond_t *cond, pthread_mutex_t *mutex, clockid_t clock,
                       const struct timespec *until)
{
    before_cond(mutex);
    return real_clockwait(cond, mutex, clock, until);
}

void urcu_memb_synchronize_rcu(void);

void
urcu_memb_synchronize_rcu(void)
{
    start();
    is_inside = true;
    if (read_ongoing && read_ongoing())
        complain("the end of read sections is waited for inside of one");
    for (unsigned i = 0; i < held_count; i++)
        edge_add(held[i].class, RCU);
    real_synchronize();
    is_inside = false;
}
