/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* open-flags: open(2) flags from and to their form in OPEN, CREATE and PUT (spec: wire 5.3). The flags of
 * READ and WRITE are raw and are not converted. */
#ifndef KILN_RPC_XDR_OPEN_FLAGS_H
#define KILN_RPC_XDR_OPEN_FLAGS_H

#include <stdint.h>

/* Bits that have no counterpart are dropped, in both directions. */
uint32_t open_flags_from_wire(uint32_t wire);
uint32_t open_flags_to_wire(uint32_t native);

#endif
