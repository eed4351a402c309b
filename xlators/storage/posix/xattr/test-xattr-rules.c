/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <stddef.h>

#include <check.h>

#include "xlators/storage/posix/xattr/xattr-rules.h"

START_TEST(kinds)
{
    static const struct {
        const char *name;
        enum xattr_kind kind;
    } want[] = {
        {"user.x", XATTR_PLAIN},
        {"trusted.afr.dirty", XATTR_PLAIN},
        {"trusted.afr.v1-client-0", XATTR_PLAIN},
        {"trusted.glusterfs.dht", XATTR_PLAIN},
        {"trusted.glusterfs.dht.linkto", XATTR_PLAIN},
        {"trusted.gfid", XATTR_IDENTITY},
        {"trusted.gfid2", XATTR_PLAIN},
        {"trusted.gfid2path.5b24eafb4345038c", XATTR_GFID2PATH},
        {"trusted.glusterfs.mdata", XATTR_MDATA},
        {"trusted.gl", XATTR_PLAIN}, /* a truncated name is no virtual one */
        {"trusted.glusterfs.pathinfo", XATTR_VIRTUAL},
        {"glusterfs.get_real_filename:Ab", XATTR_VIRTUAL},
        {"trusted.glusterfs.3bd0.xtime", XATTR_GEOREP},
        {"trusted.glusterfs.3bd0.entry_stime", XATTR_GEOREP},
        {"trusted.glusterfs.volume-mark", XATTR_GEOREP},
        {"trusted.glusterfs.quota.limit-set", XATTR_QUOTA},
        {"trusted.glusterfs.quota.size.1", XATTR_QUOTA_SUM},
        {"trusted.glusterfs.quota.0000.contri.1", XATTR_QUOTA_SUM},
        {"security.selinux", XATTR_SELINUX},
        {"foo.bar", XATTR_NO_NAMESPACE},
        {"user", XATTR_NO_NAMESPACE},
        {"", XATTR_NO_NAMESPACE},
    };

    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++)
        ck_assert_msg(xattr_kind_of(want[i].name) == want[i].kind, "%s is %d", want[i].name,
                      xattr_kind_of(want[i].name));
}
END_TEST

START_TEST(heal_sees_mdata_users_do_not)
{
    static const struct caller user = {.pid = 0}, heal = {.pid = -6}, georep = {.pid = -1};
    static const struct caller liar = {.pid = -1, .standing = PID_COUNTS_NOT};

    ck_assert(xattr_hidden_in_list(XATTR_MDATA, &liar));
    ck_assert(xattr_hidden_in_list(XATTR_GEOREP, &liar));
    ck_assert(xattr_hidden_in_list(XATTR_MDATA, &user));
    ck_assert(!xattr_hidden_in_list(XATTR_MDATA, &heal));
    ck_assert(!xattr_hidden_in_fill(XATTR_MDATA));
    ck_assert(xattr_hidden_in_list(XATTR_GEOREP, &heal));
    ck_assert(!xattr_hidden_in_list(XATTR_GEOREP, &georep));
    ck_assert(xattr_is_synced("user.x"));
    ck_assert(!xattr_is_synced("trusted.glusterfs.dht"));
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("xattr-rules");
    TCase *t = tcase_create("xattr-rules");

    tcase_add_test(t, kinds);
    tcase_add_test(t, heal_sees_mdata_users_do_not);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
