/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
#include "rpc/xdr/fop-codec.h"

#include "mem/iobuf.h"
#include "rpc/xdr/open-flags.h"
#include "rpc/xdr/xdr-types.h"

/* ---- the tables ------------------------------------------------------------------------------ */

enum call_field {
    CALL_END,
#define CALL(field, type, member) CALL_##field,
#define CALL_OWN(field) CALL_##field,
#define REPLY(field, type, member)
#define REPLY_OWN(field)
#include "rpc/xdr/fop-fields.def"
#undef CALL
#undef CALL_OWN
#undef REPLY
#undef REPLY_OWN
};

enum reply_field {
    REPLY_END,
#define CALL(field, type, member)
#define CALL_OWN(field)
#define REPLY(field, type, member) REPLY_##field,
#define REPLY_OWN(field) REPLY_##field,
#include "rpc/xdr/fop-fields.def"
#undef CALL
#undef CALL_OWN
#undef REPLY
#undef REPLY_OWN
};

enum { FIELDS_MAX = 12 }; /* with the end */

#define LIST(...) __VA_ARGS__

static const uint8_t call_fields[FOP_COUNT][FIELDS_MAX] = {
#define W(field) CALL_##field,
#define FOP(name, wire, profile, priority, traits, req, rep) [FOP_##name] = {LIST req CALL_END},
#include "stack/fops.def"
#undef FOP
#undef W
};

static const uint8_t reply_fields[FOP_COUNT][FIELDS_MAX] = {
#define W(field) REPLY_##field,
#define FOP(name, wire, profile, priority, traits, req, rep) [FOP_##name] = {LIST rep REPLY_END},
#include "stack/fops.def"
#undef FOP
#undef W
};

/* ---- field types: get, put, size ------------------------------------------------------------- */
/* clang-format off */

static inline void get_u32(struct xdr *x, uint32_t *v) { *v = xdr_get_u32(x); }
static inline void put_u32(struct xdr *x, const uint32_t *v) { xdr_put_u32(x, *v); }
static inline size_t size_u32(const uint32_t *v) { (void)v; return 4; }

static inline void get_i32(struct xdr *x, int32_t *v) { *v = xdr_get_i32(x); }
static inline void put_i32(struct xdr *x, const int32_t *v) { xdr_put_i32(x, *v); }
static inline size_t size_i32(const int32_t *v) { (void)v; return 4; }

static inline void get_u64(struct xdr *x, uint64_t *v) { *v = xdr_get_u64(x); }
static inline void put_u64(struct xdr *x, const uint64_t *v) { xdr_put_u64(x, *v); }
static inline size_t size_u64(const uint64_t *v) { (void)v; return 8; }

static inline void get_i64(struct xdr *x, int64_t *v) { *v = xdr_get_i64(x); }
static inline void put_i64(struct xdr *x, const int64_t *v) { xdr_put_i64(x, *v); }
static inline size_t size_i64(const int64_t *v) { (void)v; return 8; }

static inline void get_narrow(struct xdr *x, uint64_t *v) { *v = xdr_get_u32(x); }
static inline void put_narrow(struct xdr *x, const uint64_t *v) { xdr_put_u32(x, (uint32_t)*v); }
static inline size_t size_narrow(const uint64_t *v) { (void)v; return 4; }

static inline void get_flag64(struct xdr *x, uint32_t *v) { *v = xdr_get_u64(x) != 0; }
static inline void put_flag64(struct xdr *x, const uint32_t *v) { xdr_put_u64(x, *v); }
static inline size_t size_flag64(const uint32_t *v) { (void)v; return 8; }

static inline void get_open_flags(struct xdr *x, uint32_t *v) { *v = open_flags_from_wire(xdr_get_u32(x)); }
static inline void put_open_flags(struct xdr *x, const uint32_t *v) { xdr_put_u32(x, open_flags_to_wire(*v)); }
static inline size_t size_open_flags(const uint32_t *v) { (void)v; return 4; }

static inline void get_gfid(struct xdr *x, struct gfid *g) { xdr_get_gfid(x, g); }
static inline void put_gfid(struct xdr *x, const struct gfid *g) { xdr_put_gfid(x, g); }
static inline size_t size_gfid(const struct gfid *g) { (void)g; return GFID_BYTES; }

/* Texts differ only in their bounds. */
static inline void put_text(struct xdr *x, const char *const *s) { xdr_put_string(x, *s); }
static inline size_t size_text(const char *const *s) { return xdr_string_size(*s); }

static inline void get_name(struct xdr *x, const char **s) { xdr_get_string(x, s, FOP_NAME_MAX, -ENAMETOOLONG); }
#define put_name put_text
#define size_name size_text
static inline void get_key(struct xdr *x, const char **s) { xdr_get_string(x, s, FOP_KEY_NAME_MAX, -ENAMETOOLONG); }
#define put_key put_text
#define size_key size_text
static inline void get_linkname(struct xdr *x, const char **s) { xdr_get_string(x, s, FOP_LINKNAME_MAX, -ENAMETOOLONG); }
#define put_linkname put_text
#define size_linkname size_text
static inline void get_domain(struct xdr *x, const char **s) { xdr_get_string(x, s, FOP_LOCK_DOMAIN_MAX, -EINVAL); }
#define put_domain put_text
#define size_domain size_text

static inline void get_iatt(struct xdr *x, struct iatt *v) { xdr_get_iatt(x, v); }
static inline void put_iatt(struct xdr *x, const struct iatt *v) { xdr_put_iatt(x, v); }
static inline size_t size_iatt(const struct iatt *v) { (void)v; return IATT_XDR_BYTES; }

static inline void get_statvfs(struct xdr *x, struct statvfs *v) { xdr_get_statvfs(x, v); }
static inline void put_statvfs(struct xdr *x, const struct statvfs *v) { xdr_put_statvfs(x, v); }
static inline size_t size_statvfs(const struct statvfs *v) { (void)v; return STATVFS_XDR_BYTES; }

static inline void get_flock(struct xdr *x, struct fop_flock *v) { xdr_get_flock(x, v); }
static inline void put_flock(struct xdr *x, const struct fop_flock *v) { xdr_put_flock(x, v); }
static inline size_t size_flock(const struct fop_flock *v) { return xdr_flock_size(v); }

static inline void get_lease(struct xdr *x, struct fop_lease *v) { xdr_get_lease(x, v); }
static inline void put_lease(struct xdr *x, const struct fop_lease *v) { xdr_put_lease(x, v); }
static inline size_t size_lease(const struct fop_lease *v) { (void)v; return LEASE_XDR_BYTES; }

static inline void get_locks(struct xdr *x, struct active_lock **v) { *v = xdr_get_active_locks(x); }
static inline void put_locks(struct xdr *x, struct active_lock *const *v) { xdr_put_active_locks(x, *v); }
static inline size_t size_locks(struct active_lock *const *v) { return xdr_active_locks_size(*v); }

static inline void get_dict(struct xdr *x, struct dict **v) { *v = xdr_get_dict(x); }
static inline void put_dict(struct xdr *x, struct dict *const *v) { xdr_put_dict(x, *v); }
static inline size_t size_dict(struct dict *const *v) { return xdr_dict_size(*v); }

static inline void get_dirents(struct xdr *x, struct dirent_entry **v) { *v = xdr_get_dirents(x, false); }
static inline void put_dirents(struct xdr *x, struct dirent_entry *const *v) { xdr_put_dirents(x, *v, false); }
static inline size_t size_dirents(struct dirent_entry *const *v) { return xdr_dirents_size(*v, false); }
static inline void get_dirents_iatt(struct xdr *x, struct dirent_entry **v) { *v = xdr_get_dirents(x, true); }
static inline void put_dirents_iatt(struct xdr *x, struct dirent_entry *const *v) { xdr_put_dirents(x, *v, true); }
static inline size_t size_dirents_iatt(struct dirent_entry *const *v) { return xdr_dirents_size(*v, true); }

/* clang-format on */
/* ---- fields that are not one member ---------------------------------------------------------- */

static bool
has_payload(enum fop fop)
{
    return fop == FOP_writev || fop == FOP_put;
}

/* Takes the rest of the record as payload, in the pieces in which the record was received. */
static void
take_payload(struct xdr *x, struct fop_call *c)
{
    if (x->error)
        return;
    if (xdr_left(x))
        c->payload[c->payload_count++] = (struct iovec){x->at, xdr_left(x)};
    for (int i = 0; i < x->more_count; i++) {
        size_t skip = i == 0 ? x->more_skip : 0;

        if (x->more[i].iov_len == skip)
            continue;
        if (c->payload_count == FOP_PAYLOAD_IOVS) {
            xdr_fail(x, -EINVAL);
            return;
        }
        c->payload[c->payload_count++] =
            (struct iovec){(char *)x->more[i].iov_base + skip, x->more[i].iov_len - skip};
    }
    for (int i = 0; i < c->payload_count; i++)
        c->payload_bytes += c->payload[i].iov_len;
    x->at = x->end;
    x->more_count = 0;
    /* A stock brick writes the bytes that it received, but no stock client sends another size (wire 6.4). */
    if (c->payload_bytes != c->size)
        xdr_fail(x, -EINVAL);
}

static void
put_rchecksum(struct xdr *x, const struct fop_reply *r)
{
    xdr_put_u32(x, r->checksum_flags);
    xdr_put_u32(x, r->weak);
    xdr_put_opaque(x, r->strong, sizeof r->strong);
}

static void
get_rchecksum(struct xdr *x, struct fop_reply *r)
{
    const void *strong;
    uint32_t len;

    r->checksum_flags = xdr_get_u32(x);
    r->weak = xdr_get_u32(x);
    strong = xdr_get_opaque(x, sizeof r->strong, &len);
    if (strong)
        memcpy(r->strong, strong, len);
}

/* ---- calls ----------------------------------------------------------------------------------- */

int
fop_decode_call(enum fop fop, struct xdr *x, struct fop_call *c)
{
    c->fop = fop;
    if (fop == FOP_compound)
        return -EBADMSG;
    x->dicts_are_sized = has_payload(fop);
    if (x->more_count && !has_payload(fop))
        xdr_pull(x, xdr_left_total(x));
    for (const uint8_t *field = call_fields[fop]; *field != CALL_END; field++) {
        switch ((enum call_field)field[0]) {
#define CALL(field, type, member)                                                                            \
    case CALL_##field:                                                                                       \
        get_##type(x, &c->member);                                                                           \
        break;
#define CALL_OWN(field)
#define REPLY(field, type, member)
#define REPLY_OWN(field)
#include "rpc/xdr/fop-fields.def"
#undef CALL
        case CALL_PAYLOAD:
            take_payload(x, c);
            break;
        case CALL_END:
            break;
        }
    }
    return x->error;
}

int
fop_encode_call(enum fop fop, struct xdr *x, const struct fop_call *c)
{
    for (const uint8_t *field = call_fields[fop]; *field != CALL_END; field++) {
        switch ((enum call_field)field[0]) {
#define CALL(field, type, member)                                                                            \
    case CALL_##field:                                                                                       \
        put_##type(x, &c->member);                                                                           \
        break;
#include "rpc/xdr/fop-fields.def"
#undef CALL
        case CALL_PAYLOAD: /* sent by reference */
        case CALL_END:
            break;
        }
    }
    return x->error;
}

size_t
fop_call_size(enum fop fop, const struct fop_call *c)
{
    size_t n = 0;

    for (const uint8_t *field = call_fields[fop]; *field != CALL_END; field++) {
        switch ((enum call_field)field[0]) {
#define CALL(field, type, member)                                                                            \
    case CALL_##field:                                                                                       \
        n += size_##type(&c->member);                                                                        \
        break;
#include "rpc/xdr/fop-fields.def"
#undef CALL
        case CALL_PAYLOAD:
            n += c->payload_bytes;
            break;
        case CALL_END:
            break;
        }
    }
    return n;
}

/* ---- replies --------------------------------------------------------------------------------- */

#undef REPLY
#undef REPLY_OWN
#define CALL(field, type, member)

static bool
is_xdata_in_head(enum fop fop)
{
    return fop != FOP_readv;
}

/* Returns the results to encode. A failed call's results are zeros even if a layer has filled the reply, and
 * its dict of xattrs or counters is empty, not NULL. */
static const struct fop_reply *
results_of(const struct fop_reply *r)
{
    static struct dict empty;
    static const struct fop_reply none = {.dict = &empty};

    return r->op_ret < 0 ? &none : r;
}

int
fop_encode_reply(enum fop fop, struct xdr *x, const struct fop_reply *reply)
{
    const struct fop_reply *r = results_of(reply);

    xdr_put_i32(x, reply->op_ret);
    xdr_put_i32(x, reply->op_errno);
    if (fop == FOP_null) {
        xdr_put_u32(x, 0); /* an old dict, absent */
        return x->error;
    }
    if (is_xdata_in_head(fop))
        xdr_put_dict(x, reply->xdata);
    for (const uint8_t *field = reply_fields[fop]; *field != REPLY_END; field++) {
        switch ((enum reply_field)field[0]) {
#define REPLY(field, type, member)                                                                           \
    case REPLY_##field:                                                                                      \
        put_##type(x, &r->member);                                                                           \
        break;
#define REPLY_OWN(field)
#include "rpc/xdr/fop-fields.def"
#undef REPLY
        case REPLY_XDATA_HERE:
            xdr_put_dict(x, reply->xdata);
            break;
        case REPLY_SIZE_OF_PAYLOAD:
            xdr_put_i32(x, r->op_ret);
            break;
        case REPLY_RCHECKSUM:
            put_rchecksum(x, r);
            break;
        case REPLY_PAYLOAD:
        case REPLY_END:
            break;
        }
    }
    return x->error;
}

size_t
fop_reply_size(enum fop fop, const struct fop_reply *reply)
{
    const struct fop_reply *r = results_of(reply);
    size_t n = fop == FOP_null ? 12 : 8;

    if (fop != FOP_null && is_xdata_in_head(fop))
        n += xdr_dict_size(reply->xdata);
    for (const uint8_t *field = reply_fields[fop]; *field != REPLY_END; field++) {
        switch ((enum reply_field)field[0]) {
#define REPLY(field, type, member)                                                                           \
    case REPLY_##field:                                                                                      \
        n += size_##type(&r->member);                                                                        \
        break;
#include "rpc/xdr/fop-fields.def"
#undef REPLY
        case REPLY_XDATA_HERE:
            n += xdr_dict_size(reply->xdata);
            break;
        case REPLY_SIZE_OF_PAYLOAD:
            n += 4;
            break;
        case REPLY_RCHECKSUM:
            n += 4 + 4 + xdr_opaque_size(sizeof r->strong);
            break;
        case REPLY_PAYLOAD:
        case REPLY_END:
            break;
        }
    }
    return n;
}

/* The record may bring more bytes than op_ret says, never fewer. */
static void
get_payload(struct xdr *x, struct fop_reply *r)
{
    size_t n = r->op_ret > 0 ? (size_t)r->op_ret : 0;

    if (x->more_count)
        xdr_pull(x, n);
    r->payload = (struct iovec){xdr_take(x, n), n};
    if (!r->payload.iov_base)
        r->payload.iov_len = 0;
}

int
fop_decode_reply(enum fop fop, struct xdr *x, struct fop_reply *r)
{
    x->dicts_are_sized = fop == FOP_readv;
    if (x->more_count && fop != FOP_readv)
        xdr_pull(x, xdr_left_total(x));
    r->op_ret = xdr_get_i32(x);
    r->op_errno = xdr_get_i32(x);
    if (fop == FOP_null)
        return x->error;
    if (is_xdata_in_head(fop))
        r->xdata = xdr_get_dict(x);
    for (const uint8_t *field = reply_fields[fop]; *field != REPLY_END; field++) {
        switch ((enum reply_field)field[0]) {
#define REPLY(field, type, member)                                                                           \
    case REPLY_##field:                                                                                      \
        get_##type(x, &r->member);                                                                           \
        break;
#include "rpc/xdr/fop-fields.def"
#undef REPLY
        case REPLY_XDATA_HERE:
            r->xdata = xdr_get_dict(x);
            break;
        case REPLY_SIZE_OF_PAYLOAD:
            (void)xdr_get_u32(x); /* op_ret is what counts (wire 6.3) */
            break;
        case REPLY_PAYLOAD:
            get_payload(x, r);
            break;
        case REPLY_RCHECKSUM:
            get_rchecksum(x, r);
            break;
        case REPLY_END:
            break;
        }
    }
    return x->error;
}

/* ---- copies ---------------------------------------------------------------------------------- */
#undef CALL
#undef CALL_OWN
#undef REPLY
#undef REPLY_OWN

/* clang-format off */
static int copy_u32(uint32_t *to, const uint32_t *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_i32(int32_t *to, const int32_t *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_u64(uint64_t *to, const uint64_t *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_i64(int64_t *to, const int64_t *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_narrow(uint64_t *to, const uint64_t *v, struct arena *a) { (void)a; *to = (uint32_t)*v; return 0; }
static int copy_flag64(uint32_t *to, const uint32_t *v, struct arena *a) { (void)a; *to = *v != 0; return 0; }
static int copy_gfid(struct gfid *to, const struct gfid *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_iatt(struct iatt *to, const struct iatt *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_statvfs(struct statvfs *to, const struct statvfs *v, struct arena *a) { (void)a; *to = *v; return 0; }
static int copy_lease(struct fop_lease *to, const struct fop_lease *v, struct arena *a) { (void)a; *to = *v; return 0; }
/* clang-format on */

/* Keeps only the flags that the wire has. */
static int
copy_open_flags(uint32_t *to, const uint32_t *v, struct arena *a)
{
    (void)a;
    *to = open_flags_from_wire(open_flags_to_wire(*v));
    return 0;
}

static int
copy_text(const char **to, const char *text, struct arena *a, size_t max, int err)
{
    size_t len = text ? strlen(text) : 0;

    if (len > max)
        return err;
    *to = arena_dup(a, text ? text : "", len);
    return *to ? 0 : -ENOMEM;
}

static int
copy_name(const char **to, const char *const *v, struct arena *a)
{
    return copy_text(to, *v, a, FOP_NAME_MAX, -ENAMETOOLONG);
}

static int
copy_key(const char **to, const char *const *v, struct arena *a)
{
    return copy_text(to, *v, a, FOP_KEY_NAME_MAX, -ENAMETOOLONG);
}

static int
copy_linkname(const char **to, const char *const *v, struct arena *a)
{
    return copy_text(to, *v, a, FOP_LINKNAME_MAX, -ENAMETOOLONG);
}

static int
copy_domain(const char **to, const char *const *v, struct arena *a)
{
    return copy_text(to, *v, a, FOP_LOCK_DOMAIN_MAX, -EINVAL);
}

static int
copy_flock(struct fop_flock *to, const struct fop_flock *v, struct arena *a)
{
    *to = *v;
    if (v->owner.len > LK_OWNER_MAX)
        return -EBADMSG;
    to->owner.bytes = v->owner.len ? (const uint8_t *)arena_dup(a, v->owner.bytes, v->owner.len) : NULL;
    return v->owner.len && !to->owner.bytes ? -ENOMEM : 0;
}

static int
copy_locks(struct active_lock **to, struct active_lock *const *v, struct arena *a)
{
    for (const struct active_lock *l = *v; l; l = l->next, to = &(*to)->next) {
        struct active_lock *copy = arena_alloc(a, sizeof *copy);
        int err = copy ? 0 : -ENOMEM;

        if (err)
            return err;
        *copy = (struct active_lock){.flags = l->flags};
        *to = copy;
        err = copy_flock(&copy->flock, &l->flock, a);
        err = err ? err : copy_text(&copy->client_uid, l->client_uid, a, FOP_KEY_NAME_MAX, -EBADMSG);
        if (err)
            return err;
    }
    *to = NULL;
    return 0;
}

static int
copy_dict(struct dict **to, struct dict *const *v, struct arena *a)
{
    int err = 0;

    *to = dict_dup(*v, a, &err);
    return err;
}

static int
copy_entries(struct dirent_entry **to, const struct dirent_entry *e, struct arena *a, bool has_iatt)
{
    for (; e; e = e->next, to = &(*to)->next) {
        struct dirent_entry *copy = arena_alloc(a, sizeof *copy);

        if (!copy)
            return -ENOMEM;
        *copy = (struct dirent_entry){.ino = e->ino, .off = e->off, .type = e->type, .name_len = e->name_len};
        *to = copy;
        copy->name = arena_dup(a, e->name, e->name_len);
        int err = copy->name ? 0 : -ENOMEM;
        if (has_iatt && !err) {
            copy->iatt = e->iatt;
            err = copy_dict(&copy->dict, &e->dict, a);
        }
        if (err)
            return err;
    }
    *to = NULL;
    return 0;
}

static int
copy_dirents(struct dirent_entry **to, struct dirent_entry *const *v, struct arena *a)
{
    return copy_entries(to, *v, a, false);
}

static int
copy_dirents_iatt(struct dirent_entry **to, struct dirent_entry *const *v, struct arena *a)
{
    return copy_entries(to, *v, a, true);
}

static int
copy_payload(struct fop_call *out, const struct fop_call *src)
{
    memcpy(out->payload, src->payload, sizeof out->payload);
    out->payload_count = src->payload_count;
    out->payload_bytes = src->payload_bytes;
    return out->payload_bytes == out->size ? 0 : -EINVAL;
}

int
fop_copy_call(enum fop fop, const struct fop_call *src, struct fop_call *out, struct arena *a)
{
    int err = 0;

    out->fop = fop;
    if (fop == FOP_compound)
        return -EBADMSG;
    for (const uint8_t *field = call_fields[fop]; *field != CALL_END && !err; field++) {
        switch ((enum call_field)field[0]) {
#define CALL(field, type, member)                                                                            \
    case CALL_##field:                                                                                       \
        err = copy_##type(&out->member, &src->member, a);                                                    \
        break;
#define CALL_OWN(field)
#define REPLY(field, type, member)
#define REPLY_OWN(field)
#include "rpc/xdr/fop-fields.def"
#undef CALL
#undef REPLY
        case CALL_PAYLOAD:
            err = copy_payload(out, src);
            break;
        case CALL_END:
            break;
        }
    }
    return err;
}

#define CALL(field, type, member)

static void
copy_read_bytes(struct fop_reply *out, const struct fop_reply *src)
{
    if (src->op_ret <= 0)
        return;
    out->iobuf = iobuf_ref(src->iobuf);
    out->payload = src->payload;
}

int
fop_copy_reply(enum fop fop, const struct fop_reply *src, struct fop_reply *out, struct arena *a)
{
    const struct fop_reply *r = results_of(src);
    int err;

    *out = (struct fop_reply){.op_ret = src->op_ret, .op_errno = src->op_errno};
    err = fop == FOP_null ? 0 : copy_dict(&out->xdata, &src->xdata, a);
    for (const uint8_t *field = reply_fields[fop]; *field != REPLY_END && !err; field++) {
        switch ((enum reply_field)field[0]) {
#define REPLY(field, type, member)                                                                           \
    case REPLY_##field:                                                                                      \
        err = copy_##type(&out->member, &r->member, a);                                                      \
        break;
#include "rpc/xdr/fop-fields.def"
#undef REPLY
        case REPLY_RCHECKSUM:
            out->checksum_flags = r->checksum_flags;
            out->weak = r->weak;
            memcpy(out->strong, r->strong, sizeof out->strong);
            break;
        case REPLY_PAYLOAD:
            copy_read_bytes(out, r);
            break;
        case REPLY_XDATA_HERE:
        case REPLY_SIZE_OF_PAYLOAD:
        case REPLY_END:
            break;
        }
    }
    return err;
}
