/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The verb heal: heal, heal full, heal info, heal statistics, heal split-brain. kilnd reads the bricks'
 * indices, and the self-heal daemon judges, heals and counts (healer.h). */
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/xattr.h>
#include <time.h>

#include "base/gfid.h"
#include "volumes/brick-host.h"
#include "volumes/heal/heal-pending.h"
#include "volumes/heal/healer.h"
#include "volumes/verbs/verbs-internal.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"
#include "xlators/cluster/replicate/crawl.h"

enum { ANSWER_S = 60, RESOLVE_S = 24 * 3600 };

/* ---- questions ------------------------------------------------------------------------------- */

static int
explain_no_answer(const struct volume *v, int err, struct problem *why)
{
    struct healer_look look;

    healer_look(&look);
    if (v->status != VOLUME_STARTED) {
        problem_set(why, -EINVAL, "volume %s has no self-heal daemon: it is not started", v->name);
        problem_type(why, "kiln volume start %s", v->name);
    } else if (err == -EPERM) {
        problem_set(why, -EINVAL, "volume %s has no self-heal daemon: it is switched off", v->name);
        problem_type(why, "kiln volume set %s cluster.self-heal-daemon on", v->name);
    } else if (look.state == HEALER_MISSING) {
        problem_set(why, -ENOENT, "volume %s is not healed: the program kiln-heal is missing", v->name);
        problem_type(why, "apt install --reinstall kiln");
    } else if (err == -ENOTCONN) {
        problem_set(why, err, "volume %s: no replica set has all its bricks", v->name);
        problem_expected(why, "all bricks of a set, because a missing brick may have the newest copy");
        problem_type(why, "kiln volume status %s", v->name);
    } else {
        problem_set(why, err, "volume %s: the self-heal daemon does not answer: %s", v->name, strerror(-err));
        problem_type(why, "kiln volume status %s", v->name);
    }
    return why->err;
}

/* `question` is consumed. */
static int
ask_about(const struct volume *v, json_t *question, json_t **out, struct problem *why)
{
    if (!question)
        return problem_no_memory(why);
    if (v->status != VOLUME_STARTED) {
        json_decref(question);
        return explain_no_answer(v, -ENOENT, why);
    }
    int err = healer_ask(question, ANSWER_S, out);

    return err ? explain_no_answer(v, err, why) : 0;
}

static int
heal_now(const struct volume *v, bool is_full, json_t **out, struct problem *why)
{
    json_t *said = NULL;
    int err =
        ask_about(v, json_pack("{ss ss sb}", "do", "heal", "name", v->name, "full", is_full), &said, why);

    if (!err)
        *out = json_pack("{ss}", "name", v->name);
    json_decref(said);
    return err;
}

static int
heal_stop_full(const struct volume *v, json_t **out, struct problem *why)
{
    json_t *said = NULL;
    int err = ask_about(v, json_pack("{ss ss}", "do", "stop-full", "name", v->name), &said, why);

    if (!err)
        *out = json_pack("{ss}", "name", v->name);
    json_decref(said);
    return err;
}

/* ---- statistics ------------------------------------------------------------------------------ */

static json_t *
describe_seconds(const json_t *seconds)
{
    time_t t = (time_t)json_integer_value(seconds);
    struct tm tm;
    char text[64] = "";

    if (t && localtime_r(&t, &tm))
        strftime(text, sizeof text, "%a %b %e %H:%M:%S %Y", &tm);
    return json_string(text);
}

/* Numbers are texts, as in the answers of stock's daemon. */
static json_t *
describe_crawl(const json_t *look)
{
    static const char *const numbers[] = {"healed", "split_brain", "failed", "left"};
    bool is_running = json_is_true(json_object_get(look, "running"));
    json_t *out = json_pack("{ss so so ss}", "type",
                            json_is_true(json_object_get(look, "full")) ? "FULL" : "INDEX", "started",
                            describe_seconds(json_object_get(look, "started")), "ended",
                            describe_seconds(json_object_get(look, "ended")), "under_way",
                            is_running ? "1" : "0");

    for (size_t i = 0; out && i < sizeof numbers / sizeof numbers[0]; i++)
        json_object_set_new(out, numbers[i],
                            json_sprintf("%lld",
                                         (long long)json_integer_value(json_object_get(look, numbers[i]))));
    if (out && is_running)
        json_object_set(out, "current", json_object_get(look, "current"));
    return out;
}

static json_t *
describe_crawls(const struct volume *v, unsigned brick, const json_t *said)
{
    const json_t *set = json_array_get(json_object_get(said, "sets"), brick / v->replica);
    json_t *list = json_array(), *look;
    size_t i;

    json_array_foreach(json_array_get(set, brick % v->replica), i, look)
        json_array_append_new(list, describe_crawl(look));
    return json_pack("{ss ss so sO*}", "host", verbs_shown_host(&v->bricks[brick]), "path",
                     v->bricks[brick].path, "looks", list, "waits_for",
                     json_array_get(json_object_get(said, "waits_for"), brick / v->replica));
}

static int
heal_statistics(const struct volume *v, json_t **out, struct problem *why)
{
    json_t *said = NULL, *list = json_array();

    if (ask_about(v, json_pack("{ss ss}", "do", "statistics", "name", v->name), &said, why)) {
        json_decref(list);
        return why->err;
    }
    for (unsigned i = 0; i < v->brick_count; i++)
        json_array_append_new(list, describe_crawls(v, i, said));
    *out = json_pack("{ss so sO*}", "name", v->name, "bricks", list, "full_due",
                     json_object_get(said, "full_due"));
    json_decref(said);
    return 0;
}

/* ---- info ------------------------------------------------------------------------------------ */

/* "V-client-3" becomes the brick with the id 3. */
static const char *
brick_of_client(const struct volume *v, const char *client)
{
    const char *dash = client ? strrchr(client, '-') : NULL;

    for (unsigned i = 0; dash && i < v->brick_count; i++) {
        if (v->bricks[i].id == strtoul(dash + 1, NULL, 10))
            return v->bricks[i].path;
    }
    return NULL;
}

static json_t *
describe_heal_faults(const struct volume *v, const json_t *answer)
{
    json_t *out = json_object(), *fault;
    size_t i;

    json_array_foreach(json_object_get(answer, "faults"), i, fault)
    {
        const char *brick = brick_of_client(v, json_string_value(json_object_get(fault, "child")));
        const char *text = strerror(-(int)json_integer_value(json_object_get(fault, "error")));

        json_object_set_new(out, json_string_value(json_object_get(fault, "gfid")),
                            brick ? json_sprintf("%s: %s", brick, text) : json_string(text));
    }
    return out;
}

/* Returns {gfid: crawl_need} for the brick's entries; an answer that does not come leaves them unjudged. */
static json_t *
judge_entries(const struct volume *v, unsigned brick, json_t *gfids, json_t **faults)
{
    json_t *judged = json_object(), *answer = NULL, *gfid;
    json_t *question = json_pack("{ss ss si sO}", "do", "judge", "name", v->name, "set",
                                 (int)(brick / v->replica), "gfids", gfids);
    size_t i;

    if (!question || healer_ask(question, ANSWER_S, &answer))
        return judged;
    json_array_foreach(gfids, i, gfid)
        json_object_set(judged, json_string_value(gfid), json_array_get(json_object_get(answer, "needs"), i));
    *faults = describe_heal_faults(v, answer);
    json_decref(answer);
    return judged;
}

static json_t *
pending_of_brick(const struct volume *v, unsigned brick)
{
    json_t *gfids = heal_pending_gfids(v->bricks[brick].path), *judged = NULL, *faults = NULL;

    if (v->status == VOLUME_STARTED && json_array_size(gfids) > 0)
        judged = judge_entries(v, brick, gfids, &faults);
    json_t *pending = heal_pending_of_brick(v, brick, judged, faults);
    json_decref(gfids);
    json_decref(judged);
    json_decref(faults);
    return pending;
}

/* ---- split-brain ----------------------------------------------------------------------------- */

/* The split-brain that a user wants resolved: an object, or a name that leads to different objects. */
struct target {
    unsigned set;
    char gfid[GFID_TEXT_SIZE]; /* of the object, or of the folder */
    const char *entry;         /* NULL: an object */
};

static bool
gfid_of_path(const struct volume_brick *b, const char *path, size_t len, struct gfid *out)
{
    char full[PATH_MAX], linkto[8];

    return brick_host_is_here(b) &&
           snprintf(full, sizeof full, "%s/%.*s", b->path, (int)len, path) < (int)sizeof full &&
           lgetxattr(full, "trusted.gfid", out->b, GFID_BYTES) == GFID_BYTES &&
           (lgetxattr(full, "trusted.glusterfs.dht.linkto", linkto, 0) < 0);
}

/* Looks in one set. Returns false if no brick has the path. */
static bool
find_in_set(const struct volume *v, unsigned set, const char *path, struct target *out)
{
    const struct volume_brick *bricks = &v->bricks[set * v->replica];
    const char *slash = strrchr(path, '/');
    struct gfid first = gfid_null, one, dir;
    bool differs = false;

    for (unsigned i = 0; i < v->replica; i++) {
        if (!gfid_of_path(&bricks[i], path, strlen(path), &one))
            continue;
        differs |= !gfid_is_null(&first) && !gfid_equal(&first, &one);
        first = gfid_is_null(&first) ? one : first;
        if (slash && gfid_of_path(&bricks[i], path, (size_t)(slash - path), &dir))
            gfid_text(&dir, out->gfid);
    }
    if (!differs)
        gfid_text(&first, out->gfid);
    out->set = set;
    out->entry = differs && slash ? slash + 1 : NULL;
    return !gfid_is_null(&first);
}

/* FILE is a path from the volume's root, or gfid:UUID. Returns 0 or -errno with *why. */
static int
find_split_target(const struct volume *v, const char *file, struct target *out, struct problem *why)
{
    struct gfid gfid;

    for (unsigned set = 0; set < v->brick_count / v->replica && *file == '/' && !strstr(file, "/../");
         set++) {
        if (find_in_set(v, set, file, out))
            return 0;
    }
    if (strncmp(file, "gfid:", 5) == 0 && !gfid_parse(file + 5, strlen(file + 5), &gfid)) {
        gfid_text(&gfid, out->gfid);
        out->entry = NULL;
        for (out->set = 0; out->set < v->brick_count / v->replica; out->set++) {
            char handle[PATH_MAX];

            snprintf(handle, sizeof handle, ".glusterfs/%.2s/%.2s/%s", out->gfid, out->gfid + 2, out->gfid);
            for (unsigned i = 0; i < v->replica; i++) {
                if (gfid_of_path(&v->bricks[out->set * v->replica + i], handle, strlen(handle), &gfid))
                    return 0;
            }
        }
    }
    problem_set(why, -ENOENT, "volume %s has no %s", v->name, file);
    problem_expected(why, "a path from the volume's root, as /dir/file, or gfid:UUID");
    problem_type(why, "kiln volume heal %s info split-brain", v->name);
    return why->err;
}

static int
explain_unresolved(const struct volume *v, const char *file, int err, struct problem *why)
{
    if (err == -EINVAL)
        return problem_set(why, err, "%s is not in split-brain", file);
    if (err == -ENODATA) {
        problem_set(why, err, "%s: the rule selects no copy, because several are equal in it", file);
        problem_type(why, "kiln volume heal %s split-brain source-brick HOST:BRICK %s", v->name, file);
        return err;
    }
    return explain_no_answer(v, err, why);
}

static int
resolve_one(const struct volume *v, const char *file, enum crawl_choice how, int brick, struct problem *why)
{
    struct target t = {0};
    json_t *answer = NULL;
    int err = find_split_target(v, file, &t, why);

    if (err)
        return err;
    if (how == CRAWL_SOURCE && (unsigned)brick / v->replica != t.set)
        return problem_set(why, -EINVAL, "%s is not on brick %s", file, v->bricks[brick].path);
    json_t *question = json_pack("{ss ss si ss ss? si si}", "do", "resolve", "name", v->name, "set",
                                 (int)t.set, "gfid", t.gfid, "entry", t.entry, "how", (int)how, "source",
                                 how == CRAWL_SOURCE ? (int)((unsigned)brick % v->replica) : 0);
    if (!question)
        return problem_no_memory(why);
    err = healer_ask(question, RESOLVE_S, &answer);
    json_decref(answer);
    return err ? explain_unresolved(v, file, err, why) : 0;
}

/* Resolves all entries of the brick that are in split-brain. *resolved: their number. */
static int
resolve_all(const struct volume *v, int brick, int *resolved, struct problem *why)
{
    json_t *pending = heal_pending_of_brick(v, (unsigned)brick, NULL, NULL), *entry;
    char gfid[64];
    size_t i;
    int err = 0;

    json_array_foreach(json_object_get(pending, "split_brain"), i, entry)
    {
        const char *name = json_string_value(entry);

        if (sscanf(name, "<%60[^>]>", gfid) == 1)
            name = gfid;
        err = resolve_one(v, name, CRAWL_SOURCE, brick, why);
        if (err)
            break;
        ++*resolved;
    }
    json_decref(pending);
    return err;
}

static int
parse_choice(const char *how, enum crawl_choice *out, struct problem *why)
{
    static const char *const words[] = {[CRAWL_BIGGER_FILE] = "bigger-file",
                                        [CRAWL_LATEST_MTIME] = "latest-mtime",
                                        [CRAWL_SOURCE] = "source-brick"};

    for (size_t i = 0; how && i < sizeof words / sizeof words[0]; i++) {
        if (strcmp(how, words[i]) == 0) {
            *out = (enum crawl_choice)i;
            return 0;
        }
    }
    problem_set(why, -EINVAL, "heal split-brain %.40s is not known", how ? how : "");
    problem_expected(why, "bigger-file FILE, latest-mtime FILE, or source-brick HOST:BRICK [FILE]");
    return why->err;
}

static int
verb_heal_split_brain(const struct volume *v, const char *how, const char *path, const char *file,
                      json_t **out,
                 struct problem *why)
{
    enum crawl_choice choice = CRAWL_SOURCE;
    const char *slash = path ? strchr(path, '/') : NULL; /* HOST:BRICK or BRICK */
    int resolved = 0, brick = slash ? brick_host_find(v, path) : -1;

    if (parse_choice(how, &choice, why))
        return why->err;
    if (v->status != VOLUME_STARTED)
        return explain_no_answer(v, -ENOENT, why);
    if (choice == CRAWL_SOURCE && brick < 0) {
        problem_set(why, -EINVAL, "volume %s has no brick %.600s", v->name, path ? path : "");
        problem_type(why, "kiln volume info %s", v->name);
        return why->err;
    }
    if (choice == CRAWL_SOURCE && !file && !brick_host_is_here(&v->bricks[brick])) {
        problem_set(why, -EOPNOTSUPP, "host %s heals volume %s and has no list of the entries of %s",
                    brick_host_own(), v->name, path);
        problem_expected(why, "a file behind the brick, or a brick of that host");
        problem_type(why, "kiln volume heal %s info", v->name);
        return why->err;
    }
    if (choice != CRAWL_SOURCE && !file)
        return problem_set(why, -EINVAL, "heal split-brain %s: expected a file", how);
    if (file && resolve_one(v, file, choice, brick, why) == 0)
        resolved = 1;
    else if (!file)
        (void)resolve_all(v, brick, &resolved, why);
    if (!why->err)
        *out = json_pack("{ss si}", "name", v->name, "resolved", resolved);
    return why->err;
}

/* ---- the verb -------------------------------------------------------------------------------- */

static int
heal_volume(const struct volume *v, const char *what, json_t **out, struct problem *why)
{
    if (strcmp(what, "index") == 0 || strcmp(what, "full") == 0)
        return heal_now(v, *what == 'f', out, why);
    if (strcmp(what, "stop-full") == 0)
        return heal_stop_full(v, out, why);
    if (strcmp(what, "statistics") == 0)
        return heal_statistics(v, out, why);
    if (strcmp(what, "info") == 0)
        return verbs_list_bricks(v, pending_of_brick, out, why);
    problem_set(why, -EOPNOTSUPP, "heal %.40s is not built", what);
    problem_expected(
        why, "heal, heal full, heal info, heal info split-brain, heal split-brain, or heal statistics");
    return why->err;
}

int
verb_heal(json_t *args, json_t **out, struct problem *why)
{
    const char *name, *what = "index", *how = NULL, *brick = NULL, *file = NULL;
    int err;

    if (verbs_get_args(args, why, "{s:s, s?s, s?s, s?s, s?s}", "name", &name, "what", &what, "how", &how,
                       "brick", &brick, "file", &file, NULL))
        return why->err;
    struct volume *v = volumes_find(name, why);
    if (!v)
        return why->err;
    if (v->replica == 1)
        err = problem_set(why, -EINVAL, "volume %s is not replicated: there is nothing to heal", v->name);
    else if (strcmp(what, "split-brain") == 0 && volume_refuse_dispersed(v, "heal split-brain", why))
        err = why->err;
    else if (strcmp(what, "split-brain") == 0)
        err = verb_heal_split_brain(v, how, brick, file, out, why);
    else
        err = heal_volume(v, what, out, why);
    volume_free(v);
    return err;
}
