/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Fops of a client, with small and large replies, and with replies of another layout. */

#include "data/dict.h"
#include "mem/mem-shared.h"
#include "rpc/client/rpc-client.h"
#include "rpc/client/test-client.h"
#include "rpc/xdr/fop-codec.h"

enum { LONG_NAME = 2000, BIG = 300000 };

static struct rpc_client *client;
static sem_t came_up, gone, answered;
static struct fop_reply reply;
static struct arena arena;
static atomic_bool cuts_replies, reads_less;

/* ---- the peer -------------------------------------------------------------------------------- */

/* `payload` bytes follow; a reply that is cut ends in the middle of its results. */
static void
answer_with(int fd, uint32_t xid, enum fop fop, const struct fop_reply *r, size_t payload)
{
    size_t head = fop_reply_size(fop, r), size = head + payload;
    char *bytes = calloc(1, size);
    struct xdr x;

    xdr_init(&x, bytes, head, NULL);
    peer_must(fop_encode_reply(fop, &x, r) == 0);
    memset(bytes + head, 'p', payload);
    peer_reply(fd, xid, bytes, cuts_replies ? head / 2 & ~3u : size);
    free(bytes);
}

static void
answer(int fd, const struct rpc_call_head *head, struct xdr *args)
{
    enum fop fop = (enum fop)head->procedure;
    struct arena a = {0};
    struct fop_call c = {0};
    struct fop_reply r = {0};
    size_t payload = 0;

    args->arena = &a;
    peer_must(head->program == FOP_PROGRAM && head->version == FOP_PROGRAM_VERSION);
    peer_must(fop_decode_call(fop, args, &c) == 0);
    if (fop == FOP_readv) {
        r.op_ret = (int32_t)c.size;
        payload = reads_less ? c.size / 2 : c.size;
    } else if (fop == FOP_writev) {
        r.op_ret = (int32_t)c.payload_bytes;
        for (size_t i = 0; i < c.payload_bytes; i++)
            peer_must(((char *)c.payload[0].iov_base)[i] == 'w');
    } else if (fop == FOP_lookup) {
        r.op_ret = -1;
        r.op_errno = strlen(c.name) == LONG_NAME ? ENAMETOOLONG : ENOENT;
    } else if (fop == FOP_getxattr) {
        r.dict = dict_new(&a);
        for (int i = 0; i < 1000; i++) {
            char key[32];

            snprintf(key, sizeof key, "user.%d", i);
            peer_must(dict_set_text(r.dict, key, DICT_PTR, key, (uint32_t)strlen(key)) == 0);
        }
    } else if (fop == FOP_stat) {
        r.stat.size = 4711;
    } else if (fop == FOP_access) {
        r.op_ret = -1;
        r.op_errno = (int32_t)c.flags;
    } else if (fop == FOP_inodelk) {
        r.op_ret = -1;
        r.op_errno = (int32_t)c.flock.len;
    }
    answer_with(fd, head->xid, fop, &r, payload);
    arena_release(&a);
}

/* ---- the client ------------------------------------------------------------------------------ */

static void
owner_connected(struct rpc_client *c, void *arg)
{
    (void)arg;
    rpc_client_set_cred(c, CRED_GLUSTERFS_V3);
    ck_assert(rpc_client_up(c));
    sem_post(&came_up);
}

static void
owner_gone(void *arg)
{
    (void)arg;
    sem_post(&gone);
}

static void
setup(void)
{
    static const struct rpc_client_ops ops = {.connected = owner_connected, .gone = owner_gone};
    sem_t *all[] = {&came_up, &gone, &answered};
    int err;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sem_init(all[i], 0, 0);
    client_process_setup(answer);
    client = rpc_client_new(
        &(struct rpc_client_options){
            .name = "brick", .where = {.host = "127.0.0.1", .port = peer.port}, .retry_min_ms = 1},
        &ops, NULL, &err);
    ck_assert_ptr_nonnull(client);
    rpc_client_start(client);
    wait_on(&came_up);
}

static void
release(void)
{
    iobuf_unref(reply.iobuf);
    arena_release(&arena);
    reply = (struct fop_reply){0};
}

static void
teardown(void)
{
    release();
    rpc_client_close(client);
    wait_on(&gone);
    client_process_teardown();
}

static enum fop asked;

static void
fop_answered(struct rpc_reply *r, void *arg)
{
    ck_assert_ptr_eq(arg, &asked);
    rpc_reply_fop(r, asked, &reply, &arena);
    sem_post(&answered);
}

static int
ask(const struct fop_call *call, struct iobuf *payload)
{
    release();
    asked = call->fop;
    int err = rpc_client_fop(client, call, NULL, payload, 0, fop_answered, &asked);

    if (err)
        return err;
    wait_on(&answered);
    return reply.op_ret < 0 ? -reply.op_errno : 0;
}

static bool
is_all(const void *bytes, size_t n, char c)
{
    const char *at = bytes;

    for (size_t i = 0; i < n; i++) {
        if (at[i] != c)
            return false;
    }
    return true;
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(small_fops_are_answered_and_counted)
{
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_stat}, NULL), 0);
    ck_assert_uint_eq(reply.stat.size, 4711);
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_lookup, .name = "none"}, NULL), -ENOENT);
    ck_assert_uint_eq(rpc_client_fops_sent(client, FOP_stat), 1);
    ck_assert_uint_eq(rpc_client_fops_sent(client, FOP_lookup), 1);
    ck_assert_uint_eq(rpc_client_fops_sent(client, FOP_open), 0);
}
END_TEST

/* An errno that the kernel accepts from no FUSE server, or that means no failure, becomes EIO. */
START_TEST(invalid_error_numbers_become_eio)
{
    static const struct {
        int32_t sent;
        int heard;
    } numbers[] = {{EHWPOISON, EHWPOISON}, {511, 511},  {512, EIO},       {24996, EIO},
                   {INT32_MAX, EIO},       {0, EIO},    {INT32_MIN, EIO}, {-5, EIO}};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct fop_call call = {.fop = FOP_access, .flags = (uint32_t)numbers[i].sent};

        ck_assert_int_eq(ask(&call, NULL), -numbers[i].heard);
    }
}
END_TEST

/* The lock may be granted, and ends with the connection. */
START_TEST(an_invalid_error_number_of_a_lock_ends_the_connection)
{
    static const struct {
        int32_t sent;
        int heard;
    } numbers[] = {{EAGAIN, EAGAIN}, {0, EIO}, {24996, ENOTCONN}, {INT32_MAX, ENOTCONN}};

    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        const struct fop_call call = {
            .fop = FOP_inodelk, .name = "domain", .type = FLOCK_WRITE, .flock = {.len = numbers[i].sent}};

        ck_assert_int_eq(ask(&call, NULL), -numbers[i].heard);
        if (numbers[i].heard == ENOTCONN)
            wait_on(&came_up); /* again */
    }
}
END_TEST

/* A call that is not built on the C stack. */
START_TEST(a_name_of_2000_bytes_reaches_the_peer)
{
    char name[LONG_NAME + 1];

    memset(name, 'n', LONG_NAME);
    name[LONG_NAME] = '\0';
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_lookup, .name = name}, NULL), -ENAMETOOLONG);
}
END_TEST

START_TEST(reads_of_all_sizes_return_the_sent_bytes)
{
    static const size_t sizes[] = {1, 100, 4096, 131072, BIG};

    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_readv, .size = sizes[i]}, NULL), 0);
            ck_assert_uint_eq(reply.payload.iov_len, sizes[i]);
            ck_assert(is_all(reply.payload.iov_base, sizes[i], 'p'));
        }
    }
}
END_TEST

/* By reference, and copied from several pieces when no buffer is given. */
START_TEST(a_write_of_two_pieces_and_an_empty_write_succeed)
{
    struct iobuf *buf = iobuf_get(BIG);

    memset(buf->bytes, 'w', BIG);
    struct fop_call call = {
        .fop = FOP_writev,
        .size = BIG,
        .payload = {{buf->bytes, 1000}, {buf->bytes + 1000, BIG - 1000}},
        .payload_count = 2,
        .payload_bytes = BIG,
    };

    ck_assert_int_eq(ask(&call, iobuf_ref(buf)), 0);
    ck_assert_int_eq(reply.op_ret, BIG);
    ck_assert_int_eq(ask(&call, NULL), 0);
    ck_assert_int_eq(reply.op_ret, BIG);
    iobuf_unref(buf);
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_writev}, NULL), 0);
}
END_TEST

START_TEST(a_reply_with_a_thousand_xattrs_is_decoded)
{
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_getxattr, .name = ""}, NULL), 0);
    ck_assert_uint_eq(reply.dict->count, 1000);
    ck_assert_ptr_nonnull(dict_find_text(reply.dict, "user.999"));
}
END_TEST

/* Each ends the connection, and the call gets ENOTCONN. */
START_TEST(a_truncated_reply_ends_the_connection)
{
    static const enum fop fops[] = {FOP_stat,     FOP_lookup, FOP_readv,   FOP_writev,
                                    FOP_getxattr, FOP_statfs, FOP_readdirp};
    struct rpc_client_stats s;

    cuts_replies = true;
    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        ck_assert_int_eq(ask(&(struct fop_call){.fop = fops[i], .name = "none", .size = 0}, NULL), -ENOTCONN);
        wait_on(&came_up);
    }
    cuts_replies = false;
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_stat}, NULL), 0);
    rpc_client_stats(client, &s);
    ck_assert_uint_eq(s.losses, sizeof fops / sizeof fops[0]);
}
END_TEST

/* A READ reply that announces more bytes than it has. */
START_TEST(a_read_reply_with_a_wrong_length_ends_the_connection)
{
    reads_less = true;
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_readv, .size = 100}, NULL), -ENOTCONN);
    wait_on(&came_up);
    reads_less = false;
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_readv, .size = 100}, NULL), 0);
}
END_TEST

/* ---- without memory -------------------------------------------------------------------------- */

/* Takes all buffers that exist, `all` and new ones, in a list through their first bytes. */
static struct iobuf *
take_all_buffers(struct iobuf *all)
{
    static const size_t sizes[] = {4096, 16384, 65536, 131072, 1048576};
    struct iobuf *b;

    mem_pools_trim(2);
    mem_test_fail_always = true;
    mem_test_fail_at = INT64_MAX;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        while ((b = iobuf_get(sizes[i]))) {
            memcpy(b->bytes, &all, sizeof all);
            all = b;
        }
    }
    return all;
}

static void
give_all_back(struct iobuf *all)
{
    mem_test_fail_at = 0;
    mem_test_fail_always = false;
    while (all) {
        struct iobuf *b = all;

        memcpy(&all, b->bytes, sizeof all);
        iobuf_unref(b);
    }
}

/* Tries again if a worker still had a buffer. */
static int
ask_starving(const struct fop_call *call, struct iobuf *payload, struct iobuf **all)
{
    int ret;

    do {
        release();
        *all = take_all_buffers(*all);
        ret = ask(call, payload ? iobuf_ref(payload) : NULL);
    } while (reply.iobuf);
    return ret;
}

/* The result of a change is known; the result of a call that only looks is lost; and the connection stays. */
START_TEST(writes_succeed_and_reads_fail_with_enomem_without_buffers)
{
    struct rpc_client_stats s;
    struct iobuf *data = iobuf_get(BIG);

    memset(data->bytes, 'w', BIG);
    struct fop_call write = {.fop = FOP_writev,
                             .size = BIG,
                             .payload = {{data->bytes, BIG}},
                             .payload_count = 1,
                             .payload_bytes = BIG};

    struct fop_call read = {.fop = FOP_readv, .size = BIG};
    struct iobuf *all = NULL;

    for (int i = 0; i < 40; i++) { /* more than there are spares */
        ck_assert_int_eq(ask_starving(&write, data, &all), 0);
        ck_assert_int_eq(reply.op_ret, BIG);
        ck_assert_int_eq(reply.shortage, SHORTAGE_NONE);
    }
    ck_assert_int_eq(ask_starving(&(struct fop_call){.fop = FOP_stat}, NULL, &all), -ENOMEM);
    ck_assert_int_eq(reply.shortage, SHORTAGE_UNREAD);
    for (int i = 0; i < 3; i++) {
        ck_assert_int_eq(ask_starving(&read, NULL, &all), -ENOMEM);
        ck_assert_int_eq(reply.shortage, SHORTAGE_UNREAD);
    }
    /* This payload must be gathered, for which there is no memory: the call is not sent. */
    ck_assert_int_eq(rpc_client_fop(client, &write, NULL, NULL, 0, NULL, NULL), -ENOMEM);
    give_all_back(all);
    ck_assert_int_eq(ask(&(struct fop_call){.fop = FOP_readv, .size = BIG}, NULL), 0);
    ck_assert_uint_eq(reply.payload.iov_len, BIG);
    ck_assert_int_eq(ask(&write, NULL), 0);
    rpc_client_stats(client, &s);
    ck_assert_uint_eq(s.losses, 0);
    ck_assert_uint_eq(s.waiting, 0);
    iobuf_unref(data);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("rpc-fop");
    TCase *t = tcase_create("rpc-fop");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, small_fops_are_answered_and_counted);
    tcase_add_test(t, invalid_error_numbers_become_eio);
    tcase_add_test(t, an_invalid_error_number_of_a_lock_ends_the_connection);
    tcase_add_test(t, a_name_of_2000_bytes_reaches_the_peer);
    tcase_add_test(t, reads_of_all_sizes_return_the_sent_bytes);
    tcase_add_test(t, a_write_of_two_pieces_and_an_empty_write_succeed);
    tcase_add_test(t, a_reply_with_a_thousand_xattrs_is_decoded);
    tcase_add_test(t, a_truncated_reply_ends_the_connection);
    tcase_add_test(t, a_read_reply_with_a_wrong_length_ends_the_connection);
    tcase_add_test(t, writes_succeed_and_reads_fail_with_enomem_without_buffers);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
