/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* host-proof: certificates by which the hosts of a store prove themselves to each other.
 *
 *     kiln host add NAME ADDRESS   /kiln/authority = {"certificate": PEM}; host NAME gets its certificate
 *     each record of a host        {..., "certificate": PEM, "proof": signature of the rest by its key}
 *
 * Once the store has an authority, a record of a host counts only if a certificate of that authority, with
 * the host's name as its common name and valid now, belongs to the key that has signed the record. The
 * signature also covers the place of the record (the key of the store), so that no host can put the record of
 * another host elsewhere. Before, records are signed if the host has a certificate, and any record counts.
 *
 * Dates are compared with this machine's clock; kiln issues certificates that began an hour before.
 *
 * Functions are for any thread that may wait for a disk. */
#ifndef KILN_VOLUMES_HOST_PROOF_H
#define KILN_VOLUMES_HOST_PROOF_H

#include <jansson.h>
#include <stdbool.h>

#include "volumes/problem.h"

/* The files of this host; NULL: glusterfs.pem and glusterfs.key in /usr/lib/ssl, then in /etc/ssl. The texts
 * must stay valid. Called before other threads start. */
void host_proof_files(const char *cert, const char *key);
/* The text of the store's record of its authority; NULL: the store has none. Returns true if that changes the
 * authority. */
bool host_proof_set_authority(const char *text);
/* Returns the certificate of the authority in PEM, which the caller frees, or NULL: there is none. */
char *host_proof_authority(void);
/* Frees the authority. */
void host_proof_close(void);

/* Functions below return 0 or -errno with *why. */

/* Judges the certificate of this host by the text of the store's record of its authority. */
int host_proof_check_own(const char *text, const char *host, struct problem *why);
/* Adds the certificate and the signature to `record`, which stands at `place`. A host without a certificate
 * is refused (-ENOENT, -EACCES) if the store has an authority; else its record stays as it is. */
int host_proof_sign(json_t *record, const char *place, const char *host, struct problem *why);
/* Judges a record of `host` at `place`. -EACCES: no proof. 0 if the store has no authority. */
int host_proof_check(const json_t *record, const char *place, const char *host, struct problem *why);
/* The same for a given authority: its certificate in PEM. */
int host_proof_check_by(const char *authority, const json_t *record, const char *place, const char *host,
                        struct problem *why);

#endif
