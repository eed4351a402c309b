/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The lists of `volume top`: the files that are opened, read, written and listed most often, and read or
 * written fastest (management 4.8). As with stock, a CREATE does not count as an open and a READDIR not as a
 * list, and the lists lack the root and the folders of the heal index, because these have no names.
 *
 * The counters are kept per inode, so they last as long as the brick keeps the inode. One walk over the inode
 * table makes a list on request. Rates are only kept while latency-measurement is on, because they need a
 * clock.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "graph/graph.h"
#include "mem/mem-pool.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

/* ---- keeping --------------------------------------------------------------------------------- */

static struct mem_pool *inode_pool;

int
ios_pools_init(void)
{
    static pthread_mutex_t once = PTHREAD_MUTEX_INITIALIZER;

    pthread_mutex_lock(&once);
    if (!inode_pool)
        inode_pool = mem_pool_new_opts(&(struct mem_pool_opts){
            .name = "io-stats-inode", .xlator = "debug/io-stats", .size = sizeof(struct ios_inode)});
    pthread_mutex_unlock(&once);
    return inode_pool ? 0 : -ENOMEM;
}

/* NULL: no memory, or no inode. */
static struct ios_inode *
inode_figures(struct xlator *xl, struct inode *inode)
{
    struct ios_inode *ctx = inode ? inode_ctx(inode, xl) : NULL;

    if (ctx || !inode)
        return ctx;
    struct ios_inode *fresh = mem_get0_owner(inode_pool, xl->graph->owner);
    if (!fresh)
        return NULL;
    ctx = inode_ctx_install(inode, xl, fresh);
    if (ctx != fresh)
        mem_put(fresh);
    return ctx;
}

void
ios_inode_count(struct xlator *xl, struct inode *inode, enum ios_count what)
{
    struct ios_inode *ctx = inode_figures(xl, inode);

    if (ctx)
        atomic_fetch_add_explicit(&ctx->counts[what], 1, memory_order_relaxed);
}

void
ios_inode_rate(struct xlator *xl, struct inode *inode, enum ios_rate which, uint64_t bytes, uint64_t ns)
{
    struct ios_inode *ctx = ns ? inode_figures(xl, inode) : NULL;
    uint64_t speed = ns ? bytes * 1000 / ns : 0; /* bytes per microsecond: MB/s */

    if (!ctx || !speed)
        return;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (speed > RATE_MAX)
        speed = RATE_MAX;
    uint64_t word =
        speed << 44 | ((uint64_t)now.tv_sec & UINT32_MAX) << 12 | (uint64_t)now.tv_nsec * 4096 / 1000000000;
    uint64_t seen = atomic_load_explicit(&ctx->best[which], memory_order_relaxed);

    while (speed > RATE_SPEED(seen) && !atomic_compare_exchange_weak_explicit(&ctx->best[which], &seen, word,
                                                                              memory_order_relaxed,
                                                                              memory_order_relaxed))
        ;
}

void
ios_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    mem_put(ctx);
}

/* ---- reporting ------------------------------------------------------------------------------- */

enum { LINES_MAX = 100 };

struct line {
    struct inode *inode; /* a reference */
    uint64_t value;      /* the sort key: a count, or the word of a rate */
};

/* The lines with the highest values so far, in falling order. */
struct list {
    enum top_op op;
    unsigned wanted, count;
    struct line lines[LINES_MAX];
};

static uint64_t
top_value(struct ios_inode *ctx, enum top_op op)
{
    static const enum ios_count counts[] = {
        [TOP_OPEN] = COUNT_OPEN,       [TOP_READ] = COUNT_READ,       [TOP_WRITE] = COUNT_WRITE,
        [TOP_OPENDIR] = COUNT_OPENDIR, [TOP_READDIR] = COUNT_READDIR,
    };

    switch (op) {
    case TOP_READ_PERF:
        return atomic_load_explicit(&ctx->best[RATE_READ], memory_order_relaxed);
    case TOP_WRITE_PERF:
        return atomic_load_explicit(&ctx->best[RATE_WRITE], memory_order_relaxed);
    default:
        return atomic_load_explicit(&ctx->counts[counts[op]], memory_order_relaxed);
    }
}

static bool
is_nameless_dir(struct inode *inode)
{
    char path[4096];

    return inode->type == S_IFDIR && (gfid_is_root(&inode->gfid) || inode_path(inode, path, sizeof path) < 0);
}

static void
list_consider(struct inode *inode, void *ctx, void *arg)
{
    struct list *l = arg;
    uint64_t value = top_value(ctx, l->op);
    unsigned at = l->count;

    while (at > 0 && l->lines[at - 1].value < value)
        at--;
    if (!value || at == l->wanted || is_nameless_dir(inode))
        return;
    if (l->count == l->wanted)
        inode_unref(l->lines[--l->count].inode);
    memmove(&l->lines[at + 1], &l->lines[at], (l->count - at) * sizeof l->lines[0]);
    l->lines[at] = (struct line){inode_ref(inode), value};
    l->count++;
}

static int
top_put_line(struct dict *out, const struct line *line, unsigned number, bool is_rate)
{
    char path[4096], key[48];
    int err = inode_path(line->inode, path, sizeof path);

    if (err)
        snprintf(path, sizeof path, "<gfid:%s>", GFID(&line->inode->gfid));
    snprintf(key, sizeof key, "filename-%u", number);
    err = dict_set_text(out, key, DICT_STR, path, (uint32_t)strlen(path) + 1);
    snprintf(key, sizeof key, "value-%u", number);
    if (!err)
        err = dict_set_text_int(out, key, (int64_t)(is_rate ? RATE_SPEED(line->value) : line->value));
    if (err || !is_rate)
        return err;
    snprintf(key, sizeof key, "time-sec-%u", number);
    err = dict_set_text_int(out, key, (int64_t)RATE_SECONDS(line->value));
    snprintf(key, sizeof key, "time-usec-%u", number);
    return err ? err : dict_set_text_int(out, key, (int64_t)RATE_MICROSECONDS(line->value));
}

static int
top_put_opens(struct ios *ios, struct dict *out)
{
    time_t at = atomic_load(&ios->open_most_at);
    char text[64] = "N/A";
    struct tm tm;
    int err = dict_set_text_int(out, "current-open", atomic_load(&ios->open_now));

    if (at && gmtime_r(&at, &tm))
        strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &tm);
    if (!err)
        err = dict_set_text_int(out, "max-open", atomic_load(&ios->open_most));
    return err ? err : dict_set_text(out, "max-openfd-time", DICT_STR, text, (uint32_t)strlen(text) + 1);
}

static int
top_put_list(struct xlator *xl, struct list *l, struct dict *out)
{
    bool is_rate = l->op == TOP_READ_PERF || l->op == TOP_WRITE_PERF;
    int err = 0;

    inode_table_each(xl->graph->inodes, xl, list_consider, l);
    for (unsigned i = 0; i < l->count; i++) {
        if (!err)
            err = top_put_line(out, &l->lines[i], i + 1, is_rate);
        inode_unref(l->lines[i].inode);
    }
    if (!err)
        err = dict_set_text_int(out, "members", l->count);
    return err || l->op != TOP_OPEN ? err : top_put_opens(xl->private, out);
}

static void
clear_inode(struct inode *inode, void *ctx, void *arg)
{
    struct ios_inode *figures = ctx;

    (void)inode;
    (void)arg;
    for (enum ios_count c = 0; c < COUNTS; c++)
        atomic_store_explicit(&figures->counts[c], 0, memory_order_relaxed);
    for (enum ios_rate r = 0; r < RATES; r++)
        atomic_store_explicit(&figures->best[r], 0, memory_order_relaxed);
}

/* Also resets the maximum number of open files, which then begins at the moment of the clear. */
static void
top_clear(struct xlator *xl)
{
    struct ios *ios = xl->private;

    inode_table_each(xl->graph->inodes, xl, clear_inode, NULL);
    atomic_store(&ios->open_most_at, 0);
    atomic_store(&ios->open_most, 0);
}

int
ios_top(struct xlator *xl, const struct dict *input, struct dict *output)
{
    int64_t op = ios_input(input, "top-op", 0), wanted = ios_input(input, "list-cnt", LINES_MAX);
    struct list l = {.op = (enum top_op)op,
                     .wanted = wanted > 0 && wanted < LINES_MAX ? (unsigned)wanted : LINES_MAX};
    int err = dict_set_text_int(output, "top-op", op);

    if (err)
        return err;
    if (ios_input(input, "clear-stats", 0)) {
        top_clear(xl);
        return dict_set_text_int(output, "stats-cleared", 1);
    }
    return op < TOP_OPEN || op > TOP_WRITE_PERF ? -EINVAL : top_put_list(xl, &l, output);
}
