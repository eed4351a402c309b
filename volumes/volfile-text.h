/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* volfile-text: the volfiles of a volume, with the layers and options that stock glusterd would have written
 * (spec: management 6.2 to 6.5). Each is a function of the volume alone: it is made when it is asked for, and
 * none is kept. Texts are to be freed; NULL: no memory.
 */
#ifndef KILN_VOLUMES_VOLFILE_TEXT_H
#define KILN_VOLUMES_VOLFILE_TEXT_H

#include <stdbool.h>
#include <stdint.h>

#include "volumes/volume.h"

/* `shared`: how many bricks of the volume lie on the file system of this one. */
char *volfile_text_brick(const struct volume *v, unsigned brick, unsigned shared);

/* Where a client finds the bricks whose host was not given: by the address at which it has found us. */
struct volfile_place {
    const char *host;
    bool is_ipv6;
};
char *volfile_text_client(const struct volume *v, const struct volfile_place *place);

/* What a client says that it can read: both ends count. */
struct op_versions {
    uint32_t min, max;
};
/* The op-version that a client must know for this volume: client-op-version of stock glusterd 10.3. */
uint32_t volfile_op_version(const struct volume *v);

/* The self-heal daemon's: it runs on this machine and is told the port. */
char *volfile_text_heal(const struct volume *v, uint16_t port);

#endif
