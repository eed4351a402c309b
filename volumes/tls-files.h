/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tls-files: checks, before server.ssl or client.ssl is turned on, that this machine has the certificate, the
 * key and the authorities. Without this check the operator learns it from clients that no longer connect.
 *
 * thread: any that may read files. */
#ifndef KILN_VOLUMES_TLS_FILES_H
#define KILN_VOLUMES_TLS_FILES_H

#include <jansson.h>

#include "volumes/problem.h"
#include "volumes/volume.h"

/* `options` are pairs of texts that are about to be set. Returns 0, or -errno with *why, which names the file
 * and the command that makes it. */
int tls_files_check(const struct volume *v, const json_t *options, struct problem *why);
/* Refuses options that turn TLS on or off for one side of a started volume only, which cuts all clients off.
 * Returns 0, or -errno with *why. */
int tls_sides_check(const struct volume *v, const json_t *options, struct problem *why);

#endif
