/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* saved: the clients of a brick outlive the program (server.h).
 *
 *   a brick's parcel   storage's state (xlator_type.save)
 *                      clients, each with the open files
 *                      the other layers' state of clients, each by the name of its layer
 *                      logins, each with the connection; calls that waited for locks come before the bytes
 *                      that the connection has not read yet, so the new program receives them once more
 *
 * The new program reads the parcel in this order: a client's files are open and the locks granted before the
 * connections are read. The death of the process between the two programs is a crash of the brick: clients
 * connect again, open files and ask for locks anew, as after any crash. */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "base/read-section.h"
#include "graph/saved-brick.h"
#include "log/log.h"
#include "rpc/transport/saved.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"
#include "xlators/protocol/server/server-internal.h"

#define RECORD_LAST 0x80000000u

/* ---- saving ---------------------------------------------------------------------------------- */

/* A parked call as a record with its mark. */
struct kept_call {
    const struct conn *conn;
    char *bytes;
    size_t count;
};

struct server_saver {
    struct brick_saver base;
    struct kept_call *kept;
    unsigned kept_count, kept_room;
};

static int
encode_kept(const struct rpc_request *req, struct kept_call *out)
{
    const struct call_stack *stk = &req->stk;
    char cred[RPC_AUTH_BYTES_MAX];
    int cred_bytes = cred_encode(CRED_GLUSTERFS_V3, &stk->caller, cred, sizeof cred);
    struct xdr x;

    if (cred_bytes < 0)
        return cred_bytes;
    const struct rpc_call_head head = {.xid = req->xid,
                                       .program = FOP_PROGRAM,
                                       .version = FOP_PROGRAM_VERSION,
                                       .procedure = (uint32_t)stk->call.fop,
                                       .cred_flavor = CRED_GLUSTERFS_V3,
                                       .cred_bytes = (uint32_t)cred_bytes,
                                       .cred = cred};
    size_t bytes = rpc_call_head_size((size_t)cred_bytes) + fop_call_size(stk->call.fop, &stk->call);
    uint32_t mark = __builtin_bswap32((uint32_t)bytes | RECORD_LAST);

    *out = (struct kept_call){req->conn, malloc(sizeof mark + bytes), sizeof mark + bytes};
    if (!out->bytes)
        return -ENOMEM;
    memcpy(out->bytes, &mark, sizeof mark);
    xdr_init(&x, out->bytes + sizeof mark, bytes, NULL);
    int err = rpc_encode_call_head(&x, &head);
    if (!err)
        err = fop_encode_call(stk->call.fop, &x, &stk->call);
    if (err)
        free(out->bytes);
    return err;
}

static int
keep_parked_call(struct brick_saver *base, const struct call_stack *stk)
{
    struct server_saver *s = caa_container_of(base, struct server_saver, base);

    if (stk->done != server_fop_done) /* a call of the daemon itself */
        return 0;
    if (s->kept_count == s->kept_room) {
        unsigned room = s->kept_room * 2 + 16;
        struct kept_call *kept = reallocarray(s->kept, room, sizeof *kept);

        if (!kept)
            return -ENOMEM;
        s->kept = kept;
        s->kept_room = room;
    }
    int err = encode_kept(rpc_request_of((struct call_stack *)stk), &s->kept[s->kept_count]);

    s->kept_count += !err;
    return err;
}

static void
save_fd(const struct fd *fd, uint32_t number, void *arg)
{
    struct parcel *to = arg;

    parcel_put_u32(to, 1);
    parcel_put_u32(to, number);
    parcel_put_bytes(to, &fd->inode->gfid, sizeof fd->inode->gfid);
    parcel_put_u32(to, fd->flags);
    parcel_put_u32(to, (uint32_t)fd->pid);
    parcel_put_u32(to, fd->is_dir);
}

static void
save_client(struct brick_client *c, struct parcel *to)
{
    uint32_t capacity, first_free;

    parcel_put_u32(to, 1);
    parcel_put_u64(to, c->id);
    parcel_put_text(to, c->uid);
    parcel_put_text(to, c->process_name);
    parcel_put_text(to, c->version);
    parcel_put_u32(to, (uint32_t)c->opversion);
    parcel_put_u32(to, c->is_trusted);
    parcel_put_bytes(to, &c->subdir_gfid, sizeof c->subdir_gfid);
    parcel_put_bytes(to, c->cred, c->cred_bytes);
    fd_table_each(&c->fds, save_fd, to, &capacity, &first_free);
    parcel_put_u32(to, 0);
}

/* Storage, or the layers above it. */
static int
save_layers(struct graph *g, struct server_saver *s, bool is_storage, struct parcel *to)
{
    int err = 0;

    for (unsigned l = 0; l < g->layer_count && !err; l++) {
        struct xlator *xl = &g->layers[l];
        struct parcel own = {0};

        if (!xl->type->save || xl->type->traits & LAYER_NOT_BUILT || is_storage != (xl->child_count == 0))
            continue;
        s->base.to = &own;
        err = xl->type->save(xl, &s->base);
        parcel_put_text(to, xl->type->name);
        parcel_put_bytes(to, own.bytes, own.used);
        to->is_broken |= own.is_broken;
        parcel_free(&own);
    }
    parcel_put_text(to, NULL);
    return err;
}

struct save_logins {
    const struct server_saver *saver;
    struct parcel *to;
};

static void
save_login(struct conn *c, const struct brick_client *client, const struct session_login *login, void *arg)
{
    const struct save_logins *s = arg;
    struct parcel calls = {0};

    if (!client || !conn_can_be_saved(c))
        return;
    for (unsigned i = 0; i < s->saver->kept_count; i++) {
        const struct kept_call *k = &s->saver->kept[i];

        if (k->conn == c)
            parcel_put_raw(&calls, k->bytes, k->count);
    }
    parcel_put_u32(s->to, 1);
    parcel_put_u64(s->to, client->id);
    parcel_put_text(s->to, login->username);
    parcel_put_text(s->to, login->password);
    parcel_put_text(s->to, login->subdir);
    conn_save(c, calls.bytes, calls.used, s->to);
    s->to->is_broken |= calls.is_broken;
    parcel_free(&calls);
}

int
server_save_brick(struct graph *g, struct parcel *to)
{
    struct server_saver saver = {.base.keep_call = keep_parked_call};
    struct brick_client *c;

    if (!server_is_top(g))
        return 0;
    int err = save_layers(g, &saver, true, to);
    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link)
        save_client(c, to);
    pthread_mutex_unlock(&g->clients_lock);
    parcel_put_u32(to, 0);
    if (!err)
        err = save_layers(g, &saver, false, to);
    session_each_login(g, save_login, &(struct save_logins){&saver, to});
    parcel_put_u32(to, 0);
    for (unsigned i = 0; i < saver.kept_count; i++)
        free(saver.kept[i].bytes);
    free(saver.kept);
    return err ? err : to->is_broken ? -ENOMEM : 0;
}

/* ---- calls of the restoring thread ----------------------------------------------------------- */

static void
answered(struct call_stack *stk)
{
    sem_post(stk->owner);
}

/* A call inside the brick, for which this thread waits. NULL: no memory. */
static struct call_stack *
restoring_call(sem_t *is_answered, enum fop fop, const struct gfid *gfid)
{
    struct call_stack *stk = call_stack_new(answered, is_answered);

    if (stk) {
        stk->caller.pid = PID_INTERNAL;
        stk->call.fop = fop;
        stk->call.gfid = *gfid;
    }
    return stk;
}

static void
wind_and_wait(struct graph *g, struct call_stack *stk)
{
    read_section_begin();
    call_stack_wind(stk, g->brick);
    read_section_end();
    while (sem_wait(stk->owner) && errno == EINTR)
        ;
}

static struct inode *
find_inode(struct graph *g, const struct gfid *gfid)
{
    struct inode *inode = inode_find(g->inodes, gfid);
    sem_t is_answered;

    if (inode || sem_init(&is_answered, 0, 0))
        return inode;
    struct call_stack *stk = restoring_call(&is_answered, FOP_lookup, gfid);
    if (stk) {
        wind_and_wait(g, stk);
        if (stk->reply.op_ret >= 0 && gfid_equal(&stk->reply.stat.gfid, gfid))
            inode = inode_link(g->inodes, NULL, NULL, &stk->reply.stat);
        call_stack_free(stk);
    }
    sem_destroy(&is_answered);
    return inode;
}

/* Opens the file with the client's flags; the file exists and is not cut. A reference, or NULL with *err. */
static struct fd *
open_again(struct brick_client *client, const struct gfid *gfid, uint32_t flags, bool is_dir, int *err)
{
    struct inode *inode = find_inode(client->graph, gfid);
    struct fd *fd = NULL;
    sem_t is_answered;

    *err = -ENOENT;
    if (!inode)
        return NULL;
    *err = sem_init(&is_answered, 0, 0) ? -errno : 0;
    struct call_stack *stk =
        *err ? NULL : restoring_call(&is_answered, is_dir ? FOP_opendir : FOP_open, gfid);
    if (stk) {
        stk->client = brick_client_ref(client);
        stk->call.loc.inode = inode_ref(inode);
        stk->call.flags = flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC | O_NOFOLLOW);
        wind_and_wait(client->graph, stk);
        if (stk->reply.op_ret >= 0 && stk->reply.fd)
            fd = fd_ref(stk->reply.fd);
        *err = fd ? 0 : stk->reply.op_errno ? -stk->reply.op_errno : -EIO;
        call_stack_free(stk);
    } else if (!*err) {
        *err = -ENOMEM;
    }
    sem_destroy(&is_answered);
    inode_unref(inode);
    return fd;
}

/* ---- restoring ------------------------------------------------------------------------------- */

struct restored_client {
    uint64_t id; /* in the old program */
    struct brick_client *client; /* counts a connection, until a login takes that over; NULL: not restored */
    struct brick_client_key key;
    struct brick_client_facts facts;
    bool is_flawed, is_logged_in;
};

struct server_restorer {
    struct brick_restorer base;
    struct graph *graph;
    struct restored_client *clients;
    unsigned count, room;
    struct server_restored *sum;
};

static struct restored_client *
client_by_id(struct server_restorer *r, uint64_t id)
{
    for (unsigned i = 0; i < r->count; i++)
        if (r->clients[i].id == id)
            return &r->clients[i];
    return NULL;
}

static struct brick_client *
restored_client(struct brick_restorer *base, uint64_t id)
{
    struct restored_client *c = client_by_id(caa_container_of(base, struct server_restorer, base), id);

    return c ? c->client : NULL;
}

static struct inode *
restored_inode(struct brick_restorer *base, const struct gfid *gfid)
{
    return find_inode(caa_container_of(base, struct server_restorer, base)->graph, gfid);
}

static void
restore_fd(struct server_restorer *r, struct restored_client *c)
{
    struct parcel *from = r->base.from;
    uint32_t number = parcel_get_u32(from);
    struct gfid gfid;
    int err = 0;

    parcel_get_exactly(from, &gfid, sizeof gfid);
    uint32_t flags = parcel_get_u32(from);
    int32_t pid = (int32_t)parcel_get_u32(from);
    bool is_dir = parcel_get_u32(from);

    if (from->is_broken || !c->client)
        return;
    struct fd *fd = open_again(c->client, &gfid, flags, is_dir, &err);
    if (fd) {
        fd->pid = pid;
        err = fd_table_put(&c->client->fds, fd, number);
    }
    if (!err) {
        r->sum->files++;
        return;
    }
    fd_unref(fd);
    if (is_dir) { /* a removed folder, without entries */
        log_event(LOG_WARNING, r->graph->top, "restore-folder",
                  "%s: a folder that %s had open could not be opened again: %s", GFID(&gfid), c->key.uid,
                  strerror(-err));
        return;
    }
    c->is_flawed = true;
    log_event(LOG_ERROR, r->graph->top, "restore-file", "%s: a file of %s could not be opened again: %s",
              GFID(&gfid), c->key.uid, strerror(-err));
}

static struct brick_client *
connect_restored(struct graph *g, const struct restored_client *c)
{
    struct brick_client *client = graph_pin(g) ? brick_client_connect(g, &c->key, &c->facts) : NULL;

    if (!client)
        graph_unpin(g);
    return client;
}

static bool
restore_client(struct server_restorer *r)
{
    struct parcel *from = r->base.from;
    struct restored_client *c;
    size_t cred_bytes;

    if (r->count == r->room) {
        unsigned room = r->room * 2 + 16;
        struct restored_client *all = reallocarray(r->clients, room, sizeof *all);

        if (!all)
            return false;
        r->clients = all;
        r->room = room;
    }
    c = &r->clients[r->count];
    *c = (struct restored_client){.id = parcel_get_u64(from), .key.uid = parcel_get_text(from)};
    c->facts.process_name = parcel_get_text(from);
    c->facts.version = parcel_get_text(from);
    c->facts.opversion = (int)parcel_get_u32(from);
    c->facts.is_trusted = parcel_get_u32(from);
    parcel_get_exactly(from, &c->facts.subdir_gfid, sizeof c->facts.subdir_gfid);
    c->key.cred = parcel_get_bytes(from, &cred_bytes);
    c->key.cred_bytes = (uint32_t)cred_bytes;
    if (from->is_broken || !c->key.uid || !c->facts.process_name || !c->facts.version)
        return false;
    c->client = connect_restored(r->graph, c);
    r->count++;
    while (parcel_get_u32(from))
        restore_fd(r, c);
    return !from->is_broken;
}

static void
restore_layer(struct server_restorer *r, const char *name, struct parcel *own)
{
    int err = -ENOENT;

    for (unsigned l = 0; l < r->graph->layer_count; l++) {
        struct xlator *xl = &r->graph->layers[l];

        if (strcmp(xl->type->name, name) != 0 || !xl->type->restore)
            continue;
        struct parcel *whole = r->base.from;

        r->base.from = own;
        err = xl->type->restore(xl, &r->base);
        r->base.from = whole;
        break;
    }
    if (!err)
        return;
    log_event(LOG_ERROR, r->graph->top, "restore-layer", "%s: state of clients could not be restored: %s",
              name, strerror(-err));
    for (unsigned i = 0; i < r->count; i++)
        r->clients[i].is_flawed = true;
}

static void
restore_layers(struct server_restorer *r)
{
    struct parcel *from = r->base.from;
    const char *name;
    size_t count;

    while ((name = parcel_get_text(from))) {
        struct parcel own = {.bytes = (char *)(uintptr_t)parcel_get_bytes(from, &count)};

        own.used = own.room = count;
        restore_layer(r, name, &own);
    }
}

/* The client for a further login; the caller owns the connection that is counted. */
static struct brick_client *
client_for_login(struct server_restorer *r, struct restored_client *c)
{
    if (!c || !c->client || c->is_flawed)
        return NULL;
    if (!c->is_logged_in) {
        c->is_logged_in = true;
        return c->client;
    }
    struct brick_client *client = connect_restored(r->graph, c);

    if (client && client != c->client) { /* a client without a credential has one connection */
        session_logout(client);
        client = NULL;
    }
    return client;
}

static void
restore_login(struct server_restorer *r)
{
    struct parcel *from = r->base.from;
    uint64_t id = parcel_get_u64(from);
    struct session_login login = {.username = parcel_get_text(from)};

    login.password = parcel_get_text(from);
    login.subdir = parcel_get_text(from);
    struct conn *c = server_restore_conn(from);
    if (!c)
        return;
    struct brick_client *client = client_for_login(r, client_by_id(r, id));
    const struct server_conf *conf = xlator_conf(r->graph->top);

    if (client && session_begin(c)) {
        session_logout(client);
        client = NULL;
    }
    if (!client || session_attach(c, client, &login)) {
        conn_close(c);
        conn_resume(c);
        conn_unref(c);
        return;
    }
    conn_set_calls_max(c, (unsigned)conf->calls_max);
    conn_set_trusted(c);
    r->sum->connections++;
    conn_start_restored(c);
    conn_unref(c);
}

/* A client without a connection has gone, and so have the files and locks. */
static void
drop_unconnected(struct server_restorer *r)
{
    for (unsigned i = 0; i < r->count; i++) {
        struct restored_client *c = &r->clients[i];

        if (c->is_logged_in)
            continue;
        r->sum->lost_clients++;
        log_event(LOG_WARNING, r->graph->top, "restore-client", "%s has to connect again", c->key.uid);
        if (c->client)
            session_logout(c->client);
    }
}

void
server_restore_brick(struct graph *g, struct parcel *from, struct server_restored *sum)
{
    struct server_restorer r = {
        .base = {.from = from, .client = restored_client, .inode = restored_inode}, .graph = g, .sum = sum};

    if (!server_is_top(g) || !from->used)
        return;
    restore_layers(&r);
    while (parcel_get_u32(from) && restore_client(&r))
        ;
    restore_layers(&r);
    read_section_begin();
    while (parcel_get_u32(from))
        restore_login(&r);
    read_section_end();
    drop_unconnected(&r);
    if (from->is_broken)
        log_event(LOG_ERROR, g->top, "restore-cut", "the state of an earlier program ends too early");
    free(r.clients);
}
