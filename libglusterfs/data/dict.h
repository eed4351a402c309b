/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dict: a small ordered set of named, typed values: xdata, xattr sets, SETVOLUME's options (spec: wire 4).
 *
 * A dict lives on an arena and is freed with the arena; a dict has no reference count. Its keys and values
 * are pointers to memory that lives at least as long as that arena: bytes of the received record, static
 * strings, or copies on the arena. Numbers and gfids are stored in place. There is room for a dozen pairs in
 * the object itself; more go to an array on the arena.
 *
 * Known keys have a number (dict-keys.def), which is determined once when the pair is added, so that a
 * search compares integers. Every getter accepts a NULL dict and answers "absent".
 *
 * thread: the thread that runs the operation. A text from a getter is valid as long as the arena, but a
 * pair only until the next pair is set or removed. */
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
    struct arena_object on_arena; /* must be the first member: arena_release() frees dicts by it */
    struct arena *arena;
    uint32_t count, capacity;
    /* a bit for each known key that was ever added; removals leave the bit set */
    uint64_t seen[2];
    struct dict_pair *pairs; /* the array below or one on the arena */
    struct dict_pair inline_pairs[DICT_PAIRS_INLINE];
};

/* Makes the pool and the table of known keys; once, after mem_pools_init(). 0 or -ENOMEM. */
int dict_pools_init(void);

/* An empty dict on `a`. NULL: no memory. */
struct dict *dict_new(struct arena *a);

/* Returns the number of a key's text, or DICT_KEY_UNKNOWN. dict_key_text() does the reverse (NULL for
 * unknown). */
enum dict_key dict_key_find(const char *text, size_t len);
const char *dict_key_text(enum dict_key key);

/* ---- reading --------------------------------------------------------------------------------- */

_Static_assert(DICT_KEY_COUNT <= 128, "dict.seen has a bit for each key");

/* Searches the pairs: for dict_find(). */
const struct dict_pair *dict_find_pair(const struct dict *d, enum dict_key key);

/* Returns the pair of this key; NULL: absent. A key that was never added costs no search. */
static inline const struct dict_pair *
dict_find(const struct dict *d, enum dict_key key)
{
    return d && d->seen[key / 64] >> key % 64 & 1 ? dict_find_pair(d, key) : NULL;
}
const struct dict_pair *dict_find_text(const struct dict *d, const char *key);

/* Is the key present? */
static inline bool
dict_has(const struct dict *d, enum dict_key key)
{
    return dict_find(d, key) != NULL;
}

/* Reads a number: INT, UINT, or decimal text under STR or UNTYPED (wire 4.2). -ENOENT, -EINVAL. */
int dict_get_int(const struct dict *d, enum dict_key key, int64_t *out);
int dict_get_uint(const struct dict *d, enum dict_key key, uint64_t *out);
/* Returns a text that ends in a NUL within its length; NULL if absent or not such a text. */
const char *dict_get_str(const struct dict *d, enum dict_key key);
/* GFID, or PTR of 16 bytes. -ENOENT, -EINVAL. */
int dict_get_gfid(const struct dict *d, enum dict_key key, struct gfid *out);
/* True if the key is present with a number other than 0 (a text that is no number counts as true). */
bool dict_get_flag(const struct dict *d, enum dict_key key);
/* Like dict_get_int() and dict_get_str(), for a pair that was found: -EINVAL; NULL. */
int dict_pair_int(const struct dict_pair *p, int64_t *out);
const char *dict_pair_str(const struct dict_pair *p);

#define dict_for_each(p, d)                                                                                  \
    for (const struct dict_pair *p = (d) ? (d)->pairs : NULL, *p##_end = p ? p + (d)->count : NULL;          \
         p != p##_end; p++)

/* ---- writing --------------------------------------------------------------------------------- */

/* Set a value; a pair of the same key is replaced. 0, -ENOMEM, -E2BIG (DICT_PAIRS_MAX). */
int dict_set_int(struct dict *d, enum dict_key key, int64_t value);
int dict_set_uint(struct dict *d, enum dict_key key, uint64_t value);
int dict_set_str(struct dict *d, enum dict_key key, const char *text); /* copied to the arena */
int dict_set_iatt(struct dict *d, enum dict_key key, const struct iatt *iatt); /* copied */
int dict_set_gfid(struct dict *d, enum dict_key key, const struct gfid *gfid);
int dict_set_bytes(struct dict *d, enum dict_key key, const void *bytes, uint32_t len); /* PTR; copied */
/* Like the setters above, by text, for keys without a number; `key` and `bytes` (type STR, PTR or UNTYPED)
 * are copied. */
int dict_set_text(struct dict *d, const char *key, enum dict_type type, const void *bytes, uint32_t len);
int dict_set_text_int(struct dict *d, const char *key, int64_t value);
/* Appends a pair that the caller has filled (key, key_len, type, len, v); key_id is set here. For
 * decoders: nothing is copied, and an existing pair of the same key is not replaced. NULL: no memory or
 * too many pairs. */
struct dict_pair *dict_append(struct dict *d, const struct dict_pair *pair);

/* Gives the pair of key `from` the key `to`; nothing happens if there is no such pair. NULL d allowed. */
void dict_rename(struct dict *d, enum dict_key from, enum dict_key to);
void dict_remove(struct dict *d, enum dict_key key);
/* Removes the pair at `p` (of this dict); the pairs behind it move up. */
void dict_remove_pair(struct dict *d, const struct dict_pair *p);

/* Copies `src` to `a`; the copy shares nothing with `src`. NULL src gives NULL with *err 0. */
struct dict *dict_dup(const struct dict *src, struct arena *a, int *err);

#endif
