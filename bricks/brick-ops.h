/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-ops: the requests of glusterd on the unix socket of this process: attach, terminate, status, profile,
 * top, barrier (spec: management 4). Every request is answered. */
#ifndef KILN_BRICKS_BRICK_OPS_H
#define KILN_BRICKS_BRICK_OPS_H

#include <stddef.h>
#include <stdint.h>

struct dict;
struct volfile;

struct brick_ops_hooks {
    /* Changes the volfile of an ATTACH before a brick is made of it. 0 or -errno with *error. */
    int (*prepare)(struct volfile *v, char *error, size_t error_size);
    /* The last brick was terminated: the process shall end. From a worker. */
    void (*none_left)(void);
};

/* Listens on `path`; a socket there without a listening process is replaced. 0 or -errno: -EADDRINUSE,
 * another process listens. */
int brick_ops_listen(const char *path, const struct brick_ops_hooks *hooks);
/* Upgrades (upgrade.h): glusterd's connections outlive the program. Main thread. */
struct parcel;
void brick_ops_save(struct parcel *to);
void brick_ops_restore(struct parcel *from);
/* No more requests. Connections end with transport_close_all(). The socket's file stays while the process may
 * still hold a brick: glusterd would take a process without the file for unreachable, for good (management
 * 5.6). */
void brick_ops_stop(void);
/* After that, when the bricks have gone: removes the file, too. Before workers_stop(). */
void brick_ops_free(void);

/* status.c: the answer to STATUS in `out`; the list of calls contains the asking call, too. 0, -errno with
 * *why, a static text. In a read section. */
struct graph;
struct status_asker {
    const struct caller *caller;
    uint32_t unique; /* the request's number */
};
int status_answer(struct graph *g, int64_t cmd, const struct status_asker *who, struct dict *out,
                  const char **why);
/* ... a peer's address as text, "192.0.2.1:1023". Any thread. */
struct sockaddr_storage;
void status_peer_text(const struct sockaddr_storage *peer, char *text, size_t size);

#endif
