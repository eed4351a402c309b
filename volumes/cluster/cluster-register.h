/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* cluster-register: the record of a host in the store, hosts/NAME.
 *
 *     kiln host add NAME ADDRESS     {"address", "added"}           and, with the first host, /kiln/authority
 *     kilnd --host NAME starts       {"id", "since", "address"...}  the host is registered
 *
 * A store without an authority registers every host that starts. A store with an authority registers only
 * hosts that kiln host add has added, and each host must show a certificate of the authority (host-proof.h).
 *
 * Deaths: each step is one transaction. A host that dies before its registration registers at its next start.
 * kiln dies between the store and the file of the certificate: kiln host add runs again, until the host has
 * registered.
 *
 * Functions are for any thread that may wait. They return 0 or -errno with *why. */
#ifndef KILN_VOLUMES_CLUSTER_REGISTER_H
#define KILN_VOLUMES_CLUSTER_REGISTER_H

#include "volumes/problem.h"

struct store;

/* Puts this host into the store unless it is there. `id` is the machine's (cluster-identity.h). -EEXIST:
 * another machine has the name. -EACCES: the host was not added, or has no valid certificate. */
int cluster_register(struct store *s, const char *host, const char *id, struct problem *why);
/* Adds a host that has not started yet. `authority`: the certificate in PEM that all hosts are judged by from
 * then on; every host that is registered already must be up and prove itself by it. */
int cluster_add_host(const char *host, const char *address, const char *authority, struct problem *why);

#endif
