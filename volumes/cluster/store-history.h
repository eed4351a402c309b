/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* store-history: lets etcd forget former values. etcd keeps each former value of each key until a client asks
 * it to compact, and refuses changes when its file has 2 GB. Questions between hosts are keys of the store
 * (cluster-ask.h), so one `kiln top` on three hosts makes some 10 KB of former values each second.
 *
 * One of the live hosts asks etcd each STORE_HISTORY_S seconds to forget the values that were former ones
 * already at its last look, if there are STORE_HISTORY_MIN of them. A watch that is farther behind ends with
 * -ENODATA, and its host reads everything anew. Two hosts that both look do no harm.
 *
 * thread: the keeper of cluster.c. */
#ifndef KILN_VOLUMES_STORE_HISTORY_H
#define KILN_VOLUMES_STORE_HISTORY_H

#include "volumes/cluster/store.h"

enum { STORE_HISTORY_S = 60, STORE_HISTORY_MIN = 1000 /* revisions */ };

/* A failure is logged once. */
void store_history_look(struct store *s);

#endif
