/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Changes of a file's bytes: write, truncate, fallocate, discard, zerofill, and fsync.
 *
 *      join the hold      lock and dirty +1 were made by the first writer of it, or are made now (hold.c)
 *      change             on all children of the hold that have not failed
 *      reply              if none has failed in it, and the file is open here
 *      leave the hold     which keeps lock and mark for the next writer, or ends it: FSYNC, marks, unlock
 *      reply              if one has failed: its missing of the change is on the others' disks now. Or of a
 *                         truncate by path: what comes next may take the file's last name, and the mark of
 *                         what is no more could not be taken back
 *
 * A change that some children have done and others not is seen by other clients on those that have, until the
 * marks after tell them whom not to read. All but writes end the hold at once. A write that was shorter on
 * one child than on another has failed there.
 *
 * The arbiter is sent one byte of each write, at its place, for its count of it; it keeps no bytes. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>

#include "mem/iobuf.h"
#include "xlators/cluster/replicate/replicate-internal.h"

struct data_change {
    fan_call_fn call;
    uint64_t start, end;
    bool is_write, is_sync; /* is_sync: what is on the children is on their disks then */
};

/* ---- what the children say of a write -------------------------------------------------------- */

static int32_t
longest(const struct fan *f)
{
    int32_t most = 0;

    for_each_child(i, f->good) most = f->ret[i] > most ? f->ret[i] : most;
    return most;
}

static bool
is_short(const struct fan *f, unsigned i)
{
    return f->ret[i] < longest(f);
}

static int64_t
said(const struct call_stack *stk, enum dict_key key)
{
    int64_t n = 0;

    (void)dict_get_int(stk->reply.xdata, key, &n); /* not there: 0 */
    return n;
}

static void
judge_write(const struct op *op, const struct data_change *c, const struct fan *f, uint64_t append_start,
            struct hold_outcome *o)
{
    bool is_sync = op->fd && op->fd->flags & (O_SYNC | O_DSYNC);

    o->breaks_append = c->is_write ? (uint64_t)longest(f) != c->end - c->start : !c->is_sync;
    if (c->is_write && f->unread)
        o->breaks_append = o->is_unsynced = true;
    for_each_child(i, f->good)
    {
        uint64_t before = f->stk[i]->reply.pre.size;

        o->had_none |= c->is_write && before == append_start ? CHILD(i) : 0;
        o->had_less |= c->is_write && before < append_start ? CHILD(i) : 0;
        if (said(f->stk[i], DICT_KEY_INODELK_COUNT) > 1) /* another client waits for the lock */
            o->may_wait = false;
        if (c->is_write && !is_sync && said(f->stk[i], DICT_KEY_WRITE_IS_APPEND) != 1)
            o->is_unsynced = true;
    }
}

/* Its byte stands for all of them. */
static void
count_arbiter(const struct op *op, struct fan *f)
{
    int arbiter = op->r->arbiter;

    if (arbiter >= 0 && f->good & CHILD(arbiter) && f->ret[arbiter] == 1)
        f->ret[arbiter] = longest(f);
}

/* ---- all of them ----------------------------------------------------------------------------- */

static void
take_reply(struct op *op, struct fan *f, child_set good, int *err)
{
    int32_t most = longest(f);
    struct view v;
    child_set best = good;

    if (!op->stk)
        return;
    if (view_get(op->r, op->inode, &v) && v.data & good)
        best = v.data & good;
    *err = fan_take(f, op, view_choose(op->r, best, op->inode));
    op->stk->reply.op_ret = most;
}

/* As a member of the hold; then `outcome` is what it is left with. 0 or -errno. */
static int
change_held(struct op *op, const struct data_change *c, const struct writer *w, struct hold_outcome *outcome)
{
    child_set children = w->children;
    struct transaction t = {
        .op = op, .what = CHANGE_DATA, .locked = children, .readable = w->readable};
    struct fan f;
    int err = fan_ask(&f, op, children, c->call, NULL);

    if (err) {
        *outcome = (struct hold_outcome){.may_wait = c->is_write || c->is_sync, .breaks_append = true};
        return err;
    }
    if (c->is_write)
        count_arbiter(op, &f);
    err = transaction_judge(&t, &f, c->is_write ? is_short : NULL);
    child_set good = f.good & ~t.failed;

    *outcome = (struct hold_outcome){
        .failed = t.failed, .has_changed = fan_done(&f), .may_wait = c->is_write || c->is_sync};
    if (t.is_in_vain)
        outcome->failed = children;
    if (!err)
        take_reply(op, &f, good, &err);
    judge_write(op, c, &f, w->append_start, outcome);
    outcome->was_synced = c->is_sync && f.good == children;
    fan_end(&f);
    return err;
}

static void
answer(struct op *op, int err)
{
    if (op->stk && err)
        op_fail(op, err);
    else if (op->stk)
        op_reply(op);
}

/* 0 or -errno; the caller may have had its reply already. */
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
    new_file_changed(ri, NEW_IS_WRITTEN);
    err = hold_join(op, op->inode, &ri->hold, &w);
    if (err)
        return err;
    err = change_held(op, c, &w, &outcome);
    bool waits = outcome.failed || !op->is_pinned || !op->file;
    if (!waits && may_reply)
        answer(op, err);
    int mark_err = hold_leave(op, &ri->hold, &w, &outcome, waits);
    return err ? err : waits ? mark_err : 0;
}

static void
change_go(struct op *op, const struct data_change *c)
{
    answer(op, change_data(op, c, true));
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

/* One byte stands for all. */
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
write_call(const struct op *op, unsigned i, const void *unused)
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

/* What is appended has its place on the bricks: nobody else may write meanwhile. */
void
writev_go(struct op *op)
{
    const struct fop_call *call = &op->stk->call;
    bool appends = call->flags & O_APPEND || (op->fd && op->fd->flags & O_APPEND);
    struct data_change c = {
        .call = write_call, .start = call->offset, .end = call->offset + call->size, .is_write = true};

    if (appends || c.end < c.start) {
        c.start = 0;
        c.end = UINT64_MAX;
    }
    change_go(op, &c);
}

/* ---- the others ------------------------------------------------------------------------------ */

void
truncate_go(struct op *op)
{
    change_go(op, &(struct data_change){.call = fan_fork, .start = op->stk->call.offset, .end = UINT64_MAX});
}

/* Also where the range has an end: the file may get longer. */
void
allocate_go(struct op *op)
{
    truncate_go(op);
}

static struct call_stack *
fsync_call(const struct op *op, unsigned i, const void *unused)
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

/* After all writes there are. */
void
fsync_go(struct op *op)
{
    change_go(op, &(struct data_change){.call = fsync_call, .end = UINT64_MAX, .is_sync = true});
}

static struct call_stack *
truncate_opened_call(const struct op *op, unsigned i, const void *unused)
{
    (void)unused;
    return op_call(op, FOP_ftruncate, i);
}

/* op->file is the new file; the caller's call is the OPEN, whose reply is there already. */
int
data_truncate_opened(struct op *op)
{
    struct call_stack *stk = op->stk;
    struct data_change c = {.call = truncate_opened_call, .end = UINT64_MAX};

    op->stk = NULL;
    int err = change_data(op, &c, false);
    op->stk = stk;
    return err;
}
