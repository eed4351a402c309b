/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The slowest calls of a brick in the last ten minutes, each with the durations of its stages.
 *
 *      arrived       began                                              answered        reply gone
 *         |  worker    |  queue   disk   locks   disk  (in any order)      |    reply      |
 *         '------------'--------------------------------------------------'---------------'
 *
 * When a call ends, it is compared with two words of its brick: the duration of the least slow call of a full
 * list, and the time at which the oldest call expires. Only a call that passes takes the brick's
 * latency_lock. So a full list costs a call a few instructions; a list that is not full costs calls of more
 * than 100 us a lock. The waiting times are taken by the layers that make a call wait (call_stack_waits()),
 * never for a call that does not wait. The connection reports when the reply has left, after the call has
 * been freed (base/moment.h).
 *
 * A brick without such calls uses no memory; a full list is some 6 KB. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/moment.h"
#include "fs/brick-client.h"
#include "graph/graph.h"
#include "log/dump.h"
#include "log/escape.h"
#include "xlators/debug/io-stats/io-stats-internal.h"

#define FLOOR_NS 100000
#define WINDOW_NS UINT64_C(600000000000)

const char *const io_stats_stage_names[STAGES] = {"worker", "queue", "locks", "disk", "reply"};

/* Ticks, except the fields that io_stats_slow has as well. */
struct slow_call {
    uint64_t ended, total, stages[STAGE_REPLY];
    struct moment *replied; /* NULL: the time is not reported */
    struct gfid object;     /* if `name` is set: the folder that contains the name */
    uint64_t bytes;
    int32_t pid;
    int err;
    enum fop fop;
    char name[96], client[160];
};

struct slow_list {
    unsigned count, room;
    struct slow_call calls[];
};

/* ---- one call -------------------------------------------------------------------------------- */

static uint64_t
total_of(const struct call_stack *stk, uint64_t now)
{
    uint64_t total = now - (stk->arrived ? stk->arrived : stk->began);

    return (int64_t)total < 0 ? 0 : total; /* the counters of two processors may differ */
}

static void
set_object(struct slow_call *c, const struct fop_call *call)
{
    const struct inode *inode = call->loc.inode ? call->loc.inode : call->fd ? call->fd->inode : NULL;

    if (call->loc.name && call->loc.parent) {
        c->object = call->loc.parent->gfid;
        snprintf(c->name, sizeof c->name, "%s", call->loc.name);
    } else if (inode) {
        c->object = inode->gfid;
    }
}

/* Sets the stages before the reply. Their sum is the total. */
static void
set_stages(struct slow_call *c, const struct call_stack *stk)
{
    uint64_t worker = stk->arrived && stk->began > stk->arrived ? stk->began - stk->arrived : 0;
    uint64_t known = worker + stk->waited[WAIT_QUEUE] + stk->waited[WAIT_LOCKS];

    c->stages[STAGE_WORKER] = worker;
    c->stages[STAGE_QUEUE] = stk->waited[WAIT_QUEUE];
    c->stages[STAGE_LOCKS] = stk->waited[WAIT_LOCKS];
    c->stages[STAGE_DISK] = c->total > known ? c->total - known : 0;
}

static void
set_call(struct slow_call *c, const struct call_stack *stk, uint64_t now)
{
    const struct fop_reply *reply = &stk->reply;

    *c = (struct slow_call){.ended = now, .total = total_of(stk, now), .pid = stk->caller.pid};
    c->fop = stk->call.fop;
    c->err = reply->op_ret < 0 ? reply->op_errno : 0;
    if (c->fop == FOP_writev)
        c->bytes = stk->call.payload_bytes;
    else if (c->fop == FOP_readv && reply->op_ret > 0)
        c->bytes = (uint64_t)reply->op_ret;
    set_object(c, &stk->call);
    set_stages(c, stk);
    snprintf(c->client, sizeof c->client, "%s", stk->client ? stk->client->uid : "");
}

/* ---- the list: under latency_lock ------------------------------------------------------------ */

static void
drop_old(struct slow_list *l, uint64_t now)
{
    uint64_t window = ticks_of_ns(WINDOW_NS);

    for (unsigned i = 0; i < l->count;) {
        if ((int64_t)(now - l->calls[i].ended) <= (int64_t)window) {
            i++;
            continue;
        }
        moment_unref(l->calls[i].replied);
        l->calls[i] = l->calls[--l->count];
    }
}

static struct slow_call *
least_slow(struct slow_list *l)
{
    struct slow_call *c = &l->calls[0];

    for (unsigned i = 1; i < l->count; i++)
        c = l->calls[i].total < c->total ? &l->calls[i] : c;
    return c;
}

static void
set_words(struct ios *ios, struct slow_list *l)
{
    uint64_t floor = ticks_of_ns(FLOOR_NS), until = UINT64_MAX;

    if (l && l->count == IO_STATS_SLOW_MAX)
        floor = least_slow(l)->total;
    for (unsigned i = 0; l && i < l->count; i++) {
        uint64_t end = l->calls[i].ended + ticks_of_ns(WINDOW_NS);

        until = end < until ? end : until;
    }
    atomic_store_explicit(&ios->slow_floor, floor, memory_order_relaxed);
    atomic_store_explicit(&ios->slow_until, until, memory_order_relaxed);
}

/* Returns room for one more call, contents undefined: a new entry, or that of the least slow call. NULL: the
 * call is not slow enough, or there is no memory. */
static struct slow_call *
take_room(struct ios *ios, uint64_t total)
{
    struct slow_list *l = ios->slow;

    if (l && l->count == IO_STATS_SLOW_MAX) {
        struct slow_call *c = least_slow(l);

        if (c->total >= total)
            return NULL;
        moment_unref(c->replied);
        return c;
    }
    if (!l || l->count == l->room) {
        unsigned room = l ? 2 * l->room : 4;
        struct slow_list *grown = realloc(l, sizeof *l + room * sizeof l->calls[0]);

        if (!grown)
            return NULL;
        grown->count = l ? grown->count : 0;
        grown->room = room;
        ios->slow = l = grown;
    }
    return &l->calls[l->count++];
}

void
ios_slow_look(struct ios *ios, struct call_stack *stk, uint64_t now)
{
    uint64_t total = total_of(stk, now);

    pthread_mutex_lock(&ios->latency_lock);
    if (ios->slow)
        drop_old(ios->slow, now);
    struct slow_call *c = total > ticks_of_ns(FLOOR_NS) ? take_room(ios, total) : NULL;
    if (c) {
        set_call(c, stk, now);
        /* only an owner that embeds call stacks reports when replies have left */
        c->replied = stk->keeper && !stk->replied ? moment_new() : NULL;
        stk->replied = c->replied ? moment_ref(c->replied) : stk->replied;
    }
    set_words(ios, ios->slow);
    pthread_mutex_unlock(&ios->latency_lock);
}

void
ios_slow_init(struct ios *ios)
{
    set_words(ios, NULL);
}

void
ios_slow_fini(struct ios *ios)
{
    for (unsigned i = 0; ios->slow && i < ios->slow->count; i++)
        moment_unref(ios->slow->calls[i].replied);
    free(ios->slow);
}

/* ---- reporting ------------------------------------------------------------------------------- */

/* Writes the object's path, or as much of it as is known. */
static void
name_object(struct xlator *xl, const struct slow_call *c, char *out, size_t size)
{
    struct inode *inode = inode_find(xl->graph->inodes, &c->object);
    bool has_path = inode && inode_path(inode, out, size) == 0;

    inode_unref(inode);
    if (!has_path && gfid_is_null(&c->object))
        snprintf(out, size, "-");
    else if (!has_path)
        snprintf(out, size, "<gfid:%s>", GFID(&c->object));
    size_t len = strlen(out);
    if (*c->name)
        snprintf(out + len, size - len, "%s%s", len && out[len - 1] == '/' ? "" : "/", c->name);
}

/* `sent` 0: not known. */
static uint64_t
reply_ns(const struct slow_call *c, uint64_t sent)
{
    return sent ? ticks_to_ns(sent - c->ended) : 0;
}

static uint64_t
total_ns(const struct slow_call *c, uint64_t sent)
{
    return ticks_to_ns(c->total) + reply_ns(c, sent);
}

static void
slow_fill(struct xlator *xl, const struct slow_call *c, uint64_t now, uint64_t sent,
          struct io_stats_slow *out)
{
    *out = (struct io_stats_slow){.fop = c->fop,
                                  .err = c->err,
                                  .is_sent = sent != 0,
                                  .age_ns = ticks_to_ns(now - c->ended),
                                  .bytes = c->bytes,
                                  .pid = c->pid};
    for (unsigned i = 0; i < STAGE_REPLY; i++)
        out->stage_ns[i] = ticks_to_ns(c->stages[i]);
    out->stage_ns[STAGE_REPLY] = reply_ns(c, sent);
    out->total_ns = total_ns(c, sent);
    snprintf(out->client, sizeof out->client, "%s", c->client);
    name_object(xl, c, out->object, sizeof out->object);
}

static int
slowest_first(const void *a, const void *b)
{
    const struct io_stats_slow *x = a, *y = b;

    return (x->total_ns < y->total_ns) - (x->total_ns > y->total_ns);
}

/* Copies the calls, and returns their number. */
static unsigned
copy_calls(struct xlator *xl, struct slow_call calls[IO_STATS_SLOW_MAX], uint64_t sent[IO_STATS_SLOW_MAX],
           uint64_t now)
{
    struct ios *ios = xl->private;
    unsigned count = 0;

    pthread_mutex_lock(&ios->latency_lock);
    if (ios->slow) {
        drop_old(ios->slow, now);
        set_words(ios, ios->slow);
        count = ios->slow->count;
        memcpy(calls, ios->slow->calls, count * sizeof calls[0]);
    }
    for (unsigned i = 0; i < count; i++)
        sent[i] = calls[i].replied ? atomic_load_explicit(&calls[i].replied->ticks, memory_order_relaxed) : 0;
    pthread_mutex_unlock(&ios->latency_lock);
    return count;
}

/* Looks up the names without latency_lock, because they are protected by another lock. */
unsigned
io_stats_slowest(struct xlator *xl, struct io_stats_slow out[IO_STATS_SLOW_MAX])
{
    struct slow_call calls[IO_STATS_SLOW_MAX];
    uint64_t sent[IO_STATS_SLOW_MAX], now = ticks_now();
    unsigned count = copy_calls(xl, calls, sent, now);

    for (unsigned i = 0; i < count; i++)
        slow_fill(xl, &calls[i], now, sent[i], &out[i]);
    qsort(out, count, sizeof *out, slowest_first);
    return count;
}

unsigned
io_stats_slowest_ns(struct xlator *xl, uint64_t out[IO_STATS_SLOW_MAX])
{
    struct slow_call calls[IO_STATS_SLOW_MAX];
    uint64_t sent[IO_STATS_SLOW_MAX];
    unsigned count = copy_calls(xl, calls, sent, ticks_now());

    for (unsigned i = 0; i < count; i++)
        out[i] = total_ns(&calls[i], sent[i]);
    return count;
}

/* "fop=writev total_us=2300 worker_us=0 ... object=/dir/file". The object comes last because it may contain
 * blanks. */
void
ios_slow_dump(struct xlator *xl, struct dump *dump)
{
    struct io_stats_slow *all = malloc(IO_STATS_SLOW_MAX * sizeof *all);
    unsigned count = all ? io_stats_slowest(xl, all) : 0;

    for (unsigned i = 0; i < count; i++) {
        const struct io_stats_slow *s = &all[i];
        char key[32], stages[160], client[4 * sizeof s->client];
        size_t at = 0;

        for (unsigned k = 0; k < STAGES; k++)
            at += (size_t)snprintf(stages + at, sizeof stages - at, " %s_us=%" PRIu64,
                                   io_stats_stage_names[k], s->stage_ns[k] / 1000);
        snprintf(key, sizeof key, "slow.%u", i);
        log_escape_field(client, sizeof client, s->client);
        dump_line(dump, key,
                  "fop=%s total_us=%" PRIu64 "%s age_s=%" PRIu64 " bytes=%" PRIu64
                  " errno=%d pid=%d client=%s object=%s",
                  fop_info[s->fop].name, s->total_ns / 1000, stages, s->age_ns / 1000000000, s->bytes, s->err,
                  s->pid, *client ? client : "-", s->object);
    }
    free(all);
}
