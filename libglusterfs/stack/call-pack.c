/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "stack/call-pack.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/zero.h"
#include "mem/mem-ids.h"
#include "stack/call-stack.h"

/* One allocation: this struct (with a bit for each word of the object), the words that are not zero, the
 * pairs of call.xdata, the texts. */
struct packed_call {
    const struct call_keeper *keeper;
    uint32_t bytes; /* size of the allocation */
    uint32_t text_at, text_bytes;
    uint32_t pair_at, pair_count;
    bool is_pooled, has_xdata, echoes_xdata; /* the reply's xdata is the call's */
    uint64_t bits[(CALL_OBJECT_MAX / 8 + 63) / 64];
    uint64_t words[];
};

/* An object seen as words, regardless of its members' types. */
typedef uint64_t __attribute__((may_alias)) word;

/* Room for a lock's call with a dozen groups and a key or two. Larger calls, such as removals of long
 * names, use malloc. */
#define POOLED_BYTES 512

static struct mem_pool *packed_pool;

int
call_pack_pool_init(void)
{
    if (!packed_pool)
        packed_pool = mem_pool_new_opts(&(struct mem_pool_opts){.name = "packed-call", .size = POOLED_BYTES});
    return packed_pool ? 0 : -ENOMEM;
}

/* ---- pointers of a call ---------------------------------------------------------------------- */

/* A cursor for texts; `at` NULL: only measures. */
struct texts {
    char *at;
    size_t bytes;
};

static const void *
text_add(struct texts *t, const void *from, size_t bytes)
{
    if (!from)
        return NULL;
    size_t at = t->bytes;

    t->bytes += bytes;
    if (!t->at)
        return from;
    return bytes ? memcpy(t->at + at, from, bytes) : t->at + at;
}

static const char *
string_add(struct texts *t, const char *s)
{
    return text_add(t, s, s ? strlen(s) + 1 : 0);
}

/* Adds all texts that a packable call points to, except its xdata. The groups come first because they are
 * aligned words. */
static void
add_texts(struct texts *t, struct call_stack *stk)
{
    struct fop_call *c = &stk->call;
    struct lk_owner *owners[] = {&stk->caller.lk_owner, &c->flock.owner, &stk->reply.flock.owner};
    const char **strings[] = {&c->name, &c->name2, &c->volume, &c->loc.name, &c->loc2.name};

    stk->caller.groups =
        text_add(t, stk->caller.groups, stk->caller.group_count * sizeof *stk->caller.groups);
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
        owners[i]->bytes = text_add(t, owners[i]->bytes, owners[i]->len);
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        *strings[i] = string_add(t, *strings[i]);
}

static void
add_pair(struct texts *t, struct dict_pair *pair)
{
    if (!pair->key_id)
        pair->key = text_add(t, pair->key, pair->key_len + 1u);
    else
        pair->key = dict_key_text((enum dict_key)pair->key_id);
    if (pair->type == DICT_STR || pair->type == DICT_PTR || pair->type == DICT_UNTYPED)
        pair->v.bytes = text_add(t, pair->v.bytes, pair->len);
}

/* Adds the texts of the pairs; stores the pairs at `to`. NULL: only measures. */
static void
add_pairs(struct texts *t, const struct dict *d, struct dict_pair *to)
{
    dict_for_each (p, d) {
        struct dict_pair copy = *p;

        add_pair(t, &copy);
        if (to)
            *to++ = copy;
    }
}

/* Adjusts the pointers after the texts have moved from `from` to `to`. */
static void
move_texts(struct call_stack *stk, const char *from, const char *to)
{
    struct fop_call *c = &stk->call;
    struct lk_owner *owners[] = {&stk->caller.lk_owner, &c->flock.owner, &stk->reply.flock.owner};
    const char **strings[] = {&c->name, &c->name2, &c->volume, &c->loc.name, &c->loc2.name};

    if (stk->caller.groups)
        stk->caller.groups = (const uint32_t *)(const void *)(to + ((const char *)stk->caller.groups - from));
    for (size_t i = 0; i < sizeof owners / sizeof owners[0]; i++)
        if (owners[i]->bytes)
            owners[i]->bytes = (const uint8_t *)to + ((const char *)owners[i]->bytes - from);
    for (size_t i = 0; i < sizeof strings / sizeof strings[0]; i++)
        if (*strings[i])
            *strings[i] = to + (*strings[i] - from);
}

/* ---- packing --------------------------------------------------------------------------------- */

static bool
xdata_is_plain(const struct dict *d)
{
    dict_for_each (p, d) {
        if (p->type == DICT_IATT || p->type == DICT_MDATA)
            return false;
    }
    return true;
}

/* True if the call points only to objects that add_texts() and add_pairs() handle. */
static bool
is_plain(const struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;
    const struct fop_reply *r = &stk->reply;

    return stk->keeper && !c->dict && !c->locks && !c->payload_count && !r->dict && !r->fd && !r->iobuf &&
           !r->path && !r->entries && !r->locks && (!r->xdata || r->xdata == c->xdata) &&
           xdata_is_plain(c->xdata);
}

static size_t
count_words(const word *words, size_t size)
{
    size_t count = 0;

    for (size_t i = 0; i < size / 8; i++)
        count += words[i] != 0;
    return count;
}

/* Allocates room for the call in `copy`, whose pointers are still those of the original. */
static struct packed_call *
packed_new(struct call_stack *copy, const struct dict *xdata, const word *words)
{
    struct texts texts = {0};
    size_t pair_at = sizeof(struct packed_call) + 8 * count_words(words, copy->keeper->size);
    size_t text_at = pair_at + (xdata ? xdata->count : 0) * sizeof(struct dict_pair);

    add_texts(&texts, copy);
    add_pairs(&texts, xdata, NULL);
    size_t bytes = text_at + texts.bytes;
    if (bytes > CALL_PACKED_MAX)
        return NULL;
    bool is_pooled = bytes <= POOLED_BYTES;
    struct packed_call *p = is_pooled ? mem_get(packed_pool) : malloc(bytes);
    if (!p)
        return NULL;
    *p = (struct packed_call){
        .keeper = copy->keeper,
        .bytes = (uint32_t)(is_pooled ? POOLED_BYTES : bytes),
        .text_at = (uint32_t)text_at,
        .text_bytes = (uint32_t)texts.bytes,
        .pair_at = (uint32_t)pair_at,
        .pair_count = xdata ? xdata->count : 0,
        .is_pooled = is_pooled,
        .has_xdata = xdata != NULL,
    };
    return p;
}

static void
packed_free(struct packed_call *p)
{
    if (p->is_pooled)
        mem_put(p);
    else
        free(p);
}

/* Clears the members of the original that the copy now owns, so that call_stack_release() finds a shell. */
static void
leave_shell(struct call_stack *stk)
{
    stk->frames = NULL;
    stk->client = NULL;
    stk->is_asker_gone = NULL;
    stk->call.loc = stk->call.loc2 = (struct loc){0};
    stk->call.fd = stk->call.fd2 = NULL;
    stk->state = CALL_ANSWERED;
}

static void
store_words(struct packed_call *p, const word *words)
{
    uint64_t *to = p->words;

    for (size_t i = 0; i < p->keeper->size / 8; i++) {
        if (!words[i])
            continue;
        p->bits[i / 64] |= UINT64_C(1) << i % 64;
        *to++ = words[i];
    }
    assert((char *)to == (char *)p + p->pair_at);
}

struct packed_call *
call_stack_pack(struct call_stack *stk)
{
    _Alignas(16) word words[CALL_OBJECT_MAX / 8];
    struct call_stack *copy = (struct call_stack *)(void *)words;
    const struct dict *xdata = stk->call.xdata;

    if (!is_plain(stk))
        return NULL;
    assert((stk->state == CALL_WOUND || stk->state == CALL_PARKED) && stk->keeper->size % 8 == 0 &&
           stk->keeper->size <= sizeof words);
    memcpy(words, stk, stk->keeper->size);
    copy->arena = (struct arena){0};
    copy->call.xdata = copy->reply.xdata = NULL;
    struct packed_call *p = stk->keeper->strip(copy) ? packed_new(copy, xdata, words) : NULL;
    if (!p)
        return NULL;
    p->echoes_xdata = stk->reply.xdata != NULL;
    stk->keeper->moved(stk, copy, p->bytes);
    struct texts texts = {.at = (char *)p + p->text_at};
    add_texts(&texts, copy);
    add_pairs(&texts, xdata, (struct dict_pair *)(void *)((char *)p + p->pair_at));
    store_words(p, words);
    leave_shell(stk);
    return p;
}

void
call_stack_drop_shell(struct call_stack *shell)
{
    shell->keeper->drop(shell);
}

/* ---- unpacking ------------------------------------------------------------------------------- */

static void
load_words(const struct packed_call *p, word *words)
{
    const uint64_t *from = p->words;

    zero(words, p->keeper->size);
    for (size_t at = 0; at < sizeof p->bits / sizeof p->bits[0]; at++)
        for (uint64_t left = p->bits[at]; left; left &= left - 1)
            words[at * 64 + (size_t)__builtin_ctzll(left)] = *from++;
}

/* False: no memory. */
static bool
restore_pointers(struct call_stack *stk, struct packed_call *p)
{
    const char *text = (char *)p + p->text_at;
    const char *copy = p->text_bytes ? arena_dup(&stk->arena, text, p->text_bytes) : text;
    const struct dict view = {.pairs = (struct dict_pair *)(void *)((char *)p + p->pair_at),
                              .count = p->pair_count};
    int err = 0;

    stk->call.xdata = copy && p->has_xdata ? dict_dup(&view, &stk->arena, &err) : NULL;
    if (!copy || err)
        return false;
    stk->reply.xdata = p->echoes_xdata ? stk->call.xdata : NULL;
    move_texts(stk, text, copy);
    return true;
}

struct call_stack *
call_stack_unpack(struct packed_call *p)
{
    struct call_stack *stk = p->keeper->get();

    if (!stk)
        return NULL;
    load_words(p, (word *)(void *)stk);
    if (!restore_pointers(stk, p)) {
        arena_release(&stk->arena);
        p->keeper->put(stk);
        return NULL;
    }
    packed_free(p);
    return stk;
}
