/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* What building a graph (graph.c) and changing its options (reconfigure.c) share. */
#ifndef KILN_GRAPH_INTERNAL_H
#define KILN_GRAPH_INTERNAL_H

#include "data/option.h"
#include "graph/graph.h"

/* Logs an option that the layer (`arg`) has not. */
void graph_warn_unknown(const struct option_value *v, void *arg);
/* In *conf the section's options, to be freed with option_conf_fini() and free(); NULL on failure, which is
 * -errno, and told in `error`. */
int graph_parse_conf(struct xlator *xl, const struct volfile_section *s, void **conf, char *error,
                     size_t size);
/* Do calls pass through the layer, with this conf? */
bool graph_is_switched_on(const struct xlator *xl, const void *conf);

/* The sections below the top that are layers, each before those below it, and how they hang together. A
 * section that is passed over has its subvolume in its place. */
struct graph_plan {
    const struct volfile *volfile;
    struct xlator **layer_of; /* by index of section; NULL: not reached from the top */
    const struct volfile_section **sections; /* of layer i */
    unsigned count, children;
    char *error;
    size_t error_size;
};

/* Do its options leave the layer off, whatever it is: `option pass-through true`, or an option named as the
 * layer is (features/NAME: `option NAME off`)? One that says neither is taken to be on. */
bool graph_is_left_off(const struct volfile_section *s);
/* Is it of a type that is not known here, and does a graph work without: a debug layer, or one that its
 * options leave off? */
bool graph_passes_over(const struct volfile_section *s);
/* 0 or -errno, told in `error`, of which the plan keeps the address; after 0 it is to be freed. */
int graph_plan_make(struct graph_plan *p, const struct volfile *v, char *error, size_t size);
void graph_plan_free(struct graph_plan *p);

/* The section of this name and type; NULL: there is none. */
const struct volfile_section *graph_find_section(const struct volfile *v, const char *name, const char *type);
/* The one that says the layer's options. */
const struct volfile_section *graph_section_of(const struct volfile *v, const struct xlator *xl);

/* For each layer and fop the layer that comes next, from the bottom up: when the graph is made, and when
 * options have switched layers on or off while calls run. */
void graph_link_layers(struct graph *g);

#endif
