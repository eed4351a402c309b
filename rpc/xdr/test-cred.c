/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Credentials of every flavor and the limits of wire 1.5; call and reply heads; the answers of wire 10.12. */
#include <stdlib.h>

#include "data/dict.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/test-random-fop.h"
#include "rpc/xdr/test-vector.h"

static struct arena arena;

static void
setup(void)
{
    ck_assert_int_eq(arena_pools_init(), 0);
    ck_assert_int_eq(dict_pools_init(), 0);
}

static void
teardown(void)
{
    arena_release(&arena);
}

static int
decode(uint32_t flavor, const char *hex, struct caller *c)
{
    static char body[RPC_AUTH_BYTES_MAX + 8];
    size_t n = vector_bytes(hex, body, sizeof body);

    *c = (struct caller){0};
    return cred_decode(flavor, body, (uint32_t)n, c, &arena);
}

START_TEST(a_captured_v3_credential_is_decoded)
{
    struct caller c;

    ck_assert_int_eq(decode(CRED_GLUSTERFS_V3,
                            "000021b7 00000001 00000002 0000001f 1a74adeb 000000006b011ad9"
                            "00000002 00000010 00000020 00000004 b7210000",
                            &c),
                     0);
    ck_assert_int_eq(c.pid, 0x21b7);
    ck_assert_uint_eq(c.uid, 1);
    ck_assert_uint_eq(c.gid, 2);
    ck_assert_uint_eq(c.time_flags, 0x1f);
    ck_assert_uint_eq(c.ctime_nsec, 443854315);
    ck_assert_int_eq(c.ctime_sec, 0x6b011ad9);
    ck_assert_uint_eq(c.group_count, 2);
    ck_assert_uint_eq(c.groups[1], 0x20);
    ck_assert_uint_eq(c.lk_owner.len, 4);
    ck_assert_mem_eq(c.lk_owner.bytes, "\xb7\x21\0\0", 4);
}
END_TEST

START_TEST(ids_of_minus_one_are_refused)
{
    static const char *const v3[] = {
        "00000001 ffffffff 00000002 00000000 00000000 0000000000000000 00000000 00000000",
        "00000001 00000001 ffffffff 00000000 00000000 0000000000000000 00000000 00000000",
        "00000001 00000001 00000002 00000000 00000000 0000000000000000 00000002 00000010 ffffffff 00000000",
    };
    struct caller c;

    for (size_t i = 0; i < sizeof v3 / sizeof v3[0]; i++) {
        ck_assert_int_eq(decode(CRED_GLUSTERFS_V3, v3[i], &c), -EACCES);
        ck_assert_uint_eq(c.uid, 0);
        ck_assert_uint_eq(c.group_count, 0);
    }
    ck_assert_int_eq(decode(CRED_GLUSTERFS_V2, "00000001 ffffffff 00000002 00000000 00000000", &c), -EACCES);
    ck_assert_int_eq(decode(CRED_UNIX, "00000000 00000000 ffffffff 00000002 00000000", &c), -EACCES);
    ck_assert_int_eq(decode(CRED_GLUSTERFS_V3,
                            "00000001 fffffffe fffffffe 00000000 00000000 0000000000000000 00000000 00000000",
                            &c),
                     0);
}
END_TEST

START_TEST(other_credentials_are_decoded_or_refused)
{
    struct caller c;

    ck_assert_int_eq(decode(CRED_GLUSTERFS_V2, "fffffffa 00000001 00000002 00000000 00000004 00000000", &c),
                     0);
    ck_assert_int_eq(c.pid, -6);
    ck_assert_uint_eq(c.lk_owner.len, 4);
    ck_assert_int_eq(
        decode(CRED_GLUSTERFS_V1, "0102030405060708 00000009 00000001 00000002 00000001 00000063 *60", &c),
        0);
    ck_assert_mem_eq(c.lk_owner.bytes, "\x08\x07\x06\x05\x04\x03\x02\x01", 8);
    ck_assert_int_eq(c.pid, 9);
    ck_assert_uint_eq(c.group_count, 1);
    ck_assert_uint_eq(c.groups[0], 0x63);
    ck_assert_int_eq(decode(CRED_GLUSTERFS_V1, "*20 00000011 *64", &c), -EACCES);
    ck_assert_int_eq(decode(CRED_UNIX, "00000000 00000003 61626300 000003e8 000003e9 00000001 00000005", &c),
                     0);
    ck_assert_uint_eq(c.uid, 1000);
    ck_assert_uint_eq(c.gid, 1001);
    ck_assert_uint_eq(c.groups[0], 5);
    ck_assert_int_eq(decode(CRED_UNIX, "00000000 00000100 61626300", &c), -EACCES);
    ck_assert_int_eq(decode(CRED_NONE, "", &c), 0);
    ck_assert_int_eq(decode(4711, "01020304", &c), 0);
    ck_assert_uint_eq(c.uid, 0);
}
END_TEST

START_TEST(short_bodies_are_read_as_if_zeros_followed)
{
    struct caller c;

    ck_assert_int_eq(decode(CRED_GLUSTERFS_V3, "00000007 00000008", &c), 0);
    ck_assert_int_eq(c.pid, 7);
    ck_assert_uint_eq(c.uid, 8);
    ck_assert_uint_eq(c.group_count, 0);
    ck_assert_uint_eq(c.lk_owner.len, 0);
    ck_assert_int_eq(decode(CRED_GLUSTERFS_V1, "", &c), 0);
}
END_TEST

/* Decodes a v2 or v3 body with this many groups and owner bytes, cut off after 400 bytes. */
static int
with_limits(uint32_t flavor, uint32_t groups, uint32_t owner, struct caller *c)
{
    char body[2048] = {0};
    size_t at = flavor == CRED_GLUSTERFS_V3 ? 28 : 12;
    size_t bytes = at + 8 + groups * 4 + (owner + 3) / 4 * 4;

    xdr_store_u32(body + at, groups);
    if (at + 4 + groups * 4 + 4 <= RPC_AUTH_BYTES_MAX)
        xdr_store_u32(body + at + 4 + groups * 4, owner);
    *c = (struct caller){0};
    return cred_decode(flavor, body, bytes < RPC_AUTH_BYTES_MAX ? (uint32_t)bytes : RPC_AUTH_BYTES_MAX, c,
                       &arena);
}

START_TEST(groups_and_owners_beyond_the_limits_are_refused)
{
    struct caller c;

    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 87, 4, &c), 0);
    ck_assert_uint_eq(c.group_count, 87);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 0, 91, &c), 0);
    ck_assert_uint_eq(c.lk_owner.len, 91);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 90, 4, &c), -EACCES);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 0, 92, &c), -EACCES);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 92, 0, &c), 0);
    ck_assert_uint_eq(c.group_count, 91);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V3, 93, 0, &c), -EACCES);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V2, 91, 4, &c), 0);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V2, 92, 4, &c), -EACCES);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V2, 0, 95, &c), 0);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V2, 0, 0x7fffffff, &c), -EACCES);
    ck_assert_int_eq(with_limits(CRED_GLUSTERFS_V2, 0x3fffffff, 0, &c), -EACCES);
}
END_TEST

START_TEST(encode_cuts_groups_and_decodes_to_the_same)
{
    uint32_t groups[200];
    struct caller c = {.pid = -6, .uid = 5, .gid = 6, .groups = groups, .group_count = 200, .ctime_sec = 77},
                  back = {0};
    char body[RPC_AUTH_BYTES_MAX];
    int n;

    for (uint32_t i = 0; i < 200; i++)
        groups[i] = i * 3;
    c.lk_owner = (struct lk_owner){8, (const uint8_t *)"owner-01"};
    n = cred_encode(CRED_GLUSTERFS_V3, &c, body, sizeof body);
    ck_assert_int_gt(n, 0);
    ck_assert_int_eq(cred_decode(CRED_GLUSTERFS_V3, body, (uint32_t)n, &back, &arena), 0);
    ck_assert_uint_eq(back.group_count, 83);
    ck_assert_uint_eq(back.groups[82], 246);
    ck_assert_int_eq(back.pid, -6);
    ck_assert_int_eq(back.ctime_sec, 77);
    ck_assert(lk_owner_equal(&back.lk_owner, &c.lk_owner));
    ck_assert_int_eq(cred_encode(CRED_NONE, &c, body, sizeof body), -EINVAL);
}
END_TEST

START_TEST(random_credentials_are_decoded_or_refused)
{
    static const uint32_t flavors[] = {CRED_NONE,         CRED_UNIX,         CRED_GLUSTERFS_V1,
                                       CRED_GLUSTERFS_V2, CRED_GLUSTERFS_V3, 99};
    uint64_t seed = 11;

    for (int round = 0; round < 20000; round++) {
        uint32_t n = (uint32_t)(random_u64(&seed) % (RPC_AUTH_BYTES_MAX / 4 + 1)) * 4;
        char *body = malloc(n ? n : 1);
        struct caller c = {0};

        for (uint32_t i = 0; i < n; i++)
            body[i] = random_u64(&seed) % 3 ? 0 : (char)(random_u64(&seed) % 100);
        if (cred_decode(flavors[round % 6], body, n, &c, &arena) == 0) {
            uint32_t sum = 0;

            for (uint32_t i = 0; i < c.group_count; i++)
                sum += c.groups[i];
            for (uint32_t i = 0; i < c.lk_owner.len; i++)
                sum += c.lk_owner.bytes[i];
            ck_assert_uint_le(c.group_count, 95);
            ck_assert(sum < UINT32_MAX);
        }
        free(body);
        arena_release(&arena);
    }
}
END_TEST

static int
head_of(const char *hex, struct rpc_call_head *head, size_t *left)
{
    static char bytes[1024];
    struct xdr x;
    int err;

    xdr_init(&x, bytes, vector_bytes(hex, bytes, sizeof bytes), &arena);
    err = rpc_decode_call_head(&x, head);
    *left = xdr_left(&x);
    return err;
}

START_TEST(valid_call_heads_are_decoded_and_others_refused)
{
    struct rpc_call_head head;
    size_t left;

    ck_assert_int_eq(head_of("00000002 00000000 00000002 075bb86d 00000001 00000001 0005f397 00000018"
                             "*12 00000000 00000004 00000000 *8 000000000000caed",
                             &head, &left),
                     0);
    ck_assert_uint_eq(head.xid, 2);
    ck_assert_uint_eq(head.program, 123451501);
    ck_assert_uint_eq(head.cred_flavor, CRED_GLUSTERFS_V2);
    ck_assert_uint_eq(head.cred_bytes, 24);
    ck_assert_uint_eq(left, 8);
    ck_assert_int_eq(head_of("", &head, &left), -EBADMSG);
    ck_assert_int_eq(head_of("00000002 00000002 00000002 075bb86d", &head, &left), -EPROTO);
    ck_assert_int_eq(head_of("00000002 00000001 00000002 075bb86d *24", &head, &left),
                     -EBADMSG);                                                          /* a reply */
    ck_assert_int_eq(head_of("00000002 00000000 00000003 *28", &head, &left), -EBADMSG); /* version 3 */
    ck_assert_int_eq(head_of("00000002 00000000 00000002 *12 0005f397 00000194 *500", &head, &left),
                     -EBADMSG);
    ck_assert_int_eq(
        head_of("00000002 00000000 00000002 *12 00000000 00000000 00000000 00000194 *500", &head, &left),
        -EBADMSG);
}
END_TEST

START_TEST(rpc_errors_have_the_bytes_of_the_spec)
{
    char out[RPC_REPLY_ERROR_BYTES_MAX], expect[64];
    size_t n;

#define ANSWER(call, hex)                                                                                    \
    n = vector_bytes(hex, expect, sizeof expect);                                                            \
    ck_assert_uint_eq(call, n);                                                                              \
    ck_assert_mem_eq(out, expect, n)
    ANSWER(rpc_encode_error(out, 7, RPC_PROG_UNAVAIL),
           "00000007 00000001 00000000 00000000 00000000 00000001");
    ANSWER(rpc_encode_error(out, 7, RPC_PROG_MISMATCH),
           "00000007 00000001 00000000 00000000 00000000 00000002 *8");
    ANSWER(rpc_encode_error(out, 7, RPC_PROC_UNAVAIL),
           "00000007 00000001 00000000 00000000 00000000 00000003");
    ANSWER(rpc_encode_error(out, 7, RPC_GARBAGE_ARGS),
           "00000007 00000001 00000000 00000000 00000000 00000004");
    ANSWER(rpc_encode_denied(out, 7, 0), "00000007 00000001 00000001 00000001 00000000");
    ANSWER(rpc_encode_undecodable(out), "00000000 00000001 00000000 00000000 00000000 00000004");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("cred");
    TCase *tc = tcase_create("cred");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, a_captured_v3_credential_is_decoded);
    tcase_add_test(tc, ids_of_minus_one_are_refused);
    tcase_add_test(tc, other_credentials_are_decoded_or_refused);
    tcase_add_test(tc, short_bodies_are_read_as_if_zeros_followed);
    tcase_add_test(tc, groups_and_owners_beyond_the_limits_are_refused);
    tcase_add_test(tc, encode_cuts_groups_and_decodes_to_the_same);
    tcase_add_test(tc, random_credentials_are_decoded_or_refused);
    tcase_add_test(tc, valid_call_heads_are_decoded_and_others_refused);
    tcase_add_test(tc, rpc_errors_have_the_bytes_of_the_spec);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
