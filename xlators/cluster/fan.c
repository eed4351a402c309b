/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Sends a call to several children, with care for lack of memory: fan.h. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "fs/fd.h"
#include "log/log.h"
#include "mem/iobuf.h"
#include "xlators/cluster/fan.h"

void
fan_begin(struct fan *f)
{
    f->sent = f->good = f->unsent = f->unread = 0;
    coro_group_begin(&f->group);
}

void
fan_again(struct fan *f)
{
    coro_group_begin(&f->group);
}

void
fan_wind_to(struct fan *f, struct xlator *xl, unsigned i, struct call_stack *stk)
{
    f->sent |= CHILD(i);
    f->stk[i] = stk;
    if (stk)
        coro_group_wind(&f->group, stk, xl->children[i]);
}

void
fan_wind_joined(const struct fan_step *steps, unsigned count, struct xlator *xl, unsigned i)
{
    bool is_short = false;

    for (unsigned k = 0; k < count; k++)
        is_short |= !steps[k].stk;
    for (unsigned k = 0; k < count; k++) {
        if (is_short && steps[k].stk)
            call_stack_free(steps[k].stk);
        steps[k].fan->sent |= CHILD(i);
        steps[k].fan->stk[i] = is_short ? NULL : steps[k].stk;
    }
    if (is_short)
        return;
    for (unsigned k = 1; k < count; k++)
        coro_group_join(&steps[k].fan->group, steps[k - 1].stk, steps[k].stk, steps[k].always);
    coro_group_wind(&steps[0].fan->group, steps[0].stk, xl->children[i]);
}

bool
fan_takes_joined(const struct xlator *xl, child_set to)
{
    for_each_child(i, to)
    {
        if (!(atomic_load(&xl->children[i]->brick_facts) & BRICK_SEQUENCES))
            return false;
    }
    return true;
}

static void
read_result(struct fan *f, unsigned i)
{
    enum shortage shortage = f->stk[i] ? f->stk[i]->reply.shortage : SHORTAGE_UNSENT;

    f->ret[i] = f->stk[i] ? coro_call_result(f->stk[i]) : -ENOMEM;
    f->good |= f->ret[i] >= 0 ? CHILD(i) : 0;
    f->unsent |= shortage == SHORTAGE_UNSENT ? CHILD(i) : 0;
    f->unread |= shortage == SHORTAGE_UNREAD ? CHILD(i) : 0;
}

void
fan_wait(struct fan *f)
{
    coro_group_wait(&f->group);
    for_each_child(i, f->sent) read_result(f, i);
}

enum { MEMORY_WAIT_MS = 20 };

/* Winds the unsent calls again. */
static void
send_again(struct fan *f, const struct fan_maker *m, bool is_spare)
{
    child_set again = f->unsent;

    f->unsent = 0;
    coro_group_begin(&f->group);
    for_each_child(i, again)
    {
        if (f->stk[i])
            call_stack_again(f->stk[i]);
        else
            f->stk[i] = m->make(m, i, is_spare);
        if (f->stk[i])
            coro_group_wind(&f->group, f->stk[i], m->xl->children[i]);
    }
    coro_group_wait(&f->group);
    for_each_child(i, again) read_result(f, i);
}

/* Frees spare calls at once, for the next operation that needs them; of their replies only the result
 * remains. */
static void
give_back_spares(struct fan *f)
{
    for_each_child(i, f->sent)
    {
        if (!f->stk[i] || !call_stack_is_spare(f->stk[i]))
            continue;
        call_stack_free(f->stk[i]);
        f->stk[i] = NULL;
    }
}

/* Winds the unsent calls until all have gone out. */
static void
send_unsent(struct fan *f, const struct fan_maker *m, bool is_spare)
{
    while (f->unsent) {
        log_event(LOG_WARNING, m->xl, "fan-starved",
                  "out of memory for a call that must reach every brick; retrying every 20 ms");
        coro_pause(MEMORY_WAIT_MS);
        send_again(f, m, is_spare);
        give_back_spares(f);
    }
}

int
fan_send_rest(struct fan *f, const struct fan_maker *m)
{
    if (f->sent && f->unsent == f->sent) {
        fan_end(f);
        return -ENOMEM;
    }
    send_unsent(f, m, false);
    return 0;
}

int
fan_send(struct fan *f, const struct fan_maker *m, child_set to)
{
    struct call_stack *stk[FAN_CHILDREN_MAX];
    child_set made = 0;

    for_each_child(i, to)
    {
        stk[i] = m->make(m, i, false);
        made |= stk[i] ? CHILD(i) : 0;
    }
    bool is_short = made != to;

    fan_begin(f);
    for_each_child(i, made)
    {
        if (is_short)
            call_stack_free(stk[i]);
        else
            fan_wind_to(f, m->xl, i, stk[i]);
    }
    fan_wait(f);
    if (!is_short)
        return fan_send_rest(f, m);
    fan_end(f);
    return -ENOMEM;
}

/* Uses spare calls if normal ones are not available. No coroutine sleeps while it has a spare call. */
void
fan_press(struct fan *f, const struct fan_maker *m, child_set to)
{
    fan_begin(f);
    for_each_child(i, to) fan_wind_to(f, m->xl, i, m->make(m, i, false));
    fan_wait(f);
    fan_press_rest(f, m);
}

void
fan_press_rest(struct fan *f, const struct fan_maker *m)
{
    if (!f->unsent)
        return;
    send_again(f, m, true);
    give_back_spares(f);
    send_unsent(f, m, true);
}

void
fan_end(struct fan *f)
{
    for_each_child(i, f->sent)
    {
        if (f->stk[i])
            call_stack_free(f->stk[i]);
    }
    f->sent = f->good = f->unsent = f->unread = 0;
}

/* Adds a note about an unfinished rename, which only some of the children may have: the others were down at
 * that time. */
static int
join_name_note(const struct fan *f, struct call_stack *stk)
{
    const struct dict_pair *p = NULL;

    if (stk->call.fop != FOP_lookup || !stk->reply.xdata || dict_has(stk->reply.xdata, DICT_KEY_NAME_NOTE))
        return 0;
    for_each_child(i, f->good) p = p ? p : dict_find(f->stk[i]->reply.xdata, DICT_KEY_NAME_NOTE);
    return p && dict_pair_str(p) ? dict_set_str(stk->reply.xdata, DICT_KEY_NAME_NOTE, dict_pair_str(p)) : 0;
}

int
fan_copy_reply(const struct fan *f, unsigned i, struct call_stack *stk)
{
    struct fop_reply *to = &stk->reply;
    const struct fop_reply *from = &f->stk[i]->reply;
    int err = 0;

    to->op_ret = from->op_ret;
    to->op_errno = from->op_errno;
    to->stat = from->stat;
    to->pre = from->pre;
    to->post = from->post;
    to->pre2 = from->pre2;
    to->post2 = from->post2;
    to->statvfs = from->statvfs;
    to->flock = from->flock;
    to->flock.owner = (struct lk_owner){0}; /* the lock owner is in the memory of the child's call stack */
    to->xdata = dict_dup(from->xdata, &stk->arena, &err);
    if (!err)
        to->dict = dict_dup(from->dict, &stk->arena, &err);
    return err ? err : join_name_note(f, stk);
}

int
fan_join_places(const struct fan *f, struct call_stack *to, const struct xlator *xl, const char *kind)
{
    const char *key = to->call.name, *place[FAN_CHILDREN_MAX];
    size_t size = strlen(kind) + strlen(xl->name) + sizeof "(<:>)";

    for_each_child (i, f->good) {
        const struct dict_pair *p = dict_find_text(f->stk[i]->reply.dict, key);

        place[i] = p ? dict_pair_str(p) : NULL;
        size += place[i] ? strlen(place[i]) + 1 : 0;
    }
    char *text = arena_alloc(&to->arena, size);
    struct dict *d = dict_new(&to->arena);

    if (!text || !d)
        return -ENOMEM;
    int at = snprintf(text, size, "(<%s:%s>", kind, xl->name);
    for_each_child (i, f->good)
        at += place[i] ? snprintf(text + at, size - (size_t)at, " %s", place[i]) : 0;
    snprintf(text + at, size - (size_t)at, ")");
    to->reply.dict = d;
    return dict_set_text(d, key, DICT_STR, text, (uint32_t)strlen(text) + 1);
}

/* ---- the caller's own call ------------------------------------------------------------------- */

static xl_verdict
own_call_answered(struct frame *f, struct call_stack *stk)
{
    (void)stk;
    coroutine_resume(f->local.ptr);
    return XL_OWNED;
}

static void
drop_reply(struct call_stack *stk)
{
    fd_unref(stk->reply.fd);
    iobuf_unref(stk->reply.iobuf);
    memset(&stk->reply, 0, sizeof stk->reply);
}

int
fan_wind_own(struct call_stack *stk, struct xlator *xl, unsigned i, struct fd *fd)
{
    struct frame *f = frame_push(stk, xl, own_call_answered);
    struct fd *own = stk->call.fd;

    if (!f)
        return -ENOMEM;
    drop_reply(stk);
    f->local.ptr = coroutine_self();
    if (fd)
        stk->call.fd = fd_ref(fd);
    call_stack_wind_child(stk, xl->children[i]);
    coroutine_yield();
    if (fd) {
        fd_unref(stk->call.fd);
        stk->call.fd = own;
    }
    return coro_call_result(stk);
}

struct dict *
call_xdata(struct call_stack *stk)
{
    if (!stk->call.xdata)
        stk->call.xdata = dict_new(&stk->arena);
    return stk->call.xdata;
}

uint32_t
gfid_super_fast_hash(const struct gfid *gfid)
{
    const unsigned char *p = gfid->b;
    uint32_t h = sizeof gfid->b;

    for (unsigned i = 0; i < sizeof gfid->b; i += 4) {
        h += (uint32_t)p[i] | (uint32_t)p[i + 1] << 8;
        uint32_t t = (((uint32_t)p[i + 2] | (uint32_t)p[i + 3] << 8) << 11) ^ h;

        h = (h << 16) ^ t;
        h += h >> 11;
    }
    h ^= h << 3;
    h += h >> 5;
    h ^= h << 4;
    h += h >> 17;
    h ^= h << 25;
    h += h >> 6;
    return h;
}
