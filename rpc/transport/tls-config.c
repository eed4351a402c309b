/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/tls-config.h"

#include <dirent.h>
#include <errno.h>
#include <openssl/decoder.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/reason.h"
#include "base/refcount.h"
#include "data/option.h"
#include "log/log.h"
#include "rpc/transport/tls-internal.h"

/* Debian's builds of GlusterFS look in the first (10.3) or the second (11.1) of these folders. */
static const char *const default_folders[] = {"/usr/lib/ssl", "/etc/ssl"};
#define FOLDERS (sizeof default_folders / sizeof default_folders[0])

/* Every stock peer offers these suites (gluster11 4.3). AES with 128 bits comes first because a brick's
 * processor time is mostly encryption. */
#define CIPHERS_DEFAULT "ECDHE+AESGCM+AES128:ECDHE+AESGCM:ECDHE+CHACHA20"
#define SUITES_13 "TLS_AES_128_GCM_SHA256:TLS_AES_256_GCM_SHA384:TLS_CHACHA20_POLY1305_SHA256"
#define GROUPS_DEFAULT "prime256v1" /* the only group of stock peers */

/* Several records are received with one system call. */
#define READ_BUFFER_BYTES 65536

/* A new certificate waits for its key, and a key for its certificate, for two seconds. */
enum { REPLACED_S = 10, PAIR_TRIES = 40, PAIR_PAUSE_MS = 50 };

const char *const tls_versions[] = {"1.2", "1.3", NULL};
static const int version_numbers[] = {TLS1_2_VERSION, TLS1_3_VERSION};

enum { FILE_CERT, FILE_KEY, FILE_CA, FILE_CRL, FILE_DH, FILE_COUNT };

static const char *const file_words[FILE_COUNT] = {
    [FILE_CERT] = "certificate (ssl-own-cert)",
    [FILE_KEY] = "private key (ssl-private-key)",
    [FILE_CA] = "list of authorities (ssl-ca-list)",
    [FILE_CRL] = "list of revoked certificates (ssl-crl-path)",
    [FILE_DH] = "Diffie-Hellman parameters (ssl-dh-param)",
};

struct tls_config {
    struct refcount refs;
    char *files[FILE_COUNT]; /* NULL: none */
    char *ciphers, *groups, *host;
    int depth, min_version;
    pthread_mutex_t lock; /* guards the members below; held while files are read */
    SSL_CTX *context;     /* NULL: not loaded yet */
    uint64_t stamp;       /* of the files that `context` was made of */
    uint64_t failed_stamp; /* of files that could not be loaded; their error is logged once */
};

/* ---- life ------------------------------------------------------------------------------------ */

/* The default file of this name, in the folder that has a certificate. */
static char *
default_file(const char *name)
{
    const char *folder = default_folders[0];
    char *path;

    for (unsigned i = 0; i < FOLDERS; i++) {
        char cert[64];

        snprintf(cert, sizeof cert, "%s/glusterfs.pem", default_folders[i]);
        if (access(cert, F_OK) == 0) {
            folder = default_folders[i];
            break;
        }
    }
    return asprintf(&path, "%s/%s", folder, name) < 0 ? NULL : path;
}

static char *
copy_text(const char *text, bool *is_short)
{
    char *copy = text ? strdup(text) : NULL;

    *is_short |= text && !copy;
    return copy;
}

static char *
copy_file(const char *text, const char *name, bool *is_short)
{
    char *copy = text ? strdup(text) : default_file(name);

    *is_short |= !copy;
    return copy;
}

struct tls_config *
tls_config_new(const struct tls_files *files)
{
    struct tls_config *c = calloc(1, sizeof *c);
    bool is_short = false;

    if (!c)
        return NULL;
    refcount_init(&c->refs, 1);
    pthread_mutex_init(&c->lock, NULL);
    c->files[FILE_CERT] = copy_file(files->own_cert, "glusterfs.pem", &is_short);
    c->files[FILE_KEY] = copy_file(files->private_key, "glusterfs.key", &is_short);
    c->files[FILE_CA] = copy_file(files->ca_list, "glusterfs.ca", &is_short);
    c->files[FILE_CRL] = copy_text(files->crl_path, &is_short);
    c->files[FILE_DH] = copy_text(files->dh_param, &is_short);
    c->ciphers = copy_text(files->cipher_list, &is_short);
    c->groups = copy_text(files->ec_curve, &is_short);
    c->host = copy_text(files->host, &is_short);
    c->depth = (int)files->depth;
    c->min_version = version_numbers[files->min_version];
    if (!is_short)
        return c;
    tls_config_unref(c);
    return NULL;
}

struct tls_config *
tls_config_ref(struct tls_config *c)
{
    refcount_get(&c->refs);
    return c;
}

void
tls_config_unref(struct tls_config *c)
{
    if (!c || !refcount_put(&c->refs))
        return;
    for (unsigned i = 0; i < FILE_COUNT; i++)
        free(c->files[i]);
    free(c->ciphers);
    free(c->groups);
    free(c->host);
    SSL_CTX_free(c->context);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

static bool
is_same_text(const char *a, const char *b)
{
    return a && b ? strcmp(a, b) == 0 : a == b;
}

bool
tls_config_is_same(const struct tls_config *a, const struct tls_config *b)
{
    bool is_same = a->depth == b->depth && a->min_version == b->min_version &&
                   is_same_text(a->ciphers, b->ciphers) && is_same_text(a->groups, b->groups) &&
                   is_same_text(a->host, b->host);

    for (unsigned i = 0; i < FILE_COUNT; i++)
        is_same = is_same && is_same_text(a->files[i], b->files[i]);
    return is_same;
}

const char *
tls_config_host(const struct tls_config *c)
{
    return c->host;
}

/* ---- stamps ---------------------------------------------------------------------------------- */

/* FNV-1a. A stamp is only compared with the stamp before. */
static void
stamp_add(uint64_t *stamp, const void *bytes, size_t count)
{
    const unsigned char *b = bytes;

    for (size_t i = 0; i < count; i++)
        *stamp = (*stamp ^ b[i]) * 0x100000001b3ull;
}

static void
stamp_add_file(uint64_t *stamp, const char *path)
{
    struct stat st;
    uint64_t words[6] = {0};

    if (stat(path, &st) == 0) {
        words[0] = st.st_dev;
        words[1] = st.st_ino;
        words[2] = (uint64_t)st.st_size;
        words[3] = (uint64_t)st.st_mtim.tv_sec;
        words[4] = (uint64_t)st.st_mtim.tv_nsec;
        words[5] = st.st_mode;
    }
    stamp_add(stamp, words, sizeof words);
}

/* NAME.rNUMBER, as `openssl rehash` makes them. */
static bool
is_crl_name(const char *name)
{
    const char *dot = strrchr(name, '.');

    return dot && dot[1] == 'r' && dot[2] && strspn(dot + 2, "0123456789") == strlen(dot + 2);
}

/* Calls fn with the path of each CRL: the file itself, or the files in the folder. 0, -errno of opening
 * the folder, or the first result of fn that is not 0. */
static int
each_crl(const char *path, int (*fn)(const char *path, void *arg), void *arg)
{
    DIR *dir = opendir(path);
    int err = 0;

    if (!dir)
        return errno == ENOTDIR ? fn(path, arg) : -errno;
    for (struct dirent *e = readdir(dir); e && !err; e = readdir(dir)) {
        char *file;

        if (!is_crl_name(e->d_name))
            continue;
        if (asprintf(&file, "%s/%s", path, e->d_name) < 0) {
            err = -ENOMEM;
            break;
        }
        err = fn(file, arg);
        free(file);
    }
    closedir(dir);
    return err;
}

static int
stamp_add_crl(const char *path, void *arg)
{
    stamp_add_file(arg, path);
    return 0;
}

static uint64_t
stamp_now(const struct tls_config *c)
{
    uint64_t stamp = 0xcbf29ce484222325ull;

    for (unsigned i = 0; i < FILE_COUNT; i++)
        if (c->files[i])
            stamp_add_file(&stamp, c->files[i]);
    if (c->files[FILE_CRL])
        (void)each_crl(c->files[FILE_CRL], stamp_add_crl, &stamp);
    return stamp;
}

/* ---- loading --------------------------------------------------------------------------------- */

/* The reason is the first error of OpenSSL's queue, because the later errors follow from it. The queue is
 * emptied. */
static int
load_fails(struct reason *why, const char *path, const char *word)
{
    unsigned long code = ERR_get_error();
    const char *text = code ? ERR_reason_error_string(code) : NULL;
    int err = -EINVAL;

    if (code && ERR_SYSTEM_ERROR(code)) {
        err = -(int)ERR_GET_REASON(code);
        text = strerror(-err);
    }
    ERR_clear_error();
    return reason_set(why, err, "TLS: %s %s: %s%s", word, path, text ? text : "it cannot be loaded",
                      err == -ENOENT ? "; kiln tls init makes such files" : "");
}

static int
load_key(struct tls_config *c, SSL_CTX *x, struct reason *why)
{
    const char *path = c->files[FILE_KEY];
    struct stat st;

    if (SSL_CTX_use_PrivateKey_file(x, path, SSL_FILETYPE_PEM) != 1) {
        if (ERR_GET_REASON(ERR_peek_error()) != X509_R_KEY_VALUES_MISMATCH)
            return load_fails(why, path, file_words[FILE_KEY]);
        ERR_clear_error();
        return reason_set(why, -EKEYREJECTED, "TLS: the private key %s is not the key of the certificate %s",
                          path, c->files[FILE_CERT]);
    }
    if (stat(path, &st) == 0 && st.st_mode & (S_IRWXG | S_IRWXO))
        log_event(LOG_WARNING, NULL, "tls-key-exposed",
                  "the private key %s has mode %04o: other users can take this identity; run: chmod 600 %s",
                  path, st.st_mode & 07777, path);
    return 0;
}

struct crl_load {
    SSL_CTX *context;
    struct reason *why;
    unsigned count;
};

static int
load_crl(const char *path, void *arg)
{
    struct crl_load *l = arg;
    X509_STORE *store = SSL_CTX_get_cert_store(l->context);
    X509_LOOKUP *lookup = X509_STORE_add_lookup(store, X509_LOOKUP_file());

    if (!lookup || X509_load_crl_file(lookup, path, X509_FILETYPE_PEM) <= 0)
        return load_fails(l->why, path, file_words[FILE_CRL]);
    l->count++;
    return 0;
}

static int
load_crls(struct tls_config *c, SSL_CTX *x, struct reason *why)
{
    const char *path = c->files[FILE_CRL];
    struct crl_load l = {x, why, 0};
    int err = path ? each_crl(path, load_crl, &l) : 0;

    if (err && !*why->text)
        return reason_set(why, err, "TLS: %s %s: %s", file_words[FILE_CRL], path, strerror(-err));
    if (path && !err && !l.count)
        log_event(
            LOG_WARNING, NULL, "tls-crl-empty",
            "the folder %s has no file NAME.r0: every certificate will be refused; run: openssl rehash %s",
            path, path);
    return err;
}

static int
load_dh(struct tls_config *c, SSL_CTX *x, struct reason *why)
{
    const char *path = c->files[FILE_DH];
    BIO *in = path ? BIO_new_file(path, "r") : NULL;

    if (!path)
        return 0;
    EVP_PKEY *key = in ? PEM_read_bio_Parameters(in, NULL) : NULL;
    BIO_free(in);
    if (key && SSL_CTX_set0_tmp_dh_pkey(x, key) == 1)
        return 0;
    EVP_PKEY_free(key);
    return load_fails(why, path, file_words[FILE_DH]);
}

static void
set_fixed_options(SSL_CTX *x)
{
    /* As with stock, no session is resumed: each connection proves its certificate. */
    SSL_CTX_set_options(x, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_TICKET |
                               SSL_OP_CIPHER_SERVER_PREFERENCE);
    SSL_CTX_set_num_tickets(x, 0);
    SSL_CTX_set_session_cache_mode(x, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(x, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_read_ahead(x, 1);
    SSL_CTX_set_default_read_buffer_len(x, READ_BUFFER_BYTES);
}

static int
load_into(struct tls_config *c, SSL_CTX *x, struct reason *why)
{
    const char *cert = c->files[FILE_CERT], *ca = c->files[FILE_CA];

    set_fixed_options(x);
    SSL_CTX_set_min_proto_version(x, c->min_version);
    SSL_CTX_set_verify_depth(x, c->depth);
    if (SSL_CTX_set_ciphersuites(x, SUITES_13) != 1 ||
        SSL_CTX_set_cipher_list(x, c->ciphers ? c->ciphers : CIPHERS_DEFAULT) != 1)
        return load_fails(why, c->ciphers ? c->ciphers : CIPHERS_DEFAULT, "cipher list (ssl-cipher-list)");
    if (SSL_CTX_set1_groups_list(x, c->groups ? c->groups : GROUPS_DEFAULT) != 1)
        return load_fails(why, c->groups ? c->groups : GROUPS_DEFAULT, "curve (ssl-ec-curve)");
    if (SSL_CTX_use_certificate_chain_file(x, cert) != 1)
        return load_fails(why, cert, file_words[FILE_CERT]);
    int err = load_key(c, x, why);
    if (err)
        return err;
    if (SSL_CTX_load_verify_file(x, ca) != 1)
        return load_fails(why, ca, file_words[FILE_CA]);
    err = load_crls(c, x, why);
    return err ? err : load_dh(c, x, why);
}

static SSL_CTX *
load_new(struct tls_config *c, struct reason *why, int *err)
{
    ERR_clear_error();
    SSL_CTX *x = SSL_CTX_new(TLS_method());

    *err = x ? load_into(c, x, why) : reason_set(why, -ENOMEM, "TLS: no memory");
    ERR_clear_error();
    if (!*err)
        return x;
    SSL_CTX_free(x);
    return NULL;
}

/* Tells whether the certificate or its key was written a moment ago. */
static bool
is_being_replaced(const struct tls_config *c)
{
    struct stat cert, key;
    time_t now = time(NULL);

    return stat(c->files[FILE_CERT], &cert) == 0 && stat(c->files[FILE_KEY], &key) == 0 &&
           (llabs((long long)(now - cert.st_ctime)) <= REPLACED_S ||
            llabs((long long)(now - key.st_ctime)) <= REPLACED_S);
}

/* Loads the files for the first time. No file system replaces two files at once, so a certificate and a key
 * that do not match are loaded again for a while if they are being replaced. */
static SSL_CTX *
load_first(struct tls_config *c, uint64_t *stamp, struct reason *why, int *err)
{
    SSL_CTX *x = load_new(c, why, err);

    for (int i = 0; !x && *err == -EKEYREJECTED && i < PAIR_TRIES && is_being_replaced(c); i++) {
        nanosleep(&(struct timespec){.tv_nsec = PAIR_PAUSE_MS * 1000000L}, NULL);
        *stamp = stamp_now(c);
        why->text[0] = '\0';
        x = load_new(c, why, err);
    }
    return x;
}

static int
load_locked(struct tls_config *c, struct reason *why)
{
    uint64_t stamp = stamp_now(c);
    int err;

    if (c->context && c->stamp == stamp)
        return 0;
    SSL_CTX *fresh = c->context ? load_new(c, why, &err) : load_first(c, &stamp, why, &err);
    if (fresh) {
        if (c->context)
            log_event(LOG_INFO, NULL, "tls-reloaded", "the certificate %s and its files were loaded again",
                      c->files[FILE_CERT]);
        SSL_CTX_free(c->context);
        c->context = fresh;
        c->stamp = stamp;
        return 0;
    }
    if (!c->context)
        return err;
    if (c->failed_stamp != stamp)
        log_event(LOG_ERROR, NULL, "tls-reload-failed", "%s; connections go on with the files of before",
                  why->text);
    c->failed_stamp = stamp;
    return 0;
}

int
tls_config_load(struct tls_config *c, struct reason *why)
{
    pthread_mutex_lock(&c->lock);
    int err = load_locked(c, why);
    pthread_mutex_unlock(&c->lock);
    return err;
}

SSL_CTX *
tls_config_context(struct tls_config *c, struct reason *why)
{
    SSL_CTX *x = NULL;

    pthread_mutex_lock(&c->lock);
    if (load_locked(c, why) == 0) {
        x = c->context;
        SSL_CTX_up_ref(x);
    }
    pthread_mutex_unlock(&c->lock);
    return x;
}

bool
tls_config_has_crl(const struct tls_config *c)
{
    return c->files[FILE_CRL] != NULL;
}

/* ---- management ------------------------------------------------------------------------------ */

static struct tls_config *management;

/* A line `option transport.socket.ssl-cert-depth N`; without it, or without a number, the default. */
static int64_t
read_management_depth(FILE *f)
{
    char line[256];
    int64_t depth = TLS_DEPTH_DEFAULT;
    long long n;

    while (fgets(line, sizeof line, f))
        if (sscanf(line, " option transport.socket.ssl-cert-depth %lld", &n) == 1 && n > 0 && n < 100)
            depth = n;
    return depth;
}

int
tls_management_word(const char *text, bool *is_on)
{
    return option_bool(text, is_on);
}

int
tls_management_begin(bool given, bool is_on, struct reason *why)
{
    FILE *f = given && !is_on ? NULL : fopen(TLS_SECURE_ACCESS, "re");
    struct tls_files files = {.depth = f ? read_management_depth(f) : TLS_DEPTH_DEFAULT};
    bool is_wanted = f || (given && is_on);

    if (f)
        fclose(f);
    if (!is_wanted)
        return 0;
    struct tls_config *c = tls_config_new(&files);
    int err = c ? tls_config_load(c, why) : reason_set(why, -ENOMEM, "TLS: no memory");
    if (err) {
        tls_config_unref(c);
        return err;
    }
    management = c;
    return 0;
}

struct tls_config *
tls_management(void)
{
    return management;
}
