/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on every decoder of the wire. The first byte selects the decoder, the second the place at
 * which a record is cut in two. tests/wire/make-corpus.py writes valid messages to begin with.
 *
 * A decoded message is encoded again, into a buffer of exactly the announced size. Every input is decoded
 * once more without memory.
 */
#include <stdlib.h>
#include <string.h>

#include "data/dict.h"
#include "mem/mem-pool.h"
#include "mem/mem-shared.h"
#include "rpc/xdr/callback-program.h"
#include "rpc/xdr/cred.h"
#include "rpc/xdr/dump-program.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/sequence-program.h"

enum { CALLS = 0, REPLIES = 64, CREDS = 128, HEADS = 134, PROGRAMS = 136, SEQUENCES = 146, KINDS = 148 };

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
encode_cred(uint32_t flavor, const struct caller *caller)
{
    char *out = malloc(RPC_AUTH_BYTES_MAX);
    struct caller again = {0};
    int n = cred_encode(flavor, caller, out, RPC_AUTH_BYTES_MAX);

    if (n >= 0 && (cred_decode(flavor, out, (uint32_t)n, &again, &arena) || again.uid != caller->uid))
        abort();
    free(out);
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
    encode_cred(CRED_GLUSTERFS_V3, &caller);
    encode_cred(CRED_GLUSTERFS_V2, &caller);
}

static void
run_head(struct xdr *x)
{
    struct rpc_call_head head;
    char error[RPC_REPLY_ERROR_BYTES_MAX];

    if (rpc_decode_call_head(x, &head)) {
        (void)rpc_encode_undecodable(error);
        return;
    }
    size_t n = rpc_call_head_size((head.cred_bytes + 3) & ~3u);
    char *out = malloc(n);
    struct xdr again;

    xdr_init(&again, out, n, NULL);
    if (rpc_encode_call_head(&again, &head))
        abort();
    free(out);
    (void)rpc_encode_error(error, head.xid, (enum rpc_accept)(head.procedure % 5));
    (void)rpc_encode_denied(error, head.xid, RPC_AUTH_BADCRED);
    rpc_encode_success(error, head.xid);
}

/* Calls `put` with room for exactly `bytes` bytes. */
#define ENCODE(put, bytes, value)                                                                            \
    do {                                                                                                     \
        size_t size_ = (bytes);                                                                              \
        char *out_ = malloc(size_ ? size_ : 1);                                                              \
        struct xdr to_;                                                                                      \
        xdr_init(&to_, out_, size_, NULL);                                                                   \
        put(&to_, value);                                                                                    \
        if (to_.error)                                                                                       \
            abort();                                                                                         \
        free(out_);                                                                                          \
    } while (0)

static size_t
text_bytes(const char *text)
{
    return 8 + strlen(text);
}

static void
run_handshake(unsigned kind, struct xdr *x)
{
    struct common_reply common;
    struct getspec_call call;
    struct getspec_reply reply;
    struct set_lk_ver version;

    switch (kind) {
    case 0:
        xdr_get_common_reply(x, &common);
        if (!x->error)
            ENCODE(xdr_put_common_reply, xdr_common_reply_size(&common), &common);
        break;
    case 1:
        xdr_get_getspec_call(x, &call);
        if (!x->error)
            ENCODE(xdr_put_getspec_call, 8 + text_bytes(call.key) + xdr_old_dict_size(call.xdata), &call);
        break;
    case 2:
        xdr_get_getspec_reply(x, &reply);
        if (!x->error)
            ENCODE(xdr_put_getspec_reply, 12 + text_bytes(reply.spec) + xdr_old_dict_size(reply.xdata),
                   &reply);
        break;
    default:
        xdr_get_set_lk_ver_call(x, &version);
        if (!x->error)
            ENCODE(xdr_put_set_lk_ver_reply, 12, version.version);
    }
}

static void
run_callback(unsigned kind, struct xdr *x)
{
    struct cache_invalidation invalidation;
    struct inodelk_contention inodelk;
    struct entrylk_contention entrylk;
    struct recall_lease recall;

    switch (kind) {
    case 0:
        xdr_get_cache_invalidation(x, &invalidation);
        if (!x->error)
            ENCODE(xdr_put_cache_invalidation,
                   CACHE_INVALIDATION_BYTES + xdr_old_dict_size(invalidation.xdata), &invalidation);
        break;
    case 1:
        xdr_get_inodelk_contention(x, &inodelk);
        if (!x->error)
            ENCODE(xdr_put_inodelk_contention, xdr_inodelk_contention_size(&inodelk), &inodelk);
        break;
    case 2:
        xdr_get_entrylk_contention(x, &entrylk);
        if (!x->error)
            ENCODE(xdr_put_entrylk_contention, xdr_entrylk_contention_size(&entrylk), &entrylk);
        break;
    default:
        xdr_get_recall_lease(x, &recall);
        if (!x->error)
            ENCODE(xdr_put_recall_lease, 64 + xdr_old_dict_size(recall.xdata), &recall);
    }
}

static void
run_dump(struct xdr *x)
{
    struct dump_reply dump;
    size_t n = 24;
    char call[8];

    xdr_get_dump_reply(x, &dump);
    if (x->error)
        return;
    for (const struct dump_entry *e = dump.programs; e; e = e->next)
        n += 20 + text_bytes(e->name);
    ENCODE(xdr_put_dump_reply, n, &dump);
    xdr_init(x, call, sizeof call, &arena);
    xdr_put_dump_call(x);
    xdr_init(x, call, sizeof call, &arena);
    xdr_get_dump_call(x);
    if (x->error)
        abort();
}

/* The forms of dicts that no message decodes to: pairs of every type, as replies are made. */
static void
run_old_dict(struct xdr *x)
{
    struct dict *typed = xdr_get_dict(x);

    if (typed && !x->error)
        ENCODE(xdr_put_old_dict, xdr_old_dict_size(typed), typed);
}

static void
run_program(unsigned kind, struct xdr *x)
{
    if (kind < 4)
        run_handshake(kind, x);
    else if (kind == 4)
        run_dump(x);
    else if (kind < 9)
        run_callback(kind - 5, x);
    else
        run_old_dict(x);
}

/* Encodes the steps again, and decodes each step's call as the brick does. */
static void
run_sequence(struct xdr *x)
{
    struct sequence_step steps[SEQUENCE_STEPS_MAX];
    unsigned count = xdr_get_sequence(x, steps);

    if (!count != !!x->error)
        abort();
    for (unsigned i = 0; i < count; i++) {
        const struct sequence_step *s = &steps[i];
        size_t n = sequence_step_size(s->cred_bytes, s->args_bytes);
        struct fop_call call = {0};
        struct caller caller = {0};
        char *out = malloc(n);
        struct xdr to;

        if (s->fop >= FOP_COUNT || s->fd_of > i || s->gfid_of > i)
            abort();
        xdr_init(&to, out, n, NULL);
        xdr_put_sequence_step(&to, s);
        if (to.error)
            abort();
        free(out);
        if (s->cred)
            (void)cred_decode(CRED_GLUSTERFS_V3, s->cred, s->cred_bytes, &caller, &arena);
        xdr_init(&to, s->args, s->args_bytes, &arena);
        if (fop_decode_call((enum fop)s->fop, &to, &call) == 0)
            encode_call((enum fop)s->fop, &call);
    }
}

/* Decodes the results of as many steps as the first byte says, and encodes these again. */
static void
run_sequence_results(struct xdr *x)
{
    struct sequence_result results[SEQUENCE_STEPS_MAX];
    unsigned count = xdr_left(x) ? (uint8_t)*x->at % SEQUENCE_STEPS_MAX + 1 : 1;

    if (xdr_left(x))
        x->at++;
    xdr_get_sequence_results(x, results, count);
    if (x->error)
        return;
    size_t n = xdr_sequence_results_size(results, count);
    char *out = malloc(n);
    struct xdr to;

    xdr_init(&to, out, n, NULL);
    xdr_put_sequence_results(&to, results, count);
    if (to.error || xdr_left(&to))
        abort();
    free(out);
}

static void
run(const uint8_t *data, size_t size)
{
    unsigned kind;
    size_t cut;
    char *first, *second;
    struct iovec more;
    uint32_t xid;
    struct xdr x;

    kind = data[0] % KINDS;
    cut = kind < CREDS && data[1] ? (size_t)data[1] * 16 : size - 2;
    data += 2;
    size -= 2;
    cut = cut < size ? cut : size;
    first = malloc(cut ? cut : 1); /* separate pieces, so that ASan sees a step outside */
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
        run_head(&x);
    else if (kind == HEADS + 1)
        (void)rpc_decode_reply_head(&x, &xid);
    else if (kind == SEQUENCES)
        run_sequence(&x);
    else if (kind == SEQUENCES + 1)
        run_sequence_results(&x);
    else
        run_program(kind - PROGRAMS, &x);
    arena_release(&arena);
    free(first);
    free(second);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    run(data, size);
    mem_test_fail_always = true;
    mem_test_fail_at = INT64_MAX;
    run(data, size);
    mem_test_fail_at = 0;
    return 0;
}
