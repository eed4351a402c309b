/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Inode table, fds and clients of a graph of two hand-made layers that count their events. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>

#include "fs/brick-client.h"
#include "graph/graph.h"
#include "mem/mem-pool.h"

static atomic_int forgotten, released, closed, gone;
static atomic_int last_order, first_layer_at, second_layer_at;

static void
count_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)inode;
    ck_assert_ptr_eq(ctx, xl->private);
    atomic_fetch_add(&forgotten, 1);
}

static void
count_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)xl, (void)fd, (void)ctx;
    atomic_fetch_add(&released, 1);
}

static void
count_closed(struct xlator *xl, struct fd *fd)
{
    (void)fd;
    atomic_fetch_add(&closed, 1);
    atomic_store(xl == &xl->graph->layers[0] ? &first_layer_at : &second_layer_at,
                 atomic_fetch_add(&last_order, 1) + 1);
}

static void
count_gone(struct xlator *xl, struct brick_client *client)
{
    (void)xl, (void)client;
    atomic_fetch_add(&gone, 1);
}

static const struct xlator_type counting_type = {.name = "test/counting",
                                                 .keeps =
                                                     KEEPS(CTX_INODE) | KEEPS(CTX_FD) | KEEPS(CTX_CLIENT),
                                                 .inode_forget = count_forget,
                                                 .fd_release = count_release,
                                                 .fd_closed = count_closed,
                                                 .client_gone = count_gone};
static const struct xlator_type silent_type = {.name = "test/silent"};

static struct xlator layers[3];
static struct graph graph;
static struct inode_table *table;

static void
setup(void)
{
    atomic_store(&forgotten, 0);
    atomic_store(&released, 0);
    atomic_store(&closed, 0);
    atomic_store(&gone, 0);
    for (int i = 0; i < 3; i++)
        layers[i] = (struct xlator){.type = i == 1 ? &silent_type : &counting_type,
                                    .graph = &graph,
                                    .private = &layers[i]};
    graph = (struct graph){.layers = layers, .layer_count = 3};
    atomic_store(&graph.pins, 1);
    pthread_mutex_init(&graph.clients_lock, NULL);
    CDS_INIT_LIST_HEAD(&graph.clients);
    ck_assert_int_eq(fs_pools_init(), 0);
    graph_number_contexts(&graph);
    table = inode_table_new(&graph, 0);
    ck_assert_ptr_nonnull(table);
    graph.inodes = table;
}

static void
teardown(void)
{
    ck_assert_uint_eq(inode_table_free(table), 0);
}

static struct iatt
iatt_of(uint32_t n, uint32_t type)
{
    struct iatt a = {.mode = type | 0644};

    a.gfid.b[0] = 0xaa;
    memcpy(a.gfid.b + 12, &n, sizeof n);
    return a;
}

static struct inode *
add(struct inode *parent, const char *name, uint32_t n, uint32_t type)
{
    struct iatt a = iatt_of(n, type);
    struct inode *i = inode_link(table, parent, name, &a);

    ck_assert_ptr_nonnull(i);
    return i;
}

static struct inode_table_stats
stats(void)
{
    struct inode_table_stats s;

    inode_table_stats(table, &s);
    return s;
}

/* As in a peer's reply. */
START_TEST(impossible_names_and_gfids_are_not_linked)
{
    struct inode *root = inode_root(table);
    const struct iatt none = {.mode = S_IFREG}, good = iatt_of(1, S_IFREG);
    char name[FOP_NAME_MAX + 2];

    memset(name, 'n', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_ptr_null(inode_link(table, root, "f", &none));
    ck_assert_ptr_null(inode_link(table, NULL, NULL, &none));
    ck_assert_ptr_null(inode_link(table, root, "", &good));
    ck_assert_ptr_null(inode_link(table, root, name, &good));
    inode_unref(add(root, name + 1, 1, S_IFREG));
    inode_unref(root);
}
END_TEST

START_TEST(a_linked_inode_is_found_by_name_and_by_gfid)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG), *again;

    ck_assert_uint_eq(f->type, S_IFREG);
    ck_assert_ptr_eq(again = inode_find_child(table, root, "f"), f);
    inode_unref(again);
    ck_assert_ptr_eq(again = inode_find(table, &f->gfid), f);
    inode_unref(again);
    ck_assert_ptr_null(inode_find_child(table, root, "g"));
    ck_assert_ptr_null(inode_find(table, &gfid_null));
    inode_unref(f);
    ck_assert_uint_eq(stats().lru, 1);
    again = inode_find_child(table, root, "f"); /* back from the LRU list */
    ck_assert_ptr_eq(again, f);
    ck_assert_uint_eq(stats().lru, 0);
    inode_unref(again);
    inode_unref(root);
}
END_TEST

START_TEST(an_unused_inode_without_a_name_is_freed)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);

    inode_unref(add(root, "g", 1, S_IFREG)); /* a hard link */
    ck_assert_uint_eq(stats().dentries, 2);
    inode_unlink(table, root, "f");
    inode_unref(f);
    ck_assert_uint_eq(stats().inodes, 2); /* still has a name */
    inode_unlink(table, root, "g");
    ck_assert_uint_eq(stats().inodes, 1);

    /* held: can be found by gfid until the reference is dropped */
    f = add(root, "f", 2, S_IFREG);
    inode_unlink(table, root, "f");
    struct inode *again = inode_find(table, &f->gfid);
    ck_assert_ptr_eq(again, f);
    inode_unref(again);
    inode_unref(f);
    ck_assert_uint_eq(stats().inodes, 1);
    inode_unlink(table, root, "never was");
    inode_unref(root);
}
END_TEST

START_TEST(a_forgotten_inode_is_reported_to_its_layers)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);

    ck_assert_ptr_eq(inode_ctx_install(f, &layers[0], &layers[0]), &layers[0]);
    ck_assert_ptr_eq(inode_ctx_install(f, &layers[0], &layers[1]), &layers[0]); /* the first wins */
    ck_assert_ptr_eq(inode_ctx_install(f, &layers[2], &layers[2]), &layers[2]);
    inode_forget(f);
    struct gfid gfid = f->gfid;
    ck_assert_ptr_null(inode_find(table, &gfid));
    ck_assert_int_eq(forgotten, 0);
    struct inode *fresh = add(root, "f", 1, S_IFREG); /* a new one beside it */
    ck_assert_ptr_ne(fresh, f);
    inode_unref(f);
    ck_assert_int_eq(forgotten, 2);
    inode_unref(fresh);
    inode_unref(root);
}
END_TEST

START_TEST(the_table_keeps_at_most_the_limit_of_unused_inodes)
{
    struct inode *root = inode_root(table);
    char name[32];

    inode_table_set_limit(table, 10);
    for (uint32_t i = 1; i <= 1000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        struct inode *f = add(root, name, i, S_IFREG);
        inode_ctx_install(f, &layers[0], &layers[0]);
        inode_unref(f);
    }
    ck_assert_uint_eq(stats().lru, 10);
    ck_assert_uint_eq(stats().dentries, 10);
    ck_assert_int_eq(forgotten, 990);
    struct inode *kept = inode_find_child(table, root, "n1000");
    ck_assert_ptr_nonnull(kept);
    inode_table_set_limit(table, 1);
    ck_assert_uint_eq(stats().inodes, 3); /* root, the held inode, one on the list */
    inode_unref(kept);
    inode_unref(root);
}
END_TEST

START_TEST(a_link_replaces_the_inode_of_the_name)
{
    struct inode *root = inode_root(table), *a = add(root, "x", 1, S_IFREG), *b = add(root, "x", 2, S_IFREG);
    struct inode *now = inode_find_child(table, root, "x");

    ck_assert_ptr_eq(now, b);
    ck_assert_uint_eq(stats().dentries, 1);
    inode_unref(now);
    inode_unref(a); /* nameless and unused: freed */
    ck_assert_uint_eq(stats().inodes, 2);
    /* the same gfid for another kind of object */
    struct inode *dir = add(root, "x", 2, S_IFDIR);
    ck_assert_ptr_ne(dir, b);
    ck_assert_uint_eq(dir->type, S_IFDIR);
    inode_unref(b);
    inode_unref(dir);
    inode_unref(root);
}
END_TEST

START_TEST(old_reply_does_not_revive_a_name)
{
    struct inode *root = inode_root(table);
    uint32_t epoch = inode_name_epoch(table, root, "f");
    struct iatt a = iatt_of(1, S_IFREG);

    inode_unlink(table, root, "f");
    inode_unref(inode_link_epoch(table, root, "f", &a, epoch));
    ck_assert_ptr_null(inode_find_child(table, root, "f"));
    epoch = inode_name_epoch(table, root, "f");
    inode_unref(inode_link_epoch(table, root, "f", &a, epoch));
    struct inode *f = inode_find_child(table, root, "f");
    ck_assert_ptr_nonnull(f);
    inode_unref(f);

    struct inode_epochs before; /* a listing */
    struct iatt b = iatt_of(2, S_IFREG);
    inode_epochs_take(table, &before);
    inode_unlink(table, root, "f");
    inode_unref(inode_link_listed(table, root, "f", &a, &before));
    ck_assert_ptr_null(inode_find_child(table, root, "f"));
    inode_epochs_take(table, &before);
    inode_unref(inode_link_listed(table, root, "g", &b, &before));
    f = inode_find_child(table, root, "g");
    ck_assert_ptr_nonnull(f);
    inode_unref(f);
    inode_unref(root);
}
END_TEST

/* A gfid is used again for another kind of object while the old inode is held. */
START_TEST(old_reply_does_not_change_a_type)
{
    struct inode *root = inode_root(table);
    struct inode *dir = add(root, "d", 7, S_IFDIR);
    struct iatt was = iatt_of(7, S_IFDIR);
    struct inode_epochs listed;

    inode_epochs_take(table, &listed);
    uint32_t looked_up = inode_name_epoch(table, root, "d");
    inode_unlink(table, root, "d");
    struct inode *link = add(root, "s", 7, S_IFLNK); /* a true reply */
    ck_assert_ptr_ne(link, dir);
    ck_assert_uint_eq(link->type, S_IFLNK);

    struct inode *late[] = {
        inode_link_listed(table, root, "d", &was, &listed),
        inode_link_epoch(table, root, "d", &was, looked_up),
        inode_link(table, NULL, NULL, &was), /* by gfid alone: its age is unknown */
    };
    for (size_t i = 0; i < sizeof late / sizeof late[0]; i++) {
        ck_assert_ptr_eq(late[i], link);
        ck_assert_uint_eq(late[i]->type, S_IFLNK);
        inode_unref(late[i]);
    }
    ck_assert_ptr_null(inode_find_child(table, root, "d"));
    /* But a true reply does: it is a directory again. */
    struct inode *again = add(root, "d", 7, S_IFDIR);
    ck_assert_ptr_ne(again, link);
    ck_assert_uint_eq(again->type, S_IFDIR);
    inode_unref(again);
    inode_unref(link);
    inode_unref(dir);
    inode_unref(root);
}
END_TEST

START_TEST(a_path_has_all_names_up_to_the_root)
{
    struct inode *root = inode_root(table), *at = inode_ref(root);
    char name[256], path[4096];

    ck_assert_int_eq(inode_path(root, path, sizeof path), 0);
    ck_assert_str_eq(path, "/");
    for (uint32_t i = 1; i <= 40; i++) {
        snprintf(name, sizeof name, "d%u", i);
        struct inode *next = add(at, name, i, S_IFDIR);
        inode_unref(at);
        at = next;
    }
    ck_assert_int_eq(inode_path(at, path, sizeof path), 0);
    ck_assert_int_eq(strncmp(path, "/d1/d2/d3/", 10), 0);
    ck_assert_str_eq(path + strlen(path) - 8, "/d39/d40");
    ck_assert_int_eq(inode_path(at, path, 20), -ENAMETOOLONG);
    memset(name, 'x', 255);
    name[255] = '\0';
    struct inode *longest = add(at, name, 99, S_IFREG);
    ck_assert_int_eq(inode_path(longest, path, sizeof path), 0);
    inode_unref(longest);
    struct iatt a = iatt_of(1000, S_IFREG);
    struct inode *nameless = inode_link(table, NULL, NULL, &a);
    ck_assert_int_eq(inode_path(nameless, path, sizeof path), -ENOENT);
    inode_unref(nameless);
    inode_unref(at);
    inode_unref(root);
}
END_TEST

START_TEST(a_rename_moves_and_replaces_names)
{
    struct inode *root = inode_root(table), *a = add(root, "a", 1, S_IFDIR), *b = add(a, "b", 2, S_IFDIR);
    struct inode *victim = add(root, "old", 3, S_IFDIR);
    char path[256];

    inode_rename(table, a, "b", root, "old", b);
    inode_unref(victim);
    ck_assert_int_eq(inode_path(b, path, sizeof path), 0);
    ck_assert_str_eq(path, "/old");
    ck_assert_ptr_null(inode_find_child(table, a, "b"));
    ck_assert_uint_eq(stats().inodes, 3);
    inode_rename(table, root, "old", root, "old", b);
    ck_assert_int_eq(inode_path(b, path, sizeof path), 0);

    /* two racing calls could make a loop, which must end */
    inode_rename(table, root, "a", b, "a", a);
    inode_rename(table, root, "old", a, "b", b);
    ck_assert_int_eq(inode_path(b, path, sizeof path), -ENAMETOOLONG);
    inode_unref(a);
    inode_unref(b);
    inode_unref(root);
}
END_TEST

static void
count_each(struct inode *inode, void *ctx, void *arg)
{
    (void)ctx;
    ck_assert_uint_eq(inode->type, S_IFREG);
    ++*(unsigned *)arg;
}

START_TEST(a_walk_visits_every_inode_of_a_grown_table)
{
    struct inode *root = inode_root(table);
    char name[32];
    unsigned seen = 0;

    for (uint32_t i = 1; i <= 5000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        struct inode *f = add(root, name, i, S_IFREG);
        if (i % 2)
            inode_ctx_install(f, &layers[2], &layers[2]);
        inode_unref(f);
    }
    inode_table_each(table, &layers[2], count_each, &seen);
    ck_assert_uint_eq(seen, 2500);
    inode_unref(root);
}
END_TEST

struct seen {
    unsigned count, evicted;
    struct inode *held[1000];
    bool is_seen[1000];
};

/* Each visited inode evicts itself and adds another: the walk must neither miss nor repeat an inode. */
static void
see_and_disturb(struct inode *inode, void *ctx, void *arg)
{
    struct seen *s = arg;
    struct inode *root = inode_root(table);
    uint32_t n;
    char name[32];

    (void)ctx;
    memcpy(&n, inode->gfid.b + 12, sizeof n);
    ck_assert_uint_lt(n, 1000);
    ck_assert(!s->is_seen[n]);
    s->is_seen[n] = true;
    s->count++;
    snprintf(name, sizeof name, "n%u", n);
    inode_unlink(table, root, name);
    inode_unref(s->held[n]);
    struct inode *fresh = add(root, name, 100000 + n, S_IFREG);
    inode_ctx_install(fresh, &layers[2], &layers[2]);
    inode_unref(fresh);
    inode_unref(root);
}

START_TEST(a_walk_visits_each_context_once)
{
    struct inode *root = inode_root(table);
    static struct seen s;
    char name[32];

    s = (struct seen){0};
    for (uint32_t i = 0; i < 1000; i++) {
        snprintf(name, sizeof name, "n%u", i);
        s.held[i] = add(root, name, i, S_IFREG);
        inode_ctx_install(s.held[i], &layers[2], &layers[2]);
        /* the same gfid for another kind of object: only a holder has the old inode now */
        if (i % 3 == 0) {
            inode_unlink(table, root, name);
            inode_unref(add(root, name, i, S_IFDIR));
            inode_unlink(table, root, name);
        } else if (i % 3 == 1) {
            inode_forget(s.held[i]);
        }
    }
    ck_assert_uint_eq(stats().unhashed, 334 + 333);
    inode_table_each(table, &layers[2], see_and_disturb, &s);
    ck_assert_uint_eq(s.count, 1000);
    ck_assert_uint_eq(stats().unhashed, 0);
    inode_unref(root);
}
END_TEST

static void
count_only(struct inode *inode, void *ctx, void *arg)
{
    (void)inode, (void)ctx;
    ++*(unsigned *)arg;
}

/* Walks and evictions at the same time: each walk visits the inodes that stay. */
static void *
walk_thread(void *arg)
{
    atomic_bool *ends = arg;

    while (!atomic_load(ends)) {
        unsigned seen = 0;

        inode_table_each(table, &layers[2], count_only, &seen);
        ck_assert_uint_ge(seen, 100);
    }
    return NULL;
}

START_TEST(a_walk_continues_while_inodes_are_evicted)
{
    struct inode *root = inode_root(table), *stay[100];
    atomic_bool ends = false;
    pthread_t walkers[2];
    char name[32];

    inode_table_set_limit(table, 10);
    for (uint32_t i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "s%u", i);
        stay[i] = add(root, name, i, S_IFREG);
        inode_ctx_install(stay[i], &layers[2], &layers[2]);
        if (i % 2)
            inode_forget(stay[i]);
    }
    for (int i = 0; i < 2; i++)
        ck_assert_int_eq(pthread_create(&walkers[i], NULL, walk_thread, &ends), 0);
    for (uint32_t i = 1000; i < 20000; i++) {
        struct inode *f = add(NULL, NULL, i, S_IFREG);

        inode_ctx_install(f, &layers[2], &layers[2]);
        inode_unref(f);
    }
    atomic_store(&ends, true);
    for (int i = 0; i < 2; i++)
        pthread_join(walkers[i], NULL);
    for (int i = 0; i < 100; i++)
        inode_unref(stay[i]);
    inode_unref(root);
}
END_TEST

/* An inode that can no longer be found keeps its table like one that can be found. */
START_TEST(an_unhashed_inode_is_counted_at_the_end)
{
    static struct inode_table *t; /* stays for good: see inode_table_free() */
    struct iatt a = iatt_of(7, S_IFREG);

    t = inode_table_new(&graph, 0);
    struct inode *f = inode_link(t, NULL, NULL, &a);
    inode_forget(f);
    ck_assert_uint_eq(inode_table_free(t), 1); /* and so the table is still there */
    inode_unref(f);
}
END_TEST

/* Opens as many fds as the table accepts. */
static unsigned
open_all(struct fd_table *t, struct fd *fd)
{
    unsigned n = 0;

    for (; fd_table_may_add(t) == 0 && n < 100000; n++)
        ck_assert_int_eq(fd_table_add(t, fd_ref(fd)), n);
    ck_assert_int_eq(fd_table_add(t, fd), fd_table_may_add(t));
    return n;
}

/* No client gets more descriptors than remain for the other clients of the brick, and no brick more than
 * remain for the other bricks. */
START_TEST(a_brick_gets_at_most_half_of_the_free_fds)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);
    struct fd *fd = fd_new(f, NULL, O_RDWR, false);
    _Atomic uint32_t greedy_brick = 0, other_brick = 0;
    struct fd_table greedy[4], other;
    unsigned n[4], all = 0;

    fd_files_set_limit(1600);
    fd_table_init(&other);
    other.brick_files = &other_brick;
    for (int i = 0; i < 4; i++) { /* clients of one brick, one after the other */
        fd_table_init(&greedy[i]);
        greedy[i].brick_files = &greedy_brick;
        all += n[i] = open_all(&greedy[i], fd);
        ck_assert_int_eq(fd_table_may_add(&greedy[i]), -EMFILE);
        ck_assert_uint_eq(n[i], 400u >> i);
    }
    ck_assert_uint_le(all, 800);
    ck_assert_uint_ge(open_all(&other, fd), 200); /* a client of another brick */
    for (unsigned i = 0; i < n[0]; i++)
        fd_unref(fd_table_take(&greedy[0], i));
    ck_assert_int_eq(fd_table_may_add(&greedy[3]), 0);
    ck_assert_int_eq(fd_table_may_add(&other), 0);
    for (int i = 0; i < 4; i++)
        fd_table_fini(&greedy[i]);
    fd_table_fini(&other);
    ck_assert_uint_eq(greedy_brick + other_brick, 0);
    fd_files_set_limit(UINT32_MAX);
    fd_unref(fd);
    inode_unref(f);
    inode_unref(root);
}
END_TEST

/* As many clients have a file open as the brick may have descriptors: none are reserved for a client's
 * second file. */
START_TEST(a_client_above_its_share_gets_no_fd)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);
    struct fd *fd = fd_new(f, NULL, O_RDWR, false);
    _Atomic uint32_t brick = 0;
    struct fd_table t[100];
    uint32_t limit;

    fd_files_set_limit(200);
    for (unsigned i = 0; i < 100; i++) {
        fd_table_init(&t[i]);
        t[i].brick_files = &brick;
        ck_assert_int_eq(fd_table_add(&t[i], fd_ref(fd)), 0);
    }
    ck_assert_uint_eq(fd_files_used(&limit), 100);
    ck_assert_uint_eq(limit, 200);
    ck_assert_int_eq(fd_table_may_add(&t[0]), -EMFILE);
    for (unsigned i = 0; i < 100; i++)
        fd_table_fini(&t[i]);
    ck_assert_uint_eq(brick + fd_files_used(&limit), 0);
    fd_files_set_limit(UINT32_MAX);
    fd_unref(fd);
    inode_unref(f);
    inode_unref(root);
}
END_TEST

/* When all are in use the error is ENFILE for every client. */
START_TEST(fds_end_at_the_limit_of_the_process)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);
    struct fd *fd = fd_new(f, NULL, O_RDWR, false);
    _Atomic uint32_t bricks[16];
    struct fd_table t[16];
    int err = 0;

    fd_files_set_limit(160);
    for (int i = 0; i < 16; i++) {
        bricks[i] = 0;
        fd_table_init(&t[i]);
        t[i].brick_files = &bricks[i];
        open_all(&t[i], fd);
        err = fd_table_may_add(&t[i]);
    }
    ck_assert_int_eq(err, -ENFILE);
    for (int i = 0; i < 16; i++)
        fd_table_fini(&t[i]);
    fd_files_set_limit(UINT32_MAX);
    fd_unref(fd);
    inode_unref(f);
    inode_unref(root);
}
END_TEST

START_TEST(fds_are_found_by_number_until_they_are_taken)
{
    struct inode *root = inode_root(table), *f = add(root, "f", 1, S_IFREG);
    struct fd_table t;

    fd_table_init(&t);
    struct fd *fd = fd_new(f, NULL, O_RDWR, false), *anon = fd_new_anonymous(f, NULL);
    ck_assert_uint_eq(atomic_load(&f->open_fds), 1);
    fd_ctx_set(fd, &layers[0], &layers[0]);
    ck_assert_int_eq(fd_table_add(&t, fd), 0);
    for (int64_t i = 1; i < 1000; i++)
        ck_assert_int_eq(fd_table_add(&t, fd_ref(fd)), i);
    ck_assert_uint_eq(fd_table_count(&t), 1000);
    ck_assert_ptr_null(fd_table_get(&t, -1));
    ck_assert_ptr_null(fd_table_get(&t, -2));
    ck_assert_ptr_null(fd_table_get(&t, INT64_MAX));
    ck_assert_ptr_null(fd_table_get(&t, 1000));
    for (int64_t i = 3; i < 1000; i++) {
        struct fd *got = fd_table_take(&t, i);
        ck_assert_ptr_eq(got, fd);
        fd_unref(got);
    }
    ck_assert_ptr_null(fd_table_take(&t, 7));
    ck_assert_int_eq(fd_table_add(&t, fd_ref(fd)), 999); /* the one freed last */
    fd_table_close(&t);
    ck_assert_int_eq(fd_table_add(&t, fd), -ENOTCONN);
    ck_assert_int_eq(closed, 0);
    fd_table_fini(&t);
    ck_assert_int_eq(closed, 2); /* both counting layers */
    ck_assert_int_lt(atomic_load(&first_layer_at), atomic_load(&second_layer_at)); /* top first */
    ck_assert_int_eq(released, 1);
    ck_assert_uint_eq(atomic_load(&f->open_fds), 0);
    fd_unref(anon);
    ck_assert_uint_eq(atomic_load(&f->open_fds), 0);
    inode_unref(f);
    inode_unref(root);
}
END_TEST

/* ---- contexts in a graph of many layers ------------------------------------------------------ */

enum { MANY = 40 };
static unsigned let_go[CTX_KINDS];

static void
many_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)inode;
    ck_assert_ptr_eq(ctx, xl);
    let_go[CTX_INODE]++;
}

static void
many_release(struct xlator *xl, struct fd *fd, void *ctx)
{
    (void)fd;
    ck_assert_ptr_eq(ctx, xl);
    let_go[CTX_FD]++;
}

static void
many_client_release(struct xlator *xl, struct brick_client *client, void *ctx)
{
    (void)client;
    ck_assert_ptr_eq(ctx, xl);
    let_go[CTX_CLIENT]++;
}

START_TEST(contexts_of_many_layers_are_kept_and_released)
{
    static const struct xlator_type keeper = {.name = "test/keeper",
                                              .keeps = KEEPS(CTX_INODE) | KEEPS(CTX_FD) | KEEPS(CTX_CLIENT),
                                              .inode_forget = many_forget,
                                              .fd_release = many_release,
                                              .client_release = many_client_release};
    static struct xlator many[MANY];
    struct brick_client_key key = {.uid = "u1"};
    struct brick_client_facts facts = {.process_name = "p", .version = "10.3"};
    int owner = mem_owner_new("many");

    ck_assert_int_gt(owner, 0);
    for (unsigned i = 0; i < MANY; i++)
        many[i] = (struct xlator){.type = i == 7 ? &silent_type : &keeper, .graph = &graph};
    graph.layers = many;
    graph.layer_count = MANY;
    graph.owner = (uint16_t)owner;
    graph_number_contexts(&graph);
    ck_assert_uint_eq(graph.slots[CTX_FD], MANY - 1);
    ck_assert_uint_eq(many[7].slot[CTX_INODE], 0);
    memset(let_go, 0, sizeof let_go);
    struct inode_table *t = inode_table_new(&graph, 0);
    struct iatt a = iatt_of(1, S_IFREG);
    struct inode *f = inode_link(t, NULL, NULL, &a);
    struct fd *fd = fd_new(f, NULL, O_RDWR, false);
    struct brick_client *c = brick_client_connect(&graph, &key, &facts);

    for (unsigned i = 0; i < MANY; i++) {
        if (i == 7)
            continue;
        ck_assert_ptr_null(inode_ctx(f, &many[i]));
        ck_assert_ptr_null(brick_client_ctx(c, &many[i]));
        ck_assert_ptr_eq(inode_ctx_install(f, &many[i], &many[i]), &many[i]);
        fd_ctx_set(fd, &many[i], &many[i]);
        ck_assert_ptr_eq(brick_client_ctx_install(c, &many[i], &many[i]), &many[i]);
        ck_assert_ptr_eq(brick_client_ctx_install(c, &many[i], &many[0]), &many[i]);
    }
    fd_unref(fd);
    inode_unref(f);
    atomic_fetch_add(&graph.pins, 1);
    ck_assert(brick_client_disconnect(c));
    ck_assert_uint_eq(let_go[CTX_CLIENT], 0);
    brick_client_unref(c);
    ck_assert_uint_eq(inode_table_free(t), 0);
    for (enum ctx_kind k = CTX_INODE; k < CTX_KINDS; k++)
        ck_assert_uint_eq(let_go[k], MANY - 1);
    ck_assert_int_eq(mem_owner_balance((uint16_t)owner, NULL), 0);
    mem_owner_retire((uint16_t)owner);
    graph.owner = 0;
    graph.layers = layers; /* the inodes of `table` have contexts of these layers */
    graph.layer_count = 3;
    graph_number_contexts(&graph);
}
END_TEST

START_TEST(connections_with_the_same_credential_share_a_client)
{
    struct brick_client_key key = {.uid = "u1", .cred = "cred", .cred_bytes = 4}, other = {.uid = "u2"};
    struct brick_client_facts facts = {.process_name = "p", .version = "10.3"};

    atomic_store(&graph.pins, 5);
    struct brick_client *a = brick_client_connect(&graph, &key, &facts);
    struct brick_client *b = brick_client_connect(&graph, &key, &facts);
    ck_assert_ptr_eq(a, b);
    ck_assert_int_eq(atomic_load(&graph.pins), 4);
    struct brick_client *c = brick_client_connect(&graph, &other, &facts);
    struct brick_client *d = brick_client_connect(&graph, &other, &facts);
    ck_assert_ptr_ne(c, d); /* without a credential: never the same */
    ck_assert_ptr_ne(a, c);
    facts.is_trusted = true;
    struct brick_client *e = brick_client_connect(&graph, &key, &facts);
    ck_assert_ptr_ne(a, e); /* has more rights */
    ck_assert(!brick_client_disconnect(b));
    brick_client_unref(b);
    ck_assert_int_eq(gone, 0);
    ck_assert(brick_client_disconnect(a));
    ck_assert(atomic_load(&a->is_gone));
    brick_client_layers_gone(a);
    ck_assert_int_eq(gone, 2);
    brick_client_unref(a);
    ck_assert_int_eq(gone, 4);
    struct brick_client *rest[] = {c, d, e};
    for (int i = 0; i < 3; i++) {
        ck_assert(brick_client_disconnect(rest[i]));
        brick_client_unref(rest[i]);
    }
    ck_assert(cds_list_empty(&graph.clients));
    ck_assert_int_eq(atomic_load(&graph.pins), 0);
}
END_TEST

/* Uses all functions at once, on few names, so that threads meet. */
static void *
stress_thread(void *arg)
{
    unsigned seed = (unsigned)(uintptr_t)arg;
    struct inode *root = inode_root(table);
    char name[32], name2[32], path[4096];

    for (int i = 0; i < 4000; i++) {
        uint32_t n = 1 + rand_r(&seed) % 100, m = 1 + rand_r(&seed) % 100;
        struct iatt a = iatt_of(n, n % 3 ? S_IFREG : S_IFDIR);
        struct inode *at;

        snprintf(name, sizeof name, "n%u", n);
        snprintf(name2, sizeof name2, "n%u", m);
        switch (rand_r(&seed) % 7) {
        case 0:
        case 1:
            at = inode_link_epoch(table, root, name, &a, inode_name_epoch(table, root, name));
            if (n % 2)
                inode_ctx_install(at, &layers[0], &layers[0]);
            inode_path(at, path, sizeof path);
            inode_unref(at);
            break;
        case 2:
            inode_unlink(table, root, name);
            break;
        case 3:
            if ((at = inode_find_child(table, root, name))) {
                inode_rename(table, root, name, root, name2, at);
                inode_unref(at);
            }
            break;
        case 4:
            if ((at = inode_find(table, &a.gfid))) {
                struct fd *fd = fd_new(at, NULL, O_RDONLY, false);

                inode_unref(inode_ref(at));
                inode_unref(at);
                fd_unref(fd);
            }
            break;
        case 5:
            if (n % 10 == 0 && (at = inode_find(table, &a.gfid))) {
                inode_forget(at);
                inode_unref(at);
            }
            break;
        case 6:
            at = inode_link(table, NULL, NULL, &a);
            inode_unref(at);
            break;
        }
    }
    inode_unref(root);
    return NULL;
}

START_TEST(no_reference_is_lost_under_concurrent_changes)
{
    pthread_t threads[4];

    inode_table_set_limit(table, 20);
    for (uintptr_t i = 0; i < 4; i++)
        ck_assert_int_eq(pthread_create(&threads[i], NULL, stress_thread, (void *)(i + 1)), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(threads[i], NULL);
    struct inode_table_stats s = stats();
    ck_assert_uint_eq(s.lru + 1, s.inodes); /* all references are dropped */
    ck_assert_uint_le(s.lru, 20);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("fs");
    TCase *c = tcase_create("fs");

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_linked_inode_is_found_by_name_and_by_gfid);
    tcase_add_test(c, impossible_names_and_gfids_are_not_linked);
    tcase_add_test(c, an_unused_inode_without_a_name_is_freed);
    tcase_add_test(c, a_forgotten_inode_is_reported_to_its_layers);
    tcase_add_test(c, the_table_keeps_at_most_the_limit_of_unused_inodes);
    tcase_add_test(c, a_link_replaces_the_inode_of_the_name);
    tcase_add_test(c, old_reply_does_not_revive_a_name);
    tcase_add_test(c, old_reply_does_not_change_a_type);
    tcase_add_test(c, a_path_has_all_names_up_to_the_root);
    tcase_add_test(c, a_rename_moves_and_replaces_names);
    tcase_add_test(c, a_walk_visits_every_inode_of_a_grown_table);
    tcase_add_test(c, a_walk_visits_each_context_once);
    tcase_add_test(c, a_walk_continues_while_inodes_are_evicted);
    tcase_add_test(c, an_unhashed_inode_is_counted_at_the_end);
    tcase_add_test(c, fds_are_found_by_number_until_they_are_taken);
    tcase_add_test(c, a_brick_gets_at_most_half_of_the_free_fds);
    tcase_add_test(c, fds_end_at_the_limit_of_the_process);
    tcase_add_test(c, a_client_above_its_share_gets_no_fd);
    tcase_add_test(c, connections_with_the_same_credential_share_a_client);
    tcase_add_test(c, contexts_of_many_layers_are_kept_and_released);
    tcase_add_test(c, no_reference_is_lost_under_concurrent_changes);
    tcase_set_timeout(c, 30);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
