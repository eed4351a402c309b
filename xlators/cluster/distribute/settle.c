/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Settling of names that a rename has left unfinished. D is the new name, D_h its hashed subvolume, S the old
 * name, S_c the subvolume of the renamed file.
 *
 * The LINK of D on S_c, or the RENAME to D there, leaves a note on the bricks of S_c before it changes the
 * name (features/index/index-names.c). The note goes with the unlock of the file, after the replaced file is
 * gone. If the client dies before that, the note stays, and each client that meets it in a LOOKUP of D or S,
 * or in an OPENDIR of D's folder, settles D. So does each client that begins, or gets a lost subvolume back,
 * as soon as it has all subvolumes (GETXATTR kiln.name-notes of the root):
 *
 *   1. Lock of D on D_h. While it is not free, the rename may be under way, so there is nothing to settle.
 *   2. LOOKUP of D on all subvolumes.
 *   3. D_h leads to S_c: the rename is done. Any other file named D is the replaced one, and is removed.
 *      D_h does not lead to S_c, and S and D on S_c are names of one file: the rename is not done. D is
 *      removed from S_c. The file keeps its name S.
 *      Otherwise the note is out of date: a brick was down when the rename ended.
 *   4. The note is removed.
 *
 * A client that dies between any two of these steps leaves the note, and the next client settles D. If a
 * subvolume that may have a file named D does not answer, the note stays, too. No step removes the last name
 * of a file that D leads to, so an outdated note does no harm.
 *
 * Without a note (bricks of stock, a renaming client of stock, or all bricks of S_c that had the note lost)
 * a name that is hidden behind D exists again once D is removed, as with stock clients. The same happens if
 * another client, whose kernel remembers S, removes or renames S without a LOOKUP before D is settled. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "log/log.h"
#include "xlators/cluster/distribute/distribute-internal.h"

/* Returns whether a brick of the subvolume keeps notes. The other bricks of a replicated subvolume may be
 * down since this client began, or be stock bricks, which ignore the keys. */
bool
settle_has_notes(const struct op *o, unsigned child)
{
    return o->d->count > 1 && (xlator_any_brick_facts(o->d->child[child].xl) & BRICK_NAME_NOTES);
}

const char *
settle_note_of(const struct op *o, const struct call_stack *stk)
{
    const char *note = dict_get_str(stk->reply.xdata, DICT_KEY_NAME_NOTE);
    size_t size = note ? strlen(note) + 1 : 0;
    char *copy = note ? arena_alloc(&o->stk->arena, size) : NULL;

    return copy ? memcpy(copy, note, size) : NULL;
}

const char *
settle_name_text(const struct op *o, const struct loc *loc)
{
    size_t size = GFID_TEXT_SIZE + 1 + strlen(loc->name) + 1;
    char *text = arena_alloc(&o->stk->arena, size);

    if (text)
        snprintf(text, size, "%s/%s", GFID(&loc->parent->gfid), loc->name);
    return text;
}

/* ---- one name -------------------------------------------------------------------------------- */

struct unfinished {
    const struct op *o;
    struct inode *parent;
    const char *name;
    struct fan fan; /* LOOKUPs of the name */
    int hashed;
    int noted;        /* the subvolume with the note */
    bool is_one_file; /* on that subvolume the old and the new name lead to one file */
};

static int
ask_for_unfinished(struct unfinished *u)
{
    int err = dist_fan_begin(&u->fan, u->o);

    for (unsigned i = 0; i < u->fan.count; i++)
        dist_fan_add(&u->fan, i, lookup_call(u->o, u->parent, u->name, NULL, true));
    if (!err)
        err = dist_fan_go(&u->fan);
    for (unsigned i = 0; i < u->fan.count && !err; i++) {
        const char *note = dist_fan_result(&u->fan, i) < 0
                               ? NULL
                               : dict_get_str(u->fan.call[i]->reply.xdata, DICT_KEY_NAME_NOTE);

        if (note && !S_ISDIR(u->fan.call[i]->reply.stat.mode) && strncmp(note, "from/", 5) != 0) {
            u->noted = (int)i;
            u->is_one_file = strcmp(note, "link") == 0;
        }
    }
    return err;
}

static const struct iatt *
seen_at(const struct unfinished *u, unsigned i)
{
    return &u->fan.call[i]->reply.stat;
}

/* Returns whether the hashed subvolume leads to the noted file. */
static bool
is_rename_done(const struct unfinished *u)
{
    const struct call_stack *at_hashed = u->fan.call[u->hashed];

    if (u->noted == u->hashed)
        return true;
    return dist_fan_result(&u->fan, (unsigned)u->hashed) >= 0 && reply_is_linkto(at_hashed) &&
           linkto_target(u->o->d, at_hashed) == u->noted &&
           gfid_equal(&at_hashed->reply.stat.gfid, &seen_at(u, (unsigned)u->noted)->gfid);
}

/* Removes the name on one subvolume. Returns whether it is gone. */
static bool
remove_unfinished_at(const struct unfinished *u, unsigned i)
{
    struct call_stack *stk =
        dist_call_for_name(dist_call_new_internal(u->o, FOP_unlink), u->parent, u->name);
    int ret = dist_call_once(u->o, i, stk);

    if (ret >= 0)
        log_event(LOG_INFO, u->o->d->xl, "distribute-rename-settled",
                  "%s/%s on %s was left by a rename that died: removed", GFID(&u->parent->gfid), u->name,
                  u->o->d->child[i].xl->name);
    return dist_is_definite(ret);
}

/* Removes all replaced files. Returns whether none is left. */
static bool
remove_replaced(const struct unfinished *u)
{
    const struct gfid *right = &seen_at(u, (unsigned)u->noted)->gfid;
    bool is_gone = true;

    for (unsigned i = 0; i < u->fan.count; i++) {
        int ret = dist_fan_result(&u->fan, i);

        if (!dist_is_definite(ret))
            is_gone = false;
        else if (ret >= 0 && (int)i != u->noted && !S_ISDIR(seen_at(u, i)->mode) &&
                 !reply_is_linkto(u->fan.call[i]) && !gfid_equal(&seen_at(u, i)->gfid, right))
            is_gone &= remove_unfinished_at(u, i);
    }
    return is_gone;
}

static void
remove_note(const struct unfinished *u)
{
    const struct loc loc = {.parent = u->parent, .name = u->name};
    const char *text = settle_name_text(u->o, &loc);
    struct call_stack *stk = text ? lookup_call(u->o, u->parent, u->name, NULL, true) : NULL;

    (void)dist_call_once(u->o, (unsigned)u->noted, dist_call_put_str(stk, DICT_KEY_NAME_NOTE_DONE, text));
}

/* Steps 2 to 4. */
static void
settle_under_lock(struct unfinished *u)
{
    int err = ask_for_unfinished(u);

    if (!err && u->noted >= 0) {
        bool is_settled;

        if (is_rename_done(u))
            is_settled = remove_replaced(u);
        else if (!dist_is_definite(dist_fan_result(&u->fan, (unsigned)u->hashed)))
            is_settled = false;
        else
            is_settled = !u->is_one_file || remove_unfinished_at(u, (unsigned)u->noted);
        if (is_settled)
            remove_note(u);
    }
    dist_fan_end(&u->fan);
}

enum how { LOCK_IS_HELD, LOCK_OR_LEAVE, LOCK_WAIT };

static void
settle_new_name(const struct op *o, struct inode *parent, const char *name, enum how how)
{
    struct unfinished u = {.o = o, .parent = parent, .name = name, .noted = -1};
    struct dist_lock lock[2];
    unsigned count = 0;
    int err = u.hashed = folder_hashed(o, parent, name);

    if (err < 0)
        return;
    if (how != LOCK_IS_HELD)
        count = dist_locks_namespace(lock, (unsigned)u.hashed, parent, name);
    err = how == LOCK_OR_LEAVE ? dist_locks_try(o, lock, count) : dist_locks_take(o, lock, count);
    if (err)
        return;
    settle_under_lock(&u);
    dist_locks_drop(o, lock, count);
}

/* ---- notes in replies ------------------------------------------------------------------------ */

/* Settles the new name of a rename, as the note by its old name tells. */
static void
settle_other(const struct op *o, const char *other)
{
    const size_t digits = GFID_TEXT_SIZE - 1;
    struct iatt folder = {.mode = S_IFDIR};

    if (strlen(other) < digits + 2 || other[digits] != '/' || gfid_parse(other, digits, &folder.gfid))
        return;
    const char *name = other + digits + 1;
    struct inode *parent = inode_link(o->d->xl->graph->inodes, NULL, NULL, &folder);

    if (parent && strlen(name) <= FOP_NAME_MAX && !strchr(name, '/'))
        settle_new_name(o, parent, name, o->has_names ? LOCK_OR_LEAVE : LOCK_WAIT);
    inode_unref(parent);
}

bool
settle_note(const struct op *o, struct inode *parent, const char *name, const char *note)
{
    if (strncmp(note, "from/", 5) == 0) {
        settle_other(o, note + 5);
        return false;
    }
    settle_new_name(o, parent, name, o->has_names ? LOCK_IS_HELD : LOCK_WAIT);
    return true;
}

void
settle_listed(const struct op *o, struct inode *folder, const struct call_stack *opened)
{
    const struct dict_pair *p = dict_find(opened->reply.xdata, DICT_KEY_NAME_NOTE);
    const char *names = p && (p->type == DICT_PTR || p->type == DICT_UNTYPED) ? p->v.bytes : NULL;
    size_t len;

    for (uint32_t at = 0; names && at < p->len; at += (uint32_t)len + 1) {
        len = strnlen(names + at, p->len - at);
        if (len == p->len - at || !len || len > FOP_NAME_MAX)
            return; /* a peer's bytes, without an end */
        settle_new_name(o, folder, names + at, LOCK_WAIT);
    }
}

/* ---- all noted names ------------------------------------------------------------------------- */

/* Settles each name in "GFID/NAME", ..., each with its NUL. */
static void
settle_texts(const struct op *o, const char *texts, uint32_t size)
{
    for (uint32_t at = 0; at < size;) {
        size_t len = strnlen(texts + at, size - at);

        if (len == size - at)
            return;
        settle_other(o, texts + at);
        at += (uint32_t)len + 1;
    }
}

static void
settle_noted_on(const struct op *o, unsigned child)
{
    struct inode *root = inode_root(o->d->xl->graph->inodes);
    struct call_stack *stk = dist_call_for_inode(dist_call_new_internal(o, FOP_getxattr), root);

    inode_unref(root);
    if (!stk)
        return;
    stk->call.name = dict_key_text(DICT_KEY_NAME_NOTES);
    stk->call.has_name = 1;
    int ret = dist_call_at(o, child, stk);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find(stk->reply.dict, DICT_KEY_NAME_NOTES);

    if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED))
        settle_texts(o, p->v.bytes, p->len);
    call_stack_free(stk);
}

void
settle_all(struct errand *c)
{
    struct xlator *xl = c->xl;
    struct dist *d = xl->private;
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return; /* no memory: a LOOKUP settles the names */
    stk->caller.pid = PID_INTERNAL;
    struct op o = dist_op_of(xl, stk);

    for (unsigned i = 0; i < d->count && children_all_up(d); i++) {
        if (settle_has_notes(&o, i))
            settle_noted_on(&o, i);
    }
    call_stack_free(stk);
}
