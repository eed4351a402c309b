/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The bench of test-server.c: a brick in memory below a real protocol/server, real sockets, and a client.
 */
#ifndef KILN_PROTOCOL_SERVER_TEST_BENCH_H
#define KILN_PROTOCOL_SERVER_TEST_BENCH_H

#include <arpa/inet.h>
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <urcu.h>

#include "base/reason.h"
#include "event/worker.h"
#include "graph/pools.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "xlators/protocol/server/server-internal.h"

extern const struct xlator_type protocol_server_xlator;

/* ---- the brick ------------------------------------------------------------------------------- */

#define BRICK "/bricks/b1"
#define VOLUME_ID "11111111-2222-4333-8444-555555555555"

/* Objects 1 (root), 2 "dir", 3 "file" in root, 4 "inner" in dir. */
static const struct object {
    unsigned number, parent;
    const char *name;
    uint32_t type;
} objects[] = {
    {1, 0, "", S_IFDIR}, {2, 1, "dir", S_IFDIR}, {3, 1, "file", S_IFREG}, {4, 2, "inner", S_IFREG}};

static atomic_uint lookups, flushes, releases, gones, changes; /* changes: MKDIRs */
static atomic_bool dir_is_endless;    /* every folder has a folder "dir" with the next higher gfid */
static atomic_bool holds_lookups;     /* answers LOOKUPs later, from another thread */
static struct caller seen;            /* the caller of the last ACCESS */
static uint32_t seen_first_group;     /* the first group of that caller, or 0 */
static char seen_removal[64];         /* the last unlink: parent/name groups flags keys-of-xdata */
static atomic_bool is_removal_seen;
static pthread_mutex_t parked_lock = PTHREAD_MUTEX_INITIALIZER;
/* inodelks (until client_gone) and truncates (until the test releases them) */
static struct call_stack *parked[16];

static struct gfid
gfid_no(unsigned n)
{
    struct gfid g = {{0}};

    g.b[15] = (uint8_t)n;
    return g;
}

static int
answer_object(struct call_stack *stk, const struct object *o)
{
    if (!o)
        return -ENOENT;
    stk->reply.stat = (struct iatt){.gfid = gfid_no(o->number), .ino = o->number, .mode = o->type | 0755};
    return XL_DONE;
}

static int
find_object(struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (atomic_load(&dir_is_endless) && c->loc.name && strcmp(c->loc.name, "dir") == 0) {
        stk->reply.stat = (struct iatt){.gfid = c->loc.parent->gfid, .mode = S_IFDIR | 0755};
        stk->reply.stat.gfid.b[14] += ++stk->reply.stat.gfid.b[15] == 0;
        return XL_DONE;
    }
    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const struct object *o = &objects[i];
        bool is_it = c->loc.name ? c->loc.parent->gfid.b[15] == o->parent && strcmp(c->loc.name, o->name) == 0
                                 : c->gfid.b[15] == o->number;
        if (is_it)
            return answer_object(stk, o);
    }
    return -ENOENT;
}

static xl_verdict
find_later(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    return find_object(stk);
}

static xl_verdict
brick_lookup(struct xlator *xl, struct call_stack *stk)
{
    atomic_fetch_add(&lookups, 1);
    if (!atomic_load(&holds_lookups))
        return find_object(stk);
    worker_post_any(&call_stub_new(stk, xl, find_later)->job);
    return XL_OWNED;
}

static xl_verdict
brick_open(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.fd = fd_new(stk->call.loc.inode, stk->client, stk->call.flags, stk->call.fop == FOP_opendir);
    return stk->reply.fd ? XL_DONE : -ENOMEM;
}

static xl_verdict
brick_ok(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->call.fop == FOP_access) {
        seen = stk->caller;
        seen_first_group = seen.group_count ? seen.groups[0] : 0;
    }
    if (stk->call.fop == FOP_mkdir)
        atomic_fetch_add(&changes, 1);
    if (stk->call.loc.inode)
        stk->reply.stat.gfid = stk->call.loc.inode->gfid;
    return XL_DONE;
}

static xl_verdict
brick_unlink(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    snprintf(seen_removal, sizeof seen_removal, "%u/%s %u %u %u", c->loc.parent->gfid.b[15], c->loc.name,
             stk->caller.group_count, c->flags, c->xdata ? c->xdata->count : 0);
    atomic_store(&is_removal_seen, true);
    return brick_ok(xl, stk);
}

static xl_verdict
brick_flush(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    ck_assert_ptr_nonnull(stk->call.fd);
    atomic_fetch_add(&flushes, 1);
    return XL_DONE;
}

static xl_verdict
brick_park(struct xlator *xl, struct call_stack *stk)
{
    bool is_parked = false;

    (void)xl;
    pthread_mutex_lock(&parked_lock);
    for (size_t i = 0; i < 16 && !is_parked && !atomic_load(&stk->client->is_gone); i++) {
        if (!parked[i]) {
            parked[i] = stk;
            is_parked = true;
        }
    }
    pthread_mutex_unlock(&parked_lock);
    return is_parked ? XL_OWNED : -EAGAIN;
}

/* Answers the parked calls of this fop. */
static void
let_go(enum fop fop, const struct brick_client *client, int err)
{
    for (size_t i = 0; i < 16; i++) {
        pthread_mutex_lock(&parked_lock);
        struct call_stack *stk = parked[i];
        if (stk && stk->call.fop == fop && (!client || stk->client == client))
            parked[i] = NULL;
        else
            stk = NULL;
        pthread_mutex_unlock(&parked_lock);
        if (stk)
            call_stack_fail(stk, err);
    }
}

static void
brick_client_gone(struct xlator *xl, struct brick_client *client)
{
    (void)xl;
    ck_assert(atomic_load(&client->is_gone));
    atomic_fetch_add(&gones, 1);
    let_go(FOP_inodelk, client, EAGAIN);
}

static void
brick_fd_closed(struct xlator *xl, struct fd *fd)
{
    (void)xl;
    if (!fd->is_anonymous)
        atomic_fetch_add(&releases, 1);
}

static const struct xlator_type brick_type = {
    .name = "test/brick",
    .ops = &(const struct xlator_ops){.lookup = brick_lookup,
                                      .open = brick_open,
                                      .opendir = brick_open,
                                      .flush = brick_flush,
                                      .inodelk = brick_park,
                                      .truncate = brick_park,
                                      .stat = brick_ok,
                                      .fstat = brick_ok,
                                      .access = brick_ok,
                                      .unlink = brick_unlink,
                                      .rename = brick_ok,
                                      .link = brick_ok,
                                      .mkdir = brick_ok,
                                      .readdir = brick_ok},
    .client_gone = brick_client_gone,
    .fd_closed = brick_fd_closed,
};

/* ---- the bench ------------------------------------------------------------------------------- */

static struct option_value server_values[16];
static struct option_value extra_options[4]; /* options of a test, up to the first without a key */
static struct volfile_section section;
static struct volfile volfile = {.top = &section};
static const struct xlator_type *middle; /* a layer between the two, or NULL */
static struct option_value middle_options[4];
static size_t middle_option_count;
static const struct xlator_type *hook;   /* a layer of the test right above the bottom, or NULL */
static const struct xlator_type *bottom; /* NULL: the brick in memory */
static struct option_value bottom_options[4];
static size_t bottom_option_count;
static struct xlator layers[4];
static struct graph graph;
static uint16_t port;

static void
pools(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    log_set_level(LOG_ERROR);
    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(rpc_server_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3, .max = 8}), 0);
    rcu_register_thread();
}

static void
make_layer(unsigned i, const struct xlator_type *type, const struct option_value *values, size_t count)
{
    char error[256] = "";

    layers[i] = (struct xlator){.type = type, .name = BRICK, .graph = &graph, .ops = type->ops};
    if (!type->conf_size)
        return;
    layers[i].conf = calloc(1, type->conf_size);
    ck_assert_msg(
        option_parse(type->options, values, count, layers[i].conf, NULL, NULL, error, sizeof error) == 0,
        "%s", error);
}

static void
make_graph(void)
{
    static const struct xlator_ops none;
    unsigned last = 0;

    graph = (struct graph){.name = (char *)BRICK,
                           .volfile = &volfile,
                           .layers = layers,
                           .top = &layers[0],
                           .brick = &layers[1]};
    atomic_store(&graph.pins, 1);
    atomic_store(&graph.is_child_up, true);
    ck_assert_int_eq(gfid_parse(VOLUME_ID, 36, &graph.volume_id), 0);
    pthread_mutex_init(&graph.clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&graph.clients);

    make_layer(last, &protocol_server_xlator, section.options, section.option_count);
    layers[0].name = "w-server";
    layers[0].ops = &none;
    if (middle)
        make_layer(++last, middle, middle_options, middle_option_count);
    if (hook)
        make_layer(++last, hook, NULL, 0);
    make_layer(++last, bottom ? bottom : &brick_type, bottom_options, bottom_option_count);
    graph.layer_count = last + 1;
    for (unsigned i = last; i-- > 1;) {
        for (unsigned path = 0; path < PATH_COUNT; path++)
            xlator_set_next(&layers[i], path, xlator_first(&layers[i + 1], path));
    }
    graph_number_contexts(&graph);
    graph.inodes = inode_table_new(&graph, 0);
    for (unsigned i = graph.layer_count; i-- > 0;) {
        struct reason why = {""};

        ck_assert_msg(!layers[i].type->init || layers[i].type->init(&layers[i], &why) == 0, "%s", why.text);
    }
}

static inline bool
is_changing_here(const char *name)
{
    return strcmp(name, "/changing") == 0;
}

static struct graph *
find_brick_here(const char *name)
{
    return strcmp(name, BRICK) == 0 && graph_pin(&graph) ? &graph : NULL;
}

static void
setup_with(const char *key, const char *value)
{
    char error[256] = "";
    size_t n = 0;

    pools();
    atomic_store(&lookups, 0);
    atomic_store(&flushes, 0);
    atomic_store(&releases, 0);
    atomic_store(&gones, 0);
    atomic_store(&holds_lookups, false);
    server_values[n++] = (struct option_value){"auth.addr." BRICK ".allow", "127.0.0.*", 0};
    server_values[n++] = (struct option_value){"auth.login." BRICK ".allow", "user1", 0};
    server_values[n++] = (struct option_value){"auth.login.user1.password", "secret", 0};
    if (key)
        server_values[n++] = (struct option_value){key, value, 0};
    for (size_t i = 0; i < 4 && extra_options[i].key; i++)
        server_values[n++] = extra_options[i];
    section.options = server_values;
    section.option_count = n;
    make_graph();
    const struct server_listen listen = {.host = "127.0.0.1", .find_brick = find_brick_here,
                                         .is_brick_changing = is_changing_here};
    ck_assert_msg(server_listen_start(&listen, &port, error, sizeof error) == 0, "%s", error);
}

static void __attribute__((unused))
setup(void)
{
    setup_with(NULL, NULL);
}

static void
wait_until(bool (*is_so)(void))
{
    for (int i = 0; i < 60000 && !is_so(); i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    ck_assert(is_so());
}

static bool
is_unpinned(void)
{
    return atomic_load(&graph.pins) == 1;
}

static void
teardown(void)
{
    server_listen_stop();
    wait_until(is_unpinned);
    ck_assert(cds_list_empty(&graph.clients));
    ck_assert_uint_eq(inode_table_free(graph.inodes), 0);
    for (unsigned i = 0; i < graph.layer_count; i++) {
        const struct xlator_type *type = layers[i].type;

        if (type->fini)
            type->fini(&layers[i]);
        if (layers[i].conf)
            option_conf_fini(type->options, layers[i].conf);
        free(layers[i].conf);
    }
}

/* ---- a client -------------------------------------------------------------------------------- */

struct peer {
    int fd;
    uint32_t xid;
    struct caller caller;
    struct arena arena;
    char in[65536];
    struct xdr results;
    uint32_t accept; /* accept status of the last reply; -1: the connection ended */
};

static const char *peer_from; /* source address of the next peer; NULL: the default */

static struct peer *
peer_new(void)
{
    struct peer *p = calloc(1, sizeof *p);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
    struct sockaddr_in from = {.sin_family = AF_INET};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (peer_from) {
        ck_assert_int_eq(inet_pton(AF_INET, peer_from, &from.sin_addr), 1);
        ck_assert_int_eq(bind(p->fd, (struct sockaddr *)&from, sizeof from), 0);
    }
    ck_assert_int_eq(connect(p->fd, (struct sockaddr *)&to, sizeof to), 0);
    p->caller.lk_owner = (struct lk_owner){4, (const uint8_t *)"ownr"};
    return p;
}

static void
peer_free(struct peer *p)
{
    close(p->fd);
    arena_release(&p->arena);
    free(p);
}

static void
send_call(struct peer *p, uint32_t program, uint32_t version, uint32_t procedure, const char *body,
          size_t bytes)
{
    char out[131072];
    char cred[RPC_AUTH_BYTES_MAX];
    int cred_bytes = cred_encode(CRED_GLUSTERFS_V3, &p->caller, cred, sizeof cred);
    struct rpc_call_head head = {.xid = ++p->xid,
                                 .program = program,
                                 .version = version,
                                 .procedure = procedure,
                                 .cred_flavor = CRED_GLUSTERFS_V3,
                                 .cred_bytes = (uint32_t)cred_bytes,
                                 .cred = cred};
    struct xdr x;

    ck_assert_int_ge(cred_bytes, 0);
    xdr_init(&x, out, sizeof out, NULL);
    xdr_put_u32(&x, 0);
    ck_assert_int_eq(rpc_encode_call_head(&x, &head), 0);
    ck_assert_uint_ge(xdr_left(&x), bytes);
    memcpy(x.at, body, bytes);
    x.at += bytes;
    xdr_store_u32(out, 0x80000000u | (uint32_t)(x.at - out - 4));
    ck_assert_int_eq(write(p->fd, out, (size_t)(x.at - out)), x.at - out);
}

static bool
read_whole(int fd, void *at, size_t bytes)
{
    while (bytes) {
        ssize_t n = read(fd, at, bytes);

        if (n <= 0)
            return false;
        at = (char *)at + n;
        bytes -= (size_t)n;
    }
    return true;
}

/* Receives the next message from the brick; false: the connection has ended. */
static bool
receive(struct peer *p)
{
    uint32_t mark;

    p->accept = UINT32_MAX;
    if (!read_whole(p->fd, &mark, sizeof mark))
        return false;
    mark = ntohl(mark) & 0x7fffffff;
    ck_assert_uint_le(mark, sizeof p->in);
    ck_assert(read_whole(p->fd, p->in, mark));
    arena_release(&p->arena);
    xdr_init(&p->results, p->in, mark, &p->arena);
    p->accept = mark >= 24 ? xdr_load_u32(p->in + 20) : UINT32_MAX;
    if (mark >= 24)
        p->results.at += 24;
    return true;
}

static void
send_fop(struct peer *p, enum fop fop, const struct fop_call *call)
{
    char body[98304];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    ck_assert_int_eq(fop_encode_call(fop, &x, call), 0);
    send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, fop, body, (size_t)(x.at - body));
}

/* Returns 0 or the errno of the reply; *reply may be NULL. */
static int
fop(struct peer *p, enum fop fop, const struct fop_call *call, struct fop_reply *reply)
{
    struct fop_reply r = {0};

    send_fop(p, fop, call);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_SUCCESS);
    ck_assert_int_eq(fop_decode_reply(fop, &p->results, &r), 0);
    if (reply)
        *reply = r;
    return r.op_ret < 0 ? r.op_errno : 0;
}

#define CALL(...) (&(const struct fop_call){__VA_ARGS__})

static void
send_login(struct peer *p, const char *const *pairs)
{
    char body[8192];
    struct arena arena = {0};
    struct dict *d = dict_new(&arena);
    struct xdr x;

    for (; pairs && pairs[0]; pairs += 2)
        ck_assert_int_eq(dict_set_text(d, pairs[0], DICT_STR, pairs[1], (uint32_t)strlen(pairs[1]) + 1), 0);
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_old_dict(&x, d);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, body,
              (size_t)(x.at - body));
    arena_release(&arena);
}

static int
login_with(struct peer *p, const char *const *pairs)
{
    struct common_reply r;

    send_login(p, pairs);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_SUCCESS);
    xdr_get_common_reply(&p->results, &r);
    ck_assert_int_eq(p->results.error, 0);
    ck_assert_ptr_nonnull(dict_get_str(r.dict, DICT_KEY_ERROR));
    if (r.op_ret == 0)
        ck_assert_str_eq(dict_get_str(r.dict, DICT_KEY_SV_VOLUME_ID), VOLUME_ID);
    return r.op_ret == 0 ? 0 : r.op_errno;
}

#define LOGIN_KEYS "remote-subvolume", BRICK, "fops-version", "1298437"
#define LOGIN(p, uid, ...)                                                                                   \
    login_with(p, (const char *const[]){LOGIN_KEYS, "process-uuid", uid, ##__VA_ARGS__, NULL})

static struct peer *
logged_in(const char *uid)
{
    struct peer *p = peer_new();

    ck_assert_int_eq(LOGIN(p, uid), 0);
    return p;
}

#endif
