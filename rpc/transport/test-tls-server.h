/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The echo server with TLS. The certificates are made here, by a CA of the test. */
#ifndef KILN_TRANSPORT_TEST_TLS_SERVER_H
#define KILN_TRANSPORT_TEST_TLS_SERVER_H

#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>
#include <sys/stat.h>

#include "base/reason.h"
#include "base/test-must.h"
#include "mem/mem-pool.h"
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

static inline void
add_extension(X509 *cert, int nid, const char *value)
{
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, nid, value);

    ck_assert_ptr_nonnull(e);
    X509_add_ext(cert, e, -1);
    X509_EXTENSION_free(e);
}

/* `by` NULL: signed by its own key. */
static inline struct identity
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

static inline void
identity_free(struct identity *i)
{
    EVP_PKEY_free(i->key);
    X509_free(i->cert);
}

static inline const char *
in_dir(const char *name)
{
    static char paths[8][128];
    static unsigned next;
    char *path = paths[next++ % 8];

    snprintf(path, sizeof paths[0], "%s/%s", dir, name);
    return path;
}

static inline void
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

static inline void
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

static inline struct tls_config *
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

static inline struct tls_config *
choose(void *arg, bool *plain)
{
    (void)arg;
    *plain = allows_plain;
    return tls_config_ref(serving);
}

/* Takes the reference over. */
static inline void
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

static inline void
serve(const char *crl)
{
    serve_config(config_of("server", "ca.pem", crl));
}

static inline void
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

static inline void
setup(void)
{
    start(true);
    serve(NULL);
}

static inline void
setup_strangers(void)
{
    start(false);
    serve(NULL);
}

static inline void
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

/* ---- bad certificates ------------------------------------------------------------------------ */

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

static inline void
write_fault(const struct fault *f, const char *name)
{
    struct identity i = make_identity(&f->wish, f->issuer == 0 ? &ca : f->issuer == 1 ? &other_ca : NULL);

    write_identity(&i, name);
    identity_free(&i);
}

#endif
