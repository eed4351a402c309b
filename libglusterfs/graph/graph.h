/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* graph: one brick: its layers, inode table and clients, built from a volfile.
 *
 * Life: graph_new (built and checked; nothing else sees it) -> graph_publish (found by name) -> graph_detach (not found any
 * more, calls drain, clients dropped) -> freed after the last pin. A request pins its graph from decode to reply.
 */
#ifndef KILN_GRAPH_GRAPH_H
#define KILN_GRAPH_GRAPH_H

#include <pthread.h>
#include <stdatomic.h>
#include <urcu/list.h>

#include "graph/volfile.h"
#include "stack/xlator.h"

struct dump;
struct inode_table;

struct graph {
    char *name;            /* the brick: the volume right below protocol/server */
    struct volfile *volfile;
    struct volfile *volfile_fresh; /* while layers are told of new options: where those came from; else NULL */
    struct xlator *layers; /* array, top (protocol/server) first */
    unsigned layer_count;
    struct xlator *top;    /* protocol/server */
    struct xlator *brick;  /* the layer below it: where calls start */
    struct inode_table *inodes;
    struct gfid volume_id; /* null: none given */
    uint16_t owner;        /* mem-pool owner id */
    int ctx_slots;         /* context slots given out */
    atomic_long pins;      /* one for being alive, and one for each user; see graph_pin */
    atomic_bool is_draining;
    atomic_bool is_child_up; /* storage healthy */
    pthread_mutex_t clients_lock;
    struct cds_list_head clients; /* of struct client, by its `link` */
    struct cds_list_head link;    /* process-wide brick table, under its mutex */
    bool is_published;            /* same mutex */
    unsigned layers_up;           /* layers whose init has succeeded, counted from the bottom */
    unsigned layers_started;
};

/* What the brick of this volfile will be called: the name of the volume right below protocol/server. */
const char *graph_brick_name(const struct volfile *v);

/* Takes the volfile over (also on failure). Parses options, leaves out inactive layers, works out next tables, initialises layers bottom up, makes the inode table.
 * `brick_name` NULL: the volfile's own. On failure *error (size error_size) says why, and nothing is left behind. */
struct graph *graph_new(struct volfile *volfile, const char *brick_name, char *error, size_t error_size);
/* Not published (any more), no pins but the first: layers down top first, everything freed, the volfile too. Objects that
 * the brick still owns are reported in the log. */
void graph_free(struct graph *g);

/* Found by name from now on. -EEXIST. */
int graph_publish(struct graph *g);
/* A pin is handed over; NULL: no brick of that name. graph_unpin() gives it back. */
struct graph *graph_find(const char *brick_name);
bool graph_pin(struct graph *g); /* false: draining */
void graph_unpin(struct graph *g);
/* Calls fn for each published graph, pinned. */
void graph_each(void (*fn)(struct graph *g, void *arg), void *arg);
/* Unpublishes, refuses new pins, stops the layers (protocol/server drops its connections then), waits until the last pin
 * is gone, frees. 0 or -ENOENT. */
int graph_detach(const char *brick_name);

/* New option values from a volfile of the same shape, which is taken over. All are parsed before any is published; a layer sees
 * its old conf or its new one. One caller at a time for each graph. 0 or -errno with *error. */
int graph_reconfigure(struct graph *g, struct volfile *fresh, char *error, size_t error_size);

/* Storage has become healthy or sick: recorded, and told to whoever asked (protocol/server tells the clients). */
void graph_child_event(struct graph *g, bool is_up);
void graph_on_child_event(void (*fn)(struct graph *g, bool is_up));

/* Calls start of every layer, bottom first; on failure those started are stopped again. graph_stop() undoes it. */
int graph_start(struct graph *g);
void graph_stop(struct graph *g);

/* For layers' init: this layer keeps contexts on inodes or fds: sets xl->ctx_slot. */
int graph_take_ctx_slot(struct xlator *xl);

void graph_dump(struct graph *g, struct dump *d);

#endif
