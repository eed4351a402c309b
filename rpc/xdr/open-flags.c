/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/open-flags.h"

#include <fcntl.h>

#define WIRE_FMODE_EXEC 040u
#define WIRE_SYNC 010000u

static const struct {
    uint32_t wire, native;
} flags[] = {
    {WIRE_FMODE_EXEC, 040}, /* the kernel's own bit, the same everywhere */
    {0100, O_CREAT},        {0200, O_EXCL},        {0400, O_NOCTTY},      {01000, O_TRUNC},
    {02000, O_APPEND},      {04000, O_NONBLOCK},   {020000, O_ASYNC},     {040000, O_DIRECT},
    {0200000, O_DIRECTORY}, {0400000, O_NOFOLLOW}, {01000000, O_NOATIME}, {02000000, O_CLOEXEC},
};

uint32_t
open_flags_from_wire(uint32_t wire)
{
    uint32_t native = wire & O_ACCMODE;

    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        native |= wire & flags[i].wire ? flags[i].native : 0;
    /* O_DSYNC and O_SYNC share one bit on the wire, which is read as the stronger. */
    return wire & WIRE_SYNC ? native | O_SYNC : native;
}

uint32_t
open_flags_to_wire(uint32_t native)
{
    uint32_t wire = native & O_ACCMODE;

    for (unsigned i = 0; i < sizeof flags / sizeof *flags; i++)
        wire |= native & flags[i].native ? flags[i].wire : 0;
    return native & (O_SYNC | O_DSYNC) ? wire | WIRE_SYNC : wire;
}
