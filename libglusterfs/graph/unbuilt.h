/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* unbuilt: features that a brick's volfile asks for and kilnd has not built.
 *
 * glusterd takes the command that turns such a feature on whoever serves the bricks. A brick that gave up
 * because of it would be missing from its replica set from its next start on, which costs more than the
 * feature. So the brick serves without it and says so: an error in the log at each start and when the option
 * is set, a line of `kiln status` and `kiln top`, of the statedump, and kiln_brick_unbuilt_feature in
 * /metrics. With graph_refuse_unbuilt() a brick is refused instead, and an option of a running brick.
 *
 * The rows of unbuilt.c are such features; their options are strings in the confs of their layers. An option
 * without which clients would read wrong data or send it in the clear (TLS, compression on the wire) is
 * refused always, and so is a layer of a type that is not known here, unless its options leave it off.
 */
#ifndef KILN_GRAPH_UNBUILT_H
#define KILN_GRAPH_UNBUILT_H

#include <stdbool.h>
#include <stddef.h>

struct graph;
struct volfile_section;
struct xlator;
struct xlator_type;

/* A constant of the program. */
struct unbuilt_feature {
    const char *layer;   /* the type */
    const char *option;
    const char *off;     /* the value that does not ask for it, as no value does */
    const char *without; /* what it means for the data that it is not there */
};

/* From now on no graph is made that asks for what is not built (kilnd --strict-features). Before the first
 * graph is made; only read afterwards. */
void graph_refuse_unbuilt(void);
bool graph_refuses_unbuilt(void);

/* Calls `fn` for each feature that the section, whose layer is of this type, asks for, with the value, in
 * words for an error: "line 7: option leases on: this feature is not built (only 'off' is accepted)". How
 * many. Any thread. */
unsigned unbuilt_each(const struct xlator_type *type, const struct volfile_section *s,
                      void (*fn)(const char *what, void *arg), void *arg);
/* The first of them: 0, or -EOPNOTSUPP with *error. Any thread. */
int unbuilt_check(const struct xlator_type *type, const struct volfile_section *s, char *error, size_t size);
/* The layer has a new conf, in place of `old` (NULL: of none). What it asks for and did not ask for before is
 * logged as an error. By the one that makes the graph or changes its options. */
void unbuilt_note(const struct xlator *xl, const void *old);
/* The same of a section that the running graph has no layer for. */
void unbuilt_tell(const struct graph *g, const struct xlator_type *type, const struct volfile_section *s);

/* What the brick is asked for now, layer by layer. Any thread that is registered for read sections, while the
 * graph is there. */
void graph_each_unbuilt(const struct graph *g, void (*fn)(const struct unbuilt_feature *f, void *arg),
                        void *arg);
/* The feature of this option; NULL: it is built, or there is none. Any thread. */
const struct unbuilt_feature *unbuilt_find(const char *layer, const char *option);

#endif
