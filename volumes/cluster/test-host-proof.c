/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Certificates of hosts: which records count. */
#include <check.h>
#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "volumes/cluster/host-proof.h"

static char folder[] = "/tmp/test-host-proof.XXXXXX", cert_path[64], key_path[64];

struct party {
    EVP_PKEY *key;
    X509 *cert;
};

static int name_bytes = -1; /* of the next party; -1: up to the NUL */

/* A certificate that is valid from `from` to `to`, in seconds from now. */
static struct party
make_party(const char *name, const struct party *by, long from, long to)
{
    struct party p = {EVP_EC_gen("P-256"), X509_new()};
    X509_NAME *subject = X509_get_subject_name(p.cert);

    X509_set_version(p.cert, 2);
    ASN1_INTEGER_set(X509_get_serialNumber(p.cert), rand());
    X509_gmtime_adj(X509_getm_notBefore(p.cert), from);
    X509_gmtime_adj(X509_getm_notAfter(p.cert), to);
    X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_ASC, (const unsigned char *)name, name_bytes, -1, 0);
    X509_set_issuer_name(p.cert, by ? X509_get_subject_name(by->cert) : subject);
    X509_set_pubkey(p.cert, p.key);
    if (!by) {
        X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, NULL, NID_basic_constraints, "critical,CA:TRUE");

        ck_assert(e && X509_add_ext(p.cert, e, -1) == 1);
        X509_EXTENSION_free(e);
    }
    ck_assert_int_gt(X509_sign(p.cert, by ? by->key : p.key, EVP_sha256()), 0);
    return p;
}

static void
party_free(struct party *p)
{
    EVP_PKEY_free(p->key);
    X509_free(p->cert);
}

static void
install(const struct party *p)
{
    FILE *f = fopen(cert_path, "w");

    ck_assert(f && PEM_write_X509(f, p->cert) == 1 && fclose(f) == 0);
    f = fopen(key_path, "w");
    ck_assert(f && PEM_write_PrivateKey(f, p->key, NULL, NULL, 0, NULL, NULL) == 1 && fclose(f) == 0);
}

static void
set_authority(const struct party *p)
{
    char *pem = NULL;
    size_t size;
    FILE *f = open_memstream(&pem, &size);

    ck_assert(f && PEM_write_X509(f, p->cert) == 1 && fclose(f) == 0);
    json_t *json = json_pack("{ss}", "certificate", pem);
    char *text = json_dumps(json, 0);
    ck_assert(host_proof_set_authority(text));
    ck_assert(!host_proof_set_authority(text)); /* the same one */
    free(text);
    free(pem);
    json_decref(json);
}

static json_t *
fresh_record(void)
{
    return json_pack("{ss si sf s[ii]}", "id", "x", "pid", 7, "load", 0.1, "list", 1, 2);
}

static void
begin(void)
{
    ck_assert(mkdtemp(folder));
    snprintf(cert_path, sizeof cert_path, "%s/cert", folder);
    snprintf(key_path, sizeof key_path, "%s/key", folder);
    host_proof_files(cert_path, key_path);
}

static void
end(void)
{
    unlink(cert_path);
    unlink(key_path);
    rmdir(folder);
    strcpy(folder + strlen(folder) - 6, "XXXXXX");
    host_proof_close();
}

START_TEST(without_an_authority_all_records_count)
{
    struct party own = make_party("h1", NULL, -10, 1000);
    json_t *record = fresh_record();
    struct problem why;

    ck_assert_int_eq(host_proof_sign(record, "alive/h1", "h1", &why), 0);
    ck_assert_ptr_null(json_object_get(record, "proof")); /* there is no certificate */
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h1", &why), 0);
    install(&own);
    ck_assert_int_eq(host_proof_sign(record, "alive/h1", "h1", &why), 0);
    ck_assert_ptr_nonnull(json_object_get(record, "proof"));
    json_decref(record);
    party_free(&own);
}
END_TEST

START_TEST(a_signed_record_counts_in_its_place_only)
{
    struct party authority = make_party("authority", NULL, -10, 1000);
    struct party own = make_party("h1", &authority, -10, 1000);
    json_t *record = fresh_record();
    struct problem why;

    install(&own);
    set_authority(&authority);
    ck_assert_int_eq(host_proof_sign(record, "alive/h1", "h1", &why), 0);
    char *text = json_dumps(record, JSON_COMPACT); /* as the store carries it */
    json_decref(record);
    record = json_loads(text, 0, NULL);
    free(text);
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h1", &why), 0);
    ck_assert_int_eq(host_proof_check(record, "alive/h2", "h1", &why), -EACCES);
    ck_assert_ptr_nonnull(strstr(why.wrong, "has not signed"));
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h2", &why), -EACCES);
    ck_assert_ptr_nonnull(strstr(why.wrong, "another name"));
    json_object_set_new(record, "pid", json_integer(8));
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h1", &why), -EACCES);
    ck_assert_ptr_nonnull(strstr(why.wrong, "has not signed"));
    json_object_del(record, "proof");
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h1", &why), -EACCES);
    json_decref(record);
    party_free(&own);
    party_free(&authority);
}
END_TEST

/* Each of these hosts cannot sign, and its forged record does not count. */
static void
expect_refused(const struct party *authority, const struct party *by, const char *name, long from, long to,
               const char *reason)
{
    struct party own = make_party(name, by, from, to);
    json_t *record = fresh_record();
    struct problem why;

    install(&own);
    host_proof_set_authority(NULL);
    ck_assert_int_eq(host_proof_sign(record, "alive/h1", "h1", &why), 0); /* signed, and not yet judged */
    set_authority(authority);
    ck_assert_int_eq(host_proof_check(record, "alive/h1", "h1", &why), -EACCES);
    ck_assert_msg(strstr(why.wrong, reason), "%s", why.wrong);
    ck_assert_int_eq(host_proof_sign(record, "alive/h1", "h1", &why), -EACCES);
    ck_assert_msg(strstr(why.wrong, "cannot prove") && strstr(why.wrong, reason), "%s", why.wrong);
    json_decref(record);
    party_free(&own);
}

START_TEST(wrong_certificates_are_refused_with_the_reason)
{
    struct party authority = make_party("authority", NULL, -10, 1000);
    struct party other = make_party("authority", NULL, -10, 1000);

    expect_refused(&authority, &authority, "h2", -10, 1000, "another name");
    expect_refused(&authority, &authority, "h1", -1000, -10, "expired");
    expect_refused(&authority, &authority, "h1", 1000, 2000, "not yet valid");
    expect_refused(&authority, &other, "h1", -10, 1000, "signature failure");
    expect_refused(&authority, NULL, "h1", -10, 1000, "self");
    name_bytes = sizeof "h1\0.of.another" - 1;
    expect_refused(&authority, &authority, "h1\0.of.another", -10, 1000, "another name");
    name_bytes = -1;
    party_free(&authority);
    party_free(&other);
}
END_TEST

START_TEST(garbage_is_refused)
{
    static const char *const texts[] = {"", "====", "A", "AAAA", "-----BEGIN CERTIFICATE-----\nAAAA\n"};
    struct party authority = make_party("authority", NULL, -10, 1000);
    struct party own = make_party("h1", &authority, -10, 1000);
    struct problem why;

    install(&own);
    set_authority(&authority);
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        json_t *record = fresh_record();

        ck_assert_int_eq(host_proof_sign(record, "p", "h1", &why), 0);
        json_object_set_new(record, "proof", json_string(texts[i]));
        ck_assert_int_eq(host_proof_check(record, "p", "h1", &why), -EACCES);
        ck_assert_int_eq(host_proof_sign(record, "p", "h1", &why), 0);
        json_object_set_new(record, "certificate", json_string(texts[i]));
        ck_assert_int_eq(host_proof_check(record, "p", "h1", &why), -EACCES);
        json_decref(record);
    }
    ck_assert_int_eq(host_proof_check(NULL, "p", "h1", &why), -EACCES);
    ck_assert_int_eq(host_proof_check_own("{}", "h1", &why), -EPROTO);
    unlink(key_path);
    json_t *record = fresh_record();
    ck_assert_int_eq(host_proof_sign(record, "p", "h1", &why), -EACCES);
    ck_assert_ptr_nonnull(strstr(why.wrong, "No such file"));
    json_decref(record);
    party_free(&own);
    party_free(&authority);
}
END_TEST

int
main(void)
{
    Suite *s = suite_create("host-proof");
    TCase *tc = tcase_create("records");

    tcase_add_checked_fixture(tc, begin, end);
    tcase_add_test(tc, without_an_authority_all_records_count);
    tcase_add_test(tc, a_signed_record_counts_in_its_place_only);
    tcase_add_test(tc, wrong_certificates_are_refused_with_the_reason);
    tcase_add_test(tc, garbage_is_refused);
    suite_add_tcase(s, tc);
    SRunner *runner = srunner_create(s);
    srunner_run_all(runner, CK_ENV);
    int failed = srunner_ntests_failed(runner);
    srunner_free(runner);
    return failed != 0;
}
