/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The Davies-Meyer construction of a hash from a block cipher, with a mixer like TEA's. The constants are
 * stock's; the unit test has values observed with stock. */
#include "xlators/cluster/distribute/hash.h"

#include <endian.h>
#include <errno.h>
#include <string.h>

enum { BLOCK_BYTES = 16, ROUNDS = 6, ROUNDS_LAST = 10 };

struct state {
    uint32_t h0, h1;
};

static uint32_t
word_at(const char *bytes)
{
    uint32_t le;

    memcpy(&le, bytes, sizeof le);
    return le32toh(le);
}

static void
mix(struct state *s, const uint32_t w[4], int rounds)
{
    uint32_t x = s->h0, y = s->h1, sum = 0;

    for (int i = 0; i < rounds; i++) {
        sum += 0x9E3779B9;
        x += ((y << 4) + w[0]) ^ (y + sum) ^ ((y >> 5) + w[1]);
        y += ((x << 4) + w[2]) ^ (x + sum) ^ ((x >> 5) + w[3]);
    }
    s->h0 += x;
    s->h1 += y;
}

/* Returns the next word of the last block. The bytes left over are shifted into the padding one by one,
 * with sign extension: a byte of 0x80 or more overwrites the bytes before it. */
static uint32_t
last_word(const char **at, size_t *left, uint32_t padding)
{
    uint32_t word = padding;

    if (*left >= 4) {
        word = word_at(*at);
        *at += 4;
        *left -= 4;
        return word;
    }
    for (; *left; --*left)
        word = word << 8 | (uint32_t)(int32_t)(signed char)*(*at)++;
    return word;
}

uint32_t
hash_bytes(const char *bytes, size_t len)
{
    struct state s = {0x9464a485, 0x542e1a94};
    uint32_t w[4], padding = (uint32_t)len | (uint32_t)len << 8 | (uint32_t)len << 16 | (uint32_t)len << 24;
    size_t left = len;

    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES, bytes += BLOCK_BYTES) {
        for (int i = 0; i < 4; i++)
            w[i] = word_at(bytes + 4 * i);
        mix(&s, w, ROUNDS);
    }
    for (int i = 0; i < 4; i++)
        w[i] = last_word(&bytes, &left, padding);
    mix(&s, w, ROUNDS_LAST);
    return s.h0 ^ s.h1;
}

/* ---- names ----------------------------------------------------------------------------------- */

int
hash_rule_set(struct hash_rule *rule, const char *text, char *error, size_t error_size)
{
    rule->kind = HASH_RULE_NONE;
    if (!text || !*text || strcmp(text, "none") == 0)
        return 0;
    if (strcmp(text, HASH_RULE_RSYNC) == 0) {
        rule->kind = HASH_RULE_IS_RSYNC;
        return 0;
    }
    int err = regcomp(&rule->regex, text, REG_EXTENDED);

    if (err) {
        regerror(err, &rule->regex, error, error_size);
        return -EINVAL;
    }
    rule->kind = HASH_RULE_REGEX;
    return 0;
}

void
hash_rule_clear(struct hash_rule *rule)
{
    if (rule->kind == HASH_RULE_REGEX)
        regfree(&rule->regex);
    rule->kind = HASH_RULE_NONE;
}

/* Matches a dot, a part, the last dot, and another part; returns the first part. */
static bool
rsync_part(const char *name, const char **part, size_t *len)
{
    const char *last = strrchr(name, '.');

    if (name[0] != '.' || last < name + 2 || !last[1])
        return false;
    *part = name + 1;
    *len = (size_t)(last - name) - 1;
    return true;
}

static bool
regex_part(const regex_t *regex, const char *name, const char **part, size_t *len)
{
    regmatch_t match[2];

    if (regexec(regex, name, 2, match, 0) || match[1].rm_so < 0)
        return false;
    *part = name + match[1].rm_so;
    *len = (size_t)(match[1].rm_eo - match[1].rm_so);
    return true;
}

uint32_t
hash_name(const struct hash_rule *rules, unsigned rule_count, const char *name)
{
    const char *part;
    size_t len;

    for (unsigned i = 0; i < rule_count; i++) {
        if (rules[i].kind == HASH_RULE_IS_RSYNC ? rsync_part(name, &part, &len)
                                                : rules[i].kind == HASH_RULE_REGEX &&
                                                      regex_part(&rules[i].regex, name, &part, &len))
            return hash_bytes(part, len);
    }
    return hash_bytes(name, strlen(name));
}
