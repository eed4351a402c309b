/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tls-internal: the part of OpenSSL that tls.c and tls-config.c share. Only these two files include
 * OpenSSL. */
#ifndef KILN_TRANSPORT_TLS_INTERNAL_H
#define KILN_TRANSPORT_TLS_INTERNAL_H

#include <openssl/ssl.h>
#include <stdbool.h>

#include "rpc/transport/tls-config.h"

/* The context of the files as they are now, with a reference that becomes the caller's. NULL with a reason.
 * Reads files. */
SSL_CTX *tls_config_context(struct tls_config *c, struct reason *why);
bool tls_config_has_crl(const struct tls_config *c);

#endif
