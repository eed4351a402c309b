/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A brick for unit tests: storage/posix alone, on a fresh folder, without a daemon. Needs root and a file
 * system with trusted xattrs: a tmpfs, /dev/shm, or the folder that $KILN_TEST_BRICKS names (to try XFS or
 * ext4). brick_or_skip() ends the program as "skipped" where that is not so. */
#ifndef KILN_POSIX_TEST_BRICK_H
#define KILN_POSIX_TEST_BRICK_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <check.h>

#include "base/reason.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "xlators/storage/posix/data/data.h"

struct test_brick {
    char dir[128];
    struct posix_conf conf;
    struct posix *p;
    struct xlator xl;
    struct graph graph;
    struct inode *root;
};

#define TEST_NODE_UUID "11111111-2222-3333-4444-555555555555"

static struct test_brick brick;

static inline const char *
brick_place(void)
{
    const char *place = getenv("KILN_TEST_BRICKS");

    return place ? place : "/dev/shm";
}

static inline void
brick_or_skip(void)
{
    char probe[128];
    const char *why = NULL;
    int fd = -1;

    snprintf(probe, sizeof probe, "%s/kiln-probe-XXXXXX", brick_place());
    if (geteuid() != 0)
        why = "needs root (trusted xattrs)";
    else if ((fd = mkstemp(probe)) < 0)
        why = "no folder for bricks (/dev/shm)";
    else if (fsetxattr(fd, "trusted.kiln", "1", 1, 0) < 0)
        why = "the folder for bricks has no trusted xattrs";
    if (fd >= 0) {
        close(fd);
        unlink(probe);
    }
    if (why != NULL) {
        printf("skipped: %s\n", why);
        exit(77);
    }
}

static inline void
brick_setup(void)
{
    struct test_brick *b = &brick;

    memset(b, 0, sizeof *b);
    umask(0); /* as kilnd does */
    snprintf(b->dir, sizeof b->dir, "%s/kiln-brick-XXXXXX", brick_place());
    ck_assert_ptr_nonnull(mkdtemp(b->dir));
    ck_assert_int_eq(graph_pools_init(), 0);
    const struct option_value values[] = {
        {.key = "directory", .value = b->dir},
        {.key = "glusterd-uuid", .value = TEST_NODE_UUID},
        {.key = "hostname", .value = "testhost"},
        {.key = "fips-mode-rchecksum", .value = "on"},
    };
    char error[256] = "";
    int err = option_parse(storage_posix_xlator.options, values, sizeof values / sizeof values[0], &b->conf,
                           NULL, NULL, error, sizeof error);
    ck_assert_msg(err == 0, "%s", error);
    b->graph = (struct graph){.layers = &b->xl, .layer_count = 1, .top = &b->xl, .brick = &b->xl};
    b->xl = (struct xlator){
        .type = &storage_posix_xlator, .name = "test", .graph = &b->graph, .conf = &b->conf};
    graph_number_contexts(&b->graph);
    struct reason why = {""};
    ck_assert_msg(storage_posix_xlator.init(&b->xl, &why) == 0, "%s", why.text);
    b->p = posix_of(&b->xl);
    b->graph.inodes = inode_table_new(&b->graph, 0);
    ck_assert_ptr_nonnull(b->graph.inodes);
    b->root = inode_root(b->graph.inodes);
}

static inline void
brick_teardown(void)
{
    char command[160];

    inode_unref(brick.root);
    ck_assert_uint_eq(inode_table_free(brick.graph.inodes), 0);
    storage_posix_xlator.fini(&brick.xl);
    option_conf_fini(storage_posix_xlator.options, &brick.conf);
    snprintf(command, sizeof command, "rm -rf %s", brick.dir);
    ck_assert_int_eq(system(command), 0);
}

/* An object in the root that exists with gfid and handle. type: S_IFREG, S_IFDIR or S_IFLNK (to "target").
 * The caller owns the reference. */
static inline struct inode *
brick_make(const char *name, uint32_t type)
{
    struct posix *p = brick.p;
    struct gfid gfid;
    struct iatt iatt = {.mode = type | 0644, .flags = IATT_FLAGS_ALL};
    char path[256], level[8];

    gfid_random(&gfid);
    snprintf(path, sizeof path, "%s/%s", brick.dir, name);
    if (type == S_IFDIR)
        ck_assert_int_eq(mkdirat(p->brick_fd, name, 0755), 0);
    else if (type == S_IFLNK)
        ck_assert_int_eq(symlinkat("target", p->brick_fd, name), 0);
    else
        ck_assert_int_eq(close(openat(p->brick_fd, name, O_CREAT | O_EXCL | O_WRONLY, 0644)), 0);
    ck_assert_int_eq(lsetxattr(path, "trusted.gfid", gfid.b, 16, 0), 0);
    snprintf(level, sizeof level, "%.2s", HANDLE(&gfid));
    (void)mkdirat(p->handles_fd, level, 0700);
    snprintf(level, sizeof level, "%.5s", HANDLE(&gfid));
    (void)mkdirat(p->handles_fd, level, 0700);
    if (type == S_IFDIR) {
        char text[POSIX_HANDLE_TEXT_MAX];
        posix_handle_text(&gfid_root, name, text);
        ck_assert_int_eq(symlinkat(text, p->handles_fd, HANDLE(&gfid)), 0);
    } else {
        ck_assert_int_eq(linkat(p->brick_fd, name, p->handles_fd, HANDLE(&gfid), 0), 0);
    }
    iatt.gfid = gfid;
    struct inode *inode = inode_link(brick.graph.inodes, brick.root, name, &iatt);
    ck_assert_ptr_nonnull(inode);
    return inode;
}

/* ---- calls: begin, set arguments, run, look at the reply, end -------------------------------- */

static inline void
call_begin(struct call_stack *stk, enum fop fop)
{
    call_stack_init(stk);
    stk->call.fop = fop;
}

static inline void
call_on_inode(struct call_stack *stk, enum fop fop, struct inode *inode)
{
    call_begin(stk, fop);
    stk->call.loc.inode = inode_ref(inode);
}

static inline void
call_on_fd(struct call_stack *stk, enum fop fop, struct fd *fd)
{
    call_begin(stk, fop);
    stk->call.fd = fd_ref(fd);
    stk->call.loc.inode = inode_ref(fd->inode);
}

static inline struct dict *
call_xdata(struct call_stack *stk)
{
    if (stk->call.xdata == NULL)
        stk->call.xdata = dict_new(&stk->arena);
    return stk->call.xdata;
}

static inline struct dict *
call_dict(struct call_stack *stk)
{
    if (stk->call.dict == NULL)
        stk->call.dict = dict_new(&stk->arena);
    return stk->call.dict;
}

static inline void
call_end(struct call_stack *stk)
{
    call_stack_release(stk);
}

/* An fd of `inode`, by the fop itself. The caller owns the reference. */
static inline struct fd *
brick_open(struct inode *inode, int flags)
{
    struct call_stack stk;
    bool is_dir = inode->type == S_IFDIR;

    call_on_inode(&stk, is_dir ? FOP_opendir : FOP_open, inode);
    stk.call.flags = (uint32_t)flags;
    ck_assert_int_eq(is_dir ? posix_fop_opendir(&brick.xl, &stk) : posix_fop_open(&brick.xl, &stk), XL_DONE);
    struct fd *fd = fd_ref(stk.reply.fd);
    call_end(&stk);
    return fd;
}

#endif
