/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* features/access-control: checks each caller against POSIX permissions and ACLs, and computes the mode and
 * ACLs that a new object inherits (spec: brick 9.1). No other layer and no kernel checks, because the daemon
 * runs as root.
 *
 * The layer sits right above storage (and the layers that stock puts between) and below locks, so lock
 * requests are not checked. It caches owner, mode and ACLs per inode (access-internal.h), and keeps nothing
 * per fd, per client or on disk.
 *
 * Not checked: uid 0 and the option's super-uid; internal clients, except for the rules of ownership. NFS
 * servers (pid 1) check opens themselves, so their reads and writes are checked here instead. A mount's
 * internal work with a pid that root-squash does not trust has the rights of all users except root.
 *
 * Names of xattrs: only root and internal clients may set trusted.* and security.*, as on a local file
 * system. access_may_name() permits the exceptions that clients need for work in the name of users.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "graph/graph.h"
#include "xlators/features/access-control/access-internal.h"

#define FLAG_EXEC 040 /* the kernel opens the file to execute it */

static bool
is_super(const struct xlator *xl, const struct call_stack *stk)
{
    const struct access_conf *conf = xlator_conf(xl);

    return stk->caller.uid == 0 || stk->caller.uid == conf->super_uid;
}

/* True if no permissions apply to the caller. */
static bool
access_is_exempt(const struct xlator *xl, const struct call_stack *stk)
{
    return caller_is_internal(&stk->caller) || is_super(xl, stk);
}

/* ---- questions that rules ask ---------------------------------------------------------------- */

static int
ask_permits(struct access_query *q, struct inode *inode, unsigned want)
{
    int err = 0;

    if (!inode || access_is_exempt(q->xl, q->stk))
        return 0;
    struct access_ctx *ctx = access_ctx_lock(q, inode, &err);
    if (!ctx)
        return err;
    bool may = acl_permits(ctx->access, ctx->uid, ctx->gid, ctx->mode, &q->stk->caller, want) ||
               (access_is_squashed_work(q->stk) &&
                acl_permits_any_user(ctx->access, ctx->uid, ctx->gid, ctx->mode, want));
    pthread_mutex_unlock(&ctx->mutex);
    return may ? 0 : -EACCES;
}

struct ownership {
    uint32_t uid, gid, mode;
};

static int
ask_ownership(struct access_query *q, struct inode *inode, struct ownership *out)
{
    int err = 0;
    struct access_ctx *ctx = access_ctx_lock(q, inode, &err);

    *out = (struct ownership){0};
    if (!ctx)
        return err;
    *out = (struct ownership){ctx->uid, ctx->gid, ctx->mode};
    pthread_mutex_unlock(&ctx->mutex);
    return 0;
}

static int
ask_is_owner(struct access_query *q, struct inode *inode)
{
    struct ownership o;
    int rc;

    if (!inode || is_super(q->xl, q->stk))
        return 0;
    rc = ask_ownership(q, inode, &o);
    return rc ? rc : o.uid == q->stk->caller.uid ? 0 : -EPERM;
}

/* In a sticky directory only the entry's owner and the directory's owner may remove an entry. Without an
 * inode of the entry nothing is checked, because then storage removes nothing (FOP_NAME_CHANGED). */
static int
ask_sticky(struct access_query *q, struct inode *parent, struct inode *entry)
{
    struct ownership dir, o;
    uint32_t uid = q->stk->caller.uid;
    int rc;

    if (!parent || !entry || access_is_exempt(q->xl, q->stk))
        return 0;
    if ((rc = ask_ownership(q, parent, &dir)) || !(dir.mode & S_ISVTX) || dir.uid == uid)
        return rc;
    rc = ask_ownership(q, entry, &o);
    bool may = o.uid == uid || (access_is_squashed_work(q->stk) && (dir.uid != 0 || o.uid != 0));
    return rc ? rc : may ? 0 : -EACCES;
}

static struct inode *
object(const struct call_stack *stk)
{
    return stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;
}

/* The body of a fop function that only checks: runs `rule` and returns the verdict. */
static xl_verdict
access_check(struct xlator *xl, struct call_stack *stk, access_rule rule)
{
    bool is_parked;
    int err = access_run(xl, stk, rule, &is_parked);

    return is_parked ? XL_OWNED : err ? err : XL_PASS;
}

/* True if the caller may use all keys of `d` as names of xattrs in this way. */
static bool
may_name_all(const struct xlator *xl, const struct call_stack *stk, const struct dict *d,
             enum access_name_use use)
{
    if (access_is_exempt(xl, stk))
        return true;
    dict_for_each (p, d) {
        if (p->key_id != DICT_KEY_DURABLE_OP && !access_may_name(p->key, use, access_is_squashed_work(stk)))
            return false;
    }
    return true;
}

static xl_verdict
guard_content(struct xlator *xl, struct call_stack *stk)
{
    int err = access_is_exempt(xl, stk) ? 0 : access_guard_content(xl, stk);

    return err ? err : XL_PASS;
}

/* ---- entries --------------------------------------------------------------------------------- */

static int
rule_lookup(struct access_query *q)
{
    return ask_permits(q, q->stk->call.loc.parent, ACL_EXECUTE);
}

static xl_verdict
access_lookup(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict =
        stk->call.loc.parent && !access_is_exempt(xl, stk) ? access_check(xl, stk, rule_lookup) : XL_PASS;

    return verdict == XL_PASS ? guard_content(xl, stk) : verdict;
}

static xl_verdict
access_stat(struct xlator *xl, struct call_stack *stk)
{
    return guard_content(xl, stk);
}

static int
rule_unlink(struct access_query *q)
{
    const struct loc *loc = &q->stk->call.loc;
    int rc = ask_permits(q, loc->parent, ACL_WRITE | ACL_EXECUTE);

    return rc ? rc : ask_sticky(q, loc->parent, loc->inode);
}

static xl_verdict
access_unlink(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_unlink);
}

static int
rule_rename(struct access_query *q)
{
    const struct loc *from = &q->stk->call.loc, *to = &q->stk->call.loc2;
    int rc = ask_permits(q, from->parent, ACL_WRITE);

    rc = rc ? rc : ask_permits(q, to->parent, ACL_WRITE);
    rc = rc ? rc : ask_sticky(q, from->parent, from->inode);
    return rc ? rc : ask_sticky(q, to->parent, to->inode);
}

static xl_verdict
access_rename(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_rename);
}

/* A sticky directory lets every user add a name; only removing another user's name is restricted. Stock
 * refuses both. */
static int
rule_link(struct access_query *q)
{
    return ask_permits(q, q->stk->call.loc2.parent, ACL_WRITE);
}

static xl_verdict
access_link(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_link);
}

/* ---- creation -------------------------------------------------------------------------------- */

static unsigned
open_wants(uint32_t flags)
{
    unsigned want = 0;

    switch (flags & O_ACCMODE) {
    case O_RDONLY:
        want = flags & FLAG_EXEC ? ACL_EXECUTE : ACL_READ;
        break;
    case O_WRONLY:
        want = ACL_WRITE;
        break;
    default:
        want = ACL_READ | ACL_WRITE;
        break;
    }
    return flags & (O_TRUNC | O_APPEND) ? want | ACL_WRITE : want;
}

static int
rule_create(struct access_query *q)
{
    const struct fop_call *c = &q->stk->call;
    struct ownership dir;
    int rc = ask_permits(q, c->loc.parent, ACL_WRITE | ACL_EXECUTE);

    /* The create opens this existing file and no other (FOP_NAME_CHANGED). */
    if (!rc && c->fop == FOP_create && c->loc.inode && !fop_create_is_exclusive(c))
        rc = ask_permits(q, c->loc.inode, open_wants(c->flags));
    /* The inheritable ACL must be known for every caller, root too. */
    return rc || !c->loc.parent ? rc : ask_ownership(q, c->loc.parent, &dir);
}

/* A client may send mode and umask in xdata, so that its kernel does not apply the umask first. */
static void
take_mode_and_umask(struct fop_call *c)
{
    int64_t umask, mode;

    if (dict_get_int(c->xdata, DICT_KEY_UMASK, &umask) || dict_get_int(c->xdata, DICT_KEY_MODE, &mode))
        return;
    c->umask = (uint32_t)umask & 0777;
    c->mode = (c->mode & S_IFMT) | ((uint32_t)mode & 07777);
    dict_remove(c->xdata, DICT_KEY_UMASK);
    dict_remove(c->xdata, DICT_KEY_MODE);
}

static int
put_acl(struct call_stack *stk, enum dict_key key, const struct acl *acl)
{
    struct fop_call *c = &stk->call;

    if (!c->xdata && !(c->xdata = dict_new(&stk->arena)))
        return -ENOMEM;
    if (dict_has(c->xdata, key)) /* the client copies an object together with its ACL */
        return 0;
    void *bytes = arena_alloc(&stk->arena, acl_bytes(acl));
    if (!bytes)
        return -ENOMEM;
    acl_write(acl, bytes);
    return dict_set_bytes(c->xdata, key, bytes, (uint32_t)acl_bytes(acl));
}

/* Copies the directory's default ACL to the arena; *out is NULL if there is none. Returns 0, -ENOMEM, or
 * -EAGAIN: the ACL has just been changed.
 */
static int
default_acl(struct xlator *xl, struct call_stack *stk, struct acl **out)
{
    struct access_ctx *ctx = stk->call.loc.parent ? inode_ctx(stk->call.loc.parent, xl) : NULL;
    int err = 0;

    *out = NULL;
    if (!ctx)
        return 0;
    pthread_mutex_lock(&ctx->mutex);
    if (!ctx->is_valid) {
        err = -EAGAIN;
    } else if (ctx->inherited) {
        size_t size = sizeof **out + ctx->inherited->count * sizeof ctx->inherited->entries[0];

        *out = arena_alloc(&stk->arena, size);
        if (*out)
            memcpy(*out, ctx->inherited, size);
        else
            err = -ENOMEM;
    }
    pthread_mutex_unlock(&ctx->mutex);
    return err;
}

static int
apply_inheritance(struct xlator *xl, struct call_stack *stk)
{
    struct fop_call *c = &stk->call;
    struct acl *acl;
    int err = default_acl(xl, stk, &acl);

    if (err)
        return err;
    take_mode_and_umask(c);
    if (!acl) {
        c->mode &= ~(c->umask & 0777);
    } else {
        if (c->fop == FOP_mkdir)
            /* the default ACL as it is, before acl_inherit() limits it by the mode */
            err = put_acl(stk, DICT_KEY_ACL_DEFAULT, acl);
        if (!err && acl_inherit(acl, &c->mode))
            err = put_acl(stk, DICT_KEY_ACL_ACCESS, acl);
    }
    c->umask = 0; /* has been applied */
    return err;
}

static xl_verdict
access_create(struct xlator *xl, struct call_stack *stk)
{
    int err;

    if (!may_name_all(xl, stk, stk->call.xdata, NAME_CREATE))
        return -EPERM;
    do {
        xl_verdict verdict = access_check(xl, stk, rule_create);

        if (verdict != XL_PASS)
            return verdict;
        err = apply_inheritance(xl, stk);
    } while (err == -EAGAIN);
    return err ? err : XL_PASS;
}

static int
rule_symlink(struct access_query *q)
{
    return ask_permits(q, q->stk->call.loc.parent, ACL_WRITE | ACL_EXECUTE);
}

static xl_verdict
access_symlink(struct xlator *xl, struct call_stack *stk)
{
    if (stk->call.xdata) {
        dict_remove(stk->call.xdata, DICT_KEY_UMASK);
        dict_remove(stk->call.xdata, DICT_KEY_MODE);
    }
    if (!may_name_all(xl, stk, stk->call.xdata, NAME_CREATE))
        return -EPERM;
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_symlink);
}

/* ---- data ------------------------------------------------------------------------------------ */

static int
rule_open(struct access_query *q)
{
    return ask_permits(q, q->stk->call.loc.inode, open_wants(q->stk->call.flags));
}

static xl_verdict
access_open(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_open);
}

static int
rule_read(struct access_query *q)
{
    return ask_permits(q, object(q->stk), ACL_READ);
}

static int
rule_write(struct access_query *q)
{
    return ask_permits(q, object(q->stk), ACL_WRITE);
}

static xl_verdict
access_read(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_read);
}

static xl_verdict
access_readdirp(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict = access_read(xl, stk);

    return verdict == XL_PASS ? guard_content(xl, stk) : verdict;
}

static xl_verdict
access_nfs_read(struct xlator *xl, struct call_stack *stk)
{
    return stk->caller.pid != PID_NFS || is_super(xl, stk) ? XL_PASS : access_check(xl, stk, rule_read);
}

static xl_verdict
access_nfs_write(struct xlator *xl, struct call_stack *stk)
{
    return stk->caller.pid != PID_NFS || is_super(xl, stk) ? XL_PASS : access_check(xl, stk, rule_write);
}

static int
rule_truncate(struct access_query *q)
{
    int rc = ask_permits(q, object(q->stk), ACL_WRITE);

    return rc == -EACCES && q->stk->caller.pid == PID_NFS && ask_is_owner(q, object(q->stk)) == 0 ? 0 : rc;
}

static xl_verdict
access_truncate(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) ? XL_PASS : access_check(xl, stk, rule_truncate);
}

/* ---- ACCESS ---------------------------------------------------------------------------------- */

static int
rule_access(struct access_query *q)
{
    struct call_stack *stk = q->stk;
    unsigned want = stk->call.flags & 7;

    if (stk->caller.pid != PID_NFS)
        return ask_permits(q, stk->call.loc.inode, want);
    stk->reply.op_errno = 0; /* NFS asks for the permitted subset of the bits, not for all of them */
    for (unsigned bit = ACL_EXECUTE; bit <= ACL_READ; bit <<= 1) {
        int rc = want & bit ? ask_permits(q, stk->call.loc.inode, bit) : -EACCES;

        if (rc == 0)
            stk->reply.op_errno |= (int32_t)bit;
        else if (rc != -EACCES)
            return rc;
    }
    return 0;
}

static xl_verdict
access_access(struct xlator *xl, struct call_stack *stk)
{
    xl_verdict verdict = access_check(xl, stk, rule_access);

    if (verdict != XL_PASS)
        return verdict;
    stk->reply.op_ret = 0;
    return XL_DONE;
}

/* ---- attributes ------------------------------------------------------------------------------ */

static int
ask_setattr_times(struct access_query *q, struct inode *inode, bool is_owner)
{
    return is_owner ? 0 : ask_permits(q, inode, ACL_WRITE);
}

/* Before a user other than the owner writes to a file, that user's kernel clears set-uid and set-gid and
 * sends this as a SETATTR. So every user with write permission may do exactly this change of the mode, and no
 * other. */
static bool
only_clears_set_ids(const struct fop_call *c, uint32_t mode)
{
    uint32_t ids = S_ISUID | S_ISGID, to = c->stbuf.mode & 07777;

    return (c->valid & (SETATTR_MODE | SETATTR_UID | SETATTR_GID)) == SETATTR_MODE && S_ISREG(mode) &&
           (to & ~ids) == (mode & 07777 & ~ids) && (to & ids) != (mode & ids) && (to & ids & ~mode) == 0;
}

static int
rule_setattr(struct access_query *q)
{
    struct fop_call *c = &q->stk->call;
    struct inode *inode = object(q->stk);
    struct ownership o;
    int rc;

    if (!inode || is_super(q->xl, q->stk))
        return 0;
    if ((rc = ask_ownership(q, inode, &o)))
        return rc;
    bool is_owner = o.uid == q->stk->caller.uid;
    if (c->valid & (SETATTR_MODE | SETATTR_UID | SETATTR_GID) && !is_owner &&
        (!only_clears_set_ids(c, o.mode) || ask_permits(q, inode, ACL_WRITE) != 0))
        return -EPERM;
    if (c->valid & SETATTR_UID && c->stbuf.uid != (uint32_t)-1 && c->stbuf.uid != o.uid)
        return -EPERM;
    if (c->valid & SETATTR_GID && c->stbuf.gid != (uint32_t)-1 && c->stbuf.gid != o.gid &&
        !caller_in_group(&q->stk->caller, c->stbuf.gid))
        return -EPERM;
    if (c->valid & (SETATTR_ATIME | SETATTR_MTIME) && (rc = ask_setattr_times(q, inode, is_owner)))
        return rc;
    if (c->valid & SETATTR_MODE && !caller_in_group(&q->stk->caller, o.gid))
        c->stbuf.mode &= ~(uint32_t)S_ISGID;
    return 0;
}

static xl_verdict
access_setattr(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = object(stk);
    xl_verdict verdict = access_check(xl, stk, rule_setattr);

    if (verdict < 0 && stk->call.fop == FOP_fsetattr && verdict == -EPERM)
        return -EACCES;
    if (verdict != XL_PASS || !inode)
        return verdict;
    int err = access_forget_later(xl, stk, inode);
    return err ? err : XL_PASS;
}

/* ---- xattrs ---------------------------------------------------------------------------------- */

static bool
is_acl_key(uint16_t id)
{
    return id == DICT_KEY_ACL_ACCESS || id == DICT_KEY_ACL_DEFAULT || id == DICT_KEY_ACL_ACCESS_TEXT ||
           id == DICT_KEY_ACL_DEFAULT_TEXT;
}

static bool
is_acl_name(const char *name)
{
    return name && is_acl_key((uint16_t)dict_key_find(name, strlen(name)));
}

static int
rule_keys(struct access_query *q, const struct dict *d)
{
    bool has_acl = false, has_other = false;
    int rc = 0;

    dict_for_each (p, d) {
        if (is_acl_key(p->key_id))
            has_acl = true;
        else
            has_other = true;
    }
    if (has_acl)
        rc = ask_is_owner(q, object(q->stk));
    return !rc && has_other ? ask_permits(q, object(q->stk), ACL_WRITE) : rc;
}

static int
rule_setxattr(struct access_query *q)
{
    return rule_keys(q, q->stk->call.dict);
}

static int
rule_removexattr(struct access_query *q)
{
    const char *name = q->stk->call.name;

    if (!name || !*name) /* the keys of xdata are removed */
        return rule_keys(q, q->stk->call.xdata);
    return is_acl_name(name) ? ask_is_owner(q, object(q->stk)) : ask_permits(q, object(q->stk), ACL_WRITE);
}

/* Returns 0: no ACL in `d`; 1: well-formed ACLs; -EINVAL or -ENOMEM. */
static int
validate_acls(const struct dict *d)
{
    int found = 0;

    dict_for_each (p, d) {
        struct acl *acl;

        if (!is_acl_key(p->key_id))
            continue;
        found = 1;
        if (p->key_id != DICT_KEY_ACL_ACCESS && p->key_id != DICT_KEY_ACL_DEFAULT)
            continue; /* an ACL as text: storage parses it */
        if (p->type != DICT_PTR && p->type != DICT_UNTYPED && p->type != DICT_STR)
            return -EINVAL;
        int rc = acl_parse(p->v.bytes, p->len, &acl);
        if (rc)
            return rc;
        free(acl);
    }
    return found;
}

static xl_verdict
access_setxattr(struct xlator *xl, struct call_stack *stk)
{
    int acls = validate_acls(stk->call.dict);
    /* removes ACLs and the users' xattrs */
    bool syncs = dict_has(stk->call.xdata, DICT_KEY_SYNC_BACKEND_XATTRS);

    if (!may_name_all(xl, stk, stk->call.dict, NAME_SET) ||
        (syncs && !access_is_exempt(xl, stk) && !access_is_squashed_work(stk)))
        return -EPERM;
    xl_verdict verdict = acls < 0 ? acls : is_super(xl, stk) ? XL_PASS : access_check(xl, stk, rule_setxattr);

    if (verdict != XL_PASS || (!acls && !syncs) || !object(stk))
        return verdict;
    int err = access_forget_later(xl, stk, object(stk));
    return err ? err : XL_PASS;
}

static xl_verdict
access_removexattr(struct xlator *xl, struct call_stack *stk)
{
    const char *name = stk->call.name;
    bool has_name = name && *name;
    bool may = has_name ? access_is_exempt(xl, stk) ||
                              access_may_name(name, NAME_REMOVE, access_is_squashed_work(stk))
                        : may_name_all(xl, stk, stk->call.xdata, NAME_REMOVE);

    if (!may)
        return -EPERM;
    xl_verdict verdict = is_super(xl, stk) ? XL_PASS : access_check(xl, stk, rule_removexattr);

    if (verdict != XL_PASS || (has_name && !is_acl_name(name)) || !object(stk))
        return verdict;
    int err = access_forget_later(xl, stk, object(stk));
    return err ? err : XL_PASS;
}

static xl_verdict
access_xattrop(struct xlator *xl, struct call_stack *stk)
{
    return may_name_all(xl, stk, stk->call.dict, NAME_COUNT) ? XL_PASS : -EPERM;
}

static xl_verdict
access_getxattr(struct xlator *xl, struct call_stack *stk)
{
    return access_is_exempt(xl, stk) || is_acl_name(stk->call.name) ? XL_PASS
                                                                    : access_check(xl, stk, rule_read);
}

/* ---- the type -------------------------------------------------------------------------------- */

static int
access_init(struct xlator *xl, struct reason *why)
{
    (void)xl;
    (void)why;
    return access_pools_init();
}

static void
access_inode_forget(struct xlator *xl, struct inode *inode, void *ctx)
{
    (void)xl;
    (void)inode;
    access_ctx_free(ctx);
}

static const struct option access_options[] = {
    OPT_INT(struct access_conf, super_uid, "super-uid", "0", 0, UINT32_MAX),
    OPT_END,
};

static const struct xlator_ops access_ops = {
    .lookup = access_lookup,
    .create = access_create,
    .mkdir = access_create,
    .mknod = access_create,
    .put = access_create,
    .symlink = access_symlink,
    .unlink = access_unlink,
    .rmdir = access_unlink,
    .rename = access_rename,
    .link = access_link,
    .open = access_open,
    .opendir = access_read,
    .readdir = access_read,
    .readdirp = access_readdirp,
    .stat = access_stat,
    .fstat = access_stat,
    .truncate = access_truncate,
    .readv = access_nfs_read,
    .writev = access_nfs_write,
    .ftruncate = access_nfs_write,
    .access = access_access,
    .setattr = access_setattr,
    .fsetattr = access_setattr,
    .setxattr = access_setxattr,
    .fsetxattr = access_setxattr,
    .removexattr = access_removexattr,
    .fremovexattr = access_removexattr,
    .xattrop = access_xattrop,
    .fxattrop = access_xattrop,
    .getxattr = access_getxattr,
    .fgetxattr = access_getxattr,
};

const struct xlator_type features_access_control_xlator = {
    .name = "features/access-control",
    .traits = LAYER_SKIPS_PLAIN_WRITES,
    .options = access_options,
    .conf_size = sizeof(struct access_conf),
    .ops = &access_ops,
    .keeps = KEEPS(CTX_INODE),
    .init = access_init,
    .inode_forget = access_inode_forget,
};
