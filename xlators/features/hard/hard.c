/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/hard: calls wait for bricks that were lost, instead of failing at once, as on a hard mount of NFS.
 *
 * The layer stands in a mount's graph above the cluster layers. A call that they answer with ENOTCONN is held
 * and sent again when a brick is back, at most `hard-timeout` seconds after the last brick was lost. So a
 * restart of the bricks delays calls and fails none. A brick that stays away for longer makes calls fail as
 * fast as before: the time counts from the loss, not from the call.
 *
 * While only some subvolumes of distribute are away, it answers that names of theirs do not exist, as stock's
 * does. So calls of names and listings wait until all are back, and calls of an open file or a known object
 * go on. A call that is under way when a subvolume is lost gets its answer before this layer knows of the
 * loss. A hint in the call (HINT_WAITS) makes distribute answer that call with ENOTCONN.
 *
 * The bricks may have done a call whose connection ended before the reply. The layer's answer depends on the
 * fop:
 *
 *      repeatable   doing the call twice is the same as once (reads, writes at an offset, attributes, locks):
 *                   sent again
 *      of a name    sent again. An answer that says "that is done already" (EEXIST, or ENOENT for a removal)
 *                   is checked: the name must lead to the object that the call was to make or move, which its
 *                   gfid tells. Then the call has succeeded. The first try of a RENAME may have left the
 *                   old name, too (distribute, step 5), and RENAME does nothing for two names of one file. So
 *                   the layer looks the old name up after a later try, and removes the name of the file.
 *                   The kernel names no object in a RENAME, so the layer notes the object that the old name
 *                   leads to when the first try fails
 *      an append    the file's size tells. Still as before the call: sent again. Larger by the call's bytes,
 *                   and the mtime is the time that the call carried (features/utime): done. Else it fails
 *      of the rest  an exclusive xattr, a removal of an xattr: fails, because no later look tells whether the
 *                   brick has done the call. Such calls are held only before they are sent
 *
 * The attributes of the root are answered from the last reply while no brick serves: umount(8) asks for them,
 * and an operator who has stopped a volume must be able to unmount it.
 *
 * Deaths: the layer sends no message of its own but LOOKUP, FSTAT and that UNLINK, and keeps nothing on
 * bricks. A mount that dies before that UNLINK leaves the file with both names. A mount that dies while calls
 * are held leaves the same state as a mount that dies in the middle of these calls; replicate's marks lead
 * the healer. A call of a name that is sent again runs the whole transaction of replicate and distribute
 * again, under their locks.
 *
 * Another client may act between the two tries. It can remove the name that the first try has made, or make
 * the name that the first try has removed; then the second try acts on the other client's change as if the
 * application had called a moment later. That is the order that any two clients may have. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/reason.h"
#include "data/dict.h"
#include "event/timer.h"
#include "fs/fd.h"
#include "fs/inode.h"
#include "graph/graph.h"
#include "log/dump.h"
#include "mem/iobuf.h"
#include "stack/xlator.h"

enum {
    LOOK_MS = 500, /* between two tries of held calls while some brick is up */
    SOON_MS = 20,  /* from a brick's return to the next try: others may return at the same moment */
};

struct hard_conf {
    int64_t wait_s;
};

/* xl->private */
struct hard {
    struct xlator *xl;
    /* when the last brick was lost, of clock_mono_ns(); 0: none was, or a brick has refused this client */
    _Atomic uint64_t lost_ns;
    atomic_bool is_down;      /* no call can be served */
    /* a brick has come since the last known loss, so an ENOTCONN is the first sign of another loss: calls in
     * flight are answered before the event comes */
    atomic_bool has_gained;
    atomic_bool is_stopping;
    pthread_mutex_t lock;      /* protects the fields below */
    struct cds_list_head held; /* of struct call_stub */
    unsigned held_count;
    uint64_t held_ever, failed_ever;
    struct iatt root;          /* as of the last reply; no gfid: not known */
    struct timer timer; /* armed while calls are held */
};

/* ---- which calls may be repeated ------------------------------------------------------------- */

enum kind { KIND_ONCE, KIND_REPEATABLE, KIND_NAME, KIND_APPEND };

static enum kind
kind_of(const struct fop_call *c)
{
    switch (c->fop) {
    case FOP_create:
    case FOP_mknod:
    case FOP_mkdir:
    case FOP_symlink:
    case FOP_link:
    case FOP_unlink:
    case FOP_rmdir:
    case FOP_rename:
        return KIND_NAME;
    case FOP_writev:
        return (c->flags | c->fd->flags) & O_APPEND ? KIND_APPEND : KIND_REPEATABLE;
    case FOP_setxattr:
    case FOP_fsetxattr:
        return c->flags ? KIND_ONCE : KIND_REPEATABLE;
    case FOP_truncate:
    case FOP_ftruncate:
    case FOP_setattr:
    case FOP_fsetattr:
    case FOP_fallocate:
    case FOP_discard:
    case FOP_zerofill:
        return KIND_REPEATABLE;
    default:
        /* opens, syncs, flushes and locks of the same owner, and all that only looks */
        return fop_info[c->fop].traits & FOP_WRITES ? KIND_ONCE : KIND_REPEATABLE;
    }
}

/* Is a name or a listing missing where a subvolume is away? */
static bool
is_of_names(const struct fop_call *c)
{
    return fop_info[c->fop].traits & (FOP_BY_NAME | FOP_NAME2) || c->fop == FOP_opendir ||
           c->fop == FOP_readdir || c->fop == FOP_readdirp;
}

/* Would the cluster layers now say of an existing name that it does not exist? */
static bool
names_are_missing(const struct hard *h, const struct fop_call *c)
{
    const struct xlator *below = h->xl->child_count ? h->xl->children[0] : NULL;

    return is_of_names(c) && below && atomic_load_explicit(&below->is_degraded, memory_order_relaxed);
}

/* ---- holding --------------------------------------------------------------------------------- */

static void
note_loss(struct hard *h)
{
    atomic_store(&h->lost_ns, clock_mono_ns()); /* first: another call may see that there is no gain */
    atomic_store(&h->has_gained, false);
}

static bool
is_within_time(const struct hard *h)
{
    const struct hard_conf *conf = xlator_conf(h->xl);
    uint64_t lost = atomic_load(&h->lost_ns);

    return lost && clock_mono_ns() - lost < (uint64_t)conf->wait_s * 1000000000 &&
           !atomic_load(&h->is_stopping);
}

/* Must the call not be sent now? */
static bool
has_to_wait(const struct hard *h, const struct call_stack *stk)
{
    return atomic_load_explicit(&h->is_down, memory_order_relaxed) || names_are_missing(h, &stk->call);
}

static bool
hard_hold(struct hard *h, struct call_stack *stk, xl_verdict (*go)(struct xlator *, struct call_stack *))
{
    struct call_stub *stub = is_within_time(h) ? call_stub_new(stk, h->xl, go) : NULL;

    if (!stub)
        return false;
    pthread_mutex_lock(&h->lock);
    bool may_wait = !atomic_load(&h->is_stopping);
    if (may_wait) {
        cds_list_add_tail(&stub->link, &h->held);
        h->held_ever++;
        if (h->held_count++ == 0)
            timer_start(&h->timer, LOOK_MS);
    }
    pthread_mutex_unlock(&h->lock);
    if (!may_wait)
        call_stub_free(stub);
    return may_wait;
}

/* Lets all held calls go on: `go` of each call sends the call, or answers the call when the time is over. */
static void
release_held(struct hard *h)
{
    struct cds_list_head held;
    struct call_stub *stub, *next;

    CDS_INIT_LIST_HEAD(&held);
    pthread_mutex_lock(&h->lock);
    cds_list_splice(&h->held, &held);
    CDS_INIT_LIST_HEAD(&h->held);
    h->held_count = 0;
    pthread_mutex_unlock(&h->lock);
    cds_list_for_each_entry_safe(stub, next, &held, link)
        call_stub_post(stub);
}

static void
look_again(struct timer *t)
{
    struct hard *h = caa_container_of(t, struct hard, timer);

    if (!atomic_load(&h->is_down) || !is_within_time(h)) {
        release_held(h);
        return;
    }
    pthread_mutex_lock(&h->lock);
    if (h->held_count)
        timer_start(&h->timer, LOOK_MS);
    pthread_mutex_unlock(&h->lock);
}

/* ---- the root's attributes ------------------------------------------------------------------- */

static bool
is_of_root(const struct fop_call *c)
{
    return c->loc.inode && gfid_is_root(&c->loc.inode->gfid);
}

static void
root_learn(struct hard *h, const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    bool is_stat = c->fop == FOP_stat;

    if (!is_of_root(c) || (!is_stat && !(fop_info[c->fop].traits & FOP_WRITES)))
        return;
    pthread_mutex_lock(&h->lock);
    h->root = is_stat ? stk->reply.stat : (struct iatt){0};
    pthread_mutex_unlock(&h->lock);
}

/* Answers a STAT of the root. False: the call is another one, or the attributes are not known. */
static bool
root_answer(struct hard *h, struct call_stack *stk)
{
    if (stk->call.fop != FOP_stat || !is_of_root(&stk->call) || !is_within_time(h))
        return false;
    pthread_mutex_lock(&h->lock);
    bool is_known = gfid_is_root(&h->root.gfid);
    if (is_known) {
        memset(&stk->reply, 0, sizeof stk->reply);
        stk->reply.stat = h->root;
    }
    pthread_mutex_unlock(&h->lock);
    return is_known;
}

/* ---- sending --------------------------------------------------------------------------------- */

static xl_verdict hard_replied(struct frame *f, struct call_stack *stk);

/* local.u64 of a frame */
enum { OF_TRIES };

static xl_verdict
send_on(struct xlator *xl, struct call_stack *stk, bool is_repeated)
{
    struct frame *f = frame_push(stk, xl, hard_replied);

    if (!f)
        return is_repeated ? -ENOMEM : call_stack_unsent(stk);
    f->local.u64[OF_TRIES] = is_repeated;
    /* once the time is over, names of a lost subvolume are answered as without this layer */
    bool may_wait = is_within_time(xl->private) || !names_are_missing(xl->private, &stk->call);

    if (is_of_names(&stk->call) && may_wait)
        stk->call.hint.kind = HINT_WAITS;
    else if (stk->call.hint.kind == HINT_WAITS)
        stk->call.hint.kind = HINT_NONE;
    return XL_PASS;
}

static xl_verdict
count_failed(struct hard *h)
{
    pthread_mutex_lock(&h->lock);
    h->failed_ever++;
    pthread_mutex_unlock(&h->lock);
    return -ENOTCONN;
}

static xl_verdict
send_first(struct xlator *xl, struct call_stack *stk)
{
    struct hard *h = xl->private;

    memset(&stk->reply, 0, sizeof stk->reply);
    if (!has_to_wait(h, stk))
        return send_on(xl, stk, false);
    if (hard_hold(h, stk, send_first))
        return XL_OWNED;
    return atomic_load(&h->is_down) ? count_failed(h) : send_on(xl, stk, false);
}

static xl_verdict send_again(struct xlator *xl, struct call_stack *stk);

/* The file as the first try of the append `stk` has left it, or not. */
static xl_verdict
judge_append(struct xlator *xl, struct call_stack *stk, const struct fop_reply *look)
{
    const struct fop_call *c = &stk->call;
    const struct caller *who = &stk->caller;
    const struct iatt *a = &look->stat;

    if (look->op_ret < 0 && look->op_errno == ENOTCONN)
        return hard_hold(xl->private, stk, send_again) ? XL_OWNED : count_failed(xl->private);
    if (look->op_ret >= 0 && a->size == c->offset)
        return send_on(xl, stk, true);
    bool is_ours =
        who->time_flags & TIME_MTIME && a->mtime == who->ctime_sec && a->mtime_nsec == who->ctime_nsec;

    if (look->op_ret < 0 || a->size != c->offset + c->payload_bytes || !is_ours)
        return count_failed(xl->private);
    stk->reply.op_ret = (int32_t)c->payload_bytes;
    stk->reply.pre = stk->reply.post = *a;
    stk->reply.pre.size = c->offset;
    return XL_DONE;
}

static void
end_looked_at(struct call_stack *look)
{
    struct call_stack *stk = look->owner;
    xl_verdict verdict = judge_append(stk->xl, stk, &look->reply);

    call_stack_free(look);
    call_stack_answer(stk, verdict);
}

static xl_verdict
append_again(struct xlator *xl, struct call_stack *stk)
{
    struct call_stack *look = call_stack_new(end_looked_at, stk);

    if (!look)
        return count_failed(xl->private);
    look->caller = stk->caller;
    look->caller.time_flags = 0;
    look->call.fop = FOP_fstat;
    look->call.fd = fd_ref(stk->call.fd);
    look->call.loc.inode = inode_ref(stk->call.fd->inode);
    look->call.gfid = stk->call.fd->inode->gfid;
    look->call.fd_nr = stk->call.fd_nr;
    call_stack_wind_below(look, xl);
    return XL_OWNED;
}

/* All parts of a failed reply are on the call's arena, so clearing the reply loses no reference. */
static xl_verdict
send_again(struct xlator *xl, struct call_stack *stk)
{
    struct hard *h = xl->private;

    memset(&stk->reply, 0, sizeof stk->reply);
    if (!has_to_wait(h, stk) && is_within_time(h))
        return kind_of(&stk->call) == KIND_APPEND ? append_again(xl, stk) : send_on(xl, stk, true);
    if (hard_hold(h, stk, send_again))
        return XL_OWNED;
    return count_failed(h);
}

static xl_verdict
hard_any(struct xlator *xl, struct call_stack *stk)
{
    struct hard *h = xl->private;

    /* without a loss in sight a call fails as it would without this layer */
    if (has_to_wait(h, stk) && is_within_time(h))
        return root_answer(h, stk) ? XL_DONE : send_first(xl, stk);
    return send_on(xl, stk, false);
}

/* ---- has the first try done it? -------------------------------------------------------------- */

/* The gfid that the call's name leads to if the call was done; null: it is not known. */
static struct gfid
gfid_if_done(const struct fop_call *c)
{
    struct gfid gfid = {0};

    if (c->fop == FOP_link || c->fop == FOP_rename)
        gfid = c->loc.inode ? c->loc.inode->gfid : gfid;
    else if (c->xdata)
        (void)dict_get_gfid(c->xdata, DICT_KEY_GFID_REQ, &gfid); /* null: missing */
    return gfid;
}

static bool
is_removal(const struct fop_call *c)
{
    return c->fop == FOP_unlink || c->fop == FOP_rmdir;
}

/* Does the answer of a second try suggest that the first try was done? */
static bool
says_done(const struct call_stack *stk)
{
    int err = stk->reply.op_errno;

    if (kind_of(&stk->call) != KIND_NAME)
        return false;
    return err == (is_removal(&stk->call) || stk->call.fop == FOP_rename ? ENOENT : EEXIST);
}

static xl_verdict old_name_check(struct xlator *xl, struct call_stack *stk);

/* Answers the call by the LOOKUP of its name, whose owner is the call. */
static void
name_looked_up(struct call_stack *look)
{
    struct call_stack *stk = look->owner;
    struct gfid gfid = gfid_if_done(&stk->call);
    bool is_done = look->reply.op_ret >= 0 && gfid_equal(&look->reply.stat.gfid, &gfid);

    if (is_done && stk->call.fop != FOP_create) {
        memset(&stk->reply, 0, sizeof stk->reply);
        stk->reply.stat = look->reply.stat;
    }
    bool opens = is_done && stk->call.fop == FOP_create;
    call_stack_free(look);
    if (!is_done && names_are_missing(stk->xl->private, &stk->call)) {
        call_stack_answer(stk, send_again(stk->xl, stk));
        return;
    }
    if (is_done && stk->call.fop == FOP_rename) { /* the first try may have left the old name */
        xl_verdict verdict = old_name_check(stk->xl, stk);

        call_stack_answer(stk, verdict == XL_PASS ? XL_DONE : verdict);
        return;
    }
    if (opens) { /* the first try has made the file: the next one opens it */
        stk->call.flags &= ~(uint32_t)O_EXCL;
        call_stack_answer(stk, send_again(stk->xl, stk));
        return;
    }
    call_stack_unwind(stk);
}

/* A call of the layer's own about a name, whose reply `ended` gets. `stk` is its owner. */
static struct call_stack *
name_call_new(void (*ended)(struct call_stack *), struct call_stack *stk, enum fop fop, const struct loc *loc)
{
    struct call_stack *own = call_stack_new(ended, stk);

    if (!own)
        return NULL;
    own->caller = stk->caller;
    own->call.fop = fop;
    own->call.loc = (struct loc){.parent = inode_ref(loc->parent), .name = loc->name};
    /* so that distribute looks where the object is, too */
    if (stk->call.loc.inode && (stk->call.fop == FOP_link || stk->call.fop == FOP_rename))
        own->call.loc.inode = inode_ref(stk->call.loc.inode);
    own->call.name = loc->name;
    own->call.pargfid = loc->parent->gfid;
    return own;
}

static bool
look_name_up(struct xlator *xl, struct call_stack *stk)
{
    bool is_second = stk->call.fop == FOP_link || stk->call.fop == FOP_rename;
    const struct loc *loc = is_second ? &stk->call.loc2 : &stk->call.loc;
    struct gfid gfid = gfid_if_done(&stk->call);
    struct call_stack *look = gfid_is_null(&gfid) || !loc->parent
                                  ? NULL
                                  : name_call_new(name_looked_up, stk, FOP_lookup, loc);

    if (!look)
        return false;
    call_stack_wind_below(look, xl);
    return true;
}

/* The removal of the old name of the RENAME that owns `removal` has ended. */
static void
old_name_removed(struct call_stack *removal)
{
    struct call_stack *stk = removal->owner;
    int err = removal->reply.op_ret < 0 ? removal->reply.op_errno : 0;

    call_stack_free(removal);
    if (err == ENOTCONN)
        call_stack_answer(stk, send_again(stk->xl, stk));
    else if (err && err != ENOENT && err != ESTALE)
        call_stack_answer(stk, -err);
    else
        call_stack_unwind(stk);
}

/* A RENAME has succeeded. `look` is the LOOKUP of its old name. */
static void
old_name_looked_up(struct call_stack *look)
{
    struct call_stack *stk = look->owner;
    struct xlator *xl = stk->xl;
    bool is_lost = look->reply.op_ret < 0 && look->reply.op_errno == ENOTCONN;
    bool is_left = look->reply.op_ret >= 0 && !S_ISDIR(look->reply.stat.mode) &&
                   gfid_equal(&look->reply.stat.gfid, &stk->call.loc.inode->gfid);
    struct call_stack *removal =
        is_left ? name_call_new(old_name_removed, stk, FOP_unlink, &stk->call.loc) : NULL;

    call_stack_free(look);
    if (is_lost)
        call_stack_answer(stk, send_again(xl, stk));
    else if (is_left && !removal)
        call_stack_answer(stk, -ENOMEM);
    else if (removal)
        call_stack_wind_below(removal, xl);
    else
        call_stack_unwind(stk);
}

static bool
moves_to_itself(const struct fop_call *c)
{
    return c->loc.parent == c->loc2.parent && c->loc.name && c->loc2.name &&
           strcmp(c->loc.name, c->loc2.name) == 0;
}

/* Looks whether a RENAME that has succeeded, at the first or a later try, has left the old name. */
static xl_verdict
old_name_check(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    if (!c->loc.inode || !c->loc.parent || S_ISDIR(inode_type(c->loc.inode)) || moves_to_itself(c))
        return XL_PASS;
    struct call_stack *look = name_call_new(old_name_looked_up, stk, FOP_lookup, &c->loc);

    if (!look)
        return -ENOMEM;
    call_stack_wind_below(look, xl);
    return XL_OWNED;
}

/* Notes the object that the old name of a RENAME leads to, while this mount still knows the name. */
static void
source_learn(const struct xlator *xl, struct loc *from)
{
    if (!from->inode && from->parent && from->name)
        from->inode = inode_find_child(xl->graph->inodes, from->parent, from->name);
}

static xl_verdict
hard_replied(struct frame *f, struct call_stack *stk)
{
    struct hard *h = f->xl->private;
    bool is_repeated = f->local.u64[OF_TRIES];

    if (stk->reply.op_ret >= 0) {
        root_learn(h, stk);
        return is_repeated && stk->call.fop == FOP_rename ? old_name_check(f->xl, stk) : XL_PASS;
    }
    if (stk->reply.op_errno == ENOTCONN && atomic_load(&h->has_gained))
        note_loss(h);
    if (stk->reply.op_errno == ENOTCONN && root_answer(h, stk))
        return XL_PASS;
    if (stk->reply.op_errno == ENOTCONN && stk->call.fop == FOP_rename)
        source_learn(f->xl, &stk->call.loc);
    if (stk->reply.op_errno == ENOTCONN)
        return kind_of(&stk->call) != KIND_ONCE && hard_hold(h, stk, send_again) ? XL_OWNED : XL_PASS;
    /* a subvolume was lost meanwhile: the answer says nothing about its names */
    if (stk->reply.op_errno == ENOENT && names_are_missing(h, &stk->call)) {
        if (hard_hold(h, stk, is_repeated ? send_again : send_first))
            return XL_OWNED;
        stk->reply.op_errno = is_repeated ? ENOTCONN : ENOENT;
        return XL_PASS;
    }
    if (!is_repeated || !says_done(stk))
        return XL_PASS;
    if (!is_removal(&stk->call))
        return look_name_up(f->xl, stk) ? XL_OWNED : XL_PASS;
    memset(&stk->reply, 0, sizeof stk->reply);
    return XL_PASS;
}

/* ---- events ---------------------------------------------------------------------------------- */

static void
wake_soon(struct hard *h)
{
    pthread_mutex_lock(&h->lock);
    if (h->held_count)
        timer_start(&h->timer, SOON_MS);
    pthread_mutex_unlock(&h->lock);
}

static void
hard_notify(struct xlator *xl, struct xlator *child, enum child_event event)
{
    struct hard *h = xl->private;

    (void)child;
    switch (event) {
    case CHILD_DOWN:
    case CHILD_SOME_DOWN:
        note_loss(h);
        if (event == CHILD_DOWN)
            atomic_store(&h->is_down, true);
        break;
    case CHILD_UP:
        atomic_store(&h->has_gained, true);
        atomic_store(&h->is_down, false);
        wake_soon(h);
        break;
    case CHILD_SOME_UP:
        atomic_store(&h->has_gained, true);
        wake_soon(h);
        break;
    case CHILD_REFUSED:
        atomic_store(&h->has_gained, false);
        atomic_store(&h->lost_ns, 0);
        wake_soon(h);
        break;
    case CHILD_CONNECTING:
        break;
    }
    xlator_tell_parent(xl, event);
}

static bool
hard_event(struct xlator *xl, const struct layer_event *e)
{
    if (e->kind == EVENT_CHILD)
        hard_notify(xl, e->child, e->change);
    return e->kind == EVENT_CHILD;
}

/* ---- life ------------------------------------------------------------------------------------ */

static int
hard_init(struct xlator *xl, struct reason *why)
{
    struct hard *h = calloc(1, sizeof *h);

    (void)why;
    if (!h)
        return -ENOMEM;
    h->xl = xl;
    pthread_mutex_init(&h->lock, NULL);
    CDS_INIT_LIST_HEAD(&h->held);
    timer_init(&h->timer, look_again);
    xl->private = h;
    return 0;
}

static void
hard_stop(struct xlator *xl)
{
    struct hard *h = xl->private;

    pthread_mutex_lock(&h->lock);
    atomic_store(&h->is_stopping, true);
    pthread_mutex_unlock(&h->lock);
    timer_stop(&h->timer);
    release_held(h);
}

static void
hard_fini(struct xlator *xl)
{
    struct hard *h = xl->private;

    timer_stop(&h->timer);
    pthread_mutex_destroy(&h->lock);
    free(h);
}

static void
hard_dump(struct xlator *xl, struct dump *d)
{
    struct hard *h = xl->private;

    pthread_mutex_lock(&h->lock);
    dump_line(d, "held", "%u", h->held_count);
    dump_line(d, "held_ever", "%llu", (unsigned long long)h->held_ever);
    dump_line(d, "failed_ever", "%llu", (unsigned long long)h->failed_ever);
    pthread_mutex_unlock(&h->lock);
    dump_line(d, "is_down", "%d", atomic_load(&h->is_down));
}

static bool
hard_is_active(const void *conf)
{
    return ((const struct hard_conf *)conf)->wait_s > 0;
}

static const struct option hard_options[] = {
    OPT_TIME(struct hard_conf, wait_s, "hard-timeout", "60", 0, 86400),
    OPT_END,
};

const struct xlator_type features_hard_xlator = {
    .name = "features/hard",
    .conf_size = sizeof(struct hard_conf),
    .options = hard_options,
    .is_active = hard_is_active,
    .ops = &(const struct xlator_ops){.any = hard_any},
    .init = hard_init,
    .fini = hard_fini,
    .stop = hard_stop,
    .event = hard_event,
    .dump = hard_dump,
};
