/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Measures the codec's time for one operation: head, credential and arguments decoded, results encoded.
 * Prints a line for each operation, in nanoseconds. Each round releases arena and dict, as a request does. */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "data/dict.h"
#include "mem/mem-pool.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/fop-codec.h"

enum { ROUNDS = 1000000, ROOM = 4096 };

static struct arena arena;

static uint64_t
now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* A whole record: v3 credential with the usual 4-byte owner, then the arguments. */
static size_t
make_record(enum fop fop, const struct fop_call *call, char *out)
{
    struct caller caller = {.pid = 4711, .lk_owner = {4, (const uint8_t *)"\x67\x12\0"}};
    char cred[RPC_AUTH_BYTES_MAX];
    struct rpc_call_head head = {.xid = 1,
                                 .program = FOP_PROGRAM,
                                 .version = FOP_PROGRAM_VERSION,
                                 .procedure = fop,
                                 .cred_flavor = CRED_GLUSTERFS_V3,
                                 .cred = cred};
    struct xdr x;

    head.cred_bytes = (uint32_t)cred_encode(CRED_GLUSTERFS_V3, &caller, cred, sizeof cred);
    xdr_init(&x, out, ROOM, NULL);
    rpc_encode_call_head(&x, &head);
    fop_encode_call(fop, &x, call);
    return (size_t)(x.at - out);
}

static int
run(enum fop fop, const struct fop_call *call, const struct fop_reply *reply)
{
    static struct fop_call decoded;
    char record[ROOM], copy[ROOM], out[ROOM];
    size_t n = make_record(fop, call, record);
    uint64_t begin = now_ns(), middle;
    int err = 0;

    for (int i = 0; i < ROUNDS && !err; i++) {
        struct rpc_call_head head;
        struct caller caller = {0};
        struct xdr x;

        memcpy(copy, record, n);
        xdr_init(&x, copy, n, &arena);
        err = rpc_decode_call_head(&x, &head);
        err = err ? err : cred_decode(head.cred_flavor, head.cred, head.cred_bytes, &caller, &arena);
        err = err ? err : fop_decode_call(fop, &x, &decoded);
        arena_release(&arena);
    }
    middle = now_ns();
    for (int i = 0; i < ROUNDS && !err; i++) {
        struct xdr x;

        rpc_encode_success(out, 1);
        xdr_init(&x, out + RPC_REPLY_SUCCESS_BYTES, sizeof out - RPC_REPLY_SUCCESS_BYTES, NULL);
        if (fop_reply_size(fop, reply) > xdr_left(&x))
            err = -ENOBUFS;
        err = err ? err : fop_encode_reply(fop, &x, reply);
    }
    printf("codec %-9s decode %6.1f ns  encode %6.1f ns\n", fop_info[fop].name,
           (double)(middle - begin) / ROUNDS, (double)(now_ns() - middle) / ROUNDS);
    return err;
}

int
main(void)
{
    struct fop_call call = {
        .name = "a-file-name.txt", .gfid = gfid_root, .pargfid = gfid_root, .volume = "w-replicate-0"};
    struct fop_reply reply = {0};
    struct arena dicts = {0};
    struct dict *d;
    int err;

    if (mem_pools_init() || arena_pools_init() || dict_pools_init() || !(d = dict_new(&dicts)))
        return 1;
    err = run(FOP_stat, &call, &reply);
    err = err ? err : run(FOP_inodelk, &call, &reply);
    err = err ? err : run(FOP_readv, &call, &reply);
    err = err ? err : run(FOP_lookup, &call, &reply);
    if (dict_set_gfid(d, DICT_KEY_GFID_REQ, &gfid_root))
        return 1;
    call.xdata = d;
    err = err ? err : run(FOP_create, &call, &reply);
    if (dict_set_uint(d, DICT_KEY_CONTENT, 65536) || dict_set_int(d, DICT_KEY_MDATA, 1) ||
        dict_set_text_int(d, "security.ima", 0) || dict_set_text_int(d, "security.capability", 0))
        return 1;
    reply.xdata = d;
    err = err ? err : run(FOP_lookup, &call, &reply);
    arena_release(&dicts);
    mem_pools_fini();
    return err != 0;
}
