/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* dump-program: GF-DUMP, by which a client asks for its peer's RPC programs (spec: wire 2.3). */
#ifndef KILN_RPC_XDR_DUMP_PROGRAM_H
#define KILN_RPC_XDR_DUMP_PROGRAM_H

#include "rpc/xdr/xdr.h"

#define DUMP_PROGRAM 123451501
#define DUMP_PROGRAM_VERSION 1
enum { DUMP_NULL, DUMP_DUMP, DUMP_PING, DUMP_PROCEDURE_COUNT };

#define DUMP_GFS_ID 0xcaed /* sent by stock clients; servers ignore the number */
#define DUMP_NAME_MAX 255

struct dump_entry {
    struct dump_entry *next;
    const char *name;
    uint64_t number, version;
};

struct dump_reply {
    int32_t op_ret, op_errno;
    struct dump_entry *programs;
};

/* By the rules of xdr-types.h (owner, errors, threads). The request is one number, which servers ignore. */
void xdr_put_dump_call(struct xdr *x);
void xdr_get_dump_call(struct xdr *x);
void xdr_put_dump_reply(struct xdr *x, const struct dump_reply *r);
void xdr_get_dump_reply(struct xdr *x, struct dump_reply *out); /* entries on the arena */

#endif
