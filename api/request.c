/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The caller of a request is the program's thread: the ids that the thread has set, else its effective ids
 * and groups at the time of the call, because a file server may switch users with seteuid(2) between
 * calls. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/api-internal.h"
#include "coro/coroutine.h"
#include "data/dict.h"
#include "rpc/xdr/cred.h"

/* ---- the caller ------------------------------------------------------------------------------ */

/* The ids that a thread has set. */
struct thread_ids {
    uid_t uid;
    gid_t gid;
    bool has_uid, has_gid;
    size_t group_count; /* 0: the groups of the thread's own */
    gid_t groups[];
};

static pthread_key_t ids_key;
static pthread_once_t ids_once = PTHREAD_ONCE_INIT;
static int ids_err; /* of the key; written once */

static void
make_ids_key(void)
{
    ids_err = pthread_key_create(&ids_key, free);
}

static struct thread_ids *
thread_ids_get(void)
{
    pthread_once(&ids_once, make_ids_key);
    return ids_err ? NULL : pthread_getspecific(ids_key);
}

/* Returns the thread's ids with room for `count` groups. NULL with errno: no memory. */
static struct thread_ids *
thread_ids_make(size_t count)
{
    struct thread_ids *was = thread_ids_get(), *now;

    if (ids_err) {
        errno = ids_err;
        return NULL;
    }
    now = realloc(was, sizeof *now + count * sizeof now->groups[0]);
    if (!now)
        return NULL;
    if (!was)
        memset(now, 0, sizeof *now);
    int err = now == was ? 0 : pthread_setspecific(ids_key, now);
    if (!err)
        return now;
    free(now); /* only for a thread's first ids, so there is no old pointer */
    errno = err;
    return NULL;
}

static size_t
thread_group_count(void)
{
    const struct thread_ids *ids = thread_ids_get();

    return ids ? ids->group_count : 0;
}

GFAPI int
glfs_setfsuid(uid_t uid)
{
    struct thread_ids *ids = thread_ids_make(thread_group_count());

    if (!ids)
        return -1;
    ids->uid = uid;
    ids->has_uid = true;
    return 0;
}

GFAPI int
glfs_setfsgid(gid_t gid)
{
    struct thread_ids *ids = thread_ids_make(thread_group_count());

    if (!ids)
        return -1;
    ids->gid = gid;
    ids->has_gid = true;
    return 0;
}

GFAPI int
glfs_setfsgroups(size_t size, const gid_t *groups)
{
    if (size > CRED_GROUPS_MAX || (size && !groups)) {
        errno = EINVAL;
        return -1;
    }
    struct thread_ids *ids = thread_ids_make(size);

    if (!ids)
        return -1;
    ids->group_count = size;
    if (size)
        memcpy(ids->groups, groups, size * sizeof *groups);
    return 0;
}

/* Programs set the id before each call, without leases, too. No call can hold a lease (glfs_lease() is
 * refused), so the id has no effect. */
GFAPI int
glfs_setfsleaseid(const char *id)
{
    (void)id;
    return 0;
}

/* Fills in supplementary groups, as many as a call can carry. For root no brick needs them. */
static int
take_groups(struct request *r, const struct thread_ids *ids)
{
    bool is_given = ids && ids->group_count;
    int count = is_given ? (int)ids->group_count : getgroups(0, NULL);

    _Static_assert(sizeof(gid_t) == sizeof(uint32_t), "groups are copied");
    if (count <= 0)
        return count < 0 ? -errno : 0;
    r->groups = malloc((size_t)count * sizeof *r->groups);
    if (!r->groups)
        return -ENOMEM;
    if (is_given)
        memcpy(r->groups, ids->groups, (size_t)count * sizeof *r->groups);
    else
        count = getgroups(count, r->groups);
    if (count < 0) { /* another thread has added groups */
        free(r->groups);
        return -EAGAIN;
    }
    r->caller.groups = r->groups;
    r->caller.group_count = count > CRED_GROUPS_MAX ? CRED_GROUPS_MAX : (uint32_t)count;
    return 0;
}

static int
take_caller(struct request *r)
{
    const struct thread_ids *ids = thread_ids_get();
    const uint64_t owner = (uint64_t)(uintptr_t)r->fs;

    memcpy(r->owner, &owner, sizeof r->owner);
    r->groups = NULL;
    r->caller = (struct caller){.pid = getpid(),
                                .uid = ids && ids->has_uid ? ids->uid : geteuid(),
                                .gid = ids && ids->has_gid ? ids->gid : getegid(),
                                .lk_owner = {.len = sizeof r->owner, .bytes = r->owner}};
    return r->caller.uid == 0 && !(ids && ids->group_count) ? 0 : take_groups(r, ids);
}

/* ---- running --------------------------------------------------------------------------------- */

/* An asynchronous request keeps the graph until the program's callback has returned, so glfs_fini() waits
 * for the callback. */
static void
request_end(struct request *r)
{
    struct graph *g = r->graph;

    free(r->groups);
    if (r->ended) {
        graph_unpin(g);
        sem_post(r->ended); /* `r` is gone after this */
    } else {
        r->deliver(r);
        graph_unpin(g);
    }
}

static void
end_request_job(struct worker_job *job)
{
    request_end(caa_container_of(job, struct request, job));
}

/* The end runs as a job, because a callback of the program needs more stack than a coroutine has. */
static void
request_main(void *arg)
{
    struct request *r = arg;

    r->ret = r->go(r);
    if (r->ended) {
        request_end(r);
        return;
    }
    r->job.run = end_request_job;
    worker_post(&r->job);
}

static void
begin_request_job(struct worker_job *job)
{
    struct request *r = caa_container_of(job, struct request, job);
    int err = coro_run(request_main, r);

    if (!err)
        return;
    r->ret = err;
    request_end(r);
}

/* Takes over the pin of the graph. Returns 0, or -errno: nothing has begun. */
static int
request_begin(struct request *r, struct glfs *fs, struct graph *g, int64_t (*go)(struct request *r))
{
    r->fs = fs;
    r->graph = g;
    r->go = go;
    int err = take_caller(r);

    if (err) {
        graph_unpin(g);
        return err;
    }
    r->job.run = begin_request_job;
    worker_post_any(&r->job);
    return 0;
}

/* Runs the request and waits. The wait may be in a callback, on a worker, which must not keep others out. */
static int64_t
request_wait(struct request *r, struct glfs *fs, struct graph *g, int64_t (*go)(struct request *r))
{
    sem_t ended;

    sem_init(&ended, 0, 0);
    r->ended = &ended;
    int err = request_begin(r, fs, g, go);
    if (!err) {
        worker_block_begin();
        while (sem_wait(&ended) < 0)
            ; /* a signal handler of the program has run */
        worker_block_end();
    }
    sem_destroy(&ended);
    return request_result(err ? err : r->ret);
}

int64_t
request_run(struct request *r, struct glfs *fs, int64_t (*go)(struct request *r))
{
    struct graph *g = volume_pin(fs);

    return g ? request_wait(r, fs, g, go) : -1;
}

/* Returns NULL with errno. */
static struct graph *
pin_of_file(struct glfs_fd *fd)
{
    if (!fd || !fd->fd) {
        errno = EBADF;
        return NULL;
    }
    if (engine_is_here() && graph_pin(fd_graph(fd->fd)))
        return fd_graph(fd->fd);
    errno = ENOTCONN;
    return NULL;
}

int64_t
request_run_on(struct request *r, struct glfs_fd *fd, int64_t (*go)(struct request *r))
{
    struct graph *g = pin_of_file(fd);

    return g ? request_wait(r, fd->fs, g, go) : -1;
}

int
request_start_on(struct request *r, struct glfs_fd *fd, int64_t (*go)(struct request *r),
                 void (*deliver)(struct request *r))
{
    struct graph *g = pin_of_file(fd);

    if (!g)
        return -1;
    r->ended = NULL;
    r->deliver = deliver;
    return (int)request_result(request_begin(r, fd->fs, g, go));
}

/* ---- calls ----------------------------------------------------------------------------------- */

struct call_stack *
request_call(struct request *r, enum fop fop)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->caller = r->caller;
    stk->call.fop = fop;
    return stk;
}

struct call_stack *
request_call_on(struct request *r, enum fop fop, struct glfs_fd *fd)
{
    struct call_stack *stk = request_call(r, fop);

    if (!stk)
        return NULL;
    stk->call.fd = fd_ref(fd->fd);
    stk->call.loc.inode = inode_ref(fd->fd->inode);
    if (fd->owner_len)
        stk->caller.lk_owner = (struct lk_owner){.len = fd->owner_len, .bytes = fd->owner};
    return stk;
}

int
request_wind(struct request *r, struct call_stack *stk)
{
    return coro_call(stk, r->graph->top);
}

int
request_ask_gfid(struct call_stack *stk)
{
    struct gfid gfid;

    gfid_random(&gfid);
    stk->call.xdata = dict_new(&stk->arena);
    return !stk->call.xdata || dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &gfid) ? -ENOMEM : 0;
}

/* errno belongs to the calling thread: not for code of a coroutine. */
int64_t
request_result(int64_t ret)
{
    if (ret >= 0)
        return ret;
    errno = (int)-ret;
    return -1;
}
