/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/test-children.h"

#include <check.h>
#include <errno.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <urcu.h>

#include "base/test-must.h"
#include "coro/coroutine.h"
#include "event/timer.h"
#include "event/worker.h"
#include "graph/pools.h"
#include "mem/iobuf.h"
#include "mem/mem-pool.h"
#include "mem/mem-shared.h"
#include "stack/coro-call.h"
#include "xlators/cluster/test-children-internal.h"

struct scene scene;

/* ---- the virtual clock, and the places of workers and timers --------------------------------- */

enum { TIMERS_MAX = 64 };
static struct timer *timers[TIMERS_MAX];
static CDS_LIST_HEAD(jobs);

uint64_t __wrap_clock_mono_ns(void);
void __wrap_worker_post(struct worker_job *job);
void __wrap_worker_post_any(struct worker_job *job);
void __wrap_timer_start(struct timer *t, uint64_t delay_ms);
bool __wrap_timer_stop(struct timer *t);

uint64_t
__wrap_clock_mono_ns(void)
{
    return scene.now_ns;
}

void
__wrap_worker_post(struct worker_job *job)
{
    cds_list_add_tail(&job->link, &jobs);
}

void
__wrap_worker_post_any(struct worker_job *job)
{
    __wrap_worker_post(job);
}

bool
__wrap_timer_stop(struct timer *t)
{
    bool was_armed = false;

    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        was_armed |= timers[i] == t;
        timers[i] = timers[i] == t ? NULL : timers[i];
    }
    t->is_armed = false;
    return was_armed;
}

void
__wrap_timer_start(struct timer *t, uint64_t delay_ms)
{
    unsigned i = 0;

    (void)__wrap_timer_stop(t);
    while (i < TIMERS_MAX && timers[i])
        i++;
    must(i < TIMERS_MAX);
    t->due_ns = scene.now_ns + delay_ms * 1000000;
    t->is_armed = true;
    timers[i] = t;
}

static bool
job_run_next(void)
{
    if (cds_list_empty(&jobs))
        return false;
    struct worker_job *job = cds_list_first_entry(&jobs, struct worker_job, link);

    cds_list_del(&job->link);
    job->run(job);
    return true;
}

static bool
timer_fire_next(uint64_t until_ns)
{
    struct timer *first = NULL;

    for (unsigned i = 0; i < TIMERS_MAX; i++) {
        if (timers[i] && (!first || timers[i]->due_ns < first->due_ns))
            first = timers[i];
    }
    if (!first || first->due_ns > until_ns)
        return false;
    scene.now_ns = first->due_ns > scene.now_ns ? first->due_ns : scene.now_ns;
    (void)__wrap_timer_stop(first);
    first->fn(first);
    return true;
}

/* ---- lack of memory -------------------------------------------------------------------------- */

void
scene_init_starving(void)
{
    must(mem_pools_set_option("bypass", "*") == 0); /* each object is an allocation */
}

void
scene_starve(int64_t n)
{
    scene.starve_at = n;
    mem_test_fail_at = n;
}

bool
scene_has_starved(void)
{
    return scene.starve_at && mem_test_fail_at <= 0;
}

/* Gives memory to the code of bricks and tests until starving_resume(). The counter is written atomically,
 * because a compiler may assume that malloc() does not read the counter. */
static int64_t
starving_pause(void)
{
    return __atomic_exchange_n(&mem_test_fail_at, 0, __ATOMIC_SEQ_CST);
}

static void
starving_resume(int64_t left)
{
    __atomic_store_n(&mem_test_fail_at, left, __ATOMIC_SEQ_CST);
}

/* ---- faults and events ----------------------------------------------------------------------- */

static CDS_LIST_HEAD(calls);

void
child_call_answer(struct call_stack *stk, int ret)
{
    scene.answered++;
    if (ret < 0 && stk->reply.shortage) { /* as protocol/client answers without memory for the reply */
        fd_unref(stk->reply.fd);
        iobuf_unref(stk->reply.iobuf);
        stk->reply =
            (struct fop_reply){.op_ret = -1, .op_errno = ENOMEM, .shortage = stk->reply.shortage};
        call_stack_unwind(stk);
        return;
    }
    if (ret < 0) {
        call_stack_fail(stk, -ret);
        return;
    }
    stk->reply.op_ret = ret;
    call_stack_unwind(stk);
}
static struct fault *
fault_of(unsigned child)
{
    for (unsigned i = 0; i < scene.fault_count; i++) {
        struct fault *f = &scene.fault[i];

        if ((f->child == child || f->child == ANY_CHILD) && f->at == scene.calls[f->child] && !f->has_struck)
            return f;
    }
    return NULL;
}

/* Answers a call and the calls that are joined behind it as those of a lost connection. */
static void
fail_call(struct call_stack *stk)
{
    for (struct call_stack *next; stk; stk = next) {
        next = stk->joined;
        stk->joined = NULL;
        child_call_answer(stk, -ENOTCONN);
    }
}

static void
fail_queued(unsigned i)
{
    struct child_call *c, *next;
    CDS_LIST_HEAD(gone);

    cds_list_for_each_entry_safe(c, next, &calls, link)
    {
        if (c->child == i)
            cds_list_move(&c->link, &gone);
    }
    cds_list_for_each_entry_safe(c, next, &gone, link)
    {
        fail_call(c->stk);
        free(c);
    }
}

void
scene_child_down(unsigned i)
{
    if (!scene.is_up[i])
        return;
    scene.is_up[i] = false;
    if (!scene.tells_late)
        xlator_tell_parent(scene.child[i], CHILD_DOWN);
    locks_drop_child(i);
    fail_queued(i);
    locks_grant_waiting();
    if (scene.tells_late)
        xlator_tell_parent(scene.child[i], CHILD_DOWN);
}

void
scene_child_up(unsigned i)
{
    scene.is_up[i] = true;
    atomic_store(&scene.child[i]->brick_facts, scene.takes_sequences ? BRICK_SEQUENCES : 0);
    xlator_tell_parent(scene.child[i], CHILD_UP);
}

void
scene_cut(void)
{
    scene.is_cut = true;
    for (unsigned i = 0; i < scene.count; i++)
        locks_drop_child(i);
}

/* With CHILDREN_TRACE in the environment: prints the calls. */
static void
call_trace(const struct child_call *c, int ret, enum fault_kind kind)
{
    const struct fop_call *call = &c->stk->call;
    const struct inode *dir = call->loc.parent ? call->loc.parent : call->loc2.parent;
    const struct inode *inode = call->fd ? call->fd->inode : call->loc.inode;
    const char *name = call->loc.parent ? call->loc.name : call->loc2.parent ? call->loc2.name : call->name;

    if (!getenv("CHILDREN_TRACE"))
        return;
    fprintf(stderr, "  c%u #%u %s object %02x..%u in %02x..%u %s cmd %u type %u flock %u %llx: %d%s\n",
            c->child, scene.calls[c->child] - 1, fop_info[call->fop].name, inode ? inode->gfid.b[0] : 0,
            inode ? inode->gfid.b[15] : 0, dir ? dir->gfid.b[0] : 0, dir ? dir->gfid.b[15] : 0,
            name ? name : "-", call->cmd, call->type, call->flock.type, (unsigned long long)call->flock.start,
            ret, kind < FAULT_KINDS ? " (fault)" : "");
}

/* Serves one call with the fault at its number, if there is any. Returns the result or -errno; 1 of a lock:
 * the call waits. */
static int
step_run(struct child_call *c, struct fault *f)
{
    enum fault_kind kind = f ? f->kind : FAULT_KINDS;
    unsigned child = c->child;
    int ret = -ENOTCONN;

    if (kind == FAULT_REFUSED && is_unlock(&c->stk->call))
        kind = FAULT_KINDS;
    if (f)
        f->has_struck = true;
    if (kind == FAULT_CUT)
        scene_cut();
    if (kind == FAULT_UNSENT)
        scene_child_down(child);
    int64_t starve_at = starving_pause();

    if (kind == FAULT_REFUSED)
        ret = -f->err;
    else if (scene.is_up[child] && !scene.is_cut)
        ret = call_serve(c);
    if (scene.lie)
        scene.lie(child, c->stk, &ret);
    starving_resume(starve_at);
    bool waits = is_lock_call(c->stk->call.fop) && ret == 1;

    call_trace(c, ret, kind);
    if (kind == FAULT_CUT_AFTER)
        scene_cut();
    if (kind == FAULT_UNANSWERED)
        scene_child_down(child);
    return !waits && (kind == FAULT_UNANSWERED || kind == FAULT_CUT_AFTER) ? -ENOTCONN : ret;
}

/* Returns whether bricks of kilnd run the call in a sequence (rpc/server/sequence.c). */
static bool
runs_in_sequence(enum fop fop)
{
    switch (fop) {
    case FOP_open:
    case FOP_create:
    case FOP_xattrop:
    case FOP_fxattrop:
    case FOP_fsync:
    case FOP_flush:
        return true;
    default:
        return is_lock_call(fop);
    }
}

/* Runs joined calls as a brick runs a message, and then answers all. Each has a number of its own, so a fault
 * may come between two of them: a lost connection loses the answers of the calls before, too. */
static void
sequence_run(struct child_call *c, struct fault *f)
{
    struct call_stack *steps[8], *next = c->stk;
    int ret[8];
    unsigned count = 0, child = c->child;
    bool has_failed = false, is_lost = false;

    scene.sequences++;
    do {
        must(count < 8);
        if (count && !is_lost) {
            f = fault_of(child);
            f = f && f->kind < FAULT_KINDS && f->kind != FAULT_LATE ? f : NULL;
            scene.calls[child]++;
            scene.calls[ANY_CHILD]++;
        }
        must(runs_in_sequence(next->call.fop));
        steps[count] = c->stk = next;
        next = next->joined;
        c->stk->joined = NULL;
        bool runs = !is_lost && (!has_failed || c->stk->joins_always);

        ret[count] = runs ? step_run(c, f) : -ECANCELED;
        must(ret[count] != 1 || !is_lock_call(c->stk->call.fop)); /* no call of a sequence waits */
        has_failed |= ret[count++] < 0;
        is_lost |= !scene.is_up[child] || scene.is_cut;
    } while (next);
    free(c);
    for (unsigned k = 0; k < count; k++) {
        if (is_lost || ret[k] != -ECANCELED) {
            child_call_answer(steps[k], is_lost ? -ENOTCONN : ret[k]);
            continue;
        }
        steps[k]->reply =
            (struct fop_reply){.op_ret = -1, .op_errno = ECANCELED, .shortage = SHORTAGE_UNSENT};
        call_stack_unwind(steps[k]);
    }
}

static void
call_run(struct child_call *c, struct fault *f)
{
    struct call_stack *stk = c->stk;

    if (stk->joined) {
        sequence_run(c, f);
        return;
    }
    bool is_lock = is_lock_call(stk->call.fop);
    int ret = step_run(c, f);

    free(c);
    if (!is_lock || ret != 1)
        child_call_answer(stk, ret);
}

static bool
call_run_next(bool is_late)
{
    struct child_call *c;

    cds_list_for_each_entry(c, &calls, link)
    {
        if (c->is_late != is_late || c->is_held)
            continue;
        struct fault *f = is_late ? NULL : fault_of(c->child);

        scene.calls[c->child] += !is_late;
        scene.calls[ANY_CHILD] += !is_late;
        if (f && (f->kind == FAULT_LATE || f->kind == FAULT_HELD)) {
            f->has_struck = true;
            c->is_late = f->kind == FAULT_LATE;
            c->is_held = f->kind == FAULT_HELD;
            return true;
        }
        cds_list_del(&c->link);
        call_run(c, f);
        return true;
    }
    return false;
}

void
scene_release_held(int err)
{
    struct fault refusal = {.kind = FAULT_REFUSED, .err = err};
    struct child_call *c, *next;
    CDS_LIST_HEAD(held);

    cds_list_for_each_entry_safe(c, next, &calls, link)
    {
        if (c->is_held)
            cds_list_move(&c->link, &held);
    }
    cds_list_for_each_entry_safe(c, next, &held, link) call_run(c, err ? &refusal : NULL);
}

void
scene_run(uint64_t ms)
{
    uint64_t until = scene.now_ns + ms * 1000000;
    unsigned steps = 0;

    while (call_run_next(false) || job_run_next() || call_run_next(true) || timer_fire_next(until)) {
        steps++;
        must(steps < 100000); /* else the scene runs for ever */
    }
    scene.now_ns = scene.now_ns > until ? scene.now_ns : until;
}

void
scene_run_job(void)
{
    must(job_run_next());
}

void
scene_arm(const struct fault *faults, unsigned count)
{
    memset(scene.calls, 0, sizeof scene.calls);
    scene.answered = 0;
    scene.fault_count = count;
    for (unsigned i = 0; i < count; i++)
        scene.fault[i] = faults[i];
}

/* ---- the layers ------------------------------------------------------------------------------ */

struct child_conf {
    int64_t number;
};

static const struct option child_options[] = {OPT_INT(struct child_conf, number, "number", "0", 0, 100),
                                              OPT_END};
static const struct option top_options[] = {OPT_END};

static xl_verdict
child_any(struct xlator *xl, struct call_stack *stk)
{
    const struct child_conf *conf = xlator_conf(xl);
    int64_t starve_at = starving_pause();
    struct child_call *c = malloc(sizeof *c);

    starving_resume(starve_at);
    *c = (struct child_call){.stk = stk, .xl = xl, .child = (unsigned)conf->number};
    cds_list_add_tail(&c->link, &calls);
    return XL_OWNED;
}

static const struct xlator_type child_type = {.name = "test/child",
                                              .options = child_options,
                                              .conf_size = sizeof(struct child_conf),
                                              .ops = &(const struct xlator_ops){.any = child_any}};
static const struct xlator_type early_child_type = {.name = "test/early-child",
                                                    .options = child_options,
                                                    .conf_size = sizeof(struct child_conf),
                                                    .traits = LAYER_ANSWERS_EARLY,
                                                    .ops = &(const struct xlator_ops){.any = child_any}};
static const struct xlator_type top_type = {.name = "test/top", .options = top_options};
static const struct xlator_type *tested_type;
const struct xlator_type *pair_type;

static const struct xlator_type *
scene_type_find(const char *name)
{
    if (strcmp(name, child_type.name) == 0)
        return &child_type;
    if (strcmp(name, early_child_type.name) == 0)
        return &early_child_type;
    if (strcmp(name, top_type.name) == 0)
        return &top_type;
    if (pair_type && strcmp(name, pair_type->name) == 0)
        return pair_type;
    return strcmp(name, tested_type->name) == 0 ? tested_type : NULL;
}

/* ---- a scene --------------------------------------------------------------------------------- */

static void
scene_watch(struct graph *g, const struct layer_event *e)
{
    (void)g;
    (void)e;
}

void
scene_clear(unsigned count, bool has_arbiter)
{
    memset(&scene, 0, sizeof scene);
    scene.now_ns = UINT64_C(1000000000000);
    scene.count = count;
    for (unsigned i = 0; i < count; i++) {
        struct stored_object *root = &scene.store[i].object[0];

        scene.store[i].is_arbiter = has_arbiter && i + 1 == count;
        scene.store[i].clock = 1000;
        root->stat = (struct iatt){.mode = S_IFDIR | 0755, .nlink = 1, .flags = IATT_FLAGS_ALL, .ino = 1};
        root->stat.gfid.b[15] = 1;
    }
}

static size_t
scene_volfile(char *text, size_t size, const struct xlator_type *type, const char *options, bool is_top)
{
    size_t at = 0;

    for (unsigned i = 0; i < scene.count; i++)
        at += (size_t)snprintf(text + at, size - at,
                               "volume c%u\n type test/%s\n option number %u\nend-volume\n", i,
                               scene.answers_early ? "early-child" : "child", i);
    for (unsigned i = 0; i < scene.count && scene.has_pairs; i += 2)
        at += (size_t)snprintf(text + at, size - at,
                               "volume r%u\n type %s\n%s subvolumes c%u c%u\nend-volume\n", i / 2,
                               pair_type->name, scene.pair_options ? scene.pair_options : "", i, i + 1);
    at += (size_t)snprintf(text + at, size - at, "volume v\n type %s\n%s subvolumes", type->name, options);
    for (unsigned i = 0; i < scene.count; i++) {
        if (!scene.has_pairs || i % 2 == 0)
            at += (size_t)snprintf(text + at, size - at, scene.has_pairs ? " r%u" : " c%u",
                                   scene.has_pairs ? i / 2 : i);
    }
    at += (size_t)snprintf(text + at, size - at, "\nend-volume\n");
    if (!is_top)
        at += (size_t)snprintf(text + at, size - at,
                               "volume top\n type test/top\n subvolumes v\nend-volume\n");
    must(at < size);
    return at;
}

static void
scene_init_once(void)
{
    static bool is_done;

    if (is_done)
        return;
    is_done = true;
    must(graph_pools_init() == 0);
    must(coro_stacks_init() == 0);
    if (!getenv("CHILDREN_TRACE"))
        log_set_level(LOG_ERROR);
    rcu_register_thread();
}

/* Returns NULL with the reason in *error. */
static struct graph *
scene_graph_new(const struct xlator_type *type, const char *options, bool is_top, char *error, size_t size)
{
    char text[4096];

    scene_init_once();
    tested_type = type;
    size_t len = scene_volfile(text, sizeof text, type, options, is_top);
    struct volfile *v = volfile_parse("scene.vol", text, len, error, size);
    struct graph *g = v ? graph_new(scene_type_find, v, NULL, error, size) : NULL;

    if (g)
        g->watch = scene_watch;
    return g;
}

/* Makes `g` the graph of the scene. */
static void
scene_take_graph(struct graph *g)
{
    const struct xlator *tested = g->top->type == tested_type ? g->top : g->top->children[0];

    scene.graph = g;
    for (unsigned i = 0; i < scene.count; i++)
        scene.child[i] = scene.has_pairs ? tested->children[i / 2]->children[i % 2] : tested->children[i];
}

static void
scene_begin_at(const struct xlator_type *type, const char *options, bool is_top)
{
    char error[256] = "";
    struct graph *g = scene_graph_new(type, options, is_top, error, sizeof error);

    if (!g)
        ck_abort_msg("%s", error);
    scene_take_graph(g);
    scene.is_cut = false;
    scene_arm(NULL, 0);
    must(graph_start(scene.graph) == 0);
    for (unsigned i = 0; i < scene.count; i++) {
        if (scene.stays_down & 1u << i)
            xlator_tell_parent(scene.child[i], CHILD_DOWN);
        else
            scene_child_up(i);
    }
    scene_run(0);
}

const char *
scene_refusal(const struct xlator_type *type, const char *options, bool is_top)
{
    static char error[256];

    error[0] = '\0';
    struct graph *g = scene_graph_new(type, options, is_top, error, sizeof error);

    if (!g)
        return error;
    scene_take_graph(g);
    int err = graph_start(g);

    if (!err)
        graph_drain(g);
    graph_free(g);
    scene.graph = NULL;
    if (!err)
        return NULL;
    snprintf(error, sizeof error, "start: %s", strerror(-err));
    return error;
}

int
scene_reconfigure(const char *options)
{
    char text[4096], error[256] = "";
    bool is_top = scene.graph->top->type == tested_type;
    size_t len = scene_volfile(text, sizeof text, tested_type, options, is_top);
    struct volfile *v = volfile_parse("scene.vol", text, len, error, sizeof error);

    return v ? graph_reconfigure(scene.graph, v, error, sizeof error) : -EINVAL;
}

void
scene_begin_beside(const char *options)
{
    char error[256] = "";
    bool is_top = scene.graph->top->type == tested_type;
    struct graph *g = scene_graph_new(tested_type, options, is_top, error, sizeof error);

    if (!g)
        ck_abort_msg("%s", error);
    scene.beside = scene.graph;
    scene_take_graph(g);
    must(graph_start(g) == 0);
    for (unsigned i = 0; i < scene.count; i++) {
        if (scene.is_up[i])
            scene_child_up(i);
    }
    scene_run(0);
}

void
scene_end_beside(bool ends_serving)
{
    struct graph *g = ends_serving ? scene.graph : scene.beside;
    uint16_t owner = g->owner;

    if (ends_serving)
        scene_take_graph(scene.beside);
    scene.beside = NULL;
    must(atomic_load(&g->pins) == 1);
    graph_drain(g);
    graph_free(g);
    must(mem_owner_balance(owner, NULL) == 0);
}

void
scene_begin(const struct xlator_type *type, const char *options)
{
    scene_begin_at(type, options, false);
}

void
scene_begin_top(const struct xlator_type *type, const char *options)
{
    scene_begin_at(type, options, true);
}

void
scene_end(void)
{
    uint16_t owner = scene.graph->owner;

    scene_arm(NULL, 0);
    fd_unref(scene.fd);
    scene.fd = NULL;
    scene_run(scene.is_cut ? 600 * 1000 : 5000); /* holds end; a dead mount gives up its debts */
    must(atomic_load(&scene.graph->pins) == 1);
    graph_drain(scene.graph);
    graph_free(scene.graph);
    must(mem_owner_balance(owner, NULL) == 0);
    scene.graph = NULL;
    for (unsigned i = 0; i < scene.count; i++) {
        locks_drop_child(i);
        scene.is_up[i] = false;
    }
}

/* ---- calls from the top ---------------------------------------------------------------------- */

static void
keep_xattr(const struct call_stack *stk)
{
    const char *name = stk->call.fop == FOP_getxattr && scene.ret >= 0 ? stk->call.name : NULL;
    const struct dict_pair *p = name && *name ? dict_find_text(stk->reply.dict, name) : NULL;

    if (!p || !pair_has_bytes(p))
        return;
    must(p->len <= sizeof scene.text);
    scene.text_len = p->len;
    memcpy(scene.text, p->v.bytes, p->len);
}

static void
keep_reply(struct fop_reply *r)
{
    const char *path = scene.ret >= 0 ? r->path : NULL;
    size_t at = 0;

    scene.stat = r->stat;
    scene.text_len = 0;
    if (path)
        scene.text_len = (unsigned)snprintf(scene.text, sizeof scene.text, "%s", path);
    if (r->iobuf && scene.ret > 0) {
        scene.text_len = (unsigned)scene.ret;
        memcpy(scene.text, r->payload.iov_base, scene.text_len);
    }
    scene.names[0] = '\0';
    for (const struct dirent_entry *e = scene.ret > 0 ? r->entries : NULL; e; e = e->next) {
        at += (size_t)snprintf(scene.names + at, sizeof scene.names - at, "%s/", e->name);
        scene.next_offset = e->off;
        scene.listed = e->iatt;
    }
    if (r->fd && scene.ret >= 0) {
        fd_unref(scene.fd);
        scene.fd = fd_ref(r->fd);
    }
}

static void
scene_answered(struct call_stack *stk)
{
    int64_t starve_at = starving_pause();

    must(!scene.is_answered);
    scene.is_answered = true;
    scene.was_dead = scene.is_cut;
    scene.ret = stk->reply.op_ret < 0 ? -stk->reply.op_errno : stk->reply.op_ret;
    keep_reply(&stk->reply);
    keep_xattr(stk);
    if (stk->call.fop == FOP_seek)
        scene.next_offset = stk->reply.offset;
    call_stack_free(stk);
    starving_resume(starve_at);
}

/* The client sends the time of a call to all children. */
static void
clocks_agree(void)
{
    int64_t latest = 0;

    for (unsigned i = 0; i < scene.count; i++)
        latest = scene.store[i].clock > latest ? scene.store[i].clock : latest;
    for (unsigned i = 0; i < scene.count; i++)
        scene.store[i].clock = latest;
}

int
scene_call(enum fop fop, void (*fill)(struct call_stack *stk), uint64_t ms)
{
    int64_t starve_at = starving_pause();
    struct call_stack *stk = call_stack_new(scene_answered, NULL);

    clocks_agree();
    scene.is_answered = false;
    stk->caller.pid = 1000;
    stk->call.fop = fop;
    stk->call.xdata = dict_new(&stk->arena);
    if (fill)
        fill(stk);
    starving_resume(starve_at);
    call_stack_wind(stk, scene.graph->top);
    scene_run(ms);
    if (!scene.is_answered)
        ck_abort_msg("%s hangs; locks: %s", fop_info[fop].name, store_locks_text());
    return scene.ret;
}

struct inode *
scene_inode(unsigned i, const char *path)
{
    struct stored_object *o = store_find(&scene.store[i], path);

    return o ? inode_link(scene.graph->inodes, NULL, NULL, &o->stat) : NULL;
}

struct inode *
scene_inode_of(const char *path)
{
    struct inode *inode = NULL;

    for (unsigned i = 0; i < scene.count && !inode; i++)
        inode = scene_inode(i, path);
    return inode;
}

/* ---- looking up every name ------------------------------------------------------------------- */

static const struct stored_name *looked_for;
static const struct store *looked_in;

static void
fill_lookup(struct call_stack *stk)
{
    struct gfid fresh = {.b = {0xdd, [15] = 1}};

    if (looked_for) {
        stk->call.loc.parent =
            inode_link(scene.graph->inodes, NULL, NULL, &looked_in->object[looked_for->dir].stat);
        stk->call.loc.name = looked_for->name;
        must(dict_set_gfid(stk->call.xdata, DICT_KEY_GFID_REQ, &fresh) == 0);
    } else {
        stk->call.loc.inode = inode_root(scene.graph->inodes);
    }
}

void
scene_lookup_all(void)
{
    looked_for = NULL;
    (void)scene_call(FOP_lookup, fill_lookup, 0);
    for (unsigned i = 0; i < scene.count; i++) {
        for (unsigned n = 0; n < STORED_NAMES_MAX; n++) {
            struct stored_name name = scene.store[i].name[n];

            if (!name.is_used || strncmp(name.name, ".glusterfs", 10) == 0)
                continue;
            looked_in = &scene.store[i];
            looked_for = &name;
            (void)scene_call(FOP_lookup, fill_lookup, 0);
        }
    }
}

/* ---- findings -------------------------------------------------------------------------------- */

char run_text[RUN_TEXT_BYTES];
unsigned findings;

void
run_say(const char *fmt, va_list ap)
{
    fprintf(stderr, "%s: ", run_text);
    vfprintf(stderr, fmt, ap);
    fprintf(stderr, "\n");
}

void
finding_add(const char *fmt, ...)
{
    va_list ap;

    if (++findings > 25)
        return;
    va_start(ap, fmt);
    run_say(fmt, ap);
    va_end(ap);
}
