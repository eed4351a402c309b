/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Options of a volume: set, reset, and every other change that leaves the bricks where they are
 * (volumes_change()).
 *
 *     volume copied ─▶ copy changed and checked ─▶ bricks reconfigured, or restarted for other options of TLS
 *     ─▶ SAVED: takes effect ─▶ clients and the self-heal daemon notified
 *
 * A failure gives the bricks their old options back. A death of kilnd before the save leaves the old volume,
 * and a death after it the new one: the next start of kilnd serves the volume that is saved. */
#include <errno.h>
#include <jansson.h>
#include <string.h>

#include "log/log.h"
#include "volumes/bricks/brick-jobs.h"
#include "volumes/volume-options.h"
#include "volumes/volumes-internal.h"

bool
volumes_change_tls(const struct volume *a, const struct volume *b)
{
    static const char prefix[] = "transport.socket.ssl-";
    const struct volume_key *k;

    for (unsigned i = 0; (k = volume_keys(i)); i++)
        if (k->side == SIDE_BRICK && strncmp(k->check.key, prefix, sizeof prefix - 1) == 0 &&
            strcmp(volume_option_value(a, k->key), volume_option_value(b, k->key)) != 0)
            return true;
    return false;
}

/* Attaches the bricks of `fresh` in the place of the bricks of `old`. Clients lose their connections and
 * connect again. After a failure the bricks of `old` serve. A death of kilnd between the two steps leaves
 * the saved volume, which the next start of kilnd serves. */
static int
restart_bricks(const struct volume *fresh, const struct volume *old, struct problem *why)
{
    struct problem ignored;

    brick_jobs_detach(old, NULL);
    int err = brick_jobs_attach(fresh, NULL, volumes_prepare, false, why);
    if (err)
        (void)brick_jobs_attach(old, NULL, volumes_prepare, true, &ignored);
    return err;
}

/* Replaces the volume by `fresh`, which is consumed, on the bricks first. */
static int
volumes_apply(struct entry *e, struct volume *fresh, struct problem *why)
{
    const bool is_started = e->now->status == VOLUME_STARTED;
    const bool restarts = is_started && volumes_change_tls(e->now, fresh);
    struct problem ignored;
    int err = brick_jobs_check(fresh, volumes_prepare, why);

    if (!err && is_started)
        err = restarts ? restart_bricks(fresh, e->now, why)
                       : brick_jobs_reconfigure(fresh, e->now, volumes_prepare, why);
    if (!err && (err = volumes_save(fresh, e->now, why)) && is_started) {
        if (restarts)
            (void)restart_bricks(e->now, fresh, &ignored);
        else
            brick_jobs_revert(e->now, volumes_prepare);
    }
    if (err) {
        volume_free(fresh);
        return err;
    }
    volumes_become(e, fresh);
    return 0;
}

int
volumes_check(const struct volume *v, struct problem *why)
{
    return brick_jobs_check(v, volumes_prepare, why);
}

int
volumes_put_options(struct volume *v, const json_t *options, struct problem *why)
{
    const char *key;
    json_t *value;

    json_object_foreach((json_t *)options, key, value)
    {
        const char *text = json_string_value(value);

        if (!text)
            return problem_set(why, -EINVAL, "the value of %.200s is no text", key);
        if (volume_option_check(v, key, text, why))
            return why->err;
        if (v->option_count >= VOLUME_OPTIONS_MAX)
            return problem_set(why, -E2BIG, "volume %s has %d options already", v->name, VOLUME_OPTIONS_MAX);
        if (volume_set_option(v, key, text))
            return problem_no_memory(why);
    }
    return 0;
}

int
volumes_set(const char *name, const json_t *options, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh) {
        problem_no_memory(why);
    } else if (volumes_put_options(fresh, options, why)) {
        volume_free(fresh);
    } else if (volumes_apply(e, fresh, why) == 0) {
        log_event(LOG_INFO, NULL, "volume-set", "volume %s: options set: %zu", name,
                  json_object_size(options));
    }
    volumes_release(e);
    return why->err;
}

int
volumes_change(const char *name, int (*fn)(struct volume *fresh, void *arg, struct problem *why),
               void *arg, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh)
        problem_no_memory(why);
    else if (fn(fresh, arg, why))
        volume_free(fresh);
    else
        (void)volumes_apply(e, fresh, why);
    volumes_release(e);
    return why->err;
}

int
volumes_drop_options(struct volume *v, const char *key, unsigned *count, struct problem *why)
{
    *count = 0;
    if (strcmp(key, "all") == 0) {
        while (v->option_count > 0)
            *count += volume_unset_option(v, v->options[v->option_count - 1].key);
        return volume_options_of_new(v) ? problem_no_memory(why) : 0;
    }
    if (volume_unset_option(v, key)) {
        *count = 1;
        return 0;
    }
    if (!volume_key_find(key)) {
        const char *like = volume_key_like(key);

        problem_set(why, -ENOENT, "there is no option '%.200s'", key);
        if (like)
            problem_expected(why, "did you mean %s?", like);
    } else {
        problem_set(why, -ENODATA, "option %s of volume %s is not set", key, v->name);
    }
    problem_type(why, "kiln volume info %s", v->name);
    return why->err;
}

int
volumes_reset(const char *name, const char *key, unsigned *count, struct problem *why)
{
    struct entry *e = volumes_claim(name, why);

    if (!e)
        return why->err;
    struct volume *fresh = volume_copy(e->now);
    if (!fresh) {
        problem_no_memory(why);
    } else if (volumes_drop_options(fresh, key, count, why)) {
        volume_free(fresh);
    } else if (volumes_apply(e, fresh, why) == 0) {
        log_event(LOG_INFO, NULL, "volume-reset", "volume %s: %u options", name, *count);
    }
    volumes_release(e);
    return why->err;
}
