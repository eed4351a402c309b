/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Bricks in memory that keep notes of objects which a dead client was changing (dead-changes.h), for unit
 * tests. */
#ifndef KILN_CLUSTER_TEST_NOTES_H
#define KILN_CLUSTER_TEST_NOTES_H

#include <errno.h>
#include <string.h>

#include "base/test-must.h"
#include "xlators/cluster/test-children.h"

enum { NOTES_MAX = 16, RUNS_MAX = 16 };

/* As the bricks send it. */
struct brick_note {
    struct gfid gfid;
    uint8_t number[8];
};

static struct brick_note notes[CHILDREN_MAX][NOTES_MAX];
static unsigned note_counts[CHILDREN_MAX];
static uint64_t note_read_ns[RUNS_MAX]; /* times at which child 0 was asked for its notes */
static unsigned note_reads;
static bool renews_notes; /* another client dies in the objects after the notes were read */

static inline void
note_gfid(unsigned i, const struct gfid *gfid, bool contents)
{
    for (unsigned n = 0; n < note_counts[i]; n++) {
        if (gfid_equal(&notes[i][n].gfid, gfid)) {
            notes[i][n].number[7]++; /* a later death */
            notes[i][n].number[0] |= contents ? 0x80 : 0;
            return;
        }
    }
    must(note_counts[i] < NOTES_MAX);
    notes[i][note_counts[i]++] = (struct brick_note){.gfid = *gfid, .number = {contents ? 0x80 : 0, [7] = 1}};
}

static inline void
forget_note_of(unsigned i, const void *done)
{
    for (unsigned n = 0; n < note_counts[i]; n++) {
        if (memcmp(&notes[i][n], done, sizeof notes[i][n]) == 0)
            notes[i][n--] = notes[i][--note_counts[i]];
    }
}

static inline unsigned
notes_left(void)
{
    unsigned left = 0;

    for (unsigned i = 0; i < scene.count; i++)
        left += note_counts[i];
    return left;
}

static inline void
list_notes(unsigned i, struct call_stack *stk, int *ret)
{
    if (i == 0)
        note_read_ns[note_reads++ % RUNS_MAX] = scene.now_ns;
    if (!note_counts[i])
        return;
    char *list = arena_dup(&stk->arena, (const char *)notes[i], sizeof notes[i]);
    uint32_t len = note_counts[i] * (uint32_t)sizeof notes[i][0];

    must(list && dict_set_bytes(reply_dict(stk), DICT_KEY_DEAD_CHANGES, list, len) == 0);
    *ret = (int)len;
    for (unsigned n = 0; n < note_counts[i] && renews_notes; n++)
        notes[i][n].number[7]++;
}

/* Serves the calls about notes (scene.lie). */
static inline void
serve_notes(unsigned i, struct call_stack *stk, int *ret)
{
    const struct fop_call *call = &stk->call;
    const char *key = dict_key_text(DICT_KEY_DEAD_CHANGES);
    const struct dict_pair *done =
        call->fop == FOP_lookup && *ret >= 0 ? dict_find(call->xdata, DICT_KEY_DEAD_CHANGE_DONE) : NULL;

    if (call->fop == FOP_getxattr && call->name && strcmp(call->name, key) == 0 && *ret == -ENODATA)
        list_notes(i, stk, ret);
    if (done && done->len == sizeof notes[i][0])
        forget_note_of(i, done->v.bytes);
}

static inline void
note_path(unsigned i, const char *path)
{
    struct stored_object *o = store_find(&scene.store[i], path);

    if (o)
        note_gfid(i, &o->stat.gfid, false);
}

#endif
