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

static int
compare_told(const void *a, const void *b)
{
    const struct simple_quota_told *one = a, *other = b;

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
simple_quota_list(struct graph *g, enum simple_quota_look look, struct simple_quota_usage **list,
                  unsigned *count)
{
    struct xlator *xl = squota_layer_of(g);
    struct squota_ns *ns;

    *list = NULL;
    *count = 0;
    if (!xl)
        return -EOPNOTSUPP;
    struct squota *q = squota_of(xl);
    read_section_begin();
    if (look != SIMPLE_QUOTA_AS_KNOWN)
        squota_look(xl, NULL, false);
    pthread_mutex_lock(&q->lock);
    *list = malloc((q->ns_count + 1) * sizeof **list);
    if (*list)
        *count = copy_locked(q, *list);
    cds_list_for_each_entry(ns, &q->namespaces, link) {
        if (*list && look == SIMPLE_QUOTA_TO_TELL)
            ns->listed = squota_used(ns);
    }
    pthread_mutex_unlock(&q->lock);
    read_section_end();
    if (!*list)
        return -ENOMEM;
    qsort(*list, *count, sizeof **list, simple_quota_compare);
    return 0;
}

/* ---- the sum of all bricks ------------------------------------------------------------------- */

static void
set_others(struct squota *q, struct squota_ns *ns, int64_t others)
{
    if (ns->others != others)
        squota_state_set_others(q->state, ns->record, others);
    ns->others = others;
}

void
squota_ns_told(struct squota *q, struct squota_ns *ns, int64_t total, uint32_t missing)
{
    int64_t own = ns->listed >= 0 ? ns->listed : squota_used(ns);
    int64_t rest = total > own ? total - own : 0, others = rest;

    if (missing && missing != ns->missing) {
        ns->others_then = ns->others > rest ? ns->others : rest;
        ns->rest_then = rest;
    }
    ns->missing = missing;
    if (missing)
        others = ns->others_then + rest - ns->rest_then;
    set_others(q, ns, others > rest ? others : rest);
}

void
squota_ns_untold(struct squota *q, struct squota_ns *ns)
{
    set_others(q, ns, -1);
    ns->listed = -1;
    ns->missing = 0;
    simple_quota_shared_unref(ns->shared);
    ns->shared = NULL;
}

static void
share(struct squota_ns *ns, const struct simple_quota_told *told, int cell)
{
    int64_t own = ns->listed >= 0 ? ns->listed : squota_used(ns), all = ns->others + own;

    simple_quota_shared_unref(ns->shared);
    ns->shared = simple_quota_shared_ref(told->shared);
    ns->cell = cell;
    ns->remote = all > told->local ? all - told->local : 0;
    if (cell < 0) /* squota_shared_put() adds this brick's usage */
        ns->remote = ns->remote > own ? ns->remote - own : 0;
    squota_shared_show(ns);
}

void
simple_quota_tell(struct graph *g, const struct simple_quota_told *list, unsigned count, int cell,
                  uint32_t missing)
{
    struct xlator *xl = squota_layer_of(g);
    struct squota_ns *ns;

    if (!xl || !count)
        return;
    struct squota *q = squota_of(xl);
    pthread_mutex_lock(&q->lock);
    cds_list_for_each_entry(ns, &q->namespaces, link) {
        const struct simple_quota_told key = {.ns = ns->gfid};
        const struct simple_quota_told *found =
            ns->is_gone ? NULL : bsearch(&key, list, count, sizeof *list, compare_told);

        /* A brick that came after the listing has no part in the sum. */
        if (found && (cell < 0 || ns->listed >= 0)) {
            squota_ns_told(q, ns, found->total, missing);
            share(ns, found, cell);
        }
    }
    pthread_mutex_unlock(&q->lock);
}

void
simple_quota_untell(struct graph *g)
{
    struct xlator *xl = squota_layer_of(g);
    struct squota_ns *ns;

    if (!xl)
        return;
    struct squota *q = squota_of(xl);
    pthread_mutex_lock(&q->lock);
    cds_list_for_each_entry(ns, &q->namespaces, link)
        squota_ns_untold(q, ns);
    pthread_mutex_unlock(&q->lock);
}
