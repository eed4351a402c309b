/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Declarations shared by building a graph (graph.c) and changing its options (reconfigure.c). */
#ifndef KILN_GRAPH_INTERNAL_H
#define KILN_GRAPH_INTERNAL_H

#include "data/option.h"
#include "graph/graph.h"

/* Logs an option that the layer (`arg`) does not have. */
void graph_warn_unknown(const struct option_value *v, void *arg);
/* Stores the section's options in *conf, to be freed with option_conf_fini() and free(). On failure
 * returns -errno with the reason in `error`, and *conf is NULL. */
int graph_parse_conf(struct xlator *xl, const struct volfile_section *s, void **conf, char *error,
                     size_t size);
/* Do calls pass through the layer if it has this conf? */
bool graph_is_switched_on(const struct xlator *xl, const void *conf);

/* The sections below the top that become layers, each before the layers below it, and their connections. A
 * section that is passed over is replaced by its subvolume. */
struct graph_plan {
    xlator_type_find *find_type;
    const struct volfile *volfile;
    struct xlator **layer_of; /* by index of section; NULL: not reached from the top */
    const struct volfile_section **sections; /* of layer i */
    unsigned count, children;
    char *error;
    size_t error_size;
};

/* Do the section's options leave the layer off, whatever type it has? That is `option pass-through true`,
 * or an option named like the layer (features/NAME: `option NAME off`). A section with neither is taken to
 * be on. */
bool graph_is_left_off(const struct volfile_section *s);
/* Can a graph work without this section, whose type is not known here: a debug layer, or a layer that its
 * options leave off? */
bool graph_passes_over(xlator_type_find *find_type, const struct volfile_section *s);
/* 0 or -errno with the reason in `error`, whose address the plan keeps. After 0 the plan must be freed. */
int graph_plan_make(struct graph_plan *p, xlator_type_find *find_type, const struct volfile *v, char *error,
                    size_t size);
void graph_plan_free(struct graph_plan *p);

/* The section of this name and type; NULL: none. */
const struct volfile_section *graph_find_section(const struct volfile *v, const char *name, const char *type);
/* The section with the layer's options. */
const struct volfile_section *graph_section_of(const struct volfile *v, const struct xlator *xl);

/* Sets, for each layer and fop, the next layer, from the bottom up: when the graph is made, and when
 * options have switched layers on or off while calls run. */
void graph_link_layers(struct graph *g);

#endif
