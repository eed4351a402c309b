/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* The rules of access-control, fop by fop, above a storage of three objects that replies at once or later. */
#include "xlators/features/test-layers.h"

#include <fcntl.h>

#include "xlators/features/access-control/acl.h"

extern const struct xlator_type features_access_control_xlator;

static struct iatt dir_attr, file_attr;
static const struct acl *dir_default, *file_access;
static bool answers_later;
static atomic_int asked, passed;
static uint32_t seen_mode;
static bool seen_access_acl, seen_default_acl, seen_umask_key;
static struct inode *dir, *file;
static uint8_t acl_raw[256];

struct later {
    struct worker_job job;
    struct call_stack *stk;
};

static void
answer_later(struct worker_job *job)
{
    struct later *l = caa_container_of(job, struct later, job);

    call_stack_unwind(l->stk);
    free(l);
}

static int
put(struct call_stack *stk, enum dict_key key, const struct acl *a)
{
    acl_write(a, acl_raw);
    return dict_set_bytes(reply_xdata(stk), key, acl_raw, (uint32_t)acl_bytes(a));
}

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    struct inode *inode = stk->call.fd ? stk->call.fd->inode : stk->call.loc.inode;

    stk->reply.op_ret = 0;
    if (stk->call.fop != FOP_stat && stk->call.fop != FOP_fstat) {
        atomic_fetch_add(&passed, 1);
        seen_mode = stk->call.mode;
        seen_access_acl = dict_has(stk->call.xdata, DICT_KEY_ACL_ACCESS);
        seen_default_acl = dict_has(stk->call.xdata, DICT_KEY_ACL_DEFAULT);
        seen_umask_key = dict_has(stk->call.xdata, DICT_KEY_UMASK);
        if (stk->call.fop == FOP_setattr)
            file_attr.mode = (file_attr.mode & S_IFMT) | stk->call.stbuf.mode;
        return XL_DONE;
    }
    if (dict_has(stk->call.xdata, DICT_KEY_CONTENT))
        ck_assert_int_eq(dict_set_str(reply_xdata(stk), DICT_KEY_CONTENT, "secret"), 0);
    atomic_fetch_add(&asked, 1);
    stk->reply.stat = inode == dir ? dir_attr : file_attr;
    if (inode == dir && dir_default)
        ck_assert_int_eq(put(stk, DICT_KEY_ACL_DEFAULT, dir_default), 0);
    if (inode == file && file_access)
        ck_assert_int_eq(put(stk, DICT_KEY_ACL_ACCESS, file_access), 0);
    if (!answers_later)
        return XL_DONE;
    struct later *l = calloc(1, sizeof *l);
    l->stk = stk;
    l->job.run = answer_later;
    stk->xl = xl;
    worker_post(&l->job);
    return XL_OWNED;
}

static void
setup(void)
{
    bench_setup(&features_access_control_xlator, NULL, bottom);
    dir = bench_inode("d", 1, S_IFDIR);
    file = bench_inode("f", 2, S_IFREG);
    dir_attr = (struct iatt){.uid = 1, .gid = 5, .mode = S_IFDIR | 0755};
    file_attr = (struct iatt){.uid = 1, .gid = 5, .mode = S_IFREG | 0640};
}

static void
teardown(void)
{
    inode_unref(dir);
    inode_unref(file);
    bench_teardown();
}

/* Empties the contexts of both objects. */
static void
forget(void)
{
    inode_unref(dir);
    inode_unref(file);
    inode_table_set_limit(bench_graph.inodes, 1);
    inode_table_set_limit(bench_graph.inodes, 0);
    inode_forget(dir = bench_inode("d", 1, S_IFDIR));
    inode_forget(file = bench_inode("f", 2, S_IFREG));
    inode_unref(dir);
    inode_unref(file);
    dir = bench_inode("d", 1, S_IFDIR);
    file = bench_inode("f", 2, S_IFREG);
}

static struct bench_call *
as(enum fop fop, uint32_t uid, uint32_t gid, int32_t pid)
{
    struct bench_call *call = bench_call(fop, NULL);
    struct fop_call *c = &call->stk->call;

    call->stk->caller = (struct caller){.uid = uid, .gid = gid, .pid = pid};
    switch (fop) {
    case FOP_rename:
    case FOP_link:
        c->loc2.parent = inode_ref(dir);
        c->loc2.name = "n";
        break;
    default:
        break;
    }
    if (fop_info[fop].traits & FOP_BY_NAME) {
        c->loc.parent = inode_ref(dir);
        c->loc.name = "f";
    }
    if (fop == FOP_opendir)
        c->loc.inode = inode_ref(dir);
    else if (!(fop_info[fop].traits & FOP_NAME_NOT) && fop != FOP_create)
        c->loc.inode = inode_ref(file);
    return call;
}

static int
run(enum fop fop, uint32_t uid, uint32_t gid, int32_t pid)
{
    return bench_run(as(fop, uid, gid, pid));
}

static int
run_flags(enum fop fop, uint32_t uid, uint32_t flags)
{
    struct bench_call *call = as(fop, uid, 99, 0);

    call->stk->call.flags = flags;
    return bench_run(call);
}

START_TEST(mode_bits_of_directories_permit_or_refuse_calls)
{
    for (int later = 0; later < 2; later++) {
        answers_later = later;
        forget();
        dir_attr.mode = S_IFDIR | 0750;
        ck_assert_int_eq(run(FOP_lookup, 2, 5, 0), 0);
        ck_assert_int_eq(run(FOP_lookup, 2, 6, 0), -EACCES);
        ck_assert_int_eq(run(FOP_lookup, 2, 6, -6), 0);
        ck_assert_int_eq(run(FOP_lookup, 0, 0, 0), 0);
        ck_assert_int_eq(run(FOP_mkdir, 1, 6, 0), 0);
        ck_assert_int_eq(run(FOP_create, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_mknod, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_symlink, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_unlink, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_rename, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_link, 2, 5, 0), -EACCES);
        ck_assert_int_eq(run(FOP_link, 1, 5, 0), 0);
        ck_assert_int_eq(run(FOP_rename, 1, 5, 0), 0);
        ck_assert_int_eq(run(FOP_opendir, 2, 5, 0), 0);
        ck_assert_int_eq(run(FOP_opendir, 2, 6, 0), -EACCES);
    }
}
END_TEST

START_TEST(a_sticky_directory_protects_names_of_other_users)
{
    dir_attr.mode = S_IFDIR | S_ISVTX | 0777;
    dir_attr.uid = 7;
    ck_assert_int_eq(run(FOP_unlink, 1, 9, 0), 0); /* the owner of the entry */
    ck_assert_int_eq(run(FOP_unlink, 7, 9, 0), 0); /* the owner of the directory */
    ck_assert_int_eq(run(FOP_unlink, 8, 9, 0), -EACCES);
    ck_assert_int_eq(run(FOP_rename, 8, 9, 0), -EACCES);
    ck_assert_int_eq(run(FOP_link, 8, 9, 0), 0); /* a link removes nothing */
    ck_assert_int_eq(run(FOP_link, 1, 9, 0), 0);
    ck_assert_int_eq(run(FOP_unlink, 8, 9, -1), 0);
    ck_assert_int_eq(run(FOP_unlink, 0, 0, 0), 0);
}
END_TEST

START_TEST(open_and_data_calls_need_permissions_of_the_file)
{
    file_attr.mode = S_IFREG | 0604;
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY), 0);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDWR), -EACCES);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY | O_TRUNC), -EACCES);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY | 040), -EACCES); /* to execute the file */
    ck_assert_int_eq(run_flags(FOP_open, 1, O_RDWR | O_APPEND), 0);
    ck_assert_int_eq(run(FOP_truncate, 2, 9, 0), -EACCES);
    ck_assert_int_eq(run(FOP_truncate, 1, 9, 0), 0);
    ck_assert_int_eq(run(FOP_writev, 2, 9, 0), 0); /* the open checked it */
    ck_assert_int_eq(run(FOP_writev, 2, 9, 1), -EACCES);
    ck_assert_int_eq(run(FOP_readv, 2, 9, 1), 0);
    ck_assert_int_eq(run(FOP_getxattr, 2, 5, 0), -EACCES);
    ck_assert_int_eq(run(FOP_getxattr, 2, 9, 0), 0);
}
END_TEST

static int
run_standing(enum fop fop, uint32_t uid, enum pid_standing standing)
{
    struct bench_call *call = as(fop, uid, 99, -4);

    call->stk->caller.standing = standing;
    return bench_run(call);
}

START_TEST(negative_pids_of_users_give_no_rights)
{
    static const struct acl_entry entries[] = {
        {ACL_USER_OBJ, 6, 0}, {ACL_USER, 6, 0}, {ACL_GROUP_OBJ, 6, 0}, {ACL_MASK, 2, 0}, {ACL_OTHER, 0, 0}};
    struct acl *acl = malloc(sizeof *acl + sizeof entries);

    file_attr.mode = S_IFREG | 0600;
    dir_attr.mode = S_IFDIR | 0755;
    ck_assert_int_eq(run(FOP_open, 2, 9, -4), 0);
    ck_assert_int_eq(run_standing(FOP_open, 2, PID_COUNTS_NOT), -EACCES);
    ck_assert_int_eq(run_standing(FOP_mkdir, 2, PID_COUNTS_NOT), -EACCES);
    /* Squashed internal work has the owner's rights, because a client can name the owner. */
    ck_assert_int_eq(run_standing(FOP_open, 2, PID_WAS_SQUASHED), 0);
    ck_assert_int_eq(run_standing(FOP_mkdir, 2, PID_WAS_SQUASHED), 0);
    /* An object of root's: internal work that was squashed gets none of root's rights. */
    dir_attr.uid = dir_attr.gid = file_attr.uid = file_attr.gid = 0;
    forget();
    ck_assert_int_eq(run_standing(FOP_open, 2, PID_WAS_SQUASHED), -EACCES);
    ck_assert_int_eq(run_standing(FOP_mkdir, 2, PID_WAS_SQUASHED), -EACCES);
    dir_attr.mode = S_IFDIR | S_ISVTX | 0777;
    forget();
    ck_assert_int_eq(run_standing(FOP_mkdir, 2, PID_WAS_SQUASHED), 0);
    ck_assert_int_eq(run_standing(FOP_unlink, 2, PID_WAS_SQUASHED), -EACCES);
    file_attr.uid = 1;
    forget();
    ck_assert_int_eq(run_standing(FOP_unlink, 2, PID_WAS_SQUASHED), 0);
    /* The same with an ACL: neither the entry of uid 0 counts nor, under the mask, the group's read
     * permission. */
    acl->count = 5;
    memcpy(acl->entries, entries, sizeof entries);
    ck_assert(acl_permits_any_user(acl, 1, 0, 0, ACL_READ));
    ck_assert(!acl_permits_any_user(acl, 0, 0, 0, ACL_READ));
    ck_assert(!acl_permits_any_user(acl, 0, 0, 0, ACL_WRITE));
    ck_assert(acl_permits_any_user(acl, 0, 5, 0, ACL_WRITE));
    ck_assert(!acl_permits_any_user(acl, 0, 5, 0, ACL_READ));
    free(acl);
}
END_TEST

static int
run_named(enum fop fop, const char *key, uint32_t uid, int32_t pid, enum pid_standing standing)
{
    struct bench_call *call = as(fop, uid, 99, pid);
    struct fop_call *c = &call->stk->call;
    bool is_in_xdata = fop == FOP_create || fop == FOP_mkdir || fop == FOP_symlink;

    call->stk->caller.standing = (uint8_t)standing;
    if (fop == FOP_removexattr) {
        c->name = key;
    } else {
        struct dict *d = dict_new(&call->stk->arena);
        ck_assert_int_eq(dict_set_text(d, key, DICT_PTR, "1", 1), 0);
        *(is_in_xdata ? &c->xdata : &c->dict) = d;
    }
    return bench_run(call);
}

/* The owner may write the object, so only the names of the xattrs decide. */
START_TEST(internal_xattrs_are_refused_to_users)
{
    static const struct {
        const char *key;
        bool set, remove, create, count;
    } rows[] = {
        {"user.a", true, true, true, false},
        {"trusted.overlay.opaque", false, false, false, false},
        {"trusted.SGI_ACL_FILE", false, false, false, false},
        {"trusted.glusterfs.dht", false, false, true, true},
        {"trusted.ec.config", false, false, true, true},
        {"trusted.afr.dirty", false, false, true, true},
        {"trusted.glusterfs.shard.file-size", false, false, true, true},
        {"trusted.glusterfs.namespace", false, false, false, false},
        {"trusted.glusterfs.selinux", true, true, true, true},
        {"security.selinux", true, true, true, false},
        {"security.ima", true, true, true, false},
        {"security.capability", false, true, false, false},
        {"system.posix_acl_default_x", true, true, true, false},
    };

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *key = rows[i].key;

        ck_assert_msg(run_named(FOP_setxattr, key, 1, 0, PID_COUNTS) == (rows[i].set ? 0 : -EPERM), "set %s",
                      key);
        ck_assert_msg(run_named(FOP_setxattr, key, 1, -4, PID_COUNTS_NOT) == (rows[i].set ? 0 : -EPERM),
                      "set %s", key);
        ck_assert_msg(run_named(FOP_removexattr, key, 1, 0, PID_COUNTS) == (rows[i].remove ? 0 : -EPERM),
                      "remove %s", key);
        ck_assert_msg(run_named(FOP_create, key, 1, 0, PID_COUNTS) == (rows[i].create ? 0 : -EPERM),
                      "create %s", key);
        ck_assert_msg(run_named(FOP_symlink, key, 1, 0, PID_COUNTS) == (rows[i].create ? 0 : -EPERM),
                      "symlink %s", key);
        ck_assert_msg(run_named(FOP_xattrop, key, 1, 0, PID_COUNTS) == (rows[i].count ? 0 : -EPERM),
                      "count %s", key);
        /* Root and internal clients may set them. */
        ck_assert_int_eq(run_named(FOP_setxattr, key, 0, 0, PID_COUNTS), 0);
        ck_assert_int_eq(run_named(FOP_xattrop, key, 0, 0, PID_COUNTS), 0);
        ck_assert_int_eq(run_named(FOP_setxattr, key, 1, -6, PID_COUNTS), 0);
    }
    /* Distribute's layouts, set by a mount whose root is squashed. */
    ck_assert_int_eq(run_named(FOP_setxattr, "trusted.glusterfs.dht", 65534, -4, PID_WAS_SQUASHED), 0);
    ck_assert_int_eq(run_named(FOP_setxattr, "trusted.overlay.x", 65534, -4, PID_WAS_SQUASHED), -EPERM);
}
END_TEST

START_TEST(create_of_an_existing_file_needs_its_permissions)
{
    struct bench_call *call = as(FOP_create, 2, 9, 0);

    dir_attr.mode = S_IFDIR | 0777;
    call->stk->call.loc.inode = inode_ref(file);
    call->stk->call.flags = O_RDWR | O_CREAT;
    ck_assert_int_eq(bench_run(call), -EACCES);
}
END_TEST

START_TEST(access_is_answered_without_storage)
{
    int before;

    ck_assert_int_eq(run_flags(FOP_access, 1, 6), 0);
    before = atomic_load(&passed);
    ck_assert_int_eq(run_flags(FOP_access, 1, 1), -EACCES);
    ck_assert_int_eq(run_flags(FOP_access, 2, 4), -EACCES);
    ck_assert_int_eq(run_flags(FOP_access, 2, 0), 0);
    ck_assert_int_eq(run_flags(FOP_access, 0, 7), 0);
    struct bench_call *call = as(FOP_access, 2, 5, 1);
    call->stk->call.flags = 7;
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    ck_assert_int_eq(call->stk->reply.op_errno, ACL_READ);
    bench_free(call);
    ck_assert_int_eq(atomic_load(&passed), before); /* the call never reached storage */
}
END_TEST

static int
setattr(enum fop fop, uint32_t uid, uint32_t gid, int32_t pid, int valid, struct iatt to)
{
    struct bench_call *call = as(fop, uid, gid, pid);

    call->stk->call.valid = valid;
    call->stk->call.stbuf = to;
    return bench_run(call);
}

START_TEST(setattr_needs_the_owner_or_root)
{
    struct iatt to = {.mode = 0600, .uid = 9, .gid = 6};

    ck_assert_int_eq(setattr(FOP_setattr, 2, 5, 0, SETATTR_MODE, to), -EPERM);
    ck_assert_int_eq(setattr(FOP_setattr, 2, 5, -5, SETATTR_MODE, to), -EPERM); /* no exemption for pid < 0 */
    ck_assert_int_eq(setattr(FOP_fsetattr, 2, 5, 0, SETATTR_MODE, to), -EACCES);
    ck_assert_int_eq(setattr(FOP_setattr, 1, 5, 0, SETATTR_UID, to), -EPERM);
    ck_assert_int_eq(setattr(FOP_setattr, 1, 5, 0, SETATTR_GID, to), -EPERM); /* not a member of group 6 */
    ck_assert_int_eq(setattr(FOP_setattr, 1, 6, 0, SETATTR_GID, to), 0);
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_GID, to), -EPERM);
    ck_assert_int_eq(setattr(FOP_setattr, 2, 5, 0, SETATTR_MTIME, to), -EACCES);
    ck_assert_int_eq(setattr(FOP_setattr, 1, 5, 0, SETATTR_MTIME | SETATTR_ATIME, to), 0);
    ck_assert_int_eq(setattr(FOP_setattr, 0, 0, 0, SETATTR_UID | SETATTR_MODE, to), 0);
}
END_TEST

/* The SETATTR that a kernel sends before a user other than the owner writes to a set-id file. */
START_TEST(writers_may_clear_set_ids)
{
    const uint32_t ids = S_ISUID | S_ISGID;
    struct iatt to = {.mode = 0766};

    file_attr.mode = S_IFREG | ids | 0766;
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE, to), 0);
    ck_assert_uint_eq(file_attr.mode, S_IFREG | 0766);
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE, to), -EPERM); /* no bit left to clear */
    file_attr.mode = S_IFREG | S_ISUID | 0766;
    ck_assert_int_eq(setattr(FOP_setattr, 0, 0, 0, SETATTR_MODE, (struct iatt){.mode = S_ISUID | 0766}), 0);
    ck_assert_int_eq(setattr(FOP_fsetattr, 2, 6, 0, SETATTR_MODE, to), 0);
    to.mode = S_ISGID | 0766; /* sets a bit */
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE, to), -EPERM);
    to.mode = 0777; /* adds a permission */
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE, to), -EPERM);
    to.mode = 0766;
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE | SETATTR_GID, to), -EPERM);
    ck_assert_int_eq(setattr(FOP_setattr, 0, 0, 0, SETATTR_MODE, (struct iatt){.mode = S_ISUID | 0755}), 0);
    to.mode = 0755; /* the caller may not write */
    ck_assert_int_eq(setattr(FOP_setattr, 2, 6, 0, SETATTR_MODE, to), -EPERM);
}
END_TEST

START_TEST(setattr_is_seen_by_later_checks)
{
    struct iatt to = {.mode = S_ISGID | 0604};

    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY), -EACCES);
    int before = atomic_load(&asked);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY), -EACCES);
    ck_assert_int_eq(atomic_load(&asked), before); /* the context was still filled */
    ck_assert_int_eq(setattr(FOP_setattr, 1, 9, 0, SETATTR_MODE, to), 0);
    ck_assert_uint_eq(file_attr.mode, S_IFREG | 0604); /* not a member of the group: no S_ISGID */
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDONLY), 0);
}
END_TEST

static int
setxattr(enum fop fop, uint32_t uid, int32_t pid, enum dict_key key, const void *bytes, uint32_t len)
{
    struct bench_call *call = as(fop, uid, 99, pid);

    call->stk->call.dict = dict_new(&call->stk->arena);
    if (key)
        dict_set_bytes(call->stk->call.dict, key, bytes, len);
    else
        dict_set_text(call->stk->call.dict, "user.x", DICT_PTR, bytes, len);
    return bench_run(call);
}

START_TEST(acls_are_set_by_the_owner_and_take_effect_at_once)
{
    static const struct acl minimal = {3, {{ACL_USER_OBJ, 7, 0}, {ACL_GROUP_OBJ, 5, 0}, {ACL_OTHER, 7, 0}}};
    uint8_t raw[64];

    acl_write(&minimal, raw);
    uint32_t len = (uint32_t)acl_bytes(&minimal);
    ck_assert_int_eq(setxattr(FOP_setxattr, 2, 0, 0, "v", 1), -EACCES);
    ck_assert_int_eq(setxattr(FOP_setxattr, 2, -6, 0, "v", 1), 0);
    ck_assert_int_eq(setxattr(FOP_setxattr, 2, 0, DICT_KEY_ACL_ACCESS, raw, len), -EPERM);
    ck_assert_int_eq(setxattr(FOP_setxattr, 2, -6, DICT_KEY_ACL_ACCESS, raw, len), -EPERM);
    ck_assert_int_eq(setxattr(FOP_setxattr, 1, 0, DICT_KEY_ACL_ACCESS, raw, len - 1), -EINVAL);
    ck_assert_int_eq(setxattr(FOP_setxattr, 0, 0, DICT_KEY_ACL_ACCESS, raw, 3), -EINVAL);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDWR), -EACCES);
    file_access = &minimal;
    ck_assert_int_eq(setxattr(FOP_setxattr, 1, 0, DICT_KEY_ACL_ACCESS, raw, len), 0);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDWR), 0); /* permitted by the new ACL */
    struct bench_call *call = as(FOP_removexattr, 2, 99, 0);
    call->stk->call.name = "system.posix_acl_access";
    ck_assert_int_eq(bench_run(call), -EPERM);
    call = as(FOP_removexattr, 1, 99, 0);
    call->stk->call.name = "system.posix_acl_access";
    file_access = NULL;
    ck_assert_int_eq(bench_run(call), 0);
    ck_assert_int_eq(run_flags(FOP_open, 2, O_RDWR), -EACCES);
}
END_TEST

static int
create(enum fop fop, uint32_t uid, uint32_t mode, uint32_t umask)
{
    struct bench_call *call = as(fop, uid, uid, 0);

    call->stk->call.mode = mode;
    call->stk->call.umask = umask;
    return bench_run(call);
}

START_TEST(new_objects_get_the_umask_or_the_default_acl)
{
    static const struct acl inherited = {5,
                                         {{ACL_USER_OBJ, 7, 0},
                                          {ACL_USER, 6, 10},
                                          {ACL_GROUP_OBJ, 5, 0},
                                          {ACL_MASK, 7, 0},
                                          {ACL_OTHER, 0, 0}}};

    for (int later = 0; later < 2; later++) {
        answers_later = later;
        dir_default = NULL;
        forget();
        ck_assert_int_eq(create(FOP_create, 0, S_IFREG | 0666, 027), 0);
        ck_assert_uint_eq(seen_mode, S_IFREG | 0640);
        ck_assert(!seen_access_acl && !seen_default_acl);

        struct bench_call *call = as(FOP_create, 0, 0, 0);
        call->stk->call.mode = 0600;
        call->stk->call.xdata = dict_new(&call->stk->arena);
        dict_set_int(call->stk->call.xdata, DICT_KEY_UMASK, 022);
        dict_set_int(call->stk->call.xdata, DICT_KEY_MODE, 0666);
        ck_assert_int_eq(bench_run(call), 0);
        ck_assert_uint_eq(seen_mode, 0644);
        ck_assert(!seen_umask_key);

        dir_default = &inherited;
        forget();
        ck_assert_int_eq(create(FOP_create, 0, 0666, 0777), 0); /* the umask is ignored */
        ck_assert_uint_eq(seen_mode, 0660);
        ck_assert(seen_access_acl && !seen_default_acl);
        ck_assert_int_eq(create(FOP_mkdir, 1, 0755, 022), 0);
        ck_assert_uint_eq(seen_mode, 0750);
        ck_assert(seen_access_acl && seen_default_acl);
        ck_assert_int_eq(create(FOP_symlink, 1, 0777, 022), 0);
        ck_assert(!seen_access_acl);
    }
}
END_TEST

static bool
gets_content(uint32_t uid, uint32_t gid, int32_t pid, bool asks_for_acl, bool *gets_acl)
{
    struct bench_call *call = as(FOP_stat, uid, gid, pid);
    struct dict *xdata = call->stk->call.xdata = dict_new(&call->stk->arena);

    ck_assert_int_eq(dict_set_uint(xdata, DICT_KEY_CONTENT, 4096), 0);
    if (asks_for_acl)
        ck_assert_int_eq(dict_set_uint(xdata, DICT_KEY_ACL_ACCESS, 0), 0);
    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    bool gets = dict_has(call->stk->reply.xdata, DICT_KEY_CONTENT);
    *gets_acl = dict_has(call->stk->reply.xdata, DICT_KEY_ACL_ACCESS);
    bench_free(call);
    return gets;
}

/* The content of a file 0640 1:5, also when an ACL permits a further user to read. */
START_TEST(content_is_for_readers)
{
    bool gets_acl;

    ck_assert(gets_content(0, 0, 1000, false, &gets_acl));
    ck_assert(gets_content(1, 100, 1000, false, &gets_acl));
    ck_assert(gets_content(2, 5, 1000, false, &gets_acl));
    ck_assert(!gets_content(2, 100, 1000, false, &gets_acl));

    struct acl *acl = calloc(1, sizeof *acl + 5 * sizeof acl->entries[0]);
    ck_assert_ptr_nonnull(acl);
    acl->count = 5;
    acl->entries[0] = (struct acl_entry){ACL_USER_OBJ, ACL_READ | ACL_WRITE, 0};
    acl->entries[1] = (struct acl_entry){ACL_USER, ACL_READ, 2};
    acl->entries[2] = (struct acl_entry){ACL_GROUP_OBJ, 0, 0};
    acl->entries[3] = (struct acl_entry){ACL_MASK, ACL_READ, 0};
    acl->entries[4] = (struct acl_entry){ACL_OTHER, 0, 0};
    file_access = acl;
    ck_assert(gets_content(2, 100, 1000, false, &gets_acl));
    ck_assert(!gets_acl);
    ck_assert(gets_content(2, 100, 1000, true, &gets_acl));
    ck_assert(gets_acl);
    ck_assert(!gets_content(3, 5, 1000, false, &gets_acl)); /* the mode's group bits are the mask */
    file_access = NULL;
    free(acl);
}
END_TEST

static Suite *
test_suite(void)
{
    Suite *s = suite_create("access-control");
    TCase *t = tcase_create("access-control");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_set_timeout(t, 60);
    tcase_add_test(t, mode_bits_of_directories_permit_or_refuse_calls);
    tcase_add_test(t, a_sticky_directory_protects_names_of_other_users);
    tcase_add_test(t, open_and_data_calls_need_permissions_of_the_file);
    tcase_add_test(t, create_of_an_existing_file_needs_its_permissions);
    tcase_add_test(t, negative_pids_of_users_give_no_rights);
    tcase_add_test(t, internal_xattrs_are_refused_to_users);
    tcase_add_test(t, access_is_answered_without_storage);
    tcase_add_test(t, setattr_needs_the_owner_or_root);
    tcase_add_test(t, writers_may_clear_set_ids);
    tcase_add_test(t, setattr_is_seen_by_later_checks);
    tcase_add_test(t, acls_are_set_by_the_owner_and_take_effect_at_once);
    tcase_add_test(t, content_is_for_readers);
    tcase_add_test(t, new_objects_get_the_umask_or_the_default_acl);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
