/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include <config.h>

#include <arpa/inet.h>
#include <check.h>
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <urcu.h>

#include "daemon/http.h"

enum { LONG_BYTES = 16 << 20 };

static char dir[] = "/tmp/kiln-http-XXXXXX", path[64];
static uint16_t port;

/* Handlers of /wait stand here until `gate_is_open`; all under gate_lock. */
static pthread_mutex_t gate_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t gate_changed = PTHREAD_COND_INITIALIZER;
static bool gate_is_open;
static unsigned at_gate;

/* ---- the table ------------------------------------------------------------------------------- */

static void
say(const struct http_request *req, struct http_answer *answer)
{
    const char *word = http_query(req, "word");

    http_printf(answer, "%s %s rest=%s word=%s", req->method, req->path, req->rest, word ? word : "(none)");
}

static void
echo(const struct http_request *req, struct http_answer *answer)
{
    ck_assert_uint_eq(req->body[req->body_bytes], 0);
    http_put(answer, req->body, req->body_bytes);
}

static void
quote(const struct http_request *req, struct http_answer *answer)
{
    answer->content_type = "application/json";
    http_put_json_string(answer, http_query(req, "text"));
}

static void
too_long(const struct http_request *req, struct http_answer *answer)
{
    char part[4096] = {0};

    (void)req;
    for (size_t i = 0; i <= HTTP_ANSWER_MAX / sizeof part; i++)
        http_put(answer, part, sizeof part);
}

static void
be_long(const struct http_request *req, struct http_answer *answer)
{
    static char part[LONG_BYTES];

    (void)req;
    http_put(answer, part, sizeof part);
}

/* Pieces of 1 to 150,001 letters, as many as the query says; a piece more than PIECES_MAX fails. */
enum { PIECES_MAX = 57, PIECE_GROWS = 2500, PIECE_BYTES_MAX = 1 + PIECES_MAX * PIECE_GROWS };
static _Atomic unsigned pieces_begun, pieces_ended;
struct pieces {
    unsigned count, left;
};

static bool
one_piece(struct http_answer *answer, void *arg)
{
    struct pieces *p = arg;
    unsigned n = p->count - p->left--;

    ck_assert_uint_eq(answer->size, 0);
    if (n == PIECES_MAX)
        answer->is_short = true;
    char *piece = malloc(PIECE_BYTES_MAX);
    memset(piece, 'a' + n % 26, PIECE_BYTES_MAX);
    http_put(answer, piece, 1 + n * PIECE_GROWS);
    free(piece);
    return p->left > 0;
}

static void
end_of_pieces(void *arg)
{
    pieces_ended++;
    free(arg);
}

static void
in_pieces(const struct http_request *req, struct http_answer *answer)
{
    struct pieces *p = malloc(sizeof *p);

    p->count = p->left = (unsigned)atoi(http_query(req, "count"));
    http_printf(answer, "begin ");
    answer->more = one_piece;
    answer->end = end_of_pieces;
    answer->arg = p;
    answer->arg_bytes = sizeof *p;
    pieces_begun++;
}

static void
refuse(const struct http_request *req, struct http_answer *answer)
{
    http_printf(answer, "half an answer");
    http_fail(answer, 409, "no \"%s\"", req->rest);
}

static void
wait_at_gate(const struct http_request *req, struct http_answer *answer)
{
    (void)req;
    synchronize_rcu(); /* would hang in a read section, and crash in an unregistered thread */
    pthread_mutex_lock(&gate_lock);
    at_gate++;
    pthread_cond_broadcast(&gate_changed);
    while (!gate_is_open)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
    http_printf(answer, "waited");
}

static void
pause_long(const struct http_request *req, struct http_answer *answer)
{
    bool has_slept = http_pause(1);

    (void)req;
    pthread_mutex_lock(&gate_lock);
    at_gate++;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
    http_printf(answer, has_slept && !http_pause(600000) ? "woken" : "not woken");
}

enum { WAITERS = 8 };
static struct http_threads waiters = {.max = WAITERS}, pausers = {.max = 1};

static const struct http_route routes[] = {
    {.method = "GET", .path = "/public", .handle = say, .is_public = true},
    {.method = "GET", .path = "/say/*", .handle = say},
    {.method = "PUT", .path = "/echo", .handle = echo, .body_max = 1000},
    {.method = "GET", .path = "/quote", .handle = quote},
    {.method = "GET", .path = "/too-long", .handle = too_long},
    {.method = "GET", .path = "/long", .handle = be_long, .is_public = true},
    {.method = "GET", .path = "/pieces", .handle = in_pieces, .is_public = true},
    {.method = "POST", .path = "/refuse/*", .handle = refuse},
    {.method = "GET", .path = "/wait", .handle = wait_at_gate, .threads = &waiters},
    {.method = "GET", .path = "/pause", .handle = pause_long, .threads = &pausers},
    {0},
};

/* True if libmicrohttpd is loaded. A process without an HTTP listener has neither the library nor its
 * dependencies. */
static bool
is_library_there(void)
{
    void *library = dlopen(MICROHTTPD_SONAME, RTLD_NOW | RTLD_NOLOAD);

    if (library)
        dlclose(library);
    return library != NULL;
}

static void
setup(void)
{
    ck_assert(!is_library_there());
    ck_assert_ptr_nonnull(mkdtemp(dir));
    snprintf(path, sizeof path, "%s/socket", dir);
    umask(0);
    ck_assert_int_eq(http_listen_unix(path, routes), 0);
    ck_assert(is_library_there());
    ck_assert_int_eq(http_listen_tcp("127.0.0.1:0", routes, &port), 0);
}

static void
teardown(void)
{
    ck_assert(http_stop());
    ck_assert_int_eq(rmdir(dir), 0); /* the socket's name has gone */
}

/* ---- a client -------------------------------------------------------------------------------- */

static int
dial_unix(void)
{
    struct sockaddr_un a = {.sun_family = AF_UNIX};
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);

    strcpy(a.sun_path, path);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

/* From 127.0.0.`host`. */
static int
dial_tcp_from(unsigned host)
{
    struct sockaddr_in a = {
        .sin_family = AF_INET, .sin_port = htons(port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    struct sockaddr_in from = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(0x7f000000u + host)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    ck_assert_int_eq(bind(fd, (struct sockaddr *)&from, sizeof from), 0);
    ck_assert_int_eq(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static int
dial_tcp(void)
{
    return dial_tcp_from(1);
}

static void
send_text(int fd, const char *text)
{
    size_t len = strlen(text);

    /* The other side may have closed: its answer is read all the same. */
    if (send(fd, text, len, MSG_NOSIGNAL) < 0)
        ck_assert(errno == EPIPE || errno == ECONNRESET);
}

static char answer[1 << 16];

/* Until the other side closes. */
static const char *
receive(int fd)
{
    size_t size = 0;
    ssize_t n;

    while ((n = recv(fd, answer + size, sizeof answer - 1 - size, 0)) > 0)
        size += (size_t)n;
    answer[size] = '\0';
    close(fd);
    return answer;
}

static const char *
ask_over(int fd, const char *request)
{
    send_text(fd, request);
    return receive(fd);
}

#define END "\r\nHost: x\r\nConnection: close\r\n"
#define ASK(line) ask_over(dial_unix(), line " HTTP/1.1" END "\r\n")

static void
expect(const char *text, unsigned status, const char *part)
{
    unsigned got = 0;

    ck_assert_msg(sscanf(text, "HTTP/1.1 %u", &got) == 1 && got == status && strstr(text, part),
                  "%u with '%s' was expected, and this came: %.600s", status, part, text);
}

/* ---- tests ----------------------------------------------------------------------------------- */

START_TEST(numbers_are_as_printf_has_them)
{
    const uint64_t all[] = {0, 1, 9, 10, 999, 1000, 1001, 123456789, 1000000000, UINT64_MAX};
    struct http_answer a = {0};

    for (unsigned i = 0; i < sizeof all / sizeof all[0]; i++) {
        char wanted[128];

        a.size = 0;
        http_put_number(&a, all[i], 0);
        http_put_text(&a, " ");
        http_put_number(&a, all[i], 3);
        http_put_text(&a, " ");
        http_put_number(&a, all[i], 19);
        http_put_again(&a, 0, a.size);
        int n = snprintf(wanted, sizeof wanted, "%ju %ju.%03ju %ju.%019ju", all[i], all[i] / 1000,
                         all[i] % 1000, all[i] / UINT64_C(10000000000000000000),
                         all[i] % UINT64_C(10000000000000000000));
        ck_assert_uint_eq(a.size, 2 * (size_t)n);
        ck_assert_mem_eq(a.bytes, wanted, (size_t)n);
        ck_assert_mem_eq(a.bytes + n, wanted, (size_t)n);
    }
    free(a.bytes);
}
END_TEST

START_TEST(a_path_and_its_query)
{
    struct stat st;

    expect(ASK("GET /public"), 200, "GET /public rest= word=(none)");
    expect(ASK("GET /say/some%20thing?word=a%26b&x"), 200, "rest=some thing word=a&b");
    expect(ASK("GET /say/?word"), 200, "rest= word=");
    expect(ASK("GET /public"), 200, "Content-Type: text/plain");
    ck_assert_int_eq(stat(path, &st), 0);
    ck_assert_uint_eq(st.st_mode & 0777, 0600);
}
END_TEST

START_TEST(head_has_no_body)
{
    const char *text = ASK("HEAD /public");

    expect(text, 200, "Content-Length: 29");
    ck_assert_str_eq(strstr(text, "\r\n\r\n"), "\r\n\r\n");
}
END_TEST

START_TEST(what_is_not_there)
{
    expect(ASK("GET /nothing"), 404, "{\"error\": \"/nothing: there is no such thing here\"}");
    expect(ASK("GET /public/more"), 404, "error");
    expect(ASK("GET /"), 404, "error");
    expect(ASK("DELETE /public"), 405, "error");
    expect(ASK("BREW /public"), 405, "error");
}
END_TEST

START_TEST(errors_replace_what_was_said)
{
    const char *text = ASK("POST /refuse/this");

    expect(text, 409, "{\"error\": \"no \\\"this\\\"\"}");
    ck_assert_ptr_null(strstr(text, "half"));
    expect(ASK("GET /too-long"), 500, "does not fit");
}
END_TEST

START_TEST(strings_are_json)
{
    expect(ASK("GET /quote?text=a%22b%5c%01%7f%c3%a4%f0%9f%98%80"), 200,
           "\r\n\r\n\"a\\\"b\\\\\\u0001\\u007f\xc3\xa4\xf0\x9f\x98\x80\"");
    expect(ASK("GET /quote?text=%ff%c0%80%ed%a0%80%e2%82"), 200,
           "\"\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\"");
}
END_TEST

START_TEST(bodies)
{
    expect(ASK("PUT /echo"), 200, "Content-Length: 0");
    expect(ask_over(dial_unix(), "PUT /echo HTTP/1.1" END "Content-Length: 5\r\n\r\nhello"), 200,
           "\r\n\r\nhello");
    expect(ask_over(dial_unix(), "PUT /echo HTTP/1.1" END "Transfer-Encoding: chunked\r\n\r\n"
                                 "3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"),
           200, "\r\n\r\nabcde");
    expect(ask_over(dial_unix(), "PUT /echo HTTP/1.1" END "Content-Length: 1001\r\n\r\n"), 413,
           "1000 bytes at most");
    expect(ask_over(dial_unix(), "PUT /echo HTTP/1.1" END "Content-Length: 99999999999999999999\r\n\r\n"),
           413, "");
    expect(ask_over(dial_unix(), "GET /public HTTP/1.1" END "Content-Length: 1\r\n\r\nx"), 413,
           "0 bytes at most");
}
END_TEST

START_TEST(a_body_without_end_is_not_read_to_its_end)
{
    int fd = dial_unix();
    unsigned sent = 0;
    char piece[4096 + 16];

    send_text(fd, "PUT /echo HTTP/1.1" END "Transfer-Encoding: chunked\r\n\r\n");
    int len = snprintf(piece, sizeof piece, "%x\r\n%4096s\r\n", 4096, "x");
    while (send(fd, piece, (size_t)len, MSG_NOSIGNAL) == len) /* ends: the other side closes */
        sent++;
    ck_assert_uint_lt(sent, 1000);
    close(fd);
}
END_TEST

START_TEST(garbage_is_no_request)
{
    char big[HTTP_CONNECTIONS * 1024 + 128];

    memset(big, 'a', sizeof big);
    snprintf(big, 32, "GET /public HTTP/1.1\r\nX: ");
    big[strlen(big)] = 'a';
    strcpy(big + sizeof big - 5, "\r\n\r\n");
    expect(ask_over(dial_unix(), big), 431, "");
    (void)ask_over(dial_unix(), "\r\n\r\n\x16\x03\x01\x02\x00\x01\x00\r\n\r\n");
    (void)ask_over(dial_unix(), "GET\r\n\r\n");
    (void)ask_over(dial_unix(), "GET /public HTTP/9.9" END "\r\n");
    (void)ask_over(dial_unix(),
                   "PUT /echo HTTP/1.1" END "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n");
    expect(ASK("GET /public"), 200, "GET /public");
}
END_TEST

START_TEST(an_address_has_the_public_paths_alone)
{
    expect(ask_over(dial_tcp(), "GET /public HTTP/1.1" END "\r\n"), 200, "GET /public");
    expect(ask_over(dial_tcp(), "GET /say/x HTTP/1.1" END "\r\n"), 404, "no such thing");
    expect(ask_over(dial_tcp(), "PUT /echo HTTP/1.1" END "Content-Length: 1\r\n\r\nx"), 404, "");
}
END_TEST

START_TEST(addresses_that_are_none)
{
    const char *const bad[] = {
        "",      "9090",           ":9090",   "localhost",    "127.0.0.1:", "127.0.0.1:70000",
        "::1:9", "127.0.0.1:http", "[]:9090", "127.0.0.1:-1", "[::1]9090"};

    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        ck_assert_msg(http_listen_tcp(bad[i], routes, NULL) == -EINVAL, "%s", bad[i]);
    ck_assert_int_eq(http_listen_unix(path, routes), -EADDRINUSE);
    ck_assert_int_eq(http_listen_unix("/nonexistent/socket", routes), -ENOENT);
}
END_TEST

/* More connections than the limit, all silent in the middle of a request. */
START_TEST(silent_connections_make_room)
{
    int fds[3 * HTTP_CONNECTIONS];
    const int count = sizeof fds / sizeof fds[0];

    for (int i = 0; i < count; i++) {
        fds[i] = dial_tcp();
        send_text(fds[i], "GET /public HT");
    }
    expect(ask_over(dial_tcp(), "GET /public HTTP/1.1" END "\r\n"), 200, "GET /public");
    for (int i = 0; i < count; i++)
        close(fds[i]);
}
END_TEST

/* An address with a single connection keeps that connection, however many connections come from another
 * address. */
START_TEST(one_address_does_not_push_out_another)
{
    int fds[3 * HTTP_CONNECTIONS], one = dial_tcp();
    const int count = sizeof fds / sizeof fds[0];

    send_text(one, "GET /public HT");
    for (int i = 0; i < count; i++) {
        fds[i] = dial_tcp_from(2);
        send_text(fds[i], "GET /public HT");
    }
    /* The last request is answered, so all connections before have been counted. */
    expect(ask_over(dial_tcp_from(2), "GET /public HTTP/1.1" END "\r\n"), 200, "GET /public");
    expect(ask_over(one, "TP/1.1" END "\r\n"), 200, "GET /public");
    for (int i = 0; i < count; i++)
        close(fds[i]);
}
END_TEST

/* Asks for a large answer, and reads no more than its beginning. */
static int
ask_and_stop(unsigned host)
{
    int fd = dial_tcp_from(host);
    char first[13] = "";

    send_text(fd, "GET /long HTTP/1.1" END "\r\n");
    ck_assert_int_eq(recv(fd, first, 12, MSG_WAITALL), 12);
    ck_assert_str_eq(first, "HTTP/1.1 200");
    return fd;
}

/* The rest of the answer comes. */
static bool
is_whole(int fd)
{
    static char part[1 << 20];
    size_t size = 0;
    ssize_t n;

    while ((n = recv(fd, part, sizeof part, 0)) > 0)
        size += (size_t)n;
    close(fd);
    return size > LONG_BYTES;
}

/* Answers that clients ask for and do not read: only so many bytes are kept. The only client of an address
 * keeps its answer. */
START_TEST(unread_answers_are_bounded)
{
    int fds[HTTP_CONNECTIONS - 4], one = ask_and_stop(3);
    const int count = sizeof fds / sizeof fds[0];
    int whole = 0;

    for (int i = 0; i < count; i++)
        fds[i] = ask_and_stop(2);
    ck_assert(is_whole(one));
    for (int i = 0; i < count; i++)
        whole += is_whole(fds[i]);
    ck_assert_int_ge(whole, 1);
    ck_assert_int_lt(whole, HTTP_ANSWERS_MAX / LONG_BYTES);
    ck_assert(is_whole(ask_and_stop(2)));
}
END_TEST

/* Joins the body of an answer in chunks, in place. The length; -1: the body does not end as it should. */
static long
join_chunks(char *bytes, size_t size)
{
    char *from = memmem(bytes, size, "\r\n\r\n", 4), *to = bytes;

    ck_assert_ptr_nonnull(from);
    for (from += 4; from < bytes + size;) {
        size_t length = strtoul(from, &from, 16);

        from += 2;
        if (!length) {
            *to = '\0';
            return to - bytes;
        }
        if (length > (size_t)(bytes + size - from))
            return -1;
        memmove(to, from, length);
        to += length;
        from += length + 2;
    }
    return -1;
}

static long
ask_for_pieces(int fd, unsigned count, char *all, size_t room)
{
    char text[128];
    size_t size = 0;
    ssize_t n;

    snprintf(text, sizeof text, "GET /pieces?count=%u HTTP/1.1" END "\r\n", count);
    send_text(fd, text);
    while ((n = recv(fd, all + size, room - 1 - size, 0)) > 0)
        size += (size_t)n;
    all[size] = '\0';
    close(fd);
    ck_assert_ptr_nonnull(strstr(all, "Transfer-Encoding: chunked"));
    return join_chunks(all, size);
}

START_TEST(answers_in_pieces)
{
    enum { ROOM = 32 << 20 };
    char *all = malloc(ROOM);

    ck_assert_ptr_nonnull(all);
    for (unsigned count = 1; count <= PIECES_MAX; count = count * 7 + 1) {
        size_t at = 6;
        long size = ask_for_pieces(count % 2 ? dial_tcp() : dial_unix(), count, all, ROOM);
        ck_assert_int_eq(size, 6 + count + PIECE_GROWS * (long)count * (count - 1) / 2);
        ck_assert_mem_eq(all, "begin ", 6);
        for (unsigned n = 0; n < count; at += 1 + n * PIECE_GROWS, n++) {
            size_t same = 0;

            while (all[at + same] == (char)('a' + n % 26))
                same++;
            ck_assert_uint_eq(same, 1 + n * PIECE_GROWS);
        }
    }
    ck_assert_int_eq(ask_for_pieces(dial_unix(), PIECES_MAX + 1, all, ROOM), -1); /* fails in the middle */
    const char *head = ASK("HEAD /pieces?count=3");
    expect(head, 200, "\r\n\r\n");
    free(all);
    int gone = dial_tcp(); /* a client that leaves in the middle */
    send_text(gone, "GET /pieces?count=57 HTTP/1.1\r\nHost: x\r\n\r\n");
    ck_assert_int_gt(recv(gone, answer, 1, 0), 0);
    close(gone);
    ck_assert(http_stop());
    ck_assert_uint_eq(pieces_ended, pieces_begun);
    ck_assert_uint_eq(pieces_begun, 6); /* 1, 8, 57, 58, and the last two */
    ck_assert_int_eq(http_listen_unix(path, routes), 0);
}
END_TEST

static void
wait_for_gate(unsigned wanted)
{
    pthread_mutex_lock(&gate_lock);
    while (at_gate < wanted)
        pthread_cond_wait(&gate_changed, &gate_lock);
    pthread_mutex_unlock(&gate_lock);
}

static void
open_gate(void)
{
    pthread_mutex_lock(&gate_lock);
    gate_is_open = true;
    pthread_cond_broadcast(&gate_changed);
    pthread_mutex_unlock(&gate_lock);
}

START_TEST(handlers_that_block_hold_nobody_up)
{
    int fds[WAITERS], gone = dial_unix();

    send_text(gone, "GET /wait HTTP/1.1" END "\r\n");
    wait_for_gate(1);
    close(gone); /* its handler goes on */
    for (unsigned i = 1; i < WAITERS; i++) {
        fds[i] = dial_unix();
        send_text(fds[i], "GET /wait HTTP/1.1" END "\r\n");
    }
    wait_for_gate(WAITERS);
    expect(ASK("GET /wait"), 503, "too many such requests");
    int other = dial_unix(); /* another row has its own threads */
    send_text(other, "GET /pause HTTP/1.1" END "\r\n");
    wait_for_gate(WAITERS + 1);
    expect(ASK("GET /public"), 200, "GET /public");
    open_gate();
    for (unsigned i = 1; i < WAITERS; i++)
        expect(receive(fds[i]), 200, "waited");
    ck_assert(http_stop());
    expect(receive(other), 200, "woken");
    ck_assert_int_eq(http_listen_unix(path, routes), 0);
}
END_TEST

static void *
open_gate_from_thread(void *arg)
{
    wait_for_gate(1);
    open_gate();
    return arg;
}

START_TEST(the_end_waits_for_handlers)
{
    pthread_t opener;
    int fd = dial_unix();

    send_text(fd, "GET /wait HTTP/1.1" END "\r\n");
    wait_for_gate(1);
    ck_assert_int_eq(pthread_create(&opener, NULL, open_gate_from_thread, NULL), 0);
    ck_assert(http_stop());
    pthread_join(opener, NULL);
    close(fd);
    ck_assert_int_eq(access(path, F_OK), -1);
    ck_assert_int_eq(http_listen_unix(path, routes), 0); /* listening can begin anew */
    expect(ASK("GET /public"), 200, "GET /public");
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("http");
    TCase *t = tcase_create("http");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, numbers_are_as_printf_has_them);
    tcase_add_test(t, a_path_and_its_query);
    tcase_add_test(t, head_has_no_body);
    tcase_add_test(t, what_is_not_there);
    tcase_add_test(t, errors_replace_what_was_said);
    tcase_add_test(t, strings_are_json);
    tcase_add_test(t, bodies);
    tcase_add_test(t, a_body_without_end_is_not_read_to_its_end);
    tcase_add_test(t, garbage_is_no_request);
    tcase_add_test(t, an_address_has_the_public_paths_alone);
    tcase_add_test(t, addresses_that_are_none);
    tcase_add_test(t, silent_connections_make_room);
    tcase_add_test(t, one_address_does_not_push_out_another);
    tcase_add_test(t, unread_answers_are_bounded);
    tcase_add_test(t, answers_in_pieces);
    tcase_add_test(t, handlers_that_block_hold_nobody_up);
    tcase_add_test(t, the_end_waits_for_handlers);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
