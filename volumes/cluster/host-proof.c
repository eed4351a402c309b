/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "volumes/cluster/host-proof.h"

#include <errno.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509_vfy.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PEM_BYTES_MAX = 16384, SIGNATURE_BYTES_MAX = 1024 };

static const char *own_cert, *own_key; /* NULL: the default files */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char *authority_pem; /* guarded by `lock`; NULL: the store has no authority */

void
host_proof_files(const char *cert, const char *key)
{
    own_cert = cert;
    own_key = key;
}

bool
host_proof_set_authority(const char *text)
{
    json_t *json = text ? json_loads(text, 0, NULL) : NULL;
    const char *pem = json_string_value(json_object_get(json, "certificate"));
    char *fresh = pem ? strdup(pem) : NULL;

    json_decref(json);
    pthread_mutex_lock(&lock);
    bool is_changed = (fresh == NULL) != (authority_pem == NULL) ||
                      (fresh && strcmp(fresh, authority_pem) != 0);
    free(authority_pem);
    authority_pem = fresh;
    pthread_mutex_unlock(&lock);
    return is_changed;
}

char *
host_proof_authority(void)
{
    pthread_mutex_lock(&lock);
    char *copy = authority_pem ? strdup(authority_pem) : NULL;
    pthread_mutex_unlock(&lock);
    return copy;
}

void
host_proof_close(void)
{
    (void)host_proof_set_authority(NULL);
}

/* ---- the signed text ------------------------------------------------------------------------- */

/* The place and the record without its signature; the caller frees the text. NULL: no memory. */
static char *
signed_text(const json_t *record, const char *place)
{
    json_t *copy = json_copy((json_t *)record);
    char *dump = NULL, *text = NULL;

    json_object_del(copy, "proof");
    dump = copy ? json_dumps(copy, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    if (dump && asprintf(&text, "%s\n%s", place, dump) < 0)
        text = NULL;
    json_decref(copy);
    free(dump);
    return text;
}

static X509 *
parse_certificate(const char *pem)
{
    size_t size = pem ? strlen(pem) : 0;
    BIO *bio = size && size <= PEM_BYTES_MAX ? BIO_new_mem_buf(pem, (int)size) : NULL;
    X509 *cert = bio ? PEM_read_bio_X509(bio, NULL, NULL, NULL) : NULL;

    BIO_free(bio);
    return cert;
}

/* ---- signing --------------------------------------------------------------------------------- */

static FILE *
open_own_file(const char *path, const char *name, char used[256])
{
    snprintf(used, 256, "%s", path ? path : "");
    if (!path)
        snprintf(used, 256, "/usr/lib/ssl/%s", name);
    if (!path && access(used, F_OK))
        snprintf(used, 256, "/etc/ssl/%s", name);
    return fopen(used, "re");
}

static int
no_own_certificate(const char *host, const char *path, const char *reason, struct problem *why)
{
    problem_set(why, -EACCES, "this host cannot prove that it is host %s: %s: %s", host, path, reason);
    problem_expected(why, "a certificate of %s by the authority of the store, and its key", host);
    problem_type(why,
                 "kiln host add %s ADDRESS   # where kiln tls init was run; then kiln tls take FILE here",
                 host);
    return why->err;
}

/* Reads the certificate and the key of this host. */
static int
read_own(const char *host, X509 **cert, EVP_PKEY **key, struct problem *why)
{
    char path[256];
    FILE *f = open_own_file(own_cert, "glusterfs.pem", path);

    *key = NULL;
    *cert = f ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
    int err = f ? 0 : errno;
    if (f)
        fclose(f);
    if (!*cert)
        return no_own_certificate(host, path, err ? strerror(err) : "not a certificate in PEM", why);
    f = open_own_file(own_key, "glusterfs.key", path);
    *key = f ? PEM_read_PrivateKey(f, NULL, NULL, NULL) : NULL;
    err = f ? 0 : errno;
    if (f)
        fclose(f);
    if (*key && X509_check_private_key(*cert, *key) == 1)
        return 0;
    (void)no_own_certificate(host, path,
                             err    ? strerror(err)
                             : *key ? "the key of another certificate"
                                    : "not a key in PEM",
                             why);
    EVP_PKEY_free(*key);
    X509_free(*cert);
    return why->err;
}

static json_t *
certificate_json(X509 *cert)
{
    BIO *bio = BIO_new(BIO_s_mem());
    char *bytes = NULL;
    long size = bio && PEM_write_bio_X509(bio, cert) == 1 ? BIO_get_mem_data(bio, &bytes) : 0;
    json_t *json = size > 0 ? json_stringn(bytes, (size_t)size) : NULL;

    BIO_free(bio);
    return json;
}

static json_t *
signature_json(EVP_PKEY *key, const char *text)
{
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    unsigned char raw[SIGNATURE_BYTES_MAX];
    char base64[SIGNATURE_BYTES_MAX * 4 / 3 + 8];
    size_t size = sizeof raw;
    bool is_signed = ctx && EVP_DigestSignInit(ctx, NULL, EVP_sha256(), NULL, key) == 1 &&
                     EVP_DigestSign(ctx, raw, &size, (const unsigned char *)text, strlen(text)) == 1;

    EVP_MD_CTX_free(ctx);
    if (!is_signed)
        return NULL;
    EVP_EncodeBlock((unsigned char *)base64, raw, (int)size);
    return json_string(base64);
}

/* ---- judging --------------------------------------------------------------------------------- */

static int
no_proof(const char *host, const char *reason, struct problem *why)
{
    problem_set(why, -EACCES, "host %.255s has no valid certificate: %s", host, reason);
    problem_expected(why, "a certificate with the name %.255s by the authority of the store", host);
    problem_type(why, "kiln host add %.255s ADDRESS   # where kiln tls init was run", host);
    return why->err;
}

static bool
certificate_has_name(X509 *cert, const char *host)
{
    char name[256] = "";
    int bytes = X509_NAME_get_text_by_NID(X509_get_subject_name(cert), NID_commonName, name, sizeof name);

    /* a name with a NUL inside, or a cut name, is longer than its text */
    return bytes > 0 && (size_t)bytes == strlen(name) && strcmp(name, host) == 0;
}

/* Returns NULL, or the reason why the authority does not vouch for the certificate. */
static const char *
chain_flaw(X509 *authority, X509 *cert)
{
    X509_STORE *trusted = X509_STORE_new();
    X509_STORE_CTX *ctx = X509_STORE_CTX_new();
    const char *flaw = "no memory";

    if (trusted && ctx && X509_STORE_add_cert(trusted, authority) == 1 &&
        X509_STORE_CTX_init(ctx, trusted, cert, NULL) == 1) {
        X509_STORE_CTX_set_flags(ctx, X509_V_FLAG_PARTIAL_CHAIN);
        flaw = X509_verify_cert(ctx) == 1
                   ? NULL
                   : X509_verify_cert_error_string(X509_STORE_CTX_get_error(ctx));
    }
    X509_STORE_CTX_free(ctx);
    X509_STORE_free(trusted);
    return flaw;
}

static bool
signature_is_of(X509 *cert, const char *base64, const char *text)
{
    unsigned char raw[SIGNATURE_BYTES_MAX];
    size_t len = base64 ? strlen(base64) : 0;
    int size = len >= 4 && len / 4 * 3 <= sizeof raw
                   ? EVP_DecodeBlock(raw, (const unsigned char *)base64, (int)len)
                   : 0;

    if (size <= 0)
        return false;
    for (size_t i = len; i > len - 2 && base64[i - 1] == '='; i--)
        size--;
    EVP_MD_CTX *ctx = EVP_MD_CTX_new();
    bool is = ctx && EVP_DigestVerifyInit(ctx, NULL, EVP_sha256(), NULL, X509_get0_pubkey(cert)) == 1 &&
              EVP_DigestVerify(ctx, raw, (size_t)size, (const unsigned char *)text, strlen(text)) == 1;
    EVP_MD_CTX_free(ctx);
    return is;
}

int
host_proof_check_by(const char *authority, const json_t *record, const char *place, const char *host,
                    struct problem *why)
{
    const char *pem = json_string_value(json_object_get(record, "certificate"));
    const char *proof = json_string_value(json_object_get(record, "proof"));
    X509 *by = parse_certificate(authority), *cert = parse_certificate(pem);
    const char *flaw = NULL;
    char *text = NULL;

    why->err = 0;
    if (!by)
        flaw = "the store's authority cannot be read";
    else if (!pem || !proof)
        flaw = "it shows none";
    else if (!cert)
        flaw = "it is not a certificate in PEM";
    else if (!certificate_has_name(cert, host))
        flaw = "it is the certificate of another name";
    else if (!(flaw = chain_flaw(by, cert)) &&
             (!(text = signed_text(record, place)) || !signature_is_of(cert, proof, text)))
        flaw = "its key has not signed this record";
    X509_free(by);
    X509_free(cert);
    free(text);
    return flaw ? no_proof(host, flaw, why) : 0;
}

int
host_proof_check(const json_t *record, const char *place, const char *host, struct problem *why)
{
    char *authority = host_proof_authority();
    int err = 0;

    why->err = 0;
    if (authority)
        err = host_proof_check_by(authority, record, place, host, why);
    free(authority);
    return err;
}

/* ---- this host ------------------------------------------------------------------------------- */

static int
sign_record(json_t *record, const char *place, X509 *cert, EVP_PKEY *key, struct problem *why)
{
    int is_short = json_object_set_new(record, "certificate", certificate_json(cert));
    char *text = is_short ? NULL : signed_text(record, place);

    is_short = !text || json_object_set_new(record, "proof", signature_json(key, text));
    free(text);
    return is_short ? problem_no_memory(why) : 0;
}

/* `authority` NULL: a host without a certificate is not refused, and its record stays as it is. */
static int
sign_for(const char *authority, json_t *record, const char *place, const char *host, struct problem *why)
{
    struct problem flaw = {0};
    EVP_PKEY *key;
    X509 *cert;
    int err = read_own(host, &cert, &key, why);

    if (err && !authority)
        return why->err = 0;
    if (err)
        return err;
    why->err = 0;
    err = sign_record(record, place, cert, key, why);
    EVP_PKEY_free(key);
    X509_free(cert);
    if (!err && authority && host_proof_check_by(authority, record, place, host, &flaw))
        err = no_own_certificate(host, own_cert ? own_cert : "glusterfs.pem", flaw.wrong, why);
    return err;
}

int
host_proof_sign(json_t *record, const char *place, const char *host, struct problem *why)
{
    char *authority = host_proof_authority();
    int err = sign_for(authority, record, place, host, why);

    free(authority);
    return err;
}

int
host_proof_check_own(const char *text, const char *host, struct problem *why)
{
    json_t *json = json_loads(text, 0, NULL), *probe = json_pack("{ss}", "host", host);
    const char *authority = json_string_value(json_object_get(json, "certificate"));
    int err = !probe     ? problem_no_memory(why)
              : authority ? sign_for(authority, probe, "probe", host, why)
                          : problem_set(why, -EPROTO, "the store's authority cannot be read");

    json_decref(probe);
    json_decref(json);
    return err;
}
