/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* callback-program: calls from the brick to its client, which sends no replies (spec: wire 7). CHILD_UP and
 * CHILD_DOWN have no arguments. The arguments of the other calls are pairs of put and get, by the rules of
 * xdr-types.h (owner, errors, threads); X_size is the size of the arguments in bytes. */
#ifndef KILN_RPC_XDR_CALLBACK_PROGRAM_H
#define KILN_RPC_XDR_CALLBACK_PROGRAM_H

#include "rpc/xdr/xdr-types.h"

#define CALLBACK_PROGRAM 52743234
#define CALLBACK_PROGRAM_VERSION 1
enum {
    CALLBACK_NULL,
    CALLBACK_FETCHSPEC,
    CALLBACK_INO_FLUSH,
    CALLBACK_EVENT_NOTIFY,
    CALLBACK_GET_SNAPS,
    CALLBACK_CACHE_INVALIDATION,
    CALLBACK_CHILD_UP,
    CALLBACK_CHILD_DOWN,
    CALLBACK_RECALL_LEASE,
    CALLBACK_STATEDUMP,
    CALLBACK_INODELK_CONTENTION,
    CALLBACK_ENTRYLK_CONTENTION,
};

struct cache_invalidation {
    struct gfid gfid;    /* as 36 characters on the wire */
    uint32_t event_type; /* 1 */
    uint32_t flags;      /* wire 7 */
    uint32_t expire_seconds;
    struct iatt stat, parent, old_parent; /* zero where of no use */
    struct dict *xdata;
};
#define CACHE_INVALIDATION_BYTES 356 /* without xdata's contents */
/* Another client has changed an object. */
void xdr_put_cache_invalidation(struct xdr *x, const struct cache_invalidation *c);
void xdr_get_cache_invalidation(struct xdr *x, struct cache_invalidation *out);

struct inodelk_contention {
    struct gfid gfid;
    struct fop_flock flock; /* the held lock, as the holder sent it */
    uint32_t pid;           /* of the holder's credential */
    const char *domain;
    struct dict *xdata;
};
/* Another client waits for a range that the callee has locked. */
void xdr_put_inodelk_contention(struct xdr *x, const struct inodelk_contention *c);
void xdr_get_inodelk_contention(struct xdr *x, struct inodelk_contention *out);
size_t xdr_inodelk_contention_size(const struct inodelk_contention *c);

struct entrylk_contention {
    struct gfid gfid;
    uint32_t type, pid;
    const char *name; /* "": the whole directory */
    const char *domain;
    struct dict *xdata;
};
/* Another client waits for a name that the callee has locked. */
void xdr_put_entrylk_contention(struct xdr *x, const struct entrylk_contention *c);
void xdr_get_entrylk_contention(struct xdr *x, struct entrylk_contention *out);
size_t xdr_entrylk_contention_size(const struct entrylk_contention *c);

struct recall_lease {
    struct gfid gfid;
    uint32_t lease_type; /* to downgrade to */
    uint8_t tid[16];
    struct dict *xdata;
};
/* The callee shall downgrade its lease to lease_type. */
void xdr_put_recall_lease(struct xdr *x, const struct recall_lease *c);
void xdr_get_recall_lease(struct xdr *x, struct recall_lease *out);

#endif
