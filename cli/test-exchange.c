/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Answers arrive in pieces of any size from a child at the other end of a real socket. */
#include "cli/exchange.h"
#include "base/test-child.h"

#include <check.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

static char dir[] = "/tmp/kiln-exchange-XXXXXX", path[64], question[64];

static void
setup(void)
{
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    snprintf(question, sizeof question, "%s/question", dir);
}

static void
teardown(void)
{
    unlink(path);
    unlink(question);
    rmdir(dir);
}

static int
listen_there(void)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strcpy(name.sun_path, path);
    ck_assert_int_eq(bind(fd, (struct sockaddr *)&name, sizeof name), 0);
    ck_assert_int_eq(listen(fd, 1), 0);
    return fd;
}

/* Writes the question into a file, and sends `answer`, `piece` bytes at a time. */
static void
answer_one(int listener, const char *answer, size_t size, size_t piece)
{
    char asked[1024] = "";
    int fd = accept(listener, NULL, NULL);
    ssize_t got = recv(fd, asked, sizeof asked - 1, 0);
    FILE *f = fopen(question, "w");

    if (got > 0 && f)
        fwrite(asked, 1, (size_t)got, f);
    if (f)
        fclose(f);
    for (size_t at = 0; at < size; at += piece) {
        size_t bytes = size - at < piece ? size - at : piece;

        if (send(fd, answer + at, bytes, MSG_NOSIGNAL) != (ssize_t)bytes)
            break;
    }
    _exit(0);
}

/* Returns the last result of exchange_read(). */
static int
ask_once(struct exchange *x, const char *body, const char *answer, size_t size, size_t piece)
{
    int listener = listen_there(), err;
    pid_t child = test_fork();

    if (child == 0)
        answer_one(listener, answer, size, piece);
    err = exchange_begin(x, path, "/top?ms=0", body);
    while (!err)
        err = exchange_read(x);
    close(listener);
    ck_assert_int_eq(test_child_status(child), 0);
    unlink(path);
    return err;
}

#define HEAD "HTTP/1.1 200 OK\r\nConnection: close\r\n"

START_TEST(pieces_of_any_size)
{
    static const char answer[] = HEAD "CONTENT-length: 12\r\n\r\n{\"a\": [1]}\r\n";
    struct exchange x;

    for (size_t piece = 1; piece <= sizeof answer; piece++) {
        ck_assert_int_eq(ask_once(&x, NULL, answer, sizeof answer - 1, piece), 1);
        ck_assert_uint_eq(x.status, 200);
        ck_assert_uint_eq(x.body_bytes, 12);
        ck_assert_mem_eq(x.bytes + x.head, "{\"a\": [1]}\r\n", 12);
        exchange_end(&x);
    }
}
END_TEST

static void
expect_question(const char *wanted)
{
    char text[1024] = "";
    FILE *f = fopen(question, "r");

    ck_assert_ptr_nonnull(f);
    size_t bytes = fread(text, 1, sizeof text - 1, f);
    fclose(f);
    ck_assert_uint_gt(bytes, 0);
    ck_assert_msg(strstr(text, wanted), "%s", text);
}

START_TEST(questions)
{
    static const char answer[] = "HTTP/1.1 409 Conflict\r\nContent-Length: 2\r\n\r\n{}";
    struct exchange x;

    ck_assert_int_eq(ask_once(&x, NULL, answer, sizeof answer - 1, 4096), 1);
    ck_assert_uint_eq(x.status, 409);
    exchange_end(&x);
    expect_question("GET /top?ms=0 HTTP/1.1\r\nHost: kilnd\r\n");
    ck_assert_int_eq(ask_once(&x, "{\"b\": 2}", answer, sizeof answer - 1, 4096), 1);
    exchange_end(&x);
    expect_question("POST /top?ms=0 HTTP/1.1\r\n");
    expect_question("\r\nContent-Length: 8\r\n");
}
END_TEST

START_TEST(a_long_answer)
{
    enum { BYTES = 3 << 20 };
    char *answer = malloc(BYTES + 100);
    struct exchange x;

    ck_assert_ptr_nonnull(answer);
    size_t head = (size_t)sprintf(answer, HEAD "Content-Length: %d\r\n\r\n", BYTES);
    for (size_t i = 0; i < BYTES; i++)
        answer[head + i] = (char)('a' + i % 23);
    ck_assert_int_eq(ask_once(&x, NULL, answer, head + BYTES, 100001), 1);
    ck_assert_uint_eq(x.body_bytes, BYTES);
    ck_assert_mem_eq(x.bytes + x.head, answer + head, BYTES);
    exchange_end(&x);
    free(answer);
}
END_TEST

START_TEST(what_is_no_answer)
{
    static const struct {
        const char *answer;
        int err;
    } rows[] = {
        {"", -ECONNRESET},
        {"HTTP/1.1 200 OK\r\nConte", -ECONNRESET},
        {HEAD "Content-Length: 12\r\n\r\n{\"a\"", -ECONNRESET},
        {HEAD "\r\n{}", -EPROTO},
        {HEAD "\r\n\r\nContent-Length: 2\r\n\r\n", -EPROTO},
        {HEAD "Content-Length: x\r\n\r\n{}", -EPROTO},
        {HEAD "Content-Length: 99999999999\r\n\r\n{}", -EMSGSIZE},
        {HEAD "Content-Length: -1\r\n\r\n{}", -EMSGSIZE},
        {"SSH-2.0-OpenSSH_9.2\r\n\r\n", -EPROTO},
    };
    struct exchange x;

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int err = ask_once(&x, NULL, rows[i].answer, strlen(rows[i].answer), 7);

        ck_assert_msg(err == rows[i].err, "%s: %d", rows[i].answer, err);
        exchange_end(&x);
    }
}
END_TEST

START_TEST(nobody_there)
{
    char name[300];
    struct exchange x;

    ck_assert_int_eq(exchange_begin(&x, path, "/top", NULL), -ENOENT);
    exchange_end(&x);
    memset(name, 'x', sizeof name - 1);
    name[sizeof name - 1] = '\0';
    ck_assert_int_eq(exchange_begin(&x, name, "/top", NULL), -ENAMETOOLONG);
    exchange_end(&x);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("exchange");
    TCase *t = tcase_create("exchange");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, pieces_of_any_size);
    tcase_add_test(t, questions);
    tcase_add_test(t, a_long_answer);
    tcase_add_test(t, what_is_no_answer);
    tcase_add_test(t, nobody_there);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
