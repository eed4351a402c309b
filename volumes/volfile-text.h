/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile-text: generates the volfiles of a volume, with the layers and options that stock glusterd would
 * write (spec: management 6.2 to 6.5). Each volfile depends on the volume alone; it is generated on
 * request and not stored. The caller frees the texts; NULL: no memory.
 */
#ifndef KILN_VOLUMES_VOLFILE_TEXT_H
#define KILN_VOLUMES_VOLFILE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "volumes/volume.h"

/* `shared`: number of bricks of the volume on the file system of this brick. */
char *volfile_text_brick(const struct volume *v, unsigned brick, unsigned shared);

/* Where a client finds bricks without a host: at the address at which the client reached this process. */
struct volfile_place {
    const char *host;
    bool is_ipv6;
};
char *volfile_text_client(const struct volume *v, const struct volfile_place *place);

/* The op-versions that a client supports, ends included. */
struct op_versions {
    uint32_t min, max;
};
/* The op-version that a client must support for this volume: client-op-version of stock glusterd 10.3. */
uint32_t volfile_op_version(const struct volume *v);

/* The volfile of a replica set for the self-heal daemon, which runs on this machine and gets the port of the
 * bricks of this machine. */
char *volfile_text_heal(const struct volume *v, uint16_t port, unsigned set);

/* The volfile of the whole volume for the rebalancer, which runs on this machine and gets the port of the
 * bricks. Its top is cluster/distribute. */
char *volfile_text_rebalance(const struct volume *v, uint16_t port);

#endif
