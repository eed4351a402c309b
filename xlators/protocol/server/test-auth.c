/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The tables of wire 3.4: which logins are accepted. */
#include <arpa/inet.h>
#include <check.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/option.h"
#include "xlators/protocol/server/auth.h"

#define BRICK "/bricks/b1"
#define ADDR(what, list) {"auth.addr." BRICK "." what, list, 0}
#define LOGIN_ALLOW(list) {"auth.login." BRICK ".allow", list, 0}
#define PASSWORD(user, text) {"auth.login." user ".password", text, 0}
#define UUID "2d6f3b0c-1111-4222-8333-444455556666"

struct ask {
    const char *address;
    uint16_t port;
    const char *username, *password, *subdir, *tls_name;
    bool secure_only, is_strict;
};

static bool trusted;

static bool
ask(const struct option_value *options, size_t count, struct ask a)
{
    struct auth_rules *rules = auth_rules_new(options, count);
    struct sockaddr_storage peer = {.ss_family = AF_UNIX};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;
    struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)&peer;

    if (a.address && inet_pton(AF_INET, a.address, &v4->sin_addr) == 1) {
        v4->sin_family = AF_INET;
        v4->sin_port = htons(a.port);
    } else if (a.address && inet_pton(AF_INET6, a.address, &v6->sin6_addr) == 1) {
        v6->sin6_family = AF_INET6;
        v6->sin6_port = htons(a.port);
    }
    bool ok = auth_check(rules,
                         &(struct auth_question){.brick = BRICK,
                                                 .peer = &peer,
                                                 .username = a.username,
                                                 .password = a.password,
                                                 .tls_name = a.tls_name,
                                                 .subdir = a.subdir ? a.subdir : "/",
                                                 .allow_insecure = !a.secure_only,
                                                 .is_strict = a.is_strict},
                         &trusted);
    auth_rules_unref(rules);
    return ok;
}

/* Checks one address against one allow list. */
static bool
allows(const char *list, const char *address)
{
    const struct option_value options[] = {ADDR("allow", list)};

    return ask(options, 1, (struct ask){.address = address, .port = 49151});
}

START_TEST(test_addresses)
{
    static const struct {
        const char *list, *address;
        bool expected;
    } rows[] = {
        {"*", "10.1.2.3", true},
        {"*", "fe80::1", true},
        {"10.1.2.3", "10.1.2.3", true},
        {"10.1.2.3", "10.1.2.4", false},
        {"10.1.2.4,10.1.2.3", "10.1.2.3", true},
        {"10.1.2.4, 10.1.2.3", "10.1.2.3", true},
        {"10.1.*", "10.1.2.3", true},
        {"10.2.*", "10.1.2.3", false},
        {"10.1.2.?", "10.1.2.3", true},
        {"10.1.2.[0-5]", "10.1.2.3", true},
        {"10.1.0.0/16", "10.1.2.3", true},
        {"10.1.0.0/23", "10.1.2.3", false},
        {"10.1.2.0/30", "10.1.2.3", true},
        {"10.1.2.0/31", "10.1.2.3", false},
        {"0.0.0.0/0", "10.1.2.3", true},
        {"10.1.2.3/32", "10.1.2.3", true},
        {"10.1.2.3/33", "10.1.2.3", false},
        {"10.1.2.3/", "10.1.2.3", false},
        {"10.1.2.3/x", "10.1.2.3", false},
        {"fd00::/8", "fd12::7", true},
        {"fd00::/8", "fe12::7", false},
        {"fd00::/8", "10.1.2.3", false},
        {"0.0.0.0/0", "fd12::7", false},
        {"10.1.2.3", "::ffff:10.1.2.3", true}, /* IPv4 through a socket of both families */
        {"fd12:0::7", "fd12::7", true},        /* compared as an address, not as text */
        {"!10.1.2.3", "10.1.2.3", false},
        {"!10.1.2.3", "10.1.2.4", true},
        {"!10.1.0.0/16", "10.1.2.3", false},
        {"!10.1.0.0/16", "10.2.2.3", true},
        {"!10.9.*,10.1.*", "10.1.2.3", true}, /* the first entry matches by its negation */
        {"10.7.7.7,!10.1.*", "10.1.2.3", false},
        {"", "10.1.2.3", false},
        {",,", "10.1.2.3", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_msg(allows(rows[i].list, rows[i].address) == rows[i].expected, "list %s, address %s",
                      rows[i].list, rows[i].address);
}
END_TEST

/* A name of the hosts file, which a minimal Debian lacks. */
static bool
has_localhost(void)
{
    struct addrinfo *list;

    if (getaddrinfo("localhost", NULL, NULL, &list)) {
        printf("no localhost here: what needs a name is left out\n");
        return false;
    }
    freeaddrinfo(list);
    return true;
}

START_TEST(test_a_name)
{
    if (!has_localhost())
        return;
    ck_assert(allows("localhost", "127.0.0.1"));
    ck_assert(!allows("localhost", "127.0.0.2"));
}
END_TEST

START_TEST(test_long_lists_count_too)
{
    static char list[70000];
    size_t n = 0;

    while (n < 66000)
        n += (size_t)snprintf(list + n, sizeof list - n, "10.%zu.%zu.7,", n / 200 % 256, n % 251);
    snprintf(list + n, sizeof list - n, "10.0.0.1");
    const struct option_value options[] = {ADDR("allow", "*"), ADDR("reject", list)};
    ck_assert(!ask(options, 2, (struct ask){.address = "10.0.0.1"}));
    ck_assert(ask(options, 2, (struct ask){.address = "192.168.0.1"}));
    ck_assert(allows(list, "10.0.0.1"));
}
END_TEST

START_TEST(test_folders_are_compared_as_paths)
{
    static const char *const lists[] = {"/sub(10.0.0.1)", "//sub/(10.0.0.1)", " /sub (10.0.0.1)",
                                        "/(*.9),/sub//(10.0.0.1)"};
    static const char *const same[] = {"/sub", "//sub", "/sub/", "sub", "/sub//"};
    static const char *const other[] = {"/su", "/sub/x", "/subs", "/", "/ sub"};

    for (size_t i = 0; i < sizeof lists / sizeof lists[0]; i++) {
        const struct option_value options[] = {ADDR("allow", "*"), ADDR("reject", lists[i])};

        for (size_t k = 0; k < sizeof same / sizeof same[0]; k++)
            ck_assert_msg(!ask(options, 2, (struct ask){.address = "10.0.0.1", .subdir = same[k]}), "%s %s",
                          lists[i], same[k]);
        for (size_t k = 0; k < sizeof other / sizeof other[0]; k++)
            ck_assert_msg(ask(options, 2, (struct ask){.address = "10.0.0.1", .subdir = other[k]}), "%s %s",
                          lists[i], other[k]);
    }
}
END_TEST

START_TEST(test_invalid_lists)
{
    static const struct {
        const char *list;
        bool is_sound;
    } rows[] = {
        {"*", true},
        {"10.0.0.0/8,!10.1.0.0/16, host.example", true},
        {"fe80::/10", true},
        {"/(*),/sub(10.0.0.1|10.0.0.0/24),/none", true},
        {"10.0.0.0/33", false},
        {"10.0.0.0/", false},
        {"10.0.0.0/-1", false},
        {"10.0.0/24", false},
        {"/sub(10.0.0.1", false},
        {"/sub(10.0.0.1,/other(10.0.0.2)", false},
        {"/sub)10.0.0.1(", false},
        {"/sub(10.0.0.0/99)", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct option_value options[] = {ADDR("allow", "*"), ADDR("reject", rows[i].list)};
        struct auth_rules *rules = auth_rules_new(options, 2);
        const char *flaw = auth_rules_flaw(rules);

        ck_assert_msg((flaw == NULL) == rows[i].is_sound, "%s", rows[i].list);
        if (flaw)
            ck_assert_str_eq(flaw, "auth.addr." BRICK ".reject");
        auth_rules_unref(rules);
    }
}
END_TEST

START_TEST(test_subdirs)
{
    static const char *list = "/(*),/sub(10.0.0.1|10.0.0.2),/none,/last(10.9.0.0/16)";
    static const struct {
        const char *subdir, *address;
        bool expected;
    } rows[] = {
        {"/", "10.7.7.7", true},     {"/sub", "10.0.0.1", true},   {"/sub", "10.0.0.2", true},
        {"/sub", "10.0.0.3", false}, {"/none", "10.0.0.1", false}, {"/other", "10.0.0.1", false},
        {"/last", "10.9.1.1", true}, {"/last", "10.8.1.1", false}, {"/su", "10.0.0.1", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct option_value options[] = {ADDR("allow", list)};

        ck_assert_msg(ask(options, 1, (struct ask){.address = rows[i].address, .subdir = rows[i].subdir}) ==
                          rows[i].expected,
                      "%s from %s", rows[i].subdir, rows[i].address);
    }
    ck_assert(!allows("/(*", "10.0.0.1")); /* no closing bracket */
}
END_TEST

START_TEST(test_reject_and_ports)
{
    const struct option_value options[] = {ADDR("allow", "*"), ADDR("reject", "10.1.*")};

    ck_assert(!ask(options, 2, (struct ask){.address = "10.1.2.3"}));
    ck_assert(ask(options, 2, (struct ask){.address = "10.2.2.3", .port = 50000}));
    ck_assert(!ask(options, 2, (struct ask){.address = "10.2.2.3", .port = 50000, .secure_only = true}));
    ck_assert(ask(options, 2, (struct ask){.address = "10.2.2.3", .port = 1023, .secure_only = true}));
    ck_assert(ask(options, 2, (struct ask){0})); /* a unix socket: `*` only */
    ck_assert(!ask(NULL, 0, (struct ask){.address = "10.1.2.3"})); /* no module accepts */
    const struct option_value other[] = {{"auth.addr./bricks/b2.allow", "*", 0}};
    ck_assert(!ask(other, 1, (struct ask){.address = "10.1.2.3"}));
    const struct option_value twice[] = {ADDR("allow", "10.9.9.9"), ADDR("allow", "*")};
    ck_assert(ask(twice, 2, (struct ask){.address = "10.1.2.3"})); /* the last one counts */
}
END_TEST

/* The results that stock shows, with addr permitting the address. */
START_TEST(test_login)
{
    const struct option_value options[] = {ADDR("allow", "127.0.0.1"), LOGIN_ALLOW("other," UUID),
                                           PASSWORD(UUID, "pw")};
    struct ask a = {.address = "127.0.0.1", .username = UUID, .password = "pw"};

    ck_assert(ask(options, 3, a));
    ck_assert(trusted);
    a.address = "10.0.0.1"; /* addr does not care, login accepts */
    ck_assert(ask(options, 3, a) && trusted);
    a = (struct ask){.address = "127.0.0.1", .username = UUID, .password = "wrong"};
    ck_assert(!ask(options, 3, a));
    ck_assert(!trusted);
    a.password = "pw2";
    ck_assert(!ask(options, 3, a));
    a.password = NULL;
    ck_assert(ask(options, 3, a) && !trusted);
    a.username = "nobody", a.password = "pw";
    ck_assert(ask(options, 3, a) && !trusted);
    a.username = NULL;
    ck_assert(ask(options, 3, a) && !trusted);
    a.is_strict = true;
    ck_assert(!ask(options, 3, a));
    a.username = "other"; /* listed, but without a password option */
    ck_assert(!ask(options, 3, a));

    const struct option_value pattern[] = {LOGIN_ALLOW("ab*"), PASSWORD("abc", "x")};
    ck_assert(ask(pattern, 2, (struct ask){.address = "10.0.0.1", .username = "abc", .password = "x"}) &&
              trusted);
    ck_assert(!ask(pattern, 2, (struct ask){.address = "10.0.0.1", .username = "b", .password = "x"}));
}
END_TEST

/* With TLS the certificate's name decides, and a password only tells a program of the volume. */
START_TEST(test_names_of_certificates)
{
    const struct option_value options[] = {ADDR("allow", "127.0.0.1"),
                                           LOGIN_ALLOW(UUID),
                                           PASSWORD(UUID, "pw"),
                                           {"auth.login." BRICK ".ssl-allow", "node*, client1", 0}};
    struct ask a = {.address = "127.0.0.1", .tls_name = "client1"};

    ck_assert(ask(options, 4, a) && !trusted);
    a.address = "10.0.0.1"; /* addr does not care, the name is listed */
    ck_assert(ask(options, 4, a) && !trusted);
    a.tls_name = "client12";
    ck_assert(!ask(options, 4, a));
    a = (struct ask){.address = "127.0.0.1", .tls_name = "client12", .username = UUID, .password = "pw"};
    ck_assert(!ask(options, 4, a));
    a.tls_name = ""; /* a certificate without a name */
    ck_assert(!ask(options, 4, a));
    a.tls_name = "node7";
    ck_assert(ask(options, 4, a) && trusted);
    a.password = "wrong";
    ck_assert(ask(options, 4, a) && !trusted);
    a.tls_name = NULL; /* without TLS the list does not count */
    ck_assert(!ask(options, 4, a));
    a.username = NULL;
    ck_assert(ask(options, 4, a) && !trusted);

    a = (struct ask){.address = "127.0.0.1", .tls_name = "anyone"}; /* no list */
    ck_assert(ask(options, 3, a) && !trusted);
    a.is_strict = true;
    ck_assert(!ask(options, 3, a));
}
END_TEST

/* ---- without memory -------------------------------------------------------------------------- */

static const char *no_copy_of; /* strdup() fails for this text */
static bool has_no_names;      /* getaddrinfo() fails for lack of memory */

char *__real_strdup(const char *text);
char *__wrap_strdup(const char *text);
int __real_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **list);
int __wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                       struct addrinfo **list);

char *
__wrap_strdup(const char *text)
{
    return no_copy_of && strcmp(text, no_copy_of) == 0 ? NULL : __real_strdup(text);
}

int
__wrap_getaddrinfo(const char *name, const char *service, const struct addrinfo *hints,
                   struct addrinfo **list)
{
    return has_no_names ? EAI_MEMORY : __real_getaddrinfo(name, service, hints, list);
}

/* Parses the options with memory, and then checks a login without memory to search `list` (NULL: with
 * memory), or to resolve host names. */
static bool
gets_in(const struct option_value *options, size_t count, const char *list, bool names)
{
    struct auth_rules *rules = auth_rules_new(options, count);
    struct sockaddr_storage peer = {0};
    struct sockaddr_in *v4 = (struct sockaddr_in *)&peer;

    *v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    ck_assert_ptr_nonnull(rules);
    no_copy_of = list;
    has_no_names = !names;
    bool is_in = auth_check(rules,
                            &(struct auth_question){.brick = BRICK,
                                                    .peer = &peer,
                                                    .username = "abc",
                                                    .password = "wrong",
                                                    .subdir = "/",
                                                    .allow_insecure = true},
                            &trusted);
    no_copy_of = NULL;
    has_no_names = false;
    auth_rules_unref(rules);
    return is_in;
}

START_TEST(test_without_memory_every_login_is_refused)
{
    static const struct {
        struct option_value options[3];
        size_t count;
        const char *list;
        bool expected; /* with memory */
    } rows[] = {
        {{ADDR("allow", "127.*")}, 1, "127.*", true},
        {{ADDR("allow", "*"), ADDR("reject", "127.0.0.1")}, 2, "127.0.0.1", false},
        {{ADDR("allow", "*"), ADDR("reject", "10.0.0.1")}, 2, "10.0.0.1", true},
        {{LOGIN_ALLOW("abc"), PASSWORD("abc", "wrong")}, 2, "abc", true},
        {{ADDR("allow", "*"), LOGIN_ALLOW("abc"), PASSWORD("abc", "right")}, 3, "abc", false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        ck_assert_msg(gets_in(rows[i].options, rows[i].count, NULL, true) == rows[i].expected, "row %zu", i);
        ck_assert_msg(!gets_in(rows[i].options, rows[i].count, rows[i].list, true), "row %zu", i);
    }
}
END_TEST

START_TEST(test_a_name_without_memory_rejects)
{
    const struct option_value rejected[] = {ADDR("allow", "127.0.0.1"),
                                            ADDR("reject", "10.0.0.1,nobody.invalid")};
    const struct option_value allowed[] = {ADDR("allow", "localhost")};

    ck_assert(gets_in(rejected, 2, NULL, true));
    ck_assert(!gets_in(rejected, 2, NULL, false));
    ck_assert(!has_localhost() || gets_in(allowed, 1, NULL, true));
    ck_assert(!gets_in(allowed, 1, NULL, false));
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("auth");
    TCase *c = tcase_create("auth");

    tcase_add_test(c, test_addresses);
    tcase_add_test(c, test_a_name);
    tcase_add_test(c, test_long_lists_count_too);
    tcase_add_test(c, test_folders_are_compared_as_paths);
    tcase_add_test(c, test_invalid_lists);
    tcase_add_test(c, test_subdirs);
    tcase_add_test(c, test_reject_and_ports);
    tcase_add_test(c, test_login);
    tcase_add_test(c, test_names_of_certificates);
    tcase_add_test(c, test_without_memory_every_login_is_refused);
    tcase_add_test(c, test_a_name_without_memory_rejects);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
