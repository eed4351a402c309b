/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "fs/inode.h"
#include "graph/graph.h"
#include "stack/coro-call.h"
#include "xlators/cluster/old-clients.h"

#define MS UINT64_C(1000000)

enum { ROLL_BYTES_MAX = 4 * 1024 * 1024 }; /* of a brick: some 40,000 logins */

/* A login at a brick. */
struct roll_line {
    const char *text; /* without a NUL, on the roll's arena */
    size_t len, process_len; /* process_len: of the part that names the process */
    unsigned child, brick;
};

struct roll {
    const struct client_watch *w;
    struct arena arena;
    struct roll_line *line; /* on the heap */
    size_t count, room;
    bool *has_told;        /* indexed by child, on the arena */
    unsigned needed;       /* children that are needed and have told their clients */
    unsigned child, brick; /* the ones being asked */
};

static bool
is_needed(const struct roll *r, unsigned child)
{
    return r->has_told[child] && (!r->w->needs || r->w->needs[child]);
}

/* ---- asking ---------------------------------------------------------------------------------- */

static struct roll_line *
roll_add(struct roll *r)
{
    if (r->count == r->room) {
        size_t room = r->room ? 2 * r->room : 64;
        struct roll_line *line = realloc(r->line, room * sizeof *line);

        if (!line)
            return NULL;
        r->line = line;
        r->room = room;
    }
    return &r->line[r->count++];
}

static int
roll_add_lines(struct roll *r, const char *text, size_t len)
{
    const char *end = text + len, *newline;

    for (; text < end && (newline = memchr(text, '\n', (size_t)(end - text))); text = newline + 1) {
        const char *graph = memmem(text, (size_t)(newline - text), "-GRAPH_ID:", 10);
        struct roll_line *line = graph ? roll_add(r) : NULL;

        if (graph && !line)
            return -ENOMEM;
        if (line)
            *line = (struct roll_line){text, (size_t)(newline - text), (size_t)(graph - text), r->child,
                                       r->brick};
    }
    return 0;
}

/* Returns 1: the brick has told its clients; 0: the brick does not; or -ENOMEM. */
static int
roll_take(struct roll *r, const struct call_stack *stk)
{
    const struct dict_pair *p = dict_find(stk->reply.dict, DICT_KEY_CLIENTS);

    if (!p || (p->type != DICT_PTR && p->type != DICT_UNTYPED) || p->len > ROLL_BYTES_MAX)
        return 0;
    char *text = arena_alloc(&r->arena, p->len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, p->v.bytes, p->len);
    int err = roll_add_lines(r, text, p->len);
    return err ? err : 1;
}

static int
roll_ask_brick(struct roll *r, struct xlator *brick)
{
    struct call_stack *stk = coro_call_new();
    int told = 0;

    if (!stk)
        return -ENOMEM;
    stk->caller.pid = PID_SELF_HEAL;
    stk->call.fop = FOP_getxattr;
    stk->call.loc.inode = inode_root(brick->graph->inodes);
    stk->call.name = dict_key_text(DICT_KEY_CLIENTS);
    stk->call.has_name = 1;
    if (coro_call(stk, brick) >= 0)
        told = roll_take(r, stk);
    call_stack_free(stk);
    return told;
}

/* Asks each brick below the layer, or the layer, if it has no children. Returns 1: a brick has told its
 * clients; 0: none has; or -ENOMEM. */
static int
roll_ask_below(struct roll *r, struct xlator *xl)
{
    int told = 0;

    if (xl->child_count == 0) {
        r->brick++;
        return roll_ask_brick(r, xl);
    }
    for (unsigned i = 0; i < xl->child_count && told >= 0; i++) {
        int one = roll_ask_below(r, xl->children[i]);

        told = one ? one : told;
    }
    return told;
}

/* ---- judging --------------------------------------------------------------------------------- */

static int
compare_roll_lines(const void *a, const void *b)
{
    const struct roll_line *x = a, *y = b;
    int order = memcmp(x->text, y->text, x->len < y->len ? x->len : y->len);

    if (order || x->len != y->len)
        return order ? order : x->len < y->len ? -1 : 1;
    return x->child < y->child ? -1 : x->child > y->child;
}

static bool
is_same_graph(const struct roll_line *a, const struct roll_line *b)
{
    return a->len == b->len && memcmp(a->text, b->text, a->len) == 0;
}

static bool
is_same_process(const struct roll_line *a, const struct roll_line *b)
{
    return a->process_len == b->process_len && memcmp(a->text, b->text, a->process_len) == 0;
}

/* Returns whether each login of the process, lines `first` to `end`, has a graph number of its own. */
static bool
numbers_its_logins(const struct roll *r, size_t first, size_t end)
{
    bool has_several_bricks = false;

    for (size_t i = first + 1; i < end; i++) {
        if (is_same_graph(&r->line[i - 1], &r->line[i]))
            return false;
        has_several_bricks |= r->line[i].brick != r->line[first].brick;
    }
    return has_several_bricks;
}

static unsigned
count_logins(const struct roll *r, size_t first, size_t end, unsigned child)
{
    unsigned n = 0;

    for (size_t i = first; i < end; i++)
        n += r->line[i].child == child;
    return n;
}

/* Returns a line of a process that numbers its logins, if the process has more logins at some child than at a
 * needed child; else NULL. *has_new: the process has logins at all needed children. */
static const struct roll_line *
find_old_login(const struct roll *r, size_t first, size_t end, bool *has_new)
{
    unsigned least = UINT32_MAX, most = 0;

    if (r->w->spares_numbered)
        return NULL;
    for (unsigned c = 0; c < r->w->xl->child_count; c++) {
        unsigned n = count_logins(r, first, end, c);

        most = n > most ? n : most;
        least = n < least && is_needed(r, c) ? n : least;
    }
    *has_new = least > 0;
    return least < most ? &r->line[first] : NULL;
}

/* Returns the line of a graph of the process that is not logged in to all needed children; NULL: none.
 * *has_new: another graph of the process is. */
static const struct roll_line *
find_old_graph(const struct roll *r, size_t first, size_t end, bool *has_new)
{
    const struct roll_line *old = NULL;
    unsigned has = 0;

    *has_new = false;
    for (size_t i = first; i < end; i++) {
        bool begins = i == first || !is_same_graph(&r->line[i - 1], &r->line[i]);
        bool ends = i + 1 == end || !is_same_graph(&r->line[i], &r->line[i + 1]);
        bool is_other_child = begins || r->line[i].child != r->line[i - 1].child;

        has = (begins ? 0 : has) + (is_other_child && is_needed(r, r->line[i].child));
        if (ends && has < r->needed)
            old = &r->line[i];
        else if (ends)
            *has_new = true;
    }
    return old;
}

/* A client without a new graph comes before a client that changes its graph. */
static enum old_client
find_old_client(const struct roll *r, const struct roll_line **out)
{
    enum old_client found = CLIENTS_NEW;
    size_t first = 0;

    for (size_t i = 1; i <= r->count && found != CLIENT_OLD; i++) {
        if (i < r->count && is_same_process(&r->line[first], &r->line[i]))
            continue;
        bool has_new = false;
        const struct roll_line *old = numbers_its_logins(r, first, i)
                                          ? find_old_login(r, first, i, &has_new)
                                          : find_old_graph(r, first, i, &has_new);

        if (old && (!has_new || found == CLIENTS_NEW)) {
            *out = old;
            found = has_new ? CLIENT_CHANGES : CLIENT_OLD;
        }
        first = i;
    }
    return found;
}

/* Writes the process and the host of "...-PID:P-HOST:H", in printable ASCII. */
static void
describe_client(const struct roll_line *line, char *who, size_t size)
{
    const char *end = line->text + line->len;
    const char *pid = memmem(line->text, line->len, "-PID:", 5);
    const char *host = pid ? memmem(pid, (size_t)(end - pid), "-HOST:", 6) : NULL;

    if (host)
        snprintf(who, size, "process %.*s on %.*s", (int)(host - pid - 5), pid + 5, (int)(end - host - 6),
                 host + 6);
    else
        snprintf(who, size, "%.*s", (int)line->len, line->text);
    for (; *who; who++) {
        if (*who < ' ' || *who > '~')
            *who = '?';
    }
}

/* Returns 0 or -ENOMEM. */
static int
roll_call(struct roll *r)
{
    struct xlator *xl = r->w->xl;
    int ret = 0;

    r->has_told = arena_zalloc(&r->arena, xl->child_count * sizeof *r->has_told);
    if (!r->has_told)
        return -ENOMEM;
    for (unsigned i = 0; i < xl->child_count && ret >= 0; i++) {
        r->child = i;
        ret = roll_ask_below(r, xl->children[i]);
        r->has_told[i] = ret > 0;
        r->needed += is_needed(r, i);
    }
    return ret < 0 ? ret : 0;
}

int
old_clients_find(struct client_watch *w)
{
    struct roll r = {.w = w};
    const struct roll_line *old = NULL;
    int ret = roll_call(&r);

    if (!ret) {
        if (r.count)
            qsort(r.line, r.count, sizeof *r.line, compare_roll_lines);
        ret = (int)find_old_client(&r, &old);
    }
    w->who[0] = '\0';
    if (old)
        describe_client(old, w->who, sizeof w->who);
    free(r.line);
    arena_release(&r.arena);
    return ret;
}

bool
client_watch_look(struct client_watch *w)
{
    int found = old_clients_find(w);
    uint64_t now = clock_mono_ns();

    if (found != CLIENT_CHANGES)
        w->changing_ns = 0;
    else if (!w->changing_ns)
        w->changing_ns = now;
    return found == CLIENTS_NEW || (found == CLIENT_CHANGES && now - w->changing_ns >= CHANGING_MS * MS);
}
