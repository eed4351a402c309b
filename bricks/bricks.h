/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* bricks: the list of all bricks of this process, with the name, the graph, the digest of the volfile and
 * the state of each brick.
 *
 *      attach ──▶ ATTACHING ──▶ SERVING ──────────────▶ DETACHING ──▶ not in the list
 *                     │            └──▶ FAILED ─ 30 s ──▶ │
 *                     └── could not be built ─────────────┘
 *
 * Bricks come, change and go while all other bricks serve. A brick belongs to one operation at a time.
 * Further operations for the same name wait, so an attach that meets a detach under way begins when the
 * detach has ended. Posted operations run in the order of their posting. Operations on different bricks run
 * side by side. Clients find a brick from the last step of its attach to the first step of its detach.
 *
 * Storage that fails (brick 11.3): protocol/server has told the clients; half a minute later the brick is
 * detached.
 *
 * Threads: all functions may be called by any thread that is registered with RCU and in no read section (so
 * not by a worker). Workers and timers use bricks_post(), whose operation has a separate, short-lived
 * thread: a detach waits for calls that may hang in a dead disk for ever, so the wait must not take a worker
 * or the main thread. One mutex guards the list and the state of each brick. Threads take the mutex at
 * logins and when bricks come and go, never per request: a login pins the brick's graph.
 */
#ifndef KILN_BRICKS_BRICKS_H
#define KILN_BRICKS_BRICKS_H

#include <stdbool.h>
#include <stddef.h>

#include "stack/xlator.h"

struct graph;
struct volfile;

struct bricks_hooks {
    /* Finds the layer types of a brick. */
    xlator_type_find *find_type;
    /* Changes a volfile before a brick is made of it (--xlator-option). 0 or -errno with a text. May be NULL.
     */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
    /* A brick is about to be detached because its storage failed. From that brick's thread; may be NULL. */
    void (*failed)(const char *name);
    /* The last brick has gone because its storage failed. From that brick's thread; may be NULL. */
    void (*none_left)(void);
};

/* Before the first attach; workers must be running. */
void bricks_begin(const struct bricks_hooks *hooks);

/* Reads the volfile, builds the brick, starts the brick, publishes the brick last; on failure nothing is
 * left. `name` NULL: the volfile's own. If a brick of that name serves: with the same volfile 0, and nothing
 * happens. With another volfile (a volume made anew on the same path) a new brick is made, and then takes the
 * place of the old; if the new brick cannot be made (its folder, its volume-id, an option), the old brick
 * serves on. With is_new: -EEXIST. Other errors: -errno of the failed step, with *error (error_size);
 * -ESHUTDOWN after bricks_end(). */
int bricks_attach(const char *volfile_path, const char *name, bool is_new, char *error, size_t error_size);
/* As bricks_attach(), with a volfile that has been read. The function takes the volfile over, also on
 * failure, and does not call `prepare`. */
int bricks_attach_volfile(struct volfile *v, const char *name, bool is_new, char *error, size_t error_size);
/* Attaches all of these, is_new, side by side. On failure the reason of the first failed brick (in the order
 * given); the other bricks may be attached. */
int bricks_attach_all(const char *const *volfile_paths, const char *const *names, unsigned count, char *error,
                      size_t error_size);

/* Clients no longer find the brick; connections are dropped, calls drained, and the memory is freed. 0 or
 * -ENOENT. Waits until all this is done. */
int bricks_detach(const char *name);

/* The brick's layers get the options of this volfile, all or none. The function takes the volfile over, also
 * on failure, and does not call `prepare`. A volfile with the brick's present options changes nothing.
 * -ENOENT; -EINVAL or -EOPNOTSUPP with *error: the options that the running layers cannot take. */
int bricks_reconfigure_volfile(const char *name, struct volfile *v, char *error, size_t error_size);

/* Could a brick be made of this volfile (graph_check)? The caller keeps the volfile. 0, or -errno with
 * *error. Any thread, after bricks_begin(). */
int bricks_check_volfile(struct volfile *v, char *error, size_t error_size);

/* As bricks_reconfigure_volfile(), by graph_follow(): the layers take the options that they can. Returns the
 * number of refused options. */
int bricks_follow_volfile(const char *name, struct volfile *v, char *error, size_t error_size);

/* Posts these operations as jobs. BRICK_WORK does nothing but call `done`, for work that may block. `done`
 * (may be NULL) is called once with the result, in the operation's own thread; `error` is "" or the reason.
 * The strings are copied. Jobs whose brick is named (by `name`, or by a volfile that has been read) run one
 * after the other, in the order of the calls. 0; -ENOMEM, -EAGAIN or -ESHUTDOWN: not begun, `done` will not
 * be called. Any thread. */
enum brick_op { BRICK_ATTACH, BRICK_DETACH, BRICK_RECONFIGURE, BRICK_FOLLOW, BRICK_WORK };
typedef void (*bricks_done)(int err, const char *error, void *arg);
int bricks_post(enum brick_op op, const char *volfile_path, const char *name, bricks_done done, void *arg);
/* BRICK_ATTACH, BRICK_RECONFIGURE, or BRICK_FOLLOW, which this function alone posts, with a volfile that has
 * been read. The function takes the volfile over, also on failure. */
int bricks_post_volfile(enum brick_op op, struct volfile *v, const char *name, bricks_done done, void *arg);

/* A brick that clients may log in to, pinned (graph_unpin() gives the pin back); NULL: no such brick. Any
 * thread. */
struct graph *bricks_find(const char *name);
/* The brick's storage has failed its health check: calls fail, and the brick will be detached. Any thread. */
bool bricks_has_failed(const char *name);
/* A brick of this name is on its way in or out: a client of the brick may come again. Any thread. */
bool bricks_is_changing(const char *name);
/* The brick attached first, pinned; NULL: no brick. */
struct graph *bricks_first(void);
/* Calls fn for each brick, pinned, without the mutex. False: no memory for the list. */
bool bricks_each(void (*fn)(struct graph *g, void *arg), void *arg);
unsigned bricks_count(void);
/* The numbers of bricks in each state at this moment, by the picture above. Any thread. */
struct bricks_states {
    unsigned attaching, serving, failed, detaching;
};
void bricks_states(struct bricks_states *out);

/* No operations any more; waits for the operations under way. False: an operation hangs, so that the process
 * can only be ended hard. */
bool bricks_end(void);
/* Then, after the last connection is closed: detaches all. */
void bricks_detach_all(void);

#endif
