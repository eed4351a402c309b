/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "data/option.h"

#include <errno.h>
#include <string.h>

#include <check.h>

#include "base/gfid.h"

struct conf {
    bool on;
    int64_t count, mode, secs;
    uint64_t size, reserve;
    char *path;
    int kind;
    struct gfid id;
};

static const char *const kinds[] = {"none", "some", "all", NULL};
static const struct option table[] = {
    OPT_BOOL(struct conf, on, "on", "off"),
    OPT_INT(struct conf, count, "count", "16", 1, 64),
    OPT_OCTAL(struct conf, mode, "mode", "0755"),
    OPT_TIME(struct conf, secs, "secs", "30", 0, 3600),
    OPT_SIZE(struct conf, size, "size", "64KB", 1 << 30),
    OPT_PERCENT_OR_SIZE(struct conf, reserve, "reserve", "1"),
    OPT_STR(struct conf, path, "path", NULL),
    OPT_ENUM(struct conf, kind, "kind", "some", kinds),
    OPT_UUID(struct conf, id, "id"),
    OPT_MUST_BE("feature", "off"),
    OPT_PREFIX("auth."),
    OPT_END,
};

static int
parse(const char *key, const char *value, struct conf *conf, char *error)
{
    struct option_value v = {key, value, 7};

    memset(conf, 0, sizeof *conf);
    error[0] = '\0';
    return option_parse(table, &v, key ? 1 : 0, conf, NULL, NULL, error, 256);
}

START_TEST(missing_options_get_their_defaults)
{
    struct conf c;
    char error[256];

    ck_assert_int_eq(parse(NULL, NULL, &c, error), 0);
    ck_assert(!c.on);
    ck_assert_int_eq(c.count, 16);
    ck_assert_int_eq(c.mode, 0755);
    ck_assert_uint_eq(c.size, 65536);
    ck_assert_uint_eq(c.reserve, 1);
    ck_assert_int_eq(c.kind, 1);
    ck_assert_ptr_null(c.path);
    ck_assert(gfid_is_null(&c.id));
}
END_TEST

START_TEST(values_of_every_type_are_read)
{
    struct conf c;
    char error[256];

    ck_assert_int_eq(parse("on", "Enable", &c, error), 0);
    ck_assert(c.on);
    ck_assert_int_eq(parse("size", "1.5MB", &c, error), 0);
    ck_assert_uint_eq(c.size, 3 << 19);
    ck_assert_int_eq(parse("secs", "2min", &c, error), 0);
    ck_assert_int_eq(c.secs, 120);
    ck_assert_int_eq(parse("reserve", "5%", &c, error), 0);
    ck_assert_uint_eq(c.reserve, 5);
    ck_assert_int_eq(parse("reserve", "1GB", &c, error), 0);
    ck_assert_uint_eq(c.reserve, 1u << 30);
    ck_assert_int_eq(parse("kind", "ALL", &c, error), 0);
    ck_assert_int_eq(c.kind, 2);
    ck_assert_int_eq(parse("path", "/x", &c, error), 0);
    ck_assert_str_eq(c.path, "/x");
    option_conf_fini(table, &c);
    ck_assert_int_eq(parse("id", "11111111-2222-4333-8444-0123456789aB", &c, error), 0);
    ck_assert_str_eq(GFID(&c.id), "11111111-2222-4333-8444-0123456789ab");
    ck_assert_int_eq(parse("feature", "disable", &c, error), 0);
    ck_assert_int_eq(parse("auth.addr./b.allow", "*", &c, error), 0);
}
END_TEST

static const struct {
    const char *key, *value, *says;
    int err;
} bad[] = {
    {"on", "maybe", "line 7: option on maybe: expected on or off", -EINVAL},
    {"count", "65", "from 1 to 64", -EINVAL},
    {"count", "1x", "a whole number", -EINVAL},
    {"count", "", "a whole number", -EINVAL},
    {"count", "99999999999999999999", "a whole number", -EINVAL},
    {"size", "2GB", "expected", -EINVAL},
    {"size", "-1", "a size", -EINVAL},
    {"size", "1e40", "a size", -EINVAL},
    {"secs", "1y", "a time", -EINVAL},
    {"mode", "0999", "octal", -EINVAL},
    {"kind", "few", "one of", -EINVAL},
    {"id", "11111111-2222-4333-8444", "a uuid", -EINVAL},
    {"id", "00000000-0000-0000-0000-000000000000", "a uuid", -EINVAL},
    {"feature", "on", "not built", -EOPNOTSUPP},
};
static int bad_now; /* the value of bad_options that a change contains now */

START_TEST(a_bad_value_is_refused_with_a_reason)
{
    struct conf c;
    char error[256];

    ck_assert_int_eq(parse(bad[_i].key, bad[_i].value, &c, error), bad[_i].err);
    ck_assert_msg(strstr(error, bad[_i].says), "'%s' lacks '%s'", error, bad[_i].says);
}
END_TEST

static unsigned refused, unknown;

static void
count_unknown(const struct option_value *v, void *arg)
{
    ck_assert_ptr_eq(arg, &unknown);
    ck_assert_str_eq(v->key, "colour");
    unknown++;
}

static void
count_refused(const char *what, void *arg)
{
    ck_assert_ptr_eq(arg, &unknown);
    ck_assert_msg(strstr(what, bad[bad_now].says), "%s", what);
    refused++;
}

/* A bad value next to good values: only the option with the bad value keeps its old value, and does not get
 * the default. */
START_TEST(a_change_applies_all_good_options)
{
    static const struct option_value first[] = {{"on", "yes", 1},    {"count", "5", 2}, {"mode", "0700", 3},
                                                {"secs", "2m", 4},   {"size", "1MB", 5}, {"path", "/one", 6},
                                                {"kind", "all", 7},  {"reserve", "9", 8},
                                                {"id", "11111111-2222-4333-8444-0123456789ab", 9}};
    const struct option_sink sink = {count_unknown, count_refused, &unknown};
    struct conf before = {0}, c = {0};
    char error[256];
    size_t n = sizeof first / sizeof first[0];
    struct option_value then[16];

    bad_now = _i;
    refused = unknown = 0;
    ck_assert_int_eq(option_parse(table, first, n, &before, NULL, NULL, error, sizeof error), 0);
    memcpy(then, first, sizeof first);
    then[5].value = "/two";
    then[n] = (struct option_value){bad[_i].key, bad[_i].value, 7};
    then[n + 1] = (struct option_value){"colour", "red", 10};
    then[n + 2] = (struct option_value){"reserve", "11", 11};
    ck_assert_int_eq(option_change(table, then, n + 3, &c, &before, &sink), 0);
    ck_assert_uint_eq(refused, 1);
    ck_assert_uint_eq(unknown, 1);
    ck_assert_uint_eq(c.reserve, 11);
    ck_assert_str_eq(c.path, "/two");
    ck_assert(c.on && c.count == 5 && c.mode == 0700 && c.secs == 120 && c.size == 1 << 20 && c.kind == 2);
    ck_assert(gfid_equal(&c.id, &before.id));
    option_conf_fini(table, &c);
    option_conf_fini(table, &before);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("option");
    TCase *t = tcase_create("option");

    tcase_add_test(t, missing_options_get_their_defaults);
    tcase_add_test(t, values_of_every_type_are_read);
    tcase_add_loop_test(t, a_bad_value_is_refused_with_a_reason, 0, sizeof bad / sizeof bad[0]);
    tcase_add_loop_test(t, a_change_applies_all_good_options, 0, sizeof bad / sizeof bad[0]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
