/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* For tests of whole bricks: the layers of a stock brick volfile over a fresh folder in /dev/shm, calls from
 * the top of such a brick without a client, and the descriptors and pooled objects of a process. Needs root
 * and trusted xattrs. */
#ifndef KILN_BRICKS_TEST_BRICK_STACK_H
#define KILN_BRICKS_TEST_BRICK_STACK_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

#include <check.h>

#include "base/read-section.h"
#include "base/test-root.h"
#include "bricks/bricks.h"
#include "event/worker.h"
#include "fs/fd.h"
#include "graph/graph.h"
#include "graph/pools.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "rpc/server/rpc-server.h"
#include "rpc/transport/transport.h"

#define VOLUME_ID "5f0c7a3e-8d11-4f4e-9a57-1c2d3e4f5a6b"
#define OTHER_ID "99999999-8d11-4f4e-9a57-1c2d3e4f5a6b"

static char place[] = "/dev/shm/kiln-graph-XXXXXX"; /* bricks, and the log */

/* ---- a process that could serve bricks ------------------------------------------------------- */

static inline void
process_setup(void)
{
    char path[64];

    umask(0); /* as kilnd does */
    ck_assert_ptr_nonnull(mkdtemp(place));
    snprintf(path, sizeof path, "%s/log", place);
    ck_assert_int_eq(log_open(path), 0);
    /* The sweeper would open its own descriptors, at its own time. */
    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    ck_assert_int_eq(graph_pools_init(), 0);
    ck_assert_int_eq(transport_pools_init(), 0);
    ck_assert_int_eq(rpc_server_pools_init(), 0);
    rcu_register_thread();
    ck_assert_int_eq(workers_start(&(struct worker_options){.min = 3, .max = 16}), 0);
    bricks_begin(&(struct bricks_hooks){0});
}

/* Lines of the log that have this message. */
static inline unsigned
logged(const char *message)
{
    char path[64], line[4096];
    unsigned count = 0;

    snprintf(path, sizeof path, "%s/log", place);
    FILE *f = fopen(path, "r");
    ck_assert_ptr_nonnull(f);
    while (fgets(line, sizeof line, f))
        count += strstr(line, message) != NULL;
    fclose(f);
    return count;
}

static inline void
process_teardown(void)
{
    char command[96];

    workers_stop();
    rcu_barrier();
    ck_assert_uint_eq(logged("graph-audit"), 0);
    ck_assert_uint_eq(logged("graph-inodes-left"), 0);
    log_close();
    rcu_unregister_thread();
    ck_assert_uint_eq(mem_pools_fini_strict(), 0);
    snprintf(command, sizeof command, "rm -rf %s", place);
    ck_assert_int_eq(system(command), 0);
    strcpy(place + strlen(place) - 6, "XXXXXX");
}

/* ---- objects of the process ------------------------------------------------------------------ */

struct held {
    unsigned descriptors;
    uint64_t objects;
};

static inline void
count_active(void *arg, const char *key, const char *value)
{
    if (strcmp(key, "active-count") == 0)
        *(uint64_t *)arg += strtoull(value, NULL, 10);
}

static inline struct held
held_now(void)
{
    struct held h = {0};
    DIR *dir = opendir("/proc/self/fd");

    ck_assert_ptr_nonnull(dir);
    while (readdir(dir))
        h.descriptors++;
    closedir(dir);
    mem_pools_dump(count_active, &h.objects);
    return h;
}

/* Objects that another thread still holds (a connection's end, an RCU callback) may take a moment to go. */
static inline void
expect_held(const struct held *want)
{
    struct held now = {0};

    for (int i = 0; i < 10000; i++) {
        now = held_now();
        if (now.descriptors == want->descriptors && now.objects == want->objects)
            return;
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    }
    ck_abort_msg("%u descriptors, %llu objects; before: %u, %llu", now.descriptors,
                 (unsigned long long)now.objects, want->descriptors, (unsigned long long)want->objects);
}

/* ---- volfiles -------------------------------------------------------------------------------- */

/* A layer: each %s is the brick's folder. */
struct layer_text {
    const char *name, *type, *options;
};

static const struct layer_text stock_layers[] = {
    {"posix", "storage/posix",
     " option directory %s\n option volume-id " VOLUME_ID "\n option fips-mode-rchecksum on\n"},
    {"trash", "features/trash",
     " option trash-dir .trashcan\n option trash-internal-op off\n option brick-path %s\n"},
    {"changelog", "features/changelog", " option changelog-brick %s\n option changelog-notification off\n"},
    {"bitrot-stub", "features/bitrot-stub", " option export %s\n option bitrot disable\n"},
    {"access-control", "features/access-control", ""},
    {"locks", "features/locks", " option enforce-mandatory-lock off\n"},
    {"worm", "features/worm", " option worm off\n option worm-file-level off\n"},
    {"read-only", "features/read-only", " option read-only off\n"},
    {"leases", "features/leases", " option leases off\n"},
    {"upcall", "features/upcall", " option cache-invalidation off\n"},
    {"io-threads", "performance/io-threads", ""},
    {"selinux", "features/selinux", " option selinux on\n"},
    {"marker", "features/marker", " option xtime off\n option quota off\n option inode-quota off\n"},
    {"barrier", "features/barrier", " option barrier disable\n"},
    {"index", "features/index",
     " option index-base %s/.glusterfs/indices\n option xattrop-dirty-watchlist trusted.afr.dirty\n"
     " option xattrop-pending-watchlist trusted.afr.v-\n"},
    {"quota", "features/quota", " option server-quota off\n"},
    {"io-stats", "debug/io-stats", " option count-fop-hits off\n option latency-measurement off\n"},
    {"server", "protocol/server", " option transport-type tcp\n option auth.addr.%s.allow *\n"},
};
enum { LAYERS = sizeof stock_layers / sizeof stock_layers[0] };

/* How one volfile differs from stock's: in this layer, or in no layer (NULL). */
struct twist {
    const char *layer;
    const char *type;    /* instead of the layer's own, or NULL */
    const char *options; /* further lines, or NULL */
};

static inline void
put_options(FILE *f, const char *options, const char *dir)
{
    for (const char *at = options; *at; at++) {
        if (at[0] == '%' && at[1] == 's') {
            fputs(dir, f);
            at++;
        } else {
            fputc(*at, f);
        }
    }
}

/* To be freed. The brick's name is its folder. */
static inline char *
stack_text(const char *dir, const struct twist *twists, size_t count)
{
    char *text = NULL;
    size_t size = 0;
    FILE *f = open_memstream(&text, &size);

    ck_assert_ptr_nonnull(f);
    for (size_t i = 0; i < LAYERS; i++) {
        const struct layer_text *l = &stock_layers[i];
        const char *type = l->type;

        for (size_t k = 0; k < count; k++) {
            if (twists[k].type && strcmp(twists[k].layer, l->name) == 0)
                type = twists[k].type;
        }
        fprintf(f, "volume %s\n type %s\n", i == LAYERS - 2 ? dir : l->name, type);
        put_options(f, l->options, dir);
        for (size_t k = 0; k < count; k++) {
            if (twists[k].options && strcmp(twists[k].layer, l->name) == 0)
                put_options(f, twists[k].options, dir);
        }
        if (i > 0)
            fprintf(f, " subvolumes %s\n", i == LAYERS - 1 ? dir : stock_layers[i - 1].name);
        fputs("end-volume\n\n", f);
    }
    fclose(f);
    return text;
}

static inline struct volfile *
stack_volfile(const char *dir, const struct twist *twists, size_t count)
{
    char error[512] = "";
    char *text = stack_text(dir, twists, count);
    struct volfile *v = volfile_parse("test.vol", text, strlen(text), error, sizeof error);

    ck_assert_msg(v != NULL, "%s", error);
    free(text);
    return v;
}

/* The same in a file beside the folder; `path` gets the file's name. */
static inline void
stack_file(char path[96], const char *dir, const struct twist *twists, size_t count)
{
    char *text = stack_text(dir, twists, count);

    snprintf(path, 96, "%s.vol", dir);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    ck_assert_int_eq(fclose(f), 0);
    free(text);
}

/* ---- bricks; the graph lives until it is detached -------------------------------------------- */

static inline void
brick_folder(char dir[64], const char *name)
{
    char hidden[80];
    struct gfid id;

    snprintf(dir, 64, "%s/%s", place, name);
    ck_assert_int_eq(mkdir(dir, 0755), 0);
    ck_assert_int_eq(gfid_parse(VOLUME_ID, 36, &id), 0);
    ck_assert_int_eq(setxattr(dir, "trusted.glusterfs.volume-id", &id, 16, 0), 0);
    snprintf(hidden, sizeof hidden, "%s/.glusterfs", dir);
    ck_assert_int_eq(mkdir(hidden, 0700), 0);
}

static inline struct graph *
brick_attach(const char *dir)
{
    char error[1024] = "";
    int err = bricks_attach_volfile(stack_volfile(dir, NULL, 0), NULL, true, error, sizeof error);

    ck_assert_msg(err == 0, "%s", error);
    struct graph *g = bricks_find(dir);
    ck_assert_ptr_nonnull(g);
    ck_assert_str_eq(g->name, dir);
    graph_unpin(g);
    return g;
}

static inline struct xlator *
layer_of(struct graph *g, const char *type)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (strcmp(g->layers[i].type->name, type) == 0)
            return &g->layers[i];
    }
    ck_abort_msg("no layer %s", type);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* The part of a reply that a caller keeps. */
struct answer {
    sem_t is_there;
    int err; /* 0, or an errno */
    struct iatt stat;
    struct fd *fd; /* a reference */
};

static inline void
answer_take(struct call_stack *stk)
{
    struct answer *a = stk->owner;

    a->err = stk->reply.op_ret < 0 ? stk->reply.op_errno : 0;
    a->stat = stk->reply.stat;
    a->fd = !a->err && stk->reply.fd ? fd_ref(stk->reply.fd) : NULL;
    call_stack_free(stk); /* before the post: after it the caller may let go of the graph */
    sem_post(&a->is_there);
}

static __thread uint8_t call_owner[4]; /* the owner of locks: each thread sets its own */

static inline struct call_stack *
call_new(struct answer *a, enum fop fop)
{
    struct call_stack *stk = call_stack_new(answer_take, a);

    ck_assert_ptr_nonnull(stk);
    stk->call.fop = fop;
    stk->caller.lk_owner = (struct lk_owner){sizeof call_owner, call_owner};
    sem_init(&a->is_there, 0, 0);
    return stk;
}

/* Runs the call from the top of the brick; waits for the answer, wherever the call is parked meanwhile. 0 or
 * an errno. */
static inline int
call_run(struct graph *g, struct call_stack *stk)
{
    struct answer *a = stk->owner;

    read_section_begin();
    call_stack_wind(stk, g->brick);
    read_section_end();
    while (sem_wait(&a->is_there) < 0)
        ck_assert_int_eq(errno, EINTR);
    sem_destroy(&a->is_there);
    return a->err;
}

static inline int
call_create(struct graph *g, struct inode *root, const char *name, struct fd **fd)
{
    struct answer a;
    struct call_stack *stk = call_new(&a, FOP_create);
    struct gfid gfid;

    gfid_random(&gfid);
    stk->call.loc = (struct loc){.parent = inode_ref(root), .name = name};
    stk->call.flags = O_CREAT | O_EXCL | O_RDWR;
    stk->call.mode = S_IFREG | 0644;
    stk->call.xdata = dict_new(&stk->arena);
    ck_assert_int_eq(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid), 0);
    int err = call_run(g, stk);
    *fd = a.fd;
    if (!err)
        inode_unref(inode_link(g->inodes, root, name, &a.stat));
    return err;
}

static inline int
call_on_fd(struct graph *g, enum fop fop, struct fd *fd, const char *payload)
{
    struct answer a;
    struct call_stack *stk = call_new(&a, fop);

    stk->call.fd = fd_ref(fd);
    stk->call.loc.inode = inode_ref(fd->inode);
    if (payload) {
        stk->call.payload[0] = (struct iovec){.iov_base = (void *)payload, .iov_len = strlen(payload)};
        stk->call.payload_count = 1;
        stk->call.payload_bytes = stk->call.size = strlen(payload);
    }
    return call_run(g, stk);
}

/* A lock on the whole of an object, in a separate domain; type FLOCK_*. */
static inline int
call_inodelk(struct graph *g, struct inode *inode, uint32_t type)
{
    struct answer a;
    struct call_stack *stk = call_new(&a, FOP_inodelk);

    stk->call.loc.inode = inode_ref(inode);
    stk->call.volume = "test";
    stk->call.cmd = 2; /* SETLKW */
    stk->call.type = type;
    return call_run(g, stk);
}

static inline int
call_by_name(struct graph *g, enum fop fop, struct inode *root, const char *name)
{
    struct answer a;
    struct call_stack *stk = call_new(&a, fop);

    stk->call.loc = (struct loc){
        .parent = inode_ref(root), .name = name, .inode = inode_find_child(g->inodes, root, name)};
    int err = call_run(g, stk);
    if (!err && fop == FOP_unlink)
        inode_unlink(g->inodes, root, name);
    return err;
}

#endif
