/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The translation of mount(8)'s command line into kiln-mount's command line. */
#include "mount/helper.h"

#include <check.h>
#include <stdio.h>
#include <string.h>

static struct helper h;

static int
translate(const char *options, const char *more)
{
    const char *argv[] = {"mount.kiln", "a:/v", "/mnt", "-o", options, more, NULL};

    return helper_translate(&h, more ? 6 : 5, (char **)argv);
}

/* The words between the program's name and the end of the options. */
static const char *
options_made(void)
{
    static char all[512];
    size_t at = 0;

    all[0] = '\0';
    for (int i = 1; i < h.count && strcmp(h.words[i], "--") != 0; i++)
        at += (size_t)snprintf(all + at, sizeof all - at, "%s%s", at ? " " : "", h.words[i]);
    return all;
}

START_TEST(options_that_have_a_meaning_are_handed_on)
{
    static const char *const cases[][2] = {
        {"rw", ""},
        {"ro", "--read-only"},
        {"acl", "--acl"},
        {"log-level=DEBUG,log-file=/l", "--log-level=DEBUG --log-file=/l"},
        {"backup-volfile-servers=b:c", "--volfile-server=b --volfile-server=c"},
        {"backupvolfile-server=b", "--volfile-server=b"},
        {"server-port=24", "--volfile-server-port=24"},
        {"attribute-timeout=0.5,entry-timeout=2", "--attribute-timeout=0.5 --entry-timeout=2"},
        {"xlator-option=*.a=b", "--xlator-option=*.a=b"},
        {"subdir-mount=/x", "--subdir-mount=/x"},
        {"nosuid,nodev", "--fuse-mountopts=nosuid --fuse-mountopts=nodev"},
        {"_netdev,noauto,x-systemd.automount,nofail,comment=y", ""},
        {"volume-name=v,client-pid=-1", "--volume-name=v --client-pid=-1"},
        {"gid-timeout=2,resolve-gids,halo-enabled=yes,lru-limit=5,inode-table-size=9,use-readdirp=no", ""},
        {"", ""},
    };

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        ck_assert_msg(translate(cases[i][0], NULL) == 0, "%s: %s", cases[i][0], h.error);
        ck_assert_str_eq(options_made(), cases[i][1]);
        ck_assert_str_eq(h.words[h.count - 2], "a:/v");
        ck_assert_str_eq(h.words[h.count - 1], "/mnt");
        ck_assert_ptr_null(h.words[h.count]);
        helper_free(&h);
    }
}
END_TEST

START_TEST(what_changes_what_users_see_is_refused_by_name)
{
    static const char *const names[] = {
        "worm",         "selinux",        "capability",      "enable-ino32",
        "context=x",    "aux-gfid-mount", "remount",
        "root-squash",  "no-root-squash", "dump-fuse=/f",    "fuse-mountopts=x",       "nonsense",
        "log-file",     "fscontext=x",    "defcontext=x",    "rootcontext=x",
    };

    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        char want[64];

        snprintf(want, sizeof want, "option %.*s: ", (int)strcspn(names[i], "="), names[i]);
        ck_assert_msg(translate(names[i], NULL) == 1, "%s", names[i]);
        ck_assert_msg(strncmp(h.error, want, strlen(want)) == 0, "%s", h.error);
        helper_free(&h);
    }
}
END_TEST

START_TEST(a_process_of_its_own_is_asked_for)
{
    ck_assert_int_eq(translate("shared", NULL), 0);
    ck_assert_str_eq(options_made(), "--shared");
    ck_assert(!h.is_alone);
    helper_free(&h);
    ck_assert_int_eq(translate("noshared", NULL), 0);
    ck_assert_str_eq(options_made(), "");
    ck_assert(h.is_alone);
    helper_free(&h);
    ck_assert_int_eq(translate("log-file=/l", NULL), 0);
    ck_assert(h.is_alone);
    helper_free(&h);
    ck_assert_int_eq(translate("ro,attribute-timeout=5", NULL), 0);
    ck_assert(!h.is_alone);
    helper_free(&h);
}
END_TEST

START_TEST(the_letters_of_mount)
{
    ck_assert_int_eq(translate("nonsense,ro", "-s"), 0);
    ck_assert_str_eq(options_made(), "--read-only");
    helper_free(&h);
    ck_assert_int_eq(translate("acl", "-r"), 0);
    ck_assert_str_eq(options_made(), "--acl --read-only");
    ck_assert(!h.is_fake);
    helper_free(&h);
    ck_assert_int_eq(translate("rw", "-f"), 0);
    ck_assert(h.is_fake);
    helper_free(&h);
    ck_assert_int_eq(translate("rw", "/further"), 1);
    helper_free(&h);
}
END_TEST

START_TEST(some_places_are_not_mounted_on)
{
    const char *argv[] = {"mount.kiln", "a:/v", "/", NULL};

    ck_assert_int_eq(helper_translate(&h, 3, (char **)argv), 2);
    helper_free(&h);
}
END_TEST

START_TEST(it_is_known_by_its_name)
{
    ck_assert(helper_is_wanted("/sbin/mount.kiln"));
    ck_assert(helper_is_wanted("mount.kiln"));
    ck_assert(!helper_is_wanted("/usr/sbin/kiln-mount"));
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("helper");
    TCase *t = tcase_create("helper");

    tcase_add_test(t, options_that_have_a_meaning_are_handed_on);
    tcase_add_test(t, what_changes_what_users_see_is_refused_by_name);
    tcase_add_test(t, a_process_of_its_own_is_asked_for);
    tcase_add_test(t, the_letters_of_mount);
    tcase_add_test(t, some_places_are_not_mounted_on);
    tcase_add_test(t, it_is_known_by_its_name);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
