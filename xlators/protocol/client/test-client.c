/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* protocol/client in a graph of its own, with a brick of plain sockets and threads that counts its
 * requests. Tests fds and their numbers, also after a lost connection, and replies while the brick is down.
 */
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
#include "rpc/xdr/fop-codec.h"
#include "rpc/transport/transport.h"
#include "rpc/xdr/handshake-program.h"
#include "rpc/xdr/sequence-program.h"
#include "xlators/protocol/client/client-internal.h"

enum { WAIT_S = 120 };

extern const struct xlator_type protocol_client_xlator;

static const struct xlator_type *
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

static void
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

static void
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

static void
note_lock(const struct fop_call *c)
{
    int i = brick.locks++;

    peer_must(i < 8 && c->flock.owner.len == 1 && *c->flock.owner.bytes == 'o');
    brick.lock[i].type = c->flock.type;
    brick.lock[i].start = c->flock.start;
    brick.lock[i].len = c->flock.len;
    brick.lock[i].number = c->fd_nr;
}

static void
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

static bool
is_release(uint32_t fop)
{
    return fop == FOP_release || fop == FOP_releasedir;
}

static void
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

static void
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

static void
event(struct graph *g, const struct layer_event *e)
{
    (void)g;
    if (e->kind == EVENT_CHILD)
        sem_post(e->change == CHILD_UP ? &came_up : &went_down);
}

static void
wait_on(sem_t *sem)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    ck_assert_int_eq(sem_timedwait(sem, &until), 0);
}

static void
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

static void
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
static void
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

static void
done(struct call_stack *stk)
{
    sem_post(stk->owner);
}

static sem_t one_done;

static struct call_stack *
make(enum fop fop, struct fd *fd)
{
    struct call_stack *stk = call_stack_new(done, &one_done);

    ck_assert_ptr_nonnull(stk);
    sem_init(&one_done, 0, 0);
    stk->call.fop = fop;
    stk->call.fd = fd ? fd_ref(fd) : NULL;
    return stk;
}

static void
wind(struct call_stack *stk)
{
    read_section_begin();
    call_stack_wind(stk, graph->top);
    read_section_end();
}

static struct fop_flock flock = {.type = FLOCK_WRITE, .owner = {.len = 1, .bytes = (const uint8_t *)"o"}};

/* Returns op_ret, or -op_errno. */
static int
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

static struct fd *
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

static void
close_one(struct fd *fd)
{
    read_section_begin();
    fd_unref(fd);
    read_section_end();
}

static void
wait_for_releases(int count)
{
    for (int i = 0; i < WAIT_S * 100 && brick.releases < count; i++)
        usleep(10000);
    ck_assert_int_eq(brick.releases, count);
}

static void
lose_brick(void)
{
    peer_hang_up();
    wait_on(&went_down);
}

/* ---- the tests ------------------------------------------------------------------------------- */

START_TEST(an_fd_is_sent_by_number_and_released)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);
    long long number = brick.next_number;

    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    ck_assert_int_eq(brick.last_number, number);
    ck_assert_int_eq(brick.releases, 0);
    close_one(fd);
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, number);
}
END_TEST

START_TEST(create_makes_the_inode_of_the_reply)
{
    mount_it("");
    wait_on(&came_up);
    struct call_stack *stk = make(FOP_create, NULL);

    stk->call.loc.parent = inode_root(graph->inodes);
    stk->call.loc.name = "n";
    stk->call.flags = O_CREAT | O_RDWR;
    wind(stk);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, 0);
    ck_assert_int_eq(stk->reply.fd->inode->gfid.b[0], 7);
    call_stack_free(stk); /* no layer has taken the fd */
    wait_for_releases(1);
}
END_TEST

/* The layer that gets the reply would link it. */
START_TEST(an_object_without_a_gfid_fails_the_lookup)
{
    static const enum fop fops[] = {FOP_create, FOP_lookup, FOP_mknod, FOP_mkdir, FOP_symlink, FOP_link};

    brick.has_no_gfids = true;
    mount_it("");
    wait_on(&came_up);
    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        struct call_stack *stk = make(fops[i], NULL);

        stk->call.loc.parent = inode_root(graph->inodes);
        stk->call.loc.name = "n";
        wind(stk);
        wait_on(&one_done);
        ck_assert_int_eq(stk->reply.op_ret, -1);
        ck_assert_int_eq(stk->reply.op_errno, EIO);
        call_stack_free(stk);
    }
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0);
}
END_TEST

static int
ask_of_root(enum fop fop)
{
    struct call_stack *stk = make(fop, NULL);

    stk->call.loc.inode = inode_root(graph->inodes);
    wind(stk);
    wait_on(&one_done);
    int err = stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;

    call_stack_free(stk);
    return err;
}

/* The kernel would give up the root, and with it the mount. */
START_TEST(impossible_attributes_fail_the_call)
{
    static const enum fop fops[] = {FOP_stat, FOP_setattr, FOP_truncate};

    mount_it("");
    wait_on(&came_up);
    for (size_t i = 0; i < sizeof fops / sizeof fops[0]; i++) {
        brick.mode = S_IFREG | 0755;
        ck_assert_int_eq(ask_of_root(fops[i]), -EIO);
        brick.mode = 0; /* an arbiter's reply */
        ck_assert_int_eq(ask_of_root(fops[i]), fops[i] == FOP_truncate ? 0 : -EIO);
        brick.mode = S_IFDIR | 0755;
        brick.size = UINT64_MAX;
        ck_assert_int_eq(ask_of_root(fops[i]), -EIO);
        brick.size = 4096;
        ck_assert_int_eq(ask_of_root(fops[i]), 0);
    }
}
END_TEST

static void
open_along(struct fd *fd)
{
    struct call_stack *stk = make(FOP_open, fd);

    stk->call.loc.inode = inode_ref(fd->inode);
    stk->call.flags = O_RDWR;
    wind(stk);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, 0);
    ck_assert_ptr_eq(stk->reply.fd, fd);
    call_stack_free(stk);
}

START_TEST(a_write_of_more_bytes_than_were_sent_fails)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    brick.writes_more = 1;
    ck_assert_int_eq(ask(FOP_writev, fd), -EIO);
    brick.writes_more = INT32_MAX - 1;
    ck_assert_int_eq(ask(FOP_writev, fd), -EIO);
    brick.writes_more = 0;
    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    close_one(fd);
}
END_TEST

START_TEST(a_passed_fd_gets_the_number)
{
    mount_it("");
    wait_on(&came_up);
    struct iatt a = {.gfid.b = {9}, .mode = S_IFREG | 0644};
    struct inode *inode = inode_link(graph->inodes, NULL, NULL, &a);
    struct fd *fd = fd_new(inode, NULL, O_RDWR, false);

    inode_unref(inode);
    ck_assert_int_eq(ask(FOP_flush, fd), -EBADFD); /* not open here */
    open_along(fd);
    long long first = brick.next_number;

    ck_assert_int_eq(ask(FOP_flush, fd), 0);
    ck_assert_int_eq(brick.last_number, first);
    open_along(fd); /* once more: the first number is given back */
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, first);
    ck_assert_int_eq(ask(FOP_flush, fd), 0);
    ck_assert_int_eq(brick.last_number, first + 1);
    close_one(fd);
    wait_for_releases(2);
    ck_assert_int_eq(brick.last_released, first + 1);
}
END_TEST

START_TEST(an_fd_is_open_again_when_the_brick_is_back)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR | O_APPEND | O_TRUNC);
    long long before = brick.next_number;

    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(brick.logins, 2);
    ck_assert_int_eq(brick.opens, 2);
    ck_assert_uint_eq(brick.last_flags, O_RDWR | O_APPEND); /* the file is not truncated again */
    ck_assert_int_eq(ask(FOP_fsync, fd), 0);
    ck_assert_int_eq(brick.last_number, before + 1);
    close_one(fd);
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, before + 1);
}
END_TEST

START_TEST(an_fd_that_cannot_be_reopened_uses_the_gfid_or_fails)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    brick.opens_nothing = true;
    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(ask(FOP_writev, fd), 1);
    ck_assert_int_eq(brick.last_number, FD_ANONYMOUS);
    ck_assert_int_eq(ask(FOP_flush, fd), -EBADFD);
    close_one(fd); /* the brick has no number for it: nothing to give back */
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0);
    ck_assert_int_eq(brick.releases, 0);
}
END_TEST

static void
lock_one(struct fd *fd, uint32_t type, int64_t start, int64_t len)
{
    flock.type = type;
    flock.start = start;
    flock.len = len;
    ck_assert_int_eq(ask(FOP_lk, fd), 0);
}

/* Returns whether the brick got this lock request after its return, by the lock's first byte. */
static bool
was_taken(uint32_t type, long long start, long long len, long long number)
{
    for (int i = 0; i < brick.locks; i++) {
        if (brick.lock[i].start == start)
            return brick.lock[i].type == type && brick.lock[i].len == len && brick.lock[i].number == number;
    }
    return false;
}

START_TEST(locks_are_taken_again_when_the_brick_is_back)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR), *other = open_one(O_RDWR);

    lock_one(fd, FLOCK_WRITE, 100, 100);
    lock_one(fd, FLOCK_UNLOCK, 120, 10); /* splits the lock */
    lock_one(fd, FLOCK_READ, 190, 50);   /* takes a part of the second one's range */
    lock_one(fd, FLOCK_WRITE, 1000, 0);
    lock_one(other, FLOCK_UNLOCK, 1000, 0); /* of the same owner */
    lock_one(other, FLOCK_WRITE, 5000, 0);
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 4);
    long long number = brick.lock[0].start == 5000 ? brick.lock[1].number : brick.lock[0].number;

    ck_assert(was_taken(FLOCK_WRITE, 100, 20, number));
    ck_assert(was_taken(FLOCK_WRITE, 130, 60, number));
    ck_assert(was_taken(FLOCK_READ, 190, 50, number));
    ck_assert(!was_taken(FLOCK_WRITE, 5000, 0, number)); /* through the other fd */
    close_one(other);
    wait_for_releases(1); /* and the locks taken through it */
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 3);
    ck_assert_int_eq(ask(FOP_flush, fd), 0); /* drops the owner's locks */
    lose_brick();
    brick.locks = 0;
    wait_on(&came_up);
    ck_assert_int_eq(brick.locks, 0);
    close_one(fd);
}
END_TEST

START_TEST(strict_locks_leave_an_fd_with_locks_dead)
{
    mount_it(" option strict-locks on\n");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_lk, fd), 0);
    lose_brick();
    wait_on(&came_up);
    ck_assert_int_eq(brick.opens, 1);
    ck_assert_int_eq(ask(FOP_writev, fd), -EBADFD);
    close_one(fd);
}
END_TEST

/* This brick does not offer sequences. */
START_TEST(joined_calls_go_one_after_another)
{
    mount_it("");
    wait_on(&came_up);
    struct call_stack *a = make(FOP_statfs, NULL), *b = make(FOP_lookup, NULL), *c = make(FOP_statfs, NULL);
    struct call_stack *d = make(FOP_statfs, NULL);

    call_stack_join(a, b, false);
    call_stack_join(b, c, false);
    call_stack_join(c, d, true);
    wind(a);
    for (int i = 0; i < 4; i++)
        wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_int_eq(b->reply.op_errno, EIO); /* no gfid comes */
    ck_assert_int_eq(c->reply.op_errno, ECANCELED);
    ck_assert_int_eq(c->reply.shortage, SHORTAGE_UNSENT);
    ck_assert_int_eq(d->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
    call_stack_free(c);
    call_stack_free(d);
}
END_TEST

/* ---- RELEASEs that wait ---------------------------------------------------------------------- */

static void
mount_for_sequences(const char *wait_ms)
{
    char options[64];

    snprintf(options, sizeof options, " option release-wait-ms %s\n", wait_ms);
    brick.takes_sequences = true;
    mount_it(options);
    wait_on(&came_up);
}

/* Sends two joined calls. */
static void
ask_joined(void)
{
    struct fd *fd = open_one(O_RDWR);
    struct call_stack *a = make(FOP_fsync, fd), *b = make(FOP_fsync, fd);

    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_int_eq(b->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
    close_one(fd);
}

START_TEST(a_release_rides_behind_the_next_sequence)
{
    mount_for_sequences("60000");
    struct fd *fd = open_one(O_RDWR);
    long long number = brick.next_number;

    close_one(fd);
    ck_assert_int_eq(brick.releases, 0);
    ask_joined();
    ck_assert_int_eq(brick.releases, 1);
    ck_assert_int_eq(brick.last_released, number);
    ck_assert_int_eq(brick.sequences, 1);
    ck_assert_int_eq(brick.steps, 3);
}
END_TEST

START_TEST(a_release_rides_behind_the_last_calls_about_its_fd)
{
    mount_for_sequences("0");
    struct fd *fd = open_one(O_RDWR);
    struct call_stack *a = make(FOP_fsync, fd), *b = make(FOP_fsync, fd);
    long long number = brick.next_number;

    b->closes_fd = true;
    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(b->reply.op_ret, 0);
    ck_assert_int_eq(brick.steps, 3);
    ck_assert_int_eq(brick.releases, 1);
    ck_assert_int_eq(brick.last_released, number);
    call_stack_free(a);
    call_stack_free(b);
    ck_assert_int_eq(ask(FOP_fsync, fd), 0); /* by the gfid */
    ck_assert_int_eq(brick.last_number, FD_ANONYMOUS);
    close_one(fd);
    ck_assert_int_eq(ask(FOP_statfs, NULL), 0); /* a RELEASE would come before it */
    ck_assert_int_eq(brick.releases, 1);
}
END_TEST

/* Joins a call behind an OPEN, by the OPEN's fd. */
static void
ask_opened(void)
{
    struct iatt file = {.gfid.b = {9}, .mode = S_IFREG | 0644};
    struct call_stack *a = make(FOP_open, NULL), *b = make(FOP_fsync, NULL);

    a->call.loc.inode = inode_link(graph->inodes, NULL, NULL, &file);
    b->call.loc.inode = inode_ref(a->call.loc.inode);
    b->takes_fd = true;
    call_stack_join(a, b, false);
    wind(a);
    wait_on(&one_done);
    wait_on(&one_done);
    ck_assert_int_eq(a->reply.op_ret, 0);
    ck_assert_ptr_nonnull(a->reply.fd);
    ck_assert_int_eq(b->reply.op_ret, 0);
    call_stack_free(a);
    call_stack_free(b);
}

START_TEST(a_joined_call_takes_the_fd_of_the_open_before)
{
    mount_for_sequences("0");
    ask_opened();
    ck_assert_int_eq(brick.sequences, 1);
    ck_assert_int_eq(brick.fd_of, 1);
}
END_TEST

START_TEST(a_call_of_its_own_takes_the_fd_of_the_open_before)
{
    mount_it("");
    wait_on(&came_up);
    ask_opened();
    ck_assert_int_eq(brick.last_number, brick.next_number);
}
END_TEST

START_TEST(six_releases_that_wait_share_a_record)
{
    mount_for_sequences("60000");
    for (int i = 0; i < RELEASES_LATE_MAX; i++)
        close_one(open_one(O_RDWR));
    wait_for_releases(RELEASES_LATE_MAX);
    ck_assert_int_eq(brick.sequences, 1);
}
END_TEST

START_TEST(a_lone_release_is_sent_after_its_time)
{
    mount_for_sequences("1");
    close_one(open_one(O_RDWR));
    wait_for_releases(1);
    ck_assert_int_eq(brick.sequences, 0);
}
END_TEST

START_TEST(the_release_of_a_locked_file_does_not_wait)
{
    mount_for_sequences("60000");
    struct fd *fd = open_one(O_RDWR);

    ck_assert_int_eq(ask(FOP_lk, fd), 0);
    close_one(fd);
    wait_for_releases(1);
}
END_TEST

START_TEST(a_release_that_the_brick_has_not_run_is_sent_again)
{
    mount_for_sequences("60000");
    close_one(open_one(O_RDWR));
    long long number = brick.next_number;

    brick.runs_no_release = true;
    ask_joined();
    wait_for_releases(1);
    ck_assert_int_eq(brick.last_released, number);
}
END_TEST

/* The number would close another file of the new session. */
START_TEST(a_release_that_waits_ends_with_its_connection)
{
    mount_for_sequences("60000");
    close_one(open_one(O_RDWR));
    lose_brick();
    wait_on(&came_up);
    ask_joined();
    ck_assert_int_eq(brick.steps, 2);
    ck_assert_int_eq(brick.releases, 0);
}
END_TEST

START_TEST(a_call_that_waits_gets_enotconn)
{
    mount_it("");
    wait_on(&came_up);
    brick.answers_not = true;
    struct call_stack *stk = make(FOP_statfs, NULL);

    wind(stk);
    lose_brick();
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_ret, -1);
    ck_assert_int_eq(stk->reply.op_errno, ENOTCONN);
    call_stack_free(stk);
}
END_TEST

START_TEST(a_call_ends_with_the_frame_timeout)
{
    mount_it(" option frame-timeout 1\n");
    wait_on(&came_up);
    brick.answers_not = true;
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

/* The first timeout would be longer than the test. */
START_TEST(a_new_frame_timeout_takes_effect)
{
    char text[512], error[512] = "";

    mount_it(" option frame-timeout 3600\n");
    wait_on(&came_up);
    int n =
        snprintf(text, sizeof text,
                 "volume c\n type protocol/client\n option remote-host 127.0.0.1\n option remote-port %u\n"
                 " option remote-subvolume /brick\n option frame-timeout 1\n end-volume\n",
                 port);
    struct volfile *v = volfile_parse("t.vol", text, (size_t)n, error, sizeof error);

    ck_assert_msg(v && graph_reconfigure(graph, v, error, sizeof error) == 0, "%s", error);
    brick.answers_not = true;
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

START_TEST(a_missing_brick_is_reported_and_calls_fail_at_once)
{
    port = 1;
    mount_it("");
    wait_on(&went_down);
    ck_assert_int_eq(ask(FOP_statfs, NULL), -ENOTCONN);
}
END_TEST

START_TEST(a_graph_ends_while_calls_wait)
{
    mount_it("");
    wait_on(&came_up);
    struct fd *fd = open_one(O_RDWR);

    brick.answers_not = true;
    struct call_stack *stk = make(FOP_statfs, NULL);

    ck_assert(graph_pin(graph));
    wind(stk);
    graph_stop(graph);
    wait_on(&one_done);
    ck_assert_int_eq(stk->reply.op_errno, ENOTCONN);
    call_stack_free(stk);
    close_one(fd);
    graph_unpin(graph);
}
END_TEST

int
main(void)
{
    Suite *suite = suite_create("protocol/client");
    TCase *tc = tcase_create("all");
    SRunner *runner = srunner_create(suite);

    tcase_add_checked_fixture(tc, setup, teardown);
    tcase_add_test(tc, an_fd_is_sent_by_number_and_released);
    tcase_add_test(tc, create_makes_the_inode_of_the_reply);
    tcase_add_test(tc, an_object_without_a_gfid_fails_the_lookup);
    tcase_add_test(tc, impossible_attributes_fail_the_call);
    tcase_add_test(tc, a_write_of_more_bytes_than_were_sent_fails);
    tcase_add_test(tc, a_passed_fd_gets_the_number);
    tcase_add_test(tc, an_fd_is_open_again_when_the_brick_is_back);
    tcase_add_test(tc, an_fd_that_cannot_be_reopened_uses_the_gfid_or_fails);
    tcase_add_test(tc, locks_are_taken_again_when_the_brick_is_back);
    tcase_add_test(tc, strict_locks_leave_an_fd_with_locks_dead);
    tcase_add_test(tc, joined_calls_go_one_after_another);
    tcase_add_test(tc, a_release_rides_behind_the_next_sequence);
    tcase_add_test(tc, a_release_rides_behind_the_last_calls_about_its_fd);
    tcase_add_test(tc, a_joined_call_takes_the_fd_of_the_open_before);
    tcase_add_test(tc, a_call_of_its_own_takes_the_fd_of_the_open_before);
    tcase_add_test(tc, six_releases_that_wait_share_a_record);
    tcase_add_test(tc, a_lone_release_is_sent_after_its_time);
    tcase_add_test(tc, the_release_of_a_locked_file_does_not_wait);
    tcase_add_test(tc, a_release_that_the_brick_has_not_run_is_sent_again);
    tcase_add_test(tc, a_release_that_waits_ends_with_its_connection);
    tcase_add_test(tc, a_call_that_waits_gets_enotconn);
    tcase_add_test(tc, a_call_ends_with_the_frame_timeout);
    tcase_add_test(tc, a_new_frame_timeout_takes_effect);
    tcase_add_test(tc, a_missing_brick_is_reported_and_calls_fail_at_once);
    tcase_add_test(tc, a_graph_ends_while_calls_wait);
    tcase_set_timeout(tc, 300);
    suite_add_tcase(suite, tc);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);

    srunner_free(runner);
    return failed ? 1 : 0;
}
