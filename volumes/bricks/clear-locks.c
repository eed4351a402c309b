/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/bricks/clear-locks.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "bricks/bricks.h"
#include "data/dict.h"
#include "fs/inode.h"
#include "volumes/bricks/brick-call.h"
#include "volumes/bricks/brick-path.h"

enum { KEY_BYTES = 256 /* of the name of an xattr, with its NUL */, TEXT_BYTES = 8192 };

/* ---- one brick ------------------------------------------------------------------------------- */

struct answer {
    const char *key;
    char text[TEXT_BYTES];
};

static int
copy_cleared_text(const struct fop_reply *reply, void *arg)
{
    struct answer *a = arg;
    const struct dict_pair *p = dict_find_text(reply->dict, a->key);
    const char *text = p ? dict_pair_str(p) : NULL;

    snprintf(a->text, sizeof a->text, "%s", text ? text : "");
    return text ? 0 : -EIO;
}

static int
ask_brick(struct graph *g, struct inode *inode, struct answer *a)
{
    struct brick_call q = {.seen = copy_cleared_text, .arg = a};
    struct call_stack *stk = brick_call_new(&q);

    if (!stk)
        return -ENOMEM;
    stk->call.fop = FOP_getxattr;
    stk->call.name = a->key;
    stk->call.loc.inode = inode_ref(inode);
    return brick_call_run(&q, stk, g);
}

/* A brick has locks only for inodes that it has in memory. */
static int
clear_on_graph(struct graph *g, const struct gfid *gfid, struct answer *a)
{
    struct inode *inode = inode_find(g->inodes, gfid);

    if (!inode) {
        snprintf(a->text, sizeof a->text, "No locks cleared.");
        return 0;
    }
    int err = ask_brick(g, inode, a);
    inode_unref(inode);
    return err;
}

/* Tells whether the brick lacks the object: the path does not exist, or leads through a symlink or out of
 * the brick. */
static bool
is_not_there(int err)
{
    return err == -ENOENT || err == -ENOTDIR || err == -ENODATA || err == -ELOOP || err == -EXDEV;
}

static int
clear_on_brick(const char *brick, const char *path, struct answer *a)
{
    struct graph *g = bricks_find(brick);
    struct gfid gfid;

    if (!g)
        return -ENOTCONN;
    int err = brick_path_gfid(brick, path, &gfid);
    if (!err)
        err = clear_on_graph(g, &gfid, a);
    graph_unpin(g);
    return err;
}

/* ---- all ------------------------------------------------------------------------------------- */

static bool
is_lock_word(const char *word, const char *const words[3])
{
    return strcmp(word, words[0]) == 0 || strcmp(word, words[1]) == 0 || strcmp(word, words[2]) == 0;
}

static int
make_key(char key[KEY_BYTES], const char *kind, const char *state, const char *range, struct problem *why)
{
    static const char *const kinds[] = {"inode", "entry", "posix"}, *const states[] = {"blocked", "granted",
                                                                                       "all"};

    if (!is_lock_word(kind, kinds) || !is_lock_word(state, states)) {
        problem_set(why, -EINVAL, "there are no locks of kind %.40s %.40s", state, kind);
        problem_expected(why, "blocked, granted or all, and inode, entry or posix");
        return why->err;
    }
    if (snprintf(key, KEY_BYTES, "glusterfs.clrlk.t%s.k%s%s%s", kind, state, range ? "." : "",
                 range ? range : "") >= KEY_BYTES)
        return problem_set(why, -EINVAL, "the range is too long");
    return 0;
}

static json_t *
describe_cleared(const char *brick, int err, const struct answer *a)
{
    return err ? json_pack("{ss ss}", "path", brick, "error",
                           err == -ENOTCONN ? "the brick is not served" : strerror(-err))
               : json_pack("{ss ss}", "path", brick, "cleared", a->text);
}

static int
refuse_range(struct problem *why, const char *range)
{
    problem_set(why, -EINVAL, "'%.100s' is not a range", range);
    problem_expected(why, "WHENCE,START-LENGTH, such as 0,0-4096; for entry locks a name");
    return why->err;
}

/* Returns 0 or -errno with *why. */
static int
clear_on_all(const struct volume *v, const char *path, const char *range, struct answer *a, json_t *list,
             struct problem *why)
{
    for (unsigned i = 0; i < v->brick_count; i++) {
        int err = clear_on_brick(v->bricks[i].path, path, a);

        if (is_not_there(err))
            continue;
        if (err == -EINVAL && range) /* no lock was cleared: every brick rejects the range */
            return refuse_range(why, range);
        if (json_array_append_new(list, describe_cleared(v->bricks[i].path, err, a)))
            return problem_no_memory(why);
    }
    if (json_array_size(list) > 0)
        return 0;
    problem_set(why, -ENOENT, "volume %s has no %.400s", v->name, path);
    problem_expected(why, "a path from the volume's root, such as /dir/file");
    return why->err;
}

int
clear_locks(const struct volume *v, const char *path, const char *kind, const char *state, const char *range,
            json_t **out, struct problem *why)
{
    char key[KEY_BYTES];
    struct answer a = {.key = key};

    if (*path != '/') {
        problem_set(why, -EINVAL, "'%.400s' is not a path of the volume", path);
        problem_expected(why, "a path from the volume's root, such as /dir/file");
        return why->err;
    }
    if (make_key(key, kind, state, range, why))
        return why->err;
    json_t *list = json_array();
    if (clear_on_all(v, path, range, &a, list, why)) {
        json_decref(list);
        return why->err;
    }
    *out = json_pack("{ss ss so}", "name", v->name, "path", path, "bricks", list);
    return *out ? 0 : problem_no_memory(why);
}
