/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* libFuzzer's way into every decoder of the wire. The first byte says which one; the second where a record is
 * cut in two.
 *
 *   clang -std=gnu17 -g -O1 -D_GNU_SOURCE -fsanitize=fuzzer,address,undefined -Ilibglusterfs -I. \
 *       tests/wire/fuzz-codec.c BUILD/.libs/libkiln-rpc.a BUILD/.libs/libglusterfs.a \
 *       -luuid -lurcu -pthread -o fuzz-codec
 *   ./fuzz-codec -max_len=4096 -max_total_time=60 CORPUS
 *
 * tests/wire/make-corpus.py writes a corpus of good messages. What decodes is encoded again, into a buffer of
 * exactly the size that was announced.
 */
#include <stdlib.h>

#include "data/dict.h"
#include "mem/mem-pool.h"
#include "rpc/xdr/callback-program.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/dump-program.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"

enum { CALLS = 0, REPLIES = 64, CREDS = 128, HEADS = 134, PROGRAMS = 136, KINDS = 144 };

static struct arena arena;

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return mem_pools_init() || arena_pools_init() || dict_pools_init();
}

static void
encode_call(enum fop fop, const struct fop_call *call)
{
    size_t n = fop_call_size(fop, call) - call->payload_bytes;
    char *out = malloc(n ? n : 1);
    struct xdr x;

    xdr_init(&x, out, n, NULL);
    if (fop_encode_call(fop, &x, call) || xdr_left(&x))
        abort();
    free(out);
}

static void
encode_reply(enum fop fop, const struct fop_reply *reply)
{
    size_t n = fop_reply_size(fop, reply);
    char *out = malloc(n ? n : 1);
    struct xdr x;

    xdr_init(&x, out, n, NULL);
    if (fop_encode_reply(fop, &x, reply) || xdr_left(&x))
        abort();
    free(out);
}

static void
run_fop(unsigned kind, struct xdr *x)
{
    if (kind < REPLIES) {
        struct fop_call call = {0};

        if (kind < FOP_COUNT && fop_decode_call((enum fop)kind, x, &call) == 0)
            encode_call((enum fop)kind, &call);
    } else {
        struct fop_reply reply = {0};

        if (kind - REPLIES < FOP_COUNT && fop_decode_reply((enum fop)(kind - REPLIES), x, &reply) == 0)
            encode_reply((enum fop)(kind - REPLIES), &reply);
    }
}

static void
run_cred(unsigned kind, struct xdr *x)
{
    static const uint32_t flavors[] = {CRED_NONE,         CRED_UNIX,         CRED_GLUSTERFS_V1,
                                       CRED_GLUSTERFS_V2, CRED_GLUSTERFS_V3, 99};
    size_t n = xdr_left(x) < RPC_AUTH_BYTES_MAX ? xdr_left(x) : RPC_AUTH_BYTES_MAX;
    struct caller caller = {0};
    volatile uint32_t sum = 0; /* so that the bytes are really read */

    if (cred_decode(flavors[kind - CREDS], x->at, (uint32_t)n, &caller, &arena))
        return;
    for (uint32_t i = 0; i < caller.group_count; i++)
        sum += caller.groups[i];
    for (uint32_t i = 0; i < caller.lk_owner.len; i++)
        sum += caller.lk_owner.bytes[i];
    (void)sum;
}

static void
run_program(unsigned kind, struct xdr *x)
{
    struct common_reply common;
    struct getspec_call call;
    struct getspec_reply reply;
    struct set_lk_ver version;
    struct dump_reply dump;
    struct cache_invalidation invalidation;
    struct inodelk_contention inodelk;
    struct entrylk_contention entrylk;

    switch (kind - PROGRAMS) {
    case 0:
        xdr_get_common_reply(x, &common);
        break;
    case 1:
        xdr_get_getspec_call(x, &call);
        break;
    case 2:
        xdr_get_getspec_reply(x, &reply);
        break;
    case 3:
        xdr_get_set_lk_ver_call(x, &version);
        break;
    case 4:
        xdr_get_dump_reply(x, &dump);
        break;
    case 5:
        xdr_get_cache_invalidation(x, &invalidation);
        break;
    case 6:
        xdr_get_inodelk_contention(x, &inodelk);
        break;
    case 7:
        xdr_get_entrylk_contention(x, &entrylk);
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    unsigned kind;
    size_t cut;
    char *first, *second;
    struct iovec more;
    struct rpc_call_head head;
    uint32_t xid;
    struct xdr x;

    if (size < 2)
        return 0;
    kind = data[0] % KINDS;
    cut = kind < CREDS && data[1] ? (size_t)data[1] * 16 : size - 2;
    data += 2;
    size -= 2;
    cut = cut < size ? cut : size;
    first = malloc(cut ? cut : 1); /* of their own, so that ASan sees a step outside */
    second = malloc(size - cut + 1);
    memcpy(first, data, cut);
    memcpy(second, data + cut, size - cut);
    more = (struct iovec){second, size - cut};
    xdr_init(&x, first, cut, &arena);
    x.more = &more;
    x.more_count = size > cut;
    if (kind < CREDS)
        run_fop(kind, &x);
    else if (kind < HEADS)
        run_cred(kind, &x);
    else if (kind == HEADS)
        (void)rpc_decode_call_head(&x, &head);
    else if (kind == HEADS + 1)
        (void)rpc_decode_reply_head(&x, &xid);
    else
        run_program(kind, &x);
    arena_release(&arena);
    free(first);
    free(second);
    return 0;
}
