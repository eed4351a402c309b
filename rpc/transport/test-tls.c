/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The echo server with TLS, met by OpenSSL's own client, by this transport's dialler, and by peers that send
 * half of a handshake. The certificates are made here, by a CA of the test. */
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/reason.h"
#include "base/test-must.h"
#include "mem/mem-pool.h"
#include "rpc/transport/dial.h"
#include "rpc/transport/test-echo.h"
#include "rpc/transport/tls-config.h"

static char dir[64];
static struct listener *listener;
static struct tls_config *serving;
static bool allows_plain;
static struct transport_ops tls_ops;

/* ---- certificates ---------------------------------------------------------------------------- */

struct identity {
    EVP_PKEY *key;
    X509 *cert;
};

struct wish {
    const char *hosts; /* subjectAltName */
    const char *name, *usage; /* NULL: for any use */
    int from_days, to_days;   /* from now; both 0: ten days around now */
    bool is_authority;
};

static void
add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    ck_assert_ptr_nonnull(e);
    X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
}

/* `by` NULL: signed by its own key. */
static struct identity
make_identity(const struct wish *w, const struct identity *by)
{
    static long serial = 1000;
    struct identity i = {EVP_EC_gen("P-256"), X509_new()};
    int from = w->from_days || w->to_days ? w->from_days : -10;
    int to = w->from_days || w->to_days ? w->to_days : 10;
    X509_NAME *name = X509_get_subject_name(i.cert);

    X509_set_version(i.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(i.cert), serial++);
    X509_gmtime_adj(X509_getm_notBefore(i.cert), from * 86400L);
    X509_gmtime_adj(X509_getm_notAfter(i.cert), to * 86400L);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8, (const unsigned char *)w->name, -1, -1, 0);
    X509_set_issuer_name(i.cert, by ? X509_get_subject_name(by->cert) : name);
    X509_set_pubkey(i.cert, i.key);
    add_extension(i.cert, NID_basic_constraints, w->is_authority ? "critical,CA:TRUE" : "CA:FALSE");
    if (w->usage)
        add_extension(i.cert, NID_ext_key_usage, w->usage);
    if (w->hosts)
        add_extension(i.cert, NID_subject_alt_name, w->hosts);
    ck_assert_int_gt(X509_sign(i.cert, by ? by->key : i.key, EVP_sha256()), 0);
    return i;
}

static void
identity_free(struct identity *i)
{
    EVP_PKEY_free(i->key);
    X509_free(i->cert);
}

static const char *
in_dir(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static void
write_identity(const struct identity *i, const char *name)
{
    char file[64];

    snprintf(file, sizeof file, "%s.pem", name);
    FILE *f = fopen(in_dir(file), "w");
    PEM_write_X509(f, i->cert);
    fclose(f);
    snprintf(file, sizeof file, "%s.key", name);
    f = fopen(in_dir(file), "w");
    PEM_write_PrivateKey(f, i->key, NULL, NULL, 0, NULL, NULL);
    fclose(f);
    chmod(in_dir(file), 0600);
}

static void
write_crl(const struct identity *ca, const X509 *revoked, const char *name)
{
    X509_CRL *crl = X509_CRL_new();
    ASN1_TIME *now = X509_gmtime_adj(NULL, -3600), *later = X509_gmtime_adj(NULL, 86400);

    X509_CRL_set_version(crl, 1);
    X509_CRL_set_issuer_name(crl, X509_get_subject_name(ca->cert));
    X509_CRL_set1_lastUpdate(crl, now);
    X509_CRL_set1_nextUpdate(crl, later);
    if (revoked) {
        X509_REVOKED *r = X509_REVOKED_new();

        X509_REVOKED_set_serialNumber(r, (ASN1_INTEGER *)X509_get0_serialNumber(revoked));
        X509_REVOKED_set_revocationDate(r, now);
        X509_CRL_add0_revoked(crl, r);
    }
    X509_CRL_sort(crl);
    ck_assert_int_gt(X509_CRL_sign(crl, ca->key, EVP_sha256()), 0);
    FILE *f = fopen(in_dir(name), "w");
    PEM_write_X509_CRL(f, crl);
    fclose(f);
    ASN1_TIME_free(now);
    ASN1_TIME_free(later);
    X509_CRL_free(crl);
}

static struct tls_config *
config_of(const char *name, const char *ca, const char *crl)
{
    char cert[128], key[128];

    snprintf(cert, sizeof cert, "%s/%s.pem", dir, name);
    snprintf(key, sizeof key, "%s/%s.key", dir, name);
    return tls_config_new(&(struct tls_files){
        .own_cert = cert, .private_key = key, .ca_list = in_dir(ca), .crl_path = crl, .depth = 1});
}

/* ---- the server ------------------------------------------------------------------------------ */

static struct identity ca, other_ca, server_id;

static struct tls_config *
choose(void *arg, bool *plain)
{
    (void)arg;
    *plain = allows_plain;
    return tls_config_ref(serving);
}

/* Takes the reference over. */
static void
serve_config(struct tls_config *config)
{
    int err = 0;
    struct reason why = {""};

    serving = config;
    ck_assert_msg(tls_config_load(serving, &why) == 0, "%s", why.text);
    tls_ops = echo_ops;
    tls_ops.tls = choose;
    listener = listener_open_tcp("127.0.0.1", 0, &tls_ops, &echo.accepted, &err);
    ck_assert_ptr_nonnull(listener);
}

static void
serve(const char *crl)
{
    serve_config(config_of("server", "ca.pem", crl));
}

static void
start(bool is_trusting)
{
    static const struct wish authority = {.name = "a CA", .is_authority = true},
                             other = {.name = "another CA", .is_authority = true},
                             server = {.name = "the server"};

    ck_assert_int_eq(mem_pools_set_option("pressure", "0"), 0);
    strcpy(dir, "/tmp/kiln-tls-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(dir));
    ca = make_identity(&authority, NULL);
    other_ca = make_identity(&other, NULL);
    server_id = make_identity(&server, &ca);
    write_identity(&ca, "ca");
    write_identity(&other_ca, "other");
    write_identity(&server_id, "server");
    allows_plain = false;
    echo_start(is_trusting);
}

static void
setup(void)
{
    start(true);
    serve(NULL);
}

static void
setup_strangers(void)
{
    start(false);
    serve(NULL);
}

static void
teardown(void)
{
    char command[128];

    listener_close(listener);
    echo_stop();
    tls_config_unref(serving);
    identity_free(&ca);
    identity_free(&other_ca);
    identity_free(&server_id);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    ck_assert_int_eq(system(command), 0);
}

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

static const struct fault {
    struct wish wish;
    int issuer; /* 0: the CA, 1: another, 2: itself */
    const char *word; /* in the dialled side's failure when the server has it */
} faults[] = {
    {{.name = "expired", .from_days = -20, .to_days = -10}, 0, "has expired (at "},
    {{.name = "early", .from_days = 10, .to_days = 20}, 0, "not yet valid (before "},
    {{.name = "stranger"}, 1, "unable to get local issuer certificate"},
    {{.name = "own"}, 2, "self-signed certificate"},
    {{.name = "mailer", .usage = "emailProtection"}, 0, "certificate purpose"},
    {{.name = "client only", .usage = "clientAuth"}, 0, "certificate purpose"},
};
#define FAULTS (sizeof faults / sizeof faults[0])

static void
write_fault(const struct fault *f, const char *name)
{
    struct identity i = make_identity(&f->wish, f->issuer == 0 ? &ca : f->issuer == 1 ? &other_ca : NULL);

    write_identity(&i, name);
    identity_free(&i);
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

/* ---- this transport's own client ------------------------------------------------------------- */

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
tls_suite(void)
{
    Suite *s = suite_create("tls");
    TCase *works = tcase_create("works"), *refused = tcase_create("refused"), *half = tcase_create("half"),
          *own = tcase_create("own");

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
    tcase_add_checked_fixture(own, setup, teardown);
    tcase_add_test(own, the_dialler_shakes_hands_and_exchanges_records);
    tcase_add_loop_test(own, the_dialler_compares_the_host_with_the_certificate, 0, HOST_CASES);
    tcase_add_loop_test(own, the_dialler_says_which_certificate_of_the_server_is_bad, 0, FAULTS);
    tcase_add_test(own, the_dialler_says_why_the_server_refuses);
    tcase_add_test(own, a_plain_dialler_learns_that_the_peer_demands_tls);
    suite_add_tcase(s, own);
    for (unsigned i = 0; i < 4; i++)
        tcase_set_timeout((TCase * []){works, refused, half, own}[i], 120);
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
