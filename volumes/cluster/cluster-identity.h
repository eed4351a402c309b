/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-identity: the file host.json of a state folder: the name of the host that keeps its copy of a store
 * there, and a random id of the machine. Two machines with one name have different ids, and the store refuses
 * the second (cluster.c).
 *
 * The file is written under another name first, so a death leaves no half file. Functions are called before
 * other threads start, and wait for the disk. */
#ifndef KILN_VOLUMES_CLUSTER_IDENTITY_H
#define KILN_VOLUMES_CLUSTER_IDENTITY_H

#include "base/gfid.h"
#include "volumes/problem.h"

/* Return 0 or -errno with *why. `id` gets the machine's id as text. */

/* -ENOENT: the folder has no identity; *why is then unchanged. -EINVAL: the folder is another host's. */
int cluster_identity_read(const char *dir, const char *host, char id[GFID_TEXT_SIZE], struct problem *why);
int cluster_identity_make(const char *dir, const char *host, char id[GFID_TEXT_SIZE], struct problem *why);
/* Flushes the folder to disk. */
int cluster_identity_flush(const char *dir, struct problem *why);
/* A state folder without --store: -EPERM with *why if the folder is the copy of a host with a store. */
int cluster_check_plain(const char *state_dir, struct problem *why);

#endif
