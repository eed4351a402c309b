/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The echo server with TLS, met by OpenSSL's own client and by peers that send half of a handshake. */
#include "rpc/transport/test-tls-server.h"

/* ---- OpenSSL's client ------------------------------------------------------------------------ */

struct peer {
    SSL_CTX *context;
    SSL *ssl;
    BIO *in, *out; /* in memory: the test sends the bytes */
    int fd;
};

static struct peer
peer_new(const char *name, const char *trusts, int version)
{
    struct peer p = {.context = SSL_CTX_new(TLS_client_method()), .fd = dial_tcp(listener_port(listener))};
    char file[64];

    SSL_CTX_set_security_level(p.context, 0);
    SSL_CTX_set_min_proto_version(p.context, version);
    SSL_CTX_set_max_proto_version(p.context, version);
    if (name) {
        snprintf(file, sizeof file, "%s.pem", name);
        ck_assert_int_eq(SSL_CTX_use_certificate_chain_file(p.context, in_dir(file)), 1);
        snprintf(file, sizeof file, "%s.key", name);
        ck_assert_int_eq(SSL_CTX_use_PrivateKey_file(p.context, in_dir(file), SSL_FILETYPE_PEM), 1);
    }
    ck_assert_int_eq(SSL_CTX_load_verify_file(p.context, in_dir(trusts)), 1);
    SSL_CTX_set_verify(p.context, SSL_VERIFY_PEER, NULL);
    p.ssl = SSL_new(p.context);
    p.in = BIO_new(BIO_s_mem());
    p.out = BIO_new(BIO_s_mem());
    SSL_set_bio(p.ssl, p.in, p.out);
    SSL_set_connect_state(p.ssl);
    return p;
}

static void
peer_free(struct peer *p)
{
    SSL_free(p->ssl);
    SSL_CTX_free(p->context);
    close(p->fd);
}

/* Sends the bytes that OpenSSL has for the peer, `step` bytes at a time. */
static bool
peer_flush(struct peer *p, size_t step)
{
    char bytes[4096];
    int n;

    while ((n = BIO_read(p->out, bytes, (int)(step < sizeof bytes ? step : sizeof bytes))) > 0)
        if (!write_all(p->fd, bytes, (size_t)n))
            return false;
    return true;
}

/* Takes the bytes that have come. False: the end. */
static bool
peer_fill(struct peer *p)
{
    char bytes[16384];
    ssize_t n = recv(p->fd, bytes, sizeof bytes, 0);

    if (n > 0)
        BIO_write(p->in, bytes, (int)n);
    return n > 0;
}

static bool
peer_shake(struct peer *p, size_t step)
{
    int done;

    while ((done = SSL_do_handshake(p->ssl)) != 1) {
        bool waits = SSL_get_error(p->ssl, done) == SSL_ERROR_WANT_READ;

        if (!peer_flush(p, step) || !waits || !peer_fill(p))
            return false;
    }
    return peer_flush(p, step);
}

static bool
peer_write(struct peer *p, const char *from, size_t bytes, size_t step)
{
    size_t done;

    for (size_t at = 0; at < bytes; at += done)
        if (SSL_write_ex(p->ssl, from + at, bytes - at, &done) != 1 || !peer_flush(p, step))
            return false;
    return true;
}

static bool
peer_read(struct peer *p, char *to, size_t bytes)
{
    size_t n;

    for (size_t at = 0; at < bytes;) {
        if (SSL_read_ex(p->ssl, to + at, bytes - at, &n) == 1)
            at += n;
        else if (SSL_get_error(p->ssl, 0) != SSL_ERROR_WANT_READ || !peer_fill(p))
            return false;
    }
    return true;
}

static bool
peer_round_trip(struct peer *p, uint32_t word, size_t bytes, unsigned seed, size_t step)
{
    char *r = make_record(word, bytes, seed), *got = malloc(4 + bytes);
    bool is_right =
        peer_write(p, r, 4 + bytes, step) && peer_read(p, got, 4 + bytes) && memcmp(r, got, 4 + bytes) == 0;

    free(r);
    free(got);
    return is_right;
}

/* The server serves other peers. */
static void
others_are_served(void)
{
    struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);

    ck_assert(peer_shake(&p, SIZE_MAX));
    ck_assert(peer_round_trip(&p, 0, 100, 3, SIZE_MAX));
    peer_free(&p);
}

/* ---- connections that work ------------------------------------------------------------------- */

START_TEST(records_of_all_sizes_come_back)
{
    static const size_t sizes[] = {1, 3, 4095, 16380, 16384, 16385, 65536, 131072, 1u << 20, 5000000};
    struct peer p = peer_new("server", "ca.pem", _i ? TLS1_3_VERSION : TLS1_2_VERSION);

    ck_assert(peer_shake(&p, SIZE_MAX));
    for (unsigned i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        ck_assert(peer_round_trip(&p, 0, sizes[i], i, SIZE_MAX));
        ck_assert(sizes[i] < 1000 || peer_round_trip(&p, DIFFER, sizes[i], i, SIZE_MAX));
    }
    peer_free(&p);
}
END_TEST

START_TEST(a_record_in_pieces_of_one_byte_comes_back)
{
    struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);

    ck_assert(peer_shake(&p, 1));
    ck_assert(peer_round_trip(&p, 0, 16384, 1, 1));
    peer_free(&p);
}
END_TEST

/* The server's socket is full while replies wait: the server sends on when the client reads. */
START_TEST(replies_to_a_slow_reader_arrive)
{
    struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);
    char *one = make_record(AMPLIFY, 64, 1), *got = malloc(AMPLE + 4);

    ck_assert(peer_shake(&p, SIZE_MAX));
    for (unsigned i = 0; i < 20; i++)
        ck_assert(peer_write(&p, one, 68, SIZE_MAX));
    usleep(200000);
    for (unsigned i = 0; i < 20; i++) {
        ck_assert(peer_read(&p, got, AMPLE + 4));
        for (unsigned k = 0; k < AMPLE; k += 997)
            ck_assert_int_eq(got[4 + k], 'a');
    }
    free(one);
    free(got);
    peer_free(&p);
}
END_TEST

START_TEST(many_key_updates_are_answered)
{
    struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);

    ck_assert(peer_shake(&p, SIZE_MAX));
    for (unsigned i = 0; i < 20; i++) {
        ck_assert_int_eq(SSL_key_update(p.ssl, SSL_KEY_UPDATE_REQUESTED), 1);
        ck_assert(peer_round_trip(&p, 0, 100, i, SIZE_MAX));
    }
    peer_free(&p);
}
END_TEST

START_TEST(a_port_with_both_kinds_serves_plain_peers)
{
    allows_plain = true;
    int fd = dial_tcp(listener_port(listener));

    round_trip(fd, 0, 100, 1);
    round_trip(fd, 0, 300000, 2);
    others_are_served();
    round_trip(fd, 0, 100, 3);
    close(fd);
}
END_TEST

START_TEST(replaced_files_count_for_new_connections)
{
    static const struct wish renewed = {.name = "the renewed server"};
    struct peer old = peer_new("server", "ca.pem", TLS1_3_VERSION);
    struct identity fresh = make_identity(&renewed, &ca);
    char name[64] = "";

    ck_assert(peer_shake(&old, SIZE_MAX));
    write_identity(&fresh, "server");
    struct peer p = peer_new("ca", "ca.pem", TLS1_3_VERSION);
    ck_assert(peer_shake(&p, SIZE_MAX));
    X509_NAME_get_text_by_NID(X509_get_subject_name(SSL_get0_peer_certificate(p.ssl)), NID_commonName, name,
                              sizeof name);
    ck_assert_str_eq(name, "the renewed server");
    ck_assert(peer_round_trip(&old, 0, 5000, 1, SIZE_MAX));
    peer_free(&p);
    /* half of a change: the former files serve on */
    ck_assert_int_eq(unlink(in_dir("server.pem")), 0);
    p = peer_new("ca", "ca.pem", TLS1_3_VERSION);
    ck_assert(peer_shake(&p, SIZE_MAX));
    ck_assert(peer_round_trip(&p, 0, 100, 1, SIZE_MAX));
    peer_free(&p);
    peer_free(&old);
    identity_free(&fresh);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static bool
peer_is_served(const char *name, const char *trusts, int version)
{
    struct peer p = peer_new(name, trusts, version);
    bool is_served = peer_shake(&p, SIZE_MAX) && peer_round_trip(&p, 0, 100, 1, SIZE_MAX);

    peer_free(&p);
    return is_served;
}

START_TEST(a_client_with_a_bad_certificate_is_refused)
{
    const struct fault *f = &faults[_i];
    bool is_for_clients = f->wish.usage && strcmp(f->wish.usage, "clientAuth") == 0;

    write_fault(f, "bad");
    ck_assert_int_eq(peer_is_served("bad", "ca.pem", TLS1_3_VERSION), is_for_clients);
    ck_assert_int_eq(peer_is_served("bad", "ca.pem", TLS1_2_VERSION), is_for_clients);
    others_are_served();
}
END_TEST

START_TEST(a_client_without_a_certificate_or_with_an_old_version_is_refused)
{
    ck_assert(!peer_is_served(NULL, "ca.pem", TLS1_3_VERSION));
    ck_assert(!peer_is_served(NULL, "ca.pem", TLS1_2_VERSION));
    ck_assert(!peer_is_served("server", "ca.pem", TLS1_1_VERSION));
    ck_assert(!peer_is_served("server", "ca.pem", TLS1_VERSION));
    others_are_served();
}
END_TEST

START_TEST(a_version_below_the_minimum_is_refused)
{
    char cert[128], key[128];

    snprintf(cert, sizeof cert, "%s", in_dir("server.pem"));
    snprintf(key, sizeof key, "%s", in_dir("server.key"));
    struct tls_config *old = serving;
    serving = tls_config_new(&(struct tls_files){
        .own_cert = cert, .private_key = key, .ca_list = in_dir("ca.pem"), .depth = 1, .min_version = 1});
    ck_assert(!tls_config_is_same(old, serving));
    ck_assert_str_eq(tls_versions[1], "1.3");
    ck_assert(!peer_is_served("server", "ca.pem", TLS1_2_VERSION));
    ck_assert(peer_is_served("server", "ca.pem", TLS1_3_VERSION));
    tls_config_unref(serving);
    serving = old;
    ck_assert(peer_is_served("server", "ca.pem", TLS1_2_VERSION));
    others_are_served();
}
END_TEST

/* Replaces the key half a second after the certificate. */
static void *
replace_key_later(void *arg)
{
    usleep(500000);
    must(rename(arg, in_dir("pair.key")) == 0);
    return NULL;
}

START_TEST(the_first_load_waits_for_the_second_file_of_a_new_pair)
{
    struct reason why = {""};
    pthread_t thread;
    char new_key[128];

    write_identity(&server_id, "pair");
    ck_assert_int_eq(link(in_dir("ca.key"), in_dir("new.key")), 0);
    /* the new certificate, and the old key */
    ck_assert_int_eq(rename(in_dir("ca.pem"), in_dir("pair.pem")), 0);
    write_identity(&ca, "ca");
    snprintf(new_key, sizeof new_key, "%s", in_dir("new.key"));
    ck_assert_int_eq(pthread_create(&thread, NULL, replace_key_later, new_key), 0);
    struct tls_config *c = config_of("pair", "ca.pem", NULL);
    ck_assert_msg(tls_config_load(c, &why) == 0, "%s", why.text);
    pthread_join(thread, NULL);
    tls_config_unref(c);
}
END_TEST

START_TEST(a_server_certificate_is_good_for_a_client)
{
    static const struct wish node = {.name = "node", .usage = "serverAuth"};
    struct identity i = make_identity(&node, &ca);

    write_identity(&i, "node");
    ck_assert(peer_is_served("node", "ca.pem", TLS1_3_VERSION));
    identity_free(&i);
}
END_TEST

/* Serves with another certificate, whose file has the intermediate too, and at most `depth` of these. */
static void
restart_with_chain(unsigned depth)
{
    static const struct wish middle = {.name = "middle", .is_authority = true}, leaf = {.name = "leaf"};
    struct identity m = make_identity(&middle, &ca), l = make_identity(&leaf, &m);

    write_identity(&l, "leaf");
    FILE *f = fopen(in_dir("leaf.pem"), "a");
    PEM_write_X509(f, m.cert);
    fclose(f);
    identity_free(&m);
    identity_free(&l);
    listener_close(listener);
    tls_config_unref(serving);
    char cert[128], key[128];
    snprintf(cert, sizeof cert, "%s/server.pem", dir);
    snprintf(key, sizeof key, "%s/server.key", dir);
    serve_config(tls_config_new(&(struct tls_files){
        .own_cert = cert, .private_key = key, .ca_list = in_dir("ca.pem"), .depth = depth}));
}

START_TEST(the_depth_bounds_intermediates)
{
    restart_with_chain(1);
    ck_assert(peer_is_served("leaf", "ca.pem", TLS1_3_VERSION));
    restart_with_chain(0);
    ck_assert(!peer_is_served("leaf", "ca.pem", TLS1_3_VERSION));
    others_are_served();
}
END_TEST

START_TEST(a_renegotiation_is_refused)
{
    struct peer p = peer_new("server", "ca.pem", TLS1_2_VERSION);
    char byte;

    ck_assert(peer_shake(&p, SIZE_MAX));
    ck_assert(peer_round_trip(&p, 0, 100, 1, SIZE_MAX));
    ck_assert_int_eq(SSL_renegotiate(p.ssl), 1);
    ck_assert(!peer_shake(&p, SIZE_MAX) || !peer_read(&p, &byte, 1));
    peer_free(&p);
    others_are_served();
}
END_TEST

static void
restart_with_crl(const char *path)
{
    listener_close(listener);
    tls_config_unref(serving);
    serve(path);
}

START_TEST(a_revoked_client_is_refused)
{
    static const struct wish leaver = {.name = "leaver"};
    struct identity i = make_identity(&leaver, &ca);
    char folder[128];

    write_identity(&i, "leaver");
    snprintf(folder, sizeof folder, "%s/crl", dir);
    ck_assert_int_eq(mkdir(folder, 0755), 0);
    write_crl(&ca, NULL, "crl/0000.r0");
    restart_with_crl(folder);
    ck_assert(peer_is_served("leaver", "ca.pem", TLS1_3_VERSION));
    write_crl(&ca, i.cert, "crl/0000.r0"); /* in place: it counts at once */
    ck_assert(!peer_is_served("leaver", "ca.pem", TLS1_3_VERSION));
    others_are_served();
    write_crl(&ca, i.cert, "list.pem");
    restart_with_crl(in_dir("list.pem"));
    ck_assert(!peer_is_served("leaver", "ca.pem", TLS1_3_VERSION));
    others_are_served();
    identity_free(&i);
}
END_TEST

START_TEST(a_plain_peer_gets_an_alert)
{
    unsigned char got[7];
    char *r = make_record(0, 100, 1);
    int fd = dial_tcp(listener_port(listener));

    ck_assert(write_all(fd, r, 104));
    ck_assert(read_all(fd, got, sizeof got));
    ck_assert_int_eq(got[0], 0x15);
    expect_end(fd);
    free(r);
    others_are_served();
}
END_TEST

START_TEST(a_tls_peer_at_a_plain_port_gets_an_alert)
{
    struct listener *tls = listener;

    listener = echo.tcp_listener;
    struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);
    ck_assert(!peer_shake(&p, SIZE_MAX));
    ck_assert_int_eq(ERR_GET_REASON(ERR_peek_last_error()), SSL_R_SSLV3_ALERT_HANDSHAKE_FAILURE);
    peer_free(&p);
    listener = tls;
}
END_TEST

START_TEST(files_that_cannot_be_used_have_a_reason)
{
    static const struct {
        const char *name, *ca, *crl, *words;
    } rows[] = {
        {"none", "ca.pem", NULL, "none.pem: No such file"},
        {"server", "none.ca", NULL, "none.ca: No such file"},
        {"server", "ca.pem", "/nowhere", "/nowhere: No such file"},
        {"server", "server.key", NULL, "server.key"},
        {"mixed", "ca.pem", NULL, "is not the key of the certificate"},
    };
    struct reason why = {""};

    ck_assert_int_eq(link(in_dir("server.pem"), in_dir("mixed.pem")), 0);
    ck_assert_int_eq(link(in_dir("ca.key"), in_dir("mixed.key")), 0);
    struct tls_config *c = config_of(rows[_i].name, rows[_i].ca, rows[_i].crl);
    ck_assert_int_lt(tls_config_load(c, &why), 0);
    ck_assert_msg(strstr(why.text, rows[_i].words) != NULL, "%s", why.text);
    tls_config_unref(c);
}
END_TEST

/* ---- half of a handshake --------------------------------------------------------------------- */

/* The client's flights are cut after each so many bytes, and at last behind all of them. */
START_TEST(a_cut_anywhere_in_the_handshake_does_no_harm)
{
    size_t limit = 0;
    bool is_whole = false;

    while (!is_whole) {
        struct peer p = peer_new("server", "ca.pem", _i ? TLS1_3_VERSION : TLS1_2_VERSION);
        size_t left = limit;
        char byte;
        int done = 0;

        while ((is_whole = (done = SSL_do_handshake(p.ssl)) == 1) ||
               SSL_get_error(p.ssl, done) == SSL_ERROR_WANT_READ) {
            while (left && BIO_read(p.out, &byte, 1) == 1 && write_all(p.fd, &byte, 1))
                left--;
            if (BIO_ctrl_pending(p.out) || is_whole || !peer_fill(&p))
                break;
        }
        is_whole = is_whole && !BIO_ctrl_pending(p.out);
        peer_free(&p);
        limit += limit < 8 ? 1 : 61;
    }
    ck_assert_uint_gt(limit, 500);
    others_are_served();
}
END_TEST

START_TEST(garbage_in_a_handshake_does_no_harm)
{
    unsigned seed = 1;

    for (unsigned round = 0; round < 200; round++) {
        struct peer p = peer_new("server", "ca.pem", TLS1_3_VERSION);
        char bytes[2048];

        ck_assert_int_lt(SSL_do_handshake(p.ssl), 1);
        int n = BIO_read(p.out, bytes, sizeof bytes);
        ck_assert_int_gt(n, 100);
        for (unsigned k = 0; k < 1 + round % 4; k++)
            bytes[1 + rand_r(&seed) % (unsigned)(n - 1)] = (char)rand_r(&seed);
        ck_assert(write_all(p.fd, bytes, (size_t)n));
        shutdown(p.fd, SHUT_WR);
        while (recv(p.fd, bytes, sizeof bytes, 0) > 0)
            ;
        peer_free(&p);
    }
    others_are_served();
}
END_TEST

/* The server waits for no peer that falls silent in the middle, and ends such a peer at a stranger's
 * deadline. */
START_TEST(silent_peers_are_ended_and_others_served)
{
    struct peer silent[100];

    transport_limits.login_ms = 1500;
    for (unsigned i = 0; i < 100; i++) {
        silent[i] = peer_new("server", "ca.pem", TLS1_3_VERSION);
        (void)SSL_do_handshake(silent[i].ssl);
        ck_assert(peer_flush(&silent[i], i % 2 ? SIZE_MAX : 50));
        if (i % 3 == 0)
            ck_assert(peer_fill(&silent[i]) || true);
    }
    others_are_served();
    for (unsigned i = 0; i < 100; i++) {
        while (peer_fill(&silent[i]))
            ;
        peer_free(&silent[i]);
    }
    others_are_served();
}
END_TEST

static Suite *
tls_suite(void)
{
    Suite *s = suite_create("tls");
    TCase *works = tcase_create("works"), *refused = tcase_create("refused"), *half = tcase_create("half");

    tcase_add_checked_fixture(works, setup, teardown);
    tcase_add_loop_test(works, records_of_all_sizes_come_back, 0, 2);
    tcase_add_test(works, a_record_in_pieces_of_one_byte_comes_back);
    tcase_add_test(works, replies_to_a_slow_reader_arrive);
    tcase_add_test(works, many_key_updates_are_answered);
    tcase_add_test(works, a_port_with_both_kinds_serves_plain_peers);
    tcase_add_test(works, replaced_files_count_for_new_connections);
    suite_add_tcase(s, works);
    tcase_add_checked_fixture(refused, setup, teardown);
    tcase_add_loop_test(refused, a_client_with_a_bad_certificate_is_refused, 0, FAULTS);
    tcase_add_test(refused, a_client_without_a_certificate_or_with_an_old_version_is_refused);
    tcase_add_test(refused, a_version_below_the_minimum_is_refused);
    tcase_add_test(refused, the_first_load_waits_for_the_second_file_of_a_new_pair);
    tcase_add_test(refused, a_server_certificate_is_good_for_a_client);
    tcase_add_test(refused, the_depth_bounds_intermediates);
    tcase_add_test(refused, a_renegotiation_is_refused);
    tcase_add_test(refused, a_revoked_client_is_refused);
    tcase_add_test(refused, a_plain_peer_gets_an_alert);
    tcase_add_test(refused, a_tls_peer_at_a_plain_port_gets_an_alert);
    tcase_add_loop_test(refused, files_that_cannot_be_used_have_a_reason, 0, 5);
    suite_add_tcase(s, refused);
    tcase_add_checked_fixture(half, setup_strangers, teardown);
    tcase_add_loop_test(half, a_cut_anywhere_in_the_handshake_does_no_harm, 0, 2);
    tcase_add_test(half, garbage_in_a_handshake_does_no_harm);
    tcase_add_test(half, silent_peers_are_ended_and_others_served);
    suite_add_tcase(s, half);
    for (unsigned i = 0; i < 3; i++)
        tcase_set_timeout((TCase * []){works, refused, half}[i], 120);
    return s;
}

int
main(void)
{
    SRunner *r = srunner_create(tls_suite());

    srunner_run_all(r, CK_ENV);
    int failed = srunner_ntests_failed(r);

    srunner_free(r);
    return failed != 0;
}
