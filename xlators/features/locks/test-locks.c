/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* inodelks, entrylks, removals, the events that drop locks, counts and virtual xattrs, as fops through the
 * layer. */
#include "mem/mem-ids.h"
#include "xlators/features/test-layers.h"

#include "xlators/features/locks/locks-internal.h"

extern const struct xlator_type features_locks_xlator;

static atomic_int reached_bottom, dirty_marks, notes;
static struct inode *dir, *file;
static struct brick_client *alice, *bob;

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    (void)xl;
    atomic_fetch_add(&reached_bottom, 1);
    stk->reply.op_ret = 0;
    if (stk->call.fop == FOP_lookup)
        stk->reply.stat.gfid = file->gfid;
    const struct dict_pair *dirty =
        stk->call.fop == FOP_xattrop ? dict_find_text(stk->call.dict, "trusted.afr.dirty") : NULL;
    if (dirty && stk->call.loc.inode == file && dirty->len == 12 &&
        memcmp(dirty->v.bytes, "\0\0\0\0\0\0\0\1\0\0\0\0", 12) == 0)
        atomic_fetch_add(&dirty_marks, 1);
    if (stk->call.fop == FOP_lookup && stk->call.loc.inode == file && stk->caller.pid == PID_INTERNAL &&
        dict_has(stk->call.xdata, DICT_KEY_DEAD_CHANGE))
        atomic_fetch_add(&notes, 1);
    return XL_DONE;
}

static void
setup(void)
{
    bench_setup(&features_locks_xlator, NULL, bottom);
    reached_bottom = dirty_marks = notes = 0;
    dir = bench_inode("d", 1, S_IFDIR);
    file = bench_inode("f", 2, S_IFREG);
    alice = bench_client("alice");
    bob = bench_client("bob");
}

static void
teardown(void)
{
    if (alice)
        bench_client_gone(alice);
    if (bob)
        bench_client_gone(bob);
    struct lock_inode *li = inode_ctx(file, bench_xl);
    if (li)
        ck_assert_uint_eq(li->count, 0);
    inode_unref(dir);
    inode_unref(file);
    bench_teardown();
}

static void
set_owner(struct bench_call *call, const char *owner)
{
    call->stk->caller.lk_owner = (struct lk_owner){(uint32_t)strlen(owner), (const uint8_t *)owner};
    call->stk->caller.pid = 100;
}

enum { NB = 1, WAIT = 2 };

static struct bench_call *
inodelk(struct brick_client *c, const char *owner, uint32_t cmd, uint32_t type, int64_t start, int64_t len)
{
    struct bench_call *call = bench_call(FOP_inodelk, c);

    set_owner(call, owner);
    call->stk->call.loc.inode = inode_ref(file);
    call->stk->call.cmd = cmd;
    call->stk->call.type = type;
    call->stk->call.flock.start = start;
    call->stk->call.flock.len = len;
    call->stk->call.volume = "v-replicate-0";
    return call;
}

static struct bench_call *
entrylk(struct brick_client *c, const char *owner, uint32_t cmd, const char *name)
{
    struct bench_call *call = bench_call(FOP_entrylk, c);

    set_owner(call, owner);
    call->stk->call.loc.inode = inode_ref(dir);
    call->stk->call.cmd = cmd;
    call->stk->call.name = name;
    call->stk->call.volume = "v-replicate-0";
    return call;
}

static struct bench_call *
posixlk(struct brick_client *c, const char *owner, struct fd *fd, uint32_t cmd, uint32_t type)
{
    struct bench_call *call = bench_call(FOP_lk, c);

    set_owner(call, owner);
    call->stk->call.fd = fd_ref(fd);
    call->stk->call.cmd = cmd;
    call->stk->call.type = type;
    return call;
}

static struct bench_call *
start(struct bench_call *call)
{
    bench_wind(call);
    return call;
}

static int
finish(struct bench_call *call)
{
    int result = bench_result(call);

    bench_free(call);
    return result;
}

START_TEST(inodelks_conflict_by_range_owner_and_domain)
{
    struct bench_call *call;

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 100)), 0);
    /* a second lock of the same owner */
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 100)), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "a", NB, FLOCK_READ, 99, 1)), -EAGAIN);
    ck_assert_int_eq(bench_run(inodelk(alice, "b", NB, FLOCK_READ, 50, 0)), -EAGAIN);
    ck_assert_int_eq(bench_run(inodelk(bob, "a", NB, FLOCK_WRITE, 100, 0)), 0);
    /* not exactly the lock's range */
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 99)), -EINVAL);
    ck_assert_int_eq(bench_run(inodelk(bob, "b", NB, FLOCK_UNLOCK, 0, 100)), -EINVAL);
    call = inodelk(bob, "b", NB, FLOCK_WRITE, 0, 0);
    call->stk->call.volume = "another";
    ck_assert_int_eq(bench_run(call), 0);
    /* replicate's metadata lock has its own domain */
    ck_assert_int_eq(bench_run(inodelk(alice, "m", NB, FLOCK_WRITE, INT64_MAX - 1, 0)), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "m", NB, FLOCK_WRITE, INT64_MAX - 1, 0)), -EAGAIN);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 100)), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "x", NB, FLOCK_READ, 0, 1)), -EAGAIN); /* one of two is left */
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 100)), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "x", NB, FLOCK_READ, 0, 1)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 100)), -EINVAL);
}
END_TEST

START_TEST(invalid_inodelks_and_entrylks_are_refused)
{
    struct bench_call *call;

    ck_assert_int_eq(bench_run(inodelk(alice, "a", 0, FLOCK_WRITE, 0, 0)), -ENOTSUP);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", 3, FLOCK_WRITE, 0, 0)), -ENOTSUP);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, 3, 0, 0)), -EINVAL);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, -1, 0)), -EINVAL);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, -1)), -EINVAL);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, INT64_MAX, 9)), -EINVAL);
    ck_assert_int_eq(bench_run(inodelk(alice, "", NB, FLOCK_WRITE, 0, 0)), -EINVAL);
    call = inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0);
    call->stk->call.volume = NULL;
    ck_assert_int_eq(bench_run(call), -EINVAL);
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 3, "n")), -EINVAL);
    ck_assert_int_eq(bench_run(entrylk(alice, "", 2, "n")), -EINVAL);
}
END_TEST

/* The text that a waiting detach would log. */
static void
expect_parked(const char *want)
{
    char text[128];

    graph_parked(&bench_graph, text, sizeof text);
    ck_assert_str_eq(text, want);
}

START_TEST(a_waiting_writer_goes_before_new_readers)
{
    struct bench_call *writer, *reader;

    ck_assert_int_eq(bench_run(inodelk(alice, "r1", NB, FLOCK_READ, 0, 0)), 0);
    expect_parked("");
    writer = start(inodelk(bob, "w", WAIT, FLOCK_WRITE, 0, 0));
    ck_assert(!bench_is_done(writer));
    ck_assert_int_eq(bench_run(inodelk(bob, "r2", NB, FLOCK_READ, 0, 0)), -EAGAIN);
    reader = start(inodelk(bob, "r2", WAIT, FLOCK_READ, 0, 0));
    ck_assert(!bench_is_done(reader));
    expect_parked("features/locks inodelk 2");
    /* A lock holder may take another lock, although a writer waits. */
    ck_assert_int_eq(bench_run(inodelk(alice, "r1", NB, FLOCK_READ, 0, 0)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "r1", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert(!bench_is_done(writer));
    ck_assert_int_eq(bench_run(inodelk(alice, "r1", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(writer), 0);
    ck_assert(!bench_is_done(reader));
    expect_parked("features/locks inodelk 1");
    ck_assert_int_eq(bench_run(inodelk(bob, "w", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(reader), 0);
}
END_TEST

START_TEST(entrylks_conflict_by_name)
{
    struct bench_call *all, *one;

    ck_assert_int_eq(bench_run(entrylk(alice, "a", 2, "n1")), 0);
    ck_assert_int_eq(bench_run(entrylk(bob, "b", 2, "n1")), -EAGAIN); /* both of type read */
    ck_assert_int_eq(bench_run(entrylk(bob, "b", 2, "n2")), 0);
    all = start(entrylk(bob, "c", 0, ""));
    ck_assert(!bench_is_done(all));
    one = start(entrylk(bob, "d", 0, "n3")); /* waits behind the lock on the whole directory */
    ck_assert(!bench_is_done(one));
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 1, "n2")), -EINVAL);
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 1, "n1")), 0);
    ck_assert_int_eq(bench_run(entrylk(bob, "b", 1, "n2")), 0);
    ck_assert_int_eq(finish(all), 0);
    ck_assert(!bench_is_done(one));
    ck_assert_int_eq(bench_run(entrylk(bob, "c", 1, NULL)), 0);
    ck_assert_int_eq(finish(one), 0);
}
END_TEST

/* Texts that do not fit into the lock: a name of 255 bytes, an owner and a domain of 1024. */
START_TEST(names_owners_and_domains_of_maximum_length_are_locked)
{
    static char name[FOP_NAME_MAX + 1], owner[LK_OWNER_MAX + 1], domain[FOP_LOCK_DOMAIN_MAX + 1];
    struct bench_call *first, *second;

    memset(name, 'n', FOP_NAME_MAX);
    memset(owner, 'o', LK_OWNER_MAX);
    memset(domain, 'd', FOP_LOCK_DOMAIN_MAX);
    for (int round = 0; round < 2; round++) {
        first = entrylk(alice, owner, 2, name);
        first->stk->call.volume = domain;
        ck_assert_int_eq(bench_run(first), 0);
        ck_assert_int_eq(bench_run(entrylk(bob, "b", 2, name)), 0); /* in another domain */
        second = entrylk(bob, "b", 0, name);
        second->stk->call.volume = domain;
        start(second);
        ck_assert(!bench_is_done(second));
        first = entrylk(alice, owner, 1, name);
        first->stk->call.volume = domain;
        ck_assert_int_eq(bench_run(first), 0);
        ck_assert_int_eq(finish(second), 0);
        second = entrylk(bob, "b", 1, name);
        second->stk->call.volume = domain;
        ck_assert_int_eq(bench_run(second), 0);
        ck_assert_int_eq(bench_run(entrylk(bob, "b", 1, name)), 0);
    }
}
END_TEST

START_TEST(a_lost_client_releases_its_locks_and_drops_its_waiters)
{
    struct fd *fd = fd_new(file, alice, 0, false);
    struct bench_call *waits[6];

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 2, NULL)), 0);
    ck_assert_int_eq(bench_run(posixlk(alice, "a", fd, NB, FLOCK_WRITE)), 0);
    waits[0] = start(inodelk(alice, "a2", WAIT, FLOCK_WRITE, 0, 0));
    waits[1] = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0));
    waits[2] = start(entrylk(alice, "a2", 0, "n"));
    waits[3] = start(entrylk(bob, "b", 0, "n"));
    waits[4] = start(posixlk(alice, "a2", fd, WAIT, FLOCK_WRITE));
    waits[5] = start(posixlk(bob, "b", fd, WAIT, FLOCK_READ));
    for (int i = 0; i < 6; i++)
        ck_assert(!bench_is_done(waits[i]));
    brick_client_ref(alice);
    bench_client_gone(alice);
    for (int i = 0; i < 6; i++)
        ck_assert_int_eq(finish(waits[i]), i % 2 ? 0 : -EAGAIN);
    /* Requests of the dead client that arrive now are refused. */
    ck_assert_int_eq(bench_run(inodelk(alice, "late", WAIT, FLOCK_WRITE, 0, 0)), -ENOTCONN);
    ck_assert_int_eq(bench_run(posixlk(alice, "late", fd, WAIT, FLOCK_WRITE)), -ENOTCONN);
    fd_unref(fd);
    brick_client_unref(alice);
    alice = NULL;
}
END_TEST

/* The client may have changed the attributes on some replicas only. */
START_TEST(a_client_lost_in_a_change_of_attributes_leaves_a_dirty_mark)
{
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, METADATA_START, 0)), 0);
    struct bench_call *waits = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, METADATA_START, 0));
    bench_client_gone(alice);
    alice = NULL;
    ck_assert_int_eq(finish(waits), 0);
    ck_assert_int_eq(atomic_load(&dirty_marks), 1);
    ck_assert_int_eq(bench_run(inodelk(bob, "b", NB, FLOCK_UNLOCK, METADATA_START, 0)), 0);
}
END_TEST

/* No mark for a finished change, for one that waited for its lock, and for locks on data and names. */
START_TEST(a_client_lost_with_other_locks_leaves_no_mark)
{
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, METADATA_START, 0)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, METADATA_START, 0)), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "b", NB, FLOCK_WRITE, METADATA_START, 0)), 0);
    struct bench_call *waits = start(inodelk(alice, "a", WAIT, FLOCK_WRITE, METADATA_START, 0));
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 2, "n")), 0);
    bench_client_gone(alice);
    alice = NULL;
    ck_assert_int_eq(finish(waits), -EAGAIN);
    ck_assert_int_eq(atomic_load(&dirty_marks), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "b", NB, FLOCK_UNLOCK, METADATA_START, 0)), 0);
}
END_TEST

/* The client may have changed attributes or names on some bricks of a dispersed set only. No note for locks
 * of replicate and healers, on parts of an object, for reading alone, and for a finished change. */
static const struct fragment_lock {
    const char *domain;
    uint32_t type;
    int64_t len;
    bool ends, is_noted;
} fragment_locks[] = {
    {"v-disperse-12", FLOCK_WRITE, 0, false, true}, {"v-disperse-0", FLOCK_WRITE, 0, true, false},
    {"v-disperse-0", FLOCK_WRITE, 9, false, false}, {"v-disperse-0", FLOCK_READ, 0, false, false},
    {"v-disperse-", FLOCK_WRITE, 0, false, false},  {"v-disperse-0:self-heal", FLOCK_WRITE, 0, false, false},
    {"-disperse-1", FLOCK_WRITE, 0, false, false},  {"v-disperse-0-replica", FLOCK_WRITE, 0, false, false},
};

START_TEST(a_client_lost_with_a_lock_of_disperse_leaves_a_note)
{
    const struct fragment_lock *l = &fragment_locks[_i];

    for (int n = 0; n < (l->ends ? 2 : 1); n++) {
        struct bench_call *call = inodelk(alice, "a", NB, n ? FLOCK_UNLOCK : l->type, 0, l->len);

        call->stk->call.volume = l->domain;
        ck_assert_int_eq(bench_run(call), 0);
    }
    bench_client_gone(alice);
    alice = NULL;
    ck_assert_int_eq(notes, l->is_noted);
    ck_assert_int_eq(dirty_marks, 0);
}
END_TEST

/* The gfid was used again for another kind of object, so only fds and locks lead to the old inode. Its locks
 * are dropped with their client. */
START_TEST(a_lost_client_releases_locks_of_a_replaced_inode)
{
    struct iatt again = {.mode = S_IFDIR | 0755, .gfid = file->gfid};
    struct fd *fd = fd_new(file, alice, 0, false);
    struct bench_call *waits;

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    ck_assert_int_eq(bench_run(posixlk(alice, "a", fd, NB, FLOCK_WRITE)), 0);
    waits = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0));
    struct inode *root = inode_root(bench_graph.inodes);
    struct inode *other = inode_link(bench_graph.inodes, root, "again", &again);
    ck_assert_ptr_ne(other, file);
    inode_unref(other);
    inode_unref(root);
    fd_unref(fd);
    bench_client_gone(alice);
    alice = NULL;
    ck_assert_int_eq(finish(waits), 0);
    ck_assert_int_eq(bench_run(inodelk(bob, "c", NB, FLOCK_WRITE, 0, 0)), -EAGAIN);
    ck_assert_int_eq(bench_run(inodelk(bob, "b", NB, FLOCK_UNLOCK, 0, 0)), 0);
}
END_TEST

struct hammer {
    struct brick_client *client;
    char owner[16];
    unsigned granted;
};

static void *
hammer(void *arg)
{
    struct hammer *h = arg;

    rcu_register_thread();
    for (int i = 0; i < 400; i++) {
        int rc = bench_run(inodelk(h->client, h->owner, WAIT, FLOCK_WRITE, i % 3, 0));

        if (rc == -ENOTCONN || rc == -EAGAIN)
            break; /* the client is gone */
        ck_assert_int_eq(rc, 0);
        h->granted++;
        rc = bench_run(inodelk(h->client, h->owner, NB, FLOCK_UNLOCK, i % 3, 0));
        ck_assert(rc == 0 || rc == -EINVAL);
    }
    rcu_unregister_thread();
    return NULL;
}

START_TEST(a_client_lost_at_any_moment_leaves_no_lock)
{
    struct hammer h[6];
    pthread_t threads[6];

    for (int i = 0; i < 6; i++) {
        h[i] = (struct hammer){.client = i % 2 ? bob : alice};
        snprintf(h[i].owner, sizeof h[i].owner, "o%d", i);
        pthread_create(&threads[i], NULL, hammer, &h[i]);
    }
    brick_client_ref(alice);
    bench_client_gone(alice); /* at an arbitrary moment */
    for (int i = 0; i < 6; i++)
        pthread_join(threads[i], NULL);
    for (int i = 1; i < 6; i += 2)
        ck_assert_uint_eq(h[i].granted, 400);
    brick_client_unref(alice);
    alice = NULL;
    ck_assert_uint_eq(((struct lock_inode *)inode_ctx(file, bench_xl))->count, 0);
}
END_TEST

START_TEST(release_and_flush_drop_locks_and_waiters)
{
    struct fd *fd = fd_new(file, alice, 0, false), *fd2 = fd_new(file, bob, 0, false);
    struct bench_call *blocked, *call;

    ck_assert_int_eq(bench_run(posixlk(alice, "a", fd, NB, FLOCK_WRITE)), 0);
    call = bench_call(FOP_flush, alice);
    set_owner(call, "other");
    call->stk->call.fd = fd_ref(fd);
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(bench_run(posixlk(bob, "b", fd2, NB, FLOCK_WRITE)), -EAGAIN);
    call = bench_call(FOP_flush, alice);
    set_owner(call, "a");
    call->stk->call.fd = fd_ref(fd);
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(bench_run(posixlk(bob, "b", fd2, NB, FLOCK_WRITE)), 0);

    blocked = start(posixlk(alice, "a", fd, WAIT, FLOCK_WRITE));
    fd_unref(fd); /* RELEASE while a request on the fd waits */
    ck_assert_int_eq(finish(blocked), -EAGAIN);
    blocked = start(posixlk(alice, "a", fd = fd_new(file, alice, 0, false), WAIT, FLOCK_WRITE));
    fd_unref(fd2); /* the last reference: fd_closed */
    ck_assert_int_eq(finish(blocked), 0);
    fd_unref(fd);
}
END_TEST

static struct bench_call *
unlink_file(struct brick_client *c)
{
    struct bench_call *call = bench_call(FOP_unlink, c);

    call->stk->call.loc.inode = inode_ref(file);
    call->stk->call.loc.parent = inode_ref(dir);
    call->stk->call.loc.name = "f";
    return call;
}

START_TEST(a_removal_waits_for_locks_of_other_clients)
{
    struct bench_call *removal, *queued, *call;

    ck_assert_int_eq(bench_run(unlink_file(bob)), 0); /* no lock was ever requested */
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_READ, 0, 0)), 0);
    ck_assert_int_eq(bench_run(unlink_file(alice)), 0); /* a lock of the removing client does not count */
    removal = start(unlink_file(bob));
    ck_assert(!bench_is_done(removal));
    ck_assert_int_eq(atomic_load(&reached_bottom), 2);
    queued = start(inodelk(alice, "b", WAIT, FLOCK_READ, 0, 0));
    ck_assert(!bench_is_done(queued));
    expect_parked("features/locks unlink 1, features/locks inodelk 1");
    /* a lock holder may take a further lock */
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 5)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 5)), 0);
    ck_assert(!bench_is_done(removal));
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(removal), 0);
    ck_assert_int_eq(atomic_load(&reached_bottom), 3);
    ck_assert_int_eq(finish(queued), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "b", NB, FLOCK_UNLOCK, 0, 0)), 0);

    call = inodelk(alice, "heal", NB, FLOCK_WRITE, 0, 0);
    call->stk->caller.pid = -6;
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(bench_run(unlink_file(bob)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "heal", NB, FLOCK_UNLOCK, 0, 0)), 0);

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_READ, 0, 0)), 0);
    removal = start(unlink_file(bob));
    queued = start(inodelk(alice, "b", WAIT, FLOCK_READ, 0, 0));
    ck_assert(!bench_is_done(queued));
    brick_client_ref(bob);
    bench_client_gone(bob); /* the removing client is gone */
    ck_assert_int_eq(finish(removal), -ENOTCONN);
    ck_assert_int_eq(finish(queued), 0);
    brick_client_unref(bob);
    bob = NULL;
    expect_parked("");
}
END_TEST

/* Distribute's locks are taken before the locks that a removal's client holds already, so waiting for them
 * would be a deadlock. */
START_TEST(a_removal_does_not_wait_for_locks_of_distribute)
{
    static const char *const domains[] = {"dht.file.migrate", "dht.layout.heal"};
    struct bench_call *removal, *call;

    for (int i = 0; i < 2; i++) {
        call = inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0);
        call->stk->call.volume = domains[i];
        ck_assert_int_eq(bench_run(call), 0);
    }
    ck_assert_int_eq(bench_run(unlink_file(bob)), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "x", NB, FLOCK_READ, 0, 0)), 0);
    removal = start(unlink_file(bob)); /* waits for replicate's lock */
    ck_assert(!bench_is_done(removal));
    for (int i = 0; i < 2; i++) { /* distribute's locks do not queue behind the removal */
        call = inodelk(alice, "b", NB, FLOCK_READ, 0, 0);
        call->stk->call.volume = domains[i];
        ck_assert_int_eq(bench_run(call), -EAGAIN);
        call = inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 0);
        call->stk->call.volume = domains[i];
        ck_assert_int_eq(bench_run(call), 0);
        call = inodelk(alice, "b", NB, FLOCK_READ, 0, 0);
        call->stk->call.volume = domains[i];
        ck_assert_int_eq(bench_run(call), 0);
    }
    ck_assert_int_eq(bench_run(inodelk(alice, "c", NB, FLOCK_READ, 0, 0)), -EAGAIN);
    ck_assert(!bench_is_done(removal));
    ck_assert_int_eq(bench_run(inodelk(alice, "x", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(removal), 0);
}
END_TEST

static int64_t
number(const struct dict *d, enum dict_key key)
{
    int64_t n = -1;

    dict_get_int(d, key, &n);
    return n;
}

START_TEST(replies_have_the_requested_counts_of_locks)
{
    struct fd *fd = fd_new(file, alice, 0, false);
    struct bench_call *waiting, *call;
    struct dict *x;

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    call = inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0);
    call->stk->call.volume = "another";
    ck_assert_int_eq(bench_run(call), 0);
    waiting = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0));
    ck_assert_int_eq(bench_run(entrylk(alice, "a", 2, "f")), 0);

    call = bench_call(FOP_lookup, bob);
    call->stk->call.loc.parent = inode_ref(dir);
    call->stk->call.loc.name = "f";
    x = call->stk->call.xdata = dict_new(&call->stk->arena);
    dict_set_int(x, DICT_KEY_INODELK_COUNT, 0);
    dict_set_int(x, DICT_KEY_ENTRYLK_COUNT, 0);
    dict_set_int(x, DICT_KEY_PARENT_ENTRYLK, 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_int_eq(number(call->stk->reply.xdata, DICT_KEY_INODELK_COUNT), 3);
    ck_assert_int_eq(number(call->stk->reply.xdata, DICT_KEY_ENTRYLK_COUNT), 0);
    ck_assert_int_eq(number(call->stk->reply.xdata, DICT_KEY_PARENT_ENTRYLK), 1);
    bench_free(call);

    call = bench_call(FOP_writev, bob);
    call->stk->call.fd = fd_ref(fd);
    x = call->stk->call.xdata = dict_new(&call->stk->arena);
    dict_set_str(x, DICT_KEY_INODELK_DOM_COUNT, "v-replicate-0");
    dict_set_str(x, DICT_KEY_MULTI_DOM_LK_CNT, "");
    dict_set_text_int(x, "glusterfs.inodelk-dom-prefix:another", 0);
    dict_set_text_int(x, "glusterfs.inodelk-dom-prefix:nobody", 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_int_eq(number(call->stk->reply.xdata, DICT_KEY_INODELK_COUNT), 2);
    const struct dict_pair *p =
        dict_find_text(call->stk->reply.xdata, "glusterfs.inodelk-dom-prefix:another");
    ck_assert_int_eq(p->v.i, 1);
    p = dict_find_text(call->stk->reply.xdata, "glusterfs.inodelk-dom-prefix:nobody");
    ck_assert_int_eq(p->v.i, 0);
    bench_free(call);
    fd_unref(fd);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(waiting), 0);
}
END_TEST

static const char *
clear(struct bench_call *call, const char *name, char text[512])
{
    call->stk->call.name = name;
    bench_wind(call);
    int rc = bench_result(call);

    if (rc < 0) {
        snprintf(text, 512, "%d", rc);
    } else {
        const struct dict_pair *p = dict_find_text(call->stk->reply.dict, name);
        snprintf(text, 512, "%s", dict_pair_str(p));
    }
    bench_free(call);
    return text;
}

static struct bench_call *
getxattr(void)
{
    struct bench_call *call = bench_call(FOP_getxattr, alice);

    call->stk->call.loc.inode = inode_ref(file);
    return call;
}

START_TEST(clearing_counts_the_cleared_locks)
{
    struct fd *fd = fd_new(file, alice, 0, false);
    struct bench_call *waiting, *call;
    char text[512];

    ck_assert_str_eq(clear(getxattr(), "glusterfs.clrlk.tinode.kall", text), "No locks cleared.");
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 10, 5)), 0);
    waiting = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0));
    ck_assert_str_eq(clear(getxattr(), "glusterfs.clrlk.tinode.kgranted.0,0-10", text), "No locks cleared.");
    clear(getxattr(), "glusterfs.clrlk.tinode.kblocked", text);
    ck_assert_ptr_nonnull(strstr(text, ": inode blocked locks=1 granted locks=0"));
    ck_assert_int_eq(finish(waiting), -EAGAIN);
    waiting = start(inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0));
    clear(getxattr(), "glusterfs.clrlk.tinode.kgranted.0,14-0", text);
    ck_assert_ptr_nonnull(strstr(text, ": inode blocked locks=0 granted locks=1"));
    ck_assert_int_eq(finish(waiting), 0);
    ck_assert_str_eq(clear(getxattr(), "glusterfs.clrlk.tinode", text), "-22");
    ck_assert_str_eq(clear(getxattr(), "glusterfs.clrlk.tinodex.kall", text), "-22");
    ck_assert_str_eq(clear(getxattr(), "glusterfs.clrlk.tinode.kall.0,0", text), "-22");

    ck_assert_int_eq(bench_run(posixlk(bob, "b", fd, NB, FLOCK_WRITE)), 0);
    waiting = start(posixlk(alice, "a", fd, WAIT, FLOCK_WRITE));
    call = bench_call(FOP_fgetxattr, bob);
    call->stk->caller.pid = 100;
    call->stk->call.fd = fd_ref(fd);
    ck_assert_str_eq(clear(call, "glusterfs.intrlk.tposix.kblocked.0,0-0", text), "No locks cleared.");
    call = bench_call(FOP_fgetxattr, alice);
    call->stk->caller.pid = 100;
    call->stk->call.fd = fd_ref(fd);
    clear(call, "glusterfs.intrlk.tposix.kblocked.0,0-0", text);
    ck_assert_ptr_nonnull(strstr(text, ": posix blocked locks=1 granted locks=0"));
    ck_assert_int_eq(finish(waiting), -EINTR);
    fd_unref(fd);
}
END_TEST

/* The locks of one fd move to another fd of the same process, but not to an fd of another process. */
START_TEST(lockinfo_moves_locks_to_the_same_client_only)
{
    struct brick_client *old = bench_client("CTX_ID:7-GRAPH_ID:0-PID:1");
    struct brick_client *fresh = bench_client("CTX_ID:7-GRAPH_ID:1-PID:1");
    struct fd *fd = fd_new(file, old, 0, false), *fd2 = fd_new(file, fresh, 0, false);
    struct bench_call *call = posixlk(old, "a", fd, NB, FLOCK_WRITE);

    call->stk->call.fd_nr = 33;
    ck_assert_int_eq(bench_run(call), 0);
    struct bench_call *get = bench_call(FOP_fgetxattr, old);
    get->stk->call.fd = fd_ref(fd);
    get->stk->call.fd_nr = 33;
    get->stk->call.name = "trusted.glusterfs.lockinfo";
    bench_wind(get);
    ck_assert_int_eq(bench_result(get), 0);
    for (int i = 0; i < 2; i++) {
        struct bench_call *set = bench_call(FOP_fsetxattr, i ? fresh : bob);
        const struct dict_pair *p = dict_find(get->stk->reply.dict, DICT_KEY_LOCKINFO);

        set->stk->call.fd = fd_ref(fd2);
        set->stk->call.dict = dict_new(&set->stk->arena);
        dict_set_bytes(set->stk->call.dict, DICT_KEY_LOCKINFO, p->v.bytes, p->len);
        ck_assert_int_eq(bench_run(set), 0);
        struct lock_inode *li = inode_ctx(file, bench_xl);
        struct lock *l = cds_list_first_entry(&li->posix.granted, struct lock, link);
        ck_assert_ptr_eq(l->client, i ? fresh : old);
    }
    /* Every truncated value is refused or ignored. */
    const struct dict_pair *p = dict_find(get->stk->reply.dict, DICT_KEY_LOCKINFO);
    for (uint32_t len = 0; len < p->len; len++) {
        struct bench_call *set = bench_call(FOP_fsetxattr, fresh);

        set->stk->call.fd = fd_ref(fd2);
        set->stk->call.dict = dict_new(&set->stk->arena);
        dict_set_bytes(set->stk->call.dict, DICT_KEY_LOCKINFO, p->v.bytes, len);
        ck_assert_int_eq(bench_run(set), -EINVAL);
    }
    bench_free(get);
    fd_unref(fd);
    bench_client_gone(old);
    ck_assert_int_eq(bench_run(posixlk(bob, "b", fd2, NB, FLOCK_WRITE)), -EAGAIN);
    fd_unref(fd2);
    bench_client_gone(fresh);
}
END_TEST

START_TEST(migration_is_refused)
{
    struct bench_call *call = bench_call(FOP_setxattr, alice);

    call->stk->call.loc.inode = inode_ref(file);
    call->stk->call.dict = dict_new(&call->stk->arena);
    dict_set_str(call->stk->call.dict, DICT_KEY_META_LOCK, "meta-lock");
    ck_assert_int_eq(bench_run(call), -EOPNOTSUPP);
    call = bench_call(FOP_setactivelk, alice);
    call->stk->call.loc.inode = inode_ref(file);
    ck_assert_int_eq(bench_run(call), -EOPNOTSUPP);
    ck_assert_int_eq(atomic_load(&reached_bottom), 0);
}
END_TEST

START_TEST(the_statedump_lists_locks_and_waiters)
{
    struct bench_call *waiting;
    char *text = NULL;
    size_t size = 0;
    struct dump dump = {.file = open_memstream(&text, &size)};
    static const char *const expected[] = {
        "[xlator.features.locks.v-layer.inode]",
        "path=/f",
        "inodelk-count=2",
        "lock-dump.domain.domain=v-replicate-0",
        "inodelk.inodelk[0](ACTIVE)=type=WRITE, whence=0, start=0, len=100, pid = 100, owner=4141, client=0x",
        "connection-id=alice, granted at ",
        "inodelk.inodelk[1](BLOCKED)=type=READ, whence=0, start=50, len=0, pid = 100, owner=4242, client=0x",
        "connection-id=bob, blocked at ",
        "entrylk.entrylk[0](ACTIVE)=type=ENTRYLK_RDLCK on basename=n1, pid = 100, owner=4141",
        "removes_pending=0",
    };

    ck_assert_int_eq(bench_run(inodelk(alice, "AA", NB, FLOCK_WRITE, 0, 100)), 0);
    waiting = start(inodelk(bob, "BB", WAIT, FLOCK_READ, 50, 0));
    ck_assert_int_eq(bench_run(entrylk(alice, "AA", 2, "n1")), 0);
    locks_dump(bench_xl, &dump);
    fclose(dump.file);
    for (unsigned i = 0; i < sizeof expected / sizeof expected[0]; i++)
        ck_assert_msg(strstr(text, expected[i]) != NULL, "no \"%s\" in:\n%s", expected[i], text);
    free(text);
    ck_assert_int_eq(bench_run(inodelk(alice, "AA", NB, FLOCK_UNLOCK, 0, 100)), 0);
    ck_assert_int_eq(finish(waiting), 0);
}
END_TEST

/* Neither a name nor a client's id can forge further fields. */
START_TEST(forged_names_are_escaped_in_the_statedump)
{
    struct brick_client *eve = bench_client("eve, granted at 1970, pid = 7\n[brick./b]");
    char *text = NULL;
    size_t size = 0;
    struct dump dump = {.file = open_memstream(&text, &size)};

    ck_assert_int_eq(bench_run(entrylk(eve, "AA", 2, "n1, pid = 9, owner=00")), 0);
    locks_dump(bench_xl, &dump);
    fclose(dump.file);
    ck_assert_msg(
        strstr(text, "basename=n1\\x2c\\x20pid\\x20\\x3d\\x209\\x2c\\x20owner\\x3d00, pid = 100, owner=4141"),
        "%s", text);
    ck_assert_msg(
        strstr(
            text,
            "connection-id=eve\\x2c\\x20granted\\x20at\\x201970\\x2c\\x20pid\\x20\\x3d\\x207\\x0a[brick./b], "
            "granted at "),
        "%s", text);
    free(text);
    bench_client_gone(eve);
}
END_TEST

/* A long queue is answered one by one, without overflowing the stack. */
START_TEST(one_unlock_wakes_thousands_of_readers)
{
    enum { N = 3000 };
    static struct bench_call *calls[N];
    static char owners[N][16];

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    for (int i = 0; i < N; i++) {
        snprintf(owners[i], sizeof owners[i], "r%d", i);
        calls[i] = start(inodelk(bob, owners[i], WAIT, FLOCK_READ, 0, 0));
    }
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 0)), 0);
    for (int i = 0; i < N; i++)
        ck_assert_int_eq(finish(calls[i]), 0);
}
END_TEST

/* ---- packed calls (stack/call-pack.h) -------------------------------------------------------- */

static atomic_int refusals; /* number of allocations that fail */

static struct call_stack *
packed_get(void)
{
    return atomic_fetch_sub(&refusals, 1) > 0 ? NULL : mem_get_t(MEM_ID_CALL_STACK);
}

static void
packed_put(struct call_stack *stk)
{
    mem_put_t(MEM_ID_CALL_STACK, stk);
}

static bool
packed_strip(struct call_stack *copy)
{
    (void)copy;
    return true;
}

static void
packed_moved(struct call_stack *stk, struct call_stack *copy, size_t bytes)
{
    ck_assert_ptr_eq(stk->client, copy->client);
    ck_assert_uint_le(bytes, 1024);
}

static const struct call_keeper keeper = {
    sizeof(struct call_stack), packed_get, packed_put, packed_strip, packed_moved, call_stack_free,
};

/* The call stack is freed while its call waits. A request that is granted while there is no memory is
 * answered later, and keeps its lock. */
START_TEST(a_packed_waiter_is_woken_without_memory)
{
    struct bench_call *blocked = inodelk(bob, "b", WAIT, FLOCK_WRITE, 0, 0),
                      *refused = inodelk(bob, "c", WAIT, FLOCK_READ, 0, 0);
    struct inode *victim = inode_ref(file);
    const struct lock *l;

    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_WRITE, 0, 0)), 0);
    blocked->stk->keeper = refused->stk->keeper = &keeper;
    start(blocked);
    start(refused);
    struct lock_inode *li = inode_ctx(victim, bench_xl);
    struct lock_domain *d = lock_domain_find(li, "v-replicate-0");
    cds_list_for_each_entry(l, &d->inodelks.waiting, link)
    {
        ck_assert(!l->waiter->stk);
        ck_assert_ptr_nonnull(l->waiter->packed);
    }
    atomic_store(&refusals, 3);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_UNLOCK, 0, 0)), 0);
    ck_assert_int_eq(finish(blocked), 0);
    ck_assert_int_lt(atomic_load(&refusals), 0);
    ck_assert_int_eq(bench_run(inodelk(alice, "a", NB, FLOCK_READ, 0, 0)), -EAGAIN); /* bob has it */
    atomic_store(&refusals, 3);
    brick_client_ref(bob);
    bench_client_gone(bob); /* waiting requests are then answered with an error */
    ck_assert_int_eq(finish(refused), -EAGAIN);
    brick_client_unref(bob);
    bob = NULL;
    inode_unref(victim);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("locks");
    TCase *t = tcase_create("locks");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, inodelks_conflict_by_range_owner_and_domain);
    tcase_add_test(t, invalid_inodelks_and_entrylks_are_refused);
    tcase_add_test(t, a_waiting_writer_goes_before_new_readers);
    tcase_add_test(t, entrylks_conflict_by_name);
    tcase_add_test(t, names_owners_and_domains_of_maximum_length_are_locked);
    tcase_add_test(t, a_lost_client_releases_its_locks_and_drops_its_waiters);
    tcase_add_test(t, a_client_lost_in_a_change_of_attributes_leaves_a_dirty_mark);
    tcase_add_test(t, a_client_lost_with_other_locks_leaves_no_mark);
    tcase_add_loop_test(t, a_client_lost_with_a_lock_of_disperse_leaves_a_note, 0,
                        sizeof fragment_locks / sizeof fragment_locks[0]);
    tcase_add_test(t, a_lost_client_releases_locks_of_a_replaced_inode);
    tcase_add_test(t, a_client_lost_at_any_moment_leaves_no_lock);
    tcase_add_test(t, release_and_flush_drop_locks_and_waiters);
    tcase_add_test(t, a_removal_waits_for_locks_of_other_clients);
    tcase_add_test(t, a_removal_does_not_wait_for_locks_of_distribute);
    tcase_add_test(t, replies_have_the_requested_counts_of_locks);
    tcase_add_test(t, clearing_counts_the_cleared_locks);
    tcase_add_test(t, lockinfo_moves_locks_to_the_same_client_only);
    tcase_add_test(t, migration_is_refused);
    tcase_add_test(t, the_statedump_lists_locks_and_waiters);
    tcase_add_test(t, forged_names_are_escaped_in_the_statedump);
    tcase_add_test(t, one_unlock_wakes_thousands_of_readers);
    tcase_add_test(t, a_packed_waiter_is_woken_without_memory);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
