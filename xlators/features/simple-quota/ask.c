/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/read-section.h"
#include "xlators/features/simple-quota/simple-quota.h"
#include "xlators/features/simple-quota/squota-internal.h"

extern const struct xlator_type features_simple_quota_xlator;

/* NULL: the brick has no such layer, or the layer is off. */
static struct xlator *
squota_layer_of(struct graph *g)
{
    for (unsigned i = 0; i < g->layer_count; i++) {
        if (g->layers[i].type == &features_simple_quota_xlator)
            return xlator_is_on(&g->layers[i]) ? &g->layers[i] : NULL;
    }
    return NULL;
}

int
simple_quota_compare(const void *a, const void *b)
{
    const struct simple_quota_usage *one = a, *other = b;

    return memcmp(&one->ns, &other->ns, sizeof one->ns);
}

static unsigned
copy_locked(struct squota *q, struct simple_quota_usage *out)
{
    const struct squota_ns *ns;
    unsigned n = 0;

    cds_list_for_each_entry(ns, &q->namespaces, link) {
        if (!ns->is_gone)
            out[n++] = (struct simple_quota_usage){.ns = ns->gfid,
                                                   .limit = ns->limit > 0 ? ns->limit : 0,
                                                   .used = squota_used(ns) > 0 ? squota_used(ns) : 0,
                                                   .is_counting = ns->walk != NULL};
    }
    return n;
}

int
simple_quota_list(struct graph *g, bool is_fresh, struct simple_quota_usage **list, unsigned *count)
{
    struct xlator *xl = squota_layer_of(g);

    *list = NULL;
    *count = 0;
    if (!xl)
        return -EOPNOTSUPP;
    struct squota *q = squota_of(xl);
    read_section_begin();
    if (is_fresh)
        squota_look(xl, NULL, false);
    pthread_mutex_lock(&q->lock);
    *list = malloc((q->ns_count + 1) * sizeof **list);
    if (*list)
        *count = copy_locked(q, *list);
    pthread_mutex_unlock(&q->lock);
    read_section_end();
    if (!*list)
        return -ENOMEM;
    qsort(*list, *count, sizeof **list, simple_quota_compare);
    return 0;
}

void
simple_quota_tell(struct graph *g, const struct simple_quota_usage *totals, unsigned count)
{
    struct xlator *xl = squota_layer_of(g);
    struct squota_ns *ns;

    if (!xl || !count)
        return;
    struct squota *q = squota_of(xl);
    pthread_mutex_lock(&q->lock);
    cds_list_for_each_entry(ns, &q->namespaces, link) {
        const struct simple_quota_usage key = {.ns = ns->gfid};
        const struct simple_quota_usage *found =
            ns->is_gone ? NULL : bsearch(&key, totals, count, sizeof *totals, simple_quota_compare);

        if (found) {
            ns->told_total = found->used;
            ns->told_at = squota_used(ns);
        }
    }
    pthread_mutex_unlock(&q->lock);
}
