/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* tls-options: the options transport.socket.ssl-*, which protocol/server and protocol/client have in common
 * (gluster11 4.2). thread: any; nothing here is shared. */
#ifndef KILN_TRANSPORT_TLS_OPTIONS_H
#define KILN_TRANSPORT_TLS_OPTIONS_H

#include "data/option.h"
#include "rpc/transport/tls-config.h"

struct tls_options {
    bool is_on;
    char *own_cert, *private_key, *ca_list, *crl_path, *cipher_list, *dh_param, *ec_curve;
    int64_t depth;
    int min_version;
};

/* The rows of an option table; before OPT_PREFIX("transport."). `member` is a struct tls_options. */
#define TLS_OPTIONS(type, member)                                                                            \
    OPT_BOOL(type, member.is_on, "transport.socket.ssl-enabled", "off"),                                     \
        OPT_STR(type, member.own_cert, "transport.socket.ssl-own-cert", NULL),                               \
        OPT_STR(type, member.private_key, "transport.socket.ssl-private-key", NULL),                         \
        OPT_STR(type, member.ca_list, "transport.socket.ssl-ca-list", NULL),                                 \
        OPT_STR(type, member.crl_path, "transport.socket.ssl-crl-path", NULL),                               \
        OPT_STR(type, member.cipher_list, "transport.socket.ssl-cipher-list", NULL),                         \
        OPT_STR(type, member.dh_param, "transport.socket.ssl-dh-param", NULL),                               \
        OPT_STR(type, member.ec_curve, "transport.socket.ssl-ec-curve", NULL),                               \
        OPT_INT(type, member.depth, "transport.socket.ssl-cert-depth", OPT_DEFAULT(TLS_DEPTH_DEFAULT), 0,    \
                100),                                                                                        \
        OPT_ENUM(type, member.min_version, "transport.socket.ssl-min-version", "1.2", tls_versions)

/* The keys of these options, for xlator_type.at_start: a change takes effect at the next start. */
#define TLS_OPTION_KEYS                                                                                      \
    "transport.socket.ssl-enabled", "transport.socket.ssl-own-cert", "transport.socket.ssl-private-key",     \
        "transport.socket.ssl-ca-list", "transport.socket.ssl-crl-path", "transport.socket.ssl-cipher-list", \
        "transport.socket.ssl-dh-param", "transport.socket.ssl-ec-curve", "transport.socket.ssl-cert-depth", \
        "transport.socket.ssl-min-version"

/* As tls_config_new(). `host`: as in tls_files. */
static inline struct tls_config *
tls_options_config(const struct tls_options *o, const char *host)
{
    return tls_config_new(&(struct tls_files){.own_cert = o->own_cert,
                                              .private_key = o->private_key,
                                              .ca_list = o->ca_list,
                                              .crl_path = o->crl_path,
                                              .cipher_list = o->cipher_list,
                                              .dh_param = o->dh_param,
                                              .ec_curve = o->ec_curve,
                                              .depth = o->depth,
                                              .min_version = o->min_version,
                                              .host = host});
}

#endif
