/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* A file's content can travel with its attributes (glusterfs.content in the xdata of LOOKUP, STAT and
 * READDIRP, brick 6.2). This file removes the content from replies to callers that may not read the file.
 * Stock returns it to every caller that may look the name up.
 *
 * The reply itself decides: it contains owner and mode, and the layer requests the file's ACL together with
 * the content. An ACL that the client did not request is removed from the reply.
 */
#include <errno.h>
#include <stdlib.h>

#include "xlators/features/access-control/access-internal.h"

static bool
may_read(const struct call_stack *stk, const struct iatt *a, const struct dict *d)
{
    const struct dict_pair *p = dict_find(d, DICT_KEY_ACL_ACCESS);
    struct acl *acl = NULL;

    if (p && acl_parse(p->v.bytes, p->len, &acl))
        return false;
    bool may = acl_permits(acl, a->uid, a->gid, a->mode, &stk->caller, ACL_READ) ||
               (access_is_squashed_work(stk) && acl_permits_any_user(acl, a->uid, a->gid, a->mode, ACL_READ));
    free(acl);
    return may;
}

static void
guard(const struct call_stack *stk, const struct iatt *a, struct dict *d, bool hides_acl)
{
    if (dict_has(d, DICT_KEY_CONTENT) && !may_read(stk, a, d))
        dict_remove(d, DICT_KEY_CONTENT);
    if (hides_acl && d)
        dict_remove(d, DICT_KEY_ACL_ACCESS);
}

/* f->local.u64[0]: only this layer, not the client, requested the ACL. */
static xl_verdict
content_replied(struct frame *f, struct call_stack *stk)
{
    bool hides_acl = f->local.u64[0];

    guard(stk, &stk->reply.stat, stk->reply.xdata, hides_acl);
    for (struct dirent_entry *e = stk->reply.entries; e; e = e->next)
        guard(stk, &e->iatt, e->dict, hides_acl);
    return XL_PASS;
}

int
access_guard_content(struct xlator *xl, struct call_stack *stk)
{
    struct dict *xdata = stk->call.xdata;

    if (!dict_has(xdata, DICT_KEY_CONTENT))
        return 0;
    bool hides_acl = !dict_has(xdata, DICT_KEY_ACL_ACCESS);
    struct frame *f = frame_push(stk, xl, content_replied);

    if (!f)
        return -ENOMEM;
    f->local.u64[0] = hides_acl;
    return hides_acl ? dict_set_uint(xdata, DICT_KEY_ACL_ACCESS, 0) : 0;
}
