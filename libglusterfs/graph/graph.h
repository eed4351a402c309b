/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* graph: a tree of layers with their options, built from a volfile, and the objects that all layers share:
 * the inode table, the clients. A brick is a graph.
 *
 * Life: graph_new (built and checked; no other thread sees it) -> graph_start -> graph_drain (refuses new
 * pins, stops the layers, so that clients are dropped, and waits for the last pin) -> graph_free. A client
 * that has logged in pins the graph, and each of its requests holds the client. The list of a process's
 * graphs and their names is kept elsewhere (bricks/bricks.h). */
#ifndef KILN_GRAPH_GRAPH_H
#define KILN_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "base/reason.h"
#include "graph/volfile.h"
#include "stack/xlator.h"

struct dump;
struct inode_table;

struct graph {
    char *name;            /* the brick: the volume right below protocol/server */
    xlator_type_find *find_type; /* the program's types; constant */
    struct volfile *volfile;
    /* while reconfigured() of layers runs: the volfile of the new options; else NULL */
    struct volfile *volfile_fresh;
    /* while layers are initialised: the `before` of graph_new_beside(); else NULL */
    const struct graph *replaces;
    struct xlator *layers; /* array: each layer before the layers below it, so the top is the first */
    struct xlator **children; /* array for all layers; their `children` point here */
    unsigned layer_count;
    unsigned traits;       /* of all layers: LAYER_*. Constant */
    struct xlator *top;    /* protocol/server */
    struct xlator *brick;  /* the layer below it: where calls start */
    struct inode_table *inodes;
    struct gfid volume_id; /* null: not given. Written by the storage's init, read-only afterwards */
    uint16_t owner;        /* mem-pool owner id */
    unsigned slots[CTX_KINDS]; /* number of context slots in each inode, fd and client */
    atomic_long pins;      /* one for the graph's life and one for each user; see graph_pin */
    atomic_bool is_draining;
    atomic_bool is_child_up; /* storage healthy */
    struct log_group log; /* named after the brick; not named in a mount, whose layers have unique names */
    /* Called by any thread for events that reach the top of the graph: EVENT_CHILD and EVENT_INVALIDATED. Set
     * by the graph's creator before graph_start(). */
    void (*watch)(struct graph *g, const struct layer_event *e);
    void *maker; /* for the graph's creator */
    struct reason refusal; /* graph_note_refusal(); under clients_lock */
    _Atomic uint32_t files; /* open files in its clients' fd tables: fs/fd.c */
    pthread_mutex_t clients_lock;
    struct cds_list_head clients; /* of struct brick_client, by its `link` */
    unsigned layers_up;           /* layers whose init has succeeded, counted from the bottom */
    unsigned layers_started;
};

/* Keeps the first text that says why a brick has refused this graph, or could not be trusted: the error of
 * the program that mounts. Any thread. */
void graph_note_refusal(struct graph *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Copies it; "": there is none. */
void graph_refusal(struct graph *g, struct reason *out);

/* The name of the brick of this volfile: the volume right below protocol/server. The string belongs to the
 * volfile. */
const char *graph_brick_name(const struct volfile *v);

/* Takes the volfile over (also on failure). Finds the types of the layers by `find_type`, parses options,
 * leaves out inactive layers, computes the tables of next layers, makes the inode table, initialises layers
 * bottom up. The graph belongs to the
 * caller, with the first pin, until graph_free(). `brick_name` is copied; NULL: the volfile's own name.
 * Returns NULL on failure, with the reason in *error (error_size bytes with the NUL), in the words of the
 * layer's init if that failed, and with nothing left behind. thread: any; runs the init functions of the
 * layers, so it may block in system calls. */
struct graph *graph_new(xlator_type_find *find_type, struct volfile *volfile, const char *brick_name,
                        char *error, size_t error_size);
/* Like graph_new(), for a graph that will replace `before`, which serves until then. The new graph gets
 * the name of `before`, and the two share resources that exist only once, such as the storage's claim on
 * its folder. `before` must stay while this runs. */
struct graph *graph_new_beside(const struct graph *before, struct volfile *volfile, char *error,
                               size_t error_size);
/* Could a graph be made of this volfile, judging only by its types, options and shape? Nothing is set up;
 * the caller keeps the volfile. `is_strict`: a feature that is not built is an error. 0 or -errno with
 * *error. */
int graph_check(xlator_type_find *find_type, struct volfile *volfile, bool is_strict, char *error,
                size_t error_size);
/* Called after graph_drain(), or for a graph that was never started: no pins but the first. Takes the
 * layers down top first and frees everything, the volfile too. Objects that the brick still owns are
 * reported in the log. NULL allowed. thread: only the caller still has the graph. */
void graph_free(struct graph *g);

/* The caller must know that the graph exists. False: the graph is draining, and there is nothing to unpin.
 * thread: any; pinning takes no lock, unpinning takes a lock that only drains take. */
bool graph_pin(struct graph *g);
void graph_unpin(struct graph *g);
/* Refuses new pins, stops the layers and returns when only the first pin is left. Calls may hang in a dead
 * disk: then this hangs too, and logs that from time to time. Not inside a read section. */
void graph_drain(struct graph *g);

/* Applies option values from a volfile of the same shape, which is taken over. All values are parsed
 * before the first is published; a layer sees its old conf or its new conf. One caller at a time for each
 * graph. 0 or -errno with *error. */
int graph_reconfigure(struct graph *g, struct volfile *fresh, char *error, size_t error_size);
/* Like graph_reconfigure(), for a caller that cannot refuse the volfile: applies all options that the
 * running layers can apply. An option that is not built or cannot be read keeps its value and is logged by
 * name (option-refused); a layer that only the graph or only the volfile has is logged to come or go at
 * the next start (layer-waits), and a layer whose type is not built is logged as something that will
 * prevent that start (layer-refused). Returns the number of refused options and layers; -ENOMEM, or
 * -EINVAL for another brick's volfile, with *error and nothing changed. */
int graph_follow(struct graph *g, struct volfile *fresh, char *error, size_t error_size);

/* Calls start of every layer, bottom first. 0, or the layer's -errno: the layers started before are
 * stopped again. graph_stop() stops all layers, top first, and does nothing when none is started. thread:
 * one at a time for each graph. */
int graph_start(struct graph *g);
void graph_stop(struct graph *g);

/* Gives each layer its place among the contexts of inodes, fds and clients, according to its type's
 * `keeps`. Part of graph_new(); tests that put a graph together by hand call it before they make the inode
 * table. */
void graph_number_contexts(struct graph *g);

/* Writes the numbers of parked calls (call_stack_park) by layer and fop: "features/locks inodelk 3,
 * features/locks unlink 1". "": none. Cut where `text` ends. Any thread, while the graph exists; calls may
 * come and go meanwhile. */
void graph_parked(const struct graph *g, char *text, size_t size);

/* The number of all parked calls; a moment's figure. Any thread, while the graph exists. */
unsigned graph_parked_count(const struct graph *g);

/* Writes the brick's part of a statedump. The caller has a pin. thread: any that is registered for read
 * sections. */
void graph_dump(struct graph *g, struct dump *d);

#endif
