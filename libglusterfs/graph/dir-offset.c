/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "graph/dir-offset.h"

#define HUGE_BIT (UINT64_C(1) << 62)

static unsigned
bits_for(unsigned bricks)
{
    unsigned bits = 0;

    while (1u << bits < bricks)
        bits++;
    return bits;
}

uint64_t
dir_offset_join(uint64_t cookie, unsigned brick, unsigned bricks)
{
    unsigned bits = bits_for(bricks);
    uint64_t low = (UINT64_C(1) << bits) - 1;

    if (bricks <= 1 || !cookie || cookie == UINT64_MAX)
        return cookie;
    if (cookie < UINT64_C(1) << (62 - bits))
        return cookie * bricks + brick;
    return HUGE_BIT | (((cookie >> 1) & ~low & (HUGE_BIT - 1)) | brick);
}

uint64_t
dir_offset_split(uint64_t offset, unsigned bricks, unsigned *brick)
{
    uint64_t low = (UINT64_C(1) << bits_for(bricks)) - 1;

    *brick = 0;
    if (bricks <= 1 || !offset || offset == UINT64_MAX)
        return offset;
    if (offset & HUGE_BIT) {
        *brick = (unsigned)(offset & low) % bricks;
        return ((offset & (HUGE_BIT - 1)) & ~low) << 1;
    }
    *brick = (unsigned)(offset % bricks);
    return offset / bricks;
}
