/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Texts of volumes: a volume's JSON in the state, a brick's and a client's volfile, and the options that an
 * operator sets. */
#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "volumes/volfile-text.h"
#include "volumes/volume-options.h"
#include "volumes/volume-task.h"
#include "volumes/volumes.h"

static struct problem why;

static struct volume *
volume_of_bricks(unsigned bricks)
{
    struct volume *v = volume_new("one", bricks, false);
    char path[32];

    ck_assert_ptr_nonnull(v);
    for (unsigned i = 0; i < bricks; i++) {
        snprintf(path, sizeof path, "/bricks/b%u", i);
        ck_assert_int_eq(volume_add_brick(v, "", path, false), 0);
    }
    ck_assert_int_eq(volume_options_of_new(v), 0);
    return v;
}

START_TEST(a_volume_comes_back_from_its_text)
{
    struct volume *v = volume_of_bricks(3);

    v->has_arbiter = true;
    v->status = VOLUME_STOPPED;
    ck_assert_int_eq(volume_set_option(v, "user.note", "a \"quoted\" word"), 0);
    json_t *json = volume_to_json(v), *again;
    struct volume *back = volume_from_json(json, &why);
    ck_assert_msg(back != NULL, "%s", why.wrong);
    again = volume_to_json(back);
    ck_assert(json_equal(json, again));
    json_decref(json);
    json_decref(again);
    volume_free(v);
    volume_free(back);
}
END_TEST

static bool
is_in_volfile(const struct volume *v, const char *words)
{
    char *text = volfile_text_client(v, &(const struct volfile_place){"localhost", false});
    bool is = text && strstr(text, words);

    free(text);
    return is;
}

START_TEST(a_drain_comes_back_and_names_its_subvolume)
{
    static const char leaving[] = "option decommissioned-bricks one-client-1\n";
    struct volume *v = volume_of_bricks(3);

    v->replica = 1;
    ck_assert(!volume_task_kind(v) && !volume_task_is_running(v) && !volume_task_leaves(v, 1));
    ck_assert_int_eq(volume_task_begin(v, TASK_DRAIN, (const bool[]){false, true, false}, NULL), 0);
    json_t *json = volume_to_json(v);
    struct volume *back = volume_from_json(json, &why);
    ck_assert_msg(back != NULL, "%s", why.wrong);
    ck_assert(volume_task_is_running(back) && volume_task_leaves(back, 1) && !volume_task_leaves(back, 0));
    ck_assert(is_in_volfile(back, leaving));
    ck_assert_int_eq(volume_task_end(back, "completed", NULL), 0);
    ck_assert(!volume_task_is_running(back) && is_in_volfile(back, leaving));
    ck_assert_int_eq(volume_task_end(back, TASK_STOPPED, NULL), 0);
    ck_assert(!volume_task_leaves(back, 1) && !is_in_volfile(back, "decommissioned"));
    json_object_set_new(json_object_get(json, "task"), "kind", json_string("other"));
    ck_assert(!volume_from_json(json, &why));
    json_decref(json);
    volume_free(v);
    volume_free(back);
}
END_TEST

/* Each member in turn is missing, or of another kind. */
START_TEST(a_text_that_is_not_right_is_refused)
{
    struct volume *v = volume_of_bricks(2), *back;
    json_t *whole = volume_to_json(v), *value;
    const char *key;

    json_object_foreach(whole, key, value)
    {
        json_t *without = json_copy(whole), *other = json_copy(whole);

        json_object_del(without, key);
        ck_assert_msg(!(back = volume_from_json(without, &why)) && why.err, "without %s", key);
        json_object_set_new(other, key, json_real(1.5));
        ck_assert_msg(!(back = volume_from_json(other, &why)) && why.err, "%s is a fraction", key);
        json_decref(without);
        json_decref(other);
    }
    json_decref(whole);
    volume_free(v);
}
END_TEST

/* The store's writer must not add options and layers to a brick's volfile. */
START_TEST(an_option_that_a_volfile_would_take_for_more_is_refused)
{
    static const char *const pairs[][2] = {
        {"storage.gfid2path-separator", "x\n\toption\tdirectory\t/etc"},
        {"storage.gfid2path-separator", "x\tend-volume"},
        {"auth.allow", "*\r"},
        {"user.two\nlines", "x"},
        {"user.two words", "x"},
        {"", "x"},
    };
    struct volume *v = volume_of_bricks(2), *back;

    ck_assert_int_eq(volume_set_option(v, "storage.gfid2path-separator", "x y"), 0);
    json_t *whole = volume_to_json(v);
    ck_assert_msg((back = volume_from_json(whole, &why)) != NULL, "%s", why.wrong);
    volume_free(back);
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        json_object_set_new(whole, "options", json_pack("{ss}", pairs[i][0], pairs[i][1]));
        ck_assert_msg(!(back = volume_from_json(whole, &why)) && why.err == -EINVAL, "%zu", i);
    }
    json_decref(whole);
    ck_assert_int_eq(volume_set_option(v, "storage.gfid2path-separator", pairs[0][1]), 0);
    char *text = volfile_text_brick(v, 0, 1);
    ck_assert_ptr_null(strstr(text, "separator x\n")); /* in quotes, which a line break does not end */
    free(text);
    volume_free(v);
}
END_TEST

START_TEST(a_volume_of_the_first_format_has_numbers_by_place)
{
    struct volume *v = volume_of_bricks(2);
    json_t *json = volume_to_json(v), *brick;
    size_t i;

    json_object_set_new(json, "format", json_integer(1));
    json_object_del(json, "next_brick");
    json_object_del(json, "coming");
    json_array_foreach(json_object_get(json, "bricks"), i, brick) json_object_del(brick, "id");
    struct volume *back = volume_from_json(json, &why);
    ck_assert_msg(back != NULL, "%s", why.wrong);
    ck_assert_uint_eq(back->bricks[1].id, 1);
    ck_assert_uint_eq(back->next_id, 2);
    json_decref(json);
    volume_free(v);
    volume_free(back);
}
END_TEST

START_TEST(options_are_checked)
{
    static const struct {
        const char *key, *value;
        int err;
    } cases[] = {
        {"network.ping-timeout", "10", 0},
        {"network.ping-timeout", "1014", -EINVAL},
        {"network.ping-timeout", "", -EINVAL},
        {"performance.read-ahead", "maybe", -EINVAL},
        {"performance.read-ahed", "on", -ENOENT},
        {"user.anything", "goes", 0},
        {"user.", "goes", -ENOENT},
        {"user.x", "with\nnewline", -EINVAL},
        {"user.~!a:b", "goes", 0},
        {"user.with\nnewline", "x", -EINVAL},
        {"user.with\033[1mescape", "x", -EINVAL},
        {"user.with blank", "x", -EINVAL},
        {"user.\xff", "x", -EINVAL},
        {"user.\x7f", "x", -EINVAL},
        {"auth.allow", "`id`", -EINVAL},
        {"cluster.quorum-type", "auto", 0},
        {"cluster.quorum-type", "some", -EINVAL},
        {"transport.address-family", "inet6", -EOPNOTSUPP},
        {"features.trash-dir", "bin", 0},
        {"features.trash-dir", "a/b", -EINVAL},
        {"features.trash-dir", "..", -EINVAL},
        {"features.retention-mode", "enterprise", 0},
        {"features.retention-mode", "for-ever", -EINVAL},
    };
    struct volume *v = volume_of_bricks(2);

    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(volume_option_check(v, cases[i].key, cases[i].value, &why) == cases[i].err, "%s %s",
                      cases[i].key, cases[i].value);
    ck_assert_str_eq(volume_key_like("performance.read-ahed"), "performance.read-ahead");
    ck_assert_str_eq(volume_key_like("ping-timeout"), "network.ping-timeout");
    ck_assert_ptr_null(volume_key_like("completely.another.word"));
    volume_free(v);
}
END_TEST

START_TEST(options_of_dispersed_sets_are_checked_against_the_bricks)
{
    static const struct {
        const char *key, *value;
        int err;
    } cases[] = {
        {"disperse.quorum-count", "0", 0},
        {"disperse.quorum-count", "4", 0},
        {"disperse.quorum-count", "6", 0},
        {"disperse.quorum-count", "3", -EINVAL},
        {"disperse.quorum-count", "7", -EINVAL},
        {"disperse.quorum-count", "most", -EINVAL},
        {"disperse.ec-read-mask", "0:1:2:3", 0},
        {"disperse.ec-read-mask", "5:4:3:2:1", 0},
        {"disperse.ec-read-mask", "0:1:2", -EINVAL},
        {"disperse.ec-read-mask", "0:1:2:2", -EINVAL},
        {"disperse.ec-read-mask", "0:1:2:6", -EINVAL},
        {"disperse.ec-read-mask", "none", -EINVAL},
        {"disperse.read-policy", "round-robin", 0},
        {"disperse.read-policy", "random", -EINVAL},
        {"disperse.stripe-cache", "11", -EINVAL},
    };
    struct volume *v = volume_of_bricks(12);

    ck_assert_int_eq(volume_option_check(v, "disperse.quorum-count", "4", &why), -EINVAL);
    ck_assert_int_eq(volume_option_check(v, "disperse.eager-lock", "on", &why), -EINVAL);
    ck_assert_int_eq(volume_option_check(v, "disperse.ec-read-mask", "0:1:2:3", &why), -EINVAL);
    v->replica = 6; /* two sets of 4+2 */
    v->redundancy = 2;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        ck_assert_msg(volume_option_check(v, cases[i].key, cases[i].value, &why) == cases[i].err, "%s %s: %s",
                      cases[i].key, cases[i].value, why.wrong);
    volume_free(v);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("volume-texts");
    TCase *t = tcase_create("texts");

    tcase_add_test(t, a_volume_comes_back_from_its_text);
    tcase_add_test(t, a_drain_comes_back_and_names_its_subvolume);
    tcase_add_test(t, a_text_that_is_not_right_is_refused);
    tcase_add_test(t, an_option_that_a_volfile_would_take_for_more_is_refused);
    tcase_add_test(t, a_volume_of_the_first_format_has_numbers_by_place);
    tcase_add_test(t, options_are_checked);
    tcase_add_test(t, options_of_dispersed_sets_are_checked_against_the_bricks);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
