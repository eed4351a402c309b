/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* hash: where a name belongs. Every client of a volume must agree on it, for ever
 * (doc/protocol/client.md, 2.2 to 2.4). */
#ifndef KILN_DISTRIBUTE_HASH_H
#define KILN_DISTRIBUTE_HASH_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of `len` bytes, which are taken as they are. */
uint32_t hash_bytes(const char *bytes, size_t len);

/* Programs like rsync make a file under another name first: what the expression's first group matches of a
 * name is hashed in its place, so that the rename moves nothing. The default expression needs no library,
 * and so no malloc. */
#define HASH_RULE_RSYNC "^\\.(.+)\\.[^.]+$"
enum hash_rule_kind { HASH_RULE_NONE, HASH_RULE_IS_RSYNC, HASH_RULE_REGEX };
struct hash_rule {
    enum hash_rule_kind kind;
    regex_t regex;
};

/* `text`, an extended expression; NULL, "" or "none": no rule. 0, or -EINVAL with a reason. */
int hash_rule_set(struct hash_rule *rule, const char *text, char *error, size_t error_size);
void hash_rule_clear(struct hash_rule *rule);

/* Of a file's or folder's name: the first of the rules that matches decides what is hashed. */
uint32_t hash_name(const struct hash_rule *rules, unsigned rule_count, const char *name);

#endif
