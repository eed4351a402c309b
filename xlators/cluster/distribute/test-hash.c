/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Hashes observed with stock clients, directly and by the places of their files. */
#include "xlators/cluster/distribute/hash.h"

#include <check.h>
#include <errno.h>
#include <string.h>


static const struct {
    const char *name;
    uint32_t hash;
} seen[] = {
    {"", 0x884774a2},
    {"a", 0x3a17e4e6},
    {"b", 0x6f558edc},
    {"ab", 0xc3af40d9},
    {"abc", 0xba8bd29a},
    {"abcd", 0xd89627f6},
    {"abcde", 0x0a45ccec},
    {"file1", 0xa787fa82},
    {"file2", 0xa7b6b0e5},
    {"hello.txt", 0xe68d61cc},
    {".bashrc", 0xe759f102},
    {"Makefile", 0x19b684ab},
    {"lost+found", 0xdaec1218},
    {"0123456789abcdef", 0x6ecb5ada},
    {"0123456789abcdefg", 0x7f5d9903},
    {"aaaaaaaaaaaaaaaa", 0x4b7bcfa6},
    {"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 0xd4df8b6e},
    {"this-is-a-somewhat-longer-file-name.tar.gz", 0xcf4e53c1},
    {"na\xc3\xafve.txt", 0xc83b3744},
    {"\xe6\x97\xa5\xe6\x9c\xac", 0xb00c9dfc},
    {"\xc3\xa9t\xc3\xa9", 0xa2e5c9e9},
    {"\xff", 0xee42408a},
    {"\x80\x81\x82", 0x961d2fb7},
    {".", 0xd3d143b3},
    {"..", 0xe1696c98},
    {"/", 0x8619bd58},
    {"/d1", 0x2514b7f2},
    {"/d1/d2", 0xac70c084},
};

START_TEST(bytes_hash_as_observed_with_stock)
{
    ck_assert_uint_eq(hash_bytes(seen[_i].name, strlen(seen[_i].name)), seen[_i].hash);
}
END_TEST

START_TEST(a_name_of_255_bytes_hashes_as_in_stock)
{
    char name[255];

    memset(name, 'x', sizeof name);
    ck_assert_uint_eq(hash_bytes(name, sizeof name), 0x8ca66f57);
}
END_TEST

/* the name, and the part that is hashed */
static const char *const parts[][2] = {
    {".foo.txt.XyZ123", "foo.txt"},
    {".hello.txt.aB3x9z", "hello.txt"},
    {"..foo.bar", ".foo"},
    {".a.b.c", "a.b"},
    {".bashrc", ".bashrc"},
    {".gitignore", ".gitignore"},
    {".a.", ".a."},
    {"..", ".."},
    {"...", "..."},
    {".x.y", "x"},
    {"a.b.c", "a.b.c"},
    {"..a", "..a"},
    {"...a", "."},
    {".", "."},
    {"", ""},
};

/* The default rule is matched by hand; the regex library must agree. */
START_TEST(the_default_rule_selects_the_same_part_as_the_library)
{
    static const char other[] = "^\\.(.+)\\.[^.]+$|^never$";
    struct hash_rule by_hand, by_library;
    uint32_t hash = hash_bytes(parts[_i][1], strlen(parts[_i][1]));

    ck_assert_int_eq(hash_rule_set(&by_hand, HASH_RULE_RSYNC, NULL, 0), 0);
    ck_assert_int_eq(hash_rule_set(&by_library, other, NULL, 0), 0);
    ck_assert_int_eq(by_hand.kind, HASH_RULE_IS_RSYNC);
    ck_assert_int_eq(by_library.kind, HASH_RULE_REGEX);
    ck_assert_uint_eq(hash_name(&by_hand, 1, parts[_i][0]), hash);
    ck_assert_uint_eq(hash_name(&by_library, 1, parts[_i][0]), hash);
    hash_rule_clear(&by_library);
    ck_assert_uint_eq(hash_name(&by_library, 1, parts[_i][0]),
                      hash_bytes(parts[_i][0], strlen(parts[_i][0])));
}
END_TEST

START_TEST(the_first_matching_rule_decides)
{
    struct hash_rule rules[2];

    ck_assert_int_eq(hash_rule_set(&rules[0], "^(.*)-tmp$", NULL, 0), 0);
    ck_assert_int_eq(hash_rule_set(&rules[1], HASH_RULE_RSYNC, NULL, 0), 0);
    ck_assert_uint_eq(hash_name(rules, 2, ".a.b-tmp"), hash_bytes(".a.b", 4));
    ck_assert_uint_eq(hash_name(rules, 2, ".a.b"), hash_bytes("a", 1));
    hash_rule_clear(&rules[0]);
}
END_TEST

START_TEST(rules_may_be_none_or_wrong)
{
    struct hash_rule rule;
    char error[128] = "";

    ck_assert_int_eq(hash_rule_set(&rule, "none", NULL, 0), 0);
    ck_assert_int_eq(rule.kind, HASH_RULE_NONE);
    ck_assert_int_eq(hash_rule_set(&rule, NULL, NULL, 0), 0);
    ck_assert_int_eq(hash_rule_set(&rule, "(", error, sizeof error), -EINVAL);
    ck_assert_str_ne(error, "");
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("hash");
    TCase *t = tcase_create("hash");

    tcase_add_loop_test(t, bytes_hash_as_observed_with_stock, 0, (int)(sizeof seen / sizeof seen[0]));
    tcase_add_test(t, a_name_of_255_bytes_hashes_as_in_stock);
    tcase_add_loop_test(t, the_default_rule_selects_the_same_part_as_the_library, 0,
                        (int)(sizeof parts / sizeof parts[0]));
    tcase_add_test(t, the_first_matching_rule_decides);
    tcase_add_test(t, rules_may_be_none_or_wrong);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
