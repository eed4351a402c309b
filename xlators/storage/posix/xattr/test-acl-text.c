/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <errno.h>
#include <string.h>

#include <check.h>

#include "xlators/storage/posix/xattr/acl-text.h"

START_TEST(text_and_back)
{
    unsigned char acl[ACL_BYTES_MAX];
    char text[ACL_TEXT_MAX];
    /* Not in the kernel's order, mixed spellings. */
    ssize_t n = acl_from_text("o::r--,user::rw-, g::r-x\nm::rwx,u:1000:r--,group:0:--x", acl);
    static const unsigned char want[] = {
        2, 0, 0, 0,
        1, 0, 6, 0, 255, 255, 255, 255,
        2, 0, 4, 0, 0xe8, 3, 0, 0,
        4, 0, 5, 0, 255, 255, 255, 255,
        8, 0, 1, 0, 0, 0, 0, 0,
        16, 0, 7, 0, 255, 255, 255, 255,
        32, 0, 4, 0, 255, 255, 255, 255,
    };

    ck_assert_int_eq(n, sizeof want);
    ck_assert_mem_eq(acl, want, sizeof want);
    ck_assert_int_gt(acl_to_text(acl, (size_t)n, text, sizeof text), 0);
    ck_assert_str_eq(text, "u::rw-,u:1000:r--,g::r-x,g:0:--x,m::rwx,o::r--");
    ck_assert_int_eq(acl_to_text(acl, (size_t)n, text, 20), -E2BIG);
}
END_TEST

START_TEST(names_are_not_looked_up)
{
    unsigned char acl[ACL_BYTES_MAX];

    ck_assert_int_eq(acl_from_text("u:root:rwx", acl), -EINVAL);
    ck_assert_int_eq(acl_from_text("g:root:rwx", acl), -EINVAL);
    ck_assert_int_eq(acl_from_text("u:no-such-user-here:rwx", acl), -EINVAL);
}
END_TEST

START_TEST(nonsense_is_refused)
{
    unsigned char acl[ACL_BYTES_MAX];
    char text[64];
    static const char *const bad[] = {"", ",,", "u", "x::rwx", "u::rwz", "m:1:rwx", "u:4294967295:r", "::"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_int_eq(acl_from_text(bad[i], acl), -EINVAL);
    ck_assert_int_eq(acl_to_text((const unsigned char *)"\2\0\0", 3, text, sizeof text), -EINVAL);
    ck_assert_int_eq(acl_to_text((const unsigned char *)"\1\0\0\0", 4, text, sizeof text), -EINVAL);
    ck_assert_int_eq(acl_to_text((const unsigned char *)"\2\0\0\0\3\0\0\0\0\0\0\0", 12, text, sizeof text),
                     -EINVAL);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("acl-text");
    TCase *t = tcase_create("acl-text");

    tcase_add_test(t, text_and_back);
    tcase_add_test(t, names_are_not_looked_up);
    tcase_add_test(t, nonsense_is_refused);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
