/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* shut-out: tells whether a change of auth.allow or auth.reject would disconnect clients that are connected
 * now. The clients of kilnd itself, which log in with the volume's password, keep their access by auth.allow
 * and are not counted.
 *
 * thread: any that may wait for a name server, because the lists may have host names.
 */
#ifndef KILN_VOLUMES_SHUT_OUT_H
#define KILN_VOLUMES_SHUT_OUT_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* `options` are pairs of texts that are about to be set. Returns 0, -EBUSY with *why, which names the
 * clients, or -ENOMEM. */
int shut_out_check(const struct volume *v, const json_t *options, struct problem *why);

/* Returns the number of clients that are connected to the volume, as its brick with most of them has it.
 * Clients of kilnd itself are not counted. */
unsigned shut_out_clients(const struct volume *v);

#endif
