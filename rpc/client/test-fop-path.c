/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A client whose fops go by a path of this test (rpc/transport/fop-path.h), beside a connection to a
 * listener of this process that never answers. */
#include <check.h>
#include <semaphore.h>
#include <stdio.h>
#include <unistd.h>

#include "event/worker.h"
#include "graph/pools.h"
#include "mem/mem-pool.h"
#include "rpc/client/rpc-client.h"
#include "rpc/transport/fop-path.h"
#include "rpc/transport/transport.h"
#include "rpc/xdr/fop-codec.h"

static struct rpc_client *client;
static struct listener *listener;
static struct fop_path *path; /* the brick's side, a reference */
static struct conn *_Atomic peer_conn;
static atomic_int records;
static sem_t came_up, gone, answered, arrived, came_down;
static struct fop_reply reply;
static struct arena arena;
static int begin_error;
static bool answers_at_once;
static atomic_uint last_xid, begun, dropped;

static void
must_wait(sem_t *sem)
{
    while (sem_wait(sem))
        ;
}

/* ---- the path -------------------------------------------------------------------------------- */

static int
test_begin(struct fop_path *p, struct fop_message *m)
{
    (void)p;
    if (begin_error)
        return begin_error;
    begun++;
    m->begun = m->payload;
    return 0;
}

static int
test_run(struct fop_path *p, struct fop_message *m, struct conn *conn)
{
    (void)conn;
    iobuf_unref(m->begun);
    last_xid = m->xid;
    if (answers_at_once)
        fop_path_answer(p, m->xid, 0, &(struct fop_reply){.stat.size = 4711, .path = "target"});
    return 0;
}

static void
test_drop(struct fop_path *p, struct fop_message *m)
{
    (void)p;
    iobuf_unref(m->begun);
    dropped++;
}

static const struct fop_path_ops test_ops = {.begin = test_begin, .run = test_run, .drop = test_drop};

/* ---- both ends of the connection ------------------------------------------------------------- */

static int
peer_accepted(struct conn *c, void *arg)
{
    (void)arg;
    conn_set_trusted(c);
    atomic_store(&peer_conn, conn_ref(c));
    return 0;
}

static void
peer_record(struct conn *c, struct record *r, void *arg)
{
    (void)c;
    (void)arg;
    record_release(r);
    records++;
    sem_post(&arrived);
}

static void
peer_closed(struct conn *c, void *arg)
{
    (void)arg;
    if (atomic_load(&peer_conn) == c)
        atomic_store(&peer_conn, NULL);
    conn_unref(c);
}

static void
path_connected(struct rpc_client *c, void *arg)
{
    struct gfid token, other;

    (void)arg;
    gfid_random(&other);
    ck_assert_ptr_null(fop_path_take(&other));
    ck_assert(rpc_client_offer_path(c, &token));
    ck_assert(!rpc_client_is_inside(c));
    fop_path_unref(path);
    path = fop_path_take(&token);
    ck_assert_ptr_nonnull(path);
    ck_assert_ptr_null(fop_path_take(&token)); /* an offer is taken once */
    fop_path_open(path, &test_ops, NULL, NULL);
    rpc_client_set_cred(c, CRED_GLUSTERFS_V3);
    ck_assert(rpc_client_up(c));
    ck_assert(rpc_client_is_inside(c));
    sem_post(&came_up);
}

static void
path_down(struct rpc_client *c, bool was_up, void *arg)
{
    (void)c;
    (void)arg;
    if (was_up)
        sem_post(&came_down);
}

static void
path_gone(void *arg)
{
    (void)arg;
    sem_post(&gone);
}

static void
setup(void)
{
    static const struct transport_ops peer_ops = {
        .accepted = peer_accepted, .record = peer_record, .closed = peer_closed};
    static const struct rpc_client_ops ops = {
        .connected = path_connected, .down = path_down, .gone = path_gone};
    sem_t *all[] = {&came_up, &gone, &answered, &arrived, &came_down};
    char at[64];
    int err;

    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        sem_init(all[i], 0, 0);
    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3}), 0);
    snprintf(at, sizeof at, "/tmp/kiln-fop-path.%d", (int)getpid());
    listener = listener_open_unix(at, &peer_ops, NULL, &err);
    ck_assert_ptr_nonnull(listener);
    client = rpc_client_new(&(struct rpc_client_options){.name = "brick",
                                                         .where = {.path = at},
                                                         .retry_min_ms = 1,
                                                         .is_inside = true},
                            &ops, NULL, &err);
    ck_assert_ptr_nonnull(client);
    rpc_client_start(client);
    must_wait(&came_up);
    begin_error = 0;
    answers_at_once = true;
    records = 0;
    begun = dropped = 0;
}

static void
release_reply(void)
{
    iobuf_unref(reply.iobuf);
    arena_release(&arena);
    reply = (struct fop_reply){0};
}

static void
teardown(void)
{
    rpc_client_close(client);
    must_wait(&gone);
    fop_path_unref(path);
    path = NULL;
    release_reply();
    listener_close(listener);
    transport_close_all();
    workers_stop();
    mem_pools_fini();
}

static void
path_fop_answered(struct rpc_reply *r, void *arg)
{
    rpc_reply_fop(r, *(enum fop *)arg, &reply, &arena);
    sem_post(&answered);
}

static enum fop asked;

static int
send_fop_by_path(const struct fop_call *call)
{
    release_reply();
    asked = call->fop;
    return rpc_client_fop(client, call, NULL, NULL, 0, path_fop_answered, &asked);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(a_path_answers_without_a_record)
{
    struct rpc_client_stats s;

    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    must_wait(&answered);
    ck_assert_int_eq(reply.op_ret, 0);
    ck_assert_uint_eq(reply.stat.size, 4711);
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_readlink}), 0);
    must_wait(&answered);
    ck_assert_str_eq(reply.path, "target");
    ck_assert_int_eq(records, 0);
    rpc_client_stats(client, &s);
    ck_assert_uint_eq(s.waiting, 0);
    ck_assert_uint_eq(rpc_client_fops_sent(client, FOP_stat), 1);
}
END_TEST

START_TEST(a_later_answer_arrives_once)
{
    answers_at_once = false;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    ck_assert_int_ne(sem_trywait(&answered), 0);
    fop_path_answer(path, last_xid + 1, 0, &(struct fop_reply){.stat.size = 1}); /* of no call */
    fop_path_answer(path, last_xid, 0, &(struct fop_reply){.stat.size = 2});
    must_wait(&answered);
    ck_assert_uint_eq(reply.stat.size, 2);
    fop_path_answer(path, last_xid, 0, &(struct fop_reply){.stat.size = 3});
    ck_assert_int_ne(sem_trywait(&answered), 0);
    ck_assert_uint_eq(reply.stat.size, 2);
}
END_TEST

START_TEST(a_refused_call_and_a_call_without_memory_fail)
{
    answers_at_once = false;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    fop_path_answer(path, last_xid, -ENOTCONN, &(struct fop_reply){0});
    must_wait(&answered);
    ck_assert_int_eq(reply.op_errno, ENOTCONN);
    begin_error = -ENOMEM;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), -ENOMEM);
    ck_assert_int_ne(sem_trywait(&answered), 0);
    ck_assert_int_eq(records, 0);
}
END_TEST

START_TEST(a_call_goes_by_bytes_when_the_path_has_no_room)
{
    begin_error = -EAGAIN;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    must_wait(&arrived);
    ck_assert_int_eq(records, 1);
    ck_assert_uint_eq(begun, 0);
    begin_error = 0;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    must_wait(&answered);
    ck_assert_int_eq(records, 1);
}
END_TEST

/* The death of the connection between a call and its answer: the call fails once, and the answer is dropped.
 * The next connection has a path of its own. */
START_TEST(an_answer_after_the_end_of_the_connection_is_dropped)
{
    answers_at_once = false;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    struct fop_path *before = fop_path_ref(path);
    uint32_t xid = last_xid;

    while (!atomic_load(&peer_conn)) /* the call went by the path and did not wait for the peer to accept */
        usleep(1000);
    conn_close(atomic_load(&peer_conn));
    must_wait(&answered);
    ck_assert_int_eq(reply.op_errno, ENOTCONN);
    must_wait(&came_down);
    fop_path_answer(before, xid, 0, &(struct fop_reply){.stat.size = 9});
    ck_assert_int_ne(sem_trywait(&answered), 0);
    must_wait(&came_up);
    ck_assert_ptr_ne(path, before);
    fop_path_answer(before, xid, 0, &(struct fop_reply){.stat.size = 9});
    fop_path_unref(before);
    answers_at_once = true;
    ck_assert_int_eq(send_fop_by_path(&(struct fop_call){.fop = FOP_stat}), 0);
    must_wait(&answered);
    ck_assert_uint_eq(reply.stat.size, 4711);
}
END_TEST

START_TEST(a_payload_is_handed_over)
{
    char bytes[100] = "data";
    struct fop_call write = {.fop = FOP_writev,
                             .size = sizeof bytes,
                             .payload = {{bytes, 40}, {bytes + 40, 60}},
                             .payload_count = 2,
                             .payload_bytes = sizeof bytes};

    ck_assert_int_eq(send_fop_by_path(&write), 0);
    must_wait(&answered);
    ck_assert_uint_eq(begun, 1);
    ck_assert_uint_eq(dropped, 0);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("fop-path");
    TCase *t = tcase_create("fop-path");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, a_path_answers_without_a_record);
    tcase_add_test(t, a_later_answer_arrives_once);
    tcase_add_test(t, a_refused_call_and_a_call_without_memory_fail);
    tcase_add_test(t, a_call_goes_by_bytes_when_the_path_has_no_room);
    tcase_add_test(t, an_answer_after_the_end_of_the_connection_is_dropped);
    tcase_add_test(t, a_payload_is_handed_over);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
