/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* kiln tls: a certificate authority on this machine, and certificates that the authority signs.
 *
 *     /etc/kiln/tls/ca.key, ca.pem                       the authority; made by init
 *     FOLDER/glusterfs.pem, glusterfs.key, glusterfs.ca  a certificate, its key and the authority's
 *                                                        certificate, under the names of GlusterFS
 *
 * A host of a store gets one file NAME.pem with key, certificate and authority (kiln host add); kiln tls
 * take installs the three there. Certificates also have the host's names and addresses (subjectAltName), so
 * that an etcd can serve with them.
 *
 * No file is overwritten, and keys have mode 0600. A run that dies half-way leaves whole files only: each
 * file is written under another name first. The next run names the file that exists, and the operator removes
 * that file. */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/kiln.h"

#define AUTHORITY_DIR "/etc/kiln/tls"
#define AUTHORITY_CERT AUTHORITY_DIR "/ca.pem"
#define AUTHORITY_KEY AUTHORITY_DIR "/ca.key"
enum { AUTHORITY_DAYS = 3650, CERTIFICATE_DAYS = 825, NAME_MAX_CN = 64 };

struct signer {
    EVP_PKEY *key;
    X509 *cert;
};

/* ---- files ----------------------------------------------------------------------------------- */

typedef int (*pem_write_fn)(FILE *f, const void *what);

static int
write_key(FILE *f, const void *key)
{
    return PEM_write_PrivateKey(f, key, NULL, NULL, 0, NULL, NULL);
}

static int
write_cert(FILE *f, const void *cert)
{
    return PEM_write_X509(f, cert);
}

/* Makes a file, and fails if the file exists. Returns 0 or -errno. */
static int
make_pem_file(const char *path, mode_t mode, pem_write_fn write_pem, const void *what)
{
    char temporary[PATH_MAX];

    if (snprintf(temporary, sizeof temporary, "%s.XXXXXX", path) >= (int)sizeof temporary)
        return -ENAMETOOLONG;
    int fd = mkostemp(temporary, O_CLOEXEC);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    if (!f) {
        int err = -errno;

        if (fd >= 0)
            close(fd);
        return err;
    }
    int err = write_pem(f, what) == 1 && fchmod(fd, mode) == 0 && fflush(f) == 0 && fsync(fd) == 0 ? 0 : -EIO;
    if (fclose(f) && !err)
        err = -errno;
    if (!err && link(temporary, path)) /* fails if the file is there */
        err = -errno;
    unlink(temporary);
    return err;
}

static int
make_named_file(const char *folder, const char *name, mode_t mode, pem_write_fn write_pem, const void *what)
{
    char path[PATH_MAX];

    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path)
        return refuse(KILN_REFUSED, NULL, NULL, "%s: the name is too long", folder);
    int err = make_pem_file(path, mode, write_pem, what);
    return err ? refuse(KILN_REFUSED, NULL, NULL, "%s: %s", path, strerror(-err)) : 0;
}

static void *
read_pem(const char *path, bool is_key)
{
    FILE *f = fopen(path, "re");
    void *what = !f       ? NULL
                 : is_key ? (void *)PEM_read_PrivateKey(f, NULL, NULL, NULL)
                          : PEM_read_X509(f, NULL, NULL, NULL);

    if (f)
        fclose(f);
    return what;
}

/* ---- certificates ---------------------------------------------------------------------------- */

static bool
add_extension(X509 *cert, X509 *issuer, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx(&ctx, issuer, cert, NULL, NULL, 0);
    X509_EXTENSION *e = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool is_added = e && X509_add_ext(cert, e, -1) == 1;

    X509_EXTENSION_free(e);
    return is_added;
}

static bool
set_serial(X509 *cert)
{
    unsigned char bytes[16];
    BIGNUM *n = NULL;

    if (RAND_bytes(bytes, sizeof bytes) == 1) {
        bytes[0] &= 0x7f;
        n = BN_bin2bn(bytes, sizeof bytes, NULL);
    }
    bool is_set = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(cert));
    BN_free(n);
    return is_set;
}

/* A name and its further addresses. */
struct names {
    const char *name;
    char *const *more;
    int more_count;
};

static bool
is_address(const char *text)
{
    struct in6_addr any;

    return inet_pton(AF_INET, text, &any) == 1 || inet_pton(AF_INET6, text, &any) == 1;
}

static bool
add_names(X509 *cert, X509 *issuer, const struct names *n)
{
    char text[4096] = "DNS:localhost,IP:127.0.0.1";

    for (int i = -1; i < n->more_count; i++) {
        const char *one = i < 0 ? n->name : n->more[i];
        size_t used = strlen(text);

        if (snprintf(text + used, sizeof text - used, ",%s:%s", is_address(one) ? "IP" : "DNS", one) >=
            (int)(sizeof text - used))
            return false;
    }
    return add_extension(cert, issuer, NID_subject_alt_name, text);
}

/* Fills a certificate that the authority `by` signs. With `by` NULL makes a new authority's certificate. */
static bool
fill_certificate(struct signer *s, const struct names *n, const struct signer *by)
{
    const char *name = n->name;
    X509_NAME *subject = X509_get_subject_name(s->cert);
    long days = by ? CERTIFICATE_DAYS : AUTHORITY_DAYS;
    X509 *issuer = by ? by->cert : s->cert;

    return X509_set_version(s->cert, 2) == 1 && set_serial(s->cert) &&
           X509_gmtime_adj(X509_getm_notBefore(s->cert), -3600) && /* clocks differ */
           X509_gmtime_adj(X509_getm_notAfter(s->cert), days * 86400) &&
           X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, (const unsigned char *)name, -1, -1, 0) ==
               1 &&
           X509_set_issuer_name(s->cert, X509_get_subject_name(issuer)) == 1 &&
           X509_set_pubkey(s->cert, s->key) == 1 &&
           add_extension(s->cert, issuer, NID_basic_constraints,
                         by ? "CA:FALSE" : "critical,CA:TRUE,pathlen:0") &&
           add_extension(s->cert, issuer, NID_subject_key_identifier, "hash") &&
           add_extension(s->cert, issuer, NID_key_usage,
                         by ? "critical,digitalSignature" : "critical,keyCertSign,cRLSign") &&
           (!by || add_extension(s->cert, issuer, NID_ext_key_usage, "serverAuth,clientAuth")) &&
           (!by || add_names(s->cert, issuer, n)) &&
           X509_sign(s->cert, by ? by->key : s->key, EVP_sha256()) > 0;
}

static void
signer_free(struct signer *s)
{
    EVP_PKEY_free(s->key);
    X509_free(s->cert);
}

/* Makes a key and a certificate. On failure prints the error and returns an exit status. */
static int
signer_make(struct signer *s, const struct names *n, const struct signer *by)
{
    *s = (struct signer){EVP_EC_gen("P-256"), X509_new()};
    if (s->key && s->cert && fill_certificate(s, n, by))
        return 0;
    signer_free(s);
    return refuse(KILN_REFUSED, NULL, NULL, "the certificate of %s cannot be made", n->name);
}

/* ---- the verb -------------------------------------------------------------------------------- */

/* Refuses a name that auth.ssl-allow cannot list or a volfile cannot hold. */
static int
check_name(const char *name)
{
    bool is_good = *name && strlen(name) <= NAME_MAX_CN;

    for (const char *c = name; *c && is_good; c++)
        is_good = strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *c) != NULL;
    return is_good ? 0
                   : refuse(KILN_USAGE, "1 to 64 letters, digits, '.', '-' and '_', as a host name has", NULL,
                            "'%.100s' cannot be the name of a certificate", name);
}

static int
check_names(const struct names *n)
{
    int status = check_name(n->name);

    for (int i = 0; i < n->more_count && !status; i++)
        status = is_address(n->more[i]) ? 0 : check_name(n->more[i]);
    return status;
}

/* Programs of this machine look in these folders: GlusterFS of Debian 12 in the first, that of Debian 13 in
 * the second, Kiln in both. */
#define FOLDER_10 "/usr/lib/ssl"
#define FOLDER_11 "/etc/ssl"

static const char *
default_folder(void)
{
    return access(FOLDER_10, F_OK) == 0 ? FOLDER_10 : FOLDER_11;
}

/* Links the files of the default folder into the other folder, if both folders exist. */
static int
link_default_files(void)
{
    static const char *const names[] = {"glusterfs.key", "glusterfs.pem", "glusterfs.ca"};
    char from[64], to[64];

    if (access(FOLDER_10, F_OK) || access(FOLDER_11, F_OK))
        return 0;
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++) {
        snprintf(from, sizeof from, FOLDER_10 "/%s", names[i]);
        snprintf(to, sizeof to, FOLDER_11 "/%s", names[i]);
        if (symlink(from, to))
            return refuse(KILN_REFUSED, NULL, NULL, "%s: %s", to, strerror(errno));
    }
    return 0;
}

static int
install_certificate(const char *folder, const struct signer *s, X509 *authority)
{
    int status = make_named_file(folder, "glusterfs.key", 0600, write_key, s->key);

    status = status ? status : make_named_file(folder, "glusterfs.pem", 0644, write_cert, s->cert);
    return status ? status : make_named_file(folder, "glusterfs.ca", 0644, write_cert, authority);
}

static int
make_certificate(const struct names *n, const char *folder, const struct signer *authority)
{
    struct signer s;
    int status = signer_make(&s, n, authority);

    if (status)
        return status;
    status = install_certificate(folder, &s, authority->cert);
    signer_free(&s);
    if (!status && !kiln_options.is_json)
        printf("%s: certificate of %s for %d days\n", folder, n->name, CERTIFICATE_DAYS);
    return status;
}

static int
make_authority(struct signer *authority)
{
    char name[128] = "Kiln of ";

    (void)gethostname(name + strlen(name), 63);
    if ((mkdir("/etc/kiln", 0755) && errno != EEXIST) || (mkdir(AUTHORITY_DIR, 0700) && errno != EEXIST))
        return refuse(KILN_REFUSED, NULL, NULL, AUTHORITY_DIR ": %s", strerror(errno));
    int status = signer_make(authority, &(struct names){.name = name}, NULL);
    if (status)
        return status;
    status = make_named_file(AUTHORITY_DIR, "ca.key", 0600, write_key, authority->key);
    if (!status)
        status = make_named_file(AUTHORITY_DIR, "ca.pem", 0644, write_cert, authority->cert);
    if (status)
        signer_free(authority);
    else if (!kiln_options.is_json)
        printf(AUTHORITY_DIR ": authority '%s' for %d days\n", name, AUTHORITY_DAYS);
    return status;
}

static int
read_authority(struct signer *authority)
{
    authority->key = read_pem(AUTHORITY_KEY, true);
    authority->cert = read_pem(AUTHORITY_CERT, false);
    if (authority->key && authority->cert && X509_check_private_key(authority->cert, authority->key) == 1)
        return 0;
    signer_free(authority);
    return refuse(KILN_REFUSED, NULL, "kiln tls init", "there is no authority in " AUTHORITY_DIR);
}

static int
tls_init(const struct names *given)
{
    struct names n = *given;
    struct signer authority;
    char host[NAME_MAX_CN + 1] = "";
    int status;

    if (!n.name && gethostname(host, sizeof host - 1))
        return refuse(KILN_REFUSED, NULL, "kiln tls init NAME", "this machine has no usable name");
    n.name = n.name ? n.name : host;
    if ((status = check_names(&n)) || (status = make_authority(&authority)))
        return status;
    status = make_certificate(&n, default_folder(), &authority);
    if (!status)
        status = link_default_files();
    signer_free(&authority);
    return status;
}

static int
tls_cert(const struct names *n, const char *folder)
{
    struct signer authority;
    int status;

    if ((status = check_names(n)) || (status = read_authority(&authority)))
        return status;
    if (mkdir(folder, 0700) && errno != EEXIST)
        status = refuse(KILN_REFUSED, NULL, NULL, "%s: %s", folder, strerror(errno));
    else
        status = make_certificate(n, folder, &authority);
    signer_free(&authority);
    return status;
}

/* ---- one file for a host --------------------------------------------------------------------- */

struct bundle {
    struct signer of_host;
    X509 *authority;
};

static int
write_bundle(FILE *f, const void *what)
{
    const struct bundle *b = what;

    return write_key(f, b->of_host.key) == 1 && write_cert(f, b->of_host.cert) == 1 &&
           write_cert(f, b->authority) == 1;
}

int
tls_issue(const char *name, const char *address, const char *path)
{
    const struct names n = {name, (char *const *)&address, 1};
    struct bundle b = {0};
    struct signer authority;
    int status;

    if ((status = check_names(&n)) || (status = read_authority(&authority)))
        return status;
    b.authority = authority.cert;
    status = signer_make(&b.of_host, &n, &authority);
    if (!status) {
        int err = make_pem_file(path, 0600, write_bundle, &b);

        if (err)
            status = refuse(KILN_REFUSED, "the path of a file that does not exist", NULL, "%s: %s", path,
                            strerror(-err));
        signer_free(&b.of_host);
    }
    signer_free(&authority);
    return status;
}

int
tls_authority(const char *name, const char *address, char **pem)
{
    const struct names n = {name, (char *const *)&address, 1};
    struct signer authority;
    size_t size;
    int status;

    *pem = NULL;
    if ((status = check_names(&n)) || (status = read_authority(&authority)))
        return status;
    FILE *f = open_memstream(pem, &size);
    bool is_written = f && write_cert(f, authority.cert) == 1;
    if (f && fclose(f))
        is_written = false;
    signer_free(&authority);
    return is_written ? 0 : refuse(KILN_REFUSED, NULL, NULL, AUTHORITY_CERT ": no memory");
}

/* Installs the certificate of a file that kiln host add has made. */
static int
tls_take(const char *path)
{
    FILE *f = fopen(path, "re");
    struct bundle b = {0};
    int err = f ? 0 : errno;

    if (f) {
        b.of_host.key = PEM_read_PrivateKey(f, NULL, NULL, NULL);
        b.of_host.cert = b.of_host.key ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
        b.authority = b.of_host.cert ? PEM_read_X509(f, NULL, NULL, NULL) : NULL;
        fclose(f);
    }
    bool is_good = b.authority && X509_check_private_key(b.of_host.cert, b.of_host.key) == 1 &&
                   X509_verify(b.of_host.cert, X509_get0_pubkey(b.authority)) == 1;
    int status = is_good ? install_certificate(default_folder(), &b.of_host, b.authority)
                         : refuse(KILN_REFUSED, "a file that kiln host add has made",
                                  "kiln host add NAME ADDRESS   # where kiln tls init was run", "%s: %s",
                                  path, err ? strerror(err) : "key, certificate and authority do not fit");

    if (!status)
        status = link_default_files();
    if (!status && !kiln_options.is_json)
        printf("%s: certificate installed; %s is no longer needed: remove it\n", default_folder(), path);
    signer_free(&b.of_host);
    X509_free(b.authority);
    return status;
}

int
tls(const struct verb *v, int argc, char **argv)
{
    if (strcmp(argv[0], "init") == 0)
        return tls_init(&(struct names){argc > 1 ? argv[1] : NULL, argv + 2, argc > 2 ? argc - 2 : 0});
    if (strcmp(argv[0], "cert") == 0 && argc >= 3)
        return tls_cert(&(struct names){argv[1], argv + 3, argc - 3}, argv[2]);
    if (strcmp(argv[0], "take") == 0 && argc == 2)
        return tls_take(argv[1]);
    return usage_of_word(v, argv[0]);
}
