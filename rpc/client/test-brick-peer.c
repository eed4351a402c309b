/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Logins to bricks that accept and to bricks that refuse; and calls to glusterd. */
#include <stdio.h>

#include "data/dict.h"
#include "rpc/client/brick-peer.h"
#include "rpc/client/glusterd-calls.h"
#include "rpc/client/test-client.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/portmap-program.h"

#define VOLUME_ID "5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b"
#define OTHER_ID "99999999-8d11-4f4e-9a57-1c2d3e4f5a6b"

/* The behaviour of the peer; each except GOOD for `bad_times` connections, then like GOOD. */
enum manner {
    GOOD,
    IS_GLUSTERD,     /* and names its own port */
    NAMES_DEAD_PORT, /* glusterd that names a port without a listener, once; then like IS_GLUSTERD */
    HAS_NO_PORT,     /* glusterd that does not know the brick */
    SERVES_OLD_FOPS,
    DUMP_FAILS,
    DUMP_IS_GARBAGE,
    DUMP_IS_REFUSED, /* by RPC */
    REFUSES,         /* EACCES with a text */
    IS_NOT_READY,    /* EAGAIN, an empty dict */
    OTHER_VOLUME,
    LOGIN_IS_GARBAGE,
    SAYS_NOTHING,    /* no answer to SETVOLUME */
    HANGS_UP,        /* at DUMP, as a stock brick with TLS does */
    MANNERS,
};
static atomic_int manner, bad_times, ended_how;
static atomic_uint logins, unreachable;
static struct brick_peer *brick;
static sem_t came_up, went_down, was_refused, gone, called;
static char seen_uuid[256], seen_extra[64], seen_volume[64];
static atomic_bool child_is_down;

/* ---- the peer -------------------------------------------------------------------------------- */

static void
put_body(int fd, uint32_t xid, struct xdr *x, const char *start)
{
    ck_assert_int_eq(x->error, 0);
    peer_reply(fd, xid, start, (size_t)(x->at - start));
}

static void
answer_dump(int fd, uint32_t xid, enum manner how)
{
    struct dump_entry fops = {
        .name = "fops", .number = FOP_PROGRAM, .version = how == SERVES_OLD_FOPS ? 330 : 400};
    struct dump_entry portmap = {
        .name = "portmap", .number = PORTMAP_PROGRAM, .version = PORTMAP_PROGRAM_VERSION, .next = &fops};
    bool is_glusterd = how == IS_GLUSTERD || how == NAMES_DEAD_PORT || how == HAS_NO_PORT;
    struct dump_reply d = {.programs = is_glusterd ? &portmap : &fops};
    char bytes[256], error[RPC_REPLY_ERROR_BYTES_MAX];
    struct xdr x;

    if (how == HANGS_UP) {
        shutdown(fd, SHUT_RDWR);
        return;
    }
    if (how == DUMP_IS_REFUSED) {
        peer_send(fd, error, rpc_encode_error(error, xid, RPC_PROG_UNAVAIL), NULL, 0);
        return;
    }
    if (how == DUMP_FAILS) {
        d.op_ret = -1;
        d.op_errno = EIO;
    }
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_dump_reply(&x, &d);
    if (how == DUMP_IS_GARBAGE)
        xdr_store_u32(x.at - 4, 7);
    put_body(fd, xid, &x, bytes);
}

static void
answer_port(int fd, uint32_t xid, enum manner how)
{
    struct port_by_brick_reply r = {.op_ret = how == HAS_NO_PORT ? -1 : 0,
                                    .port = how == HAS_NO_PORT ? 0 : peer.port};
    char bytes[64];
    struct xdr x;

    if (how == NAMES_DEAD_PORT) {
        r.port = 1;
        atomic_store(&manner, IS_GLUSTERD);
    }
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_port_by_brick_reply(&x, &r);
    put_body(fd, xid, &x, bytes);
}

static void
look_at_login(struct xdr *args, struct arena *arena)
{
    args->arena = arena;
    struct dict *d = xdr_get_old_dict(args);
    const char *uuid = dict_get_str(d, DICT_KEY_PROCESS_UUID),
               *volume = dict_get_str(d, DICT_KEY_SV_VOLUME_ID);
    const struct dict_pair *extra = dict_find_text(d, "ping-timeout");

    ck_assert_ptr_nonnull(d);
    ck_assert_str_eq(dict_get_str(d, DICT_KEY_REMOTE_SUBVOLUME), "/brick");
    ck_assert_str_eq(dict_get_str(d, DICT_KEY_FOPS_VERSION), "1298437");
    snprintf(seen_uuid, sizeof seen_uuid, "%s", uuid);
    snprintf(seen_volume, sizeof seen_volume, "%s", volume ? volume : "");
    snprintf(seen_extra, sizeof seen_extra, "%s", extra ? dict_pair_str(extra) : "");
}

static void
answer_login(int fd, uint32_t xid, struct xdr *args, enum manner how)
{
    struct arena arena = {0};
    struct common_reply r = {.dict = how == IS_NOT_READY ? NULL : dict_new(&arena)};
    char bytes[512];
    struct xdr x;

    logins++;
    look_at_login(args, &arena);
    if (how == REFUSES || how == IS_NOT_READY) {
        r.op_ret = -1;
        r.op_errno = how == REFUSES ? EACCES : EAGAIN;
    }
    if (how == REFUSES)
        ck_assert_int_eq(dict_set_str(r.dict, DICT_KEY_ERROR, "not you"), 0);
    if (r.dict) {
        ck_assert_int_eq(
            dict_set_str(r.dict, DICT_KEY_SV_VOLUME_ID, how == OTHER_VOLUME ? OTHER_ID : VOLUME_ID), 0);
        ck_assert_int_eq(dict_set_int(r.dict, DICT_KEY_CHILD_UP, !child_is_down), 0);
    }
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_common_reply(&x, &r);
    if (how == LOGIN_IS_GARBAGE)
        xdr_store_u32(bytes + 8, 0x7fffffff);
    if (how != SAYS_NOTHING)
        put_body(fd, xid, &x, bytes);
    arena_release(&arena);
}

static void
answer_getspec(int fd, uint32_t xid, struct xdr *args)
{
    struct arena arena = {0};
    static char text[100001];
    struct getspec_call c;
    struct getspec_reply r = {.spec = ""};

    args->arena = &arena;
    xdr_get_getspec_call(args, &c);
    ck_assert_int_eq(args->error, 0);
    memset(text, 'v', sizeof text - 1);
    if (strcmp(c.key, "none") == 0) {
        r.op_ret = -1;
        r.op_errno = ENOENT;
    } else {
        const struct dict_pair *max = dict_find_text(c.xdata, "max-op-version");

        ck_assert_str_eq(dict_pair_str(max), "100000");
        r.spec = text;
        r.op_ret = strcmp(c.key, "liar") == 0 ? 5 : (int32_t)strlen(text);
    }
    size_t size = 12 + xdr_string_size(r.spec) + 4;
    char *bytes = malloc(size);
    struct xdr x;

    xdr_init(&x, bytes, size, NULL);
    xdr_put_getspec_reply(&x, &r);
    put_body(fd, xid, &x, bytes);
    free(bytes);
    arena_release(&arena);
}

static void
answer_sign(int fd, uint32_t xid, struct xdr *args)
{
    struct portmap_sign s;
    char bytes[8];

    xdr_get_portmap_sign(args, &s);
    ck_assert_int_eq(args->error, 0);
    ck_assert_int_eq(s.port, 49153);
    bool is_known = strcmp(s.brick, "/brick") == 0;

    xdr_store_u32(bytes, is_known ? 0 : UINT32_MAX);
    xdr_store_u32(bytes + 4, is_known ? 0 : EINVAL);
    peer_reply(fd, xid, bytes, sizeof bytes);
}

static void
answer(int fd, const struct rpc_call_head *head, struct xdr *args)
{
    enum manner how = (enum manner)atomic_load(&manner);

    if (head->program == DUMP_PROGRAM && head->procedure == DUMP_DUMP) {
        if (atomic_load(&bad_times) == 0)
            atomic_store(&manner, how = GOOD);
        else
            bad_times--;
        answer_dump(fd, head->xid, how);
    } else if (head->program == PORTMAP_PROGRAM && head->procedure == PORTMAP_PORTBYBRICK) {
        answer_port(fd, head->xid, how);
    } else if (head->program == PORTMAP_PROGRAM) {
        answer_sign(fd, head->xid, args);
    } else if (head->program == HANDSHAKE_PROGRAM && head->procedure == HANDSHAKE_GETSPEC) {
        answer_getspec(fd, head->xid, args);
    } else if (head->program == HANDSHAKE_PROGRAM) {
        ck_assert_uint_eq(head->cred_flavor, CRED_GLUSTERFS_V3);
        answer_login(fd, head->xid, args, how);
    }
}

/* ---- the owner ------------------------------------------------------------------------------- */

static void
owner_up(struct brick_peer *p, const struct brick_login *login, void *arg)
{
    (void)p;
    (void)arg;
    ck_assert_str_eq(login->volume_id, VOLUME_ID);
    ck_assert(login->is_child_up == !child_is_down);
    sem_post(&came_up);
}

static void
owner_down(struct brick_peer *p, void *arg)
{
    (void)p;
    (void)arg;
    sem_post(&went_down);
}

static void
owner_refused(struct brick_peer *p, int op_errno, const char *words, void *arg)
{
    (void)p;
    (void)arg;
    ck_assert_str_eq(words, op_errno == EACCES ? "not you" : "");
    sem_post(&was_refused);
}

static void
owner_called(struct brick_peer *p, const struct rpc_call_head *head, struct xdr *args, void *arg)
{
    (void)p;
    (void)args;
    (void)arg;
    ck_assert_uint_eq(head->program, 52743234);
    sem_post(&called);
}

static void
owner_gone(void *arg)
{
    ck_assert_ptr_eq(arg, &brick);
    sem_post(&gone);
}

static void
owner_unreachable(struct brick_peer *p, void *arg)
{
    char why[TLS_FAILURE_MAX];

    (void)arg;
    unreachable++;
    brick_peer_failure(p, why, sizeof why);
    ck_assert_int_eq(strstr(why, "may demand TLS") != NULL, ended_how == HANGS_UP);
}

static const struct brick_peer_ops owner_ops = {.up = owner_up,
                                                .down = owner_down,
                                                .unreachable = owner_unreachable,
                                                .refused = owner_refused,
                                                .called = owner_called,
                                                .gone = owner_gone};

/* ---- fixture --------------------------------------------------------------------------------- */

static void
setup(void)
{
    sem_t *all[] = {&came_up, &went_down, &was_refused, &gone, &called};

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sem_init(all[i], 0, 0);
    client_process_setup(answer);
}

static struct rpc_client_options
rpc_options(void)
{
    return (struct rpc_client_options){
        .name = "v-client-0",
        .where = {.host = "127.0.0.1", .port = peer.port},
        .ping_timeout_s = 1,
        .retry_min_ms = 1,
        .tick_ms = 10,
    };
}

static void
start(const char *volume_id)
{
    static const struct brick_peer_text texts[] = {{"ping-timeout", "42"}, {"remote-subvolume", "/another"}};
    int err;

    brick = brick_peer_new(
        &(struct brick_peer_options){
            .rpc = rpc_options(),
            .brick = "/brick",
            .process_uuid = "CTX_ID:test",
            .process_name = "test",
            .volume_id = volume_id,
            .texts = texts,
            .text_count = 2,
        },
        &owner_ops, &brick, &err);
    ck_assert_ptr_nonnull(brick);
    brick_peer_start(brick);
}

static void
finish(void)
{
    brick_peer_close(brick);
    wait_on(&gone);
    brick = NULL;
}

static void
teardown(void)
{
    if (brick)
        finish();
    client_process_teardown();
}

/* ---- bricks ---------------------------------------------------------------------------------- */

START_TEST(a_login_has_a_new_number_after_each_reconnection)
{
    start(VOLUME_ID);
    wait_on(&came_up);
    ck_assert_str_eq(seen_uuid, "CTX_ID:test-RECON_NO:-0");
    ck_assert_str_eq(seen_extra, "42");
    ck_assert_str_eq(seen_volume, VOLUME_ID);
    peer_hang_up();
    wait_on(&went_down);
    wait_on(&came_up);
    ck_assert_str_eq(seen_uuid, "CTX_ID:test-RECON_NO:-1");
}
END_TEST

/* The brick names its volume; from then on no other volume is accepted. */
START_TEST(the_client_takes_the_volume_id_of_the_brick)
{
    start(NULL);
    wait_on(&came_up);
    ck_assert_str_eq(seen_volume, "");
    atomic_store(&bad_times, 2);
    atomic_store(&manner, OTHER_VOLUME);
    peer_hang_up();
    wait_on(&came_up);
    ck_assert_str_eq(seen_volume, VOLUME_ID);
    ck_assert_uint_eq(logins, 4);
}
END_TEST

START_TEST(the_client_logs_in_to_a_brick_whose_child_is_down)
{
    child_is_down = true;
    start(NULL);
    wait_on(&came_up);
}
END_TEST

/* Glusterd names the port; after a lost connection the client asks glusterd again. */
START_TEST(the_client_asks_glusterd_for_the_port_of_the_brick)
{
    for (int i = 0; i < 2; i++) {
        atomic_store(&bad_times, 1);
        atomic_store(&manner, IS_GLUSTERD);
        if (i == 0)
            start(NULL);
        else
            peer_hang_up();
        wait_on(&came_up);
    }
    ck_assert_uint_eq(peer.conn_count, 4);
}
END_TEST

/* Glusterd may still know the port of a brick that has gone. A refused connection there does not predict
 * the next attempt, which asks glusterd again. */
START_TEST(the_client_asks_again_after_a_dead_port)
{
    atomic_store(&bad_times, 2);
    atomic_store(&manner, NAMES_DEAD_PORT);
    start(NULL);
    wait_on(&came_up);
    ck_assert_uint_eq(peer.conn_count, 3);
    ck_assert_uint_eq(unreachable, 1);
}
END_TEST

/* Each error ends the connection twice; then the brick behaves, and the login succeeds. */
START_TEST(the_client_tries_again_after_every_failure)
{
    for (int how = IS_GLUSTERD; how < MANNERS; how++) {
        atomic_store(&bad_times, 2);
        atomic_store(&manner, how);
        atomic_store(&ended_how, how);
        atomic_store(&unreachable, 0);
        start(VOLUME_ID);
        wait_on(&came_up);
        ck_assert_int_eq(bad_times, 0);
        /* the way over glusterd's port is no failure, nor is the first end without an answer */
        bool is_one = how == IS_GLUSTERD || how == NAMES_DEAD_PORT || how == HANGS_UP;
        ck_assert_uint_ge(unreachable, is_one ? 1 : 2);
        ck_assert_int_eq(sem_trywait(&went_down), -1); /* up is called once, down never */
        if (how == REFUSES || how == IS_NOT_READY) {
            wait_on(&was_refused);
            wait_on(&was_refused);
        }
        ck_assert_int_eq(sem_trywait(&was_refused), -1);
        finish();
        ck_assert_int_eq(sem_trywait(&went_down), -1); /* the owner that closes the peer gets no event */
    }
}
END_TEST

START_TEST(a_callback_of_the_brick_reaches_its_handler)
{
    start(VOLUME_ID);
    wait_on(&came_up);
    pthread_mutex_lock(&peer.lock);
    peer_call(peer.conns[0], 52743234, 1, 6, NULL, 0);
    pthread_mutex_unlock(&peer.lock);
    wait_on(&called);
}
END_TEST

/* ---- glusterd -------------------------------------------------------------------------------- */

static struct rpc_client *glusterd;
static int last_err;
static size_t last_bytes;
static sem_t answered;

static void
glusterd_connected(struct rpc_client *c, void *arg)
{
    (void)arg;
    ck_assert(rpc_client_up(c));
    sem_post(&came_up);
}

static void
spec_came(struct rpc_reply *r, void *arg)
{
    struct arena arena = {0};
    struct glusterd_spec spec = {0};

    (void)arg;
    last_err = glusterd_getspec_reply(r, &arena, &spec);
    last_bytes = spec.bytes;
    if (!last_err)
        ck_assert_uint_eq(strspn(spec.text, "v"), spec.bytes);
    arena_release(&arena);
    sem_post(&answered);
}

static void
signed_in(struct rpc_reply *r, void *arg)
{
    (void)arg;
    last_err = portmap_sign_reply(r);
    sem_post(&answered);
}

static int
spec_of(const char *id, const char *brick_name)
{
    int err = glusterd_getspec(glusterd, id, brick_name, spec_came, NULL);

    if (err)
        return err;
    wait_on(&answered);
    return last_err;
}

START_TEST(calls_to_glusterd_are_answered)
{
    static const struct rpc_client_ops ops = {.connected = glusterd_connected, .gone = owner_gone};
    struct rpc_client_options o = rpc_options();
    static char long_name[5000];
    int err;

    o.is_trusted = true;
    sem_init(&answered, 0, 0);
    glusterd = rpc_client_new(&o, &ops, &brick, &err);
    rpc_client_start(glusterd);
    wait_on(&came_up);
    ck_assert_int_eq(spec_of("volume", "/brick"), 0);
    ck_assert_uint_eq(last_bytes, 100000);
    ck_assert_int_eq(spec_of("volume", NULL), 0);
    ck_assert_int_eq(spec_of("none", NULL), -ENOENT);
    memset(long_name, 'n', sizeof long_name - 1);
    ck_assert_int_eq(spec_of(long_name, NULL), -ENAMETOOLONG);
    ck_assert_int_eq(portmap_signin(glusterd, "/brick", 49153, 1, signed_in, NULL), 0);
    wait_on(&answered);
    ck_assert_int_eq(last_err, 0);
    ck_assert_int_eq(portmap_signout(glusterd, "/none", 49153, signed_in, NULL), 0);
    wait_on(&answered);
    ck_assert_int_eq(last_err, -EINVAL);
    ck_assert_int_eq(portmap_signout(glusterd, long_name, 49153, signed_in, NULL), -ENAMETOOLONG);
    ck_assert_int_eq(spec_of("liar", NULL), -EBADMSG);
    wait_on(&came_up); /* this has ended the connection */
    ck_assert_int_eq(spec_of("volume", NULL), 0);
    rpc_client_close(glusterd);
    wait_on(&gone);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("brick-peer");
    TCase *t = tcase_create("brick-peer");

    tcase_set_timeout(t, 30);
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_login_has_a_new_number_after_each_reconnection);
    tcase_add_test(t, the_client_takes_the_volume_id_of_the_brick);
    tcase_add_test(t, the_client_logs_in_to_a_brick_whose_child_is_down);
    tcase_add_test(t, the_client_asks_glusterd_for_the_port_of_the_brick);
    tcase_add_test(t, the_client_asks_again_after_a_dead_port);
    tcase_add_test(t, the_client_tries_again_after_every_failure);
    tcase_add_test(t, a_callback_of_the_brick_reaches_its_handler);
    tcase_add_test(t, calls_to_glusterd_are_answered);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
