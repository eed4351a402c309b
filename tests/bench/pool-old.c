/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */

/* pool-old: two designs to compare the pool with, written for this benchmark from one line of description
 * each. Calls are out of line, as in the way "pool". */
#include "pool-bench.h"

/* ---- upstream: the design of version 10, in outline ------------------------------------------ */

enum { CLASS_MIN = 6, CLASSES = 16, HOT = 0, COLD = 1 }; /* 64 bytes .. 2 MiB, the header included */

struct up_thread;

struct up_object {
    struct up_object *next;  /* in a list */
    struct up_thread *home;  /* whose lists it goes back to */
    int64_t *active;         /* of the object's type, shared by all threads */
    uint64_t class;
    uint64_t magic;
};
_Static_assert(sizeof(struct up_object) == 40, "the header's size is part of the comparison");

struct up_thread {
    pthread_spinlock_t lock;
    struct up_object *list[CLASSES][2];
    struct up_thread *next;
} __attribute__((aligned(64)));

static struct {
    pthread_mutex_t mutex; /* guards the list of threads; blocks are never freed, because objects point to
                            * them */
    struct up_thread *threads;
    struct {
        int64_t n __attribute__((aligned(64)));
    } active[TYPES];
} up = { .mutex = PTHREAD_MUTEX_INITIALIZER };
static __thread struct up_thread *up_self;

static struct up_thread *
up_attach(void)
{
    struct up_thread *t = aligned_alloc(64, sizeof(*t));

    if (!t)
        abort();
    memset(t, 0, sizeof(*t));
    pthread_spin_init(&t->lock, PTHREAD_PROCESS_PRIVATE);
    pthread_mutex_lock(&up.mutex);
    t->next = up.threads;
    up.threads = t;
    pthread_mutex_unlock(&up.mutex);
    return up_self = t;
}

static struct up_object *
up_pop(struct up_object **list)
{
    struct up_object *o = *list;

    if (o)
        *list = o->next;
    return o;
}

void *
upstream_get(unsigned type)
{
    struct up_thread *t = up_self ? up_self : up_attach();
    size_t bytes = type_size[type] + sizeof(struct up_object);
    unsigned class = bytes <= 1u << CLASS_MIN ? 0 : 64 - (unsigned)__builtin_clzll(bytes - 1) - CLASS_MIN;
    struct up_object *o;

    __atomic_fetch_add(&up.active[type].n, 1, __ATOMIC_SEQ_CST);
    pthread_spin_lock(&t->lock);
    o = up_pop(&t->list[class][HOT]);
    if (!o)
        o = up_pop(&t->list[class][COLD]);
    pthread_spin_unlock(&t->lock);
    if (!o) {
        o = malloc((size_t)1 << (class + CLASS_MIN));
        if (!o)
            abort();
        o->home = t;
        o->class = class;
    }
    o->active = &up.active[type].n;
    o->magic = 0x504f4f4c;
    return o + 1;
}

void
upstream_put(void *object)
{
    struct up_object *o = (struct up_object *)object - 1;
    struct up_thread *t = o->home;

    if (o->magic != 0x504f4f4c)
        abort();
    o->magic = 0;
    __atomic_fetch_sub(o->active, 1, __ATOMIC_SEQ_CST);
    pthread_spin_lock(&t->lock);
    o->next = t->list[o->class][HOT];
    t->list[o->class][HOT] = o;
    pthread_spin_unlock(&t->lock);
}

static void *
up_sweeper(void *arg)
{
    unsigned ms = *(unsigned *)arg;

    for (;;) {
        usleep(ms * 1000);
        pthread_mutex_lock(&up.mutex);
        for (struct up_thread *t = up.threads; t; t = t->next) {
            struct up_object *old[CLASSES];

            pthread_spin_lock(&t->lock);
            for (unsigned c = 0; c < CLASSES; c++) {
                old[c] = t->list[c][COLD];
                t->list[c][COLD] = t->list[c][HOT];
                t->list[c][HOT] = NULL;
            }
            pthread_spin_unlock(&t->lock);
            for (unsigned c = 0; c < CLASSES; c++)
                for (struct up_object *o; (o = up_pop(&old[c]));)
                    free(o);
        }
        pthread_mutex_unlock(&up.mutex);
    }
    return NULL;
}

int
upstream_sweeper(unsigned ms)
{
    static unsigned period;
    pthread_t t;

    period = ms;
    return pthread_create(&t, NULL, up_sweeper, &period);
}

/* ---- seed: no exchange, and never swept: the best case of the design ------------------------- */

struct seed_list {
    uint32_t lock;
    void *hot;
} __attribute__((aligned(64)));
static __thread struct seed_list seed_lists[TYPES];

static inline void
seed_lock(struct seed_list *l)
{
    while (__atomic_exchange_n(&l->lock, 1, __ATOMIC_ACQUIRE))
        __builtin_ia32_pause();
}

static inline void
seed_unlock(struct seed_list *l)
{
    __atomic_store_n(&l->lock, 0, __ATOMIC_RELEASE);
}

void *
seed_get(unsigned type)
{
    struct seed_list *l = &seed_lists[type];
    void **p;

    seed_lock(l);
    p = l->hot;
    if (p)
        l->hot = *p;
    seed_unlock(l);
    return p ? (void *)p : malloc(type_size[type]);
}

void
seed_put(unsigned type, void *object)
{
    struct seed_list *l = &seed_lists[type];

    seed_lock(l);
    *(void **)object = l->hot;
    l->hot = object;
    seed_unlock(l);
}
