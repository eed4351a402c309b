/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The locks of a brick in a statedump (spec: brick 8.11). */
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "graph/graph.h"
#include "log/escape.h"
#include "xlators/features/locks/locks-internal.h"

struct dumping {
    struct xlator *xl;
    struct dump *dump;
};

#define OWNER_SHOWN 64

static const char *
owner_hex(const struct lk_owner *owner, char text[2 * OWNER_SHOWN + 1])
{
    uint32_t n = owner->len < OWNER_SHOWN ? owner->len : OWNER_SHOWN;

    text[0] = '\0';
    for (uint32_t i = 0; i < n; i++)
        snprintf(text + 2 * i, 3, "%02x", owner->bytes[i]);
    return text;
}

static void
dump_lock(struct dump *d, const char *kind, unsigned n, const struct lock *l, bool is_entry)
{
    char key[64], what[1200], owner[2 * OWNER_SHOWN + 1], when[32], name[1024], uid[1024];
    const char *type = l->type == FLOCK_WRITE ? "WRITE" : "READ";
    struct tm tm;

    snprintf(key, sizeof key, "%s.%s[%u](%s)", kind, kind, n, l->waiter ? "BLOCKED" : "ACTIVE");
    log_escape_field(name, sizeof name, l->name ? l->name : "(null)");
    log_escape_field(uid, sizeof uid, l->client ? l->client->uid : "(internal)");
    if (is_entry)
        snprintf(what, sizeof what, "type=ENTRYLK_%s on basename=%s, pid = %d",
                 l->type == FLOCK_WRITE ? "WRLCK" : "RDLCK", name, l->pid);
    else
        snprintf(what, sizeof what, "type=%s, whence=%u, start=%" PRId64 ", len=%" PRId64 ", pid = %d", type,
                 l->flock.whence, l->start, l->end == INT64_MAX ? 0 : l->end - l->start + 1, l->pid);
    time_t since = l->since;
    strftime(when, sizeof when, "%Y-%m-%d %H:%M:%S +0000", gmtime_r(&since, &tm));
    dump_line(d, key, "%s, owner=%s, client=%p, connection-id=%s, %s at %s", what,
              owner_hex(&l->owner, owner), (const void *)l->client, uid,
              l->waiter ? "blocked" : "granted", when);
}

static void
dump_list(struct dump *d, const char *kind, const struct cds_list_head *list, unsigned *n, bool is_entry)
{
    const struct lock *l;

    cds_list_for_each_entry(l, list, link)
        dump_lock(d, kind, (*n)++, l, is_entry);
}

static void
dump_domain(struct dump *d, const struct lock_domain *domain)
{
    unsigned inodelks = 0, entrylks = 0;

    dump_line(d, "lock-dump.domain.domain", "%s", domain->name);
    dump_list(d, "inodelk", &domain->inodelks.granted, &inodelks, false);
    dump_list(d, "inodelk", &domain->inodelks.waiting, &inodelks, false);
    dump_list(d, "entrylk", &domain->entrylks.granted, &entrylks, true);
    dump_list(d, "entrylk", &domain->entrylks.waiting, &entrylks, true);
}

/* The only place that holds the mutex while a file is written. A statedump is rare and buffered by stdio, and
 * copying all locks first would not hold it for a shorter time. */
static void
dump_inode(struct inode *inode, void *ctx, void *arg)
{
    const struct dumping *to = arg;
    struct lock_inode *li = ctx;
    struct lock_domain *domain;
    char path[4096];
    unsigned n = 0;

    pthread_mutex_lock(&li->mutex);
    if (li->count) {
        dump_section(to->dump, "xlator.features.locks.%s.inode", to->xl->name);
        if (inode_path(inode, path, sizeof path) < 0)
            snprintf(path, sizeof path, "<gfid:%s>", GFID(&inode->gfid));
        dump_line(to->dump, "path", "%s", path);
        dump_line(to->dump, "mandatory", "0");
        if (li->counts[LOCK_INODE])
            dump_line(to->dump, "inodelk-count", "%u", li->counts[LOCK_INODE]);
        if (li->counts[LOCK_ENTRY])
            dump_line(to->dump, "entrylk-count", "%u", li->counts[LOCK_ENTRY]);
        if (li->counts[LOCK_POSIX])
            dump_line(to->dump, "posixlk-count", "%u", li->counts[LOCK_POSIX]);
        cds_list_for_each_entry(domain, &li->domains, link)
            dump_domain(to->dump, domain);
        dump_list(to->dump, "posixlk", &li->posix.granted, &n, false);
        dump_list(to->dump, "posixlk", &li->posix.waiting, &n, false);
        dump_line(to->dump, "removes_pending", "%u", removal_count(li));
    }
    pthread_mutex_unlock(&li->mutex);
}

void
locks_dump(struct xlator *xl, struct dump *dump)
{
    struct dumping to = {xl, dump};

    inode_table_each(xl->graph->inodes, xl, dump_inode, &to);
}
