/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* For tests of names: a real graph with storage/posix alone, called as protocol/server would: arguments
 * resolved before, names linked after. Needs root; ends the program as "skipped" where that is not so. */
#ifndef KILN_POSIX_TEST_ENTRY_H
#define KILN_POSIX_TEST_ENTRY_H

#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/test-must.h"
#include "base/test-root.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "xlators/storage/posix/entry/entry.h"

#define VOLUME_ID "5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b"

struct world {
    char dir[64];
    struct graph *graph;
    struct xlator *xl;
    struct posix *p;
    struct inode *root;
};

static struct world w;
static atomic_uint next_gfid;

static inline void
pools(void)
{
    umask(0); /* as kilnd does */
    ck_assert_int_eq(graph_pools_init(), 0);
}

extern const struct xlator_type storage_posix_xlator;

static inline const struct xlator_type *
posix_type_find(const char *name)
{
    return strcmp(name, storage_posix_xlator.name) == 0 ? &storage_posix_xlator : NULL;
}

static inline struct graph *
graph_of(const char *dir, const char *volume_id, const char *more, char *error, size_t error_size)
{
    char *text;
    int len = asprintf(
        &text,
        "volume v-posix\n type storage/posix\n option directory %s\n option volume-id %s\n%send-volume\n",
        dir, volume_id, more);

    struct volfile *v = volfile_parse("test.vol", text, (size_t)len, error, error_size);
    free(text);
    ck_assert_msg(v != NULL, "%s", error);
    return graph_new(posix_type_find, v, NULL, error, error_size);
}

static inline void
brick_dir(char dir[64])
{
    char hidden[80];
    struct gfid id;

    strcpy(dir, "/dev/shm/kiln-brick-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    gfid_parse(VOLUME_ID, 36, &id);
    ck_assert_int_eq(setxattr(dir, "trusted.glusterfs.volume-id", &id, 16, 0), 0);
    snprintf(hidden, sizeof hidden, "%s/.glusterfs", dir);
    ck_assert_int_eq(mkdir(hidden, 0700), 0);
}

static inline void
brick_up(const char *more)
{
    char error[512] = "";

    w.graph = graph_of(w.dir, VOLUME_ID, more, error, sizeof error);
    ck_assert_msg(w.graph != NULL, "%s", error);
    w.xl = w.graph->brick;
    w.p = posix_of(w.xl);
    w.root = inode_root(w.graph->inodes);
}

static inline void
brick_down(void)
{
    inode_unref(w.root);
    graph_free(w.graph);
}

static inline void
world_setup(void)
{
    pools();
    brick_dir(w.dir);
    brick_up("");
}

static inline void
remove_tree(const char *dir)
{
    char command[128];

    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

static inline void
world_teardown(void)
{
    brick_down();
    remove_tree(w.dir);
}

/* ---- calls: of any thread -------------------------------------------------------------------- */

static inline void
call_done(struct call_stack *stk)
{
    stk->owner = stk;
}

static inline void
call_begin(struct call_stack *stk, enum fop fop)
{
    call_stack_init(stk);
    stk->call.fop = fop;
    stk->done = call_done;
    stk->caller.time_flags = 0x1f;
    stk->caller.ctime_sec = 1700000000 + next_gfid;
    stk->caller.ctime_nsec = 5;
    stk->call.xdata = dict_new(&stk->arena);
}

static inline void
call_loc(struct loc *loc, struct inode *parent, const char *name)
{
    loc->parent = inode_ref(parent);
    loc->name = name;
    loc->inode = inode_find_child(w.graph->inodes, parent, name);
}

/* 0, or -errno. -FOP_NAME_CHANGED: loc does not tell what the disk has. */
static inline int
call_run_once(struct call_stack *stk)
{
    call_stack_wind(stk, w.graph->brick);
    must(stk->owner == stk);
    return stk->reply.op_ret < 0 ? -stk->reply.op_errno : 0;
}

static inline int find(struct inode *parent, const char *name, struct iatt *out);

static inline void
call_loc_from_disk(struct loc *loc)
{
    struct iatt found;

    if (!loc->parent || !loc->name)
        return;
    inode_unref(loc->inode);
    loc->inode = find(loc->parent, loc->name, &found) == 0 && !gfid_is_null(&found.gfid)
                     ? inode_link(w.graph->inodes, NULL, NULL, &found)
                     : NULL;
}

/* 0, or -errno. */
static inline int
call_run(struct call_stack *stk)
{
    int r = call_run_once(stk);

    for (int rounds = 0; r == -FOP_NAME_CHANGED && rounds < 1000; rounds++) {
        call_loc_from_disk(&stk->call.loc);
        call_loc_from_disk(&stk->call.loc2);
        call_stack_again(stk);
        stk->owner = NULL;
        r = call_run_once(stk);
    }
    return r;
}

static inline struct gfid
fresh_gfid(void)
{
    struct gfid g;

    gfid_random(&g);
    next_gfid++;
    return g;
}

static inline void
want_gfid(struct call_stack *stk, const struct gfid *g)
{
    must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, g) == 0);
}

/* Makes an entry; its inode (linked, the caller's reference) or NULL with *err. */
static inline struct inode *
make_as(enum fop fop, struct inode *parent, const char *name, const struct gfid *gfid, int *err)
{
    struct call_stack stk;
    struct inode *inode = NULL;

    call_begin(&stk, fop);
    call_loc(&stk.call.loc, parent, name);
    want_gfid(&stk, gfid);
    stk.call.mode = fop == FOP_mkdir ? 0755 : S_IFREG | 0644;
    stk.call.flags = O_RDWR | O_EXCL;
    stk.call.name2 = "../target";
    *err = call_run(&stk);
    if (*err == 0) {
        must(gfid_equal(&stk.reply.stat.gfid, gfid));
        inode = inode_link(w.graph->inodes, parent, name, &stk.reply.stat);
    }
    call_stack_release(&stk);
    return inode;
}

static inline struct inode *
make(enum fop fop, struct inode *parent, const char *name)
{
    struct gfid g = fresh_gfid();
    int err;
    struct inode *inode = make_as(fop, parent, name, &g, &err);

    ck_assert_msg(inode != NULL, "%s: %s", name, strerror(-err));
    return inode;
}

/* lookup by name; 0 and *out, or -errno. */
static inline int
find(struct inode *parent, const char *name, struct iatt *out)
{
    struct call_stack stk;

    call_begin(&stk, FOP_lookup);
    call_loc(&stk.call.loc, parent, name);
    int r = call_run(&stk);
    if (r == 0 && out)
        *out = stk.reply.stat;
    call_stack_release(&stk);
    return r;
}

/* lookup by gfid. */
static inline int
find_gfid(const struct gfid *gfid, struct iatt *out)
{
    struct call_stack stk;

    call_begin(&stk, FOP_lookup);
    stk.call.gfid = *gfid;
    int r = call_run(&stk);
    if (r == 0 && out)
        *out = stk.reply.stat;
    call_stack_release(&stk);
    return r;
}

static inline int
remove_entry(enum fop fop, struct inode *parent, const char *name, unsigned flags)
{
    struct call_stack stk;

    call_begin(&stk, fop);
    call_loc(&stk.call.loc, parent, name);
    stk.call.flags = flags;
    int r = call_run(&stk);
    if (r == 0)
        inode_unlink(w.graph->inodes, parent, name);
    call_stack_release(&stk);
    return r;
}

static inline int
move(struct inode *parent, const char *name, struct inode *parent2, const char *name2)
{
    struct call_stack stk;

    call_begin(&stk, FOP_rename);
    call_loc(&stk.call.loc, parent, name);
    call_loc(&stk.call.loc2, parent2, name2);
    int r = call_run(&stk); /* it may look again, and find another inode */
    if (r == 0 && stk.call.loc.inode)
        inode_rename(w.graph->inodes, parent, name, parent2, name2, stk.call.loc.inode);
    call_stack_release(&stk);
    return r;
}

static inline int
link_to(struct inode *inode, struct inode *parent, const char *name)
{
    struct call_stack stk;

    call_begin(&stk, FOP_link);
    stk.call.loc.inode = inode_ref(inode);
    call_loc(&stk.call.loc2, parent, name);
    int r = call_run(&stk);
    if (r == 0)
        inode_unref(inode_link(w.graph->inodes, parent, name, &stk.reply.stat));
    call_stack_release(&stk);
    return r;
}

static inline struct fd *
open_file(struct inode *inode)
{
    struct call_stack stk;

    call_begin(&stk, FOP_open);
    stk.call.loc.inode = inode_ref(inode);
    stk.call.flags = O_RDWR;
    must(call_run(&stk) == 0);
    struct fd *fd = fd_ref(stk.reply.fd);
    call_stack_release(&stk);
    return fd;
}

/* Is there something at this path below .glusterfs? */
static inline bool
has_hidden(const char *path)
{
    struct stat st;

    return fstatat(w.p->handles_fd, path, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

static inline bool
has_handle_of(const struct gfid *g)
{
    return has_hidden(HANDLE(g));
}

/* Does the chore's work here and now. The milliseconds until it would be due again. */
static inline uint64_t
chore_now(struct posix *p, enum posix_chore which)
{
    return p->chores[which].fn(&p->chores[which]);
}

#endif
