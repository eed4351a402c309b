/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The list of a brick's clients: only a process of the volume gets the list, and the list has a line for each
 * login of another client. */
#include "xlators/protocol/server/test-bench.h"

#define NAME(n) "CTX_ID:" n "-GRAPH_ID:0-PID:1-HOST:h"
#define UID(n) NAME(n) "-PC_NAME:v-client-0-RECON_NO:-0"

static struct peer *
own_process(const char *uid)
{
    struct peer *p = peer_new();

    ck_assert_int_eq(LOGIN(p, uid, "username", "user1", "password", "secret"), 0);
    return p;
}

/* Returns the text, with a NUL, on the peer's arena; NULL: an error. */
static const char *
ask_roll(struct peer *p)
{
    const char *key = dict_key_text(DICT_KEY_CLIENTS);
    struct fop_reply r;

    if (fop(p, FOP_getxattr, CALL(.gfid = gfid_no(1), .name = key, .has_name = 1), &r))
        return NULL;
    const struct dict_pair *pair = dict_find(r.dict, DICT_KEY_CLIENTS);
    ck_assert_ptr_nonnull(pair);
    char *text = arena_zalloc(&p->arena, pair->len + 1);
    memcpy(text, pair->v.bytes, pair->len);
    return text;
}

START_TEST(test_the_roll_has_the_other_clients)
{
    setup();
    struct peer *own = own_process(UID("own"));

    ck_assert_str_eq(ask_roll(own), "");
    struct peer *other = own_process(UID("other-own")), *one = logged_in(UID("one")), *odd = logged_in("odd");
    struct peer *backwards = logged_in("-PC_NAME:x-GRAPH_ID:1"), *healer = peer_new();
    ck_assert_int_eq(LOGIN(healer, UID("healer"), "process-name", "glustershd"), 0);
    ck_assert_str_eq(ask_roll(own), NAME("one") "\n");
    struct peer *two = logged_in(UID("two"));
    const char *both = ask_roll(own);
    ck_assert_uint_eq(strlen(both), 2 * sizeof NAME("one"));
    ck_assert_ptr_nonnull(strstr(both, NAME("one") "\n"));
    ck_assert_ptr_nonnull(strstr(both, NAME("two") "\n"));
    ck_assert_ptr_null(ask_roll(one));
    const struct fop_call like = {.gfid = gfid_no(1), .name = "kiln.client", .has_name = 1};
    ck_assert_int_eq(fop(own, FOP_getxattr, &like, NULL), EOPNOTSUPP);
    struct peer *all[] = {own, other, one, odd, backwards, healer, two};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        peer_free(all[i]);
    teardown();
}
END_TEST

START_TEST(test_a_long_roll_is_complete)
{
    enum { CLIENTS = 60 };
    char uid[400];
    struct peer *many[CLIENTS];

    setup();
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(uid, sizeof uid, "CTX_ID:%0300d-GRAPH_ID:0-PC_NAME:x", i);
        many[i] = logged_in(uid);
    }
    struct peer *own = own_process(UID("own"));
    const char *text = ask_roll(own);
    for (int i = 0; i < CLIENTS; i++) {
        snprintf(uid, sizeof uid, "CTX_ID:%0300d-GRAPH_ID:0\n", i);
        ck_assert_ptr_nonnull(strstr(text, uid));
        peer_free(many[i]);
    }
    ck_assert_uint_eq(strlen(text), CLIENTS * strlen(uid));
    peer_free(own);
    teardown();
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("roll");
    TCase *t = tcase_create("roll");

    tcase_set_timeout(t, 60);
    tcase_add_test(t, test_the_roll_has_the_other_clients);
    tcase_add_test(t, test_a_long_roll_is_complete);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
