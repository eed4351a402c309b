/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Verbs about the hosts of a store (list, add, remove, drain, upgrade) and about its jobs. */
#include <errno.h>

#include "volumes/cluster/cluster-change.h"
#include "volumes/cluster/cluster-jobs.h"
#include "volumes/cluster/cluster-register.h"
#include "volumes/cluster/cluster.h"
#include "volumes/verbs/verbs-internal.h"

int
verbs_need_store(struct problem *why)
{
    if (cluster_is_on())
        return 0;
    problem_set(why, -EOPNOTSUPP, "this kilnd has no store, so it knows no other hosts");
    problem_expected(why, "a kilnd with --store and --host; see kilnd(8)");
    return why->err;
}

int
verb_host_list(json_t *args, json_t **out, struct problem *why)
{
    if (verbs_get_args(args, why, "{}", NULL) || verbs_need_store(why))
        return why->err;
    *out = cluster_describe();
    return 0;
}

int
verb_host_add(json_t *args, json_t **out, struct problem *why)
{
    const char *host, *address, *authority;

    if (verbs_get_args(args, why, "{s:s, s:s, s:s}", "host", &host, "address", &address, "authority",
                       &authority, NULL) ||
        verbs_need_store(why))
        return why->err;
    *out = json_pack("{ss ss ss}", "host", host, "address", address, "location",
                     store_location(cluster_store()));
    return cluster_add_host(host, address, authority, why);
}

int
verb_host_remove(json_t *args, json_t **out, struct problem *why)
{
    const char *host;

    if (verbs_get_args(args, why, "{s:s}", "host", &host, NULL) || verbs_need_store(why))
        return why->err;
    *out = json_pack("{ss}", "host", host);
    return cluster_remove_host(host, why);
}

int
verb_host_drain(json_t *args, json_t **out, struct problem *why)
{
    const char *host;
    char id[64] = "";

    if (verbs_get_args(args, why, "{s:s}", "host", &host, NULL) || verbs_need_store(why) ||
        cluster_jobs_drain(host, id, why))
        return why->err;
    *out = json_pack("{ss ss}", "host", host, "job", id);
    return 0;
}

int
verb_host_upgrade(json_t *args, json_t **out, struct problem *why)
{
    const char *program = NULL;
    char id[64] = "";

    if (verbs_get_args(args, why, "{s?s}", "program", &program, NULL) || verbs_need_store(why) ||
        cluster_jobs_upgrade(program, id, why))
        return why->err;
    *out = json_pack("{ss}", "job", id);
    return 0;
}

int
verb_job_list(json_t *args, json_t **out, struct problem *why)
{
    if (verbs_get_args(args, why, "{}", NULL) || verbs_need_store(why))
        return why->err;
    return cluster_jobs_list(out, why);
}

int
verb_job_stop(json_t *args, json_t **out, struct problem *why)
{
    const char *id;

    if (verbs_get_args(args, why, "{s:s}", "job", &id, NULL) || verbs_need_store(why))
        return why->err;
    *out = json_pack("{ss}", "job", id);
    return cluster_jobs_stop(id, why);
}
