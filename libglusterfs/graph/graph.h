/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* graph: a tree of layers with their options, built from a volfile, and what belongs to all of them: the
 * inode table, the clients. A brick is one.
 *
 * Life: graph_new (built and checked; nothing else sees it) -> graph_start -> graph_drain (refuses new pins,
 * stops the layers, so that clients are dropped, and waits for the last pin) -> graph_free. A client that has
 * logged in pins the graph, and each of its requests holds the client. Which graphs a process has, and by
 * what names they are found, is its own affair (glusterfsd/bricks.h).
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
    /* while layers are told of new options: where those came from; else NULL */
    struct volfile *volfile_fresh;
    const struct graph *replaces; /* while layers are initialised: graph_new_beside()'s; else NULL */
    struct xlator *layers; /* array: each before those below it, so the top is the first */
    struct xlator **children; /* one array for all of them: where layers' `children` point */
    unsigned layer_count;
    struct xlator *top;    /* protocol/server */
    struct xlator *brick;  /* the layer below it: where calls start */
    struct inode_table *inodes;
    struct gfid volume_id; /* null: none given. Written by the storage's init, only read afterwards */
    uint16_t owner;        /* mem-pool owner id */
    unsigned slots[CTX_KINDS]; /* contexts that each inode, fd and client has room for */
    atomic_long pins;      /* one for being alive, and one for each user; see graph_pin */
    atomic_bool is_draining;
    atomic_bool is_child_up; /* storage healthy */
    /* 0: the process's; else an enum log_level and one more. See log_set_brick_level() */
    atomic_uint log_level;
    /* Whoever made the graph is told of events that have come up to its top; from any thread. Set before
     * graph_start(). */
    void (*watch)(struct graph *g, enum child_event event);
    void *maker; /* its own */
    _Atomic uint32_t files; /* that its clients' fd tables hold: fs/fd.c */
    pthread_mutex_t clients_lock;
    struct cds_list_head clients; /* of struct brick_client, by its `link` */
    unsigned layers_up;           /* layers whose init has succeeded, counted from the bottom */
    unsigned layers_started;
};

/* What the brick of this volfile will be called: the name of the volume right below protocol/server. Lent:
 * the volfile's. */
const char *graph_brick_name(const struct volfile *v);

/* Takes the volfile over (also on failure). Parses options, leaves out inactive layers, works out next
 * tables, makes the inode table, initialises layers bottom up. The graph is the caller's, with the first pin,
 * until graph_free(). `brick_name`, which is copied, NULL: the volfile's own. NULL: *error (error_size bytes,
 * its end included) says why, in the words of the layer's init if it was one's, and nothing is left behind.
 * thread: any; it does what init of the layers does, so it may block in system calls. */
struct graph *graph_new(struct volfile *volfile, const char *brick_name, char *error, size_t error_size);
/* The same of a graph that is to take the place of `before`, whose name it gets and which serves until then:
 * what only one of them can have, such as the storage's claim on its folder, they share. `before` stays while
 * this runs. */
struct graph *graph_new_beside(const struct graph *before, struct volfile *volfile, char *error,
                               size_t error_size);
/* Could a graph be made of this volfile, as far as it alone says: types, options, shape? Nothing is set up;
 * the volfile stays the caller's. 0 or -errno with *error. */
int graph_check(struct volfile *volfile, char *error, size_t error_size);
/* After graph_drain(), or of a graph that was never started: no pins but the first. Layers down top first,
 * everything freed, the volfile too. Objects that the brick still owns are reported in the log. NULL allowed.
 * thread: the caller's alone by now. */
void graph_free(struct graph *g);

/* While the caller knows that the graph is there. False: it is draining, and nothing is to be given back.
 * thread: any; pinning takes no lock, giving back one that only drains take. */
bool graph_pin(struct graph *g);
void graph_unpin(struct graph *g);
/* Refuses new pins, stops the layers, returns when only the first pin is left. Calls may hang in a dead disk:
 * then so does this, and says so in the log from time to time. Not inside a read section. */
void graph_drain(struct graph *g);

/* New option values from a volfile of the same shape, which is taken over. All are parsed before any is
 * published; a layer sees its old conf or its new one. One caller at a time for each graph. 0 or -errno with
 * *error. */
int graph_reconfigure(struct graph *g, struct volfile *fresh, char *error, size_t error_size);
/* The same for whoever cannot give the volfile back: all that the running layers can take is taken. An option
 * that is not built or cannot be read keeps the value it has and is logged by name (option-refused); a layer
 * that only one of graph and volfile has is logged to come or go at the next start (layer-waits), and one of
 * a type that is not built as what will prevent that start (layer-refused). How many options and layers were
 * refused; -ENOMEM, or -EINVAL of another brick's volfile, with *error and nothing changed. */
int graph_follow(struct graph *g, struct volfile *fresh, char *error, size_t error_size);

/* Calls start of every layer, bottom first. 0, or the layer's -errno: those started are stopped again.
 * graph_stop() undoes it, top first, and does nothing when nothing is started. thread: one at a time for each
 * graph. */
int graph_start(struct graph *g);
void graph_stop(struct graph *g);

/* Gives each layer its place among the contexts of inodes, fds and clients, by what its type says it keeps.
 * Part of graph_new(); tests that put a graph together by hand call it before they make the inode table. */
void graph_number_contexts(struct graph *g);

/* Which calls are parked (call_stack_park), by layer and fop: "features/locks inodelk 3, features/locks
 * unlink 1". "": none. Cut where `text` ends. Any thread, while the graph is there; others may come and go
 * meanwhile. */
void graph_parked(const struct graph *g, char *text, size_t size);

/* The brick's part of a statedump. The caller has a pin. thread: any that is registered for read sections. */
void graph_dump(struct graph *g, struct dump *d);

#endif
