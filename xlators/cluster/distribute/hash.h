/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* hash: the subvolume of a name follows from this hash. Every client of a volume must compute the same
 * value, for ever (doc/protocol/client.md, 2.2 to 2.4). */
#ifndef KILN_DISTRIBUTE_HASH_H
#define KILN_DISTRIBUTE_HASH_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the hash of `len` raw bytes. Any thread. */
uint32_t hash_bytes(const char *bytes, size_t len);

/* Programs like rsync create a file under a temporary name. Only the first group that the expression
 * matches in a name is hashed, so that the rename to the final name moves no file. The default expression
 * is matched by hand, without the regex library and so without malloc. */
#define HASH_RULE_RSYNC "^\\.(.+)\\.[^.]+$"
enum hash_rule_kind { HASH_RULE_NONE, HASH_RULE_IS_RSYNC, HASH_RULE_REGEX };
struct hash_rule {
    enum hash_rule_kind kind;
    regex_t regex;
};

/* Sets the rule from `text`, an extended regular expression; NULL, "" or "none": no rule. Returns 0, or
 * -EINVAL with a reason in `error`. */
int hash_rule_set(struct hash_rule *rule, const char *text, char *error, size_t error_size);
void hash_rule_clear(struct hash_rule *rule);

/* Returns the hash of a file's or folder's name. The first rule that matches selects the part to hash. */
uint32_t hash_name(const struct hash_rule *rules, unsigned rule_count, const char *name);

#endif
