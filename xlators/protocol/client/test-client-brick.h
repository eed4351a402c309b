/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/client in a graph of its own, with a brick of plain sockets and threads that counts its
 * requests. */
#ifndef KILN_CLIENT_TEST_CLIENT_BRICK_H
#define KILN_CLIENT_TEST_CLIENT_BRICK_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>

#include "base/read-section.h"
#include "data/dict.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/client/test-peer.h"
#include "rpc/transport/transport.h"
#include "rpc/xdr/fop-codec.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/sequence-program.h"
#include "xlators/protocol/client/client-internal.h"

enum { WAIT_S = 120 };

extern const struct xlator_type protocol_client_xlator;

static inline const struct xlator_type *
client_type_find(const char *name)
{
    return strcmp(name, protocol_client_xlator.name) == 0 ? &protocol_client_xlator : NULL;
}

/* ---- the brick ------------------------------------------------------------------------------- */

static struct {
    atomic_int logins, opens, releases, next_number, locks, writes_more;
    struct {
        uint32_t type;
        long long start, len, number;
    } lock[8]; /* the first LKs since `locks` was 0; read while no call is under way */
    atomic_llong last_number, last_released;
    atomic_uint last_flags, mode; /* mode, size: of all attributes */
    atomic_ullong size;
    atomic_bool opens_nothing, answers_not, has_no_gfids;
    atomic_bool takes_sequences, runs_no_release;
    atomic_int sequences, steps, fd_of; /* steps, fd_of: of the last sequence; fd_of: of its second step */
} brick;

static inline void
answer_dump(int fd, uint32_t xid)
{
    struct dump_entry sequences = {
        .name = "sequences", .number = SEQUENCE_PROGRAM, .version = SEQUENCE_PROGRAM_VERSION};
    struct dump_entry fops = {.name = "fops",
                              .number = FOP_PROGRAM,
                              .version = FOP_PROGRAM_VERSION,
                              .next = brick.takes_sequences ? &sequences : NULL};
    struct dump_reply d = {.programs = &fops};
    char bytes[256];
    struct xdr x;

    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_dump_reply(&x, &d);
    peer_reply(fd, xid, bytes, (size_t)(x.at - bytes));
}

static inline void
answer_login(int fd, uint32_t xid)
{
    struct arena arena = {0};
    struct common_reply r = {.dict = dict_new(&arena)};
    char bytes[256];
    struct xdr x;

    brick.logins++;
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_common_reply(&x, &r);
    peer_must(x.error == 0);
    peer_reply(fd, xid, bytes, (size_t)(x.at - bytes));
    arena_release(&arena);
}

static inline void
note_lock(const struct fop_call *c)
{
    int i = brick.locks++;

    peer_must(i < 8 && c->flock.owner.len == 1 && *c->flock.owner.bytes == 'o');
    brick.lock[i].type = c->flock.type;
    brick.lock[i].start = c->flock.start;
    brick.lock[i].len = c->flock.len;
    brick.lock[i].number = c->fd_nr;
}

static inline void
fill_reply(enum fop fop, const struct fop_call *c, struct fop_reply *r)
{
    switch (fop) {
    case FOP_open:
    case FOP_opendir:
        brick.opens++;
        brick.last_flags = c->flags;
        r->fd_nr = ++brick.next_number;
        if (brick.opens_nothing) {
            r->op_ret = -1;
            r->op_errno = EACCES;
        }
        break;
    case FOP_release:
    case FOP_releasedir:
        brick.last_released = c->fd_nr;
        brick.releases++;
        break;
    case FOP_create:
        r->fd_nr = ++brick.next_number;
        r->stat = (struct iatt){.gfid.b = {brick.has_no_gfids ? 0 : 7}, .mode = S_IFREG | 0644};
        break;
    case FOP_lk:
        note_lock(c);
        brick.last_number = c->fd_nr;
        break;
    case FOP_writev:
    case FOP_fsync:
    case FOP_flush:
        brick.last_number = c->fd_nr;
        r->op_ret = fop == FOP_writev ? (int32_t)c->payload_bytes + brick.writes_more : 0;
        break;
    default:
        r->stat.mode = r->post.mode = brick.mode;
        r->stat.size = r->post.size = brick.size;
        break;
    }
}

static inline bool
is_release(uint32_t fop)
{
    return fop == FOP_release || fop == FOP_releasedir;
}

static inline void
answer_sequence(int fd, uint32_t xid, struct xdr *args)
{
    static char room[SEQUENCE_STEPS_MAX][FOP_REPLY_FIXED_MAX + 64];
    static char bytes[sizeof room];
    struct sequence_step steps[SEQUENCE_STEPS_MAX];
    struct sequence_result results[SEQUENCE_STEPS_MAX];
    unsigned count = xdr_get_sequence(args, steps);
    struct xdr x;

    peer_must(count > 0);
    for (unsigned i = 0; i < count; i++) {
        enum fop fop = (enum fop)steps[i].fop;
        struct arena arena = {0};
        struct fop_call c = {0};
        struct fop_reply r = {0};

        xdr_init(&x, steps[i].args, steps[i].args_bytes, &arena);
        peer_must(fop_decode_call(fop, &x, &c) == 0);
        results[i] = (struct sequence_result){0};
        if (!is_release(fop) || !brick.runs_no_release) {
            fill_reply(fop, &c, &r);
            xdr_init(&x, room[i], sizeof room[i], NULL);
            peer_must(fop_encode_reply(fop, &x, &r) == 0);
            results[i] = (struct sequence_result){room[i], (uint32_t)(x.at - room[i])};
        }
        arena_release(&arena);
    }
    brick.steps = (int)count;
    brick.fd_of = count > 1 ? (int)steps[1].fd_of : 0;
    brick.sequences++;
    xdr_init(&x, bytes, sizeof bytes, NULL);
    xdr_put_sequence_results(&x, results, count);
    peer_must(x.error == 0);
    peer_reply(fd, xid, bytes, (size_t)(x.at - bytes));
}

static inline void
answer(int fd, const struct rpc_call_head *head, struct xdr *args)
{
    struct arena arena = {0};
    struct fop_call c = {0};
    struct fop_reply r = {0};
    char bytes[FOP_REPLY_FIXED_MAX + 64];
    struct xdr x;

    if (head->program == DUMP_PROGRAM) {
        answer_dump(fd, head->xid);
        return;
    }
    if (head->program == HANDSHAKE_PROGRAM) {
        answer_login(fd, head->xid);
        return;
    }
    if (head->program == SEQUENCE_PROGRAM) {
        answer_sequence(fd, head->xid, args);
        return;
    }
    args->arena = &arena;
    peer_must(head->program == FOP_PROGRAM && fop_decode_call((enum fop)head->procedure, args, &c) == 0);
    fill_reply((enum fop)head->procedure, &c, &r);
    if (!brick.answers_not || head->procedure == FOP_open) {
        xdr_init(&x, bytes, sizeof bytes, NULL);
        peer_must(fop_encode_reply((enum fop)head->procedure, &x, &r) == 0);
        peer_reply(fd, head->xid, bytes, (size_t)(x.at - bytes));
    }
    arena_release(&arena);
}

/* ---- the graph ------------------------------------------------------------------------------- */

static struct graph *graph;
static sem_t came_up, went_down;
static uint16_t port;

static inline void
event(struct graph *g, const struct layer_event *e)
{
    (void)g;
    if (e->kind == EVENT_CHILD)
        sem_post(e->change == CHILD_UP ? &came_up : &went_down);
}

static inline void
wait_on(sem_t *sem)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    ck_assert_int_eq(sem_timedwait(sem, &until), 0);
}

static inline void
mount_it(const char *options)
{
    char text[512], error[512] = "";
    int n =
        snprintf(text, sizeof text,
                 "volume c\n type protocol/client\n option remote-host 127.0.0.1\n option remote-port %u\n"
                 " option remote-subvolume /brick\n%s end-volume\n",
                 port, options);
    struct volfile *v = volfile_parse("t.vol", text, (size_t)n, error, sizeof error);

    ck_assert_msg(v != NULL, "%s", error);
    graph = graph_new(client_type_find, v, "c", error, sizeof error);
    ck_assert_msg(graph != NULL, "%s", error);
    graph->watch = event;
    ck_assert_int_eq(graph_start(graph), 0);
}

static inline void
setup(void)
{
    static int (*const inits[])(void) = {mem_pools_init,      arena_pools_init, iobuf_pools_init,
                                         dict_pools_init,     stack_pools_init, fs_pools_init,
                                         transport_pools_init};

    for (size_t i = 0; i < sizeof inits / sizeof inits[0]; i++)
        ck_assert_int_eq(inits[i](), 0);
    rcu_register_thread();
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 2, .max = 8}), 0);
    sem_init(&came_up, 0, 0);
    sem_init(&went_down, 0, 0);
    peer.other = answer;
    peer_start(0);
    port = peer.port;
}

/* The audit of graph_free() finds nothing, because all memory of the graph has been freed. */
static inline void
teardown(void)
{
    graph_drain(graph);
    uint16_t owner = graph->owner;
    graph_free(graph);
    ck_assert_int_eq(mem_owner_balance(owner, NULL), 0);
    peer_stop();
    transport_close_all();
    workers_stop();
    rcu_unregister_thread();
}

/* ---- calls ----------------------------------------------------------------------------------- */

static inline void
done(struct call_stack *stk)
{
    sem_post(stk->owner);
}

static sem_t one_done;

static inline struct call_stack *
make(enum fop fop, struct fd *fd)
{
    struct call_stack *stk = call_stack_new(done, &one_done);

    ck_assert_ptr_nonnull(stk);
    sem_init(&one_done, 0, 0);
    stk->call.fop = fop;
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    return stk;
}

static inline void
wind(struct call_stack *stk)
{
    read_section_begin();
    call_stack_wind(stk, graph->top);
    read_section_end();
}

static struct fop_flock flock = {.type = FLOCK_WRITE, .owner = {.len = 1, .bytes = (const uint8_t *)"o"}};

/* Returns op_ret, or -op_errno. */
static inline int
ask(enum fop fop, struct fd *fd)
{
    static char byte[1] = {'x'};
    struct call_stack *stk = make(fop, fd);

    if (fop == FOP_writev) {
        stk->call.payload[0] = (struct iovec){byte, 1};
        stk->call.payload_count = 1;
        stk->call.payload_bytes = stk->call.size = 1;
    }
    if (fop == FOP_lk) {
        stk->call.cmd = 1;
        stk->call.type = flock.type;
        stk->call.flock = flock;
    }
    if (fop == FOP_flush)
        stk->caller.lk_owner = flock.owner;
    wind(stk);
    wait_on(&one_done);
    int ret = stk->reply.op_ret < 0 ? -stk->reply.op_errno : stk->reply.op_ret;

    call_stack_free(stk);
    return ret;
}

static inline struct fd *
open_one(uint32_t flags)
{
    struct iatt a = {.gfid.b = {9}, .mode = S_IFREG | 0644};
    struct call_stack *stk = make(FOP_open, NULL);

    stk->call.loc.inode = inode_link(graph->inodes, NULL, NULL, &a);
    stk->call.flags = flags;
    wind(stk);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, 0);
    struct fd *fd = stk->reply.fd;

    ck_assert_ptr_nonnull(fd);
    stk->reply.fd = NULL;
    call_stack_free(stk);
    return fd;
}

static inline void
close_one(struct fd *fd)
{
    read_section_begin();
    fd_unref(fd);
    read_section_end();
}

static inline void
wait_for_releases(int count)
{
    for (int i = 0; i < WAIT_S * 100 && brick.releases < count; i++)
        usleep(10000);
    ck_assert_int_eq(brick.releases, count);
}

static inline void
lose_brick(void)
{
    peer_hang_up();
    wait_on(&went_down);
}

/* Runs the tests that `add` adds. Returns the status of the process. */
static inline int
client_tests_run(const char *name, void (*add)(TCase *tc))
{
    Suite *suite = suite_create(name);
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_checked_fixture(tc, setup, teardown);
    add(tc);
    tcase_set_timeout(tc, 300);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed ? 1 : 0;
}

#endif
