/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-quota.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/cluster/cluster-ask.h"
#include "volumes/cluster/cluster-change.h"
#include "volumes/quota.h"
#include "volumes/volumes.h"

/* ---- on each host ---------------------------------------------------------------------------- */

/* {"sets", "rows", "paths": {gfid: path}} */
static int
serve_rows(const struct volume *v, json_t **out, struct problem *why)
{
    json_t *paths = json_object();
    struct quota_rows rows;

    quota_own_rows(v, SIMPLE_QUOTA_FRESH, &rows);
    json_t *json = rows.is_short ? NULL : quota_rows_to_json(&rows);
    for (unsigned i = 0; i < rows.count; i++) {
        const struct gfid *ns = &rows.rows[i].usage.ns;
        char path[PATH_MAX];

        if (rows.rows[i].usage.limit && quota_find_path(v, ns, path))
            json_object_set_new(paths, GFID(ns), json_string(path));
    }
    quota_rows_end(&rows);
    if (!json || json_object_set_new(json, "paths", paths))
        return problem_no_memory(why);
    *out = json;
    return 0;
}

int
cluster_quota_serve(const char *verb, json_t *args, json_t **out, struct problem *why)
{
    const char *name = json_string_value(json_object_get(args, "name"));
    const char *path = json_string_value(json_object_get(args, "path"));
    const json_t *limit = json_object_get(args, "limit");
    bool is_rows = strcmp(verb, "quota-rows") == 0, is_set = strcmp(verb, "quota-set") == 0;

    if (!is_rows && !is_set && strcmp(verb, "quota-check") != 0)
        return -ENOSYS;
    if (!name || (!is_rows && (!path || *path != '/')) || (is_set && !json_is_integer(limit)))
        return problem_set(why, -EINVAL, "the question names no limit");
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    int err = is_rows  ? serve_rows(v, out, why)
              : is_set ? quota_set(v, path, (uint64_t)json_integer_value(limit), why)
                       : quota_check(v, path, why);
    volume_free(v);
    return err;
}

/* ---- the asking host ------------------------------------------------------------------------- */

int
cluster_quota_check(const struct volume *v, const char *path, struct problem *why)
{
    return cluster_ask_hosts(v, "quota-check", json_pack("{ss ss}", "name", v->name, "path", path), why);
}

int
cluster_quota_set(const struct volume *v, const char *path, uint64_t limit, struct problem *why)
{
    int err = cluster_quota_check(v, path, why);

    if (err)
        return err;
    return cluster_ask_hosts(
        v, "quota-set", json_pack("{ss ss sI}", "name", v->name, "path", path, "limit", (json_int_t)limit),
        why);
}

int
cluster_quota_list(const struct volume *v, json_t **out, struct problem *why)
{
    struct cluster_ask *asks = calloc(v->brick_count + 1, sizeof *asks);
    json_t *args = json_pack("{ss}", "name", v->name), *paths = json_object();
    unsigned count = asks && args ? cluster_hosts_of(v, asks) : 0;
    struct quota_rows rows = {0};

    cluster_ask_all(asks, count, "quota-rows", args, CLUSTER_LOOK_S);
    for (unsigned i = 0; i < count; i++) {
        quota_rows_add_json(&rows, asks[i].answer, v->brick_count / v->replica);
        (void)json_object_update_missing(paths, json_object_get(asks[i].answer, "paths"));
    }
    int err = count ? quota_describe(v, &rows, paths, out, why) : problem_no_memory(why);
    quota_rows_end(&rows);
    cluster_asks_end(asks, count);
    json_decref(args);
    json_decref(paths);
    free(asks);
    return err;
}
