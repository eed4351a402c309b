/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Retention of single files, above a bottom layer with one file whose xattrs and times worm-file sets. */
#include <fcntl.h>

#include "xlators/features/test-layers.h"

extern const struct xlator_type features_worm_xlator;

static struct {
    bool exists, is_refused; /* the client may not change the file's attributes */
    char worm_file[8], start[32], state[64];
    int64_t atime, mtime;
    struct inode *inode;
} f;

static void
put(struct dict *d, enum dict_key key, const char *text)
{
    if (*text)
        ck_assert_int_eq(dict_set_bytes(d, key, text, (uint32_t)strlen(text)), 0);
}

static void
take(const struct dict *d, enum dict_key key, char *to)
{
    const struct dict_pair *p = dict_find(d, key);

    if (p) {
        memcpy(to, p->v.bytes, p->len);
        to[p->len] = '\0';
    }
}

static xl_verdict
bottom(struct xlator *xl, struct call_stack *stk)
{
    const struct fop_call *c = &stk->call;

    (void)xl;
    switch (c->fop) {
    case FOP_lookup:
        if (!f.exists)
            return -ENOENT;
        __attribute__((fallthrough));
    case FOP_stat:
    case FOP_fstat:
        stk->reply.stat.atime = f.atime;
        stk->reply.stat.mtime = f.mtime;
        put(reply_xdata(stk), DICT_KEY_WORM_FILE, f.worm_file);
        put(reply_xdata(stk), DICT_KEY_WORM_START, f.start);
        put(reply_xdata(stk), DICT_KEY_WORM_STATE, f.state);
        break;
    case FOP_create:
        stk->reply.fd = fd_new(f.inode, NULL, O_RDWR, false);
        f.exists = true;
        break;
    case FOP_setxattr:
    case FOP_fsetxattr:
        ck_assert(caller_is_internal(&stk->caller));
        take(c->dict, DICT_KEY_WORM_FILE, f.worm_file);
        take(c->dict, DICT_KEY_WORM_START, f.start);
        take(c->dict, DICT_KEY_WORM_STATE, f.state);
        break;
    case FOP_setattr:
    case FOP_fsetattr:
        if (f.is_refused && !caller_is_internal(&stk->caller))
            return -EPERM;
        if (c->valid & SETATTR_ATIME)
            f.atime = c->stbuf.atime;
        if (c->valid & SETATTR_MTIME)
            f.mtime = c->stbuf.mtime;
        break;
    default:
        break;
    }
    return XL_DONE;
}

static int64_t
now(void)
{
    return time(NULL);
}

static void
setup_mode(const char *mode, const char *deletable)
{
    memset(&f, 0, sizeof f);
    bench_setup(&features_worm_xlator,
                (const char *const[]){"worm-file-level", "on", "default-retention-period", "100",
                                      "auto-commit-period", "50", "retention-mode", mode,
                                      "worm-files-deletable", deletable, NULL},
                bottom);
    f.inode = bench_inode("f", 1, S_IFREG);
}

static void
setup(void)
{
    setup_mode("relax", "on");
}

static void
setup_strict(void)
{
    setup_mode("enterprise", "off");
}

static void
teardown(void)
{
    inode_unref(f.inode);
    bench_teardown();
}

/* Creates a file of this age. */
static void
made(int64_t seconds_ago)
{
    f.exists = true;
    strcpy(f.worm_file, "1");
    snprintf(f.start, sizeof f.start, "%lld", (long long)(now() - seconds_ago));
    f.atime = f.mtime = now() - seconds_ago;
}

static void
committed(const char *state, int64_t atime)
{
    made(1000);
    strcpy(f.state, state);
    f.atime = atime;
}

static struct bench_call *
call_of(enum fop fop, int pid, struct fd *fd)
{
    struct bench_call *call = bench_call(fop, NULL);
    struct fop_call *c = &call->stk->call;

    call->stk->caller.pid = pid;
    c->loc.inode = inode_ref(f.inode);
    c->loc.parent = inode_root(bench_graph.inodes);
    c->loc.name = "f";
    c->fd = fd ? fd_ref(fd) : NULL;
    return call;
}

static int
change(enum fop fop)
{
    struct fd *fd = fop_info[fop].traits & FOP_BY_FD ? fd_new(f.inode, NULL, O_RDWR, false) : NULL;
    int result = bench_run(call_of(fop, 100, fd));

    fd_unref(fd);
    return result;
}

static int
set_attr(int valid, uint32_t mode, int64_t atime)
{
    struct bench_call *call = call_of(FOP_setattr, 100, NULL);

    call->stk->call.valid = valid;
    call->stk->call.stbuf = (struct iatt){.mode = mode, .atime = atime, .mtime = atime};
    return bench_run(call);
}

static const enum fop changes[] = {FOP_link,  FOP_unlink,    FOP_rename,  FOP_truncate,
                                   FOP_writev, FOP_ftruncate, FOP_fallocate, FOP_discard, FOP_zerofill};
enum { CHANGES = sizeof changes / sizeof changes[0] };

START_TEST(files_without_the_mark_are_left_alone)
{
    f.exists = true;
    for (size_t i = 0; i < CHANGES; i++)
        ck_assert_int_eq(change(changes[i]), 0);
    made(10);
    for (size_t i = 0; i < CHANGES; i++)
        ck_assert_int_eq(change(changes[i]), 0);
    ck_assert_str_eq(f.state, "");
}
END_TEST

START_TEST(age_commits)
{
    for (size_t i = 0; i < CHANGES; i++) {
        made(60);
        f.state[0] = '\0';
        ck_assert_int_eq(change(changes[i]), -EROFS);
        ck_assert_str_eq(f.state, "3/100/50");
        ck_assert_int_ge(f.atime, now() + 98);
        ck_assert_int_eq(change(changes[i]), -EROFS);
        ck_assert_int_eq(bench_run(call_of(FOP_truncate, -6, NULL)), 0); /* self-heal */
    }
}
END_TEST

START_TEST(retention_ends)
{
    committed("3/20/50", now() - 1);
    ck_assert_int_eq(change(FOP_truncate), -EROFS);
    ck_assert_str_eq(f.state, "1/0/0");
    ck_assert_int_le(f.atime, now() - 20);
    for (size_t i = 0; i < CHANGES; i++)
        ck_assert_int_eq(change(changes[i]), changes[i] == FOP_unlink ? 0 : -EROFS);
    committed("3/20/50", now() - 1);
    ck_assert_int_eq(change(FOP_unlink), 0);
}
END_TEST

START_TEST(files_that_are_not_deletable_stay)
{
    committed("11/20/50", now() - 1);
    ck_assert_int_eq(change(FOP_unlink), -EROFS);
    ck_assert_str_eq(f.state, "9/0/0");
    ck_assert_int_eq(change(FOP_unlink), -EROFS);
}
END_TEST

START_TEST(files_with_unreadable_state_are_kept)
{
    static const char *const bad[] = {
        "", "x", "3", "3/1", "7/1/1", "4/0/0", "3/99999999999999999999999999999/1"};

    for (size_t i = 1; i < sizeof bad / sizeof bad[0]; i++) {
        committed(bad[i], i < 5 ? now() - 10 : now() + 10);
        ck_assert_int_eq(change(FOP_unlink), -EROFS);
        ck_assert_int_eq(change(FOP_truncate), -EROFS);
    }
}
END_TEST

START_TEST(modes_commit)
{
    made(1);
    ck_assert_int_eq(set_attr(SETATTR_MODE, 0644, 0), 0);
    ck_assert_str_eq(f.state, "");
    f.is_refused = true;
    ck_assert_int_eq(set_attr(SETATTR_MODE, 0444, 0), -EPERM);
    ck_assert_str_eq(f.state, "");
    f.is_refused = false;
    ck_assert_int_eq(set_attr(SETATTR_MODE, 0444, 0), 0);
    ck_assert_str_eq(f.state, "3/100/50");
    ck_assert_int_ge(f.atime, now() + 98);
    ck_assert_int_eq(set_attr(SETATTR_MODE, 0644, 0), 0);
    ck_assert_int_eq(change(FOP_writev), -EROFS);
}
END_TEST

START_TEST(access_time_ends_the_retention)
{
    int64_t until = now() + 500;

    committed("3/100/50", now() + 100);
    int64_t mtime = f.mtime;
    ck_assert_int_eq(set_attr(SETATTR_ATIME | SETATTR_MTIME, 0, until), 0);
    ck_assert_int_eq(f.atime, until);
    ck_assert_int_eq(f.mtime, mtime);
    ck_assert(strcmp(f.state, "3/500/50") == 0 || strcmp(f.state, "3/499/50") == 0);
    ck_assert_int_eq(set_attr(SETATTR_ATIME, 0, now() + 5), 0);
    ck_assert_int_eq(set_attr(SETATTR_ATIME, 0, mtime - 1), -EROFS);
    committed("11/100/50", now() + 100);
    ck_assert_int_eq(set_attr(SETATTR_ATIME, 0, now() + 50), -EROFS);
    ck_assert_int_eq(set_attr(SETATTR_ATIME_NOW, 0, 0), -EROFS);
    ck_assert_int_eq(set_attr(SETATTR_ATIME, 0, now() + 200), 0);
}
END_TEST

START_TEST(the_creating_fd_writes_the_file)
{
    struct bench_call *call = call_of(FOP_create, 100, NULL);

    bench_wind(call);
    ck_assert_int_eq(bench_result(call), 0);
    struct fd *fd = fd_ref(call->stk->reply.fd);
    bench_free(call);
    ck_assert_str_eq(f.worm_file, "1");
    ck_assert_int_le(strtoll(f.start, NULL, 10), now());
    ck_assert_int_gt(strtoll(f.start, NULL, 10), now() - 5);
    made(60);
    ck_assert_int_eq(bench_run(call_of(FOP_writev, 100, fd)), 0);
    ck_assert_int_eq(change(FOP_writev), -EROFS); /* an fd that did not create the file */
    ck_assert_int_eq(bench_run(call_of(FOP_writev, 100, fd)), -EROFS);
    fd_unref(fd);

    call = call_of(FOP_create, 100, NULL); /* opens the existing file and would truncate it */
    call->stk->call.flags = O_RDWR | O_TRUNC;
    ck_assert_int_eq(bench_run(call), -EROFS);
    *f.worm_file = *f.state = f.exists = 0;
    ck_assert_int_eq(bench_run(call_of(FOP_create, -6, NULL)), 0);
    ck_assert_str_eq(f.worm_file, "");
}
END_TEST

START_TEST(committed_files_are_not_replaced)
{
    struct inode *victim = f.inode;
    struct bench_call *call;

    committed("3/100/50", now() + 100);
    f.inode = bench_inode("g", 2, S_IFDIR); /* the bottom layer returns the same state for both objects */
    call = call_of(FOP_rename, 100, NULL);
    ck_assert_int_eq(bench_run(call), 0);   /* a folder */
    inode_unref(f.inode);
    f.inode = victim;
    call = call_of(FOP_rename, 100, NULL);
    call->stk->call.loc2.inode = inode_ref(victim);
    ck_assert_int_eq(bench_run(call), -EROFS);
}
END_TEST

Suite *test_suite(void);

Suite *
test_suite(void)
{
    Suite *s = suite_create("worm-file");
    TCase *t = tcase_create("relax"), *e = tcase_create("enterprise");

    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_test(t, files_without_the_mark_are_left_alone);
    tcase_add_test(t, age_commits);
    tcase_add_test(t, retention_ends);
    tcase_add_test(t, files_with_unreadable_state_are_kept);
    tcase_add_test(t, modes_commit);
    tcase_add_test(t, access_time_ends_the_retention);
    tcase_add_test(t, the_creating_fd_writes_the_file);
    tcase_add_test(t, committed_files_are_not_replaced);
    tcase_add_checked_fixture(e, setup_strict, teardown);
    tcase_add_test(e, files_that_are_not_deletable_stay);
    suite_add_tcase(s, t);
    suite_add_tcase(s, e);
    return s;
}

#include "base/test-main.h"
