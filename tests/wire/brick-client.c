/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* brick-client HOST PORT BRICK: a client made of rpc/client alone. The client logs in, directly or by way of
 * glusterd, does one of each common operation, has two thousand calls under way, and survives the death of
 * the brick's process while a call waits for a lock: the client says `# kill the brick now`, then `# start
 * the brick now`, and continues when the brick is back.
 *
 * Prints `ok - ...` and `not ok - ...` lines. Exit status 1 when a line is `not ok`.
 */
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "data/dict.h"
#include "event/worker.h"
#include "log/log.h"
#include "graph/pools.h"
#include "mem/mem-pool.h"
#include "rpc/client/brick-peer.h"
#include "rpc/xdr/callback-program.h"

enum { CROWD = 2000, BULK_BYTES = 200000, WAIT_S = 120 };

static struct brick_peer *brick;
static sem_t came_up, went_down, gone, crowd_done;
static atomic_int crowd_failed, crowd_left;
static int failures;

static void
check(bool holds, const char *what, const struct fop_reply *r)
{
    if (holds) {
        printf("ok - %s\n", what);
    } else {
        printf("not ok - %s\n", what);
        if (r)
            printf("# op_ret %d, op_errno %d (%s)\n", r->op_ret, r->op_errno, strerror(r->op_errno));
        failures++;
    }
    fflush(stdout);
}

static void
give_up(const char *what)
{
    printf("not ok - %s\n", what);
    exit(EXIT_FAILURE);
}

static void
wait_on(sem_t *sem, const char *what)
{
    struct timespec until;

    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_S;
    while (sem_timedwait(sem, &until)) {
        if (errno != EINTR)
            give_up(what);
    }
}

/* ---- the brick's events ---------------------------------------------------------------------- */

static void
owner_up(struct brick_peer *p, const struct brick_login *login, void *arg)
{
    (void)p;
    (void)arg;
    printf("# up: volume %s\n", login->volume_id ? login->volume_id : "unknown");
    fflush(stdout);
    sem_post(&came_up);
}

static void
owner_down(struct brick_peer *p, void *arg)
{
    (void)p;
    (void)arg;
    sem_post(&went_down);
}

static void
owner_gone(void *arg)
{
    (void)arg;
    sem_post(&gone);
}

static const struct brick_peer_ops owner_ops = {.up = owner_up, .down = owner_down, .gone = owner_gone};

/* ---- one operation --------------------------------------------------------------------------- */

/* A call, its answer and the memory of both. */
struct op {
    struct fop_call call;
    struct caller caller;
    struct fop_reply reply;
    struct arena arena;
    sem_t done;
};

static struct op *
op_new(enum fop fop)
{
    struct op *o = calloc(1, sizeof *o);

    if (!o)
        give_up("memory");
    o->call.fop = fop;
    o->caller = (struct caller){.pid = getpid(), .lk_owner = {.len = 1, .bytes = (const uint8_t *)"a"}};
    o->call.gfid = gfid_root;
    sem_init(&o->done, 0, 0);
    return o;
}

static void
op_free(struct op *o)
{
    iobuf_unref(o->reply.iobuf);
    arena_release(&o->arena);
    free(o);
}

static void
op_answered(struct rpc_reply *r, void *arg)
{
    struct op *o = arg;

    rpc_reply_fop(r, o->call.fop, &o->reply, &o->arena);
    sem_post(&o->done);
}

static int
op_send(struct op *o)
{
    return rpc_client_fop(brick_peer_client(brick), &o->call, &o->caller, NULL, 0, op_answered, o);
}

static struct fop_reply *
op_do(struct op *o)
{
    int err = op_send(o);

    if (err)
        o->reply = (struct fop_reply){.op_ret = -1, .op_errno = -err};
    else
        wait_on(&o->done, "an answer");
    return &o->reply;
}

static void
make_name(struct op *o, const char *name)
{
    o->call.gfid = gfid_null;
    o->call.pargfid = gfid_root;
    o->call.name = name;
}

/* ---- a tour ---------------------------------------------------------------------------------- */

static int64_t
create(const char *name, struct gfid *gfid)
{
    struct op *o = op_new(FOP_create);

    make_name(o, name);
    gfid_random(gfid);
    o->call.flags = O_CREAT | O_EXCL | O_RDWR;
    o->call.mode = S_IFREG | 0644;
    o->call.xdata = dict_new(&o->arena);
    if (!o->call.xdata || dict_set_gfid(o->call.xdata, DICT_KEY_GFID_REQ, gfid))
        give_up("memory");
    const struct fop_reply *r = op_do(o);
    int64_t fd = r->fd_nr;

    check(r->op_ret == 0, "CREATE succeeds", r);
    check(gfid_equal(&r->stat.gfid, gfid), "CREATE gives the requested gfid", r);
    op_free(o);
    return fd;
}

static void
write_at(const struct gfid *gfid, int64_t fd, uint64_t offset, char *bytes, size_t n)
{
    struct op *o = op_new(FOP_writev);

    o->call.gfid = *gfid;
    o->call.fd_nr = fd;
    o->call.offset = offset;
    o->call.size = n;
    o->call.payload[0] = (struct iovec){bytes, n / 2};
    o->call.payload[1] = (struct iovec){bytes + n / 2, n - n / 2};
    o->call.payload_count = 2;
    o->call.payload_bytes = n;
    const struct fop_reply *r = op_do(o);

    check(r->op_ret == (int32_t)n && r->post.size == offset + n, "WRITE succeeds", r);
    op_free(o);
}

static void
read_at(const struct gfid *gfid, int64_t fd, uint64_t offset, const char *want, size_t n, const char *what)
{
    struct op *o = op_new(FOP_readv);

    o->call.gfid = *gfid;
    o->call.fd_nr = fd;
    o->call.offset = offset;
    o->call.size = n;
    const struct fop_reply *r = op_do(o);

    check(r->op_ret == (int32_t)n && memcmp(r->payload.iov_base, want, n) == 0, what, r);
    op_free(o);
}

static void
look_up(const char *name, int want, const char *what)
{
    struct op *o = op_new(FOP_lookup);

    if (name)
        make_name(o, name);
    const struct fop_reply *r = op_do(o);

    check(want ? r->op_ret == -1 && r->op_errno == want : r->op_ret == 0, what, r);
    if (!name)
        check(gfid_equal(&r->stat.gfid, &gfid_root) && S_ISDIR(r->stat.mode), "the root is a directory", r);
    op_free(o);
}

static void
list_root(const char *name)
{
    struct op *open = op_new(FOP_opendir), *list = op_new(FOP_readdirp);
    bool is_there = false;
    const struct fop_reply *r = op_do(open);

    check(r->op_ret == 0, "OPENDIR succeeds", r);
    list->call.fd_nr = r->fd_nr;
    list->call.size = 65536;
    r = op_do(list);
    for (const struct dirent_entry *e = r->entries; e; e = e->next)
        is_there |= strcmp(e->name, name) == 0 && S_ISREG(e->iatt.mode);
    check(r->op_ret > 0 && is_there, "READDIRP lists the file", r);
    op_free(open);
    op_free(list);
}

static void
statfs(void)
{
    struct op *o = op_new(FOP_statfs);
    const struct fop_reply *r = op_do(o);

    check(r->op_ret == 0 && r->statvfs.f_blocks > 0, "STATFS succeeds", r);
    op_free(o);
}

static void
unlink_name(const char *name)
{
    struct op *o = op_new(FOP_unlink);

    make_name(o, name);
    check(op_do(o)->op_ret == 0, "UNLINK succeeds", &o->reply);
    op_free(o);
}

/* ---- many at once ---------------------------------------------------------------------------- */

static void
crowd_answered(struct rpc_reply *r, void *arg)
{
    struct op *o = arg;

    rpc_reply_fop(r, o->call.fop, &o->reply, &o->arena);
    crowd_failed += o->reply.op_ret != 0;
    op_free(o);
    if (atomic_fetch_sub(&crowd_left, 1) == 1)
        sem_post(&crowd_done);
}

static void
crowd(void)
{
    crowd_left = CROWD;
    for (int i = 0; i < CROWD; i++) {
        struct op *o = op_new(FOP_lookup);

        if (rpc_client_fop(brick_peer_client(brick), &o->call, &o->caller, NULL, 0, crowd_answered, o))
            give_up("2000 concurrent calls succeed");
    }
    wait_on(&crowd_done, "2000 answers");
    check(crowd_failed == 0, "2000 concurrent calls succeed", NULL);
}

/* ---- the brick dies -------------------------------------------------------------------------- */

static struct op *
lock_op(const struct gfid *gfid, const char *owner, bool waits)
{
    struct op *o = op_new(FOP_inodelk);

    o->caller.lk_owner.bytes = (const uint8_t *)owner;
    o->call.gfid = *gfid;
    o->call.cmd = waits ? 2 : 1;
    o->call.type = FLOCK_WRITE;
    o->call.flock = (struct fop_flock){.type = FLOCK_WRITE};
    o->call.volume = "brick-client";
    return o;
}

static void
say(const char *what)
{
    printf("# %s\n", what);
    fflush(stdout);
}

static void
die_and_return(const struct gfid *gfid, const char *bytes)
{
    struct op *held = lock_op(gfid, "a", false), *waits = lock_op(gfid, "b", true);

    check(op_do(held)->op_ret == 0, "INODELK succeeds", &held->reply);
    check(op_send(waits) == 0, "a second INODELK waits", NULL);
    look_up(NULL, 0, "LOOKUP is answered while the INODELK waits");
    say("kill the brick now");
    wait_on(&waits->done, "the call that waits to be answered when the brick dies");
    check(waits->reply.op_ret == -1 && waits->reply.op_errno == ENOTCONN, "the call that waits gets ENOTCONN",
          &waits->reply);
    wait_on(&went_down, "to be told that the brick is down");
    look_up("any", ENOTCONN, "calls get ENOTCONN while the brick is down");
    say("start the brick now");
    wait_on(&came_up, "the brick to come back");
    look_up(NULL, 0, "LOOKUP succeeds after the return of the brick");
    read_at(gfid, FD_ANONYMOUS, 0, bytes, BULK_BYTES, "READ returns the written bytes after the return");
    op_free(held);
    op_free(waits);
}

/* ---- the program ----------------------------------------------------------------------------- */

static void
tour(void)
{
    char *bytes = malloc(BULK_BYTES);
    struct gfid gfid;

    for (size_t i = 0; i < BULK_BYTES; i++)
        bytes[i] = (char)(i * 31 + i / 256);
    look_up(NULL, 0, "LOOKUP of the root succeeds");
    statfs();
    look_up("brick-client-file", ENOENT, "LOOKUP of a missing name is answered ENOENT");
    int64_t fd = create("brick-client-file", &gfid);

    write_at(&gfid, fd, 0, bytes, 10);
    write_at(&gfid, fd, 10, bytes + 10, BULK_BYTES - 10);
    read_at(&gfid, fd, 0, bytes, BULK_BYTES, "READ returns 200,000 bytes");
    read_at(&gfid, fd, 777, bytes + 777, 100, "READ returns 100 bytes");
    look_up("brick-client-file", 0, "LOOKUP by name succeeds");
    list_root("brick-client-file");
    crowd();
    die_and_return(&gfid, bytes);
    unlink_name("brick-client-file");
    look_up("brick-client-file", ENOENT, "LOOKUP of an unlinked name is answered ENOENT");
    free(bytes);
}

static void
process_start(void)
{
    if (graph_pools_init() || transport_pools_init())
        give_up("memory");
    if (workers_start(&(struct worker_options){.min = 3}))
        give_up("workers");
}

int
main(int argc, char **argv)
{
    sem_t *all[] = {&came_up, &went_down, &gone, &crowd_done};
    char uuid[128];
    int err;

    if (argc != 4) {
        fprintf(stderr, "usage: brick-client HOST PORT BRICK\n");
        return EXIT_FAILURE;
    }
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sem_init(all[i], 0, 0);
    process_start();
    snprintf(uuid, sizeof uuid, "CTX_ID:brick-client-%d-GRAPH_ID:0-PID:%d-HOST:here-PC_NAME:client", getpid(),
             getpid());
    brick = brick_peer_new(
        &(struct brick_peer_options){
            .rpc = {.name = "brick-client",
                    .where = {.host = argv[1],
                              .port = (uint16_t)atoi(argv[2]),
                              .wants_low_port = geteuid() == 0},
                    .ping_timeout_s = 42,
                    .call_timeout_s = 1800},
            .brick = argv[3],
            .process_uuid = uuid,
            .process_name = "brick-client",
        },
        &owner_ops, NULL, &err);
    if (!brick)
        give_up("a brick peer");
    brick_peer_start(brick);
    wait_on(&came_up, "the login");
    check(true, "the client logs in", NULL);
    tour();
    brick_peer_close(brick);
    wait_on(&gone, "the end");
    transport_close_all();
    workers_stop();
    mem_pools_fini();
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
