/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* client-internal: the insides of protocol/client.
 *
 *   client.c        the layer: options, calls and replies
 *   connection.c    start and stop, the brick's coming and going, its callbacks
 *   held-locks.c    the locks that it has granted
 *   late-release.c  RELEASEs that wait for a message to the brick
 *   remote-fd.c     the numbers that the brick has given to our fds, and fds opened anew after a loss
 *   saved.c         all of this in the hands of a newer program of the same process
 *
 * Threads: any number of calls at a time, all inside an RCU read section (workers and timers have one around
 * each handler). `peer` is used inside such a section only: stop() takes it away, waits for the sections
 * there are, and closes it then.
 */
#ifndef KILN_PROTOCOL_CLIENT_INTERNAL_H
#define KILN_PROTOCOL_CLIENT_INTERNAL_H

#include <pthread.h>

#include "event/timer.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "rpc/client/brick-peer.h"
#include "stack/xlator.h"
#include "rpc/transport/tls-options.h"

struct client_conf {
    char *host, *brick, *username, *password, *subdir, *process_name;
    struct gfid volume_id; /* null: the brick sends it */
    int64_t port, ping_timeout_s, call_timeout_s, release_wait_ms;
    int transport;
    bool sends_gids, strict_locks, strips_o_direct, any_port, local_socket, inside, compound;
    struct tls_options tls;
    bool checks_host; /* the brick's certificate must have the name or address `host` */
};

enum { HELD_BUCKETS = 32, RELEASES_LATE_MAX = 6 };

/* The brick's number of an fd that is closed here. */
struct late_release {
    struct gfid gfid;
    int64_t number;
    bool is_dir;
};

struct client {
    struct xlator *xl;
    struct tls_config *tls;            /* NULL: connections are plain */
    _Atomic(struct brick_peer *) peer; /* NULL: not started, or stopped; see above */
    atomic_bool is_serving;            /* logged in, and the fds are open again: fops are sent */
    uint16_t owner;                    /* for pools */
    /* of an earlier program of this process, until all files are open again; NULL: none. Set and dropped
     * while no call is under way */
    struct saved_client *saved;

    pthread_mutex_t lock;      /* guards the fields below; a leaf lock: nothing is called with it held */
    pthread_cond_t changed;    /* of is_gone */
    struct gfid volume_id;     /* of the last login; null: none */
    bool is_gone;              /* the peer has ended */
    bool is_up;                /* logged in */
    bool has_told;             /* the parent has had an event: `told` */
    enum child_event told;     /* the last event sent to the parent */
    unsigned reopening;        /* number of OPENs without a reply, plus 1 while they are being sent */
    unsigned fd_count;         /* length of `fds` */
    struct cds_list_head fds;  /* struct remote_fd */
    struct cds_list_head held[HELD_BUCKETS]; /* held-locks.c, by gfid */
    /* late-release.c: RELEASEs that wait, of the present connection. `batch`: in a record of their own, until
     * batch_count is 0; read by the thread that has set batch_count, and by the reply */
    unsigned late_count, batch_count;
    struct late_release late[RELEASES_LATE_MAX], batch[RELEASES_LATE_MAX];
    struct timer late_timer;
};

/* The brick's number of one of our fds. The fd has a reference; an OPEN in progress, which opens the fd
 * again, has another.
 *
 * `number` is valid for one connection: read it, and send the call that carries it, between
 * rpc_client_hold() and rpc_client_let_go(). It is written under the client's lock. */
struct remote_fd {
    struct cds_list_head link; /* in the client's `fds` */
    struct client *client;
    struct refcount refs;
    struct gfid gfid;
    uint32_t flags; /* for opening it again */
    bool is_dir;
    bool is_released; /* the fd is released; under the client's lock */
    atomic_bool has_locks;
    _Atomic int64_t number; /* REMOTE_FD_DEAD: the brick has no such fd */
};
#define REMOTE_FD_DEAD (-1)

int remote_fd_pool_init(void);

/* Makes the fd of an answered OPEN, OPENDIR or CREATE in stk->reply.fd: the call's own fd if there is one,
 * else a new one. Returns 0 or -ENOMEM: the brick's number is given back. */
int remote_fd_make(struct client *c, struct call_stack *stk);
/* Returns in *out the number to send for `fd`. Returns 0 or -errno. Call between rpc_client_hold() and
 * rpc_client_let_go(). */
int remote_fd_number(struct client *c, enum fop fop, struct fd *fd, int64_t *out);
/* For the last call about the fd: takes the fd's number out for a RELEASE behind that call. Returns 1; 0:
 * there is no number. Call between rpc_client_hold() and rpc_client_let_go(). */
unsigned remote_fd_close(struct client *c, struct fd *fd, struct late_release *out);
/* Drops the context of a released fd. */
void remote_fd_release(struct client *c, struct remote_fd *r);
/* Invalidates all numbers after a lost connection. */
void remote_fds_lost(struct client *c);
/* Opens all fds again; ends in client_reopened(). */
void remote_fds_reopen(struct client *c, struct rpc_client *rpc);

void remote_fd_unref(struct remote_fd *r);

/* late-release.c. Prepares the timer of a new client; client_stop() stops the timer. */
void late_releases_init(struct client *c);
/* With the client's lock held, where the number was read: lets the RELEASE wait for another message. Returns
 * the number of RELEASEs that wait, for late_release_waits(); 0: no room, the caller sends the RELEASE. */
unsigned late_release_put_locked(struct client *c, const struct late_release *l);
/* The next four: without the lock, between rpc_client_hold() and rpc_client_let_go(). */
void late_release_waits(struct client *c, struct rpc_client *rpc, unsigned count);
/* Takes up to `most` waiting RELEASEs out. Returns their number; the caller sends these. */
unsigned late_releases_take(struct client *c, unsigned most, struct late_release out[RELEASES_LATE_MAX]);
/* Sends a RELEASE in a record of its own; logs if there is no memory. */
void late_release_send(struct rpc_client *rpc, const struct late_release *l);
/* Processes the replies of RELEASEs that were in a sequence. A RELEASE that the brick has not run is sent
 * again. */
void late_releases_answered(struct rpc_client *rpc, const struct late_release *list, unsigned count,
                            const struct fop_reply *replies);
void late_release_call(const struct late_release *l, struct fop_call *call);
/* Sends all waiting RELEASEs. Call in a read section. */
void client_releases_send(struct client *c);

/* held-locks.c. Initializes the lists of a new client. Returns 0 or -ENOMEM. */
int held_locks_init(struct client *c);
/* Notes a granted LK of `stk`, through `r`: a lock, or an unlock. */
void held_locks_note(struct client *c, const struct call_stack *stk, struct remote_fd *r);
/* Drops the owner's locks after FLUSH. */
void held_locks_flushed(struct client *c, const struct gfid *gfid, const struct lk_owner *owner);
/* With the client's lock held: the fd was released; the connection was lost. */
void held_locks_released_locked(struct client *c, const struct remote_fd *r);
void held_locks_lost_locked(struct client *c);
/* Takes the locks of a reopened fd again. Ends in client_reopened() for each lock. */
void held_locks_take_again(struct client *c, struct rpc_client *rpc, struct remote_fd *r);

/* For saved.c: writes the locks that were taken through the fd, as one piece. */
void held_locks_save(struct client *c, const struct remote_fd *r, struct parcel *to);
/* Notes such locks. Unless `is_held`, held_locks_take_again() will request them. */
void held_locks_restore(struct client *c, struct remote_fd *r, const void *bytes, size_t size, bool is_held);

/* saved.c: takes over the connection of an earlier program, in place of brick_peer_start(). The program calls
 * rpc_client_go_on() afterwards. False: there is none. */
bool client_start_saved(struct client *c, struct brick_peer *peer);
void client_saved_free(struct client *c);
/* Answers a call about a saved file. XL_PASS: the call goes to the brick. */
xl_verdict client_answer_saved(struct client *c, struct call_stack *stk);
/* The brick has opened a file: restores the state that was saved with the file's fd. */
void client_opened_again(struct client *c, struct call_stack *stk);

/* connection.c: counts an OPEN as done; after the last one fops are sent. */
void client_reopened(struct client *c);
/* Returns a new configuration by the options. NULL: connections are plain, or there is no memory. */
struct tls_config *client_tls_of(const struct client_conf *conf);
/* Functions of the layer's type. client_reconfigured() sets the timeouts and TLS of the connection; the other
 * options are read at each call. */
int client_start(struct xlator *xl);
void client_reconfigured(struct xlator *xl, const void *old);
void client_stop(struct xlator *xl);

#endif
