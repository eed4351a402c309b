/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fd: open files and their numbers.
 *
 * Numbers come from a stack of free numbers, so that the most recently freed number is given out next, as
 * in stock (wire 8.4). Both arrays grow together, by doubling. */
#include "fs/fd.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "fs/fs-internal.h"
#include "graph/graph.h"
#include "mem/mem-ids.h"

#define SLOTS_MIN 16u
#define NOFILE_MAX (1u << 20)

struct ctx_pools fd_pools = {.name = "struct fd", .head = sizeof(struct fd), .room = 2};

int
fd_pool_init(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0)
        fd_files_set_limit((uint32_t)((files.rlim_cur < NOFILE_MAX ? files.rlim_cur : NOFILE_MAX) / 8 * 3));
    return mem_pool_make(&fd_pools.usual, MEM_ID_FD, fd_pools.head + fd_pools.room * sizeof(void *),
                         fd_pools.name);
}

struct fd *
fd_new(struct inode *inode, struct brick_client *client, uint32_t flags, bool is_dir)
{
    struct graph *g = inode_table_graph(inode->table);
    struct fd *fd = mem_get0_owner(inode_table_fd_pool(inode->table), g ? g->owner : 0);

    if (!fd)
        return NULL;
    refcount_init(&fd->refs, 1);
    fd->inode = inode_ref(inode);
    fd->client = client;
    fd->flags = flags;
    fd->is_dir = is_dir;
    atomic_fetch_add_explicit(&inode->open_fds, 1, memory_order_relaxed);
    return fd;
}

struct fd *
fd_new_anonymous(struct inode *inode, struct brick_client *client)
{
    struct fd *fd = fd_new(inode, client, O_RDWR, S_ISDIR(inode->type));

    if (!fd)
        return NULL;
    fd->is_anonymous = true;
    atomic_fetch_sub_explicit(&inode->open_fds, 1, memory_order_relaxed);
    return fd;
}

struct fd *
fd_ref(struct fd *fd)
{
    refcount_get(&fd->refs);
    return fd;
}

void
fd_end(struct fd *fd)
{
    struct graph *g = inode_table_graph(fd->inode->table);

    if (!fd->is_anonymous)
        atomic_fetch_sub_explicit(&fd->inode->open_fds, 1, memory_order_acq_rel);
    for (unsigned l = 0; g && l < g->layer_count; l++) {
        struct xlator *xl = &g->layers[l];

        if (xl->type->fd_closed)
            xl->type->fd_closed(xl, fd);
        void *ctx = xl->slot[CTX_FD] ? fd_ctx(fd, xl) : NULL;
        if (ctx && xl->type->fd_release)
            xl->type->fd_release(xl, fd, ctx);
    }
    bool is_usual = inode_table_fd_pool(fd->inode->table) == fd_pools.usual;
    inode_unref(fd->inode);
    if (is_usual)
        mem_put_t(MEM_ID_FD, fd);
    else
        mem_put(fd);
}

/* ---- shares of the descriptors --------------------------------------------------------------- */

static _Atomic uint32_t files_used, files_limit = UINT32_MAX;

void
fd_files_set_limit(uint32_t limit)
{
    atomic_store(&files_limit, limit);
}

uint32_t
fd_files_used(uint32_t *limit)
{
    *limit = atomic_load(&files_limit);
    return atomic_load(&files_used);
}

static uint32_t
used_locked(const struct fd_table *t)
{
    return t->capacity - t->free_count;
}

/* The remaining number is read before a descriptor is taken, so each thread may overshoot by one. */
static int
may_add_locked(const struct fd_table *t)
{
    uint32_t limit, all = fd_files_used(&limit);
    uint32_t left = limit > all ? limit - all : 0;

    if (!t->brick_files)
        return 0;
    if (!left)
        return -ENFILE;
    /* A descriptor that the brick takes also lowers `left` by one, so the brick may take half of the
     * difference. */
    uint32_t brick = atomic_load(t->brick_files), brick_left = left > brick ? (left - brick + 1) / 2 : 0;
    return used_locked(t) < brick_left ? 0 : -EMFILE;
}

/* Changes the counts at each open and close. Counting in advance by the batch would not work: many clients
 * have one file open on a brick, and the unused part of their batches would be missing for others. */
static void
count_files_locked(struct fd_table *t, uint32_t n)
{
    if (!t->brick_files)
        return;
    atomic_fetch_add(t->brick_files, n);
    atomic_fetch_add(&files_used, n);
}

int
fd_table_may_add(struct fd_table *t)
{
    pthread_mutex_lock(&t->lock);
    int err = may_add_locked(t);

    pthread_mutex_unlock(&t->lock);
    return err;
}

/* ---- the table ------------------------------------------------------------------------------- */

void
fd_table_init(struct fd_table *t)
{
    *t = (struct fd_table){0};
    pthread_mutex_init(&t->lock, NULL);
}

static int
fd_table_grow_locked(struct fd_table *t)
{
    uint32_t n = t->capacity ? t->capacity * 2 : SLOTS_MIN;

    if (t->capacity >= FD_TABLE_MAX)
        return -EMFILE;
    struct fd **slots = reallocarray(t->slots, n, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    t->slots = slots;
    uint32_t *numbers = reallocarray(t->free_numbers, n, sizeof *numbers);
    if (!numbers)
        return -ENOMEM;
    t->free_numbers = numbers;
    for (uint32_t i = n; i-- > t->capacity;) { /* the lowest number ends on top */
        slots[i] = NULL;
        numbers[t->free_count++] = i;
    }
    t->capacity = n;
    return 0;
}

int64_t
fd_table_add(struct fd_table *t, struct fd *fd)
{
    int64_t number;

    pthread_mutex_lock(&t->lock);
    number = t->is_closed ? -ENOTCONN : may_add_locked(t);
    if (!number && !t->free_count)
        number = fd_table_grow_locked(t);
    if (number == 0) {
        number = t->free_numbers[--t->free_count];
        t->slots[number] = fd;
        count_files_locked(t, 1);
    }
    pthread_mutex_unlock(&t->lock);
    return number;
}

/* False: the number is not free. */
static bool
take_free_number_locked(struct fd_table *t, uint32_t number)
{
    for (uint32_t i = t->free_count; i-- > 0;) { /* numbers given in order are near the top */
        if (t->free_numbers[i] != number)
            continue;
        memmove(&t->free_numbers[i], &t->free_numbers[i + 1], (t->free_count - i - 1) * sizeof number);
        t->free_count--;
        return true;
    }
    return false;
}

int
fd_table_put(struct fd_table *t, struct fd *fd, uint32_t number)
{
    pthread_mutex_lock(&t->lock);
    int err = t->is_closed ? -ENOTCONN : number >= FD_TABLE_MAX ? -EMFILE : 0;

    while (!err && number >= t->capacity)
        err = fd_table_grow_locked(t);
    if (!err && !take_free_number_locked(t, number))
        err = -EEXIST;
    if (!err) {
        t->slots[number] = fd;
        count_files_locked(t, 1);
    }
    pthread_mutex_unlock(&t->lock);
    return err;
}

int64_t
fd_table_number(struct fd_table *t, const struct fd *fd)
{
    int64_t number = -1;

    pthread_mutex_lock(&t->lock);
    for (uint32_t i = 0; i < t->capacity && number < 0; i++)
        if (t->slots[i] == fd)
            number = i;
    pthread_mutex_unlock(&t->lock);
    return number;
}

struct fd *
fd_table_get(struct fd_table *t, int64_t number)
{
    struct fd *fd = NULL;

    pthread_mutex_lock(&t->lock);
    if (number >= 0 && number < t->capacity && (fd = t->slots[number]))
        fd_ref(fd);
    pthread_mutex_unlock(&t->lock);
    return fd;
}

static struct fd *
fd_table_take_locked(struct fd_table *t, uint32_t number)
{
    struct fd *fd = t->slots[number];

    if (fd) {
        t->slots[number] = NULL;
        t->free_numbers[t->free_count++] = number;
        count_files_locked(t, -1u);
    }
    return fd;
}

struct fd *
fd_table_take(struct fd_table *t, int64_t number)
{
    struct fd *fd = NULL;

    pthread_mutex_lock(&t->lock);
    if (number >= 0 && number < t->capacity)
        fd = fd_table_take_locked(t, (uint32_t)number);
    pthread_mutex_unlock(&t->lock);
    return fd;
}

void
fd_table_close(struct fd_table *t)
{
    pthread_mutex_lock(&t->lock);
    t->is_closed = true;
    pthread_mutex_unlock(&t->lock);
}

uint32_t
fd_table_count(struct fd_table *t)
{
    pthread_mutex_lock(&t->lock);
    uint32_t n = t->capacity - t->free_count;
    pthread_mutex_unlock(&t->lock);
    return n;
}

void
fd_table_each(struct fd_table *t, void (*fn)(const struct fd *fd, uint32_t number, void *arg), void *arg,
              uint32_t *capacity, uint32_t *first_free)
{
    pthread_mutex_lock(&t->lock);
    *capacity = *first_free = t->capacity;
    for (uint32_t i = 0; i < t->capacity; i++) {
        if (t->slots[i])
            fn(t->slots[i], i, arg);
        else if (*first_free == t->capacity)
            *first_free = i;
    }
    pthread_mutex_unlock(&t->lock);
}

struct fd *
fd_table_take_any(struct fd_table *t)
{
    struct fd *fd = NULL;

    pthread_mutex_lock(&t->lock);
    while (!fd && t->free_count < t->capacity) {
        if (t->cursor >= t->capacity)
            t->cursor = 0;
        fd = fd_table_take_locked(t, t->cursor++);
    }
    pthread_mutex_unlock(&t->lock);
    return fd;
}

void
fd_table_fini(struct fd_table *t)
{
    struct fd *fd;

    while ((fd = fd_table_take_any(t)))
        fd_unref(fd);
    free(t->slots);
    free(t->free_numbers);
    pthread_mutex_destroy(&t->lock);
}
