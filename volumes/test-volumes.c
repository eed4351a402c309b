/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-3.0-or-later */
/* Volumes on disk. The process is killed before each call that changes a disk, and the next start finds the
 * old state or the new one. The linker wraps these calls (local.mk), and the test ends the process in place
 * of the n-th. Or the disk is full from that call on: then the operation fails with an error and the old
 * state stays. Needs root: bricks carry trusted xattrs. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <check.h>
#include <urcu.h>

#include "base/test-child.h"
#include "base/test-root.h"
#include "bricks/bricks.h"
#include "event/worker.h"
#include "glusterfsd/brick-types.h"
#include "graph/pools.h"
#include "log/log.h"
#include "volumes/state-dir.h"
#include "volumes/volume-options.h"
#include "volumes/volumes.h"

static char place[64];
static char state_path[96];
static struct problem why;

/* ---- calls that do not come to be ------------------------------------------------------------ */

/* The end of the call: the process is killed before the call, or in the middle of a write; or the call needs
 * room and gets ENOSPC, alone or with all later calls. */
enum end { KILLED, TORN, FULL_ONCE, FULL, ENDS };

static enum end end;
static int end_at = -1; /* the number of the call; -1: none */
static int calls;       /* of the first thread: operations are done by the thread that asks for them */

/* Calls of other threads (lines of the log, wake-ups) come at any time and are not counted. */
static bool
is_counted(void)
{
    return end_at >= 0 && gettid() == getpid();
}

static bool
is_disk_full(void)
{
    return end == FULL_ONCE || end == FULL;
}

/* Counts a call. Is it one that is not to be? */
static bool
is_ended(void)
{
    if (!is_counted())
        return false;
    calls++;
    return end == FULL ? calls > end_at : calls == end_at + 1;
}

/* Before a call that gives room back. */
static void
step(void)
{
    if (is_ended() && !is_disk_full())
        kill(getpid(), SIGKILL);
}

/* Before a call that needs room. True: there is none, and errno says so. */
static bool
no_room(void)
{
    if (!is_ended())
        return false;
    if (!is_disk_full())
        kill(getpid(), SIGKILL);
    errno = ENOSPC;
    return true;
}

static bool
is_regular(int fd)
{
    struct stat st;

    return fstat(fd, &st) == 0 && S_ISREG(st.st_mode);
}

/* The linker's names for the real ones. */
ssize_t __real_write(int fd, const void *bytes, size_t size);
int __real_fsync(int fd);
int __real_renameat(int from, const char *name, int to, const char *other);
int __real_unlinkat(int dir, const char *name, int flags);
int __real_mkdirat(int dir, const char *name, mode_t mode);
int __real_mkdir(const char *path, mode_t mode);
int __real_rmdir(const char *path);
int __real_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __real_fremovexattr(int fd, const char *name);
ssize_t __wrap_write(int fd, const void *bytes, size_t size);
int __wrap_fsync(int fd);
int __wrap_renameat(int from, const char *name, int to, const char *other);
int __wrap_unlinkat(int dir, const char *name, int flags);
int __wrap_mkdirat(int dir, const char *name, mode_t mode);
int __wrap_mkdir(const char *path, mode_t mode);
int __wrap_rmdir(const char *path);
int __wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags);
int __wrap_fremovexattr(int fd, const char *name);

ssize_t
__wrap_write(int fd, const void *bytes, size_t size)
{
    if (is_counted() && calls == end_at && end == TORN)
        (void)!__real_write(fd, bytes, size / 2);
    return is_regular(fd) && no_room() ? -1 : __real_write(fd, bytes, size);
}

int
__wrap_fsync(int fd)
{
    if (!is_regular(fd))
        step();
    else if (no_room())
        return -1;
    return __real_fsync(fd);
}

int
__wrap_renameat(int from, const char *name, int to, const char *other)
{
    return no_room() ? -1 : __real_renameat(from, name, to, other);
}

int
__wrap_unlinkat(int dir, const char *name, int flags)
{
    step();
    return __real_unlinkat(dir, name, flags);
}

int
__wrap_mkdirat(int dir, const char *name, mode_t mode)
{
    return no_room() ? -1 : __real_mkdirat(dir, name, mode);
}

int
__wrap_mkdir(const char *path, mode_t mode)
{
    return no_room() ? -1 : __real_mkdir(path, mode);
}

int
__wrap_rmdir(const char *path)
{
    step();
    return __real_rmdir(path);
}

int
__wrap_fsetxattr(int fd, const char *name, const void *value, size_t size, int flags)
{
    return no_room() ? -1 : __real_fsetxattr(fd, name, value, size, flags);
}

int
__wrap_fremovexattr(int fd, const char *name)
{
    step();
    return __real_fremovexattr(fd, name);
}

/* ---- a machine ------------------------------------------------------------------------------- */

static void
setup(void)
{
    char log[96];

    strcpy(place, "/dev/shm/kiln-volumes-XXXXXX");
    ck_assert_ptr_nonnull(mkdtemp(place));
    snprintf(state_path, sizeof state_path, "%s/state", place);
    snprintf(log, sizeof log, "%s/log", place);
    ck_assert_int_eq(log_open(log), 0);
    bricks_begin(&(const struct bricks_hooks){.find_type = brick_type_find});
}

static void
teardown(void)
{
    char command[96];

    log_close();
    snprintf(command, sizeof command, "rm -rf %s", place);
    ck_assert_int_eq(system(command), 0);
}

static void
brick_path(char path[96], unsigned i)
{
    snprintf(path, 96, "%s/b%u", place, i);
}

static struct volume *
make_volume(const char *name, unsigned first, unsigned bricks)
{
    struct volume *v = volume_new(name, bricks, false);
    char path[96];

    ck_assert_ptr_nonnull(v);
    for (unsigned i = 0; i < bricks; i++) {
        brick_path(path, first + i);
        ck_assert_int_eq(volume_add_brick(v, "", path, false), 0);
    }
    ck_assert_int_eq(volume_options_of_new(v), 0);
    return v;
}

static void
open_volumes(void)
{
    int err = volumes_open(state_path, &(const struct volumes_hooks){0}, &why);

    ck_assert_msg(err == 0, "%s", why.wrong);
}

/* Has this folder an id? */
static bool
is_claimed(unsigned i)
{
    char path[96], id[16];

    brick_path(path, i);
    return lgetxattr(path, "trusted.glusterfs.volume-id", id, sizeof id) == sizeof id;
}

static bool
is_there(unsigned i)
{
    char path[96];

    brick_path(path, i);
    return access(path, F_OK) == 0;
}

/* ---- killed at each call --------------------------------------------------------------------- */

enum outcome { OLD, NEW, WRONG };

struct scene {
    int (*prepare)(void);         /* NULL: an empty state */
    int (*act)(void);             /* with the volumes open, and served. 0 or -errno with `why` */
    enum outcome (*look)(void);   /* with the volumes open */
};


/* How the process of an operation ends that is not killed. */
enum { WENT_THROUGH, WAS_REFUSED, NOT_REACHED, AS_IT_SHOULD_NOT };

static void
child_fails(int at, const char *what)
{
    fprintf(stderr, "call %d, %s: %s\n", at, what, why.wrong);
    _exit(AS_IT_SHOULD_NOT);
}

/* In a process of its own, as a daemon is. The status of waitpid(). */
static int
in_child(const struct scene *s, int at)
{
    pid_t pid = test_fork();
    int status = 0;

    if (pid == 0) {
        rcu_register_thread();
        if (graph_pools_init() || workers_start(&(struct worker_options){.min = 1, .max = 4}))
            child_fails(at, "no machine");
        end_at = at;
        calls = 0;
        bool is_open = volumes_open(state_path, &(const struct volumes_hooks){0}, &why) == 0;
        if (is_open)
            volumes_attach();
        int err = is_open ? s->act() : why.err;
        bool is_reached = calls > end_at;
        end_at = -1;
        if (err && !(is_reached && is_disk_full() && err == -ENOSPC && strstr(why.wrong, strerror(ENOSPC))))
            child_fails(at, "it fails");
        if (is_open && s->look && s->look() != (err ? OLD : NEW))
            child_fails(at, "the volumes in memory are not as its answer says");
        _exit(err ? WAS_REFUSED : is_reached ? WENT_THROUGH : NOT_REACHED);
    }
    ck_assert_int_eq(waitpid(pid, &status, 0), pid);
    return status;
}

static enum outcome
look_anew(const struct scene *s)
{
    open_volumes(); /* undoes what was half made */
    enum outcome seen = s->look();
    volumes_close();
    return seen;
}

/* Returns the state on disk after the operation has ended at call `at`; *is_reached: the operation has made
 * that call. */
static enum outcome
end_scene(const struct scene *s, int at, bool *is_reached)
{
    setup();
    if (s->prepare)
        ck_assert_int_eq(in_child(&(const struct scene){.act = s->prepare}, -1), WENT_THROUGH << 8);
    int status = in_child(s, at), code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    enum outcome seen = look_anew(s);

    if (is_disk_full())
        ck_assert_msg(code >= 0 && code < AS_IT_SHOULD_NOT, "call %d: status %d", at, status);
    else
        ck_assert_msg(code == NOT_REACHED || WTERMSIG(status) == SIGKILL, "call %d: status %d", at, status);
    ck_assert_msg(seen != WRONG, "ended at call %d", at);
    if (code >= 0)
        ck_assert_msg(seen == (code == WAS_REFUSED ? OLD : NEW), "call %d: not as it was answered", at);
    *is_reached = code != NOT_REACHED;
    teardown();
    return seen;
}

/* Ends the 1st, 2nd ... call until the operation gets through. */
static void
run_scene(const struct scene *s, int how)
{
    enum outcome last = OLD;
    bool is_reached = true;
    int refused = 0;

    end = (enum end)how;
    for (int at = 0; is_reached; at++) {
        enum outcome seen = end_scene(s, at, &is_reached);

        ck_assert_msg(seen == NEW || last == OLD || is_disk_full(), "ended at call %d: old again", at);
        refused += seen == OLD;
        last = seen;
        ck_assert_int_lt(at, 1000);
    }
    ck_assert_int_gt(refused, 1); /* else the process was ended before no call */
}

static int
create_one(void)
{
    return volumes_create(make_volume("one", 0, 2), &why);
}

/* All of it or nothing: the volume with its two folders, or no volume and no folders. */
static enum outcome
look_for_one(void)
{
    struct volume *v = volumes_find("one", &why);
    bool is_new = v && v->status == VOLUME_CREATED && is_claimed(0) && is_claimed(1);
    bool is_old = !v && !is_there(0) && !is_there(1);

    volume_free(v);
    return is_new ? NEW : is_old ? OLD : WRONG;
}

START_TEST(create_is_whole_or_nothing)
{
    run_scene(&(const struct scene){NULL, create_one, look_for_one}, _i);
}
END_TEST

static int
set_two(void)
{
    json_t *options = json_pack("{ss ss}", "network.ping-timeout", "7", "performance.read-ahead", "on");
    int err = volumes_set("one", options, &why);

    json_decref(options);
    return err;
}

static enum outcome
look_for_two(void)
{
    struct volume *v = volumes_find("one", &why);
    const char *a = v ? volume_option_of(v, "network.ping-timeout") : NULL;
    const char *b = v ? volume_option_of(v, "performance.read-ahead") : NULL;
    enum outcome seen = v && !a && !b ? OLD : v && a && b ? NEW : WRONG;

    volume_free(v);
    return seen;
}

START_TEST(set_is_all_or_none)
{
    run_scene(&(const struct scene){create_one, set_two, look_for_two}, _i);
}
END_TEST

static int
create_with_two(void)
{
    int err = create_one();

    return err ? err : set_two();
}

static int
reset_all(void)
{
    unsigned count;

    return volumes_reset("one", "all", &count, &why);
}

static enum outcome
look_for_reset(void)
{
    enum outcome seen = look_for_two();

    return seen == OLD ? NEW : seen == NEW ? OLD : WRONG;
}

START_TEST(reset_is_all_or_none)
{
    run_scene(&(const struct scene){create_with_two, reset_all, look_for_reset}, _i);
}
END_TEST

static int
delete_one(void)
{
    return volumes_delete("one", &why);
}

static enum outcome
look_for_none(void)
{
    struct volume *v = volumes_find("one", &why);
    enum outcome seen = !is_claimed(0) || !is_claimed(1) ? WRONG : v ? OLD : NEW;

    volume_free(v);
    return seen;
}

START_TEST(delete_leaves_the_folders)
{
    run_scene(&(const struct scene){create_one, delete_one, look_for_none}, _i);
}
END_TEST

static int
add_two(void)
{
    struct volume *added = make_volume("added", 2, 2);
    int err = volumes_add_bricks("one", added, 0, false, &why);

    volume_free(added);
    return err;
}

/* Two bricks and no other folder, or four. */
static enum outcome
look_for_four(void)
{
    struct volume *v = volumes_find("one", &why);
    enum outcome seen = WRONG;

    if (v && v->brick_count == 2 && v->coming_count == 0 && !is_there(2) && !is_there(3))
        seen = OLD;
    if (v && v->brick_count == 4 && v->coming_count == 0 && v->bricks[3].id == 3 && is_claimed(2) &&
        is_claimed(3))
        seen = NEW;
    volume_free(v);
    return is_claimed(0) && is_claimed(1) ? seen : WRONG;
}

START_TEST(bricks_are_added_all_or_none)
{
    run_scene(&(const struct scene){create_one, add_two, look_for_four}, _i);
}
END_TEST

static int
create_four(void)
{
    int err = create_one();

    return err ? err : add_two();
}

static int
remove_two(void)
{
    struct volume *removed = make_volume("removed", 0, 2);
    int err = volumes_remove_bricks("one", removed, 0, &why);

    volume_free(removed);
    return err;
}

/* Those that stay keep their ids; no folder goes. */
static enum outcome
look_for_the_others(void)
{
    struct volume *v = volumes_find("one", &why);
    enum outcome seen = v && v->brick_count == 4                          ? OLD
                        : v && v->brick_count == 2 && v->bricks[0].id == 2 && v->next_id == 4 ? NEW
                                                                          : WRONG;

    for (unsigned i = 0; i < 4; i++)
        seen = is_claimed(i) ? seen : WRONG;
    volume_free(v);
    return seen;
}

START_TEST(bricks_leave_all_or_none)
{
    run_scene(&(const struct scene){create_four, remove_two, look_for_the_others}, _i);
}
END_TEST

/* ---- of a volume that is served -------------------------------------------------------------- */

static int
create_pair(void)
{
    struct volume *v = make_volume("one", 0, 2);

    v->replica = 2;
    return volumes_create(v, &why);
}

static int
start_one(void)
{
    return volumes_start("one", false, &why);
}

static int
serve_pair(void)
{
    int err = create_pair();

    return err ? err : start_one();
}

static enum outcome
look_for_status(enum volume_status old, enum volume_status new)
{
    struct volume *v = volumes_find("one", &why);
    enum outcome seen = v && v->status == old ? OLD : v && v->status == new ? NEW : WRONG;

    volume_free(v);
    return seen;
}

static enum outcome
look_for_started(void)
{
    return look_for_status(VOLUME_CREATED, VOLUME_STARTED);
}

START_TEST(a_volume_is_started_or_not)
{
    run_scene(&(const struct scene){create_pair, start_one, look_for_started}, _i);
}
END_TEST

static int
stop_one(void)
{
    return volumes_stop("one", &why);
}

static enum outcome
look_for_stopped(void)
{
    return look_for_status(VOLUME_STARTED, VOLUME_STOPPED);
}

START_TEST(a_volume_is_stopped_or_not)
{
    run_scene(&(const struct scene){serve_pair, stop_one, look_for_stopped}, _i);
}
END_TEST

static int
replace_first(void)
{
    struct volume *to = make_volume("to", 2, 1);
    char path[96];

    brick_path(path, 0);
    int err = volumes_replace_brick("one", path, to, &why);
    volume_free(to);
    return err;
}

/* The pair with brick 0 or brick 2 as its first; the folder of 0 stays, that of 2 is there only if it
 * counts. */
static enum outcome
look_for_replaced(void)
{
    struct volume *v = volumes_find("one", &why);
    char old[96], new[96];
    enum outcome seen = WRONG;

    brick_path(old, 0);
    brick_path(new, 2);
    if (v && v->brick_count == 2 && v->coming_count == 0 && is_claimed(0) && is_claimed(1)) {
        if (strcmp(v->bricks[0].path, old) == 0 && !is_there(2))
            seen = OLD;
        if (strcmp(v->bricks[0].path, new) == 0 && is_claimed(2))
            seen = NEW;
    }
    volume_free(v);
    return seen;
}

START_TEST(a_brick_is_replaced_or_not)
{
    run_scene(&(const struct scene){serve_pair, replace_first, look_for_replaced}, _i);
}
END_TEST

static int
add_replica(void)
{
    struct volume *added = make_volume("added", 2, 1);
    int err = volumes_add_bricks("one", added, 3, false, &why);

    volume_free(added);
    return err;
}

static enum outcome
look_for_three(void)
{
    struct volume *v = volumes_find("one", &why);
    enum outcome seen = WRONG;

    if (v && v->replica == 2 && v->brick_count == 2 && v->coming_count == 0 && !is_there(2))
        seen = OLD;
    if (v && v->replica == 3 && v->brick_count == 3 && v->coming_count == 0 && is_claimed(2))
        seen = NEW;
    volume_free(v);
    return is_claimed(0) && is_claimed(1) ? seen : WRONG;
}

START_TEST(a_replica_grows_or_not)
{
    run_scene(&(const struct scene){serve_pair, add_replica, look_for_three}, _i);
}
END_TEST

/* ---- refusals -------------------------------------------------------------------------------- */

static void
put_file(const char *name, const char *text)
{
    char path[160];

    snprintf(path, sizeof path, "%s/%s", state_path, name);
    FILE *f = fopen(path, "w");
    ck_assert_ptr_nonnull(f);
    fputs(text, f);
    fclose(f);
}

static void
expect_refusal(int want, const char *words)
{
    int err = volumes_open(state_path, &(const struct volumes_hooks){0}, &why);

    volumes_close();
    ck_assert_int_eq(err, want);
    ck_assert_msg(strstr(why.wrong, words), "%s", why.wrong);
}

START_TEST(a_newer_state_is_refused)
{
    open_volumes();
    volumes_close();
    put_file("kiln-state", "{\"format\": 2}");
    expect_refusal(-EPROTO, "format 2");
}
END_TEST

START_TEST(a_volume_of_a_newer_format_is_refused)
{
    open_volumes();
    volumes_close();
    put_file("volumes/x.json", "{\"format\": 5, \"name\": \"x\"}");
    expect_refusal(-EPROTO, "volumes/x.json");
}
END_TEST

START_TEST(a_half_written_volume_is_refused)
{
    open_volumes();
    volumes_close();
    put_file("volumes/x.json", "{\"format\": 1, \"name\": \"x\", \"bri");
    expect_refusal(-EINVAL, "volumes/x.json");
}
END_TEST

START_TEST(a_folder_of_others_is_refused)
{
    ck_assert_int_eq(mkdir(state_path, 0700), 0);
    put_file("notes", "mine");
    expect_refusal(-ENOTEMPTY, "not empty");
}
END_TEST

START_TEST(a_folder_that_others_may_write_is_refused)
{
    ck_assert_int_eq(mkdir(state_path, 0700), 0);
    ck_assert_int_eq(chmod(state_path, 0777), 0);
    expect_refusal(-EPERM, "0777");
}
END_TEST

START_TEST(two_daemons_do_not_share_a_state)
{
    struct state_dir *first = state_dir_open(state_path, &why);

    ck_assert_ptr_nonnull(first);
    expect_refusal(-EBUSY, "is in use by a running kilnd");
    state_dir_close(first);
    open_volumes();
    volumes_close();
}
END_TEST

START_TEST(what_a_crash_has_left_goes)
{
    char path[160];

    open_volumes();
    volumes_close();
    put_file("volumes/.new-x.json", "{\"format\"");
    open_volumes();
    volumes_close();
    snprintf(path, sizeof path, "%s/volumes/.new-x.json", state_path);
    ck_assert_int_ne(access(path, F_OK), 0);
}
END_TEST

/* ---- all ------------------------------------------------------------------------------------- */

Suite *test_suite(void);

Suite *
test_suite(void)
{
    root_or_skip();
    Suite *s = suite_create("volumes");
    TCase *kills = tcase_create("killed"), *c = tcase_create("state");

    tcase_set_timeout(kills, 300);
    tcase_add_loop_test(kills, create_is_whole_or_nothing, 0, ENDS);
    tcase_add_loop_test(kills, set_is_all_or_none, 0, ENDS);
    tcase_add_loop_test(kills, reset_is_all_or_none, 0, ENDS);
    tcase_add_loop_test(kills, delete_leaves_the_folders, 0, ENDS);
    tcase_add_loop_test(kills, bricks_are_added_all_or_none, 0, ENDS);
    tcase_add_loop_test(kills, bricks_leave_all_or_none, 0, ENDS);
    tcase_add_loop_test(kills, a_volume_is_started_or_not, 0, ENDS);
    tcase_add_loop_test(kills, a_volume_is_stopped_or_not, 0, ENDS);
    tcase_add_loop_test(kills, a_brick_is_replaced_or_not, 0, ENDS);
    tcase_add_loop_test(kills, a_replica_grows_or_not, 0, ENDS);
    suite_add_tcase(s, kills);

    tcase_add_checked_fixture(c, setup, teardown);
    tcase_add_test(c, a_newer_state_is_refused);
    tcase_add_test(c, a_volume_of_a_newer_format_is_refused);
    tcase_add_test(c, a_half_written_volume_is_refused);
    tcase_add_test(c, a_folder_of_others_is_refused);
    tcase_add_test(c, a_folder_that_others_may_write_is_refused);
    tcase_add_test(c, two_daemons_do_not_share_a_state);
    tcase_add_test(c, what_a_crash_has_left_goes);
    suite_add_tcase(s, c);
    return s;
}

#include "base/test-main.h"
