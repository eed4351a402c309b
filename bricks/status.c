/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The answers to `volume status VOL mem|clients|client-list|inode|fd|callpool` (management 4.6). The CLI
 * stops, without a word, at the first missing key, so every key of that chapter is sent. */
#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "bricks/brick-ops.h"
#include "bricks/bricks.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "mem/mem-malloc.h"
#include "mem/mem-pool.h"
#include "rpc/transport/transport.h"

enum {
    STATUS_MEM = 1,
    STATUS_CLIENTS = 2,
    STATUS_INODE = 4,
    STATUS_FD = 8,
    STATUS_CALLPOOL = 16,
    STATUS_CLIENT_LIST = 128
};
/* entries of an answer; the sizes have the full numbers */
enum { INODES_MAX = 2000, FDS_MAX = 10000, CALLS_MAX = 2000 };

/* Keys are made of numbers; the first error stays. */
struct status_dict {
    struct dict *out;
    int err;
};

/* Every key is added once, so the function does not look for the key among the thousands that are there
 * already. */
static void
append(struct status_dict *t, struct dict_pair pair, const char *format, va_list args)
{
    char key[128];
    int len = vsnprintf(key, sizeof key, format, args);

    assert(len >= 0 && (size_t)len < sizeof key);
    pair.key = arena_dup(t->out->arena, key, (size_t)len);
    pair.key_len = (uint16_t)len;
    if (!t->err && (!pair.key || !dict_append(t->out, &pair)))
        t->err = -ENOMEM;
}

__attribute__((format(printf, 3, 4))) static void
status_put_number(struct status_dict *t, int64_t value, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    append(t, (struct dict_pair){.type = DICT_INT, .v.i = value}, format, args);
    va_end(args);
}

__attribute__((format(printf, 3, 4))) static void
status_put_text(struct status_dict *t, const char *value, const char *format, ...)
{
    uint32_t len = (uint32_t)strlen(value);
    const char *copy = arena_dup(t->out->arena, value, len);
    va_list args;

    if (!copy)
        t->err = -ENOMEM;
    va_start(args, format);
    append(t, (struct dict_pair){.type = DICT_STR, .len = len + 1, .v.bytes = copy}, format, args);
    va_end(args);
}

/* ---- mem ------------------------------------------------------------------------------------- */

/* From a line of the pools' own dump to a key of the CLI. */
static const struct {
    const char *from, *to;
} columns[] = {
    {"pool-name", "name"},         {"active-count", "hotcount"}, {"cached-cold", "coldcount"},
    {"padded-sizeof", "paddedsizeof"}, {"gets", "alloccount"},   {"peak-sampled", "max_alloc"},
    {"system-allocs", "pool-misses"},
};
enum { COLUMNS = sizeof columns / sizeof columns[0] };

struct pools {
    struct status_dict t;
    unsigned owner; /* only pools with objects of this owner; 0: all */
    int count;      /* told */
    bool is_wanted; /* the pool of the coming lines */
    char value[COLUMNS][64];
};

static void
status_put_pool(struct pools *p)
{
    if (!p->is_wanted)
        return;
    status_put_number(&p->t, 0, "pool%d.max-stdalloc", p->count); /* no object bypasses the pools */
    for (unsigned i = 0; i < COLUMNS; i++)
        status_put_text(&p->t, p->value[i], "pool%d.%s", p->count, columns[i].to);
    p->count++;
    p->is_wanted = false;
}

static void
take_pool_line(void *arg, const char *key, const char *value)
{
    struct pools *p = arg;
    unsigned owner;

    if (strcmp(key, "-----") == 0) {
        status_put_pool(p);
        p->is_wanted = p->owner == 0;
    } else if (strcmp(key, "owner") == 0 && sscanf(value, "id %u,", &owner) == 1 && owner == p->owner) {
        p->is_wanted = true;
    }
    for (unsigned i = 0; i < COLUMNS; i++) {
        if (strcmp(key, columns[i].from) == 0)
            snprintf(p->value[i], sizeof p->value[i], "%s", value);
    }
}

/* The figures of the allocator beneath the pools. glibc counts only its own malloc, which is idle where
 * jemalloc replaces it. */
static struct mallinfo2
allocator_figures(void)
{
    struct mallinfo2 m = mallinfo2();
    size_t allocated, mapped;

    if (mem_malloc_look() && mem_malloc_figure("allocated", &allocated) &&
        mem_malloc_figure("mapped", &mapped)) {
        m.arena = mapped;
        m.uordblks = allocated;
        m.fordblks = mapped > allocated ? mapped - allocated : 0;
    }
    return m;
}

/* The pools are the process's, so with several bricks each brick reports only the pools in which it has
 * objects: of 400 keys a brick, glusterd and the CLI cannot join those of 60 bricks before the CLI gives
 * up. */
static int
answer_mem(const struct graph *g, struct dict *out)
{
    struct pools p = {.t.out = out, .owner = bricks_count() > 1 ? g->owner : 0};
    struct mallinfo2 m = allocator_figures();

    status_put_number(&p.t, (int64_t)m.arena, "mallinfo.arena");
    status_put_number(&p.t, (int64_t)m.ordblks, "mallinfo.ordblks");
    status_put_number(&p.t, (int64_t)m.smblks, "mallinfo.smblks");
    status_put_number(&p.t, (int64_t)m.hblks, "mallinfo.hblks");
    status_put_number(&p.t, (int64_t)m.hblkhd, "mallinfo.hblkhd");
    status_put_number(&p.t, (int64_t)m.usmblks, "mallinfo.usmblks");
    status_put_number(&p.t, (int64_t)m.fsmblks, "mallinfo.fsmblks");
    status_put_number(&p.t, (int64_t)m.uordblks, "mallinfo.uordblks");
    status_put_number(&p.t, (int64_t)m.fordblks, "mallinfo.fordblks");
    status_put_number(&p.t, (int64_t)m.keepcost, "mallinfo.keepcost");
    mem_pools_dump(take_pool_line, &p);
    status_put_pool(&p);
    status_put_number(&p.t, p.count, "mempool-count");
    return p.t.err;
}

/* ---- clients --------------------------------------------------------------------------------- */

void
status_peer_text(const struct sockaddr_storage *peer, char *text, size_t size)
{
    char address[INET6_ADDRSTRLEN] = "";

    if (peer->ss_family == AF_INET) {
        const struct sockaddr_in *in = (const void *)peer;

        inet_ntop(AF_INET, &in->sin_addr, address, sizeof address);
        snprintf(text, size, "%s:%u", address, ntohs(in->sin_port));
    } else if (peer->ss_family == AF_INET6) {
        const struct sockaddr_in6 *in = (const void *)peer;

        inet_ntop(AF_INET6, &in->sin6_addr, address, sizeof address);
        snprintf(text, size, "%s:%u", address, ntohs(in->sin6_port));
    } else {
        snprintf(text, size, "unix:0");
    }
}

static int
answer_clients(struct graph *g, struct dict *out)
{
    struct status_dict t = {.out = out};
    struct brick_client *c;
    int n = 0;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link) {
        char peer[128] = "unknown:0";

        if (!c->conn)
            continue;
        status_peer_text(conn_peer(c->conn), peer, sizeof peer);
        status_put_text(&t, peer, "client%d.hostname", n);
        status_put_number(&t, (int64_t)conn_bytes_in(c->conn), "client%d.bytesread", n);
        status_put_number(&t, (int64_t)conn_bytes_out(c->conn), "client%d.byteswrite", n);
        status_put_number(&t, c->opversion, "client%d.opversion", n);
        status_put_text(&t, *c->process_name ? c->process_name : "unknown", "client%d.name", n);
        n++;
    }
    pthread_mutex_unlock(&g->clients_lock);
    status_put_number(&t, n, "clientcount");
    return t.err;
}

/* ---- inode ----------------------------------------------------------------------------------- */

struct inodes {
    struct status_dict t;
    unsigned active, lru;
};

static void
status_put_inode(struct inode *inode, void *ctx, void *arg)
{
    struct inodes *l = arg;
    int refs = atomic_load(&inode->refs.n) - 1; /* the walk has a reference */
    bool is_active = refs > 0;
    unsigned n = is_active ? l->active : l->lru;
    const char *list = is_active ? "active" : "lru";

    (void)ctx;
    if (l->active + l->lru >= INODES_MAX)
        return;
    status_put_text(&l->t, GFID(&inode->gfid), "conn0.itable.%s%u.gfid", list, n);
    status_put_number(&l->t, 1, "conn0.itable.%s%u.nlookup", list, n);
    status_put_number(&l->t, refs, "conn0.itable.%s%u.ref", list, n);
    status_put_number(&l->t,
         S_ISDIR(inode->type)   ? 2
         : S_ISREG(inode->type) ? 1
                                : 3,
         "conn0.itable.%s%u.ia_type", list, n);
    l->active += is_active;
    l->lru += !is_active;
}

/* The objects for which the storage keeps state: all but the objects that no call has used yet. */
static int
answer_inodes(struct graph *g, struct dict *out)
{
    const struct xlator *storage = &g->layers[g->layer_count - 1];
    struct inodes l = {.t.out = out};

    status_put_number(&l.t, 1, "conncount");
    inode_table_each(g->inodes, storage, status_put_inode, &l);
    status_put_number(&l.t, inode_table_limit(g->inodes), "conn0.itable.lru_limit");
    status_put_number(&l.t, l.active, "conn0.itable.active_size");
    status_put_number(&l.t, l.lru, "conn0.itable.lru_size");
    status_put_number(&l.t, 0, "conn0.itable.purge_size");
    return l.t.err;
}

/* ---- fd -------------------------------------------------------------------------------------- */

struct fds {
    struct status_dict t;
    int client, count;
};

static void
status_put_fd(const struct fd *fd, uint32_t number, void *arg)
{
    struct fds *l = arg;

    (void)number;
    if (l->count >= FDS_MAX)
        return;
    status_put_number(&l->t, fd->pid, "conn%d.fdtable.fdentry%d.pid", l->client, l->count);
    status_put_number(&l->t, atomic_load(&fd->refs.n), "conn%d.fdtable.fdentry%d.refcount", l->client,
                      l->count);
    status_put_number(&l->t, (int64_t)fd->flags, "conn%d.fdtable.fdentry%d.flags", l->client, l->count);
    l->count++;
}

static int
answer_fds(struct graph *g, struct dict *out)
{
    struct fds l = {.t.out = out};
    struct brick_client *c;

    pthread_mutex_lock(&g->clients_lock);
    cds_list_for_each_entry(c, &g->clients, link) {
        uint32_t capacity, first_free;

        l.count = 0;
        fd_table_each(&c->fds, status_put_fd, &l, &capacity, &first_free);
        status_put_number(&l.t, atomic_load(&c->refs.n), "conn%d.fdtable.refcount", l.client);
        status_put_number(&l.t, capacity, "conn%d.fdtable.maxfds", l.client);
        status_put_number(&l.t, first_free, "conn%d.fdtable.firstfree", l.client);
        status_put_number(&l.t, l.count, "conn%d.fdtable.openfds", l.client);
        l.client++;
    }
    pthread_mutex_unlock(&g->clients_lock);
    status_put_number(&l.t, l.client, "conncount");
    return l.t.err;
}

/* ---- callpool -------------------------------------------------------------------------------- */

struct calls {
    struct status_dict t;
    int count;
    const char *layer; /* the layer whose calls are listed */
};

struct call_of {
    int64_t uid, gid, pid, unique;
};

/* A call with one frame: the place of the call. */
static void
status_put_call(struct calls *l, const struct call_of *who, const char *op, int type, const char *where)
{
    status_put_number(&l->t, who->uid, "callpool.stack%d.uid", l->count);
    status_put_number(&l->t, who->gid, "callpool.stack%d.gid", l->count);
    status_put_number(&l->t, who->pid, "callpool.stack%d.pid", l->count);
    status_put_number(&l->t, who->unique, "callpool.stack%d.unique", l->count);
    status_put_text(&l->t, op, "callpool.stack%d.op", l->count);
    status_put_number(&l->t, type, "callpool.stack%d.type", l->count);
    status_put_number(&l->t, 1, "callpool.stack%d.count", l->count);
    status_put_number(&l->t, 1, "callpool.stack%d.frame0.refcount", l->count);
    status_put_text(&l->t, where, "callpool.stack%d.frame0.translator", l->count);
    status_put_number(&l->t, 0, "callpool.stack%d.frame0.complete", l->count);
    l->count++;
}

/* A call's number has gone with its request: 0. */
static bool
status_put_parked(const struct parked_call *c, void *arg)
{
    const struct call_of who = {c->uid, c->gid, c->pid, 0};
    struct calls *l = arg;

    if (l->count < CALLS_MAX)
        status_put_call(l, &who, fop_info[c->fop].name, (int)c->fop, l->layer);
    return l->count < CALLS_MAX;
}

/* Calls that wait for other calls, because such calls can hang. The many calls that run for a moment are not
 * listed. The asking call is listed, too, as by stock. */
static int
answer_calls(struct graph *g, const struct status_asker *who, struct dict *out)
{
    struct calls l = {.t.out = out};

    const struct call_of question = {who->caller->uid, who->caller->gid, who->caller->pid, who->unique};

    status_put_call(&l, &question, "STATUS", 0, "management");
    for (unsigned i = 0; i < g->layer_count; i++) {
        struct xlator *xl = &g->layers[i];

        l.layer = xl->name;
        if (xl->type->each_parked)
            xl->type->each_parked(xl, status_put_parked, &l);
    }
    status_put_number(&l.t, l.count, "callpool.count");
    return l.t.err;
}

int
status_answer(struct graph *g, int64_t cmd, const struct status_asker *who, struct dict *out,
              const char **why)
{
    *why = "no memory";
    switch (cmd & 255) {
    case STATUS_MEM:
        return answer_mem(g, out);
    case STATUS_CLIENTS:
    case STATUS_CLIENT_LIST:
        return answer_clients(g, out);
    case STATUS_INODE:
        return answer_inodes(g, out);
    case STATUS_FD:
        return answer_fds(g, out);
    case STATUS_CALLPOOL:
        return answer_calls(g, who, out);
    default:
        *why = "Unknown status op";
        return -EINVAL;
    }
}
