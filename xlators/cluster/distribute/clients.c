/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The clients of the bricks, and the search for a client that works with an old list of bricks.
 *
 * After bricks were added a client works with its old graph until it has fetched the new volfile and has
 * opened its files in the new graph. The old graph lacks the added subvolumes:
 *
 *   - A write of a file that is being moved to such a subvolume is made on the source only, because the
 *     client does not know the xattr linkto's target. A stock client reports success, so the write would be
 *     lost when the copy becomes the file.
 *   - A folder's layout has a hole for the client. The client creates files where other clients do not look.
 *
 * So a rebalance begins when no such client is left. Each brick tells which processes and graphs are logged
 * in (protocol/server/roll.c). A graph that is logged in to some subvolumes, but not to all, is old, or
 * cannot reach a subvolume. Subvolumes whose bricks do not tell, or tell more than ROLL_BYTES_MAX, are not
 * counted.
 *
 * A stock client keeps the old graph beside the new one until an application calls, and makes that call in
 * the new graph. So a client that has both graphs is idle, or has its last calls in the old graph under way;
 * the walk gives such a client some seconds for them.
 *
 * kiln-mount gives each of its logins another graph number. It needs no wait, because it marks a file whose
 * change it cannot repeat on the copy (file.c). A process is taken for one if all its graphs have one login
 * each, on several bricks.
 *
 * Not found: a client that fetched the volfile before the change, and logs in after the last look. kilnd has
 * then told the client of the change already, and the walk looks again before each folder. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "xlators/cluster/distribute/distribute-internal.h"

enum { ROLL_BYTES_MAX = 4 * 1024 * 1024 }; /* of a brick: some 40,000 logins */

/* A login at a brick. */
struct roll_line {
    const char *text; /* without a NUL, on the operation's arena */
    size_t len, process_len; /* process_len: of the part that names the process */
    unsigned child, brick;
};

struct roll {
    const struct op *o;
    struct roll_line *line; /* on the heap */
    size_t count, room;
    unsigned children; /* that have told their clients */
    unsigned child, brick; /* the ones being asked */
};

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
    char *text = arena_alloc(&r->o->stk->arena, p->len + 1);
    if (!text)
        return -ENOMEM;
    memcpy(text, p->v.bytes, p->len);
    int err = roll_add_lines(r, text, p->len);
    return err ? err : 1;
}

static int
roll_ask_brick(struct roll *r, struct xlator *brick)
{
    struct inode *root = inode_root(r->o->d->xl->graph->inodes);
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(r->o, FOP_getxattr), root);
    int told = stk ? 0 : -ENOMEM;

    inode_unref(root);
    if (stk) {
        stk->call.name = dict_key_text(DICT_KEY_CLIENTS);
        stk->call.has_name = 1;
        if (coro_call(stk, brick) >= 0)
            told = roll_take(r, stk);
        call_stack_free(stk);
    }
    return told;
}

/* Asks each brick below the layer. Returns 1: a brick has told its clients; 0: none has; or -ENOMEM. */
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

/* Returns the line of a graph of the process that is not logged in to all subvolumes; NULL: none. *has_new:
 * another graph of the process is. */
static const struct roll_line *
find_old_graph(const struct roll *r, size_t first, size_t end, bool *has_new)
{
    const struct roll_line *old = NULL;
    unsigned children = 0;

    *has_new = false;
    for (size_t i = first; i < end; i++) {
        bool begins = i == first || !is_same_graph(&r->line[i - 1], &r->line[i]);
        bool ends = i + 1 == end || !is_same_graph(&r->line[i], &r->line[i + 1]);

        children = begins ? 1 : children + (r->line[i].child != r->line[i - 1].child);
        if (ends && children < r->children)
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
    bool has_new;

    for (size_t i = 1; i <= r->count && found != CLIENT_OLD; i++) {
        if (i < r->count && is_same_process(&r->line[first], &r->line[i]))
            continue;
        const struct roll_line *old =
            numbers_its_logins(r, first, i) ? NULL : find_old_graph(r, first, i, &has_new);

        if (old && (!has_new || found == CLIENTS_NEW)) {
            *out = old;
            found = has_new ? CLIENT_CHANGES : CLIENT_OLD;
        }
        first = i;
    }
    return found;
}

/* Writes the process and the host of "...-PID:P-HOST:H". */
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
}

int
clients_find_old(const struct op *o, char *who, size_t size)
{
    struct roll r = {.o = o};
    const struct roll_line *old = NULL;
    int ret = 0;

    for (unsigned i = 0; i < o->d->count && ret >= 0; i++) {
        r.child = i;
        ret = roll_ask_below(&r, o->d->child[i].xl);
        r.children += ret > 0;
    }
    if (ret >= 0) {
        if (r.count)
            qsort(r.line, r.count, sizeof *r.line, compare_roll_lines);
        ret = (int)find_old_client(&r, &old);
    }
    if (old)
        describe_client(old, who, size);
    free(r.line);
    return ret;
}
