/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/fragments.h"

#include <endian.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/gfid.h"
#include "bricks/bricks.h"
#include "graph/graph.h"
#include "volumes/brick-host.h"
#include "volumes/heal/heal-pending.h"

/* A change that is under way leaves the bricks' counters unequal for a moment, so each object gets three
 * seconds. */
enum { TRIES = 30, BETWEEN_MS = 100 };
#define BIT_HEALING (UINT64_C(1) << 62) /* in the data version: a heal of this fragment has begun */

/* A brick's copy of an object; all zero: the brick does not have the object. */
struct fragment {
    bool exists;
    uint64_t version[2], size; /* of data and metadata; size of the file */
};

static bool
is_attached_brick(const struct volume_brick *b)
{
    struct graph *g = bricks_find(b->path);

    if (g)
        graph_unpin(g);
    return g != NULL;
}

/* ---- an object ------------------------------------------------------------------------------- */

/* A handle is the object itself, or for a folder a symlink to the folder; that one has no xattrs. */
static ssize_t
read_counter(const char *handle, const char *key, bool is_own, uint64_t *out, size_t count)
{
    uint64_t words[2] = {0};
    ssize_t n = is_own ? lgetxattr(handle, key, words, count * sizeof words[0])
                       : getxattr(handle, key, words, count * sizeof words[0]);

    for (size_t i = 0; i < count; i++)
        out[i] = n == (ssize_t)(count * sizeof words[0]) ? be64toh(words[i]) : 0;
    return n;
}

/* Returns 0 or -errno. */
static int
fragment_read(const char *brick, const char *gfid, struct fragment *out)
{
    char handle[PATH_MAX];

    *out = (struct fragment){0};
    if (snprintf(handle, sizeof handle, "%s/.glusterfs/%.2s/%.2s/%s", brick, gfid, gfid + 2, gfid) >=
        (int)sizeof handle)
        return -ENAMETOOLONG;
    bool is_own = lgetxattr(handle, "trusted.gfid", NULL, 0) >= 0;
    ssize_t n = read_counter(handle, "trusted.ec.version", is_own, out->version, 2);
    if (n < 0 && errno != ENODATA)
        return errno == ENOENT ? 0 : -errno;
    out->exists = true;
    n = read_counter(handle, "trusted.ec.size", is_own, &out->size, 1);
    return n < 0 && errno != ENODATA && errno != ENOENT ? -errno : 0;
}

static json_t *
describe_fragments(const char *brick, const json_t *gfids)
{
    json_t *list = json_array(), *gfid;
    size_t i;

    json_array_foreach(gfids, i, gfid)
    {
        struct fragment f;
        int err = fragment_read(brick, json_string_value(gfid), &f);

        json_array_append_new(list, err ? json_null()
                                        : json_pack("[bIII]", f.exists, (json_int_t)f.version[0],
                                                    (json_int_t)f.version[1], (json_int_t)f.size));
    }
    return list;
}

/* ---- the bricks of this host ----------------------------------------------------------------- */

json_t *
fragments_here(const struct volume *v, unsigned first, const json_t *gfids)
{
    json_t *out = json_object(), *online = json_array(), *pending = json_array();

    for (unsigned i = first; i < first + v->replica; i++) {
        const struct volume_brick *b = &v->bricks[i];
        char number[16];

        if (!brick_host_is_here(b))
            continue;
        snprintf(number, sizeof number, "%u", i);
        bool is_served = is_attached_brick(b);
        if (gfids && is_served)
            json_object_set_new(out, number, describe_fragments(b->path, gfids));
        if (gfids)
            continue;
        if (is_served)
            json_array_append_new(online, json_integer((json_int_t)i));
        json_t *of_brick = heal_pending_gfids(b->path);
        json_array_extend(pending, of_brick);
        json_decref(of_brick);
    }
    if (!gfids) {
        json_object_set(out, "online", online);
        json_object_set(out, "gfids", pending);
    }
    json_decref(online);
    json_decref(pending);
    return out;
}

static json_t *
ask_here(const struct volume *v, unsigned first, const json_t *gfids, struct problem *why)
{
    json_t *out = fragments_here(v, first, gfids);

    if (!out)
        problem_no_memory(why);
    return out;
}

/* ---- the check ------------------------------------------------------------------------------- */

struct check {
    const struct volume *v;
    unsigned brick, first, needed;
    fragments_ask *ask;
};

/* Returns whether K of the other bricks have equal copies of the object number `n`, or do not have the
 * object. */
static bool
is_rebuildable(const struct check *c, const json_t *copies, size_t n)
{
    const json_t *copy[VOLUME_BRICKS_MAX];
    unsigned best = 0, count = 0;

    for (unsigned i = c->first; i < c->first + c->v->replica; i++) {
        char number[16];

        snprintf(number, sizeof number, "%u", i);
        const json_t *one = json_array_get(json_object_get(copies, number), n);
        if (i != c->brick && json_array_size(one) == 4 &&
            !((uint64_t)json_integer_value(json_array_get(one, 1)) & BIT_HEALING))
            copy[count++] = one;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned same = 0;

        for (unsigned k = 0; k < count; k++)
            same += json_equal(copy[k], copy[i]);
        best = same > best ? same : best;
    }
    return best >= c->needed;
}

/* Returns the objects of `gfids` that cannot be rebuilt; NULL with *why. */
static json_t *
objects_at_risk(const struct check *c, const json_t *gfids, struct problem *why)
{
    json_t *copies = c->ask(c->v, c->first, gfids, why), *left = copies ? json_array() : NULL, *gfid;
    size_t n;

    json_array_foreach(gfids, n, gfid)
    {
        if (left && !is_rebuildable(c, copies, n))
            json_array_append(left, gfid);
    }
    json_decref(copies);
    return left;
}

static int
check_objects(const struct check *c, json_t *gfids, struct problem *why)
{
    json_t *left = json_incref(gfids);

    for (unsigned n = 0; n < TRIES && left && json_array_size(left) > 0; n++) {
        json_t *before = left;

        if (n)
            usleep(BETWEEN_MS * 1000);
        left = objects_at_risk(c, before, why);
        json_decref(before);
    }
    if (!left)
        return why->err;
    if (json_array_size(left) > 0) {
        problem_set(why, -EBUSY,
                    "without brick %s fewer than %u bricks have the newest fragments of <gfid:%s>",
                    c->v->bricks[c->brick].path, c->needed, json_string_value(json_array_get(left, 0)));
        problem_expected(why, "a healed object, or a removed one");
        problem_type(why, "kiln volume heal %s info", c->v->name);
    }
    json_decref(left);
    return why->err;
}

static unsigned
count_others(const struct check *c, const json_t *online)
{
    unsigned count = 0;
    json_t *one;
    size_t i;

    json_array_foreach(online, i, one)
        count += json_integer_value(one) != (json_int_t)c->brick;
    return count;
}

int
fragments_check_without(const struct volume *v, unsigned brick, fragments_ask *ask, struct problem *why)
{
    struct check c = {v, brick, brick - brick % v->replica, volume_data_bricks(v), ask ? ask : ask_here};
    json_t *state;

    why->err = 0;
    state = c.ask(v, c.first, NULL, why);
    if (!state)
        return why->err;
    unsigned others = count_others(&c, json_object_get(state, "online"));
    json_t *gfids = json_object_get(state, "gfids");

    if (others < c.needed) {
        problem_set(why, -EBUSY, "%u of the other bricks of the set of brick %s are online", others,
                    v->bricks[brick].path);
        problem_expected(why, "%u, which can rebuild its fragments", c.needed);
        problem_type(why, "kiln volume start %s force", v->name);
    } else if (json_array_size(gfids) >= HEAL_PENDING_JUDGED_MAX) {
        problem_set(why, -EBUSY, "volume %s: %zu objects or more wait for a heal", v->name,
                    json_array_size(gfids));
        problem_expected(why, "healed objects");
        problem_type(why, "kiln volume heal %s info", v->name);
    } else {
        (void)check_objects(&c, gfids, why);
    }
    json_decref(state);
    return why->err;
}
