/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* quota-hosts: the usage that the hosts of a store tell each other, so that a limit holds for the sum of all
 * subvolumes of a volume.
 *
 *     /kiln/usage/HOST/VOLUME = {"id", "sets", "rows"}       quota-rows.h; bound to the lease of HOST
 *
 * A host writes the key when a row has moved by 1/QUOTA_HOSTS_PART of its limit since the last write, or has
 * changed at all in the last QUOTA_HOSTS_OLD_S seconds, and at most once a second (ten times near the limit).
 * Each host gets the others' keys by its watch (cluster.c). Thus a limit may be exceeded by that part for
 * each other host, in addition to the writes of that time.
 *
 * Deaths: the key of a dead host ends with its lease. Then its sets have no usage unless another host has a
 * brick of the same set, so the sum lacks subvolumes, and bricks count these as in the last sum with them,
 * also after a restart (simple_quota_tell). Without the store each host goes on with the rows that it has.
 *
 * thread: any; quota_hosts_publish() waits for the store. */
#ifndef KILN_VOLUMES_QUOTA_HOSTS_H
#define KILN_VOLUMES_QUOTA_HOSTS_H

#include "volumes/quota-rows.h"

enum { QUOTA_HOSTS_PART = 256, QUOTA_HOSTS_OLD_S = 10 };

/* Gives the rows of this host's bricks to the other hosts, if the rows have changed so much. Failures are
 * tried again by the next call. */
void quota_hosts_publish(const struct volume *v, const struct quota_rows *own);
/* Adds the rows of other hosts' bricks of the volume. */
void quota_hosts_add(const struct volume *v, struct quota_rows *r);

/* cluster.c: a key below usage/ was put, or deleted (`text` NULL). `rest` is "HOST/VOLUME". */
void quota_hosts_seen(const char *rest, const char *text);
/* Forgets the rows of all other hosts, because the store is read anew. */
void quota_hosts_reset(void);
/* Releases memory; no other thread uses the module any more. */
void quota_hosts_close(void);

#endif
