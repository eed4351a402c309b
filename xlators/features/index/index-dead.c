/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Notes of objects that a client had locked for a change when its connection ended (locks/unfinished.c):
 * names of a folder may differ between replicas; names or attributes of an object between the bricks of a
 * dispersed set. The next mount or healer compares the object (cluster/dead-changes.h).
 *
 * A note is the symbolic link GFID-dead in indices/kiln-names/, beside the notes of index-names.c, with a
 * random number as the target. A healer that has compared the object names the number, so that the note of a
 * later death stays. The number's first bit is set if the object had a dirty mark of contents
 * (trusted.ec.dirty) then: a write was under way, and stock's daemon may take the mark back without a look at
 * the contents.
 *
 * Keys, in the xdata of LOOKUP:
 *      DEAD_CHANGE, by the brick's own locks    keeps the note of the object
 *      DEAD_CHANGE_DONE: gfid and number        removes that note
 * The value of the xattr kiln.dead-changes is the gfid and the number of each such object, of 2048 at most.
 * */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/index/index-internal.h"

#define DEAD_SUFFIX "-dead"
enum { DEAD_LISTED_MAX = 2048, DEAD_CONTENTS = 0x80 };

/* The value of xattr and key, as on the wire. */
struct dead_change {
    struct gfid gfid;
    uint8_t number[8];
};

static void
dead_path(char path[INDEX_PATH_MAX], const struct gfid *gfid)
{
    snprintf(path, INDEX_PATH_MAX, INDEX_NOTES "/%s" DEAD_SUFFIX, GFID(gfid));
}

/* Reads the number of the note. */
static bool
dead_read(struct index_private *priv, const char *path, uint8_t number[8])
{
    char text[GFID_TEXT_SIZE];
    struct gfid whole;
    ssize_t len = readlinkat(priv->base_fd, path, text, sizeof text);

    if (len != GFID_TEXT_SIZE - 1 || gfid_parse(text, GFID_TEXT_SIZE - 1, &whole))
        return false;
    memcpy(number, whole.b, 8);
    return true;
}

/* Replaces an older note, so that a healer that began before now does not remove this one. A write that a
 * death before has cut stays noted. */
static void
dead_keep(struct xlator *xl, const struct gfid *gfid, bool is_dirty)
{
    char path[INDEX_PATH_MAX];
    struct gfid number;
    uint8_t old[8];

    dead_path(path, gfid);
    is_dirty |= dead_read(index_private(xl), path, old) && (old[0] & DEAD_CONTENTS);
    gfid_random(&number);
    number.b[0] = (uint8_t)((number.b[0] & ~DEAD_CONTENTS) | (is_dirty ? DEAD_CONTENTS : 0));
    int err = index_note_write(index_private(xl), path, GFID(&number));

    if (err)
        log_event(LOG_WARNING, xl, "index-no-death-note",
                  "%s: no note about changes that a dead client may have left half-done: %s", GFID(gfid),
                  strerror(-err));
}

static void
dead_done(struct index_private *priv, const struct dead_change *done)
{
    char path[INDEX_PATH_MAX];
    uint8_t number[8];

    dead_path(path, &done->gfid);
    if (dead_read(priv, path, number) && memcmp(number, done->number, sizeof number) == 0)
        index_note_remove(priv, path);
}

/* Returns the number of notes written to `out`. */
static uint32_t
dead_list(struct index_private *priv, struct dead_change out[DEAD_LISTED_MAX])
{
    int fd = openat(priv->base_fd, INDEX_NOTES, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    char path[INDEX_PATH_MAX];
    struct dirent *e;
    uint32_t n = 0;

    if (!dir && fd >= 0)
        close(fd);
    while (dir && n < DEAD_LISTED_MAX && (e = readdir(dir))) {
        bool is_long = strlen(e->d_name) > GFID_TEXT_SIZE - 1;

        if (!is_long || strcmp(e->d_name + GFID_TEXT_SIZE - 1, DEAD_SUFFIX) != 0 ||
            gfid_parse(e->d_name, GFID_TEXT_SIZE - 1, &out[n].gfid))
            continue;
        dead_path(path, &out[n].gfid);
        n += dead_read(priv, path, out[n].number);
    }
    if (dir)
        closedir(dir);
    return n;
}

/* Returns whether the reply has a count of changed contents that is not zero. */
static bool
has_dirty_contents(const struct call_stack *stk)
{
    static const uint8_t zeros[8];
    const struct dict_pair *p = dict_find_text(stk->reply.xdata, "trusted.ec.dirty");

    return p && (p->type == DICT_PTR || p->type == DICT_UNTYPED) && p->len >= sizeof zeros &&
           memcmp(p->v.bytes, zeros, sizeof zeros) != 0;
}

/* An object that has gone needs no note. */
static xl_verdict
dead_looked_up_cb(struct frame *f, struct call_stack *stk)
{
    bool is_gone = stk->reply.op_ret < 0 && (stk->reply.op_errno == ENOENT || stk->reply.op_errno == ESTALE);

    if (!is_gone)
        dead_keep(f->xl, &stk->call.loc.inode->gfid, stk->reply.op_ret >= 0 && has_dirty_contents(stk));
    return XL_PASS;
}

static xl_verdict
ask_about_death(struct xlator *xl, struct call_stack *stk)
{
    int err = dict_set_text_int(stk->call.xdata, "trusted.ec.dirty", 0);

    return !err && frame_push(stk, xl, dead_looked_up_cb) ? XL_PASS : -ENOMEM;
}

xl_verdict
index_dead_lookup(struct xlator *xl, struct call_stack *stk)
{
    bool is_own = stk->caller.pid == PID_INTERNAL && !stk->client;
    const struct dict *asked = stk->call.xdata;

    if (is_own && stk->call.loc.inode && dict_has(asked, DICT_KEY_DEAD_CHANGE))
        return ask_about_death(xl, stk);
    if (!atomic_load_explicit(&index_private(xl)->name_notes, memory_order_relaxed))
        return XL_PASS;
    const struct dict_pair *p = dict_find(asked, DICT_KEY_DEAD_CHANGE_DONE);

    if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED) && p->len == sizeof(struct dead_change) &&
        index_may_use(&stk->caller))
        dead_done(index_private(xl), p->v.bytes);
    return XL_PASS;
}

xl_verdict
index_dead_list(struct xlator *xl, struct call_stack *stk)
{
    struct dict *dict = reply_dict(stk);
    struct dead_change *list = arena_alloc(&stk->arena, DEAD_LISTED_MAX * sizeof *list);

    if (!index_may_use(&stk->caller))
        return -EACCES;
    if (!dict || !list)
        return -ENOMEM;
    uint32_t len = dead_list(index_private(xl), list) * (uint32_t)sizeof *list;

    if (!len)
        return -ENODATA;
    if (dict_set_bytes(dict, DICT_KEY_DEAD_CHANGES, list, len))
        return -ENOMEM;
    stk->reply.op_ret = (int32_t)len;
    return XL_DONE;
}
