/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "heal/heal-volume.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <urcu/list.h>

#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "xlators/cluster/disperse/crawl.h"

extern const struct xlator_type cluster_disperse_xlator, cluster_replicate_xlator, protocol_client_xlator;

enum { INODES_KEPT = 64 }; /* of each set, unused: an object is healed once */

struct heal_set {
    char *text;
    struct graph *graph;
    struct crawler *crawler; /* NULL: a dispersed set, which crawls by itself */
};

struct heal_volume {
    struct cds_list_head link;
    char *name;
    bool heals;
    unsigned holders;
    size_t count;
    struct heal_set sets[];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* guards the list and `holders` */
static pthread_cond_t released = PTHREAD_COND_INITIALIZER;
static struct cds_list_head volumes = CDS_LIST_HEAD_INIT(volumes);

/* ---- a set ----------------------------------------------------------------------------------- */

static const struct xlator_type *
heal_type_find(const char *name)
{
    static const struct xlator_type *const types[] = {
        &cluster_disperse_xlator, &cluster_replicate_xlator, &protocol_client_xlator};

    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (strcmp(types[i]->name, name) == 0)
            return types[i];
    }
    return NULL;
}

static struct graph *
set_graph_new(const char *volume, const char *text)
{
    char error[1024];
    struct volfile *file = volfile_parse(volume, text, strlen(text), error, sizeof error);
    struct graph *g = file ? graph_new(heal_type_find, file, NULL, error, sizeof error) : NULL;

    if (g && g->top->type != &cluster_replicate_xlator && g->top->type != &cluster_disperse_xlator) {
        snprintf(error, sizeof error, "the volfile's top is no cluster/replicate or cluster/disperse");
        graph_free(g);
        g = NULL;
    }
    if (!g)
        log_event(LOG_ERROR, NULL, "heal-volume-graph", "volume %s is not healed: %s", volume, error);
    return g;
}

/* Returns 0, or -errno after logging the reason. */
static int
set_start(struct heal_volume *v, struct heal_set *set, const char *text)
{
    set->text = strdup(text);
    if (!set->text || !(set->graph = set_graph_new(v->name, text)))
        return set->text ? -EINVAL : -ENOMEM;
    inode_table_set_limit(set->graph->inodes, INODES_KEPT);
    if (set->graph->top->type == &cluster_replicate_xlator &&
        !(set->crawler = crawler_new(set->graph, (unsigned)v->count, v->heals)))
        return -ENOMEM;
    int err = graph_start(set->graph);

    if (err)
        log_event(LOG_ERROR, NULL, "heal-volume-start", "volume %s is not healed: %s", v->name,
                  strerror(-err));
    return err;
}

/* After the drain no child event and no crawl comes any more. */
static void
set_end(struct heal_set *set)
{
    if (set->graph)
        graph_drain(set->graph);
    if (set->crawler)
        crawler_free(set->crawler);
    graph_free(set->graph);
    free(set->text);
}

/* ---- a volume -------------------------------------------------------------------------------- */

static void
volume_end(struct heal_volume *v)
{
    for (size_t i = 0; i < v->count; i++)
        set_end(&v->sets[i]);
    free(v->name);
    free(v);
}

static struct heal_volume *
find_locked(const char *name)
{
    struct heal_volume *v;

    cds_list_for_each_entry (v, &volumes, link) {
        if (strcmp(v->name, name) == 0)
            return v;
    }
    return NULL;
}

static bool
is_equal(const struct heal_volume *v, bool heals, char *const *texts, size_t count)
{
    bool is = v->heals == heals && v->count == count;

    for (size_t i = 0; i < count && is; i++)
        is = strcmp(v->sets[i].text, texts[i]) == 0;
    return is;
}

int
heal_volume_add(const char *name, bool heals, char *const *texts, size_t count)
{
    pthread_mutex_lock(&lock);
    struct heal_volume *now = find_locked(name);
    pthread_mutex_unlock(&lock);
    if (now && is_equal(now, heals, texts, count))
        return 0;
    heal_volume_drop(name);
    struct heal_volume *v = calloc(1, sizeof *v + count * sizeof v->sets[0]);
    int err = v && (v->name = strdup(name)) ? 0 : -ENOMEM;

    if (err) {
        log_event(LOG_ERROR, NULL, "heal-volume-memory", "volume %s is not healed: no memory", name);
        free(v);
        return err;
    }
    v->heals = heals;
    v->count = count;
    for (size_t i = 0; i < count && !err; i++)
        err = set_start(v, &v->sets[i], texts[i]);
    if (err) {
        volume_end(v);
        return err;
    }
    pthread_mutex_lock(&lock);
    cds_list_add_tail(&v->link, &volumes);
    pthread_mutex_unlock(&lock);
    return 0;
}

/* The drain makes heals stop, which holders wait for. */
static void
drop(struct heal_volume *v)
{
    for (size_t i = 0; i < v->count; i++)
        graph_drain(v->sets[i].graph);
    pthread_mutex_lock(&lock);
    while (v->holders > 0)
        pthread_cond_wait(&released, &lock);
    pthread_mutex_unlock(&lock);
    volume_end(v);
}

void
heal_volume_drop(const char *name)
{
    pthread_mutex_lock(&lock);
    struct heal_volume *v = find_locked(name);
    if (v)
        cds_list_del(&v->link);
    pthread_mutex_unlock(&lock);
    if (v)
        drop(v);
}

void
heal_volumes_drop_all(void)
{
    struct heal_volume *v, *next;
    CDS_LIST_HEAD(all);

    pthread_mutex_lock(&lock);
    cds_list_splice(&volumes, &all);
    CDS_INIT_LIST_HEAD(&volumes);
    pthread_mutex_unlock(&lock);
    cds_list_for_each_entry_safe (v, next, &all, link)
        drop(v);
}

struct heal_volume *
heal_volume_find(const char *name)
{
    pthread_mutex_lock(&lock);
    struct heal_volume *v = find_locked(name);
    if (v)
        v->holders++;
    pthread_mutex_unlock(&lock);
    return v;
}

void
heal_volume_release(struct heal_volume *v)
{
    pthread_mutex_lock(&lock);
    v->holders--;
    pthread_cond_broadcast(&released);
    pthread_mutex_unlock(&lock);
}

size_t
heal_volume_sets(const struct heal_volume *v)
{
    return v->count;
}

struct crawler *
heal_volume_crawler(const struct heal_volume *v, size_t set)
{
    return v->sets[set].crawler;
}

void
heal_volume_waits_for(const struct heal_volume *v, size_t set, char *who, size_t size)
{
    *who = '\0';
    if (v->sets[set].crawler)
        crawler_waits_for(v->sets[set].crawler, who, size);
}

int
heal_volume_ask(const struct heal_volume *v, size_t set, bool is_full)
{
    const struct heal_set *s = &v->sets[set];

    if (s->crawler)
        return crawler_ask(s->crawler, is_full);
    return v->heals ? disperse_crawl_ask(s->graph, is_full) : -EPERM;
}

bool
heal_volume_full_is_due(const struct heal_volume *v, size_t set)
{
    const struct heal_set *s = &v->sets[set];

    return s->crawler ? crawler_full_is_due(s->crawler) : disperse_crawl_full_is_due(s->graph);
}

void
heal_volume_stop_full(const struct heal_volume *v, size_t set)
{
    const struct heal_set *s = &v->sets[set];

    if (s->crawler)
        crawler_stop_full(s->crawler);
    else
        disperse_crawl_stop_full(s->graph);
}

unsigned
heal_volume_children(const struct heal_volume *v, size_t set)
{
    return v->sets[set].graph->top->child_count;
}

unsigned
heal_volume_looks(const struct heal_volume *v, size_t set, unsigned child,
                  struct crawl_look out[CRAWL_LOOKS_KEPT])
{
    const struct heal_set *s = &v->sets[set];

    return s->crawler ? crawler_looks(s->crawler, child, out) : disperse_crawl_looks(s->graph, child, out);
}
