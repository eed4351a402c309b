/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/fragments.h"

#include <dirent.h>
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

/* A change that is under way leaves the bricks' counters unequal for a moment, so each object gets three
 * seconds. */
enum { TRIES = 30, BETWEEN_MS = 100 };
#define BIT_HEALING (UINT64_C(1) << 62) /* in the data version: a heal of this fragment has begun */

/* A brick's copy of an object; all zero: the brick does not have the object. */
struct fragment {
    bool exists;
    uint64_t version[2], size; /* of data and metadata; size of the file */
};

struct set {
    const struct volume *v;
    unsigned first, needed;
    unsigned others[VOLUME_BRICKS_MAX], other_count; /* served bricks beside the brick */
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

/* Returns whether K of the other bricks have equal copies of the object, or do not have the object. */
static bool
is_rebuildable(const struct set *s, const char *gfid)
{
    struct fragment copy[VOLUME_BRICKS_MAX];
    unsigned best = 0, count = 0;

    for (unsigned i = 0; i < s->other_count; i++) {
        if (!fragment_read(s->v->bricks[s->others[i]].path, gfid, &copy[count]) &&
            !(copy[count].version[0] & BIT_HEALING))
            count++;
    }
    for (unsigned i = 0; i < count; i++) {
        unsigned same = 0;

        for (unsigned k = 0; k < count; k++)
            same += copy[k].exists == copy[i].exists && copy[k].version[0] == copy[i].version[0] &&
                    copy[k].version[1] == copy[i].version[1] && copy[k].size == copy[i].size;
        best = same > best ? same : best;
    }
    return best >= s->needed;
}

static int
check_object(const struct set *s, unsigned brick, const char *gfid, struct problem *why)
{
    for (unsigned n = 0; n < TRIES; n++) {
        if (is_rebuildable(s, gfid))
            return 0;
        usleep(BETWEEN_MS * 1000);
    }
    problem_set(why, -EBUSY, "without brick %s fewer than %u bricks have the newest fragments of <gfid:%s>",
                s->v->bricks[brick].path, s->needed, gfid);
    problem_expected(why, "a healed object, or a removed one");
    problem_type(why, "kiln volume heal %s info", s->v->name);
    return why->err;
}

/* ---- the indices ----------------------------------------------------------------------------- */

/* An index that cannot be read is that of a lost brick. */
static int
check_index(const struct set *s, unsigned brick, const char *of, struct problem *why)
{
    char path[PATH_MAX];
    const struct dirent *e;
    struct gfid g;
    int err = 0;

    if (snprintf(path, sizeof path, "%s/.glusterfs/indices/xattrop", of) >= (int)sizeof path)
        return problem_set(why, -ENAMETOOLONG, "%s: the path is too long", of);
    DIR *d = opendir(path);
    while (d && !err && (e = readdir(d))) {
        if (!gfid_parse(e->d_name, strlen(e->d_name), &g))
            err = check_object(s, brick, e->d_name, why);
    }
    if (d)
        closedir(d);
    return err;
}

int
fragments_check_without(const struct volume *v, unsigned brick, struct problem *why)
{
    struct set s = {.v = v, .first = brick - brick % v->replica, .needed = volume_data_bricks(v)};

    why->err = 0;
    for (unsigned i = s.first; i < s.first + v->replica; i++) {
        if (i != brick && is_attached_brick(&v->bricks[i]))
            s.others[s.other_count++] = i;
    }
    if (s.other_count < s.needed) {
        problem_set(why, -EBUSY, "%u of the other bricks of the set of brick %s are online", s.other_count,
                    v->bricks[brick].path);
        problem_expected(why, "%u, which can rebuild its fragments", s.needed);
        problem_type(why, "kiln volume start %s force", v->name);
        return why->err;
    }
    int err = check_index(&s, brick, v->bricks[brick].path, why);
    for (unsigned i = 0; i < s.other_count && !err; i++)
        err = check_index(&s, brick, v->bricks[s.others[i]].path, why);
    return err;
}
