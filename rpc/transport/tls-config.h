/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tls-config: the certificate, key and authorities of TLS connections, and the OpenSSL context made of them.
 *
 * A config names files. Its context is made at the first connection, used by all connections of the config,
 * and made anew when a connection begins after one of the files has changed. If the changed files cannot be
 * loaded, the former context stays in use and the error is logged: files that are replaced one after another
 * must not end a service. Connections keep the context they began with.
 *
 * thread: any. Functions that read files say so in their comments, and must not run on a worker. */
#ifndef KILN_TRANSPORT_TLS_CONFIG_H
#define KILN_TRANSPORT_TLS_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

struct reason;
struct tls_config;

/* As the volfile options transport.socket.ssl-*. NULL: the default, or no such file. */
struct tls_files {
    const char *own_cert;    /* PEM, the leaf first, then its intermediates */
    const char *private_key; /* PEM, without a passphrase */
    const char *ca_list;     /* PEM: each certificate in it is an accepted authority */
    const char *crl_path;    /* PEM file, or folder of PEM files NAME.rNUMBER */
    const char *cipher_list; /* of TLS 1.2, as openssl-ciphers(1) */
    const char *dh_param;    /* PEM; without it no suite with finite-field Diffie-Hellman is offered */
    const char *ec_curve;    /* one or more groups, separated by ':' */
    int64_t depth;           /* largest number of intermediates between a leaf and its authority */
    int min_version;         /* index into tls_versions: no older version is spoken */
    const char *host;        /* name or address that the certificate of a dialled peer must have; NULL: any */
};
/* 1.2, 1.3, NULL. */
extern const char *const tls_versions[];
#define TLS_DEPTH_DEFAULT 1

/* Makes a config with one reference, the caller's. Strings are copied; no file is read. NULL: no memory. */
struct tls_config *tls_config_new(const struct tls_files *files);
/* Takes another reference and returns `c`. */
struct tls_config *tls_config_ref(struct tls_config *c);
/* Drops a reference; NULL is allowed. */
void tls_config_unref(struct tls_config *c);
/* True if both configs name the same files and values. */
bool tls_config_is_same(const struct tls_config *a, const struct tls_config *b);
/* The host of tls_files, lent as long as the config lives. */
const char *tls_config_host(const struct tls_config *c);
/* Loads the files, unless they are loaded and unchanged. 0 or -errno with a reason that names the file.
 * Reads files. */
int tls_config_load(struct tls_config *c, struct reason *why);

/* Management TLS: connections to and from port 24007 (gluster11 4.1). */
#define TLS_MANAGEMENT_PORT 24007
#define TLS_SECURE_ACCESS "/var/lib/glusterd/secure-access"
/* Reads the value of --secure-mgmt. 0 or -EINVAL. */
int tls_management_word(const char *text, bool *is_on);
/* Turns management TLS on if `given` and `is_on` say so, or if nothing is given and the file
 * TLS_SECURE_ACCESS exists. Once, in the main thread, before the first connection. 0 or -errno with a
 * reason. Reads files. */
int tls_management_begin(bool given, bool is_on, struct reason *why);
/* The config of management connections, lent for the life of the process; NULL: plain connections. */
struct tls_config *tls_management(void);

#endif
