/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Comparing and joining the replies of children.
 *
 * No child accuses another. A child is good if its reply equals that of most children: the same result or
 * errno, the same object, the same xattrs in the reply. So a fragment that missed a change is found by its
 * version or size, and an object that is another one by its gfid. Replies that differ for good reasons are
 * equal: sizes, times, blocks, counts of locks, and the keys in `ignored`. */
#include <endian.h>
#include <errno.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/disperse/disperse-internal.h"

/* ---- comparing ------------------------------------------------------------------------------- */

/* Keys that may differ or be absent on a good child. */
static bool
is_ignored_key(const struct dict_pair *p)
{
    static const char *const ignored[] = {
        "glusterfs.inodelk-count", "glusterfs.entrylk-count", "glusterfs.open-fd-count",
        "glusterfs.open-active-fd-count", "get-link-count", "trusted.ec.dirty", "glusterfs.content",
        "trusted.glusterfs.pathinfo", "glusterfs.pathinfo", "trusted.glusterfs.lockinfo",
        "trusted.glusterfs.node-uuid", "dht-get-iatt-in-xattr", "virt-gf-prestat", "virt-gf-poststat",
        "glusterfs.parent-entrylk", "glusterfs.posixlk-count", "link-count", "kiln.name-note",
        "gf_get_file_block_count", "gf_request_link_count",
    };
    static const char *const prefixes[] = {"trusted.glusterfs.quota.", "glusterfs.clrlk",
                                           "trusted.glusterfs.list-node", "trusted.afr."};

    for (size_t i = 0; i < sizeof ignored / sizeof ignored[0]; i++) {
        if (strcmp(p->key, ignored[i]) == 0)
            return true;
    }
    for (size_t i = 0; i < sizeof prefixes / sizeof prefixes[0]; i++) {
        if (strncmp(p->key, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    }
    size_t len = strlen(p->key);
    return (len > 6 && strcmp(p->key + len - 6, ".xtime") == 0) ||
           (len > 6 && strcmp(p->key + len - 6, ".stime") == 0);
}

static bool
has_pair_bytes(const struct dict_pair *p)
{
    return p->type == DICT_STR || p->type == DICT_PTR || p->type == DICT_UNTYPED;
}

static bool
pairs_are_equal(const struct dict_pair *a, const struct dict_pair *b)
{
    if (has_pair_bytes(a) && has_pair_bytes(b))
        return a->len == b->len && (!a->len || memcmp(a->v.bytes, b->v.bytes, a->len) == 0);
    if (a->type != b->type)
        return false;
    switch (a->type) {
    case DICT_INT:
    case DICT_UINT:
        return a->v.u == b->v.u;
    case DICT_GFID:
        return gfid_equal(&a->v.gfid, &b->v.gfid);
    case DICT_MDATA:
        return memcmp(a->v.mdata, b->v.mdata, sizeof *a->v.mdata) == 0;
    case DICT_IATT:
        return gfid_equal(&a->v.iatt->gfid, &b->v.iatt->gfid);
    default:
        return true;
    }
}

/* Returns whether each key of `a` that counts is in `b` with the same value. */
static bool
dict_is_within(const struct dict *a, const struct dict *b)
{
    dict_for_each (p, a) {
        if (is_ignored_key(p))
            continue;
        const struct dict_pair *other = dict_find_text(b, p->key);
        if (!other || !pairs_are_equal(p, other))
            return false;
    }
    return true;
}

static bool
dicts_are_equal(const struct dict *a, const struct dict *b)
{
    return dict_is_within(a, b) && dict_is_within(b, a);
}

static bool
iatts_are_equal(const struct iatt *a, const struct iatt *b, bool compares_modes)
{
    bool is_device = S_ISBLK(a->mode) || S_ISCHR(a->mode);

    if (!gfid_equal(&a->gfid, &b->gfid) || (a->mode & S_IFMT) != (b->mode & S_IFMT))
        return false;
    if (is_device && a->rdev != b->rdev)
        return false;
    return !compares_modes || (a->uid == b->uid && a->gid == b->gid && a->mode == b->mode);
}

static bool
replies_are_equal(const struct fan *f, unsigned i, unsigned k, bool compares_modes)
{
    const struct fop_reply *a = &f->stk[i]->reply, *b = &f->stk[k]->reply;

    if (f->ret[i] != f->ret[k])
        return false;
    if (f->ret[i] < 0)
        return true;
    return iatts_are_equal(&a->stat, &b->stat, compares_modes) &&
           iatts_are_equal(&a->pre, &b->pre, false) && iatts_are_equal(&a->post, &b->post, compares_modes) &&
           iatts_are_equal(&a->pre2, &b->pre2, false) && iatts_are_equal(&a->post2, &b->post2, false) &&
           dicts_are_equal(a->xdata, b->xdata) && dicts_are_equal(a->dict, b->dict);
}

child_set
answers_winner(const struct fan *f, bool compares_modes, int *ret)
{
    child_set best = 0, left = 0;

    for_each_child (i, f->sent) {
        if (f->stk[i] && !((f->unsent | f->unread) & CHILD(i)))
            left |= CHILD(i);
    }
    *ret = -ENOTCONN;
    while (left) {
        unsigned first = child_first(left);
        child_set same = 0;

        for_each_child (i, left)
            same |= replies_are_equal(f, first, i, compares_modes) ? CHILD(i) : 0;
        left &= ~same;
        bool wins = children_count(same) > children_count(best);
        /* of two sets of equal size success wins, then an answer of a brick over a lost connection */
        wins |= children_count(same) == children_count(best) &&
                ((f->ret[first] >= 0 && *ret < 0) || *ret == -ENOTCONN);
        if (wins) {
            best = same;
            *ret = f->ret[first];
        }
    }
    return best;
}

/* Returns whether children were lost during the call, and fewer than K are left. A layer above may then make
 * the call again when they are back. */
static bool
are_lost(const struct ec_op *op, const struct fan *f)
{
    child_set lost = 0;

    for_each_child (i, f->sent)
        lost |= f->ret[i] == -ENOTCONN ? CHILD(i) : 0;
    return lost && children_count(atomic_load(&op->d->up) & ~lost) < op->d->data;
}

child_set
answers_judge(const struct ec_op *op, const struct fan *f, bool compares_modes, int *ret)
{
    child_set best = answers_winner(f, compares_modes, ret);

    /* children that succeeded, but whose reply was lost for lack of memory, count too */
    if (best && children_count(best | (*ret >= 0 ? f->unread : 0)) >= op->d->data)
        return best;
    bool is_away = children_count(f->sent) < op->d->data || are_lost(op, f);
    *ret = fan_is_short(f) ? -ENOMEM : is_away ? -ENOTCONN : -EIO;
    return 0;
}

child_set
answers_judge_change(struct ec_op *op, const struct fan *f, bool compares_modes, int *ret)
{
    child_set good = answers_judge(op, f, compares_modes, ret), done = good | f->unread;

    if (*ret < 0 || ec_is_quorum(op, done))
        return good;
    log_event(LOG_WARNING, op->d->xl, "disperse-quorum-missed",
              "%s: %u bricks have made the change, and quorum-count is %u: the caller gets EIO, and a heal "
              "completes the change",
              fop_info[op->fop].name, children_count(done), op->quorum);
    op->lacks_quorum = true;
    return good;
}

int
answers_too_few(const struct ec_op *op, const struct fan *f)
{
    if (children_count(fan_done(f)) >= op->d->data)
        return -EIO; /* they have done it in different ways */
    int why = -EIO;

    for_each_child (i, f->sent) {
        if (f->ret[i] == -ESTALE || f->ret[i] == -ENOENT)
            return -ESTALE;
        if (f->ret[i] == -ENOSPC || f->ret[i] == -EDQUOT)
            why = f->ret[i];
    }
    return why == -EIO && are_lost(op, f) ? -ENOTCONN : why;
}

bool
answers_show_waiter(const struct fan *f, child_set set)
{
    for_each_child (i, set) {
        int64_t count = 0;

        if (f->stk[i] && !dict_get_int(f->stk[i]->reply.xdata, DICT_KEY_INODELK_COUNT, &count) && count > 1)
            return true;
    }
    return false;
}

/* ---- joining --------------------------------------------------------------------------------- */

static void
take_later(int64_t *sec, uint32_t *nsec, int64_t sec2, uint32_t nsec2)
{
    if (sec2 > *sec || (sec2 == *sec && nsec2 > *nsec)) {
        *sec = sec2;
        *nsec = nsec2;
    }
}

/* Returns the number of blocks of a file of which `members` fragments have `blocks` blocks together. */
static uint64_t
file_blocks(const struct disperse *d, uint64_t blocks, unsigned members)
{
    return (blocks * d->data + members - 1) / members;
}

void
answers_join_iatt(const struct disperse *d, const struct fan *f, child_set set, size_t of, struct iatt *out)
{
    uint64_t blocks = 0;
    unsigned members = children_count(set);

    if (!set)
        return;
    *out = *(const struct iatt *)((const char *)&f->stk[child_first(set)]->reply + of);
    for_each_child (i, set) {
        const struct iatt *a = (const struct iatt *)((const char *)&f->stk[i]->reply + of);

        blocks += a->blocks;
        out->blksize = a->blksize > out->blksize ? a->blksize : out->blksize;
        out->nlink = a->nlink > out->nlink ? a->nlink : out->nlink;
        take_later(&out->atime, &out->atime_nsec, a->atime, a->atime_nsec);
        take_later(&out->mtime, &out->mtime_nsec, a->mtime, a->mtime_nsec);
        take_later(&out->ctime, &out->ctime_nsec, a->ctime, a->ctime_nsec);
    }
    out->blocks = S_ISREG(out->mode) ? file_blocks(d, blocks, members) : blocks / members;
}

/* The blocks of a file that an UNLINK has freed: features/shard subtracts them. */
static int
join_freed_blocks(const struct disperse *d, const struct fan *f, child_set set, struct dict *out)
{
    uint64_t blocks = 0, freed;
    unsigned members = 0;

    for_each_child (i, set) {
        if (dict_get_uint(f->stk[i]->reply.xdata, DICT_KEY_FILE_BLOCK_COUNT, &freed))
            continue;
        blocks += freed;
        members++;
    }
    if (!members || !out)
        return 0;
    return dict_set_uint(out, DICT_KEY_FILE_BLOCK_COUNT, file_blocks(d, blocks, members));
}

void
iatt_set_size(struct iatt *a, uint64_t size)
{
    if (S_ISREG(a->mode))
        a->size = size;
}

void
dict_hide_ec(struct dict *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; i < d->count;) {
        if (strncmp(d->pairs[i].key, "trusted.ec.", 11) == 0)
            dict_remove_pair(d, &d->pairs[i]);
        else
            i++;
    }
}

void
ec_get_words(const struct dict *d, const char *key, uint64_t out[2])
{
    const struct dict_pair *p = dict_find_text(d, key);

    for (unsigned w = 0; w < 2; w++) {
        uint64_t word = 0;

        if (p && has_pair_bytes(p) && p->len >= (w + 1) * sizeof word) {
            memcpy(&word, (const char *)p->v.bytes + w * sizeof word, sizeof word);
            out[w] = be64toh(word);
        } else {
            out[w] = w ? out[0] : 0; /* volumes of old versions have one word for both */
        }
    }
}

uint64_t
ec_get_size(const struct dict *d)
{
    uint64_t size[2];

    ec_get_words(d, "trusted.ec.size", size);
    return size[0] < INT64_MAX ? size[0] : INT64_MAX;
}

int
answers_take(struct ec_op *op, const struct fan *f, child_set set)
{
    struct fop_reply *to = &op->stk->reply;
    int err = fan_copy_reply(f, child_first(set), op->stk);

    if (err)
        return err;
    answers_join_iatt(op->d, f, set, offsetof(struct fop_reply, stat), &to->stat);
    answers_join_iatt(op->d, f, set, offsetof(struct fop_reply, pre), &to->pre);
    answers_join_iatt(op->d, f, set, offsetof(struct fop_reply, post), &to->post);
    answers_join_iatt(op->d, f, set, offsetof(struct fop_reply, pre2), &to->pre2);
    answers_join_iatt(op->d, f, set, offsetof(struct fop_reply, post2), &to->post2);
    dict_hide_ec(to->xdata);
    dict_hide_ec(to->dict);
    return join_freed_blocks(op->d, f, set, to->xdata);
}
