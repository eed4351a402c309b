/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "bricks/figures.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "fs/brick-client.h"
#include "graph/graph.h"
#include "log/log.h"
#include "mem/mem-pool.h"
#include "xlators/features/index/index.h"
#include "xlators/performance/io-threads/io-threads.h"

/* ---- bricks ---------------------------------------------------------------------------------- */

/* While the list is made. */
struct taking {
    struct figures *f;
    unsigned room;
    bool is_short;
};

void
figures_name_volume(const struct graph *g, char out[FIGURES_VOLUME_SIZE])
{
    static const char tail[] = "-posix";

    *out = '\0';
    for (unsigned i = 0; i < g->layer_count; i++) {
        const char *name = g->layers[i].name;
        size_t len = strlen(name);

        if (strcmp(g->layers[i].type->name, "storage/posix") == 0 && len >= sizeof tail &&
            len - sizeof tail + 1 < FIGURES_VOLUME_SIZE && strcmp(name + len - sizeof tail + 1, tail) == 0)
            snprintf(out, FIGURES_VOLUME_SIZE, "%.*s", (int)(len - sizeof tail + 1), name);
    }
}

int64_t
figures_heal_pending(const struct graph *g)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, "features/index") == 0)
            return index_pending(&g->layers[i]);
    }
    return -1;
}

static void
look_at_layer(struct brick_figures *b, struct xlator *xl)
{
    const char *type = xl->type->name;

    if (strcmp(type, "debug/io-stats") == 0 && !b->stats) {
        b->stats = xl;
        io_stats_counts(xl, &b->counts);
    } else if (strcmp(type, "performance/io-threads") == 0) {
        io_threads_load(xl, &b->running, &b->queued);
    } else if (strcmp(type, "storage/posix") == 0) {
        posix_capacity(xl, &b->disk);
    } else if (strcmp(type, "features/locks") == 0) {
        static const enum fop fops[] = {FOP_lk, FOP_inodelk, FOP_finodelk, FOP_entrylk, FOP_fentrylk};

        for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++)
            b->locks_waiting += atomic_load_explicit(&xl->parked[fops[i]], memory_order_relaxed);
    }
}

static void
count_clients(struct brick_figures *b)
{
    struct brick_client *c;
    unsigned locks = 0;

    pthread_mutex_lock(&b->graph->clients_lock);
    cds_list_for_each_entry(c, &b->graph->clients, link)
    {
        b->clients += c->conn != NULL;
        locks += atomic_load_explicit(&c->locks, memory_order_relaxed);
    }
    pthread_mutex_unlock(&b->graph->clients_lock);
    b->locks_held = locks > b->locks_waiting ? locks - b->locks_waiting : 0;
}

static void
add_unbuilt_feature(const struct unbuilt_feature *f, void *arg)
{
    struct brick_figures *b = arg;

    if (b->unbuilt_count < UNBUILT_SHOWN)
        b->unbuilt[b->unbuilt_count++] = f;
}

static void
read_brick_figures(struct graph *g, void *arg)
{
    struct taking *t = arg;
    struct inode_table_stats inodes;

    if (t->f->brick_count == t->room) {
        unsigned more = t->room ? 2 * t->room : 16;
        struct brick_figures *grown = reallocarray(t->f->bricks, more, sizeof *grown);

        if (!grown) {
            t->is_short = true;
            return;
        }
        t->f->bricks = grown;
        t->room = more;
    }
    if (!graph_pin(g))
        return; /* the brick goes */
    struct brick_figures *b = &t->f->bricks[t->f->brick_count++];
    *b = (struct brick_figures){.graph = g, .is_up = atomic_load(&g->is_child_up)};
    for (unsigned i = 0; i < g->layer_count; i++)
        look_at_layer(b, &g->layers[i]);
    figures_name_volume(g, b->volume);
    b->heal_pending = figures_heal_pending(g);
    count_clients(b);
    graph_each_unbuilt(g, add_unbuilt_feature, b);
    inode_table_stats(g->inodes, &inodes);
    b->inodes = inodes.inodes;
}

/* ---- file systems ---------------------------------------------------------------------------- */

struct disk_user {
    uint64_t device;
    unsigned brick; /* place in the list */
};

static int
compare_disk_users(const void *left, const void *right)
{
    const struct disk_user *a = left, *b = right;

    if (a->device != b->device)
        return a->device < b->device ? -1 : 1;
    return a->brick < b->brick ? -1 : a->brick > b->brick;
}

/* Marks the first brick of each file system. False: no memory. */
static bool
mark_disks(struct figures *f)
{
    struct disk_user *users = calloc(f->brick_count + 1, sizeof *users);

    if (!users)
        return false;
    for (unsigned i = 0; i < f->brick_count; i++)
        users[i] = (struct disk_user){f->bricks[i].disk.device, i};
    qsort(users, f->brick_count, sizeof *users, compare_disk_users);
    for (unsigned i = 0; i < f->brick_count; i++)
        f->bricks[users[i].brick].is_first_on_disk = i == 0 || users[i].device != users[i - 1].device;
    free(users);
    return true;
}

/* ---- memory ---------------------------------------------------------------------------------- */

struct pool_lines {
    struct figures *f;
    uint16_t *brick_of; /* by owner: 1 + the brick's place; 0: no brick */
    unsigned room;
    uint64_t magazines_hot, magazines_cold;
    bool is_short;
};

/* "id 3, brick /b, active 5, bytes 960": a name may have anything in it. */
static void
count_owner(const struct pool_lines *l, const char *text)
{
    const char *last = strrchr(text, ' ');
    unsigned long id = strtoul(text + strlen("id "), NULL, 10);

    if (last && id <= MEM_OWNER_MAX && l->brick_of[id])
        l->f->bricks[l->brick_of[id] - 1].memory_bytes += strtoull(last, NULL, 10);
}

static struct pool_figures *
next_pool(struct pool_lines *l)
{
    if (l->f->pool_count == l->room) {
        unsigned more = l->room ? 2 * l->room : 64;
        struct pool_figures *grown = reallocarray(l->f->pools, more, sizeof *grown);

        if (!grown)
            return NULL;
        l->f->pools = grown;
        l->room = more;
    }
    struct pool_figures *p = &l->f->pools[l->f->pool_count++];
    *p = (struct pool_figures){0};
    return p;
}

static void
pool_line(void *arg, const char *key, const char *value)
{
    struct pool_lines *l = arg;

    if (strcmp(key, "-----") == 0) {
        l->is_short |= !next_pool(l);
        l->magazines_hot = l->magazines_cold = 0;
    }
    if (l->is_short || !l->f->pool_count)
        return;
    struct pool_figures *p = &l->f->pools[l->f->pool_count - 1];
    uint64_t number = strtoull(value, NULL, 10);
    if (strcmp(key, "pool-name") == 0) {
        strncpy(p->name, value, sizeof p->name - 1);
    } else if (strcmp(key, "active-count") == 0) {
        p->live = number;
    } else if (strcmp(key, "cached-hot") == 0) {
        p->hot = number;
    } else if (strcmp(key, "cached-cold") == 0) {
        p->cold = number;
    } else if (strcmp(key, "depot-magazines") == 0) {
        l->magazines_hot = number;
    } else if (strcmp(key, "depot-cold-magazines") == 0) {
        l->magazines_cold = number;
    } else if (strcmp(key, "magazine-size") == 0) {
        p->hot += l->magazines_hot * number;
        p->cold += l->magazines_cold * number;
    } else if (strcmp(key, "gets") == 0) {
        p->gets = number;
    } else if (strcmp(key, "system-allocs") == 0) {
        p->system_allocations = number;
    } else if (strcmp(key, "bytes-resident") == 0) {
        p->resident_bytes = number;
    } else if (strcmp(key, "owner") == 0) {
        count_owner(l, value);
    }
}

/* False: no memory. */
static bool
read_pool_figures(struct figures *f)
{
    struct pool_lines lines = {.f = f, .brick_of = calloc(MEM_OWNER_MAX + 1, sizeof *lines.brick_of)};

    if (!lines.brick_of)
        return false;
    for (unsigned i = 0; i < f->brick_count; i++)
        lines.brick_of[f->bricks[i].graph->owner] = (uint16_t)(i + 1);
    mem_pools_dump(pool_line, &lines);
    free(lines.brick_of);
    return !lines.is_short;
}

/* ---- the process ----------------------------------------------------------------------------- */

static double
now_of(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* A figure that the kernel does not tell stays 0. */
static void
read_process_figures(struct figures *f)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the two files */
    static struct procfs memory = PROCFS_FILE("/proc/self/statm"), state = PROCFS_FILE("/proc/self/stat");
    double hz = (double)sysconf(_SC_CLK_TCK);
    struct procfs_stat s = {0};

    pthread_mutex_lock(&lock);
    int err = procfs_statm(&memory, &f->memory);
    int state_err = procfs_stat(&state, &s);
    pthread_mutex_unlock(&lock);
    if (err || state_err)
        log_event(LOG_WARNING, NULL, "figures-procfs", "figures of the kernel are missing: %s",
                  strerror(err ? -err : -state_err));
    f->threads = (unsigned)s.threads;
    f->cpu_seconds = now_of(CLOCK_PROCESS_CPUTIME_ID); /* the files have hundredths of a second */
    f->age_seconds = now_of(CLOCK_BOOTTIME) - (double)s.start / hz;
    f->start_seconds = now_of(CLOCK_REALTIME) - f->age_seconds;
}

static int64_t
pressure_of(struct procfs *f)
{
    struct procfs_pressure p;

    return procfs_pressure(f, &p) ? -1 : (int64_t)p.some.average_10s;
}

void
figures_of_machine(struct machine_figures *m)
{
    static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* the files */
    static struct procfs cpu = PROCFS_FILE("/proc/stat"), load = PROCFS_FILE("/proc/loadavg"),
                         memory = PROCFS_FILE("/proc/meminfo"),
                         cpu_stall = PROCFS_FILE("/proc/pressure/cpu"),
                         memory_stall = PROCFS_FILE("/proc/pressure/memory"),
                         io_stall = PROCFS_FILE("/proc/pressure/io");
    struct procfs_field available = {.key = "MemAvailable:"}; /* in KiB */
    struct procfs_load l = {0};

    *m = (struct machine_figures){0};
    pthread_mutex_lock(&lock);
    (void)procfs_cpu(&cpu, &m->cpu); /* zeros: not known */
    (void)procfs_load(&load, &l);
    if (procfs_fields(&memory, &available, 1) == 1)
        m->memory_available = available.value * 1024;
    m->cpu_pressure = pressure_of(&cpu_stall);
    m->memory_pressure = pressure_of(&memory_stall);
    m->io_pressure = pressure_of(&io_stall);
    pthread_mutex_unlock(&lock);
    m->load_1min = l.average_1min;
}

struct figures *
figures_take(bool with_pools)
{
    struct figures *f = calloc(1, sizeof *f);
    struct taking taking = {.f = f};

    if (!f)
        return NULL;
    bricks_states(&f->states);
    if (!bricks_each(read_brick_figures, &taking) || taking.is_short || !mark_disks(f)) {
        figures_free(f);
        return NULL;
    }
    if (with_pools && !read_pool_figures(f)) {
        figures_free(f);
        return NULL;
    }
    worker_stats(&f->workers);
    transport_stats(&f->transport);
    read_process_figures(f);
    return f;
}

void
figures_unpin(struct figures *f)
{
    for (unsigned i = 0; i < f->brick_count; i++) {
        struct brick_figures *b = &f->bricks[i];

        if (b->graph)
            graph_unpin(b->graph);
        b->graph = NULL;
        b->stats = NULL;
    }
}

void
figures_free(struct figures *f)
{
    if (!f)
        return;
    figures_unpin(f);
    free(f->bricks);
    free(f->pools);
    free(f);
}
