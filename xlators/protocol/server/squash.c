/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* squash: the ids with which a call is executed: root-squash and all-squash (spec: brick 9.2), and whether a
 * negative pid counts.
 *
 * Any client can send a negative pid. A negative pid counts for clients that have proven by username and
 * password that they have the volume's own volfile, and for root, for which little changes. For all other
 * clients the pid is only a number.
 *
 * Under root-squash one case remains. Distribute does internal work (linkto files, layouts) in the mount,
 * with a negative pid and uid 0, for users who own the directories; clients' volfiles have no username. Such
 * a call has the rights of all users except root, because a client can send any user's id anyway: root-squash
 * promises that no client acts as root, not that no client acts as another user. */
#include <errno.h>

#include "xlators/protocol/server/server-internal.h"

/* True for internal clients that have given a password. They do the volume's internal work and keep their
 * ids. */
static bool
squash_is_exempt(const struct brick_client *client, int32_t pid)
{
    switch (pid) {
    case -1: /* gsyncd */
    case -3: /* rebalance */
    case -4: /* healing in a mount */
    case -5: /* quota */
    case -6: /* self-heal daemon */
        return client->is_trusted;
    }
    return false;
}

static bool
has_root_group(const struct caller *c)
{
    for (uint32_t i = 0; i < c->group_count; i++)
        if (c->groups[i] == 0)
            return true;
    return false;
}

/* Changes a copy of the list, because the list itself belongs to the record. */
static int
squash_list(const struct server_conf *conf, struct caller *c, struct arena *arena)
{
    if (!has_root_group(c))
        return 0;
    uint32_t *groups = arena_alloc(arena, c->group_count * sizeof *groups);

    if (!groups)
        return -ENOMEM;
    for (uint32_t i = 0; i < c->group_count; i++)
        groups[i] = c->groups[i] ? c->groups[i] : (uint32_t)conf->anongid;
    c->groups = groups;
    return 0;
}

static int
squash(const struct server_conf *conf, struct caller *caller, struct arena *arena)
{
    if (conf->all_squash) {
        caller->uid = (uint32_t)conf->anonuid;
        caller->gid = (uint32_t)conf->anongid;
        caller->group_count = 0;
        return 0;
    }
    if (caller->uid == 0)
        caller->uid = (uint32_t)conf->anonuid;
    if (caller->gid == 0)
        caller->gid = (uint32_t)conf->anongid;
    return squash_list(conf, caller, arena);
}

int
squash_by_options(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
                  struct arena *arena)
{
    bool was_root = caller->uid == 0;
    int err = 0;

    if (!squash_is_exempt(client, caller->pid))
        err = squash(conf, caller, arena);
    if (client->is_trusted || caller->uid == 0)
        caller->standing = PID_COUNTS;
    else
        caller->standing = was_root && !conf->all_squash ? PID_WAS_SQUASHED : PID_COUNTS_NOT;
    return err;
}

int
squash_groups(const struct server_conf *conf, const struct brick_client *client, struct caller *caller,
              struct arena *arena)
{
    bool is_squashed = (conf->root_squash || conf->all_squash) && !squash_is_exempt(client, caller->pid);

    return is_squashed ? squash_list(conf, caller, arena) : 0;
}
