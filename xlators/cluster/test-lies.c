/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/test-lies.h"

#include <errno.h>
#include <string.h>

const char *const lie_names[LIES] = {
    "no xdata",  "no dict", "another gfid", "no gfid", "another type", "zero stat", "huge stat", "short",
    "huge errno", "EAGAIN", "success", "unread", "short xattrs", "number xattrs", "odd names"};

static struct {
    unsigned child, at, times, calls;
    enum lie lie;
    bool is_told;
} wrong;

static void
each_stat(struct fop_reply *r, void (*change)(struct iatt *a))
{
    struct iatt *const all[] = {&r->stat, &r->pre, &r->post, &r->pre2, &r->post2};

    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        change(all[i]);
    for (struct dirent_entry *e = r->entries; e; e = e->next)
        change(&e->iatt);
}

static void
other_gfid(struct iatt *a)
{
    a->gfid.b[3] ^= 0x5a;
}

static void
no_gfid(struct iatt *a)
{
    a->gfid = (struct gfid){0};
}

static void
other_type(struct iatt *a)
{
    a->mode ^= S_IFDIR ^ S_IFREG;
}

static void
zero_stat(struct iatt *a)
{
    *a = (struct iatt){0};
}

static void
huge_stat(struct iatt *a)
{
    struct gfid gfid = a->gfid;
    uint32_t type = a->mode & S_IFMT;

    memset(a, 0xff, sizeof *a);
    a->gfid = gfid;
    a->mode = type | 07777;
}

static void
each_pair(struct dict *d, enum lie lie)
{
    for (unsigned i = 0; d && i < d->count; i++) {
        struct dict_pair *p = &d->pairs[i];
        bool has_bytes = p->type == DICT_PTR || p->type == DICT_STR || p->type == DICT_UNTYPED;

        if (has_bytes && lie == LIE_SHORT_XATTRS) {
            p->len = p->len < 3 ? p->len : 3;
        } else if (has_bytes) {
            p->type = DICT_INT;
            p->len = 0;
            p->v.i = -1;
        }
    }
}

static void
odd_names(struct fop_reply *r)
{
    static const char *const names[] = {"", "..", "a/b", "x", "x"};
    unsigned n = 0;

    for (struct dirent_entry *e = r->entries; e; e = e->next, n++) {
        e->name = names[n % 5];
        e->name_len = (uint32_t)strlen(e->name);
    }
}

static void
lie_about_result(struct call_stack *stk, int *ret, enum lie lie)
{
    bool counts_bytes = stk->call.fop == FOP_writev || stk->call.fop == FOP_readv;
    bool opens = stk->call.fop == FOP_create || stk->call.fop == FOP_open || stk->call.fop == FOP_opendir;

    switch (lie) {
    case LIE_SHORT:
        *ret = counts_bytes && *ret > 0 ? *ret / 2 : *ret;
        stk->reply.payload.iov_len = stk->call.fop == FOP_readv && *ret > 0 ? (size_t)*ret : 0;
        break;
    case LIE_ERRNO_HUGE:
        *ret = -0x7fffffff;
        break;
    case LIE_ERRNO_EAGAIN:
        *ret = -EAGAIN;
        break;
    case LIE_SUCCESS:
        *ret = *ret < 0 && !opens ? 0 : *ret; /* protocol/client makes the fd of a success itself */
        break;
    case LIE_UNREAD:
        if (*ret < 0)
            break;
        *ret = -ENOMEM;
        stk->reply.shortage = SHORTAGE_UNREAD;
        break;
    default:
        break;
    }
}

static void
lie_about_reply(struct fop_reply *r, enum lie lie)
{
    switch (lie) {
    case LIE_NO_XDATA:
        r->xdata = NULL;
        break;
    case LIE_NO_DICT:
        r->dict = NULL;
        break;
    case LIE_OTHER_GFID:
        each_stat(r, other_gfid);
        break;
    case LIE_NO_GFID:
        each_stat(r, no_gfid);
        break;
    case LIE_OTHER_TYPE:
        each_stat(r, other_type);
        break;
    case LIE_ZERO_STAT:
        each_stat(r, zero_stat);
        break;
    case LIE_HUGE_STAT:
        each_stat(r, huge_stat);
        break;
    case LIE_SHORT_XATTRS:
    case LIE_NUMBER_XATTRS:
        each_pair(r->xdata, lie);
        each_pair(r->dict, lie);
        break;
    case LIE_ODD_NAMES:
        odd_names(r);
        break;
    default:
        break;
    }
}

static bool
is_lock(enum fop fop)
{
    return fop == FOP_inodelk || fop == FOP_finodelk || fop == FOP_entrylk || fop == FOP_fentrylk;
}

/* Locks are answered truly: a lock that the brick has and denies would stay. */
static void
tell_lie(unsigned child, struct call_stack *stk, int *ret)
{
    if (child != wrong.child)
        return;
    unsigned n = wrong.calls++;

    if (n < wrong.at || n > wrong.at + wrong.times || is_lock(stk->call.fop))
        return;
    wrong.is_told = true;
    lie_about_result(stk, ret, wrong.lie);
    if (*ret >= 0)
        lie_about_reply(&stk->reply, wrong.lie);
}

void
lie_begin(unsigned child, unsigned at, unsigned times, enum lie lie)
{
    wrong.child = child;
    wrong.at = at;
    wrong.times = times;
    wrong.calls = 0;
    wrong.lie = lie;
    wrong.is_told = false;
    scene.lie = tell_lie;
}

bool
lie_end(void)
{
    scene.lie = NULL;
    return wrong.is_told;
}
