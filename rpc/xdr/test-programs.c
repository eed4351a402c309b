/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* GF-DUMP, Handshake and Callback messages against captures (wire 10.1, 10.3, 10.11), sequences, open flags,
 * and the old dict's bounds. */
#include <fcntl.h>
#include <stdlib.h>

#include "rpc/xdr/brick-op-program.h"
#include "rpc/xdr/callback-program.h"
#include "rpc/xdr/dump-program.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/open-flags.h"
#include "rpc/xdr/sequence-program.h"
#include "rpc/xdr/test-random-fop.h"
#include "rpc/xdr/test-vector.h"

static struct arena arena;
static char bytes[8192], again[8192];
static size_t size;

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

/* Decoding works on a copy, so that `bytes` stays as captured. */
static struct xdr
decoder(const char *hex)
{
    struct xdr x;

    size = vector_bytes(hex, bytes, sizeof bytes);
    xdr_init(&x, arena_dup(&arena, bytes, size), size, &arena);
    return x;
}

static struct xdr
encoder(void)
{
    struct xdr x;

    xdr_init(&x, again, sizeof again, NULL);
    return x;
}

static void
check_same(const struct xdr *decoded, const struct xdr *encoded)
{
    ck_assert_int_eq(decoded->error, 0);
    ck_assert_uint_eq(xdr_left(decoded), 0);
    ck_assert_int_eq(encoded->error, 0);
    ck_assert_uint_eq((size_t)(encoded->at - again), size);
    ck_assert_mem_eq(again, bytes, size);
}

START_TEST(the_list_of_programs_round_trips)
{
    struct dump_reply reply;
    struct xdr x =
        decoder("*8 *8 00000001 00000010 476c757374657246532034 2e78207631 000000000013d005 0000000000000190"
                "00000001 00000007 47462d44554d50 00 00000000075bb86d 0000000000000001 00000000");
    struct xdr y = encoder();

    xdr_get_dump_reply(&x, &reply);
    ck_assert_str_eq(reply.programs->name, "GlusterFS 4.x v1");
    ck_assert_uint_eq(reply.programs->version, 400);
    ck_assert_str_eq(reply.programs->next->name, "GF-DUMP");
    xdr_put_dump_reply(&y, &reply);
    check_same(&x, &y);
    y = encoder();
    xdr_put_dump_call(&y);
    ck_assert_mem_eq(again, "\0\0\0\0\0\0\xca\xed", 8);
}
END_TEST

START_TEST(a_setvolume_reply_round_trips)
{
    struct common_reply reply;
    struct xdr x = decoder("00000000 00000016 0000002d 00000002"
                           "00000005 00000008 4552524f5200 5375636365737300"
                           "00000008 00000002 6368696c645f757000 3100 000000");
    struct xdr y = encoder();

    xdr_get_common_reply(&x, &reply);
    ck_assert_int_eq(x.error, 0);
    ck_assert_int_eq(reply.op_errno, 22);
    ck_assert_str_eq(dict_get_str(reply.dict, DICT_KEY_ERROR), "Success");
    ck_assert(dict_get_flag(reply.dict, DICT_KEY_CHILD_UP));
    xdr_put_common_reply(&y, &reply);
    ck_assert_uint_eq(xdr_common_reply_size(&reply), size);
    check_same(&x, &y);
}
END_TEST

/* STATUS of clients (management 4.6). */
START_TEST(a_brick_op_and_its_reply_round_trip)
{
    struct brick_op_call call;
    struct brick_op_reply reply;
    struct xdr x = decoder("00000000 00000004 00000042 00000003"
                           "00000003 00000004 636d6400 32353800"
                           "0000000a 00000008 627269636b2d6e616d6500 2f7372762f623100"
                           "00000007 00000003 766f6c6e616d6500 773100 0000 00000000");
    struct xdr y = encoder();

    xdr_get_brick_op_call(&x, &call);
    ck_assert_str_eq(call.name, "");
    ck_assert_int_eq(call.op, BRICK_OP_STATUS);
    ck_assert_str_eq(dict_pair_str(dict_find_text(call.input, "brick-name")), "/srv/b1");
    ck_assert_ptr_null(call.dict);
    xdr_put_brick_op_call(&y, &call);
    check_same(&x, &y);

    x = decoder("ffffffff 0000005f 00000004 00000000 00000004 6e6f6e65");
    y = encoder();
    xdr_get_brick_op_reply(&x, &reply);
    ck_assert_int_eq(reply.op_ret, -1);
    ck_assert_int_eq(reply.op_errno, 95);
    ck_assert_str_eq(reply.op_errstr, "none");
    xdr_put_brick_op_reply(&y, &reply);
    ck_assert_uint_eq(xdr_brick_op_reply_size(&reply), size);
    check_same(&x, &y);
}
END_TEST

START_TEST(old_dicts_with_wrong_lengths_are_refused)
{
    static const char *const rows[] = {
        "0000002e 00000002 *44", /* more bytes promised than there are */
        "00000004 7fffffff",     /* pairs for which there is no room */
        "00000004 ffffffff",
        "00000010 00000001 00000003 00000001 61626331", /* key without its NUL, value out of bounds */
        "00000010 00000001 00000001 7fffffff 61003100", /* value longer than the dict */
        "00000010 00000001 ffffffff 00000001 61003100",
        "00000010 00000001 00000001 00000001 61003100",  /* a byte too many */
        "00000003 000000 00",                            /* no room for the count */
        "0000000f 00000001 00000002 00000000 610000 00", /* NUL inside the key */
    };

    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct xdr x = decoder(rows[i]);

        ck_assert_ptr_null(xdr_get_old_dict(&x));
        ck_assert_msg(x.error == -EBADMSG, "row %zu: %d", i, x.error);
    }
    struct xdr x = decoder("00000000");
    ck_assert_ptr_null(xdr_get_old_dict(&x));
    ck_assert_int_eq(x.error, 0);
}
END_TEST

START_TEST(numbers_in_an_old_dict_are_text)
{
    struct dict *d = dict_new(&arena);
    struct xdr x = encoder();
    int64_t n;

    ck_assert_int_eq(dict_set_int(d, DICT_KEY_CHILD_UP, 1), 0);
    ck_assert_int_eq(dict_set_uint(d, DICT_KEY_OPVERSION, 100000), 0);
    xdr_put_old_dict(&x, d);
    ck_assert_uint_eq((size_t)(x.at - again), xdr_old_dict_size(d));
    xdr_init(&x, again, (size_t)(x.at - again), &arena);
    d = xdr_get_old_dict(&x);
    ck_assert_ptr_nonnull(d);
    ck_assert_str_eq(dict_get_str(d, DICT_KEY_CHILD_UP), "1");
    ck_assert_int_eq(dict_get_int(d, DICT_KEY_OPVERSION, &n), 0);
    ck_assert_int_eq(n, 100000);
}
END_TEST

START_TEST(a_getspec_call_and_its_reply_round_trip)
{
    struct getspec_call call;
    struct getspec_reply reply = {.op_ret = 3, .spec = "abc"}, back;
    struct xdr x = decoder("00000001 00000002 2f770000 00000000"), y = encoder();

    xdr_get_getspec_call(&x, &call);
    ck_assert_str_eq(call.key, "/w");
    xdr_put_getspec_call(&y, &call);
    check_same(&x, &y);
    y = encoder();
    xdr_put_getspec_reply(&y, &reply);
    xdr_init(&x, again, (size_t)(y.at - again), &arena);
    xdr_get_getspec_reply(&x, &back);
    ck_assert_int_eq(x.error, 0);
    ck_assert_str_eq(back.spec, "abc");
}
END_TEST

START_TEST(a_set_lk_ver_call_is_decoded_and_answered)
{
    struct set_lk_ver v;
    struct xdr x = decoder("00000003 75696400 00000001"), y = encoder();

    xdr_get_set_lk_ver_call(&x, &v);
    ck_assert_int_eq(x.error, 0);
    ck_assert_str_eq(v.uid, "uid");
    xdr_put_set_lk_ver_reply(&y, v.version);
    ck_assert_mem_eq(again, "\0\0\0\0\0\0\0\0\0\0\0\1", 12);
}
END_TEST

START_TEST(inodelk_contention)
{
    struct inodelk_contention c;
    struct xdr x = decoder("bc4be300fa724ed096ef1756453fde64 00000001 00000000 *16 0000004d 00000000 00001092"
                           "00000003 646f6d00 00000000");
    struct xdr y = encoder();

    xdr_get_inodelk_contention(&x, &c);
    ck_assert_uint_eq(c.pid, 4242);
    ck_assert_str_eq(c.domain, "dom");
    ck_assert_uint_eq(xdr_inodelk_contention_size(&c), size);
    xdr_put_inodelk_contention(&y, &c);
    check_same(&x, &y);
}
END_TEST

START_TEST(cache_invalidation)
{
    struct cache_invalidation c;
    struct xdr x = decoder(
        "00000024 62633462653330302d666137322d346564302d393665662d313735363435336664653634"
        "00000001 00000018 0000003c"
        "91111111000000000000000000000001 0000000000000001 0000000000000042 000081a4 00000001 00000000"
        "00000000 0000000000000000 0000000000000064 00001000 0000000000000001 6b01241a 0ccabd51"
        "6b01241a 0d5f4e53 6b01241a 0d5f4e53 *100 *100 00000000");
    struct xdr y = encoder();

    ck_assert_uint_eq(size, CACHE_INVALIDATION_BYTES);
    xdr_get_cache_invalidation(&x, &c);
    ck_assert_uint_eq(c.flags, 0x18);
    ck_assert_uint_eq(c.stat.size, 100);
    ck_assert_uint_eq(c.stat.mtime_nsec, 0x0d5f4e53);
    ck_assert_uint_eq(c.gfid.b[0], 0xbc);
    xdr_put_cache_invalidation(&y, &c);
    check_same(&x, &y);
}
END_TEST

START_TEST(entrylk_contention_and_recall_lease)
{
    struct entrylk_contention e = {.type = 1, .pid = 7, .name = "name", .domain = "dom"}, e2;
    struct recall_lease l = {.lease_type = 2, .tid = {1, 2, 3}}, l2;
    struct xdr x, y = encoder();

    xdr_put_entrylk_contention(&y, &e);
    ck_assert_uint_eq((size_t)(y.at - again), xdr_entrylk_contention_size(&e));
    xdr_init(&x, again, (size_t)(y.at - again), &arena);
    xdr_get_entrylk_contention(&x, &e2);
    ck_assert_int_eq(x.error, 0);
    ck_assert_str_eq(e2.name, "name");
    ck_assert_uint_eq(e2.pid, 7);
    y = encoder();
    xdr_put_recall_lease(&y, &l);
    xdr_init(&x, again, (size_t)(y.at - again), &arena);
    xdr_get_recall_lease(&x, &l2);
    ck_assert_int_eq(x.error, 0);
    ck_assert_mem_eq(l2.tid, l.tid, 16);
}
END_TEST

START_TEST(open_flags_are_translated_both_ways)
{
    ck_assert_uint_eq(open_flags_from_wire(0302), O_CREAT | O_EXCL | O_RDWR);
    ck_assert_uint_eq(open_flags_from_wire(010000), O_SYNC);
    ck_assert_uint_eq(open_flags_from_wire(0100000), 0); /* O_LARGEFILE */
    ck_assert_uint_eq(open_flags_from_wire(0xff000000), 0);
    ck_assert_uint_eq(open_flags_to_wire(O_DSYNC), 010000);
    ck_assert_uint_eq(open_flags_to_wire(O_SYNC | O_WRONLY), 010001);
    ck_assert_uint_eq(open_flags_to_wire(O_DIRECT | O_DIRECTORY | O_NOFOLLOW), 040000 | 0200000 | 0400000);
    for (int bit = 0; bit < 32; bit++) {
        uint32_t native = open_flags_from_wire(1u << bit);

        ck_assert(native == 0 || open_flags_to_wire(native) == 1u << bit);
    }
}
END_TEST

/* Encodes two steps with 8 and 5 bytes of arguments. */
static struct xdr
two_steps(const struct sequence_step *second)
{
    struct xdr x = encoder();

    xdr_put_u32(&x, 2);
    xdr_put_sequence_step(&x, &(struct sequence_step){.fop = 11, .args_bytes = 8});
    xdr_put_bytes(&x, "arg-of-1", 8);
    xdr_put_sequence_step(&x, second);
    xdr_put_bytes(&x, "arg-2", 5);
    ck_assert_int_eq(x.error, 0);
    xdr_init(&x, again, (size_t)(x.at - again), NULL);
    return x;
}

START_TEST(a_sequence_round_trips)
{
    char cred[] = "12345678";
    struct sequence_step out[SEQUENCE_STEPS_MAX];
    struct sequence_step second = {.fop = 42,
                                   .flags = SEQUENCE_ALWAYS,
                                   .fd_of = 1,
                                   .gfid_of = 1,
                                   .cred = cred,
                                   .cred_bytes = 8,
                                   .args_bytes = 5};
    struct xdr x = two_steps(&second);

    ck_assert_uint_eq(xdr_left(&x), 4 + sequence_step_size(0, 8) + sequence_step_size(8, 5));
    ck_assert_uint_eq(xdr_get_sequence(&x, out), 2);
    ck_assert_uint_eq(out[0].fop, 11);
    ck_assert_uint_eq(out[0].fd_of | out[0].gfid_of | out[0].flags, 0);
    ck_assert_ptr_null(out[0].cred);
    ck_assert_uint_eq(out[0].args_bytes, 8);
    ck_assert_mem_eq(out[0].args, "arg-of-1", 8);
    ck_assert_uint_eq(out[1].fop, 42);
    ck_assert_uint_eq(out[1].flags, SEQUENCE_ALWAYS);
    ck_assert_uint_eq(out[1].fd_of, 1);
    ck_assert_mem_eq(out[1].cred, "12345678", 8);
    ck_assert_mem_eq(out[1].args, "arg-2", 5);
}
END_TEST

/* Returns whether the decoder refuses the sequence with this second step. */
static bool
refuses_second(struct sequence_step second)
{
    struct sequence_step out[SEQUENCE_STEPS_MAX];
    struct xdr x;

    second.args_bytes = 5;
    x = two_steps(&second);
    return xdr_get_sequence(&x, out) == 0 && x.error == -EBADMSG;
}

START_TEST(sequences_beyond_the_bounds_are_refused)
{
    struct sequence_step out[SEQUENCE_STEPS_MAX];
    struct xdr x;

    ck_assert(!refuses_second((struct sequence_step){.fop = 42, .fd_of = 1}));
    ck_assert(refuses_second((struct sequence_step){.fop = 42, .fd_of = 2})); /* not an earlier step */
    ck_assert(refuses_second((struct sequence_step){.fop = 42, .gfid_of = UINT32_MAX}));
    ck_assert(refuses_second((struct sequence_step){.fop = 42, .flags = 2}));
    ck_assert(refuses_second((struct sequence_step){.fop = FOP_COUNT}));
    ck_assert(refuses_second((struct sequence_step){.fop = 0}));
    for (uint32_t count = 0; count < 12; count++) {
        x = two_steps(&(struct sequence_step){.fop = 42, .args_bytes = 5});
        xdr_store_u32(again, count);
        ck_assert_uint_eq(xdr_get_sequence(&x, out), count == 2 ? 2 : 0);
    }
    x = two_steps(&(struct sequence_step){.fop = 42, .args_bytes = 5});
    x.end -= 4;
    ck_assert_uint_eq(xdr_get_sequence(&x, out), 0);
}
END_TEST

START_TEST(results_of_a_sequence_round_trip)
{
    struct sequence_result in[] = {{"first", 5}, {NULL, 0}, {"third", 5}}, out[3];
    struct xdr y = encoder(), x;

    xdr_put_sequence_results(&y, in, 3);
    ck_assert_uint_eq((size_t)(y.at - again), xdr_sequence_results_size(in, 3));
    xdr_init(&x, again, (size_t)(y.at - again), NULL);
    xdr_get_sequence_results(&x, out, 3);
    ck_assert_int_eq(x.error, 0);
    ck_assert_uint_eq(out[1].size, 0);
    ck_assert_uint_eq(out[2].size, 5);
    ck_assert_mem_eq(out[2].bytes, "third", 5);
    xdr_init(&x, again, (size_t)(y.at - again), NULL);
    xdr_get_sequence_results(&x, out, 2); /* other calls were sent */
    ck_assert_int_eq(x.error, -EBADMSG);
}
END_TEST

START_TEST(random_bytes_are_decoded_or_refused)
{
    uint64_t seed = 21;

    for (int round = 0; round < 20000; round++) {
        size_t n = random_u64(&seed) % 400;
        char *copy = malloc(n ? n : 1);
        struct common_reply r;
        struct getspec_reply g;
        struct cache_invalidation c = {0};
        struct inodelk_contention i;
        struct dump_reply d;
        struct sequence_step steps[SEQUENCE_STEPS_MAX];
        struct sequence_result results[SEQUENCE_STEPS_MAX];
        struct xdr x;

        for (size_t at = 0; at < n; at++)
            copy[at] = random_u64(&seed) % 4 ? 0 : (char)(random_u64(&seed) % 64);
        xdr_init(&x, copy, n, &arena);
        switch (round % 7) {
        case 0:
            xdr_get_common_reply(&x, &r);
            break;
        case 1:
            xdr_get_getspec_reply(&x, &g);
            break;
        case 2:
            xdr_get_cache_invalidation(&x, &c);
            break;
        case 3:
            xdr_get_inodelk_contention(&x, &i);
            break;
        case 4:
            xdr_get_dump_reply(&x, &d);
            break;
        case 5:
            (void)xdr_get_sequence(&x, steps);
            break;
        case 6:
            xdr_get_sequence_results(&x, results, (unsigned)round % SEQUENCE_STEPS_MAX + 1);
            break;
        }
        free(copy);
        arena_release(&arena);
    }
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("programs");
    TCase *tc = tcase_create("programs");

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, the_list_of_programs_round_trips);
    tcase_add_test(tc, a_setvolume_reply_round_trips);
    tcase_add_test(tc, a_brick_op_and_its_reply_round_trip);
    tcase_add_test(tc, old_dicts_with_wrong_lengths_are_refused);
    tcase_add_test(tc, numbers_in_an_old_dict_are_text);
    tcase_add_test(tc, a_getspec_call_and_its_reply_round_trip);
    tcase_add_test(tc, a_set_lk_ver_call_is_decoded_and_answered);
    tcase_add_test(tc, inodelk_contention);
    tcase_add_test(tc, cache_invalidation);
    tcase_add_test(tc, entrylk_contention_and_recall_lease);
    tcase_add_test(tc, open_flags_are_translated_both_ways);
    tcase_add_test(tc, a_sequence_round_trips);
    tcase_add_test(tc, sequences_beyond_the_bounds_are_refused);
    tcase_add_test(tc, results_of_a_sequence_round_trip);
    tcase_add_test(tc, random_bytes_are_decoded_or_refused);
    suite_add_tcase(s, tc);
    return s;
}

#include "base/test-main.h"
