/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A brick's table of users by uid, and the turns in which the process asks about them.
 *
 *   groups (a brick)                    asker (the process)
 *     bucket --- user --- user            turns --- groups --- groups     threads, up to ASKERS_MAX
 *     client --- client                             turns --- client --- client
 *       by_age --- user --- user                                queue --- user --- user
 *
 * The threads ask about one user of the next client of the next brick, and so on in turn. So a client that
 * asks about many users waits for them itself, while the users of other bricks and of other clients of the
 * brick wait for one turn each. A client is an address with any number of connections. A user counts for the
 * client that asked about the user last. When the table is full, the client with the largest share of it
 * loses its oldest user.
 *
 * A user is removed from the table only when no thread asks about the user. A brick that goes resumes its
 * waiting calls. A user whose query is running stays until the query ends, and so does the table, to which
 * each such user has a reference.
 *
 * Locks: a brick's `lock`, and inside of it `asker.lock`. Neither is held during a query of the name service.
 */
#include "xlators/protocol/server/groups.h"

#include <assert.h>
#include <errno.h>
#include <grp.h>
#include <pthread.h>
#include <pwd.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "base/refcount.h"
#include "base/thread.h"
#include "event/timer.h"
#include "log/dump.h"
#include "log/log.h"
#include "xlators/protocol/server/server-internal.h"

enum { BUCKETS = 256, ASKERS_MAX = 4, GROUPS_FIRST = 64 };
#define FAILED_SECONDS 5
#define PASSWD_BYTES_MAX (1u << 20)
#define NOBODYS_GID ((gid_t)-1)

struct groups {
    pthread_mutex_t lock; /* protects all fields below, except `turn_link` and `turns` */
    struct cds_list_head buckets[BUCKETS];
    struct cds_list_head clients;
    struct cds_list_head turn_link; /* asker.lock; in asker.turns while `turns` is not empty */
    struct cds_list_head turns;     /* asker.lock; the clients whose `queue` is not empty */
    unsigned users, idle;           /* idle: users without a pending query */
    size_t bytes;
    unsigned waiting;
    uint64_t asked; /* since the start */
    bool is_stopped;
    struct refcount refs; /* the brick's, and one for each user with a pending query */
    char *name;           /* the brick's */
};

/* An address with users in the table. It is freed with the last of them. */
struct client_share {
    struct cds_list_head link;
    struct cds_list_head by_age;    /* its idle users: oldest answer first */
    struct cds_list_head turn_link; /* asker.lock */
    struct cds_list_head queue;     /* asker.lock; its users to ask about */
    unsigned queued;                /* asker.lock; length of `queue` */
    unsigned slot;                  /* conn_address_slot() */
    unsigned users;
    size_t bytes;
};

struct user {
    struct cds_list_head bucket_link, age_link;
    struct cds_list_head queue_link; /* asker.lock */
    bool is_queued;                  /* asker.lock */
    struct groups *groups;
    struct client_share *client; /* the client that the user counts for; changed under both locks */
    struct cds_list_head waiters;
    uint32_t uid, count;
    uint32_t *gids; /* NULL: none */
    uint64_t asked_ns;  /* when the present answer was requested; 0: there is none */
    /* time at which an answer of any age must be requested again; 0: no such time */
    uint64_t stale_ns;
    bool is_asked;
};

/* A waiting request; on its arena. */
struct waiter {
    struct cds_list_head link;
    struct worker_job job;
    struct rpc_request *req;
    void (*go)(struct rpc_request *req, int err);
    int err;
};

static struct {
    pthread_mutex_t lock;
    struct cds_list_head turns; /* the bricks with users to ask about */
    unsigned threads;
} asker = {.lock = PTHREAD_MUTEX_INITIALIZER, .turns = CDS_LIST_HEAD_INIT(asker.turns)};

/* ---- the table ------------------------------------------------------------------------------- */

struct groups *
groups_new(const struct xlator *xl)
{
    struct groups *g = calloc(1, sizeof *g);

    if (!g || !(g->name = strdup(xl->graph->name))) {
        free(g);
        return NULL;
    }
    pthread_mutex_init(&g->lock, NULL);
    for (unsigned i = 0; i < BUCKETS; i++)
        CDS_INIT_LIST_HEAD(&g->buckets[i]);
    CDS_INIT_LIST_HEAD(&g->clients);
    CDS_INIT_LIST_HEAD(&g->turns);
    refcount_init(&g->refs, 1);
    return g;
}

/* Returns the client of an address. A new one has no user yet. NULL: no memory. */
static struct client_share *
client_locked(struct groups *g, unsigned slot)
{
    struct client_share *c;

    cds_list_for_each_entry(c, &g->clients, link)
        if (c->slot == slot)
            return c;
    if (!(c = calloc(1, sizeof *c)))
        return NULL;
    c->slot = slot;
    CDS_INIT_LIST_HEAD(&c->by_age);
    CDS_INIT_LIST_HEAD(&c->queue);
    cds_list_add_tail(&c->link, &g->clients);
    return c;
}

/* Frees the client if it has lost its last user. */
static void
client_settle_locked(struct client_share *c)
{
    if (c->users)
        return;
    cds_list_del(&c->link);
    free(c);
}

/* Counts the user for this client. The user must not be idle. */
static void
charge_locked(struct user *u, struct client_share *c)
{
    struct client_share *before = u->client;
    size_t bytes = u->count * sizeof *u->gids;

    if (before == c)
        return;
    c->users++;
    c->bytes += bytes;
    u->client = c;
    if (!before)
        return;
    before->users--;
    before->bytes -= bytes;
    client_settle_locked(before);
}

static void
user_free_locked(struct groups *g, struct user *u)
{
    struct client_share *c = u->client;
    size_t bytes = u->count * sizeof *u->gids;

    cds_list_del(&u->bucket_link);
    g->users--;
    g->bytes -= bytes;
    c->users--;
    c->bytes -= bytes;
    client_settle_locked(c);
    free(u->gids);
    free(u);
}

static void
idle_begin_locked(struct groups *g, struct user *u)
{
    cds_list_add_tail(&u->age_link, &u->client->by_age);
    g->idle++;
}

static void
idle_end_locked(struct groups *g, struct user *u)
{
    cds_list_del(&u->age_link);
    g->idle--;
}

static void
forget_oldest_locked(struct groups *g, struct client_share *c)
{
    struct user *u = cds_list_first_entry(&c->by_age, struct user, age_link);

    idle_end_locked(g, u);
    user_free_locked(g, u);
}

static void
groups_unref(struct groups *g)
{
    if (!refcount_put(&g->refs))
        return;
    while (!cds_list_empty(&g->clients))
        forget_oldest_locked(g, cds_list_first_entry(&g->clients, struct client_share, link));
    assert(!g->users && !g->idle && !g->bytes);
    pthread_mutex_destroy(&g->lock);
    free(g->name);
    free(g);
}

void
groups_free(struct groups *g)
{
    if (g)
        groups_unref(g);
}

static struct cds_list_head *
uid_bucket(struct groups *g, uint32_t uid)
{
    return &g->buckets[(uid ^ uid >> 8 ^ uid >> 16) % BUCKETS];
}

static struct user *
user_find_locked(struct groups *g, uint32_t uid)
{
    struct user *u;

    cds_list_for_each_entry(u, uid_bucket(g, uid), bucket_link)
        if (u->uid == uid)
            return u;
    return NULL;
}

/* The client's share of the table. */
static size_t
share_of(const struct client_share *c)
{
    return c->users * (GROUPS_BYTES_MAX / GROUPS_USERS_MAX) + c->bytes;
}

/* The client with the largest share, among those with an idle user. There is at least one idle user. */
static struct client_share *
largest_locked(struct groups *g)
{
    struct client_share *c, *largest = NULL;

    cds_list_for_each_entry(c, &g->clients, link)
        if (!cds_list_empty(&c->by_age) && (!largest || share_of(c) > share_of(largest)))
            largest = c;
    return largest;
}

/* Removes users until the table has room. Users with a pending query stay, because a call waits for each. One
 * idle user stays too, however large. */
static void
groups_make_room_locked(struct groups *g)
{
    while ((g->users > GROUPS_USERS_MAX || g->bytes > GROUPS_BYTES_MAX) && g->idle > 1)
        forget_oldest_locked(g, largest_locked(g));
}

static struct user *
user_new_locked(struct groups *g, uint32_t uid, struct client_share *c)
{
    struct user *u = calloc(1, sizeof *u);

    if (!u)
        return NULL;
    u->uid = uid;
    u->groups = g;
    charge_locked(u, c);
    CDS_INIT_LIST_HEAD(&u->waiters);
    cds_list_add(&u->bucket_link, uid_bucket(g, uid));
    g->users++;
    return u;
}

static bool
user_is_fresh(const struct user *u, uint64_t timeout_ns)
{
    uint64_t now = clock_mono_ns();

    return u->asked_ns && now - u->asked_ns < timeout_ns && (!u->stale_ns || now < u->stale_ns);
}

/* Gives the user's groups to the call. The list that came with the call stays in the record. */
static int
user_give_groups(const struct user *u, struct call_stack *stk)
{
    uint32_t *gids = NULL;

    if (u->count && !(gids = arena_alloc(&stk->arena, u->count * sizeof *gids)))
        return -ENOMEM;
    if (u->count)
        memcpy(gids, u->gids, u->count * sizeof *gids);
    stk->caller.groups = gids;
    stk->caller.group_count = u->count;
    return 0;
}

/* ---- asking the name service ----------------------------------------------------------------- */

/* Finds the user's name, stored in *buffer. Returns 0, -ENOENT, or another -errno if the service fails. */
static int
user_name(uint32_t uid, char **buffer, const char **name)
{
    for (size_t bytes = 1024; bytes <= PASSWD_BYTES_MAX; bytes *= 4) {
        struct passwd entry, *found = NULL;
        char *bigger = realloc(*buffer, bytes);

        if (!bigger)
            return -ENOMEM;
        *buffer = bigger;
        int err = getpwuid_r(uid, &entry, *buffer, bytes, &found);

        if (err == ERANGE)
            continue;
        if (err && err != ENOENT && err != ESRCH)
            return -err;
        *name = found ? entry.pw_name : NULL;
        return found ? 0 : -ENOENT;
    }
    return -ERANGE;
}

/* Finds the groups. The primary group is the call's. getgrouplist() requires a primary group and puts that
 * group first, so the function passes a gid of no group. */
static int
list_of(const char *name, uint32_t uid, uint32_t **gids, uint32_t *count)
{
    int room = GROUPS_FIRST, n;
    gid_t *list = NULL;

    for (;;) {
        gid_t *bigger = realloc(list, (size_t)room * sizeof *list);

        if (!bigger) {
            free(list);
            return -ENOMEM;
        }
        list = bigger;
        n = room;
        if (getgrouplist(name, NOBODYS_GID, list, &n) >= 0)
            break;
        if (room > GROUPS_OF_USER_MAX) {
            log_event(LOG_WARNING, NULL, "groups-too-many",
                      "user %u is in more than %d groups: the others are left out", uid, GROUPS_OF_USER_MAX);
            n = room;
            break;
        }
        room = n > room && n <= GROUPS_OF_USER_MAX ? n : room * 2;
        if (room > GROUPS_OF_USER_MAX)
            room = GROUPS_OF_USER_MAX + 1;
    }
    *gids = list;
    *count = 0;
    for (int i = 0; i < n; i++)
        if (list[i] != NOBODYS_GID)
            list[(*count)++] = list[i];
    return 0;
}

static int
ask_for(uint32_t uid, uint32_t **gids, uint32_t *count)
{
    char *buffer = NULL;
    const char *name;
    int err = user_name(uid, &buffer, &name);

    *gids = NULL;
    *count = 0;
    if (!err)
        err = list_of(name, uid, gids, count);
    free(buffer);
    return err == -ENOENT ? 0 : err;
}

/* ---- waiting --------------------------------------------------------------------------------- */

static void
groups_waiter_run(struct worker_job *job)
{
    struct waiter *w = caa_container_of(job, struct waiter, job);

    w->go(w->req, w->err);
}

/* Copies the list to each waiting call, because the list may have changed when the call continues. */
static void
answer_waiters_locked(struct groups *g, struct user *u, int err)
{
    while (!cds_list_empty(&u->waiters)) {
        struct waiter *w = cds_list_first_entry(&u->waiters, struct waiter, link);

        cds_list_del(&w->link);
        g->waiting--;
        w->err = err ? err : user_give_groups(u, &w->req->stk);
        worker_post(&w->job);
    }
}

static void
user_learn(struct user *u, uint64_t asked_ns, uint32_t *gids, uint32_t count, int err)
{
    struct groups *g = u->groups;

    if (err)
        log_event(
            LOG_WARNING, NULL, "groups-not-found",
            "brick %s: the groups of user %u cannot be looked up: %s. %s", g->name, u->uid, strerror(-err),
            u->asked_ns ? "The groups known before still count" : "The user counts as a member of no group");
    pthread_mutex_lock(&g->lock);
    if (!err) {
        g->bytes += (count - (size_t)u->count) * sizeof *gids;
        u->client->bytes += (count - (size_t)u->count) * sizeof *gids;
        free(u->gids);
        u->gids = gids;
        u->count = count;
    }
    u->asked_ns = asked_ns;
    u->stale_ns = err ? clock_mono_ns() + FAILED_SECONDS * 1000000000ull : 0;
    u->is_asked = false;
    answer_waiters_locked(g, u, 0);
    idle_begin_locked(g, u);
    groups_make_room_locked(g);
    pthread_mutex_unlock(&g->lock);
    groups_unref(g);
}

/* Removes the user from its client's queue. A client or brick without a queue has no turn. asker.lock is
 * held, as in the next two functions. */
static void
user_unqueue(struct user *u)
{
    struct client_share *c = u->client;

    cds_list_del(&u->queue_link);
    u->is_queued = false;
    if (--c->queued)
        return;
    cds_list_del(&c->turn_link);
    if (cds_list_empty(&u->groups->turns))
        cds_list_del(&u->groups->turn_link);
}

static void
user_enqueue(struct user *u)
{
    struct client_share *c = u->client;
    struct groups *g = u->groups;

    if (cds_list_empty(&g->turns))
        cds_list_add_tail(&g->turn_link, &asker.turns);
    if (c->queued++ == 0)
        cds_list_add_tail(&c->turn_link, &g->turns);
    cds_list_add_tail(&u->queue_link, &c->queue);
    u->is_queued = true;
}

/* Takes the next user. The next turns of the user's client and brick come after the turns of all other
 * clients and bricks. */
static struct user *
take_turn(void)
{
    struct groups *g = cds_list_first_entry(&asker.turns, struct groups, turn_link);
    struct client_share *c = cds_list_first_entry(&g->turns, struct client_share, turn_link);
    struct user *u = cds_list_first_entry(&c->queue, struct user, queue_link);

    cds_list_del(&g->turn_link);
    cds_list_add_tail(&g->turn_link, &asker.turns);
    cds_list_del(&c->turn_link);
    cds_list_add_tail(&c->turn_link, &g->turns);
    user_unqueue(u);
    return u;
}

static void *
asker_main(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "kiln-groups");
    pthread_mutex_lock(&asker.lock);
    while (!cds_list_empty(&asker.turns)) {
        struct user *u = take_turn();
        uint64_t asked_ns = clock_mono_ns();
        uint32_t *gids, count;

        pthread_mutex_unlock(&asker.lock);
        int err = ask_for(u->uid, &gids, &count);

        user_learn(u, asked_ns, gids, count, err);
        pthread_mutex_lock(&asker.lock);
    }
    asker.threads--;
    pthread_mutex_unlock(&asker.lock);
    return NULL;
}

/* Returns 0 if a thread exists or was started for the queue. */
static int
askers_grow_locked(void)
{
    if (asker.threads == ASKERS_MAX)
        return 0;
    int err = thread_start(asker_main, NULL);

    if (!err)
        asker.threads++;
    return asker.threads ? 0 : err;
}

/* Queues the user for the client. The user must have no pending query. -EAGAIN: the client has too many users
 * in its queue. */
static int
queue_locked(struct groups *g, struct user *u, struct client_share *c)
{
    pthread_mutex_lock(&asker.lock);
    int err = c->queued >= GROUPS_QUEUED_MAX ? -EAGAIN : askers_grow_locked();

    if (!err) {
        if (u->asked_ns)
            idle_end_locked(g, u);
        charge_locked(u, c);
        user_enqueue(u);
    }
    pthread_mutex_unlock(&asker.lock);
    if (err)
        return err;
    u->is_asked = true;
    g->asked++;
    refcount_get(&g->refs);
    return 0;
}

/* Moves a queued user to the queue of another client that also waits for the user, if that queue is shorter.
 */
static void
hurry_locked(struct user *u, struct client_share *c)
{
    pthread_mutex_lock(&asker.lock);
    if (u->is_queued && u->client->queued > c->queued + 1) {
        user_unqueue(u);
        charge_locked(u, c);
        user_enqueue(u);
    }
    pthread_mutex_unlock(&asker.lock);
}

static int
ask_locked(struct groups *g, struct user **u, uint32_t uid, struct client_share *c)
{
    if (*u && (*u)->is_asked) {
        hurry_locked(*u, c);
        return 0;
    }
    if (!*u && !(*u = user_new_locked(g, uid, c)))
        return -ENOMEM;
    int err = queue_locked(g, *u, c);

    if (err && !(*u)->asked_ns)
        user_free_locked(g, *u);
    return err;
}

static int
user_wait_locked(struct groups *g, struct rpc_request *req, struct user *u,
                 void (*go)(struct rpc_request *, int))
{
    struct waiter *w = arena_alloc(&req->stk.arena, sizeof *w);
    struct client_share *c = w && !g->is_stopped ? client_locked(g, conn_address_slot(req->conn)) : NULL;

    if (!c)
        return g->is_stopped ? -ENOTCONN : -ENOMEM;
    c->users++; /* keeps the client, which may have no user yet, or lose its last one */
    int err = ask_locked(g, &u, req->stk.caller.uid, c);
    c->users--;
    client_settle_locked(c);
    if (err)
        return err;
    *w = (struct waiter){.job = {.run = groups_waiter_run}, .req = req, .go = go};
    cds_list_add_tail(&w->link, &u->waiters);
    g->waiting++;
    return GROUPS_ASKED;
}

int
groups_of_caller(struct groups *g, struct rpc_request *req, uint64_t timeout_ns,
                 void (*go)(struct rpc_request *req, int err))
{
    struct caller *caller = &req->stk.caller;

    caller->groups = NULL;
    caller->group_count = 0;
    if (caller->uid == 0 || caller_is_internal(caller)) /* these callers may do everything in any case */
        return 0;
    pthread_mutex_lock(&g->lock);
    struct user *u = user_find_locked(g, caller->uid);
    int rc = u && !u->is_asked && user_is_fresh(u, timeout_ns) ? user_give_groups(u, &req->stk)
                                                               : user_wait_locked(g, req, u, go);

    pthread_mutex_unlock(&g->lock);
    return rc;
}

/* ---- start and stop of the brick ------------------------------------------------------------- */

void
groups_stop(struct groups *g)
{
    struct user *u;

    pthread_mutex_lock(&g->lock);
    g->is_stopped = true;
    for (unsigned i = 0; i < BUCKETS; i++)
        cds_list_for_each_entry(u, &g->buckets[i], bucket_link)
            answer_waiters_locked(g, u, -ENOTCONN);
    pthread_mutex_unlock(&g->lock);
}

void
groups_start(struct groups *g)
{
    pthread_mutex_lock(&g->lock);
    g->is_stopped = false;
    pthread_mutex_unlock(&g->lock);
}

void
groups_dump(struct groups *g, struct dump *d)
{
    pthread_mutex_lock(&g->lock);
    unsigned users = g->users, waiting = g->waiting;
    size_t bytes = g->bytes;
    uint64_t asked = g->asked;
    pthread_mutex_unlock(&g->lock);
    dump_line(d, "groups", "users=%u bytes=%zu waiting=%u asked=%llu", users, bytes, waiting,
              (unsigned long long)asked);
}
