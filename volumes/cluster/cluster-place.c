/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-place.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/cluster/cluster.h"
#include "volumes/volumes.h"

enum { ROOTS_MAX = 4096 };

/* A folder that a live host offers. */
struct root {
    const char *host, *path; /* texts of `hosts` */
    int64_t free;            /* bytes, less the space of bricks placed now */
    unsigned bricks;         /* of the host, with those placed now */
};

struct roots {
    json_t *hosts; /* records of live hosts, owned */
    struct root *list;
    unsigned count;
};

static void
count_host_bricks(const struct volume *v, void *arg)
{
    struct roots *r = arg;

    for (unsigned i = 0; i < v->brick_count; i++) {
        for (unsigned k = 0; k < r->count; k++)
            r->list[k].bricks += strcmp(r->list[k].host, v->bricks[i].host) == 0;
    }
}

static int
roots_begin(struct roots *r, struct problem *why)
{
    const char *host;
    json_t *record, *one;
    size_t i;

    *r = (struct roots){cluster_live_hosts(), calloc(ROOTS_MAX, sizeof *r->list), 0};
    if (!r->hosts || !r->list) {
        json_decref(r->hosts);
        free(r->list);
        return problem_no_memory(why);
    }
    json_object_foreach(r->hosts, host, record)
    {
        json_array_foreach(json_object_get(record, "roots"), i, one)
        {
            const char *path = json_string_value(json_object_get(one, "path"));

            if (path && r->count < ROOTS_MAX)
                r->list[r->count++] =
                    (struct root){host, path, json_integer_value(json_object_get(one, "free")), 0};
        }
    }
    volumes_each(count_host_bricks, r);
    return 0;
}

static void
roots_end(struct roots *r)
{
    json_decref(r->hosts);
    free(r->list);
}

/* Tells whether one of the bricks from `first` on, `count` of them, is on this host. */
static bool
has_host(const struct volume *v, unsigned first, unsigned count, const char *host)
{
    for (unsigned i = first; i < first + count && i < v->brick_count; i++) {
        if (strcmp(v->bricks[i].host, host) == 0)
            return true;
    }
    return false;
}

static bool
is_better(const struct root *a, const struct root *b)
{
    if (a->free != b->free)
        return a->free > b->free;
    if (a->bricks != b->bricks)
        return a->bricks < b->bricks;
    return strcmp(a->host, b->host) < 0;
}

/* Returns the best root on a host that has none of these bricks of `v`. NULL with *why. */
static struct root *
choose_root(struct roots *r, const struct volume *v, unsigned first, unsigned count, const char *avoid,
            uint64_t bytes, struct problem *why)
{
    struct root *best = NULL;
    unsigned fitting = 0;

    for (unsigned i = 0; i < r->count; i++) {
        struct root *one = &r->list[i];

        if (one->free < 0 || (uint64_t)one->free < bytes || strcmp(one->host, avoid) == 0 ||
            has_host(v, first, count, one->host))
            continue;
        fitting++;
        if (!best || is_better(one, best))
            best = one;
    }
    if (best)
        return best;
    problem_set(why, -ENOSPC, "no live host is left for brick %u of volume %s with a brick root%s",
                v->brick_count + 1, v->name, bytes ? " of enough free space" : "");
    problem_expected(why,
                     "kilnd --brick-root=DIR on as many live hosts as a set has bricks; %u folders "
                     "are offered",
                     r->count);
    problem_type(why, "kiln host list");
    return NULL;
}

static int
add_placed(struct volume *to, struct root *root, const char *name, unsigned number, uint64_t bytes,
           struct problem *why)
{
    char path[VOLUME_BRICK_PATH_MAX + 1], normal[VOLUME_BRICK_PATH_MAX + 1];

    if (snprintf(path, sizeof path, "%s/%s-%u", root->path, name, number) >= (int)sizeof path)
        return problem_set(why, -ENAMETOOLONG, "the brick root %s is too long", root->path);
    if (volume_check_path(path, normal, why))
        return why->err;
    root->free -= (int64_t)bytes;
    root->bricks++;
    return volume_add_brick(to, root->host, normal, false) ? problem_no_memory(why) : 0;
}

int
cluster_place_sets(struct volume *v, unsigned sets, uint64_t bytes, struct problem *why)
{
    struct roots r;
    int err = roots_begin(&r, why);

    if (err)
        return err;
    for (unsigned i = 0; i < sets * v->replica && !err; i++) {
        const unsigned first = i - i % v->replica;
        struct root *root = choose_root(&r, v, first, i - first, "", bytes, why);

        err = root ? add_placed(v, root, v->name, i, bytes, why) : why->err;
    }
    roots_end(&r);
    return err ? err : volume_check_shape(v, why);
}

int
cluster_place_other(const struct volume *v, unsigned brick, struct volume *to, struct problem *why)
{
    struct roots r;
    int err = roots_begin(&r, why);

    if (err)
        return err;
    /* the number of a new brick: two bricks of a volume below one root have different names */
    struct root *root =
        choose_root(&r, v, brick - brick % v->replica, v->replica, v->bricks[brick].host, 0, why);
    err = root ? add_placed(to, root, v->name, v->next_id, 0, why) : why->err;
    roots_end(&r);
    return err;
}
