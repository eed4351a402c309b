/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Requests with a history: locks that wait and are interrupted, set-id bits, extended attributes, FLUSH and
 * FSYNC that need no call, objects without a name, and bricks that lie. */
#include <check.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/test-must.h"
#include "fs/inode.h"
#include "xlators/cluster/test-children.h"
#include "xlators/mount/fuse/fuse-internal.h"
#include "xlators/mount/fuse/test-kernel.h"

static uint64_t file, handle;

static void
file_begin(const char *options, uint32_t mode, uint32_t flags)
{
    kernel_begin(options);
    (void)store_make(0, "/f", S_IFREG | mode, 3, "contents");
    store_find(&scene.store[0], "/f")->stat.uid = 1000;
    must(kernel_lookup(FUSE_ROOT_ID, "f", &file) == 0);
    must(kernel_open(FUSE_OPEN, file, flags, &handle) == 0);
}

static void
file_end(void)
{
    must(kernel_release(FUSE_RELEASE, file, handle) == 0);
    kernel_end();
}

static struct stored_object *
stored_file(void)
{
    return store_find(&scene.store[0], "/f");
}

/* Returns the number of calls to the brick since the last call of this function. */
static unsigned
calls_made(void)
{
    unsigned calls = scene.calls[0];

    scene_arm(NULL, 0);
    return calls;
}

/* ---- locks ----------------------------------------------------------------------------------- */

static void
put_lock(uint32_t opcode, uint32_t type, uint32_t flags)
{
    struct fuse_lk_in in = {
        .fh = handle, .owner = 77, .lk = {.start = 5, .end = 9, .type = type}, .lk_flags = flags};

    kernel_request(opcode, file);
    kernel_put(&in, sizeof in);
}

static enum fop latest_fop;
static char latest_name[128];
static uint32_t latest_lock;

static void
note_call(struct call_stack *stk, int *ret)
{
    (void)ret;
    latest_fop = stk->call.fop;
    latest_lock = stk->call.flock.type;
    snprintf(latest_name, sizeof latest_name, "%s", stk->call.name ? stk->call.name : "");
}

static void
lock_held(void)
{
    struct fault held = {.kind = FAULT_HELD};

    scene_arm(&held, 1);
    put_lock(FUSE_SETLKW, F_WRLCK, 0);
    kernel.is_answered = false;
    kernel_send();
    scene_run(0);
    kernel_listen();
    must(!kernel.is_answered);
}

static void
interrupt_request(uint64_t unique)
{
    struct fuse_interrupt_in in = {.unique = unique};

    kernel_request(FUSE_INTERRUPT, 0);
    kernel_put(&in, sizeof in);
    kernel_send();
    scene_run(0);
    kernel_listen();
}

START_TEST(an_interrupted_lock_is_withdrawn_at_the_brick)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    lock_held();
    uint64_t unique = kernel.unique;

    kernel.lie = note_call;
    interrupt_request(unique);
    must(latest_fop == FOP_fgetxattr);
    ck_assert_str_eq(latest_name, "glusterfs.intrlk.tposix.kblocked.0,5-5");
    must(!kernel.is_answered); /* until the brick answers the lock */
    scene_release_held(EINTR);
    kernel_listen();
    must(kernel.is_answered && kernel.err == EINTR);
    file_end();
}
END_TEST

START_TEST(a_lock_without_memory_for_its_withdrawal_waits)
{
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        file_begin("", 0644, O_RDWR);
        lock_held();
        scene_starve(n);
        interrupt_request(kernel.unique);
        has_starved = scene_has_starved();
        scene_starve(0);
        must(!kernel.is_answered);
        scene_release_held(0);
        kernel_listen();
        must(kernel.is_answered && kernel.err == 0);
        file_end();
    }
}
END_TEST

START_TEST(an_interrupt_during_a_drain_is_ignored)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    lock_held();
    atomic_store(&scene.graph->is_draining, true);
    interrupt_request(kernel.unique);
    atomic_store(&scene.graph->is_draining, false);
    scene_release_held(0);
    kernel_listen();
    must(kernel.is_answered && kernel.err == 0);
    file_end();
}
END_TEST

/* The kernel may send INTERRUPT before the request that it interrupts. */
START_TEST(an_interrupt_before_the_lock_prevents_the_call)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    interrupt_request(kernel.unique + 2);
    (void)calls_made();
    put_lock(FUSE_SETLKW, F_WRLCK, 0);
    must(kernel_ask() == EINTR && calls_made() == 0);
    file_end();
}
END_TEST

static uint32_t answered_type;

static void
answer_lock(struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_lk)
        return;
    *ret = 0;
    stk->reply.flock = (struct fop_flock){.type = answered_type, .start = 3, .len = 2, .pid = 99};
}

START_TEST(the_holder_of_a_lock_is_returned)
{
    static const struct {
        uint32_t wire;
        int err;
        uint32_t native;
    } cases[] = {{FLOCK_READ, 0, F_RDLCK}, {FLOCK_WRITE, 0, F_WRLCK}, {FLOCK_UNLOCK, 0, F_UNLCK},
                 {3, EIO, 0},              {UINT32_MAX, EIO, 0}};

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    kernel.lie = answer_lock;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        answered_type = cases[i].wire;
        put_lock(FUSE_GETLK, F_WRLCK, 0);
        must(kernel_ask() == cases[i].err);
        if (cases[i].err)
            continue;
        const struct fuse_lk_out *out = kernel_answer(sizeof *out);

        must(out->lk.type == cases[i].native);
        must(out->lk.type == F_UNLCK || (out->lk.start == 3 && out->lk.end == 4 && out->lk.pid == 99));
    }
    file_end();
}
END_TEST

START_TEST(a_close_drops_flocks)
{
    struct fuse_release_in in = {.release_flags = FUSE_RELEASE_FLOCK_UNLOCK, .lock_owner = 77};

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    put_lock(FUSE_SETLKW, F_WRLCK, FUSE_LK_FLOCK);
    must(kernel_ask() == 0);
    kernel.lie = note_call;
    in.fh = handle;
    kernel_request(FUSE_RELEASE, file);
    kernel_put(&in, sizeof in);
    must(kernel_ask() == 0);
    must(latest_fop == FOP_lk && latest_lock == FLOCK_UNLOCK);
    kernel_end();
}
END_TEST

START_TEST(a_close_without_memory_for_the_unlock_succeeds)
{
    struct fuse_release_in in = {.release_flags = FUSE_RELEASE_FLOCK_UNLOCK, .lock_owner = 77};
    bool has_starved = true;

    scene_init_starving();
    kernel_clear();
    for (int64_t n = 1; has_starved; n++) {
        file_begin("", 0644, O_RDWR);
        in.fh = handle;
        kernel_request(FUSE_RELEASE, file);
        kernel_put(&in, sizeof in);
        scene_starve(n);
        int err = kernel_ask();

        has_starved = scene_has_starved();
        scene_starve(0);
        must(err == 0 || (has_starved && err == ENOMEM));
        kernel_end();
    }
}
END_TEST

/* ---- FLUSH and FSYNC ------------------------------------------------------------------------- */

static int
flush_file(void)
{
    struct fuse_flush_in in = {.fh = handle, .lock_owner = 77};

    kernel_request(FUSE_FLUSH, file);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

static int
fsync_file(uint32_t flags)
{
    struct fuse_fsync_in in = {.fh = handle, .fsync_flags = flags};

    kernel_request(FUSE_FSYNC, file);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

static int
write_file(const char *bytes, uint32_t write_flags, uint32_t flags)
{
    struct fuse_write_in in = {
        .fh = handle, .size = (uint32_t)strlen(bytes), .flags = flags, .write_flags = write_flags};

    kernel_request(FUSE_WRITE, file);
    kernel_put(&in, sizeof in);
    kernel_put(bytes, strlen(bytes));
    return kernel_ask();
}

START_TEST(a_flush_without_locks_needs_no_call)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    (void)calls_made();
    must(flush_file() == 0 && calls_made() == 0);
    put_lock(FUSE_SETLK, F_WRLCK, 0);
    must(kernel_ask() == 0 && calls_made() == 1);
    must(flush_file() == 0 && calls_made() == 1);
    file_end();

    file_begin("", 0644, O_RDONLY);
    (void)calls_made();
    must(flush_file() == 0 && calls_made() == 0);
    file_end();
}
END_TEST

START_TEST(an_fsync_of_synced_data_needs_no_call)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR | O_SYNC);
    (void)calls_made();
    must(fsync_file(0) == 0 && calls_made() == 1); /* nothing is known of earlier changes */
    must(write_file("abc", 0, O_RDWR | O_SYNC) == 0 && calls_made() == 1);
    must(fsync_file(0) == 0 && calls_made() == 0);
    must(fsync_file(FUSE_FSYNC_FDATASYNC) == 0 && calls_made() == 0);
    must(write_file("abc", 0, O_RDWR) == 0 && calls_made() == 1); /* O_SYNC was removed by fcntl */
    must(fsync_file(0) == 0 && calls_made() == 1);
    file_end();

    file_begin("", 0644, O_RDWR);
    (void)calls_made();
    must(fsync_file(0) == 0 && fsync_file(0) == 0 && calls_made() == 2);
    file_end();

    file_begin(" option skip-synced-fsync off\n", 0644, O_RDWR | O_SYNC);
    (void)calls_made();
    must(fsync_file(0) == 0 && fsync_file(0) == 0 && calls_made() == 2);
    file_end();
}
END_TEST

START_TEST(an_error_of_earlier_writes_is_reported_once)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    struct fuse_file *f = (struct fuse_file *)(uintptr_t)handle; /* NOLINT: the mount's own address */

    atomic_store(&f->err, -ENOSPC);
    must(write_file("abc", 0, O_RDWR) == ENOSPC);
    must(write_file("abc", 0, O_RDWR) == 0);
    atomic_store(&f->err, -ENOSPC);
    must(fsync_file(0) == ENOSPC && fsync_file(0) == 0);
    atomic_store(&f->err, -ENOSPC);
    must(flush_file() == ENOSPC && flush_file() == 0);
    file_end();
}
END_TEST

/* ---- set-id bits ----------------------------------------------------------------------------- */

static uint32_t
mode_of_file(void)
{
    return stored_file()->stat.mode & 07777;
}

START_TEST(a_write_of_another_user_clears_set_id_bits)
{
    kernel_clear();
    kernel.uid = 2000;
    /* the kernel knows the bits: they go before the write */
    file_begin("", 06755, O_RDWR);
    must(write_file("abc", FUSE_WRITE_KILL_SUIDGID, O_RDWR) == 0);
    must(mode_of_file() == 0755 && kernel.notices == 1 && kernel.notice_number == file);
    must(write_file("abc", FUSE_WRITE_KILL_SUIDGID, O_RDWR) == 0);
    must(mode_of_file() == 0755 && kernel.notices == 1);
    file_end();

    /* another client has set the bits: they go after the write, by the mode in the reply */
    kernel.notices = 0;
    file_begin("", 0755, O_RDWR);
    stored_file()->stat.mode = S_IFREG | 04711;
    must(write_file("abc", FUSE_WRITE_KILL_SUIDGID, O_RDWR) == 0);
    must(mode_of_file() == 0711 && kernel.notices == 1);
    /* a write without the flag, of root, keeps the bits */
    stored_file()->stat.mode = S_IFREG | 04711;
    must(write_file("abc", 0, O_RDWR) == 0 && mode_of_file() == 04711);
    file_end();
}
END_TEST

START_TEST(a_failure_to_clear_set_id_bits_fails_the_write)
{
    kernel_clear();
    for (unsigned at = 0; at < 4; at++) {
        struct fault f = {.at = at, .kind = FAULT_REFUSED, .err = EROFS};

        file_begin("", at < 3 ? 04755 : 0755, O_RDWR);
        if (at == 3) { /* after the write */
            stored_file()->stat.mode = S_IFREG | 04755;
            f.at = 1;
        }
        scene_arm(&f, 1);
        must(write_file("abc", FUSE_WRITE_KILL_SUIDGID, O_RDWR) == EROFS);
        must(scene.fault[0].has_struck);
        scene_arm(NULL, 0);
        file_end();
    }
}
END_TEST

START_TEST(a_write_without_memory_to_clear_bits_fails)
{
    scene_init_starving();
    kernel_clear();
    for (int is_known = 0; is_known < 2; is_known++) {
        bool has_starved = true;

        for (int64_t n = 1; has_starved; n++) {
            file_begin("", is_known ? 04755 : 0755, O_RDWR);
            stored_file()->stat.mode = S_IFREG | 04755;
            scene_starve(n);
            int err = write_file("abc", FUSE_WRITE_KILL_SUIDGID, O_RDWR);

            has_starved = scene_has_starved();
            scene_starve(0);
            must(err == (has_starved ? ENOMEM : 0));
            must(err || mode_of_file() == 0755);
            file_end();
        }
    }
}
END_TEST

static int
setattr_file(uint32_t valid, uint64_t number)
{
    struct fuse_setattr_in in = {.valid = valid, .size = 2, .uid = 5, .fh = handle};

    kernel_request(FUSE_SETATTR, number);
    kernel_put(&in, sizeof in);
    return kernel_ask();
}

START_TEST(setattr_clears_set_id_bits)
{
    kernel_clear();
    file_begin("", 06755, O_RDWR);
    must(setattr_file(FATTR_SIZE | FATTR_FH | FATTR_KILL_SUIDGID, file) == 0 && mode_of_file() == 0755);
    stored_file()->stat.mode = S_IFREG | 04755;
    must(setattr_file(FATTR_UID | FATTR_KILL_SUIDGID, file) == 0 && mode_of_file() == 0755);
    /* SETATTR of nothing, before a write: for a caller who may write */
    stored_file()->stat.mode = S_IFREG | 04755;
    stored_file()->stat.uid = 1000;
    must(setattr_file(0, file) == 0 && mode_of_file() == 0755);
    kernel.uid = 1000;
    stored_file()->stat.mode = S_IFREG | 04755;
    must(setattr_file(0, file) == 0 && mode_of_file() == 0755);
    kernel.uid = 2000;
    stored_file()->stat.mode = S_IFREG | 04755;
    must(setattr_file(0, file) == 0 && mode_of_file() == 0755); /* ACCESS succeeds */
    stored_file()->stat.mode = S_IFREG | 0755;
    must(setattr_file(0, file) == 0 && mode_of_file() == 0755);
    /* ACCESS is refused: chown to -1 and -1 */
    for (int err = EACCES, n = 0; n < 3; n++, err = n == 1 ? EIO : ESTALE) {
        struct fault f = {.at = 1, .kind = FAULT_REFUSED, .err = err};

        stored_file()->stat.mode = S_IFREG | 04755;
        scene_arm(&f, 1);
        int got = setattr_file(0, file);

        must(scene.fault[0].has_struck);
        must(got == (err == EACCES ? EPERM : err == ESTALE ? 0 : err));
        must(mode_of_file() == (err == ESTALE ? 0755 : 04755));
    }
    scene_arm(NULL, 0);
    file_end();
}
END_TEST

/* CREATE of a name that another client has made since the kernel's LOOKUP: the reply has another gfid. */
static void
answer_existing(struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_create || *ret < 0)
        return;
    stk->reply.stat = stored_file()->stat;
    fd_unref(stk->reply.fd);
    struct inode *inode = inode_link(stk->xl->graph->inodes, NULL, NULL, &stk->reply.stat);

    stk->reply.fd = fd_new(inode, NULL, stk->call.flags, false);
    inode_unref(inode);
}

START_TEST(create_clears_bits_of_a_file_that_another_client_has_made)
{
    struct fuse_create_in in = {
        .flags = O_RDWR | O_CREAT | O_TRUNC, .mode = S_IFREG | 0644, .open_flags = FUSE_OPEN_KILL_SUIDGID};

    for (unsigned refused = 0; refused < 2; refused++) {
        struct fault f = {.at = 1, .kind = FAULT_REFUSED, .err = EROFS};

        kernel_clear();
        kernel.uid = 2000;
        file_begin("", 04755, O_RDWR);
        kernel.lie = answer_existing;
        scene_arm(&f, refused);
        kernel_request(FUSE_CREATE, FUSE_ROOT_ID);
        kernel_put(&in, sizeof in);
        kernel_put_text("n");
        must(kernel_ask() == (refused ? EROFS : 0));
        must(mode_of_file() == (refused ? 04755 : 0755));
        kernel_end();
    }
}
END_TEST

/* ---- extended attributes --------------------------------------------------------------------- */

static int
getxattr_file(uint32_t opcode, const char *name, uint32_t size)
{
    struct fuse_getxattr_in in = {.size = size};

    kernel_request(opcode, file);
    kernel_put(&in, sizeof in);
    if (name)
        kernel_put_text(name);
    return kernel_ask();
}

static int
setxattr_file(const char *name, const char *value)
{
    uint32_t in[2] = {(uint32_t)strlen(value), 0};

    kernel_request(FUSE_SETXATTR, file);
    kernel_put(in, sizeof in);
    kernel_put_text(name);
    kernel_put(value, strlen(value));
    return kernel_ask();
}

static int
removexattr_file(const char *name)
{
    kernel_request(FUSE_REMOVEXATTR, file);
    kernel_put_text(name);
    return kernel_ask();
}

static uint32_t
size_answered(void)
{
    return ((const struct fuse_getxattr_out *)kernel_answer(sizeof(struct fuse_getxattr_out)))->size;
}

START_TEST(an_xattr_has_its_size)
{
    kernel_clear();
    file_begin("", 0644, O_RDWR);
    must(store_set_xattr(stored_file(), "user.a", "value", 5) == 0);
    must(getxattr_file(FUSE_GETXATTR, "user.a", 0) == 0 && size_answered() == 5);
    must(getxattr_file(FUSE_GETXATTR, "user.a", 4) == ERANGE);
    must(getxattr_file(FUSE_GETXATTR, "user.a", 5) == 0 && kernel.len == 5);
    must(memcmp(kernel.bytes, "value", 5) == 0);
    must(getxattr_file(FUSE_GETXATTR, "user.none", 100) == ENODATA);
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.gfid", 0) == 0 && size_answered() == 16);
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.gfid", 15) == ERANGE);
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.gfid", 16) == 0);
    must(memcmp(kernel.bytes, &stored_file()->stat.gfid, 16) == 0);
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.gfid.string", 100) == 0 && kernel.len == 36);
    must(getxattr_file(FUSE_LISTXATTR, NULL, 0) == 0 && size_answered() == 7);
    must(getxattr_file(FUSE_LISTXATTR, NULL, 6) == ERANGE);
    must(getxattr_file(FUSE_LISTXATTR, NULL, 7) == 0 && memcmp(kernel.bytes, "user.a", 7) == 0);
    file_end();
}
END_TEST

static const struct dict_pair *answered_pair;

static void
answer_pair(struct call_stack *stk, int *ret)
{
    if (stk->call.fop != FOP_getxattr)
        return;
    *ret = 0;
    stk->reply.dict = dict_new(&stk->arena);
    if (answered_pair)
        must(dict_append(stk->reply.dict, answered_pair));
}

#define PAIR(...) {.key = "user.a", .key_len = 6, __VA_ARGS__}

START_TEST(an_xattr_of_any_type_is_a_text_or_an_error)
{
    static const struct dict_pair pairs[] = {
        PAIR(.type = DICT_PTR, .len = 3, .v = {.bytes = "abc"}),
        PAIR(.type = DICT_STR, .len = 4, .v = {.bytes = "abc"}),
        PAIR(.type = DICT_UNTYPED, .len = 3, .v = {.bytes = "abc"}),
        PAIR(.type = DICT_GFID),
        PAIR(.type = DICT_INT, .v = {.i = 7}),
        PAIR(.type = DICT_IATT),
    };
    static const int errnos[] = {0, 0, 0, 0, EIO, EIO};

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    kernel.lie = answer_pair;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        answered_pair = &pairs[i];
        must(getxattr_file(FUSE_GETXATTR, "user.a", 100) == errnos[i]);
    }
    answered_pair = NULL;
    must(getxattr_file(FUSE_GETXATTR, "user.a", 100) == ENODATA);
    file_end();
}
END_TEST

START_TEST(xattrs_of_the_volume_are_protected)
{
    static const struct {
        const char *name;
        int get, set;
    } cases[] = {
        {"trusted.gfid", ENODATA, EPERM},
        {"trusted.glusterfs.volume-id", ENODATA, EPERM},
        {"trusted.glusterfs.dht", EOPNOTSUPP, EPERM},
        {"trusted.glusterfs.dht.linkto", EOPNOTSUPP, EPERM},
        {"trusted.glusterfs.mdata", ENODATA, EPERM},
        {"trusted.afr.v", ENODATA, EPERM},
        {"security.capability", ENODATA, EOPNOTSUPP},
        {"security.selinux", EOPNOTSUPP, EOPNOTSUPP},
        {"security.ima", ENODATA, EOPNOTSUPP},
        {"system.posix_acl_access", EOPNOTSUPP, EOPNOTSUPP},
        {"user.none", ENODATA, 0},
    };

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        must(getxattr_file(FUSE_GETXATTR, cases[i].name, 100) == cases[i].get);
        must(setxattr_file(cases[i].name, "x") == cases[i].set);
        must(removexattr_file(cases[i].name) == cases[i].set);
    }
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.clrlk.tposix.kall", 100) == ENODATA);
    kernel.uid = 1000;
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.clrlk.tposix.kall", 100) == EPERM);
    must(getxattr_file(FUSE_GETXATTR, "glusterfs.intrlk.tposix.kblocked", 100) == EPERM);
    kernel.uid = 0;
    file_end();
}
END_TEST

START_TEST(a_list_of_xattrs_hides_those_of_the_volume)
{
    static const char *const names[] = {"trusted.afr.v",  "trusted.glusterfs.dht", "trusted.gfid",
                                        "trusted.pgfid.", "glusterfs.x",           "trusted.mine",
                                        "user.a",         "system.posix_acl_access"};

    for (unsigned n = 0; n < 4; n++) {
        kernel_clear();
        file_begin(n & 1 ? " option acl on\n" : "", 0644, O_RDWR);
        for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
            must(store_set_xattr(stored_file(), names[i], "x", 1) == 0);
        kernel.uid = n & 2 ? 1000 : 0;
        must(getxattr_file(FUSE_LISTXATTR, NULL, 1000) == 0);
        must(kernel.len == 7u + (n & 1 ? 24 : 0) + (n & 2 ? 0 : 13));
        kernel.uid = 0;
        file_end();
    }
}
END_TEST

START_TEST(the_pools_are_an_xattr_of_root)
{
    char order[100] = "trim soft";

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    must(setxattr_file("trusted.kiln.pools", order) == 0);
    must(setxattr_file("trusted.kiln.pools", "nonsense") == EINVAL);
    memset(order, 'x', 80);
    must(setxattr_file("trusted.kiln.pools", order) == EINVAL);
    must(getxattr_file(FUSE_GETXATTR, "trusted.kiln.pools", 0) == 0 && size_answered() > 100);
    must(getxattr_file(FUSE_GETXATTR, "trusted.kiln.pools", 10) == ERANGE);
    must(getxattr_file(FUSE_GETXATTR, "trusted.kiln.pools", 65536) == 0 && kernel.bytes[0] == '{');
    kernel.uid = 1000;
    must(setxattr_file("trusted.kiln.pools", "trim soft") == EPERM);
    must(getxattr_file(FUSE_GETXATTR, "trusted.kiln.pools", 65536) == EPERM);
    kernel.uid = 0;
    file_end();
}
END_TEST

/* ---- objects without a name, lies, forgotten numbers ----------------------------------------- */

START_TEST(an_open_file_without_a_name_is_served_by_its_handle)
{
    static const struct fault cases[] = {{.kind = FAULT_REFUSED, .err = ENOENT},
                                         {.kind = FAULT_REFUSED, .err = ESTALE}};

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    must(store_set_xattr(stored_file(), "user.a", "value", 5) == 0);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        scene_arm(&cases[i], 1);
        kernel_request(FUSE_GETATTR, file);
        kernel_put(&(struct fuse_getattr_in){0}, sizeof(struct fuse_getattr_in));
        must(kernel_ask() == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        must(setattr_file(FATTR_UID, file) == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        must(getxattr_file(FUSE_GETXATTR, "user.a", 100) == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        must(setxattr_file("user.b", "x") == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        must(removexattr_file("user.b") == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        kernel_request(FUSE_STATFS, file); /* by the root */
        must(kernel_ask() == 0 && scene.calls[0] == 2);
        scene_arm(&cases[i], 1);
        kernel_request(FUSE_ACCESS, file);
        kernel_put(&(struct fuse_access_in){0}, sizeof(struct fuse_access_in));
        must(kernel_ask() == ESTALE && scene.calls[0] == 1); /* has no form for an open file */
    }
    scene_arm(NULL, 0);
    file_end();
}
END_TEST

static void
answer_null_gfid(struct call_stack *stk, int *ret)
{
    (void)ret;
    stk->reply.stat.gfid = (struct gfid){0};
}

START_TEST(an_object_without_gfid_is_an_error)
{
    uint64_t number;

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    kernel.lie = answer_null_gfid;
    must(kernel_lookup(FUSE_ROOT_ID, "f", &number) == EIO);
    must(setattr_file(FATTR_UID, file) == 0);
    kernel.lie = NULL;
    file_end();
}
END_TEST

START_TEST(numbers_can_be_forgotten_many_at_a_time)
{
    struct fuse_batch_forget_in in = {.count = 3};
    uint64_t dir;

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    (void)store_make(0, "/d", S_IFDIR | 0755, 5, NULL);
    for (int i = 0; i < 3; i++)
        must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    struct fuse_forget_one one[3] = {{dir, 2}, {FUSE_ROOT_ID, 1}, {dir, 0}};

    kernel_request(FUSE_BATCH_FORGET, 0);
    kernel_put(&in, sizeof in);
    kernel_put(one, sizeof one);
    kernel_send();
    must(atomic_load(&((struct fuse_node *)(uintptr_t)dir)->lookups) == 1); /* NOLINT: its own address */
    kernel_forget(dir, 1);
    kernel_forget(FUSE_ROOT_ID, 9);
    must(kernel_lookup(FUSE_ROOT_ID, "d", &dir) == 0);
    file_end();
}
END_TEST

/* A file may be readable by nobody but its writer: the page cache cannot be used. */
START_TEST(a_file_that_may_not_be_read_is_opened_for_writing_only)
{
    kernel_clear();
    for (int refused = 0; refused < 3; refused++) {
        struct fault f[2] = {{.kind = FAULT_REFUSED, .err = EACCES},
                             {.at = 1, .kind = FAULT_REFUSED, .err = EACCES}};
        uint64_t fh;

        file_begin(" option kernel-writeback-cache on\n", 0644, O_RDWR);
        scene_arm(f, (unsigned)refused);
        int err = kernel_open(FUSE_OPEN, file, O_WRONLY, &fh);

        must(err == (refused == 2 ? EACCES : 0));
        if (!err)
            must(!(((const struct fuse_open_out *)kernel_answer(8))->open_flags & FOPEN_DIRECT_IO) ==
                 !refused);
        scene_arm(f, 1);
        must(kernel_open(FUSE_OPEN, file, O_RDONLY, &fh) == EACCES); /* nothing to ask again */
        scene_arm(NULL, 0);
        kernel_end();
    }
}
END_TEST

START_TEST(groups_of_the_caller_are_read)
{
    static const uint32_t pids[] = {0, 0x7ffffff0};

    kernel_clear();
    file_begin("", 0644, O_RDWR);
    kernel.uid = 1000;
    for (size_t i = 0; i < sizeof pids / sizeof pids[0]; i++) { /* no such process: no groups */
        kernel.pid = pids[i];
        must(setattr_file(FATTR_UID, file) == 0);
    }
    kernel.pid = (uint32_t)getpid();
    must(setattr_file(FATTR_UID, file) == 0);
    kernel.pid = (uint32_t)getppid();
    must(setattr_file(FATTR_UID, file) == 0);
    kernel.uid = 0;
    file_end();
}
END_TEST

static Suite *
test_suite(void)
{
    const TTest *const tests[] = {
        an_interrupted_lock_is_withdrawn_at_the_brick,
        a_lock_without_memory_for_its_withdrawal_waits,
        an_interrupt_during_a_drain_is_ignored,
        an_interrupt_before_the_lock_prevents_the_call,
        the_holder_of_a_lock_is_returned,
        a_close_drops_flocks,
        a_close_without_memory_for_the_unlock_succeeds,
        a_flush_without_locks_needs_no_call,
        an_fsync_of_synced_data_needs_no_call,
        an_error_of_earlier_writes_is_reported_once,
        a_write_of_another_user_clears_set_id_bits,
        a_failure_to_clear_set_id_bits_fails_the_write,
        a_write_without_memory_to_clear_bits_fails,
        setattr_clears_set_id_bits,
        create_clears_bits_of_a_file_that_another_client_has_made,
        an_xattr_has_its_size,
        an_xattr_of_any_type_is_a_text_or_an_error,
        xattrs_of_the_volume_are_protected,
        a_list_of_xattrs_hides_those_of_the_volume,
        the_pools_are_an_xattr_of_root,
        an_open_file_without_a_name_is_served_by_its_handle,
        an_object_without_gfid_is_an_error,
        numbers_can_be_forgotten_many_at_a_time,
        a_file_that_may_not_be_read_is_opened_for_writing_only,
        groups_of_the_caller_are_read,
    };
    Suite *s = suite_create("fuse-files");
    TCase *t = tcase_create("files");

    for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++)
        tcase_add_test(t, tests[i]);
    suite_add_tcase(s, t);
    return s;
}

#include "base/test-main.h"
