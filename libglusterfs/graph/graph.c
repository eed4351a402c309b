/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/read-section.h"
#include "fs/inode.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-pool.h"

#define INODE_LRU_LIMIT_DEFAULT 16384

static void (*_Atomic child_event_fn)(struct graph *g, bool is_up); /* set and taken back while workers run */

void
graph_on_child_event(void (*fn)(struct graph *g, bool is_up))
{
    atomic_store(&child_event_fn, fn);
}

void
graph_child_event(struct graph *g, bool is_up)
{
    void (*fn)(struct graph *, bool) = atomic_load(&child_event_fn);

    if (atomic_exchange(&g->is_child_up, is_up) != is_up && fn)
        fn(g, is_up);
}

int
graph_take_ctx_slot(struct xlator *xl)
{
    struct graph *g = xl->graph;

    if (xl->ctx_slot >= 0)
        return 0;
    if (g->ctx_slots >= XLATOR_CTX_MAX)
        return -ENOSPC;
    xl->ctx_slot = g->ctx_slots++;
    return 0;
}

/* -- building ------------------------------------------------------------------------------------------ */

static void
warn_unknown(const struct option_value *v, void *arg)
{
    log_event(LOG_WARNING, (const struct xlator *)arg, "option-unknown", "option %s %s (line %u) is not known: ignored",
              v->key, v->value, v->line);
}

static int
parse_conf(struct xlator *xl, const struct volfile_section *s, void **conf, char *error, size_t size)
{
    char reason[512];

    *conf = calloc(1, xl->type->conf_size ? xl->type->conf_size : 1);
    if (!*conf) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    int err = option_parse(xl->type->options, s->options, s->option_count, *conf, warn_unknown, xl, reason,
                           sizeof reason);
    if (err) {
        snprintf(error, size, "volume %s (%s): %s", s->name, s->type, reason);
        free(*conf);
        *conf = NULL;
    }
    return err;
}

/* Tools of developers that stock inserts between layers; nothing depends on them. */
static bool
is_debug_type(const char *type)
{
    return strncmp(type, "debug/", 6) == 0;
}

static const struct volfile_section *
section_below(const struct volfile_section *s)
{
    return s->subvolume_count ? s->subvolumes[0] : NULL;
}

/* The chain of sections from the top down becomes the array of layers. */
static int
make_layers(struct graph *g, char *error, size_t size)
{
    unsigned count = 0, i = 0;

    for (const struct volfile_section *s = g->volfile->top; s; s = section_below(s))
        count++;
    if (!(g->layers = calloc(count, sizeof *g->layers))) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    for (const struct volfile_section *s = g->volfile->top; s; s = section_below(s)) {
        const struct xlator_type *type = xlator_type_find(s->type);

        if (s->subvolume_count > 1) {
            snprintf(error, size, "%s:%u: volume %s (%s) has %zu subvolumes: a brick's layers have one each",
                     g->volfile->path, s->line, s->name, s->type, s->subvolume_count);
            return -EINVAL;
        }
        if (!type && is_debug_type(s->type)) {
            log_event(LOG_WARNING, NULL, "graph-type-passed-over", "volume %s: type %s is not built: passed over",
                      s->name, s->type);
            continue;
        }
        if (!type) {
            snprintf(error, size, "%s:%u: volume %s: the type %s is not built", g->volfile->path, s->line, s->name,
                     s->type);
            return -EOPNOTSUPP;
        }
        struct xlator *xl = &g->layers[i++];
        *xl = (struct xlator){.type = type, .name = s->name, .graph = g, .ctx_slot = -1};
        g->layer_count = i;
        int err = parse_conf(xl, s, &xl->conf, error, size);
        if (err)
            return err;
        xl->is_skipped = type->is_not_built || (type->is_active && !type->is_active(xl->conf));
    }
    return 0;
}

static bool
is_server(const char *type)
{
    return strcmp(type, "protocol/server") == 0;
}

const char *
graph_brick_name(const struct volfile *v)
{
    const struct volfile_section *below = section_below(v->top);

    return is_server(v->top->type) && below ? below->name : v->top->name;
}

/* Each layer's functions, and for each fop the layer that comes next: computed once, from the bottom up. */
static void
link_layers(struct graph *g)
{
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];
        struct xlator *below = i + 1 < g->layer_count ? xl + 1 : NULL;
        const struct xlator_ops *ops = xl->type->ops;

        xl->child = below;
        if (below)
            below->parent = xl;
        for (int fop = 0; fop < FOP_COUNT; fop++) {
            xl->fn[fop] = xl->is_skipped || !ops ? NULL : ops->fn[fop] ? ops->fn[fop] : ops->any;
            xl->next[fop] = !below ? NULL : below->fn[fop] ? below : below->next[fop];
        }
    }
    g->top = &g->layers[0];
    g->brick = is_server(g->top->type->name) && g->layer_count > 1 ? &g->layers[1] : g->top;
}

static int
init_layers(struct graph *g, char *error, size_t size)
{
    char reason[512];

    log_last_error(reason, sizeof reason); /* older ones are not this brick's */
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];
        int err = xl->is_skipped || !xl->type->init ? 0 : xl->type->init(xl);

        if (err) {
            log_last_error(reason, sizeof reason);
            snprintf(error, size, "volume %s (%s) could not be set up: %s", xl->name, xl->type->name,
                     *reason ? reason : strerror(-err));
            return err;
        }
        g->layers_up++;
    }
    return 0;
}

static int
read_volume_id(struct graph *g, char *error, size_t size)
{
    for (const struct volfile_section *s = g->volfile->top; s; s = section_below(s)) {
        const char *text = volfile_option(s, "volume-id");

        if (text && gfid_parse(text, strlen(text), &g->volume_id)) {
            snprintf(error, size, "volume %s: option volume-id %s: expected a uuid of 36 characters", s->name, text);
            return -EINVAL;
        }
    }
    return 0;
}

static int
make_inodes(struct graph *g, char *error, size_t size)
{
    const char *text = volfile_option(g->volfile->top, "inode-lru-limit");
    int64_t limit = INODE_LRU_LIMIT_DEFAULT;

    if (text && (option_int(text, &limit) || limit < 0 || limit > 1048576)) {
        snprintf(error, size, "option inode-lru-limit %s: expected a value from 0 to 1048576", text);
        return -EINVAL;
    }
    if (!(g->inodes = inode_table_new(g, (uint32_t)limit))) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    return 0;
}

static int
name_brick(struct graph *g, const char *brick_name, char *error, size_t size)
{
    const char *name = brick_name ? brick_name : graph_brick_name(g->volfile);
    int owner = mem_owner_new(name);

    if (owner < 0 || !(g->name = strdup(name))) {
        snprintf(error, size, "no memory, or too many bricks in one process");
        return owner < 0 ? owner : -ENOMEM;
    }
    g->owner = (uint16_t)owner;
    return 0;
}

struct graph *
graph_new(struct volfile *volfile, const char *brick_name, char *error, size_t error_size)
{
    struct graph *g = calloc(1, sizeof *g);

    if (!g) {
        volfile_free(volfile);
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    g->volfile = volfile;
    atomic_init(&g->pins, 1);
    atomic_init(&g->is_child_up, true);
    pthread_mutex_init(&g->clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&g->clients);
    CDS_INIT_LIST_HEAD(&g->link);
    int err = make_layers(g, error, error_size);
    if (!err) {
        link_layers(g);
        err = name_brick(g, brick_name, error, error_size);
    }
    if (!err)
        err = read_volume_id(g, error, error_size);
    if (!err)
        err = make_inodes(g, error, error_size);
    if (!err)
        err = init_layers(g, error, error_size);
    if (err) {
        graph_free(g);
        return NULL;
    }
    return g;
}

/* -- taking down --------------------------------------------------------------------------------------- */

static void
report_leak(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where)
{
    const struct graph *g = arg;

    log_event(LOG_ERROR, NULL, "graph-audit", "brick %s left %lld objects of pool %s (%llu bytes)%s%s", g->name,
              (long long)count, pool, (unsigned long long)bytes, where ? " first taken at " : "", where ? where : "");
}

void
graph_free(struct graph *g)
{
    if (!g)
        return;
    assert(!g->is_published);
    if (g->inodes) {
        unsigned left = inode_table_free(g->inodes);

        if (left)
            log_event(LOG_ERROR, NULL, "graph-inodes-left", "brick %s: %u inodes are still in use", g->name, left);
    }
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];
        bool is_up = i >= g->layer_count - g->layers_up;

        if (is_up && !xl->is_skipped && xl->type->fini)
            xl->type->fini(xl);
        if (xl->conf) {
            option_conf_fini(xl->type->options, xl->conf);
            free(xl->conf);
        }
    }
    if (g->owner) {
        mem_owner_audit(g->owner, report_leak, g);
        mem_owner_retire(g->owner);
    }
    pthread_mutex_destroy(&g->clients_lock);
    free(g->layers);
    volfile_free(g->volfile);
    free(g->name);
    free(g);
}

int
graph_start(struct graph *g)
{
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];
        int err = xl->is_skipped || !xl->type->start ? 0 : xl->type->start(xl);

        if (err) {
            graph_stop(g);
            return err;
        }
        g->layers_started++;
    }
    return 0;
}

void
graph_stop(struct graph *g)
{
    for (unsigned i = g->layer_count - g->layers_started; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        if (!xl->is_skipped && xl->type->stop)
            xl->type->stop(xl);
    }
    g->layers_started = 0;
}

/* -- changing options ---------------------------------------------------------------------------------- */

static bool
is_same_shape(const struct graph *g, const struct volfile *fresh)
{
    const struct volfile_section *a = g->volfile->top, *b = fresh->top;

    for (; a && b; a = section_below(a), b = section_below(b)) {
        if (strcmp(a->name, b->name) != 0 || strcmp(a->type, b->type) != 0)
            return false;
    }
    return !a && !b;
}

/* Everything is parsed before anything is published: all layers change or none does. */
static int
parse_all(struct graph *g, struct volfile *fresh, void **confs, char *error, size_t size)
{
    unsigned i = 0;

    for (const struct volfile_section *s = fresh->top; s; s = section_below(s)) {
        struct xlator *xl = &g->layers[i];

        if (i == g->layer_count || strcmp(s->type, xl->type->name) != 0)
            continue; /* a debug type that was passed over */
        int err = parse_conf(xl, s, &confs[i], error, size);
        if (err)
            return err;
        bool is_skipped = xl->type->is_not_built || (xl->type->is_active && !xl->type->is_active(confs[i]));
        if (is_skipped != xl->is_skipped) {
            snprintf(error, size, "volume %s (%s) can be switched on or off only by a restart of the brick", xl->name,
                     xl->type->name);
            return -EOPNOTSUPP;
        }
        i++;
    }
    return 0;
}

static void
free_confs(struct graph *g, void **confs)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (confs[i]) {
            option_conf_fini(g->layers[i].type->options, confs[i]);
            free(confs[i]);
        }
    }
    free(confs);
}

int
graph_reconfigure(struct graph *g, struct volfile *fresh, char *error, size_t error_size)
{
    void **confs = calloc(g->layer_count, sizeof *confs);
    int err = 0;

    if (!confs) {
        snprintf(error, error_size, "no memory");
        err = -ENOMEM;
    }
    if (!err && !is_same_shape(g, fresh)) {
        snprintf(error, error_size, "the volfile's layers differ from the running brick's: restart the brick");
        err = -EINVAL;
    }
    if (!err)
        err = parse_all(g, fresh, confs, error, error_size);
    if (err) {
        if (confs)
            free_confs(g, confs);
        volfile_free(fresh);
        return err;
    }
    g->volfile_fresh = fresh;
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];

        confs[i] = __atomic_exchange_n(&xl->conf, confs[i], __ATOMIC_ACQ_REL); /* see xlator_conf() */
        if (!xl->is_skipped && xl->type->reconfigured)
            xl->type->reconfigured(xl, confs[i]);
    }
    g->volfile_fresh = NULL;
    read_sections_wait();
    free_confs(g, confs);
    /* Names of layers point into the text they were made from, so that stays; only the values are new. */
    volfile_free(fresh);
    return 0;
}

/* -- statedump ----------------------------------------------------------------------------------------- */

void
graph_dump(struct graph *g, struct dump *d)
{
    struct inode_table_stats stats;

    inode_table_stats(g->inodes, &stats);
    dump_section(d, "brick.%s", g->name);
    dump_line(d, "child-up", "%d", atomic_load(&g->is_child_up) ? 1 : 0);
    dump_line(d, "draining", "%d", atomic_load(&g->is_draining) ? 1 : 0);
    dump_line(d, "pins", "%ld", atomic_load(&g->pins));
    dump_line(d, "inodes", "%u", stats.inodes);
    dump_line(d, "inodes-lru", "%u", stats.lru);
    dump_line(d, "dentries", "%u", stats.dentries);
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        if (xl->is_skipped || !xl->type->dump)
            continue;
        dump_section(d, "xlator.%s.%s", xl->type->name, xl->name);
        xl->type->dump(xl, d);
    }
}
