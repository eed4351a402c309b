/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The fop codec: captured messages of wire.md section 10 decoded and encoded again to the same bytes; every
 * fop's call and reply with random contents, encoded and decoded; every truncation and many bit flips of
 * these messages. */
#include <stdio.h>
#include <stdlib.h>

#include "data/dict.h"
#include "rpc/xdr/fop-codec.h"

#include "mem/iobuf.h"
#include "rpc/xdr/test-random-fop.h"
#include "rpc/xdr/test-vector.h"
#include "rpc/xdr/xdr-types.h"

#include <check.h>

enum { ROOM = 1 << 16 };

static struct arena arena;

static void
setup(void)
{
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
    ck_assert_int_eq(iobuf_pools_init(), 0);
}

static void
teardown(void)
{
    arena_release(&arena);
}

/* ---- vectors --------------------------------------------------------------------------------- */

static void
check_call_vector(enum fop fop, const char *hex, struct fop_call *call)
{
    static char bytes[ROOM], again[ROOM];
    size_t n = vector_bytes(hex, bytes, sizeof bytes);
    char *copy = arena_dup(&arena, bytes, n); /* the decoded struct points into the copy */
    struct xdr x;

    *call = (struct fop_call){0};
    xdr_init(&x, copy, n, &arena);
    ck_assert_int_eq(fop_decode_call(fop, &x, call), 0);
    ck_assert_uint_eq(xdr_left(&x), 0);
    ck_assert_uint_eq(fop_call_size(fop, call), n);
    xdr_init(&x, again, sizeof again, NULL);
    ck_assert_int_eq(fop_encode_call(fop, &x, call), 0);
    ck_assert_uint_eq((size_t)(x.at - again), n - call->payload_bytes);
    ck_assert_mem_eq(again, bytes, n - call->payload_bytes);
}

static void
check_reply_vector(enum fop fop, const char *hex, struct fop_reply *reply)
{
    static char bytes[ROOM], again[ROOM];
    size_t n = vector_bytes(hex, bytes, sizeof bytes);
    char *copy = arena_dup(&arena, bytes, n); /* the decoded struct points into the copy */
    struct xdr x;

    *reply = (struct fop_reply){0};
    xdr_init(&x, copy, n, &arena);
    ck_assert_int_eq(fop_decode_reply(fop, &x, reply), 0);
    ck_assert_uint_eq(xdr_left(&x), 0);
    ck_assert_uint_eq(fop_reply_size(fop, reply), n - reply->payload.iov_len);
    xdr_init(&x, again, sizeof again, NULL);
    ck_assert_int_eq(fop_encode_reply(fop, &x, reply), 0);
    ck_assert_uint_eq((size_t)(x.at - again), n - reply->payload.iov_len);
    ck_assert_mem_eq(again, bytes, n - reply->payload.iov_len);
}

#define ROOT_GFID " *15 01 "
#define FILE_GFID " bc4be300fa724ed096ef1756453fde64 "
#define NULL_DICT " 00000000 ffffffff 00000000 "
#define EMPTY_DICT " *12 "
#define ROOT_IATT                                                                                            \
    ROOT_GFID "00000000000017ff 0000000000000001 000000000000003c 0000000000000000 000000000000003c"         \
              "0000000000000000 *16 000000006b011a8b 000000006b011ab4 000000006b011ab4 0000000000000000"     \
              "1099944a 220821d7 23241d31 00000000 00000003 00000000 00000000 00001000 000041ed "

START_TEST(lookup_of_root)
{
    struct fop_call call;
    struct fop_reply reply;
    struct gfid gfid;
    int64_t n;

    check_call_vector(FOP_lookup,
                      ROOT_GFID "*16 00000000 00000000 000000b4 00000005 00000005"
                                "00000018 747275737465642e676c757374657266732e6d6461746100"
                                "00000002 0000000000000001"
                                "00000012 676c757374657266732e636f6e74656e7400 0000 00000003 0000000000010000"
                                "0000000d 73656375726974792e696d6100 000000 00000002 0000000000000000"
                                "00000014 73656375726974792e6361706162696c69747900 00000002 0000000000000000"
                                "00000009 676669642d72657100 000000 00000007 *15 01",
                      &call);
    ck_assert(gfid_is_root(&call.gfid) && gfid_is_null(&call.pargfid));
    ck_assert_str_eq(call.name, "");
    ck_assert_uint_eq(call.xdata->count, 5);
    ck_assert_int_eq(dict_get_int(call.xdata, DICT_KEY_CONTENT, &n), 0);
    ck_assert_int_eq(n, 65536);
    ck_assert_int_eq(dict_get_gfid(call.xdata, DICT_KEY_GFID_REQ, &gfid), 0);
    ck_assert(gfid_is_root(&gfid));

    check_reply_vector(FOP_lookup, "*8" EMPTY_DICT ROOT_IATT "*148", &reply);
    ck_assert_uint_eq(reply.stat.mode, 040755);
    ck_assert_uint_eq(reply.stat.flags, IATT_FLAGS_ALL);
    ck_assert_uint_eq(reply.stat.nlink, 3);
    ck_assert_uint_eq(reply.stat.ctime_nsec, 0x23241d31);
    ck_assert_uint_eq(reply.xdata->count, 0);
}
END_TEST

START_TEST(a_create_and_its_reply_match_the_capture)
{
    struct fop_call call;
    struct fop_reply reply;

    check_call_vector(FOP_create,
                      ROOT_GFID
                      "000000c2 000081a4 00000000 00000009 68656c6c6f2e747874 000000"
                      "00000024 00000001 00000001 00000009 676669642d72657100 000000 00000007" FILE_GFID,
                      &call);
    ck_assert_uint_eq(call.flags, 0302);
    ck_assert_uint_eq(call.mode, 0100644);
    ck_assert_str_eq(call.name, "hello.txt");
    check_reply_vector(
        FOP_create,
        "*8 00000024 00000001 00000001 00000009 676669642d72657100 000000 00000007" FILE_GFID ROOT_IATT
        "0000000000000007" ROOT_IATT "*148",
        &reply);
    ck_assert_int_eq(reply.fd_nr, 7);
    ck_assert_uint_eq(reply.post.mode, 0);
    ck_assert_uint_eq(reply.pre.mode, 040755);
}
END_TEST

START_TEST(a_write_and_a_read_match_the_capture)
{
    struct fop_call call;
    struct fop_reply reply;

    check_call_vector(FOP_writev, FILE_GFID "*8 *8 0000000d 00008002" NULL_DICT "48656c6c6f2c2077697265210a",
                      &call);
    ck_assert_uint_eq(call.size, 13);
    ck_assert_uint_eq(call.flags, 0x8002);
    ck_assert_int_eq(call.payload_count, 1);
    ck_assert_mem_eq(call.payload[0].iov_base, "Hello, wire!\n", 13);
    ck_assert_ptr_null(call.xdata);
    check_reply_vector(FOP_writev, "0000000d 00000000" NULL_DICT "*148" ROOT_IATT, &reply);
    ck_assert_int_eq(reply.op_ret, 13);

    check_call_vector(FOP_readv, FILE_GFID "*8 *8 00001000 00008002" NULL_DICT, &call);
    ck_assert_uint_eq(call.size, 4096);
    check_reply_vector(
        FOP_readv, "0000000d 00000002" ROOT_IATT "0000000d" NULL_DICT "48656c6c6f2c2077697265210a", &reply);
    ck_assert_int_eq(reply.op_errno, ENOENT);
    ck_assert_uint_eq(reply.payload.iov_len, 13);
    ck_assert_mem_eq(reply.payload.iov_base, "Hello, wire!\n", 13);
}
END_TEST

START_TEST(readdirp_of_an_empty_root)
{
    struct fop_reply reply;

    check_reply_vector(
        FOP_readdirp,
        "00000002 00000002" NULL_DICT
        "00000001 0000000000000001 0000000000000001 00000001 00000004 00000001 2e000000" ROOT_IATT EMPTY_DICT
        "00000001 ffffffffffffffff 0000000000000003 00000002 00000004 00000002 2e2e0000"
        "*16 00000000000016ff ffffffffffffffff *116" EMPTY_DICT "00000000",
        &reply);
    ck_assert_int_eq(reply.op_ret, 2);
    ck_assert_str_eq(reply.entries->name, ".");
    ck_assert_str_eq(reply.entries->next->name, "..");
    ck_assert_uint_eq(reply.entries->next->off, 3);
    ck_assert_uint_eq(reply.entries->next->iatt.flags, IATT_FLAGS_NO_INO);
    check_reply_vector(FOP_readdirp, "00000000 00000002" NULL_DICT "00000000", &reply);
    ck_assert_ptr_null(reply.entries);
}
END_TEST

#define AFR_DICT                                                                                             \
    "0000008c 00000003 00000003 00000012 747275737465642e6166722e646972747900 0000 00000006 0000000c"        \
    "00000001 00000000 00000000"                                                                             \
    "00000017 747275737465642e6166722e772d636c69656e742d3100 00 00000006 0000000c *12 "                      \
    "00000017 747275737465642e6166722e772d636c69656e742d3000 00 00000006 0000000c *12 "

START_TEST(fxattrop_of_afr)
{
    struct fop_call call;
    struct fop_reply reply;
    const struct dict_pair *pair;

    check_call_vector(FOP_fxattrop, "9f87408837ed464b9e7c838fccdcf7fe *8 00000000" AFR_DICT NULL_DICT, &call);
    pair = dict_find_text(call.dict, "trusted.afr.dirty");
    ck_assert_ptr_nonnull(pair);
    ck_assert_int_eq(pair->type, DICT_PTR);
    ck_assert_uint_eq(pair->len, 12);
    check_reply_vector(FOP_fxattrop, "*8" NULL_DICT AFR_DICT "*296", &reply);
    ck_assert_uint_eq(fop_reply_size(FOP_fxattrop, &reply), 20 + 152 + 296);
}
END_TEST

/* An error of the calls that answer xattrs: an empty dict (count 0) beside the NULL one of xdata. */
START_TEST(failed_xattr_calls_answer_an_empty_dict)
{
    static const enum fop fops[] = {FOP_getxattr, FOP_fgetxattr, FOP_xattrop, FOP_fxattrop};
    static const char want[] = "\377\377\377\377\0\0\0\x3d"
                               "\0\0\0\0\377\377\377\377\0\0\0\0"
                               "\0\0\0\0\0\0\0\0\0\0\0\0";
    const struct fop_reply reply = {.op_ret = -1, .op_errno = ENODATA};

    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        char bytes[512];
        struct xdr x;

        xdr_init(&x, bytes, sizeof bytes, NULL);
        ck_assert_int_eq(fop_encode_reply(fops[i], &x, &reply), 0);
        ck_assert_mem_eq(bytes, want, sizeof want - 1);
    }
}
END_TEST

START_TEST(a_lock_matches_the_capture)
{
    struct fop_call call;

    check_call_vector(FOP_lk,
                      FILE_GFID "*8 00000001 00000001 00000001 00000000 *8 0000000000000004 000021b7"
                                "00000008 d4e9771c5423818a" NULL_DICT,
                      &call);
    ck_assert_uint_eq(call.cmd, 1);
    ck_assert_uint_eq(call.flock.type, FLOCK_WRITE);
    ck_assert_int_eq(call.flock.len, 4);
    ck_assert_uint_eq(call.flock.owner.len, 8);
    ck_assert_mem_eq(call.flock.owner.bytes, "\xd4\xe9\x77\x1c\x54\x23\x81\x8a", 8);
}
END_TEST

/* Sizes of error replies: wire 6.1, 6.2. */
START_TEST(error_replies_have_the_full_layout)
{
    static const struct {
        enum fop fop;
        size_t bytes;
    } rows[] = {
        {FOP_null, 12},
        {FOP_stat, 168},
        {FOP_readlink, 172},
        {FOP_mknod, 464},
        {FOP_unlink, 316},
        {FOP_rename, 760},
        {FOP_open, 28},
        {FOP_readv, 172},
        {FOP_writev, 316},
        {FOP_statfs, 108},
        {FOP_flush, 20},
        {FOP_setxattr, 20},
        {FOP_getxattr, 328},
        {FOP_opendir, 28},
        {FOP_create, 472},
        {FOP_lk, 52},
        {FOP_lookup, 316},
        {FOP_readdir, 24},
        {FOP_readdirp, 24},
        {FOP_rchecksum, 64},
        {FOP_setattr, 316},
        {FOP_xattrop, 328},
        {FOP_ipc, 20},
        {FOP_seek, 28},
        {FOP_lease, 48},
        {FOP_getactivelk, 24},
        {FOP_setactivelk, 20},
        {FOP_icreate, 168},
        {FOP_namelink, 316},
        {FOP_put, 464},
        {FOP_copy_file_range, 464},
        {FOP_release, 20},
        {FOP_fallocate, 316},
        {FOP_fsync, 316},
        {FOP_entrylk, 20},
    };
    struct fop_reply full;
    char bytes[ROOM];
    struct xdr x;

    random_reply(&full, &arena, &(uint64_t){7});
    full.xdata = NULL;
    full.op_ret = -1;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ck_assert_uint_eq(fop_reply_size(rows[i].fop, &full), rows[i].bytes);
        xdr_init(&x, bytes, sizeof bytes, NULL);
        ck_assert_int_eq(fop_encode_reply(rows[i].fop, &x, &full), 0);
        ck_assert_uint_eq((size_t)(x.at - bytes), rows[i].bytes);
        ck_assert_uint_eq(xdr_load_u32(bytes), UINT32_MAX);
        ck_assert_uint_eq(xdr_load_u32(bytes + 4), (uint32_t)full.op_errno);
        if (rows[i].fop == FOP_readv || rows[i].fop == FOP_rchecksum)
            continue; /* have a NULL dict's count or a length further on */
        for (size_t at = rows[i].fop == FOP_null ? 8 : 20; at < rows[i].bytes; at += 4)
            ck_assert(xdr_load_u32(bytes + at) == 0 || xdr_load_u32(bytes + at) == UINT32_MAX);
    }
}
END_TEST

/* ---- there and back -------------------------------------------------------------------------- */

/* Encodes a random call with its payload. Returns the bytes. */
static size_t
make_call(enum fop fop, char *bytes, uint64_t *seed)
{
    struct fop_call call;
    struct xdr x;

    random_call(&call, &arena, seed);
    if (fop == FOP_writev || fop == FOP_put)
        call.size = call.payload_bytes;
    xdr_init(&x, bytes, ROOM, NULL);
    ck_assert_int_eq(fop_encode_call(fop, &x, &call), 0);
    if (fop == FOP_writev || fop == FOP_put) {
        memcpy(x.at, call.payload[0].iov_base, call.payload_bytes);
        x.at += call.payload_bytes;
    }
    ck_assert_uint_eq(fop_call_size(fop, &call), (size_t)(x.at - bytes));
    return (size_t)(x.at - bytes);
}

static size_t
make_reply(enum fop fop, char *bytes, uint64_t *seed)
{
    struct fop_reply reply;
    struct xdr x;

    random_reply(&reply, &arena, seed);
    if (fop == FOP_readv)
        reply.op_ret = (int32_t)reply.payload.iov_len;
    xdr_init(&x, bytes, ROOM, NULL);
    ck_assert_int_eq(fop_encode_reply(fop, &x, &reply), 0);
    ck_assert_uint_eq(fop_reply_size(fop, &reply), (size_t)(x.at - bytes));
    if (fop == FOP_readv && reply.payload.iov_len) {
        memcpy(x.at, reply.payload.iov_base, reply.payload.iov_len);
        x.at += reply.payload.iov_len;
    }
    return (size_t)(x.at - bytes);
}

START_TEST(every_call_round_trips)
{
    static char bytes[ROOM], copy[ROOM], again[ROOM];
    uint64_t seed = 1;

    for (enum fop fop = FOP_stat; fop < FOP_COUNT; fop++) {
        if (fop == FOP_compound)
            continue;
        for (int round = 0; round < 20; round++) {
            size_t n = make_call(fop, bytes, &seed);
            struct fop_call call = {0};
            struct xdr x;

            memcpy(copy, bytes, n);
            xdr_init(&x, copy, n, &arena);
            ck_assert_msg(fop_decode_call(fop, &x, &call) == 0, "fop %d: %d", fop, x.error);
            ck_assert_uint_eq(xdr_left(&x), 0);
            xdr_init(&x, again, ROOM, NULL);
            ck_assert_int_eq(fop_encode_call(fop, &x, &call), 0);
            ck_assert_uint_eq((size_t)(x.at - again), n - call.payload_bytes);
            ck_assert_mem_eq(again, bytes, n - call.payload_bytes);
            arena_release(&arena);
        }
    }
}
END_TEST

START_TEST(every_reply_round_trips)
{
    static char bytes[ROOM], copy[ROOM], again[ROOM];
    uint64_t seed = 2;

    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        for (int round = 0; round < 20; round++) {
            size_t n = make_reply(fop, bytes, &seed);
            struct fop_reply reply = {0};
            struct xdr x;

            memcpy(copy, bytes, n);
            xdr_init(&x, copy, n, &arena);
            ck_assert_int_eq(fop_decode_reply(fop, &x, &reply), 0);
            xdr_init(&x, again, ROOM, NULL);
            ck_assert_int_eq(fop_encode_reply(fop, &x, &reply), 0);
            ck_assert_uint_eq((size_t)(x.at - again), n - reply.payload.iov_len);
            ck_assert_mem_eq(again, bytes, n - reply.payload.iov_len);
            arena_release(&arena);
        }
    }
}
END_TEST

/* A copy must not differ from the result of encoding and decoding. */
START_TEST(a_copied_call_encodes_to_the_same_bytes)
{
    static char bytes[ROOM], again[ROOM];
    uint64_t seed = 3;

    for (enum fop fop = FOP_stat; fop < FOP_COUNT; fop++) {
        if (fop == FOP_compound)
            continue;
        for (int round = 0; round < 20; round++) {
            struct fop_call call, copy = {0};
            struct arena other = {0};
            struct xdr x, y;

            random_call(&call, &arena, &seed);
            if (fop == FOP_writev || fop == FOP_put)
                call.size = call.payload_bytes;
            xdr_init(&x, bytes, ROOM, NULL);
            ck_assert_int_eq(fop_encode_call(fop, &x, &call), 0);
            ck_assert_msg(fop_copy_call(fop, &call, &copy, &other) == 0, "fop %d", fop);
            arena_release(&arena); /* the copy has no pointer to it, except the payload's */
            xdr_init(&y, again, ROOM, NULL);
            ck_assert_int_eq(fop_encode_call(fop, &y, &copy), 0);
            ck_assert_uint_eq((size_t)(y.at - again), (size_t)(x.at - bytes));
            ck_assert_mem_eq(again, bytes, (size_t)(x.at - bytes));
            arena_release(&other);
        }
    }
}
END_TEST

START_TEST(a_copied_reply_encodes_to_the_same_bytes)
{
    static char bytes[ROOM], again[ROOM];
    uint64_t seed = 4;

    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        for (int round = 0; round < 20; round++) {
            struct iobuf *buf = iobuf_get(64);
            struct fop_reply reply, copy;
            struct arena other = {0};
            struct xdr x, y;

            random_reply(&reply, &arena, &seed);
            reply.op_ret = round % 4 == 0 ? -1 : fop == FOP_readv ? 64 : reply.op_ret;
            reply.iobuf = buf;
            reply.payload = (struct iovec){buf->bytes, 64};
            xdr_init(&x, bytes, ROOM, NULL);
            ck_assert_int_eq(fop_encode_reply(fop, &x, &reply), 0);
            ck_assert_int_eq(fop_copy_reply(fop, &reply, &copy, &other), 0);
            ck_assert_ptr_eq(copy.iobuf, fop == FOP_readv && reply.op_ret > 0 ? buf : NULL);
            iobuf_unref(copy.iobuf);
            arena_release(&arena);
            xdr_init(&y, again, ROOM, NULL);
            ck_assert_int_eq(fop_encode_reply(fop, &y, &copy), 0);
            ck_assert_uint_eq((size_t)(y.at - again), (size_t)(x.at - bytes));
            ck_assert_mem_eq(again, bytes, (size_t)(x.at - bytes));
            arena_release(&other);
            iobuf_unref(buf);
        }
    }
}
END_TEST

START_TEST(a_copied_call_has_the_bounds_of_a_decoded_call)
{
    char name[FOP_KEY_NAME_MAX + 2];
    struct fop_call call = {.name = name, .volume = name}, copy = {0};

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(fop_copy_call(FOP_mkdir, &call, &copy, &arena), -ENAMETOOLONG);
    ck_assert_int_eq(fop_copy_call(FOP_getxattr, &call, &copy, &arena), -ENAMETOOLONG);
    ck_assert_int_eq(fop_copy_call(FOP_inodelk, &call, &copy, &arena), -EINVAL);
    ck_assert_int_eq(fop_copy_call(FOP_compound, &call, &copy, &arena), -EBADMSG);
    ck_assert_int_eq(fop_copy_call(FOP_writev, &(struct fop_call){.size = 5}, &copy, &arena), -EINVAL);
}
END_TEST

/* Decodes from an allocation of exactly `n` bytes, so that ASan reports a read behind the bytes. */
static int
decode_call_of(enum fop fop, const char *bytes, size_t n)
{
    char *copy = malloc(n ? n : 1);
    struct fop_call call = {0};
    struct xdr x;
    int err;

    memcpy(copy, bytes, n);
    xdr_init(&x, copy, n, &arena);
    err = fop_decode_call(fop, &x, &call);
    free(copy);
    arena_release(&arena);
    return err;
}

static int
decode_reply_of(enum fop fop, const char *bytes, size_t n)
{
    char *copy = malloc(n ? n : 1);
    struct fop_reply reply = {0};
    struct xdr x;
    int err;

    memcpy(copy, bytes, n);
    xdr_init(&x, copy, n, &arena);
    err = fop_decode_reply(fop, &x, &reply);
    free(copy);
    arena_release(&arena);
    return err;
}

START_TEST(every_truncation_is_refused)
{
    static char bytes[ROOM];
    uint64_t seed = 3;

    for (enum fop fop = FOP_stat; fop < FOP_COUNT; fop++) {
        size_t n = fop == FOP_compound ? 0 : make_call(fop, bytes, &seed);

        for (size_t cut = 0; cut < n; cut++)
            ck_assert_int_ne(decode_call_of(fop, bytes, cut), 0);
        n = make_reply(fop, bytes, &seed);
        for (size_t cut = 0; cut < n; cut++)
            ck_assert_int_eq(decode_reply_of(fop, bytes, cut), -EBADMSG);
    }
}
END_TEST

START_TEST(flipped_bits_do_no_harm)
{
    static char bytes[ROOM];
    uint64_t seed = 4;

    for (enum fop fop = FOP_null; fop < FOP_COUNT; fop++) {
        for (int round = 0; round < 200; round++) {
            size_t n = fop == FOP_compound || fop == FOP_null ? 0 : make_call(fop, bytes, &seed);

            for (unsigned i = random_u64(&seed) % 8; n && i < 8; i++)
                bytes[random_u64(&seed) % n] ^= (char)(1 << random_u64(&seed) % 8);
            decode_call_of(fop, bytes, n);
            n = make_reply(fop, bytes, &seed);
            for (unsigned i = random_u64(&seed) % 8; i < 8; i++)
                bytes[random_u64(&seed) % n] ^= (char)(1 << random_u64(&seed) % 8);
            decode_reply_of(fop, bytes, n);
        }
    }
}
END_TEST

/* ---- payload in pieces ----------------------------------------------------------------------- */

/* Decodes a WRITE cut into pieces at `first` and `second`; the result must not depend on the cuts. */
static void
check_write_in_pieces(const char *bytes, size_t n, size_t first, size_t second)
{
    char *pieces[3];
    size_t sizes[3] = {first, second - first, n - second};
    struct iovec more[2];
    struct fop_call call = {0};
    char *whole = malloc(n), *at = whole;
    char header[ROOM];
    struct xdr x;

    for (size_t i = 0, from = 0; i < 3; from += sizes[i++]) {
        pieces[i] = malloc(sizes[i] ? sizes[i] : 1);
        memcpy(pieces[i], bytes + from, sizes[i]);
    }
    more[0] = (struct iovec){pieces[1], sizes[1]};
    more[1] = (struct iovec){pieces[2], sizes[2]};
    xdr_init(&x, pieces[0], sizes[0], &arena);
    x.more = more;
    x.more_count = 2;
    ck_assert_msg(fop_decode_call(FOP_writev, &x, &call) == 0, "cut at %zu, %zu of %zu", first, second, n);
    xdr_init(&x, header, sizeof header, NULL);
    ck_assert_int_eq(fop_encode_call(FOP_writev, &x, &call), 0);
    memcpy(whole, header, (size_t)(x.at - header));
    at = whole + (x.at - header);
    for (int i = 0; i < call.payload_count; i++) {
        memcpy(at, call.payload[i].iov_base, call.payload[i].iov_len);
        at += call.payload[i].iov_len;
    }
    ck_assert_uint_eq((size_t)(at - whole), n);
    ck_assert_mem_eq(whole, bytes, n);
    for (int i = 0; i < 3; i++)
        free(pieces[i]);
    free(whole);
    arena_release(&arena);
}

START_TEST(a_write_may_come_in_pieces)
{
    static char bytes[ROOM];
    uint64_t seed = 5;

    for (int round = 0; round < 3; round++) {
        size_t n = make_call(FOP_writev, bytes, &seed);

        /* The fixed part is always in the first piece: transport promises 4096 bytes. */
        for (size_t first = 40; first <= n; first += 3) {
            for (size_t second = first; second <= n; second += 61)
                check_write_in_pieces(bytes, n, first, second);
        }
    }
}
END_TEST

START_TEST(other_calls_in_pieces_are_joined)
{
    static char bytes[ROOM], again[ROOM];
    uint64_t seed = 6;
    size_t n = make_call(FOP_setxattr, bytes, &seed);

    for (size_t cut = 0; cut <= n; cut++) {
        char *first = malloc(cut ? cut : 1), *second = malloc(n - cut + 1);
        struct iovec more = {second, n - cut};
        struct fop_call call = {0};
        struct xdr x;

        memcpy(first, bytes, cut);
        memcpy(second, bytes + cut, n - cut);
        xdr_init(&x, first, cut, &arena);
        x.more = &more;
        x.more_count = 1;
        ck_assert_int_eq(fop_decode_call(FOP_setxattr, &x, &call), 0);
        xdr_init(&x, again, ROOM, NULL);
        ck_assert_int_eq(fop_encode_call(FOP_setxattr, &x, &call), 0);
        ck_assert_mem_eq(again, bytes, n);
        free(first);
        free(second);
        arena_release(&arena);
    }
}
END_TEST

START_TEST(a_write_with_a_wrong_size_is_refused)
{
    static char bytes[ROOM];
    const char *hex = FILE_GFID "*8 *8 0000000e 00008002" NULL_DICT "48656c6c6f2c2077697265210a";
    size_t n = vector_bytes(hex, bytes, sizeof bytes);
    struct fop_call call = {0};
    struct xdr x;

    xdr_init(&x, bytes, n, &arena);
    ck_assert_int_eq(fop_decode_call(FOP_writev, &x, &call), -EINVAL);
    n = vector_bytes(FILE_GFID
                     "*8 *8 0000000d 00000000 00000010 ffffffff 00000000 48656c6c6f2c2077697265210a",
                     bytes, sizeof bytes);
    ck_assert_int_eq(decode_call_of(FOP_writev, bytes, n), -EBADMSG);
}
END_TEST

START_TEST(names_and_dicts_with_wrong_lengths_are_refused)
{
    static const struct {
        enum fop fop;
        int err;
        const char *hex;
    } rows[] = {
        {FOP_lookup, -EINVAL, "*32 00000000 00000003 61006200" NULL_DICT},
        {FOP_lookup, -EBADMSG, "*32 00000000 fffffffe 61626300" NULL_DICT},
        {FOP_stat, -EBADMSG, "*16 00000000 7fffffff 7fffffff"},
        {FOP_stat, -EBADMSG, "*16 00000000 00000001 00000002 *64"},
        {FOP_stat, -EBADMSG, "*16 00000000 00000001 00000001 00000001 61000000 00000002 *8"},  /* no NUL */
        {FOP_stat, -EBADMSG, "*16 00000000 00000001 00000001 00000002 61000000 0000000a *16"}, /* tag 10 */
        {FOP_stat, -EBADMSG, "*16 00000000 00000001 00000001 00000002 61000000 00000000 *16"}, /* tag 0 */
        {FOP_stat, -EBADMSG, "*16 00000000 00000001 00000001 00000002 61000000 00000006 00000100 *16"},
        {FOP_stat, 0, "*16 00000000 00000001 00000001 00000002 61000000 00000006 00000004 *16"},
        {FOP_stat, 0,
         "*16 12345678 00000001 00000001 00000002 61000000 00000002 *8"}, /* size is not looked at */
        {FOP_setactivelk, -EBADMSG, "*16 00000002 *64"},
        {FOP_compound, -EBADMSG, "*16"},
    };
    char bytes[512];

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = vector_bytes(rows[i].hex, bytes, sizeof bytes);

        ck_assert_msg(decode_call_of(rows[i].fop, bytes, n) == rows[i].err, "row %zu", i);
    }
}
END_TEST

START_TEST(over_long_names_are_told_apart_from_garbage)
{
    static char bytes[ROOM];
    struct fop_call call = {0};
    char name[301];
    struct xdr x;

    memset(name, 'n', 300);
    name[300] = '\0';
    call.name = name;
    xdr_init(&x, bytes, sizeof bytes, NULL);
    ck_assert_int_eq(fop_encode_call(FOP_mkdir, &x, &call), 0);
    ck_assert_int_eq(decode_call_of(FOP_mkdir, bytes, (size_t)(x.at - bytes)), -ENAMETOOLONG);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("fop-codec");
    TCase *tc = tcase_create("codec");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_set_timeout(tc, 60);
    tcase_add_test(tc, lookup_of_root);
    tcase_add_test(tc, a_create_and_its_reply_match_the_capture);
    tcase_add_test(tc, a_write_and_a_read_match_the_capture);
    tcase_add_test(tc, readdirp_of_an_empty_root);
    tcase_add_test(tc, fxattrop_of_afr);
    tcase_add_test(tc, a_lock_matches_the_capture);
    tcase_add_test(tc, error_replies_have_the_full_layout);
    tcase_add_test(tc, every_call_round_trips);
    tcase_add_test(tc, every_reply_round_trips);
    tcase_add_test(tc, a_copied_call_encodes_to_the_same_bytes);
    tcase_add_test(tc, a_copied_reply_encodes_to_the_same_bytes);
    tcase_add_test(tc, a_copied_call_has_the_bounds_of_a_decoded_call);
    tcase_add_test(tc, every_truncation_is_refused);
    tcase_add_test(tc, flipped_bits_do_no_harm);
    tcase_add_test(tc, a_write_may_come_in_pieces);
    tcase_add_test(tc, other_calls_in_pieces_are_joined);
    tcase_add_test(tc, a_write_with_a_wrong_size_is_refused);
    tcase_add_test(tc, names_and_dicts_with_wrong_lengths_are_refused);
    tcase_add_test(tc, over_long_names_are_told_apart_from_garbage);
    tcase_add_test(tc, failed_xattr_calls_answer_an_empty_dict);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
