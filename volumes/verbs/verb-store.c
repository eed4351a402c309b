/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Verbs that carry definitions of volumes from one kilnd to another: store-export, volume-adopt. An adopted
 * volume has its bricks already, with their files, and is stopped. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/brick-host.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster.h"
#include "volumes/own-host.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volumes-internal.h"

/* ---- export ---------------------------------------------------------------------------------- */

struct exporting {
    json_t *list;
    int failed;
};

static void
export_volume(const struct volume *v, void *arg)
{
    struct exporting *x = arg;

    x->failed |= json_array_append_new(x->list, volume_to_json(v));
}

/* The answer has the passwords of the volumes. */
int
verb_store_export(json_t *args, json_t **out, struct problem *why)
{
    struct exporting x = {json_array(), 0};

    if (verbs_get_args(args, why, "{}", NULL)) {
        json_decref(x.list);
        return why->err;
    }
    volumes_each(export_volume, &x);
    *out = json_pack("{si ss so}", "format", 1, "host", brick_host_own(), "volumes", x.list);
    return x.failed ? problem_no_memory(why) : 0;
}

/* ---- adopt ----------------------------------------------------------------------------------- */

static int
set_host(struct volume_brick *b, const char *host, struct problem *why)
{
    char *copy = strdup(host);

    if (!copy)
        return problem_no_memory(why);
    free(b->host);
    b->host = copy;
    return 0;
}

/* Gives each brick a host that this kilnd knows. */
static int
adopt_hosts(struct volume *v, struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        struct volume_brick *b = &v->bricks[i];
        bool is_loopback = false;

        if (cluster_is_on() && !*b->host && set_host(b, brick_host_own(), why))
            return why->err;
        if (cluster_is_on() && cluster_check_host(b->host, why))
            return why->err;
        if (!cluster_is_on() && *b->host && own_host_check(b->host, &is_loopback, why))
            return why->err;
        if (is_loopback && set_host(b, "", why))
            return why->err;
        b->made = false; /* the folder stays when the volume is deleted */
    }
    return 0;
}

/* Sets the options that Kiln has, and lists the others in *left. */
static int
adopt_options(struct volume *v, const json_t *options, json_t *left, struct problem *why)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)options, key, value)
    {
        json_t *one = json_pack("{sO}", key, value);
        struct problem refused = {0};

        if (!one)
            return problem_no_memory(why);
        if (volumes_put_options(v, one, &refused))
            json_array_append_new(left, json_pack("{ss sO ss}", "option", key, "value", value, "reason",
                                                  refused.wrong));
        json_decref(one);
        if (refused.err == -ENOMEM)
            return problem_no_memory(why);
    }
    return 0;
}

/* "options" are pairs of texts beyond those of the volume; the answer lists those that Kiln does not have. */
int
verb_adopt(json_t *args, json_t **out, struct problem *why)
{
    json_t *json, *options = NULL, *left = json_array();

    if (verbs_get_args(args, why, "{s:o, s?o}", "volume", &json, "options", &options, NULL)) {
        json_decref(left);
        return why->err;
    }
    struct volume *v = volume_from_json(json, why);
    int err = v ? volume_check_new_name(v->name, why) : why->err;

    if (!err && (v->status == VOLUME_CREATING || v->coming_count || v->task))
        err = problem_set(why, -EINVAL, "volume %s was exported in the middle of a change", v->name);
    err = err ? err : adopt_hosts(v, why);
    err = err ? err : adopt_options(v, options, left, why);
    err = err ? err : volumes_check(v, why);
    if (err) {
        volume_free(v);
        json_decref(left);
        return err;
    }
    if (v->status == VOLUME_STARTED)
        v->status = VOLUME_STOPPED;
    *out = json_pack("{ss si so}", "name", v->name, "bricks", (int)v->brick_count, "left_out", left);
    return cluster_is_on() ? cluster_adopt(v, why) : volumes_adopt(v, why);
}
