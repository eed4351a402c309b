/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/features/upcall/xattr-names.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

void
xattr_names_init(struct xattr_names *x)
{
    pthread_mutex_init(&x->lock, NULL);
    atomic_init(&x->count, 0);
}

void
xattr_names_fini(struct xattr_names *x)
{
    for (unsigned i = 0; i < atomic_load(&x->count); i++)
        free(x->names[i]);
    pthread_mutex_destroy(&x->lock);
}

static int
add_locked(struct xattr_names *x, const char *name)
{
    unsigned n = atomic_load(&x->count);

    for (unsigned i = 0; i < n; i++) {
        if (strcmp(x->names[i], name) == 0)
            return 0;
    }
    if (n == XATTR_NAMES_MAX)
        return -ENOSPC;
    if (!(x->names[n] = strdup(name)))
        return -ENOMEM;
    atomic_store_explicit(&x->count, n + 1, memory_order_release);
    return 0;
}

int
xattr_names_add(struct xattr_names *x, const struct dict *keys)
{
    int err = 0;

    pthread_mutex_lock(&x->lock);
    dict_for_each(p, keys) {
        if (!err)
            err = add_locked(x, p->key);
    }
    pthread_mutex_unlock(&x->lock);
    return err;
}

bool
xattr_names_has(const struct xattr_names *x, const char *name)
{
    unsigned n = atomic_load_explicit(&x->count, memory_order_acquire);

    for (unsigned i = 0; i < n; i++) {
        if (fnmatch(x->names[i], name, 0) == 0)
            return true;
    }
    return false;
}

int
xattr_names_pick(const struct xattr_names *x, const struct dict *d, bool is_removal, struct arena *a,
                 struct dict **out)
{
    static const struct dict_pair removed = {.type = DICT_STR, .len = 1, .v.bytes = ""};

    *out = NULL;
    dict_for_each(p, d) {
        struct dict_pair pair = is_removal ? removed : *p;

        if (!xattr_names_has(x, p->key))
            continue;
        if (!*out && !(*out = dict_new(a)))
            return -ENOMEM;
        pair.key = p->key;
        pair.key_len = p->key_len;
        pair.key_id = p->key_id;
        if (!dict_append(*out, &pair))
            return -ENOMEM;
    }
    return 0;
}
