/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The echo server with TLS, met by this transport's dialler. */
#include "rpc/transport/dial.h"
#include "rpc/transport/test-tls-server.h"

static struct dialler dialler;
static sem_t dial_told, reply_told, closed_told;
static char failure[384], peer_name[64];
static _Atomic(struct conn *) mine;
static struct iobuf *large;
static size_t reply_bytes;

static int
own_accepted(struct conn *c, void *arg)
{
    (void)arg;
    atomic_store(&mine, conn_ref(c));
    conn_set_trusted(c);
    ck_assert_int_eq(conn_send(c, "hello", 5, NULL, NULL, 0), 0); /* waits for the handshake */
    sem_post(&dial_told);
    return 0;
}

static void
own_record(struct conn *c, struct record *r, void *arg)
{
    (void)arg;
    snprintf(peer_name, sizeof peer_name, "%s", conn_tls_name(c));
    reply_bytes = r->bytes;
    record_release(r);
    sem_post(&reply_told);
}

static void
own_closed(struct conn *c, void *arg)
{
    (void)arg;
    conn_tls_failure(c, failure, sizeof failure);
    sem_post(&closed_told);
}

static void
own_failed(struct dialler *d, int err)
{
    (void)d;
    ck_abort_msg("dial: %s", strerror(-err));
}

static const struct transport_ops own_ops = {
    .accepted = own_accepted, .record = own_record, .closed = own_closed};

static void
wait_told(sem_t *what)
{
    while (sem_wait(what) && errno == EINTR)
        ;
}

static void
dial_with(struct tls_config *config, struct listener *to)
{
    sem_init(&dial_told, 0, 0);
    sem_init(&reply_told, 0, 0);
    sem_init(&closed_told, 0, 0);
    dialler_init(&dialler, &own_ops, own_failed, NULL);
    dialler_start(&dialler,
                  &(struct dial_target){.host = "127.0.0.1", .port = listener_port(to), .tls = config});
    wait_told(&dial_told);
}

static void
hang_up(void)
{
    conn_close(mine);
    wait_told(&closed_told);
    conn_unref(mine);
    dialler_fini(&dialler);
}

START_TEST(the_dialler_shakes_hands_and_exchanges_records)
{
    struct tls_config *config = config_of("server", "ca.pem", NULL);

    dial_with(config, listener);
    wait_told(&reply_told);
    ck_assert_uint_eq(reply_bytes, 5);
    ck_assert_str_eq(peer_name, "the server");
    for (size_t bytes = 1; bytes < 20000000; bytes = bytes * 7 + 1) {
        large = iobuf_get(bytes);
        memset(large->bytes, 'x', bytes);
        ck_assert_int_eq(conn_send(mine, "", 0, large, &(struct iovec){large->bytes, bytes}, 1), 0);
        wait_told(&reply_told);
        ck_assert_uint_eq(reply_bytes, bytes);
    }
    hang_up();
    ck_assert_str_eq(failure, "");
    tls_config_unref(config);
}
END_TEST

static void
dial_fails(struct tls_config *config, struct listener *to, const char *words)
{
    dial_with(config, to);
    wait_told(&closed_told);
    ck_assert_msg(strstr(failure, words) != NULL, "%s", failure);
    conn_unref(mine);
    dialler_fini(&dialler);
}

/* With ssl-check-host. */
static const struct {
    const char *hosts, *name, *called, *failure; /* `failure` NULL: accepted */
} host_cases[] = {
    {"DNS:h1,IP:127.0.0.1", "the server", "h1", NULL},
    {"DNS:h1,IP:127.0.0.1", "the server", "127.0.0.1", NULL},
    {"DNS:h1,IP:127.0.0.1", "the server", "h2", "(not h2, ssl-check-host)"},
    {"DNS:h1,IP:127.0.0.1", "the server", "127.0.0.2", "(not 127.0.0.2, ssl-check-host)"},
    {NULL, "h3", "h3", NULL}, /* as a certificate of stock */
    {NULL, "h3", "h4", "CN=h3"},
};
enum { HOST_CASES = sizeof host_cases / sizeof host_cases[0] };

START_TEST(the_dialler_compares_the_host_with_the_certificate)
{
    const struct wish wish = {.name = host_cases[_i].name, .hosts = host_cases[_i].hosts};
    struct identity id = make_identity(&wish, &ca);

    write_identity(&server_id, "client");
    write_identity(&id, "server");
    struct tls_config *config = tls_config_new(&(struct tls_files){.own_cert = in_dir("client.pem"),
                                                                   .private_key = in_dir("client.key"),
                                                                   .ca_list = in_dir("ca.pem"),
                                                                   .host = host_cases[_i].called,
                                                                   .depth = 1});

    if (host_cases[_i].failure) {
        dial_fails(config, listener, host_cases[_i].failure);
    } else {
        dial_with(config, listener);
        wait_told(&reply_told);
        hang_up();
        ck_assert_str_eq(failure, "");
    }
    tls_config_unref(config);
    identity_free(&id);
}
END_TEST

START_TEST(the_dialler_says_which_certificate_of_the_server_is_bad)
{
    const struct fault *f = &faults[_i];
    struct tls_config *config = config_of("client", "ca.pem", NULL);

    write_identity(&server_id, "client");
    write_fault(f, "server");
    dial_fails(config, listener, f->word);
    ck_assert_ptr_nonnull(strstr(failure, f->wish.name));
    tls_config_unref(config);
}
END_TEST

START_TEST(the_dialler_says_why_the_server_refuses)
{
    struct tls_config *config = config_of("bad", "ca.pem", NULL);

    write_fault(&faults[0], "bad");
    dial_fails(config, listener, "the peer refuses us (CN=expired): our certificate has expired");
    write_fault(&faults[2], "bad");
    dial_fails(config, listener, "authority is not on the peer's list");
    dial_fails(config, echo.tcp_listener, "or the peer speaks without TLS");
    tls_config_unref(config);
}
END_TEST

START_TEST(a_plain_dialler_learns_that_the_peer_demands_tls)
{
    dial_fails(NULL, listener, "the peer demands TLS");
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("tls-dial");
    TCase *own = tcase_create("own");

    tcase_add_checked_fixture(own, setup, teardown);
    tcase_set_timeout(own, 120);
    tcase_add_test(own, the_dialler_shakes_hands_and_exchanges_records);
    tcase_add_loop_test(own, the_dialler_compares_the_host_with_the_certificate, 0, HOST_CASES);
    tcase_add_loop_test(own, the_dialler_says_which_certificate_of_the_server_is_bad, 0, FAULTS);
    tcase_add_test(own, the_dialler_says_why_the_server_refuses);
    tcase_add_test(own, a_plain_dialler_learns_that_the_peer_demands_tls);
    suite_add_tcase(s, own);
    return s;
}

#include "base/test-main.h"
