/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The server end to end, over loopback sockets: login, resolver, fds, what is left when a client goes. The brick is a bottom
 * layer with a handful of objects in memory, which counts what it is asked and can hold answers back. */
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

#include "event/worker.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "xlators/protocol/server/server-internal.h"

extern const struct xlator_type protocol_server_xlator;

/* -- the brick -------------------------------------------------------------------------------------------------- */

#define BRICK "/bricks/b1"
#define VOLUME_ID "11111111-2222-4333-8444-555555555555"

/* Objects 1 (root), 2 "dir", 3 "file" in root, 4 "inner" in dir. */
static const struct object {
    unsigned number, parent;
    const char *name;
    uint32_t type;
} objects[] = {{1, 0, "", S_IFDIR}, {2, 1, "dir", S_IFDIR}, {3, 1, "file", S_IFREG}, {4, 2, "inner", S_IFREG}};

static atomic_uint lookups, flushes, releases, gones;
static atomic_bool holds_lookups;     /* answer them from another thread, later */
static struct caller seen;            /* of the last access */
static pthread_mutex_t parked_lock = PTHREAD_MUTEX_INITIALIZER;
static struct call_stack *parked[16]; /* inodelk (until client_gone) and truncate (until the test lets go) */

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

    for (size_t i = 0; i < sizeof objects / sizeof objects[0]; i++) {
        const struct object *o = &objects[i];
        bool is_it = c->loc.name ? c->loc.parent->gfid.b[15] == o->parent && strcmp(c->loc.name, o->name) == 0
                                 : c->gfid.b[15] == o->number;
        if (is_it)
            return answer_object(stk, o);
    }
    return -ENOENT;
}

static void
run_later(struct call_stub *stub)
{
    struct call_stack *stk = stub->stk;
    int err = find_object(stk);

    call_stub_put(stub);
    if (err < 0)
        call_stack_fail(stk, -err);
    else
        call_stack_unwind(stk);
}

struct later {
    struct worker_job job;
    struct call_stub *stub;
};

static void
run_job(struct worker_job *job)
{
    struct later *l = caa_container_of(job, struct later, job);

    run_later(l->stub);
    free(l);
}

static int
brick_lookup(struct xlator *xl, struct call_stack *stk)
{
    atomic_fetch_add(&lookups, 1);
    if (!atomic_load(&holds_lookups))
        return find_object(stk);
    struct later *l = malloc(sizeof *l);
    l->job.run = run_job;
    l->stub = call_stub_new(stk, xl, run_later);
    worker_post_any(&l->job);
    return XL_OWNED;
}

static int
brick_open(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    stk->reply.fd = fd_new(stk->call.loc.inode, stk->client, stk->call.flags, stk->call.fop == FOP_opendir);
    return stk->reply.fd ? XL_DONE : -ENOMEM;
}

static int
brick_ok(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    if (stk->call.fop == FOP_access)
        seen = stk->caller;
    if (stk->call.loc.inode)
        stk->reply.stat.gfid = stk->call.loc.inode->gfid;
    return XL_DONE;
}

static int
brick_flush(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    ck_assert_ptr_nonnull(stk->call.fd);
    atomic_fetch_add(&flushes, 1);
    return XL_DONE;
}

static int
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

/* Answers what is parked for this fop. */
static void
let_go(enum fop fop, const struct client *client, int err)
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
brick_client_gone(struct xlator *xl, struct client *client)
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
                                      .unlink = brick_ok,
                                      .rename = brick_ok,
                                      .link = brick_ok,
                                      .mkdir = brick_ok,
                                      .readdir = brick_ok},
    .client_gone = brick_client_gone,
    .fd_closed = brick_fd_closed,
};

/* -- the bench -------------------------------------------------------------------------------------------------- */

static struct option_value server_values[16];
static struct volfile_section section;
static struct volfile volfile = {.top = &section};
static struct xlator layers[2];
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
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
    ck_assert_int_eq(stack_pools_init(), 0);
    ck_assert_int_eq(fs_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(rpc_server_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3, .max = 8}), 0);
    rcu_register_thread();
}

static void
make_graph(void)
{
    char error[256] = "";

    graph = (struct graph){.name = (char *)BRICK, .volfile = &volfile, .layers = layers, .layer_count = 2,
                           .top = &layers[0], .brick = &layers[1]};
    atomic_store(&graph.pins, 1);
    atomic_store(&graph.is_child_up, true);
    ck_assert_int_eq(gfid_parse(VOLUME_ID, 36, &graph.volume_id), 0);
    pthread_mutex_init(&graph.clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&graph.clients);
    layers[0] = (struct xlator){.type = &protocol_server_xlator, .name = "w-server", .graph = &graph, .ctx_slot = -1,
                                .child = &layers[1]};
    layers[1] = (struct xlator){.type = &brick_type, .name = BRICK, .graph = &graph, .ctx_slot = -1};
    for (int fop = 0; fop < FOP_COUNT; fop++)
        layers[1].fn[fop] = brick_type.ops->fn[fop];
    layers[0].conf = calloc(1, protocol_server_xlator.conf_size);
    ck_assert_msg(option_parse(protocol_server_xlator.options, section.options, section.option_count, layers[0].conf,
                               NULL, NULL, error, sizeof error) == 0,
                  "%s", error);
    graph.inodes = inode_table_new(&graph, 0);
    ck_assert_int_eq(protocol_server_xlator.init(&layers[0]), 0);
    ck_assert_int_eq(graph_publish(&graph), 0);
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
    section.options = server_values;
    section.option_count = n;
    make_graph();
    ck_assert_msg(server_listen_start("127.0.0.1", 0, NULL, &port, error, sizeof error) == 0, "%s", error);
}

static void
setup(void)
{
    setup_with(NULL, NULL);
}

static void
wait_until(bool (*is_so)(void))
{
    for (int i = 0; i < 5000 && !is_so(); i++)
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
    protocol_server_xlator.fini(&layers[0]);
    option_conf_fini(protocol_server_xlator.options, layers[0].conf);
    free(layers[0].conf);
}

/* -- a client --------------------------------------------------------------------------------------------------- */

struct peer {
    int fd;
    uint32_t xid;
    struct caller caller;
    struct arena arena;
    char in[65536];
    struct xdr results;
    uint32_t accept; /* accept status of the last reply; -1: connection ended */
};

static struct peer *
peer_new(void)
{
    struct peer *p = calloc(1, sizeof *p);
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};

    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    p->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
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
send_call(struct peer *p, uint32_t program, uint32_t version, uint32_t procedure, const char *body, size_t bytes)
{
    char out[32768];
    char cred[RPC_AUTH_BYTES_MAX];
    int cred_bytes = cred_encode(CRED_GLUSTERFS_V3, &p->caller, cred, sizeof cred);
    struct rpc_call_head head = {.xid = ++p->xid, .program = program, .version = version, .procedure = procedure,
                                 .cred_flavor = CRED_GLUSTERFS_V3, .cred_bytes = (uint32_t)cred_bytes, .cred = cred};
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

/* The next message from the brick; false: the connection has ended. */
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
    char body[16384];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    ck_assert_int_eq(fop_encode_call(fop, &x, call), 0);
    send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, fop, body, (size_t)(x.at - body));
}

/* 0 or the errno of the reply; *reply may be NULL. */
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
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, body, (size_t)(x.at - body));
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

static unsigned
lookups_since(void)
{
    return atomic_exchange(&lookups, 0);
}

/* -- login ------------------------------------------------------------------------------------------------------ */

START_TEST(test_before_login)
{
    struct peer *p = peer_new();

    send_fop(p, FOP_stat, CALL(.gfid = gfid_no(1)));
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    ck_assert_int_eq(LOGIN(p, "u", "username", "user1", "password", "wrong"), EACCES);
    send_fop(p, FOP_stat, CALL(.gfid = gfid_no(1))); /* still not */
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}
END_TEST

START_TEST(test_login_checks)
{
    struct peer *p = peer_new();

    ck_assert_int_eq(login_with(p, (const char *const[]){"fops-version", "1298437", NULL}), EINVAL);
    ck_assert_int_eq(login_with(p, (const char *const[]){LOGIN_KEYS, NULL}), EINVAL); /* no process-uuid */
    ck_assert_int_eq(login_with(p, (const char *const[]){"remote-subvolume", BRICK, "process-uuid", "u", NULL}), EINVAL);
    ck_assert_int_eq(login_with(p, (const char *const[]){"remote-subvolume", "/other", "process-uuid", "u",
                                                         "fops-version", "1298437", NULL}),
                     ENOENT);
    ck_assert_int_eq(LOGIN(p, "u", "volume-id", "99999999-2222-4333-8444-555555555555"), EINVAL);
    ck_assert_int_eq(LOGIN(p, "two\nlines"), EINVAL);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/nowhere"), ENOENT);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/dir/inner"), ENOTDIR);
    atomic_store(&graph.is_child_up, false);
    ck_assert_int_eq(LOGIN(p, "u"), EAGAIN);
    atomic_store(&graph.is_child_up, true);
    ck_assert_int_eq(LOGIN(p, "u", "volume-id", VOLUME_ID, "username", "user1", "password", "secret"), 0);
    ck_assert(cds_list_first_entry(&graph.clients, struct client, link)->is_trusted);

    static const char junk[] = {0, 0, 0, 8, 0, 0, 0, 9, 1, 2, 3, 4}; /* a dict that says 9 pairs */
    struct common_reply r;
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, junk, sizeof junk);
    ck_assert(receive(p));
    xdr_get_common_reply(&p->results, &r);
    ck_assert_int_eq(r.op_ret, -1);
    ck_assert_int_eq(r.op_errno, EINVAL);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, junk, 3);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}
END_TEST

START_TEST(test_second_login_replaces)
{
    struct peer *p = logged_in("first");
    struct fop_reply r;

    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
    ck_assert_int_eq(LOGIN(p, "second"), 0);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = r.fd_nr), NULL), EBADF);
    ck_assert_uint_eq(flushes, 1);
    peer_free(p);
}
END_TEST

START_TEST(test_other_handshakes)
{
    struct peer *p = peer_new();
    struct getspec_reply spec;
    char body[64];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_getspec_call(&x, &(struct getspec_call){.key = "/w"});
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_GETSPEC, body, (size_t)(x.at - body));
    ck_assert(receive(p));
    xdr_get_getspec_reply(&p->results, &spec);
    ck_assert_int_eq(spec.op_ret, -1);
    ck_assert_int_eq(spec.op_errno, ENOSYS);
    for (uint32_t procedure = HANDSHAKE_NULL; procedure <= HANDSHAKE_PING; procedure += HANDSHAKE_PING) {
        send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, procedure, "", 0);
        ck_assert(receive(p));
        ck_assert_uint_eq(xdr_left(&p->results), 12);
        ck_assert_uint_eq(xdr_get_u64(&p->results), 0);
    }
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_string(&x, "uid");
    xdr_put_u32(&x, 7);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SET_LK_VER, body, (size_t)(x.at - body));
    ck_assert(receive(p));
    ck_assert_uint_eq(xdr_get_u64(&p->results), 0);
    ck_assert_uint_eq(xdr_get_u32(&p->results), 7);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, 5, "", 0);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_PROC_UNAVAIL);
    peer_free(p);
}
END_TEST

/* -- resolver --------------------------------------------------------------------------------------------------- */

static void
check_resolver(void)
{
    struct peer *p = logged_in("u");
    struct gfid root = gfid_root, unknown = gfid_no(99);
    char too_long[300];
    struct fop_reply r;

    memset(too_long, 'x', 256);
    too_long[256] = '\0';
    lookups_since();

    /* by gfid */
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_no(4)), &r), 0);
    ck_assert(gfid_equal(&r.stat.gfid, &(struct gfid){.b[15] = 4}));
    ck_assert_uint_eq(lookups_since(), 1);
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_no(4)), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 0); /* warm */
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = unknown), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_inodelk, CALL(.gfid = unknown, .volume = "d"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_null), NULL), EINVAL);

    /* lookups */
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = root), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = unknown), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .gfid = unknown, .name = "file"), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 3);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 4); /* always from the disk, and nothing else */
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "."), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 1);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "nope"), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_no(3), .name = "x"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "a/b"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = ".."), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = too_long), NULL), ENAMETOOLONG);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = gfid_null), NULL), EINVAL);

    /* by name */
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = gfid_no(2), .name = "new"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 1); /* the parent */
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = ""), NULL), EINVAL);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = too_long), NULL), ENAMETOOLONG);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_mknod, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EEXIST);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = root, .name = "nope"), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_no(2), .name = "inner"), NULL), 0);
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_rename, CALL(.pargfid = root, .name = "file", .pargfid2 = gfid_no(2), .name2 = "f2"), NULL),
                     0);
    ck_assert_uint_eq(lookups_since(), 1); /* is there a target? */
    ck_assert_int_eq(fop(p, FOP_rename, CALL(.pargfid = root, .name = "nope", .pargfid2 = root, .name2 = "f"), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_rename, CALL(.pargfid = root, .name = "dir", .pargfid2 = unknown, .name2 = "f"), NULL),
                     ESTALE);
    ck_assert_int_eq(fop(p, FOP_link, CALL(.gfid = gfid_no(3), .pargfid2 = root, .name2 = "hard"), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_link, CALL(.gfid = unknown, .pargfid2 = root, .name2 = "hard"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_link, CALL(.gfid = gfid_no(3), .pargfid2 = root, .name2 = ".glusterfs"), NULL), EEXIST);

    /* by fd */
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = unknown, .fd_nr = FD_ANONYMOUS), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = -1), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = -3), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = INT64_MAX), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_readdir, CALL(.gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS), NULL), ENOTDIR);
    ck_assert_int_eq(fop(p, FOP_writev, CALL(.gfid = root, .fd_nr = FD_ANONYMOUS), NULL), EISDIR);
    ck_assert_int_eq(fop(p, FOP_release, CALL(.fd_nr = 1234), NULL), 0);

    /* what no layer has */
    ck_assert_int_eq(fop(p, FOP_namelink, CALL(.pargfid = root, .name = "x"), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_icreate, CALL(.gfid = unknown), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_ipc, CALL(.cmd = 1), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_setactivelk, CALL(.gfid = root), NULL), EOPNOTSUPP);
    send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, FOP_compound, "", 0);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}

START_TEST(test_resolver)
{
    check_resolver();
}
END_TEST

START_TEST(test_resolver_with_parked_lookups)
{
    atomic_store(&holds_lookups, true);
    check_resolver();
}
END_TEST

START_TEST(test_unlinked_name_is_forgotten)
{
    struct peer *p = logged_in("u");

    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 0);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 1); /* the table does not know it any more */
    peer_free(p);
}
END_TEST

/* -- fds -------------------------------------------------------------------------------------------------------- */

START_TEST(test_fds_belong_to_a_client)
{
    struct peer *a = logged_in("a"), *b = logged_in("b"), *a2 = logged_in("a");
    struct fop_reply r;

    ck_assert_int_eq(fop(a, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
    ck_assert_int_eq(r.fd_nr, 0);
    ck_assert_int_eq(fop(a, FOP_opendir, CALL(.gfid = gfid_root), &r), 0);
    ck_assert_int_eq(r.fd_nr, 1);
    /* a wrong gfid with a good number is served from the fd */
    ck_assert_int_eq(fop(a, FOP_fstat, CALL(.gfid = gfid_no(99), .fd_nr = 0), &r), 0);
    ck_assert_uint_eq(r.stat.gfid.b[15], 3);
    ck_assert_int_eq(fop(a, FOP_readdir, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), ENOTDIR);
    ck_assert_int_eq(fop(b, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), EBADF);
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), 0); /* the same identity */
    peer_free(a);
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), 0); /* one connection is left */
    ck_assert_int_eq(fop(a2, FOP_release, CALL(.fd_nr = 0), NULL), 0);
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), EBADF);
    ck_assert_uint_eq(atomic_load(&releases), 1);
    peer_free(a2);
    peer_free(b);
}
END_TEST

START_TEST(test_many_opens)
{
    struct peer *p = logged_in("u");
    struct fop_reply r;

    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
        ck_assert_int_eq(r.fd_nr, i);
    }
    peer_free(p);
    wait_until(is_unpinned);
    ck_assert_uint_eq(atomic_load(&flushes), 3000);
    ck_assert_uint_eq(atomic_load(&releases), 3000);
}
END_TEST

/* -- ends ------------------------------------------------------------------------------------------------------- */

static unsigned parked_wanted;

static bool
are_parked(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&parked_lock);
    for (size_t i = 0; i < 16; i++)
        n += parked[i] != NULL;
    pthread_mutex_unlock(&parked_lock);
    return n == parked_wanted;
}

static bool
are_flushed(void)
{
    return atomic_load(&flushes) == 2 && atomic_load(&releases) == 3;
}

START_TEST(test_client_dies_with_everything_open)
{
    struct peer *p = logged_in("u"), *other = logged_in("other");

    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(4)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_opendir, CALL(.gfid = gfid_no(2)), NULL), 0);
    for (int i = 0; i < 3; i++)
        send_fop(p, FOP_inodelk, CALL(.gfid = gfid_no(3), .volume = "d", .cmd = 2)); /* blocked */
    send_fop(p, FOP_truncate, CALL(.gfid = gfid_no(3)));                           /* running */
    send_fop(other, FOP_truncate, CALL(.gfid = gfid_no(3)));
    parked_wanted = 5;
    wait_until(are_parked);
    peer_free(p);
    parked_wanted = 2; /* the waiters are woken by client_gone; the others run on */
    wait_until(are_parked);
    wait_until(are_flushed);
    ck_assert_int_eq(atomic_load(&graph.pins), 3); /* the dead client's call keeps it */
    let_go(FOP_truncate, NULL, EIO);               /* to nowhere, and to the other one */
    ck_assert(receive(other));
    ck_assert_int_eq(xdr_get_i32(&other->results), -1);
    ck_assert_int_eq(xdr_get_i32(&other->results), EIO);
    peer_free(other);
    wait_until(is_unpinned);
    ck_assert_uint_eq(atomic_load(&gones), 4); /* twice for each: at once, and when nothing runs any more */
}
END_TEST

START_TEST(test_stop_ends_connections)
{
    struct peer *p = logged_in("u"), *q = peer_new();

    protocol_server_xlator.stop(&layers[0]);
    ck_assert(!receive(p));
    wait_until(is_unpinned);
    ck_assert_int_eq(LOGIN(q, "late"), EAGAIN);
    wait_until(is_unpinned);
    protocol_server_xlator.start(&layers[0]);
    ck_assert_int_eq(LOGIN(q, "late"), 0);
    peer_free(p);
    peer_free(q);
}
END_TEST

START_TEST(test_draining_brick_drops)
{
    struct peer *p = logged_in("u");

    atomic_store(&graph.is_draining, true);
    send_fop(p, FOP_stat, CALL(.gfid = gfid_root));
    ck_assert(!receive(p));
    peer_free(p);
}
END_TEST

/* -- callbacks -------------------------------------------------------------------------------------------------- */

START_TEST(test_callbacks)
{
    struct peer *p = logged_in("u"), *q = logged_in("v");
    struct gfid g = gfid_no(3);

    server_child_event(&graph, false);
    struct peer *both[] = {p, q};
    for (int i = 0; i < 2; i++) {
        ck_assert(receive(both[i]));
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 4), 0); /* a call */
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 12), 52743234);
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 20), 7);
    }
    struct client *c = cds_list_first_entry(&graph.clients, struct client, link);
    client_callback_inodelk_contention(c, &g, &(struct fop_flock){.type = 1, .pid = 77}, 4242, "dom");
    ck_assert(receive(p));
    ck_assert_uint_eq(xdr_load_u32(p->in + 20), 10);
    ck_assert_mem_eq(p->in + 40, &g, 16);
    peer_free(p);
    peer_free(q);
}
END_TEST

/* -- who and where ---------------------------------------------------------------------------------------------- */

START_TEST(test_root_squash)
{
    struct peer *p = logged_in("u"), *trusted = peer_new();
    static const uint32_t groups[] = {7, 0};

    ck_assert_int_eq(LOGIN(trusted, "t", "username", "user1", "password", "secret"), 0);
    p->caller.groups = groups;
    p->caller.group_count = 2;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert_uint_eq(seen.gid, 65534);
    ck_assert_uint_eq(seen.group_count, 2);
    p->caller.uid = 1000;
    p->caller.pid = -6; /* says so, but has not shown it */
    p->caller.gid = 100;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 1000);
    ck_assert_uint_eq(seen.gid, 100);
    trusted->caller.pid = -6;
    ck_assert_int_eq(fop(trusted, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 0);
    trusted->caller.pid = 1;
    ck_assert_int_eq(fop(trusted, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    peer_free(p);
    peer_free(trusted);
}
END_TEST

START_TEST(test_all_squash)
{
    struct peer *p = logged_in("u");
    static const uint32_t groups[] = {7, 0};

    p->caller = (struct caller){.uid = 1000, .gid = 1000, .groups = groups, .group_count = 2,
                                .lk_owner = p->caller.lk_owner};
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert_uint_eq(seen.gid, 65534);
    ck_assert_uint_eq(seen.group_count, 0);
    peer_free(p);
}
END_TEST

START_TEST(test_subdir)
{
    struct peer *p = peer_new();
    struct fop_reply r;

    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/dir"), 0);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = gfid_root), &r), 0);
    ck_assert(gfid_is_root(&r.stat.gfid));
    ck_assert_uint_eq(r.stat.ino, 1);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "inner"), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 4);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"), NULL), ENOENT);
    peer_free(p);
}
END_TEST

/* -- hostile and changing ---------------------------------------------------------------------------------------- */

/* Bytes that are nobody's arguments, for every procedure of both programs: always one answer, or the end of the connection. */
START_TEST(test_random_arguments)
{
    struct peer *p = logged_in("u");
    unsigned seed = 42;

    for (unsigned i = 0; i < 4000; i++) {
        char body[256];
        size_t bytes = (unsigned)rand_r(&seed) % sizeof body;
        uint32_t procedure = (uint32_t)rand_r(&seed) % (FOP_COUNT + 2);

        if (procedure == FOP_inodelk || procedure == FOP_truncate) /* parked here for good */
            continue;
        for (size_t b = 0; b < bytes; b++) /* many zeros and small numbers: so that some decode far */
            body[b] = (char)(rand_r(&seed) % 3 ? 0 : rand_r(&seed) % (i % 2 ? 4 : 256));
        if (i % 16 == 0)
            send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, procedure % 6, body, bytes);
        else
            send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, procedure, body, bytes);
        ck_assert(receive(p));
        ck_assert_uint_eq(xdr_load_u32(p->in), p->xid);
    }
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
}
END_TEST

START_TEST(test_auth_changes)
{
    struct peer *p = logged_in("plain"), *q = peer_new();
    struct option_value fresh_values[] = {{"auth.login." BRICK ".allow", "user1", 0},
                                          {"auth.login.user1.password", "secret", 0}};
    struct volfile_section fresh_section = {.options = fresh_values, .option_count = 2};
    struct volfile fresh = {.top = &fresh_section};

    ck_assert_int_eq(LOGIN(q, "trusted", "username", "user1", "password", "secret"), 0);
    graph.volfile_fresh = &fresh;
    protocol_server_xlator.reconfigured(&layers[0], layers[0].conf);
    graph.volfile_fresh = NULL;
    ck_assert(!receive(p)); /* had only its address to show */
    ck_assert_int_eq(fop(q, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
    p = peer_new();
    ck_assert_int_eq(LOGIN(p, "plain"), EACCES);
    peer_free(p);
    peer_free(q);
}
END_TEST

/* Logins and deaths at once, with calls that wait for the disk under way. */
static void *
churn(void *arg)
{
    char uid[32];

    for (int i = 0; i < 40; i++) {
        struct peer *p = peer_new();

        snprintf(uid, sizeof uid, "churn-%d", i % 5); /* shared with the other threads */
        ck_assert_int_eq(LOGIN(p, uid, "subdir-mount", i % 3 ? "/" : "/dir"), 0);
        for (int k = 0; k < 5; k++) {
            send_fop(p, FOP_open, CALL(.gfid = gfid_no(4)));
            send_fop(p, FOP_lookup, CALL(.pargfid = gfid_no(2), .name = "inner"));
            send_fop(p, FOP_inodelk, CALL(.gfid = gfid_no(3), .volume = "d"));
        }
        if (i % 2)
            ck_assert(receive(p));
        if (i % 5 == 0)
            send_login(p, (const char *const[]){LOGIN_KEYS, "process-uuid", uid, "subdir-mount", "/dir", NULL});
        peer_free(p);
    }
    return arg;
}

START_TEST(test_churn)
{
    pthread_t threads[3];

    atomic_store(&holds_lookups, true);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    wait_until(is_unpinned);
    ck_assert(cds_list_empty(&graph.clients));
}
END_TEST

static void
setup_root_squash(void)
{
    setup_with("root-squash", "on");
}

static void
setup_all_squash(void)
{
    setup_with("all-squash", "on");
}

static TCase *
tcase(Suite *s, const char *name, void (*start)(void))
{
    TCase *c = tcase_create(name);

    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, start, teardown);
    suite_add_tcase(s, c);
    return c;
}

static Suite *
test_suite(void)
{
    Suite *s = suite_create("server");
    TCase *c = tcase(s, "plain", setup);

    tcase_add_test(c, test_before_login);
    tcase_add_test(c, test_login_checks);
    tcase_add_test(c, test_second_login_replaces);
    tcase_add_test(c, test_other_handshakes);
    tcase_add_test(c, test_resolver);
    tcase_add_test(c, test_resolver_with_parked_lookups);
    tcase_add_test(c, test_unlinked_name_is_forgotten);
    tcase_add_test(c, test_fds_belong_to_a_client);
    tcase_add_test(c, test_many_opens);
    tcase_add_test(c, test_client_dies_with_everything_open);
    tcase_add_test(c, test_stop_ends_connections);
    tcase_add_test(c, test_draining_brick_drops);
    tcase_add_test(c, test_callbacks);
    tcase_add_test(c, test_subdir);
    tcase_add_test(c, test_random_arguments);
    tcase_add_test(c, test_auth_changes);
    tcase_add_test(c, test_churn);
    tcase_add_test(tcase(s, "root-squash", setup_root_squash), test_root_squash);
    tcase_add_test(tcase(s, "all-squash", setup_all_squash), test_all_squash);
    return s;
}

#include "base/test-main.h"
