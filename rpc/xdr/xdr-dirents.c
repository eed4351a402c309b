/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Directory listings (spec: wire 5.7). */
#include "rpc/xdr/xdr-types.h"

enum { DIRENT_FIXED_BYTES = 4 + 8 + 8 + 4 + 4, EMPTY_DICT_BYTES = 12 };

static void
get_name(struct xdr *x, struct dirent_entry *e)
{
    xdr_get_string(x, &e->name, FOP_NAME_MAX, -EINVAL);
    e->name_len = (uint32_t)strlen(e->name);
    if (!x->error && (e->name_len == 0 || memchr(e->name, '/', e->name_len)))
        xdr_fail(x, -EINVAL);
}

struct dirent_entry *
xdr_get_dirents(struct xdr *x, bool with_iatt)
{
    struct dirent_entry *first = NULL, **last = &first;

    while (xdr_get_bool(x)) {
        struct dirent_entry *e = arena_zalloc(x->arena, sizeof *e);

        if (!e) {
            xdr_fail(x, -ENOMEM);
            break;
        }
        e->ino = xdr_get_u64(x);
        e->off = xdr_get_u64(x);
        (void)xdr_get_u32(x); /* d_len: the name says so itself */
        e->type = xdr_get_u32(x);
        get_name(x, e);
        if (with_iatt) {
            xdr_get_iatt(x, &e->iatt);
            e->dict = xdr_get_dict(x);
        }
        if (x->error)
            break;
        *last = e;
        last = &e->next;
    }
    return x->error ? NULL : first;
}

/* Stock sends an empty dict, not the NULL dict, for an entry without results. */
static void
put_entry_dict(struct xdr *x, const struct dict *d)
{
    char *p;

    if (d) {
        xdr_put_dict(x, d);
        return;
    }
    p = xdr_room(x, EMPTY_DICT_BYTES);
    if (p)
        memset(p, 0, EMPTY_DICT_BYTES);
}

void
xdr_put_dirents(struct xdr *x, const struct dirent_entry *list, bool with_iatt)
{
    for (; list; list = list->next) {
        xdr_put_u32(x, 1);
        xdr_put_u64(x, list->ino);
        xdr_put_u64(x, list->off);
        xdr_put_u32(x, list->name_len);
        xdr_put_u32(x, list->type);
        xdr_put_opaque(x, list->name, list->name_len);
        if (with_iatt) {
            xdr_put_iatt(x, &list->iatt);
            put_entry_dict(x, list->dict);
        }
    }
    xdr_put_u32(x, 0);
}

size_t
xdr_dirents_size(const struct dirent_entry *list, bool with_iatt)
{
    size_t n = 4;

    for (; list; list = list->next) {
        n += DIRENT_FIXED_BYTES + xdr_opaque_size(list->name_len);
        if (with_iatt)
            n += IATT_XDR_BYTES + xdr_dict_size(list->dict);
    }
    return n;
}
