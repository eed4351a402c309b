/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/cluster/dead-changes.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "fs/inode.h"
#include "graph/graph.h"
#include "log/log.h"
#include "xlators/cluster/fan.h"

/* NOTES_LISTED: a brick lists no more of its notes at once (features/index/index-dead.c). */
enum { NOTES_MAX = 16384, NOTES_LISTED = 2048, AGAIN_FIRST_MS = 2000, AGAIN_LAST_MS = 64000 };

/* ---- the notes ------------------------------------------------------------------------------- */

/* As the bricks send it (features/index/index-dead.c). */
struct dead_note {
    struct gfid gfid;
    uint8_t number[8]; /* its first bit: the object had a dirty mark of contents */
};

struct dead_notes {
    struct dead_note *note;
    size_t count;
};

/* A call about the root to child i; NULL: out of memory. */
static struct call_stack *
root_call(struct xlator *xl, enum fop fop)
{
    struct call_stack *stk = coro_call_new();

    if (!stk)
        return NULL;
    stk->caller.pid = PID_SELF_HEAL;
    stk->call.fop = fop;
    stk->call.loc.inode = inode_root(xl->graph->inodes);
    return stk;
}

/* Reads the notes of child i. 0 or -errno. */
static int
read_notes(struct xlator *xl, unsigned i, struct dead_notes *out)
{
    struct call_stack *stk = root_call(xl, FOP_getxattr);

    if (!stk)
        return -ENOMEM;
    stk->call.name = dict_key_text(DICT_KEY_DEAD_CHANGES);
    stk->call.has_name = 1;
    int ret = coro_call(stk, xl->children[i]);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find(stk->reply.dict, DICT_KEY_DEAD_CHANGES);

    if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED)) {
        out->count = p->len / sizeof *out->note;
        out->count = out->count < NOTES_MAX ? out->count : NOTES_MAX;
        out->note = calloc(out->count ? out->count : 1, sizeof *out->note);
        if (out->note)
            memcpy(out->note, p->v.bytes, out->count * sizeof *out->note);
        else
            ret = -ENOMEM;
    }
    call_stack_free(stk);
    return ret == -ENODATA || ret == -EOPNOTSUPP ? 0 : ret < 0 ? ret : 0;
}

/* Removes the child's note about the object, and from the list. */
static void
forget_note(struct xlator *xl, unsigned i, struct dead_notes *notes, const struct gfid *gfid)
{
    for (size_t n = 0; n < notes->count; n++) {
        struct dead_note *note = &notes->note[n];

        if (!gfid_equal(&note->gfid, gfid))
            continue;
        struct call_stack *stk = root_call(xl, FOP_lookup);

        if (stk && call_xdata(stk) &&
            !dict_set_bytes(stk->call.xdata, DICT_KEY_DEAD_CHANGE_DONE, note, sizeof *note))
            (void)coro_call(stk, xl->children[i]); /* else the note stays for the next healer */
        if (stk)
            call_stack_free(stk);
        note->gfid = gfid_null;
    }
}

/* ---- a run ----------------------------------------------------------------------------------- */

/* Has the errand run again later, if objects wait. */
static void
schedule_again(struct dead_changes *c, bool has_left)
{
    pthread_mutex_lock(&c->lock);
    if (!has_left) {
        c->pause_ms = AGAIN_FIRST_MS;
    } else if (!c->is_stopping) {
        timer_start(&c->again, c->pause_ms);
        c->pause_ms = 2 * c->pause_ms < AGAIN_LAST_MS ? 2 * c->pause_ms : AGAIN_LAST_MS;
    }
    pthread_mutex_unlock(&c->lock);
}

struct dead_outcome {
    unsigned done, left;
    int last; /* -errno of the latest object that waits */
};

/* Returns whether a child noted that the object's contents were being changed. */
static bool
has_changed_contents(const struct dead_notes notes[], unsigned children, const struct gfid *gfid)
{
    bool has = false;

    for (unsigned i = 0; i < children; i++) {
        for (size_t n = 0; n < notes[i].count; n++)
            has |= gfid_equal(&notes[i].note[n].gfid, gfid) && (notes[i].note[n].number[0] & 0x80);
    }
    return has;
}

/* Compares the objects that child i notes. */
static void
compare_noted(struct dead_changes *c, struct dead_notes notes[], unsigned i, struct dead_outcome *o)
{
    struct xlator *xl = c->errand.xl;

    for (size_t n = 0; n < notes[i].count && c->of->is_ready(xl); n++) {
        struct gfid gfid = notes[i].note[n].gfid;
        if (gfid_is_null(&gfid))
            continue;
        int err = c->of->compare(xl, &gfid, has_changed_contents(notes, xl->child_count, &gfid));

        if (err) {
            o->left++;
            o->last = err;
        } else {
            o->done++;
            for (unsigned k = 0; k < xl->child_count; k++)
                forget_note(xl, k, &notes[k], &gfid);
        }
    }
}

static void
compare_all(struct errand *e)
{
    struct dead_changes *c = caa_container_of(e, struct dead_changes, errand);
    struct xlator *xl = e->xl;
    struct dead_notes notes[FAN_CHILDREN_MAX] = {0};
    struct dead_outcome o = {0};
    bool has_more = false;
    int err = 0;

    if (!c->of->is_ready(xl) || !(xlator_brick_facts(xl) & BRICK_NAME_NOTES))
        return;
    for (unsigned i = 0; i < xl->child_count && !err; i++) {
        err = read_notes(xl, i, &notes[i]);
        has_more |= notes[i].count >= NOTES_LISTED;
    }
    for (unsigned i = 0; i < xl->child_count && !err; i++)
        compare_noted(c, notes, i, &o);
    if (err)
        log_event(LOG_WARNING, xl, "dead-changes-unknown",
                  "a brick does not tell which objects a client was changing when it died: %s; asking again",
                  strerror(-err));
    if (o.done || o.left)
        log_event(LOG_INFO, xl, "dead-changes",
                  "compared %u objects that a client was changing when it died; %u wait%s%s", o.done, o.left,
                  o.last ? ": " : "", o.last ? strerror(-o.last) : "");
    for (unsigned i = 0; i < xl->child_count; i++)
        free(notes[i].note);
    schedule_again(c, err || o.left > 0 || (o.done && has_more));
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
again_fired(struct timer *t)
{
    struct dead_changes *c = caa_container_of(t, struct dead_changes, again);

    errand_ask(&c->errand);
}

void
dead_changes_init(struct dead_changes *c, struct xlator *xl, const struct dead_changes_of *of)
{
    errand_init(&c->errand, xl, compare_all);
    timer_init(&c->again, again_fired);
    pthread_mutex_init(&c->lock, NULL);
    c->of = of;
    c->pause_ms = AGAIN_FIRST_MS;
}

void
dead_changes_ask(struct dead_changes *c)
{
    errand_ask(&c->errand);
}

void
dead_changes_stop(struct dead_changes *c)
{
    pthread_mutex_lock(&c->lock);
    c->is_stopping = true;
    pthread_mutex_unlock(&c->lock);
    timer_stop(&c->again);
}

void
dead_changes_fini(struct dead_changes *c)
{
    pthread_mutex_destroy(&c->lock);
}
