/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/graph-internal.h"

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "base/read-section.h"
#include "base/reason.h"
#include "fs/inode.h"
#include "graph/unbuilt.h"
#include "log/dump.h"
#include "log/log.h"
#include "mem/mem-pool.h"

#define DRAIN_TELL_SEC 30

void
graph_note_refusal(struct graph *g, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    pthread_mutex_lock(&g->clients_lock);
    if (!*g->refusal.text)
        vsnprintf(g->refusal.text, sizeof g->refusal.text, format, args);
    pthread_mutex_unlock(&g->clients_lock);
    va_end(args);
}

void
graph_refusal(struct graph *g, struct reason *out)
{
    pthread_mutex_lock(&g->clients_lock);
    *out = g->refusal;
    pthread_mutex_unlock(&g->clients_lock);
}

unsigned
xlator_brick_facts(const struct xlator *xl)
{
    unsigned facts = xl->child_count ? ~0u : atomic_load(&xl->brick_facts);

    for (unsigned i = 0; i < xl->child_count && facts; i++)
        facts &= xlator_brick_facts(xl->children[i]);
    return facts;
}

unsigned
xlator_any_brick_facts(const struct xlator *xl)
{
    unsigned facts = atomic_load(&xl->brick_facts);

    for (unsigned i = 0; i < xl->child_count; i++)
        facts |= xlator_any_brick_facts(xl->children[i]);
    return facts;
}

void
xlator_tell(struct xlator *xl, struct layer_event e)
{
    struct graph *g = xl->graph;

    for (struct xlator *child = xl, *parent = xl->parent; parent; child = parent, parent = parent->parent) {
        e.child = child;
        if (xlator_is_on(parent) && parent->type->event && parent->type->event(parent, &e))
            return;
    }
    bool is_of_child = e.kind == EVENT_CHILD;

    if (e.kind == EVENT_CONTENDED ||
        (is_of_child && (e.change == CHILD_SOME_UP || e.change == CHILD_SOME_DOWN)))
        return;
    if (is_of_child)
        atomic_store(&g->is_child_up, e.change == CHILD_UP);
    if (g->watch)
        g->watch(g, &e);
}

void
xlator_tell_parent(struct xlator *xl, enum child_event change)
{
    xlator_tell(xl, (struct layer_event){.kind = EVENT_CHILD, .change = change});
}

void
xlator_tell_contended(struct xlator *xl, const struct gfid *gfid, const char *domain)
{
    xlator_tell(xl, (struct layer_event){.kind = EVENT_CONTENDED, .gfid = gfid, .domain = domain});
}

void
xlator_tell_invalidated(struct xlator *xl, const struct gfid *gfid, uint32_t flags)
{
    xlator_tell(xl, (struct layer_event){.kind = EVENT_INVALIDATED, .gfid = gfid, .flags = flags});
}

void
graph_number_contexts(struct graph *g)
{
    memset(g->slots, 0, sizeof g->slots);
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        for (enum ctx_kind k = CTX_INODE; k < CTX_KINDS; k++) {
            bool keeps = !(xl->type->traits & LAYER_NOT_BUILT) && xl->type->keeps & KEEPS(k);

            xl->slot[k] = keeps ? (uint16_t)++g->slots[k] : 0;
        }
    }
}

/* ---- building -------------------------------------------------------------------------------- */

void
graph_warn_unknown(const struct option_value *v, void *arg)
{
    log_event(LOG_WARNING, (const struct xlator *)arg, "option-unknown",
              "option %s %s (line %u) is not known: ignored", v->key, v->value, v->line);
}

int
graph_parse_conf(struct xlator *xl, const struct volfile_section *s, void **conf, char *error, size_t size)
{
    char reason[512];

    *conf = calloc(1, xl->type->conf_size ? xl->type->conf_size : 1);
    if (!*conf) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    int err = graph_refuses_unbuilt() ? unbuilt_check(xl->type, s, reason, sizeof reason) : 0;
    if (!err)
        err = option_parse(xl->type->options, s->options, s->option_count, *conf, graph_warn_unknown, xl,
                           reason, sizeof reason);
    if (err) {
        snprintf(error, size, "volume %s (%s): %s", s->name, s->type, reason);
        free(*conf);
        *conf = NULL;
    }
    return err;
}

/* Developers' tools that stock inserts between layers; nothing depends on them. */
static bool
is_debug_type(const char *type)
{
    return strncmp(type, "debug/", 6) == 0;
}

/* glusterd writes such options for a layer that does nothing for a volume. */
bool
graph_is_left_off(const struct volfile_section *s)
{
    const char *slash = strrchr(s->type, '/'), *name = slash ? slash + 1 : s->type;
    bool passes = false, is_on = true, value;

    for (size_t i = 0; i < s->option_count; i++) {
        const struct option_value *v = &s->options[i];

        if (option_bool(v->value, &value))
            continue;
        if (strcmp(v->key, "pass-through") == 0)
            passes = value;
        else if (strcmp(v->key, name) == 0)
            is_on = value;
    }
    return passes || !is_on;
}

const struct volfile_section *
graph_find_section(const struct volfile *v, const char *name, const char *type)
{
    for (size_t i = 0; i < v->section_count; i++) {
        const struct volfile_section *s = &v->sections[i];

        if (strcmp(s->name, name) == 0 && strcmp(s->type, type) == 0)
            return s;
    }
    return NULL;
}

const struct volfile_section *
graph_section_of(const struct volfile *v, const struct xlator *xl)
{
    return graph_find_section(v, xl->name, xl->type->name);
}

static size_t
section_index(const struct volfile *v, const struct volfile_section *s)
{
    return (size_t)(s - v->sections);
}

static int
check_section(const struct graph_plan *p, const struct volfile_section *s, const struct xlator_type *type)
{
    const char *path = p->volfile->path;

    if (!type)
        snprintf(p->error, p->error_size, "%s:%u: volume %s: the type %s is not built", path, s->line,
                 s->name, s->type);
    else if (s->subvolume_count > 1 && !(type->traits & LAYER_FANS_OUT))
        snprintf(p->error, p->error_size,
                 "%s:%u: volume %s (%s) has %zu subvolumes: a layer of this type has one", path, s->line,
                 s->name, s->type, s->subvolume_count);
    else
        return 0;
    return type ? -EINVAL : -EOPNOTSUPP;
}

bool
graph_passes_over(xlator_type_find *find_type, const struct volfile_section *s)
{
    return s->subvolume_count == 1 && !find_type(s->type) &&
           (is_debug_type(s->type) || graph_is_left_off(s));
}

/* Marks the subvolumes of `s` as reached. A section may have only one parent, so the graph is a tree. */
static int
reach_below(const struct graph_plan *p, const struct volfile_section *s, bool *is_reached)
{
    for (size_t k = 0; k < s->subvolume_count; k++) {
        size_t i = section_index(p->volfile, s->subvolumes[k]);

        if (is_reached[i]) {
            snprintf(p->error, p->error_size, "%s:%u: volume %s is a subvolume twice", p->volfile->path,
                     s->subvolumes[k]->line, s->subvolumes[k]->name);
            return -EINVAL;
        }
        is_reached[i] = true;
    }
    return 0;
}

/* Subvolumes stand above their volume in the file, so walking backwards meets each layer before the layers
 * below it. */
static int
find_layers(struct graph_plan *p, bool *is_reached)
{
    const struct volfile *v = p->volfile;

    is_reached[section_index(v, v->top)] = true;
    for (size_t i = v->section_count; i-- > 0;) {
        const struct volfile_section *s = &v->sections[i];

        if (!is_reached[i])
            continue;
        int err = graph_passes_over(p->find_type, s) ? 0 : check_section(p, s, p->find_type(s->type));
        if (!err)
            err = reach_below(p, s, is_reached);
        if (err)
            return err;
        if (graph_passes_over(p->find_type, s)) {
            log_event(is_debug_type(s->type) ? LOG_WARNING : LOG_INFO, NULL, "graph-type-passed-over",
                      "volume %s: type %s is not built: passed over", s->name, s->type);
            continue;
        }
        p->sections[p->count++] = s;
        p->children += (unsigned)s->subvolume_count;
    }
    return 0;
}

void
graph_plan_free(struct graph_plan *p)
{
    free(p->sections);
    free(p->layer_of);
}

int
graph_plan_make(struct graph_plan *p, xlator_type_find *find_type, const struct volfile *v, char *error,
                size_t size)
{
    size_t n = v->section_count;
    bool *is_reached = calloc(n, sizeof *is_reached);
    int err = -ENOMEM;

    *p = (struct graph_plan){.find_type = find_type, .volfile = v, .error = error, .error_size = size};
    p->sections = calloc(n, sizeof *p->sections);
    p->layer_of = calloc(n, sizeof *p->layer_of);
    if (is_reached && p->sections && p->layer_of)
        err = find_layers(p, is_reached);
    else
        snprintf(error, size, "no memory");
    free(is_reached);
    if (err)
        graph_plan_free(p);
    return err;
}

bool
graph_is_switched_on(const struct xlator *xl, const void *conf)
{
    return !(xl->type->traits & LAYER_NOT_BUILT) && (!xl->type->is_active || xl->type->is_active(conf));
}

static const struct xlator_ops no_ops;

static int
make_layer(struct graph *g, const struct volfile_section *s, char *error, size_t size)
{
    const struct xlator_type *type = g->find_type(s->type);
    struct xlator *xl = &g->layers[g->layer_count++];

    *xl = (struct xlator){.type = type, .log = {s->name, &g->log}, .graph = g};
    g->traits |= type->traits;
    /* a layer that is off keeps its functions: a call may have looked one up just before */
    xl->ops = type->ops && !(type->traits & LAYER_NOT_BUILT) ? type->ops : &no_ops;
    xl->parked = type->each_parked ? calloc(FOP_COUNT, sizeof *xl->parked) : NULL;
    if (type->each_parked && !xl->parked) {
        snprintf(error, size, "no memory");
        return -ENOMEM;
    }
    int err = graph_parse_conf(xl, s, &xl->conf, error, size);
    if (err)
        return err;
    bool is_on = graph_is_switched_on(xl, xl->conf);

    atomic_init(&xl->is_off, !is_on);
    if (is_on || s->subvolume_count <= 1)
        return 0;
    snprintf(error, size, "volume %s (%s) cannot be left out: it has %zu subvolumes", s->name, s->type,
             s->subvolume_count);
    return -EINVAL;
}

/* Connects parents and children, from the bottom up, so that a section that is passed over already has its
 * layer. */
static void
join_layers(struct graph *g, struct graph_plan *p)
{
    const struct volfile *v = p->volfile;
    struct xlator **children = g->children;
    unsigned l = p->count;

    for (size_t i = 0; i < v->section_count && l > 0; i++) {
        const struct volfile_section *s = &v->sections[i];

        if (s != p->sections[l - 1]) {
            if (s->subvolume_count == 1) /* passed over, or not reached and so never looked up */
                p->layer_of[i] = p->layer_of[section_index(v, s->subvolumes[0])];
            continue;
        }
        struct xlator *xl = p->layer_of[i] = &g->layers[--l];
        xl->children = children;
        xl->child_count = (unsigned)s->subvolume_count;
        for (unsigned k = 0; k < xl->child_count; k++) {
            xl->children[k] = p->layer_of[section_index(v, s->subvolumes[k])];
            xl->children[k]->parent = xl;
        }
        children += xl->child_count;
    }
}

static unsigned
number_leaves(struct xlator *xl, unsigned next)
{
    xl->leaf_first = (uint16_t)next;
    xl->leaf_count = (uint16_t)(xl->child_count ? 0 : 1);
    for (unsigned i = 0; i < xl->child_count; i++)
        xl->leaf_count = (uint16_t)(xl->leaf_count + number_leaves(xl->children[i], next + xl->leaf_count));
    return xl->leaf_count;
}

static int
make_layers(struct graph *g, char *error, size_t size)
{
    struct graph_plan p;
    int err = graph_plan_make(&p, g->find_type, g->volfile, error, size);

    if (err)
        return err;
    if (p.count > GRAPH_LAYERS_MAX) {
        snprintf(error, size, "%u layers: %d at most", p.count, GRAPH_LAYERS_MAX);
        graph_plan_free(&p);
        return -E2BIG;
    }
    g->layers = calloc(p.count, sizeof *g->layers);
    g->children = calloc(p.children + 1, sizeof *g->children);
    if (!g->layers || !g->children) {
        snprintf(error, size, "no memory");
        err = -ENOMEM;
    }
    for (unsigned i = 0; i < p.count && !err; i++)
        err = make_layer(g, p.sections[i], error, size);
    if (!err) {
        join_layers(g, &p);
        number_leaves(&g->layers[0], 0);
    }
    graph_plan_free(&p);
    return err;
}

static void
free_layers(struct graph *g)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        if (xl->conf) {
            option_conf_fini(xl->type->options, xl->conf);
            free(xl->conf);
        }
        free(xl->parked);
    }
    free(g->layers);
    free(g->children);
    g->layers = NULL;
    g->children = NULL;
}

static bool
is_server(const char *type)
{
    return strcmp(type, "protocol/server") == 0;
}

const char *
graph_brick_name(const struct volfile *v)
{
    const struct volfile_section *top = v->top;

    return is_server(top->type) && top->subvolume_count ? top->subvolumes[0]->name : top->name;
}

void
graph_link_layers(struct graph *g)
{
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];

        for (unsigned path = 0; path < PATH_COUNT; path++)
            xlator_set_next(xl, path, xl->child_count == 1 ? xlator_first(xl->children[0], path) : NULL);
    }
}

static void
make_paths(struct graph *g)
{
    graph_link_layers(g);
    graph_number_contexts(g);
    g->top = &g->layers[0];
    g->brick = is_server(g->top->type->name) && g->top->child_count ? g->top->children[0] : g->top;
}

static int
init_layers(struct graph *g, char *error, size_t size)
{
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];
        struct reason why = {""};
        int err = xl->type->init ? xl->type->init(xl, &why) : 0;

        if (err) {
            snprintf(error, size, "volume %s (%s) could not be set up: %s", xl->name, xl->type->name,
                     *why.text ? why.text : strerror(-err));
            return err;
        }
        g->layers_up++;
    }
    return 0;
}

static int
make_inodes(struct graph *g, char *error, size_t size)
{
    for (enum ctx_kind k = CTX_INODE; k < CTX_KINDS; k++) {
        if (g->slots[k] > CTX_SLOTS_MAX) {
            snprintf(error, size, "%u layers keep contexts, at most %d can", g->slots[k], CTX_SLOTS_MAX);
            return -ENOSPC;
        }
    }
    if (!(g->inodes = inode_table_new(g, INODE_LRU_LIMIT_DEFAULT))) {
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
    g->log.name = g->top != g->brick ? g->name : NULL;
    return 0;
}

static struct graph *
new_graph(xlator_type_find *find_type, struct volfile *volfile, const char *brick_name,
          const struct graph *before, char *error, size_t error_size)
{
    struct graph *g = calloc(1, sizeof *g);

    if (!g) {
        volfile_free(volfile);
        snprintf(error, error_size, "no memory");
        return NULL;
    }
    g->find_type = find_type;
    g->volfile = volfile;
    g->replaces = before;
    atomic_init(&g->pins, 1);
    atomic_init(&g->is_child_up, true);
    pthread_mutex_init(&g->clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&g->clients);
    int err = make_layers(g, error, error_size);
    if (!err) {
        make_paths(g);
        err = name_brick(g, brick_name, error, error_size);
    }
    if (!err)
        err = make_inodes(g, error, error_size);
    if (!err)
        err = init_layers(g, error, error_size);
    if (err) {
        graph_free(g);
        return NULL;
    }
    for (unsigned i = 0; i < g->layer_count; i++)
        unbuilt_note(&g->layers[i], NULL);
    g->replaces = NULL;
    return g;
}

struct graph *
graph_new(xlator_type_find *find_type, struct volfile *volfile, const char *brick_name, char *error,
          size_t error_size)
{
    return new_graph(find_type, volfile, brick_name, NULL, error, error_size);
}

struct graph *
graph_new_beside(const struct graph *before, struct volfile *volfile, char *error, size_t error_size)
{
    return new_graph(before->find_type, volfile, before->name, before, error, error_size);
}

int
graph_check(xlator_type_find *find_type, struct volfile *volfile, bool is_strict, char *error,
            size_t error_size)
{
    struct graph g = {.find_type = find_type, .volfile = volfile};
    int err = make_layers(&g, error, error_size);

    for (unsigned i = 0; is_strict && i < g.layer_count && !err; i++) {
        const struct volfile_section *s = graph_section_of(volfile, &g.layers[i]);
        char reason[512];

        if ((err = unbuilt_check(g.layers[i].type, s, reason, sizeof reason)))
            snprintf(error, error_size, "volume %s (%s): %s", s->name, s->type, reason);
    }
    free_layers(&g);
    return err;
}

/* ---- taking down ----------------------------------------------------------------------------- */

static void
log_leaked_objects(void *arg, const char *pool, int64_t count, uint64_t bytes, const char *where)
{
    const struct graph *g = arg;

    log_event(LOG_ERROR, NULL, "graph-audit", "brick %s left %lld objects of pool %s (%llu bytes)%s%s",
              g->name, (long long)count, pool, (unsigned long long)bytes, where ? " first taken at " : "",
              where ? where : "");
}

/* All graphs share this lock, because a graph may be gone after its last unpin. */
static pthread_mutex_t drain_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t unpinned = PTHREAD_COND_INITIALIZER;

bool
graph_pin(struct graph *g)
{
    atomic_fetch_add(&g->pins, 1);
    if (!atomic_load(&g->is_draining))
        return true;
    graph_unpin(g);
    return false;
}

void
graph_unpin(struct graph *g)
{
    /* graph_drain() waits until only the first pin is left; after the subtraction `g` may be gone. */
    if (atomic_fetch_sub(&g->pins, 1) > 2)
        return;
    pthread_mutex_lock(&drain_lock);
    pthread_cond_broadcast(&unpinned);
    pthread_mutex_unlock(&drain_lock);
}

unsigned
graph_parked_count(const struct graph *g)
{
    unsigned count = 0;

    for (unsigned l = 0; l < g->layer_count; l++) {
        const struct xlator *xl = &g->layers[l];

        for (int fop = 0; xl->parked && fop < FOP_COUNT; fop++)
            count += atomic_load_explicit(&xl->parked[fop], memory_order_relaxed);
    }
    return count;
}

void
graph_parked(const struct graph *g, char *text, size_t size)
{
    size_t at = 0;

    text[0] = '\0';
    for (unsigned i = 0; i < g->layer_count; i++) {
        const struct xlator *xl = &g->layers[i];

        for (int fop = 0; xl->parked && fop < FOP_COUNT && at < size; fop++) {
            unsigned n = atomic_load_explicit(&xl->parked[fop], memory_order_relaxed);

            if (n)
                at += (size_t)snprintf(text + at, size - at, "%s%s %s %u", at ? ", " : "", xl->type->name,
                                       fop_info[fop].name, n);
        }
    }
}

void
graph_drain(struct graph *g)
{
    char parked[256];
    struct timespec until;

    atomic_store(&g->is_draining, true);
    graph_stop(g);
    clock_gettime(CLOCK_REALTIME, &until);
    pthread_mutex_lock(&drain_lock);
    for (until.tv_sec += DRAIN_TELL_SEC; atomic_load(&g->pins) > 1; ) {
        if (pthread_cond_timedwait(&unpinned, &drain_lock, &until) != ETIMEDOUT)
            continue;
        graph_parked(g, parked, sizeof parked);
        log_event(LOG_WARNING, NULL, "brick-drain-waits",
                  "brick %s: %ld clients or calls still hold it; parked: %s", g->name,
                  atomic_load(&g->pins) - 1, *parked ? parked : "none");
        until.tv_sec += DRAIN_TELL_SEC;
    }
    pthread_mutex_unlock(&drain_lock);
}

void
graph_free(struct graph *g)
{
    if (!g)
        return;
    for (unsigned i = g->layer_count - g->layers_up; i < g->layer_count; i++) {
        if (g->layers[i].type->drained)
            g->layers[i].type->drained(&g->layers[i]);
    }
    if (g->inodes) {
        unsigned left = inode_table_free(g->inodes);

        if (left)
            log_event(LOG_ERROR, NULL, "graph-inodes-left", "brick %s: %u inodes are still in use", g->name,
                      left);
    }
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];
        bool is_up = i >= g->layer_count - g->layers_up;

        if (is_up && xl->type->fini)
            xl->type->fini(xl);
    }
    free_layers(g);
    if (g->owner) {
        mem_owner_audit(g->owner, log_leaked_objects, g);
        mem_owner_retire(g->owner);
    }
    pthread_mutex_destroy(&g->clients_lock);
    volfile_free(g->volfile);
    free(g->name);
    free(g);
}

int
graph_start(struct graph *g)
{
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];
        int err = xl->type->start ? xl->type->start(xl) : 0;

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

        if (xl->type->stop)
            xl->type->stop(xl);
    }
    g->layers_started = 0;
}

/* ---- statedump ------------------------------------------------------------------------------- */

static void
dump_inodes(struct graph *g, struct dump *d)
{
    struct inode_table_stats stats;

    inode_table_stats(g->inodes, &stats);
    dump_line(d, "inodes", "%u", stats.inodes);
    dump_line(d, "inodes-unhashed", "%u", stats.unhashed);
    dump_line(d, "inodes-lru", "%u", stats.lru);
    dump_line(d, "dentries", "%u", stats.dentries);
}

/* Largest number of open inodes that a statedump lists; the total is given too. */
enum { OPEN_INODES_MAX = 1000 };

struct open_inodes {
    struct dump *d;
    const char *brick;
    unsigned count;
};

static void
dump_open_inode(struct inode *inode, void *ctx, void *arg)
{
    struct open_inodes *o = arg;
    unsigned fds = atomic_load_explicit(&inode->open_fds, memory_order_relaxed);
    int refs = atomic_load(&inode->refs.n) - 1; /* minus the reference of the walk */

    (void)ctx;
    if (!fds || ++o->count > OPEN_INODES_MAX)
        return;
    dump_section(o->d, "conn.0.bound_xl.%s.active.%u", o->brick, o->count);
    dump_line(o->d, "gfid", "%s", GFID(&inode->gfid));
    dump_line(o->d, "nlookup", "1");
    dump_line(o->d, "fd-count", "%u", fds);
    dump_line(o->d, "active-fd-count", "%u", fds);
    dump_line(o->d, "ref", "%d", refs > 0 ? refs : 0);
    dump_line(o->d, "ia_type", "%d", S_ISDIR(inode->type) ? 2 : S_ISREG(inode->type) ? 1 : 3);
}

/* Lists objects that clients have open, in the same sections as stock. The storage, which is the last
 * layer, has a context of each open object. */
static void
dump_open_inodes(struct graph *g, struct dump *d)
{
    struct open_inodes o = {d, g->name, 0};

    inode_table_each(g->inodes, &g->layers[g->layer_count - 1], dump_open_inode, &o);
    dump_section(d, "conn.0.bound_xl.%s", g->name);
    dump_line(d, "open-inodes", "%u", o.count);
    if (o.count > OPEN_INODES_MAX)
        dump_line(d, "open-inodes-listed", "%u", OPEN_INODES_MAX);
}

static void
dump_unbuilt(const struct unbuilt_feature *f, void *arg)
{
    dump_line(arg, "not-built", "%s %s: %s", f->layer, f->option, f->without);
}

void
graph_dump(struct graph *g, struct dump *d)
{
    char parked[256];

    graph_parked(g, parked, sizeof parked);
    dump_section(d, "brick.%s", g->name);
    dump_line(d, "child-up", "%d", atomic_load(&g->is_child_up) ? 1 : 0);
    dump_line(d, "draining", "%d", atomic_load(&g->is_draining) ? 1 : 0);
    dump_line(d, "pins", "%ld", atomic_load(&g->pins));
    dump_line(d, "parked", "%s", parked);
    graph_each_unbuilt(g, dump_unbuilt, d);
    if (!(d->leaves_out & DUMP_INODES))
        dump_inodes(g, d);
    for (unsigned i = 0; i < g->layer_count && !(d->leaves_out & DUMP_LAYERS); i++) {
        struct xlator *xl = &g->layers[i];

        if (!xlator_is_on(xl) || !xl->type->dump)
            continue;
        dump_section(d, "xlator.%s.%s", xl->type->name, xl->name);
        read_section_begin(); /* layers read their confs */
        xl->type->dump(xl, d);
        read_section_end();
    }
    if (!(d->leaves_out & DUMP_INODES))
        dump_open_inodes(g, d);
}
