/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A server with GF-DUMP and a fop program of a few handlers; the client writes raw bytes over TCP. */
#include <arpa/inet.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "data/dict.h"
#include "event/worker.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/server/rpc-server.h"
#include "rpc/xdr/callback-program.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/test-vector.h"

enum { LOGIN_PROGRAM = 77, ENTRIES = 400, ANSWER_WAIT_MS = 60000 };

static struct rpc_server *server;
static struct listener *listener;
static atomic_int closed_count;
static _Atomic(struct rpc_request *) kept;
static int fd;

/* ---- handlers -------------------------------------------------------------------------------- */

static void
login(struct rpc_request *req)
{
    conn_set_trusted(req->conn);
    ck_assert_int_eq(rpc_callback(req->conn, CALLBACK_CHILD_UP, NULL, 0), 0);
    ck_assert_int_eq(rpc_callback(req->conn, CALLBACK_CHILD_DOWN, NULL, 0), 0);
    rpc_reply(req, "done", 4, NULL, NULL, 0);
}

static void
lookup(struct rpc_request *req)
{
    if (!rpc_fop_decode(req))
        return;
    ck_assert_uint_eq(req->stk.caller.uid, 7);
    ck_assert_str_eq(req->stk.call.name, "name");
    rpc_fop_reply_error(req, ENOENT);
}

static void
serve_readv(struct rpc_request *req)
{
    struct fop_reply *r = &req->stk.reply;

    if (!rpc_fop_decode(req))
        return;
    r->iobuf = iobuf_get(req->stk.call.size);
    memset(r->iobuf->bytes, 'r', req->stk.call.size);
    r->op_ret = (int32_t)req->stk.call.size;
    r->payload = (struct iovec){r->iobuf->bytes, req->stk.call.size};
    rpc_fop_reply(req);
}

static void
readdirp(struct rpc_request *req)
{
    if (!rpc_fop_decode(req))
        return;
    for (int i = 0; i < ENTRIES; i++) {
        struct dirent_entry *e = arena_zalloc(&req->stk.arena, sizeof *e);

        e->name = "entry";
        e->name_len = 5;
        e->next = req->stk.reply.entries;
        req->stk.reply.entries = e;
    }
    req->stk.reply.op_ret = ENTRIES;
    rpc_fop_reply(req);
}

/* The test answers this later. */
static void
fsync_kept(struct rpc_request *req)
{
    if (rpc_fop_decode(req))
        atomic_store(&kept, req);
}

static void
serve_writev(struct rpc_request *req)
{
    if (!rpc_fop_decode(req))
        return;
    size_t wrong = 0; /* one assertion for all bytes, because Check sends its parent a message for each
                       * assertion */
    req->stk.reply.op_ret = (int32_t)req->stk.call.payload_bytes;
    for (int i = 0; i < req->stk.call.payload_count; i++) {
        const char *bytes = req->stk.call.payload[i].iov_base;

        for (size_t at = 0; at < req->stk.call.payload[i].iov_len; at++)
            wrong += bytes[at] != 'w';
    }
    ck_assert_uint_eq(wrong, 0);
    rpc_fop_reply(req);
}

static void
refuse(struct rpc_request *req)
{
    if (req->procedure == FOP_release)
        rpc_request_drop(req);
    else
        rpc_reply_error(req, RPC_GARBAGE_ARGS);
}

static const struct rpc_procedure fop_procedures[] = {
    [FOP_readv] = {"READ", serve_readv},     [FOP_writev] = {"WRITE", serve_writev},
    [FOP_lookup] = {"LOOKUP", lookup},       [FOP_fsync] = {"FSYNC", fsync_kept},
    [FOP_readdirp] = {"READDIRP", readdirp}, [FOP_release] = {"RELEASE", lookup},
};
static const struct rpc_program fop_program = {
    .name = "GlusterFS 4.x v1",
    .number = FOP_PROGRAM,
    .version = FOP_PROGRAM_VERSION,
    .procedures = fop_procedures,
    .procedure_count = FOP_release + 1,
    .is_listed = true,
    .needs_login = true,
    .takes_pieces = true,
    .refuse = refuse,
};
static const struct rpc_procedure login_procedures[] = {{"LOGIN", login}};
static const struct rpc_program login_program = {
    .name = "login",
    .number = LOGIN_PROGRAM,
    .version = 1,
    .procedures = login_procedures,
    .procedure_count = 1,
};
static const struct rpc_program *const programs[] = {&fop_program, &rpc_dump_program, &login_program, NULL};

static void
closed(struct conn *c, void *arg)
{
    (void)c;
    ck_assert_ptr_eq(arg, &closed_count);
    closed_count++;
}

/* ---- the client ------------------------------------------------------------------------------ */

static int
dial(void)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons(listener_port(listener)),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int s = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

    ck_assert_int_eq(connect(s, (struct sockaddr *)&a, sizeof a), 0);
    return s;
}

static void
setup(void)
{
    int err = 0;

    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(rpc_server_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3}), 0);
    server = rpc_server_new(programs, closed, &closed_count);
    listener = listener_open_tcp("127.0.0.1", 0, &rpc_server_transport_ops, server, &err);
    ck_assert_ptr_nonnull(listener);
    fd = dial();
}

static void
teardown(void)
{
    close(fd);
    listener_close(listener);
    transport_close_all();
    ck_assert_int_gt(closed_count, 0);
    workers_stop();
    rpc_server_free(server);
    mem_pools_fini();
}

static void
send_record(const void *bytes, size_t n)
{
    char mark[4];

    xdr_store_u32(mark, 0x80000000u | (uint32_t)n);
    ck_assert_int_eq(send(fd, mark, 4, MSG_NOSIGNAL | MSG_MORE), 4);
    ck_assert_int_eq(send(fd, bytes, n, MSG_NOSIGNAL), (ssize_t)n);
}

static void
send_hex(const char *hex)
{
    static char bytes[1 << 16];

    send_record(bytes, vector_bytes(hex, bytes, sizeof bytes));
}

/* Receives exactly n bytes; fewer only at the end of the connection. */
static size_t
receive(char *out, size_t n)
{
    size_t have = 0;

    while (have < n) {
        struct pollfd p = {.fd = fd, .events = POLLIN};

        ck_assert_int_eq(poll(&p, 1, ANSWER_WAIT_MS), 1);
        ssize_t got = recv(fd, out + have, n - have, 0);

        if (got <= 0)
            break;
        have += (size_t)got;
    }
    return have;
}

static size_t
receive_record(char *out, size_t room)
{
    char mark[4];
    size_t n;

    ck_assert_uint_eq(receive(mark, 4), 4);
    ck_assert(xdr_load_u32(mark) & 0x80000000u);
    n = xdr_load_u32(mark) & 0x7fffffffu;
    ck_assert_uint_le(n, room);
    ck_assert_uint_eq(receive(out, n), n);
    return n;
}

static void
expect_hex(const char *hex)
{
    static char expected[1 << 16], got[1 << 16];
    size_t n = vector_bytes(hex, expected, sizeof expected);

    ck_assert_uint_eq(receive_record(got, sizeof got), n);
    ck_assert_mem_eq(got, expected, n);
}

#define V2_CRED " 0005f397 00000018 *12 00000000 00000004 00000000 *8 "
#define NO_CRED " *16 "
#define SEVEN_CRED " 0005f397 00000018 00000001 00000007 00000007 00000000 00000000 00000000 *8 "
#define SUCCESS " 00000001 *16 "
#define NULL_DICT " 00000000 ffffffff 00000000 "

static void
log_in(void)
{
    send_hex("00000001 00000000 00000002 0000004d 00000001 00000000" NO_CRED);
    expect_hex("00000001 00000000 00000002 0324cc42 00000001 00000006 *16");
    expect_hex("00000002 00000000 00000002 0324cc42 00000001 00000007 *16");
    expect_hex("00000001" SUCCESS "646f6e65");
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(dump_and_ping_before_login)
{
    send_hex("00000002 00000000 00000002 075bb86d 00000001 00000001" V2_CRED "000000000000caed");
    expect_hex(
        "00000002" SUCCESS "*8 *8 00000001 00000010 476c757374657246532034 2e78207631 000000000013d005 "
        "0000000000000190 00000001 00000007 47462d44554d50 00 00000000075bb86d 0000000000000001 00000000");
    send_hex("00000003 00000000 00000002 075bb86d 00000001 00000002" V2_CRED);
    expect_hex("00000003" SUCCESS "*12");
}
END_TEST

START_TEST(unknown_programs_versions_and_procedures_get_rpc_errors)
{
    send_hex("00000011 00000000 00000002 000000ff 00000001 00000001" NO_CRED);
    expect_hex("00000011 00000001 *12 00000001");
    send_hex("00000012 00000000 00000002 0013d005 0000014a 0000001b" NO_CRED);
    expect_hex("00000012 00000001 *12 00000002 *8");
    send_hex("00000013 00000000 00000002 075bb86d 00000001 00000000" NO_CRED);
    expect_hex("00000013 00000001 *12 00000003");
    send_hex("00000014 00000000 00000002 075bb86d 00000001 00000003" NO_CRED);
    expect_hex("00000014 00000001 *12 00000003");
    send_hex("00000015 00000000 00000002 075bb86d 00000001 00000001" NO_CRED "000000");
    expect_hex("00000015 00000001 *12 00000004");
    send_hex("00000016 00000000 00000002 075bb86d 00000001 00000002 00000005 00000058 *20 00000011 *64 *8");
    expect_hex("00000016 00000001 00000001 00000001 00000000");
}
END_TEST

START_TEST(invalid_headers_get_garbage_args)
{
    static const char *const rows[] = {
        "00000011",
        "00000011 00000000 00000003 075bb86d 00000001 00000002" NO_CRED,
        "00000011 00000001 00000000 *16",
        "00000011 00000000 00000002 075bb86d 00000001 00000002 00000000 00000194 *404 *8",
        "00000011 00000000 00000002 075bb86d 00000001 00000002 00000000 00000010",
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        send_hex(rows[i]);
        expect_hex("00000000 00000001 *12 00000004");
    }
}
END_TEST

START_TEST(an_unknown_message_type_ends_the_connection)
{
    char byte;

    send_hex("00000011 00000002 00000002 075bb86d 00000001 00000002" NO_CRED);
    ck_assert_uint_eq(receive(&byte, 1), 0);
}
END_TEST

START_TEST(fops_need_a_login)
{
    send_hex("00000021 00000000 00000002 0013d005 00000190 0000001b" NO_CRED "*64");
    expect_hex("00000021 00000001 *12 00000004");
    send_hex("00000022 00000000 00000002 0013d005 00000190 00000029" NO_CRED "*36"); /* RELEASE: no answer */
    send_hex("00000023 00000000 00000002 075bb86d 00000001 00000002" NO_CRED);
    expect_hex("00000023" SUCCESS "*12");
}
END_TEST

START_TEST(the_reply_of_a_failed_fop_has_its_full_layout)
{
    log_in();
    send_hex("00000031 00000000 00000002 0013d005 00000190 0000001b" SEVEN_CRED
             "*16 *15 01 00000000 00000004 6e616d65" NULL_DICT);
    expect_hex("00000031" SUCCESS "ffffffff 00000002" NULL_DICT "*296");
    send_hex("00000032 00000000 00000002 0013d005 00000190 0000001b" SEVEN_CRED
             "*16 *15 01 00000000 00000004 6e61");
    expect_hex("00000032 00000001 *12 00000004");
    send_hex("00000033 00000000 00000002 0013d005 00000190 0000001b" SEVEN_CRED
             "*16 *15 01 00000000 00000130 *304" NULL_DICT);
    expect_hex("00000033" SUCCESS "ffffffff 00000016" NULL_DICT "*296"); /* a name of NULs: EINVAL */
}
END_TEST

START_TEST(reads_and_writes_carry_their_payload)
{
    enum { BIG = 1 << 20 };
    char *big = malloc(BIG + 1024);
    size_t head;

    log_in();
    send_hex("00000041 00000000 00000002 0013d005 00000190 0000000c" NO_CRED
             "*16 *8 *8 00000005 00000000" NULL_DICT);
    expect_hex("00000041" SUCCESS "00000005 00000000 *148 00000005" NULL_DICT "7272727272");
    send_hex("00000042 00000000 00000002 0013d005 00000190 0000000d" NO_CRED
             "*16 *8 *8 00000003 00000000" NULL_DICT "777777");
    expect_hex("00000042" SUCCESS "00000003 00000000" NULL_DICT "*296");
    send_hex("00000043 00000000 00000002 0013d005 00000190 0000000d" NO_CRED
             "*16 *8 *8 00000004 00000000" NULL_DICT "777777");
    expect_hex("00000043" SUCCESS "ffffffff 00000016" NULL_DICT "*296");

    head = vector_bytes("00000044 00000000 00000002 0013d005 00000190 0000000d" NO_CRED
                        "*16 *8 *8 00100000 00000000" NULL_DICT,
                        big, 1024);
    memset(big + head, 'w', BIG);
    send_record(big, head + BIG);
    expect_hex("00000044" SUCCESS "00100000 00000000" NULL_DICT "*296");

    send_hex("00000045 00000000 00000002 0013d005 00000190 0000000c" NO_CRED
             "*16 *8 *8 00100000 00000000" NULL_DICT);
    ck_assert_uint_eq(receive_record(big, BIG + 1024), 24 + 172 + BIG);
    ck_assert_int_eq(big[24 + 172], 'r');
    ck_assert_int_eq(big[24 + 172 + BIG - 1], 'r');
    free(big);
}
END_TEST

START_TEST(a_large_reply_is_one_record)
{
    enum { ENTRY = 4 + 8 + 8 + 4 + 4 + 12 + 148 + 12, ROOM = ENTRIES * ENTRY + 1024 };
    char *bytes = malloc(ROOM);

    log_in();
    send_hex("00000051 00000000 00000002 0013d005 00000190 00000028" NO_CRED "*16 *8 *8 00020000" NULL_DICT);
    ck_assert_uint_eq(receive_record(bytes, ROOM), 24 + 20 + ENTRIES * ENTRY + 4);
    ck_assert_uint_eq(xdr_load_u32(bytes), 0x51);
    ck_assert_uint_eq(xdr_load_u32(bytes + 24), ENTRIES);
    free(bytes);
}
END_TEST

static void
wait_until(bool (*is_true)(void))
{
    for (int i = 0; i < ANSWER_WAIT_MS && !is_true(); i++)
        usleep(1000);
    ck_assert(is_true());
}

static bool
is_kept(void)
{
    return atomic_load(&kept) != NULL;
}

static bool
is_closed(void)
{
    return atomic_load(&closed_count) > 0;
}

START_TEST(a_request_outlives_its_connection)
{
    log_in();
    send_hex("00000061 00000000 00000002 0013d005 00000190 00000010" NO_CRED "*16 *8 00000000" NULL_DICT);
    wait_until(is_kept);
    close(fd);
    fd = -1;
    wait_until(is_closed);
    rpc_fop_reply(atomic_exchange(&kept, NULL));
}
END_TEST

START_TEST(a_late_reply_follows_the_replies_of_later_calls)
{
    log_in();
    send_hex("00000062 00000000 00000002 0013d005 00000190 00000010" NO_CRED "*16 *8 00000000" NULL_DICT);
    wait_until(is_kept);
    send_hex("00000063 00000000 00000002 075bb86d 00000001 00000002" NO_CRED);
    expect_hex("00000063" SUCCESS "*12");
    rpc_fop_reply(atomic_exchange(&kept, NULL));
    expect_hex("00000062" SUCCESS "*8" NULL_DICT "*296");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("rpc-server");
    TCase *tc = tcase_create("rpc-server");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 30);
    tcase_add_test(tc, dump_and_ping_before_login);
    tcase_add_test(tc, unknown_programs_versions_and_procedures_get_rpc_errors);
    tcase_add_test(tc, invalid_headers_get_garbage_args);
    tcase_add_test(tc, an_unknown_message_type_ends_the_connection);
    tcase_add_test(tc, fops_need_a_login);
    tcase_add_test(tc, the_reply_of_a_failed_fop_has_its_full_layout);
    tcase_add_test(tc, reads_and_writes_carry_their_payload);
    tcase_add_test(tc, a_large_reply_is_one_record);
    tcase_add_test(tc, a_request_outlives_its_connection);
    tcase_add_test(tc, a_late_reply_follows_the_replies_of_later_calls);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
