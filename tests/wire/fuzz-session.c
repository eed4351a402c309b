/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Runs libFuzzer on a login and the calls behind it: a real protocol/server with sockets and a brick in
 * memory, and a peer that sends SETVOLUMEs with any keys and values, calls of any program with any
 * credential, and fops whose arguments are the input's bytes.
 *
 * After each input the next peer must be able to log in and to look the root up.
 */
#pragma GCC diagnostic ignored "-Wunused-function" /* the bench has unused functions */
#include <poll.h>

#include "xlators/protocol/server/test-bench.h"

int LLVMFuzzerInitialize(int *argc, char ***argv);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

void _mark_point(const char *file, int line);

/* The bench uses Check's macros, which need Check's runner. These functions replace the runner. */
void
_mark_point(const char *file, int line)
{
    (void)file;
    (void)line;
}

void
_ck_assert_failed(const char *file, int line, const char *expr, const char *msg, ...)
{
    fprintf(stderr, "%s:%d: Assertion failed: %s (%s)\n", file, line, expr, msg ? msg : "");
    abort();
}

struct input {
    const uint8_t *at, *end;
};

static uint8_t
next(struct input *in)
{
    return in->at < in->end ? *in->at++ : 0;
}

/* At most `max` bytes, as many as the next byte says. */
static const uint8_t *
next_bytes(struct input *in, size_t max, size_t *n)
{
    const uint8_t *at;

    *n = next(in) * 4u;
    *n = *n < max ? *n : max;
    *n = *n < (size_t)(in->end - in->at) ? *n : (size_t)(in->end - in->at);
    at = in->at;
    in->at += *n;
    return at;
}

/* ---- what is sent ---------------------------------------------------------------------------- */

/* Keys that a login knows, and values that are likely to matter. */
static const char *const keys[] = {"remote-subvolume", "process-uuid",     "fops-version", "client-version",
                                   "username",         "password",         "subdir-mount", "clnt-lk-version",
                                   "volfile-key",      "volfile-checksum", "process-name", "client-opversion",
                                   "volume-id",        "mgmt-version",     "clnt-xx"};
static const char *const values[] = {BRICK,        "a-client",      "1298437", "",       "/",    "/dir",
                                     "/dir/inner", "/../..",        "user1",   "secret", "10.3", "4294967296",
                                     "-1",         "/no/such/brick"};

static void
add_pair(struct dict *d, struct input *in)
{
    uint8_t what = next(in), which = next(in);
    const char *key = keys[what % (sizeof keys / sizeof keys[0])];
    size_t n;

    if (what & 0x80) {
        const uint8_t *bytes = next_bytes(in, 300, &n);

        (void)dict_set_text(d, key, DICT_PTR, bytes, (uint32_t)n);
    } else {
        const char *value = which & 0x80 ? "/changing" : values[which % (sizeof values / sizeof values[0])];

        (void)dict_set_text(d, key, DICT_STR, value, (uint32_t)strlen(value) + 1);
    }
}

static void
put_call(struct peer *p, uint32_t program, uint32_t version, uint32_t procedure, uint32_t flavor,
         const void *cred, size_t cred_bytes, const void *body, size_t bytes)
{
    char out[32768];
    struct rpc_call_head head = {.xid = ++p->xid,
                                 .program = program,
                                 .version = version,
                                 .procedure = procedure,
                                 .cred_flavor = flavor,
                                 .cred_bytes = (uint32_t)cred_bytes,
                                 .cred = (char *)(uintptr_t)cred};
    struct xdr x;

    xdr_init(&x, out, sizeof out, NULL);
    xdr_put_u32(&x, 0);
    if (rpc_encode_call_head(&x, &head) || xdr_left(&x) < bytes)
        return;
    memcpy(x.at, body, bytes);
    x.at += bytes;
    xdr_store_u32(out, 0x80000000u | (uint32_t)(x.at - out - 4));
    (void)!send(p->fd, out, (size_t)(x.at - out), MSG_NOSIGNAL);
}

static bool drain(struct peer *p);

/* The first byte: how many pairs; whether the brick is down, or being detached, at this moment; whether the
 * login has a credential with groups. */
static void
put_login(struct peer *p, struct input *in)
{
    char body[16384], cred[RPC_AUTH_BYTES_MAX];
    uint32_t groups[] = {10, 20};
    struct caller c = {.group_count = 2, .groups = groups};
    struct arena arena = {0};
    struct dict *d = dict_new(&arena);
    uint8_t how = next(in);
    unsigned pairs = how % 8;
    int cred_bytes = how & 0x20 ? cred_encode(CRED_GLUSTERFS_V3, &c, cred, sizeof cred) : 0;
    struct xdr x;

    (void)dict_set_text(d, "remote-subvolume", DICT_STR, BRICK, sizeof BRICK);
    (void)dict_set_text(d, "fops-version", DICT_STR, "1298437", 8);
    (void)dict_set_text(d, "process-uuid", DICT_STR, "fuzz", 5);
    for (unsigned i = 0; i < pairs; i++)
        add_pair(d, in);
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_old_dict(&x, d);
    atomic_store(&graph.is_child_up, !(how & 0x80));
    atomic_store(&graph.is_draining, how & 0x40);
    if (!x.error)
        put_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME,
                 how & 0x20 ? CRED_GLUSTERFS_V3 : CRED_NONE, cred, (size_t)cred_bytes, body,
                 (size_t)(x.at - body));
    if (how & 0xc0)
        (void)drain(p);
    atomic_store(&graph.is_child_up, true);
    atomic_store(&graph.is_draining, false);
    arena_release(&arena);
}

static void
put_any(struct peer *p, struct input *in)
{
    static const uint32_t programs[] = {FOP_PROGRAM, HANDSHAKE_PROGRAM, 123451501, 4711};
    static const uint32_t versions[] = {FOP_PROGRAM_VERSION, HANDSHAKE_PROGRAM_VERSION, 1, 330};
    static const uint32_t flavors[] = {CRED_NONE,         CRED_UNIX,         CRED_GLUSTERFS_V1,
                                       CRED_GLUSTERFS_V2, CRED_GLUSTERFS_V3, 99};
    uint8_t which = next(in), flavor = next(in), procedure = next(in);
    size_t cred_bytes, bytes;
    const uint8_t *cred = next_bytes(in, RPC_AUTH_BYTES_MAX, &cred_bytes);
    const uint8_t *body = next_bytes(in, 1024, &bytes);

    if (programs[which % 4] == FOP_PROGRAM && procedure == FOP_truncate)
        return; /* parked until the test lets go */
    put_call(p, programs[which % 4], versions[which / 4 % 4], procedure, flavors[flavor % 6], cred,
             cred_bytes, body, bytes);
}

/* A fop with a good credential, and arguments that are nearly right: gfids of the brick's objects. */
static void
put_fop(struct peer *p, struct input *in)
{
    uint8_t procedure = next(in) % (FOP_COUNT + 2), number = next(in) % 6;
    char body[2048] = "", cred[RPC_AUTH_BYTES_MAX];
    int cred_bytes = cred_encode(CRED_GLUSTERFS_V3, &p->caller, cred, sizeof cred);
    size_t n, at = 16;
    const uint8_t *bytes = next_bytes(in, 1000, &n);

    body[15] = (char)number;
    memcpy(body + at, bytes, n);
    if (procedure != FOP_truncate)
        put_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, procedure, CRED_GLUSTERFS_V3, cred, (size_t)cred_bytes,
                 body, at + n);
}

static void
put_raw(struct peer *p, struct input *in)
{
    size_t n;
    const uint8_t *bytes = next_bytes(in, 1024, &n);
    uint32_t mark = htonl(0x80000000u | (uint32_t)n);

    if (n && send(p->fd, &mark, sizeof mark, MSG_NOSIGNAL) == sizeof mark)
        (void)!send(p->fd, bytes, n, MSG_NOSIGNAL);
}

/* ---- what comes back ------------------------------------------------------------------------- */

/* Reads all messages until the answer to a PING, or the end of the connection. */
static bool
drain(struct peer *p)
{
    uint32_t xid = p->xid + 1;

    put_call(p, 123451501, 1, 2, CRED_NONE, "", 0, "", 0);
    while (receive(p)) {
        if (p->accept == UINT32_MAX && p->results.end - p->in < 8)
            abort(); /* no reply is that short */
        if (xdr_load_u32(p->in) == xid)
            return true;
    }
    return false;
}

static void
still_serves(void)
{
    struct peer *p = logged_in("witness");
    struct fop_reply r;
    int err = fop(p, FOP_lookup, CALL(.gfid = gfid_no(1)), &r);

    if (err)
        abort();
    peer_free(p);
}

int
LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    setup_with(NULL, NULL);
    log_set_level(LOG_CRITICAL);
    return 0;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct input in = {data, data + size};
    struct peer *p = peer_new();
    struct timeval patience = {.tv_sec = 30};

    setsockopt(p->fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
    for (int i = 0; i < 40 && in.at < in.end; i++) {
        switch (next(&in) % 8) {
        case 0:
        case 1:
            put_login(p, &in);
            break;
        case 2:
            put_raw(p, &in);
            break;
        case 3:
            if (!drain(p))
                i = 40;
            break;
        case 4:
        case 5:
            put_any(p, &in);
            break;
        default:
            put_fop(p, &in);
        }
    }
    (void)drain(p);
    peer_free(p);
    still_serves();
    return 0;
}
