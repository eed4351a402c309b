/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* bricks: the bricks of this process, the one list of them: name, graph, what the volfile said, and what is
 * to become of each.
 *
 *      attach ──▶ ATTACHING ──▶ SERVING ──────────────▶ DETACHING ──▶ not in the list
 *                     │            └──▶ FAILED ─ 30 s ──▶ │
 *                     └── could not be built ─────────────┘
 *
 * Bricks come, change and go while all others serve. One operation at a time has a brick; further ones for
 * the same name wait, so that an attach that meets a detach under way begins when that has ended; what was
 * posted is done in that order. Operations on different bricks run side by side. A brick is found by clients
 * from the last step of its attach to the first of its detach.
 *
 * Storage that fails (brick 11.3): the clients have been told by protocol/server; half a minute later the
 * brick is detached.
 *
 * Threads: all functions may be called by any thread that is registered with RCU and in no read section (so
 * not by a worker); workers and timers use bricks_post(), whose operation has a short-lived thread of its
 * own: detaching waits for calls that may hang in a dead disk for ever, so neither a worker nor the main
 * thread may be lost to it. One mutex guards the list and the state of each brick; it is taken at logins and
 * when bricks come and go, never per request: a login pins the brick's graph.
 */
#ifndef KILN_GLUSTERFSD_BRICKS_H
#define KILN_GLUSTERFSD_BRICKS_H

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

/* Reads the volfile, builds the brick, starts it, publishes it last; on failure nothing is left. `name` NULL:
 * the volfile's own. A brick of that name and with the same volfile: 0, nothing happens; with another volfile
 * (a volume made anew on the same path): a brick is made of that, and then takes the other's place; if none
 * can be made (its folder, its volume-id, an option) the one that serves goes on; with is_new wanted:
 * -EEXIST. Other errors: -errno of what failed, with *error (error_size); -ESHUTDOWN after bricks_end(). */
int bricks_attach(const char *volfile_path, const char *name, bool is_new, char *error, size_t error_size);
/* The same of a volfile that has been read; it is taken over, also on failure, and not prepared. */
int bricks_attach_volfile(struct volfile *v, const char *name, bool is_new, char *error, size_t error_size);
/* All of these, is_new, side by side. On failure the first one's reason (in the order given); the others may
 * be attached. */
int bricks_attach_all(const char *const *volfile_paths, const char *const *names, unsigned count, char *error,
                      size_t error_size);

/* No longer found, connections dropped, calls drained, all freed. 0 or -ENOENT. Waits until it is so. */
int bricks_detach(const char *name);

/* The brick's layers get the options of this volfile, all or none; it is taken over, also on failure, and not
 * prepared. One that says what the brick does already changes nothing. -ENOENT; -EINVAL or -EOPNOTSUPP with
 * *error: what the running layers cannot become. */
int bricks_reconfigure_volfile(const char *name, struct volfile *v, char *error, size_t error_size);

/* Could a brick be made of this volfile (graph_check)? The caller keeps the volfile. 0, or -errno with
 * *error. Any thread, after bricks_begin(). */
int bricks_check_volfile(struct volfile *v, char *error, size_t error_size);

/* The same by graph_follow(): what the layers can take; how many options were refused. */
int bricks_follow_volfile(const char *name, struct volfile *v, char *error, size_t error_size);

/* These as jobs, and BRICK_WORK, which is nothing but `done`: for what may block. `done` (may be NULL) is
 * called once with the result, in the operation's own thread; `error` is "" or says why. The strings are
 * copied. Jobs whose brick is named (by `name`, or by a volfile that has been read) are done one after the
 * other, in the order of the calls. 0; -ENOMEM, -EAGAIN or -ESHUTDOWN: not begun, `done` will not be called.
 * Any thread. */
enum brick_op { BRICK_ATTACH, BRICK_DETACH, BRICK_RECONFIGURE, BRICK_FOLLOW, BRICK_WORK };
typedef void (*bricks_done)(int err, const char *error, void *arg);
int bricks_post(enum brick_op op, const char *volfile_path, const char *name, bricks_done done, void *arg);
/* BRICK_ATTACH, BRICK_RECONFIGURE, or BRICK_FOLLOW, which is done in this way alone, of a volfile that has
 * been read, which is taken over, also on failure. */
int bricks_post_volfile(enum brick_op op, struct volfile *v, const char *name, bricks_done done, void *arg);

/* A brick that clients may log in to, pinned (graph_unpin() gives it back); NULL: none of that name. Any
 * thread. */
struct graph *bricks_find(const char *name);
/* A brick of this name is on its way in or out: who wants it may come again. Any thread. */
bool bricks_is_changing(const char *name);
/* The one attached first; NULL: there is none. */
struct graph *bricks_first(void);
/* Calls fn for each of them, pinned, without the mutex. False: no memory to list them. */
bool bricks_each(void (*fn)(struct graph *g, void *arg), void *arg);
unsigned bricks_count(void);
/* How many are in each state at this moment, by the picture above. Any thread. */
struct bricks_states {
    unsigned attaching, serving, failed, detaching;
};
void bricks_states(struct bricks_states *out);

/* No operations any more; waits for those under way. False: one hangs, so that the process can only be ended
 * hard. */
bool bricks_end(void);
/* Then, after the last connection is closed: detaches all. */
void bricks_detach_all(void);

#endif
