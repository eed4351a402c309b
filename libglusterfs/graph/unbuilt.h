/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* unbuilt: features that a brick's volfile asks for and Kiln does not implement.
 *
 * glusterd accepts the command that turns such a feature on, whether or not the brick daemon has it. If
 * the brick refused to start, it would be missing from its replica set from its next start on, which costs
 * more than the feature. So the brick serves without the feature and reports that: an error in the log at
 * each start and when the option is set, a line of `kiln status` and `kiln top`, of the statedump, and
 * kiln_brick_unbuilt_feature in /metrics. With graph_refuse_unbuilt() the brick, or the option of a
 * running brick, is refused instead.
 *
 * The rows of unbuilt.c are such features; their options are strings in the confs of their layers. An
 * option without which clients would read wrong data or send it in the clear (compression on the
 * wire) is always refused, and so is a layer of an unknown type, unless its options leave it off. */
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
    const char *off;     /* the value that means "feature off", like an absent option */
    const char *without; /* effect on the data of the missing feature */
};

/* Makes graphs refuse unbuilt features (kilnd --strict-features). Called before the first graph is made;
 * the setting is read-only afterwards. */
void graph_refuse_unbuilt(void);
bool graph_refuses_unbuilt(void);

/* Calls `fn` for each unbuilt feature that the section, whose layer is of this type, asks for. `what` is
 * the text of an error: "line 7: option leases on: this feature is not built (only 'off' is accepted)".
 * Returns the number of features. Any thread. */
unsigned unbuilt_each(const struct xlator_type *type, const struct volfile_section *s,
                      void (*fn)(const char *what, void *arg), void *arg);
/* 0, or -EOPNOTSUPP with the text for the first unbuilt feature in *error. Any thread. */
int unbuilt_check(const struct xlator_type *type, const struct volfile_section *s, char *error, size_t size);
/* The layer has a new conf, in place of `old` (NULL: none). Logs an error for each feature that the new
 * conf asks for and `old` did not. Called by the thread that makes the graph or changes its options. */
void unbuilt_note(const struct xlator *xl, const void *old);
/* Like unbuilt_note(), for a section without a layer in the running graph. */
void unbuilt_tell(const struct graph *g, const struct xlator_type *type, const struct volfile_section *s);

/* Calls `fn` for each unbuilt feature that the brick's options ask for now, layer by layer. Any thread
 * that is registered for read sections, while the graph exists. */
void graph_each_unbuilt(const struct graph *g, void (*fn)(const struct unbuilt_feature *f, void *arg),
                        void *arg);
/* The unbuilt feature of this option; NULL: the option is built or does not exist. Any thread. */
const struct unbuilt_feature *unbuilt_find(const char *layer, const char *option);
/* Tells whether the value turns the feature on. */
bool unbuilt_turns_on(const struct unbuilt_feature *f, const char *value);

#endif
