/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes options of a running graph: all or nothing (graph_reconfigure), or as far as possible
 * (graph_follow). */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/read-section.h"
#include "graph/graph-internal.h"
#include "graph/unbuilt.h"
#include "log/log.h"

/* ---- all or nothing -------------------------------------------------------------------------- */

/* Parses all confs before the first is published, so all layers change or none does. */
static int
parse_all(struct graph *g, const struct graph_plan *p, void **confs, char *error, size_t size)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];
        int err = graph_parse_conf(xl, p->sections[i], &confs[i], error, size);

        if (err)
            return err;
        if (xl->child_count > 1 && !graph_is_switched_on(xl, confs[i])) {
            snprintf(error, size, "volume %s (%s) cannot be switched off: it has %u subvolumes", xl->name,
                     xl->type->name, xl->child_count);
            return -EINVAL;
        }
    }
    return 0;
}

static int
parse_fresh(struct graph *g, const struct volfile *fresh, void **confs, char *error, size_t size)
{
    struct graph_plan p;

    if (!volfile_has_shape(g->volfile, fresh)) {
        snprintf(error, size, "the volfile's layers differ from the running brick's: restart the brick");
        return -EINVAL;
    }
    int err = graph_plan_make(&p, g->find_type, fresh, error, size);
    if (err)
        return err;
    err = parse_all(g, &p, confs, error, size);
    graph_plan_free(&p);
    return err;
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

/* Returns "" if the section does not set the key. */
static const char *
last_value(const struct volfile_section *s, const char *key)
{
    const char *value = "";

    for (size_t i = 0; i < s->option_count; i++) {
        if (strcmp(s->options[i].key, key) == 0)
            value = s->options[i].value;
    }
    return value;
}

/* Warns the operator about options that take effect only when the brick starts again. */
static void
log_waiting_options(const struct xlator *xl, const struct volfile_section *now,
                const struct volfile_section *start)
{
    const char *const *key = xl->type->at_start;

    for (; key && *key; key++) {
        const char *value = last_value(now, *key);

        if (strcmp(value, last_value(start, *key)) != 0)
            log_event(LOG_WARNING, xl, "option-waits",
                      "option %s \"%s\" takes effect when the brick starts again", *key, value);
    }
}

/* Takes volfile and confs over. A layer without a new conf keeps its old conf. */
static void
publish_confs(struct graph *g, struct volfile *fresh, void **confs)
{
    g->volfile_fresh = fresh;
    for (unsigned i = g->layer_count; i-- > 0;) {
        struct xlator *xl = &g->layers[i];

        if (!confs[i])
            continue;
        log_waiting_options(xl, graph_section_of(fresh, xl), graph_section_of(g->volfile, xl));
        confs[i] = __atomic_exchange_n(&xl->conf, confs[i], __ATOMIC_ACQ_REL); /* see xlator_conf() */
        atomic_store(&xl->is_off, !graph_is_switched_on(xl, xlator_conf(xl)));
        unbuilt_note(xl, confs[i]);
        if (xl->type->reconfigured)
            xl->type->reconfigured(xl, confs[i]);
    }
    graph_link_layers(g);
    g->volfile_fresh = NULL;
    read_sections_wait();
    free_confs(g, confs);
    /* Names of layers point into the volfile they were made from, so that volfile stays; only the values
     * are new. */
    volfile_free(fresh);
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
    if (!err)
        err = parse_fresh(g, fresh, confs, error, error_size);
    if (!err) {
        publish_confs(g, fresh, confs);
        return 0;
    }
    if (confs)
        free_confs(g, confs);
    volfile_free(fresh);
    return err;
}

/* ---- as far as possible ---------------------------------------------------------------------- */

struct follower {
    const struct xlator *xl;
    int refused;
};

static void
count_refused(const char *what, void *arg)
{
    struct follower *f = arg;

    f->refused++;
    log_event(LOG_ERROR, f->xl, "option-refused", "volume %s (%s): %s; the option keeps its value",
              f->xl->name, f->xl->type->name, what);
}

static void
warn_follower(const struct option_value *v, void *arg)
{
    const struct follower *f = arg;

    graph_warn_unknown(v, (void *)f->xl);
}

static int
follow_section(struct xlator *xl, const struct volfile_section *s, void **conf)
{
    struct follower f = {.xl = xl};
    const struct option_sink sink = {warn_follower, count_refused, &f};

    if (graph_refuses_unbuilt())
        (void)unbuilt_each(xl->type, s, count_refused, &f);
    *conf = calloc(1, xl->type->conf_size ? xl->type->conf_size : 1);
    int err =
        *conf ? option_change(xl->type->options, s->options, s->option_count, *conf, xlator_conf(xl), &sink)
              : -ENOMEM;
    if (err) {
        free(*conf);
        *conf = NULL;
        return err;
    }
    if (xl->child_count > 1 && !graph_is_switched_on(xl, *conf)) {
        count_refused("it cannot be switched off", &f);
        option_conf_fini(xl->type->options, *conf);
        free(*conf);
        *conf = NULL;
    }
    return f.refused;
}

/* Logs that a layer comes or goes only at the next start. */
static void
log_waiting_layer(const struct graph *g, const struct volfile_section *s, const char *what)
{
    log_event(LOG_WARNING, NULL, "layer-waits", "brick %s: layer %s (%s) %s when the brick starts again",
              g->name, s->name, s->type, what);
}

static void
log_layers_that_go(const struct graph *g, const struct volfile *fresh)
{
    for (size_t i = 0; i < g->volfile->section_count; i++) {
        const struct volfile_section *s = &g->volfile->sections[i];

        bool was_there = !graph_passes_over(g->find_type, s) && !graph_is_left_off(s);

        if (was_there && !graph_find_section(fresh, s->name, s->type))
            log_waiting_layer(g, s, "goes");
    }
}

/* Will the next start refuse this section of the volfile? 0: no; else -errno with the reason in `why`. */
static int
check_next_start(const struct graph *g, const struct volfile_section *s, char *why, size_t size)
{
    const struct xlator_type *type = g->find_type(s->type);

    if (type)
        return graph_refuses_unbuilt() ? unbuilt_check(type, s, why, size) : 0;
    snprintf(why, size, "the type is not built");
    return graph_passes_over(g->find_type, s) ? 0 : -EOPNOTSUPP;
}

/* Logs layers that only the new volfile has; returns how many of them will keep the brick from starting. A
 * layer that was passed over when the graph was made may be switched on now. */
static int
log_layers_that_come(const struct graph *g, const struct volfile *fresh)
{
    char why[512];
    int refused = 0;

    for (size_t i = 0; i < fresh->section_count; i++) {
        const struct volfile_section *s = &fresh->sections[i];
        const struct volfile_section *old = graph_find_section(g->volfile, s->name, s->type);
        const struct xlator_type *type = g->find_type(s->type);

        if (old && (type || graph_passes_over(g->find_type, s)))
            continue;
        if (check_next_start(g, s, why, sizeof why) == 0) {
            if (!graph_passes_over(g->find_type, s) && !graph_is_left_off(s))
                log_waiting_layer(g, s, "comes");
            if (type)
                unbuilt_tell(g, type, s);
            continue;
        }
        refused++;
        log_event(
            LOG_ERROR, NULL, "layer-refused",
            "brick %s: layer %s (%s): %s: the brick stays as it was, and will not start again with this "
            "layer",
            g->name, s->name, s->type, why);
    }
    return refused;
}

static int
follow_all(struct graph *g, const struct volfile *fresh, void **confs)
{
    int refused = 0;

    for (unsigned i = 0; i < g->layer_count; i++) {
        const struct volfile_section *s = graph_section_of(fresh, &g->layers[i]);
        int r = s ? follow_section(&g->layers[i], s, &confs[i]) : 0;

        if (r < 0)
            return r;
        refused += r;
    }
    return refused;
}

int
graph_follow(struct graph *g, struct volfile *fresh, char *error, size_t error_size)
{
    int r = 0;

    if (strcmp(graph_brick_name(fresh), graph_brick_name(g->volfile)) != 0 ||
        strcmp(fresh->top->type, g->volfile->top->type) != 0) {
        snprintf(error, error_size, "the volfile is that of %s", graph_brick_name(fresh));
        volfile_free(fresh);
        return -EINVAL;
    }
    void **confs = calloc(g->layer_count, sizeof *confs);
    r = confs ? follow_all(g, fresh, confs) : -ENOMEM;
    if (r >= 0) {
        r += log_layers_that_come(g, fresh);
        log_layers_that_go(g, fresh);
        publish_confs(g, fresh, confs);
        return r;
    }
    snprintf(error, error_size, "no memory");
    if (confs)
        free_confs(g, confs);
    volfile_free(fresh);
    return r;
}
