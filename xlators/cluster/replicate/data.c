/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of a file's bytes: write, truncate, fallocate, discard, zerofill, and fsync.
 *
 *      join the hold      the hold's first writer has taken the lock and set dirty +1, or this writer does
 *                         (hold.c)
 *      change             on all children of the hold that have not failed
 *      reply              if no child has failed in the hold's mark or in the change, and the call came by an
 *                         open fd
 *      leave the hold     the hold keeps lock and mark for the next writer, or ends: FSYNC, marks, unlock
 *      reply              if a child has failed: the marks on the other children now record the missed
 *                         change. Also for a truncate by path: the caller's next call may remove the file's
 *                         last name, and then the mark could not be cleared
 *
 * A change that only some children have made is visible to other clients on these children, until the marks
 * after tell the clients which copies not to read. All changes except writes end the hold at once; but a
 * truncation to nothing of an open file keeps the hold, because writes follow. The kernel sends that
 * truncation by the path; the file is known to be open here if the hold has an fd, whose close ends the hold
 * and whose marks need no name. A write that was shorter on one child than on another has failed there.
 *
 * If the mount dies between such a truncation and the first write, all copies that have it are empty and have
 * a dirty mark, and healers clear the mark. If the mount dies during the truncation, or a brick does, the
 * state is that of a write at the same moment.
 *
 * The arbiter gets a single byte of each write, at the write's offset, and counts the change without storing
 * the byte. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "mem/iobuf.h"
#include "xlators/cluster/replicate/replicate-internal.h"

struct data_change {
    fan_call_fn call;
    uint64_t start, end;
    bool is_write, is_sync; /* is_sync: afterwards the children's data is on stable storage */
    bool empties;           /* truncates the file to nothing */
};

/* ---- results of a write ---------------------------------------------------------------------- */

static int32_t
longest_write(const struct fan *f)
{
    int32_t most = 0;

    for_each_child(i, f->good) most = f->ret[i] > most ? f->ret[i] : most;
    return most;
}

static bool
is_short_write(const struct fan *f, unsigned i)
{
    return f->ret[i] < longest_write(f);
}

static int64_t
reply_number(const struct call_stack *stk, enum dict_key key)
{
    int64_t n = 0;

    (void)dict_get_int(stk->reply.xdata, key, &n); /* missing key: 0 */
    return n;
}

static void
judge_write(const struct op *op, const struct data_change *c, const struct fan *f, uint64_t append_start,
            struct hold_outcome *o)
{
    bool is_sync = op->fd && op->fd->flags & (O_SYNC | O_DSYNC);

    o->breaks_append =
        c->is_write ? (uint64_t)longest_write(f) != c->end - c->start : !c->is_sync && !o->empties;
    if (c->is_write && f->unread)
        o->breaks_append = o->is_unsynced = true;
    for_each_child(i, f->good)
    {
        uint64_t before = f->stk[i]->reply.pre.size;

        o->had_none |= c->is_write && before == append_start ? CHILD(i) : 0;
        o->had_less |= c->is_write && before < append_start ? CHILD(i) : 0;
        if (reply_number(f->stk[i], DICT_KEY_INODELK_COUNT) > 1) /* another client waits for the lock */
            o->may_wait = false;
        if (c->is_write && !is_sync && reply_number(f->stk[i], DICT_KEY_WRITE_IS_APPEND) != 1)
            o->is_unsynced = true;
    }
}

/* Counts the arbiter's one byte as a complete write. */
static void
count_arbiter(const struct op *op, struct fan *f)
{
    int arbiter = op->r->arbiter;

    if (arbiter >= 0 && f->good & CHILD(arbiter) && f->ret[arbiter] == 1)
        f->ret[arbiter] = longest_write(f);
}

/* ---- all changes of data --------------------------------------------------------------------- */

static void
take_data_reply(struct op *op, struct fan *f, child_set good, int *err)
{
    int32_t most = longest_write(f);
    struct view v;
    child_set best = good;

    if (!op->stk)
        return;
    if (view_get(op->r, op->inode, &v) && v.data & good)
        best = v.data & good;
    *err = fan_take(f, op, view_choose(op->r, best, op->inode));
    op->stk->reply.op_ret = most;
}

/* Makes the change as a member of the hold, and sets *outcome for hold_leave(). Returns 0 or -errno. */
static int
change_held(struct op *op, const struct data_change *c, const struct writer *w, struct hold_outcome *outcome)
{
    child_set children = w->children;
    struct transaction t = {
        .op = op, .copies = {.what = CHANGE_DATA, .locked = children, .readable = w->readable}};
    struct fan f;
    int err = fan_ask(&f, op, children, c->call, NULL);

    if (err) {
        *outcome = (struct hold_outcome){.may_wait = c->is_write || c->is_sync, .breaks_append = true};
        return err;
    }
    if (c->is_write)
        count_arbiter(op, &f);
    err = transaction_judge(&t, &f, c->is_write ? is_short_write : NULL);
    child_set good = f.good & ~t.copies.failed;

    *outcome = (struct hold_outcome){
        .failed = t.copies.failed | w->unrecorded,
        .why = t.copies.why,
        .has_changed = fan_done(&f),
        .empties = c->empties && f.good == children && !t.copies.failed,
        .may_wait = c->is_write || c->is_sync || (c->empties && (op->file || w->has_fd))};
    if (t.is_in_vain)
        outcome->failed |= children;
    if (!err)
        take_data_reply(op, &f, good, &err);
    judge_write(op, c, &f, w->append_start, outcome);
    outcome->was_synced = c->is_sync && f.good == children;
    fan_end(&f);
    return err;
}

static void
reply_if_pending(struct op *op, int err)
{
    if (op->stk && err)
        op_fail(op, err);
    else if (op->stk)
        op_reply(op);
}

/* Makes the change. The caller may already have the reply on return. Returns 0 or -errno. */
static int
change_data(struct op *op, const struct data_change *c, bool may_reply)
{
    struct repl_inode *ri = repl_inode(op->r, op->inode);
    struct writer w = {.start = c->start, .end = c->end, .is_write = c->is_write};
    struct hold_outcome outcome;
    int err = ri ? op_admit(op, op->inode, CHANGE_DATA) : -ENOMEM;

    if (err)
        return err;
    err = op->file ? repl_fd_complete(op) : 0;
    if (err)
        return err;
    new_file_changed(ri, NEW_IS_WRITTEN | OPEN_IS_WRITTEN);
    err = hold_join(op, op->inode, &ri->hold, &w);
    if (err)
        return err;
    err = change_held(op, c, &w, &outcome);
    /* features/shard writes by anonymous fds, which are as good as open files: it syncs them itself */
    bool is_open = op->file || (op->fd && op->fd->is_anonymous) || (c->empties && w.has_fd);
    bool waits = outcome.failed || !op->is_pinned || !is_open;
    if (!waits && may_reply)
        reply_if_pending(op, err);
    int mark_err = hold_leave(op, &ri->hold, &w, &outcome, waits);
    return err ? err : waits ? mark_err : 0;
}

static void
data_change_go(struct op *op, const struct data_change *c)
{
    reply_if_pending(op, change_data(op, c, true));
}

/* ---- writes ---------------------------------------------------------------------------------- */

static int
ask_of_write(const struct op *op, struct call_stack *stk)
{
    struct dict *d = call_xdata(stk);
    int err = d ? dict_set_uint(d, DICT_KEY_OPEN_ACTIVE_FD_COUNT, 4) : -ENOMEM;

    if (!err)
        err = dict_set_str(d, DICT_KEY_INODELK_DOM_COUNT, op->r->xl->name);
    return err ? err : dict_set_uint(d, DICT_KEY_WRITE_IS_APPEND, 4);
}

/* Replaces the data by one byte at the same offset. */
static void
write_for_arbiter(struct call_stack *stk)
{
    static char byte = (char)0xff;

    iobuf_unref(stk->call.payload_iobuf);
    stk->call.payload_iobuf = NULL;
    stk->call.payload[0] = (struct iovec){&byte, 1};
    stk->call.payload_count = 1;
    stk->call.payload_bytes = stk->call.size = 1;
}

static struct call_stack *
write_make(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (stk && ask_of_write(op, stk)) {
        call_stack_free(stk);
        return NULL;
    }
    if (stk && (int)i == op->r->arbiter && stk->call.size)
        write_for_arbiter(stk);
    return stk;
}

/* The bricks choose the offset of an append, so an append excludes all other writers. */
void
writev_go(struct op *op)
{
    const struct fop_call *call = &op->stk->call;
    bool appends = call->flags & O_APPEND || (op->fd && op->fd->flags & O_APPEND);
    struct data_change c = {
        .call = write_make, .start = call->offset, .end = call->offset + call->size, .is_write = true};

    if (appends || c.end < c.start) {
        c.start = 0;
        c.end = UINT64_MAX;
    }
    data_change_go(op, &c);
}

/* ---- other changes --------------------------------------------------------------------------- */

/* Copies the call, and asks for the number of clients that wait for the lock. */
static struct call_stack *
counting_make(const struct op *op, unsigned i, const void *unused)
{
    struct call_stack *stk = op_fork(op, i);

    (void)unused;
    if (stk &&
        (!call_xdata(stk) || dict_set_str(stk->call.xdata, DICT_KEY_INODELK_DOM_COUNT, op->r->xl->name))) {
        call_stack_free(stk);
        return NULL;
    }
    return stk;
}

void
truncate_go(struct op *op)
{
    bool empties = (op->fop == FOP_truncate || op->fop == FOP_ftruncate) && !op->stk->call.offset;

    data_change_go(op, &(struct data_change){.call = empties ? counting_make : fan_fork,
                                             .start = op->stk->call.offset,
                                             .end = UINT64_MAX,
                                             .empties = empties});
}

/* Locks to the end of the file even if the range has an end, because the file may grow. */
void
allocate_go(struct op *op)
{
    truncate_go(op);
}

/* Waits for all writes that have joined the hold. */
void
fsync_go(struct op *op)
{
    data_change_go(op, &(struct data_change){.call = counting_make, .end = UINT64_MAX, .is_sync = true});
}

static struct call_stack *
truncate_opened_make(const struct op *op, unsigned i, const void *unused)
{
    (void)unused;
    return op_call(op, FOP_ftruncate, i);
}

/* op->file is the new file. The caller's call is the OPEN, whose reply is already complete, so the reply is
 * kept out of the change. */
int
data_truncate_opened(struct op *op)
{
    struct call_stack *stk = op->stk;
    struct data_change c = {.call = truncate_opened_make, .end = UINT64_MAX, .empties = true};

    op->stk = NULL;
    int err = change_data(op, &c, false);
    op->stk = stk;
    return err;
}
