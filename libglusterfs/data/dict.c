/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "data/dict.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "mem/mem-ids.h"

static const char *const key_texts[DICT_KEY_COUNT] = {
#define KEY(id, text) [DICT_KEY_##id] = text,
#include "data/dict-keys.def"
#undef KEY
};

/* Open-addressed, filled once. A quarter full, so that a failing search mostly ends at the first slot. */
#define KEY_SLOTS 512
static uint16_t key_slots[KEY_SLOTS];
static uint16_t key_lens[DICT_KEY_COUNT];
_Static_assert(DICT_KEY_COUNT * 4 <= KEY_SLOTS, "the key table wants more slots");

static struct mem_pool *dict_pool;

static uint32_t
dict_key_hash(const char *text, size_t len)
{
    /* Known keys differ in length, first, middle and last bytes; a clash is settled by the compare. */
    uint32_t h = (uint32_t)len * 0x9e3779b1u;

    if (len) {
        h ^= (uint8_t)text[len - 1] * 0x85ebca6bu;
        h ^= (uint8_t)text[len / 2] * 0xc2b2ae35u;
        h ^= (uint8_t)text[len * 3 / 4] * 0x27d4eb2fu;
        h ^= (uint8_t)text[0] * 0x165667b1u;
    }
    return (h ^ h >> 15) % KEY_SLOTS;
}

int
dict_pools_init(void)
{
    if (dict_pool)
        return 0;
    for (unsigned id = 1; id < DICT_KEY_COUNT; id++) {
        size_t len = strlen(key_texts[id]);
        uint32_t slot = dict_key_hash(key_texts[id], len);

        while (key_slots[slot])
            slot = (slot + 1) % KEY_SLOTS;
        key_slots[slot] = (uint16_t)id;
        key_lens[id] = (uint16_t)len;
    }
    return mem_pool_make(&dict_pool, MEM_ID_DICT, sizeof(struct dict), "struct dict");
}

enum dict_key
dict_key_find(const char *text, size_t len)
{
    for (uint32_t slot = dict_key_hash(text, len); key_slots[slot]; slot = (slot + 1) % KEY_SLOTS) {
        unsigned id = key_slots[slot];

        if (key_lens[id] == len && memcmp(key_texts[id], text, len) == 0)
            return id;
    }
    return DICT_KEY_UNKNOWN;
}

const char *
dict_key_text(enum dict_key key)
{
    return key < DICT_KEY_COUNT ? key_texts[key] : NULL;
}

struct dict *
dict_new(struct arena *a)
{
    struct dict *d = mem_get_t(MEM_ID_DICT);

    if (d) {
        d->on_arena.next = a->dicts;
        a->dicts = &d->on_arena;
    } else if (!(d = arena_alloc(a, sizeof *d))) { /* the arena may have room left */
        return NULL;
    }
    d->arena = a;
    d->count = 0;
    d->seen[0] = d->seen[1] = 0;
    d->capacity = DICT_PAIRS_INLINE;
    d->pairs = d->inline_pairs;
    return d;
}

/* ---- reading --------------------------------------------------------------------------------- */

const struct dict_pair *
dict_find_pair(const struct dict *d, enum dict_key key)
{
    dict_for_each(p, d)
    {
        if (p->key_id == key)
            return p;
    }
    return NULL;
}

const struct dict_pair *
dict_find_text(const struct dict *d, const char *key)
{
    size_t len = strlen(key);

    dict_for_each(p, d)
    {
        if (p->key_len == len && memcmp(p->key, key, len) == 0)
            return p;
    }
    return NULL;
}

const char *
dict_pair_str(const struct dict_pair *p)
{
    if (!p || (p->type != DICT_STR && p->type != DICT_PTR && p->type != DICT_UNTYPED) || !p->len)
        return NULL;
    return memchr(p->v.bytes, '\0', p->len) ? p->v.bytes : NULL;
}

int
dict_pair_int(const struct dict_pair *p, int64_t *out)
{
    const char *text;
    char *end;

    switch (p->type) {
    case DICT_INT:
        *out = p->v.i;
        return 0;
    case DICT_UINT:
        *out = (int64_t)p->v.u;
        return 0;
    default:
        break;
    }
    if (!(text = dict_pair_str(p)) || !*text)
        return -EINVAL;
    errno = 0;
    int64_t value = strtoll(text, &end, 0);
    if (errno || *end)
        return -EINVAL;
    *out = value;
    return 0;
}

int
dict_get_int(const struct dict *d, enum dict_key key, int64_t *out)
{
    const struct dict_pair *p = dict_find(d, key);

    return p ? dict_pair_int(p, out) : -ENOENT;
}

int
dict_get_uint(const struct dict *d, enum dict_key key, uint64_t *out)
{
    int64_t value;
    int err = dict_get_int(d, key, &value);

    if (!err)
        *out = (uint64_t)value;
    return err;
}

const char *
dict_get_str(const struct dict *d, enum dict_key key)
{
    return dict_pair_str(dict_find(d, key));
}

int
dict_get_gfid(const struct dict *d, enum dict_key key, struct gfid *out)
{
    const struct dict_pair *p = dict_find(d, key);

    if (!p)
        return -ENOENT;
    if (p->type == DICT_GFID)
        *out = p->v.gfid;
    else if ((p->type == DICT_PTR || p->type == DICT_UNTYPED) && p->len == GFID_BYTES)
        memcpy(out->b, p->v.bytes, GFID_BYTES);
    else
        return -EINVAL;
    return 0;
}

bool
dict_get_flag(const struct dict *d, enum dict_key key)
{
    const struct dict_pair *p = dict_find(d, key);
    int64_t value;

    if (!p)
        return false;
    return dict_pair_int(p, &value) != 0 || value != 0;
}

/* ---- writing --------------------------------------------------------------------------------- */

static void
note_key(struct dict *d, unsigned key)
{
    d->seen[key / 64] |= 1ull << key % 64;
}

static int
dict_make_room(struct dict *d)
{
    if (d->count < d->capacity)
        return 0;
    if (d->count >= DICT_PAIRS_MAX)
        return -E2BIG;
    struct dict_pair *more = arena_alloc(d->arena, 2 * (size_t)d->capacity * sizeof *more);
    if (!more)
        return -ENOMEM;
    memcpy(more, d->pairs, d->count * sizeof *more);
    d->pairs = more;
    d->capacity *= 2;
    return 0;
}

struct dict_pair *
dict_append(struct dict *d, const struct dict_pair *pair)
{
    if (dict_make_room(d))
        return NULL;
    struct dict_pair *p = &d->pairs[d->count++];
    *p = *pair;
    p->key_id = (uint16_t)dict_key_find(p->key, p->key_len);
    note_key(d, p->key_id);
    return p;
}

/* Finds the place of a known key: its present pair, or a new pair at the end. */
static int
dict_place(struct dict *d, enum dict_key key, struct dict_pair **out)
{
    struct dict_pair *p = (struct dict_pair *)dict_find(d, key);

    if (!p) {
        int err = dict_make_room(d);
        if (err)
            return err;
        p = &d->pairs[d->count++];
        *p = (struct dict_pair){.key = key_texts[key], .key_len = key_lens[key], .key_id = (uint16_t)key};
        note_key(d, key);
    }
    p->len = 0;
    *out = p;
    return 0;
}

int
dict_set_int(struct dict *d, enum dict_key key, int64_t value)
{
    struct dict_pair *p;
    int err = dict_place(d, key, &p);

    if (!err) {
        p->type = DICT_INT;
        p->v.i = value;
    }
    return err;
}

int
dict_set_uint(struct dict *d, enum dict_key key, uint64_t value)
{
    struct dict_pair *p;
    int err = dict_place(d, key, &p);

    if (!err) {
        p->type = DICT_UINT;
        p->v.u = value;
    }
    return err;
}

int
dict_set_gfid(struct dict *d, enum dict_key key, const struct gfid *gfid)
{
    struct dict_pair *p;
    int err = dict_place(d, key, &p);

    if (!err) {
        p->type = DICT_GFID;
        p->v.gfid = *gfid;
    }
    return err;
}

static int
set_copied(struct dict *d, enum dict_key key, enum dict_type type, const void *bytes, uint32_t len)
{
    struct dict_pair *p;
    void *copy = arena_dup(d->arena, bytes, len);
    int err = copy ? dict_place(d, key, &p) : -ENOMEM;

    if (!err) {
        p->type = (uint8_t)type;
        p->len = len;
        p->v.bytes = copy;
    }
    return err;
}

int
dict_set_str(struct dict *d, enum dict_key key, const char *text)
{
    return set_copied(d, key, DICT_STR, text, (uint32_t)strlen(text) + 1);
}

int
dict_set_bytes(struct dict *d, enum dict_key key, const void *bytes, uint32_t len)
{
    return set_copied(d, key, DICT_PTR, bytes, len);
}

int
dict_set_iatt(struct dict *d, enum dict_key key, const struct iatt *iatt)
{
    struct dict_pair *p;
    struct iatt *copy = arena_alloc(d->arena, sizeof *copy);
    int err = copy ? dict_place(d, key, &p) : -ENOMEM;

    if (!err) {
        *copy = *iatt;
        p->type = DICT_IATT;
        p->v.iatt = copy;
    }
    return err;
}

/* Like dict_place(), for a key by text; the text is copied if the pair is new. */
static int
place_text(struct dict *d, const char *key, struct dict_pair **out)
{
    size_t len = strlen(key);
    struct dict_pair *p = (struct dict_pair *)dict_find_text(d, key);

    if (len > DICT_KEY_LEN_MAX)
        return -EINVAL;
    if (!p) {
        struct dict_pair fresh = {.key = arena_dup(d->arena, key, len), .key_len = (uint16_t)len};
        int err = fresh.key ? dict_make_room(d) : -ENOMEM;

        if (err)
            return err;
        p = dict_append(d, &fresh);
    }
    p->len = 0;
    *out = p;
    return 0;
}

int
dict_set_text(struct dict *d, const char *key, enum dict_type type, const void *bytes, uint32_t len)
{
    struct dict_pair *p;
    void *copy = arena_dup(d->arena, bytes, len);
    int err = copy ? place_text(d, key, &p) : -ENOMEM;

    if (!err) {
        p->type = (uint8_t)type;
        p->len = len;
        p->v.bytes = copy;
    }
    return err;
}

int
dict_set_text_int(struct dict *d, const char *key, int64_t value)
{
    struct dict_pair *p;
    int err = place_text(d, key, &p);

    if (!err) {
        p->type = DICT_INT;
        p->v.i = value;
    }
    return err;
}

void
dict_remove_pair(struct dict *d, const struct dict_pair *p)
{
    size_t index = (size_t)(p - d->pairs);

    memmove(&d->pairs[index], &d->pairs[index + 1], (d->count - index - 1) * sizeof *p);
    d->count--;
}

void
dict_rename(struct dict *d, enum dict_key from, enum dict_key to)
{
    struct dict_pair *p = (struct dict_pair *)dict_find(d, from);

    if (!p)
        return;
    p->key = key_texts[to];
    p->key_len = key_lens[to];
    p->key_id = (uint16_t)to;
    note_key(d, to);
}

void
dict_remove(struct dict *d, enum dict_key key)
{
    const struct dict_pair *p = d ? dict_find(d, key) : NULL;

    if (p)
        dict_remove_pair(d, p);
}

/* Copies the bytes that a pair points to to `a`. */
static int
copy_value(struct dict_pair *p, struct arena *a)
{
    const void *from;
    size_t len;

    switch (p->type) {
    case DICT_STR:
    case DICT_PTR:
    case DICT_UNTYPED:
        from = p->v.bytes;
        len = p->len;
        break;
    case DICT_IATT:
        from = p->v.iatt;
        len = sizeof *p->v.iatt;
        break;
    case DICT_MDATA:
        from = p->v.mdata;
        len = sizeof *p->v.mdata;
        break;
    default:
        return 0;
    }
    p->v.bytes = arena_dup(a, from, len);
    return p->v.bytes ? 0 : -ENOMEM;
}

struct dict *
dict_dup(const struct dict *src, struct arena *a, int *err)
{
    *err = 0;
    if (!src)
        return NULL;
    struct dict *d = dict_new(a);

    if (!d) {
        *err = -ENOMEM;
        return NULL;
    }
    dict_for_each(p, src)
    {
        struct dict_pair copy = *p;

        copy.key = p->key_id ? key_texts[p->key_id] : arena_dup(a, p->key, p->key_len);
        if (!copy.key || copy_value(&copy, a) || !dict_append(d, &copy)) {
            *err = -ENOMEM;
            return NULL;
        }
    }
    return d;
}
