/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/cluster-register.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "volumes/cluster/cluster.h"
#include "volumes/cluster/host-proof.h"
#include "volumes/cluster/store.h"
#include "volumes/volume.h"

enum { TRIES = 8 };

static int
check_store_format(struct store *s, struct problem *why)
{
    char *text, own[64];
    int64_t revision;
    int err = store_get(s, "format", &text, &revision, why);

    snprintf(own, sizeof own, "{\"format\": %d}", CLUSTER_FORMAT);
    if (!err && !text) {
        const struct store_change c = {"format", own, 0, 0};

        err = store_change(s, &c, 1, NULL, why);
        return err == -ESTALE ? check_store_format(s, why) : err;
    }
    json_t *json = err ? NULL : json_loads(text, JSON_REJECT_DUPLICATES, NULL);
    json_int_t n = json_integer_value(json_object_get(json, "format"));
    json_decref(json);
    free(text);
    if (err || (n >= 1 && n <= CLUSTER_FORMAT))
        return err;
    problem_set(why, n < 1 ? -EINVAL : -EPROTO, "the store %s has format %lld", store_location(s),
                (long long)n);
    problem_expected(why, "format %d%s", CLUSTER_FORMAT, n > 1 ? ": a newer kilnd has written it" : "");
    return why->err;
}

static int
refuse_host_id(const char *host, struct problem *why)
{
    problem_set(why, -EEXIST, "host %s is another machine of this store", host);
    problem_expected(why, "a name of its own for each host, and the state folder that this host had before");
    problem_type(why, "kiln host remove %s   # on another host, if the machine no longer exists", host);
    return why->err;
}

/* ---- this host ------------------------------------------------------------------------------- */

/* With an authority in the store: this host must prove itself. *has_authority: the store has one. */
static int
check_own_proof(struct store *s, const char *host, bool *has_authority, struct problem *why)
{
    int64_t revision;
    char *text;
    int err = store_get(s, "authority", &text, &revision, why);

    *has_authority = !err && text;
    err = *has_authority ? host_proof_check_own(text, host, why) : err;
    free(text);
    return err;
}

static int
refuse_unknown(const char *host, struct problem *why)
{
    problem_set(why, -EACCES, "host %s was not added to this store, whose hosts prove themselves", host);
    problem_expected(why, "a host that kiln host add has added");
    problem_type(why, "kiln host add %s ADDRESS   # where kiln tls init was run", host);
    return why->err;
}

/* Tries once. -ESTALE: the record has changed meanwhile. */
static int
register_once(struct store *s, const char *host, const char *id, bool has_authority, struct problem *why)
{
    char key[300], *text;
    int64_t revision;

    snprintf(key, sizeof key, "hosts/%.255s", host);
    if (store_get(s, key, &text, &revision, why))
        return why->err;
    if (!text && has_authority)
        return refuse_unknown(host, why);
    json_t *record = text ? json_loads(text, 0, NULL) : json_object();
    const char *of = json_string_value(json_object_get(record, "id"));
    bool is_ours = of && strcmp(of, id) == 0, is_others = text && !is_ours && (of || !record);
    free(text);
    if (is_ours || is_others) {
        json_decref(record);
        return is_ours ? 0 : refuse_host_id(host, why);
    }
    json_object_set_new(record, "id", json_string(id));
    json_object_set_new(record, "since", json_integer((json_int_t)time(NULL)));
    char *fresh = json_dumps(record, JSON_COMPACT);
    json_decref(record);
    const struct store_change c[] = {{key, fresh, revision, 0}, {"layout", fresh, STORE_ANY_REVISION, 0}};
    int err = fresh ? store_change(s, c, 2, NULL, why) : problem_no_memory(why);
    free(fresh);
    return err;
}

int
cluster_register(struct store *s, const char *host, const char *id, struct problem *why)
{
    bool has_authority;
    int err = check_store_format(s, why);

    err = err ? err : check_own_proof(s, host, &has_authority, why);
    for (unsigned i = 0; i < TRIES && !err; i++) {
        if ((err = register_once(s, host, id, has_authority, why)) != -ESTALE)
            return err;
        err = 0;
    }
    return err ? err : problem_set(why, -EAGAIN, "the record of host %s changes all the time", host);
}

/* ---- another host ---------------------------------------------------------------------------- */

static void
collect_name(const char *key, const char *text, int64_t revision, void *arg)
{
    json_t *json = json_loads(text, 0, NULL);

    (void)revision;
    if (json_object_get(json, "id"))
        json_array_append_new(arg, json_string(key + strlen("hosts/")));
    json_decref(json);
}

/* Every registered host must prove itself by the authority, before the store gets it. */
static int
check_all_proofs(const char *authority, struct problem *why)
{
    json_t *names = json_array(), *name;
    int64_t at;
    size_t i;
    int err = cluster_announce(why);

    err = err ? err : store_list(cluster_store(), "hosts/", collect_name, names, &at, why);
    json_array_foreach(names, i, name)
    {
        const char *host = json_string_value(name);
        char place[300], key[300], *text;
        int64_t revision;

        snprintf(key, sizeof key, "alive/%.255s", host);
        snprintf(place, sizeof place, "%s", key);
        if (err || (err = store_get(cluster_store(), key, &text, &revision, why)))
            break;
        json_t *record = text ? json_loads(text, 0, NULL) : NULL;
        free(text);
        if (!record) {
            err = problem_set(why, -EHOSTUNREACH, "host %s is down, and must prove itself first", host);
            problem_type(why, "kiln host list");
        } else if ((err = host_proof_check_by(authority, record, place, host, why))) {
            problem_type(why, "kiln tls cert %s FOLDER; its files to /usr/lib/ssl of %s; restart kilnd there",
                         host, host);
        }
        json_decref(record);
    }
    json_decref(names);
    return err;
}

/* Refuses another authority than the one of the store. *revision: of its record. */
static int
check_authority(const char *authority, int64_t *revision, struct problem *why)
{
    char *text;

    if (store_get(cluster_store(), "authority", &text, revision, why))
        return why->err;
    if (!text)
        return check_all_proofs(authority, why);
    json_t *json = json_loads(text, 0, NULL);
    const char *pem = json_string_value(json_object_get(json, "certificate"));
    bool is_same = pem && strcmp(pem, authority) == 0;
    json_decref(json);
    free(text);
    if (is_same)
        return 0;
    problem_set(why, -EACCES, "the hosts of this store have another authority");
    problem_expected(why, "the machine on which kiln tls init was run for this store");
    return why->err;
}

static int
add_once(const char *host, const char *address, const char *authority, struct problem *why)
{
    char key[300], *text;
    int64_t of_authority, revision;

    snprintf(key, sizeof key, "hosts/%.255s", host);
    if (check_authority(authority, &of_authority, why) ||
        store_get(cluster_store(), key, &text, &revision, why))
        return why->err;
    json_t *record = text ? json_loads(text, 0, NULL) : NULL;
    bool is_registered = json_object_get(record, "id") != NULL;
    json_decref(record);
    free(text);
    if (is_registered) {
        problem_set(why, -EEXIST, "host %s is registered already", host);
        problem_type(why, "kiln tls cert %s FOLDER   # for a new certificate", host);
        return why->err;
    }
    json_t *fresh = json_pack("{ss sI}", "address", address, "added", (json_int_t)time(NULL));
    json_t *trust = json_pack("{ss}", "certificate", authority);
    char *fresh_text = fresh ? json_dumps(fresh, JSON_COMPACT) : NULL;
    char *trust_text = trust ? json_dumps(trust, JSON_COMPACT) : NULL;
    json_decref(fresh);
    json_decref(trust);
    const struct store_change c[] = {{key, fresh_text, revision, 0},
                                     {"authority", trust_text, of_authority, 0},
                                     {"layout", host, STORE_ANY_REVISION, 0}};
    int err = fresh_text && trust_text ? store_change(cluster_store(), c, 3, NULL, why)
                                       : problem_no_memory(why);
    free(fresh_text);
    free(trust_text);
    return err;
}

int
cluster_add_host(const char *host, const char *address, const char *authority, struct problem *why)
{
    int err = cluster_check_store(why);

    err = err ? err : volume_check_host(host, why);
    err = err ? err : volume_check_host(address, why);
    for (unsigned i = 0; i < TRIES && !err; i++) {
        if ((err = add_once(host, address, authority, why)) != -ESTALE)
            return err;
        err = 0;
    }
    return err ? err : problem_set(why, -EAGAIN, "the hosts of the store change all the time");
}
