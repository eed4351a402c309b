/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/transport/tls.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <openssl/err.h>
#include <openssl/x509v3.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/reason.h"
#include "base/thread.h"
#include "log/log.h"
#include "rpc/transport/port.h"
#include "rpc/transport/tls-internal.h"
#include "rpc/transport/transport-internal.h"

enum { TLS_THREADS_MAX = 2, NAME_BYTES = 256, FAILURE_BYTES = 384, TLS_ADDRESS_SLOTS = 4096 };
/* The most steps of one address in the queue: a flood of connections delays other addresses by a fraction of
 * a second only. A host with more mounts connects in turns, because refused clients connect again. */
enum { TLS_WAITING_MAX = 256 };

#define RECORD_BYTES 16384
#define RECORD_EXTRA 256 /* more than the head, nonce, tag and padding of a record */
#define OUT_SMALL 16384
#define OUT_LARGE (256u << 10)
#define ALERT_OFFSET 1000 /* SSL_AD_REASON_OFFSET: reasons above are alerts of the peer */

enum phase { SNIFFING, SHAKING, OPEN, FAILED };

struct tls {
    struct conn *conn;
    struct tls_config *config;
    bool allows_plain;
    atomic_int phase;
    atomic_bool wants_out;
    atomic_bool is_stopped;
    struct timer deadline;
    /* the reader's, or of the thread that has its place */
    bool is_dry; /* a step has read all bytes there were */
    bool is_fresh; /* open, and the queue of messages has not been told */
    struct cds_list_head link; /* in the queue of steps, under its lock */
    pthread_mutex_t lock; /* guards the members below */
    SSL *ssl;
    struct iobuf *out; /* ciphertext [out_start, out_end) is to be sent */
    size_t out_start, out_end;
    size_t owed; /* bytes of messages that this ciphertext stands for */
    size_t message_left; /* of the message that is being sent; 0: a record mark is next */
    int io_error; /* -errno of the socket */
    bool is_eof, has_heard;
    int error; /* -errno: nothing can be read or sent any more */
    char name[NAME_BYTES];
    char failure[FAILURE_BYTES];
};

static int tls_index = -1; /* index of an SSL's pointer to its struct tls */
static BIO_METHOD *bio_method;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* ---- failures -------------------------------------------------------------------------------- */

/* The first failure is the cause of the later ones. */
static void __attribute__((format(printf, 3, 4)))
fail_locked(struct tls *t, int err, const char *format, ...)
{
    char peer[CONN_PEER_TEXT_MAX], why[FAILURE_BYTES];
    va_list args;

    t->error = t->error ? t->error : err;
    if (atomic_exchange(&t->phase, FAILED) == FAILED)
        return;
    if (!*t->failure) {
        va_start(args, format);
        vsnprintf(t->failure, sizeof t->failure, format, args);
        va_end(args);
    }
    snprintf(why, sizeof why, "%s", t->failure);
    conn_peer_text(t->conn, peer);
    log_event(LOG_WARNING, NULL, "tls-failed", "TLS %s %s failed: %s",
              t->conn->is_dialled ? "connection to" : "connection from", peer, why);
}

/* A text from a certificate, for logs. */
static void
make_printable(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text < ' ' || *text == 0x7f)
            *text = '?';
}

/* The common name as UTF-8, cut; "" if there is none, or if the name has a NUL inside, which could make the
 * name look like another name. */
static void
common_name(const X509_NAME *name, char *out, size_t size)
{
    int at = X509_NAME_get_index_by_NID((X509_NAME *)name, NID_commonName, -1);
    unsigned char *utf8 = NULL;

    *out = '\0';
    if (at < 0)
        return;
    int len = ASN1_STRING_to_UTF8(&utf8, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, at)));
    if (len >= 0 && strlen((char *)utf8) == (size_t)len)
        snprintf(out, size, "%s", (char *)utf8);
    OPENSSL_free(utf8);
}

static void
validity_text(const ASN1_TIME *at, char out[32])
{
    struct tm tm;

    if (ASN1_TIME_to_tm(at, &tm) != 1 || strftime(out, 32, "%F %T UTC", &tm) == 0)
        strcpy(out, "?");
}

static void
describe_verify_failure(struct tls *t, X509_STORE_CTX *ctx)
{
    X509 *cert = X509_STORE_CTX_get_current_cert(ctx);
    int code = X509_STORE_CTX_get_error(ctx);
    char subject[NAME_BYTES] = "", issuer[NAME_BYTES] = "", leaf[NAME_BYTES] = "", when[32], extra[64] = "";

    if (X509_STORE_CTX_get0_cert(ctx))
        common_name(X509_get_subject_name(X509_STORE_CTX_get0_cert(ctx)), leaf, sizeof leaf);
    if (cert) {
        common_name(X509_get_subject_name(cert), subject, sizeof subject);
        common_name(X509_get_issuer_name(cert), issuer, sizeof issuer);
    }
    if (cert && code == X509_V_ERR_CERT_HAS_EXPIRED) {
        validity_text(X509_get0_notAfter(cert), when);
        snprintf(extra, sizeof extra, " (at %s)", when);
    } else if (cert && code == X509_V_ERR_CERT_NOT_YET_VALID) {
        validity_text(X509_get0_notBefore(cert), when);
        snprintf(extra, sizeof extra, " (before %s)", when);
    } else if (code == X509_V_ERR_HOSTNAME_MISMATCH || code == X509_V_ERR_IP_ADDRESS_MISMATCH) {
        snprintf(extra, sizeof extra, " (not %.40s, ssl-check-host)", tls_config_host(t->config));
    }
    make_printable(subject);
    make_printable(issuer);
    make_printable(leaf);
    if (X509_STORE_CTX_get_error_depth(ctx) == 0)
        snprintf(t->failure, sizeof t->failure, "the peer's certificate CN=%.100s, issued by CN=%.100s: %s%s",
                 subject, issuer, X509_verify_cert_error_string(code), extra);
    else
        snprintf(t->failure, sizeof t->failure,
                 "the peer's certificate CN=%.100s: its authority CN=%.100s: %s%s", leaf, subject,
                 X509_verify_cert_error_string(code), extra);
}

/* Nodes of a volume are servers and clients with one certificate, so a server's certificate is good for a
 * client, too, as with stock. */
static bool
is_server_as_client(const struct tls *t, X509_STORE_CTX *ctx)
{
    X509 *cert = X509_STORE_CTX_get_current_cert(ctx);

    return X509_STORE_CTX_get_error(ctx) == X509_V_ERR_INVALID_PURPOSE && !t->conn->is_dialled && cert &&
           X509_STORE_CTX_get_error_depth(ctx) == 0 &&
           (X509_get_extended_key_usage(cert) & (XKU_SSL_SERVER | XKU_SSL_CLIENT));
}

static int
verified(int is_good, X509_STORE_CTX *ctx)
{
    SSL *ssl = X509_STORE_CTX_get_ex_data(ctx, SSL_get_ex_data_X509_STORE_CTX_idx());
    struct tls *t = SSL_get_ex_data(ssl, tls_index);

    if (is_good || is_server_as_client(t, ctx))
        return 1;
    describe_verify_failure(t, ctx);
    return 0;
}

static const struct {
    int alert;
    const char *words;
} alert_words[] = {
    {SSL_AD_BAD_CERTIFICATE, "our certificate is not yet valid by the peer's clock, or cannot be verified"},
    {SSL_AD_UNSUPPORTED_CERTIFICATE, "our certificate is not made for this use"},
    {SSL_AD_CERTIFICATE_REVOKED, "our certificate is revoked"},
    {SSL_AD_CERTIFICATE_EXPIRED, "our certificate has expired"},
    {SSL_AD_CERTIFICATE_UNKNOWN, "our certificate is not accepted"},
    {SSL_AD_UNKNOWN_CA, "our certificate's authority is not on the peer's list"},
    {TLS13_AD_CERTIFICATE_REQUIRED, "we have presented no certificate"},
    {SSL_AD_HANDSHAKE_FAILURE, "no common cipher suite, or the peer speaks without TLS"},
    {SSL_AD_PROTOCOL_VERSION, "no common version of TLS (ssl-min-version), or the peer speaks without TLS"},
};

static void
fail_alert_locked(struct tls *t, int alert)
{
    char own[NAME_BYTES] = "";
    X509 *cert = SSL_get_certificate(t->ssl);
    const char *words = "see the peer's log";

    for (unsigned i = 0; i < sizeof alert_words / sizeof alert_words[0]; i++)
        if (alert_words[i].alert == alert)
            words = alert_words[i].words;
    /* A peer of TLS 1.2 answers the refusal of a renegotiation so. */
    if (alert == SSL_AD_HANDSHAKE_FAILURE && !t->conn->is_dialled && atomic_load(&t->phase) == OPEN)
        words = "a renegotiation was refused";
    if (cert)
        common_name(X509_get_subject_name(cert), own, sizeof own);
    make_printable(own);
    fail_locked(t, -EACCES, "the peer refuses us (CN=%.100s): %s (%s, alert %d)", own, words,
                SSL_alert_desc_string_long(alert), alert);
}

static void
fail_eof_locked(struct tls *t)
{
    int err = t->io_error ? t->io_error : -ECONNRESET;

    if (t->has_heard)
        fail_locked(t, err, "the peer ended the connection during the handshake");
    else if (t->conn->is_dialled)
        fail_locked(
            t, err,
            "the peer ended the connection at the first message of TLS: it speaks without TLS, or its "
            "certificate files cannot be loaded");
    else
        fail_locked(t, err, "the peer left before the handshake");
}

/* After a call of OpenSSL has failed for good. */
static void
fail_ssl_locked(struct tls *t, int kind)
{
    unsigned long code = ERR_get_error();
    int reason = ERR_GET_LIB(code) == ERR_LIB_SSL ? ERR_GET_REASON(code) : 0;

    if (reason > ALERT_OFFSET)
        fail_alert_locked(t, reason - ALERT_OFFSET);
    else if (kind == SSL_ERROR_SYSCALL || t->is_eof || t->io_error)
        fail_eof_locked(t);
    else if (reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST)
        fail_locked(t, -EPROTO, "the peer speaks without TLS");
    else if (reason == SSL_R_UNSUPPORTED_PROTOCOL)
        fail_locked(t, -EPROTO, "the peer has no version of TLS that this side allows (ssl-min-version)");
    else if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE)
        fail_locked(t, -EACCES, "the peer has presented no certificate");
    else
        fail_locked(t, -EPROTO, "%s", code ? ERR_reason_error_string(code) : "a failure of OpenSSL");
    ERR_clear_error();
}

/* ---- the socket ------------------------------------------------------------------------------ */

/* Sends ciphertext. 0: none is left, -EAGAIN, or another -errno. */
static int
flush_out_locked(struct tls *t)
{
    while (t->out_start < t->out_end) {
        ssize_t n = send(t->conn->src.fd, t->out->bytes + t->out_start, t->out_end - t->out_start,
                         MSG_NOSIGNAL | MSG_DONTWAIT);

        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return errno == EWOULDBLOCK ? -EAGAIN : -errno;
        t->out_start += (size_t)n;
    }
    iobuf_unref(t->out);
    t->out = NULL;
    t->out_start = t->out_end = 0;
    return 0;
}

static struct iobuf *
out_buffer_get(const struct tls *t, size_t size)
{
    struct iobuf *b = iobuf_get(size);

    b = b || size == OUT_SMALL ? b : iobuf_get(OUT_SMALL);
    return b || !t->conn->is_dialled ? b : iobuf_get_spare();
}

static size_t
out_room_locked(struct tls *t)
{
    if (!t->out)
        t->out = out_buffer_get(t, OUT_SMALL);
    return t->out ? t->out->size - t->out_end : 0;
}

static int
bio_write(BIO *b, const char *data, int count)
{
    struct tls *t = BIO_get_data(b);
    size_t room = out_room_locked(t), n = (size_t)count;

    BIO_clear_retry_flags(b);
    if (!room && t->out && flush_out_locked(t) == 0)
        room = out_room_locked(t);
    if (!room) {
        BIO_set_retry_write(b);
        return -1;
    }
    n = n < room ? n : room;
    memcpy(t->out->bytes + t->out_end, data, n);
    t->out_end += n;
    return (int)n;
}

static int
bio_read(BIO *b, char *to, int room)
{
    struct tls *t = BIO_get_data(b);
    ssize_t n;

    BIO_clear_retry_flags(b);
    do {
        n = recv(t->conn->src.fd, to, (size_t)room, MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n > 0)
        t->has_heard = true;
    else if (n == 0)
        t->is_eof = true;
    else if (errno == EAGAIN || errno == EWOULDBLOCK)
        BIO_set_retry_read(b);
    else
        t->io_error = -errno;
    return (int)n;
}

static long
bio_ctrl(BIO *b, int command, long number, void *pointer)
{
    (void)b;
    (void)number;
    (void)pointer;
    return command == BIO_CTRL_FLUSH;
}

static void
make_method(void)
{
    tls_index = SSL_get_ex_new_index(0, NULL, NULL, NULL, NULL);
    bio_method = BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "kiln");
    if (!bio_method)
        return;
    BIO_meth_set_write(bio_method, bio_write);
    BIO_meth_set_read(bio_method, bio_read);
    BIO_meth_set_ctrl(bio_method, bio_ctrl);
}

/* ---- life ------------------------------------------------------------------------------------ */

static void
deadline_is_over(struct timer *timer)
{
    struct tls *t = caa_container_of(timer, struct tls, deadline);

    pthread_mutex_lock(&t->lock);
    bool is_late = !tls_is_open(t);

    if (is_late)
        fail_locked(t, -ETIMEDOUT, "no end of the handshake within %u s", TLS_HANDSHAKE_MS / 1000);
    pthread_mutex_unlock(&t->lock);
    if (is_late)
        conn_kill(t->conn);
}

struct tls *
tls_new(struct conn *c, struct tls_config *config, bool allows_plain)
{
    struct tls *t = calloc(1, sizeof *t);

    if (!t) {
        tls_config_unref(config);
        return NULL;
    }
    t->conn = c;
    t->config = config;
    t->allows_plain = allows_plain;
    atomic_init(&t->phase, c->is_dialled ? SHAKING : SNIFFING);
    atomic_init(&t->wants_out, c->is_dialled); /* the dialled side speaks first */
    timer_init(&t->deadline, deadline_is_over);
    pthread_mutex_init(&t->lock, NULL);
    return t;
}

void
tls_start(struct tls *t)
{
    if (t->conn->is_dialled)
        timer_start(&t->deadline, TLS_HANDSHAKE_MS);
}

void
tls_stop(struct tls *t)
{
    timer_stop(&t->deadline);
}

void
tls_free(struct tls *t)
{
    SSL_free(t->ssl);
    iobuf_unref(t->out);
    tls_config_unref(t->config);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

/* The certificate must have the name or the address of the called host. False: no memory. */
static bool
set_expected_host(struct tls *t)
{
    const char *host = tls_config_host(t->config);
    X509_VERIFY_PARAM *param = SSL_get0_param(t->ssl);

    if (!host || X509_VERIFY_PARAM_set1_ip_asc(param, host) == 1)
        return true;
    return X509_VERIFY_PARAM_set1_host(param, host, 0) == 1;
}

/* 0 or -errno: the failure is told. */
static int
open_ssl_locked(struct tls *t)
{
    struct reason why = {""};

    pthread_once(&once, make_method);
    SSL_CTX *context = tls_config_context(t->config, &why);
    if (!context) {
        fail_locked(t, -EACCES, "%s", why.text);
        return -EACCES;
    }
    BIO *bio = bio_method ? BIO_new(bio_method) : NULL;
    t->ssl = SSL_new(context);
    SSL_CTX_free(context);
    if (!bio || !t->ssl || SSL_set_ex_data(t->ssl, tls_index, t) != 1 ||
        (t->conn->is_dialled && !set_expected_host(t))) {
        BIO_free(bio);
        fail_locked(t, -ENOMEM, "no memory");
        return -ENOMEM;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_verify(t->ssl, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, verified);
    if (t->conn->is_dialled) {
        SSL_set_connect_state(t->ssl);
    } else {
        SSL_set_accept_state(t->ssl);
        if (tls_config_has_crl(t->config))
            X509_VERIFY_PARAM_set_flags(SSL_get0_param(t->ssl),
                                        X509_V_FLAG_CRL_CHECK | X509_V_FLAG_CRL_CHECK_ALL);
    }
    return 0;
}

/* ---- the handshake --------------------------------------------------------------------------- */

static void
opened_locked(struct tls *t)
{
    X509 *cert = SSL_get0_peer_certificate(t->ssl);
    char peer[CONN_PEER_TEXT_MAX], shown[NAME_BYTES];

    if (cert)
        common_name(X509_get_subject_name(cert), t->name, sizeof t->name);
    memcpy(shown, t->name, sizeof shown);
    make_printable(shown);
    conn_peer_text(t->conn, peer);
    log_event(LOG_INFO, NULL, "tls-open", "TLS connection %s %s, CN=%s (%s, %s)",
              t->conn->is_dialled ? "to" : "from", peer, shown, SSL_get_version(t->ssl),
              SSL_get_cipher_name(t->ssl));
    t->is_fresh = true;
    atomic_store(&t->phase, OPEN);
}

static void
shake_locked(struct tls *t)
{
    if (!t->ssl && open_ssl_locked(t))
        return;
    ERR_clear_error();
    int kind, err, done;

    do {
        done = SSL_do_handshake(t->ssl);
        kind = done == 1 ? SSL_ERROR_NONE : SSL_get_error(t->ssl, done);
        if (kind != SSL_ERROR_NONE && kind != SSL_ERROR_WANT_READ && kind != SSL_ERROR_WANT_WRITE)
            fail_ssl_locked(t, kind);
        err = flush_out_locked(t); /* an alert, too */
    } while (kind == SSL_ERROR_WANT_WRITE && !err);
    atomic_store(&t->wants_out, err == -EAGAIN);
    t->io_error = err && err != -EAGAIN ? err : t->io_error;
    if (err && err != -EAGAIN)
        fail_eof_locked(t);
    else if (done == 1)
        opened_locked(t);
    else
        t->is_dry = true;
}

static struct {
    pthread_mutex_t lock; /* guards all below */
    struct cds_list_head waiting;
    unsigned threads;
    uint16_t by_address[TLS_ADDRESS_SLOTS]; /* accepted connections in the queue: conn_address_slot() */
} steps = {.lock = PTHREAD_MUTEX_INITIALIZER, .waiting = CDS_LIST_HEAD_INIT(steps.waiting)};

static void
step_run(struct tls *t)
{
    struct conn *c = t->conn;

    bool has_left = atomic_load(&c->reader) & READER_HANGUP;

    pthread_mutex_lock(&t->lock);
    if (!t->ssl && has_left) /* no signature for a peer that has left */
        fail_locked(t, -ECONNRESET, "the peer left before the handshake");
    if (atomic_load(&t->phase) == SHAKING)
        shake_locked(t);
    pthread_mutex_unlock(&t->lock);
    worker_post_any(&c->read_job); /* the reader again */
}

/* A connection that this side has opened has no bound. */
static bool
is_bounded(const struct tls *t)
{
    return !t->conn->is_dialled;
}

static unsigned
step_slot(const struct tls *t)
{
    return t->conn->address_slot % TLS_ADDRESS_SLOTS;
}

/* Puts the step into the queue. False: too many of that address wait. */
static bool
queue_step_locked(struct tls *t)
{
    if (is_bounded(t) && steps.by_address[step_slot(t)] >= TLS_WAITING_MAX)
        return false;
    steps.by_address[step_slot(t)] += is_bounded(t);
    cds_list_add_tail(&t->link, &steps.waiting);
    return true;
}

static void *
steps_main(void *arg)
{
    (void)arg;
    pthread_setname_np(pthread_self(), "kiln-tls");
    pthread_mutex_lock(&steps.lock);
    while (!cds_list_empty(&steps.waiting)) {
        struct tls *t = cds_list_first_entry(&steps.waiting, struct tls, link);

        cds_list_del(&t->link);
        steps.by_address[step_slot(t)] -= is_bounded(t);
        pthread_mutex_unlock(&steps.lock);
        step_run(t);
        pthread_mutex_lock(&steps.lock);
    }
    steps.threads--;
    pthread_mutex_unlock(&steps.lock);
    return NULL;
}

/* Without a thread the step runs here: the connection would wait for ever. */
void
tls_hand_over(struct tls *t)
{
    pthread_mutex_lock(&steps.lock); /* held over pthread_create(): only other handshakes wait for it */
    if (steps.threads < TLS_THREADS_MAX && thread_start(steps_main, NULL) == 0)
        steps.threads++;
    bool has_thread = steps.threads > 0, is_queued = has_thread && queue_step_locked(t);

    pthread_mutex_unlock(&steps.lock);
    if (is_queued)
        return;
    if (has_thread) {
        pthread_mutex_lock(&t->lock);
        fail_locked(t, -EBUSY, "%u handshakes of that address wait already", TLS_WAITING_MAX);
        pthread_mutex_unlock(&t->lock);
    }
    step_run(t);
}

void
tls_send_refusal(int fd)
{
    static const unsigned char alert[] = {
        TLS_ALERT_BYTE, 3, 1, 0, 2, SSL3_AL_FATAL, SSL_AD_HANDSHAKE_FAILURE};

    (void)!send(fd, alert, sizeof alert, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static enum tls_progress
sniff(struct tls *t)
{
    unsigned char first;
    ssize_t n;

    do {
        n = recv(t->conn->src.fd, &first, 1, MSG_PEEK | MSG_DONTWAIT);
    } while (n < 0 && errno == EINTR);
    if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        return TLS_WAIT;
    if (n <= 0)
        return TLS_ENDS;
    if (first == TLS_HANDSHAKE_BYTE) {
        atomic_store(&t->phase, SHAKING);
        return TLS_STEP;
    }
    if (t->allows_plain)
        return TLS_PLAIN;
    tls_send_refusal(t->conn->src.fd);
    pthread_mutex_lock(&t->lock);
    fail_locked(t, -EPROTO,
                "the peer speaks without TLS, which this port demands (volume options server.ssl and "
                "client.ssl, or management TLS)");
    pthread_mutex_unlock(&t->lock);
    return TLS_ENDS;
}

enum tls_progress
tls_advance(struct tls *t)
{
    switch (atomic_load(&t->phase)) {
    case SNIFFING:
        return sniff(t);
    case SHAKING:
        if (!t->is_dry)
            return TLS_STEP;
        t->is_dry = false;
        return TLS_WAIT;
    case OPEN:
        if (t->is_fresh) {
            t->is_fresh = false;
            timer_stop(&t->deadline);
            admit_buffers(t->conn, 0);
            send_writable(t->conn);
        }
        return TLS_GO;
    default:
        return TLS_ENDS;
    }
}

/* ---- bytes ----------------------------------------------------------------------------------- */

ssize_t
tls_receive(struct tls *t, void *to, size_t room, bool *is_short)
{
    size_t have = 0, n;
    int kind = SSL_ERROR_NONE;

    pthread_mutex_lock(&t->lock);
    ERR_clear_error();
    while (!t->error && have < room && kind == SSL_ERROR_NONE) {
        if (SSL_read_ex(t->ssl, (char *)to + have, room - have, &n) == 1)
            have += n;
        else
            kind = SSL_get_error(t->ssl, 0);
        if (kind == SSL_ERROR_WANT_WRITE && flush_out_locked(t) == 0)
            kind = SSL_ERROR_NONE;
    }
    bool waits = kind == SSL_ERROR_WANT_READ || kind == SSL_ERROR_WANT_WRITE;

    if (kind == SSL_ERROR_ZERO_RETURN || (kind != SSL_ERROR_NONE && !waits && t->is_eof))
        t->error = -ECONNRESET; /* stock ends without a close_notify */
    else if (kind != SSL_ERROR_NONE && !waits && t->io_error)
        t->error = t->io_error;
    else if (kind != SSL_ERROR_NONE && !waits)
        fail_ssl_locked(t, kind);
    int err = t->owed ? 0 : flush_out_locked(t); /* an alert, or an answer to a key update */

    atomic_store(&t->wants_out, err == -EAGAIN);
    ssize_t result = have ? (ssize_t)have : waits ? -EAGAIN : t->error ? t->error : -EAGAIN;

    pthread_mutex_unlock(&t->lock);
    *is_short = waits;
    return result;
}

/* A place in an array of pieces. */
struct cursor {
    const struct iovec *at;
    size_t left; /* pieces, with the present one */
    size_t used; /* of the present one */
};

static void
cursor_move(struct cursor *c, size_t bytes)
{
    while (bytes) {
        size_t n = c->at->iov_len - c->used;

        n = n < bytes ? n : bytes;
        c->used += n;
        bytes -= n;
        if (c->used == c->at->iov_len) {
            c->at++;
            c->left--;
            c->used = 0;
        }
    }
}

/* The next bytes for one record: where they lie, if the present piece has a whole record of them or is the
 * last; else copied together into `stage`. */
static const char *
cursor_take(struct cursor *c, size_t max, char *stage, size_t *bytes)
{
    const char *here = (const char *)c->at->iov_base + c->used;
    size_t n = c->at->iov_len - c->used;

    if (n >= max || c->left == 1) {
        *bytes = n < max ? n : max;
        cursor_move(c, *bytes);
        return here;
    }
    for (*bytes = 0; *bytes < max && c->left; *bytes += n) {
        n = c->at->iov_len - c->used;
        n = n < max - *bytes ? n : max - *bytes;
        memcpy(stage + *bytes, (const char *)c->at->iov_base + c->used, n);
        cursor_move(c, n);
    }
    return stage;
}

/* The bytes of the message whose record mark is next. Marks do not cross pieces: send.c. */
static size_t
message_size(const struct cursor *c)
{
    uint32_t mark;

    assert(c->at->iov_len - c->used >= sizeof mark);
    memcpy(&mark, (const char *)c->at->iov_base + c->used, sizeof mark);
    return sizeof mark + (__builtin_bswap32(mark) & 0x7fffffffu);
}

/* Until the messages or the room end. No record holds bytes of two messages: a stock peer runs one message
 * and then waits for an event of its socket, although OpenSSL has decrypted the beginning of the next one. */
static void
encrypt_locked(struct tls *t, const struct iovec *iov, size_t count)
{
    struct cursor c = {iov, count, 0};
    char stage[RECORD_BYTES];
    size_t total = 0, n, done;

    for (size_t i = 0; i < count; i++)
        total += iov[i].iov_len;
    t->out = out_buffer_get(t, total <= OUT_SMALL - RECORD_EXTRA ? OUT_SMALL : OUT_LARGE);
    if (!t->out) {
        t->error = -ENOMEM;
        return;
    }
    ERR_clear_error();
    while (c.left && !t->error && t->out->size - t->out_end > RECORD_EXTRA) {
        size_t max = t->out->size - t->out_end - RECORD_EXTRA;

        if (!t->message_left)
            t->message_left = message_size(&c);
        max = max < RECORD_BYTES ? max : RECORD_BYTES;
        const char *from = cursor_take(&c, max < t->message_left ? max : t->message_left, stage, &n);

        if (SSL_write_ex(t->ssl, from, n, &done) != 1 || done != n)
            fail_ssl_locked(t, SSL_get_error(t->ssl, 0));
        t->owed += n;
        t->message_left -= n;
    }
}

ssize_t
tls_send(struct tls *t, const struct iovec *iov, size_t count)
{
    ssize_t result;

    pthread_mutex_lock(&t->lock);
    if (atomic_load(&t->phase) != OPEN && !t->error) {
        pthread_mutex_unlock(&t->lock);
        return atomic_load(&t->phase) == FAILED ? -EPIPE : -EAGAIN;
    }
    int err = t->owed ? 0 : flush_out_locked(t); /* of the reader's */
    if (!err && !t->error && !t->owed)
        encrypt_locked(t, iov, count);
    err = err ? err : flush_out_locked(t);
    result = t->error ? t->error : err ? err : (ssize_t)t->owed;
    if (!err)
        t->owed = 0;
    pthread_mutex_unlock(&t->lock);
    return result;
}

bool
tls_wants_event(const struct tls *t)
{
    return atomic_load_explicit(&t->wants_out, memory_order_relaxed);
}

bool
tls_is_open(const struct tls *t)
{
    return atomic_load(&t->phase) == OPEN;
}

const char *
tls_peer_name(const struct tls *t)
{
    return t->name;
}

void
tls_failure(struct tls *t, char *out, size_t size)
{
    pthread_mutex_lock(&t->lock);
    snprintf(out, size, "%s", t->failure);
    pthread_mutex_unlock(&t->lock);
}
