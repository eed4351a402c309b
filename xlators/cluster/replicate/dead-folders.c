/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Folders whose names a client was changing when it died.
 *
 * With all children there, a change of names leaves no marks (entry.c). If the client dies after it has sent
 * the change to some children only, the name is on some children only. No application knows of the change,
 * and a LOOKUP of the name heals it, but until then the replicas differ, and no healer that walks the index
 * knows. Each brick knows that a client held the lock on the folder's names when its connection ended, and
 * keeps a note (features/index/index-names.c). The next mount or healer that has all children:
 *
 *      ask        each child for its notes: GETXATTR kiln.dead-folders of the root
 *      compare    all names of a noted folder and heal those that differ; of a large folder, only the names
 *                 that some children do not list (heal-entry.c)
 *      forget     the notes: LOOKUP with the number of each child's note. A brick keeps a note that another
 *                 death has renewed meanwhile
 *
 * A folder that cannot be compared now, because another healer has its lock or a name in it is locked, waits,
 * and so do all folders if a child does not answer with its notes: the errand runs again after 2 seconds,
 * then 4 and so on up to 64, while any waits.
 *
 * If the client that compares dies, the notes stay for the next one. A child that is missing keeps its note,
 * and the other children, too, until all are there. If a change marks the folder meanwhile (a child went
 * away), the marks lead all healers to the folder, as always.
 *
 * thread: dead_folders_compare() is an errand of the layer (errand.h), so one coroutine runs it at a time. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "log/log.h"
#include "xlators/cluster/replicate/heal.h"

/* LOOKED_UP_MAX: of a folder with fewer names each name is looked up. This finds a name that leads to
 * different objects, too: the rest of a rename over an existing name. */
enum { FOLDERS_MAX = 16384, LOOKED_UP_MAX = 10000, AGAIN_FIRST_MS = 2000, AGAIN_LAST_MS = 64000 };

/* ---- sets of names --------------------------------------------------------------------------- */

struct name_set {
    uint64_t *hash;
    size_t count, room;
};

struct name_sets {
    unsigned children;
    struct name_set of[];
};

struct name_sets *
name_sets_new(unsigned children)
{
    struct name_sets *s = calloc(1, sizeof *s + children * sizeof s->of[0]);

    if (s)
        s->children = children;
    return s;
}

void
name_sets_free(struct name_sets *s)
{
    for (unsigned i = 0; s && i < s->children; i++)
        free(s->of[i].hash);
    free(s);
}

int
name_sets_add(struct name_sets *s, unsigned i, const char *name)
{
    struct name_set *set = &s->of[i];

    if (set->count == set->room) {
        size_t room = set->room ? 2 * set->room : 64;
        uint64_t *hash = realloc(set->hash, room * sizeof *hash);

        if (!hash)
            return -ENOMEM;
        set->hash = hash;
        set->room = room;
    }
    set->hash[set->count++] = hash_text(name);
    return 0;
}

static int
hash_compare(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return (x > y) - (x < y);
}

void
name_sets_sort(struct name_sets *s)
{
    for (unsigned i = 0; i < s->children; i++)
        if (s->of[i].count)
            qsort(s->of[i].hash, s->of[i].count, sizeof s->of[i].hash[0], hash_compare);
}

bool
name_sets_all_have(const struct name_sets *s, const char *name)
{
    uint64_t hash = hash_text(name);

    for (unsigned i = 0; i < s->children; i++)
        if (s->of[i].count < LOOKED_UP_MAX ||
            !bsearch(&hash, s->of[i].hash, s->of[i].count, sizeof hash, hash_compare))
            return false;
    return true;
}

/* ---- the notes ------------------------------------------------------------------------------- */

/* As the bricks send it (index-names.c). */
struct dead_note {
    struct gfid gfid;
    uint8_t number[8];
};

struct dead_notes {
    struct dead_note *note;
    size_t count;
};

/* Reads the notes of child i. 0 or -errno. */
static int
read_notes(const struct heal *h, unsigned i, struct dead_notes *out)
{
    struct call_stack *stk = heal_call(h, FOP_getxattr, i);

    if (!stk)
        return -ENOMEM;
    stk->call.name = dict_key_text(DICT_KEY_DEAD_FOLDERS);
    stk->call.has_name = 1;
    int ret = coro_call(stk, h->op.r->xl->children[i]);
    const struct dict_pair *p = ret < 0 ? NULL : dict_find(stk->reply.dict, DICT_KEY_DEAD_FOLDERS);

    if (p && (p->type == DICT_PTR || p->type == DICT_UNTYPED)) {
        out->count = p->len / sizeof *out->note;
        out->count = out->count < FOLDERS_MAX ? out->count : FOLDERS_MAX;
        out->note = calloc(out->count ? out->count : 1, sizeof *out->note);
        if (out->note)
            memcpy(out->note, p->v.bytes, out->count * sizeof *out->note);
        else
            ret = -ENOMEM;
    }
    call_stack_free(stk);
    return ret == -ENODATA || ret == -EOPNOTSUPP ? 0 : ret < 0 ? ret : 0;
}

/* Removes the child's note about the folder, and from the list. */
static void
forget_note(const struct heal *h, unsigned i, struct dead_notes *notes, const struct gfid *gfid)
{
    for (size_t n = 0; n < notes->count; n++) {
        struct dead_note *note = &notes->note[n];

        if (!gfid_equal(&note->gfid, gfid))
            continue;
        struct call_stack *stk = heal_call(h, FOP_lookup, i);

        if (stk && call_xdata(stk) &&
            !dict_set_bytes(stk->call.xdata, DICT_KEY_DEAD_FOLDER_DONE, note, sizeof *note))
            (void)coro_call(stk, h->op.r->xl->children[i]); /* else the note stays for the next healer */
        if (stk)
            call_stack_free(stk);
        note->gfid = gfid_null;
    }
}

/* Compares the folder. Returns 0 if the names are the same now, or the folder is gone; or -errno. */
static int
compare_folder(struct replicate *r, const struct gfid *gfid)
{
    struct iatt a = {.gfid = *gfid, .mode = S_IFDIR | 0755};
    struct inode *dir = inode_link(r->xl->graph->inodes, NULL, NULL, &a);
    struct heal h;

    if (!dir)
        return -ENOMEM;
    heal_begin(&h, r, dir);
    h.wants_all_names = true;
    h.names = name_sets_new(r->count);
    int err = h.names ? heal_entries(&h) : -ENOMEM;

    if (err && h.gone != r->all)
        (void)heal_look(&h, CHANGE_ENTRY); /* a lock on a folder that has gone fails, too: is it gone? */
    if (err && h.gone == r->all)
        err = 0;
    name_sets_free(h.names);
    heal_end(&h);
    inode_unref(dir);
    return err;
}

/* Has the errand run again later, if folders wait. */
static void
schedule_again(struct replicate *r, bool has_left)
{
    pthread_mutex_lock(&r->lock);
    if (!has_left) {
        r->dead_pause_ms = AGAIN_FIRST_MS;
    } else if (!atomic_load(&r->is_stopping)) {
        timer_start(&r->dead_again, r->dead_pause_ms);
        r->dead_pause_ms = 2 * r->dead_pause_ms < AGAIN_LAST_MS ? 2 * r->dead_pause_ms : AGAIN_LAST_MS;
    }
    pthread_mutex_unlock(&r->lock);
}

static void
again_fired(struct timer *t)
{
    struct replicate *r = caa_container_of(t, struct replicate, dead_again);

    errand_ask(&r->dead_folders);
}

void
dead_folders_init(struct replicate *r)
{
    errand_init(&r->dead_folders, r->xl, dead_folders_compare);
    timer_init(&r->dead_again, again_fired);
    r->dead_pause_ms = AGAIN_FIRST_MS;
}

void
dead_folders_stop(struct replicate *r)
{
    pthread_mutex_lock(&r->lock); /* a run that has not seen is_stopping has started the timer by now */
    pthread_mutex_unlock(&r->lock);
    timer_stop(&r->dead_again);
}

void
dead_folders_compare(struct xlator *xl)
{
    struct replicate *r = xl->private;

    if (atomic_load(&r->up) != r->all || !(xlator_brick_facts(xl) & BRICK_NAME_NOTES))
        return;
    struct inode *root = inode_root(r->xl->graph->inodes);
    struct dead_notes notes[REPLICAS_MAX] = {0};
    unsigned done = 0, left = 0;
    struct heal h;
    int err = 0, last = 0;

    heal_begin(&h, r, root);
    for_each_child (i, r->all)
        err = err ? err : read_notes(&h, i, &notes[i]);
    for_each_child (i, r->all) {
        for (size_t n = 0; !err && n < notes[i].count; n++) {
            struct gfid gfid = notes[i].note[n].gfid;

            if (gfid_is_null(&gfid) || heal_must_stop(&h))
                continue;
            int failed = compare_folder(r, &gfid);

            if (failed) {
                left++;
                last = failed;
                continue;
            }
            done++;
            for_each_child (k, r->all)
                forget_note(&h, k, &notes[k], &gfid);
        }
    }
    if (err)
        log_event(LOG_WARNING, r->xl, "replicate-dead-folders-unknown",
                  "a brick does not tell which folders a client was changing when it died: %s; asking again",
                  strerror(-err));
    if (done || left)
        log_event(LOG_INFO, r->xl, "replicate-dead-folders",
                  "compared the names of %u folders that a client was changing when it died; %u wait%s%s",
                  done, left, last ? ": " : "", last ? strerror(-last) : "");
    for_each_child(i, r->all) free(notes[i].note);
    schedule_again(r, err || left > 0);
    heal_end(&h);
    inode_unref(root);
}
