/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dir-offset: directory cookies in a graph with several bricks: a cookie joins the brick's number and the
 * brick's own cookie.
 *
 * A cookie is joined where the brick's reply comes in (protocol/client) and split where the next call goes
 * out; layers between use the brick's number. Bricks are counted by struct xlator's leaf_first. The form
 * is stock's, so that cookies of both clients look alike; no other program relies on it.
 *
 *      one brick:         the brick's own cookie
 *      small cookies:     cookie * bricks + brick
 *      2^(62 - b) on:     2^62 | cookie / 2, its low b bits replaced by the brick; b: bits of the largest
 *      brick
 *
 * A large cookie loses its lowest b + 1 bits. Where cookies are hashes, two that differ only in those bits
 * are a rare accident.
 *
 * thread: any; there is no state. */
#ifndef KILN_GRAPH_DIR_OFFSET_H
#define KILN_GRAPH_DIR_OFFSET_H

#include <stdint.h>

/* 0 (the beginning) and 2^64 - 1 stay as they are. */
uint64_t dir_offset_join(uint64_t cookie, unsigned brick, unsigned bricks);
/* Returns the brick's cookie; *brick is 0 for offsets that dir_offset_join() left as they were. A number
 * that dir_offset_join() has not made gives some brick below `bricks`. */
uint64_t dir_offset_split(uint64_t offset, unsigned bricks, unsigned *brick);

#endif
