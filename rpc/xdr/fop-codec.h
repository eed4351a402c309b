/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* fop-codec: arguments and results of every fop to and from the wire, program version 400 (spec: wire 6).
 *
 * Driven by tables: stack/fops.def lists each fop's fields, fop-fields.def says what a field is. A fop needs
 * no code here. thread: one at a time for each struct xdr and each decoded struct; tables are only read.
 */
#ifndef KILN_RPC_XDR_FOP_CODEC_H
#define KILN_RPC_XDR_FOP_CODEC_H

#include "rpc/xdr/xdr.h"
#include "stack/fop.h"

#define FOP_PROGRAM 1298437
#define FOP_PROGRAM_VERSION 400

/* Names of xattrs and of virtual keys. */
#define FOP_KEY_NAME_MAX 4096

/* Bytes of the longest reply without a dict, list or path (rename's), for buffers on the C stack. */
#define FOP_REPLY_FIXED_MAX (8 + 12 + 5 * 148)

/* Fills `call`, which must be zeroed. Strings, dict values and payload point into the record.
 *   0
 *   -EBADMSG  these bytes are not this fop's arguments: GARBAGE_ARGS
 *   -ENOMEM, -ENAMETOOLONG,
 *   -EINVAL   (a NUL inside a name; WRITE's size is not the payload's): answer with that error
 *
 * COMPOUND is always -EBADMSG. */
int fop_decode_call(enum fop fop, struct xdr *x, struct fop_call *call);

/* Writes head and results, without readv's payload. With op_ret < 0 everything but op_ret, op_errno and xdata
 * is zero, in the full layout. 0 or -ENOBUFS. */
int fop_encode_reply(enum fop fop, struct xdr *x, const struct fop_reply *reply);
/* Exactly the bytes fop_encode_reply() will write. */
size_t fop_reply_size(enum fop fop, const struct fop_reply *reply);

/* The client's direction. A payload (writev, put) is counted but not encoded: its bytes follow the call's. 0
 * or -ENOBUFS. */
int fop_encode_call(enum fop fop, struct xdr *x, const struct fop_call *call);
/* Exactly the bytes fop_encode_call() will write. */
size_t fop_call_size(enum fop fop, const struct fop_call *call);
/* `reply` must be zeroed; strings and dict values point into the record. readv: reply->payload points into
 * the record, or to the arena if the payload had to be joined; its length is op_ret even if the record has
 * more bytes. 0, -EBADMSG, -ENOMEM, -EINVAL. */
int fop_decode_reply(enum fop fop, struct xdr *x, struct fop_reply *reply);

/* ---- without bytes --------------------------------------------------------------------------- */

/* Copies the fields that the fop has on the wire, by the bounds of fop_decode_call(), as if `src` had been
 * encoded and decoded; `out` must be zeroed. Texts, lists and dicts are copied to `a`. The payload's pieces
 * still point to the bytes of `src`. 0, -ENOMEM, -ENAMETOOLONG, -EINVAL, or -EBADMSG for COMPOUND. Any
 * thread. */
int fop_copy_call(enum fop fop, const struct fop_call *src, struct fop_call *out, struct arena *a);
/* The same for the results of a reply, by the rules of fop_encode_reply(). readv: out->iobuf is a new
 * reference to the buffer of `src`, to which out->payload points. 0 or -ENOMEM: `out` then has no reference.
 * */
int fop_copy_reply(enum fop fop, const struct fop_reply *src, struct fop_reply *out, struct arena *a);

#endif
