/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* session: a connection that has tried to log in, the client it is logged in as, and the cleanup when it
 * ends.
 *
 * The connection's user pointer leads to its session. Its requests run on several workers at once, and a
 * login that had to wait for the disk may continue after the connection is gone. So the pointer and its
 * target are changed under a mutex, one of many, chosen by the connection's address.
 *
 * A request reads both without the mutex, because it runs in a record handler: the session stays until no
 * handler runs. If another login replaces the session's client, the old client keeps that connection's
 * reference until no handler runs that may have read it (call_rcu).
 */
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "log/dump.h"
#include "log/log.h"
#include "xlators/protocol/server/server-internal.h"

struct session {
    struct conn *conn;                  /* a reference */
    struct cds_list_head link;          /* server->sessions, under clients_lock */
    /* A reference. Written under stripe and clients_lock; read under either, or by a handler of the
     * connection. */
    _Atomic(struct brick_client *) client;
    char *username, *password, *subdir; /* as given at login; under clients_lock */
    bool is_closing;                    /* conn_close() is being called; under clients_lock */
};

/* Texts of one session's login, copied before any lock is taken. */
struct shown {
    char *username, *password, *subdir;
};

/* A client whose connection has logged in as another one, while requests run that may have read the old
 * client.
 */
struct departed {
    struct rcu_head rcu;
    struct worker_job job;
    struct brick_client *client; /* a reference */
};

#define STRIPES 256
static struct stripe {
    pthread_mutex_t lock;
} __attribute__((aligned(64))) stripes[STRIPES] = {[0 ... STRIPES - 1] = {PTHREAD_MUTEX_INITIALIZER}};

static pthread_mutex_t *
stripe_of(const struct conn *c)
{
    return &stripes[((uintptr_t)c * 0x9e3779b97f4a7c15ull) >> 56].lock;
}

static void
shown_free(struct shown *s)
{
    free(s->username);
    free(s->password);
    free(s->subdir);
}

int
session_begin(struct conn *c)
{
    struct session *fresh = calloc(1, sizeof *fresh);

    if (!fresh)
        return -ENOMEM;
    fresh->conn = c;
    CDS_INIT_LIST_HEAD(&fresh->link);
    pthread_mutex_lock(stripe_of(c));
    if (!conn_user(c)) {
        conn_ref(c);
        conn_set_user(c, fresh);
        fresh = NULL;
    }
    pthread_mutex_unlock(stripe_of(c));
    free(fresh);
    return 0;
}

struct brick_client *
session_client(struct conn *c)
{
    struct session *s = conn_user(c);
    struct brick_client *client = s ? atomic_load_explicit(&s->client, memory_order_acquire) : NULL;

    return client ? brick_client_ref(client) : NULL;
}

/* Runs in a worker, because dropping the last reference makes layers look at their options. */
static void
departed_job(struct worker_job *job)
{
    struct departed *d = caa_container_of(job, struct departed, job);

    brick_client_unref(d->client);
    free(d);
}

static void
departed_after_grace(struct rcu_head *rcu)
{
    struct departed *d = caa_container_of(rcu, struct departed, rcu);

    d->job.run = departed_job;
    worker_post_any(&d->job);
}

/* Drops the old client's reference after the grace period. `client` may be NULL: there is none. */
static void
depart(struct departed *d, struct brick_client *client)
{
    if (!client) {
        free(d);
        return;
    }
    d->client = client;
    call_rcu(&d->rcu, departed_after_grace);
}

/* ---- logging in and out ---------------------------------------------------------------------- */

/* Finds another connection of the client, for callbacks. Under the brick's clients_lock. */
static struct conn *
other_conn_locked(struct server *server, const struct brick_client *client)
{
    struct session *s;

    cds_list_for_each_entry(s, &server->sessions, link)
        if (s->client == client)
            return s->conn;
    return NULL;
}

/* Removes the session from its brick. Returns its client, NULL if it had none. The caller overwrites
 * s->client, so that no request finds the session without a client. Under the stripe. */
static struct brick_client *
session_leave_locked(struct session *s, struct shown *old)
{
    struct brick_client *client = s->client;

    if (!client)
        return NULL;
    pthread_mutex_lock(&client->graph->clients_lock);
    cds_list_del_init(&s->link);
    server_of(client->graph)->session_count--;
    if (client->conn == s->conn)
        client->conn = other_conn_locked(server_of(client->graph), client);
    *old = (struct shown){s->username, s->password, s->subdir};
    s->username = s->password = s->subdir = NULL;
    pthread_mutex_unlock(&client->graph->clients_lock);
    return client;
}

/* Under the stripe. */
static int
session_join_locked(struct session *s, struct brick_client *client, struct shown *fresh)
{
    struct server *server = server_of(client->graph);
    int err = 0;

    pthread_mutex_lock(&client->graph->clients_lock);
    if (server->is_stopped) {
        err = -EAGAIN;
    } else if (server->session_count >= transport_connections_left()) {
        err = -EUSERS;
    } else {
        cds_list_add_tail(&s->link, &server->sessions);
        server->session_count++;
        if (!client->conn)
            client->conn = s->conn;
        s->username = fresh->username;
        s->password = fresh->password;
        s->subdir = fresh->subdir;
        *fresh = (struct shown){0};
        s->client = client;
    }
    pthread_mutex_unlock(&client->graph->clients_lock);
    return err;
}

static bool
dup_text(const char *text, char **out)
{
    *out = text ? strdup(text) : NULL;
    return !text || *out;
}

static void end_connection(struct brick_client *client);

int
session_attach(struct conn *c, struct brick_client *client, const struct session_login *login)
{
    struct departed *departed = calloc(1, sizeof *departed);
    struct shown fresh = {0}, old = {0};
    struct brick_client *was = NULL;
    int err = 0;

    if (!departed || !dup_text(login->username, &fresh.username) ||
        !dup_text(login->password, &fresh.password) || !dup_text(login->subdir, &fresh.subdir))
        err = -ENOMEM;
    pthread_mutex_lock(stripe_of(c));
    struct session *s = conn_user(c);
    if (!err && !s)
        err = -ENOTCONN;
    if (!err) {
        was = session_leave_locked(s, &old);
        err = session_join_locked(s, client, &fresh);
        if (err)
            s->client = NULL;
    }
    pthread_mutex_unlock(stripe_of(c));

    shown_free(&fresh);
    shown_free(&old);
    if (was)
        end_connection(was);
    depart(departed, was);
    if (err)
        session_logout(client);
    return err;
}

static void
flushed(struct call_stack *stk)
{
    call_stack_free(stk); /* drops the fd's last reference, unless a call still uses the fd */
}

/* Sends FLUSH, then RELEASE, in place of the client. Pid 0, no lock owner (wire 3.5). */
static void
flush_and_close(struct brick_client *client, struct fd *fd)
{
    struct call_stack *stk = fd->is_dir ? NULL : call_stack_new(flushed, NULL);

    if (!stk) { /* a directory, or no memory: closed without a FLUSH */
        fd_unref(fd);
        return;
    }
    stk->client = brick_client_ref(client);
    stk->call.fop = FOP_flush;
    stk->call.fd = fd;
    stk->call.loc.inode = inode_ref(fd->inode);
    stk->call.gfid = fd->inode->gfid;
    call_stack_wind(stk, client->graph->brick);
}

/* The caller keeps its reference. */
static void
end_connection(struct brick_client *client)
{
    if (brick_client_disconnect(client)) {
        struct fd *fd;
        unsigned count = 0;

        brick_client_layers_gone(client);
        for (; (fd = fd_table_take_any(&client->fds)); count++)
            flush_and_close(client, fd);
        log_event(LOG_INFO, client->graph->top, "client-gone", "%s is gone; %u files were open", client->uid,
                  count);
    }
}

void
session_logout(struct brick_client *client)
{
    end_connection(client);
    brick_client_unref(client);
}

/* ---- earlier logins of a client -------------------------------------------------------------- */

/* Splits the uid of a layer's login. All logins of a layer have the same uid except for the number at its end
 * (wire 3.5). Returns the length of the common part; 0: the uid has no number. */
static size_t
split_uid(const char *uid, unsigned long *number)
{
    static const char mark[] = "-RECON_NO:-";
    const char *at = uid, *last = NULL;
    char *end;

    while ((at = strstr(at, mark)))
        last = at++;
    if (!last || last[sizeof mark - 1] < '0' || last[sizeof mark - 1] > '9')
        return 0;
    *number = strtoul(last + sizeof mark - 1, &end, 10);
    return *end ? 0 : (size_t)(last - uid);
}

static bool
is_former(const struct brick_client *was, const struct brick_client *now)
{
    unsigned long before, number;
    size_t len = split_uid(now->uid, &number);

    return len && split_uid(was->uid, &before) == len && strncmp(was->uid, now->uid, len) == 0 &&
           before < number && was->cred_bytes == now->cred_bytes &&
           memcmp(was->cred, now->cred, now->cred_bytes) == 0 && was->is_trusted == now->is_trusted &&
           gfid_equal(&was->subdir_gfid, &now->subdir_gfid);
}

static bool
is_same_host(const struct conn *a, const struct conn *b)
{
    const struct sockaddr_storage *x = conn_peer(a), *y = conn_peer(b);

    if (x->ss_family != y->ss_family)
        return false;
    if (x->ss_family == AF_INET)
        return ((const struct sockaddr_in *)x)->sin_addr.s_addr ==
               ((const struct sockaddr_in *)y)->sin_addr.s_addr;
    return x->ss_family != AF_INET6 || memcmp(&((const struct sockaddr_in6 *)x)->sin6_addr,
                                              &((const struct sockaddr_in6 *)y)->sin6_addr,
                                              sizeof(struct in6_addr)) == 0;
}

/* Returns a reference; NULL: there is none. */
static struct conn *
find_former(struct conn *c, const struct brick_client *now)
{
    struct conn *found = NULL;
    struct session *s;

    pthread_mutex_lock(&now->graph->clients_lock);
    cds_list_for_each_entry(s, &server_of(now->graph)->sessions, link)
    {
        if (is_former(s->client, now) && is_same_host(s->conn, c)) {
            found = conn_ref(s->conn);
            break;
        }
    }
    pthread_mutex_unlock(&now->graph->clients_lock);
    return found;
}

static void
end_former(struct conn *former, const struct brick_client *now, struct departed *departed)
{
    struct brick_client *was = NULL;
    struct shown old = {0};

    pthread_mutex_lock(stripe_of(former));
    struct session *s = conn_user(former);

    if (s && s->client && is_former(s->client, now)) {
        was = session_leave_locked(s, &old);
        s->client = NULL;
    }
    pthread_mutex_unlock(stripe_of(former));
    shown_free(&old);
    if (was) {
        log_event(LOG_INFO, now->graph->top, "client-is-back", "%s has logged in again: %s has ended",
                  now->uid, was->uid);
        end_connection(was);
    }
    depart(departed, was);
    conn_close(former);
}

void
session_end_formers(struct conn *c, const struct brick_client *now)
{
    struct departed *departed;
    struct conn *former;

    while ((former = find_former(c, now)) && (departed = calloc(1, sizeof *departed))) {
        end_former(former, now, departed);
        conn_unref(former);
    }
    if (!former)
        return;
    log_event(LOG_ERROR, now->graph->top, "client-is-back-no-memory", "no memory to end what %s was before",
              now->uid);
    conn_unref(former);
}

void
session_closed(struct conn *c)
{
    struct shown old = {0};

    pthread_mutex_lock(stripe_of(c));
    struct session *s = conn_user(c);
    conn_set_user(c, NULL);
    struct brick_client *client = s ? session_leave_locked(s, &old) : NULL;
    pthread_mutex_unlock(stripe_of(c));
    shown_free(&old);
    if (!s) /* the connection never tried to log in */
        return;
    if (client)
        session_logout(client);
    conn_unref(s->conn);
    free(s);
}

/* ---- all connections of a brick -------------------------------------------------------------- */

void
session_each_login(struct graph *g,
                   void (*fn)(struct conn *c, const struct brick_client *client,
                              const struct session_login *login, void *arg),
                   void *arg)
{
    struct session *s;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(s, &server_of(g)->sessions, link)
        fn(s->conn, s->client, &(struct session_login){s->username, s->password, s->subdir}, arg);
    pthread_mutex_unlock(&g->clients_lock);
}

void
session_each_conn(struct graph *g, void (*fn)(struct conn *c, void *arg), void *arg)
{
    struct server *server = server_of(g);
    struct conn **conns = NULL;
    unsigned n = 0, room = 0;
    struct session *s;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(s, &server->sessions, link)
        room++;
    if (room && (conns = malloc(room * sizeof *conns)))
        cds_list_for_each_entry(s, &server->sessions, link)
            conns[n++] = conn_ref(s->conn);
    pthread_mutex_unlock(&g->clients_lock);
    if (room && !conns)
        log_event(LOG_ERROR, g->top, "sessions-no-memory", "no memory to reach %u connections", room);
    for (unsigned i = 0; i < n; i++) {
        fn(conns[i], arg);
        conn_unref(conns[i]);
    }
    free(conns);
}

/* Returns a connection that was not closed yet, with a reference. Moves it to the end of the list, so the
 * search ends at the first one that was closed. */
static struct conn *
next_to_close(struct graph *g, struct server *server)
{
    struct conn *c = NULL;

    pthread_mutex_lock(&g->clients_lock);
    server->is_stopped = true;
    if (!cds_list_empty(&server->sessions)) {
        struct session *s = cds_list_first_entry(&server->sessions, struct session, link);

        if (!s->is_closing) {
            s->is_closing = true;
            cds_list_del(&s->link);
            cds_list_add_tail(&s->link, &server->sessions);
            c = conn_ref(s->conn);
        }
    }
    pthread_mutex_unlock(&g->clients_lock);
    return c;
}

void
session_close_graph(struct graph *g)
{
    struct conn *c;

    while ((c = next_to_close(g, server_of(g)))) {
        conn_close(c);
        conn_unref(c);
    }
}

/* ---- after a change of auth options ---------------------------------------------------------- */

/* Copy of the session's data that a check needs. */
struct recheck {
    struct conn *conn;
    struct shown shown;
    struct recheck *next;
};

static struct recheck *
collect_logins(struct graph *g)
{
    struct recheck *list = NULL;
    struct session *s;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(s, &server_of(g)->sessions, link)
    {
        struct recheck *r = calloc(1, sizeof *r);

        if (!r || !dup_text(s->username, &r->shown.username) ||
            !dup_text(s->password, &r->shown.password) || !dup_text(s->subdir, &r->shown.subdir)) {
            log_event(LOG_ERROR, g->top, "auth-recheck-no-memory", "no memory to check a connection again");
            if (r)
                shown_free(&r->shown);
            free(r);
            break;
        }
        r->conn = conn_ref(s->conn);
        r->next = list;
        list = r;
    }
    pthread_mutex_unlock(&g->clients_lock);
    return list;
}

void
session_check_auth(struct graph *g)
{
    struct recheck *next;

    for (struct recheck *r = collect_logins(g); r; r = next) {
        const struct session_login login = {r->shown.username, r->shown.password, r->shown.subdir};
        char address[AUTH_PEER_TEXT];
        const char *refusal;
        bool is_trusted;

        next = r->next;
        if (!server_auth(g, r->conn, &login, &is_trusted, &refusal)) {
            auth_peer_text(conn_peer(r->conn), address);
            log_event(LOG_WARNING, g->top, "auth-withdrawn",
                      "%s: a connected client is not accepted any more and was disconnected: %s", address,
                      refusal);
            conn_close(r->conn);
        }
        conn_unref(r->conn);
        shown_free(&r->shown);
        free(r);
    }
}

/* ---- statedump ------------------------------------------------------------------------------- */

static void
dump_clients_locked(struct graph *g, struct dump *d)
{
    struct brick_client *c;
    unsigned n = 0;

    cds_list_for_each_entry(c, &g->clients, link)
    {
        char key[64];

        snprintf(key, sizeof key, "client.%u.uid", n);
        dump_line(d, key, "%s", c->uid);
        snprintf(key, sizeof key, "client.%u", n++);
        dump_line(d, key,
                  "id=%llu process=%s version=%s opversion=%d connections=%u fds=%u trusted=%d subdir=%s",
                  (unsigned long long)c->id, c->process_name, c->version, c->opversion, c->connections,
                  fd_table_count(&c->fds), c->is_trusted,
                  gfid_is_null(&c->subdir_gfid) ? "-" : GFID(&c->subdir_gfid));
    }
    dump_line(d, "clients", "%u", n);
}

/* Writes into memory first, because the file may block. */
void
session_dump(struct graph *g, struct dump *d)
{
    char *text = NULL;
    size_t bytes = 0;
    struct dump memory = {.file = open_memstream(&text, &bytes)};

    if (!memory.file) {
        dump_line(d, "clients", "no memory to list them");
        return;
    }
    pthread_mutex_lock(&g->clients_lock);
    dump_clients_locked(g, &memory);
    pthread_mutex_unlock(&g->clients_lock);
    if (fclose(memory.file) == 0)
        fwrite(text, 1, bytes, d->file);
    free(text);
}
