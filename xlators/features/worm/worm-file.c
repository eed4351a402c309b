/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Retention of single files. The state on disk is the same as stock's:
 *
 *   trusted.worm_file    "1": created while worm-file-level was on; other files are left alone
 *   trusted.start_time   time of creation, seconds
 *   trusted.reten_state  "state/period/auto-commit-period" once the file is committed
 *
 * A file is committed by a chmod that removes all write permissions, or by the first attempt to change it
 * once it is as old as auto-commit-period (the fd that created it stays writable until then). After the
 * commit, the file's access time is the end of its retention, and neither the file nor its names can be
 * changed. The first attempt to change it after that time ends the retention: then the file may be removed
 * (worm-files-deletable), but not changed.
 *
 * The layer reads and writes this state with internal calls below itself, while the client's call is parked.
 * State that depends on the client's permission for the change is written after the client's call has
 * succeeded. */
#include "xlators/features/worm/worm-file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "fs/fd.h"
#include "fs/inode.h"

#define OWN_PID (-2)
#define WRITE_BITS 0222
#define MADE_IT ((uint32_t)O_CREAT) /* flag of an fd that created its file: storage never sets it */

enum { STATE_WORM = 1, STATE_RETAINED = 2, STATE_LEGAL_HOLD = 4, STATE_ENTERPRISE = 8 };

struct file {
    bool is_worm_file, has_state;
    int64_t start, period, commit_period;
    unsigned state;
    struct iatt stat;
};

/* A client's call and the internal calls made for it. Lies on the call's arena. */
struct work {
    struct xlator *xl;
    struct call_stack *stk;
    struct inode *inode; /* the file; the call's reference */
    struct fd *fd;       /* the fd, or NULL; the call's reference */
    struct file file;
    void (*looked)(struct work *w, int err);
    /* State to be written: a text for reten_state (or NULL: only the mark of a worm file), and an access
     * time. */
    char state[64];
    bool has_state, has_atime;
    int64_t atime;
    void (*noted)(struct work *w, int err);
};

/* ---- internal calls -------------------------------------------------------------------------- */

static struct call_stack *
worm_own_call(struct work *w, enum fop fop, enum fop fd_fop, void (*done)(struct call_stack *))
{
    struct call_stack *own = call_stack_new(done, w);

    if (!own || !(own->call.xdata = dict_new(&own->arena)) || !(own->call.dict = dict_new(&own->arena))) {
        if (own)
            call_stack_free(own);
        return NULL;
    }
    own->caller.pid = OWN_PID;
    own->call.fop = w->fd ? fd_fop : fop;
    own->call.fd = w->fd ? fd_ref(w->fd) : NULL;
    own->call.loc.inode = inode_ref(w->inode);
    own->call.gfid = w->inode->gfid;
    return own;
}

static int
own_result(struct call_stack *own)
{
    int err = own->reply.op_ret < 0 ? -own->reply.op_errno : 0;

    call_stack_free(own);
    return err;
}

/* Copies the value of an xattr and terminates it, because an xattr's bytes have no NUL. */
static bool
xattr_text(const struct dict *d, enum dict_key key, char text[64])
{
    const struct dict_pair *p = dict_find(d, key);

    if (!p || (p->type != DICT_PTR && p->type != DICT_STR && p->type != DICT_UNTYPED) || p->len >= 64)
        return false;
    memcpy(text, p->v.bytes, p->len);
    text[p->len] = '\0';
    return true;
}

/* An unreadable value counts in the protective way: a creation time of 0, a state of committed. */
static void
file_parse(struct file *f, const struct fop_reply *r)
{
    char text[64];
    long long period = 0, commit = 0, start = 0;

    *f = (struct file){.stat = r->stat};
    f->is_worm_file = dict_has(r->xdata, DICT_KEY_WORM_FILE);
    if (xattr_text(r->xdata, DICT_KEY_WORM_START, text) && sscanf(text, "%lld", &start) == 1)
        f->start = start;
    f->has_state = dict_has(r->xdata, DICT_KEY_WORM_STATE);
    if (!f->has_state)
        return;
    if (!xattr_text(r->xdata, DICT_KEY_WORM_STATE, text) ||
        sscanf(text, "%u/%lld/%lld", &f->state, &period, &commit) != 3)
        f->state = STATE_WORM | STATE_LEGAL_HOLD;
    f->period = period < 0 || period > r->stat.atime ? 0 : period;
    f->commit_period = commit;
}

static void
look_done(struct call_stack *own)
{
    struct work *w = own->owner;

    if (own->reply.op_ret >= 0)
        file_parse(&w->file, &own->reply);
    w->looked(w, own_result(own));
}

static void
worm_look(struct work *w, void (*looked)(struct work *w, int err))
{
    struct call_stack *own = worm_own_call(w, FOP_stat, FOP_fstat, look_done);

    w->looked = looked;
    if (own && dict_set_int(own->call.xdata, DICT_KEY_WORM_FILE, 0) == 0 &&
        dict_set_int(own->call.xdata, DICT_KEY_WORM_START, 0) == 0 &&
        dict_set_int(own->call.xdata, DICT_KEY_WORM_STATE, 0) == 0) {
        call_stack_wind_below(own, w->xl);
        return;
    }
    if (own)
        call_stack_free(own);
    looked(w, -ENOMEM);
}

static void
atime_done(struct call_stack *own)
{
    struct work *w = own->owner;

    w->noted(w, own_result(own));
}

static void
state_done(struct call_stack *own)
{
    struct work *w = own->owner;
    int err = own_result(own);

    if (err < 0 || !w->has_atime) {
        w->noted(w, err);
        return;
    }
    if (!(own = worm_own_call(w, FOP_setattr, FOP_fsetattr, atime_done))) {
        w->noted(w, -ENOMEM);
        return;
    }
    own->call.valid = SETATTR_ATIME;
    own->call.stbuf.atime = w->atime;
    call_stack_wind_below(own, w->xl);
}

static int
worm_fill_marks(struct work *w, struct dict *d)
{
    char start[24];

    if (w->has_state)
        return dict_set_bytes(d, DICT_KEY_WORM_STATE, w->state, (uint32_t)strlen(w->state));
    int bytes = snprintf(start, sizeof start, "%lld", (long long)time(NULL));
    int err = dict_set_bytes(d, DICT_KEY_WORM_START, start, (uint32_t)bytes);
    return err ? err : dict_set_bytes(d, DICT_KEY_WORM_FILE, "1", 1);
}

static void
worm_note(struct work *w, void (*noted)(struct work *w, int err))
{
    struct call_stack *own = worm_own_call(w, FOP_setxattr, FOP_fsetxattr, state_done);

    w->noted = noted;
    if (own && worm_fill_marks(w, own->call.dict) == 0) {
        call_stack_wind_below(own, w->xl);
        return;
    }
    if (own)
        call_stack_free(own);
    noted(w, -ENOMEM);
}

static void
worm_set_state(struct work *w, unsigned state, int64_t period, int64_t commit_period)
{
    w->has_state = true;
    snprintf(w->state, sizeof w->state, "%u/%lld/%lld", state, (long long)period, (long long)commit_period);
}

static void
set_committed(struct work *w)
{
    const struct worm_conf *conf = xlator_conf(w->xl);
    unsigned mode = conf->retention_mode == RETENTION_ENTERPRISE ? STATE_ENTERPRISE : 0;

    worm_set_state(w, STATE_WORM | STATE_RETAINED | mode, conf->retention_period, conf->commit_period);
    w->has_atime = true;
    w->atime = time(NULL) + conf->retention_period;
}

static struct work *
work_new(struct xlator *xl, struct call_stack *stk, struct inode *inode, struct fd *fd)
{
    struct work *w = arena_alloc(&stk->arena, sizeof *w);

    if (w)
        *w = (struct work){.xl = xl, .stk = stk, .inode = inode, .fd = fd};
    return w;
}

/* ---- changes --------------------------------------------------------------------------------- */

enum judgement { MAY, MAY_NOT, COMMITS, EXPIRES };

static enum judgement
worm_judge(const struct work *w)
{
    const struct worm_conf *conf = xlator_conf(w->xl);
    const struct file *f = &w->file;
    int64_t now = time(NULL);

    if (!f->is_worm_file)
        return MAY;
    if (!f->has_state)
        return (w->fd && w->fd->flags & MADE_IT) || now - f->start < conf->commit_period ? MAY : COMMITS;
    if (f->state & STATE_LEGAL_HOLD)
        return MAY_NOT;
    if (f->state & STATE_RETAINED)
        return now < f->stat.atime ? MAY_NOT : EXPIRES;
    return f->state & STATE_WORM ? MAY_NOT : MAY;
}

static bool
may_remove(const struct work *w)
{
    const struct worm_conf *conf = xlator_conf(w->xl);

    return w->stk->call.fop == FOP_unlink && conf->is_deletable;
}

static void change_looked(struct work *w, int err);

/* Also checks the file that a rename would replace. */
static void
change_may(struct work *w)
{
    struct inode *victim = w->stk->call.fop == FOP_rename ? w->stk->call.loc2.inode : NULL;

    if (!victim || victim == w->inode || S_ISDIR(victim->type)) {
        call_stack_resume(w->stk);
        return;
    }
    w->inode = victim;
    worm_look(w, change_looked);
}

static void
committed(struct work *w, int err)
{
    call_stack_fail(w->stk, err < 0 ? -err : EROFS);
}

static void
expired(struct work *w, int err)
{
    if (err < 0 || !may_remove(w))
        call_stack_fail(w->stk, err < 0 ? -err : EROFS);
    else
        change_may(w);
}

static void
change_looked(struct work *w, int err)
{
    if (err < 0) {
        call_stack_fail(w->stk, -err);
        return;
    }
    switch (worm_judge(w)) {
    case MAY:
        change_may(w);
        break;
    case MAY_NOT:
        if (w->file.state == STATE_WORM || w->file.state == (STATE_WORM | STATE_ENTERPRISE))
            expired(w, 0);
        else
            call_stack_fail(w->stk, EROFS);
        break;
    case COMMITS:
        set_committed(w);
        worm_note(w, committed);
        break;
    case EXPIRES:
        worm_set_state(w, w->file.state & ~(unsigned)STATE_RETAINED, 0, 0);
        w->has_atime = true;
        w->atime = w->file.stat.atime - w->file.period;
        worm_note(w, expired);
        break;
    }
}

xl_verdict
worm_file_change(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;
    struct fd *fd = stk->call.fd;

    if (stk->call.fop == FOP_copy_file_range) { /* copies from the first file to the second */
        inode = stk->call.loc2.inode;
        fd = stk->call.fd2;
    }
    if (caller_is_internal(&stk->caller) || !inode || S_ISDIR(inode->type))
        return XL_PASS;
    struct work *w = work_new(xl, stk, inode, fd);
    if (!w)
        return -ENOMEM;
    worm_look(w, change_looked);
    return XL_OWNED;
}

/* ---- new files ------------------------------------------------------------------------------- */

static void
replied(struct work *w, int err)
{
    if (err < 0) {
        call_stack_fail(w->stk, -err);
        return;
    }
    call_stack_unwind(w->stk);
}

/* No other call knows the fd yet, so its flags can be set. */
static xl_verdict
created(struct frame *f, struct call_stack *stk)
{
    struct fd *fd = stk->reply.fd;

    if (stk->reply.op_ret < 0 || !fd)
        return XL_PASS;
    struct work *w = work_new(f->xl, stk, fd->inode, fd);
    if (!w)
        return -ENOMEM;
    fd->flags |= MADE_IT;
    worm_note(w, replied);
    return XL_OWNED;
}

/* A CREATE that opens an existing file may truncate it. */
static void
create_looked(struct work *w, int err)
{
    if (err < 0)
        call_stack_fail(w->stk, -err);
    else if (worm_judge(w) != MAY)
        call_stack_fail(w->stk, EROFS);
    else
        call_stack_resume(w->stk);
}

/* Storage opens loc.inode, or creates a file if loc.inode is NULL. If the name has changed meanwhile, storage
 * does neither (FOP_NAME_CHANGED). */
xl_verdict
worm_file_create(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (caller_is_internal(&stk->caller))
        return XL_PASS;
    if (!c->loc.inode || fop_create_is_exclusive(c))
        return frame_push(stk, xl, created) ? XL_PASS : -ENOMEM;
    if (!(c->flags & O_TRUNC) || S_ISDIR(c->loc.inode->type))
        return XL_PASS;
    struct work *w = work_new(xl, stk, c->loc.inode, NULL);
    if (!w)
        return -ENOMEM;
    worm_look(w, create_looked);
    return XL_OWNED;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static xl_verdict
attributes_set(struct frame *f, struct call_stack *stk)
{
    struct work *w = f->local.ptr;

    if (stk->reply.op_ret < 0)
        return XL_PASS;
    worm_note(w, replied);
    return XL_OWNED;
}

/* Continues the client's call, and writes the state of `w` after the call has succeeded. */
static void
go_on_and_note(struct work *w)
{
    struct frame *f = frame_push(w->stk, w->xl, attributes_set);

    if (!f) {
        call_stack_fail(w->stk, ENOMEM);
        return;
    }
    f->local.ptr = w;
    call_stack_resume(w->stk);
}

static void
set_of_retained(struct work *w)
{
    struct fop_call *c = &w->stk->call;
    int64_t now = time(NULL), until = c->valid & SETATTR_ATIME ? c->stbuf.atime : now;
    int64_t least = w->file.state & STATE_ENTERPRISE ? w->file.stat.atime : w->file.stat.mtime;

    c->valid &= ~(SETATTR_MTIME | SETATTR_MTIME_NOW);
    if (!(c->valid & (SETATTR_ATIME | SETATTR_ATIME_NOW))) {
        call_stack_resume(w->stk);
    } else if (until < least) {
        call_stack_fail(w->stk, EROFS);
    } else {
        worm_set_state(w, w->file.state, until > now ? until - now : 0, w->file.commit_period);
        go_on_and_note(w);
    }
}

static void
setattr_looked(struct work *w, int err)
{
    const struct fop_call *c = &w->stk->call;
    const struct file *f = &w->file;
    bool is_retained = f->state & (STATE_RETAINED | STATE_LEGAL_HOLD) && time(NULL) < f->stat.atime;

    if (err < 0) {
        call_stack_fail(w->stk, -err);
    } else if (f->is_worm_file && !f->has_state && c->valid & SETATTR_MODE && !(c->stbuf.mode & WRITE_BITS)) {
        set_committed(w);
        go_on_and_note(w);
    } else if (f->is_worm_file && is_retained) {
        set_of_retained(w);
    } else {
        call_stack_resume(w->stk);
    }
}

xl_verdict
worm_file_setattr(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.loc.inode;

    if (caller_is_internal(&stk->caller) || !inode || S_ISDIR(inode->type))
        return XL_PASS;
    struct work *w = work_new(xl, stk, inode, stk->call.fd);
    if (!w)
        return -ENOMEM;
    worm_look(w, setattr_looked);
    return XL_OWNED;
}
