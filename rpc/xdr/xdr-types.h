/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* xdr-types: types shared by several messages: attributes, locks, directory entries, dicts (spec: wire 4, 5).
 *
 * Every type is a pair xdr_get_X, xdr_put_X, and xdr_X_size or an X_XDR_BYTES where the size is fixed. Lists
 * and dicts that are decoded live on the xdr's arena; their texts and values point into the record. Nothing
 * is taken over by a put. Errors are sticky in x->error (-EBADMSG, -ENOMEM; of a put -ENOBUFS): a get then
 * leaves zeros or NULL, and the caller looks once, after the last field. Sizes are bytes. Threads: one at a
 * time for each struct xdr.
 */
#ifndef KILN_RPC_XDR_TYPES_H
#define KILN_RPC_XDR_TYPES_H

#include "rpc/xdr/xdr.h"
#include "stack/fop.h"

/* ---- xdr-iatt.c ------------------------------------------------------------------------------ */
/* Attributes (wire 5.1). */
#define IATT_XDR_BYTES 148
void xdr_get_iatt(struct xdr *x, struct iatt *out);
void xdr_put_iatt(struct xdr *x, const struct iatt *iatt);

/* The form of callbacks (wire 5.2). */
#define OLD_IATT_XDR_BYTES 100
void xdr_get_old_iatt(struct xdr *x, struct iatt *out);
void xdr_put_old_iatt(struct xdr *x, const struct iatt *iatt);

/* The three times as a dict's value (wire 4.2). */
#define MDATA_XDR_BYTES 36
void xdr_get_mdata(struct xdr *x, struct mdata *out);
void xdr_put_mdata(struct xdr *x, const struct mdata *m);

/* STATFS's 11 numbers (wire 5.6). */
#define STATVFS_XDR_BYTES 88
void xdr_get_statvfs(struct xdr *x, struct statvfs *out);
void xdr_put_statvfs(struct xdr *x, const struct statvfs *s);

/* ---- xdr-locks.c ----------------------------------------------------------------------------- */
void xdr_get_flock(struct xdr *x, struct fop_flock *out);
void xdr_put_flock(struct xdr *x, const struct fop_flock *f);
size_t xdr_flock_size(const struct fop_flock *f);

/* wire 5.6 */
#define LEASE_XDR_BYTES 28
void xdr_get_lease(struct xdr *x, struct fop_lease *out);
void xdr_put_lease(struct xdr *x, const struct fop_lease *l);

/* GETACTIVELK's list; NULL: empty (or x->error). */
struct active_lock *xdr_get_active_locks(struct xdr *x);
void xdr_put_active_locks(struct xdr *x, const struct active_lock *list);
size_t xdr_active_locks_size(const struct active_lock *list);

/* ---- xdr-dirents.c; `with_iatt`: READDIRP's form --------------------------------------------- */
struct dirent_entry *xdr_get_dirents(struct xdr *x, bool with_iatt);
void xdr_put_dirents(struct xdr *x, const struct dirent_entry *list, bool with_iatt);
size_t xdr_dirents_size(const struct dirent_entry *list, bool with_iatt);

/* ---- typed-dict.c: fops of version 400 ------------------------------------------------------- */
/* NULL: the NULL dictionary (or x->error). */
struct dict *xdr_get_dict(struct xdr *x);
void xdr_put_dict(struct xdr *x, const struct dict *d);
size_t xdr_dict_size(const struct dict *d);

/* ---- old-dict.c: handshake, callbacks, brick operations: an opaque with its own contents ----- */
struct dict *xdr_get_old_dict(struct xdr *x); /* a zero-length opaque gives NULL */
void xdr_put_old_dict(struct xdr *x, const struct dict *d);
size_t xdr_old_dict_size(const struct dict *d); /* of the whole opaque */

#endif
