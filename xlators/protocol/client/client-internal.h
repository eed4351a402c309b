/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client-internal: the insides of protocol/client.
 *
 *   client.c      the layer: options, the brick's coming and going, calls and replies
 *   held-locks.c  the locks that it has granted
 *   remote-fd.c   the numbers that the brick has given to our fds, and fds that are opened anew after a loss
 *
 * Threads: any number of calls at a time, all inside an RCU read section (workers and timers have one around
 * each handler). `peer` is used inside such a section only: stop() takes it away, waits for the sections
 * there are, and closes it then.
 */
#ifndef KILN_PROTOCOL_CLIENT_INTERNAL_H
#define KILN_PROTOCOL_CLIENT_INTERNAL_H

#include <pthread.h>

#include "fs/fd.h"
#include "graph/graph.h"
#include "rpc/client/brick-peer.h"
#include "stack/xlator.h"

struct client_conf {
    char *host, *brick, *username, *password, *subdir;
    struct gfid volume_id; /* null: the brick says it */
    int64_t port, ping_timeout_s, call_timeout_s;
    int transport;
    bool sends_gids, strict_locks, strips_o_direct, any_port, local_socket;
};

enum { HELD_BUCKETS = 32 };

struct client {
    struct xlator *xl;
    _Atomic(struct brick_peer *) peer; /* NULL: not started, or stopped; see above */
    atomic_bool is_serving;            /* logged in, and the fds are open again: fops go out */
    uint16_t owner;                    /* for pools */

    pthread_mutex_t lock;      /* guards what follows. A leaf: nothing is called with it held */
    pthread_cond_t changed;    /* of is_gone */
    bool is_gone;              /* the peer is no more */
    bool is_up;                /* logged in */
    bool has_told;             /* ... `told` */
    enum child_event told;     /* the last event that the layer above has heard of */
    unsigned reopening;        /* fds whose OPEN has no answer yet, and one for who sends them */
    unsigned fd_count;         /* of `fds` */
    struct cds_list_head fds;  /* of struct remote_fd */
    struct cds_list_head held[HELD_BUCKETS]; /* held-locks.c, by gfid */
};

/* What the brick knows an fd of ours as. One reference is the fd's, one that of an OPEN that is under way to
 * open it anew.
 *
 * `number` is good for one connection: it is read, and the call that carries it is sent, between
 * rpc_client_hold() and rpc_client_let_go(). It is written under the client's lock. */
struct remote_fd {
    struct cds_list_head link; /* in the client's `fds` */
    struct client *client;
    struct refcount refs;
    struct gfid gfid;
    uint32_t flags; /* to open it anew with */
    bool is_dir;
    bool is_released; /* the fd is gone; under the client's lock */
    atomic_bool has_locks;
    _Atomic int64_t number; /* REMOTE_FD_DEAD: the brick does not know it */
};
#define REMOTE_FD_DEAD (-1)

int remote_fd_pool_init(void);

/* The fd of an OPEN, OPENDIR or CREATE that has been answered, for stk->reply.fd: the call's own if it has
 * one, else a new one. 0 or -ENOMEM: the brick's number is given back. */
int remote_fd_make(struct client *c, struct call_stack *stk);
/* The number to send for `fd`. 0 or -errno. Between rpc_client_hold() and rpc_client_let_go(). */
int remote_fd_number(struct client *c, enum fop fop, struct fd *fd, int64_t *out);
/* The layer's context on an fd that is no more. */
void remote_fd_release(struct client *c, struct remote_fd *r);
/* All numbers mean nothing any more. */
void remote_fds_lost(struct client *c);
/* Opens all of them anew; ends in client_reopened(). */
void remote_fds_reopen(struct client *c, struct rpc_client *rpc);

void remote_fd_unref(struct remote_fd *r);

/* held-locks.c. Of a client that is being made. 0 or -ENOMEM. */
int held_locks_init(struct client *c);
/* The brick has granted what the LK of `stk`, through `r`, has asked for: a lock, or less of them. */
void held_locks_note(struct client *c, const struct call_stack *stk, struct remote_fd *r);
/* FLUSH has been done for this owner. */
void held_locks_flushed(struct client *c, const struct gfid *gfid, const struct lk_owner *owner);
/* With the client's lock held: the fd is no more; the connection is no more. */
void held_locks_released_locked(struct client *c, const struct remote_fd *r);
void held_locks_lost_locked(struct client *c);
/* The fd is open again. Ends in client_reopened() for each lock. */
void held_locks_take_again(struct client *c, struct rpc_client *rpc, struct remote_fd *r);

/* client.c: one OPEN less to wait for; the last one lets fops through. */
void client_reopened(struct client *c);

#endif
