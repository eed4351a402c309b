/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "xlators/features/access-control/acl.h"

#include <check.h>
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static size_t
make(uint8_t *out, const struct acl_entry *entries, unsigned count)
{
    struct acl *a = malloc(sizeof *a + count * sizeof *entries);

    a->count = count;
    memcpy(a->entries, entries, count * sizeof *entries);
    acl_write(a, out);
    size_t size = acl_bytes(a);
    free(a);
    return size;
}

/* user::rw- user:10:rwx user:11:r-- group::r-- group:20:-w- group:21:r-x mask::rw- other::--x */
static const struct acl_entry full[] = {
    {ACL_USER_OBJ, 6, 0}, {ACL_USER, 7, 10},  {ACL_USER, 4, 11}, {ACL_GROUP_OBJ, 4, 0},
    {ACL_GROUP, 2, 20},   {ACL_GROUP, 5, 21}, {ACL_MASK, 6, 0},  {ACL_OTHER, 1, 0},
};

START_TEST(entries_decide_in_the_order_of_posix)
{
    static const struct {
        uint32_t uid, gid, group2;
        unsigned may; /* bit n: want == n is permitted, for n of 1, 2, 4 and 6 */
    } rows[] = {
        {1, 99, 99, 1 << 2 | 1 << 4 | 1 << 6}, /* the owner, with any groups */
        {1, 20, 99, 1 << 2 | 1 << 4 | 1 << 6},
        {10, 99, 99, 1 << 2 | 1 << 4 | 1 << 6}, /* rwx under a mask of rw- */
        {11, 20, 21, 1 << 4},                   /* a named user does not get the rights of its groups */
        {12, 5, 99, 1 << 4},                    /* the owning group */
        {12, 20, 99, 1 << 2},
        {12, 21, 99, 1 << 4},              /* r-x under the mask */
        /* one of the two groups suffices, but their rights do not add up to rw */
        {12, 20, 21, 1 << 2 | 1 << 4},
        {12, 20, 5, 1 << 2 | 1 << 4},
        {12, 99, 98, 1 << 1}, /* others: the mask does not apply */
    };
    uint8_t bytes[256];
    struct acl *acl;

    ck_assert_int_eq(acl_parse(bytes, make(bytes, full, 8), &acl), 0);
    for (unsigned i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct caller c = {
            .uid = rows[i].uid, .gid = rows[i].gid, .group_count = 1, .groups = &rows[i].group2};

        for (unsigned want = 1; want <= 6; want += want == 4 ? 2 : want)
            ck_assert_msg(acl_permits(acl, 1, 5, 0664, &c, want) == (rows[i].may >> want & 1),
                          "row %u, want %u", i, want);
    }
    free(acl);
}
END_TEST

START_TEST(mode_bits_decide_without_an_acl)
{
    struct caller owner = {.uid = 1, .gid = 5}, member = {.uid = 2, .gid = 5}, other = {.uid = 2, .gid = 6};

    for (unsigned want = 0; want <= 7; want++) {
        for (unsigned mode = 0; mode <= 0777; mode++) {
            ck_assert(acl_permits(NULL, 1, 5, mode, &owner, want) == !(want & ~(mode >> 6)));
            ck_assert(acl_permits(NULL, 1, 5, mode, &member, want) == !(want & ~(mode >> 3 & 7)));
            ck_assert(acl_permits(NULL, 1, 5, mode, &other, want) == !(want & ~(mode & 7)));
        }
    }
}
END_TEST

START_TEST(malformed_acls_are_refused)
{
    static const struct acl_entry no_mask[] = {
        {ACL_USER_OBJ, 6, 0}, {ACL_USER, 7, 10}, {ACL_GROUP_OBJ, 4, 0}, {ACL_OTHER, 1, 0}};
    static const struct acl_entry unsorted[] = {
        {ACL_GROUP_OBJ, 4, 0}, {ACL_USER_OBJ, 6, 0}, {ACL_OTHER, 1, 0}};
    static const struct acl_entry twice[] = {
        {ACL_USER_OBJ, 6, 0}, {ACL_USER_OBJ, 6, 0}, {ACL_GROUP_OBJ, 4, 0}, {ACL_OTHER, 1, 0}};
    static const struct acl_entry perm[] = {{ACL_USER_OBJ, 8, 0}, {ACL_GROUP_OBJ, 4, 0}, {ACL_OTHER, 1, 0}};
    static const struct acl_entry tag[] = {
        {ACL_USER_OBJ, 6, 0}, {3, 0, 0}, {ACL_GROUP_OBJ, 4, 0}, {ACL_OTHER, 1, 0}};
    uint8_t bytes[256];
    struct acl *acl;
    size_t size = make(bytes, full, 8);

    for (size_t len = 0; len < size; len++) { /* no shorter prefix is valid */
        int rc = acl_parse(bytes, len, &acl);

        ck_assert_int_eq(rc, len == ACL_HEADER_BYTES ? 0 : -EINVAL);
        ck_assert_ptr_null(acl);
    }
    bytes[0] = 1;
    ck_assert_int_eq(acl_parse(bytes, size, &acl), -EINVAL);
    ck_assert_int_eq(acl_parse(bytes, make(bytes, no_mask, 4), &acl), -EINVAL);
    ck_assert_int_eq(acl_parse(bytes, make(bytes, unsorted, 3), &acl), -EINVAL);
    ck_assert_int_eq(acl_parse(bytes, make(bytes, twice, 4), &acl), -EINVAL);
    ck_assert_int_eq(acl_parse(bytes, make(bytes, perm, 3), &acl), -EINVAL);
    ck_assert_int_eq(acl_parse(bytes, make(bytes, tag, 4), &acl), -EINVAL);
}
END_TEST

START_TEST(a_default_acl_is_limited_by_the_mode)
{
    uint8_t bytes[256];
    struct acl *acl;
    uint32_t mode = S_IFREG | 0640;

    ck_assert_int_eq(acl_parse(bytes, make(bytes, full, 8), &acl), 0);
    ck_assert(acl_inherit(acl, &mode));
    ck_assert_uint_eq(mode, S_IFREG | 0640);
    ck_assert_uint_eq(acl->entries[6].perm, 4); /* the mask takes the group bits */
    ck_assert_uint_eq(acl->entries[3].perm, 4);
    ck_assert_uint_eq(acl->entries[1].perm, 7);
    ck_assert_uint_eq(acl->entries[7].perm, 0);
    free(acl);
    mode = 0777;
    static const struct acl_entry minimal[] = {
        {ACL_USER_OBJ, 7, 0}, {ACL_GROUP_OBJ, 5, 0}, {ACL_OTHER, 0, 0}};
    ck_assert_int_eq(acl_parse(bytes, make(bytes, minimal, 3), &acl), 0);
    ck_assert(!acl_inherit(acl, &mode)); /* the mode says the same as the ACL */
    ck_assert_uint_eq(mode, 0750);
    free(acl);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("acl");
    TCase *t = tcase_create("acl");

    tcase_add_test(t, entries_decide_in_the_order_of_posix);
    tcase_add_test(t, mode_bits_decide_without_an_acl);
    tcase_add_test(t, malformed_acls_are_refused);
    tcase_add_test(t, a_default_acl_is_limited_by_the_mode);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
