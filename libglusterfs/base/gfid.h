/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* gfid: the 16 bytes that name an object of a volume, on every brick and for every client.
 *
 * Values are plain structs, compared and copied whole. Text is the canonical lower-case uuid of 36
 * characters. The root directory's gfid is 15 zero bytes and a 1 (spec: wire 5.1, brick 3.3).
 *
 * thread: any. Functions keep no pointers to their arguments. */
#ifndef KILN_BASE_GFID_H
#define KILN_BASE_GFID_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define GFID_BYTES 16
#define GFID_TEXT_SIZE 37 /* 36 characters and a NUL */

struct gfid {
    uint8_t b[GFID_BYTES];
};

extern const struct gfid gfid_root;
extern const struct gfid gfid_null;

/* Are both the same gfid? Is the gfid null? Is it the root's? */
static inline bool
gfid_equal(const struct gfid *a, const struct gfid *b)
{
    return memcmp(a, b, sizeof *a) == 0;
}
static inline bool
gfid_is_null(const struct gfid *g)
{
    return gfid_equal(g, &gfid_null);
}
static inline bool
gfid_is_root(const struct gfid *g)
{
    return gfid_equal(g, &gfid_root);
}

/* The inode number clients see: the low 8 bytes, read big-endian. */
static inline uint64_t
gfid_ino(const struct gfid *g)
{
    uint64_t be;

    memcpy(&be, g->b + 8, sizeof be);
    return __builtin_bswap64(be);
}

/* A hash for tables in memory; gfids are random, so it uses only some of the bytes. */
static inline uint64_t
gfid_hash(const struct gfid *g)
{
    uint64_t low;

    memcpy(&low, g->b + 8, sizeof low);
    return low * 0x9e3779b97f4a7c15ull;
}

/* Writes 36 characters and a NUL to `text` and returns it. */
char *gfid_text(const struct gfid *g, char text[GFID_TEXT_SIZE]);

/* Reads exactly 36 characters (`len` is checked); 0 or -EINVAL. Upper case is accepted. */
int gfid_parse(const char *text, size_t len, struct gfid *out);

/* Makes a new random gfid (version 4). Cannot fail. */
void gfid_random(struct gfid *out);

/* For printf arguments: the text lives until the end of the enclosing block. */
#define GFID(g) gfid_text((g), (char[GFID_TEXT_SIZE]){0})

#endif
