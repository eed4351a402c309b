/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dict: a small ordered set of named, typed values: xdata, xattr sets, SETVOLUME's options (spec: wire 4).
 *
 * A dict lives on an arena and dies with it; nobody frees or counts it. Its keys and values are pointers to
 * memory that lives at least as long as that arena: bytes of the received record, static strings, or copies
 * on the arena. Numbers and gfids are stored in place. There is room for a dozen pairs in the object itself;
 * more go to an array on the arena.
 *
 * Keys that Kiln knows have a number (dict-keys.def), worked out once when the pair is added, so that looking
 * one up compares integers. Every getter accepts a NULL dict and answers "not there".
 *
 * thread: the one that runs the operation. A getter's pair or text is lent: it lives as long as the arena,
 * but a pair only until the next one is set or removed.
 */
#ifndef KILN_DATA_DICT_H
#define KILN_DATA_DICT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/gfid.h"
#include "data/iatt.h"
#include "mem/arena.h"

/* The numbers are the wire's tags (wire 4.2). */
enum dict_type {
    DICT_UNTYPED = 1,
    DICT_INT = 2,
    DICT_UINT = 3,
    DICT_DOUBLE = 4,
    DICT_STR = 5, /* len counts the NUL */
    DICT_PTR = 6, /* raw bytes */
    DICT_GFID = 7,
    DICT_IATT = 8,
    DICT_MDATA = 9,
};

enum dict_key {
    DICT_KEY_UNKNOWN = 0,
#define KEY(id, text) DICT_KEY_##id,
#include "data/dict-keys.def"
#undef KEY
    DICT_KEY_COUNT
};

struct dict_pair {
    const char *key; /* NUL-terminated */
    uint16_t key_len; /* without the NUL */
    uint16_t key_id;  /* enum dict_key */
    uint8_t type;     /* enum dict_type */
    uint32_t len;     /* bytes of a STR (with NUL), PTR or UNTYPED value; else 0 */
    union {
        int64_t i;
        uint64_t u;
        double d;
        const void *bytes; /* STR, PTR, UNTYPED */
        struct gfid gfid;
        const struct iatt *iatt;
        const struct mdata *mdata;
    } v;
};

#define DICT_PAIRS_INLINE 12
#define DICT_PAIRS_MAX 65536
#define DICT_KEY_LEN_MAX 1024

struct dict {
    struct arena_object on_arena; /* first: arena_release() puts dicts by it */
    struct arena *arena;
    uint32_t count, capacity;
    struct dict_pair *pairs; /* the array below or one on the arena */
    struct dict_pair inline_pairs[DICT_PAIRS_INLINE];
};

/* Once, after mem_pools_init(). 0 or -ENOMEM. */
int dict_pools_init(void);

/* An empty dict on `a`. NULL: no memory. */
struct dict *dict_new(struct arena *a);

/* The number of a key's text, DICT_KEY_UNKNOWN if it has none; and back (NULL for unknown). */
enum dict_key dict_key_find(const char *text, size_t len);
const char *dict_key_text(enum dict_key key);

/* ---- reading --------------------------------------------------------------------------------- */

/* The pair of this key; NULL: not there. */
const struct dict_pair *dict_find(const struct dict *d, enum dict_key key);
const struct dict_pair *dict_find_text(const struct dict *d, const char *key);

/* Is it there? */
static inline bool
dict_has(const struct dict *d, enum dict_key key)
{
    return dict_find(d, key) != NULL;
}

/* INT, UINT, and decimal text under STR or UNTYPED all read as a number (wire 4.2). -ENOENT, -EINVAL. */
int dict_get_int(const struct dict *d, enum dict_key key, int64_t *out);
int dict_get_uint(const struct dict *d, enum dict_key key, uint64_t *out);
/* Text that is sure to end in a NUL within its length; NULL if absent or not such a text. */
const char *dict_get_str(const struct dict *d, enum dict_key key);
/* GFID, or PTR of 16 bytes. -ENOENT, -EINVAL. */
int dict_get_gfid(const struct dict *d, enum dict_key key, struct gfid *out);
/* True if the key is there with a number other than 0 (a text that is no number counts as true). */
bool dict_get_flag(const struct dict *d, enum dict_key key);
/* The same of a pair that was found: -EINVAL; NULL. */
int dict_pair_int(const struct dict_pair *p, int64_t *out);
const char *dict_pair_str(const struct dict_pair *p);

#define dict_for_each(p, d)                                                                                  \
    for (const struct dict_pair *p = (d) ? (d)->pairs : NULL, *p##_end = p ? p + (d)->count : NULL;          \
         p != p##_end; p++)

/* ---- writing --------------------------------------------------------------------------------- */

/* A pair of the same key is replaced. 0, -ENOMEM, -E2BIG (DICT_PAIRS_MAX). */
int dict_set_int(struct dict *d, enum dict_key key, int64_t value);
int dict_set_uint(struct dict *d, enum dict_key key, uint64_t value);
int dict_set_str(struct dict *d, enum dict_key key, const char *text); /* copied to the arena */
int dict_set_iatt(struct dict *d, enum dict_key key, const struct iatt *iatt); /* copied */
int dict_set_gfid(struct dict *d, enum dict_key key, const struct gfid *gfid);
int dict_set_bytes(struct dict *d, enum dict_key key, const void *bytes, uint32_t len); /* PTR; copied */
/* The same by text, for keys without a number; `key` is copied, `bytes` (type STR, PTR or UNTYPED) too. */
int dict_set_text(struct dict *d, const char *key, enum dict_type type, const void *bytes, uint32_t len);
int dict_set_text_int(struct dict *d, const char *key, int64_t value);
/* Appends a pair that the caller has filled (key, key_len, type, len, v); key_id is worked out. For decoders:
 * nothing is copied and doubles are not looked for. NULL: no memory or too many. */
struct dict_pair *dict_append(struct dict *d, const struct dict_pair *pair);

/* The pair of key `from` gets the key `to`; nothing happens if there is none. NULL d allowed. */
void dict_rename(struct dict *d, enum dict_key from, enum dict_key to);
void dict_remove(struct dict *d, enum dict_key key);
/* Removes the pair at `p` (of this dict); the ones behind it move up. */
void dict_remove_pair(struct dict *d, const struct dict_pair *p);

/* A copy of `src` on `a` that shares nothing with it. NULL src gives NULL with *err 0. */
struct dict *dict_dup(const struct dict *src, struct arena *a, int *err);

#endif
