/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* handshake-program: GlusterFS Handshake: login, and a few questions of old clients (spec:
 * wire 3.2, 3.3, 3.7). Pairs of put and get, by the rules of xdr-types.h (owner, errors, threads). */
#ifndef KILN_RPC_XDR_HANDSHAKE_PROGRAM_H
#define KILN_RPC_XDR_HANDSHAKE_PROGRAM_H

#include "rpc/xdr/xdr-types.h"

#define HANDSHAKE_PROGRAM 14398633
#define HANDSHAKE_PROGRAM_VERSION 2
enum {
    HANDSHAKE_NULL,
    HANDSHAKE_SETVOLUME,
    HANDSHAKE_GETSPEC,
    HANDSHAKE_PING,
    HANDSHAKE_SET_LK_VER,
    HANDSHAKE_PROCEDURE_COUNT, /* of those a brick implements */
    HANDSHAKE_GET_VOLUME_INFO = 6 /* at glusterd's port */
};

#define HANDSHAKE_TEXT_MAX 4096

/* SETVOLUME's arguments are one old dict: xdr_get_old_dict(), xdr_put_old_dict(). The reply to SETVOLUME, and
 * with an absent dict the reply to NULL and to both programs' PING: */
struct common_reply {
    int32_t op_ret, op_errno;
    struct dict *dict;
};
#define COMMON_REPLY_BYTES_MIN 12
/* An absent dict is written as an empty opaque. */
void xdr_put_common_reply(struct xdr *x, const struct common_reply *r);
void xdr_get_common_reply(struct xdr *x, struct common_reply *out);
static inline size_t
xdr_common_reply_size(const struct common_reply *r)
{
    return 8 + xdr_old_dict_size(r->dict);
}

/* GETSPEC: which volfile. */
struct getspec_call {
    uint32_t flags;
    const char *key;
    struct dict *xdata;
};
/* `key` at most HANDSHAKE_TEXT_MAX bytes. */
void xdr_put_getspec_call(struct xdr *x, const struct getspec_call *c);
void xdr_get_getspec_call(struct xdr *x, struct getspec_call *out);

#define GETSPEC_TEXT_MAX (4u << 20)
struct getspec_reply {
    int32_t op_ret; /* bytes of the text, or -1 */
    int32_t op_errno;
    const char *spec;
    struct dict *xdata;
};
/* `spec` at most GETSPEC_TEXT_MAX bytes. */
void xdr_put_getspec_reply(struct xdr *x, const struct getspec_reply *r);
void xdr_get_getspec_reply(struct xdr *x, struct getspec_reply *out);

/* GET_VOLUME_INFO: the volume's id, for libgfapi. The argument is an old dict with "flags" and "volname"; the
 * dict of the reply has "volume_id", the id in text. */
struct volume_info_reply {
    int32_t op_ret, op_errno;
    const char *op_errstr;
    struct dict *dict;
};
void xdr_put_volume_info_reply(struct xdr *x, const struct volume_info_reply *r);

/* Sent by clients before version 6: the brick answers with the number of the request. */
struct set_lk_ver {
    const char *uid;
    int32_t version;
};
/* The request, and the reply: 0, 0, `version`. */
void xdr_get_set_lk_ver_call(struct xdr *x, struct set_lk_ver *out);
void xdr_put_set_lk_ver_reply(struct xdr *x, int32_t version);

#endif
