/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dir-offset: the cookies of a directory's entries in a graph with several bricks: which brick, and its
 * cookie.
 *
 * A cookie is put together where the brick's reply comes in (protocol/client) and taken apart where the next
 * call goes out; layers between look which brick it is of. Bricks are counted by struct xlator's leaf_first.
 * The form is stock's, so that cookies of both clients look alike; nobody else relies on it.
 *
 *      of one brick:      the brick's own
 *      small:             cookie * bricks + brick
 *      2^(62 - b) on:     2^62 | cookie / 2, its low b bits replaced by the brick; b: bits of the largest
 *      brick
 *
 * Of the large ones the lowest b + 1 bits are lost: a file system whose cookies are hashes has none that
 * differ in those alone but by accident.
 *
 * thread: any; nothing is kept.
 */
#ifndef KILN_GRAPH_DIR_OFFSET_H
#define KILN_GRAPH_DIR_OFFSET_H

#include <stdint.h>

/* 0 (the beginning) and 2^64 - 1 stay as they are. */
uint64_t dir_offset_join(uint64_t cookie, unsigned brick, unsigned bricks);
/* The brick's cookie; *brick is 0 for those that stay as they are. A number that nobody has put together
 * gives some brick below `bricks`. */
uint64_t dir_offset_split(uint64_t offset, unsigned bricks, unsigned *brick);

#endif
