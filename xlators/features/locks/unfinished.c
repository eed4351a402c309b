/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Objects whose attributes or names a client was changing when its connection ended.
 *
 * A replicate client that changes attributes with all replicas there sends the change alone, without marks
 * before it, under its metadata lock. If it dies together with one replica, the replicas may differ and no
 * counter says so: the self-heal daemon, which walks the indices, never looks at the object. The bricks that
 * live know better, because the client held the lock and has not given it back. Each of them counts metadata
 * +1 in trusted.afr.dirty then, by an XATTROP from the brick's top, so that features/index lists the object.
 *
 * If another client has removed the object meanwhile, the XATTROP fails and features/index drops the entry.
 *
 * A needless mark costs a heal that finds nothing: the client may have held the lock without a change under
 * way, or only the connection has broken and the client accuses this replica. Of metadata, healers trust an
 * accusation (pending xattr) whether a copy is dirty or not, so the mark hides none.
 *
 * Locks on names (entrylk) get no mark: a healer that finds a folder dirty merges the names of all replicas,
 * and brings back names whose removal was acknowledged. They get a note instead, which features/index keeps
 * (index-dead.c): the next kiln-mount or kiln-heal looks up each name that only some replicas list. Stock's
 * daemon does not know the note; a LOOKUP of the name heals the name, too. A needless note costs two listings
 * of the folder. Data changes are marked dirty by the client before it writes.
 *
 * A disperse client changes attributes and names in the same way, under a lock on the whole object in the
 * domain of its layer, VOLUME-disperse-N. (Replicate's locks on all data have the same range, but other
 * domains: volfiles name each layer by its kind.) The object gets a note, too: stock's daemon would remove
 * both names of a half done rename if it found the folders marked (disperse/dead-objects.c).
 *
 * A brick that dies before it has kept the note leaves none of its own; a note of one brick is enough. If all
 * bricks die with the client, the difference waits for a LOOKUP, or for a full heal. */
#include <string.h>

#include "graph/graph.h"
#include "log/log.h"
#include "xlators/features/locks/locks-internal.h"

/* trusted.afr.dirty: counts of data, metadata and names, big-endian. */
static const char dirty_key[] = "trusted.afr.dirty";
static const unsigned char one_of_metadata[12] = {[7] = 1};

bool
lock_is_of_attributes(const struct lock *l)
{
    return l->queue->kind == LOCK_INODE && l->start == METADATA_START && l->type == FLOCK_WRITE;
}

bool
lock_is_of_names(const struct lock *l)
{
    static const char distribute[] = "dht.", healers[] = ":self-heal";

    if (l->queue->kind != LOCK_ENTRY)
        return false;
    const char *domain = lock_queue_domain(l->queue)->name;
    size_t len = strlen(domain);

    return strncmp(domain, distribute, sizeof distribute - 1) != 0 &&
           (len < sizeof healers || strcmp(domain + len - (sizeof healers - 1), healers) != 0);
}

/* Returns whether it is the domain of a disperse layer: VOLUME-disperse-N. */
static bool
is_domain_of_disperse(const char *domain)
{
    static const char kind[] = "-disperse-";
    size_t len = strlen(domain), digits = 0;

    while (digits < len && domain[len - 1 - digits] >= '0' && domain[len - 1 - digits] <= '9')
        digits++;
    return digits && len - digits >= sizeof kind &&
           strncmp(domain + len - digits - (sizeof kind - 1), kind, sizeof kind - 1) == 0;
}

bool
lock_is_of_fragments(const struct lock *l)
{
    return l->queue->kind == LOCK_INODE && l->start == 0 && l->end == INT64_MAX && l->type == FLOCK_WRITE &&
           is_domain_of_disperse(lock_queue_domain(l->queue)->name);
}

static void
marked(struct call_stack *stk)
{
    struct graph *g = stk->owner;

    if (stk->reply.op_ret < 0)
        log_event(LOG_DEBUG, g->brick, "unfinished-change-not-marked", "%s was not marked for heal: %s",
                  GFID(&stk->call.gfid), strerror(stk->reply.op_errno));
    call_stack_free(stk);
    graph_unpin(g);
}

/* Adds the arguments of the mark or of the note. Returns 0 or -ENOMEM. */
static int
fill_call(struct call_stack *stk, bool is_noted)
{
    struct dict *d = dict_new(&stk->arena);

    if (!d)
        return -ENOMEM;
    if (is_noted) {
        stk->call.fop = FOP_lookup;
        stk->call.xdata = d;
        return dict_set_int(d, DICT_KEY_DEAD_CHANGE, 1);
    }
    stk->call.fop = FOP_xattrop;
    stk->call.dict = d;
    return dict_set_text(d, dirty_key, DICT_PTR, one_of_metadata, sizeof one_of_metadata);
}

void
unfinished_mark(struct xlator *xl, struct inode *inode, bool is_noted)
{
    struct graph *g = xl->graph;

    if (!graph_pin(g)) /* the brick stops: its clients will accuse this replica */
        return;
    struct call_stack *stk = call_stack_new(marked, g);
    if (stk && !fill_call(stk, is_noted)) {
        stk->caller.pid = PID_INTERNAL;
        stk->call.gfid = inode->gfid;
        stk->call.loc.inode = inode_ref(inode);
        call_stack_wind(stk, g->brick);
        return;
    }
    log_event(LOG_WARNING, xl, "no-memory-to-mark-unfinished-change", "no memory to mark %s for heal",
              GFID(&inode->gfid));
    if (stk)
        call_stack_free(stk);
    graph_unpin(g);
}
