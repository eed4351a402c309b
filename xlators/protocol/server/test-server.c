/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The server end to end, over loopback sockets: login, resolver, fds, cleanup after a client. The brick is a
 * bottom layer with a few objects in memory, which counts its calls and can hold back replies. */
#include "rpc/xdr/sequence-program.h"
#include "xlators/protocol/server/test-bench.h"

/* ---- login ----------------------------------------------------------------------------------- */

static unsigned
lookups_since(void)
{
    return atomic_exchange(&lookups, 0);
}

START_TEST(fops_are_refused_before_a_login)
{
    struct peer *p = peer_new();

    send_fop(p, FOP_stat, CALL(.gfid = gfid_no(1)));
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    ck_assert_int_eq(LOGIN(p, "u", "username", "user1", "password", "wrong"), EACCES);
    send_fop(p, FOP_stat, CALL(.gfid = gfid_no(1))); /* still not logged in */
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}
END_TEST

START_TEST(invalid_logins_are_refused_with_their_errno)
{
    struct peer *p = peer_new();

    /* the value of the option, set by init */
    ck_assert_uint_eq(inode_table_limit(graph.inodes), INODE_LRU_LIMIT_DEFAULT);
    ck_assert_int_eq(login_with(p, (const char *const[]){"fops-version", "1298437", NULL}), EINVAL);
    ck_assert_int_eq(login_with(p, (const char *const[]){LOGIN_KEYS, NULL}), EINVAL); /* no process-uuid */
    ck_assert_int_eq(
        login_with(p, (const char *const[]){"remote-subvolume", BRICK, "process-uuid", "u", NULL}), EINVAL);
    ck_assert_int_eq(login_with(p, (const char *const[]){"remote-subvolume", "/other", "process-uuid", "u",
                                                         "fops-version", "1298437", NULL}),
                     ENOENT);
    ck_assert_int_eq(login_with(p, (const char *const[]){"remote-subvolume", "/changing", "process-uuid", "u",
                                                         "fops-version", "1298437", NULL}),
                     EAGAIN);
    ck_assert_int_eq(LOGIN(p, "u", "volume-id", "99999999-2222-4333-8444-555555555555"), EINVAL);
    ck_assert_int_eq(LOGIN(p, "two\nlines"), EINVAL);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/nowhere"), ENOENT);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/dir/inner"), ENOTDIR);
    atomic_store(&graph.is_child_up, false);
    ck_assert_int_eq(LOGIN(p, "u"), EAGAIN);
    atomic_store(&graph.is_child_up, true);
    ck_assert_int_eq(LOGIN(p, "u", "volume-id", VOLUME_ID, "username", "user1", "password", "secret"), 0);
    ck_assert(cds_list_first_entry(&graph.clients, struct brick_client, link)->is_trusted);

    static const char junk[] = {0, 0, 0, 8, 0, 0, 0, 9, 1, 2, 3, 4}; /* a dict that claims 9 pairs */
    struct common_reply r;
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, junk, sizeof junk);
    ck_assert(receive(p));
    xdr_get_common_reply(&p->results, &r);
    ck_assert_int_eq(r.op_ret, -1);
    ck_assert_int_eq(r.op_errno, EINVAL);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SETVOLUME, junk, 3);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}
END_TEST

/* A path of `count` components. The brick has one folder, "dir", so the first component is not found below
 * it. */
static const char *
long_path(unsigned count, const char *separator)
{
    static char path[8192];
    char *at = path;

    for (unsigned i = 0; i < count; i++)
        at = stpcpy(stpcpy(at, separator), "dir");
    return path;
}

START_TEST(login_bounds_the_path_components)
{
    struct peer *p = peer_new();

    atomic_store(&dir_is_endless, true);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", long_path(SUBDIR_DEPTH_MAX, "/")), 0);
    atomic_store(&lookups, 0);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", long_path(SUBDIR_DEPTH_MAX + 1, "/")), ENAMETOOLONG);
    ck_assert_uint_eq(atomic_load(&lookups), SUBDIR_DEPTH_MAX);
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", long_path(1000, "/")), ENAMETOOLONG);
    ck_assert_uint_eq(atomic_load(&lookups), 2 * SUBDIR_DEPTH_MAX); /* no further components are looked up */
    /* slashes do not count as components */
    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", long_path(SUBDIR_DEPTH_MAX, "//")), 0);
    atomic_store(&dir_is_endless, false);
    peer_free(p);
}
END_TEST

START_TEST(a_second_login_closes_the_fds_of_the_first)
{
    struct peer *p = logged_in("first");
    struct fop_reply r;

    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
    ck_assert_int_eq(LOGIN(p, "second"), 0);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = r.fd_nr), NULL), EBADF);
    ck_assert_uint_eq(flushes, 1);
    peer_free(p);
}
END_TEST

static bool
are_gone(void)
{
    return atomic_load(&gones) == 2;
}

/* A client whose connection was cut logs in again before the brick has noticed. Its earlier login has ended
 * when the new one is answered; a later login and another client's login stay. */
START_TEST(a_new_login_ends_the_earlier_one)
{
    struct peer *first = logged_in("CTX_ID:1-RECON_NO:-9"), *other = logged_in("CTX_ID:2-RECON_NO:-0");
    struct peer *later = logged_in("CTX_ID:1-RECON_NO:-11");

    wait_until(are_gone); /* once at the end of the connection, and once when no reference is left */
    ck_assert(!receive(first));
    struct peer *again = logged_in("CTX_ID:1-RECON_NO:-10");

    ck_assert_int_eq(fop(later, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(other, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(again, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    peer_free(first);
    peer_free(other);
    peer_free(later);
    peer_free(again);
}
END_TEST

START_TEST(getspec_null_and_ping_are_answered)
{
    struct peer *p = peer_new();
    struct getspec_reply spec;
    char body[64];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_getspec_call(&x, &(struct getspec_call){.key = "/w"});
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_GETSPEC, body,
              (size_t)(x.at - body));
    ck_assert(receive(p));
    xdr_get_getspec_reply(&p->results, &spec);
    ck_assert_int_eq(spec.op_ret, -1);
    ck_assert_int_eq(spec.op_errno, EOPNOTSUPP); /* the brick has no volspec-directory */
    for (uint32_t procedure = HANDSHAKE_NULL; procedure <= HANDSHAKE_PING; procedure += HANDSHAKE_PING) {
        send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, procedure, "", 0);
        ck_assert(receive(p));
        ck_assert_uint_eq(xdr_left(&p->results), 12);
        ck_assert_uint_eq(xdr_get_u64(&p->results), 0);
    }
    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_string(&x, "uid");
    xdr_put_u32(&x, 7);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, HANDSHAKE_SET_LK_VER, body,
              (size_t)(x.at - body));
    ck_assert(receive(p));
    ck_assert_uint_eq(xdr_get_u64(&p->results), 0);
    ck_assert_uint_eq(xdr_get_u32(&p->results), 7);
    send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, 5, "", 0);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_PROC_UNAVAIL);
    peer_free(p);
}
END_TEST

/* ---- resolver -------------------------------------------------------------------------------- */

static void
check_resolver(void)
{
    struct peer *p = logged_in("u");
    struct gfid root = gfid_root, unknown = gfid_no(99);
    char too_long[300];
    struct fop_reply r;

    memset(too_long, 'x', 256);
    too_long[256] = '\0';
    lookups_since();

    /* by gfid */
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_no(4)), &r), 0);
    ck_assert(gfid_equal(&r.stat.gfid, &(struct gfid){.b[15] = 4}));
    ck_assert_uint_eq(lookups_since(), 1);
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_no(4)), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 0); /* in the table */
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = unknown), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_inodelk, CALL(.gfid = unknown, .volume = "d"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_null), NULL), EINVAL);

    /* lookups */
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = root), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = unknown), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .gfid = unknown, .name = "file"), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 3);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 4); /* always from the disk, and no further lookups */
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "."), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 1);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "nope"), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_no(3), .name = "x"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = "a/b"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = ".."), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = root, .name = too_long), NULL), ENAMETOOLONG);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = gfid_null), NULL), EINVAL);

    /* by name */
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = gfid_no(2), .name = "new"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 1); /* the parent */
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = ""), NULL), EINVAL);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = too_long), NULL), ENAMETOOLONG);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EPERM);
    ck_assert_int_eq(fop(p, FOP_mknod, CALL(.pargfid = root, .name = ".glusterfs"), NULL), EEXIST);
    ck_assert_int_eq(fop(p, FOP_mkdir, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = root, .name = "nope"), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = unknown, .name = "x"), NULL), ESTALE);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_no(2), .name = "inner"), NULL), 0);
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_rename,
                         CALL(.pargfid = root, .name = "file", .pargfid2 = gfid_no(2), .name2 = "f2"), NULL),
                     0);
    ck_assert_uint_eq(lookups_since(), 1); /* the lookup of the target */
    ck_assert_int_eq(
        fop(p, FOP_rename, CALL(.pargfid = root, .name = "nope", .pargfid2 = root, .name2 = "f"), NULL),
        ENOENT);
    ck_assert_int_eq(
        fop(p, FOP_rename, CALL(.pargfid = root, .name = "dir", .pargfid2 = unknown, .name2 = "f"), NULL),
        ESTALE);
    ck_assert_int_eq(fop(p, FOP_link, CALL(.gfid = gfid_no(3), .pargfid2 = root, .name2 = "hard"), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_link, CALL(.gfid = unknown, .pargfid2 = root, .name2 = "hard"), NULL),
                     ESTALE);
    ck_assert_int_eq(
        fop(p, FOP_link, CALL(.gfid = gfid_no(3), .pargfid2 = root, .name2 = ".glusterfs"), NULL), EEXIST);

    /* by fd */
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = unknown, .fd_nr = FD_ANONYMOUS), NULL), ENOENT);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = -1), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = -3), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = INT64_MAX), NULL), EBADF);
    ck_assert_int_eq(fop(p, FOP_readdir, CALL(.gfid = gfid_no(3), .fd_nr = FD_ANONYMOUS), NULL), ENOTDIR);
    ck_assert_int_eq(fop(p, FOP_writev, CALL(.gfid = root, .fd_nr = FD_ANONYMOUS), NULL), EISDIR);
    ck_assert_int_eq(fop(p, FOP_release, CALL(.fd_nr = 1234), NULL), 0);

    /* fops that no layer implements */
    ck_assert_int_eq(fop(p, FOP_namelink, CALL(.pargfid = root, .name = "x"), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_icreate, CALL(.gfid = unknown), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_ipc, CALL(.cmd = 1), NULL), EOPNOTSUPP);
    ck_assert_int_eq(fop(p, FOP_setactivelk, CALL(.gfid = root), NULL), EOPNOTSUPP);
    send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, FOP_compound, "", 0);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}

START_TEST(names_gfids_and_fds_are_resolved)
{
    check_resolver();
}
END_TEST

START_TEST(names_are_resolved_when_lookups_are_parked)
{
    atomic_store(&holds_lookups, true);
    check_resolver();
}
END_TEST

START_TEST(unlinked_name_is_forgotten)
{
    struct peer *p = logged_in("u");

    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    lookups_since();
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 0);
    ck_assert_int_eq(fop(p, FOP_unlink, CALL(.pargfid = gfid_root, .name = "file"), NULL), 0);
    ck_assert_uint_eq(lookups_since(), 1); /* the table has forgotten the name */
    peer_free(p);
}
END_TEST

/* ---- fds ------------------------------------------------------------------------------------- */

START_TEST(fd_numbers_belong_to_one_client)
{
    struct peer *a = logged_in("a"), *b = logged_in("b"), *a2 = logged_in("a");
    struct fop_reply r;

    ck_assert_int_eq(fop(a, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
    ck_assert_int_eq(r.fd_nr, 0);
    ck_assert_int_eq(fop(a, FOP_opendir, CALL(.gfid = gfid_root), &r), 0);
    ck_assert_int_eq(r.fd_nr, 1);
    /* a wrong gfid with a valid number is served from the fd */
    ck_assert_int_eq(fop(a, FOP_fstat, CALL(.gfid = gfid_no(99), .fd_nr = 0), &r), 0);
    ck_assert_uint_eq(r.stat.gfid.b[15], 3);
    ck_assert_int_eq(fop(a, FOP_readdir, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), ENOTDIR);
    ck_assert_int_eq(fop(b, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), EBADF);
    /* the same identity */
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), 0);
    peer_free(a);
    /* one connection is left */
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), 0);
    ck_assert_int_eq(fop(a2, FOP_release, CALL(.fd_nr = 0), NULL), 0);
    ck_assert_int_eq(fop(a2, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), EBADF);
    ck_assert_uint_eq(atomic_load(&releases), 1);
    peer_free(a2);
    peer_free(b);
}
END_TEST

START_TEST(a_client_may_open_its_share_of_files)
{
    struct peer *p = logged_in("u");
    struct fop_reply r;

    fd_files_set_limit(4 * 3000 + 100); /* a single client gets a quarter of them */
    for (int i = 0; i < 3000; i++) {
        ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), &r), 0);
        ck_assert_int_eq(r.fd_nr, i);
    }
    for (int i = 3000; i < 3100 && fop(p, FOP_open, CALL(.gfid = gfid_no(3)), NULL) == 0; i++)
        continue;
    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), NULL), EMFILE);
    struct peer *other = logged_in("other");
    ck_assert_int_eq(fop(other, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    peer_free(p);
    peer_free(other);
    wait_until(is_unpinned);
    ck_assert_uint_ge(atomic_load(&flushes), 3001);
    ck_assert_uint_eq(atomic_load(&releases), atomic_load(&flushes));
}
END_TEST

/* ---- ends ------------------------------------------------------------------------------------ */

static unsigned parked_wanted;

static bool
are_parked(void)
{
    unsigned n = 0;

    pthread_mutex_lock(&parked_lock);
    for (size_t i = 0; i < 16; i++)
        n += parked[i] != NULL;
    pthread_mutex_unlock(&parked_lock);
    return n == parked_wanted;
}

static bool
are_flushed(void)
{
    return atomic_load(&flushes) == 2 && atomic_load(&releases) == 3;
}

START_TEST(a_lost_client_releases_fds_and_blocked_calls)
{
    struct peer *p = logged_in("u"), *other = logged_in("other");

    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(3)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_open, CALL(.gfid = gfid_no(4)), NULL), 0);
    ck_assert_int_eq(fop(p, FOP_opendir, CALL(.gfid = gfid_no(2)), NULL), 0);
    for (int i = 0; i < 3; i++)
        send_fop(p, FOP_inodelk, CALL(.gfid = gfid_no(3), .volume = "d", .cmd = 2)); /* blocked */
    send_fop(p, FOP_truncate, CALL(.gfid = gfid_no(3)));                           /* running */
    send_fop(other, FOP_truncate, CALL(.gfid = gfid_no(3)));
    parked_wanted = 5;
    wait_until(are_parked);
    peer_free(p);
    parked_wanted = 2; /* client_gone wakes the waiters; the other calls continue */
    wait_until(are_parked);
    wait_until(are_flushed);
    ck_assert_int_eq(atomic_load(&graph.pins), 3); /* the dead client's call pins it */
    let_go(FOP_truncate, NULL, EIO);               /* one reply is dropped, the other one sent */
    ck_assert(receive(other));
    ck_assert_int_eq(xdr_get_i32(&other->results), -1);
    ck_assert_int_eq(xdr_get_i32(&other->results), EIO);
    peer_free(other);
    wait_until(is_unpinned);
    /* twice for each: at the end of the connection, and when no call runs any more */
    ck_assert_uint_eq(atomic_load(&gones), 4);
}
END_TEST

START_TEST(stop_ends_connections)
{
    struct peer *p = logged_in("u"), *q = peer_new();

    protocol_server_xlator.stop(&layers[0]);
    ck_assert(!receive(p));
    wait_until(is_unpinned);
    ck_assert_int_eq(LOGIN(q, "late"), EAGAIN);
    wait_until(is_unpinned);
    protocol_server_xlator.start(&layers[0]);
    ck_assert_int_eq(LOGIN(q, "late"), 0);
    peer_free(p);
    peer_free(q);
}
END_TEST

START_TEST(a_draining_brick_closes_the_connection)
{
    struct peer *p = logged_in("u");

    atomic_store(&graph.is_draining, true);
    send_fop(p, FOP_stat, CALL(.gfid = gfid_root));
    ck_assert(!receive(p));
    peer_free(p);
}
END_TEST

/* ---- callbacks ------------------------------------------------------------------------------- */

START_TEST(callbacks_reach_the_clients)
{
    struct peer *p = logged_in("u"), *q = logged_in("v");
    struct gfid g = gfid_no(3);

    server_child_event(&graph, false);
    struct peer *both[] = {p, q};
    for (int i = 0; i < 2; i++) {
        ck_assert(receive(both[i]));
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 4), 0); /* a call */
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 12), 52743234);
        ck_assert_uint_eq(xdr_load_u32(both[i]->in + 20), 7);
    }
    struct brick_client *c = cds_list_first_entry(&graph.clients, struct brick_client, link);
    brick_client_callback_inodelk_contention(c, &g, &(struct fop_flock){.type = 1, .pid = 77}, 4242, "dom");
    ck_assert(receive(p));
    ck_assert_uint_eq(xdr_load_u32(p->in + 20), 10);
    ck_assert_mem_eq(p->in + 40, &g, 16);
    peer_free(p);
    peer_free(q);
}
END_TEST

/* ---- users and directories ------------------------------------------------------------------- */

START_TEST(root_squash_makes_root_the_anonymous_user)
{
    struct peer *p = logged_in("u"), *trusted = peer_new();
    static const uint32_t groups[] = {7, 0};

    ck_assert_int_eq(LOGIN(trusted, "t", "username", "user1", "password", "secret"), 0);
    p->caller.groups = groups;
    p->caller.group_count = 2;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert_uint_eq(seen.gid, 65534);
    ck_assert_uint_eq(seen.group_count, 2);
    p->caller.uid = 1000;
    p->caller.pid = -6; /* claims an internal pid without a password */
    p->caller.gid = 100;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 1000);
    ck_assert_uint_eq(seen.gid, 100);
    ck_assert(!caller_is_internal(&seen));
    ck_assert_uint_eq(seen.standing, PID_COUNTS_NOT);
    p->caller.uid = 0;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert(!caller_is_internal(&seen));
    ck_assert_uint_eq(seen.standing, PID_WAS_SQUASHED);
    trusted->caller.pid = -6;
    ck_assert_int_eq(fop(trusted, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 0);
    ck_assert(caller_is_internal(&seen));
    trusted->caller.uid = 1000;
    ck_assert_int_eq(fop(trusted, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert(caller_is_internal(&seen));
    trusted->caller.uid = 0;
    trusted->caller.pid = 1;
    ck_assert_int_eq(fop(trusted, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    peer_free(p);
    peer_free(trusted);
}
END_TEST

START_TEST(all_squash_changes_every_user)
{
    struct peer *p = logged_in("u");
    static const uint32_t groups[] = {7, 0};

    p->caller = (struct caller){.uid = 1000, .gid = 1000, .groups = groups, .group_count = 2,
                                .lk_owner = p->caller.lk_owner};
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert_uint_eq(seen.uid, 65534);
    ck_assert_uint_eq(seen.gid, 65534);
    ck_assert_uint_eq(seen.group_count, 0);
    p->caller.uid = 0;
    p->caller.pid = -4;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    /* all-squash squashes every user, so the rights of users do not count either */
    ck_assert_uint_eq(seen.standing, PID_COUNTS_NOT);
    peer_free(p);
}
END_TEST

/* Without squashing root stays root, with any pid. The negative pid of another user is only a number. */
START_TEST(a_users_negative_pid_is_only_a_number)
{
    struct peer *p = logged_in("u");

    p->caller.pid = -1;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert(caller_is_internal(&seen));
    p->caller.uid = 12345;
    ck_assert_int_eq(fop(p, FOP_access, CALL(.gfid = gfid_root), NULL), 0);
    ck_assert(!caller_is_internal(&seen));
    ck_assert_uint_eq(seen.standing, PID_COUNTS_NOT);
    peer_free(p);
}
END_TEST

START_TEST(a_subdir_mount_has_its_folder_as_root)
{
    struct peer *p = peer_new();
    struct fop_reply r;

    ck_assert_int_eq(LOGIN(p, "u", "subdir-mount", "/dir"), 0);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.gfid = gfid_root), &r), 0);
    ck_assert(gfid_is_root(&r.stat.gfid));
    ck_assert_uint_eq(r.stat.ino, 1);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "inner"), &r), 0);
    ck_assert_uint_eq(r.stat.ino, 4);
    ck_assert_int_eq(fop(p, FOP_lookup, CALL(.pargfid = gfid_root, .name = "file"), NULL), ENOENT);
    peer_free(p);
}
END_TEST

/* ---- sequences ------------------------------------------------------------------------------- */

struct planned {
    enum fop fop;
    const struct fop_call *call;
    uint32_t flags, fd_of;
};

/* Sends the calls as one record. */
static void
send_sequence(struct peer *p, const struct planned *calls, unsigned count)
{
    char body[8192];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_u32(&x, count);
    for (unsigned i = 0; i < count; i++) {
        uint32_t bytes = (uint32_t)fop_call_size(calls[i].fop, calls[i].call);

        xdr_put_sequence_step(&x, &(struct sequence_step){.fop = calls[i].fop,
                                                          .flags = calls[i].flags,
                                                          .fd_of = calls[i].fd_of,
                                                          .args_bytes = bytes});
        ck_assert_int_eq(fop_encode_call(calls[i].fop, &x, calls[i].call), 0);
    }
    send_call(p, SEQUENCE_PROGRAM, SEQUENCE_PROGRAM_VERSION, SEQUENCE_RUN, body, (size_t)(x.at - body));
}

enum { NOT_RUN = -1 };

/* Runs the calls; sets errnos[] to 0, an errno or NOT_RUN, and *last to the last reply. */
static void
run_sequence(struct peer *p, const struct planned *calls, unsigned count, int *errnos, struct fop_reply *last)
{
    struct sequence_result results[SEQUENCE_STEPS_MAX];

    send_sequence(p, calls, count);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_SUCCESS);
    xdr_get_sequence_results(&p->results, results, count);
    ck_assert_int_eq(p->results.error, 0);
    for (unsigned i = 0; i < count; i++) {
        struct fop_reply r = {0};
        struct xdr x;

        xdr_init(&x, results[i].bytes, results[i].size, &p->arena);
        if (results[i].size)
            ck_assert_int_eq(fop_decode_reply(calls[i].fop, &x, &r), 0);
        errnos[i] = !results[i].size ? NOT_RUN : r.op_ret < 0 ? r.op_errno : 0;
        *last = r;
    }
}

START_TEST(a_sequence_runs_in_order_with_the_new_fd)
{
    struct peer *p = logged_in("u");
    struct fop_reply last;
    int errnos[3];

    run_sequence(p,
                 (const struct planned[]){{FOP_open, CALL(.gfid = gfid_no(3)), 0, 0},
                                          {FOP_release, CALL(.gfid = gfid_no(3)), 0, 1},
                                          {FOP_open, CALL(.gfid = gfid_no(3)), 0, 0}},
                 3, errnos, &last);
    ck_assert_int_eq(errnos[0] | errnos[1] | errnos[2], 0);
    ck_assert_int_eq(last.fd_nr, 0); /* the number is free again */
    run_sequence(p,
                 (const struct planned[]){{FOP_open, CALL(.gfid = gfid_no(3)), 0, 0},
                                          {FOP_open, CALL(.gfid = gfid_no(3)), 0, 0}},
                 2, errnos, &last);
    ck_assert_int_eq(last.fd_nr, 2);
    peer_free(p);
}
END_TEST

START_TEST(a_sequence_stops_at_the_first_error)
{
    struct peer *p = logged_in("u");
    struct fop_reply last;
    int errnos[3];

    run_sequence(p,
                 (const struct planned[]){{FOP_open, CALL(.gfid = gfid_no(77)), 0, 0},
                                          {FOP_open, CALL(.gfid = gfid_no(3)), 0, 0},
                                          {FOP_open, CALL(.gfid = gfid_no(3)), SEQUENCE_ALWAYS, 0}},
                 3, errnos, &last);
    ck_assert_int_gt(errnos[0], 0);
    ck_assert_int_eq(errnos[1], NOT_RUN);
    ck_assert_int_eq(errnos[2], 0);
    ck_assert_int_eq(last.fd_nr, 0);
    peer_free(p);
}
END_TEST

/* A call behind one that was not run must not close the client's fd number 0. */
START_TEST(a_call_that_was_not_run_gives_no_fd)
{
    struct peer *p = logged_in("u");
    struct fop_reply last;
    int errnos[3];

    run_sequence(p, &(struct planned){FOP_open, CALL(.gfid = gfid_no(3)), 0, 0}, 1, errnos, &last);
    ck_assert_int_eq(last.fd_nr, 0);
    run_sequence(p,
                 (const struct planned[]){{FOP_open, CALL(.gfid = gfid_no(77)), 0, 0},
                                          {FOP_open, CALL(.gfid = gfid_no(3)), 0, 0},
                                          {FOP_release, CALL(.gfid = gfid_no(3)), SEQUENCE_ALWAYS, 2}},
                 3, errnos, &last);
    ck_assert_int_eq(errnos[1], NOT_RUN);
    ck_assert_int_eq(fop(p, FOP_fstat, CALL(.gfid = gfid_no(3), .fd_nr = 0), NULL), 0);
    peer_free(p);
}
END_TEST

START_TEST(a_sequence_refuses_calls_that_wait_or_are_large)
{
    struct peer *p = logged_in("u");
    struct fop_reply last;
    int err;

    run_sequence(p, &(struct planned){FOP_inodelk, CALL(.gfid = gfid_no(3), .volume = "d", .cmd = 2), 0, 0},
                 1, &err, &last);
    ck_assert_int_eq(err, EOPNOTSUPP);
    run_sequence(p, &(struct planned){FOP_entrylk, CALL(.gfid = gfid_no(2), .volume = "d", .cmd = 0), 0, 0},
                 1, &err, &last);
    ck_assert_int_eq(err, EOPNOTSUPP);
    run_sequence(p, &(struct planned){FOP_lk, CALL(.gfid = gfid_no(3)), 0, 0}, 1, &err, &last);
    ck_assert_int_eq(err, EOPNOTSUPP);
    run_sequence(p, &(struct planned){FOP_lookup, CALL(.gfid = gfid_no(3)), 0, 0}, 1, &err, &last);
    ck_assert_int_eq(err, EOPNOTSUPP);
    peer_free(p);
}
END_TEST

START_TEST(sequences_are_refused_before_a_login)
{
    struct peer *p = peer_new();

    send_sequence(p, &(struct planned){FOP_open, CALL(.gfid = gfid_no(3)), 0, 0}, 1);
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    peer_free(p);
}
END_TEST

/* A call that cannot be decoded ends the sequence, and the whole record is refused. */
START_TEST(garbage_in_a_sequence_is_refused)
{
    struct peer *p = logged_in("u");
    char body[64];
    struct xdr x;

    xdr_init(&x, body, sizeof body, NULL);
    xdr_put_u32(&x, 1);
    xdr_put_sequence_step(&x, &(struct sequence_step){.fop = FOP_open, .args_bytes = 4});
    xdr_put_u32(&x, 7);
    send_call(p, SEQUENCE_PROGRAM, SEQUENCE_PROGRAM_VERSION, SEQUENCE_RUN, body, (size_t)(x.at - body));
    ck_assert(receive(p));
    ck_assert_uint_eq(p->accept, RPC_GARBAGE_ARGS);
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
}
END_TEST

/* Each record with one or two random calls gets one reply. */
START_TEST(random_sequences_get_replies)
{
    struct peer *p = logged_in("u");
    unsigned seed = 43;

    for (unsigned i = 0; i < 3000; i++) {
        char body[600];
        unsigned count = 1 + i % 2;
        struct xdr x;

        xdr_init(&x, body, sizeof body, NULL);
        xdr_put_u32(&x, count);
        for (unsigned k = 0; k < count; k++) {
            uint32_t bytes = (uint32_t)rand_r(&seed) % 200 & ~3u;
            uint32_t fop = 1 + (uint32_t)rand_r(&seed) % (FOP_COUNT - 1);

            if (fop == FOP_inodelk || fop == FOP_truncate) /* would be parked here for ever */
                fop = FOP_open;
            xdr_put_sequence_step(&x, &(struct sequence_step){.fop = fop,
                                                              .flags = (uint32_t)rand_r(&seed) % 2,
                                                              .fd_of = k * ((uint32_t)rand_r(&seed) % 2),
                                                              .args_bytes = bytes});
            for (uint32_t b = 0; b < bytes; b++)
                *x.at++ = (char)(rand_r(&seed) % 3 ? 0 : rand_r(&seed) % (i % 3 ? 4 : 256));
        }
        send_call(p, SEQUENCE_PROGRAM, SEQUENCE_PROGRAM_VERSION, SEQUENCE_RUN, body, (size_t)(x.at - body));
        ck_assert(receive(p));
        ck_assert_uint_eq(xdr_load_u32(p->in), p->xid);
    }
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
}
END_TEST

/* ---- hostile clients and changes ------------------------------------------------------------- */

/* Random bytes as arguments of every procedure of both programs: each call gets one reply, or the connection
 * ends. */
START_TEST(random_arguments_get_replies)
{
    struct peer *p = logged_in("u");
    unsigned seed = 42;

    for (unsigned i = 0; i < 4000; i++) {
        char body[256];
        size_t bytes = (unsigned)rand_r(&seed) % sizeof body;
        uint32_t procedure = (uint32_t)rand_r(&seed) % (FOP_COUNT + 2);

        if (procedure == FOP_inodelk || procedure == FOP_truncate) /* would be parked here for ever */
            continue;
        for (size_t b = 0; b < bytes; b++) /* many zeros and small numbers, so that some decode far */
            body[b] = (char)(rand_r(&seed) % 3 ? 0 : rand_r(&seed) % (i % 2 ? 4 : 256));
        if (i % 16 == 0)
            send_call(p, HANDSHAKE_PROGRAM, HANDSHAKE_PROGRAM_VERSION, procedure % 6, body, bytes);
        else
            send_call(p, FOP_PROGRAM, FOP_PROGRAM_VERSION, procedure, body, bytes);
        ck_assert(receive(p));
        ck_assert_uint_eq(xdr_load_u32(p->in), p->xid);
    }
    ck_assert_int_eq(fop(p, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
}
END_TEST

START_TEST(a_change_of_auth_options_ends_connections)
{
    struct peer *p = logged_in("plain"), *q = peer_new();
    struct option_value fresh_values[] = {{"auth.login." BRICK ".allow", "user1", 0},
                                          {"auth.login.user1.password", "secret", 0}};
    struct volfile_section fresh_section = {.options = fresh_values, .option_count = 2};
    struct volfile fresh = {.top = &fresh_section};

    ck_assert_int_eq(LOGIN(q, "trusted", "username", "user1", "password", "secret"), 0);
    graph.volfile_fresh = &fresh;
    protocol_server_xlator.reconfigured(&layers[0], layers[0].conf);
    graph.volfile_fresh = NULL;
    ck_assert(!receive(p)); /* its address was all that permitted the login */
    ck_assert_int_eq(fop(q, FOP_stat, CALL(.gfid = gfid_root), NULL), 0);
    peer_free(p);
    p = peer_new();
    ck_assert_int_eq(LOGIN(p, "plain"), EACCES);
    peer_free(p);
    peer_free(q);
}
END_TEST

/* Concurrent logins and deaths of clients, while calls wait for the disk. */
static void *
churn(void *arg)
{
    char uid[32];

    for (int i = 0; i < 40; i++) {
        struct peer *p = peer_new();

        snprintf(uid, sizeof uid, "churn-%d", i % 5); /* shared with the other threads */
        ck_assert_int_eq(LOGIN(p, uid, "subdir-mount", i % 3 ? "/" : "/dir"), 0);
        for (int k = 0; k < 5; k++) {
            send_fop(p, FOP_open, CALL(.gfid = gfid_no(4)));
            send_fop(p, FOP_lookup, CALL(.pargfid = gfid_no(2), .name = "inner"));
            send_fop(p, FOP_inodelk, CALL(.gfid = gfid_no(3), .volume = "d"));
        }
        if (i % 2)
            ck_assert(receive(p));
        if (i % 5 == 0)
            send_login(p,
                       (const char *const[]){LOGIN_KEYS, "process-uuid", uid, "subdir-mount", "/dir", NULL});
        peer_free(p);
    }
    return arg;
}

START_TEST(concurrent_logins_and_losses_leave_no_client)
{
    pthread_t threads[3];

    atomic_store(&holds_lookups, true);
    for (int i = 0; i < 3; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, churn, NULL), 0);
    for (int i = 0; i < 3; i++)
        pthread_join(threads[i], NULL);
    wait_until(is_unpinned);
    ck_assert(cds_list_empty(&graph.clients));
}
END_TEST

static void
setup_root_squash(void)
{
    setup_with("root-squash", "on");
}

static void
setup_all_squash(void)
{
    setup_with("all-squash", "on");
}

static TCase *
tcase(Suite *s, const char *name, void (*start)(void))
{
    TCase *c = tcase_create(name);

    tcase_set_timeout(c, 60);
    tcase_add_checked_fixture(c, start, teardown);
    suite_add_tcase(s, c);
    return c;
}

static Suite *
test_suite(void)
{
    Suite *s = suite_create("server");
    TCase *c = tcase(s, "plain", setup);

    tcase_add_test(c, fops_are_refused_before_a_login);
    tcase_add_test(c, invalid_logins_are_refused_with_their_errno);
    tcase_add_test(c, login_bounds_the_path_components);
    tcase_add_test(c, a_second_login_closes_the_fds_of_the_first);
    tcase_add_test(c, a_new_login_ends_the_earlier_one);
    tcase_add_test(c, getspec_null_and_ping_are_answered);
    tcase_add_test(c, names_gfids_and_fds_are_resolved);
    tcase_add_test(c, names_are_resolved_when_lookups_are_parked);
    tcase_add_test(c, unlinked_name_is_forgotten);
    tcase_add_test(c, fd_numbers_belong_to_one_client);
    tcase_add_test(c, a_client_may_open_its_share_of_files);
    tcase_add_test(c, a_lost_client_releases_fds_and_blocked_calls);
    tcase_add_test(c, stop_ends_connections);
    tcase_add_test(c, a_draining_brick_closes_the_connection);
    tcase_add_test(c, callbacks_reach_the_clients);
    tcase_add_test(c, a_users_negative_pid_is_only_a_number);
    tcase_add_test(c, a_subdir_mount_has_its_folder_as_root);
    tcase_add_test(c, a_sequence_runs_in_order_with_the_new_fd);
    tcase_add_test(c, a_sequence_stops_at_the_first_error);
    tcase_add_test(c, a_call_that_was_not_run_gives_no_fd);
    tcase_add_test(c, a_sequence_refuses_calls_that_wait_or_are_large);
    tcase_add_test(c, sequences_are_refused_before_a_login);
    tcase_add_test(c, garbage_in_a_sequence_is_refused);
    tcase_add_test(c, random_sequences_get_replies);
    tcase_add_test(c, random_arguments_get_replies);
    tcase_add_test(c, a_change_of_auth_options_ends_connections);
    tcase_add_test(c, concurrent_logins_and_losses_leave_no_client);
    tcase_add_test(tcase(s, "root-squash", setup_root_squash), root_squash_makes_root_the_anonymous_user);
    tcase_add_test(tcase(s, "all-squash", setup_all_squash), all_squash_changes_every_user);
    return s;
}

#include "base/test-main.h"
