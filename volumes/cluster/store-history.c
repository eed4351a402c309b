/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/store-history.h"

#include <errno.h>
#include <stdbool.h>

#include "log/log.h"

static int64_t last_look, forgotten; /* revisions; 0: none in this process */
static bool is_refused;

static void
ignore_key(const char *key, const char *text, int64_t revision, void *arg)
{
    (void)key;
    (void)text;
    (void)revision;
    (void)arg;
}

void
store_history_look(struct store *s)
{
    struct problem why;
    int64_t now = 0;

    if (store_list(s, "format", ignore_key, NULL, &now, &why))
        return; /* the keeper reports a store that is away */
    /* A store that was restored from a backup has lower revisions. */
    if (now < last_look)
        last_look = forgotten = 0;
    if (last_look - forgotten >= STORE_HISTORY_MIN) {
        int err = store_forget(s, last_look, &why);

        if (!err)
            forgotten = last_look;
        else if (err != -EAGAIN && !is_refused)
            log_event(LOG_WARNING, NULL, "store-history",
                      "the store keeps all former values: %s. Start etcd with --auto-compaction-retention=1h",
                      why.wrong);
        is_refused = err && (is_refused || err != -EAGAIN);
    }
    last_look = now;
}
