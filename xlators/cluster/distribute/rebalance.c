/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/distribute/rebalance.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "event/timer.h"
#include "log/log.h"
#include "xlators/cluster/distribute/migrate.h"
#include "xlators/cluster/old-clients.h"

enum { LIST_BYTES = 128 * 1024, SMALL_LIST_BYTES = 16 * 1024 }; /* small: beside clients */
enum { POLL_MS = 200, BUSY_ROUNDS = 3, FOLDER_ROUNDS = 20, SETTLE_MS = 1000 };

#define MS UINT64_C(1000000)

struct rebalancer {
    struct graph *graph;
    struct dist *d;
    enum rebalance_kind kind;
    unsigned width;
    void (*ended)(void *arg);
    void *ended_arg;
    struct worker_job job;
    struct heal_throttle throttle;
    atomic_bool stops;
    _Atomic uint64_t bytes, looked, moved, skipped, failed;
    struct client_watch clients;
    uint64_t clients_ns; /* time of the walk's latest look at the clients; 0: none */

    pthread_mutex_t lock; /* guards all fields below */
    pthread_cond_t over;
    bool is_running;
    struct rebalance_look look; /* without the counters above */
};

/* ---- lists ----------------------------------------------------------------------------------- */

/* A folder that is still to be walked. */
struct waiting_folder {
    struct inode *inode; /* a reference */
    struct inode *parent; /* a reference; NULL: the root */
    char *name;
};

struct folder_stack {
    struct waiting_folder *at;
    size_t count, room;
};

/* Takes over the inode's reference and the name. */
static int
folder_stack_push(struct folder_stack *s, const struct waiting_folder *f)
{
    if (s->count == s->room) {
        size_t room = s->room ? 2 * s->room : 64;
        struct waiting_folder *at = realloc(s->at, room * sizeof *at);

        if (!at)
            return -ENOMEM;
        s->at = at;
        s->room = room;
    }
    s->at[s->count++] = *f;
    return 0;
}

static void
waiting_folder_end(struct waiting_folder *f)
{
    inode_unref(f->inode);
    inode_unref(f->parent);
    free(f->name);
}

static void
folder_stack_clear(struct folder_stack *s)
{
    while (s->count > 0)
        waiting_folder_end(&s->at[--s->count]);
    free(s->at);
}

/* An entry of a child's listing. */
struct listed {
    char *name;
    struct iatt iatt;
    bool has_linkto, is_dir;
    bool has_remains; /* of a migration */
};

struct listing {
    struct listed *at;
    size_t count, room;
};

static int
listing_add(struct listing *l, const struct dirent_entry *e)
{
    if (l->count == l->room) {
        size_t room = l->room ? 2 * l->room : 64;
        struct listed *at = realloc(l->at, room * sizeof *at);

        if (!at)
            return -ENOMEM;
        l->at = at;
        l->room = room;
    }
    char *name = strndup(e->name, e->name_len);
    if (!name)
        return -ENOMEM;
    l->at[l->count++] = (struct listed){.name = name,
                                        .iatt = e->iatt,
                                        .has_linkto = dict_has(e->dict, DICT_KEY_DHT_LINKTO),
                                        .has_remains = dict_has(e->dict, DICT_KEY_DHT_LINKTO) ||
                                                       dict_find_text(e->dict, MIGRATE_MODE_KEY),
                                        .is_dir = S_ISDIR(e->iatt.mode) || e->type == DT_DIR};
    return 0;
}

static void
listing_clear(struct listing *l)
{
    for (size_t i = 0; i < l->count; i++)
        free(l->at[i].name);
    free(l->at);
    *l = (struct listing){0};
}

/* ---- operations ------------------------------------------------------------------------------ */

/* Operations of a walk have no caller: `stk` only carries the caller's credentials and an arena. */
static int
walk_op_begin(struct rebalancer *r, struct op *o)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return -ENOMEM;
    stk->caller.pid = PID_REBALANCE;
    *o = dist_op_of(r->d->xl, stk);
    return 0;
}

static void
walk_op_end(struct op *o)
{
    call_stack_free(o->stk);
}

static void
note_reason(struct rebalancer *r, const char *what, const char *name, const char *reason)
{
    pthread_mutex_lock(&r->lock);
    snprintf(r->look.reason, sizeof r->look.reason, "%s %.160s: %s", what, name, reason);
    pthread_mutex_unlock(&r->lock);
}

/* ---- listing a child ------------------------------------------------------------------------- */

static bool
is_own_entry(const struct inode *dir, const struct dirent_entry *e)
{
    if (e->name[0] == '.' && (!e->name[1] || (e->name[1] == '.' && !e->name[2])))
        return false;
    return !gfid_is_root(&dir->gfid) || strcmp(e->name, ".glusterfs") != 0;
}

/* Returns 0 at the end of the list, 1 if there may be more, or -errno. */
static int
list_once(struct rebalancer *r, const struct op *o, unsigned child, struct fd *fd, uint64_t *offset,
          struct listing *out)
{
    uint64_t begun = heal_unit_begin(&r->throttle);
    struct call_stack *stk = dist_call_new_internal(o, FOP_readdirp);
    int err = 0;

    if (stk) {
        stk->caller.pid = PID_REBALANCE;
        stk->call.fd = fd_ref(fd);
        stk->call.loc.inode = inode_ref(fd->inode);
        stk->call.offset = *offset;
        stk->call.size = heal_gives_way(&r->throttle) ? SMALL_LIST_BYTES : LIST_BYTES;
    }
    stk = dist_call_put_uint(stk, DICT_KEY_DHT_LINKTO, 256);
    if (stk && dict_set_text_int(stk->call.xdata, MIGRATE_MODE_KEY, 0)) {
        call_stack_free(stk);
        stk = NULL;
    }
    int ret = dist_call_at(o, child, stk);
    heal_unit_end(&r->throttle, begun);
    const struct dirent_entry *e = ret > 0 ? stk->reply.entries : NULL;

    for (; e && !err; e = e->next) {
        *offset = e->off;
        if (is_own_entry(fd->inode, e))
            err = listing_add(out, e);
    }
    bool has_more = ret > 0 && stk->reply.op_errno != ENOENT;
    if (stk)
        call_stack_free(stk);
    return err ? err : ret < 0 && ret != -ENOENT ? ret : has_more;
}

static int
list_folder_of_child(struct rebalancer *r, const struct op *o, unsigned child, struct inode *dir,
                     struct listing *out)
{
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_opendir), dir);
    int ret = dist_call_at(o, child, stk);
    uint64_t offset = 0;

    if (ret >= 0) {
        do
            ret = list_once(r, o, child, stk->reply.fd, &offset, out);
        while (ret > 0);
    }
    if (stk)
        call_stack_free(stk);
    return ret;
}

/* ---- one entry ------------------------------------------------------------------------------- */

struct part {
    struct rebalancer *r;
    struct inode *dir;
    const struct layout *layout;
    const struct listing *list;
    unsigned child;
    bool is_last_round;
    uint8_t *is_busy; /* indexed by entry: to be tried again */
};

static bool
is_linkto_entry(const struct listed *e)
{
    return S_ISREG(e->iatt.mode) && (e->iatt.mode & 07777) == S_ISVTX && e->has_linkto;
}

/* Removes a linkto file that no lookup uses, because it is not on the hashed subvolume of its name; unless
 * its file is marked for a copy there. */
static int
remove_stray(const struct op *o, const struct part *p, const struct listed *e, unsigned hashed)
{
    struct dist_lock lock[2];
    unsigned count = dist_locks_namespace(lock, hashed, p->dir, e->name);
    int err = dist_locks_take(o, lock, count);

    if (err)
        return err;
    err = linkto_remove_unused(o, p->child, p->dir, e->name);
    dist_locks_drop(o, lock, count);
    return err;
}

/* *unit_ns: when the unit of the entry has begun; a move of a large file begins others. */
static int
move_entry(const struct op *o, struct part *p, const struct listed *e, unsigned hashed, uint64_t *unit_ns,
           const char **stays)
{
    struct inode *inode = inode_link(p->r->graph->inodes, NULL, NULL, &e->iatt);
    struct migration m = {.parent = p->dir,
                          .name = e->name,
                          .file = inode,
                          .from = p->child,
                          .to = hashed,
                          .moves_links = p->r->kind == REBALANCE_DRAIN,
                          .stops = &p->r->stops,
                          .bytes = &p->r->bytes,
                          .throttle = &p->r->throttle,
                          .unit_ns = *unit_ns};
    int err = -ENOMEM;

    if (inode)
        err = hashed == p->child          ? migrate_settle(o, &m)
              : S_ISREG(e->iatt.mode) ? migrate_file(o, &m)
                                      : migrate_special(o, &m);
    *stays = m.stays;
    *unit_ns = m.unit_ns;
    inode_unref(inode);
    return err;
}

static void
note_entry_outcome(struct part *p, size_t n, bool moves, int err, const char *stays)
{
    struct rebalancer *r = p->r;
    const char *name = p->list->at[n].name;

    if (!err && moves) {
        atomic_fetch_add(&r->moved, 1);
    } else if (!err || err == -ENOENT || err == -ECANCELED || err == -ESTALE) {
        return; /* nothing to do, or the name has changed meanwhile */
    } else if ((err == -EAGAIN || err == -EBUSY) && !p->is_last_round) {
        p->is_busy[n] = 1;
    } else if (err == -EAGAIN && stays) {
        atomic_fetch_add(&r->skipped, 1);
        note_reason(r, "skipped", name, stays);
    } else {
        atomic_fetch_add(&r->failed, 1);
        note_reason(r, "failed", name, strerror(-err));
        log_event(LOG_WARNING, r->d->xl, "rebalance-file", "%s in %s is not moved from %s: %s", name,
                  GFID(&p->dir->gfid), r->d->child[p->child].xl->name, strerror(-err));
    }
}

static void
handle_entry(void *arg, size_t n)
{
    struct part *p = arg;
    struct rebalancer *r = p->r;
    const struct listed *e = &p->list->at[n];
    int hashed = layout_find(p->layout, dist_hash(r->d, e->name));
    const char *stays = NULL;
    struct op o;

    if (e->is_dir || hashed < 0 || gfid_is_null(&e->iatt.gfid) || atomic_load(&r->stops) ||
        (p->is_last_round && !p->is_busy[n]))
        return;
    bool is_linkto = is_linkto_entry(e), is_here = hashed == (int)p->child;
    if (!p->is_busy[n] && !is_linkto)
        atomic_fetch_add(&r->looked, 1);
    p->is_busy[n] = 0;
    if (is_here && (is_linkto || !e->has_remains))
        return;
    uint64_t begun = heal_unit_begin(&r->throttle);
    int err = walk_op_begin(r, &o);
    if (!err) {
        err = is_linkto ? remove_stray(&o, p, e, (unsigned)hashed)
                        : move_entry(&o, p, e, (unsigned)hashed, &begun, &stays);
        walk_op_end(&o);
    }
    heal_unit_end(&r->throttle, begun);
    note_entry_outcome(p, n, !is_linkto && !is_here, err == -EBUSY && is_linkto ? 0 : err, stays);
}

/* ---- a folder -------------------------------------------------------------------------------- */

static bool
walk_must_stop(const struct rebalancer *r)
{
    return atomic_load(&r->stops) || atomic_load(&r->graph->is_draining);
}

/* Moves the entries of the folder's part on the child. Linkto files come last. */
static int
walk_child(struct rebalancer *r, const struct op *o, struct inode *dir, const struct layout *layout,
           unsigned child)
{
    struct listing list = {0};
    struct part p = {.r = r, .dir = dir, .layout = layout, .list = &list, .child = child};
    int err = list_folder_of_child(r, o, child, dir, &list);

    p.is_busy = err ? NULL : calloc(list.count + 1, 1);
    if (!err && !p.is_busy)
        err = -ENOMEM;
    if (!err)
        coro_each(r->width, list.count, handle_entry, &p);
    bool is_any = !err && memchr(p.is_busy, 1, list.count + 1);
    for (unsigned n = 0; is_any && n < BUSY_ROUNDS && !walk_must_stop(r); n++) {
        coro_pause(SETTLE_MS);
        p.is_last_round = n + 1 == BUSY_ROUNDS;
        for (size_t i = 0; i < list.count; i++) {
            if (p.is_busy[i])
                handle_entry(&p, i);
        }
    }
    free(p.is_busy);
    listing_clear(&list);
    return err;
}

static int
walk_files(struct rebalancer *r, const struct op *o, struct inode *dir)
{
    struct layout *layout;
    int err = folder_layout_fresh(o, dir, &layout);

    if (err)
        return err;
    for (unsigned i = 0; i < r->d->count && !err && !walk_must_stop(r); i++) {
        if (r->kind != REBALANCE_DRAIN || child_is_leaving(r->d, i))
            err = walk_child(r, o, dir, layout, i);
    }
    layout_unref(layout);
    return err;
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(((const struct listed *)a)->name, ((const struct listed *)b)->name);
}

/* Lists the names of the folders below `dir` that any child has, each once. */
static int
list_folders(struct rebalancer *r, const struct op *o, struct inode *dir, struct listing *out)
{
    struct listing all = {0};
    int err = 0;

    for (unsigned i = 0; i < o->d->count && !err; i++)
        err = list_folder_of_child(r, o, i, dir, &all);
    if (all.count > 1)
        qsort(all.at, all.count, sizeof *all.at, compare_names);
    for (size_t i = 0; i < all.count; i++) {
        struct listed *e = &all.at[i];
        bool is_new = e->is_dir && (!out->count || strcmp(out->at[out->count - 1].name, e->name) != 0);
        struct dirent_entry entry = {
            .name = e->name, .name_len = (uint32_t)strlen(e->name), .iatt = e->iatt, .type = DT_DIR};

        if (is_new && !err)
            err = listing_add(out, &entry);
    }
    listing_clear(&all);
    return err;
}

/* Looks up the folder below `dir`, which creates it where it is missing, and adds it to the stack. */
static int
find_subfolder(const struct op *o, struct inode *dir, const char *name, struct folder_stack *stack)
{
    struct found found;
    int err = lookup_name(o, dir, name, NULL, &found);
    struct waiting_folder f = {0};

    if (!err && found.is_dir) {
        f = (struct waiting_folder){inode_ref(found.inode), inode_ref(dir), strdup(name)};
        err = f.name ? folder_stack_push(stack, &f) : -ENOMEM;
        if (err)
            waiting_folder_end(&f);
    }
    found_end(&found);
    return err == -ENOENT || err == -ESTALE ? 0 : err;
}

static int
find_subfolders(struct rebalancer *r, struct inode *dir, struct folder_stack *stack)
{
    struct listing folders = {0};
    struct op o;
    int err = walk_op_begin(r, &o);

    if (err)
        return err;
    err = list_folders(r, &o, dir, &folders);
    walk_op_end(&o);
    for (size_t i = 0; i < folders.count && !err && !walk_must_stop(r); i++) {
        err = walk_op_begin(r, &o);
        if (err)
            break;
        uint64_t begun = heal_unit_begin(&r->throttle);

        err = find_subfolder(&o, dir, folders.at[i].name, stack);
        heal_unit_end(&r->throttle, begun);
        walk_op_end(&o);
    }
    listing_clear(&folders);
    return err;
}

static void
set_current(struct rebalancer *r, struct inode *dir)
{
    char path[4096];

    if (inode_path(dir, path, sizeof path) != 0)
        snprintf(path, sizeof path, "%s", GFID(&dir->gfid));
    pthread_mutex_lock(&r->lock);
    snprintf(r->look.current, sizeof r->look.current, "%.255s", path);
    pthread_mutex_unlock(&r->lock);
}

static int
walk_folder_once(struct rebalancer *r, const struct waiting_folder *f, struct folder_stack *stack)
{
    size_t before = stack->count;
    struct op o;
    int err = find_subfolders(r, f->inode, stack);

    if (!err && !walk_must_stop(r))
        err = walk_op_begin(r, &o);
    if (!err && !walk_must_stop(r)) {
        uint64_t begun = heal_unit_begin(&r->throttle);

        err = folder_fix_layout(&o, f->inode);
        heal_unit_end(&r->throttle, begun);
        if (!err && r->kind != REBALANCE_LAYOUTS)
            err = walk_files(r, &o, f->inode);
        walk_op_end(&o);
    }
    while (err && stack->count > before) /* the next attempt finds them again */
        waiting_folder_end(&stack->at[--stack->count]);
    return err;
}

static void
set_state(struct rebalancer *r, enum rebalance_state state)
{
    pthread_mutex_lock(&r->lock);
    r->look.state = state;
    pthread_mutex_unlock(&r->lock);
}

/* Returns false if the walk must stop. */
static bool
wait_for_children(struct rebalancer *r)
{
    if (!children_all_up(r->d))
        set_state(r, REBALANCE_WAITS);
    while (!walk_must_stop(r) && !children_all_up(r->d))
        coro_pause(POLL_MS);
    set_state(r, REBALANCE_RUNS);
    return !walk_must_stop(r);
}

static void
set_waits_for(struct rebalancer *r, const char *who)
{
    pthread_mutex_lock(&r->lock);
    snprintf(r->look.waits_for, sizeof r->look.waits_for, "%s", who);
    pthread_mutex_unlock(&r->lock);
}

static void
note_old_client(struct rebalancer *r, const char *who)
{
    if (r->look.state != REBALANCE_WAITS) /* only the walk changes the state */
        log_event(LOG_WARNING, r->d->xl, "rebalance-old-client",
                  "the rebalance waits for %s, which is not connected to all subvolumes", who);
    set_waits_for(r, who);
    set_state(r, REBALANCE_WAITS);
}

/* Returns whether the walk may go on: no client works with an old list of bricks (old-clients.h). */
static bool
may_walk_beside_clients(struct rebalancer *r)
{
    bool may = client_watch_look(&r->clients);

    if (!may && *r->clients.who) /* else there was no memory for the look */
        note_old_client(r, r->clients.who);
    return may;
}

/* Returns false if the walk must stop. */
static bool
wait_for_clients(struct rebalancer *r)
{
    if (r->clients_ns && clock_mono_ns() - r->clients_ns < CLIENTS_MS * MS)
        return true;
    while (!walk_must_stop(r) && !may_walk_beside_clients(r))
        coro_pause(POLL_MS);
    r->clients_ns = clock_mono_ns();
    set_waits_for(r, "");
    set_state(r, REBALANCE_RUNS);
    return !walk_must_stop(r);
}

/* A folder that fails while a subvolume is down is handled again when all are up. */
static void
rebalance_walk_folder(struct rebalancer *r, const struct waiting_folder *f, struct folder_stack *stack)
{
    int err = -ENOTCONN;

    set_current(r, f->inode);
    for (unsigned n = 0; n < FOLDER_ROUNDS && err && wait_for_children(r) && wait_for_clients(r); n++) {
        if (n > 0)
            coro_pause(POLL_MS);
        err = walk_folder_once(r, f, stack);
        if (err == -ENOENT || err == -ESTALE) /* removed meanwhile, or just being created */
            err = n > 1 ? 0 : err;
        else if (err != -ENOTCONN && children_all_up(r->d) && n > 1)
            break;
    }
    if (!walk_must_stop(r) && err) {
        atomic_fetch_add(&r->failed, 1);
        note_reason(r, "failed folder", f->name ? f->name : "/", strerror(-err));
        log_event(LOG_WARNING, r->d->xl, "rebalance-folder", "%s is not handled: %s", GFID(&f->inode->gfid),
                  strerror(-err));
    }
    pthread_mutex_lock(&r->lock);
    r->look.folders++;
    pthread_mutex_unlock(&r->lock);
}

/* ---- the walk -------------------------------------------------------------------------------- */

/* Estimates the number of files by the used inodes of the subvolumes. */
static void
estimate_files(struct rebalancer *r)
{
    uint64_t files = 0;

    for (unsigned i = 0; i < r->d->count; i++) {
        if (r->kind != REBALANCE_DRAIN || child_is_leaving(r->d, i))
            files += space_used_inodes(r->d, i);
    }
    pthread_mutex_lock(&r->lock);
    r->look.expected = files;
    pthread_mutex_unlock(&r->lock);
}

static void
walk_volume(struct rebalancer *r)
{
    struct folder_stack stack = {0};
    struct waiting_folder root = {.inode = inode_root(r->graph->inodes)};

    if (wait_for_children(r)) {
        estimate_files(r);
        rebalance_walk_folder(r, &root, &stack);
    }
    waiting_folder_end(&root);
    while (stack.count > 0 && !walk_must_stop(r)) {
        struct waiting_folder f = stack.at[--stack.count];

        rebalance_walk_folder(r, &f, &stack);
        waiting_folder_end(&f);
    }
    folder_stack_clear(&stack);
}

static void
rebalance_walk_end(struct rebalancer *r, int err)
{
    pthread_mutex_lock(&r->lock);
    r->look.state = walk_must_stop(r)                  ? REBALANCE_STOPPED
                    : err || atomic_load(&r->failed) ? REBALANCE_FAILED
                                                       : REBALANCE_COMPLETED;
    r->look.ended = time(NULL);
    r->look.current[0] = '\0';
    bool is_by_itself = r->look.state != REBALANCE_STOPPED;
    pthread_mutex_unlock(&r->lock);
    if (is_by_itself && r->ended)
        r->ended(r->ended_arg);
    pthread_mutex_lock(&r->lock);
    r->is_running = false;
    pthread_cond_broadcast(&r->over);
    pthread_mutex_unlock(&r->lock);
}

static void
rebalance_go(void *arg)
{
    struct rebalancer *r = arg;
    struct graph *graph = r->graph;

    walk_volume(r);
    rebalance_walk_end(r, 0);
    graph_unpin(graph);
}

static void
rebalance_job_run(struct worker_job *job)
{
    struct rebalancer *r = caa_container_of(job, struct rebalancer, job);
    struct graph *graph = r->graph;
    int err = coro_run(rebalance_go, r);

    if (!err)
        return;
    rebalance_walk_end(r, err);
    graph_unpin(graph);
}

/* ---- life ------------------------------------------------------------------------------------ */

struct rebalancer *
rebalancer_new(struct xlator *distribute, enum rebalance_kind kind, unsigned width, void (*ended)(void *arg),
               void *arg)
{
    struct rebalancer *r = calloc(1, sizeof *r);

    if (!r)
        return NULL;
    r->graph = distribute->graph;
    r->d = distribute->private;
    r->kind = kind;
    r->width = width;
    r->clients = (struct client_watch){.xl = distribute, .spares_numbered = true};
    r->ended = ended;
    r->ended_arg = arg;
    r->job.run = rebalance_job_run;
    pthread_mutex_init(&r->lock, NULL);
    pthread_cond_init(&r->over, NULL);
    return r;
}

void
rebalancer_give_way(struct rebalancer *r)
{
    heal_throttle_by_bricks(&r->throttle, r->d->xl);
}

int
rebalancer_start(struct rebalancer *r)
{
    if (!graph_pin(r->graph))
        return -ENOTCONN;
    r->look.started = time(NULL);
    r->is_running = true;
    worker_post_any(&r->job);
    return 0;
}

void
rebalancer_stop(struct rebalancer *r)
{
    atomic_store(&r->stops, true);
}

void
rebalancer_free(struct rebalancer *r)
{
    rebalancer_stop(r);
    pthread_mutex_lock(&r->lock);
    while (r->is_running)
        pthread_cond_wait(&r->over, &r->lock);
    pthread_mutex_unlock(&r->lock);
    pthread_cond_destroy(&r->over);
    pthread_mutex_destroy(&r->lock);
    free(r);
}

void
rebalancer_look(struct rebalancer *r, struct rebalance_look *out)
{
    pthread_mutex_lock(&r->lock);
    *out = r->look;
    pthread_mutex_unlock(&r->lock);
    out->looked = atomic_load(&r->looked);
    out->moved = atomic_load(&r->moved);
    out->bytes = atomic_load(&r->bytes);
    out->skipped = atomic_load(&r->skipped);
    out->failed = atomic_load(&r->failed);
    time_t end = out->ended ? out->ended : time(NULL);
    out->seconds = end > out->started ? (unsigned)(end - out->started) : 0;
}
